//! `trimtab inventory`: shows hosts, groups and variables, as ansible-inventory does.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use clap::Args;

use super::args::{InventoryArgs, VariableArgs, VerbosityArgs};
use super::session::{Fleet, Session, playbook_directory};
use crate::error::{Error, Result};
use crate::inventory::{GroupId, HostId, Level};
use crate::report;
use crate::value::{Map, Value};
use crate::yaml::{EmitOptions, JSON_VAULT, emit};

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct ShowArgs {
    /// With --graph: the group to begin at
    #[arg(value_name = "GROUP")]
    pub group: Option<String>,
    #[command(flatten)]
    pub hosts: InventoryArgs,
    #[command(flatten)]
    pub variables: VariableArgs,
    /// All hosts with their variables, and all groups, as JSON
    #[arg(long)]
    pub list: bool,
    /// The variables of one host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// The groups as a tree
    #[arg(long)]
    pub graph: bool,
    /// YAML in place of JSON
    #[arg(short = 'y', long)]
    pub yaml: bool,
    #[arg(long, hide = true)]
    pub toml: bool,
    /// With --list: variables of groups stay with their groups
    #[arg(long)]
    pub export: bool,
    /// With --graph: the variables of hosts and groups too
    #[arg(long)]
    pub vars: bool,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<String>,
    /// Stands for the playbook's directory (`group_vars` and `host_vars`)
    #[arg(long, value_name = "PATH")]
    pub playbook_dir: Option<String>,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Variables that only say where a host comes from.
const WHENCE: [&str; 2] = ["inventory_dir", "inventory_file"];

/// Shows what was asked for.
pub fn show(session: &mut Session, args: ShowArgs) -> Result<u8> {
    if args.toml {
        return Err(Error::usage("inventories are not written as TOML").hint("`--yaml` writes them as YAML"));
    }
    let asked = [args.list, args.host.is_some(), args.graph].into_iter().filter(|asked| *asked).count();
    if asked != 1 {
        return Err(Error::usage("one of `--list`, `--host` and `--graph` is needed"));
    }
    let mut fleet = session.fleet(&args.hosts, &args.variables)?;
    let has_directory = args.playbook_dir.is_some() || session.settings.is_set("playbook_dir");
    if has_directory {
        let path = playbook_directory(args.playbook_dir.as_deref(), &session.settings, &session.surroundings);
        fleet.inventory.set_playbook_directory(path);
    }
    let text = if let Some(name) = &args.host {
        let host = fleet.inventory.find_host(name).ok_or_else(|| {
            let error = fleet.inventory.no_match(name);
            error.hints().iter().fold(Error::usage(format!("there is no host `{name}`")), |all, hint| all.hint(hint))
        })?;
        format(&variables(&fleet, host)?.into(), args.yaml)
    } else if args.graph {
        graph(&fleet, args.group.as_deref().unwrap_or("all"), args.vars)?
    } else if args.yaml {
        format(&tree(&fleet, args.export)?, true)
    } else {
        list_to(session, args.output.as_deref(), &fleet, args.export)?;
        super::leave_memory(fleet);
        return Ok(0);
    };
    match &args.output {
        Some(file) => std::fs::write(file, text).map_err(|error| cannot_write(file, &error))?,
        None => session.ui.raw(&text),
    }
    super::leave_memory(fleet);
    Ok(0)
}

fn cannot_write(file: &str, error: &std::io::Error) -> Error {
    Error::system(format!("cannot write `{file}`: {error}"))
}

/// The list, handed on piece by piece: that of a large fleet fills the memory.
fn list_to(session: &mut Session, output: Option<&str>, fleet: &Fleet, export: bool) -> Result<()> {
    let Some(file) = output else {
        return list(fleet, export, &mut |text| {
            session.ui.raw(text);
            Ok(())
        });
    };
    let wrong = |error: std::io::Error| cannot_write(file, &error);
    let mut writer = None;
    list(fleet, export, &mut |text| {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(BufWriter::new(File::create(file).map_err(wrong)?)),
        };
        writer.write_all(text.as_bytes()).map_err(wrong)
    })?;
    writer.as_mut().map_or(Ok(()), BufWriter::flush).map_err(wrong)
}

