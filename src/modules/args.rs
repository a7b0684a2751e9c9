//! The arguments of modules: their table, validation as Ansible does it, and typed access.

use crate::error::nearest;
use crate::host::Failure;
use crate::value::{Map, Value};

use super::Module;

/// The name of the argument that stands for every name the table does not have (`set_fact`, `add_host`).
pub const ANY_NAME: &str = "*";

/// One argument of a module.
#[derive(Debug)]
pub struct Arg {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Type,
    pub required: bool,
    /// As it would be written in a playbook; `None`: not set.
    pub default: Option<&'static str>,
    /// The allowed values; empty: any.
    pub choices: &'static [&'static str],
    /// One line of help, with the unit where there is one.
    pub help: &'static str,
    /// Its value is never shown or logged.
    pub secret: bool,
    /// Not one argument but these, which several modules share; empty for any other.
    members: &'static [Arg],
}

/// What an argument holds, in Ansible's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Str,
    /// A path on the host (`~` stays for the host's shell).
    Path,
    Bool,
    Int,
    Float,
    /// A list of texts; a text is split at commas.
    List,
    /// A list of anything.
    RawList,
    Dict,
    /// Anything, as it is.
    Raw,
    /// A file mode: octal text, a number, or symbolic.
    Mode,
}

impl Type {
    /// The word in documentation and error messages.
    pub fn word(self) -> &'static str {
        match self {
            Type::Str => "str",
            Type::Path => "path",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Float => "float",
            Type::List | Type::RawList => "list",
            Type::Dict => "dict",
            Type::Raw | Type::Mode => "raw",
        }
    }
}

impl Arg {
    /// Stands in a module's table for arguments that it shares with others.
    pub const fn shared(members: &'static [Arg]) -> Arg {
        let mut group = Arg::new("", Type::Raw, "");
        group.members = members;
        group
    }

    /// The arguments that an entry of a table stands for.
    pub(super) fn members(&'static self) -> &'static [Arg] {
        if self.members.is_empty() { std::slice::from_ref(self) } else { self.members }
    }

    pub const fn new(name: &'static str, kind: Type, help: &'static str) -> Arg {
        Arg {
            name,
            aliases: &[],
            kind,
            required: false,
            default: None,
            choices: &[],
            help,
            secret: false,
            members: &[],
        }
    }

    #[must_use]
    pub const fn required(mut self) -> Arg {
        self.required = true;
        self
    }

    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Arg {
        self.aliases = aliases;
        self
    }

    #[must_use]
    pub const fn default(mut self, default: &'static str) -> Arg {
        self.default = Some(default);
        self
    }

    #[must_use]
    pub const fn choices(mut self, choices: &'static [&'static str]) -> Arg {
        self.choices = choices;
        self
    }

    #[must_use]
    pub const fn secret(mut self) -> Arg {
        self.secret = true;
        self
    }
}

/// A condition between arguments.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    MutuallyExclusive(&'static [&'static str]),
    RequiredTogether(&'static [&'static str]),
    RequiredOneOf(&'static [&'static str]),
    /// If the first argument has this value, all the others are required.
    RequiredIf(&'static str, &'static str, &'static [&'static str]),
    /// What is said if one of these required arguments is missing, for the modules that have their own words in Ansible.
    Missing(&'static [&'static str], &'static str),
}

/// Validated arguments by their own names, defaults filled in; what is not set is absent.
#[derive(Debug, Clone, Default)]
pub struct Args {
    map: Map,
}

impl Args {
    /// The value as it is.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.map.get(name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// An argument that its table says is required or has a default.
    pub fn text(&self, name: &str) -> &str {
        self.str(name).unwrap_or_default()
    }

    /// False if not set.
    pub fn bool(&self, name: &str) -> bool {
        self.optional_bool(name).unwrap_or(false)
    }

