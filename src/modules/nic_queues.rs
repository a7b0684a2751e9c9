//! `trimtab.tuning.nic_queues`: queues, rings and offloads of a network device.

use futures_util::join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{KernelFile, Script};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Query, Step, Subject};
use crate::tuning::channels::{
    ChannelPlan, Channels, Clamp, Report, parse_features, parse_report, plan_channels, plan_features, plan_rings,
    with_current,
};
use crate::tuning::write_error::Interface;
use crate::value::Value;

use super::kernel_write::explained;
use super::network_device::{INTERFACE, interface_of, name_check, ssh_interfaces};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.nic_queues",
    aliases: &[],
    summary: "Sets the number of queues, the ring sizes and the offloads of a network device with ethtool",
    args: &[
        INTERFACE,
        Arg::new(
            "queues",
            Type::Int,
            "the number of queues: combined ones, or receive and send queues where there are no combined",
        ),
        Arg::new("rx_ring", Type::Int, "packets in each receive ring; drivers may take only some numbers"),
        Arg::new("tx_ring", Type::Int, "packets in each send ring"),
        Arg::new(
            "above_maximum",
            Type::Str,
            "what to do where a number is above the device's maximum: fail, or take the maximum",
        )
        .default("fail")
        .choices(&["fail", "maximum"]),
        Arg::new("features", Type::Dict, "offloads by name, as `gro: true`"),
        Arg::new(
            "ssh_interface",
            Type::Str,
            "what to do with the device that carries this connection, which a change of queues can interrupt",
        )
        .default("refuse")
        .choices(&["refuse", "allow"]),
    ],
    rules: &[Rule::RequiredOneOf(&["queues", "rx_ring", "tx_ring", "features"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("queues", "the number of queues of the device"),
        ("maximum", "the most queues it can have"),
        ("resets", "true if interrupts and steering of the device were set back by the change and are to be set again"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Seconds that a device may take until its link is up again.
const CARRIER_SECONDS: u32 = 15;

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let interface = interface_of(&args)?;
    let (channels, rings, features, carrier, carries_ssh) = join!(
        host.read(ethtool("-l", &interface)),
        host.read(ethtool("-g", &interface)),
        host.read(ethtool("-k", &interface)),
        host.read(KernelFile(format!("/sys/class/net/{interface}/carrier"))),
        ssh_interfaces(&host),
    );
    let seen = Seen {
        interface,
        channels: channels?,
        rings: rings?,
        features: features?,
        had_carrier: carrier?.as_deref().map(str::trim) == Some("1"),
    };
    let plan = plan(&args, &seen)?;
    let mut outcome = Outcome::ok();
    for warning in &plan.warnings {
        outcome = outcome.warning(warning.as_str());
    }
    if let Some(change) = plan.change {
        let carries_ssh = carries_ssh?;
        if plan.interrupts && args.text("ssh_interface") == "refuse" && carries_ssh.contains(&seen.interface) {
            return Err(Failure::new(format!(
                "{} carries this connection, and the change can interrupt it; reach the host by another device, or say \
                 `ssh_interface: allow`",
                seen.interface
            )));
        }
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        host.change(change).await.map_err(|failure| explained(failure, Interface::Channels, true))?;
    }
    Ok(outcome.with("queues", plan.queues).with("maximum", plan.maximum).with("resets", plan.interrupts))
}

fn ethtool(flag: &str, interface: &str) -> Script {
    Script {
        text: format!("ethtool {flag} {}", quote(interface)),
        footprint: Footprint::named(format!("ethtool {interface}")),
    }
}

/// What was read of a device.
#[derive(Debug)]
struct Seen {
    interface: String,
    channels: Response,
    rings: Response,
    features: Response,
    had_carrier: bool,
}

/// The report of a device; a failure of ethtool in words.
fn report(response: &Response, what: &str, interface: &str) -> Result<Report, Failure> {
    if response.success() {
        return Ok(parse_report(&response.text())?);
    }
    if response.code == Some(127) {
        return Err(Failure::new("this host has no `ethtool`; install the package of that name"));
    }
    let reason = response.error_text();
    Err(Failure::new(format!("the {what} of {interface} cannot be had: {}", reason.trim())))
}

#[derive(Debug)]
struct Plan {
    change: Option<Change>,
    queues: Option<u64>,
    maximum: Option<u64>,
    /// The device stops for a moment, and its interrupts are requested anew.
    interrupts: bool,
    warnings: Vec<String>,
}

fn plan(args: &Args, seen: &Seen) -> Result<Plan, Failure> {
    let interface = &seen.interface;
    let clamp = if args.text("above_maximum") == "maximum" { Clamp::UpToMaximum } else { Clamp::Exact };
    let number = |name: &str| match args.int(name) {
        Some(number) => u64::try_from(number).map(Some).map_err(|_| Failure::new(format!("{name} cannot be negative"))),
        None => Ok(None),
    };
    let named = |failure: crate::error::Error| {
        let failure = Failure::from(failure);
        Failure { message: format!("{interface}: {}", failure.message), ..failure }
    };
    let what = format!("queues of {interface}");
    let footprint = Footprint::Of(vec![
        Subject::Named(format!("ethtool {interface}")),
        Subject::Named(format!("interrupts of {interface}")),
        Subject::Tree(format!("/sys/class/net/{interface}")),
        Subject::Tree("/proc/irq".to_owned()),
        Subject::Path("/proc/interrupts".to_owned()),
    ]);
    let mut change = Change::certain(what, footprint);
    let mut back = Vec::new();
    let mut plan = Plan { change: None, queues: None, maximum: None, interrupts: false, warnings: Vec::new() };

    if let Some(wanted) = number("queues")? {
        let report = report(&seen.channels, "queues", interface)?;
        let channels = plan_channels(&report, wanted, clamp).map_err(named)?;
        plan.queues = Some(match channels.channels {
            Channels::Combined(count) => count,
            Channels::Separate { rx, .. } => rx,
        });
        plan.maximum = report.maximum.combined.or(report.maximum.rx);
        if channels.clamped {
            plan.warnings.push(format!(
                "{interface}: {wanted} queues are wanted, {} is the most it can have",
                plan.queues.unwrap_or(0)
            ));
        }
        if channels.changes {
            let before = present(&channels, &report);
            change = with_channels(change, seen, &channels, before);
            back.push(channel_step(interface, before, seen.had_carrier));
            plan.interrupts = true;
        }
    }

    let (rx, tx) = (number("rx_ring")?, number("tx_ring")?);
    if rx.is_some() || tx.is_some() {
        let report = report(&seen.rings, "rings", interface)?;
        let arguments = plan_rings(&report, rx, tx, clamp).map_err(named)?;
        if !arguments.is_empty() {
            let rows = [("RX", "rx", report.current.rx), ("TX", "tx", report.current.tx)];
            let chosen: Vec<_> = rows
                .iter()
                .filter_map(|(row, name, before)| {
                    let at = arguments.iter().position(|argument| argument == name)?;
                    Some((*row, *name, *before, arguments.get(at + 1)?.parse::<u64>().ok()?))
                })
                .collect();
            let after: Vec<(&str, u64)> = chosen.iter().map(|(row, _, _, after)| (*row, *after)).collect();
            let before: Vec<(&str, u64)> =
                chosen.iter().filter_map(|(row, _, before, _)| Some((*row, (*before)?))).collect();
            let text = seen.rings.text();
            change = change
                .step(rows_step("-G", "-g", interface, &after, seen.had_carrier))
                .difference(Difference::new(format!("rings of {interface}"), rows_text(&before), rows_text(&after)))
                .leaves(query("-g", interface), Response::output(with_current(&text, &after)));
            back.push(rows_step("-G", "-g", interface, &before, seen.had_carrier));
            plan.interrupts = true;
        }
    }

    let wanted = wanted_features(args)?;
    if !wanted.is_empty() {
        if !seen.features.success() {
            return Err(Failure::new(format!(
                "the features of {interface} cannot be had: {}",
                seen.features.error_text().trim()
            )));
        }
        for (short, long, on) in plan_features(&parse_features(&seen.features.text()), &wanted).map_err(named)? {
            let word = |on| if on { "on" } else { "off" };
            change = change.step(feature_step(interface, &short, &long, word(on))).difference(Difference::new(
                format!("features of {interface}"),
                format!("{long}: {}\n", word(!on)),
                format!("{long}: {}\n", word(on)),
            ));
            // Features depend on each other, so what the others are then is not known.
            change.certain = false;
            back.push(feature_step(interface, &short, &long, word(!on)));
        }
    }
    back.reverse();
    plan.change = (!change.steps.is_empty()).then(|| change.inverse(Inverse::Steps(back)));
    Ok(plan)
}

fn query(flag: &str, interface: &str) -> Query {
    use crate::host::Read;
    ethtool(flag, interface).query()
}

/// The channels that the device has, in the form in which they are set.
fn present(plan: &ChannelPlan, report: &Report) -> Channels {
    match plan.channels {
        Channels::Combined(_) => Channels::Combined(report.current.combined.unwrap_or(1)),
        Channels::Separate { .. } => {
            Channels::Separate { rx: report.current.rx.unwrap_or(1), tx: report.current.tx.unwrap_or(1) }
        }
    }
}

fn channel_rows(channels: Channels) -> Vec<(&'static str, u64)> {
    match channels {
        Channels::Combined(count) => vec![("Combined", count)],
        Channels::Separate { rx, tx } => vec![("RX", rx), ("TX", tx)],
    }
}

fn with_channels(change: Change, seen: &Seen, plan: &ChannelPlan, before: Channels) -> Change {
    let interface = &seen.interface;
    let after = channel_rows(plan.channels);
    change
        .step(channel_step(interface, plan.channels, seen.had_carrier))
        .difference(Difference::new(
            format!("queues of {interface}"),
            rows_text(&channel_rows(before)),
            rows_text(&after),
        ))
        .leaves(query("-l", interface), Response::output(with_current(&seen.channels.text(), &after)))
}

fn rows_text(rows: &[(&str, u64)]) -> String {
    rows.iter().map(|(name, number)| format!("{}: {number}\n", name.to_lowercase())).collect()
}

fn channel_step(interface: &str, channels: Channels, had_carrier: bool) -> Step {
    rows_step("-L", "-l", interface, &channel_rows(channels), had_carrier)
}

/// Sets rows, waits until the link is up again, and reads the rows back.
fn rows_step(set: &str, get: &str, interface: &str, rows: &[(&str, u64)], had_carrier: bool) -> Step {
    let name = quote(interface);
    let arguments: Vec<String> = rows.iter().map(|(row, number)| format!("{} {number}", row.to_lowercase())).collect();
    let mut script = format!("ethtool {set} {name} {} || exit", arguments.join(" "));
    if had_carrier {
        let carrier = quote(&format!("/sys/class/net/{interface}/carrier"));
        script.push_str(&format!(
            "\ni=0\nwhile [ \"$(cat {carrier} 2>/dev/null)\" != 1 ]; do\n  [ $i -lt {CARRIER_SECONDS} ] || \
             {{ echo 'the link is not up again after {CARRIER_SECONDS} seconds' >&2; exit 1; }}\n  i=$((i + 1))\n  sleep 1\ndone"
        ));
    }
    let names: Vec<&str> = rows.iter().map(|(row, _)| *row).collect();
    script.push_str(&format!(
        "\nethtool {get} {name} | awk -F '[:[:space:]]+' '/^Current/ {{ c = 1 }} c && /^({}):/ {{ print $1, $2 }}'",
        names.join("|")
    ));
    let expect: Vec<String> = rows.iter().map(|(row, number)| format!("{row} {number}")).collect();
    Step::new(script).expect(expect.join("\n"))
}

fn feature_step(interface: &str, short: &str, long: &str, word: &str) -> Step {
    let name = quote(interface);
    Step::new(format!(
        "ethtool -K {name} {} {word} >&2 || exit\nethtool -k {name} | awk -v f={} '$1 == f \":\" {{ print $2 }}'",
        quote(short),
        quote(long)
    ))
    .expect(word)
}

fn wanted_features(args: &Args) -> Result<Vec<(String, bool)>, Failure> {
    let map = args.get("features").and_then(Value::as_map);
    map.into_iter()
        .flatten()
        .map(|(name, on)| {
            let name = name.to_text().into_owned();
            name_check(&name)?;
            let on = on.to_ansible_bool().ok_or_else(|| {
                Failure::new(format!("the feature `{name}` is to be on or off, not `{}`", on.to_text()))
            })?;
            Ok((name, on))
        })
        .collect()
}

#[cfg(test)]
#[path = "nic_queues_tests.rs"]
mod tests;
