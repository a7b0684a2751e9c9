//! Makes an invocation of a module out of a task: conditions, arguments, settings, and retries.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::connect::Identity;
use crate::host::{Failure, FailureKind, Host};
use crate::modules::{self, FreeForm, Invocation, Module, Outcome, Settings};
use crate::playbook::free_form::RAW_PARAMS;
use crate::playbook::{Task, TaskAction, Written};
use crate::template::{Context, TemplateError, TemplateErrorKind};
use crate::value::{Interruption, Map, Value, object};
use crate::vars::TaskScope;

use super::conclude::conclude;
use super::options::Options;
use super::reach::Reach;
use super::result::TaskResult;

/// A task ready to run on a host: everything rendered.
pub struct Call {
    pub task: Arc<Task>,
    pub module: &'static Module,
    pub args: modules::Args,
    pub settings: Arc<Settings>,
    pub identity: Arc<Identity>,
    pub scope: TaskScope,
    pub context: Context,
    /// The name that the result is registered under.
    pub register: Option<String>,
    pub ignore_errors: bool,
    pub ignore_unreachable: bool,
    pub retry: Option<Retry>,
    pub timeout: Option<Duration>,
}

/// `until`, `retries` and `delay`.
#[derive(Debug, Clone)]
pub struct Retry {
    /// Attempts in all.
    pub attempts: u64,
    pub delay: Duration,
}

/// What preparing a task came to.
pub enum Prepared {
    Run(Box<Call>),
    /// Nothing is to be run: skipped, or the task cannot be understood.
    Done(TaskResult),
    /// A value is not there yet.
    Interrupted(Interruption),
}

/// How an invocation ended.
pub enum Ended {
    /// As the module says; its task is still to be concluded.
    Module(Result<Outcome, Failure>),
    /// Concluded already: a task with `until`.
    Task(Result<TaskResult, Interruption>),
}

/// Prepares a task (or one item of its loop) for the host of `scope`.
pub fn prepare(task: &Arc<Task>, scope: TaskScope, options: &Options) -> Prepared {
    match try_prepare(task, scope, options) {
        Ok(prepared) => prepared,
        Err(Failure { kind: FailureKind::Interrupted(interruption), .. }) => Prepared::Interrupted(interruption),
        Err(failure) => Prepared::Done(fail(task, failure)),
    }
}

/// The result of a task that failed before its module was called.
fn fail(task: &Task, failure: Failure) -> TaskResult {
    let mut result = TaskResult::failed(failure.message);
    Arc::make_mut(&mut result.result).extend(failure.result);
    // keywords that cannot be rendered must not hide the failure: only a plain `true` counts here
    let literal = task.settings.ignore_errors.as_ref().and_then(|written| written.value.to_ansible_bool());
    result.ignored = literal == Some(true);
    result
}

fn try_prepare(task: &Arc<Task>, scope: TaskScope, options: &Options) -> Result<Prepared, Failure> {
    let context = scope.context();
    if let Some(skipped) = unmet_condition(&task.settings.when, &context)? {
        return Ok(Prepared::Done(skipped));
    }
    let (module, external) = match resolve_module(task, &context) {
        Ok(module) => (module, None),
        Err(failure) => match external_module(task, &context, options)? {
            Some(path) => (&modules::external::MODULE, Some(path)),
            None => return Err(failure),
        },
    };
    let reach = Reach { scope: &scope, context: &context, settings: &task.settings, options };
    let register = match &task.register {
        Some(written) => Some(context.value(&written.value)?.to_text().into_owned()),
        None => None,
    };
    let (timeout, background) = time_limits(task, &reach)?;
    if positive(number(&task.asynchronous, "async", &reach)?).is_some()
        && let Some(refusal) = modules::background::never(module)
    {
        return Err(Failure::new(refusal));
    }
    if background.is_some()
        && let Some(refusal) = modules::background::refusal(module)
    {
        return Err(Failure::new(format!("{refusal} ({})", task.place)));
    }
    let settings = Settings {
        background,
        time_limit: timeout,
        check: reach.optional_flag("check_mode")?.unwrap_or(options.check),
        diff: reach.optional_flag("diff")?.unwrap_or(options.diff),
        no_log: reach.flag("no_log")?,
        verbosity: options.verbosity,
        environment: reach.environment()?,
        only_looks: matches!(task.changed_when.as_slice(), [only] if only.value.to_ansible_bool() == Some(false)),
        plain_failure: task.failed_when.is_empty() && task.until.is_empty(),
        external,
        records: options.records.clone(),
        target: if module.bare_name() == "synchronize" { Some(Arc::new(reach.target()?)) } else { None },
    };
    let given = arguments(task, module, &scope, &context)?;
    let args = modules::args::validate(module, &given)?;
    let retry = retry(task, &reach)?;
    let call = Call {
        task: Arc::clone(task),
        module,
        args,
        settings: Arc::new(settings),
        identity: reach.identity()?,
        register,
        ignore_errors: reach.flag("ignore_errors")?,
        ignore_unreachable: reach.flag("ignore_unreachable")?,
        retry,
        timeout,
        scope,
        context,
    };
    Ok(Prepared::Run(Box::new(call)))
}

