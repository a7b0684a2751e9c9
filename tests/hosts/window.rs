//! Reading ahead changes nothing but the time: over generated playbooks, a window of one and the full window
//! leave the same files behind and report the same results, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::generated::{playbook, tasks, tree};

/// Runs a playbook twice in a row in a fresh directory; the results with the directory's name and times taken out.
fn run(playbook: &str, hosts: &[&str], window: &str) -> (BTreeMap<String, String>, String) {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    for host in hosts {
        fs::create_dir_all(root.join(host)).unwrap();
    }
    let file = scratch.path().join("play.yml");
    fs::write(&file, playbook).unwrap();
    let mut results = String::new();
    for _ in 0..2 {
        let output = Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(["play", "--output", "json", "-i", &format!("{},", hosts.join(",")), "-c", "local"])
            .arg("-e")
            .arg(format!("base={}", root.display()))
            .arg(&file)
            .env("TRIMTAB_WINDOW", window)
            .env("ANSIBLE_CONFIG", "/dev/null")
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        let json: serde_json::Value = serde_json::from_str(&stdout)
            .unwrap_or_else(|error| panic!("{error}: {stdout}\n{}", String::from_utf8_lossy(&output.stderr)));
        let mut json = json;
        strip_times(&mut json);
        let _ = writeln!(results, "exit {:?}\n{json:#}", output.status.code());
    }
    (tree(&root), results.replace(scratch.path().to_str().unwrap(), "SCRATCH"))
}

/// Takes out what differs from run to run by nature: times, inodes, process numbers, ids.
fn strip_times(json: &mut serde_json::Value) {
    const BY_NATURE: [&str; 13] = [
        "start",
        "end",
        "delta",
        "duration",
        "id",
        "atime",
        "mtime",
        "ctime",
        "inode",
        "dev",
        "version",
        "attributes",
        "nlink",
    ];
    match json {
        serde_json::Value::Object(map) => {
            for name in BY_NATURE {
                map.remove(name);
            }
            // hosts answer in any order
            map.sort_keys();
            map.values_mut().for_each(strip_times);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(strip_times),
        _ => {}
    }
}

/// The number of playbooks; more by `TRIMTAB_CASES`.
fn cases() -> u32 {
    std::env::var("TRIMTAB_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(48)
}

/// Holds a window of one and the full window to the same over generated playbooks.
fn both_windows_agree(hosts: &[&str], cases: u32) {
    let config = Config { cases, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&tasks(1..14), |tasks| {
        let playbook = playbook(&tasks);
        let (files_one, results_one) = run(&playbook, hosts, "1");
        let (files_full, results_full) = run(&playbook, hosts, "256");
        prop_assert_eq!(&files_one, &files_full, "files differ after\n{}", playbook);
        if results_one != results_full {
            let difference = similar::TextDiff::from_lines(&results_one, &results_full);
            return Err(TestCaseError::fail(format!("results differ:\n{}\nof\n{playbook}", difference.unified_diff())));
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn a_window_of_one_and_the_full_window_do_the_same() {
    both_windows_agree(&["one"], cases());
}

#[test]
fn they_do_the_same_on_hosts_that_wait_for_one_another() {
    both_windows_agree(&["one", "two", "three"], cases() / 3);
}
