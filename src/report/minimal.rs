//! The text of `ansible`: for each host what the module came to.

use super::{Look, Report, Summary, TaskResults, body, cost_line, diff};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::{Style, Ui};
use crate::value::Value;

/// Modules whose output is shown as it is.
pub(super) const COMMANDS: &[&str] = &["command", "shell", "raw"];

/// The report of one result after the other.
pub struct Minimal {
    look: Look,
}

impl Minimal {
    pub fn new(look: Look) -> Minimal {
        Minimal { look }
    }

    fn result(&self, event: &HostResult, ui: &mut Ui) {
        let result = &event.result;
        if event.diff
            && !event.no_log
            && let Some(diff) = result.result.get("diff")
        {
            ui.raw(&diff::text(diff, self.look.diff_context, ui));
        }
        for warning in &result.warnings {
            ui.warning(warning);
        }
        let host = &event.host;
        let (word, style) = match result.status {
            Status::Ok => ("SUCCESS", Style::Ok),
            Status::Changed => ("CHANGED", Style::Changed),
            Status::Failed => ("FAILED", Style::Failed),
            Status::Unreachable => ("UNREACHABLE", Style::Unreachable),
            Status::Skipped => ("SKIPPED", Style::Skipped),
            Status::Unknown => ("UNKNOWN", Style::Unknown),
        };
        let text = |name: &str| result.result.get(name).map(|value| value.to_text().into_owned()).unwrap_or_default();
        let is_command = COMMANDS.contains(&event.task.action.as_str()) && result.result.contains_key("rc");
        let line = match result.status {
            Status::Skipped => format!("{host} | SKIPPED"),
            Status::Unknown if !event.no_log => format!("{host} | UNKNOWN => {}", text("msg")),
            Status::Unreachable => format!("{host} | UNREACHABLE! => {}", self.body(event)),
            _ if is_command && !event.no_log => {
                let output = format!("{}{}{}", text("stdout"), text("stderr"), text("msg"));
                format!("{host} | {word} | rc={} >>\n{output}", text("rc"))
            }
            Status::Failed => format!("{host} | FAILED! => {}", self.body(event)),
            _ => format!("{host} | {word} => {}", self.body(event)),
        };
        ui.styled(&line, style);
    }

    fn body(&self, event: &HostResult) -> String {
        body::pretty(&Value::map(body::shown(event, self.look.verbosity)))
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
