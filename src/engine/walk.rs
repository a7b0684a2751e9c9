//! Takes one host through a play: keeps the window full, sends what is asked in batches, lets changes
//! through in order, and hands results on in the order of the playbook.

use std::collections::{HashSet, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use crate::connect::{Identity, Transport};
use crate::host::port::Waiting;
use crate::host::{Applied, Change, Failure, FailureKind, Host, Port, SlotId};
use crate::inventory::HostId;
use crate::playbook::{Item, Task};
use crate::value::{Interruption, Map};
use crate::vars::{Delta, HostView, Runtime, Stamp, TaskScope};

use super::conclude::{conclude, unknown};
use super::cursor::Cursor;
use super::event::Event;
use super::exchange::Staged;
use super::handler::Notified;
use super::lane::Lane;
use super::perform::Ended;
use super::play::PlayRun;
use super::recorder::Intent;
use super::result::TaskResult;
use super::send::Renewal;
use super::window::{Growth, Part, Slot, SlotState, TaskRun};

/// How many bytes of changes are gathered before they are sent.
const STAGED_BYTES: usize = 256 * 1024;

/// How many changes are gathered before they are sent.
const STAGED_CHANGES: usize = 200;

/// How a host came out of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostEnd {
    Done,
    Failed,
    Unreachable,
    /// `meta: end_play` and its like ask it for all hosts.
    EndPlay,
}

/// Why the window cannot grow now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blocked {
    /// A value is not there yet, or a loop must end first: until something in the window has ended.
    Value,
    /// The next task must be alone: until the window is empty.
    Alone,
    /// Until all hosts have reached this place.
    Barrier(Vec<u32>),
}

/// See the module's description.
pub struct Walker {
    pub(super) play: Arc<PlayRun>,
    pub(super) host: HostId,
    pub(super) view: Arc<HostView>,
    pub(super) play_files: Arc<Map>,
    pub(super) lane: Arc<Lane>,
    pub(super) port: Arc<Port>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) window: VecDeque<Slot>,
    pub(super) growth: Growth,
    pub(super) blocked: Option<Blocked>,
    /// A task that must run by itself, now that the window is empty.
    pub(super) alone: Option<(Arc<Task>, Cursor)>,
    /// The play has no further task for this host.
    pub(super) at_end: bool,
    pub(super) notified: Notified,
    /// How many failures of others, that are failures of all, this host has followed.
    pub(super) followed: usize,
    /// The way on from the last result that was handed on.
    pub(super) last_after: Cursor,
    /// Where this host failed last.
    pub(super) failed_at: Vec<u32>,
    /// The roles of which a task ran, by identity.
    pub(super) ran_roles: HashSet<String>,
    pub(super) staged: Vec<Staged>,
    next_slot: u64,
    /// The lane's count of changes by others, when last looked at.
    foreign: u64,
    /// How many of the lane's recorded changes its own answers know of.
    recorded: usize,
    /// The fleet's count of variables given by other hosts, when last looked at.
    gifts: u64,
    announced: Option<Vec<u32>>,
    /// The place of the last result that was handed on.
    pub(super) committed: Vec<u32>,
    /// `meta: reset_connection` was met; done before anything else is sent.
    pub(super) resets_connection: bool,
    /// A new connection that an invocation waits for.
    renewal: Option<Renewal>,
    pub(super) end: HostEnd,
}

