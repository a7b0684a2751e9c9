//! A host of the inventory as variables see it.

use std::sync::Arc;

use crate::inventory::{HostId, Inventory};
use crate::value::{Map, Value};
use crate::vars::{HostView, Level};

/// The view of a host: its layers of variables and its magic variables. A vars file that cannot be read was
/// refused before the run; should it have vanished since, its layer is missing.
pub fn host_view(inventory: &Inventory, id: HostId) -> HostView {
    let host = inventory.host(id);
    let layers = inventory.host_layers(id).unwrap_or_default();
    let layers = layers.into_iter().map(|(level, map)| (Level::from(level), map)).collect();
    let mut magic = Map::new();
    magic.insert("inventory_hostname".into(), host.name.as_ref().into());
    magic.insert("inventory_hostname_short".into(), host.short_name().into());
    let names = |names: Vec<Arc<str>>| Value::list(names.iter().map(|name| name.as_ref().into()).collect());
    magic.insert("group_names".into(), names(inventory.group_names(id)));
    magic.insert("groups".into(), inventory.members());
    if let Some(file) = &host.inventory_file {
        magic.insert("inventory_file".into(), file.to_string_lossy().into_owned().into());
        if let Some(directory) = file.parent() {
            magic.insert("inventory_dir".into(), directory.to_string_lossy().into_owned().into());
        }
    }
    HostView { name: Arc::clone(&host.name), layers, magic, implicit: host.implicit }
}
