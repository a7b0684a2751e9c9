//! Python's methods of texts, lists, dicts and numbers, where they change nothing.
//!
//! What changes a list or dict (`append`, `update`, …) is in the evaluator, which knows who else holds it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::Context;
use super::call::{Call, Entry, as_map, entry, iterate, text_of};
use super::error::{Result, TemplateError};
use super::eval::operators;
use super::python::str_format;
use crate::value::{Map, Value};

type Method = Entry<Value>;

static TEXT: &[Method] = &[
    entry(&["split"], &["value", "sep", "maxsplit"], "parts between separators, or words", |call| split(call, false)),
    entry(&["rsplit"], &["value", "sep", "maxsplit"], "as split, counted from the right", |call| split(call, true)),
    entry(&["splitlines"], &["value", "keepends"], "the lines", splitlines),
    entry(&["join"], &["value", "items"], "the items with the text between them", join),
    entry(&["strip"], &["value", "chars"], "without characters at both ends", |call| strip(call, true, true)),
    entry(&["lstrip"], &["value", "chars"], "without characters at the start", |call| strip(call, true, false)),
    entry(&["rstrip"], &["value", "chars"], "without characters at the end", |call| strip(call, false, true)),
    entry(&["replace"], &["value", "old", "new", "count"], "with each old text replaced", replace),
    entry(
        &["startswith"],
        &["value", "prefix", "start", "end"],
        "whether it begins with the text, or one of several",
        |call| ends(call, |text, part| text.starts_with(part)),
    ),
    entry(
        &["endswith"],
        &["value", "suffix", "start", "end"],
        "whether it ends with the text, or one of several",
        |call| ends(call, |text, part| text.ends_with(part)),
    ),
    entry(&["removeprefix"], &["value", "prefix"], "without the prefix", |call| {
        let (text, prefix) = (call.text()?, call.required_text(1)?);
        Ok(Value::from(text.strip_prefix(&*prefix).unwrap_or(&text)))
    }),
    entry(&["removesuffix"], &["value", "suffix"], "without the suffix", |call| {
        let (text, suffix) = (call.text()?, call.required_text(1)?);
        Ok(Value::from(text.strip_suffix(&*suffix).unwrap_or(&text)))
    }),
    entry(&["lower"], &["value"], "in lower case", |call| Ok(Value::from(call.text()?.to_lowercase()))),
    entry(&["casefold"], &["value"], "in lower case, for comparisons", |call| {
        Ok(Value::from(call.text()?.to_lowercase().replace('ß', "ss").replace('ς', "σ")))
    }),
    entry(&["upper"], &["value"], "in upper case", |call| Ok(Value::from(call.text()?.to_uppercase()))),
    entry(&["capitalize"], &["value"], "first letter large, others small", |call| {
        Ok(Value::from(capitalize(&call.text()?)))
    }),
    entry(&["title"], &["value"], "each word's first letter large", |call| Ok(Value::from(title(&call.text()?)))),
    entry(&["swapcase"], &["value"], "large and small letters exchanged", |call| {
        let swap = |letter: char| -> String {
            if letter.is_uppercase() { letter.to_lowercase().collect() } else { letter.to_uppercase().collect() }
        };
        Ok(Value::from(call.text()?.chars().map(swap).collect::<String>()))
    }),
    entry(&["find"], &["value", "sub", "start", "end"], "the place of a part, -1 if it is not there", |call| {
        find(call, false).map(Value::Int)
    }),
    entry(&["rfind"], &["value", "sub", "start", "end"], "the last place of a part, -1 if it is not there", |call| {
        find(call, true).map(Value::Int)
    }),
    entry(&["index"], &["value", "sub", "start", "end"], "the place of a part", |call| index(call, false)),
    entry(&["rindex"], &["value", "sub", "start", "end"], "the last place of a part", |call| index(call, true)),
    entry(&["count"], &["value", "sub"], "how often a part occurs", |call| {
        let (text, part) = (call.text()?, call.required_text(1)?);
        Ok(Value::from(if part.is_empty() { text.chars().count() + 1 } else { text.matches(&*part).count() }))
    }),
    entry(&["partition"], &["value", "sep"], "before, separator, after", |call| {
        let (text, sep) = (call.text()?, call.required_text(1)?);
        let (before, found, after) = match text.split_once(&*sep) {
            Some((before, after)) => (before, &*sep, after),
            None => (&*text, "", ""),
        };
        Ok(Value::list(vec![before.into(), found.into(), after.into()]))
    }),
    entry(&["rpartition"], &["value", "sep"], "before, last separator, after", |call| {
        let (text, sep) = (call.text()?, call.required_text(1)?);
        let (before, found, after) = match text.rsplit_once(&*sep) {
            Some((before, after)) => (before, &*sep, after),
            None => ("", "", &*text),
        };
        Ok(Value::list(vec![before.into(), found.into(), after.into()]))
    }),
    entry(&["format"], &["value", "*positional", "**named"], "the text with its {} filled", |call| {
        str_format(&call.text()?, &call.rest, &call.named).map(Value::from)
    }),
    entry(&["format_map"], &["value", "mapping"], "the text with its {} filled from a map", |call| {
        let named: Vec<(Arc<str>, Value)> = call
            .map(1)?
            .iter()
            .map(|(key, value)| Ok((Arc::from(text_of(key)?), value.clone())))
            .collect::<Result<_>>()?;
        str_format(&call.text()?, &[], &named).map(Value::from)
    }),
    entry(&["zfill"], &["value", "width"], "filled with zeros from the left", zfill),
    entry(&["ljust"], &["value", "width", "fill"], "filled at the right", |call| justify(call, 0, 1)),
    entry(&["rjust"], &["value", "width", "fill"], "filled at the left", |call| justify(call, 1, 0)),
    entry(&["center"], &["value", "width", "fill"], "filled at both sides", |call| justify(call, 1, 1)),
    entry(&["expandtabs"], &["value", "tabsize"], "with tabs as blanks", expandtabs),
    entry(&["translate"], &["value", "table"], "with characters exchanged by a map", translate),
    entry(&["encode"], &["value", "encoding", "errors"], "the same text", |call| Ok(call.value()?.clone())),
    entry(&["decode"], &["value", "encoding", "errors"], "the same text", |call| Ok(call.value()?.clone())),
    entry(&["isdigit"], &["value"], "only digits", |call| every(call, |letter| letter.is_numeric())),
    entry(&["isdecimal"], &["value"], "only decimal digits", |call| every(call, |letter| letter.is_ascii_digit())),
    entry(&["isnumeric"], &["value"], "only numeric characters", |call| every(call, char::is_numeric)),
    entry(&["isalpha"], &["value"], "only letters", |call| every(call, char::is_alphabetic)),
    entry(&["isalnum"], &["value"], "only letters and digits", |call| every(call, char::is_alphanumeric)),
    entry(&["isspace"], &["value"], "only blanks", |call| every(call, char::is_whitespace)),
    entry(&["isprintable"], &["value"], "no control characters", |call| {
        Ok(Value::Bool(!call.text()?.chars().any(char::is_control)))
    }),
    entry(&["isascii"], &["value"], "only ASCII", |call| Ok(Value::Bool(call.text()?.is_ascii()))),
    entry(&["islower"], &["value"], "has letters, all small", |call| {
        let text = call.text()?;
        Ok(Value::Bool(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)))
    }),
    entry(&["isupper"], &["value"], "has letters, all large", |call| {
        let text = call.text()?;
        Ok(Value::Bool(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)))
    }),
    entry(&["istitle"], &["value"], "each word begins large", |call| {
        let text = call.text()?;
        Ok(Value::Bool(text.chars().any(char::is_alphabetic) && title(&text) == *text))
    }),
    entry(&["isidentifier"], &["value"], "could be a name", |call| {
        let text = call.text()?;
        let mut letters = text.chars();
        let head = letters.next().is_some_and(|letter| letter == '_' || letter.is_alphabetic());
        Ok(Value::Bool(head && letters.all(|letter| letter == '_' || letter.is_alphanumeric())))
    }),
    entry(&["__len__"], &["value"], "how many characters", |call| Ok(Value::from(call.text()?.chars().count()))),
];

