//! Checks values against an argument spec, as roles and modules of Ansible write it.

use crate::value::{Map, Value};

/// Every way in which `given` is not what `spec` asks for, in Ansible's words and order.
pub fn errors(spec: &Map, given: &Map) -> Vec<String> {
    let mut found = Errors::default();
    check_level(spec, &Map::new(), given, &[], &mut found);
    if !found.unknown.is_empty() {
        let mut supported: Vec<String> = found.supported.clone();
        supported.sort();
        supported.dedup();
        found.errors.push(format!(
            "{}. Supported parameters include: {}.",
            found.unknown.join(", "),
            supported.join(", ")
        ));
    }
    found.errors
}

#[derive(Default)]
struct Errors {
    errors: Vec<String>,
    unknown: Vec<String>,
    /// The names that are known where an unknown one was found.
    supported: Vec<String>,
}

/// Checks one map of values: `spec` has its options, `rules` what holds between them, `path` the options around it.
fn check_level(spec: &Map, rules: &Map, given: &Map, path: &[String], found: &mut Errors) {
    let within = if path.is_empty() { String::new() } else { format!(" found in {}", path.join(" -> ")) };
    let names: Vec<(String, Map)> =
        spec.iter().map(|(name, option)| (name.to_string(), option.as_map().cloned().unwrap_or_default())).collect();
    // a null is given, but it is no value, unless one must be there
    let has_default = |option: &Map| option.get("default").is_some_and(|default| !default.is_null());
    let mut values = Map::new();
    let mut nulls = Vec::new();
    for (name, option) in &names {
        let aliases = texts(option.get("aliases"));
        let value = std::iter::once(name).chain(&aliases).find_map(|name| given.get(name.as_str()));
        match value {
            Some(value) if value.is_null() && !is_true(option.get("required")) && !has_default(option) => {
                nulls.push(name.as_str());
            }
            Some(value) => {
                values.insert(name.as_str().into(), value.clone());
            }
            None => {}
        }
    }
    unknown_names(&names, given, path, found);

    let sets = |key: &str| sets(rules.get(key));
    let count = |set: &[String], values: &Map| set.iter().filter(|name| values.contains_key(name.as_str())).count();
    for set in sets("mutually_exclusive").iter().filter(|set| count(set, &values) > 1) {
        found.errors.push(format!("parameters are mutually exclusive: {}{within}", set.join("|")));
    }
    let mut missing: Vec<&str> = names
        .iter()
        .filter(|(name, option)| {
            let is_given = values.contains_key(name.as_str()) || nulls.contains(&name.as_str());
            is_true(option.get("required")) && !has_default(option) && !is_given
        })
        .map(|(name, _)| name.as_str())
        .collect();
    missing.sort_unstable();
    if !missing.is_empty() {
        found.errors.push(format!("missing required arguments: {}{within}", missing.join(", ")));
    }
    for (name, option) in &names {
        let Some(value) = values.get(name.as_str()).cloned() else { continue };
        match typed(name, option, &value) {
            Ok(value) => {
                values.insert(name.as_str().into(), value);
            }
            Err(error) => {
                found.errors.push(format!("{error}{within}"));
                values.shift_remove(name.as_str());
            }
        }
    }
    for (name, option) in &names {
        if let Some(error) = values.get(name.as_str()).and_then(|value| wrong_choice(name, option, value)) {
            found.errors.push(match error.split_once(". Got") {
                Some((choices, got)) => format!("{choices}{within}. Got{got}"),
                None => format!("{error}{within}"),
            });
        }
    }
    for (name, option) in &names {
        if let (Some(elements), Some(Value::List(items))) = (option.get("elements"), values.get(name.as_str())) {
            let kind = elements.to_text();
            let errors = items.iter().filter_map(|item| {
                let reason = convert(&kind, item).err()?;
                let given = class_of(item);
                Some(format!(
                    "Elements value for option '{name}' is of type {given} and we were unable to convert to {kind}: {reason}{within}"
                ))
            });
            found.errors.extend(errors);
        }
    }
    check_rules(rules, &values, &within, found);
    for (name, option) in &names {
        let Some(options) = option.get("options").and_then(Value::as_map) else { continue };
        let mut path = path.to_vec();
        path.push(name.clone());
        match values.get(name.as_str()) {
            Some(Value::Map(map)) => check_level(options, option, map, &path, found),
            Some(Value::List(items)) => {
                for item in items.iter().filter_map(Value::as_map) {
                    check_level(options, option, item, &path, found);
                }
            }
            _ => {}
        }
    }
}

