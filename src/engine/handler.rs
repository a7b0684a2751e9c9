//! Handlers: which of them a notification means.

use std::sync::Arc;

use crate::playbook::{Item, Task};
use crate::value::Value;

/// A handler, by the task that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(usize);

impl HandlerId {
    pub fn of(task: &Arc<Task>) -> HandlerId {
        HandlerId(Arc::as_ptr(task) as usize)
    }
}

/// The handlers that a host's play knows at some place.
pub struct Handlers<'a> {
    tasks: Vec<&'a Arc<Task>>,
}

impl<'a> Handlers<'a> {
    pub fn new(items: &'a [Item]) -> Handlers<'a> {
        let mut tasks = Vec::new();
        collect(items, &mut tasks);
        Handlers { tasks }
    }

    pub fn contains(&self, task: &Arc<Task>) -> bool {
        task.is_handler && self.tasks.iter().any(|handler| Arc::ptr_eq(handler, task))
    }

    /// The handlers that these names mean: of handlers of one name the last, of a topic all that listen to it.
    pub fn resolve<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<HandlerId> {
        names.into_iter().flat_map(|name| self.named(name)).collect()
    }

    /// The first of these names that means no handler.
    pub fn unknown<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
        names.into_iter().find(|name| self.named(name).is_empty())
    }

    fn named(&self, name: &str) -> Vec<HandlerId> {
        let by_name = self.tasks.iter().rev().find(|task| is_called(task, name));
        let listening = self.tasks.iter().filter(|task| listens(task, name));
        by_name.into_iter().chain(listening).map(|task| HandlerId::of(task)).collect()
    }
}

fn collect<'a>(items: &'a [Item], tasks: &mut Vec<&'a Arc<Task>>) {
    for item in items {
        match item {
            Item::Task(task) => tasks.push(task),
            Item::Block(block) => collect(&block.items, tasks),
            Item::FlushHandlers => {}
        }
    }
}

fn is_called(task: &Task, name: &str) -> bool {
    let Some(own) = task.name.as_ref().and_then(|written| written.value.as_str()) else { return false };
    own == name
        || task.role.as_ref().is_some_and(|role| {
            name.strip_prefix(role.name.as_str()).and_then(|rest| rest.strip_prefix(" : ")) == Some(own)
        })
}

fn listens(task: &Task, topic: &str) -> bool {
    task.listen.iter().any(|written| match &written.value {
        Value::List(items) => items.iter().any(|item| item.as_str() == Some(topic)),
        single => single.as_str() == Some(topic),
    })
}
