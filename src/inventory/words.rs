//! Splits a host line into words as a shell would (Python's `shlex` with comments).

/// A word and the byte offset at which it starts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) offset: usize,
    pub(crate) text: String,
}

/// The words of a line: quotes and backslashes are taken away, `#` starts a comment even inside a word.
/// An error comes with the byte offset of what is not closed.
pub(crate) fn split(line: &str) -> Result<Vec<Word>, (usize, &'static str)> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let mut characters = line.char_indices();
    while let Some((offset, character)) = characters.next() {
        match character {
            ' ' | '\t' | '\r' | '\n' => words.extend(current.take()),
            '#' => break,
            _ => {
                let word = current.get_or_insert_with(|| Word { offset, text: String::new() });
                match character {
                    '\\' => match characters.next() {
                        Some((_, escaped)) => word.text.push(escaped),
                        None => return Err((offset, "a backslash at the end of the line escapes nothing")),
                    },
                    '\'' | '"' => quoted(character, &mut characters, &mut word.text)
                        .ok_or((offset, "the quote is not closed on this line"))?,
                    _ => word.text.push(character),
                }
            }
        }
    }
    words.extend(current);
    Ok(words)
}

fn quoted(quote: char, characters: &mut std::str::CharIndices<'_>, text: &mut String) -> Option<()> {
    loop {
        let (_, character) = characters.next()?;
        if character == quote {
            return Some(());
        }
        if character != '\\' || quote == '\'' {
            text.push(character);
            continue;
        }
        let (_, escaped) = characters.next()?;
        if !matches!(escaped, '\\' | '"') {
            text.push('\\');
        }
        text.push(escaped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_split_as_in_a_shell() {
        let cases: &[(&str, &[&str])] = &[
            ("web1 a=1\tb='x y' c=\"q\\\"r\\n\"", &["web1", "a=1", "b=x y", "c=q\"r\\n"]),
            ("web1 a=b#c d", &["web1", "a=b"]),
            ("# all", &[]),
            ("a\\ b ''", &["a b", ""]),
        ];
        for (line, expected) in cases {
            let words: Vec<String> = split(line).unwrap().into_iter().map(|word| word.text).collect();
            assert_eq!(words, *expected, "{line}");
        }
        assert_eq!(split("web1 a='x"), Err((7, "the quote is not closed on this line")));
        assert_eq!(split("web1 ä=1 b=2").unwrap()[2].offset, 10);
    }
}
