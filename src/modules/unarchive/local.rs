//! An archive that the controller has read: what of it differs on the host, and the change that brings it there.

use std::collections::BTreeMap;

use crate::connect::shell::{Response, quote};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Query, Read, Step};
use crate::modules::file_common::content::KEPT_BYTES;
use crate::modules::file_common::path::join;
use crate::modules::file_common::permissions::Permissions;

use super::archive::{Entry, Kind, pack};

/// What is at a path of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The letter of `find`'s types.
    pub kind: char,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub mtime: u64,
    /// Of a file, if it was asked for.
    pub sha1: Option<String>,
    pub target: Option<String>,
}

/// Asks what is at these paths below a directory.
#[derive(Debug)]
pub struct Listing<'a> {
    pub dest: &'a str,
    pub paths: Vec<&'a str>,
    pub digests: bool,
}

impl Read for Listing<'_> {
    type Answer = BTreeMap<String, Found>;

    fn query(&self) -> Query {
        // names come as lines, and hold no newline
        let digest = if self.digests { "f=$(sha1sum <\"$n\") && f=${f%% *}" } else { "f=" };
        let text = format!(
            "cd {} 2>/dev/null || exit 0\nprintf '%s\\n' {} | while IFS= read -r n; do n=./$n\n\
             s=$(stat -c '%f %u %g %s %Y' \"$n\" 2>/dev/null) || continue\nf= l=\n\
             if [ -L \"$n\" ]; then l=$(readlink \"$n\"); elif [ -f \"$n\" ]; then {digest} || exit; fi\n\
             printf '%s %s\\036%s\\036%s\\n' \"$s\" \"$f\" \"$l\" \"$n\"; done",
            quote(self.dest),
            self.paths.iter().map(|path| quote(path)).collect::<Vec<_>>().join(" ")
        );
        Query::Script { text, footprint: Footprint::tree(self.dest) }
    }

    fn parse(&self, response: &Response) -> Result<BTreeMap<String, Found>, Failure> {
        if !response.success() {
            return Err(Failure::new(format!("cannot look at {}: {}", self.dest, response.error_text().trim())));
        }
        let refuse = || Failure::new(format!("what is in {} cannot be understood", self.dest));
        let text = response.text();
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let (path, entry) = parse_line(line).ok_or_else(refuse)?;
            found.insert(path, entry);
        }
        Ok(found)
    }
}

fn parse_line(line: &str) -> Option<(String, Found)> {
    let mut parts = line.split('\u{1e}');
    let mut words = parts.next()?.split(' ');
    let (target, path) = (parts.next()?, parts.next()?);
    let raw = u32::from_str_radix(words.next()?, 16).ok()?;
    let kind = match raw & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o100_000 => 'f',
        _ => 'o',
    };
    let mut number = || words.next()?.parse::<u64>().ok();
    let (uid, gid, size, mtime) = (number()?, number()?, number()?, number()?);
    let sha1 = words.next().filter(|word| !word.is_empty()).map(str::to_owned);
    let (uid, gid) = (u32::try_from(uid).ok()?, u32::try_from(gid).ok()?);
    let target = (kind == 'l').then(|| target.to_owned());
    Some((path.strip_prefix("./")?.to_owned(), Found { kind, mode: raw & 0o7777, uid, gid, size, mtime, sha1, target }))
}

/// Adds the directories that an archive takes for granted.
pub fn with_parents(entries: Vec<Entry>) -> Vec<Entry> {
    let mut known: std::collections::BTreeSet<String> =
        entries.iter().filter(|entry| entry.kind == Kind::Directory).map(|entry| entry.path.clone()).collect();
    let mut all = Vec::new();
    for entry in entries {
        for (at, _) in entry.path.match_indices('/') {
            let parent = &entry.path[..at];
            if known.insert(parent.to_owned()) {
                let kind = Kind::Directory;
                all.push(Entry { path: parent.to_owned(), kind, mode: None, ..entry.clone() });
            }
        }
        all.push(entry);
    }
    all
}

/// Who unpacks, and what all that is unpacked is to have.
#[derive(Debug)]
pub struct Wish<'a> {
    pub dest: &'a str,
    pub permissions: &'a Permissions,
    pub umask: u32,
    pub is_root: bool,
    /// What is newer on the host stays.
    pub keep_newer: bool,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Entries whose content is not there.
    pub unpack: Vec<&'a Entry>,
    /// Paths whose owner or mode alone differ.
    pub adjust: Vec<&'a str>,
}

impl Plan<'_> {
    pub fn is_empty(&self) -> bool {
        self.unpack.is_empty() && self.adjust.is_empty()
    }
}

