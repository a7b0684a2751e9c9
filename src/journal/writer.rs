//! The thread that writes: what waits is committed together, so that many hosts share one flush.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rusqlite::{Connection, params};
use tokio::sync::oneshot;

use super::run::RunStart;
use super::told::Told;
use super::{Journal, now};
use crate::engine::recorder::{ChangeEnd, ChangeNumber};

/// What a change's row says as it begins.
pub(super) struct Entry {
    pub told: Told,
    pub takes_back: Option<i64>,
    /// Sealed.
    pub detail: Vec<u8>,
}

pub(super) enum Message {
    Begin(Vec<Entry>, oneshot::Sender<Result<Vec<ChangeNumber>, String>>),
    End(ChangeNumber, ChangeEnd),
    /// The run has ended; its number is answered.
    Close {
        exit_code: u8,
        answer: mpsc::Sender<Result<i64, String>>,
    },
}

/// How many messages are committed together at most.
const TOGETHER: usize = 1000;

/// Starts the thread; it ends when the sender is gone or has sent `Close`.
pub(super) fn start(connection: Connection, run: RunStart) -> std::io::Result<(mpsc::Sender<Message>, JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel();
    let thread =
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || write(&connection, &run, &receiver))?;
    Ok((sender, thread))
}

fn write(connection: &Connection, start: &RunStart, messages: &mpsc::Receiver<Message>) {
    let run = Journal::insert_run(connection, start).map_err(|error| error.to_string());
    while let Ok(first) = messages.recv() {
        let mut waiting = VecDeque::from([first]);
        while waiting.len() < TOGETHER
            && let Ok(message) = messages.try_recv()
        {
            waiting.push_back(message);
        }
        let written = match &run {
            Ok(run) => commit(connection, *run, &waiting).map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        if answer(waiting, written, &run) {
            return;
        }
    }
}

/// Writes all that waits in one transaction; the numbers of the changes that begin, one list for each message.
fn commit(
    connection: &Connection,
    run: i64,
    waiting: &VecDeque<Message>,
) -> rusqlite::Result<VecDeque<Vec<ChangeNumber>>> {
    connection.execute_batch("begin immediate")?;
    let written: rusqlite::Result<_> = waiting.iter().map(|message| put(connection, run, message)).collect();
    connection.execute_batch(if written.is_ok() { "commit" } else { "rollback" })?;
    written
}

fn put(connection: &Connection, run: i64, message: &Message) -> rusqlite::Result<Vec<ChangeNumber>> {
    match message {
        Message::Begin(entries, _) => entries.iter().map(|entry| insert(connection, run, entry)).collect(),
        Message::End(number, end) => {
            let (state, reason) = match end {
                ChangeEnd::Made => ("made", None),
                ChangeEnd::Failed(reason) => ("failed", Some(reason.as_str())),
                ChangeEnd::NotBegun => ("not begun", None),
                ChangeEnd::Unknown => ("unknown", None),
            };
            let mut statement =
                connection.prepare_cached("update changes set ended = ?2, state = ?3, reason = ?4 where id = ?1")?;
            statement.execute(params![number.0, now(), state, reason])?;
            if *end == ChangeEnd::Made {
                let mut statement = connection.prepare_cached(
                    "update changes set undone_by = ?2 where id = (select undoes from changes where id = ?1)",
                )?;
                statement.execute(params![number.0, run])?;
                // what an undo had undone, and is made again by undoing that, is no longer undone
                let mut statement = connection.prepare_cached(
                    "update changes set undone_by = null where id = (select before.undoes from changes as before \
                     join changes as now on now.undoes = before.id where now.id = ?1)",
                )?;
                statement.execute(params![number.0])?;
            }
            Ok(Vec::new())
        }
        Message::Close { exit_code, .. } => {
            connection
                .execute("update runs set ended = ?2, exit_code = ?3 where id = ?1", params![run, now(), exit_code])?;
            Ok(Vec::new())
        }
    }
}

fn insert(connection: &Connection, run: i64, entry: &Entry) -> rusqlite::Result<ChangeNumber> {
    let mut statement = connection.prepare_cached(
        "insert into changes (run, host, task, action, place, item, what, become_method, become_user, started, state, \
         no_inverse, undoes, detail, no_log) \
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'sent', ?11, ?12, ?13, ?14)",
    )?;
    let Told { host, task, action, place, item, no_log, what, become_as, no_inverse } = &entry.told;
    let (method, user) = become_as.clone().unzip();
    statement.execute(params![
        run,
        host,
        task,
        action,
        place,
        item,
        what,
        method,
        user,
        now(),
        no_inverse,
        entry.takes_back,
        entry.detail,
        no_log,
    ])?;
    Ok(ChangeNumber(connection.last_insert_rowid()))
}

/// Answers those who wait; true if that was the last message. Who no longer waits needs no answer.
fn answer(
    waiting: VecDeque<Message>,
    written: Result<VecDeque<Vec<ChangeNumber>>, String>,
    run: &Result<i64, String>,
) -> bool {
    let mut numbers = written.clone().unwrap_or_default();
    let failure = written.err();
    let mut closed = false;
    for message in waiting {
        let given = numbers.pop_front().unwrap_or_default();
        match message {
            Message::Begin(_, answer) => {
                let _ = answer.send(failure.clone().map_or(Ok(given), Err));
            }
            Message::End(..) => {}
            Message::Close { answer, .. } => {
                let _ = answer.send(failure.clone().map_or_else(|| run.clone(), Err));
                closed = true;
            }
        }
    }
    closed
}
