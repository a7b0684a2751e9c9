//! The lookup `csvfile`: a cell of a table by the key in its line.

use super::files::read_encoded;
use super::{Lookup, key_values, terms};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["csvfile"],
    &["_terms", "file", "col", "default", "delimiter", "encoding", "keycol"],
    "a column of the line of a CSV file that begins with the key",
    csvfile,
)];

const OPTIONS: &[&str] = &["file", "col", "default", "delimiter", "encoding", "keycol"];

fn csvfile(call: &Call<'_>) -> Result<Vec<Value>> {
    let given = terms(call)?;
    if given.is_empty() {
        return Err(TemplateError::failed("Search key is required but was not found"));
    }
    let mut out = Vec::new();
    for term in given {
        out.extend(one(call, &text_of(term)?)?);
    }
    Ok(out)
}

/// The number of a column.
fn column(text: &str) -> Result<usize> {
    text.trim().parse().map_err(|_| TemplateError::failed(format!("`{text}` is not the number of a column")))
}

fn one(call: &Call<'_>, term: &str) -> Result<Option<Value>> {
    let (key, inline) = key_values(term)?;
    if key.is_empty() {
        return Err(TemplateError::failed(format!("Search key is required but was not found in `{term}`")));
    }
    if let Some((name, _)) = inline.iter().find(|(name, _)| !OPTIONS.contains(&name.as_str())) {
        return Err(TemplateError::failed(format!("{name} is not a valid option")));
    }
    let option = |index: usize| -> Result<Option<String>> {
        match inline.iter().rev().find(|(name, _)| name == OPTIONS[index - 1]) {
            Some((_, value)) => Ok(Some(value.clone())),
            None => call.given(index).map(|value| text_of(value).map(std::borrow::Cow::into_owned)).transpose(),
        }
    };
    let delimiter = match option(4)?.as_deref() {
        None | Some("TAB" | "\\t" | "\t") => b'\t',
        Some(text) => match text.as_bytes() {
            [byte] => *byte,
            _ => return Err(TemplateError::failed("the delimiter must be one character")),
        },
    };
    let file = option(1)?.unwrap_or_else(|| "ansible.csv".to_owned());
    let (path, text) = read_encoded(call, &file, &option(5)?.unwrap_or_else(|| "utf-8".to_owned()))?;
    let key_column = option(6)?.map_or(Ok(0), |text| column(&text))?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
    for record in reader.records() {
        let record = record.map_err(|error| TemplateError::failed(format!("{}: {error}", path.display())))?;
        if record.get(key_column) == Some(key.as_str()) {
            let wanted = option(2)?.map_or(Ok(1), |text| column(&text))?;
            let cell = record.get(wanted).ok_or_else(|| {
                TemplateError::failed(format!("{}: the line of `{key}` has no column {wanted}", path.display()))
            })?;
            return Ok(Some(Value::from(cell)));
        }
    }
    Ok(match inline.iter().any(|(name, _)| name == "default") {
        true => option(3)?.map(Value::from),
        false => call.given(3).cloned(),
    })
}
