//! A step that alters a host, with what it was before, what it will be, and how to take it back.

use crate::connect::shell::{Response, Verb};
use crate::value::{Map, Value, object};

use super::footprint::Footprint;
use super::query::Query;

/// One command of a change, run by the host's shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// POSIX shell code; succeeds by exit code 0.
    pub script: String,
    /// Its standard input. Secrets travel here and nowhere else.
    pub stdin: Option<Vec<u8>>,
    /// The output that proves the change: what was written is read back. Blanks are folded.
    pub expect: Option<String>,
    /// The path that is written, so that a path reached through a symbolic link is noticed.
    pub writes: Option<String>,
}

impl Step {
    pub fn new(script: impl Into<String>) -> Step {
        Step { script: script.into(), stdin: None, expect: None, writes: None }
    }

    #[must_use]
    pub fn stdin(mut self, stdin: impl Into<Vec<u8>>) -> Step {
        self.stdin = Some(stdin.into());
        self
    }

    #[must_use]
    pub fn expect(mut self, output: impl Into<String>) -> Step {
        self.expect = Some(output.into());
        self
    }

    #[must_use]
    pub fn writes(mut self, path: impl Into<String>) -> Step {
        self.writes = Some(path.into());
        self
    }

    pub(crate) fn verb(&self) -> Verb {
        Verb::Script { text: self.script.clone(), stdin: self.stdin.clone() }
    }
}

/// Before and after, as `--diff` shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    pub before_header: String,
    pub after_header: String,
    pub before: String,
    pub after: String,
    /// Before and after as maps, if they are the state of something and not a text; the texts are their JSON.
    pub state: Option<(Map, Map)>,
    /// Why content is not shown; then before and after are empty.
    pub withheld: Vec<Withheld>,
}

impl Difference {
    pub fn new(header: impl Into<String>, before: impl Into<String>, after: impl Into<String>) -> Difference {
        let header = header.into();
        Difference {
            before_header: header.clone(),
            after_header: header,
            before: before.into(),
            after: after.into(),
            ..Difference::default()
        }
    }

    /// A result's `diff`, or the entry of it.
    pub fn to_value(&self) -> Value {
        let mut map: Map = object([
            ("before_header", self.before_header.as_str().into()),
            ("after_header", self.after_header.as_str().into()),
        ]);
        if let Some((before, after)) = &self.state {
            map.retain(|_, header| !header.to_text().is_empty());
            map.insert("before".into(), before.clone().into());
            map.insert("after".into(), after.clone().into());
        } else if self.withheld.is_empty() {
            map.insert("before".into(), self.before.as_str().into());
            map.insert("after".into(), self.after.as_str().into());
        }
        map.extend(self.withheld.iter().map(Withheld::entry));
        map.into()
    }
}

/// Why a side of a difference is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    DestinationBinary,
    SourceBinary,
    /// It is larger than this many bytes.
    DestinationLarger(usize),
    SourceLarger(usize),
}

impl Withheld {
    /// The key of a result's `diff` that says so, and its value.
    fn entry(&self) -> (Value, Value) {
        match self {
            Withheld::DestinationBinary => ("dst_binary".into(), 1.into()),
            Withheld::SourceBinary => ("src_binary".into(), 1.into()),
            Withheld::DestinationLarger(limit) => ("dst_larger".into(), (*limit).into()),
            Withheld::SourceLarger(limit) => ("src_larger".into(), (*limit).into()),
        }
    }
}

/// How a change is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inverse {
    /// By these steps.
    Steps(Vec<Step>),
    /// Not at all, for this reason.
    None(String),
}

/// A change of a host: what the engine sends, journals, shows and can undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is changed, in a few words: `file /etc/motd`, `sysctl vm.swappiness`.
    pub what: String,
    pub steps: Vec<Step>,
    pub differences: Vec<Difference>,
    pub inverse: Inverse,
    pub footprint: Footprint,
    /// True if success leaves the host exactly as `effects` say and the answers of the steps tell nothing
    /// more: then tasks behind it are decided and sent without waiting.
    pub certain: bool,
    /// What the reads would answer once it is made.
    pub effects: Vec<(Query, Response)>,
    /// Paths below which there will be nothing: a directory that is made anew, a tree that is removed.
    pub empties: Vec<String>,
    /// The number of the recorded change that it takes back.
    pub takes_back: Option<i64>,
}

impl Change {
    /// A change whose result is known in advance: it adds what it leaves behind by [`Change::leaves`].
    pub fn certain(what: impl Into<String>, footprint: Footprint) -> Change {
        Change {
            what: what.into(),
            steps: Vec::new(),
            differences: Vec::new(),
            inverse: Inverse::None("no inverse is known".to_owned()),
            footprint,
            certain: true,
            effects: Vec::new(),
            empties: Vec::new(),
            takes_back: None,
        }
    }

    /// A change whose answers must be seen before anything behind it can be decided.
    pub fn uncertain(what: impl Into<String>, footprint: Footprint) -> Change {
        Change { certain: false, ..Change::certain(what, footprint) }
    }

    /// False for a command that only looks: there is nothing to keep of it and nothing to take back.
    pub fn alters(&self) -> bool {
        self.footprint != Footprint::nothing()
    }

    #[must_use]
    pub fn step(mut self, step: Step) -> Change {
        self.steps.push(step);
        self
    }

    #[must_use]
    pub fn difference(mut self, difference: Difference) -> Change {
        self.differences.push(difference);
        self
    }

    #[must_use]
    pub fn inverse(mut self, inverse: Inverse) -> Change {
        self.inverse = inverse;
        self
    }

    /// There will be nothing below `path`, so what is asked of it need not be.
    #[must_use]
    pub fn leaves_empty(mut self, path: impl Into<String>) -> Change {
        self.empties.push(path.into());
        self
    }

    /// What `query` will answer after the change.
    #[must_use]
    pub fn leaves(mut self, query: Query, response: Response) -> Change {
        self.effects.push((query, response));
        self
    }
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The answers of the steps; empty for a certain change and in check mode.
    pub responses: Vec<Response>,
    /// True if nothing was sent because this is check mode.
    pub check: bool,
}
