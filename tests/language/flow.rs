//! The course of plays: order, conditions, loops, blocks, handlers, includes, delegation, barriers.

use std::fs;
use std::path::Path;

use trimtab::engine::options::Options;
use trimtab::value::Map;

use crate::support::{Playing, Told};

/// A play of these tasks on all hosts, without facts.
fn play(tasks: &str) -> String {
    let indented = tasks.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!("- hosts: all\n  gather_facts: false\n  tasks:\n{indented}")
}

fn run_in(directory: &Path, playbook: &str, inventory: &str, options: Options) -> Told {
    fs::write(directory.join("play.yml"), playbook).unwrap();
    Playing { directory, playbook: "play.yml", inventory, extra: Map::new(), options }.run()
}

/// Runs with the full window and with a window of one; both must tell the same.
fn run_on(playbook: &str, inventory: &str) -> Told {
    let full = run_in(tempfile::tempdir().unwrap().path(), playbook, inventory, Options::default());
    let options = Options { window: 1, ..Options::default() };
    let one = run_in(tempfile::tempdir().unwrap().path(), playbook, inventory, options);
    // hosts tell what they did in no certain order
    let sorted = |told: &Told| {
        let mut lines = told.lines();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&full), sorted(&one), "the window changes nothing");
    full
}

fn run(playbook: &str) -> Told {
    run_on(playbook, "one,")
}

#[test]
fn a_second_run_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = play(
        "- name: say\n  debug: msg='hello {{ inventory_hostname }}'\n\
         - name: directory\n  file: {path: '{{ root }}/d', state: directory, mode: '0750'}\n\
         - name: inner\n  file: {path: '{{ root }}/d/e', state: directory}\n",
    );
    let told = run_in(scratch.path(), &playbook, "one,", Options::default());
    assert_eq!(told.lines(), ["one say: ok", "one directory: changed", "one inner: changed"]);
    assert_eq!(told.message("say"), "hello one");
    let again = run_in(scratch.path(), &playbook, "one,", Options::default());
    assert_eq!(again.lines(), ["one say: ok", "one directory: ok", "one inner: ok"]);
}

#[test]
fn a_rescue_sees_the_failure_and_always_runs() {
    let told = run(&play(
        "- block:\n    - name: boom\n      command: 'false'\n    - name: not reached\n      debug: msg=x\n\
         \x20 rescue:\n    - name: rescued\n      debug: msg='{{ ansible_failed_task.name }} {{ ansible_failed_result.rc }}'\n\
         \x20 always:\n    - name: always\n      debug: msg=a\n\
         - name: after\n  debug: msg='{{ ansible_failed_task is defined }}'\n",
    ));
    assert_eq!(told.lines(), ["one boom: rescued", "one rescued: ok", "one always: ok", "one after: ok"]);
    assert_eq!(told.message("rescued"), "boom 1");
}

#[test]
fn a_failure_without_rescue_runs_always_and_ends_the_host() {
    let told = run_on(
        &play(
            "- block:\n    - name: boom\n      fail: msg=planned\n      when: inventory_hostname == 'one'\n\
             \x20 always:\n    - name: always\n      debug: msg=a\n\
             - name: after\n  debug: msg=x\n",
        ),
        "one,two,",
    );
    let mut lines = told.lines();
    lines.sort();
    assert_eq!(lines, ["one always: ok", "one boom: failed", "two after: ok", "two always: ok", "two boom: skipped"]);
}

#[test]
fn handlers_run_once_in_their_order_when_notified() {
    let playbook = play(
        "- name: first\n  command: 'true'\n  notify: [A, B]\n\
         - name: quiet\n  command: 'true'\n  changed_when: false\n  notify: C\n\
         - meta: flush_handlers\n\
         - name: topic\n  command: 'true'\n  notify: both\n",
    ) + "  handlers:\n    - name: B\n      debug: msg=B\n    - name: A\n      debug: msg=A\n      listen: both\n    - name: C\n      debug: msg=C\n      listen: both\n";
    let told = run(&playbook);
    assert_eq!(
        told.lines(),
        [
            "one first: changed",
            "one quiet: ok",
            "one B: ok",
            "one A: ok",
            "one topic: changed",
            "one A: ok",
            "one C: ok"
        ]
    );
}

