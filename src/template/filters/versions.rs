//! Filters about version numbers.

use std::cmp::Ordering;

use super::Filter;
use crate::template::call::{entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::version;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[entry(
    &["version_sort", "community.general.version_sort"],
    &["value", "reverse"],
    "the texts in the order of their version numbers",
    |call| {
        let reverse = call.flag(1, false)?;
        let mut keyed = call
            .items()?
            .into_iter()
            .map(|item| Ok((text_of(&item)?.into_owned(), item)))
            .collect::<Result<Vec<_>>>()?;
        let mut failure = None;
        keyed.sort_by(|(one, _), (other, _)| {
            let (one, other) = if reverse { (other, one) } else { (one, other) };
            version::loose(one, other).unwrap_or_else(|reason| {
                failure.get_or_insert(reason);
                Ordering::Equal
            })
        });
        match failure {
            Some(reason) => Err(TemplateError::failed(reason)),
            None => Ok(Value::list(keyed.into_iter().map(|(_, item)| item).collect())),
        }
    },
)];
