//! The keywords that are inherited: reading them, and handing them down.

use std::sync::Arc;

use super::keywords::{self, On};
use super::load::Loader;
use super::{Settings, Written};
use crate::error::Error;
use crate::template::reserved_name;
use crate::value::{Map, Value};
use crate::yaml::Node;

/// What the variables of a level are to those below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// A block or an import: its variables are handed down.
    Block,
    /// A task: its variables are its own.
    Task,
    /// A play or a role: its variables have levels of their own.
    Apart,
}

/// The keywords that fall back to what is around them where they are omitted.
const OMITTABLE: &[&str] = &[
    "become",
    "become_user",
    "become_method",
    "become_exe",
    "become_flags",
    "connection",
    "remote_user",
    "port",
    "check_mode",
    "diff",
    "no_log",
    "ignore_errors",
    "ignore_unreachable",
];

impl Loader<'_> {
    /// Takes a keyword that is inherited into `settings`; false if it is not one of them. The value's type is checked
    /// by the caller.
    pub fn take_setting(&mut self, settings: &mut Settings, name: &str, node: &Node) -> bool {
        let slot = match name {
            "when" => {
                settings.when = self.conditions(node);
                return true;
            }
            "tags" => {
                settings.tags = self.written_list(node);
                return true;
            }
            "vars" => {
                settings.task_vars = self.variables(node).map(Arc::new);
                return true;
            }
            "environment" => {
                settings.environment = self.written_list(node);
                return true;
            }
            "module_defaults" => {
                settings.module_defaults = self.written_list(node);
                return true;
            }
            "notify" => {
                settings.notify = self.written_list(node);
                return true;
            }
            "collections" => {
                let names = self.written_list(node).iter().map(|name| name.value.to_text().into_owned()).collect();
                settings.collections = Some(Arc::new(names));
                return true;
            }
            "become" => &mut settings.become_,
            "become_user" => &mut settings.become_user,
            "become_method" => &mut settings.become_method,
            "become_exe" => &mut settings.become_exe,
            "become_flags" => &mut settings.become_flags,
            "connection" => &mut settings.connection,
            "remote_user" | "user" => &mut settings.remote_user,
            "port" => &mut settings.port,
            "check_mode" => &mut settings.check_mode,
            "diff" => &mut settings.diff,
            "no_log" => &mut settings.no_log,
            "ignore_errors" => &mut settings.ignore_errors,
            "ignore_unreachable" => &mut settings.ignore_unreachable,
            "any_errors_fatal" => &mut settings.any_errors_fatal,
            "run_once" => &mut settings.run_once,
            "delegate_to" => &mut settings.delegate_to,
            "delegate_facts" => &mut settings.delegate_facts,
            "throttle" => &mut settings.throttle,
            "debugger" => {
                self.check_choice("debugger", node, keywords::DEBUGGER);
                &mut settings.debugger
            }
            "timeout" => &mut settings.timeout,
            _ => return false,
        };
        *slot = Some(self.written(node)).filter(|_| !node.is_null());
        true
    }

    /// Conditions as written; empty ones are true, so they are left out.
    pub fn conditions(&self, node: &Node) -> Vec<Written> {
        let is_empty = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
        self.written_list(node).into_iter().filter(|condition| !is_empty(&condition.value)).collect()
    }

    /// Variables: a map, or (in old playbooks) a list of maps.
    pub fn variables(&mut self, node: &Node) -> Option<Map> {
        let maps = match node.as_sequence() {
            Some(items) => items.iter().collect(),
            None => vec![node],
        };
        let mut variables = Map::new();
        for map in maps {
            if map.is_null() {
                continue;
            }
            let Some(entries) = map.as_mapping() else {
                self.error(
                    Error::parse(format!("`vars` takes a mapping of variables, not {}", keywords::described(map)))
                        .at(&map.place),
                );
                continue;
            };
            for (key, value) in entries {
                match key.as_str() {
                    Some(name) if is_variable_name(name) => {
                        if let Some(warning) = reserved_name(name) {
                            self.options.warn(Error::input(warning));
                        }
                        variables.insert(Value::from(name), self.value(value));
                    }
                    _ => self.error(invalid_variable_name(key, "vars")),
                }
            }
        }
        Some(variables).filter(|variables| !variables.is_empty())
    }

    /// Checks that a key is a keyword there and its value fits; the keyword if so, else its error is kept.
    pub fn keyword(&mut self, key: &Node, value: &Node, on: On) -> Option<&'static keywords::Keyword> {
        let Some(keyword) = key.as_str().and_then(|name| keywords::find(name, on)) else {
            self.error(keywords::unknown(key, on));
            return None;
        };
        self.keep(keywords::check_value(keyword.name, keyword.holds, value))?;
        Some(keyword)
    }
}

