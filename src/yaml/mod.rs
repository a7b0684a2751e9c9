//! YAML 1.1 as Ansible reads it (PyYAML over libyaml), with the place of every node.

mod compose;
mod emit;
mod events;
mod hints;
mod resolve;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

pub use emit::{EmitOptions, emit};

use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::{Map, Text, Value};

/// The tag of data that is never templated.
pub const UNSAFE: &str = "!unsafe";

/// The tag of a value encrypted with Ansible Vault.
pub const VAULT: &str = "!vault";

/// A node of a document and where it stands.
#[derive(Debug, Clone)]
pub struct Node {
    pub place: Place,
    /// An explicit tag of ours ([`VAULT`], [`UNSAFE`]), else `None`.
    pub tag: Option<Arc<str>>,
    pub kind: NodeKind,
}

#[derive(Debug, Clone)]
pub enum NodeKind {
    /// A scalar, resolved. Strings are [`Value::written`], so they may be templates.
    Scalar(Value),
    Sequence(Vec<Node>),
    /// Entries in order; merge keys are resolved, of equal keys the last stands.
    Mapping(Vec<(Node, Node)>),
}

/// A document and what is doubtful in it.
#[derive(Debug)]
pub struct Document {
    /// `None` if the document is empty.
    pub root: Option<Node>,
    /// Keys that stand twice, with both places.
    pub warnings: Vec<Error>,
}

/// What a key that stands twice in a mapping is (`duplicate_dict_key`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateKeys {
    Warn,
    Error,
    Ignore,
}

static DUPLICATE_KEYS: AtomicU8 = AtomicU8::new(DuplicateKeys::Warn as u8);

/// Sets for the whole process what keys that stand twice are.
pub fn set_duplicate_keys(judgement: DuplicateKeys) {
    DUPLICATE_KEYS.store(judgement as u8, Ordering::Relaxed);
}

fn duplicate_keys() -> DuplicateKeys {
    let all = [DuplicateKeys::Warn, DuplicateKeys::Error, DuplicateKeys::Ignore];
    let set = DUPLICATE_KEYS.load(Ordering::Relaxed);
    all.into_iter().find(|judgement| *judgement as u8 == set).unwrap_or(DuplicateKeys::Warn)
}

/// Reads the one document of a source; `None` if it is empty or null.
pub fn load(source: &Arc<Source>) -> Result<Option<Node>> {
    load_with_warnings(source).map(|document| document.root)
}

/// Reads the one document of a source, with warnings.
pub fn load_with_warnings(source: &Arc<Source>) -> Result<Document> {
    let mut documents = read(source)?.into_iter();
    let Some((first, document)) = documents.next() else {
        return Ok(Document { root: None, warnings: Vec::new() });
    };
    match documents.next() {
        None => Ok(Document { root: document.root.filter(|root| !root.is_null()), ..document }),
        Some((second, _)) => Err(Error::parse("expected a single document in the stream but found another document")
            .at_label(&second, "the second document")
            .at_label(&first, "the first document")
            .hint("put each document into a file of its own")),
    }
}

fn read(source: &Arc<Source>) -> Result<Vec<(Place, Document)>> {
    let documents = events::read(source).and_then(|events| compose::documents(source, events));
    if !source.is_secret {
        return documents;
    }
    let mut documents = documents.map_err(|error| discreet(&error))?;
    for (_, document) in &mut documents {
        document.warnings = document.warnings.iter().map(discreet).collect();
    }
    Ok(documents)
}

/// An error in a text that was encrypted: its place and its kind, without what it quotes.
fn discreet(error: &Error) -> Error {
    let mut message = String::new();
    let mut quoted = false;
    for letter in error.message().chars() {
        let closes = quoted && matches!(letter, '`' | ')');
        if !quoted || closes {
            message.push(letter);
        }
        if closes {
            quoted = false;
        } else if !quoted && matches!(letter, '`' | '(') {
            quoted = true;
            message.push('…');
        }
    }
    let places = error.places().iter();
    places.fold(Error::new(error.kind(), message), |error, (place, label)| error.at_label(place, label.as_str()))
}

