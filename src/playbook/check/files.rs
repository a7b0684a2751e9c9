//! What stands below a directory: playbooks, roles, files of tasks and of variables.

use std::path::{Path, PathBuf};

use crate::playbook::include::file_names;
use crate::playbook::load::absolute;
use crate::source::Source;
use crate::yaml::{self, Node};

/// Directories that hold no playbooks of the team: tests of roles, and what is not Ansible's.
const LEFT_OUT: [&str; 3] = ["molecule", "node_modules", "tests"];

/// Parts of roles and sites whose YAML is no playbook.
const NO_PLAYBOOKS: [&str; 5] = ["files", "templates", "meta", "library", "inventory"];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub playbooks: Vec<PathBuf>,
    /// Their directories.
    pub roles: Vec<PathBuf>,
    /// Files of tasks that are in no role.
    pub tasks: Vec<PathBuf>,
    /// Files of variables that are in no role.
    pub variables: Vec<PathBuf>,
    /// All directories that were looked into.
    pub directories: Vec<PathBuf>,
}

/// Looks through a directory. Names that begin with a dot are left out.
pub(super) fn below(directory: &Path) -> Found {
    let mut found = Found::default();
    let directory = absolute(directory);
    if is_role(&directory) {
        found.roles.push(directory);
    } else {
        look(&directory, &mut found);
    }
    found
}

/// True if a directory is a role: it has tasks, or what makes one without them.
pub(super) fn is_role(directory: &Path) -> bool {
    let has = |name: &str| ["yml", "yaml", "json"].iter().any(|end| directory.join(format!("{name}.{end}")).is_file());
    has("tasks/main")
        || (has("meta/main") && (has("handlers/main") || has("defaults/main") || has("vars/main")))
        || (directory.parent().is_some_and(|parent| parent.ends_with("roles")) && directory.join("tasks").is_dir())
}

fn look(directory: &Path, found: &mut Found) {
    found.directories.push(directory.to_owned());
    let mut names = file_names(directory);
    names.sort_unstable();
    names.retain(|name| !name.starts_with('.') && !name.ends_with('~'));
    for name in names {
        let path = directory.join(&name);
        if path.is_dir() {
            let is_link = path.symlink_metadata().is_ok_and(|about| about.file_type().is_symlink());
            if is_link || LEFT_OUT.contains(&name.as_str()) || NO_PLAYBOOKS.contains(&name.as_str()) {
                continue;
            }
            if is_role(&path) {
                found.roles.push(path);
            } else {
                look(&path, found);
            }
        } else {
            sort(path, found);
        }
    }
}

fn sort(path: PathBuf, found: &mut Found) {
    let parents: Vec<&str> = path.iter().rev().skip(1).take(2).filter_map(|part| part.to_str()).collect();
    let holds_variables = parents.iter().any(|name| matches!(*name, "group_vars" | "host_vars"))
        || parents.first().is_some_and(|name| matches!(*name, "vars" | "defaults"));
    let is_yaml = path.extension().is_some_and(|end| end == "yml" || end == "yaml");
    if holds_variables && (is_yaml || path.extension().is_none()) {
        found.variables.push(path);
        return;
    }
    if !is_yaml {
        return;
    }
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    match yaml::load(&Source::new(&path, text.as_str())) {
        Ok(Some(root)) => match root.as_sequence() {
            Some(entries) if entries.iter().any(is_play) => found.playbooks.push(path),
            Some(entries) if in_tasks(&parents) && entries.iter().any(|entry| entry.as_mapping().is_some()) => {
                found.tasks.push(path);
            }
            _ => {}
        },
        Ok(None) => {}
        // broken, but meant to be one
        Err(_) if text.contains("hosts:") => found.playbooks.push(path),
        Err(_) => {}
    }
}

fn in_tasks(parents: &[&str]) -> bool {
    parents.iter().any(|name| matches!(*name, "tasks" | "handlers"))
}

fn is_play(entry: &Node) -> bool {
    let imports = ["hosts", "import_playbook", "ansible.builtin.import_playbook"];
    imports.iter().any(|key| entry.get(key).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn playbooks_roles_and_files_are_told_apart() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = absolute(directory.path());
        for (file, text) in [
            ("site.yml", "- hosts: all\n"),
            ("more/all.yaml", "- import_playbook: ../site.yml\n"),
            ("broken.yml", "- hosts: all\n  tasks: [\n"),
            ("group_vars/all", "a: 1\n"),
            ("group_vars/web/main.yml", "a: 1\n"),
            ("vars/x.yml", "a: 1\n"),
            ("tasks/one.yml", "- ping:\n"),
            ("requirements.yml", "- src: a\n"),
            ("roles/one/tasks/main.yml", "- ping:\n"),
            ("roles/one/tests/test.yml", "- hosts: all\n"),
            ("roles/two/tasks/other.yml", "- ping:\n"),
            ("molecule/default/converge.yml", "- hosts: all\n"),
            (".github/x.yml", "- hosts: all\n"),
            ("templates/x.yml", "- hosts: all\n"),
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let found = below(&root);
        let names = |paths: &[PathBuf]| {
            let shown = paths.iter().map(|path| path.strip_prefix(&root).unwrap_or(path).display().to_string());
            shown.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&found.playbooks), "broken.yml more/all.yaml site.yml");
        assert_eq!(names(&found.roles), "roles/one roles/two");
        assert_eq!(names(&found.tasks), "tasks/one.yml");
        assert_eq!(names(&found.variables), "group_vars/all group_vars/web/main.yml vars/x.yml");
        assert_eq!(names(&below(&root.join("roles/one")).roles), "roles/one");
    }
}
