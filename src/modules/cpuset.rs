//! `trimtab.tuning.cpuset`: the CPUs and memory nodes of a running container or process.

use futures_util::future::try_join_all;
use futures_util::{join, try_join};

use crate::connect::shell::{Response, quote};
use crate::host::reads::{KernelFile, Script};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Query, Step, Subject};
use crate::tuning::cgroup::{
    Level, Owner, Version, container_group, cpuset_path, effective_file, plan_cpuset, restoring_writes,
};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::write_error::Interface;

use super::kernel_write::{explained, write_step};
use super::machine::{self, Machine};
use super::network_device::cpu_list;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.cpuset",
    aliases: &[],
    summary: "Binds a running container or process to CPUs and memory nodes",
    args: &[
        Arg::new("container", Type::Str, "name or identifier of a container of docker, podman or a CRI engine"),
        Arg::new("pid", Type::Int, "a process; the whole control group that it is in is bound"),
        Arg::new("group", Type::Str, "a control group, as `/kubepods/burstable/pod…/…`"),
        Arg::new("cpus", Type::List, "the CPUs, as `16-23`"),
        Arg::new("memory_nodes", Type::List, "the memory nodes, as `0`").aliases(&["mems"]),
        Arg::new(
            "via",
            Type::Str,
            "docker: by `docker update`, which a restart of the container keeps; cgroup: by the kernel's files; auto: \
             docker where it can be",
        )
        .default("auto")
        .choices(&["auto", "docker", "cgroup"]),
        Arg::new(
            "migrate",
            Type::Bool,
            "also move the memory that is in use (cgroup v1; v2 always does); can stall the process",
        )
        .default("false"),
    ],
    rules: &[
        Rule::RequiredOneOf(&["container", "pid", "group"]),
        Rule::MutuallyExclusive(&["container", "pid", "group"]),
        Rule::RequiredOneOf(&["cpus", "memory_nodes"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("group", "the control group, below the mount"),
        ("cpus", "the CPUs that are in force"),
        ("memory_nodes", "the memory nodes that are in force"),
        ("volatile", "true if a restart of the container, or a reload of systemd, undoes it"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const FILES: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let cpus: CpuSet = cpu_list(&args, "cpus")?.into_iter().collect();
    let nodes: CpuSet = cpu_list(&args, "memory_nodes")?.into_iter().collect();
    let (target, machine) = try_join!(find(&host, &args), machine::read(&host))?;
    check_wanted(&cpus, &nodes, &machine)?;
    let levels = read_levels(&host, &target).await?;
    let mut outcome = Outcome::ok();
    let by_docker = match (args.text("via"), &target.engine) {
        ("cgroup", _) => false,
        (_, Some(Engine::Docker { .. })) => true,
        ("docker", _) => return Err(Failure::new("`via: docker` needs a `container` that docker runs")),
        _ => false,
    };
    let (change, migrates) = if by_docker {
        (docker_change(&args, &target, &levels, &cpus, &nodes, &machine), false)
    } else {
        let (change, migrates) = cgroup_change(&target, &levels, &cpus, &nodes, args.bool("migrate"));
        if change.is_some() {
            let who = match container_group(&target.path).map(|group| group.owner) {
                Some(Owner::Pod) => {
                    "a restart of the container, `systemctl daemon-reload` or the kubelet's CPU manager"
                }
                Some(_) => "a restart of the container or `systemctl daemon-reload`",
                None => "a restart of the service or `systemctl daemon-reload`",
            };
            outcome = outcome.warning(format!("written to the kernel only: {who} undoes it"));
        }
        (change, migrates)
    };
    if target.version == Version::V1 && !nodes.is_empty() && change.is_some() && !migrates {
        outcome = outcome.warning("memory that is in use stays on the nodes where it is; `migrate: true` moves it");
    }
    if let Some(change) = change {
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        host.change(change).await.map_err(|failure| explained(failure, Interface::Cpuset, true))?;
    } else if let Some(last) = levels.last() {
        for (wanted, level, file) in [(&cpus, &last.effective.0, FILES[0]), (&nodes, &last.effective.1, FILES[1])] {
            if !wanted.is_empty() && level != wanted {
                outcome = outcome
                    .warning(format!("{file} is {wanted}, but only {level} is in force: a group above is narrower"));
            }
        }
    }
    let in_force = |wanted: CpuSet, present: Option<&CpuSet>| {
        if wanted.is_empty() { present.map(CpuSet::to_string).unwrap_or_default() } else { wanted.to_string() }
    };
    let last = levels.last();
    Ok(outcome
        .with("cpus", in_force(cpus, last.map(|level| &level.effective.0)))
        .with("memory_nodes", in_force(nodes, last.map(|level| &level.effective.1)))
        .with("group", target.path)
        .with("volatile", !by_docker))
}

/// Fails for CPUs and nodes that the host lacks, and for nodes without memory.
fn check_wanted(cpus: &CpuSet, nodes: &CpuSet, machine: &Machine) -> Result<(), Failure> {
    let absent = cpus.difference(&machine.online);
    if !absent.is_empty() {
        return Err(Failure::new(format!("the CPUs {absent} are not online; this host has {}", machine.online)));
    }
    Ok(machine.topology.check_memory_binding(nodes)?)
}

/// What runs the container.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Engine {
    /// With the sets of its configuration.
    Docker {
        cpus: String,
        memory_nodes: String,
    },
    Other,
}

/// The control group that is to be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    version: Version,
    mount: String,
    /// Below the mount.
    path: String,
    engine: Option<Engine>,
}

async fn find(host: &Host, args: &Args) -> Result<Target, Failure> {
    let process = match (args.str("container"), args.int("pid")) {
        (Some(container), _) => format!(
            r#"c={}
if p=$(docker inspect -f '{{{{.State.Pid}}}}' "$c" 2>/dev/null) && [ "$p" -gt 0 ]; then
  echo engine=docker
  docker inspect -f 'configured={{{{.HostConfig.CpusetCpus}}}}|{{{{.HostConfig.CpusetMems}}}}' "$c"
elif p=$(podman inspect -f '{{{{.State.Pid}}}}' "$c" 2>/dev/null) && [ "$p" -gt 0 ]; then
  echo engine=podman
elif p=$(crictl inspect "$c" 2>/dev/null | sed -n 's/^ *"pid": \([0-9][0-9]*\),*$/\1/p' | sed 1q) && [ -n "$p" ]; then
  echo engine=cri
else
  exit 3
fi"#,
            quote(container)
        ),
        (None, Some(pid)) => format!("p={pid}"),
        (None, None) => "p=".to_owned(),
    };
    let text = format!(
        r#"{process}
while read -r d m t o x; do
  case $t,$o in
  cgroup,cpuset | cgroup,*,cpuset | cgroup,cpuset,* | cgroup,*,cpuset,*) echo "v1=$m" ;;
  cgroup2,*) echo "v2=$m" ;;
  esac
done </proc/mounts
[ ! -e /sys/fs/cgroup/cpuset/cpuset.cpus ] || echo v1=/sys/fs/cgroup/cpuset
[ -z "$p" ] || sed 's/^/cgroup=/' "/proc/$p/cgroup" 2>/dev/null || exit 4"#
    );
    let answer = host.read(Script { text, footprint: Footprint::named("containers") }).await?;
    match answer.code {
        Some(3) => return Err(Failure::new(format!("no container `{}` runs on this host", args.text("container")))),
        Some(4) => return Err(Failure::new(format!("there is no process {}", args.int("pid").unwrap_or_default()))),
        _ => {}
    }
    parse_target(&answer.text(), args.str("group"))
}

