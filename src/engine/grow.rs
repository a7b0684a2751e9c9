//! How a window grows: the next task, its items, and where it must stop for now.

use std::sync::Arc;

use crate::host::{Failure, FailureKind};
use crate::modules::{Action, EngineAction};
use crate::playbook::{Block, Task, TaskAction, Written};
use crate::value::{Interruption, Map, Value};
use crate::vars::{Delta, TaskScope};

use super::cursor::{Cursor, Next};
use super::debugger::may_debug;
use super::event::TaskInfo;
use super::handler::is_among;
use super::looping;
use super::perform::{Prepared, perform, prepare, unmet_condition};
use super::result::TaskResult;
use super::walk::{Blocked, HostEnd, Walker};
use super::window::{Growth, Part, Slot, SlotState, TaskRun, pending};

/// Whether the window grew.
pub(super) enum Grown {
    Yes,
    /// Not now, for this reason.
    Blocked(Blocked),
    End,
}

impl Walker {
    /// Adds invocations until the window is full or must wait; true if any was added.
    pub(super) fn extend(&mut self) -> bool {
        let mut progress = false;
        while self.blocked.is_none() && self.alone.is_none() && !self.at_end && self.window.len() < self.limit() {
            // behind a task that steers the play everything may be another: groups, variables, the way on
            if self.window.iter().any(|slot| slot.is_fatal() || (slot.holds && !slot.is_ended()) || slot.steers()) {
                break;
            }
            let before = self.growth.clone();
            match self.grow(&before) {
                Grown::Yes => progress = true,
                Grown::End => self.at_end = true,
                Grown::Blocked(reason) => {
                    self.growth = before;
                    self.blocked = Some(reason);
                }
            }
        }
        progress
    }

    fn limit(&self) -> usize {
        self.play.run.options.window.max(1)
    }

    fn grow(&mut self, before: &Growth) -> Grown {
        if let Some((run, part)) = self.growth.rest.clone() {
            return self.grow_part(run, part, before);
        }
        loop {
            let next = self.growth.cursor.advance();
            match next {
                Next::End => return Grown::End,
                Next::Rescued | Next::StillFailing if !self.window.is_empty() => return Grown::Blocked(Blocked::Alone),
                Next::Rescued => Arc::make_mut(&mut self.runtime).rescue.clear(),
                Next::StillFailing => {
                    let mut cursor = std::mem::take(&mut self.growth.cursor);
                    if cursor.fail() == super::cursor::Failed::Host {
                        self.lose(HostEnd::Failed);
                        return if self.at_end { Grown::End } else { Grown::Yes };
                    }
                    self.growth.cursor = cursor;
                }
                Next::FlushHandlers => {
                    if let Some(blocked) = self.flush_handlers() {
                        return blocked;
                    }
                }
                Next::Role(block) => match self.has_run_role(&block) {
                    None => return Grown::Blocked(Blocked::Value),
                    Some(true) => {}
                    Some(false) => self.growth.cursor.enter_block(block),
                },
                Next::RoleEnded(role) => {
                    Arc::make_mut(&mut self.growth.ended_roles).insert(role.identity.clone());
                }
                Next::Task(task) => {
                    match self.is_selected(&task) {
                        Ok(true) => {}
                        Ok(false) => continue,
                        Err(failure) => return self.push_unselectable(task, failure, before),
                    }
                    if self.is_handler(&task) {
                        match self.is_notified(&task) {
                            None => return Grown::Blocked(Blocked::Value),
                            Some(false) => continue,
                            Some(true) => {}
                        }
                    }
                    return self.grow_task(task, before);
                }
            }
        }
    }

