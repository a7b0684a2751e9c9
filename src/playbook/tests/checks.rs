//! What is known to be wrong before any host is touched, and what is only doubtful.

use super::*;
use crate::playbook::check::{check, handler_names};

/// The errors and the warnings of a project's plays.
fn judge(project: &Project, only: &str) -> (String, String) {
    let plays = project.load().unwrap_or_else(|error| panic!("{}", project.show(&error)));
    let selection = TagSelection::new([only], []);
    let result = check(&plays, &selection, &project.options.warnings, &[]);
    let errors = result.err().map(|error| project.show(&error)).unwrap_or_default();
    (errors, project.warnings().join("\n"))
}

#[test]
fn an_unknown_module_is_an_error_where_it_is_certainly_reached() {
    let cases: &[(&str, bool)] = &[
        ("    - shel:", true),
        ("    - when: true\n      shel:", true),
        ("    - block: [{shel: }]\n      always: [{ping: }]", true),
        ("    - block: [{ping: }]\n      always: [{shel: }]", true),
        ("    - shel:\n      loop: [1]", true),
        ("    - when: ansible_system == 'AIX'\n      shel:", false),
        ("    - block: [{shel: }]\n      when: x", false),
        ("    - block: [{shel: }]\n      rescue: [{ping: }]", false),
        ("    - block: [{ping: }]\n      rescue: [{shel: }]", false),
        ("    - shel:\n      loop: '{{ list }}'", false),
        ("    - shel:\n      loop: []", false),
        ("    - meta: end_play\n      when: x\n    - shel:", false),
        ("    - include_tasks: x.yml\n    - shel:", false),
        ("    - shel:\n      tags: '{{ t }}'", false),
        ("    - shel:\n      ignore_errors: yes", false),
        ("    - shel:\n      ignore_errors: no", true),
        ("    - shel:\n      failed_when: false", false),
    ];
    for (text, certain) in cases {
        let project = tasks(&format!("{text}\n"));
        let (errors, warnings) = judge(&project, "");
        let (is, other) = if *certain { (errors, warnings) } else { (warnings, errors) };
        assert!(is.contains("there is no module `shel` (did you mean `shell`?)"), "{text}: {is}");
        assert_eq!(is.contains("the task fails if it is reached"), !certain, "{text}: {is}");
        assert_eq!(other, "", "{text}");
    }
}

#[test]
fn what_the_tags_leave_out_is_not_judged() {
    let project = tasks("    - {shel: , tags: a}\n    - {ping: , tags: b}\n");
    assert_eq!(judge(&project, "b"), (String::new(), String::new()));
    assert!(judge(&project, "a").0.starts_with("play.yml:3:8: there is no module `shel`"));
}

#[test]
fn an_unknown_module_is_named_once_with_its_number() {
    let project = tasks("    - {win_x: , when: a}\n    - {win_x: , when: b}\n");
    let (_, warnings) = judge(&project, "");
    assert_eq!(
        warnings,
        "play.yml:3:8: there is no module `win_x` (it is used 2 times; the task fails if it is reached)"
    );
}

