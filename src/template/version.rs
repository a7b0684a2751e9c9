//! Version numbers: distutils' loose and strict ones, semantic ones, and those of PEP 440.

use std::cmp::Ordering;

use super::call::{Call, text_of};
use super::error::{Result, TemplateError};

pub fn test(call: &Call<'_>) -> Result<bool> {
    let (one, other) = (call.text()?, call.required_text(1)?);
    if one.is_empty() {
        return Err(TemplateError::failed("Input version value cannot be empty"));
    }
    if other.is_empty() {
        return Err(TemplateError::failed("Version parameter to compare against cannot be empty"));
    }
    if call.given(3).is_some() && call.given(4).is_some() {
        return Err(TemplateError::failed("Cannot specify both 'strict' and 'version_type'"));
    }
    let kind = match call.given(4) {
        Some(kind) => text_of(kind)?.into_owned(),
        None if call.flag(3, false)? => "strict".to_owned(),
        None => "loose".to_owned(),
    };
    let order = match kind.as_str() {
        "loose" => loose(&one, &other),
        "strict" => compare(strict, &one, &other),
        "semver" | "semantic" => compare(semantic, &one, &other),
        "pep440" => compare(pep440, &one, &other),
        other => {
            return Err(TemplateError::failed(format!(
                "Invalid version type ({other}). Must be one of 'loose', 'strict', 'semver', 'semantic', 'pep440'"
            )));
        }
    };
    let order = order.map_err(|reason| TemplateError::failed(format!("Version comparison failed: {reason}")))?;
    Ok(match &*call.text_or(2, "eq")? {
        "==" | "=" | "eq" => order == Ordering::Equal,
        "!=" | "<>" | "ne" => order != Ordering::Equal,
        "<" | "lt" => order == Ordering::Less,
        "<=" | "le" => order != Ordering::Greater,
        ">" | "gt" => order == Ordering::Greater,
        ">=" | "ge" => order != Ordering::Less,
        operator => {
            return Err(TemplateError::failed(format!(
                "Invalid operator type ({operator}). Must be one of ==, =, eq, <, lt, <=, le, >, gt, >=, ge, !=, <>, ne"
            )));
        }
    })
}

fn compare<T: PartialOrd>(
    parse: fn(&str) -> Option<T>,
    one: &str,
    other: &str,
) -> std::result::Result<Ordering, String> {
    let read = |text: &str| parse(text).ok_or_else(|| format!("invalid version number '{text}'"));
    read(one)?.partial_cmp(&read(other)?).ok_or_else(|| "the versions have no order".to_owned())
}

#[derive(PartialEq)]
enum Component {
    Number(u128),
    Word(String),
}

/// Numbers and words, parted by dots and by each other; compared as Python compares lists.
pub(super) fn loose(one: &str, other: &str) -> std::result::Result<Ordering, String> {
    let (one, other) = (components(one), components(other));
    for (one, other) in one.iter().zip(&other) {
        let order = match (one, other) {
            (Component::Number(one), Component::Number(other)) => one.cmp(other),
            (Component::Word(one), Component::Word(other)) => one.cmp(other),
            (Component::Number(_), _) => {
                return Err("'<' not supported between instances of 'int' and 'str'".to_owned());
            }
            (Component::Word(_), _) => return Err("'<' not supported between instances of 'str' and 'int'".to_owned()),
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    Ok(one.len().cmp(&other.len()))
}

fn components(text: &str) -> Vec<Component> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let kind = |letter: char| (letter.is_ascii_digit(), letter.is_ascii_lowercase(), letter == '.');
        let end = rest.find(|letter: char| kind(letter) != kind(first)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        if first == '.' {
            continue;
        }
        out.push(match part.parse() {
            Ok(number) if first.is_ascii_digit() => Component::Number(number),
            _ => Component::Word(part.to_owned()),
        });
    }
    out
}

/// `1.2`, `1.2.3`, `1.2a1`: two or three numbers and perhaps a mark of alpha or beta.
fn strict(text: &str) -> Option<([u64; 3], (bool, char, u64))> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let (numbers, mark) = text.split_at(end);
    let parts: Vec<u64> = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let mark = match mark.chars().next() {
        // without a mark it is the release, which comes after all marked ones
        None => (true, ' ', 0),
        Some(letter @ ('a' | 'b')) => (false, letter, mark[1..].parse().ok()?),
        Some(_) => return None,
    };
    Some(([parts[0], parts[1], parts.get(2).copied().unwrap_or(0)], mark))
}

#[derive(PartialEq, PartialOrd)]
enum Identifier {
    Number(u128),
    Word(String),
}

