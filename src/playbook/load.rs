//! What loading needs everywhere: options, files read once, values of nodes, and the errors found so far.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;

use super::include::Included;
use super::{Item, Role, Settings, Written};
use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::{Map, Value};
use crate::vault::Keyring;
use crate::yaml::{self, Node};

/// Loading stops after this many errors.
const MOST_ERRORS: usize = 20;

/// What loading needs to know beside the playbook's file.
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// Directories with roles, after `roles/` beside the playbook.
    pub roles_path: Vec<PathBuf>,
    /// Directories with executables that are modules, after `library/` of role and playbook.
    pub library: Vec<PathBuf>,
    /// Directories that hold `ansible_collections`, after `collections/` beside the playbook.
    pub collections_path: Vec<PathBuf>,
    /// Keywords of plays that do not have them.
    pub play_defaults: Arc<Vec<(&'static str, Value)>>,
    /// Whether roles keep their variables to themselves where `public` does not say it; `None`: those that are included do.
    pub private_role_vars: Option<bool>,
    /// Names of imported files and roles may use these.
    pub extra_vars: Arc<Map>,
    /// Opens encrypted files; encrypted values within others stay sealed.
    pub keyring: Arc<Keyring>,
    /// What is doubtful, but does not hinder.
    pub warnings: Arc<Mutex<Vec<Error>>>,
    pub cache: Arc<Cache>,
    /// Keep all errors, however many.
    pub every_error: bool,
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LoadOptions").field("roles_path", &self.roles_path).finish_non_exhaustive()
    }
}

impl LoadOptions {
    /// Says something that is the same at many places at the first of them alone.
    pub(super) fn warn_once(&self, warning: Error) {
        if !self.cache.said_once.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.message().to_owned()) {
            return;
        }
        self.warn(warning);
    }

    pub(super) fn warn(&self, warning: Error) {
        lock(&self.warnings).push(warning);
    }
}

/// The files read so far, and what was included from them.
#[derive(Default)]
pub struct Cache {
    documents: Mutex<HashMap<PathBuf, Arc<Document>>>,
    /// Warnings that are said once.
    said_once: Mutex<HashSet<String>>,
    pub(super) included: Mutex<IndexMap<String, Arc<Included>>>,
}

impl Cache {
    /// The files read so far, in the order of their paths.
    pub(super) fn documents(&self) -> Vec<(PathBuf, Arc<Document>)> {
        let documents = lock(&self.documents);
        let mut all: Vec<_> = documents.iter().map(|(path, document)| (path.clone(), Arc::clone(document))).collect();
        all.sort_by(|(left, _), (right, _)| left.cmp(right));
        all
    }

    pub(super) fn has_read(&self, path: &Path) -> bool {
        lock(&self.documents).contains_key(path)
    }
}

/// A file that was read.
pub(super) struct Document {
    pub source: Arc<Source>,
    /// `None` if the file is empty.
    pub root: Option<Node>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What surrounds a list of tasks.
#[derive(Clone)]
pub(super) struct Around {
    pub settings: Arc<Settings>,
    pub role: Option<Arc<Role>>,
    /// The directory of the file that the tasks stand in.
    pub directory: PathBuf,
    pub is_handler: bool,
    /// True directly within a block.
    pub in_block: bool,
}

/// One loading: of a playbook, or of what an include brings.
pub(super) struct Loader<'a> {
    pub options: &'a LoadOptions,
    pub errors: Vec<Error>,
    /// Absolute.
    pub playbook_directory: PathBuf,
    /// Variables of the play that names of imports may use, the most important first.
    pub play_vars: Vec<Arc<Map>>,
    /// `vars_files` of the play.
    pub play_vars_files: Vec<Written>,
    /// True while the play runs: then the old `include` is not static.
    pub dynamic: bool,
    /// Roles that import_role brought.
    pub imported_roles: Vec<Arc<Role>>,
    /// The handlers of those.
    pub imported_handlers: Vec<Item>,
    /// The files and roles that are being loaded, outermost first, and where each is asked for.
    pub chain: Vec<(PathBuf, Place)>,
}

