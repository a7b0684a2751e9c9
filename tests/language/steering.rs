//! What decides where a play goes on: failures of all hosts, roles that ran, tags, handlers, ends of batches.

use trimtab::engine::event::Event;
use trimtab::engine::fact_cache::FactCache;
use trimtab::engine::options::Options;

use crate::support::{Playing, Site};

#[test]
fn a_fatal_error_leads_each_host_into_its_own_rescue() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  any_errors_fatal: true\n  tasks:\n\
         \x20   - block:\n\
         \x20       - {name: break, fail: {msg: broken}, when: inventory_hostname == 'b'}\n\
         \x20       - {name: beyond, debug: {msg: x}}\n\
         \x20     rescue:\n\
         \x20       - {name: repair, debug: {msg: x}}\n\
         \x20   - {name: go on, debug: {msg: x}}\n",
    )]);
    assert_eq!(
        site.lines("a,b,"),
        ["a break: skipped", "a go on: ok", "a repair: ok", "b break: rescued", "b go on: ok", "b repair: ok"]
    );
}

#[test]
fn a_fatal_error_in_a_rescue_still_runs_always() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  any_errors_fatal: true\n  tasks:\n\
         \x20   - block: [{name: one, fail: {msg: broken}}]\n\
         \x20     rescue: [{name: two, fail: {msg: broken}}]\n\
         \x20     always: [{name: three, debug: {msg: x}}]\n\
         \x20   - {name: never, debug: {msg: x}}\n",
    )]);
    assert_eq!(site.lines("a,"), ["a one: rescued", "a three: ok", "a two: failed"]);
}

#[test]
fn a_role_runs_once_unless_all_of_it_was_skipped() {
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  roles:\n\
             \x20   - {role: base, when: ready is defined}\n\
             \x20   - set\n\
             \x20   - {role: base, when: ready is defined}\n\
             \x20   - {role: base, when: ready is defined}\n\
             \x20   - {role: base, when: ready is defined, tags: other}\n\
             \x20 tasks:\n\
             \x20   - include_role: {name: base}\n\
             \x20   - import_role: {name: base}\n\
             \x20   - include_role: {name: top}\n\
             \x20   - import_role: {name: top}\n",
        ),
        ("roles/base/tasks/main.yml", "- {name: do, debug: {msg: x}}\n"),
        ("roles/set/tasks/main.yml", "- {name: set, set_fact: {ready: 1}}\n"),
        ("roles/top/meta/main.yml", "dependencies: [below]\n"),
        ("roles/top/tasks/main.yml", "- {name: work, debug: {msg: x}}\n"),
        ("roles/below/tasks/main.yml", "- {name: rest, debug: {msg: x}}\n"),
    ]);
    let told = site.run("a,", Options::default());
    let count = |line: &str| told.lines().iter().filter(|told| *told == line).count();
    assert_eq!(count("a base : do: skipped"), 1);
    // once by `roles`, once with other tags, and by both that were told to run it
    assert_eq!(count("a base : do: ok"), 4);
    assert_eq!((count("a top : work: ok"), count("a below : rest: ok")), (2, 1));
}

#[test]
fn a_role_that_failed_half_way_runs_again() {
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  tasks:\n\
             \x20   - block: [{import_role: {name: shaky, allow_duplicates: false}}]\n\
             \x20     rescue: [{name: repair, set_fact: {repaired: 1}}]\n\
             \x20   - import_role: {name: shaky, allow_duplicates: false}\n\
             \x20   - import_role: {name: shaky, allow_duplicates: false}\n",
        ),
        (
            "roles/shaky/tasks/main.yml",
            "- {name: try, fail: {msg: broken}, when: repaired is undefined}\n- {name: done, debug: {msg: x}}\n",
        ),
    ]);
    let expected = ["a repair: ok", "a shaky : done: ok", "a shaky : try: rescued", "a shaky : try: skipped"];
    assert_eq!(site.lines("a,"), expected);
}

#[test]
fn tags_may_be_templates() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  vars: {mine: [one, two]}\n  tasks:\n\
         \x20   - {name: first, debug: {msg: x}, tags: '{{ mine }}'}\n\
         \x20   - {name: second, debug: {msg: x}, tags: ['{{ mine | last }}x']}\n",
    )]);
    let options = Options { tags: vec!["two".to_owned()], ..Options::default() };
    assert_eq!(site.run("a,", options).lines(), ["a first: ok"]);
}

