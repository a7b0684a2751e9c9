//! A file from elsewhere is put on the host: what `copy`, `template` and `assemble` have in common.

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::host::reads::{Attributes, Checksum, FileAttributes, FileContent, FileKind};
use crate::host::{Change, Failure, Host, Query};
use crate::modules::{Args, Outcome};

use super::account::Myself;
use super::content::{Content, KEPT_BYTES, Write, backup_name, difference, md5, parse_validate, written};
use super::destination::{
    Manner, NewDirectory, attribute_change, look_above, look_self, new_directories, with_directories,
};
use super::mode::Mode;
use super::path::{RealPath, absolute, clean, join, parent};
use super::permissions::{Permissions, StateDifference, describe, newborn};

/// A file that is to be on the host.
#[derive(Debug, Clone)]
pub struct Source {
    pub content: Content,
    /// The name it gets in a directory; content without a file has none.
    pub name: Option<String>,
    /// What `--diff` calls it, and what is returned as `src`.
    pub shown: String,
    /// Its own mode, for `mode: preserve`.
    pub mode: u32,
}

/// Where and how it is put.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The absolute path.
    pub dest: String,
    /// It ends in a slash: it is a directory, and is made if it does not exist.
    pub is_directory: bool,
    pub force: bool,
    pub follow: bool,
    pub backup: bool,
    pub validate: Option<Vec<String>>,
    pub unsafe_writes: bool,
    pub directory_mode: Option<Mode>,
}

impl Placement {
    pub async fn read(host: &Host, args: &Args) -> Result<Placement, Failure> {
        let validate = parse_validate(args.str("validate"))?;
        let directory_mode = args.get("directory_mode").map(Mode::parse).transpose()?;
        let dest = absolute(host, args.text("dest")).await?;
        Ok(Placement {
            dest,
            is_directory: args.text("dest").ends_with('/'),
            force: args.optional_bool("force").unwrap_or(true),
            follow: args.bool("follow"),
            backup: args.bool("backup"),
            validate,
            unsafe_writes: args.bool("unsafe_writes"),
            directory_mode,
        })
    }
}

/// What is at a path.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    /// Where a link leads, if the task follows links.
    pub real: String,
    /// What is there, the link itself if it is not followed.
    pub here: Option<FileAttributes>,
    pub there: Option<FileAttributes>,
    /// SHA-1 of the file's content.
    pub checksum: Option<String>,
    /// The content, once it is needed.
    pub content: Option<Vec<u8>>,
}

pub async fn see(host: &Host, path: &str, follow: bool) -> Result<Seen, Failure> {
    let attributes = |follow| Attributes { path: path.to_owned(), follow };
    let (here, there, checksum) = try_join!(
        host.read(attributes(false)),
        host.read(attributes(true)),
        host.read(Checksum { path: path.to_owned(), algorithm: "sha1" })
    )?;
    let is_link = here.as_ref().is_some_and(|here| here.kind == FileKind::Link);
    let mut seen = Seen { path: path.to_owned(), real: path.to_owned(), here, there, checksum, content: None };
    if is_link && follow {
        seen.real = host.read(RealPath(path.to_owned())).await?;
        seen.here.clone_from(&seen.there);
    }
    Ok(seen)
}

impl Seen {
    /// True if a regular file with this content is there.
    fn holds(&self, content: &Content) -> bool {
        self.here.as_ref().is_some_and(|here| here.kind == FileKind::File)
            && self.checksum.as_deref() == Some(content.sha1().as_str())
    }

    /// Reads the content that is about to be replaced, for the difference and for undo, unless it is large.
    pub async fn read_content(&mut self, host: &Host) -> Result<(), Failure> {
        let small = |here: &&FileAttributes| here.kind == FileKind::File && here.size <= KEPT_BYTES;
        if self.here.as_ref().filter(small).is_some() {
            self.content = host.read(FileContent(self.real.clone())).await?;
        }
        Ok(())
    }
}

/// What putting one file comes to.
#[derive(Debug, Clone)]
pub struct Planned {
    pub change: Option<Change>,
    pub after: Option<FileAttributes>,
    pub backup: Option<String>,
}

/// Decides the change that puts `source` at a path in `directory`; pure.
pub fn plan(
    seen: &Seen,
    directory: Option<&FileAttributes>,
    source: &Source,
    me: &Myself,
    permissions: &Permissions,
    manner: &Manner,
) -> Result<Planned, Failure> {
    if let Some(here) = seen.here.as_ref().filter(|here| !matches!(here.kind, FileKind::File | FileKind::Link)) {
        let message = format!("{} is a {} and cannot be replaced by a file", seen.path, here.kind.state());
        return Err(Failure::new(message).with("path", seen.path.as_str()));
    }
    let permissions = match permissions.mode {
        Some(Mode::Preserve) => &permissions.with_mode(Some(Mode::Absolute(source.mode))),
        _ => permissions,
    };
    let alias = (seen.real != seen.path).then(|| seen.path.clone());
    if let Some(before) = seen.here.as_ref().filter(|_| seen.holds(&source.content)) {
        let after = permissions.on(before, me.umask);
        let mut change = attribute_change(&seen.real, before, &after);
        if let Some(change) = &mut change {
            let mut shown = StateDifference::new(&seen.path);
            shown.attributes(before, &after);
            change.differences.push(shown.into_difference());
        }
        if let Some(alias) = alias {
            let query = Query::Attributes { path: alias.clone(), follow: true };
            change = change.map(|change| change.touching(&alias).leaves(query, after.to_response()));
        }
        return Ok(Planned { change, after: Some(after), backup: None });
    }
    let mut old = seen.here.clone();
    if let (Some(old), Content::File { .. }) = (&mut old, &source.content) {
        // a copy within the host brings its own mode, and belongs to who makes it
        *old = FileAttributes { mode: source.mode, kind: old.kind, ..newborn(FileKind::File, me, None) };
    }
    let after = written(old.as_ref(), directory, me, permissions, source.content.size());
    let backup = manner.backup.clone().filter(|_| seen.here.is_some());
    let write = Write {
        path: seen.real.clone(),
        alias,
        content: source.content.clone(),
        before: seen.here.clone(),
        before_content: seen.content.clone(),
        after: after.clone(),
        backup: backup.clone(),
        validate: manner.validate.clone(),
        unsafe_writes: manner.unsafe_writes,
    };
    let large = seen.here.as_ref().is_some_and(|here| here.kind == FileKind::File) && seen.content.is_none();
    let mut change = write.change(me);
    let header = if seen.here.is_some() { seen.path.as_str() } else { "" };
    change.differences.push(match source.content.bytes() {
        Some(new) => difference((header, &source.shown), seen.content.as_deref(), large, new),
        // Ansible shows nothing of a copy within the host
        None => {
            let mut shown = StateDifference::new(&seen.path);
            shown.set("checksum", seen.checksum.clone(), source.content.sha1());
            shown.into_difference()
        }
    });
    Ok(Planned { change: Some(change), after: Some(after), backup })
}

