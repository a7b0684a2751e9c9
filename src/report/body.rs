//! The JSON of a result, as reports show it.

use serde_json::Value as Json;

use crate::engine::event::HostResult;
use crate::engine::result::Status;
use crate::value::{Map, Value};

/// What stands for a result that must not be shown.
pub const CENSORED: &str =
    "the output has been hidden due to the fact that 'no_log: true' was specified for this result";

/// The values of a result that may be shown; `failed` and `skipped` are said by the line itself.
pub fn shown(event: &HostResult, verbosity: u8) -> Map {
    let result = &event.result.result;
    if event.no_log {
        let kept = ["attempts", "changed", "retries"];
        let mut map: Map = result.iter().filter(|(key, _)| is_one_of(key, &kept)).map(cloned).collect();
        map.insert("censored".into(), CENSORED.into());
        return map;
    }
    let hidden: &[&str] = if verbosity < 3 { &["invocation", "diff"] } else { &[] };
    let mut map: Map = result
        .iter()
        .filter(|(key, _)| !is_one_of(key, hidden) && !is_one_of(key, &["failed", "skipped", "exception", "warnings"]))
        .filter(|(key, _)| key.as_str().is_none_or(|key| !key.starts_with("_ansible_")))
        .map(cloned)
        .collect();
    if event.task.action == "debug" {
        if map.contains_key("msg") {
            map.retain(|key, _| is_one_of(key, &["msg"]));
        } else {
            map.retain(|key, _| !is_one_of(key, &["changed", "skip_reason"]));
        }
    }
    map
}

fn is_one_of(key: &Value, names: &[&str]) -> bool {
    key.as_str().is_some_and(|key| names.contains(&key))
}

fn cloned((key, value): (&Value, &Value)) -> (Value, Value) {
    (key.clone(), value.clone())
}

/// True if a result says of itself that it is to be shown whole.
pub fn is_always_shown(event: &HostResult) -> bool {
    // a debug that failed has only its message to say
    let failed_by_itself =
        event.result.status == Status::Failed && !event.result.result.contains_key("failed_when_result");
    let is_debug = event.task.action == "debug" && !failed_by_itself;
    is_debug || flag(event, "_ansible_verbose_always")
}

/// True if a result says of itself that it is too long to be shown at `-v` (facts).
pub fn is_never_shown(event: &HostResult) -> bool {
    flag(event, "_ansible_verbose_override") || matches!(event.task.action.as_str(), "setup" | "gather_facts")
}

fn flag(event: &HostResult, name: &str) -> bool {
    event.result.result.get(name).is_some_and(Value::is_truthy)
}

/// JSON on one line, keys sorted, apart as Python's json module sets them.
pub fn inline(value: &Value) -> String {
    let mut text = String::new();
    write_inline(&value.to_json(), &mut text);
    text
}

/// JSON with an indent of four, keys sorted.
pub fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write_pretty_value(value, 0, &mut text);
    text
}

/// Appends the same, as it stands within `depth` brackets.
pub fn write_pretty_value(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::List(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                open_line(depth + 1, text);
                write_pretty_value(item, depth + 1, text);
            }
            open_line(depth, text);
            text.push(']');
        }
        Value::Map(map) if !map.is_empty() => {
            let mut entries: Vec<_> = map.iter().map(|(key, item)| (key.to_json_key(), item)).collect();
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            text.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                open_line(depth + 1, text);
                text.push_str(&Json::from(key).to_string());
                text.push_str(": ");
                write_pretty_value(item, depth + 1, text);
            }
            open_line(depth, text);
            text.push('}');
        }
        Value::Object(object) => write_pretty_value(&Value::map(object.to_map()), depth, text),
        other => text.push_str(&other.to_json().to_string()),
    }
}

/// Begins a line within `depth` brackets.
pub fn open_line(depth: usize, text: &mut String) {
    text.push('\n');
    for _ in 0..depth {
        text.push_str("    ");
    }
}

/// JSON with an indent of four, keys sorted.
pub fn pretty_sorted(value: &Json) -> String {
    let mut text = String::new();
    write_pretty(value, 0, true, &mut text);
    text
}

/// JSON with an indent of four, in the order it has.
pub fn pretty_json(value: &Json) -> String {
    let mut text = String::new();
    write_pretty(value, 0, false, &mut text);
    text
}

fn sorted(map: &serde_json::Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    entries
}

fn write_inline(value: &Json, text: &mut String) {
    match value {
        Json::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                write_inline(item, text);
            }
            text.push(']');
        }
        Json::Object(map) => {
            text.push('{');
            for (index, (key, item)) in sorted(map).into_iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&Json::from(key.as_str()).to_string());
                text.push_str(": ");
                write_inline(item, text);
            }
            text.push('}');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

fn write_pretty(value: &Json, depth: usize, sort: bool, text: &mut String) {
    match value {
        Json::Array(items) if !items.is_empty() => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                open_line(depth + 1, text);
                write_pretty(item, depth + 1, sort, text);
            }
            open_line(depth, text);
            text.push(']');
        }
        Json::Object(map) if !map.is_empty() => {
            let entries = if sort { sorted(map) } else { map.iter().collect() };
            text.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                open_line(depth + 1, text);
                text.push_str(&Json::from(key.as_str()).to_string());
                text.push_str(": ");
                write_pretty(item, depth + 1, sort, text);
            }
            open_line(depth, text);
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn json_is_set_as_python_sets_it() {
        let value = Value::map(object([
            ("b", Value::list(vec![1.into(), Value::Null, "ä\"\n".into()])),
            ("a", Value::empty_map()),
            ("c", Value::list(Vec::new())),
        ]));
        assert_eq!(inline(&value), r#"{"a": {}, "b": [1, null, "ä\"\n"], "c": []}"#);
        let expected = "{\n    \"a\": {},\n    \"b\": [\n        1,\n        null,\n        \"ä\\\"\\n\"\n    ],\n    \"c\": []\n}";
        assert_eq!(pretty(&value), expected);
    }
}