impl Walker {
    pub fn new(
        play: Arc<PlayRun>,
        host: HostId,
        view: Arc<HostView>,
        play_files: Arc<Map>,
        lane: Arc<Lane>,
        sections: Vec<Arc<Vec<Item>>>,
    ) -> Walker {
        let runtime = play.run.fleet.settled(host);
        let handlers = Arc::clone(&play.play.handlers);
        Walker {
            port: Port::new(Arc::clone(&view.name)),
            foreign: lane.foreign_changes(),
            recorded: 0,
            play,
            host,
            view,
            play_files,
            lane,
            runtime,
            window: VecDeque::new(),
            last_after: Cursor::new(sections.clone()),
            growth: Growth {
                cursor: Cursor::new(sections),
                rest: None,
                handlers,
                flushed: None,
                ended_roles: Arc::default(),
            },
            followed: 0,
            failed_at: Vec::new(),
            ran_roles: HashSet::new(),
            blocked: None,
            alone: None,
            at_end: false,
            notified: Notified::default(),
            staged: Vec::new(),
            next_slot: 0,
            gifts: 0,
            announced: None,
            committed: Vec::new(),
            resets_connection: false,
            renewal: None,
            end: HostEnd::Done,
        }
    }

    /// Walks to the end of the play.
    pub async fn walk(mut self) -> HostEnd {
        loop {
            if self.play.course.is_stopped() && self.end == HostEnd::Done && !self.finished() {
                self.drop_from(0);
                self.growth.cursor.end();
                self.at_end = true;
                break;
            }
            if poll_fn(|context| Poll::Ready(self.step(context))).await {
                continue;
            }
            if std::mem::take(&mut self.resets_connection) {
                self.lane.reset().await;
                continue;
            }
            if let Some(renewal) = self.renewal.take() {
                self.renew(renewal).await;
                continue;
            }
            if let Some((task, after)) = self.alone.take() {
                self.run_by_itself(task, after).await;
                continue;
            }
            if !self.staged.is_empty() || self.port.has_questions() {
                self.exchange().await;
                continue;
            }
            if self.finished() {
                if self.play.strict && self.end == HostEnd::Done {
                    // the others may still fail it
                    let end = vec![u32::MAX];
                    self.reach(end.clone());
                    self.wait_for_all_or_fatal(&end).await;
                    if self.follow_fatal() {
                        continue;
                    }
                }
                break;
            }
            self.wait().await;
        }
        if let Some(position) = self.play.course.end(self.host) {
            self.play.run.tell(Event::Passed(self.play.stamp(position)));
        }
        self.end
    }

    fn finished(&self) -> bool {
        self.window.is_empty() && self.at_end && self.alone.is_none()
    }

    /// Waits for whatever is outside of this host's wire: time, or other hosts.
    async fn wait(&mut self) {
        let course = Arc::clone(&self.play.course);
        let changed = course.changed();
        let mut changed = std::pin::pin!(changed);
        changed.as_mut().enable();
        // what changed before the future was enabled would be missed, so look once more
        if poll_fn(|context| Poll::Ready(self.step(context))).await {
            return;
        }
        if course.is_stopped() {
            return;
        }
        if matches!(&self.blocked, Some(Blocked::Barrier(position)) if course.all_reached(position)) {
            self.blocked = None;
            return;
        }
        let activity = self.port.activity();
        poll_fn(|context| {
            if self.poll_slots(context) || self.port.activity() != activity {
                return Poll::Ready(());
            }
            changed.as_mut().poll(context)
        })
        .await;
        if matches!(self.blocked, Some(Blocked::Barrier(_))) {
            self.blocked = None;
        }
    }

    /// Does all that can be done without waiting; true if there was anything.
    fn step(&mut self, context: &mut TaskContext<'_>) -> bool {
        self.notice_foreign_changes();
        self.notice_recorded_changes();
        self.take_gifts();
        let mut progress = self.poll_slots(context);
        progress |= self.gather_loops();
        progress |= self.commit();
        progress |= self.extend();
        progress |= self.let_change();
        self.announce();
        progress |= self.commit();
        progress
    }

    /// Somebody else changed this host: what was read may be stale.
    fn notice_foreign_changes(&mut self) {
        let now = self.lane.foreign_changes();
        if now != self.foreign {
            self.foreign = now;
            self.port.forget_all();
            // what is on its way cannot be called back; everything behind it is decided anew
            let first = self.window.iter().rposition(|slot| slot.unconfirmed).map_or(0, |last| last + 1);
            self.drop_from(first);
        }
    }

