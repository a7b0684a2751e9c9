//! Choices that the kernel prints with the selected word in brackets: `always [madvise] never`.
//!
//! Transparent huge pages, their defragmentation and I/O schedulers use it; the order of words varies.

use std::fmt;

use crate::error::{Error, Result};

/// The words that are offered and the one that is selected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    offered: Vec<String>,
    selected: Option<String>,
}

impl Choice {
    /// Parses one line. Without brackets nothing can be selected (`none` of a device without a scheduler).
    pub fn parse(text: &str) -> Result<Choice> {
        let mut choice = Choice::default();
        for word in text.split_ascii_whitespace() {
            let selected = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            if let Some(word) = selected {
                if choice.selected.is_some() {
                    return Err(Error::input(format!("`{}` has two words in brackets", text.trim())));
                }
                choice.selected = Some(word.to_owned());
            }
            let word = selected.unwrap_or(word);
            if word.is_empty() || word.contains(['[', ']']) {
                return Err(Error::input(format!("`{}` is not a list of words with one in brackets", text.trim())));
            }
            choice.offered.push(word.to_owned());
        }
        Ok(choice)
    }

    /// The words in the order the kernel printed them.
    pub fn offered(&self) -> &[String] {
        &self.offered
    }

    pub fn offers(&self, word: &str) -> bool {
        self.offered.iter().any(|offered| offered == word)
    }

    /// The word in brackets.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// True if a word can be chosen at all.
    pub fn is_selectable(&self) -> bool {
        self.selected.is_some()
    }

    /// Fails with the offered words if `wanted` is not one of them.
    pub fn require<'a>(&self, wanted: &'a str) -> Result<&'a str> {
        if self.offers(wanted) {
            return Ok(wanted);
        }
        let words = self.offered.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        Err(Error::input(format!("`{wanted}` is not offered; there is {words}"))
            .suggest(wanted, self.offered.iter().map(String::as_str)))
    }
}

/// What the kernel prints after `word` was written, given what it printed before; blanks stay as they were.
pub fn reselected(text: &str, word: &str) -> String {
    let select = |piece: &str| {
        let bare = piece.trim_end();
        let blanks = &piece[bare.len()..];
        let bare = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(bare);
        if bare == word { format!("[{bare}]{blanks}") } else { format!("{bare}{blanks}") }
    };
    text.split_inclusive(char::is_whitespace).map(select).collect()
}

/// As the kernel prints it.
impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.offered.iter().enumerate() {
            let gap = if index > 0 { " " } else { "" };
            if self.selected.as_deref() == Some(word) {
                write!(formatter, "{gap}[{word}]")?;
            } else {
                write!(formatter, "{gap}{word}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_word_is_found_wherever_it_stands() {
        let cases = [
            ("[mq-deadline] kyber bfq none", Some("mq-deadline"), 4),
            ("none [mq-deadline] kyber bfq \n", Some("mq-deadline"), 4),
            ("always [madvise] never", Some("madvise"), 3),
            ("always defer defer+madvise [madvise] never\n", Some("madvise"), 5),
            ("none", None, 1),
            ("", None, 0),
        ];
        for (text, selected, count) in cases {
            let choice = Choice::parse(text).expect(text);
            assert_eq!((choice.selected(), choice.offered().len()), (selected, count), "{text:?}");
            assert_eq!(choice.to_string(), text.trim());
        }
    }

    #[test]
    fn another_selection_keeps_the_blanks() {
        let cases = [
            ("none [mq-deadline] kyber bfq ", "kyber", "none mq-deadline [kyber] bfq "),
            ("[none] mq-deadline\n", "mq-deadline", "none [mq-deadline]\n"),
            ("always [madvise] never", "madvise", "always [madvise] never"),
        ];
        for (before, word, after) in cases {
            assert_eq!(reselected(before, word), after);
        }
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["[a] [b]", "[]", "a]b", "[ a ]"] {
            assert!(Choice::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_word_that_is_not_offered_is_refused_with_the_list() {
        let choice = Choice::parse("always madvise [never]").expect("a choice");
        assert_eq!(choice.require("madvise").expect("offered"), "madvise");
        let error = choice.require("nevr").expect_err("not offered");
        assert_eq!(error.message(), "`nevr` is not offered; there is `always`, `madvise`, `never`");
        assert_eq!(error.hints(), ["did you mean `never`?"]);
    }
}
