//! From a module's outcome to the result of its task: changed_when, failed_when, ignore_errors, notify, register.

use std::sync::Arc;

use crate::host::{Difference, Failure, FailureKind};
use crate::modules::{Effect, Module, Outcome};
use crate::template::Context;
use crate::value::{Interruption, Map, Value};
use crate::vars::runtime::Additions;

use super::perform::Call;
use super::play::Addition;
use super::result::{Status, Steer, TaskResult};

/// Concludes an invocation. Interrupted if a value that the task's keywords need is not there yet.
pub fn conclude(call: &Call, ended: Result<Outcome, Failure>) -> Result<TaskResult, Interruption> {
    match try_conclude(call, ended) {
        Ok(result) => Ok(result),
        Err(Failure { kind: FailureKind::Interrupted(Interruption::Unknown(reason)), .. }) => {
            Ok(unknown(call, &reason))
        }
        Err(Failure { kind: FailureKind::Interrupted(interruption), .. }) => Err(interruption),
        Err(failure) => {
            let mut result = TaskResult::failed(failure.message);
            result.ignored = call.ignore_errors;
            Ok(register_again(call, result))
        }
    }
}

/// The result of a task of which check mode cannot know what it would do.
pub fn unknown(call: &Call, reason: &str) -> TaskResult {
    let mut map = Map::new();
    map.insert("unknown".into(), true.into());
    map.insert("msg".into(), Value::from(format!("unknown until applied: {reason}")));
    let mut result = TaskResult::new(Status::Unknown, map);
    let mut names: Vec<String> = call.register.iter().cloned().collect();
    names.extend(
        call.args.map().keys().filter(|_| call.module.bare_name() == "set_fact").map(|key| key.to_text().into_owned()),
    );
    let with_reason = |name: String| (name, reason.to_owned());
    let facts = call.module.own_facts().map(|name| with_reason(name.to_owned())).collect();
    let unknown = names.into_iter().map(with_reason).collect();
    result.additions = Arc::new(Additions { unknown, unknown_facts: facts, ..Additions::default() });
    result
}

fn try_conclude(call: &Call, ended: Result<Outcome, Failure>) -> Result<TaskResult, Failure> {
    let (mut map, mut status, effect, warnings) = match ended {
        Ok(outcome) => from_outcome(outcome, call.module, call.settings.diff),
        Err(Failure { kind: FailureKind::Interrupted(interruption), .. }) => {
            return Err(Failure::interrupted(interruption));
        }
        Err(failure) => from_failure(failure),
    };
    if !matches!(status, Status::Skipped | Status::Unreachable) {
        let decided = decide_changed(call, &mut map, &mut status).map_err(|failure| ("changed_when_result", failure));
        let decided = decided.and_then(|()| {
            decide_failed(call, &mut map, &mut status).map_err(|failure| ("failed_when_result", failure))
        });
        match decided {
            Ok(()) => {}
            Err((_, failure)) if matches!(failure.kind, FailureKind::Interrupted(_)) => return Err(failure),
            Err((key, failure)) => {
                condition_failed(&mut map, key, failure.message);
                status = Status::Failed;
            }
        }
    }
    if call.settings.verbosity >= 3 && call.module.asks_the_host() {
        map.insert("invocation".into(), invocation(call));
    }
    let mut additions = Additions::default();
    let mut steer = None;
    match effect {
        Effect::None => {}
        Effect::Facts(facts) => {
            map.insert("ansible_facts".into(), facts.clone().into());
            additions.facts = Some(facts);
        }
        Effect::SetFacts { variables, cacheable } => {
            map.insert("ansible_facts".into(), variables.clone().into());
            if cacheable {
                additions.facts = Some(variables.clone());
            }
            additions.set_facts = Some(variables);
        }
        Effect::IncludeVars(variables) => {
            map.insert("ansible_facts".into(), variables.clone().into());
            additions.include_vars = Some(variables);
        }
        Effect::AddHost { name, groups, variables } => {
            steer = Some(Steer::Add(Addition::Host { name, groups, variables }));
        }
        Effect::GroupBy { group, parents } => {
            let host = Arc::clone(&call.scope.host.name);
            steer = Some(Steer::Add(Addition::Group { host, group, parents }));
        }
        Effect::Stats { data, per_host, aggregate } => steer = Some(Steer::Stats { data, per_host, aggregate }),
    }
    if status == Status::Failed {
        // what a failed task found out does not count, as in Ansible
        additions = Additions::default();
        steer = None;
    }
    let notify = if status == Status::Changed { notified(call)? } else { Vec::new() };
    let result = TaskResult {
        status,
        result: Arc::new(map),
        ignored: match status {
            Status::Failed => call.ignore_errors,
            Status::Unreachable => call.ignore_unreachable,
            _ => false,
        },
        additions: Arc::new(additions),
        notify,
        steer,
        warnings,
    };
    Ok(register_again(call, result))
}

