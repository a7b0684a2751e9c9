//! The variables as one task on one host sees them: a lookup down the levels, without merging maps.

use std::sync::Arc;

use crate::playbook::{Role, Task};
use crate::template::{Context, Results, Scope, SearchPath, Warnings};
use crate::value::{Interruption, Map, Object, Value, merge_maps};
use crate::vault::Keyring;

use super::precedence::Level;
use super::runtime::{Delta, Runtime};

/// What holds for the whole run.
pub struct RunVars {
    /// `-e`.
    pub extra: Arc<Map>,
    /// Magic variables of the run: `ansible_version`, `playbook_dir`, `ansible_check_mode`, …
    pub magic: Map,
    pub warnings: Warnings,
    /// Maps of several levels are merged (`hash_behaviour = merge`), rather than hide one another.
    pub merges_maps: bool,
    /// What templates give (`jinja2_native`).
    pub results: Results,
    /// Facts are variables too, not only within `ansible_facts`.
    pub inject_facts: bool,
    /// The settings of the run by Ansible's names.
    pub settings: Arc<Map>,
    /// Opens what is encrypted with Ansible Vault.
    pub keyring: Arc<Keyring>,
}

/// What holds for a play on all its hosts.
#[derive(Default)]
pub struct PlayVars {
    pub vars: Arc<Map>,
    pub prompted: Map,
    /// The play's roles, whose variables and defaults all its tasks see.
    pub roles: Vec<Arc<Role>>,
    /// Magic variables: `ansible_play_hosts`, `ansible_play_name`, …
    pub magic: Map,
}

/// What the inventory says of a host, by level, lowest first.
#[derive(Debug, Default, Clone)]
pub struct HostView {
    pub name: Arc<str>,
    pub layers: Vec<(Level, Arc<Map>)>,
    /// Magic variables: `inventory_hostname`, `group_names`, `groups`, …
    pub magic: Map,
    /// The controller itself, which no inventory names.
    pub implicit: bool,
}

/// Finds the scope of another host, for `hostvars`.
pub trait Neighbours: Send + Sync {
    /// The names of all hosts, in the order of the inventory.
    fn names(&self) -> Vec<Arc<str>>;
    /// The variables of a host as the reader may see them; `None` if there is no such host.
    fn scope(&self, name: &str) -> Result<Option<TaskScope>, Interruption>;
    /// The hosts of the batch that have left the play before the reader's place: failed, unreachable, ended.
    fn departed(&self) -> Result<Vec<Arc<str>>, Interruption>;
}

/// The variables of one task on one host.
#[derive(Clone)]
pub struct TaskScope {
    pub run: Arc<RunVars>,
    pub play: Arc<PlayVars>,
    /// What `vars_files` of the play gave for this host.
    pub play_files: Arc<Map>,
    pub host: Arc<HostView>,
    pub runtime: Arc<Runtime>,
    /// What invocations of the window before this one added or may add, oldest first.
    pub ahead: Vec<Arc<Delta>>,
    pub task: Option<Arc<Task>>,
    /// Loop variables, and what the engine sets for this invocation alone.
    pub local: Map,
    pub neighbours: Arc<dyn Neighbours>,
    /// A change of the controller's own files is under way, so that they cannot be looked at.
    pub controller_changes: bool,
}

impl TaskScope {
    /// True if a rendered value is the marker of `omit`.
    pub fn is_omitted(&self, value: &Value) -> bool {
        value.as_str().is_some_and(|text| self.run.magic.get("omit").and_then(Value::as_str) == Some(text))
    }

    /// The same scope with these variables on top.
    #[must_use]
    pub fn with_local(&self, variables: impl IntoIterator<Item = (Value, Value)>) -> TaskScope {
        let mut scope = self.clone();
        scope.local.extend(variables);
        scope
    }