    /// Whether the host has run this role before, so that it is left out now; `None` if a task that decides it is not
    /// done. A role has run if its tasks came to their end and not all of them were skipped.
    fn has_run_role(&self, block: &Block) -> Option<bool> {
        let Some(role) = block.role.as_ref().filter(|role| !role.allow_duplicates) else { return Some(false) };
        if !self.growth.ended_roles.contains(&role.identity) {
            return Some(false);
        }
        let mut slots = self
            .window
            .iter()
            .filter(|slot| slot.run.task.role.as_ref().is_some_and(|of_task| of_task.identity == role.identity));
        if self.ran_roles.contains(&role.identity)
            || slots.clone().any(|slot| slot.result().is_some_and(super::commit::counts_as_run))
        {
            return Some(true);
        }
        if slots.any(|slot| !slot.is_ended()) { None } else { Some(false) }
    }

    /// Whether the tags of a task, rendered, are among those that were asked for; handlers are not asked.
    fn is_selected(&self, task: &Arc<Task>) -> Result<bool, Failure> {
        if task.is_handler {
            return Ok(true);
        }
        let is_template = |written: &Written| written.value.has_templates();
        let mut context = None;
        if task.settings.tags.iter().any(is_template) {
            let stamp = self.play.stamp(self.growth.cursor.position());
            let granted = self.is_granted(&stamp.position);
            context = Some(self.scope(task, &stamp, granted, Map::new(), self.window.len()).context());
        }
        let mut tags: Vec<String> = Vec::new();
        for written in &task.settings.tags {
            match &context {
                Some(context) => tags.extend(crate::playbook::tags::tags_of(&context.value(&written.value)?)),
                None => tags.extend(crate::playbook::tags::tags_of(&written.value)),
            }
        }
        Ok(self.play.run.tags.selects(&tags))
    }

    /// A task whose tags cannot be rendered fails, wherever it is.
    fn push_unselectable(&mut self, task: Arc<Task>, failure: Failure, before: &Growth) -> Grown {
        let after = self.growth.cursor.clone();
        let stamp = self.play.stamp(after.position());
        match self.blocking(&failure, &stamp.position) {
            Some(blocked) => blocked,
            None => {
                let scope = self.scope(&task, &stamp, false, Map::new(), self.window.len());
                self.push_ended(Arc::clone(&task), scope, after, before, failed_loop(&task, failure))
            }
        }
    }

    fn is_handler(&self, task: &Arc<Task>) -> bool {
        is_among(&self.growth.handlers, task)
    }

    fn grow_task(&mut self, task: Arc<Task>, before: &Growth) -> Grown {
        let after = self.growth.cursor.clone();
        let position = after.position();
        let granted = self.is_granted(&position);
        let engine_action = engine_action(&task);
        if self.play.run.steps.is_on() && engine_action != Some(EngineAction::Meta) {
            match self.take_step(&task, &position, granted) {
                Ok(true) => {}
                Ok(false) => return Grown::Yes,
                Err(blocked) => return blocked,
            }
        }
        if engine_action.is_none() && (must_be_alone(&task) || may_debug(&task, &self.play.run.options)) {
            if !self.window.is_empty() {
                return Grown::Blocked(Blocked::Alone);
            }
            self.reach(position);
            self.alone = Some((task, after));
            return Grown::Yes;
        }
        if reads_controller(&task) && self.controller_changes(self.window.len()) {
            return Grown::Blocked(Blocked::Value);
        }
        if let Some(action) = engine_action
            && action != EngineAction::Meta
            && self.is_once(&task, &position)
        {
            if !granted {
                let empty = self.window.is_empty();
                return Grown::Blocked(if empty { Blocked::Barrier(position) } else { Blocked::Alone });
            }
            if self.play.course.chosen(&self.play.hosts, &position) != Some(self.host) {
                // another host includes it, for itself alone
                return Grown::Yes;
            }
        }
        let stamp = self.play.stamp(position);
        let scope = self.scope(&task, &stamp, granted, Map::new(), self.window.len());
        let context = scope.context();
        if let Some(action) = engine_action {
            return self.grow_engine_action(action, task, scope, after, before);
        }
        let items = match looping::loop_of(&task, &context) {
            Ok(items) => items,
            Err(failure) => {
                return match self.blocking(&failure, &stamp.position) {
                    Some(blocked) => blocked,
                    None => {
                        // conditions are looked at first: a loop behind a false one may be undefined
                        let result = match unmet_condition(&task.settings.when, &context) {
                            Ok(Some(skipped)) => skipped,
                            _ => failed_loop(&task, failure),
                        };
                        self.push_ended(task, scope, after, before, result)
                    }
                };
            }
        };
        let info = task_info(&task, &scope);
        let run = TaskRun::new(task, info, stamp, after, items, granted);
        match &run.items {
            None => self.push(run, Part::Single, before),
            Some(items) => {
                let first = if items.is_empty() { Part::Whole } else { Part::Item(0) };
                self.growth.rest = Some((Arc::clone(&run), first));
                self.grow_part(run, first, before)
            }
        }
    }

