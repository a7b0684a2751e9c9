//! ansible.posix.seboolean: switches of the SELinux policy.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Subject};

use super::programs::{SYSTEM_PATH, parts, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.seboolean",
    aliases: &[],
    summary: "Sets switches (booleans) of the SELinux policy",
    args: &[
        Arg::new("name", Type::Str, "The boolean").required(),
        Arg::new("state", Type::Bool, "Its value").required(),
        Arg::new("persistent", Type::Bool, "For the next boots too").default("false"),
        Arg::new("ignore_selinux_state", Type::Bool, "Go on where SELinux seems to be disabled").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("name", "the boolean"), ("state", "its value"), ("persistent", "as given")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = args.text("name");
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a SELinux boolean")));
    }
    let (wanted, persistent) = (args.bool("state"), args.bool("persistent"));
    let asked = if persistent { "semanage boolean --list --noheading 2>&1 || exit 3" } else { ":" };
    let text = format!(
        "{SYSTEM_PATH}if [ -e /sys/fs/selinux/enforce ]; then echo enabled; else echo disabled; fi; printf '\\036'\n\
         if [ -e /sys/fs/selinux/booleans/{0} ]; then cat /sys/fs/selinux/booleans/{0}; fi; printf '\\036'\n{asked}",
        name
    );
    let footprint = Footprint::Of(vec![
        Subject::Named("SELinux booleans".into()),
        Subject::Tree("/sys/fs/selinux".into()),
        Subject::Tree("/etc/selinux".into()),
        Subject::Tree("/var/lib/selinux".into()),
    ]);
    let answer = host.read(Script { text, footprint: footprint.clone() }).await?;
    let parts = parts(&answer, 3);
    if parts[0].trim() != "enabled" && !args.bool("ignore_selinux_state") {
        return Err(Failure::new("SELinux is disabled on this host."));
    }
    let now = live_value(&parts[1]);
    let (now, at_boot) = match (now, persistent) {
        (None, _) if !args.bool("ignore_selinux_state") => {
            return Err(Failure::new(format!("SELinux boolean {name} does not exist.")));
        }
        (_, true) if answer.code == Some(3) => {
            let reason = parts[2].trim();
            return Err(Failure::new(format!(
                "the booleans for the next boot cannot be read (`semanage` of policycoreutils): {reason}"
            )));
        }
        (now, true) => (now, boot_value(&parts[2], name)),
        (now, false) => (now, None),
    };
    let outcome = Outcome::ok().with("name", name).with("state", wanted).with("persistent", persistent);
    let right = now.is_none_or(|now| now == wanted) && (!persistent || at_boot == Some(wanted));
    if right {
        return Ok(outcome);
    }
    let change = plan(name, wanted, now, at_boot.filter(|_| persistent), persistent, footprint);
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
    host.change(change).await?;
    Ok(outcome)
}

/// `1 1`: the value, and the one that waits to be committed.
fn live_value(text: &str) -> Option<bool> {
    match text.split_whitespace().next()? {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// `name   (on   ,   off)  words`: the second is for the next boot.
fn boot_value(listing: &str, name: &str) -> Option<bool> {
    let line = listing.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    let (_, values) = line.split_once('(')?;
    let (values, _) = values.split_once(')')?;
    match values.split_once(',')?.1.trim() {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn plan(
    name: &str,
    wanted: bool,
    now: Option<bool>,
    at_boot: Option<bool>,
    persistent: bool,
    footprint: Footprint,
) -> Change {
    let word = |value: bool| if value { "on" } else { "off" };
    let set = |value: bool, persistent: bool| {
        let option = if persistent { "-P " } else { "" };
        step(format!("setsebool {option}{} {}", quote(name), word(value)))
    };
    let mut back = Vec::new();
    if let Some(value) = at_boot {
        back.push(set(value, true));
    }
    if let Some(value) = now.filter(|value| at_boot != Some(*value)) {
        back.push(set(value, false));
    }
    let inverse = if back.is_empty() {
        Inverse::None(format!("what {name} was before is not known"))
    } else {
        Inverse::Steps(back)
    };
    let shown = |now: Option<bool>, boot: Option<bool>| {
        let now = now.map(|value| format!("now: {}\n", word(value))).unwrap_or_default();
        let boot = boot.map(|value| format!("at boot: {}\n", word(value))).unwrap_or_default();
        now + &boot
    };
    let after = shown(now.map(|_| wanted), persistent.then_some(wanted));
    Change::certain(format!("SELinux boolean {name}"), footprint)
        .step(set(wanted, persistent))
        .inverse(inverse)
        .difference(Difference::new(format!("SELinux boolean {name}"), shown(now, at_boot), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::run_module;

    #[test]
    fn values_are_read_for_now_and_for_the_next_boot() {
        assert_eq!([live_value("1 1"), live_value("0 1"), live_value("")], [Some(true), Some(false), None]);
        let listing = "ftp_home_dir   (off  ,  off)  Allow ftp\nhttpd_can_x    (on   ,  off)  Allow x\n";
        assert_eq!(boot_value(listing, "httpd_can_x"), Some(false));
        assert_eq!(boot_value(listing, "httpd_can"), None);
    }

    #[test]
    fn the_change_and_its_way_back_are_setsebool() {
        let script = |step: &crate::host::Step| step.script.lines().last().unwrap_or_default().to_owned();
        let change = plan("x", true, Some(false), Some(false), true, Footprint::nothing());
        assert_eq!(script(&change.steps[0]), "setsebool -P x on");
        assert!(
            matches!(&change.inverse, Inverse::Steps(steps) if steps.len() == 1 && script(&steps[0]) == "setsebool -P x off")
        );
        let change = plan("x", true, Some(true), Some(false), true, Footprint::nothing());
        assert!(
            matches!(&change.inverse, Inverse::Steps(steps) if steps.len() == 2 && script(&steps[1]) == "setsebool x on")
        );
        let change = plan("x", false, Some(true), None, false, Footprint::nothing());
        assert_eq!(change.differences[0].after, "now: off\n");
    }

    #[test]
    fn a_host_without_selinux_is_told() {
        if std::path::Path::new("/sys/fs/selinux/enforce").exists() {
            return crate::modules::testing::skip("this machine has SELinux");
        }
        let failure = run_module(&MODULE, &[("name", "x".into()), ("state", true.into())]).unwrap_err();
        assert_eq!(failure.message, "SELinux is disabled on this host.");
        assert!(run_module(&MODULE, &[("name", "a b".into()), ("state", true.into())]).is_err());
    }
}
