//! Writes YAML as PyYAML's dumper does (the filters `to_yaml` and `to_nice_yaml`).
//!
//! The emitter is the port of libyaml's; which scalars need quotes is decided by our own resolver, as
//! PyYAML's serializer does.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use libyaml_safer::{Emitter, Encoding, Event, MappingStyle, ScalarStyle, SequenceStyle};

use super::VAULT;
use super::events::silently;
use super::resolve::{self, Kind};
use crate::value::{Map, Value, float_repr};

/// How to write; the names and defaults are those of PyYAML's `dump`.
#[derive(Debug, Clone)]
pub struct EmitOptions {
    /// Spaces per level: 2 to 9, anything else means 2.
    pub indent: Option<i32>,
    /// The column that lines should not pass; 80 if not given.
    pub width: Option<i32>,
    /// Braces and brackets: always, never, or (`None`) for collections that hold only plain scalars.
    pub default_flow_style: Option<bool>,
    /// The style of all scalars: `'`, `"`, `|` or `>`; plain where possible if not given.
    pub default_style: Option<char>,
    pub sort_keys: bool,
    /// Letters outside of ASCII stand as themselves.
    pub allow_unicode: bool,
    /// Begin with `---`.
    pub explicit_start: bool,
    /// End with `...`.
    pub explicit_end: bool,
    /// Everything spelt out: tags, double quotes, one item a line.
    pub canonical: bool,
}

impl EmitOptions {
    /// The filter `to_yaml` without options.
    pub fn to_yaml() -> EmitOptions {
        EmitOptions {
            indent: None,
            width: None,
            default_flow_style: None,
            default_style: None,
            sort_keys: true,
            allow_unicode: true,
            explicit_start: false,
            explicit_end: false,
            canonical: false,
        }
    }

    /// The filter `to_nice_yaml` without options.
    pub fn to_nice_yaml() -> EmitOptions {
        EmitOptions { indent: Some(4), default_flow_style: Some(false), ..EmitOptions::to_yaml() }
    }
}

/// Writes `value` as one document.
pub fn emit(value: &Value, options: &EmitOptions) -> String {
    let mut writer =
        Writer { options, shared: HashMap::new(), next_anchor: 1, events: Vec::new(), stood_in_for: Vec::new() };
    writer.count_shared(value);
    writer.write(value);
    let events = writer.events;
    // every event is well formed, so the emitter has nothing to refuse
    let out = silently(AssertUnwindSafe(|| render(events, options))).ok().and_then(Result::ok).unwrap_or_default();
    put_back(&out, &writer.stood_in_for)
}

/// libyaml escapes what is beyond U+FFFF, its port does not. So such a character is emitted as a
/// stand-in that the emitter escapes and that is as wide, and put back afterwards.
const STAND_IN: &str = "\u{ffff}zqjx";
const STAND_IN_ESCAPED: &str = "\\uFFFFzqjx";

fn put_back(out: &str, characters: &[char]) -> String {
    let mut parts = out.split(STAND_IN_ESCAPED);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for (part, character) in parts.zip(characters) {
        whole.push_str(&format!("\\U{:08X}", *character as u32));
        whole.push_str(part);
    }
    whole
}

