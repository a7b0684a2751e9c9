//! The lines of authorized_keys (sshd(8), AUTHORIZED_KEYS FILE FORMAT). Pure.

use crate::host::Failure;

/// Types of keys that sshd takes.
const TYPES: &[&str] = &[
    "ssh-ed25519",
    "ssh-rsa",
    "rsa-sha2-256",
    "rsa-sha2-512",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "webauthn-sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-xmss@openssh.com",
    "ssh-ed25519-cert-v01@openssh.com",
    "ssh-rsa-cert-v01@openssh.com",
    "rsa-sha2-256-cert-v01@openssh.com",
    "rsa-sha2-512-cert-v01@openssh.com",
    "ssh-dss-cert-v01@openssh.com",
    "ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com",
    "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "sk-ssh-ed25519-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "ssh-xmss-cert-v01@openssh.com",
];

/// One key with its options and comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub options: Vec<String>,
    pub kind: String,
    pub blob: String,
    pub comment: String,
}

impl Key {
    /// Reads a line; `None` if it holds no key.
    pub fn parse(line: &str) -> Option<Key> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_none_or(|word| word.starts_with('#')) {
            return None;
        }
        let at = words.iter().position(|word| TYPES.contains(word))?;
        Some(Key {
            options: options(&words[..at].join(" ")),
            kind: words[at].to_owned(),
            blob: (*words.get(at + 1)?).to_owned(),
            comment: words.get(at + 2..).unwrap_or_default().join(" "),
        })
    }

    fn line(&self) -> String {
        let mut words = Vec::new();
        let options = self.options.join(",");
        for word in [&options, &self.kind, &self.blob, &self.comment] {
            if !word.is_empty() {
                words.push(word.as_str());
            }
        }
        words.join(" ") + "\n"
    }
}

/// Splits options at commas that are not quoted.
pub fn options(text: &str) -> Vec<String> {
    let mut options = vec![String::new()];
    let mut quoted = false;
    let mut escaped = false;
    for letter in text.chars() {
        if letter == ',' && !quoted {
            options.push(String::new());
            continue;
        }
        if letter == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = letter == '\\' && !escaped;
        if let Some(last) = options.last_mut() {
            last.push(letter);
        }
    }
    options.retain(|option| !option.trim().is_empty());
    options
}

/// The keys of the argument `key`: a line each, without blank and comment lines.
pub fn keys(text: &str, key_options: Option<&str>, comment: Option<&str>) -> Result<Vec<Key>, Failure> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut keys = Vec::new();
    for line in lines {
        let Some(mut key) = Key::parse(line) else {
            return Err(Failure::new(format!("invalid key specified: {line}")));
        };
        if let Some(text) = key_options {
            key.options = options(text);
        }
        if let Some(comment) = comment {
            comment.clone_into(&mut key.comment);
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The text with these keys (`exclusive`: and nothing else), or without them; `None` if it is right already.
pub fn edit(text: &str, keys: &[Key], present: bool, exclusive: bool) -> Option<String> {
    let mut lines: Vec<(String, Option<Key>)> =
        text.split_inclusive('\n').map(|line| (line.to_owned(), Key::parse(line))).collect();
    let is = |line: &(String, Option<Key>), key: &Key| line.1.as_ref().is_some_and(|own| own.blob == key.blob);
    for key in keys {
        if !present {
            lines.retain(|line| !is(line, key));
            continue;
        }
        if lines.iter().any(|line| line.1.as_ref() == Some(key)) {
            continue;
        }
        let new = (key.line(), Some(key.clone()));
        match lines.iter().position(|line| is(line, key)) {
            // other options or another comment: in its place
            Some(at) => {
                lines[at] = new;
                let mut seen = false;
                lines.retain(|line| !is(line, key) || !std::mem::replace(&mut seen, true));
            }
            None => {
                if let Some((last, _)) = lines.last_mut().filter(|(last, _)| !last.ends_with('\n')) {
                    last.push('\n');
                }
                lines.push(new);
            }
        }
    }
    if present && exclusive {
        lines.retain(|line| line.1.as_ref().is_some_and(|own| keys.iter().any(|key| key.blob == own.blob)));
    }
    let new: String = lines.into_iter().map(|(line, _)| line).collect();
    (new != text).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# mine\nssh-ed25519 AAA kp@a\ncommand=\"a, b\",no-pty ssh-rsa BBB c d\n";

    fn one(text: &str) -> Vec<Key> {
        keys(text, None, None).unwrap()
    }

    #[test]
    fn keys_are_added_changed_and_removed() {
        let cases: Vec<(Vec<Key>, bool, bool, Option<&str>)> = vec![
            (one("ssh-ed25519 AAA kp@a"), true, false, None),
            (one("command=\"a, b\",no-pty ssh-rsa BBB c d"), true, false, None),
            (
                one("ssh-ed25519 AAA other"),
                true,
                false,
                Some("# mine\nssh-ed25519 AAA other\ncommand=\"a, b\",no-pty ssh-rsa BBB c d\n"),
            ),
            (
                one("ssh-ed25519 CCC"),
                true,
                false,
                Some("# mine\nssh-ed25519 AAA kp@a\ncommand=\"a, b\",no-pty ssh-rsa BBB c d\nssh-ed25519 CCC\n"),
            ),
            (one("ssh-rsa BBB"), false, false, Some("# mine\nssh-ed25519 AAA kp@a\n")),
            (one("ssh-rsa ZZZ"), false, false, None),
            (one("ssh-ed25519 AAA kp@a"), true, true, Some("ssh-ed25519 AAA kp@a\n")),
        ];
        for (keys, present, exclusive, new) in cases {
            assert_eq!(edit(FILE, &keys, present, exclusive).as_deref(), new, "{keys:?} {present} {exclusive}");
        }
        assert_eq!(edit("x", &one("ssh-rsa B"), true, false).unwrap(), "x\nssh-rsa B\n");
        assert_eq!(edit("ssh-rsa B a\nssh-rsa B b\n", &one("ssh-rsa B c"), true, false).unwrap(), "ssh-rsa B c\n");
    }

    #[test]
    fn options_and_comments_may_be_given_apart() {
        let keys = keys("# x\n\nssh-rsa BBB a\nssh-rsa CCC\n", Some("from=\"1.2.3.4,5\",no-pty"), Some("c")).unwrap();
        assert_eq!(keys[0].options, ["from=\"1.2.3.4,5\"", "no-pty"]);
        assert_eq!(keys[1].line(), "from=\"1.2.3.4,5\",no-pty ssh-rsa CCC c\n");
        assert_eq!(super::keys("nonsense", None, None).unwrap_err().message, "invalid key specified: nonsense");
    }
}
