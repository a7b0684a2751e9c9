//! `trimtab plan` and `trimtab apply`: what would change is written to a file, looked at, and later made exactly so.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Value as Json, json};

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs, VerbosityArgs};
use super::journal::Recording;
use super::play::{self, PlayArgs};
use super::replay::{Replay, all_are_known, as_it_was_reached, directory_of};
use super::session::Session;
use crate::error::{Error, Result};
use crate::host::Difference;
use crate::journal::plan::{OpenPlan, Plan, PlannedChange, Planner};
use crate::journal::steps;
use crate::modules::recorded_changes::Records;
use crate::playbook;
use crate::report::diff;
use crate::source::Source;
use crate::ui::Style;
use crate::value::Value;

/// The exit code of a plan that has changes in it.
pub const HAS_CHANGES: u8 = 3;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct PlanArgs {
    #[command(flatten)]
    pub play: PlayArgs,
    /// The file that the plan is written to
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    pub out: PathBuf,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct ApplyArgs {
    /// The plan: a file that `trimtab plan` wrote
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    #[command(flatten)]
    pub hosts: InventoryArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub reach: ConnectionArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// The journal whose key seals plans.
fn journal_path(session: &Session) -> Result<PathBuf> {
    session.journal_path()?.ok_or_else(|| {
        Error::usage("the journal is off, and plans are sealed with its key")
            .hint("TRIMTAB_JOURNAL or `journal` in ansible.cfg say so")
    })
}

/// Reads the hosts and writes what would change; exit code 0: nothing, 3: something.
pub fn plan(session: &mut Session, args: PlanArgs) -> Result<u8> {
    let PlanArgs { mut play, out } = args;
    play.run.check = true;
    let recording = Recording::new("plan", &play.reach, play.hosts.limit.as_deref());
    let inventory = play.hosts.inventory.iter().map(|source| absolute(session, source)).collect();
    let planner = Arc::new(Planner::new(
        &journal_path(session)?,
        session.surroundings.here.to_string_lossy().into_owned(),
        play.playbooks.clone(),
        inventory,
        recording.options.clone(),
    )?);
    let code = play::play_with(session, play, Recording { planner: Some(Arc::clone(&planner)), ..recording })?;
    let plan = planner.write(&out)?;
    let hosts: indexmap::IndexSet<&str> = plan.changes.iter().map(|change| change.host.as_str()).collect();
    let unplanned = match plan.unplanned.len() {
        0 => String::new(),
        count => format!(", and {count} tasks that cannot be planned"),
    };
    let said = format!("{}: {} changes on {} hosts{unplanned}", out.display(), plan.changes.len(), hosts.len());
    session.ui.note(&said, Style::Plain);
    Ok(match (code, plan.changes.is_empty() && plan.unplanned.is_empty()) {
        (0, false) => HAS_CHANGES,
        (code, _) => code,
    })
}

/// An inventory source by its whole path; hosts with commas stay as they are.
fn absolute(session: &Session, source: &str) -> String {
    if source.contains(',') {
        source.to_owned()
    } else {
        session.surroundings.here.join(source).to_string_lossy().into_owned()
    }
}

/// Makes the changes of a plan.
pub fn apply(session: &mut Session, mut args: ApplyArgs) -> Result<u8> {
    let open = OpenPlan::read(&args.plan, &journal_path(session)?)?;
    let plan = &open.plan;
    as_it_was_reached(&mut args.hosts, &mut args.reach, &plan.inventory, &plan.options);
    let format = session.format(args.run.output.as_deref())?;
    let mut options = session.options(&args.run, &args.reach, args.hosts.limit.clone())?;
    let mut fleet = session.fleet(&args.hosts, &args.variables)?;
    let is_wanted = |change: &PlannedChange| {
        let host = fleet.inventory.find_host(&change.host);
        fleet.limit.as_ref().is_none_or(|limit| host.is_some_and(|host| limit.contains(&host)))
    };
    let wanted: Vec<(i64, &PlannedChange)> = plan
        .changes
        .iter()
        .enumerate()
        .filter(|(_, change)| is_wanted(change))
        .map(|(at, change)| (at as i64, change))
        .collect();
    if wanted.is_empty() {
        session.ui.note("the plan has no changes for these hosts", Style::Quiet);
        return Ok(0);
    }
    all_are_known(wanted.iter().map(|(_, change)| change.host.as_str()), &fleet)?;
    let steps = steps(&wanted.iter().map(|(number, change)| change.entry(*number)).collect::<Vec<_>>());
    let by_number: HashMap<_, _> = open.recorded()?.into_iter().map(|change| (change.number, change)).collect();
    options.records = Some(Arc::new(Records::new(steps.iter().map(|step| &step.hosts), by_number)));
    let replay = Replay {
        name: format!("plan {}", args.plan.display()),
        verb: "",
        direction: "forward",
        force: false,
        goes_on: None,
        verifies: true,
    };
    let place = directory_of(&plan.directory, &plan.playbooks).join("plan");
    let plays = playbook::load_plays(&Source::new(place, replay.play(&steps).to_string()), &fleet.load)?;
    session.check_variables(&mut fleet, &plays)?;
    session.passwords(&mut options, &args.reach)?;
    let recording = Recording {
        playbooks: plan.playbooks.clone(),
        ..Recording::new("apply", &args.reach, args.hosts.limit.as_deref())
    };
    let unplanned = plan.unplanned.len();
    let code = session.run(options, fleet, plays, &[], format, recording)?;
    if unplanned > 0 {
        let said = format!("{unplanned} tasks could not be planned and were not run: `trimtab play` does them");
        session.ui.warning(&said);
    }
    Ok(code)
}

/// Shows a plan: each task with the hosts and what would change.
pub fn show(session: &mut Session, path: &Path, host: Option<&str>, with_diff: bool, as_json: bool) -> Result<u8> {
    let open = OpenPlan::read(path, &journal_path(session)?)?;
    let recorded = open.recorded()?;
    let is_wanted = |change: &PlannedChange| host.is_none_or(|host| change.host == host);
    let wanted = open.plan.changes.iter().zip(&recorded).filter(|(change, _)| is_wanted(change));
    if as_json {
        let changes: Vec<Json> = wanted.map(|(change, recorded)| change_json(change, &recorded.differences)).collect();
        let json = plan_json(&open.plan, changes);
        let text = serde_json::to_string_pretty(&json).map_err(|error| Error::system(error.to_string()))?;
        session.ui.line(&text);
        return Ok(0);
    }
    session.ui.line(&format!("plan of {}, made {}", open.plan.playbooks.join(" "), open.plan.made));
    let mut task = None;
    for (change, recorded) in wanted {
        if task != Some((&change.task, &change.place)) {
            task = Some((&change.task, &change.place));
            session.ui.line(&format!("\ntask `{}` ({})", change.task, change.place));
        }
        let irrevocable = change.no_inverse.as_ref().map(|why| format!("  (cannot be taken back: {why})"));
        let line = format!("  {}  {}{}", change.host, change.what, irrevocable.unwrap_or_default());
        session.ui.styled(&line, Style::Changed);
        if with_diff && !change.no_log {
            let list = Value::list(recorded.differences.iter().map(Difference::to_value).collect());
            let text = diff::text(&list, 3, &session.ui);
            session.ui.raw(&text);
        }
    }
    for unplanned in open.plan.unplanned.iter().filter(|unplanned| host.is_none_or(|host| unplanned.host == host)) {
        let line = format!("  {}  {}: `{}`: {}", unplanned.host, unplanned.state, unplanned.task, unplanned.why);
        session.ui.styled(&line, Style::Unknown);
    }
    Ok(0)
}

fn plan_json(plan: &Plan, changes: Vec<Json>) -> Json {
    json!({
        "made": plan.made,
        "directory": plan.directory,
        "playbooks": plan.playbooks,
        "inventory": plan.inventory,
        "changes": changes,
        "unplanned": plan.unplanned,
    })
}

fn change_json(change: &PlannedChange, differences: &[Difference]) -> Json {
    let diff: Vec<Json> = differences.iter().map(|difference| difference.to_value().to_json()).collect();
    json!({
        "host": change.host,
        "task": change.task,
        "action": change.action,
        "place": change.place,
        "item": change.item,
        "what": change.what,
        "become": change.become_as.as_ref().map(|(method, user)| json!({ "method": method, "user": user })),
        "no_inverse": change.no_inverse,
        "diff": if change.no_log { Json::Null } else { diff.into() },
    })
}
