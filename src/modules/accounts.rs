//! Entries of users, groups and passwords, as `passwd(5)`, `group(5)` and `shadow(5)` have them.

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Query, Read, Subject};

use super::file_common::account::{Database, FindAccount, accounts};

/// A line of `passwd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserEntry {
    pub name: String,
    /// `x`: it is in `shadow`.
    pub password: String,
    pub uid: u32,
    pub gid: u32,
    pub comment: String,
    pub home: String,
    pub shell: String,
}

impl UserEntry {
    pub fn parse(line: &str) -> Option<UserEntry> {
        let fields: Vec<&str> = line.trim_end_matches('\n').split(':').collect();
        let [name, password, uid, gid, comment, home, shell] = fields[..] else { return None };
        Some(UserEntry {
            name: name.to_owned(),
            password: password.to_owned(),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            comment: comment.to_owned(),
            home: home.to_owned(),
            shell: shell.to_owned(),
        })
    }

    pub fn line(&self) -> String {
        let UserEntry { name, password, uid, gid, comment, home, shell } = self;
        format!("{name}:{password}:{uid}:{gid}:{comment}:{home}:{shell}")
    }
}

/// A line of `group`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEntry {
    pub name: String,
    pub gid: u32,
    pub members: Vec<String>,
}

impl GroupEntry {
    pub fn parse(line: &str) -> Option<GroupEntry> {
        let mut fields = line.trim_end_matches('\n').split(':');
        let (name, gid) = (fields.next()?.to_owned(), fields.nth(1)?.parse().ok()?);
        let members = fields.next().unwrap_or_default();
        Some(GroupEntry {
            name,
            gid,
            members: members.split(',').filter(|m| !m.is_empty()).map(str::to_owned).collect(),
        })
    }
}

/// A line of `shadow`; days are counted from 1970, what is empty is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShadowEntry {
    pub hash: String,
    /// Least days between changes of the password.
    pub min: Option<i64>,
    /// Most days between them.
    pub max: Option<i64>,
    /// Days of warning before that.
    pub warn: Option<i64>,
    /// Days until the account is disabled after that.
    pub inactive: Option<i64>,
    /// The day on which the account ends.
    pub expire: Option<i64>,
}

impl ShadowEntry {
    pub fn parse(line: &str) -> ShadowEntry {
        let fields: Vec<&str> = line.trim_end_matches('\n').split(':').collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse().ok()).filter(|days| *days >= 0);
        ShadowEntry {
            hash: fields.get(1).copied().unwrap_or_default().to_owned(),
            min: number(3),
            max: number(4),
            warn: number(5),
            inactive: number(6),
            expire: number(7),
        }
    }
}

/// Asks for the user of this very name.
#[derive(Debug, Clone)]
pub struct FindUser(pub String);

impl Read for FindUser {
    type Answer = Option<UserEntry>;

    fn query(&self) -> Query {
        FindAccount { database: Database::Users, name: self.0.clone() }.query()
    }

    fn parse(&self, response: &Response) -> Result<Option<UserEntry>, Failure> {
        let text = response.text();
        Ok(text.lines().filter_map(UserEntry::parse).find(|entry| entry.name == self.0))
    }
}

/// Asks for the group of this very name.
#[derive(Debug, Clone)]
pub struct FindGroup(pub String);

impl Read for FindGroup {
    type Answer = Option<GroupEntry>;

    fn query(&self) -> Query {
        FindAccount { database: Database::Groups, name: self.0.clone() }.query()
    }

    fn parse(&self, response: &Response) -> Result<Option<GroupEntry>, Failure> {
        let text = response.text();
        Ok(text.lines().filter_map(GroupEntry::parse).find(|entry| entry.name == self.0))
    }
}

/// Asks for all groups.
pub fn all_groups() -> Script {
    let text = "if command -v getent >/dev/null 2>&1; then getent group; else cat /etc/group; fi".to_owned();
    Script { text, footprint: accounts() }
}

/// Asks for the user's line of `shadow`; nothing where it may not be read.
pub fn shadow_line(user: &str) -> Script {
    Script { text: line_of("/etc/shadow", user), footprint: accounts() }
}

/// Shell code that prints the line of this name, of a file whose names end at a colon.
pub fn line_of(file: &str, name: &str) -> String {
    format!(
        "while IFS= read -r l; do case $l in {}*) printf '%s\\n' \"$l\";; esac; done 2>/dev/null <{file}",
        quote(&format!("{name}:"))
    )
}

/// What the programs that manage users and groups write.
pub fn written() -> Footprint {
    let files = ["/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid", "/etc/subgid"];
    let more = ["/etc/subuid-", "/etc/subgid-", "/etc/passwd.lock", "/etc/group.lock", "/var/log/lastlog"];
    let paths = files.iter().chain(&more).map(|file| Subject::Path((*file).to_owned())).collect();
    accounts().and(Footprint::Of(paths))
}

/// Refuses what can be no name of a user or group.
pub fn check_name(what: &str, name: &str) -> Result<(), Failure> {
    let wrong = |c: char| c == ':' || c == ',' || c == '/' || c.is_control() || c.is_whitespace();
    if name.is_empty() || name.starts_with('-') || name.contains(wrong) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a {what}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_by_their_fields() {
        let line = "mysql:x:27:27:MySQL: server:/var/lib/mysql:/sbin/nologin";
        assert!(UserEntry::parse(line).is_none(), "a colon too many");
        let line = "mysql:x:27:28:MySQL server:/var/lib/mysql:/sbin/nologin";
        let entry = UserEntry::parse(&format!("{line}\n")).unwrap();
        assert_eq!(
            (entry.uid, entry.gid, entry.home.as_str(), entry.line().as_str()),
            (27, 28, "/var/lib/mysql", line)
        );
        let group = GroupEntry::parse("wheel:x:10:a,b\n").unwrap();
        assert_eq!((group.gid, group.members), (10, vec!["a".to_owned(), "b".into()]));
        let shadow = ShadowEntry::parse("a:$6$x$y:19000:0:99999:7::20000:\n");
        assert_eq!((shadow.min, shadow.max, shadow.inactive, shadow.expire), (Some(0), Some(99999), None, Some(20000)));
    }

    #[test]
    fn a_number_is_not_the_name_of_its_account() {
        let answer = Response::output("mysql:x:27:27:MySQL:/var/lib/mysql:/bin/false\n");
        assert!(FindUser("27".into()).parse(&answer).unwrap().is_none());
        assert!(FindUser("mysql".into()).parse(&answer).unwrap().is_some());
    }

    #[test]
    fn odd_names_are_refused() {
        for (name, good) in [("kp-1_2.x$", true), ("-r", false), ("a:b", false), ("a b", false), ("", false)] {
            assert_eq!(check_name("user", name).is_ok(), good, "{name}");
        }
    }
}