#[test]
fn arguments_are_checked() {
    let reached = " (the task fails if it is reached)";
    let cases: &[(&str, &str, &str)] = &[
        ("- command: {comand: ls}", "play.yml:3:17: `command` has no argument `comand`", ""),
        (
            "- command: {cmd: ls, chidr: /}",
            "play.yml:3:26: `command` has no argument `chidr` (did you mean `chdir`?)",
            "",
        ),
        (
            "- command: {cmd: ls, chidr: /}\n      when: x",
            "play.yml:3:26: `command` has no argument `chidr` (did you mean `chdir`?)",
            "",
        ),
        ("- command: {cmd: ls, qqqqqqqq: /}\n      when: x", "", "play.yml:3:26: `command` has no argument `qqqqqqqq`"),
        (
            "- ping: now",
            "play.yml:3:13: `ping` takes no free text, but has `now` (write its arguments as `key: value` below it, or as `key=value`)",
            "",
        ),
        (
            "- ping: data = x",
            "play.yml:3:13: `ping` takes no free text, but has `data = x` (write `key=value` without blanks around `=`)",
            "",
        ),
        ("- ping: {data: '{{ x }}'}", "", ""),
        ("- ping:\n      args: '{{ x }}'", "", ""),
        ("- set_fact: {x: 1, cacheable: maybe}", "play.yml:3:24: ", ""),
        ("- set_fact: {x: 1, cacheable: '{{ c }}'}", "", ""),
        ("- group_by: {}", "play.yml:3:7: `group_by` needs `key`", ""),
        ("- group_by: {}\n      when: x", "", "play.yml:3:7: `group_by` needs `key`"),
        ("- group_by: {}\n      module_defaults: {group_by: {key: x}}", "", ""),
    ];
    for (text, expected, warned) in cases {
        let project = tasks(&format!("    {text}\n"));
        let (errors, warnings) = judge(&project, "");
        if expected.is_empty() {
            assert_eq!(errors, "", "{text}");
        }
        assert!(errors.starts_with(expected), "{text}: {errors}");
        let warned = if warned.is_empty() { String::new() } else { format!("{warned}{reached}") };
        assert_eq!(warnings, warned, "{text}");
    }
}

#[test]
fn a_notification_that_nobody_hears_is_a_warning() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  roles: [web]
  tasks:
    - {ping: , notify: [restart web, 'web : reload', topic, 'web : topic', restrat, '{{ x }}']}
  handlers: [{name: restart, ping: }]
",
        ),
        ("roles/web/handlers/main.yml", "- {name: reload, ping: , listen: topic}\n- {name: restart web, ping: }\n"),
    ]);
    let (errors, warnings) = judge(&project, "");
    assert_eq!(errors, "");
    let expected = "play.yml:5:76: no handler is called `restrat` or listens to it (did you mean `restart`?) \
                    (the task fails if it changes something)";
    assert_eq!(warnings, expected);
    let play = project.play();
    assert_eq!(handler_names(&flat(&play.handlers)[0]), ["reload", "topic", "web : reload", "web : topic"]);
    // what is included may bring the handler
    let project = tasks("    - {ping: , notify: x}\n    - include_role: {name: y}\n");
    assert_eq!(judge(&project, "").1, "");
}

#[test]
fn templates_are_checked_where_they_are_reached() {
    let cases: &[(&str, bool)] = &[
        ("- ping: {data: '{{ x }/}'}", true),
        ("- ping: {data: '{{ x }/}'}\n      when: a", false),
        ("- ping:\n      when: a = 1", true),
        ("- ping:\n      when: [a, b = 1]", false),
        ("- ping:\n      changed_when: a b", true),
        ("- ping:\n      with_itms: [1]", true),
        ("- ping:\n      with_items: '{{ a b }}'", true),
    ];
    for (text, certain) in cases {
        let project = tasks(&format!("    {text}\n"));
        let (errors, warnings) = judge(&project, "");
        assert_eq!((errors.is_empty(), warnings.is_empty()), (!certain, *certain), "{text}: {errors} / {warnings}");
    }
}

#[test]
fn what_cannot_run_in_the_background_is_refused() {
    let cases = [
        ("    - copy: {src: a, dest: /b}\n      async: 9\n      poll: 0\n", true),
        ("    - shell: a\n      async: 9\n      poll: 0\n", false),
        ("    - copy: {src: a, dest: /b}\n      async: 9\n", false),
        ("    - copy: {src: a, dest: /b}\n      poll: 0\n", false),
    ];
    for (text, refused) in cases {
        let (errors, _) = judge(&tasks(text), "");
        assert_eq!(errors.contains("`copy` cannot run in the background"), refused, "{text}: {errors}");
    }
}

