//! The questions that can be asked of a host, and what each looks at.

use crate::connect::shell::Verb;

use super::footprint::{Footprint, Subject};

/// A question without side effect. Equal questions are asked once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Query {
    /// A small file of the kernel (/proc, /sys) as text.
    Line(String),
    /// A whole file, byte for byte.
    Content(String),
    /// Type, mode, owner, group, size of a file and target of a link: what a change can predict.
    Attributes { path: String, follow: bool },
    /// All that stat(2) knows, times and inode too: never predicted.
    Stat { path: String, follow: bool },
    /// Hexadecimal digest of a file's content.
    Checksum { path: String, algorithm: &'static str },
    /// The state of a unit.
    Unit(String),
    /// Shell code that only reads, and what it looks at.
    Script { text: String, footprint: Footprint },
}

impl Query {
    /// What the answer depends on.
    pub fn footprint(&self) -> Footprint {
        match self {
            Query::Line(path)
            | Query::Content(path)
            | Query::Attributes { path, .. }
            | Query::Checksum { path, .. } => Footprint::path(path.as_str()),
            // the times and the number of links of a directory change with its entries
            Query::Stat { path, .. } => Footprint::tree(path.as_str()),
            Query::Unit(name) => Footprint::Of(vec![Subject::Unit(name.clone())]),
            Query::Script { footprint, .. } => footprint.clone(),
        }
    }

    /// The request that asks it.
    pub(crate) fn verb(&self) -> Verb {
        match self {
            Query::Line(path) => Verb::Line { path: path.clone() },
            Query::Content(path) => Verb::Content { path: path.clone() },
            Query::Attributes { path, follow } | Query::Stat { path, follow } => {
                Verb::Stat { path: path.clone(), follow: *follow }
            }
            Query::Checksum { path, algorithm } => Verb::Checksum { path: path.clone(), algorithm },
            Query::Unit(name) => Verb::Unit { name: name.clone() },
            Query::Script { text, .. } => Verb::Script { text: text.clone(), stdin: None },
        }
    }
}
