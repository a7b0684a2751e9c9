//! Results become final: variables are kept, events are told, and a failure goes where the cursor leads.

use std::sync::Arc;

use crate::playbook::{Item, Task};
use crate::value::{Map, Value};
use crate::vars::runtime::Additions;
use crate::vars::{Stamp, TaskScope};

use super::cursor::{Cursor, Failed};
use super::event::{Event, HostResult};
use super::handler::{HandlerId, Handlers};
use super::result::{Status, TaskResult};
use super::walk::{Blocked, HostEnd, Walker};
use super::window::{Part, SlotState, TaskRun};

/// True unless it is certain that a task's result may be shown, where its `no_log` was not rendered: the result of a
/// whole loop, or of a task that failed before its module was called.
pub(super) fn may_hide(task: &Task) -> bool {
    task.settings.no_log.as_ref().is_some_and(|written| written.value.to_ansible_bool() != Some(false))
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
            if !front.is_ended() || front.unconfirmed {
                break;
            }
            if self.play.strict && !self.play.course.all_reached(&front.run.stamp.position) {
                break;
            }
            let fatal = front.is_fatal();
            let Some(slot) = self.window.pop_front() else { break };
            self.port.forget(slot.id);
            progress = true;
            if self.blocked.as_ref().is_some_and(|blocked| !matches!(blocked, Blocked::Barrier(_))) {
                self.blocked = None;
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
        self.adopt(&run.stamp, &result.additions);
        if run.task.is_handler && !is_item {
            self.notified.remove(&HandlerId::of(&run.task));
        }
        if !result.notify.is_empty() {
            let handlers = Handlers::new(&self.growth.handlers);
            self.notified.extend(handlers.resolve(result.notify.iter().map(String::as_str)));
        }
        let fatal = result.is_fatal() && (!is_item || result.status == Status::Unreachable);
        let after = run.after.clone();
        let run = Arc::clone(run);
        let leads_to = fatal.then(|| self.fail(&run, after, &result));
        let event = HostResult {
            stamp: run.stamp.clone(),
            task: Arc::clone(&run.info),
            host: Arc::clone(&self.view.name),
            delegated_to: commitment.delegated_to,
            is_loop: commitment.part == Part::Whole,
            item: if is_item { commitment.label } else { None },
            rescued: leads_to == Some(Failed::Rescue),
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
        let empty = additions.facts.is_none()
            && additions.set_facts.is_none()
            && additions.include_vars.is_none()
            && additions.role.is_none();
        if empty {
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
        };
        match super::run::play_files(&self.play.play, &scope) {
            Ok(files) => self.play_files = files,
            Err(error) => self.play.run.tell(Event::Warning(format!("{}: {error}", self.view.name))),
        }
    }

    /// Goes where a failure leads: a rescue, an always, or out of the play.
    pub(super) fn fail(&mut self, run: &TaskRun, mut after: Cursor, result: &TaskResult) -> Failed {
        let unreachable = result.status == Status::Unreachable;
        let leads_to = if unreachable { Failed::Host } else { after.fail() };
        if leads_to == Failed::Rescue {
            let task = Map::from_iter([
                ("name".into(), Value::from(run.info.name.as_str())),
                ("action".into(), Value::from(run.info.action.as_str())),
            ]);
            let rescue = &mut Arc::make_mut(&mut self.runtime).rescue;
            rescue.insert("ansible_failed_task".into(), task.into());
            rescue.insert("ansible_failed_result".into(), Value::map(Map::clone(&result.result)).into_data());
        }
        self.at_end = false;
        self.blocked = None;
        self.growth.rest = None;
        self.growth.cursor = after;
        if leads_to == Failed::Host {
            self.lose(if unreachable { HostEnd::Unreachable } else { HostEnd::Failed });
        }
        if run
            .task
            .settings
            .any_errors_fatal
            .as_ref()
            .is_some_and(|written| written.value.to_ansible_bool() == Some(true))
            && leads_to != Failed::Rescue
        {
            self.play.course.stop();
        }
        leads_to
    }

    /// The host is out of the play; with `force_handlers` what was notified still runs.
    pub(super) fn lose(&mut self, end: HostEnd) {
        let first = self.end == HostEnd::Done;
        self.end = end;
        self.growth.cursor = Cursor::default();
        self.growth.rest = None;
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
