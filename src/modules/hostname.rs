//! ansible.builtin.hostname: the host's own name, now and at boot.

use futures_util::try_join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileContent, KernelFile, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Query, Step};
use crate::value::{Map, object};

use super::programs::step;
use super::{Action, Arg, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.hostname",
    aliases: &[],
    summary: "Sets the host's own name, now and at boot",
    args: &[
        Arg::new("name", Type::Str, "The name").required(),
        Arg::new("use", Type::Str, "How it is set; if not given, as the host's init system has it").choices(&[
            "alpine", "debian", "freebsd", "generic", "macos", "macosx", "darwin", "openbsd", "openrc", "redhat",
            "sles", "solaris", "systemd",
        ]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "the name"),
        ("ansible_facts", "ansible_hostname, ansible_nodename, ansible_fqdn, ansible_domain"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const NOW: &str = "/proc/sys/kernel/hostname";
const AT_BOOT: &str = "/etc/hostname";
const OLD_RED_HAT: &str = "/etc/sysconfig/network";

/// Where the name for the next boot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// hostnamectl where systemd runs, else the file.
    File,
    /// HOSTNAME in /etc/sysconfig/network.
    OldRedHat,
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = checked(args.text("name"))?;
    let manner = match args.str("use") {
        None | Some("systemd" | "debian" | "generic" | "alpine" | "openrc" | "sles") => Manner::File,
        Some("redhat") => Manner::OldRedHat,
        Some(other) => {
            return Err(Failure::new(format!("`use: {other}` is for a system that trimtab does not manage")));
        }
    };
    let file = if manner == Manner::OldRedHat { OLD_RED_HAT } else { AT_BOOT };
    let fqdn = Script { text: "hostname -f 2>/dev/null || uname -n".to_owned(), footprint: Footprint::Everything };
    let (now, at_boot) = try_join!(host.read(KernelFile(NOW.to_owned())), host.read(FileContent(file.to_owned())))?;
    let now = now.unwrap_or_default().trim().to_owned();
    let content = at_boot.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let change = plan(name, &now, content.as_deref(), manner, host.is_check());
    let outcome = match change {
        None => Outcome::ok().with("ansible_facts", facts(name, host.read(fqdn).await?.text().trim())),
        Some(change) => {
            let outcome = Outcome::of_change(&change);
            host.change(change).await?;
            // the new name's domain is what the name says: others must be asked first
            outcome.with("ansible_facts", facts(name, name))
        }
    };
    let facts = outcome.result.get("ansible_facts").and_then(|facts| facts.as_map().cloned()).unwrap_or_default();
    Ok(outcome.with("name", name).effect(Effect::Facts(facts)))
}

/// The name, if the kernel and hostname(7) can take it.
fn checked(name: &str) -> Result<&str, Failure> {
    let valid = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if name.len() > 64 {
        return Err(Failure::new(format!(
            "`{name}` is longer than the 64 letters that the kernel takes for a host's name"
        )));
    }
    if !name.split('.').all(valid) {
        return Err(Failure::new(format!("`{name}` cannot be a host's name: letters, digits, hyphens and dots only")));
    }
    Ok(name)
}

/// The name that a file has for the next boot.
fn boot_name(content: Option<&str>, manner: Manner) -> &str {
    let mut lines = content.unwrap_or_default().lines().map(str::trim);
    match manner {
        Manner::File => lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default(),
        Manner::OldRedHat => {
            let value = lines.find_map(|line| line.strip_prefix("HOSTNAME="));
            value.unwrap_or_default().trim_matches(['"', '\''])
        }
    }
}

fn plan(name: &str, now: &str, content: Option<&str>, manner: Manner, check: bool) -> Option<Change> {
    let before = boot_name(content, manner);
    if now == name && before == name {
        return None;
    }
    let file = if manner == Manner::OldRedHat { OLD_RED_HAT } else { AT_BOOT };
    // many programs look at the name, but in check mode not everything can count as unknown for it
    let footprint = if check { Footprint::path(NOW).and(Footprint::path(file)) } else { Footprint::Everything };
    let shown = |name: &str| format!("hostname = {name}\n");
    let old = if now == name { before } else { now };
    let forth = forth(name, content, manner);
    let mut change = Change::certain("hostname", footprint)
        .step(forth.expect(name))
        .leaves(Query::Line(NOW.into()), Response::output(name))
        .difference(Difference::new("hostname", shown(old), shown(name)))
        .inverse(Inverse::Steps(vec![back(now, content, file)]));
    if manner == Manner::File {
        change = change.leaves(Query::Content(file.into()), Response::output(format!("{name}\n")));
    }
    Some(change)
}

/// Sets the name of the running kernel, by whatever the host has for it.
const SET_NOW: &str = "set_now() { if command -v hostname >/dev/null 2>&1; then hostname \"$1\"; \
                       else printf '%s\\n' \"$1\" >/proc/sys/kernel/hostname; fi; }\n";

fn forth(name: &str, content: Option<&str>, manner: Manner) -> Step {
    let name = quote(name);
    let read_back = format!("cat {NOW}");
    match manner {
        Manner::File => step(format!(
            "{SET_NOW}if [ -d /run/systemd/system ] && command -v hostnamectl >/dev/null 2>&1; then \
             hostnamectl --pretty --static set-hostname {name} && hostnamectl --transient set-hostname {name} || exit; \
             else printf '%s\\n' {name} >{AT_BOOT} && set_now {name} || exit; fi\n{read_back}"
        )),
        Manner::OldRedHat => {
            let mut text = String::new();
            let mut found = false;
            for line in content.unwrap_or_default().lines() {
                if line.trim_start().starts_with("HOSTNAME=") {
                    text.push_str(&format!("HOSTNAME={name}\n"));
                    found = true;
                } else {
                    text.push_str(&format!("{line}\n"));
                }
            }
            if !found {
                text.push_str(&format!("HOSTNAME={name}\n"));
            }
            step(format!("{SET_NOW}cat >{OLD_RED_HAT} && set_now {name} && {read_back}")).stdin(text)
        }
    }
}

/// Puts back the file as it was, and the name.
fn back(now: &str, content: Option<&str>, file: &str) -> Step {
    let name = quote(now);
    let file_back = match content {
        Some(_) => format!("cat >{file}"),
        None => format!("rm -f {file}"),
    };
    let restart = "if [ -d /run/systemd/system ] && command -v hostnamectl >/dev/null 2>&1; then \
                   systemctl try-restart systemd-hostnamed 2>/dev/null; fi; :";
    step(format!("{SET_NOW}{file_back} && set_now {name} && {restart}")).stdin(content.unwrap_or_default())
}

fn facts(name: &str, fqdn: &str) -> Map {
    let fqdn = if fqdn.is_empty() { name } else { fqdn };
    let domain = fqdn.split_once('.').map_or("", |(_, domain)| domain);
    object([
        ("ansible_hostname", name.split('.').next().unwrap_or_default().into()),
        ("ansible_nodename", name.into()),
        ("ansible_fqdn", fqdn.into()),
        ("ansible_domain", domain.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, run_module, skip, undo_in};

    #[test]
    fn a_name_is_what_a_kernel_takes() {
        let long = "a".repeat(65);
        for (name, good) in [("web01", true), ("a.b-c.example", true), ("", false), ("a..b", false), ("a b", false)] {
            assert_eq!(checked(name).is_ok(), good, "{name}");
        }
        assert!(checked(&long).unwrap_err().message.contains("64"));
        assert!(run_module(&MODULE, &[("name", "x".into()), ("use", "solaris".into())]).is_err());
    }

    #[test]
    fn the_next_boots_name_is_found() {
        assert_eq!(boot_name(Some("# static\n\nweb01\n"), Manner::File), "web01");
        assert_eq!(boot_name(Some("NETWORKING=yes\nHOSTNAME=\"db.x\"\n"), Manner::OldRedHat), "db.x");
        assert_eq!(boot_name(None, Manner::File), "");
    }

    /// A shell with a name and an /etc/hostname of its own, which live as long as `directory`.
    fn shell(directory: &std::path::Path) -> Option<&'static str> {
        let path = directory.display();
        let script = format!(
            "touch {path}/hostname {path}/name; unshare --uts --mount sh -c 'mount --bind {path}/hostname /etc/hostname' 2>/dev/null"
        );
        if !std::process::Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success()) {
            skip("a host's name of its own needs root, unshare and bind mounts");
            return None;
        }
        let program = directory.join("shell");
        let text = format!(
            "#!/bin/sh\ncd {path}; touch uts; mountpoint -q uts || unshare --uts=uts true; exec nsenter --uts=uts \
             unshare --mount sh -c 'mount --bind {path}/hostname /etc/hostname && exec sh'\n"
        );
        std::fs::write(&program, text).unwrap();
        let shell = format!("sh {}", program.display());
        Some(Box::leak(shell.into_boxed_str()))
    }

    #[test]
    fn the_name_is_set_now_and_for_the_next_boot_and_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let Some(shell) = shell(directory.path()) else { return };
        struct Unmounted(std::path::PathBuf);
        impl Drop for Unmounted {
            fn drop(&mut self) {
                let _ = std::process::Command::new("umount").arg(&self.0).output();
            }
        }
        let _unmounted = Unmounted(directory.path().join("uts"));
        let given = [("name", "kp-1.example".into())];
        let run = |check: bool| play(&MODULE, &given, &Play { shell, check });
        assert!(run(true).result.unwrap().changed);
        let played = run(false);
        let outcome = played.result.unwrap();
        assert!(outcome.changed);
        assert_eq!(outcome.result["ansible_facts"].get("ansible_hostname"), Some(&"kp-1".into()));
        let file = || std::fs::read_to_string(directory.path().join("hostname")).unwrap();
        assert_eq!(file(), "kp-1.example\n");
        let again = run(false);
        assert!(!again.result.unwrap().changed);
        undo_in(&played.changes, shell);
        assert_eq!(file(), "");
        assert!(run(true).result.unwrap().changed);
    }
}
