//! One line a task, however many hosts: what it came to, and failures in full, equal ones together.

use super::{Look, Report, Summary, TaskResults, body, bytes, cost_line};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::{Style, Ui};
use crate::value::Value;

/// No more hosts than this are named on a line.
const MOST_NAMES: usize = 8;

/// The report of a line a task.
pub struct Condensed {
    look: Look,
}

/// What is said in the order of how much it matters.
const ORDER: &[(Status, &str, Style)] = &[
    (Status::Changed, "changed", Style::Changed),
    (Status::Ok, "ok", Style::Ok),
    (Status::Unknown, "unknown", Style::Unknown),
    (Status::Skipped, "skipped", Style::Skipped),
    (Status::Failed, "failed", Style::Failed),
    (Status::Unreachable, "unreachable", Style::Unreachable),
];

impl Condensed {
    pub fn new(look: Look) -> Condensed {
        Condensed { look }
    }
}

/// `kp001 kp002 … and 14 more`.
fn names(hosts: &[&str]) -> String {
    let shown = hosts.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(" ");
    match hosts.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} … and {more} more"),
    }
}

fn count(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// The message of a failure, and what the command said.
fn message(event: &HostResult) -> String {
    if event.no_log {
        return body::CENSORED.to_owned();
    }
    let result = &event.result.result;
    let text = |name: &str| {
        result
            .get(name)
            .filter(|value| !value.is_null())
            .map(|value| value.to_text().trim().to_owned())
            .unwrap_or_default()
    };
    let mut message = text("msg");
    for name in ["stderr", "module_stderr", "stdout"] {
        let more = text(name);
        if !more.is_empty() && !message.contains(&more) {
            message.push_str(&format!("\n{more}"));
            break;
        }
    }
    let message = if message.is_empty() { body::inline(&Value::map(body::shown(event, 0))) } else { message };
    match &event.item {
        Some(item) => format!("(item={item}) {message}"),
        None => message,
    }
}

impl Report for Condensed {
    fn event(&mut self, event: &Event, ui: &mut Ui) {
        match event {
            Event::PlayStarted { name, hosts, .. } => {
                ui.line(&format!("\n{name}: {}", count(hosts.len(), "host")));
            }
            Event::NoHosts { pattern, .. } => ui.styled(&format!("  no host matches `{pattern}`"), Style::Skipped),
            Event::Warning(text) => ui.warning(text),
            Event::Crashed { host, message } => {
                ui.styled(&format!("  {host}: a fault of trimtab itself: {message}"), Style::Failed);
            }
            _ => {}
        }
    }

    fn task(&mut self, task: &TaskResults, ui: &mut Ui) {
        if task.task.action == "meta" {
            return;
        }
        let is_whole = |result: &&HostResult| result.item.is_none() || result.result.status == Status::Unreachable;
        let mut parts = Vec::new();
        for (status, word, style) in ORDER {
            let of_status =
                |result: &&HostResult| result.result.status == *status && !result.result.ignored && !result.rescued;
            let hosts: Vec<&str> =
                task.results.iter().filter(is_whole).filter(of_status).map(|result| result.host.as_ref()).collect();
            if hosts.is_empty() {
                continue;
            }
            let names = match status {
                Status::Failed | Status::Unreachable => format!(" ({})", names(&hosts)),
                _ => String::new(),
            };
            parts.push(ui.paint(&format!("{word} {}{names}", hosts.len()), *style));
        }
        let ignored = task.results.iter().filter(is_whole).filter(|result| result.result.ignored).count();
        let rescued: Vec<&str> =
            task.results.iter().filter(|result| result.rescued).map(|result| result.host.as_ref()).collect();
        if !rescued.is_empty() {
            let text = format!("rescued {} ({})", rescued.len(), names(&rescued));
            parts.push(ui.paint(&text, Style::Changed));
        }
        if ignored > 0 {
            parts.push(ui.paint(&format!("ignored {ignored}"), Style::Skipped));
        }
        let all_skipped = task.results.iter().all(|result| result.result.status == Status::Skipped);
        if !parts.is_empty() && (!all_skipped || self.look.verbosity > 0) {
            let kind = if task.task.is_handler { "handler " } else { "" };
            ui.line(&format!("  {kind}{}: {}", task.task.name, parts.join(" · ")));
        }
        failures(task, ui);
    }

    fn end(&mut self, summary: &Summary, ui: &mut Ui) {
        let mut unknown = 0;
        let mut lost: Vec<&str> = Vec::new();
        let mut changed = 0;
        for (host, counts) in &summary.recap.hosts {
            unknown += counts.unknown;
            changed += usize::from(counts.changed > 0);
            if counts.failed > 0 || counts.unreachable > 0 {
                lost.push(host);
            }
        }
        let all = summary.recap.hosts.len();
        ui.line(&format!("\n{}: {changed} changed, {} failed or unreachable", count(all, "host"), lost.len()));
        if unknown > 0 {
            ui.styled(&format!("{} unknown until applied", count(unknown as usize, "task")), Style::Unknown);
        }
        if !lost.is_empty() {
            ui.styled(&format!("failed or unreachable: {}", names(&lost)), Style::Failed);
        }
        if self.look.verbosity > 0 {
            for (host, counters) in &summary.costs {
                ui.styled(&cost_line(host, counters), Style::Quiet);
            }
        } else if !summary.costs.is_empty() {
            let most = summary.costs.values().map(|counters| counters.round_trips).max().unwrap_or_default();
            let sent: u64 = summary.costs.values().map(|counters| counters.bytes_sent).sum();
            ui.styled(&format!("at most {most} round trips a host, {} sent in all", bytes(sent)), Style::Quiet);
        }
    }
}

/// The failures of a task: each message once, with the hosts it is of.
fn failures(task: &TaskResults, ui: &mut Ui) {
    let mut messages: Vec<(String, Vec<&str>)> = Vec::new();
    for result in &task.results {
        let is_failure = matches!(result.result.status, Status::Failed | Status::Unreachable)
            && !result.result.ignored
            // the items have said it
            && !(result.is_loop && result.result.status == Status::Failed);
        if !is_failure {
            continue;
        }
        let message = message(result);
        match messages.iter_mut().find(|(known, _)| *known == message) {
            Some((_, hosts)) => hosts.push(&result.host),
            None => messages.push((message, vec![&result.host])),
        }
    }
    for (message, hosts) in messages {
        ui.styled(&format!("    {}: {}", names(&hosts), message.replace('\n', "\n      ")), Style::Failed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample, tell};
    use super::*;
    use crate::connect::Counters;

    #[test]
    fn a_task_is_a_line_and_equal_failures_are_told_once() {
        let sample = sample::Sample::new();
        let hosts: Vec<String> = (1..=12).map(|number| format!("kp{number:03}")).collect();
        let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
        let mut events = vec![sample::play("tune", &names), sample::batch(&names)];
        for (index, host) in names.iter().enumerate() {
            let task = sample.task(0, "set governor");
            events.push(match index {
                0..2 => task.with("msg", "no such file\n/sys/x").failed(host),
                2..6 => task.changed(host),
                _ => task.ok(host),
            });
            events.push(sample.task(1, "never").end(host, Status::Skipped));
        }
        events.push(sample.task(2, "down").with("msg", "no route").end("kp003", Status::Unreachable));
        events.push(sample::ended());
        let counters = Counters { round_trips: 3, bytes_sent: 2_000, bytes_received: 10 };
        events.push(Event::HostCost { host: "kp001".into(), counters });
        let (text, _) = tell(&mut Condensed::new(Look::default()), events);
        let expected = "
tune: 12 hosts
  set governor: changed 4 · ok 6 · failed 2 (kp001 kp002)
    kp001 kp002: no such file
      /sys/x
  down: unreachable 1 (kp003)
    kp003: no route

12 hosts: 4 changed, 3 failed or unreachable
failed or unreachable: kp001 kp002 kp003
at most 3 round trips a host, 2 kB sent in all
";
        assert_eq!(text, expected);
    }

    #[test]
    fn many_names_are_cut_short() {
        let hosts = ["a"; 10];
        assert_eq!(names(&hosts), "a a a a a a a a … and 2 more");
    }
}
