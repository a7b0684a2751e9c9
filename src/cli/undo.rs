//! `trimtab undo`: takes back what a run changed, as a run of its own.

use std::collections::HashMap;
use std::sync::Arc;

use clap::Args;
use indexmap::IndexMap;

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs, VerbosityArgs};
use super::journal::Recording;
use super::replay::{Replay, all_are_known, as_it_was_reached, directory_of};
use super::session::Session;
use crate::error::Result;
use crate::host::{RecordedChange, recorded};
use crate::journal::{ChangeFilter, ChangeRow, ChangeState, Journal, RecordedStep, steps};
use crate::modules::recorded_changes::Records;
use crate::playbook;
use crate::source::Source;
use crate::ui::Style;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct UndoArgs {
    /// The run: a number that `trimtab history` shows, or `last`
    #[arg(value_name = "RUN")]
    pub run_id: String,
    /// Only what tasks with this in their name changed
    #[arg(long, value_name = "TEXT")]
    pub task: Option<String>,
    /// Also where somebody has changed it since
    #[arg(long)]
    pub force: bool,
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

/// Takes the run back.
pub fn undo(session: &mut Session, mut args: UndoArgs) -> Result<u8> {
    let journal = session.journal()?;
    let run = journal.run(&args.run_id)?;
    as_it_was_reached(&mut args.hosts, &mut args.reach, &run.inventory, &run.options);
    let format = session.format(args.run.output.as_deref())?;
    let mut options = session.options(&args.run, &args.reach, args.hosts.limit.clone())?;
    let mut fleet = session.fleet(&args.hosts, &args.variables)?;
    let wanted = |row: &ChangeRow| {
        let host = fleet.inventory.find_host(&row.host);
        args.task.as_ref().is_none_or(|text| row.task.contains(text.as_str()))
            && fleet.limit.as_ref().is_none_or(|limit| host.is_some_and(|host| limit.contains(&host)))
    };
    let mut rows = journal.changes(&ChangeFilter { run: Some(run.id), ..ChangeFilter::default() })?;
    rows.retain(wanted);
    let all = rows.len();
    rows.retain(|row| row.state != ChangeState::NotBegun && (args.force || row.undone_by.is_none()));
    if rows.is_empty() {
        let why = match (run.changes, all) {
            (0, _) => "it changed nothing".to_owned(),
            (_, 0) => "none of its changes is of these hosts and tasks".to_owned(),
            _ => format!("its {all} changes were taken back already"),
        };
        session.ui.note(&format!("run {}: nothing to take back: {why}", run.id), Style::Quiet);
        return Ok(0);
    }
    all_are_known(rows.iter().map(|row| row.host.as_str()), &fleet)?;
    let steps = steps(&rows.iter().rev().map(ChangeRow::entry).collect::<Vec<_>>());
    options.records = Some(Arc::new(records(&journal, &rows, &steps)?));
    let left = format!("tasks were not taken back as a whole; `trimtab show {}` tells which changes are left", run.id);
    let replay = Replay {
        name: format!("undo of run {}", run.id),
        verb: "undo ",
        direction: "back",
        force: args.force,
        goes_on: Some(&left),
        verifies: false,
    };
    let place = directory_of(&run.directory, &run.playbooks).join(&replay.name);
    let plays = playbook::load_plays(&Source::new(place, replay.play(&steps).to_string()), &fleet.load)?;
    session.check_variables(&mut fleet, &plays)?;
    session.passwords(&mut options, &args.reach)?;
    let recording = Recording {
        playbooks: run.playbooks.clone(),
        undoes: Some(run.id),
        ..Recording::new("undo", &args.reach, args.hosts.limit.as_deref())
    };
    session.run(options, fleet, plays, &[], format, recording)
}

/// The recorded changes of each host and step.
fn records(journal: &Journal, rows: &[ChangeRow], steps: &[RecordedStep]) -> Result<Records> {
    let mut of_host: IndexMap<&str, Vec<RecordedChange>> = IndexMap::new();
    for row in rows {
        of_host.entry(&row.host).or_default().push(journal.recorded(row)?);
    }
    let mut by_number: HashMap<i64, RecordedChange> = HashMap::new();
    for (_, mut changes) in of_host {
        recorded::fill_in(&mut changes);
        by_number.extend(changes.into_iter().map(|change| (change.number, change)));
    }
    Ok(Records::new(steps.iter().map(|step| &step.hosts), by_number))
}
