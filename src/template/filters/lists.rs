//! Filters about lists: choosing, mapping, ordering, grouping.

use super::Filter;
use super::text::texts;
use crate::template::call::{Call, as_map, check_defined, entry, entry_for_undefined, get_path, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::eval::operators;
use crate::template::python::{Twister, random_below};
use crate::template::tests;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(
        &["map"],
        &["value", "*arguments", "**options"],
        "an attribute of each item, or a filter applied to each",
        map,
    ),
    entry(&["select"], &["value", "*arguments", "**options"], "the items that pass a test, or are true", |call| {
        select(call, false, true)
    }),
    entry(&["reject"], &["value", "*arguments", "**options"], "the items that fail a test, or are false", |call| {
        select(call, false, false)
    }),
    entry(
        &["selectattr"],
        &["value", "*arguments", "**options"],
        "the items whose attribute passes a test, or is true",
        |call| select(call, true, true),
    ),
    entry(
        &["rejectattr"],
        &["value", "*arguments", "**options"],
        "the items whose attribute fails a test, or is false",
        |call| select(call, true, false),
    ),
    entry(&["join"], &["value", "d", "attribute"], "the items as one text with a separator", join),
    entry(&["first"], &["value"], "the first item", |call| end(call, false)),
    entry(&["last"], &["value"], "the last item", |call| end(call, true)),
    entry(&["length", "count"], &["value"], "how many items", length),
    entry(&["reverse"], &["value"], "in the opposite order", reverse),
    entry(&["sort"], &["value", "reverse", "case_sensitive", "attribute"], "in order, by attributes if given", sort),
    entry(&["min"], &["value", "case_sensitive", "attribute"], "the smallest item", |call| extreme(call, false)),
    entry(&["max"], &["value", "case_sensitive", "attribute"], "the largest item", |call| extreme(call, true)),
    entry(&["sum"], &["value", "attribute", "start"], "the sum of the items", sum),
    entry(&["batch"], &["value", "linecount", "fill_with"], "lists of so many items each", batch),
    entry(&["slice"], &["value", "slices", "fill_with"], "so many lists of equal length", slice),
    entry(
        &["groupby"],
        &["value", "attribute", "default", "case_sensitive"],
        "pairs of an attribute's value and the items that have it",
        groupby,
    ),
    entry(&["flatten"], &["value", "levels", "skip_nulls"], "with inner lists dissolved", flatten),
    entry(&["zip"], &["value", "*lists"], "lists of the items at the same place", |call| zip(call, None)),
    entry(&["zip_longest"], &["value", "*lists", "**options"], "as zip, up to the longest list", |call| {
        let fill = call.named.iter().find(|(name, _)| &**name == "fillvalue").map(|(_, value)| value.clone());
        zip(call, Some(fill.unwrap_or_default()))
    }),
    entry(&["product"], &["value", "*lists", "**options"], "every combination of one item of each list", product),
    entry(&["permutations"], &["value", "r"], "every order of (so many of) the items", |call| choose(call, true)),
    entry(&["combinations"], &["value", "r"], "every choice of so many items", |call| choose(call, false)),
    entry(
        &["subelements"],
        &["value", "subelements", "skip_missing"],
        "each item with each element of a list in it",
        subelements,
    ),
    entry_for_undefined(
        &["extract"],
        &["value", "container", "morekeys"],
        "what the container holds at this key",
        extract,
    ),
    entry(&["random"], &["value", "start", "step", "seed"], "a random item, or a random number below this one", random),
    entry(&["shuffle"], &["value", "seed"], "in random order", shuffle),
];

fn map(call: &Call<'_>) -> Result<Value> {
    let items = call.items()?;
    let attribute = call.named.iter().find(|(name, _)| &**name == "attribute").map(|(_, value)| value);
    if let Some(attribute) = attribute
        && call.rest.is_empty()
    {
        let default = call.named.iter().find(|(name, _)| &**name == "default").map(|(_, value)| value);
        if let Some((name, _)) = call.named.iter().find(|(name, _)| !matches!(&**name, "attribute" | "default")) {
            return Err(TemplateError::failed(format!("Unexpected keyword argument '{name}'")));
        }
        let out = items
            .iter()
            .map(|item| {
                let found = get_path(call.context, item, attribute)?;
                Ok(match default {
                    Some(default) if found.is_undefined() => default.clone(),
                    _ => found,
                })
            })
            .collect::<Result<_>>()?;
        return Ok(Value::list(out));
    }
    let Some((name, arguments)) = call.rest.split_first() else {
        return Err(TemplateError::failed("map requires a filter argument"));
    };
    let name = text_of(name)?;
    let out = items
        .into_iter()
        .map(|item| {
            let mut positional = vec![item];
            positional.extend_from_slice(arguments);
            super::call(call.context, &name, positional, call.named.clone())
        })
        .collect::<Result<_>>()?;
    Ok(Value::list(out))
}

