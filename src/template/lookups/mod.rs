//! Lookups (`lookup('…')`, `query('…')`, `with_…`): one table a theme.

mod commands;
mod config;
mod csvfile;
mod files;
mod hosts;
mod ini;
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
use super::call::{Call, Entry, Names, check_defined};
use super::error::{Result, TemplateError, TemplateErrorKind};
use super::filters::short_name;
use crate::value::Value;

/// A lookup: its result is always a list. Its parameters are its options; the terms are positional.
pub type Lookup = Entry<Vec<Value>>;

static TABLES: &[&[Lookup]] = &[
    lists::LOOKUPS,
    sequence::LOOKUPS,
    variables::LOOKUPS,
    config::LOOKUPS,
    files::LOOKUPS,
    ini::LOOKUPS,
    csvfile::LOOKUPS,
    commands::LOOKUPS,
    password::LOOKUPS,
    hosts::LOOKUPS,
    web::LOOKUPS,
];

/// The tables of the lookups that look at the controller's files.
static OF_CONTROLLER: &[&[Lookup]] =
    &[files::LOOKUPS, ini::LOOKUPS, csvfile::LOOKUPS, commands::LOOKUPS, password::LOOKUPS, web::LOOKUPS];

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

/// The names of each lookup, and its parameters.
pub(super) fn signatures() -> impl Iterator<Item = Names> {
    TABLES.iter().flat_map(|table| table.iter()).map(|lookup| (lookup.names, lookup.parameters))
}

/// The items of `with_<name>`. The terms are rendered already; what is no list is the only term.
pub fn lookup(context: &Context, name: &str, terms: Value) -> Result<Vec<Value>> {
    let terms = match terms.spelled() {
        Value::List(items) => items.to_vec(),
        other => vec![other.clone()],
    };
    run(context, name, terms, Vec::new()).map(Option::unwrap_or_default).map_err(|(error, _)| error)
}

/// Runs a lookup; `None` if it failed and the option `errors` says that this is none.
pub fn call(
    context: &Context,
    name: &str,
    terms: Vec<Value>,
    options: Vec<(Arc<str>, Value)>,
) -> Result<Option<Vec<Value>>> {
    // only a loop may leave out files whose names are not known
    terms.iter().filter(|_| short_name(name) == "first_found").try_for_each(check_defined)?;
    run(context, name, terms, options).map_err(|(error, short)| explain(error, short))
}

/// Runs a lookup. An error comes as the lookup words it, with the lookup's name.
fn run<'n>(
    context: &Context,
    name: &'n str,
    terms: Vec<Value>,
    mut options: Vec<(Arc<str>, Value)>,
) -> Result<Option<Vec<Value>>, (TemplateError, &'n str)> {
    let short = short_name(name);
    let fail = |error: TemplateError| (error, "");
    if context.from_data {
        return Err(fail(TemplateError::failed(format!(
            "the condition's rendered text calls the lookup `{short}`: that is refused, it may come from a host; \
             write the condition without `{{{{ }}}}`"
        ))));
    }
    let lookup = find(name).map_err(fail)?;
    if OF_CONTROLLER.iter().any(|table| table.iter().any(|of_table| std::ptr::eq(of_table, lookup))) {
        context.scope.controller_is_settled().map_err(|interruption| fail(interruption.into()))?;
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
            _ => Err((error, short)),
        },
        other => other.map(Some).map_err(fail),
    }
}

/// The lookup of a name; the error says which name is near.
pub fn find(name: &str) -> Result<&'static Lookup> {
    let short = short_name(name);
    if let Some(lookup) = by_name().get(short) {
        return Ok(lookup);
    }
    let near = crate::error::nearest(short, by_name().keys().copied());
    let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    Err(TemplateError::failed(format!("the lookup plugin '{name}' was not found{hint}")))
}

fn explain(error: TemplateError, name: &str) -> TemplateError {
    match error.kind() {
        TemplateErrorKind::Failed | TemplateErrorKind::Missing if !name.is_empty() => {
            error.context(&format!("the lookup `{name}` failed"))
        }
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

/// Splits `key words option=value other="with blanks"`: the words that are no options, quotes and all, and the options
/// without their quotes, with `\t`, `\n` and the like decoded.
fn key_values(text: &str) -> Result<(String, Vec<(String, String)>)> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(open) if open == letter => quote = None,
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None if letter.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                continue;
            }
            _ => {}
        }
        word.push(letter);
    }
    if quote.is_some() {
        return Err(TemplateError::failed(format!("a quote is not closed in `{text}`")));
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    let mut key: Vec<&str> = Vec::new();
    let mut options = Vec::new();
    for word in &words {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() && !name.ends_with('\\') => {
                options.push((name.to_owned(), unescaped(unquoted(value))));
            }
            _ => key.push(word),
        }
    }
    Ok((key.join(" "), options))
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Escapes as in Python's texts: `\t`, `\n`, `\r`, `\\`, `\x1a`.
fn unescaped(value: &str) -> String {
    let mut out = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        let rest = letters.as_str();
        match (letter, rest.chars().next()) {
            ('\\', Some(escaped @ ('t' | 'n' | 'r' | '\\'))) => {
                out.push(match escaped {
                    't' => '\t',
                    'n' => '\n',
                    'r' => '\r',
                    other => other,
                });
                letters.next();
            }
            ('\\', Some('x')) => match rest.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => {
                    out.push(char::from(byte));
                    letters = rest[3..].chars();
                }
                None => out.push(letter),
            },
            _ => out.push(letter),
        }
    }
    out
}
