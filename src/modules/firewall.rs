//! `trimtab.tuning.firewall`: packet filter services kept with the ports they must pass, stopped, or masked.

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Script, UnitProperties};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step as ShellStep, Subject};
use crate::tuning::firewall::{Mode, Step, UnitState, is_satisfied, restoring_steps, steps};
use crate::value::{Value, object};

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type, machine};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.firewall",
    aliases: &[],
    summary: "Keeps packet filter services with the ports they must pass, or stops or masks them",
    args: &[
        Arg::new(
            "mode",
            Type::Str,
            "keep: runs and passes the ports; stopped: off, also at boot; masked: nobody can start it",
        )
        .required()
        .choices(&["keep", "stopped", "masked"]),
        Arg::new("services", Type::List, "the services; one that is not installed counts as stopped and masked")
            .default("firewalld")
            .aliases(&["service"]),
        Arg::new("ports", Type::List, "ports to pass, as `3306/tcp` or `5000-5010/udp` (keep, firewalld only)"),
        Arg::new("zone", Type::Str, "firewalld's zone for the ports; its default zone if not given"),
        Arg::new(
            "unsaved",
            Type::Str,
            "rules that only the running firewalld has, and a stop would lose: fail, save or discard them",
        )
        .default("fail")
        .choices(&["fail", "save", "discard"]),
        Arg::new(
            "containers",
            Type::Str,
            "containers run, and a stop of firewalld flushes their rules (iptables backend): fail, or allow it",
        )
        .default("fail")
        .choices(&["fail", "allow"]),
    ],
    rules: &[Rule::RequiredIf("mode", "keep", &["services"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("services", "for each service whether it is installed and its state before")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const FIREWALLD: &str = "firewalld.service";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let mode = Mode::parse(args.text("mode"))?;
    let names: Vec<String> = args.list("services").iter().map(|name| service_name(name)).collect::<Result<_, _>>()?;
    let ports: Vec<String> = args.list("ports").iter().map(|port| check_port(port)).collect::<Result<_, _>>()?;
    let zone = args.str("zone").map(check_zone).transpose()?;
    let (units, docker, kubelet, details) = try_join!(
        try_join_all(names.iter().map(|name| read_unit(&host, name))),
        machine::is_active(&host, "docker"),
        machine::is_active(&host, "kubelet"),
        read_firewalld(&host, &names, &ports, zone.as_deref()),
    )?;
    if !ports.is_empty() && (mode != Mode::Keep || !names.iter().any(|name| name == FIREWALLD)) {
        return Err(Failure::new("`ports` go with `mode: keep` of firewalld"));
    }
    let mut outcome = Outcome::ok();
    let mut services = Vec::new();
    for unit in &units {
        services.push(Value::from(object([
            ("name", unit.id.as_str().into()),
            ("installed", unit.exists().into()),
            ("active", unit.is_active().into()),
            ("enabled", unit.is_enabled().into()),
            ("masked", unit.is_masked().into()),
        ])));
        let stops = mode != Mode::Keep && unit.exists() && unit.is_active();
        if stops && unit.id == FIREWALLD {
            let loses = details.flushes() && (docker || kubelet);
            if loses && args.text("containers") == "fail" {
                return Err(Failure::new(
                    "containers run on this host, and stopping firewalld flushes their rules too (its backend is iptables): \
                     ports they publish die until docker is restarted; say `containers: allow`, or keep it",
                ));
            }
            if loses {
                outcome =
                    outcome.warning("the rules of containers are flushed with firewalld's; restart docker behind this");
            }
        }
        let change = unit_change(&args, mode, unit, &details)
            .map_err(|failure| Failure { message: format!("{}: {}", unit.id, failure.message), ..failure })?;
        let change = match (change, unit.id == FIREWALLD && !ports.is_empty()) {
            (change, true) => with_ports(change, unit, &details, zone.as_deref()),
            (change, false) => change,
        };
        if let Some(change) = change {
            outcome.changed = true;
            outcome = outcome.differences(change.differences.iter().cloned());
            host.change(change).await?;
        }
    }
    Ok(outcome.with("services", Value::list(services)))
}

fn service_name(name: &str) -> Result<String, Failure> {
    let valid = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    if name.is_empty() || name.starts_with(['-', '.']) || !name.bytes().all(valid) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a service")));
    }
    Ok(if name.ends_with(".service") { name.to_owned() } else { format!("{name}.service") })
}

fn check_port(port: &str) -> Result<String, Failure> {
    let valid = port.split_once('/').is_some_and(|(numbers, protocol)| {
        let mut parts = numbers.splitn(2, '-').map(|number| number.parse::<u16>().ok().filter(|number| *number > 0));
        let first = parts.next().flatten();
        let last = parts.next();
        matches!(protocol, "tcp" | "udp" | "sctp" | "dccp")
            && first.is_some()
            && last.is_none_or(|last| last.is_some() && last >= first)
    });
    if !valid {
        return Err(Failure::new(format!("`{port}` is not a port such as `3306/tcp` or `5000-5010/udp`")));
    }
    Ok(port.to_owned())
}

fn check_zone(zone: &str) -> Result<String, Failure> {
    if zone.is_empty() || !zone.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Failure::new(format!("`{zone}` cannot be the name of a zone")));
    }
    Ok(zone.to_owned())
}

