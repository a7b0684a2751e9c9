//! Which value of a variable counts: each level of Ansible's list stands above the one before it
//! (<https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_variables.html#understanding-variable-precedence>).

use super::support::given;

/// The variable that two neighbours of the list set: the lower to `low`, the higher to `high`.
const PAIRS: [(&str, &str, &str); 20] = [
    ("p02", "role defaults", "group variables in the inventory"),
    ("p03", "group variables in the inventory", "group_vars/all beside the inventory"),
    ("p04", "group_vars/all beside the inventory", "group_vars/all beside the playbook"),
    ("p05", "group_vars/all beside the playbook", "group_vars/NAME beside the inventory"),
    ("p06", "group_vars/NAME beside the inventory", "group_vars/NAME beside the playbook"),
    ("p07", "group_vars/NAME beside the playbook", "host variables in the inventory"),
    ("p08", "host variables in the inventory", "host_vars beside the inventory"),
    ("p09", "host_vars beside the inventory", "host_vars beside the playbook"),
    ("ansible_hostname", "host_vars beside the playbook", "facts"),
    ("ansible_nodename", "facts", "vars of the play"),
    ("p12", "vars of the play", "vars_prompt"),
    ("p13", "vars_prompt", "vars_files"),
    ("p14", "vars_files", "vars of the role"),
    ("p15", "vars of the role", "vars of the block"),
    ("p16", "vars of the block", "vars of the task"),
    ("p17", "vars of the task", "include_vars"),
    ("p18", "include_vars", "set_fact"),
    ("p19", "set_fact", "parameters of the role"),
    ("p20", "parameters of the role", "parameters of the include"),
    ("p21", "parameters of the include", "the command line"),
];

#[test]
fn each_level_stands_above_the_one_before_it() {
    let shown: String =
        PAIRS.iter().map(|(name, ..)| format!("{name}={{{{ {name} }}}} ")).collect::<String>().trim_end().to_owned();
    let site = given()
        .file("inv/hosts", "[web]\nhost ansible_connection=local p07=high p08=low\n[web:vars]\np02=high\np03=low\n")
        .file("inv/group_vars/all.yml", "{p03: high, p04: low}\n")
        .file("group_vars/all.yml", "{p04: high, p05: low}\n")
        .file("inv/group_vars/web.yml", "{p05: high, p06: low}\n")
        .file("group_vars/web.yml", "{p06: high, p07: low}\n")
        .file("inv/host_vars/host.yml", "{p08: high, p09: low}\n")
        .file("host_vars/host.yml", "{p09: high, ansible_hostname: low}\n")
        .file(
            "play.yml",
            "\
- hosts: web
  gather_subset: ['!all']
  vars: {ansible_nodename: high, p12: low}
  vars_prompt: [{name: p12, default: high}, {name: p13, default: low}]
  vars_files: [more.yml]
  roles:
    - {role: r, p19: high, p20: low}
",
        )
        .file("more.yml", "{p13: high, p14: low}\n")
        .file("roles/r/defaults/main.yml", "{p02: low}\n")
        .file("roles/r/vars/main.yml", "{p14: high, p15: low}\n")
        .file("roles/r/vars/included.yml", "{p17: high, p18: low}\n")
        .file(
            "roles/r/tasks/main.yml",
            "\
- include_vars: {file: included.yml}
- set_fact: {p18: high, p19: low}
- block:
    - include_tasks: {file: show.yml}
      vars: {p20: high, p21: low}
  vars: {p15: high, p16: low}
",
        )
        .file("roles/r/tasks/show.yml", &format!("- debug: {{msg: '{shown}'}}\n  vars: {{p16: high, p17: low}}\n"));
    let ended = site.run_detached(&["play", "-i", "inv/hosts", "play.yml", "-e", "p21=high"]);
    let line = ended.stdout.lines().find(|line| line.contains("\"msg\"")).unwrap_or_else(|| panic!("{ended:?}"));
    for (name, lower, higher) in PAIRS {
        let got = line.split([' ', '"']).find_map(|word| word.strip_prefix(&format!("{name}="))).unwrap_or_default();
        // facts are what they are
        let is_right = if higher == "facts" { !got.is_empty() && got != "low" } else { got == "high" };
        assert!(is_right, "{higher} stand above {lower}, but `{name}` is `{got}`: {line}");
    }
}