#[test]
fn handlers_run_whatever_the_tags_and_names_may_be_templates() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  vars: {service: web}\n  tasks:\n\
         \x20   - {name: change, command: 'true', notify: restart web, tags: wanted}\n\
         \x20 handlers:\n\
         \x20   - {name: 'restart {{ service }}', debug: {msg: x}}\n\
         \x20   - {name: 'restart {{ nothing_of_that_name }}', debug: {msg: x}}\n",
    )]);
    let options = Options { tags: vec!["wanted".to_owned()], ..Options::default() };
    let told = site.run("a,", options);
    assert_eq!(told.lines(), ["a change: changed", "a restart web: ok"]);
    let warns = |event: &Event| matches!(event, Event::Warning(text) if text.contains("is unusable"));
    assert!(told.events.iter().any(warns));
}

#[test]
fn of_handlers_of_one_name_the_first_of_the_last_list_runs() {
    let site = Site::new(&[
        (
            "play.yml",
            "- hosts: all\n  gather_facts: false\n  roles: [one]\n  tasks:\n\
             \x20   - {name: change, command: 'true', notify: again}\n\
             \x20 handlers:\n\
             \x20   - {name: again, debug: {msg: first}}\n\
             \x20   - {name: again, debug: {msg: second}}\n",
        ),
        ("roles/one/handlers/main.yml", "- {name: again, debug: {msg: of the role}}\n"),
    ]);
    assert_eq!(site.run("a,", Options::default()).message("again"), "first");
}

#[test]
fn end_batch_ends_one_batch_alone() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  serial: 1\n  tasks:\n\
         \x20   - {name: work, debug: {msg: x}}\n\
         \x20   - meta: end_batch\n\
         \x20   - {name: never, fail: {msg: x}}\n",
    )]);
    let lines = site.lines("a,b,");
    assert_eq!(lines, ["a meta: ok", "a work: ok", "b meta: ok", "b work: ok"]);
}

#[test]
fn cleared_errors_let_the_host_go_on() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - block: [{name: break, fail: {msg: broken}}]\n\
         \x20     always: [{meta: clear_host_errors}]\n\
         \x20   - {name: go on, debug: {msg: x}}\n",
    )]);
    assert_eq!(site.lines("a,"), ["a break: failed", "a go on: ok", "a meta: ok"]);
}

#[test]
fn what_failed_is_known_to_the_always_of_an_inner_block() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - block:\n\
         \x20       - block: [{name: break, fail: {msg: broken}}]\n\
         \x20         always: [{name: inner, debug: {msg: '{{ ansible_failed_task.name }}'}}]\n\
         \x20     rescue: [{name: outer, debug: {msg: '{{ ansible_failed_result.msg }}'}}]\n",
    )]);
    let told = site.run("a,", Options::default());
    assert_eq!(told.lines(), ["a break: rescued", "a inner: ok", "a outer: ok"]);
    assert_eq!((told.message("inner"), told.message("outer")), ("break".to_owned(), "broken".to_owned()));
}

#[test]
fn a_condition_that_cannot_be_evaluated_keeps_what_the_module_found() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - {name: a, command: echo hi, register: r, failed_when: nowhere, ignore_errors: true}\n\
         \x20   - {name: b, debug: {msg: '{{ [r.stdout, r is failed, r.failed_when_result] | join(\" \") }}'}}\n\
         \x20   - {name: c, command: echo hi, register: r, changed_when: nowhere, ignore_errors: true}\n\
         \x20   - {name: d, debug: {msg: '{{ r.changed_when_result }}'}}\n",
    )]);
    let told = site.run("a,", Options::default());
    assert_eq!(told.message("b"), "hi True 'nowhere' is undefined");
    assert_eq!(told.message("d"), "'nowhere' is undefined");
}

#[test]
fn keywords_may_be_omitted() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  serial: '{{ size | default(omit) }}'\n\
         \x20 max_fail_percentage: '{{ most | default(omit) }}'\n\
         \x20 tasks:\n\
         \x20   - {name: a, debug: {msg: x}, delegate_to: '{{ other | default(omit) }}', become: '{{ b | default(omit) }}'}\n\
         \x20   - {name: b, command: 'true', retries: '{{ n | default(omit) }}', timeout: '{{ n | default(omit) }}'}\n",
    )]);
    assert_eq!(site.lines("h,"), ["h a: ok", "h b: changed"]);
}

#[test]
fn conditions_of_a_task_that_is_tried_again_know_the_attempt() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - {name: try, command: 'true', register: r, until: r.attempts > 1, delay: 0.01, changed_when: r.attempts == 2}\n\
         \x20   - {name: never, command: 'true', register: n, until: false, retries: 1, delay: 0.01, failed_when: n.attempts > 6}\n\
         \x20   - {name: see, debug: {msg: '{{ r.attempts }} {{ n.failed }} {{ n is failed }}'}}\n",
    )]);
    let told = site.run("a,", Options::default());
    assert_eq!(told.lines(), ["a try: changed", "a never: changed", "a see: ok"]);
    assert_eq!(told.message("see"), "2 True True");
}

