//! A file that is edited in place: what is there, and the change to its content and attributes.

use futures_util::future::try_join_all;
use futures_util::{join, try_join};

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, FileAttributes, FileContent, FileKind};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::modules::Args;

use super::account::{Myself, WhoAmI};
use super::content::{KEPT_BYTES, Write, leaves_file, written};
use super::path::{RealPath, absolute, ancestors};
use super::permissions::{Permissions, commands, newborn, step};

/// What is at a path, and who asks.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The absolute path as the task names it.
    pub named: String,
    /// The same with a symbolic link at its end followed.
    pub real: String,
    pub is_link: bool,
    /// Of what `real` is; `None` if nothing is there.
    pub attributes: Option<FileAttributes>,
    /// Of a regular file.
    pub content: Option<Vec<u8>>,
    /// The directories above that are to be made, the highest first, and the attributes of the one they go in.
    pub missing_directories: Vec<String>,
    pub above: Option<FileAttributes>,
    pub me: Myself,
    pub permissions: Permissions,
}

/// Looks at the file to edit, all at once; with `create` also at the directories above it.
pub async fn look(host: &Host, args: &Args, path: &str, create: bool) -> Result<Destination, Failure> {
    let named = absolute(host, path).await?;
    let here = |follow| Attributes { path: named.clone(), follow };
    let (link, attributes, content, above, me, permissions) = join!(
        host.read(here(false)),
        host.read(here(true)),
        host.read(FileContent(named.clone())),
        look_above(host, &named, create),
        host.read(WhoAmI),
        Permissions::read(args, host),
    );
    let (link, attributes, above, me, permissions) = (link?, attributes?, above?, me?, permissions?);
    if attributes.as_ref().is_some_and(|there| there.kind == FileKind::Directory) {
        return Err(Failure::new(format!("Path {named} is a directory !")).with("rc", 256));
    }
    let content = content?;
    let is_link = link.is_some_and(|there| there.kind == FileKind::Link);
    let real = if is_link { host.read(RealPath(named.clone())).await? } else { named.clone() };
    let (above, missing_directories) = above;
    Ok(Destination { named, real, is_link, attributes, content, missing_directories, above, me, permissions })
}

/// The nearest directory above that exists, and those below it that do not.
pub async fn look_above(
    host: &Host,
    path: &str,
    wanted: bool,
) -> Result<(Option<FileAttributes>, Vec<String>), Failure> {
    if !wanted {
        return Ok((None, Vec::new()));
    }
    let directories = ancestors(path);
    let found = try_join_all(
        directories.iter().map(|directory| host.read(Attributes { path: (*directory).to_owned(), follow: true })),
    )
    .await?;
    let missing = found.iter().position(Option::is_none).unwrap_or(found.len());
    let above = missing.checked_sub(1).and_then(|last| found[last].clone());
    if let Some(other) = above.as_ref().filter(|above| above.kind != FileKind::Directory) {
        let what = directories[missing - 1];
        return Err(Failure::new(format!("{what} is a {}, not a directory", other.kind.state())));
    }
    Ok((above, directories[missing..].iter().map(|directory| (*directory).to_owned()).collect()))
}

/// A directory that is to be made, and what it will have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDirectory {
    pub path: String,
    born: FileAttributes,
    pub after: FileAttributes,
}

/// The directories to make in the existing directory `above`, the highest first.
pub fn new_directories(
    missing: &[String],
    above: Option<&FileAttributes>,
    me: &Myself,
    permissions: &Permissions,
) -> Vec<NewDirectory> {
    let mut above = above.cloned();
    let mut made = Vec::new();
    for path in missing {
        let born = newborn(FileKind::Directory, me, above.as_ref());
        let after = permissions.on(&born, me.umask);
        above = Some(after.clone());
        made.push(NewDirectory { path: path.clone(), born, after });
    }
    made
}

impl NewDirectory {
    pub fn step(&self) -> Step {
        let path = quote(&self.path);
        let mut script = format!("mkdir {path}");
        let commands = commands(&self.path, &self.born, &self.after);
        if !commands.is_empty() {
            script.push_str(" && ");
            script.push_str(&commands);
        }
        script.push_str(&format!(" && stat -c '%a %u %g' {path}"));
        let after = &self.after;
        Step::new(script).expect(format!("{:o} {} {}", after.mode, after.uid, after.gid)).writes(self.path.as_str())
    }
}