/// What is encrypted is shown as it is: no password is needed.
fn format(value: &Value, yaml: bool) -> String {
    if yaml {
        let options = EmitOptions { default_flow_style: Some(false), ..EmitOptions::to_yaml() };
        return emit(value, &options);
    }
    report::pretty(&sealed_as_maps(value)) + "\n"
}

/// Encrypted values in the form that Ansible's JSON has for them.
fn sealed_as_maps(value: &Value) -> Value {
    match value {
        Value::Str(text) if text.sealed_at().is_some() => {
            Map::from_iter([(JSON_VAULT.into(), text.as_str().into())]).into()
        }
        Value::List(items) if value.has_templates() => Value::list(items.iter().map(sealed_as_maps).collect()),
        Value::Map(map) if value.has_templates() => {
            Value::map(map.iter().map(|(key, value)| (key.clone(), sealed_as_maps(value))).collect())
        }
        other => other.clone(),
    }
}

/// All variables of a host, unrendered; without those that only say where it comes from.
fn variables(fleet: &Fleet, host: HostId) -> Result<Map> {
    let mut variables = Map::new();
    for (_, layer) in fleet.inventory.host_layers(host)? {
        variables.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    for name in WHENCE {
        variables.shift_remove(name);
    }
    variables.extend(fleet.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    Ok(variables)
}

/// The variables of a host that no group gives it.
fn own_variables(fleet: &Fleet, host: HostId) -> Result<Map> {
    let of_host = [Level::InventoryHost, Level::InventoryHostVars, Level::PlaybookHostVars];
    let layers = fleet.inventory.host_layers(host)?;
    let mut variables = merged(layers.into_iter().filter(|(level, _)| of_host.contains(level)).map(|(_, layer)| layer));
    variables.retain(|name, _| !WHENCE.iter().any(|whence| name.as_str() == Some(*whence)));
    Ok(variables)
}

fn group_variables(fleet: &Fleet, group: GroupId) -> Result<Map> {
    Ok(merged(fleet.inventory.group_layers(group)?))
}

fn merged(layers: impl IntoIterator<Item = Arc<Map>>) -> Map {
    let mut variables = Map::new();
    for layer in layers {
        variables.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    variables
}

fn is_shown(fleet: &Fleet, host: HostId) -> bool {
    fleet.limit.as_ref().is_none_or(|limit| limit.contains(&host))
}

/// What a dynamic inventory would print, given to `write` in pieces. All files are read before the first one.
fn list(fleet: &Fleet, export: bool, write: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let inventory = &fleet.inventory;
    let mut hosts: Vec<(&str, HostId)> = Vec::new();
    for (id, host) in inventory.hosts().filter(|(id, _)| is_shown(fleet, *id)) {
        if !inventory.host_layers(id)?.is_empty() || !fleet.extra.is_empty() {
            hosts.push((&host.name, id));
        }
    }
    hosts.sort_unstable();
    let mut entries: Vec<(&str, Option<Value>)> = vec![("_meta", None)];
    for (id, group) in inventory.groups() {
        let mut entry = entry(fleet, id);
        let variables = if export { group_variables(fleet, id)? } else { Map::new() };
        if !variables.is_empty() {
            entry.insert("vars".into(), variables.into());
        }
        if !entry.is_empty() {
            entries.push((&group.name, Some(entry.into())));
        }
    }
    entries.sort_by_key(|(name, _)| *name);
    for (index, (name, entry)) in entries.iter().enumerate() {
        let mut text = if index == 0 { "{\n    " } else { ",\n    " }.to_owned();
        text.push_str(&Value::from(*name).to_json().to_string());
        text.push_str(": ");
        match entry {
            Some(entry) => report::write_pretty_value(entry, 1, &mut text),
            None => {
                text.push_str("{\n        \"hostvars\": {");
                let mut separator = "";
                for (name, host) in &hosts {
                    let variables = if export { own_variables(fleet, *host)? } else { variables(fleet, *host)? };
                    let variables = sealed_as_maps(&variables.into());
                    if variables.is_truthy() {
                        text.push_str(separator);
                        report::open_line(3, &mut text);
                        text.push_str(&Value::from(*name).to_json().to_string());
                        text.push_str(": ");
                        report::write_pretty_value(&variables, 3, &mut text);
                        write(&text)?;
                        text.clear();
                        separator = ",";
                    }
                }
                if !separator.is_empty() {
                    report::open_line(2, &mut text);
                }
                text.push_str("}\n    }");
            }
        }
        write(&text)?;
    }
    write("\n}\n")
}

/// The hosts and the children of a group.
fn entry(fleet: &Fleet, id: GroupId) -> Map {
    let inventory = &fleet.inventory;
    let group = inventory.group(id);
    let mut entry = Map::new();
    let shown = group.hosts.iter().filter(|host| is_shown(fleet, **host));
    let hosts: Vec<Value> = shown.map(|host| inventory.host(*host).name.as_ref().into()).collect();
    if !hosts.is_empty() && id != GroupId::ALL {
        entry.insert("hosts".into(), Value::list(hosts));
    }
    let children: Vec<Value> =
        group.children.iter().map(|child| inventory.group(*child).name.as_ref().into()).collect();
    if !children.is_empty() {
        entry.insert("children".into(), Value::list(children));
    }
    entry
}

/// The groups within each other; each host has its variables where it is met first.
fn tree(fleet: &Fleet, export: bool) -> Result<Value> {
    let mut seen = HashSet::new();
    let all = branch(fleet, GroupId::ALL, export, &mut seen)?;
    Ok(Map::from_iter([("all".into(), all.into())]).into())
}

fn branch(fleet: &Fleet, id: GroupId, export: bool, seen: &mut HashSet<HostId>) -> Result<Map> {
    let group = fleet.inventory.group(id);
    let mut children = Map::new();
    for child in &group.children {
        let below = branch(fleet, *child, export, seen)?;
        if !below.is_empty() {
            children.insert(fleet.inventory.group(*child).name.as_ref().into(), below.into());
        }
    }
    let mut hosts = Map::new();
    for host in group.hosts.iter().filter(|host| is_shown(fleet, **host)) {
        let variables = match (seen.insert(*host), export) {
            (false, _) => Map::new(),
            (true, true) => own_variables(fleet, *host)?,
            (true, false) => variables(fleet, *host)?,
        };
        hosts.insert(fleet.inventory.host(*host).name.as_ref().into(), variables.into());
    }
    let vars = if export { group_variables(fleet, id)? } else { Map::new() };
    let parts = [("children", children), ("hosts", hosts), ("vars", vars)];
    Ok(parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(name, part)| (name.into(), part.into())).collect())
}

fn graph(fleet: &Fleet, group: &str, with_vars: bool) -> Result<String> {
    let id = fleet.inventory.find_group(group).ok_or_else(|| {
        let names = fleet.inventory.groups().map(|(_, group)| group.name.as_ref());
        Error::usage(format!("there is no group `{group}`")).suggest(group, names)
    })?;
    let mut text = String::new();
    graph_branch(fleet, id, 0, with_vars, &mut text)?;
    Ok(text)
}

fn graph_branch(fleet: &Fleet, id: GroupId, depth: usize, with_vars: bool, text: &mut String) -> Result<()> {
    let indent = |depth: usize| {
        if depth == 0 { String::new() } else { format!("{}|--", "  |".repeat(depth)[..depth * 3 - 1].to_owned()) }
    };
    let group = fleet.inventory.group(id);
    text.push_str(&format!("{}@{}:\n", indent(depth), group.name));
    for child in &group.children {
        graph_branch(fleet, *child, depth + 1, with_vars, text)?;
    }
    for host in group.hosts.iter().filter(|host| is_shown(fleet, **host)) {
        text.push_str(&format!("{}{}\n", indent(depth + 1), fleet.inventory.host(*host).name));
        if with_vars {
            graph_variables(variables(fleet, *host)?, &indent(depth + 2), text);
        }
    }
    if with_vars {
        graph_variables(group_variables(fleet, id)?, &indent(depth + 1), text);
    }
    Ok(())
}

/// `{name = value}` on a line each, by name.
fn graph_variables(variables: Map, indent: &str, text: &mut String) {
    let mut lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("{indent}{{{} = {}}}\n", name.to_text(), value.to_text()))
        .collect();
    lines.sort();
    lines.iter().for_each(|line| text.push_str(line));
}
