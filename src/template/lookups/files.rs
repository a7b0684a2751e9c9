//! Lookups of files of the controller.

use std::path::PathBuf;

use super::{Lookup, terms};
use crate::template::call::{Call, as_map, entry, entry_for_undefined, text_of};
use crate::template::error::{Result, TemplateError, TemplateErrorKind};
use crate::template::filters::{glob, normalize};
use crate::template::parse::Syntax;
use crate::template::results::{self, Results};
use crate::template::search::expand_home;
use crate::value::{Text, Value};

pub static LOOKUPS: &[Lookup] = &[
    entry(&["file"], &["_terms", "lstrip", "rstrip"], "the text of files", |call| {
        terms(call)?.iter().map(|term| file(call, term)).collect()
    }),
    entry(&["unvault"], &["_terms"], "the text of files that may be encrypted with vault", |call| {
        terms(call)?.iter().map(|term| Ok(Value::from(read(call, "files", &text_of(term)?)?.1))).collect()
    }),
    entry(&["fileglob"], &["_terms"], "the files that match a pattern", fileglob),
    entry_for_undefined(
        &["first_found"],
        &["_terms", "files", "paths", "skip"],
        "the first file that exists",
        first_found,
    ),
    entry(
        &["template"],
        &[
            "_terms",
            "convert_data",
            "variable_start_string",
            "variable_end_string",
            "comment_start_string",
            "comment_end_string",
            "block_start_string",
            "block_end_string",
            "trim_blocks",
            "lstrip_blocks",
            "template_vars",
            "jinja2_native",
        ],
        "template files, rendered",
        template,
    ),
];

fn missing(call: &Call<'_>, kind: &str, name: &str) -> TemplateError {
    let directories: Vec<String> =
        call.context.search.directories(kind).iter().map(|directory| directory.display().to_string()).collect();
    TemplateError::new(
        TemplateErrorKind::Missing,
        format!("the file `{name}` was not found in {}", directories.join(", ")),
    )
}

/// Finds and reads a file of a kind.
pub fn read(call: &Call<'_>, kind: &str, name: &str) -> Result<(PathBuf, String)> {
    let path = call.context.search.find(kind, name).ok_or_else(|| missing(call, kind, name))?;
    let bytes = std::fs::read(&path)
        .map_err(|error| TemplateError::failed(format!("cannot read `{}`: {error}", path.display())))?;
    let bytes = call.context.keyring.open(&path, bytes).map_err(|error| TemplateError::from_error(&error))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok((path, text)),
        Err(_) => Err(TemplateError::failed(format!("the file `{}` is no UTF-8 text", path.display()))),
    }
}

/// Finds and reads a file in `files` that is written in `encoding`.
pub fn read_encoded(call: &Call<'_>, name: &str, encoding: &str) -> Result<(PathBuf, String)> {
    let path = call.context.search.find("files", name).ok_or_else(|| {
        let error = missing(call, "files", name);
        TemplateError::new(TemplateErrorKind::Missing, format!("{}: No such file or directory", error.message()))
    })?;
    let bytes = std::fs::read(&path)
        .map_err(|error| TemplateError::failed(format!("cannot read `{}`: {error}", path.display())))?;
    let bytes = call.context.keyring.open(&path, bytes).map_err(|error| TemplateError::from_error(&error))?;
    let name = encoding.to_ascii_lowercase().replace(['-', '_'], "");
    let text = match name.as_str() {
        "latin1" | "iso88591" | "l1" | "latin" => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        "iso885915" | "latin9" => Some(bytes.iter().map(|byte| latin_9(*byte)).collect()),
        "ascii" | "usascii" => bytes.is_ascii().then(|| String::from_utf8_lossy(&bytes).into_owned()),
        "utf8" | "utf8sig" => String::from_utf8(bytes).ok().map(|text| text.trim_start_matches('\u{feff}').to_owned()),
        _ => {
            return Err(TemplateError::failed(format!(
                "unknown encoding: `{encoding}`, known are utf-8, ascii, iso8859-1 and iso8859-15"
            )));
        }
    };
    match text {
        Some(text) => Ok((path, text)),
        None => Err(TemplateError::failed(format!("the file `{}` is no text in {encoding}", path.display()))),
    }
}

/// ISO 8859-15 is ISO 8859-1 but for eight characters.
fn latin_9(byte: u8) -> char {
    match byte {
        0xa4 => '€',
        0xa6 => 'Š',
        0xa8 => 'š',
        0xb4 => 'Ž',
        0xb8 => 'ž',
        0xbc => 'Œ',
        0xbd => 'œ',
        0xbe => 'Ÿ',
        other => char::from(other),
    }
}

fn file(call: &Call<'_>, term: &Value) -> Result<Value> {
    let (_, text) = read(call, "files", &text_of(term)?)?;
    let mut text = text.as_str();
    if call.flag(1, false)? {
        text = text.trim_start();
    }
    if call.flag(2, true)? {
        text = text.trim_end();
    }
    Ok(Value::from(text))
}

