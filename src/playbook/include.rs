//! Files of tasks and roles that others bring in: imports while loading, includes while the play runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::keywords::{self, ON_INCLUDE, join_or};
use super::load::{Around, Loader, absolute, lock, shown};
use super::role::{IncludeFrom, RoleRequest};
use super::settings::Level;
use super::task::{Draft, text_of};
use super::{Item, LoadOptions, Play, Role, Settings, Task, TaskAction, Written};
use crate::error::{Error, Result};
use crate::modules::{EngineAction, Module, args};
use crate::source::Place;
use crate::value::{Map, Value, has_template_marks};

/// Includes are kept for reuse; when there are this many, the older half is dropped.
const MOST_CACHED: usize = 4096;

/// What an include brings.
#[derive(Debug, Default)]
pub struct Included {
    /// The file of tasks, for include_tasks.
    pub file: Option<PathBuf>,
    /// The role, for include_role.
    pub role: Option<Arc<Role>>,
    pub items: Arc<Vec<Item>>,
    /// Handlers to add to those of the play: of the role, its dependencies, and roles imported within.
    pub handlers: Arc<Vec<Item>>,
    /// Roles imported within; they join [`Play::roles`].
    pub roles: Vec<Arc<Role>>,
}

/// Loads the tasks of a file for include_tasks (or the old `include`).
///
/// `file` is rendered; it is looked for beside the file of `parent`, in its role and beside the playbook. `params` are
/// the variables of this inclusion (loop items, and `vars` of the include if they are rendered). The tasks inherit
/// what the include inherits and what its `apply` says.
pub fn load_tasks(
    file: &str,
    parent: &Task,
    play: &Play,
    params: &Arc<Map>,
    options: &LoadOptions,
) -> Result<Arc<Included>> {
    cached(
        &format!("tasks {file}"),
        parent,
        params,
        options,
        |loader, around| {
            let name = Written { value: file.into(), place: parent.place.clone() };
            let path = loader.find_tasks(file, &name.place, around, true)?;
            let items = loader.items_of_file(&path, &name.place, around)?;
            Ok(Included { file: Some(path), items: Arc::new(items), ..Included::default() })
        },
        play,
    )
}

/// Loads a role for include_role, with the role's rendered `name` and other arguments.
pub fn load_role(
    name: &str,
    from: &IncludeFrom,
    parent: &Task,
    play: &Play,
    params: &Arc<Map>,
    options: &LoadOptions,
) -> Result<Arc<Included>> {
    cached(
        &format!("role {name} {from:?}"),
        parent,
        params,
        options,
        |loader, around| {
            let request = RoleRequest {
                name: name.to_owned(),
                place: parent.place.clone(),
                own: Settings { task_vars: parent.settings.task_vars.clone(), ..Settings::default() },
                params: Map::new(),
                from: from.clone(),
                is_include: true,
                is_static: false,
            };
            let loaded = loader.role(request, around)?;
            Ok(Included {
                file: None,
                role: Some(loaded.role),
                items: Arc::new(loaded.items),
                handlers: Arc::new(loaded.handlers),
                roles: Vec::new(),
            })
        },
        play,
    )
}

