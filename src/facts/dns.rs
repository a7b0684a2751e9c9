//! How the host resolves names.

use crate::value::{Map, Value};

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "dns", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r"
section dns
text /etc/resolv.conf
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    set(facts, "dns", resolver(sections.text("dns")));
}

fn resolver(text: &str) -> Map {
    let mut dns = Map::new();
    let lines = text.lines().filter(|line| !line.starts_with(['#', ';']));
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((key, values)) = words.split_first() else { continue };
        match *key {
            "nameserver" => {
                let mut servers = dns.get("nameservers").and_then(Value::as_list).unwrap_or_default().to_vec();
                servers.extend(values.iter().map(|server| Value::from(*server)));
                dns.insert("nameservers".into(), servers.into());
            }
            "domain" => {
                dns.extend(values.first().map(|domain| ("domain".into(), (*domain).into())));
            }
            "search" | "sortlist" => {
                let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
                dns.insert((*key).into(), values.into());
            }
            "options" => {
                let option = |word: &&str| match word.split_once(':') {
                    Some((name, value)) => (Value::from(name), Value::from(value)),
                    None => (Value::from(*word), Value::Bool(true)),
                };
                let mut options = dns.get("options").and_then(Value::as_map).cloned().unwrap_or_default();
                options.extend(values.iter().map(option));
                dns.insert("options".into(), options.into());
            }
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolver_is_described_by_its_file() {
        let text = "# made by hand\nsearch example.com corp.example.com\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n\
                    options timeout:2 rotate\n";
        assert_eq!(
            Value::from(resolver(text)).to_repr(),
            "{'search': ['example.com', 'corp.example.com'], 'nameservers': ['192.0.2.53', '2001:db8::53'], \
             'options': {'timeout': '2', 'rotate': True}}"
        );
    }
}
