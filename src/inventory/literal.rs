//! The type of a value in an INI inventory: a Python literal if it reads as one, else text.
//!
//! Source: Python's `ast.literal_eval`, which Ansible's INI plugin applies to each value.

use num_bigint::BigInt;
use num_traits::Num;

use crate::value::{Map, Value};

/// Deeper brackets are not read as a literal.
const DEEPEST: usize = 100;

/// The value that `text` is as a Python literal; strings may be templates.
pub(crate) fn value(text: &str) -> Value {
    let mut reader = Reader { rest: text, depth: 0 };
    match reader.expression_list() {
        Some(value) if reader.at_end() => value,
        _ => Value::written(text),
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\u{c}']);
        if self.rest.starts_with('#') {
            self.rest = "";
        }
    }

    fn at_end(&mut self) -> bool {
        self.skip_blank();
        self.rest.is_empty()
    }

    fn take(&mut self, token: char) -> bool {
        self.skip_blank();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// `1` or `1, 2`, which is a tuple.
    fn expression_list(&mut self) -> Option<Value> {
        let first = self.expression()?;
        if !self.take(',') {
            return Some(first);
        }
        let mut items = vec![first];
        while !self.at_end() && !self.rest.starts_with(')') {
            items.push(self.expression()?);
            if !self.take(',') {
                break;
            }
        }
        Some(Value::list(items))
    }

    fn expression(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        self.skip_blank();
        let value = match self.rest.chars().next()? {
            '[' => self.list(),
            '(' => self.tuple(),
            '{' => self.dict_or_set(),
            '-' | '+' => self.signed(),
            '0'..='9' | '.' => self.number(),
            _ => self.word(),
        };
        self.depth -= 1;
        value
    }

    /// Items up to `close`, which is taken too.
    fn items(&mut self, close: char) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        loop {
            if self.take(close) {
                return Some(items);
            }
            items.push(self.expression()?);
            if !self.take(',') {
                return self.take(close).then_some(items);
            }
        }
    }

    fn list(&mut self) -> Option<Value> {
        self.take('[');
        self.items(']').map(Value::list)
    }

    fn tuple(&mut self) -> Option<Value> {
        self.take('(');
        if self.take(')') {
            return Some(Value::list(Vec::new()));
        }
        let inside = self.expression_list()?;
        self.take(')').then_some(inside)
    }

    fn dict_or_set(&mut self) -> Option<Value> {
        self.take('{');
        if self.take('}') {
            return Some(Value::empty_map());
        }
        let first = self.expression()?;
        if !self.take(':') {
            let mut items = vec![first];
            if self.take(',') {
                items.extend(self.items('}')?);
            } else if !self.take('}') {
                return None;
            }
            let mut distinct: Vec<Value> = Vec::with_capacity(items.len());
            for item in items {
                if !distinct.contains(&item) {
                    distinct.push(item);
                }
            }
            return Some(Value::list(distinct));
        }
        let mut map = Map::new();
        let mut key = first;
        loop {
            if matches!(key, Value::List(_) | Value::Map(_)) {
                return None;
            }
            let value = self.expression()?;
            map.insert(key, value);
            if !self.take(',') {
                return self.take('}').then(|| Value::map(map));
            }
            if self.take('}') {
                return Some(Value::map(map));
            }
            key = self.expression()?;
            if !self.take(':') {
                return None;
            }
        }
    }

    fn signed(&mut self) -> Option<Value> {
        let negative = self.rest.starts_with('-');
        self.rest = &self.rest[1..];
        self.skip_blank();
        if !self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        match self.number()? {
            Value::Int(number) if negative => Some(Value::big(-BigInt::from(number))),
            Value::Big(number) if negative => Some(Value::big(-number.as_ref().clone())),
            Value::Float(number) if negative => Some(Value::Float(-number)),
            value => Some(value),
        }
    }

    fn number(&mut self) -> Option<Value> {
        let mut end = self.rest.len();
        let mut before = ' ';
        for (index, character) in self.rest.char_indices() {
            let is_hexadecimal = self.rest.starts_with("0x") || self.rest.starts_with("0X");
            let is_exponent_sign = matches!(character, '+' | '-') && matches!(before, 'e' | 'E') && !is_hexadecimal;
            if !(character.is_alphanumeric() || matches!(character, '.' | '_') || is_exponent_sign) {
                end = index;
                break;
            }
            before = character;
        }
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        number(text)
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if rest.starts_with(['\'', '"'])
            && matches!(word.to_ascii_lowercase().as_str(), "" | "r" | "u" | "b" | "br" | "rb")
        {
            return self.strings();
        }
        self.rest = rest;
        match word {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            _ => None,
        }
    }

    /// One string, or several side by side, which are one.
    fn strings(&mut self) -> Option<Value> {
        let mut text = String::new();
        loop {
            let raw_at = self.rest.find(['\'', '"'])?;
            let prefix = &self.rest[..raw_at];
            let is_raw = prefix.contains(['r', 'R']);
            self.rest = &self.rest[raw_at..];
            self.string(is_raw, &mut text)?;
            self.skip_blank();
            let end = self.rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at(end);
            let is_string = rest.starts_with(['\'', '"'])
                && matches!(word.to_ascii_lowercase().as_str(), "" | "r" | "u" | "b" | "br" | "rb");
            if !is_string {
                return Some(Value::written(text));
            }
        }
    }

    fn string(&mut self, is_raw: bool, out: &mut String) -> Option<()> {
        let quote = self.rest.chars().next()?;
        let triple = quote.to_string().repeat(3);
        let close = if self.rest.starts_with(&triple) { triple } else { quote.to_string() };
        self.rest = &self.rest[close.len()..];
        loop {
            if let Some(rest) = self.rest.strip_prefix(close.as_str()) {
                self.rest = rest;
                return Some(());
            }
            let character = self.next_char()?;
            if character != '\\' {
                out.push(character);
                continue;
            }
            let escaped = self.next_char()?;
            if is_raw {
                out.extend(['\\', escaped]);
                continue;
            }
            match escaped {
                '\\' | '\'' | '"' => out.push(escaped),
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'a' => out.push('\u{7}'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'v' => out.push('\u{b}'),
                'x' => out.push(self.code_point(2)?),
                'u' => out.push(self.code_point(4)?),
                'U' => out.push(self.code_point(8)?),
                'N' => return None,
                '0'..='7' => {
                    let more = self.rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                    let digits = format!("{escaped}{}", &self.rest[..more]);
                    self.rest = &self.rest[more..];
                    out.push(char::from_u32(u32::from_str_radix(&digits, 8).ok()?)?);
                }
                other => out.extend(['\\', other]),
            }
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next()?;
        self.rest = characters.as_str();
        Some(character)
    }

    fn code_point(&mut self, digits: usize) -> Option<char> {
        let text = self.rest.get(..digits)?;
        self.rest = &self.rest[digits..];
        char::from_u32(u32::from_str_radix(text, 16).ok()?)
    }
}

/// A number as Python writes it: `1_000`, `0x1f`, `1.5e3`; `None` for `07` and anything else.
fn number(text: &str) -> Option<Value> {
    if text.starts_with('_') || text.ends_with('_') || text.contains("__") {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = digits.replace('_', "");
            return BigInt::from_str_radix(&digits, radix).ok().map(Value::big);
        }
    }
    if text.contains("_.") || text.contains("._") {
        return None;
    }
    let plain = text.replace('_', "");
    if plain.bytes().all(|byte| byte.is_ascii_digit()) {
        let is_octal_of_old = plain.len() > 1 && plain.starts_with('0') && plain.bytes().any(|byte| byte != b'0');
        return if is_octal_of_old { None } else { BigInt::from_str_radix(&plain, 10).ok().map(Value::big) };
    }
    let is_float = plain.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_float { plain.parse().ok().map(Value::Float) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_pythons() {
        let cases = [
            ("128", "128"),
            ("-3", "-3"),
            ("0x1f", "31"),
            ("0o17", "15"),
            ("1_000", "1000"),
            ("99999999999999999999", "99999999999999999999"),
            ("1.10", "1.1"),
            ("1e3", "1000.0"),
            (".5", "0.5"),
            ("5 # tail", "5"),
            ("True", "True"),
            ("None", "None"),
            ("'a' \"b\"", "'ab'"),
            (r"'a\n\x41'", r"'a\nA'"),
            (r"r'a\n'", r"'a\\n'"),
            ("[1, 'x', [2,],]", "[1, 'x', [2]]"),
            ("{'a': 1, 2: None}", "{'a': 1, 2: None}"),
            ("{1, 1, 2}", "[1, 2]"),
            ("(1, 2)", "[1, 2]"),
            ("1, 2", "[1, 2]"),
            ("(1)", "1"),
            ("()", "[]"),
            ("''", "''"),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text).to_repr(), expected, "{text}");
        }
    }

    #[test]
    fn anything_else_stays_text() {
        let texts = [
            "",
            "true",
            "yes",
            "07",
            "1.2.3",
            "abc # tail",
            "10.0.0.7",
            "1-2",
            "--1",
            "{a:1}",
            "[1",
            "'a",
            "a=b",
            "0x",
            "1__0",
            "foo()",
            "f'x'",
            "-True",
            "{{ x }}",
            "[[1], {[2]: 3}]",
            "日本",
            "10L",
            "1:2",
            "'a'b",
            "/etc/x",
        ];
        for text in texts {
            assert_eq!(value(text), Value::from(text), "{text}");
        }
        assert!(value("{{ x }}").has_templates());
        assert!(value("['{{ x }}']").has_templates());
        assert_eq!(value(&"[".repeat(10_000)), Value::from("[".repeat(10_000)));
    }
}
