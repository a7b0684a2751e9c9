//! What a host's tasks notify, and what of it is known where the window grows.

use std::sync::Arc;

use crate::error::Error;
use crate::playbook::{Task, Written};
use crate::value::Map;

use super::event::Event;
use super::grow::Grown;
use super::handler::{HandlerId, Handlers, Notified};
use super::result::{Steer, TaskResult};
use super::walk::{Blocked, Walker};
use super::window::{Part, Slot};

impl Walker {
    /// Goes into the handlers if any was notified; what blocks, if that is not known yet.
    pub(super) fn flush_handlers(&mut self) -> Option<Grown> {
        if self.window.iter().any(may_notify) {
            return Some(Grown::Blocked(Blocked::Value));
        }
        let notified = self.notified_so_far();
        if notified.is_empty() {
            return None;
        }
        let flushed = self.with_handlers(|handlers| handlers.resolve(notified.names()));
        if self.window.is_empty() {
            self.notified.flush(&flushed);
        } else {
            self.growth.flushed = Some(Arc::new(flushed));
        }
        let handlers = Arc::clone(&self.growth.handlers);
        self.growth.cursor.enter(handlers);
        None
    }

    /// The handlers that are notified and have not run, counting what the window has done.
    fn notified_so_far(&self) -> Notified {
        let mut notified = self.notified.clone();
        for slot in &self.window {
            if let Some(flushed) = &slot.flushed {
                notified.flush(flushed);
            }
            if slot.run.task.is_handler && !matches!(slot.part, Part::Item(_)) {
                notified.remove(HandlerId::of(&slot.run.task));
            }
            if let Some(result) = slot.result().filter(|result| !result.notify.is_empty()) {
                self.take_notifications(&mut notified, &slot.run.task, &result.notify);
            }
        }
        if let Some(flushed) = &self.growth.flushed {
            notified.flush(flushed);
        }
        notified
    }

    /// What a task notified: a handler names others that run with it, any other task waits for the flush.
    pub(super) fn take_notifications(&self, notified: &mut Notified, task: &Task, names: &[String]) {
        if task.is_handler {
            let names = || names.iter().map(String::as_str);
            notified.add_handlers(self.with_handlers(|handlers| handlers.resolve(names())));
        } else {
            notified.add_names(names);
        }
    }

    /// True if a handler is to run; `None` if a task that may notify it is not done.
    pub(super) fn is_notified(&self, task: &Arc<Task>) -> Option<bool> {
        if self.notified_so_far().contains(HandlerId::of(task)) {
            return Some(true);
        }
        if self.window.iter().any(may_notify) { None } else { Some(false) }
    }

    /// A result that notifies a handler which is not there fails, and ends the run.
    pub(super) fn with_known_handlers(&self, mut result: TaskResult, task: &Task) -> TaskResult {
        if result.notify.is_empty() {
            return result;
        }
        let unknown = self
            .with_handlers(|handlers| handlers.unknown(result.notify.iter().map(String::as_str)).map(str::to_owned));
        let Some(name) = unknown else { return result };
        let message = format!(
            "The requested handler '{name}' was not found in either the main handlers list nor in the listening handlers list"
        );
        if !self.play.run.options.error_on_missing_handler {
            result.warnings.push(message);
            return result;
        }
        let place = task.notify.first().map_or(&task.place, |written| &written.place);
        let steer = Steer::Abort(Error::input(message.clone()).at(place));
        TaskResult { ignored: result.ignored, steer: Some(steer), ..TaskResult::failed(message) }
    }

    /// What the handlers say that the play knows here.
    pub(super) fn with_handlers<T>(&self, ask: impl FnOnce(&Handlers<'_>) -> T) -> T {
        let stamp = self.play.stamp(self.committed.clone());
        let render = |task: &Arc<Task>, written: &Written| {
            let scope = self.scope(task, &stamp, false, Map::new(), 0);
            scope.context().value(&written.value).map_err(|error| error.message().to_owned())
        };
        let handlers = Handlers::new(&self.growth.handlers, &render);
        for (task, reason) in handlers.unusable.iter().filter(|(task, _)| task.listen.is_empty()) {
            let name = task.name.as_ref().map(|written| written.value.to_text().into_owned()).unwrap_or_default();
            self.play.run.tell(Event::Warning(format!(
                "Handler '{name}' is unusable because it has no listen topics and the name could not be templated \
                 (variables of single hosts may not be there yet). The error: {reason}"
            )));
        }
        ask(&handlers)
    }
}

/// True for an invocation under way whose task can notify handlers.
fn may_notify(slot: &Slot) -> bool {
    !slot.is_ended() && !slot.run.task.notify.is_empty()
}
