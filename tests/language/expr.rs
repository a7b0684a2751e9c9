//! Templates and conditions against what ansible-core 2.19 and 2.16 gave for them.
//!
//! Where the two differ, types are those of 2.19, and what 2.19 newly refuses is accepted as in 2.16.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;
use trimtab::template::{Context, Results, Scope, SearchPath, TemplateErrorKind, Warnings};
use trimtab::value::{Interruption, Map, Value};

/// Variables of a test.
pub struct Variables(pub Map);

impl Scope for Variables {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        Ok(self.0.get(name).cloned())
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().map(|key| key.to_text().into_owned()).collect()
    }
}

/// JSON with every text as a user would have written it.
pub fn written(json: &Json) -> Value {
    match json {
        Json::String(text) => Value::written(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(written).collect()),
        Json::Object(map) => {
            Value::map(map.iter().map(|(key, value)| (Value::from(key.as_str()), written(value))).collect())
        }
        other => Value::from_json(other),
    }
}

pub fn context(variables: &Json) -> Context {
    let mut map = written(variables).as_map().cloned().unwrap_or_default();
    map.insert("omit".into(), "__omit_place_holder__".into());
    let search = SearchPath { playbook_dir: PathBuf::from("/"), ..SearchPath::default() };
    Context::new(Arc::new(Variables(map)), Arc::new(search), Warnings::default())
}

fn golden(name: &str) -> Json {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/language/goldens").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).expect("golden file")).expect("golden JSON")
}

/// Where neither version's answer is ours: the case, our answer, why.
const OURS: &[(&str, &str, &str)] = &[
    ("inline-if-noelse", "\"\"", "2.19 refuses; as text as 2.16 gives it"),
    ("to-datetime", "\"1 day, 0:00:00\"", "2.19 refuses to store a timedelta; as text as 2.16 gives it"),
];

/// Words that stand in our message as in Ansible's, so that it can be searched for.
fn searchable(message: &str) -> String {
    let message = message.rsplit(": ").next().unwrap_or(message);
    message.replace("_AnsibleTaggedStr", "str").trim_end_matches('.').to_lowercase()
}

