//! Functions that every template has: `range()`, `lookup()`, `namespace()`, …

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock};

use super::call::{Call, Entry, as_map, entry, entry_for_undefined, iterate, text_of};
use super::error::{Result, TemplateError};
use super::eval::objects::{Cycler, Function, Namespace};
use super::{datetime, lookups};
use crate::value::{Map, Value};

pub type Global = Entry<Value>;

/// Longest range: beyond, a number was mistyped.
const RANGE_LIMIT: i64 = 10_000_000;

static GLOBALS: &[Global] = &[
    entry(&["range"], &["start", "stop", "step"], "integers from start up to stop, exclusive", range),
    entry(&["dict"], &["value", "**entries"], "a map of keyword arguments or pairs", dict),
    entry(&["namespace"], &["value", "**entries"], "an object whose attributes can be set within loops", namespace),
    entry(&["cycler"], &["*items"], "gives its items in turn with next()", cycler),
    entry(&["joiner"], &["separator"], "gives nothing first, then the separator", joiner),
    entry(&["lipsum"], &["n", "html", "min", "max"], "filler text of n paragraphs", lipsum),
    entry(&["now"], &["utc", "fmt"], "the present time, or its text in a strftime format", now),
    entry(&["undef"], &["hint"], "a value that is undefined, with a hint what to set", undef),
    entry_for_undefined(
        &["lookup"],
        &["plugin", "*terms", "**options"],
        "the result of a lookup, joined by commas",
        lookup,
    ),
    entry_for_undefined(&["query", "q"], &["plugin", "*terms", "**options"], "the result of a lookup as a list", query),
];

pub fn find(name: &str) -> Option<&'static Global> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Global>> = LazyLock::new(|| {
        GLOBALS.iter().flat_map(|global| global.names.iter().map(move |name| (*name, global))).collect()
    });
    BY_NAME.get(name).copied()
}

fn range(call: &Call<'_>) -> Result<Value> {
    let first = call.required_int(0)?;
    let (start, stop) = match call.optional(1) {
        Some(_) => (first, call.required_int(1)?),
        None => (0, first),
    };
    let step = call.int_or(2, 1)?;
    if step == 0 {
        return Err(TemplateError::failed("range() arg 3 must not be zero"));
    }
    let count = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    if count.max(0) / step.saturating_abs() > RANGE_LIMIT {
        return Err(TemplateError::failed("the range is too long"));
    }
    let mut items = Vec::new();
    let mut number = start;
    while (step > 0 && number < stop) || (step < 0 && number > stop) {
        items.push(Value::Int(number));
        number = number.saturating_add(step);
    }
    Ok(Value::list(items))
}

fn entries(call: &Call<'_>) -> Result<Map> {
    let mut map = Map::new();
    if let Some(value) = call.optional(0) {
        match as_map(value)? {
            Some(entries) => map.extend(entries.into_owned()),
            None => {
                for pair in iterate(value)? {
                    match <[Value; 2]>::try_from(iterate(&pair)?) {
                        Ok([key, value]) => map.insert(key, value),
                        Err(_) => return Err(TemplateError::failed("needs a map or pairs of key and value")),
                    };
                }
            }
        }
    }
    map.extend(call.named.iter().map(|(name, value)| (Value::from(&**name), value.clone())));
    Ok(map)
}

fn dict(call: &Call<'_>) -> Result<Value> {
    entries(call).map(Value::map)
}

fn namespace(call: &Call<'_>) -> Result<Value> {
    Ok(Value::Object(Arc::new(Namespace { entries: std::sync::Mutex::new(entries(call)?) })))
}

fn cycler(call: &Call<'_>) -> Result<Value> {
    if call.rest.is_empty() {
        return Err(TemplateError::failed("at least one item has to be provided"));
    }
    Ok(Function::Cycler(Arc::new(Cycler { items: call.rest.clone(), position: AtomicUsize::new(0) })).value())
}

fn joiner(call: &Call<'_>) -> Result<Value> {
    let separator = Arc::from(call.text_or(0, ", ")?);
    Ok(Function::Joiner { separator, used: Arc::default() }.value())
}

fn lipsum(call: &Call<'_>) -> Result<Value> {
    const WORDS: &[&str] =
        &["host", "queue", "core", "cache", "page", "frame", "link", "disk", "fleet", "tide", "keel"];
    let paragraphs = call.int_or(0, 5)?.clamp(0, 1000);
    let html = call.flag(1, true)?;
    let (least, most) = (call.int_or(2, 20)?.clamp(1, 10_000), call.int_or(3, 100)?.clamp(1, 10_000));
    let random = |below: usize| super::python::random_below(below as u64).map(|number| number as usize);
    let mut out = Vec::new();
    for _ in 0..paragraphs {
        // the most is exclusive, as with Python's randrange
        let count = least as usize + random((most - least).max(1) as usize)?;
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(WORDS[random(WORDS.len())?]);
        }
        let text = words.join(" ") + ".";
        out.push(if html { format!("<p>{text}</p>") } else { text });
    }
    Ok(Value::from(out.join(if html { "\n" } else { "\n\n" })))
}

fn now(call: &Call<'_>) -> Result<Value> {
    let moment = datetime::now(call.flag(0, false)?);
    match call.given(1) {
        Some(format) => datetime::format(&moment, &text_of(format)?).map(Value::from),
        None => Ok(moment.value()),
    }
}

fn undef(call: &Call<'_>) -> Result<Value> {
    Ok(match call.given(0) {
        Some(hint) => Value::undefined(text_of(hint)?.into_owned()),
        None => Value::undefined("Mandatory variable has not been overridden"),
    })
}

fn lookup_values(call: &Call<'_>) -> Result<(Option<Vec<Value>>, bool)> {
    let name = call.required_text(0)?.into_owned();
    let mut options = call.named.clone();
    let mut wants_list = false;
    options.retain(|(option, value)| {
        let is_wantlist = &**option == "wantlist";
        wants_list |= is_wantlist && value.is_truthy();
        !is_wantlist
    });
    lookups::call(call.context, &name, call.rest.clone(), options).map(|values| (values, wants_list))
}

fn lookup(call: &Call<'_>) -> Result<Value> {
    let mut values = match lookup_values(call)? {
        (values, true) => return Ok(Value::list(values.unwrap_or_default())),
        (None, false) => return Ok(Value::Null),
        (Some(values), false) => values,
    };
    Ok(match values.len() {
        1 => values.swap_remove(0),
        0 => Value::list(values),
        _ if values.iter().all(|value| matches!(value, Value::Str(_))) => {
            let texts: Vec<_> = values.iter().filter_map(Value::as_str).collect();
            Value::from(texts.join(","))
        }
        _ => Value::list(values),
    })
}

fn query(call: &Call<'_>) -> Result<Value> {
    lookup_values(call).map(|(values, _)| Value::list(values.unwrap_or_default()))
}
