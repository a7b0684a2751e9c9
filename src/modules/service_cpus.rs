//! `trimtab.tuning.service_cpus`: the CPUs and memory nodes of a systemd service, by a drop-in.

use futures_util::try_join;

use crate::host::reads::{Script, UnitProperties};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step, Subject};
use crate::tuning::cpu_set::CpuSet;

use super::file_common::content::difference;
use super::file_common::destination::{Destination, Manner, look, plan_edit};
use super::machine::{self, Machine};
use super::network_device::cpu_list;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.service_cpus",
    aliases: &[],
    summary: "Binds a systemd service to CPUs and memory nodes; takes effect when it is restarted",
    args: &[
        Arg::new("service", Type::Str, "the service").required().aliases(&["unit", "name"]),
        Arg::new("cpus", Type::List, "the CPUs, as `16-23`"),
        Arg::new("nodes", Type::List, "the memory nodes whose CPUs are taken, as `0`"),
        Arg::new("memory_policy", Type::Str, "where its memory is taken from (systemd 243 and later)")
            .choices(&POLICIES),
        Arg::new("memory_nodes", Type::List, "the memory nodes of the policy; those of `nodes` if not given"),
        Arg::new("drop_in", Type::Str, "the name of the drop-in file").default("50-trimtab-cpus.conf"),
    ],
    rules: &[Rule::RequiredOneOf(&["cpus", "nodes", "memory_policy"]), Rule::MutuallyExclusive(&["cpus", "nodes"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("path", "the drop-in file"),
        ("cpus", "the CPUs that the service is to have"),
        ("running_cpus", "the CPUs that its main process has now"),
        ("restart_needed", "true if the service runs and has other CPUs than it is to have"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// systemd.exec(5), `NUMAPolicy=`.
const POLICIES: [&str; 5] = ["default", "preferred", "bind", "interleave", "local"];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let name = unit_name(args.text("service"))?;
    let path = format!("/etc/systemd/system/{name}.d/{}", file_name(args.text("drop_in"))?);
    let (unit, machine, seen) =
        try_join!(machine::unit(&host, &name), machine::read(&host), look(&host, &args, &path, true),)?;
    let unit = unit.ok_or_else(|| Failure::new("systemd is not the init system of this host"))?;
    let property = |name: &str| unit.get(name).map_or("", String::as_str);
    if property("LoadState") == "not-found" {
        return Err(Failure::new(format!("the host has no unit `{name}`")));
    }
    let wanted = Wanted::parse(&args, &machine)?;
    if wanted.policy.is_some() && !unit.contains_key("NUMAPolicy") {
        return Err(Failure::new(
            "this systemd does not know NUMAPolicy (it came with version 243); leave `memory_policy` out",
        ));
    }
    let running = running_cpus(&host, &name, property("MainPID")).await?;
    let mut outcome = Outcome::ok();
    if wanted.policy.as_deref() == Some("bind") && wanted.cpus.is_none() {
        outcome = outcome.warning("memory is bound but the CPUs are not: the service can run far from its memory");
    }
    if let Some(mut change) = change(&name, &seen, &wanted, &unit) {
        // The reload can set them back, so whoever looks at them afterwards must look again. In check mode that would only
        // say that it is not known.
        if !settings.check {
            change.footprint = change.footprint.and(Footprint::tree("/sys/fs/cgroup"));
        }
        outcome.changed = true;
        outcome = outcome
            .differences(change.differences.iter().cloned())
            .warning("`systemctl daemon-reload` can set back the cpusets of running containers; set those after this");
        host.change(change).await?;
    }
    let restart = wanted.cpus.as_ref().is_some_and(|cpus| running.as_ref().is_some_and(|running| running != cpus));
    Ok(outcome
        .with("path", path)
        .with("cpus", wanted.cpus.as_ref().map(CpuSet::to_string))
        .with("running_cpus", running.as_ref().map(CpuSet::to_string))
        .with("restart_needed", restart))
}

fn unit_name(service: &str) -> Result<String, Failure> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if service.is_empty() || service.starts_with(['-', '.']) || !service.bytes().all(valid) {
        return Err(Failure::new(format!("`{service}` cannot be the name of a unit")));
    }
    let has_suffix =
        [".service", ".slice", ".scope", ".socket", ".mount"].iter().any(|suffix| service.ends_with(suffix));
    Ok(if has_suffix { service.to_owned() } else { format!("{service}.service") })
}

fn file_name(name: &str) -> Result<&str, Failure> {
    if name.contains('/') || name.starts_with('.') || !name.ends_with(".conf") {
        return Err(Failure::new(format!("`{name}` cannot be the name of a drop-in, which ends with `.conf`")));
    }
    Ok(name)
}

/// The CPUs that the main process of the unit may use; `None` if none runs.
async fn running_cpus(host: &Host, unit: &str, pid: &str) -> Result<Option<CpuSet>, Failure> {
    let Ok(pid @ 1..) = pid.parse::<u32>() else { return Ok(None) };
    let text = format!("sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/{pid}/status 2>/dev/null");
    let answer = host
        .read(Script {
            text,
            footprint: Footprint::Of(vec![Subject::Unit(unit.to_owned()), Subject::Named("processes".to_owned())]),
        })
        .await?;
    let list = answer.text();
    Ok(if list.trim().is_empty() { None } else { Some(CpuSet::parse(&list)?) })
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    cpus: Option<CpuSet>,
    policy: Option<String>,
    memory_nodes: CpuSet,
}

impl Wanted {
    fn parse(args: &Args, machine: &Machine) -> Result<Wanted, Failure> {
        let set = |name: &str| Ok::<CpuSet, Failure>(cpu_list(args, name)?.into_iter().collect());
        let (cpus, nodes, mut memory_nodes) = (set("cpus")?, set("nodes")?, set("memory_nodes")?);
        let of_nodes = machine.topology.cpus_of(&nodes)?.intersection(&machine.online);
        let cpus = if nodes.is_empty() { cpus } else { of_nodes };
        let absent = cpus.difference(&machine.online);
        if !absent.is_empty() {
            return Err(Failure::new(format!("the CPUs {absent} are not online; this host has {}", machine.online)));
        }
        if args.has("nodes") && cpus.is_empty() {
            return Err(Failure::new(format!("the nodes {nodes} have no CPUs")));
        }
        let policy = args.str("memory_policy").map(str::to_owned);
        match policy.as_deref() {
            Some("default" | "local") if !memory_nodes.is_empty() => {
                return Err(Failure::new(format!("the policy `{}` takes no memory_nodes", args.text("memory_policy"))));
            }
            Some("default" | "local") | None => {}
            Some(name) => {
                if memory_nodes.is_empty() {
                    memory_nodes = nodes;
                }
                if memory_nodes.is_empty() || (name == "preferred" && memory_nodes.len() > 1) {
                    let count = if name == "preferred" { "exactly one node" } else { "memory_nodes or nodes" };
                    return Err(Failure::new(format!("the policy `{name}` needs {count}")));
                }
                machine.topology.check_memory_binding(&memory_nodes)?;
            }
        }
        Ok(Wanted { cpus: Some(cpus).filter(|cpus| !cpus.is_empty()), policy, memory_nodes })
    }

    /// The drop-in. An empty assignment first clears what the unit itself says.
    fn text(&self) -> String {
        let mut text = "# Written by trimtab.\n[Service]\n".to_owned();
        if let Some(cpus) = &self.cpus {
            text.push_str(&format!("CPUAffinity=\nCPUAffinity={cpus}\n"));
        }
        if let Some(policy) = &self.policy {
            text.push_str(&format!("NUMAPolicy={policy}\n"));
            if !self.memory_nodes.is_empty() && !matches!(policy.as_str(), "default" | "local") {
                text.push_str(&format!("NUMAMask={}\n", self.memory_nodes));
            }
        }
        text
    }
}

fn change(name: &str, seen: &Destination, wanted: &Wanted, unit: &UnitProperties) -> Option<Change> {
    let text = wanted.text().into_bytes();
    let reload = || Step::new("systemctl daemon-reload");
    if seen.content.as_deref() == Some(&text[..]) {
        let stale = unit.get("NeedDaemonReload").is_some_and(|word| word == "yes");
        return stale.then(|| {
            Change::certain("reload of systemd", Footprint::Of(vec![Subject::Units]))
                .step(reload())
                .inverse(Inverse::Steps(Vec::new()))
        });
    }
    let shown = difference((&seen.named, &seen.named), seen.content.as_deref(), false, &text);
    let mut change = plan_edit(seen, Some(text), &Manner::default()).change?.difference(shown).step(reload());
    change.what = format!("CPUs of {name}");
    change.footprint = change.footprint.and(Footprint::Of(vec![Subject::Units]));
    if let Inverse::Steps(steps) = &mut change.inverse {
        steps.push(reload());
    }
    Some(change)
}

#[cfg(test)]
#[path = "service_cpus_tests.rs"]
mod tests;
