//! What is looked for: names, ages, sizes, modes and content.

use std::sync::Arc;

use fancy_regex::Regex;

use crate::host::Failure;
use crate::host::reads::FileKind;
use crate::modules::Args;
use crate::modules::file_common::mode::Mode;
use crate::modules::file_common::path::base_name;
use crate::modules::file_common::text::{Coding, split_lines};
use crate::python_regex::{Flags, compile, is_match};
use crate::value::Value;

use super::listing::Found;

/// All that a file must be.
pub struct Criteria {
    patterns: Vec<Arc<Regex>>,
    excludes: Vec<Arc<Regex>>,
    file_type: String,
    hidden: bool,
    /// Seconds; negative: younger.
    age: Option<i64>,
    age_stamp: String,
    /// Bytes; negative: smaller.
    size: Option<i64>,
    mode: Option<u32>,
    exact_mode: bool,
    pub contains: Option<Contains>,
    pub limit: Option<usize>,
}

impl Criteria {
    pub fn parse(args: &Args) -> Result<Criteria, Failure> {
        let use_regex = args.bool("use_regex");
        let patterns = |name: &str| -> Result<Vec<Arc<Regex>>, Failure> {
            args.list(name).iter().map(|pattern| name_pattern(pattern, use_regex)).collect()
        };
        let mode = match args.get("mode") {
            None => None,
            Some(Value::Str(text)) => Some(Mode::parse(&text.as_str().into())?.apply(0, false, 0)),
            Some(other) => {
                return Err(Failure::new(format!(
                    "argument 'mode' is not a string and conversion is not allowed, value is of type {}",
                    other.type_name()
                )));
            }
        };
        let limit = match args.int("limit") {
            None => None,
            Some(limit) => Some(
                usize::try_from(limit)
                    .ok()
                    .filter(|limit| *limit > 0)
                    .ok_or_else(|| Failure::new(format!("limit cannot be {limit} (leave it out for unlimited)")))?,
            ),
        };
        let contains = args.str("contains").map(|pattern| Contains::parse(pattern, args));
        Ok(Criteria {
            patterns: patterns("patterns")?,
            excludes: patterns("excludes")?,
            file_type: args.text("file_type").to_owned(),
            hidden: args.bool("hidden"),
            age: args.str("age").map(|text| amount(text, &AGES, "age")).transpose()?,
            age_stamp: args.text("age_stamp").to_owned(),
            size: args.str("size").map(|text| amount(text, &SIZES, "size")).transpose()?,
            mode,
            exact_mode: args.bool("exact_mode"),
            contains: contains.transpose()?,
            limit,
        })
    }

    /// True if everything but the content matches; `now` is the host's time.
    pub fn matches(&self, found: &Found, now: f64) -> bool {
        let name = base_name(&found.path);
        let attributes = &found.stat.attributes;
        let kind = match self.file_type.as_str() {
            "directory" => attributes.kind == FileKind::Directory,
            "link" => attributes.kind == FileKind::Link,
            "file" => attributes.kind == FileKind::File,
            _ => true,
        };
        let any = |patterns: &[Arc<Regex>]| patterns.iter().any(|pattern| pattern.is_match(name).unwrap_or(false));
        kind && (self.hidden || !name.starts_with('.'))
            && (self.patterns.is_empty() || any(&self.patterns))
            && !any(&self.excludes)
            && self.age_matches(found, now)
            && (attributes.kind != FileKind::File || self.size_matches(attributes.size))
            && self.mode_matches(attributes.mode)
    }

    fn age_matches(&self, found: &Found, now: f64) -> bool {
        let stamp = match self.age_stamp.as_str() {
            "atime" => found.stat.atime,
            "ctime" => found.stat.ctime,
            _ => found.stat.mtime,
        };
        match self.age {
            None => true,
            Some(age) if age >= 0 => now - stamp >= age as f64,
            Some(age) => now - stamp <= age.unsigned_abs() as f64,
        }
    }

    fn size_matches(&self, size: u64) -> bool {
        match self.size {
            None => true,
            Some(wanted) if wanted >= 0 => size >= wanted.unsigned_abs(),
            Some(wanted) => size <= wanted.unsigned_abs(),
        }
    }

    fn mode_matches(&self, mode: u32) -> bool {
        match self.mode {
            None => true,
            Some(wanted) if self.exact_mode => mode == wanted,
            Some(wanted) => mode & wanted != 0,
        }
    }
}

const AGES: [(char, i64); 5] = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];
const SIZES: [(char, i64); 5] = [('b', 1), ('k', 1 << 10), ('m', 1 << 20), ('g', 1 << 30), ('t', 1 << 40)];

/// The text of a file in an encoding by its name in Python.
fn decode(name: &str, path: &str, content: &[u8]) -> Result<String, Failure> {
    let lower = name.to_ascii_lowercase().replace('_', "-");
    let label = match lower.as_str() {
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => return Ok(Coding::Bytes.decode(content)),
        "cp936" | "936" => "gbk",
        other => match other.strip_prefix("cp125") {
            Some(page) => &format!("windows-125{page}"),
            None => other,
        },
    };
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes())
        .ok_or_else(|| Failure::new(format!("unknown encoding: {name}")))?;
    let text = encoding.decode_without_bom_handling_and_without_replacement(content);
    text.map(|text| text.into_owned()).ok_or_else(|| {
        Failure::new(format!("Failed to read the file {path} due to an encoding error. current encoding: {name}"))
    })
}

