//! Inventory scripts: programs that print hosts and groups as JSON.
//!
//! Source: <https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html>, inventory scripts.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Map as JsonMap, Value as Json};

use super::builder::Builder;
use super::group::{GroupId, HostId};
use super::vars_files::reason;
use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::Map;
use crate::yaml::written_json;

/// So many lines of what a script said are shown.
const SHOWN_LINES: usize = 10;

/// Runs the script that the builder is at with `--list`, and with `--host` for each host that it told nothing of.
pub(super) fn read(builder: &mut Builder) -> Result<()> {
    let path = builder.current().to_owned();
    let (list, place) = ask(&path, &["--list"], builder)?;
    let Some(list) = list else { return Ok(()) };
    let mut told = Vec::new();
    for (name, body) in list.iter().filter(|(name, _)| *name != "_meta") {
        group(name, body, &place, builder, &mut told)?;
    }
    for (name, body) in list.iter().filter(|(name, _)| *name != "_meta") {
        for child in texts(body.get("children"), name, "children", &place)? {
            let parent = builder.add_group(name, &place);
            let child = builder.add_group(child, &place);
            builder.add_child(parent, child, &place)?;
        }
    }
    told.sort();
    told.dedup_by_key(|(_, host)| *host);
    let known = match list.get("_meta") {
        Some(meta) => match meta.get("hostvars") {
            None | Some(Json::Null) => Some(JsonMap::new()),
            Some(Json::Object(hosts)) => Some(hosts.clone()),
            Some(_) => return Err(bad("`hostvars` of `_meta` must be an object of hosts", &place)),
        },
        None => None,
    };
    for (name, host) in told {
        let vars = match &known {
            Some(known) => known.get(&name).cloned().unwrap_or(Json::Null),
            None => ask(&path, &["--host", &name], builder)?.0.map_or(Json::Null, Json::Object),
        };
        let vars = variables(&vars, &place)
            .ok_or_else(|| bad(format!("the variables of `{name}` must be an object"), &place))?;
        for (name, value) in vars {
            builder.set_host_var(host, name, value);
        }
    }
    Ok(())
}

fn group(
    name: &str,
    body: &Json,
    place: &Place,
    builder: &mut Builder,
    told: &mut Vec<(String, HostId)>,
) -> Result<()> {
    let id = builder.add_group(name, place);
    let plain = match body {
        // an object without any of the three keys is a group of one host, with these variables
        Json::Object(parts) if !["hosts", "vars", "children"].iter().any(|key| parts.contains_key(*key)) => {
            told.push((name.to_owned(), builder.add_host(name, id, place)));
            for (name, value) in variables(body, place).unwrap_or_default() {
                builder.set_group_var(id, name, value, place)?;
            }
            return Ok(());
        }
        Json::Object(parts) => parts.get("hosts"),
        list => Some(list),
    };
    for host in texts(plain, name, "hosts", place)? {
        // Ansible takes the names as they are, without ranges and ports
        let group = if id == GroupId::ALL { GroupId::UNGROUPED } else { id };
        told.push((host.to_owned(), builder.add_host(host, group, place)));
    }
    let vars = body.get("vars").unwrap_or(&Json::Null);
    let vars =
        variables(vars, place).ok_or_else(|| bad(format!("`vars` of the group `{name}` must be an object"), place))?;
    for (name, value) in vars {
        builder.set_group_var(id, name, value, place)?;
    }
    Ok(())
}

/// The names in a list; nothing if there is none.
fn texts<'a>(list: Option<&'a Json>, group: &str, part: &str, place: &Place) -> Result<Vec<&'a str>> {
    let wrong = || bad(format!("`{part}` of the group `{group}` must be a list of names"), place);
    match list {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Array(items)) => items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

fn bad(message: impl Into<String>, place: &Place) -> Error {
    Error::input(message).at(place).hint("this is what the script printed; see the format of inventory scripts")
}

/// The variables of an object; none for null, `None` for anything else.
fn variables(json: &Json, place: &Place) -> Option<Map> {
    match json {
        Json::Null => Some(Map::new()),
        Json::Object(entries) => {
            Some(entries.iter().map(|(name, value)| (name.as_str().into(), written_json(value, place))).collect())
        }
        _ => None,
    }
}

/// Runs the script; `None` if it printed nothing. The place is the beginning of what it printed.
fn ask(path: &Path, arguments: &[&str], builder: &mut Builder) -> Result<(Option<JsonMap<String, Json>>, Place)> {
    let line = format!("{} {}", path.display(), arguments.join(" "));
    let run = || Command::new(path).args(arguments).stdin(Stdio::null()).output();
    let output = crate::program::when_written(run).map_err(|error| {
        Error::system(format!("cannot run the inventory script `{}`: {}", path.display(), reason(&error)))
            .hint("its first line names the program that runs it; if it is no script, take its execute permission away")
    })?;
    let Output { status, stdout, stderr } = output;
    let said = shown(&String::from_utf8_lossy(&stderr));
    let with_said = |error: Error| if said.is_empty() { error } else { error.hint(format!("it said: {said}")) };
    if !status.success() {
        let how = match status.code() {
            Some(code) => format!("exit code {code}"),
            None => status.to_string(),
        };
        return Err(with_said(Error::input(format!("the inventory script `{line}` failed: {how}"))));
    }
    if !said.is_empty() {
        builder.warnings.push(Error::input(format!("the inventory script `{line}` said: {said}")));
    }
    let text = String::from_utf8_lossy(&stdout).into_owned();
    let source = Source::new(line.as_str(), text);
    let start = Place::start(&source);
    if source.text.trim().is_empty() {
        return Ok((None, start));
    }
    match serde_json::from_str(&source.text) {
        Ok(Json::Object(entries)) => Ok((Some(entries), start)),
        Ok(_) => Err(bad("an inventory script must print a JSON object", &start)),
        Err(error) => {
            let place = Place::new(&source, error.line() as u32, error.column().max(1) as u32);
            Err(with_said(bad(format!("an inventory script must print JSON: {error}"), &place)))
        }
    }
}

/// The last lines of what a script said.
fn shown(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
