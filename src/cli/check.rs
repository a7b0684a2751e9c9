//! `trimtab check`: all that can be known of playbooks and roles without a host, and whether they can run here.

use std::path::Path;
use std::sync::Arc;

use clap::Args;

use super::args::{InventoryArgs, VariableArgs};
use super::check_report;
use super::extra_vars;
use super::session::{Fleet, Session, hosts_of};
use super::settings::{Settings, Surroundings};
use crate::error::{Error, Kind, Result};
use crate::playbook::check::{Findings, Survey};
use crate::playbook::{Play, TagSelection, playbook_of_collection};
use crate::ui::Ui;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct CheckArgs {
    /// Playbooks, roles, or directories with both; this directory if none is given
    #[arg(value_name = "PLAYBOOK")]
    pub paths: Vec<String>,
    #[command(flatten)]
    pub hosts: InventoryArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// What is shown: text, json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub output: String,
}

/// Exit code if everything that is certainly needed is there.
const GOOD: u8 = 0;

/// Looks at everything and says what was found. `wrong` was found already.
pub fn check(session: &mut Session, args: CheckArgs, wrong: Vec<Error>) -> Result<u8> {
    let keyring = Arc::new(session.keyring(&args.variables.vault)?);
    let extra = Arc::new(extra_vars::parse(&args.variables.extra_vars, &keyring, session.merges_maps()?)?);
    let load = session.load_options(&extra, Arc::clone(&keyring))?;
    let mut survey = Survey::new(load.clone(), TagSelection::default());
    wrong.into_iter().for_each(|error| survey.error(error));
    let here = [".".to_owned()];
    let paths = if args.paths.is_empty() { &here[..] } else { &args.paths[..] };
    let mut plays: Vec<Arc<Play>> = Vec::new();
    for text in paths {
        let path = Path::new(text);
        if path.is_dir() {
            plays.extend(survey.below(path));
        } else if path.exists() {
            plays.extend(survey.playbook(path));
        } else if let Some(path) = playbook_of_collection(text, &load) {
            plays.extend(survey.playbook(&path));
        } else {
            survey.error(Error::usage(format!("there is no playbook `{text}`")));
        }
    }
    if !args.hosts.inventory.is_empty() {
        match session.inventory(&args.hosts.inventory, &extra, &keyring) {
            Ok((inventory, sources, reload)) => {
                let limit = None;
                let fleet = Fleet { inventory, limit, sources, reload, extra, load };
                hosts(&mut survey, fleet, &plays, args.hosts.limit.as_deref());
            }
            Err(error) => survey.error(error),
        }
    }
    let findings = survey.finish();
    let notes = std::mem::take(&mut session.settings.notes);
    match args.output.as_str() {
        "json" => check_report::json(&mut session.ui, &findings, &notes),
        _ => check_report::text(&mut session.ui, &findings, &notes),
    }
    Ok(exit_code(&findings))
}

/// As [`check`], with settings that cannot be used: they are one finding more.
pub fn run_despite(wrong: Error, args: CheckArgs, ui: &mut Ui, surroundings: Surroundings) -> Result<u8> {
    let taken = std::mem::replace(ui, Ui::memory());
    let (settings, _) = Settings::load_what_can_be(&surroundings);
    let mut session = Session::begin(taken, settings, surroundings, 0)?;
    let ended = check(&mut session, args, vec![wrong]);
    *ui = session.ui;
    ended
}

/// The inventory: its variables, and which plays have hosts.
fn hosts(survey: &mut Survey, mut fleet: Fleet, plays: &[Arc<Play>], limit: Option<&str>) {
    if let Some(Err(error)) = limit.filter(|text| !text.trim().is_empty()).map(|text| fleet.inventory.limit(text)) {
        survey.error(error);
    }
    let directories: Vec<_> = plays.iter().map(|play| play.directory.clone()).collect();
    let all: Vec<_> = fleet.inventory.hosts().map(|(id, _)| id).collect();
    for (index, directory) in directories.iter().enumerate() {
        if directories[..index].contains(directory) {
            continue;
        }
        fleet.inventory.set_playbook_directory(directory);
        for host in &all {
            if let Err(error) = fleet.inventory.host_layers(*host) {
                survey.error(error);
            }
        }
    }
    for play in plays {
        match hosts_of(play, &fleet) {
            Ok(hosts) if hosts.is_empty() => {
                let pattern = play.hosts.value.to_text().into_owned();
                survey.warning(
                    Error::input(format!("no host of the inventory is meant by `{pattern}`")).at(&play.hosts.place),
                );
            }
            Ok(_) => {}
            Err(error) => survey.error(error),
        }
    }
}

/// 0 if nothing stops a run; else as the worst that was found: 1 something is not there, 4 something is written wrong,
/// 5 the command line.
fn exit_code(findings: &Findings) -> u8 {
    let rank = |kind: Kind| match kind {
        Kind::Internal => 4,
        Kind::Usage => 3,
        Kind::Parse => 2,
        Kind::Input | Kind::System | Kind::Interrupted => 1,
    };
    let worst = findings.errors.iter().map(Error::kind).max_by_key(|kind| rank(*kind));
    worst.map_or(GOOD, Kind::exit_code)
}
