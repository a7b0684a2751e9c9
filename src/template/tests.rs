//! Tests (`x is …`): one table; adding one is one function and one line.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use num_bigint::BigInt;
use num_traits::Zero;

use super::call::{Call, Entry, Names, as_map, check_defined, entry, entry_for_undefined, iterate, text_of};
use super::error::{Result, TemplateError, TemplateErrorKind};
use super::eval::operators;
use super::filters::short_name;
use super::tree::Operator;
use super::{Context, filters, version};
use crate::python_regex::{self as regex, Flags};
use crate::value::Value;
use crate::vault::is_encrypted;

pub type Test = Entry<bool>;

static TESTS: &[Test] = &[
    entry_for_undefined(&["defined"], &["value"], "has a value", |call| Ok(!call.value()?.is_undefined())),
    entry_for_undefined(&["undefined"], &["value"], "has no value", |call| Ok(call.value()?.is_undefined())),
    // types
    entry_for_undefined(&["none"], &["value"], "is None", |call| Ok(call.value()?.is_null())),
    entry_for_undefined(&["boolean"], &["value"], "is true or false", |call| {
        Ok(matches!(call.value()?, Value::Bool(_)))
    }),
    entry_for_undefined(&["true"], &["value"], "is true itself", |call| Ok(matches!(call.value()?, Value::Bool(true)))),
    entry_for_undefined(&["false"], &["value"], "is false itself", |call| {
        Ok(matches!(call.value()?, Value::Bool(false)))
    }),
    entry_for_undefined(&["integer"], &["value"], "is an integer", |call| {
        Ok(matches!(call.value()?, Value::Int(_) | Value::Big(_)))
    }),
    entry_for_undefined(&["float"], &["value"], "is a float", |call| Ok(matches!(call.value()?, Value::Float(_)))),
    entry_for_undefined(&["number"], &["value"], "is a number", |call| {
        Ok(matches!(call.value()?, Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Bool(_)))
    }),
    entry_for_undefined(&["string"], &["value"], "is a text", |call| Ok(matches!(call.value()?, Value::Str(_)))),
    entry_for_undefined(&["mapping"], &["value"], "is a map", |call| Ok(as_map_like(call.value()?))),
    entry(&["sequence"], &["value"], "is a list, map or text", |call| {
        Ok(matches!(call.value()?, Value::List(_) | Value::Str(_)) || as_map_like(call.value()?))
    }),
    entry(&["iterable"], &["value"], "can be iterated", |call| {
        Ok(matches!(call.value()?, Value::List(_) | Value::Str(_)) || as_map_like(call.value()?))
    }),
    entry(&["callable"], &["value"], "can be called", |call| {
        Ok(matches!(call.value()?, Value::Object(object) if object.describe().is_some()
            && super::datetime::of(call.value()?).is_none()))
    }),
    entry(&["escaped"], &["value"], "is escaped for HTML: never, here", |_| Ok(false)),
    entry(&["filter"], &["value"], "is the name of a filter", |call| Ok(filters::exists(&call.text()?))),
    entry(&["test"], &["value"], "is the name of a test", |call| Ok(find(short_name(&call.text()?)).is_some())),
    // comparison
    entry(&["eq", "equalto", "=="], &["value", "other"], "equals", |call| compare(call, Operator::Equal)),
    entry(&["ne", "!="], &["value", "other"], "does not equal", |call| compare(call, Operator::NotEqual)),
    entry(&["lt", "lessthan", "<"], &["value", "other"], "is less than", |call| compare(call, Operator::Less)),
    entry(&["le", "<="], &["value", "other"], "is at most", |call| compare(call, Operator::LessOrEqual)),
    entry(&["gt", "greaterthan", ">"], &["value", "other"], "is greater than", |call| compare(call, Operator::Greater)),
    entry(&["ge", ">="], &["value", "other"], "is at least", |call| compare(call, Operator::GreaterOrEqual)),
    entry(&["in"], &["value", "container"], "is in the list, map or text", |call| {
        operators::contains(call.required(1)?, call.value()?)
    }),
    entry(&["contains"], &["value", "item"], "has the item, key or part", |call| {
        operators::contains(call.value()?, call.required(1)?)
    }),
    entry(&["sameas"], &["value", "other"], "is the very same", same_as),
    entry(&["even"], &["value"], "is an even number", |call| Ok((integer(call, 0)? % 2i32).is_zero())),
    entry(&["odd"], &["value"], "is an odd number", |call| Ok(!(integer(call, 0)? % 2i32).is_zero())),
    entry(&["divisibleby"], &["value", "num"], "is divisible by", |call| {
        let divisor = integer(call, 1)?;
        if divisor.is_zero() {
            return Err(TemplateError::failed("integer division or modulo by zero"));
        }
        Ok((integer(call, 0)? % divisor).is_zero())
    }),
    entry(&["lower"], &["value"], "is in lower case", |call| {
        let text = call.text()?;
        Ok(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase))
    }),
    entry(&["upper"], &["value"], "is in upper case", |call| {
        let text = call.text()?;
        Ok(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase))
    }),
    entry(&["nan", "isnan"], &["value"], "is not a number", |call| {
        Ok(matches!(call.value()?, Value::Float(number) if number.is_nan()))
    }),
    entry(&["any"], &["value"], "has a true item", |call| any_or_all(call, true)),
    entry(&["all"], &["value"], "has only true items", |call| any_or_all(call, false)),
    entry(&["truthy"], &["value", "convert_bool"], "is true, as Python sees it", truthy),
    entry(&["falsy"], &["value", "convert_bool"], "is false, as Python sees it", |call| {
        truthy(call).map(|truth| !truth)
    }),
    entry(&["subset", "issubset"], &["value", "other"], "has only items of the other list", |call| subset(call, 0, 1)),
    entry(&["superset", "issuperset"], &["value", "other"], "has all items of the other list", |call| {
        subset(call, 1, 0)
    }),
    // results of tasks
    entry(&["failed", "failure"], &["value"], "is the result of a task that failed", |call| member(call, "failed")),
    entry(&["succeeded", "success", "successful"], &["value"], "is the result of a task that did not fail", |call| {
        member(call, "failed").map(|failed| !failed)
    }),
    entry(&["changed", "change"], &["value"], "is the result of a task that changed something", changed),
    entry(&["skipped", "skip"], &["value"], "is the result of a task that was skipped", |call| member(call, "skipped")),
    entry(&["unreachable"], &["value"], "is the result of a host that was not reached", |call| {
        member(call, "unreachable")
    }),
    entry(&["reachable"], &["value"], "is the result of a host that was reached", |call| {
        member(call, "unreachable").map(|unreachable| !unreachable)
    }),
    entry(&["started"], &["value"], "is the result of an asynchronous task that has begun", |call| {
        asynchronous(call, "started")
    }),
    entry(&["finished"], &["value"], "is the result of an asynchronous task that has ended", |call| {
        asynchronous(call, "finished")
    }),
    entry(&["timedout"], &["value"], "is the result of a task that took too long", |call| {
        let result = result_of(call)?;
        Ok(result.get("timedout").and_then(|timedout| timedout.get("period")).is_some_and(Value::is_truthy))
    }),
    // texts
    entry(&["match"], &["value", "pattern", "ignorecase", "multiline"], "begins with a match of the pattern", |call| {
        Ok(regex::match_start(&call.text_or(1, "")?, flags(call)?, &call.text()?)?)
    }),
    entry(&["search"], &["value", "pattern", "ignorecase", "multiline"], "has a match of the pattern", |call| {
        search(call)
    }),
    entry(&["regex"], &["value", "pattern", "ignorecase", "multiline", "match_type"], "matches the pattern", |call| {
        match &*call.text_or(4, "search")? {
            "match" => Ok(regex::match_start(&call.text_or(1, "")?, flags(call)?, &call.text()?)?),
            "fullmatch" => Ok(regex::match_whole(&call.text_or(1, "")?, flags(call)?, &call.text()?)?),
            _ => search(call),
        }
    }),
    entry(
        &["version", "version_compare"],
        &["value", "version", "operator", "strict", "version_type"],
        "compares as a version number",
        version::test,
    ),
    entry(&["vault_encrypted"], &["value"], "is encrypted with Ansible Vault", |call| {
        let opened = matches!(call.value()?, Value::Str(text) if text.envelope().is_some());
        Ok(opened || is_encrypted(call.text()?.as_bytes()))
    }),
    entry(&["uri"], &["value", "schemes"], "is a URI", uri),
    entry(&["url"], &["value", "schemes"], "is a URL", |call| {
        let text = call.text()?;
        Ok(uri(call)?
            && (text.split_once("//").is_some_and(|(_, rest)| !rest.is_empty() && !rest.starts_with('/'))
                || text.starts_with("file:")))
    }),
    entry(&["urn"], &["value"], "is a URN", |call| Ok(call.text()?.to_ascii_lowercase().starts_with("urn:"))),
    // files of the controller
    entry(&["file", "is_file"], &["value"], "is a file of the controller", |call| on_path(call, Path::is_file)),
    entry(&["directory", "is_dir"], &["value"], "is a directory of the controller", |call| on_path(call, Path::is_dir)),
    entry(&["link", "is_link"], &["value"], "is a symbolic link of the controller", |call| {
        on_path(call, Path::is_symlink)
    }),
    entry(&["exists"], &["value"], "is a path of the controller", |call| on_path(call, Path::exists)),
    entry(&["link_exists"], &["value"], "is a path or a broken link of the controller", |call| {
        on_path(call, |path| path.symlink_metadata().is_ok())
    }),
    entry(&["abs", "is_abs"], &["value"], "is an absolute path", |call| on_path(call, Path::is_absolute)),
    entry(&["same_file", "is_same_file"], &["value", "other"], "is the same file as the other", |call| {
        let other = call.required_text(1)?.into_owned();
        let identity = |path: &Path| path.metadata().map(|data| (data.dev(), data.ino()));
        match (identity(Path::new(&*call.text()?)), identity(Path::new(&other))) {
            (Ok(one), Ok(other)) => Ok(one == other),
            (Err(error), _) | (_, Err(error)) => Err(TemplateError::failed(error.to_string())),
        }
    }),
    entry(&["mount", "is_mount"], &["value"], "is a mount point of the controller", |call| {
        on_path(call, |path| {
            let above = path.join("..").metadata();
            match (path.symlink_metadata(), above) {
                (Ok(own), Ok(above)) => !own.is_symlink() && (own.dev() != above.dev() || own.ino() == above.ino()),
                _ => false,
            }
        })
    }),
    entry(&["vaulted_file"], &["value"], "is a file of the controller encrypted with Ansible Vault", |call| {
        let path = call.text()?;
        let text = std::fs::read(Path::new(&*path))
            .map_err(|error| TemplateError::failed(format!("cannot test if the file '{path}' is a vault: {error}")))?;
        Ok(is_encrypted(&text))
    }),
];

