//! ansible.posix.selinux: SELinux's mode and policy, now and at boot.

use futures_util::try_join;

use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Subject};

use super::edited_file::{bring, text_of};
use super::file_common::destination::{Manner, look};
use super::programs::{SYSTEM_PATH, make, parts, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.selinux",
    aliases: &[],
    summary: "Sets SELinux's mode and policy, now as far as that is possible, and for the next boot",
    args: &[
        Arg::new("state", Type::Str, "The mode").required().choices(&["enforcing", "permissive", "disabled"]),
        Arg::new("policy", Type::Str, "The policy (`targeted`); required unless the mode is `disabled`"),
        Arg::new("configfile", Type::Str, "The file for the next boot")
            .default("/etc/selinux/config")
            .aliases(&["conf", "file"]),
        Arg::new("update_kernel_param", Type::Bool, "Set the kernel's boot parameter `selinux=` too, by grubby")
            .default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("msg", "what was changed"),
        ("configfile", "the file"),
        ("policy", "the policy"),
        ("state", "the mode"),
        ("reboot_required", "whether it takes a reboot until all of it is so"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let state = args.text("state");
    let update = args.bool("update_kernel_param");
    let (seen, live) = try_join!(look(&host, &args, args.text("configfile"), false), host.read(live(update)))?;
    if seen.attributes.is_none() {
        return Err(Failure::new(format!("Unable to find file {}", seen.named))
            .with("details", "Please install SELinux-policy package, if this package is not installed previously."));
    }
    let old = text_of(&seen)?;
    let parts = parts(&live, 3);
    let running = Running::parse(&parts);
    let (config_state, config_policy) = (setting(&old, "SELINUX"), setting(&old, "SELINUXTYPE"));
    let policy = match args.str("policy").filter(|policy| !policy.is_empty()) {
        Some(policy) => policy.to_owned(),
        None if state == "disabled" => config_policy.clone().unwrap_or_default(),
        None => return Err(Failure::new("Policy is required if state is not 'disabled'")),
    };
    if policy.contains(char::is_whitespace) {
        return Err(Failure::new(format!("`{policy}` cannot be the name of a policy")));
    }
    let mut told = Vec::new();
    let mut outcome = Outcome::ok();
    let mut reboot = false;
    if state != running.state() {
        match (&running.mode, state) {
            (None, _) => {
                outcome = outcome.warning(format!("Reboot is required to set SELinux state to '{state}'"));
                reboot = true;
            }
            (Some(mode), "disabled") => {
                reboot = true;
                if mode == "enforcing" {
                    outcome = set_mode(&host, mode, "permissive", outcome).await?;
                    outcome = outcome.warning(format!(
                        "SELinux state temporarily changed from '{mode}' to 'permissive'. State change will take effect next reboot."
                    ));
                } else {
                    outcome = outcome.warning("SELinux state change will take effect next reboot");
                }
            }
            (Some(mode), _) => {
                told.push(format!("SELinux state changed from '{mode}' to '{state}'"));
                outcome = set_mode(&host, mode, state, outcome).await?;
            }
        }
    }
    let mut new = old.clone();
    for (key, name, wanted, now) in [
        ("SELINUXTYPE", "policy configuration", policy.as_str(), &config_policy),
        ("SELINUX", "state", state, &config_state),
    ] {
        if now.as_deref() == Some(wanted) || wanted.is_empty() {
            continue;
        }
        let now = now.as_deref().unwrap_or("None");
        told.push(match key {
            "SELINUX" => format!("Config SELinux {name} changed from '{now}' to '{wanted}'"),
            _ => format!("SELinux {name} in '{}' changed from '{now}' to '{wanted}'", seen.named),
        });
        new = with_setting(&new, key, wanted);
    }
    let manner = Manner { backup: None, validate: None, unsafe_writes: false };
    (outcome, _) = bring(&host, &seen, (new != old).then_some(new), &manner, outcome).await?;
    if update {
        outcome = boot_parameter(&host, &parts[2], state != "disabled", &mut told, outcome).await?;
    }
    Ok(outcome
        .with("msg", told.join(", "))
        .with("configfile", args.text("configfile"))
        .with("policy", policy)
        .with("state", state)
        .with("reboot_required", reboot))
}

/// Asks for the mode and, with `kernel`, for the boot parameters of all kernels.
fn live(kernel: bool) -> Script {
    let grubby =
        if kernel { "command -v grubby >/dev/null 2>&1 || exit 3; grubby --info=ALL 2>/dev/null" } else { ":" };
    let text = format!(
        "{SYSTEM_PATH}if [ -e /sys/fs/selinux/enforce ]; then cat /sys/fs/selinux/enforce; else echo none; fi; \
         printf '\\036'\nprintf '\\036'\n{grubby}"
    );
    let mut subjects = vec![Subject::Path("/sys/fs/selinux/enforce".into())];
    if kernel {
        subjects.push(Subject::Tree("/boot".into()));
        subjects.push(Subject::Tree("/etc".into()));
    }
    Script { text, footprint: Footprint::Of(subjects) }
}

struct Running {
    /// `enforcing` or `permissive`; `None`: the kernel has no SELinux.
    mode: Option<String>,
}

impl Running {
    fn parse(parts: &[String]) -> Running {
        let mode = match parts[0].trim() {
            "1" => Some("enforcing".to_owned()),
            "0" => Some("permissive".to_owned()),
            _ => None,
        };
        Running { mode }
    }

    fn state(&self) -> &str {
        self.mode.as_deref().unwrap_or("disabled")
    }
}

/// The value of a key in the file; the last counts.
fn setting(text: &str, key: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| line.trim().split_once('='));
    values.rfind(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
}

fn with_setting(text: &str, key: &str, value: &str) -> String {
    let mut new = String::new();
    let mut found = false;
    for line in text.split_inclusive('\n') {
        if line.trim().split_once('=').is_some_and(|(name, _)| name.trim() == key) {
            new.push_str(&format!("{key}={value}\n"));
            found = true;
        } else {
            new.push_str(line);
        }
    }
    if !found {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&format!("{key}={value}\n"));
    }
    new
}

async fn set_mode(host: &Host, from: &str, to: &str, outcome: Outcome) -> Result<Outcome, Failure> {
    let number = |mode: &str| if mode == "enforcing" { "1" } else { "0" };
    let set = |mode: &str| step(format!("setenforce {0} || exit\ncat /sys/fs/selinux/enforce", number(mode)));
    // what the policy forbids, it forbids everywhere
    let change = Change::certain("SELinux mode", Footprint::Everything)
        .step(set(to).expect(number(to)))
        .inverse(Inverse::Steps(vec![set(from)]))
        .difference(Difference::new("SELinux mode", format!("{from}\n"), format!("{to}\n")));
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
    make(host, change).await?;
    Ok(outcome)
}

/// Whether SELinux is on by the boot parameters of all kernels; `None`: they differ.
fn boot_enabled(info: &str) -> Option<bool> {
    let mut lines = info.lines().filter(|line| line.starts_with("args=")).map(|line| !line.contains("selinux=0"));
    let first = lines.next().unwrap_or(true);
    lines.all(|enabled| enabled == first).then_some(first)
}

async fn boot_parameter(
    host: &Host,
    info: &str,
    wanted: bool,
    told: &mut Vec<String>,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    if info.is_empty() {
        return Err(Failure::new("`update_kernel_param` needs the program `grubby` on the host"));
    }
    let now = boot_enabled(info);
    if now == Some(wanted) {
        return Ok(outcome);
    }
    let word = |enabled: bool| if enabled { "enabled" } else { "disabled" };
    let before = now.map_or("<inconsistent>", word);
    told.push(format!("Kernel SELinux state changed from '{before}' to '{}'", word(wanted)));
    let set = |enabled: bool| {
        let option = if enabled { "--remove-args" } else { "--args" };
        step(format!("grubby --update-kernel=ALL {option} selinux=0"))
    };
    let inverse = match now {
        Some(now) => Inverse::Steps(vec![set(now)]),
        None => Inverse::None("the kernels' boot parameters differed".to_owned()),
    };
    let change = Change::certain("kernel parameter selinux=", Footprint::tree("/boot").and(Footprint::tree("/etc")))
        .step(set(wanted))
        .inverse(inverse)
        .difference(Difference::new("kernel parameter selinux=", format!("{before}\n"), format!("{}\n", word(wanted))));
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
    make(host, change).await?;
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, run_module, skip, snapshot, undo};

    #[test]
    fn settings_are_read_and_written() {
        let file = "# SELINUX= can take\nSELINUX=enforcing\nSELINUXTYPE=targeted\n";
        assert_eq!(setting(file, "SELINUX").as_deref(), Some("enforcing"));
        assert_eq!(with_setting(file, "SELINUX", "disabled"), file.replace("=enforcing", "=disabled"));
        assert_eq!(with_setting("x", "SELINUX", "disabled"), "x\nSELINUX=disabled\n");
        assert_eq!(boot_enabled("args=\"ro\"\nargs=\"ro selinux=0\"\n"), None);
        assert_eq!(boot_enabled("args=\"ro selinux=0\"\n"), Some(false));
    }

    #[test]
    fn a_host_without_selinux_gets_its_file_and_a_warning() {
        if std::path::Path::new("/sys/fs/selinux/enforce").exists() {
            return skip("this machine has SELinux");
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config");
        std::fs::write(&path, "SELINUX=enforcing\nSELINUXTYPE=targeted\n").unwrap();
        let before = snapshot(root.path());
        let file = ("configfile", path.to_str().unwrap().into());
        let played = play(&MODULE, &[file.clone(), ("state", "disabled".into())], &Play::default());
        let outcome = played.result.unwrap();
        assert_eq!(outcome.result["msg"], "Config SELinux state changed from 'enforcing' to 'disabled'".into());
        assert_eq!((outcome.changed, outcome.result["policy"].clone()), (true, "targeted".into()));
        undo(&played.changes);
        assert_eq!(snapshot(root.path()), before);
        let given = [file, ("state", "enforcing".into()), ("policy", "targeted".into())];
        let outcome = run_module(&MODULE, &given).unwrap();
        assert!(!outcome.changed && outcome.warnings[0].contains("Reboot is required"));
        assert_eq!(outcome.result["reboot_required"], true.into());
        let missing = [("configfile", "/no/such".into()), ("state", "disabled".into())];
        assert_eq!(run_module(&MODULE, &missing).unwrap_err().message, "Unable to find file /no/such");
        assert!(
            run_module(&MODULE, &[given[0].clone(), given[1].clone()])
                .unwrap_err()
                .message
                .contains("Policy is required")
        );
    }
}
