//! Every loaded text, and the places in it, for the marked line of an error.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A text that was loaded from a file (or from the command line, then `path` says so).
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
    /// It was encrypted: nothing of it may be shown.
    pub is_secret: bool,
    /// Where each line begins, once one was asked for: warnings may name every line of a long file.
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Source::with(path.into(), text.into(), false)
    }

    /// A text that stood in an encrypted file.
    pub fn secret(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Source::with(path.into(), text.into(), true)
    }

    fn with(path: PathBuf, text: String, is_secret: bool) -> Arc<Source> {
        Arc::new(Source { path, text, is_secret, lines: OnceLock::new() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line `number`, counted from 1, without its line end; `None` if it may not be shown.
    pub fn line(&self, number: u32) -> Option<&str> {
        if self.is_secret {
            return None;
        }
        let begins = self.lines.get_or_init(|| {
            std::iter::once(0).chain(self.text.match_indices('\n').map(|(index, _)| index + 1)).collect()
        });
        // empty behind the last line end, where no line begins any more
        self.text[*begins.get(number.checked_sub(1)? as usize)?..].lines().next()
    }
}

/// A place in a source: line and column, both counted from 1; the column counts characters.
#[derive(Clone)]
pub struct Place {
    pub source: Arc<Source>,
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub fn new(source: &Arc<Source>, line: u32, column: u32) -> Place {
        Place { source: Arc::clone(source), line, column }
    }

    /// The first character of a source.
    pub fn start(source: &Arc<Source>) -> Place {
        Place::new(source, 1, 1)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.source.path.display(), self.line, self.column)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_str_lines() {
        for text in ["", "\n", "a", "a\n", "a\r\nb", "a\n\nb\n", "\r\n\r", "ä\nö"] {
            let source = Source::new("file", text);
            let lines: Vec<&str> = (1..9).map_while(|number| source.line(number)).collect();
            assert_eq!(lines, text.lines().collect::<Vec<_>>(), "{text:?}");
            assert_eq!(source.line(0), None);
        }
    }
}
