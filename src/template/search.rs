//! Where lookups and includes look for their files, in Ansible's order.

use std::path::{Path, PathBuf};

/// The directories around a task: its roles, its file and its playbook.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    /// The role of the task, then the roles it was included from.
    pub role_dirs: Vec<PathBuf>,
    /// The directory of the file that holds the task.
    pub task_dir: Option<PathBuf>,
    pub playbook_dir: PathBuf,
}

impl SearchPath {
    /// Every directory where a file of `kind` (`files`, `templates`, `vars`, `tasks`) is looked for, in order:
    /// for each of role, task file and playbook first its `kind` subdirectory, then itself.
    pub fn directories(&self, kind: &str) -> Vec<PathBuf> {
        let mut directories: Vec<PathBuf> = Vec::new();
        let bases = self.role_dirs.iter().chain(self.task_dir.as_ref()).chain([&self.playbook_dir]);
        for base in bases {
            for directory in [base.join(kind), base.clone()] {
                if !directories.contains(&directory) {
                    directories.push(directory);
                }
            }
        }
        directories
    }

    /// The first existing file `name` of `kind`; an absolute name stands for itself, `~` for the home directory.
    pub fn find(&self, kind: &str, name: &str) -> Option<PathBuf> {
        let name = expand_home(name);
        if name.is_absolute() {
            return name.exists().then_some(name);
        }
        self.directories(kind).into_iter().map(|directory| directory.join(&name)).find(|path| path.exists())
    }
}

impl SearchPath {
    /// The file of a team's own filter: `filters/NAME.j2` in a role of the task or beside the playbook.
    pub fn filter(&self, name: &str) -> Option<PathBuf> {
        let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
        let bases = self.role_dirs.iter().chain([&self.playbook_dir]).filter(|_| is_name);
        bases.map(|base| base.join("filters").join(format!("{name}.j2"))).find(|path| path.is_file())
    }
}

/// A path with a leading `~` replaced by the home directory.
pub fn expand_home(name: &str) -> PathBuf {
    match name.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => match std::env::var_os("HOME") {
            Some(home) => Path::new(&home).join(rest.trim_start_matches('/')),
            None => PathBuf::from(name),
        },
        Some(rest) => {
            let (user, below) = rest.split_once('/').unwrap_or((rest, ""));
            match home_of(user) {
                Some(home) if below.is_empty() => PathBuf::from(home),
                Some(home) => Path::new(&home).join(below),
                None => PathBuf::from(name),
            }
        }
        None => PathBuf::from(name),
    }
}

/// The home directory of a user of the controller, by passwd(5).
fn home_of(user: &str) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(user))?;
    line.split(':').nth(5).filter(|home| !home.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_then_task_then_playbook() {
        let root = tempfile::tempdir().expect("temporary directory");
        let make = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
            std::fs::write(&path, "x").expect("file");
            path
        };
        let search = SearchPath {
            role_dirs: vec![root.path().join("roles/tune")],
            task_dir: Some(root.path().join("roles/tune/tasks")),
            playbook_dir: root.path().to_owned(),
        };
        let playbook = make("files/a.conf");
        assert_eq!(search.find("files", "a.conf"), Some(playbook));
        let role_itself = make("roles/tune/a.conf");
        assert_eq!(search.find("files", "a.conf"), Some(role_itself));
        let role_files = make("roles/tune/files/a.conf");
        assert_eq!(search.find("files", "a.conf"), Some(role_files.clone()));
        assert_eq!(search.find("files", &role_files.to_string_lossy()), Some(role_files));
        assert_eq!(search.find("files", "b.conf"), None);
    }
}
