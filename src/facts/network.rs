//! Network interfaces, their addresses and the default routes.

use std::net::Ipv4Addr;

use crate::value::{Map, Value, object};

use super::{Group, Sections, set, value_in};

pub const GROUP: Group = Group {
    name: "network",
    parts_of: &["interfaces", "default_ipv4", "default_ipv6", "all_ipv4_addresses", "all_ipv6_addresses"],
    needs: &[],
    script: SCRIPT,
    parse,
};

// `route get` only asks the kernel's table; nothing is sent to that address
const SCRIPT: &str = r#"
section interfaces
for trimtab_interface in /sys/class/net/*; do
    [ -e "$trimtab_interface/mtu" ] || continue
    printf 'interface=%s\n' "${trimtab_interface##*/}"
    for trimtab_name in address mtu operstate type flags speed; do
        line $trimtab_name "$trimtab_interface/$trimtab_name"
    done
    if [ -d "$trimtab_interface/bonding" ]; then
        for trimtab_name in slaves mode miimon lacp_rate primary all_slaves_active; do
            line bond_$trimtab_name "$trimtab_interface/bonding/$trimtab_name"
        done
    fi
    if [ -d "$trimtab_interface/bridge" ]; then
        line bridge_id "$trimtab_interface/bridge/bridge_id"
        line bridge_stp "$trimtab_interface/bridge/stp_state"
        for trimtab_file in "$trimtab_interface"/brif/*; do
            [ ! -e "$trimtab_file" ] || printf 'port=%s\n' "${trimtab_file##*/}"
        done
    fi
done
section interface-links
ls -ld /sys/class/net/*/device /sys/class/net/*/device/driver/module 2>/dev/null
section addresses
ip addr show 2>/dev/null
section route4
ip -4 route get 8.8.8.8 2>/dev/null
section route6
ip -6 route get 2404:6800:400a:800::1012 2>/dev/null
"#;

/// One address of an interface, as ip(8) lists it.
struct Address<'a> {
    interface: &'a str,
    family: &'a str,
    address: &'a str,
    prefix: &'a str,
    broadcast: &'a str,
    scope: &'a str,
    /// The name it goes by: the interface or an alias such as `eth0:1`.
    label: &'a str,
}

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let addresses = addresses(sections.text("addresses"));
    let links = sections.text("interface-links");
    let mut interfaces: Vec<(&str, Map)> = Vec::new();
    for block in sections.text("interfaces").split("interface=").skip(1) {
        let (name, text) = block.split_once('\n').unwrap_or((block, ""));
        interfaces.push((name, interface(name, text, links, &addresses)));
    }
    let of_family = |family: &str, local: &str| -> Vec<Value> {
        let wanted = addresses.iter().filter(|address| address.family == family && !address.address.starts_with(local));
        wanted.map(|address| address.address.into()).collect()
    };
    set(facts, "all_ipv4_addresses", of_family("inet", "127."));
    set(facts, "all_ipv6_addresses", of_family("inet6", "::1"));
    for (name, family, section) in [("default_ipv4", "inet", "route4"), ("default_ipv6", "inet6", "route6")] {
        set(facts, name, default_address(sections.text(section), family, &addresses, &interfaces));
    }
    set(facts, "interfaces", interfaces.iter().map(|(name, _)| Value::from(*name)).collect::<Vec<_>>());
    for (name, map) in interfaces {
        set(facts, &name.replace([':', '-'], "_"), map);
    }
}

