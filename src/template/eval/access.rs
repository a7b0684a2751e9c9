//! Attributes, items and slices.

use num_traits::ToPrimitive;

use super::Evaluator;
use super::objects::{Function, Namespace};
use crate::template::error::{Result, TemplateError};
use crate::template::methods;
use crate::value::Value;

impl Evaluator<'_> {
    /// `object.name`: Python's methods first, then the entry of that name.
    pub(super) fn attribute(&mut self, object: &Value, name: &str) -> Result<Value> {
        let object = methods::with_method(object, name);
        match object {
            // what is below something without value has none either, for the same reason
            Value::Undefined(_) => Ok(object.clone()),
            Value::Map(map) => {
                if methods::exists(object, name) {
                    return Ok(self.method(object, name));
                }
                match map.get(name) {
                    Some(value) => self.read(value.clone()),
                    None => Ok(missing_attribute(object, name)),
                }
            }
            Value::Object(entries) => {
                let plain = entries.as_any().is_none();
                if plain && methods::exists(object, name) {
                    return Ok(self.method(object, name));
                }
                match entries.get(&Value::from(name))? {
                    Some(value) => self.read(value),
                    None => Ok(missing_attribute(object, name)),
                }
            }
            _ if methods::exists(object, name) => Ok(self.method(object, name)),
            _ => Ok(methods::property(object, name).unwrap_or_else(|| missing_attribute(object, name))),
        }
    }

    /// The filter `attr`: an attribute alone, never an entry of a map.
    pub(super) fn own_attribute(&mut self, object: &Value, name: &str) -> Result<Value> {
        match object {
            Value::Map(_) if !methods::exists(object, name) => Ok(missing_attribute(object, name)),
            _ => self.attribute(object, name),
        }
    }

    fn method(&self, object: &Value, name: &str) -> Value {
        Function::Method { receiver: object.clone(), name: name.into() }.value()
    }

    /// `object[key]`: the entry, else the attribute of that name.
    pub(super) fn item(&mut self, object: &Value, key: Value) -> Result<Value> {
        if object.is_undefined() {
            return Ok(object.clone());
        }
        if let Value::Undefined(reason) = &key {
            // as in `names[nosuch] | default('')`: the key's reason is the reason
            return Ok(Value::Undefined(reason.clone()));
        }
        let key = self.deep(key)?;
        let object = object.spelled();
        match object {
            Value::Map(map) => {
                if let Some(value) = map.get(&key) {
                    return self.read(value.clone());
                }
            }
            Value::Object(entries) => {
                if let Some(value) = entries.get(&key)? {
                    return self.read(value);
                }
            }
            Value::List(items) => {
                if let Some(index) = index_of(&key) {
                    return match position(index, items.len()) {
                        Some(position) => self.read(items[position].clone()),
                        None => Ok(missing_element(object, &key)),
                    };
                }
            }
            Value::Str(text) => {
                if let Some(index) = index_of(&key) {
                    let length = text.as_str().chars().count();
                    return Ok(match position(index, length).and_then(|index| text.as_str().chars().nth(index)) {
                        Some(character) => Value::from(character.to_string()),
                        None => missing_element(object, &key),
                    });
                }
            }
            _ => {}
        }
        match key.as_str() {
            Some(name) if methods::exists(object, name) && !is_namespace(object) => Ok(self.method(object, name)),
            Some(name) => Ok(methods::property(object, name).unwrap_or_else(|| missing_attribute(object, name))),
            None => Ok(missing_element(object, &key)),
        }
    }

    pub(super) fn slice(&mut self, value: Value, bounds: [Option<Value>; 3]) -> Result<Value> {
        let mut numbers = [None; 3];
        for (slot, bound) in numbers.iter_mut().zip(bounds) {
            *slot = match bound {
                None | Some(Value::Null) => None,
                Some(Value::Undefined(reason)) => return Err(TemplateError::undefined(&reason)),
                Some(bound) => match bound.as_int() {
                    Some(number) => Some(number),
                    None => {
                        return Err(TemplateError::failed(
                            "slice indices must be integers or None or have an __index__ method",
                        ));
                    }
                },
            };
        }
        let value = value.spelled();
        match value {
            Value::Undefined(_) => Ok(value.clone()),
            Value::List(items) => {
                let chosen = slice_positions(items.len(), numbers)?;
                Ok(Value::list(chosen.into_iter().map(|index| items[index].clone()).collect()))
            }
            Value::Str(text) => {
                let characters: Vec<char> = text.as_str().chars().collect();
                let chosen = slice_positions(characters.len(), numbers)?;
                Ok(Value::from(chosen.into_iter().map(|index| characters[index]).collect::<String>()))
            }
            other => Err(TemplateError::failed(format!("'{}' object is not subscriptable", other.type_name()))),
        }
    }
}

fn is_namespace(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.as_any().is_some_and(|object| object.is::<Namespace>()),
        _ => false,
    }
}

fn index_of(key: &Value) -> Option<i64> {
    match key {
        Value::Big(number) => Some(number.to_i64().unwrap_or(i64::MAX)),
        other => other.as_int(),
    }
}

/// The place of a Python index, which may count from the end.
pub fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add(length as i64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

/// The places that `[start:stop:step]` picks, in order.
pub fn slice_positions(length: usize, [start, stop, step]: [Option<i64>; 3]) -> Result<Vec<usize>> {
    let length = length as i64;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(TemplateError::failed("slice step cannot be zero"));
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clamp = |bound: i64| (if bound < 0 { bound.saturating_add(length) } else { bound }).clamp(lowest, highest);
    let start = start.map_or(if step > 0 { lowest } else { highest }, clamp);
    let stop = stop.map_or(if step > 0 { highest } else { lowest }, clamp);
    let mut positions = Vec::new();
    let mut index = start;
    while (step > 0 && index < stop) || (step < 0 && index > stop) {
        positions.push(index as usize);
        index = index.saturating_add(step);
    }
    Ok(positions)
}

/// The undefined value that stands for an attribute that is not there.
pub fn missing_attribute(object: &Value, name: &str) -> Value {
    Value::undefined(format!("object of type '{}' has no attribute '{name}'", object.type_name()))
}

fn missing_element(object: &Value, key: &Value) -> Value {
    Value::undefined(format!("object of type '{}' has no attribute {}", object.type_name(), key.to_repr()))
}
