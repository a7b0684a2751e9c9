//! What starts and stops services.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "service_mgr", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r#"
section service_mgr
line first_process /proc/1/comm
if present systemctl; then
    for trimtab_file in /run/systemd/system /dev/.run/systemd /dev/.systemd; do
        [ ! -d $trimtab_file ] || { echo running=systemd; break; }
    done
    [ ! -L /sbin/init ] || case $(readlink /sbin/init) in */systemd) echo installed=systemd ;; esac
    systemctl --version 2>/dev/null
fi
! present initctl || [ ! -d /etc/init ] || echo upstart=yes
[ ! -e /sbin/openrc ] || echo openrc=yes
[ ! -d /etc/init.d ] || echo sysvinit=yes
"#;

/// Names of the first process that mean a manager of another name.
const FIRST_PROCESSES: &[(&str, &str)] =
    &[("procd", "openwrt_init"), ("runit-init", "runit"), ("svscan", "svc"), ("openrc-init", "openrc")];

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let text = sections.text("service_mgr");
    set(facts, "service_mgr", manager(text));
    if let Some((version, features)) = systemd(text).filter(|_| super::value_in(text, "running").is_some()) {
        let systemd = crate::value::object([("version", version.into()), ("features", features.into())]);
        set(facts, "systemd", systemd);
    }
}

fn manager(text: &str) -> &str {
    let has = |key: &str| super::value_in(text, key);
    // `init` may be anything, and a shell is the first process of a container
    if let Some(first) = has("first_process").map(str::trim).filter(|name| *name != "init" && !name.ends_with("sh")) {
        let known = FIRST_PROCESSES.iter().find(|(process, _)| *process == first);
        return known.map_or(first, |(_, manager)| manager);
    }
    let order = [
        ("running", "systemd"),
        ("upstart", "upstart"),
        ("openrc", "openrc"),
        ("installed", "systemd"),
        ("sysvinit", "sysvinit"),
    ];
    order.into_iter().find(|(key, _)| has(key).is_some()).map_or("service", |(_, manager)| manager)
}

/// The number in `systemd 219` and the line of features behind it.
fn systemd(text: &str) -> Option<(i64, &str)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("systemd "));
    let version = lines.next()?.split_whitespace().nth(1)?;
    let digits = version.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((digits.parse().ok()?, lines.next().filter(|line| line.starts_with(['+', '-'])).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_is_known_by_the_first_process_or_by_its_traces() {
        let cases = [
            ("first_process=systemd\nrunning=systemd\n", "systemd"),
            ("first_process=init\nrunning=systemd\n", "systemd"),
            ("first_process=init\nupstart=yes\nsysvinit=yes\n", "upstart"),
            ("first_process=bash\nsysvinit=yes\n", "sysvinit"),
            ("first_process=dumb-init\n", "dumb-init"),
            ("first_process=runit-init\n", "runit"),
            ("", "service"),
        ];
        for (text, name) in cases {
            assert_eq!(manager(text), name, "{text}");
        }
        assert_eq!(systemd("a\nsystemd 219\n+PAM +AUDIT\nopenrc=yes"), Some((219, "+PAM +AUDIT")));
        assert_eq!(systemd("systemd 252 (252.30-1)\nsysvinit=yes"), Some((252, "")));
    }
}