fn select(call: &Call<'_>, by_attribute: bool, wanted: bool) -> Result<Value> {
    let mut arguments = call.rest.as_slice();
    let mut attribute = None;
    if by_attribute {
        let Some((first, rest)) = arguments.split_first() else {
            return Err(TemplateError::failed("Missing parameter for attribute name"));
        };
        attribute = Some(first);
        arguments = rest;
    }
    let test = arguments.split_first();
    let mut out = Vec::new();
    for item in call.items()? {
        let value = match attribute {
            Some(attribute) => get_path(call.context, &item, attribute)?,
            None => item.clone(),
        };
        let passes = match test {
            Some((name, arguments)) => {
                let mut positional = vec![value];
                positional.extend_from_slice(arguments);
                tests::call(call.context, &text_of(name)?, positional, call.named.clone())?
            }
            None => {
                if let Value::Undefined(reason) = &value {
                    return Err(TemplateError::undefined(reason));
                }
                value.is_truthy()
            }
        };
        if passes == wanted {
            out.push(item);
        }
    }
    Ok(Value::list(out))
}

fn join(call: &Call<'_>) -> Result<Value> {
    let separator = call.text_or(1, "")?;
    let value = match call.given(2) {
        Some(attribute) => {
            let items = call.items()?;
            Value::list(items.iter().map(|item| get_path(call.context, item, attribute)).collect::<Result<Vec<_>>>()?)
        }
        None => call.value()?.clone(),
    };
    Ok(Value::from(texts(&value)?.join(&separator)))
}

fn end(call: &Call<'_>, last: bool) -> Result<Value> {
    let mut items = call.items()?;
    let item = if last {
        items.pop()
    } else if items.is_empty() {
        None
    } else {
        Some(items.swap_remove(0))
    };
    let place = if last { "last" } else { "first" };
    Ok(item.unwrap_or_else(|| Value::undefined(format!("No {place} item, sequence was empty."))))
}

fn length(call: &Call<'_>) -> Result<Value> {
    Ok(Value::from(match call.value()?.spelled() {
        Value::Str(text) => text.as_str().chars().count(),
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        Value::Object(object) if object.describe().is_none() => {
            object.keys_are_settled()?;
            object.keys().len()
        }
        Value::Undefined(_) => 0,
        other => return Err(TemplateError::failed(format!("object of type '{}' has no len()", other.type_name()))),
    }))
}

fn reverse(call: &Call<'_>) -> Result<Value> {
    if let Value::Str(text) = call.value()?.spelled() {
        return Ok(Value::from(text.as_str().chars().rev().collect::<String>()));
    }
    let mut items = call.items()?;
    items.reverse();
    Ok(Value::list(items))
}

/// The value that order and equality go by: letters in lower case unless case counts.
fn folded(value: Value, case_sensitive: bool) -> Value {
    match value {
        Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
        other => other,
    }
}

fn attribute_key(call: &Call<'_>, item: &Value, attribute: Option<&Value>, case_sensitive: bool) -> Result<Value> {
    let value = match attribute {
        Some(attribute) => get_path(call.context, item, attribute)?,
        None => item.clone(),
    };
    check_defined(&value)?;
    Ok(folded(value, case_sensitive))
}

