//! TCP ports as a host's shell can see them: trying one, and the kernel's table of connections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::connect::shell::quote;

/// Shell code that connects to a port within `limit` seconds: 0 if it did, 127 if the host has nothing to try with.
/// With `listen` it prints what the other side says within that many seconds.
pub fn port_script(host: &str, port: u16, limit: u64, listen: Option<u64>) -> String {
    let host = quote(host);
    let (bash, nc) = match listen {
        None => (
            format!("timeout {limit} bash -c 'exec 3<>/dev/tcp/$0/$1' {host} {port} 2>/dev/null"),
            format!("nc -z -w {limit} {host} {port} >/dev/null 2>&1"),
        ),
        Some(seconds) => (
            format!(
                "timeout {} bash -c 'exec 3<>/dev/tcp/$0/$1; timeout $2 cat <&3; exit 0' {host} {port} {seconds} 2>/dev/null",
                limit + seconds
            ),
            format!(
                "nc -z -w {limit} {host} {port} >/dev/null 2>&1 && {{ timeout {seconds} nc {host} {port} </dev/null; :; }}"
            ),
        ),
    };
    let table = format!(
        "awk '$4 == \"0A\" && substr($2, length($2) - 3) == \"{port:04X}\" {{ f = 1 }} END {{ exit !f }}' \
         /proc/net/tcp /proc/net/tcp6 2>/dev/null"
    );
    format!(
        "if command -v bash >/dev/null 2>&1 && command -v timeout >/dev/null 2>&1; then {bash}\n\
         elif command -v nc >/dev/null 2>&1; then {nc}\n\
         else case {host} in 127.*|localhost|::1) {table};; *) exit 127;; esac; fi || exit 1"
    )
}

/// Shell code that prints the addresses of names, one a line; an address is its own.
pub fn names_of(names: &[String]) -> String {
    let one = |name: &String| {
        let name = quote(name);
        format!("printf '%s\\n' {name}; getent ahosts {name} 2>/dev/null")
    };
    names.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The kernel's number of a connection's state (net/tcp_states.h), for those that are or were active.
pub fn state_number(name: &str) -> Option<u8> {
    Some(match name {
        "ESTABLISHED" => 1,
        "SYN_SENT" => 2,
        "SYN_RECV" => 3,
        "FIN_WAIT1" => 4,
        "FIN_WAIT2" => 5,
        "TIME_WAIT" => 6,
        _ => return None,
    })
}

/// How many connections of `/proc/net/tcp` and `tcp6` are in one of these states, at this port of one of these
/// addresses (`own`: the output of [`names_of`]), but not with one of `excluded`.
pub fn connections(table: &str, port: u16, own: &str, excluded: &str, states: &[String]) -> usize {
    let addresses = |text: &str| -> Vec<IpAddr> {
        text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).map(plain).collect()
    };
    let (own, excluded) = (addresses(own), addresses(excluded));
    let any = own.iter().any(IpAddr::is_unspecified);
    let states: Vec<u8> = states.iter().filter_map(|name| state_number(name)).collect();
    table
        .lines()
        .filter_map(connection)
        .filter(|(local, local_port, remote, state)| {
            *local_port == port && states.contains(state) && (any || own.contains(local)) && !excluded.contains(remote)
        })
        .count()
}

/// Local address and port, remote address, and state of one line.
fn connection(line: &str) -> Option<(IpAddr, u16, IpAddr, u8)> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((
        plain(address_of(address)?),
        port,
        plain(address_of(remote.split_once(':')?.0)?),
        u8::from_str_radix(state, 16).ok()?,
    ))
}

/// Words of 32 bits in the byte order of the host, which is little-endian on all that trimtab manages.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_le_bytes);
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (index, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&word(index * 8)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// An IPv4 address in the clothes of IPv6 is itself.
fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_is_counted() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
             0: 00000000:1F90 00000000:0000 0A 0\n\
             1: 0100007F:1F90 0200007F:D431 01 0\n\
             2: 0100007F:1F90 0300007F:D432 06 0\n\
             3: 0200007F:1F90 0300007F:D433 01 0\n\
             4: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200007F:D434 01 0\n";
        let all: Vec<String> = ["ESTABLISHED", "TIME_WAIT"].map(str::to_owned).into();
        let cases = [
            ("127.0.0.1", "", &all[..], 3),
            ("127.0.0.1", "", &all[..1], 2),
            ("0.0.0.0", "", &all[..], 4),
            ("127.0.0.1\n127.0.0.2 STREAM x", "127.0.0.3", &all[..], 2),
            ("10.0.0.1", "", &all[..], 0),
        ];
        for (own, excluded, states, count) in cases {
            assert_eq!(connections(table, 0x1F90, own, excluded, states), count, "{own} {excluded} {states:?}");
        }
        assert_eq!(connections(table, 22, "0.0.0.0", "", &all), 0);
    }
}