    /// Whether a task is to run, with `--step`; what blocks, if it is not yet time to ask.
    fn take_step(&mut self, task: &Arc<Task>, position: &[u32], granted: bool) -> Result<bool, Grown> {
        if !self.window.is_empty() {
            return Err(Grown::Blocked(Blocked::Alone));
        }
        if !granted && !self.play.free {
            return Err(Grown::Blocked(Blocked::Barrier(position.to_vec())));
        }
        let stamp = self.play.stamp(position.to_vec());
        let name = task_info(task, &self.scope(task, &stamp, granted, Map::new(), 0)).name.clone();
        let host = self.play.free.then(|| Arc::clone(&self.view.name));
        let run = Arc::clone(&self.play.run);
        match run.steps.takes(&run, &name, host.as_ref(), &stamp) {
            Ok(takes) => Ok(takes),
            Err(error) => {
                run.abort(error);
                self.play.course.stop();
                self.growth.cursor.end();
                Err(Grown::End)
            }
        }
    }

    pub(super) fn is_granted(&self, position: &[u32]) -> bool {
        self.window.is_empty() && self.play.course.all_reached(position)
    }

    /// What a failure to evaluate means for the window, if it is only that something is not there yet.
    pub(super) fn blocking(&self, failure: &Failure, position: &[u32]) -> Option<Grown> {
        match &failure.kind {
            FailureKind::Interrupted(Interruption::Pending) => Some(Grown::Blocked(Blocked::Value)),
            FailureKind::Interrupted(Interruption::Barrier) if self.window.is_empty() => {
                Some(Grown::Blocked(Blocked::Barrier(position.to_vec())))
            }
            FailureKind::Interrupted(Interruption::Barrier) => Some(Grown::Blocked(Blocked::Alone)),
            _ => None,
        }
    }

    /// Adds the next part of a loop.
    fn grow_part(&mut self, run: Arc<TaskRun>, part: Part, before: &Growth) -> Grown {
        let count = run.items.as_ref().map_or(0, Vec::len);
        self.growth.rest = match part {
            Part::Item(index) if index + 1 < count => Some((Arc::clone(&run), Part::Item(index + 1))),
            Part::Item(_) => Some((Arc::clone(&run), Part::Whole)),
            Part::Whole | Part::Single => None,
        };
        self.growth.cursor = run.after.clone();
        if part == Part::Whole {
            return self.push_whole(run, before);
        }
        self.push(run, part, before)
    }

    fn push_whole(&mut self, run: Arc<TaskRun>, before: &Growth) -> Grown {
        let id = self.new_slot_id();
        let begun_first = self.window.is_empty();
        let flushed = self.growth.flushed.take();
        let delta = Arc::new(Delta::Pending(pending(&run.task, Part::Whole)));
        let empty = run.items.as_ref().is_some_and(Vec::is_empty);
        self.window.push_back(Slot {
            id,
            part: Part::Whole,
            state: SlotState::Gathering,
            delta,
            call: None,
            label: None,
            unconfirmed: false,
            holds: false,
            begun_first,
            flushed,
            grown_from: before.clone(),
            run: Arc::clone(&run),
        });
        if empty {
            let mut result = TaskResult::skipped("No items in the list");
            let map = Arc::make_mut(&mut result.result);
            map.insert("skipped_reason".into(), "No items in the list".into());
            map.insert("results".into(), Value::list(Vec::new()));
            register(&run.task, &mut result);
            self.settle_slot(self.window.len() - 1, result);
        }
        Grown::Yes
    }

