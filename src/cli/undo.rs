//! `trimtab undo`: takes back what a run changed, as a run of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indexmap::{IndexMap, IndexSet};
use serde_json::json;

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs, VerbosityArgs};
use super::journal::Recording;
use super::session::Session;
use crate::error::{Error, Result};
use crate::host::{RecordedChange, recorded};
use crate::journal::{ChangeFilter, ChangeRow, ChangeState, Journal, RunRow, UndoStep, undo_steps};
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
    as_it_was_reached(&mut args, &run);
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
    let unknown: IndexSet<&str> = rows
        .iter()
        .map(|row| row.host.as_str())
        .filter(|host| fleet.inventory.find_host(host).is_none() && !is_controller(host))
        .collect();
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.into_iter().collect();
        return Err(Error::input(format!("not in the inventory any more: {}", names.join(", ")))
            .hint("`-i` names the inventory that has them; `--limit` leaves them out"));
    }
    let steps = undo_steps(&rows);
    options.records = Some(Arc::new(records(&journal, &rows, &steps)?));
    let text = play_text(&run, &steps, args.force).to_string();
    let directory = directory_of(&run);
    let plays =
        playbook::load_plays(&Source::new(directory.join(format!("undo of run {}", run.id)), text), &fleet.load)?;
    session.check_variables(&mut fleet, &plays)?;
    session.passwords(&mut options, &args.reach)?;
    let recording = Recording {
        playbooks: run.playbooks.clone(),
        undoes: Some(run.id),
        ..Recording::new("undo", &args.reach, args.hosts.limit.as_deref())
    };
    session.run(options, fleet, plays, &[], format, recording)
}

fn is_controller(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// What the command line does not say is as it was in the run.
fn as_it_was_reached(args: &mut UndoArgs, run: &RunRow) {
    if args.hosts.inventory.is_empty() {
        args.hosts.inventory.clone_from(&run.inventory);
    }
    let was = |name: &str| run.options.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let reach = &mut args.reach;
    for (option, name) in [
        (&mut reach.user, "user"),
        (&mut reach.private_key, "private-key"),
        (&mut reach.connection, "connection"),
        (&mut reach.ssh_common_args, "ssh-common-args"),
        (&mut reach.ssh_extra_args, "ssh-extra-args"),
    ] {
        if option.is_none() {
            *option = was(name);
        }
    }
}

/// Where the playbook of a run was, so that the variables beside it count again.
fn directory_of(run: &RunRow) -> PathBuf {
    let here = Path::new(&run.directory);
    match run.playbooks.first().map(|playbook| here.join(playbook)) {
        Some(playbook) => playbook.parent().map_or(here.to_owned(), Path::to_owned),
        None => here.to_owned(),
    }
}

/// The recorded changes of each host and step.
fn records(journal: &Journal, rows: &[ChangeRow], steps: &[UndoStep]) -> Result<Records> {
    let mut of_host: IndexMap<&str, Vec<RecordedChange>> = IndexMap::new();
    for row in rows {
        of_host.entry(&row.host).or_default().push(journal.recorded(row)?);
    }
    let mut by_number: HashMap<i64, RecordedChange> = HashMap::new();
    for (_, mut changes) in of_host {
        recorded::fill_in(&mut changes);
        by_number.extend(changes.into_iter().map(|change| (change.number, change)));
    }
    let mut records = Records::default();
    for (index, step) in steps.iter().enumerate() {
        for (host, numbers) in &step.hosts {
            let changes = numbers.iter().filter_map(|number| by_number.remove(number)).collect();
            records.changes.insert((host.clone(), index as i64), changes);
        }
    }
    Ok(records)
}

/// The play that takes back, as JSON, which is YAML too. What cannot be taken back keeps nothing else from being, and fails the host in the end.
fn play_text(run: &RunRow, steps: &[UndoStep], force: bool) -> serde_json::Value {
    let hosts: IndexSet<&str> = steps.iter().flat_map(|step| step.hosts.keys()).map(String::as_str).collect();
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let mut tasks: Vec<serde_json::Value> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let mut task = json!({
            "name": plain(&format!("undo {}", step.task)),
            "trimtab.recorded_changes": { "step": index, "direction": "back", "force": force },
            "register": format!("trimtab_undo_{index}"),
            "ignore_errors": true,
            "no_log": step.no_log,
            "become": step.become_as.is_some(),
        });
        if let Some((method, user)) = &step.become_as {
            task["become_method"] = method.as_str().into();
            task["become_user"] = user.as_str().into();
        }
        tasks.push(task);
    }
    let results: Vec<String> = (0..steps.len()).map(|index| format!("trimtab_undo_{index}")).collect();
    let results = format!("[{}]", results.join(", "));
    tasks.push(json!({
        "name": "everything was taken back",
        "ansible.builtin.fail": {
            "msg": format!(
                "{{{{ {results} | select('failed') | length }}}} tasks were not taken back as a whole; `trimtab show {}` tells which changes are left",
                run.id
            ),
        },
        "when": format!("{results} | select('failed') | length > 0"),
        "become": false,
    }));
    json!([{
        "name": format!("undo of run {}", run.id),
        "hosts": hosts,
        "gather_facts": false,
        "tasks": tasks,
    }])
}

/// A name that is no template.
fn plain(name: &str) -> String {
    name.replace("{{", "{ {").replace("{%", "{ %").replace("{#", "{ #")
}
