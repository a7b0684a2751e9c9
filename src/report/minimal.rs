//! The text of `ansible`: for each host what the module came to.

use super::{Look, Report, Summary, TaskResults, body, cost_line, diff};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::{Style, Ui};
use crate::value::Value;

/// Modules whose output is shown as it is.
const COMMANDS: &[&str] = &["command", "shell", "raw"];

/// The report of one result after the other.
pub struct Minimal {
    look: Look,
    /// A result in words.
    words: fn(&HostResult, u8) -> String,
    shows_diff: bool,
}

impl Minimal {
    pub fn new(look: Look) -> Minimal {
        Minimal { look, words, shows_diff: true }
    }

    /// Each result on one line, without differences.
    pub fn on_one_line(look: Look) -> Minimal {
        Minimal { look, words: super::oneline::words, shows_diff: false }
    }

    fn result(&self, event: &HostResult, ui: &mut Ui) {
        let result = &event.result;
        if self.shows_diff
            && event.diff
            && !event.no_log
            && let Some(diff) = result.result.get("diff")
        {
            ui.raw(&diff::text(diff, self.look.diff_context, ui));
        }
        for warning in &result.warnings {
            ui.warning(warning);
        }
        ui.styled(&(self.words)(event, self.look.verbosity), style(result.status));
    }
}

fn style(status: Status) -> Style {
    match status {
        Status::Ok => Style::Ok,
        Status::Changed => Style::Changed,
        Status::Failed => Style::Failed,
        Status::Unreachable => Style::Unreachable,
        Status::Skipped => Style::Skipped,
        Status::Unknown => Style::Unknown,
    }
}

/// What Ansible's tool calls a status.
pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "SUCCESS",
        Status::Changed => "CHANGED",
        Status::Failed => "FAILED",
        Status::Unreachable => "UNREACHABLE",
        Status::Skipped => "SKIPPED",
        Status::Unknown => "UNKNOWN",
    }
}

/// True if the output of a command is shown as it is.
pub(super) fn is_command(event: &HostResult) -> bool {
    COMMANDS.contains(&event.task.action.as_str()) && event.result.result.contains_key("rc") && !event.no_log
}

/// A return value as text; empty if there is none.
pub(super) fn value(event: &HostResult, name: &str) -> String {
    event.result.result.get(name).map(|value| value.to_text().into_owned()).unwrap_or_default()
}

/// The result as JSON.
pub(super) fn body(event: &HostResult, verbosity: u8) -> String {
    body::pretty(&Value::map(body::shown(event, verbosity)))
}

fn words(event: &HostResult, verbosity: u8) -> String {
    let (host, status) = (&event.host, event.result.status);
    let word = word(status);
    match status {
        Status::Skipped => format!("{host} | {word}"),
        Status::Unknown if !event.no_log => format!("{host} | {word} => {}", value(event, "msg")),
        Status::Unreachable => format!("{host} | {word}! => {}", body(event, verbosity)),
        _ if is_command(event) => {
            let output = ["stdout", "stderr", "msg"].map(|name| value(event, name)).concat();
            format!("{host} | {word} | rc={} >>\n{output}", value(event, "rc"))
        }
        Status::Failed => format!("{host} | {word}! => {}", body(event, verbosity)),
        _ => format!("{host} | {word} => {}", body(event, verbosity)),
    }
}

impl Report for Minimal {
    fn event(&mut self, event: &Event, ui: &mut Ui) {
        match event {
            Event::Warning(text) => ui.warning(text),
            Event::Crashed { host, message } => {
                ui.styled(&format!("{host} | CRASHED! => a fault of trimtab itself: {message}"), Style::Failed);
            }
            _ => {}
        }
    }

    fn task(&mut self, task: &TaskResults, ui: &mut Ui) {
        for result in task.results.iter().filter(|result| !result.is_loop && result.task.action != "meta") {
            self.result(result, ui);
        }
    }

    fn end(&mut self, summary: &Summary, ui: &mut Ui) {
        if self.look.verbosity > 0 {
            for (host, counters) in &summary.costs {
                ui.styled(&cost_line(host, counters), Style::Quiet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample, tell};
    use super::*;

    #[test]
    fn results_stand_one_after_the_other() {
        let sample = sample::Sample::new();
        let task = sample.task(0, "command").with("rc", 0).with("stdout", "hi").with("stderr", "").with("msg", "");
        let events = [
            sample::batch(&["a", "b", "c", "d", "e"]),
            task.changed("a"),
            task.clone().with("rc", 3).with("msg", "non-zero return code").with("stdout", "x\n").failed("b"),
            sample.task(0, "ping").action("ping").with("ping", "pong").ok("c"),
            sample.task(0, "ping").action("ping").with("msg", "no route").end("d", Status::Unreachable),
            task.clone().no_log().changed("e"),
            sample::ended(),
        ];
        let (text, _) = tell(&mut Minimal::new(Look::default()), events);
        let expected = r#"a | CHANGED | rc=0 >>
hi
b | FAILED | rc=3 >>
x
non-zero return code
c | SUCCESS => {
    "changed": false,
    "ping": "pong"
}
d | UNREACHABLE! => {
    "changed": false,
    "msg": "no route"
}
e | CHANGED => {
    "censored": "the output has been hidden due to the fact that 'no_log: true' was specified for this result",
    "changed": true
}
"#;
        assert_eq!(text, expected);
    }
}