    pub fn optional_bool(&self, name: &str) -> Option<bool> {
        self.get(name).and_then(Value::as_bool)
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_int)
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Float(number) => Some(*number),
            other => other.as_int().map(|number| number as f64),
        }
    }

    /// The items of a list of texts; empty if not set.
    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name)
            .and_then(Value::as_list)
            .map(|items| items.iter().map(|item| item.to_text().into_owned()).collect())
            .unwrap_or_default()
    }

    /// The same, without these.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Args {
        let mut map = self.map.clone();
        map.retain(|name, _| !name.as_str().is_some_and(|name| names.contains(&name)));
        Args { map }
    }

    /// All that is set, in the order of the table; then what only [`ANY_NAME`] allows, as it was given.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// What only [`ANY_NAME`] allows: the arguments whose names the module's table `args` does not have.
    pub fn others(&self, args: &[Arg]) -> Map {
        let is_named = |name: &Value| args.iter().any(|arg| name.as_str() == Some(arg.name));
        self.map.iter().filter(|(name, _)| !is_named(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The first argument name that the module does not know, and the nearest that it does.
pub fn unknown_name<'a>(
    module: &'static Module,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, Option<&'static str>)> {
    names.into_iter().find(|name| module.arg(name).is_none()).map(|name| (name, nearest(name, module.arg_names())))
}

/// Actions of Ansible that call their arguments options.
const SAYING_OPTIONS: &[&str] = &["assert", "fail", "group_by", "reboot", "set_stats", "wait_for_connection"];

/// Validates rendered arguments against the module's table.
pub fn validate(module: &'static Module, given: &Map) -> Result<Args, Failure> {
    let short = module.bare_name();
    let names = given.keys().map(|key| key.to_text().into_owned()).collect::<Vec<_>>();
    if let Some((name, near)) = unknown_name(module, names.iter().map(String::as_str)) {
        if name == "_raw_params" {
            let text = given.get(name).map(|text| text.to_text().into_owned()).unwrap_or_default();
            return Err(Failure::new(format!("invalid or malformed argument: '{text}'")));
        }
        if SAYING_OPTIONS.contains(&short) {
            return Err(Failure::new(format!("Invalid options for {short}: {name}")));
        }
        let hint = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        let mut known: Vec<&str> = module.arguments().map(|arg| arg.name).collect();
        known.sort_unstable();
        return Err(Failure::new(format!(
            "Unsupported parameters for ({short}) module: {name}{hint}. Supported parameters include: {}.",
            known.join(", ")
        )));
    }
    let mut map = Map::new();
    let mut missing = Vec::new();
    for arg in module.arguments().filter(|arg| arg.name != ANY_NAME) {
        let value = std::iter::once(arg.name).chain(arg.aliases.iter().copied()).find_map(|name| given.get(name));
        match value.filter(|value| !value.is_null()) {
            Some(value) => {
                let value = convert(arg, value)?;
                map.insert(arg.name.into(), value);
            }
            None => match arg.default {
                Some(default) => {
                    map.insert(arg.name.into(), convert(arg, &Value::from(default))?);
                }
                None if arg.required => missing.push(arg.name),
                None => {}
            },
        }
    }
    let others = given.iter().filter(|(name, _)| module.arg(&name.to_text()).is_some_and(|arg| arg.name == ANY_NAME));
    map.extend(others.map(|(name, value)| (name.clone(), value.clone())));
    missing.sort_unstable();
    if !missing.is_empty() {
        let own_words = module.rules.iter().find_map(|rule| match rule {
            Rule::Missing(names, message) if missing.iter().any(|name| names.contains(name)) => Some(*message),
            _ => None,
        });
        if let Some(message) = own_words {
            return Err(Failure::new(message));
        }
        return Err(Failure::new(format!("missing required arguments: {}", missing.join(", "))));
    }
    check_rules(module, given, &map)?;
    Ok(Args { map })
}

fn check_rules(module: &'static Module, given: &Map, map: &Map) -> Result<(), Failure> {
    let is_given = |name: &&&str| {
        let arg = module.arg(name);
        let names = std::iter::once(**name).chain(arg.into_iter().flat_map(|arg| arg.aliases.iter().copied()));
        names.into_iter().any(|name| given.get(name).is_some_and(|value| !value.is_null()))
    };
    for rule in module.rules {
        match rule {
            Rule::MutuallyExclusive(names) if names.iter().filter(is_given).count() > 1 => {
                return Err(Failure::new(format!("parameters are mutually exclusive: {}", names.join("|"))));
            }
            Rule::RequiredTogether(names) => {
                let count = names.iter().filter(is_given).count();
                if count > 0 && count < names.len() {
                    return Err(Failure::new(format!("parameters are required together: {}", names.join(", "))));
                }
            }
            Rule::RequiredOneOf(names) if !names.iter().any(|name| is_given(&name)) => {
                return Err(Failure::new(format!("one of the following is required: {}", names.join(", "))));
            }
            Rule::RequiredIf(name, value, required) => {
                let applies = map.get(*name).is_some_and(|have| have.to_text().eq_ignore_ascii_case(value));
                let missing: Vec<&str> = required.iter().copied().filter(|name| !map.contains_key(*name)).collect();
                if applies && !missing.is_empty() {
                    return Err(Failure::new(format!(
                        "{name} is {value} but all of the following are missing: {}",
                        missing.join(", ")
                    )));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Brings a value to the argument's type, as Ansible does.
pub fn convert(arg: &Arg, value: &Value) -> Result<Value, Failure> {
    let refuse = |why: &str| {
        let shown = if arg.secret { "***".to_owned() } else { value.to_text().into_owned() };
        Failure::new(format!(
            "argument '{}' is of type {} and we were unable to convert to {}: {shown} {why}",
            arg.name,
            value.type_name(),
            arg.kind.word()
        ))
    };
    let converted = match arg.kind {
        Type::Raw | Type::Mode => value.clone(),
        Type::Str | Type::Path => match value {
            Value::Str(_) => value.clone(),
            other => Value::from(other.to_text().into_owned()),
        },
        Type::Bool => Value::Bool(value.to_ansible_bool().ok_or_else(|| {
            refuse("is not a valid boolean; valid booleans include: yes, no, true, false, on, off, 1, 0")
        })?),
        Type::Int => match value {
            Value::Int(_) | Value::Big(_) => value.clone(),
            Value::Float(number) if number.fract() == 0.0 => Value::Int(*number as i64),
            Value::Str(text) => {
                Value::Int(text.as_str().trim().parse().map_err(|_| refuse("cannot be converted to an int"))?)
            }
            _ => return Err(refuse("cannot be converted to an int")),
        },
        Type::Float => match value {
            Value::Float(_) | Value::Int(_) => value.clone(),
            Value::Str(text) => {
                Value::Float(text.as_str().trim().parse().map_err(|_| refuse("cannot be converted to a float"))?)
            }
            _ => return Err(refuse("cannot be converted to a float")),
        },
        Type::List | Type::RawList => match value.spelled() {
            list @ Value::List(_) => list.clone(),
            Value::Str(text) if arg.kind == Type::List => {
                let text = text.as_str();
                Value::list(if text.is_empty() {
                    Vec::new()
                } else {
                    text.split(',').map(|item| Value::from(item.trim())).collect()
                })
            }
            Value::Map(_) | Value::Object(_) if arg.kind == Type::List => {
                return Err(refuse("cannot be converted to a list"));
            }
            other => Value::list(vec![other.clone()]),
        },
        Type::Dict => match value.spelled() {
            map @ Value::Map(_) => map.clone(),
            Value::Str(text) => text_to_map(text.as_str()).ok_or_else(|| refuse("cannot be converted to a dict"))?,
            _ => return Err(refuse("cannot be converted to a dict")),
        },
    };
    check_choices(arg, &converted)?;
    Ok(converted)
}

/// JSON, or `key=value` pairs apart by commas or blanks.
fn text_to_map(text: &str) -> Option<Value> {
    let text = text.trim();
    if text.starts_with('{') {
        return serde_json::from_str(text).ok().map(|json| Value::from_json(&json));
    }
    text.split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').map(|(key, value)| (Value::from(key), Value::from(value))))
        .collect::<Option<Map>>()
        .filter(|map| !map.is_empty())
        .map(Value::map)
}

fn check_choices(arg: &Arg, value: &Value) -> Result<(), Failure> {
    if arg.choices.is_empty() {
        return Ok(());
    }
    let items = match value {
        Value::List(items) => items.to_vec(),
        single => vec![single.clone()],
    };
    match items.iter().find(|item| !arg.choices.contains(&item.to_text().as_ref())) {
        None => Ok(()),
        Some(wrong) => {
            let wrong = wrong.to_text();
            let hint = nearest(&wrong, arg.choices.iter().copied());
            let hint = hint.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            Err(Failure::new(format!(
                "value of {} must be one of: {}, got: {wrong}{hint}",
                arg.name,
                arg.choices.join(", ")
            )))
        }
    }
}
