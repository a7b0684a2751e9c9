//! Filters about YAML and JSON.

use num_bigint::BigInt;

use super::Filter;
use crate::source::Source;
use crate::template::call::{Call, check_defined, entry, plain, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::{Map, Value, float_repr};
use crate::yaml::{self, EmitOptions, Node};

pub static FILTERS: &[Filter] = &[
    entry(&["to_json"], &["value", "profile", "**options"], "as JSON", |call| to_json(call, None, false)),
    entry(
        &["to_nice_json"],
        &["value", "indent", "sort_keys", "**options"],
        "as JSON over several lines, keys in order",
        |call| {
            let indent = if call.optional(1).is_some_and(Value::is_null) { None } else { Some(call.int_or(1, 4)?) };
            to_json(call, indent, call.flag(2, true)?)
        },
    ),
    entry(&["tojson"], &["value", "indent"], "as JSON that is safe within HTML", tojson),
    entry(&["from_json"], &["value", "profile", "**options"], "the value of a JSON text", |call| {
        match call.value()? {
            Value::Str(text) => parse_json(text.as_str()),
            other => Err(TemplateError::failed(format!(
                "the JSON object must be str, bytes or bytearray, not {}",
                other.type_name()
            ))),
        }
    }),
    entry(&["to_yaml"], &["value", "**options"], "as YAML", |call| to_yaml(call, EmitOptions::to_yaml())),
    entry(&["to_nice_yaml"], &["value", "indent", "**options"], "as YAML over several lines", |call| {
        let mut options = EmitOptions::to_nice_yaml();
        if call.given(1).is_some() {
            options.indent = i32::try_from(call.required_int(1)?).ok();
        }
        to_yaml(call, options)
    }),
    entry(&["from_yaml"], &["value"], "the value of a YAML text", |call| match call.value()? {
        Value::Str(text) => {
            let node = yaml::load(&Source::new("<from_yaml>", text.as_str())).map_err(|error| refuse(&error))?;
            Ok(node.map_or(Value::Null, |node| node_value(&node)))
        }
        other => Ok(other.clone()),
    }),
    entry(&["from_yaml_all"], &["value"], "the values of a YAML text of several documents", |call| {
        match call.value()? {
            Value::Str(text) => {
                let nodes =
                    yaml::load_all(&Source::new("<from_yaml_all>", text.as_str())).map_err(|error| refuse(&error))?;
                let values = nodes.iter().map(|node| node.as_ref().map_or(Value::Null, node_value));
                Ok(Value::list(values.collect()))
            }
            Value::Null => Ok(Value::list(Vec::new())),
            other => Ok(other.clone()),
        }
    }),
    entry(&["json_query", "community.general.json_query"], &["value", "expr"], "what a JMESPath query finds", |call| {
        check_defined(call.value()?)?;
        crate::template::jmespath::search(&call.required_text(1)?, &plain(call.value()?)?)
    }),
];

fn refuse(error: &crate::error::Error) -> TemplateError {
    TemplateError::failed(error.to_string())
}

/// What comes out of a text is data, whatever it looks like.
fn node_value(node: &Node) -> Value {
    node.to_value().into_data()
}

fn option<'a>(call: &'a Call<'_>, name: &str) -> Option<&'a Value> {
    call.named.iter().find(|(known, _)| &**known == name).map(|(_, value)| value)
}

fn refuse_others(call: &Call<'_>, known: &[&str]) -> Result<()> {
    match call.named.iter().find(|(name, _)| !known.contains(&&**name)) {
        Some((name, _)) => Err(TemplateError::failed(format!("got an unexpected keyword argument '{name}'"))),
        None => Ok(()),
    }
}

fn to_yaml(call: &Call<'_>, mut options: EmitOptions) -> Result<Value> {
    // what came out of an envelope is written as that envelope unless its text is asked for
    let mut opens = false;
    for (name, value) in &call.named {
        let flag = value.is_truthy();
        let number = value.as_int().and_then(|number| i32::try_from(number).ok());
        match &**name {
            "indent" => options.indent = number,
            "width" => options.width = number.or(Some(i32::MAX)),
            "default_flow_style" => options.default_flow_style = value.as_bool(),
            "default_style" => options.default_style = value.as_str().and_then(|style| style.chars().next()),
            "sort_keys" => options.sort_keys = flag,
            "allow_unicode" => options.allow_unicode = flag,
            "explicit_start" => options.explicit_start = flag,
            "explicit_end" => options.explicit_end = flag,
            "canonical" => options.canonical = flag,
            // accepted by PyYAML, without meaning here
            "line_break" | "encoding" | "version" | "tags" | "vault_behavior" => {}
            "dump_vault_tags" => opens |= !flag,
            other => return Err(TemplateError::failed(format!("got an unexpected keyword argument '{other}'"))),
        }
    }
    check_defined(call.value()?)?;
    let value = plain(call.value()?)?;
    let value = if opens { value.without_envelopes() } else { value };
    Ok(Value::from(yaml::emit(&value, &options)))
}

/// JSON on one line without blanks.
pub fn to_compact_json(value: &Value) -> Result<String> {
    let layout = Layout {
        indent: None,
        sort_keys: false,
        ascii: true,
        item_separator: ",".to_owned(),
        key_separator: ":".to_owned(),
    };
    check_defined(value)?;
    let mut out = String::new();
    write_json(&plain(value)?, &layout, 0, &mut out)?;
    Ok(out)
}

/// How JSON is laid out; the defaults are those of Python's `json.dumps`.
struct Layout {
    indent: Option<usize>,
    sort_keys: bool,
    ascii: bool,
    item_separator: String,
    key_separator: String,
}

fn to_json(call: &Call<'_>, indent: Option<i64>, sort_keys: bool) -> Result<Value> {
    refuse_others(
        call,
        &[
            "indent",
            "sort_keys",
            "ensure_ascii",
            "separators",
            "skipkeys",
            "allow_nan",
            "check_circular",
            "preprocess_unsafe",
            "vault_to_text",
        ],
    )?;
    let flag = |name: &str, default: bool| option(call, name).map_or(default, Value::is_truthy);
    let indent = match option(call, "indent") {
        Some(indent) => indent.as_int(),
        None => indent,
    };
    let indent = indent.and_then(|indent| usize::try_from(indent).ok()).map(|indent| indent.min(100));
    let mut layout = Layout {
        indent,
        sort_keys: flag("sort_keys", sort_keys),
        ascii: flag("ensure_ascii", true),
        item_separator: if indent.is_some() { "," } else { ", " }.to_owned(),
        key_separator: ": ".to_owned(),
    };
    if call.name == "to_json"
        && let Some(Value::List(pair)) = option(call, "separators")
        && let [item, key] = pair.as_slice()
    {
        layout.item_separator = text_of(item)?.into_owned();
        layout.key_separator = text_of(key)?.into_owned();
    }
    check_defined(call.value()?)?;
    let mut out = String::new();
    write_json(&plain(call.value()?)?, &layout, 0, &mut out)?;
    Ok(Value::from(out))
}

fn tojson(call: &Call<'_>) -> Result<Value> {
    let indent = match call.given(1) {
        Some(_) => usize::try_from(call.required_int(1)?).ok(),
        None => None,
    };
    let item_separator = if indent.is_some() { "," } else { ", " }.to_owned();
    let layout = Layout { indent, sort_keys: true, ascii: true, item_separator, key_separator: ": ".to_owned() };
    check_defined(call.value()?)?;
    let mut out = String::new();
    write_json(&plain(call.value()?)?, &layout, 0, &mut out)?;
    let safe = [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\'', "\\u0027")];
    Ok(Value::from(safe.iter().fold(out, |text, (letter, code)| text.replace(*letter, code))))
}

