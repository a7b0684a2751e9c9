//! Lookups in files of data: INI, properties, CSV.

use super::files::read;
use super::{Lookup, split_words, terms};
use crate::python_regex::{self as regex, Flags};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[
    entry(
        &["ini"],
        &[
            "_terms",
            "type",
            "file",
            "section",
            "re",
            "encoding",
            "default",
            "case_sensitive",
            "allow_no_value",
            "interpolation",
        ],
        "values of a file in INI format",
        ini,
    ),
    entry(
        &["csvfile"],
        &["_terms", "file", "col", "default", "delimiter", "encoding", "keycol"],
        "a column of the line of a CSV file that begins with the key",
        csvfile,
    ),
];

/// The key of a term and the options that stand behind it: `user section=db file=users.ini`.
fn key_and_options(term: &str, known: &[&str]) -> Result<(String, Vec<(String, String)>)> {
    let mut keys = Vec::new();
    let mut options = Vec::new();
    for word in split_words(term)? {
        match word.split_once('=') {
            Some((name, value)) if known.contains(&name) => options.push((name.to_owned(), value.to_owned())),
            _ => keys.push(word),
        }
    }
    match keys.is_empty() {
        true => Err(TemplateError::failed(format!("no key was given in `{term}`"))),
        false => Ok((keys.join(" "), options)),
    }
}

/// A key and its value, if it has one.
type IniEntry = (String, Option<String>);

struct Ini {
    /// Sections with their keys and values in order.
    sections: Vec<(String, Vec<IniEntry>)>,
}

impl Ini {
    fn parse(text: &str, properties: bool) -> Result<Ini> {
        let mut sections: Vec<(String, Vec<IniEntry>)> = Vec::new();
        if properties {
            sections.push(("java_properties".to_owned(), Vec::new()));
        }
        for (number, line) in text.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name) {
                sections.push((name.to_owned(), Vec::new()));
                continue;
            }
            let Some((_, entries)) = sections.last_mut() else {
                return Err(TemplateError::failed(format!("line {} stands before any section", number + 1)));
            };
            // an indented line goes on with the value above
            if line.starts_with([' ', '\t'])
                && let Some((_, Some(value))) = entries.last_mut()
            {
                value.push('\n');
                value.push_str(trimmed);
                continue;
            }
            match trimmed.split_once(['=', ':']) {
                Some((key, value)) => entries.push((key.trim().to_owned(), Some(value.trim().to_owned()))),
                None => entries.push((trimmed.to_owned(), None)),
            }
        }
        Ok(Ini { sections })
    }
}

fn ini(call: &Call<'_>) -> Result<Vec<Value>> {
    const OPTIONS: &[&str] =
        &["type", "file", "section", "re", "encoding", "default", "case_sensitive", "allow_no_value", "interpolation"];
    let mut out = Vec::new();
    for term in terms(call)? {
        let (key, inline) = key_and_options(&text_of(term)?, OPTIONS)?;
        let option = |index: usize, default: &str| -> Result<String> {
            match inline.iter().find(|(name, _)| name == OPTIONS[index - 1]) {
                Some((_, value)) => Ok(value.clone()),
                None => call.text_or(index, default).map(std::borrow::Cow::into_owned),
            }
        };
        let flag = |index: usize| option(index, "false").map(|text| Value::from(text).to_ansible_bool() == Some(true));
        let properties = option(1, "ini")? == "properties";
        let section = if properties { "java_properties".to_owned() } else { option(3, "global")? };
        let (path, text) = read(call, "files", &option(2, "ansible.ini")?)?;
        let parsed = Ini::parse(&text, properties)?;
        let case_sensitive = flag(7)?;
        let fold = |key: &str| if case_sensitive { key.to_owned() } else { key.to_lowercase() };
        let mut found_section = false;
        let mut found: Vec<String> = Vec::new();
        let is_pattern = flag(4)?;
        let pattern = if is_pattern { Some(regex::compile(&key, Flags::default())?) } else { None };
        for (_, entries) in parsed.sections.iter().filter(|(name, _)| *name == section) {
            found_section = true;
            for (name, value) in entries {
                let matches = match &pattern {
                    Some(pattern) => regex::search(pattern, &fold(name))?.is_some(),
                    None => fold(name) == fold(&key),
                };
                if matches {
                    let value = value.clone().unwrap_or_default();
                    // the last of several equal keys counts
                    if pattern.is_none() {
                        found.clear();
                    }
                    found.push(value);
                }
            }
        }
        if !found_section {
            return Err(TemplateError::failed(format!("no section '{section}' in {}", path.display())));
        }
        if found.is_empty() && !is_pattern {
            found.push(option(6, "")?);
        }
        out.extend(found.into_iter().map(Value::from));
    }
    Ok(out)
}

fn csvfile(call: &Call<'_>) -> Result<Vec<Value>> {
    const OPTIONS: &[&str] = &["file", "col", "default", "delimiter", "encoding", "keycol"];
    let mut out = Vec::new();
    for term in terms(call)? {
        let (key, inline) = key_and_options(&text_of(term)?, OPTIONS)?;
        let given = |index: usize| -> Result<Option<String>> {
            match inline.iter().find(|(name, _)| name == OPTIONS[index - 1]) {
                Some((_, value)) => Ok(Some(value.clone())),
                None => call.given(index).map(|value| text_of(value).map(std::borrow::Cow::into_owned)).transpose(),
            }
        };
        let column = |index: usize, default: usize| -> Result<usize> {
            match given(index)? {
                Some(text) => text
                    .trim()
                    .parse()
                    .map_err(|_| TemplateError::failed(format!("`{text}` is not the number of a column"))),
                None => Ok(default),
            }
        };
        let (wanted, key_column) = (column(2, 1)?, column(6, 0)?);
        let delimiter = match given(4)?.as_deref() {
            None | Some("TAB" | "\\t" | "\t") => b'\t',
            Some(text) => match text.as_bytes() {
                [byte] => *byte,
                _ => return Err(TemplateError::failed("the delimiter must be one character")),
            },
        };
        let (path, text) = read(call, "files", &given(1)?.unwrap_or_else(|| "ansible.csv".to_owned()))?;
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(text.as_bytes());
        let mut found = None;
        for record in reader.records() {
            let record = record.map_err(|error| TemplateError::failed(format!("{}: {error}", path.display())))?;
            if record.get(key_column) == Some(key.as_str()) {
                let cell = record.get(wanted).ok_or_else(|| {
                    TemplateError::failed(format!("{}: the line of `{key}` has no column {wanted}", path.display()))
                })?;
                found = Some(Value::from(cell));
                break;
            }
        }
        match found {
            Some(value) => out.push(value),
            None => out.extend(call.given(3).cloned().or(given(3)?.map(Value::from))),
        }
    }
    Ok(out)
}
