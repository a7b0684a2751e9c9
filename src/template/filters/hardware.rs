//! Filters about hardware (MAC) addresses, as `ansible.utils` and `community.general` have them.

use super::Filter;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::python::{Twister, random_below};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(
        &["hwaddr", "ansible.utils.hwaddr", "ansible.netcommon.hwaddr"],
        &["value", "query"],
        "the hardware address, or in another way of writing; None if it is none",
        |call| address(call, "hwaddr"),
    ),
    entry(
        &["macaddr", "ansible.utils.macaddr", "ansible.netcommon.macaddr"],
        &["value", "query"],
        "as hwaddr",
        |call| address(call, "macaddr"),
    ),
    entry(
        &["random_mac", "community.general.random_mac"],
        &["value", "seed"],
        "a hardware address that begins so, at random or by a seed",
        random_mac,
    ),
];

/// The six bytes of an address: two digits between `:` or `-`, four between `.`, six between `:`, or twelve in a row.
fn bytes(text: &str) -> Option<[u8; 6]> {
    let groups: Vec<&str> = text.split([':', '-', '.']).collect();
    let width = match groups.len() {
        1 => 12,
        2 => 6,
        3 => 4,
        6 => 2,
        _ => return None,
    };
    let fits = |group: &&str| {
        !group.is_empty() && group.len() <= width && group.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    if !groups.iter().all(fits) || (width == 12 && groups[0].len() != 12) {
        return None;
    }
    let digits: String = groups.iter().map(|group| format!("{group:0>width$}")).collect();
    let number = u64::from_str_radix(&digits, 16).ok()?;
    number.to_be_bytes()[2..].try_into().ok()
}

fn address(call: &Call<'_>, name: &str) -> Result<Value> {
    let query = call.given(1).map(text_of).transpose()?.unwrap_or_default();
    let Some(bytes) = bytes(&call.text()?) else {
        if query.is_empty() || query == "bool" {
            return Ok(Value::Null);
        }
        return Err(TemplateError::failed(format!("{name}: not a hardware address: {}", call.text()?)));
    };
    let joined = |separator: &str, width: usize| {
        let digits: Vec<String> =
            bytes.chunks(width).map(|chunk| chunk.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        digits.join(separator)
    };
    Ok(Value::from(match &*query {
        "" => return call.value().cloned(),
        "bool" => return Ok(Value::Bool(true)),
        "int" => {
            return Ok(Value::Int(bytes.iter().fold(0, |number, byte| number * 256 + i64::from(*byte))));
        }
        "bare" => joined("", 6).to_uppercase(),
        "cisco" => joined(".", 2),
        "linux" => joined(":", 1),
        "pgsql" | "postgresql" | "psql" => joined(":", 3),
        // without leading zeros
        "unix" => bytes.map(|byte| format!("{byte:x}")).join(":"),
        "win" | "eui48" => joined("-", 1).to_uppercase(),
        other => return Err(TemplateError::failed(format!("{name}: unknown filter type: {other}"))),
    }))
}

fn random_mac(call: &Call<'_>) -> Result<Value> {
    const LOWEST: u64 = 1 << 36;
    const HIGHEST: u64 = (1 << 40) - 1;
    let Value::Str(text) = call.value()? else {
        let value = call.value()?;
        let kind = value.type_name();
        return Err(TemplateError::failed(format!("Invalid value type (<class '{kind}'>) for random_mac ({value})")));
    };
    let start = text.as_str().to_lowercase();
    let items: Vec<&str> = start.split(':').collect();
    let wrong = |why: String| TemplateError::failed(format!("Invalid value ({start}) for random_mac: {why}"));
    if items.len() > 5 {
        return Err(wrong("5 colon(:) separated items max".to_owned()));
    }
    for item in &items {
        if item.is_empty() {
            return Err(wrong("empty item".to_owned()));
        }
        if item.len() < 2 || !item.bytes().take(2).all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong(format!("{item} not hexa byte")));
        }
    }
    let number = match call.given(1) {
        Some(seed) => Twister::seeded(seed)?.below(HIGHEST - LOWEST + 1)?,
        None => random_below(HIGHEST - LOWEST + 1)?,
    };
    let digits = format!("{:x}", LOWEST + number);
    let mut address = start.clone();
    for place in 0..6 - items.len() {
        address.push(':');
        address.push_str(&digits[place * 2..place * 2 + 2]);
    }
    Ok(Value::from(address))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn addresses_are_written_in_several_ways() {
        let expected = Some([0x1a, 0x2b, 0x3c, 0x4d, 0x5e, 0x6f]);
        for text in ["1a:2b:3c:4d:5e:6f", "1A-2B-3C-4D-5E-6F", "1a2b.3c4d.5e6f", "1a2b3c:4d5e6f", "1a2b3c4d5e6f"] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        for text in ["", "x", "1a:2b", "1a:2b:3c:4d:5e:6g", "1a2b3c4d5e6", "1:2:3:4:5:6:7", "100:2:3:4:5:6"] {
            assert_eq!(bytes(text).filter(|_| text != "1a:2b"), None, "{text}");
        }
    }
}
