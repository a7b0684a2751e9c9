//! What a person reads who made a mistake: place, message, hint.

use super::*;

#[test]
fn a_task_that_is_wrong() {
    let cases: &[(&str, &str)] = &[
        (
            "- name: x",
            "play.yml:3:7: the task has no action (name a module and its arguments, as in `command: uptime`)",
        ),
        (
            "- include_tasks: a.yml\n      meta: noop",
            "play.yml:4:7: the task has two actions, `include_tasks` and `meta` (make two tasks of them)",
        ),
        ("- meta: noop\n      wehn: x", "play.yml:4:7: unknown keyword `wehn` on a task (did you mean `when`?)"),
        ("- other_module:\n      wehn: x", "play.yml:4:7: unknown keyword `wehn` on a task (did you mean `when`?)"),
        ("- meta: noop\n      hosts: all", "play.yml:4:7: `hosts` cannot stand on a task (it belongs to a play)"),
        ("- meta: noop\n      listen: x", "play.yml:4:7: `listen` cannot stand on a task (it belongs to a handler)"),
        ("- meta: noop\n      become: maybe", "play.yml:4:15: `become` takes `true` or `false`, not `maybe`"),
        ("- meta: noop\n      retries: many", "play.yml:4:16: `retries` takes an integer, not `many`"),
        (
            "- meta: noop\n      when: {a: b}",
            "play.yml:4:13: `when` takes a condition or a list of conditions, not a mapping",
        ),
        (
            "- meta: noop\n      register: a-b",
            "play.yml:4:17: Invalid variable name in 'register' specified: 'a-b' (names consist of letters, digits and `_`, and do not begin with a digit)",
        ),
        ("- include_role: {name: x, tasks_from: [a]}", "play.yml:3:43: `tasks_from` takes text, not a list"),
        (
            "- debug: {_ansible_x: 1}",
            "play.yml:3:15: `_ansible_x` cannot be the name of an argument (the prefix `_ansible_` is reserved for internal use only.)",
        ),
        (
            "- meta: noop\n      sudo: yes",
            "play.yml:4:7: unknown keyword `sudo` on a task (it is written `become: true` now)",
        ),
        ("- block: '{{ x }}'", "play.yml:3:14: `block` takes a list of tasks, not `{{ x }}`"),
        ("- meta: [noop]", "play.yml:3:7: `meta` takes a mapping of arguments or text, not a list"),
        ("- meta: flush_handler", "play.yml:3:13: `meta` cannot do `flush_handler` (did you mean `flush_handlers`?)"),
        ("- reboot", "play.yml:3:7: a task is a mapping, not text (write `- reboot:` if `reboot` is the module)"),
        (
            "- rescue: []",
            "play.yml:3:7: `rescue` cannot stand without `block` (put the tasks that it belongs to into `block`)",
        ),
        (
            "- block: []\n      register: x",
            "play.yml:4:7: `register` cannot stand on a block (it belongs to a task or a handler)",
        ),
        (
            "- meta: noop\n      loop: [1]\n      with_items: [1]",
            "play.yml:5:7: the task has two loops, `loop` and `with_items`",
        ),
        (
            "- meta: noop\n      loop: [1]\n      loop_control: {lable: x}",
            "play.yml:5:22: unknown key `lable` in `loop_control` (did you mean `label`?)",
        ),
        ("- command: echo 'a", "play.yml:3:16: cannot split the arguments `echo 'a`: the quote ' is not closed"),
        (
            "- include_tasks: {fiel: a.yml}",
            "play.yml:3:23: `include_tasks` has no argument `fiel` (did you mean `file`?)\nplay.yml:3:7: `include_tasks` needs a file of tasks",
        ),
        (
            "- include_tasks: a.yml\n      become: yes",
            "play.yml:4:7: `become` cannot stand on `include_tasks` (put it into `apply`, which holds for what is included, or use an import: `apply: {become: …}`)",
        ),
        (
            "- import_tasks: {file: a.yml, apply: {}}",
            "play.yml:3:35: `import_tasks` has no argument `apply` (keywords on an import hold for all that it imports; `apply` is for includes)",
        ),
    ];
    for (text, expected) in cases {
        let project = tasks(&format!("    {text}\n"));
        let error = project.load().map(|_| ()).unwrap_err();
        assert!(project.show(&error).starts_with(expected), "{text}\n  {}\n  {expected}", project.show(&error));
    }
}

