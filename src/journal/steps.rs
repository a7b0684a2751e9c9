//! The order in which recorded changes are taken back or made: on each host one after the other, and the hosts side by side
//! where they are of the same task.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;

/// What decides to which step a recorded change belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    pub number: i64,
    pub host: &'a str,
    pub task: &'a str,
    pub place: &'a str,
    pub become_as: &'a Option<(String, String)>,
    pub no_log: bool,
}

/// What one task of an undo, or of a plan that is applied, works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedStep {
    /// The task that made the changes, or would.
    pub task: String,
    pub place: String,
    /// The method and the user, if another was become.
    pub become_as: Option<(String, String)>,
    /// Nothing of it may be shown.
    pub no_log: bool,
    /// For each host the numbers of its changes, in the order in which they are to be worked on.
    pub hosts: IndexMap<String, Vec<i64>>,
}

/// What the changes of a host are grouped by: the task, whom it became, and the how manieth of these groups it is on the host.
type Key = (String, String, Option<(String, String)>, usize);

/// The steps that these changes make, given in the order in which those of each host are to be worked on: to take
/// changes back, the last one first.
pub fn steps(changes: &[Entry<'_>]) -> Vec<RecordedStep> {
    let mut of_host: IndexMap<&str, Vec<(Key, Vec<i64>)>> = IndexMap::new();
    let mut turns: HashMap<i64, usize> = HashMap::new();
    for (turn, change) in changes.iter().enumerate() {
        turns.insert(change.number, turn);
        let groups = of_host.entry(change.host).or_default();
        let same = |key: &Key| key.0 == change.task && key.1 == change.place && key.2 == *change.become_as;
        match groups.last_mut() {
            Some((key, numbers)) if same(key) => numbers.push(change.number),
            _ => {
                let occurrence = groups.iter().filter(|(key, _)| same(key)).count();
                let key = (change.task.to_owned(), change.place.to_owned(), change.become_as.clone(), occurrence);
                groups.push((key, vec![change.number]));
            }
        }
    }
    of_host.sort_unstable_keys();
    let mut done: HashMap<&str, usize> = HashMap::new();
    let mut steps = Vec::new();
    loop {
        // the keys that come next on some host; of these one that no host has further back, if there is one
        let next = |host: &str, groups: &[(Key, Vec<i64>)]| {
            groups.get(done.get(host).copied().unwrap_or(0)).map(|(key, _)| key.clone())
        };
        let fronts: BTreeSet<Key> = of_host.iter().filter_map(|(host, groups)| next(host, groups)).collect();
        let first = |key: &Key| {
            let numbers = of_host.values().flatten().filter(|(other, _)| other == key).flat_map(|(_, numbers)| numbers);
            numbers.filter_map(|number| turns.get(number)).min().copied()
        };
        let is_behind = |key: &Key| {
            of_host.iter().any(|(host, groups)| {
                groups.iter().skip(done.get(host).copied().unwrap_or(0) + 1).any(|(other, _)| other == key)
            })
        };
        let Some(key) =
            fronts.iter().filter(|key| !is_behind(key)).min_by_key(|key| first(key)).or(fronts.iter().next()).cloned()
        else {
            return steps;
        };
        let mut hosts = IndexMap::new();
        let no_log = changes.iter().any(|change| change.no_log && change.task == key.0 && change.place == key.1);
        for (host, groups) in &of_host {
            let at = done.entry(host).or_insert(0);
            if let Some((front, numbers)) = groups.get(*at)
                && *front == key
            {
                hosts.insert((*host).to_owned(), numbers.clone());
                *at += 1;
            }
        }
        let (task, place, become_as, _) = key;
        steps.push(RecordedStep { task, place, become_as, no_log, hosts });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(number: i64, host: &'static str, task: &'static str) -> Entry<'static> {
        Entry { number, host, task, place: "", become_as: &None, no_log: false }
    }

    /// The steps as text, `task: host=numbers`, of changes that are taken back.
    fn back(changes: &[Entry<'_>]) -> Vec<String> {
        told(&changes.iter().rev().cloned().collect::<Vec<_>>())
    }

    fn told(changes: &[Entry<'_>]) -> Vec<String> {
        let step = |step: RecordedStep| {
            let hosts: Vec<String> = step.hosts.iter().map(|(host, numbers)| format!("{host}={numbers:?}")).collect();
            format!("{}: {}", step.task, hosts.join(" "))
        };
        steps(changes).into_iter().map(step).collect()
    }

    #[test]
    fn the_last_is_taken_back_first_and_hosts_side_by_side() {
        let changes = [
            change(1, "a", "one"),
            change(2, "b", "one"),
            change(3, "a", "two"),
            change(4, "a", "two"),
            change(5, "b", "two"),
        ];
        assert_eq!(back(&changes), ["two: a=[4, 3] b=[5]", "one: a=[1] b=[2]"]);
        assert_eq!(told(&changes), ["one: a=[1] b=[2]", "two: a=[3, 4] b=[5]"]);
    }

    #[test]
    fn a_host_that_went_ahead_does_not_part_the_tasks() {
        let changes = [change(1, "a", "one"), change(2, "a", "two"), change(3, "b", "one"), change(4, "b", "two")];
        assert_eq!(back(&changes), ["two: a=[2] b=[4]", "one: a=[1] b=[3]"]);
        assert_eq!(told(&changes), ["one: a=[1] b=[3]", "two: a=[2] b=[4]"]);
    }

    #[test]
    fn a_task_that_ran_twice_is_two_steps() {
        let changes = [change(1, "a", "one"), change(2, "a", "two"), change(3, "a", "one")];
        assert_eq!(back(&changes), ["one: a=[3]", "two: a=[2]", "one: a=[1]"]);
    }

    #[test]
    fn hosts_that_went_in_other_orders_keep_each_their_own() {
        let changes = [change(1, "a", "one"), change(2, "a", "two"), change(3, "b", "two"), change(4, "b", "one")];
        let steps = steps(&changes);
        for host in ["a", "b"] {
            let order: Vec<i64> = steps.iter().filter_map(|step| step.hosts.get(host)).flatten().copied().collect();
            assert_eq!((order.len(), order.is_sorted()), (2, true), "{host}: {order:?}");
        }
    }
}
