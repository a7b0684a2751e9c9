//! Services where systemd does not run: scripts of /etc/init.d, and OpenRC.

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step};
use crate::value::{Map, Value};

use super::unit::State;
use super::{Args, Outcome};

/// What is known of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Service {
    /// Its script is there.
    exists: bool,
    running: bool,
    enabled: bool,
    /// The program that enables services: `rc-update`, `chkconfig`, `update-rc.d`; empty if there is none.
    enabler: String,
}

/// Asks for all of it in one script.
fn question(name: &str, pattern: Option<&str>) -> Script {
    let name = quote(name);
    let look = match pattern {
        // the brackets keep the search from finding itself
        Some(pattern) => format!("ps -ef 2>/dev/null | grep -v grep | grep -F -q -- {} && echo running=0 || echo running=3", quote(pattern)),
        None => "if command -v service >/dev/null 2>&1; then service \"$trimtab_name\" status; else /etc/init.d/\"$trimtab_name\" status; fi >\"$trimtab_out\" 2>&1 </dev/null; printf 'running=%s\\n' \"$?\"; printf 'said=%s\\n' \"$(head -n 1 \"$trimtab_out\")\"".to_owned(),
    };
    let text = format!(
        "trimtab_name={name}\n\
         [ -e \"/etc/init.d/$trimtab_name\" ] || [ -e \"/etc/rc.d/init.d/$trimtab_name\" ] || exit 0\n\
         echo exists=yes\n\
         trimtab_out=$(mktemp) || exit\ntrap 'rm -f \"$trimtab_out\"' EXIT\n\
         {look}\n\
         for trimtab_link in /etc/rc[2-5].d/S??\"$trimtab_name\" /etc/rc.d/rc[2-5].d/S??\"$trimtab_name\" /etc/runlevels/*/\"$trimtab_name\"; do\n\
         [ ! -e \"$trimtab_link\" ] || {{ echo enabled=yes; break; }}\ndone\n\
         for trimtab_tool in rc-update chkconfig update-rc.d; do\n\
         command -v $trimtab_tool >/dev/null 2>&1 && {{ printf 'enabler=%s\\n' $trimtab_tool; break; }}\ndone\nexit 0\n"
    );
    Script { text, footprint: Footprint::Everything }
}

fn understand(response: &Response) -> Service {
    let text = response.text();
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    Service {
        exists: value("exists").is_some(),
        running: is_running(value("running"), value("said").unwrap_or_default()),
        enabled: value("enabled").is_some(),
        enabler: value("enabler").unwrap_or_default().to_owned(),
    }
}

/// By the exit code of `status` (LSB: 0 runs; 1, 2, 3 does not); scripts that always give 0 may say it in words.
fn is_running(code: Option<&str>, said: &str) -> bool {
    let said = said.to_lowercase();
    let says_not =
        ["not running", "stopped", "is down", "not started", "dead"].iter().any(|words| said.contains(words));
    match code {
        Some("0") => !says_not,
        Some("1" | "2" | "3") | None => false,
        Some(_) => said.contains("running") && !says_not,
    }
}

/// Brings a service to where it is wanted.
pub async fn bring(args: &Args, host: &Host) -> Result<Outcome, Failure> {
    let name = args.text("name");
    let service = understand(&host.read(question(name, args.str("pattern"))).await?);
    if !service.exists {
        return Err(Failure::new(format!("Could not find the requested service {name}: host")));
    }
    if args.has("masked") {
        return Err(Failure::new(format!("service {name}: only units of systemd can be masked")));
    }
    let state = args.str("state").and_then(State::parse);
    let steps = plan(args, &service, state)?;
    let mut result = Map::new();
    result.insert("name".into(), name.into());
    result.extend(state.map(|state| (Value::from("state"), Value::from(state.result()))));
    result.extend(args.optional_bool("enabled").map(|enabled| (Value::from("enabled"), Value::from(enabled))));
    if steps.is_empty() {
        return Ok(Outcome { result, ..Outcome::ok() });
    }
    let change = change(args, &service, state, &steps);
    let differences = change.differences.clone();
    let applied = host.change(change).await?;
    for (step, response) in steps.iter().zip(&applied.responses) {
        if !response.success() {
            let reason = format!("{}{}", response.text(), response.error_text());
            return Err(Failure::new(format!("Unable to {} service {name}: {}", step.what, reason.trim()))
                .with("rc", response.code.map(i64::from)));
        }
    }
    if let Some(response) = applied.responses.get(steps.len()) {
        let after = understand(response);
        if state.is_some_and(|state| (state != State::Stopped) != after.running) {
            let is = if after.running { "runs still" } else { "does not run" };
            return Err(Failure::new(format!("service {name} was brought to `{}` but {is}", args.text("state"))));
        }
    }
    Ok(Outcome { result, ..Outcome::changed() }.differences(differences))
}

/// A step and the words for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Doing {
    what: &'static str,
    script: String,
    back: Option<String>,
}

