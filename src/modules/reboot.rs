//! ansible.builtin.reboot: reboots the host and waits until it is back.

use std::time::{Duration, Instant};

use crate::connect::shell::quote;
use crate::host::reads::{KernelFile, Script};
use crate::host::{Change, Failure, Footprint, Inverse, Step};

use super::wait_for_connection::until_answer;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.reboot",
    aliases: &[],
    summary: "Reboots the host and waits until it is back",
    args: &[
        Arg::new(
            "pre_reboot_delay",
            Type::Int,
            "Seconds before the reboot; shutdown takes whole minutes, rounded down",
        )
        .aliases(&["pre_reboot_delay_sec"])
        .default("0"),
        Arg::new("post_reboot_delay", Type::Int, "Seconds after the reboot was begun before the first try to connect")
            .aliases(&["post_reboot_delay_sec"])
            .default("0"),
        Arg::new("reboot_timeout", Type::Int, "The longest wait for the host, and then for the test, in seconds")
            .aliases(&["reboot_timeout_sec"])
            .default("600"),
        Arg::new("connect_timeout", Type::Int, "The longest wait for one connection, in seconds; default 10")
            .aliases(&["connect_timeout_sec"]),
        Arg::new("test_command", Type::Str, "A command that succeeds once the host is ready").default("whoami"),
        Arg::new("msg", Type::Str, "What users of the host are told").default("Reboot initiated by Ansible"),
        Arg::new("search_paths", Type::List, "Where the program that reboots is looked for")
            .default("/sbin,/bin,/usr/sbin,/usr/bin,/usr/local/sbin"),
        Arg::new("boot_time_command", Type::Str, "A command whose output differs after each boot")
            .default("cat /proc/sys/kernel/random/boot_id"),
        Arg::new("reboot_command", Type::Str, "The command that reboots, with its words"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("rebooted", "whether it was rebooted"), ("elapsed", "seconds until it was ready again")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const OF_THE_CONTROLLER: &str = "Running reboot with local connection would reboot the control node.";

/// Differs after each boot, and between machines (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let told = |failure: Failure, rebooted: bool| {
        failure.with("rebooted", rebooted).with("elapsed", 0).with("changed", rebooted)
    };
    let connection = context.expression("ansible_connection | default('')")?;
    if connection.to_text().rsplit('.').next() == Some("local") {
        return Err(told(Failure::new(OF_THE_CONTROLLER), false));
    }
    let seconds = |name: &str| Duration::from_secs(u64::try_from(args.int(name).unwrap_or(0)).unwrap_or(0));
    if host.is_check() {
        host.change(change("")).await?;
        return Ok(Outcome::changed().with("rebooted", true).with("elapsed", 0));
    }
    host.turn().await?;
    if !args.has("reboot_command") {
        let (own, its) = (std::fs::read_to_string(BOOT_ID), host.read(KernelFile(BOOT_ID.to_owned())).await?);
        if own.is_ok_and(|own| its.is_some_and(|its| its.trim() == own.trim())) {
            return Err(told(Failure::new(OF_THE_CONTROLLER), false));
        }
    }
    let boot = format!("# before the reboot\n{}", args.text("boot_time_command"));
    let (before, program) = futures_util::try_join!(
        host.read(Script { text: boot, footprint: Footprint::Everything }),
        host.read(Script { text: finder(&args)?, footprint: Footprint::Everything }),
    )?;
    if !before.success() {
        let message = format!("reboot: failed to get host boot time info: {}", before.error_text().trim());
        return Err(told(Failure::new(message), false));
    }
    let program = program.text().trim().to_owned();
    if program.is_empty() {
        let message = format!(
            "Unable to find command \"{}\" in search paths: {:?}",
            wanted_program(&args),
            args.list("search_paths")
        );
        return Err(told(Failure::new(message), false));
    }
    let applied = host.change(change(&reboot_script(&program, &args))).await?;
    let begun = Instant::now();
    if let Some(answer) = applied.responses.first().filter(|answer| !answer.success()) {
        let message =
            format!("Reboot command failed. Error was: '{}, {}'", answer.text().trim(), answer.error_text().trim());
        return Err(told(Failure::new(message), false));
    }
    tokio::time::sleep(seconds("post_reboot_delay")).await;
    let limit = args.int("connect_timeout").and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
    let limit = Duration::from_secs(limit.unwrap_or(10));
    let timeout = seconds("reboot_timeout");
    // 1, 2, 4, 8, then every 12 seconds
    let pause = |tries: u32| Duration::from_secs(1_u64.checked_shl(tries).unwrap_or(12).clamp(1, 12));
    let old = before.text().trim().to_owned();
    let is_new = |now: &str| match now.trim() {
        now if now.is_empty() || now == old => Err("boot time has not changed".to_owned()),
        _ => Ok(()),
    };
    let late = |what: &str, why: String| {
        let message = format!("Timed out waiting for {what} (timeout={}): {why}", timeout.as_secs());
        Failure::new(message).with("rebooted", true).with("elapsed", begun.elapsed().as_secs()).with("changed", true)
    };
    until_answer(&host, args.text("boot_time_command"), timeout, limit, pause, is_new)
        .await
        .map_err(|why| late("last boot time check", why))?;
    until_answer(&host, args.text("test_command"), timeout, limit.max(timeout), pause, |_| Ok(()))
        .await
        .map_err(|why| late("post-reboot test command", why))?;
    Ok(Outcome::changed().with("rebooted", true).with("elapsed", begun.elapsed().as_secs()))
}

fn change(script: &str) -> Change {
    Change::uncertain("reboot", Footprint::Everything)
        .step(Step::new(script))
        .inverse(Inverse::None("a reboot cannot be taken back".to_owned()))
}

