//! What a module's invocation came to.

use crate::host::{Change, Difference};
use crate::value::{Map, Value};

/// The end of an invocation that reached its goal.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub changed: bool,
    /// Why the module had nothing to do, if it skipped itself (`creates`, check mode of a command).
    pub skipped: bool,
    /// Return values beside `changed`.
    pub result: Map,
    pub differences: Vec<Difference>,
    pub effect: Effect,
    pub warnings: Vec<String>,
}

/// What an outcome does to the variables or the play.
#[derive(Debug, Clone, Default)]
pub enum Effect {
    #[default]
    None,
    /// Facts of the host (`ansible_facts`).
    Facts(Map),
    /// Variables of the host, as set_fact sets them.
    SetFacts { variables: Map, cacheable: bool },
    /// Variables as include_vars sets them.
    IncludeVars(Map),
    /// A host for the inventory of this run.
    AddHost { name: String, groups: Vec<String>, variables: Map },
    /// Puts the host into a group of this run.
    GroupBy { group: String, parents: Vec<String> },
    /// Statistics of the run (set_stats).
    Stats { data: Map, per_host: bool, aggregate: bool },
}

impl Outcome {
    /// The host was right already.
    pub fn ok() -> Outcome {
        Outcome::default()
    }

    pub fn changed() -> Outcome {
        Outcome { changed: true, ..Outcome::default() }
    }

    pub fn with_changed(changed: bool) -> Outcome {
        Outcome { changed, ..Outcome::default() }
    }

    /// Skipped by the module itself, with the reason as `msg`.
    pub fn skipped(message: impl Into<String>) -> Outcome {
        Outcome { skipped: true, ..Outcome::default() }.with("msg", message.into())
    }

    /// Adds a return value.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Outcome {
        self.result.insert(key.into(), value.into());
        self
    }

    #[must_use]
    pub fn differences(mut self, differences: impl IntoIterator<Item = Difference>) -> Outcome {
        self.differences.extend(differences);
        self
    }

    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Outcome {
        self.effect = effect;
        self
    }

    #[must_use]
    pub fn warning(mut self, warning: impl Into<String>) -> Outcome {
        self.warnings.push(warning.into());
        self
    }

    /// The outcome of a change that was made or recorded.
    pub fn of_change(change: &Change) -> Outcome {
        Outcome::changed().differences(change.differences.iter().cloned())
    }
}
