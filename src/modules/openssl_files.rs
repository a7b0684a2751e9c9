//! Keys, requests and certificates by the host's openssl: what they have in common.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host};
use crate::value::Value;

use super::Args;
use super::Outcome;
use super::edited_file::bring;
use super::file_common::content::{KEPT_BYTES, backup_name};
use super::file_common::destination::{Destination, Manner};

/// Lines before every script.
pub const START: &str =
    "export LC_ALL=C\ncommand -v openssl >/dev/null || { echo 'the host has no program `openssl`' >&2; exit 127; }\n";

/// What a script of openssl printed.
pub async fn ask(host: &Host, code: &str, paths: &[&str]) -> Result<Result<String, String>, Failure> {
    let footprint = paths.iter().fold(Footprint::nothing(), |all, path| all.and(Footprint::path(*path)));
    let response = host.read(Script { text: format!("{START}{code}"), footprint }).await?;
    match response.code {
        Some(0) => Ok(Ok(response.text())),
        Some(127) => Err(Failure::new(response.error_text().trim().to_owned())),
        _ => Ok(Err(response.error_text().trim().to_owned())),
    }
}

/// ` -passin stdin` with what feeds it, if there is a passphrase.
pub fn pass_in(passphrase: Option<&str>) -> (String, &'static str) {
    match passphrase {
        Some(words) => (format!("printf '%s\\n' {} | ", quote(words)), " -passin stdin"),
        None => (String::new(), ""),
    }
}

/// Writes a new file with the attributes that the task asks for, or brings the attributes alone.
pub async fn write(host: &Host, args: &Args, seen: &Destination, content: Option<String>) -> Result<Outcome, Failure> {
    let manner = Manner { backup: args.bool("backup").then(|| backup_name(&seen.named)), ..Manner::default() };
    let is_secret = content.as_ref().is_some_and(|content| content.contains("PRIVATE KEY"));
    debug_assert!(content.as_ref().is_none_or(|content| content.len() as u64 <= KEPT_BYTES));
    let (mut outcome, written) = bring(host, seen, content, &manner, Outcome::ok()).await?;
    if is_secret {
        // a key is never shown
        outcome.differences.clear();
    }
    let outcome = outcome.with("filename", seen.named.as_str());
    Ok(match written.backup {
        Some(backup) => outcome.with("backup_file", backup),
        None => outcome,
    })
}

/// A subject as openssl's `-subj` has it, from maps and single arguments: `/C=DE/CN=x`.
pub fn subject(args: &Args) -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: &Value| match value.as_list() {
        Some(values) => parts.extend(values.iter().map(|value| (key.to_owned(), value.to_text().into_owned()))),
        None if value.is_null() => {}
        None => parts.push((key.to_owned(), value.to_text().into_owned())),
    };
    for (key, value) in args.get("subject").and_then(Value::as_map).into_iter().flatten() {
        add(&key.to_text(), value);
    }
    for (key, name) in [
        ("C", "country_name"),
        ("ST", "state_or_province_name"),
        ("L", "locality_name"),
        ("O", "organization_name"),
        ("OU", "organizational_unit_name"),
        ("CN", "common_name"),
        ("emailAddress", "email_address"),
    ] {
        if let Some(value) = args.get(name) {
            add(key, value);
        }
    }
    parts
}
