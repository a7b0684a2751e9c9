//! Playbooks and plays.

use std::path::Path;
use std::sync::Arc;

use super::collections::{collection_around, split_full_name};
use super::include::file_names;
use super::keywords::{self, Holds, On};
use super::load::{Around, LoadOptions, Loader, absolute, shown};
use super::settings::{Level, invalid_variable_name, is_variable_name};
use super::task::text_of;
use super::{Play, Settings, VarsPrompt, Written};
use crate::error::{Error, Result};
use crate::modules;
use crate::source::{Place, Source};
use crate::value::{Map, Value};
use crate::yaml::{self, Node};

/// The names under which an entry of a playbook imports another; `include` is the old one.
const IMPORTS: &[&str] =
    &["import_playbook", "ansible.builtin.import_playbook", "ansible.legacy.import_playbook", "include"];

const STRATEGIES: &[&str] = &["linear", "free", "host_pinned", "debug"];
const ORDERS: &[&str] = &["inventory", "sorted", "reverse_inventory", "reverse_sorted", "shuffle"];
const PROMPT_KEYS: &[&str] =
    &["name", "prompt", "default", "private", "confirm", "encrypt", "salt_size", "salt", "unsafe"];

/// Loads a playbook with all that it imports. Up to 20 errors are reported at once (see [`Error::others`]).
pub fn load_playbook(path: &Path, options: &LoadOptions) -> Result<Vec<Arc<Play>>> {
    let path = absolute(path);
    let mut loader = Loader::new(options, path.parent().unwrap_or(&path).to_owned());
    let plays = match loader.playbook(&path, None, &Imported::default()) {
        Ok(plays) => plays,
        Err(error) => {
            loader.error(error);
            Vec::new()
        }
    };
    loader.finish(plays)
}

/// Loads a playbook as far as it can be: the plays that are understood, and all that is wrong.
pub(super) fn load_what_can_be(path: &Path, options: &LoadOptions) -> (Vec<Arc<Play>>, Vec<Error>) {
    let path = absolute(path);
    let mut loader = Loader::new(options, path.parent().unwrap_or(&path).to_owned());
    let plays = loader.playbook(&path, None, &Imported::default());
    let plays = loader.keep(plays).unwrap_or_default();
    (plays, loader.errors)
}

/// As [`load_what_can_be`], of a text.
pub(super) fn load_what_can_be_of(source: &Arc<Source>, options: &LoadOptions) -> (Vec<Arc<Play>>, Vec<Error>) {
    let path = absolute(&source.path);
    let mut loader = Loader::new(options, path.parent().unwrap_or(&path).to_owned());
    let plays = yaml::load(source).and_then(|root| loader.entries(source, root.as_ref(), &path, &Imported::default()));
    let plays = loader.keep(plays).unwrap_or_default();
    (plays, loader.errors)
}

/// Loads plays from a text that is no file (the command line's); its path tells the directory.
pub fn load_plays(source: &Arc<Source>, options: &LoadOptions) -> Result<Vec<Arc<Play>>> {
    let path = absolute(&source.path);
    let mut loader = Loader::new(options, path.parent().unwrap_or(&path).to_owned());
    let root = yaml::load(source)?;
    let plays = match loader.entries(source, root.as_ref(), &path, &Imported::default()) {
        Ok(plays) => plays,
        Err(error) => {
            loader.error(error);
            Vec::new()
        }
    };
    loader.finish(plays)
}

/// The keywords on an import that its plays take over; Ansible takes the others and forgets them.
const COUNT_ON_IMPORTS: &[&str] = &["name", "tags", "vars", "when"];

/// What the import_playbook around says for all its plays.
#[derive(Default, Clone)]
struct Imported {
    settings: Settings,
    vars: Map,
}

