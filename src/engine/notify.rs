//! Whom results notify: the handlers that the play knows at a place, by name.

use std::sync::Arc;

use crate::error::Error;
use crate::playbook::{Task, Written};
use crate::value::Map;

use super::event::Event;
use super::handler::Handlers;
use super::result::{Steer, TaskResult};
use super::walk::Walker;

impl Walker {
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
