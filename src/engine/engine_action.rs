//! Includes, imports and meta: what the engine itself does when the window grows to it.

use std::sync::Arc;

use crate::error::Error;
use crate::host::FailureKind;
use crate::modules::EngineAction;
use crate::playbook::Task;
use crate::value::{Interruption, Map, Value};
use crate::vars::TaskScope;

use super::cursor::Cursor;
use super::event::TaskInfo;
use super::grow::{Grown, failed_loop, register, task_info, unknown_task};
use super::perform::unmet_condition;
use super::result::{Status, Steer, TaskResult};
use super::walk::{Blocked, Walker};
use super::window::{Growth, TaskRun};

impl Walker {
    /// Includes, imports and meta: done by the engine, without the host.
    pub(super) fn grow_engine_action(
        &mut self,
        action: EngineAction,
        task: Arc<Task>,
        scope: TaskScope,
        after: Cursor,
        before: &Growth,
    ) -> Grown {
        let position = after.position();
        if action == EngineAction::Meta {
            return self.grow_meta(task, scope, after, before);
        }
        match super::include::include(&task, &scope, &self.play, action) {
            Ok(included) => {
                self.growth.cursor = after.clone();
                if !included.handlers.is_empty() {
                    let handlers = self.growth.handlers.iter().cloned().chain(included.handlers).collect();
                    self.growth.handlers = Arc::new(handlers);
                }
                if !included.items.is_empty() {
                    self.growth.cursor.enter(Arc::new(included.items));
                }
                let mut info = TaskInfo::clone(&task_info(&task, &scope));
                info.included = Some(included.files);
                let stamp = self.play.stamp(position);
                let mut result = included.result;
                register(&task, &mut result);
                let run = TaskRun::new(task, Arc::new(info), stamp, after, None, false);
                self.push_result(run, before, result);
                Grown::Yes
            }
            Err(failure) => match self.blocking(&failure, &position) {
                Some(blocked) => blocked,
                None => {
                    let result = match failure.kind {
                        FailureKind::Interrupted(Interruption::Unknown(reason)) => unknown_task(&task, &reason),
                        _ => failed_loop(&task, failure),
                    };
                    self.push_ended(task, scope, after, before, result)
                }
            },
        }
    }

    fn grow_meta(&mut self, task: Arc<Task>, scope: TaskScope, after: Cursor, before: &Growth) -> Grown {
        let context = scope.context();
        let position = after.position();
        let name = task.args.get("free_form").or_else(|| task.args.get("_raw_params")).cloned().unwrap_or_default();
        let skipped = match unmet_condition(&task.settings.when, &context) {
            Ok(skipped) => skipped,
            Err(failure) => {
                return match self.blocking(&failure, &position) {
                    Some(blocked) => blocked,
                    None => self.push_ended(Arc::clone(&task), scope, after, before, failed_loop(&task, failure)),
                };
            }
        };
        let name = name.to_text();
        let (done, passed_over) = super::steer::in_words(&name, &self.view.name, task.role.as_deref());
        let outcome = TaskResult::new(Status::Ok, Map::from_iter([("msg".into(), Value::from(done))]));
        if let Some(mut skipped) = skipped {
            let map = Arc::make_mut(&mut skipped.result);
            map.insert("msg".into(), Value::from(name.as_ref()));
            map.insert("skip_reason".into(), Value::from(passed_over));
            map.shift_remove("false_condition");
            return self.push_ended(task, scope, after, before, skipped);
        }
        if name == "noop" {
            return self.push_ended(task, scope, after, before, outcome);
        }
        if name == "flush_handlers" && task.is_handler {
            let error = Error::input("flush_handlers cannot be used as a handler").at(&task.place);
            let failed = TaskResult::failed(error.message());
            let result = TaskResult { steer: Some(Steer::Abort(error)), ..failed };
            return self.push_ended(task, scope, after, before, result);
        }
        if name == "flush_handlers" {
            self.growth.cursor = after;
            return self.flush_handlers().unwrap_or(Grown::Yes);
        }
        if !self.window.is_empty() {
            return Grown::Blocked(Blocked::Alone);
        }
        if name == "refresh_inventory" && !self.play.free && !self.is_granted(&position) {
            // what other hosts' tasks do before may change what is read
            return Grown::Blocked(Blocked::Barrier(position));
        }
        let result = match super::steer::meta(&name) {
            Some(steer) => TaskResult { steer: Some(steer), ..outcome },
            None => TaskResult::failed(format!("invalid meta action requested: {name}")),
        };
        self.push_ended(task, scope, after, before, result)
    }
}
