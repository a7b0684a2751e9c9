//! A directory of the controller with everything in it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use futures_util::future::try_join_all;

use crate::host::reads::{FileAttributes, FileKind};
use crate::host::{Change, Failure, Footprint, Host, Inverse};
use crate::modules::file_common::account::Myself;
use crate::modules::file_common::content::{backup_name, leaves_file, link_step};
use crate::modules::file_common::destination::{
    Manner, attribute_change, join_changes, look_above, look_self, new_directories, with_directories,
};
use crate::modules::file_common::install::{Placement, Seen, Source, plan, see_all};
use crate::modules::file_common::path::{clean, join, parent};
use crate::modules::file_common::permissions::{Permissions, StateDifference, newborn};
use crate::modules::{Args, Outcome};
use crate::vault::Keyring;

use super::read_source;

/// Something in the source directory.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File(PathBuf),
    /// A symbolic link that is copied as such.
    Link(String),
}

/// Copies a directory; without `contents_only` under its own name.
pub async fn copy(
    host: &Host,
    args: &Args,
    placement: &Placement,
    source: &Path,
    contents_only: bool,
    keyring: Option<&Keyring>,
) -> Result<Outcome, Failure> {
    let base = match source.file_name().filter(|_| !contents_only) {
        Some(name) => join(&placement.dest, &name.to_string_lossy()),
        None => placement.dest.clone(),
    };
    let entries = walk(source, args.optional_bool("local_follow").unwrap_or(true))?;
    let paths: Vec<String> = entries.iter().map(|(relative, _)| clean(&join(&base, relative))).collect();
    let inside = join(&base, "x");
    let ((me, permissions), (above, missing), mut seen) =
        futures_util::try_join!(look_self(host, args), look_above(host, &inside, true), see_all(host, &paths))?;
    let sources: Vec<Option<Source>> = entries
        .iter()
        .map(|(_, entry)| match entry {
            Entry::File(path) => read_source(path, keyring).map(Some),
            _ => Ok(None),
        })
        .collect::<Result<_, Failure>>()?;
    let differing = seen.iter_mut().zip(&sources).filter_map(|(seen, source)| {
        let sha1 = source.as_ref()?.content.sha1();
        (seen.checksum.as_deref() != Some(sha1.as_str())).then_some(seen)
    });
    try_join_all(differing.map(|seen| seen.read_content(host))).await?;
    let mut tree = Tree { placement, me, permissions, change: None, made: Vec::new() };
    tree.make_top(&missing, above.as_ref());
    for (((_, entry), source), seen) in entries.iter().zip(&sources).zip(&seen) {
        match (entry, source) {
            (Entry::Directory, _) => tree.directory(seen)?,
            (Entry::Link(target), _) => tree.link(seen, target)?,
            (Entry::File(_), Some(source)) => tree.file(seen, source)?,
            (Entry::File(_), None) => {}
        }
    }
    let outcome = match tree.change {
        None => Outcome::ok(),
        Some(change) => {
            let change = Change { what: format!("files in {base}"), ..change.whole() };
            let outcome = Outcome::of_change(&change);
            host.change(change).await?;
            outcome
        }
    };
    let slash = if placement.dest.ends_with('/') { "" } else { "/" };
    Ok(outcome.with("dest", format!("{}{slash}", placement.dest)).with("src", source.display().to_string()))
}

/// The one change that copies the tree, as it grows.
struct Tree<'a> {
    placement: &'a Placement,
    me: Myself,
    permissions: Permissions,
    change: Option<Change>,
    /// The directories that the change makes, and what they will have.
    made: Vec<(String, FileAttributes)>,
}

