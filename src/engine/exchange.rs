//! From changes and questions to the requests of a batch, and from its answers to what they mean. Pure.

use std::sync::Arc;

use crate::connect::Identity;
use crate::connect::shell::{Guard, Request, Response};
use crate::host::port::Question;
use crate::host::{Change, Failure, SlotId, Step};

use super::recorder::{ChangeEnd, ChangeNumber, Intent};

/// A change on its way, and whose it is.
pub struct Staged {
    pub slot: SlotId,
    pub identity: Arc<Identity>,
    pub change: Arc<Change>,
    /// What a recorder is to be told of it, until it has been told.
    pub intent: Option<Intent>,
    /// The number that the recorder gave it.
    pub number: Option<ChangeNumber>,
}

/// The requests of a change: each step only runs if all before it succeeded. The last one watches whether the
/// path that is written was reached through a symbolic link, so that only what is behind the change is held back.
pub fn change_requests(change: &Change) -> Vec<Request> {
    let kernel = |path: &&String| !path.starts_with("/proc/") && !path.starts_with("/sys/");
    let written = change.steps.iter().rev().filter_map(|step| step.writes.as_ref()).find(kernel).cloned();
    let last = change.steps.len().saturating_sub(1);
    change
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| Request {
            verb: step.verb(),
            guard: Guard::Chained,
            expect: step.expect.clone(),
            writes: written.clone().filter(|_| index == last),
        })
        .collect()
}

/// The request of a question.
pub fn question_request(question: &Question) -> Request {
    Request { verb: question.1.verb(), guard: Guard::Always, expect: None, writes: None }
}

/// What the answers to a change's steps mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All steps succeeded.
    Done,
    /// All steps succeeded, but a path was reached through a symbolic link: what was read under another
    /// name may be stale, and nothing behind it in the batch was run.
    DoneByAlias,
    /// This step failed; none behind it was run.
    Failed(usize),
    /// Nothing was run, because something before it in the batch failed.
    NotRun,
}

/// Judges the answers of one change.
pub fn judge(change: &Change, responses: &[Response]) -> Verdict {
    for (index, step) in change.steps.iter().enumerate() {
        let Some(response) = responses.get(index) else { return Verdict::NotRun };
        match response.code {
            None => return if index == 0 { Verdict::NotRun } else { Verdict::Failed(index) },
            Some(0) if reads_back(step, response) => {}
            Some(_) => return Verdict::Failed(index),
        }
    }
    if responses.iter().any(|response| response.aliased) { Verdict::DoneByAlias } else { Verdict::Done }
}

/// What a recorder is told of the end of a change: a certain one is judged, of any other the exit codes count.
pub fn end_of(change: &Change, responses: &[Response]) -> ChangeEnd {
    match judge(change, responses) {
        Verdict::Done | Verdict::DoneByAlias => ChangeEnd::Made,
        Verdict::NotRun => ChangeEnd::NotBegun,
        Verdict::Failed(index) => ChangeEnd::Failed(step_failure(change, index, responses).message),
    }
}

/// True if it is known what became of a change, from the answers that came before a connection broke.
pub fn is_answered(change: &Change, responses: &[Response]) -> bool {
    match judge(change, responses) {
        Verdict::Done | Verdict::DoneByAlias => true,
        Verdict::Failed(step) => responses.get(step).is_some_and(|response| response.code.is_some()),
        Verdict::NotRun => false,
    }
}

/// True if the output is what proves the change, blanks folded.
fn reads_back(step: &Step, response: &Response) -> bool {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    step.expect.as_deref().is_none_or(|expect| fold(expect) == fold(&response.text()))
}

/// The failure of a change whose step `index` failed.
pub fn step_failure(change: &Change, index: usize, responses: &[Response]) -> Failure {
    let response = responses.get(index).cloned().unwrap_or_default();
    let step = change.steps.get(index);
    let stderr = response.error_text();
    let stderr = stderr.trim();
    let message = match (response.code, step.and_then(|step| step.expect.as_deref())) {
        (Some(0), Some(expect)) => {
            format!("{}: written, but it reads back as `{}` instead of `{expect}`", change.what, response.text().trim())
        }
        (Some(code), _) if stderr.is_empty() => format!("{}: failed with exit code {code}", change.what),
        (Some(_), _) => format!("{}: {stderr}", change.what),
        (None, _) => format!("{}: was not finished, since a step before it failed", change.what),
    };
    Failure::new(message)
        .with("rc", i64::from(response.code.unwrap_or(-1)))
        .with("stdout", response.text())
        .with("stderr", response.error_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Footprint;

    fn change() -> Change {
        Change::certain("sysctl vm.swappiness", Footprint::nothing())
            .step(Step::new("a"))
            .step(Step::new("b").expect("4096 5"))
    }

    #[test]
    fn answers_are_judged_step_by_step() {
        let ok = || Response::output("");
        let not_run = Response::default();
        let aliased = Response { aliased: true, ..Response::output("4096\t5\n") };
        let cases: Vec<(Vec<Response>, Verdict)> = vec![
            (vec![ok(), Response::output("4096\t5\n")], Verdict::Done),
            (vec![ok(), aliased], Verdict::DoneByAlias),
            (vec![ok(), Response::output("4095 5")], Verdict::Failed(1)),
            (vec![Response::missing(), not_run.clone()], Verdict::Failed(0)),
            (vec![not_run.clone(), not_run], Verdict::NotRun),
        ];
        for (responses, verdict) in cases {
            assert_eq!(judge(&change(), &responses), verdict, "{responses:?}");
        }
    }

    #[test]
    fn what_a_broken_connection_did_not_answer_is_unknown() {
        let cases = [
            (vec![Response::output(""), Response::output("4096 5")], true),
            (vec![Response::output(""), Response::output("4095 5")], true),
            (vec![Response::missing(), Response::default()], true),
            (vec![Response::output(""), Response::default()], false),
            (vec![Response::default(), Response::default()], false),
            (vec![], false),
        ];
        for (responses, expected) in cases {
            assert_eq!(is_answered(&change(), &responses), expected, "{responses:?}");
        }
    }

    #[test]
    fn a_failed_read_back_says_both_values() {
        let failure = step_failure(&change(), 1, &[Response::output(""), Response::output("1")]);
        assert_eq!(failure.message, "sysctl vm.swappiness: written, but it reads back as `1` instead of `4096 5`");
    }
}