fn parse_target(text: &str, group: Option<&str>) -> Result<Target, Failure> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    // Hosts with both hierarchies have their cpusets in the older one.
    let (version, mount) = match (value("v1"), value("v2")) {
        (Some(mount), _) => (Version::V1, mount),
        (None, Some(mount)) => (Version::V2, mount),
        (None, None) => return Err(Failure::new("this host has no control groups with cpusets")),
    };
    let path = match group {
        Some(group) => {
            let group = group.strip_prefix(mount).unwrap_or(group).trim_matches('/');
            format!("/{group}")
        }
        None => {
            let groups: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("cgroup=")).collect();
            cpuset_path(&groups.join("\n"), version)
                .ok_or_else(|| Failure::new("the process is in no control group with a cpuset"))?
                .to_owned()
        }
    };
    if path == "/" || path.split('/').any(|part| part == "..") {
        return Err(Failure::new(format!("the control group `{path}` is that of the whole host; it is not bound")));
    }
    let engine = value("engine").map(|engine| match engine {
        "docker" => {
            let (cpus, memory_nodes) = value("configured").and_then(|text| text.split_once('|')).unwrap_or_default();
            Engine::Docker { cpus: cpus.to_owned(), memory_nodes: memory_nodes.to_owned() }
        }
        _ => Engine::Other,
    });
    Ok(Target { version, mount: mount.to_owned(), path, engine })
}

