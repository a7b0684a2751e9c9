//! `state: link` and `state: hard`.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Attributes, FileAttributes, FileKind, Script, Stat};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Query, Step};
use crate::modules::file_common::content::{leaves_file, link_step};
use crate::modules::file_common::destination::join_changes;
use crate::modules::file_common::path::{RealPath, absolute, clean, join, parent};
use crate::modules::file_common::permissions::{StateDifference, describe, newborn};
use crate::modules::{Args, Outcome};

use super::{Task, finish};

/// The source of a link.
pub struct Source {
    /// As the link will hold it.
    written: String,
    /// Where it leads from the link's directory.
    absolute: String,
    /// What is there.
    there: Option<FileAttributes>,
}

/// Looks at what a link is to point to, if the task has a source.
pub async fn look_at_source(host: &Host, args: &Args, path: &str) -> Result<Option<Source>, Failure> {
    let Some(src) = args.str("src") else { return Ok(None) };
    let written = if src.starts_with('~') || src.contains('$') { absolute(host, src).await? } else { src.to_owned() };
    let absolute = if written.starts_with('/') { clean(&written) } else { clean(&join(parent(path), &written)) };
    let there = host.read(Attributes { path: absolute.clone(), follow: true }).await?;
    Ok(Some(Source { written, absolute, there }))
}

fn failure(task: &Task, message: String) -> Failure {
    Failure::new(message).with("path", task.path.as_str())
}

pub async fn ensure_symbolic(task: &Task, source: Option<Source>) -> Result<Outcome, Failure> {
    let path = &task.path;
    // without a source only the attributes of an existing link are looked after
    let source = match (source, &task.here) {
        (Some(source), _) => Some(source),
        (None, Some(here)) if here.kind == FileKind::Link => None,
        (None, _) => return Err(failure(task, "src is required for creating new symlinks".to_owned())),
    };
    if let Some(source) = &source {
        if !task.force && source.there.is_none() {
            return Err(failure(
                task,
                format!(
                    "src file does not exist, use 'force=yes' if you really want to create the link: {}",
                    source.absolute
                ),
            )
            .with("src", source.written.as_str()));
        }
        refuse_conversion(task).await?;
    }
    let old_target = task.here.as_ref().filter(|here| here.kind == FileKind::Link).map(|here| here.target.clone());
    let target =
        source.as_ref().map_or_else(|| old_target.clone().unwrap_or_default(), |source| source.written.clone());
    let mut difference = StateDifference::new(path);
    difference.set("state", task.state(), "link");
    if let Some(old) = &old_target {
        difference.set("src", old.as_str(), target.as_str());
    }
    let mut outcome = Outcome::ok();
    let makes_link = old_target.as_ref() != Some(&target);
    let mut here = task.here.clone();
    let mut change = None;
    if makes_link {
        if let Some(directory) = task.missing.last() {
            return Err(failure(task, format!("Error while linking: the directory {directory} does not exist")));
        }
        let born = FileAttributes { target: target.clone(), ..newborn(FileKind::Link, &task.me, task.above.as_ref()) };
        change = Some(plan_symbolic(task, &born, source.as_ref()));
        here = Some(born);
    }
    // the attributes: of what the link leads to, or of the link itself
    let permissions = &task.permissions;
    let wants = permissions.mode.is_some() || permissions.owner.is_some() || permissions.group.is_some();
    let leads_to =
        if makes_link { source.as_ref().and_then(|source| source.there.clone()) } else { task.there.clone() };
    if task.follow && leads_to.is_none() {
        if wants {
            outcome = outcome.warning(
                "Cannot set fs attributes on a non-existent symlink target. follow should be set to False to avoid this.",
            );
        }
    } else if wants || task.stat.is_some() {
        let subject = match (task.follow, &source) {
            (false, _) => path.clone(),
            (true, Some(source)) => task.host.read(RealPath(source.absolute.clone())).await?,
            (true, None) => task.host.read(RealPath(path.clone())).await?,
        };
        let before = if task.follow { leads_to } else { here.clone() };
        if let Some(before) = before {
            let (attributes, after) = task.attribute_change(&subject, &before, &mut difference);
            if !task.follow {
                here = Some(after);
            }
            change = join_changes(change, attributes);
        }
    }
    let done = finish(&task.host, change, difference).await?;
    outcome.changed = done.changed;
    outcome.differences = done.differences;
    Ok(describe(outcome.with("dest", path.as_str()).with("src", target), here.as_ref()))
}

/// A file or a directory is not turned into a link, unless forced; one with something in it never.
async fn refuse_conversion(task: &Task) -> Result<(), Failure> {
    let path = &task.path;
    match task.here.as_ref().map(|here| here.kind) {
        None | Some(FileKind::Link) => Ok(()),
        Some(kind) if !task.force => {
            let state = kind.state();
            Err(failure(task, format!("refusing to convert from {state} to symlink for {path}")))
        }
        Some(FileKind::Directory) => {
            let read = Script { text: format!("ls -A {}", quote(path)), footprint: Footprint::tree(path.as_str()) };
            if task.host.read(read).await?.stdout.is_empty() {
                Ok(())
            } else {
                Err(failure(task, format!("the directory {path} is not empty, refusing to convert it")))
            }
        }
        Some(_) => Ok(()),
    }
}

