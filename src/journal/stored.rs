//! How a change's details are written down: JSON, bytes in base64. The types of `host` are free to change; this form is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest;

use crate::connect::shell::Response;
use crate::error::Error;
use crate::host::{
    Change, Difference, Footprint, Inverse, Observation, Query, RecordedChange, Step, Subject, Withheld,
};
use crate::value::Value;

/// Contents up to this size are kept.
const KEPT_BYTES: usize = 1 << 20;

/// The algorithms that a checksum can be asked by.
const ALGORITHMS: &[&str] = &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes).map_err(serde::de::Error::custom)
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredStep {
    script: String,
    stdin: Option<Bytes>,
    expect: Option<String>,
    writes: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredResponse {
    code: Option<i32>,
    stdout: Bytes,
    stderr: Bytes,
    aliased: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredSubject {
    Path(String),
    Tree(String),
    Unit(String),
    Units,
    Packages,
    Accounts,
    Named(String),
}

/// `None`: everything.
type StoredFootprint = Option<Vec<StoredSubject>>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredQuery {
    Line(String),
    Content(String),
    Attributes { path: String, follow: bool },
    Stat { path: String, follow: bool },
    Checksum { path: String, algorithm: String },
    Unit(String),
    Script { text: String, footprint: StoredFootprint },
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredObservation {
    query: StoredQuery,
    before: Option<StoredResponse>,
    after: StoredResponse,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredDifference {
    before_header: String,
    after_header: String,
    before: String,
    after: String,
    /// Before and after as objects, if they are the state of something and not a text.
    #[serde(default)]
    state: Option<(serde_json::Value, serde_json::Value)>,
    #[serde(default)]
    withheld: bool,
}

/// The details of a change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Detail {
    what: String,
    /// `None`: too large to keep.
    steps: Option<Vec<StoredStep>>,
    inverse: Result<Vec<StoredStep>, String>,
    observations: Vec<StoredObservation>,
    differences: Vec<StoredDifference>,
    footprint: StoredFootprint,
    certain: bool,
}

impl Detail {
    /// What is kept of a change; `before` has what its effects' questions were answered before.
    pub(super) fn of(change: &Change, before: &[Option<Response>]) -> Detail {
        let size: usize = change.steps.iter().filter_map(|step| step.stdin.as_ref()).map(Vec::len).sum();
        let observations = change.effects.iter().zip(before.iter().chain(std::iter::repeat(&None)));
        Detail {
            what: change.what.clone(),
            steps: (size <= KEPT_BYTES).then(|| change.steps.iter().map(StoredStep::of).collect()),
            inverse: match &change.inverse {
                Inverse::Steps(steps) => Ok(steps.iter().map(StoredStep::of).collect()),
                Inverse::None(reason) => Err(reason.clone()),
            },
            observations: observations.map(|((query, after), before)| observation(query, before, after)).collect(),
            differences: change.differences.iter().map(StoredDifference::of).collect(),
            footprint: footprint(&change.footprint),
            certain: change.certain,
        }
    }

    /// As it is sealed.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(|error| Error::system(format!("a change cannot be written down: {error}")))
    }

    /// The change that it describes.
    pub(super) fn recorded(self, number: i64, known: bool) -> RecordedChange {
        let steps = |steps: Vec<StoredStep>| steps.into_iter().map(StoredStep::step).collect();
        RecordedChange {
            number,
            what: self.what,
            steps: match self.steps {
                Some(stored) => Ok(steps(stored)),
                None => Err(format!("what was written was too large to keep (more than {KEPT_BYTES} bytes)")),
            },
            inverse: match self.inverse {
                Ok(stored) => Inverse::Steps(steps(stored)),
                Err(reason) => Inverse::None(reason),
            },
            observations: self.observations.into_iter().filter_map(StoredObservation::observation).collect(),
            differences: self.differences.into_iter().map(StoredDifference::difference).collect(),
            footprint: whole_footprint(self.footprint),
            certain: self.certain,
            known,
        }
    }
}

impl StoredStep {
    fn of(step: &Step) -> StoredStep {
        StoredStep {
            script: step.script.clone(),
            stdin: step.stdin.clone().map(Bytes),
            expect: step.expect.clone(),
            writes: step.writes.clone(),
        }
    }

    fn step(self) -> Step {
        Step { script: self.script, stdin: self.stdin.map(|bytes| bytes.0), expect: self.expect, writes: self.writes }
    }
}

impl StoredResponse {
    fn of(response: &Response) -> StoredResponse {
        StoredResponse {
            code: response.code,
            stdout: Bytes(response.stdout.clone()),
            stderr: Bytes(response.stderr.clone()),
            aliased: response.aliased,
        }
    }

    fn response(self) -> Response {
        Response { code: self.code, stdout: self.stdout.0, stderr: self.stderr.0, aliased: self.aliased }
    }
}

/// An observation; of contents too large to keep, the checksum.
fn observation(query: &Query, before: &Option<Response>, after: &Response) -> StoredObservation {
    let large = |response: &Response| response.stdout.len() > KEPT_BYTES;
    if let Query::Content(path) = query
        && (large(after) || before.as_ref().is_some_and(large))
    {
        let digest = |response: &Response| {
            let digest = sha2::Sha256::digest(&response.stdout);
            let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            StoredResponse::of(&if response.success() { Response::output(text) } else { response.clone() })
        };
        return StoredObservation {
            query: StoredQuery::Checksum { path: path.clone(), algorithm: "sha256".to_owned() },
            before: before.as_ref().map(digest),
            after: digest(after),
        };
    }
    StoredObservation {
        query: StoredQuery::of(query),
        before: before.as_ref().map(StoredResponse::of),
        after: StoredResponse::of(after),
    }
}

impl StoredObservation {
    fn observation(self) -> Option<Observation> {
        Some(Observation {
            query: self.query.query()?,
            before: self.before.map(StoredResponse::response),
            after: self.after.response(),
        })
    }
}

impl StoredQuery {
    fn of(query: &Query) -> StoredQuery {
        match query.clone() {
            Query::Line(path) => StoredQuery::Line(path),
            Query::Content(path) => StoredQuery::Content(path),
            Query::Attributes { path, follow } => StoredQuery::Attributes { path, follow },
            Query::Stat { path, follow } => StoredQuery::Stat { path, follow },
            Query::Checksum { path, algorithm } => StoredQuery::Checksum { path, algorithm: algorithm.to_owned() },
            Query::Unit(name) => StoredQuery::Unit(name),
            Query::Script { text, footprint: of } => StoredQuery::Script { text, footprint: footprint(&of) },
        }
    }

    /// `None` for a checksum by an algorithm that is not known here.
    fn query(self) -> Option<Query> {
        Some(match self {
            StoredQuery::Line(path) => Query::Line(path),
            StoredQuery::Content(path) => Query::Content(path),
            StoredQuery::Attributes { path, follow } => Query::Attributes { path, follow },
            StoredQuery::Stat { path, follow } => Query::Stat { path, follow },
            StoredQuery::Checksum { path, algorithm } => {
                let algorithm = ALGORITHMS.iter().find(|known| **known == algorithm)?;
                Query::Checksum { path, algorithm }
            }
            StoredQuery::Unit(name) => Query::Unit(name),
            StoredQuery::Script { text, footprint } => Query::Script { text, footprint: whole_footprint(footprint) },
        })
    }
}

fn footprint(footprint: &Footprint) -> StoredFootprint {
    let Footprint::Of(subjects) = footprint else { return None };
    let stored = subjects.iter().cloned().map(|subject| match subject {
        Subject::Path(path) => StoredSubject::Path(path),
        Subject::Tree(path) => StoredSubject::Tree(path),
        Subject::Unit(name) => StoredSubject::Unit(name),
        Subject::Units => StoredSubject::Units,
        Subject::Packages => StoredSubject::Packages,
        Subject::Accounts => StoredSubject::Accounts,
        Subject::Named(name) => StoredSubject::Named(name),
    });
    Some(stored.collect())
}

fn whole_footprint(stored: StoredFootprint) -> Footprint {
    let Some(stored) = stored else { return Footprint::Everything };
    let subjects = stored.into_iter().map(|subject| match subject {
        StoredSubject::Path(path) => Subject::Path(path),
        StoredSubject::Tree(path) => Subject::Tree(path),
        StoredSubject::Unit(name) => Subject::Unit(name),
        StoredSubject::Units => Subject::Units,
        StoredSubject::Packages => Subject::Packages,
        StoredSubject::Accounts => Subject::Accounts,
        StoredSubject::Named(name) => Subject::Named(name),
    });
    Footprint::Of(subjects.collect())
}

impl StoredDifference {
    fn of(difference: &Difference) -> StoredDifference {
        StoredDifference {
            before_header: difference.before_header.clone(),
            after_header: difference.after_header.clone(),
            before: difference.before.clone(),
            after: difference.after.clone(),
            state: difference
                .state
                .as_ref()
                .map(|(before, after)| (Value::from(before.clone()).to_json(), Value::from(after.clone()).to_json())),
            withheld: !difference.withheld.is_empty(),
        }
    }

    fn difference(self) -> Difference {
        let withheld =
            if self.withheld { vec![Withheld::DestinationBinary, Withheld::SourceBinary] } else { Vec::new() };
        Difference {
            before_header: self.before_header,
            after_header: self.after_header,
            before: self.before,
            after: self.after,
            state: self.state.and_then(|(before, after)| {
                let map = |json: &serde_json::Value| Value::from_json(json).as_map().cloned();
                Some((map(&before)?, map(&after)?))
            }),
            withheld,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn a_change_comes_back_as_it_was_stored() {
        let queries = [
            Query::Line("/proc/sys/a".into()),
            Query::Content("/etc/a".into()),
            Query::Attributes { path: "/etc/a".into(), follow: true },
            Query::Stat { path: "/etc/a".into(), follow: false },
            Query::Checksum { path: "/etc/a".into(), algorithm: "sha1" },
            Query::Unit("tuned".into()),
            Query::Script { text: "id".into(), footprint: Footprint::Everything },
        ];
        let mut change = Change::certain("file /etc/a", Footprint::path("/etc/a").and(Footprint::unit("tuned")))
            .step(Step::new("cat >/etc/a").stdin(b"\xff\0".to_vec()).expect("ok").writes("/etc/a"))
            .difference(Difference::new("/etc/a", "x\n", "y\n"))
            .difference(Difference {
                state: Some((object([("mode", "0644".into())]), object([("mode", "0600".into())]))),
                ..Difference::default()
            })
            .inverse(Inverse::Steps(vec![Step::new("rm /etc/a")]));
        for query in &queries {
            change = change.leaves(query.clone(), Response::output("after"));
        }
        let before = vec![Some(Response::output("before")), Some(Response::missing()), None];
        let text = serde_json::to_vec(&Detail::of(&change, &before)).unwrap();
        let back = serde_json::from_slice::<Detail>(&text).unwrap().recorded(7, true);
        assert_eq!(back.steps.as_ref().unwrap(), &change.steps);
        assert_eq!((&back.inverse, &back.differences), (&change.inverse, &change.differences));
        assert_eq!((&back.footprint, back.number, back.certain), (&change.footprint, 7, true));
        let seen: Vec<Query> = back.observations.iter().map(|seen| seen.query.clone()).collect();
        assert_eq!(seen, queries);
        assert_eq!(back.observations[0].before, Some(Response::output("before")));
        assert_eq!(back.observations[6].before, None);
    }

    #[test]
    fn what_is_too_large_is_kept_by_its_checksum() {
        let large = vec![b'x'; KEPT_BYTES + 1];
        let change = Change::certain("file /etc/a", Footprint::path("/etc/a"))
            .step(Step::new("cat >/etc/a").stdin(large.clone()))
            .leaves(Query::Content("/etc/a".into()), Response::output(large));
        let detail = Detail::of(&change, &[Some(Response::missing())]);
        assert!(serde_json::to_vec(&detail).unwrap().len() < 1000);
        let back = detail.recorded(1, true);
        assert!(back.steps.unwrap_err().contains("too large"));
        assert!(matches!(&back.observations[0].query, Query::Checksum { algorithm: "sha256", .. }));
        assert_eq!(back.observations[0].after.stdout.len(), 64);
        assert_eq!(back.observations[0].before, Some(Response::missing()));
    }
}
