//! Python's regular expressions over fancy-regex: pattern and replacement are translated.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use fancy_regex::{Captures, Regex};

use super::error::{Result, TemplateError};

/// What Python passes as flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub ignore_case: bool,
    pub multiline: bool,
    pub dot_all: bool,
}

const CACHE_LIMIT: usize = 1024;

/// Compiles a pattern of Python's `re`; compiled ones are kept.
pub fn compile(pattern: &str, flags: Flags) -> Result<Arc<Regex>> {
    type Compiled = HashMap<(String, Flags), Arc<Regex>>;
    static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
    let key = (pattern.to_owned(), flags);
    if let Some(found) = COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(Arc::clone(found));
    }
    let translated = translate(pattern, flags);
    let regex = Regex::new(&translated)
        .map(Arc::new)
        .map_err(|error| TemplateError::failed(format!("the pattern `{pattern}` is wrong: {error}")))?;
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.len() >= CACHE_LIMIT {
        compiled.clear();
    }
    compiled.insert(key, Arc::clone(&regex));
    Ok(regex)
}

/// Rewrites what Python's `re` and fancy-regex read differently: `$`, `\Z` and classes.
fn translate(pattern: &str, flags: Flags) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let inline_multiline = has_inline_flag(pattern, 'm');
    let multiline = flags.multiline || inline_multiline;
    let letters: String = [(flags.ignore_case, 'i'), (flags.multiline, 'm'), (flags.dot_all, 's')]
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, letter)| letter)
        .collect();
    if !letters.is_empty() {
        out.push_str(&format!("(?{letters})"));
    }
    let characters: Vec<char> = pattern.chars().collect();
    let mut index = 0;
    while index < characters.len() {
        match characters[index] {
            '\\' => {
                match characters.get(index + 1) {
                    Some('Z') => out.push_str("\\z"),
                    // escapes that only Python knows as themselves
                    Some(
                        next @ ('/' | '"' | '\'' | '@' | ':' | ';' | ',' | '=' | '!' | '%' | '_' | '`' | '<' | '>'),
                    ) => {
                        out.push(*next);
                    }
                    Some(next) => {
                        out.push('\\');
                        out.push(*next);
                    }
                    None => out.push_str("\\\\"),
                }
                index += 2;
            }
            // without (?m), Python's `$` also matches before a final newline
            '$' if !multiline => {
                out.push_str("(?=\\n?\\z)");
                index += 1;
            }
            '[' => index = translate_class(&characters, index, &mut out),
            other => {
                out.push(other);
                index += 1;
            }
        }
    }
    out
}

/// Copies a class, escaping what only fancy-regex takes for set operations; returns the place after it.
fn translate_class(characters: &[char], start: usize, out: &mut String) -> usize {
    out.push('[');
    let mut index = start + 1;
    if characters.get(index) == Some(&'^') {
        out.push('^');
        index += 1;
    }
    let first = index;
    while let Some(&character) = characters.get(index) {
        match character {
            ']' if index > first => {
                out.push(']');
                return index + 1;
            }
            '\\' => {
                match characters.get(index + 1) {
                    Some(
                        next @ ('/' | '"' | '\'' | '@' | ':' | ';' | ',' | '=' | '!' | '%' | '_' | '`' | '<' | '>'),
                    ) => {
                        out.push(*next);
                    }
                    Some(next) => {
                        out.push('\\');
                        out.push(*next);
                    }
                    None => out.push_str("\\\\"),
                }
                index += 2;
            }
            '[' | ']' => {
                out.push('\\');
                out.push(character);
                index += 1;
            }
            '&' | '~' => {
                out.push('\\');
                out.push(character);
                index += 1;
            }
            // a range that ends with a hyphen, or a hyphen at the head
            '-' if characters.get(index + 1) == Some(&'-') => {
                if index == first {
                    out.push_str("\\-");
                    index += 1;
                } else {
                    out.push_str("-\\-");
                    index += 2;
                }
            }
            other => {
                out.push(other);
                index += 1;
            }
        }
    }
    index
}

/// True if the pattern switches on `flag` at its head, as in `(?im)`.
fn has_inline_flag(pattern: &str, flag: char) -> bool {
    pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).is_some_and(|(letters, _)| {
        letters.chars().all(|letter| letter.is_ascii_alphabetic()) && letters.contains(flag)
    })
}

fn runtime(error: &fancy_regex::Error) -> TemplateError {
    TemplateError::failed(format!("the pattern is too costly for this text: {error}"))
}

/// The first match at or after the start of the text.
pub fn search<'t>(regex: &Regex, text: &'t str) -> Result<Option<Captures<'t, str>>> {
    regex.captures(text).map_err(|error| runtime(&error))
}

/// The match that begins at the start of the text, as Python's `match`.
pub fn match_start(pattern: &str, flags: Flags, text: &str) -> Result<bool> {
    anchored(pattern, flags, text, "")
}

/// The match of the whole text, as Python's `fullmatch`.
pub fn match_whole(pattern: &str, flags: Flags, text: &str) -> Result<bool> {
    anchored(pattern, flags, text, "\\Z")
}

fn anchored(pattern: &str, flags: Flags, text: &str, end: &str) -> Result<bool> {
    // flags must stay at the head
    let (head, body) = match pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')) {
        Some((letters, body)) if !letters.is_empty() && letters.chars().all(|letter| letter.is_ascii_alphabetic()) => {
            (format!("(?{letters})"), body)
        }
        _ => (String::new(), pattern),
    };
    let regex = compile(&format!("{head}\\A(?:{body}){end}"), flags)?;
    regex.is_match(text).map_err(|error| runtime(&error))
}