fn sort(call: &Call<'_>) -> Result<Value> {
    let (reverse, case_sensitive) = (call.flag(1, false)?, call.flag(2, false)?);
    let attributes: Vec<Value> = match call.given(3) {
        Some(Value::Str(names)) => names.as_str().split(',').map(Value::from).collect(),
        Some(other) => vec![other.clone()],
        None => Vec::new(),
    };
    let sorted = super::sorted_by(call.items()?, reverse, |item| {
        if attributes.is_empty() {
            return attribute_key(call, item, None, case_sensitive);
        }
        let keys = attributes
            .iter()
            .map(|attribute| attribute_key(call, item, Some(attribute), case_sensitive))
            .collect::<Result<Vec<_>>>()?;
        Ok(Value::list(keys))
    })?;
    Ok(Value::list(sorted))
}

fn extreme(call: &Call<'_>, largest: bool) -> Result<Value> {
    let case_sensitive = call.flag(1, false)?;
    let attribute = call.given(2);
    let mut best: Option<(Value, Value)> = None;
    for item in call.items()? {
        let key = attribute_key(call, &item, attribute, case_sensitive)?;
        let better = match &best {
            None => true,
            Some((known, _)) => {
                let order = operators::compare(&key, known, if largest { ">" } else { "<" })?;
                order == Some(if largest { std::cmp::Ordering::Greater } else { std::cmp::Ordering::Less })
            }
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(_, item)| item))
}

fn sum(call: &Call<'_>) -> Result<Value> {
    let start = call.optional(2).cloned().unwrap_or(Value::Int(0));
    match call.given(1) {
        Some(attribute) => {
            let values =
                call.items()?.iter().map(|item| get_path(call.context, item, attribute)).collect::<Result<Vec<_>>>()?;
            operators::sum(&Value::list(values), start)
        }
        None => operators::sum(call.value()?, start),
    }
}

fn batch(call: &Call<'_>) -> Result<Value> {
    let size = usize::try_from(call.required_int(1)?).unwrap_or(0).max(1);
    let mut out = Vec::new();
    for chunk in call.items()?.chunks(size) {
        let mut chunk = chunk.to_vec();
        if let Some(fill) = call.given(2) {
            chunk.resize(size.min(1_000_000), fill.clone());
        }
        out.push(Value::list(chunk));
    }
    Ok(Value::list(out))
}

fn slice(call: &Call<'_>) -> Result<Value> {
    let items = call.items()?;
    let slices = usize::try_from(call.required_int(1)?).unwrap_or(0);
    if slices == 0 {
        return Err(TemplateError::failed("the number of slices must be greater than 0"));
    }
    let (each, longer) = (items.len() / slices, items.len() % slices);
    let mut rest = items.into_iter();
    let mut out = Vec::new();
    for index in 0..slices.min(1_000_000) {
        let count = each + usize::from(index < longer);
        let mut part: Vec<Value> = rest.by_ref().take(count).collect();
        if let Some(fill) = call.given(2)
            && longer > 0
            && index >= longer
        {
            part.push(fill.clone());
        }
        out.push(Value::list(part));
    }
    Ok(Value::list(out))
}

fn groupby(call: &Call<'_>) -> Result<Value> {
    let attribute = call.required(1)?;
    let case_sensitive = call.flag(3, false)?;
    let key = |item: &Value| -> Result<Value> {
        let found = get_path(call.context, item, attribute)?;
        Ok(match (found, call.given(2)) {
            (Value::Undefined(_), Some(default)) => default.clone(),
            (found, _) => found,
        })
    };
    let sorted = super::sorted_by(call.items()?, false, |item| {
        let value = key(item)?;
        check_defined(&value)?;
        Ok(folded(value, case_sensitive))
    })?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for item in sorted {
        let own = key(&item)?;
        let compared = folded(own.clone(), case_sensitive);
        match groups.last_mut() {
            Some((_, known, items)) if operators::equal(known, &compared)? => items.push(item),
            _ => groups.push((own, compared, vec![item])),
        }
    }
    Ok(Value::list(groups.into_iter().map(|(key, _, items)| Value::list(vec![key, Value::list(items)])).collect()))
}

fn flatten(call: &Call<'_>) -> Result<Value> {
    let levels = match call.given(1) {
        Some(_) => Some(call.required_int(1)?),
        None => None,
    };
    let skip_nulls = call.flag(2, true)?;
    let mut out = Vec::new();
    flatten_into(&call.items()?, levels, skip_nulls, &mut out);
    Ok(Value::list(out))
}

