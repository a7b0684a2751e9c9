//! include_tasks, include_role and the old include: what they bring, once their arguments are known.

use std::sync::Arc;

use crate::error::{Error, Kind};
use crate::host::Failure;
use crate::modules::{self, Args, EngineAction};
use crate::playbook::{self, IncludeFrom, Item, Task};
use crate::value::{Map, Value};
use crate::vars::TaskScope;
use crate::vars::runtime::Additions;

use super::conclude::whole_loop;
use super::looping::{self, Looped};
use super::perform::{arguments, resolve_module, unmet_condition};
use super::play::PlayRun;
use super::result::{Status, Steer, TaskResult};

/// What an include came to.
pub struct Included {
    pub result: TaskResult,
    pub items: Vec<Item>,
    pub handlers: Vec<Item>,
    /// The files or roles, for the report.
    pub files: Vec<String>,
}

/// Evaluates an include, each item of its loop too.
pub fn include(task: &Arc<Task>, scope: &TaskScope, play: &PlayRun, action: EngineAction) -> Result<Included, Failure> {
    let context = scope.context();
    let looped = match looping::loop_of(task, &context) {
        Ok(looped) => looped,
        Err(failure) => match unmet_condition(&task.settings.when, &context) {
            Ok(Some(skipped)) => return Ok(Included::nothing(skipped)),
            _ => return Err(failure),
        },
    };
    let Some(Looped { items, looping }) = looped else {
        let mut included = Included::nothing(TaskResult::new(Status::Ok, Map::new()));
        let result = one(task, scope, play, action, Map::new(), &mut included)?;
        included.result = result;
        return Ok(included);
    };
    let mut included = Included::nothing(TaskResult::new(Status::Ok, Map::new()));
    let mut results = Vec::new();
    for index in 0..items.len() {
        let variables = looping::item_variables(&looping, &items, index);
        let scope = scope.with_local(variables.clone());
        let mut result = one(task, &scope, play, action, variables, &mut included)?;
        let name = looping::loop_variable(&looping);
        Arc::make_mut(&mut result.result).insert(Value::from(name), items[index].clone().into_data());
        results.push(result);
    }
    let additions: Vec<_> = results.iter().filter_map(|result| result.additions.role.clone()).collect();
    included.result =
        if results.is_empty() { TaskResult::skipped("No items in the list") } else { whole_loop(None, &results) };
    included.result.steer = results.into_iter().find_map(|result| result.steer);
    if let Some(role) = additions.last() {
        included.result.additions = Arc::new(Additions { role: Some(Arc::clone(role)), ..Additions::default() });
    }
    Ok(included)
}

impl Included {
    fn nothing(result: TaskResult) -> Included {
        Included { result, items: Vec::new(), handlers: Vec::new(), files: Vec::new() }
    }
}

/// One inclusion, added to what is included already.
fn one(
    task: &Arc<Task>,
    scope: &TaskScope,
    play: &PlayRun,
    action: EngineAction,
    params: Map,
    included: &mut Included,
) -> Result<TaskResult, Failure> {
    let context = scope.context();
    if let Some(skipped) = unmet_condition(&task.settings.when, &context)? {
        return Ok(skipped);
    }
    let module = resolve_module(task, &context)?;
    let args = modules::args::validate(module, &arguments(task, module, scope, &context)?)?;
    let params = Arc::new(params);
    let mut result = Map::new();
    let brought = match action {
        EngineAction::IncludeRole | EngineAction::ImportRole => {
            let name = args.text("name").to_owned();
            included.files.push(name.clone());
            let from = from(&args);
            playbook::load_role(&name, &from, task, &play.play, &params, &play.run.load)
        }
        _ => {
            let file = args.text("file").to_owned();
            result.insert("include".into(), file.as_str().into());
            result.insert("include_args".into(), Value::empty_map());
            playbook::load_tasks(&file, task, &play.play, &params, &play.run.load)
        }
    };
    let brought = match brought {
        Ok(brought) => brought,
        // what is no playbook ends the run, as it would if it were imported
        Err(error) if error.kind() == Kind::Parse => {
            let failed = TaskResult::failed(in_one_line(&error));
            return Ok(TaskResult { steer: Some(Steer::Abort(error)), ..failed });
        }
        Err(error) => return Err(Failure::new(in_one_line(&error))),
    };
    included.files.extend(brought.file.iter().map(|file| file.to_string_lossy().into_owned()));
    included.items.extend(brought.items.iter().cloned());
    included.handlers.extend(brought.handlers.iter().cloned());
    let mut result = TaskResult::new(Status::Ok, result);
    if let Some(role) = brought.role.iter().chain(&brought.roles).find(|role| role.public) {
        result.additions = Arc::new(Additions { role: Some(Arc::clone(role)), ..Additions::default() });
    }
    Ok(result)
}

fn from(args: &Args) -> IncludeFrom {
    let name = |name: &str| args.str(name).map(str::to_owned);
    IncludeFrom {
        tasks_from: name("tasks_from"),
        vars_from: name("vars_from"),
        defaults_from: name("defaults_from"),
        handlers_from: name("handlers_from"),
        rolespec_validate: args.optional_bool("rolespec_validate").unwrap_or(true),
        allow_duplicates: args.optional_bool("allow_duplicates").unwrap_or(true),
        public: args.optional_bool("public"),
    }
}

/// An error of loading as the message of a task: the place first, hints behind.
fn in_one_line(error: &Error) -> String {
    let mut text = error.to_string();
    for hint in error.hints() {
        text.push_str(&format!(" ({hint})"));
    }
    for other in error.others() {
        text.push_str(&format!("; {other}"));
    }
    text
}
