//! Every loaded text, and the places in it, for the marked line of an error.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text that was loaded from a file (or from the command line, then `path` says so).
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
    /// It was encrypted: nothing of it may be shown.
    pub is_secret: bool,
}

impl Source {
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { path: path.into(), text: text.into(), is_secret: false })
    }

    /// A text that stood in an encrypted file.
    pub fn secret(path: impl Into<PathBuf>, text: impl Into<String>) -> Arc<Source> {
        Arc::new(Source { path: path.into(), text: text.into(), is_secret: true })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Line `number`, counted from 1, without its line end; `None` if it may not be shown.
    pub fn line(&self, number: u32) -> Option<&str> {
        if self.is_secret {
            return None;
        }
        self.text.lines().nth(number.checked_sub(1)? as usize)
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
