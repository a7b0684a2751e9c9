//! What can be looked at without running anything.

use super::support::{Invocation, LOCAL, given};

fn site() -> Invocation {
    let playbook = "\
- name: First
  hosts: web
  tags: [site]
  tasks:
    - name: greet
      debug: msg=hi
      tags: [a, b]
    - block:
        - command: ls
      rescue:
        - name: not listed
          debug:
- hosts: web1,web2
  tasks: []
";
    given().file("inv", LOCAL).file("play.yml", playbook)
}

#[test]
fn hosts_tasks_and_tags_are_listed_as_ansible_playbook_lists_them() {
    let listed = site().run(&["play", "-i", "inv", "play.yml", "--list-hosts", "--list-tasks", "--list-tags"]);
    listed.printed(
        "
playbook: play.yml

  play #1 (web): First\tTAGS: [site]
    pattern: ['web']
    hosts (2):
      web1
      web2
    tasks:
      greet\tTAGS: [a, b, site]
      command\tTAGS: [site]
      TASK TAGS: [a, b, site]

  play #2 (web1,web2): web1,web2\tTAGS: []
    pattern: ['web1,web2']
    hosts (2):
      web1
      web2
    tasks:
      TASK TAGS: []
",
    );
}

#[test]
fn tags_and_limits_choose_what_is_listed() {
    let listed =
        site().run(&["play", "-i", "inv", "play.yml", "--list-tasks", "--list-hosts", "-t", "a", "-l", "web2"]);
    assert!(listed.stdout.contains("    hosts (1):\n      web2\n    tasks:\n      greet\t"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("command"), "{}", listed.stdout);
}

#[test]
fn a_syntax_check_names_the_playbook() {
    site().run(&["play", "-i", "inv", "play.yml", "--syntax-check"]).printed("\nplaybook: play.yml\n");
}

#[test]
fn an_inventory_is_shown_as_ansible_inventory_shows_it() {
    let inventory = "\
lone ansible_host=10.0.0.9
[web]
h1 a=1 b=\"x y\"
h2
[db]
h2
h3
[prod:children]
web
db
[prod:vars]
zone=eu
";
    let site =
        given().file("inv.ini", inventory).file("group_vars/web.yml", "gv: [1, 2]\n").called("ansible-inventory");
    site.run(&["-i", "inv.ini", "--graph"]).printed(
        "\
@all:
  |--@ungrouped:
  |  |--lone
  |--@prod:
  |  |--@web:
  |  |  |--h1
  |  |  |--h2
  |  |--@db:
  |  |  |--h2
  |  |  |--h3
",
    );
    site.run(&["-i", "inv.ini", "--host", "h1"]).printed(
        "\
{
    \"a\": 1,
    \"b\": \"x y\",
    \"gv\": [
        1,
        2
    ],
    \"zone\": \"eu\"
}
",
    );
    site.run(&["-i", "inv.ini", "--list", "--limit", "h3"]).printed(
        "\
{
    \"_meta\": {
        \"hostvars\": {
            \"h3\": {
                \"zone\": \"eu\"
            }
        }
    },
    \"all\": {
        \"children\": [
            \"ungrouped\",
            \"prod\"
        ]
    },
    \"db\": {
        \"hosts\": [
            \"h3\"
        ]
    },
    \"prod\": {
        \"children\": [
            \"web\",
            \"db\"
        ]
    }
}
",
    );
    site.run(&["-i", "inv.ini", "--list", "--yaml"]).printed(
        "\
all:
  children:
    prod:
      children:
        db:
          hosts:
            h2: {}
            h3:
              zone: eu
        web:
          hosts:
            h1:
              a: 1
              b: x y
              gv: &id001
              - 1
              - 2
              zone: eu
            h2:
              gv: *id001
              zone: eu
    ungrouped:
      hosts:
        lone:
          ansible_host: 10.0.0.9
",
    );
    site.run(&["-i", "inv.ini", "--host", "h4"])
        .refused(5, "ERROR! there is no host `h4`\n  = help: did you mean `h1`?\n");
}

#[test]
fn documentation_comes_from_the_tables() {
    let site = given();
    let listed = site.run(&["doc", "--list"]);
    assert!(listed.stdout.lines().any(|line| line.starts_with("ansible.builtin.debug ")), "{}", listed.stdout);
    let debug = site.run(&["doc", "debug"]);
    assert!(debug.stdout.starts_with("ansible.builtin.debug (module)\n"), "{}", debug.stdout);
    let json: serde_json::Value = serde_json::from_str(&site.run(&["doc", "--json", "debug"]).stdout).expect("JSON");
    assert!(json["ansible.builtin.debug"]["options"]["msg"].is_object());
    for (kind, name) in
        [("filter", "to_json"), ("test", "defined"), ("lookup", "file"), ("keyword", "when"), ("setting", "forks")]
    {
        let about = site.run(&["doc", "-t", kind, name]);
        assert!(about.stdout.starts_with(&format!("{name} ({kind})\n")), "{kind} {name}: {about:?}");
    }
    site.run(&["doc", "debgu"]).refused(5, "error: there is nothing about `debgu`\n  = help: did you mean `debug`?\n");
}