    /// Check mode: what others recorded for this host is as good as done.
    fn notice_recorded_changes(&mut self) {
        for (identity, change) in self.lane.recorded_behind(self.recorded) {
            self.recorded += 1;
            let touched = self.port.take_in(&identity, &change, true);
            if let Some(first) = (0..self.window.len()).find(|index| touched.contains(&self.window[*index].id)) {
                self.drop_from(first);
            }
        }
    }

    /// Takes over variables that tasks of other hosts set for this one.
    fn take_gifts(&mut self) {
        let now = self.play.run.fleet.gifts();
        if now == self.gifts {
            return;
        }
        self.gifts = now;
        let given = self.play.run.fleet.take_given(self.host);
        for additions in &given {
            Arc::make_mut(&mut self.runtime).apply(additions);
        }
    }

    pub(super) fn new_slot_id(&mut self) -> SlotId {
        self.next_slot += 1;
        SlotId(self.next_slot)
    }

    /// Lets running invocations go on; true if one ended.
    fn poll_slots(&mut self, context: &mut TaskContext<'_>) -> bool {
        let mut progress = false;
        let mut index = 0;
        while index < self.window.len() {
            let ended = match &mut self.window[index].state {
                SlotState::Running(future) => match future.as_mut().poll(context) {
                    Poll::Ready(ended) => Some(ended),
                    Poll::Pending => None,
                },
                _ => None,
            };
            if let Some(ended) = ended {
                progress = true;
                self.end_slot(index, ended);
            }
            index += 1;
        }
        progress
    }

    /// Concludes an invocation whose module has returned.
    fn end_slot(&mut self, index: usize, ended: Ended) {
        let slot = &self.window[index];
        let Some(call) = slot.call.clone() else { return };
        let concluded = match self.with_real_change(ended) {
            Ended::Task(concluded) => concluded,
            Ended::Module(Err(Failure { kind: FailureKind::Interrupted(Interruption::Unknown(reason)), .. })) => {
                Ok(unknown(&call, &reason))
            }
            Ended::Module(ended) => conclude(&call, ended),
        };
        match concluded {
            Ok(result) => self.settle_slot(index, result),
            Err(interruption) => {
                let alone = index == 0;
                let position = slot.run.stamp.position.clone();
                match interruption {
                    Interruption::Barrier if alone && !slot.run.granted => {
                        self.drop_from(0);
                        self.blocked = Some(Blocked::Barrier(position));
                    }
                    _ if !alone => {
                        self.drop_from(index);
                        self.blocked = Some(Blocked::Value);
                    }
                    // it was begun when something before it was under way
                    Interruption::Pending if !slot.begun_first => {
                        self.drop_from(0);
                        self.blocked = None;
                    }
                    other => {
                        let message = format!("a value that this task needs never came to be ({other:?})");
                        self.settle_slot(index, TaskResult::failed(message));
                    }
                }
            }
        }
    }

    /// Gives a slot its result; what it adds is seen by all behind it from now on.
    pub(super) fn settle_slot(&mut self, index: usize, mut result: TaskResult) {
        result = self.with_known_handlers(result, &self.window[index].run.task);
        let slot = &mut self.window[index];
        self.port.take_back(slot.id);
        if slot.holds {
            self.port.forget_all();
        }
        if let Part::Item(item) = slot.part {
            let map = Arc::make_mut(&mut result.result);
            add_item(map, &slot.run, item);
            // a loop is registered as a whole
            let additions = Arc::make_mut(&mut result.additions);
            if let (Some(call), Some(set_facts)) = (&slot.call, &mut additions.set_facts)
                && let Some(register) = &call.register
            {
                set_facts.shift_remove(register.as_str());
            }
            slot.run.store(item, result.clone());
        }
        slot.delta = Arc::new(Delta::Known(Arc::clone(&result.additions)));
        slot.state = SlotState::Ended(result);
        if self.blocked == Some(Blocked::Value) {
            self.blocked = None;
        }
    }