fn by_name() -> &'static HashMap<&'static str, &'static Test> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Test>> =
        LazyLock::new(|| TESTS.iter().flat_map(|test| test.names.iter().map(move |name| (*name, test))).collect());
    &BY_NAME
}

/// The test of a name without collection.
pub fn find(name: &str) -> Option<&'static Test> {
    by_name().get(name).copied()
}

/// True if there is a test of that name, with or without the collection that every Ansible has.
pub fn exists(name: &str) -> bool {
    find(short_name(name)).is_some()
}

/// The names of all tests with what each does, in alphabetical order.
pub fn documentation() -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = by_name().iter().map(|(name, test)| (*name, test.doc)).collect();
    names.sort_unstable();
    names
}

/// The names of each test, and its parameters.
pub(super) fn signatures() -> impl Iterator<Item = Names> {
    TESTS.iter().map(|test| (test.names, test.parameters))
}

/// Applies a test; the first positional argument is the value tested.
pub fn call(context: &Context, name: &str, positional: Vec<Value>, named: Vec<(Arc<str>, Value)>) -> Result<bool> {
    let short = short_name(name);
    let Some(test) = find(short) else {
        // as Ansible words it where no plugin could have such a name
        if !short.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.')) {
            let words = format!("Could not load \"{name}\": 'invalid plugin name: ansible.builtin.{short}'");
            return Err(TemplateError::syntax(format!("TemplateSyntaxError: {words}")));
        }
        let near = crate::error::nearest(short, by_name().keys().copied());
        let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        return Err(TemplateError::syntax(format!("no test named '{name}'{hint}")));
    };
    test.call(context, positional, named).map_err(|error| match error.kind() {
        TemplateErrorKind::Failed => error.context(&format!("the test `{short}` failed")),
        _ => error,
    })
}

