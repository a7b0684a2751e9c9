//! Puts results into the order of the playbook, whatever order they come in.

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::event::{Event, HostResult, TaskInfo};
use crate::vars::Stamp;

/// What a report is told: events in order, and the results of one task together.
#[derive(Debug)]
pub enum Step {
    Event(Event),
    Task(TaskResults),
}

/// The results of one task, host by host in the order of the batch.
///
/// Where the batch is a single host they come one by one as they happen; then [`TaskResults::is_same_task`] tells
/// that they belong together.
#[derive(Debug)]
pub struct TaskResults {
    pub stamp: Stamp,
    pub task: Arc<TaskInfo>,
    pub results: Vec<HostResult>,
}

impl TaskResults {
    /// True if these are further results of the same task.
    pub fn is_same_task(&self, stamp: &Stamp, task: &TaskInfo) -> bool {
        self.stamp == *stamp && same_task(&self.task, task)
    }
}

/// Two hosts may meet different tasks at one position, if they included different files.
fn same_task(left: &TaskInfo, right: &TaskInfo) -> bool {
    left.place.line == right.place.line
        && left.place.column == right.place.column
        && left.place.source.path == right.place.source.path
}

/// Holds results back until what is before them is complete.
#[derive(Default)]
pub struct Order {
    held: Vec<HostResult>,
    /// The hosts of the batch, with their number.
    hosts: HashMap<Arc<str>, usize>,
}

impl Order {
    /// Takes an event; gives what can be shown now.
    pub fn push(&mut self, event: Event) -> Vec<Step> {
        match event {
            Event::Result(result) => {
                if self.hosts.len() == 1 && self.held.is_empty() {
                    return group(vec![*result]);
                }
                self.held.push(*result);
                Vec::new()
            }
            Event::Passed(stamp) => {
                let (ready, held) = std::mem::take(&mut self.held).into_iter().partition(|held| held.stamp < stamp);
                self.held = held;
                self.release(ready)
            }
            Event::BatchStarted { play, batch, hosts } => {
                self.hosts = hosts.iter().enumerate().map(|(index, host)| (Arc::clone(host), index)).collect();
                vec![Step::Event(Event::BatchStarted { play, batch, hosts })]
            }
            Event::PlayStarted { .. } | Event::BatchEnded { .. } => {
                let held = std::mem::take(&mut self.held);
                let mut steps = self.release(held);
                steps.push(Step::Event(event));
                steps
            }
            other => vec![Step::Event(other)],
        }
    }

    /// What is still held back when the run has ended.
    pub fn finish(&mut self) -> Vec<Step> {
        let held = std::mem::take(&mut self.held);
        self.release(held)
    }

    fn release(&self, mut results: Vec<HostResult>) -> Vec<Step> {
        // stable: the items of a host's loop stay before the whole
        results.sort_by(|left, right| {
            let number = |result: &HostResult| self.hosts.get(&result.host).copied().unwrap_or(usize::MAX);
            left.stamp.cmp(&right.stamp).then_with(|| number(left).cmp(&number(right)))
        });
        group(results)
    }
}

/// Puts the results of a task together; in the order in which the tasks come first.
fn group(results: Vec<HostResult>) -> Vec<Step> {
    let mut groups: Vec<TaskResults> = Vec::new();
    for result in results {
        let known = groups.iter().rposition(|group| group.is_same_task(&result.stamp, &result.task));
        // only tasks at the same position can be apart from one another
        match known.filter(|index| groups[*index].stamp == result.stamp) {
            Some(index) => groups[index].results.push(result),
            None => groups.push(TaskResults {
                stamp: result.stamp.clone(),
                task: Arc::clone(&result.task),
                results: vec![result],
            }),
        }
    }
    groups.into_iter().map(Step::Task).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{self, Sample};
    use super::*;

    fn names(steps: &[Step]) -> Vec<String> {
        let mut names = Vec::new();
        for step in steps {
            if let Step::Task(task) = step {
                let hosts: Vec<&str> = task.results.iter().map(|result| result.host.as_ref()).collect();
                names.push(format!("{}: {}", task.task.name, hosts.join(" ")));
            }
        }
        names
    }

    #[test]
    fn results_are_held_until_all_hosts_are_past_them() {
        let sample = Sample::new();
        let mut order = Order::default();
        order.push(sample::batch(&["web1", "web2"]));
        assert!(order.push(sample.task(0, "first").ok("web2")).is_empty());
        assert!(order.push(sample.task(1, "second").ok("web2")).is_empty());
        assert!(order.push(sample.task(0, "first").ok("web1")).is_empty());
        assert_eq!(names(&order.push(sample::passed(1))), ["first: web1 web2"]);
        assert!(order.push(sample::passed(1)).is_empty());
        let ended = order.push(Event::BatchEnded { play: 0, batch: 0 });
        assert_eq!(names(&ended), ["second: web2"]);
        assert!(matches!(ended.last(), Some(Step::Event(Event::BatchEnded { .. }))));
    }

    #[test]
    fn a_single_host_is_shown_at_once() {
        let sample = Sample::new();
        let mut order = Order::default();
        order.push(sample::batch(&["web1"]));
        assert_eq!(names(&order.push(sample.task(0, "first").ok("web1"))), ["first: web1"]);
    }

    #[test]
    fn different_tasks_at_one_position_stay_apart() {
        let sample = Sample::new();
        let mut order = Order::default();
        order.push(sample::batch(&["a", "b", "c"]));
        order.push(sample.task(0, "red").ok("a"));
        order.push(sample.task(0, "blue").at_line(9).ok("b"));
        order.push(sample.task(0, "red").ok("c"));
        assert_eq!(names(&order.finish()), ["red: a c", "blue: b"]);
    }
}
