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