/// Appends the items, inner lists dissolved down to `levels` (all if `None`).
pub fn flatten_into(items: &[Value], levels: Option<i64>, skip_nulls: bool, out: &mut Vec<Value>) {
    for item in items {
        match item {
            Value::Null if skip_nulls => {}
            Value::Str(text) if skip_nulls && matches!(text.as_str(), "None" | "null") => {}
            Value::List(inner) if levels.is_none_or(|levels| levels >= 1) => {
                flatten_into(inner, levels.map(|levels| levels - 1), skip_nulls, out);
            }
            other => out.push(other.clone()),
        }
    }
}

fn zip(call: &Call<'_>, fill: Option<Value>) -> Result<Value> {
    let mut lists = vec![call.items()?];
    for list in &call.rest {
        lists.push(iterate(list)?);
    }
    let lengths = lists.iter().map(Vec::len);
    let count = if fill.is_some() { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let fill = fill.unwrap_or_default();
    let row = |index: usize| Value::list(lists.iter().map(|list| list.get(index).unwrap_or(&fill).clone()).collect());
    Ok(Value::list((0..count).map(row).collect()))
}

/// More results than this are a mistake.
const RESULT_LIMIT: usize = 5_000_000;

/// Longer choices are a mistake: their number is beyond all limits.
const CHOICE_LIMIT: usize = 500;

fn product(call: &Call<'_>) -> Result<Value> {
    let mut lists = vec![call.items()?];
    for list in &call.rest {
        lists.push(iterate(list)?);
    }
    if let Some((_, times)) = call.named.iter().find(|(name, _)| &**name == "repeat") {
        let times = times.as_int().and_then(|times| usize::try_from(times).ok()).unwrap_or(1).min(64);
        lists = std::iter::repeat_n(lists, times).flatten().collect();
    }
    cartesian(&lists).map(Value::list)
}

/// Every combination of one item of each list.
pub fn cartesian(lists: &[Vec<Value>]) -> Result<Vec<Value>> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for list in lists {
        if rows.len().saturating_mul(list.len()) > RESULT_LIMIT {
            return Err(TemplateError::failed("too many combinations"));
        }
        rows = rows
            .into_iter()
            .flat_map(|row| {
                list.iter().map(move |item| {
                    let mut row = row.clone();
                    row.push(item.clone());
                    row
                })
            })
            .collect();
    }
    Ok(rows.into_iter().map(Value::list).collect())
}

fn choose(call: &Call<'_>, ordered: bool) -> Result<Value> {
    let items = call.items()?;
    let size = match call.given(1) {
        Some(_) => {
            usize::try_from(call.required_int(1)?).map_err(|_| TemplateError::failed("r must be non-negative"))?
        }
        None if ordered => items.len(),
        None => return Err(TemplateError::failed("missing the required argument `r`")),
    };
    if size > CHOICE_LIMIT {
        return Err(TemplateError::failed("too many combinations"));
    }
    fn extend(
        items: &[Value],
        size: usize,
        ordered: bool,
        chosen: &mut Vec<usize>,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        if chosen.len() == size {
            if out.len() >= RESULT_LIMIT {
                return Err(TemplateError::failed("too many combinations"));
            }
            out.push(Value::list(chosen.iter().map(|index| items[*index].clone()).collect()));
            return Ok(());
        }
        let start = if ordered { 0 } else { chosen.last().map_or(0, |last| last + 1) };
        for index in start..items.len() {
            if ordered && chosen.contains(&index) {
                continue;
            }
            chosen.push(index);
            extend(items, size, ordered, chosen, out)?;
            chosen.pop();
        }
        Ok(())
    }
    let mut out = Vec::new();
    if size <= items.len() {
        extend(&items, size, ordered, &mut Vec::new(), &mut out)?;
    }
    Ok(Value::list(out))
}

fn subelements(call: &Call<'_>) -> Result<Value> {
    subelements_of(call.value()?, call.required(1)?, call.flag(2, false)?).map(Value::list)
}

