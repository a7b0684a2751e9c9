//! Python's regular expressions over fancy-regex: pattern and replacement are translated where the two differ
//! (<https://docs.python.org/3/library/re.html>).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use fancy_regex::{Captures, Regex};

/// A pattern or replacement that cannot be used, or costs too much; the message says which and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegexError(String);

type Result<T, E = RegexError> = std::result::Result<T, E>;

/// What Python passes as flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    pub ignore_case: bool,
    /// `^` and `$` match at every line.
    pub multiline: bool,
    /// `.` matches a newline too.
    pub dot_all: bool,
}

/// So many compiled patterns are kept.
const CACHE_LIMIT: usize = 1024;

/// Compiles a pattern of Python's `re`; compiled ones are kept.
pub fn compile(pattern: &str, flags: Flags) -> Result<Arc<Regex>> {
    type Compiled = HashMap<(String, Flags), Arc<Regex>>;
    static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
    let key = (pattern.to_owned(), flags);
    if let Some(found) = COMPILED.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Ok(Arc::clone(found));
    }
    let regex = Regex::new(&translate(pattern, flags)).map(Arc::new).map_err(|error| {
        let reason = error.to_string();
        // Python's own words for the most frequent mistake
        let reason =
            match reason.contains("Target of repeat operator") || reason.contains("repetition operator missing") {
                true => "nothing to repeat",
                false => reason.trim(),
            };
        RegexError(format!("the regular expression `{pattern}` cannot be used: {reason}"))
    })?;
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.len() >= CACHE_LIMIT {
        compiled.clear();
    }
    compiled.insert(key, Arc::clone(&regex));
    Ok(regex)
}

/// Writes a pattern of Python's `re` in the syntax of fancy-regex where the two differ.
fn translate(pattern: &str, flags: Flags) -> String {
    let letters: Vec<char> = pattern.chars().collect();
    let mut multiline = flags.multiline;
    let mut out = String::new();
    for (set, letter) in [(flags.dot_all, 's'), (flags.multiline, 'm'), (flags.ignore_case, 'i')] {
        if set {
            out.push_str(&format!("(?{letter})"));
        }
    }
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        match rest[0] {
            '\\' => at += escape_sequence(rest, &mut out, false),
            '[' => at += class(rest, &mut out),
            '$' if !multiline => {
                // also before a newline at the very end
                out.push_str("(?=\\n?\\z)");
                at += 1;
            }
            '{' => {
                let (text, length) = brace(rest);
                out.push_str(&text);
                at += length;
            }
            '(' if rest.starts_with(&['(', '?', '#']) => {
                at += rest.iter().position(|letter| *letter == ')').map_or(rest.len(), |end| end + 1);
            }
            '(' if rest.get(1) == Some(&'?') => {
                let (text, length) = group(rest, &mut multiline);
                out.push_str(&text);
                at += length;
            }
            other => {
                out.push(other);
                at += 1;
            }
        }
    }
    out
}

/// The beginning of a group with `(?`: flags that are Python's alone are left out.
fn group(rest: &[char], multiline: &mut bool) -> (String, usize) {
    let flags: String = rest[2..].iter().take_while(|letter| "aiLmsux-".contains(**letter)).collect();
    let length = 2 + flags.chars().count();
    match rest.get(length) {
        Some(end @ (')' | ':')) if !flags.is_empty() => {
            let (on, off) = flags.split_once('-').unwrap_or((&flags, ""));
            *multiline |= on.contains('m');
            let keep = |text: &str| text.chars().filter(|flag| "imsx".contains(*flag)).collect::<String>();
            let (on, off) = (keep(on), keep(off));
            let minus = if off.is_empty() { String::new() } else { format!("-{off}") };
            let text = match (on.is_empty() && off.is_empty(), end) {
                (true, ')') => String::new(),
                _ => format!("(?{on}{minus}{end}"),
            };
            (text, length + 1)
        }
        _ => ("(?".to_owned(), 2),
    }
}

/// A quantifier stays (`{,3}` is `{0,3}`); any other brace is itself.
fn brace(rest: &[char]) -> (String, usize) {
    let inner: String = rest[1..].iter().take_while(|letter| letter.is_ascii_digit() || **letter == ',').collect();
    let length = inner.len() + 2;
    let closed = rest.get(length - 1) == Some(&'}');
    let commas = inner.matches(',').count();
    if closed && !inner.is_empty() && inner != "," && commas <= 1 {
        let zero = if inner.starts_with(',') { "0" } else { "" };
        (format!("{{{zero}{inner}}}"), length)
    } else {
        ("\\{".to_owned(), 1)
    }
}