fn plan(args: &Args, service: &Service, state: Option<State>) -> Result<Vec<Doing>, Failure> {
    let name = quote(args.text("name"));
    let mut steps = Vec::new();
    if let Some(enabled) = args.optional_bool("enabled").filter(|enabled| *enabled != service.enabled) {
        let (on, off) = match service.enabler.as_str() {
            "rc-update" => {
                let level = quote(args.text("runlevel"));
                (format!("rc-update add {name} {level}"), format!("rc-update del {name} {level}"))
            }
            "chkconfig" => {
                let levels = args.list("runlevels").concat();
                let levels = if levels.is_empty() { String::new() } else { format!("--level {} ", quote(&levels)) };
                (
                    format!("chkconfig --add {name} && chkconfig {levels}{name} on"),
                    format!("chkconfig {levels}{name} off"),
                )
            }
            "update-rc.d" => (
                format!("update-rc.d {name} defaults && update-rc.d {name} enable"),
                format!("update-rc.d {name} disable"),
            ),
            _ => {
                let message = "the host has neither rc-update, chkconfig nor update-rc.d, so nothing can be enabled";
                return Err(Failure::new(format!("service {}: {message}", args.text("name"))));
            }
        };
        let (what, script, back) = if enabled { ("enable", on, off) } else { ("disable", off, on) };
        steps.push(Doing { what, script, back: Some(back) });
    }
    let arguments: String = args.str("arguments").map(|words| format!(" {words}")).unwrap_or_default();
    // a daemon that keeps the shell's streams open would keep the answer from ending
    let act = |verb: &str| {
        format!(
            "if command -v service >/dev/null 2>&1; then service {name} {verb}{arguments}; \
             else /etc/init.d/{name} {verb}{arguments}; fi </dev/null"
        )
    };
    let (start, stop) = (act("start"), act("stop"));
    match state {
        Some(State::Started | State::Restarted | State::Reloaded) if !service.running => {
            steps.push(Doing { what: "start", script: start, back: Some(stop) });
        }
        Some(State::Stopped) if service.running => steps.push(Doing { what: "stop", script: stop, back: Some(start) }),
        Some(State::Restarted) => {
            let script = match args.int("sleep") {
                Some(seconds) => format!("{{ {stop}; }} && sleep {} && {{ {start}; }}", seconds.max(0)),
                None => act("restart"),
            };
            steps.push(Doing { what: "restart", script, back: None });
        }
        Some(State::Reloaded) => steps.push(Doing { what: "reload", script: act("reload"), back: None }),
        _ => {}
    }
    Ok(steps)
}

fn change(args: &Args, service: &Service, state: Option<State>, steps: &[Doing]) -> Change {
    let name = args.text("name");
    let mut change = Change::uncertain(format!("service {name}"), Footprint::Everything);
    for step in steps {
        change = change.step(Step::new(step.script.clone()));
    }
    change = change.step(Step::new(question(name, args.str("pattern")).text));
    let back: Vec<Step> = steps.iter().rev().filter_map(|step| step.back.clone()).map(Step::new).collect();
    change = change.inverse(if back.is_empty() {
        Inverse::None("a restart cannot be undone".to_owned())
    } else {
        Inverse::Steps(back)
    });
    let described = |running: bool, enabled: bool| {
        let words = (if running { "started" } else { "stopped" }, if enabled { "enabled" } else { "disabled" });
        format!("state: {}\nboot: {}\n", words.0, words.1)
    };
    let running = state.map_or(service.running, |state| state != State::Stopped);
    let enabled = args.optional_bool("enabled").unwrap_or(service.enabled);
    let before = described(service.running, service.enabled);
    change.difference(Difference::new(format!("service {name}"), before, described(running, enabled)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::value::object;

    #[test]
    fn scripts_say_by_code_or_in_words_whether_they_run() {
        let cases = [
            (Some("0"), "ntpd (pid 12) is running...", true),
            (Some("0"), "ntpd is stopped", false),
            (Some("0"), "", true),
            (Some("3"), "ntpd is running", false),
            (Some("4"), "ntpd is running", true),
            (None, "", false),
        ];
        for (code, said, running) in cases {
            assert_eq!(is_running(code, said), running, "{code:?} {said}");
        }
    }

    #[test]
    fn only_what_differs_is_done() {
        let service =
            |running, enabled, enabler: &str| Service { exists: true, running, enabled, enabler: enabler.into() };
        let steps = |state: &str, enabled: bool, service: &Service| {
            let given = object([("name", "ntpd".into()), ("state", state.into()), ("enabled", enabled.into())]);
            let args = validate(&super::super::service::MODULE, &given).unwrap();
            plan(&args, service, State::parse(state))
                .map(|steps| steps.iter().map(|step| step.what).collect::<Vec<_>>())
        };
        assert_eq!(steps("started", true, &service(true, true, "chkconfig")).unwrap(), Vec::<&str>::new());
        assert_eq!(steps("started", true, &service(false, false, "chkconfig")).unwrap(), ["enable", "start"]);
        assert_eq!(steps("restarted", false, &service(true, true, "update-rc.d")).unwrap(), ["disable", "restart"]);
        assert!(steps("started", true, &service(true, false, "")).is_err());
    }
}
