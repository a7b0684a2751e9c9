//! What the engine tells of a run. Reports, progress and the journal receive events; the engine knows none of them.

use std::sync::Arc;

use crate::connect::Counters;
use crate::source::Place;
use crate::value::Value;
use crate::vars::Stamp;

use super::question::Question;
use super::result::TaskResult;

/// One event. Results of different hosts come in any order; [`Event::Passed`] says what is complete.
#[derive(Debug, Clone)]
pub enum Event {
    PlaybookStarted {
        path: String,
        plays: usize,
    },
    PlayStarted {
        play: u32,
        name: String,
        hosts: Vec<Arc<str>>,
    },
    /// The pattern of a play matched no host.
    NoHosts {
        play: u32,
        pattern: String,
    },
    /// One batch of a play begins.
    BatchStarted {
        play: u32,
        batch: u32,
        hosts: Vec<Arc<str>>,
    },
    Result(Box<HostResult>),
    /// Everything before this stamp is done on all hosts of the batch.
    Passed(Stamp),
    /// The batch is done on all hosts.
    BatchEnded {
        play: u32,
        batch: u32,
    },
    /// A host's rescue came to its end, so its failure does not count.
    Rescued {
        host: Arc<str>,
    },
    /// `meta: clear_host_errors`: what failed before has no part in how the run ends.
    ErrorsCleared,
    Warning(String),
    /// Somebody must answer before the run goes on.
    Question(Question),
    /// A fault of trimtab itself ended the walk of a host.
    Crashed {
        host: Arc<str>,
        message: String,
    },
    /// set_stats; of one host, or of the run.
    CustomStats {
        host: Option<Arc<str>>,
        data: Value,
        /// Add to what was there, rather than replace it.
        aggregate: bool,
    },
    /// What the connection of a host has cost.
    HostCost {
        host: Arc<str>,
        counters: Counters,
    },
}

/// The result of a task, or of one item of its loop, on a host.
#[derive(Debug, Clone)]
pub struct HostResult {
    pub stamp: Stamp,
    pub task: Arc<TaskInfo>,
    pub host: Arc<str>,
    /// The host that did the work, where the task delegates.
    pub delegated_to: Option<String>,
    /// Set for an item of a loop: its label.
    pub item: Option<String>,
    /// True for the result of a whole loop, behind the results of its items.
    pub is_loop: bool,
    pub result: TaskResult,
    /// A failure that leads into a rescue, so the host goes on.
    pub rescued: bool,
    /// Nothing of the result may be shown.
    pub no_log: bool,
    /// Show before and after.
    pub diff: bool,
}

/// What is told of a task with its results.
#[derive(Debug, Clone)]
pub struct TaskInfo {
    /// Rendered; with the role before it: `firewall : stop firewalld`.
    pub name: String,
    /// The module's bare name.
    pub action: String,
    pub place: Place,
    pub is_handler: bool,
    /// Set for include_tasks and its like: the files that were included.
    pub included: Option<Vec<String>>,
}
