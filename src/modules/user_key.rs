//! The key pair that the module `user` makes for a user.

use futures_util::try_join;

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, Script};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse};

use super::accounts::UserEntry;
use super::file_common::path::{clean, join, parent};
use super::programs::{command, make, step};
use super::{Args, Outcome};

/// What is asked of the key.
#[derive(Debug)]
pub struct Key {
    path: String,
    kind: String,
    bits: i64,
    comment: Option<String>,
    passphrase: Option<String>,
    force: bool,
}

impl Key {
    pub fn parse(args: &Args, user: &UserEntry) -> Result<Key, Failure> {
        let kind = args.text("ssh_key_type").to_owned();
        let file = args.str("ssh_key_file").map_or_else(|| format!(".ssh/id_{kind}"), str::to_owned);
        let path = if file.starts_with('/') { file } else { join(&user.home, &file) };
        if !path.starts_with('/') {
            return Err(Failure::new(format!("user {} has no home directory for the key {path}", user.name)));
        }
        let passphrase = args.str("ssh_key_passphrase").filter(|text| !text.is_empty()).map(str::to_owned);
        if passphrase.as_deref().is_some_and(|text| text.contains('\n')) {
            return Err(Failure::new("`ssh_key_passphrase` has a line break, which ssh-keygen cannot take"));
        }
        Ok(Key {
            path: clean(&path),
            kind,
            bits: args.int("ssh_key_bits").unwrap_or(0),
            comment: args.str("ssh_key_comment").map(str::to_owned),
            passphrase,
            force: args.bool("force"),
        })
    }

    fn public(&self) -> String {
        format!("{}.pub", self.path)
    }

    fn change(&self, user: &UserEntry, replaces: bool) -> Change {
        let (path, directory) = (quote(&self.path), quote(parent(&self.path)));
        let owner = format!("{}:{}", user.uid, user.gid);
        let comment = match &self.comment {
            Some(comment) => quote(comment),
            None => "\"ansible-generated on $(uname -n)\"".to_owned(),
        };
        let bits = if self.bits > 0 { format!(" -b {}", self.bits) } else { String::new() };
        let kind = command([self.kind.as_str()]);
        // without -N the passphrase is asked for, twice, on standard input
        let passphrase = if self.passphrase.is_some() { "" } else { " -N ''" };
        let remove = if replaces { format!("rm -f {path} {path}.pub\n") } else { String::new() };
        let code = format!(
            "if [ ! -d {directory} ]; then mkdir -m 700 {directory} && chown {owner} {directory} || exit; fi\n{remove}\
             e=$(ssh-keygen -q -t {kind}{bits} -C {comment}{passphrase} -f {path} 2>&1) || \
             {{ printf '%s\\n' \"$e\" >&2; exit 1; }}\n\
             chown {owner} {path} {path}.pub"
        );
        let mut keygen = step(code);
        if let Some(passphrase) = &self.passphrase {
            keygen = keygen.stdin(format!("{passphrase}\n{passphrase}\n"));
        }
        let inverse = if replaces {
            Inverse::None(format!("the key that was at {} is not kept", self.path))
        } else {
            Inverse::Steps(vec![step(format!("rm -f {path} {path}.pub"))])
        };
        Change::uncertain(format!("key {}", self.path), Footprint::tree(parent(&self.path)))
            .step(keygen)
            .step(step(self.facts()))
            .inverse(inverse)
            .difference(Difference::new(self.path.as_str(), "", format!("{} key\n", self.kind)))
    }

    /// Shell code that prints the fingerprint and the public key, a line each.
    fn facts(&self) -> String {
        let path = quote(&self.path);
        format!("ssh-keygen -l -f {path} && cat {path}.pub")
    }
}

/// Makes the key if there is none, and tells of it.
pub async fn bring_key(host: &Host, key: &Key, user: &UserEntry, outcome: Outcome) -> Result<Outcome, Failure> {
    let there = |path: String| host.read(Attributes { path, follow: true });
    let facts =
        Script { text: key.facts(), footprint: Footprint::path(key.path.as_str()).and(Footprint::path(key.public())) };
    let read = try_join!(there(key.path.clone()), there(key.public()), host.read(facts));
    let outcome = outcome.with("ssh_key_file", key.path.as_str());
    let (private, public, facts) = match read {
        // in check mode, of a user whose home would be made
        Err(failure) if host.is_check() && outcome.changed => {
            return if failure.kind == crate::host::FailureKind::Failed { Err(failure) } else { Ok(outcome) };
        }
        read => read?,
    };
    let exists = private.is_some() || public.is_some();
    if exists && !key.force {
        let path = if private.is_some() { key.path.clone() } else { key.public() };
        let warning = format!("Found existing ssh key file \"{path}\", no force, so skipping ssh-keygen generation");
        return Ok(told(outcome.warning(warning), &facts.text()));
    }
    let change = key.change(user, exists);
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
    let responses = make(host, change).await?;
    Ok(match responses.and_then(|responses| responses.last().map(|last| last.text())) {
        Some(text) => told(outcome, &text),
        None => outcome,
    })
}

fn told(outcome: Outcome, facts: &str) -> Outcome {
    let mut lines = facts.lines();
    let mut next = || lines.next().unwrap_or_default().trim().to_owned();
    outcome.with("ssh_fingerprint", next()).with("ssh_public_key", next())
}
