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
struct Network {
    address: IpAddr,
    prefix: u32,
    /// True if the prefix was written.
    written: bool,
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
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

    fn bits(&self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        }
    }

    fn with_number(&self, number: u128) -> IpAddr {
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

    fn first(&self) -> u128 {
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

    fn is_private(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_private() || address.is_loopback() || address.is_link_local(),
            IpAddr::V6(address) => {
                address.is_unique_local() || address.is_loopback() || address.is_unicast_link_local()
            }
        }
    }

    /// The part that a query names; `None` if this network has no such part.
    fn part(&self, query: &str) -> Result<Option<Value>> {
        let text = |address: u128| Value::from(self.with_number(address).to_string());
        let mask =
            || self.with_number(if self.bits() == 32 { u128::from(u32::MAX) } else { u128::MAX } & !self.host_bits());
        let holds = |holds: bool| Ok(holds.then(|| self.whole()));
        Ok(match query {
            "" => Some(self.whole()),
            "address" | "ip" => {
                (self.is_host() || self.number() != self.first() || self.host_bits() == 1).then(|| text(self.number()))
            }
            "network" | "network_id" => Some(text(self.first())),
            "netmask" => Some(Value::from(mask().to_string())),
            "hostmask" | "wildcard" => Some(text(self.host_bits())),
            "broadcast" => (self.host_bits() > 1).then(|| text(self.last())),
            "prefix" => Some(Value::Int(i64::from(self.prefix))),
            "size" => Some(Value::big(num_bigint::BigInt::from(self.host_bits()) + 1)),
            "subnet" | "network/prefix" => {
                Some(Value::from(format!("{}/{}", self.with_number(self.first()), self.prefix)))
            }
            "net" => {
                let is_net = !self.is_host() && self.number() == self.first();
                is_net.then(|| Value::from(format!("{}/{}", self.address, self.prefix)))
            }
            "host" | "host/prefix" | "address/prefix" | "gateway" | "gw" | "ip/prefix" => {
                let is_address = self.is_host() || self.number() != self.first();
                is_address.then(|| Value::from(format!("{}/{}", self.address, self.prefix)))
            }
            "cidr" => Some(Value::from(format!("{}/{}", self.address, self.prefix))),
            "ip/netmask" | "address/netmask" => Some(Value::from(format!("{}/{}", self.address, mask()))),
            "network/netmask" => Some(Value::from(format!("{}/{}", self.with_number(self.first()), mask()))),
            "type" => {
                Some(Value::from(if self.is_host() || self.number() != self.first() { "address" } else { "network" }))
            }
            "version" => Some(Value::Int(if self.bits() == 32 { 4 } else { 6 })),
            "bool" => Some(Value::Bool(true)),
            "int" => Some(Value::big(num_bigint::BigInt::from(self.number()))),
            "first_usable" | "next_usable" | "last_usable" => self.usable(query).map(text),
            "range_usable" => match (self.usable("first_usable"), self.usable("last_usable")) {
                (Some(first), Some(last)) => {
                    Some(Value::from(format!("{}-{}", self.with_number(first), self.with_number(last))))
                }
                _ => None,
            },
            "private" => return holds(self.is_private()),
            "public" => {
                return holds(!self.is_private() && !self.address.is_multicast() && !self.address.is_unspecified());
            }
            "loopback" | "lo" => return holds(self.address.is_loopback()),
            "multicast" => return holds(self.address.is_multicast()),
            "ipv4" => return holds(self.bits() == 32),
            "ipv6" => return holds(self.bits() == 128),
            other => match (other.parse::<i64>(), Network::parse(other)) {
                (Ok(index), _) => self.nth(index).map(|address| Value::from(format!("{address}/{}", self.prefix))),
                // within another network
                (_, Some(outer)) => {
                    let within =
                        self.bits() == outer.bits() && self.first() >= outer.first() && self.last() <= outer.last();
                    return holds(within);
                }
                _ => return Err(TemplateError::failed(format!("unknown filter type: {other}"))),
            },
        })
    }

    fn usable(&self, which: &str) -> Option<u128> {
        let (first, last) = match self.host_bits() {
            0 => return None,
            1 => (self.first(), self.last()),
            _ if self.bits() == 128 => (self.first() + 1, self.last()),
            _ => (self.first() + 1, self.last() - 1),
        };
        match which {
            "first_usable" => Some(first),
            "last_usable" => Some(last),
            _ => self.number().checked_add(1).filter(|next| *next <= last),
        }
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
            Value::Str(text) => Network::parse(text.as_str()),
            Value::Int(number) => match u32::try_from(*number) {
                Ok(number) => Network::parse(&Ipv4Addr::from(number).to_string()),
                Err(_) => None,
            },
            _ => None,
        };
        let wanted =
            network.filter(|network| version.is_none_or(|version| (version == 4) == network.address.is_ipv4()));
        Ok(match wanted {
            Some(network) => network.part(&query)?.unwrap_or(Value::Bool(false)),
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
            let part = Network::parse(text).expect(text).part(query).expect(query).expect(query);
            assert_eq!(part.to_text(), expected, "{text} {query}");
        }
        assert_eq!(Network::parse("192.168.1.0/24").expect("network").part("address").expect("query"), None);
        assert_eq!(Network::parse("8.8.8.8").expect("address").part("private").expect("query"), None);
        for wrong in ["300.1.1.1", "1.2.3.4/33", "x", "1.2.3.4/255.0.255.0", ""] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
        assert!(Network::parse("1.2.3.4").expect("address").part("nope").is_err());
    }
}
