//! The engine on whole playbooks, on this machine.

use std::path::Path;

use super::options::Options;
use super::testing::{Told, run_playbook};

fn play(tasks: &str) -> String {
    let indented = tasks.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!("- hosts: all\n  gather_facts: false\n  tasks:\n{indented}")
}

fn run_in(directory: &Path, playbook: &str, options: Options) -> Told {
    run_playbook(directory, playbook, "one,", options)
}

fn run(playbook: &str) -> Told {
    let scratch = tempfile::tempdir().unwrap();
    run_in(scratch.path(), playbook, Options::default())
}

#[test]
fn a_debug_and_a_file() {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = play(
        "- name: say\n  debug: msg='hello {{ inventory_hostname }}'\n- name: directory\n  file: {path: '{{ root }}/d', state: directory, mode: '0750'}\n- name: inner\n  file: {path: '{{ root }}/d/e', state: directory}\n",
    );
    let told = run_in(scratch.path(), &playbook, Options::default());
    assert_eq!(told.lines(), ["one say: ok", "one directory: changed", "one inner: changed"]);
    assert_eq!(told.message("say"), "hello one");
    let again = run_in(scratch.path(), &playbook, Options::default());
    assert_eq!(again.lines(), ["one say: ok", "one directory: ok", "one inner: ok"]);
}
