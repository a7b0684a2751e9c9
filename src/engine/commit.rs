//! Results become final: variables are kept, events are told, and a failure goes where the cursor leads.

use std::sync::Arc;

use crate::inventory::HostId;
use crate::playbook::{Item, Task};
use crate::value::{Map, Value};
use crate::vars::runtime::Additions;
use crate::vars::{Stamp, TaskScope};

use super::cursor::{Cursor, Failed};
use super::event::{Event, HostResult};
use super::handler::HandlerId;
use super::result::{Status, TaskResult};
use super::walk::{Blocked, HostEnd, Walker};
use super::window::{Part, SlotState, TaskRun};

/// True unless it is certain that a task's result may be shown, where its `no_log` was not rendered: the result of a
/// whole loop, or of a task that failed before its module was called.
pub(super) fn may_hide(task: &Task) -> bool {
    task.settings.no_log.as_ref().is_some_and(|written| written.value.to_ansible_bool() != Some(false))
}

/// True if a role whose task came to this has run: a task that was skipped did nothing.
pub(super) fn counts_as_run(result: &TaskResult) -> bool {
    !matches!(result.status, Status::Skipped | Status::Unreachable)
}

/// The name of a task as it is written, without that of its role.
fn own_name(run: &TaskRun) -> &str {
    let prefix = run.task.role.as_ref().map(|role| format!("{} : ", role.full_name())).unwrap_or_default();
    run.info.name.strip_prefix(prefix.as_str()).unwrap_or(&run.info.name)
}

/// A result on its way out.
pub(super) struct Commitment {
    pub(super) run: Arc<TaskRun>,
    pub(super) part: Part,
    pub(super) label: Option<String>,
    pub(super) no_log: bool,
    pub(super) diff: bool,
    pub(super) delegated_to: Option<String>,
}

impl Walker {
    /// Hands on the results at the front of the window that are certain.
    pub(super) fn commit(&mut self) -> bool {
        let mut progress = false;
        while let Some(front) = self.window.front() {
            if self.play.strict {
                let position = front.run.stamp.position.clone();
                if !self.play.course.all_reached(&position) {
                    break;
                }
                if self.follow_fatal_before(Some(position)) {
                    progress = true;
                    continue;
                }
            }
            let Some(front) = self.window.front() else { break };
            if !front.is_ended() || front.unconfirmed {
                break;
            }
            let fatal = front.is_fatal();
            let Some(slot) = self.window.pop_front() else { break };
            self.port.forget(slot.id);
            progress = true;
            if self.blocked.as_ref().is_some_and(|blocked| !matches!(blocked, Blocked::Barrier(_))) {
                self.blocked = None;
            }
            if let Some(flushed) = &slot.flushed {
                self.notified.flush(flushed);
            }
            let SlotState::Ended(result) = slot.state else { break };
            let no_log = match &slot.call {
                Some(call) => call.settings.no_log,
                None => may_hide(&slot.run.task),
            };
            let diff = slot.call.as_ref().is_some_and(|call| call.settings.diff);
            let commitment =
                Commitment { run: slot.run, part: slot.part, label: slot.label, no_log, diff, delegated_to: None };
            if fatal {
                self.drop_from(0);
            }
            self.commit_result(commitment, result);
            self.announce();
        }
        progress
    }

    /// Takes over what a result adds, tells it, and goes where it leads.
    pub(super) fn commit_result(&mut self, commitment: Commitment, result: TaskResult) {
        let Commitment { run, part, .. } = &commitment;
        let is_item = matches!(part, Part::Item(_));
        self.committed = run.stamp.position.clone();
        let settings = &run.task.settings;
        let written = settings.block_vars.iter().chain(&settings.task_vars).chain(&settings.include_params);
        let found = result.additions.set_facts.iter().chain(&result.additions.include_vars);
        self.play.run.warn_of_reserved(written.map(AsRef::as_ref).chain(found));
        self.adopt(&run.stamp, &result.additions);
        if run.task.is_handler && !is_item {
            self.notified.remove(HandlerId::of(&run.task));
        }
        if !result.notify.is_empty() {
            let mut notified = std::mem::take(&mut self.notified);
            self.take_notifications(&mut notified, &run.task, &result.notify);
            self.notified = notified;
        }
        if let Some(role) = &run.task.role
            && counts_as_run(&result)
        {
            self.ran_roles.insert(role.identity.clone());
        }
        let fatal = result.is_fatal() && (!is_item || result.status == Status::Unreachable);
        let after = run.after.clone();
        self.last_after = after.clone();
        let run = Arc::clone(run);
        let rescued = fatal && result.status != Status::Unreachable && after.is_rescuable();
        if fatal {
            self.fail(&run, after, &result, rescued);
        }
        let event = HostResult {
            stamp: run.stamp.clone(),
            task: Arc::clone(&run.info),
            host: Arc::clone(&self.view.name),
            delegated_to: commitment.delegated_to,
            is_loop: commitment.part == Part::Whole,
            item: if is_item { commitment.label } else { None },
            rescued,
            no_log: commitment.no_log,
            diff: commitment.diff,
            result: result.clone(),
        };
        self.play.run.tell(Event::Result(Box::new(event)));
        if let Some(steer) = result.steer {
            self.steer(steer);
        }
    }

