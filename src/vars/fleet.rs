//! What every host's tasks have set, in the order of the playbook, so that `hostvars` of another host is
//! what it was at the reader's place in the play, however far that host has gone on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::inventory::HostId;
use crate::value::Map;

use super::runtime::{Additions, Runtime};

/// A place in the course of a run: play, batch, and the way down the play's lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    pub play: u32,
    pub batch: u32,
    pub position: Vec<u32>,
}

/// The runtime variables of all hosts of a run.
#[derive(Default)]
pub struct Fleet {
    hosts: Mutex<HashMap<HostId, HostLog>>,
    /// How often a host was given variables by another.
    gifts: AtomicU64,
}

#[derive(Default)]
struct HostLog {
    /// What was set before the batch that is under way.
    settled: Arc<Runtime>,
    recent: Vec<(Stamp, Arc<Additions>)>,
    /// What other hosts' tasks set for this one (`delegate_facts`), and its own walk has not seen yet.
    given: Vec<Arc<Additions>>,
}

impl Fleet {
    /// The variables of a host before anything of this batch.
    pub fn settled(&self, host: HostId) -> Arc<Runtime> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get(&host).map(|log| Arc::clone(&log.settled)).unwrap_or_default()
    }

    /// Gives a host the facts that were kept from a run before.
    pub fn remember(&self, host: HostId, facts: Map) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = Arc::make_mut(&mut hosts.entry(host).or_default().settled);
        settled.apply(&Additions { facts: Some(facts), ..Additions::default() });
    }

    /// Notes what a host's invocation set.
    pub fn note(&self, host: HostId, stamp: Stamp, additions: Arc<Additions>) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.entry(host).or_default().recent.push((stamp, additions));
    }

    /// Notes what a task of another host set for this one.
    pub fn give(&self, host: HostId, stamp: Stamp, additions: Arc<Additions>) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let log = hosts.entry(host).or_default();
        log.given.push(Arc::clone(&additions));
        log.recent.push((stamp, additions));
        drop(hosts);
        self.gifts.fetch_add(1, Ordering::SeqCst);
    }

    /// A number that grows whenever any host is given something.
    pub fn gifts(&self) -> u64 {
        self.gifts.load(Ordering::SeqCst)
    }

    /// What a host was given since it last asked.
    pub fn take_given(&self, host: HostId) -> Vec<Arc<Additions>> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.get_mut(&host).map(|log| std::mem::take(&mut log.given)).unwrap_or_default()
    }

    /// The variables of a host as they were before `stamp`.
    pub fn before(&self, host: HostId, stamp: &Stamp) -> Arc<Runtime> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(log) = hosts.get(&host) else { return Arc::default() };
        if log.recent.is_empty() {
            return Arc::clone(&log.settled);
        }
        let mut runtime = Runtime::clone(&log.settled);
        for (_, additions) in log.recent.iter().filter(|(at, _)| at < stamp) {
            runtime.apply(additions);
        }
        Arc::new(runtime)
    }

    /// Folds a host's notes together when its batch has ended.
    pub fn settle(&self, host: HostId) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = hosts.get_mut(&host) {
            let settled = Arc::make_mut(&mut log.settled);
            for (_, additions) in log.recent.drain(..) {
                settled.apply(&additions);
            }
            settled.rescue.clear();
            // what a role makes public is so for its play
            settled.roles.clear();
            log.given.clear();
        }
    }

    /// `meta: clear_facts`.
    pub fn clear_facts(&self, host: HostId) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = hosts.get_mut(&host) {
            Arc::make_mut(&mut log.settled).clear_facts();
            for (_, additions) in &mut log.recent {
                Arc::make_mut(additions).facts = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn another_host_is_seen_as_it_was_at_the_readers_place() {
        let fleet = Fleet::default();
        let at = |position: u32| Stamp { play: 0, batch: 0, position: vec![position] };
        let set =
            |value: i64| Arc::new(Additions { set_facts: Some(object([("x", value.into())])), ..Additions::default() });
        fleet.note(HostId(1), at(1), set(1));
        fleet.note(HostId(1), at(5), set(5));
        let seen =
            |position: u32| fleet.before(HostId(1), &at(position)).set_facts.get("x").and_then(|value| value.as_int());
        assert_eq!(seen(1), None);
        assert_eq!(seen(3), Some(1));
        assert_eq!(seen(6), Some(5));
        fleet.settle(HostId(1));
        assert_eq!(fleet.settled(HostId(1)).set_facts.get("x"), Some(&5.into()));
    }
}
