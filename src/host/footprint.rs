//! What a read looked at and what a change touches.

/// One thing on a host that can be read and changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A file, directory or link, by its absolute path.
    Path(String),
    /// A directory and everything below it.
    Tree(String),
    /// A unit of systemd or a service of the init system.
    Unit(String),
    /// All units at once (`daemon-reload`).
    Units,
    /// Installed packages.
    Packages,
    /// Users and groups.
    Accounts,
    /// Anything else, by a name that its module chose (`firewall`, `queues of eth0`).
    Named(String),
}

/// The things that a read looked at or a change touches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Footprint {
    /// Nobody can tell, so all of it.
    Everything,
    /// These and nothing else; none at all if empty.
    Of(Vec<Subject>),
}

impl Footprint {
    /// Nothing on the host.
    pub fn nothing() -> Footprint {
        Footprint::Of(Vec::new())
    }

    pub fn path(path: impl Into<String>) -> Footprint {
        Footprint::Of(vec![Subject::Path(path.into())])
    }

    pub fn tree(path: impl Into<String>) -> Footprint {
        Footprint::Of(vec![Subject::Tree(path.into())])
    }

    pub fn unit(name: impl Into<String>) -> Footprint {
        Footprint::Of(vec![Subject::Unit(name.into())])
    }

    pub fn named(name: impl Into<String>) -> Footprint {
        Footprint::Of(vec![Subject::Named(name.into())])
    }

    /// Both footprints together.
    #[must_use]
    pub fn and(self, other: Footprint) -> Footprint {
        match (self, other) {
            (Footprint::Of(mut left), Footprint::Of(right)) => {
                left.extend(right);
                Footprint::Of(left)
            }
            _ => Footprint::Everything,
        }
    }

    /// True if a change with this footprint may alter the answer of a read with footprint `read`.
    pub fn touches(&self, read: &Footprint) -> bool {
        match (self, read) {
            (Footprint::Of(changed), _) if changed.is_empty() => false,
            (_, Footprint::Of(looked_at)) if looked_at.is_empty() => false,
            (Footprint::Everything, _) | (_, Footprint::Everything) => true,
            (Footprint::Of(changed), Footprint::Of(looked_at)) => {
                changed.iter().any(|change| looked_at.iter().any(|read| change.touches(read)))
            }
        }
    }
}

impl Subject {
    /// A changed path touches reads of itself and of all below it (a directory's mode decides what can be
    /// read there); a changed tree is the same; a read tree is touched by any path inside.
    fn touches(&self, read: &Subject) -> bool {
        match (self, read) {
            (Subject::Path(changed) | Subject::Tree(changed), Subject::Path(read)) => is_within(read, changed),
            (Subject::Path(changed) | Subject::Tree(changed), Subject::Tree(read)) => {
                is_within(read, changed) || is_within(changed, read)
            }
            (Subject::Units, Subject::Unit(_) | Subject::Units) | (Subject::Unit(_), Subject::Units) => true,
            (Subject::Unit(changed), Subject::Unit(read)) => unit_stem(changed) == unit_stem(read),
            (left, right) => left == right,
        }
    }
}

/// True if `path` is `ancestor` or lies below it.
fn is_within(path: &str, ancestor: &str) -> bool {
    let ancestor = ancestor.trim_end_matches('/');
    path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// For people: what it holds.
impl std::fmt::Display for Footprint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Footprint::Of(subjects) = self else { return formatter.write_str("the host") };
        let words: Vec<String> = subjects
            .iter()
            .map(|subject| match subject {
                Subject::Path(path) | Subject::Tree(path) => path.clone(),
                Subject::Unit(name) => format!("unit {name}"),
                Subject::Units => "units".to_owned(),
                Subject::Packages => "packages".to_owned(),
                Subject::Accounts => "users and groups".to_owned(),
                Subject::Named(name) => name.clone(),
            })
            .collect();
        formatter.write_str(&words.join(", "))
    }
}

/// `sshd` and `sshd.service` are one unit.
fn unit_stem(name: &str) -> &str {
    name.strip_suffix(".service").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_touches_reads_of_the_same_thing() {
        let cases = [
            (Footprint::path("/etc/a"), Footprint::path("/etc/a"), true),
            (Footprint::path("/etc/a"), Footprint::path("/etc/ab"), false),
            (Footprint::path("/etc"), Footprint::path("/etc/a"), true),
            (Footprint::path("/etc/a"), Footprint::path("/etc"), false),
            (Footprint::path("/etc/a/b"), Footprint::tree("/etc"), true),
            (Footprint::tree("/"), Footprint::path("/etc"), true),
            (Footprint::unit("sshd"), Footprint::unit("sshd.service"), true),
            (Footprint::Of(vec![Subject::Units]), Footprint::unit("sshd"), true),
            (Footprint::unit("sshd"), Footprint::path("/etc"), false),
            (Footprint::Everything, Footprint::path("/etc"), true),
            (Footprint::path("/etc"), Footprint::Everything, true),
            (Footprint::nothing(), Footprint::Everything, false),
            (Footprint::Everything, Footprint::nothing(), false),
        ];
        for (change, read, touched) in cases {
            assert_eq!(change.touches(&read), touched, "{change:?} on {read:?}");
        }
    }
}
