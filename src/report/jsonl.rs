//! One JSON object a line, as things happen: for programs that follow a run.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Look, Report, Summary, TaskResults, body};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::Ui;
use crate::value::Value;

/// The report of one object a line. Each has `event`; results come in whatever order hosts end their tasks.
pub struct Jsonl {
    look: Look,
}

impl Jsonl {
    pub fn new(look: Look) -> Jsonl {
        Jsonl { look }
    }

    fn result(&self, event: &HostResult) -> Json {
        let place = &event.task.place;
        let mut object = json!({
            "event": "result",
            "play": event.stamp.play,
            "batch": event.stamp.batch,
            "position": event.stamp.position,
            "host": &*event.host,
            "status": status(event.result.status),
            "task": {
                "name": event.task.name,
                "action": event.task.action,
                "path": format!("{}:{}", place.source.path.display(), place.line),
                "handler": event.task.is_handler,
            },
            "ignored": event.result.ignored,
            "rescued": event.rescued,
            "result": Value::map(body::shown(event, self.look.verbosity.max(if event.diff { 3 } else { 0 }))).to_json(),
        });
        if let Some(item) = &event.item {
            object["item"] = if event.no_log { Json::Null } else { item.as_str().into() };
        }
        if event.is_loop {
            object["loop"] = true.into();
        }
        if let Some(host) = &event.delegated_to {
            object["delegated_to"] = host.as_str().into();
        }
        if let Some(files) = &event.task.included {
            object["included"] = files.as_slice().into();
        }
        if !event.result.warnings.is_empty() {
            object["warnings"] = event.result.warnings.as_slice().into();
        }
        object
    }
}

fn words(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(AsRef::as_ref).collect()
}

/// The status as a word.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Changed => "changed",
        Status::Skipped => "skipped",
        Status::Failed => "failed",
        Status::Unreachable => "unreachable",
        Status::Unknown => "unknown",
    }
}

impl Report for Jsonl {
    fn event(&mut self, event: &Event, ui: &mut Ui) {
        let object = match event {
            Event::PlaybookStarted { path, plays } => {
                json!({"event": "playbook_started", "path": path, "plays": plays})
            }
            Event::PlayStarted { play, name, hosts } => {
                json!({"event": "play_started", "play": play, "name": name, "hosts": words(hosts)})
            }
            Event::NoHosts { play, pattern } => json!({"event": "no_hosts", "play": play, "pattern": pattern}),
            Event::BatchStarted { play, batch, hosts } => {
                json!({"event": "batch_started", "play": play, "batch": batch, "hosts": words(hosts)})
            }
            Event::Result(result) => self.result(result),
            Event::BatchEnded { play, batch } => json!({"event": "batch_ended", "play": play, "batch": batch}),
            Event::Rescued { host } => json!({"event": "rescued", "host": &**host}),
            Event::ErrorsCleared => json!({"event": "errors_cleared"}),
            Event::Warning(text) => json!({"event": "warning", "message": text}),
            Event::Crashed { host, message } => json!({"event": "crashed", "host": &**host, "message": message}),
            Event::CustomStats { host, data, aggregate } => {
                json!({"event": "custom_stats", "host": host.as_deref(), "data": data.to_json(), "aggregate": aggregate})
            }
            Event::HostCost { host, counters } => json!({
                "event": "host_cost",
                "host": &**host,
                "round_trips": counters.round_trips,
                "bytes_sent": counters.bytes_sent,
                "bytes_received": counters.bytes_received,
            }),
            // only of use for putting results in order, which a reader can do by `position`
            Event::Passed(_) | Event::Question(_) => return,
        };
        ui.line(&object.to_string());
    }

    fn task(&mut self, task: &TaskResults, ui: &mut Ui) {
        for result in &task.results {
            ui.line(&self.result(result).to_string());
        }
    }

    fn end(&mut self, summary: &Summary, ui: &mut Ui) {
        let stats: serde_json::Map<String, Json> =
            summary.recap.hosts.iter().map(|(host, counts)| (host.to_string(), super::json::counts(counts))).collect();
        ui.line(&json!({"event": "ended", "stats": stats, "exit_code": summary.recap.exit_code()}).to_string());
    }

    fn wants_them_as_they_come(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{sample, tell};
    use super::*;

    #[test]
    fn each_event_is_one_line_as_it_comes() {
        let sample = sample::Sample::new();
        let events = [
            sample::play("p", &["a", "b"]),
            sample::batch(&["a", "b"]),
            sample.task(1, "second").with("rc", 0).changed("b"),
            sample.task(0, "secret").no_log().item("x").with("stdout", "password").ok("a"),
            sample::passed(1),
            sample::ended(),
        ];
        let (text, _) = tell(&mut Jsonl::new(Look::default()), events);
        let expected = r#"{"event":"play_started","play":0,"name":"p","hosts":["a","b"]}
{"event":"batch_started","play":0,"batch":0,"hosts":["a","b"]}
{"event":"result","play":0,"batch":0,"position":[1],"host":"b","status":"changed","task":{"name":"second","action":"command","path":"/site/play.yml:4","handler":false},"ignored":false,"rescued":false,"result":{"rc":0,"changed":true}}
{"event":"result","play":0,"batch":0,"position":[0],"host":"a","status":"ok","task":{"name":"secret","action":"command","path":"/site/play.yml:3","handler":false},"ignored":false,"rescued":false,"result":{"changed":false,"censored":"the output has been hidden due to the fact that 'no_log: true' was specified for this result"},"item":null}
{"event":"batch_ended","play":0,"batch":0}
{"event":"ended","stats":{"b":{"ok":1,"changed":1,"unreachable":0,"failures":0,"skipped":0,"rescued":0,"ignored":0,"unknown":0}},"exit_code":0}
"#;
        assert_eq!(text, expected);
    }
}
