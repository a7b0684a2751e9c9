//! Words of a command line: split as Python's `shlex` does, and put into shell code so that the host
//! expands what Ansible expands (`~` and variables) and nothing else.

use crate::connect::shell::quote;

/// Splits a command line into words: blanks, quotes and backslashes as in a POSIX shell, no expansion.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or("No closing quotation")? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next().ok_or("No closing quotation")? {
                        '"' => break,
                        '\\' => match characters.next().ok_or("No closing quotation")? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        other => word.push(other),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(characters.next().ok_or("No escaped character")?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Shell code for one word in which a leading `~` or `~user` and `$NAME`, `${NAME}` are expanded by the
/// host's shell; variables that are not set stay as they are written, as Python's `expandvars` leaves them.
pub fn expanded(word: &str) -> String {
    let (tilde, rest) = split_tilde(word);
    let mut code = tilde.to_owned();
    let mut plain = String::new();
    let mut rest = rest;
    while !rest.is_empty() {
        if let Some((name, after)) = leading_variable(rest) {
            push_quoted(&mut code, &mut plain);
            let written = &rest[..rest.len() - after.len()];
            code.push_str(&format!("\"${{{name}-\\{}}}\"", written.replace('}', "\\}")));
            rest = after;
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            plain.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    push_quoted(&mut code, &mut plain);
    if code.is_empty() { quote("") } else { code }
}

/// True if the host's shell has something to expand in this word.
pub fn needs_expansion(word: &str) -> bool {
    word.starts_with('~') || word.match_indices('$').any(|(at, _)| leading_variable(&word[at..]).is_some())
}

/// True if the word is a pattern for file names.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

fn push_quoted(code: &mut String, plain: &mut String) {
    if !plain.is_empty() {
        code.push_str(&quote(plain));
        plain.clear();
    }
}

/// `~user/` (which the shell expands only if it stands unquoted) and what follows.
fn split_tilde(word: &str) -> (&str, &str) {
    if !word.starts_with('~') {
        return ("", word);
    }
    let end = word.find('/').unwrap_or(word.len());
    if word[1..end].chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        word.split_at((end + 1).min(word.len()))
    } else {
        ("", word)
    }
}

/// The name of the variable that `text` begins with, and what follows it.
fn leading_variable(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('$')?;
    let (name, rest) = match after.strip_prefix('{') {
        Some(braced) => braced.split_once('}')?,
        None => after.split_at(after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len())),
    };
    is_variable_name(name).then_some((name, rest))
}

/// True if a shell takes this for the name of a variable.
pub fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_are_split_as_shlex_does() {
        let cases: &[(&str, &[&str])] = &[
            ("echo hi", &["echo", "hi"]),
            ("  a\t b\n c ", &["a", "b", "c"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            (r#"a\ b "c\"d" "e\nf""#, &["a b", "c\"d", r"e\nf"]),
            ("x '' \"\"", &["x", "", ""]),
            ("a # b", &["a", "#", "b"]),
            ("", &[]),
        ];
        for (text, words) in cases {
            assert_eq!(split(text).unwrap(), *words, "{text}");
        }
        assert_eq!(split("a 'b"), Err("No closing quotation"));
        assert_eq!(split("a \"b"), Err("No closing quotation"));
        assert_eq!(split("a\\"), Err("No escaped character"));
    }

    #[test]
    fn every_shell_expands_home_and_variables_and_nothing_else() {
        let cases = [
            ("~", "/home/of me"),
            ("~/a b", "/home/of me/a b"),
            ("a~", "a~"),
            ("$HOME/x", "/home/of me/x"),
            ("${HOME}y", "/home/of mey"),
            ("$NOT_SET and ${NOT_SET}", "$NOT_SET and ${NOT_SET}"),
            ("$(echo no) `echo no` $1 $ ${", "$(echo no) `echo no` $1 $ ${"),
            ("* ; it's", "* ; it's"),
            ("~no such/x", "~no such/x"),
            ("", ""),
        ];
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            if Command::new(shell[0]).args(&shell[1..]).args(["-c", ":"]).output().is_err() {
                continue;
            }
            for (word, wanted) in cases {
                let output = Command::new(shell[0])
                    .args(&shell[1..])
                    .args(["-c", &format!("printf %s {}", expanded(word))])
                    .env("HOME", "/home/of me")
                    .env_remove("NOT_SET")
                    .output()
                    .unwrap();
                assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{shell:?}: {word}");
            }
        }
    }
}
