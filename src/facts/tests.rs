//! The whole script on the shells of this machine.

use std::process::Command;
use std::time::Instant;

use super::*;
use crate::value::Value;

fn gathered(shell: &[&str]) -> Option<Map> {
    let groups: Vec<&Group> = GROUPS.iter().collect();
    let begun = Instant::now();
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &script(&groups, &Options::default())])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    assert!(output.status.success(), "{shell:?}");
    assert!(begun.elapsed().as_secs() < 20, "{shell:?} took {:?}", begun.elapsed());
    Some(parse(&groups, &String::from_utf8_lossy(&output.stdout)))
}

#[test]
fn every_shell_gathers_the_same_facts() {
    let shells = [&["dash"][..], &["bash"], &["busybox", "sh"]];
    let all: Vec<(&[&str], Map)> =
        shells.into_iter().filter_map(|shell| gathered(shell).map(|facts| (shell, facts))).collect();
    assert!(!all.is_empty());
    for (shell, facts) in &all {
        for name in ["system", "kernel", "architecture", "hostname", "distribution", "os_family", "user_id", "pkg_mgr"]
        {
            assert!(!known(facts, name).is_empty(), "{shell:?}: {name}");
        }
        for name in ["memtotal_mb", "processor_vcpus"] {
            let number = facts.get(format!("ansible_{name}").as_str()).and_then(Value::as_int);
            assert!(number.is_some_and(|number| number > 0), "{shell:?}: {name}");
        }
        let mounts = facts["ansible_mounts"].as_list().unwrap();
        for mount in mounts.iter().filter(|mount| mount.get("mount") == Some(&"/".into())) {
            assert!(
                mount.get("size_total").and_then(Value::as_int).is_some_and(|size| size > 0),
                "{shell:?}: {mount:?}"
            );
        }
        let zone = facts["ansible_date_time"].get("tz").cloned();
        assert!(zone.is_some(), "{shell:?}");
    }
    let (_, first) = &all[0];
    let changing = [
        "ansible_env",
        "ansible_date_time",
        "ansible_loadavg",
        "ansible_uptime_seconds",
        "ansible_memfree_mb",
        "ansible_memory_mb",
        "ansible_mounts",
    ];
    for (shell, facts) in &all[1..] {
        for (name, value) in facts.iter().filter(|(name, _)| !changing.contains(&name.to_text().as_ref())) {
            assert_eq!(first.get(name), Some(value), "{shell:?}: {name}");
        }
        assert_eq!(first.len(), facts.len());
    }
}

#[test]
fn groups_that_are_not_asked_for_are_not_read() {
    let groups = select(&["!all".to_owned(), "!min".to_owned(), "user".to_owned()]).unwrap();
    let code = script(&groups, &Options::default());
    assert!(code.contains("section passwd") && !code.contains("section mounts"));
    let facts = parse(&groups, "");
    assert!(facts.contains_key("ansible_user_id") && !facts.contains_key("ansible_mounts"));
}
