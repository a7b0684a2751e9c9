//! Becoming another user: what is run, what is answered when it asks, and what its complaints mean. Pure.

use super::batch::Token;
use super::shell::quote;
use super::{Become, ConnectError, ConnectErrorKind};

/// How the shell of an identity is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// For the login shell, whichever it is: words and single quotes only.
    pub(super) command: String,
    /// What it may ask before the shell runs; `None`: it asks nothing, so a batch may follow at once.
    pub(super) dialogue: Option<Dialogue>,
}

/// What a program may ask before it lets us in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dialogue {
    pub(super) prompt: Prompt,
    /// Printed on stdout as soon as the other user has been become.
    pub(super) ready: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prompt {
    /// These very words.
    Exactly(String),
    /// Any text that ends like a question for a password.
    Password,
}

impl Prompt {
    /// True if what was said last asks for a password.
    pub(super) fn asked(&self, said: &str) -> bool {
        match self {
            Prompt::Exactly(prompt) => said.contains(prompt.as_str()),
            Prompt::Password => {
                let said = said.trim_end();
                said.ends_with(':')
                    && said.to_lowercase().rsplit('\n').next().is_some_and(|line| line.contains("password"))
            }
        }
    }
}

/// The login user's own shell.
pub(super) fn login(shell: &str) -> Start {
    Start { command: format!("exec {shell}"), dialogue: None }
}

/// The shell of another user. `token` makes the prompt and the ready word unlike anything else that is said.
pub(super) fn start(wanted: &Become, shell: &str, token: &Token) -> Result<Start, ConnectError> {
    let exe = wanted.exe.clone().unwrap_or_else(|| wanted.method.clone());
    let user = quote(&wanted.user);
    // joined by the shell only, so that an echo of the command line is not taken for it
    let ready = format!("{}-ready-{}", token.second, token.first);
    let announced = format!("printf %s {}-ready-''{}; exec {shell}", token.second, token.first);
    match wanted.method.as_str() {
        "sudo" => {
            let flags = wanted.flags.as_deref().unwrap_or("-H -S -n");
            let mut words: Vec<&str> = flags.split_whitespace().collect();
            let Some(_) = &wanted.password else {
                if !words.iter().any(|word| is_short(word, 'n') || *word == "--non-interactive") {
                    // else it would take the batch for a password
                    words.push("-n");
                }
                let command = format!("exec env LC_ALL=C {exe} {} -u {user} {shell}", words.join(" "));
                return Ok(Start { command, dialogue: None });
            };
            let mut words: Vec<String> = words.into_iter().filter_map(without_n).collect();
            if !words.iter().any(|word| is_short(word, 'S') || word == "--stdin") {
                words.push("-S".to_owned());
            }
            let prompt = format!("[{}-password-{}]", token.second, token.first);
            let command = format!(
                "exec env LC_ALL=C {exe} {} -p {} -u {user} sh -c {}",
                words.join(" "),
                quote(&prompt),
                quote_plainly(&announced)
            );
            Ok(Start { command, dialogue: Some(Dialogue { prompt: Prompt::Exactly(prompt), ready }) })
        }
        "su" => {
            let flags = wanted.flags.as_deref().unwrap_or_default();
            let command = format!("exec env LC_ALL=C {exe} {flags} {user} -c {}", quote_plainly(&announced));
            Ok(Start { command, dialogue: Some(Dialogue { prompt: Prompt::Password, ready }) })
        }
        other => Err(failed(format!("become method `{other}` is not supported; `sudo` and `su` are"))),
    }
}

/// The command line that starts the shell of another user where nothing can be asked: sudo without a password, or su
/// for root, who gives none.
pub(super) fn unasked(wanted: &Become, shell: &str, login_user: &str) -> Option<String> {
    match wanted.method.as_str() {
        _ if wanted.password.is_some() => None,
        "sudo" => {
            let token = Token { first: String::new(), second: String::new() };
            start(wanted, shell, &token).ok().filter(|start| start.dialogue.is_none()).map(|start| start.command)
        }
        "su" if login_user == "root" => {
            let exe = wanted.exe.as_deref().unwrap_or("su");
            let flags = wanted.flags.as_deref().unwrap_or_default();
            let user = quote(&wanted.user);
            Some(format!("exec env LC_ALL=C {exe} {flags} {user} -c {}", quote_plainly(&format!("exec {shell}"))))
        }
        _ => None,
    }
}

/// Quotes a text so that csh and fish read it as sh does: double quotes around, `''` within kept.
fn quote_plainly(text: &str) -> String {
    format!("\"{text}\"")
}

/// True for a word of short options with this letter.
fn is_short(word: &str, letter: char) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letter)
}

/// A word of sudo's flags without "never ask".
fn without_n(word: &str) -> Option<String> {
    if word == "--non-interactive" {
        return None;
    }
    if !is_short(word, 'n') {
        return Some(word.to_owned());
    }
    let rest: String = word.chars().filter(|&letter| letter != 'n').collect();
    (rest != "-").then_some(rest)
}

fn failed(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Become, message)
}

