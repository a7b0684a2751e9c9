//! What can be known to be wrong before any host is touched.
//!
//! A mistake in a task that is certainly reached is an error. Where it is not certain that the task is reached (it
//! has a condition, stands in `rescue`, is a handler, …), it is a warning, since what is never reached never stops
//! a run; but a misspelt argument is an error everywhere.

mod files;
mod follow;
mod missing;
mod names;
mod plugins;
mod survey;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use indexmap::IndexMap;

use super::free_form::RAW_PARAMS;
use super::load::lock;
use super::tags::{TagSelection, tags_of};
use super::task::module_names;
use super::{Item, Play, Role, Task, TaskAction, Written};
use crate::error::{Error, Result, nearest};
use crate::modules::{Action, EngineAction, FreeForm, Module, args, background, external};
use crate::source::Place;
use crate::template::{Kind, NameKind, SearchPath, check_syntax, lookup_names, names_used};
use crate::value::{Map, Value};
use follow::Thorough;
pub use missing::{Lack, Missing};
pub use survey::{Checked, Findings, Survey};

/// No more errors than this are collected.
const MOST_ERRORS: usize = 20;

/// Judges plays that will run (leave out those that have no hosts). Warnings are added to `warnings`; the result is an
/// error if anything that is certainly reached cannot work.
pub fn check(
    plays: &[Arc<Play>],
    selection: &TagSelection,
    warnings: &Mutex<Vec<Error>>,
    library: &[PathBuf],
) -> Result<()> {
    let mut check = Check::new(selection, library);
    for play in plays {
        check.play(play);
    }
    check.tell_doubtful();
    lock(warnings).append(&mut check.warnings);
    Error::collect(check.errors).map_or(Ok(()), Err)
}

struct Check<'a> {
    selection: &'a TagSelection,
    /// Directories with modules of one's own, behind those beside role and playbook.
    library: &'a [PathBuf],
    /// Where the files of the task at hand are looked for.
    search: SearchPath,
    errors: Vec<Error>,
    warnings: Vec<Error>,
    /// Unknown modules that may never be reached.
    doubtful: IndexMap<String, Doubtful>,
    /// The same of filters, tests and lookups.
    doubtful_names: IndexMap<(NameKind, String), (Error, usize)>,
    /// Set if all is to be found, not only what stops a run.
    thorough: Option<Thorough>,
}

/// An unknown module that may never be reached.
struct Doubtful {
    /// Where it is used first.
    place: Place,
    count: usize,
    /// Why a file of its name is no module.
    refused: Option<String>,
}

/// How sure it is that a task is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Certain,
    Possible,
    /// Its tags are not selected.
    Never,
}

