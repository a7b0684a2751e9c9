//! Filters about sizes in bytes and bits.

use num_traits::ToPrimitive;

use super::Filter;
use crate::template::call::{Call, describe, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::python::float_to_big;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["human_readable"], &["value", "isbits", "unit"], "a size as people write it: 512.00 MB", human_readable),
    entry(
        &["human_to_bytes"],
        &["value", "default_unit", "isbits"],
        "a size that people write as a number",
        human_to_bytes,
    ),
    entry(&["filesizeformat"], &["value", "binary"], "a size with its unit: 1.5 MB or 1.4 MiB", filesizeformat),
];

/// Letters of the units, each 1024 times the one before.
const LETTERS: &str = "BKMGTPEZY";

fn size(value: &Value) -> Result<f64> {
    let number = match value {
        Value::Float(number) => Some(*number),
        Value::Big(number) => number.to_f64(),
        Value::Str(text) => text.as_str().trim().parse().ok(),
        other => other.as_int().map(|number| number as f64),
    };
    number.ok_or_else(|| TemplateError::failed(format!("{} is not a size", describe(value))))
}

fn human_readable(call: &Call<'_>) -> Result<Value> {
    let size = match call.value()? {
        Value::Str(_) => {
            return Err(TemplateError::failed("human_readable() failed on bad input: the size must be a number"));
        }
        other => size(other)?,
    };
    let bits = call.flag(1, false)?;
    let wanted = match call.given(2) {
        Some(unit) => text_of(unit)?.chars().next().map(|letter| letter.to_ascii_uppercase()),
        None => None,
    };
    let chosen = LETTERS.char_indices().rev().find(|(power, letter)| match wanted {
        Some(wanted) => *letter == wanted,
        None => size >= 1024f64.powi(*power as i32),
    });
    let (power, letter) = chosen.unwrap_or((0, 'B'));
    let suffix = match (power, bits) {
        (0, false) => "Bytes".to_owned(),
        (0, true) => "bits".to_owned(),
        (_, false) => format!("{letter}B"),
        (_, true) => format!("{letter}b"),
    };
    Ok(Value::from(format!("{:.2} {suffix}", size / 1024f64.powi(power as i32))))
}

fn human_to_bytes(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let text = text.trim();
    let bits = call.flag(2, false)?;
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let number: f64 = text[..end]
        .parse()
        .map_err(|_| TemplateError::failed(format!("human_to_bytes() can't interpret the input `{text}`")))?;
    let mut unit = text[end..].trim().to_owned();
    if unit.is_empty()
        && let Some(default) = call.given(1)
    {
        unit = text_of(default)?.into_owned();
    }
    if unit.is_empty() {
        return Ok(Value::big(float_to_big(number.round_ties_even())));
    }
    let refuse = || TemplateError::failed(format!("human_to_bytes() can't interpret the unit `{unit}` of `{text}`"));
    let first = unit.chars().next().map(|letter| letter.to_ascii_uppercase()).unwrap_or(' ');
    let power = LETTERS.find(first).ok_or_else(refuse)?;
    let (class, name) = if bits { ('b', "bit") } else { ('B', "byte") };
    let lower = unit.to_ascii_lowercase();
    let whole_word = lower == name || lower == format!("{name}s");
    if unit.chars().count() == 2 && !whole_word && unit.chars().nth(1) != Some(class) {
        return Err(refuse());
    }
    if unit.chars().count() > 2 && !whole_word {
        let rest = &lower[1..];
        if rest != name && rest != format!("{name}s") && !is_long_name(&lower, name) {
            return Err(refuse());
        }
    }
    let power = if whole_word { 0 } else { power as i32 };
    Ok(Value::big(float_to_big((number * 1024f64.powi(power)).round_ties_even())))
}

/// `kilobytes`, `megabit`, …
fn is_long_name(unit: &str, name: &str) -> bool {
    let prefixes = ["kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"];
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    prefixes.iter().any(|prefix| singular == format!("{prefix}{name}"))
}

fn filesizeformat(call: &Call<'_>) -> Result<Value> {
    let size = size(call.value()?)?;
    let binary = call.flag(1, false)?;
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if size == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if size < base {
        return Ok(Value::from(format!("{} Bytes", size.trunc())));
    }
    let mut power = 1;
    while power < 8 && size >= base.powi(power + 1) {
        power += 1;
    }
    let letter = ["k", "M", "G", "T", "P", "E", "Z", "Y"][power as usize - 1];
    let unit = if binary { format!("{}iB", letter.to_uppercase()) } else { format!("{letter}B") };
    Ok(Value::from(format!("{:.1} {unit}", size / base.powi(power))))
}