/// What became of an attempt that ended without a shell, from all that was said. `None`: nothing that the program
/// for becoming says; the connection broke, rather.
pub(super) fn refusal(wanted: &Become, said: &str, code: Option<u32>) -> Option<ConnectError> {
    let method = &wanted.method;
    let who = &wanted.user;
    let lower = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back().unwrap_or_default();
    // sudo may say more after what matters
    let mut with =
        |words: &[&str]| lines.find(|line| words.iter().any(|word| line.to_lowercase().contains(word))).unwrap_or(last);
    if has(&["a password is required", "no password was provided", "a terminal is required to read the password"])
        || has(&["no tty present and no askpass"])
    {
        return Some(missing_password(wanted));
    }
    let asked = wanted.password.is_none() && has(&["authentication failure"]);
    if asked {
        // su took the end of its input, or a line of it, for the password
        return Some(missing_password(wanted));
    }
    if has(&["incorrect password attempt", "sorry, try again", "authentication failure", "incorrect password"]) {
        return Some(incorrect_password(wanted));
    }
    if has(&["must have a tty", "must be run from a terminal"]) {
        return Some(failed(format!(
            "{method} wants a terminal (`{last}`); take `requiretty` out of sudoers for this user, or use another become method"
        )));
    }
    if has(&["not in the sudoers", "is not allowed to", "may not run sudo", "permission denied"]) {
        return Some(failed(format!("not allowed to become `{who}`: {last}")));
    }
    let nobody = ["unknown user", "does not exist", "unknown uid"];
    if has(&nobody) {
        return Some(failed(format!("there is no user `{who}` to become: {}", with(&nobody))));
    }
    let not_found = code == Some(127) || has(&["command not found"]);
    if not_found {
        let exe = wanted.exe.as_deref().unwrap_or(method);
        return Some(failed(format!("`{exe}` was not found on the host; it is needed to become `{who}`")));
    }
    code.map(|code| failed(format!("{method} ended with code {code} instead of becoming `{who}`: {last}")))
}

pub(super) fn missing_password(wanted: &Become) -> ConnectError {
    failed(format!(
        "Missing {} password: set `ansible_become_password` or ask for it with `--ask-become-pass`",
        wanted.method
    ))
}

pub(super) fn incorrect_password(wanted: &Become) -> ConnectError {
    failed(format!("Incorrect {} password", wanted.method))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Secret;

    fn become_root(method: &str, password: bool, flags: Option<&str>) -> Become {
        Become {
            method: method.to_owned(),
            user: "root".to_owned(),
            password: password.then(|| Secret::new("hidden")),
            exe: None,
            flags: flags.map(str::to_owned),
        }
    }

    #[test]
    fn flags_are_kept_and_made_to_fit() {
        let token = Token { first: "A".into(), second: "B".into() };
        let ask = "-p '[B-password-A]' -u root sh -c \"printf %s B-ready-''A; exec sh\"";
        let cases = [
            ("sudo", false, None, "exec env LC_ALL=C sudo -H -S -n -u root sh".to_owned()),
            ("sudo", false, Some("-E"), "exec env LC_ALL=C sudo -E -n -u root sh".to_owned()),
            ("sudo", false, Some("-nE"), "exec env LC_ALL=C sudo -nE -u root sh".to_owned()),
            ("sudo", true, None, format!("exec env LC_ALL=C sudo -H -S {ask}")),
            ("sudo", true, Some("-nE"), format!("exec env LC_ALL=C sudo -E -S {ask}")),
            ("sudo", true, Some("--non-interactive --stdin"), format!("exec env LC_ALL=C sudo --stdin {ask}")),
            ("su", true, Some("-l"), "exec env LC_ALL=C su -l root -c \"printf %s B-ready-''A; exec sh\"".to_owned()),
        ];
        for (method, password, flags, expected) in cases {
            let start = start(&become_root(method, password, flags), "sh", &token).unwrap();
            assert_eq!(start.command, expected);
            assert!(!start.command.contains("hidden"));
        }
    }

    #[test]
    fn nothing_is_asked_of_root_and_of_sudo_without_a_password() {
        let sudo = Some("exec env LC_ALL=C sudo -E -n -u root sh");
        let su = Some("exec env LC_ALL=C su -E root -c \"exec sh\"");
        let cases = [
            ("sudo", false, "bob", sudo),
            ("sudo", true, "bob", None),
            ("su", false, "root", su),
            ("su", false, "bob", None),
            ("su", true, "root", None),
            ("doas", false, "root", None),
        ];
        for (method, password, login_user, expected) in cases {
            let wanted = become_root(method, password, Some("-E"));
            assert_eq!(unasked(&wanted, "sh", login_user).as_deref(), expected, "{method} {password} {login_user}");
        }
    }

    #[test]
    fn complaints_are_understood() {
        let root = become_root("sudo", false, None);
        let cases = [
            ("sudo: a password is required", Some(1), "Missing sudo password"),
            ("sudo: no tty present and no askpass program specified", Some(1), "Missing sudo password"),
            ("Sorry, try again.\nsudo: 1 incorrect password attempt", Some(1), "Incorrect sudo password"),
            ("sudo: sorry, you must have a tty to run sudo", Some(1), "sudo wants a terminal"),
            ("bob is not in the sudoers file.", Some(1), "not allowed to become `root`"),
            ("Sorry, user bob is not allowed to execute '/bin/sh' as root", Some(1), "not allowed to become `root`"),
            (
                "sudo: unknown user: root\nsudo: error initializing audit plugin",
                Some(1),
                "there is no user `root` to become: sudo: unknown user: root",
            ),
            ("su: Authentication failure", Some(1), "Missing sudo password"),
            ("sh: 1: exec: sudo: not found", Some(127), "`sudo` was not found"),
            ("something else", Some(3), "sudo ended with code 3 instead of becoming `root`: something else"),
        ];
        for (said, code, expected) in cases {
            let message = refusal(&root, said, code).unwrap().message;
            assert!(message.starts_with(expected), "{said}: {message}");
        }
        assert_eq!(refusal(&root, "", None), None);
    }

    #[test]
    fn prompts_are_recognised() {
        for said in ["Password: ", "lecture\nPassword:", "[sudo] password for bob: "] {
            assert!(Prompt::Password.asked(said), "{said}");
        }
        for said in ["", "Password: \nPassword accepted", "Note:", "the password is old\nhello:"] {
            assert!(!Prompt::Password.asked(said), "{said}");
        }
    }
}
