//! Filters about any value: defaults, conversions, choices.

use num_bigint::BigInt;

use super::Filter;
use crate::template::call::{Call, check_defined_loosely, entry, entry_for_undefined, iterate, text_of};
use crate::template::error::{Result, TemplateError, TemplateErrorKind};
use crate::template::python::float_to_big;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry_for_undefined(
        &["default", "d"],
        &["value", "default_value", "boolean"],
        "another value where this one is undefined",
        default,
    ),
    entry_for_undefined(&["mandatory"], &["value", "msg"], "fails if the value is undefined", mandatory),
    entry_for_undefined(
        &["ternary"],
        &["value", "true_val", "false_val", "none_val"],
        "one of two values by the truth of this one",
        ternary,
    ),
    entry_for_undefined(&["type_debug"], &["value"], "the name of the value's type", type_debug),
    entry(&["bool"], &["value"], "true for yes, on, true and 1, else false", bool),
    entry(&["string"], &["value"], "the value as text", |call| Ok(Value::from(call.text()?.into_owned()))),
    entry(&["int"], &["value", "default", "base"], "the value as an integer, 0 if it is none", int),
    entry(&["float"], &["value", "default"], "the value as a float, 0.0 if it is none", float),
    entry(&["list"], &["value"], "the value as a list", |call| Ok(Value::list(iterate(call.value()?)?))),
    entry(&["attr"], &["value", "name"], "an attribute of the value", |call| {
        crate::template::eval::attribute_of(call.context, call.value()?, &call.required_text(1)?)
    }),
    entry(&["safe", "mark_safe"], &["value"], "the value itself: nothing is escaped", |call| Ok(call.value()?.clone())),
    entry(&["pprint"], &["value"], "the value as Python writes it", |call| {
        crate::template::call::check_defined(call.value()?)?;
        Ok(Value::from(crate::template::call::plain(call.value()?)?.to_repr()))
    }),
];

fn default(call: &Call<'_>) -> Result<Value> {
    let value = call.value()?;
    let replacement = || call.optional(1).cloned().unwrap_or_else(|| Value::from(""));
    match value {
        Value::Undefined(_) => Ok(replacement()),
        value if call.flag(2, false)? && !value.is_truthy() => Ok(replacement()),
        value => Ok(value.clone()),
    }
}

fn mandatory(call: &Call<'_>) -> Result<Value> {
    match call.value()? {
        Value::Undefined(reason) => {
            let undefined = TemplateError::undefined(reason);
            let name = match undefined.kind() {
                TemplateErrorKind::Undefined { name: Some(name) } => format!("'{name}' "),
                _ => String::new(),
            };
            let gap = if call.context.results.is_old() { " " } else { "" };
            let message = match call.given(1) {
                Some(message) => text_of(message)?.into_owned(),
                None => format!("Mandatory variable {name}{gap}not defined."),
            };
            Err(TemplateError::new(TemplateErrorKind::Mandatory, message))
        }
        value => Ok(value.clone()),
    }
}

fn ternary(call: &Call<'_>) -> Result<Value> {
    let value = call.value()?;
    check_defined_loosely(value)?;
    let chosen = match call.given(3) {
        Some(for_none) if value.is_null() => for_none,
        _ if value.is_truthy() => call.required(1)?,
        _ => call.required(2)?,
    };
    Ok(chosen.clone())
}

fn type_debug(call: &Call<'_>) -> Result<Value> {
    Ok(Value::from(match call.value()? {
        Value::Str(text) if call.context.results.is_old() => text.old_type_name().unwrap_or("str"),
        other => other.type_name(),
    }))
}

fn bool(call: &Call<'_>) -> Result<Value> {
    let value = call.value()?;
    // as Ansible gave it back
    if value.is_null() && call.context.results.is_old() {
        return Ok(Value::Null);
    }
    let known = match value {
        Value::Bool(flag) => Some(*flag),
        Value::Int(number @ (0 | 1)) => Some(*number == 1),
        Value::Float(number) if *number == 1.0 => Some(true),
        Value::Str(text) => match text.as_str().to_lowercase().as_str() {
            "yes" | "on" | "true" | "1" => Some(true),
            "no" | "off" | "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    };
    if known.is_none() {
        let what = crate::template::call::describe(value);
        call.context.warnings.add(format!("the `bool` filter takes the value {what} for false"));
    }
    Ok(Value::Bool(known.unwrap_or(false)))
}

fn int(call: &Call<'_>) -> Result<Value> {
    let fallback = || call.optional(1).cloned().unwrap_or(Value::Int(0));
    let base = u32::try_from(call.int_or(2, 10)?).unwrap_or(10);
    Ok(match call.value()? {
        Value::Int(_) | Value::Big(_) => call.value()?.clone(),
        Value::Bool(flag) => Value::Int(i64::from(*flag)),
        Value::Float(number) if number.is_finite() => Value::big(float_to_big(*number)),
        Value::Str(text) => match parse_int(text.as_str(), base) {
            Some(number) => Value::big(number),
            None => match text.as_str().trim().parse::<f64>() {
                Ok(number) if number.is_finite() && base == 10 => Value::big(float_to_big(number)),
                _ => fallback(),
            },
        },
        _ => fallback(),
    })
}

/// Python's `int(text, base)`.
pub fn parse_int(text: &str, base: u32) -> Option<BigInt> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let (digits, base) = match prefixes.iter().find(|(prefix, _)| lower.starts_with(prefix)) {
        Some((_, radix)) if base == *radix || base == 0 => (&lower[2..], *radix),
        _ => (lower.as_str(), if base == 0 { 10 } else { base }),
    };
    if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || !(2..=36).contains(&base) {
        return None;
    }
    let digits = digits.replace('_', "");
    if !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    let number = BigInt::parse_bytes(digits.as_bytes(), base)?;
    Some(if negative { -number } else { number })
}

fn float(call: &Call<'_>) -> Result<Value> {
    use num_traits::ToPrimitive;
    let fallback = || call.optional(1).cloned().unwrap_or(Value::Float(0.0));
    Ok(match call.value()? {
        Value::Float(number) => Value::Float(*number),
        Value::Big(number) => number.to_f64().map_or_else(fallback, Value::Float),
        Value::Str(text) => text.as_str().trim().parse().map(Value::Float).unwrap_or_else(|_| fallback()),
        other => other.as_int().map_or_else(fallback, |number| Value::Float(number as f64)),
    })
}
