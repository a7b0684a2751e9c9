//! Common mistakes: what is said of them, and that nothing runs.

use super::support::{Ended, Invocation, LOCAL, given};

const PLAY: [&str; 4] = ["play", "-i", "inv", "play.yml"];

/// A directory with an inventory and a playbook of these tasks.
fn site(tasks: &str) -> Invocation {
    given().file("inv", LOCAL).file("play.yml", &format!("- hosts: web\n  gather_facts: false\n  tasks:\n{tasks}"))
}

/// Runs a playbook of these tasks.
fn tasks(tasks: &str) -> Ended {
    site(tasks).run(&PLAY)
}

#[test]
fn misspelt_module() {
    tasks("    - name: greet\n      debgu: msg=hi\n").refused(
        1,
        "\
error: there is no module `debgu`
 --> play.yml:5:7
  |
5 |       debgu: msg=hi
  |       ^^^^^
  |
  = help: did you mean `debug`?
",
    );
}

#[test]
fn misspelt_keyword() {
    tasks("    - debug: msg=hi\n      notifi: restart\n").refused(
        4,
        "\
error: unknown keyword `notifi` on a task
 --> play.yml:5:7
  |
5 |       notifi: restart
  |       ^^^^^^
  |
  = help: did you mean `notify`?
",
    );
}

#[test]
fn misspelt_argument() {
    tasks("    - debug:\n        mesg: hi\n").refused(
        4,
        "\
error: `debug` has no argument `mesg`
 --> play.yml:5:9
  |
5 |         mesg: hi
  |         ^^^^
  |
  = help: did you mean `msg`?
",
    );
}

#[test]
fn several_mistakes_are_told_at_once() {
    tasks("    - debgu: msg=hi\n    - file: path=/x stat=absent\n").refused(
        1,
        "\
error: there is no module `debgu`
 --> play.yml:4:7
  |
4 |     - debgu: msg=hi
  |       ^^^^^
  |
  = help: did you mean `debug`?

error: `file` has no argument `stat`
 --> play.yml:5:13
  |
5 |     - file: path=/x stat=absent
  |             ^^^^
  |
  = help: did you mean `state`?
",
    );
}

#[test]
fn two_actions_in_one_task() {
    tasks("    - debug: msg=hi\n      command: ls\n").refused(
        4,
        "\
error: the task has two actions, `debug` and `command`
 --> play.yml:5:7
  |
5 |       command: ls
  |       ^^^^^^^ the second action
  |
 ::: play.yml:4:7
  |
4 |     - debug: msg=hi
  |       ----- the first action
  |
  = help: make two tasks of them
",
    );
}

#[test]
fn a_tab_in_the_indent() {
    tasks("\t- debug: msg=hi\n").refused(
        4,
        "\
error: not valid YAML: while scanning for the next token found character that cannot start any token
 --> play.yml:4:1
  |
4 |     - debug: msg=hi
  | ^^^^
  |
  = help: indent with spaces: YAML allows no tab there
",
    );
}

#[test]
fn a_template_without_quotes() {
    tasks("    - debug:\n        msg: {{ name }}\n").refused(
        4,
        "\
error: not valid here: a mapping as a key of a mapping
 --> play.yml:5:14
  |
5 |         msg: {{ name }}
  |              ^
  |
  = help: quote a value that starts with a template: \"{{ name }}\"
",
    );
}

#[test]
fn a_missing_file_of_tasks() {
    tasks("    - import_tasks: other.yml\n").refused(
        1,
        "\
error: there is no file of tasks `other.yml` in `.`
 --> play.yml:4:21
  |
4 |     - import_tasks: other.yml
  |                     ^^^^^^^^^
",
    );
}

#[test]
fn missing_hosts() {
    given().file("inv", LOCAL).file("play.yml", "- host: web\n  tasks: []\n").run(&PLAY).refused(
        4,
        "\
error: unknown keyword `host` on a play
 --> play.yml:1:3
  |
1 | - host: web
  |   ^^^^
  |
  = help: did you mean `hosts`?

error: the play does not say on which `hosts`
 --> play.yml:1:3
  |
1 | - host: web
  |   ^^^^
  |
  = help: add `hosts: all`, or the name of a group or host
",
    );
}

