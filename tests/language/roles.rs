//! The shipped roles: what their files say of their variables agrees.

use std::collections::BTreeSet;
use std::path::Path;

use trimtab::source::Source;
use trimtab::value::Value;

const ROLES: [&str; 6] = ["firewall", "io-scheduler", "vm", "nic-irq", "numa", "bios-checklist"];

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml(path: &str) -> Value {
    trimtab::yaml::load(&Source::new(path, read(path))).unwrap().unwrap().to_value()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_map().unwrap().keys().map(|key| key.to_text().into_owned()).collect()
}

fn options(role: &str) -> Value {
    let specs = yaml(&format!("roles/{role}/meta/argument_specs.yml"));
    specs.get("argument_specs").unwrap().get("main").unwrap().get("options").unwrap().clone()
}

#[test]
fn every_variable_has_a_default_a_type_and_a_word_in_the_readme() {
    for role in ROLES {
        let defaults = keys(&yaml(&format!("roles/{role}/defaults/main.yml")));
        let options = options(role);
        assert_eq!(defaults, keys(&options), "{role}: defaults and argument_specs");
        let readme = read(&format!("roles/{role}/README.md"));
        let prefix = role.replace('-', "_");
        for name in defaults {
            let rest =
                name.strip_prefix(&prefix).unwrap_or_else(|| panic!("{role}: {name} does not begin with {prefix}"));
            assert!(readme.contains(&format!("`{name}`")) || readme.contains(&format!("`{rest}`")), "{role}: {name}");
            let option = options.get(&name).unwrap();
            assert!(option.get("type").is_some() && option.get("description").is_some(), "{role}: {name}");
        }
        for heading in ["## What it does", "## Variables", "differently", "## How to check", "## How to undo"] {
            assert!(readme.contains(heading), "{role}: {heading}");
        }
    }
}

#[test]
fn defaults_in_two_places_are_the_same() {
    for role in ROLES {
        let defaults = yaml(&format!("roles/{role}/defaults/main.yml"));
        let options = options(role);
        for (name, option) in options.as_map().unwrap() {
            let Some(stated) = option.get("default") else { continue };
            assert_eq!(defaults.get(&name.to_text()), Some(stated), "{role}: {}", name.to_text());
        }
    }
}

#[test]
fn defaults_are_those_of_the_reports() {
    let vm = yaml("roles/vm/defaults/main.yml");
    let number = |name: &str| vm.get(name).cloned();
    assert_eq!(number("vm_dirty_ratio"), Some(5.into()));
    assert_eq!(number("vm_swappiness"), Some(1.into()));
    assert_eq!(number("vm_network"), Some(false.into()), "the report left them unchanged");
    let io = yaml("roles/io-scheduler/defaults/main.yml");
    assert_eq!(io.get("io_scheduler_nr_requests"), Some(&2048.into()));
    let nic = yaml("roles/nic-irq/defaults/main.yml");
    assert_eq!(nic.get("nic_irq_queues"), Some(&8.into()));
    assert_eq!(nic.get("nic_irq_receive"), Some(&"off".into()));
}

#[test]
fn every_role_has_a_playbook_and_stands_in_the_site() {
    let site = yaml("playbooks/site.yml");
    let roles = site.as_list().unwrap()[0].get("roles").unwrap().clone();
    let names: Vec<String> =
        roles.as_list().unwrap().iter().map(|entry| entry.get("role").unwrap().to_text().into_owned()).collect();
    assert_eq!(names, ROLES);
    for role in ROLES {
        let playbook = yaml(&format!("playbooks/{role}.yml"));
        let own = playbook.as_list().unwrap()[0].get("roles").unwrap().clone();
        assert_eq!(own.as_list().unwrap(), &[Value::from(role)], "{role}");
    }
}