static LIST: &[Method] = &[
    entry(&["index"], &["value", "item", "start", "stop"], "the place of an item", |call| {
        let item = call.required(1)?;
        let items = call.list(0)?;
        let start = usize::try_from(call.int_or(2, 0)?).unwrap_or(0);
        for (place, candidate) in items.iter().enumerate().skip(start) {
            if operators::equal(candidate, item)? {
                return Ok(Value::from(place));
            }
        }
        Err(TemplateError::failed(format!("{} is not in list", item.to_repr())))
    }),
    entry(&["count"], &["value", "item"], "how often an item occurs", |call| {
        let item = call.required(1)?;
        let mut count = 0usize;
        for candidate in call.list(0)? {
            count += usize::from(operators::equal(candidate, item)?);
        }
        Ok(Value::from(count))
    }),
    entry(&["copy"], &["value"], "a list of the same items", |call| Ok(Value::list(call.list(0)?.to_vec()))),
    entry(&["__len__"], &["value"], "how many items", |call| Ok(Value::from(call.list(0)?.len()))),
    entry(
        &["append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort"],
        &["value", "*arguments"],
        "changes the list",
        |_| Err(TemplateError::failed("takes other arguments")),
    ),
];

static MAP: &[Method] = &[
    entry(&["keys", "iterkeys"], &["value"], "the keys", |call| {
        Ok(Value::list(call.map(0)?.keys().cloned().collect()))
    }),
    entry(&["values", "itervalues"], &["value"], "the values", |call| {
        Ok(Value::list(call.map(0)?.values().cloned().collect()))
    }),
    entry(&["items", "iteritems"], &["value"], "pairs of key and value", |call| {
        Ok(Value::list(call.map(0)?.iter().map(|(key, value)| Value::list(vec![key.clone(), value.clone()])).collect()))
    }),
    entry(&["get"], &["value", "key", "default"], "the value of a key, or the default", |call| {
        let map = call.map(0)?;
        Ok(map.get(call.required(1)?).or(call.optional(2)).cloned().unwrap_or_default())
    }),
    entry(&["copy"], &["value"], "a map of the same entries", |call| Ok(Value::map(call.map(0)?.into_owned()))),
    entry(&["has_key", "__contains__"], &["value", "key"], "whether there is the key", |call| {
        Ok(Value::Bool(call.map(0)?.contains_key(call.required(1)?)))
    }),
    entry(&["fromkeys"], &["value", "keys", "default"], "a map of these keys", |call| {
        let default = call.optional(2).cloned().unwrap_or_default();
        Ok(Value::map(iterate(call.required(1)?)?.into_iter().map(|key| (key, default.clone())).collect()))
    }),
    entry(&["__len__"], &["value"], "how many entries", |call| Ok(Value::from(call.map(0)?.len()))),
    entry(
        &["update", "setdefault", "pop", "popitem", "clear"],
        &["value", "*arguments", "**named"],
        "changes the map",
        |_| Err(TemplateError::failed("takes other arguments")),
    ),
];

