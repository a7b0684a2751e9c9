//! What playbooks use and trimtab does not have, with all the places.

use std::collections::HashSet;

use indexmap::IndexMap;

use crate::source::Place;

/// What sort of thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lack {
    Module,
    /// An argument of a module that is there.
    Parameter,
    Filter,
    Test,
    Lookup,
    Connection,
    BecomeMethod,
    /// A file with a plugin in Python.
    Plugin,
}

impl Lack {
    pub const ALL: [Lack; 8] = [
        Lack::Module,
        Lack::Parameter,
        Lack::Filter,
        Lack::Test,
        Lack::Lookup,
        Lack::Connection,
        Lack::BecomeMethod,
        Lack::Plugin,
    ];

    /// For programs.
    pub fn word(self) -> &'static str {
        match self {
            Lack::Module => "module",
            Lack::Parameter => "parameter",
            Lack::Filter => "filter",
            Lack::Test => "test",
            Lack::Lookup => "lookup",
            Lack::Connection => "connection",
            Lack::BecomeMethod => "become_method",
            Lack::Plugin => "plugin",
        }
    }

    /// A heading for several of them.
    pub fn heading(self) -> &'static str {
        match self {
            Lack::Module => "modules",
            Lack::Parameter => "parameters of modules",
            Lack::Filter => "filters",
            Lack::Test => "tests",
            Lack::Lookup => "lookups",
            Lack::Connection => "connections",
            Lack::BecomeMethod => "ways to become another user",
            Lack::Plugin => "plugins in Python",
        }
    }
}

/// One thing that is missing.
#[derive(Debug, Clone)]
pub struct Missing {
    pub lack: Lack,
    pub name: String,
    /// Each place once, in the order in which they were found.
    pub places: Vec<Place>,
    /// True if a task that needs it is certainly reached.
    pub certain: bool,
    /// What to do, or what stands in its place.
    pub hint: Option<String>,
}

/// All that is missing, by sort and name.
#[derive(Debug, Default)]
pub(super) struct AllMissing {
    found: IndexMap<(Lack, String), Missing>,
    seen: HashSet<(Lack, String, String)>,
}

impl AllMissing {
    pub fn add(&mut self, lack: Lack, name: &str, place: &Place, certain: bool) {
        let entry = self.found.entry((lack, name.to_owned())).or_insert_with(|| Missing {
            lack,
            name: name.to_owned(),
            places: Vec::new(),
            certain: false,
            hint: None,
        });
        entry.certain |= certain;
        if self.seen.insert((lack, name.to_owned(), place.to_string())) {
            entry.places.push(place.clone());
        }
    }

    pub fn hint(&mut self, lack: Lack, name: &str, hint: impl FnOnce() -> Option<String>) {
        if let Some(missing) = self.found.get_mut(&(lack, name.to_owned()))
            && missing.hint.is_none()
        {
            missing.hint = hint();
        }
    }

    pub fn names(&self, lack: Lack) -> Vec<String> {
        self.found.keys().filter(|(kind, _)| *kind == lack).map(|(_, name)| name.clone()).collect()
    }

    /// By sort; within it what is certainly needed and what is used most comes first.
    pub fn into_sorted(self) -> Vec<Missing> {
        let mut all: Vec<Missing> = self.found.into_values().collect();
        all.sort_by(|left, right| {
            let key = |missing: &Missing| (missing.lack, !missing.certain, usize::MAX - missing.places.len());
            key(left).cmp(&key(right)).then_with(|| left.name.cmp(&right.name))
        });
        all
    }
}
