//! `remote_src: true` with a directory: a tree is copied within the host.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Attributes, FileAttributes, FileKind};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Query, Read, Step};
use crate::modules::file_common::account::Myself;
use crate::modules::file_common::content::{Content, leaves_file, link_step};
use crate::modules::file_common::destination::{
    Manner, NewDirectory, attribute_change, join_changes, look_above, look_self, new_directories, with_directories,
};
use crate::modules::file_common::install::{Placement, Seen, Source, plan, see_all};
use crate::modules::file_common::mode::Mode;
use crate::modules::file_common::path::{base_name, clean, join, parent};
use crate::modules::file_common::permissions::{Permissions, StateDifference, describe, newborn, step};
use crate::modules::{Args, Outcome};

/// Something in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    kind: FileKind,
    mode: u32,
    uid: u32,
    gid: u32,
    size: u64,
    sha1: Option<String>,
    target: Option<String>,
}

/// Asks for everything below a directory, with digests; empty if there is no directory.
#[derive(Debug, Clone)]
struct TreeListing {
    path: String,
    /// What symbolic links lead to counts in their place; those that lead nowhere stay links.
    follow: bool,
}

impl Read for TreeListing {
    type Answer = BTreeMap<String, Entry>;

    fn query(&self) -> Query {
        let find = if self.follow { "-L ." } else { "." };
        // no name contains a slash, so a slash and a newline end an entry
        let stats = if self.follow {
            "find -L . ! -name . ! -type l -exec stat -L -c '%f %u %g %s %n/' {} + && \
             find -L . -type l -exec stat -c '%f %u %g %s %n/' {} +"
        } else {
            "find . ! -name . -exec stat -c '%f %u %g %s %n/' {} +"
        };
        let text = format!(
            "cd {path} 2>/dev/null || exit 0; {stats} || exit; echo //; \
             find {find} -type f -exec sha1sum {{}} + || exit; echo //; \
             find {find} -type l -exec sh -c 'for l; do printf \"%s/%s/\\n\" \"$(readlink \"$l\" | tr / \"\\001\")\" \"$l\"; done' sh {{}} +",
            path = quote(&self.path)
        );
        // a link may lead anywhere
        let footprint = if self.follow { Footprint::Everything } else { Footprint::tree(self.path.as_str()) };
        Query::Script { text, footprint }
    }

    fn parse(&self, response: &Response) -> Result<BTreeMap<String, Entry>, Failure> {
        if !response.success() {
            return Err(Failure::new(format!("cannot list {}: {}", self.path, response.error_text().trim())));
        }
        let refuse = || Failure::new(format!("a name below {} is not one that can be copied", self.path));
        let text = std::str::from_utf8(&response.stdout).map_err(|_| refuse())?;
        if text.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut sections = text.split("//\n");
        let mut next = || sections.next().ok_or_else(refuse);
        let (stats, digests, links) = (next()?, next()?, next()?);
        let mut entries = BTreeMap::new();
        for line in stats.split_terminator("/\n") {
            let (path, entry) = parse_stat(line).ok_or_else(refuse)?;
            entries.insert(path, entry);
        }
        for line in digests.lines() {
            let (digest, path) = line.split_once("  ./").ok_or_else(refuse)?;
            entries.get_mut(path).ok_or_else(refuse)?.sha1 = Some(digest.to_owned());
        }
        for line in links.split_terminator("/\n") {
            let (target, path) = line.split_once("/./").ok_or_else(refuse)?;
            entries.get_mut(path).ok_or_else(refuse)?.target = Some(target.replace('\u{1}', "/"));
        }
        Ok(entries)
    }
}

fn parse_stat(line: &str) -> Option<(String, Entry)> {
    let mut fields = line.splitn(5, ' ');
    let raw = u32::from_str_radix(fields.next()?, 16).ok()?;
    let kind = match raw & 0o170_000 {
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Link,
        0o100_000 => FileKind::File,
        _ => FileKind::Fifo,
    };
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (uid, gid, size) = (number()?, number()?, number()?);
    let path = fields.next()?.strip_prefix("./")?.to_owned();
    let (uid, gid) = (u32::try_from(uid).ok()?, u32::try_from(gid).ok()?);
    Some((path, Entry { kind, mode: raw & 0o7777, uid, gid, size, sha1: None, target: None }))
}

