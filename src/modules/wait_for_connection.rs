//! ansible.builtin.wait_for_connection: waits until the host can be reached and answers.

use std::time::{Duration, Instant};

use crate::host::{Failure, Host};

use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.wait_for_connection",
    aliases: &[],
    summary: "Waits until the host can be reached, with a new connection, and answers",
    args: &[
        Arg::new("connect_timeout", Type::Int, "The longest wait for one connection, in seconds").default("5"),
        Arg::new("delay", Type::Int, "Seconds before the first try").default("0"),
        Arg::new("sleep", Type::Int, "Seconds between tries").default("1"),
        Arg::new("timeout", Type::Int, "The longest wait, in seconds").default("600"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::None,
    diff: Support::None,
    returns: &[("elapsed", "seconds waited")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    if host.is_check() {
        return Ok(Outcome::skipped("the connection is not waited for in check mode"));
    }
    let seconds = |name: &str| Duration::from_secs(u64::try_from(args.int(name).unwrap_or(0)).unwrap_or(0));
    host.turn().await?;
    let begun = Instant::now();
    tokio::time::sleep(seconds("delay")).await;
    let limit = seconds("connect_timeout").max(Duration::from_secs(1));
    let reached = until_answer(&host, ":", seconds("timeout"), limit, |_| seconds("sleep"), |_| Ok(())).await;
    reached.map_err(|why| {
        let message = format!("timed out waiting for ping module test: {why}");
        Failure::new(message).with("elapsed", begun.elapsed().as_secs())
    })?;
    Ok(Outcome::ok().with("elapsed", begun.elapsed().as_secs()))
}

/// Connects anew until shell code succeeds and `accept` takes its output; why not, if that never came.
pub(super) async fn until_answer(
    host: &Host,
    text: &str,
    timeout: Duration,
    limit: Duration,
    pause: impl Fn(u32) -> Duration,
    accept: impl Fn(&str) -> Result<(), String>,
) -> Result<String, String> {
    let begun = Instant::now();
    let mut why = format!("the timeout of {} seconds leaves no time for a try", timeout.as_secs());
    let mut tries = 0;
    while begun.elapsed() < timeout {
        let left = timeout.saturating_sub(begun.elapsed());
        match host.renew(text, limit.min(left)).await {
            Ok(answer) if answer.success() => match accept(&answer.text()) {
                Ok(()) => return Ok(answer.text()),
                Err(reason) => why = reason,
            },
            Ok(answer) => {
                let code = answer.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
                why = format!("exit code {code}: {} {}", answer.error_text().trim(), answer.text().trim());
            }
            Err(failure) => why = failure.message,
        }
        tokio::time::sleep(pause(tries).min(timeout.saturating_sub(begun.elapsed()))).await;
        tries += 1;
    }
    Err(why.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{check_module, run_module};

    #[test]
    fn a_host_that_answers_is_waited_for_once() {
        let outcome = run_module(&MODULE, &[("delay", 1.into())]).unwrap();
        assert!(!outcome.changed);
        assert_eq!(outcome.result["elapsed"], 1.into());
        assert!(check_module(&MODULE, &[]).unwrap().skipped);
    }

    #[test]
    fn no_time_is_no_connection() {
        let failure = run_module(&MODULE, &[("timeout", 0.into())]).unwrap_err();
        assert!(
            failure.message.starts_with("timed out waiting for ping module test: the timeout of 0"),
            "{}",
            failure.message
        );
    }
}
