//! The variables that come into being while a host is worked on, and what tasks not yet done may add.

use std::sync::Arc;

use crate::playbook::Role;
use crate::value::{Map, Value};

/// What a host's tasks have set so far.
#[derive(Debug, Clone, Default)]
pub struct Runtime {
    /// Facts, without the prefix `ansible_`.
    pub facts: Map,
    /// Facts that were returned under a name without `ansible_`: by that name they are variables.
    pub own_facts: Map,
    /// set_fact and registered results.
    pub set_facts: Map,
    pub include_vars: Map,
    /// Public roles that were included, in order.
    pub roles: Vec<Arc<Role>>,
    /// `ansible_failed_task` and `ansible_failed_result`, inside a rescue.
    pub rescue: Map,
    /// Names whose value check mode cannot know, with the reason.
    pub unknown: Vec<(String, String)>,
    /// Facts, by the name that their module gives them, that check mode cannot know, with the reason.
    pub unknown_facts: Vec<(String, String)>,
}

/// What one invocation adds to the variables, or may add once it is done.
#[derive(Debug, Clone)]
pub enum Delta {
    Known(Arc<Additions>),
    Pending(Pending),
}

/// Variables that an invocation added.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    pub facts: Option<Map>,
    pub set_facts: Option<Map>,
    pub include_vars: Option<Map>,
    pub role: Option<Arc<Role>>,
    /// Names whose value check mode cannot know, with the reason.
    pub unknown: Vec<(String, String)>,
    /// Facts that check mode cannot know, with the reason.
    pub unknown_facts: Vec<(String, String)>,
}

impl Additions {
    /// True if nothing is added.
    pub fn is_empty(&self) -> bool {
        self.facts.is_none()
            && self.set_facts.is_none()
            && self.include_vars.is_none()
            && self.role.is_none()
            && self.unknown.is_empty()
            && self.unknown_facts.is_empty()
    }
}

/// What an invocation that is not done yet may still set.
#[derive(Debug, Clone, Default)]
pub struct Pending {
    /// Registered names and those of set_fact.
    pub names: Vec<String>,
    /// It may set facts.
    pub facts: bool,
    /// The facts it may set under a name without `ansible_`.
    pub own_facts: Vec<&'static str>,
    /// It may set any name (include_vars, set_fact of a templated name).
    pub any: bool,
}

impl Pending {
    /// True if this variable may still be set.
    pub fn covers(&self, name: &str) -> bool {
        self.any || self.names.iter().any(|pending| pending == name)
    }
}

impl Runtime {
    /// Forgets all facts (`meta: clear_facts`).
    pub fn clear_facts(&mut self) {
        self.facts.clear();
        self.own_facts.clear();
    }

    /// Takes over what an invocation added.
    pub fn apply(&mut self, additions: &Additions) {
        if let Some(facts) = &additions.facts {
            merge_facts(&mut self.facts, facts);
            let own = facts.iter().filter(|(name, _)| name.as_str().is_some_and(|name| !name.starts_with("ansible_")));
            self.own_facts.extend(own.map(|(name, value)| (name.clone(), value.clone())));
            self.unknown_facts.retain(|(name, _)| !facts.contains_key(name.as_str()));
        }
        for map in [&additions.set_facts, &additions.include_vars].into_iter().flatten() {
            self.unknown.retain(|(name, _)| !map.contains_key(name.as_str()));
        }
        self.unknown.extend(additions.unknown.iter().cloned());
        self.unknown_facts.extend(additions.unknown_facts.iter().cloned());
        for (target, source) in
            [(&mut self.set_facts, &additions.set_facts), (&mut self.include_vars, &additions.include_vars)]
        {
            if let Some(source) = source {
                target.extend(source.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        if let Some(role) = &additions.role {
            self.roles.push(Arc::clone(role));
        }
    }
}

/// Adds facts to facts; `ansible_local` and other maps are replaced whole, as Ansible does.
pub fn merge_facts(facts: &mut Map, more: &Map) {
    for (key, value) in more {
        // the one fact that keeps its whole name among the others
        if key.as_str() == Some("ansible_local") {
            facts.insert(key.clone(), value.clone());
        }
        let key = match key.as_str() {
            Some(name) => Value::from(name.strip_prefix("ansible_").unwrap_or(name)),
            None => key.clone(),
        };
        facts.insert(key, value.clone());
    }
}
