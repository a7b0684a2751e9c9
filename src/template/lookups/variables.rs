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
                other => not_a_name(other),
            });
        };
        let found = match call.context.variable(name.as_str())? {
            Some(value) => call.context.render_within(value)?,
            None if call.context.results.is_old() => {
                Value::undefined(format!("No variable found with this name: {}", name.as_str()))
            }
            None => Value::undefined(format!("No variable named '{}' was found.", name.as_str())),
        };
        out.push(match (found, call.optional(1)) {
            (Value::Undefined(_), Some(default)) => default.clone(),
            (found, _) => found,
        });
    }
    Ok(out)
}

fn not_a_name(value: &Value) -> TemplateError {
    let (text, kind) = (value.to_text(), value.type_name());
    TemplateError::failed(format!("Invalid setting identifier, \"{text}\" is not a string, its a {kind}"))
}

fn varnames(call: &Call<'_>) -> Result<Vec<Value>> {
    call.context.scope.names_are_settled()?;
    let names = call.context.scope.names();
    let mut out = Vec::new();
    for term in terms(call)? {
        let Value::Str(text) = term else { return Err(not_a_name(term)) };
        let pattern = regex::compile(text.as_str(), Flags::default()).map_err(|error| {
            TemplateError::failed(format!("Unable to use \"{}\" as a search parameter: {error}", text.as_str()))
        })?;
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
