//! Plan files: what a run would change, to be looked at, approved, and made exactly so later.
//!
//! A plan is JSON in a file that only its owner can read. As in the journal, contents are sealed with the journal's key: a plan is
//! applied where it was made.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::seal::Key;
use super::stored::Detail;
use super::told::Told;
use super::{Entry, key_path, now};
use crate::engine::event::Event;
use crate::engine::recorder::{ChangeEnd, ChangeNumber, Intent, Recorder, Waiting};
use crate::engine::result::Status;
use crate::error::{Error, Result};
use crate::host::RecordedChange;

/// What a file must say of itself to be a plan.
const FORMAT: &str = "trimtab plan 1";

/// A plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    format: String,
    /// RFC 3339, UTC.
    pub made: String,
    /// The directory by which relative paths go.
    pub directory: String,
    pub playbooks: Vec<String>,
    pub inventory: Vec<String>,
    /// What is needed to reach the hosts once more; no secrets.
    pub options: Map<String, Json>,
    /// In the order in which they would be made.
    pub changes: Vec<PlannedChange>,
    /// What could not be planned, by host.
    pub unplanned: Vec<Unplanned>,
}

/// A change that would be made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlannedChange {
    pub host: String,
    pub task: String,
    pub action: String,
    /// file:line:column
    pub place: String,
    pub item: Option<String>,
    pub no_log: bool,
    pub what: String,
    /// The method and the user, if another is become.
    pub become_as: Option<(String, String)>,
    /// Why it could not be taken back; null if it can.
    pub no_inverse: Option<String>,
    /// Base64.
    sealed: String,
}

/// A task that a plan cannot foresee: what it does depends on what has not been done yet, or it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unplanned {
    pub host: String,
    pub task: String,
    pub place: String,
    /// `unknown`, `failed` or `unreachable`.
    pub state: String,
    pub why: String,
}

impl PlannedChange {
    /// What decides to which step of the plan it belongs; `number` is its place in the plan.
    pub fn entry(&self, number: i64) -> Entry<'_> {
        Entry {
            number,
            host: &self.host,
            task: &self.task,
            place: &self.place,
            become_as: &self.become_as,
            no_log: self.no_log,
        }
    }
}

/// A plan and the key of what is sealed in it.
pub struct OpenPlan {
    pub plan: Plan,
    path: PathBuf,
    key: Key,
}

impl OpenPlan {
    /// Reads a plan; `journal` is the journal by whose key it was sealed.
    pub fn read(path: &Path, journal: &Path) -> Result<OpenPlan> {
        let refuse = |why: String| Error::input(format!("{} is not a plan: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
        let json: Json = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        match json.get("format").and_then(Json::as_str) {
            Some(FORMAT) => {}
            Some(other) => return Err(refuse(format!("its format is `{other}`, this trimtab knows `{FORMAT}`"))),
            None => return Err(refuse("it does not say its format".to_owned())),
        }
        let plan = serde_json::from_value(json).map_err(|error| refuse(error.to_string()))?;
        let key = Key::load(&key_path(journal)).map_err(|error| {
            error.hint("a plan is applied where it was made: it is sealed with the key of the journal there")
        })?;
        Ok(OpenPlan { plan, path: path.to_owned(), key })
    }

    /// All changes with what is sealed of them, in their order.
    pub fn recorded(&self) -> Result<Vec<RecordedChange>> {
        let refuse = |number: usize, why: &str| {
            Error::input(format!("change {number} of the plan {} cannot be read: {why}", self.path.display()))
        };
        let one = |(number, change): (usize, &PlannedChange)| {
            let sealed = STANDARD.decode(&change.sealed).map_err(|error| refuse(number, &error.to_string()))?;
            let plain = self.key.open(&sealed, &bound(change))?;
            let detail: Detail = serde_json::from_slice(&plain).map_err(|error| refuse(number, &error.to_string()))?;
            Ok(detail.recorded(number as i64, true))
        };
        self.plan.changes.iter().enumerate().map(one).collect()
    }
}

/// What a sealed change is bound to: none can be given another host, task or user.
fn bound(change: &PlannedChange) -> String {
    format!("{}\0{}\0{}\0{:?}", change.host, change.task, change.place, change.become_as)
}

/// Takes note of what would be changed.
pub struct Planner {
    key: Key,
    plan: Mutex<Plan>,
    /// The first thing that went wrong.
    failure: Mutex<Option<Error>>,
}

impl Planner {
    /// A planner that seals with the key of this journal.
    pub fn new(
        journal: &Path,
        directory: String,
        playbooks: Vec<String>,
        inventory: Vec<String>,
        options: Map<String, Json>,
    ) -> Result<Planner> {
        if let Some(directory) = journal.parent() {
            super::make_private_directory(directory).map_err(|error| super::failed(journal, &error))?;
        }
        let plan = Plan {
            format: FORMAT.to_owned(),
            made: now(),
            directory,
            playbooks,
            inventory,
            options,
            changes: Vec::new(),
            unplanned: Vec::new(),
        };
        Ok(Planner { key: Key::load_or_make(&key_path(journal))?, plan: Mutex::new(plan), failure: Mutex::default() })
    }

    fn planned_change(&self, intent: &Intent) -> Result<PlannedChange> {
        let detail = Detail::of(&intent.change, &intent.before).to_bytes()?;
        let Told { host, task, action, place, item, no_log, what, become_as, no_inverse } = Told::of(intent);
        let sealed = String::new();
        let mut planned =
            PlannedChange { host, task, action, place, item, no_log, what, become_as, no_inverse, sealed };
        planned.sealed = STANDARD.encode(self.key.seal(&detail, &bound(&planned))?);
        Ok(planned)
    }

    /// Takes note of tasks that cannot be planned.
    pub fn hear(&self, event: &Event) {
        let Event::Result(heard) = event else { return };
        let state = match heard.result.status {
            Status::Unknown => "unknown",
            Status::Failed if !heard.result.ignored => "failed",
            Status::Unreachable if !heard.result.ignored => "unreachable",
            _ => return,
        };
        let why = heard.result.result.get("msg").filter(|_| !heard.no_log).map(|why| why.to_text().into_owned());
        let unplanned = Unplanned {
            host: heard.host.to_string(),
            task: heard.task.name.clone(),
            place: heard.task.place.to_string(),
            state: state.to_owned(),
            why: why.unwrap_or_default(),
        };
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).unplanned.push(unplanned);
    }

    /// Writes the plan, in one piece; returns it.
    pub fn write(&self, path: &Path) -> Result<Plan> {
        if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = serde_json::to_string_pretty(&plan)
            .map_err(|error| Error::system(format!("the plan cannot be written down: {error}")))?;
        write_private(path, &(text + "\n"))
            .map_err(|error| Error::system(format!("cannot write {}: {error}", path.display())))?;
        Ok(plan)
    }
}

/// Writes a file of mode 600 beside its place and renames it.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let write = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

impl Recorder for Planner {
    fn begin(&self, intents: Vec<Intent>) -> Waiting<'_, Result<Vec<ChangeNumber>>> {
        let what = intents.first().map_or("something", |intent| intent.change.what.as_str()).to_owned();
        Box::pin(async move {
            Err(Error::input(format!("a plan changes nothing, and its task would change {what} in check mode, too")))
        })
    }

    fn end(&self, _number: ChangeNumber, _end: ChangeEnd) {}

    fn planned(&self, intent: Intent) {
        match self.planned_change(&intent) {
            Ok(change) => self.plan.lock().unwrap_or_else(PoisonError::into_inner).changes.push(change),
            Err(error) => {
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    }
}
