//! Python's operators.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::template::call::{iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::python::percent_format;
use crate::template::tree::Operator;
use crate::value::{Interruption, Value};

/// Integers grow no longer than this many bits: `10 ** 10 ** 10` is a mistake.
const BIT_LIMIT: u64 = 1 << 20;
/// Repeated texts and lists grow no longer than this.
const REPEAT_LIMIT: usize = 64 << 20;

enum Number {
    Int(i64),
    Big(BigInt),
    Float(f64),
}

fn number(value: &Value) -> Option<Number> {
    Some(match value {
        Value::Float(number) => Number::Float(*number),
        Value::Big(number) => Number::Big(number.as_ref().clone()),
        other => Number::Int(other.as_int()?),
    })
}

impl Number {
    fn big(&self) -> Option<BigInt> {
        match self {
            Number::Int(number) => Some(BigInt::from(*number)),
            Number::Big(number) => Some(number.clone()),
            Number::Float(_) => None,
        }
    }

    fn float(&self) -> f64 {
        match self {
            Number::Int(number) => *number as f64,
            Number::Big(number) => number.to_f64().unwrap_or(f64::INFINITY),
            Number::Float(number) => *number,
        }
    }
}

/// `left operator right`.
pub fn binary(operator: Operator, left: &Value, right: &Value, right_is_tuple: bool) -> Result<Value> {
    for operand in [left, right] {
        match operand {
            Value::Undefined(reason) if !(reason.is_empty() && operator == Operator::Concatenate) => {
                let reason =
                    if reason.is_empty() { "the inline if-expression gave no value (no `else`)" } else { reason };
                return Err(TemplateError::undefined(reason));
            }
            _ => {}
        }
    }
    Ok(match operator {
        Operator::Equal => Value::Bool(equal(left, right)?),
        Operator::NotEqual => Value::Bool(!equal(left, right)?),
        Operator::Less => Value::Bool(compare(left, right, "<")? == Some(Ordering::Less)),
        Operator::LessOrEqual => {
            Value::Bool(matches!(compare(left, right, "<=")?, Some(Ordering::Less | Ordering::Equal)))
        }
        Operator::Greater => Value::Bool(compare(left, right, ">")? == Some(Ordering::Greater)),
        Operator::GreaterOrEqual => {
            Value::Bool(matches!(compare(left, right, ">=")?, Some(Ordering::Greater | Ordering::Equal)))
        }
        Operator::In => Value::Bool(contains(right, left)?),
        Operator::NotIn => Value::Bool(!contains(right, left)?),
        Operator::Concatenate => Value::from(format!("{}{}", text_of(left)?, text_of(right)?)),
        Operator::Add => add(left, right)?,
        Operator::Subtract => subtract(left, right)?,
        Operator::Multiply => multiply(left, right)?,
        Operator::Divide => divide(left, right)?,
        Operator::FloorDivide | Operator::Remainder => match (operator, left) {
            (Operator::Remainder, Value::Str(text)) => {
                Value::from(percent_format(text.as_str(), right, right_is_tuple)?)
            }
            _ => floor_divide(operator, left, right)?,
        },
        Operator::Power => power(left, right)?,
    })
}

/// Python's `==`; an undefined value inside of a list or map is an error.
pub fn equal(left: &Value, right: &Value) -> Result<bool> {
    if let (Some(left), Some(right)) = (super::super::datetime::of(left), super::super::datetime::of(right)) {
        return Ok(left.compare(right) == Some(Ordering::Equal));
    }
    Ok(match (left, right) {
        (Value::Object(one), Value::Object(other)) if std::sync::Arc::ptr_eq(one, other) => true,
        (Value::Object(object), Value::Map(_)) | (Value::Map(_), Value::Object(object))
            if object.describe().is_none() =>
        {
            let map = Value::map(super::super::call::object_map(object.as_ref())?);
            match left {
                Value::Object(_) => map == *right,
                _ => *left == map,
            }
        }
        _ => left == right,
    })
}

fn unsupported(operator: &str, left: &Value, right: &Value) -> TemplateError {
    TemplateError::failed(format!(
        "unsupported operand type(s) for {operator}: '{}' and '{}'",
        left.type_name(),
        right.type_name()
    ))
}

