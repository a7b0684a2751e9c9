//! Mode, owner and group: what a task asks for, what a file would have then, and the step between.

use std::collections::BTreeMap;

use futures_util::try_join;
use serde::Serialize;
use serde_json::Value as Json;

use crate::connect::shell::quote;
use crate::host::reads::{FileAttributes, FileKind, Script};
use crate::host::{Difference, Failure, Footprint, Host, Step};
use crate::modules::{Arg, Args, Outcome, Type};
use crate::value::Value;

use super::account::{Account, Database, FindAccount, Myself};
use super::mode::{Mode, leading_zero};

/// `mode`, as most file modules have it.
pub const MODE: Arg = Arg::new("mode", Type::Mode, "permissions: octal text ('0644') or symbolic (u=rw,g=r,o=r)");

/// Whose a file is and how it is written: what all modules that write files have besides `mode`.
pub const OWNERSHIP: &[Arg] = &[
    Arg::new("owner", Type::Str, "name or number of the owner"),
    Arg::new("group", Type::Str, "name or number of the group"),
    Arg::new("seuser", Type::Str, "SELinux user of the file"),
    Arg::new("serole", Type::Str, "SELinux role of the file"),
    Arg::new("setype", Type::Str, "SELinux type of the file"),
    Arg::new("selevel", Type::Str, "SELinux level of the file"),
    Arg::new("attributes", Type::Str, "flags of the file system as chattr has them").aliases(&["attr"]),
    Arg::new("unsafe_writes", Type::Bool, "overwrite in place where the file cannot be replaced").default("false"),
];

/// What a task asks of a file's mode, owner and group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    pub mode: Option<Mode>,
    pub owner: Option<Account>,
    pub group: Option<Account>,
}

impl Permissions {
    /// Reads the arguments `mode`, `owner` and `group`, and asks the host for the numbers behind names.
    pub async fn read(args: &Args, host: &Host) -> Result<Permissions, Failure> {
        refuse(args, &["attributes"], "set the flags with `chattr`")?;
        refuse_label(args, host).await?;
        let mode = match args.get("mode") {
            Some(value) if !value.to_text().is_empty() => Some(Mode::parse(value)?),
            _ => None,
        };
        let (owner, group) =
            try_join!(find(host, Database::Users, args.str("owner")), find(host, Database::Groups, args.str("group")))?;
        Ok(Permissions { mode, owner, group })
    }

    /// What a file that has `now` would have.
    pub fn on(&self, now: &FileAttributes, umask: u32) -> FileAttributes {
        let mut after = now.clone();
        if let Some(owner) = self.owner.as_ref().filter(|owner| owner.id != now.uid) {
            after.uid = owner.id;
            after.owner.clone_from(&owner.name);
        }
        if let Some(group) = self.group.as_ref().filter(|group| group.id != now.gid) {
            after.gid = group.id;
            after.group.clone_from(&group.name);
        }
        if let Some(mode) = self.mode.as_ref().filter(|_| now.kind != FileKind::Link) {
            after.mode = mode.apply(now.mode, now.kind == FileKind::Directory, umask);
        }
        after
    }

    /// The same, with another mode.
    #[must_use]
    pub fn with_mode(&self, mode: Option<Mode>) -> Permissions {
        Permissions { mode, ..self.clone() }
    }
}

async fn find(host: &Host, database: Database, name: Option<&str>) -> Result<Option<Account>, Failure> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    // every host has it, so it need not be asked
    if name == "root" {
        return Ok(Some(Account { id: 0, name: name.to_owned() }));
    }
    let account = host.read(FindAccount { database, name: name.to_owned() }).await?;
    let (command, kind) = match database {
        Database::Users => ("chown", "user"),
        Database::Groups => ("chgrp", "group"),
    };
    account.map(Some).ok_or_else(|| Failure::new(format!("{command} failed: failed to look up {kind} {name}")))
}