/// Compares an archive with what is there.
pub fn compare<'a>(entries: &'a [Entry], there: &BTreeMap<String, Found>, wish: &Wish<'_>) -> Plan<'a> {
    let mut plan = Plan::default();
    for entry in last_of_each(entries) {
        let Some(found) = there.get(&entry.path) else {
            plan.unpack.push(entry);
            continue;
        };
        let is_newer = wish.keep_newer && found.kind != 'd' && found.mtime > entry.mtime;
        let is_same = match &entry.kind {
            Kind::Directory => found.kind == 'd',
            Kind::File { sha1, .. } => found.kind == 'f' && found.sha1.as_ref() == Some(sha1),
            Kind::Link(target) => found.target.as_ref() == Some(target),
            Kind::HardLink(target) => {
                found.kind == 'f' && there.get(target).is_some_and(|other| other.sha1 == found.sha1)
            }
        };
        if is_newer {
            continue;
        } else if !is_same {
            plan.unpack.push(entry);
        } else if !has_attributes(entry, found, wish) {
            plan.adjust.push(&entry.path);
        }
    }
    plan
}

/// A path may be in an archive several times: the last counts.
fn last_of_each(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let last: BTreeMap<&str, usize> =
        entries.iter().enumerate().map(|(index, entry)| (entry.path.as_str(), index)).collect();
    entries
        .iter()
        .enumerate()
        .filter(move |(index, entry)| last.get(entry.path.as_str()) == Some(index))
        .map(|(_, entry)| entry)
}

pub fn has_attributes(entry: &Entry, found: &Found, wish: &Wish<'_>) -> bool {
    let permissions = wish.permissions;
    if permissions.owner.as_ref().is_some_and(|owner| owner.id != found.uid)
        || permissions.group.as_ref().is_some_and(|group| group.id != found.gid)
    {
        return false;
    }
    if matches!(entry.kind, Kind::Link(_)) {
        return true;
    }
    match &permissions.mode {
        Some(mode) => mode.apply(found.mode, found.kind == 'd', wish.umask) == found.mode,
        // a directory that was there keeps its mode, as for tar
        None if found.kind == 'd' => true,
        None => entry.mode.is_none_or(|mode| {
            let mode = if wish.is_root { mode } else { mode & 0o777 & !wish.umask };
            mode & 0o777 == found.mode & 0o777
        }),
    }
}

/// The script that keeps what will be overwritten; its output is a tar file.
pub fn keep_script(plan: &Plan<'_>, there: &BTreeMap<String, Found>, dest: &str) -> Option<String> {
    let old: Vec<String> = overwritten(plan, there).map(|(path, _)| quote(&format!("./{path}"))).collect();
    let size: u64 = overwritten(plan, there).map(|(_, found)| found.size + 512).sum();
    (!old.is_empty() && size <= KEPT_BYTES)
        .then(|| format!("tar -C {} -czf - {} 2>/dev/null", quote(dest), old.join(" ")))
}

fn overwritten<'a>(
    plan: &'a Plan<'_>,
    there: &'a BTreeMap<String, Found>,
) -> impl Iterator<Item = (&'a str, &'a Found)> {
    plan.unpack
        .iter()
        .filter_map(|entry| Some((entry.path.as_str(), there.get(&entry.path)?)))
        .filter(|(_, found)| found.kind != 'd')
}

/// How what is missing is unpacked.
#[derive(Debug, Clone, Copy)]
pub enum Unpack<'a> {
    /// From a tar file of the plan's entries, which is sent along.
    Packed,
    /// By this command of the host.
    Command(&'a str),
}

