//! Filters about maps.

use super::Filter;
use crate::template::call::{Call, as_map, check_defined, entry, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::{Map, Value};

pub static FILTERS: &[Filter] = &[
    entry(&["combine"], &["value", "*maps", "**options"], "the entries of all maps, later ones first", combine),
    entry(&["dict2items"], &["value", "key_name", "value_name"], "a list of maps with key and value", dict2items),
    entry(
        &["items2dict"],
        &["value", "key_name", "value_name"],
        "a map from a list of maps with key and value",
        items2dict,
    ),
    entry(&["items"], &["value"], "pairs of key and value", |call| {
        if call.value()?.is_undefined() {
            return Ok(Value::list(Vec::new()));
        }
        let map = call.map(0)?;
        Ok(Value::list(map.iter().map(|(key, value)| Value::list(vec![key.clone(), value.clone()])).collect()))
    }),
    entry(&["dictsort"], &["value", "case_sensitive", "by", "reverse"], "pairs of key and value in order", dictsort),
    entry(
        &["rekey_on_member"],
        &["value", "key", "duplicates"],
        "a map of maps by one of their members",
        rekey_on_member,
    ),
];

/// How two lists at the same key are combined.
#[derive(Clone, Copy)]
enum ListMerge {
    Replace,
    Keep,
    Append,
    Prepend,
    AppendNew,
    PrependNew,
}

fn combine(call: &Call<'_>) -> Result<Value> {
    let mut recursive = false;
    let mut merge = ListMerge::Replace;
    for (name, value) in &call.named {
        match &**name {
            "recursive" => recursive = value.is_truthy(),
            "list_merge" => {
                merge = match &*text_of(value)? {
                    "replace" => ListMerge::Replace,
                    "keep" => ListMerge::Keep,
                    "append" => ListMerge::Append,
                    "prepend" => ListMerge::Prepend,
                    "append_rp" => ListMerge::AppendNew,
                    "prepend_rp" => ListMerge::PrependNew,
                    other => {
                        return Err(TemplateError::failed(format!(
                            "'list_merge' is '{other}', known are replace, keep, append, prepend, append_rp and prepend_rp"
                        )));
                    }
                };
            }
            _ => {
                return Err(TemplateError::as_ansible(
                    "'recursive' and 'list_merge' are the only valid keyword arguments",
                ));
            }
        }
    }
    let mut maps = Vec::new();
    for value in std::iter::once(call.value()?).chain(&call.rest) {
        match value {
            Value::List(items) => maps.extend(items.iter().cloned()),
            other => maps.push(other.clone()),
        }
    }
    let mut out = Map::new();
    for value in &maps {
        check_defined(value)?;
        // as from a list that is flattened
        if value.is_null() {
            continue;
        }
        let Some(map) = as_map(value)? else {
            return Err(TemplateError::as_ansible(format!(
                "failed to combine variables, expected dicts but got {}",
                crate::template::call::describe(value)
            )));
        };
        out = merge_maps(out, &map, recursive, merge);
    }
    Ok(Value::map(out))
}

fn merge_maps(mut below: Map, above: &Map, recursive: bool, merge: ListMerge) -> Map {
    for (key, value) in above {
        let combined = match (below.get(key), value) {
            (Some(Value::Map(one)), Value::Map(other)) if recursive => {
                Value::map(merge_maps(one.as_ref().clone(), other, recursive, merge))
            }
            (Some(Value::List(one)), Value::List(other)) => merge_lists(one, other, merge),
            _ => value.clone(),
        };
        below.insert(key.clone(), combined);
    }
    below
}

fn merge_lists(below: &[Value], above: &[Value], merge: ListMerge) -> Value {
    let without = |items: &[Value], others: &[Value]| -> Vec<Value> {
        items.iter().filter(|item| !others.contains(item)).cloned().collect()
    };
    Value::list(match merge {
        ListMerge::Replace => above.to_vec(),
        ListMerge::Keep => below.to_vec(),
        ListMerge::Append => [below, above].concat(),
        ListMerge::Prepend => [above, below].concat(),
        ListMerge::AppendNew => [without(below, above), above.to_vec()].concat(),
        ListMerge::PrependNew => [above.to_vec(), without(below, above)].concat(),
    })
}

fn dict2items(call: &Call<'_>) -> Result<Value> {
    let Some(map) = as_map(call.value()?)? else {
        return Err(TemplateError::failed(format!(
            "dict2items requires a dictionary, got {} instead",
            crate::template::call::describe(call.value()?)
        )));
    };
    let (key_name, value_name) = (call.text_or(1, "key")?, call.text_or(2, "value")?);
    let item = |(key, value): (&Value, &Value)| {
        Value::map(crate::value::object([(&*key_name, key.clone()), (&*value_name, value.clone())]))
    };
    Ok(Value::list(map.iter().map(item).collect()))
}

fn items2dict(call: &Call<'_>) -> Result<Value> {
    let (key_name, value_name) = (call.text_or(1, "key")?, call.text_or(2, "value")?);
    let mut out = Map::new();
    let Some(items) = call.value()?.as_list() else {
        let what = crate::template::call::describe(call.value()?);
        return Err(TemplateError::failed(format!("items2dict requires a list, got {what} instead")));
    };
    for item in items {
        let map = as_map(item)?.ok_or_else(|| TemplateError::failed("items2dict requires a list of dictionaries"))?;
        match (map.get(&*key_name), map.get(&*value_name)) {
            (Some(key), Some(value)) => out.insert(key.clone(), value.clone()),
            _ => {
                return Err(TemplateError::failed(format!(
                    "items2dict requires each dictionary in the list to contain the keys '{key_name}' and '{value_name}'"
                )));
            }
        };
    }
    Ok(Value::map(out))
}

fn dictsort(call: &Call<'_>) -> Result<Value> {
    let case_sensitive = call.flag(1, false)?;
    let place = match &*call.text_or(2, "key")? {
        "key" => 0,
        "value" => 1,
        _ => return Err(TemplateError::failed("You can only sort by either \"key\" or \"value\"")),
    };
    let pairs =
        call.map(0)?.iter().map(|(key, value)| Value::list(vec![key.clone(), value.clone()])).collect::<Vec<_>>();
    let sorted = super::sorted_by(pairs, call.flag(3, false)?, |pair| {
        Ok(match iterate(pair)?.swap_remove(place) {
            Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
            other => other,
        })
    })?;
    Ok(Value::list(sorted))
}

fn rekey_on_member(call: &Call<'_>) -> Result<Value> {
    let key = call.required(1)?;
    let overwrite = match &*call.text_or(2, "error")? {
        "error" => false,
        "overwrite" => true,
        other => {
            return Err(TemplateError::failed(format!(
                "duplicates parameter to rekey_on_member has unknown value '{other}'"
            )));
        }
    };
    let items: Vec<Value> = match as_map(call.value()?)? {
        Some(map) => map.values().cloned().collect(),
        None => match call.value()? {
            Value::List(items) => items.to_vec(),
            _ => return Err(TemplateError::failed("Type is not a valid list, set, or dict")),
        },
    };
    let mut out = Map::new();
    for item in items {
        let map = as_map(&item)?.ok_or_else(|| TemplateError::failed("List item is not a valid dict"))?;
        let member = map
            .get(key)
            .cloned()
            .ok_or_else(|| TemplateError::failed(format!("Key {} was not found.", key.to_repr())))?;
        if out.contains_key(&member) && !overwrite {
            return Err(TemplateError::failed(format!(
                "Key {} is not unique, cannot correctly turn into dict",
                member.to_repr()
            )));
        }
        out.insert(member, item.clone());
    }
    Ok(Value::map(out))
}
