//! Units of systemd: what they are in, what is to be done, and the proof of it. Pure but for the reads.

use crate::connect::shell::{Response, UNIT_PROPERTIES, quote};
use crate::host::reads::{Read, Script, Unit, UnitProperties};
use crate::host::{Change, Difference, Failure, FailureKind, Footprint, Host, Inverse, Step, Subject};
use crate::value::{Map, Value};

use super::Args;

/// Which manager a unit belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    System,
    /// The manager of the user who asks.
    User,
    /// What all users' managers are told to start; nothing runs there.
    Global,
}

impl Scope {
    fn option(self) -> &'static str {
        match self {
            Scope::System => "",
            Scope::User => "--user ",
            Scope::Global => "--global ",
        }
    }

    /// Where the user's manager listens, which a login by SSH or sudo may not have set.
    fn preparation(self) -> &'static str {
        if self == Scope::User { "export XDG_RUNTIME_DIR=\"${XDG_RUNTIME_DIR:-/run/user/$(id -u)}\"\n" } else { "" }
    }
}

/// What a task asks of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    pub state: Option<State>,
    pub enabled: Option<bool>,
    pub masked: Option<bool>,
    pub scope: Scope,
    pub no_block: bool,
    pub force: bool,
}

/// The argument `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Started,
    Stopped,
    Restarted,
    Reloaded,
}

impl State {
    pub fn parse(word: &str) -> Option<State> {
        Some(match word {
            "started" => State::Started,
            "stopped" => State::Stopped,
            "restarted" => State::Restarted,
            "reloaded" => State::Reloaded,
            _ => return None,
        })
    }

    /// The return value `state`.
    pub fn result(self) -> &'static str {
        if self == State::Stopped { "stopped" } else { "started" }
    }
}

impl Wanted {
    pub fn of(args: &Args) -> Wanted {
        Wanted {
            name: args.text("name").to_owned(),
            state: args.str("state").and_then(State::parse),
            enabled: args.optional_bool("enabled"),
            masked: args.optional_bool("masked"),
            scope: match args.str("scope") {
                Some("user") => Scope::User,
                Some("global") => Scope::Global,
                _ => Scope::System,
            },
            no_block: args.bool("no_block"),
            force: args.bool("force"),
        }
    }

    fn systemctl(&self, words: &str) -> String {
        format!("systemctl {}{words}", self.scope.option())
    }
}

/// What is known of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitState {
    pub properties: UnitProperties,
    /// Whether it is started at boot; `None`: it cannot be chosen (static).
    pub enabled: Option<bool>,
}

/// Asks for a unit; `None` if systemd is not what runs the host.
pub async fn read(host: &Host, wanted: &Wanted) -> Result<Option<UnitState>, Failure> {
    let properties = match wanted.scope {
        Scope::System => match host.read(Unit(wanted.name.clone())).await {
            // a host with the tools of systemd on which another program is process 1
            Err(failure) if failure.kind == FailureKind::Failed && is_not_running(&failure.message) => return Ok(None),
            properties => properties?,
        },
        Scope::User | Scope::Global => {
            let text = format!("{}{}", wanted.scope.preparation(), show(wanted));
            let response = host.read(Script { text, footprint: Footprint::unit(wanted.name.as_str()) }).await?;
            Unit(wanted.name.clone()).parse(&response)?
        }
    };
    let Some(properties) = properties else { return Ok(None) };
    let of = |key: &str| properties.get(key).map(String::as_str).unwrap_or_default();
    let enabled = match of("UnitFileState") {
        "enabled" | "enabled-runtime" => Some(true),
        "static" | "transient" => None,
        // made from a script of the old init system, which decides by its own links
        "" | "generated" | "bad" if wanted.enabled.is_some() && of("LoadState") == "loaded" => {
            let text = format!(
                "{}{}",
                wanted.scope.preparation(),
                wanted.systemctl(&format!("is-enabled {}", quote(&wanted.name)))
            );
            let footprint = Footprint::unit(wanted.name.as_str()).and(Footprint::tree("/etc"));
            Some(host.read(Script { text, footprint }).await?.success())
        }
        _ => Some(false),
    };
    Ok(Some(UnitState { properties, enabled }))
}

/// Words of systemctl where systemd does not run.
pub fn is_not_running(message: &str) -> bool {
    ["not been booted with systemd", "Failed to connect to bus", "Failed to get D-Bus connection"]
        .iter()
        .any(|words| message.contains(words))
}

