//! `trimtab run`: one module on hosts, as `ansible` does.

use clap::Args;

use super::args::{ConnectionArgs, InventoryArgs, RunArgs, VariableArgs, VerbosityArgs};
use super::journal::Recording;
use super::session::{Session, playbook_directory};
use crate::error::{Error, Result};
use crate::playbook;
use crate::report;
use crate::source::Source;
use crate::value::Value;

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct AdHocArgs {
    /// The hosts: a pattern
    pub pattern: String,
    /// The module
    #[arg(short = 'm', long = "module-name", value_name = "MODULE")]
    pub module: Option<String>,
    /// Its arguments: `name=value …`, JSON, or free text for modules that take it
    #[arg(short = 'a', long = "args", value_name = "ARGS", allow_hyphen_values = true)]
    pub args: Option<String>,
    #[command(flatten)]
    pub hosts: InventoryArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    #[command(flatten)]
    pub run: RunArgs,
    /// Show the hosts; run nothing
    #[arg(long)]
    pub list_hosts: bool,
    /// Seconds after which the module is given up
    #[arg(long, value_name = "SECONDS")]
    pub task_timeout: Option<u64>,
    /// Stands for the playbook's directory (`group_vars`, `files`, …)
    #[arg(long, value_name = "PATH")]
    pub playbook_dir: Option<String>,
    /// Each host's result on one line
    #[arg(short = 'o', long = "one-line")]
    pub one_line: bool,
    /// Run it in the background, for at most so many seconds
    #[arg(short = 'B', long, value_name = "SECONDS")]
    pub background: Option<u64>,
    /// Seconds between looks at what runs in the background; 0: do not wait for it
    #[arg(short = 'P', long = "poll", value_name = "SECONDS", default_value_t = 15)]
    pub poll_interval: u64,
    #[arg(short = 't', long, value_name = "DIRECTORY", hide = true)]
    pub tree: Option<String>,
    #[command(flatten)]
    pub reach: ConnectionArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Runs the module as a play of one task.
pub fn run(session: &mut Session, args: AdHocArgs) -> Result<u8> {
    if args.tree.is_some() {
        return Err(Error::usage("`--tree` is not supported: results are not written one file a host")
            .hint("`--output json` prints all results as one document"));
    }
    let format = match args.run.output.as_deref() {
        Some(name) => report::format(name)?,
        None if args.one_line => report::format("oneline")?,
        None if session.settings.is_set("stdout_callback") => match session.format(None)? {
            format if format.name == "ansible" => report::format("minimal")?,
            format => format,
        },
        None => report::format("minimal")?,
    };
    session.say_what_has_no_effect(&args.run, &args.reach);
    let mut options = session.options(&args.run, &args.reach, args.hosts.limit.clone())?;
    let mut fleet = session.fleet(&args.hosts, &args.variables)?;
    let selection = fleet.inventory.select(std::slice::from_ref(&args.pattern))?;
    let chosen: Vec<_> = match &fleet.limit {
        Some(limit) => selection.hosts.iter().copied().filter(|host| limit.contains(host)).collect(),
        None => selection.hosts.clone(),
    };
    if args.list_hosts {
        session.ui.line(&format!("  hosts ({}):", chosen.len()));
        for host in &chosen {
            session.ui.line(&format!("    {}", fleet.inventory.host(*host).name));
        }
        super::leave_memory(fleet);
        return Ok(0);
    }
    if chosen.is_empty() && session.ui.speaks_as_ansible() && fleet.inventory.hosts().next().is_none() {
        session.ui.warning("No hosts matched, nothing to do");
        return Ok(0);
    }
    if chosen.is_empty() {
        return Err(fleet.inventory.no_match(&args.pattern));
    }
    let module = args.module.clone().or(session.settings.text("module_name")).unwrap_or_default();
    let text = play_text(&args, &module)?;
    let directory = playbook_directory(args.playbook_dir.as_deref(), &session.settings, &session.surroundings);
    let source = Source::new(directory.join("command line"), text);
    let plays = playbook::load_plays(&source, &fleet.load)?;
    playbook::check::check(&plays, &Default::default(), &fleet.load.warnings, &options.library)?;
    session.check_variables(&mut fleet, &plays)?;
    session.passwords(&mut options, &args.reach)?;
    let recording = Recording::new("run", &args.reach, args.hosts.limit.as_deref());
    session.run(options, fleet, plays, &[], format, recording)
}

/// The play as JSON, which is YAML too.
fn play_text(args: &AdHocArgs, module: &str) -> Result<String> {
    let given = args.args.clone().unwrap_or_default();
    let trimmed = given.trim();
    let arguments = if trimmed.starts_with('{') {
        serde_json::from_str(trimmed)
            .map_err(|error| Error::usage(format!("`--args` begins as JSON but is none: {error}")))?
    } else {
        Value::from(given.as_str()).to_json()
    };
    let mut task = serde_json::Map::new();
    task.insert("name".into(), module.into());
    task.insert(module.to_owned(), arguments);
    if let Some(seconds) = args.task_timeout {
        task.insert("timeout".into(), seconds.into());
    }
    if let Some(seconds) = args.background {
        task.insert("async".into(), seconds.into());
        task.insert("poll".into(), args.poll_interval.into());
    }
    let play = serde_json::json!([{
        "name": "trimtab run",
        "hosts": args.pattern,
        "gather_facts": false,
        "tasks": [task],
    }]);
    Ok(play.to_string())
}