fn from_outcome(outcome: Outcome, module: &Module, diff: bool) -> (Map, Status, Effect, Vec<String>) {
    let mut map = outcome.result;
    map.insert("changed".into(), outcome.changed.into());
    map.entry("failed".into()).or_insert_with(|| false.into());
    add_lines(&mut map);
    // content may be secret, so it is told only if it was asked for
    let is_told = |difference: &&Difference| diff || difference.state.is_some() || module.always_tells_differences();
    let differences: Vec<&Difference> = outcome.differences.iter().filter(is_told).collect();
    if !differences.is_empty() {
        let diff = match differences.as_slice() {
            [single] if single.state.is_some() || !module.lists_differences() => single.to_value(),
            several => Value::list(several.iter().map(|difference| difference.to_value()).collect()),
        };
        map.insert("diff".into(), diff);
    }
    note_warnings(&mut map, &outcome.warnings);
    let status = if outcome.skipped {
        map.insert("skipped".into(), true.into());
        Status::Skipped
    } else if outcome.changed {
        Status::Changed
    } else {
        Status::Ok
    };
    (map, status, outcome.effect, outcome.warnings)
}

/// Whatever a module prints comes as lines too.
fn add_lines(map: &mut Map) {
    for (name, lines) in [("stdout", "stdout_lines"), ("stderr", "stderr_lines")] {
        if let Some(text) = map.get(name).and_then(Value::as_str)
            && !map.contains_key(lines)
        {
            let text = text.lines().map(Value::from).collect::<Vec<_>>();
            map.insert(lines.into(), Value::list(text));
        }
    }
}

fn note_warnings(map: &mut Map, warnings: &[String]) {
    if !warnings.is_empty() {
        let texts = warnings.iter().map(|text| Value::from(text.as_str())).collect();
        map.insert("warnings".into(), Value::list(texts));
    }
}

fn from_failure(failure: Failure) -> (Map, Status, Effect, Vec<String>) {
    let mut map = failure.result;
    map.insert("msg".into(), Value::from(failure.message));
    map.entry("changed".into()).or_insert_with(|| false.into());
    add_lines(&mut map);
    note_warnings(&mut map, &failure.warnings);
    let status = match failure.kind {
        FailureKind::Unreachable => {
            map.insert("unreachable".into(), true.into());
            Status::Unreachable
        }
        _ => {
            map.insert("failed".into(), true.into());
            Status::Failed
        }
    };
    (map, status, Effect::None, failure.warnings)
}

/// The task's context with its result under the registered name.
pub fn context_with_result(call: &Call, result: &Map) -> Context {
    match &call.register {
        None => call.context.clone(),
        Some(name) => {
            let result = Value::map(result.clone()).into_data();
            call.scope.with_local([(Value::from(name.as_str()), result)]).context()
        }
    }
}

fn decide_changed(call: &Call, map: &mut Map, status: &mut Status) -> Result<(), Failure> {
    if call.task.changed_when.is_empty() || *status == Status::Unknown {
        return Ok(());
    }
    let context = context_with_result(call, map);
    let mut changed = true;
    for condition in &call.task.changed_when {
        changed = changed && context.condition(&condition.value)?;
    }
    map.insert("changed".into(), changed.into());
    if *status != Status::Failed {
        *status = if changed { Status::Changed } else { Status::Ok };
    }
    Ok(())
}

fn decide_failed(call: &Call, map: &mut Map, status: &mut Status) -> Result<(), Failure> {
    if call.task.failed_when.is_empty() || *status == Status::Unknown {
        return Ok(());
    }
    let context = context_with_result(call, map);
    let mut failed = true;
    for condition in &call.task.failed_when {
        failed = failed && context.condition(&condition.value)?;
    }
    map.insert("failed".into(), failed.into());
    map.insert("failed_when_result".into(), failed.into());
    let changed = map.get("changed").is_some_and(Value::is_truthy);
    *status = match (failed, changed) {
        (true, _) => Status::Failed,
        (false, true) => Status::Changed,
        (false, false) => Status::Ok,
    };
    Ok(())
}

