//! Filters about numbers.

use num_traits::{Signed, ToPrimitive};

use super::Filter;
use crate::template::call::{Call, describe, entry};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["abs"], &["value"], "without its sign", abs),
    entry(&["round"], &["value", "precision", "method"], "rounded: common, ceil or floor", round),
    entry(&["log"], &["value", "base"], "the logarithm", |call| {
        let (x, base) =
            (number(call, 0)?, if call.given(1).is_some() { number(call, 1)? } else { std::f64::consts::E });
        if x <= 0.0 || base <= 0.0 {
            return Err(TemplateError::failed("math domain error"));
        }
        Ok(Value::Float(if base == 10.0 {
            x.log10()
        } else if base == std::f64::consts::E {
            x.ln()
        } else {
            x.ln() / base.ln()
        }))
    }),
    entry(&["pow"], &["value", "exponent"], "to a power", |call| {
        Ok(Value::Float(number(call, 0)?.powf(number(call, 1)?)))
    }),
    entry(&["root"], &["value", "base"], "the square (or other) root", |call| {
        let (x, base) = (number(call, 0)?, if call.given(1).is_some() { number(call, 1)? } else { 2.0 });
        if x < 0.0 || base == 0.0 {
            return Err(TemplateError::failed("root() can only be used on numbers"));
        }
        Ok(Value::Float(if base == 2.0 { x.sqrt() } else { x.powf(1.0 / base) }))
    }),
];

fn number(call: &Call<'_>, index: usize) -> Result<f64> {
    let value = call.required(index)?;
    let number = match value {
        Value::Float(number) => Some(*number),
        Value::Big(number) => number.to_f64(),
        other => other.as_int().map(|number| number as f64),
    };
    number.ok_or_else(|| TemplateError::failed(format!("can only be used on numbers, not {}", describe(value))))
}

fn abs(call: &Call<'_>) -> Result<Value> {
    match call.value()? {
        Value::Float(number) => Ok(Value::Float(number.abs())),
        Value::Big(number) => Ok(Value::big(number.abs())),
        other => match other.as_int() {
            Some(number) => Ok(Value::big(num_bigint::BigInt::from(number).abs())),
            None => Err(TemplateError::failed(format!("bad operand type for abs(): '{}'", other.type_name()))),
        },
    }
}

/// Python's rounding: halves go to the even neighbour.
pub fn round_half_even(number: f64, precision: i32) -> f64 {
    if !number.is_finite() {
        return number;
    }
    if precision >= 0 {
        // decimal text rounds the exact binary value, as Python does
        return format!("{number:.*}", precision.min(300) as usize).parse().unwrap_or(number);
    }
    let factor = 10f64.powi(-precision.max(-300));
    (number / factor).round_ties_even() * factor
}

fn round(call: &Call<'_>) -> Result<Value> {
    let precision = call.int_or(1, 0)?.clamp(-300, 300) as i32;
    let method = call.text_or(2, "common")?;
    let value = number(call, 0)?;
    let factor = 10f64.powi(precision);
    let rounded = match &*method {
        "common" => round_half_even(value, precision),
        "ceil" => (value * factor).ceil() / factor,
        "floor" => (value * factor).floor() / factor,
        _ => return Err(TemplateError::failed("method must be common, ceil or floor")),
    };
    Ok(match call.value()? {
        // Python rounds an integer to an integer
        Value::Int(_) | Value::Big(_) | Value::Bool(_) if &*method == "common" && precision >= 0 => {
            call.value()?.clone()
        }
        Value::Int(_) if &*method == "common" => Value::Int(rounded as i64),
        _ => Value::Float(rounded),
    })
}
