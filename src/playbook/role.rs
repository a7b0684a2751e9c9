//! Roles: where they are found, what is in them, and the roles they depend on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collections::split_full_name;
use super::keywords::{self, On, join_or};
use super::load::{Around, Loader, absolute, shown};
use super::settings::Level;
use super::task::text_of;
use super::{Block, Item, Role, Settings, Written};
use crate::error::{Error, Result};
use crate::source::Place;
use crate::template::expand_home;
use crate::value::{Map, Value};
use crate::yaml::Node;

/// The endings of a role's files, in the order in which they are tried; `main` is tried without one last.
const ENDINGS: [&str; 3] = [".yml", ".yaml", ".json"];

/// The further arguments of include_role and import_role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncludeFrom {
    /// File of `tasks/` instead of `main`.
    pub tasks_from: Option<String>,
    pub vars_from: Option<String>,
    pub defaults_from: Option<String>,
    pub handlers_from: Option<String>,
    /// Check the role's argument_specs; default true.
    pub rolespec_validate: bool,
    /// Run it even if the host has run it; default true.
    pub allow_duplicates: bool,
    /// Its variables stay visible to later tasks; default: import_role yes, include_role no.
    pub public: Option<bool>,
}

impl Default for IncludeFrom {
    fn default() -> Self {
        IncludeFrom {
            tasks_from: None,
            vars_from: None,
            defaults_from: None,
            handlers_from: None,
            rolespec_validate: true,
            allow_duplicates: true,
            public: None,
        }
    }
}

impl IncludeFrom {
    /// From the rendered arguments of include_role or import_role.
    pub fn from_args(args: &Map) -> IncludeFrom {
        let text =
            |name: &str| args.get(name).filter(|value| !value.is_null()).map(|value| value.to_text().into_owned());
        let flag = |name: &str| args.get(name).and_then(Value::to_ansible_bool);
        IncludeFrom {
            tasks_from: text("tasks_from"),
            vars_from: text("vars_from"),
            defaults_from: text("defaults_from"),
            handlers_from: text("handlers_from"),
            rolespec_validate: flag("rolespec_validate").unwrap_or(true),
            allow_duplicates: flag("allow_duplicates").unwrap_or(true),
            public: flag("public"),
        }
    }
}

/// One use of a role.
pub(super) struct RoleRequest {
    pub name: String,
    pub place: Place,
    /// Keywords where it is used; their `vars` belong to the role.
    pub own: Settings,
    pub params: Map,
    pub from: IncludeFrom,
    /// By include_role or import_role.
    pub is_include: bool,
    pub is_static: bool,
}

/// What a use of a role brings: items and handlers of its dependencies first, then its own.
pub(super) struct LoadedRole {
    pub role: Arc<Role>,
    pub items: Vec<Item>,
    pub handlers: Vec<Item>,
}

/// A role's directory.
struct Found {
    name: String,
    collection: Option<String>,
    path: PathBuf,
}

/// What meta/main.yml says.
#[derive(Default)]
struct Meta {
    allow_duplicates: bool,
    collections: Vec<String>,
    argument_specs: Option<Map>,
}

