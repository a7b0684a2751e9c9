//! Inventories as Ansible reads them: groups, types of values, merge order, patterns.

use serde_json::{Value as Json, json};
use trimtab::inventory::{HostId, Inventory, load};
use trimtab::value::Map;

use crate::goldens::{of_kind, text};

/// Writes the recorded inventory to a file and loads it.
fn load_text(name: &str, text: &str) -> Inventory {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    std::fs::write(&file, text).unwrap();
    load(&[file.to_str().unwrap()]).unwrap()
}

fn names(inventory: &Inventory, hosts: &[HostId]) -> Vec<String> {
    hosts.iter().map(|host| inventory.host(*host).name.to_string()).collect()
}

fn variables(inventory: &Inventory, host: HostId) -> Json {
    let mut merged = Map::new();
    for (_, layer) in inventory.host_layers(host).unwrap() {
        merged.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    for own in ["inventory_file", "inventory_dir"] {
        merged.shift_remove(own);
    }
    let mut json = trimtab::value::Value::map(merged).to_json();
    json["inventory_hostname"] = json!(inventory.host(host).name.as_ref());
    json["inventory_hostname_short"] = json!(inventory.host(host).short_name());
    json["group_names"] = inventory.group_names(host).iter().map(|name| name.as_ref()).collect::<Vec<_>>().into();
    json
}

fn compare(inventory: &Inventory, expected: &Json) {
    let groups: Json = inventory
        .groups()
        .map(|(id, group)| (group.name.to_string(), Json::from(names(inventory, &inventory.group_hosts(id)))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(groups, expected["groups"]);
    let hosts = expected["hostvars"].as_object().unwrap();
    assert_eq!(inventory.hosts().count(), hosts.len());
    for (name, expected) in hosts {
        let host = inventory.find_host(name).unwrap();
        assert_eq!(variables(inventory, host), *expected, "{name}");
    }
    for (pattern, expected) in expected["patterns"].as_object().unwrap() {
        let selection = inventory.select(&[pattern]).unwrap();
        assert_eq!(Json::from(names(inventory, &selection.hosts)), *expected, "{pattern}");
    }
}

#[test]
fn inventories_read_as_in_ansible() {
    for case in of_kind("inventories").iter().flat_map(|golden| &golden.cases) {
        compare(&load_text(text(case, "file"), text(case, "text")), case);
    }
}