impl Loader<'_> {
    fn playbook(&mut self, path: &Path, asked: Option<&Place>, imported: &Imported) -> Result<Vec<Arc<Play>>> {
        let document = self.document(path, asked)?;
        self.entries(&document.source, document.root.as_ref(), path, imported)
    }

    /// The plays of a playbook's text.
    fn entries(
        &mut self,
        source: &Arc<Source>,
        root: Option<&Node>,
        path: &Path,
        imported: &Imported,
    ) -> Result<Vec<Arc<Play>>> {
        let name = shown(path);
        let root = root.ok_or_else(|| Error::parse("the playbook is empty").at(&Place::start(source)))?;
        let entries = root.as_sequence().ok_or_else(|| {
            Error::parse(format!(
                "a playbook is a list of plays, `{}` is {}",
                name.display(),
                keywords::described(root)
            ))
            .at(&root.place)
            .hint("begin each play with `- hosts: …`")
        })?;
        if entries.is_empty() {
            return Err(Error::parse("A playbook must contain at least one play")
                .at(&root.place)
                .hint("begin each play with `- hosts: …`"));
        }
        let directory = path.parent().unwrap_or(path).to_owned();
        let mut plays = Vec::new();
        for entry in entries {
            if entry.as_mapping().is_none() {
                self.error(
                    Error::parse(format!("a play is a mapping, not {}", keywords::described(entry))).at(&entry.place),
                );
            } else if let Some((key, file)) = IMPORTS.iter().find_map(|name| entry.entry(name)) {
                let result = self.import(entry, key, file, &directory, imported);
                plays.extend(self.keep(result).unwrap_or_default());
            } else if let Some(key) = key_of_a_task(entry) {
                let name = key.as_str().unwrap_or_default();
                self.error(
                    Error::parse(format!("'{name}' is not a valid attribute for a Play"))
                        .at(&key.place)
                        .hint("this is a task: put it under `tasks` of a play that says on which `hosts`"),
                );
            } else {
                plays.extend(self.play(entry, &directory, imported).map(Arc::new));
            }
        }
        Ok(plays)
    }

    /// An entry `import_playbook`.
    fn import(
        &mut self,
        entry: &Node,
        action: &Node,
        file: &Node,
        directory: &Path,
        outer: &Imported,
    ) -> Result<Vec<Arc<Play>>> {
        let mut own = Settings::default();
        for (key, value) in entry.as_mapping().unwrap_or_default() {
            if text_of(key) == text_of(action) {
                continue;
            }
            let Some(keyword) = self.keyword(key, value, On::Import) else { continue };
            if COUNT_ON_IMPORTS.contains(&keyword.name) {
                self.take_setting(&mut own, keyword.name, value);
            } else {
                let message = format!("`{}` on `{}` has no effect, as with Ansible", keyword.name, text_of(action));
                self.options
                    .warn(Error::parse(message).at(&key.place).hint("write it on the plays of the imported playbook"));
            }
        }
        let written = self.written(file);
        if written.value.as_str().is_none_or(|text| text.trim().is_empty()) {
            return Err(Error::parse(format!("`{}` needs the file of a playbook", text_of(action))).at(&action.place));
        }
        let own_vars = own.task_vars.as_deref().cloned().unwrap_or_default();
        let around = self.top(directory, &own);
        self.play_vars = vec![Arc::new(outer.vars.clone())];
        self.play_vars_files = Vec::new();
        let name = self.static_name(&written, &own, &around)?;
        let full_name = split_full_name(&name);
        let in_collection = full_name.as_ref().and_then(|(collection, short)| self.playbook_in(collection, short));
        let path = in_collection.unwrap_or_else(|| absolute(&directory.join(&name)));
        if !path.is_file() {
            if let Some((collection, _)) = full_name.filter(|_| !name.ends_with(".yml") && !name.ends_with(".yaml")) {
                let error = Error::input(format!("there is no playbook `{name}`")).at(&file.place);
                return Err(self.about_collection(&collection, error, "playbooks"));
            }
            let there = file_names(path.parent().unwrap_or(directory));
            let last = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            return Err(Error::input(format!("there is no playbook `{}`", shown(&path).display()))
                .at(&file.place)
                .suggest(&last, there.iter().map(String::as_str)));
        }
        let mut vars = own_vars;
        vars.extend(outer.vars.clone());
        let imported = Imported { settings: own.below(&outer.settings, Level::Apart), vars };
        let previous = std::mem::replace(&mut self.playbook_directory, path.parent().unwrap_or(&path).to_owned());
        let plays =
            self.within(&path, &file.place, "importing", |loader| loader.playbook(&path, Some(&file.place), &imported));
        self.playbook_directory = previous;
        plays
    }

    fn top(&self, directory: &Path, settings: &Settings) -> Around {
        Around {
            settings: Arc::new(settings.clone()),
            role: None,
            directory: directory.to_owned(),
            is_handler: false,
            in_block: false,
        }
    }

    fn play(&mut self, node: &Node, directory: &Path, imported: &Imported) -> Option<Play> {
        let mut own = Settings::default();
        let mut play = Play {
            place: node.place.clone(),
            name: None,
            hosts: Written { value: Value::Null, place: node.place.clone() },
            gather_facts: None,
            gather_subset: None,
            gather_timeout: None,
            fact_path: None,
            serial: Vec::new(),
            strategy: None,
            order: None,
            max_fail_percentage: None,
            force_handlers: None,
            vars: Arc::default(),
            vars_files: Vec::new(),
            vars_prompt: Vec::new(),
            roles: Vec::new(),
            pre_tasks: Arc::default(),
            role_tasks: Arc::default(),
            tasks: Arc::default(),
            post_tasks: Arc::default(),
            handlers: Arc::default(),
            settings: Arc::default(),
            directory: directory.to_owned(),
        };
        for (key, value) in node.as_mapping().unwrap_or_default() {
            let Some(keyword) = self.keyword(key, value, On::Play) else { continue };
            if !self.take_setting(&mut own, keyword.name, value) {
                self.take_play_keyword(&mut play, keyword.name, value);
            }
        }
        self.check_hosts(node);
        if let (Some((old, _)), Some((new, _))) = (node.entry("user"), node.entry("remote_user")) {
            self.error(
                Error::parse("both 'user' and 'remote_user' are set for this play.")
                    .at(&old.place)
                    .at(&new.place)
                    .hint("`user` is the old name of `remote_user`: keep `remote_user`"),
            );
        }
        // in a playbook of a collection short names are those of the collection first
        if let Some(collection) = collection_around(directory) {
            let mut names = own.collections.as_deref().cloned().unwrap_or_default();
            if !names.contains(&collection) {
                names.insert(0, collection);
            }
            own.collections = Some(Arc::new(names));
        }
        let mut vars = own.task_vars.take().as_deref().cloned().unwrap_or_default();
        vars.extend(imported.vars.clone());
        play.vars = Arc::new(vars);
        let mut settings = own.below(&imported.settings, Level::Apart);
        self.fill_with_defaults(&mut play, &mut settings);
        play.settings = Arc::new(settings);
        self.play_vars = vec![Arc::clone(&play.vars)];
        self.play_vars_files = play.vars_files.clone();
        self.imported_roles.clear();
        self.imported_handlers.clear();
        let settings = Arc::clone(&play.settings);
        let around = self.top(directory, &settings);
        let handlers_around = Around { is_handler: true, ..around.clone() };
        let mut role_tasks = Vec::new();
        let mut handlers = Vec::new();
        for entry in node.get("roles").and_then(Node::as_sequence).unwrap_or_default() {
            let result = self.role_entry(entry, &around).and_then(|request| self.role(request, &around));
            if let Some(loaded) = self.keep(result) {
                play.roles.push(loaded.role);
                role_tasks.extend(loaded.items);
                handlers.extend(loaded.handlers);
            }
        }
        let mut section =
            |name: &str, around: &Around| match node.get(name).filter(|tasks| tasks.as_sequence().is_some()) {
                Some(tasks) => self.items(tasks, around),
                None => Vec::new(),
            };
        play.pre_tasks = Arc::new(section("pre_tasks", &around));
        play.tasks = Arc::new(section("tasks", &around));
        play.post_tasks = Arc::new(section("post_tasks", &around));
        play.role_tasks = Arc::new(role_tasks);
        handlers.extend(section("handlers", &handlers_around));
        handlers.append(&mut self.imported_handlers);
        play.handlers = Arc::new(handlers);
        play.roles.append(&mut self.imported_roles);
        Some(play)
    }

    /// What the settings say of plays in general.
    fn fill_with_defaults(&self, play: &mut Play, settings: &mut Settings) {
        for (name, value) in self.options.play_defaults.iter() {
            let slot = match *name {
                "any_errors_fatal" => &mut settings.any_errors_fatal,
                "no_log" => &mut settings.no_log,
                "timeout" => &mut settings.timeout,
                "port" => &mut settings.port,
                "become_exe" => &mut settings.become_exe,
                "become_flags" => &mut settings.become_flags,
                "gather_subset" => &mut play.gather_subset,
                "gather_timeout" => &mut play.gather_timeout,
                "fact_path" => &mut play.fact_path,
                _ => continue,
            };
            slot.get_or_insert_with(|| Written { value: value.clone(), place: play.place.clone() });
        }
    }

    fn take_play_keyword(&mut self, play: &mut Play, name: &str, node: &Node) {
        let written = Some(self.written(node)).filter(|_| !node.is_null());
        match name {
            "name" => play.name = written,
            "hosts" => play.hosts = self.written(node),
            "gather_facts" => play.gather_facts = written,
            "gather_subset" => play.gather_subset = written,
            "gather_timeout" => play.gather_timeout = written,
            "fact_path" => play.fact_path = written,
            "max_fail_percentage" => play.max_fail_percentage = written,
            "force_handlers" => play.force_handlers = written,
            "strategy" => {
                self.check_choice("strategy", node, STRATEGIES);
                play.strategy = written;
            }
            "order" => {
                self.check_choice("order", node, ORDERS);
                play.order = written;
            }
            "serial" => {
                for item in node.as_sequence().unwrap_or(std::slice::from_ref(node)) {
                    self.keep(keywords::check_value("serial", Holds::Percent, item));
                }
                play.serial = self.written_list(node);
            }
            "vars_files" => play.vars_files = self.written_list(node),
            "vars_prompt" => play.vars_prompt = self.prompts(node),
            _ => {}
        }
    }

    fn check_choice(&mut self, name: &str, node: &Node, choices: &[&'static str]) {
        let Some(text) = node.as_str().filter(|text| !Value::written(*text).has_templates()) else { return };
        let bare = text.strip_prefix("ansible.builtin.").unwrap_or(text);
        if !choices.contains(&bare) {
            self.error(
                Error::parse(format!("`{name}` cannot be `{text}`: it is {}", keywords::join_or(choices)))
                    .at(&node.place)
                    .suggest(text, choices.iter().copied()),
            );
        }
    }

    fn check_hosts(&mut self, play: &Node) {
        let Some((key, hosts)) = play.entry("hosts") else {
            self.error(
                Error::parse("the play does not say on which `hosts`")
                    .at(&play.place)
                    .hint("add `hosts: all`, or the name of a group or host"),
            );
            return;
        };
        let is_empty = |node: &Node| match node.value() {
            Some(value) => value.is_null() || value.to_text().trim().is_empty(),
            None => node.as_sequence().is_none_or(<[Node]>::is_empty),
        };
        let wrong_entry = hosts.as_sequence().and_then(|entries| entries.iter().find(|entry| is_empty(entry)));
        if is_empty(hosts) {
            self.error(
                Error::parse("Hosts list cannot be empty. Please check your playbook")
                    .at(&key.place)
                    .hint("name a group or host, or `all`"),
            );
        } else if let Some(entry) = wrong_entry {
            self.error(Error::parse("`hosts` has an empty entry").at(&entry.place));
        }
    }

    fn prompts(&mut self, node: &Node) -> Vec<VarsPrompt> {
        let entries = node.as_sequence().unwrap_or(std::slice::from_ref(node));
        let mut prompts = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.is_null()) {
            for (key, _) in entry.as_mapping().unwrap_or_default() {
                if !PROMPT_KEYS.contains(&text_of(key)) {
                    self.error(
                        Error::parse(format!("unknown key `{}` in `vars_prompt`", text_of(key)))
                            .at(&key.place)
                            .suggest(text_of(key), PROMPT_KEYS.iter().copied()),
                    );
                }
            }
            let Some(name) = entry.get("name").and_then(Node::as_str) else {
                self.error(Error::parse("Invalid vars_prompt data structure, missing 'name' key").at(&entry.place));
                continue;
            };
            if !is_variable_name(name) {
                self.error(invalid_variable_name(entry.get("name").unwrap_or(entry), "vars_prompt"));
            }
            let flag = |key: &str, default: bool| {
                entry.get(key).and_then(Node::value).and_then(Value::to_ansible_bool).unwrap_or(default)
            };
            let value = |key: &str| entry.get(key).filter(|node| !node.is_null()).map(|node| self.value(node));
            let text = |key: &str| value(key).map(|value| value.to_text().into_owned());
            prompts.push(VarsPrompt {
                name: name.to_owned(),
                prompt: value("prompt"),
                default: value("default"),
                private: flag("private", true),
                confirm: flag("confirm", false),
                encrypt: text("encrypt"),
                salt: text("salt"),
                salt_size: value("salt_size").and_then(|value| value.to_text().trim().parse().ok()),
                unsafe_text: flag("unsafe", false),
                place: entry.place.clone(),
            });
        }
        prompts
    }
}

/// The key by which an entry without `hosts` is a task: a module or a keyword that only tasks have.
fn key_of_a_task(entry: &Node) -> Option<&Node> {
    if entry.get("hosts").is_some() {
        return None;
    }
    let is_of_task = |name: &str| {
        keywords::find(name, On::Play).is_none()
            && (keywords::find(name, On::Task).is_some()
                || keywords::find(name, On::Block).is_some()
                || modules::find(name).is_some())
    };
    entry.as_mapping()?.iter().map(|(key, _)| key).find(|key| is_of_task(text_of(key)))
}