/// The change. `kept` is the output of [`keep_script`].
pub fn change(
    what: &str,
    plan: &Plan<'_>,
    unpack: Unpack<'_>,
    there: &BTreeMap<String, Found>,
    wish: &Wish<'_>,
    kept: Option<Vec<u8>>,
) -> Result<Change, Failure> {
    let dest = quote(wish.dest);
    let mut script = String::new();
    // what changes its type must go first; tar does it for files and links alone
    for entry in &plan.unpack {
        let changes_type =
            there.get(&entry.path).is_some_and(|found| (found.kind == 'd') != (entry.kind == Kind::Directory));
        if changes_type {
            let remove = if entry.kind == Kind::Directory { "rm -f" } else { "rmdir" };
            script.push_str(&format!("{remove} {} || exit\n", quote(&join(wish.dest, &entry.path))));
        }
    }
    let stdin = match unpack {
        _ if plan.unpack.is_empty() => None,
        Unpack::Packed => {
            let same = if wish.is_root { "p" } else { "" };
            script.push_str(&format!("tar -C {dest} -xz{same}f - || exit\n"));
            Some(pack(plan.unpack.iter().copied())?)
        }
        Unpack::Command(command) => {
            script.push_str(&format!("{command} || exit\n"));
            None
        }
    };
    let touched: Vec<&str> =
        plan.unpack.iter().map(|entry| entry.path.as_str()).chain(plan.adjust.iter().copied()).collect();
    script.push_str(&attributes(plan, &touched, there, wish));
    let mut step = Step::new(script);
    if let Some(stdin) = stdin {
        step = step.stdin(stdin);
    }
    let mut shown = String::new();
    for path in &touched {
        shown.push_str(&format!("{path}\n"));
    }
    let before: String =
        touched.iter().filter(|path| there.contains_key(**path)).map(|path| format!("{path}\n")).collect();
    Ok(Change::uncertain(what, Footprint::tree(wish.dest))
        .step(step)
        .inverse(inverse(plan, there, wish, kept))
        .difference(Difference::new(wish.dest, before, shown)))
}

/// The commands that bring owner and mode to what is unpacked or adjusted.
fn attributes(plan: &Plan<'_>, touched: &[&str], there: &BTreeMap<String, Found>, wish: &Wish<'_>) -> String {
    let permissions = wish.permissions;
    let mut lines = String::new();
    let owner = permissions.owner.as_ref().map(|owner| owner.id.to_string()).unwrap_or_default();
    let group = permissions.group.as_ref().map(|group| format!(":{}", group.id)).unwrap_or_default();
    for path in touched {
        let quoted = quote(&join(wish.dest, path));
        if !owner.is_empty() || !group.is_empty() {
            lines.push_str(&format!("chown -h {owner}{group} {quoted} || exit\n"));
        }
        let entry = plan.unpack.iter().find(|entry| entry.path == **path);
        let is_link = entry.is_some_and(|entry| matches!(entry.kind, Kind::Link(_)))
            || (entry.is_none() && there.get(*path).is_some_and(|found| found.kind == 'l'));
        if is_link {
            continue;
        }
        let is_directory = entry.map_or_else(
            || there.get(*path).is_some_and(|found| found.kind == 'd'),
            |entry| entry.kind == Kind::Directory,
        );
        let packed = entry.and_then(|entry| entry.mode);
        let now = packed.or_else(|| there.get(*path).map(|found| found.mode));
        let mode = match (&permissions.mode, now) {
            (Some(mode), now) => {
                let default = if is_directory { 0o777 & !wish.umask } else { 0o666 & !wish.umask };
                Some(mode.apply(now.unwrap_or(default), is_directory, wish.umask))
            }
            (None, Some(mode)) if entry.is_none() && wish.is_root => Some(mode),
            _ => None,
        };
        if let Some(mode) = mode {
            lines.push_str(&format!("chmod 0{mode:04o} {quoted} || exit\n"));
        }
    }
    lines
}

fn inverse(plan: &Plan<'_>, there: &BTreeMap<String, Found>, wish: &Wish<'_>, kept: Option<Vec<u8>>) -> Inverse {
    let overwrites = overwritten(plan, there).next().is_some();
    if overwrites && kept.is_none() {
        return Inverse::None(format!("what was overwritten in {} was too large to keep", wish.dest));
    }
    let mut lines = String::new();
    for entry in plan.unpack.iter().rev().filter(|entry| !there.contains_key(&entry.path)) {
        let remove = if entry.kind == Kind::Directory { "rmdir" } else { "rm -f" };
        lines.push_str(&format!("{remove} {} || exit\n", quote(&join(wish.dest, &entry.path))));
    }
    if kept.is_some() {
        let old: Vec<String> = overwritten(plan, there).map(|(path, _)| quote(&join(wish.dest, path))).collect();
        lines.push_str(&format!("rm -rf {} || exit\ntar -C {} -xzpf - || exit\n", old.join(" "), quote(wish.dest)));
    }
    for (path, found) in there {
        let is_touched = plan.adjust.contains(&path.as_str()) || plan.unpack.iter().any(|entry| entry.path == *path);
        if is_touched && found.kind != 'l' {
            let quoted = quote(&join(wish.dest, path));
            lines.push_str(&format!(
                "chown {}:{} {quoted} && chmod 0{:04o} {quoted} || exit\n",
                found.uid, found.gid, found.mode
            ));
        }
    }
    let step = Step::new(lines);
    Inverse::Steps(vec![match kept {
        Some(kept) => step.stdin(kept),
        None => step,
    }])
}