async fn read_unit(host: &Host, name: &str) -> Result<UnitState, Failure> {
    let unit = machine::unit(host, name).await?;
    let unit = unit.ok_or_else(|| Failure::new("systemd is not the init system of this host"))?;
    Ok(unit_state(name, &unit))
}

pub(super) fn unit_state(name: &str, unit: &UnitProperties) -> UnitState {
    let value = |key: &str| unit.get(key).cloned().unwrap_or_default();
    UnitState {
        id: name.to_owned(),
        load: value("LoadState"),
        active: value("ActiveState"),
        file: value("UnitFileState"),
    }
}

/// What was read of firewalld itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Details {
    /// `iptables` or `nftables`; empty if the configuration does not say.
    backend: String,
    runtime: Vec<String>,
    permanent: Vec<String>,
    /// Each port with whether the running and the permanent configuration pass it.
    ports: Vec<(String, bool, bool)>,
    /// The port that this SSH connection came to.
    ssh_port: Option<u16>,
}

impl Details {
    /// A stop flushes the rules of everybody. The older backend, which is the one where nothing is said.
    fn flushes(&self) -> bool {
        self.backend != "nftables"
    }

    /// True if the running firewalld has rules that are not in its files.
    fn has_unsaved(&self) -> bool {
        rules(&self.runtime) != rules(&self.permanent)
    }
}

/// The lines of `--list-all-zones` that are rules: which zone is active and its interfaces belong to the running state.
fn rules(lines: &[String]) -> Vec<&str> {
    let keep = |line: &&str| !line.is_empty() && !line.starts_with("interfaces:");
    lines
        .iter()
        .map(|line| line.trim().trim_end_matches(" (active)").trim_end_matches(" (default, active)"))
        .filter(keep)
        .collect()
}

async fn read_firewalld(
    host: &Host,
    names: &[String],
    ports: &[String],
    zone: Option<&str>,
) -> Result<Details, Failure> {
    if !names.iter().any(|name| name == FIREWALLD) {
        return Ok(Details::default());
    }
    let zone = zone.map(|zone| format!("--zone={zone} ")).unwrap_or_default();
    let mut text = r#"sed -n 's/^FirewallBackend=/backend=/p' /etc/firewalld/firewalld.conf 2>/dev/null
p=$$ c=$SSH_CONNECTION
while [ -z "$c" ] && [ "${p:-0}" -gt 1 ]; do
  c=$(tr '\000' '\n' <"/proc/$p/environ" 2>/dev/null | sed -n 's/^SSH_CONNECTION=//p')
  p=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$p/status" 2>/dev/null)
done
[ -z "$c" ] || echo "ssh=${c##* }"
q() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }
if firewall-cmd --state >/dev/null 2>&1; then
  firewall-cmd --list-all-zones | sed 's/^/runtime=/'
  firewall-cmd --permanent --list-all-zones | sed 's/^/permanent=/'
  r="firewall-cmd" f="firewall-cmd --permanent"
