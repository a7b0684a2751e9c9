//! How a task reaches its host, and as whom: from keywords, variables and defaults.

use std::sync::Arc;
use std::time::Duration;

use crate::connect::{Become, HostKeyChecking, Identity, Secret, Target, Transport};
use crate::host::Failure;
use crate::playbook::{Settings, TaskAction};
use crate::template::{Context, Scope};
use crate::value::{Map, Value};
use crate::vars::TaskScope;

use super::options::Options;

/// Renders variables and keywords of one task for the questions below.
pub struct Reach<'a> {
    pub scope: &'a TaskScope,
    pub context: &'a Context,
    pub settings: &'a Settings,
    pub options: &'a Options,
}

impl Reach<'_> {
    /// A variable, rendered; `None` if it is not set or null.
    fn variable(&self, names: &[&str]) -> Result<Option<Value>, Failure> {
        for name in names {
            if let Some(raw) = self.scope.get(name).map_err(Failure::interrupted)? {
                let value = self.context.value(&raw)?;
                if !value.is_null() {
                    return Ok(Some(value));
                }
            }
        }
        Ok(None)
    }

    fn text(&self, names: &[&str]) -> Result<Option<String>, Failure> {
        Ok(self.variable(names)?.map(|value| value.to_text().into_owned()))
    }

    /// A keyword, rendered; what is around counts where it is omitted. `None` if it is not set or null.
    fn keyword(&self, name: &str) -> Result<Option<Value>, Failure> {
        let mut settings = Some(self.settings);
        while let Some(level) = settings {
            let Some(written) = level.keyword(name) else { return Ok(None) };
            let value = self.context.value(&written.value)?;
            if !self.scope.is_omitted(&value) {
                return Ok(Some(value).filter(|value| !value.is_null()));
            }
            settings = level.around.as_deref();
        }
        Ok(None)
    }

    fn keyword_text(&self, name: &str) -> Result<Option<String>, Failure> {
        Ok(self.keyword(name)?.map(|value| value.to_text().into_owned()))
    }

    /// Where the host is and how to get in.
    pub fn target(&self) -> Result<Target, Failure> {
        let defaults = &self.options.connection;
        let name = self.scope.host.name.to_string();
        let connection = match self.text(&["ansible_connection"])? {
            Some(connection) => connection,
            None => self.keyword_text("connection")?.unwrap_or_else(|| defaults.connection.clone()),
        };
        let transport = match connection.rsplit('.').next().unwrap_or_default() {
            "ssh" | "smart" | "paramiko" | "paramiko_ssh" | "libssh" => Transport::Ssh,
            "local" => Transport::Local,
            other => {
                return Err(Failure::new(format!(
                    "the connection `{other}` is not supported; trimtab has `ssh` and `local`"
                )));
            }
        };
        let port = match self.text(&["ansible_port", "ansible_ssh_port"])? {
            Some(port) => Some(port),
            None => self.keyword_text("port")?,
        };
        let port = match port {
            None => None,
            Some(text) => {
                Some(text.trim().parse::<u16>().map_err(|_| Failure::new(format!("`{text}` is not a port number")))?)
            }
        };
        let user = match self.text(&["ansible_user", "ansible_ssh_user"])? {
            Some(user) => Some(user),
            None => self.keyword_text("remote_user")?.or_else(|| defaults.user.clone()),
        };
        let mut ssh_args = defaults.ssh_args.clone();
        for variable in ["ansible_ssh_common_args", "ansible_ssh_extra_args"] {
            if let Some(text) = self.text(&[variable])? {
                ssh_args.extend(split_words(&text)?);
            }
        }
        let host_key_checking = match self.variable(&["ansible_host_key_checking", "ansible_ssh_host_key_checking"])? {
            None => defaults.host_key_checking,
            Some(value) if value.as_str() == Some("accept-new") => HostKeyChecking::AcceptNew,
            Some(value) => match value.to_ansible_bool() {
                Some(true) => HostKeyChecking::Strict,
                Some(false) => HostKeyChecking::Off,
                None => {
                    return Err(Failure::new(format!(
                        "ansible_host_key_checking wants a boolean or `accept-new`, got `{}`",
                        value.to_text()
                    )));
                }
            },
        };
        let connect_timeout = match self.text(&["ansible_timeout", "ansible_ssh_timeout"])? {
            None => defaults.timeout,
            Some(text) => Duration::from_secs(
                text.trim()
                    .parse()
                    .map_err(|_| Failure::new(format!("ansible_timeout wants a number of seconds, got `{text}`")))?,
            ),
        };
        Ok(Target {
            address: self.text(&["ansible_host", "ansible_ssh_host"])?.unwrap_or_else(|| name.clone()),
            name,
            transport,
            port,
            user,
            password: self
                .text(&["ansible_password", "ansible_ssh_pass", "ansible_ssh_password"])?
                .map(Secret::new)
                .or_else(|| defaults.password.clone()),
            private_key_file: self
                .text(&["ansible_ssh_private_key_file", "ansible_private_key_file"])?
                .or_else(|| defaults.private_key_file.clone()),
            ssh_args,
            host_key_checking,
            connect_timeout,
        })
    }

    /// As whom the task runs.
    pub fn identity(&self) -> Result<Arc<Identity>, Failure> {
        let defaults = &self.options.privilege;
        let enabled = match self.variable(&["ansible_become"])? {
            Some(value) => value.to_ansible_bool().unwrap_or(false),
            None => self.optional_flag("become")?.unwrap_or(defaults.enabled),
        };
        if !enabled {
            return Ok(Arc::default());
        }
        let method = match self.text(&["ansible_become_method"])? {
            Some(method) => method,
            None => self.keyword_text("become_method")?.unwrap_or_else(|| defaults.method.clone()),
        };
        let method = method.rsplit('.').next().unwrap_or_default().to_owned();
        let user = match self.text(&["ansible_become_user"])? {
            Some(user) => user,
            None => self.keyword_text("become_user")?.unwrap_or_else(|| defaults.user.clone()),
        };
        let exe = match self.text(&["ansible_become_exe"])? {
            Some(exe) => Some(exe),
            None => self.keyword_text("become_exe")?,
        };
        let flags = match self.text(&["ansible_become_flags"])? {
            Some(flags) => Some(flags),
            None => self.keyword_text("become_flags")?,
        };
        let password_names =
            ["ansible_become_password".to_owned(), "ansible_become_pass".to_owned(), format!("ansible_{method}_pass")];
        let password_names: Vec<&str> = password_names.iter().map(String::as_str).collect();
        let password = self.text(&password_names)?.map(Secret::new).or_else(|| defaults.password.clone());
        Ok(Arc::new(Identity { become_as: Some(Become { method, user, password, exe, flags }) }))
    }

    /// A boolean keyword, rendered.
    pub fn flag(&self, name: &str) -> Result<bool, Failure> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// A boolean keyword, rendered; `None` if not given.
    pub fn optional_flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.keyword(name)? {
            None => Ok(None),
            Some(value) => value.to_ansible_bool().map(Some).ok_or_else(|| {
                let text = value.to_text();
                Failure::new(format!("the keyword `{name}` wants a boolean, and `{text}` is not a valid boolean"))
            }),
        }
    }

    /// The environment of the task's commands; inner levels win.
    pub fn environment(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut merged = indexmap::IndexMap::new();
        for written in &self.settings.environment {
            let value = match &written.value {
                Value::Map(map) => self.environment_map(map)?,
                other => self.context.value(other)?,
            };
            if self.scope.is_omitted(&value) {
                continue;
            }
            let maps = match &value {
                Value::List(items) => items.to_vec(),
                single => vec![single.clone()],
            };
            for map in maps {
                match map.as_map() {
                    Some(map) => merged.extend(
                        map.iter().map(|(key, value)| (key.to_text().into_owned(), value.to_text().into_owned())),
                    ),
                    None if map.is_null() || map.as_str() == Some("") => {}
                    None => {
                        return Err(Failure::new(format!(
                            "`environment` wants a map of names and values, got {}",
                            map.type_name()
                        )));
                    }
                }
            }
        }
        Ok(merged.into_iter().collect())
    }

    /// The entries of a map of `environment`, rendered; without those of a task that gathers facts which need the very
    /// facts that it is to gather.
    fn environment_map(&self, map: &Map) -> Result<Value, Failure> {
        let gathers = self.scope.task.as_ref().is_some_and(|task| match &task.action {
            TaskAction::Module(module) => matches!(module.bare_name(), "setup" | "gather_facts"),
            _ => false,
        });
        let mut rendered = Map::new();
        for (key, value) in map {
            let entry = Value::map(Map::from_iter([(key.clone(), value.clone())]));
            match self.context.value(&entry).map_err(Failure::from) {
                Ok(Value::Map(entry)) => rendered.extend(Map::clone(&entry)),
                Ok(_) => {}
                Err(failure) if gathers && failure.message.contains("ansible_env") => {}
                Err(failure) => return Err(failure),
            }
        }
        rendered.retain(|_, value| !self.scope.is_omitted(value));
        Ok(Value::map(rendered))
    }
}

/// Splits a line into words as a shell does, for `ansible_ssh_common_args`.
pub fn split_words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                if let Some(next) = characters.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, c @ ('\'' | '"')) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Failure::new(format!("a quote is not closed in `{line}`")));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = |line: &str| split_words(line).unwrap();
        assert_eq!(words("-o A=b  -J gate"), ["-o", "A=b", "-J", "gate"]);
        assert_eq!(words("-o 'ProxyCommand=ssh -W %h:%p x'"), ["-o", "ProxyCommand=ssh -W %h:%p x"]);
        assert_eq!(words(r#"a\ b "c \" d" ''"#), ["a b", "c \" d", ""]);
        assert!(split_words("'x").is_err());
    }
}
