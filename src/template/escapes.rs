//! Backslashes in the strings of expressions, as Python reads them.

use std::borrow::Cow;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// Doubles the backslashes of the strings within `{{ }}` (or of a whole expression).
pub fn literal_backslashes(text: &str, in_expression: bool, config: SyntaxConfig) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut in_variable = in_expression;
    let mut out = String::with_capacity(text.len() + 8);
    let mut done = 0;
    for token in machinery::tokenize(&masked(text), in_expression, config) {
        // what follows a lexical error is left as it is: the parser will report it
        let Ok((token, span)) = token else { break };
        match token {
            Token::VariableStart => in_variable = true,
            Token::VariableEnd => in_variable = false,
            Token::String(_) | Token::Str(_) if in_variable => {
                let (start, end) = (span.start_offset as usize, span.end_offset as usize);
                let (Some(before), Some(string)) = (text.get(done..start), text.get(start..end)) else { break };
                out.push_str(before);
                let quote = string.chars().next().unwrap_or('\'');
                let mut characters = string.chars();
                while let Some(character) = characters.next() {
                    out.push(character);
                    if character == '\\' {
                        out.push('\\');
                        match characters.next() {
                            // the backslash is kept, and the quote must not end the string
                            Some(next) if next == quote => out.extend(['\\', next]),
                            Some('\\') => out.push_str("\\\\"),
                            Some(next) => out.push(next),
                            None => {}
                        }
                    }
                }
                done = end;
            }
            _ => {}
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// The text with other letters in place of escapes, so that those which minijinja does not know (`C:\users`) are no errors;
/// every offset stays the same.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push('_');
                out.extend(characters.next().map(|next| if matches!(next, '\\' | '\'' | '"') { '_' } else { next }));
            }
            other => out.push(other),
        }
    }
    out
}

/// The expression with the escapes in its strings resolved, but for those that every string needs.
pub fn with_pythons_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(character) = characters.next() {
        match quote {
            None => {
                quote = Some(character).filter(|character| matches!(character, '\'' | '"'));
                out.push(character);
            }
            Some(open) if character == open => {
                quote = None;
                out.push(character);
            }
            Some(open) if character == '\\' => {
                for meant in escaped(&mut characters) {
                    out.extend(Some('\\').filter(|_| meant == '\\' || meant == open));
                    out.push(meant);
                }
            }
            Some(_) => out.push(character),
        }
    }
    out
}

/// What stands behind a backslash in a string of Python, which ends behind it; an escape that is none stands for itself.
fn escaped(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Vec<char> {
    let Some(kind) = characters.next() else { return vec!['\\'] };
    let digits = |characters: &mut std::iter::Peekable<std::str::Chars<'_>>, most: usize, radix: u32| {
        let mut digits = String::new();
        while digits.len() < most
            && let Some(digit) = characters.next_if(|digit| digit.is_digit(radix))
        {
            digits.push(digit);
        }
        digits
    };
    let (start, most, radix) = match kind {
        'n' => return vec!['\n'],
        't' => return vec!['\t'],
        'r' => return vec!['\r'],
        'a' => return vec!['\u{7}'],
        'b' => return vec!['\u{8}'],
        'f' => return vec!['\u{c}'],
        'v' => return vec!['\u{b}'],
        '\\' | '\'' | '"' => return vec![kind],
        '\n' => return Vec::new(),
        '0'..='7' => (kind.to_string(), 2, 8),
        'x' => (String::new(), 2, 16),
        'u' => (String::new(), 4, 16),
        'U' => (String::new(), 8, 16),
        other => return vec!['\\', other],
    };
    let digits = start + &digits(characters, most, radix);
    match u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32) {
        Some(character) => vec![character],
        None => ['\\', kind].into_iter().chain(digits.chars()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_conditions_have_pythons_escapes() {
        let cases = [
            (r"'x\'y'", r"'x\'y'"),
            (r"'a\nb'", "'a\nb'"),
            (r"'a\\d' ~ 'a\d'", r"'a\\d' ~ 'a\\d'"),
            (r#""\x41\101\u00e9\"""#, r#""AAé\"""#),
            (r"x.y == z", r"x.y == z"),
            ("'\\xzz'", r"'\\xzz'"),
            ("'open\\", r"'open\\"),
        ];
        for (written, expected) in cases {
            assert_eq!(with_pythons_escapes(written), expected, "{written}");
        }
    }
}
