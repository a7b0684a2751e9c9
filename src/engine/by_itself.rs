//! Tasks that cannot share a window: those that delegate, run once for all hosts, reach their host in
//! another way, or let time pass between the items of their loop.

use std::sync::Arc;
use std::time::Duration;

use crate::host::{Failure, FailureKind};
use crate::playbook::{Task, Written};
use crate::template::{Context, Scope};
use crate::value::{Interruption, Map, Value};
use crate::vars::TaskScope;

use super::alone::{Record, run_alone};
use super::barrier::{Course, OnceTurn};
use super::commit::{Commitment, may_hide};
use super::conclude::{conclude, unknown, whole_loop};
use super::cursor::Cursor;
use super::debugger::{Debugging, Next};
use super::grow::{register, task_info, unknown_task};
use super::handler::HandlerId;
use super::lane::Lane;
use super::looping;
use super::options::Options;
use super::perform::{Ended, Prepared, number, prepare, unmet_condition};
use super::play::stranger;
use super::reach::Reach;
use super::result::{Status, TaskResult};
use super::view::host_view;
use super::walk::{Walker, add_item};
use super::window::{Part, TaskRun};

/// What one invocation came to, and where it was done.
struct Done {
    result: TaskResult,
    delegated_to: Option<String>,
    /// `None`: not rendered.
    no_log: Option<bool>,
    diff: bool,
}

/// `ansible_delegated_vars`: the variables of the host that is delegated to, by its name.
fn delegated_vars(task: &Task, scope: &TaskScope) -> Option<Value> {
    let written = task.settings.delegate_to.as_ref()?;
    let name = scope.context().value(&written.value).ok().filter(|name| !name.is_null() && !scope.is_omitted(name))?;
    let Some(Value::Object(hosts)) = scope.get("hostvars").ok()? else { return None };
    let variables = hosts.get(&name).ok()?;
    Some(Value::map(Map::from_iter([(name, variables.unwrap_or_else(|| Value::map(Map::new())))])))
}

/// How far a task got.
enum Tried {
    Done(Part, Done),
    /// The host was lost on the way.
    HandedOn(TaskResult),
}

impl Done {
    fn without_module(result: TaskResult) -> Done {
        Done { result, delegated_to: None, no_log: None, diff: false }
    }
}

impl Walker {
    /// Runs a task with an empty window, from its conditions to its result.
    pub(super) async fn run_by_itself(&mut self, task: Arc<Task>, after: Cursor) {
        let position = after.position();
        let for_all = self.is_once(&task, &position);
        let elsewhere = task.settings.delegate_to.as_ref().is_some_and(is_another_host);
        // where each host goes its own way, none waits for another's turn
        let elsewhere = elsewhere && !self.play.free;
        // behind it all hosts are in their groups
        let regroups = !self.play.free
            && matches!(&task.action, crate::playbook::TaskAction::Module(module) if module.bare_name() == "group_by");
        // no host may still be at the task before one that only so many may run
        let throttled = task.settings.throttle.is_some() && !self.play.free;
        if for_all || elsewhere || throttled || self.play.strict {
            self.wait_for_all(&position).await;
        }
        if self.play.in_order && !for_all {
            let (host, hosts) = (self.host, self.play.hosts.clone());
            self.wait_until(|course, _| course.is_turn_of(host, &hosts, &position)).await;
        }
        if self.play.course.is_stopped() {
            return;
        }
        // another host may have failed them all meanwhile
        if self.follow_fatal_before(Some(position.clone())) {
            return;
        }
        let stamp = self.play.stamp(position.clone());
        let mut granted = self.play.course.all_reached(&position);
        let mut scope = self.scope(&task, &stamp, granted, Map::new(), 0);
        let mut items = looping::loop_of(&task, &scope.context());
        if matches!(&items, Err(failure) if failure.kind == FailureKind::Interrupted(Interruption::Barrier)) {
            self.wait_for_all(&position).await;
            granted = true;
            scope = self.scope(&task, &stamp, granted, Map::new(), 0);
            items = looping::loop_of(&task, &scope.context());
        }
        let info = task_info(&task, &scope);
        let (items, early) = match items {
            Ok(items) => (items, None),
            Err(failure) => (None, Some(self.loop_failure(&task, &scope, failure))),
        };
        let limit = throttle(&task, &self.scope(&task, &stamp, true, Map::new(), 0), &self.play.run.options);
        let run = TaskRun::new(Arc::clone(&task), info, stamp, after, items, granted);
        if for_all {
            match self.turn_of_once(&position).await {
                OnceTurn::Done(result) => {
                    // what the one host found out counts for all; it alone reports it
                    let additions = Arc::clone(&result.additions);
                    self.look_at_inventory();
                    self.adopt(&run.stamp, &additions);
                    if task.is_handler {
                        self.notified.remove(HandlerId::of(&task));
                    }
                    self.growth.cursor = run.after.clone();
                    if result.is_fatal() {
                        let rescued = result.status != Status::Unreachable && run.after.is_rescuable();
                        self.fail(&run, run.after.clone(), &result, rescued);
                    }
                    return;
                }
                OnceTurn::Run | OnceTurn::Wait => {}
            }
        }
        self.growth.cursor = run.after.clone();
        let result = match (early, limit) {
            (Some(result), _) => self.hand_on(&run, Part::Single, None, Done::without_module(result)),
            (None, Err(failure)) => {
                let mut result = TaskResult::failed(failure.message);
                register(&task, &mut result);
                self.hand_on(&run, Part::Single, None, Done::without_module(result))
            }
            (None, Ok(None)) => self.run_items(&run).await,
            (None, Ok(Some(limit))) => {
                if !self.wait_to_enter(&position, limit).await {
                    return;
                }
                let result = self.run_items(&run).await;
                self.play.course.leave(&position);
                result
            }
        };
        if for_all {
            self.play.course.once_done(&position, Arc::new(result));
        }
        if elsewhere || regroups {
            self.wait_until_past(&position).await;
        }
        if regroups {
            self.look_at_inventory();
        }
    }

