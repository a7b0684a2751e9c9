//! Nodes from events: anchors, tags, merge keys, keys that stand twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;

use super::events::{DEEPEST, Data, Event, too_deep};
use super::resolve::{self, Kind};
use super::{Document, DuplicateKeys, Node, NodeKind, UNSAFE, VAULT};
use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::Value;

/// Nodes that aliases may add to a document; a bound against texts that grow without end.
const MOST_COPIES: usize = 500_000;

/// YAML's own tags begin so.
const CORE: &str = "tag:yaml.org,2002:";

/// All documents in the events of a source.
pub(super) fn documents(source: &Arc<Source>, events: Vec<Event>) -> Result<Vec<(Place, Document)>> {
    let mut composer = Composer {
        source,
        events: events.into_iter(),
        anchors: HashMap::new(),
        warnings: Vec::new(),
        depth: 0,
        unsafe_depth: 0,
        copies: 0,
    };
    let mut documents = Vec::new();
    while let Some(event) = composer.events.next() {
        if let Data::DocumentStart = event.data {
            let place = composer.place(&event);
            let root = composer.next_node()?;
            composer.anchors.clear();
            documents.push((place, Document { root, warnings: std::mem::take(&mut composer.warnings) }));
        }
    }
    Ok(documents)
}

enum Anchor {
    /// The node is not complete yet: an alias would stand inside its own anchor.
    Open(Place),
    Closed(Node),
}

struct Composer<'a> {
    source: &'a Arc<Source>,
    events: std::vec::IntoIter<Event>,
    anchors: HashMap<String, Anchor>,
    warnings: Vec<Error>,
    depth: usize,
    /// Greater than 0 inside of `!unsafe`: strings are data there.
    unsafe_depth: usize,
    copies: usize,
}

/// A node, or a key with a meaning of its own.
enum Composed {
    Node(Node),
    MergeKey,
}

/// What a tag asks for.
enum Tag {
    None,
    Unsafe,
    Vault,
    Core(String),
}

