//! The error that a person reads: what, where, why, and what to do; its kind decides the exit code.
//!
//! Loading (command line, inventory, playbook, templates at rest) reports [`Error`]. What fails
//! while a host is worked on is a result of that host's task (see `modules::Failure`), not this.

use std::fmt;

use crate::source::Place;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of error it is; decides the exit code as ansible-playbook's does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line is wrong.
    Usage,
    /// A file is not what its format asks for.
    Parse,
    /// The input is well formed but cannot be used: unknown names, missing files, no hosts.
    Input,
    /// The controller failed: disk, network, operating system.
    System,
    /// A fault of trimtab itself.
    Internal,
    /// Whoever sits before the run ended it.
    Interrupted,
}

impl Kind {
    /// ansible-playbook's exit codes: 1 error, 4 parser error, 5 bad options, 99 interrupted, 250 unexpected.
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Usage => 5,
            Kind::Parse => 4,
            Kind::Input | Kind::System => 1,
            Kind::Internal => 250,
            Kind::Interrupted => 99,
        }
    }
}

/// An error with the places it points to and hints what to do.
#[derive(Debug, Clone)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    kind: Kind,
    message: String,
    places: Vec<(Place, String)>,
    hints: Vec<String>,
    others: Vec<Error>,
}

impl Error {
    /// An error of `kind`. Messages are lower case, without a final stop, names in backticks.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                places: Vec::new(),
                hints: Vec::new(),
                others: Vec::new(),
            }),
        }
    }

    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message)
    }

    pub fn parse(message: impl Into<String>) -> Error {
        Error::new(Kind::Parse, message)
    }

    pub fn input(message: impl Into<String>) -> Error {
        Error::new(Kind::Input, message)
    }

    pub fn system(message: impl Into<String>) -> Error {
        Error::new(Kind::System, message)
    }

    /// Points to the place where it is wrong; the first place is the main one.
    #[must_use]
    pub fn at(self, place: &Place) -> Error {
        self.at_label(place, "")
    }

    /// Points to a place with a few words beside the mark.
    #[must_use]
    pub fn at_label(mut self, place: &Place, label: impl Into<String>) -> Error {
        self.inner.places.push((place.clone(), label.into()));
        self
    }

    /// Adds a hint: one sentence that says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.inner.hints.push(hint.into());
        self
    }

    /// Adds "did you mean" if a known name is near to the wrong one.
    #[must_use]
    pub fn suggest<'a>(self, wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
        match nearest(wrong, known) {
            Some(name) => self.hint(format!("did you mean `{name}`?")),
            None => self,
        }
    }

    /// The first of several errors as one that holds the others; `None` if there are none.
    pub fn collect(errors: impl IntoIterator<Item = Error>) -> Option<Error> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        first.inner.others.extend(errors);
        Some(first)
    }

    /// The error without those that were found with it.
    #[must_use]
    pub fn alone(mut self) -> Error {
        self.inner.others.clear();
        self
    }

    /// Further errors that were found together with this one.
    pub fn others(&self) -> &[Error] {
        &self.inner.others
    }

    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The places with their labels, the main one first.
    pub fn places(&self) -> &[(Place, String)] {
        &self.inner.places
    }

    pub fn hints(&self) -> &[String] {
        &self.inner.hints
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((place, _)) = self.inner.places.first() {
            write!(formatter, "{place}: ")?;
        }
        formatter.write_str(&self.inner.message)
    }
}

impl std::error::Error for Error {}

/// The known name that is nearest to a wrong one, if any is near enough to be meant.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wrong.chars().count() / 3).max(1) + 1;
    let length = wrong.chars().count();
    known
        .into_iter()
        // that many more or fewer characters are as many edits
        .filter(|name| name.chars().count().abs_diff(length) <= limit)
        .map(|name| (edit_distance(wrong, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) that turn `left` into `right`.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (index, row) in rows.iter_mut().enumerate() {
        row[0] = index;
    }
    rows[0] = (0..=right.len()).collect();
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let cost = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_only_when_near() {
        let known = ["copy", "command", "template", "notify", "register"];
        assert_eq!(nearest("tempalte", known), Some("template"));
        assert_eq!(nearest("notifi", known), Some("notify"));
        assert_eq!(nearest("zzzzzz", known), None);
    }
}
