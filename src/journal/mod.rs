//! The journal: every change of every run, written and flushed before it is sent, marked when its end is known.
//!
//! An SQLite database, one for each user or project directory. Who, when, where and what is plain, so that it can be
//! queried; contents (what was written, what was there before, how it is taken back) are sealed with a key that only
//! the owner can read. The engine knows it as a [`crate::engine::recorder::Recorder`].

mod change;
pub mod plan;
mod record;
mod run;
mod schema;
mod seal;
mod steps;
mod stored;
mod told;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};

pub use change::{ChangeFilter, ChangeRow, ChangeState};
pub use record::Journalist;
pub use run::{RunRow, RunStart, RunState};
pub use steps::{Entry, RecordedStep, steps};

use seal::Key;

/// How long another trimtab that writes is waited for.
const BUSY: Duration = Duration::from_secs(30);

/// An open journal.
pub struct Journal {
    path: PathBuf,
    connection: Connection,
    key: Key,
}

impl Journal {
    /// Opens the journal at `path`; makes it, its directory (mode 700) and its key (`PATH.key`, mode 600) if they are not there.
    pub fn open(path: &Path) -> Result<Journal> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            make_private_directory(directory).map_err(|error| failed(path, &error))?;
        }
        let key = Key::load_or_make(&key_path(path))?;
        make_private_file(path).map_err(|error| failed(path, &error))?;
        let connection = Connection::open(path).map_err(|error| failed(path, &error))?;
        schema::prepare(&connection).map_err(|error| failed(path, &error))?;
        schema::upgrade(&connection, path)?;
        Ok(Journal { path: path.to_owned(), connection, key })
    }

    /// Opens a journal to read it; `None` if there is none.
    pub fn open_existing(path: &Path) -> Result<Option<Journal>> {
        if !path.exists() {
            return Ok(None);
        }
        let key = Key::load(&key_path(path))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(path, &error))?;
        connection.busy_timeout(BUSY).map_err(|error| failed(path, &error))?;
        schema::upgrade(&connection, path)?;
        Ok(Some(Journal { path: path.to_owned(), connection, key }))
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        failed(&self.path, error)
    }
}

/// An error of the journal at `path`.
fn failed(path: &Path, error: &impl std::fmt::Display) -> Error {
    Error::system(format!("the journal {} cannot be used: {error}", path.display()))
        .hint("`TRIMTAB_JOURNAL` names another file; `TRIMTAB_JOURNAL=off` does without, and without undo")
}

fn key_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".key");
    name.into()
}

fn make_private_directory(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn make_private_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(|_| ())
}

/// The present time as the journal writes it: RFC 3339, UTC, milliseconds.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests;