static NUMBER: &[Method] = &[
    entry(&["bit_length"], &["value"], "how many bits the integer has", |call| {
        Ok(match call.value()? {
            Value::Big(number) => Value::from(number.bits()),
            other => {
                let magnitude = other.as_int().unwrap_or(0).unsigned_abs();
                Value::from(u64::from(u64::BITS - magnitude.leading_zeros()))
            }
        })
    }),
    entry(&["is_integer"], &["value"], "has no fraction", |call| {
        Ok(Value::Bool(match call.value()? {
            Value::Float(number) => number.fract() == 0.0,
            _ => true,
        }))
    }),
];

fn table(value: &Value) -> Option<&'static HashMap<&'static str, &'static Method>> {
    type Table = LazyLock<HashMap<&'static str, &'static Method>>;
    fn by_name(methods: &'static [Method]) -> HashMap<&'static str, &'static Method> {
        methods.iter().flat_map(|method| method.names.iter().map(move |name| (*name, method))).collect()
    }
    static TEXTS: Table = LazyLock::new(|| by_name(TEXT));
    static LISTS: Table = LazyLock::new(|| by_name(LIST));
    static MAPS: Table = LazyLock::new(|| by_name(MAP));
    static NUMBERS: Table = LazyLock::new(|| by_name(NUMBER));
    match value {
        Value::Str(_) => Some(&TEXTS),
        Value::List(_) => Some(&LISTS),
        Value::Map(_) => Some(&MAPS),
        Value::Object(object) if object.as_any().is_none() => Some(&MAPS),
        Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_) => Some(&NUMBERS),
        _ => None,
    }
}

