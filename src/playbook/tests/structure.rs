//! Plays, blocks, tasks: what stands where, and what is inherited.

use super::*;
use crate::value::Value;

#[test]
fn the_ways_to_write_an_action() {
    let cases: &[(&str, &str, &str)] = &[
        ("debug: {msg: hi}", "debug", "{'msg': 'hi'}"),
        ("debug: msg=hi", "debug", "{'msg': 'hi'}"),
        ("debug:\n        msg='a b'\n        verbosity=1", "debug", "{'msg': 'a b', 'verbosity': '1'}"),
        ("action: debug msg='a b'", "debug", "{'msg': 'a b'}"),
        ("action: {module: debug, msg: hi}", "debug", "{'msg': 'hi'}"),
        ("action: {module: debug msg=a, args: {verbosity: 1}}", "debug", "{'verbosity': 1, 'msg': 'a'}"),
        ("local_action: debug msg=hi", "debug", "{'msg': 'hi'}"),
        ("ansible.builtin.debug:", "ansible.builtin.debug", "{}"),
        ("shell: echo a=b creates=/x", "shell", "{'creates': '/x', '_raw_params': 'echo a=b'}"),
        ("shell: a | b\n      args: {chdir: /tmp}", "shell", "{'chdir': '/tmp', '_raw_params': 'a | b'}"),
        ("command: ls chdir=/a\n      args: {chdir: /b}", "command", "{'chdir': '/a', '_raw_params': 'ls'}"),
        ("some.where.thing: {a: 1}", "some.where.thing", "{'a': 1}"),
        ("set_fact: {'{{ k }}': v}", "set_fact", "{'{{ k }}': 'v'}"),
        ("meta: noop", "meta", "{'free_form': 'noop'}"),
    ];
    for (text, action, args) in cases {
        let play = tasks(&format!("    - {text}\n")).play();
        let task = &flat(&play.tasks)[0];
        let name = match &task.action {
            TaskAction::Module(module) => module.bare_name(),
            TaskAction::Unknown(name) => name.rsplit_once("builtin.").map_or(name.as_str(), |(_, bare)| bare),
            TaskAction::Template(_) => "template",
        };
        assert_eq!(name, action.rsplit_once("builtin.").map_or(*action, |(_, bare)| bare), "{text}");
        assert_eq!(Value::map(task.args.clone()).to_repr(), *args, "{text}");
        let delegated = task.settings.delegate_to.as_ref().map(|host| host.value.to_text().into_owned());
        assert_eq!(delegated.as_deref(), text.starts_with("local_action").then_some("localhost"));
    }
}

#[test]
fn an_action_or_its_arguments_may_be_templates() {
    let play = tasks("    - action: '{{ kind }} name=x'\n    - debug:\n      args: '{{ more }}'\n").play();
    let found = flat(&play.tasks);
    assert!(matches!(&found[0].action, TaskAction::Template(name) if name.value.to_text() == "{{ kind }}"));
    assert_eq!(found[0].args.get("name"), Some(&"x".into()));
    assert_eq!(found[1].args_template.as_ref().unwrap().value.to_text(), "{{ more }}");
}

#[test]
fn keywords_are_inherited_as_ansible_does() {
    let project = Project::new(&[(
        "play.yml",
        "
- hosts: all
  become: true
  tags: play
  environment: {A: 1}
  vars: {p: 1}
  tasks:
    - name: outer
      when: a
      tags: [b1]
      vars: {v: block}
      become_user: db
      environment: {B: 2}
      notify: from block
      block:
        - name: inner
          when: [b, c]
          tags: t1, t2
          vars: {v: task}
          become: false
          environment: {C: 3}
          debug:
        - block:
            - debug:
              notify: own
          when: d
",
    )]);
    let play = project.play();
    assert_eq!(play.vars.get("p"), Some(&1.into()));
    let tasks = flat(&play.tasks);
    let settings = &tasks[0].settings;
    assert_eq!(texts(&settings.when), "a, b, c");
    assert_eq!(texts(&settings.tags), "play, b1, t1, t2");
    assert_eq!(texts(&settings.environment), "{'A': 1}, {'B': 2}, {'C': 3}");
    assert_eq!(settings.become_.as_ref().unwrap().value, Value::Bool(false));
    assert_eq!(settings.become_user.as_ref().unwrap().value.to_text(), "db");
    assert_eq!(settings.block_vars.len(), 1);
    assert_eq!(settings.task_vars.as_ref().unwrap().get("v"), Some(&"task".into()));
    assert_eq!(texts(&tasks[0].notify), "from block");
    assert_eq!(texts(&tasks[1].settings.when), "a, d");
    assert_eq!(texts(&tasks[1].notify), "own");
    assert_eq!(tasks[1].settings.become_.as_ref().unwrap().value, Value::Bool(true));
}