impl Composer<'_> {
    fn place(&self, event: &Event) -> Place {
        Place::new(self.source, event.line, event.column)
    }

    /// The next event; the parser always closes what it opens.
    fn next_event(&mut self) -> Result<Event> {
        let end = || Error::new(crate::error::Kind::Internal, "a YAML document ends too early");
        self.events.next().ok_or_else(|| end().at(&Place::start(self.source)))
    }

    /// The next node, or `None` at the end of what contains it.
    fn next_node(&mut self) -> Result<Option<Node>> {
        let event = self.next_event()?;
        if let Data::End | Data::DocumentEnd = event.data {
            return Ok(None);
        }
        match self.compose(event, false)? {
            Composed::Node(node) => Ok(Some(node)),
            Composed::MergeKey => Ok(None),
        }
    }

    fn compose(&mut self, event: Event, is_key: bool) -> Result<Composed> {
        let place = self.place(&event);
        let (anchor, tag) = match &event.data {
            Data::Alias(name) => return self.alias(name, place).map(Composed::Node),
            Data::Scalar { anchor, tag, .. }
            | Data::SequenceStart { anchor, tag }
            | Data::MappingStart { anchor, tag } => (anchor.clone(), self.tag(tag.as_deref(), &place)?),
            Data::DocumentStart | Data::DocumentEnd | Data::End => {
                return Err(Error::new(crate::error::Kind::Internal, "a YAML document ends too early").at(&place));
            }
        };
        if let Some(name) = &anchor {
            self.open_anchor(name, &place)?;
        }
        self.depth += 1;
        self.unsafe_depth += usize::from(matches!(tag, Tag::Unsafe));
        let is_sequence = matches!(event.data, Data::SequenceStart { .. });
        let kind = match event.data {
            Data::Scalar { text, plain, .. } => {
                // a tag of ours keeps the type that the text has by itself, as Ansible does
                let plain = plain || matches!(tag, Tag::Unsafe | Tag::Vault);
                match self.scalar(text, plain, &tag, is_key, &place)? {
                    Some(value) => NodeKind::Scalar(value),
                    None => {
                        self.depth -= 1;
                        return Ok(Composed::MergeKey);
                    }
                }
            }
            _ => {
                let found = if is_sequence { "seq" } else { "map" };
                self.check_collection_tag(&tag, found, &place)?;
                if is_sequence { self.sequence()? } else { self.mapping(&place)? }
            }
        };
        self.depth -= 1;
        self.unsafe_depth -= usize::from(matches!(tag, Tag::Unsafe));
        let tag = match tag {
            Tag::Unsafe => Some(Arc::from(UNSAFE)),
            Tag::Vault => Some(Arc::from(VAULT)),
            Tag::Core(_) | Tag::None => None,
        };
        let node = Node { place, tag, kind };
        if let Some(name) = anchor {
            self.anchors.insert(name, Anchor::Closed(node.clone()));
        }
        Ok(Composed::Node(node))
    }

    fn tag(&self, tag: Option<&str>, place: &Place) -> Result<Tag> {
        let known = ["!unsafe", "!vault", "!vault-encrypted"];
        match tag {
            None | Some("!") => Ok(Tag::None),
            Some(UNSAFE) => Ok(Tag::Unsafe),
            Some(VAULT | "!vault-encrypted") => Ok(Tag::Vault),
            Some(tag) => match tag.strip_prefix(CORE) {
                Some(name @ ("str" | "int" | "float" | "bool" | "null" | "binary" | "timestamp" | "seq" | "map")) => {
                    Ok(Tag::Core(name.to_owned()))
                }
                Some("python/unicode") => Ok(Tag::Core("str".to_owned())),
                Some("python/dict") => Ok(Tag::Core("map".to_owned())),
                Some(name) => Err(Error::parse(format!("the tag `!!{name}` cannot be used here")).at(place)),
                None => Err(Error::parse(format!("could not determine a constructor for the tag `{tag}`"))
                    .at(place)
                    .suggest(tag, known)
                    .hint("quote a value that is to start with an exclamation mark")),
            },
        }
    }

    fn check_collection_tag(&self, tag: &Tag, found: &str, place: &Place) -> Result<()> {
        let word = if found == "seq" { "a sequence" } else { "a mapping" };
        match tag {
            Tag::Core(name) if name != found => {
                Err(Error::parse(format!("the tag `!!{name}` does not fit {word}")).at(place))
            }
            Tag::Vault => Err(Error::parse(format!("the tag `{VAULT}` needs text, this is {word}")).at(place)),
            _ => Ok(()),
        }
    }

    fn open_anchor(&mut self, name: &str, place: &Place) -> Result<()> {
        match self.anchors.insert(name.to_owned(), Anchor::Open(place.clone())) {
            None => Ok(()),
            Some(Anchor::Open(first) | Anchor::Closed(Node { place: first, .. })) => {
                Err(Error::parse(format!("found duplicate anchor `{name}`"))
                    .at_label(place, "second occurrence")
                    .at_label(&first, "first occurrence"))
            }
        }
    }

    fn alias(&mut self, name: &str, place: Place) -> Result<Node> {
        let node = match self.anchors.get(name) {
            None => {
                return Err(Error::parse(format!("found undefined alias `*{name}`"))
                    .at(&place)
                    .suggest(name, self.anchors.keys().map(String::as_str))
                    .hint("quote a value that is to start with an asterisk"));
            }
            Some(Anchor::Open(open)) => {
                return Err(Error::parse(format!("the alias `*{name}` stands inside of its own anchor"))
                    .at(&place)
                    .at_label(open, "the anchor"));
            }
            Some(Anchor::Closed(node)) => node,
        };
        let (nodes, depth) = extent(node);
        if self.depth + depth > DEEPEST {
            return Err(too_deep(&place));
        }
        self.copies += nodes;
        if self.copies > MOST_COPIES {
            return Err(Error::parse(format!("aliases make this document too large (more than {MOST_COPIES} nodes)"))
                .at(&place));
        }
        let node = node.clone();
        Ok(if self.unsafe_depth > 0 { into_data(node) } else { node })
    }

    /// The value of a scalar; `None` for a merge key.
    fn scalar(&self, text: String, plain: bool, tag: &Tag, is_key: bool, place: &Place) -> Result<Option<Value>> {
        let at = |words: String| Error::parse(words).at(place);
        if let Tag::Core(name) = tag {
            let value = match name.as_str() {
                "str" => self.string(text),
                "int" => resolve::int(&text).map_err(at)?,
                "float" => resolve::float(&text).map_err(at)?,
                "bool" => match text.to_ascii_lowercase().as_str() {
                    "yes" | "true" | "on" => Value::Bool(true),
                    "no" | "false" | "off" => Value::Bool(false),
                    _ => return Err(at(format!("`{text}` is neither true nor false"))),
                },
                "null" => Value::Null,
                "timestamp" => Value::from(resolve::timestamp_text(&text).map_err(at)?),
                "binary" => binary(&text).map_err(at)?,
                name => return Err(at(format!("the tag `!!{name}` does not fit text"))),
            };
            return Ok(Some(value));
        }
        let kind = if plain { resolve::kind(&text) } else { Kind::Str };
        let value = match kind {
            Kind::Str => self.string(text),
            _ if matches!(tag, Tag::Vault) => return Err(at(format!("the tag `{VAULT}` needs text"))),
            Kind::Null => Value::Null,
            Kind::Bool(flag) => Value::Bool(flag),
            Kind::Int => resolve::int(&text).map_err(at)?,
            Kind::Float => resolve::float(&text).map_err(at)?,
            Kind::Timestamp => Value::from(
                resolve::timestamp_text(&text).map_err(|words| at(words).hint("quote it if it is to be text"))?,
            ),
            Kind::Merge if is_key && matches!(tag, Tag::None) => return Ok(None),
            Kind::Default if is_key => self.string(text),
            Kind::Merge | Kind::Default => {
                return Err(at(format!("`{text}` has a meaning of its own in YAML and cannot be a value"))
                    .hint(format!("quote it: \"{text}\"")));
            }
        };
        Ok(Some(value))
    }

    fn string(&self, text: String) -> Value {
        if self.unsafe_depth > 0 { Value::from(text) } else { Value::written(text) }
    }

    fn sequence(&mut self) -> Result<NodeKind> {
        let mut items = Vec::new();
        while let Some(node) = self.next_node()? {
            items.push(node);
        }
        Ok(NodeKind::Sequence(items))
    }

    fn mapping(&mut self, place: &Place) -> Result<NodeKind> {
        let mut own = Vec::new();
        let mut merged: Vec<(Node, Node)> = Vec::new();
        loop {
            let event = self.next_event()?;
            if let Data::End = event.data {
                break;
            }
            let key_place = self.place(&event);
            let key = self.compose(event, true)?;
            let event = self.next_event()?;
            let Composed::Node(value) = self.compose(event, false)? else {
                return Err(Error::new(crate::error::Kind::Internal, "a merge key stands as a value").at(&key_place));
            };
            match key {
                Composed::MergeKey => merged.extend(self.merge(value, place)?),
                Composed::Node(key) if matches!(key.kind, NodeKind::Scalar(_)) => own.push((key, value)),
                Composed::Node(key) => return Err(unhashable(&key, place)),
            }
        }
        self.judge_duplicates(&own)?;
        merged.append(&mut own);
        Ok(NodeKind::Mapping(last_of_each(merged)))
    }

    /// The entries that `<<: value` adds; of a list of mappings the earlier one wins.
    fn merge(&self, value: Node, mapping: &Place) -> Result<Vec<(Node, Node)>> {
        let wrong = |node: &Node, wanted: &str| {
            Error::parse(format!("expected {wanted} for merging, but found {}", node.kind_name()))
                .at(&node.place)
                .at_label(mapping, "while constructing this mapping")
        };
        match value.kind {
            NodeKind::Mapping(entries) => Ok(entries),
            NodeKind::Sequence(items) => {
                let mut entries = Vec::new();
                for item in items.into_iter().rev() {
                    match item.kind {
                        NodeKind::Mapping(more) => entries.extend(more),
                        _ => return Err(wrong(&item, "a mapping")),
                    }
                }
                Ok(entries)
            }
            NodeKind::Scalar(_) => Err(wrong(&value, "a mapping or a list of mappings")),
        }
    }

    fn judge_duplicates(&mut self, entries: &[(Node, Node)]) -> Result<()> {
        let judgement = super::duplicate_keys();
        if judgement == DuplicateKeys::Ignore {
            return Ok(());
        }
        let mut seen = HashMap::with_capacity(entries.len());
        for (key, _) in entries {
            let NodeKind::Scalar(value) = &key.kind else { continue };
            if let Some(first) = seen.insert(value, &key.place) {
                let words = format!("found a duplicate dict key ({})", value.to_text());
                let words = if judgement == DuplicateKeys::Warn { words + ": the last one is used" } else { words };
                let error = Error::parse(words).at(&key.place).at_label(first, "first occurrence");
                if judgement == DuplicateKeys::Error {
                    return Err(error);
                }
                self.warnings.push(error);
            }
        }
        Ok(())
    }
}