impl<'a> Check<'a> {
    fn new(selection: &'a TagSelection, library: &'a [PathBuf]) -> Check<'a> {
        Check {
            selection,
            library,
            search: SearchPath::default(),
            errors: Vec::new(),
            warnings: Vec::new(),
            doubtful: IndexMap::new(),
            doubtful_names: IndexMap::new(),
            thorough: None,
        }
    }

    /// Makes warnings of what is not there and may never be reached.
    fn tell_doubtful(&mut self) {
        let modules = std::mem::take(&mut self.doubtful).into_iter();
        let modules = modules.map(|(name, Doubtful { place, count, refused })| {
            (refused.into_iter().fold(unknown_module(&name, &place), Error::hint), count)
        });
        for (error, count) in modules.chain(std::mem::take(&mut self.doubtful_names).into_values()) {
            let more = if count > 1 { format!("it is used {count} times; ") } else { String::new() };
            self.warnings.push(error.hint(format!("{more}the task fails if it is reached")));
        }
    }

    fn play(&mut self, play: &Play) {
        let mut certain = true;
        self.search.playbook_dir.clone_from(&play.directory);
        for section in [&play.pre_tasks, &play.role_tasks, &play.tasks, &play.post_tasks] {
            self.items(section, &mut certain);
        }
        self.items(&play.handlers, &mut false);
        self.notifications(play);
    }

    /// `certain`: whether the first item is reached for sure; afterwards whether the one behind the last is.
    fn items(&mut self, items: &[Item], certain: &mut bool) {
        for item in items {
            match item {
                Item::Task(task) => self.task(task, certain),
                Item::Block(block) => {
                    // a failure that is rescued does not stop the run
                    let mut within = *certain && block.rescue.is_empty();
                    self.items(&block.items, &mut within);
                    self.items(&block.rescue, &mut false);
                    self.items(&block.always, certain);
                    *certain &= within || !block.rescue.is_empty();
                }
                Item::FlushHandlers => {}
            }
        }
    }

    fn task(&mut self, task: &Task, certain: &mut bool) {
        let role = |role: &Arc<Role>| role.path.clone();
        self.search.role_dirs =
            task.role.iter().flat_map(|own| std::iter::once(role(own)).chain(own.parents.iter().map(role))).collect();
        let begun = self.reach(task, *certain);
        // the task itself runs only if its loop has items
        let reach = if begun == Reach::Certain && !has_items(task) { Reach::Possible } else { begun };
        if reach != Reach::Never {
            self.templates(task, reach, *certain);
            self.looping(task, begun);
            match &task.action {
                TaskAction::Module(module) => {
                    self.arguments(task, module, reach);
                    self.background(task, module, reach);
                }
                TaskAction::Unknown(name) if self.runs_external(name) => {}
                TaskAction::Unknown(name) if reach == Reach::Certain => {
                    let error = unknown_module(name, &task.action_place);
                    let refused = self.refused_external(name);
                    self.error(refused.into_iter().fold(error, Error::hint));
                }
                TaskAction::Unknown(name) => {
                    let refused = self.refused_external(name);
                    let first = || Doubtful { place: task.action_place.clone(), count: 0, refused };
                    self.doubtful.entry(name.clone()).or_insert_with(first).count += 1;
                }
                TaskAction::Template(_) => {}
            }
            self.look_at(task, reach);
        }
        let goes_on = if reach == Reach::Never { None } else { self.follow(task, begun) };
        if goes_on.unwrap_or(!may_end_the_play(task)) {
            return;
        }
        *certain = false;
    }

    /// True if there is an executable for an action that is none of the modules, and it can run.
    fn runs_external(&self, name: &str) -> bool {
        external::find(name, &self.search, self.library).is_some_and(|path| external::refusal(&path).is_none())
    }

    /// Why the file of that name is no module here, if there is one.
    fn refused_external(&self, name: &str) -> Option<String> {
        external::find(name, &self.search, self.library).and_then(|path| external::refusal(&path))
    }

    fn reach(&self, task: &Task, certain: bool) -> Reach {
        let settings = &task.settings;
        let literal_tags = !settings.tags.iter().any(|tag| tag.value.has_templates());
        let tags: Vec<String> = settings.tags.iter().flat_map(|tag| tags_of(&tag.value)).collect();
        let selected = self.selection.selects(&tags);
        if literal_tags && !selected {
            // who wants to know all wants to know of what is tagged `never` too
            return if self.thorough.is_some() { Reach::Possible } else { Reach::Never };
        }
        let is_false = |ignore: &Written| ignore.value.to_ansible_bool() == Some(false);
        // a failure may be what the playbook reckons with
        let fatal = settings.ignore_errors.as_ref().is_none_or(is_false) && task.failed_when.is_empty();
        let always = |condition: &Written| matches!(condition.value, Value::Bool(true));
        if certain && fatal && literal_tags && !task.is_handler && settings.when.iter().all(always) {
            Reach::Certain
        } else {
            Reach::Possible
        }
    }

    fn error(&mut self, error: Error) {
        if self.errors.len() < MOST_ERRORS || self.thorough.is_some() {
            self.errors.push(error);
        }
    }

    /// An error if the task is reached for sure, else a warning.
    fn judge(&mut self, reach: Reach, error: Error) {
        match reach {
            Reach::Certain => self.error(error),
            _ => self.warnings.push(error.hint("the task fails if it is reached")),
        }
    }

    /// Templates and conditions that are no such thing. `certain`: the task is reached but for its conditions.
    fn templates(&mut self, task: &Task, reach: Reach, certain: bool) {
        for (index, condition) in task.settings.when.iter().enumerate() {
            // the first condition is looked at for sure, those behind it only if it is true
            let reach = if certain && index == 0 && !task.is_handler { Reach::Certain } else { Reach::Possible };
            self.condition(condition, reach);
        }
        let conditions = [&task.changed_when, &task.failed_when, &task.until];
        for condition in conditions.into_iter().flatten() {
            self.condition(condition, reach);
        }
        let place = |name: &Value| place_of(task, &name.to_text()).clone();
        for (name, value) in &task.args {
            self.text(name, &place(name), reach);
            self.text(value, &place(name), reach);
        }
        for written in task.args_template.iter().chain(&task.settings.delegate_to) {
            self.text(&written.value, &written.place, reach);
        }
    }

    /// Filters, tests and lookups that there are not.
    fn names(&mut self, text: &str, kind: Kind, place: &Place, reach: Reach) {
        for used in names_used(text, kind) {
            if names::is_there(&used, &self.search) {
                continue;
            }
            let error = names::unknown(&used, &self.search, &names::place_within(place, text, &used));
            if used.certain && reach == Reach::Certain {
                self.error(error);
            } else {
                self.doubtful_names.entry((used.kind, used.name)).or_insert((error, 0)).1 += 1;
            }
        }
    }

    fn condition(&mut self, condition: &Written, reach: Reach) {
        if let Some(text) = condition.value.as_str() {
            self.names(text, Kind::Expression, &condition.place, reach);
        }
        if let Some(text) = condition.value.as_str()
            && let Err(error) = check_syntax(text, Kind::Expression)
        {
            let message = format!("`{}` is no condition: {}", text.trim(), error.message());
            self.judge(reach, Error::parse(message).at(&condition.place));
        }
    }

    /// The templates in a value.
    fn text(&mut self, value: &Value, place: &Place, reach: Reach) {
        match value {
            Value::Str(text) if text.is_template() => {
                self.names(text.as_str(), Kind::Template, place, reach);
                if let Err(error) = check_syntax(text.as_str(), Kind::Template) {
                    let message = format!("`{}` is no template: {}", text.as_str().trim(), error.message());
                    self.judge(reach, Error::parse(message).at(place));
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.text(item, place, reach)),
            Value::Map(map) => map.values().for_each(|item| self.text(item, place, reach)),
            _ => {}
        }
    }

    /// What is looped over, and whether there is such a lookup.
    fn looping(&mut self, task: &Task, reach: Reach) {
        let Some(looping) = &task.looping else { return };
        self.text(&looping.terms.value, &looping.terms.place, reach);
        let Some(name) = &looping.lookup else { return };
        let names = lookup_names();
        let bare = name.rsplit('.').next().unwrap_or(name);
        if !names.contains(&bare) {
            let error = Error::parse(format!("there is no lookup `{bare}` for `with_{name}`"))
                .at(&looping.terms.place)
                .suggest(bare, names);
            self.judge(reach, error);
        }
    }

    fn arguments(&mut self, task: &Task, module: &'static Module, reach: Reach) {
        if !matches!(module.action, Action::Module(_)) {
            return;
        }
        let found_before = self.errors.len() + self.warnings.len();
        for (key, value) in &task.args {
            let name = key.to_text();
            if key.has_templates() {
                continue;
            }
            let is_free_text = name == RAW_PARAMS && module.free_form == FreeForm::No;
            match module.arg(&name) {
                _ if is_free_text => {
                    let error = free_text(module, value).at(place_of(task, &name));
                    self.judge(reach, error);
                }
                Some(arg) => {
                    if !value.has_templates()
                        && !value.is_null()
                        && !value.is_undefined()
                        && let Err(failure) = args::convert(arg, value)
                    {
                        let error = Error::parse(failure.message).at(place_of(task, &name));
                        self.judge(reach, error);
                    }
                }
                None => {
                    let error = Error::parse(format!("`{}` has no argument `{name}`", module.bare_name()))
                        .at(place_of(task, &name))
                        .suggest(&name, module.arg_names());
                    match nearest(&name, module.arg_names()) {
                        Some(_) => self.error(error),
                        None => self.judge(reach, error),
                    }
                }
            }
        }
        if self.errors.len() + self.warnings.len() == found_before {
            self.missing_arguments(task, module, reach);
        }
    }

    /// `async` with `poll: 0` of a module that cannot go on without the controller.
    fn background(&mut self, task: &Task, module: &'static Module, reach: Reach) {
        let number = |written: &Option<Written>| {
            written
                .as_ref()
                .filter(|written| !written.value.has_templates())?
                .value
                .to_text()
                .trim()
                .parse::<f64>()
                .ok()
        };
        let starts = number(&task.asynchronous).is_some_and(|limit| limit > 0.0) && number(&task.poll) == Some(0.0);
        if starts && let Some(refusal) = background::refusal(module) {
            let place = task.asynchronous.as_ref().map_or(&task.place, |written| &written.place);
            self.judge(reach, Error::input(refusal).at(place));
        }
    }

    /// Arguments that must be there, and rules between arguments, as far as the values are known.
    fn missing_arguments(&mut self, task: &Task, module: &'static Module, reach: Reach) {
        let settings = &task.settings;
        if task.args_template.is_some() || !settings.module_defaults.is_empty() || has_template_keys(&task.args) {
            return;
        }
        let is_given = |name: &str| task.args.contains_key(name);
        let missing: Vec<&str> = module
            .arguments()
            .filter(|arg| arg.required && !is_given(arg.name) && !arg.aliases.iter().any(|alias| is_given(alias)))
            .map(|arg| arg.name)
            .collect();
        if !missing.is_empty() {
            let list = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
            self.judge(reach, Error::parse(format!("`{}` needs {list}", module.bare_name())).at(&task.place));
            return;
        }
        let all_known = task.args.values().all(|value| !value.has_templates() && !value.is_undefined());
        if all_known && let Err(failure) = args::validate(module, &task.args) {
            self.judge(reach, Error::parse(format!("`{}`: {}", module.bare_name(), failure.message)).at(&task.place));
        }
    }

    /// Names in `notify` that no handler has.
    fn notifications(&mut self, play: &Play) {
        let mut tasks = Vec::new();
        for section in [&play.pre_tasks, &play.role_tasks, &play.tasks, &play.post_tasks, &play.handlers] {
            collect(section, &mut tasks);
        }
        let mut handlers = Vec::new();
        collect(&play.handlers, &mut handlers);
        let brings_handlers = |task: &&Task| task.is_include();
        let is_templated = |task: &&Task| task.name.as_ref().is_some_and(|name| name.value.has_templates());
        if tasks.iter().any(brings_handlers) || handlers.iter().any(is_templated) {
            return;
        }
        let known: Vec<String> = handlers.iter().flat_map(|handler| handler_names(handler)).collect();
        for task in tasks {
            for name in &task.notify {
                let text = name.value.to_text();
                if name.value.has_templates() || known.iter().any(|known| *known == text) {
                    continue;
                }
                self.warnings.push(
                    Error::input(format!("no handler is called `{text}` or listens to it"))
                        .at(&name.place)
                        .suggest(&text, known.iter().map(String::as_str))
                        .hint("the task fails if it changes something"),
                );
            }
        }
    }
}