/// The command that shows a unit's properties, and its last result.
fn show(wanted: &Wanted) -> String {
    let properties: String = UNIT_PROPERTIES.iter().map(|property| format!(" -p {property}")).collect();
    wanted.systemctl(&format!("show --no-pager{properties} -p Result -- {}", quote(&wanted.name)))
}

impl UnitState {
    pub fn of(&self, property: &str) -> &str {
        self.properties.get(property).map(String::as_str).unwrap_or_default()
    }

    pub fn is_missing(&self) -> bool {
        self.of("LoadState") == "not-found"
    }

    fn is_masked(&self) -> bool {
        self.of("LoadState") == "masked" || self.of("UnitFileState").starts_with("masked")
    }

    fn is_running(&self) -> bool {
        matches!(self.of("ActiveState"), "active" | "activating" | "reloading" | "refreshing")
    }

    /// The return value `status`.
    pub fn status(&self) -> Map {
        self.properties.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())).collect()
    }
}

/// The verbs of systemctl that bring the unit there, in order, each with the one that takes it back.
pub fn plan(wanted: &Wanted, unit: &UnitState) -> Result<Vec<(&'static str, Option<&'static str>)>, Failure> {
    if unit.is_missing() && wanted.masked != Some(true) {
        return Err(Failure::new(format!("Could not find the requested service {}: host", wanted.name)));
    }
    let mut verbs = Vec::new();
    match wanted.masked {
        Some(true) if !unit.is_masked() => verbs.push(("mask", Some("unmask"))),
        Some(false) if unit.is_masked() => verbs.push(("unmask", Some("mask"))),
        _ => {}
    }
    match (wanted.enabled, unit.enabled) {
        (Some(true), Some(false)) => verbs.push(("enable", Some("disable"))),
        (Some(false), Some(true)) => verbs.push(("disable", Some("enable"))),
        _ => {}
    }
    let running = unit.is_running();
    match wanted.state {
        Some(State::Started | State::Restarted | State::Reloaded) if !running => verbs.push(("start", Some("stop"))),
        Some(State::Restarted) => verbs.push(("restart", None)),
        Some(State::Reloaded) => verbs.push(("reload", None)),
        Some(State::Stopped) if running || unit.of("ActiveState") == "deactivating" => {
            verbs.push(("stop", Some("start")));
        }
        _ => {}
    }
    Ok(verbs)
}

/// The change that does these verbs; its last step tells what came of it.
pub fn change(wanted: &Wanted, unit: &UnitState, verbs: &[(&'static str, Option<&'static str>)]) -> Change {
    let acts = verbs.iter().any(|(verb, _)| matches!(*verb, "start" | "stop" | "restart" | "reload"));
    // what a service does when it starts or stops, nobody can tell
    let footprint = if acts {
        Footprint::Everything
    } else {
        Footprint::Of(vec![Subject::Units, Subject::Tree("/etc/systemd".into()), Subject::Tree("/etc/rc.d".into())])
    };
    let mut change = Change::uncertain(format!("service {}", wanted.name), footprint);
    for (verb, _) in verbs {
        change = change.step(Step::new(step(wanted, verb)));
    }
    change = change.step(Step::new(format!("{}{}", wanted.scope.preparation(), show(wanted))));
    let back: Option<Vec<Step>> = verbs
        .iter()
        .rev()
        .map(|(verb, inverse)| match (verb, inverse) {
            // a restart leaves a service that runs, as before
            (_, None) => Some(None),
            (_, Some(inverse)) => Some(Some(Step::new(step(wanted, inverse)))),
        })
        .collect::<Option<Vec<_>>>()
        .map(|steps| steps.into_iter().flatten().collect());
    match back {
        Some(steps) if !steps.is_empty() => change = change.inverse(Inverse::Steps(steps)),
        _ => change = change.inverse(Inverse::None("a restart cannot be undone".to_owned())),
    }
    let (before, after) = (described(unit.is_running(), unit.enabled, unit.is_masked()), after(unit, verbs));
    change.difference(Difference::new(format!("service {}", wanted.name), before, after))
}

fn described(running: bool, enabled: Option<bool>, masked: bool) -> String {
    let enabled = match enabled {
        Some(true) => "enabled",
        Some(false) => "disabled",
        None => "static",
    };
    let state = if running { "started" } else { "stopped" };
    format!("state: {state}\nboot: {enabled}\n{}", if masked { "masked: yes\n" } else { "" })
}

fn after(unit: &UnitState, verbs: &[(&'static str, Option<&'static str>)]) -> String {
    let (mut running, mut enabled, mut masked) = (unit.is_running(), unit.enabled, unit.is_masked());
    let mut extra = String::new();
    for (verb, _) in verbs {
        match *verb {
            "start" => running = true,
            "stop" => running = false,
            "enable" => enabled = Some(true),
            "disable" => enabled = Some(false),
            "mask" => masked = true,
            "unmask" => masked = false,
            other => extra.push_str(&format!("then: {other}\n")),
        }
    }
    described(running, enabled, masked) + &extra
}