    /// A context that renders with these variables.
    pub fn context(&self) -> Context {
        let context = Context::new(Arc::new(self.clone()), Arc::new(self.search_path()), self.run.warnings.clone());
        context
            .with_keyring(Arc::clone(&self.run.keyring))
            .with_results(self.run.results)
            .with_settings(Arc::clone(&self.run.settings))
    }

    /// Where this task's files are looked for.
    pub fn search_path(&self) -> SearchPath {
        let playbook_dir =
            self.play.magic.get("playbook_dir").and_then(Value::as_str).unwrap_or_default().to_owned().into();
        let Some(task) = &self.task else { return SearchPath { playbook_dir, ..SearchPath::default() } };
        let role_dirs = task
            .role
            .iter()
            .flat_map(|role| {
                std::iter::once(role.path.clone()).chain(role.parents.iter().map(|role| role.path.clone()))
            })
            .collect();
        SearchPath { role_dirs, task_dir: Some(task.directory.clone()), playbook_dir }
    }

    fn magic(&self, name: &str) -> Result<Option<Value>, Interruption> {
        let own = match name {
            "role_name" => self.role().map(|role| Value::from(role.name.as_str())),
            "ansible_role_name" => self.role().map(|role| Value::from(role.full_name())),
            "ansible_collection_name" => self.role().and_then(|role| role.collection.as_deref()).map(Value::from),
            "role_path" => self.role().map(|role| Value::from(role.path.to_string_lossy().into_owned())),
            "ansible_parent_role_names" => self.including_roles(|role| Value::from(role.full_name())),
            "ansible_parent_role_paths" => {
                self.including_roles(|role| Value::from(role.path.to_string_lossy().into_owned()))
            }
            "ansible_search_path" => Some(Value::list(
                self.search_path()
                    .role_dirs
                    .iter()
                    .chain(self.search_path().task_dir.iter())
                    .map(|path| Value::from(path.to_string_lossy().into_owned()))
                    .collect(),
            )),
            "hostvars" => Some(Value::Object(Arc::new(HostVars { scope: self.clone() }))),
            "vars" => Some(Value::Object(Arc::new(AllVars { scope: self.clone() }))),
            "ansible_play_hosts" | "ansible_play_batch" | "play_hosts" => match self.play.magic.get(name) {
                Some(hosts) => Some(self.without_departed(hosts)?),
                None => None,
            },
            _ => None,
        };
        Ok(own
            .or_else(|| self.host.magic.get(name).cloned())
            .or_else(|| self.play.magic.get(name).cloned())
            .or_else(|| self.run.magic.get(name).cloned()))
    }

    fn without_departed(&self, hosts: &Value) -> Result<Value, Interruption> {
        let departed = self.neighbours.departed()?;
        let stays = |host: &&Value| !departed.iter().any(|name| host.as_str() == Some(name.as_ref()));
        Ok(Value::list(hosts.as_list().unwrap_or_default().iter().filter(stays).cloned().collect()))
    }

    fn role(&self) -> Option<&Arc<Role>> {
        self.task.as_ref().and_then(|task| task.role.as_ref())
    }

    /// The roles that included the task's role, or included those that did, nearest first; `None` if none did.
    fn including_roles(&self, of: impl Fn(&Role) -> Value) -> Option<Value> {
        let chain: Vec<&Arc<Role>> = self.own_roles().collect();
        let including = chain.windows(2).filter(|pair| pair[0].is_included).map(|pair| of(pair[1]));
        Some(including.collect::<Vec<_>>()).filter(|roles| !roles.is_empty()).map(Value::list)
    }

