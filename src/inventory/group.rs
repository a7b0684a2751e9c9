//! Hosts and groups, immutable once loaded.

use std::path::Path;
use std::sync::Arc;

use crate::inventory::address;
use crate::source::Place;
use crate::value::Map;

/// A host of one inventory (and of its copies with additions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// A group of one inventory (and of its copies with additions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

impl HostId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl GroupId {
    /// The group of all hosts.
    pub const ALL: GroupId = GroupId(0);
    /// The group of hosts that are in no other group.
    pub const UNGROUPED: GroupId = GroupId(1);

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone)]
pub struct Host {
    pub name: Arc<str>,
    /// Where it is first named; `None` for the implicit localhost and for hosts added while running.
    pub place: Option<Place>,
    /// `localhost` and its kin when no inventory names them: not part of `all`, connected to locally.
    pub implicit: bool,
    /// All groups it is in, directly or through others, in the order in which their variables merge:
    /// depth, then `ansible_group_priority`, then name. `all` is the first.
    pub groups: Arc<[GroupId]>,
    /// The variables that the inventory itself gives it.
    pub vars: Arc<Map>,
    /// The inventory that names it first, as an absolute path (or the list of `-i`).
    pub inventory_file: Option<Arc<Path>>,
}

impl Host {
    /// `inventory_hostname_short`: the name up to its first point; an address stays whole.
    pub fn short_name(&self) -> &str {
        if address::is_ipv4(&self.name) || address::is_ipv6(&self.name) {
            return &self.name;
        }
        self.name.split('.').next().unwrap_or(&self.name)
    }
}

#[derive(Debug, Clone)]
pub struct Group {
    pub name: Arc<str>,
    /// Where it is first named; `None` for `all`, `ungrouped` and groups added while running.
    pub place: Option<Place>,
    /// The longest way down from `all`.
    pub depth: u32,
    /// `ansible_group_priority`; 1 if not set.
    pub priority: i64,
    /// The hosts that are named in it, in order; not those of its children.
    pub hosts: Vec<HostId>,
    pub children: Vec<GroupId>,
    pub parents: Vec<GroupId>,
    /// The variables that the inventory itself gives it.
    pub vars: Arc<Map>,
}
