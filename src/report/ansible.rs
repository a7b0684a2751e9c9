//! The text of ansible-playbook: banners, a line a host, and the recap.

use std::sync::Arc;

use super::{Look, Report, Summary, TaskResults, body, cost_line, diff};
use crate::engine::event::{Event, HostResult, TaskInfo};
use crate::engine::result::Status;
use crate::ui::{Style, Ui};
use crate::value::Value;
use crate::vars::Stamp;

/// The report in Ansible's own text.
pub struct Ansible {
    look: Look,
    /// The task whose banner was written last.
    banner: Option<(Stamp, Arc<TaskInfo>)>,
}

impl Ansible {
    pub fn new(look: Look) -> Ansible {
        Ansible { look, banner: None }
    }

    fn task_banner(&mut self, task: &TaskResults, ui: &mut Ui) {
        if let Some((stamp, info)) = &self.banner
            && task.is_same_task(stamp, info)
        {
            return;
        }
        let kind = if task.task.is_handler { "RUNNING HANDLER" } else { "TASK" };
        banner(&format!("{kind} [{}]", task.task.name), ui);
        if self.look.verbosity >= 2 {
            ui.styled(
                &format!("task path: {}:{}", task.task.place.source.path.display(), task.task.place.line),
                Style::Quiet,
            );
        }
        self.banner = Some((task.stamp.clone(), Arc::clone(&task.task)));
    }

    fn is_hidden(&self, status: Status) -> bool {
        match status {
            Status::Skipped => !self.look.shows_skipped,
            Status::Ok => !self.look.shows_ok,
            _ => false,
        }
    }

    fn result(&self, event: &HostResult, ui: &mut Ui) {
        let result = &event.result;
        if event.diff
            && !event.no_log
            && !event.is_loop
            && result.status == Status::Changed
            && let Some(diff) = result.result.get("diff")
        {
            ui.raw(&diff::text(diff, self.look.diff_context, ui));
        }
        if !event.is_loop {
            for warning in &result.warnings {
                ui.warning(warning);
            }
        }
        // the items have said it all
        let is_told = event.is_loop && !matches!(result.status, Status::Skipped | Status::Unreachable);
        let is_quiet = event.task.action == "meta" && !matches!(result.status, Status::Skipped | Status::Failed);
        if !is_told && !is_quiet {
            let (line, style) = self.line(event);
            ui.styled(&line, style);
        }
        let ends_item = event.item.is_some() && result.status != Status::Unreachable;
        if result.ignored && !ends_item {
            ui.styled("...ignoring", Style::Skipped);
        }
    }

    fn line(&self, event: &HostResult) -> (String, Style) {
        let result = &event.result;
        let host = label(event);
        let item = event.item.as_ref().map(|label| {
            let label = if event.no_log { "(censored due to no_log)" } else { label.as_str() };
            format!(" => (item={label})")
        });
        let (mut line, style, always) = match result.status {
            Status::Ok => (format!("ok: [{host}]"), Style::Ok, false),
            Status::Changed => (format!("changed: [{host}]"), Style::Changed, false),
            Status::Skipped => (format!("skipping: [{host}]"), Style::Skipped, false),
            Status::Failed if item.is_some() => (format!("failed: [{host}]"), Style::Failed, true),
            Status::Failed => (format!("fatal: [{host}]: FAILED!"), Style::Failed, true),
            Status::Unreachable => (format!("fatal: [{host}]: UNREACHABLE!"), Style::Unreachable, true),
            Status::Unknown => (format!("unknown: [{host}]"), Style::Unknown, false),
        };
        match (item, result.status) {
            (Some(item), Status::Failed) => line.push_str(item.trim_start_matches(" =>")),
            (Some(item), Status::Skipped) => line.push_str(&format!("{item} ")),
            (Some(item), _) => line.push_str(&item),
            (None, _) => {}
        }
        if result.status == Status::Unknown {
            let message = result.result.get("msg").map(|message| message.to_text().into_owned()).unwrap_or_default();
            line.push_str(&format!(" => {}", if event.no_log { body::CENSORED } else { &message }));
            return (line, style);
        }
        if always || self.shows_body(event) {
            line.push_str(" => ");
            line.push_str(&self.body(event));
        }
        (line, style)
    }

    fn shows_body(&self, event: &HostResult) -> bool {
        if event.result.status == Status::Skipped {
            return self.look.verbosity > 0;
        }
        (self.look.verbosity > 0 || body::is_always_shown(event)) && !body::is_never_shown(event)
    }

    fn body(&self, event: &HostResult) -> String {
        let shown = Value::map(body::shown(event, self.look.verbosity));
        let spreads = body::is_always_shown(event) && !event.no_log && event.result.status != Status::Skipped;
        if spreads || self.look.verbosity > 2 { body::pretty(&shown) } else { body::inline(&shown) }
    }
}

/// The host of a line, and who did the work for it.
fn label(event: &HostResult) -> String {
    match &event.delegated_to {
        Some(other) if *other != *event.host => format!("{} -> {other}", event.host),
        _ => event.host.to_string(),
    }
}

