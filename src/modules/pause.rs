//! ansible.builtin.pause: waits for a while, or for a person.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::host::Failure;
use crate::ui;

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.pause",
    aliases: &[],
    summary: "Waits for a while, or until a person presses enter",
    args: &[
        Arg::new("minutes", Type::Float, "How long to wait, in minutes"),
        Arg::new("seconds", Type::Float, "How long to wait, in seconds"),
        Arg::new("prompt", Type::Str, "What to say to the person"),
        Arg::new("echo", Type::Bool, "Show what the person types").default("true"),
    ],
    rules: &[super::Rule::MutuallyExclusive(&["minutes", "seconds"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("user_input", "what the person typed"),
        ("start", "when the pause began, by the controller's clock"),
        ("stop", "when it ended"),
        ("delta", "how long it was, in seconds"),
        ("stdout", "the same in words"),
        ("echo", "whether typing was shown"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let duration = duration(&args)?;
    // time passes only in its turn, and whatever was read before it is old afterwards
    host.turn().await?;
    let clock = || jiff::ZonedDateTime::now().strftime("%Y-%m-%d %H:%M:%S%.6f").to_string();
    let (start, begun) = (clock(), Instant::now());
    let mut outcome = Outcome::ok();
    let mut input = String::new();
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => match ask(&args).await? {
            Some(answer) => input = answer,
            None => outcome = outcome.warning("Not waiting for response to prompt as stdin is not interactive"),
        },
    }
    let elapsed = begun.elapsed();
    let said = match (args.has("minutes"), duration) {
        (true, Some(_)) => format!("Paused for {} minutes", rounded(elapsed.as_secs_f64() / 60.0)),
        _ => format!("Paused for {} seconds", rounded(elapsed.as_secs_f64())),
    };
    Ok(outcome
        .with("start", start)
        .with("stop", clock())
        .with("delta", elapsed.as_secs())
        .with("stdout", said)
        .with("stderr", "")
        .with("rc", 0)
        .with("echo", args.bool("echo"))
        .with("user_input", input))
}

/// How long to wait; `None`: for a person. As in Ansible, nothing is shorter than a second.
fn duration(args: &Args) -> Result<Option<Duration>, Failure> {
    let seconds = match (args.float("seconds"), args.float("minutes")) {
        (Some(seconds), _) => seconds,
        (None, Some(minutes)) => minutes * 60.0,
        (None, None) => return Ok(None),
    };
    let wrong = || Failure::new(format!("a pause of {seconds} seconds is not possible"));
    Duration::try_from_secs_f64(seconds.max(1.0)).map(Some).map_err(|_| wrong())
}

/// Two digits behind the point, one if that is enough: as Python rounds.
fn rounded(number: f64) -> String {
    crate::value::float_repr((number * 100.0).round() / 100.0)
}

/// Asks the person at the terminal; `None` if there is none.
async fn ask(args: &Args) -> Result<Option<String>, Failure> {
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let prompt = args.str("prompt").unwrap_or("Press enter to continue, Ctrl+C to interrupt");
    let hidden = !args.bool("echo");
    let question = format!("{prompt}{}: ", if hidden { " (output is hidden)" } else { "" });
    let answer = tokio::task::spawn_blocking(move || ui::ask(&question, hidden)).await;
    let answer = answer.map_err(|error| Failure::new(format!("nothing could be read from the terminal: {error}")))?;
    Ok(Some(answer?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::run_module;
    use crate::value::{Value, object};

    #[test]
    fn durations_are_minutes_or_seconds() {
        let of = |name: &str, value: Value| duration(&validate(&MODULE, &object([(name, value)])).unwrap()).unwrap();
        assert_eq!(of("minutes", 2.into()), Some(Duration::from_secs(120)));
        assert_eq!(of("seconds", "1.5".into()), Some(Duration::from_millis(1500)));
        assert_eq!(of("seconds", 0.into()), Some(Duration::from_secs(1)));
        assert_eq!(of("prompt", "ready?".into()), None);
        assert_eq!(rounded(1.0003), "1.0");
    }

    #[test]
    fn a_second_passes() {
        let begun = Instant::now();
        let outcome = run_module(&MODULE, &[("seconds", 1.into())]).unwrap();
        assert!(begun.elapsed() >= Duration::from_secs(1));
        let said = outcome.result["stdout"].to_string();
        assert!(said.starts_with("Paused for ") && said.ends_with(" seconds"), "{said}");
        assert!(outcome.result["delta"].as_int().unwrap() >= 1);
    }
}
