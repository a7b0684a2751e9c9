//! Plugins in Python beside playbooks, in roles and in collections: which there are, and what needs them.

use std::path::{Path, PathBuf};

use super::missing::{AllMissing, Lack};
use crate::playbook::include::file_names;
use crate::playbook::load::shown;
use crate::source::{Place, Source};

/// What the files of a directory are, by its name beside a playbook or in a role, and in a collection's `plugins/`.
const KINDS: [(&str, &str, &str); 13] = [
    ("library", "modules", "module"),
    ("action_plugins", "action", "action plugin"),
    ("filter_plugins", "filter", "filter plugin"),
    ("test_plugins", "test", "test plugin"),
    ("lookup_plugins", "lookup", "lookup plugin"),
    ("callback_plugins", "callback", "callback plugin"),
    ("connection_plugins", "connection", "connection plugin"),
    ("become_plugins", "become", "become plugin"),
    ("inventory_plugins", "inventory", "inventory plugin"),
    ("strategy_plugins", "strategy", "strategy plugin"),
    ("vars_plugins", "vars", "vars plugin"),
    ("cache_plugins", "cache", "cache plugin"),
    ("module_utils", "module_utils", "module utility"),
];

/// A plugin in Python.
struct Plugin {
    path: PathBuf,
    /// The file's name without its ending.
    name: String,
    kind: &'static str,
}

/// Says of each plugin what it is needed for, as far as that can be seen, and of what is missing which plugin has it.
pub(super) fn look(directories: &[PathBuf], missing: &mut AllMissing) {
    let mut plugins = Vec::new();
    for directory in directories {
        for (beside, in_collection, kind) in KINDS {
            for below in [directory.join(beside), directory.join("plugins").join(in_collection)] {
                collect(&below, kind, &mut plugins);
            }
        }
    }
    plugins.sort_by(|left: &Plugin, right| left.path.cmp(&right.path));
    plugins.dedup_by(|left, right| left.path == right.path);
    for plugin in &plugins {
        let shown_path = shown(&plugin.path).display().to_string();
        let of_kind = match plugin.kind {
            "module" | "action plugin" => Some(Lack::Module),
            "filter plugin" => Some(Lack::Filter),
            "test plugin" => Some(Lack::Test),
            "lookup plugin" => Some(Lack::Lookup),
            _ => None,
        };
        let needed: Vec<String> = match of_kind {
            None => Vec::new(),
            Some(lack) => {
                let names = missing.names(lack);
                let is_of_file = matches!(lack, Lack::Module | Lack::Lookup);
                let words = if is_of_file { Vec::new() } else { words(&plugin.path) };
                names
                    .into_iter()
                    .filter(|name| {
                        let bare = name.rsplit('.').next().unwrap_or(name);
                        if is_of_file { plugin.name == bare } else { words.iter().any(|word| word == bare) }
                    })
                    .collect()
            }
        };
        if let Some(lack) = of_kind {
            for name in &needed {
                missing.hint(lack, name, || Some(replacement(lack, name, &shown_path)));
            }
        }
        if plugin.kind == "module utility" {
            continue;
        }
        let what = format!("{shown_path} ({})", plugin.kind);
        let place = Place::start(&Source::new(shown(&plugin.path), ""));
        missing.add(Lack::Plugin, &what, &place, false);
        missing.hint(Lack::Plugin, &what, || {
            Some(match (of_kind, needed.as_slice()) {
                (Some(_), []) => "nothing that was looked at needs it".to_owned(),
                (Some(lack), names) => {
                    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    format!("needed for {} {}", lack.heading(), names.join(", "))
                }
                (None, _) => "plugins in Python cannot run".to_owned(),
            })
        });
    }
}

/// What to do in place of something that only a plugin has.
fn replacement(lack: Lack, name: &str, path: &str) -> String {
    let bare = name.rsplit('.').next().unwrap_or(name);
    match lack {
        Lack::Filter => format!(
            "it is in `{path}`; write it as a macro: `{{% macro {bare}(value) %}}…{{% endmacro %}}` in `filters/{bare}.j2`"
        ),
        Lack::Module => format!("it is in `{path}`, and modules in Python cannot run"),
        _ => format!("it is in `{path}`, and plugins in Python cannot run"),
    }
}

fn collect(directory: &Path, kind: &'static str, plugins: &mut Vec<Plugin>) {
    for file in file_names(directory) {
        let path = directory.join(&file);
        if path.is_dir() {
            collect(&path, kind, plugins);
        } else if let Some(name) = file.strip_suffix(".py").filter(|name| *name != "__init__") {
            plugins.push(Plugin { name: name.to_owned(), path, kind });
        }
    }
}

fn words(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.split(|c: char| c != '_' && !c.is_alphanumeric()).map(str::to_owned).collect()
}