/// The value whose method is meant: a text that spells a list or map has the methods of all three.
pub fn with_method<'v>(value: &'v Value, name: &str) -> &'v Value {
    if table(value).is_some_and(|table| table.contains_key(name)) { value } else { value.spelled() }
}

/// True if values of this type have the method.
pub fn exists(value: &Value, name: &str) -> bool {
    table(with_method(value, name)).is_some_and(|table| table.contains_key(name))
}

/// An attribute that is no method.
pub fn property(value: &Value, name: &str) -> Option<Value> {
    match (value, name) {
        (Value::Int(_) | Value::Big(_) | Value::Bool(_) | Value::Float(_), "real") => Some(value.clone()),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "numerator") => Some(value.clone()),
        (Value::Int(_) | Value::Big(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        // the pairs that `groupby` gives
        (Value::List(items), "grouper") if items.len() == 2 => items.first().cloned(),
        (Value::List(items), "list") if items.len() == 2 => items.get(1).cloned(),
        _ => None,
    }
}

pub fn call(
    context: &Context,
    receiver: &Value,
    name: &str,
    positional: Vec<Value>,
    named: Vec<(Arc<str>, Value)>,
) -> Result<Value> {
    let receiver = with_method(receiver, name);
    let Some(method) = table(receiver).and_then(|table| table.get(name)) else {
        return Err(match super::eval::missing_attribute(receiver, name) {
            Value::Undefined(reason) => TemplateError::undefined(&reason),
            _ => TemplateError::failed(format!("there is no method `{name}`")),
        });
    };
    let mut arguments = vec![receiver.clone()];
    arguments.extend(positional);
    method
        .call(context, arguments, named)
        .map_err(|error| super::eval::explain(error, &format!("`{}.{name}()`", receiver.type_name())))
}

fn split(call: &Call<'_>, from_right: bool) -> Result<Value> {
    let text = call.text()?;
    let limit = call.int_or(2, -1)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Value> = match call.given(1) {
        Some(separator) => {
            let separator = text_of(separator)?;
            if separator.is_empty() {
                return Err(TemplateError::failed("empty separator"));
            }
            if from_right {
                let mut parts: Vec<_> = text.rsplitn(limit.saturating_add(1), &*separator).map(Value::from).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(limit.saturating_add(1), &*separator).map(Value::from).collect()
            }
        }
        None => split_words(&text, limit, from_right).into_iter().map(Value::from).collect(),
    };
    Ok(Value::list(parts))
}

fn split_words(text: &str, limit: usize, from_right: bool) -> Vec<&str> {
    let mut words = Vec::new();
    if from_right {
        let mut rest = text.trim_end();
        while !rest.trim_start().is_empty() && words.len() < limit {
            match rest.rfind(char::is_whitespace) {
                Some(end) => {
                    let (before, word) = rest.split_at(end);
                    words.push(word.trim_start());
                    rest = before.trim_end();
                }
                None => {
                    words.push(rest);
                    rest = "";
                }
            }
        }
        if !rest.trim_start().is_empty() {
            words.push(rest);
        }
        words.reverse();
        return words;
    }
    let mut rest = text.trim();
    while !rest.is_empty() && words.len() < limit {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() {
        // Python keeps blanks at the very end of the last part
        let start = text.len() - (text.trim_start().len() - (text.trim().len() - rest.len()));
        words.push(text.get(start..).unwrap_or(rest));
    }
    words
}

fn splitlines(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let keep = call.flag(1, false)?;
    let mut lines = Vec::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = rest.find(['\n', '\r', '\x0b', '\x0c']).unwrap_or(rest.len());
        let mark = if rest[end..].starts_with("\r\n") { 2 } else { usize::from(end < rest.len()) };
        lines.push(Value::from(&rest[..if keep { end + mark } else { end }]));
        rest = &rest[end + mark..];
    }
    Ok(Value::list(lines))
}

fn join(call: &Call<'_>) -> Result<Value> {
    let mut parts = Vec::new();
    for (index, item) in iterate(call.required(1)?)?.iter().enumerate() {
        match item {
            Value::Str(text) => parts.push(text.as_str().to_owned()),
            Value::Undefined(reason) => return Err(TemplateError::undefined(reason)),
            other => {
                return Err(TemplateError::failed(format!(
                    "sequence item {index}: expected str instance, {} found",
                    other.type_name()
                )));
            }
        }
    }
    Ok(Value::from(parts.join(&call.text()?)))
}

fn strip(call: &Call<'_>, left: bool, right: bool) -> Result<Value> {
    let text = call.text()?;
    let set: Option<Vec<char>> = match call.given(1) {
        Some(set) => Some(text_of(set)?.chars().collect()),
        None => None,
    };
    let matches = |letter: char| match &set {
        Some(set) => set.contains(&letter),
        None => letter.is_whitespace(),
    };
    let mut out = &*text;
    if left {
        out = out.trim_start_matches(matches);
    }
    if right {
        out = out.trim_end_matches(matches);
    }
    Ok(Value::from(out))
}

fn replace(call: &Call<'_>) -> Result<Value> {
    let (text, old, new) = (call.text()?, call.required_text(1)?, call.required_text(2)?);
    Ok(Value::from(match usize::try_from(call.int_or(3, -1)?) {
        Ok(count) => text.replacen(&*old, &new, count),
        Err(_) => text.replace(&*old, &new),
    }))
}

fn ends(call: &Call<'_>, test: fn(&str, &str) -> bool) -> Result<Value> {
    let text = call.text()?;
    let length = text.chars().count();
    let bound = |index: usize, default: usize| -> Result<usize> {
        let Some(_) = call.given(index) else { return Ok(default) };
        let place = call.required_int(index)?;
        let place = if place < 0 { place.saturating_add(length as i64) } else { place };
        Ok(usize::try_from(place).unwrap_or(0).min(length))
    };
    let (start, end) = (bound(2, 0)?, bound(3, length)?);
    let text: String = text.chars().skip(start).take(end.saturating_sub(start)).collect();
    match call.required(1)? {
        Value::List(parts) => {
            for part in parts.iter() {
                if test(&text, &text_of(part)?) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        part => Ok(Value::Bool(test(&text, &text_of(part)?))),
    }
}

/// The place of a part in characters, within the part of the text that start and end choose.
fn find(call: &Call<'_>, last: bool) -> Result<i64> {
    let (text, part) = (call.text()?, call.required_text(1)?);
    let characters: Vec<char> = text.chars().collect();
    let bound = |index: usize| -> Result<Option<i64>> {
        match call.given(index) {
            Some(_) => call.required_int(index).map(Some),
            None => Ok(None),
        }
    };
    let length = characters.len() as i64;
    let clamp = |bound: i64| (if bound < 0 { bound + length } else { bound }).clamp(0, length) as usize;
    let start = clamp(bound(2)?.unwrap_or(0));
    let end = clamp(bound(3)?.unwrap_or(length)).max(start);
    let within: String = characters[start..end].iter().collect();
    let found = if last { within.rfind(&*part) } else { within.find(&*part) };
    Ok(found.map_or(-1, |place| (within[..place].chars().count() + start) as i64))
}

fn index(call: &Call<'_>, last: bool) -> Result<Value> {
    match find(call, last)? {
        -1 => Err(TemplateError::failed("substring not found")),
        place => Ok(Value::Int(place)),
    }
}

/// Python's `capitalize`.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().collect::<String>() + &letters.as_str().to_lowercase(),
        None => String::new(),
    }
}

/// Python's `str.title`: a letter after anything but a letter is large.
pub fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut within = false;
    for letter in text.chars() {
        if within {
            out.extend(letter.to_lowercase());
        } else {
            out.extend(letter.to_uppercase());
        }
        within = letter.is_alphabetic();
    }
    out
}