/// Copies a directory of the host; without `contents_only` under its own name.
pub async fn copy(
    host: &Host,
    args: &Args,
    placement: &Placement,
    source: &str,
    contents_only: bool,
) -> Result<Outcome, Failure> {
    let follow = args.bool("local_follow");
    let dest = if contents_only { placement.dest.clone() } else { join(&placement.dest, base_name(source)) };
    if dest == source || dest.starts_with(&format!("{source}/")) {
        return Err(Failure::new(format!("cannot copy {source} into itself: {dest}")));
    }
    let (theirs, ours, there, top, (above, missing), (me, permissions)) = try_join!(
        host.read(TreeListing { path: source.to_owned(), follow }),
        host.read(TreeListing { path: dest.clone(), follow: false }),
        host.read(Attributes { path: dest.clone(), follow: true }),
        host.read(Attributes { path: source.to_owned(), follow: true }),
        look_above(host, &dest, true),
        look_self(host, args)
    )?;
    let top = top.ok_or_else(|| Failure::new(format!("Source {source} not found")))?;
    if top.kind != FileKind::Directory {
        return Err(Failure::new(format!("Cannot copy invalid source '{source}/': not a directory")));
    }
    let permissions = match &permissions.mode {
        Some(Mode::Preserve) => permissions.with_mode(Some(Mode::Absolute(top.mode))),
        _ => permissions,
    };
    let (change, after) = match there {
        None => {
            // mode is for the directory that the task names, which may be the one that the copy goes into
            let named = missing.last() == Some(&placement.dest);
            let (outer, inner) = missing.split_at(missing.len() - usize::from(named));
            let mut made = new_directories(outer, above.as_ref(), &me, &Permissions::default());
            let around = made.last().map(|last| last.after.clone()).or(above);
            made.extend(new_directories(inner, around.as_ref(), &me, &permissions));
            let own = if named { permissions.with_mode(None) } else { permissions.clone() };
            let (change, after) = plan_whole((source, follow), &dest, &top, &me, &own, &made);
            (Some(change), after)
        }
        Some(there) if there.kind != FileKind::Directory => {
            return Err(Failure::new(format!("{dest} already exists as a {}", there.kind.state())));
        }
        Some(there) => {
            let mut merge = Merge { source, dest: &dest, placement, me: &me, permissions: &permissions, change: None };
            merge.attributes_of_top(&there);
            merge.directories_and_links(&theirs, &ours)?;
            let paths: Vec<&String> = merge.files_to_copy(&theirs, &ours);
            let targets: Vec<String> = paths.iter().map(|path| join(&dest, path)).collect();
            let mut seen = see_all(host, &targets).await?;
            try_join_all(seen.iter_mut().map(|seen| seen.read_content(host))).await?;
            for (path, seen) in paths.into_iter().zip(&seen) {
                merge.file(path, &theirs[path], seen)?;
            }
            merge.owners(&theirs, &ours);
            (merge.change, permissions.on(&there, me.umask))
        }
    };
    let outcome = match change {
        None => Outcome::ok(),
        Some(change) => {
            let change = Change { what: format!("files in {dest}"), ..change.whole() };
            let outcome = Outcome::of_change(&change);
            host.change(change).await?;
            outcome
        }
    };
    Ok(describe(outcome.with("dest", dest).with("src", source), Some(&after)))
}

/// Nothing is there yet: the whole tree, or (`follow`) what its links lead to, is copied beside the place and renamed.
fn plan_whole(
    (source, follow): (&str, bool),
    dest: &str,
    top: &FileAttributes,
    me: &Myself,
    permissions: &Permissions,
    made: &[NewDirectory],
) -> (Change, FileAttributes) {
    let without_mode = permissions.with_mode(None);
    let born = FileAttributes { mode: top.mode, ..newborn(FileKind::Directory, me, None) };
    let owned = without_mode.on(&born, me.umask);
    let after = permissions.on(&owned, me.umask);
    let template = join(parent(dest), ".trimtab.XXXXXX");
    let script = format!(
        "d=$(mktemp -d {template}) || exit\ntrap 'rm -rf \"$d\"' EXIT\n\
         cp -R{links}p {source} \"$d/t\" && chown -hR {uid}:{gid} \"$d/t\" && chmod {mode} \"$d/t\" || exit\n\
         [ ! -e {dest} ] && mv \"$d/t\" {dest} || exit\n\
         if [ -e /sys/fs/selinux/enforce ]; then restorecon -R {dest} 2>/dev/null; fi\n\
         stat -c '%a %u %g' {dest}",
        template = quote(&template),
        links = if follow { 'L' } else { 'P' },
        source = quote(source),
        dest = quote(dest),
        uid = after.uid,
        gid = after.gid,
        mode = super::super::file_common::permissions::chmod_word(after.mode),
    );
    let step = Step::new(script).expect(format!("{:o} {} {}", after.mode, after.uid, after.gid)).writes(dest);
    let mut shown = StateDifference::new(dest);
    shown.set("state", "absent", "directory");
    let change = Change::certain("", Footprint::tree(dest))
        .step(step)
        .inverse(Inverse::Steps(vec![Step::new(format!("rm -rf {}", quote(dest)))]))
        .difference(shown.into_difference());
    (with_directories(leaves_file(change, dest, &after, None), made), after)
}

