//! The meeting place of the modules at work on one host and the engine that drives them.
//!
//! Modules ask and wait; the engine takes what was asked, sends it in one batch, brings the answers,
//! and lets changes through one after the other. Nothing here waits or sends by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use indexmap::IndexSet;

use crate::connect::Identity;
use crate::connect::shell::Response;
use crate::value::Interruption;

use super::change::{Applied, Change};
use super::failure::Failure;
use super::footprint::Footprint;
use super::query::Query;

/// One invocation of a module in a host's window. An invocation that is started again gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u64);

/// A question and who asks it: another user may be answered otherwise.
pub type Question = (Arc<Identity>, Query);

/// What an invocation waits for besides answers.
#[derive(Debug)]
pub enum Waiting {
    /// To make this change, as this user; only recorded if `check`.
    Change { identity: Arc<Identity>, change: Change, check: bool },
    /// Until all before it is done.
    Turn,
    /// For a new connection, and the answer of this shell code on it, as this user, within this time.
    Renewal { identity: Arc<Identity>, text: String, limit: Duration },
}

/// See the module's description.
pub struct Port {
    name: Arc<str>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answers: HashMap<Question, Arc<Response>>,
    asked: IndexSet<Question>,
    /// What each invocation has been answered, and whether by way of a symbolic link.
    reads: HashMap<SlotId, Vec<(Question, bool)>>,
    waiting: HashMap<SlotId, Waiting>,
    resolved: HashMap<SlotId, Result<Applied, Failure>>,
    /// What changes did to what can be known without asking, oldest first.
    history: Vec<Trace>,
    /// Whose recorded changes nobody else is to see, and how long the history was before them.
    imagined: Option<(SlotId, usize)>,
    /// Who waits for an answer: a join of many reads polls only those that were woken.
    sleepers: Vec<Waker>,
    /// Counts what invocations asked or waited for, so that a waiting engine notices.
    activity: u64,
}

/// What a change left behind, as far as later reads are concerned.
enum Trace {
    /// There is nothing below this path, which was made or removed just now, but what the same change put there.
    Empty { path: String, but: Vec<String> },
    /// This was altered. With a reason it was altered in check mode only, so the host's answers say nothing of it.
    Touched(Footprint, Option<String>),
}