fn checked_width(call: &Call<'_>) -> Result<usize> {
    match usize::try_from(call.required_int(1)?.max(0)) {
        Ok(width) if width <= 100_000 => Ok(width),
        _ => Err(TemplateError::failed("the width is too large")),
    }
}

fn zfill(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let missing = checked_width(call)?.saturating_sub(text.chars().count());
    let zeros = "0".repeat(missing);
    Ok(Value::from(match text.chars().next() {
        Some(sign @ ('+' | '-')) => format!("{sign}{zeros}{}", &text[1..]),
        _ => format!("{zeros}{text}"),
    }))
}

fn justify(call: &Call<'_>, left: usize, right: usize) -> Result<Value> {
    let text = call.text()?;
    let fill = call.text_or(2, " ")?;
    if fill.chars().count() != 1 {
        return Err(TemplateError::failed("The fill character must be exactly one character long"));
    }
    let width = checked_width(call)?;
    let missing = width.saturating_sub(text.chars().count());
    let before = if left + right == 2 { missing / 2 + (missing & width & 1) } else { missing * left };
    Ok(Value::from(format!("{}{text}{}", fill.repeat(before), fill.repeat(missing - before))))
}

fn expandtabs(call: &Call<'_>) -> Result<Value> {
    let size = usize::try_from(call.int_or(1, 8)?).unwrap_or(0).min(1000);
    let mut out = String::new();
    let mut column = 0;
    for letter in call.text()?.chars() {
        match letter {
            '\t' if size > 0 => {
                let blanks = size - column % size;
                out.push_str(&" ".repeat(blanks));
                column += blanks;
            }
            '\t' => {}
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            other => {
                out.push(other);
                column += 1;
            }
        }
    }
    Ok(Value::from(out))
}

