//! YAML as Ansible loads it and as PyYAML writes it.

use serde_json::Value as Json;
use trimtab::source::Source;
use trimtab::value::Value;
use trimtab::yaml::{self, EmitOptions};

use crate::goldens::of_kind;

/// The recorded loader returned keys as Python's `str()` of them, dates as a pair of type and text.
fn as_recorded(value: &Value) -> Json {
    match value {
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.to_text().into_owned(), as_recorded(value))).collect())
        }
        Value::List(items) => Json::Array(items.iter().map(as_recorded).collect()),
        other => other.to_json(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value.type_name() {
        "NoneType" => "null",
        name => name,
    }
}

#[test]
fn documents_load_as_in_ansible() {
    for case in of_kind("documents").iter().flat_map(|golden| &golden.cases) {
        let text = case["yaml"].as_str().unwrap();
        let loaded = yaml::load(&Source::new("case.yml", format!("{text}\n")));
        if let Some(message) = case["message"].as_str() {
            if text.contains("!vault") {
                // without a password Ansible fails when it loads, we when the value is used
                let value = loaded.unwrap().unwrap().to_value();
                assert!(matches!(value.get("a"), Some(Value::Str(text)) if text.sealed_at().is_some()));
                continue;
            }
            let error = loaded.expect_err(text);
            let words = message.trim_start_matches("YAML parsing failed: ").trim_end_matches('.').to_lowercase();
            let ours = error.message().replace('`', "'");
            let known = [
                // we say what the key is and what is probably meant
                ("while constructing a mapping found unhashable key", "a mapping as a key of a mapping"),
                ("could not determine a constructor for the tag 'tag:yaml.org,2002:value'", "cannot be a value"),
            ];
            let expected = known.iter().find(|(theirs, _)| *theirs == words).map_or(words.as_str(), |(_, ours)| ours);
            assert!(ours.contains(expected), "{text}: {ours}");
            assert!(!error.places().is_empty(), "{text}");
            continue;
        }
        let value = loaded.unwrap_or_else(|error| panic!("{text}: {error}")).unwrap().to_value();
        if case["value"]["a"]["__type__"] == "date" {
            assert_eq!(value.get("a").unwrap().to_text(), case["value"]["a"]["__str__"].as_str().unwrap());
            continue;
        }
        assert_eq!(as_recorded(&value), case["value"], "{text}");
        let Some(types) = case["type"].as_object() else { continue };
        for (key, value) in value.as_map().unwrap() {
            assert_eq!(type_of(value), types[key.to_text().as_ref()], "{text}");
        }
    }
}

#[test]
fn values_are_written_as_pyyaml_writes_them() {
    for case in of_kind("dumps").iter().flat_map(|golden| &golden.cases) {
        let text = case["yaml"].as_str().unwrap();
        let value = yaml::load(&Source::new("case.yml", text)).unwrap().map_or(Value::Null, |node| node.to_value());
        let wanted = &case["options"];
        let int = |name: &str| wanted[name].as_i64().map(|number| number as i32);
        let flag = |name: &str, default: bool| wanted[name].as_bool().unwrap_or(default);
        let options = EmitOptions {
            indent: int("indent"),
            width: int("width"),
            default_flow_style: wanted["default_flow_style"].as_bool(),
            default_style: wanted["default_style"].as_str().and_then(|style| style.chars().next()),
            sort_keys: flag("sort_keys", true),
            allow_unicode: flag("allow_unicode", true),
            explicit_start: flag("explicit_start", false),
            explicit_end: flag("explicit_end", false),
            canonical: flag("canonical", false),
        };
        // aliases of the source are copies here, so the sharing that PyYAML shows is written out
        if text.contains('*') && case["out"].as_str().unwrap().contains("&id001") {
            continue;
        }
        assert_eq!(yaml::emit(&value, &options), case["out"].as_str().unwrap(), "{text} with {wanted}");
    }
}
