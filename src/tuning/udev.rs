//! The udev rule file that keeps the settings of block devices across reboots (udev(7)).

use crate::error::{Error, Result};
use crate::tuning::device::Identity;

/// What one device should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    pub identity: Identity,
    pub scheduler: Option<String>,
    pub nr_requests: Option<u64>,
    /// Other attributes below `queue/`, in order: `("read_ahead_kb", "128")`.
    pub attributes: Vec<(String, String)>,
}

/// Writes the rules: a line a device, sorted by identity. Assignments run from left to right, and a change of the
/// scheduler resets `nr_requests`, so the scheduler stands first.
pub fn rule_file(header: &str, settings: &[QueueSettings]) -> Result<String> {
    let mut sorted: Vec<&QueueSettings> = settings.iter().collect();
    sorted.sort_by(|left, right| left.identity.cmp(&right.identity));
    let mut text = String::new();
    for line in header.lines() {
        text.push_str(&format!("# {line}\n"));
    }
    for settings in sorted {
        let mut words = vec![
            r#"ACTION=="add|change""#.to_owned(),
            r#"SUBSYSTEM=="block""#.to_owned(),
            // Patterns for disks would match their partitions, which have no queue.
            r#"ENV{DEVTYPE}=="disk""#.to_owned(),
            device_match(&settings.identity)?,
        ];
        let before = words.len();
        if let Some(scheduler) = &settings.scheduler {
            words.push(assignment("scheduler", scheduler)?);
        }
        if let Some(count) = settings.nr_requests {
            words.push(assignment("nr_requests", &count.to_string())?);
        }
        for (name, value) in &settings.attributes {
            words.push(assignment(name, value)?);
        }
        if words.len() > before {
            text.push_str(&words.join(", "));
            text.push('\n');
        }
    }
    Ok(text)
}

fn device_match(identity: &Identity) -> Result<String> {
    Ok(match identity {
        Identity::Wwn(wwn) => format!("ENV{{ID_WWN}}==\"{}\"", literal(wwn)?),
        Identity::Serial(serial) => format!("ENV{{ID_SERIAL}}==\"{}\"", literal(serial)?),
        Identity::Name(name) => format!("KERNEL==\"{}\"", literal(name)?),
    })
}

fn assignment(name: &str, value: &str) -> Result<String> {
    let plain =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-+.".contains(&b));
    if !plain(name) || !plain(value) {
        return Err(Error::input(format!("`{name}` with the value `{value}` cannot stand in a udev rule")));
    }
    Ok(format!("ATTR{{queue/{name}}}=\"{value}\""))
}