fn as_map_like(value: &Value) -> bool {
    match value {
        Value::Map(_) => true,
        Value::Object(object) => object.describe().is_none(),
        _ => false,
    }
}

fn compare(call: &Call<'_>, operator: Operator) -> Result<bool> {
    operators::binary(operator, call.value()?, call.required(1)?, false).map(|result| result.is_truthy())
}

fn same_as(call: &Call<'_>) -> Result<bool> {
    let (one, other) = (call.value()?, call.required(1)?);
    Ok(match (one, other) {
        (Value::List(one), Value::List(other)) => Arc::ptr_eq(one, other),
        (Value::Map(one), Value::Map(other)) => Arc::ptr_eq(one, other),
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
        (one, other) => one.type_name() == other.type_name() && one == other,
    })
}

fn integer(call: &Call<'_>, index: usize) -> Result<BigInt> {
    match call.required(index)? {
        Value::Big(number) => Ok(number.as_ref().clone()),
        _ => call.required_int(index).map(BigInt::from),
    }
}

fn any_or_all(call: &Call<'_>, any: bool) -> Result<bool> {
    let items = call.items()?;
    items.iter().try_for_each(check_defined)?;
    Ok(if any { items.iter().any(Value::is_truthy) } else { items.iter().all(Value::is_truthy) })
}

