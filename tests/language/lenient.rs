//! What public playbooks hold that current Ansible takes no longer, or takes otherwise: old forms keep their meaning.

use std::fs;

use trimtab::engine::event::Event;
use trimtab::engine::options::Options;
use trimtab::value::Map;

use crate::support::{Playing, Told};

/// Runs a play of these tasks, with files beside it.
fn run(tasks: &str, files: &[(&str, &str)]) -> Told {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tasks: String = tasks.lines().map(|line| format!("    {line}\n")).collect();
    let play = format!("- hosts: all\n  gather_facts: false\n  vars_files: [vars.yml]\n  tasks:\n{tasks}");
    fs::write(directory.path().join("play.yml"), play).unwrap();
    let vars = directory.path().join("vars.yml");
    if !vars.exists() {
        fs::write(vars, "{}\n").unwrap();
    }
    let inventory = directory.path().join("inv");
    fs::write(&inventory, "[网络]\nhost\n").unwrap();
    let options = Options::default();
    let inventory = inventory.to_string_lossy().into_owned();
    Playing { directory: directory.path(), playbook: "play.yml", inventory: &inventory, extra: Map::new(), options }
        .run()
}

/// The messages of all `debug` tasks, in order.
fn messages(told: &Told) -> Vec<String> {
    let messages = told.results().into_iter().filter_map(|result| result.result.result.get("msg"));
    messages.map(|message| message.to_text().into_owned()).collect()
}

#[test]
fn the_bare_include_takes_tasks() {
    let told = run(
        "- include: more.yml a=1 b='two words'\n\
         - include: more.yml\n  vars: {a: 5}\n\
         - include: more.yml a={{ item }}\n  with_items: [x, y]\n\
         - include: more.yml a=7\n  when: false\n\
         - include: more.yml a=8\n  static: no\n  tags: [t]\n",
        &[("more.yml", "- debug: msg=\"{{ a }} {{ b | default('-') }}\"\n")],
    );
    let shown: Vec<String> = messages(&told).into_iter().filter(|message| message != "All items completed").collect();
    assert_eq!(shown, ["1 two words", "5 -", "x -", "y -", "8 -"]);
}

#[test]
fn conditions_take_any_truth_and_template_marks() {
    let vars = "word: hello\nempty: ''\nitems_there: [1]\nlist_text: \"[{{ word }}]\"\nthree: 3\n";
    for (condition, holds) in [
        ("word", true),
        ("empty", false),
        ("items_there", true),
        ("three", true),
        ("three - 3", false),
        ("nothing | default()", false),
        ("word | regex_search('ell')", true),
        ("word | regex_search('zzz')", false),
        ("\"{{ three == 3 }}\"", true),
        ("\"{{ three }} > 4\"", false),
        ("\"'{{ word }}' == 'hello'\"", true),
        ("word == \"{{ 'hello' }}\"", true),
        ("[word, three == 3]", true),
        ("[word, three == 4]", false),
    ] {
        let told = run(&format!("- debug: msg=x\n  when: {condition}\n"), &[("vars.yml", vars)]);
        assert_eq!(messages(&told).first().is_some_and(|text| text == "x"), holds, "{condition}");
        let warned =
            told.events.iter().any(|event| matches!(event, Event::Warning(text) if text.contains("condition")));
        let is_plain = condition.starts_with("\"'") || condition.starts_with('[');
        assert!(warned || is_plain, "{condition}: {:?}", told.events);
    }
    let told = run(
        "- command: echo hi\n  register: r\n  failed_when: \"'{{ r.stdout }}' != 'hi'\"\n  changed_when: '{{ r.rc > 0 }}'\n",
        &[],
    );
    assert_eq!(told.lines(), ["host command: ok"]);
}

