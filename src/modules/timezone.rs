//! community.general.timezone: the host's time zone, and whether its clock runs on UTC.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step, Subject};

use super::programs::{parts, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.timezone",
    aliases: &[],
    summary: "Sets the host's time zone, and whether its hardware clock runs on UTC",
    args: &[
        Arg::new("name", Type::Str, "The zone, as `Asia/Shanghai`"),
        Arg::new("hwclock", Type::Str, "What the hardware clock runs on").aliases(&["rtc"]).choices(&["UTC", "local"]),
    ],
    rules: &[Rule::RequiredOneOf(&["hwclock", "name"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const SYSTEMD: &str = "[ -d /run/systemd/system ] && command -v timedatectl >/dev/null 2>&1";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let name = args.str("name").map(checked).transpose()?;
    let file = quote(&format!("/usr/share/zoneinfo/{}", name.unwrap_or("UTC")));
    let text = format!(
        "readlink /etc/localtime; printf '\\036'; cat /etc/timezone 2>/dev/null; printf '\\036'\n\
         [ -f {file} ] && echo there; printf '\\036'; cat /etc/adjtime 2>/dev/null; :"
    );
    let answer = host.read(Script { text, footprint: footprint() }).await?;
    let parts = parts(&answer, 4);
    let now = Now { zone: zone(&parts[0], &parts[1]), local_clock: local_clock(&parts[3]) };
    if let Some(name) = name
        && parts[2].trim() != "there"
    {
        return Err(Failure::new(format!(
            "the host has no time zone `{name}` in /usr/share/zoneinfo (package tzdata)"
        )));
    }
    let local = args.str("hwclock").map(|word| word == "local");
    let Some(change) = plan(name, local, &now) else { return Ok(Outcome::ok()) };
    let outcome = Outcome::of_change(&change);
    host.change(change).await?;
    Ok(outcome)
}

fn footprint() -> Footprint {
    let files = ["/etc/localtime", "/etc/timezone", "/etc/adjtime", "/etc/sysconfig/clock"];
    Footprint::Of(files.map(|file| Subject::Path(file.into())).into())
}

fn checked(name: &str) -> Result<&str, Failure> {
    let valid = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-".contains(&b));
    if name.split('/').all(valid) {
        Ok(name)
    } else {
        Err(Failure::new(format!("`{name}` cannot be the name of a time zone, as `Asia/Shanghai`")))
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Now {
    /// `None`: it cannot be told, since /etc/localtime is a copy.
    zone: Option<String>,
    local_clock: bool,
}

fn zone(link: &str, file: &str) -> Option<String> {
    let of_link = link.trim().split_once("zoneinfo/").map(|(_, name)| name.to_owned());
    of_link.or_else(|| file.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned))
}

/// The third line of adjtime(5); UTC if there is none.
fn local_clock(adjtime: &str) -> bool {
    adjtime.lines().nth(2).map(str::trim) == Some("LOCAL")
}

fn plan(name: Option<&str>, local: Option<bool>, now: &Now) -> Option<Change> {
    let name = name.filter(|name| now.zone.as_deref() != Some(*name));
    let local = local.filter(|local| *local != now.local_clock);
    if name.is_none() && local.is_none() {
        return None;
    }
    let mut change = Change::certain("time zone", footprint());
    let (mut before, mut after) = (String::new(), String::new());
    let mut back = Some(Vec::new());
    let word = |local: bool| if local { "local" } else { "UTC" };
    if let Some(local) = local {
        change = change.step(set_clock(local));
        back = back.map(|steps| [vec![set_clock(now.local_clock)], steps].concat());
        before.push_str(&format!("hwclock: {}\n", word(now.local_clock)));
        after.push_str(&format!("hwclock: {}\n", word(local)));
    }
    if let Some(name) = name {
        change = change.step(set_zone(name));
        back = match (&now.zone, back) {
            (Some(zone), Some(steps)) => Some([vec![set_zone(zone)], steps].concat()),
            _ => None,
        };
        before.push_str(&format!("name: {}\n", now.zone.as_deref().unwrap_or("unknown")));
        after.push_str(&format!("name: {name}\n"));
    }
    let inverse = match back {
        Some(steps) => Inverse::Steps(steps),
        None => Inverse::None("/etc/localtime was a copy of a zone that is not known".to_owned()),
    };
    Some(change.inverse(inverse).difference(Difference::new("time zone", before, after)))
}

/// By timedatectl, or as it does it: the link first, then what other programs read.
fn set_zone(name: &str) -> Step {
    let zone = quote(name);
    step(format!(
        "if {SYSTEMD}; then timedatectl set-timezone {zone} || exit\nelse\n\
         t=/etc/.trimtab.localtime.$$; ln -s /usr/share/zoneinfo/{zone} \"$t\" && mv -f \"$t\" /etc/localtime || exit\n\
         [ ! -e /etc/timezone ] || printf '%s\\n' {zone} >/etc/timezone || exit\n\
         if [ -e /etc/sysconfig/clock ]; then sed -i 's|^ZONE=.*|ZONE=\"{name}\"|' /etc/sysconfig/clock || exit; fi\nfi\n\
         l=$(readlink /etc/localtime); echo \"${{l##*zoneinfo/}}\""
    ))
    .expect(name)
}

fn set_clock(local: bool) -> Step {
    let (number, option) = if local { (1, "--localtime") } else { (0, "--utc") };
    step(format!("if {SYSTEMD}; then timedatectl set-local-rtc {number}; else hwclock --systohc {option}; fi"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, run_module, skip, undo_in};
    use crate::value::Value;

    #[test]
    fn the_zone_is_read_from_link_or_file() {
        assert_eq!(zone("/usr/share/zoneinfo/Asia/Shanghai\n", "UTC\n").as_deref(), Some("Asia/Shanghai"));
        assert_eq!(zone("", "Etc/UTC\n").as_deref(), Some("Etc/UTC"));
        assert_eq!(zone("", ""), None);
        assert!(local_clock("0.0 0 0\n0\nLOCAL\n") && !local_clock("0.0 0 0\n0\nUTC\n") && !local_clock(""));
        assert!(plan(Some("UTC"), Some(false), &Now { zone: Some("UTC".into()), local_clock: false }).is_none());
    }

    #[test]
    fn the_zone_is_set_and_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().display();
        let shell = format!(
            "unshare --mount sh -c 'mkdir -p {at}/etc && cp /etc/passwd /etc/group {at}/etc && mount --bind {at}/etc /etc && exec sh'"
        );
        let usable = std::process::Command::new("sh").args(["-c", &format!("{shell} </dev/null")]).output();
        let zones = std::path::Path::new("/usr/share/zoneinfo/Asia/Shanghai").exists();
        if !zones || !usable.is_ok_and(|output| output.status.success()) {
            return skip("an /etc of its own needs root and unshare, and zones need tzdata");
        }
        std::os::unix::fs::symlink("/usr/share/zoneinfo/Etc/UTC", root.path().join("etc/localtime")).unwrap();
        std::fs::write(root.path().join("etc/timezone"), "Etc/UTC\n").unwrap();
        let shell: &'static str = Box::leak(shell.into_boxed_str());
        let given = [("name", Value::from("Asia/Shanghai"))];
        let state = || {
            let link = std::fs::read_link(root.path().join("etc/localtime")).unwrap();
            (link.display().to_string(), std::fs::read_to_string(root.path().join("etc/timezone")).unwrap())
        };
        let before = state();
        let made = play(&MODULE, &given, &Play { shell, ..Play::default() });
        assert!(made.result.unwrap().changed);
        assert_eq!(state(), ("/usr/share/zoneinfo/Asia/Shanghai".into(), "Asia/Shanghai\n".into()));
        let again = play(&MODULE, &given, &Play { shell, ..Play::default() });
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        undo_in(&made.changes, shell);
        assert_eq!(state(), before);
    }

    #[test]
    fn zones_that_do_not_exist_are_refused() {
        let refused = |name: &str| run_module(&MODULE, &[("name", name.into())]).unwrap_err().message;
        assert!(refused("No/Such").contains("tzdata"));
        assert!(refused("../etc").contains("cannot be the name"));
        assert!(run_module(&MODULE, &[]).is_err());
    }
}