else
  r="firewall-offline-cmd" f="firewall-offline-cmd"
fi"#
    .to_owned();
    // Of one that does not run, the files are what it will pass.
    for port in ports {
        text.push_str(&format!(
            "\necho \"port={port} $(q $r {zone}--query-port={port}) $(q $f {zone}--query-port={port})\""
        ));
    }
    let footprint = Footprint::Of(vec![
        Subject::Unit(FIREWALLD.to_owned()),
        Subject::Tree("/etc/firewalld".to_owned()),
        Subject::Named("firewalld".to_owned()),
    ]);
    Ok(parse_details(&host.read(Script { text, footprint }).await?, ports))
}

fn parse_details(answer: &Response, ports: &[String]) -> Details {
    let text = answer.text();
    let mut details =
        Details { ports: ports.iter().map(|port| (port.clone(), false, false)).collect(), ..Details::default() };
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "backend" => details.backend = value.trim().to_owned(),
            "ssh" => details.ssh_port = value.trim().parse().ok(),
            "runtime" => details.runtime.push(value.to_owned()),
            "permanent" => details.permanent.push(value.to_owned()),
            "port" => {
                let words: Vec<&str> = value.split_ascii_whitespace().collect();
                if let [port, runtime, permanent] = words.as_slice()
                    && let Some(known) = details.ports.iter_mut().find(|known| known.0 == *port)
                {
                    (known.1, known.2) = (*runtime == "yes", *permanent == "yes");
                }
            }
            _ => {}
        }
    }
    details
}

fn footprint(unit: &UnitState) -> Footprint {
    let mut subjects = vec![Subject::Unit(unit.id.clone()), Subject::Named("packet filter".to_owned())];
    if unit.id == FIREWALLD {
        subjects.push(Subject::Named("firewalld".to_owned()));
        subjects.push(Subject::Tree("/etc/firewalld".to_owned()));
    }
    Footprint::Of(subjects)
}

pub(super) fn describe(unit: &UnitState) -> String {
    let file = if unit.file.is_empty() { "not installed" } else { &unit.file };
    format!("{}, {file}\n", unit.active)
}

/// The change of the unit; `None` if it is as wanted.
fn unit_change(args: &Args, mode: Mode, unit: &UnitState, details: &Details) -> Result<Option<Change>, Failure> {
    let plan = steps(mode, unit)?;
    if plan.is_empty() {
        return Ok(None);
    }
    let mut change = Change::certain(format!("service {}", unit.id), footprint(unit));
    if plan.contains(&Step::Stop) && unit.id == FIREWALLD && details.has_unsaved() {
        match args.text("unsaved") {
            "save" => change = change.step(ShellStep::new("firewall-cmd --runtime-to-permanent >/dev/null")),
            "discard" => {}
            _ => {
                return Err(Failure::new(
                    "it has rules that are not in its files, and a stop would lose them; say `unsaved: save` or `unsaved: discard`",
                ));
            }
        }
    }
    if plan.contains(&Step::Start)
        && unit.id == FIREWALLD
        && let Some(port) = details.ssh_port
    {
        // It must not come up without a way in for this connection.
        change = change.step(ShellStep::new(ssh_rule(port)));
    }
    let after = after(mode, unit);
    for step in &plan {
        change = change.step(ShellStep::new(format!("systemctl {step} {}", quote(&unit.id))));
    }
    change = change.step(ShellStep::new(proof(mode, &unit.id))).difference(Difference::new(
        format!("service {}", unit.id),
        describe(unit),
        describe(&after),
    ));
    let back = restoring_steps(unit, &after);
    let back = back.iter().map(|step| ShellStep::new(format!("systemctl {step} {}", quote(&unit.id)))).collect();
    Ok(Some(change.inverse(Inverse::Steps(back))))
}

