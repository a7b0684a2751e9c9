//! One JSON document at the end, in the structure of Ansible's json callback.

use jiff::Timestamp;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::{Counts, Look, Report, Summary, TaskResults, body};
use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::ui::Ui;
use crate::value::Value;

/// The report of one document. A task's duration reaches from the end of the task before it to its own end on all
/// hosts, since hosts work on several tasks at once.
pub struct Document {
    look: Look,
    plays: Vec<Play>,
    now: fn() -> Timestamp,
    /// When the last thing happened.
    last: Timestamp,
}

struct Play {
    name: String,
    tasks: Vec<Task>,
    started: Timestamp,
    ended: Timestamp,
}

struct Task {
    of: TaskResults,
    hosts: JsonMap<String, Json>,
    started: Timestamp,
    ended: Timestamp,
}

impl Document {
    pub fn new(look: Look) -> Document {
        Document::with_clock(look, Timestamp::now)
    }

    fn with_clock(look: Look, now: fn() -> Timestamp) -> Document {
        Document { look, plays: Vec::new(), now, last: now() }
    }

    fn host(&self, event: &HostResult) -> Json {
        let mut object =
            Value::map(body::shown(event, self.look.verbosity.max(if event.diff { 3 } else { 0 }))).to_json();
        let status = match event.result.status {
            Status::Failed => Some("failed"),
            Status::Skipped => Some("skipped"),
            Status::Unreachable => Some("unreachable"),
            Status::Unknown => Some("unknown"),
            Status::Ok | Status::Changed => None,
        };
        if let Some(status) = status {
            object[status] = true.into();
        }
        object["action"] = event.task.action.as_str().into();
        object["_ansible_no_log"] = event.no_log.into();
        object
    }
}

/// The counts of a host, under Ansible's names.
pub fn counts(counts: &Counts) -> Json {
    json!({
        "ok": counts.ok,
        "changed": counts.changed,
        "unreachable": counts.unreachable,
        "failures": counts.failed,
        "skipped": counts.skipped,
        "rescued": counts.rescued,
        "ignored": counts.ignored,
        "unknown": counts.unknown,
    })
}

fn duration(started: Timestamp, ended: Timestamp) -> Json {
    // Ansible's form: UTC to the microsecond
    let text = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    json!({"start": text(started), "end": text(ended)})
}

impl Report for Document {
    fn event(&mut self, event: &Event, ui: &mut Ui) {
        match event {
            Event::PlayStarted { name, .. } => {
                let now = (self.now)();
                self.last = now;
                self.plays.push(Play { name: name.clone(), tasks: Vec::new(), started: now, ended: now });
            }
            Event::Warning(text) => ui.warning(text),
            Event::Crashed { host, message } => {
                ui.warning(&format!("a fault of trimtab itself ended the work on {host}: {message}"));
            }
            _ => {}
        }
    }

    fn task(&mut self, results: &TaskResults, _: &mut Ui) {
        let now = (self.now)();
        let hosts: Vec<(String, Json)> = results
            .results
            .iter()
            .filter(|result| result.item.is_none() || result.result.status == Status::Unreachable)
            .filter(|result| result.task.action != "meta")
            .map(|result| (result.host.to_string(), self.host(result)))
            .collect();
        let (last, Some(play)) = (self.last, self.plays.last_mut()) else { return };
        let known = play.tasks.last().is_some_and(|task| task.of.is_same_task(&results.stamp, &results.task));
        if !known {
            let of = TaskResults { stamp: results.stamp.clone(), task: results.task.clone(), results: Vec::new() };
            play.tasks.push(Task { of, hosts: JsonMap::new(), started: last, ended: now });
        }
        if let Some(task) = play.tasks.last_mut() {
            task.hosts.extend(hosts);
            task.ended = now;
        }
        play.ended = now;
        self.last = now;
    }

    fn end(&mut self, summary: &Summary, ui: &mut Ui) {
        let plays: Vec<Json> = self.plays.iter().enumerate().map(|(index, play)| play_json(index, play)).collect();
        let map = |map: &crate::value::Map| Value::map(map.clone()).to_json();
        let stats: JsonMap<String, Json> =
            summary.recap.hosts.iter().map(|(host, each)| (host.to_string(), counts(each))).collect();
        let custom: JsonMap<String, Json> =
            summary.custom_stats.hosts.iter().map(|(host, stats)| (host.to_string(), map(stats))).collect();
        let document = json!({
            "custom_stats": custom,
            "global_custom_stats": map(&summary.custom_stats.run),
            "plays": plays,
            "stats": stats,
        });
        ui.line(&body::pretty_sorted(&document));
    }
}

