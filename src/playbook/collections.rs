//! Collections: directories `ansible_collections/NAMESPACE/NAME` with roles and playbooks.

use std::path::{Path, PathBuf};

use super::include::file_names;
use super::load::{LoadOptions, Loader, absolute, shown};
use crate::error::Error;

/// The directory that holds the namespaces.
const HOLDER: &str = "ansible_collections";

/// `namespace.name.rest` as the collection and the path of the rest (`a.b` is `a/b`); `None` for other names.
pub(super) fn split_full_name(name: &str) -> Option<(String, String)> {
    let is_word = |part: &&str| {
        !part.is_empty()
            && part.chars().all(|c| c == '_' || c == '-' || c.is_alphanumeric())
            && !part.starts_with(|c: char| c.is_ascii_digit())
    };
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        [namespace, collection, rest @ ..] if !rest.is_empty() && parts.iter().all(is_word) => {
            Some((format!("{namespace}.{collection}"), rest.join("/")))
        }
        _ => None,
    }
}

/// The collection that a directory stands in.
pub(super) fn collection_around(directory: &Path) -> Option<String> {
    let names: Vec<&str> = directory.iter().filter_map(|part| part.to_str()).collect();
    let at = names.iter().rposition(|name| *name == HOLDER)?;
    Some(format!("{}.{}", names.get(at + 1)?, names.get(at + 2)?))
}

/// A directory that holds `ansible_collections`, or is it: the former.
fn root(path: &Path) -> &Path {
    if path.ends_with(HOLDER) { path.parent().unwrap_or(path) } else { path }
}

fn directory_of(root: &Path, collection: &str) -> PathBuf {
    root.join(HOLDER).join(collection.replacen('.', "/", 1))
}

/// The file of a collection's playbook: its name may have `.yml` or `.yaml`.
fn playbook_below(collection: &Path, name: &str) -> Option<PathBuf> {
    let playbooks = collection.join("playbooks");
    ["yml", "yaml"].iter().map(|end| playbooks.join(format!("{name}.{end}"))).find(|path| path.is_file())
}

/// The file of a playbook that a command line names as `namespace.name.playbook`.
pub fn playbook_of_collection(name: &str, options: &LoadOptions) -> Option<PathBuf> {
    let (collection, short) = split_full_name(name)?;
    let here = absolute(Path::new("collections"));
    let mut roots = std::iter::once(&here).chain(&options.collections_path);
    roots.find_map(|path| playbook_below(&directory_of(root(path), &collection), &short))
}

impl Loader<'_> {
    /// The directories that hold `ansible_collections`: beside the playbook, around it, and those of the settings.
    fn collection_roots(&self) -> Vec<PathBuf> {
        let beside = self.playbook_directory.join("collections");
        let around = self.playbook_directory.ancestors().find(|path| path.ends_with(HOLDER));
        let paths = std::iter::once(beside.as_path()).chain(around);
        paths
            .chain(self.options.collections_path.iter().map(PathBuf::as_path))
            .map(|path| root(path).to_owned())
            .collect()
    }

    /// A directory of a collection, if it is there.
    pub(super) fn in_collection(&self, collection: &str, below: &Path) -> Option<PathBuf> {
        let roots = self.collection_roots();
        roots.iter().map(|root| directory_of(root, collection).join(below)).find(|path| path.is_dir())
    }

    /// The file of a collection's playbook.
    pub(super) fn playbook_in(&self, collection: &str, name: &str) -> Option<PathBuf> {
        self.collection_roots().iter().find_map(|root| playbook_below(&directory_of(root, collection), name))
    }

    /// Says of an error about a full name whether the collection is there at all, and what is in it.
    pub(super) fn about_collection(&self, collection: &str, error: Error, what: &str) -> Error {
        match self.in_collection(collection, Path::new("")) {
            Some(path) => {
                let mut names = file_names(&path.join(what));
                names.retain(|name| !name.starts_with('.'));
                names.sort_unstable();
                let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                error.hint(format!("the collection `{collection}` has these {what}: {there}"))
            }
            None => {
                let roots: Vec<String> = self
                    .collection_roots()
                    .iter()
                    .map(|root| format!("`{}`", shown(&root.join(HOLDER)).display()))
                    .collect();
                error.hint(format!("the collection `{collection}` is not in {}", roots.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_have_three_parts_or_more() {
        for (name, expected) in [
            ("acme.site.web", Some(("acme.site", "web"))),
            ("acme.site.sub.web", Some(("acme.site", "sub/web"))),
            ("acme.site", None),
            ("web", None),
            ("../a.b.c", None),
            ("1.2.3", None),
        ] {
            let found = split_full_name(name);
            assert_eq!(
                found.as_ref().map(|(collection, rest)| (collection.as_str(), rest.as_str())),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_directory_may_stand_in_a_collection() {
        let around = |path: &str| collection_around(Path::new(path));
        assert_eq!(around("/x/ansible_collections/acme/site/playbooks").as_deref(), Some("acme.site"));
        assert_eq!(around("/x/ansible_collections/acme"), None);
        assert_eq!(around("/x/playbooks"), None);
    }
}