/// What the module was called with, secrets left out: for `-vvv`.
fn invocation(call: &Call) -> Value {
    let is_secret = |name: &str| call.module.arg(name).is_some_and(|arg| arg.secret);
    let shown = call.args.map().iter().map(|(name, value)| {
        let hidden = is_secret(&name.to_text()) && !value.is_null();
        let value = if hidden { Value::from("VALUE_SPECIFIED_IN_NO_LOG_PARAMETER") } else { value.clone() };
        (name.clone(), value.into_data())
    });
    Map::from_iter([("module_args".into(), Value::map(shown.collect()))]).into()
}

/// A condition that cannot be evaluated fails the task; what the module found out is kept beside the reason.
fn condition_failed(map: &mut Map, key: &str, message: String) {
    map.insert("failed".into(), true.into());
    map.insert(key.into(), Value::from(message.as_str()));
    let has_message = map.get("msg").is_some_and(|text| !text.is_null() && !text.to_text().is_empty());
    if !has_message {
        map.insert("msg".into(), Value::from(message));
    }
}

fn notified(call: &Call) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for written in &call.task.notify {
        match call.context.value(&written.value)? {
            Value::List(items) => names.extend(items.iter().map(|item| item.to_text().into_owned())),
            Value::Null => {}
            single => names.push(single.to_text().into_owned()),
        }
    }
    Ok(names)
}

/// A result as playbooks see it: without the marks that are for reports.
fn registered(result: &Map) -> Value {
    let is_mark = |key: &Value| key.as_str().is_some_and(|key| key.starts_with("_ansible_"));
    let entries = result.iter().filter(|(key, _)| !is_mark(key));
    Value::map(entries.map(|(key, value)| (key.clone(), value.clone())).collect()).into_data()
}

/// Puts the result under its registered name, once it is final.
pub fn register_again(call: &Call, mut result: TaskResult) -> TaskResult {
    if let Some(name) = &call.register {
        let value = registered(&result.result);
        let mut additions = Additions::clone(&result.additions);
        additions.set_facts.get_or_insert_default().insert(Value::from(name.as_str()), value);
        result.additions = Arc::new(additions);
    }
    result
}

/// The result of a task whose `until` never came true.
pub fn exhausted(call: &Call, mut result: TaskResult) -> TaskResult {
    let map = Arc::make_mut(&mut result.result);
    map.insert("failed".into(), true.into());
    map.entry("msg".into()).or_insert_with(|| "the retries are used up and `until` never became true".into());
    // Ansible counts the retries here, not the attempts
    if let Some(retry) = &call.retry {
        map.insert("attempts".into(), Value::from(retry.attempts - 1));
    }
    // a condition that says it did not fail has the last word
    if map.get("failed_when_result") == Some(&Value::Bool(false)) {
        return result;
    }
    result.status = Status::Failed;
    result.ignored = call.ignore_errors;
    result.notify.clear();
    result
}

/// The result of a whole loop from the results of its items.
pub fn whole_loop(call_name: Option<&str>, items: &[TaskResult]) -> TaskResult {
    let results: Vec<Value> = items.iter().map(|item| registered(&item.result)).collect();
    let any = |status: Status| items.iter().any(|item| item.status == status);
    let failed = items.iter().any(|item| item.status == Status::Failed);
    let fatal = items.iter().any(|item| item.status == Status::Failed && !item.ignored);
    let changed = items.iter().any(|item| item.result.get("changed").is_some_and(Value::is_truthy));
    let skipped = !items.is_empty() && items.iter().all(|item| item.status == Status::Skipped);
    let mut map = Map::new();
    map.insert("results".into(), Value::list(results));
    map.insert("changed".into(), changed.into());
    map.insert("skipped".into(), skipped.into());
    if skipped {
        map.insert("msg".into(), "All items skipped".into());
    } else if failed {
        map.insert("failed".into(), true.into());
        map.insert("msg".into(), "One or more items failed".into());
    } else {
        map.insert("msg".into(), "All items completed".into());
    }
    let status = if any(Status::Unreachable) {
        Status::Unreachable
    } else if failed {
        Status::Failed
    } else if skipped {
        Status::Skipped
    } else if changed {
        Status::Changed
    } else if any(Status::Unknown) {
        Status::Unknown
    } else {
        Status::Ok
    };
    let mut result = TaskResult::new(status, map);
    result.ignored = failed && !fatal;
    if let Some(name) = call_name {
        let value = Value::map(Map::clone(&result.result)).into_data();
        let set_facts = Map::from_iter([(Value::from(name), value)]);
        result.additions = Arc::new(Additions { set_facts: Some(set_facts), ..Additions::default() });
    }
    result
}
