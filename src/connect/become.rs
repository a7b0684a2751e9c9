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
    ConnectError { kind: ConnectErrorKind::Become, message: message.into() }
}

/// What became of an attempt that ended without a shell, from all that was said. `None`: nothing that the program
/// for becoming says; the connection broke, rather.
pub(super) fn refusal(wanted: &Become, said: &str, code: Option<u32>) -> Option<ConnectError> {
    let method = &wanted.method;
    let who = &wanted.user;
    let lower = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    if has(&["a password is required", "no password was provided", "a terminal is required to read the password"])
        || has(&["no tty present and no askpass"])
    {
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
    if has(&["unknown user", "does not exist", "unknown uid"]) {
        return Some(failed(format!("there is no user `{who}` to become: {last}")));
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
