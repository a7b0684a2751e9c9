//! Filters about IP addresses, as `ansible.utils` and `ansible.netcommon` have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Filter;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(
        &["ipaddr", "ansible.utils.ipaddr", "ansible.netcommon.ipaddr"],
        &["value", "query"],
        "the address or network, or a part of it; false if it is none",
        |call| filter(call, None),
    ),
    entry(
        &["ipv4", "ansible.utils.ipv4", "ansible.netcommon.ipv4"],
        &["value", "query"],
        "as ipaddr, for IPv4 alone",
        |call| filter(call, Some(4)),
    ),
    entry(
        &["ipv6", "ansible.utils.ipv6", "ansible.netcommon.ipv6"],
        &["value", "query"],
        "as ipaddr, for IPv6 alone",
        |call| filter(call, Some(6)),
    ),
    entry(
        &["ipwrap", "ansible.utils.ipwrap", "ansible.netcommon.ipwrap"],
        &["value"],
        "an IPv6 address in brackets, others as they are",
        |call| {
            Ok(each(call.value()?, &|value| {
                let text = value.to_text();
                let (address, rest) =
                    text.split_once('/').map_or((&*text, None), |(address, rest)| (address, Some(rest)));
                Ok(match (address.parse::<Ipv6Addr>(), rest) {
                    (Ok(_), Some(rest)) => Value::from(format!("[{address}]/{rest}")),
                    (Ok(_), None) => Value::from(format!("[{address}]")),
                    (Err(_), _) => value.clone(),
                })
            })?
            .unwrap_or_default())
        },
    ),
    entry(
        &["nthhost", "ansible.utils.nthhost", "ansible.netcommon.nthhost"],
        &["value", "query"],
        "the address at a place of the network",
        |call| {
            let network = Network::parse(&call.text()?);
            Ok(network
                .and_then(|network| network.nth(call.required_int(1).ok()?))
                .map_or(Value::Bool(false), |address| Value::from(address.to_string())))
        },
    ),
];

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    pub(super) address: IpAddr,
    pub(super) prefix: u32,
    /// True if the prefix was written.
    pub(super) written: bool,
}

impl Network {
    pub(super) fn parse(text: &str) -> Option<Network> {
        let (address, prefix) =
            text.trim().split_once('/').map_or((text.trim(), None), |(left, right)| (left, Some(right)));
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = match prefix {
            None => bits,
            Some(prefix) => match prefix.parse::<u32>() {
                Ok(length) => length,
                Err(_) => {
                    let mask = u32::from(prefix.parse::<Ipv4Addr>().ok()?);
                    let length = mask.leading_ones();
                    (mask.checked_shl(length).unwrap_or(0) == 0).then_some(length)?
                }
            },
        };
        (length <= bits).then_some(Network { address, prefix: length, written: prefix.is_some() })
    }

