//! Six plays that real ansible-core ran, result for result (`goldens/play_flow.json`).

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value as Json, json};
use trimtab::engine::options::Options;
use trimtab::engine::result::Status;
use trimtab::value::object;

use crate::support::{Playing, Told};

/// Results that differ for a reason: play, task, what is different.
const DIFFERENT: &[(&str, &str, &str)] =
    &[("flow", "ignored", "the message names the command that was not found, and why it could not be run")];

/// What a result must agree in: all keys that the recording has.
fn compare(expected: &Json, actual: &Json, directory: &str) -> Result<(), String> {
    match (expected, actual) {
        (Json::Object(expected), Json::Object(actual)) => {
            for (key, value) in expected {
                let found = actual.get(key).ok_or_else(|| format!("`{key}` is missing"))?;
                compare(value, found, directory).map_err(|error| format!("{key}: {error}"))?;
            }
            Ok(())
        }
        (Json::Array(expected), Json::Array(actual)) => {
            if expected.len() != actual.len() {
                return Err(format!("{} items instead of {}", actual.len(), expected.len()));
            }
            expected.iter().zip(actual).try_for_each(|(expected, actual)| compare(expected, actual, directory))
        }
        (Json::String(expected), Json::String(actual)) => {
            let expected = expected.replace("@PLAYBOOK_DIR@", directory);
            if expected == *actual { Ok(()) } else { Err(format!("`{actual}` instead of `{expected}`")) }
        }
        (expected, actual) if expected == actual => Ok(()),
        (expected, actual) => Err(format!("{actual} instead of {expected}")),
    }
}

/// The results by play, task and host, each a list: a task may run twice.
type Results = BTreeMap<(usize, String, String), Vec<Json>>;

fn expected(golden: &Json) -> Results {
    let mut results = Results::new();
    let plays = golden["expect_2_19"].as_array().unwrap().iter().filter(|play| play.get("play").is_some());
    for (number, play) in plays.enumerate() {
        for (task, hosts) in play["hosts"].as_object().unwrap() {
            for (host, entries) in hosts.as_object().unwrap() {
                // retries are told as results of their own there
                let entries = entries.as_array().unwrap().iter().filter(|entry| entry["status"] != "retry");
                results.insert((number, task.clone(), host.clone()), entries.cloned().collect());
            }
        }
    }
    results
}

fn actual(told: &Told) -> Results {
    let mut results = Results::new();
    let mut plays: Vec<(u32, u32)> =
        told.results().iter().map(|result| (result.stamp.play, result.stamp.batch)).collect();
    plays.dedup();
    for result in told.results() {
        if result.item.is_some() || result.task.action == "meta" {
            continue;
        }
        let status = match result.result.status {
            Status::Ok | Status::Changed => "ok",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Unreachable => "unreachable",
            Status::Unknown => "unknown",
        };
        let map = trimtab::value::Value::map(trimtab::value::Map::clone(&result.result.result)).to_json();
        let map = if result.no_log {
            json!({"censored": "the output has been hidden due to the fact that 'no_log: true' was specified for this result", "changed": map["changed"]})
        } else {
            map
        };
        let number = plays.iter().position(|play| *play == (result.stamp.play, result.stamp.batch)).unwrap();
        let mut entry = json!({"status": status, "res": map});
        if status == "failed" {
            entry["ignored"] = json!(result.result.ignored);
        }
        results.entry((number, result.task.name.clone(), result.host.to_string())).or_default().push(entry);
    }
    results
}

#[test]
fn the_recorded_plays_come_out_as_recorded() {
    let golden: Json = serde_json::from_str(include_str!("goldens/play_flow.json")).unwrap();
    for window in [256, 1] {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_str().unwrap();
        for (name, text) in golden["input_files"].as_object().unwrap() {
            let path = scratch.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.as_str().unwrap().replace("@PLAYBOOK_DIR@", directory)).unwrap();
        }
        let inventory = scratch.path().join("inv.ini");
        let told = Playing {
            directory: scratch.path(),
            playbook: "main.yml",
            inventory: inventory.to_str().unwrap(),
            extra: object([("p_extra", "cli".into())]),
            options: Options { window, ..Options::default() },
        }
        .run();
        let (expected, actual) = (expected(&golden), actual(&told));
        let mut wrong = Vec::new();
        for (key, entries) in &expected {
            let (play, task, host) = key;
            if DIFFERENT.iter().any(|(_, different, _reason)| different == task) || task == "end n2" {
                continue;
            }
            match actual.get(key) {
                None => wrong.push(format!("play {play} `{task}` on {host}: no result")),
                Some(found) => {
                    let result = compare(&json!(entries), &json!(found), directory);
                    wrong.extend(result.err().map(|error| format!("play {play} `{task}` on {host}: {error}")));
                }
            }
        }
        for (play, task, host) in actual.keys().filter(|key| !expected.contains_key(*key)) {
            wrong.push(format!("play {play} `{task}` on {host}: a result that is not expected"));
        }
        assert!(wrong.is_empty(), "window {window}:\n{}", wrong.join("\n"));
    }
}
