//! Inventories as Ansible reads them: hosts, groups, their variables, and the patterns that choose hosts.
//!
//! An inventory is immutable once loaded. Hosts that a run adds go into a copy.

mod address;
mod builder;
mod constructed;
mod group;
mod ini;
mod literal;
mod load;
mod pattern;
mod renewal;
mod script;
mod vars_files;
mod words;
mod yaml;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use group::{Group, GroupId, Host, HostId};
pub use load::{GroupNames, Reading, load, load_as, load_with, parse};
pub use pattern::{Selection, split_pattern};
pub use vars_files::load_file as load_vars_file;

use crate::error::{Error, Result};
use crate::value::{Map, Value};
use crate::vault::Keyring;
use vars_files::{Kind, VarsDirectory};

/// Where an inventory variable comes from, the lowest precedence first.
///
/// Source: <https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_variables.html>, levels 3 to 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Groups in the inventory itself, `all` first.
    InventoryGroup,
    /// `group_vars/all` beside the inventory.
    InventoryGroupVarsAll,
    /// `group_vars/all` beside the playbook.
    PlaybookGroupVarsAll,
    /// `group_vars/*` beside the inventory.
    InventoryGroupVars,
    /// `group_vars/*` beside the playbook.
    PlaybookGroupVars,
    /// The host in the inventory itself.
    InventoryHost,
    /// `host_vars/*` beside the inventory.
    InventoryHostVars,
    /// `host_vars/*` beside the playbook.
    PlaybookHostVars,
}

/// Hosts and groups; a copy is cheap.
#[derive(Debug, Clone)]
pub struct Inventory {
    hosts: Vec<Arc<Host>>,
    groups: Vec<Arc<Group>>,
    /// The hosts in the order in which they were named.
    order: Vec<HostId>,
    host_ids: Arc<HashMap<Arc<str>, HostId>>,
    group_ids: Arc<HashMap<Arc<str>, GroupId>>,
    /// The directories of the inventory's sources, in their order.
    beside_inventory: Vec<Arc<VarsDirectory>>,
    beside_playbook: Option<Arc<VarsDirectory>>,
    keyring: Arc<Keyring>,
    /// The magic variable `groups`, once it was asked for; the same for all hosts.
    members: Arc<OnceLock<Value>>,
    /// What is doubtful in the files.
    pub warnings: Vec<Error>,
    /// Sources that are not there.
    pub missing: Vec<Error>,
}

impl Inventory {
    fn new(
        hosts: Vec<Arc<Host>>,
        groups: Vec<Arc<Group>>,
        beside_inventory: Vec<Arc<VarsDirectory>>,
        keyring: &Arc<Keyring>,
        warnings: Vec<Error>,
    ) -> Inventory {
        let mut inventory = Inventory {
            host_ids: Arc::new(names(hosts.iter().map(|host| &host.name), HostId)),
            group_ids: Arc::new(names(groups.iter().map(|group| &group.name), GroupId)),
            order: (0..hosts.len() as u32).map(HostId).collect(),
            hosts,
            groups,
            beside_inventory,
            beside_playbook: None,
            keyring: Arc::clone(keyring),
            members: Arc::default(),
            warnings,
            missing: Vec::new(),
        };
        inventory.add_implicit_localhost();
        inventory
    }

    /// The controller itself, if no inventory names it.
    fn add_implicit_localhost(&mut self) {
        if builder::LOCALHOST.iter().any(|name| self.host_ids.contains_key(*name)) {
            return;
        }
        for name in builder::LOCALHOST {
            let mut vars = Map::new();
            vars.insert("ansible_connection".into(), "local".into());
            self.push_host(Host {
                name: name.into(),
                place: None,
                implicit: true,
                groups: Arc::default(),
                vars: Arc::new(vars),
                inventory_file: None,
            });
        }
    }

