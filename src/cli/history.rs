//! `trimtab history` and `trimtab show`: what runs did, from the journal.

use clap::Args;
use serde_json::{Value as Json, json};

use super::args::VerbosityArgs;
use super::session::Session;
use crate::error::{Error, Result};
use crate::host::{Difference, RecordedChange};
use crate::journal::{ChangeFilter, ChangeRow, ChangeState, Journal, RunRow, RunState};
use crate::report::diff;
use crate::ui::Style;
use crate::value::Value;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct HistoryArgs {
    /// Only runs that changed this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Changes, not runs: those of what has this in its name, such as vm.swappiness
    #[arg(long, value_name = "TEXT")]
    pub what: Option<String>,
    /// The newest so many
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 20)]
    pub number: usize,
    /// text or json
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    pub output: String,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct ShowArgs {
    /// The run: a number that `trimtab history` shows, or `last`; or the file of a plan
    #[arg(value_name = "RUN|PLAN")]
    pub run_id: String,
    /// Only changes of this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Only changes of what has this in its name
    #[arg(long, value_name = "TEXT")]
    pub what: Option<String>,
    /// Show before and after
    #[arg(short = 'D', long)]
    pub diff: bool,
    /// text or json
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"], default_value = "text")]
    pub output: String,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Lists runs, or changes of one thing, the newest first.
pub fn history(session: &mut Session, args: &HistoryArgs) -> Result<u8> {
    let journal = session.journal()?;
    if args.what.is_some() {
        let filter = ChangeFilter {
            host: args.host.clone(),
            what: args.what.clone(),
            limit: Some(args.number),
            ..ChangeFilter::default()
        };
        let mut rows = journal.changes(&filter)?;
        rows.reverse();
        return changes(session, &journal, &rows, &args.output, false);
    }
    let runs = journal.runs(args.host.as_deref(), args.number)?;
    if args.output == "json" {
        return print_json(session, &Json::from(runs.iter().map(run_json).collect::<Vec<_>>()));
    }
    if runs.is_empty() {
        session.ui.note("the journal knows no such run", Style::Quiet);
        return Ok(0);
    }
    let mut lines = vec![["RUN", "STARTED", "BY", "HOSTS", "CHANGES", "STATE", "WHAT"].map(str::to_owned)];
    lines.extend(runs.iter().map(|run| {
        [
            run.id.to_string(),
            local_time(&run.started),
            run.user.clone(),
            run.hosts.to_string(),
            run.changes.to_string(),
            state(run),
            what(run),
        ]
    }));
    table(session, &lines);
    Ok(0)
}

/// Shows one run, or a plan, with its changes.
pub fn show(session: &mut Session, args: &ShowArgs) -> Result<u8> {
    let file = session.surroundings.here.join(&args.run_id);
    if file.is_file() {
        return super::plan::show(session, &file, args.host.as_deref(), args.diff, args.output == "json");
    }
    let journal = session.journal()?;
    let run = journal.run(&args.run_id)?;
    let filter =
        ChangeFilter { run: Some(run.id), host: args.host.clone(), what: args.what.clone(), ..ChangeFilter::default() };
    let rows = journal.changes(&filter)?;
    if args.output == "json" {
        let mut json = run_json(&run);
        json["change_list"] = rows.iter().map(|row| change_json(&journal, row)).collect::<Result<Vec<_>>>()?.into();
        return print_json(session, &json);
    }
    session.ui.line(&format!("run {}: {}", run.id, what(&run)));
    session.ui.line(&format!("  by {} in {}, {}, {}", run.user, run.directory, local_time(&run.started), state(&run)));
    session.ui.line(&format!(
        "  {} changes on {} hosts, {} of them taken back, {} failed or in doubt",
        run.changes, run.hosts, run.undone, run.doubtful
    ));
    changes(session, &journal, &rows, &args.output, args.diff)
}

/// Prints changes.
fn changes(session: &mut Session, journal: &Journal, rows: &[ChangeRow], output: &str, with_diff: bool) -> Result<u8> {
    if output == "json" {
        let list = rows.iter().map(|row| change_json(journal, row)).collect::<Result<Vec<_>>>()?;
        return print_json(session, &Json::from(list));
    }
    let mut task = None;
    for row in rows {
        if task != Some((row.run, &row.task, &row.place)) {
            task = Some((row.run, &row.task, &row.place));
            session.ui.line(&format!(
                "\nrun {}, {}, task `{}` ({})",
                row.run,
                local_time(&row.started),
                row.task,
                row.place
            ));
        }
        let recorded = shown(journal, row)?;
        let step = recorded.as_ref().and_then(|recorded| one_line(&recorded.differences));
        let step = step.map(|step| format!(": {step}")).unwrap_or_default();
        let (note, style) = standing(row);
        session.ui.styled(&format!("  {:>6}  {}  {}{step}{note}", row.id, row.host, row.what), style);
        if with_diff && let Some(recorded) = &recorded {
            let list = Value::list(recorded.differences.iter().map(Difference::to_value).collect());
            let text = diff::text(&list, 3, &session.ui);
            session.ui.raw(&text);
        }
    }
    Ok(0)
}

/// The details of a change, unless nothing of it may be shown.
fn shown(journal: &Journal, row: &ChangeRow) -> Result<Option<RecordedChange>> {
    if row.no_log {
        return Ok(None);
    }
    journal.recorded(row).map(Some).map_err(|error| row.error(error))
}

/// `60 → 1`, if before and after are one line each.
fn one_line(differences: &[Difference]) -> Option<String> {
    let [only] = differences else { return None };
    let (before, after) = (only.before.trim(), only.after.trim());
    let short = |text: &str| !text.is_empty() && !text.contains('\n') && text.chars().count() <= 60;
    (short(before) && short(after)).then(|| format!("{before} → {after}"))
}

/// What is to be said of a change besides what it changed.
fn standing(row: &ChangeRow) -> (String, Style) {
    match (row.state, row.undone_by) {
        (ChangeState::Made, Some(run)) => (format!("  (taken back by run {run})"), Style::Quiet),
        (ChangeState::Made, None) => match &row.no_inverse {
            Some(reason) => (format!("  (cannot be taken back: {reason})"), Style::Changed),
            None => (String::new(), Style::Changed),
        },
        (ChangeState::Failed, _) => {
            (format!("  (failed: {})", row.reason.as_deref().unwrap_or_default()), Style::Failed)
        }
        (ChangeState::NotBegun, _) => ("  (not begun)".to_owned(), Style::Quiet),
        (ChangeState::Sent | ChangeState::Unknown, _) => {
            ("  (not known whether it was made)".to_owned(), Style::Unknown)
        }
    }
}

fn run_json(run: &RunRow) -> Json {
    json!({
        "id": run.id,
        "started": run.started,
        "ended": run.ended,
        "state": run.state.as_str(),
        "exit_code": run.exit_code,
        "user": run.user,
        "directory": run.directory,
        "command": run.command,
        "undoes": run.undoes,
        "playbooks": run.playbooks,
        "inventory": run.inventory,
        "options": run.options,
        "changes": run.changes,
        "hosts": run.hosts,
        "doubtful": run.doubtful,
        "undone": run.undone,
    })
}

fn change_json(journal: &Journal, row: &ChangeRow) -> Result<Json> {
    let diff = shown(journal, row)?.map(|recorded| {
        recorded.differences.iter().map(|difference| difference.to_value().to_json()).collect::<Vec<_>>()
    });
    Ok(json!({
        "id": row.id,
        "run": row.run,
        "host": row.host,
        "task": row.task,
        "action": row.action,
        "place": row.place,
        "item": row.item,
        "what": row.what,
        "become": row.become_as.as_ref().map(|(method, user)| json!({ "method": method, "user": user })),
        "started": row.started,
        "ended": row.ended,
        "state": row.state.as_str(),
        "reason": row.reason,
        "no_inverse": row.no_inverse,
        "undone_by": row.undone_by,
        "undoes": row.undoes,
        "diff": diff,
    }))
}

fn what(run: &RunRow) -> String {
    match (run.undoes, run.playbooks.as_slice()) {
        (Some(undone), _) => format!("undo of run {undone}"),
        (None, []) => run.command.clone(),
        (None, playbooks) => format!("{} {}", run.command, playbooks.join(" ")),
    }
}

fn state(run: &RunRow) -> String {
    match (run.state, run.exit_code) {
        (RunState::Ended, Some(0)) | (RunState::Ended, None) => "ok".to_owned(),
        (RunState::Ended, Some(code)) => format!("exit {code}"),
        (other, _) => other.as_str().to_owned(),
    }
}

/// A time of the journal in the time zone of the reader.
fn local_time(text: &str) -> String {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => {
            jiff::ZonedDateTime::new(time, jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        Err(_) => text.to_owned(),
    }
}

fn table<const N: usize>(session: &mut Session, lines: &[[String; N]]) {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    for line in lines {
        let cells = line.iter().enumerate().map(|(column, cell)| format!("{cell:width$}", width = width(column)));
        session.ui.line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn print_json(session: &mut Session, json: &Json) -> Result<u8> {
    let text = serde_json::to_string_pretty(json).map_err(|error| Error::system(error.to_string()))?;
    session.ui.line(&text);
    Ok(0)
}
