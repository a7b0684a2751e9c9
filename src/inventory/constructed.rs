//! The inventory plugin `constructed`: variables and groups made of what the sources before it say.
//!
//! Source: <https://docs.ansible.com/ansible/latest/collections/ansible/builtin/constructed_inventory.html>

use std::sync::Arc;

use super::Inventory;
use super::builder::Builder;
use super::group::HostId;
use super::load::Loading;
use crate::error::{Error, Result, nearest};
use crate::source::Place;
use crate::template::{Context, Kind, Scope, TemplateError, check_syntax};
use crate::value::{Interruption, Map, Value};
use crate::yaml::Node;

const KEYS: &[&str] = &[
    "plugin",
    "strict",
    "compose",
    "groups",
    "keyed_groups",
    "leading_separator",
    "use_extra_vars",
    "use_vars_plugins",
];

/// Keys of Ansible that mean nothing here: there is no cache.
const IGNORED: &[&str] = &["cache", "cache_connection", "cache_plugin", "cache_prefix", "cache_timeout"];

const KEYED: &[&str] = &["key", "prefix", "separator", "parent_group", "default_value", "trailing_separator"];

/// The file, understood.
struct Plan {
    strict: bool,
    compose: Vec<Rule>,
    groups: Vec<Rule>,
    keyed: Vec<Keyed>,
    leading_separator: bool,
    use_extra_vars: bool,
    use_vars_plugins: bool,
}

/// A name with its expression.
struct Rule {
    name: String,
    expression: Value,
    place: Place,
}

/// An entry of `keyed_groups`.
struct Keyed {
    key: Value,
    prefix: String,
    separator: String,
    parent: Option<Value>,
    default_value: Option<String>,
    trailing_separator: bool,
    place: Place,
}

/// What a host comes to.
#[derive(Default)]
struct Constructed {
    variables: Vec<(String, Value)>,
    /// Groups, each with the parent it goes below.
    groups: Vec<(String, Option<String>, Place)>,
}

/// Reads the file `root` and adds what it makes of all hosts so far.
pub(super) fn read(root: &Node, loading: &mut Loading) -> Result<()> {
    let plan = plan(root, &mut loading.builder)?;
    let directories = if plan.use_vars_plugins { loading.directories.clone() } else { Vec::new() };
    let (hosts, groups, _) = loading.builder.clone().finish();
    let so_far = Inventory::new(hosts, groups, directories, &loading.keyring, Vec::new());
    if so_far.hosts().next().is_none() {
        let words =
            "`constructed` sees no host: sources are read in their order, files of a directory in that of their names";
        loading.builder.warnings.push(Error::input(words).at(&root.place));
    }
    for (id, _) in so_far.hosts() {
        let made = construct(&plan, &so_far, id, &loading.extra)?;
        for (name, value) in made.variables {
            loading.builder.set_host_var(id, name.into(), value);
        }
        for (name, parent, place) in made.groups {
            let group = loading.builder.add_group(&name, &place);
            loading.builder.join(id, group);
            if let Some(parent) = parent {
                let parent = loading.builder.add_group(&parent, &place);
                loading.builder.add_child(parent, group, &place)?;
            }
        }
    }
    Ok(())
}