/// Drops all but the last entry of each key; an entry stays where its key first stood, as in Python.
fn last_of_each(entries: Vec<(Node, Node)>) -> Vec<(Node, Node)> {
    let distinct: HashSet<&Value> = entries.iter().filter_map(|(key, _)| key.value()).collect();
    if distinct.len() == entries.len() {
        return entries;
    }
    let mut places: HashMap<Value, usize> = HashMap::with_capacity(entries.len());
    let mut kept: Vec<(Node, Node)> = Vec::with_capacity(entries.len());
    for entry in entries {
        let key = entry.0.value().cloned().unwrap_or_default();
        match places.get(&key) {
            Some(&index) => kept[index] = entry,
            None => {
                places.insert(key, kept.len());
                kept.push(entry);
            }
        }
    }
    kept
}

/// A mapping or sequence as a key: nearly always a template that lacks its quotes.
fn unhashable(key: &Node, mapping: &Place) -> Error {
    let error = Error::parse(format!("not valid here: a {} as a key of a mapping", key.kind_name()));
    let is_template = mapping.column.checked_add(1) == Some(key.place.column) && mapping.line == key.place.line;
    if !is_template {
        return error.at(&key.place);
    }
    let line = mapping.source.line(mapping.line).unwrap_or_default();
    let rest: String = line.chars().skip(mapping.column as usize - 1).collect();
    let text = match rest.rfind("}}") {
        Some(end) => &rest[..end + 2],
        None => rest.trim_end(),
    };
    let quote = if text.contains('"') { '\'' } else { '"' };
    error.at(mapping).hint(format!("quote a value that starts with a template: {quote}{text}{quote}"))
}

