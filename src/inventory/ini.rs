//! The INI format of inventories.
//!
//! Source: <https://docs.ansible.com/ansible/latest/collections/ansible/builtin/ini_inventory.html>

use std::sync::Arc;

use indexmap::IndexMap;

use super::builder::Builder;
use super::group::GroupId;
use super::{literal, words};
use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::{Map, Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Hosts,
    Children,
    Vars,
}

/// A group that was named in `[x:vars]` or as a child, but is not declared yet.
struct Undeclared {
    place: Place,
    parents: Vec<String>,
}

/// Reads `source` into `builder`.
pub(super) fn read(source: &Arc<Source>, builder: &mut Builder) -> Result<()> {
    let mut reader = Reader {
        source,
        builder,
        group: GroupId::UNGROUPED,
        group_name: "ungrouped".to_owned(),
        section: Section::Hosts,
        undeclared: IndexMap::new(),
    };
    for (index, line) in source.text.lines().enumerate() {
        reader.line(line, index as u32 + 1)?;
    }
    reader.finish()
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    builder: &'a mut Builder,
    group: GroupId,
    group_name: String,
    section: Section,
    undeclared: IndexMap<String, Undeclared>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str, number: u32) -> Result<()> {
        let text = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if text.is_empty() || text.starts_with(['#', ';']) {
            return Ok(());
        }
        let indent = text.as_ptr().addr() - line.as_ptr().addr();
        let place = |offset: usize| Place::new(self.source, number, line[..indent + offset].chars().count() as u32 + 1);
        if text.starts_with('[')
            && let Some((name, kind)) = section_header(text)
        {
            return self.section(name, kind, &place(1), &place(name.len() + 2));
        }
        if text.starts_with('[') && without_comment(text).ends_with(']') {
            return Err(Error::input(format!("invalid section entry `{text}`"))
                .at(&place(0))
                .hint("a section is `[group]`, `[group:children]` or `[group:vars]`, without spaces"));
        }
        match self.section {
            Section::Hosts => self.hosts(text, &place),
            Section::Vars => self.variable(text, &place),
            Section::Children => self.child(text, &place(0)),
        }
    }

    fn section(&mut self, name: &str, kind: &str, place: &Place, kind_place: &Place) -> Result<()> {
        self.section = match kind {
            "" | "hosts" => Section::Hosts,
            "children" => Section::Children,
            "vars" => Section::Vars,
            _ => {
                return Err(Error::input(format!("section `[{name}:{kind}]` has unknown type `{kind}`"))
                    .at(kind_place)
                    .suggest(kind, ["hosts", "children", "vars"])
                    .hint("the types are `hosts` (or none), `children` and `vars`"));
            }
        };
        let is_new = self.builder.group(name).is_none();
        self.group = self.builder.add_group(name, place);
        name.clone_into(&mut self.group_name);
        if self.section != Section::Vars {
            if let Some(waiting) = self.undeclared.shift_remove(name) {
                for parent in waiting.parents {
                    let parent = self.builder.add_group(&parent, place);
                    self.builder.add_child(parent, self.group, &waiting.place)?;
                }
            }
        } else if is_new {
            self.undeclared
                .entry(name.to_owned())
                .or_insert_with(|| Undeclared { place: place.clone(), parents: Vec::new() });
        }
        Ok(())
    }

    fn hosts(&mut self, text: &str, place: &dyn Fn(usize) -> Place) -> Result<()> {
        let words = words::split(text).map_err(|(offset, reason)| Error::input(reason).at(&place(offset)))?;
        let Some((host, assignments)) = words.split_first() else { return Ok(()) };
        if host.text == "---" {
            return Err(Error::input("`---` is no host name")
                .at(&place(0))
                .hint("this seems to be a YAML inventory: let the name of its file end with `.yml`"));
        }
        if host.text.ends_with(':') {
            return Err(Error::input(format!("invalid host name `{}`: a colon must be followed by a port", host.text))
                .at(&place(0))
                .hint("if this is a YAML inventory, let the name of its file end with `.yml`"));
        }
        let mut vars = Map::with_capacity(assignments.len());
        for word in assignments {
            let Some((name, value)) = word.text.split_once('=') else {
                return Err(Error::input(format!("expected `name=value` after the host, got `{}`", word.text))
                    .at(&place(word.offset))
                    .hint("put one host on a line, and quote a value that contains spaces"));
            };
            check_name(name).map_err(|error| error.at(&place(word.offset)))?;
            vars.insert(Value::from(name), literal::value(value));
        }
        let place = place(0);
        let added = self.builder.add_hosts(&host.text, self.group, &vars, &place);
        added.map_err(|reason| Error::input(reason).at(&place))
    }

    fn variable(&mut self, text: &str, place: &dyn Fn(usize) -> Place) -> Result<()> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Error::input(format!("expected `name=value` in `[{}:vars]`, got `{text}`", self.group_name))
                .at(&place(0)));
        };
        let name = name.trim();
        check_name(name).map_err(|error| error.at(&place(0)))?;
        self.builder.set_group_var(self.group, name.into(), literal::value(value.trim()), &place(0))
    }

    fn child(&mut self, text: &str, place: &Place) -> Result<()> {
        let name = without_comment(text);
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || matches!(c, ':' | ']')) {
            return Err(Error::input(format!(
                "expected the name of a group in `[{}:children]`, got `{text}`",
                self.group_name
            ))
            .at(place)
            .hint("a child is a group; hosts go into the section without `:children`"));
        }
        match self.builder.group(name) {
            Some(child) if !self.undeclared.contains_key(name) => self.builder.add_child(self.group, child, place),
            _ => {
                let waiting = self
                    .undeclared
                    .entry(name.to_owned())
                    .or_insert_with(|| Undeclared { place: place.clone(), parents: Vec::new() });
                if waiting.parents.is_empty() {
                    waiting.place = place.clone();
                }
                waiting.parents.push(self.group_name.clone());
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<()> {
        let Some((name, waiting)) = self.undeclared.first() else { return Ok(()) };
        let known = self.builder.group_names().filter(|known| !self.undeclared.contains_key(*known));
        let error = match waiting.parents.last() {
            Some(parent) => {
                Error::input(format!("section `[{parent}:children]` includes the undefined group `{name}`"))
            }
            None => Error::input(format!("section `[{name}:vars]` sets variables of the undefined group `{name}`")),
        };
        Err(error.at(&waiting.place).suggest(name, known).hint(format!("declare it: `[{name}]`")))
    }
}

/// The group's name and the type of `[name]` or `[name:type]`, which a comment may follow.
fn section_header(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix('[')?.split_once(']')?;
    let after = after.trim_start();
    if !after.is_empty() && !after.starts_with('#') {
        return None;
    }
    let (name, kind) = match inside.split_once(':') {
        Some((name, kind)) if !kind.is_empty() => (name, kind),
        Some(_) => return None,
        None => (inside, ""),
    };
    let is_word = kind.chars().all(|c| c.is_alphanumeric() || c == '_');
    (!name.is_empty() && !name.contains(char::is_whitespace) && is_word).then_some((name, kind))
}

fn without_comment(text: &str) -> &str {
    text.split('#').next().unwrap_or(text).trim_end()
}

/// A variable's name must be one that a template can use.
fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::input("a variable needs a name before its `=`"));
    }
    if name.contains(char::is_whitespace) {
        return Err(Error::input(format!("`{name}` is no name of a variable: it contains a space"))
            .hint("lines below `:vars` are `name = value`; hosts go into the section without `:vars`"));
    }
    Ok(())
}
