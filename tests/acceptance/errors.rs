//! Common mistakes: what is said of them, and that nothing runs.

use super::support::{Invocation, LOCAL, given};

/// A playbook of these tasks on all hosts of the inventory.
fn tasks(tasks: &str) -> Invocation {
    given().file("inv", LOCAL).file("play.yml", &format!("- hosts: web\n  gather_facts: false\n  tasks:\n{tasks}"))
}

#[test]
fn a_missing_playbook() {
    given().file("inv", LOCAL).run(&["play", "-i", "inv", "site.yml"]).refused(1, "");
}
