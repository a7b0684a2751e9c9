//! Filters: one table a theme; adding one is one function and one line.

mod bcrypt;
mod encoding;
mod hardware;
mod hashing;
mod lists;
mod maps;
mod markup;
mod math;
mod network;
mod paths;
mod regex;
mod sets;
mod subnets;
mod text;
mod time;
mod units;
mod values;
mod vault;
mod versions;
mod yaml_json;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

pub use hashing::{HashOptions, hash_password, hash_salt};
pub use lists::{cartesian, flatten_into};
pub use paths::{glob, normalize};
pub use values::parse_int;
pub use yaml_json::{parse_json, to_compact_json};

use super::call::{Entry, Names};
use super::error::{Result, TemplateError, TemplateErrorKind};
use super::eval::{Evaluator, operators};
use super::{Context, Syntax, parse, tests};
use crate::value::{Text, Value};

pub type Filter = Entry<Value>;

static TABLES: &[&[Filter]] = &[
    values::FILTERS,
    text::FILTERS,
    markup::FILTERS,
    lists::FILTERS,
    sets::FILTERS,
    maps::FILTERS,
    math::FILTERS,
    units::FILTERS,
    paths::FILTERS,
    encoding::FILTERS,
    hashing::FILTERS,
    regex::FILTERS,
    yaml_json::FILTERS,
    time::FILTERS,
    network::FILTERS,
    subnets::FILTERS,
    hardware::FILTERS,
    vault::FILTERS,
    versions::FILTERS,
];

fn by_name() -> &'static HashMap<&'static str, &'static Filter> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Filter>> = LazyLock::new(|| {
        TABLES
            .iter()
            .flat_map(|table| table.iter())
            .flat_map(|filter| filter.names.iter().map(move |name| (*name, filter)))
            .collect()
    });
    &BY_NAME
}

/// The names of all filters with what each does, in alphabetical order.
pub fn documentation() -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = by_name().iter().map(|(name, filter)| (*name, filter.doc)).collect();
    names.sort_unstable();
    names
}

/// The names of each filter, and its parameters.
pub(super) fn signatures() -> impl Iterator<Item = Names> {
    TABLES.iter().flat_map(|table| table.iter()).map(|filter| (filter.names, filter.parameters))
}

/// A name without the collection that every Ansible has.
pub fn short_name(name: &str) -> &str {
    name.strip_prefix("ansible.builtin.").or_else(|| name.strip_prefix("ansible.legacy.")).unwrap_or(name)
}

/// Applies a filter; the first positional argument is its input.
pub fn call(context: &Context, name: &str, positional: Vec<Value>, named: Vec<(Arc<str>, Value)>) -> Result<Value> {
    let short = short_name(name);
    if let Some(filter) = by_name().get(short) {
        let result = filter.call(context, positional, named).map_err(|error| explain(error, short))?;
        return Ok(context.results.of_filter(short, result));
    }
    // tests could be written as filters before Ansible 2.9
    if tests::find(short).is_some() {
        return tests::call(context, short, positional, named).map(Value::Bool);
    }
    let bare = name.rsplit('.').next().unwrap_or(name);
    if let Some(path) = context.search.filter(bare) {
        return own(context, bare, &path, positional, named);
    }
    let near = crate::error::nearest(short, by_name().keys().copied());
    let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
    Err(TemplateError::syntax(format!("no filter named '{name}'{hint}")))
}

/// Applies a team's own filter: the macro `name` of the file. Its text is the result, without newlines at the end.
fn own(
    context: &Context,
    name: &str,
    path: &std::path::Path,
    positional: Vec<Value>,
    named: Vec<(Arc<str>, Value)>,
) -> Result<Value> {
    let file = path.to_string_lossy();
    let text = std::fs::read_to_string(path)
        .map_err(|error| TemplateError::failed(format!("cannot read the filter `{name}` of `{file}`: {error}")))?;
    let template = parse::file_text(&text, &file, &Syntax::file())?;
    // a filter that applies itself would never end
    let context = context.enter(name, &Text::data(text))?;
    match Evaluator::new(&context, &template.name).macro_value(&template, name, positional, named)? {
        Some(Value::Str(text)) => Ok(Value::from(text.as_str().trim_end_matches('\n'))),
        Some(other) => Ok(other),
        None => Err(TemplateError::failed(format!(
            "`{file}` has no macro `{name}`: the filter is `{{% macro {name}(value) %}}`"
        ))),
    }
}

/// True if there is a filter (or a test usable as one) of that name.
pub fn exists(name: &str) -> bool {
    let short = short_name(name);
    by_name().contains_key(short) || tests::find(short).is_some()
}

fn explain(error: TemplateError, name: &str) -> TemplateError {
    match error.kind() {
        TemplateErrorKind::Failed => error.context(&format!("the filter `{name}` failed")),
        _ => error,
    }
}

/// Sorts as Python does: stable, an error between types that have no order.
pub fn sorted(items: Vec<Value>, reverse: bool) -> Result<Vec<Value>> {
    sorted_by(items, reverse, |item| Ok(item.clone()))
}

/// Sorts by a key of each item.
pub fn sorted_by(items: Vec<Value>, reverse: bool, key: impl Fn(&Value) -> Result<Value>) -> Result<Vec<Value>> {
    let mut keyed = items.into_iter().map(|item| Ok((key(&item)?, item))).collect::<Result<Vec<_>>>()?;
    let mut failure = None;
    let mut order = |left: &Value, right: &Value| match operators::compare(left, right, "<") {
        Ok(order) => order.unwrap_or(Ordering::Equal),
        Err(error) => {
            failure.get_or_insert(error);
            Ordering::Equal
        }
    };
    // a reversed comparison keeps equal items in their order, as Python's `reverse` does
    keyed.sort_by(|(left, _), (right, _)| if reverse { order(right, left) } else { order(left, right) });
    match failure {
        Some(error) => Err(error),
        None => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
    }
}
