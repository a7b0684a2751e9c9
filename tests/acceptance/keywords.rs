//! Every keyword of Ansible does what it says: one small play for each.

use std::os::unix::fs::PermissionsExt;

use trimtab::playbook::keywords::KEYWORDS;

use super::support::given;

/// Two hosts that are this machine, and one that cannot be reached.
const INVENTORY: &str = "\
[web]
a ansible_connection=local
b ansible_connection=local
[other]
far ansible_host=127.0.0.1 ansible_port=1
";

/// What a play proves: the keywords, the play, further words of the command line, what must be printed, what must not.
struct Case {
    proves: &'static [&'static str],
    play: &'static str,
    words: &'static [&'static str],
    printed: &'static [&'static str],
    not_printed: &'static [&'static str],
}

const fn case(proves: &'static [&'static str], play: &'static str, printed: &'static [&'static str]) -> Case {
    Case { proves, play, words: &[], printed, not_printed: &[] }
}

impl Case {
    const fn without(mut self, not_printed: &'static [&'static str]) -> Case {
        self.not_printed = not_printed;
        self
    }

    const fn called(mut self, words: &'static [&'static str]) -> Case {
        self.words = words;
        self
    }
}

const CASES: &[Case] = &[
    case(
        &["any_errors_fatal", "hosts", "gather_facts"],
        "- {hosts: web, gather_facts: false, any_errors_fatal: true, tasks: [{fail: {msg: x}, when: inventory_hostname == 'a'}, {name: second, debug: }]}",
        &["failed=1"],
    )
    .without(&["TASK [second]", "Gathering Facts"]),
    case(
        &["become", "become_exe", "become_flags", "become_method", "become_user"],
        "- {hosts: a, gather_facts: false, tasks: [{command: cat log, args: {chdir: '{{ playbook_dir }}'}, become: true, become_method: sudo, become_user: nobody, become_exe: '{{ playbook_dir }}/fakesudo', become_flags: '-n -E', register: r}, {debug: {msg: '{{ r.stdout }}'}}]}",
        &["as: ", "-E", "-u nobody"],
    ),
    case(
        &["check_mode"],
        "- {hosts: a, gather_facts: false, tasks: [{file: {path: '{{ playbook_dir }}/made', state: directory}, check_mode: true}, {stat: {path: '{{ playbook_dir }}/made'}, register: s}, {debug: {msg: 'there {{ s.stat.exists }}'}}]}",
        &["changed: [a]", "there False"],
    ),
    case(
        &["collections", "roles"],
        "- {hosts: a, gather_facts: false, collections: [acme.site], roles: [web]}",
        &["TASK [acme.site.web : of the collection]"],
    ),
    case(
        &["connection"],
        "- {hosts: far, gather_facts: false, connection: local, tasks: [{ping: }]}",
        &["ok: [far]"],
    ),
    case(
        &["debugger"],
        "- {hosts: a, gather_facts: false, tasks: [{ping: , debugger: never}]}",
        &["ok: [a]"],
    ),
    case(
        &["diff"],
        "- {hosts: a, gather_facts: false, tasks: [{copy: {content: \"new\\n\", dest: '{{ playbook_dir }}/f'}, diff: true}]}",
        &["+new"],
    ),
    case(
        &["environment"],
        "- {hosts: a, gather_facts: false, environment: {WORD: deep}, tasks: [{shell: 'echo $WORD$MORE', environment: {MORE: er}, register: r}, {debug: {msg: '{{ r.stdout }}'}}]}",
        &["deeper"],
    ),
    case(
        &["ignore_errors"],
        "- {hosts: a, gather_facts: false, tasks: [{fail: {msg: x}, ignore_errors: true}, {name: second, debug: }]}",
        &["...ignoring", "TASK [second]", "ignored=1"],
    ),
    case(
        &["ignore_unreachable", "port"],
        "- {hosts: far, gather_facts: false, port: 1, tasks: [{ping: , ignore_unreachable: true}, {name: second, debug: }]}",
        &["UNREACHABLE", "TASK [second]"],
    ),
    case(
        &["module_defaults"],
        "- {hosts: a, gather_facts: false, module_defaults: {debug: {msg: by default}}, tasks: [{debug: }]}",
        &["by default"],
    ),
    case(
        &["name", "tasks"],
        "- {name: the play, hosts: a, gather_facts: false, tasks: [{name: the task, debug: }]}",
        &["PLAY [the play]", "TASK [the task]"],
    ),
    case(
        &["no_log"],
        "- {hosts: a, gather_facts: false, tasks: [{command: echo secretword, no_log: true}, {debug: {msg: secretword2}, no_log: true}]}",
        &["changed: [a]"],
    )
    .without(&["secretword"])
    .called(&["-v"]),
    case(
        &["remote_user"],
        "- {hosts: far, gather_facts: false, remote_user: someone, tasks: [{ping: }]}",
        &["UNREACHABLE"],
    ),
    case(&["user"], "- {hosts: far, gather_facts: false, user: someone, tasks: [{ping: }]}", &["UNREACHABLE"]),
    case(
        &["run_once"],
        "- {hosts: web, gather_facts: false, tasks: [{command: echo x, run_once: true, register: r}, {debug: {msg: 'got {{ r.stdout }}'}}]}",
        &["changed: [a]", "got x"],
    )
    .without(&["changed: [b]"]),
    case(
        &["tags"],
        "- {hosts: a, gather_facts: false, tasks: [{name: one, debug: , tags: [t]}, {name: two, debug: }]}",
        &["TASK [one]"],
    )
    .without(&["TASK [two]"])
    .called(&["-t", "t"]),
    case(
        &["throttle"],
        "- {hosts: web, gather_facts: false, tasks: [{shell: 'mkdir {{ playbook_dir }}/lock && sleep 0.1 && rmdir {{ playbook_dir }}/lock', throttle: 1}]}",
        &["changed: [a]", "changed: [b]"],
    ),
    case(
        &["timeout"],
        "- {hosts: a, gather_facts: false, tasks: [{command: sleep 20, timeout: 1}]}",
        &["failed=1"],
    ),
    case(
        &["vars", "when"],
        "- {hosts: a, gather_facts: false, vars: {x: 1}, tasks: [{debug: {msg: 'x is {{ x }}'}}, {name: skipped, debug: , when: x > 1}]}",
        &["x is 1", "skipping: [a]"],
    ),
    case(
        &["delegate_to", "delegate_facts"],
        "- {hosts: a, gather_facts: false, tasks: [{set_fact: {f: 7}, delegate_to: b, delegate_facts: true}, {debug: {msg: 'f {{ hostvars.b.f }} {{ f is defined }}'}}]}",
        &["ok: [a -> b]", "f 7 False"],
    ),
    case(
        &["notify", "handlers", "listen"],
        "- {hosts: a, gather_facts: false, tasks: [{command: 'true', notify: [one, topic]}], handlers: [{name: one, debug: }, {name: two, debug: , listen: topic}, {name: three, debug: }]}",
        &["RUNNING HANDLER [one]", "RUNNING HANDLER [two]"],
    )
    .without(&["[three]"]),
    case(
        &["fact_path", "gather_subset", "gather_timeout"],
        "- {hosts: a, gather_subset: ['!all', '!min', local], gather_timeout: 5, fact_path: '{{ playbook_dir }}/facts', tasks: [{debug: {msg: 'x {{ ansible_local.own.x }} {{ ansible_mounts is defined }}'}}]}",
        &["Gathering Facts", "x 5 False"],
    ),
    case(
        &["force_handlers"],
        "- {hosts: a, gather_facts: false, force_handlers: true, tasks: [{command: 'true', notify: one}, {fail: {msg: x}}], handlers: [{name: one, debug: }]}",
        &["RUNNING HANDLER [one]", "failed=1"],
    ),
    case(
        &["max_fail_percentage"],
        "- {hosts: web, gather_facts: false, max_fail_percentage: 40, tasks: [{fail: {msg: x}, when: inventory_hostname == 'a'}, {name: second, debug: }]}",
        &["failed=1"],
    )
    .without(&["TASK [second]"]),
    case(
        &["order"],
        "- {hosts: web, gather_facts: false, order: reverse_sorted, tasks: [{debug: {msg: '{{ ansible_play_hosts_all }}'}}]}",
        &["PLAY [web]"],
    ),
    case(
        &["pre_tasks", "post_tasks"],
        "- {hosts: a, gather_facts: false, post_tasks: [{name: last, debug: {msg: '{{ w }}3'}}], tasks: [{set_fact: {w: '{{ w }}2'}}], pre_tasks: [{set_fact: {w: '1'}}]}",
        &["123"],
    ),
    case(
        &["serial"],
        "- {hosts: web, gather_facts: false, serial: 1, tasks: [{debug: {msg: 'batch of {{ ansible_play_batch | length }}'}}]}",
        &["batch of 1"],
    ),
    case(
        &["strategy"],
        "- {hosts: web, gather_facts: false, strategy: free, tasks: [{ping: }]}",
        &["ok: [a]", "ok: [b]"],
    ),
    case(
        &["vars_files", "vars_prompt"],
        "- {hosts: a, gather_facts: false, vars_files: [[gone.yml, more.yml]], vars_prompt: [{name: asked, default: by default}], tasks: [{debug: {msg: '{{ more }} {{ asked }}'}}]}",
        &["from file by default"],
    ),
    case(
        &["block", "rescue", "always"],
        "- {hosts: a, gather_facts: false, tasks: [{block: [{fail: {msg: x}}, {name: never, debug: }], rescue: [{name: repair, debug: }], always: [{name: anyway, debug: }]}]}",
        &["TASK [repair]", "TASK [anyway]", "rescued=1"],
    )
    .without(&["TASK [never]"]),
    case(
        &["action", "local_action", "args"],
        "- {hosts: a, gather_facts: false, tasks: [{action: debug msg=one}, {local_action: debug msg=two}, {debug: , args: {msg: three}}]}",
        &["\"one\"", "ok: [a -> localhost]", "\"two\"", "\"three\""],
    ),
    case(
        &["async", "poll"],
        "- {hosts: a, gather_facts: false, tasks: [{shell: 'echo done', async: 10, poll: 1, register: r}, {debug: {msg: 'is {{ r.stdout }}'}}]}",
        &["is done"],
    ),
    case(
        &["changed_when", "failed_when"],
        "- {hosts: a, gather_facts: false, tasks: [{command: 'true', changed_when: false}, {command: 'false', failed_when: false}]}",
        &["ok=2    changed=1", "failed=0"],
    ),
    case(
        &["delay", "retries", "until", "register"],
        "- {hosts: a, gather_facts: false, tasks: [{shell: 'echo x >> {{ playbook_dir }}/count; wc -l < {{ playbook_dir }}/count', register: r, until: r.stdout | int == 3, retries: 4, delay: 0}, {debug: {msg: 'tries {{ r.attempts }}'}}]}",
        &["tries 3"],
    ),
    case(
        &["loop", "loop_control"],
        "- {hosts: a, gather_facts: false, tasks: [{debug: {msg: '{{ i }}{{ w }}'}, loop: [x, y, z], loop_control: {loop_var: w, index_var: i, label: 'no {{ i }}', pause: 0, extended: true, break_when: i > 0}}]}",
        &["(item=no 0)", "\"1y\""],
    )
    .without(&["2z"]),
];

