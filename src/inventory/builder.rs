//! Puts an inventory together while its files are read, then checks and completes it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};

use super::group::{Group, GroupId, Host, HostId};
use super::load::GroupNames;
use crate::error::{Error, Result};
use crate::source::Place;
use crate::value::{Map, Value};

/// The names that mean the controller itself.
pub(super) const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

#[derive(Default, Clone)]
struct HostDraft {
    place: Option<Place>,
    vars: Map,
    groups: IndexSet<u32>,
    inventory_file: Option<PathBuf>,
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
    pub(super) current: PathBuf,
    pub(super) warnings: Vec<Error>,
    pub(super) names: GroupNames,
    /// It was said already that names of groups are unusual.
    warned_of_names: bool,
}

impl Builder {
    pub(super) fn new() -> Builder {
        let mut builder = Builder {
            hosts: IndexMap::new(),
            groups: IndexMap::new(),
            current: PathBuf::new(),
            warnings: Vec::new(),
            names: GroupNames::default(),
            warned_of_names: false,
        };
        builder.groups.insert("all".to_owned(), GroupDraft::new(None));
        builder.groups.insert("ungrouped".to_owned(), GroupDraft::new(None));
        builder.link(GroupId::ALL, GroupId::UNGROUPED);
        builder
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
    pub(super) fn add_host(&mut self, name: &str, group: GroupId, port: Option<u16>, place: &Place) -> HostId {
        let index = match self.hosts.get_index_of(name) {
            Some(index) => index,
            None => {
                let mut draft = HostDraft { place: Some(place.clone()), ..HostDraft::default() };
                if let Some(port) = port {
                    draft.vars.insert("ansible_port".into(), u32::from(port).into());
                }
                draft.inventory_file = Some(self.current.clone());
                self.hosts.insert_full(name.to_owned(), draft).0
            }
        };
        self.hosts[index].groups.insert(group.0);
        self.groups[group.index()].hosts.insert(index as u32);
        HostId(index as u32)
    }

    /// Puts a host that is there already into a group.
    pub(super) fn join(&mut self, host: HostId, group: GroupId) {
        self.hosts[host.index()].groups.insert(group.0);
        self.groups[group.index()].hosts.insert(host.0);
    }

    pub(super) fn set_host_var(&mut self, host: HostId, name: Value, value: Value) {
        self.hosts[host.index()].vars.insert(name, value);
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
            group.vars.insert(name, value);
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
                if draft.groups.shift_remove(&GroupId::UNGROUPED.0) {
                    self.groups[GroupId::UNGROUPED.index()].hosts.shift_remove(&(index as u32));
                }
            } else if draft.groups.insert(GroupId::UNGROUPED.0) {
                self.groups[GroupId::UNGROUPED.index()].hosts.insert(index as u32);
            }
        }
        for name in self.hosts.keys().filter(|name| self.groups.contains_key(*name)) {
            let words = format!("`{name}` is the name of a group and of a host; a pattern `{name}` means the host");
            self.warnings.push(match &self.hosts[name].place {
                Some(place) => Error::input(words).at(place),
                None => Error::input(words),
            });
        }
        let groups = self.groups.into_iter().map(|(name, draft)| group(name, draft)).collect::<Vec<_>>();
        let groups = with_depths(groups);
        let hosts = self.hosts.into_iter().map(|(name, draft)| host(name, draft, &groups)).collect();
        (hosts, groups.into_iter().map(Arc::new).collect(), self.warnings)
    }
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

fn host(name: String, draft: HostDraft, groups: &[Group]) -> Arc<Host> {
    let mut vars = Map::with_capacity(draft.vars.len() + 2);
    if let Some(file) = &draft.inventory_file {
        vars.insert("inventory_file".into(), file.to_string_lossy().as_ref().into());
        let directory = file.parent().unwrap_or(Path::new(""));
        vars.insert("inventory_dir".into(), directory.to_string_lossy().as_ref().into());
    }
    vars.extend(draft.vars);
    Arc::new(Host {
        name: name.into(),
        place: draft.place,
        implicit: false,
        groups: merge_order(draft.groups.into_iter().map(GroupId), |id| &groups[id.index()]),
        vars: Arc::new(vars),
        inventory_file: draft.inventory_file,
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
