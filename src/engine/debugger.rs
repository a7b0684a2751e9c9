//! The task debugger: what was done can be looked at, altered, and done again. Its commands are Ansible's; what they
//! look at is written as in templates, which for names, keys and plain values is as in Python.

use std::sync::Arc;

use crate::error::{Error, Kind, Result};
use crate::playbook::Task;
use crate::playbook::keywords::DEBUGGER;
use crate::template::Scope;
use crate::value::{Map, Value, object};
use crate::vars::TaskScope;

use super::options::Options;
use super::result::{Status, TaskResult};
use super::walk::Walker;
use super::window::TaskRun;

const HELP: &str = "\
p EXPRESSION         print: task, task.args, task_vars, host, result
task.args[K] = V     give the task another argument
task_vars[K] = V     give a variable another value, for u
u                    write the task anew, with the variables as they are now
r                    do the task again
c                    go on
q                    end the run
";

/// When a task is debugged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    Never,
    Failed,
    Unreachable,
    Skipped,
}

fn when(text: &str) -> Option<When> {
    Some(match text {
        "always" => When::Always,
        "never" => When::Never,
        "on_failed" => When::Failed,
        "on_unreachable" => When::Unreachable,
        "on_skipped" => When::Skipped,
        _ => return None,
    })
}

/// True if a task may have to be debugged, so that nothing may be looked at ahead of it.
pub(super) fn may_debug(task: &Task, options: &Options) -> bool {
    let keyword = task.settings.debugger.as_ref().map(|written| written.value.to_text());
    keyword.map_or(options.debugger, |text| text != "never")
}

/// How the debugger was left.
pub(super) enum Next {
    Continue,
    /// Do this task again, with these variables on top.
    Redo(Arc<Task>, Map),
    /// The run ends.
    Quit,
}

/// What was altered in the debugger so far.
#[derive(Default)]
pub(super) struct Debugging {
    /// The variables that were given other values.
    given: Map,
    /// Those of them that the task has.
    taken: Map,
    /// No other host's result is looked at meanwhile.
    turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

/// A line of the debugger, understood.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Print(&'a str),
    Argument(&'a str, &'a str),
    Variable(&'a str, &'a str),
    Update,
    Redo,
    Continue,
    Quit,
    Help,
    Nothing,
    Unknown,
}

fn command(line: &str) -> Command<'_> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match (word, rest.trim()) {
        ("", _) => Command::Nothing,
        ("p" | "pprint", expression) if !expression.is_empty() => Command::Print(expression),
        ("u" | "update_task", "") => Command::Update,
        ("r" | "redo", "") => Command::Redo,
        ("c" | "continue", "") => Command::Continue,
        ("q" | "quit", "") => Command::Quit,
        ("h" | "help" | "?", _) => Command::Help,
        _ => assignment(line).unwrap_or(Command::Unknown),
    }
}

/// `task.args[KEY] = VALUE` or `task_vars[KEY] = VALUE`; key and value are expressions.
fn assignment(line: &str) -> Option<Command<'_>> {
    let inside = |start: &str| line.strip_prefix(start)?.trim_start().strip_prefix('[');
    let (rest, is_argument) = match (inside("task.args"), inside("task_vars")) {
        (Some(rest), _) => (rest, true),
        (None, rest) => (rest?, false),
    };
    let (end, value) = rest.match_indices(']').find_map(|(end, _)| {
        let value = rest[end + 1..].trim_start().strip_prefix('=').filter(|value| !value.starts_with('='))?;
        Some((end, value))
    })?;
    let (key, value) = (rest[..end].trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return None;
    }
    Some(if is_argument { Command::Argument(key, value) } else { Command::Variable(key, value) })
}

impl Walker {
    /// True if the result of a task is one to be looked at in the debugger.
    fn is_debugged(&self, task: &Task, scope: &TaskScope, result: &TaskResult) -> Result<bool> {
        let options = &self.play.run.options;
        let ignored = options.debugger_ignores_errors && result.ignored;
        let failed = result.status == Status::Failed && !ignored;
        let unreachable = result.status == Status::Unreachable;
        let asked = match &task.settings.debugger {
            None => None,
            Some(written) => {
                let value = scope.context().value(&written.value);
                let value = value.map_err(|error| Error::input(error.message().to_owned()).at(&written.place))?;
                let text = value.to_text();
                Some(when(&text).ok_or_else(|| {
                    Error::input(format!("`debugger` cannot be `{text}`"))
                        .at(&written.place)
                        .suggest(&text, DEBUGGER.iter().copied())
                })?)
            }
        };
        Ok(match asked {
            Some(When::Always) => true,
            Some(When::Never) => false,
            Some(When::Failed) if failed => true,
            Some(When::Unreachable) if unreachable => true,
            Some(When::Skipped) if result.status == Status::Skipped => true,
            _ => options.debugger && (failed || unreachable),
        })
    }

