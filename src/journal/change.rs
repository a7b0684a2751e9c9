//! The changes that a journal knows.

use rusqlite::{Row, params};

use super::stored::Detail;
use super::{Entry, Journal, failed};
use crate::error::{Error, Result};
use crate::host::RecordedChange;

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    /// It was to be sent, and nothing is known since: trimtab was cut off.
    Sent,
    Made,
    Failed,
    NotBegun,
    /// The connection broke before its answer came.
    Unknown,
}

const STATES: &[(&str, ChangeState)] = &[
    ("sent", ChangeState::Sent),
    ("made", ChangeState::Made),
    ("failed", ChangeState::Failed),
    ("not begun", ChangeState::NotBegun),
    ("unknown", ChangeState::Unknown),
];

impl ChangeState {
    pub fn as_str(self) -> &'static str {
        STATES.iter().find(|(_, state)| *state == self).map_or("unknown", |(name, _)| name)
    }

    fn of(text: &str) -> ChangeState {
        STATES.iter().find(|(name, _)| *name == text).map_or(ChangeState::Unknown, |(_, state)| *state)
    }
}

/// A change as the journal has it, without what is sealed.
#[derive(Debug, Clone)]
pub struct ChangeRow {
    pub id: i64,
    pub run: i64,
    pub host: String,
    pub task: String,
    pub action: String,
    /// file:line:column
    pub place: String,
    pub item: Option<String>,
    /// Nothing of it may be shown.
    pub no_log: bool,
    pub what: String,
    /// The method and the user, if another was become.
    pub become_as: Option<(String, String)>,
    pub started: String,
    pub ended: Option<String>,
    pub state: ChangeState,
    /// Why it failed.
    pub reason: Option<String>,
    /// Why it cannot be taken back.
    pub no_inverse: Option<String>,
    pub undone_by: Option<i64>,
    /// The change that it took back.
    pub undoes: Option<i64>,
    detail: Vec<u8>,
}

/// Which changes are wanted.
#[derive(Debug, Clone, Default)]
pub struct ChangeFilter {
    pub run: Option<i64>,
    pub host: Option<String>,
    /// A part of what was changed: `vm.swappiness`.
    pub what: Option<String>,
    /// The newest so many.
    pub limit: Option<usize>,
}

const COLUMNS: &str = "id, run, host, task, action, place, item, what, become_method, become_user, started, ended, state, \
    reason, no_inverse, undone_by, undoes, detail, no_log";

fn of_row(row: &Row<'_>) -> rusqlite::Result<ChangeRow> {
    let method: Option<String> = row.get(8)?;
    let user: Option<String> = row.get(9)?;
    Ok(ChangeRow {
        id: row.get(0)?,
        run: row.get(1)?,
        host: row.get(2)?,
        task: row.get(3)?,
        action: row.get(4)?,
        place: row.get(5)?,
        item: row.get(6)?,
        what: row.get(7)?,
        become_as: method.zip(user),
        started: row.get(10)?,
        ended: row.get(11)?,
        state: ChangeState::of(&row.get::<_, String>(12)?),
        reason: row.get(13)?,
        no_inverse: row.get(14)?,
        undone_by: row.get(15)?,
        undoes: row.get(16)?,
        detail: row.get(17)?,
        no_log: row.get(18)?,
    })
}

impl Journal {
    /// The changes that the filter lets through, oldest first.
    pub fn changes(&self, filter: &ChangeFilter) -> Result<Vec<ChangeRow>> {
        let text = format!(
            "select {COLUMNS} from (select * from changes where (?1 is null or run = ?1) and (?2 is null or host = ?2) \
             and (?3 is null or instr(what, ?3) > 0) order by id desc limit ?4) order by id"
        );
        let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
        let read = || -> rusqlite::Result<Vec<ChangeRow>> {
            let mut statement = self.connection.prepare(&text)?;
            statement.query_map(params![filter.run, filter.host, filter.what, limit], of_row)?.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// A change with all that was kept of it.
    pub fn recorded(&self, row: &ChangeRow) -> Result<RecordedChange> {
        let plain = self.key.open(&row.detail, &row.host)?;
        let detail: Detail = serde_json::from_slice(&plain)
            .map_err(|error| failed(&self.path, &format!("change {} cannot be read: {error}", row.id)))?;
        Ok(detail.recorded(row.id, row.state == ChangeState::Made))
    }
}

impl ChangeRow {
    /// What decides to which step of an undo it belongs.
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            number: self.id,
            host: &self.host,
            task: &self.task,
            place: &self.place,
            become_as: &self.become_as,
            no_log: self.no_log,
        }
    }

    /// An error of this change.
    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::input(format!("change {} ({} on {}): {message}", self.id, self.what, self.host))
    }
}
