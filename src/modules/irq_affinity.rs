//! `trimtab.tuning.irq_affinity`: which CPUs serve the interrupts of a network device.

use futures_util::future::try_join_all;
use futures_util::{join, try_join};

use crate::connect::shell::Response;
use crate::host::reads::{FileContent, KernelFile};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step, Subject};
use crate::tuning::cpu_mask::parse_mask;
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::irq::{DeviceInterrupts, Interrupts, Role, of_device};
use crate::tuning::placement::{Placed, Request, STRATEGIES, Strategy, place};
use crate::tuning::write_error::{Interface, Outcome as Refusal, explain};
use crate::value::{Value, object};

use super::machine::{self, Machine};
use super::network_device::{Device, INTERFACE, cpu_list, interface_of, read_devices};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.irq_affinity",
    aliases: &[],
    summary: "Sets which CPUs serve the interrupts of a network device's queues",
    args: &[
        INTERFACE,
        Arg::new(
            "strategy",
            Type::Str,
            "single CPU, list of CPUs in turn, spread over all, spread_local over those of the device's node, per_cluster \
             one CPU of each, exclude: any but the excluded, hint: as the driver wishes",
        )
        .required()
        .choices(STRATEGIES),
        Arg::new("cpus", Type::List, "the CPUs for single and list, in their order; for the others those that may be used"),
        Arg::new("exclude", Type::List, "CPUs kept for the workload, as `16-23`"),
        Arg::new("irqbalance", Type::Str, "what to do while irqbalance runs, which moves interrupts back within seconds")
            .default("warn")
            .choices(&["warn", "fail", "ignore"]),
    ],
    rules: &[Rule::RequiredIf("strategy", "single", &["cpus"]), Rule::RequiredIf("strategy", "list", &["cpus"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("interrupts", "for each data interrupt its number, queue, label, cpus and state (ok, changed, unsupported)"),
        ("control", "numbers of the device's management interrupts, which are left alone"),
        ("unknown", "interrupts of the device whose label is not known, left alone too"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let interface = interface_of(&args)?;
    let strategy = strategy(&args)?;
    let exclude = cpu_list(&args, "exclude")?.into_iter().collect();
    let (devices, table, machine, irqbalance) = join!(
        read_devices(&host, &interface),
        host.read(FileContent("/proc/interrupts".to_owned())),
        machine::read(&host),
        machine::is_active(&host, "irqbalance"),
    );
    let (devices, machine) = (devices?, machine?);
    if devices.is_empty() {
        return Err(Failure::new(format!("{interface} has no hardware behind it, so it has no interrupts")));
    }
    let table = table?.ok_or_else(|| Failure::new("the host has no /proc/interrupts"))?;
    let table = Interrupts::parse(&String::from_utf8_lossy(&table))?;
    let mut outcome = Outcome::ok();
    let balanced = irqbalance?;
    match args.text("irqbalance") {
        "fail" if balanced => {
            return Err(Failure::new("irqbalance runs and would move the interrupts back; stop it first"));
        }
        "warn" if balanced => outcome = outcome.warning("irqbalance runs: it moves interrupts back within seconds"),
        _ => {}
    }

    let sorted: Vec<(Device, DeviceInterrupts)> = devices
        .into_iter()
        .map(|device| {
            let interrupts = of_device(&table, &device.interrupts, &device.interface);
            (device, interrupts)
        })
        .collect();
    if sorted.iter().all(|(_, interrupts)| interrupts.data.is_empty()) {
        return Err(Failure::new(format!("no interrupt of a queue of {interface} was found; is the device up?")));
    }
    let mut pins = Vec::new();
    for (device, interrupts) in &sorted {
        let numbers: Vec<u32> = interrupts.data.iter().map(|interrupt| interrupt.number).collect();
        let present = try_join_all(numbers.iter().map(|number| read_affinity(&host, *number, &strategy))).await?;
        let allowed = match &strategy {
            Strategy::Single(_) | Strategy::List(_) => None,
            _ => Some(cpu_list(&args, "cpus")?.into_iter().collect::<CpuSet>()).filter(|cpus| !cpus.is_empty()),
        };
        let (device_pins, warnings) =
            plan(&strategy, device, interrupts, &present, &machine, allowed.as_ref(), &exclude)?;
        pins.extend(device_pins);
        for warning in warnings {
            outcome = outcome.warning(warning);
        }
    }
    let mut states = vec![State::Already; pins.len()];
    if let Some(change) = change(&interface, &pins) {
        let differences = change.differences.clone();
        let applied = host.change(change).await?;
        if applied.check {
            states = pins.iter().map(|pin| if pin.differs() { State::Changed } else { State::Already }).collect();
        } else {
            states = judge(&pins, applied.responses.last())?;
        }
        outcome.changed = states.contains(&State::Changed);
        if outcome.changed {
            outcome = outcome.differences(differences);
        }
    }
    let shown = pins.iter().zip(&states).map(|(pin, state)| pin.to_value(*state)).collect();
    let control =
        sorted.iter().flat_map(|(_, interrupts)| &interrupts.control).map(|number| Value::from(*number)).collect();
    let unknown = sorted
        .iter()
        .flat_map(|(_, interrupts)| &interrupts.unknown)
        .map(|(number, label)| Value::from(object([("irq", (*number).into()), ("label", label.as_str().into())])));
    let unknown = unknown.collect();
    Ok(outcome
        .with("interrupts", Value::list(shown))
        .with("control", Value::list(control))
        .with("unknown", Value::list(unknown)))
}

fn strategy(args: &Args) -> Result<Strategy, Failure> {
    Ok(Strategy::parse(args.text("strategy"), &cpu_list(args, "cpus")?)?)
}

/// What an interrupt has: the text of its list, and the driver's hint where that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Affinity {
    list: String,
    hint: Option<CpuSet>,
}

async fn read_affinity(host: &Host, number: u32, strategy: &Strategy) -> Result<Affinity, Failure> {
    let list = host.read(KernelFile(format!("/proc/irq/{number}/smp_affinity_list")));
    if *strategy != Strategy::Hint {
        return Ok(Affinity { list: list.await?.unwrap_or_default(), hint: None });
    }
    let (list, hint) = try_join!(list, host.read(KernelFile(format!("/proc/irq/{number}/affinity_hint"))))?;
    let hint = hint.map(|text| parse_mask(&text)).transpose()?.filter(|hint| !hint.is_empty());
    Ok(Affinity { list: list.unwrap_or_default(), hint })
}

/// An interrupt and the CPUs it is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pin {
    number: u32,
    queue: u32,
    role: Role,
    label: String,
    before: String,
    cpus: CpuSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Already,
    Changed,
    /// The kernel lets nobody move it.
    Unsupported,
}

impl Pin {
    fn differs(&self) -> bool {
        CpuSet::parse(&self.before).map_or(true, |before| before != self.cpus)
    }

    fn to_value(&self, state: State) -> Value {
        let role = match self.role {
            Role::Both => "both",
            Role::Receive => "receive",
            Role::Send => "send",
            Role::Control => "control",
        };
        let (state, cpus) = match state {
            State::Already => ("ok", self.cpus.to_string()),
            State::Changed => ("changed", self.cpus.to_string()),
            State::Unsupported => ("unsupported", self.before.trim().to_owned()),
        };
        object([
            ("irq", self.number.into()),
            ("queue", self.queue.into()),
            ("role", role.into()),
            ("label", self.label.as_str().into()),
            ("cpus", cpus.into()),
            ("state", state.into()),
        ])
        .into()
    }
}

fn plan(
    strategy: &Strategy,
    device: &Device,
    interrupts: &DeviceInterrupts,
    present: &[Affinity],
    machine: &Machine,
    allowed: Option<&CpuSet>,
    excluded: &CpuSet,
) -> Result<(Vec<Pin>, Vec<String>), Failure> {
    let placed: Vec<Placed> = interrupts
        .data
        .iter()
        .zip(present)
        .map(|(interrupt, affinity)| Placed {
            irq: interrupt.number,
            queue: interrupt.queue,
            hint: affinity.hint.clone(),
        })
        .collect();
    let placement = place(
        strategy,
        &Request {
            interrupts: &placed,
            online: &machine.online,
            allowed,
            excluded,
            device_node: device.node,
            topology: &machine.topology,
            clusters: &machine.clusters,
        },
    )?;
    let pin = |(number, cpus): (u32, CpuSet)| {
        let index = interrupts.data.iter().position(|interrupt| interrupt.number == number)?;
        let (interrupt, affinity) = (interrupts.data.get(index)?, present.get(index)?);
        Some(Pin {
            number,
            queue: interrupt.queue,
            role: interrupt.role,
            label: interrupt.label.clone(),
            before: affinity.list.trim().to_owned(),
            cpus,
        })
    };
    Ok((placement.cpus.into_iter().filter_map(pin).collect(), placement.warnings))
}

fn affinity_path(number: u32) -> String {
    format!("/proc/irq/{number}/smp_affinity_list")
}

/// All pins that differ as one step, which goes on behind an interrupt that the kernel lets nobody move, and says what each has
/// then: a line with its number, its list, and the error.
fn change(interface: &str, pins: &[Pin]) -> Option<Change> {
    let differing: Vec<&Pin> = pins.iter().filter(|pin| pin.differs()).collect();
    if differing.is_empty() {
        return None;
    }
    let mut script = "w() {\n  e=$( { env printf '%s\\n' \"$2\" >\"/proc/irq/$1/smp_affinity_list\"; } 2>&1 )\n  \
                      read -r l <\"/proc/irq/$1/smp_affinity_list\"\n  printf '%s\\t%s\\t%s\\n' \"$1\" \"$l\" \"$e\"\n}"
        .to_owned();
    let mut back = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    for pin in &differing {
        script.push_str(&format!("\nw {} {}", pin.number, pin.cpus));
        let path = affinity_path(pin.number);
        // What the kernel would not move needs not be moved back.
        back.push(
            Step::new(format!("env printf '%s\\n' {0} >{path}; cat {path}", pin.before))
                .expect(pin.before.clone())
                .writes(path),
        );
        before.push_str(&format!("{} ({}): {}\n", pin.number, pin.label, pin.before));
        after.push_str(&format!("{} ({}): {}\n", pin.number, pin.label, pin.cpus));
    }
    back.reverse();
    let paths = differing.iter().map(|pin| Subject::Path(affinity_path(pin.number))).collect();
    Some(
        Change::uncertain(format!("interrupts of {interface}"), Footprint::Of(paths))
            .step(Step::new(script))
            .difference(Difference::new(format!("interrupts of {interface}"), before, after))
            .inverse(Inverse::Steps(back)),
    )
}

/// What came of each pin, by what the step printed.
fn judge(pins: &[Pin], response: Option<&Response>) -> Result<Vec<State>, Failure> {
    let text = response.map(Response::text).unwrap_or_default();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, '\t').collect()).collect();
    pins.iter()
        .map(|pin| {
            if !pin.differs() {
                return Ok(State::Already);
            }
            let number = pin.number.to_string();
            let line = lines.iter().find(|line| line.first() == Some(&number.as_str()));
            let (list, error) = line.map_or(("", ""), |line| {
                (line.get(1).copied().unwrap_or_default(), line.get(2).copied().unwrap_or_default())
            });
            if CpuSet::parse(list).is_ok_and(|list| list == pin.cpus) {
                return Ok(State::Changed);
            }
            let explained = explain(error, Interface::InterruptAffinity, true);
            match explained.outcome {
                Refusal::Unsupported if explained.errno.is_some() => Ok(State::Unsupported),
                _ if error.is_empty() => Err(Failure::new(format!(
                    "interrupt {number} ({}): `{}` was written, but it reads back as `{list}`",
                    pin.label, pin.cpus
                ))),
                _ => Err(Failure::new(format!("interrupt {number} ({}): {}", pin.label, explained.reason))),
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "irq_affinity_tests.rs"]
mod tests;