    /// The roles whose variables this task sees, nearest first: its own, the ones that brought it.
    fn own_roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.role().into_iter().flat_map(|role| std::iter::once(role).chain(role.parents.iter()))
    }

    /// The variables of the task's role, the ones that count most first: those where it is used, its own, those that its
    /// dependencies export, and those of the roles that brought it.
    fn role_vars(&self, name: &str) -> Option<&Value> {
        let role = self.role()?;
        role.use_vars.get(name).or_else(|| exported(role, name, &|role| &role.vars)).or_else(|| {
            role.parents.iter().find_map(|parent| parent.vars.get(name).or_else(|| parent.use_vars.get(name)))
        })
    }

    /// The defaults of the task's role: its own, those of the roles that brought it, and of its dependencies.
    fn role_defaults(&self, name: &str) -> Option<&Value> {
        let own = self.own_roles().find_map(|role| role.defaults.get(name));
        own.or_else(|| self.role().and_then(|role| exported(role, name, &|role| &role.defaults)))
    }

    /// Public roles of the play, the last first.
    fn play_roles(&self) -> impl Iterator<Item = &Arc<Role>> {
        let ahead = self.ahead.iter().rev().filter_map(|delta| match delta.as_ref() {
            Delta::Known(additions) => additions.role.as_ref(),
            Delta::Pending(_) => None,
        });
        ahead.chain(self.runtime.roles.iter().rev()).chain(self.play.roles.iter().rev())
    }

    /// The variable at the levels that tasks of this run write: facts set, results registered, files included.
    fn at_runtime(&self, name: &str, level: Level) -> Result<Option<Value>, Interruption> {
        for delta in self.ahead.iter().rev() {
            match delta.as_ref() {
                Delta::Known(additions) => {
                    if level == Level::SetFacts
                        && let Some((_, reason)) = additions.unknown.iter().find(|(unknown, _)| unknown == name)
                    {
                        return Err(Interruption::Unknown(reason.clone()));
                    }
                    let map = if level == Level::SetFacts { &additions.set_facts } else { &additions.include_vars };
                    if let Some(value) = map.as_ref().and_then(|map| map.get(name)) {
                        return Ok(Some(value.clone()));
                    }
                }
                Delta::Pending(pending) if pending.covers(name) => return Err(Interruption::Pending),
                Delta::Pending(_) => {}
            }
        }
        if level == Level::SetFacts
            && let Some((_, reason)) = self.runtime.unknown.iter().find(|(unknown, _)| unknown == name)
        {
            return Err(Interruption::Unknown(reason.clone()));
        }
        let map = if level == Level::SetFacts { &self.runtime.set_facts } else { &self.runtime.include_vars };
        Ok(map.get(name).cloned())
    }

    /// A fact by its injected name (`ansible_hostname`), or all of them (`ansible_facts`).
    fn fact(&self, name: &str) -> Result<Option<Value>, Interruption> {
        let whole = name == "ansible_facts";
        if !whole && name != "ansible_local" && !self.run.inject_facts {
            return Ok(None);
        }
        let Some(bare) = name.strip_prefix("ansible_") else { return self.own_fact(name) };
        if is_about_connection(name) {
            return Ok(None);
        }
        for delta in self.ahead.iter().rev() {
            match delta.as_ref() {
                Delta::Known(additions) if !whole => {
                    let value = additions.facts.as_ref().and_then(|facts| facts.get(bare).or_else(|| facts.get(name)));
                    if let Some(value) = value {
                        return Ok(Some(value.clone()));
                    }
                }
                Delta::Pending(pending) if pending.facts => return Err(Interruption::Pending),
                _ => {}
            }
        }
        if !whole {
            return Ok(self.runtime.facts.get(bare).cloned());
        }
        let mut facts = self.runtime.facts.clone();
        let mut unknown = self.runtime.unknown_facts.clone();
        for delta in &self.ahead {
            let Delta::Known(additions) = delta.as_ref() else { continue };
            if let Some(more) = &additions.facts {
                super::runtime::merge_facts(&mut facts, more);
                unknown.retain(|(name, _)| !more.contains_key(name.as_str()));
            }
            unknown.extend(additions.unknown_facts.iter().cloned());
        }
        Ok(Some(if unknown.is_empty() {
            facts.into()
        } else {
            Value::Object(Arc::new(PartlyUnknownFacts { facts, unknown }))
        }))
    }

    /// A fact by the name that its module gave it, one without `ansible_`.
    fn own_fact(&self, name: &str) -> Result<Option<Value>, Interruption> {
        for delta in self.ahead.iter().rev() {
            match delta.as_ref() {
                Delta::Known(additions) => {
                    if let Some(value) = additions.facts.as_ref().and_then(|facts| facts.get(name)) {
                        return Ok(Some(value.clone()));
                    }
                    if let Some((_, reason)) = additions.unknown_facts.iter().find(|(unknown, _)| unknown == name) {
                        return Err(Interruption::Unknown(reason.clone()));
                    }
                }
                Delta::Pending(pending) if pending.own_facts.contains(&name) => return Err(Interruption::Pending),
                Delta::Pending(_) => {}
            }
        }
        if let Some((_, reason)) = self.runtime.unknown_facts.iter().find(|(unknown, _)| unknown == name) {
            return Err(Interruption::Unknown(reason.clone()));
        }
        Ok(self.runtime.own_facts.get(name).cloned())
    }

    /// The variable at one level.
    fn at(&self, level: Level, name: &str) -> Result<Option<Value>, Interruption> {
        let settings = self.task.as_ref().map(|task| &task.settings);
        Ok(match level {
            Level::Extra => self.run.extra.get(name).cloned(),
            Level::Loop => self.local.get(name).cloned(),
            Level::IncludeParams => settings
                .and_then(|settings| settings.include_params.iter().rev().find_map(|map| map.get(name)).cloned()),
            Level::RoleParams => self.own_roles().find_map(|role| role.params.get(name)).cloned(),
            Level::SetFacts => match self.runtime.rescue.get(name) {
                Some(value) => Some(value.clone()),
                None => self.at_runtime(name, level)?,
            },
            Level::IncludeVars => self.at_runtime(name, level)?,
            Level::Task => {
                settings.and_then(|settings| settings.task_vars.as_ref().and_then(|map| map.get(name)).cloned())
            }
            Level::Block => {
                settings.and_then(|settings| settings.block_vars.iter().rev().find_map(|map| map.get(name)).cloned())
            }
            Level::RoleVars => self
                .role_vars(name)
                .or_else(|| self.play_roles().find_map(|role| exported(role, name, &|role| &role.vars)))
                .cloned(),
            Level::PlayFiles => self.play_files.get(name).cloned(),
            Level::PlayPrompt => self.play.prompted.get(name).cloned(),
            Level::Play => self.play.vars.get(name).cloned(),
            Level::Facts => self.fact(name)?,
            Level::RoleDefaults => self
                .role_defaults(name)
                .or_else(|| self.play_roles().find_map(|role| exported(role, name, &|role| &role.defaults)))
                .cloned(),
            _ => {
                let mut found: Option<Value> = None;
                for (_, map) in self.host.layers.iter().rev().filter(|(at, _)| *at == level) {
                    let Some(value) = map.get(name) else { continue };
                    found = match (found, value) {
                        (Some(Value::Map(above)), Value::Map(below)) => {
                            Some(Value::map(merge_maps(below.as_ref().clone(), &above)))
                        }
                        (None, value) => Some(value.clone()),
                        (found, _) => return Ok(found),
                    };
                    if !self.run.merges_maps {
                        return Ok(found);
                    }
                }
                found
            }
        })
    }

    /// Where a host is reached whose variables do not say it: by its name, the controller itself by its own address.
    fn reached_at(&self, name: &str) -> Option<Value> {
        // only tasks see these, not `hostvars`
        self.task.as_ref()?;
        match name {
            "ansible_host" | "ansible_ssh_host" => {
                let other = if name == "ansible_host" { "ansible_ssh_host" } else { "ansible_host" };
                let other = Level::ALL.into_iter().rev().find_map(|level| self.at(level, other).ok().flatten());
                let own = if self.host.implicit { "127.0.0.1" } else { self.host.name.as_ref() };
                Some(other.unwrap_or_else(|| Value::from(own)))
            }
            "ansible_python_interpreter" if self.host.implicit => {
                self.run.magic.get("ansible_playbook_python").cloned()
            }
            _ => None,
        }
    }
}

