//! Runs one invocation by itself, read by read and change by change: for tasks that delegate, and whatever
//! else does not go through a host's window.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::connect::Identity;
use crate::connect::shell::Request;
use crate::host::port::Waiting;
use crate::host::{Applied, Change, Failure, Host, Port, SlotId};

use super::event::TaskInfo;
use super::exchange::{Verdict, change_requests, end_of, is_answered, judge, question_request, step_failure};
use super::lane::{Lane, State};
use super::perform::{Call, Ended, perform};
use super::recorder::{ChangeEnd, Intent, Recorder};

/// What of an invocation a recorder is told with its changes.
pub struct Record<'a> {
    pub recorder: &'a dyn Recorder,
    pub task: Arc<TaskInfo>,
    /// The label of its item.
    pub item: Option<String>,
    pub no_log: bool,
}

impl Record<'_> {
    fn intent(&self, lane: &Lane, port: &Port, identity: &Arc<Identity>, change: &Arc<Change>) -> Intent {
        Intent {
            host: lane.target.name.as_str().into(),
            task: Arc::clone(&self.task),
            item: self.item.clone(),
            no_log: self.no_log,
            identity: Arc::clone(identity),
            before: port.known(identity, &change.effects),
            change: Arc::clone(change),
        }
    }
}

/// Runs a call on a lane, holding it from the first read to the last change. What a run in check mode recorded for the
/// host before is seen, and what it records now is kept.
pub async fn run_alone(call: Arc<Call>, lane: &Lane, record: Option<Record<'_>>, check_run: bool) -> Ended {
    let port = Port::new(lane.target.name.as_str());
    if check_run {
        for (identity, change) in lane.recorded_behind(0) {
            port.take_in(&identity, &change, true);
        }
    }
    let slot = SlotId(0);
    let host = Host::new(Arc::clone(&port), slot, Arc::clone(&call.identity), call.settings.check);
    let mut state = lane.lock().await;
    let mut future = pin!(perform(call, host));
    loop {
        let ended = poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if port.has_questions() || port.is_waiting(slot) => Poll::Ready(None),
            // it waits for time to pass, or for something of the controller
            Poll::Pending => Poll::Pending,
        })
        .await;
        if let Some(ended) = ended {
            return ended;
        }
        if let Err(failure) = serve(&port, slot, lane, &mut state, record.as_ref(), check_run).await {
            return Ended::Module(Err(failure));
        }
    }
}

/// Answers what the invocation asks, or makes the change that it waits for.
async fn serve(
    port: &Port,
    slot: SlotId,
    lane: &Lane,
    state: &mut State,
    record: Option<&Record<'_>>,
    check_run: bool,
) -> Result<(), Failure> {
    let questions = port.take_questions();
    let mut rest = questions.as_slice();
    while let Some((identity, _)) = rest.first() {
        let count = rest.iter().take_while(|question| question.0 == *identity).count();
        let (group, others) = rest.split_at(count);
        let requests: Vec<Request> = group.iter().map(question_request).collect();
        let responses = lane.run_locked(state, identity, &requests).await?;
        for (question, response) in group.iter().zip(responses) {
            port.answer(question.clone(), response);
        }
        rest = others;
    }
    match port.take_waiting(slot) {
        None => {}
        Some(Waiting::Turn) => {
            port.forget_all();
            port.resolve(slot, Ok(Applied::default()));
        }
        Some(Waiting::Renewal { identity, text, limit }) => {
            let answer = lane.renew_locked(state, &identity, text, limit).await;
            let applied = answer.map(|response| Applied { responses: vec![response], check: false });
            port.resolve(slot, applied.map_err(Failure::from));
        }
        Some(Waiting::Change { identity, change, check: true }) => {
            let change = Arc::new(change);
            if let Some(record) = record.filter(|_| change.alters()) {
                record.recorder.planned(record.intent(lane, port, &identity, &change));
            }
            port.take_in(&identity, &change, true);
            if check_run {
                lane.note_recorded(&identity, &change);
            }
            port.resolve(slot, Ok(Applied { check: true, ..Applied::default() }));
        }
        Some(Waiting::Change { identity, change, check: false }) => {
            let change = Arc::new(change);
            let mut number = None;
            if let Some(record) = record.filter(|_| change.alters()) {
                let intent = record.intent(lane, port, &identity, &change);
                let numbers =
                    record.recorder.begin(vec![intent]).await.map_err(|error| {
                        Failure::new(format!("{}: nothing was changed, since {error}", change.what))
                    })?;
                number = numbers.first().copied();
            }
            let end = |end: ChangeEnd| {
                if let (Some(record), Some(number)) = (record, number) {
                    record.recorder.end(number, end);
                }
            };
            let responses = match lane.run_locked(state, &identity, &change_requests(&change)).await {
                Ok(responses) => responses,
                Err(error) => {
                    end(if is_answered(&change, &error.answers) {
                        end_of(&change, &error.answers)
                    } else {
                        ChangeEnd::Unknown
                    });
                    return Err(error.into());
                }
            };
            end(end_of(&change, &responses));
            lane.note_foreign_change();
            port.take_in(&identity, &change, false);
            if !change.certain {
                port.resolve(slot, Ok(Applied { responses, check: false }));
                return Ok(());
            }
            match judge(&change, &responses) {
                Verdict::Done => port.resolve(slot, Ok(Applied::default())),
                Verdict::DoneByAlias => {
                    port.forget_all();
                    port.resolve(slot, Ok(Applied::default()));
                }
                Verdict::Failed(index) => return Err(step_failure(&change, index, &responses)),
                Verdict::NotRun => return Err(step_failure(&change, 0, &responses)),
            }
        }
    }
    Ok(())
}
