//! Control groups: which one a process or container is in, and the order in which cpusets can be written
//! (kernel: admin-guide/cgroup-v1/cpusets, admin-guide/cgroup-v2).

use crate::tuning::cpu_set::CpuSet;

/// Which hierarchy holds the cpusets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

impl Version {
    /// From the file system type of `/sys/fs/cgroup` (`stat -fc %T`): `cgroup2fs` or `tmpfs`.
    pub fn of_mount(file_system: &str) -> Version {
        if file_system.trim() == "cgroup2fs" { Version::V2 } else { Version::V1 }
    }
}

/// Finds the group that holds a process' cpuset in `/proc/PID/cgroup`, as a path below the mount.
pub fn cpuset_path(text: &str, version: Version) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match version {
            Version::V1 => controllers.split(',').any(|controller| controller == "cpuset"),
            Version::V2 => number == "0" && controllers.is_empty(),
        };
        is_it.then_some(path)
    })
}

/// Who made a container's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A pod of the kubelet: its directory is at least as narrow as the container's.
    Pod,
    Docker,
    Podman,
    /// Another container engine.
    Engine,
}

/// A container's group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerGroup {
    /// The path below the mount, as `/proc/PID/cgroup` gives it.
    pub path: String,
    pub owner: Owner,
    /// The full identifier, 64 hexadecimal digits, or what there is of it.
    pub container: String,
    /// The pod's identifier with its dashes.
    pub pod: Option<String>,
}

/// Beginnings of the directory name that systemd drivers give a container, each with its owner.
const SCOPES: &[(&str, Owner)] = &[
    ("docker-", Owner::Docker),
    ("libpod-", Owner::Podman),
    ("cri-containerd-", Owner::Engine),
    ("crio-", Owner::Engine),
    ("isulad-", Owner::Engine),
];

/// Recognises a path as a container's, in the forms of the cgroupfs and the systemd driver. `None` if it is none.
pub fn container_group(path: &str) -> Option<ContainerGroup> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let last = *parts.last()?;
    let pod = parts.iter().rev().find_map(|part| pod_of(part));
    let parent = parts.len().checked_sub(2).map(|index| parts[index]);
    // A driver that does not match the kubelet's gives `kubepods-….slice:cri-containerd:ID`.
    if let [slice, engine, id] = last.split(':').collect::<Vec<_>>().as_slice()
        && slice.ends_with(".slice")
        && !engine.is_empty()
    {
        let pod = pod_of(slice).or(pod);
        let owner = if pod.is_some() { Owner::Pod } else { Owner::Engine };
        return Some(ContainerGroup { path: path.to_owned(), owner, container: (*id).to_owned(), pod });
    }
    let scope = last
        .strip_suffix(".scope")
        .and_then(|name| SCOPES.iter().find_map(|(prefix, owner)| name.strip_prefix(prefix).map(|id| (id, *owner))));
    let (id, owner) = match (scope, parent) {
        (Some((id, owner)), _) => (id, owner),
        (None, Some("docker")) => (last, Owner::Docker),
        (None, Some("isulad")) => (last, Owner::Engine),
        (None, Some(parent)) if pod_of(parent).is_some() => (last, Owner::Pod),
        _ => return None,
    };
    let is_id = id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let owner = if pod.is_some() { Owner::Pod } else { owner };
    is_id.then(|| ContainerGroup { path: path.to_owned(), owner, container: id.to_owned(), pod })
}

/// The pod of one directory name: `pod<uid>` or `kubepods-burstable-pod<uid_with_underscores>.slice`.
fn pod_of(part: &str) -> Option<String> {
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let uid = match name.strip_prefix("pod") {
        Some(uid) => uid,
        None if name.starts_with("kubepods") => name.rsplit_once("-pod")?.1,
        None => return None,
    };
    let uid = uid.replace('_', "-");
    (!uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')).then_some(uid)
}

/// One level of a group's path, from the pod (or other ancestor) down to the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The directory, absolute.
    pub path: String,
    pub cpus: CpuSet,
    pub memory_nodes: CpuSet,
}

/// One write to a cpuset file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub path: String,
    pub value: CpuSet,
}

/// The file that tells what is in force for `cpuset.cpus` or `cpuset.mems`, which can be less than what was written.
pub fn effective_file(file: &str, version: Version) -> String {
    match (version, file.strip_prefix("cpuset.")) {
        (Version::V1, Some(what)) => format!("cpuset.effective_{what}"),
        _ => format!("{file}.effective"),
    }
}

/// Plans the writes that bring the last level to `cpus` and `memory_nodes`.
///
/// Levels above are widened where they are too narrow, from the top down, before the container's own; they are never
/// narrowed, for others may live there. With cgroup v1 a level must be inside of its parent at every moment. In v2 an
/// empty set inherits, so it is left alone. CPUs come before memory nodes, and both before any task.
pub fn plan_cpuset(levels: &[Level], cpus: &CpuSet, memory_nodes: &CpuSet, version: Version) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut put = |path: &str, file: &str, present: &CpuSet, wanted: CpuSet| {
        if *present != wanted {
            writes.push(Write { path: format!("{path}/{file}"), value: wanted });
        }
    };
    let Some((last, above)) = levels.split_last() else { return Vec::new() };
    for level in above {
        for (file, present, wanted) in
            [("cpuset.cpus", &level.cpus, cpus), ("cpuset.mems", &level.memory_nodes, memory_nodes)]
        {
            let inherits = version == Version::V2 && present.is_empty();
            if !inherits && !wanted.is_empty() {
                put(&level.path, file, present, present.union(wanted));
            }
        }
    }
    for (file, present, wanted) in
        [("cpuset.cpus", &last.cpus, cpus), ("cpuset.mems", &last.memory_nodes, memory_nodes)]
    {
        if !wanted.is_empty() {
            put(&last.path, file, present, wanted.clone());
        }
    }
    writes
}