impl Port {
    pub fn new(name: impl Into<Arc<str>>) -> Arc<Port> {
        Arc::new(Port { name: name.into(), state: Mutex::default() })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A panic of one module must not take the others with it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn poll_read(
        &self,
        slot: SlotId,
        identity: &Arc<Identity>,
        query: &Query,
        waker: &Waker,
    ) -> Poll<Result<Arc<Response>, Failure>> {
        let mut state = self.state();
        let question = (Arc::clone(identity), query.clone());
        if let Some(response) = state.answers.get(&question).cloned() {
            let reads = state.reads.entry(slot).or_default();
            let aliased = response.aliased || reads.iter().any(|(_, aliased)| *aliased);
            reads.push((question, aliased));
            drop(state);
            if aliased {
                // scripts of the same invocation went the same way, though they cannot tell
                self.note_alias(slot);
            }
            return Poll::Ready(Ok(response));
        }
        match state.without_asking(query) {
            Some(Ok(response)) => {
                let response = Arc::new(response);
                state.answers.insert(question.clone(), Arc::clone(&response));
                state.reads.entry(slot).or_default().push((question, false));
                return Poll::Ready(Ok(response));
            }
            Some(Err(reason)) => return Poll::Ready(Err(Failure::interrupted(Interruption::Unknown(reason)))),
            None => {}
        }
        if state.asked.insert(question) {
            state.activity += 1;
        }
        state.sleepers.push(waker.clone());
        Poll::Pending
    }

    pub(super) fn poll_change(
        &self,
        slot: SlotId,
        identity: &Arc<Identity>,
        change: &mut Option<Change>,
        check: bool,
    ) -> Poll<Result<Applied, Failure>> {
        let mut state = self.state();
        if let Some(change) = change.take() {
            state.waiting.insert(slot, Waiting::Change { identity: Arc::clone(identity), change, check });
            state.activity += 1;
            return Poll::Pending;
        }
        state.resolved.remove(&slot).map_or(Poll::Pending, Poll::Ready)
    }

    pub(super) fn poll_turn(&self, slot: SlotId, asked: &mut bool) -> Poll<Result<(), Failure>> {
        let mut state = self.state();
        if !*asked {
            *asked = true;
            state.waiting.insert(slot, Waiting::Turn);
            state.activity += 1;
            return Poll::Pending;
        }
        state.resolved.remove(&slot).map_or(Poll::Pending, |result| Poll::Ready(result.map(|_| ())))
    }

    pub(super) fn poll_renewal(
        &self,
        slot: SlotId,
        renewal: &mut Option<(Arc<Identity>, String, Duration)>,
    ) -> Poll<Result<Applied, Failure>> {
        let mut state = self.state();
        if let Some((identity, text, limit)) = renewal.take() {
            state.waiting.insert(slot, Waiting::Renewal { identity, text, limit });
            state.activity += 1;
            return Poll::Pending;
        }
        state.resolved.remove(&slot).map_or(Poll::Pending, Poll::Ready)
    }

    /// The questions that wait for an answer, in the order they were first asked; they are taken away.
    pub fn take_questions(&self) -> Vec<Question> {
        std::mem::take(&mut self.state().asked).into_iter().collect()
    }

    /// True if a question waits for an answer.
    pub fn has_questions(&self) -> bool {
        !self.state().asked.is_empty()
    }

    /// Brings the answer to a question.
    pub fn answer(&self, question: Question, response: Response) {
        let mut state = self.state();
        state.answers.insert(question, Arc::new(response));
        state.wake();
    }

    /// True if the invocation waits for its turn, with or without a change.
    pub fn is_waiting(&self, slot: SlotId) -> bool {
        self.state().waiting.contains_key(&slot)
    }

    /// True if the invocation waits until all before it is done.
    pub fn waits_for_turn(&self, slot: SlotId) -> bool {
        matches!(self.state().waiting.get(&slot), Some(Waiting::Turn | Waiting::Renewal { .. }))
    }

    /// Takes what the invocation waits for.
    pub fn take_waiting(&self, slot: SlotId) -> Option<Waiting> {
        self.state().waiting.remove(&slot)
    }

    /// Lets a waiting invocation go on.
    pub fn resolve(&self, slot: SlotId, result: Result<Applied, Failure>) {
        self.state().resolved.insert(slot, result);
    }

    /// Notes that what an invocation read depends on more than its footprint says: it went by way of a link.
    pub fn note_alias(&self, slot: SlotId) {
        let mut state = self.state();
        let questions: Vec<Question> = match state.reads.get_mut(&slot) {
            Some(reads) => reads
                .iter_mut()
                .map(|(question, aliased)| {
                    *aliased = true;
                    question.clone()
                })
                .collect(),
            None => return,
        };
        for question in questions {
            if let Some(response) = state.answers.get_mut(&question) {
                Arc::make_mut(response).aliased = true;
            }
        }
    }

    /// Forgets all answers that a change with this footprint may have altered; returns the invocations that
    /// had used one of them, and so must be decided anew.
    pub fn invalidate(&self, footprint: &Footprint) -> Vec<SlotId> {
        let mut state = self.state();
        state.wake();
        let touched = |query: &Query, aliased: bool| {
            if aliased { footprint.touches(&Footprint::Everything) } else { footprint.touches(&query.footprint()) }
        };
        state.answers.retain(|(_, query), response| !touched(query, response.aliased));
        state
            .reads
            .iter()
            .filter(|(_, reads)| reads.iter().any(|((_, query), aliased)| touched(query, *aliased)))
            .map(|(slot, _)| *slot)
            .collect()
    }

    /// Takes in a change that is made, or (`check`) only recorded: forgets the answers that it may have altered, and
    /// puts its effects in their place if they are certain. Returns the invocations that had used a forgotten answer.
    pub fn take_in(&self, identity: &Arc<Identity>, change: &Change, check: bool) -> Vec<SlotId> {
        let touched = self.invalidate(&change.footprint);
        let mut state = self.state();
        let reason = check.then(|| format!("`{}` has not run", change.what));
        state.history.push(Trace::Touched(change.footprint.clone(), reason));
        if change.certain {
            let left: Vec<&str> = change.effects.iter().filter_map(|(query, _)| query.path()).collect();
            state.history.extend(change.empties.iter().map(|path| Trace::Empty {
                path: path.clone(),
                but: left.iter().filter(|left| is_below(left, path)).map(|left| (*left).to_owned()).collect(),
            }));
            for (query, response) in &change.effects {
                state.answers.insert((Arc::clone(identity), query.clone()), Arc::new(response.clone()));
            }
        }
        touched
    }

    /// What the questions of these effects have been answered so far, where they were asked.
    pub fn known(&self, identity: &Arc<Identity>, effects: &[(Query, Response)]) -> Vec<Option<Response>> {
        let state = self.state();
        let answer = |query: &Query| state.answers.get(&(Arc::clone(identity), query.clone()));
        effects.iter().map(|(query, _)| answer(query).map(|response| Response::clone(response))).collect()
    }

    /// Says that what this invocation records from now on is gone when it ends: it alone is in check mode.
    pub fn imagine(&self, slot: SlotId) {
        let mut state = self.state();
        let length = state.history.len();
        state.imagined.get_or_insert((slot, length));
    }

    /// Takes back what this invocation only imagined.
    pub fn take_back(&self, slot: SlotId) {
        let mut state = self.state();
        let Some((_, length)) = state.imagined.take_if(|(imagined, _)| *imagined == slot) else { return };
        for trace in state.history.split_off(length) {
            if let Trace::Touched(footprint, _) = trace {
                state.answers.retain(|(_, query), _| !footprint.touches(&query.footprint()));
            }
        }
    }

    /// How often something was asked or waited for so far.
    pub fn activity(&self) -> u64 {
        self.state().activity
    }

    /// Forgets an invocation that ended or was dropped.
    pub fn forget(&self, slot: SlotId) {
        self.take_back(slot);
        let mut state = self.state();
        state.reads.remove(&slot);
        state.waiting.remove(&slot);
        state.resolved.remove(&slot);
    }

    /// Forgets every answer and question. What check mode cannot know stays unknown.
    pub fn forget_all(&self) {
        let mut state = self.state();
        state.wake();
        state.answers.clear();
        state.asked.clear();
        state.history.retain(|trace| matches!(trace, Trace::Touched(_, Some(_))));
    }
}

impl State {
    /// Lets all who wait for answers look again.
    fn wake(&mut self) {
        self.sleepers.drain(..).for_each(Waker::wake);
    }

