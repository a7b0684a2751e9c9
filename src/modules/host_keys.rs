//! The lines of known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::connect::hmac_sha1;
use crate::host::Failure;

/// A line that holds a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// `@cert-authority` or `@revoked`.
    marker: Option<&'a str>,
    names: &'a str,
    kind: &'a str,
    key: &'a str,
}

impl<'a> Line<'a> {
    pub fn parse(line: &'a str) -> Option<Line<'a>> {
        let mut words = line.split_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let names = words.next().filter(|names| !names.starts_with('#'))?;
        Some(Line { marker, names, kind: words.next()?, key: words.next()? })
    }

    /// True if it is of this host, by name, pattern or hash.
    fn is_of(&self, host: &str) -> bool {
        if let Some(rest) = self.names.strip_prefix("|1|") {
            let Some((salt, hash)) = rest.split_once('|') else { return false };
            let (Ok(salt), Ok(hash)) = (STANDARD.decode(salt), STANDARD.decode(hash)) else { return false };
            return hmac_sha1(&salt, host.as_bytes()) == hash.as_slice();
        }
        let mut is_of = false;
        for name in self.names.split(',') {
            match name.strip_prefix('!') {
                Some(name) if matches(&name.to_ascii_lowercase(), host) => return false,
                Some(_) => {}
                None => is_of |= matches(&name.to_ascii_lowercase(), host),
            }
        }
        is_of
    }

    /// True if both say the same of the host; how a name is hashed does not matter.
    fn says(&self, other: &Line<'_>) -> bool {
        let both_hashed = self.names.starts_with("|1|") && other.names.starts_with("|1|");
        self.has_key_of(other) && (self.names == other.names || both_hashed)
    }

    fn has_key_of(&self, other: &Line<'_>) -> bool {
        self.marker == other.marker && self.kind == other.kind && self.key == other.key
    }
}

/// `*` and `?` as in a shell's pattern.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => {
            matches(&pattern[1..], name) || name.chars().next().is_some_and(|c| matches(pattern, &name[c.len_utf8()..]))
        }
        Some(letter) => name.chars().next().is_some_and(|c| {
            (letter == '?' || letter == c) && matches(&pattern[letter.len_utf8()..], &name[c.len_utf8()..])
        }),
    }
}

/// The line for the file: checked to be of this host, and its name hashed with this salt if there is one.
pub fn wanted_line(host: &str, key: &str, salt: Option<&[u8]>) -> Result<String, Failure> {
    let key = key.trim();
    if key.contains('\n') {
        return Err(Failure::new("`key` has more than one line; name each key in a task or loop item of its own"));
    }
    let Some(line) = Line::parse(key) else {
        return Err(Failure::new(format!("`key` is no line of known_hosts, as `HOST ssh-ed25519 AAAA…`: {key}")));
    };
    if !line.is_of(host) {
        return Err(Failure::new("Host parameter does not match hashed host field in supplied key"));
    }
    let Some(salt) = salt else { return Ok(format!("{key}\n")) };
    let name = format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hmac_sha1(salt, host.as_bytes())));
    let mut words: Vec<&str> = key.split_whitespace().collect();
    words[usize::from(line.marker.is_some())] = &name;
    Ok(words.join(" ") + "\n")
}