/// Adds the making of directories in front of a change, and their removal behind its inverse.
#[must_use]
pub fn with_directories(mut change: Change, directories: &[NewDirectory]) -> Change {
    let own = std::mem::take(&mut change.steps);
    change.steps = directories.iter().map(NewDirectory::step).chain(own).collect();
    for directory in directories {
        change.footprint = change.footprint.and(Footprint::path(directory.path.as_str()));
        change = leaves_file(change, &directory.path, &directory.after, None);
    }
    if let Inverse::Steps(steps) = &mut change.inverse {
        steps.extend(directories.iter().rev().map(remove_directory));
    }
    change.whole()
}

/// Removes a directory that was made, unless something was put into it since.
pub fn remove_directory(directory: &NewDirectory) -> Step {
    Step::new(format!("rmdir {}", quote(&directory.path))).writes(directory.path.as_str())
}

/// How an edited file is written.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    /// The name for the old file, if it is to be kept.
    pub backup: Option<String>,
    pub validate: Option<Vec<String>>,
    pub unsafe_writes: bool,
}

/// What an edit comes to.
#[derive(Debug, Clone)]
pub struct Edit {
    pub change: Option<Change>,
    /// What the file has now and will have.
    pub before: Option<FileAttributes>,
    pub after: Option<FileAttributes>,
    /// True if mode, owner or group are altered beside the content.
    pub attributes_differ: bool,
    pub backup: Option<String>,
}

/// Decides the change that gives the file this content (`None`: as it is) and the attributes asked for.
pub fn plan_edit(seen: &Destination, content: Option<Vec<u8>>, manner: &Manner) -> Edit {
    let Some(content) = content else {
        let Some(before) = &seen.attributes else {
            return Edit { change: None, before: None, after: None, attributes_differ: false, backup: None };
        };
        let after = seen.permissions.on(before, seen.me.umask);
        let change = attribute_change(&seen.real, before, &after).map(|change| {
            if !seen.is_link {
                return change;
            }
            let query = crate::host::Query::Attributes { path: seen.named.clone(), follow: true };
            change.touching(&seen.named).leaves(query, after.to_response())
        });
        return Edit {
            attributes_differ: change.is_some(),
            change,
            before: Some(before.clone()),
            after: Some(after),
            backup: None,
        };
    };
    let base = written(seen.attributes.as_ref(), &seen.me, &Permissions::default(), &content);
    let after = written(seen.attributes.as_ref(), &seen.me, &seen.permissions, &content);
    let backup = manner.backup.clone().filter(|_| seen.attributes.is_some());
    let write = Write {
        path: seen.real.clone(),
        alias: seen.is_link.then(|| seen.named.clone()),
        before: seen.attributes.clone(),
        before_content: seen.content.clone().filter(|old| old.len() as u64 <= KEPT_BYTES),
        after: after.clone(),
        content,
        backup: backup.clone(),
        validate: manner.validate.clone(),
        unsafe_writes: manner.unsafe_writes,
    };
    let directories =
        new_directories(&seen.missing_directories, seen.above.as_ref(), &seen.me, &Permissions::default());
    let change = with_directories(write.change(&seen.me), &directories);
    Edit {
        change: Some(change),
        before: Some(base.clone()),
        attributes_differ: base != after,
        after: Some(after),
        backup,
    }
}

/// The change of a path's mode, owner or group alone; `None` if nothing differs.
pub fn attribute_change(path: &str, before: &FileAttributes, after: &FileAttributes) -> Option<Change> {
    let forth = step(path, before, after)?;
    let back = step(path, after, before).into_iter().collect();
    let change = Change::certain(format!("attributes of {path}"), Footprint::path(path))
        .step(forth)
        .inverse(Inverse::Steps(back));
    Some(leaves_file(change, path, after, None))
}

impl Change {
    /// Leaves it to the last step to notice that a path was reached through a symbolic link: a batch stops there,
    /// and a change must not stop between its steps.
    #[must_use]
    pub fn whole(mut self) -> Change {
        let last = self.steps.iter().rev().find_map(|step| step.writes.clone());
        for step in &mut self.steps {
            step.writes = None;
        }
        if let Some(step) = self.steps.last_mut() {
            step.writes = last;
        }
        self
    }

    /// Adds a path to the footprint.
    #[must_use]
    pub fn touching(mut self, path: &str) -> Change {
        self.footprint = self.footprint.and(Footprint::path(path));
        self
    }
}

/// The identity and the wanted permissions, for modules that look at files in their own way.
pub async fn look_self(host: &Host, args: &Args) -> Result<(Myself, Permissions), Failure> {
    try_join!(host.read(WhoAmI), Permissions::read(args, host))
}
