//! The task that gathers facts at the start of a play, which nobody writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use indexmap::IndexMap;

use super::{NEXT_TASK, Play, Settings, Task, TaskAction, Written};
use crate::modules;
use crate::value::Map;

/// The task "Gathering Facts" of a play, with what the play says of it.
pub fn gather_facts_task(play: &Play) -> Arc<Task> {
    let written = |text: &str| Written { value: text.into(), place: play.place.clone() };
    let mut settings = Settings::clone(&play.settings);
    settings.tags.push(written("always"));
    let mut args = Map::new();
    for (name, value) in [
        ("gather_subset", &play.gather_subset),
        ("gather_timeout", &play.gather_timeout),
        ("fact_path", &play.fact_path),
    ] {
        if let Some(value) = value {
            args.insert(name.into(), value.value.clone());
        }
    }
    let action = match modules::find("setup") {
        Some(module) => TaskAction::Module(module),
        None => TaskAction::Unknown("setup".to_owned()),
    };
    let settings = Arc::new(settings);
    Arc::new(Task {
        id: NEXT_TASK.fetch_add(1, Ordering::Relaxed),
        place: play.place.clone(),
        name: Some(written("Gathering Facts")),
        action_place: play.place.clone(),
        action,
        args,
        arg_places: IndexMap::new(),
        args_template: None,
        looping: None,
        register: None,
        notify: Vec::new(),
        listen: Vec::new(),
        until: Vec::new(),
        retries: None,
        delay: None,
        changed_when: Vec::new(),
        failed_when: Vec::new(),
        asynchronous: None,
        poll: None,
        apply: None,
        around: Arc::clone(&settings),
        settings,
        role: None,
        is_handler: false,
        directory: play.directory.clone(),
    })
}
