//! Who keeps what is changed. The engine tells a recorder of a change before it is sent, and what became of it after;
//! it knows no journal.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::connect::Identity;
use crate::connect::shell::Response;
use crate::error::Result;
use crate::host::Change;

use super::event::TaskInfo;

/// The number by which a recorder knows a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChangeNumber(pub i64);

/// A change that is about to be sent, or in check mode one that would be.
#[derive(Debug, Clone)]
pub struct Intent {
    pub host: Arc<str>,
    pub task: Arc<TaskInfo>,
    /// The label of the item, in a loop.
    pub item: Option<String>,
    /// Nothing of it may be shown.
    pub no_log: bool,
    pub identity: Arc<Identity>,
    pub change: Arc<Change>,
    /// What the questions of `change.effects` were answered before, where they were asked.
    pub before: Vec<Option<Response>>,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeEnd {
    Made,
    /// It failed, for this reason; part of it may have been made.
    Failed(String),
    /// It was not begun, since something before it failed.
    NotBegun,
    /// The connection broke before its answer came.
    Unknown,
}

/// A future that lives as long as what it was asked of.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Keeps changes.
pub trait Recorder: Send + Sync {
    /// Keeps what is about to be sent, one number for each. Once this is answered, it outlives a crash.
    fn begin(&self, intents: Vec<Intent>) -> Waiting<'_, Result<Vec<ChangeNumber>>>;

    /// Notes what became of a change.
    fn end(&self, number: ChangeNumber, end: ChangeEnd);

    /// Takes note of a change that check mode only records.
    fn planned(&self, intent: Intent);
}