/// The text of base64 data; Ansible's variables hold no bytes, so it has to be UTF-8.
fn binary(text: &str) -> Result<Value, String> {
    let packed: String = text.split_ascii_whitespace().collect();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(packed)
        .map_err(|error| format!("failed to decode base64 data: {error}"))?;
    // data that is no text is an error only where it is used
    let value = String::from_utf8(bytes).map(Value::from);
    Ok(value.unwrap_or_else(|_| Value::undefined("binary data that is no text cannot be the value of a variable")))
}

/// How many nodes a node consists of, and how deep they are nested.
fn extent(node: &Node) -> (usize, usize) {
    let sum = |(nodes, depth): (usize, usize), (more, below): (usize, usize)| (nodes + more, depth.max(below + 1));
    match &node.kind {
        NodeKind::Scalar(_) => (1, 0),
        NodeKind::Sequence(items) => items.iter().map(extent).fold((1, 1), sum),
        NodeKind::Mapping(entries) => {
            entries.iter().flat_map(|(key, value)| [extent(key), extent(value)]).fold((1, 1), sum)
        }
    }
}

/// The node with every string as data.
fn into_data(node: Node) -> Node {
    let kind = match node.kind {
        NodeKind::Scalar(value) => NodeKind::Scalar(value.into_data()),
        NodeKind::Sequence(items) => NodeKind::Sequence(items.into_iter().map(into_data).collect()),
        NodeKind::Mapping(entries) => {
            NodeKind::Mapping(entries.into_iter().map(|(key, value)| (into_data(key), into_data(value))).collect())
        }
    };
    Node { kind, ..node }
}
