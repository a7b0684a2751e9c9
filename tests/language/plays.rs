//! Whole runs of `plays/NAME`, result for result as ansible-playbook has them (`goldens/plays/NAME.json`).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::goldens::{Golden, of_kind, text};

/// Results in their order, by the number of the play (each batch is one) and the host.
type Results = BTreeMap<(String, String), Vec<Json>>;

/// All keys that the recording has must be the same.
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
                return Err(format!("{} instead of {}", json!(actual), json!(expected)));
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

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn expected(golden: &Golden) -> Results {
    let mut results = Results::new();
    for case in golden.cases.iter().filter(|case| case.get("only_in").is_none()) {
        let play = case["play"].as_str().map_or_else(|| case["play"].to_string(), str::to_owned);
        results.entry((play, text(case, "host").to_owned())).or_default().push(case.clone());
    }
    results
}

fn status(event: &Json) -> &str {
    match text(event, "status") {
        "changed" => "ok",
        "failed" if event["ignored"] == true => "ignored",
        other => other,
    }
}

/// The results that a run told as JSON lines.
fn actual(told: &str, code: Option<i32>) -> Results {
    let events: Vec<Json> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |event: &Json| event["play"].as_u64().unwrap();
    let mut batches = Vec::new();
    let mut results: Vec<&Json> = Vec::new();
    let mut items = BTreeMap::new();
    let mut found = Results::new();
    for event in &events {
        match text(event, "event") {
            "batch_started" => batches.push((number(event), event["batch"].as_u64())),
            "no_hosts" => batches.push((number(event), None)),
            "result" if event["task"]["action"] == "meta" => {}
            // of a loop its end counts, which has the results of all items (but those of debug)
            "result" if event.get("item").is_some() => {
                let at = (number(event), event["batch"].as_u64(), event["position"].to_string(), text(event, "host"));
                items.entry(at).or_insert_with(Vec::new).push(event["result"].clone());
            }
            "result" => results.push(event),
            "ended" => {
                for (host, counts) in event["stats"].as_object().unwrap() {
                    let recap = json!({"task": "recap", "status": "", "result": counts});
                    found.insert(("end".into(), host.clone()), vec![recap]);
                }
            }
            _ => {}
        }
    }
    // each host tells its own in their order
    for event in results {
        let batch = batches.iter().position(|batch| *batch == (number(event), event["batch"].as_u64())).unwrap();
        let mut result = event["result"].clone();
        let at = (number(event), event["batch"].as_u64(), event["position"].to_string(), text(event, "host"));
        if event["task"]["action"] == "debug"
            && let Some(items) = items.remove(&at)
        {
            result["results"] = items.into();
        }
        let case = json!({"task": event["task"]["name"], "status": status(event), "result": result});
        found.entry((batch.to_string(), text(event, "host").to_owned())).or_default().push(case);
    }
    let code = json!({"task": "exit code", "status": "", "result": {"code": code}});
    found.insert(("end".into(), String::new()), vec![code]);
    found
}

/// What of a case is not as recorded.
fn different(expected: &Json, found: &Json, directory: &str) -> Option<String> {
    if expected["task"] != found["task"] {
        return Some(format!("`{}` ran instead", text(found, "task")));
    }
    let ours = expected.get("ours").unwrap_or(&Json::Null);
    let status = ours.get("status").unwrap_or(&expected["status"]);
    if *status != found["status"] {
        return Some(format!("{} instead of {status}: {}", found["status"], found["result"]));
    }
    // on purpose another result: its parts that count are named, or none
    let result = if ours.is_null() { Some(&expected["result"]) } else { ours.get("result") };
    result.and_then(|result| compare(result, &found["result"], directory).err())
}

#[test]
fn plays_come_out_as_in_ansible() {
    let plays = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/plays");
    let mut wrong = Vec::new();
    for golden in of_kind("plays") {
        let expected = expected(&golden);
        for window in ["256", "1"] {
            let scratch = tempfile::tempdir().unwrap();
            let directory = scratch.path().canonicalize().unwrap().join("plays");
            copy(&plays.join(&golden.name), &directory);
            let arguments = std::fs::read_to_string(directory.join("arguments")).unwrap();
            let run = Command::new(env!("CARGO_BIN_EXE_trimtab"))
                .args(["play", "--output", "jsonl", "-vvv"])
                .args(arguments.lines())
                .current_dir(&directory)
                .env("ANSIBLE_CONFIG", plays.join("../oracle/ansible.cfg"))
                .env("HOME", scratch.path())
                .env("TRIMTAB_WINDOW", window)
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let actual = actual(&String::from_utf8_lossy(&run.stdout), run.status.code());
            let directory = directory.to_str().unwrap();
            let mut tell = |(play, host): &(String, String), task: &str, what: String| {
                wrong.push(format!("{} window {window}, play {play}, `{task}` on {host}: {what}", golden.name));
            };
            for (at, cases) in &expected {
                let found = actual.get(at).map(Vec::as_slice).unwrap_or_default();
                for (number, case) in cases.iter().enumerate() {
                    let what = match found.get(number) {
                        None => Some("no result".to_owned()),
                        Some(found) => different(case, found, directory),
                    };
                    what.into_iter().for_each(|what| tell(at, text(case, "task"), what));
                }
            }
            for (at, found) in &actual {
                for case in found.iter().skip(expected.get(at).map_or(0, Vec::len)) {
                    tell(at, text(case, "task"), "a result that is not expected".to_owned());
                }
            }
            if !run.stderr.is_empty() && !wrong.is_empty() {
                wrong.push(String::from_utf8_lossy(&run.stderr).into_owned());
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