    /// Adds an invocation: starts its module, or notes that it is skipped or failed already.
    fn push(&mut self, run: Arc<TaskRun>, part: Part, before: &Growth) -> Grown {
        let mut local = Map::new();
        let mut label = None;
        if let (Part::Item(index), Some(looping), Some(items)) = (part, &run.looping, &run.items) {
            local = looping::item_variables(looping, items, index);
        }
        let scope = self.scope(&run.task, &run.stamp, run.granted, local, self.window.len());
        if let (Part::Item(index), Some(looping), Some(items)) = (part, &run.looping, &run.items)
            && let Some(item) = items.get(index)
        {
            label = Some(looping::label(looping, &scope.context(), item));
        }
        let prepared = prepare(&run.task, scope, &self.play.run.options);
        let id = self.new_slot_id();
        let begun_first = self.window.is_empty();
        let flushed = self.growth.flushed.take();
        let delta = Arc::new(Delta::Pending(pending(&run.task, part)));
        let slot = |state: SlotState, call| Slot {
            id,
            part,
            state,
            delta,
            call,
            label,
            unconfirmed: false,
            holds: false,
            begun_first,
            flushed,
            grown_from: before.clone(),
            run: Arc::clone(&run),
        };
        match prepared {
            Prepared::Interrupted(interruption) => {
                let failure = Failure::interrupted(interruption);
                match self.blocking(&failure, &run.stamp.position) {
                    Some(blocked) => return blocked,
                    None => {
                        self.window.push_back(slot(SlotState::Gathering, None));
                        let result = unknown_task(&run.task, &failure.message);
                        self.settle_slot(self.window.len() - 1, result);
                    }
                }
            }
            Prepared::Done(mut result) => {
                self.window.push_back(slot(SlotState::Gathering, None));
                if part == Part::Single {
                    register(&run.task, &mut result);
                }
                self.settle_slot(self.window.len() - 1, result);
            }
            Prepared::Run(call) => {
                let call = Arc::new(*call);
                let host = self.host_handle(id, &call);
                let future = Box::pin(perform(Arc::clone(&call), host));
                self.window.push_back(slot(SlotState::Running(future), Some(call)));
            }
        }
        Grown::Yes
    }

    /// Adds a task that is over already.
    pub(super) fn push_ended(
        &mut self,
        task: Arc<Task>,
        scope: TaskScope,
        after: Cursor,
        before: &Growth,
        mut result: TaskResult,
    ) -> Grown {
        register(&task, &mut result);
        let info = task_info(&task, &scope);
        let stamp = self.play.stamp(after.position());
        let run = TaskRun::new(task, info, stamp, after, None, false);
        self.push_result(run, before, result);
        Grown::Yes
    }

    pub(super) fn push_result(&mut self, run: Arc<TaskRun>, before: &Growth, result: TaskResult) {
        let id = self.new_slot_id();
        let begun_first = self.window.is_empty();
        let flushed = self.growth.flushed.take();
        self.window.push_back(Slot {
            id,
            run,
            part: Part::Single,
            state: SlotState::Gathering,
            delta: Arc::new(Delta::Known(Default::default())),
            call: None,
            label: None,
            unconfirmed: false,
            holds: false,
            begun_first,
            flushed,
            grown_from: before.clone(),
        });
        self.settle_slot(self.window.len() - 1, result);
    }
}

