//! Where the journal is, and what is written of a run as it begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::args::ConnectionArgs;
use super::session::Session;
use crate::error::{Error, Result};
use crate::journal::plan::Planner;
use crate::journal::{Journal, Journalist, RunStart};

/// What a subcommand tells the journal of its run.
#[derive(Clone, Default)]
pub struct Recording {
    /// `play`, `run`, `undo` or `apply`.
    pub command: &'static str,
    pub playbooks: Vec<String>,
    /// What else the command line said that an undo needs.
    pub options: Map<String, Json>,
    /// The run that it takes back.
    pub undoes: Option<i64>,
    /// Takes note of what would be changed, in place of the journal.
    pub planner: Option<Arc<Planner>>,
}

impl Recording {
    /// A recording that keeps how hosts are reached.
    pub fn new(command: &'static str, reach: &ConnectionArgs, limit: Option<&str>) -> Recording {
        let mut options = Map::new();
        let given = [
            ("limit", limit),
            ("user", reach.user.as_deref()),
            ("private-key", reach.private_key.as_deref()),
            ("connection", reach.connection.as_deref()),
            ("ssh-common-args", reach.ssh_common_args.as_deref()),
            ("ssh-extra-args", reach.ssh_extra_args.as_deref()),
        ];
        options.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Json::from(value?)))));
        Recording { command, options, ..Recording::default() }
    }
}

impl Session {
    /// Where the journal is; `None` if there is to be none.
    pub fn journal_path(&self) -> Result<Option<PathBuf>> {
        if let Some(text) = self.settings.text("journal") {
            let off = matches!(text.trim(), "off" | "no" | "none" | "false");
            return Ok((!off).then(|| self.settings.path("journal", &self.surroundings)).flatten());
        }
        let project = self.surroundings.here.join(".trimtab");
        if project.is_dir() {
            return Ok(Some(project.join("journal.db")));
        }
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
        let state = state.ok_or_else(|| {
            Error::system("there is no place for the journal, since HOME is not set")
                .hint("`TRIMTAB_JOURNAL` names its file; `TRIMTAB_JOURNAL=off` does without, and without undo")
        })?;
        Ok(Some(state.join("trimtab/journal.db")))
    }

    /// The journal, to be read.
    pub fn journal(&self) -> Result<Journal> {
        let Some(path) = self.journal_path()? else {
            return Err(Error::usage("the journal is off").hint("TRIMTAB_JOURNAL or `journal` in ansible.cfg say so"));
        };
        Journal::open_existing(&path)?
            .ok_or_else(|| Error::input(format!("there is no journal yet: {} does not exist", path.display())))
    }

    /// Begins a run in the journal; in check mode with its first change, if a task makes one all the same.
    pub fn record(&self, recording: Recording, sources: &[PathBuf], check: bool) -> Result<Option<Arc<Journalist>>> {
        let Some(path) = self.journal_path()? else { return Ok(None) };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let start = RunStart {
            command: recording.command.to_owned(),
            directory: text(&self.surroundings.here),
            playbooks: recording.playbooks,
            inventory: sources.iter().map(|source| text(source)).collect(),
            options: recording.options,
            undoes: recording.undoes,
        };
        let journalist = if check { Journalist::later(&path, start) } else { Journalist::begin(&path, start)? };
        Ok(Some(Arc::new(journalist)))
    }
}