/// What a file, directory or link that `me` makes in a directory gets, before `chmod` and `chown`.
pub fn newborn(kind: FileKind, me: &Myself, directory: Option<&FileAttributes>) -> FileAttributes {
    let inherits = directory.filter(|directory| directory.mode & 0o2000 != 0);
    let (gid, group) = match inherits {
        Some(directory) => (directory.gid, directory.group.clone()),
        None => (me.group.id, me.group.name.clone()),
    };
    let mode = match kind {
        FileKind::Link => 0o777,
        FileKind::Directory if inherits.is_some() => (0o777 & !me.umask) | 0o2000,
        FileKind::Directory => 0o777 & !me.umask,
        _ => 0o666 & !me.umask,
    };
    FileAttributes {
        kind,
        mode,
        uid: me.user.id,
        gid,
        owner: me.user.name.clone(),
        group,
        size: 0,
        target: String::new(),
        names: 1,
    }
}

/// The commands that bring `path` from one set of attributes to the other; empty if they are equal.
pub fn commands(path: &str, before: &FileAttributes, after: &FileAttributes) -> String {
    let path = quote(path);
    let mut commands = Vec::new();
    let owner = if before.uid == after.uid { String::new() } else { after.uid.to_string() };
    let group = if before.gid == after.gid { String::new() } else { format!(":{}", after.gid) };
    let changes_owner = !owner.is_empty() || !group.is_empty();
    if changes_owner {
        commands.push(format!("chown -h {owner}{group} {path}"));
    }
    // a change of owner clears setuid and setgid
    if after.kind != FileKind::Link && (before.mode != after.mode || (changes_owner && after.mode & 0o6000 != 0)) {
        commands.push(format!("chmod {} {path}", chmod_word(after.mode)));
    }
    commands.join(" && ")
}

/// Five digits: fewer would leave a directory's setgid bit as it is (GNU chmod).
pub fn chmod_word(mode: u32) -> String {
    format!("0{mode:04o}")
}

/// The step that brings an existing path to `after`, and reads it back; `None` if nothing differs.
pub fn step(path: &str, before: &FileAttributes, after: &FileAttributes) -> Option<Step> {
    let commands = commands(path, before, after);
    if commands.is_empty() {
        return None;
    }
    let script = format!("{commands} && stat -c '%a %u %g' {}", quote(path));
    Some(Step::new(script).expect(format!("{:o} {} {}", after.mode, after.uid, after.gid)).writes(path))
}

/// Before and after of a path's state as Ansible shows them: the keys that differ, as JSON.
pub struct StateDifference {
    before: BTreeMap<&'static str, Json>,
    after: BTreeMap<&'static str, Json>,
}

impl StateDifference {
    pub fn new(path: &str) -> StateDifference {
        let map = || BTreeMap::from([("path", Json::from(path))]);
        StateDifference { before: map(), after: map() }
    }

    /// Without any key: for the modules that show attributes beside content.
    pub fn bare() -> StateDifference {
        StateDifference { before: BTreeMap::new(), after: BTreeMap::new() }
    }

    pub fn set(&mut self, key: &'static str, before: impl Into<Json>, after: impl Into<Json>) {
        let (before, after) = (before.into(), after.into());
        if before != after {
            self.before.insert(key, before);
            self.after.insert(key, after);
        }
    }

    pub fn set_before(&mut self, key: &'static str, before: impl Into<Json>) {
        self.before.insert(key, before.into());
    }

    /// Owner, group and mode, where they differ.
    pub fn attributes(&mut self, before: &FileAttributes, after: &FileAttributes) {
        self.set("owner", before.uid, after.uid);
        self.set("group", before.gid, after.gid);
        self.set("mode", leading_zero(before.mode), leading_zero(after.mode));
    }

    pub fn is_empty(&self) -> bool {
        self.before == self.after
    }

    pub fn with_headers(self, before_header: String, after_header: String) -> Difference {
        let text = |map| json_text(map) + "\n";
        let values = |map: &BTreeMap<&str, Json>| {
            map.iter().map(|(key, value)| ((*key).into(), Value::from_json(value))).collect()
        };
        Difference {
            before_header,
            after_header,
            before: text(&self.before),
            after: text(&self.after),
            state: Some((values(&self.before), values(&self.after))),
            ..Difference::default()
        }
    }

