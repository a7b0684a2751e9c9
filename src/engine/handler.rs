//! Handlers: which of them a notification means.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::playbook::{Item, Task, Written};
use crate::value::Value;

/// A handler, by the task that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HandlerId(usize);

impl HandlerId {
    pub fn of(task: &Arc<Task>) -> HandlerId {
        HandlerId(Arc::as_ptr(task) as usize)
    }
}

/// What was notified and has not run yet. A name means a handler only when handlers are flushed: named twice, a handler
/// runs once, even if a role that is used twice brings it twice.
#[derive(Debug, Clone, Default)]
pub struct Notified {
    names: Vec<String>,
    handlers: HashSet<HandlerId>,
}

impl Notified {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.handlers.is_empty()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub fn contains(&self, handler: HandlerId) -> bool {
        self.handlers.contains(&handler)
    }

    /// A task notified these.
    pub fn add_names(&mut self, names: &[String]) {
        for name in names {
            if !self.names.contains(name) {
                self.names.push(name.clone());
            }
        }
    }

    /// A handler notified these: they run with it.
    pub fn add_handlers(&mut self, handlers: impl IntoIterator<Item = HandlerId>) {
        self.handlers.extend(handlers);
    }

    /// Handlers are flushed: these are what the names mean.
    pub fn flush(&mut self, handlers: &[HandlerId]) {
        self.names.clear();
        self.handlers.extend(handlers);
    }

    /// A handler has run.
    pub fn remove(&mut self, handler: HandlerId) {
        self.handlers.remove(&handler);
    }
}

/// The handlers that a host's play knows at some place.
pub struct Handlers<'a> {
    handlers: Vec<Handler<'a>>,
    /// Those whose names cannot be rendered, and why.
    pub unusable: Vec<(&'a Arc<Task>, String)>,
}

struct Handler<'a> {
    task: &'a Arc<Task>,
    name: Option<Cow<'a, str>>,
    topics: Vec<Cow<'a, str>>,
}

/// Renders the name of a handler; says why if that is not possible.
pub type Render<'a> = &'a dyn Fn(&Arc<Task>, &Written) -> Result<Value, String>;

impl<'a> Handlers<'a> {
    pub fn new(items: &'a [Item], render: Render<'_>) -> Handlers<'a> {
        let mut tasks = Vec::new();
        collect(items, &mut tasks);
        let mut handlers = Handlers { handlers: Vec::with_capacity(tasks.len()), unusable: Vec::new() };
        for task in tasks {
            let name = match task.name.as_ref() {
                Some(written) if written.value.has_templates() => match render(task, written) {
                    Ok(name) => Some(Cow::Owned(name.to_text().into_owned())),
                    Err(reason) => {
                        handlers.unusable.push((task, reason));
                        None
                    }
                },
                Some(written) => written.value.as_str().map(Cow::Borrowed),
                None => None,
            };
            let topics = task.listen.iter().flat_map(topics).collect();
            handlers.handlers.push(Handler { task, name, topics });
        }
        // what was loaded last comes first, list by list
        let mut lists: Vec<Vec<Handler<'_>>> = Vec::new();
        for handler in handlers.handlers.drain(..) {
            match lists.last_mut() {
                Some(list) if list.last().is_some_and(|last| are_of_one_list(last.task, handler.task)) => {
                    list.push(handler);
                }
                _ => lists.push(vec![handler]),
            }
        }
        handlers.handlers = lists.into_iter().rev().flatten().collect();
        handlers
    }

    /// The handlers that these names mean: of handlers of one name one (of several lists of handlers that of the last,
    /// and there the first), of a topic all that listen to it.
    pub fn resolve<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<HandlerId> {
        names.into_iter().flat_map(|name| self.named(name)).collect()
    }

    /// The first of these names that means no handler.
    pub fn unknown<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
        names.into_iter().find(|name| self.named(name).is_empty())
    }

    fn named(&self, name: &str) -> Vec<HandlerId> {
        let by_name = self.handlers.iter().find(|handler| handler.is_called(name));
        let mut listening = Vec::new();
        let mut seen = HashSet::new();
        // a role that is used twice brings its handlers twice, but they run once
        for handler in self.handlers.iter().filter(|handler| handler.listens(name)) {
            if handler.name.as_ref().is_none_or(|name| seen.insert(name.clone())) {
                listening.push(handler);
            }
        }
        by_name.into_iter().chain(listening).map(|handler| HandlerId::of(handler.task)).collect()
    }
}

/// True if two handlers stand in the same list: of the play, or of the same use of a role.
fn are_of_one_list(left: &Task, right: &Task) -> bool {
    match (&left.role, &right.role) {
        (None, None) => true,
        (Some(left), Some(right)) => Arc::ptr_eq(left, right),
        _ => false,
    }
}

/// True if a task is one of these handlers, not one that a handler included.
pub fn is_among(items: &[Item], task: &Arc<Task>) -> bool {
    let mut tasks = Vec::new();
    collect(items, &mut tasks);
    task.is_handler && tasks.iter().any(|handler| Arc::ptr_eq(handler, task))
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

impl Handler<'_> {
    fn is_called(&self, name: &str) -> bool {
        self.name.as_deref().is_some_and(|own| self.is_named(own, name))
    }

    fn listens(&self, topic: &str) -> bool {
        self.topics.iter().any(|own| self.is_named(own, topic))
    }

    /// By its name alone, or with that of its role, or with that of its role within a collection.
    fn is_named(&self, own: &str, name: &str) -> bool {
        if own == name {
            return true;
        }
        let Some(role) = &self.task.role else { return false };
        let in_collection = role.collection.as_ref().map(|collection| format!("{collection}.{}", role.name));
        [Some(role.name.clone()), in_collection]
            .into_iter()
            .flatten()
            .any(|role| name.strip_prefix(role.as_str()).and_then(|rest| rest.strip_prefix(" : ")) == Some(own))
    }
}

/// The topics of `listen`. They are what is written: a template there is never rendered, as in Ansible.
fn topics(written: &Written) -> Vec<Cow<'_, str>> {
    match &written.value {
        Value::List(items) => items.iter().map(Value::to_text).collect(),
        single => vec![single.to_text()],
    }
}
