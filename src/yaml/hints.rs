//! What a person probably meant where a text is not valid YAML.

use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::error::Error;
use crate::source::{Place, Source};

fn pattern(text: &str) -> Regex {
    // our own constants, each used by a test below
    #[expect(clippy::unwrap_used)]
    Regex::new(text).unwrap()
}

/// A line that begins like an entry: dashes, perhaps a key, then its value.
static TEMPLATE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:-\s+)*(?:[\w\s.-]+:\s+)?(\{\{.*\}\}.*)$"));
static VALUE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:-\s+)*(?:[\w\s\[\]{}.-]+:\s+)?(.*)$"));
static WHOLLY_QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s*('[^']*'|"[^"]*")\s*(?:#.*)?$"#));
static KEY_WITHOUT_SPACE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s*(?:-\s+)*([\w.-]+):([^\s:/\\].*)$"#));
static KEY_WITHOUT_COLON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:-\s+)*[\w.-]+$"));

/// Adds the place to an error of the parser, and a hint where the mistake is evident.
pub(super) fn add(error: Error, source: &Arc<Source>, place: &Place) -> Error {
    // the parser often only stumbles on the line after the one that is wrong
    let lines = [Some(place.line), place.line.checked_sub(1).filter(|line| *line > 0)];
    for number in lines.into_iter().flatten() {
        let Some(line) = source.line(number) else { continue };
        if let Some((byte, hint)) = find(line, number != place.line) {
            let column = line[..byte].chars().count() as u32 + 1;
            let better = Place::new(source, number, column);
            let error = error.at(&better);
            let error = if number == place.line { error } else { error.at_label(place, "noticed here") };
            return error.hint(hint);
        }
    }
    error.at(place)
}

/// The mistake that a line shows: its byte offset and what to do.
fn find(line: &str, before: bool) -> Option<(usize, String)> {
    let indent = line.len() - line.trim_start().len();
    if let Some(tab) = line[..indent].find('\t') {
        return Some((tab, "indent with spaces: YAML allows no tab there".to_owned()));
    }
    if line.trim_start().starts_with('#') {
        return None;
    }
    if let Some(value) = TEMPLATE.captures(line).and_then(|found| found.get(1)) {
        let text = value.as_str().trim_end();
        let quoted = if text.contains('"') { format!("'{}'", text.replace('\'', "''")) } else { format!("\"{text}\"") };
        return Some((value.start(), format!("quote a value that starts with a template: {quoted}")));
    }
    let value = VALUE.captures(line).and_then(|found| found.get(1))?;
    let text = value.as_str();
    if let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\''))
        && !WHOLLY_QUOTED.is_match(text)
    {
        let hint = match text.matches(quote).count() {
            1 => format!("the quote {quote} is not closed on this line"),
            _ => format!(
                "a value that starts with the quote {quote} must end with it: put the whole value in the other kind of quotes"
            ),
        };
        return Some((value.start(), hint));
    }
    if before {
        // only mistakes that run over the end of their line count here
        if KEY_WITHOUT_COLON.is_match(line) {
            let last = line.trim_end().char_indices().last().map_or(0, |(byte, _)| byte);
            return Some((last, "a key needs a colon and a space after it".to_owned()));
        }
        return missing_space(line);
    }
    if let Some(at) = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len))
        && !text.starts_with(['\'', '"', '{', '[', '|', '>', '&', '!', ':'])
    {
        return Some((value.start() + at, "quote a value that contains a colon followed by a space".to_owned()));
    }
    missing_space(line)
}

fn missing_space(line: &str) -> Option<(usize, String)> {
    let found = KEY_WITHOUT_SPACE.captures(line)?;
    let (key, value) = (found.get(1)?, found.get(2)?);
    Some((value.start(), format!("put a space after the colon of `{}`", key.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_recognised_by_their_line() {
        type Hint = (usize, &'static str);
        let cases: &[(&str, bool, Option<Hint>)] = &[
            ("\tname: x", false, Some((0, "indent with spaces"))),
            ("  \tname: x", false, Some((2, "indent with spaces"))),
            ("- name: {{ x }}", false, Some((8, "quote a value that starts with a template: \"{{ x }}\""))),
            ("a: {{ x['k'] }}/y", false, Some((3, "\"{{ x['k'] }}/y\""))),
            ("a: \"b\" c", false, Some((3, "must end with it"))),
            ("a: \"b", false, Some((3, "not closed"))),
            ("- shell: echo a: b", false, Some((15, "colon followed by a space"))),
            ("name:copy", true, Some((5, "put a space after the colon of `name`"))),
            ("name", true, Some((3, "a key needs a colon"))),
            ("a: 'b'", false, None),
            ("# a: b: c", false, None),
        ];
        for (line, before, expected) in cases {
            let found = find(line, *before);
            match (expected, &found) {
                (None, None) => {}
                (Some((byte, words)), Some((at, hint))) => {
                    assert_eq!(at, byte, "{line}");
                    assert!(hint.contains(words), "{line}: {hint}");
                }
                _ => panic!("{line}: {found:?}"),
            }
        }
    }
}
