//! Puts an inventory together while its files are read, then checks and completes it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::address;
use super::group::{Group, GroupId, Host, HostId};
use super::load::GroupNames;
use crate::error::{Error, Result};
use crate::source::Place;
use crate::value::{Map, Value, merge_maps};

/// The names that mean the controller itself.
pub(super) const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The hosts that ranges may bring into an inventory: written out, so many are a large file.
const MOST_HOSTS: usize = 200_000;
/// The names that ranges may stand for, and their bytes: the hosts of one range are in several groups.
const MOST_NAMES: usize = 1_000_000;
const MOST_BYTES: usize = 64 << 20;

#[derive(Clone)]
struct HostDraft {
    place: Option<Place>,
    /// One map for all hosts of a range.
    vars: Arc<Map>,
    groups: Vec<u32>,
    inventory_file: Arc<Path>,
}

#[derive(Clone)]
struct GroupDraft {
    place: Option<Place>,
    priority: i64,
    vars: Map,
    hosts: IndexSet<u32>,
    children: IndexSet<u32>,
    parents: IndexSet<u32>,
}

impl GroupDraft {
    fn new(place: Option<Place>) -> GroupDraft {
        GroupDraft {
            place,
            priority: 1,
            vars: Map::new(),
            hosts: IndexSet::new(),
            children: IndexSet::new(),
            parents: IndexSet::new(),
        }
    }
}

/// True if a variable could have this name.
fn is_variable_name(name: &str) -> bool {
    !name.starts_with(|letter: char| letter.is_numeric())
        && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
}

/// An inventory that is being read.
#[derive(Clone)]
pub(super) struct Builder {
    hosts: IndexMap<String, HostDraft>,
    groups: IndexMap<String, GroupDraft>,
    /// The file that is being read, absolute.
    current: Arc<Path>,
    /// What that file gives to each host.
    origin: Arc<Map>,
    ranges: Ranges,
    pub(super) warnings: Vec<Error>,
    pub(super) names: GroupNames,
    /// It was said already that names of groups are unusual.
    warned_of_names: bool,
    /// A map that is set twice is merged, rather than replaced.
    pub(super) merges_maps: bool,
}

/// What ranges have stood for so far.
#[derive(Clone, Default)]
struct Ranges {
    hosts: usize,
    names: usize,
    bytes: usize,
}

impl Ranges {
    fn expand(&mut self, names: &[String]) -> Result<(), String> {
        self.names += names.len();
        self.bytes += names.iter().map(String::len).sum::<usize>();
        if self.names > MOST_NAMES || self.bytes > MOST_BYTES {
            return Err(format!(
                "ranges of this inventory stand for more than {MOST_NAMES} names, or for too long ones"
            ));
        }
        Ok(())
    }

    fn add_host(&mut self) -> Result<(), String> {
        self.hosts += 1;
        if self.hosts > MOST_HOSTS {
            return Err(format!("ranges of this inventory stand for more than {MOST_HOSTS} hosts"));
        }
        Ok(())
    }
}

impl Builder {
    pub(super) fn new() -> Builder {
        let mut builder = Builder {
            hosts: IndexMap::new(),
            groups: IndexMap::new(),
            current: Path::new("").into(),
            origin: Arc::default(),
            ranges: Ranges::default(),
            warnings: Vec::new(),
            merges_maps: false,
            names: GroupNames::default(),
            warned_of_names: false,
        };
        builder.groups.insert("all".to_owned(), GroupDraft::new(None));
        builder.groups.insert("ungrouped".to_owned(), GroupDraft::new(None));
        builder.link(GroupId::ALL, GroupId::UNGROUPED);
        builder
    }

    /// From now on hosts come from this file (absolute) or list.
    pub(super) fn begin(&mut self, path: &Path) {
        self.current = path.into();
        let text = |path: &Path| Value::from(path.to_string_lossy().as_ref());
        let directory = path.parent().unwrap_or(Path::new(""));
        let origin = [("inventory_file".into(), text(path)), ("inventory_dir".into(), text(directory))];
        self.origin = Arc::new(Map::from_iter(origin));
    }

    /// The file that is being read.
    pub(super) fn current(&self) -> &Path {
        &self.current
    }

