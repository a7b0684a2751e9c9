//! Everything below a directory, with what stat(2) knows of it.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileAttributes, FileKind, FileStat};
use crate::host::{Failure, Footprint, Query, Read};

/// Asks for everything below a directory, down to a depth.
#[derive(Debug, Clone)]
pub struct Listing {
    pub path: String,
    pub depth: Option<i64>,
    /// Look into directories behind symbolic links.
    pub follow: bool,
}

/// What is below a directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub is_directory: bool,
    /// The host's time, in seconds since the epoch.
    pub now: f64,
    /// The nearest first, then by path.
    pub found: Vec<Found>,
    /// What could not be looked into, and why.
    pub refused: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub path: String,
    pub stat: FileStat,
}

impl Read for Listing {
    type Answer = Listed;

    fn query(&self) -> Query {
        let path = quote(&self.path);
        let follow = if self.follow { "-L " } else { "" };
        let depth = self.depth.map(|depth| format!("-maxdepth {depth} ")).unwrap_or_default();
        // no name contains a slash, so a slash and a newline end an entry; a directory behind the path itself is meant
        let text = format!(
            "[ -d {path} ] || exit 3; date +%s; \
             find {follow}{path}/ {depth}-exec stat -c '%f %u %g %U %G %s %i %d %h %.9X %.9Y %.9Z %n/' {{}} +; :"
        );
        let footprint = if self.follow { Footprint::Everything } else { Footprint::tree(self.path.as_str()) };
        Query::Script { text, footprint }
    }

    fn parse(&self, response: &Response) -> Result<Listed, Failure> {
        if response.code == Some(3) {
            return Ok(Listed { is_directory: false, now: 0.0, found: Vec::new(), refused: Vec::new() });
        }
        let text = response.text();
        let bad = |line: &str| {
            let error = response.error_text();
            Failure::new(format!("cannot list {}: {line:?} {}", self.path, error.trim()))
        };
        let (now, entries) = text.split_once('\n').ok_or_else(|| bad(&text))?;
        let now = now.trim().parse().map_err(|_| bad(now))?;
        let mut found = Vec::new();
        for line in entries.split_terminator("/\n") {
            let entry = parse_entry(line).ok_or_else(|| bad(line))?;
            if entry.path != self.path && !entry.path.is_empty() {
                found.push(entry);
            }
        }
        found.sort_by(|left, right| {
            let depth = |found: &Found| found.path.matches('/').count();
            depth(left).cmp(&depth(right)).then_with(|| left.path.cmp(&right.path))
        });
        Ok(Listed { is_directory: true, now, found, refused: refusals(&response.error_text()) })
    }
}

/// Lines as `find: '/root/x': Permission denied`.
fn refusals(errors: &str) -> Vec<(String, String)> {
    errors
        .lines()
        .filter_map(|line| line.strip_prefix("find: "))
        .filter_map(|line| line.rsplit_once(": "))
        .map(|(path, reason)| (path.trim_matches(['\'', '\u{2018}', '\u{2019}']).to_owned(), reason.to_owned()))
        .collect()
}

fn parse_entry(line: &str) -> Option<Found> {
    let fields: Vec<&str> = line.splitn(13, ' ').collect();
    let [raw, uid, gid, owner, group, size, inode, device, links, atime, mtime, ctime, path] = fields[..] else {
        return None;
    };
    let raw = u32::from_str_radix(raw, 16).ok()?;
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
        uid: uid.parse().ok()?,
        gid: gid.parse().ok()?,
        owner: owner.to_owned(),
        group: group.to_owned(),
        size: size.parse().ok()?,
        target: String::new(),
        names: 1,
    };
    let stat = FileStat {
        attributes,
        inode: inode.parse().ok()?,
        device: device.parse().ok()?,
        links: links.parse().ok()?,
        atime: atime.parse().ok()?,
        mtime: mtime.parse().ok()?,
        ctime: ctime.parse().ok()?,
    };
    Some(Found { path: super::super::file_common::path::clean(path), stat })
}
