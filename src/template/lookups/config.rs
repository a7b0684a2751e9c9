//! The lookup `config`: what the settings of this run are, by the names that Ansible has for them.

use super::{Lookup, terms};
use crate::template::call::{Call, describe, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["config"],
    &["_terms", "on_missing", "plugin_type", "plugin_name", "show_origin"],
    "settings of this run, such as DEFAULT_FORKS",
    config,
)];

fn config(call: &Call<'_>) -> Result<Vec<Value>> {
    let on_missing = call.text_or(1, "error")?;
    if !matches!(&*on_missing, "error" | "skip" | "warn") {
        return Err(TemplateError::failed(format!(
            "`on_missing` cannot be `{on_missing}`, valid values are error, skip and warn"
        )));
    }
    if let Some(plugin) = call.given(2) {
        return Err(TemplateError::failed(format!(
            "there are no plugins whose options could be asked for, got {}: read the variable that sets the option",
            describe(plugin)
        )));
    }
    let mut out = Vec::new();
    for term in terms(call)? {
        let Value::Str(name) = term else {
            let (text, kind) = (text_of(term)?, term.type_name());
            return Err(TemplateError::failed(format!(
                "Invalid setting identifier, \"{text}\" is not a string, its a {kind}"
            )));
        };
        match call.context.settings.get(name.as_str()) {
            Some(value) => out.push(value.clone()),
            None => {
                let known = call.context.settings.keys().filter_map(Value::as_str);
                let near = crate::error::nearest(name.as_str(), known);
                let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                let message = format!("Unable to find setting {}{hint}", name.as_str());
                match &*on_missing {
                    "skip" => {}
                    "warn" => call.context.warnings.add(message),
                    _ => return Err(TemplateError::failed(message)),
                }
            }
        }
    }
    Ok(out)
}
