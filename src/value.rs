//! What a variable holds: Python's values as Ansible knows them.
//!
//! Lists and maps are shared (`Arc`), so cloning a value is cheap; maps keep their order.
//! Integers are unbounded. A string knows whether it may hold template text (it came from a
//! playbook or an inventory) or is plain data (it came from a host, or out of a template),
//! so that the output of hosts is never templated.

mod merge;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};
use num_bigint::BigInt;
use num_traits::ToPrimitive;

pub use merge::merge_maps;
pub use text::{Text, has_template_marks};

/// An ordered map of values. Keys are values too: YAML allows integers and booleans as keys.
pub type Map = IndexMap<Value, Value>;

/// A value of a variable.
#[derive(Clone, Default)]
pub enum Value {
    /// No value, with the reason why (for the message of whoever touches it).
    Undefined(Arc<str>),
    /// Python's `None`.
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    /// An integer outside of `i64`; smaller ones are always [`Value::Int`].
    Big(Arc<BigInt>),
    Float(f64),
    Str(Text),
    List(Arc<Vec<Value>>),
    Map(Arc<Map>),
    /// A map whose entries are found when asked for (`hostvars`, `vars`).
    Object(Arc<dyn Object>),
}

/// A map whose entries are found when asked for.
pub trait Object: Send + Sync {
    /// The entry `key`; `None` if there is none.
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption>;
    /// The keys, in order.
    fn keys(&self) -> Vec<Value>;
    /// Asked before the keys are: interrupted while there may still come more.
    fn keys_are_settled(&self) -> Result<(), Interruption> {
        Ok(())
    }
    /// The object itself, for those who know its type (functions and loops within templates).
    fn as_any(&self) -> Option<&dyn std::any::Any> {
        None
    }
    /// How the object prints, if not as the map of its entries.
    fn describe(&self) -> Option<String> {
        None
    }
    /// All entries that can be had now.
    fn to_map(&self) -> Map {
        self.keys().into_iter().filter_map(|key| self.get(&key).ok().flatten().map(|value| (key, value))).collect()
    }
}

/// Why the value of a variable cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// An earlier task of this host, not yet done, will set it: ask again later.
    Pending,
    /// Other hosts may still set it: ask again when all have reached this task.
    Barrier,
    /// Check mode cannot know it; the reason says which task would have to run first.
    Unknown(String),
    /// It cannot be computed; the message says why.
    Failed(String),
}

impl Value {
    /// Text written by the user (playbook, inventory, command line), which may be a template.
    pub fn written(text: impl Into<Arc<str>>) -> Self {
        Value::Str(Text::written(text))
    }

    pub fn undefined(reason: impl Into<Arc<str>>) -> Self {
        Value::Undefined(reason.into())
    }

    pub fn list(items: Vec<Value>) -> Self {
        Value::List(Arc::new(items))
    }

    pub fn map(map: Map) -> Self {
        Value::Map(Arc::new(map))
    }

    pub fn empty_map() -> Self {
        Value::map(Map::new())
    }