    /// Adds variables to the host, and to what others may know of it.
    pub(super) fn adopt(&mut self, stamp: &Stamp, additions: &Arc<Additions>) {
        if additions.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.runtime).apply(additions);
        self.play.run.fleet.note(self.host, stamp.clone(), Arc::clone(additions));
        if additions.facts.is_some() && self.play.play.vars_files.iter().any(|written| written.value.has_templates()) {
            self.read_play_files(stamp);
        }
    }

    /// Files whose names depend on facts are read once these are known.
    fn read_play_files(&mut self, stamp: &Stamp) {
        let scope = TaskScope {
            run: Arc::clone(&self.play.run.vars),
            play: Arc::clone(&self.play.vars),
            play_files: Arc::clone(&self.play_files),
            host: Arc::clone(&self.view),
            runtime: Arc::clone(&self.runtime),
            ahead: Vec::new(),
            task: None,
            local: Map::new(),
            neighbours: self.play.neighbours(self.host, stamp.clone(), false),
            controller_changes: false,
        };
        match super::run::play_files(&self.play.play, &scope) {
            Ok(files) => self.play_files = files,
            Err(error) => self.play.run.tell(Event::Warning(format!("{}: {error}", self.view.name))),
        }
    }

    /// Goes where a failure leads: a rescue, an always, or out of the play.
    pub(super) fn fail(&mut self, run: &TaskRun, mut after: Cursor, result: &TaskResult, rescued: bool) {
        let unreachable = result.status == Status::Unreachable;
        let leads_to = if unreachable { Failed::Host } else { after.fail() };
        if rescued {
            let task = Map::from_iter([
                ("name".into(), Value::from(own_name(run))),
                ("action".into(), Value::from(run.info.action.as_str())),
                ("args".into(), Value::map(run.task.args.clone()).into_data()),
            ]);
            let rescue = &mut Arc::make_mut(&mut self.runtime).rescue;
            rescue.insert("ansible_failed_task".into(), task.into());
            rescue.insert("ansible_failed_result".into(), Value::map(Map::clone(&result.result)).into_data());
        }
        self.at_end = false;
        self.blocked = None;
        self.growth.rest = None;
        self.growth.flushed = None;
        self.growth.cursor = after;
        if leads_to == Failed::Host {
            self.lose(if unreachable { HostEnd::Unreachable } else { HostEnd::Failed });
        }
        self.failed_at = run.stamp.position.clone();
        let too_many = leads_to == Failed::Host && self.play.course.is_beyond_limit();
        if too_many || self.is_fatal_for_all(run) {
            self.play.course.fail_all(self.host, &run.stamp.position);
        }
    }

    fn is_fatal_for_all(&self, run: &TaskRun) -> bool {
        let Some(written) = &run.task.settings.any_errors_fatal else { return false };
        let scope = self.scope(&run.task, &run.stamp, true, Map::new(), 0);
        scope.context().value(&written.value).ok().and_then(|value| value.to_ansible_bool()) == Some(true)
    }

    /// Fails where another host's failure is one of all (`any_errors_fatal`): into a rescue, an always, or out of the
    /// play. True if this host was led elsewhere.
    pub(super) fn follow_fatal(&mut self) -> bool {
        let next = self.window.front().map(|slot| slot.run.stamp.position.clone());
        if next.is_none() && !self.at_end { false } else { self.follow_fatal_before(next) }
    }

    /// The same, for a host whose next task is at `next` (`None`: it has no further task).
    pub(super) fn follow_fatal_before(&mut self, next: Option<Vec<u32>>) -> bool {
        while let Some((host, position)) = self.play.course.fatal_from(self.followed) {
            let is_past = next.as_ref().is_none_or(|next| *next > position);
            if self.is_already_failed(host, &position) {
                self.followed += 1;
                continue;
            }
            if !is_past {
                return false;
            }
            self.followed += 1;
            self.drop_from(0);
            self.at_end = false;
            self.blocked = None;
            self.alone = None;
            self.growth.rest = None;
            self.growth.flushed = None;
            self.failed_at = position;
            self.growth.cursor = self.last_after.clone();
            if self.growth.cursor.fail() == Failed::Host {
                self.lose(HostEnd::Failed);
            }
            return true;
        }
        false
    }

    /// True if a failure of all is this host's own, or finds it failed.
    fn is_already_failed(&self, host: HostId, position: &[u32]) -> bool {
        host == self.host || self.failed_at == position || self.end != HostEnd::Done
    }

    /// True if a failure of all is to be followed before this host may do what is at `next`.
    pub(super) fn must_follow(&self, next: &[u32]) -> bool {
        let mut fatal = (self.followed..).map_while(|number| self.play.course.fatal_from(number));
        fatal.any(|(host, position)| !self.is_already_failed(host, &position) && next > position.as_slice())
    }

    /// The host is out of the play; with `force_handlers` what was notified still runs.
    pub(super) fn lose(&mut self, end: HostEnd) {
        let first = self.end == HostEnd::Done;
        self.end = end;
        self.growth.cursor = Cursor::default();
        self.growth.rest = None;
        self.growth.flushed = None;
        if first && end == HostEnd::Failed && self.play.force_handlers && !self.notified.is_empty() {
            self.growth.cursor.enter(Arc::new(vec![Item::FlushHandlers]));
            self.at_end = false;
        } else {
            self.at_end = true;
        }
        self.depart();
        self.play.course.lose(self.host);
    }

    /// The host takes no further part in the play.
    pub(super) fn depart(&self) {
        self.play.course.depart(self.host, &self.committed);
    }
}