/// One verb; if it fails, the unit's status and the end of its journal are told too.
fn step(wanted: &Wanted, verb: &str) -> String {
    let mut options = String::new();
    if wanted.no_block && matches!(verb, "start" | "stop" | "restart" | "reload") {
        options.push_str("--no-block ");
    }
    if wanted.force {
        options.push_str("--force ");
    }
    let name = quote(&wanted.name);
    let verb = wanted.systemctl(&format!("{options}{verb} {name}"));
    let status = wanted.systemctl(&format!("status --no-pager --full --lines=20 {name}"));
    format!("{}{verb} || {{ trimtab_code=$?; {status} >&2; exit $trimtab_code; }}", wanted.scope.preparation())
}

/// What came of the verbs: the unit afterwards, or why not.
pub fn judge(
    wanted: &Wanted,
    verbs: &[(&'static str, Option<&'static str>)],
    responses: &[Response],
) -> Result<UnitState, Failure> {
    for ((verb, _), response) in verbs.iter().zip(responses) {
        if !response.success() {
            let reason = response.error_text();
            let message = format!("Unable to {verb} service {}: {}", wanted.name, reason.trim());
            return Err(Failure::new(message).with("rc", response.code.map(i64::from)));
        }
    }
    let Some(shown) = responses.get(verbs.len()) else {
        return Err(Failure::new(format!("the host did not tell what became of service {}", wanted.name)));
    };
    let properties = Unit(wanted.name.clone()).parse(shown)?.unwrap_or_default();
    let after = UnitState { enabled: None, properties };
    check(wanted, verbs, &after)?;
    Ok(after)
}

/// The proof: what was done can be seen.
fn check(wanted: &Wanted, verbs: &[(&'static str, Option<&'static str>)], after: &UnitState) -> Result<(), Failure> {
    let did = |names: &[&str]| verbs.iter().any(|(verb, _)| names.contains(verb));
    let active = after.of("ActiveState");
    let wrong = |what: &str| {
        let result = after.of("Result");
        let result = if matches!(result, "" | "success") { String::new() } else { format!(", result {result}") };
        Failure::new(format!("service {} {what}: it is {active} ({}{result})", wanted.name, after.of("SubState")))
            .with("status", after.status())
    };
    // one that did its work and ended is all right
    let ended_well =
        active == "inactive" && after.of("Type") == "oneshot" && matches!(after.of("Result"), "success" | "");
    if did(&["start", "restart"]) && !wanted.no_block && !after.is_running() && !ended_well {
        return Err(wrong("was started but does not run"));
    }
    if did(&["stop"]) && !wanted.no_block && after.is_running() {
        return Err(wrong("was stopped but runs still"));
    }
    let file = after.of("UnitFileState");
    if did(&["mask"]) && !after.is_masked() {
        return Err(wrong("was masked but is not"));
    }
    if did(&["disable"]) && matches!(file, "enabled" | "enabled-runtime") {
        return Err(Failure::new(format!("service {} was disabled but is {file} still", wanted.name)));
    }
    if did(&["enable"]) && matches!(file, "disabled") {
        return Err(Failure::new(format!("service {} was enabled but is disabled still", wanted.name)));
    }
    Ok(())
}