    pub(super) fn group(&self, name: &str) -> Option<GroupId> {
        self.groups.get_index_of(self.safe_name(name).as_ref()).map(|index| GroupId(index as u32))
    }

    /// The name that a group gets.
    fn safe_name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.names {
            GroupNames::Always | GroupNames::Silently if !is_variable_name(name) => {
                let safe = |(index, letter): (usize, char)| {
                    let fits = letter == '_' || letter.is_alphanumeric() && (index > 0 || !letter.is_numeric());
                    if fits { letter } else { '_' }
                };
                name.chars().enumerate().map(safe).collect::<String>().into()
            }
            _ => name.into(),
        }
    }

    pub(super) fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// The group `name`, added if it is new.
    pub(super) fn add_group(&mut self, name: &str, place: &Place) -> GroupId {
        let safe = self.safe_name(name).into_owned();
        if !self.warned_of_names && !is_variable_name(name) {
            let what = match self.names {
                GroupNames::Never => Some("not replaced"),
                GroupNames::Always => Some("automatically replaced"),
                GroupNames::Ignore | GroupNames::Silently => None,
            };
            if let Some(what) = what {
                self.warned_of_names = true;
                let but = if what == "not replaced" { "but" } else { "and" };
                let message = format!("Invalid characters were found in group names {but} {what}: `{name}`, say");
                self.warnings.push(Error::input(message).at(place));
            }
        }
        let index = match self.groups.get_index_of(&safe) {
            Some(index) => index,
            None => self.groups.insert_full(safe, GroupDraft::new(Some(place.clone()))).0,
        };
        let group = &mut self.groups[index];
        group.place.get_or_insert_with(|| place.clone());
        GroupId(index as u32)
    }

    /// The host `name`, added if it is new, as a member of `group`.
    pub(super) fn add_host(&mut self, name: &str, group: GroupId, place: &Place) -> HostId {
        let known = self.hosts.get_index_of(name);
        let index = known.unwrap_or_else(|| self.add_draft(name, &Arc::clone(&self.origin), place));
        let host = HostId(index as u32);
        self.join(host, group);
        host
    }

    fn add_draft(&mut self, name: &str, vars: &Arc<Map>, place: &Place) -> usize {
        let draft = HostDraft {
            place: Some(place.clone()),
            vars: Arc::clone(vars),
            groups: Vec::new(),
            inventory_file: Arc::clone(&self.current),
        };
        self.hosts.insert_full(name.to_owned(), draft).0
    }

    /// The hosts that `written` stands for, perhaps with ranges and a port, as members of `group` with more variables.
    pub(super) fn add_hosts(&mut self, written: &str, group: GroupId, vars: &Map, place: &Place) -> Result<(), String> {
        let (names, port) = address::expand(written)?;
        let is_range = names.len() > 1;
        if is_range {
            self.ranges.expand(&names)?;
        }
        // the port counts for hosts that are new
        let mut origin = Arc::clone(&self.origin);
        if let Some(port) = port {
            Arc::make_mut(&mut origin).insert("ansible_port".into(), u32::from(port).into());
        }
        // the variables of the last host without these, and with them: mostly those of the next one too
        let mut last: Option<(Arc<Map>, Arc<Map>)> = None;
        for name in &names {
            let index = match self.hosts.get_index_of(name.as_str()) {
                Some(index) => index,
                None => {
                    if is_range {
                        self.ranges.add_host()?;
                    }
                    self.add_draft(name, &origin, place)
                }
            };
            self.join(HostId(index as u32), group);
            if vars.is_empty() {
                continue;
            }
            let own = &mut self.hosts[index].vars;
            match &last {
                Some((before, after)) if Arc::ptr_eq(before, own) => *own = Arc::clone(after),
                _ => {
                    let before = Arc::clone(own);
                    let own_vars = Arc::make_mut(own);
                    for (name, value) in vars {
                        insert(own_vars, name.clone(), value.clone(), self.merges_maps);
                    }
                    last = is_range.then(|| (before, Arc::clone(own)));
                }
            }
        }
        Ok(())
    }

    /// Puts a host that is there already into a group.
    pub(super) fn join(&mut self, host: HostId, group: GroupId) {
        if self.groups[group.index()].hosts.insert(host.0) {
            self.hosts[host.index()].groups.push(group.0);
        }
    }

    pub(super) fn set_host_var(&mut self, host: HostId, name: Value, value: Value) {
        let vars = Arc::make_mut(&mut self.hosts[host.index()].vars);
        insert(vars, name, value, self.merges_maps);
    }

    /// Sets a variable of a group; `ansible_group_priority` is no variable but a property.
    pub(super) fn set_group_var(&mut self, group: GroupId, name: Value, value: Value, place: &Place) -> Result<()> {
        let group = &mut self.groups[group.index()];
        if name.as_str() == Some("ansible_group_priority") {
            let number = value.as_int().or_else(|| value.as_str()?.trim().parse().ok());
            group.priority = number.ok_or_else(|| {
                Error::input(format!("`ansible_group_priority` must be a whole number, not `{value}`")).at(place)
            })?;
        } else {
            insert(&mut group.vars, name, value, self.merges_maps);
        }
        Ok(())
    }

    /// Makes `child` a child of `parent`; a group cannot contain itself.
    pub(super) fn add_child(&mut self, parent: GroupId, child: GroupId, place: &Place) -> Result<()> {
        let name = |id: GroupId| self.groups.get_index(id.index()).map_or("", |(name, _)| name.as_str());
        let reason = if parent == child {
            "a group cannot contain itself"
        } else if child == GroupId::ALL {
            "`all` contains every group"
        } else if self.is_below(parent, child) {
            "it contains that one already, so both would contain themselves"
        } else {
            self.link(parent, child);
            return Ok(());
        };
        let words = format!("the group `{}` cannot be a child of `{}`: {reason}", name(child), name(parent));
        Err(Error::input(words).at(place))
    }

    fn link(&mut self, parent: GroupId, child: GroupId) {
        self.groups[parent.index()].children.insert(child.0);
        self.groups[child.index()].parents.insert(parent.0);
    }

    /// True if `group` is a descendant of `ancestor`.
    fn is_below(&self, group: GroupId, ancestor: GroupId) -> bool {
        let mut seen = IndexSet::new();
        let mut waiting = vec![group.0];
        while let Some(id) = waiting.pop() {
            if id == ancestor.0 {
                return true;
            }
            if seen.insert(id) {
                waiting.extend(&self.groups[id as usize].parents);
            }
        }
        false
    }

    /// Every group without a parent goes below `all`, every host without a group into `ungrouped`.
    pub(super) fn finish(mut self) -> (Vec<Arc<Host>>, Vec<Arc<Group>>, Vec<Error>) {
        for index in 2..self.groups.len() {
            if self.groups[index].parents.is_empty() {
                self.link(GroupId::ALL, GroupId(index as u32));
            }
        }
        for index in 0..self.hosts.len() {
            let draft = &mut self.hosts[index];
            let in_a_group = draft.groups.iter().any(|group| *group > GroupId::UNGROUPED.0);
            if in_a_group {
                draft.groups.retain(|group| *group != GroupId::UNGROUPED.0);
            } else if !draft.groups.contains(&GroupId::UNGROUPED.0) {
                draft.groups.push(GroupId::UNGROUPED.0);
                self.groups[GroupId::UNGROUPED.index()].hosts.insert(index as u32);
            }
        }
        let hosts = &self.hosts;
        let stays = |host: &u32| hosts[*host as usize].groups.contains(&GroupId::UNGROUPED.0);
        self.groups[GroupId::UNGROUPED.index()].hosts.retain(stays);
        for name in self.hosts.keys().filter(|name| self.groups.contains_key(*name)) {
            let words = format!("`{name}` is the name of a group and of a host; a pattern `{name}` means the host");
            self.warnings.push(match &self.hosts[name].place {
                Some(place) => Error::input(words).at(place),
                None => Error::input(words),
            });
        }
        let groups = self.groups.into_iter().map(|(name, draft)| group(name, draft)).collect::<Vec<_>>();
        let groups = with_depths(groups);
        let mut shared = Shared::default();
        let hosts = self.hosts.into_iter().map(|(name, draft)| host(name, draft, &groups, &mut shared)).collect();
        (hosts, groups.into_iter().map(Arc::new).collect(), self.warnings)
    }
}

