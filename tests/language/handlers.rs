//! Handlers: which of them a notification means, when, and how often they run. What is expected is what real
//! ansible-core 2.18 does.

use trimtab::engine::options::Options;
use trimtab::value::Map;

use crate::support::{Playing, Site};

#[test]
fn a_role_that_is_included_twice_runs_its_handler_once() {
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - include_role: {name: r}\n    - include_role: {name: r}\n",
        ),
        ("roles/r/tasks/main.yml", "- {name: change, command: 'true', notify: h}\n"),
        ("roles/r/handlers/main.yml", "- {name: h, debug: {msg: x}}\n"),
    ]);
    let told = site.run("a,", Options::default());
    let runs = told.lines().iter().filter(|line| line.contains("r : h")).count();
    assert_eq!(runs, 1, "{:?}", told.lines());
}

#[test]
fn a_handler_that_runs_once_does_not_run_again_for_the_others() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks: [{name: change, command: 'true', notify: h}]\n\
         \x20 post_tasks: [{name: last, debug: {msg: x}}]\n\
         \x20 handlers: [{name: h, run_once: true, debug: {msg: x}}]\n",
    )]);
    let lines = site.lines("a,b,c,");
    assert_eq!(lines.iter().filter(|line| line.ends_with("h: ok")).count(), 1, "{lines:?}");
}

#[test]
fn a_name_means_a_handler_when_handlers_are_flushed() {
    // the role's handler has the play's in its shadow, since the role is there by then
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - {name: change, command: 'true', notify: h}\n\
             \x20   - include_role: {name: r}\n  handlers: [{name: h, debug: {msg: of the play}}]\n",
        ),
        ("roles/r/tasks/main.yml", "- {name: idle, debug: {msg: x}}\n"),
        ("roles/r/handlers/main.yml", "- {name: h, debug: {msg: of the role}}\n"),
    ]);
    let lines = site.lines("a,");
    assert!(lines.contains(&"a r : h: ok".to_owned()) && !lines.contains(&"a h: ok".to_owned()), "{lines:?}");
}

#[test]
fn topics_are_no_templates() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  vars: {topic: t}\n\
         \x20 tasks: [{name: change, command: 'true', notify: '{{ topic }}'}]\n\
         \x20 handlers:\n    - {name: written, listen: t, debug: {msg: x}}\n    - {name: template, listen: '{{ topic }}', debug: {msg: x}}\n",
    )]);
    assert_eq!(site.lines("a,"), ["a change: changed", "a written: ok"]);
}

#[test]
fn flushing_is_no_handler_and_an_include_that_is_no_playbook_ends_the_run() {
    let plays = [
        (
            "  tasks: [{name: change, command: 'true', notify: h}]\n  handlers: [{name: h, meta: flush_handlers}]\n",
            "flush_handlers cannot be used as a handler",
        ),
        (
            "  tasks: [{name: change, command: 'true', notify: h}]\n  handlers: [{name: h, include_tasks: blocks.yml}]\n",
            "Using a block as a handler is not supported.",
        ),
        (
            "  tasks: [{block: [{include_tasks: broken.yml}], rescue: [{name: never, debug: {msg: x}}]}]\n",
            "expected a list of tasks",
        ),
    ];
    for (tasks, message) in plays {
        let play = format!("- hosts: all\n  gather_facts: false\n{tasks}");
        let site = Site::new(&[
            ("play.yml", play.as_str()),
            ("blocks.yml", "- block: [{block: [{debug: {msg: x}}]}]\n"),
            ("broken.yml", "a: b\n"),
        ]);
        let path = site.path("");
        let directory = std::path::Path::new(&path);
        let playing = Playing {
            directory,
            playbook: "play.yml",
            inventory: "a,",
            extra: Map::new(),
            options: Options::default(),
        };
        let (told, ended) = playing.run_to_error();
        let error = ended.expect_err(message);
        assert!(error.message().contains(message), "{error}");
        assert!(!told.lines().iter().any(|line| line.contains("never")), "{:?}", told.lines());
    }
}