#[test]
fn what_imports_say_holds_for_what_they_import() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  tasks:
    - import_tasks: sub/a.yml
      when: w
      tags: t
      vars: {x: 1}
    - ansible.builtin.import_tasks:
        file: sub/b.yml
    - include: sub/b.yml y=2
      when: old
    - import_tasks: file=sub/b.yml
",
        ),
        ("sub/a.yml", "- import_tasks: b.yml\n- debug:\n  name: a\n  when: own\n"),
        ("sub/b.yml", "- debug:\n  name: b\n"),
    ]);
    let play = project.play();
    assert_eq!(names(&play.tasks), "b, a, b, b, b");
    let tasks = flat(&play.tasks);
    assert_eq!(texts(&tasks[1].settings.when), "w, own");
    assert_eq!(texts(&tasks[0].settings.tags), "t");
    assert_eq!(tasks[0].settings.block_vars[0].get("x"), Some(&1.into()));
    assert_eq!(tasks[0].directory, project.path().join("sub"));
    assert_eq!(texts(&tasks[3].settings.when), "old");
    assert_eq!(tasks[3].settings.block_vars[0].get("y"), Some(&"2".into()));
}

#[test]
fn includes_hand_on_what_is_around_them_and_apply() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  become: true
  tasks:
    - when: around
      block:
        - include_tasks:
            file: sub/a.yml
            apply: {tags: [applied], vars: {av: 1}, become_user: db}
          when: own
          tags: include
          vars: {iv: 1}
",
        ),
        ("sub/a.yml", "- debug:\n  when: inner\n- include_tasks: b.yml\n"),
        ("sub/b.yml", "- debug:\n"),
    ]);
    let play = project.play();
    let include = flat(&play.tasks).remove(0);
    assert!(include.is_include());
    assert_eq!(Value::map(include.args.clone()).to_repr(), "{'file': 'sub/a.yml'}");
    assert_eq!(texts(&include.settings.when), "around, own");
    assert_eq!(include.settings.include_params.len(), 1);
    let params = Arc::new(crate::value::object([("item", 1.into())]));
    let load = || load_tasks("sub/a.yml", &include, &play, &params, &project.options).unwrap();
    let included = load();
    let tasks = flat(&included.items);
    assert_eq!(texts(&tasks[0].settings.when), "around, inner");
    assert_eq!(texts(&tasks[0].settings.tags), "applied");
    assert_eq!(tasks[0].settings.become_user.as_ref().unwrap().value.to_text(), "db");
    assert!(tasks[0].settings.become_.is_some());
    assert_eq!(tasks[0].settings.block_vars[0].get("av"), Some(&1.into()));
    let params: Vec<_> = tasks[0].settings.include_params.iter().map(|map| Value::Map(map.clone()).to_repr()).collect();
    assert_eq!(params, ["{'iv': 1}", "{'item': 1}"]);
    // the same include gives the same tasks; one within looks beside its own file
    assert!(Arc::ptr_eq(&included, &load()));
    let nested = load_tasks("b.yml", &tasks[1], &play, &Arc::default(), &project.options).unwrap();
    assert_eq!(nested.items.len(), 1);
}

#[test]
fn playbooks_are_imported_with_their_keywords() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- import_playbook: more/site.yml
  when: w
  tags: t
  vars: {x: import, y: 1}