/// True if a task has no loop, or one that has items for sure.
fn has_items(task: &Task) -> bool {
    task.looping.as_ref().is_none_or(|looping| {
        let is_list = looping.lookup.as_deref().is_none_or(|lookup| lookup == "items");
        is_list && looping.terms.value.as_list().is_some_and(|items| !items.is_empty())
    })
}

/// The names by which a handler can be notified: its name and topics, with and without its role.
pub fn handler_names(handler: &Task) -> Vec<String> {
    let texts = handler.name.iter().chain(&handler.listen).map(|name| name.value.to_text().into_owned());
    let mut names: Vec<String> = texts.collect();
    if let Some(role) = &handler.role {
        let mut owners = vec![role.name.clone()];
        owners.extend(role.collection.iter().map(|collection| format!("{collection}.{}", role.name)));
        let with_role = owners.iter().flat_map(|owner| names.iter().map(move |name| format!("{owner} : {name}")));
        let with_role: Vec<String> = with_role.collect();
        names.extend(with_role);
    }
    names
}

fn collect<'t>(items: &'t [Item], tasks: &mut Vec<&'t Task>) {
    for item in items {
        match item {
            Item::Task(task) => tasks.push(task),
            Item::Block(block) => {
                for section in [&block.items, &block.rescue, &block.always] {
                    collect(section, tasks);
                }
            }
            Item::FlushHandlers => {}
        }
    }
}