#[test]
fn templates_give_what_ansible_gives() {
    let expr = golden("expr.json");
    let context = context(&expr["vars"]);
    let ours: HashMap<&str, &str> = OURS.iter().map(|(id, value, _)| (*id, *value)).collect();
    let mut failures = Vec::new();
    let mut count = 0;
    for case in expr["cases"].as_array().expect("cases") {
        count += 1;
        let id = case["id"].as_str().expect("id");
        let template = case["template"].as_str().expect("template");
        let result = context.value(&Value::written(template));
        if id == "lookup-env" {
            // a test cannot set its environment; `PATH` is always there
            let path = context.value(&Value::written(template.replace("GOLDEN_ENV", "PATH"))).ok();
            assert_eq!(path, std::env::var("PATH").ok().map(Value::from));
            continue;
        }
        if let Some(expected) = ours.get(id) {
            let got = result.map(|value| value.to_json().to_string());
            if got.as_deref().ok() != Some(expected) {
                failures.push(format!("{id}: {template}\n  ours: {expected}\n  got: {got:?}"));
            }
            continue;
        }
        let expected = if case["agree"] == Json::Bool(true) { &case["expect"] } else { &case["expect_2_19"] };
        let same = match (&result, expected.get("error")) {
            (Ok(value), None) => value.to_json() == expected["value"] && type_matches(value, &expected["type"]),
            (Err(error), Some(kind)) => {
                let message = searchable(expected["msg"].as_str().unwrap_or_default());
                let kind_matches = match kind.as_str() {
                    Some("AnsibleUndefinedVariable") => {
                        matches!(error.kind(), TemplateErrorKind::Undefined { .. })
                    }
                    Some("AnsibleTemplateSyntaxError") => *error.kind() == TemplateErrorKind::Syntax,
                    _ => true,
                };
                // the words of the parser are not Jinja's
                kind_matches && (id == "syntax-err" || error.message().to_lowercase().contains(&message))
            }
            _ => false,
        };
        if !same {
            failures.push(format!("{id}: {template}\n  expected: {expected}\n  got: {result:?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(count >= 144);
}

fn type_matches(value: &Value, name: &Json) -> bool {
    let own = match value {
        Value::Null => "none",
        other => other.type_name(),
    };
    name.as_str() == Some(own)
}

#[test]
fn conditions_hold_where_ansible_holds_them() {
    let conditionals = golden("conditionals.json");
    let context = context(&conditionals["vars"]);
    let mut failures = Vec::new();
    for case in conditionals["cases"].as_array().expect("cases") {
        let id = case["id"].as_str().expect("id");
        let result = context.condition(&written(&case["when"]));
        // 2.19 refuses what is no boolean and what has braces: we warn, and hold it as 2.16 does
        let expected = if case["agree"] == Json::Bool(true) { &case["expect"] } else { &case["expect_2_16"] };
        let warned = !context.warnings.take().is_empty();
        let same = match (&result, expected.get("error")) {
            (Ok(holds), None) => {
                Json::Bool(*holds) == expected["value"] && (warned || case["agree"] == Json::Bool(true))
            }
            (Err(error), Some(_)) => expected["msg"].as_str().is_some_and(|message| message.contains(error.message())),
            _ => false,
        };
        if !same {
            failures
                .push(format!("{id}: {}\n  expected: {expected}\n  got: {result:?}, warned: {warned}", case["when"]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Templates where our answer is not 2.19's, and why.
const BREADTH_OURS: &[(&str, &str, &str)] = &[
    (
        "{{ ['a','A','b'] | unique }} {{ ['a','A','b'] | unique(case_sensitive=true) }} {{ users | unique(attribute='groups') | map(attribute='name') | list }}",
        "['a', 'b'] ['a', 'A', 'b'] ['ann', 'Bob', 'cy']",
        "Python cannot tell lists apart in a set; we can",
    ),
    ("{{ nosuch | type_debug }}", "AnsibleUndefined", "the name before 2.19"),
    (
        "{{ range(3) }} {{ range(1,10,3) | list }} {{ range(5, 0, -2) | list }}x",
        "[0, 1, 2] [1, 4, 7] [5, 3, 1]x",
        "a range is a list",
    ),
    (
        "{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
        "0134",
        "loop controls need a setting in Ansible; they are always on",
    ),
    ("{% do l.append(4) %}x", "x", "`do` needs a setting in Ansible; it is always on"),
    (
        "{{ lookup('dict', m) }} {{ lookup('indexed_items', ['a','b']) }} {{ query('flattened', [1,[2,[3]]]) | default('x') }}",
        "[{'key': 'b', 'value': 2}, {'key': 'a', 'value': 1}] [[0, 'a'], [1, 'b']] [1, 2, 3]",
        "`flattened` comes with the community collection",
    ),
    (
        "{{ users | json_query('[].name') | default('x') }}",
        "[ann,Bob,cy]",
        "`json_query` comes with the community collection",
    ),
];

/// Templates that both refuse, in other words.
const BREADTH_WORDS: &[&str] = &[
    "{{ lookup('file', '/nonexist') }}",
    "{{ lookup('pipe', 'exit 3') }}",
    "{{ 'x' | upper('extra') }}",
    "{{ 'x' | replace(nope=1) }}",
    "{{ -l | first }}",
    "{{ ['a','A','b'] | unique }} {{ ['a','A','b'] | unique(case_sensitive=true) }} {{ users | unique(attribute='groups') | map(attribute='name') | list }}",
];

/// Where `jinja2_native = false` gives something else than Ansible 2.16, with the reason.
const OLD_OURS: &[(&str, &str)] = &[("basename", "there are no tuples"), ("lookup-firstfound-skip", "2.18 skips, too")];

#[test]
fn templates_give_text_where_the_setting_asks_for_it() {
    let expr = golden("expr.json");
    let context = context(&expr["vars"]).with_results(Results::Text);
    let mut failures = Vec::new();
    for case in expr["cases"].as_array().expect("cases") {
        let id = case["id"].as_str().expect("id");
        let template = case["template"].as_str().expect("template");
        if id == "lookup-env" || OLD_OURS.iter().any(|(ours, _)| *ours == id) {
            continue;
        }
        let expected = if case["agree"] == Json::Bool(true) { &case["expect"] } else { &case["expect_2_16"] };
        let result = context.value(&Value::written(template));
        let same = match (&result, expected.get("error")) {
            (Ok(value), None) => value.to_json() == expected["value"],
            (Err(_), Some(_)) => true,
            _ => false,
        };
        if !same {
            failures.push(format!("{id}: {template}\n  expected: {expected}\n  got: {result:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_filter_test_and_statement_gives_what_ansible_gives() {
    let breadth = golden("expr_breadth.json");
    let context = context(&breadth["vars"]);
    let mut failures = Vec::new();
    for case in breadth["cases"].as_array().expect("cases") {
        let template = case["template"].as_str().expect("template");
        let result = context.value(&Value::written(template));
        let ours = BREADTH_OURS.iter().find(|(ours, _, _)| *ours == template);
        let same = match (&result, case.get("error"), ours) {
            (Ok(value), _, Some((_, expected, _))) => {
                value.to_json() == **expected || value.to_json().to_string().replace('"', "") == *expected
            }
            (Ok(value), None, None) => value.to_json() == case["value"],
            (Err(error), Some(_), None) => {
                let expected = searchable(case["message"].as_str().unwrap_or_default());
                BREADTH_WORDS.contains(&template) || error.message().to_lowercase().contains(&expected)
            }
            _ => false,
        };
        if !same {
            let expected = case.get("message").unwrap_or(&case["value"]);
            let got = result.map(|value| value.to_json().to_string());
            failures.push(format!("{template}\n  expected: {expected}\n  got:      {got:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn queries_find_what_jmespath_finds() {
    let queries = golden("jmespath.json");
    let variables = serde_json::json!({ "data": queries["data"] });
    let mut failures = Vec::new();
    for case in queries["cases"].as_array().expect("cases") {
        let query = case["query"].as_str().expect("query");
        let map = [(Value::from("query"), Value::from(query))].into_iter().collect();
        let result = context(&variables).with_variables(map).expression("data | json_query(query)");
        let same = match (&result, case.get("error")) {
            (Ok(value), None) => value.to_json() == case["value"],
            (Err(_), Some(_)) => true,
            _ => false,
        };
        if !same {
            failures.push(format!("{case}\n  got: {result:?}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