#[test]
fn a_play_that_is_wrong() {
    let cases: &[(&str, &str)] = &[
        (
            "- tasks: []",
            "play.yml:1:3: the play does not say on which `hosts` (add `hosts: all`, or the name of a group or host)",
        ),
        (
            "- hosts:",
            "play.yml:1:3: Hosts list cannot be empty. Please check your playbook (name a group or host, or `all`)",
        ),
        ("- hosts: all\n  handler: []", "play.yml:2:3: unknown keyword `handler` on a play (did you mean `handlers`?)"),
        (
            "- hosts: all\n  when: x",
            "play.yml:2:3: `when` cannot stand on a play (it belongs to `import_playbook`, a role, a block, a task or a handler)",
        ),
        (
            "- hosts: all\n  strategy: liner",
            "play.yml:2:13: `strategy` cannot be `liner`: it is linear, free, host_pinned or debug (did you mean `linear`?)",
        ),
        ("- hosts: all\n  serial: half", "play.yml:2:11: `serial` takes a number or a percentage, not `half`"),
        (
            "hosts: all",
            "play.yml:1:1: a playbook is a list of plays, `play.yml` is a mapping (begin each play with `- hosts: …`)",
        ),
        (
            "- hosts: all\n  tasks: {debug: }",
            "play.yml:2:10: A malformed block was encountered while loading tasks: a mapping should be a list or None",
        ),
        ("# nothing", "play.yml:1:1: the playbook is empty"),
        ("- import_playbook: pla.yml", "play.yml:1:20: there is no playbook `pla.yml` (did you mean `play.yml`?)"),
        (
            "- hosts: all\n  vars: {a-b: 1}",
            "play.yml:2:10: Invalid variable name in 'vars' specified: 'a-b' (names consist of letters, digits and `_`, and do not begin with a digit)",
        ),
        ("- hosts: all\n  vars: [a]", "play.yml:2:10: `vars` takes a mapping of variables, not text"),
        (
            "- hosts: all\n  vars_prompt: [{prompt: x}]",
            "play.yml:2:17: Invalid vars_prompt data structure, missing 'name' key",
        ),
        (
            "- hosts: all\n  handlers: [{include_role: {name: x}}]",
            "play.yml:2:15: Using 'include_role' as a handler is not supported. (notify handlers of the role, or include a file of tasks)",
        ),
        (
            "- hosts: all\n  handlers: [{block: [{block: []}]}]",
            "play.yml:2:23: Using a block as a handler is not supported. (blocks can group handlers, but not within other blocks)",
        ),
        (
            "- name: x\n  command: ls\n  when: y",
            "play.yml:2:3: 'command' is not a valid attribute for a Play (this is a task: put it under `tasks` of a play that says on which `hosts`)",
        ),
    ];
    for (text, expected) in cases {
        let project = Project::new(&[("play.yml", text)]);
        let error = project.load().map(|_| ()).unwrap_err();
        assert_eq!(project.show(&error), *expected, "{text}");
    }
}

#[test]
fn what_is_missing_is_named_with_the_places_searched() {
    let project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [aap, one]\n  tasks:\n    - import_tasks: set.yml\n"),
        ("roles/app/tasks/main.yml", "[]"),
        ("roles/one/tasks/main.yml", "- import_tasks: gone.yml\n- import_role: {name: app, tasks_from: mian}\n"),
        ("setup.yml", "[]"),
    ]);
    let error = project.load().map(|_| ()).unwrap_err();
    let root = project.path().display();
    let expected = format!(
        "play.yml:2:11: there is no role `aap` in `roles` or `{root}` (did you mean `app`?)\n\
         roles/one/tasks/main.yml:1:17: there is no file of tasks `gone.yml` in `roles/one/tasks`, `roles/one`, `tasks` or `{root}`\n\
         roles/one/tasks/main.yml:2:17: the role `app` has no file `tasks/mian` (did you mean `main`?)\n\
         play.yml:4:21: there is no file of tasks `set.yml` in `{root}` (did you mean `setup.yml`?)"
    );
    assert_eq!(project.show(&error), expected);
}

#[test]
fn circles_are_refused() {
    let project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [a]\n  tasks:\n    - import_tasks: x.yml\n"),
        ("roles/a/meta/main.yml", "dependencies: [b]\n"),
        ("roles/b/meta/main.yml", "dependencies: [a]\n"),
        ("x.yml", "- import_tasks: y.yml\n"),
        ("y.yml", "- import_tasks: x.yml\n"),
    ]);
    let error = project.load().map(|_| ()).unwrap_err();
    assert_eq!(
        project.show(&error),
        "roles/a/meta/main.yml:1:16: a role dependency goes round in a circle: `a` -> `b` -> `a`\n\
         y.yml:1:17: importing goes round in a circle: `x.yml` -> `y.yml` -> `x.yml`"
    );
}
