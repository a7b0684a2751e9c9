//! A run that is taken back leaves the very tree that was there before, and a plan that is applied the tree that the run would
//! have left: over generated playbooks, and by examples.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::generated::{Op, Task, playbook, tasks, tree};

/// A directory with a journal of its own, in which trimtab works on local hosts.
struct Project {
    scratch: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { scratch: tempfile::tempdir().unwrap() };
        fs::create_dir(project.path().join(".trimtab")).unwrap();
        fs::create_dir(project.root()).unwrap();
        project
    }

    fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// The tree that hosts work on.
    fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    fn trimtab(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(args)
            .env("ANSIBLE_CONFIG", "/dev/null")
            .env_remove("TRIMTAB_JOURNAL")
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    fn play(&self, text: &str, hosts: &[&str]) -> Output {
        fs::write(self.path().join("play.yml"), text).unwrap();
        let base = format!("base={}", self.root().display());
        self.trimtab(&["play", "-i", &format!("{},", hosts.join(",")), "-c", "local", "-e", &base, "play.yml"])
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.trimtab(&[args, &["--output", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", told(&output)))
    }
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Takes out what cannot be taken back by its nature: commands.
fn without_commands(tasks: &[Task]) -> Vec<Task> {
    let kept = tasks.iter().filter(|task| !matches!(task.op, Op::Append { .. }));
    let kept = kept.map(|task| Task {
        op: match &task.op {
            Op::Nested { body, rescue, always } => Op::Nested {
                body: without_commands(body),
                rescue: without_commands(rescue),
                always: without_commands(always),
            },
            other => other.clone(),
        },
        notify: None,
        ..task.clone()
    });
    let mut kept: Vec<Task> = kept.collect();
    if kept.is_empty() {
        kept.push(Task { op: Op::Touch { file: 0 }, when: None, notify: None });
    }
    kept
}

/// Takes out what fails: where a run goes on after a failure is not part of a plan.
fn without_failures(tasks: &[Task]) -> Vec<Task> {
    let kept = tasks.iter().filter(|task| !matches!(task.op, Op::Fail { .. }));
    let kept = kept.map(|task| Task {
        op: match &task.op {
            Op::Nested { body, rescue, always } => Op::Nested {
                body: without_failures(body),
                rescue: without_failures(rescue),
                always: without_failures(always),
            },
            other => other.clone(),
        },
        ..task.clone()
    });
    let mut kept: Vec<Task> = kept.collect();
    if kept.is_empty() {
        kept.push(Task { op: Op::Touch { file: 0 }, when: None, notify: None });
    }
    kept
}

#[test]
fn a_run_taken_back_leaves_the_tree_that_was_there() {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let config = Config { cases, max_shrink_iters: 100, failure_persistence: None, ..Config::default() };
    let (whole, again) = (Cell::new(0), Cell::new(0));
    let hosts = ["one", "two"];
    let outcome = TestRunner::new(config).run(&(tasks(1..8), tasks(1..12)), |(before, run)| {
        let project = Project::new();
        for host in hosts {
            fs::create_dir(project.root().join(host)).unwrap();
        }
        project.play(&playbook(&before), &hosts);
        let old = tree(&project.root());
        let text = playbook(&without_commands(&run));
        project.play(&text, &hosts);
        let new = tree(&project.root());
        let shown = project.json(&["show", "2"]);
        let changes = shown["change_list"].as_array().unwrap();
        let lasting = changes.iter().any(|change| !change["no_inverse"].is_null() && change["state"] != "not begun");
        let undone = project.trimtab(&["undo", "2"]);
        if lasting {
            prop_assert!(!undone.status.success(), "it says that all was taken back\n{}\n{}", told(&undone), text);
            return Ok(());
        }
        prop_assert_eq!(undone.status.code(), Some(0), "{}\n{}\n{:#}", told(&undone), text, shown);
        prop_assert_eq!(&old, &tree(&project.root()), "not as before\n{}\n{}", text, told(&undone));
        whole.set(whole.get() + 1);
        if changes.iter().any(|change| change["state"] == "made") {
            // and the undo itself can be taken back
            let redone = project.trimtab(&["undo", "last"]);
            prop_assert_eq!(redone.status.code(), Some(0), "{}\n{}", told(&redone), text);
            prop_assert_eq!(&new, &tree(&project.root()), "not as after\n{}\n{}", text, told(&redone));
            again.set(again.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (whole, again) = (whole.get(), again.get());
    assert!(whole * 2 > cases && again * 3 > cases, "too few of {cases} could be taken back: {whole}, {again}");
}

#[test]
fn a_plan_that_is_applied_leaves_what_the_run_leaves() {
    let cases = std::env::var("TRIMTAB_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let config = Config { cases, max_shrink_iters: 100, failure_persistence: None, ..Config::default() };
    let whole = Cell::new(0);
    let outcome = TestRunner::new(config).run(&(tasks(1..6), tasks(1..8)), |(before, run)| {
        let text = playbook(&without_failures(&without_commands(&run)));
        let projects = [Project::new(), Project::new()];
        for project in &projects {
            fs::create_dir(project.root().join("one")).unwrap();
            project.play(&playbook(&before), &["one"]);
        }
        let [planned, played] = &projects;
        let old = tree(&planned.root());
        let played_output = played.play(&text, &["one"]);
        fs::write(planned.path().join("play.yml"), &text).unwrap();
        let base = format!("base={}", planned.root().display());
        let plan = planned.trimtab(&["plan", "-i", "one,", "-c", "local", "-e", &base, "-o", "a.plan", "play.yml"]);
        prop_assert_eq!(&old, &tree(&planned.root()), "a plan changed something\n{}\n{}", text, told(&plan));
        let shown = planned.json(&["show", "a.plan"]);
        if !shown["unplanned"].as_array().unwrap().is_empty() {
            return Ok(());
        }
        let has_changes = !shown["changes"].as_array().unwrap().is_empty();
        prop_assert_eq!(plan.status.code(), Some(if has_changes { 3 } else { 0 }), "{}\n{}", told(&plan), text);
        let applied = planned.trimtab(&["apply", "a.plan"]);
        prop_assert_eq!(applied.status.code(), Some(0), "{}\n{}", told(&applied), text);
        let (expected, found) = (tree(&played.root()), tree(&planned.root()));
        prop_assert_eq!(expected, found, "{}\n{}\n{}", text, told(&applied), told(&played_output));
        let again = planned.trimtab(&["apply", "a.plan"]);
        if has_changes && tree(&planned.root()) != old {
            prop_assert_eq!(again.status.code(), Some(2), "a plan is applied once\n{}\n{}", told(&again), text);
        }
        whole.set(whole.get() + 1);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(whole.get() * 3 > cases, "too few of {cases} could be planned: {}", whole.get());
}

#[test]
fn a_plan_is_refused_by_the_host_that_is_no_longer_as_it_was() {
    let project = Project::new();
    fs::write(project.path().join("play.yml"), PLAY.replace("{{ base }}/", "{{ base }}/{{ inventory_hostname }}-"))
        .unwrap();
    let base = format!("base={}", project.root().display());
    let args = ["plan", "-i", "one,two,", "-c", "local", "-e", &base, "-o", "a.plan", "play.yml"];
    assert_eq!(project.trimtab(&args).status.code(), Some(3));
    let file = project.path().join("a.plan");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    fs::write(project.root().join("two-issue"), "somebody's\n").unwrap();
    let applied = project.trimtab(&["apply", "a.plan"]);
    let text = told(&applied);
    assert!(text.contains("no longer as it was planned") && applied.status.code() == Some(2), "{text}");
    assert_eq!(tree(&project.root()).into_keys().collect::<Vec<_>>(), ["one-issue", "one-motd", "two-issue"], "{text}");
    let undone = project.trimtab(&["undo", "last"]);
    assert!(undone.status.success(), "{}", told(&undone));
    assert_eq!(tree(&project.root()).into_keys().collect::<Vec<_>>(), ["two-issue"]);
}

#[test]
fn a_plan_that_was_altered_or_is_none_is_refused() {
    let project = Project::new();
    fs::write(project.path().join("play.yml"), PLAY).unwrap();
    let base = format!("base={}", project.root().display());
    project.trimtab(&["plan", "-i", "one,", "-c", "local", "-e", &base, "-o", "a.plan", "play.yml"]);
    let text = fs::read_to_string(project.path().join("a.plan")).unwrap();
    let cases = [
        (text.replace("\"host\": \"one\"", "\"host\": \"localhost\""), "sealed with another key, or altered"),
        (text.replace("trimtab plan 1", "trimtab plan 9"), "its format is `trimtab plan 9`"),
        ("[]".to_owned(), "does not say its format"),
        ("{".to_owned(), "is not a plan"),
    ];
    for (text, message) in cases {
        fs::write(project.path().join("b.plan"), text).unwrap();
        let refused = project.trimtab(&["apply", "b.plan"]);
        assert!(!refused.status.success() && told(&refused).contains(message), "{message}: {}", told(&refused));
        assert_eq!(tree(&project.root()).len(), 0);
    }
}

const PLAY: &str = "
- hosts: all
  gather_facts: false
  tasks:
    - name: motd
      copy: {dest: '{{ base }}/motd', content: \"new\\n\", mode: '0640'}
    - name: issue
      copy: {dest: '{{ base }}/issue', content: \"new\\n\"}
";

#[test]
fn what_somebody_changed_since_is_left_alone_unless_forced() {
    let project = Project::new();
    let (motd, issue) = (project.root().join("motd"), project.root().join("issue"));
    fs::write(&motd, "old\n").unwrap();
    assert!(project.play(PLAY, &["one"]).status.success());
    fs::write(&motd, "somebody's\n").unwrap();
    let undone = project.trimtab(&["undo", "last"]);
    let text = told(&undone);
    assert_eq!(undone.status.code(), Some(2), "{text}");
    assert!(text.contains("somebody has changed it since: attributes of"), "{text}");
    assert_eq!((fs::read_to_string(&motd).unwrap().as_str(), issue.exists()), ("somebody's\n", false), "{text}");
    let forced = project.trimtab(&["undo", "1", "--force"]);
    assert!(forced.status.success(), "{}", told(&forced));
    assert_eq!(fs::read_to_string(&motd).unwrap(), "old\n");
}

#[test]
fn an_undo_in_check_mode_says_what_it_would_do_and_does_nothing() {
    let project = Project::new();
    assert!(project.play(PLAY, &["one"]).status.success());
    let checked = project.trimtab(&["undo", "last", "--check", "--diff"]);
    let text = told(&checked);
    assert!(checked.status.success() && text.contains("-new") && text.contains("changed=2"), "{text}");
    assert!(project.root().join("motd").exists());
    assert_eq!(project.json(&["history"]).as_array().unwrap().len(), 1, "a check is no run that changed something");
}

#[test]
fn an_undo_can_be_of_some_hosts_and_tasks() {
    let project = Project::new();
    let play = PLAY.replace("{{ base }}/", "{{ base }}/{{ inventory_hostname }}-");
    assert!(project.play(&play, &["one", "two"]).status.success());
    let left = || {
        let names = tree(&project.root()).into_keys();
        names.collect::<Vec<String>>().join(" ")
    };
    assert!(project.trimtab(&["undo", "last", "--limit", "one", "--task", "motd"]).status.success());
    assert_eq!(left(), "one-issue two-issue two-motd");
    assert!(project.trimtab(&["undo", "1"]).status.success());
    assert_eq!(left(), "");
    let nothing = project.trimtab(&["undo", "1"]);
    assert!(nothing.status.success() && told(&nothing).contains("taken back already"), "{}", told(&nothing));
}

#[test]
fn history_tells_who_changed_what_when_and_from_what() {
    let project = Project::new();
    project.play(PLAY, &["one"]);
    project.play(&PLAY.replace("new", "newer"), &["one"]);
    let runs = project.json(&["history"]);
    assert_eq!(runs.as_array().unwrap().iter().map(|run| run["id"].as_i64().unwrap()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((runs[0]["changes"].as_i64(), runs[0]["playbooks"][0].as_str()), (Some(2), Some("play.yml")));
    let changes = project.json(&["history", "--what", "motd", "--host", "one"]);
    assert_eq!(changes[0]["diff"][0]["before"], "new\n");
    assert_eq!(changes[0]["diff"][0]["after"], "newer\n");
    assert!(changes[0]["place"].as_str().unwrap().ends_with("play.yml:5:7"), "{changes:#}");
    let text = told(&project.trimtab(&["history", "--what", "motd"]));
    assert!(text.contains("new → newer"), "{text}");
}

#[test]
fn what_cannot_be_recorded_is_not_changed() {
    let project = Project::new();
    let play = || {
        let base = format!("base={}", project.root().display());
        fs::write(project.path().join("play.yml"), PLAY).unwrap();
        Command::new(env!("CARGO_BIN_EXE_trimtab"))
            .args(["play", "-i", "one,", "-c", "local", "-e", &base, "play.yml"])
            .env("ANSIBLE_CONFIG", "/dev/null")
            .env("TRIMTAB_JOURNAL", "/dev/full/journal.db")
            .current_dir(project.path())
            .output()
            .unwrap()
    };
    let refused = play();
    let text = told(&refused);
    assert!(!refused.status.success() && text.contains("journal"), "{text}");
    assert_eq!(tree(&project.root()).len(), 0, "{text}");
}
