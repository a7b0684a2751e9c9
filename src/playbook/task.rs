//! A task: its keywords, its action in all the ways to write it, and its arguments.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use indexmap::IndexMap;

use super::free_form::{self, RAW_PARAMS};
use super::keywords::{self, On};
use super::load::{Around, Loader};
use super::settings::{Level, is_variable_name};
use super::{Item, Loop, LoopControl, NEXT_TASK, Settings, Task, TaskAction, Written};
use crate::error::{Error, nearest};
use crate::modules::{self, EngineAction, FreeForm, Module};
use crate::source::Place;
use crate::value::{Map, Value};
use crate::yaml::Node;

/// What a task's own keywords say, beside what is inherited.
#[derive(Default)]
pub(super) struct Fields {
    pub name: Option<Written>,
    pub looping: Option<Loop>,
    pub register: Option<Written>,
    pub listen: Vec<Written>,
    pub until: Vec<Written>,
    pub retries: Option<Written>,
    pub delay: Option<Written>,
    pub changed_when: Vec<Written>,
    pub failed_when: Vec<Written>,
    pub asynchronous: Option<Written>,
    pub poll: Option<Written>,
}

/// A task as it was written, before it is known what its action means.
pub(super) struct Draft<'n> {
    pub node: &'n Node,
    pub own: Settings,
    pub fields: Fields,
    pub action: TaskAction,
    /// The key that names the action.
    pub action_place: Place,
    pub args: Arguments<'n>,
}

/// The arguments of an action.
#[derive(Default)]
pub(super) struct Arguments<'n> {
    pub map: Map,
    pub places: IndexMap<String, Place>,
    pub template: Option<Written>,
    /// The values that were written as YAML.
    pub nodes: IndexMap<String, &'n Node>,
}

impl Arguments<'_> {
    /// The text of an argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.map.get(name).and_then(Value::as_str)
    }

    /// Where an argument stands, or the action if it was written as text.
    pub fn place<'p>(&'p self, name: &str, action: &'p Place) -> &'p Place {
        self.places.get(name).unwrap_or(action)
    }

    pub fn remove(&mut self, name: &str) {
        self.map.shift_remove(name);
        self.places.shift_remove(name);
    }
}

