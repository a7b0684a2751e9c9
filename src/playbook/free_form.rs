//! Arguments written on one line: `path=/etc/x mode=0644`, `echo hi creates=/tmp/x`.
//!
//! The rules for quotes, escapes and templates are those that ansible-core's recorded results show
//! (`tests/language/goldens/free_form_args.json`).

use crate::error::{Error, Result};
use crate::value::{Map, Value};

/// The arguments of `command` and its kin that may stand among the words of the command.
const COMMAND_ARGUMENTS: [&str; 8] =
    ["creates", "removes", "chdir", "executable", "warn", "stdin", "stdin_add_newline", "strip_empty_ends"];

/// The argument that holds what is no `name=value`.
pub const RAW_PARAMS: &str = "_raw_params";

/// Splits a line into words at spaces and line ends, but not inside quotes or Jinja2 marks.
///
/// Spaces that follow a word stay at its end where Ansible keeps them, so that a command can be put together
/// again as it was written.
pub fn split_words(text: &str) -> Result<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut state = State::default();
    let lines: Vec<&str> = if text.is_empty() { Vec::new() } else { text.split('\n').collect() };
    for (line_index, line) in lines.iter().enumerate() {
        let mut continues = false;
        for (index, token) in line.split(' ').enumerate() {
            if token.is_empty() && index > 0 {
                last(&mut words).push(' ');
                continue;
            }
            if token == "\\" && state.quote.is_none() {
                continues = true;
                continue;
            }
            let was_quoted = state.quote.is_some();
            let was_marked = state.is_marked();
            state.read_quotes(token);
            let opens_quote = state.quote.is_some() && !was_quoted && !was_marked;
            let goes_on = was_marked || was_quoted || state.quote.is_some();
            let opens_mark = state.read_marks(token);
            if opens_quote {
                words.push(token.to_owned());
            } else if goes_on {
                let word = last(&mut words);
                if index > 0 {
                    word.push(' ');
                }
                word.push_str(token);
            } else if opens_mark || !token.is_empty() {
                words.push(token.to_owned());
            }
        }
        if line_index + 1 < lines.len() && !continues {
            last(&mut words).push('\n');
        }
    }
    if state.quote.is_some() || state.is_marked() {
        let what = match state.quote {
            Some(quote) => format!("the quote {quote} is not closed"),
            None => "a `{{`, `{%` or `{#` is not closed".to_owned(),
        };
        return Err(Error::parse(format!("cannot split the arguments `{text}`: {what}")));
    }
    Ok(words)
}

fn last(words: &mut Vec<String>) -> &mut String {
    if words.is_empty() {
        words.push(String::new());
    }
    let end = words.len() - 1;
    &mut words[end]
}

/// What is open at a place of the line.
#[derive(Default)]
struct State {
    quote: Option<char>,
    /// Open `{{`, `{%` and `{#`.
    marks: [usize; 3],
}

impl State {
    fn is_marked(&self) -> bool {
        self.marks.iter().any(|depth| *depth > 0)
    }

    fn read_quotes(&mut self, token: &str) {
        let mut previous = None;
        for character in token.chars() {
            if matches!(character, '"' | '\'') && previous != Some('\\') {
                match self.quote {
                    Some(quote) if quote == character => self.quote = None,
                    Some(_) => {}
                    None => self.quote = Some(character),
                }
            }
            previous = Some(character);
        }
    }

    /// True if a mark opens or closes in `token` without its counterpart.
    fn read_marks(&mut self, token: &str) -> bool {
        let mut changed = false;
        for (depth, (open, close)) in self.marks.iter_mut().zip([("{{", "}}"), ("{%", "%}"), ("{#", "#}")]) {
            let before = *depth;
            *depth = (*depth + token.matches(open).count()).saturating_sub(token.matches(close).count());
            changed |= *depth != before;
        }
        changed
    }
}

/// Reads `name=value` arguments; what is none is gathered in `_raw_params`.
///
/// `is_command`: the text is a command, of which only `creates=`, `chdir=` and their like are arguments. Values
/// are texts that may be templates.
pub fn parse_key_values(text: &str, is_command: bool) -> Result<Map> {
    let mut arguments = Map::new();
    let mut raw: Vec<String> = Vec::new();
    for written in split_words(text)? {
        let word = decode_escapes(&written);
        if !word.contains('=') {
            raw.push(written);
            continue;
        }
        let Some(at) = unescaped_equals(&word) else {
            raw.push(word.replace("\\=", "="));
            continue;
        };
        let (name, value) = (&word[..at], &word[at + 1..]);
        if is_command && !COMMAND_ARGUMENTS.contains(&name) {
            raw.push(written);
        } else {
            arguments.insert(Value::written(name.trim()), Value::written(unquote(value.trim())));
        }
    }
    if !raw.is_empty() {
        arguments.insert(RAW_PARAMS.into(), Value::written(join(&raw)));
    }
    Ok(arguments)
}

