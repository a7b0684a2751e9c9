//! Where the hosts of a batch are, for the few places where they must wait for one another.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::inventory::HostId;

use super::result::TaskResult;

/// Where a host stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// Everything before this position is done; what is at it is not.
    At(Vec<u32>),
    /// Done with the batch.
    Ended,
}

/// The common course of a batch of hosts.
pub struct Course {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    hosts: HashMap<HostId, Standing>,
    /// How many hosts stand at each place, so that the last is found at once.
    standings: BTreeMap<Standing, usize>,
    /// Hosts that failed or were unreachable.
    lost: HashSet<HostId>,
    /// Where hosts left the play, failed or not.
    departed: HashMap<HostId, Vec<u32>>,
    /// All hosts must stop here: the play ends, or too many of them failed.
    stopped: bool,
    /// More hosts were lost than `max_fail_percentage` allows.
    beyond_limit: bool,
    /// They were stopped by `meta: end_batch`.
    next_goes_on: bool,
    /// Failures of one host that are failures of all (`any_errors_fatal`), and where they came about.
    fatal: Vec<(HostId, Vec<u32>)>,
    size: usize,
    max_fail_percentage: Option<f64>,
    /// What a `run_once` task came to, for the hosts that did not run it.
    once: HashMap<Vec<u32>, Once>,
    /// The host that includes tasks where `run_once` stands on the include.
    chosen: HashMap<Vec<u32>, HostId>,
    /// How many hosts are at a task with `throttle`.
    throttled: HashMap<Vec<u32>, usize>,
}

enum Once {
    Taken(HostId),
    Done(Arc<TaskResult>),
}

/// What `run_once` asks of a host.
pub enum OnceTurn {
    /// It runs the task for all.
    Run,
    /// Another host does; wait.
    Wait,
    /// Another host has.
    Done(Arc<TaskResult>),
}

