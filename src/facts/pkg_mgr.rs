//! The package manager.

use crate::value::Map;

use super::{Group, Sections, known, set};

pub const GROUP: Group = Group { name: "pkg_mgr", parts_of: &["min"], needs: &["distribution"], script: SCRIPT, parse };

const SCRIPT: &str = r"
section pkg_mgr
for trimtab_file in /usr/bin/rpm-ostree /run/ostree-booted /usr/bin/dnf5 /usr/bin/dnf-3 /usr/bin/dnf /usr/bin/yum \
    /usr/bin/apt-get /usr/bin/zypper /usr/bin/pacman /sbin/apk /usr/bin/emerge /usr/bin/opkg /bin/opkg \
    /usr/bin/xbps-install; do
    [ ! -e $trimtab_file ] || echo $trimtab_file
done
";

/// Where a manager is installed, and its name; the first that is there is the one of its kind of system.
const MANAGERS: &[(&str, &str)] = &[
    ("/usr/bin/dnf5", "dnf5"),
    ("/usr/bin/dnf-3", "dnf"),
    ("/usr/bin/dnf", "dnf"),
    ("/usr/bin/yum", "yum"),
    ("/usr/bin/apt-get", "apt"),
    ("/usr/bin/zypper", "zypper"),
    ("/usr/bin/pacman", "pacman"),
    ("/sbin/apk", "apk"),
    ("/usr/bin/emerge", "portage"),
    ("/usr/bin/opkg", "opkg"),
    ("/bin/opkg", "opkg"),
    ("/usr/bin/xbps-install", "xbps"),
];

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let manager = manager(sections.text("pkg_mgr"), known(facts, "os_family"), known(facts, "distribution"));
    set(facts, "pkg_mgr", manager);
}

fn manager(found: &str, family: &str, distribution: &str) -> &'static str {
    let has = |path: &str| found.lines().any(|line| line == path);
    if has("/run/ostree-booted") && has("/usr/bin/rpm-ostree") {
        return "atomic_container";
    }
    let mut there = MANAGERS.iter().filter(|(path, _)| has(path)).map(|(_, name)| *name);
    match family {
        // an installed dnf may stand beside the apt of the system, and the reverse
        "Debian" if has("/usr/bin/apt-get") => "apt",
        "Suse" if has("/usr/bin/zypper") => "zypper",
        // dnf5 is the one in charge where it is also called dnf, which Fedora does
        _ if has("/usr/bin/dnf5") && distribution != "Fedora" && (has("/usr/bin/dnf-3") || has("/usr/bin/dnf")) => {
            "dnf"
        }
        _ => there.next().unwrap_or("unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_the_one_of_the_system() {
        let cases = [
            ("/usr/bin/yum", "RedHat", "CentOS", "yum"),
            ("/usr/bin/dnf-3\n/usr/bin/dnf\n/usr/bin/yum", "RedHat", "openEuler", "dnf"),
            ("/usr/bin/yum\n/usr/bin/dnf", "RedHat", "EulerOS", "dnf"),
            ("/usr/bin/dnf-3\n/usr/bin/apt-get", "Debian", "Debian", "apt"),
            ("/usr/bin/dnf5\n/usr/bin/dnf", "RedHat", "Fedora", "dnf5"),
            ("/sbin/apk", "Alpine", "Alpine", "apk"),
            ("", "RedHat", "CentOS", "unknown"),
        ];
        for (found, family, distribution, name) in cases {
            assert_eq!(manager(found, family, distribution), name, "{found}");
        }
    }
}
