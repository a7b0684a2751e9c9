//! `ansible.posix.synchronize`: trees are brought to a host, or from it, by rsync on the controller.

use std::process::Stdio;
use std::sync::Arc;

use crate::connect::{Become, HostKeyChecking, Target, Transport};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse};
use crate::template::Context;

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.synchronize",
    aliases: &[],
    summary: "Brings trees to the host or from it by rsync and ssh of the controller",
    args: &[
        Arg::new("src", Type::Str, "what is copied; with a trailing slash what is in it").required(),
        Arg::new("dest", Type::Str, "where it goes").required(),
        Arg::new("mode", Type::Str, "`push`: to the host; `pull`: from it").default("push").choices(&["pull", "push"]),
        Arg::new("archive", Type::Bool, "recursive, links, perms, times, owner, group and devices").default("true"),
        Arg::new("checksum", Type::Bool, "compare contents, not sizes and times").default("false"),
        Arg::new("compress", Type::Bool, "pack for the way").default("true"),
        Arg::new("existing_only", Type::Bool, "make no new files").default("false"),
        Arg::new("delete", Type::Bool, "remove what is not in the source").default("false"),
        Arg::new("delay_updates", Type::Bool, "put new files in their places at the end").default("true"),
        Arg::new("dirs", Type::Bool, "directories without what is in them").default("false"),
        Arg::new("recursive", Type::Bool, "directories with all that is in them"),
        Arg::new("links", Type::Bool, "links as links"),
        Arg::new("copy_links", Type::Bool, "what links lead to").default("false"),
        Arg::new("perms", Type::Bool, "permissions too"),
        Arg::new("times", Type::Bool, "times too"),
        Arg::new("owner", Type::Bool, "owners too"),
        Arg::new("group", Type::Bool, "groups too"),
        Arg::new("partial", Type::Bool, "keep what was copied when it breaks off").default("false"),
        Arg::new("rsync_path", Type::Str, "the rsync of the host"),
        Arg::new("rsync_opts", Type::List, "more options of rsync"),
        Arg::new("rsync_timeout", Type::Int, "seconds of silence before it gives up").default("0"),
        Arg::new("link_dest", Type::List, "directories of the destination whose unchanged files are linked"),
        Arg::new("dest_port", Type::Int, "the port of the host's sshd"),
        Arg::new("private_key", Type::Path, "the key to log in with"),
        Arg::new("set_remote_user", Type::Bool, "log in as the user of the inventory").default("true"),
        Arg::new("use_ssh_args", Type::Bool, "has no effect: the settings of SSH always count").default("false"),
        Arg::new("ssh_connection_multiplexing", Type::Bool, "has no effect: ssh's own settings decide")
            .default("false"),
        Arg::new("verify_host", Type::Bool, "check the host's key though that is switched off").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("cmd", "the command"),
        ("rc", "its exit code"),
        ("msg", "what was copied or removed, as rsync lists it"),
        ("stdout_lines", "the same by lines"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Before every line of rsync that tells a change.
const MARK: &str = "<<CHANGED>>";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, settings } = invocation;
    let Some(target) = settings.target.clone() else {
        return Err(Failure::new("how to reach the host is not known"));
    };
    let inventory_name = context.scope.get("inventory_hostname").ok().flatten();
    if inventory_name.is_some_and(|name| name.to_text() != target.name) {
        return Err(Failure::new(
            "`synchronize` with `delegate_to` another host is not supported: rsync runs on the controller anyway, so leave \
             `delegate_to` out, or run `rsync` by the module `command` on that host",
        ));
    }
    let words = words(&args, &host, &context, &target)?;
    // what rsync sees changes with time
    host.turn().await?;
    let listed = rsync(&words, true).await?;
    let shown: Vec<String> = words.iter().map(|word| crate::connect::shell::quote(word)).collect();
    let outcome = Outcome::ok().with("cmd", shown.join(" ")).with("rc", 0);
    let changes: Vec<String> = listed.lines().filter_map(|line| line.strip_prefix(MARK)).map(str::to_owned).collect();
    if changes.is_empty() {
        return Ok(outcome.with("msg", "").with("stdout_lines", crate::value::Value::list(Vec::new())));
    }
    let push = args.text("mode") == "push";
    let footprint = if push { Footprint::Everything } else { Footprint::nothing() };
    let lines: String = changes.iter().map(|line| format!("{line}\n")).collect();
    let change = Change::certain(format!("synchronize {}", args.text("dest")), footprint)
        .inverse(Inverse::None("rsync keeps nothing of what it replaced".to_owned()))
        .difference(Difference::new(args.text("dest"), "", lines.as_str()));
    let mut change = change;
    if host.is_check() {
        // a plan is made by the host's shell alone
        let words = "echo 'rsync runs on the controller, so it is no part of a plan: run the playbook' >&2; exit 1";
        change = change.step(crate::host::Step::new(words));
    }
    let differences = change.differences.clone();
    let applied = host.change(change).await?;
    let done = if applied.check { listed } else { rsync(&words, false).await? };
    let message = done.replace(MARK, "");
    Ok(Outcome { changed: true, ..outcome }
        .differences(differences)
        .with("msg", message.as_str())
        .with("stdout_lines", super::execution::lines(&message)))
}