fn truthy(call: &Call<'_>) -> Result<bool> {
    let value = call.value()?;
    Ok(match value.to_ansible_bool().filter(|_| call.flag(1, false).unwrap_or(false)) {
        Some(flag) => flag,
        None => value.is_truthy(),
    })
}

fn subset(call: &Call<'_>, inner: usize, outer: usize) -> Result<bool> {
    let outer = iterate(call.required(outer)?)?;
    Ok(iterate(call.required(inner)?)?.iter().all(|item| outer.contains(item)))
}

fn result_of<'a>(call: &'a Call<'_>) -> Result<std::borrow::Cow<'a, crate::value::Map>> {
    as_map(call.value()?)?
        .ok_or_else(|| TemplateError::failed(format!("the '{}' test expects a dictionary", call.name)))
}

fn member(call: &Call<'_>, name: &str) -> Result<bool> {
    Ok(result_of(call)?.get(name).is_some_and(Value::is_truthy))
}

fn changed(call: &Call<'_>) -> Result<bool> {
    let result = result_of(call)?;
    match (result.get("changed"), result.get("results")) {
        (Some(changed), _) => Ok(changed.is_truthy()),
        (None, Some(Value::List(results))) => {
            Ok(results.iter().any(|result| result.get("changed").is_some_and(Value::is_truthy)))
        }
        _ => Ok(false),
    }
}

fn asynchronous(call: &Call<'_>, name: &str) -> Result<bool> {
    match result_of(call)?.get(name) {
        Some(state) => Ok(state.is_truthy()),
        None => {
            call.context
                .warnings
                .add(format!("the '{name}' test expects an async task, but a non-async task was tested"));
            Ok(true)
        }
    }
}

fn flags(call: &Call<'_>) -> Result<Flags> {
    Ok(Flags { ignore_case: call.flag(2, false)?, multiline: call.flag(3, false)?, dot_all: false })
}

fn search(call: &Call<'_>) -> Result<bool> {
    let regex = regex::compile(&call.text_or(1, "")?, flags(call)?)?;
    Ok(regex::search(&regex, &call.text()?)?.is_some())
}

fn uri(call: &Call<'_>) -> Result<bool> {
    let text = call.text()?;
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    match call.given(1) {
        Some(schemes) => {
            let schemes: Vec<String> = iterate(schemes)?
                .iter()
                .map(|known| text_of(known).map(std::borrow::Cow::into_owned))
                .collect::<Result<_>>()?;
            Ok(schemes.contains(&scheme))
        }
        None => Ok(true),
    }
}

fn on_path(call: &Call<'_>, test: impl Fn(&Path) -> bool) -> Result<bool> {
    call.context.scope.controller_is_settled()?;
    Ok(test(Path::new(&*call.text()?)))
}
