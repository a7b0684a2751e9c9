//! The kernel, the machine and the names of the host.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group {
    name: "platform",
    parts_of: &[
        "min",
        "architecture",
        "machine",
        "machine_id",
        "kernel",
        "kernel_version",
        "system",
        "userspace_architecture",
        "userspace_bits",
        "nodename",
        "hostname",
        "fqdn",
        "domain",
        "chroot",
        "is_chroot",
        "loadavg",
        "uptime",
    ],
    needs: &[],
    script: SCRIPT,
    parse,
};

// Python's getfqdn() resolves the name to an address and takes the names of that address
const SCRIPT: &str = r#"
section platform
line system /proc/sys/kernel/ostype
line nodename /proc/sys/kernel/hostname
line kernel /proc/sys/kernel/osrelease
line kernel_version /proc/sys/kernel/version
line uptime /proc/uptime
line loadavg /proc/loadavg
line machine_id /etc/machine-id
line dbus_machine_id /var/lib/dbus/machine-id
printf 'machine=%s\n' "$(uname -m)"
if [ -r /proc/1/root/. ] && ! [ / -ef /proc/1/root/. ]; then echo chroot=yes; fi
printf 'bits=%s\n' "$(getconf LONG_BIT 2>/dev/null)"
section fqdn
trimtab_name=
{ read -r trimtab_name </proc/sys/kernel/hostname; } 2>/dev/null
trimtab_address=$(getent ahosts "$trimtab_name" 2>/dev/null)
trimtab_address=${trimtab_address%%[!0-9a-fA-F.:]*}
if [ -n "$trimtab_address" ]; then getent hosts "$trimtab_address"; elif ! present getent; then hostname -f; fi 2>/dev/null
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let value = |key: &str| sections.value("platform", key);
    let machine = value("machine").unwrap_or_default();
    let nodename = value("nodename").unwrap_or_default();
    set(facts, "system", value("system").unwrap_or("Linux"));
    set(facts, "kernel", value("kernel"));
    set(facts, "kernel_version", value("kernel_version"));
    set(facts, "machine", machine);
    set(facts, "architecture", architecture(machine));
    let bits =
        value("bits").filter(|bits| !bits.is_empty()).unwrap_or(if machine.contains("64") { "64" } else { "32" });
    set(facts, "userspace_bits", bits);
    set(
        facts,
        "userspace_architecture",
        if bits == "32" { userspace_of_32_bits(machine) } else { architecture(machine) },
    );
    set(facts, "nodename", nodename);
    set(facts, "hostname", nodename.split('.').next().unwrap_or_default());
    let fqdn = full_name(sections.text("fqdn"), nodename);
    set(facts, "domain", fqdn.split_once('.').map_or("", |(_, domain)| domain));
    set(facts, "fqdn", fqdn);
    if let Some(id) = value("machine_id").or(value("dbus_machine_id")) {
        set(facts, "machine_id", id);
    }
    set(facts, "is_chroot", value("chroot").is_some());
    let uptime = value("uptime").and_then(|uptime| uptime.split('.').next()?.parse::<i64>().ok());
    set(facts, "uptime_seconds", uptime.unwrap_or(0));
    let loads: Vec<f64> =
        value("loadavg").unwrap_or_default().split(' ').take(3).filter_map(|load| load.parse().ok()).collect();
    if let [one, five, fifteen] = loads[..] {
        let loads = crate::value::object([("1m", one.into()), ("5m", five.into()), ("15m", fifteen.into())]);
        set(facts, "loadavg", loads);
    }
}

/// All of Intel's 32-bit machines are one architecture.
fn architecture(machine: &str) -> &str {
    if machine.len() == 4 && machine.starts_with('i') && machine.ends_with("86") { "i386" } else { machine }
}

fn userspace_of_32_bits(machine: &str) -> &str {
    if machine == "x86_64" { "i386" } else { architecture(machine) }
}

/// Of the names of the host's address the first with a domain, else the first; else the host's own name.
fn full_name<'a>(answer: &'a str, nodename: &'a str) -> &'a str {
    let line = answer.lines().next().unwrap_or_default();
    let is_address = |word: &str| word.parse::<std::net::IpAddr>().is_ok();
    let names: Vec<&str> = line.split_whitespace().filter(|word| !is_address(word)).collect();
    names.iter().find(|name| name.contains('.')).or(names.first()).copied().unwrap_or(nodename)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_name_has_a_domain_if_any_has() {
        let cases = [
            ("10.0.0.1  kp001.example.com kp001\n", "kp001.example.com"),
            ("10.0.0.1  kp001 kp001.example.com\n", "kp001.example.com"),
            ("127.0.0.1 localhost kp001\n", "localhost"),
            ("kp001.example.com\n", "kp001.example.com"),
            ("", "kp001"),
        ];
        for (answer, name) in cases {
            assert_eq!(full_name(answer, "kp001"), name, "{answer}");
        }
    }

    #[test]
    fn machines_of_32_bits_are_one_architecture() {
        for (machine, name) in [("i686", "i386"), ("aarch64", "aarch64"), ("x86_64", "x86_64")] {
            assert_eq!(architecture(machine), name);
        }
    }
}
