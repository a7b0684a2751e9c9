//! Everything that can be known of playbooks without a host: all that is wrong, and all that is missing here.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::follow::{Thorough, separate};
use super::missing::{AllMissing, Lack, Missing};
use super::{Check, files, names, plugins};
use crate::error::Error;
use crate::playbook::include::file_names;
use crate::playbook::load::{Loader, absolute, lock, shown};
use crate::playbook::play::{load_what_can_be, load_what_can_be_of};
use crate::playbook::{LoadOptions, Play, TagSelection};
use crate::source::{Place, Source};
use crate::template::SearchPath;
use crate::value::Value;

/// How much was looked at.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Checked {
    pub playbooks: usize,
    pub plays: usize,
    pub roles: usize,
    pub tasks: usize,
    pub templates: usize,
    /// Files of plays, tasks and variables, with those of roles.
    pub files: usize,
}

/// What a survey found.
#[derive(Debug, Default)]
pub struct Findings {
    /// What stops a run before a host is touched.
    pub errors: Vec<Error>,
    /// What makes a task fail if it is reached, and what is doubtful.
    pub warnings: Vec<Error>,
    pub missing: Vec<Missing>,
    pub checked: Checked,
}

/// Looks at playbooks, roles and files one after the other.
pub struct Survey {
    options: LoadOptions,
    selection: TagSelection,
    errors: Vec<Error>,
    warnings: Vec<Error>,
    /// What was said already: the same file may come up many times.
    said: HashSet<String>,
    missing: AllMissing,
    tasks: HashSet<String>,
    templates: Vec<(PathBuf, bool)>,
    roles: HashSet<PathBuf>,
    playbook_directories: Vec<PathBuf>,
    checked: Checked,
}

impl Survey {
    pub fn new(options: LoadOptions, selection: TagSelection) -> Survey {
        Survey {
            options: LoadOptions { every_error: true, ..options },
            selection,
            errors: Vec::new(),
            warnings: Vec::new(),
            said: HashSet::new(),
            missing: AllMissing::default(),
            tasks: HashSet::new(),
            templates: Vec::new(),
            roles: HashSet::new(),
            playbook_directories: Vec::new(),
            checked: Checked::default(),
        }
    }

    /// Something wrong that was found elsewhere: in an inventory, in settings.
    pub fn error(&mut self, error: Error) {
        for error in separate(error) {
            if self.said.insert(error.to_string()) {
                self.errors.push(error);
            }
        }
    }

    pub fn warning(&mut self, warning: Error) {
        for warning in separate(warning) {
            if self.said.insert(warning.to_string()) {
                self.warnings.push(warning);
            }
        }
    }

    /// A playbook with all that it imports and includes; gives its plays.
    pub fn playbook(&mut self, path: &Path) -> Vec<Arc<Play>> {
        self.checked.playbooks += 1;
        let (plays, errors) = load_what_can_be(path, &self.options);
        self.checked.plays += plays.len();
        errors.into_iter().for_each(|error| self.error(error));
        let directory = absolute(path).parent().unwrap_or(path).to_owned();
        self.directory(directory);
        self.plays(&plays);
        plays
    }

    /// All playbooks, roles, files of tasks and of variables below a directory.
    pub fn below(&mut self, directory: &Path) -> Vec<Arc<Play>> {
        let found = files::below(directory);
        if found.playbooks.is_empty() && found.roles.is_empty() && found.tasks.is_empty() {
            self.error(
                Error::input(format!(
                    "there is no playbook and no role below `{}`",
                    shown(&absolute(directory)).display()
                ))
                .hint("a playbook is a file `*.yml` with a list of plays, a role a directory with `tasks/main.yml`"),
            );
        }
        let mut plays = Vec::new();
        for playbook in &found.playbooks {
            plays.extend(self.playbook(playbook));
        }
        for role in &found.roles {
            self.role(role);
        }
        for tasks in found.tasks {
            if !self.options.cache.has_read(&tasks) {
                self.task_file(&tasks);
            }
        }
        for variables in &found.variables {
            self.variables(variables);
        }
        found.directories.into_iter().for_each(|directory| self.directory(directory));
        plays
    }

