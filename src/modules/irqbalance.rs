//! `trimtab.tuning.irqbalance`: the daemon that moves interrupts between CPUs, off, masked or on.
//!
//! Stopping it alters nothing but itself: interrupts stay where they are. So what follows can be decided at once, which
//! is not so for a service that nobody knows.

use crate::connect::shell::{Response, quote};
use crate::host::reads::UnitProperties;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Query, Step, Subject};
use crate::tuning::firewall::{Mode, UnitState, restoring_steps, steps};

use super::firewall::{after, describe, proof, unit_state};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type, machine};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.irqbalance",
    aliases: &[],
    summary: "Stops, masks or starts irqbalance, which moves bound interrupts back within seconds",
    args: &[
        Arg::new(
            "state",
            Type::Str,
            "stopped: off, also at boot; masked: nobody can start it; started: on, also at boot. Where it is not installed it \
             is stopped and masked",
        )
        .default("stopped")
        .choices(&["stopped", "masked", "started"]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("installed", "whether the host has it"), ("was_running", "whether it ran before")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const UNIT: &str = "irqbalance";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let mode = match args.text("state") {
        "started" => Mode::Keep,
        "masked" => Mode::Masked,
        _ => Mode::Stopped,
    };
    let properties = machine::unit(&host, UNIT).await?;
    let properties = properties.ok_or_else(|| Failure::new("systemd is not the init system of this host"))?;
    let unit = unit_state(UNIT, &properties);
    let mut outcome = Outcome::ok();
    if mode == Mode::Keep && !unit.exists() {
        return Err(Failure::new("irqbalance is not installed; install the package of that name"));
    }
    if let Some(change) = change(mode, &unit, &properties)? {
        if unit.is_active() && mode != Mode::Keep {
            outcome =
                outcome.warning("irqbalance stops: the interrupts of all devices stay where they are from now on");
        }
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        host.change(change).await?;
    }
    Ok(outcome.with("installed", unit.exists()).with("was_running", unit.is_active()))
}

/// The change of the unit; `None` if it is as wanted.
fn change(mode: Mode, unit: &UnitState, properties: &UnitProperties) -> Result<Option<Change>, Failure> {
    let plan = steps(mode, unit)?;
    if plan.is_empty() {
        return Ok(None);
    }
    let after = after(mode, unit);
    let call = |step: &crate::tuning::firewall::Step| Step::new(format!("systemctl {step} {}", quote(&unit.id)));
    let footprint = Footprint::Of(vec![Subject::Unit(UNIT.to_owned())]);
    let mut change = Change::certain(format!("service {UNIT}"), footprint);
    for step in &plan {
        change = change.step(call(step));
    }
    change = change
        .step(Step::new(proof(mode, &unit.id)))
        .difference(Difference::new(format!("service {UNIT}"), describe(unit), describe(&after)))
        .inverse(Inverse::Steps(restoring_steps(unit, &after).iter().map(call).collect()));
    // A new process has a number that nobody can tell.
    if mode != Mode::Keep {
        change = change.leaves(Query::Unit(UNIT.to_owned()), Response::output(shown(&after, properties)));
    }
    Ok(Some(change))
}

/// What `systemctl show` says of the stopped unit.
fn shown(after: &UnitState, properties: &UnitProperties) -> String {
    let load = if after.is_masked() { "masked" } else { &after.load };
    let lines = properties.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "LoadState" => load,
            "ActiveState" => &after.active,
            "SubState" => "dead",
            "UnitFileState" => &after.file,
            "MainPID" => "0",
            _ => value,
        };
        format!("{name}={value}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(load: &str, active: &str, file: &str) -> UnitProperties {
        let pairs = [
            ("Id", "irqbalance.service"),
            ("LoadState", load),
            ("ActiveState", active),
            ("SubState", "running"),
            ("UnitFileState", file),
            ("MainPID", "77"),
        ];
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The calls of systemctl: there, and back.
    fn calls(mode: Mode, properties: &UnitProperties) -> Option<(String, String)> {
        let change = change(mode, &unit_state(UNIT, properties), properties).unwrap()?;
        let verbs = |steps: &[Step]| {
            let verbs = steps.iter().filter_map(|step| step.script.strip_prefix("systemctl "));
            verbs.filter_map(|rest| rest.split(' ').next()).collect::<Vec<_>>().join(" ")
        };
        let Inverse::Steps(back) = &change.inverse else { panic!("no inverse") };
        Some((verbs(&change.steps), verbs(back)))
    }

    #[test]
    fn it_is_stopped_and_can_be_started_again() {
        let there = properties("loaded", "active", "enabled");
        let cases = [
            (Mode::Stopped, there.clone(), Some(("stop disable", "enable start"))),
            (Mode::Masked, there.clone(), Some(("stop disable mask", "unmask enable start"))),
            (Mode::Keep, there, None),
            (Mode::Stopped, properties("loaded", "inactive", "disabled"), None),
            (Mode::Stopped, properties("loaded", "inactive", "enabled"), Some(("disable", "enable"))),
            (
                Mode::Keep,
                properties("masked", "inactive", "masked"),
                Some(("unmask enable start", "stop disable mask")),
            ),
            (Mode::Stopped, properties("not-found", "inactive", ""), None),
        ];
        for (mode, properties, expected) in cases {
            let expected = expected.map(|(there, back)| (there.to_owned(), back.to_owned()));
            assert_eq!(calls(mode, &properties), expected, "{mode:?} {properties:?}");
        }
    }

    #[test]
    fn what_follows_sees_it_stopped() {
        let before = properties("loaded", "active", "enabled");
        let change = change(Mode::Stopped, &unit_state(UNIT, &before), &before).unwrap().unwrap();
        let (query, response) = &change.effects[0];
        assert_eq!(*query, Query::Unit(UNIT.to_owned()));
        assert_eq!(
            response.text(),
            "Id=irqbalance.service\nLoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nMainPID=0\n"
        );
    }
}
