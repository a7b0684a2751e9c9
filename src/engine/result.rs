//! What a task came to on a host.

use std::sync::Arc;

use crate::error::Error;
use crate::value::{Map, Value};
use crate::vars::runtime::Additions;

use super::play::Addition;

/// How a task (or one item of its loop) ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok,
    Changed,
    Skipped,
    Failed,
    Unreachable,
    /// Check mode cannot know.
    Unknown,
}

/// The result of a task on a host, or of one item of its loop.
#[derive(Debug, Clone)]
pub struct TaskResult {
    pub status: Status,
    /// The return values as playbooks register them: `changed`, `failed`, `msg`, …
    pub result: Arc<Map>,
    /// A failure that `ignore_errors` lets pass.
    pub ignored: bool,
    /// What it adds to the host's variables.
    pub additions: Arc<Additions>,
    /// Handlers and topics it notifies, rendered.
    pub notify: Vec<String>,
    /// What it does to the play beyond this host's variables.
    pub steer: Option<Steer>,
    pub warnings: Vec<String>,
}

/// An effect on the play itself.
#[derive(Debug, Clone)]
pub enum Steer {
    /// add_host and group_by.
    Add(Addition),
    EndHost,
    EndPlay,
    EndBatch,
    EndRole,
    ClearHostErrors,
    ClearFacts,
    ResetConnection,
    RefreshInventory,
    Stats {
        data: Map,
        per_host: bool,
        aggregate: bool,
    },
    /// The run cannot go on.
    Abort(Error),
}

impl TaskResult {
    pub fn new(status: Status, mut result: Map) -> TaskResult {
        if !result.contains_key("changed") {
            result.insert("changed".into(), (status == Status::Changed).into());
        }
        TaskResult {
            status,
            result: Arc::new(result),
            ignored: false,
            additions: Arc::default(),
            notify: Vec::new(),
            steer: None,
            warnings: Vec::new(),
        }
    }

    /// A failure with this message.
    pub fn failed(message: impl Into<String>) -> TaskResult {
        let mut result = Map::new();
        result.insert("failed".into(), true.into());
        result.insert("msg".into(), Value::from(message.into()));
        TaskResult::new(Status::Failed, result)
    }

    pub fn unreachable(message: impl Into<String>) -> TaskResult {
        let mut result = Map::new();
        result.insert("unreachable".into(), true.into());
        result.insert("msg".into(), Value::from(message.into()));
        TaskResult::new(Status::Unreachable, result)
    }

    pub fn skipped(reason: &str) -> TaskResult {
        let mut result = Map::new();
        result.insert("skipped".into(), true.into());
        result.insert("skip_reason".into(), reason.into());
        TaskResult::new(Status::Skipped, result)
    }

    /// True if the host cannot go on.
    pub fn is_fatal(&self) -> bool {
        matches!(self.status, Status::Failed | Status::Unreachable) && !self.ignored
    }
}