/// What the engine itself is to do, if the task is of that kind.
fn engine_action(task: &Task) -> Option<EngineAction> {
    match &task.action {
        TaskAction::Module(module) => match module.action {
            Action::Engine(action) => Some(action),
            Action::Module(_) => None,
        },
        _ => None,
    }
}

/// True for tasks that read files of the controller: as their source, or as what they include.
fn reads_controller(task: &Task) -> bool {
    const MODULES: &[&str] =
        &["assemble", "copy", "include", "include_role", "include_tasks", "include_vars", "script", "template"];
    matches!(&task.action, TaskAction::Module(module) if MODULES.contains(&module.bare_name()))
}

/// True if a task cannot share the window: it acts elsewhere, for all hosts, or lets time pass between items.
fn must_be_alone(task: &Task) -> bool {
    let settings = &task.settings;
    let bypasses =
        matches!(&task.action, TaskAction::Module(module) if matches!(module.bare_name(), "add_host" | "group_by"));
    settings.run_once.is_some()
        || settings.delegate_to.is_some()
        || settings.connection.is_some()
        || settings.remote_user.is_some()
        || settings.port.is_some()
        || settings.throttle.is_some()
        // its time begins with its turn
        || settings.timeout.is_some()
        || bypasses
        || task
            .looping
            .as_ref()
            .is_some_and(|looping| looping.control.pause.is_some() || !looping.control.break_when.is_empty())
}

/// Puts a result that came about without a module under its registered name.
pub(super) fn register(task: &Task, result: &mut TaskResult) {
    if let Some(name) = task.register.as_ref().and_then(|written| written.value.as_str()) {
        let value = Value::map(Map::clone(&result.result)).into_data();
        Arc::make_mut(&mut result.additions).set_facts.get_or_insert_default().insert(Value::from(name), value);
    }
}

pub(super) fn failed_loop(task: &Task, failure: Failure) -> TaskResult {
    let mut result = TaskResult::failed(failure.message);
    result.ignored =
        task.settings.ignore_errors.as_ref().and_then(|written| written.value.to_ansible_bool()) == Some(true);
    result
}

/// The result of a task whose conditions or arguments check mode cannot know.
pub(super) fn unknown_task(task: &Task, reason: &str) -> TaskResult {
    let map = Map::from_iter([
        ("unknown".into(), true.into()),
        ("msg".into(), Value::from(format!("unknown until applied: {reason}"))),
    ]);
    let mut result = TaskResult::new(super::result::Status::Unknown, map);
    let pending = pending(task, Part::Single);
    let with_reason = |name: String| (name, reason.to_owned());
    let additions = Arc::make_mut(&mut result.additions);
    additions.unknown = pending.names.into_iter().map(with_reason).collect();
    additions.unknown_facts = pending.own_facts.into_iter().map(|name| with_reason(name.to_owned())).collect();
    result
}

/// What reports say of a task: its name, rendered if that can be done now.
pub(super) fn task_info(task: &Arc<Task>, scope: &TaskScope) -> Arc<TaskInfo> {
    let action = match &task.action {
        TaskAction::Module(module) => module.bare_name().to_owned(),
        TaskAction::Unknown(name) => name.clone(),
        TaskAction::Template(written) => written.value.to_text().into_owned(),
    };
    let own = match &task.name {
        Some(written) if written.value.has_templates() => scope
            .context()
            .value(&written.value)
            .map_or_else(|_| written.value.to_text().into_owned(), |value| value.to_text().into_owned()),
        Some(written) => written.value.to_text().into_owned(),
        None => match (action.as_str(), task.args.get("name").or_else(|| task.args.get("role"))) {
            ("include_role", Some(role)) => format!("{action} : {}", role.to_text()),
            _ => action.clone(),
        },
    };
    let name = match &task.role {
        // an include without a name has the role's that it brings
        Some(role) if task.name.is_some() || own == action => format!("{} : {own}", role.full_name()),
        _ => own,
    };
    Arc::new(TaskInfo { name, action, place: task.place.clone(), is_handler: task.is_handler, included: None })
}
