//! The public keys by which the host proves itself.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "ssh_pub_keys", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r"
section ssh_keys
for trimtab_kind in dsa rsa ecdsa ed25519; do
    for trimtab_file in /etc/ssh /etc/openssh /etc; do
        [ -r $trimtab_file/ssh_host_${trimtab_kind}_key.pub ] || continue
        line $trimtab_kind $trimtab_file/ssh_host_${trimtab_kind}_key.pub
        break
    done
done
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    for (kind, key) in sections.text("ssh_keys").lines().filter_map(|line| line.split_once('=')) {
        let mut words = key.split_whitespace();
        if let (Some(key_type), Some(key)) = (words.next(), words.next()) {
            set(facts, &format!("ssh_host_key_{kind}_public"), key);
            set(facts, &format!("ssh_host_key_{kind}_public_keytype"), key_type);
        }
    }
}
