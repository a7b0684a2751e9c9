//! `trimtab inventory`: shows hosts, groups and variables, as ansible-inventory does.

use std::collections::HashSet;

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
    /// Keep variables of groups with their groups, as one would write them; else hosts have them all
    #[arg(long)]
    pub export: bool,
    /// Write to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<String>,
    /// Stands for the playbook's directory (`group_vars` and `host_vars`)
    #[arg(long, value_name = "PATH")]
    pub playbook_dir: Option<String>,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Shows what was asked for.
pub fn show(session: &mut Session, args: ShowArgs) -> Result<u8> {
    if args.toml {
        return Err(super::not_yet("`--toml`"));
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
        format(&variables(&fleet, host, false)?.into(), args.yaml)
    } else if args.graph {
        graph(&fleet, args.group.as_deref().unwrap_or("all"))?
    } else if args.yaml {
        format(&tree(&fleet, args.export)?, true)
    } else {
        format(&list(&fleet, args.export)?, false)
    };
    match &args.output {
        Some(file) => {
            std::fs::write(file, text).map_err(|error| Error::system(format!("cannot write `{file}`: {error}")))?;
        }
        None => session.ui.raw(&text),
    }
    Ok(0)
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
        Value::List(items) => Value::list(items.iter().map(sealed_as_maps).collect()),
        Value::Map(map) => Value::map(map.iter().map(|(key, value)| (key.clone(), sealed_as_maps(value))).collect()),
        other => other.clone(),
    }
}

/// All variables of a host, unrendered, or (`own`) only its own; without those that only say where it comes from.
fn variables(fleet: &Fleet, host: HostId, own: bool) -> Result<Map> {
    let mut variables = Map::new();
    let is_own =
        |level: &Level| matches!(level, Level::InventoryHost | Level::InventoryHostVars | Level::PlaybookHostVars);
    for (_, layer) in fleet.inventory.host_layers(host)?.into_iter().filter(|(level, _)| !own || is_own(level)) {
        variables.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    for name in ["inventory_dir", "inventory_file"] {
        variables.shift_remove(name);
    }
    if !own {
        variables.extend(fleet.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    Ok(variables)
}

fn is_shown(fleet: &Fleet, host: HostId) -> bool {
    fleet.limit.as_ref().is_none_or(|limit| limit.contains(&host))
}

/// What a dynamic inventory would print.
fn list(fleet: &Fleet, export: bool) -> Result<Value> {
    let inventory = &fleet.inventory;
    let mut hostvars = Map::new();
    for (id, host) in inventory.hosts().filter(|(id, _)| is_shown(fleet, *id)) {
        let variables = variables(fleet, id, export)?;
        if !variables.is_empty() {
            hostvars.insert(host.name.as_ref().into(), variables.into());
        }
    }
    let mut all = Map::from_iter([("_meta".into(), Map::from_iter([("hostvars".into(), hostvars.into())]).into())]);
    for (id, group) in inventory.groups() {
        let mut entry = Map::new();
        let hosts: Vec<Value> = group
            .hosts
            .iter()
            .filter(|host| is_shown(fleet, **host))
            .map(|host| inventory.host(*host).name.as_ref().into())
            .collect();
        if !hosts.is_empty() && id != GroupId::ALL {
            entry.insert("hosts".into(), Value::list(hosts));
        }
        let children: Vec<Value> =
            group.children.iter().map(|child| inventory.group(*child).name.as_ref().into()).collect();
        if !children.is_empty() {
            entry.insert("children".into(), Value::list(children));
        }
        if export && !group.vars.is_empty() {
            entry.insert("vars".into(), Map::clone(&group.vars).into());
        }
        if !entry.is_empty() {
            all.insert(group.name.as_ref().into(), entry.into());
        }
    }
    Ok(all.into())
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
        let variables = if seen.insert(*host) { variables(fleet, *host, export)? } else { Map::new() };
        hosts.insert(fleet.inventory.host(*host).name.as_ref().into(), variables.into());
    }
    let vars = if export { Map::clone(&group.vars) } else { Map::new() };
    let parts = [("children", children), ("hosts", hosts), ("vars", vars)];
    Ok(parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(name, part)| (name.into(), part.into())).collect())
}

fn graph(fleet: &Fleet, group: &str) -> Result<String> {
    let id = fleet.inventory.find_group(group).ok_or_else(|| {
        let names = fleet.inventory.groups().map(|(_, group)| group.name.as_ref());
        Error::usage(format!("there is no group `{group}`")).suggest(group, names)
    })?;
    let mut text = String::new();
    graph_branch(fleet, id, 0, &mut text);
    Ok(text)
}

fn graph_branch(fleet: &Fleet, id: GroupId, depth: usize, text: &mut String) {
    let indent = |depth: usize| {
        if depth == 0 { String::new() } else { format!("{}|--", "  |".repeat(depth)[..depth * 3 - 1].to_owned()) }
    };
    let group = fleet.inventory.group(id);
    text.push_str(&format!("{}@{}:\n", indent(depth), group.name));
    for child in &group.children {
        graph_branch(fleet, *child, depth + 1, text);
    }
    for host in group.hosts.iter().filter(|host| is_shown(fleet, **host)) {
        text.push_str(&format!("{}{}\n", indent(depth + 1), fleet.inventory.host(*host).name));
    }
}