    /// Ends the results of loops whose items have all ended.
    fn gather_loops(&mut self) -> bool {
        let mut progress = false;
        for index in 0..self.window.len() {
            if !matches!(self.window[index].state, SlotState::Gathering) {
                continue;
            }
            let run = Arc::clone(&self.window[index].run);
            if !self.window.iter().take(index).all(|slot| !Arc::ptr_eq(&slot.run, &run) || slot.is_ended()) {
                continue;
            }
            if let Some(items) = run.item_results() {
                let register = run.task.register.as_ref().map(|written| written.value.to_text().into_owned());
                let result = super::conclude::whole_loop(register.as_deref(), &items);
                self.settle_slot(index, result);
                progress = true;
            }
        }
        progress
    }

    /// Lets the first invocation that is not done make its change, or have its turn.
    fn let_change(&mut self) -> bool {
        let Some(index) = self.window.iter().position(|slot| !slot.is_ended()) else { return false };
        if self.window.iter().take(index).any(Slot::is_fatal) {
            return false;
        }
        let slot = &self.window[index];
        let id = slot.id;
        if !self.port.is_waiting(id) {
            return false;
        }
        if self.play.strict {
            let position = &slot.run.stamp.position;
            if index > 0
                || !self.play.course.all_reached(position)
                || self.must_follow(position)
                || !self.has_turn(position)
            {
                return false;
            }
        }
        let full = self.staged.len() >= STAGED_CHANGES
            || self.staged.iter().map(|staged| size(&staged.change)).sum::<usize>() > STAGED_BYTES;
        if full || (self.port.waits_for_turn(id) && self.window.iter().any(|slot| slot.unconfirmed)) {
            return false;
        }
        match self.port.take_waiting(id) {
            None => false,
            Some(Waiting::Turn) => {
                self.drop_from(index + 1);
                self.port.forget_all();
                self.window[index].holds = true;
                self.port.resolve(id, Ok(Applied::default()));
                true
            }
            Some(Waiting::Renewal { identity, text, limit }) => {
                self.renewal = Some(Renewal { slot: id, identity, text, limit });
                true
            }
            Some(Waiting::Change { identity, change, check: true }) => {
                let change = Arc::new(change);
                if let (Some(recorder), Some(intent)) =
                    (self.play.run.recorder(), self.intent(&self.window[index], &identity, &change))
                {
                    recorder.planned(intent);
                }
                if !self.play.run.options.check {
                    self.drop_from(index + 1);
                    self.window[index].holds = true;
                    self.port.imagine(id);
                }
                if self.play.run.options.check {
                    // if somebody else was faster, both are taken in at the next step
                    let known = self.lane.note_recorded(&identity, &change);
                    self.recorded += usize::from(known == self.recorded);
                }
                let touched = self.port.take_in(&identity, &change, true);
                self.drop_touched(index, &touched);
                self.port.resolve(id, Ok(Applied { check: true, ..Applied::default() }));
                true
            }
            Some(Waiting::Change { identity, change, check: false }) => {
                let change = Arc::new(change);
                let intent = self.intent(&self.window[index], &identity, &change);
                let touched = self.port.take_in(&identity, &change, false);
                self.drop_touched(index, &touched);
                let slot = &mut self.window[index];
                slot.unconfirmed = true;
                let retries = slot.call.as_ref().is_some_and(|call| call.retry.is_some());
                let ahead = change.certain && self.play.run.options.window > 1 && !self.play.strict && !retries;
                self.staged.push(Staged { slot: id, identity, change, intent, number: None });
                if ahead {
                    self.port.resolve(id, Ok(Applied::default()));
                }
                ahead
            }
        }
    }

    /// What a recorder is told of a change of a slot; `None` if there is no recorder, or nothing that is altered.
    fn intent(&self, slot: &Slot, identity: &Arc<Identity>, change: &Arc<Change>) -> Option<Intent> {
        self.play.run.recorder().filter(|_| change.alters())?;
        Some(Intent {
            host: self.lane.target.name.as_str().into(),
            task: Arc::clone(&slot.run.info),
            item: slot.label.clone(),
            no_log: slot.call.as_ref().is_none_or(|call| call.settings.no_log),
            identity: Arc::clone(identity),
            before: self.port.known(identity, &change.effects),
            change: Arc::clone(change),
        })
    }

