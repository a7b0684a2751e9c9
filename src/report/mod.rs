//! What a run tells, as text or data: one file a format. Reports receive the engine's events; it does not know them.

mod ansible;
mod body;
mod condensed;
pub mod diff;
mod json;
mod jsonl;
mod minimal;
mod oneline;
mod order;
mod recap;
#[cfg(test)]
mod sample;
mod stats;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use body::{open_line, pretty, pretty_json, write_pretty_value};
pub use order::{Order, Step, TaskResults};
pub use recap::{Counts, Recap};
pub use stats::CustomStats;

use crate::connect::Counters;
use crate::engine::event::Event;
use crate::error::{Error, Result};
use crate::ui::Ui;

/// A report: told of a run as it goes on.
pub trait Report: Send {
    /// An event other than a result.
    fn event(&mut self, event: &Event, ui: &mut Ui);
    /// The results of one task; of a batch of a single host, each by itself.
    fn task(&mut self, task: &TaskResults, ui: &mut Ui);
    /// The run has ended.
    fn end(&mut self, summary: &Summary, ui: &mut Ui);
    /// True if events are wanted as they come, not in the order of the playbook.
    fn wants_them_as_they_come(&self) -> bool {
        false
    }
}

/// What is known when a run has ended.
#[derive(Debug, Default)]
pub struct Summary {
    pub recap: Recap,
    pub custom_stats: CustomStats,
    /// What the connections to each host have cost.
    pub costs: BTreeMap<Arc<str>, Counters>,
}

/// How reports show things.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// How often `-v` was given.
    pub verbosity: u8,
    pub shows_skipped: bool,
    pub shows_ok: bool,
    pub shows_custom_stats: bool,
    /// Unchanged lines around a difference.
    pub diff_context: usize,
}

impl Default for Look {
    fn default() -> Look {
        Look { verbosity: 0, shows_skipped: true, shows_ok: true, shows_custom_stats: false, diff_context: 3 }
    }
}

/// A format of `--output`.
pub struct Format {
    pub name: &'static str,
    /// Names it has as a callback of Ansible (`stdout_callback`).
    pub callbacks: &'static [&'static str],
    pub summary: &'static str,
    pub new: fn(Look) -> Box<dyn Report>,
}

/// All formats; the first is the default.
pub const FORMATS: &[Format] = &[
    Format {
        name: "ansible",
        callbacks: &["default", "ansible.builtin.default"],
        summary: "the text of ansible-playbook",
        new: |look| Box::new(ansible::Ansible::new(look)),
    },
    Format {
        name: "condensed",
        callbacks: &["dense", "community.general.dense"],
        summary: "one line a task, for many hosts; failures in full",
        new: |look| Box::new(condensed::Condensed::new(look)),
    },
    Format {
        name: "minimal",
        callbacks: &["minimal", "ansible.builtin.minimal"],
        summary: "the text of `ansible`: host, result, nothing else",
        new: |look| Box::new(minimal::Minimal::new(look)),
    },
    Format {
        name: "oneline",
        callbacks: &["oneline", "ansible.builtin.oneline"],
        summary: "the text of `ansible --one-line`: each result on one line",
        new: |look| Box::new(minimal::Minimal::on_one_line(look)),
    },
    Format {
        name: "json",
        callbacks: &["json", "ansible.posix.json"],
        summary: "one JSON document at the end, as Ansible's json callback gives it",
        new: |look| Box::new(json::Document::new(look)),
    },
    Format {
        name: "jsonl",
        callbacks: &["jsonl", "ansible.posix.jsonl"],
        summary: "one JSON object a line, as things happen",
        new: |look| Box::new(jsonl::Jsonl::new(look)),
    },
];

/// The format of this name.
pub fn format(name: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        Error::usage(format!("there is no report `{name}`"))
            .suggest(name, names.iter().copied())
            .hint(format!("known are {}", names.join(", ")))
    })
}

/// The format that stands for a callback of Ansible.
pub fn format_of_callback(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.callbacks.contains(&name) || format.name == name)
}

/// Hands events to a report in the order it wants, and keeps count.
#[derive(Default)]
pub struct Teller {
    order: Order,
    summary: Summary,
    has_begun: bool,
}

impl Teller {
    pub fn tell(&mut self, event: Event, report: &mut dyn Report, ui: &mut Ui) {
        self.has_begun |= matches!(event, Event::PlayStarted { .. });
        self.summary.recap.event(&event);
        match &event {
            Event::CustomStats { host, data, aggregate } => {
                self.summary.custom_stats.add(host.clone(), data, *aggregate);
            }
            Event::HostCost { host, counters } => {
                let cost = self.summary.costs.entry(Arc::clone(host)).or_default();
                cost.round_trips += counters.round_trips;
                cost.bytes_sent += counters.bytes_sent;
                cost.bytes_received += counters.bytes_received;
            }
            _ => {}
        }
        if report.wants_them_as_they_come() {
            report.event(&event, ui);
            return;
        }
        let steps = self.order.push(event);
        show(steps, report, ui);
    }

    /// True once a play has begun.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub fn end(mut self, report: &mut dyn Report, ui: &mut Ui) -> Summary {
        show(self.order.finish(), report, ui);
        report.end(&self.summary, ui);
        ui.flush();
        self.summary
    }
}

fn show(steps: Vec<Step>, report: &mut dyn Report, ui: &mut Ui) {
    for step in steps {
        match step {
            Step::Event(event) => report.event(&event, ui),
            Step::Task(task) => report.task(&task, ui),
        }
    }
}

/// Bytes for people: `41 kB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{} kB", (count + 500) / 1_000),
        _ => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// What the connection to a host has cost, as a line.
pub fn cost_line(host: &str, counters: &Counters) -> String {
    let trips = if counters.round_trips == 1 { "round trip" } else { "round trips" };
    format!(
        "{host}: {} {trips}, {} sent, {} received",
        counters.round_trips,
        bytes(counters.bytes_sent),
        bytes(counters.bytes_received)
    )
}

#[cfg(test)]
fn tell(report: &mut dyn Report, events: impl IntoIterator<Item = Event>) -> (String, String) {
    let mut ui = Ui::memory();
    let mut teller = Teller::default();
    for event in events {
        teller.tell(event, report, &mut ui);
    }
    teller.end(report, &mut ui);
    (ui.written(), ui.written_errors())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_said_for_people() {
        let counters = Counters { round_trips: 3, bytes_sent: 41_200, bytes_received: 999 };
        assert_eq!(cost_line("kp001", &counters), "kp001: 3 round trips, 41 kB sent, 999 B received");
        assert_eq!(bytes(12_345_678), "12.3 MB");
    }

    #[test]
    fn formats_and_callbacks_have_one_meaning() {
        let mut seen = std::collections::HashSet::new();
        for format in FORMATS {
            assert!(seen.insert(format.name));
        }
        assert_eq!(format_of_callback("default").map(|format| format.name), Some("ansible"));
        assert!(format_of_callback("yaml").is_none());
        assert!(format("ansibel").is_err_and(|error| error.hints()[0] == "did you mean `ansible`?"));
    }
}