fn engine_action(task: &Task) -> Option<EngineAction> {
    match task.action {
        TaskAction::Module(Module { action: Action::Engine(action), .. }) => Some(*action),
        _ => None,
    }
}

/// True if tasks behind this one may not be reached although nothing failed.
fn may_end_the_play(task: &Task) -> bool {
    match engine_action(task) {
        Some(EngineAction::Meta) => {
            task.args.values().any(|value| value.as_str().is_some_and(|action| action.starts_with("end_")))
        }
        // what is included may end the play
        Some(_) => true,
        None => matches!(task.action, TaskAction::Template(_)),
    }
}

/// The plugin file in `filter_plugins/` that speaks of a filter of this name.
fn plugin_of(name: &str, search: &SearchPath) -> Option<PathBuf> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    for base in search.role_dirs.iter().chain([&search.playbook_dir]) {
        for entry in std::fs::read_dir(base.join("filter_plugins")).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|ending| ending != "py") {
                continue;
            }
            let text = std::fs::read(&path).unwrap_or_default();
            if String::from_utf8_lossy(&text).split(|c| !is_part(c)).any(|word| word == name) {
                return Some(path);
            }
        }
    }
    None
}

fn place_of<'t>(task: &'t Task, argument: &str) -> &'t Place {
    task.arg_places.get(argument).unwrap_or(&task.place)
}

fn has_template_keys(args: &Map) -> bool {
    args.keys().any(Value::has_templates)
}

/// The error for free text that the module does not take.
fn free_text(module: &Module, value: &Value) -> Error {
    let text = value.to_text();
    let text = text.trim();
    let error = Error::parse(format!("`{}` takes no free text, but has `{text}`", module.bare_name()));
    if text.split_whitespace().any(|word| word == "=") {
        error.hint("write `key=value` without blanks around `=`")
    } else {
        error.hint("write its arguments as `key: value` below it, or as `key=value`")
    }
}

fn unknown_module(name: &str, place: &Place) -> Error {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let error = Error::input(format!("there is no module `{name}`")).at(place);
    match nearest(bare, module_names()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}