    fn push_host(&mut self, host: Host) -> HostId {
        self.members = Arc::default();
        let id = HostId(self.hosts.len() as u32);
        Arc::make_mut(&mut self.host_ids).insert(Arc::clone(&host.name), id);
        self.hosts.push(Arc::new(host));
        self.order.push(id);
        id
    }

    /// `group_vars/` and `host_vars/` beside the playbook are looked for in this directory from now on.
    pub fn set_playbook_directory(&mut self, path: impl Into<PathBuf>) {
        let path = path.into();
        if self.beside_playbook.as_ref().is_none_or(|directory| directory.path() != path) {
            self.beside_playbook = Some(Arc::new(VarsDirectory::new(path, &self.keyring)));
        }
    }

    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.index()]
    }

    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[id.index()]
    }

    /// The host `name`; `localhost` always exists.
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.host_ids.get(name).copied().or_else(|| {
            // one of its names in the inventory stands for all
            let is_local = builder::LOCALHOST.contains(&name);
            is_local.then(|| builder::LOCALHOST.iter().find_map(|name| self.host_ids.get(*name)).copied()).flatten()
        })
    }

    pub fn find_group(&self, name: &str) -> Option<GroupId> {
        self.group_ids.get(name).copied()
    }

    /// All hosts but the implicit localhost, in the order in which they were named.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &Host)> {
        let all = self.order.iter().map(|id| (*id, self.host(*id)));
        all.filter(|(_, host)| !host.implicit)
    }

    /// All groups, in the order in which they were named; `all` and `ungrouped` are first.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        self.groups.iter().enumerate().map(|(index, group)| (GroupId(index as u32), group.as_ref()))
    }

    /// The hosts of a group and of its descendants: those of the group first, then level by level.
    pub fn group_hosts(&self, id: GroupId) -> Vec<HostId> {
        let mut seen_groups = vec![false; self.groups.len()];
        let mut seen_hosts = vec![false; self.hosts.len()];
        let mut order = vec![id];
        seen_groups[id.index()] = true;
        let mut hosts = Vec::new();
        let mut next = 0;
        while next < order.len() {
            let group = self.group(order[next]);
            for child in &group.children {
                if !std::mem::replace(&mut seen_groups[child.index()], true) {
                    order.push(*child);
                }
            }
            for host in &group.hosts {
                if !std::mem::replace(&mut seen_hosts[host.index()], true) {
                    hosts.push(*host);
                }
            }
            next += 1;
        }
        hosts
    }

    /// The magic variable `groups`: all groups with the names of their hosts.
    pub fn members(&self) -> Value {
        self.members.get_or_init(|| self.collect_members()).clone()
    }

    fn collect_members(&self) -> Value {
        let names: Vec<Value> = self.hosts.iter().map(|host| host.name.as_ref().into()).collect();
        let mut groups = Map::new();
        for (id, group) in self.groups() {
            let hosts = if id == GroupId::ALL {
                self.hosts().map(|(host, _)| names[host.index()].clone()).collect()
            } else {
                self.group_hosts(id).into_iter().map(|host| names[host.index()].clone()).collect()
            };
            groups.insert(group.name.as_ref().into(), Value::list(hosts));
        }
        groups.into()
    }

    /// `group_names`: the names of a host's groups without `all`, sorted.
    pub fn group_names(&self, host: HostId) -> Vec<Arc<str>> {
        let groups = self.host(host).groups.iter().filter(|group| **group != GroupId::ALL);
        let mut names: Vec<Arc<str>> = groups.map(|group| Arc::clone(&self.group(*group).name)).collect();
        names.sort();
        names
    }

    /// The variables of a host, layer by layer, the lowest precedence first. Of a name in several layers the
    /// last one counts. Reads the files of `group_vars/` and `host_vars/` that are not read yet.
    pub fn host_layers(&self, id: HostId) -> Result<Vec<(Level, Arc<Map>)>> {
        let host = self.host(id);
        let all = self.group(GroupId::ALL);
        let groups: Vec<&Group> =
            host.groups.iter().filter(|group| **group != GroupId::ALL).map(|group| self.group(*group)).collect();
        let mut layers = Vec::new();
        let mut add = |level: Level, map: &Arc<Map>| {
            if !map.is_empty() {
                layers.push((level, Arc::clone(map)));
            }
        };
        let playbook = self.beside_playbook.as_slice();
        let inventory = self.beside_inventory.as_slice();
        add(Level::InventoryGroup, &all.vars);
        for group in &groups {
            add(Level::InventoryGroup, &group.vars);
        }
        for (level, directories, groups) in [
            (Level::InventoryGroupVarsAll, inventory, &[all][..]),
            (Level::PlaybookGroupVarsAll, playbook, &[all][..]),
            (Level::InventoryGroupVars, inventory, groups.as_slice()),
            (Level::PlaybookGroupVars, playbook, groups.as_slice()),
        ] {
            for directory in directories {
                for group in groups {
                    for map in directory.vars(Kind::Group, &group.name)?.iter() {
                        add(level, map);
                    }
                }
            }
        }
        add(Level::InventoryHost, &host.vars);
        for (level, directories) in [(Level::InventoryHostVars, inventory), (Level::PlaybookHostVars, playbook)] {
            for directory in directories {
                for map in directory.vars(Kind::Host, &host.name)?.iter() {
                    add(level, map);
                }
            }
        }
        Ok(layers)
    }

    /// The variables of a group by itself: of the inventory, then of `group_vars/`.
    pub fn group_layers(&self, id: GroupId) -> Result<Vec<Arc<Map>>> {
        let group = self.group(id);
        let mut layers = vec![Arc::clone(&group.vars)];
        for directory in self.beside_inventory.iter().chain(&self.beside_playbook) {
            layers.extend(directory.vars(Kind::Group, &group.name)?.iter().cloned());
        }
        Ok(layers)
    }

    /// Adds a host, or variables and groups to one that exists (the module `add_host`). True if that changed
    /// anything.
    pub fn add_host(&mut self, name: &str, vars: Map, groups: &[&str]) -> bool {
        let known = self.host_ids.get(name).copied().filter(|id| !self.host(*id).implicit);
        let mut changed = known.is_none();
        let id = known.unwrap_or_else(|| {
            self.push_host(Host {
                name: name.into(),
                place: None,
                implicit: false,
                groups: Arc::default(),
                vars: Arc::default(),
                inventory_file: None,
            })
        });
        let host = Arc::make_mut(&mut self.hosts[id.index()]);
        let own = Arc::make_mut(&mut host.vars);
        for (name, value) in vars {
            let old = own.get(&name);
            changed |= old != Some(&value);
            own.insert(name, value);
        }
        for group in groups {
            changed |= self.add_to_group(id, group, &[]);
        }
        if self.host(id).groups.is_empty() {
            self.join(id, GroupId::UNGROUPED);
        }
        changed
    }

    /// Puts a host into a group, which is added below `parents` if it is new (the module `group_by`). True if
    /// that changed anything.
    pub fn add_to_group(&mut self, host: HostId, group: &str, parents: &[&str]) -> bool {
        self.members = Arc::default();
        let mut changed = false;
        let id = self.find_or_add_group(group, &mut changed);
        for parent in parents {
            let parent = self.find_or_add_group(parent, &mut changed);
            self.root(parent);
            let is_loop = parent == id || self.is_below(parent, id);
            if !is_loop && !self.group(parent).children.contains(&id) {
                self.link(parent, id);
                changed = true;
            }
        }
        self.root(id);
        if self.group(id).hosts.contains(&host) {
            return changed;
        }
        self.join(host, id);
        true
    }

    fn find_or_add_group(&mut self, name: &str, changed: &mut bool) -> GroupId {
        if let Some(id) = self.find_group(name) {
            return id;
        }
        *changed = true;
        let id = GroupId(self.groups.len() as u32);
        let name: Arc<str> = name.into();
        Arc::make_mut(&mut self.group_ids).insert(Arc::clone(&name), id);
        self.groups.push(Arc::new(Group {
            name,
            place: None,
            depth: 1,
            priority: 1,
            hosts: Vec::new(),
            children: Vec::new(),
            parents: Vec::new(),
            vars: Arc::default(),
        }));
        id
    }

    /// A group without a parent goes below `all`.
    fn root(&mut self, group: GroupId) {
        if self.group(group).parents.is_empty() && group != GroupId::ALL {
            self.link(GroupId::ALL, group);
        }
    }

    fn is_below(&self, group: GroupId, ancestor: GroupId) -> bool {
        builder::merge_order(std::iter::once(group), |id| self.group(id)).contains(&ancestor)
    }

    /// Makes `child` a child of `parent`; its hosts come below the parent's ancestors too.
    fn link(&mut self, parent: GroupId, child: GroupId) {
        Arc::make_mut(&mut self.groups[parent.index()]).children.push(child);
        Arc::make_mut(&mut self.groups[child.index()]).parents.push(parent);
        self.sink(child, self.group(parent).depth + 1);
        for host in self.group_hosts(child) {
            self.regroup(host, std::iter::once(child));
        }
    }

    /// Lets a group and its descendants be at least `depth` deep.
    fn sink(&mut self, group: GroupId, depth: u32) {
        let mut waiting = vec![(group, depth)];
        while let Some((id, depth)) = waiting.pop() {
            if self.group(id).depth < depth {
                Arc::make_mut(&mut self.groups[id.index()]).depth = depth;
                waiting.extend(self.group(id).children.iter().map(|child| (*child, depth + 1)));
            }
        }
    }

    fn join(&mut self, host: HostId, group: GroupId) {
        self.members = Arc::default();
        Arc::make_mut(&mut self.groups[group.index()]).hosts.push(host);
        self.regroup(host, std::iter::once(group));
        if group > GroupId::UNGROUPED && self.host(host).groups.contains(&GroupId::UNGROUPED) {
            let ungrouped = Arc::make_mut(&mut self.groups[GroupId::UNGROUPED.index()]);
            ungrouped.hosts.retain(|other| *other != host);
            let host = Arc::make_mut(&mut self.hosts[host.index()]);
            host.groups = host.groups.iter().copied().filter(|group| *group != GroupId::UNGROUPED).collect();
        }
    }

    /// Works out a host's groups anew, with some more.
    fn regroup(&mut self, host: HostId, more: impl Iterator<Item = GroupId>) {
        let direct: Vec<GroupId> = self.host(host).groups.iter().copied().chain(more).collect();
        let order = builder::merge_order(direct.into_iter(), |id| self.group(id));
        Arc::make_mut(&mut self.hosts[host.index()]).groups = order.into();
    }

    /// The directories in which `group_vars/` and `host_vars/` are looked for.
    pub fn vars_directories(&self) -> impl Iterator<Item = &Path> {
        self.beside_inventory.iter().chain(&self.beside_playbook).map(|directory| directory.path())
    }

    /// The value of one variable as the inventory alone has it.
    pub fn host_var(&self, id: HostId, name: &str) -> Result<Option<Value>> {
        Ok(self.host_layers(id)?.iter().rev().find_map(|(_, map)| map.get(name).cloned()))
    }
}

fn names<'a, T>(names: impl Iterator<Item = &'a Arc<str>>, id: impl Fn(u32) -> T) -> HashMap<Arc<str>, T> {
    names.enumerate().map(|(index, name)| (Arc::clone(name), id(index as u32))).collect()
}

#[cfg(test)]
mod dynamic_tests;
#[cfg(test)]
mod tests;