    /// The answer to a question that need not be asked, or why it cannot be.
    fn without_asking(&self, query: &Query) -> Option<Result<Response, String>> {
        let footprint = query.footprint();
        for trace in self.history.iter().rev() {
            match trace {
                Trace::Touched(touched, reason) if touched.touches(&footprint) => return reason.clone().map(Err),
                Trace::Touched(..) => {}
                Trace::Empty { path, but } => {
                    let is_left = |asked: &str| but.iter().any(|left| left == asked || is_below(left, asked));
                    if query.path().is_some_and(|asked| is_below(asked, path) && !is_left(asked)) {
                        return Some(Ok(Response::missing()));
                    }
                }
            }
        }
        None
    }
}

/// True if `path` lies below `ancestor`, by a plain way.
fn is_below(path: &str, ancestor: &str) -> bool {
    let rest = path.strip_prefix(ancestor.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/') && !rest.contains("/../") && !rest.ends_with("/.."))
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    #[test]
    fn answers_are_given_once_asked_and_dropped_when_touched() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let query = Query::Content("/etc/a".into());
        assert!(port.poll_read(SlotId(1), &identity, &query, Waker::noop()).is_pending());
        assert!(port.poll_read(SlotId(2), &identity, &query, Waker::noop()).is_pending());
        let questions = port.take_questions();
        assert_eq!(questions.len(), 1, "equal questions are asked once");
        port.answer(questions[0].clone(), Response::output("x"));
        assert!(port.poll_read(SlotId(1), &identity, &query, Waker::noop()).is_ready());
        assert_eq!(port.invalidate(&Footprint::path("/etc/b")), vec![]);
        assert_eq!(port.invalidate(&Footprint::path("/etc/a")), vec![SlotId(1)]);
        assert!(port.poll_read(SlotId(2), &identity, &query, Waker::noop()).is_pending());
    }

    #[test]
    fn in_check_mode_only_predictions_are_known_behind_a_recorded_change() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let content = Query::Content("/etc/a".into());
        let change =
            Change::certain("write /etc/a", Footprint::path("/etc/a")).leaves(content.clone(), Response::output("x"));
        port.take_in(&identity, &change, true);
        assert!(matches!(port.poll_read(SlotId(1), &identity, &content, Waker::noop()), Poll::Ready(Ok(_))));
        let stat = Query::Stat { path: "/etc/a".into(), follow: true };
        assert!(matches!(port.poll_read(SlotId(1), &identity, &stat, Waker::noop()), Poll::Ready(Err(_))));
    }

