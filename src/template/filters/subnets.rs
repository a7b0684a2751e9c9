//! Filters that count with addresses: subnets of a network, an address some places further on.

use super::Filter;
use super::network::Network;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(
        &["ipsubnet", "ansible.utils.ipsubnet", "ansible.netcommon.ipsubnet"],
        &["value", "query", "index"],
        "how many subnets of a length a network has, or the one at a place; of an address the network of a length",
        subnet,
    ),
    entry(
        &["ipmath", "ansible.utils.ipmath", "ansible.netcommon.ipmath"],
        &["value", "amount"],
        "the address so many places further on",
        |call| {
            let text = call.text()?;
            let Some(network) = Network::parse(&text) else {
                return Err(TemplateError::failed(format!("You must pass a valid IP address; {text} is invalid")));
            };
            let amount = call.required_int(1)?;
            let step = u128::from(amount.unsigned_abs());
            let moved =
                if amount < 0 { network.number().checked_sub(step) } else { network.number().checked_add(step) };
            match moved.filter(|number| network.bits() == 128 || u32::try_from(*number).is_ok()) {
                Some(number) => Ok(Value::from(network.with_number(number).to_string())),
                None => Err(TemplateError::failed(format!("there is no address {amount} places after {text}"))),
            }
        },
    ),
];

fn of_length(network: &Network, number: u128, prefix: u32) -> String {
    let cut = Network { prefix, address: network.with_number(number), ..*network };
    format!("{}/{prefix}", cut.with_number(cut.first()))
}

fn subnet(call: &Call<'_>) -> Result<Value> {
    let Some(network) = Network::parse(&call.text()?) else { return Ok(Value::Bool(false)) };
    let first = network.first();
    let query = call.given(1).map(text_of).transpose()?.unwrap_or_default();
    if query.is_empty() {
        let of_host = if network.is_network() { first } else { network.number() };
        let prefix = if network.is_network() { network.prefix } else { network.bits().min(network.prefix) };
        return Ok(Value::from(of_length(&network, of_host, prefix)));
    }
    let Ok(length) = query.parse::<u32>() else { return place_within(&network, &query).map(Value::from) };
    if length > network.bits() {
        return Ok(Value::Bool(false));
    }
    let index = call.given(2).map(|_| call.required_int(2)).transpose()?;
    if network.prefix == network.bits() {
        // the networks around an address, the widest first
        let lengths: Vec<u32> = (length..network.bits()).collect();
        let index = index.unwrap_or(0);
        let at = if index < 0 { index + lengths.len() as i64 } else { index };
        let found = usize::try_from(at).ok().and_then(|at| lengths.get(at));
        return Ok(found.map_or(Value::Bool(false), |length| Value::from(of_length(&network, first, *length))));
    }
    let Some(more) = length.checked_sub(network.prefix) else {
        return Err(TemplateError::failed(format!("Requested subnet size of {length} is invalid")));
    };
    let count = num_bigint::BigInt::from(1u8) << more;
    let Some(index) = index else { return Ok(Value::from(count.to_string())) };
    let at = if index < 0 { count.clone() + index } else { index.into() };
    let found = u128::try_from(&at).ok().filter(|_| at < count);
    Ok(found.map_or(Value::Bool(false), |at| {
        let start = first + at.checked_shl(network.bits() - length).unwrap_or(0);
        Value::from(of_length(&network, start, length))
    }))
}

/// Which of the outer network's subnets of this length it is, from 1.
fn place_within(network: &Network, outer: &str) -> Result<String> {
    let Some(outer) = Network::parse(outer) else {
        return Err(TemplateError::failed(format!("You must pass a valid subnet or IP address; {outer} is invalid")));
    };
    if !outer.contains(network) {
        let cidr = |network: &Network| of_length(network, network.first(), network.prefix);
        return Err(TemplateError::failed(format!("{} is not in the subnet {}", cidr(network), cidr(&outer))));
    }
    let offset = network.first() - outer.first();
    Ok((offset.checked_shr(network.bits() - network.prefix).unwrap_or(0) + 1).to_string())
}