/// An escape; returns how many letters it took.
fn escape_sequence(rest: &[char], out: &mut String, in_class: bool) -> usize {
    let Some(letter) = rest.get(1) else {
        out.push_str("\\\\");
        return 1;
    };
    match letter {
        'Z' => out.push_str("\\z"),
        '<' | '>' | '\'' | '"' | '/' | ' ' | '`' | '@' | '!' | '%' | ',' | ';' | ':' | '=' | '_' => {
            if " #".contains(*letter) {
                out.push('\\');
            }
            out.push(*letter);
        }
        '0' => {
            let digits: String = rest[1..].iter().take(3).take_while(|digit| ('0'..='7').contains(*digit)).collect();
            out.push_str(&format!("\\x{{{:x}}}", u32::from_str_radix(&digits, 8).unwrap_or(0)));
            return 1 + digits.len();
        }
        'b' if in_class => out.push_str("\\x08"),
        letter => {
            out.push('\\');
            out.push(*letter);
        }
    }
    2
}

/// A character class: what only Rust's classes know (`[`, `&&`, `--`, `~~`) is escaped.
fn class(rest: &[char], out: &mut String) -> usize {
    out.push('[');
    let mut at = 1;
    if rest.get(at) == Some(&'^') {
        out.push('^');
        at += 1;
    }
    let first = at;
    while let Some(letter) = rest.get(at) {
        match letter {
            ']' if at > first => {
                out.push(']');
                return at + 1;
            }
            '\\' => at += escape_sequence(&rest[at..], out, true),
            ']' | '[' | '&' | '~' => {
                out.push('\\');
                out.push(*letter);
                at += 1;
            }
            '-' if at == first || rest.get(at + 1) == Some(&']') => {
                out.push_str("\\-");
                at += 1;
            }
            // a range that ends with a hyphen
            '-' if rest.get(at + 1) == Some(&'-') => {
                out.push_str("-\\-");
                at += 2;
            }
            other => {
                out.push(*other);
                at += 1;
            }
        }
    }
    at
}

fn too_costly(regex: &Regex, error: &fancy_regex::Error) -> RegexError {
    RegexError(format!("the regular expression `{}` is too costly for this text: {error}", regex.as_str()))
}

/// The first match in `text` at or after the byte `from`.
pub fn captures_from<'t>(regex: &Regex, text: &'t str, from: usize) -> Result<Option<Captures<'t, str>>> {
    regex.captures_from_pos(text, from).map_err(|error| too_costly(regex, &error))
}

/// The first match, wherever it is, as Python's `search`.
pub fn search<'t>(regex: &Regex, text: &'t str) -> Result<Option<Captures<'t, str>>> {
    captures_from(regex, text, 0)
}

pub fn is_match(regex: &Regex, text: &str) -> Result<bool> {
    regex.is_match(text).map_err(|error| too_costly(regex, &error))
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
    is_match(&regex, text)
}

/// All matches from left to right, as Python's `finditer`: an empty match may follow right behind another.
pub fn find_all<'t>(regex: &Regex, text: &'t str) -> Result<Vec<Captures<'t, str>>> {
    let mut matches = Vec::new();
    let mut from = 0;
    while from <= text.len() {
        let Some(found) = captures_from(regex, text, from)? else { break };
        let Some((start, end)) = found.get(0).map(|whole| (whole.start(), whole.end())) else { break };
        from = if start == end { end + text[end..].chars().next().map_or(1, char::len_utf8) } else { end };
        matches.push(found);
    }
    Ok(matches)
}

/// Python's `re.subn`: the new text and how many matches were replaced; `count` 0 means all.
pub fn replace(regex: &Regex, text: &str, replacement: &str, count: usize) -> Result<(String, usize)> {
    let template = parse_template(replacement)?;
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut replaced) = (0, 0);
    for found in find_all(regex, text)? {
        if count > 0 && replaced == count {
            break;
        }
        let Some(whole) = found.get(0) else { continue };
        out.push_str(&text[copied..whole.start()]);
        expand_into(regex, &template, &found, &mut out)?;
        copied = whole.end();
        replaced += 1;
    }
    out.push_str(&text[copied..]);
    Ok((out, replaced))
}

/// Python's `Match.expand`.
pub fn expand(regex: &Regex, template: &str, found: &Captures<'_, str>) -> Result<String> {
    let mut out = String::new();
    expand_into(regex, &parse_template(template)?, found, &mut out)?;
    Ok(out)
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

fn expand_into(regex: &Regex, template: &[Part], found: &Captures<'_, str>, out: &mut String) -> Result<()> {
    for part in template {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Group(group) => match group_of(regex, found, group) {
                Some(text) => out.push_str(text.unwrap_or_default()),
                None => return Err(RegexError(format!("invalid group reference {group}"))),
            },
        }
    }
    Ok(())
}