impl Loader<'_> {
    /// An entry of `roles:` or of a role's dependencies.
    pub fn role_entry(&mut self, node: &Node, around: &Around) -> Result<RoleRequest> {
        let mut own = Settings::default();
        let mut params = Map::new();
        let name = match node.as_mapping() {
            Some(entries) => {
                for (key, value) in entries {
                    match keywords::find(text_of(key), On::Role) {
                        _ if matches!(text_of(key), "role" | "name" | "src" | "version" | "scm") => {}
                        Some(keyword) => {
                            if self.keep(keywords::check_value(keyword.name, keyword.holds, value)).is_some() {
                                self.take_setting(&mut own, keyword.name, value);
                            }
                        }
                        None => {
                            params.insert(key.value().cloned().unwrap_or_default(), self.value(value));
                        }
                    }
                }
                node.get("role").or_else(|| node.get("name")).or_else(|| node.get("src"))
            }
            None => Some(node),
        };
        let name = name
            .filter(|name| name.value().is_some_and(|value| !value.is_null() && !value.to_text().is_empty()))
            .ok_or_else(|| {
                Error::parse("an entry of `roles` needs the name of a role")
                    .at(&node.place)
                    .hint("write `- name` or `- role: name`")
            })?;
        let written = self.written(name);
        let text = self.static_name(&written, &own, around)?;
        let text = match node.get("src") {
            Some(src) if src.place.line == name.place.line && src.place.column == name.place.column => {
                name_of_source(&text)
            }
            _ if text.contains(',') => {
                return Err(Error::parse(format!("Invalid old style role requirement: {text}"))
                    .at(&name.place)
                    .hint("name the role alone; requirements with a version belong to `requirements.yml`"));
            }
            _ => text,
        };
        Ok(RoleRequest {
            name: text,
            place: name.place.clone(),
            own,
            params,
            from: IncludeFrom::default(),
            is_include: false,
            is_static: !self.dynamic,
        })
    }

    /// Loads a role with its dependencies.
    pub fn role(&mut self, request: RoleRequest, around: &Around) -> Result<LoadedRole> {
        let RoleRequest { name, place, own, params, from, is_include, is_static } = request;
        let collections = own.collections.clone().or_else(|| around.settings.collections.clone());
        let found = self.find_role(&name, &place, around, collections.as_deref().map_or(&[], Vec::as_slice))?;
        let path = &found.path;
        // what is wrong in one file hides nothing that is wrong in another
        let defaults = self.role_variables(&found, "defaults", from.defaults_from.as_deref(), &place);
        let defaults = self.keep(defaults).unwrap_or_default();
        let vars = self.role_variables(&found, "vars", from.vars_from.as_deref(), &place);
        let vars = self.keep(vars).unwrap_or_default();
        let meta = self.meta(&found, &place);
        let (meta, dependency_nodes) = self.keep(meta).unwrap_or_default();
        let specs = self.argument_specs(&found, &place, meta.argument_specs);
        let specs = self.keep(specs).flatten();
        let mut parents: Vec<Arc<Role>> = around.role.iter().cloned().collect();
        parents.extend(around.role.iter().flat_map(|role| role.parents.iter().cloned()));
        let identity = identity(path, &own, &params, &from, is_include);
        let use_vars = own.task_vars.clone().unwrap_or_default();
        let bare = Role {
            name: found.name.clone(),
            collection: found.collection.clone(),
            path: path.clone(),
            place: place.clone(),
            defaults: Arc::new(defaults),
            vars: Arc::new(vars),
            use_vars,
            params: Arc::new(params),
            parents,
            dependencies: Vec::new(),
            is_included: is_include,
            allow_duplicates: if is_include { from.allow_duplicates } else { meta.allow_duplicates },
            public: from.public.unwrap_or(self.options.private_role_vars.map_or(is_static, |private| !private)),
            identity,
            argument_specs: specs.map(Arc::new),
        };
        let mut settings = own.below(&around.settings, Level::Apart);
        // within a role its own collection counts, not those of the play
        let collections: Vec<String> = found.collection.iter().cloned().chain(meta.collections).collect();
        settings.collections = Some(collections).filter(|names| !names.is_empty()).map(Arc::new);
        let settings = Arc::new(settings);
        let as_parent = Arc::new(bare);
        let mut items = Vec::new();
        let mut handlers = Vec::new();
        let mut dependencies = Vec::new();
        if let Some(meta_document) = dependency_nodes {
            let inner =
                Around { settings: Arc::clone(&settings), role: Some(Arc::clone(&as_parent)), ..around.clone() };
            let nodes = meta_document.root.as_ref().and_then(|root| root.get("dependencies"));
            for node in nodes.and_then(Node::as_sequence).unwrap_or_default() {
                let result = self.within(path, &node.place, "a role dependency", |loader| {
                    let request = loader.role_entry(node, &inner)?;
                    loader.role(request, &inner)
                });
                let Some(loaded) = self.keep(result) else { continue };
                dependencies.push(loaded.role);
                items.extend(loaded.items);
                handlers.extend(loaded.handlers);
            }
        }
        let role = Arc::new(Role {
            dependencies,
            parents: as_parent.parents.clone(),
            name: as_parent.name.clone(),
            collection: as_parent.collection.clone(),
            path: as_parent.path.clone(),
            place,
            defaults: Arc::clone(&as_parent.defaults),
            vars: Arc::clone(&as_parent.vars),
            use_vars: Arc::clone(&as_parent.use_vars),
            params: Arc::clone(&as_parent.params),
            identity: as_parent.identity.clone(),
            argument_specs: as_parent.argument_specs.clone(),
            ..*as_parent
        });
        let body = self.role_body(&role, &settings, &from);
        items.extend(self.keep(body).map(|body| Item::Block(Arc::new(body))));
        let file = self.role_file(&role, "handlers", from.handlers_from.as_deref());
        if let Some(file) = self.keep(file).flatten() {
            let around = inside(&role, &settings, true);
            let place = role.place.clone();
            let loaded = self.items_of_file(&file, &place, &around);
            handlers.extend(self.keep(loaded).unwrap_or_default());
        }
        Ok(LoadedRole { role, items, handlers })
    }

    /// The role's own tasks, as a block.
    fn role_body(&mut self, role: &Arc<Role>, settings: &Arc<Settings>, from: &IncludeFrom) -> Result<Block> {
        let around = inside(role, settings, false);
        let mut items = Vec::new();
        if from.rolespec_validate {
            items.extend(self.validation(role, from.tasks_from.as_deref().unwrap_or("main"), &around));
        }
        if let Some(file) = self.role_file(role, "tasks", from.tasks_from.as_deref())? {
            items.extend(self.items_of_file(&file, &role.place, &around)?);
        }
        Ok(Block {
            place: role.place.clone(),
            name: None,
            items: Arc::new(items),
            rescue: Arc::default(),
            always: Arc::default(),
            role: Some(Arc::clone(role)),
        })
    }

    /// The role's file of tasks or handlers; `None` if it has none.
    fn role_file(&self, role: &Role, kind: &str, from: Option<&str>) -> Result<Option<PathBuf>> {
        let found = Found { name: role.name.clone(), collection: None, path: role.path.clone() };
        let candidates = self.role_files(&found, kind, from, &role.place)?;
        Ok(candidates.into_iter().find(|path| path.is_file()))
    }

    /// The paths that a file of a role may have. Fails if one was asked for and none of them exists.
    fn role_files(&self, role: &Found, kind: &str, from: Option<&str>, asked: &Place) -> Result<Vec<PathBuf>> {
        let directory = role.path.join(kind);
        let Some(from) = from else {
            let endings = ENDINGS.iter().copied().chain([""]);
            return Ok(endings.map(|ending| directory.join(format!("main{ending}"))).collect());
        };
        let endings = [""].into_iter().chain(ENDINGS);
        let candidates: Vec<PathBuf> =
            endings.map(|ending| absolute(&directory.join(format!("{from}{ending}")))).collect();
        if let Some(outside) = candidates.iter().find(|path| path.exists() && !path.starts_with(&directory)) {
            return Err(Error::input(format!(
                "`{}` cannot be used for the role `{}`, as it is not inside the expected role path `{}`",
                shown(outside).display(),
                role.name,
                shown(&directory).display()
            ))
            .at(asked));
        }
        if candidates.iter().any(|path| path.exists()) {
            return Ok(candidates);
        }
        let names = super::include::file_names(&directory);
        let stems = names.iter().map(|name| ENDINGS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name));
        Err(Error::input(format!("the role `{}` has no file `{kind}/{from}`", role.name))
            .at(asked)
            .suggest(from, stems))
    }

    /// The variables of `defaults/` or `vars/`: of a file, or of all files in a directory `main/`.
    fn role_variables(&mut self, role: &Found, kind: &str, from: Option<&str>, asked: &Place) -> Result<Map> {
        let candidates = self.role_files(role, kind, from, asked)?;
        let Some(path) = candidates.into_iter().find(|path| path.exists()) else { return Ok(Map::new()) };
        let mut variables = Map::new();
        for file in variable_files(&path) {
            let document = self.document(&file, Some(asked))?;
            let Some(root) = &document.root else { continue };
            if root.as_mapping().is_none() {
                return Err(Error::parse(format!(
                    "`{}` must hold a mapping of variables, not {}",
                    shown(&file).display(),
                    keywords::described(root)
                ))
                .at(&root.place));
            }
            variables.extend(self.map(root));
        }
        Ok(variables)
    }

    /// meta/main.yml, and its document if it names dependencies.
    fn meta(&mut self, role: &Found, asked: &Place) -> Result<(Meta, Option<Arc<super::load::Document>>)> {
        let candidates = self.role_files(role, "meta", None, asked)?;
        let Some(path) = candidates.into_iter().find(|path| path.is_file()) else { return Ok((Meta::default(), None)) };
        let document = self.document(&path, Some(asked))?;
        let Some(root) = &document.root else { return Ok((Meta::default(), None)) };
        if root.as_mapping().is_none() {
            return Err(Error::parse(format!(
                "the meta file of the role `{}` must hold a mapping, not {}",
                role.name,
                keywords::described(root)
            ))
            .at(&root.place));
        }
        let mut meta = Meta::default();
        if let Some(node) = root.get("allow_duplicates") {
            keywords::check_value("allow_duplicates", keywords::Holds::Bool, node)?;
            meta.allow_duplicates = node.value().and_then(Value::to_ansible_bool).unwrap_or(false);
        }
        meta.argument_specs = root.get("argument_specs").map(|node| self.map(node)).filter(|specs| !specs.is_empty());
        if let Some(node) = root.get("collections") {
            keywords::check_value("collections", keywords::Holds::List, node)?;
            meta.collections = self.written_list(node).iter().map(|name| name.value.to_text().into_owned()).collect();
        }
        let dependencies = root.get("dependencies").filter(|node| !node.is_null());
        if let Some(node) = dependencies {
            keywords::check_value("dependencies", keywords::Holds::List, node)?;
        }
        let has_dependencies = dependencies.is_some();
        Ok((meta, has_dependencies.then_some(document)))
    }

    /// meta/argument_specs.yml, else what meta/main.yml has.
    fn argument_specs(&self, role: &Found, asked: &Place, in_meta: Option<Map>) -> Result<Option<Map>> {
        let file = ENDINGS.iter().map(|ending| role.path.join("meta").join(format!("argument_specs{ending}")));
        let Some(file) = file.into_iter().find(|path| path.is_file()) else { return Ok(in_meta) };
        let document = self.document(&file, Some(asked))?;
        let specs = document.root.as_ref().and_then(|root| root.get("argument_specs"));
        Ok(specs.map(|node| self.map(node)).filter(|specs| !specs.is_empty()))
    }

    /// The directory of a role; a short name is looked for in `collections` first.
    fn find_role(&self, name: &str, asked: &Place, around: &Around, collections: &[String]) -> Result<Found> {
        let role_of = |collection: Option<String>, name: &str, path: PathBuf| Found {
            name: name.to_owned(),
            collection,
            path: absolute(&path),
        };
        if let Some((collection, short)) = split_full_name(name)
            && let Some(path) = self.in_collection(&collection, &Path::new("roles").join(&short))
        {
            return Ok(role_of(Some(collection), &short, path));
        }
        for collection in collections {
            if let Some(path) = self.in_collection(collection, &Path::new("roles").join(name)) {
                return Ok(role_of(Some(collection.clone()), name, path));
            }
        }
        let mut searched = vec![self.playbook_directory.join("roles")];
        searched.extend(self.options.roles_path.iter().cloned());
        searched.extend(around.role.iter().filter_map(|role| role.path.parent().map(Path::to_owned)));
        searched.push(self.playbook_directory.clone());
        if let Some(path) = searched.iter().map(|directory| directory.join(name)).find(|path| path.is_dir()) {
            let is_path = Path::new(name).is_absolute();
            let last = Path::new(name).file_name().map(|last| last.to_string_lossy().into_owned());
            return Ok(role_of(None, last.as_deref().filter(|_| is_path).unwrap_or(name), path));
        }
        let path = expand_home(name);
        if path.is_dir() {
            let last = path.file_name().map(|last| last.to_string_lossy().into_owned());
            return Ok(role_of(None, last.as_deref().unwrap_or(name), path));
        }
        let mut list: Vec<String> = Vec::new();
        for directory in &searched {
            let directory = format!("`{}`", shown(&absolute(directory)).display());
            if !list.contains(&directory) {
                list.push(directory);
            }
        }
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let mut roles = Vec::new();
        for directory in &searched[..searched.len() - 1] {
            roles
                .extend(super::include::file_names(directory).into_iter().filter(|name| directory.join(name).is_dir()));
        }
        let error = Error::input(format!("there is no role `{name}` in {}", join_or(&list))).at(asked);
        if let Some((collection, _)) = split_full_name(name) {
            return Err(self.about_collection(&collection, error, "roles"));
        }
        Err(error.suggest(name, roles.iter().map(String::as_str)))
    }
}