/// Sets a variable; a map may be merged with the one that is there.
fn insert(vars: &mut Map, name: Value, value: Value, merges_maps: bool) {
    let value = match (vars.get(&name), value) {
        (Some(Value::Map(below)), Value::Map(above)) if merges_maps => {
            Value::map(merge_maps(below.as_ref().clone(), &above))
        }
        (_, value) => value,
    };
    vars.insert(name, value);
}

fn group(name: String, draft: GroupDraft) -> Group {
    Group {
        name: name.into(),
        place: draft.place,
        depth: 0,
        priority: draft.priority,
        hosts: draft.hosts.into_iter().map(HostId).collect(),
        children: draft.children.into_iter().map(GroupId).collect(),
        parents: draft.parents.into_iter().map(GroupId).collect(),
        vars: Arc::new(draft.vars),
    }
}

/// What many hosts have in common, worked out once.
#[derive(Default)]
struct Shared {
    /// The groups of hosts by those that name them.
    orders: HashMap<DirectGroups, Arc<[GroupId]>>,
}

/// The groups that name a host, ascending.
type DirectGroups = Box<[u32]>;

impl Shared {
    fn order(&mut self, mut direct: Vec<u32>, groups: &[Group]) -> Arc<[GroupId]> {
        direct.sort_unstable();
        let order = |direct: &[u32]| merge_order(direct.iter().map(|id| GroupId(*id)), |id| &groups[id.index()]).into();
        match self.orders.get(direct.as_slice()) {
            Some(order) => Arc::clone(order),
            None => {
                let order: Arc<[GroupId]> = order(&direct);
                self.orders.insert(direct.into(), Arc::clone(&order));
                order
            }
        }
    }
}