/// The text with this line, or without it; `None` if it is right already.
pub fn edit(text: &str, host: &str, wanted: Option<&str>, present: bool) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let own = |line: &str| Line::parse(line).is_some_and(|line| line.is_of(host));
    let Some(wanted) = wanted else {
        // all keys of the host; what authorities and revocations say stays
        let goes = |line: &&str| own(line) && Line::parse(line).is_some_and(|line| line.marker.is_none());
        let kept: String = lines.iter().filter(|line| !goes(line)).copied().collect();
        return (kept != text).then_some(kept);
    };
    let new = Line::parse(wanted)?;
    // to remove a key it does not matter whether the name is hashed
    let is_it = |line: &Line<'_>| if present { line.says(&new) } else { line.has_key_of(&new) };
    let found = lines.iter().position(|line| own(line) && Line::parse(line).is_some_and(|line| is_it(&line)));
    // another key of the same type gives way
    let other = |line: &str| {
        Line::parse(line).is_some_and(|line| line.marker.is_none() && new.marker.is_none() && line.kind == new.kind)
    };
    let goes = match (found, present) {
        (Some(_), true) => return None,
        (Some(at), false) => Some(at),
        (None, true) => lines.iter().position(|line| own(line) && other(line)),
        (None, false) => return None,
    };
    let mut new: String =
        lines.iter().enumerate().filter(|(index, _)| Some(*index) != goes).map(|(_, line)| *line).collect();
    if present {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(wanted);
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# mine\nkp001,192.0.2.1 ssh-ed25519 AAA\nkp001 ssh-rsa BBB note\n@revoked * ssh-rsa CCC\n*.lab ssh-rsa DDD\n";

    #[test]
    fn keys_are_added_replaced_and_removed() {
        let set = |host: &str, key: &str, present: bool| {
            edit(FILE, host, Some(&wanted_line(host, key, None).unwrap()), present)
        };
        assert_eq!(set("kp001", "kp001,192.0.2.1 ssh-ed25519 AAA", true), None);
        assert_eq!(
            set("kp001", "kp001 ssh-rsa EEE", true).unwrap(),
            FILE.replace("kp001 ssh-rsa BBB note\n", "") + "kp001 ssh-rsa EEE\n"
        );
        assert_eq!(set("kp002", "kp002 ssh-rsa EEE", true).unwrap(), format!("{FILE}kp002 ssh-rsa EEE\n"));
        assert_eq!(set("kp001", "kp001 ssh-rsa BBB", false).unwrap(), FILE.replace("kp001 ssh-rsa BBB note\n", ""));
        assert_eq!(set("kp001", "kp001 ssh-rsa ZZZ", false), None);
        let all = edit(FILE, "kp001", None, false).unwrap();
        assert_eq!(all, "# mine\n@revoked * ssh-rsa CCC\n*.lab ssh-rsa DDD\n");
        assert_eq!(edit(FILE, "a.lab", None, false).unwrap(), FILE.replace("*.lab ssh-rsa DDD\n", ""));
        assert_eq!(edit(FILE, "kp009", None, false), None);
    }

    #[test]
    fn hashed_names_are_known_again() {
        let line = wanted_line("[kp001]:2222", "[kp001]:2222 ssh-rsa AAA", Some(&[7; 20])).unwrap();
        assert!(line.starts_with("|1|BwcHBwcHBwcHBwcHBwcHBwcHBwc=|"), "{line}");
        let other = wanted_line("[kp001]:2222", "[kp001]:2222 ssh-rsa AAA", Some(&[8; 20])).unwrap();
        assert_eq!(edit(&line, "[kp001]:2222", Some(&other), true), None, "hashed again is no change");
        assert_eq!(edit(&line, "[kp001]:2222", None, false).unwrap(), "");
        let plain = wanted_line("[kp001]:2222", "[kp001]:2222 ssh-rsa AAA", None).unwrap();
        assert_eq!(edit(&line, "[kp001]:2222", Some(&plain), false).unwrap(), "", "a plain key removes a hashed name");
        assert_eq!(edit(&line, "kp001", None, false), None);
    }

    #[test]
    fn a_key_must_be_of_its_host() {
        let refused = |host: &str, key: &str| wanted_line(host, key, None).unwrap_err().message;
        assert!(refused("a", "b ssh-rsa AAA").starts_with("Host parameter does not match"));
        assert!(refused("a", "ssh-rsa AAA").starts_with("`key` is no line"));
        assert!(refused("a", "a ssh-rsa A\na ssh-rsa B").contains("more than one line"));
    }
}