/// Reads all documents of a source (the filter `from_yaml_all`); empty ones are null.
pub fn load_all(source: &Arc<Source>) -> Result<Vec<Option<Node>>> {
    let documents = read(source)?;
    Ok(documents.into_iter().map(|(_, document)| document.root).collect())
}

/// Reads a file of variables (`vars_files`, `group_vars`, …): YAML or JSON, a mapping or nothing.
pub fn load_vars(source: &Arc<Source>) -> Result<Map> {
    let text = source.text.trim_start_matches('\u{feff}');
    if text.starts_with("$ANSIBLE_VAULT;") {
        return Err(Error::input("this file is encrypted with Ansible Vault").at(&Place::start(source)));
    }
    // JSON that is no YAML (tabs) or means something else there (`1e3`)
    if text.trim_start().starts_with('{')
        && let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text)
    {
        let place = Place::start(source);
        return Ok(object
            .iter()
            .map(|(key, value)| (Value::written(key.as_str()), written_json(value, &place)))
            .collect());
    }
    match load(source)? {
        None => Ok(Map::new()),
        Some(root) if root.as_mapping().is_some() => Ok(root.to_map()),
        Some(root) => {
            Err(Error::input(format!("a file of variables must be a mapping, this is a {}", root.kind_name()))
                .at(&root.place)
                .hint("write each variable as `name: value`"))
        }
    }
}

/// The only key of a map that is an encrypted value in Ansible's JSON.
pub const JSON_VAULT: &str = "__ansible_vault";

/// A value from JSON that the user wrote, or a script of theirs: its strings may be templates, or encrypted.
pub fn written_json(json: &serde_json::Value, place: &Place) -> Value {
    match json {
        serde_json::Value::String(text) => Value::written(text.as_str()),
        serde_json::Value::Array(items) => Value::list(items.iter().map(|item| written_json(item, place)).collect()),
        serde_json::Value::Object(object) => match object.get(JSON_VAULT) {
            Some(serde_json::Value::String(envelope)) if object.len() == 1 => {
                Value::Str(Text::sealed(envelope.as_str(), place.to_string()))
            }
            _ => {
                let entries = object.iter();
                Value::map(
                    entries.map(|(key, value)| (Value::written(key.as_str()), written_json(value, place))).collect(),
                )
            }
        },
        other => Value::from_json(other),
    }
}

impl Node {
    /// The value without its places. What is encrypted is sealed: decrypted by whoever uses it.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(Value::Str(text)) if self.is_vault() => {
                Value::Str(Text::sealed(text.as_str(), self.place.to_string()))
            }
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::Sequence(items) => Value::list(items.iter().map(Node::to_value).collect()),
            NodeKind::Mapping(_) => Value::map(self.to_map()),
        }
    }

    /// The entries of a mapping without their places; empty for anything else.
    pub fn to_map(&self) -> Map {
        let entries = self.as_mapping().unwrap_or_default();
        entries.iter().filter_map(|(key, value)| Some((key.value()?.clone(), value.to_value()))).collect()
    }

    /// The entry of a mapping whose key is the text `key`: its key and its value.
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        self.as_mapping()?.iter().find(|(name, _)| name.as_str() == Some(key)).map(|(name, value)| (name, value))
    }

    /// The value of the entry `key` of a mapping.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// The value of a scalar.
    pub fn value(&self) -> Option<&Value> {
        match &self.kind {
            NodeKind::Scalar(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a scalar that is text.
    pub fn as_str(&self) -> Option<&str> {
        self.value().and_then(Value::as_str)
    }

    pub fn as_mapping(&self) -> Option<&[(Node, Node)]> {
        match &self.kind {
            NodeKind::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::Sequence(items) => Some(items),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.value().is_some_and(Value::is_null)
    }

    /// True if the value is encrypted with Ansible Vault; its text is the envelope then.
    pub fn is_vault(&self) -> bool {
        self.tag.as_deref() == Some(VAULT)
    }

    /// What it is, for messages: `mapping`, `sequence`, or the scalar's type.
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            NodeKind::Mapping(_) => "mapping",
            NodeKind::Sequence(_) => "sequence",
            NodeKind::Scalar(value) => match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Int(_) | Value::Big(_) => "integer",
                Value::Float(_) => "float",
                _ => "text",
            },
        }
    }
}

#[cfg(test)]
mod tests;
