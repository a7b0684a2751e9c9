//! Names of imports that are templates: they are rendered while the playbook is loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::load::{Around, Loader, absolute};
use super::{Settings, Written};
use crate::error::{Error, Result};
use crate::template::{Context, Scope, SearchPath, Warnings};
use crate::value::{Interruption, Map, Value, object};
use crate::yaml::Node;

/// Variables in layers, the most important first.
struct Layers {
    maps: Vec<Arc<Map>>,
}

impl Scope for Layers {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        Ok(self.maps.iter().find_map(|map| map.get(name).cloned()))
    }

    fn names(&self) -> Vec<String> {
        self.maps.iter().flat_map(|map| map.keys()).filter_map(Value::as_str).map(str::to_owned).collect()
    }
}

impl Loader<'_> {
    /// The text of a name that must be known while loading. It may use extra variables, `vars` of the import and of
    /// what is around it, variables and defaults of its role, and variables of the play and its `vars_files`.
    pub fn static_name(&self, name: &Written, own: &Settings, around: &Around) -> Result<String> {
        if !name.value.has_templates() {
            return Ok(name.value.to_text().into_owned());
        }
        let context = self.static_context(own, around, self.play_file_variables(around));
        self.render_static(name, &context)
    }

    fn render_static(&self, name: &Written, context: &Context) -> Result<String> {
        match context.value(&name.value) {
            Ok(value) => Ok(value.to_text().into_owned()),
            Err(error) => Err(Error::input(format!("the name `{}` is not known: {}", name.value, error.message()))
                .at(&name.place)
                .hint(
                    "names of imports and roles can use extra variables and those of the play, its `vars_files`, \
                     the role and the import, but none of hosts; includes can use all",
                )),
        }
    }

    fn static_context(&self, own: &Settings, around: &Around, files: Vec<Arc<Map>>) -> Context {
        let mut magic = object([("playbook_dir", self.playbook_directory.to_string_lossy().into_owned().into())]);
        let mut maps = vec![Arc::clone(&self.options.extra_vars)];
        maps.extend(around.settings.include_params.iter().rev().cloned());
        let roles: Vec<_> = around.role.iter().chain(around.role.iter().flat_map(|role| &role.parents)).collect();
        maps.extend(roles.iter().map(|role| Arc::clone(&role.params)));
        maps.extend(own.task_vars.clone());
        maps.extend(around.settings.block_vars.iter().rev().cloned());
        maps.extend(roles.iter().flat_map(|role| [Arc::clone(&role.use_vars), Arc::clone(&role.vars)]));
        maps.extend(files);
        maps.extend(self.play_vars.iter().cloned());
        maps.extend(roles.iter().map(|role| Arc::clone(&role.defaults)));
        if let Some(role) = &around.role {
            magic.insert("role_name".into(), role.name.as_str().into());
            magic.insert("role_path".into(), role.path.to_string_lossy().into_owned().into());
        }
        maps.insert(0, Arc::new(magic));
        let search = SearchPath {
            role_dirs: roles.iter().map(|role| role.path.clone()).collect(),
            task_dir: Some(around.directory.clone()),
            playbook_dir: self.playbook_directory.clone(),
        };
        let keyring = Arc::clone(&self.options.keyring);
        Context::new(Arc::new(Layers { maps }), Arc::new(search), Warnings::default()).with_keyring(keyring)
    }

    /// The variables of the play's `vars_files`, the last first. Files that cannot be read, or whose names need hosts,
    /// are left out: whoever runs the play says what is wrong with them.
    fn play_file_variables(&self, around: &Around) -> Vec<Arc<Map>> {
        let mut maps = Vec::new();
        let context = self.static_context(&Settings::default(), around, Vec::new());
        for entry in &self.play_vars_files {
            let names = entry.value.as_list().map_or_else(|| vec![entry.value.clone()], <[Value]>::to_vec);
            let found = names.into_iter().find_map(|value| {
                let name = self.render_static(&Written { value, place: entry.place.clone() }, &context).ok()?;
                self.vars_file(&name)
            });
            let document = found.and_then(|path| self.document(&path, None).ok());
            if let Some(root) = document.as_ref().and_then(|document| document.root.as_ref()).filter(is_mapping) {
                maps.push(Arc::new(self.map(root)));
            }
        }
        maps.reverse();
        maps
    }

    /// A file of variables: in `vars/` beside the playbook, or beside it.
    fn vars_file(&self, name: &str) -> Option<PathBuf> {
        let path = crate::template::expand_home(name);
        let candidates = [self.playbook_directory.join("vars").join(&path), self.playbook_directory.join(&path)];
        candidates.iter().map(|path: &PathBuf| absolute(Path::new(path))).find(|path| path.is_file())
    }
}

fn is_mapping(node: &&Node) -> bool {
    node.as_mapping().is_some()
}