    /// An integer of any size, in its smallest form.
    pub fn big(number: BigInt) -> Self {
        match number.to_i64() {
            Some(small) => Value::Int(small),
            None => Value::Big(Arc::new(number)),
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            Value::Bool(flag) => Some(i64::from(*flag)),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The entry `key` of a map, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map().and_then(|map| map.get(key))
    }

    /// Python's truth: empty, zero, `None`, `False` and undefined are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::Null => false,
            Value::Bool(flag) => *flag,
            Value::Int(number) => *number != 0,
            Value::Big(_) => true,
            Value::Float(number) => *number != 0.0,
            Value::Str(text) => text.spelled().map_or(!text.as_str().is_empty(), Value::is_truthy),
            Value::List(items) => !items.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Object(object) => !object.keys().is_empty(),
        }
    }

    /// The value itself; of a text that was made to spell a list or map, that.
    pub fn spelled(&self) -> &Value {
        match self {
            Value::Str(text) => text.spelled().unwrap_or(self),
            _ => self,
        }
    }

    /// Ansible's boolean (its `boolean()` filter and every `bool` argument): `yes`, `on`, `1`,
    /// `true`, `t`, `y` in any case and their opposites; `None` for anything else.
    pub fn to_ansible_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            Value::Float(number) if *number == 0.0 => Some(false),
            Value::Float(number) if *number == 1.0 => Some(true),
            Value::Str(text) => match text.as_str().trim().to_ascii_lowercase().as_str() {
                "yes" | "on" | "1" | "true" | "t" | "y" | "1.0" => Some(true),
                "no" | "off" | "0" | "false" | "f" | "n" | "0.0" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Python's name of the type: `str`, `int`, `dict`, …
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "AnsibleUndefined",
            Value::Null => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Big(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Map(_) | Value::Object(_) => "dict",
        }
    }

    /// True if a template may hide anywhere in this value.
    pub fn has_templates(&self) -> bool {
        match self {
            Value::Str(text) => text.is_template(),
            Value::List(items) => items.iter().any(Value::has_templates),
            Value::Map(map) => map.iter().any(|(key, value)| key.has_templates() || value.has_templates()),
            _ => false,
        }
    }

    /// The same value with every string marked as plain data; what is sealed stays so.
    pub fn into_data(self) -> Value {
        match self {
            Value::Str(text) => Value::Str(text.into_data()),
            Value::List(ref items) if self.has_templates() => {
                Value::list(items.iter().cloned().map(Value::into_data).collect())
            }
            Value::Map(ref map) if self.has_templates() => Value::map(
                map.iter().map(|(key, value)| (key.clone().into_data(), value.clone().into_data())).collect(),
            ),
            other => other,
        }
    }

    /// The same value with what came out of envelopes as any other text.
    pub fn without_envelopes(self) -> Value {
        match self {
            Value::Str(text) => Value::Str(text.without_envelope()),
            Value::List(items) => Value::list(items.iter().cloned().map(Value::without_envelopes).collect()),
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| (key.clone(), value.clone().without_envelopes()));
                Value::map(entries.collect())
            }
            other => other,
        }
    }

    /// Python's `str()`.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Value::Str(text) => Cow::Borrowed(text.as_str()),
            Value::Undefined(_) => Cow::Borrowed(""),
            other => Cow::Owned(other.to_repr()),
        }
    }

    /// Python's `repr()`.
    pub fn to_repr(&self) -> String {
        let mut out = String::new();
        self.write_repr(&mut out);
        out
    }

    fn write_repr(&self, out: &mut String) {
        match self {
            Value::Undefined(_) => out.push_str("AnsibleUndefined"),
            Value::Null => out.push_str("None"),
            Value::Bool(true) => out.push_str("True"),
            Value::Bool(false) => out.push_str("False"),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Big(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&float_repr(*number)),
            Value::Str(text) => write_string_repr(text.as_str(), out),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    item.write_repr(out);
                }
                out.push(']');
            }
            Value::Map(map) => {
                out.push('{');
                for (index, (key, value)) in map.iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    key.write_repr(out);
                    out.push_str(": ");
                    value.write_repr(out);
                }
                out.push('}');
            }
            Value::Object(object) => match object.describe() {
                Some(text) => out.push_str(&text),
                None => Value::map(object.to_map()).write_repr(out),
            },
        }
    }

    /// The value as JSON; undefined becomes `null`, keys become strings as Python's `json` does.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Value::Undefined(_) | Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Int(number) => Json::from(*number),
            Value::Big(number) => match number.to_f64() {
                Some(float) => serde_json::Number::from_f64(float).map_or(Json::Null, Json::Number),
                None => Json::Null,
            },
            Value::Float(number) => serde_json::Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Value::Str(text) => Json::String(text.as_str().to_owned()),
            Value::List(items) => Json::Array(items.iter().map(Value::to_json).collect()),
            Value::Map(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.to_json_key(), value.to_json())).collect())
            }
            Value::Object(object) => Value::map(object.to_map()).to_json(),
        }
    }

    /// The text that Python's `json` gives a map key.
    pub fn to_json_key(&self) -> String {
        match self {
            Value::Null => "null".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            other => other.to_text().into_owned(),
        }
    }

    /// A value from JSON; every string is plain data.
    pub fn from_json(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => {
                if let Some(int) = number.as_i64() {
                    Value::Int(int)
                } else if let Some(int) = number.as_u64() {
                    Value::big(BigInt::from(int))
                } else {
                    Value::Float(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::list(items.iter().map(Value::from_json).collect()),
            Json::Object(map) => Value::map(
                map.iter().map(|(key, value)| (Value::from(key.as_str()), Value::from_json(value))).collect(),
            ),
        }
    }
}

/// Python's `repr()` of a float: the shortest text that reads back, always with a point or exponent.
pub fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    let text = number.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

fn write_string_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || (0x7f..0xa0).contains(&(c as u32)) => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

impl fmt::Debug for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_repr())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_text())
    }
}

