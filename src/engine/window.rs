//! The window of a host: the invocations worked on ahead of their turn.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crate::host::SlotId;
use crate::playbook::{Item, Loop, Task, TaskAction};
use crate::value::Value;
use crate::vars::runtime::Pending;
use crate::vars::{Delta, Stamp};

use super::cursor::Cursor;
use super::event::TaskInfo;
use super::handler::HandlerId;
use super::looping::Looped;
use super::perform::{Call, Ended};
use super::result::{Steer, TaskResult};

/// A task under way on a host.
pub struct TaskRun {
    pub task: Arc<Task>,
    pub info: Arc<TaskInfo>,
    pub stamp: Stamp,
    /// The way on from this task.
    pub after: Cursor,
    /// The items of its loop.
    pub items: Option<Vec<Value>>,
    /// Its loop, the names in it rendered.
    pub looping: Option<Arc<Loop>>,
    /// What the items came to, by their number.
    results: Mutex<Vec<Option<TaskResult>>>,
    /// All hosts have reached this task, so that what they set before can be read.
    pub granted: bool,
}

impl TaskRun {
    pub fn new(
        task: Arc<Task>,
        info: Arc<TaskInfo>,
        stamp: Stamp,
        after: Cursor,
        looped: Option<Looped>,
        granted: bool,
    ) -> Arc<TaskRun> {
        let (items, looping) = looped.map(|looped| (looped.items, looped.looping)).unzip();
        let count = items.as_ref().map_or(0, Vec::len);
        Arc::new(TaskRun { task, info, stamp, after, items, looping, results: Mutex::new(vec![None; count]), granted })
    }

    /// The same, of an altered task.
    pub fn of_task(&self, task: Arc<Task>) -> Arc<TaskRun> {
        let looped = match (&self.items, &self.looping) {
            (Some(items), Some(looping)) => Some(Looped { items: items.clone(), looping: Arc::clone(looping) }),
            _ => None,
        };
        let (info, stamp, after) = (Arc::clone(&self.info), self.stamp.clone(), self.after.clone());
        TaskRun::new(task, info, stamp, after, looped, self.granted)
    }

    pub fn store(&self, item: usize, result: TaskResult) {
        if let Some(place) = self.results.lock().unwrap_or_else(PoisonError::into_inner).get_mut(item) {
            *place = Some(result);
        }
    }

    /// What all items came to; `None` while one is not done.
    pub fn item_results(&self) -> Option<Vec<TaskResult>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Which part of a task an invocation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A task without a loop.
    Single,
    Item(usize),
    /// The result of a loop, once all its items are done.
    Whole,
}

/// One place in the window.
pub struct Slot {
    pub id: SlotId,
    pub run: Arc<TaskRun>,
    pub part: Part,
    pub state: SlotState,
    /// What it adds to the variables that later invocations see.
    pub delta: Arc<Delta>,
    /// The call, if a module was called.
    pub call: Option<Arc<Call>>,
    /// The label of its item.
    pub label: Option<String>,
    /// A change of it is on its way and not yet known to be made.
    pub unconfirmed: bool,
    /// It lets time pass or acts elsewhere: nothing behind it is looked at before it is done.
    pub holds: bool,
    /// There was nothing before it in the window when it was begun.
    pub begun_first: bool,
    /// What was notified before, if handlers were flushed between the slot before and this one.
    pub flushed: Option<Arc<Vec<HandlerId>>>,
    /// How the window grew to this place, to grow again from here.
    pub grown_from: Growth,
}

pub enum SlotState {
    Running(Pin<Box<dyn Future<Output = Ended> + Send>>),
    /// A loop's result that waits for its items.
    Gathering,
    Ended(TaskResult),
}

impl Slot {
    pub fn result(&self) -> Option<&TaskResult> {
        match &self.state {
            SlotState::Ended(result) => Some(result),
            _ => None,
        }
    }

    pub fn is_ended(&self) -> bool {
        matches!(self.state, SlotState::Ended(_))
    }

    /// True if it changes the play or the variables once it is committed, or may do so, so that nothing behind it can be
    /// decided yet.
    pub fn steers(&self) -> bool {
        if !self.is_ended() {
            return self.call.as_ref().is_some_and(|call| call.module.bare_name() == "group_by");
        }
        let steer = self.result().and_then(|result| result.steer.as_ref());
        steer.is_some_and(|steer| !matches!(steer, Steer::Stats { .. }))
    }

    /// True if the host cannot go on behind it. A failed item of a loop does not keep the others from running.
    pub fn is_fatal(&self) -> bool {
        self.result().is_some_and(|result| {
            result.is_fatal()
                && (!matches!(self.part, Part::Item(_)) || result.status == super::result::Status::Unreachable)
        })
    }
}

/// From where a window grows on.
#[derive(Clone)]
pub struct Growth {
    pub cursor: Cursor,
    /// The next part of a loop that is under way.
    pub rest: Option<(Arc<TaskRun>, Part)>,
    /// Handlers of roles that were included, in order.
    pub handlers: Arc<Vec<Item>>,
    /// What was notified before handlers were flushed, until it is told to the slot behind.
    pub flushed: Option<Arc<Vec<HandlerId>>>,
    /// The roles whose tasks came to their end, by identity.
    pub ended_roles: Arc<HashSet<String>>,
}

/// What an invocation of this task may set, as far as can be told before it is done.
pub fn pending(task: &Task, part: Part) -> Pending {
    let mut pending = Pending::default();
    if let Some(register) = task.register.as_ref().filter(|_| !matches!(part, Part::Item(_))) {
        match register.value.as_str() {
            Some(name) if !register.value.has_templates() => pending.names.push(name.to_owned()),
            _ => pending.any = true,
        }
    }
    if part == Part::Whole {
        return pending;
    }
    match &task.action {
        TaskAction::Module(module) => match module.bare_name() {
            "set_fact" => {
                pending.any |= task.args_template.is_some() || task.args.keys().any(Value::has_templates);
                pending.names.extend(task.args.keys().map(|key| key.to_text().into_owned()));
            }
            "include_vars" => pending.any = true,
            _ => {
                let returns = || module.returns.iter().map(|(name, _)| *name);
                pending.facts = returns().any(|name| name == "ansible_facts");
                pending.own_facts = module.own_facts().collect();
            }
        },
        TaskAction::Unknown(_) | TaskAction::Template(_) => {
            pending.any = true;
            pending.facts = true;
        }
    }
    pending
}