/// Semantic versioning 2.0.0, section 11.
fn semantic(text: &str) -> Option<([u128; 3], bool, Vec<Identifier>)> {
    let text = text.split_once('+').map_or(text, |(before, _)| before);
    let (core, prerelease) = text.split_once('-').map_or((text, None), |(core, rest)| (core, Some(rest)));
    let numbers: Vec<u128> = core
        .split('.')
        .map(|part| part.parse().ok().filter(|_| part == "0" || !part.starts_with('0')))
        .collect::<Option<_>>()?;
    let numbers: [u128; 3] = numbers.try_into().ok()?;
    let identifiers = match prerelease {
        None => Vec::new(),
        Some(prerelease) => prerelease
            .split('.')
            .map(|part| match part.parse() {
                _ if part.is_empty() => None,
                Ok(number) if part.chars().all(|digit| digit.is_ascii_digit()) => Some(Identifier::Number(number)),
                _ => Some(Identifier::Word(part.to_owned())),
            })
            .collect::<Option<_>>()?,
    };
    // a release comes after its prereleases
    Some((numbers, prerelease.is_none(), identifiers))
}

/// The order of PEP 440: epoch, release, pre, post, dev, local.
type Pep440 = (u64, Vec<u64>, (i8, u64), i64, u64, Vec<(bool, u64, String)>);

fn pep440(text: &str) -> Option<Pep440> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_prefix('v').unwrap_or(&text);
    let (text, local) = text.split_once('+').unwrap_or((text, ""));
    let (epoch, text) = match text.split_once('!') {
        Some((epoch, rest)) => (epoch.parse().ok()?, rest),
        None => (0, text),
    };
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.')).unwrap_or(text.len());
    let mut release: Vec<u64> =
        text[..end].trim_end_matches('.').split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    while release.len() > 1 && release.last() == Some(&0) {
        release.pop();
    }
    let mut rest = text[end..].trim_start_matches(['.', '-', '_']);
    let (mut pre, mut post, mut dev) = (None, None, None);
    while !rest.is_empty() {
        let word_end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        let after = after.trim_start_matches(['.', '-', '_']);
        let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        let number = if digits == 0 { 0 } else { after[..digits].parse().ok()? };
        match word {
            "a" | "alpha" => pre = Some((0, number)),
            "b" | "beta" => pre = Some((1, number)),
            "rc" | "c" | "pre" | "preview" => pre = Some((2, number)),
            "post" | "rev" | "r" | "" => post = Some(number),
            "dev" => dev = Some(number),
            _ => return None,
        }
        rest = after[digits..].trim_start_matches(['.', '-', '_']);
    }
    let pre_key = match pre {
        Some(pre) => pre,
        // a development release of nothing else comes before all others
        None if post.is_none() && dev.is_some() => (-1, 0),
        None => (3, 0),
    };
    let local = local
        .split(['.', '-', '_'])
        .filter(|part| !part.is_empty())
        .map(|part| match part.parse() {
            Ok(number) => (true, number, String::new()),
            Err(_) => (false, 0, part.to_owned()),
        })
        .collect();
    let post_key = post.map_or(-1, |number: u64| i64::try_from(number).unwrap_or(i64::MAX));
    Some((epoch, release, pre_key, post_key, dev.unwrap_or(u64::MAX), local))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_their_order() {
        let less = |kind: &str, one: &str, other: &str| {
            let order = match kind {
                "loose" => loose(one, other),
                "strict" => compare(strict, one, other),
                "semver" => compare(semantic, one, other),
                _ => compare(pep440, one, other),
            };
            assert_eq!(order, Ok(Ordering::Less), "{kind}: {one} < {other}");
        };
        less("loose", "5.4", "5.10.0");
        less("loose", "5.10", "5.10.0-136.12.0.86.oe2203sp1.aarch64");
        less("loose", "1.5.1", "1.5.2b2");
        less("strict", "1.0a1", "1.0");
        less("strict", "1.0", "1.0.1");
        less("semver", "4.0.0-rc.1", "4.0.0");
        less("semver", "1.0.0-alpha.2", "1.0.0-alpha.10");
        less("semver", "1.0.0-1", "1.0.0-a");
        less("pep440", "1.0.dev1", "1.0a1");
        less("pep440", "1.0rc1", "1.0");
        less("pep440", "1.0", "1.0.post1");
        less("pep440", "1.0", "1.0+local");
        assert!(loose("1.a", "1.1").is_err());
        assert!(compare(semantic, "1.0", "1.0.0").is_err());
    }
}