/// The first `=` that is neither the first character nor behind a backslash.
fn unescaped_equals(word: &str) -> Option<usize> {
    word.match_indices('=').map(|(at, _)| at).find(|at| *at > 0 && !word[..*at].ends_with('\\'))
}

/// Takes one pair of equal quotes away that encloses the whole text.
pub fn unquote(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote))
            && !inside.ends_with('\\')
        {
            return inside;
        }
    }
    text
}

fn join(words: &[String]) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

/// Python's escapes in `text`: `\n`, `\t`, `\"`, `\x41`, `\u00e9`, …; any other backslash stays.
fn decode_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let Some((character, length)) = escape(after) else {
            out.push('\\');
            rest = after;
            continue;
        };
        out.push(character);
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// The character that an escape (without its backslash) means, and its length in bytes.
fn escape(text: &str) -> Option<(char, usize)> {
    let simple = |character| Some((character, 1));
    let code = |digits: usize| {
        let number = text.get(1..=digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let character = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
        Some((character, digits + 1))
    };
    match text.chars().next()? {
        quoted @ ('\\' | '\'' | '"') => simple(quoted),
        'a' => simple('\u{7}'),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\u{b}'),
        'x' => code(2),
        'u' => code(4),
        'U' => code(8),
        _ => None,
    }
}

/// Modules whose text is a command: only the arguments of commands are taken out of it.
const COMMAND_MODULES: [&str; 6] = ["command", "shell", "raw", "script", "win_command", "win_shell"];

/// True if the text behind this module's name is a command.
pub fn takes_command(module: &str) -> bool {
    let prefixes = ["ansible.builtin.", "ansible.legacy.", "ansible.windows."];
    let bare = prefixes.iter().find_map(|prefix| module.strip_prefix(prefix));
    COMMAND_MODULES.contains(&bare.unwrap_or(module))
}

/// The module's name and the text of its arguments, of `action: copy src=a dest=b`.
pub fn split_action(text: &str) -> Result<(String, String)> {
    let words = split_words(text)?;
    Ok(match words.split_first() {
        Some((name, rest)) => (name.trim().to_owned(), rest.join(" ")),
        None => (String::new(), String::new()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_into_words() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("a=b c=\"foo bar\"", &["a=b", "c=\"foo bar\""]),
            ("echo  two   spaces", &["echo ", "two  ", "spaces"]),
            ("a={{ x | f('y z') }} b={% if x %}1{% endif %}", &["a={{ x | f('y z') }}", "b={% if x %}1{% endif %}"]),
            ("one\n  two=3\nfour", &["one\n ", "two=3\n", "four"]),
            ("one \\\ntwo", &["one", "two"]),
            ("it\\'s", &["it\\'s"]),
            (" lead", &["lead"]),
            ("\nfoo", &["\n", "foo"]),
            ("  a=b  ", &[" ", "a=b  "]),
            ("a={{x}}b {{ y }} z={#  #}", &["a={{x}}b", "{{ y }}", "z={#  #}"]),
        ];
        for (text, expected) in cases {
            assert_eq!(split_words(text).unwrap(), *expected, "{text:?}");
        }
        assert!(split_words("a='b").unwrap_err().message().contains("the quote ' is not closed"));
        assert!(split_words("a={{ b").unwrap_err().message().contains("`{{`"));
    }

    #[test]
    fn values_may_be_templates_and_lose_their_quotes() {
        let arguments = parse_key_values("msg=\"{{ a }}\" x='y\\'' =z", false).unwrap();
        assert!(arguments.get("msg").unwrap().has_templates());
        assert_eq!(Value::map(arguments).to_repr(), "{'msg': '{{ a }}', 'x': \"y'\", '_raw_params': '=z'}");
    }
    #[test]
    fn a_command_keeps_its_lines_and_blanks() {
        for command in ["set -e\nmake   install\n", "for i in 1 2; do\n  echo \"a  b\"\ndone", "a   b\tc"] {
            assert_eq!(parse_key_values(command, true).unwrap().get(RAW_PARAMS), Some(&command.into()), "{command}");
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