/// A variable of a role or of the roles that it depends on: the role's own counts most, then its last dependency.
fn exported<'a>(role: &'a Role, name: &str, of: &impl Fn(&'a Role) -> &'a Arc<Map>) -> Option<&'a Value> {
    let own = of(role).get(name);
    own.or_else(|| role.dependencies.iter().rev().find_map(|dependency| exported(dependency, name, of)))
}

impl Scope for TaskScope {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        if let Some(value) = self.magic(name)? {
            return Ok(Some(value));
        }
        let mut found: Option<Value> = None;
        for level in Level::ALL.into_iter().rev() {
            let Some(value) = self.at(level, name)? else { continue };
            found = match (found, value) {
                (None, value) => Some(value),
                (Some(Value::Map(above)), Value::Map(below)) => {
                    let merged = merge_maps(below.as_ref().clone(), &above);
                    Some(Value::map(merged))
                }
                // what is no map hides all that is below
                (found, _) => return Ok(found),
            };
            let may_merge = self.run.merges_maps && matches!(found, Some(Value::Map(_)));
            if !may_merge {
                return Ok(found);
            }
        }
        Ok(found.or_else(|| self.reached_at(name)))
    }

    fn names(&self) -> Vec<String> {
        let mut names = indexmap::IndexSet::new();
        let mut add = |map: &Map| names.extend(map.keys().map(|key| key.to_text().into_owned()));
        for (_, layer) in &self.host.layers {
            add(layer);
        }
        let mut roles: Vec<&Arc<Role>> = self.own_roles().chain(self.play_roles()).collect();
        for role in self.own_roles() {
            add(&role.params);
            add(&role.use_vars);
        }
        while let Some(role) = roles.pop() {
            add(&role.defaults);
            add(&role.vars);
            roles.extend(&role.dependencies);
        }
        add(&self.play.vars);
        add(&self.play.prompted);
        add(&self.play_files);
        if let Some(task) = &self.task {
            for map in
                task.settings.block_vars.iter().chain(&task.settings.task_vars).chain(&task.settings.include_params)
            {
                add(map);
            }
        }
        add(&self.runtime.include_vars);
        add(&self.runtime.set_facts);
        add(&self.runtime.rescue);
        for delta in &self.ahead {
            if let Delta::Known(additions) = delta.as_ref() {
                additions.include_vars.iter().chain(&additions.set_facts).for_each(&mut add);
            }
        }
        add(&self.local);
        add(&self.run.extra);
        add(&self.host.magic);
        add(&self.play.magic);
        add(&self.run.magic);
        if self.run.inject_facts {
            let mut add_facts = |facts: &Map| {
                names.extend(facts.keys().map(|key| {
                    let name = key.to_text();
                    if name.starts_with("ansible_") { name.into_owned() } else { format!("ansible_{name}") }
                }));
            };
            add_facts(&self.runtime.facts);
            for delta in &self.ahead {
                if let Delta::Known(additions) = delta.as_ref() {
                    additions.facts.iter().for_each(&mut add_facts);
                }
            }
            names.extend(self.runtime.own_facts.keys().map(|key| key.to_text().into_owned()));
        }
        names.insert("ansible_facts".to_owned());
        names.into_iter().collect()
    }

    fn names_are_settled(&self) -> Result<(), Interruption> {
        let may_add = |delta: &Arc<Delta>| match delta.as_ref() {
            Delta::Known(_) => false,
            Delta::Pending(pending) => {
                pending.any || pending.facts || !pending.names.is_empty() || !pending.own_facts.is_empty()
            }
        };
        if self.ahead.iter().any(may_add) { Err(Interruption::Pending) } else { Ok(()) }
    }

    fn controller_is_settled(&self) -> Result<(), Interruption> {
        if self.controller_changes { Err(Interruption::Pending) } else { Ok(()) }
    }
}

