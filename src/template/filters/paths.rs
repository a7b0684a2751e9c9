//! Filters about file names; those that look at files look at the controller's.

use std::path::{Path, PathBuf};

use super::Filter;
use super::text::texts;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::search::expand_home;
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["basename"], &["value"], "the part after the last slash", |call| {
        let text = call.text()?;
        Ok(Value::from(text.rsplit('/').next().unwrap_or_default()))
    }),
    entry(&["dirname"], &["value"], "the part before the last slash", |call| Ok(Value::from(dirname(&call.text()?)))),
    entry(&["splitext"], &["value"], "the name and its extension", |call| {
        let text = call.text()?;
        let (stem, extension) = splitext(&text);
        Ok(Value::list(vec![stem.into(), extension.into()]))
    }),
    entry(&["path_join"], &["value"], "the parts joined by slashes", |call| {
        let parts = match call.value()? {
            Value::Str(text) => vec![text.as_str().to_owned()],
            Value::List(_) => texts(call.value()?)?,
            other => {
                return Err(TemplateError::failed(format!(
                    "expects string or sequence, got {} instead",
                    other.type_name()
                )));
            }
        };
        Ok(Value::from(join(&parts)))
    }),
    entry(&["normpath"], &["value"], "without needless dots and slashes", |call| {
        Ok(Value::from(normalize(&call.text()?)))
    }),
    entry(&["realpath"], &["value"], "the real path, links resolved", |call| Ok(Value::from(real(&call.text()?)))),
    entry(&["relpath"], &["value", "start"], "the path as seen from a directory", relpath),
    entry(&["commonpath"], &["value"], "the longest directory common to all", commonpath),
    entry(&["expanduser"], &["value"], "with ~ as the home directory", |call| {
        Ok(Value::from(expand_home(&call.text()?).to_string_lossy().into_owned()))
    }),
    entry(&["expandvars"], &["value"], "with $NAME from the environment", |call| {
        Ok(Value::from(expand_variables(&call.text()?)))
    }),
    entry(&["fileglob"], &["value"], "the files that match a pattern", |call| {
        let files = glob(Path::new(&*call.text()?))?;
        Ok(Value::list(files.iter().map(|path| Value::from(path.to_string_lossy().into_owned())).collect()))
    }),
    entry(&["win_basename"], &["value"], "the part after the last backslash", |call| {
        let text = call.text()?;
        Ok(Value::from(without_drive(&text).1.rsplit(['\\', '/']).next().unwrap_or_default()))
    }),
    entry(&["win_dirname"], &["value"], "the part before the last backslash", |call| {
        let text = call.text()?;
        let (drive, rest) = without_drive(&text);
        let head = rest.rfind(['\\', '/']).map_or("", |end| &rest[..=end]);
        let trimmed = head.trim_end_matches(['\\', '/']);
        Ok(Value::from(format!("{drive}{}", if trimmed.is_empty() { head } else { trimmed })))
    }),
    entry(&["win_splitdrive"], &["value"], "the drive and the rest", |call| {
        let text = call.text()?;
        let (drive, rest) = without_drive(&text);
        Ok(Value::list(vec![drive.into(), rest.into()]))
    }),
];

/// The drive or the share (`\\\\server\\share`), and what is in it.
fn without_drive(text: &str) -> (&str, &str) {
    let slash = |letter: char| letter == '\\' || letter == '/';
    if text.starts_with(slash) && text[1..].starts_with(slash) && !text[2..].starts_with(slash) {
        let end_of = |from: usize| text[from..].find(slash).map(|place| from + place);
        return match end_of(2) {
            Some(server) if end_of(server + 1) == Some(server + 1) => ("", text),
            Some(server) => text.split_at(end_of(server + 1).unwrap_or(text.len())),
            None => ("", text),
        };
    }
    match text.as_bytes() {
        [letter, b':', ..] if letter.is_ascii_alphabetic() => text.split_at(2),
        _ => ("", text),
    }
}

/// Python's `os.path.dirname`.
pub fn dirname(text: &str) -> &str {
    let head = text.rfind('/').map_or("", |end| &text[..=end]);
    let trimmed = head.trim_end_matches('/');
    if trimmed.is_empty() { head } else { trimmed }
}

/// Python's `os.path.splitext`: leading dots of the name do not count.
pub fn splitext(text: &str) -> (&str, &str) {
    let name_start = text.rfind('/').map_or(0, |end| end + 1);
    let name = &text[name_start..];
    let first = name.len() - name.trim_start_matches('.').len();
    match name.rfind('.') {
        Some(dot) if dot > first => text.split_at(name_start + dot),
        _ => (text, ""),
    }
}