/// All matches, from left to right.
pub fn find_all<'t>(regex: &Regex, text: &'t str) -> Result<Vec<Captures<'t, str>>> {
    regex.captures_iter(text).map(|found| found.map_err(|error| runtime(&error))).collect()
}

/// Python's `re.subn`: the new text and how many matches were replaced; `count` 0 means all.
pub fn replace(regex: &Regex, text: &str, replacement: &str, count: usize) -> Result<(String, usize)> {
    let parts = parse_replacement(replacement)?;
    let mut out = String::with_capacity(text.len());
    let (mut done, mut replaced) = (0, 0);
    for found in find_all(regex, text)? {
        if count > 0 && replaced == count {
            break;
        }
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[done..whole.start()]);
        for part in &parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(group) => match group_of(regex, &found, group) {
                    Some(text) => out.push_str(text.unwrap_or_default()),
                    None => return Err(TemplateError::failed(format!("invalid group reference {group}"))),
                },
            }
        }
        done = whole.end();
        replaced += 1;
    }
    out.push_str(&text[done..]);
    Ok((out, replaced))
}

/// The text of a group by number or name: `None` if the pattern has no such group, `Some(None)` if it took no part.
pub fn group_of<'t>(regex: &Regex, captures: &Captures<'t, str>, group: &str) -> Option<Option<&'t str>> {
    match group.parse::<usize>() {
        Ok(number) => (number < captures.len()).then(|| captures.get(number).map(|group| group.as_str())),
        Err(_) => regex
            .capture_names()
            .any(|name| name == Some(group))
            .then(|| captures.name(group).map(|group| group.as_str())),
    }
}

enum Part {
    Text(String),
    Group(String),
}

/// Reads `\1`, `\g<1>`, `\g<name>`, `\n` and the like.
fn parse_replacement(replacement: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        let mut group = None;
        match rest.next() {
            Some('g') if rest.next_if_eq(&'<').is_some() => {
                let name: String = rest.by_ref().take_while(|character| *character != '>').collect();
                group = Some(name);
            }
            Some(digit @ '1'..='9') => {
                let mut number = digit.to_string();
                if let Some(second) = rest.next_if(char::is_ascii_digit) {
                    number.push(second);
                }
                group = Some(number);
            }
            Some('0') => {
                let mut octal = String::new();
                while octal.len() < 2
                    && let Some(digit) = rest.next_if(|digit| matches!(digit, '0'..='7'))
                {
                    octal.push(digit);
                }
                text.push(char::from(u8::from_str_radix(&octal, 8).unwrap_or(0)));
            }
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('a') => text.push('\x07'),
            Some('b') => text.push('\x08'),
            Some('f') => text.push('\x0c'),
            Some('v') => text.push('\x0b'),
            Some('\\') => text.push('\\'),
            Some(letter) if letter.is_ascii_alphabetic() => {
                return Err(TemplateError::failed(format!("bad escape \\{letter} in the replacement `{replacement}`")));
            }
            Some(other) => {
                text.push('\\');
                text.push(other);
            }
            None => return Err(TemplateError::failed(format!("bad escape (end of pattern) in `{replacement}`"))),
        }
        if let Some(group) = group {
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(Part::Group(group));
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// Python's `re.escape`.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ' | '#' | '$' | '&' | '(' | ')' | '*' | '+' | '-' | '.' | '?'
            | '[' | '\\' | ']' | '^' | '{' | '|' | '}' | '~' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_python_means() {
        let found = |pattern: &str, text: &str| {
            let regex = compile(pattern, Flags::default()).expect(pattern);
            search(&regex, text).expect(pattern).and_then(|found| found.get(0).map(|whole| whole.as_str().to_owned()))
        };
        let cases: &[(&str, &str, Option<&str>)] = &[
            ("a$", "a\n", Some("a")),
            ("a\\Z", "a\n", None),
            ("[[]x]", "[x]", Some("[x]")),
            ("[a&&b]+", "a&b", Some("a&b")),
            ("[+--c]+", ",c", Some(",c")),
            ("(?P<n>a)(?P=n)", "aa", Some("aa")),
            ("(?<=x)y", "xy", Some("y")),
            ("(?m)^b$", "a\nb\nc", Some("b")),
            ("[]a]+", "]a", Some("]a")),
            ("\\/dev\\/(sd\\w)", "/dev/sda", Some("/dev/sda")),
            ("(\\d+)%", "50%", Some("50%")),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(found(pattern, text).as_deref(), *expected, "{pattern}");
        }
    }

    #[test]
    fn replacements_are_pythons() {
        let cases = [
            ("(\\w)-(\\w)", "a-b", "\\2-\\1", "b-a"),
            ("(?P<x>a)", "a", "\\g<x>\\g<0>$1", "aa$1"),
            ("a", "aa", "\\n", "\n\n"),
            ("x*", "ab", "-", "-a-b-"),
        ];
        for (pattern, text, replacement, expected) in cases {
            let regex = compile(pattern, Flags::default()).expect(pattern);
            assert_eq!(replace(&regex, text, replacement, 0).expect(pattern).0, expected, "{pattern}");
        }
        let regex = compile("a", Flags::default()).expect("pattern");
        assert!(replace(&regex, "a", "\\2", 0).is_err());
        assert_eq!(replace(&regex, "aaa", "b", 2).expect("count"), ("bba".to_owned(), 2));
    }
}