/// Loads, or takes what the same include with the same parameters gave before.
fn cached(
    what: &str,
    parent: &Task,
    params: &Arc<Map>,
    options: &LoadOptions,
    load: impl FnOnce(&mut Loader, &Around) -> Result<Included>,
    play: &Play,
) -> Result<Arc<Included>> {
    let params_value = Value::Map(Arc::clone(params));
    let key = format!("{} {what} {} {params_value:?}", parent.id, params_value.has_templates());
    if let Some(included) = lock(&options.cache.included).get(&key) {
        return Ok(Arc::clone(included));
    }
    let mut loader = Loader::new(options, play.directory.clone());
    loader.dynamic = true;
    loader.play_vars = vec![Arc::clone(&play.vars)];
    loader.play_vars_files = play.vars_files.clone();
    let mut settings = parent.apply.as_deref().cloned().unwrap_or_default().below(&parent.around, Level::Block);
    settings.include_params.extend(parent.settings.task_vars.clone());
    settings.collections.clone_from(&parent.settings.collections);
    if !params.is_empty() {
        settings.include_params.push(Arc::clone(params));
    }
    let around = Around {
        settings: Arc::new(settings),
        role: parent.role.clone(),
        directory: parent.directory.clone(),
        is_handler: parent.is_handler,
        in_block: false,
    };
    let mut included = load(&mut loader, &around)?;
    included.roles = std::mem::take(&mut loader.imported_roles);
    let imported = std::mem::take(&mut loader.imported_handlers);
    if !imported.is_empty() {
        included.handlers = Arc::new(included.handlers.iter().cloned().chain(imported).collect());
    }
    let included = Arc::new(loader.finish(included)?);
    let mut cache = lock(&options.cache.included);
    if cache.len() >= MOST_CACHED {
        cache.drain(..MOST_CACHED / 2);
    }
    // of two that loaded at the same time, both get the tasks of the first
    Ok(Arc::clone(cache.entry(key).or_insert(included)))
}

