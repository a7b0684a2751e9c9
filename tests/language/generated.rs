//! Generated texts, as ansible-core and PyYAML read and write them. A case without a result is an error there.

use serde_json::{Value as Json, json};
use trimtab::inventory::{HostId, Inventory, load};
use trimtab::playbook::free_form::parse_key_values;
use trimtab::source::Source;
use trimtab::value::{Value, float_repr};
use trimtab::yaml::{self, EmitOptions};

use crate::goldens::of_kind;

/// Values as they were recorded: maps as pairs, numbers as their text in Python.
fn as_recorded(value: &Value) -> Json {
    match value {
        Value::Map(map) => {
            let pairs: Vec<Json> =
                map.iter().map(|(key, value)| json!([as_recorded(key), as_recorded(value)])).collect();
            json!({ "D": pairs })
        }
        Value::List(items) => items.iter().map(as_recorded).collect::<Vec<_>>().into(),
        Value::Float(number) => json!({ "F": float_repr(*number) }),
        Value::Int(_) | Value::Big(_) => json!({ "I": value.to_text() }),
        other => other.to_json(),
    }
}

fn written(case: &Json) -> String {
    let options = &case["options"];
    let int = |name: &str| options[name].as_i64().map(|number| number as i32);
    let flag = |name: &str| options[name].as_bool().unwrap_or_default();
    let options = EmitOptions {
        indent: int("indent"),
        width: int("width"),
        default_flow_style: options["default_flow_style"].as_bool(),
        default_style: options["default_style"].as_str().and_then(|style| style.chars().next()),
        sort_keys: flag("sort_keys"),
        allow_unicode: flag("allow_unicode"),
        explicit_start: flag("explicit_start"),
        explicit_end: false,
        canonical: false,
    };
    yaml::emit(&Value::from_json(&case["value"]), &options)
}

#[test]
fn texts_read_and_write_as_in_python() {
    for case in of_kind("generated").iter().flat_map(|golden| &golden.cases) {
        let text = case["text"].as_str().unwrap_or_default();
        let ours = match case["kind"].as_str().unwrap() {
            "yaml" => yaml::load(&Source::new("case.yml", text))
                .map(|root| root.map_or(Json::Null, |root| as_recorded(&root.to_value()))),
            "kv" => parse_key_values(text, case["check_raw"].as_bool().unwrap())
                .map(|arguments| as_recorded(&Value::map(arguments))),
            _ => Ok(written(case).into()),
        };
        match case.get("result") {
            Some(expected) => assert_eq!(ours.as_ref().ok(), Some(expected), "{case}: {ours:?}"),
            None => assert!(ours.is_err(), "{case}: {ours:?}"),
        }
    }
}

fn names(inventory: &Inventory, hosts: &[HostId]) -> Json {
    let mut names: Vec<String> = hosts.iter().map(|host| inventory.host(*host).name.to_string()).collect();
    names.sort();
    names.into()
}

#[test]
fn inventories_read_as_in_ansible() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("h.ini");
    for case in of_kind("generated_inventories").iter().flat_map(|golden| &golden.cases) {
        let text = case["text"].as_str().unwrap();
        std::fs::write(&file, text).unwrap();
        let loaded = load(&[file.to_str().unwrap()]);
        let Some(groups) = case["groups"].as_object() else {
            assert!(loaded.is_err(), "{text}");
            continue;
        };
        let inventory = loaded.unwrap();
        for (name, hosts) in groups {
            let group = inventory.find_group(name).unwrap();
            assert_eq!(names(&inventory, &inventory.group_hosts(group)), *hosts, "{name} of\n{text}");
        }
        for (name, expected) in case["vars"].as_object().unwrap() {
            let host = inventory.find_host(name).unwrap();
            let mut ours: serde_json::Map<String, Json> = ["v", "w", "p", "ansible_port"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), inventory.host_var(host, name).unwrap()?.to_json())))
                .collect();
            let groups: Vec<String> = inventory.group_names(host).iter().map(ToString::to_string).collect();
            ours.insert("group_names".to_owned(), groups.into());
            assert_eq!(Json::Object(ours), *expected, "{name} of\n{text}");
        }
        for (pattern, expected) in case["patterns"].as_object().unwrap() {
            // of an index only the number of hosts was kept
            let ours = match inventory.select(&[pattern]) {
                Err(_) => Json::Null,
                Ok(selection) if expected.is_number() => selection.hosts.len().into(),
                Ok(selection) => names(&inventory, &selection.hosts),
            };
            assert_eq!(ours, *expected, "{pattern} of\n{text}");
        }
    }
}
