//! Arguments written as text: `key=value` pairs, and free text for modules that take a command.
//!
//! The rules are Ansible's: blanks part the words, except within quotes and within `{{ }}`, `{% %}`
//! and `{# #}`; line ends of a command are kept; escapes as in Python's strings are read.

use crate::value::{Map, Value};

/// The key under which words that are no `key=value` pair are kept.
pub const RAW_PARAMS: &str = "_raw_params";

/// Modules whose text is a command: only the arguments in [`COMMAND_ARGUMENTS`] are taken out of it.
const COMMAND_MODULES: &[&str] = &[
    "command",
    "shell",
    "raw",
    "script",
    "win_command",
    "win_shell",
    "ansible.windows.win_command",
    "ansible.windows.win_shell",
];

/// The arguments that may stand in the text of a command as `key=value`.
const COMMAND_ARGUMENTS: &[&str] =
    &["creates", "removes", "chdir", "executable", "warn", "stdin", "stdin_add_newline", "strip_empty_ends"];

/// True if the text behind this module's name is a command.
pub fn takes_command(module: &str) -> bool {
    let bare = ["ansible.builtin.", "ansible.legacy."].iter().find_map(|prefix| module.strip_prefix(prefix));
    COMMAND_MODULES.contains(&bare.unwrap_or(module))
}

/// Reads `key=value` pairs; all other words become [`RAW_PARAMS`]. With `command`, only the arguments of commands
/// are pairs. All values are text. Refuses text whose quotes or template marks are not balanced.
pub fn parse_kv(text: &str, command: bool) -> Result<Map, String> {
    let mut pairs = Map::new();
    let mut free = Vec::new();
    for word in split_words(text)? {
        let decoded = decode_escapes(&word);
        match equals_sign(&decoded) {
            Some(position) => {
                let (key, value) = (&decoded[..position], &decoded[position + 1..]);
                if command && !COMMAND_ARGUMENTS.contains(&key) {
                    free.push(word);
                } else {
                    pairs.insert(Value::from(key.trim()), Value::written(unquote(value.trim())));
                }
            }
            None if decoded.contains('=') => free.push(decoded.replace("\\=", "=")),
            None => free.push(word),
        }
    }
    if !free.is_empty() {
        pairs.insert(RAW_PARAMS.into(), Value::written(join_words(&free)));
    }
    Ok(pairs)
}

/// The module's name and the text of its arguments, of `action: copy src=a dest=b`.
pub fn split_action(text: &str) -> Result<(String, String), String> {
    let words = split_words(text)?;
    match words.split_first() {
        Some((name, rest)) => Ok((name.trim().to_owned(), rest.join(" "))),
        None => Ok((String::new(), String::new())),
    }
}

/// The byte position of the first `=` that ends a key: not the first character, not escaped.
fn equals_sign(word: &str) -> Option<usize> {
    let bytes = word.as_bytes();
    (1..bytes.len()).find(|&index| bytes[index] == b'=' && bytes[index - 1] != b'\\')
}

/// Removes the quotes around a value, if it is wholly within one pair.
fn unquote(value: &str) -> &str {
    let bytes = value.as_bytes();
    match bytes {
        [first @ (b'"' | b'\''), .., last] if first == last && bytes[bytes.len() - 2] != b'\\' => {
            &value[1..value.len() - 1]
        }
        _ => value,
    }
}

/// Puts words together again; the blanks and line ends behind a word belong to it.
fn join_words(words: &[String]) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// Where the splitter is: in quotes, and how deep in each kind of template mark.
#[derive(Default)]
struct Nesting {
    quote: Option<char>,
    /// Depths of `{{ }}`, `{% %}` and `{# #}`.
    depths: [usize; 3],
}

const MARKS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];

impl Nesting {
    fn in_marks(&self) -> bool {
        self.depths.iter().any(|depth| *depth > 0)
    }

    fn take_quotes(&mut self, token: &str) {
        let mut previous = None;
        for character in token.chars() {
            if matches!(character, '"' | '\'') && previous != Some('\\') {
                match self.quote {
                    Some(open) if open == character => self.quote = None,
                    Some(_) => {}
                    None => self.quote = Some(character),
                }
            }
            previous = Some(character);
        }
    }

    /// Counts the marks of a token; true if any depth changed.
    fn take_marks(&mut self, token: &str) -> bool {
        let mut changed = false;
        for ((open, close), depth) in MARKS.iter().zip(&mut self.depths) {
            let (opened, closed) = (token.matches(open).count(), token.matches(close).count());
            let now = (*depth + opened).saturating_sub(closed);
            changed |= now != *depth;
            *depth = now;
        }
        changed
    }
}