/// The result of a task whose conditions are not all true.
pub fn unmet_condition(conditions: &[Written], context: &Context) -> Result<Option<TaskResult>, Failure> {
    for condition in conditions {
        let met = context.condition(&condition.value).map_err(|error| {
            let failure = Failure::from(error);
            match failure.kind {
                FailureKind::Failed => Failure::new(format!(
                    "The conditional check '{}' failed. The error was: {} ({})",
                    condition.value.to_text(),
                    failure.message,
                    condition.place
                )),
                _ => failure,
            }
        })?;
        if !met {
            let mut skipped = TaskResult::skipped("Conditional result was False");
            Arc::make_mut(&mut skipped.result).insert("false_condition".into(), condition.value.clone().into_data());
            return Ok(Some(skipped));
        }
    }
    Ok(None)
}

/// The module that a task calls.
pub fn resolve_module(task: &Task, context: &Context) -> Result<&'static Module, Failure> {
    let name = match &task.action {
        TaskAction::Module(module) => return Ok(module),
        TaskAction::Unknown(name) => name.clone(),
        TaskAction::Template(written) => context.value(&written.value)?.to_text().into_owned(),
    };
    modules::find(&name).ok_or_else(|| {
        let near = crate::error::nearest(&name, modules::MODULES.iter().map(|module| module.bare_name()));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Failure::new(format!("couldn't resolve module/action '{name}' ({}){hint}", task.place))
    })
}

/// The file of the module that a task calls, if it is one of the user's own.
fn external_module(task: &Task, context: &Context, options: &Options) -> Result<Option<PathBuf>, Failure> {
    let name = match &task.action {
        TaskAction::Module(_) => return Ok(None),
        TaskAction::Unknown(name) => name.clone(),
        TaskAction::Template(written) => context.value(&written.value)?.to_text().into_owned(),
    };
    Ok(modules::external::find(&name, &context.search, &options.library))
}

