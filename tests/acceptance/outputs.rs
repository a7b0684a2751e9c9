//! Whole runs on this machine, in each form of output.

use super::support::{Invocation, LOCAL, given};

fn site() -> Invocation {
    let playbook = "\
- name: Site
  hosts: web
  gather_facts: false
  vars:
    password: hunter2
  tasks:
    - name: greet
      debug:
        msg: 'hello {{ inventory_hostname }}'
    - name: look
      command: echo looking
      changed_when: inventory_hostname == 'web2'
      notify: told
    - name: each
      command: 'echo {{ item }}'
      loop: [a, b]
      when: item != 'b'
    - include_tasks: more.yml
    - name: secret
      command: 'echo {{ item }}'
      loop: ['{{ password }}']
      no_log: true
      register: secret
    - name: secret that fails
      command: 'echo {{ password }}'
      failed_when: true
      ignore_errors: true
      no_log: true
    - block:
        - name: stumble
          fail: msg=oh
          when: inventory_hostname == 'web1'
      rescue:
        - name: get up
          debug: msg=again
    - name: stop
      fail: msg=enough
      when: inventory_hostname == 'web2'
  handlers:
    - name: told
      command: echo told
";
    given()
        .file("inv", LOCAL)
        .file("play.yml", playbook)
        .file("more.yml", "- name: more\n  debug: var=inventory_hostname\n")
}

#[test]
fn a_run_prints_what_ansible_playbook_prints() {
    let ended = site().called("ansible-playbook").run(&["-i", "inv", "play.yml"]);
    let censored = "the output has been hidden due to the fact that 'no_log: true' was specified for this result";
    let failed = format!("FAILED! => {{\"censored\": \"{censored}\", \"changed\": true}}");
    let expected = format!(
        r#"
PLAY [Site] ********************************************************************

TASK [greet] *******************************************************************
ok: [web1] => {{
    "msg": "hello web1"
}}
ok: [web2] => {{
    "msg": "hello web2"
}}

TASK [look] ********************************************************************
ok: [web1]
changed: [web2]

TASK [each] ********************************************************************
changed: [web1] => (item=a)
skipping: [web1] => (item=b) 
changed: [web2] => (item=a)
skipping: [web2] => (item=b) 

TASK [include_tasks] ***********************************************************
included: DIR/more.yml for web1, web2

TASK [more] ********************************************************************
ok: [web1] => {{
    "inventory_hostname": "web1"
}}
ok: [web2] => {{
    "inventory_hostname": "web2"
}}

TASK [secret] ******************************************************************
changed: [web1] => (item=(censored due to no_log))
changed: [web2] => (item=(censored due to no_log))

TASK [secret that fails] *******************************************************
fatal: [web1]: {failed}
...ignoring
fatal: [web2]: {failed}
...ignoring

TASK [stumble] *****************************************************************
fatal: [web1]: FAILED! => {{"changed": false, "msg": "oh"}}
skipping: [web2]

TASK [get up] ******************************************************************
ok: [web1] => {{
    "msg": "again"
}}

TASK [stop] ********************************************************************
skipping: [web1]
fatal: [web2]: FAILED! => {{"changed": false, "msg": "enough"}}

PLAY RECAP *********************************************************************
web1                       : ok=8    changed=3    unreachable=0    failed=0    skipped=1    rescued=1    ignored=1   
web2                       : ok=7    changed=4    unreachable=0    failed=1    skipped=1    rescued=0    ignored=1   

"#
    );
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout, expected);
    assert_eq!(ended.code, 2);
}

#[test]
fn reading_ahead_changes_nothing_of_what_is_printed() {
    let site = site();
    let ahead = site.run(&["play", "-i", "inv", "play.yml"]);
    let site = site.variable("TRIMTAB_WINDOW", "1");
    assert_eq!(site.run(&["play", "-i", "inv", "play.yml"]).stdout, ahead.stdout);
}

#[test]
fn secrets_are_in_no_output() {
    let site = site();
    for format in ["ansible", "condensed", "minimal", "json", "jsonl"] {
        let ended = site.run(&["play", "-i", "inv", "play.yml", "--output", format, "-vvv", "--diff"]);
        assert_eq!(ended.code, 2, "{format}");
        assert!(!ended.stdout.contains("hunter2") && !ended.stderr.contains("hunter2"), "{format}: {ended:?}");
    }
}

#[test]
fn json_has_plays_tasks_hosts_and_statistics() {
    let ended = site().run(&["play", "-i", "inv", "play.yml", "--output", "json"]);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let tasks = json["plays"][0]["tasks"].as_array().expect("tasks");
    let names: Vec<&str> = tasks.iter().filter_map(|task| task["task"]["name"].as_str()).collect();
    assert_eq!(
        names,
        ["greet", "look", "each", "include_tasks", "more", "secret", "secret that fails", "stumble", "get up", "stop"]
    );
    assert_eq!(tasks[1]["hosts"]["web1"]["stdout"], "looking");
    assert_eq!(tasks[2]["hosts"]["web2"]["results"][0]["item"], "a");
    assert_eq!(json["stats"]["web2"]["failures"], 1);
    let site = site().variable("ANSIBLE_STDOUT_CALLBACK", "json");
    let ended = site.run(&["play", "-i", "inv", "play.yml"]);
    assert!(serde_json::from_str::<serde_json::Value>(&ended.stdout).is_ok(), "{}", ended.stdout);
}