impl Loader<'_> {
    /// Loads a task; an import gives what it imports.
    pub fn task(&mut self, node: &Node, around: &Around) -> Vec<Item> {
        let Some(draft) = self.draft(node, around) else { return Vec::new() };
        let engine = match &draft.action {
            TaskAction::Module(Module { action: modules::Action::Engine(action), .. }) => Some(*action),
            _ => None,
        };
        if let Some(EngineAction::ImportRole | EngineAction::IncludeRole) = engine
            && around.is_handler
        {
            self.error(
                Error::parse(format!("Using '{}' as a handler is not supported.", super::include::action_name(&draft)))
                    .at(&draft.action_place)
                    .hint("notify handlers of the role, or include a file of tasks"),
            );
            return Vec::new();
        }
        if engine == Some(EngineAction::Include) {
            self.options.warn_once(
                Error::input("`include` is taken as it was before ansible-core 2.16, which refuses it")
                    .at(&draft.action_place)
                    .hint("write `include_tasks`, or `import_tasks` for what is loaded at once"),
            );
        }
        match engine {
            Some(EngineAction::ImportTasks) => self.import_tasks(draft, around),
            Some(EngineAction::Include) if self.is_static_include(&draft) => self.import_tasks(draft, around),
            Some(EngineAction::ImportRole) => self.import_role(draft, around),
            Some(EngineAction::IncludeTasks | EngineAction::Include | EngineAction::IncludeRole) => {
                self.include(draft, around)
            }
            Some(EngineAction::Meta) => {
                self.check_meta(&draft, around);
                vec![Item::Task(Arc::new(draft.into_task(around, None)))]
            }
            None => vec![Item::Task(Arc::new(draft.into_task(around, None)))],
        }
    }

    fn draft<'n>(&mut self, node: &'n Node, around: &Around) -> Option<Draft<'n>> {
        let on = if around.is_handler { On::Handler } else { On::Task };
        let mut own = Settings::default();
        let mut fields = Fields::default();
        let mut others = Vec::new();
        let mut loops: Vec<(&Node, &Node)> = Vec::new();
        let mut control = LoopControl::default();
        let errors_before = self.errors.len();
        for (key, value) in node.as_mapping().unwrap_or_default() {
            let name = key.as_str().unwrap_or_default();
            let keyword = match keywords::find(name, on) {
                Some(keyword) => keyword,
                // whether an old include is loaded at once
                None if name == "static" && node.get("include").is_some() => continue,
                None if name.starts_with("with_") => {
                    loops.push((key, value));
                    continue;
                }
                None => {
                    others.push((key, value));
                    continue;
                }
            };
            let checked = keywords::check_value(keyword.name, keyword.holds, value);
            let is_flag = keyword.holds == keywords::Holds::Bool && value.value().is_some();
            match checked {
                Err(error) if is_flag && ignores_errors(node) => {
                    self.options.warn(error.hint("the task fails if it is reached"));
                }
                Err(error) => {
                    self.error(error);
                    continue;
                }
                Ok(()) => {}
            }
            self.say_if_without_effect(keyword, key, value);
            match keyword.name {
                "loop" => loops.push((key, value)),
                "loop_control" => control = self.loop_control(value),
                other => {
                    if !self.take_setting(&mut own, other, value) {
                        self.take_field(&mut fields, other, value);
                    }
                }
            }
        }
        fields.looping = self.looping(&loops, control);
        let action = self.action(node, &others, on);
        let (action, action_place, args, local) = match action {
            Some(action) => action,
            None => {
                if self.errors.len() == errors_before {
                    self.error(
                        Error::parse(format!("{} has no action", on.word().replacen("a ", "the ", 1)))
                            .at(&node.place)
                            .hint("name a module and its arguments, as in `command: uptime`"),
                    );
                }
                return None;
            }
        };
        if local {
            own.delegate_to = Some(Written { value: Value::written("localhost"), place: action_place.clone() });
        }
        Some(Draft { node, own, fields, action, action_place, args })
    }

    fn take_field(&mut self, fields: &mut Fields, name: &str, node: &Node) {
        let one = |loader: &Self| Some(loader.written(node)).filter(|_| !node.is_null());
        match name {
            "name" => fields.name = one(self),
            "register" => {
                fields.register = one(self);
                let is_template = node.value().is_some_and(Value::has_templates);
                if !node.is_null() && !is_template && !node.as_str().is_some_and(is_variable_name) {
                    self.error(super::settings::invalid_variable_name(node, "register"));
                }
            }
            "listen" => fields.listen = self.written_list(node),
            "until" => fields.until = self.conditions(node),
            "retries" => fields.retries = one(self),
            "delay" => fields.delay = one(self),
            "changed_when" => fields.changed_when = self.conditions(node),
            "failed_when" => fields.failed_when = self.conditions(node),
            "async" => fields.asynchronous = one(self),
            "poll" => fields.poll = one(self),
            _ => {}
        }
    }

    fn looping(&mut self, loops: &[(&Node, &Node)], control: LoopControl) -> Option<Loop> {
        let (key, value) = *loops.first()?;
        if let Some((second, _)) = loops.get(1) {
            self.error(
                Error::parse(format!("the task has two loops, `{}` and `{}`", text_of(key), text_of(second)))
                    .at_label(&second.place, "the second loop")
                    .at_label(&key.place, "the first loop"),
            );
        }
        if value.is_null() {
            self.error(Error::parse(format!("`{}` needs a value", text_of(key))).at(&key.place));
            return None;
        }
        let lookup = text_of(key).strip_prefix("with_").map(str::to_owned);
        if lookup.is_none() && value.as_mapping().is_some() {
            self.error(
                Error::parse("`loop` takes a list, not a mapping")
                    .at(&value.place)
                    .hint("loop over a mapping with `loop: \"{{ name | dict2items }}\"` or with `with_dict`"),
            );
        }
        Some(Loop { lookup, terms: self.written(value), control })
    }

    fn loop_control(&mut self, node: &Node) -> LoopControl {
        let mut control = LoopControl::default();
        if node.as_mapping().is_none() && !node.is_null() {
            self.error(
                Error::parse(format!("`loop_control` takes a mapping, not {}", keywords::described(node)))
                    .at(&node.place),
            );
        }
        for (key, value) in node.as_mapping().unwrap_or_default() {
            let name = text_of(key);
            let Some((_, holds, _)) = keywords::LOOP_CONTROL.iter().find(|(known, ..)| *known == name) else {
                let known = keywords::LOOP_CONTROL.iter().map(|(name, ..)| *name);
                self.error(
                    Error::parse(format!("unknown key `{name}` in `loop_control`")).at(&key.place).suggest(name, known),
                );
                continue;
            };
            if self.keep(keywords::check_value(name, *holds, value)).is_none() {
                continue;
            }
            let slot = match name {
                "loop_var" => &mut control.loop_var,
                "index_var" => &mut control.index_var,
                "label" => &mut control.label,
                "pause" => &mut control.pause,
                "extended" => &mut control.extended,
                "extended_allitems" => &mut control.extended_allitems,
                _ => {
                    control.break_when = self.conditions(value);
                    continue;
                }
            };
            *slot = Some(self.value(value)).filter(|_| !value.is_null());
        }
        control
    }

    /// Finds the action among the keys that are no keywords, or in `action` and `local_action`. The flag says whether
    /// it is delegated to localhost. `None` if there is none, or an error was kept.
    fn action<'n>(
        &mut self,
        node: &'n Node,
        others: &[(&'n Node, &'n Node)],
        on: On,
    ) -> Option<(TaskAction, Place, Arguments<'n>, bool)> {
        let mut actions: Vec<(&Node, &Node)> =
            ["action", "local_action"].iter().filter_map(|name| node.entry(name)).collect();
        let is_module = |key: &Node| modules::find(text_of(key)).is_some() || text_of(key).matches('.').count() >= 2;
        let (mut known, mut unknown): (Vec<_>, Vec<_>) = others.iter().copied().partition(|(key, _)| is_module(key));
        if actions.is_empty() && known.is_empty() {
            // a module that we do not have; all else must be misspelt keywords
            let candidates: Vec<usize> =
                (0..unknown.len()).filter(|&index| !is_keyword_like(unknown[index].0, on)).collect();
            match (candidates.as_slice(), unknown.len()) {
                ([], 1) if !is_known_keyword(unknown[0].0) => known.push(unknown.remove(0)),
                ([index], _) => known.push(unknown.remove(*index)),
                ([first, second, ..], _) => {
                    let (first, second) = (unknown[*first].0, unknown[*second].0);
                    self.error(
                        Error::parse(format!(
                            "neither `{}` nor `{}` is a keyword or a known module",
                            text_of(first),
                            text_of(second)
                        ))
                        .at(&first.place)
                        .at(&second.place)
                        .suggest(text_of(first), module_names())
                        .hint("a task has one action"),
                    );
                    return None;
                }
                _ => {}
            }
        }
        for (key, _) in &unknown {
            self.error(keywords::unknown(key, on));
        }
        actions.extend(known);
        let (key, value) = *actions.first()?;
        if let Some((second, _)) = actions.get(1) {
            self.error(
                Error::parse(format!("the task has two actions, `{}` and `{}`", text_of(key), text_of(second)))
                    .at_label(&second.place, "the second action")
                    .at_label(&key.place, "the first action")
                    .hint("make two tasks of them"),
            );
            return None;
        }
        let mut args = Arguments::default();
        if let Some((args_key, further)) = node.entry("args") {
            self.further_args(&mut args, args_key, further);
        }
        let action = match text_of(key) {
            "action" | "local_action" => self.old_style(key, value, &mut args)?,
            name => {
                self.arguments(name, key, value, &mut args);
                resolve(name)
            }
        };
        if let TaskAction::Module(module) = action {
            take_free_form(module, &mut args, &key.place);
        }
        Some((action, key.place.clone(), args, text_of(key) == "local_action"))
    }

    /// `args:`: a mapping, or a template that gives one.
    fn further_args<'n>(&mut self, args: &mut Arguments<'n>, key: &Node, node: &'n Node) {
        match node.value() {
            None if node.as_mapping().is_some() => self.take_mapping(args, node),
            Some(Value::Null) => {}
            Some(value) if value.has_templates() => args.template = Some(self.written(node)),
            _ => self.error(
                Error::parse(format!("`args` takes a mapping of arguments, not {}", keywords::described(node)))
                    .at(&key.place),
            ),
        }
    }

    /// `action: module key=value` or `action: {module: name, …}`.
    fn old_style<'n>(&mut self, key: &Node, node: &'n Node, args: &mut Arguments<'n>) -> Option<TaskAction> {
        let (text_node, rest) = match node.as_mapping() {
            Some(entries) => {
                let rest: Vec<&(Node, Node)> = entries.iter().filter(|(key, _)| text_of(key) != "module").collect();
                (node.get("module"), rest)
            }
            None => (Some(node), Vec::new()),
        };
        let Some(text) = text_node.and_then(Node::as_str).filter(|text| !text.trim().is_empty()) else {
            self.error(
                Error::parse(format!("`{}` names no module", text_of(key)))
                    .at(&key.place)
                    .hint("write `action: module key=value`, or name the module directly"),
            );
            return None;
        };
        let place = text_node.map_or(&key.place, |node| &node.place);
        let (name, words) = match free_form::split_action(text) {
            Ok(parts) => parts,
            Err(error) => {
                self.error(error.at(place));
                return None;
            }
        };
        for (key, value) in rest {
            match text_of(key) {
                "args" if value.as_mapping().is_some() => self.take_mapping(args, value),
                "args" => self.take_text(&name, args, value.as_str().unwrap_or_default(), &value.place),
                _ => self.take_argument(args, key, value),
            }
        }
        self.take_text(&name, args, &words, place);
        if Value::written(name.as_str()).has_templates() {
            return Some(TaskAction::Template(Written { value: Value::written(name), place: place.clone() }));
        }
        Some(resolve(&name))
    }

    /// The value behind a module's name.
    fn arguments<'n>(&mut self, name: &str, key: &Node, node: &'n Node, args: &mut Arguments<'n>) {
        match node.value() {
            None if node.as_mapping().is_some() => self.take_mapping(args, node),
            Some(Value::Null) => {}
            Some(_) if node.is_vault() => {
                args.map.insert(RAW_PARAMS.into(), self.value(node));
            }
            Some(value @ Value::Str(text)) => {
                self.take_text(name, args, text.as_str(), &node.place);
                if !text.is_template() && !value.has_templates() && node.tag.is_some() {
                    // plain data stays plain data
                    args.map.values_mut().for_each(|value| *value = std::mem::take(value).into_data());
                }
            }
            _ => {
                self.error(
                    Error::parse(format!(
                        "`{name}` takes a mapping of arguments or text, not {}",
                        keywords::described(node)
                    ))
                    .at(&key.place),
                );
            }
        }
    }

    fn take_mapping<'n>(&mut self, args: &mut Arguments<'n>, node: &'n Node) {
        for (key, value) in node.as_mapping().unwrap_or_default() {
            self.take_argument(args, key, value);
        }
    }

    fn take_argument<'n>(&mut self, args: &mut Arguments<'n>, key: &Node, value: &'n Node) {
        let Some(name) = key.value() else {
            self.error(Error::parse("the name of an argument must be text").at(&key.place));
            return;
        };
        let text = name.to_text().into_owned();
        if text.starts_with("_ansible_") {
            self.error(
                Error::parse(format!("`{text}` cannot be the name of an argument"))
                    .at(&key.place)
                    .hint("the prefix `_ansible_` is reserved for internal use only."),
            );
        }
        let name = if name.as_str().is_some() { name.clone() } else { Value::written(text.as_str()) };
        args.map.insert(name, self.value(value));
        args.places.insert(text.clone(), key.place.clone());
        args.nodes.insert(text, value);
    }

    fn take_text(&mut self, module: &str, args: &mut Arguments, text: &str, place: &Place) {
        match free_form::parse_key_values(text, free_form::takes_command(module)) {
            Ok(pairs) => {
                for (key, value) in pairs {
                    args.places.insert(key.to_text().into_owned(), place.clone());
                    args.map.insert(key, value);
                }
            }
            Err(error) => self.error(error.at(place)),
        }
    }

    fn check_meta(&mut self, draft: &Draft, around: &Around) {
        let (key, name) = draft
            .args
            .map
            .first()
            .map_or(("", None), |(key, value)| (key.as_str().unwrap_or_default(), value.as_str()));
        let place = draft.args.place(key, &draft.action_place);
        let Some(name) = name else {
            self.error(Error::parse("`meta` needs to know what to do").at(place));
            return;
        };
        let known = modules::engine_actions::META_ACTIONS;
        if Value::written(name).has_templates() {
            self.error(Error::parse("`meta` takes no template").at(place));
        } else if !known.contains(&name) {
            self.error(
                Error::parse(format!("`meta` cannot do `{name}`")).at(place).suggest(name, known.iter().copied()),
            );
        } else if name == "end_role" && (around.role.is_none() || around.is_handler) {
            let wrong = if around.is_handler { "from a handler" } else { "from outside of a role" };
            self.error(Error::parse(format!("Cannot execute 'end_role' {wrong}")).at(place));
        }
    }
}