#[test]
fn a_keyword_that_is_no_boolean_fails_a_task_whose_errors_are_ignored() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - {name: wrong, debug: {msg: x}, diff: maybe, ignore_errors: true}\n    - {name: next, debug: {msg: x}}\n",
    )]);
    let told = site.run("a,", Options::default());
    assert_eq!(told.lines(), ["a wrong: ignored", "a next: ok"]);
    assert!(told.message("wrong").contains("`maybe` is not a valid boolean"), "{}", told.message("wrong"));
}

#[test]
fn what_a_role_makes_public_is_so_for_its_play() {
    let see = "- {name: see, debug: {msg: \"{{ own | default('-') }}\"}}\n";
    let play = format!(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - include_role: {{name: r, public: true}}\n    {see}\
         - hosts: all\n  gather_facts: false\n  tasks:\n    {see}"
    );
    let site =
        Site::new(&[("play.yml", &play), ("roles/r/vars/main.yml", "own: 1\n"), ("roles/r/tasks/main.yml", "[]\n")]);
    let told = site.run("a,", Options::default());
    let seen: Vec<String> = told
        .results()
        .iter()
        .filter(|result| result.task.name == "see")
        .filter_map(|result| result.result.result.get("msg").map(|msg| msg.to_text().into_owned()))
        .collect();
    assert_eq!(seen, ["1", "-"]);
}

#[test]
fn reserved_names_are_warned_of_once() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  vars: {port: 1}\n  tasks:\n\
         \x20   - {name: a, debug: {msg: x}, vars: {query: 1}}\n    - {name: b, set_fact: {query: 1}}\n",
    )]);
    let told = site.run("h1,h2,", Options::default());
    let warnings: Vec<&str> = told
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Warning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(warnings, ["Found variable using reserved name: port", "Found variable using reserved name: query"]);
}

#[test]
fn facts_are_kept_between_runs() {
    let site = Site::new(&[(
        "play.yml",
        "- hosts: all\n  gather_facts: false\n  tasks:\n\
         \x20   - {name: see, debug: {msg: '{{ rack | default(0) }} {{ ansible_facts.rack | default(0) }} {{ ansible_rank | default(0) }}'}}\n\
         \x20   - {name: keep, set_fact: {rack: 7, ansible_rank: 8, cacheable: true}}\n",
    )]);
    let cache = FactCache { directory: site.path("facts").into(), prefix: String::new(), timeout: None };
    let run = |options: Options| {
        let path = site.path("");
        let directory = std::path::Path::new(&path);
        let extra = trimtab::value::Map::new();
        let playing = Playing { directory, playbook: "play.yml", inventory: "a,", extra, options };
        playing.run().message("see")
    };
    let options = Options { fact_cache: Some(cache), ..Options::default() };
    assert_eq!(run(options.clone()), "0 0 0");
    assert_eq!(run(options.clone()), "7 7 8");
    assert_eq!(run(Options { inject_facts: false, ..options.clone() }), "0 7 0");
    assert_eq!(run(Options { flush_cache: true, ..options }), "0 0 0");
}

#[test]
fn an_include_that_runs_once_is_of_one_host() {
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - include_tasks: more.yml\n      run_once: true\n    \
                - {remote_user: root, block: [include_tasks: more.yml]}\n    - debug: {msg: end}\n      name: end\n";
    let site = Site::new(&[("play.yml", play), ("more.yml", "- {name: within, debug: {msg: hi}}\n")]);
    let told = site.run("a,b,", Options::default());
    let lines = told.lines();
    let within = lines.iter().filter(|line| line.contains(" within")).count();
    assert_eq!(within, 3, "once for one, then for both: {lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains(" end")).count(), 2, "{lines:?}");
}

#[test]
fn a_task_in_check_mode_changes_nothing_for_those_behind_it() {
    let play = "- hosts: all\n  connection: local\n  gather_facts: false\n  tasks:\n    - {name: would, command: touch no, check_mode: true, args: {creates: PATH}}\n    \
                - {name: file, file: {path: PATH, state: touch}, check_mode: true}\n    \
                - {name: look, stat: {path: PATH}, register: it}\n    - {name: tell, debug: {msg: \"{{ it.stat.exists }}\"}}\n";
    let site = Site::new(&[("play.yml", &play.replace("PATH", "\"{{ playbook_dir }}/made\""))]);
    let told = site.run("a,", Options::default());
    assert_eq!(told.message("tell"), "False", "{:?}", told.lines());
}
