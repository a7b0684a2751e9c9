//! One round trip of a walk: the changes that are ready and the questions that wait go out, the answers come in.

use std::sync::Arc;
use std::time::Duration;

use crate::connect::shell::{Request, Response};
use crate::connect::{ConnectError, ConnectErrorKind, Identity};
use crate::error::Error;
use crate::host::port::Question;
use crate::host::{Applied, Failure, SlotId};

use super::conclude::conclude;
use super::exchange::{Staged, Verdict, change_requests, end_of, is_answered, judge, question_request, step_failure};
use super::recorder::{ChangeEnd, Recorder};
use super::result::{Status, TaskResult};
use super::walk::Walker;

/// Shell code that an invocation wants to be run on a new connection.
pub(super) struct Renewal {
    pub slot: SlotId,
    pub identity: Arc<Identity>,
    pub text: String,
    pub limit: Duration,
}

/// What is sent to one shell at once: changes first, then questions.
struct Load {
    identity: Arc<Identity>,
    changes: Vec<Staged>,
    questions: Vec<Question>,
}

/// Groups changes and questions by the shell they go to, the changes in their order.
fn loads(staged: Vec<Staged>, questions: Vec<Question>) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for change in staged {
        match loads.last_mut() {
            Some(load) if load.identity == change.identity => load.changes.push(change),
            _ => loads.push(Load {
                identity: Arc::clone(&change.identity),
                changes: vec![change],
                questions: Vec::new(),
            }),
        }
    }
    // a question may only go with the last changes or behind them
    let behind = loads.len().saturating_sub(1);
    for question in questions {
        match loads.iter_mut().skip(behind).find(|load| load.identity == question.0) {
            Some(load) => load.questions.push(question),
            None => {
                loads.push(Load { identity: Arc::clone(&question.0), changes: Vec::new(), questions: vec![question] })
            }
        }
    }
    loads
}

/// Has the changes of a load kept before they are sent.
async fn record(recorder: Arc<dyn Recorder>, load: &mut Load) -> Result<(), Error> {
    let mut kept: Vec<&mut Staged> = load.changes.iter_mut().filter(|staged| staged.intent.is_some()).collect();
    let intents: Vec<_> = kept.iter_mut().filter_map(|staged| staged.intent.take()).collect();
    if intents.is_empty() {
        return Ok(());
    }
    let numbers = recorder.begin(intents).await?;
    for (staged, number) in kept.into_iter().zip(numbers) {
        staged.number = Some(number);
    }
    Ok(())
}

impl Walker {
    /// Sends what is ready and takes in what comes back.
    pub(super) async fn exchange(&mut self) {
        let staged = std::mem::take(&mut self.staged);
        let questions = self.port.take_questions();
        for mut load in loads(staged, questions) {
            let recorder = self.play.run.recorder().cloned();
            if let Some(recorder) = recorder
                && let Err(error) = record(recorder, &mut load).await
            {
                self.could_not_record(&load, &error);
                return;
            }
            let requests: Vec<Request> = load
                .changes
                .iter()
                .flat_map(|staged| change_requests(&staged.change))
                .chain(load.questions.iter().map(question_request))
                .collect();
            let responses = match self.lane.run(&load.identity, &requests).await {
                Ok(responses) => responses,
                Err(error) => {
                    self.connection_broke(load, &error);
                    return;
                }
            };
            let count: usize = load.changes.iter().map(|staged| staged.change.steps.len()).sum();
            let (made, answered) = responses.split_at(count.min(responses.len()));
            let chain_held = self.take_in_changes(load.changes, made);
            for (question, response) in load.questions.into_iter().zip(answered) {
                self.port.answer(question, response.clone());
            }
            if !chain_held {
                return;
            }
        }
    }

    /// Tells the recorder what became of a change.
    fn ended(&self, staged: &Staged, end: impl FnOnce() -> ChangeEnd) {
        if let (Some(recorder), Some(number)) = (self.play.run.recorder(), staged.number) {
            recorder.end(number, end());
        }
    }

    /// What cannot be recorded is not made: the first task of it fails, all behind it is decided anew.
    fn could_not_record(&mut self, load: &Load, error: &Error) {
        let Some(first) = load.changes.first() else { return };
        let Some(index) = self.window.iter().position(|slot| slot.id == first.slot) else { return };
        self.window[index].unconfirmed = false;
        let failure = Failure::new(format!("{}: nothing was changed, since {error}", first.change.what));
        self.change_failed(index, first.slot, failure);
    }

    /// Runs an invocation's shell code on a new connection.
    pub(super) async fn renew(&mut self, renewal: Renewal) {
        let Renewal { slot, identity, text, limit } = renewal;
        let lane = Arc::clone(&self.lane);
        let mut state = lane.lock().await;
        let answer = lane.renew_locked(&mut state, &identity, text, limit).await;
        let applied = answer.map(|response| Applied { responses: vec![response], check: false });
        self.port.resolve(slot, applied.map_err(Failure::from));
    }