impl Tree<'_> {
    fn add(&mut self, change: Option<Change>) {
        self.change = join_changes(self.change.take(), change);
    }

    fn directory_permissions(&self) -> Permissions {
        self.permissions.with_mode(self.placement.directory_mode.clone())
    }

    fn make_top(&mut self, missing: &[String], above: Option<&FileAttributes>) {
        let made = new_directories(missing, above, &self.me, &self.directory_permissions());
        self.made.extend(made.iter().map(|directory| (directory.path.clone(), directory.after.clone())));
        if !made.is_empty() {
            let change = Change::certain("", Footprint::nothing()).inverse(Inverse::Steps(Vec::new()));
            self.add(Some(with_directories(change, &made)));
        }
    }

    fn directory(&mut self, seen: &Seen) -> Result<(), Failure> {
        match seen.there.as_ref() {
            Some(there) if there.kind == FileKind::Directory => {
                let after = self.directory_permissions().on(there, self.me.umask);
                let mut change = attribute_change(&seen.path, there, &after);
                if let Some(change) = &mut change {
                    let mut shown = StateDifference::new(&seen.path);
                    shown.attributes(there, &after);
                    change.differences.push(shown.into_difference());
                }
                self.add(change);
                Ok(())
            }
            Some(other) => Err(Failure::new(format!("{} already exists as a {}", seen.path, other.kind.state()))),
            None => {
                let above = self.made_above(&seen.path);
                self.make_top(std::slice::from_ref(&seen.path), above.as_ref());
                Ok(())
            }
        }
    }

    /// The directory of a path, if this change makes it.
    fn made_above(&self, path: &str) -> Option<FileAttributes> {
        self.made.iter().find(|(made, _)| made == parent(path)).map(|(_, after)| after.clone())
    }

    fn file(&mut self, seen: &Seen, source: &Source) -> Result<(), Failure> {
        if !self.placement.force && seen.here.is_some() {
            return Ok(());
        }
        let manner = Manner {
            backup: self.placement.backup.then(|| backup_name(&seen.path)),
            validate: self.placement.validate.clone(),
            unsafe_writes: self.placement.unsafe_writes,
        };
        let directory = self.made_above(&seen.path);
        let planned = plan(seen, directory.as_ref(), source, &self.me, &self.permissions, &manner)?;
        self.add(planned.change);
        Ok(())
    }

    fn link(&mut self, seen: &Seen, target: &str) -> Result<(), Failure> {
        let path = &seen.path;
        let inverse = match &seen.here {
            Some(here) if here.kind == FileKind::Link && here.target == target => return Ok(()),
            Some(here) if here.kind == FileKind::Link => Inverse::Steps(vec![link_step(path, &here.target)]),
            Some(here) if here.kind == FileKind::Directory => {
                return Err(Failure::new(format!("the directory {path} is not replaced by a link")));
            }
            Some(_) => Inverse::None(format!("the file that was at {path} was not kept")),
            None => {
                Inverse::Steps(vec![crate::host::Step::new(format!("rm -f {}", crate::connect::shell::quote(path)))])
            }
        };
        let born = FileAttributes {
            target: target.to_owned(),
            ..newborn(FileKind::Link, &self.me, self.made_above(path).as_ref())
        };
        let mut shown = StateDifference::new(path);
        shown.set("src", seen.here.as_ref().map(|here| here.target.clone()), target);
        let change = Change::certain("", Footprint::path(path.as_str()))
            .step(link_step(path, target))
            .inverse(inverse)
            .difference(shown.into_difference());
        self.add(Some(leaves_file(change, path, &born, None)));
        Ok(())
    }
}

/// Everything below a directory, each directory before what is in it, by name.
fn walk(top: &Path, follow: bool) -> Result<Vec<(String, Entry)>, Failure> {
    let mut found = Vec::new();
    let mut above = HashSet::from([identity(top)?]);
    walk_into(top, "", follow, &mut above, &mut found)?;
    Ok(found)
}

fn identity(path: &Path) -> Result<(u64, u64), Failure> {
    let meta = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    Ok((meta.dev(), meta.ino()))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {} on the controller: {error}", path.display()))
}

fn walk_into(
    directory: &Path,
    relative: &str,
    follow: bool,
    above: &mut HashSet<(u64, u64)>,
    found: &mut Vec<(String, Entry)>,
) -> Result<(), Failure> {
    let entries = fs::read_dir(directory).map_err(|error| unreadable(directory, &error))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|error| unreadable(directory, &error))?.path());
    }
    // files before directories, as Ansible goes through a tree
    paths.sort_by_cached_key(|path| (path.is_dir(), path.clone()));
    for path in paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return Err(Failure::new(format!("the name of {} is no UTF-8", path.display())));
        };
        let relative = if relative.is_empty() { name.to_owned() } else { format!("{relative}/{name}") };
        let is_link = path.is_symlink();
        // a link to a directory that this one is in would never end
        let circles = is_link && path.is_dir() && above.contains(&identity(&path)?);
        if is_link && (!follow || circles || !path.exists()) {
            let target = fs::read_link(&path).map_err(|error| unreadable(&path, &error))?;
            found.push((relative, Entry::Link(target.to_string_lossy().into_owned())));
        } else if path.is_dir() {
            found.push((relative.clone(), Entry::Directory));
            let identity = identity(&path)?;
            above.insert(identity);
            walk_into(&path, &relative, follow, above, found)?;
            above.remove(&identity);
        } else {
            found.push((relative, Entry::File(path)));
        }
    }
    Ok(())
}