/// Splits text at blanks outside of quotes and template marks. Further blanks and line ends stay at the end of the
/// word before them, so that a command can be put together as it was.
pub fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = Vec::new();
    if text.is_empty() {
        return Ok(words);
    }
    let mut nesting = Nesting::default();
    let lines: Vec<&str> = text.split('\n').collect();
    for (number, line) in lines.iter().enumerate() {
        let mut continued = false;
        for (index, token) in line.split(' ').enumerate() {
            if token.is_empty() && index > 0 {
                append(&mut words, " ");
                continue;
            }
            if token == "\\" && nesting.quote.is_none() {
                continued = true;
                continue;
            }
            let was_quoted = nesting.quote.is_some();
            let was_in_marks = nesting.in_marks();
            nesting.take_quotes(token);
            let quoted = nesting.quote.is_some();
            let marks_changed = nesting.take_marks(token);
            if was_in_marks || was_quoted {
                if index > 0 {
                    append(&mut words, " ");
                }
                append(&mut words, token);
            } else if quoted || marks_changed || !token.is_empty() {
                words.push(token.to_owned());
            }
        }
        if number + 1 < lines.len() && !continued {
            append(&mut words, "\n");
        }
    }
    if nesting.quote.is_some() || nesting.in_marks() {
        return Err("quotes or template marks (`{{ }}`, `{% %}`) are not balanced".to_owned());
    }
    Ok(words)
}

fn append(words: &mut Vec<String>, text: &str) {
    match words.last_mut() {
        Some(last) => last.push_str(text),
        None => words.push(text.to_owned()),
    }
}

/// Reads the escapes of Python's strings, except named characters and octal numbers.
fn decode_escapes(word: &str) -> String {
    let mut decoded = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(position) = rest.find('\\') {
        decoded.push_str(&rest[..position]);
        let escape = &rest[position..];
        match read_escape(&escape[1..]) {
            Some((character, length)) => {
                decoded.push(character);
                rest = &escape[1 + length..];
            }
            None => {
                decoded.push('\\');
                rest = &escape[1..];
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// The character of an escape and the length of what stands behind the backslash.
fn read_escape(text: &str) -> Option<(char, usize)> {
    let kind = text.chars().next()?;
    let simple = |character| Some((character, 1));
    match kind {
        '\\' | '\'' | '"' => simple(kind),
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        'x' | 'u' | 'U' => {
            let digits = match kind {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            let hex = text.get(1..1 + digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            let character = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
            Some((character, 1 + digits))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_free_text() {
        let cases: &[(&str, bool, &str)] = &[
            ("path=/etc/hosts mode=0644", false, "{'path': '/etc/hosts', 'mode': '0644'}"),
            ("path=/etc/hosts mode=0644", true, "{'_raw_params': 'path=/etc/hosts mode=0644'}"),
            ("src='a b.j2' dest=\"/x y\"", false, "{'src': 'a b.j2', 'dest': '/x y'}"),
            ("echo hi creates=/tmp/x", true, "{'creates': '/tmp/x', '_raw_params': 'echo hi'}"),
            ("echo a=b c\\=d", false, "{'a': 'b', '_raw_params': 'echo c=d'}"),
            ("echo a=b c\\=d", true, "{'_raw_params': 'echo a=b c=d'}"),
            ("line='a {{ x | f(\\'.\\', \\'-\\') }}'", false, "{'line': \"a {{ x | f('.', '-') }}\"}"),
            ("msg={{ x | default('a b') }} b=2", false, "{'msg': \"{{ x | default('a b') }}\", 'b': '2'}"),
            ("a=1 a=2", false, "{'a': '2'}"),
            ("a=\"one\\ntwo\" b=", false, "{'a': 'one\\ntwo', 'b': ''}"),
            ("group = wheel", false, "{'_raw_params': 'group = wheel'}"),
            ("path=/a\n  line=b", false, "{'path': '/a', 'line': 'b'}"),
            ("", false, "{}"),
            ("a=\\x41\\u00e9", false, "{'a': 'Aé'}"),
        ];
        for (text, command, expected) in cases {
            assert_eq!(Value::map(parse_kv(text, *command).unwrap()).to_repr(), *expected, "{text}");
        }
    }

    #[test]
    fn a_command_keeps_its_lines_and_blanks() {
        for command in ["set -e\nmake   install\n", "for i in 1 2; do\n  echo \"a  b\"\ndone", "a   b\tc"] {
            assert_eq!(parse_kv(command, true).unwrap().get(RAW_PARAMS), Some(&command.into()), "{command}");
        }
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines() {
        assert_eq!(parse_kv("a \\\nb", true).unwrap().get(RAW_PARAMS), Some(&"a b".into()));
    }

    #[test]
    fn unbalanced_text_is_refused() {
        for text in ["a='b", "a={{ b", "echo \"x"] {
            assert!(parse_kv(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn an_action_is_a_name_and_arguments() {
        let split = |text| split_action(text).unwrap();
        assert_eq!(split("copy src=a dest='b c'"), ("copy".into(), "src=a dest='b c'".into()));
        assert_eq!(split("ping"), ("ping".into(), String::new()));
        assert!(takes_command("ansible.builtin.shell") && takes_command("raw") && !takes_command("copy"));
    }
}