impl<'a> Loader<'a> {
    pub fn new(options: &'a LoadOptions, playbook_directory: PathBuf) -> Loader<'a> {
        Loader {
            options,
            errors: Vec::new(),
            playbook_directory,
            play_vars: Vec::new(),
            play_vars_files: Vec::new(),
            dynamic: false,
            imported_roles: Vec::new(),
            imported_handlers: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// Keeps an error and goes on, so that several are reported at once.
    pub fn error(&mut self, error: Error) {
        if self.errors.len() < MOST_ERRORS || self.options.every_error {
            self.errors.push(error);
        }
    }

    /// The value, or `None` with its error kept.
    pub fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.error(error)).ok()
    }

    /// All errors as one, or the result.
    pub fn finish<T>(&mut self, result: T) -> Result<T> {
        match Error::collect(std::mem::take(&mut self.errors)) {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }

    /// Reads a file once. `asked` is where it is asked for.
    pub fn document(&self, path: &Path, asked: Option<&Place>) -> Result<Arc<Document>> {
        if let Some(document) = lock(&self.options.cache.documents).get(path) {
            return Ok(Arc::clone(document));
        }
        let at = |error: Error| match asked {
            Some(place) => error.at(place),
            None => error,
        };
        let bytes = std::fs::read(path)
            .map_err(|error| at(Error::input(format!("cannot read `{}`: {error}", path.display()))))?;
        let is_secret = crate::vault::is_encrypted(&bytes);
        let bytes = self.options.keyring.open(path, bytes).map_err(at)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| at(Error::parse(format!("`{}` is not text in UTF-8", path.display()))))?;
        let source = if is_secret { Source::secret(shown(path), text) } else { Source::new(shown(path), text) };
        let document = yaml::load_with_warnings(&source)?;
        lock(&self.options.warnings).extend(document.warnings);
        let document = Arc::new(Document { source, root: document.root });
        lock(&self.options.cache.documents).insert(path.to_owned(), Arc::clone(&document));
        Ok(document)
    }

    /// The value of a node; encrypted parts are sealed.
    pub fn value(&self, node: &Node) -> Value {
        node.to_value()
    }

    /// The entries of a mapping as values; empty for anything else.
    pub fn map(&self, node: &Node) -> Map {
        node.to_map()
    }

    pub fn written(&self, node: &Node) -> Written {
        Written { value: self.value(node), place: node.place.clone() }
    }

    /// The items of a list, or the one value; nothing for null.
    pub fn written_list(&self, node: &Node) -> Vec<Written> {
        match node.as_sequence() {
            Some(items) => items.iter().filter(|item| !item.is_null()).map(|item| self.written(item)).collect(),
            None if node.is_null() => Vec::new(),
            None => vec![self.written(node)],
        }
    }

    /// Runs `load` within a file or role, refusing to enter one that is being loaded already.
    pub fn within<T>(
        &mut self,
        path: &Path,
        asked: &Place,
        what: &str,
        load: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if let Some(start) = self.chain.iter().position(|(known, _)| known == path) {
            let round: Vec<String> = self.chain[start..].iter().map(|(path, _)| name_in_chain(path)).collect();
            let error = Error::input(format!("{what} goes round in a circle: {} -> {}", round.join(" -> "), round[0]));
            let error = error.at_label(asked, "comes back to where it began");
            return Err(error.at_label(&self.chain[start].1, "begins here"));
        }
        self.chain.push((path.to_owned(), asked.clone()));
        let result = load(self);
        self.chain.pop();
        result
    }
}

fn name_in_chain(path: &Path) -> String {
    format!("`{}`", path.file_name().unwrap_or(path.as_os_str()).display())
}

/// A path as messages show it: relative to the working directory, if it is below that.
pub(super) fn shown(path: &Path) -> PathBuf {
    let below = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    match below {
        Some(below) if below.as_os_str().is_empty() => PathBuf::from("."),
        below => below.unwrap_or_else(|| path.to_owned()),
    }
}

/// An absolute path without `.` and `..`, whose links are not followed.
pub(super) fn absolute(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for component in std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