    pub fn into_difference(self) -> Difference {
        self.with_headers(String::new(), String::new())
    }
}

/// JSON with sorted keys, indented by four blanks.
fn json_text(map: &BTreeMap<&str, Json>) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    match map.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}

/// Adds what Ansible tells of the path a module worked on: `mode`, `owner`, `uid`, `state`, `size`, …
#[must_use]
pub fn describe(outcome: Outcome, attributes: Option<&FileAttributes>) -> Outcome {
    let Some(attributes) = attributes else { return outcome.with("state", "absent") };
    let outcome = outcome
        .with("uid", attributes.uid)
        .with("gid", attributes.gid)
        .with("owner", attributes.owner.as_str())
        .with("group", attributes.group.as_str())
        .with("mode", leading_zero(attributes.mode))
        .with("state", attributes.kind.state());
    match attributes.kind {
        FileKind::File => outcome.with("size", attributes.size),
        FileKind::Link => outcome.with("size", attributes.target.len()),
        _ => outcome,
    }
}

/// The parts of a label mean nothing on a host without SELinux, as in Ansible; on others they are refused.
async fn refuse_label(args: &Args, host: &Host) -> Result<(), Failure> {
    const PARTS: [&str; 4] = ["seuser", "serole", "setype", "selevel"];
    let given = |name: &&str| args.str(name).is_some_and(|text| !text.is_empty());
    if !PARTS.iter().any(given) {
        return Ok(());
    }
    let read = Script { text: "[ -e /sys/fs/selinux/enforce ]".to_owned(), footprint: Footprint::nothing() };
    if host.read(read).await?.success() {
        refuse(
            args,
            &PARTS,
            "the host has SELinux: set the label with `semanage fcontext` and `restorecon`, or with `chcon`",
        )
    } else {
        Ok(())
    }
}

/// Refuses arguments that are not supported, by name.
pub fn refuse(args: &Args, names: &[&str], why: &str) -> Result<(), Failure> {
    match names.iter().find(|name| args.str(name).is_some_and(|text| !text.is_empty())) {
        Some(name) => Err(Failure::new(format!("the argument `{name}` is not supported: {why}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn me() -> Myself {
        let root = |id| Account { id, name: "root".into() };
        Myself { user: root(0), group: root(0), groups: vec![0], umask: 0o022 }
    }

    #[test]
    fn new_things_get_the_umask_and_the_group_of_a_setgid_directory() {
        let plain = newborn(FileKind::File, &me(), None);
        assert_eq!((plain.mode, plain.gid), (0o644, 0));
        let shared = FileAttributes { gid: 50, mode: 0o2775, ..newborn(FileKind::Directory, &me(), None) };
        let child = newborn(FileKind::Directory, &me(), Some(&shared));
        assert_eq!((child.mode, child.gid), (0o2755, 50));
        assert_eq!(newborn(FileKind::File, &me(), Some(&shared)).mode, 0o644);
    }

    #[test]
    fn only_what_differs_is_changed() {
        let now = newborn(FileKind::File, &me(), None);
        let wanted = Permissions {
            mode: Some(Mode::Absolute(0o600)),
            owner: Some(Account { id: 27, name: "mysql".into() }),
            group: None,
        };
        let after = wanted.on(&now, 0o022);
        assert_eq!(commands("/a b", &now, &after), "chown -h 27 '/a b' && chmod 00600 '/a b'");
        assert_eq!(commands("/a", &after, &wanted.on(&after, 0o022)), "");
        assert!(step("/a", &after, &after).is_none());
        assert_eq!(step("/a", &now, &after).unwrap().expect.unwrap(), "600 27 0");
    }

    #[test]
    fn the_difference_is_ansibles_json() {
        let mut difference = StateDifference::new("/x");
        difference.set("mode", "0644", "0600");
        difference.set("owner", 0, 0);
        let shown = difference.into_difference();
        assert_eq!(shown.before, "{\n    \"mode\": \"0644\",\n    \"path\": \"/x\"\n}\n");
        assert_eq!(shown.before_header, "", "Ansible gives these no header");
    }
}