fn render(events: Vec<Event>, options: &EmitOptions) -> Result<String, libyaml_safer::Error> {
    let mut out = Vec::new();
    {
        let mut emitter = Emitter::new();
        emitter.set_output_string(&mut out);
        emitter.set_canonical(options.canonical);
        emitter.set_unicode(options.allow_unicode);
        if let Some(indent) = options.indent {
            emitter.set_indent(indent);
        }
        if let Some(width) = options.width {
            emitter.set_width(width);
        }
        emitter.emit(Event::stream_start(Encoding::Utf8))?;
        emitter.emit(Event::document_start(None, &[], !options.explicit_start))?;
        for event in events {
            emitter.emit(event)?;
        }
        emitter.emit(Event::document_end(!options.explicit_end))?;
        emitter.emit(Event::stream_end())?;
        emitter.flush()?;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

const CORE: &str = "tag:yaml.org,2002:";

/// A collection that is met more than once becomes an anchor and aliases, as in PyYAML.
#[derive(Default)]
struct Shared {
    times: usize,
    anchor: Option<String>,
}

struct Writer<'a> {
    options: &'a EmitOptions,
    shared: HashMap<usize, Shared>,
    next_anchor: usize,
    events: Vec<Event>,
    /// The characters behind each [`STAND_IN`], in order.
    stood_in_for: Vec<char>,
}

/// What PyYAML calls the identity of an object: the address of a shared list or map.
fn identity(value: &Value) -> Option<usize> {
    match value {
        Value::List(items) => Some(Arc::as_ptr(items) as usize),
        Value::Map(map) => Some(Arc::as_ptr(map) as usize),
        _ => None,
    }
}

impl Writer<'_> {
    fn count_shared(&mut self, value: &Value) {
        if let Some(id) = identity(value) {
            let shared = self.shared.entry(id).or_default();
            shared.times += 1;
            if shared.times > 1 {
                return;
            }
        }
        match value {
            Value::List(items) => items.iter().for_each(|item| self.count_shared(item)),
            Value::Map(map) => map.iter().for_each(|(key, value)| {
                self.count_shared(key);
                self.count_shared(value);
            }),
            _ => {}
        }
    }

    fn write(&mut self, value: &Value) {
        let mut anchor = None;
        if let Some(shared) = identity(value).and_then(|id| self.shared.get_mut(&id)).filter(|shared| shared.times > 1)
        {
            if let Some(name) = &shared.anchor {
                self.events.push(Event::alias(name));
                return;
            }
            anchor = Some(format!("id{:03}", self.next_anchor));
            shared.anchor.clone_from(&anchor);
            self.next_anchor += 1;
        }
        match value {
            Value::List(items) => self.sequence(items, anchor.as_deref()),
            Value::Map(map) => self.mapping(map, anchor.as_deref()),
            Value::Object(object) => self.mapping(&object.to_map(), None),
            scalar => self.scalar(scalar),
        }
    }

    fn sequence(&mut self, items: &[Value], anchor: Option<&str>) {
        let style = if self.is_flow(items.iter()) { SequenceStyle::Flow } else { SequenceStyle::Block };
        self.events.push(Event::sequence_start(anchor, Some("tag:yaml.org,2002:seq"), true, style));
        for item in items {
            self.write(item);
        }
        self.events.push(Event::sequence_end());
    }

    fn mapping(&mut self, map: &Map, anchor: Option<&str>) {
        let style = if self.is_flow(map.iter().flat_map(|(key, value)| [key, value])) {
            MappingStyle::Flow
        } else {
            MappingStyle::Block
        };
        self.events.push(Event::mapping_start(anchor, Some("tag:yaml.org,2002:map"), true, style));
        let mut entries: Vec<(&Value, &Value)> = map.iter().collect();
        if self.options.sort_keys {
            sort_as_python(&mut entries);
        }
        for (key, value) in entries {
            self.write(key);
            self.write(value);
        }
        self.events.push(Event::mapping_end());
    }

    /// PyYAML's choice: as told, else flow if everything inside is a plain scalar.
    fn is_flow<'v>(&self, mut inside: impl Iterator<Item = &'v Value>) -> bool {
        self.options.default_flow_style.unwrap_or_else(|| {
            self.options.default_style.is_none()
                && inside.all(|value| match value {
                    Value::List(_) | Value::Map(_) | Value::Object(_) => false,
                    Value::Str(text) => text.envelope().is_none(),
                    _ => true,
                })
        })
    }

    fn scalar(&mut self, value: &Value) {
        if let Value::Str(text) = value
            && let Some(envelope) = text.envelope()
        {
            self.events.push(Event::scalar(None, Some(VAULT), envelope, false, false, ScalarStyle::Literal));
            return;
        }
        let (tag, mut text) = represent(value);
        if self.options.allow_unicode && text.chars().any(|character| character > '\u{ffff}') && !text.contains("zqjx")
        {
            self.stood_in_for.extend(text.chars().filter(|character| *character > '\u{ffff}'));
            text = text.chars().fold(String::new(), |mut out, character| {
                match character {
                    '\u{10000}'.. => out.push_str(STAND_IN),
                    _ => out.push(character),
                }
                out
            });
        }
        let plain = detected_tag(&text) == tag;
        let style = match self.options.default_style {
            Some('\'') => ScalarStyle::SingleQuoted,
            Some('"') => ScalarStyle::DoubleQuoted,
            Some('|') => ScalarStyle::Literal,
            Some('>') if folds_wrongly(&text) => ScalarStyle::Literal,
            Some('>') => ScalarStyle::Folded,
            _ => ScalarStyle::Any,
        };
        let full = format!("{CORE}{tag}");
        self.events.push(Event::scalar(None, Some(&full), &text, plain, tag == "str", style));
    }
}

/// True for a text that the port of libyaml would write with a line end too few: behind a line end it looks
/// at the second character of the next line where libyaml looks at the first.
fn folds_wrongly(text: &str) -> bool {
    let is_break = |c: &char| matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let is_blank = |c: Option<char>| c.is_none_or(|c| matches!(c, ' ' | '\t') || is_break(&c));
    text.match_indices('\n').any(|(at, _)| {
        let mut next = text[at..].chars().skip_while(is_break);
        is_blank(next.next()) != is_blank(next.next())
    })
}

/// The tag (without its prefix) and the text that PyYAML gives a scalar.
fn represent(value: &Value) -> (&'static str, String) {
    match value {
        Value::Bool(flag) => ("bool", flag.to_string()),
        Value::Int(number) => ("int", number.to_string()),
        Value::Big(number) => ("int", number.to_string()),
        Value::Float(number) => ("float", float_text(*number)),
        Value::Str(text) => ("str", text.as_str().to_owned()),
        _ => ("null", "null".to_owned()),
    }
}

fn float_text(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf".to_owned() } else { "-.inf".to_owned() };
    }
    // YAML 1.1 wants a point, Python's repr leaves it out before an exponent
    let text = float_repr(number);
    if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
}

/// The tag that a reader would give the plain text.
fn detected_tag(text: &str) -> &'static str {
    match resolve::kind(text) {
        Kind::Str => "str",
        Kind::Null => "null",
        Kind::Bool(_) => "bool",
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Timestamp => "timestamp",
        Kind::Merge => "merge",
        Kind::Default => "value",
    }
}

/// Sorts by key if Python can compare all of them, else leaves the order as it is.
fn sort_as_python(entries: &mut [(&Value, &Value)]) {
    let comparable = |value: &Value| match value {
        Value::Str(_) => Some(false),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Big(_) => Some(true),
        _ => None,
    };
    let Some(first) = entries.first().and_then(|(key, _)| comparable(key)) else { return };
    if entries.iter().any(|(key, _)| comparable(key) != Some(first)) {
        return;
    }
    entries.sort_by(|(left, _), (right, _)| compare(left, right));
}

fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => left.as_str().cmp(right.as_str()),
        _ => match (integer(left), integer(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
        },
    }
}

fn integer(value: &Value) -> Option<num_bigint::BigInt> {
    match value {
        Value::Big(number) => Some(number.as_ref().clone()),
        other => other.as_int().map(num_bigint::BigInt::from),
    }
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        other => other.to_text().parse().unwrap_or_else(|_| other.as_int().unwrap_or_default() as f64),
    }
}