/// The writes that undo others, given the levels before: the reverse order, so that children narrow before parents.
pub fn restoring_writes(levels: &[Level], writes: &[Write]) -> Vec<Write> {
    let before = |write: &Write| {
        levels.iter().find_map(|level| {
            let file = write.path.strip_prefix(&level.path)?;
            match file {
                "/cpuset.cpus" => Some(level.cpus.clone()),
                "/cpuset.mems" => Some(level.memory_nodes.clone()),
                _ => None,
            }
        })
    };
    writes.iter().rev().filter_map(|write| Some(Write { path: write.path.clone(), value: before(write)? })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "7b40a68a7b40a68a7b40a68a7b40a68a7b40a68a7b40a68a7b40a68a7b40a68a";
    const UID: &str = "0ad3c1de-1111-4a2b-8c3d-123456789abc";

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    #[test]
    fn the_cpuset_of_a_process_is_found() {
        let v1 = "12:pids:/a\n5:cpu,cpuacct:/b\n4:cpuset:/docker/x\n0::/c\n";
        assert_eq!(cpuset_path(v1, Version::V1), Some("/docker/x"));
        assert_eq!(cpuset_path(v1, Version::V2), Some("/c"));
        assert_eq!(cpuset_path("0::/system.slice/a:b.scope\n", Version::V2), Some("/system.slice/a:b.scope"));
        assert_eq!(cpuset_path("1:name=systemd:/x\n", Version::V1), None);
        assert_eq!(effective_file("cpuset.mems", Version::V1), "cpuset.effective_mems");
        assert_eq!(effective_file("cpuset.cpus", Version::V2), "cpuset.cpus.effective");
        assert_eq!((Version::of_mount("cgroup2fs\n"), Version::of_mount("tmpfs")), (Version::V2, Version::V1));
    }

    #[test]
    fn paths_of_containers_are_recognised() {
        let low = UID.replace('-', "_");
        let cases = [
            (format!("/kubepods/burstable/pod{UID}/{ID}"), Some((Owner::Pod, true))),
            (format!("/kubepods/pod{UID}/{ID}"), Some((Owner::Pod, true))),
            (format!("/docker/{ID}"), Some((Owner::Docker, false))),
            (format!("/system.slice/docker-{ID}.scope"), Some((Owner::Docker, false))),
            (
                format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{low}.slice/docker-{ID}.scope"),
                Some((Owner::Pod, true)),
            ),
            (format!("/kubepods.slice/kubepods-pod{low}.slice/cri-containerd-{ID}.scope"), Some((Owner::Pod, true))),
            (format!("/system.slice/kubepods-besteffort-pod{low}.slice:cri-containerd:{ID}"), Some((Owner::Pod, true))),
            (format!("/machine.slice/libpod-{ID}.scope"), Some((Owner::Podman, false))),
            ("/system.slice/sshd.service".to_owned(), None),
            (format!("/kubepods/burstable/pod{UID}"), None),
            ("/docker/buildkit".to_owned(), None),
            ("/".to_owned(), None),
        ];
        for (path, expected) in cases {
            let got = container_group(&path);
            assert_eq!(got.as_ref().map(|group| (group.owner, group.pod.is_some())), expected, "{path}");
            if let Some(group) = got {
                assert_eq!(group.container, ID, "{path}");
                assert!(group.pod.is_none_or(|pod| pod == UID), "{path}");
            }
        }
    }

    fn levels(pod: (&str, &str), container: (&str, &str)) -> Vec<Level> {
        let level =
            |path: &str, sets: (&str, &str)| Level { path: path.into(), cpus: set(sets.0), memory_nodes: set(sets.1) };
        vec![level("/c/pod", pod), level("/c/pod/id", container)]
    }

    fn shown(writes: &[Write]) -> String {
        writes.iter().map(|write| format!("{}={}", write.path, write.value)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn parents_are_widened_before_children() {
        let plan = |levels: &[Level], version| shown(&plan_cpuset(levels, &set("16-23"), &set("0"), version));
        let wide = levels(("0-127", "0-3"), ("0-127", "0-3"));
        assert_eq!(plan(&wide, Version::V1), "/c/pod/id/cpuset.cpus=16-23 /c/pod/id/cpuset.mems=0");
        let narrow = levels(("0-7", "1"), ("0-7", "1"));
        assert_eq!(
            plan(&narrow, Version::V1),
            "/c/pod/cpuset.cpus=0-7,16-23 /c/pod/cpuset.mems=0-1 /c/pod/id/cpuset.cpus=16-23 /c/pod/id/cpuset.mems=0"
        );
        let inherits = levels(("", ""), ("", ""));
        assert_eq!(plan(&inherits, Version::V2), "/c/pod/id/cpuset.cpus=16-23 /c/pod/id/cpuset.mems=0");
        assert_eq!(plan(&levels(("0-127", "0-3"), ("16-23", "0")), Version::V1), "");
        assert_eq!(plan(&[], Version::V1), "");
    }

    #[test]
    fn undo_runs_backwards() {
        let before = levels(("0-7", "1"), ("0-7", "1"));
        let writes = plan_cpuset(&before, &set("16-23"), &CpuSet::new(), Version::V1);
        assert_eq!(shown(&writes), "/c/pod/cpuset.cpus=0-7,16-23 /c/pod/id/cpuset.cpus=16-23");
        assert_eq!(shown(&restoring_writes(&before, &writes)), "/c/pod/id/cpuset.cpus=0-7 /c/pod/cpuset.cpus=0-7");
    }
}
