//! Python's mutable lists and dicts over shared immutable values.
//!
//! `{% set _ = names.append(x) %}` must be seen through every name that holds the list. A list or
//! map is told apart by its address; a change is noted here as "what was at that address is now
//! this", and every read asks. Without changes nothing is asked.

use std::collections::HashMap;
use std::sync::Arc;

use crate::template::error::{Result, TemplateError};
use crate::value::{Map, Value};

/// Nesting beyond this is taken for a list that holds itself.
const DEPTH_LIMIT: usize = 200;

#[derive(Default)]
pub struct Changes {
    /// Address of any state of a changed container, to its number.
    numbers: HashMap<usize, usize>,
    /// The present state by number.
    present: Vec<Value>,
    /// Earlier states, kept so that their addresses are not used again.
    kept: Vec<Value>,
}

fn address(value: &Value) -> Option<usize> {
    match value {
        Value::List(items) => Some(Arc::as_ptr(items).addr()),
        Value::Map(map) => Some(Arc::as_ptr(map).addr()),
        _ => None,
    }
}

impl Changes {
    /// The present state of a value; its elements may be outdated still.
    pub fn resolve(&self, value: Value) -> Value {
        if self.present.is_empty() {
            return value;
        }
        match address(&value).and_then(|address| self.numbers.get(&address)) {
            Some(number) => self.present[*number].clone(),
            None => value,
        }
    }

    /// The present state of a value and of everything in it.
    pub fn settle(&mut self, value: Value) -> Result<Value> {
        if self.present.is_empty() { Ok(value) } else { self.settle_within(value, 0) }
    }

    fn settle_within(&mut self, value: Value, depth: usize) -> Result<Value> {
        if depth > DEPTH_LIMIT {
            return Err(TemplateError::failed("a list or map holds itself"));
        }
        let number = address(&value).and_then(|address| self.numbers.get(&address)).copied();
        let value = self.resolve(value);
        let settled = match &value {
            Value::List(items) => {
                let mut fresh = None::<Vec<Value>>;
                for (index, item) in items.iter().enumerate() {
                    let now = self.settle_within(item.clone(), depth + 1)?;
                    if address(&now) != address(item) {
                        fresh.get_or_insert_with(|| items.to_vec())[index] = now;
                    }
                }
                fresh.map(Value::list)
            }
            Value::Map(map) => {
                let mut fresh = None::<Map>;
                for (index, (_, item)) in map.iter().enumerate() {
                    let now = self.settle_within(item.clone(), depth + 1)?;
                    if address(&now) != address(item)
                        && let Some((_, slot)) = fresh.get_or_insert_with(|| map.as_ref().clone()).get_index_mut(index)
                    {
                        *slot = now;
                    }
                }
                fresh.map(Value::map)
            }
            _ => None,
        };
        let Some(settled) = settled else { return Ok(value) };
        if let Some(number) = number {
            self.replace(number, settled.clone());
        }
        Ok(settled)
    }

    fn number_of(&mut self, value: &Value) -> Option<usize> {
        let place = address(value)?;
        if let Some(number) = self.numbers.get(&place) {
            return Some(*number);
        }
        let number = self.present.len();
        self.numbers.insert(place, number);
        self.present.push(value.clone());
        self.kept.push(value.clone());
        Some(number)
    }

    fn replace(&mut self, number: usize, value: Value) {
        if let Some(place) = address(&value) {
            self.numbers.insert(place, number);
        }
        let before = std::mem::replace(&mut self.present[number], value);
        self.kept.push(before);
    }

    /// Changes a list in place; `None` if the value is no list.
    pub fn change_list<T>(&mut self, value: Value, change: impl FnOnce(&mut Vec<Value>) -> T) -> Option<T> {
        let number = self.number_of(&value)?;
        drop(value);
        let Value::List(mut items) = std::mem::take(&mut self.present[number]) else { return None };
        if Arc::strong_count(&items) > 1 {
            self.kept.push(Value::List(Arc::clone(&items)));
        }
        let result = change(Arc::make_mut(&mut items));
        self.numbers.insert(Arc::as_ptr(&items).addr(), number);
        self.present[number] = Value::List(items);
        Some(result)
    }

    /// Changes a map in place; `None` if the value is no map.
    pub fn change_map<T>(&mut self, value: Value, change: impl FnOnce(&mut Map) -> T) -> Option<T> {
        let number = self.number_of(&value)?;
        drop(value);
        let Value::Map(mut map) = std::mem::take(&mut self.present[number]) else { return None };
        if Arc::strong_count(&map) > 1 {
            self.kept.push(Value::Map(Arc::clone(&map)));
        }
        let result = change(Arc::make_mut(&mut map));
        self.numbers.insert(Arc::as_ptr(&map).addr(), number);
        self.present[number] = Value::Map(map);
        Some(result)
    }
}