/// Reads the replacement text: `\1`, `\g<name>`, and the escapes of Python strings.
fn parse_template(template: &str) -> Result<Vec<Part>> {
    let letters: Vec<char> = template.chars().collect();
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut at = 0;
    while at < letters.len() {
        if letters[at] != '\\' {
            text.push(letters[at]);
            at += 1;
            continue;
        }
        let Some(letter) = letters.get(at + 1).copied() else {
            return Err(RegexError(format!("bad escape (end of pattern) in the replacement `{template}`")));
        };
        at += 2;
        let mut reference = |part: Part| {
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            parts.push(part);
        };
        match letter {
            'g' => {
                let rest: String = letters[at..].iter().collect();
                let name = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')).map(|(name, _)| name);
                let Some(name) = name.filter(|name| !name.is_empty()) else {
                    return Err(RegexError(format!("missing group name after \\g in the replacement `{template}`")));
                };
                at += name.chars().count() + 2;
                reference(Part::Group(name.to_owned()));
            }
            '0' => {
                let digits: String = letters[at..].iter().take(2).take_while(|d| ('0'..='7').contains(*d)).collect();
                at += digits.len();
                text.extend(char::from_u32(u32::from_str_radix(&digits, 8).unwrap_or(0)));
            }
            '1'..='9' => {
                let mut number = letter.to_string();
                if let Some(second) = letters.get(at).filter(|digit| digit.is_ascii_digit()) {
                    number.push(*second);
                    at += 1;
                }
                reference(Part::Group(number));
            }
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'a' => text.push('\x07'),
            'b' => text.push('\x08'),
            'f' => text.push('\x0c'),
            'v' => text.push('\x0b'),
            '\\' => text.push('\\'),
            letter if letter.is_ascii_alphabetic() => {
                return Err(RegexError(format!("bad escape \\{letter} in the replacement `{template}`")));
            }
            other => text.extend(['\\', other]),
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
    fn patterns_mean_what_they_mean_in_python() {
        let cases = [
            (r"^#?PermitRootLogin", "#PermitRootLogin yes\n", true),
            (r"yes$", "a yes\n", true),
            (r"yes$", "a yes\n\n", false),
            (r"yes\Z", "a yes\n", false),
            (r"^(?!#).*swap", "#swap\n", false),
            (r"(?i)SWAP", "swap\n", true),
            (r"{{ name }}", "x {{ name }}\n", true),
            (r"a{,2}b", "aab", true),
            (r"^a{3}$", "aa", false),
            (r"[[:]x", "[x", true),
            (r"[]x]", "]", true),
            (r"[\w-]+=", "a-b=", true),
            (r"\<tag\>", "<tag>", true),
            (r"\/etc\/fstab", "/etc/fstab", true),
            (r"a(?#comment)b", "ab", true),
            (r"(?P<q>['\x22]).*(?P=q)", "x='1'", true),
            (r"(a)\1", "aa", true),
            (r"[a&&b]", "&", true),
            (r"\bfoo\b", "a foo", true),
            (r"}", "}", true),
        ];
        for (pattern, text, expected) in cases {
            let regex = compile(pattern, Flags::default()).unwrap();
            assert_eq!(is_match(&regex, text).unwrap(), expected, "{pattern} on {text:?}");
        }
        assert!(compile("(", Flags::default()).is_err());
    }

    #[test]
    fn replacements_are_pythons() {
        let cases = [
            (r"(\w+)=(\w+)", r"\2=\1", "a=b c=d", "b=a d=c", 2),
            (r"(?P<k>\w)=", r"\g<k>:\g<1>;", "a=", "a:a;", 1),
            (r"^", "> ", "a\nb", "> a\n> b", 2),
            (r"x*", "-", "abxd", "-a-b--d-", 5),
            (r"b(z)?", r"[\1]", "abc", "a[]c", 1),
            ("a", r"\n", "a", "\n", 1),
            ("é", "e", "café é", "cafe e", 2),
        ];
        for (pattern, replacement, text, expected, count) in cases {
            let regex = compile(pattern, Flags { multiline: true, ..Flags::default() }).unwrap();
            assert_eq!(replace(&regex, text, replacement, 0).unwrap(), (expected.to_owned(), count), "{pattern}");
        }
        let regex = compile("a", Flags::default()).unwrap();
        assert!(replace(&regex, "a", r"\2", 0).is_err());
        assert!(replace(&regex, "a", r"\q", 0).is_err());
    }

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
    fn replacements_may_be_bounded_and_name_groups() {
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