    pub(super) fn bits(&self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    pub(super) fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        }
    }

    pub(super) fn with_number(&self, number: u128) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        }
    }

    /// The bits of the host part, all set.
    fn host_bits(&self) -> u128 {
        let free = self.bits() - self.prefix;
        if free == 128 { u128::MAX } else { (1u128 << free) - 1 }
    }

    pub(super) fn first(&self) -> u128 {
        self.number() & !self.host_bits()
    }

    fn last(&self) -> u128 {
        self.number() | self.host_bits()
    }

    fn nth(&self, index: i64) -> Option<IpAddr> {
        let step = u128::from(index.unsigned_abs());
        let number = if index < 0 {
            self.last().checked_sub(step - 1).filter(|number| *number >= self.first())
        } else {
            self.first().checked_add(step).filter(|number| *number <= self.last())
        };
        number.map(|number| self.with_number(number))
    }

    fn is_host(&self) -> bool {
        self.prefix == self.bits()
    }

    pub(super) fn is_network(&self) -> bool {
        !self.is_host() && self.number() == self.first()
    }

    /// How many addresses there are but for one.
    fn more_than(&self, addresses: u128) -> bool {
        self.host_bits() >= addresses
    }

    /// True if any of the networks holds the address.
    fn is_of(&self, networks: &[&str]) -> bool {
        networks
            .iter()
            .filter_map(|network| Network::parse(network))
            .any(|network| network.bits() == self.bits() && (network.first()..=network.last()).contains(&self.number()))
    }

    /// True for what is not routed in the internet (IANA's registries of addresses for special purposes).
    fn is_private(&self) -> bool {
        self.is_of(&[
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "::/128",
            "::1/128",
            "::ffff:0:0/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "2001:db8::/32",
            "2002::/16",
            "fc00::/7",
            "fe80::/10",
        ])
    }

    fn text_of(&self, address: u128) -> String {
        self.with_number(address).to_string()
    }

    fn mask(&self) -> IpAddr {
        self.with_number(if self.bits() == 32 { u128::from(u32::MAX) } else { u128::MAX } & !self.host_bits())
    }

    /// The same address in the other version of the protocol.
    fn translated(&self) -> Option<String> {
        match self.address {
            IpAddr::V4(address) => Some(format!("{}/{}", address.to_ipv6_mapped(), 96 + self.prefix)),
            IpAddr::V6(address) if self.prefix >= 96 => {
                let old = address.to_ipv4_mapped().or_else(|| {
                    (self.number() >> 32 == 0 && self.number() > 1).then(|| Ipv4Addr::from(self.number() as u32))
                });
                old.map(|old| format!("{old}/{}", self.prefix - 96))
            }
            IpAddr::V6(_) => None,
        }
    }

    /// The name under which the domain name system knows the address.
    fn reverse_name(&self) -> String {
        match self.address {
            IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                format!("{d}.{c}.{b}.{a}.in-addr.arpa.")
            }
            IpAddr::V6(address) => {
                let digits = format!("{:032x}", u128::from(address));
                digits.chars().rev().map(|digit| format!("{digit}.")).collect::<String>() + "ip6.arpa."
            }
        }
    }

    /// The part that a query names; None if this network has no such part, false if it is no such address.
    fn part(&self, query: &str, written: &Value) -> Result<Value> {
        let text = |address: u128| Value::from(self.text_of(address));
        let with_prefix = || Value::from(format!("{}/{}", self.address, self.prefix));
        let some = |value: Option<Value>| Ok(value.unwrap_or_default());
        let holds = |holds: bool| Ok(if holds { written.clone() } else { Value::Null });
        let is_six = self.bits() == 128;
        Ok(match query {
            "" => self.whole(),
            "address" | "ip" => {
                let is_address = !self.is_network() || is_six || !self.more_than(2);
                return some(is_address.then(|| text(self.number())));
            }
            "network" | "network_id" => text(self.first()),
            "netmask" => Value::from(self.mask().to_string()),
            "hostmask" | "wildcard" => text(self.host_bits()),
            "broadcast" => return some(self.more_than(2).then(|| text(self.last()))),
            "prefix" => Value::Int(i64::from(self.prefix)),
            "size" => Value::big(num_bigint::BigInt::from(self.host_bits()) + 1),
            "size_usable" => match self.host_bits() {
                0 => Value::Int(0),
                1 => Value::Int(2),
                more => Value::big(num_bigint::BigInt::from(more) - 1),
            },
            "subnet" | "network/prefix" => Value::from(format!("{}/{}", self.text_of(self.first()), self.prefix)),
            "net" => return some(self.is_network().then(with_prefix)),
            "host" => {
                let is_host = !self.is_network() || is_six || !self.more_than(2);
                return some(is_host.then(with_prefix));
            }
            "host/prefix" | "address/prefix" | "gateway" | "gw" | "hostnet" | "router" => {
                let is_edge = self.number() == self.first() || (!is_six && self.number() == self.last());
                if self.more_than(2) && is_edge { Value::Bool(false) } else { with_prefix() }
            }
            "ip/prefix" => return some(self.has_host().then(with_prefix)),
            "ip_netmask" => {
                return some(self.has_host().then(|| Value::from(format!("{} {}", self.address, self.mask()))));
            }
            "network_netmask" => Value::from(format!("{} {}", self.text_of(self.first()), self.mask())),
            "network_wildcard" => {
                Value::from(format!("{} {}", self.text_of(self.first()), self.text_of(self.host_bits())))
            }
            "cidr" => with_prefix(),
            "type" => Value::from(if self.is_network() { "network" } else { "address" }),
            "version" => Value::Int(if is_six { 6 } else { 4 }),
            "bool" => Value::Bool(true),
            "int" if self.written => Value::from(format!("{}/{}", self.number(), self.prefix)),
            "int" => Value::big(num_bigint::BigInt::from(self.number())),
            "first_usable" | "next_usable" | "last_usable" | "previous_usable" | "range_usable" | "peer"
                if !self.written =>
            {
                return Err(TemplateError::failed("Not a network address"));
            }
            "first_usable" | "next_usable" | "last_usable" | "previous_usable" => {
                return some(self.usable(query).map(text));
            }
            "range_usable" => {
                let (first, last) = (self.usable("first_usable"), self.usable("last_usable"));
                let range =
                    first.zip(last).map(|(first, last)| format!("{}-{}", self.text_of(first), self.text_of(last)));
                return some(range.map(Value::from));
            }
            "peer" => text(self.peer()?),
            "revdns" => Value::from(self.reverse_name()),
            "wrap" if is_six && self.written => Value::from(format!("[{}]/{}", self.address, self.prefix)),
            "wrap" if is_six => Value::from(format!("[{}]", self.address)),
            "wrap" => written.clone(),
            "6to4" => self.six_to_four(written),
            "ipv4" | "v4" if is_six => self.translated().map_or(Value::Bool(false), Value::from),
            "ipv6" | "v6" if !is_six => self.translated().map_or(Value::Bool(false), Value::from),
            "ipv4" | "v4" | "ipv6" | "v6" => written.clone(),
            "private" => return holds(self.is_private()),
            "public" => {
                return holds(!self.is_private() && !self.address.is_multicast() && !self.address.is_unspecified());
            }
            "loopback" | "lo" => return holds(self.address.is_loopback()),
            "link-local" => return holds(self.is_of(&["169.254.0.0/16", "fe80::/10"])),
            "multicast" => return holds(self.address.is_multicast()),
            "unicast" => return holds(!self.address.is_multicast()),
            other => match (other.parse::<i64>(), Network::parse(other)) {
                (Ok(_), _) if self.is_host() => self.whole(),
                (Ok(index), _) => self
                    .nth(index)
                    .map_or(Value::Bool(false), |address| Value::from(format!("{address}/{}", self.prefix))),
                // within another network
                (_, Some(outer)) => return holds(outer.contains(self)),
                _ => return Err(TemplateError::failed(format!("unknown filter type: {other}"))),
            },
        })
    }

    /// True if the address is one of a host within a network.
    fn has_host(&self) -> bool {
        self.host_bits() == 1 || (self.more_than(2) && !self.is_network())
    }

    pub(super) fn contains(&self, inner: &Network) -> bool {
        self.bits() == inner.bits() && inner.first() >= self.first() && inner.last() <= self.last()
    }

    /// The other end of a link between two hosts.
    fn peer(&self) -> Result<u128> {
        match (self.host_bits(), self.number() % 4) {
            (1, _) => Ok(self.number() ^ 1),
            (3, 0) => Err(TemplateError::failed("Network address of /30 has no peer")),
            (3, 3) => Err(TemplateError::failed("Broadcast address of /30 has no peer")),
            (3, _) => Ok(self.number() ^ 3),
            _ => Err(TemplateError::failed("Not a point-to-point network")),
        }
    }

    /// The network of IPv6 that belongs to an address of IPv4 (RFC 3056).
    fn six_to_four(&self, written: &Value) -> Value {
        match self.address {
            IpAddr::V4(address) if !self.is_network() => {
                let [a, b, c, d] = address.octets();
                Value::from(format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1/48"))
            }
            IpAddr::V6(_) if self.is_of(&["2002::/16"]) && !self.is_network() => written.clone(),
            _ => Value::Bool(false),
        }
    }

    fn usable(&self, which: &str) -> Option<u128> {
        let (first, last) = match self.host_bits() {
            0 => return None,
            1 => (self.first(), self.last()),
            _ => (self.first() + 1, self.last() - 1),
        };
        let near = match which {
            "first_usable" => return Some(first),
            "last_usable" => return Some(last),
            "next_usable" => self.number().checked_add(1),
            _ => self.number().checked_sub(1),
        };
        near.filter(|address| (first..=last).contains(address))
    }

    fn whole(&self) -> Value {
        Value::from(if self.written { format!("{}/{}", self.address, self.prefix) } else { self.address.to_string() })
    }
}