    /// Sees the hosts and groups that other hosts have added meanwhile.
    fn look_at_inventory(&mut self) {
        self.view = Arc::new(host_view(&self.play.run.inventory(), self.host));
    }

    /// A loop that cannot be evaluated: skipped if a condition is false anyway.
    fn loop_failure(&self, task: &Task, scope: &TaskScope, failure: Failure) -> TaskResult {
        if let Ok(Some(skipped)) = unmet_condition(&task.settings.when, &scope.context()) {
            return skipped;
        }
        match failure.kind {
            FailureKind::Interrupted(Interruption::Unknown(reason)) => unknown_task(task, &reason),
            _ => TaskResult::failed(failure.message),
        }
    }

    pub(super) fn is_once(&self, task: &Arc<Task>, position: &[u32]) -> bool {
        let add_host =
            matches!(&task.action, crate::playbook::TaskAction::Module(module) if module.bare_name() == "add_host");
        if add_host {
            return true;
        }
        let Some(written) = &task.settings.run_once else { return false };
        if self.play.free {
            let place = &task.place;
            let words =
                format!("`run_once` does not count with the strategy `free`: every host runs the task ({place})");
            self.play.run.vars.warnings.add(words);
            return false;
        }
        let stamp = self.play.stamp(position.to_vec());
        let scope = self.scope(task, &stamp, true, Map::new(), 0);
        scope.context().value(&written.value).ok().and_then(|value| value.to_ansible_bool()).unwrap_or(false)
    }

    /// True unless hosts do a task one after another, and it is another's turn.
    pub(super) fn has_turn(&self, position: &[u32]) -> bool {
        !self.play.in_order || self.play.course.is_turn_of(self.host, &self.play.hosts, position)
    }

    async fn wait_for_all(&mut self, position: &[u32]) {
        self.wait_until(|course, _| course.all_reached(position)).await;
    }

    /// Waits until all hosts have reached a place, or one of them fails all.
    pub(super) async fn wait_for_all_or_fatal(&mut self, position: &[u32]) {
        self.wait_until(|course, followed| course.all_reached(position) || course.fatal_from(followed).is_some()).await;
    }