impl Course {
    pub fn new(hosts: &[HostId], max_fail_percentage: Option<f64>) -> Arc<Course> {
        let start = Standing::At(Vec::new());
        Arc::new(Course {
            state: Mutex::new(State {
                hosts: hosts.iter().map(|host| (*host, start.clone())).collect(),
                standings: BTreeMap::from([(start, hosts.len())]),
                lost: HashSet::new(),
                departed: HashMap::new(),
                stopped: false,
                beyond_limit: false,
                next_goes_on: false,
                fatal: Vec::new(),
                size: hosts.len(),
                max_fail_percentage,
                once: HashMap::new(),
                chosen: HashMap::new(),
                throttled: HashMap::new(),
            }),
            changed: Notify::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a host is done with everything before `position`. Returns the place of the host that is
    /// furthest behind, if that changed: everything before it is done on all hosts.
    pub fn reach(&self, host: HostId, position: Vec<u32>) -> Option<Vec<u32>> {
        self.stand(host, Standing::At(position))
    }

    /// Notes that a host is done with the batch.
    pub fn end(&self, host: HostId) -> Option<Vec<u32>> {
        self.stand(host, Standing::Ended)
    }

    fn stand(&self, host: HostId, standing: Standing) -> Option<Vec<u32>> {
        let mut state = self.state();
        let first = state.standings.keys().next().cloned();
        let before = state.hosts.insert(host, standing.clone());
        if let Some(before) = before {
            if before == standing {
                return None;
            }
            if let Some(count) = state.standings.get_mut(&before) {
                *count -= 1;
                if *count == 0 {
                    state.standings.remove(&before);
                }
            }
        }
        *state.standings.entry(standing).or_default() += 1;
        let last = state.standings.keys().next().cloned();
        drop(state);
        self.changed.notify_waiters();
        match last {
            Some(Standing::At(position)) if first.as_ref() != Some(&Standing::At(position.clone())) => Some(position),
            _ => None,
        }
    }

    /// Notes that a host failed or cannot be reached.
    pub fn lose(&self, host: HostId) {
        let mut state = self.state();
        state.lost.insert(host);
        if let Some(limit) = state.max_fail_percentage {
            let percent = state.lost.len() as f64 * 100.0 / state.size.max(1) as f64;
            state.beyond_limit |= percent > limit;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes that a host leaves the play at `position`.
    pub fn depart(&self, host: HostId, position: &[u32]) {
        self.state().departed.entry(host).or_insert_with(|| position.to_vec());
    }

    /// The hosts that have left the play before `position`.
    pub fn departed_before(&self, position: &[u32]) -> Vec<HostId> {
        let state = self.state();
        state.departed.iter().filter(|(_, at)| at.as_slice() < position).map(|(host, _)| *host).collect()
    }

    /// Notes a failure of a host that is one of all the others too, once they are past `position`.
    pub fn fail_all(&self, host: HostId, position: &[u32]) {
        self.state().fatal.push((host, position.to_vec()));
        self.changed.notify_waiters();
    }

    /// The failures that are failures of all, from the one with this number on.
    pub fn fatal_from(&self, number: usize) -> Option<(HostId, Vec<u32>)> {
        self.state().fatal.get(number).cloned()
    }

    /// Stops all hosts at the task they are at.
    pub fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_waiters();
    }

    /// Stops all hosts at the task they are at; the next batch goes on.
    pub fn end_batch(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.next_goes_on = true;
        drop(state);
        self.changed.notify_waiters();
    }

    /// True if no further batch is to begin.
    pub fn is_over(&self) -> bool {
        let state = self.state();
        state.stopped && !state.next_goes_on
    }

    /// True once more hosts are lost than may be: then all others are lost too.
    pub fn is_beyond_limit(&self) -> bool {
        self.state().beyond_limit
    }

    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    pub fn has_lost(&self, host: HostId) -> bool {
        self.state().lost.contains(&host)
    }

    /// True if every host still at work has reached `position`.
    pub fn all_reached(&self, position: &[u32]) -> bool {
        match self.state().standings.keys().next() {
            Some(Standing::At(last)) => last.as_slice() >= position,
            _ => true,
        }
    }

    /// True if every host still at work is past `position`.
    pub fn all_past(&self, position: &[u32]) -> bool {
        match self.state().standings.keys().next() {
            Some(Standing::At(last)) => last.as_slice() > position,
            _ => true,
        }
    }

    /// Asks whether this host is the one to run a `run_once` task. Of the hosts that came this way, the first
    /// in the order of the batch is chosen; all must have arrived (see [`Course::all_reached`]).
    pub fn once(&self, host: HostId, order: &[HostId], position: &[u32]) -> OnceTurn {
        let mut state = self.state();
        match state.once.get(position) {
            Some(Once::Done(result)) => return OnceTurn::Done(Arc::clone(result)),
            Some(Once::Taken(taker)) if *taker == host => return OnceTurn::Run,
            Some(Once::Taken(taker)) if !state.lost.contains(taker) => return OnceTurn::Wait,
            _ => {}
        }
        let here = Standing::At(position.to_vec());
        let first = order.iter().find(|candidate| state.hosts.get(candidate) == Some(&here));
        if first == Some(&host) {
            state.once.insert(position.to_vec(), Once::Taken(host));
            OnceTurn::Run
        } else {
            OnceTurn::Wait
        }
    }

    /// The one host that goes into an include with `run_once`: the first of those that came this way. All must have
    /// arrived.
    pub fn chosen(&self, order: &[HostId], position: &[u32]) -> Option<HostId> {
        let mut state = self.state();
        if let Some(host) = state.chosen.get(position) {
            return Some(*host);
        }
        let here = Standing::At(position.to_vec());
        let first = order.iter().find(|candidate| state.hosts.get(candidate) == Some(&here)).copied();
        first.inspect(|first| {
            state.chosen.insert(position.to_vec(), *first);
        })
    }

    /// True if all hosts before this one, in the order of the batch, are past `position`.
    pub fn is_turn_of(&self, host: HostId, order: &[HostId], position: &[u32]) -> bool {
        let state = self.state();
        order.iter().take_while(|other| **other != host).all(|other| match state.hosts.get(other) {
            Some(Standing::At(at)) => at.as_slice() > position,
            _ => true,
        })
    }

    /// Gives the result of a `run_once` task to all.
    pub fn once_done(&self, position: &[u32], result: Arc<TaskResult>) {
        self.state().once.insert(position.to_vec(), Once::Done(result));
        self.changed.notify_waiters();
    }

    /// Lets a host into a task that at most `limit` hosts may run at a time; false: it must wait.
    pub fn enter(&self, position: &[u32], limit: usize) -> bool {
        let mut state = self.state();
        let running = state.throttled.entry(position.to_vec()).or_default();
        let free = *running < limit;
        if free {
            *running += 1;
        }
        free
    }

    /// The host that [`Course::enter`] let in is done with the task.
    pub fn leave(&self, position: &[u32]) {
        if let Some(running) = self.state().throttled.get_mut(position) {
            *running = running.saturating_sub(1);
        }
        self.changed.notify_waiters();
    }

    /// Waits until anything of the above changes. Take the future before looking, so that no change is missed.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_host_decides_what_is_done_on_all() {
        let hosts = [HostId(0), HostId(1)];
        let course = Course::new(&hosts, None);
        assert_eq!(course.reach(HostId(0), vec![0, 3]), None);
        assert!(!course.all_reached(&[0, 2]));
        assert_eq!(course.reach(HostId(1), vec![0, 2]), Some(vec![0, 2]));
        assert!(course.all_reached(&[0, 2]));
        assert!(!course.all_past(&[0, 2]));
        assert_eq!(course.end(HostId(1)), Some(vec![0, 3]));
        assert!(course.all_past(&[0, 2]));
    }

    #[test]
    fn a_throttled_task_has_only_so_many_hosts() {
        let course = Course::new(&[HostId(0), HostId(1), HostId(2)], None);
        assert!(course.enter(&[1], 2) && course.enter(&[1], 2));
        assert!(!course.enter(&[1], 2));
        assert!(course.enter(&[2], 1));
        course.leave(&[1]);
        assert!(course.enter(&[1], 2));
    }

    #[test]
    fn too_many_lost_hosts_stop_the_batch() {
        let hosts: Vec<HostId> = (0..4).map(HostId).collect();
        let course = Course::new(&hosts, Some(30.0));
        course.lose(HostId(0));
        assert!(!course.is_beyond_limit());
        course.lose(HostId(1));
        assert!(course.is_beyond_limit());
    }
}