fn unknown_names(names: &[(String, Map)], given: &Map, path: &[String], found: &mut Errors) {
    let is_known = |name: &str| {
        names
            .iter()
            .any(|(known, option)| known == name || texts(option.get("aliases")).iter().any(|alias| alias == name))
    };
    let unknown: Vec<String> = given
        .keys()
        .map(ToString::to_string)
        .filter(|name| !is_known(name))
        .map(|name| path.iter().cloned().chain([name]).collect::<Vec<_>>().join("."))
        .collect();
    if !unknown.is_empty() {
        found.unknown.extend(unknown);
        found.supported.extend(names.iter().map(|(name, option)| {
            let aliases = texts(option.get("aliases"));
            if aliases.is_empty() { name.clone() } else { format!("{name} ({})", aliases.join(", ")) }
        }));
    }
}

fn check_rules(rules: &Map, values: &Map, within: &str, found: &mut Errors) {
    let has = |name: &String| values.contains_key(name.as_str());
    for set in sets(rules.get("required_together")) {
        if set.iter().any(has) && !set.iter().all(has) {
            found.errors.push(format!("parameters are required together: {}{within}", set.join(", ")));
        }
    }
    for set in sets(rules.get("required_one_of")) {
        if !set.iter().any(has) {
            found.errors.push(format!("one of the following is required: {}{within}", set.join(", ")));
        }
    }
    for rule in rules.get("required_if").and_then(Value::as_list).unwrap_or_default() {
        let Some([name, value, required, rest @ ..]) = rule.as_list() else { continue };
        if values.get(name.to_text().as_ref()) != Some(value) {
            continue;
        }
        let required = texts(Some(required));
        let missing: Vec<&str> = required.iter().filter(|name| !has(name)).map(String::as_str).collect();
        let any_is_enough = rest.first().is_some_and(Value::is_truthy);
        let (is_wrong, word) = match any_is_enough {
            true => (missing.len() == required.len(), "any"),
            false => (!missing.is_empty(), "all"),
        };
        if is_wrong {
            let missing = missing.join(", ");
            found.errors.push(format!("{name} is {value} but {word} of the following are missing: {missing}{within}"));
        }
    }
    for (name, required) in rules.get("required_by").and_then(Value::as_map).into_iter().flatten() {
        let required = texts(Some(required));
        let missing: Vec<&str> = required.iter().filter(|name| !has(name)).map(String::as_str).collect();
        if values.contains_key(name) && !missing.is_empty() {
            found.errors.push(format!("missing parameter(s) required by '{name}': {}{within}", missing.join(", ")));
        }
    }
}

/// A text or the items of a list.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::List(items)) => items.iter().map(ToString::to_string).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(single) => vec![single.to_string()],
    }
}

/// A list of names, or a list of such lists.
fn sets(value: Option<&Value>) -> Vec<Vec<String>> {
    let items = value.and_then(Value::as_list).unwrap_or_default();
    if items.iter().any(|item| item.as_list().is_some()) {
        items.iter().map(|item| texts(Some(item))).collect()
    } else if items.is_empty() {
        Vec::new()
    } else {
        vec![texts(value)]
    }
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::to_ansible_bool).unwrap_or(false)
}

fn typed(name: &str, option: &Map, value: &Value) -> Result<Value, String> {
    let kind = option.get("type").map_or("str".into(), Value::to_text);
    convert(&kind, value).map_err(|reason| {
        format!("argument '{name}' is of type {} and we were unable to convert to {kind}: {reason}", class_of(value))
    })
}

/// The class of a value, as Python shows it.
fn class_of(value: &Value) -> String {
    format!("<class '{}'>", value.type_name())
}

/// The value as this type; else why it cannot be.
fn convert(kind: &str, value: &Value) -> Result<Value, String> {
    let refused = |article: &str| match kind {
        "int" => format!("\"{}\" cannot be converted to an int", value.to_repr()),
        _ => format!("{} cannot be converted to {article} {kind}", class_of(value)),
    };
    let number = |text: &str| text.trim().parse::<f64>().ok();
    Ok(match (kind, value) {
        ("int", Value::Int(_) | Value::Big(_) | Value::Bool(_)) => value.clone(),
        ("int", Value::Float(float)) if float.fract() == 0.0 => Value::Int(*float as i64),
        ("int", Value::Str(text)) => text.as_str().trim().parse::<i64>().map(Value::Int).map_err(|_| refused("an"))?,
        ("int", _) => return Err(refused("an")),
        ("float", Value::Float(_) | Value::Int(_) | Value::Big(_)) => value.clone(),
        ("float", Value::Str(text)) => number(text.as_str()).map(Value::Float).ok_or_else(|| refused("a"))?,
        ("float", _) => return Err(refused("a")),
        ("bool", Value::Null | Value::List(_) | Value::Map(_)) => return Err(refused("a")),
        ("bool", _) => Value::Bool(value.to_ansible_bool().ok_or_else(|| {
            format!(
                "The value '{value}' is not a valid boolean. Valid booleans include: yes, on, true, t, y, 1, no, off, false, f, n, 0"
            )
        })?),
        ("list", Value::List(_)) => value.clone(),
        ("list", Value::Str(text)) => text.as_str().split(',').map(|item| Value::from(item.trim())).collect::<Vec<_>>().into(),
        ("list", Value::Int(_) | Value::Float(_)) => Value::list(vec![value.to_text().into_owned().into()]),
        ("list", _) => return Err(refused("a")),
        ("dict", Value::Map(_)) => value.clone(),
        ("dict", Value::Str(text)) => text_to_map(text.as_str())
            .ok_or_else(|| "dictionary requested, could not parse JSON or key=value".to_owned())?,
        ("dict", _) => return Err(refused("a")),
        ("str" | "path", Value::Str(_)) => value.clone(),
        ("str" | "path", Value::Null) => return Err("'None' is not a string and conversion is not allowed".to_owned()),
        ("str" | "path", other) => other.to_text().into_owned().into(),
        _ => value.clone(),
    })
}

