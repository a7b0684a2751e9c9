//! Templates and conditions against what ansible-core 2.19 and 2.16 gave for them.
//!
//! Where the two differ, types are those of 2.19, and what 2.19 newly refuses is accepted as in 2.16.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use trimtab::template::{Context, Results, Scope, SearchPath, TemplateErrorKind, Warnings};
use trimtab::value::{Interruption, Map, Value};
use trimtab::vault::{Keyring, Secret};

use crate::goldens::{Golden, of_kind, text};

/// Variables of a test.
struct Variables(Map);

impl Scope for Variables {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        Ok(self.0.get(name).cloned())
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().map(|key| key.to_text().into_owned()).collect()
    }
}

/// JSON with every text as a user would have written it.
fn written(json: &Json) -> Value {
    match json {
        Json::String(text) => Value::written(text.replace("@PLAYBOOK_DIR@", &files().to_string_lossy())),
        Json::Array(items) => Value::list(items.iter().map(written).collect()),
        Json::Object(map) => {
            Value::map(map.iter().map(|(key, value)| (Value::from(key.as_str()), written(value))).collect())
        }
        other => Value::from_json(other),
    }
}

/// The directory that lookups look into.
fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/files")
}

fn context(variables: &Json, more: &Json) -> Context {
    let mut map = Map::from_iter([("omit".into(), Value::from("__omit_place_holder__"))]);
    for variables in [variables, more] {
        map.extend(written(variables).as_map().cloned().unwrap_or_default());
    }
    map.insert("vars".into(), Value::map(map.clone()));
    let search = SearchPath { playbook_dir: files(), ..SearchPath::default() };
    // of files/sealed.txt
    let keyring = Keyring::new(vec![Secret::new("default", "golden")], false);
    let context = Context::new(Arc::new(Variables(map)), Arc::new(search), Warnings::default());
    context.with_keyring(Arc::new(keyring))
}

/// Paths below the directory of lookups as they are recorded.
fn portable(value: Json) -> Json {
    match value {
        Json::String(text) => text.replace(&*files().to_string_lossy(), "@PLAYBOOK_DIR@").into(),
        Json::Array(items) => items.into_iter().map(portable).collect(),
        Json::Object(map) => map.into_iter().map(|(key, value)| (key, portable(value))).collect(),
        other => other,
    }
}

/// True if the words of a recorded message stand in ours as well, so that it can be searched for.
fn similar(message: &str, recorded: &str) -> bool {
    let recorded = recorded.rsplit(": ").next().unwrap_or(recorded);
    let recorded = recorded.replace("_AnsibleTaggedStr", "str").trim_end_matches('.').to_lowercase();
    message.to_lowercase().contains(&recorded)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "none",
        other => other.type_name(),
    }
}

/// What a template must give: what 2.19 gives, but for what is ours on purpose. What 2.19 newly refuses may be taken as
/// in 2.16.
fn compare(case: &Json, result: &trimtab::template::Result<Value>) -> bool {
    let ours = case.get("ours");
    match result {
        Ok(value) => {
            let json = portable(value.to_json());
            match (ours.and_then(|ours| ours.get("value")), case["in_2_16"].get("value")) {
                (Some(expected), _) => json == *expected,
                // types are native, as in 2.19
                (None, Some(old)) if case.get("error").is_some() => {
                    json == *old || old.as_str() == Some(&value.to_text())
                }
                _ => json == case["value"] && case["type"] == type_of(value),
            }
        }
        Err(error) if ours.is_some_and(|ours| ours.get("error").is_some()) => {
            error.message().contains(text(&case["ours"], "error"))
        }
        Err(error) => match case["error"].as_str() {
            None => false,
            Some("AnsibleUndefinedVariable") => {
                matches!(error.kind(), TemplateErrorKind::Undefined { .. })
                    && (ours.is_some() || similar(error.message(), text(case, "message")))
            }
            // the words of the parser are not Jinja's
            Some("AnsibleTemplateSyntaxError") => *error.kind() == TemplateErrorKind::Syntax,
            Some(_) => ours.is_some() || similar(error.message(), text(case, "message")),
        },
    }
}

