//! What each host's tasks came to, counted as Ansible counts them, and the exit code that follows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::event::{Event, HostResult};
use crate::engine::result::Status;
use crate::value::Value;

/// How often a host's tasks came to what. A loop counts as one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tasks that did what they should, changed or not; ignored failures too.
    pub ok: u64,
    pub changed: u64,
    pub unreachable: u64,
    /// Failures that count: neither ignored nor rescued.
    pub failed: u64,
    pub skipped: u64,
    pub rescued: u64,
    pub ignored: u64,
    /// Tasks of which check mode cannot know what they would do.
    pub unknown: u64,
}

/// The counts of all hosts that took part, by name.
#[derive(Debug, Default)]
pub struct Recap {
    pub hosts: BTreeMap<Arc<str>, Counts>,
    /// A host failed, or was unreachable, and its errors were not cleared since.
    failed: bool,
    unreachable: bool,
    /// Hosts whose walk a fault of trimtab ended.
    crashed: bool,
}

impl Recap {
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Result(result) => self.result(result),
            Event::ErrorsCleared => (self.failed, self.unreachable) = (false, false),
            Event::Crashed { host, .. } => {
                self.hosts.entry(Arc::clone(host)).or_default().failed += 1;
                self.crashed = true;
            }
            _ => {}
        }
    }

    fn result(&mut self, event: &HostResult) {
        let result = &event.result;
        // what an item came to counts with its whole loop; only a host that is lost ends the loop at once
        if event.item.is_some() && result.status != Status::Unreachable {
            return;
        }
        let counts = self.hosts.entry(Arc::clone(&event.host)).or_default();
        let changed = result.result.get("changed").is_some_and(Value::is_truthy);
        match result.status {
            Status::Ok | Status::Changed => match &event.task.included {
                Some(files) => counts.ok += files.len() as u64,
                None if event.task.action == "meta" => {}
                None => {
                    counts.ok += 1;
                    counts.changed += u64::from(result.status == Status::Changed);
                }
            },
            Status::Skipped if event.task.action == "meta" => {}
            Status::Skipped => counts.skipped += 1,
            Status::Unknown => counts.unknown += 1,
            Status::Failed | Status::Unreachable if result.ignored => {
                counts.ok += 1;
                counts.ignored += 1;
                counts.changed += u64::from(changed && result.status == Status::Failed);
            }
            Status::Failed if event.rescued => counts.rescued += 1,
            Status::Failed => {
                counts.failed += 1;
                self.failed = true;
            }
            Status::Unreachable => {
                counts.unreachable += 1;
                self.unreachable = true;
            }
        }
    }

    /// ansible-playbook's exit code: 4 if a host was unreachable, else 2 if one failed, else 0.
    pub fn exit_code(&self) -> u8 {
        if self.crashed {
            250
        } else if self.unreachable {
            4
        } else if self.failed {
            2
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    fn counts(events: &[Event]) -> (Counts, u8) {
        let mut recap = Recap::default();
        events.iter().for_each(|event| recap.event(event));
        let code = recap.exit_code();
        (recap.hosts.get("h").copied().unwrap_or_default(), code)
    }

    #[test]
    fn results_count_as_ansible_counts_them() {
        let task = Sample::new().task(0, "t");
        let none = Counts::default();
        let cases = [
            ("ok", task.ok("h"), Counts { ok: 1, ..none }, 0),
            ("a change is ok too", task.changed("h"), Counts { ok: 1, changed: 1, ..none }, 0),
            ("skipped", task.end("h", Status::Skipped), Counts { skipped: 1, ..none }, 0),
            ("unknown", task.end("h", Status::Unknown), Counts { unknown: 1, ..none }, 0),
            ("failed", task.failed("h"), Counts { failed: 1, ..none }, 2),
            ("rescued", task.clone().rescued().failed("h"), Counts { rescued: 1, ..none }, 0),
            ("ignored", task.clone().ignored().failed("h"), Counts { ok: 1, ignored: 1, ..none }, 0),
            (
                "an ignored failure of a command that ran",
                task.clone().ignored().with("changed", true).failed("h"),
                Counts { ok: 1, ignored: 1, changed: 1, ..none },
                0,
            ),
            ("unreachable", task.end("h", Status::Unreachable), Counts { unreachable: 1, ..none }, 4),
            (
                "ignored unreachable",
                task.clone().ignored().end("h", Status::Unreachable),
                Counts { ok: 1, ignored: 1, ..none },
                0,
            ),
            ("an item", task.clone().item("x").changed("h"), none, 0),
            ("a whole loop", task.clone().whole().changed("h"), Counts { ok: 1, changed: 1, ..none }, 0),
            ("included files", task.clone().included(&["a.yml", "b.yml"]).ok("h"), Counts { ok: 2, ..none }, 0),
            ("meta", task.clone().action("meta").ok("h"), none, 0),
        ];
        for (what, event, expected, code) in cases {
            assert_eq!(counts(&[event]), (expected, code), "{what}");
        }
    }

    #[test]
    fn unreachable_decides_the_exit_code_before_failed() {
        let task = Sample::new().task(0, "t");
        let (_, code) = counts(&[task.failed("a"), task.end("b", Status::Unreachable)]);
        assert_eq!(code, 4);
    }
}