fn fileglob(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut out = Vec::new();
    for term in terms(call)? {
        let pattern = expand_home(&text_of(term)?);
        let directories =
            if pattern.is_absolute() { vec![PathBuf::from("/")] } else { call.context.search.directories("files") };
        for directory in directories {
            let found = glob(&directory.join(&pattern))?;
            if !found.is_empty() {
                out.extend(found.iter().map(|path| Value::from(path.to_string_lossy().into_owned())));
                break;
            }
        }
    }
    Ok(out)
}

/// One or several names: a list, or a text that commas, semicolons (or colons, for paths) part.
fn names(value: &Value, separators: &[char]) -> Result<Vec<String>> {
    match value {
        // in a loop, a name that is not known is a file that is not there
        Value::Null | Value::Undefined(_) => Ok(Vec::new()),
        Value::List(items) => {
            let mut out = Vec::new();
            for item in items.iter() {
                out.extend(names(item, separators)?);
            }
            Ok(out)
        }
        other => Ok(text_of(other)?.split(separators).map(|name| name.trim().to_owned()).collect()),
    }
}

fn first_found(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut skip = call.flag(3, false)?;
    let mut candidates: Vec<String> = Vec::new();
    // without names of files, the paths are looked for themselves
    let mut add = |files: Option<Vec<String>>, paths: Vec<String>| {
        let Some(files) = files else {
            candidates.extend(paths);
            return;
        };
        let files: Vec<String> = files.into_iter().filter(|file| !file.is_empty()).collect();
        if paths.is_empty() {
            candidates.extend(files);
            return;
        }
        for path in &paths {
            candidates.extend(files.iter().map(|file| format!("{}/{file}", path.trim_end_matches('/'))));
        }
    };
    let paths = match call.given(2) {
        Some(paths) => names(paths, &[',', ':', ';'])?,
        None => Vec::new(),
    };
    let mut plain = match call.given(1) {
        Some(files) => names(files, &[',', ';'])?,
        None => Vec::new(),
    };
    let mut flat = Vec::new();
    for term in terms(call)? {
        match term {
            Value::List(items) => flat.extend(items.iter().cloned()),
            other => flat.push(other.clone()),
        }
    }
    for term in &flat {
        match as_map(term)? {
            Some(options) => {
                // each name is looked for in all paths before the next one is
                std::mem::take(&mut plain).into_iter().for_each(|file| add(Some(vec![file]), paths.clone()));
                let option = |name: &str, separators: &[char]| {
                    options.get(name).map(|value| names(value, separators)).transpose()
                };
                add(option("files", &[',', ';'])?, option("paths", &[',', ':', ';'])?.unwrap_or_default());
                skip |= options.get("skip").is_some_and(|flag| flag.to_ansible_bool().unwrap_or(false));
            }
            None => plain.extend(names(term, &[',', ';'])?),
        }
    }
    plain.into_iter().for_each(|file| add(Some(vec![file]), paths.clone()));
    let kinds = [call.context.file_kind, "files", "templates", "vars", "tasks"];
    for name in &candidates {
        if let Some(path) = kinds.iter().find_map(|kind| call.context.search.find(kind, name)) {
            return Ok(vec![Value::from(normalize(&path.to_string_lossy()))]);
        }
    }
    if skip {
        return Ok(Vec::new());
    }
    let tried = if candidates.is_empty() { "no names were given".to_owned() } else { candidates.join(", ") };
    Err(TemplateError::new(
        TemplateErrorKind::Missing,
        format!("no file was found when using first_found ({tried}); `skip: true` makes it no error"),
    ))
}

fn template(call: &Call<'_>) -> Result<Vec<Value>> {
    let mut syntax = Syntax::file();
    for (index, slot) in [
        (2, &mut syntax.variable.0),
        (3, &mut syntax.variable.1),
        (4, &mut syntax.comment.0),
        (5, &mut syntax.comment.1),
        (6, &mut syntax.block.0),
        (7, &mut syntax.block.1),
    ] {
        if let Some(text) = call.given(index) {
            *slot = text_of(text)?.into_owned();
        }
    }
    let (converts, is_native) = (call.flag(1, true)?, call.flag(11, false)?);
    syntax.trim_blocks = call.flag(8, true)?;
    syntax.lstrip_blocks = call.flag(9, false)?;
    let context = match call.given(10) {
        Some(_) => call.context.with_variables(call.map(10)?.into_owned()),
        None => call.context.clone(),
    };
    let mut out = Vec::new();
    for term in terms(call)? {
        let (path, text) = read(call, "templates", &text_of(term)?)?;
        let rendered = context.text_with(&text, &path.to_string_lossy(), &syntax)?;
        let kept = |text: String| Value::Str(Text::data(text).kept(true));
        out.push(match context.results {
            Results::Typed => Value::from(rendered),
            Results::Text if converts => results::converted(Value::from(rendered), false),
            Results::Spelled if is_native => results::spelled(Value::from(rendered)),
            Results::Text | Results::Spelled => kept(rendered),
        });
    }
    Ok(out)
}