    /// Lets a result be looked at, if the task asks for that.
    pub(super) async fn debug(
        &mut self,
        run: &TaskRun,
        original: &Arc<Task>,
        debugging: &mut Debugging,
        result: &TaskResult,
        no_log: bool,
    ) -> Next {
        if !may_debug(&run.task, &self.play.run.options) {
            return Next::Continue;
        }
        let scope = self.scope(&run.task, &run.stamp, true, debugging.taken.clone(), 0);
        let told = match self.is_debugged(original, &scope, result) {
            Ok(false) => return Next::Continue,
            Ok(true) => self.talk(run, original, debugging, result, no_log).await,
            Err(error) => Err(error),
        };
        told.unwrap_or_else(|error| {
            self.play.run.abort(error);
            Next::Quit
        })
    }

    async fn talk(
        &mut self,
        run: &TaskRun,
        original: &Arc<Task>,
        debugging: &mut Debugging,
        result: &TaskResult,
        no_log: bool,
    ) -> Result<Next> {
        let play = Arc::clone(&self.play);
        // one dialogue after another, each up to its end
        if debugging.turn.is_none() {
            debugging.turn = Some(Arc::clone(&play.run.dialogue).lock_owned().await);
        }
        let host = Arc::clone(&self.view.name);
        let prompt = format!("[{host}] TASK: {} (debug)> ", run.info.name);
        let shown = if no_log { object([("censored", true.into())]) } else { Map::clone(&result.result) };
        let message = shown.get("msg").map(|message| format!("[{host}] {message}\n")).unwrap_or_default();
        let mut task = Arc::clone(&run.task);
        let mut said = message;
        loop {
            let line = match play.run.ask_now(format!("{said}{prompt}")) {
                Ok(line) => line,
                // the end of stdin, as in Ansible
                Err(_) => "q".to_owned(),
            };
            said = String::new();
            let evaluated = |expression: &str| {
                let mut scope = self.scope(&task, &run.stamp, true, debugging.taken.clone(), 0);
                scope.local.extend(debugging.given.clone());
                let variables = scope.get("vars").ok().flatten().unwrap_or_default();
                let arguments = Value::map(task.args.clone());
                let about = object([
                    ("name", Value::from(run.info.name.as_str())),
                    ("action", run.info.action.as_str().into()),
                    ("args", arguments.clone()),
                ]);
                let of_result = object([("_result", Value::map(shown.clone())), ("_host", host.as_ref().into())]);
                let names = object([
                    ("task", about.into()),
                    ("args", arguments),
                    ("task_vars", variables),
                    ("host", host.as_ref().into()),
                    ("result", of_result.into()),
                ]);
                scope.with_local(names).context().expression(expression)
            };
            match command(&line) {
                Command::Nothing => {}
                Command::Help => said = HELP.to_owned(),
                Command::Unknown => {
                    said = format!("***`{}` is no command here; `h` tells which there are\n", line.trim())
                }
                Command::Print("task") => said = format!("TASK: {}\n", run.info.name),
                Command::Print(expression) => {
                    said = match evaluated(expression) {
                        Ok(value) => format!("{}\n", value.to_repr()),
                        Err(error) => format!("***{error}\n"),
                    };
                }
                Command::Argument(key, value) | Command::Variable(key, value) => {
                    match (evaluated(key), evaluated(value)) {
                        (Ok(key), Ok(value)) => {
                            let entry = (Value::from(key.to_text().into_owned()), value.into_data());
                            if matches!(command(&line), Command::Argument(..)) {
                                let mut altered = Task::clone(&task);
                                altered.args.insert(entry.0, entry.1);
                                task = Arc::new(altered);
                            } else {
                                debugging.given.insert(entry.0, entry.1);
                            }
                        }
                        (Err(error), _) | (_, Err(error)) => said = format!("***{error}\n"),
                    }
                }
                Command::Update => {
                    task = Arc::clone(original);
                    debugging.taken = debugging.given.clone();
                }
                Command::Continue => return Ok(Next::Continue),
                Command::Redo => return Ok(Next::Redo(task, debugging.taken.clone())),
                Command::Quit => return Err(Error::new(Kind::Interrupted, "the run was ended in the task debugger")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_ansible() {
        let cases = [
            ("p task.args", Command::Print("task.args")),
            ("pprint result._result", Command::Print("result._result")),
            ("task.args['data'] = 'x'", Command::Argument("'data'", "'x'")),
            ("task_vars[ 'a' ]=task_vars['b'] == 1", Command::Variable("'a'", "task_vars['b'] == 1")),
            ("task_vars['a'] == 1", Command::Unknown),
            ("p", Command::Unknown),
            ("  redo ", Command::Redo),
            ("u", Command::Update),
            ("c", Command::Continue),
            ("q", Command::Quit),
            ("?", Command::Help),
            ("", Command::Nothing),
            ("import os", Command::Unknown),
        ];
        for (line, expected) in cases {
            assert_eq!(command(line), expected, "{line}");
        }
    }
}
