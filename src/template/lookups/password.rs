//! The lookup `password`: a random text, kept in a file of the controller.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use super::{Lookup, split_words, terms};
use crate::template::call::{Call, entry, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::python::{Twister, random_below};
use crate::template::search::expand_home;
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["password"],
    &["_terms", "length", "chars", "encrypt", "ident", "seed"],
    "a random password, kept in a file of the controller",
    |call| terms(call)?.iter().map(|term| password(call, &text_of(term)?)).collect(),
)];

/// Names of character classes, as Python's `string` module has them.
fn class(name: &str) -> Option<String> {
    let letters = |range: std::ops::RangeInclusive<char>| range.collect::<String>();
    Some(match name {
        "ascii_lowercase" => letters('a'..='z'),
        "ascii_uppercase" => letters('A'..='Z'),
        "ascii_letters" => letters('a'..='z') + &letters('A'..='Z'),
        "digits" => letters('0'..='9'),
        "hexdigits" => "0123456789abcdefABCDEF".to_owned(),
        "octdigits" => letters('0'..='7'),
        "punctuation" => ('!'..='~').filter(char::is_ascii_punctuation).collect(),
        "whitespace" => " \t\n\r\x0b\x0c".to_owned(),
        _ => return None,
    })
}

fn password(call: &Call<'_>, term: &str) -> Result<Value> {
    let mut words = split_words(term)?;
    if words.is_empty() {
        return Err(TemplateError::failed("no file was named"));
    }
    let path = words.remove(0);
    let mut length = usize::try_from(call.int_or(1, 20)?).unwrap_or(0);
    let mut classes: Vec<String> = match call.given(2) {
        Some(Value::Str(text)) => split_classes(text.as_str()),
        Some(list) => {
            iterate(list)?.iter().map(|item| text_of(item).map(std::borrow::Cow::into_owned)).collect::<Result<_>>()?
        }
        None => ["ascii_letters", "digits", ".,:-_"].map(str::to_owned).to_vec(),
    };
    let mut seed = call.given(5).cloned();
    let mut encrypt = call.given(3).is_some();
    for word in words {
        match word.split_once('=') {
            Some(("length", value)) => {
                length = value
                    .parse()
                    .map_err(|_| TemplateError::failed(format!("the length `{value}` is not a number")))?;
            }
            Some(("chars", value)) => classes = split_classes(value),
            Some(("seed", value)) => seed = Some(Value::from(value)),
            Some(("encrypt", _)) => encrypt = true,
            Some(("ident", _)) => {}
            _ => return Err(TemplateError::failed(format!("unrecognized value in the password term: `{word}`"))),
        }
    }
    if encrypt {
        return Err(TemplateError::failed(
            "`encrypt` is not supported: apply the `password_hash` filter to the password instead",
        ));
    }
    let keep = path != "/dev/null";
    let path = expand_home(&path);
    let path = if path.is_absolute() { path } else { call.context.search.playbook_dir.join(path) };
    if keep && let Ok(text) = std::fs::read_to_string(&path) {
        let line = text.lines().next().unwrap_or_default();
        // Ansible may have kept a salt beside it
        return Ok(Value::from(line.split(" salt=").next().unwrap_or(line)));
    }
    let alphabet: Vec<char> = classes
        .iter()
        .flat_map(|name| class(name).unwrap_or_else(|| name.clone()).chars().collect::<Vec<_>>())
        .collect();
    if alphabet.is_empty() || length > 100_000 {
        return Err(TemplateError::failed("the password has no characters to choose from, or is too long"));
    }
    let mut twister = seed.as_ref().map(Twister::seeded).transpose()?;
    let mut text = String::new();
    for _ in 0..length {
        let limit = alphabet.len() as u64;
        let index = match &mut twister {
            Some(twister) => twister.below(limit)?,
            None => random_below(limit)?,
        };
        text.push(alphabet[index as usize]);
    }
    if keep {
        let write = || -> std::io::Result<()> {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            writeln!(file, "{text}")
        };
        write().map_err(|error| {
            TemplateError::failed(format!("cannot keep the password in `{}`: {error}", path.display()))
        })?;
    }
    Ok(Value::from(text))
}

/// Parts at commas; a doubled comma is a comma.
fn split_classes(text: &str) -> Vec<String> {
    let mut classes: Vec<String> =
        text.replace(",,", ",").split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if text.contains(",,") {
        classes.push(",".to_owned());
    }
    classes
}