    /// A role by itself, with files of tasks that nothing names.
    pub fn role(&mut self, path: &Path) {
        let path = absolute(path);
        let name = Value::from(path.to_string_lossy().as_ref()).to_json();
        self.made_up(&path, &format!("[{{hosts: all, gather_facts: false, roles: [{name}]}}]"));
        for kind in ["tasks", "handlers"] {
            for file in yaml_files(&path.join(kind)) {
                if self.options.cache.has_read(&file) {
                    continue;
                }
                let from = file.strip_prefix(path.join(kind)).unwrap_or(&file).to_string_lossy().into_owned();
                let from = Value::from(from).to_json();
                self.made_up(
                    &path,
                    &format!(
                        "[{{hosts: all, gather_facts: false, tasks: [{{include_role: {{name: {name}, {kind}_from: {from}}}, \
                         when: it_is_named}}]}}]"
                    ),
                );
            }
        }
        for kind in ["vars", "defaults"] {
            for file in yaml_files(&path.join(kind)) {
                self.variables(&file);
            }
        }
    }

    fn task_file(&mut self, path: &Path) {
        let name = Value::from(path.to_string_lossy().as_ref()).to_json();
        let directory = path.parent().and_then(Path::parent).unwrap_or(path).to_owned();
        let play =
            format!("[{{hosts: all, gather_facts: false, tasks: [{{include_tasks: {name}, when: it_is_named}}]}}]");
        self.made_up(&directory.join("tasks"), &play);
    }

    /// A play that nobody wrote, beside `beside`.
    fn made_up(&mut self, beside: &Path, text: &str) {
        let mut directory = beside.parent().unwrap_or(beside);
        // the playbooks of a site stand beside `roles`
        if directory.ends_with("roles") {
            directory = directory.parent().unwrap_or(directory);
        }
        let source = Source::new(directory.join(format!("({})", shown(beside).display()).replace('/', "_")), text);
        let (plays, errors) = load_what_can_be_of(&source, &self.options);
        errors.into_iter().for_each(|error| self.error(error));
        self.plays(&plays);
    }

    /// A file of variables: whether it can be read. Its templates are looked at in the end.
    pub fn variables(&mut self, path: &Path) {
        let loader = Loader::new(&self.options, path.parent().unwrap_or(path).to_owned());
        match loader.document(&absolute(path), None) {
            Ok(document) => {
                let wrong = document.root.as_ref().filter(|root| root.as_mapping().is_none() && !root.is_null());
                if let Some(root) = wrong {
                    let message = format!("`{}` must hold a mapping of variables", shown(&absolute(path)).display());
                    self.error(Error::parse(message).at(&root.place));
                }
            }
            Err(error) => self.error(error),
        }
    }

    fn directory(&mut self, directory: PathBuf) {
        if !self.playbook_directories.contains(&directory) {
            self.playbook_directories.push(directory);
        }
    }

    fn plays(&mut self, plays: &[Arc<Play>]) {
        for play in plays {
            self.directory(play.directory.clone());
            self.vars_files(play);
            let mut check = Check::new(&self.selection, &self.options.library);
            check.thorough = Some(Thorough {
                options: self.options.clone(),
                play: Arc::clone(play),
                entered: HashSet::new(),
                missing: std::mem::take(&mut self.missing),
                tasks: std::mem::take(&mut self.tasks),
                templates: Vec::new(),
                roles: HashSet::new(),
            });
            check.play(play);
            check.tell_doubtful();
            if let Some(thorough) = check.thorough.take() {
                self.missing = thorough.missing;
                self.tasks = thorough.tasks;
                self.templates.extend(thorough.templates);
                self.roles.extend(thorough.roles);
            }
            self.roles.extend(play.roles.iter().map(|role| role.path.clone()));
            let (errors, warnings) = (std::mem::take(&mut check.errors), std::mem::take(&mut check.warnings));
            errors.into_iter().for_each(|error| self.error(error));
            warnings.into_iter().for_each(|warning| self.warning(warning));
        }
        let doubts = std::mem::take(&mut *lock(&self.options.warnings));
        doubts.into_iter().for_each(|doubt| self.warning(doubt));
    }

