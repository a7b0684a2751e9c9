//! Lists of tasks and blocks.

use std::sync::Arc;

use super::keywords::{self, On};
use super::load::{Around, Loader};
use super::settings::Level;
use super::{Block, Item, Settings};
use crate::error::Error;
use crate::yaml::Node;

/// The keys that make an entry a block.
const SECTIONS: [&str; 3] = ["block", "rescue", "always"];

impl Loader<'_> {
    /// Loads a list of tasks and blocks; nothing for null. Imports within are resolved. In a list of handlers, blocks
    /// are taken apart.
    pub fn items(&mut self, node: &Node, around: &Around) -> Vec<Item> {
        if node.is_null() {
            return Vec::new();
        }
        let Some(entries) = node.as_sequence() else {
            self.error(
                Error::parse(format!("expected a list of tasks, not {}", keywords::described(node))).at(&node.place),
            );
            return Vec::new();
        };
        let mut items = Vec::new();
        for entry in entries {
            if entry.is_null() {
                self.options.warn(Error::parse("an empty entry in a list of tasks").at(&entry.place));
            } else if entry.as_mapping().is_none() {
                let mut error = Error::parse(format!("a task is a mapping, not {}", keywords::described(entry)));
                if let Some(text) = entry.as_str() {
                    error = error.hint(format!("write `- {text}:` if `{text}` is the module"));
                }
                self.error(error.at(&entry.place));
            } else if SECTIONS.iter().any(|section| entry.get(section).is_some()) {
                items.extend(self.block(entry, around));
            } else {
                items.extend(self.task(entry, around));
            }
        }
        items
    }

    fn block(&mut self, node: &Node, around: &Around) -> Vec<Item> {
        let mut own = Settings::default();
        let mut name = None;
        for (key, value) in node.as_mapping().unwrap_or_default() {
            let Some(keyword) = self.keyword(key, value, On::Block) else { continue };
            match keyword.name {
                "name" => name = Some(self.written(value)).filter(|_| !value.is_null()),
                other => {
                    self.take_setting(&mut own, other, value);
                }
            }
        }
        if node.get("block").is_none() {
            let (key, _) = SECTIONS.iter().find_map(|section| node.entry(section)).unwrap_or((node, node));
            let section = key.as_str().unwrap_or_default();
            self.error(
                Error::parse(format!("`{section}` cannot stand without `block`"))
                    .at(&key.place)
                    .hint("put the tasks that it belongs to into `block`"),
            );
        }
        if around.is_handler && around.in_block {
            self.error(
                Error::parse("Using a block as a handler is not supported.")
                    .at(&node.place)
                    .hint("blocks can group handlers, but not within other blocks"),
            );
        }
        let settings = Arc::new(own.below(&around.settings, Level::Block));
        let inner = Around { settings, in_block: true, ..around.clone() };
        let mut section = |name: &str| match node.get(name).filter(|tasks| tasks.as_sequence().is_some()) {
            Some(tasks) => self.items(tasks, &inner),
            None => Vec::new(),
        };
        let (items, rescue, always) = (section("block"), section("rescue"), section("always"));
        if around.is_handler {
            if !rescue.is_empty() || !always.is_empty() {
                self.options
                    .warn(Error::parse("`rescue` and `always` have no effect in a block of handlers").at(&node.place));
            }
            return items;
        }
        vec![Item::Block(Arc::new(Block {
            place: node.place.clone(),
            name,
            items: Arc::new(items),
            rescue: Arc::new(rescue),
            always: Arc::new(always),
            role: None,
        }))]
    }

    /// Reads the keywords of `apply`: those of a block.
    pub fn apply(&mut self, node: &Node) -> Option<Settings> {
        let Some(entries) = node.as_mapping() else {
            self.error(
                Error::parse(format!("`apply` takes a mapping of keywords, not {}", keywords::described(node)))
                    .at(&node.place),
            );
            return None;
        };
        let mut own = Settings::default();
        for (key, value) in entries {
            let Some(keyword) = self.keyword(key, value, On::Block) else { continue };
            if SECTIONS.contains(&keyword.name) {
                self.error(keywords::unknown(key, On::Task));
            } else {
                self.take_setting(&mut own, keyword.name, value);
            }
        }
        Some(own)
    }
}
