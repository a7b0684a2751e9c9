//! Filters that take lists as sets. Where Python's sets have no order, ours keep the first occurrence's.

use indexmap::IndexSet;

use super::Filter;
use crate::template::call::{Call, check_defined, entry, get_path, iterate};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["unique"], &["value", "case_sensitive", "attribute"], "each item once", unique),
    entry(&["union"], &["value", "other"], "the items of both lists, each once", |call| {
        let (one, other) = both(call)?;
        Ok(list(one.into_iter().chain(other)))
    }),
    entry(&["intersect"], &["value", "other"], "the items that both lists have", |call| {
        let (one, other) = both(call)?;
        Ok(list(one.into_iter().filter(|item| other.contains(item))))
    }),
    entry(&["difference"], &["value", "other"], "the items that the other list has not", |call| {
        let (one, other) = both(call)?;
        Ok(list(one.into_iter().filter(|item| !other.contains(item))))
    }),
    entry(&["symmetric_difference"], &["value", "other"], "the items that only one of the lists has", |call| {
        let (one, other) = both(call)?;
        let only_other: Vec<_> = other.iter().filter(|item| !one.contains(*item)).cloned().collect();
        Ok(list(one.into_iter().filter(|item| !other.contains(item)).chain(only_other)))
    }),
];

fn both(call: &Call<'_>) -> Result<(IndexSet<Value>, IndexSet<Value>)> {
    check_defined(call.value()?)?;
    check_defined(call.required(1)?)?;
    Ok((call.items()?.into_iter().collect(), iterate(call.required(1)?)?.into_iter().collect()))
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    let items: IndexSet<Value> = items.collect();
    Value::list(items.into_iter().collect())
}

fn unique(call: &Call<'_>) -> Result<Value> {
    let case_sensitive = call.flag(1, false)?;
    let mut seen = IndexSet::new();
    let mut out = Vec::new();
    let items = call.items()?;
    // Python cannot hash these: then Ansible compares item by item, and knows neither letter case nor attributes
    let attributes = call
        .given(2)
        .map(|attribute| items.iter().map(|item| get_path(call.context, item, attribute)).collect::<Result<Vec<_>>>());
    let compared = attributes.transpose()?;
    let is_hashable = |item: &Value| !matches!(item, Value::List(_) | Value::Map(_) | Value::Object(_));
    if !compared.as_ref().unwrap_or(&items).iter().all(is_hashable) {
        let says_case = call.given(1).is_some_and(|flag| !flag.is_truthy());
        if compared.is_some() || says_case {
            return Err(TemplateError::as_ansible(
                "Jinja2's unique filter failed and we cannot fall back to Ansible's version as it does not support the \
                 parameters supplied: unhashable type: an item is a list or a map",
            ));
        }
        items.iter().try_for_each(check_defined)?;
        return Ok(list(items.into_iter()));
    }
    for item in items {
        let value = match call.given(2) {
            Some(attribute) => get_path(call.context, &item, attribute)?,
            None => item.clone(),
        };
        check_defined(&value)?;
        let key = match value {
            Value::Str(text) if !case_sensitive => Value::from(text.as_str().to_lowercase()),
            other => other,
        };
        if seen.insert(key) {
            out.push(item);
        }
    }
    Ok(Value::list(out))
}