/// A text that a match takes literally: the characters of patterns are put in brackets, others that end or change the
/// rule are refused.
fn literal(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => {
                out.push('[');
                out.push(c);
                out.push(']');
            }
            // A bar separates alternatives and cannot be quoted; `?` matches it.
            '|' => out.push('?'),
            '"' | '\\' => return Err(Error::input(format!("`{text}` holds `{c}`, which a udev rule cannot match"))),
            c if c.is_control() => {
                return Err(Error::input(format!(
                    "`{}` holds a control character, which a udev rule cannot match",
                    text.escape_debug()
                )));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// True if a line of a rule file assigns `queue/ATTRIBUTE`. A comparison (`==`) is no assignment.
pub fn assigns(line: &str, attribute: &str) -> bool {
    let key = format!("ATTR{{queue/{attribute}}}");
    !line.trim_start().starts_with('#')
        && line.match_indices(&key).any(|(at, _)| {
            let rest = line[at + key.len()..].trim_start();
            rest.starts_with("+=") || rest.starts_with(":=") || (rest.starts_with('=') && !rest.starts_with("=="))
        })
}

/// Puts rules into the text of a rule file of ours: lines for the same devices are replaced, others stay.
pub fn merge(existing: &str, header: &str, settings: &[QueueSettings]) -> Result<String> {
    let new = rule_file("", settings)?;
    let devices = settings.iter().map(|settings| device_match(&settings.identity)).collect::<Result<Vec<_>>>()?;
    let is_rule = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let concerns = |line: &str| devices.iter().any(|device| line.contains(&format!(", {device}, ")));
    let mut lines: Vec<&str> =
        existing.lines().filter(is_rule).filter(|line| !concerns(line)).chain(new.lines()).collect();
    lines.sort_unstable();
    let header = header.lines().map(|line| format!("# {line}\n"));
    Ok(header.chain(lines.iter().map(|line| format!("{line}\n"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(identity: Identity) -> QueueSettings {
        QueueSettings {
            identity,
            scheduler: Some("mq-deadline".into()),
            nr_requests: Some(2048),
            attributes: vec![("read_ahead_kb".into(), "128".into())],
        }
    }

    #[test]
    fn rules_are_sorted_and_put_the_scheduler_first() {
        let text = rule_file(
            "Written by trimtab.",
            &[settings(Identity::Name("vda".into())), settings(Identity::Wwn("0x5000c500a1".into()))],
        )
        .expect("rules");
        let rest =
            r#"ATTR{queue/scheduler}="mq-deadline", ATTR{queue/nr_requests}="2048", ATTR{queue/read_ahead_kb}="128""#;
        let start = r#"ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk""#;
        let expected = format!(
            "# Written by trimtab.\n{start}, ENV{{ID_WWN}}==\"0x5000c500a1\", {rest}\n{start}, KERNEL==\"vda\", {rest}\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn identities_are_matched_literally() {
        let text = rule_file("", &[settings(Identity::Serial("A*B[1]|C".into()))]).expect("rules");
        assert!(text.contains(r#"ENV{ID_SERIAL}=="A[*]B[[]1]?C""#), "{text}");
        for wrong in ["a\"b", "a\\b", "a\nb"] {
            assert!(rule_file("", &[settings(Identity::Serial(wrong.into()))]).is_err(), "{wrong:?}");
        }
        let mut wrong = settings(Identity::Name("vda".into()));
        wrong.scheduler = Some("none\", RUN=\"x".into());
        assert!(rule_file("", &[wrong]).is_err());
    }

    #[test]
    fn a_device_without_settings_has_no_rule() {
        let mut empty = settings(Identity::Name("vda".into()));
        (empty.scheduler, empty.nr_requests, empty.attributes) = (None, None, Vec::new());
        assert_eq!(rule_file("", &[empty]).expect("rules"), "");
    }

    #[test]
    fn assignments_are_told_from_comparisons() {
        let cases = [
            (r#"KERNEL=="sd*", ATTR{queue/scheduler}="bfq""#, true),
            (r#"ATTR{queue/scheduler}:="bfq""#, true),
            (r#"ATTR{queue/scheduler}=="bfq", RUN+="/bin/true""#, false),
            (r#"ATTR{queue/scheduler}=="none", ATTR{queue/scheduler} = "bfq""#, true),
            (r#"# ATTR{queue/scheduler}="bfq""#, false),
            (r#"ATTR{queue/nr_requests}="64""#, false),
        ];
        for (line, expected) in cases {
            assert_eq!(assigns(line, "scheduler"), expected, "{line}");
        }
    }

    #[test]
    fn rules_of_other_devices_stay() {
        let named = |name: &str| settings(Identity::Name(name.into()));
        let first = merge("", "Ours.", &[named("vdb"), named("vda")]).expect("rules");
        let mut changed = named("vda");
        changed.scheduler = Some("none".into());
        let second = merge(&first, "Ours.", &[changed.clone()]).expect("rules");
        assert_eq!(second.lines().count(), 3);
        assert!(second.contains(r#"KERNEL=="vda", ATTR{queue/scheduler}="none""#));
        assert!(second.contains(r#"KERNEL=="vdb", ATTR{queue/scheduler}="mq-deadline""#));
        // Nothing changes when it is done again.
        assert_eq!(merge(&second, "Ours.", &[changed]).expect("rules"), second);
    }
}
