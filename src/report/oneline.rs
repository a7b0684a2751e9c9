//! The text of `ansible --one-line`: each host's result on one line.

use super::minimal::COMMANDS;
use super::{Look, Report, Summary, TaskResults, body, cost_line};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::{Style, Ui};
use crate::value::Value;

/// The report of one line a result.
pub struct OneLine {
    look: Look,
}

impl OneLine {
    pub fn new(look: Look) -> OneLine {
        OneLine { look }
    }

    fn result(&self, event: &HostResult, ui: &mut Ui) {
        let result = &event.result;
        for warning in &result.warnings {
            ui.warning(warning);
        }
        let text = |name: &str| {
            let text = result.result.get(name).map(|value| value.to_text().into_owned()).unwrap_or_default();
            text.replace('\n', "\\n").replace('\r', "\\r")
        };
        let host = &event.host;
        let (word, style) = match result.status {
            Status::Ok => ("SUCCESS", Style::Ok),
            Status::Changed => ("CHANGED", Style::Changed),
            Status::Failed => ("FAILED!", Style::Failed),
            Status::Unreachable => ("UNREACHABLE!", Style::Unreachable),
            Status::Skipped => ("SKIPPED", Style::Skipped),
            Status::Unknown => ("UNKNOWN", Style::Unknown),
        };
        let is_command = COMMANDS.contains(&event.task.action.as_str()) && result.result.contains_key("rc");
        let line = match result.status {
            Status::Skipped => format!("{host} | SKIPPED"),
            Status::Unreachable if !event.no_log => format!("{host} | UNREACHABLE!: {}", text("msg")),
            Status::Ok | Status::Changed if is_command && !event.no_log => {
                let errors = Some(text("stderr")).filter(|text| !text.is_empty());
                let errors = errors.map(|text| format!(" (stderr) {text}")).unwrap_or_default();
                format!("{host} | {word} | rc={} | (stdout) {}{errors}", text("rc"), text("stdout"))
            }
            _ => format!("{host} | {word} => {}", self.body(event)),
        };
        ui.styled(&line, style);
    }

    fn body(&self, event: &HostResult) -> String {
        let text = body::pretty(&Value::map(body::shown(event, self.look.verbosity)));
        text.lines().map(str::trim_start).collect()
    }
}

impl Report for OneLine {
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
    fn each_result_is_one_line() {
        let sample = sample::Sample::new();
        let task = sample.task(0, "command").with("rc", 0).with("stdout", "x\ny").with("stderr", "").with("msg", "");
        let events = [
            sample::batch(&["a", "b", "c", "d"]),
            task.changed("a"),
            task.clone().with("stderr", "e").ok("b"),
            sample.task(0, "ping").action("ping").with("ping", "pong").ok("c"),
            sample.task(0, "ping").action("ping").with("msg", "no route").end("d", Status::Unreachable),
            sample::ended(),
        ];
        let (text, _) = tell(&mut OneLine::new(Look::default()), events);
        let expected = "\
a | CHANGED | rc=0 | (stdout) x\\ny
b | SUCCESS | rc=0 | (stdout) x\\ny (stderr) e
c | SUCCESS => {\"changed\": false,\"ping\": \"pong\"}
d | UNREACHABLE!: no route
";
        assert_eq!(text, expected);
    }
}