#[test]
fn json_lines_are_each_an_object() {
    let ended = site().run(&["play", "-i", "inv", "play.yml", "--output", "jsonl"]);
    let events: Vec<serde_json::Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(events.first().map(|event| event["event"].clone()), Some("playbook_started".into()));
    assert_eq!(events.last().map(|event| event["exit_code"].clone()), Some(2.into()));
}

#[test]
fn check_mode_changes_nothing_and_shows_the_difference() {
    let playbook = "\
- hosts: web1
  gather_facts: false
  tasks:
    - name: flag
      file:
        path: '{{ playbook_dir }}/flag'
        state: directory
";
    let site = given().file("inv", LOCAL).file("play.yml", playbook);
    let ended = site.run(&["play", "-CD", "-i", "inv", "play.yml"]);
    assert!(ended.stdout.contains("-    \"state\": \"absent\"\n+    \"state\": \"directory\"\n"), "{}", ended.stdout);
    assert!(ended.stdout.contains("\nchanged: [web1]\n"), "{}", ended.stdout);
    assert!(!site.directory().join("flag").exists());
    site.run(&["play", "-i", "inv", "play.yml"]);
    assert!(site.directory().join("flag").is_dir());
}

#[test]
fn one_module_prints_what_ansible_prints() {
    let site = given().file("inv", LOCAL).called("ansible");
    site.run(&["-i", "inv", "web", "-a", "echo hi"])
        .printed("web1 | CHANGED | rc=0 >>\nhi\nweb2 | CHANGED | rc=0 >>\nhi\n");
    site.run(&["-i", "inv", "web1", "-m", "debug", "-a", "msg='a b'"])
        .printed("web1 | SUCCESS => {\n    \"msg\": \"a b\"\n}\n");
    site.run(&["-i", "inv", "wbe", "-m", "ping"])
        .refused(1, "ERROR! no host matches `wbe`\n  = help: did you mean `web`?\n");
    site.run(&["-i", "inv", "web1", "-o", "-a", "printf 'a\\nb'"]).printed("web1 | CHANGED | rc=0 | (stdout) a\\nb\n");
    site.run(&["-i", "inv", "web1", "-B", "5", "-P", "1", "-a", "echo hi"]).printed("web1 | CHANGED | rc=0 >>\nhi\n");
    let tree = site.run(&["-i", "inv", "web1", "-m", "ping", "--tree", "there"]);
    assert!(tree.code == 5 && tree.stderr.contains("`--output json`"), "{tree:?}");
    site.run(&["-i", "inv", "web", "--list-hosts"]).printed("  hosts (2):\n    web1\n    web2\n");
}

#[test]
fn unreachable_hosts_and_no_hosts_have_ansibles_exit_codes() {
    let inventory = "down ansible_host=127.0.0.1 ansible_port=1\n";
    let playbook = "- hosts: down\n  gather_facts: false\n  tasks:\n    - ping:\n";
    let site = given().file("inv", inventory).file("play.yml", playbook);
    let ended = site.run(&["play", "-i", "inv", "play.yml"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.stdout.contains("\nfatal: [down]: UNREACHABLE! => {"), "{}", ended.stdout);
    let nobody = given().file("inv", inventory).file("play.yml", "- hosts: nobody\n  tasks: []\n");
    let ended = nobody.run(&["play", "-i", "inv", "play.yml"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("\nskipping: no hosts matched\n"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "[WARNING]: Could not match supplied host pattern, ignoring: nobody\n");
}

#[test]
fn a_playbook_behind_one_that_failed_is_not_begun() {
    let play = |task: &str| format!("- hosts: all\n  gather_facts: false\n  tasks:\n    - {task}\n");
    let site = given()
        .file("hosts", LOCAL)
        .file("some-fail.yml", &play("fail: {msg: no}\n      when: inventory_hostname == 'web1'"))
        .file("fine.yml", &play("debug: {msg: was here}"));
    let ended = site.run(&["play", "-i", "hosts", "some-fail.yml", "fine.yml"]);
    assert_eq!(ended.code, 2);
    assert!(!ended.stdout.contains("was here"), "{}", ended.stdout);
    let ended = site.run(&["play", "-i", "hosts", "fine.yml", "some-fail.yml"]);
    assert!(ended.stdout.contains("was here"), "{}", ended.stdout);
}

#[test]
fn colours_are_only_for_those_who_want_them() {
    let site =
        given().file("inv", LOCAL).file("play.yml", "- hosts: web1\n  gather_facts: false\n  tasks:\n    - ping:\n");
    assert!(!site.run(&["play", "-i", "inv", "play.yml"]).stdout.contains('\x1b'));
    let site = site.variable("ANSIBLE_FORCE_COLOR", "true");
    let coloured = site.run(&["play", "-i", "inv", "play.yml"]).stdout;
    assert!(coloured.contains("\x1b[0;32mok: [web1]\x1b[0m"), "{coloured}");
    let site = site.variable("NO_COLOR", "1");
    assert!(!site.run(&["play", "-i", "inv", "play.yml"]).stdout.contains('\x1b'));
}
