//! Everything below a directory: what is there, and the change of modes and owners.

use std::collections::BTreeMap;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileAttributes, FileKind};
use crate::host::{Failure, Footprint, Query, Read, Step};
use crate::modules::file_common::account::Myself;
use crate::modules::file_common::permissions::{Permissions, chmod_word};

/// Asks for everything in a directory, itself included (nothing if it does not exist); with `follow` also for what links lead to.
#[derive(Debug, Clone)]
pub struct Listing {
    pub path: String,
    pub follow: bool,
}

/// One thing below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    /// Owner, group and mode; the names of owner and group are not read.
    pub attributes: FileAttributes,
}

impl Read for Listing {
    type Answer = Vec<Entry>;

    fn query(&self) -> Query {
        let path = quote(&self.path);
        // no name contains a slash, so a slash and a newline end an entry
        let text = if self.follow {
            format!(
                "[ -d {path} ] || exit 0; find -L {path} ! -type l -exec stat -L -c '%f %u %g %n/' {{}} + 2>/dev/null; \
                 find {path} -type l -exec stat -c '%f %u %g %n/' {{}} +"
            )
        } else {
            format!("[ -d {path} ] || exit 0; find {path} -exec stat -c '%f %u %g %n/' {{}} +")
        };
        // a link may lead anywhere
        let footprint = if self.follow { Footprint::Everything } else { Footprint::tree(self.path.as_str()) };
        Query::Script { text, footprint }
    }

    fn parse(&self, response: &Response) -> Result<Vec<Entry>, Failure> {
        if !response.success() {
            return Err(Failure::new(format!("cannot list {}: {}", self.path, response.error_text().trim())));
        }
        let text = std::str::from_utf8(&response.stdout).map_err(|_| {
            Failure::new(format!("a name below {} is no UTF-8; rename it, or use `chmod -R` and `chown -R`", self.path))
        })?;
        text.split_terminator("/\n")
            .map(|line| {
                parse_entry(line).ok_or_else(|| Failure::new(format!("cannot understand the listing {line:?}")))
            })
            .collect()
    }
}

fn parse_entry(line: &str) -> Option<Entry> {
    let mut fields = line.splitn(4, ' ');
    let raw = u32::from_str_radix(fields.next()?, 16).ok()?;
    let kind = match raw & 0o170_000 {
        0o040_000 => FileKind::Directory,
        0o120_000 => FileKind::Link,
        0o020_000 => FileKind::Character,
        0o060_000 => FileKind::Block,
        0o010_000 => FileKind::Fifo,
        0o140_000 => FileKind::Socket,
        _ => FileKind::File,
    };
    let attributes = FileAttributes {
        kind,
        mode: raw & 0o7777,
        uid: fields.next()?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
        owner: String::new(),
        group: String::new(),
        size: 0,
        target: String::new(),
        names: 1,
    };
    Some(Entry { path: fields.next()?.to_owned(), attributes })
}

/// The steps that bring all entries to the permissions, and those that take them back; empty if all are right.
pub fn steps(entries: &[Entry], permissions: &Permissions, me: &Myself) -> (Vec<Step>, Vec<Step>) {
    let wanted: Vec<(&str, &FileAttributes, FileAttributes)> = entries
        .iter()
        .map(|entry| (entry.path.as_str(), &entry.attributes, permissions.on(&entry.attributes, me.umask)))
        .filter(|(_, before, after)| *before != after)
        .collect();
    let forth = group(wanted.iter().map(|(path, before, after)| (*path, *before, after)));
    // the deepest first: a directory that was closed before must be open until then
    let back = group(wanted.iter().rev().map(|(path, before, after)| (*path, after, *before)));
    (forth, back)
}

/// One command for all paths that get the same owner, one for all that get the same mode.
fn group<'a>(differing: impl Iterator<Item = (&'a str, &'a FileAttributes, &'a FileAttributes)>) -> Vec<Step> {
    let mut owners: BTreeMap<(bool, u32, u32), Vec<u8>> = BTreeMap::new();
    let mut modes: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (path, before, after) in differing {
        let add = |list: &mut Vec<u8>| {
            list.extend_from_slice(path.as_bytes());
            list.push(0);
        };
        let is_link = after.kind == FileKind::Link;
        let owned = (before.uid, before.gid) != (after.uid, after.gid);
        if owned {
            add(owners.entry((is_link, after.uid, after.gid)).or_default());
        }
        if !is_link && (before.mode != after.mode || (owned && after.mode & 0o6000 != 0)) {
            add(modes.entry(after.mode).or_default());
        }
    }
    let chown = owners.into_iter().map(|((is_link, uid, gid), paths)| {
        let option = if is_link { "-h " } else { "" };
        Step::new(format!("xargs -0 chown {option}{uid}:{gid} --")).stdin(paths)
    });
    let chmod = modes
        .into_iter()
        .map(|(mode, paths)| Step::new(format!("xargs -0 chmod {} --", chmod_word(mode))).stdin(paths));
    chown.chain(chmod).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::file_common::account::Account;
    use crate::modules::file_common::mode::Mode;

    #[test]
    fn a_listing_is_read_and_only_what_differs_is_changed() {
        let listing = Listing { path: "/d".into(), follow: false };
        let answer = Response::output("41ed 0 0 /d/\n81a4 0 0 /d/a b\nc/\na1ff 27 0 /d/link/\n");
        let entries = listing.parse(&answer).unwrap();
        assert_eq!(entries[1].path, "/d/a b\nc");
        assert_eq!((entries[2].attributes.kind, entries[2].attributes.uid), (FileKind::Link, 27));
        let root = Account { id: 0, name: "root".into() };
        let me = Myself { user: root.clone(), group: root.clone(), groups: vec![0], umask: 0o022 };
        let mode = Some(Mode::parse(&"u=rwX,g=rX,o=".into()).unwrap());
        let permissions = Permissions { mode, owner: Some(root), group: None };
        let (forth, back) = steps(&entries, &permissions, &me);
        let scripts = |steps: &[Step]| steps.iter().map(|step| step.script.clone()).collect::<Vec<_>>();
        assert_eq!(scripts(&forth), ["xargs -0 chown -h 0:0 --", "xargs -0 chmod 00640 --", "xargs -0 chmod 00750 --"]);
        assert_eq!(forth[1].stdin.as_deref(), Some(&b"/d/a b\nc\0"[..]));
        assert_eq!(scripts(&back), ["xargs -0 chown -h 27:0 --", "xargs -0 chmod 00644 --", "xargs -0 chmod 00755 --"]);
    }
}