/// Python's order; `None` where neither is smaller (`nan`), an error between types that have none.
pub fn compare(left: &Value, right: &Value, sign: &str) -> Result<Option<Ordering>> {
    if let (Some(one), Some(other)) = (number(left), number(right)) {
        return Ok(match (&one, &other) {
            (Number::Int(one), Number::Int(other)) => Some(one.cmp(other)),
            (Number::Float(_), _) | (_, Number::Float(_)) => one.float().partial_cmp(&other.float()),
            _ => one.big().zip(other.big()).map(|(one, other)| one.cmp(&other)),
        });
    }
    match (left, right) {
        (Value::Str(one), Value::Str(other)) => Ok(Some(one.as_str().cmp(other.as_str()))),
        (Value::List(one), Value::List(other)) => {
            for (one, other) in one.iter().zip(other.iter()) {
                if !equal(one, other)? {
                    return compare(one, other, sign);
                }
            }
            Ok(Some(one.len().cmp(&other.len())))
        }
        (Value::Undefined(reason), _) | (_, Value::Undefined(reason)) => Err(TemplateError::undefined(reason)),
        _ => {
            if let (Some(one), Some(other)) = (super::super::datetime::of(left), super::super::datetime::of(right)) {
                return Ok(one.compare(other));
            }
            Err(TemplateError::failed(format!(
                "'{sign}' not supported between instances of '{}' and '{}'",
                left.type_name(),
                right.type_name()
            )))
        }
    }
}