    async fn wait_until(&mut self, is_met: impl Fn(&Course, usize) -> bool) {
        let course = Arc::clone(&self.play.course);
        loop {
            let changed = course.changed();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if is_met(&course, self.followed) || course.is_stopped() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the host may run a task that is throttled; false if the play is stopped.
    async fn wait_to_enter(&mut self, position: &[u32], limit: usize) -> bool {
        let course = Arc::clone(&self.play.course);
        loop {
            let changed = course.changed();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if course.is_stopped() {
                return false;
            }
            if course.enter(position, limit) {
                return true;
            }
            changed.await;
        }
    }

    /// Waits until no host can still be at this task, so that none goes on while it is done for another.
    async fn wait_until_past(&mut self, position: &[u32]) {
        // a place behind the task itself, but before whatever it leads to
        let mut behind = position.to_vec();
        behind.push(0);
        self.reach(behind.clone());
        self.wait_for_all(&behind).await;
    }

    async fn turn_of_once(&mut self, position: &[u32]) -> OnceTurn {
        let course = Arc::clone(&self.play.course);
        loop {
            let changed = course.changed();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            match course.once(self.host, &self.play.hosts, position) {
                OnceTurn::Wait => {}
                turn => return turn,
            }
            changed.await;
        }
    }

    /// Runs a task, again and again if the debugger says so, and hands its result on.
    async fn run_items(&mut self, run: &Arc<TaskRun>) -> TaskResult {
        let mut now = Arc::clone(run);
        let mut debugging = Debugging::default();
        let mut variables = Map::new();
        loop {
            let (part, done) = match self.run_through(&now, &variables).await {
                Tried::Done(part, done) => (part, done),
                Tried::HandedOn(result) => return result,
            };
            let no_log = done.no_log.unwrap_or_else(|| may_hide(&now.task));
            match self.debug(&now, &run.task, &mut debugging, &done.result, no_log).await {
                Next::Continue => return self.hand_on(&now, part, None, done),
                Next::Redo(task, given) => {
                    now = now.of_task(task);
                    variables = given;
                }
                Next::Quit => {
                    self.play.course.stop();
                    return done.result;
                }
            }
        }
    }

    /// Runs a task, each item of its loop too; the results of items are handed on at once.
    async fn run_through(&mut self, run: &Arc<TaskRun>, given: &Map) -> Tried {
        let (Some(items), Some(looping)) = (run.items.clone(), run.looping.clone()) else {
            let done = self.run_one(run, given.clone(), None).await;
            return Tried::Done(Part::Single, done);
        };
        let mut results = Vec::new();
        let mut no_log = false;
        for index in 0..items.len() {
            if index > 0
                && let Some(pause) = self.pause(run, looping.control.pause.as_ref())
            {
                tokio::time::sleep(pause).await;
            }
            let mut variables = given.clone();
            variables.extend(looping::item_variables(&looping, &items, index));
            let scope = self.scope(&run.task, &run.stamp, true, variables.clone(), 0);
            let label = looping::label(&looping, &scope.context(), &items[index]);
            let mut done = self.run_one(run, variables, Some(&label)).await;
            add_item(Arc::make_mut(&mut done.result.result), run, index);
            if let Some(name) = run.task.register.as_ref().and_then(|written| written.value.as_str())
                && let Some(set_facts) = &mut Arc::make_mut(&mut done.result.additions).set_facts
            {
                set_facts.shift_remove(name);
            }
            no_log |= done.no_log.unwrap_or_else(|| may_hide(&run.task));
            let stop = self.breaks(&looping.control.break_when, &scope, run, &done.result);
            let unreachable = done.result.status == Status::Unreachable;
            let result = self.hand_on(run, Part::Item(index), Some(label), done);
            results.push(result.clone());
            if unreachable {
                return Tried::HandedOn(result);
            }
            if stop {
                break;
            }
        }
        let name = run.task.register.as_ref().map(|written| written.value.to_text().into_owned());
        let result = if results.is_empty() {
            let mut skipped = TaskResult::skipped("No items in the list");
            Arc::make_mut(&mut skipped.result).insert("results".into(), Value::list(Vec::new()));
            register(&run.task, &mut skipped);
            skipped
        } else {
            whole_loop(name.as_deref(), &results)
        };
        Tried::Done(Part::Whole, Done { no_log: Some(no_log), ..Done::without_module(result) })
    }

    fn pause(&self, run: &Arc<TaskRun>, pause: Option<&Value>) -> Option<Duration> {
        let scope = self.scope(&run.task, &run.stamp, true, Map::new(), 0);
        let value = scope.context().value(pause?).ok()?;
        let seconds = value.to_text().trim().parse::<f64>().ok()?;
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    fn breaks(&self, conditions: &[Written], scope: &TaskScope, run: &TaskRun, result: &TaskResult) -> bool {
        if conditions.is_empty() {
            return false;
        }
        let context = match run.task.register.as_ref().and_then(|written| written.value.as_str()) {
            Some(name) => {
                let value = Value::map(Map::clone(&result.result)).into_data();
                scope.with_local([(Value::from(name), value)]).context()
            }
            None => scope.context(),
        };
        conditions.iter().all(|condition| context.condition(&condition.value).unwrap_or(false))
    }

    /// Prepares and runs one invocation; if it needs what other hosts set before, once they are as far.
    async fn run_one(&mut self, run: &Arc<TaskRun>, variables: Map, label: Option<&str>) -> Done {
        let position = &run.stamp.position;
        if !run.granted && !self.play.course.all_reached(position) {
            if let Some(done) = self.try_one(run, variables.clone(), label, false).await {
                return done;
            }
            self.wait_for_all(position).await;
        }
        let stuck = || Done::without_module(TaskResult::failed("what this task needs of other hosts never came to be"));
        self.try_one(run, variables, label, true).await.unwrap_or_else(stuck)
    }

    /// Prepares and runs one invocation, on its host or the one it delegates to; `None` if it must wait for others.
    async fn try_one(
        &mut self,
        run: &Arc<TaskRun>,
        variables: Map,
        label: Option<&str>,
        granted: bool,
    ) -> Option<Done> {
        let mut scope = self.scope(&run.task, &run.stamp, granted, variables, 0);
        if let Some(delegated) = delegated_vars(&run.task, &scope) {
            scope = scope.with_local([("ansible_delegated_vars".into(), delegated)]);
        }
        let call = match prepare(&run.task, scope.clone(), &self.play.run.options) {
            Prepared::Run(call) => *call,
            Prepared::Done(mut result) => {
                register(&run.task, &mut result);
                return Some(Done::without_module(result));
            }
            Prepared::Interrupted(Interruption::Unknown(reason)) => {
                return Some(Done::without_module(unknown_task(&run.task, &reason)));
            }
            Prepared::Interrupted(Interruption::Barrier) if !granted => return None,
            Prepared::Interrupted(other) => {
                let message = format!("a value that this task needs never came to be ({other:?})");
                return Some(Done::without_module(TaskResult::failed(message)));
            }
        };
        let mut done = Done {
            result: TaskResult::failed(""),
            delegated_to: None,
            no_log: Some(call.settings.no_log),
            diff: call.settings.diff,
        };
        let mut call = call;
        let lane = match self.lane_of(&run.task, &scope, &call.context) {
            Ok(Way { lane, delegate, as_delegate }) => {
                done.delegated_to = delegate;
                if let Some(there) = as_delegate {
                    let context = there.context();
                    let reach = Reach {
                        scope: &there,
                        context: &context,
                        settings: &run.task.settings,
                        options: &self.play.run.options,
                    };
                    match reach.identity() {
                        Ok(identity) => call.identity = identity,
                        Err(failure) => {
                            done.result = TaskResult::failed(failure.message);
                            return Some(done);
                        }
                    }
                }
                lane
            }
            Err(failure) => {
                done.result = TaskResult::failed(failure.message);
                done.result.ignored = call.ignore_errors;
                return Some(done);
            }
        };
        let call = Arc::new(call);
        let record = self.play.run.recorder().map(|recorder| Record {
            recorder: recorder.as_ref(),
            task: Arc::clone(&run.info),
            item: label.map(str::to_owned),
            no_log: call.settings.no_log,
        });
        let ended = run_alone(Arc::clone(&call), &lane, record, self.play.run.options.check).await;
        let concluded = match self.with_real_change(ended) {
            Ended::Task(concluded) => concluded,
            Ended::Module(Err(Failure { kind: FailureKind::Interrupted(Interruption::Unknown(reason)), .. })) => {
                Ok(unknown(&call, &reason))
            }
            Ended::Module(ended) => conclude(&call, ended),
        };
        if !granted && matches!(concluded, Err(Interruption::Barrier)) {
            return None;
        }
        done.result = concluded.unwrap_or_else(|interruption| {
            TaskResult::failed(format!("a value that this task needs never came to be ({interruption:?})"))
        });
        if let Some(name) = &done.delegated_to {
            self.hand_to_delegate(run, name, &call.scope, &mut done.result);
        }
        Some(done)
    }

    /// With `delegate_facts`, facts belong to the host that was delegated to.
    fn hand_to_delegate(&mut self, run: &TaskRun, delegate: &str, scope: &TaskScope, result: &mut TaskResult) {
        let map = Arc::make_mut(&mut result.result);
        let host = Map::from_iter([("ansible_host".into(), Value::from(delegate))]);
        map.insert("_ansible_delegated_vars".into(), host.into());
        let wanted = run.task.settings.delegate_facts.as_ref().is_some_and(|written| {
            scope.context().value(&written.value).ok().and_then(|value| value.to_ansible_bool()) == Some(true)
        });
        if !wanted {
            return;
        }
        if let Some(host) = self.play.run.inventory().find_host(delegate) {
            let mut additions = crate::vars::runtime::Additions::clone(&result.additions);
            let own = Arc::make_mut(&mut result.additions);
            own.facts = None;
            if run.task.register.is_none() {
                own.set_facts = None;
            }
            if let (Some(set_facts), Some(name)) = (&mut additions.set_facts, &run.task.register) {
                set_facts.shift_remove(name.value.to_text().as_ref());
            }
            self.play.run.fleet.give(host, run.stamp.clone(), Arc::new(additions));
        }
    }

    /// Where a task is done.
    fn lane_of(&self, task: &Task, scope: &TaskScope, context: &Context) -> Result<Way, Failure> {
        let delegate = match &task.settings.delegate_to {
            Some(written) => Some(context.value(&written.value)?).filter(|value| !value.is_null()),
            None => None,
        };
        let delegate = delegate
            .filter(|value| !scope.is_omitted(value))
            .map(|value| value.to_text().into_owned())
            .filter(|name| !name.is_empty());
        let Some(name) = delegate else {
            return Ok(Way { lane: self.play.lane(scope)?, delegate: None, as_delegate: None });
        };
        let there = scope.neighbours.scope(&name).map_err(Failure::interrupted)?;
        let mut there = there.unwrap_or_else(|| stranger(&name, scope));
        // connection variables of the delegating task's own `vars` still count
        there.task = scope.task.clone();
        let lane = self.play.lane(&there)?;
        Ok(Way { lane, delegate: Some(name), as_delegate: Some(there) })
    }

    /// Commits a result that did not go through the window.
    fn hand_on(&mut self, run: &Arc<TaskRun>, part: Part, label: Option<String>, done: Done) -> TaskResult {
        let Done { mut result, delegated_to, no_log, diff } = done;
        let no_log = no_log.unwrap_or_else(|| may_hide(&run.task));
        result = self.with_known_handlers(result, &run.task);
        let commitment = Commitment { run: Arc::clone(run), part, label, no_log, diff, delegated_to };
        self.commit_result(commitment, result.clone());
        result
    }
}

struct Way {
    lane: Arc<Lane>,
    delegate: Option<String>,
    as_delegate: Option<TaskScope>,
}

/// How many hosts may run a task at a time; `None`: all.
fn throttle(task: &Task, scope: &TaskScope, options: &Options) -> Result<Option<usize>, Failure> {
    let context = scope.context();
    let reach = Reach { scope, context: &context, settings: &task.settings, options };
    let limit = number(&task.settings.throttle, "throttle", &reach)?;
    Ok(limit.map(|limit| limit as usize).filter(|limit| *limit > 0))
}

/// True unless a task certainly delegates to the controller.
fn is_another_host(written: &Written) -> bool {
    !matches!(written.value.as_str(), Some("localhost" | "127.0.0.1" | "::1"))
}