    /// Takes in the answers to changes; false if the rest of what was decided must be decided anew.
    fn take_in_changes(&mut self, changes: Vec<Staged>, responses: &[Response]) -> bool {
        let mut rest = responses;
        for staged in &changes {
            let (own, others) = rest.split_at(staged.change.steps.len().min(rest.len()));
            rest = others;
            self.ended(staged, || end_of(&staged.change, own));
        }
        let mut rest = responses;
        for staged in changes {
            let (own, others) = rest.split_at(staged.change.steps.len().min(rest.len()));
            rest = others;
            let Some(index) = self.window.iter().position(|slot| slot.id == staged.slot) else { continue };
            self.window[index].unconfirmed = false;
            if !staged.change.certain {
                self.port.resolve(staged.slot, Ok(Applied { responses: own.to_vec(), check: false }));
                continue;
            }
            let waits = !self.window[index].is_ended();
            match judge(&staged.change, own) {
                Verdict::Done if waits => self.port.resolve(staged.slot, Ok(Applied::default())),
                Verdict::Done => {}
                Verdict::DoneByAlias => {
                    if waits {
                        self.port.resolve(staged.slot, Ok(Applied::default()));
                    }
                    self.port.forget_all();
                    self.drop_from(index + 1);
                    return false;
                }
                Verdict::Failed(step) => {
                    let failure = step_failure(&staged.change, step, own);
                    self.change_failed(index, staged.slot, failure);
                    return false;
                }
                // its predecessor failed, and has dropped it
                Verdict::NotRun => {
                    self.drop_from(index);
                    return false;
                }
            }
        }
        true
    }

    /// A batch was not answered to its end: what was answered holds, the first task behind it ends there.
    fn connection_broke(&mut self, mut load: Load, error: &ConnectError) {
        let mut steps = 0;
        let answered = load.changes.iter().take_while(|staged| {
            let own = error.answers.get(steps..).unwrap_or_default();
            let own = &own[..staged.change.steps.len().min(own.len())];
            steps += own.len();
            is_answered(&staged.change, own)
        });
        let answered = answered.count();
        let unknown = load.changes.split_off(answered);
        let known = std::mem::replace(&mut load.changes, unknown);
        if !self.take_in_changes(known, &error.answers) {
            return;
        }
        if answered > 0 && load.changes.is_empty() {
            // only reads are missing: those who want them ask again, and hear that the host is lost
            self.port.forget_all();
            return;
        }
        for staged in &load.changes {
            self.ended(staged, || ChangeEnd::Unknown);
        }
        for slot in &mut self.window {
            slot.unconfirmed |= load.changes.iter().any(|staged| staged.slot == slot.id);
        }
        self.could_not_ask(&load, error);
    }

    /// A change that was counted on did not come about: its task fails, all behind it is decided anew.
    fn change_failed(&mut self, index: usize, slot: SlotId, failure: Failure) {
        self.port.forget_all();
        self.drop_from(index + 1);
        let Some(call) = self.window[index].call.clone() else { return };
        if !self.window[index].is_ended() {
            // the module still waits, and concludes for itself
            self.port.resolve(slot, Err(failure));
            return;
        }
        let result = conclude(&call, Err(failure))
            .unwrap_or_else(|interruption| TaskResult::failed(format!("{interruption:?}")));
        self.settle_slot(index, result);
    }

    /// The host, or the identity, could not be reached: the first task that needed it ends there.
    fn could_not_ask(&mut self, load: &Load, error: &ConnectError) {
        self.port.forget_all();
        let unconfirmed = self.window.iter().position(|slot| slot.unconfirmed);
        let asking = self
            .window
            .iter()
            .position(|slot| !slot.is_ended() && slot.call.as_ref().is_some_and(|call| call.identity == load.identity));
        let waiting = self.window.iter().position(|slot| !slot.is_ended());
        let Some(index) = unconfirmed.or(asking).or(waiting) else { return };
        self.drop_from(index + 1);
        for slot in &mut self.window {
            slot.unconfirmed = false;
        }
        let ignore = self.window[index].call.as_ref().map(|call| (call.ignore_errors, call.ignore_unreachable));
        let mut result = match error.kind {
            ConnectErrorKind::Unreachable => TaskResult::unreachable(&error.message),
            ConnectErrorKind::Become => TaskResult::failed(&error.message),
        };
        if let Some((ignore_errors, ignore_unreachable)) = ignore {
            result.ignored = match result.status {
                Status::Unreachable => ignore_unreachable,
                _ => ignore_errors,
            };
        }
        let slot = self.window[index].id;
        self.port.forget(slot);
        self.settle_slot(index, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Become;
    use crate::host::{Change, Footprint, Query};

    #[test]
    fn questions_never_go_before_the_changes_that_were_decided_first() {
        let login = Arc::new(Identity::default());
        let root = Arc::new(Identity {
            become_as: Some(Become {
                method: "sudo".into(),
                user: "root".into(),
                password: None,
                exe: None,
                flags: None,
            }),
        });
        let staged = |slot: u64, identity: &Arc<Identity>| Staged {
            slot: SlotId(slot),
            identity: Arc::clone(identity),
            change: Arc::new(Change::certain("x", Footprint::nothing())),
            intent: None,
            number: None,
        };
        let question = |identity: &Arc<Identity>| (Arc::clone(identity), Query::Line("/proc/uptime".into()));
        let shape = |loads: &[Load]| -> Vec<(bool, usize, usize)> {
            loads.iter().map(|load| (load.identity == root, load.changes.len(), load.questions.len())).collect()
        };
        let grouped =
            loads(vec![staged(1, &root), staged(2, &root), staged(3, &login)], vec![question(&root), question(&login)]);
        assert_eq!(shape(&grouped), [(true, 2, 0), (false, 1, 1), (true, 0, 1)]);
        let grouped = loads(vec![staged(1, &root)], vec![question(&root), question(&login)]);
        assert_eq!(shape(&grouped), [(true, 1, 1), (false, 0, 1)]);
        assert_eq!(shape(&loads(vec![], vec![question(&root)])), [(true, 0, 1)]);
    }
}