/// Runs rsync on the controller.
async fn rsync(words: &[String], dry: bool) -> Result<String, Failure> {
    let mut command = tokio::process::Command::new(&words[0]);
    command.args(dry.then_some("--dry-run")).args(&words[1..]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = command
        .output()
        .await
        .map_err(|error| Failure::new(format!("`rsync` of the controller does not start: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let hint = if stderr.contains("Permission denied (") {
        "; rsync logs in by ssh with keys alone, never with a password"
    } else {
        ""
    };
    Err(Failure::new(format!("{stderr}{hint}"))
        .with("rc", output.status.code().unwrap_or(-1))
        .with("cmd", words.join(" ")))
}

/// The words of the command.
fn words(args: &Args, host: &Host, context: &Context, target: &Arc<Target>) -> Result<Vec<String>, Failure> {
    let mut words = vec!["rsync".to_owned()];
    let mut add = |word: &str| words.push(word.to_owned());
    if args.bool("delay_updates") {
        add("--delay-updates");
        add("-F");
    }
    for (key, word) in [
        ("compress", "--compress"),
        ("delete", "--delete-after"),
        ("existing_only", "--existing"),
        ("checksum", "--checksum"),
        ("copy_links", "--copy-links"),
        ("archive", "--archive"),
        ("dirs", "--dirs"),
        ("partial", "--partial"),
    ] {
        if args.bool(key) {
            add(word);
        }
    }
    for key in ["recursive", "links", "perms", "times", "owner", "group"] {
        // `archive` is all of them: what is given decides
        match (args.optional_bool(key), args.bool("archive")) {
            (Some(true), false) => add(&format!("--{key}")),
            (Some(false), true) => add(&format!("--no-{key}")),
            _ => {}
        }
    }
    if let Some(seconds) = args.int("rsync_timeout").filter(|seconds| *seconds > 0) {
        add(&format!("--timeout={seconds}"));
    }
    for directory in args.list("link_dest") {
        add(&format!("--link-dest={directory}"));
    }
    let is_local = target.transport == Transport::Local;
    let become_as = host.identity().become_as.as_ref();
    let path = match (args.str("rsync_path").filter(|path| !path.is_empty()), become_as) {
        (Some(path), _) => Some(path.to_owned()),
        (None, Some(become_as)) if !is_local => Some(by_sudo(become_as)?),
        (None, Some(_)) => {
            return Err(Failure::new(
                "`become` is not supported for a host that is reached by `local`: rsync runs as who runs trimtab",
            ));
        }
        (None, None) => None,
    };
    words.extend(path.map(|path| format!("--rsync-path={path}")));
    if !is_local {
        words.push(format!("--rsh={}", ssh(args, target)));
    }
    words.extend(args.list("rsync_opts"));
    words.push(format!("--out-format={MARK}%i %n%L"));
    let push = args.text("mode") == "push";
    let (src, dest) = (args.text("src"), args.text("dest"));
    let remote = |path: &str| match is_local {
        true => path.to_owned(),
        false => {
            let user = target.user.as_ref().filter(|_| args.bool("set_remote_user"));
            let user = user.map(|user| format!("{user}@")).unwrap_or_default();
            let address =
                if target.address.contains(':') { format!("[{}]", target.address) } else { target.address.clone() };
            format!("{user}{address}:{path}")
        }
    };
    if [src, dest].iter().any(|path| path.starts_with('-') || path.is_empty()) {
        return Err(Failure::new("`src` and `dest` are paths, and begin with no dash"));
    }
    if push {
        words.push(of_controller(context, src, true));
        words.push(remote(dest));
    } else {
        words.push(remote(src));
        words.push(of_controller(context, dest, false));
    }
    Ok(words)
}

/// A path of the controller; a trailing slash stays.
fn of_controller(context: &Context, path: &str, find: bool) -> String {
    if path.contains("://") || path.starts_with("rsync:") {
        return path.to_owned();
    }
    let slash = if path.ends_with('/') { "/" } else { "" };
    let found = context.search.find("files", path.trim_end_matches('/')).filter(|_| find && !path.starts_with('/'));
    let home = crate::template::expand_home(path);
    let full = found.unwrap_or_else(|| context.search.playbook_dir.join(home));
    format!("{}{slash}", full.display().to_string().trim_end_matches('/'))
}

fn by_sudo(become_as: &Become) -> Result<String, Failure> {
    if become_as.method != "sudo" || become_as.password.is_some() {
        return Err(Failure::new(
            "`synchronize` can become another user by sudo without a password alone: set `rsync_path`, or let sudo ask for none",
        ));
    }
    Ok(format!("sudo -n -u {} rsync", become_as.user))
}

/// The command by which rsync reaches the host.
fn ssh(args: &Args, target: &Target) -> String {
    let mut words = vec!["ssh".to_owned(), "-o".into(), "BatchMode=yes".into()];
    let port = args.int("dest_port").map(|port| port.to_string()).or(target.port.map(|port| port.to_string()));
    if let Some(port) = port {
        words.extend(["-p".to_owned(), port]);
    }
    let key = args.str("private_key").map(str::to_owned).or_else(|| target.private_key_file.clone());
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        words.extend(["-i".to_owned(), crate::template::expand_home(&key).display().to_string()]);
    }
    let checking = if args.bool("verify_host") { HostKeyChecking::Strict } else { target.host_key_checking };
    match checking {
        HostKeyChecking::Strict => words.extend(["-o".to_owned(), "StrictHostKeyChecking=yes".into()]),
        HostKeyChecking::AcceptNew => words.extend(["-o".to_owned(), "StrictHostKeyChecking=accept-new".into()]),
        HostKeyChecking::Off => words.extend(
            ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
                .map(str::to_owned),
        ),
    }
    words.extend(["-o".to_owned(), format!("ConnectTimeout={}", target.connect_timeout.as_secs().max(1))]);
    words.extend(target.ssh_args.iter().cloned());
    words.iter().map(|word| crate::connect::shell::quote(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, skip};
    use crate::value::Value;

    #[test]
    fn trees_are_brought_once() {
        if std::process::Command::new("rsync").arg("--version").output().is_err() {
            skip("this machine has no rsync");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir_all(at("src/d")).unwrap();
        std::fs::write(at("src/d/f"), "one\n").unwrap();
        for mode in ["push", "pull"] {
            let run = |more: &[(&'static str, Value)], check| {
                let own = [("src", at("src/").into()), ("dest", at(mode).into()), ("mode", mode.into())];
                play(&MODULE, &[&own[..], more].concat(), &Play { check, ..Play::default() })
            };
            let would = run(&[], true).result.unwrap();
            assert!(
                would.changed
                    && would.differences[0].after.contains("d/f")
                    && !std::path::Path::new(&at(mode)).exists()
            );
            let outcome = run(&[], false).result.unwrap();
            assert!(outcome.changed && outcome.result["msg"].to_string().contains("d/f"));
            assert_eq!(std::fs::read_to_string(at(&format!("{mode}/d/f"))).unwrap(), "one\n");
            for check in [true, false] {
                assert!(!run(&[], check).result.unwrap().changed);
            }
            std::fs::write(at(&format!("{mode}/more")), "").unwrap();
            assert!(run(&[("delete", true.into())], false).result.unwrap().changed);
            assert!(!std::path::Path::new(&at(&format!("{mode}/more"))).exists());
        }
        let wrong = [("src", at("no/such").into()), ("dest", at("x").into())];
        let failure = play(&MODULE, &wrong, &Play::default()).result.unwrap_err();
        assert!(failure.message.contains("No such file"), "{}", failure.message);
    }

    #[test]
    fn ssh_has_the_settings_of_the_inventory() {
        let map = [("src", "a"), ("dest", "/b")].map(|(name, value)| (Value::from(name), Value::from(value)));
        let args = crate::modules::args::validate(&MODULE, &map.into_iter().collect()).unwrap();
        let target = Target {
            name: "db".into(),
            transport: Transport::Ssh,
            address: "192.0.2.1".into(),
            port: Some(2222),
            user: Some("me".into()),
            password: None,
            private_key_file: Some("/k e y".into()),
            ssh_args: vec!["-J".into(), "jump".into()],
            host_key_checking: HostKeyChecking::AcceptNew,
            connect_timeout: std::time::Duration::from_secs(7),
        };
        let command = ssh(&args, &target);
        for part in [
            "-p 2222",
            "-i '/k e y'",
            "StrictHostKeyChecking=accept-new",
            "ConnectTimeout=7",
            "-J jump",
            "BatchMode=yes",
        ] {
            assert!(command.contains(part), "{part} in {command}");
        }
        let become_as = Become { method: "sudo".into(), user: "root".into(), password: None, exe: None, flags: None };
        assert_eq!(by_sudo(&become_as).unwrap(), "sudo -n -u root rsync");
        assert!(by_sudo(&Become { method: "su".into(), ..become_as }).is_err());
    }
}