    /// Drops the first invocation behind `index` that used an answer which is forgotten, and all behind it.
    fn drop_touched(&mut self, index: usize, touched: &[SlotId]) {
        let first = (index + 1..self.window.len()).find(|behind| touched.contains(&self.window[*behind].id));
        if let Some(first) = first {
            self.drop_from(first);
        }
    }

    /// Drops all invocations from `index` on; the window grows again from there.
    pub(super) fn drop_from(&mut self, index: usize) {
        if index >= self.window.len() {
            return;
        }
        let dropped = self.window.split_off(index);
        for slot in &dropped {
            self.port.forget(slot.id);
        }
        if let Some(first) = dropped.front() {
            self.growth = first.grown_from.clone();
        }
        self.at_end = false;
        self.blocked = None;
        self.alone = None;
    }

    /// Tells the others how far this host has come.
    pub(super) fn announce(&mut self) {
        let position = match (self.window.front(), &self.blocked) {
            (Some(slot), _) => slot.run.stamp.position.clone(),
            (None, Some(Blocked::Barrier(position))) => position.clone(),
            _ => return,
        };
        self.reach(position);
    }

    pub(super) fn reach(&mut self, position: Vec<u32>) {
        if self.announced.as_ref() == Some(&position) {
            return;
        }
        self.announced = Some(position.clone());
        if let Some(last) = self.play.course.reach(self.host, position) {
            self.play.run.tell(Event::Passed(self.play.stamp(last)));
        }
    }

    /// True if the host is the controller itself, and what is before place `upto` of the window may still change its files.
    pub(super) fn controller_changes(&self, upto: usize) -> bool {
        let is_under_way = |slot: &Slot| slot.unconfirmed || !slot.is_ended();
        self.lane.target.transport == Transport::Local && self.window.iter().take(upto).any(is_under_way)
    }

    /// The variables as the invocation at place `upto` of the window sees them.
    pub(super) fn scope(&self, task: &Arc<Task>, stamp: &Stamp, granted: bool, local: Map, upto: usize) -> TaskScope {
        let has_any = |delta: &Delta| match delta {
            Delta::Pending(pending) => pending.any || pending.facts || !pending.names.is_empty(),
            Delta::Known(additions) => !additions.is_empty(),
        };
        TaskScope {
            run: Arc::clone(&self.play.run.vars),
            play: Arc::clone(&self.play.vars),
            play_files: Arc::clone(&self.play_files),
            host: Arc::clone(&self.view),
            runtime: Arc::clone(&self.runtime),
            ahead: self
                .window
                .iter()
                .take(upto)
                .map(|slot| &slot.delta)
                .filter(|delta| has_any(delta))
                .cloned()
                .collect(),
            task: Some(Arc::clone(task)),
            local,
            neighbours: self.play.neighbours(self.host, stamp.clone(), granted),
            controller_changes: self.controller_changes(upto),
        }
    }

    /// A handle on the host for an invocation of its window.
    pub(super) fn host_handle(&self, slot: SlotId, call: &super::perform::Call) -> Host {
        Host::new(Arc::clone(&self.port), slot, Arc::clone(&call.identity), call.settings.check)
    }
}

/// Says in an item's result which item it was.
pub(super) fn add_item(map: &mut Map, run: &TaskRun, item: usize) {
    if let (Some(items), Some(looping)) = (&run.items, &run.looping) {
        let variables = super::looping::item_variables(looping, items, item);
        map.extend(variables.into_iter().map(|(name, value)| (name, value.into_data())));
    }
}

fn size(change: &crate::host::Change) -> usize {
    change.steps.iter().map(|step| step.script.len() + step.stdin.as_ref().map_or(0, Vec::len)).sum()
}
