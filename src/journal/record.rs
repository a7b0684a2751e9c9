//! The recorder of a run: seals what is kept of each change and hands it to the thread that writes.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::run::RunStart;
use super::seal::Key;
use super::stored::Detail;
use super::told::Told;
use super::writer::{self, Entry, Message};
use super::{Journal, failed};
use crate::engine::recorder::{ChangeEnd, ChangeNumber, Intent, Recorder, Waiting};
use crate::error::Result;

/// Writes the changes of one run.
pub struct Journalist {
    path: PathBuf,
    start: RunStart,
    open: OnceLock<Open>,
    opening: Mutex<()>,
}

/// A journal that a run writes to.
struct Open {
    key: Key,
    sender: Mutex<mpsc::Sender<Message>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journalist {
    /// Begins a run in the journal at `path`.
    pub fn begin(path: &Path, start: RunStart) -> Result<Journalist> {
        let journalist = Journalist::later(path, start);
        journalist.open()?;
        Ok(journalist)
    }

    /// Begins a run in the journal at `path` with the first change, if there is one: for check mode.
    pub fn later(path: &Path, start: RunStart) -> Journalist {
        Journalist { path: path.to_owned(), start, open: OnceLock::new(), opening: Mutex::default() }
    }

    fn open(&self) -> Result<&Open> {
        let _alone = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = self.open.get() {
            return Ok(open);
        }
        let Journal { connection, key, .. } = Journal::open(&self.path)?;
        let (sender, thread) =
            writer::start(connection, self.start.clone()).map_err(|error| failed(&self.path, &error))?;
        Ok(self.open.get_or_init(|| Open { key, sender: Mutex::new(sender), thread: Mutex::new(Some(thread)) }))
    }

    fn send(&self, message: Message) -> Result<()> {
        let sender = self.open()?.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(message).map_err(|_| failed(&self.path, &"it is closed"))
    }

    /// Writes that the run has ended; its number, if it was begun.
    pub fn close(&self, exit_code: u8) -> Result<Option<i64>> {
        let Some(open) = self.open.get() else { return Ok(None) };
        let (answer, answered) = mpsc::channel();
        self.send(Message::Close { exit_code, answer })?;
        let number = answered.recv().unwrap_or_else(|_| Err("its thread has ended".to_owned()));
        if let Some(thread) = open.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // a panic in it was answered above
            let _ = thread.join();
        }
        number.map(Some).map_err(|error| failed(&self.path, &error))
    }

    fn entry(&self, intent: &Intent) -> Result<Entry> {
        let detail = Detail::of(&intent.change, &intent.before).to_bytes()?;
        Ok(Entry {
            told: Told::of(intent),
            takes_back: intent.change.takes_back,
            detail: self.open()?.key.seal(&detail, &intent.host)?,
        })
    }
}

impl Recorder for Journalist {
    fn begin(&self, intents: Vec<Intent>) -> Waiting<'_, Result<Vec<ChangeNumber>>> {
        Box::pin(async move {
            let entries = intents.iter().map(|intent| self.entry(intent)).collect::<Result<Vec<Entry>>>()?;
            let (answer, answered) = oneshot::channel();
            self.send(Message::Begin(entries, answer))?;
            let numbers = answered.await.unwrap_or_else(|_| Err("its thread has ended".to_owned()));
            numbers.map_err(|error| failed(&self.path, &error))
        })
    }

    fn end(&self, number: ChangeNumber, end: ChangeEnd) {
        // if it cannot be written, the change stays `sent`, which is true, and closing the run tells why
        let _ = self.send(Message::End(number, end));
    }

    fn planned(&self, _intent: Intent) {}
}
