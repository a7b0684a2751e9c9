//! Lookups that run a command on the controller.

use std::process::{Command, Stdio};

use super::{Lookup, terms};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[
    entry(&["pipe"], &["_terms"], "the output of a command of the controller", |call| {
        terms(call)?.iter().map(|term| run(call, term).map(|out| Value::from(out.trim_end()))).collect()
    }),
    entry(&["lines"], &["_terms"], "the output of a command of the controller, by lines", |call| {
        let mut out = Vec::new();
        for term in terms(call)? {
            out.extend(run(call, term)?.lines().map(Value::from));
        }
        Ok(out)
    }),
];

/// Runs a command by the shell in the playbook's directory; its errors go where trimtab's go.
fn run(call: &Call<'_>, term: &Value) -> Result<String> {
    let command = text_of(term)?;
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&*command).stdin(Stdio::null()).stderr(Stdio::piped());
    let directory = &call.context.search.playbook_dir;
    if directory.is_dir() {
        shell.current_dir(directory);
    }
    let output =
        shell.output().map_err(|error| TemplateError::failed(format!("`{command}` did not start: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let code = output.status.code().map_or_else(|| "a signal".to_owned(), |code| code.to_string());
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(TemplateError::failed(format!("{}({command}) returned {code}: {}", call.name, errors.trim())))
}
