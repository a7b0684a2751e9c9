//! Runs that ask as they go on: `--step`, and the task debugger.

use crate::support::{Ended, LOCAL, given};

/// The lines of a run that tell of tasks, and the questions.
fn told(ended: &Ended) -> Vec<&str> {
    let is_telling =
        |line: &&str| ["TASK", "Perform", "ok:", "changed:", "RUNNING"].iter().any(|start| line.starts_with(start));
    ended.stdout.lines().filter(is_telling).map(|line| line.trim_end_matches([' ', '*'])).collect()
}

const STEPS: &str = "- hosts: web
  gather_facts: false
  tasks:
    - {name: one, command: 'true', notify: h}
    - {name: two, command: 'true'}
    - {name: three, ping: }
    - {name: four, ping: }
  handlers:
    - {name: h, ping: }
";

#[test]
fn each_task_is_asked_for_once() {
    let run = given().file("inv", LOCAL).file("play.yml", STEPS);
    let ended = run.run_answering(&["play", "--step", "-i", "inv", "play.yml"], "y\nno\ny\nn\nc\n");
    let question = "(N)o/(y)es/(c)ontinue:";
    assert_eq!(
        told(&ended),
        [
            format!("Perform task: TASK: one {question}").as_str(),
            "TASK [one]",
            "changed: [web1]",
            "changed: [web2]",
            &format!("Perform task: TASK: two {question} Perform task: TASK: three {question}"),
            "TASK [three]",
            "ok: [web1]",
            "ok: [web2]",
            &format!("Perform task: TASK: four {question} Perform task: TASK: h {question}"),
            "RUNNING HANDLER [h]",
            "ok: [web1]",
            "ok: [web2]",
        ],
        "{ended:?}"
    );
    assert_eq!(ended.code, 0);
}

#[test]
fn what_is_continued_is_asked_no_more_and_silence_ends_the_run() {
    let run = given().file("inv", LOCAL).file("play.yml", STEPS);
    let ended = run.run_answering(&["play", "--step", "-i", "inv", "play.yml"], "c\n");
    assert_eq!(told(&ended).iter().filter(|line| line.starts_with("TASK")).count(), 4, "{ended:?}");
    let ended = run.run_answering(&["play", "--step", "-i", "inv", "play.yml"], "y\n");
    assert!(ended.stderr.contains("stdin has ended") && ended.code != 0, "{ended:?}");
    assert!(!ended.stdout.contains("TASK [two]"), "{ended:?}");
}

/// A play whose first task fails, and what its debugger is told.
fn debugged(play: &str, lines: &str) -> Ended {
    let inventory = "[web]\nweb1 ansible_connection=local\n";
    given().file("inv", inventory).file("play.yml", play).run_answering(&["play", "-i", "inv", "play.yml"], lines)
}

const WRONG: &str = "- hosts: web
  gather_facts: false
  vars: {word: wrong}
  tasks:
    - {name: try, assert: {that: word == 'right', quiet: true}, debugger: on_failed}
    - {name: see, debug: {msg: '{{ word }}'}}
";

#[test]
fn a_failed_task_can_be_looked_at_altered_and_done_again() {
    let lines = "p task\np task.args\np task_vars['word']\np result._result.evaluated_to\np nothing\nwhat\n\
                 task.args['that'] = 1 == 1\nr\n";
    let ended = debugged(WRONG, lines);
    let prompt = "[web1] TASK: try (debug)> ";
    for answer in [
        "TASK: try",
        "{'that': \"word == 'right'\", 'quiet': True}",
        "'wrong'",
        "False",
        "***'nothing' is undefined",
        "***`what` is no command here; `h` tells which there are",
    ] {
        assert!(ended.stdout.contains(&format!("{prompt}{answer}\n")), "{answer}: {}", ended.stdout);
    }
    assert!(ended.stdout.contains("ok=2") && ended.stdout.contains("failed=0"), "{}", ended.stdout);
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_variable_counts_once_the_task_is_written_anew() {
    let ended = debugged(WRONG, "task_vars['word'] = 'right'\nr\nu\nr\n");
    assert_eq!(ended.stdout.matches("Assertion failed").count(), 2, "{}", ended.stdout);
    // the variable is the task's alone
    assert!(ended.stdout.contains("\"msg\": \"wrong\""), "{}", ended.stdout);
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_failure_stands_when_the_run_goes_on_and_the_end_of_stdin_ends_it() {
    let ended = debugged(WRONG, "c\n");
    assert!(ended.stdout.contains("failed=1"), "{}", ended.stdout);
    assert_eq!(ended.code, 2, "{ended:?}");
    for lines in ["q\n", ""] {
        let ended = debugged(WRONG, lines);
        assert!(ended.stderr.contains("ended in the task debugger"), "{ended:?}");
        assert_eq!(ended.code, 99, "{ended:?}");
    }
}

#[test]
fn the_debugger_comes_when_it_is_asked_for() {
    let play = |keywords: &str| WRONG.replace("debugger: on_failed", keywords);
    let asks = |ended: &Ended| ended.stdout.contains("(debug)> ");
    for (keywords, comes) in [
        ("debugger: never", false),
        ("debugger: on_skipped", false),
        ("debugger: on_skipped, when: false", true),
        ("debugger: on_failed, ignore_errors: true", false),
        ("debugger: always, ignore_errors: true", true),
        ("debugger: '{{ \"on_failed\" }}'", true),
    ] {
        assert_eq!(asks(&debugged(&play(keywords), "c\n")), comes, "{keywords}");
    }
    let without = WRONG.replace(", debugger: on_failed", "");
    let run = given()
        .file("inv", "web1 ansible_connection=local\n")
        .file("play.yml", &without.replace("hosts: web", "hosts: all"))
        .variable("ANSIBLE_ENABLE_TASK_DEBUGGER", "true");
    assert!(asks(&run.run_answering(&["play", "-i", "inv", "play.yml"], "c\n")));
    let ended = debugged(&play("debugger: sometimes"), "");
    assert!(ended.stderr.contains("`debugger` cannot be `sometimes`"), "{ended:?}");
}