fn join(parts: &[String]) -> String {
    let mut out = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index == 0 || part.starts_with('/') {
            out = part.clone();
        } else {
            if !out.is_empty() && !out.ends_with('/') {
                out.push('/');
            }
            out.push_str(part);
        }
    }
    out
}

/// Python's `os.path.normpath`.
pub fn normalize(text: &str) -> String {
    if text.is_empty() {
        return ".".to_owned();
    }
    let root = match text.as_bytes() {
        [b'/', b'/', third, ..] if *third != b'/' => "//",
        [b'/', b'/'] => "//",
        [b'/', ..] => "/",
        _ => "",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if root.is_empty() && parts.last().is_none_or(|last| *last == "..") => parts.push(part),
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let path = format!("{root}{}", parts.join("/"));
    if path.is_empty() { ".".to_owned() } else { path }
}

fn absolute(text: &str) -> String {
    let directory = std::env::current_dir().unwrap_or_default();
    normalize(&directory.join(text).to_string_lossy())
}

/// Resolves links as far as the path exists.
fn real(text: &str) -> String {
    let path = PathBuf::from(absolute(text));
    let mut known = path.as_path();
    loop {
        if let Ok(real) = known.canonicalize() {
            let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
            return normalize(&real.join(rest).to_string_lossy());
        }
        match known.parent() {
            Some(parent) => known = parent,
            None => return path.to_string_lossy().into_owned(),
        }
    }
}

fn relpath(call: &Call<'_>) -> Result<Value> {
    let path = absolute(&call.text()?);
    let start = match call.given(1) {
        Some(start) => absolute(&text_of(start)?),
        None => absolute("."),
    };
    let split =
        |path: &str| -> Vec<String> { path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect() };
    let (path, start) = (split(&path), split(&start));
    let common = path.iter().zip(&start).take_while(|(one, other)| one == other).count();
    let mut parts = vec!["..".to_owned(); start.len() - common];
    parts.extend_from_slice(&path[common..]);
    Ok(Value::from(if parts.is_empty() { ".".to_owned() } else { parts.join("/") }))
}

fn commonpath(call: &Call<'_>) -> Result<Value> {
    call.list(0)?;
    let paths = texts(call.value()?)?;
    let Some(first) = paths.first() else { return Err(TemplateError::failed("commonpath() arg is an empty sequence")) };
    let rooted = first.starts_with('/');
    if paths.iter().any(|path| path.starts_with('/') != rooted) {
        return Err(TemplateError::failed("can't mix absolute and relative paths"));
    }
    let split = |path: &str| -> Vec<String> {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect()
    };
    let mut common = split(first);
    for path in &paths[1..] {
        let same = common.iter().zip(split(path)).take_while(|(one, other)| *one == other).count();
        common.truncate(same);
    }
    Ok(Value::from(format!("{}{}", if rooted { "/" } else { "" }, common.join("/"))))
}

fn expand_variables(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let (name, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = after
                    .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
                    .unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match std::env::var(name).ok().filter(|_| !name.is_empty()) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[start..=start + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// The regular files that match a pattern with `*`, `?` and `[…]` in any part of the path, sorted.
pub fn glob(pattern: &Path) -> Result<Vec<PathBuf>> {
    let text = pattern.to_string_lossy();
    let mut found: Vec<PathBuf> = vec![if text.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() }];
    for part in text.split('/').filter(|part| !part.is_empty()) {
        if !part.contains(['*', '?', '[']) {
            found = found.into_iter().map(|path| path.join(part)).filter(|path| path.exists()).collect();
            continue;
        }
        let matcher = globset::Glob::new(part)
            .map_err(|error| TemplateError::failed(format!("the pattern `{part}` is wrong: {error}")))?
            .compile_matcher();
        let mut next = Vec::new();
        for directory in found {
            let listed = if directory.as_os_str().is_empty() { Path::new(".") } else { &directory };
            let Ok(entries) = std::fs::read_dir(listed) else { continue };
            let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            for name in names {
                let hidden = name.to_string_lossy().starts_with('.') && !part.starts_with('.');
                if !hidden && matcher.is_match(Path::new(&name)) {
                    next.push(directory.join(name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| path.is_file());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_as_python_does() {
        assert_eq!(dirname("/a/b"), "/a");
        assert_eq!(dirname("/a"), "/");
        assert_eq!(dirname("a"), "");
        assert_eq!(splitext("a/b.tar.gz"), ("a/b.tar", ".gz"));
        assert_eq!(splitext(".bashrc"), (".bashrc", ""));
        assert_eq!(splitext("a.b/c"), ("a.b/c", ""));
        assert_eq!(normalize("/a/./b/../c//"), "/a/c");
        assert_eq!(normalize("../a/../.."), "../..");
        assert_eq!(normalize("/.."), "/");
    }
}