impl Loader<'_> {
    /// import_tasks (and a static `include`): the tasks of the file, with all that the import says handed down.
    pub fn import_tasks(&mut self, mut draft: Draft, around: &Around) -> Vec<Item> {
        let action = action_name(&draft);
        let is_old_include = action == "include";
        if !is_old_include {
            self.refuse_unknown_arguments(&draft);
        }
        if draft.fields.looping.is_some() {
            self.error(
                Error::parse(format!("`{action}` cannot loop"))
                    .at(&draft.action_place)
                    .hint("use `include_tasks`, which is loaded when it is reached"),
            );
            return Vec::new();
        }
        let Some(file) = self.required_text(&draft, "file", "a file of tasks") else { return Vec::new() };
        if is_old_include {
            draft.own.task_vars = old_include_vars(&draft).map(Arc::new);
        }
        let result = self.static_name(&file, &draft.own, around).and_then(|name| {
            let path = self.find_tasks(&name, &file.place, around, false)?;
            let settings = Arc::new(draft.own.below(&around.settings, Level::Block));
            let items = self.items_of_file(&path, &file.place, &Around { settings, ..around.clone() })?;
            if self.document(&path, None)?.root.is_none() {
                let warning = Error::input(format!("`{}` holds no tasks", shown(&path).display()));
                self.options.warn(warning.at(&file.place));
            }
            Ok(items)
        });
        self.keep(result).unwrap_or_default()
    }

    /// An old `include` is static where nothing about it is known only later.
    pub fn is_static_include(&self, draft: &Draft) -> bool {
        let says_dynamic = draft.node.get("static").and_then(|node| node.value()?.to_ansible_bool()) == Some(false);
        !self.dynamic
            && !says_dynamic
            && draft.fields.looping.is_none()
            && draft.args.text("file").is_some_and(|file| !has_template_marks(file))
    }

    /// include_tasks, include_role and a dynamic `include`: tasks that bring others when they are reached.
    pub fn include(&mut self, mut draft: Draft, around: &Around) -> Vec<Item> {
        let action = action_name(&draft);
        let is_old = action == "include";
        if !is_old {
            self.refuse_unknown_arguments(&draft);
            self.refuse_lost_keywords(&draft, &action);
        }
        if draft.args.template.is_none() {
            if action.ends_with("include_role") {
                self.required_text(&draft, "name", "the name of a role");
            } else {
                self.required_text(&draft, "file", "a file of tasks");
            }
        }
        let apply = match draft.args.nodes.get("apply") {
            Some(node) if !is_old => self.apply(node),
            _ => None,
        };
        if is_old {
            draft.own.task_vars = old_include_vars(&draft).map(Arc::new);
            draft.args.map.retain(|key, _| key.as_str() == Some("file"));
        } else {
            draft.args.remove("apply");
        }
        let own_vars = draft.own.task_vars.clone();
        let mut task = draft.into_task(around, apply);
        if own_vars.is_some() {
            // its own variables are parameters for itself too: its file name may use them
            let mut settings = Settings::clone(&task.settings);
            settings.include_params.extend(own_vars);
            task.settings = Arc::new(settings);
        }
        vec![Item::Task(Arc::new(task))]
    }

    /// import_role: the role's tasks, with all that the import says handed down.
    pub fn import_role(&mut self, draft: Draft, around: &Around) -> Vec<Item> {
        self.refuse_unknown_arguments(&draft);
        if draft.fields.looping.is_some() {
            self.error(
                Error::parse("`import_role` cannot loop")
                    .at(&draft.action_place)
                    .hint("use `include_role`, which is loaded when it is reached"),
            );
            return Vec::new();
        }
        let Some(name) = self.required_text(&draft, "name", "the name of a role") else { return Vec::new() };
        let result = self.static_name(&name, &draft.own, around).and_then(|text| {
            let mut rendered = Map::new();
            for (key, value) in &draft.args.map {
                let place = draft.args.place(&key.to_text(), &draft.action_place).clone();
                let value = match value {
                    Value::Str(_) => {
                        self.static_name(&Written { value: value.clone(), place }, &draft.own, around)?.into()
                    }
                    other => other.clone(),
                };
                rendered.insert(key.clone(), value);
            }
            let from = IncludeFrom::from_args(&rendered);
            let own = Settings { task_vars: draft.own.task_vars.clone(), ..Settings::default() };
            let settings = Arc::new(draft.own.below(&around.settings, Level::Block));
            let request = RoleRequest {
                name: text,
                place: name.place.clone(),
                own,
                params: Map::new(),
                from,
                is_include: true,
                is_static: true,
            };
            self.role(request, &Around { settings, ..around.clone() })
        });
        let Some(loaded) = self.keep(result) else { return Vec::new() };
        self.imported_roles.push(loaded.role);
        self.imported_handlers.extend(loaded.handlers);
        loaded.items
    }

    /// The items of a file of tasks.
    pub fn items_of_file(&mut self, path: &Path, asked: &Place, around: &Around) -> Result<Vec<Item>> {
        self.within(path, asked, "importing", |loader| {
            let document = loader.document(path, Some(asked))?;
            let Some(root) = &document.root else { return Ok(Vec::new()) };
            let directory = path.parent().unwrap_or(path).to_owned();
            Ok(loader.items(root, &Around { directory, in_block: false, ..around.clone() }))
        })
    }

    /// The file of tasks that a name means: beside the file that asks, in the role, beside the playbook.
    pub fn find_tasks(&self, name: &str, asked: &Place, around: &Around, is_include: bool) -> Result<PathBuf> {
        let candidates = self.task_candidates(name, around, is_include);
        if let Some(found) = candidates.iter().find(|path| path.is_file()) {
            return Ok(found.clone());
        }
        let mut searched: Vec<PathBuf> = Vec::new();
        for candidate in &candidates {
            let directory = shown(candidate.parent().unwrap_or(candidate));
            if !searched.contains(&directory) {
                searched.push(directory);
            }
        }
        let list: Vec<String> = searched.iter().map(|path| format!("`{}`", path.display())).collect();
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let file_name = Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let there = candidates.iter().filter_map(|path| path.parent()).flat_map(file_names).collect::<Vec<_>>();
        Err(Error::input(format!("there is no file of tasks `{name}` in {}", join_or(&list)))
            .at(asked)
            .suggest(&file_name, there.iter().map(String::as_str)))
    }

    fn task_candidates(&self, name: &str, around: &Around, is_include: bool) -> Vec<PathBuf> {
        let path = Path::new(name);
        if path.is_absolute() || name.starts_with('~') {
            return vec![absolute(&crate::template::expand_home(name))];
        }
        let beside = around.directory.join(path);
        let mut candidates = Vec::new();
        match &around.role {
            Some(role) => {
                let kind = if around.is_handler { "handlers" } else { "tasks" };
                let in_role = role.path.join(kind).join(path);
                candidates.extend(if is_include { [in_role, beside] } else { [beside, in_role] });
                candidates.push(role.path.join("tasks").join(path));
                candidates.push(role.path.join(path));
                candidates.push(self.playbook_directory.join("tasks").join(path));
            }
            None => candidates.push(beside),
        }
        candidates.push(self.playbook_directory.join(path));
        candidates.iter().map(|path| absolute(path)).collect()
    }

    /// The text of an argument that must be there; templates are texts too.
    fn required_text(&mut self, draft: &Draft, name: &str, what: &str) -> Option<Written> {
        let place = draft.args.place(name, &draft.action_place).clone();
        let value = draft.args.map.get(name).or_else(|| match draft.action {
            TaskAction::Module(module) => module.arg(name)?.aliases.iter().find_map(|alias| draft.args.map.get(*alias)),
            _ => None,
        });
        match value {
            Some(value) if value.as_str().is_some_and(|text| !text.trim().is_empty()) => {
                Some(Written { value: value.clone(), place })
            }
            _ => {
                self.error(Error::parse(format!("`{}` needs {what}", action_name(draft))).at(&place));
                None
            }
        }
    }

    fn refuse_unknown_arguments(&mut self, draft: &Draft) {
        let TaskAction::Module(module) = draft.action else { return };
        for (name, node) in draft.args.nodes.iter().filter(|(name, _)| name.ends_with("_from")) {
            if module.arg(name).is_some() {
                self.keep(keywords::check_value(name, keywords::Holds::Text, node));
            }
        }
        let names: Vec<String> = draft.args.map.keys().map(|key| key.to_text().into_owned()).collect();
        if let Some((name, _)) = args::unknown_name(module, names.iter().map(String::as_str)) {
            let action = action_name(draft);
            let error = Error::parse(format!("`{action}` has no argument `{name}`"))
                .at(draft.args.place(name, &draft.action_place));
            self.error(match name {
                "apply" => error.hint("keywords on an import hold for all that it imports; `apply` is for includes"),
                _ => error.suggest(name, module.arg_names()),
            });
        }
    }

    /// Keywords on an include do not reach what it includes.
    fn refuse_lost_keywords(&mut self, draft: &Draft, action: &str) {
        for (key, _) in draft.node.as_mapping().unwrap_or_default() {
            let name = text_of(key);
            let is_keyword = keywords::KEYWORDS.iter().any(|keyword| keyword.name == name);
            if is_keyword && !ON_INCLUDE.contains(&name) {
                self.error(Error::parse(format!("`{name}` cannot stand on `{action}`")).at(&key.place).hint(format!(
                    "put it into `apply`, which holds for what is included, or use an import: `apply: {{{name}: …}}`"
                )));
            }
        }
    }
}

/// The action as it is written.
pub(super) fn action_name(draft: &Draft) -> String {
    match &draft.action {
        TaskAction::Module(module) => module.bare_name().to_owned(),
        TaskAction::Unknown(name) => name.clone(),
        TaskAction::Template(name) => name.value.to_text().into_owned(),
    }
}

/// The variables of an old `include`: `vars`, and all its arguments but the file.
fn old_include_vars(draft: &Draft) -> Option<Map> {
    let mut variables = draft.own.task_vars.as_deref().cloned().unwrap_or_default();
    let others = draft.args.map.iter().filter(|(key, _)| key.as_str() != Some("file"));
    variables.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    Some(variables).filter(|variables| !variables.is_empty())
}

/// The names of the files in a directory; none if it cannot be read.
pub(super) fn file_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Task {
    /// True if it is include_tasks, include_role or a dynamic `include`.
    pub fn is_include(&self) -> bool {
        let TaskAction::Module(Module { action: crate::modules::Action::Engine(action), .. }) = self.action else {
            return false;
        };
        matches!(action, EngineAction::IncludeTasks | EngineAction::IncludeRole | EngineAction::Include)
    }
}
