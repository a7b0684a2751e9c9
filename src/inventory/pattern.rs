//! Patterns that choose hosts: `web`, `db:&arm:!kp003`, `kp*`, `~kp-?[ab]`, `web[0:5]`.
//!
//! Source: <https://docs.ansible.com/ansible/latest/inventory_guide/intro_patterns.html>

use std::collections::HashSet;
use std::path::Path;

use indexmap::IndexSet;

use super::{GroupId, HostId, Inventory, address, builder, vars_files};
use crate::error::{Error, Result};
use crate::vault::Keyring;

/// The hosts that patterns chose.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Each host once, in order.
    pub hosts: Vec<HostId>,
    /// The patterns that matched no group and no host.
    pub unmatched: Vec<String>,
}

/// Splits a pattern at its commas, or else at its colons (but not at those of ranges and addresses).
pub fn split_pattern(text: &str) -> Vec<String> {
    let parts: Vec<&str> = if text.contains(',') {
        text.split(',').collect()
    } else if address::parse(text.trim()).is_some() {
        vec![text]
    } else {
        split_at_colons(text)
    };
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn split_at_colons(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut index = 0;
    while let Some(character) = text[index..].chars().next() {
        let next = index + character.len_utf8();
        match (character, text[next..].find(']')) {
            ('[', Some(close)) => index = next + close + 1,
            (':' | '[' | ']', _) => {
                parts.push(&text[start..index]);
                (start, index) = (next, next);
            }
            (space, _) if space.is_whitespace() => {
                parts.push(&text[start..index]);
                (start, index) = (next, next);
            }
            _ => index = next,
        }
    }
    parts.push(&text[start..]);
    parts
}

impl Inventory {
    /// The hosts of a play's `hosts`: patterns, each perhaps several in one text.
    pub fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Selection> {
        let single: Vec<String> = patterns.iter().flat_map(|pattern| split_pattern(pattern.as_ref())).collect();
        self.evaluate(&single)
    }

    /// The hosts of `--limit`: patterns, or `@file` with a pattern on each line. That none is left is an error.
    pub fn limit(&self, text: &str) -> Result<HashSet<HostId>> {
        let mut patterns = Vec::new();
        for pattern in split_pattern(text) {
            let Some(file) = pattern.strip_prefix('@') else {
                patterns.push(pattern);
                continue;
            };
            let source = vars_files::read_text(Path::new(file), &Keyring::default())
                .map_err(|error| Error::usage(error.message()).hint("`--limit @FILE` reads patterns from FILE"))?;
            patterns.extend(source.text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
        }
        let selection = self.evaluate(&patterns)?;
        if selection.hosts.is_empty() {
            let error = Error::input(format!("no host matches `--limit {text}`"));
            return Err(selection.unmatched.iter().fold(error, |error, pattern| self.suggest(error, pattern)));
        }
        Ok(selection.hosts.into_iter().collect())
    }

    /// The error for a pattern that matches nothing, with the nearest name.
    pub fn no_match(&self, pattern: &str) -> Error {
        self.suggest(Error::input(format!("no host matches `{pattern}`")), pattern)
    }

    fn suggest(&self, error: Error, pattern: &str) -> Error {
        let groups = self.groups().map(|(_, group)| group.name.as_ref());
        error.suggest(pattern, groups.chain(self.hosts().map(|(_, host)| host.name.as_ref())))
    }

    /// Plain patterns first, then `&` and `!`, whatever their order.
    fn evaluate(&self, patterns: &[String]) -> Result<Selection> {
        let mut selection = Selection::default();
        let mut hosts: IndexSet<HostId> = IndexSet::new();
        let chosen = |sign: &'static [char]| patterns.iter().filter(move |pattern| pattern.starts_with(sign));
        let mut plain = patterns.iter().filter(|pattern| !pattern.starts_with(['&', '!'])).peekable();
        if plain.peek().is_none() {
            hosts.extend(self.group_hosts(GroupId::ALL));
        }
        for pattern in plain {
            match self.host_ids.get(pattern.as_str()) {
                Some(host) if !self.host(*host).implicit => {
                    hosts.insert(*host);
                }
                _ => hosts.extend(self.matches(pattern, &mut selection.unmatched)?),
            }
        }
        for pattern in chosen(&['&']) {
            let these: HashSet<HostId> = self.matches(&pattern[1..], &mut selection.unmatched)?.into_iter().collect();
            hosts.retain(|host| these.contains(host));
        }
        for pattern in chosen(&['!']) {
            let these: HashSet<HostId> = self.matches(&pattern[1..], &mut selection.unmatched)?.into_iter().collect();
            hosts.retain(|host| !these.contains(host));
        }
        selection.hosts = hosts.into_iter().collect();
        Ok(selection)
    }

    /// The hosts of one pattern without its sign; a host may stand in it twice.
    fn matches(&self, pattern: &str, unmatched: &mut Vec<String>) -> Result<Vec<HostId>> {
        let (expression, subscript) = split_subscript(pattern);
        let hosts = self.enumerate(expression, unmatched)?;
        let Some(subscript) = subscript else { return Ok(hosts) };
        if hosts.is_empty() {
            return Ok(hosts);
        }
        match subscript {
            Subscript::One(index) => {
                let position =
                    if index < 0 { hosts.len().checked_sub(index.unsigned_abs()) } else { Some(index as usize) };
                let host = position.and_then(|position| hosts.get(position));
                host.map(|host| vec![*host]).ok_or_else(|| {
                    let count = hosts.len();
                    Error::input(format!(
                        "no host matches `{pattern}`: `{expression}` has {count} hosts, counted from 0"
                    ))
                })
            }
            Subscript::Range(first, last) => {
                let end = last.map_or(hosts.len(), |last| last.saturating_add(1)).min(hosts.len());
                Ok(hosts.get(first..end).unwrap_or_default().to_vec())
            }
        }
    }

    fn enumerate(&self, expression: &str, unmatched: &mut Vec<String>) -> Result<Vec<HostId>> {
        let matcher = Matcher::new(expression)?;
        let mut groups = Vec::new();
        let mut hosts = Vec::new();
        if let Matcher::Name(name) = matcher {
            groups.extend(self.find_group(name));
        } else {
            for (id, group) in self.groups() {
                if matcher.is_match(&group.name)? {
                    groups.push(id);
                }
            }
        }
        for group in &groups {
            hosts.extend(self.group_hosts(*group));
        }
        if let Matcher::Name(name) = matcher {
            if groups.is_empty() || name.contains('.') {
                hosts.extend(self.host_ids.get(name).filter(|id| !self.host(**id).implicit));
            }
        } else {
            for (id, host) in self.hosts() {
                if matcher.is_match(&host.name)? {
                    hosts.push(id);
                }
            }
        }
        if hosts.is_empty() && builder::LOCALHOST.contains(&expression) {
            hosts.extend(self.find_host(expression));
        }
        if hosts.is_empty() && groups.is_empty() {
            unmatched.push(expression.to_owned());
        }
        Ok(hosts)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Subscript {
    /// Counted from 0; from the end if negative.
    One(isize),
    /// Both ends belong to it.
    Range(usize, Option<usize>),
}

/// `web[0]`, `web[-1]`, `web[0:5]`, `web[2:]`: the pattern without its subscript, and that.
fn split_subscript(pattern: &str) -> (&str, Option<Subscript>) {
    let split = || {
        if pattern.starts_with('~') {
            return None;
        }
        let (expression, inside) = pattern.strip_suffix(']')?.rsplit_once('[')?;
        if expression.is_empty() {
            return None;
        }
        let number = |text: &str| if text.starts_with('+') { None } else { text.parse::<usize>().ok() };
        let subscript = match inside.find([':', '-']).filter(|at| *at > 0) {
            None if !inside.starts_with('+') => Subscript::One(inside.parse().ok()?),
            None => return None,
            Some(at) => {
                let (first, last) = (&inside[..at], &inside[at + 1..]);
                let last = if last.is_empty() { None } else { Some(number(last)?) };
                Subscript::Range(number(first)?, last)
            }
        };
        Some((expression, subscript))
    };
    match split() {
        Some((expression, subscript)) => (expression, Some(subscript)),
        None => (pattern, None),
    }
}

/// What a name is compared with.
enum Matcher<'a> {
    Name(&'a str),
    Wildcards(regex::Regex),
    /// `~`: a regular expression as Python has them, anchored at the start.
    Expression(Box<fancy_regex::Regex>),
}

impl Matcher<'_> {
    fn new(text: &str) -> Result<Matcher<'_>> {
        let wrong = |reason: String| Error::input(format!("invalid host pattern `{text}`: {reason}"));
        if let Some(expression) = text.strip_prefix('~') {
            let regex = fancy_regex::Regex::new(&format!(r"\A(?:{expression})"));
            return regex.map(|regex| Matcher::Expression(Box::new(regex))).map_err(|error| wrong(error.to_string()));
        }
        if !text.contains(['*', '?', '[']) {
            return Ok(Matcher::Name(text));
        }
        regex::Regex::new(&translate(text))
            .map(Matcher::Wildcards)
            .map_err(|_| wrong("the brackets are wrong".to_owned()))
    }

    fn is_match(&self, name: &str) -> Result<bool> {
        match self {
            Matcher::Name(text) => Ok(*text == name),
            Matcher::Wildcards(regex) => Ok(regex.is_match(name)),
            Matcher::Expression(regex) => regex.is_match(name).map_err(|error| {
                Error::input(format!("the host pattern `~{}` is too complex: {error}", regex.as_str()))
            }),
        }
    }
}

/// The regular expression of a pattern with wildcards (Python's `fnmatch`).
fn translate(pattern: &str) -> String {
    let mut out = r"(?s)\A".to_owned();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => {
                let body = rest.strip_prefix('!').unwrap_or(rest);
                // a bracket that comes first is one of the characters
                let skip = usize::from(body.starts_with(']'));
                match body[skip..].find(']') {
                    None => out.push_str(r"\["),
                    Some(end) => {
                        let set = &body[..skip + end];
                        out.push_str(if body.len() < rest.len() { "[^" } else { "[" });
                        for character in set.chars() {
                            if matches!(character, '[' | ']' | '\\' | '^' | '&' | '~') {
                                out.push('\\');
                            }
                            out.push(character);
                        }
                        out.push(']');
                        rest = &body[skip + end + 1..];
                    }
                }
            }
            other => out.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push_str(r"\z");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_split_at_commas_or_colons() {
        let cases: &[(&str, &[&str])] = &[
            ("web", &["web"]),
            ("web, db", &["web", "db"]),
            ("db:&arm:!kp003", &["db", "&arm", "!kp003"]),
            ("web[0:5]:db[1]", &["web[0:5]", "db[1]"]),
            ("web[0:5]", &["web[0:5]"]),
            ("2001:db8::1", &["2001:db8::1"]),
            ("2001:db8::1,[::1]", &["2001:db8::1", "[::1]"]),
            ("~kp-?[ab]", &["~kp-?[ab]"]),
            ("*:!db", &["*", "!db"]),
            ("a b", &["a", "b"]),
            (" : ,", &[":"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split_pattern(text), *expected, "{text}");
        }
    }

    #[test]
    fn subscripts_are_split_off() {
        let cases = [
            ("web[0]", ("web", Some(Subscript::One(0)))),
            ("web[-1]", ("web", Some(Subscript::One(-1)))),
            ("web[0:5]", ("web", Some(Subscript::Range(0, Some(5))))),
            ("web[2:]", ("web", Some(Subscript::Range(2, None)))),
            ("web[1-3]", ("web", Some(Subscript::Range(1, Some(3))))),
            ("web[ab]", ("web[ab]", None)),
            ("~web[0]", ("~web[0]", None)),
            ("[0]", ("[0]", None)),
        ];
        for (pattern, expected) in cases {
            assert_eq!(split_subscript(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn wildcards_are_pythons() {
        let cases = [
            ("kp*", "kp01", true),
            ("kp*", "xkp01", false),
            ("kp?1", "kp01", true),
            ("kp[!0]1", "kp01", false),
            ("kp[0-3]1", "kp01", true),
            ("kp[", "kp[", true),
            ("a.c*", "abc", false),
            ("[]a]x", "]x", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(Matcher::new(pattern).unwrap().is_match(name).unwrap(), expected, "{pattern} {name}");
        }
        assert!(Matcher::new("~(").is_err());
    }
}