/// What the unit is after the change.
pub(super) fn after(mode: Mode, unit: &UnitState) -> UnitState {
    let (active, file) = match mode {
        Mode::Keep => ("active", "enabled"),
        Mode::Stopped if unit.is_masked() => ("inactive", "masked"),
        Mode::Stopped => ("inactive", "disabled"),
        Mode::Masked => ("inactive", "masked"),
    };
    let after = UnitState { active: active.to_owned(), file: file.to_owned(), ..unit.clone() };
    debug_assert!(is_satisfied(mode, &after));
    after
}

/// Shell code that fails unless the unit is as wanted.
pub(super) fn proof(mode: Mode, id: &str) -> String {
    let unit = quote(id);
    let (active, file) = match mode {
        Mode::Keep => ("ActiveState=active", "UnitFileState=enabled | UnitFileState=linked | UnitFileState=alias"),
        Mode::Stopped => (
            "ActiveState=inactive | ActiveState=failed",
            "UnitFileState=disabled | UnitFileState=masked | UnitFileState=",
        ),
        Mode::Masked => ("ActiveState=inactive | ActiveState=failed", "UnitFileState=masked"),
    };
    format!(
        "for p in ActiveState UnitFileState; do\n  v=$(systemctl show -p $p -- {unit} | grep \"^$p=\")\n  case $v in\n  \
         {active} | {file}) ;;\n  *) echo \"it is $v afterwards\" >&2; exit 1 ;;\n  esac\ndone"
    )
}

/// Puts the port of this connection into firewalld's files, unless it is there.
fn ssh_rule(port: u16) -> String {
    let service = if port == 22 { "firewall-offline-cmd --query-service=ssh >/dev/null 2>&1 || " } else { "" };
    format!(
        "{service}firewall-offline-cmd --query-port={port}/tcp >/dev/null 2>&1 || firewall-offline-cmd --add-port={port}/tcp >/dev/null"
    )
}

/// Adds the ports that are not passed, now and in the files, each by itself: a reload would drop what others added.
fn with_ports(change: Option<Change>, unit: &UnitState, details: &Details, zone: Option<&str>) -> Option<Change> {
    let zone = zone.map(|zone| format!("--zone={zone} ")).unwrap_or_default();
    let missing: Vec<&(String, bool, bool)> =
        details.ports.iter().filter(|(_, runtime, permanent)| !runtime || !permanent).collect();
    if missing.is_empty() {
        return change;
    }
    let mut change = change
        .unwrap_or_else(|| Change::certain("ports of firewalld", footprint(unit)).inverse(Inverse::Steps(Vec::new())));
    let mut back = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    for (port, runtime, permanent) in missing {
        for (flag, passed) in [("", *runtime), ("--permanent ", *permanent)] {
            if passed {
                continue;
            }
            let ask = format!("firewall-cmd {flag}{zone}--query-port={port}");
            change = change.step(
                ShellStep::new(format!(
                    "{ask} >/dev/null 2>&1 || firewall-cmd {flag}{zone}--add-port={port} >/dev/null; {ask}"
                ))
                .expect("yes"),
            );
            back.push(ShellStep::new(format!("firewall-cmd {flag}{zone}--remove-port={port} >/dev/null")));
        }
        let word = |passed: bool| if passed { "passes" } else { "no" };
        before.push_str(&format!("{port}: now {}, after a restart {}\n", word(*runtime), word(*permanent)));
        after.push_str(&format!("{port}: now passes, after a restart passes\n"));
    }
    change = change.difference(Difference::new("ports of firewalld", before, after));
    back.reverse();
    if let Inverse::Steps(steps) = &mut change.inverse {
        steps.splice(0..0, back);
    }
    Some(change)
}

#[cfg(test)]
#[path = "firewall_tests.rs"]
mod tests;