/// True for letters, digits and `_`, not beginning with a digit.
pub(super) fn is_variable_name(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    name.chars().all(is_word) && name.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

/// The error of a name in `keyword` that no variable can have; it begins as Ansible's does.
pub(super) fn invalid_variable_name(key: &Node, keyword: &str) -> Error {
    let name = key.value().map(|value| value.to_text().into_owned()).unwrap_or_default();
    Error::parse(format!("Invalid variable name in '{keyword}' specified: '{name}'"))
        .at(&key.place)
        .hint("names consist of letters, digits and `_`, and do not begin with a digit")
}

impl Settings {
    /// An inherited keyword that has one value.
    pub fn keyword(&self, name: &str) -> Option<&Written> {
        let slot = match name {
            "become" => &self.become_,
            "become_user" => &self.become_user,
            "become_method" => &self.become_method,
            "become_exe" => &self.become_exe,
            "become_flags" => &self.become_flags,
            "connection" => &self.connection,
            "remote_user" => &self.remote_user,
            "port" => &self.port,
            "check_mode" => &self.check_mode,
            "diff" => &self.diff,
            "no_log" => &self.no_log,
            "ignore_errors" => &self.ignore_errors,
            "ignore_unreachable" => &self.ignore_unreachable,
            "any_errors_fatal" => &self.any_errors_fatal,
            "run_once" => &self.run_once,
            "delegate_facts" => &self.delegate_facts,
            "throttle" => &self.throttle,
            "timeout" => &self.timeout,
            _ => return None,
        };
        slot.as_ref()
    }

    /// True if what is inherited may be asked for: where a value turns out to be `omit`.
    fn may_omit(&self) -> bool {
        let is_template = |name: &str| self.keyword(name).is_some_and(|written| written.value.has_templates());
        OMITTABLE.iter().any(|name| is_template(name))
    }

    /// These settings as they apply below `outer`.
    pub(super) fn below(self, outer: &Settings, level: Level) -> Settings {
        fn join<T: Clone>(outer: &[T], own: Vec<T>) -> Vec<T> {
            outer.iter().cloned().chain(own).collect()
        }
        let around = if self.may_omit() { Some(Arc::new(outer.clone())) } else { outer.around.clone() };
        let mut block_vars = join(&outer.block_vars, self.block_vars);
        let mut task_vars = None;
        match level {
            Level::Block => block_vars.extend(self.task_vars),
            Level::Task => task_vars = self.task_vars,
            Level::Apart => {}
        }
        Settings {
            around,
            when: join(&outer.when, self.when),
            tags: join(&outer.tags, self.tags),
            block_vars,
            task_vars,
            include_params: join(&outer.include_params, self.include_params),
            environment: join(&outer.environment, self.environment),
            module_defaults: join(&outer.module_defaults, self.module_defaults),
            become_: self.become_.or_else(|| outer.become_.clone()),
            become_user: self.become_user.or_else(|| outer.become_user.clone()),
            become_method: self.become_method.or_else(|| outer.become_method.clone()),
            become_exe: self.become_exe.or_else(|| outer.become_exe.clone()),
            become_flags: self.become_flags.or_else(|| outer.become_flags.clone()),
            connection: self.connection.or_else(|| outer.connection.clone()),
            remote_user: self.remote_user.or_else(|| outer.remote_user.clone()),
            port: self.port.or_else(|| outer.port.clone()),
            check_mode: self.check_mode.or_else(|| outer.check_mode.clone()),
            diff: self.diff.or_else(|| outer.diff.clone()),
            no_log: self.no_log.or_else(|| outer.no_log.clone()),
            ignore_errors: self.ignore_errors.or_else(|| outer.ignore_errors.clone()),
            ignore_unreachable: self.ignore_unreachable.or_else(|| outer.ignore_unreachable.clone()),
            any_errors_fatal: self.any_errors_fatal.or_else(|| outer.any_errors_fatal.clone()),
            run_once: self.run_once.or_else(|| outer.run_once.clone()),
            delegate_to: self.delegate_to.or_else(|| outer.delegate_to.clone()),
            delegate_facts: self.delegate_facts.or_else(|| outer.delegate_facts.clone()),
            throttle: self.throttle.or_else(|| outer.throttle.clone()),
            debugger: self.debugger.or_else(|| outer.debugger.clone()),
            timeout: self.timeout.or_else(|| outer.timeout.clone()),
            collections: self.collections.or_else(|| outer.collections.clone()),
            notify: if self.notify.is_empty() { outer.notify.clone() } else { self.notify },
        }
    }
}