#[test]
fn templates_give_what_ansible_gives() {
    let mut failures = Vec::new();
    let mut count = 0;
    for golden in of_kind("templates") {
        for case in &golden.cases {
            count += 1;
            let template = text(case, "template");
            let result = context(&golden.head["vars"], &case["vars"]).value(&written(&case["template"]));
            if !compare(case, &result) {
                let expected = case.get("value").unwrap_or(&case["message"]);
                let got = result.map(|value| (type_of(&value), portable(value.to_json()).to_string()));
                let got = got.map_err(|error| error.message().to_owned());
                failures.push(format!("{}: {template:?}\n  expected: {expected}\n  got:      {got:?}", golden.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
}

/// Where `jinja2_native = false` gives something else than Ansible 2.16: the beginning of the template, and why.
const OLD_OURS: &[(&str, &str)] = &[
    ("{% set x = [3,1,2] %}", "2.16 printed the list at the end, after all that changed it"),
    ("{{ query('sequence', '3') }}", "2.16 took the direction of a stride wrong"),
];

#[test]
fn templates_give_text_where_the_setting_asks_for_it() {
    let mut failures = Vec::new();
    let of_both = |golden: &Golden| matches!(golden.name.as_str(), "expressions" | "conditions");
    for golden in of_kind("templates").into_iter().filter(of_both) {
        for case in &golden.cases {
            let template = text(case, "template");
            let expected = case.get("in_2_16").unwrap_or(case);
            // what 2.16 refuses may be accepted
            let Some(expected) = expected.get("value") else { continue };
            if OLD_OURS.iter().any(|(ours, _)| template.starts_with(ours)) {
                continue;
            }
            // there are no tuples
            let as_lists = |json: Json| json.to_string().replace(",)", "]").replace('(', "[").replace(')', "]");
            let context = context(&golden.head["vars"], &case["vars"]).with_results(Results::Text);
            let result = context.value(&Value::written(template));
            let got = result.as_ref().ok().map(|value| as_lists(portable(value.to_json())));
            if got != Some(as_lists(expected.clone())) {
                let got = result.map(|value| (type_of(&value), portable(value.to_json()).to_string()));
                failures.push(format!("{}: {template:?}\n  expected: {expected}\n  got:      {got:?}", golden.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn conditions_hold_where_ansible_holds_them() {
    let mut failures = Vec::new();
    for golden in of_kind("conditions") {
        for case in &golden.cases {
            let context = context(&golden.head["vars"], &case["vars"]);
            let result = context.condition(&written(&case["when"]));
            let warned = !context.warnings.take().is_empty();
            // what 2.19 newly refuses is held as in 2.16, with a warning
            let refused = case.get("error").is_some() && case.get("in_2_16").is_some();
            let expected = if refused { &case["in_2_16"] } else { case };
            let same = match (&result, expected.get("error"), case.get("ours")) {
                (Ok(holds), None, None) => Json::Bool(*holds) == expected["value"] && (warned || !refused),
                (Ok(holds), _, Some(ours)) => Json::Bool(*holds) == ours["value"],
                // the words of the parser are not Jinja's
                (Err(error), Some(_), None) if *error.kind() == TemplateErrorKind::Syntax => {
                    text(case, "error").contains("Syntax")
                }
                (Err(error), Some(_), None) => similar(error.message(), text(expected, "message")),
                (Err(error), _, Some(ours)) => error.message().contains(text(ours, "error")),
                _ => false,
            };
            if !same {
                failures.push(format!("{case}\n  got: {result:?}, warned: {warned}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_environment_is_looked_up() {
    // a test cannot set its environment; `PATH` is always there
    let found = context(&Json::Null, &Json::Null).value(&Value::written("{{ lookup('env', 'PATH') }}")).unwrap();
    assert_eq!(found.as_str(), std::env::var("PATH").ok().as_deref());
}

#[test]
fn queries_find_what_jmespath_finds() {
    let mut failures = Vec::new();
    for golden in of_kind("queries") {
        let variables = serde_json::json!({ "data": golden.head["data"] });
        for case in &golden.cases {
            let query = serde_json::json!({ "query": case["query"] });
            let result = context(&variables, &query).expression("data | json_query(query)");
            let same = match (&result, case.get("error")) {
                (Ok(value), None) => value.to_json() == case["value"],
                (Err(_), Some(_)) => true,
                _ => false,
            };
            if !same {
                failures.push(format!("{case}\n  got: {result:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