fn write_json(value: &Value, layout: &Layout, depth: usize, out: &mut String) -> Result<()> {
    let open = |out: &mut String, depth: usize| {
        if let Some(indent) = layout.indent {
            out.push('\n');
            out.push_str(&" ".repeat(indent * depth));
        }
    };
    match value {
        Value::Null | Value::Undefined(_) => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Big(number) => out.push_str(&number.to_string()),
        Value::Float(number) if number.is_nan() => out.push_str("NaN"),
        Value::Float(number) if number.is_infinite() => {
            out.push_str(if *number > 0.0 { "Infinity" } else { "-Infinity" });
        }
        Value::Float(number) => out.push_str(&float_repr(*number)),
        Value::Str(text) => write_json_text(text.as_str(), layout.ascii, out),
        Value::Object(_) => write_json_text(&value.to_text(), layout.ascii, out),
        Value::List(items) if items.is_empty() => out.push_str("[]"),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(&layout.item_separator);
                }
                open(out, depth + 1);
                write_json(item, layout, depth + 1, out)?;
            }
            open(out, depth);
            out.push(']');
        }
        Value::Map(map) if map.is_empty() => out.push_str("{}"),
        Value::Map(map) => {
            let mut entries: Vec<(&Value, &Value)> = map.iter().collect();
            if layout.sort_keys {
                let keys = entries.iter().map(|(key, _)| (*key).clone()).collect();
                let sorted = super::sorted(keys, false)?;
                entries = sorted.iter().filter_map(|key| map.get_key_value(key)).collect();
            }
            out.push('{');
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push_str(&layout.item_separator);
                }
                open(out, depth + 1);
                write_json_text(&key.to_json_key(), layout.ascii, out);
                out.push_str(&layout.key_separator);
                write_json(item, layout, depth + 1, out)?;
            }
            open(out, depth);
            out.push('}');
        }
    }
    Ok(())
}

