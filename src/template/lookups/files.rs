//! Lookups of files of the controller.

use std::path::PathBuf;

use super::{Lookup, terms};
use crate::template::call::{Call, as_map, entry, text_of};
use crate::template::error::{Result, TemplateError, TemplateErrorKind};
use crate::template::filters::glob;
use crate::template::parse::Syntax;
use crate::template::search::expand_home;
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[
    entry(&["file"], &["_terms", "lstrip", "rstrip"], "the text of files", |call| {
        terms(call)?.iter().map(|term| file(call, term)).collect()
    }),
    entry(&["unvault"], &["_terms"], "the text of files that may be encrypted with vault", |call| {
        terms(call)?.iter().map(|term| Ok(Value::from(read(call, "files", &text_of(term)?)?.1))).collect()
    }),
    entry(&["fileglob"], &["_terms"], "the files that match a pattern", fileglob),
    entry(&["first_found"], &["_terms", "files", "paths", "skip"], "the first file that exists", first_found),
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
        Value::Null => Ok(Vec::new()),
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
    let mut add = |files: Vec<String>, paths: Vec<String>| {
        let files: Vec<String> = files.into_iter().filter(|file| !file.is_empty()).collect();
        if paths.is_empty() {
            candidates.extend(files);
            return;
        }
        if files.is_empty() {
            candidates.extend(paths);
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
                if !plain.is_empty() {
                    add(std::mem::take(&mut plain), paths.clone());
                }
                let option = |name: &str, separators: &[char]| {
                    options.get(name).map_or_else(|| Ok(Vec::new()), |value| names(value, separators))
                };
                add(option("files", &[',', ';'])?, option("paths", &[',', ':', ';'])?);
                skip |= options.get("skip").is_some_and(|flag| flag.to_ansible_bool().unwrap_or(false));
            }
            None => plain.extend(names(term, &[',', ';'])?),
        }
    }
    if !plain.is_empty() {
        add(plain, paths);
    }
    let kinds = [call.context.file_kind, "files", "templates", "vars", "tasks"];
    for name in &candidates {
        if let Some(path) = kinds.iter().find_map(|kind| call.context.search.find(kind, name)) {
            return Ok(vec![Value::from(path.to_string_lossy().into_owned())]);
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
    syntax.trim_blocks = call.flag(8, true)?;
    syntax.lstrip_blocks = call.flag(9, false)?;
    let context = match call.given(10) {
        Some(_) => call.context.with_variables(call.map(10)?.into_owned()),
        None => call.context.clone(),
    };
    let mut out = Vec::new();
    for term in terms(call)? {
        let (path, text) = read(call, "templates", &text_of(term)?)?;
        out.push(Value::from(context.text_with(&text, &path.to_string_lossy(), &syntax)?));
    }
    Ok(out)
}