    /// The files that `vars_files` names.
    fn vars_files(&mut self, play: &Play) {
        for entry in &play.vars_files {
            let names = entry.value.as_list().map_or_else(|| vec![entry.value.clone()], <[Value]>::to_vec);
            if names.iter().any(Value::has_templates) {
                continue;
            }
            let candidates = |name: &str| [play.directory.join("vars").join(name), play.directory.join(name)];
            let mut texts = names.iter().map(|name| name.to_text().into_owned());
            match texts.find_map(|name| candidates(&name).into_iter().find(|path| path.is_file())) {
                Some(path) => self.variables(&path),
                None => {
                    let first = names.first().map(|name| name.to_text().into_owned()).unwrap_or_default();
                    let there = candidates(&first)
                        .iter()
                        .filter_map(|path| path.parent())
                        .flat_map(file_names)
                        .collect::<Vec<_>>();
                    let error = Error::input(format!("there is no file of variables `{first}`"))
                        .at(&entry.place)
                        .suggest(&first, there.iter().map(String::as_str));
                    self.error(error);
                }
            }
        }
    }

    /// All that was found.
    pub fn finish(mut self) -> Findings {
        let documents = self.options.cache.documents();
        self.checked.files = documents.len();
        for (path, document) in &documents {
            if let Some(root) = &document.root {
                names::of_document(root, &self.search_of(path), &mut self.missing);
            }
        }
        self.template_files();
        let mut directories = self.playbook_directories.clone();
        directories.extend(self.roles.iter().cloned());
        directories.extend(directories.clone().iter().filter_map(|directory| collection_of(directory)));
        plugins::look(&directories, &mut self.missing);
        self.checked.tasks = self.tasks.len();
        self.checked.roles = self.roles.len();
        Findings {
            errors: self.errors,
            warnings: self.warnings,
            missing: self.missing.into_sorted(),
            checked: self.checked,
        }
    }

    /// Where filters of the team's own are looked for by what stands in a file.
    fn search_of(&self, path: &Path) -> SearchPath {
        let role_dirs = self.roles.iter().filter(|role| path.starts_with(role)).cloned().collect();
        let playbook_dir = self.playbook_directories.iter().find(|directory| directory.join("filters").is_dir());
        SearchPath { role_dirs, task_dir: None, playbook_dir: playbook_dir.cloned().unwrap_or_default() }
    }

    /// Template files: those that tasks name, and what stands in `templates/` with the ending `.j2`.
    fn template_files(&mut self) {
        let mut templates = std::mem::take(&mut self.templates);
        for directory in self.roles.iter().chain(&self.playbook_directories) {
            let mut below = Vec::new();
            collect(&directory.join("templates"), &mut below);
            templates.extend(
                below
                    .into_iter()
                    .filter(|path| path.extension().is_some_and(|end| end == "j2"))
                    .map(|path| (path, false)),
            );
        }
        // what is certainly needed first
        templates.sort_by(|left, right| (!left.1, &left.0).cmp(&(!right.1, &right.0)));
        let mut seen = HashSet::new();
        for (path, certain) in templates {
            if !seen.insert(absolute(&path)) {
                continue;
            }
            let Ok(Ok(text)) = std::fs::read(&path).map(String::from_utf8) else { continue };
            self.checked.templates += 1;
            let source = Source::new(shown(&absolute(&path)), text);
            let search = self.search_of(&path);
            let Err(error) = names::of_template(&source, &search, &mut self.missing) else { continue };
            let place = Place::new(&source, error.line, error.column);
            let error = Error::parse(error.message).at(&place);
            if certain {
                self.error(error);
            } else {
                self.warning(error.hint("a task that uses this template fails"));
            }
        }
    }
}

/// The collection that a directory stands in: the one below `ansible_collections/NAMESPACE`.
fn collection_of(directory: &Path) -> Option<PathBuf> {
    directory
        .ancestors()
        .find(|path| path.ancestors().nth(2).is_some_and(|above| above.ends_with("ansible_collections")))
        .map(Path::to_owned)
}

/// The files `*.yml` and `*.yaml` below a directory.
fn yaml_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(directory, &mut files);
    files.retain(|path| path.extension().is_some_and(|end| end == "yml" || end == "yaml"));
    files
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let mut names = file_names(directory);
    names.sort_unstable();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = directory.join(name);
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

impl Findings {
    /// True if something stops a run.
    pub fn is_blocked(&self) -> bool {
        !self.errors.is_empty()
    }

    /// True if everything works whatever is reached: nothing is doubtful, nothing missing but plugins that nobody needs.
    pub fn is_ready(&self) -> bool {
        let is_needed = |missing: &Missing| missing.lack != Lack::Plugin;
        self.errors.is_empty() && self.warnings.is_empty() && !self.missing.iter().any(is_needed)
    }
}