fn write_json_text(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            letter if u32::from(letter) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter if ascii && !letter.is_ascii() => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// Reads JSON as Python does: integers of any size, `NaN` and `Infinity` allowed.
pub fn parse_json(text: &str) -> Result<Value> {
    let json: serde_json::Value = match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => {
            return lenient_json(text).ok_or_else(|| TemplateError::failed(format!("the text is not JSON: {error}")));
        }
    };
    // serde_json reads integers beyond 64 bits as floats
    fn has_large(json: &serde_json::Value) -> bool {
        match json {
            serde_json::Value::Number(number) => {
                number.as_f64().is_some_and(|float| float.abs() >= 9e18 && !number.is_i64())
            }
            serde_json::Value::Array(items) => items.iter().any(has_large),
            serde_json::Value::Object(map) => map.values().any(has_large),
            _ => false,
        }
    }
    if has_large(&json)
        && let Some(value) = lenient_json(text)
    {
        return Ok(value);
    }
    Ok(Value::from_json(&json))
}

/// A reader for what serde_json does not take as Python does.
fn lenient_json(text: &str) -> Option<Value> {
    let mut reader = Reader { text, place: 0 };
    let value = reader.value(0)?;
    reader.blanks();
    (reader.place == text.len()).then_some(value)
}

struct Reader<'a> {
    text: &'a str,
    place: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.place..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.place += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, mark: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(mark);
        if found {
            self.place += mark.len();
        }
        found
    }

    fn string(&mut self) -> Option<String> {
        self.blanks();
        let rest = self.rest().strip_prefix('"')?;
        let mut escaped = false;
        let end = rest.find(|letter| {
            let closes = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            closes
        })?;
        let quoted = &self.text[self.place..self.place + end + 2];
        let text = serde_json::from_str(quoted).ok()?;
        self.place += end + 2;
        Some(text)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > 100 {
            return None;
        }
        let words = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        for (word, value) in words {
            if self.take(word) {
                return Some(value);
            }
        }
        if self.take("[") {
            let mut items = Vec::new();
            while !self.take("]") {
                if !items.is_empty() && !self.take(",") {
                    return None;
                }
                items.push(self.value(depth + 1)?);
            }
            return Some(Value::list(items));
        }
        if self.take("{") {
            let mut map = Map::new();
            while !self.take("}") {
                if !map.is_empty() && !self.take(",") {
                    return None;
                }
                let key = self.string()?;
                if !self.take(":") {
                    return None;
                }
                let value = self.value(depth + 1)?;
                map.insert(Value::from(key), value);
            }
            return Some(Value::map(map));
        }
        if self.rest().starts_with('"') {
            return self.string().map(Value::from);
        }
        let rest = self.rest();
        let end =
            rest.find(|letter: char| !(letter.is_ascii_digit() || "+-.eE".contains(letter))).unwrap_or(rest.len());
        let number = &rest[..end];
        let value = if number.contains(['.', 'e', 'E']) {
            Value::Float(number.parse().ok()?)
        } else {
            Value::big(number.parse::<BigInt>().ok()?)
        };
        self.place += end;
        Some(value)
    }
}
