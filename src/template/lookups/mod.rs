//! Lookups (`lookup('…')`, `query('…')`, `with_…`): one table a theme.

mod commands;
mod data;
mod files;
mod hosts;
mod lists;
mod password;
mod sequence;
#[cfg(test)]
mod tests;
mod variables;
mod web;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::Context;
use super::call::{Call, Entry, check_defined};
use super::error::{Result, TemplateError, TemplateErrorKind};
use super::filters::short_name;
use crate::value::Value;

/// A lookup: its result is always a list. Its parameters are its options; the terms are positional.
pub type Lookup = Entry<Vec<Value>>;

static TABLES: &[&[Lookup]] = &[
    lists::LOOKUPS,
    sequence::LOOKUPS,
    variables::LOOKUPS,
    files::LOOKUPS,
    data::LOOKUPS,
    commands::LOOKUPS,
    password::LOOKUPS,
    hosts::LOOKUPS,
    web::LOOKUPS,
];

/// The tables of the lookups that look at the controller's files.
static OF_CONTROLLER: &[&[Lookup]] =
    &[files::LOOKUPS, data::LOOKUPS, commands::LOOKUPS, password::LOOKUPS, web::LOOKUPS];

/// Lookups of Ansible that are refused, with the reason.
const REFUSED: &[(&str, &str)] = &[("config", "trimtab has no such settings; write the value as a variable")];

fn by_name() -> &'static HashMap<&'static str, &'static Lookup> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Lookup>> = LazyLock::new(|| {
        TABLES
            .iter()
            .flat_map(|table| table.iter())
            .flat_map(|lookup| lookup.names.iter().map(move |name| (*name, lookup)))
            .collect()
    });
    &BY_NAME
}

/// The names of all lookups, in alphabetical order.
pub fn lookup_names() -> Vec<&'static str> {
    let mut names: Vec<_> = by_name().keys().copied().collect();
    names.sort_unstable();
    names
}

/// What each lookup does, in alphabetical order.
pub fn documentation() -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = by_name().iter().map(|(name, lookup)| (*name, lookup.doc)).collect();
    names.sort_unstable();
    names
}

/// The items of `with_<name>`. The terms are rendered already; what is no list is the only term.
pub fn lookup(context: &Context, name: &str, terms: Value) -> Result<Vec<Value>> {
    let terms = match terms {
        Value::List(items) => items.to_vec(),
        other => vec![other],
    };
    call(context, name, terms, Vec::new()).map(Option::unwrap_or_default)
}

/// Runs a lookup; `None` if it failed and the option `errors` says that this is none.
pub fn call(
    context: &Context,
    name: &str,
    terms: Vec<Value>,
    mut options: Vec<(Arc<str>, Value)>,
) -> Result<Option<Vec<Value>>> {
    let short = short_name(name);
    if context.from_data {
        return Err(TemplateError::failed(format!(
            "the condition's rendered text calls the lookup `{short}`: that is refused, it may come from a host; \
             write the condition without `{{{{ }}}}`"
        )));
    }
    let Some(lookup) = by_name().get(short) else {
        if let Some((_, hint)) = REFUSED.iter().find(|(refused, _)| *refused == short) {
            return Err(TemplateError::failed(format!("the lookup `{short}` is not supported: {hint}")));
        }
        let near = crate::error::nearest(short, by_name().keys().copied());
        let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        return Err(TemplateError::failed(format!("the lookup plugin '{name}' was not found{hint}")));
    };
    if OF_CONTROLLER.iter().any(|table| table.iter().any(|of_table| std::ptr::eq(of_table, *lookup))) {
        context.scope.controller_is_settled()?;
    }
    let mut on_error = String::new();
    options.retain(|(option, value)| {
        let is_errors = &**option == "errors";
        if is_errors {
            on_error = value.to_text().into_owned();
        }
        !is_errors
    });
    let result = (|| {
        if !lookup.takes_undefined {
            terms.iter().try_for_each(check_defined)?;
        }
        let mut named = options;
        named.insert(0, (Arc::from("_terms"), Value::list(terms)));
        lookup.call(context, Vec::new(), named)
    })();
    match result {
        Err(error) if error.interruption().is_none() && !error.is_undefined() => match on_error.as_str() {
            "ignore" => Ok(None),
            "warn" => {
                context.warnings.add(format!("the lookup `{short}` failed: {}", error.message()));
                Ok(None)
            }
            _ => Err(explain(error, short)),
        },
        other => other.map(Some),
    }
}

fn explain(error: TemplateError, name: &str) -> TemplateError {
    match error.kind() {
        TemplateErrorKind::Failed | TemplateErrorKind::Missing => error.context(&format!("the lookup `{name}` failed")),
        _ => error,
    }
}

/// The terms of a lookup.
fn terms<'a>(call: &'a Call<'_>) -> Result<&'a [Value]> {
    call.list(0)
}

/// Splits `key option=value 'with blanks'` into its words, quotes removed.
fn split_words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(TemplateError::failed(format!("a quote is not closed in `{text}`")));
    }
    words.extend(word);
    Ok(words)
}