/// A number with a unit: `-2d`, `10m`.
fn amount(text: &str, units: &[(char, i64)], what: &str) -> Result<i64, Failure> {
    let lower = text.trim().to_ascii_lowercase();
    let unit = units.iter().find(|(letter, _)| lower.ends_with(*letter));
    let digits = unit.map_or(lower.as_str(), |(letter, _)| lower.trim_end_matches(*letter));
    digits.parse::<i64>().ok().and_then(|number| number.checked_mul(unit.map_or(1, |(_, factor)| *factor))).ok_or_else(
        || {
            let letters: Vec<String> = units.iter().map(|(letter, _)| letter.to_string()).collect();
            Failure::new(format!(
                "failed to process {what}: {text:?} is not a number with one of {}",
                letters.join(", ")
            ))
        },
    )
}

/// The pattern of a name: anchored at its start if it is a regular expression, at both ends if it is a shell's.
fn name_pattern(pattern: &str, is_regex: bool) -> Result<Arc<Regex>, Failure> {
    if is_regex {
        // compiled by itself first, so that the message shows the pattern as it was written
        compile(pattern, Flags::default())?;
        let anchored = compile(&format!("\\A(?:{pattern})"), Flags::default());
        return Ok(anchored.or_else(|_| compile(pattern, Flags::default()))?);
    }
    Ok(compile(&glob(pattern), Flags { dot_all: true, ..Flags::default() })?)
}

/// A shell pattern as Python's `fnmatch` reads it: `*`, `?`, `[abc]`, `[!abc]`.
fn glob(pattern: &str) -> String {
    let mut out = String::from("\\A");
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => {
                let negated = rest.starts_with('!');
                let body = if negated { &rest[1..] } else { rest };
                // a closing bracket at the start is one of the letters
                match body.char_indices().skip(1).find(|(_, letter)| *letter == ']') {
                    Some((end, _)) => {
                        let set = body[..end].replace('\\', "\\\\").replace('^', "\\^");
                        out.push_str(&format!("[{}{set}]", if negated { "^" } else { "" }));
                        rest = &body[end + 1..];
                    }
                    None => out.push_str("\\["),
                }
            }
            letter if letter.is_alphanumeric() || letter == '_' => out.push(letter),
            letter => {
                out.push('\\');
                out.push(letter);
            }
        }
    }
    out.push_str("\\Z");
    out
}

/// What the content must hold.
pub struct Contains {
    pattern: String,
    whole: bool,
    /// Without it any bytes are read.
    encoding: Option<String>,
}

impl Contains {
    fn parse(pattern: &str, args: &Args) -> Result<Contains, Failure> {
        compile(pattern, Flags::default())?;
        let encoding = args.str("encoding").map(str::to_owned);
        Ok(Contains { pattern: pattern.to_owned(), whole: args.bool("read_whole_file"), encoding })
    }

    /// Whether the content of a file matches; a failure if it is no text in the encoding.
    pub fn matches(&self, path: &str, content: &[u8]) -> Result<bool, Failure> {
        let (coding, text) = match &self.encoding {
            None => {
                let coding = Coding::of(content);
                (coding, coding.decode(content))
            }
            Some(name) => (Coding::Utf8, decode(name, path, content)?),
        };
        let regex = compile(&coding.pattern(&self.pattern), Flags::default())?;
        if self.whole {
            return Ok(is_match(&regex, &text)?);
        }
        for line in split_lines(&text) {
            let found = crate::python_regex::captures_from(&regex, &line, 0)?;
            if found.and_then(|found| found.get(0)).is_some_and(|whole| whole.start() == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_patterns_are_pythons() {
        let cases = [
            ("*.log", "a.log", true),
            ("*.log", "a.log.1", false),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("a[", "a[", true),
            ("a+b (1)", "a+b (1)", true),
            ("*", "", true),
        ];
        for (pattern, name, expected) in cases {
            let regex = name_pattern(pattern, false).unwrap();
            assert_eq!(regex.is_match(name).unwrap(), expected, "{pattern} on {name}");
        }
        let regex = name_pattern("a|b.c", true).unwrap();
        assert!(regex.is_match("bxc.d").unwrap() && !regex.is_match("xbxc").unwrap());
    }

    #[test]
    fn amounts_have_units() {
        assert_eq!(amount("2d", &AGES, "age").unwrap(), 172_800);
        assert_eq!(amount("-1w", &AGES, "age").unwrap(), -604_800);
        assert_eq!(amount("30", &AGES, "age").unwrap(), 30);
        assert_eq!(amount("10M", &SIZES, "size").unwrap(), 10 << 20);
        assert!(amount("two", &AGES, "age").is_err());
        assert!(amount("9999999999999t", &SIZES, "size").is_err());
    }

    #[test]
    fn content_matches_at_the_start_of_a_line_or_anywhere() {
        let contains = |pattern: &str, whole| Contains { pattern: pattern.to_owned(), whole, encoding: None };
        assert!(contains("b", false).matches("/f", b"a\nbc\n").unwrap());
        assert!(!contains("c", false).matches("/f", b"a\nbc\n").unwrap());
        assert!(contains(".*c", false).matches("/f", b"a\nbc\n").unwrap());
        assert!(contains("a\\nb", true).matches("/f", b"a\nbc\n").unwrap());
    }
}
