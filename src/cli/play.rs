//! `trimtab play`: runs playbooks, as ansible-playbook does.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs, VerbosityArgs};
use super::journal::Recording;
use super::listing;
use super::session::{Fleet, Session, hosts_of};
use crate::error::{Error, Result};
use crate::playbook::tags::TagSelection;
use crate::playbook::{self, Play, playbook_of_collection};

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct PlayArgs {
    /// Playbooks, run one after the other
    #[arg(required = true, value_name = "PLAYBOOK")]
    pub playbooks: Vec<String>,
    #[command(flatten)]
    pub hosts: InventoryArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// Only tasks with these tags, apart by commas; may be given several times
    #[arg(short = 't', long = "tags", value_name = "TAGS")]
    pub tags: Vec<String>,
    /// No tasks with these tags
    #[arg(long, value_name = "TAGS")]
    pub skip_tags: Vec<String>,
    #[command(flatten)]
    pub run: RunArgs,
    /// Begin at the first task of this name (`*` stands for anything)
    #[arg(long, value_name = "NAME")]
    pub start_at_task: Option<String>,
    /// Ask before each task: no, yes, or yes to all that follow
    #[arg(long)]
    pub step: bool,
    /// Run notified handlers of hosts that failed
    #[arg(long)]
    pub force_handlers: bool,
    /// Show which hosts plays choose; run nothing
    #[arg(long)]
    pub list_hosts: bool,
    /// Show the tasks of plays; run nothing
    #[arg(long)]
    pub list_tasks: bool,
    /// Show the tags of plays; run nothing
    #[arg(long)]
    pub list_tags: bool,
    /// Load everything and look for mistakes; run nothing
    #[arg(long)]
    pub syntax_check: bool,
    #[command(flatten)]
    pub reach: ConnectionArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Runs the playbooks, or lists what is in them.
pub fn play(session: &mut Session, args: PlayArgs) -> Result<u8> {
    let recording = Recording::new("play", &args.reach, args.hosts.limit.as_deref());
    play_with(session, args, recording)
}

/// Runs the playbooks; what is recorded of it, and how, is given.
pub fn play_with(session: &mut Session, args: PlayArgs, recording: Recording) -> Result<u8> {
    let format = session.format(args.run.output.as_deref())?;
    session.say_what_has_no_effect(&args.run, &args.reach);
    let mut options = session.options(&args.run, &args.reach, args.hosts.limit.clone())?;
    let set_tags = |given: &[String], key| match given {
        [] => session.settings.text(key).into_iter().collect(),
        given => given.to_vec(),
    };
    options.tags = set_tags(&args.tags, "run");
    options.skip_tags = set_tags(&args.skip_tags, "skip");
    options.force_handlers |= args.force_handlers;
    if args.step {
        // nothing is looked at ahead of the answer
        (options.step, options.window) = (true, 1);
    }
    options.flush_cache = args.hosts.flush_cache;
    let mut fleet = session.fleet(&args.hosts, &args.variables)?;
    let playbooks = load(session, &args.playbooks, &fleet)?;
    let tags = TagSelection::new(options.tags.iter().map(String::as_str), options.skip_tags.iter().map(String::as_str));
    let plays: Vec<Arc<Play>> = playbooks.iter().flatten().cloned().collect();
    let begun = check(session, &plays, &tags, &fleet, &options.library);
    if args.list_hosts || args.list_tasks || args.list_tags || args.syntax_check {
        begun?;
        for (path, plays) in args.playbooks.iter().zip(&playbooks) {
            listing::playbook(&mut session.ui, path, plays, &args, &fleet, &tags)?;
        }
        super::leave_memory((fleet, playbooks, plays));
        return Ok(0);
    }
    begun?;
    session.check_variables(&mut fleet, &plays)?;
    let plays = match &args.start_at_task {
        Some(name) => playbook::start_at(&plays, name)?,
        None => plays,
    };
    session.passwords(&mut options, &args.reach)?;
    let counts: Vec<(String, usize)> = args.playbooks.iter().cloned().zip(playbooks.iter().map(Vec::len)).collect();
    let recording = Recording { playbooks: args.playbooks.clone(), ..recording };
    session.run(options, fleet, plays, &counts, format, recording)
}

/// Loads all playbooks; the mistakes of all are reported together.
fn load(session: &mut Session, paths: &[String], fleet: &Fleet) -> Result<Vec<Vec<Arc<Play>>>> {
    let mut playbooks = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        let file = if Path::new(path).exists() { Some(path.into()) } else { playbook_of_collection(path, &fleet.load) };
        let Some(file) = file else {
            errors.push(Error::input(format!("there is no playbook `{path}`")));
            continue;
        };
        match playbook::load_playbook(&file, &fleet.load) {
            Ok(plays) => playbooks.push(plays),
            Err(error) => errors.push(error),
        }
    }
    doubts(session, fleet);
    Error::collect(errors).map_or(Ok(playbooks), Err)
}

/// Looks for mistakes in the plays that have hosts.
fn check(
    session: &mut Session,
    plays: &[Arc<Play>],
    tags: &TagSelection,
    fleet: &Fleet,
    library: &[PathBuf],
) -> Result<()> {
    let mut with_hosts = Vec::new();
    for play in plays {
        if !hosts_of(play, fleet)?.is_empty() {
            with_hosts.push(Arc::clone(play));
        }
    }
    let checked = playbook::check::check(&with_hosts, tags, &fleet.load.warnings, library);
    doubts(session, fleet);
    checked
}

fn doubts(session: &mut Session, fleet: &Fleet) {
    let warnings = std::mem::take(&mut *fleet.load.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    for warning in &warnings {
        session.ui.doubt(warning);
    }
}