/// Pairs of each element and each item of the list that a dotted path leads to in it.
fn subelements_of(value: &Value, path: &Value, skip_missing: bool) -> Result<Vec<Value>> {
    let elements: Vec<Value> = match value {
        Value::List(items) => items.to_vec(),
        other => match as_map(other)? {
            Some(map) => map.values().cloned().collect(),
            None => return Err(TemplateError::as_ansible("obj must be a list of dicts or a nested dict")),
        },
    };
    let keys: Vec<String> = match path {
        Value::Str(path) => path.as_str().split('.').map(str::to_owned).collect(),
        Value::List(keys) => {
            keys.iter().map(|key| text_of(key).map(std::borrow::Cow::into_owned)).collect::<Result<_>>()?
        }
        _ => return Err(TemplateError::failed("subelements must be a list or a string")),
    };
    let mut out = Vec::new();
    for element in elements {
        let mut found = element.clone();
        for key in &keys {
            let map = as_map(&found)?.ok_or_else(|| {
                TemplateError::failed(format!("the key {key} should point to a dictionary, got '{}'", found.to_text()))
            })?;
            found = match map.get(key.as_str()) {
                Some(inner) => inner.clone(),
                None if skip_missing => Value::list(Vec::new()),
                None => {
                    return Err(TemplateError::failed(format!("could not find '{key}' key in iterated item")));
                }
            };
            if skip_missing && found.as_list().is_some_and(<[_]>::is_empty) {
                break;
            }
        }
        let Value::List(items) = &found else {
            return Err(TemplateError::failed(format!(
                "the key '{}' should point to a list, got {}",
                keys.join("."),
                crate::template::call::describe(&found)
            )));
        };
        out.extend(items.iter().map(|item| Value::list(vec![element.clone(), item.clone()])));
    }
    Ok(out)
}

fn extract(call: &Call<'_>) -> Result<Value> {
    let mut keys = vec![call.value()?.clone()];
    match call.given(2) {
        Some(Value::List(more)) => keys.extend(more.iter().cloned()),
        Some(key) => keys.push(key.clone()),
        None => {}
    }
    let mut value = call.required(1)?.clone();
    for key in &keys {
        check_defined(key)?;
        value = crate::template::call::get_item(call.context, &value, key)?;
    }
    Ok(value)
}

fn random(call: &Call<'_>) -> Result<Value> {
    let mut seeded = match call.given(3) {
        Some(seed) => Some(Twister::seeded(seed)?),
        None => None,
    };
    let mut below = |limit: u64| match &mut seeded {
        Some(twister) => twister.below(limit),
        None => random_below(limit),
    };
    match call.value()? {
        Value::Int(_) | Value::Bool(_) => {
            let end = call.required_int(0)?;
            let start = if call.given(1).is_some() { call.required_int(1)? } else { 0 };
            let step = if call.given(2).is_some() { call.required_int(2)? } else { 1 };
            let step = if step == 0 { 1 } else { step };
            let (low, high, stride) = (i128::from(start), i128::from(end), i128::from(step));
            let count = if stride > 0 {
                (high - low + stride - 1).div_euclid(stride)
            } else {
                (high - low + stride + 1) / stride
            };
            match u64::try_from(count) {
                Ok(count) if count > 0 => {
                    let number = low + stride * i128::from(below(count)?);
                    Ok(Value::big(num_bigint::BigInt::from(number)))
                }
                _ => Err(TemplateError::failed(format!("empty range for randrange({start}, {end}, {step})"))),
            }
        }
        value => {
            if call.given(1).is_some() || call.given(2).is_some() {
                return Err(TemplateError::failed("start and step can only be used with integer values"));
            }
            let items = iterate(value)
                .map_err(|_| TemplateError::failed("random can only be used on sequences and integers"))?;
            if items.is_empty() {
                return Err(TemplateError::failed("Cannot choose from an empty sequence"));
            }
            Ok(items[below(items.len() as u64)? as usize].clone())
        }
    }
}

fn shuffle(call: &Call<'_>) -> Result<Value> {
    // what cannot be iterated comes back as it is
    if matches!(call.value()?, Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_) | Value::Null) {
        return Ok(call.value()?.clone());
    }
    let mut items = call.items()?;
    let mut seeded = match call.given(1).filter(|seed| seed.is_truthy()) {
        Some(seed) => Some(Twister::seeded(seed)?),
        None => None,
    };
    for index in (1..items.len()).rev() {
        let limit = index as u64 + 1;
        let other = match &mut seeded {
            Some(twister) => twister.below(limit)?,
            None => random_below(limit)?,
        };
        items.swap(index, other as usize);
    }
    Ok(Value::list(items))
}