#[test]
fn an_unknown_name_in_a_template_is_an_error_where_it_is_certainly_used() {
    let cases: &[(&str, bool, &str)] = &[
        ("    - debug: {msg: \"{{ 'x' | uper }}\"}", true, "there is no filter `uper` (did you mean `upper`?"),
        ("    - debug: msg={{ x is definned }}", true, "there is no test `definned` (did you mean `defined`?"),
        ("    - debug: {msg: \"{{ [1] | map('intt') }}\"}", true, "there is no filter `intt` (did you mean `int`?"),
        ("    - debug: {msg: \"{{ [1] | select('od') }}\"}", true, "there is no test `od` (did you mean `odd`?"),
        (
            "    - debug: {msg: \"{{ lookup('fille', 'x') }}\"}",
            true,
            "there is no lookup `fille` (did you mean `file`?",
        ),
        ("    - ping:\n      when: x | bol", true, "there is no filter `bol` (did you mean `bool`?"),
        ("    - ping:\n      when: x | bol and y", true, "there is no filter `bol`"),
        ("    - ping:\n      loop: \"{{ x | flaten }}\"", true, "there is no filter `flaten` (did you mean `flatten`?"),
        ("    - ping:\n      when: y and x | bol", false, "there is no filter `bol`"),
        ("    - ping:\n      when: [y, x | bol]", false, "there is no filter `bol`"),
        ("    - debug: {msg: \"{{ x | uper }}\"}\n      when: x is defined", false, "there is no filter `uper`"),
        ("    - debug: {msg: \"{{ x | uper if x else y }}\"}", false, "there is no filter `uper`"),
        ("    - debug: {msg: \"{{ x | uper }}\"}\n      ignore_errors: true", false, "there is no filter `uper`"),
        (
            "    - block: [{debug: {msg: \"{{ x | uper }}\"}}]\n      rescue: [{ping: }]",
            false,
            "there is no filter `uper`",
        ),
    ];
    for (text, certain, message) in cases {
        let (errors, warnings) = judge(&tasks(&format!("{text}\n")), "");
        let (is, other) = if *certain { (errors, warnings) } else { (warnings, errors) };
        assert!(is.starts_with("play.yml:") && is.contains(message), "{text}: {is} {other}");
        assert_eq!(is.contains("the task fails if it is reached"), !certain, "{text}: {is}");
        assert_eq!(other, "", "{text}");
    }
    // once, with its number
    let (_, warnings) = judge(&tasks("    - ping:\n      when: [a, b | bol, c | bol]\n"), "");
    assert!(warnings.contains("it is used 2 times") && warnings.matches("no filter").count() == 1, "{warnings}");
}

#[test]
fn a_filter_in_python_is_named_before_the_run() {
    let plugin = "def shout(x): return x.upper()\nclass FilterModule:\n  def filters(self): return {'shout': shout}\n";
    let project = |task: &str, more: &[(&str, &str)]| {
        let play = format!("- hosts: all\n  roles: [r]\n  tasks:\n    - {task}\n");
        let role = "- debug: {msg: \"{{ 'x' | quiet }}\"}\n";
        let own = "{% macro quiet(x) %}{{ x }}{% endmacro %}";
        let mut files = vec![
            ("play.yml", play.as_str()),
            ("filter_plugins/team.py", plugin),
            ("roles/r/tasks/main.yml", role),
            ("roles/r/filters/quiet.j2", own),
            ("roles/r/filter_plugins/q.py", "quiet"),
        ];
        files.extend(more);
        judge(&Project::new(&files), "")
    };
    let message = "filter_plugins/team.py`, and plugins in Python cannot run";
    let (errors, _) = project("debug: {msg: \"{{ 'x' | shout }}\"}", &[]);
    assert!(errors.contains(message) && errors.contains("filters/shout.j2") && !errors.contains("quiet"), "{errors}");
    for task in
        ["debug: {msg: \"{{ 'x' | shout if y else z }}\"}", "debug: {msg: a}\n      when: b and a | shout == 'A'"]
    {
        let (errors, warnings) = project(task, &[]);
        assert!(errors.is_empty() && warnings.contains(message), "{task}: {errors} {warnings}");
    }
    let own = [("filters/shout.j2", "{% macro shout(x) %}{{ x | upper }}{% endmacro %}")];
    let (errors, warnings) = project("debug: {msg: \"{{ 'x' | shout }}\"}", &own);
    assert!(errors.is_empty() && warnings.is_empty(), "{errors} {warnings}");
}
