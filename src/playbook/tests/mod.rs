//! Loading, tried on small playbooks in temporary directories.

mod checks;
mod errors;
mod generated;
mod keywords;
mod roles;
mod structure;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::error::Error;

/// A directory with the files of a playbook.
struct Project {
    directory: tempfile::TempDir,
    options: LoadOptions,
}

impl Project {
    /// Writes files, each a path and its text.
    fn new(files: &[(&str, &str)]) -> Project {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Project { directory, options: LoadOptions::default() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn load(&self) -> Result<Vec<Arc<Play>>, Error> {
        load_playbook(&self.path().join("play.yml"), &self.options)
    }

    /// The one play of the playbook.
    fn play(&self) -> Arc<Play> {
        self.load().unwrap_or_else(|error| panic!("{}", self.show(&error))).remove(0)
    }

    fn warnings(&self) -> Vec<String> {
        self.options.warnings.lock().unwrap().iter().map(|warning| self.line(warning)).collect()
    }

    /// An error as `file:line:column: message (hint)`, without the directory.
    fn line(&self, error: &Error) -> String {
        let hints: String = error.hints().iter().map(|hint| format!(" ({hint})")).collect();
        format!("{error}{hints}").replace(&format!("{}/", self.path().display()), "")
    }

    /// An error and those found with it, each on a line.
    fn show(&self, error: &Error) -> String {
        let all = std::iter::once(error).chain(error.others());
        all.map(|error| self.line(error)).collect::<Vec<_>>().join("\n")
    }
}

/// A playbook of one play on all hosts with these tasks.
fn tasks(text: &str) -> Project {
    Project::new(&[("play.yml", &format!("- hosts: all\n  tasks:\n{text}"))])
}

/// All tasks in the order in which they are written, blocks taken apart.
fn flat(items: &[Item]) -> Vec<Arc<Task>> {
    let mut tasks = Vec::new();
    for item in items {
        match item {
            Item::Task(task) => tasks.push(Arc::clone(task)),
            Item::Block(block) => {
                for section in [&block.items, &block.rescue, &block.always] {
                    tasks.extend(flat(section));
                }
            }
            Item::FlushHandlers => {}
        }
    }
    tasks
}

fn texts(written: &[Written]) -> String {
    written.iter().map(|written| written.value.to_text().into_owned()).collect::<Vec<_>>().join(", ")
}

fn names(items: &[Item]) -> String {
    let name = |task: &Arc<Task>| match &task.name {
        Some(name) => name.value.to_text().into_owned(),
        None => format!("{:?}", task.args),
    };
    flat(items).iter().map(name).collect::<Vec<_>>().join(", ")
}
