//! By what names the host reaches storage over a network, and its own addresses.

use crate::value::{Map, Value};

use super::{Group, Sections, set};

pub const GROUP: Group = Group {
    name: "initiators",
    parts_of: &["network", "iscsi", "nvme", "fibre_channel_wwn", "locally_reachable_ips"],
    needs: &[],
    script: SCRIPT,
    parse,
};

const SCRIPT: &str = r"
section iscsi
text /etc/iscsi/initiatorname.iscsi
section nvme
line hostnqn /etc/nvme/hostnqn
section fc_host
for trimtab_file in /sys/class/fc_host/*/port_name; do line wwn $trimtab_file; done
section reachable4
if present ip; then ip -4 route show table local; fi 2>/dev/null
section reachable6
if present ip; then ip -6 route show table local; fi 2>/dev/null
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let texts = |texts: Vec<&str>| Value::list(texts.into_iter().map(Value::from).collect());
    set(facts, "iscsi_iqn", sections.value("iscsi", "InitiatorName").unwrap_or_default().trim());
    set(facts, "hostnqn", sections.value("nvme", "hostnqn").unwrap_or_default().trim());
    let ports = sections.text("fc_host").lines().filter_map(|line| line.strip_prefix("wwn="));
    set(facts, "fibre_channel_wwn", texts(ports.map(|port| port.trim().trim_start_matches("0x")).collect()));
    let reachable = |section: &str| {
        let routes = sections.text(section).lines().filter_map(|line| line.trim().strip_prefix("local "));
        let mut addresses: Vec<&str> = Vec::new();
        for address in routes.filter_map(|route| route.split_whitespace().next()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        texts(addresses)
    };
    let both = Map::from_iter([("ipv4".into(), reachable("reachable4")), ("ipv6".into(), reachable("reachable6"))]);
    set(facts, "locally_reachable_ips", both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read() {
        let output = "\u{1e}iscsi\n## made by hand\nInitiatorName=iqn.2004-10.org.example:01:a\n\u{1e}nvme\nhostnqn=nqn.2014-08.org.nvmexpress:uuid:1\n\u{1e}fc_host\nwwn=0x10000090fa1658de\n\u{1e}reachable4\nlocal 127.0.0.0/8 dev lo proto kernel scope host src 127.0.0.1\nlocal 127.0.0.1 dev lo\nbroadcast 127.255.255.255 dev lo\n\u{1e}reachable6\nlocal ::1 dev lo\n";
        let mut facts = Map::new();
        parse(&Sections::new(output), &mut facts);
        let shown = |name: &str| facts.get(name).map(Value::to_repr).unwrap_or_default();
        assert_eq!(shown("ansible_iscsi_iqn"), "'iqn.2004-10.org.example:01:a'");
        assert_eq!(shown("ansible_hostnqn"), "'nqn.2014-08.org.nvmexpress:uuid:1'");
        assert_eq!(shown("ansible_fibre_channel_wwn"), "['10000090fa1658de']");
        assert_eq!(shown("ansible_locally_reachable_ips"), "{'ipv4': ['127.0.0.0/8', '127.0.0.1'], 'ipv6': ['::1']}");
    }
}