#[test]
fn every_keyword_has_its_effect() {
    let mut wrong = Vec::new();
    for case in CASES {
        let site = given()
            .file("inv", INVENTORY)
            .file("play.yml", case.play)
            .file("more.yml", "more: from file\n")
            .file("facts/own.fact", "{\"x\": 5}")
            .file("fakesudo", "#!/bin/sh\necho \"as: $*\" >\"$(dirname \"$0\")/log\"\nexec sh\n")
            .file(
                "collections/ansible_collections/acme/site/roles/web/tasks/main.yml",
                "- {name: of the collection, debug: }\n",
            );
        let fake = site.directory().join("fakesudo");
        std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).expect("made executable");
        let words: Vec<&str> = ["play", "-i", "inv", "play.yml"].iter().chain(case.words).copied().collect();
        let ended = site.run_detached(&words);
        let lacks: Vec<&&str> = case.printed.iter().filter(|text| !ended.stdout.contains(**text)).collect();
        let has: Vec<&&str> = case.not_printed.iter().filter(|text| ended.stdout.contains(**text)).collect();
        if !lacks.is_empty() || !has.is_empty() {
            wrong.push(format!("{:?}: lacks {lacks:?}, has {has:?}:\n{}{}", case.proves, ended.stdout, ended.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn no_keyword_is_left_out() {
    let proven: Vec<&str> = CASES.iter().flat_map(|case| case.proves).copied().collect();
    let left: Vec<&str> = KEYWORDS.iter().map(|keyword| keyword.name).filter(|name| !proven.contains(name)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn settings_stand_in_for_keywords() {
    let site = given()
        .file("inv", INVENTORY)
        .file(
            "ansible.cfg",
            "[defaults]\nany_errors_fatal = yes\nno_log = yes\ntask_timeout = 1\ngather_subset = !all,!min,local\nfact_path = facts\n",
        )
        .file("facts/own.fact", "{\"x\": 5}")
        .file(
            "play.yml",
            "- hosts: web\n  tasks:\n    - {debug: {msg: secretword}}\n    - {command: sleep 20, when: inventory_hostname == 'a'}\n    - {name: second, debug: }\n\
             - hosts: web\n  no_log: false\n  tasks:\n    - {debug: {msg: 'mounts {{ ansible_mounts is defined }}'}}\n",
        );
    let ended = site.run(&["play", "-i", "inv", "play.yml"]);
    assert!(!ended.stdout.contains("secretword") && !ended.stdout.contains("TASK [second]"), "{ended:?}");
    assert!(ended.stdout.contains("failed=1"), "{ended:?}");
}
