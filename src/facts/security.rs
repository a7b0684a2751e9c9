//! SELinux, AppArmor and the kernel's FIPS mode.

use crate::value::{Map, object};

use super::{Group, Sections, set, value_in};

pub const GROUP: Group =
    Group { name: "selinux", parts_of: &["min", "apparmor", "fips"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r"
section selinux
line enforce /sys/fs/selinux/enforce
line policyvers /sys/fs/selinux/policyvers
text /etc/selinux/config
section security
[ ! -d /sys/kernel/security/apparmor ] || echo apparmor=yes
line fips /proc/sys/crypto/fips_enabled
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    set(facts, "selinux", selinux(sections.text("selinux")));
    let value = |key: &str| sections.value("security", key);
    let apparmor = if value("apparmor").is_some() { "enabled" } else { "disabled" };
    set(facts, "apparmor", object([("status", apparmor.into())]));
    set(facts, "fips", value("fips") == Some("1"));
    set(facts, "selinux_python_present", true);
}

fn selinux(text: &str) -> Map {
    let Some(enforce) = value_in(text, "enforce") else {
        return object([("status", "disabled".into())]);
    };
    let config = |key: &str| value_in(text, key).map_or_else(|| "unknown".to_owned(), |value| value.trim().to_owned());
    object([
        ("status", "enabled".into()),
        ("policyvers", value_in(text, "policyvers").and_then(|version| version.trim().parse::<i64>().ok()).into()),
        ("config_mode", config("SELINUX").into()),
        ("mode", if enforce == "1" { "enforcing" } else { "permissive" }.into()),
        ("type", config("SELINUXTYPE").into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn selinux_is_what_the_kernel_and_its_file_say() {
        let text = "enforce=0\npolicyvers=31\n# SELINUX= can take\nSELINUX=enforcing\nSELINUXTYPE=targeted\n";
        assert_eq!(
            Value::from(selinux(text)).to_repr(),
            "{'status': 'enabled', 'policyvers': 31, 'config_mode': 'enforcing', 'mode': 'permissive', 'type': 'targeted'}"
        );
        assert_eq!(Value::from(selinux("SELINUX=disabled\n")).to_repr(), "{'status': 'disabled'}");
    }
}
