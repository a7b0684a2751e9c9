//! `group_vars/` and `host_vars/` beside an inventory or a playbook; a file is read when first asked for.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};
use crate::source::Source;
use crate::value::Map;
use crate::vault::{Keyring, is_encrypted};
use crate::yaml;

/// The endings of files with variables, in the order in which they are looked for.
const ENDINGS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// Which of the two directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Group,
    Host,
}

impl Kind {
    fn directory(self) -> &'static str {
        match self {
            Kind::Group => "group_vars",
            Kind::Host => "host_vars",
        }
    }
}

type Files = Result<Arc<Vec<Arc<Map>>>>;

/// A directory that may hold `group_vars/` and `host_vars/`.
#[derive(Debug)]
pub(super) struct VarsDirectory {
    path: PathBuf,
    keyring: Arc<Keyring>,
    /// What stands in each directory, listed once: thousands of hosts would each cost several look-ups.
    names: [OnceLock<BTreeSet<String>>; 2],
    read: Mutex<HashMap<(Kind, String), Files>>,
}

impl VarsDirectory {
    pub(super) fn new(path: PathBuf, keyring: &Arc<Keyring>) -> VarsDirectory {
        VarsDirectory { path, keyring: Arc::clone(keyring), names: Default::default(), read: Mutex::default() }
    }

    /// The same directory, of which nothing is read yet.
    pub(super) fn unread(&self) -> VarsDirectory {
        VarsDirectory::new(self.path.clone(), &self.keyring)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The variables of the group or host `name`, one map a file, the lowest first.
    pub(super) fn vars(&self, kind: Kind, name: &str) -> Files {
        let names = self.names[kind as usize].get_or_init(|| list(&self.path.join(kind.directory())));
        // a name that is a path means a chroot, which has no such files
        if names.is_empty() || name.starts_with('/') {
            return Ok(Arc::default());
        }
        let first = name.split('/').next().unwrap_or(name);
        let exists = ENDINGS.iter().any(|ending| names.contains(&format!("{name}{ending}")))
            || (first.len() < name.len() && names.contains(first));
        if !exists {
            return Ok(Arc::default());
        }
        let key = (kind, name.to_owned());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.entry(key).or_insert_with(|| self.load(kind, name)).clone()
    }

    /// How many groups and hosts had their files read.
    #[cfg(test)]
    pub(super) fn count_read(&self) -> usize {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn load(&self, kind: Kind, name: &str) -> Files {
        let directory = self.path.join(kind.directory());
        let found = ENDINGS.iter().map(|ending| directory.join(format!("{name}{ending}"))).find(|path| path.exists());
        let mut files = Vec::new();
        if let Some(path) = found {
            collect(&path, &mut files)?;
        }
        let maps = files.iter().map(|path| load_file(path, &self.keyring)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(maps.into_iter().filter(|map| !map.is_empty()).map(Arc::new).collect()))
    }
}

/// The names in a directory; none if it cannot be read, as it mostly does not exist.
fn list(path: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(path) else { return BTreeSet::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// The files that a path stands for: itself, or those in the directory, recursively and sorted.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for name in list(path) {
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let inside = path.join(&name);
        let ending = inside.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
        if inside.is_dir() {
            if ending.is_empty() {
                collect(&inside, files)?;
            }
        } else if ENDINGS.contains(&ending.as_str()) {
            files.push(inside);
        }
    }
    Ok(())
}

/// Reads a file of variables (YAML or JSON, perhaps encrypted): a mapping, or nothing.
pub fn load_file(path: &Path, keyring: &Keyring) -> Result<Map> {
    yaml::load_vars(&read_text(path, keyring)?)
}

/// Reads a text file, decrypted if it is encrypted; the error names it.
pub(super) fn read_text(path: &Path, keyring: &Keyring) -> Result<Arc<Source>> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::input(format!("cannot read `{}`: {}", path.display(), reason(&error))))?;
    let source = if is_encrypted(&bytes) { Source::secret } else { Source::new };
    match String::from_utf8(keyring.open(path, bytes)?) {
        Ok(text) => Ok(source(path, text)),
        Err(error) => {
            let good = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            let line = good.matches('\n').count() as u32 + 1;
            let column = good.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
            let source = source(path, good);
            Err(Error::input("not UTF-8 text").at(&crate::source::Place::new(&source, line, column)))
        }
    }
}

/// The operating system's words without its error number.
pub(super) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
