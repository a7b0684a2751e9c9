//! Inventories that change while a play runs, and the order of hosts. What is expected is what real ansible-core 2.18 does.

use std::fs;

use trimtab::engine::options::Options;

use crate::support::Site;

#[test]
fn only_what_adds_something_has_changed_something() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - {name: add, add_host: {name: 'n{{ item }}', groups: g}, loop: [1, 2, 2]}\n\
         \x20   - {name: more, add_host: {name: n1, rack: 7}}\n\
         \x20   - {name: same, add_host: {name: n1, rack: 7}}\n\
         \x20   - {name: group, group_by: {key: 'of {{ inventory_hostname }}', parents: [top]}}\n\
         \x20   - {name: again, group_by: {key: 'of {{ inventory_hostname }}', parents: [top]}}\n\
         \x20   - {name: asked, add_host: {name: n1}, changed_when: true}\n",
    )]);
    let lines = site.lines("a,");
    let expected = [
        "a add (1): changed",
        "a add (2): changed",
        "a add (2): ok",
        "a add: changed",
        "a again: ok",
        "a asked: changed",
        "a group: changed",
        "a more: changed",
        "a same: ok",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn tasks_behind_group_by_see_the_variables_of_the_group() {
    let site = Site::new(&[
        ("inv", "a\nb\n"),
        ("group_vars/all", "size: small\n"),
        ("group_vars/top", "size: big\n"),
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - {name: group, group_by: {key: g, parents: top}}\n\
             \x20   - {name: see, debug: {msg: '{{ size }} {{ group_names | join(\" \") }}'}}\n",
        ),
    ]);
    let told = site.run(&site.path("inv"), Options::default());
    assert_eq!(told.message("see"), "big g top");
}

#[test]
fn a_refreshed_inventory_is_read_again_and_keeps_what_was_added() {
    let site = Site::new(&[
        ("inv", "one\ntwo\n"),
        ("next", "two x=2\nfour\n"),
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n\
             \x20   - {name: add, add_host: {name: extra, groups: more}}\n    - {name: group, group_by: {key: g}}\n\
             \x20   - {name: replace, copy: {src: '{{ root }}/next', dest: '{{ root }}/inv'}, run_once: true}\n\
             \x20   - meta: refresh_inventory\n\
             - hosts: all\n  gather_facts: false\n  tasks:\n\
             \x20   - {name: see, run_once: true, debug: {msg: '{{ ansible_play_hosts | sort | join(\" \") }}, {{ groups.g | join(\" \") }}, {{ groups.more | join(\" \") }}'}}\n\
             \x20   - {name: x, debug: {msg: '{{ x | default(\"-\") }}'}}\n",
        ),
    ]);
    let run = |window| {
        fs::write(site.path("inv"), "one\ntwo\n").unwrap();
        let path = site.path("");
        let inventory = site.path("inv");
        crate::support::Playing {
            directory: std::path::Path::new(&path),
            playbook: "play.yml",
            inventory: &inventory,
            extra: trimtab::value::Map::new(),
            options: Options { window, ..Options::default() },
        }
        .run()
    };
    for window in [256, 1] {
        let told = run(window);
        assert_eq!(told.message("see"), "extra four two, two, extra");
        let lines: Vec<String> = told.lines().into_iter().filter(|line| line.contains(" x: ")).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}

#[test]
fn one_host_alone_includes_what_is_included_once() {
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - {name: include, include_tasks: more.yml, run_once: true}\n\
             \x20   - {name: all, debug: {msg: x}}\n",
        ),
        ("more.yml", "- {name: more, debug: {msg: x}}\n"),
    ]);
    assert_eq!(site.lines("a,b,"), ["a all: ok", "a include: ok", "a more: ok", "b all: ok"]);
}

#[test]
fn with_one_fork_hosts_take_their_turns_in_order() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  order: reverse_inventory\n  tasks:\n\
         \x20   - {name: one, shell: 'echo {{ inventory_hostname }}1 >> {{ root }}/order'}\n\
         \x20   - {name: two, shell: 'echo {{ inventory_hostname }}2 >> {{ root }}/order', delegate_to: localhost}\n\
         \x20   - {name: three, shell: 'echo {{ inventory_hostname }}3 >> {{ root }}/order'}\n",
    )]);
    site.run("a,b,c,", Options { forks: 1, ..Options::default() });
    let once = "c1 b1 a1 c2 b2 a2 c3 b3 a3";
    let order = fs::read_to_string(site.path("order")).unwrap();
    // the site runs with both windows
    assert_eq!(order.split_whitespace().collect::<Vec<_>>().join(" "), format!("{once} {once}"));
}

#[test]
fn a_keyword_that_is_omitted_is_that_of_the_block_around() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - ignore_errors: true\n      block:\n\
         \x20       - {name: own, fail: {msg: x}, ignore_errors: '{{ omit }}'}\n\
         \x20       - block: [{name: inner, fail: {msg: x}, ignore_errors: '{{ omit }}'}]\n          ignore_errors: '{{ nothing | default(omit) }}'\n\
         \x20   - {name: last, fail: {msg: x}, ignore_errors: '{{ omit }}'}\n",
    )]);
    assert_eq!(site.lines("a,"), ["a inner: ignored", "a last: failed", "a own: ignored"]);
}

#[test]
fn names_of_the_roles_that_include_a_role_are_known_to_it_alone() {
    let see =
        "{{ ansible_parent_role_names | default('none') }} {{ ansible_parent_role_paths | default([]) | length }}";
    let task = format!("- {{name: see, debug: {{msg: \"{see}\"}}}}\n");
    let site = Site::new(&[
        ("play.yml", "- hosts: all\n  gather_facts: false\n  roles: [outer]\n"),
        ("roles/outer/meta/main.yml", "dependencies: [needed]\n"),
        ("roles/outer/tasks/main.yml", &format!("{task}- include_role: {{name: inner}}\n")),
        ("roles/needed/tasks/main.yml", task.as_str()),
        ("roles/inner/tasks/main.yml", task.as_str()),
    ]);
    let told = site.run("a,", Options::default());
    let message = |role: &str| told.message(&format!("{role} : see"));
    assert_eq!([message("needed"), message("outer")], ["none 0", "none 0"]);
    assert_eq!(message("inner"), "['outer'] 1");
}