/// The name or path of the program that reboots.
fn wanted_program(args: &Args) -> &str {
    args.str("reboot_command").map_or("shutdown", |command| command.split_whitespace().next().unwrap_or_default())
}

/// Shell code that prints where the program is. Hosts without shutdown (Alpine) have reboot.
fn finder(args: &Args) -> Result<String, Failure> {
    let program = wanted_program(args);
    if program.is_empty() {
        return Err(Failure::new("`reboot_command` is empty"));
    }
    if program.starts_with('/') {
        return Ok(format!("printf '%s\\n' {}", quote(program)));
    }
    let names: &[&str] = if args.has("reboot_command") { &[program] } else { &[program, "reboot"] };
    let paths = args.list("search_paths");
    let mut text = String::new();
    for name in names {
        for path in &paths {
            let file = quote(&format!("{}/{name}", path.trim_end_matches('/')));
            text.push_str(&format!("if [ -e {file} ]; then printf '%s\\n' {file}; exit; fi\n"));
        }
    }
    Ok(text)
}

/// Starts the reboot a second later and by itself, so that the answer comes before the connection breaks.
fn reboot_script(program: &str, args: &Args) -> String {
    let command = match args.str("reboot_command") {
        Some(command) => {
            let rest = command.trim_start().split_once(char::is_whitespace).map_or("", |(_, rest)| rest);
            format!("{} {rest}", quote(program))
        }
        None if program.ends_with("/shutdown") => {
            let minutes = args.int("pre_reboot_delay").unwrap_or(0).max(0) / 60;
            format!("{} -r {minutes} {}", quote(program), quote(args.text("msg")))
        }
        None => quote(program),
    };
    // what fails at once is told; what runs longer than a moment is on its way
    format!(
        "d=$(mktemp -d) || exit\n( trap '' HUP; ( {command} ) >\"$d/out\" 2>\"$d/err\" </dev/null; echo $? >\"$d/code.new\"; \
         mv \"$d/code.new\" \"$d/code\" ) >/dev/null 2>&1 &\n\
         for i in 1 2 3 4 5 6 7 8 9 10; do [ -e \"$d/code\" ] && break; sleep 0.1 2>/dev/null || sleep 1; done\n\
         c=0; if [ -e \"$d/code\" ]; then read -r c <\"$d/code\"; cat \"$d/out\"; cat \"$d/err\" >&2; fi\n\
         [ ! -e \"$d/code\" ] || rm -rf \"$d\"\nexit \"$c\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::{Play, check_module, context_with, play, play_in, run_module};
    use crate::value::{Value, object};

    /// A "host" whose boot id is a file that its reboot command rewrites.
    fn given(directory: &std::path::Path, reboot: &str) -> Vec<(&'static str, Value)> {
        let boot = directory.join("boot_id");
        std::fs::write(&boot, "one\n").unwrap();
        let program = directory.join("reboot");
        std::fs::write(&program, format!("#!/bin/sh\n{}\n", reboot.replace("BOOT", boot.to_str().unwrap()))).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        vec![
            ("boot_time_command", format!("cat {}", boot.display()).into()),
            ("reboot_command", format!("{} now", program.display()).into()),
            ("test_command", "true".into()),
        ]
    }

    #[test]
    fn a_reboot_is_seen_by_another_boot_id() {
        let directory = tempfile::tempdir().unwrap();
        let played = play(&MODULE, &given(directory.path(), "sleep 1.5; echo two-$1 >BOOT"), &Play::default());
        let outcome = played.result.unwrap();
        assert!(outcome.changed && outcome.result["elapsed"].as_int().unwrap() >= 1, "{:?}", outcome.result);
        assert_eq!(std::fs::read_to_string(directory.path().join("boot_id")).unwrap(), "two-now\n");
        assert!(matches!(played.changes[0].inverse, Inverse::None(_)));
    }

    #[test]
    fn a_reboot_that_fails_or_never_comes_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let failure = run_module(&MODULE, &given(directory.path(), "echo no way >&2; exit 3")).unwrap_err();
        assert_eq!(failure.message, "Reboot command failed. Error was: ', no way'");
        assert_eq!(failure.result["rebooted"], false.into());
        let given = [given(directory.path(), "true"), vec![("reboot_timeout", 2.into())]].concat();
        let failure = run_module(&MODULE, &given).unwrap_err();
        assert!(failure.message.contains("boot time has not changed"), "{}", failure.message);
        let failure = run_module(&MODULE, &[("reboot_command", "no-such-program".into())]).unwrap_err();
        assert!(failure.message.starts_with("Unable to find command \"no-such-program\""), "{}", failure.message);
    }

    #[test]
    fn the_controller_is_never_rebooted_and_check_mode_only_says() {
        let context = context_with([("ansible_connection", "local".into())]);
        let failure = play_in(&MODULE, &[], &Play::default(), context).result.unwrap_err();
        assert_eq!(failure.message, "Running reboot with local connection would reboot the control node.");
        let failure = run_module(&MODULE, &[]).unwrap_err();
        assert_eq!(failure.message, "Running reboot with local connection would reboot the control node.");
        let outcome = check_module(&MODULE, &[]).unwrap();
        assert!(outcome.changed);
        assert_eq!(outcome.result["rebooted"], true.into());
    }

    #[test]
    fn shutdown_is_told_minutes_and_words() {
        let args = validate(&MODULE, &object([("pre_reboot_delay", 119.into()), ("msg", "it's time".into())])).unwrap();
        assert!(reboot_script("/sbin/shutdown", &args).contains("( /sbin/shutdown -r 1 'it'\\''s time' )"));
        assert!(reboot_script("/sbin/reboot", &args).contains("( /sbin/reboot )"));
    }
}
