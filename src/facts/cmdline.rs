//! What the kernel was started with.

use crate::value::{Map, Value};

use super::{Group, Sections, set};

pub const GROUP: Group =
    Group { name: "cmdline", parts_of: &["min", "proc_cmdline"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r"
section cmdline
text /proc/cmdline
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let mut last = Map::new();
    let mut all = Map::new();
    for word in words(sections.text("cmdline")) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (Value::from(key), Value::from(value)),
            None => (Value::from(word.as_str()), Value::Bool(true)),
        };
        let both = match all.get(&key) {
            Some(Value::List(values)) => {
                let mut values = values.to_vec();
                values.push(value.clone());
                values.into()
            }
            Some(first) => Value::list(vec![first.clone(), value.clone()]),
            None => value.clone(),
        };
        all.insert(key.clone(), both);
        last.insert(key, value);
    }
    set(facts, "cmdline", last);
    // the same, but what is given more than once is a list
    set(facts, "proc_cmdline", all);
}

/// Words apart by blanks; blanks within double quotes do not count.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for character in text.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            blank if blank.is_whitespace() && !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_flags_or_values() {
        let mut facts = Map::new();
        let text = "\u{1e}cmdline\nroot=/dev/vda ro console=tty0 console=ttyAMA0 dyndbg=\"file x.c +p\" isolcpus=1-3\n";
        parse(&Sections::new(text), &mut facts);
        assert_eq!(
            facts["ansible_cmdline"].to_repr(),
            "{'root': '/dev/vda', 'ro': True, 'console': 'ttyAMA0', 'dyndbg': 'file x.c +p', 'isolcpus': '1-3'}"
        );
        assert_eq!(facts["ansible_proc_cmdline"].get("console").unwrap().to_repr(), "['tty0', 'ttyAMA0']");
    }
}