#[test]
fn an_exported_inventory_keeps_variables_where_they_are_written() {
    let inventory = "[web]\nweb1 own=1\n[web:vars]\nport=80\n[all:vars]\nall=yes\n";
    let site = given().file("inv", inventory);
    let list = |export: &[&str]| {
        let words = [&["inventory", "-i", "inv", "--list"], export].concat();
        serde_json::from_str::<serde_json::Value>(&site.run(&words).stdout).expect("JSON")
    };
    let exported = list(&["--export"]);
    assert_eq!(exported["_meta"]["hostvars"]["web1"], serde_json::json!({"own": 1}));
    assert_eq!(exported["web"]["vars"], serde_json::json!({"port": 80}));
    assert_eq!(exported["all"]["vars"], serde_json::json!({"all": "yes"}));
    let merged = list(&[]);
    assert_eq!(merged["_meta"]["hostvars"]["web1"], serde_json::json!({"all": "yes", "own": 1, "port": 80}));
    assert!(merged["web"].get("vars").is_none());
}

#[test]
fn under_ansibles_names_an_inventory_that_cannot_be_read_is_a_warning() {
    let bad = "all:\n  hosts:\n    1234: {}\n";
    let site = || given().file("bad.yml", bad).called("ansible-inventory");
    let list = ["-i", "bad.yml", "-i", "web1,", "--list"];
    let ended = site().run(&list);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("web1"), "{ended:?}");
    assert!(ended.stderr.contains("Failed to parse bad.yml with yaml plugin"), "{ended:?}");
    assert!(ended.stderr.contains("Host pattern 1234 must be a string"), "{ended:?}");
    assert_ne!(site().variable("ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "true").run(&list).code, 0);
    let words = ["inventory", "-i", "bad.yml", "-i", "web1,", "--list"];
    assert_ne!(given().file("bad.yml", bad).run(&words).code, 0, "trimtab itself refuses it");
    let none = given().called("ansible").run(&["-i", "web[1:5]", "-m", "ping", "all"]);
    assert_eq!(none.code, 0, "{none:?}");
    assert!(none.stderr.contains("No inventory was parsed"), "{none:?}");
}

#[test]
fn names_of_groups_are_altered_if_asked() {
    let groups = |chars: Option<&str>| {
        let site = given().file("inv", "[web-1]\na\n").called("ansible-inventory");
        let site = match chars {
            Some(chars) => site.variable("ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS", chars),
            None => site,
        };
        let ended = site.run(&["-i", "inv", "--list"]);
        (ended.stdout.contains("web_1"), ended.stderr.contains("Invalid characters were found in group names"))
    };
    assert_eq!(groups(None), (false, true));
    assert_eq!(groups(Some("never")), (false, true));
    assert_eq!(groups(Some("always")), (true, true));
    assert_eq!(groups(Some("ignore")), (false, false));
    assert_eq!(groups(Some("silently")), (true, false));
}

#[test]
fn an_executable_beside_the_playbook_is_a_module() {
    let module = "#!/bin/sh\n. \"$1\"\necho noise\nprintf '{\"changed\": true, \"msg\": \"to %s\"}' \"$whom\"\n";
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks:\n    - greet: {whom: all of you}\n      register: said\n    \
                    - debug: var=said.msg\n";
    let site = given().file("play.yml", playbook).file("library/greet.sh", module);
    let ended = site.run(&["play", "-i", "web1,", "-c", "local", "play.yml"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("\"said.msg\": \"to all of you\""), "{ended:?}");
    let checked = site.run(&["play", "-i", "web1,", "-c", "local", "--check", "play.yml"]);
    assert!(checked.stdout.contains("skipping: [web1]"), "what it would do is not known: {checked:?}");
    let elsewhere = given().file("play.yml", playbook).file("more/greet.sh", module);
    let ended = elsewhere.run(&["play", "-i", "web1,", "-c", "local", "-M", "more", "play.yml"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let python = "#!/usr/bin/python3\nfrom ansible.module_utils.basic import AnsibleModule\n";
    let refused = given().file("play.yml", playbook).file("library/greet.py", python);
    let ended = refused.run(&["play", "-i", "web1,", "-c", "local", "play.yml"]);
    assert!(ended.code != 0 && ended.stderr.contains("Ansible's own libraries"), "{ended:?}");
}

#[test]
fn variables_are_shown_in_the_tree_and_with_their_groups() {
    let site = given()
        .file("hosts", "[web]\na p=1\nb\n[web:vars]\nw=[1,2]\n")
        .file("group_vars/web.yml", "k: {n: 1}\n")
        .file("host_vars/a.yml", "hv: t\n")
        .called("ansible-inventory");
    site.run(&["-i", "hosts", "--graph", "web", "--vars"]).printed(
        "@web:\n  |--a\n  |  |--{hv = t}\n  |  |--{k = {'n': 1}}\n  |  |--{p = 1}\n  |  |--{w = [1, 2]}\n  |--b\n  |  |--{k = {'n': \
         1}}\n  |  |--{w = [1, 2]}\n  |--{k = {'n': 1}}\n  |--{w = [1, 2]}\n",
    );
    let ended = site.run(&["-i", "hosts", "--list", "--export"]);
    let shown: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(shown["_meta"]["hostvars"], serde_json::json!({"a": {"hv": "t", "p": 1}}));
    assert_eq!(shown["web"]["vars"], serde_json::json!({"k": {"n": 1}, "w": [1, 2]}));
    let ended = site.run(&["-i", "hosts", "--list", "--toml"]);
    assert_eq!(ended.code, 5, "{ended:?}");
}