/// A level of the path with what is in force there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    level: Level,
    /// CPUs and memory nodes.
    effective: (CpuSet, CpuSet),
    migrates: bool,
}

/// Reads the groups from the topmost below the mount down to the target.
async fn read_levels(host: &Host, target: &Target) -> Result<Vec<Seen>, Failure> {
    let mut path = target.mount.clone();
    let mut paths = Vec::new();
    for part in target.path.split('/').filter(|part| !part.is_empty()) {
        path = format!("{path}/{part}");
        paths.push(path.clone());
    }
    let levels = try_join_all(paths.into_iter().map(|path| read_level(host, path, target.version))).await?;
    let last = levels.last().and_then(Option::as_ref);
    if last.is_none() {
        return Err(Failure::new(format!("the control group `{}` has no cpuset", target.path)));
    }
    Ok(levels.into_iter().flatten().collect())
}

async fn read_level(host: &Host, path: String, version: Version) -> Result<Option<Seen>, Failure> {
    let file = |name: &str| host.read(KernelFile(format!("{path}/{name}")));
    let (cpus, mems, effective_cpus, effective_mems, migrate) = join!(
        file(FILES[0]),
        file(FILES[1]),
        file(&effective_file(FILES[0], version)),
        file(&effective_file(FILES[1], version)),
        file("cpuset.memory_migrate"),
    );
    let (Some(cpus), Some(mems)) = (cpus?, mems?) else { return Ok(None) };
    let (cpus, memory_nodes) = (CpuSet::parse(&cpus)?, CpuSet::parse(&mems)?);
    let or = |text: Option<String>, otherwise: &CpuSet| text.map_or(Ok(otherwise.clone()), |text| CpuSet::parse(&text));
    let effective = (or(effective_cpus?, &cpus)?, or(effective_mems?, &memory_nodes)?);
    let migrates = migrate?.is_some_and(|text| text.trim() == "1");
    Ok(Some(Seen { level: Level { path, cpus, memory_nodes }, effective, migrates }))
}

