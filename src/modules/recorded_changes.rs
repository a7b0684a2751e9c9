//! trimtab.recorded_changes: takes back, or makes, changes that were recorded. `trimtab undo` and `trimtab apply` are plays of it.

use std::collections::HashMap;

use futures_util::future::try_join_all;
use indexmap::IndexMap;

use crate::connect::shell::Response;
use crate::host::reads::Asked;
use crate::host::{Change, Failure, Footprint, Host, Query, RecordedChange, Standing};
use crate::value::Value;

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.recorded_changes",
    aliases: &[],
    summary: "Takes back, or makes, changes that were recorded: the tasks of `trimtab undo` and `trimtab apply`",
    args: &[
        Arg::new("step", Type::Int, "Which of the recorded steps").required(),
        Arg::new("direction", Type::Str, "`back` takes changes back, `forward` makes them")
            .choices(&["back", "forward"])
            .required(),
        Arg::new(
            "verify",
            Type::Bool,
            "Change nothing; fail unless the host is as it was when the steps were recorded",
        )
        .default("false"),
        Arg::new("steps", Type::List, "The steps that `verify` looks at"),
        Arg::new("force", Type::Bool, "Go on where the host is neither as it was before the change nor as after it")
            .default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("changes", "the numbers of the changes that were taken back or made, in their order"),
        ("left", "changes that were left alone: their number, what they changed, and why"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Recorded changes by host and step, in the order in which they are to be worked on.
#[derive(Debug, Default)]
pub struct Records {
    changes: HashMap<(String, i64), Vec<RecordedChange>>,
}

impl Records {
    /// The records of steps: each has the numbers of its changes by host.
    pub fn new<'a>(
        steps: impl IntoIterator<Item = &'a IndexMap<String, Vec<i64>>>,
        mut changes: HashMap<i64, RecordedChange>,
    ) -> Records {
        let mut records = Records::default();
        for (step, hosts) in (0..).zip(steps) {
            for (host, numbers) in hosts {
                let of_host = numbers.iter().filter_map(|number| changes.remove(number)).collect();
                records.changes.insert((host.clone(), step), of_host);
            }
        }
        records
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Forward,
}

/// What is to be done about one change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Plan {
    Make(Box<Change>),
    /// The host is already as it would leave it.
    Nothing,
    /// It is left alone, for this reason.
    Leave(String),
}

fn plan(recorded: &RecordedChange, standing: Standing, direction: Direction, force: bool) -> Plan {
    let change = match direction {
        Direction::Back => recorded.back(),
        Direction::Forward => recorded.forward(),
    };
    let change = match change {
        Ok(change) => Box::new(change),
        Err(reason) => return Plan::Leave(reason),
    };
    match (standing, direction) {
        (Standing::Before, Direction::Back) | (Standing::After, Direction::Forward) => Plan::Nothing,
        (Standing::After, Direction::Back) | (Standing::Before, Direction::Forward) => Plan::Make(change),
        (Standing::Elsewhere(why), _) if !force => Plan::Leave(format!("somebody has changed it since: {why}")),
        (Standing::Untold, Direction::Back) if !recorded.known && !force => {
            Plan::Leave("it is not known whether it was made, and nothing tells".to_owned())
        }
        _ => Plan::Make(change),
    }
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let Some(records) = &settings.records else {
        return Err(Failure::new("only `trimtab undo` and `trimtab apply` have recorded changes"));
    };
    let direction = if args.str("direction") == Some("back") { Direction::Back } else { Direction::Forward };
    if args.bool("verify") {
        return verify(&args, &host, records).await;
    }
    let step = args.int("step").unwrap_or_default();
    let Some(changes) = records.changes.get(&(host.name().to_owned(), step)) else {
        return Ok(Outcome::skipped("nothing of this task was recorded for this host"));
    };
    let mut outcome = Outcome::ok();
    let (mut made, mut left) = (Vec::new(), Vec::new());
    for recorded in changes {
        let standing = recorded.standing(&look(&host, recorded).await?, direction == Direction::Back);
        match plan(recorded, standing, direction, args.bool("force")) {
            Plan::Nothing => {}
            Plan::Make(change) => {
                outcome.changed = true;
                outcome.differences.extend(change.differences.iter().cloned());
                let (certain, what) = (change.certain, change.what.clone());
                let applied = host.change(*change).await?;
                if !certain && let Some(failed) = applied.responses.iter().find(|response| !response.success()) {
                    let code = failed.code.unwrap_or(-1);
                    let said = failed.error_text();
                    let why = if said.trim().is_empty() {
                        format!("failed with exit code {code}")
                    } else {
                        said.trim().to_owned()
                    };
                    return Err(Failure::new(format!("{what}: {why}")).with("rc", i64::from(code)));
                }
                made.push(Value::from(recorded.number));
            }
            Plan::Leave(why) => left.push((recorded, why)),
        }
    }
    let entries = left.iter().map(|(recorded, why)| {
        let entry = crate::value::object([
            ("number", recorded.number.into()),
            ("what", recorded.what.as_str().into()),
            ("why", why.as_str().into()),
        ]);
        Value::from(entry)
    });
    let entries = Value::list(entries.collect());
    outcome = outcome.with("changes", Value::list(made)).with("left", entries.clone());
    match left.split_first() {
        None => Ok(outcome),
        Some(((first, why), others)) => {
            let more = if others.is_empty() { String::new() } else { format!("; and {} more", others.len()) };
            let message = format!("left alone: {}: {why}{more}", first.what);
            Err(Failure::new(message).with("left", entries).with("changed", outcome.changed))
        }
    }
}

/// Fails unless the host is as it was before the first of these changes.
async fn verify(args: &Args, host: &Host, records: &Records) -> Result<Outcome, Failure> {
    let steps = args.list("steps");
    let steps = steps.iter().filter_map(|step| step.trim().parse::<i64>().ok());
    let changes: Vec<&RecordedChange> =
        steps.filter_map(|step| records.changes.get(&(host.name().to_owned(), step))).flatten().collect();
    let expected = expectations(&changes);
    let now = try_join_all(expected.iter().map(|(query, _)| host.read(Asked((*query).clone())))).await?;
    for ((query, before), now) in expected.iter().zip(&now) {
        if !query.agrees(before, now) {
            let message = format!(
                "it is no longer as it was planned: {query}: expected {}, found {}; nothing was changed",
                query.brief(before),
                query.brief(now)
            );
            return Err(Failure::new(message));
        }
    }
    Ok(if changes.is_empty() { Outcome::skipped("nothing was planned for this host") } else { Outcome::ok() })
}

/// What questions were answered before the first change that has to do with them.
fn expectations<'a>(changes: &[&'a RecordedChange]) -> Vec<(&'a Query, &'a Response)> {
    let mut expected: Vec<(&Query, &Response)> = Vec::new();
    let mut touched: Vec<&Footprint> = Vec::new();
    for change in changes {
        for seen in &change.observations {
            let is_later = touched.iter().any(|footprint| footprint.touches(&seen.query.footprint()));
            if let Some(before) = &seen.before
                && !is_later
            {
                expected.push((&seen.query, before));
            }
        }
        touched.push(&change.footprint);
    }
    expected
}

