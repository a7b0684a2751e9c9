//! Tests of cpuset: where the group is found, what docker is told, and a real group of this machine.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use super::*;
use crate::modules::args::validate;
use crate::modules::testing::{Play, play, undo};
use crate::tuning::topology::Topology;
use crate::value::{Map, Value};

fn set(text: &str) -> CpuSet {
    CpuSet::parse(text).unwrap()
}

#[test]
fn the_group_is_found_in_either_hierarchy() {
    let v1 = "v1=/sys/fs/cgroup/cpuset\nv2=/sys/fs/cgroup/unified\ncgroup=4:cpuset:/docker/x\ncgroup=0::/y\n";
    let target = parse_target(v1, None).unwrap();
    assert_eq!((target.version, target.path.as_str(), target.engine), (Version::V1, "/docker/x", None));
    let v2 = "engine=docker\nconfigured=0-3|\nv2=/sys/fs/cgroup\ncgroup=0::/system.slice/docker-x.scope\n";
    let target = parse_target(v2, None).unwrap();
    assert_eq!(target.path, "/system.slice/docker-x.scope");
    assert_eq!(target.engine, Some(Engine::Docker { cpus: "0-3".into(), memory_nodes: String::new() }));
    for group in ["/sys/fs/cgroup/kubepods/a/", "kubepods/a", "/kubepods/a"] {
        assert_eq!(parse_target("v2=/sys/fs/cgroup\n", Some(group)).unwrap().path, "/kubepods/a");
    }
    for (text, group) in [("", None), ("v2=/c\n", None), ("v2=/c\ncgroup=0::/\n", None), ("v2=/c\n", Some("a/../.."))] {
        assert!(parse_target(text, group).is_err(), "{text:?} {group:?}");
    }
}

fn seen(cpus: &str, nodes: &str) -> Vec<Seen> {
    let level = Level { path: "/c/docker/x".into(), cpus: set(cpus), memory_nodes: set(nodes) };
    vec![Seen { effective: (set(cpus), set(nodes)), level, migrates: false }]
}

#[test]
fn docker_is_told_once() {
    let given: Map = [("container", "db 1"), ("cpus", "16-23"), ("memory_nodes", "0")]
        .map(|(name, value)| (Value::from(name), Value::from(value)))
        .into();
    let args = validate(&MODULE, &given).unwrap();
    let machine = Machine {
        online: set("0-127"),
        isolated: CpuSet::new(),
        topology: Topology::single(set("0-127")),
        clusters: Vec::new(),
    };
    let target = |cpus: &str, nodes: &str| Target {
        version: Version::V1,
        mount: "/c".into(),
        path: "/docker/x".into(),
        engine: Some(Engine::Docker { cpus: cpus.into(), memory_nodes: nodes.into() }),
    };
    let change =
        |target: &Target, seen: &[Seen]| docker_change(&args, target, seen, &set("16-23"), &set("0"), &machine);
    let made = change(&target("", ""), &seen("0-127", "0-3")).unwrap();
    assert_eq!(
        made.steps[0].script,
        "docker update --cpuset-cpus 16-23 --cpuset-mems 0 'db 1' >/dev/null && \
         docker inspect -f '{{.HostConfig.CpusetCpus}} {{.HostConfig.CpusetMems}}' 'db 1'"
    );
    assert_eq!(made.steps[0].expect.as_deref(), Some("16-23 0"));
    let Inverse::Steps(back) = made.inverse else { panic!("no inverse") };
    assert!(back[0].script.starts_with("docker update --cpuset-cpus 0-127 --cpuset-mems 0 'db 1'"));
    assert_eq!(change(&target("16-23", "0"), &seen("16-23", "0")), None);
    // Configured so, but a reload of systemd has reset the kernel's set.
    assert!(change(&target("16-23", "0"), &seen("0-127", "0-3")).is_some());
}

/// A process in a control group of its own below the cpuset hierarchy of cgroup v1.
struct Group {
    path: PathBuf,
    child: Child,
}

impl Group {
    /// `None` where there is no such hierarchy, or it cannot be written.
    fn make(name: &str) -> Option<Group> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/cpuset/trimtab-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let parent = |file: &str| fs::read_to_string(format!("/sys/fs/cgroup/cpuset/{file}")).unwrap();
        fs::write(path.join("cpuset.cpus"), parent("cpuset.cpus")).unwrap();
        fs::write(path.join("cpuset.mems"), parent("cpuset.mems")).unwrap();
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(path.join("tasks"), child.id().to_string()).unwrap();
        Some(Group { path, child })
    }

    fn cpus(&self) -> String {
        fs::read_to_string(self.path.join("cpuset.cpus")).unwrap().trim().to_owned()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_real_group_is_bound_once_and_restored() {
    let Some(group) = Group::make("bind") else { return };
    let args = [("pid", Value::from(group.child.id())), ("cpus", "0".into()), ("memory_nodes", "0".into())];
    let before = group.cpus();
    let check = play(&MODULE, &args, &Play { check: true, ..Play::default() });
    assert_eq!(check.result.unwrap().changed, before != "0");
    assert_eq!(group.cpus(), before);
    let first = play(&MODULE, &args, &Play::default());
    let outcome = first.result.unwrap();
    assert_eq!((outcome.changed, group.cpus().as_str()), (before != "0", "0"));
    let second = play(&MODULE, &args, &Play::default());
    assert!(!second.result.unwrap().changed && second.changes.is_empty());
    undo(&first.changes);
    assert_eq!(group.cpus(), before);
}

#[test]
fn a_narrow_parent_is_widened_first() {
    let Some(group) = Group::make("parent") else { return };
    let all = group.cpus();
    let inner = group.path.join("inner");
    fs::create_dir(&inner).unwrap();
    for (path, file, value) in
        [(&group.path, "cpuset.cpus", "0"), (&inner, "cpuset.cpus", "0"), (&inner, "cpuset.mems", "0")]
    {
        fs::write(path.join(file), value).unwrap();
    }
    let args = [("group", Value::from(inner.to_string_lossy().into_owned())), ("cpus", all.as_str().into())];
    let played = play(&MODULE, &args, &Play::default());
    let result = played.result;
    let inner_cpus = fs::read_to_string(inner.join("cpuset.cpus")).unwrap();
    let widened = group.cpus();
    undo(&played.changes);
    let restored = (group.cpus(), fs::read_to_string(inner.join("cpuset.cpus")).unwrap());
    fs::remove_dir(&inner).unwrap();
    result.unwrap();
    assert_eq!((widened.as_str(), inner_cpus.trim()), (all.as_str(), all.as_str()));
    assert_eq!((restored.0.as_str(), restored.1.trim()), ("0", "0"));
}

#[test]
fn what_the_host_lacks_is_refused() {
    let fails = |args: &[(&str, Value)]| play(&MODULE, args, &Play::default()).result.unwrap_err().message;
    let own = Value::from(std::process::id());
    assert!(fails(&[("group", "nosuch".into()), ("cpus", "4000".into())]).contains("CPUs 4000 are not online"));
    assert!(fails(&[("group", "nosuch".into()), ("cpus", "0".into())]).contains("`/nosuch` has no cpuset"));
    assert!(fails(&[("group", "nosuch".into()), ("mems", "900".into())]).contains("no node 900"));
    assert!(fails(&[("pid", 4_194_304.into()), ("cpus", "0".into())]).contains("4194304"));
    assert!(fails(&[("container", "nosuch".into()), ("cpus", "0".into())]).contains("`nosuch`"));
    assert!(fails(&[("pid", own), ("container", "x".into()), ("cpus", "0".into())]).contains("mutually exclusive"));
}
