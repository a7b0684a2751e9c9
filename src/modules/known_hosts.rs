//! ansible.builtin.known_hosts: keys of other hosts in the host's known_hosts.

use crate::host::{Difference, Failure};

use super::edited_file::{bring, text_of};
use super::file_common::destination::{Manner, look};
use super::file_common::path::parent;
use super::host_keys::{edit, wanted_line};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.known_hosts",
    aliases: &[],
    summary: "Keeps keys of other hosts in the host's known_hosts",
    args: &[
        Arg::new("name", Type::Str, "The other host, as `[HOST]:PORT` for a port of its own")
            .required()
            .aliases(&["host"]),
        Arg::new("key", Type::Str, "The line, as `HOST ssh-ed25519 AAAA…`; absent without it: all keys of the host"),
        Arg::new("path", Type::Path, "The file").default("~/.ssh/known_hosts"),
        Arg::new("hash_host", Type::Bool, "Write the name as a hash").default("false"),
        Arg::new("state", Type::Str, "Whether the key is there").default("present").choices(&["absent", "present"]),
    ],
    rules: &[Rule::RequiredIf("state", "present", &["key"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "the other host"),
        ("key", "as given"),
        ("path", "the file"),
        ("state", "as given"),
        ("hash_host", "as given"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = args.text("name").to_lowercase();
    if name.contains(',') || name.contains(char::is_whitespace) || name.is_empty() {
        return Err(Failure::new(
            "Comma separated list of names is not supported. Please pass a single name to lookup in the known_hosts file.",
        ));
    }
    let mut salt = [0; 20];
    getrandom::fill(&mut salt).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    let salt = args.bool("hash_host").then_some(&salt[..]);
    let wanted = args.str("key").filter(|key| !key.trim().is_empty());
    let wanted = wanted.map(|key| wanted_line(&name, key, salt)).transpose()?;
    let present = args.text("state") == "present";
    if present && wanted.is_none() {
        return Err(Failure::new("No key specified when adding a host"));
    }
    let seen = look(&host, &args, args.text("path"), true).await?;
    let old = text_of(&seen)?;
    let new = edit(&old, &name, wanted.as_deref(), present);
    if new.is_some() && !seen.missing_directories.is_empty() {
        let message = format!("Failed to write to file {}: {} does not exist", seen.named, parent(&seen.named));
        return Err(Failure::new(message));
    }
    let mut outcome = Outcome::ok();
    for name in ["name", "key", "state", "hash_host"] {
        outcome = outcome.with(name, args.get(name).cloned().unwrap_or(crate::value::Value::Null));
    }
    outcome = outcome.with("path", seen.named.as_str());
    let manner = Manner { backup: None, validate: None, unsafe_writes: false };
    let shown = Difference::new(seen.named.as_str(), old.as_str(), new.clone().unwrap_or_else(|| old.clone()));
    let (mut outcome, _) = bring(&host, &seen, new, &manner, outcome).await?;
    outcome.differences = vec![shown];
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, run_module, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn a_key_is_kept_and_brought_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("known_hosts");
        let given = |more: &[(&'static str, Value)]| {
            [&[("name", "KP001".into()), ("path", path.to_str().unwrap().into())], more].concat()
        };
        let before = snapshot(root.path());
        let key =
            ("key", "kp001 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII5bfebNeAy5P4fPS2mtG22RWILZri6jpDKhHe610hmq".into());
        let made = play(&MODULE, &given(&[key.clone(), ("hash_host", true.into())]), &Play::default());
        let outcome = made.result.unwrap();
        assert!(outcome.changed);
        assert!(outcome.differences[0].after.starts_with("|1|") && outcome.differences[0].before.is_empty());
        assert_eq!(outcome.differences[0].after_header, path.to_str().unwrap());
        let again = play(&MODULE, &given(&[key, ("hash_host", true.into())]), &Play::default());
        let unchanged = again.result.unwrap();
        assert_eq!((unchanged.changed, again.batches), (false, 1));
        assert_eq!(unchanged.differences[0].before, unchanged.differences[0].after, "Ansible always tells it");
        // the real tool finds it too
        if let Ok(found) = std::process::Command::new("ssh-keygen").args(["-F", "kp001", "-f"]).arg(&path).output() {
            assert!(found.status.success());
        }
        undo(&made.changes);
        assert_eq!(snapshot(root.path()), before);
        let failure = run_module(&MODULE, &given(&[])).unwrap_err();
        assert!(failure.message.contains("key"), "{}", failure.message);
        let nowhere = [("name", "a".into()), ("key", "a ssh-rsa AAA".into()), ("path", "/no/such/file".into())];
        assert!(run_module(&MODULE, &nowhere).unwrap_err().message.contains("/no/such does not exist"));
    }
}
