//! ansible.posix.authorized_key: the keys by which a user may log in.

use futures_util::try_join;

use crate::host::reads::{Attributes, FileContent};
use crate::host::{Change, Failure, Host};

use super::accounts::{FindUser, UserEntry};
use super::authorized_keys::{Key, edit, keys};
use super::edited_file::text_of;
use super::file_common::account::{Account, Database, FindAccount};
use super::file_common::content::difference;
use super::file_common::destination::{
    Destination, Manner, attribute_change, join_changes, look, new_directories, plan_edit, with_directories,
};
use super::file_common::mode::Mode;
use super::file_common::path::{absolute, join, parent};
use super::file_common::permissions::Permissions;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.authorized_key",
    aliases: &[],
    summary: "Keeps the keys by which a user may log in over SSH",
    args: &[
        Arg::new("user", Type::Str, "Whose keys").required(),
        Arg::new("key", Type::Str, "The public keys, a line each; or `file://` and a path of the host").required(),
        Arg::new("path", Type::Path, "The file in place of ~/.ssh/authorized_keys"),
        Arg::new("manage_dir", Type::Bool, "Make the file's directory, and give it to the user alone").default("true"),
        Arg::new("state", Type::Str, "Whether the keys are there").default("present").choices(&["absent", "present"]),
        Arg::new("key_options", Type::Str, "Options that stand before the keys"),
        Arg::new("exclusive", Type::Bool, "No other keys are there").default("false"),
        Arg::new("comment", Type::Str, "The comment behind the keys, in place of their own"),
        Arg::new("follow", Type::Bool, "A symbolic link is followed; else it is replaced by a file").default("false"),
        Arg::new("validate_certs", Type::Bool, "Only for keys from an address, which are not supported")
            .default("true"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("keyfile", "the file"),
        ("user", "whose keys"),
        ("key", "as given"),
        ("key_options", "as given"),
        ("exclusive", "as given"),
        ("manage_dir", "as given"),
        ("path", "as given"),
        ("state", "as given"),
        ("validate_certs", "as given"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let user_name = args.text("user");
    let (user, own_keys) = try_join!(host.read(FindUser(user_name.to_owned())), wanted_keys(&host, &args))?;
    let Some(user) = user else {
        return Err(Failure::new(format!("Failed to lookup user {user_name}: it does not exist on this host")));
    };
    let path = match args.str("path") {
        Some(path) => absolute(&host, path).await?,
        None if user.home.starts_with('/') => join(&user.home, ".ssh/authorized_keys"),
        None => return Err(Failure::new(format!("user {user_name} has no home directory for its keys"))),
    };
    let directory = Attributes { path: parent(&path).to_owned(), follow: true };
    let (mut seen, directory) = try_join!(look(&host, &args, &path, true), host.read(directory))?;
    if seen.is_link && !args.bool("follow") {
        seen.real.clone_from(&seen.named);
        seen.is_link = false;
    }
    let old = text_of(&seen)?;
    let new = edit(&old, &own_keys, args.text("state") == "present", args.bool("exclusive"));
    let mut outcome = Outcome::ok().with("keyfile", path.as_str());
    let given = [
        "user",
        "key",
        "key_options",
        "exclusive",
        "manage_dir",
        "path",
        "state",
        "comment",
        "follow",
        "validate_certs",
    ];
    for name in given {
        outcome = outcome.with(name, args.get(name).cloned().unwrap_or(crate::value::Value::Null));
    }
    let Some(new) = new else { return Ok(outcome) };
    let group = FindAccount { database: Database::Groups, name: user.gid.to_string() };
    let group = host.read(group).await?.map_or_else(|| "UNKNOWN".to_owned(), |group| group.name);
    let group = Account { id: user.gid, name: group };
    let change = plan(seen, directory, &user, group, new.clone(), args.bool("manage_dir"));
    let Some(mut change) = change else { return Ok(outcome) };
    let shown = difference((&path, &path), Some(old.as_bytes()), false, new.as_bytes());
    change.differences = vec![shown.clone()];
    host.change(change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences([shown]))
}

/// The keys that the task names.
async fn wanted_keys(host: &Host, args: &Args) -> Result<Vec<Key>, Failure> {
    let mut text = args.text("key").to_owned();
    if text.starts_with("http://") || text.starts_with("https://") {
        return Err(Failure::new(format!(
            "keys from an address are not supported ({text}): fetch them with `get_url` and name the file as `file:///…`"
        )));
    }
    if let Some(path) = text.strip_prefix("file://") {
        let path = absolute(host, path).await?;
        let content = host.read(FileContent(path.clone())).await?;
        let content = content.ok_or_else(|| Failure::new(format!("Path to a key file not found: {path}")))?;
        text = String::from_utf8_lossy(&content).into_owned();
    }
    keys(&text, args.str("key_options"), args.str("comment"))
}

/// The change of the file, which is the user's alone, and of its directory if that is managed.
fn plan(
    mut seen: Destination,
    directory: Option<crate::host::reads::FileAttributes>,
    user: &UserEntry,
    group: Account,
    text: String,
    manage: bool,
) -> Option<Change> {
    let owner = Account { id: user.uid, name: user.name.clone() };
    let own = |mode: u32| Permissions {
        mode: Some(Mode::Absolute(mode)),
        owner: Some(owner.clone()),
        group: Some(group.clone()),
    };
    let (mut directories, mut attributes) = (Vec::new(), None);
    if manage {
        match &directory {
            Some(there) => {
                let after = own(0o700).on(there, seen.me.umask);
                attributes = attribute_change(parent(&seen.named), there, &after);
                seen.above = Some(after);
            }
            None => {
                directories = new_directories(&seen.missing_directories, seen.above.as_ref(), &seen.me, &own(0o700));
                seen.above = directories.last().map(|last| last.after.clone());
                seen.missing_directories.clear();
            }
        }
    }
    seen.permissions = own(0o600);
    let manner = Manner { backup: None, validate: None, unsafe_writes: false };
    let what = format!("keys of {}", user.name);
    let file =
        plan_edit(&seen, Some(text.into_bytes()), &manner).change.map(|change| with_directories(change, &directories));
    join_changes(attributes, file).map(|change| Change { what, ..change })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, snapshot, undo};
    use crate::value::Value;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII5bfebNeAy5P4fPS2mtG22RWILZri6jpDKhHe610hmq kp";

    fn me() -> String {
        let output = std::process::Command::new("id").arg("-un").output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    #[test]
    fn keys_come_and_go_in_a_file_of_the_user_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(".ssh/keys");
        let given = |key: &str, more: &[(&'static str, Value)]| {
            let own = [("user", me().into()), ("key", key.into()), ("path", path.to_str().unwrap().into())];
            [&own[..], more].concat()
        };
        let before = snapshot(root.path());
        assert!(check_module(&MODULE, &given(KEY, &[])).unwrap().changed);
        let made = play(&MODULE, &given(KEY, &[]), &Play::default());
        assert!(made.result.unwrap().changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{KEY}\n"));
        let mode = |path: &std::path::Path| {
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions()) & 0o7777
        };
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let again = play(&MODULE, &given(KEY, &[]), &Play::default());
        assert!(!again.result.unwrap().changed);
        let file = root.path().join("own.pub");
        std::fs::write(&file, format!("{KEY}\n")).unwrap();
        let url = format!("file://{}", file.display());
        assert!(!run_module(&MODULE, &given(&url, &[])).unwrap().changed);
        std::fs::remove_file(file).unwrap();
        assert!(run_module(&MODULE, &given("ssh-rsa BBBB", &[("exclusive", true.into())])).unwrap().changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ssh-rsa BBBB\n");
        assert!(run_module(&MODULE, &given("ssh-rsa BBBB", &[("state", "absent".into())])).unwrap().changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        undo(&made.changes);
        assert_eq!(snapshot(root.path()), before);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |user: &str, key: &str| {
            run_module(&MODULE, &[("user", user.into()), ("key", key.into()), ("path", "/x".into())])
                .unwrap_err()
                .message
        };
        assert!(refused("no-such-user", KEY).starts_with("Failed to lookup user no-such-user"));
        assert!(refused(&me(), "https://x/y").contains("get_url"));
        assert_eq!(refused(&me(), "file:///no/such"), "Path to a key file not found: /no/such");
        assert_eq!(refused(&me(), "zzz"), "invalid key specified: zzz");
    }
}