#[test]
fn text_that_spells_a_list_or_map_is_one_to_whoever_wants_one() {
    let vars = r#"
three: 3
list: "[1, 2, {{ three }}]"
map: "{'a': {{ three }}, \"b\": [1]}"
names: |-
  [ {% for name in ['x', 'y', 'x'] %}'{{ name }}'{% if not loop.last %},{% endif %}{% endfor %} ]
none_of_it: "[{% for name in [] %}{% endfor %}]"
body: '{"key": "{{ three }}"}'
"#;
    for (template, expected) in [
        ("{{ list | length }} {{ list[2] }} {{ list | last }} {{ 2 in list }}", "3 3 3 True"),
        ("{{ list | map('string') | join('-') }}", "1-2-3"),
        ("{% for one in list %}{{ one }};{% endfor %}", "1;2;3;"),
        ("{{ list + [4] }}", "[1, 2, 3, 4]"),
        ("{{ list[:2] }}", "[1, 2]"),
        ("{{ map.a }} {{ map['b'] }} {{ map | dict2items | length }} {{ map.keys() | list }}", "3 [1] 2 ['a', 'b']"),
        ("{{ map | combine({'c': 1}) | length }}", "3"),
        ("{{ names | length == names | unique | length }}", "False"),
        ("{{ 'no' if not none_of_it else 'yes' }}", "no"),
        // to whoever wants text it is the text as it was written
        ("{{ body }}", r#"{"key": "3"}"#),
        ("{{ body ~ '!' }}", r#"{"key": "3"}!"#),
        ("{{ list is string }} {{ body.startswith('{') }}", "True True"),
    ] {
        let told = run(
            &format!("- debug:\n    msg: {}\n", serde_json::to_string(&format!("{template} .")).unwrap()),
            &[("vars.yml", vars)],
        );
        assert_eq!(messages(&told), [format!("{expected} .")], "{template}");
    }
    let told = run(
        "- debug: msg='{{ item }}'\n  with_items: '{{ list }}'\n\
         - debug: msg='{{ item }}'\n  loop: '{{ names }}'\n\
         - debug: msg='{{ item.key }}'\n  with_dict: '{{ map }}'\n\
         - set_fact: made=\"[{% for i in list %}{{ i }},{% endfor %}]\"\n\
         - debug: msg='{{ made | sum }}'\n\
         - debug: msg='never'\n  when: none_of_it\n\
         - assert: {that: \"[{{ three }} == 3, true]\"}\n",
        &[("vars.yml", vars)],
    );
    let shown = messages(&told).join(" ");
    assert!(shown.starts_with("1 2 3"), "{shown}");
    for expected in [" x y x ", " a b ", " 6 "] {
        assert!(format!("{shown} ").contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("never"));
}

#[test]
fn arguments_may_be_written_in_every_form() {
    let told = run(
        "- action: debug msg=one\n\
         - local_action: debug msg=two\n\
         - local_action: {module: debug, msg: three}\n\
         - action: {module: debug, args: {msg: four}}\n\
         - debug:\n    msg=five\n    verbosity=0\n\
         - debug: >\n    msg=\"six {{ 'a.b' | replace(\".\", \"-\") }}\"\n    verbosity=0\n\
         - debug:\n  args: {msg: seven}\n\
         - debug: verbosity=0\n  args: {msg: eight}\n\
         - debug: \"{{ {'msg': 'nine'} }}\"\n\
         - debug: {msg: ten, verbosity: '0'}\n\
         - shell: echo \"a=b\" creates=/nowhere\n  args: {chdir: /}\n  register: r\n\
         - debug: msg={{ r.stdout }}\n",
        &[],
    );
    let shown: Vec<String> = messages(&told).into_iter().filter(|text| !text.is_empty()).collect();
    let expected = ["one", "two", "three", "four", "five", "six a-b", "seven", "eight", "nine", "ten", "a=b"];
    assert_eq!(shown, expected);
}

#[test]
fn tests_may_be_written_as_filters() {
    let told = run(
        "- command: 'true'\n  register: good\n\
         - command: 'false'\n  register: bad\n  ignore_errors: true\n\
         - command: 'false'\n  register: left\n  when: false\n\
         - debug: msg=\"{{ good|success }} {{ good|succeeded }} {{ bad|failed }} {{ good|changed }} {{ left|skipped }}\"\n\
         - debug: msg=\"{{ '1.10'|version_compare('1.9', '>') }} {{ 'abc'|match('ab') }} {{ 'abc'|search('c$') }} {{ '1.2' is version_compare('1.2', 'eq') }}\"\n",
        &[],
    );
    let shown = messages(&told);
    let end: Vec<&str> = shown.iter().rev().take(2).map(String::as_str).collect();
    assert_eq!(end, ["True True True True", "True True True True True"]);
}

#[test]
fn regular_expressions_are_pythons_with_a_limit() {
    let told = run(
        "- debug: msg=\"{{ 'PRE_ONE ONE' | regex_replace('(?<!_)ONE', 'x') }} {{ 'aB' | regex_search('(?i)AB') }} {{ 'foobar' | regex_replace('foo(?=bar)', 'X') }} {{ 'a1b' | regex_replace('(?P<n>[0-9])', '<\\\\g<n>>') }}\"\n\
         - debug: msg=\"{{ ('a' * 40) | regex_search('(a+)+$b') }}\"\n  ignore_errors: true\n",
        &[],
    );
    let shown = messages(&told);
    assert_eq!(shown[0], "PRE_ONE x aB Xbar a<1>b");
    assert_eq!(shown.len(), 2);
}

#[test]
fn names_may_be_of_any_script() {
    let told = run(
        "- name: 安装 {{ word }}\n  debug: msg={{ groups['网络'] | first }}\n  tags: [标签]\n\
         - include_tasks: 任务/一.yml\n\
         - name: é\n  debug: {msg: '{{ table[\"键\"] }}'}\n",
        &[("任务/一.yml", "- {name: 一, debug: {msg: 二}}\n"), ("vars.yml", "word: 包\ntable: {键: 值}\n")],
    );
    let shown: Vec<String> = messages(&told);
    assert_eq!(shown, ["host", "二", "值"]);
    assert_eq!(told.lines()[0], "host 安装 包: ok");
}

#[test]
fn what_is_never_reached_need_not_exist() {
    let told = run(
        "- {name: a, win_feature: {name: x}, when: false}\n\
         - {name: b, debug: {msg: \"{{ x | gone_filter }}\"}, when: false}\n\
         - {name: c, debug: {msg: \"{{ broken } }\"}, when: false}\n\
         - {name: d, debug: {msg: end}}\n",
        &[],
    );
    assert_eq!(told.lines(), ["host a: skipped", "host b: skipped", "host c: skipped", "host d: ok"]);
}
