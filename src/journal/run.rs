//! The runs that a journal knows.

use rusqlite::{Row, params};
use serde_json::Value as Json;

use super::{Journal, now};
use crate::error::{Error, Result};

/// What is written of a run as it begins. No secrets: neither extra variables nor passwords.
#[derive(Debug, Clone)]
pub struct RunStart {
    /// `play`, `run`, `undo` or `apply`.
    pub command: String,
    /// The directory by which relative paths go.
    pub directory: String,
    pub playbooks: Vec<String>,
    pub inventory: Vec<String>,
    /// What is needed to reach the hosts once more, by the names of the command line's options.
    pub options: serde_json::Map<String, Json>,
    /// The run that it takes back.
    pub undoes: Option<i64>,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    UnderWay,
    Ended,
    /// Its process is gone, and it never said that it ended.
    CutOff,
}

impl RunState {
    pub fn as_str(self) -> &'static str {
        match self {
            RunState::UnderWay => "under way",
            RunState::Ended => "ended",
            RunState::CutOff => "cut off",
        }
    }
}

/// A run as the journal has it.
#[derive(Debug, Clone)]
pub struct RunRow {
    pub id: i64,
    /// RFC 3339, UTC.
    pub started: String,
    pub ended: Option<String>,
    pub exit_code: Option<i64>,
    pub state: RunState,
    pub user: String,
    pub directory: String,
    pub command: String,
    pub undoes: Option<i64>,
    pub playbooks: Vec<String>,
    pub inventory: Vec<String>,
    pub options: serde_json::Map<String, Json>,
    /// Changes made, and on how many hosts.
    pub changes: i64,
    pub hosts: i64,
    /// Changes that failed, or of which it is not known whether they were made.
    pub doubtful: i64,
    /// Changes that were taken back since.
    pub undone: i64,
}

const COLUMNS: &str = "runs.id, started, ended, exit_code, process, process_start, user, directory, command, undoes, \
    playbooks, inventory, options, \
    (select count(*) from changes where run = runs.id and state = 'made'), \
    (select count(distinct host) from changes where run = runs.id), \
    (select count(*) from changes where run = runs.id and state in ('sent', 'failed', 'unknown')), \
    (select count(*) from changes where run = runs.id and undone_by is not null)";

fn of_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let ended: Option<String> = row.get(2)?;
    let state = match &ended {
        Some(_) => RunState::Ended,
        None if is_alive(row.get(4)?, &row.get::<_, String>(5)?) => RunState::UnderWay,
        None => RunState::CutOff,
    };
    let list = |text: String| serde_json::from_str(&text).unwrap_or_default();
    Ok(RunRow {
        id: row.get(0)?,
        started: row.get(1)?,
        ended,
        exit_code: row.get(3)?,
        state,
        user: row.get(6)?,
        directory: row.get(7)?,
        command: row.get(8)?,
        undoes: row.get(9)?,
        playbooks: list(row.get(10)?),
        inventory: list(row.get(11)?),
        options: serde_json::from_str(&row.get::<_, String>(12)?).unwrap_or_default(),
        changes: row.get(13)?,
        hosts: row.get(14)?,
        doubtful: row.get(15)?,
        undone: row.get(16)?,
    })
}

impl Journal {
    /// The newest runs first; those that changed `host`, if it is given.
    pub fn runs(&self, host: Option<&str>, limit: usize) -> Result<Vec<RunRow>> {
        let text = format!(
            "select {COLUMNS} from runs where ?1 is null or exists (select 1 from changes where run = runs.id and host = ?1) \
             order by runs.id desc limit ?2"
        );
        let read = || -> rusqlite::Result<Vec<RunRow>> {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            self.connection.prepare(&text)?.query_map(params![host, limit], of_row)?.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The run of this number, or `last`: the newest that changed something.
    pub fn run(&self, name: &str) -> Result<RunRow> {
        let number = match name.trim() {
            "last" => {
                let newest = self.connection.query_row("select max(run) from changes", [], |row| row.get(0));
                let newest: Option<i64> = newest.map_err(|error| self.failed(&error))?;
                newest.ok_or_else(|| Error::input("the journal knows no run that changed something"))?
            }
            text => text.parse::<i64>().map_err(|_| {
                Error::usage(format!("`{name}` is no run")).hint("a number that `trimtab history` shows, or `last`")
            })?,
        };
        let text = format!("select {COLUMNS} from runs where runs.id = ?1");
        match self.connection.query_row(&text, params![number], of_row) {
            Ok(row) => Ok(row),
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                let message = format!("the journal {} knows no run {number}", self.path.display());
                Err(Error::input(message).hint("`trimtab history` shows those it knows"))
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Writes that a run begins; its number.
    pub(super) fn insert_run(connection: &rusqlite::Connection, start: &RunStart) -> rusqlite::Result<i64> {
        let json = |list: &[String]| serde_json::to_string(list).unwrap_or_default();
        let process = std::process::id();
        connection.execute(
            "insert into runs (started, process, process_start, user, directory, command, undoes, playbooks, inventory, options) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                now(),
                process,
                process_start(i64::from(process)),
                user(),
                start.directory,
                start.command,
                start.undoes,
                json(&start.playbooks),
                json(&start.inventory),
                serde_json::to_string(&start.options).unwrap_or_default(),
            ],
        )?;
        Ok(connection.last_insert_rowid())
    }
}

/// Who runs this: the user who called sudo, if it was called, else the user of the process.
fn user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = passwd.lines().find(|line| line.split(':').nth(2) == Some(&uid));
    let name = entry.and_then(|line| line.split(':').next()).map(str::to_owned);
    std::env::var("SUDO_USER").ok().or(name).unwrap_or(uid)
}

/// When the kernel says that a process began: field 22 of /proc/PID/stat (proc(5)); empty if it does not.
fn process_start(process: i64) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // the name of the program, in brackets, may hold blanks
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(19).unwrap_or_default().to_owned()
}

fn is_alive(process: i64, start: &str) -> bool {
    !start.is_empty() && process_start(process) == start
}
