//! `--start-at-task`: plays without what stands before a task.

use std::sync::Arc;

use globset::Glob;

use super::{Block, Item, Play, Task, TaskAction};
use crate::error::{Error, Result};

/// The plays from the first task of this name on (`*` and `?` stand for anything), looked for in imports but not in
/// includes. Facts are gathered all the same.
pub fn start_at(plays: &[Arc<Play>], name: &str) -> Result<Vec<Arc<Play>>> {
    let pattern = Glob::new(name)
        .map_err(|error| Error::usage(format!("`--start-at-task {name}` is no pattern: {}", error.kind())))?
        .compile_matcher();
    let matches = |task: &Task| {
        let own = match (&task.name, &task.action) {
            (Some(written), _) => written.value.to_text().into_owned(),
            (None, TaskAction::Module(module)) => module.bare_name().to_owned(),
            (None, TaskAction::Unknown(name)) => name.clone(),
            (None, TaskAction::Template(_)) => return false,
        };
        let with_role = task.role.as_ref().map(|role| format!("{} : {own}", role.full_name()));
        own == name || pattern.is_match(&own) || with_role.is_some_and(|full| full == name || pattern.is_match(full))
    };
    for (index, play) in plays.iter().enumerate() {
        if let Some(first) = start_in(play, &matches) {
            let rest = plays[index + 1..].iter().cloned();
            return Ok(std::iter::once(Arc::new(first)).chain(rest).collect());
        }
    }
    let names = plays.iter().flat_map(|play| sections(play)).flat_map(|items| names(items)).collect::<Vec<_>>();
    Err(Error::usage(format!("there is no task `{name}` to start at"))
        .suggest(name, names.iter().map(String::as_str))
        .hint("tasks of include_tasks and include_role cannot be started at"))
}

fn sections(play: &Play) -> [&Arc<Vec<Item>>; 4] {
    [&play.pre_tasks, &play.role_tasks, &play.tasks, &play.post_tasks]
}

fn names(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .flat_map(|item| match item {
            Item::Task(task) => task.name.iter().map(|name| name.value.to_text().into_owned()).collect(),
            Item::Block(block) => names(&block.items),
            Item::FlushHandlers => Vec::new(),
        })
        .collect()
}

fn start_in(play: &Play, matches: &dyn Fn(&Task) -> bool) -> Option<Play> {
    let mut first = play.clone();
    let mut found = false;
    for section in [&mut first.pre_tasks, &mut first.role_tasks, &mut first.tasks, &mut first.post_tasks] {
        if found {
            break;
        }
        let rest = from(section, matches);
        found = rest.is_some();
        *section = Arc::new(rest.unwrap_or_default());
    }
    found.then_some(first)
}

/// The items from the first match on; `None` if there is none.
fn from(items: &[Item], matches: &dyn Fn(&Task) -> bool) -> Option<Vec<Item>> {
    items.iter().enumerate().find_map(|(index, item)| {
        let first = match item {
            Item::Task(task) => matches(task).then(|| item.clone())?,
            Item::Block(block) => Item::Block(Arc::new(Block {
                place: block.place.clone(),
                name: block.name.clone(),
                items: Arc::new(from(&block.items, matches)?),
                rescue: Arc::clone(&block.rescue),
                always: Arc::clone(&block.always),
                role: block.role.clone(),
            })),
            Item::FlushHandlers => return None,
        };
        Some(std::iter::once(first).chain(items[index + 1..].iter().cloned()).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::{LoadOptions, load_plays};
    use crate::source::Source;

    fn names_from(name: &str) -> Result<Vec<Vec<String>>> {
        let text = "\
- hosts: all
  pre_tasks:
    - {name: first, debug: }
  tasks:
    - block:
        - {name: second, debug: }
        - {name: third thing, debug: }
    - {name: fourth, debug: }
- hosts: all
  tasks:
    - {name: fifth, debug: }
";
        let plays = load_plays(&Source::new("/site/play.yml", text), &LoadOptions::default())?;
        let started = start_at(&plays, name)?;
        Ok(started.iter().map(|play| sections(play).iter().flat_map(|items| names(items)).collect()).collect())
    }

    #[test]
    fn what_stands_before_is_left_out() {
        for (name, expected) in [
            ("first", vec![vec!["first", "second", "third thing", "fourth"], vec!["fifth"]]),
            ("third thing", vec![vec!["third thing", "fourth"], vec!["fifth"]]),
            ("th*", vec![vec!["third thing", "fourth"], vec!["fifth"]]),
            ("fifth", vec![vec!["fifth"]]),
        ] {
            assert_eq!(names_from(name).expect("a task"), expected, "{name}");
        }
        let error = names_from("forth").expect_err("no such task");
        assert_eq!(error.message(), "there is no task `forth` to start at");
        assert_eq!(error.hints()[0], "did you mean `fourth`?");
    }
}
