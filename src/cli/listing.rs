//! `--list-hosts`, `--list-tasks` and `--list-tags`, as ansible-playbook prints them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::play::PlayArgs;
use super::scope::ExtraScope;
use super::session::{Fleet, hosts_of, patterns_of};
use crate::error::Result;
use crate::playbook::tags::{TagSelection, tags_of};
use crate::playbook::{Item, Play, Settings, Task, TaskAction, Written};
use crate::template::Context;
use crate::ui::Ui;

/// Prints a playbook's plays with what was asked for.
pub fn playbook(
    ui: &mut Ui,
    path: &str,
    plays: &[Arc<Play>],
    args: &PlayArgs,
    fleet: &Fleet,
    selection: &TagSelection,
) -> Result<()> {
    ui.line(&format!("\nplaybook: {path}"));
    if !(args.list_hosts || args.list_tasks || args.list_tags) {
        return Ok(());
    }
    for (index, play) in plays.iter().enumerate() {
        let context = ExtraScope { extra: Arc::clone(&fleet.extra), play: Arc::clone(&play.vars) }.context();
        let context = context.with_keyring(Arc::clone(&fleet.load.keyring));
        let patterns = patterns_of(play, fleet);
        let pattern = patterns.join(",");
        let name = play.name.as_ref().map_or_else(|| pattern.clone(), |name| text(name, &context));
        let tags = play_tags(&play.settings, &context);
        ui.line(&format!("\n  play #{} ({pattern}): {name}\tTAGS: [{}]", index + 1, join(&tags)));
        if args.list_hosts {
            let hosts = hosts_of(play, fleet)?;
            let quoted: Vec<String> = patterns.iter().map(|pattern| format!("'{pattern}'")).collect();
            ui.line(&format!("    pattern: [{}]\n    hosts ({}):", quoted.join(", "), hosts.len()));
            for host in hosts {
                ui.line(&format!("      {}", fleet.inventory.host(host).name));
            }
        }
        let mut tasks = Vec::new();
        for section in [&play.pre_tasks, &play.role_tasks, &play.tasks, &play.post_tasks] {
            collect(section, &mut tasks);
        }
        let mut all_tags = tags;
        if args.list_tasks {
            ui.line("    tasks:");
        }
        for task in tasks {
            let tags = play_tags(&task.settings, &context);
            if !selection.selects(&tags.iter().cloned().collect::<Vec<_>>()) {
                continue;
            }
            if args.list_tasks {
                ui.line(&format!("      {}\tTAGS: [{}]", task_name(&task, &context), join(&tags)));
            }
            all_tags.extend(tags);
        }
        if args.list_tags {
            ui.line(&format!("      TASK TAGS: [{}]", join(&all_tags)));
        }
    }
    Ok(())
}

/// The tasks in order, those within blocks too; those of `rescue` and `always` are not listed.
fn collect(items: &[Item], tasks: &mut Vec<Arc<Task>>) {
    for item in items {
        match item {
            Item::Task(task) => tasks.push(Arc::clone(task)),
            Item::Block(block) => collect(&block.items, tasks),
            Item::FlushHandlers => {}
        }
    }
}

fn play_tags(settings: &Settings, context: &Context) -> BTreeSet<String> {
    let render = |tag: &Written| context.value(&tag.value).unwrap_or_else(|_| tag.value.clone());
    settings.tags.iter().flat_map(|tag| tags_of(&render(tag))).collect()
}

fn task_name(task: &Task, context: &Context) -> String {
    let own = match (&task.name, &task.action) {
        (Some(name), _) => text(name, context),
        (None, TaskAction::Module(module)) => module.bare_name().to_owned(),
        (None, TaskAction::Unknown(name)) => name.clone(),
        (None, TaskAction::Template(written)) => text(written, context),
    };
    match &task.role {
        Some(role) => format!("{} : {own}", role.full_name()),
        None => own,
    }
}

/// Rendered, if that can be done without any host.
fn text(written: &Written, context: &Context) -> String {
    let value = context.value(&written.value).unwrap_or_else(|_| written.value.clone());
    value.to_text().into_owned()
}

fn join(tags: &BTreeSet<String>) -> String {
    tags.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}
