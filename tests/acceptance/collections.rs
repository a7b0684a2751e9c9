//! Collections as directories: roles, playbooks and names in them.

use super::support::{LOCAL, given};

#[test]
fn a_playbook_of_a_collection_runs_by_its_full_name() {
    let site = given()
        .file("inv", LOCAL)
        .file("ansible.cfg", "[defaults]\ncollections_path = mine\n")
        .file(
            "mine/ansible_collections/acme/site/playbooks/all.yml",
            "- hosts: web1\n  gather_facts: false\n  roles: [web]\n",
        )
        .file(
            "mine/ansible_collections/acme/site/roles/web/tasks/main.yml",
            "- debug: {msg: '{{ [role_name, ansible_role_name, ansible_collection_name] | join(\" \") }}'}\n\
             - include_role: {name: base}\n\
             - ansible.builtin.include_role: {name: acme.site.base}\n\
             - ansible.builtin.sysctl: {name: kernel.ostype, value: Linux}\n  when: false\n",
        )
        .file(
            "mine/ansible_collections/acme/site/roles/base/tasks/main.yml",
            "- debug: {msg: '{{ ansible_parent_role_names }} {{ lookup(\"file\", \"word\") }}'}\n",
        )
        .file("mine/ansible_collections/acme/site/roles/base/files/word", "of base");
    let ended = site.run(&["play", "-i", "inv", "acme.site.all"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for expected in ["web acme.site.web acme.site", "['acme.site.web'] of base"] {
        assert!(ended.stdout.contains(expected), "{expected}: {}", ended.stdout);
    }
    assert_eq!(ended.stdout.matches("of base").count(), 2);
    let elsewhere = site.run(&["check", "acme.site.all"]);
    assert!(elsewhere.stdout.contains("verdict: ready"), "{elsewhere:?}");
    let unknown = site.run(&["play", "-i", "inv", "acme.site.none"]);
    assert!(unknown.stderr.contains("there is no playbook `acme.site.none`"), "{unknown:?}");
}

#[test]
fn the_environment_says_where_collections_are() {
    let site = given()
        .file("inv", LOCAL)
        .file("play.yml", "- hosts: web1\n  gather_facts: false\n  roles: [acme.site.web]\n")
        .file("there/ansible_collections/acme/site/roles/web/tasks/main.yml", "- debug: {msg: found}\n");
    for (variable, path) in
        [("ANSIBLE_COLLECTIONS_PATH", "there"), ("ANSIBLE_COLLECTIONS_PATHS", "x:there/ansible_collections")]
    {
        let site = given()
            .file("inv", LOCAL)
            .file("play.yml", "- hosts: web1\n  gather_facts: false\n  roles: [acme.site.web]\n")
            .file("there/ansible_collections/acme/site/roles/web/tasks/main.yml", "- debug: {msg: found}\n")
            .variable(variable, path);
        let ended = site.run(&["play", "-i", "inv", "play.yml"]);
        assert_eq!(ended.code, 0, "{variable}: {ended:?}");
    }
    let ended = site.run(&["play", "-i", "inv", "play.yml"]);
    assert!(ended.stderr.contains("the collection `acme.site` is not in"), "{ended:?}");
}