fn construct(plan: &Plan, so_far: &Inventory, id: HostId, extra: &Arc<Map>) -> Result<Constructed> {
    let host = so_far.host(id);
    let mut made = Constructed::default();
    let mut scope = HostScope {
        layers: so_far.host_layers(id)?.into_iter().map(|(_, map)| map).collect(),
        extra: if plan.use_extra_vars { Arc::clone(extra) } else { Arc::default() },
    };
    let names = so_far.group_names(id).iter().map(|name| name.as_ref().into()).collect();
    scope.layers.push(Arc::new(Map::from_iter([
        ("inventory_hostname".into(), host.name.as_ref().into()),
        ("inventory_hostname_short".into(), host.short_name().into()),
        ("group_names".into(), Value::list(names)),
    ])));
    let before = scope.context();
    let failed = |what: String, place: &Place, error: TemplateError| {
        Error::input(format!("cannot {what} for the host `{}`: {error}", host.name))
            .at(place)
            .hint("without `strict: true` what cannot be evaluated is left out")
    };
    for rule in &plan.compose {
        match evaluate(&before, &rule.expression) {
            Ok(value) => made.variables.push((rule.name.clone(), value)),
            Err(error) if plan.strict => return Err(failed(format!("set `{}`", rule.name), &rule.place, error)),
            Err(_) => {}
        }
    }
    let own = made.variables.iter().map(|(name, value)| (name.as_str().into(), value.clone())).collect();
    scope.layers.push(Arc::new(own));
    let context = scope.context();
    for rule in &plan.groups {
        match context.condition(&rule.expression) {
            Ok(true) => made.groups.push((rule.name.clone(), None, rule.place.clone())),
            Ok(false) => {}
            Err(error) if plan.strict => {
                return Err(failed(format!("decide about the group `{}`", rule.name), &rule.place, error));
            }
            Err(_) => {}
        }
    }
    for keyed in &plan.keyed {
        let key = match evaluate(&context, &keyed.key) {
            Ok(key) => key,
            Err(error) if plan.strict => return Err(failed("make a keyed group".to_owned(), &keyed.place, error)),
            Err(_) => continue,
        };
        let names = keyed.names(&key, plan.leading_separator);
        if names.is_empty() && plan.strict && !matches!(key, Value::List(_) | Value::Map(_)) {
            let words = format!("the key of a keyed group is empty for the host `{}`", host.name);
            return Err(Error::input(words).at(&keyed.place).hint("give it a `default_value`"));
        }
        let parent = match keyed.parent.as_ref().map(|parent| context.value(parent)).transpose() {
            Ok(parent) => parent.filter(Value::is_truthy).map(|name| group_name(&name.to_text())),
            Err(error) if plan.strict => return Err(failed("name a parent group".to_owned(), &keyed.place, error)),
            Err(_) => continue,
        };
        made.groups.extend(names.into_iter().map(|name| (name, parent.clone(), keyed.place.clone())));
    }
    Ok(made)
}

/// An expression, or a value that is none, as data: a host's variable is not to be rendered twice.
fn evaluate(context: &Context, expression: &Value) -> Result<Value, TemplateError> {
    Ok(match expression.as_str() {
        Some(text) if !crate::value::has_template_marks(text) => context.expression(text)?,
        _ => context.value(expression)?,
    }
    .into_data())
}

impl Keyed {
    /// The groups that a key stands for.
    fn names(&self, key: &Value, leading_separator: bool) -> Vec<String> {
        let or_default = |text: &str| match &self.default_value {
            Some(default) if text.is_empty() => default.clone(),
            _ => text.to_owned(),
        };
        let bare: Vec<String> = match key {
            Value::List(items) => items.iter().map(|item| or_default(&item.to_text())).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(name, value)| {
                    let (name, value) = (name.to_text(), or_default(&value.to_text()));
                    if value.is_empty() && !self.trailing_separator {
                        return name.into_owned();
                    }
                    format!("{name}{}{value}", self.separator)
                })
                .collect(),
            key if key.is_truthy() || (key.as_str() == Some("") && self.default_value.is_some()) => {
                vec![or_default(&key.to_text())]
            }
            _ => Vec::new(),
        };
        let separator = if self.prefix.is_empty() && !leading_separator { "" } else { &self.separator };
        bare.iter().map(|bare| group_name(&format!("{}{separator}{bare}", self.prefix))).collect()
    }
}

/// A name that can be a variable's too: what is neither letter, digit nor `_` becomes `_`, a digit at the start as well.
fn group_name(text: &str) -> String {
    let safe = |(index, c): (usize, char)| {
        if c == '_' || c.is_alphabetic() || (index > 0 && c.is_alphanumeric()) { c } else { '_' }
    };
    text.chars().enumerate().map(safe).collect()
}

/// What a host's variables are, the highest precedence last; `-e` is above them.
#[derive(Clone)]
struct HostScope {
    layers: Vec<Arc<Map>>,
    extra: Arc<Map>,
}

impl HostScope {
    fn context(&self) -> Context {
        Context::new(Arc::new(self.clone()), Arc::default(), Default::default())
    }
}

impl Scope for HostScope {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        let layers = self.layers.iter().rev().find_map(|map| map.get(name));
        Ok(self.extra.get(name).or(layers).cloned())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for map in self.layers.iter().chain([&self.extra]) {
            names.extend(map.keys().map(|key| key.to_text().into_owned()));
        }
        names.sort();
        names.dedup();
        names
    }
}

