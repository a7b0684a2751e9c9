//! The functions of JMESPath.

use std::cmp::Ordering;

use super::{Node, evaluate};
use crate::template::error::{Result, TemplateError};
use crate::template::eval::operators;
use crate::template::filters::{sorted, sorted_by, to_compact_json};
use crate::value::{Map, Value};

pub fn call(name: &str, arguments: &[Node], current: &Value) -> Result<Value> {
    let count = |expected: usize| match arguments.len() == expected {
        true => Ok(()),
        false => Err(TemplateError::failed(format!("`{name}()` takes {expected} arguments, not {}", arguments.len()))),
    };
    // an expression to be applied to each element, behind `&`
    let reference = |index: usize| match arguments.get(index) {
        Some(Node::Reference(node)) => Ok(node.as_ref()),
        _ => Err(TemplateError::failed(format!("`{name}()` needs an expression that begins with `&`"))),
    };
    let value = |index: usize| match arguments.get(index) {
        Some(node) => evaluate(node, current),
        None => Err(TemplateError::failed(format!("`{name}()` has too few arguments"))),
    };
    let wrong = |value: &Value, expected: &str| {
        TemplateError::failed(format!("`{name}()` needs {expected}, not {}", crate::template::call::describe(value)))
    };
    let list = |index: usize| match value(index)? {
        Value::List(items) => Ok(items.to_vec()),
        other => Err(wrong(&other, "a list")),
    };
    let text = |index: usize| match value(index)? {
        Value::Str(text) => Ok(text.as_str().to_owned()),
        other => Err(wrong(&other, "a text")),
    };
    let number = |index: usize| match value(index)? {
        Value::Float(number) => Ok(number),
        Value::Int(number) => Ok(number as f64),
        other => Err(wrong(&other, "a number")),
    };
    let map = |index: usize| match value(index)? {
        Value::Map(map) => Ok(map.as_ref().clone()),
        other => Err(wrong(&other, "a map")),
    };
    Ok(match name {
        "abs" => {
            count(1)?;
            match value(0)? {
                Value::Int(number) => Value::Int(number.saturating_abs()),
                _ => Value::Float(number(0)?.abs()),
            }
        }
        "ceil" | "floor" => {
            count(1)?;
            let number = number(0)?;
            Value::Int(if name == "ceil" { number.ceil() } else { number.floor() } as i64)
        }
        "avg" => {
            count(1)?;
            let items = list(0)?;
            match items.len() {
                0 => Value::Null,
                length => {
                    let total = operators::sum(&Value::list(items), Value::Float(0.0))?;
                    match total {
                        Value::Float(total) => Value::Float(total / length as f64),
                        other => return Err(wrong(&other, "numbers")),
                    }
                }
            }
        }
        "sum" => {
            count(1)?;
            operators::sum(&Value::list(list(0)?), Value::Int(0))?
        }
        "contains" => {
            count(2)?;
            let (haystack, needle) = (value(0)?, value(1)?);
            match (&haystack, &needle) {
                (Value::List(items), needle) => Value::Bool(items.contains(needle)),
                (Value::Str(text), Value::Str(part)) => Value::Bool(text.as_str().contains(part.as_str())),
                (Value::Str(_), _) => Value::Bool(false),
                (other, _) => return Err(wrong(other, "a list or a text")),
            }
        }
        "starts_with" => {
            count(2)?;
            Value::Bool(text(0)?.starts_with(&text(1)?))
        }
        "ends_with" => {
            count(2)?;
            Value::Bool(text(0)?.ends_with(&text(1)?))
        }
        "join" => {
            count(2)?;
            let parts = list(1)?;
            let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            if texts.len() != parts.len() {
                return Err(TemplateError::failed("`join()` needs a list of texts"));
            }
            Value::from(texts.join(&text(0)?))
        }
        "keys" => {
            count(1)?;
            Value::list(map(0)?.into_keys().collect())
        }
        "values" => {
            count(1)?;
            Value::list(map(0)?.into_values().collect())
        }
        "length" => {
            count(1)?;
            match value(0)? {
                Value::Str(text) => Value::from(text.as_str().chars().count()),
                Value::List(items) => Value::from(items.len()),
                Value::Map(map) => Value::from(map.len()),
                other => return Err(wrong(&other, "a text, list or map")),
            }
        }
        "map" => {
            count(2)?;
            let expression = reference(0)?;
            Value::list(list(1)?.iter().map(|item| evaluate(expression, item)).collect::<Result<Vec<_>>>()?)
        }
        "max" | "min" => {
            count(1)?;
            extreme(list(0)?, name == "max", |item| Ok(item.clone()))?
        }
        "max_by" | "min_by" => {
            count(2)?;
            let expression = reference(1)?;
            extreme(list(0)?, name == "max_by", |item| evaluate(expression, item))?
        }
        "merge" => {
            let mut out = Map::new();
            for index in 0..arguments.len() {
                out.extend(map(index)?);
            }
            Value::map(out)
        }
        "not_null" => {
            for index in 0..arguments.len() {
                let value = value(index)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Value::Null
        }
        "reverse" => {
            count(1)?;
            match value(0)? {
                Value::Str(text) => Value::from(text.as_str().chars().rev().collect::<String>()),
                Value::List(items) => Value::list(items.iter().rev().cloned().collect()),
                other => return Err(wrong(&other, "a list or a text")),
            }
        }
        "sort" => {
            count(1)?;
            Value::list(sorted(list(0)?, false)?)
        }
        "sort_by" => {
            count(2)?;
            let expression = reference(1)?;
            Value::list(sorted_by(list(0)?, false, |item| evaluate(expression, item))?)
        }
        "to_array" => {
            count(1)?;
            match value(0)? {
                list @ Value::List(_) => list,
                other => Value::list(vec![other]),
            }
        }
        "to_string" => {
            count(1)?;
            match value(0)? {
                text @ Value::Str(_) => text,
                other => Value::from(to_compact_json(&other)?),
            }
        }
        "to_number" => {
            count(1)?;
            match value(0)? {
                number @ (Value::Int(_) | Value::Big(_) | Value::Float(_)) => number,
                Value::Str(text) => match (text.as_str().parse::<i64>(), text.as_str().parse::<f64>()) {
                    (Ok(number), _) => Value::Int(number),
                    (_, Ok(number)) => Value::Float(number),
                    _ => Value::Null,
                },
                _ => Value::Null,
            }
        }
        "type" => {
            count(1)?;
            Value::from(match value(0)? {
                Value::Null | Value::Undefined(_) => "null",
                Value::Bool(_) => "boolean",
                Value::Int(_) | Value::Big(_) | Value::Float(_) => "number",
                Value::Str(_) => "string",
                Value::List(_) => "array",
                Value::Map(_) | Value::Object(_) => "object",
            })
        }
        other => return Err(TemplateError::failed(format!("a query has no function `{other}()`"))),
    })
}

fn extreme(items: Vec<Value>, largest: bool, key: impl Fn(&Value) -> Result<Value>) -> Result<Value> {
    let mut best: Option<(Value, Value)> = None;
    for item in items {
        let own = key(&item)?;
        let better = match &best {
            None => true,
            Some((known, _)) => {
                let wanted = if largest { Ordering::Greater } else { Ordering::Less };
                operators::compare(&own, known, "<")? == Some(wanted)
            }
        };
        if better {
            best = Some((own, item));
        }
    }
    Ok(best.map_or(Value::Null, |(_, item)| item))
}