/// The arguments of a task, rendered: module_defaults below `args:` below its own; what is `omit` is left out.
pub fn arguments(task: &Task, module: &'static Module, scope: &TaskScope, context: &Context) -> Result<Map, Failure> {
    let mut given = Map::new();
    for written in &task.settings.module_defaults {
        let defaults = context.value(&written.value)?;
        for (name, arguments) in defaults.as_map().into_iter().flatten() {
            let applies = name.as_str().and_then(modules::find).is_some_and(|found| std::ptr::eq(found, module));
            if applies && let Some(arguments) = arguments.as_map() {
                given.extend(arguments.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
    if let Some(template) = &task.args_template {
        let more = context.value(&template.value).map_err(|error| unrendered(error, task))?;
        match more.as_map() {
            Some(more) => given.extend(more.iter().map(|(key, value)| (key.clone(), value.clone()))),
            None => {
                return Err(Failure::new(format!(
                    "`args` must become a map of arguments, got {} ({})",
                    more.type_name(),
                    template.place
                )));
            }
        }
    }
    let mut own = task.args.clone();
    // each condition of a list is rendered where it is evaluated
    let conditions = match own.get("that") {
        Some(Value::List(_)) if module.bare_name() == "assert" => own.shift_remove("that"),
        _ => None,
    };
    given.extend(conditions.map(|conditions| ("that".into(), conditions)));
    let own = context.value(&Value::map(own)).map_err(|error| unrendered(error, task))?;
    let renders_names = module.bare_name() == "set_fact";
    for (key, value) in own.as_map().into_iter().flatten() {
        let key = if renders_names && key.has_templates() { context.value(key)?.into_data() } else { key.clone() };
        given.insert(key, value.clone());
    }
    if module.free_form == FreeForm::No
        && let Some(text) = given.get(RAW_PARAMS).filter(|_| module.arg(RAW_PARAMS).is_none())
    {
        return Err(Failure::new(format!("invalid or malformed argument: '{}' ({})", text.to_text(), task.place)));
    }
    let omit = scope.run.magic.get("omit").and_then(Value::as_str).map(str::to_owned);
    Ok(match omit {
        Some(omit) => without_omitted(given, &omit),
        None => given,
    })
}

/// The failure of a task whose arguments cannot be rendered. Where a value was of no use for what is done with it, the
/// result says where, as `exception`.
fn unrendered(error: TemplateError, task: &Task) -> Failure {
    let message = error.to_string();
    if error.interruption().is_some() {
        return error.into();
    }
    let (is_undefined, is_failed) = (error.is_undefined(), *error.kind() == TemplateErrorKind::Failed);
    let failure = Failure::from(error);
    if is_undefined {
        let message = format!(
            "The task includes an option with an undefined variable. The error was: {message} ({})",
            task.place
        );
        return Failure { message, ..failure };
    }
    if is_failed { failure.with("exception", format!("{}: {message}", task.place)) } else { failure }
}

/// Leaves out the entries that are the `omit` marker, at any depth.
fn without_omitted(map: Map, omit: &str) -> Map {
    map.into_iter()
        .filter(|(_, value)| value.as_str() != Some(omit))
        .map(|(key, value)| (key, strip_omitted(value, omit)))
        .collect()
}

fn strip_omitted(value: Value, omit: &str) -> Value {
    match value {
        Value::Map(map) => without_omitted(Map::clone(&map), omit).into(),
        Value::List(items) => Value::list(
            items
                .iter()
                .filter(|item| item.as_str() != Some(omit))
                .map(|item| strip_omitted(item.clone(), omit))
                .collect(),
        ),
        other => other,
    }
}

pub(super) fn number(written: &Option<Written>, keyword: &str, reach: &Reach) -> Result<Option<f64>, Failure> {
    let Some(written) = written else { return Ok(None) };
    let value = reach.context.value(&written.value)?;
    if value.is_null() || reach.scope.is_omitted(&value) {
        return Ok(None);
    }
    let number = match &value {
        Value::Float(number) => Some(*number),
        Value::Str(text) => text.as_str().trim().parse().ok(),
        other => other.as_int().map(|number| number as f64),
    };
    number.map(Some).ok_or_else(|| {
        Failure::new(format!("the keyword `{keyword}` wants a number, got `{}` ({})", value.to_text(), written.place))
    })
}

fn positive(seconds: Option<f64>) -> Option<f64> {
    seconds.filter(|seconds| *seconds > 0.0)
}

/// How long the task may take: `timeout`, or `async` of a task that is waited for. Second, how long what it starts in
/// the background may: `async` with `poll: 0`.
fn time_limits(task: &Task, reach: &Reach) -> Result<(Option<Duration>, Option<Duration>), Failure> {
    let seconds = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| Failure::new(format!("{seconds} is no number of seconds ({})", task.place)))
    };
    let limit = positive(number(&task.asynchronous, "async", reach)?);
    let waits = number(&task.poll, "poll", reach)?.is_none_or(|seconds| seconds > 0.0);
    let timeout = positive(number(&task.settings.timeout, "timeout", reach)?);
    let waited = [timeout, limit.filter(|_| waits)].into_iter().flatten().reduce(f64::min);
    Ok((waited.map(seconds).transpose()?, limit.filter(|_| !waits).map(seconds).transpose()?))
}

/// `until` means three retries five seconds apart unless `retries` and `delay` say otherwise; `retries`
/// without `until` retries until the task succeeds.
fn retry(task: &Task, reach: &Reach) -> Result<Option<Retry>, Failure> {
    if task.until.is_empty() && task.retries.is_none() {
        return Ok(None);
    }
    let retries = number(&task.retries, "retries", reach)?.unwrap_or(3.0).max(0.0);
    let delay = number(&task.delay, "delay", reach)?.unwrap_or(5.0).max(0.0);
    Ok(Some(Retry { attempts: retries as u64 + 1, delay: Duration::from_secs_f64(delay) }))
}

/// Calls the module, again and again where the task says `until`.
pub async fn perform(call: Arc<Call>, host: Host) -> Ended {
    let Some(retry) = call.retry.clone() else {
        return Ended::Module(run_module(&call, &host).await);
    };
    let mut attempt = 1;
    loop {
        // conditions may ask which attempt it is
        let ended = match run_module(&call, &host).await {
            Ok(outcome) => Ok(outcome.with("attempts", attempt)),
            Err(failure) => Err(failure.with("attempts", attempt)),
        };
        let concluded = match conclude(&call, ended) {
            Ok(concluded) => concluded,
            Err(interruption) => return Ended::Task(Err(interruption)),
        };
        let (mut result, satisfied) = match until_is_met(&call, concluded) {
            Ok(decided) => decided,
            Err(failure) => return Ended::Module(Err(failure)),
        };
        Arc::make_mut(&mut result.result).insert("attempts".into(), Value::from(attempt));
        if satisfied || attempt >= retry.attempts {
            if !satisfied {
                result = super::conclude::exhausted(&call, result);
            }
            return Ended::Task(Ok(super::conclude::register_again(&call, result)));
        }
        attempt += 1;
        if let Err(failure) = host.turn().await {
            return Ended::Module(Err(failure));
        }
        tokio::time::sleep(retry.delay).await;
        if let Err(failure) = host.turn().await {
            return Ended::Module(Err(failure));
        }
    }
}

/// True if the task need not be tried again.
fn until_is_met(call: &Call, result: TaskResult) -> Result<(TaskResult, bool), Failure> {
    use super::result::Status;
    if matches!(result.status, Status::Skipped | Status::Unreachable | Status::Unknown) {
        return Ok((result, true));
    }
    if call.task.until.is_empty() {
        let satisfied = result.status != Status::Failed;
        return Ok((result, satisfied));
    }
    let context = super::conclude::context_with_result(call, &result.result);
    for condition in &call.task.until {
        if !context.condition(&condition.value)? {
            return Ok((result, false));
        }
    }
    Ok((result, true))
}

async fn run_module(call: &Call, host: &Host) -> Result<Outcome, Failure> {
    let invocation = Invocation {
        args: call.args.clone(),
        host: host.clone(),
        context: call.context.clone(),
        settings: Arc::clone(&call.settings),
    };
    let modules::Action::Module(run) = call.module.action else {
        return Err(Failure::new(format!("`{}` cannot be used here", call.module.bare_name())));
    };
    let Some(limit) = call.timeout else { return run(invocation).await };
    // its time begins when everything before it has ended
    host.turn().await?;
    let begun = std::time::Instant::now();
    match tokio::time::timeout(limit, run(invocation)).await {
        // while a host works, nobody looks at the clock
        Ok(ended) if begun.elapsed() < limit => ended,
        _ => Err(Failure::new(format!(
            "The {} action failed to execute in the expected time frame ({}) and was terminated",
            call.module.bare_name(),
            limit.as_secs()
        ))
        .with("timedout", object([("period", Value::from(limit.as_secs() as i64))]))),
    }
}
