//! Python's regular expressions over the lines of files, by fancy-regex.

use fancy_regex::{Captures, Regex};

use crate::host::Failure;

/// How a pattern is compiled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `^` and `$` match at every line.
    pub multiline: bool,
    /// `.` matches a newline too.
    pub dot_all: bool,
}

/// Compiles a pattern of Python's `re`.
pub fn compile(pattern: &str, flags: Flags) -> Result<Regex, Failure> {
    let translated = translate(pattern, flags);
    Regex::new(&translated).map_err(|error| {
        let reason = error.to_string();
        Failure::new(format!("the regular expression `{pattern}` cannot be used: {}", reason.trim()))
    })
}

/// Writes a pattern of Python's `re` in the syntax of fancy-regex where the two differ.
fn translate(pattern: &str, flags: Flags) -> String {
    let letters: Vec<char> = pattern.chars().collect();
    let mut multiline = flags.multiline;
    let mut out = String::new();
    if flags.dot_all {
        out.push_str("(?s)");
    }
    if flags.multiline {
        out.push_str("(?m)");
    }
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        match rest[0] {
            '\\' => at += escape(rest, &mut out, false),
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
fn escape(rest: &[char], out: &mut String, in_class: bool) -> usize {
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
            '\\' => at += escape(&rest[at..], out, true),
            ']' | '[' | '&' | '~' => {
                out.push('\\');
                out.push(*letter);
                at += 1;
            }
            '-' if at == first || rest.get(at + 1) == Some(&']') || rest.get(at + 1) == Some(&'-') => {
                out.push_str("\\-");
                at += 1;
            }
            other => {
                out.push(*other);
                at += 1;
            }
        }
    }
    at
}

/// The first match in `text` at or after the byte `from`.
pub fn captures_from<'t>(regex: &Regex, text: &'t str, from: usize) -> Result<Option<Captures<'t, str>>, Failure> {
    regex
        .captures_from_pos(text, from)
        .map_err(|error| Failure::new(format!("the regular expression `{}` gave up: {error}", regex.as_str())))
}

pub fn is_match(regex: &Regex, text: &str) -> Result<bool, Failure> {
    Ok(captures_from(regex, text, 0)?.is_some())
}

/// Replaces every match as Python's `re.subn`; the new text and how many there were.
pub fn substitute(regex: &Regex, replacement: &str, text: &str) -> Result<(String, usize), Failure> {
    let template = parse_template(replacement)?;
    let mut out = String::new();
    let (mut copied, mut from, mut count) = (0, 0, 0);
    while from <= text.len() {
        let Some(found) = captures_from(regex, text, from)? else { break };
        let Some(whole) = found.get(0) else { break };
        out.push_str(&text[copied..whole.start()]);
        expand_into(&template, &found, &mut out)?;
        copied = whole.end();
        count += 1;
        from = if whole.start() == whole.end() {
            whole.end() + text[whole.end()..].chars().next().map_or(1, char::len_utf8)
        } else {
            whole.end()
        };
    }
    out.push_str(&text[copied..]);
    Ok((out, count))
}

/// Python's `Match.expand`.
pub fn expand(template: &str, found: &Captures<'_, str>) -> Result<String, Failure> {
    let mut out = String::new();
    expand_into(&parse_template(template)?, found, &mut out)?;
    Ok(out)
}

enum Part {
    Text(String),
    Number(usize),
    Name(String),
}

fn expand_into(template: &[Part], found: &Captures<'_, str>, out: &mut String) -> Result<(), Failure> {
    for part in template {
        let group = match part {
            Part::Text(text) => {
                out.push_str(text);
                continue;
            }
            Part::Number(number) if *number >= found.len() => {
                return Err(Failure::new(format!(
                    "invalid group reference {number}: the pattern has {} groups",
                    found.len() - 1
                )));
            }
            Part::Number(number) => found.get(*number),
            Part::Name(name) => found.name(name),
        };
        out.push_str(group.map_or("", |group| group.as_str()));
    }
    Ok(())
}

/// Reads the replacement text: `\1`, `\g<name>`, and the escapes of Python strings.
fn parse_template(template: &str) -> Result<Vec<Part>, Failure> {
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
            return Err(Failure::new(format!("bad escape (end of pattern) in the replacement `{template}`")));
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
                    return Err(Failure::new(format!("missing group name after \\g in the replacement `{template}`")));
                };
                at += name.chars().count() + 2;
                reference(name.parse().map_or_else(|_| Part::Name(name.to_owned()), Part::Number));
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
                reference(Part::Number(number.parse().unwrap_or(usize::MAX)));
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
                return Err(Failure::new(format!("bad escape \\{letter} in the replacement `{template}`")));
            }
            other => text.extend(['\\', other]),
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
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
            assert_eq!(substitute(&regex, replacement, text).unwrap(), (expected.to_owned(), count), "{pattern}");
        }
        let regex = compile("a", Flags::default()).unwrap();
        assert!(substitute(&regex, r"\2", "a").is_err());
        assert!(substitute(&regex, r"\q", "a").is_err());
    }
}
