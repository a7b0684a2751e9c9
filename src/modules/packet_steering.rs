//! `trimtab.tuning.packet_steering`: which CPUs handle the packets of a network device in software (RPS, RFS, XPS).

use futures_util::future::try_join_all;
use futures_util::join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileContent, KernelFile, Script};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Query, Subject};
use crate::tuning::cpu_mask::{MaskShape, parse_mask};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::irq::{Interrupts, of_device};
use crate::tuning::steering::{
    FlowCounts, Receive, ReceiveRequest, flow_counts, receive_cpus, send_cpus, stored_receive_cpus,
};
use crate::tuning::write_error::Interface;
use crate::value::Value;

use super::kernel_write::{explained, write_step};
use super::machine::{self, Machine};
use super::network_device::{Device, INTERFACE, cpu_list, interface_of, read_devices};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.packet_steering",
    aliases: &[],
    summary: "Sets which CPUs handle received and sent packets of a network device in software",
    args: &[
        INTERFACE,
        Arg::new(
            "receive",
            Type::Str,
            "CPUs for received packets (RPS), as `1-7`; `auto`: near the device, without those that take its interrupts; `off`",
        ),
        Arg::new(
            "flows",
            Type::Int,
            "flows that are steered to the CPU of their program (RFS), over all queues; 0 switches it off",
        ),
        Arg::new("send", Type::Str, "CPUs that are dealt out to the send queues (XPS), as `0-7`; `auto`: all; `off`"),
        Arg::new("exclude", Type::List, "CPUs kept for the workload, which `auto` leaves out"),
    ],
    rules: &[Rule::RequiredOneOf(&["receive", "flows", "send"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("receive", "the CPUs for received packets; empty if off"),
        ("flows", "the flows of each receive queue"),
        ("send", "the CPUs of each send queue"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const FLOW_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let interface = interface_of(&args)?;
    let wanted = Wanted::parse(&args)?;
    let (queues, devices, table, machine, entries) = join!(
        read_queue_names(&host, &interface),
        read_devices(&host, &interface),
        host.read(FileContent("/proc/interrupts".to_owned())),
        machine::read(&host),
        host.read(KernelFile(FLOW_ENTRIES.to_owned())),
    );
    let ((rx, tx), devices, machine) = (queues?, devices?, machine?);
    let table = table?.unwrap_or_default();
    let (files, interrupting) =
        join!(read_files(&host, &interface, rx, tx, &wanted), read_interrupting(&host, &devices, &table, &wanted),);
    let seen = Seen {
        interface,
        rx,
        tx,
        node: devices.first().and_then(|device| device.node),
        machine,
        interrupting: interrupting?,
        entries: entries?,
        files: files?,
    };
    let plan = plan(&wanted, &seen)?;
    let mut outcome = Outcome::ok();
    for warning in &plan.warnings {
        outcome = outcome.warning(warning.as_str());
    }
    if let Some(change) = plan.change {
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        host.change(change).await.map_err(|failure| explained(failure, Interface::PacketSteering, true))?;
    }
    let send = plan.send.iter().map(|cpus| Value::from(cpus.to_string())).collect();
    Ok(outcome
        .with("receive", plan.receive.map(|cpus| cpus.to_string()))
        .with("flows", plan.flows)
        .with("send", Value::list(send)))
}

/// A choice of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cpus {
    Auto,
    Off,
    These(CpuSet),
}

impl Cpus {
    fn parse(text: &str) -> Result<Cpus, Failure> {
        Ok(match text.trim() {
            "auto" => Cpus::Auto,
            "off" => Cpus::Off,
            list => {
                let cpus = CpuSet::parse(list)?;
                if cpus.is_empty() {
                    return Err(Failure::new("no CPU is named; to switch it off, say `off`"));
                }
                Cpus::These(cpus)
            }
        })
    }
}

#[derive(Debug)]
struct Wanted {
    receive: Option<Cpus>,
    flows: Option<u64>,
    send: Option<Cpus>,
    exclude: CpuSet,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let flows = match args.int("flows") {
            Some(number) => Some(u64::try_from(number).map_err(|_| Failure::new("flows cannot be negative"))?),
            None => None,
        };
        // YAML 1.1 makes `off` a boolean, which arrives here as `False`.
        let cpus = |name: &str| match args.str(name) {
            Some("False") => Ok(Some(Cpus::Off)),
            Some(text) => Cpus::parse(text).map(Some),
            None => Ok(None),
        };
        Ok(Wanted {
            receive: cpus("receive")?,
            flows,
            send: cpus("send")?,
            exclude: cpu_list(args, "exclude")?.into_iter().collect(),
        })
    }
}

/// The numbers of receive and send queues.
async fn read_queue_names(host: &Host, interface: &str) -> Result<(usize, usize), Failure> {
    let text = format!("cd {} && echo *", quote(&format!("/sys/class/net/{interface}/queues")));
    let footprint = Footprint::tree(format!("/sys/class/net/{interface}"));
    let answer = host.read(Script { text, footprint }).await?;
    if !answer.success() {
        return Err(Failure::new(format!("the host has no network device `{interface}` with queues")));
    }
    let names = answer.text();
    let count = |prefix: &str| names.split_ascii_whitespace().filter(|name| name.starts_with(prefix)).count();
    Ok((count("rx-"), count("tx-")))
}

fn queue_file(interface: &str, direction: &str, queue: usize, file: &str) -> String {
    format!("/sys/class/net/{interface}/queues/{direction}-{queue}/{file}")
}

/// The files of the queues that are concerned, each with its text; absent ones are left out.
type Files = Vec<(String, String)>;

async fn read_files(host: &Host, interface: &str, rx: usize, tx: usize, wanted: &Wanted) -> Result<Files, Failure> {
    let mut paths = Vec::new();
    for queue in 0..rx {
        if wanted.receive.is_some() {
            paths.push(queue_file(interface, "rx", queue, "rps_cpus"));
        }
        if wanted.flows.is_some() {
            paths.push(queue_file(interface, "rx", queue, "rps_flow_cnt"));
        }
    }
    if wanted.send.is_some() && tx > 1 {
        paths.extend((0..tx).map(|queue| queue_file(interface, "tx", queue, "xps_cpus")));
    }
    let texts = try_join_all(paths.iter().map(|path| host.read(KernelFile(path.clone())))).await?;
    Ok(paths.into_iter().zip(texts).filter_map(|(path, text)| Some((path, text?))).collect())
}

/// The CPUs that take the device's interrupts now, where `auto` needs to know.
async fn read_interrupting(host: &Host, devices: &[Device], table: &[u8], wanted: &Wanted) -> Result<CpuSet, Failure> {
    let mut cpus = CpuSet::new();
    if wanted.receive != Some(Cpus::Auto) {
        return Ok(cpus);
    }
    let Ok(table) = Interrupts::parse(&String::from_utf8_lossy(table)) else { return Ok(cpus) };
    let numbers: Vec<u32> = devices
        .iter()
        .flat_map(|device| of_device(&table, &device.interrupts, &device.interface).data)
        .map(|interrupt| interrupt.number)
        .collect();
    let file = |number: &u32| host.read(KernelFile(format!("/proc/irq/{number}/smp_affinity_list")));
    for list in try_join_all(numbers.iter().map(file)).await?.into_iter().flatten() {
        let list = CpuSet::parse(&list)?;
        // An interrupt that may go anywhere says nothing of where it goes.
        if list.len() == 1 {
            cpus.extend(list.iter());
        }
    }
    Ok(cpus)
}

#[derive(Debug)]
struct Seen {
    interface: String,
    rx: usize,
    tx: usize,
    node: Option<u32>,
    machine: Machine,
    interrupting: CpuSet,
    /// The text of `rps_sock_flow_entries`; absent in a network namespace.
    entries: Option<String>,
    files: Files,
}

#[derive(Debug)]
struct Plan {
    change: Option<Change>,
    receive: Option<CpuSet>,
    flows: Option<u64>,
    send: Vec<CpuSet>,
    warnings: Vec<String>,
}

fn plan(wanted: &Wanted, seen: &Seen) -> Result<Plan, Failure> {
    let interface = &seen.interface;
    let machine = &seen.machine;
    let mut plan = Plan { change: None, receive: None, flows: None, send: Vec::new(), warnings: Vec::new() };
    // Path, what it reads now, what it is to read.
    let mut writes: Vec<(String, String, String)> = Vec::new();
    let text_of = |path: &str| seen.files.iter().find(|(known, _)| known == path).map(|(_, text)| text.trim());
    let mut mask = |path: String, cpus: &CpuSet, warnings: &mut Vec<String>| -> Result<(), Failure> {
        let Some(before) = text_of(&path) else {
            warnings.push(format!("{path} does not exist"));
            return Ok(());
        };
        if parse_mask(before)? != *cpus {
            writes.push((path, before.to_owned(), MaskShape::of_printed(before)?.format(cpus)?));
        }
        Ok(())
    };

    if let Some(receive) = &wanted.receive {
        let cpus = match receive {
            Cpus::Off => CpuSet::new(),
            Cpus::These(cpus) => stored_receive_cpus(cpus, &machine.online, &machine.isolated)?,
            Cpus::Auto => {
                let request = ReceiveRequest {
                    online: &machine.online,
                    isolated: &machine.isolated,
                    interrupting: &seen.interrupting,
                    excluded: &wanted.exclude,
                    device_node: seen.node,
                    topology: &machine.topology,
                    hardware_queues: seen.rx,
                };
                match receive_cpus(&request)? {
                    Receive::Cpus(cpus) => cpus,
                    Receive::Redundant => CpuSet::new(),
                }
            }
        };
        if let Cpus::These(named) = receive
            && *named != cpus
        {
            plan.warnings.push(format!("of the CPUs {named} only {cpus} are online and not isolated"));
        }
        for queue in 0..seen.rx {
            mask(queue_file(interface, "rx", queue, "rps_cpus"), &cpus, &mut plan.warnings)?;
        }
        plan.receive = Some(cpus);
    }
    if let Some(send) = &wanted.send {
        let cpus = match send {
            Cpus::Off => CpuSet::new(),
            Cpus::These(cpus) => cpus.intersection(&machine.online),
            Cpus::Auto => machine.online.difference(&wanted.exclude),
        };
        if cpus.is_empty() && *send != Cpus::Off {
            return Err(Failure::new("no CPU is left for the send queues: all are excluded or offline"));
        }
        if seen.tx < 2 {
            plan.warnings.push(format!("{interface} has a single send queue, so there is nothing to choose"));
        }
        plan.send = send_cpus(seen.tx, &cpus);
        for (queue, cpus) in plan.send.iter().enumerate() {
            mask(queue_file(interface, "tx", queue, "xps_cpus"), cpus, &mut plan.warnings)?;
        }
    }
    if let Some(flows) = wanted.flows {
        let counts = flow_counts(flows, seen.rx as u64)?;
        plan_flows(&counts, seen, &mut writes, &mut plan.warnings)?;
        plan.flows = Some(counts.per_queue);
    }
    plan.change = change(interface, &writes);
    Ok(plan)
}

/// Flow tables: of the queues exactly, of the host at least, for other devices share it.
fn plan_flows(
    counts: &FlowCounts,
    seen: &Seen,
    writes: &mut Vec<(String, String, String)>,
    warnings: &mut Vec<String>,
) -> Result<(), Failure> {
    let number = |text: &str| {
        text.trim().parse::<u64>().map_err(|_| Failure::new(format!("`{}` is not a number of flows", text.trim())))
    };
    match &seen.entries {
        Some(text) if number(text)? < counts.entries => {
            writes.push((FLOW_ENTRIES.to_owned(), text.trim().to_owned(), counts.entries.to_string()));
        }
        Some(_) => {}
        None if counts.entries > 0 => {
            warnings.push(format!("{FLOW_ENTRIES} does not exist here, so flows are not steered"))
        }
        None => {}
    }
    for (path, text) in seen.files.iter().filter(|(path, _)| path.ends_with("/rps_flow_cnt")) {
        if number(text)? != counts.per_queue {
            writes.push((path.clone(), text.trim().to_owned(), counts.per_queue.to_string()));
        }
    }
    Ok(())
}

fn change(interface: &str, writes: &[(String, String, String)]) -> Option<Change> {
    if writes.is_empty() {
        return None;
    }
    let paths = writes.iter().map(|(path, _, _)| Subject::Path(path.clone())).collect();
    let mut change = Change::certain(format!("packet steering of {interface}"), Footprint::Of(paths));
    for (path, before, after) in writes {
        change = change
            .step(write_step(path, after, after))
            .difference(Difference::new(path.as_str(), format!("{before}\n"), format!("{after}\n")))
            .leaves(Query::Line(path.clone()), Response::output(after.as_str()));
    }
    let back = writes.iter().rev().map(|(path, before, _)| write_step(path, before, before)).collect();
    Some(change.inverse(Inverse::Steps(back)))
}

#[cfg(test)]
#[path = "packet_steering_tests.rs"]
mod tests;