#[test]
fn an_unknown_handler_ends_the_run() {
    let scratch = tempfile::tempdir().unwrap();
    let tasks = "- block:\n    - name: first\n      command: 'true'\n      notify: nobody\n  rescue:\n    - debug:\n";
    fs::write(scratch.path().join("play.yml"), play(tasks)).unwrap();
    let playing = |options| Playing {
        directory: scratch.path(),
        playbook: "play.yml",
        inventory: "one,",
        extra: Map::new(),
        options,
    };
    let (told, ended) = playing(Options::default()).run_to_error();
    assert_eq!(told.lines(), ["one first: rescued"]);
    assert!(told.message("first").contains("The requested handler 'nobody' was not found"));
    assert!(ended.is_err_and(|error| error.to_string().contains("handler 'nobody'")));
    // unless that is only to be a warning
    let told = playing(Options { error_on_missing_handler: false, ..Options::default() }).run();
    assert_eq!(told.lines(), ["one first: changed"]);
}

#[test]
fn loops_register_all_their_items() {
    let told = run(&play(
        "- name: each\n  command: echo {{ item }}\n  loop: [a, b, c]\n  when: item != 'b'\n  register: r\n\
         - name: shape\n  debug: msg=\"{{ r.results | length }} {{ r.results[0].stdout }} {{ r.results[1].skipped }} {{ r is changed }}\"\n",
    ));
    assert_eq!(told.message("shape"), "3 a True True");
    assert_eq!(
        told.lines()[..4],
        ["one each (a): changed", "one each (b): skipped", "one each (c): changed", "one each: changed"]
    );
}

#[test]
fn a_failed_item_does_not_keep_the_others_from_running() {
    let told =
        run(&play("- name: each\n  command: test {{ item }} != b\n  loop: [a, b, c]\n- name: after\n  debug: msg=x\n"));
    assert_eq!(
        told.lines(),
        ["one each (a): changed", "one each (b): failed", "one each (c): changed", "one each: failed"]
    );
}

#[test]
fn until_tries_again_until_it_is_true() {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = play(
        "- name: try\n  shell: echo x >> {{ root }}/count; wc -l < {{ root }}/count\n  register: r\n  until: r.stdout | int >= 3\n  retries: 5\n  delay: 0\n\
         - name: shape\n  debug: msg='{{ r.attempts }}'\n",
    );
    let told = run_in(scratch.path(), &playbook, "one,", Options::default());
    assert_eq!(told.message("shape"), "3");
}

#[test]
fn run_once_runs_on_the_first_host_and_counts_for_all() {
    let told = run_on(
        &play(
            "- name: once\n  command: echo {{ inventory_hostname }}\n  run_once: true\n  register: o\n\
             - name: seen\n  debug: msg='{{ o.stdout }}'\n",
        ),
        "one,two,three,",
    );
    let once: Vec<String> = told.lines().into_iter().filter(|line| line.contains(" once:")).collect();
    assert_eq!(once, ["one once: changed"]);
    let said: Vec<String> = told
        .results()
        .iter()
        .filter(|result| result.task.name == "seen")
        .map(|result| result.result.result.get("msg").unwrap().to_string())
        .collect();
    assert_eq!(said, ["one", "one", "one"]);
}

#[test]
fn another_hosts_variables_are_those_of_the_same_place_in_the_play() {
    let told = run_on(
        &play(
            "- set_fact: {x: '{{ inventory_hostname }} first'}\n\
             - name: seen\n  debug: msg=\"{{ hostvars['two'].x }}, {{ hostvars['one']['x'] }}\"\n\
             - set_fact: {x: '{{ inventory_hostname }} second'}\n",
        ),
        "one,two,",
    );
    for result in told.results().iter().filter(|result| result.task.name == "seen") {
        assert_eq!(result.result.result.get("msg").unwrap().to_string(), "two first, one first", "{}", result.host);
    }
}