fn plan_symbolic(task: &Task, born: &FileAttributes, source: Option<&Source>) -> Change {
    let path = &task.path;
    let inverse = match &task.here {
        None => Inverse::Steps(vec![Step::new(format!("rm -f {}", quote(path))).writes(path.as_str())]),
        Some(old) if old.kind == FileKind::Link => Inverse::Steps(vec![link_step(path, &old.target)]),
        Some(old) if old.kind == FileKind::Directory => Inverse::Steps(vec![Step::new(format!(
            "rm -f {0} && mkdir {0} && chown {1}:{2} {0} && chmod 0{3:04o} {0}",
            quote(path),
            old.uid,
            old.gid,
            old.mode
        ))]),
        Some(_) => Inverse::None(format!("the file that was at {path} was not kept")),
    };
    let change = Change::certain(format!("link {path}"), Footprint::path(path.as_str()))
        .step(link_step(path, &born.target))
        .inverse(inverse);
    let follow = Query::Attributes { path: path.clone(), follow: true };
    let there = source.and_then(|source| source.there.as_ref());
    leaves_file(change, path, born, None)
        .leaves(follow, there.map_or_else(Response::missing, FileAttributes::to_response))
}

pub async fn ensure_hard(task: &Task, source: Option<Source>) -> Result<Outcome, Failure> {
    let path = &task.path;
    let Some(source) = source else {
        let links = task.host.read(Stat { path: path.clone(), follow: false }).await?.map_or(0, |stat| stat.links);
        if links < 2 || task.here.as_ref().is_some_and(|here| here.kind != FileKind::File) {
            return Err(failure(task, "src is required for creating new hardlinks".to_owned()));
        }
        let mut outcome = super::attributes(task).await?;
        outcome.result.shift_remove("path");
        return Ok(outcome.with("dest", path.as_str()));
    };
    let stat = |path: &str| Stat { path: path.to_owned(), follow: true };
    let (ours, theirs) = futures_util::try_join!(task.host.read(stat(path)), task.host.read(stat(&source.absolute)))?;
    let refuse =
        |message: &str| Err(Failure::new(message).with("dest", path.as_str()).with("src", source.written.as_str()));
    let (Some(theirs), Some(there)) = (theirs, &source.there) else { return refuse("src does not exist") };
    if there.kind == FileKind::Directory {
        return refuse("src is a directory: hard links are of files");
    }
    let same = ours.as_ref().is_some_and(|ours| (ours.inode, ours.device) == (theirs.inode, theirs.device));
    let links = ours.as_ref().map_or(0, |ours| ours.links);
    let mut difference = StateDifference::new(path);
    let state = if links > 1 && task.state() == "file" { "hard" } else { task.state() };
    difference.set("state", state, "hard");
    if !same && !task.force {
        match task.state() {
            "absent" | "link" => {}
            "directory" => return refuse("Cannot link: different hard link exists at destination"),
            _ if links > 1 => return refuse("Cannot link, different hard link exists at destination"),
            _ => return refuse("Cannot link, file exists at destination"),
        }
    }
    let change = (!same || task.is_link()).then(|| plan_hard(task, &source, there));
    let (attributes, after) = task.attribute_change(path, there, &mut difference);
    let change = join_changes(change, attributes);
    let outcome = finish(&task.host, change, difference).await?;
    let outcome = describe(outcome.with("dest", path.as_str()).with("src", source.written.as_str()), Some(&after));
    Ok(outcome.with("state", "hard"))
}

fn plan_hard(task: &Task, source: &Source, there: &FileAttributes) -> Change {
    let path = quote(&task.path);
    let template = quote(&join(parent(&task.path), ".trimtab.XXXXXX"));
    let src = quote(&source.absolute);
    let script = format!(
        "f={path}\ns=$(readlink -f {src}) || exit\nif [ -d \"$f\" ] && [ ! -L \"$f\" ]; then rmdir \"$f\" || exit; fi\n\
         d=$(mktemp -d {template}) || exit\ntrap 'rm -rf \"$d\"' EXIT\nln \"$s\" \"$d/link\" || exit\n\
         if [ -d \"$f\" ]; then rm -f \"$f\" || exit; fi\nmv -f \"$d/link\" \"$f\""
    );
    let inverse = match &task.here {
        None => Inverse::Steps(vec![Step::new(format!("rm -f {path}")).writes(task.path.as_str())]),
        Some(old) if old.kind == FileKind::Link => Inverse::Steps(vec![link_step(&task.path, &old.target)]),
        Some(_) => Inverse::None(format!("what was at {} was not kept", task.path)),
    };
    let footprint = Footprint::path(task.path.as_str()).and(Footprint::path(source.absolute.as_str()));
    let change = Change::certain(format!("hard link {}", task.path), footprint)
        .step(Step::new(script).writes(task.path.as_str()))
        .inverse(inverse);
    leaves_file(change, &task.path, &FileAttributes { names: there.names + 1, ..there.clone() }, None)
}
