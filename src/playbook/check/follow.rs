//! A check that finds all: what each task needs, and what includes bring, as far as their names are known.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;

use super::missing::{AllMissing, Lack};
use super::{Check, Reach, engine_action, may_end_the_play};
use crate::connect::{BECOME_METHODS, CONNECTIONS};
use crate::error::{Error, Result};
use crate::modules::{Action, EngineAction};
use crate::playbook::free_form::RAW_PARAMS;
use crate::playbook::include::file_names;
use crate::playbook::load::shown;
use crate::playbook::{
    IncludeFrom, Included, Item, LoadOptions, Play, Task, TaskAction, Written, load_role, load_tasks,
};
use crate::template::SearchPath;
use crate::value::Value;

/// What a check that finds all keeps.
pub(super) struct Thorough {
    pub options: LoadOptions,
    /// The play at hand.
    pub play: Arc<Play>,
    /// Files and roles that includes of this play brought: each is looked at once.
    pub entered: HashSet<String>,
    pub missing: AllMissing,
    /// The places of all tasks.
    pub tasks: HashSet<String>,
    /// Template files that tasks name, and whether one of the tasks is certainly reached.
    pub templates: Vec<(PathBuf, bool)>,
    /// The directories of the roles that tasks belong to.
    pub roles: HashSet<PathBuf>,
}

impl Thorough {
    /// `external`: its action is an executable of the user's own.
    pub fn task(&mut self, task: &Task, reach: Reach, external: bool) {
        let certain = reach == Reach::Certain;
        self.tasks.insert(task.place.to_string());
        self.roles.extend(task.role.iter().map(|role| role.path.clone()));
        match &task.action {
            TaskAction::Unknown(_) if external => {}
            TaskAction::Unknown(name) => self.missing.add(Lack::Module, name, &task.action_place, certain),
            TaskAction::Module(module) if matches!(module.action, Action::Module(_)) => {
                for key in task.args.keys().filter(|key| !key.has_templates()) {
                    let name = key.to_text();
                    if name != RAW_PARAMS && module.arg(&name).is_none() {
                        let full = format!("{}: {name}", module.bare_name());
                        self.missing.add(Lack::Parameter, &full, super::place_of(task, &name), certain);
                    }
                }
            }
            _ => {}
        }
        if let Some(looping) = &task.looping
            && let Some(lookup) = &looping.lookup
            && !super::names::is_lookup(lookup.rsplit('.').next().unwrap_or(lookup))
        {
            self.missing.add(Lack::Lookup, lookup, &looping.terms.place, certain);
        }
        self.word(Lack::Connection, &task.settings.connection, CONNECTIONS, certain);
        self.word(Lack::BecomeMethod, &task.settings.become_method, BECOME_METHODS, certain);
    }

    /// Adds a name of a kind of which there are only a few.
    fn word(&mut self, lack: Lack, written: &Option<Written>, known: &[&str], certain: bool) {
        let Some(written) = written.as_ref().filter(|written| !written.value.has_templates()) else { return };
        let text = written.value.to_text();
        if !text.is_empty() && !known.contains(&text.rsplit('.').next().unwrap_or(&text)) {
            self.missing.add(lack, &text, &written.place, certain);
        }
    }

    /// What an include brings; nothing if that is known only when it is reached.
    fn includes(&self, task: &Task) -> Vec<Result<Arc<Included>>> {
        let text = |names: [&str; 2]| {
            names.iter().find_map(|name| task.args.get(*name)).map(|value| value.to_text().into_owned())
        };
        let params = Arc::default();
        match engine_action(task) {
            Some(EngineAction::IncludeTasks | EngineAction::Include) => {
                let Some(name) = text(["file", RAW_PARAMS]) else { return Vec::new() };
                let names = if Value::written(name.as_str()).has_templates() {
                    self.possible_files(task, &name)
                } else {
                    vec![name]
                };
                names.iter().map(|name| load_tasks(name, task, &self.play, &params, &self.options)).collect()
            }
            Some(EngineAction::IncludeRole) => {
                let Some(name) = text(["name", "role"]) else { return Vec::new() };
                let is_known = |key: &str| task.args.get(key).is_none_or(|value| !value.has_templates());
                let keys = ["name", "role", "tasks_from", "vars_from", "defaults_from", "handlers_from"];
                if !keys.into_iter().all(is_known) {
                    return Vec::new();
                }
                let from = IncludeFrom::from_args(&task.args);
                vec![load_role(&name, &from, task, &self.play, &params, &self.options)]
            }
            _ => Vec::new(),
        }
    }

    /// The files of tasks that a name with templates can mean: those beside the task and in its role.
    fn possible_files(&self, task: &Task, name: &str) -> Vec<String> {
        let Some(pattern) = pattern_of(name) else { return Vec::new() };
        let says_nothing = pattern.chars().filter(|c| c.is_alphanumeric()).count() < 6;
        if task.role.is_none() && says_nothing {
            return Vec::new();
        }
        let Ok(glob) = GlobBuilder::new(&pattern).literal_separator(true).build() else { return Vec::new() };
        let glob = glob.compile_matcher();
        let below = Path::new(&pattern).parent().unwrap_or(Path::new(""));
        if below.to_string_lossy().contains('*') {
            return Vec::new();
        }
        let in_role = task.role.as_ref().map(|role| role.path.join("tasks"));
        let mut names = Vec::new();
        for directory in in_role.iter().chain([&task.directory]) {
            let mut there = file_names(&directory.join(below));
            there.sort_unstable();
            for file in there {
                let relative = below.join(&file);
                let is_new = !names.contains(&relative.to_string_lossy().into_owned());
                if is_new && glob.is_match(&relative) && directory.join(&relative).is_file() {
                    names.push(relative.to_string_lossy().into_owned());
                }
            }
        }
        names
    }
}

