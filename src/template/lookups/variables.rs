//! Lookups of variables, of the play and of the environment.

use super::{Lookup, terms};
use crate::python_regex::{self as regex, Flags};
use crate::template::call::{Call, entry, entry_for_undefined, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[
    entry_for_undefined(&["vars"], &["_terms", "default"], "variables by their names", vars),
    entry(&["varnames"], &["_terms"], "the names of variables that match a pattern", varnames),
    entry_for_undefined(&["env"], &["_terms", "default"], "environment variables of the controller", env),
];

fn vars(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for term in terms(call)? {
        let Value::Str(name) = term else {
            return Err(match term {
                Value::Undefined(reason) => TemplateError::undefined(reason),
                other => TemplateError::failed(format!(
                    "variable name must be a string, not {}",
                    crate::template::call::describe(other)
                )),
            });
        };
        let found = match call.context.variable(name.as_str())? {
            Some(value) => call.context.render_within(value)?,
            None => Value::undefined(format!("No variable named '{}' was found.", name.as_str())),
        };
        out.push(match (found, call.optional(1)) {
            (Value::Undefined(_), Some(default)) => default.clone(),
            (found, _) => found,
        });
    }
    Ok(out)
}

fn varnames(call: &Call<'_>) -> Result<Vec<Value>> {
    let names = call.context.scope.names();
    let mut out = Vec::new();
    for term in terms(call)? {
        let pattern = regex::compile(&text_of(term)?, Flags::default())?;
        for name in &names {
            if regex::search(&pattern, name)?.is_some() {
                out.push(Value::from(name.as_str()));
            }
        }
    }
    Ok(out)
}

fn env(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for term in terms(call)? {
        let term = text_of(term)?;
        let name = term.split_whitespace().next().unwrap_or_default();
        // a name with `=` or a null would make the system call fail
        let usable = !name.is_empty() && !name.contains(['=', '\0']);
        let found = usable.then(|| std::env::var_os(name)).flatten();
        out.push(match found {
            Some(value) => Value::from(value.to_string_lossy().into_owned()),
            None => call.optional(1).cloned().unwrap_or_else(|| Value::from("")),
        });
    }
    Ok(out)
}
