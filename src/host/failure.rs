//! Why a module could not do what it was asked.

use crate::connect::{ConnectError, ConnectErrorKind};
use crate::python_regex::RegexError;
use crate::template::TemplateError;
use crate::value::{Interruption, Map, Value};

/// The end of an invocation that did not reach its goal; becomes the result of the task.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: FailureKind,
    /// What, why and what to do.
    pub message: String,
    /// Further return values (`rc`, `stdout`, …).
    pub result: Map,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    /// The task failed.
    Failed,
    /// The host could not be asked.
    Unreachable,
    /// A value is not there yet, or cannot be known in check mode: not a failure, the engine deals with it.
    Interrupted(Interruption),
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Failed, message: message.into(), result: Map::new(), warnings: Vec::new() }
    }

    /// A failure because the value cannot be had now.
    pub fn interrupted(interruption: Interruption) -> Failure {
        let message = match &interruption {
            Interruption::Pending | Interruption::Barrier => String::new(),
            Interruption::Unknown(reason) | Interruption::Failed(reason) => reason.clone(),
        };
        match interruption {
            Interruption::Failed(message) => Failure::new(message),
            other => {
                Failure { kind: FailureKind::Interrupted(other), message, result: Map::new(), warnings: Vec::new() }
            }
        }
    }

    pub fn unreachable(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Unreachable, message: message.into(), result: Map::new(), warnings: Vec::new() }
    }

    /// Adds a return value.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Failure {
        self.result.insert(key.into(), value.into());
        self
    }
}

/// An error of a pure function: its message, with what to do.
impl From<crate::error::Error> for Failure {
    fn from(error: crate::error::Error) -> Failure {
        let mut message = error.to_string();
        for hint in error.hints() {
            message.push_str("; ");
            message.push_str(hint);
        }
        Failure::new(message)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        match error.kind {
            ConnectErrorKind::Unreachable => Failure::unreachable(error.message),
            ConnectErrorKind::Become => Failure::new(error.message),
        }
    }
}

impl From<TemplateError> for Failure {
    fn from(error: TemplateError) -> Failure {
        match error.interruption() {
            Some(interruption) => Failure::interrupted(interruption.clone()),
            None => Failure::new(error.to_string()),
        }
    }
}

impl From<RegexError> for Failure {
    fn from(error: RegexError) -> Failure {
        Failure::new(error.to_string())
    }
}