/// A pattern of file names, with `*` for each template; none if the text is nothing but a template.
fn pattern_of(text: &str) -> Option<String> {
    let mut pattern = String::new();
    let mut rest = text.trim();
    while let Some(start) = rest.find("{{") {
        let end = rest[start..].find("}}")?;
        pattern.push_str(&globset::escape(&rest[..start]));
        pattern.push('*');
        rest = &rest[start + end + 2..];
    }
    if rest.contains("{%") || pattern.contains("{%") || (pattern == "*" && rest.is_empty()) {
        return None;
    }
    pattern.push_str(&globset::escape(rest));
    Some(pattern)
}

/// Modules that take a file of the controller: the argument, and where the file is looked for.
const TAKE_FILES: [(&str, &str, &str); 4] = [
    ("template", "src", "templates"),
    ("copy", "src", "files"),
    ("include_vars", "file", "vars"),
    ("script", RAW_PARAMS, "files"),
];

impl Check<'_> {
    /// Keeps what a task needs, if all is to be found.
    pub(super) fn look_at(&mut self, task: &Task, reach: Reach) {
        let external = matches!(&task.action, TaskAction::Unknown(name) if self.runs_external(name));
        let Some(thorough) = &mut self.thorough else { return };
        thorough.task(task, reach, external);
        let TaskAction::Module(module) = &task.action else { return };
        let Some((_, argument, kind)) = TAKE_FILES.iter().find(|(name, ..)| *name == module.bare_name()) else {
            return;
        };
        let is_of_host = task.args.get("remote_src").is_some_and(|value| value.to_ansible_bool() != Some(false));
        let Some(written) = task.args.get(*argument).filter(|value| !value.has_templates() && !is_of_host) else {
            return;
        };
        let text = written.to_text();
        // of a script the rest are its arguments
        let name = if module.bare_name() == "script" { text.split_whitespace().next().unwrap_or("") } else { &text };
        if name.is_empty() || self.search.playbook_dir.as_os_str().is_empty() {
            return;
        }
        let search = SearchPath { task_dir: Some(task.directory.clone()), ..self.search.clone() };
        match search.find(kind, name) {
            Some(path) if module.bare_name() == "template" => {
                thorough.templates.push((path, reach == Reach::Certain));
            }
            Some(_) => {}
            None => {
                let directories: Vec<String> =
                    search.directories(kind).iter().map(|path| shown(path).display().to_string()).collect();
                let names = search.directories(kind).iter().flat_map(|path| file_names(path)).collect::<Vec<_>>();
                let error = Error::input(format!("there is no file `{name}` for `{}`", module.bare_name()))
                    .at(super::place_of(task, argument))
                    .suggest(name, names.iter().map(String::as_str))
                    .hint(format!("looked for in {}", directories.join(", ")))
                    .hint("the task fails if it is reached, unless something makes the file before");
                self.warnings.push(error);
            }
        }
    }

    /// Looks at what an include brings. `None` if the task is none that is followed; else whether what stands behind
    /// it is reached if the include is.
    pub(super) fn follow(&mut self, task: &Task, reach: Reach) -> Option<bool> {
        let thorough = self.thorough.as_ref()?;
        let all = thorough.includes(task);
        if all.is_empty() {
            return None;
        }
        // of several candidates only one is taken
        let reach = if all.len() > 1 { Reach::Possible } else { reach };
        let mut goes_on = true;
        for included in all {
            match included {
                Ok(included) => goes_on &= self.included(&included, reach),
                Err(error) => {
                    for error in separate(error) {
                        self.judge(reach, error);
                    }
                }
            }
        }
        Some(goes_on)
    }

    fn included(&mut self, included: &Included, reach: Reach) -> bool {
        let file = included.file.as_deref().map(Path::display).map(|path| path.to_string()).unwrap_or_default();
        let role = included.role.as_ref().map(|role| role.identity.as_str()).unwrap_or_default();
        let key = format!("{file} {role}");
        let is_new = self.thorough.as_mut().is_some_and(|thorough| thorough.entered.insert(key));
        let mut within = reach == Reach::Certain;
        if is_new {
            let search = self.search.clone();
            self.items(&included.items, &mut within);
            self.items(&included.handlers, &mut false);
            self.search = search;
            if reach == Reach::Certain {
                return within;
            }
        }
        !included.items.iter().any(may_end)
    }
}

/// True if an item by itself may end the play for a host.
fn may_end(item: &Item) -> bool {
    match item {
        Item::Task(task) => !task.is_include() && may_end_the_play(task),
        Item::Block(block) => {
            [&block.items, &block.rescue, &block.always].into_iter().any(|items| items.iter().any(may_end))
        }
        Item::FlushHandlers => false,
    }
}

/// An error and those found with it, each by itself.
pub(super) fn separate(error: Error) -> Vec<Error> {
    let others: Vec<Error> = error.others().to_vec();
    std::iter::once(error.alone()).chain(others.into_iter().flat_map(separate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_in_names_stand_for_anything() {
        for (text, pattern) in [
            ("setup-{{ os }}.yml", Some("setup-*.yml")),
            ("{{ a }}/{{ b }}.yml", Some("*/*.yml")),
            ("{{ file }}", None),
            ("{% if a %}x{% endif %}.yml", None),
            ("{{ broken", None),
        ] {
            assert_eq!(pattern_of(text).as_deref(), pattern, "{text}");
        }
    }
}