fn plan(root: &Node, builder: &mut Builder) -> Result<Plan> {
    for (key, _) in root.as_mapping().unwrap_or_default() {
        let name = key.as_str().unwrap_or_default();
        if !KEYS.contains(&name) && !IGNORED.contains(&name) {
            let error = Error::input(format!("`constructed` has no key `{name}`"))
                .at(&key.place)
                .suggest(name, KEYS.iter().copied());
            if nearest(name, KEYS.iter().copied()).is_some() {
                return Err(error);
            }
            // Ansible skips such a key too
            builder.warnings.push(error);
        }
    }
    let mut keyed = Vec::new();
    if let Some((_, node)) = root.entry("keyed_groups").filter(|(_, node)| !node.is_null()) {
        let entries = node.as_sequence().ok_or_else(|| {
            Error::input(format!("`keyed_groups` must be a list, this is a {}", node.kind_name())).at(&node.place)
        })?;
        for entry in entries {
            keyed.push(keyed_group(entry, builder)?);
        }
    }
    Ok(Plan {
        strict: flag(root, "strict", false)?,
        compose: rules(root, "compose", builder)?,
        groups: rules(root, "groups", builder)?
            .into_iter()
            .map(|rule| Rule { name: group_name(&rule.name), ..rule })
            .collect(),
        keyed,
        leading_separator: flag(root, "leading_separator", true)?,
        use_extra_vars: flag(root, "use_extra_vars", false)?,
        use_vars_plugins: flag(root, "use_vars_plugins", false)?,
    })
}

fn flag(root: &Node, name: &str, default: bool) -> Result<bool> {
    match root.entry(name) {
        None => Ok(default),
        Some((_, node)) => node.to_value().to_ansible_bool().ok_or_else(|| {
            Error::input(format!("`{name}` must be `true` or `false`, this is a {}", node.kind_name())).at(&node.place)
        }),
    }
}

fn rules(root: &Node, name: &str, builder: &mut Builder) -> Result<Vec<Rule>> {
    let Some((_, node)) = root.entry(name).filter(|(_, node)| !node.is_null()) else { return Ok(Vec::new()) };
    let entries = node.as_mapping().ok_or_else(|| {
        Error::input(format!("`{name}` must be a mapping of names and expressions, this is a {}", node.kind_name()))
            .at(&node.place)
    })?;
    let rule = |(name, node): &(Node, Node)| Rule {
        name: name.value().map(|name| name.to_text().into_owned()).unwrap_or_default(),
        expression: expression(node, builder),
        place: node.place.clone(),
    };
    Ok(entries.iter().map(rule).collect())
}

/// The expression of a node; one that cannot be parsed is a warning, since Ansible leaves it out silently.
fn expression(node: &Node, builder: &mut Builder) -> Value {
    if let Some(text) = node.as_str()
        && let Err(error) = check_syntax(text, Kind::Expression)
    {
        builder.warnings.push(Error::input(format!("this expression is left out: {error}")).at(&node.place));
    }
    node.to_value()
}

fn keyed_group(entry: &Node, builder: &mut Builder) -> Result<Keyed> {
    let Some(parts) = entry.as_mapping() else {
        return Err(Error::input(format!(
            "an entry of `keyed_groups` must be a mapping, this is a {}",
            entry.kind_name()
        ))
        .at(&entry.place)
        .hint("it has a `key`, and perhaps a `prefix`"));
    };
    for (key, _) in parts {
        let name = key.as_str().unwrap_or_default();
        if !KEYED.contains(&name) {
            return Err(Error::input(format!("an entry of `keyed_groups` has no key `{name}`"))
                .at(&key.place)
                .suggest(name, KEYED.iter().copied()));
        }
    }
    let part = |name: &str| entry.entry(name).map(|(_, node)| node).filter(|node| !node.is_null());
    let text = |name: &str| part(name).map(|node| node.to_value().to_text().into_owned());
    let Some(key) = part("key") else {
        return Err(Error::input("an entry of `keyed_groups` needs a `key`").at(&entry.place));
    };
    let default_value = text("default_value");
    if default_value.is_some() && part("trailing_separator").is_some() {
        let words = "`default_value` and `trailing_separator` exclude each other";
        return Err(Error::input(words).at(&entry.place));
    }
    Ok(Keyed {
        key: expression(key, builder),
        prefix: text("prefix").unwrap_or_default(),
        separator: text("separator").unwrap_or_else(|| "_".to_owned()),
        parent: part("parent_group").map(Node::to_value),
        default_value,
        trailing_separator: flag(entry, "trailing_separator", true)?,
        place: entry.place.clone(),
    })
}
