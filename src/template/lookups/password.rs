//! The lookup `password`: a random text, kept in a file of the controller.

use std::borrow::Cow;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::{Lookup, split_words, terms};
use crate::template::call::{Call, entry, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::filters::{HashOptions, hash_password, hash_salt};
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
    let option = |index: usize| call.given(index).map(|value| text_of(value).map(Cow::into_owned)).transpose();
    let (mut encrypt, mut ident) = (option(3)?, option(4)?);
    for word in words {
        match word.split_once('=') {
            Some(("length", value)) => {
                length = value
                    .parse()
                    .map_err(|_| TemplateError::failed(format!("the length `{value}` is not a number")))?;
            }
            Some(("chars", value)) => classes = split_classes(value),
            Some(("seed", value)) => seed = Some(Value::from(value)),
            Some(("encrypt", value)) => encrypt = Some(value.to_owned()),
            Some(("ident", value)) => ident = Some(value.to_owned()),
            _ => return Err(TemplateError::failed(format!("unrecognized value in the password term: `{word}`"))),
        }
    }
    let encrypt = encrypt.filter(|kind| !kind.is_empty());
    let path = expand_home(&path);
    let path = if path.is_absolute() { path } else { call.context.search.playbook_dir.join(path) };
    let keeps = path != Path::new("/dev/null");
    let present = if keeps { std::fs::read_to_string(&path).ok().map(|text| Kept::parse(&text)) } else { None };
    let mut kept = match &present {
        Some(present) => present.clone(),
        None => Kept { password: random(&classes, length, seed.as_ref())?, ..Kept::default() },
    };
    if let Some(kind) = &encrypt {
        if kept.salt.is_none() {
            kept.salt = Some(hash_salt(kind)?);
        }
        if kept.ident.is_none() && matches!(kind.as_str(), "bcrypt" | "blowfish") {
            kept.ident = Some(ident.unwrap_or_else(|| "2a".to_owned()));
        }
    }
    let hashed = encrypt.map(|kind| {
        let options = HashOptions { salt: kept.salt.clone(), ident: kept.ident.clone(), ..HashOptions::default() };
        hash_password(&kept.password, &kind, &options)
    });
    let hashed = hashed.transpose()?;
    if keeps && present.as_ref() != Some(&kept) {
        kept.write(&path, present.is_none()).map_err(|error| {
            TemplateError::failed(format!("cannot keep the password in `{}`: {error}", path.display()))
        })?;
    }
    Ok(Value::from(hashed.unwrap_or(kept.password)))
}

/// What the file of a password holds: one line, `PASSWORD[ salt=SALT[ ident=IDENT]]`, as Ansible writes it.
#[derive(Clone, Default, PartialEq)]
struct Kept {
    password: String,
    salt: Option<String>,
    ident: Option<String>,
}

impl Kept {
    fn parse(text: &str) -> Kept {
        let line = text.lines().next().unwrap_or_default();
        let Some((password, rest)) = line.rsplit_once(" salt=") else {
            return Kept { password: line.to_owned(), ..Kept::default() };
        };
        let (salt, ident) = match rest.split_once(" ident=") {
            Some((salt, ident)) => (salt, Some(ident.to_owned())),
            None => (rest, None),
        };
        Kept { password: password.to_owned(), salt: Some(salt.to_owned()), ident }
    }

    fn write(&self, path: &Path, is_new: bool) -> std::io::Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let mut options = std::fs::OpenOptions::new();
        // two runs at once must not each have a password of their own
        let mut file = options.write(true).create_new(is_new).truncate(true).mode(0o600).open(path)?;
        let mut line = self.password.clone();
        for (name, value) in [("salt", &self.salt), ("ident", &self.ident)] {
            if let Some(value) = value {
                line.push_str(&format!(" {name}={value}"));
            }
        }
        writeln!(file, "{line}")
    }
}

fn random(classes: &[String], length: usize, seed: Option<&Value>) -> Result<String> {
    let alphabet: Vec<char> = classes
        .iter()
        .flat_map(|name| class(name).unwrap_or_else(|| name.clone()).chars().collect::<Vec<_>>())
        .collect();
    if alphabet.is_empty() || length > 100_000 {
        return Err(TemplateError::failed("the password has no characters to choose from, or is too long"));
    }
    let mut twister = seed.map(Twister::seeded).transpose()?;
    let mut text = String::new();
    for _ in 0..length {
        let limit = alphabet.len() as u64;
        let index = match &mut twister {
            Some(twister) => twister.below(limit)?,
            None => random_below(limit)?,
        };
        text.push(alphabet[index as usize]);
    }
    Ok(text)
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