- ansible.builtin.import_playbook: more/site.yml
- hosts: last
",
        ),
        ("more/site.yml", "- hosts: web\n  vars: {x: play}\n  tasks:\n    - import_tasks: a.yml\n"),
        ("more/a.yml", "- debug:\n  when: own\n"),
    ]);
    let plays = project.load().unwrap();
    let hosts: Vec<_> = plays.iter().map(|play| play.hosts.value.to_text().into_owned()).collect();
    assert_eq!(hosts, ["web", "web", "last"]);
    assert_eq!(plays[0].vars.get("x"), Some(&"import".into()));
    assert_eq!(plays[1].vars.get("x"), Some(&"play".into()));
    assert_eq!(texts(&plays[0].settings.when), "w");
    let task = &flat(&plays[0].tasks)[0];
    assert_eq!((texts(&task.settings.when), texts(&task.settings.tags)), ("w, own".to_owned(), "t".to_owned()));
    assert_eq!(plays[0].directory, project.path().join("more"));
}

#[test]
fn a_play_may_be_nearly_empty() {
    for text in [
        "- hosts: all\n",
        "- hosts: [a, b]\n  tasks:\n  handlers:\n  roles:\n  vars:\n  tags:\n",
        "- hosts: all\n  tasks: []\n",
    ] {
        let play = Project::new(&[("play.yml", text)]).play();
        assert!(play.tasks.is_empty() && play.handlers.is_empty() && play.roles.is_empty());
    }
}

#[test]
fn the_keywords_of_a_play() {
    let play = Project::new(&[(
        "play.yml",
        "
- hosts: all
  gather_facts: no
  serial: [1, 30%, '{{ n }}']
  strategy: free
  order: sorted
  max_fail_percentage: 10%
  user: admin
  vars_files: [a.yml, [b.yml, c.yml]]
  vars_prompt:
    - {name: secret, prompt: Say it, private: no, default: x, encrypt: sha512_crypt}
",
    )])
    .play();
    assert_eq!(texts(&play.serial), "1, 30%, {{ n }}");
    assert_eq!(texts(&play.vars_files), "a.yml, ['b.yml', 'c.yml']");
    assert_eq!(play.settings.remote_user.as_ref().unwrap().value.to_text(), "admin");
    let prompt = &play.vars_prompt[0];
    assert_eq!(
        (prompt.name.as_str(), prompt.private, prompt.encrypt.as_deref()),
        ("secret", false, Some("sha512_crypt"))
    );
}

#[test]
fn loops_of_both_kinds() {
    let play = tasks(
        "
    - debug:
      loop: [1, 2]
      loop_control: {loop_var: n, label: '{{ n }}', pause: 0.5, break_when: n == 1}
    - debug:
      with_community.general.flattened: '{{ list }}'
",
    )
    .play();
    let found = flat(&play.tasks);
    let looping = found[0].looping.as_ref().unwrap();
    assert_eq!(looping.lookup, None);
    assert_eq!(looping.control.loop_var, Some("n".into()));
    assert_eq!(texts(&looping.control.break_when), "n == 1");
    assert_eq!(found[1].looping.as_ref().unwrap().lookup.as_deref(), Some("community.general.flattened"));
}

#[test]
fn handlers_are_tasks_wherever_they_come_from() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  tasks: [{debug: , notify: [a, '{{ b }}']}]
  handlers:
    - {name: a, debug: , listen: [topic, other]}
    - when: w
      block:
        - {name: b, debug: }
    - import_tasks: more.yml
    - {name: late, include_tasks: more.yml}
",
        ),
        ("more.yml", "- {name: c, debug: }\n"),
    ]);
    let play = project.play();
    assert_eq!(names(&play.handlers), "a, b, c, late");
    let handlers: Vec<_> =
        play.handlers.iter().map(|item| matches!(item, Item::Task(task) if task.is_handler)).collect();
    assert_eq!(handlers, [true; 4]);
    assert_eq!(texts(&flat(&play.handlers)[0].listen), "topic, other");
    assert_eq!(texts(&flat(&play.handlers)[1].settings.when), "w");
}