#[test]
fn delegation_works_elsewhere_and_registers_here() {
    let told = run_on(
        &play(
            "- name: there\n  command: echo {{ inventory_hostname }}\n  delegate_to: '{{ groups.all | last }}'\n  register: d\n\
             - name: here\n  debug: msg='{{ d.stdout }}'\n",
        ),
        "one,two,",
    );
    let delegates: Vec<_> = told
        .results()
        .iter()
        .filter(|result| result.task.name == "there")
        .map(|result| result.delegated_to.clone())
        .collect();
    assert_eq!(delegates, [Some("two".to_owned()), Some("two".to_owned())]);
    assert_eq!(told.message("here"), "one");
}

#[test]
fn serial_batches_run_one_after_the_other() {
    let playbook = "- hosts: all\n  gather_facts: false\n  serial: [1, 2]\n  tasks:\n    - name: batch\n      debug: msg='{{ ansible_play_batch | join(\" \") }}'\n";
    let told = run_on(playbook, "one,two,three,");
    let said: Vec<String> =
        told.results().iter().map(|result| result.result.result.get("msg").unwrap().to_string()).collect();
    assert_eq!(said, ["one", "two three", "two three"]);
}

#[test]
fn any_errors_fatal_stops_all_hosts_before_their_next_change() {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = "- hosts: all\n  gather_facts: false\n  any_errors_fatal: true\n  tasks:\n    - name: check\n      fail: msg=no\n      when: inventory_hostname == 'two'\n    - name: change\n      file: {path: '{{ root }}/{{ inventory_hostname }}', state: directory}\n";
    let told = run_in(scratch.path(), playbook, "one,two,three,", Options::default());
    assert!(!told.lines().iter().any(|line| line.contains("change")), "{:?}", told.lines());
    assert!(!scratch.path().join("one").exists());
}

#[test]
fn a_register_of_a_command_is_waited_for_only_by_who_uses_it() {
    let told = run(&play(
        "- name: look\n  command: echo 7\n  register: r\n  changed_when: false\n\
         - name: other\n  stat: path=/\n\
         - name: use\n  debug: msg='{{ r.stdout }}'\n",
    ));
    assert_eq!(told.message("use"), "7");
}

#[test]
fn check_mode_judges_later_tasks_by_what_would_be() {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = play(
        "- name: make\n  file: {path: '{{ root }}/d', state: directory}\n\
         - name: again\n  file: {path: '{{ root }}/d', state: directory}\n\
         - name: inside\n  file: {path: '{{ root }}/d/e', state: directory}\n",
    );
    let options = Options { check: true, ..Options::default() };
    let told = run_in(scratch.path(), &playbook, "one,", options);
    assert_eq!(told.lines(), ["one make: changed", "one again: ok", "one inside: changed"]);
    assert!(!scratch.path().join("d").exists());
}

#[test]
fn a_converged_run_costs_two_round_trips_whatever_its_length() {
    let scratch = tempfile::tempdir().unwrap();
    let tasks: String = (0..60)
        .map(|number| format!("- file: {{path: '{{{{ root }}}}/d{number}', state: directory, mode: '0755'}}\n"))
        .collect();
    let playbook = play(&tasks);
    let first = run_in(scratch.path(), &playbook, "one,", Options::default());
    assert!(first.lines().iter().all(|line| line.ends_with("changed")));
    let second = run_in(scratch.path(), &playbook, "one,", Options::default());
    assert!(second.lines().iter().all(|line| line.ends_with("ok")));
    // to open the shell, and to ask everything
    assert_eq!(second.round_trips, [2]);
    // changes that are certain travel together with what follows them
    assert!(first.round_trips[0] <= 4, "{:?}", first.round_trips);
}