/// Python's `needle in haystack`.
pub fn contains(haystack: &Value, needle: &Value) -> Result<bool> {
    match haystack.spelled() {
        Value::Str(text) => match needle {
            Value::Str(part) => Ok(text.as_str().contains(part.as_str())),
            other => Err(TemplateError::failed(format!(
                "'in <string>' requires string as left operand, not {}",
                other.type_name()
            ))),
        },
        Value::Map(map) => Ok(map.contains_key(needle)),
        Value::Object(object) if object.describe().is_none() => {
            Ok(object.get(needle).map_err(|interruption: Interruption| TemplateError::from(interruption))?.is_some())
        }
        Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
        Value::List(items) => {
            for item in items.iter() {
                if equal(item, needle)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        other => Err(TemplateError::failed(format!("argument of type '{}' is not iterable", other.type_name()))),
    }
}

pub fn negate(value: &Value) -> Result<Value> {
    match number(value) {
        Some(Number::Int(number)) => Ok(match number.checked_neg() {
            Some(number) => Value::Int(number),
            None => Value::big(-BigInt::from(number)),
        }),
        Some(Number::Big(number)) => Ok(Value::big(-number)),
        Some(Number::Float(number)) => Ok(Value::Float(-number)),
        None => match value {
            Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
            other => Err(TemplateError::failed(format!("bad operand type for unary -: '{}'", other.type_name()))),
        },
    }
}

/// Python's `+`.
pub fn add(left: &Value, right: &Value) -> Result<Value> {
    let (left, right) = match (left, right) {
        // of two texts a text is made
        (Value::Str(_), Value::Str(_)) => (left, right),
        _ => (left.spelled(), right.spelled()),
    };
    match (left, right) {
        (Value::Str(one), Value::Str(other)) => Ok(Value::from(format!("{}{}", one.as_str(), other.as_str()))),
        (Value::List(one), Value::List(other)) => Ok(Value::list(one.iter().chain(other.iter()).cloned().collect())),
        (Value::Str(_), other) if number(other).is_some() || !matches!(other, Value::Object(_)) => {
            Err(TemplateError::failed(format!("can only concatenate str (not \"{}\") to str", other.type_name())))
        }
        (Value::List(_), other) => {
            Err(TemplateError::failed(format!("can only concatenate list (not \"{}\") to list", other.type_name())))
        }
        _ => match (number(left), number(right)) {
            (Some(one), Some(other)) => Ok(match (&one, &other) {
                (Number::Int(one), Number::Int(other)) => match one.checked_add(*other) {
                    Some(sum) => Value::Int(sum),
                    None => Value::big(BigInt::from(*one) + other),
                },
                _ => match (one.big(), other.big()) {
                    (Some(one), Some(other)) => Value::big(one + other),
                    _ => Value::Float(one.float() + other.float()),
                },
            }),
            _ => match (super::super::datetime::of(left), super::super::datetime::of(right)) {
                (Some(one), Some(other)) => one.add(other).ok_or_else(|| unsupported("+", left, right)),
                _ => Err(unsupported("+", left, right)),
            },
        },
    }
}

fn subtract(left: &Value, right: &Value) -> Result<Value> {
    match (number(left), number(right)) {
        (Some(one), Some(other)) => Ok(match (&one, &other) {
            (Number::Int(one), Number::Int(other)) => match one.checked_sub(*other) {
                Some(difference) => Value::Int(difference),
                None => Value::big(BigInt::from(*one) - other),
            },
            _ => match (one.big(), other.big()) {
                (Some(one), Some(other)) => Value::big(one - other),
                _ => Value::Float(one.float() - other.float()),
            },
        }),
        _ => match (super::super::datetime::of(left), super::super::datetime::of(right)) {
            (Some(one), Some(other)) => one.subtract(other).ok_or_else(|| unsupported("-", left, right)),
            _ => Err(unsupported("-", left, right)),
        },
    }
}

fn multiply(left: &Value, right: &Value) -> Result<Value> {
    if let (Some(one), Some(other)) = (number(left), number(right)) {
        return Ok(match (&one, &other) {
            (Number::Int(one), Number::Int(other)) => match one.checked_mul(*other) {
                Some(product) => Value::Int(product),
                None => Value::big(BigInt::from(*one) * other),
            },
            _ => match (one.big(), other.big()) {
                (Some(one), Some(other)) if one.bits() + other.bits() > BIT_LIMIT => {
                    return Err(TemplateError::failed("the product is too large"));
                }
                (Some(one), Some(other)) => Value::big(one * other),
                _ => Value::Float(one.float() * other.float()),
            },
        });
    }
    let (sequence, times) = match (left, right) {
        (Value::Str(_) | Value::List(_), times) => (left, times.as_int()),
        (times, Value::Str(_) | Value::List(_)) => (right, times.as_int()),
        _ => (left, None),
    };
    let Some(times) = times else { return Err(unsupported("*", left, right)) };
    let times = usize::try_from(times).unwrap_or(0);
    let too_long = |length: usize| length.saturating_mul(times) > REPEAT_LIMIT;
    match sequence {
        Value::Str(text) if !too_long(text.as_str().len()) => Ok(Value::from(text.as_str().repeat(times))),
        Value::List(items) if !too_long(items.len()) => {
            Ok(Value::list(std::iter::repeat_n(items.as_slice(), times).flatten().cloned().collect()))
        }
        _ => Err(TemplateError::failed("the repeated value is too long")),
    }
}

fn divide(left: &Value, right: &Value) -> Result<Value> {
    match (number(left), number(right)) {
        (Some(one), Some(other)) => {
            if other.float() == 0.0 {
                return Err(TemplateError::failed("division by zero"));
            }
            Ok(Value::Float(one.float() / other.float()))
        }
        _ => match (super::super::datetime::of(left), number(right)) {
            (Some(one), Some(other)) => one.scale(1.0 / other.float()).ok_or_else(|| unsupported("/", left, right)),
            _ => Err(unsupported("/", left, right)),
        },
    }
}

/// `//` and `%`: the quotient is rounded down, the remainder has the sign of the divisor.
fn floor_divide(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    let sign = if operator == Operator::Remainder { "%" } else { "//" };
    let (Some(one), Some(other)) = (number(left), number(right)) else {
        return Err(unsupported(sign, left, right));
    };
    if other.float() == 0.0 {
        return Err(TemplateError::failed("integer division or modulo by zero"));
    }
    match (one.big(), other.big()) {
        (Some(one), Some(other)) => {
            let (mut quotient, mut remainder) = (&one / &other, &one % &other);
            if !remainder.is_zero() && remainder.is_negative() != other.is_negative() {
                quotient -= 1;
                remainder += &other;
            }
            Ok(Value::big(if operator == Operator::Remainder { remainder } else { quotient }))
        }
        _ => {
            let (one, other) = (one.float(), other.float());
            let quotient = (one / other).floor();
            Ok(Value::Float(if operator == Operator::Remainder { one - quotient * other } else { quotient }))
        }
    }
}

/// Python's `**`.
pub fn power(left: &Value, right: &Value) -> Result<Value> {
    let (Some(one), Some(other)) = (number(left), number(right)) else {
        return Err(unsupported("** or pow()", left, right));
    };
    match (one.big(), other.big()) {
        (Some(base), Some(exponent)) if !exponent.is_negative() => {
            let exponent = exponent
                .to_u32()
                .filter(|exponent| base.bits() <= 1 || base.bits().saturating_mul(u64::from(*exponent)) <= BIT_LIMIT);
            match exponent {
                Some(exponent) => Ok(Value::big(base.pow(exponent))),
                None if base.bits() <= 1 => Ok(Value::Float(one.float().powf(other.float()))),
                None => Err(TemplateError::failed("the power is too large")),
            }
        }
        _ => {
            let result = one.float().powf(other.float());
            if result.is_nan() && !one.float().is_nan() {
                return Err(TemplateError::failed("a negative number has no fractional power"));
            }
            Ok(Value::Float(result))
        }
    }
}

/// Sums up as Python's `sum(values, start)`.
pub fn sum(values: &Value, start: Value) -> Result<Value> {
    iterate(values)?.iter().try_fold(start, |total, value| match value {
        Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
        value => add(&total, value),
    })
}
