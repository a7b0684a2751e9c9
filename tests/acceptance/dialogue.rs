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