/// Applies to one value, or to each of a list; what gives nothing is left out of a list.
fn each(value: &Value, apply: &dyn Fn(&Value) -> Result<Value>) -> Result<Option<Value>> {
    match value {
        Value::List(items) => {
            let mut out = Vec::new();
            for item in items.iter() {
                if let Some(result) = each(item, apply)?.filter(Value::is_truthy) {
                    out.push(result);
                }
            }
            Ok(Some(Value::list(out)))
        }
        other => apply(other).map(Some),
    }
}

fn filter(call: &Call<'_>, version: Option<i64>) -> Result<Value> {
    let query = match call.given(1) {
        Some(query) => text_of(query)?.into_owned(),
        None => String::new(),
    };
    let apply = |value: &Value| -> Result<Value> {
        let network = match value {
            // a number is an address too
            Value::Str(text) => match text.as_str().parse::<u32>() {
                Ok(number) => Network::parse(&Ipv4Addr::from(number).to_string()),
                Err(_) => Network::parse(text.as_str()),
            },
            Value::Int(number) => match u32::try_from(*number) {
                Ok(number) => Network::parse(&Ipv4Addr::from(number).to_string()),
                Err(_) => None,
            },
            _ => None,
        };
        let wanted =
            network.filter(|network| version.is_none_or(|version| (version == 4) == network.address.is_ipv4()));
        Ok(match wanted {
            Some(network) => network.part(&query, value)?,
            None => Value::Bool(false),
        })
    };
    Ok(each(call.value()?, &apply)?.unwrap_or(Value::Bool(false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_addresses() {
        let cases = [
            ("192.168.1.10/24", "address", "192.168.1.10"),
            ("192.168.1.10/24", "network", "192.168.1.0"),
            ("192.168.1.10/255.255.255.0", "prefix", "24"),
            ("192.168.1.10/24", "netmask", "255.255.255.0"),
            ("192.168.1.10/24", "broadcast", "192.168.1.255"),
            ("192.168.1.10/24", "subnet", "192.168.1.0/24"),
            ("192.168.1.10/24", "size", "256"),
            ("192.168.1.0/24", "1", "192.168.1.1/24"),
            ("192.168.1.0/24", "-1", "192.168.1.255/24"),
            ("192.168.1.0/24", "net", "192.168.1.0/24"),
            ("192.168.1.0/24", "type", "network"),
            ("192.168.1.1", "192.168.0.0/16", "192.168.1.1"),
            ("10.0.0.0/30", "last_usable", "10.0.0.2"),
            ("fe80::1/64", "network", "fe80::"),
            ("fe80::1", "version", "6"),
            ("::/0", "size", "340282366920938463463374607431768211456"),
        ];
        for (text, query, expected) in cases {
            let part = Network::parse(text).expect(text).part(query, &Value::from(text)).expect(query);
            assert_eq!(part.to_text(), expected, "{text} {query}");
        }
        let part = |text: &str, query: &str| Network::parse(text).expect(text).part(query, &Value::from(text));
        assert_eq!(part("192.168.1.0/24", "address").expect("query"), Value::Null);
        assert_eq!(part("8.8.8.8", "private").expect("query"), Value::Null);
        for wrong in ["300.1.1.1", "1.2.3.4/33", "x", "1.2.3.4/255.0.255.0", ""] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
        assert!(part("1.2.3.4", "nope").is_err());
    }
}