/// What is known of one interface.
fn interface(name: &str, text: &str, links: &str, addresses: &[Address<'_>]) -> Map {
    let value = |key: &str| value_in(text, key).map(str::trim);
    let mut map = object([("device", name.into())]);
    if let Some(address) = value("address").filter(|address| *address != "00:00:00:00:00:00") {
        map.insert("macaddress".into(), address.into());
    }
    map.extend(value("mtu").and_then(|mtu| mtu.parse::<i64>().ok()).map(|mtu| ("mtu".into(), mtu.into())));
    map.insert("active".into(), (value("operstate") != Some("down")).into());
    if let Some(module) = link_target(links, &format!("/sys/class/net/{name}/device/driver/module")) {
        map.insert("module".into(), module.into());
    }
    let kind = match value("type") {
        Some("1") => "ether",
        Some("32") => "infiniband",
        Some("512") => "ppp",
        Some("772") => "loopback",
        Some("65534") => "tunnel",
        _ => "unknown",
    };
    map.insert("type".into(), kind.into());
    bond(&mut map, text);
    bridge(&mut map, text);
    if let Some(id) = link_target(links, &format!("/sys/class/net/{name}/device")) {
        map.insert("pciid".into(), id.into());
    }
    map.extend(value("speed").and_then(|speed| speed.parse::<i64>().ok()).map(|speed| ("speed".into(), speed.into())));
    // IFF_PROMISC of <linux/if.h>
    let flags = value("flags").and_then(|flags| u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    map.insert("promisc".into(), flags.is_some_and(|flags| flags & 0x100 != 0).into());
    let mut secondaries: Vec<Value> = Vec::new();
    let mut sixth: Vec<Value> = Vec::new();
    for address in addresses.iter().filter(|address| address.interface == name) {
        if address.family == "inet6" {
            sixth.push(sixth_version(address).into());
        } else if map.contains_key("ipv4") {
            secondaries.push(fourth_version(address).into());
        } else {
            map.insert("ipv4".into(), fourth_version(address).into());
        }
    }
    if !secondaries.is_empty() {
        map.insert("ipv4_secondaries".into(), secondaries.into());
    }
    if !sixth.is_empty() {
        map.insert("ipv6".into(), sixth.into());
    }
    map
}

fn bond(map: &mut Map, text: &str) {
    let Some(mode) = value_in(text, "bond_mode") else { return };
    let first = |key: &str| value_in(text, key).and_then(|line| line.split_whitespace().next());
    let slaves = value_in(text, "bond_slaves").unwrap_or_default().split_whitespace();
    map.insert("type".into(), "bonding".into());
    map.insert("slaves".into(), slaves.map(Value::from).collect::<Vec<_>>().into());
    map.insert("mode".into(), mode.split_whitespace().next().into());
    map.insert("miimon".into(), first("bond_miimon").into());
    map.insert("lacp_rate".into(), first("bond_lacp_rate").into());
    if let Some(primary) = first("bond_primary") {
        map.insert("primary".into(), primary.into());
        map.insert("all_slaves_active".into(), (first("bond_all_slaves_active") == Some("1")).into());
    }
}

fn bridge(map: &mut Map, text: &str) {
    let Some(id) = value_in(text, "bridge_id") else { return };
    let ports = text.lines().filter_map(|line| line.strip_prefix("port="));
    map.insert("type".into(), "bridge".into());
    map.insert("interfaces".into(), ports.map(Value::from).collect::<Vec<_>>().into());
    map.insert("id".into(), id.trim().into());
    map.insert("stp".into(), (value_in(text, "bridge_stp") == Some("1")).into());
}

/// The last part of the link of this name in a listing of `ls -l`.
fn link_target<'a>(listing: &'a str, path: &str) -> Option<&'a str> {
    let target = listing.lines().find_map(|line| {
        let (left, target) = line.split_once(" -> ")?;
        (left.split_whitespace().last() == Some(path)).then_some(target)
    })?;
    target.trim_end_matches('/').rsplit('/').next()
}

fn addresses(text: &str) -> Vec<Address<'_>> {
    let mut interface = "";
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            // `2: eth0@if5: <BROADCAST,…>`
            interface =
                words.get(1).map_or("", |name| name.trim_end_matches(':').split('@').next().unwrap_or_default());
            continue;
        }
        let (Some(family @ &("inet" | "inet6")), Some(address)) = (words.first(), words.get(1)) else { continue };
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied();
        let (address, prefix) = address.split_once('/').unwrap_or((address, "32"));
        let label =
            words.last().filter(|label| label.split(':').next() == Some(interface)).copied().unwrap_or(interface);
        found.push(Address {
            interface,
            family,
            address,
            prefix,
            broadcast: after("brd").unwrap_or_default(),
            scope: after("scope").unwrap_or_default(),
            label,
        });
    }
    found
}

fn fourth_version(address: &Address<'_>) -> Map {
    let bits = address.prefix.parse::<u32>().ok().filter(|bits| *bits <= 32).unwrap_or(32);
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    let network = address.address.parse::<Ipv4Addr>().map(|ip| Ipv4Addr::from_bits(ip.to_bits() & mask).to_string());
    object([
        ("address", address.address.into()),
        ("broadcast", address.broadcast.into()),
        ("netmask", Ipv4Addr::from_bits(mask).to_string().into()),
        ("network", network.unwrap_or_default().into()),
        ("prefix", address.prefix.into()),
    ])
}

fn sixth_version(address: &Address<'_>) -> Map {
    object([("address", address.address.into()), ("prefix", address.prefix.into()), ("scope", address.scope.into())])
}

