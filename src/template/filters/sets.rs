//! Filters that take lists as sets. Where Python's sets have no order, ours keep the first occurrence's.

use indexmap::IndexSet;

use super::Filter;
use crate::template::call::{Call, check_defined, entry, get_path, iterate};
use crate::template::error::Result;
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
    for item in call.items()? {
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
