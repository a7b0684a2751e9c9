//! The questions that can be asked of a host, and what each looks at.

use std::fmt;

use crate::connect::shell::{Response, Verb};

use super::footprint::{Footprint, Subject};
use super::reads::{Attributes, Read};

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

    /// The path that it asks about, if it is about one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Query::Line(path) | Query::Content(path) => Some(path),
            Query::Attributes { path, .. } | Query::Stat { path, .. } | Query::Checksum { path, .. } => Some(path),
            Query::Unit(_) | Query::Script { .. } => None,
        }
    }

    /// True if two answers say the same of what the question is about: blanks and times apart.
    pub fn agrees(&self, expected: &Response, actual: &Response) -> bool {
        if expected.success() != actual.success() {
            return false;
        }
        if !expected.success() {
            return true;
        }
        let fold = |response: &Response| response.text().split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Query::Content(_) => expected.stdout == actual.stdout,
            Query::Attributes { path, follow } => {
                let read = Attributes { path: path.clone(), follow: *follow };
                matches!((read.parse(expected), read.parse(actual)), (Ok(expected), Ok(actual)) if expected == actual)
            }
            // what else systemd says of a unit is not what a change sets
            Query::Unit(_) => UNIT_STATE.iter().all(|key| property(expected, key) == property(actual, key)),
            Query::Line(_) | Query::Stat { .. } | Query::Checksum { .. } | Query::Script { .. } => {
                fold(expected) == fold(actual)
            }
        }
    }

    /// An answer in a few words, for people.
    pub fn brief(&self, response: &Response) -> String {
        if !response.success() {
            return "nothing".to_owned();
        }
        if let Query::Attributes { path, follow } = self
            && let Ok(Some(found)) = (Attributes { path: path.clone(), follow: *follow }).parse(response)
        {
            return found.to_string();
        }
        let text = match self {
            Query::Unit(_) => UNIT_STATE.iter().filter_map(|key| property(response, key)).collect::<Vec<_>>().join(" "),
            _ => response.text().trim().to_owned(),
        };
        match (text.contains('\n') || text.chars().count() > 60, text.is_empty()) {
            (true, _) => format!("{} bytes", response.stdout.len()),
            (false, true) => "nothing in it".to_owned(),
            (false, false) => format!("`{text}`"),
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

/// The properties of a unit that changes set.
const UNIT_STATE: &[&str] = &["LoadState", "ActiveState", "UnitFileState"];

fn property(response: &Response, key: &str) -> Option<String> {
    let text = response.text();
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::to_owned)
}

/// For people: what it asks about.
impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Line(path) => formatter.write_str(path),
            Query::Content(path) => write!(formatter, "content of {path}"),
            Query::Attributes { path, .. } | Query::Stat { path, .. } => write!(formatter, "attributes of {path}"),
            Query::Checksum { path, .. } => write!(formatter, "checksum of {path}"),
            Query::Unit(name) => write!(formatter, "unit {name}"),
            Query::Script { footprint, .. } => write!(formatter, "{footprint}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_agree_if_they_say_the_same_of_what_is_asked() {
        let stat = |mode: &str, mtime: &str| {
            Response::output(format!("f\t{mode}\t0\t0\troot\troot\t3\t77\t1\t1\t{mtime}\t{mtime}\t{mtime}\t"))
        };
        let attributes = Query::Attributes { path: "/etc/a".into(), follow: true };
        let unit = Query::Unit("tuned".into());
        let line = Query::Line("/proc/sys/a".into());
        let content = Query::Content("/etc/a".into());
        let output = |text: &str| Response::output(text);
        let cases = [
            (&attributes, stat("644", "1.5"), stat("644", "9"), true),
            (&attributes, stat("644", "1.5"), stat("600", "1.5"), false),
            (&unit, output("ActiveState=active\nMainPID=1\n"), output("ActiveState=active\nMainPID=2\n"), true),
            (&unit, output("ActiveState=active\n"), output("ActiveState=inactive\n"), false),
            (&line, output("4096\t5"), output("4096 5\n"), true),
            (&content, output("a b"), output("a  b"), false),
            (&content, Response::missing(), Response { stderr: b"No such file".to_vec(), ..Response::missing() }, true),
            (&content, Response::missing(), output(""), false),
        ];
        for (query, expected, actual, agree) in cases {
            assert_eq!(query.agrees(&expected, &actual), agree, "{query}: {expected:?} {actual:?}");
        }
    }
}