/// What is known of the place before anything is decided.
#[derive(Debug)]
pub struct Place {
    pub me: Myself,
    pub permissions: Permissions,
    pub seen: Seen,
    /// Directories to make first.
    pub directories: Vec<NewDirectory>,
    /// The directory that the file is or will be in.
    pub directory: Option<FileAttributes>,
}

/// Finds the path that the file goes to, with everything that is there: one batch.
pub async fn locate(host: &Host, args: &Args, placement: &Placement, name: Option<&str>) -> Result<Place, Failure> {
    let dest = placement.dest.as_str();
    let inside = name.map(|name| clean(&join(dest, name)));
    let see_inside = async {
        match &inside {
            Some(inside) => see(host, inside, placement.follow).await.map(Some),
            None => Ok(None),
        }
    };
    let top = inside.as_deref().filter(|_| placement.is_directory).unwrap_or(dest);
    let ((me, permissions), outside, seen_inside, (above, missing)) =
        try_join!(look_self(host, args), see(host, dest, placement.follow), see_inside, look_above(host, top, true))?;
    let is_directory = |seen: &Seen| seen.there.as_ref().is_some_and(|there| there.kind == FileKind::Directory);
    if placement.is_directory || is_directory(&outside) {
        let Some(seen) = seen_inside else {
            return Err(Failure::new("can not use content with a dir as dest").with("dest", dest));
        };
        let wanted = permissions.with_mode(placement.directory_mode.clone());
        let missing = if placement.is_directory { missing } else { Vec::new() };
        let directories = new_directories(&missing, above.as_ref(), &me, &wanted);
        let directory = directories.last().map(|last| last.after.clone()).or(outside.there);
        return Ok(Place { me, permissions, seen, directories, directory });
    }
    if let Some(directory) = missing.last() {
        let message = format!("Destination directory {} does not exist", parent(dest));
        return Err(Failure::new(message).with("dest", dest).with("missing", directory.as_str()));
    }
    Ok(Place { me, permissions, seen: outside, directories: Vec::new(), directory: above })
}

/// Puts one file on the host.
pub async fn install(host: &Host, args: &Args, placement: &Placement, source: Source) -> Result<Outcome, Failure> {
    let place = locate(host, args, placement, source.name.as_deref()).await?;
    put(host, placement, place, source).await
}

/// Puts one file at a place that was found.
pub async fn put(host: &Host, placement: &Placement, mut place: Place, source: Source) -> Result<Outcome, Failure> {
    let answer = |outcome: Outcome, place: &Place, written: bool| {
        let dest = if placement.follow { &place.seen.real } else { &place.seen.path };
        let outcome = outcome.with("dest", dest.as_str());
        if written { outcome.with("src", source.shown.as_str()) } else { outcome.with("path", dest.as_str()) }
    };
    if !placement.force && place.seen.here.is_some() {
        let outcome = answer(Outcome::ok(), &place, true).with("msg", "file already exists");
        return Ok(describe(outcome, place.seen.here.as_ref()));
    }
    if !place.seen.holds(&source.content) {
        place.seen.read_content(host).await?;
    }
    let manner = Manner {
        backup: placement.backup.then(|| backup_name(&place.seen.path)),
        validate: placement.validate.clone(),
        unsafe_writes: placement.unsafe_writes,
    };
    let planned = plan(&place.seen, place.directory.as_ref(), &source, &place.me, &place.permissions, &manner)?;
    let mut outcome = Outcome::ok();
    // on the controller's side it is the same as `file` if the content is there already
    let within_host = matches!(source.content, Content::File { .. });
    let written = within_host || !place.seen.holds(&source.content);
    if let Some(change) = planned.change {
        let change = with_directories(change, &place.directories);
        outcome = Outcome::of_change(&change);
        host.change(change).await?;
        if let Some(bytes) = source.content.bytes().filter(|_| written) {
            outcome = outcome.with("md5sum", md5(bytes));
        }
    }
    outcome = answer(outcome, &place, written).with("checksum", source.content.sha1());
    if let Some(backup) = planned.backup {
        outcome = outcome.with("backup_file", backup);
    }
    Ok(describe(outcome, planned.after.as_ref()))
}

/// Looks at many paths at once.
pub async fn see_all(host: &Host, paths: &[String]) -> Result<Vec<Seen>, Failure> {
    try_join_all(paths.iter().map(|path| see(host, path, false))).await
}
