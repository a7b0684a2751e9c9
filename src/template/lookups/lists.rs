//! Lookups over lists and maps given as terms.

use super::{Lookup, terms};
use crate::template::call::{Call, as_map, entry, entry_for_undefined, iterate};
use crate::template::error::{Result, TemplateError};
use crate::template::filters::{cartesian, flatten_into};
use crate::template::python::random_below;
use crate::value::{Map, Value, object};

pub static LOOKUPS: &[Lookup] = &[
    entry_for_undefined(&["items"], &["_terms"], "the terms, lists among them dissolved once", |call| {
        Ok(flattened_once(terms(call)?))
    }),
    entry_for_undefined(&["list"], &["_terms"], "the terms themselves", |call| Ok(terms(call)?.to_vec())),
    entry(&["dict"], &["_terms"], "maps of key and value for each entry", dict),
    entry(
        &["nested", "cartesian", "community.general.cartesian"],
        &["_terms"],
        "every combination of one item of each list",
        nested,
    ),
    entry(&["together"], &["_terms"], "lists of the items at the same place", together),
    entry(&["subelements"], &["_terms"], "each item with each element of a list in it", subelements),
    entry(&["indexed_items"], &["_terms"], "pairs of place and item", |call| {
        let given = terms(call)?;
        if let [Value::Map(_) | Value::Object(_)] = given {
            return Err(TemplateError::failed("with_indexed_items expects a list"));
        }
        let items = flattened_once(given);
        Ok(items.into_iter().enumerate().map(|(index, item)| Value::list(vec![index.into(), item])).collect())
    }),
    entry(
        &["flattened", "community.general.flattened"],
        &["_terms"],
        "the terms, all lists in them dissolved",
        |call| {
            let mut out = Vec::new();
            flatten_into(terms(call)?, None, true, &mut out);
            Ok(out)
        },
    ),
    entry(&["random_choice"], &["_terms"], "one of the terms", |call| {
        let items = terms(call)?;
        if items.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![items[random_below(items.len() as u64)? as usize].clone()])
    }),
];

fn flattened_once(items: &[Value]) -> Vec<Value> {
    let mut out = Vec::new();
    for item in items {
        match item.spelled() {
            Value::List(inner) => out.extend(inner.iter().cloned()),
            other => out.push(other.clone()),
        }
    }
    out
}

fn dict(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for term in terms(call)? {
        let map = as_map(term)?.ok_or_else(|| {
            TemplateError::failed(format!("with_dict expects a dict, not {}", crate::template::call::describe(term)))
        })?;
        out.extend(map.iter().map(|(key, value)| Value::map(object([("key", key.clone()), ("value", value.clone())]))));
    }
    Ok(out)
}

/// A term as a list of items; what is no list is its only item.
fn listed(term: &Value) -> Result<Vec<Value>> {
    match term {
        Value::Str(_) | Value::Null => Ok(vec![term.clone()]),
        Value::List(_) | Value::Map(_) | Value::Object(_) => iterate(term),
        other => Ok(vec![other.clone()]),
    }
}

fn nested(call: &Call<'_>) -> Result<Vec<Value>> {
    let lists = terms(call)?.iter().map(listed).collect::<Result<Vec<_>>>()?;
    if lists.is_empty() {
        return Err(TemplateError::failed("with_nested requires at least one element in the nested list"));
    }
    // an item that is a list itself joins the others
    let flat = |row: Value| Value::list(flattened_once(row.as_list().unwrap_or_default()));
    Ok(cartesian(&lists)?.into_iter().map(flat).collect())
}

fn together(call: &Call<'_>) -> Result<Vec<Value>> {
    let lists = terms(call)?.iter().map(listed).collect::<Result<Vec<_>>>()?;
    let count = lists
        .iter()
        .map(Vec::len)
        .max()
        .ok_or_else(|| TemplateError::failed("with_together requires at least one element in each list"))?;
    let row = |index: usize| {
        let items: Vec<Value> = lists.iter().map(|list| list.get(index).cloned().unwrap_or_default()).collect();
        Value::list(flattened_once(&items))
    };
    Ok((0..count).map(row).collect())
}

fn subelements(call: &Call<'_>) -> Result<Vec<Value>> {
    let (list, key, flags) = match terms(call)? {
        [list, key] => (list, key, None),
        [list, key, flags] => (list, key, Some(flags)),
        _ => {
            return Err(TemplateError::failed(
                "subelements lookup expects a list of two or three items, the elements, the key and flags",
            ));
        }
    };
    let skip_missing = match flags {
        Some(flags) => as_map(flags)?
            .ok_or_else(|| TemplateError::failed("the optional third item must be a dict with the flag skip_missing"))?
            .get("skip_missing")
            .is_some_and(|flag| flag.to_ansible_bool().unwrap_or(false)),
        None => false,
    };
    let Value::Str(path) = key else {
        return Err(TemplateError::failed("first a dict or a list, second a string pointing to the subkey"));
    };
    let elements: Vec<Value> = match list {
        Value::List(items) => items.to_vec(),
        other => match as_map(other)? {
            // a result that was skipped has no elements
            Some(map) if map.get("skipped").is_some_and(Value::is_truthy) => Vec::new(),
            Some(map) => map.values().cloned().collect(),
            None => {
                return Err(TemplateError::failed(
                    "subelements lookup expects a dictionary or a list: first a dict or a list, second a string \
                     pointing to the subkey",
                ));
            }
        },
    };
    let keys: Vec<&str> = path.as_str().split('.').collect();
    let mut out = Vec::new();
    for element in elements {
        let Some(map) = as_map(&element)? else {
            let what = crate::template::call::describe(&element);
            return Err(TemplateError::failed(format!("subelements lookup expects a dictionary, got {what}")));
        };
        // so do the results of a loop that were skipped
        if map.get("skipped").is_some_and(Value::is_truthy) {
            continue;
        }
        let mut rest = map.into_owned();
        let taken = take_list(&mut rest, &keys, skip_missing)?;
        let rest = Value::map(rest);
        out.extend(taken.into_iter().map(|item| Value::list(vec![rest.clone(), item])));
    }
    Ok(out)
}

/// Takes the list at a path out of a map, as Ansible does.
fn take_list(map: &mut Map, keys: &[&str], skip_missing: bool) -> Result<Vec<Value>> {
    let fail = |words: String| if skip_missing { Ok(Vec::new()) } else { Err(TemplateError::failed(words)) };
    let Some((key, below)) = keys.split_first() else { return Ok(Vec::new()) };
    let Some(value) = map.get(*key) else {
        return fail(format!("could not find '{key}' key in iterated item '{}'", Value::map(map.clone()).to_repr()));
    };
    if below.is_empty() {
        return match value {
            Value::List(items) => {
                let items = items.to_vec();
                map.shift_remove(*key);
                Ok(items)
            }
            other => fail(format!("the key {key} should point to a list, got '{}'", other.to_text())),
        };
    }
    let Some(inner) = as_map(value)? else {
        return fail(format!("the key {key} should point to a dictionary, got '{}'", value.to_text()));
    };
    let mut inner = inner.into_owned();
    let items = take_list(&mut inner, below, skip_missing)?;
    map.insert(Value::from(*key), Value::map(inner));
    Ok(items)
}