/// What the host answers now to the questions of a recorded change.
async fn look(host: &Host, recorded: &RecordedChange) -> Result<Vec<Response>, Failure> {
    try_join_all(recorded.observations.iter().map(|seen| host.read(Asked(seen.query.clone())))).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Inverse, Observation, Step};

    fn recorded(known: bool) -> RecordedChange {
        RecordedChange {
            number: 3,
            what: "file /etc/a".into(),
            steps: Ok(vec![Step::new("write")]),
            inverse: Inverse::Steps(vec![Step::new("restore")]),
            observations: Vec::new(),
            differences: Vec::new(),
            footprint: Footprint::path("/etc/a"),
            certain: true,
            known,
        }
    }

    #[test]
    fn only_what_is_as_it_was_left_is_taken_back() {
        let elsewhere = || Standing::Elsewhere("content of /etc/a: expected `1`, found `2`".into());
        let cases = [
            (Standing::After, Direction::Back, true, false, "restore"),
            (Standing::Before, Direction::Back, true, false, "nothing"),
            (elsewhere(), Direction::Back, true, false, "somebody has changed it since"),
            (elsewhere(), Direction::Back, true, true, "restore"),
            (Standing::Untold, Direction::Back, true, false, "restore"),
            (Standing::Untold, Direction::Back, false, false, "not known whether it was made"),
            (Standing::Untold, Direction::Back, false, true, "restore"),
            (Standing::Before, Direction::Forward, true, false, "write"),
            (Standing::After, Direction::Forward, true, false, "nothing"),
            (elsewhere(), Direction::Forward, true, false, "somebody has changed it since"),
        ];
        for (standing, direction, known, force, expected) in cases {
            let told = match plan(&recorded(known), standing.clone(), direction, force) {
                Plan::Make(change) => change.steps[0].script.clone(),
                Plan::Nothing => "nothing".to_owned(),
                Plan::Leave(why) => why,
            };
            assert!(told.contains(expected), "{standing:?}: {told}");
        }
    }

    #[test]
    fn a_plan_expects_what_was_there_before_its_first_change() {
        let seen = |before: &str| Observation {
            query: Query::Content("/etc/a".into()),
            before: Some(Response::output(before)),
            after: Response::output("x"),
        };
        let first = RecordedChange { observations: vec![seen("old")], ..recorded(true) };
        let second = RecordedChange { observations: vec![seen("x")], ..recorded(true) };
        let expected = expectations(&[&first, &second]);
        assert_eq!(expected, [(&Query::Content("/etc/a".into()), &Response::output("old"))]);
    }

    #[test]
    fn what_has_no_inverse_is_left_with_the_reason() {
        let command = RecordedChange { inverse: Inverse::None("a restart cannot be undone".into()), ..recorded(true) };
        let planned = plan(&command, Standing::Untold, Direction::Back, true);
        assert_eq!(planned, Plan::Leave("a restart cannot be undone".into()));
    }
}