/// `hostvars`.
struct HostVars {
    scope: TaskScope,
}

impl Object for HostVars {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        let Some(name) = key.as_str() else { return Ok(None) };
        if name == self.scope.host.name.as_ref() {
            let scope = TaskScope { task: None, local: Map::new(), ..self.scope.clone() };
            return Ok(Some(Value::Object(Arc::new(AllVars { scope }))));
        }
        let scope = self.scope.neighbours.scope(name)?;
        Ok(scope.map(|scope| Value::Object(Arc::new(AllVars { scope }))))
    }

    fn keys(&self) -> Vec<Value> {
        self.scope.neighbours.names().iter().map(|name| Value::from(name.as_ref())).collect()
    }
}

/// `ansible_facts` where check mode cannot know some of them.
struct PartlyUnknownFacts {
    facts: Map,
    unknown: Vec<(String, String)>,
}

impl Object for PartlyUnknownFacts {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        match self.unknown.iter().find(|(name, _)| key.as_str() == Some(name)) {
            Some((_, reason)) => Err(Interruption::Unknown(reason.clone())),
            None => Ok(self.facts.get(key).cloned()),
        }
    }

    fn keys(&self) -> Vec<Value> {
        self.facts.keys().cloned().collect()
    }
}

/// All variables of a scope as a map of rendered values: `vars`, and an entry of `hostvars`.
struct AllVars {
    scope: TaskScope,
}