impl Role {
    /// The name with that of its collection, if it stands in one.
    pub fn full_name(&self) -> String {
        match &self.collection {
            Some(collection) => format!("{collection}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// What surrounds the tasks or handlers of a role. The directory is set when a file is entered.
fn inside(role: &Arc<Role>, settings: &Arc<Settings>, is_handler: bool) -> Around {
    Around {
        settings: Arc::clone(settings),
        role: Some(Arc::clone(role)),
        directory: role.path.join(if is_handler { "handlers" } else { "tasks" }),
        is_handler,
        in_block: false,
    }
}

/// A file itself; of a directory all files of variables below it, in the order of their names.
fn variable_files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut names = super::include::file_names(path);
    names.sort_unstable();
    names.retain(|name| !name.starts_with('.') && !name.ends_with('~'));
    let mut files = Vec::new();
    for name in names {
        let path = path.join(&name);
        if path.is_dir() {
            files.extend(variable_files(&path));
        } else if !name.contains('.') || ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    files
}

/// The name of a role of a requirement's source: `https://host/some/role.git,v1,name` is `name`, without it `role`.
fn name_of_source(source: &str) -> String {
    let parts: Vec<&str> = source.split(',').collect();
    if let [_, _, name] = parts.as_slice() {
        return (*name).trim().to_owned();
    }
    let last = parts[0].trim().rsplit('/').next().unwrap_or_default();
    let last = if parts[0].contains("://") || parts[0].contains('@') { last } else { parts[0].trim() };
    last.strip_suffix(".git").or_else(|| last.strip_suffix(".tar.gz")).unwrap_or(last).to_owned()
}

fn identity(path: &Path, own: &Settings, params: &Map, from: &IncludeFrom, is_include: bool) -> String {
    let texts = |list: &[Written]| list.iter().map(|written| written.value.to_repr()).collect::<Vec<_>>().join(" ");
    let vars = own.task_vars.as_deref().cloned().unwrap_or_default();
    let files = [&from.tasks_from, &from.vars_from, &from.defaults_from, &from.handlers_from];
    format!(
        "{} {files:?} {is_include} {:?} {:?} [{}] [{}]",
        path.display(),
        Value::map(params.clone()),
        Value::map(vars),
        texts(&own.when),
        texts(&own.tags)
    )
}