fn translate(call: &Call<'_>) -> Result<Value> {
    let table: Map = as_map(call.required(1)?)?.map(std::borrow::Cow::into_owned).unwrap_or_default();
    let mut out = String::new();
    for letter in call.text()?.chars() {
        let found =
            table.get(&Value::Int(i64::from(u32::from(letter)))).or_else(|| table.get(letter.to_string().as_str()));
        match found {
            None => out.push(letter),
            Some(Value::Null) => {}
            Some(Value::Int(code)) => out.extend(u32::try_from(*code).ok().and_then(char::from_u32)),
            Some(other) => out.push_str(&text_of(other)?),
        }
    }
    Ok(Value::from(out))
}

fn every(call: &Call<'_>, test: fn(char) -> bool) -> Result<Value> {
    let text = call.text()?;
    Ok(Value::Bool(!text.is_empty() && text.chars().all(test)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_python_does() {
        assert_eq!(split_words("  a b  c ", usize::MAX, false), ["a", "b", "c"]);
        assert_eq!(split_words(" a b  c ", 1, false), ["a", "b  c "]);
        assert_eq!(split_words(" a b  c ", 1, true), [" a b", "c"]);
        assert_eq!(title("they're bill's 1st"), "They'Re Bill'S 1St");
        assert_eq!(capitalize("éTE"), "Éte");
    }
}