impl Object for AllVars {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        let Some(name) = key.as_str() else { return Ok(None) };
        match self.scope.get(name)? {
            Some(raw) if raw.has_templates() => match self.scope.context().value(&raw) {
                Ok(value) => Ok(Some(value)),
                Err(error) => match error.interruption() {
                    Some(interruption) => Err(interruption.clone()),
                    None if error.is_undefined() => Ok(Some(Value::undefined(error.message()))),
                    None => Err(Interruption::Failed(error.to_string())),
                },
            },
            other => Ok(other),
        }
    }

    fn keys(&self) -> Vec<Value> {
        self.scope.names().into_iter().map(Value::from).collect()
    }

    fn keys_are_settled(&self) -> Result<(), Interruption> {
        self.scope.names_are_settled()
    }
}

/// True for the variables that say how a host is reached and how another user is become. Facts never set these, as with
/// Ansible: a host must not decide it. So they need not wait for facts either.
fn is_about_connection(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "ansible_connection",
        "ansible_host",
        "ansible_port",
        "ansible_user",
        "ansible_password",
        "ansible_timeout",
        "ansible_private_key_file",
        "ansible_host_key_checking",
        "ansible_shell_type",
        "ansible_shell_executable",
    ];
    NAMES.contains(&name)
        || ["ansible_become", "ansible_sudo_", "ansible_su_", "ansible_doas_"]
            .iter()
            .any(|start| name.starts_with(start))
        || (name.starts_with("ansible_ssh_") && !name.starts_with("ansible_ssh_host_key_"))
}

#[cfg(test)]
mod tests {
    use super::is_about_connection;

    #[test]
    fn facts_do_not_say_how_a_host_is_reached() {
        for name in ["ansible_user", "ansible_host", "ansible_become", "ansible_sudo_pass", "ansible_ssh_common_args"] {
            assert!(is_about_connection(name), "{name}");
        }
        for name in ["ansible_user_id", "ansible_hostname", "ansible_ssh_host_key_rsa_public", "ansible_facts"] {
            assert!(!is_about_connection(name), "{name}");
        }
    }
}