/// The change by the kernel's files, and whether memory in use moves.
fn cgroup_change(
    target: &Target,
    seen: &[Seen],
    cpus: &CpuSet,
    nodes: &CpuSet,
    migrate: bool,
) -> (Option<Change>, bool) {
    let levels: Vec<Level> = seen.iter().map(|seen| seen.level.clone()).collect();
    let writes = plan_cpuset(&levels, cpus, nodes, target.version);
    let Some(last) = seen.last() else { return (None, false) };
    if writes.is_empty() {
        return (None, last.migrates);
    }
    let back = restoring_writes(&levels, &writes);
    let mut paths: Vec<Subject> = writes.iter().map(|write| Subject::Path(write.path.clone())).collect();
    paths.extend(
        FILES.iter().map(|file| Subject::Path(format!("{}/{}", last.level.path, effective_file(file, target.version)))),
    );
    let mut change = Change::certain(format!("cpuset of {}", target.path), Footprint::Of(paths));
    let switch = format!("{}/cpuset.memory_migrate", last.level.path);
    let switches = target.version == Version::V1 && migrate && !last.migrates;
    if switches {
        change = change.step(write_step(&switch, "1", "1"));
    }
    for (write, undo) in writes.iter().zip(back.iter().rev()) {
        let after = write.value.to_string();
        change = change
            .step(write_step(&write.path, &after, &after))
            .difference(Difference::new(write.path.as_str(), format!("{}\n", undo.value), format!("{after}\n")))
            .leaves(Query::Line(write.path.clone()), Response::output(after));
    }
    // What was written is not always in force.
    for (file, wanted) in [(FILES[0], cpus), (FILES[1], nodes)] {
        if !wanted.is_empty() {
            let path = format!("{}/{}", last.level.path, effective_file(file, target.version));
            change = change.step(Step::new(format!("cat {}", quote(&path))).expect(wanted.to_string()));
        }
    }
    let mut undo: Vec<Step> =
        back.iter().map(|write| write_step(&write.path, &write.value.to_string(), &write.value.to_string())).collect();
    if switches {
        undo.push(write_step(&switch, "0", "0"));
    }
    (Some(change.inverse(Inverse::Steps(undo))), last.migrates || switches)
}

/// The change by `docker update`.
fn docker_change(
    args: &Args,
    target: &Target,
    seen: &[Seen],
    cpus: &CpuSet,
    nodes: &CpuSet,
    machine: &Machine,
) -> Option<Change> {
    let Some(Engine::Docker { cpus: had_cpus, memory_nodes: had_nodes }) = &target.engine else { return None };
    let last = seen.last()?;
    let is = |wanted: &CpuSet, configured: &str, effective: &CpuSet| {
        wanted.is_empty() || (effective == wanted && CpuSet::parse(configured).is_ok_and(|set| set == *wanted))
    };
    if is(cpus, had_cpus, &last.effective.0) && is(nodes, had_nodes, &last.effective.1) {
        return None;
    }
    let container = quote(args.text("container"));
    // What was not set before becomes all there is: docker cannot unset it.
    let all_nodes: CpuSet = machine.topology.nodes().iter().map(|node| node.id).collect();
    let or_all =
        |configured: &str, all: &CpuSet| if configured.is_empty() { all.to_string() } else { configured.to_owned() };
    let step = |cpus: &str, nodes: &str| {
        let mut options = String::new();
        let mut expect = Vec::new();
        for (option, field, value) in [("cpus", "CpusetCpus", cpus), ("mems", "CpusetMems", nodes)] {
            if !value.is_empty() {
                options.push_str(&format!(" --cpuset-{option} {}", quote(value)));
                expect.push((format!("{{{{.HostConfig.{field}}}}}"), value.to_owned()));
            }
        }
        let (format, expect): (Vec<String>, Vec<String>) = expect.into_iter().unzip();
        Step::new(format!(
            "docker update{options} {container} >/dev/null && docker inspect -f {} {container}",
            quote(&format.join(" "))
        ))
        .expect(expect.join(" "))
    };
    let (new_cpus, new_nodes) = (cpus.to_string(), nodes.to_string());
    let old_cpus = if cpus.is_empty() { String::new() } else { or_all(had_cpus, &machine.online) };
    let old_nodes = if nodes.is_empty() { String::new() } else { or_all(had_nodes, &all_nodes) };
    let shown = |cpus: &str, nodes: &str| format!("cpus: {cpus}\nmemory nodes: {nodes}\n");
    let footprint = Footprint::tree(last.level.path.as_str()).and(Footprint::named("containers"));
    let what = format!("cpuset of container {}", args.text("container"));
    Some(
        Change::certain(what.clone(), footprint)
            .step(step(&new_cpus, &new_nodes))
            .difference(Difference::new(what, shown(had_cpus, had_nodes), shown(&new_cpus, &new_nodes)))
            .inverse(Inverse::Steps(vec![step(&old_cpus, &old_nodes)])),
    )
}

#[cfg(test)]
#[path = "cpuset_tests.rs"]
mod tests;
