//! Filters about regular expressions.

use super::Filter;
use crate::python_regex::{self as regex, Flags};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(
        &["regex_replace"],
        &["value", "pattern", "replacement", "ignorecase", "multiline", "count", "mandatory_count"],
        "with each match replaced",
        regex_replace,
    ),
    entry(
        &["regex_search"],
        &["value", "regex", "*groups", "**options"],
        "the first match, or groups of it",
        regex_search,
    ),
    entry(
        &["regex_findall"],
        &["value", "regex", "multiline", "ignorecase"],
        "all matches, or their groups",
        regex_findall,
    ),
    entry(&["regex_escape"], &["value", "re_type"], "as a pattern that matches only this text", regex_escape),
];

fn regex_replace(call: &Call<'_>) -> Result<Value> {
    let flags = Flags { ignore_case: call.flag(3, false)?, multiline: call.flag(4, false)?, dot_all: false };
    let pattern = call.text_or(1, "")?;
    let regex = regex::compile(&pattern, flags)?;
    let count = usize::try_from(call.int_or(5, 0)?).unwrap_or(0);
    let text = call.text()?;
    let (out, replaced) = regex::replace(&regex, &text, &call.text_or(2, "")?, count)?;
    let wanted = call.int_or(6, 0)?;
    if wanted != 0 && wanted != replaced as i64 {
        return Err(TemplateError::failed(format!(
            "'{pattern}' should match {wanted} times, but matches {replaced} times in '{text}'"
        )));
    }
    Ok(Value::from(out))
}

fn regex_search(call: &Call<'_>) -> Result<Value> {
    let mut flags = Flags::default();
    for (name, value) in &call.named {
        match &**name {
            "ignorecase" => flags.ignore_case = value.is_truthy(),
            "multiline" => flags.multiline = value.is_truthy(),
            other => return Err(TemplateError::failed(format!("got an unexpected keyword argument '{other}'"))),
        }
    }
    let regex = regex::compile(&call.required_text(1)?, flags)?;
    let mut groups = Vec::new();
    for group in &call.rest {
        let group = text_of(group)?;
        let name = match group.strip_prefix("\\g<").and_then(|name| name.strip_suffix('>')) {
            Some(name) => name,
            None => group.strip_prefix('\\').ok_or_else(|| TemplateError::failed("Unknown argument"))?,
        };
        groups.push(name.to_owned());
    }
    let text = call.text()?;
    let Some(found) = regex::search(&regex, &text)? else { return Ok(Value::Null) };
    if groups.is_empty() {
        return Ok(Value::from(found.get(0).map_or("", |whole| whole.as_str())));
    }
    let mut out = Vec::new();
    for group in groups {
        match regex::group_of(&regex, &found, &group) {
            Some(Some(text)) => out.push(Value::from(text)),
            Some(None) => out.push(Value::Null),
            None => return Err(TemplateError::failed(format!("no such group: {group}"))),
        }
    }
    Ok(Value::list(out))
}

fn regex_findall(call: &Call<'_>) -> Result<Value> {
    let flags = Flags { multiline: call.flag(2, false)?, ignore_case: call.flag(3, false)?, dot_all: false };
    let regex = regex::compile(&call.required_text(1)?, flags)?;
    let text = call.text()?;
    let mut out = Vec::new();
    for found in regex::find_all(&regex, &text)? {
        let group = |index: usize| Value::from(found.get(index).map_or("", |group| group.as_str()));
        out.push(match found.len() {
            1 => group(0),
            2 => group(1),
            count => Value::list((1..count).map(group).collect()),
        });
    }
    Ok(Value::list(out))
}

fn regex_escape(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    match &*call.text_or(1, "python")? {
        "python" => Ok(Value::from(regex::escape(&text))),
        "posix_basic" => {
            let mut out = String::new();
            for letter in text.chars() {
                if "].[^$*\\".contains(letter) {
                    out.push('\\');
                }
                out.push(letter);
            }
            Ok(Value::from(out))
        }
        "posix_extended" => Err(TemplateError::as_ansible("Regex type (posix_extended) not yet implemented")),
        other => Err(TemplateError::as_ansible(format!("Invalid regex type ({other})"))),
    }
}