/// Equality is Python's: `1 == True == 1.0`; a template and plain data of the same text are equal.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::Null, Value::Null) => true,
            (Value::Str(left), Value::Str(right)) => left.as_str() == right.as_str(),
            (Value::List(left), Value::List(right)) => left == right,
            (Value::Map(left), Value::Map(right)) => left == right,
            (Value::Big(left), Value::Big(right)) => left == right,
            (Value::Float(left), Value::Float(right)) => left == right,
            (Value::Float(float), other) | (other, Value::Float(float)) => match other.as_int() {
                Some(int) => int as f64 == *float,
                None => matches!(other, Value::Big(big) if big.to_f64() == Some(*float)),
            },
            (left, right) => match (left.as_int(), right.as_int()) {
                (Some(left), Some(right)) => left == right,
                _ => false,
            },
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Undefined(_) | Value::Null => state.write_u8(0),
            Value::Bool(flag) => i64::from(*flag).hash(state),
            Value::Int(number) => number.hash(state),
            Value::Big(number) => number.hash(state),
            Value::Float(number) => {
                if number.fract() == 0.0 && number.abs() < 9e15 {
                    (*number as i64).hash(state);
                } else {
                    number.to_bits().hash(state);
                }
            }
            Value::Str(text) => text.as_str().hash(state),
            Value::List(items) => {
                for item in items.iter() {
                    item.hash(state);
                }
            }
            Value::Map(map) => map.len().hash(state),
            Value::Object(object) => object.keys().len().hash(state),
        }
    }
}

/// Lets `map.get("key")` work without building a value.
impl Equivalent<Value> for str {
    fn equivalent(&self, key: &Value) -> bool {
        key.as_str() == Some(self)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Str(Text::data(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Str(Text::data(text))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Value::Int(i64::from(number))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Int(i64::from(number))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::big(BigInt::from(number))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::from(number as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Float(number)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Value::list(items)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Value::map(map)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Builds a map of values: `object([("path", path.into()), ("mode", "0644".into())])`.
pub fn object<const N: usize>(entries: [(&str, Value); N]) -> Map {
    entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_and_hash_are_pythons() {
        let mut map = Map::new();
        map.insert(Value::Int(1), "one".into());
        map.insert("x".into(), Value::Null);
        assert_eq!(map.get(&Value::Bool(true)), Some(&"one".into()));
        assert_eq!(map.get(&Value::Float(1.0)), Some(&"one".into()));
        assert_eq!(map.get("x"), Some(&Value::Null));
        assert_ne!(Value::from("1"), Value::Int(1));
        assert_ne!(Value::Null, Value::Bool(false));
    }

    #[test]
    fn text_and_repr_are_pythons() {
        let cases: &[(Value, &str, &str)] = &[
            (Value::Null, "None", "None"),
            (true.into(), "True", "True"),
            (1.0.into(), "1.0", "1.0"),
            (1e16.into(), "1e+16", "1e+16"),
            (1.5e-7.into(), "1.5e-07", "1.5e-07"),
            ("it's".into(), "it's", "\"it's\""),
            ("a\n".into(), "a\n", "'a\\n'"),
            (Value::list(vec![1.into(), "a".into()]), "[1, 'a']", "[1, 'a']"),
            (object([("k", Value::Null)]).into(), "{'k': None}", "{'k': None}"),
        ];
        for (value, text, repr) in cases {
            assert_eq!(value.to_text(), *text);
            assert_eq!(value.to_repr(), *repr);
        }
    }

    #[test]
    fn only_written_text_is_a_template() {
        assert!(Value::written("{{ a }}").has_templates());
        assert!(!Value::written("plain").has_templates());
        assert!(!Value::from("{{ a }}").has_templates());
        assert!(!Value::written("{{ a }}").into_data().has_templates());
    }
}
