//! `state: directory`: a directory is there, with those above it, and with `recurse` all below it as wanted.

use crate::host::reads::{FileAttributes, FileKind};
use crate::host::{Change, Failure, Footprint, Host, Inverse};
use crate::modules::file_common::destination::{NewDirectory, look_above, new_directories, with_directories};
use crate::modules::file_common::permissions::{StateDifference, describe};
use crate::modules::{Args, Outcome};

use super::recurse::{Listing, steps};
use super::{Task, finish};

/// Lists what is below in the first batch, if the task may alter it.
pub async fn look_below(host: &Host, args: &Args, path: &str) -> Result<(), Failure> {
    if args.bool("recurse") {
        host.read(Listing { path: path.to_owned(), follow: args.bool("follow") }).await?;
    }
    Ok(())
}

pub async fn ensure(task: &Task) -> Result<Outcome, Failure> {
    let (path, before) = task.subject().await?;
    let mut difference = StateDifference::new(&path);
    let Some(before) = before else {
        let known = path == task.path && task.args.str("state") == Some("directory");
        let (above, mut missing) = if known {
            (task.above.clone(), task.missing.clone())
        } else {
            look_above(&task.host, &path, true).await?
        };
        missing.push(path.clone());
        let made = new_directories(&missing, above.as_ref(), &task.me, &task.permissions);
        let (change, after) = plan_new(&path, &made);
        difference.set("state", "absent", "directory");
        let outcome = finish(&task.host, Some(change), difference).await?;
        return Ok(describe(outcome.with("path", path), after));
    };
    if before.kind != FileKind::Directory {
        let message = format!("{path} already exists as a {}", before.kind.state());
        return Err(Failure::new(message).with("path", path));
    }
    let (mut change, after) = task.attribute_change(&path, &before, &mut difference);
    if task.args.bool("recurse") {
        let listing = Listing { path: path.clone(), follow: task.follow };
        let entries = task.host.read(listing).await?;
        let below: Vec<_> = entries.into_iter().filter(|entry| entry.path != path).collect();
        let (forth, back) = steps(&below, &task.permissions, &task.me);
        if !forth.is_empty() {
            let links = task.follow && below.iter().any(|entry| entry.attributes.kind == FileKind::Link);
            let mut whole = change.take().unwrap_or_else(|| {
                Change::certain(format!("attributes of all in {path}"), Footprint::nothing())
                    .inverse(Inverse::Steps(Vec::new()))
            });
            whole.footprint = if links { Footprint::Everything } else { Footprint::tree(path.as_str()) };
            whole.steps.extend(forth);
            if let Inverse::Steps(steps) = &mut whole.inverse {
                steps.splice(0..0, back);
            }
            change = Some(whole);
        }
    }
    let outcome = finish(&task.host, change, difference).await?;
    Ok(describe(outcome.with("path", path), Some(&after)))
}

fn plan_new<'a>(path: &str, made: &'a [NewDirectory]) -> (Change, Option<&'a FileAttributes>) {
    let change = Change::certain(format!("directory {path}"), Footprint::nothing()).inverse(Inverse::Steps(Vec::new()));
    (with_directories(change, made), made.last().map(|last| &last.after))
}