fn play_json(index: usize, play: &Play) -> Json {
    let tasks: Vec<Json> = play
        .tasks
        .iter()
        .map(|task| {
            let info = &task.of.task;
            let position: Vec<String> = task.of.stamp.position.iter().map(u32::to_string).collect();
            json!({
                "hosts": task.hosts,
                "task": {
                    "duration": duration(task.started, task.ended),
                    "id": format!("{}-{}-{}", task.of.stamp.play, task.of.stamp.batch, position.join(".")),
                    "name": info.name,
                    "path": format!("{}:{}", info.place.source.path.display(), info.place.line),
                },
            })
        })
        .collect();
    json!({
        "play": {
            "duration": duration(play.started, play.ended),
            "id": index.to_string(),
            "name": play.name,
        },
        "tasks": tasks,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{sample, tell};
    use super::*;

    #[test]
    fn the_document_is_that_of_ansibles_json_callback() {
        let sample = sample::Sample::new();
        let looped = sample.task(1, "loop");
        let events = [
            sample::play("first", &["a", "b"]),
            sample::batch(&["a", "b"]),
            sample.task(0, "echo").with("rc", 0).changed("a"),
            sample.task(0, "echo").with("msg", "no").failed("b"),
            looped.clone().item("x").ok("a"),
            looped.whole().ok("a"),
            sample::passed(2),
            Event::CustomStats {
                host: None,
                data: crate::value::Map::from_iter([("n".into(), 1.into())]).into(),
                aggregate: true,
            },
            sample.task(2, "secret").no_log().with("stdout", "password").ok("a"),
            sample::ended(),
        ];
        let mut report = Document::with_clock(Look::default(), || Timestamp::UNIX_EPOCH);
        let (text, _) = tell(&mut report, events);
        let expected = r#"{
    "custom_stats": {},
    "global_custom_stats": {
        "n": 1
    },
    "plays": [
        {
            "play": {
                "duration": {
                    "end": "1970-01-01T00:00:00.000000Z",
                    "start": "1970-01-01T00:00:00.000000Z"
                },
                "id": "0",
                "name": "first"
            },
            "tasks": [
                {
                    "hosts": {
                        "a": {
                            "_ansible_no_log": false,
                            "action": "command",
                            "changed": true,
                            "rc": 0
                        },
                        "b": {
                            "_ansible_no_log": false,
                            "action": "command",
                            "changed": false,
                            "failed": true,
                            "msg": "no"
                        }
                    },
                    "task": {
                        "duration": {
                            "end": "1970-01-01T00:00:00.000000Z",
                            "start": "1970-01-01T00:00:00.000000Z"
                        },
                        "id": "0-0-0",
                        "name": "echo",
                        "path": "/site/play.yml:3"
                    }
                },
                {
                    "hosts": {
                        "a": {
                            "_ansible_no_log": false,
                            "action": "command",
                            "changed": false,
                            "results": []
                        }
                    },
                    "task": {
                        "duration": {
                            "end": "1970-01-01T00:00:00.000000Z",
                            "start": "1970-01-01T00:00:00.000000Z"
                        },
                        "id": "0-0-1",
                        "name": "loop",
                        "path": "/site/play.yml:4"
                    }
                },
                {
                    "hosts": {
                        "a": {
                            "_ansible_no_log": true,
                            "action": "command",
                            "censored": "the output has been hidden due to the fact that 'no_log: true' was specified for this result",
                            "changed": false
                        }
                    },
                    "task": {
                        "duration": {
                            "end": "1970-01-01T00:00:00.000000Z",
                            "start": "1970-01-01T00:00:00.000000Z"
                        },
                        "id": "0-0-2",
                        "name": "secret",
                        "path": "/site/play.yml:5"
                    }
                }
            ]
        }
    ],
    "stats": {
        "a": {
            "changed": 1,
            "failures": 0,
            "ignored": 0,
            "ok": 3,
            "rescued": 0,
            "skipped": 0,
            "unknown": 0,
            "unreachable": 0
        },
        "b": {
            "changed": 0,
            "failures": 1,
            "ignored": 0,
            "ok": 0,
            "rescued": 0,
            "skipped": 0,
            "unknown": 0,
            "unreachable": 0
        }
    }
}
"#;
        assert_eq!(text, expected);
    }
}