/// The interface and address by which the world is reached; empty if it is not.
fn default_address(route: &str, family: &str, addresses: &[Address<'_>], interfaces: &[(&str, Map)]) -> Map {
    let words: Vec<&str> = route.lines().next().unwrap_or_default().split_whitespace().collect();
    let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied();
    let (Some(device), true) = (after("dev"), words.first() != Some(&"unreachable")) else { return Map::new() };
    let mut map = object([("interface", device.into())]);
    let source = after("src");
    map.extend(source.map(|source| ("address".into(), source.into())));
    map.extend(after("via").map(|gateway| ("gateway".into(), gateway.into())));
    let mut matching = addresses.iter().filter(|address| address.family == family && Some(address.address) == source);
    let Some(address) = matching.next() else { return map };
    if family == "inet" {
        map.extend(fourth_version(address));
        map.insert("alias".into(), address.label.into());
    } else {
        map.extend(sixth_version(address));
    }
    let interface = interfaces.iter().find(|(name, _)| *name == address.interface);
    for key in ["macaddress", "mtu", "type"] {
        let value = interface.and_then(|(_, interface)| interface.get(key));
        map.extend(value.map(|value| (Value::from(key), value.clone())));
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\u{1e}interfaces
interface=bond0
address=52:54:00:00:00:01
mtu=9000
operstate=up
type=1
flags=0x1103
speed=25000
bond_slaves=eth0 eth1
bond_mode=802.3ad 4
bond_miimon=100
bond_lacp_rate=fast 1
interface=br-ctl
address=52:54:00:00:00:09
mtu=1500
operstate=down
type=1
flags=0x1003
bridge_id=8000.525400000009
bridge_stp=0
port=eth3
interface=lo
address=00:00:00:00:00:00
mtu=65536
operstate=unknown
type=772
flags=0x9
\u{1e}interface-links
lrwxrwxrwx 1 root root 0 Jan 1 00:00 /sys/class/net/bond0/device -> ../../../0000:7d:00.0
lrwxrwxrwx 1 root root 0 Jan 1 00:00 /sys/class/net/bond0/device/driver/module -> ../../../../module/hns3
\u{1e}addresses
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
    inet6 ::1/128 scope host
3: bond0@eth0: <BROADCAST,MULTICAST,UP> mtu 9000
    link/ether 52:54:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.17/26 brd 192.0.2.63 scope global bond0
       valid_lft forever preferred_lft forever
    inet 192.0.2.80/32 scope global secondary bond0:1
    inet6 fe80::1/64 scope link
\u{1e}route4
8.8.8.8 via 192.0.2.1 dev bond0 src 192.0.2.17 uid 0
    cache
\u{1e}route6
";

    #[test]
    fn interfaces_addresses_and_routes_fit_together() {
        let mut facts = Map::new();
        parse(&Sections::new(OUTPUT), &mut facts);
        let of = |name: &str| facts[name].to_repr();
        assert_eq!(of("ansible_interfaces"), "['bond0', 'br-ctl', 'lo']");
        assert_eq!(of("ansible_all_ipv4_addresses"), "['192.0.2.17', '192.0.2.80']");
        assert_eq!(of("ansible_default_ipv6"), "{}");
        assert_eq!(
            of("ansible_default_ipv4"),
            "{'interface': 'bond0', 'address': '192.0.2.17', 'gateway': '192.0.2.1', 'broadcast': '192.0.2.63', \
             'netmask': '255.255.255.192', 'network': '192.0.2.0', 'prefix': '26', 'alias': 'bond0', \
             'macaddress': '52:54:00:00:00:01', 'mtu': 9000, 'type': 'bonding'}"
        );
        let bond = facts["ansible_bond0"].clone();
        let of = |name: &str| bond.get(name).unwrap().to_repr();
        assert_eq!(
            ["slaves", "mode", "lacp_rate", "module", "pciid", "promisc", "speed"].map(of),
            ["['eth0', 'eth1']", "'802.3ad'", "'fast'", "'hns3'", "'0000:7d:00.0'", "True", "25000"]
        );
        assert_eq!(bond.get("ipv4_secondaries").unwrap().as_list().unwrap().len(), 1);
        let bridge = facts["ansible_br_ctl"].clone();
        assert_eq!(bridge.get("interfaces").unwrap().to_repr(), "['eth3']");
        assert_eq!(bridge.get("active"), Some(&Value::Bool(false)));
        assert!(facts["ansible_lo"].get("macaddress").is_none());
    }
}
