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
            match &settings.identity {
                Identity::Wwn(wwn) => format!("ENV{{ID_WWN}}==\"{}\"", literal(wwn)?),
                Identity::Serial(serial) => format!("ENV{{ID_SERIAL}}==\"{}\"", literal(serial)?),
                Identity::Name(name) => format!("KERNEL==\"{}\"", literal(name)?),
            },
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

/// A line of another rule file that sets the same attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    pub text: String,
}

/// Finds lines in other rule files that assign `queue/ATTRIBUTE`. Files sort by name, the later one wins.
pub fn conflicts(files: &[(&str, &str)], own_path: &str, attribute: &str) -> Vec<Conflict> {
    let key = format!("ATTR{{queue/{attribute}}}");
    let assigns = |line: &str| {
        line.match_indices(&key).any(|(at, _)| {
            let rest = line[at + key.len()..].trim_start();
            rest.starts_with("+=") || rest.starts_with(":=") || (rest.starts_with('=') && !rest.starts_with("=="))
        })
    };
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| *path != own_path) {
        for (index, line) in text.lines().enumerate() {
            if !line.trim_start().starts_with('#') && assigns(line) {
                found.push(Conflict { path: (*path).to_owned(), line: index + 1, text: line.trim().to_owned() });
            }
        }
    }
    found
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
    fn other_rules_for_the_same_attribute_are_found() {
        let files = [
            ("/etc/udev/rules.d/99-trimtab-io.rules", "ATTR{queue/scheduler}=\"none\"\n"),
            (
                "/usr/lib/udev/rules.d/60-block-scheduler.rules",
                "# ATTR{queue/scheduler}=\"x\"\n\nKERNEL==\"sd*\", ATTR{queue/scheduler}=\"bfq\"\n",
            ),
            ("/etc/udev/rules.d/70-a.rules", "ATTR{queue/scheduler}==\"bfq\", RUN+=\"/bin/true\"\n"),
        ];
        let found = conflicts(&files, files[0].0, "scheduler");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), (files[1].0, 3));
    }
}