impl Draft<'_> {
    /// The task; `apply` is for includes.
    pub fn into_task(self, around: &Around, apply: Option<Settings>) -> Task {
        let settings = self.own.below(&around.settings, Level::Task);
        let Fields { name, looping, register, listen, until, retries, delay, .. } = self.fields;
        Task {
            id: NEXT_TASK.fetch_add(1, Ordering::Relaxed),
            place: self.node.place.clone(),
            name,
            action: self.action,
            action_place: self.action_place,
            args: self.args.map,
            arg_places: self.args.places,
            args_template: self.args.template,
            looping,
            register,
            notify: settings.notify.clone(),
            listen,
            until,
            retries,
            delay,
            changed_when: self.fields.changed_when,
            failed_when: self.fields.failed_when,
            asynchronous: self.fields.asynchronous,
            poll: self.fields.poll,
            apply: apply.map(Arc::new),
            settings: Arc::new(settings),
            around: Arc::clone(&around.settings),
            role: around.role.clone(),
            is_handler: around.is_handler,
            directory: around.directory.clone(),
        }
    }
}

/// Gives free text to the argument that the module takes it as. If it is one template, it may also give all arguments.
fn take_free_form(module: &Module, args: &mut Arguments, place: &Place) {
    match module.free_form {
        FreeForm::Argument(RAW_PARAMS) => {}
        FreeForm::Argument(name) => {
            if let Some(value) = args.map.shift_remove(RAW_PARAMS) {
                let at = args.places.shift_remove(RAW_PARAMS).unwrap_or_else(|| place.clone());
                args.map.insert(name.into(), value);
                args.places.insert(name.to_owned(), at);
            }
        }
        FreeForm::No => {
            let is_template = |text: &&str| text.trim().starts_with("{{") && text.trim().ends_with("}}");
            if args.template.is_none() && args.text(RAW_PARAMS).filter(is_template).is_some() {
                let place = args.place(RAW_PARAMS, place).clone();
                if let Some(value) = args.map.shift_remove(RAW_PARAMS) {
                    args.template = Some(Written { value, place });
                }
                args.remove(RAW_PARAMS);
            }
        }
    }
}

fn resolve(name: &str) -> TaskAction {
    modules::find(name).map_or_else(|| TaskAction::Unknown(name.to_owned()), TaskAction::Module)
}

/// True if a failure of the task is what the playbook reckons with.
fn ignores_errors(task: &Node) -> bool {
    task.get("ignore_errors").and_then(Node::value).and_then(Value::to_ansible_bool) == Some(true)
}

/// The names of all modules, bare, for suggestions.
pub(super) fn module_names() -> impl Iterator<Item = &'static str> {
    modules::MODULES.iter().map(|module| module.bare_name())
}

pub(super) fn text_of(key: &Node) -> &str {
    key.as_str().unwrap_or_default()
}

/// True for the keywords of all things, except those that are names of modules too.
fn is_known_keyword(key: &Node) -> bool {
    !matches!(text_of(key), "user" | "gather_facts")
        && keywords::KEYWORDS.iter().any(|keyword| keyword.name == text_of(key))
}

/// True if a key is a keyword of something else, or nearly one that can stand here.
fn is_keyword_like(key: &Node, on: On) -> bool {
    key.as_str().is_none() || is_known_keyword(key) || nearest(text_of(key), keywords::names(on)).is_some()
}