/// The return values that tell of the unit.
pub fn result(wanted: &Wanted, unit: &UnitState) -> Map {
    let mut result = Map::new();
    result.insert("name".into(), wanted.name.as_str().into());
    result.insert("status".into(), unit.status().into());
    result.extend(wanted.state.map(|state| (Value::from("state"), Value::from(state.result()))));
    result.extend(wanted.enabled.map(|enabled| (Value::from("enabled"), Value::from(enabled))));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(state: Option<State>, enabled: Option<bool>, masked: Option<bool>) -> Wanted {
        let name = "irqbalance".to_owned();
        Wanted { name, state, enabled, masked, scope: Scope::System, no_block: false, force: false }
    }

    fn unit(active: &str, file: &str) -> UnitState {
        let enabled = match file {
            "enabled" => Some(true),
            "static" => None,
            _ => Some(false),
        };
        let load = if file == "masked" { "masked" } else { "loaded" };
        let properties = [("LoadState", load), ("ActiveState", active), ("UnitFileState", file), ("Type", "simple")];
        UnitState {
            properties: properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect(),
            enabled,
        }
    }

    fn verbs(wanted: &Wanted, unit: &UnitState) -> Vec<&'static str> {
        plan(wanted, unit).unwrap().into_iter().map(|(verb, _)| verb).collect()
    }

    #[test]
    fn only_what_differs_is_done() {
        type Case = (Option<State>, Option<bool>, Option<bool>, UnitState, &'static [&'static str]);
        let cases: &[Case] = &[
            (Some(State::Started), Some(true), None, unit("active", "enabled"), &[]),
            (Some(State::Started), Some(true), None, unit("inactive", "disabled"), &["enable", "start"]),
            (Some(State::Stopped), Some(false), None, unit("active", "enabled"), &["disable", "stop"]),
            (Some(State::Stopped), None, None, unit("deactivating", "enabled"), &["stop"]),
            (Some(State::Stopped), None, None, unit("failed", "enabled"), &[]),
            (Some(State::Restarted), None, None, unit("active", "enabled"), &["restart"]),
            (Some(State::Restarted), None, None, unit("inactive", "enabled"), &["start"]),
            (Some(State::Reloaded), None, None, unit("active", "enabled"), &["reload"]),
            (None, Some(true), None, unit("active", "static"), &[]),
            (None, Some(false), None, unit("active", "static"), &[]),
            (None, None, Some(true), unit("inactive", "disabled"), &["mask"]),
            (Some(State::Started), None, Some(false), unit("inactive", "masked"), &["unmask", "start"]),
        ];
        for (state, enabled, masked, unit, wanted_verbs) in cases {
            let wanted = wanted(*state, *enabled, *masked);
            assert_eq!(verbs(&wanted, unit), *wanted_verbs, "{wanted:?} {unit:?}");
        }
    }

    #[test]
    fn a_unit_that_is_not_there_is_an_error() {
        let mut missing = unit("inactive", "");
        missing.properties.insert("LoadState".into(), "not-found".into());
        let failure = plan(&wanted(Some(State::Stopped), None, None), &missing).unwrap_err();
        assert_eq!(failure.message, "Could not find the requested service irqbalance: host");
        assert!(plan(&wanted(None, None, Some(true)), &missing).is_ok());
    }

    #[test]
    fn changes_are_proven_and_can_be_taken_back() {
        let wanted = wanted(Some(State::Started), Some(true), None);
        let before = unit("inactive", "disabled");
        let verbs = plan(&wanted, &before).unwrap();
        let change = change(&wanted, &before, &verbs);
        assert_eq!(change.steps.len(), 3);
        assert_eq!(change.differences[0].after, "state: started\nboot: enabled\n");
        let Inverse::Steps(back) = &change.inverse else { panic!("{:?}", change.inverse) };
        assert!(back[0].script.starts_with("systemctl stop irqbalance") && back[1].script.contains("disable"));
        let ok = || Response::output("");
        let shown = |text: &str| Response::output(text);
        let good = [ok(), ok(), shown("LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n")];
        assert_eq!(judge(&wanted, &verbs, &good).unwrap().of("ActiveState"), "active");
        let died = [ok(), ok(), shown("ActiveState=failed\nSubState=failed\nResult=exit-code\nType=simple\n")];
        let failure = judge(&wanted, &verbs, &died).unwrap_err();
        assert!(
            failure.message.contains("does not run: it is failed (failed, result exit-code)"),
            "{}",
            failure.message
        );
        let refused =
            Response { code: Some(1), stderr: b"Job failed.\nOct 1 log line\n".to_vec(), ..Response::default() };
        let failure = judge(&wanted, &verbs, &[ok(), refused, Response::default()]).unwrap_err();
        assert_eq!(failure.message, "Unable to start service irqbalance: Job failed.\nOct 1 log line");
        let oneshot =
            [ok(), ok(), shown("ActiveState=inactive\nResult=success\nType=oneshot\nUnitFileState=enabled\n")];
        assert!(judge(&wanted, &verbs, &oneshot).is_ok());
    }

    #[test]
    fn a_failing_verb_shows_the_status() {
        let root = tempfile::tempdir().unwrap();
        let stub = "#!/bin/sh\ncase $* in *status*) echo 'log line' ;; *) echo \"refused: $*\" >&2; exit 5 ;; esac\n";
        let path = root.path().join("systemctl");
        std::fs::write(&path, stub).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut user = wanted(Some(State::Started), None, None);
        user.scope = Scope::User;
        user.name = "worker@1".into();
        let script = format!("PATH={}:$PATH\n{}", root.path().display(), step(&user, "start"));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "refused: --user start worker@1\nlog line\n");
    }
}