fn banner(text: &str, ui: &mut Ui) {
    let text = text.trim();
    let stars = ui.columns().saturating_sub(text.chars().count()).max(3);
    ui.line(&format!("\n{text} {}", "*".repeat(stars)));
}

/// `META: ending play for web1`: what a meta task did on each host, each text once.
fn meta(task: &TaskResults, ui: &mut Ui) {
    let mut told: Vec<String> = Vec::new();
    for result in &task.results {
        let key = if result.result.status == Status::Skipped { "skip_reason" } else { "msg" };
        let Some(text) = result.result.result.get(key).map(|text| text.to_text().into_owned()) else { continue };
        if !told.contains(&text) {
            ui.line(&format!("META: {text}"));
            told.push(text);
        }
    }
}

/// `included: tasks.yml for web1, web2`, a line for each file.
fn inclusions(task: &TaskResults, ui: &mut Ui) {
    let mut files: Vec<(String, Vec<&str>)> = Vec::new();
    for result in task.results.iter().filter(|result| result.result.status == Status::Ok) {
        for file in result.task.included.iter().flatten() {
            match files.iter_mut().find(|(known, hosts)| known == file && !hosts.contains(&result.host.as_ref())) {
                Some((_, hosts)) => hosts.push(&result.host),
                None => files.push((file.clone(), vec![&result.host])),
            }
        }
    }
    for (file, hosts) in files {
        ui.styled(&format!("included: {file} for {}", hosts.join(", ")), Style::Skipped);
    }
}

impl Report for Ansible {
    fn event(&mut self, event: &Event, ui: &mut Ui) {
        match event {
            Event::PlaybookStarted { path, plays } if self.look.verbosity >= 2 => {
                banner(&format!("PLAYBOOK: {}", path.rsplit('/').next().unwrap_or(path)), ui);
                ui.line(&format!("{plays} plays in {path}"));
            }
            Event::PlayStarted { name, .. } => {
                self.banner = None;
                banner(&format!("PLAY [{}]", name.trim()), ui);
            }
            Event::NoHosts { .. } => ui.styled("skipping: no hosts matched", Style::Skipped),
            Event::Warning(text) => ui.warning(text),
            Event::Crashed { host, message } => {
                ui.styled(&format!("fatal: [{host}]: CRASHED! => a fault of trimtab itself: {message}"), Style::Failed);
            }
            _ => {}
        }
    }

    fn task(&mut self, task: &TaskResults, ui: &mut Ui) {
        let is_silent = task.results.iter().all(|result| self.is_hidden(result.result.status));
        if is_silent {
            return;
        }
        self.task_banner(task, ui);
        if task.task.action == "meta" && self.look.verbosity >= 2 {
            meta(task, ui);
        }
        for result in &task.results {
            let is_inclusion = result.task.included.is_some() && result.result.status == Status::Ok;
            if !is_inclusion && !self.is_hidden(result.result.status) {
                self.result(result, ui);
            }
        }
        inclusions(task, ui);
    }

    fn end(&mut self, summary: &Summary, ui: &mut Ui) {
        banner("PLAY RECAP", ui);
        for (host, counts) in &summary.recap.hosts {
            let style = if counts.failed > 0 || counts.unreachable > 0 {
                Style::Failed
            } else if counts.changed > 0 {
                Style::Changed
            } else {
                Style::Ok
            };
            let mut line = format!("{} :", pad(&ui.paint(host, style), if ui.has_colour() { 37 } else { 26 }));
            let numbers = [
                ("ok", counts.ok, Style::Ok),
                ("changed", counts.changed, Style::Changed),
                ("unreachable", counts.unreachable, Style::Unreachable),
                ("failed", counts.failed, Style::Failed),
                ("skipped", counts.skipped, Style::Skipped),
                ("rescued", counts.rescued, Style::Changed),
                ("ignored", counts.ignored, Style::Warning),
            ];
            // only check mode knows it, so Ansible's own columns stay as they are
            let unknown = (counts.unknown > 0).then_some(("unknown", counts.unknown, Style::Unknown));
            for (name, count, style) in numbers.into_iter().chain(unknown) {
                let style = if count > 0 { style } else { Style::Plain };
                line.push(' ');
                line.push_str(&ui.paint(&format!("{name}={count:<4}"), style));
            }
            ui.line(&line);
        }
        ui.line("");
        if self.look.shows_custom_stats && !summary.custom_stats.is_empty() {
            custom_stats(summary, ui);
        }
        if self.look.verbosity > 0 && !summary.costs.is_empty() {
            for (host, counters) in &summary.costs {
                ui.styled(&cost_line(host, counters), Style::Quiet);
            }
            ui.line("");
        }
    }
}

fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

fn custom_stats(summary: &Summary, ui: &mut Ui) {
    banner("CUSTOM STATS: ", ui);
    for (host, stats) in &summary.custom_stats.hosts {
        ui.line(&format!("\t{host}: {}", body::inline(&Value::map(stats.clone()))));
    }
    if !summary.custom_stats.run.is_empty() {
        ui.line("");
        ui.line(&format!("\tRUN: {}", body::inline(&Value::map(summary.custom_stats.run.clone()))));
    }
    ui.line("");
}

#[cfg(test)]
#[path = "ansible_tests.rs"]
mod tests;