fn host(name: String, draft: HostDraft, groups: &[Group], shared: &mut Shared) -> Arc<Host> {
    Arc::new(Host {
        name: name.into(),
        place: draft.place,
        implicit: false,
        groups: shared.order(draft.groups, groups),
        vars: draft.vars,
        inventory_file: Some(draft.inventory_file),
    })
}

/// All groups that contain the given ones, and they, in the order in which their variables merge.
pub(super) fn merge_order<'a>(
    direct: impl Iterator<Item = GroupId>,
    group: impl Fn(GroupId) -> &'a Group,
) -> Vec<GroupId> {
    let mut seen: IndexSet<GroupId> = IndexSet::new();
    let mut waiting: Vec<GroupId> = direct.collect();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            waiting.extend(&group(id).parents);
        }
    }
    let mut order: Vec<GroupId> = seen.into_iter().collect();
    order.sort_by(|left, right| {
        let key = |id: &GroupId| (group(*id).depth, group(*id).priority);
        key(left).cmp(&key(right)).then_with(|| group(*left).name.cmp(&group(*right).name))
    });
    order
}

/// Sets each group's depth: one more than its deepest parent's.
fn with_depths(mut groups: Vec<Group>) -> Vec<Group> {
    let mut unplaced: Vec<usize> = groups.iter().map(|group| group.parents.len()).collect();
    let mut ready = vec![GroupId::ALL];
    while let Some(id) = ready.pop() {
        let depth = groups[id.index()].depth + 1;
        for child in groups[id.index()].children.clone() {
            let below = &mut groups[child.index()];
            below.depth = below.depth.max(depth);
            unplaced[child.index()] -= 1;
            if unplaced[child.index()] == 0 {
                ready.push(child);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stand_for_so_many_names_and_no_more() {
        let names = ["a1".to_owned(), "a2".to_owned()];
        for (ranges, is_refused) in [
            (Ranges::default(), false),
            (Ranges { names: MOST_NAMES - 2, ..Ranges::default() }, false),
            (Ranges { names: MOST_NAMES - 1, ..Ranges::default() }, true),
            (Ranges { bytes: MOST_BYTES - 3, ..Ranges::default() }, true),
        ] {
            assert_eq!(ranges.clone().expand(&names).is_err(), is_refused, "{} {}", ranges.names, ranges.bytes);
        }
        let mut ranges = Ranges { hosts: MOST_HOSTS - 1, ..Ranges::default() };
        assert!(ranges.add_host().is_ok() && ranges.add_host().is_err());
    }
}
