//! Users and groups of the host: who the shell is, and the numbers behind names.

use crate::connect::shell::{Response, quote};
use crate::host::{Failure, Footprint, Query, Read, Subject};

/// Who the host's shell runs as, and what its new files get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Myself {
    pub user: Account,
    pub group: Account,
    /// The numbers of all its groups.
    pub groups: Vec<u32>,
    pub umask: u32,
}

/// A user or a group. The name of a number without an entry is `UNKNOWN`, as `stat` prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub id: u32,
    pub name: String,
}

impl Myself {
    pub fn is_root(&self) -> bool {
        self.user.id == 0
    }
}

/// Asks who the host's shell runs as.
#[derive(Debug, Clone, Copy)]
pub struct WhoAmI;

impl Read for WhoAmI {
    type Answer = Myself;

    fn query(&self) -> Query {
        Query::Script { text: "id && umask".to_owned(), footprint: Footprint::nothing() }
    }

    fn parse(&self, response: &Response) -> Result<Myself, Failure> {
        let text = response.text();
        parse_identity(&text).ok_or_else(|| {
            Failure::new(format!(
                "cannot tell who the shell runs as: `id` and `umask` answered {text:?} {}",
                response.error_text().trim()
            ))
        })
    }
}

/// `uid=1000(kp) gid=1000(kp) groups=1000(kp),10(wheel)`, and the umask in the next line.
fn parse_identity(text: &str) -> Option<Myself> {
    let mut lines = text.lines();
    let words: Vec<&str> = lines.next()?.split(' ').collect();
    let field = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    let user = parse_account(field("uid=")?)?;
    let group = parse_account(field("gid=")?)?;
    let groups = match field("groups=") {
        Some(list) => list.split(',').filter_map(parse_account).map(|account| account.id).collect(),
        None => vec![group.id],
    };
    let umask = u32::from_str_radix(lines.next()?.trim(), 8).ok()?;
    Some(Myself { user, group, groups, umask })
}

/// `0(root)` or `1234`.
fn parse_account(text: &str) -> Option<Account> {
    let (id, name) = match text.split_once('(') {
        Some((id, name)) => (id, name.trim_end_matches(')')),
        None => (text, "UNKNOWN"),
    };
    Some(Account { id: id.parse().ok()?, name: name.to_owned() })
}

/// What answers about users and groups depend on.
pub fn accounts() -> Footprint {
    let files = ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"];
    Footprint::Of(vec![Subject::Accounts]).and(Footprint::Of(files.map(|file| Subject::Path(file.into())).into()))
}

/// Which database an account is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Users,
    Groups,
}

/// Asks for the account of a name or a number; `None` if there is none.
#[derive(Debug, Clone)]
pub struct FindAccount {
    pub database: Database,
    pub name: String,
}

impl Read for FindAccount {
    type Answer = Option<Account>;

    fn query(&self) -> Query {
        let (database, file) = match self.database {
            Database::Users => ("passwd", "/etc/passwd"),
            Database::Groups => ("group", "/etc/group"),
        };
        // hosts without getent (busybox) have no other source of accounts than the files
        let name = quote(&self.name);
        let text = format!(
            "if command -v getent >/dev/null 2>&1; then getent {database} {name}; else \
             while IFS=: read -r n p i r; do if [ \"$n\" = {name} ] || [ \"$i\" = {name} ]; \
             then printf '%s\\n' \"$n:$p:$i:$r\"; exit 0; fi; done <{file}; exit 2; fi"
        );
        Query::Script { text, footprint: accounts() }
    }

    fn parse(&self, response: &Response) -> Result<Option<Account>, Failure> {
        let text = response.text();
        let mut fields = text.lines().next().unwrap_or_default().split(':');
        let (name, id) = (fields.next().unwrap_or_default(), fields.nth(1).and_then(|id| id.parse().ok()));
        match id {
            Some(id) if response.success() => Ok(Some(Account { id, name: name.to_owned() })),
            // a number needs no entry
            _ => Ok(self.name.parse().ok().map(|id| Account { id, name: "UNKNOWN".to_owned() })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_read_with_and_without_names() {
        let me = WhoAmI
            .parse(&Response::output("uid=1000(kp) gid=100(users) groups=100(users),10(wheel),555\n0022\n"))
            .unwrap();
        assert_eq!(me.user, Account { id: 1000, name: "kp".into() });
        assert_eq!(me.group.name, "users");
        assert_eq!(me.groups, [100, 10, 555]);
        assert_eq!(me.umask, 0o022);
        let me = WhoAmI.parse(&Response::output("uid=7 gid=8\n0077\n")).unwrap();
        assert_eq!((me.user.name.as_str(), me.groups.as_slice()), ("UNKNOWN", [8].as_slice()));
        assert!(WhoAmI.parse(&Response::output("bash: id: not found")).is_err());
    }

    #[test]
    fn a_name_without_entry_is_nobody_but_a_number_is_itself() {
        let find = |name: &str| FindAccount { database: Database::Users, name: name.into() };
        let entry = Response::output("mysql:x:27:27:MySQL:/var/lib/mysql:/bin/false\n");
        assert_eq!(find("mysql").parse(&entry).unwrap(), Some(Account { id: 27, name: "mysql".into() }));
        assert_eq!(find("mysql").parse(&Response::missing()).unwrap(), None);
        assert_eq!(find("27").parse(&Response::missing()).unwrap().unwrap().name, "UNKNOWN");
    }
}