#[test]
fn a_limit_that_matches_nothing() {
    site("    - ping:\n")
        .run(&["play", "-i", "inv", "play.yml", "-l", "wbe"])
        .refused(1, "error: no host matches `--limit wbe`\n  = help: did you mean `web`?\n");
}

#[test]
fn missing_playbooks_and_inventories() {
    let site = site("    - ping:\n");
    site.run(&["play", "-i", "inv", "a.yml", "b.yml"])
        .refused(1, "error: there is no playbook `a.yml`\n\nerror: there is no playbook `b.yml`\n");
    site.run(&["play", "-i", "web9", "play.yml"]).refused(
        1,
        "\
error: cannot read the inventory `web9`: no such file or directory
  = help: a list of hosts needs a comma: `-i web9,`
",
    );
}

#[test]
fn a_wrong_line_of_the_inventory() {
    let site = site("    - ping:\n").file("inv", "[web]\nweb1 a=1 b\n");
    site.run(&PLAY).refused(
        1,
        "\
error: expected `name=value` after the host, got `b`
 --> inv:2:10
  |
2 | web1 a=1 b
  |          ^
  |
  = help: put one host on a line, and quote a value that contains spaces
",
    );
}

#[test]
fn a_broken_file_of_group_vars() {
    let site = site("    - ping:\n").file("group_vars/web.yml", "name: [1\nother: 2\n");
    let ended = site.run(&PLAY);
    assert!(ended.stderr.starts_with("error: not valid YAML"), "{}", ended.stderr);
    assert!(ended.stderr.contains("group_vars/web.yml:2:"), "{}", ended.stderr);
    assert_eq!((ended.stdout.as_str(), ended.code), ("", 4));
}

#[test]
fn settings_are_checked_where_they_stand() {
    let site = site("    - ping:\n").file("ansible.cfg", "[defaults]\nforks = many\n");
    site.run(&PLAY).refused(
        1,
        "\
error: `forks` wants a number, got `many`
 --> DIR/ansible.cfg:2:1
  |
2 | forks = many
  | ^^^^^
",
    );
    let site = site.variable("ANSIBLE_FORKS", "lots");
    site.run(&PLAY).refused(1, "error: `forks` wants a number, got `lots`\n  = help: it is set by ANSIBLE_FORKS\n");
}

#[test]
fn extra_variables_without_a_value() {
    site("    - ping:\n").run(&["play", "-i", "inv", "play.yml", "-e", "a=1 version"]).refused(
        5,
        "\
error: `version` is no variable
 --> --extra-vars:1:5
  |
1 | a=1 version
  |     ^^^^^^^
  |
  = help: write `name=value`, with quotes around values that have blanks
",
    );
}

#[test]
fn questions_without_a_terminal() {
    // a session of its own has no terminal to ask on
    let site = given()
        .file("inv", LOCAL)
        .file("play.yml", "- hosts: web\n  gather_facts: false\n  vars_prompt:\n    - name: version\n  tasks: []\n");
    site.run_detached(&PLAY).refused(
        1,
        "\
error: `version` cannot be asked for: there is no terminal
 --> play.yml:4:7
  |
4 |     - name: version
  |       ^^^^
  |
  = help: give it on the command line: `-e version=…`, or a default
",
    );
}

#[test]
fn what_is_not_there_yet_is_named() {
    let site = site("    - ping:\n");
    site.run(&["play", "-i", "inv", "play.yml", "-c", "winrm"])
        .refused(5, "error: there is no connection `winrm`\n  = help: known are ssh and local\n");
    site.run(&["play", "-i", "inv", "play.yml", "--output", "jsn"]).refused(
        5,
        "\
error: there is no report `jsn`
  = help: did you mean `json`?
  = help: known are ansible, condensed, minimal, oneline, json, jsonl
",
    );
}

#[test]
fn a_misspelt_flag() {
    site("    - ping:\n").run(&["play", "-i", "inv", "play.yml", "--chekc"]).refused(
        2,
        "\
error: unexpected argument '--chekc' found

  tip: a similar argument exists: '--check'

Usage: trimtab play --inventory <SOURCE> --check <PLAYBOOK>...

For more information, try '--help'.
",
    );
}