/// A directory is there: what is missing or differs in it is copied; what is more is left.
struct Merge<'a> {
    source: &'a str,
    dest: &'a str,
    placement: &'a Placement,
    me: &'a Myself,
    permissions: &'a Permissions,
    change: Option<Change>,
}

impl Merge<'_> {
    fn add(&mut self, change: Option<Change>) {
        self.change = join_changes(self.change.take(), change);
    }

    fn attributes_of_top(&mut self, there: &FileAttributes) {
        let after = self.permissions.on(there, self.me.umask);
        self.add(attribute_change(self.dest, there, &after));
    }

    fn directories_and_links(
        &mut self,
        theirs: &BTreeMap<String, Entry>,
        ours: &BTreeMap<String, Entry>,
    ) -> Result<(), Failure> {
        for (path, entry) in theirs {
            let target = clean(&join(self.dest, path));
            match (entry.kind, ours.get(path)) {
                (FileKind::Directory, None) => {
                    let wanted = self.permissions.with_mode(Some(Mode::Absolute(entry.mode)));
                    let made = new_directories(std::slice::from_ref(&target), None, self.me, &wanted);
                    let change = Change::certain("", Footprint::nothing()).inverse(Inverse::Steps(Vec::new()));
                    self.add(Some(with_directories(change, &made)));
                }
                (FileKind::Link, ours) if ours.is_none_or(|ours| ours.target != entry.target) => {
                    let Some(points_to) = &entry.target else { continue };
                    let inverse = match ours.map(|ours| (ours.kind, ours.target.clone())) {
                        None => Inverse::Steps(vec![Step::new(format!("rm -f {}", quote(&target)))]),
                        Some((FileKind::Link, Some(old))) => Inverse::Steps(vec![link_step(&target, &old)]),
                        Some((FileKind::Directory, _)) => {
                            return Err(Failure::new(format!("the directory {target} is not replaced by a link")));
                        }
                        Some(_) => Inverse::None(format!("the file that was at {target} was not kept")),
                    };
                    let change = Change::certain("", Footprint::path(target.as_str()))
                        .step(link_step(&target, points_to))
                        .inverse(inverse);
                    self.add(Some(change));
                }
                (kind, Some(ours))
                    if kind != FileKind::Link
                        && (kind == FileKind::Directory) != (ours.kind == FileKind::Directory) =>
                {
                    return Err(Failure::new(format!("{target} already exists as a {}", ours.kind.state())));
                }
                (FileKind::Fifo, _) => {
                    return Err(Failure::new(format!("{}/{path} is neither file, directory nor link", self.source)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn files_to_copy<'t>(
        &self,
        theirs: &'t BTreeMap<String, Entry>,
        ours: &BTreeMap<String, Entry>,
    ) -> Vec<&'t String> {
        theirs
            .iter()
            .filter(|(path, entry)| {
                entry.kind == FileKind::File
                    && ours.get(*path).is_none_or(|ours| self.placement.force && ours.sha1 != entry.sha1)
            })
            .map(|(path, _)| path)
            .collect()
    }

    fn file(&mut self, path: &str, entry: &Entry, seen: &Seen) -> Result<(), Failure> {
        let content = Content::File {
            path: join(self.source, path),
            sha1: entry.sha1.clone().unwrap_or_default(),
            size: entry.size,
        };
        let source = Source { content, name: None, shown: join(self.source, path), mode: entry.mode };
        let wanted = self.permissions.with_mode(Some(Mode::Preserve));
        let manner = Manner { unsafe_writes: self.placement.unsafe_writes, ..Manner::default() };
        let planned = plan(seen, None, &source, self.me, &wanted, &manner)?;
        self.add(planned.change);
        Ok(())
    }

    /// Owner and group of everything that was there already.
    fn owners(&mut self, theirs: &BTreeMap<String, Entry>, ours: &BTreeMap<String, Entry>) {
        let wanted = self.permissions.with_mode(None);
        let copied: Vec<&String> = self.files_to_copy(theirs, ours);
        for (path, entry) in ours.iter().filter(|(path, _)| !copied.contains(path)) {
            let before = FileAttributes {
                kind: entry.kind,
                mode: entry.mode,
                uid: entry.uid,
                gid: entry.gid,
                owner: String::new(),
                group: String::new(),
                size: 0,
                target: String::new(),
                names: 1,
            };
            let after = wanted.on(&before, self.me.umask);
            let target = join(self.dest, path);
            if let (Some(forth), Some(back)) = (step(&target, &before, &after), step(&target, &after, &before)) {
                let change = Change::certain("", Footprint::path(target.as_str()))
                    .step(forth)
                    .inverse(Inverse::Steps(vec![back]));
                self.add(Some(change));
            }
        }
    }
}