/// JSON, or `key=value` pairs.
fn text_to_map(text: &str) -> Option<Value> {
    if text.trim().starts_with('{') {
        return serde_json::from_str(text).ok().map(|json| Value::from_json(&json));
    }
    let pair = |part: &str| part.trim().split_once('=').map(|(key, value)| (Value::from(key), Value::from(value)));
    text.split(',').map(pair).collect::<Option<Map>>().map(Value::map)
}

fn wrong_choice(name: &str, option: &Map, value: &Value) -> Option<String> {
    let choices = option.get("choices")?.as_list()?;
    let is_choice = |value: &Value| choices.iter().any(|choice| choice == value || choice.to_text() == value.to_text());
    let listed = choices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match value {
        Value::List(items) => {
            let wrong: Vec<String> = items.iter().filter(|item| !is_choice(item)).map(ToString::to_string).collect();
            let message =
                format!("value of {name} must be one or more of: {listed}. Got no match for: {}", wrong.join(", "));
            (!wrong.is_empty()).then_some(message)
        }
        value => (!is_choice(value)).then(|| format!("value of {name} must be one of: {listed}, got: {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn map(text: &str) -> Map {
        crate::yaml::load(&Source::new("test", text)).unwrap().unwrap().to_map()
    }

    #[test]
    fn errors_are_told_as_ansible_tells_them() {
        let cases: &[(&str, &str, &[&str])] = &[
            (
                "{queues: {type: int}, mode: {choices: [slow, quick]}, need: {required: true}, more: {required: true}}",
                "{queues: abc, mode: fast}",
                &[
                    "missing required arguments: more, need",
                    "argument 'queues' is of type <class 'str'> and we were unable to convert to int: \"'abc'\" cannot be converted to an int",
                    "value of mode must be one of: slow, quick, got: fast",
                ],
            ),
            (
                "{disks: {type: list, elements: dict, options: {name: {required: true}, size: {type: int}}}, ports: {type: list, elements: int}}",
                "{disks: [{name: sda}, {nome: sdb}], ports: [1, x]}",
                &[
                    "Elements value for option 'ports' is of type <class 'str'> and we were unable to convert to int: \"'x'\" cannot be converted to an int",
                    "missing required arguments: name found in disks",
                    "disks.nome. Supported parameters include: name, size.",
                ],
            ),
            (
                "{sub: {type: dict, options: {deep: {type: dict, options: {n: {type: int}, m: {required: true}}}}}}",
                "{sub: {deep: {n: 1}}}",
                &["missing required arguments: m found in sub -> deep"],
            ),
            ("{x: {}}", "{y: 1, z: 2}", &["y, z. Supported parameters include: x."]),
            (
                "{l: {type: list, choices: [p, q]}}",
                "{l: [p, r, s]}",
                &["value of l must be one or more of: p, q. Got no match for: r, s"],
            ),
            (
                "{d: {type: dict, options: {a: {}, b: {}, c: {}}, mutually_exclusive: [[a, b]], required_one_of: [[c]], required_together: [[a, c]], required_by: {a: [c]}}}",
                "{d: {a: 1, b: 2}}",
                &[
                    "parameters are mutually exclusive: a|b found in d",
                    "parameters are required together: a, c found in d",
                    "one of the following is required: c found in d",
                    "missing parameter(s) required by 'a': c found in d",
                ],
            ),
            (
                "{d: {type: dict, options: {a: {type: int}, c: {}}, required_if: [[a, 1, [c]]]}}",
                "{d: {a: '1'}}",
                &["a is 1 but all of the following are missing: c found in d"],
            ),
            (
                "{a: {type: int}, p: {type: path, aliases: [q]}, f: {required: true, default: 1}}",
                "{a: '5', q: /x}",
                &[],
            ),
        ];
        for (spec, given, wanted) in cases {
            assert_eq!(errors(&map(spec), &map(given)), *wanted, "{spec}");
        }
    }
}
