//! The tables of the journal and their versions.

use std::path::Path;

use rusqlite::Connection;

use super::{BUSY, failed};
use crate::error::{Error, Result};

/// The version that this trimtab writes.
const VERSION: i64 = 1;

/// Tables of version 1. Times are RFC 3339 in UTC.
const TABLES: &str = "
create table runs (
    id integer primary key autoincrement,
    started text not null,
    -- null while it runs, or if it was cut off
    ended text,
    exit_code integer,
    -- process of the controller, and when the kernel says it began: tells a run under way from one cut off
    process integer not null,
    process_start text not null,
    user text not null,
    -- the directory it was begun in, by which the relative paths of playbooks and inventory go
    directory text not null,
    -- play, run, undo, apply
    command text not null,
    -- the run that it took back
    undoes integer references runs (id),
    playbooks text not null,
    inventory text not null,
    -- what else is needed to reach the hosts once more: limit, user, key, connection; no secrets
    options text not null
);
create table changes (
    id integer primary key autoincrement,
    run integer not null references runs (id),
    host text not null,
    task text not null,
    action text not null,
    -- file:line:column of the task
    place text not null,
    item text,
    no_log integer not null,
    -- what is changed, in a few words; the module's name where no_log is set
    what text not null,
    become_method text,
    become_user text,
    started text not null,
    ended text,
    -- sent, made, failed, not begun, unknown
    state text not null,
    reason text,
    -- why it cannot be taken back; null if it can
    no_inverse text,
    undone_by integer references runs (id),
    -- the change this one takes back
    undoes integer references changes (id),
    -- sealed: contents before and after, steps, inverse
    detail blob not null
);
create index changes_of_run on changes (run, host);
create index changes_of_host on changes (host, what);
";

/// Settings of a connection that writes: what is committed is on disk.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)
}

/// Makes the tables, if they are not there.
pub(super) fn upgrade(connection: &Connection, path: &Path) -> Result<()> {
    let version = |connection: &Connection| connection.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: i64 = version(connection).map_err(|error| failed(path, &error))?;
    match found {
        VERSION => Ok(()),
        0 => {
            let make = || -> rusqlite::Result<()> {
                connection.execute_batch("begin immediate")?;
                // another trimtab may have been faster
                if version(connection)? == 0 {
                    connection.execute_batch(TABLES)?;
                    connection.pragma_update(None, "user_version", VERSION)?;
                }
                connection.execute_batch("commit")
            };
            make().map_err(|error| failed(path, &error))
        }
        newer => Err(Error::system(format!(
            "the journal {} was written by a newer trimtab (version {newer} of its tables, this one knows {VERSION})",
            path.display()
        ))),
    }
}
