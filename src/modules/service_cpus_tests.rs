//! Tests of service_cpus: the drop-in, and a service of a pretended systemd.

use std::fs;
use std::path::Path;

use super::*;
use crate::modules::args::validate;
use crate::modules::fake_systemd::FakeSystemd;
use crate::modules::testing::{Play, Played, play};
use crate::tuning::topology::{Node, Topology};
use crate::value::{Map, Value};

fn machine() -> Machine {
    let node = |id: u32, memory: u64| Node {
        id,
        cpus: CpuSet::range(id * 32, id * 32 + 31),
        memory_kib: Some(memory),
        distances: vec![10, 20],
    };
    Machine {
        online: CpuSet::range(0, 63),
        isolated: CpuSet::new(),
        topology: Topology::from_nodes(vec![node(0, 1024), node(1, 0)]).unwrap(),
        clusters: Vec::new(),
    }
}

fn wanted(args: &[(&str, &str)]) -> Result<Wanted, Failure> {
    let mut given: Map = args.iter().map(|(name, value)| (Value::from(*name), Value::from(*value))).collect();
    given.insert("service".into(), "mysqld".into());
    Wanted::parse(&validate(&MODULE, &given)?, &machine())
}

#[test]
fn the_drop_in_says_what_is_wanted() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("cpus", "16-23,8")], "CPUAffinity=\nCPUAffinity=8,16-23\n"),
        (&[("nodes", "1")], "CPUAffinity=\nCPUAffinity=32-63\n"),
        (&[("nodes", "0"), ("memory_policy", "bind")], "CPUAffinity=\nCPUAffinity=0-31\nNUMAPolicy=bind\nNUMAMask=0\n"),
        (&[("memory_policy", "interleave"), ("memory_nodes", "0")], "NUMAPolicy=interleave\nNUMAMask=0\n"),
        (&[("nodes", "0"), ("memory_policy", "local")], "CPUAffinity=\nCPUAffinity=0-31\nNUMAPolicy=local\n"),
    ];
    for (args, text) in cases {
        assert_eq!(wanted(args).unwrap().text(), format!("# Written by trimtab.\n[Service]\n{text}"), "{args:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("cpus", "60-70")], "the CPUs 64-70 are not online"),
        (&[("nodes", "2")], "there is no node 2"),
        (&[("cpus", "0"), ("memory_policy", "bind")], "needs memory_nodes or nodes"),
        (&[("nodes", "1"), ("memory_policy", "bind")], "node 1 has no memory"),
        (&[("nodes", "0,1"), ("memory_policy", "preferred")], "needs exactly one node"),
        (&[("memory_policy", "local"), ("memory_nodes", "0")], "takes no memory_nodes"),
        (&[("cpus", "0"), ("nodes", "0")], "mutually exclusive"),
    ];
    for (args, message) in cases {
        let failure = wanted(args).unwrap_err();
        assert!(failure.message.contains(message), "{args:?}: {}", failure.message);
    }
    for name in ["", "-x", "a b", "../x"] {
        assert!(unit_name(name).is_err(), "{name:?}");
    }
    assert_eq!(unit_name("mysqld@1").unwrap(), "mysqld@1.service");
    assert_eq!(unit_name("db.slice").unwrap(), "db.slice");
    assert!(file_name("../x.conf").is_err() && file_name("x").is_err());
}

fn on(systemd: &FakeSystemd, service: &str, args: &[(&str, &str)], check: bool) -> Played {
    let mut given = vec![("service", Value::from(service))];
    given.extend(args.iter().map(|(name, value)| (*name, Value::from(*value))));
    play(&MODULE, &given, &Play { check, shell: systemd.shell() })
}

#[test]
fn a_service_is_bound_once_and_restored() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let systemd = FakeSystemd::new();
    let service = format!("trimtab-test-{}", std::process::id());
    let directory = format!("/etc/systemd/system/{service}.service.d");
    let pid = std::process::id();
    systemd.unit(&service, "active", "enabled", &format!("MainPID={pid}\nNUMAPolicy=n/a\n"));
    let file = Path::new(&directory).join("50-trimtab-cpus.conf");

    let check = on(&systemd, &service, &[("cpus", "0")], true);
    assert!(check.result.unwrap().changed);
    assert!(!file.exists() && systemd.log().is_empty());

    let first = on(&systemd, &service, &[("cpus", "0")], false);
    let outcome = first.result.as_ref().unwrap();
    assert!(outcome.changed);
    assert_eq!(fs::read_to_string(&file).unwrap(), "# Written by trimtab.\n[Service]\nCPUAffinity=\nCPUAffinity=0\n");
    assert_eq!(systemd.log(), "daemon-reload \n");
    let several = fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim() != "0";
    assert_eq!(outcome.result.get("restart_needed"), Some(&several.into()));

    let second = on(&systemd, &service, &[("cpus", "0")], false);
    assert!(!second.result.unwrap().changed && second.changes.is_empty());

    systemd.undo(&first.changes);
    assert!(!Path::new(&directory).exists());
    assert_eq!(systemd.log(), "daemon-reload \n");
}

#[test]
fn old_and_absent_services_are_refused() {
    let systemd = FakeSystemd::new();
    systemd.unit("old", "inactive", "enabled", "MainPID=0\n");
    let fails = |service: &str, args: &[(&str, &str)]| on(&systemd, service, args, false).result.unwrap_err().message;
    assert_eq!(fails("nosuch", &[("cpus", "0")]), "the host has no unit `nosuch.service`");
    assert!(fails("old", &[("memory_policy", "local")]).contains("does not know NUMAPolicy"));
}
