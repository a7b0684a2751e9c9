//! The check of a role's arguments against its `argument_specs`, as a task of its own.

use std::sync::Arc;

use super::load::{Around, Loader};
use super::task::{Arguments, Draft, Fields};
use super::{Item, Role, Settings, TaskAction, Written};
use crate::modules;
use crate::value::{Value, object};
use crate::yaml::{Node, NodeKind};

/// The module that checks arguments.
const MODULE: &str = "ansible.builtin.validate_argument_spec";

impl Loader<'_> {
    /// The task that checks the arguments of an entry point; `None` if the role has no specs for it.
    pub fn validation(&self, role: &Arc<Role>, entry_point: &str, around: &Around) -> Option<Item> {
        let spec = role.argument_specs.as_ref()?.get(entry_point)?.as_map()?;
        if spec.is_empty() {
            return None;
        }
        let written = |value: Value| Written { value, place: role.place.clone() };
        let described = match spec.get("short_description").and_then(Value::as_str) {
            Some(short) => format!(" - {short}"),
            None => String::new(),
        };
        let name = format!("Validating arguments against arg spec '{entry_point}'{described}");
        let context = object([
            ("type", "role".into()),
            ("name", role.name.as_str().into()),
            ("argument_spec_name", entry_point.into()),
            ("path", role.path.to_string_lossy().as_ref().into()),
        ]);
        let map = object([
            ("argument_spec", spec.get("options").cloned().unwrap_or_else(Value::empty_map)),
            ("provided_arguments", Value::Map(Arc::clone(&role.params))),
            ("validate_args_context", context.into()),
        ]);
        let node = Node { place: role.place.clone(), tag: None, kind: NodeKind::Mapping(Vec::new()) };
        let draft = Draft {
            node: &node,
            own: Settings { tags: vec![written("always".into())], ..Settings::default() },
            fields: Fields { name: Some(written(name.into())), ..Fields::default() },
            action: TaskAction::Module(modules::find(MODULE)?),
            action_place: role.place.clone(),
            args: Arguments { map, ..Arguments::default() },
        };
        Some(Item::Task(Arc::new(draft.into_task(around, None))))
    }
}