    #[test]
    fn what_a_single_task_in_check_mode_imagined_is_gone_when_it_ends() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let content = Query::Content("/etc/a".into());
        let change =
            Change::certain("write /etc/a", Footprint::path("/etc/a")).leaves(content.clone(), Response::output("x"));
        port.imagine(SlotId(1));
        port.take_in(&identity, &change, true);
        port.take_in(&identity, &Change::uncertain("command", Footprint::Everything), true);
        port.take_back(SlotId(2));
        let other = Query::Content("/etc/b".into());
        assert!(matches!(port.poll_read(SlotId(1), &identity, &other, Waker::noop()), Poll::Ready(Err(_))));
        port.take_back(SlotId(1));
        assert!(port.poll_read(SlotId(2), &identity, &content, Waker::noop()).is_pending());
        assert!(port.poll_read(SlotId(2), &identity, &other, Waker::noop()).is_pending());
    }

    #[test]
    fn a_directory_made_just_now_is_empty_without_asking() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let ask = |path: &str| port.poll_read(SlotId(1), &identity, &Query::Content(path.into()), Waker::noop());
        let make = Change::certain("directory /d", Footprint::path("/d")).leaves_empty("/d");
        port.take_in(&identity, &make, false);
        assert!(matches!(ask("/d/e"), Poll::Ready(Ok(response)) if response.code == Some(1)));
        assert!(ask("/d/../etc").is_pending());
        assert!(ask("/d").is_pending());
        port.take_in(&identity, &Change::uncertain("command", Footprint::Everything), false);
        assert!(ask("/d/e").is_pending(), "a command may have put something there");
    }

    #[test]
    fn a_join_of_many_reads_goes_on_when_they_are_answered() {
        use crate::host::Host;
        use crate::host::reads::KernelFile;
        use std::task::Context;

        let port = Port::new("kp001");
        let host = Host::new(Arc::clone(&port), SlotId(1), Arc::new(Identity::default()), false);
        let reads = (0..100).map(|number| host.read(KernelFile(format!("/proc/{number}"))));
        let mut all = std::pin::pin!(futures_util::future::try_join_all(reads));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..9 {
            if let Poll::Ready(answers) = all.as_mut().poll(&mut context) {
                assert_eq!(answers.unwrap().len(), 100);
                return;
            }
            for question in port.take_questions() {
                port.answer(question, Response::output("x"));
            }
        }
        panic!("it waits for answers that it has");
    }

    #[test]
    fn what_is_put_into_a_new_directory_at_once_is_there() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let content = |path: &str| Query::Content(path.into());
        let make = Change::certain("write /d/e/f", Footprint::path("/d"))
            .leaves(content("/d/e/f"), Response::output("x"))
            .leaves_empty("/d");
        port.take_in(&identity, &make, false);
        let ask = |query: Query| port.poll_read(SlotId(1), &identity, &query, Waker::noop());
        let stat = |path: &str| Query::Stat { path: path.into(), follow: true };
        assert!(matches!(ask(content("/d/e/f")), Poll::Ready(Ok(response)) if response.success()));
        assert!(ask(stat("/d/e/f")).is_pending() && ask(stat("/d/e")).is_pending());
        assert!(matches!(ask(stat("/d/g")), Poll::Ready(Ok(response)) if !response.success()));
    }

    #[test]
    fn what_is_read_with_a_hard_link_is_dropped_by_any_change() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let content = Query::Content("/etc/a".into());
        let attributes = Query::Attributes { path: "/etc/a".into(), follow: true };
        // a file with two names
        let answer = Response { aliased: true, ..Response::output("f") };
        port.answer((Arc::clone(&identity), attributes.clone()), answer);
        port.answer((Arc::clone(&identity), content.clone()), Response::output("x"));
        for query in [&attributes, &content] {
            assert!(port.poll_read(SlotId(1), &identity, query, Waker::noop()).is_ready());
        }
        assert_eq!(port.invalidate(&Footprint::path("/srv/b")), vec![SlotId(1)]);
        assert!(port.poll_read(SlotId(2), &identity, &content, Waker::noop()).is_pending(), "its content too");
    }

    #[test]
    fn an_answer_by_way_of_a_link_is_dropped_by_any_change() {
        let port = Port::new("kp001");
        let identity = Arc::new(Identity::default());
        let query = Query::Content("/etc/a".into());
        port.answer((Arc::clone(&identity), query.clone()), Response { aliased: true, ..Response::output("x") });
        assert!(port.poll_read(SlotId(1), &identity, &query, Waker::noop()).is_ready());
        assert_eq!(port.invalidate(&Footprint::nothing()), vec![]);
        assert_eq!(port.invalidate(&Footprint::path("/srv/b")), vec![SlotId(1)]);
    }
}
