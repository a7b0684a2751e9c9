//! ansible.builtin.service_facts: the state of all services, as the fact `services`.

use indexmap::IndexMap;

use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Subject};
use crate::value::{Map, Value, object};

use super::programs::{SYSTEM_PATH, parts};
use super::{Action, Effect, FreeForm, Invocation, Module, Outcome, Support};

pub const MODULE: Module = Module {
    name: "ansible.builtin.service_facts",
    aliases: &[],
    summary: "Reads the state of all services into the fact `services`",
    args: &[],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ansible_facts", "`services`: name, state, status and source of each service, by its name")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Prints what systemd knows, in four parts: units, unit files, and the states of the latter in their order; else what sysvinit (two forms) or OpenRC know.
const LISTING: &str = "if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then\n\
     echo systemd; printf '\\036'\n\
     systemctl list-units --no-pager --no-legend --type service --all --plain; printf '\\036'\n\
     trimtab_files=$(systemctl list-unit-files --no-pager --no-legend --type service --all)\n\
     printf '%s\\036' \"$trimtab_files\"\n\
     trimtab_names=$(printf '%s\\n' \"$trimtab_files\" | while read -r name rest; do\n\
     case $name in *@.service) ;; *.service) echo \"$name\" ;; esac; done)\n\
     [ -z \"$trimtab_names\" ] || systemctl show --no-pager --property=ActiveState -- $trimtab_names; printf '\\036'\n\
     elif command -v rc-status >/dev/null 2>&1; then\n\
     echo openrc; printf '\\036'; rc-status -a -s -m 2>&1 | grep '^ ' | tr -d '[]'; printf '\\036'\n\
     rc-update show -v 2>&1 | grep '|'; printf '\\036'\n\
     elif command -v chkconfig >/dev/null 2>&1; then\n\
     echo chkconfig; printf '\\036'; chkconfig --list 2>/dev/null; printf '\\036'\n\
     for f in /etc/init.d/*; do [ -x \"$f\" ] && [ -f \"$f\" ] || continue; \
     service \"${f##*/}\" status >/dev/null 2>&1 </dev/null; echo \"${f##*/} $?\"; done; printf '\\036'\n\
     elif command -v service >/dev/null 2>&1 && [ -d /etc/init.d ]; then\n\
     echo sysv; printf '\\036'; service --status-all 2>&1 </dev/null; printf '\\036'\n\
     fi";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { host, .. } = invocation;
    // services come and go by themselves, and any script may ask anything
    let read = Script { text: format!("{SYSTEM_PATH}{LISTING}"), footprint: Footprint::Of(vec![Subject::Units]) };
    let answer = host.read(read).await?;
    let parts = parts(&answer, 5);
    let services = match parts[0].trim() {
        "systemd" => systemd(&parts[1], &parts[2], &parts[3]),
        "openrc" => openrc(&parts[1], &parts[2]),
        "chkconfig" => chkconfig(&parts[1], &parts[2]),
        "sysv" => sysv(&parts[1]),
        _ => IndexMap::new(),
    };
    let outcome = if services.is_empty() {
        Outcome::skipped(
            "Failed to find any services. This can be due to privileges or some other configuration issue.",
        )
    } else {
        Outcome::ok()
    };
    let services: Map = services.into_iter().map(|(name, service)| (name.into(), Value::from(service))).collect();
    let facts: Map = object([("services", services.into())]);
    Ok(outcome.with("ansible_facts", facts.clone()).effect(Effect::Facts(facts)))
}

type Services = IndexMap<String, Map>;

fn service(name: &str, state: &str, status: &str, source: &str) -> Map {
    object([("name", name.into()), ("state", state.into()), ("status", status.into()), ("source", source.into())])
}

/// Units first, then unit files for the status of those that can be enabled. A file whose unit is not loaded may be the
/// other name of one that is; a template, which has no state, is `unknown`.
fn systemd(units: &str, files: &str, states: &str) -> Services {
    const BAD: [&str; 3] = ["not-found", "masked", "failed"];
    let mut services = Services::new();
    for line in units.lines() {
        let fields: Vec<&str> = line.split_whitespace().filter(|word| *word != "●" && *word != "*").collect();
        let Some(name) = fields.first().filter(|name| name.contains(".service") && fields.len() > 3) else { continue };
        let bad = BAD.into_iter().find(|bad| fields[..fields.len() - 1].contains(bad));
        let state = if fields[3] == "running" { "running" } else { "stopped" };
        services.insert((*name).to_owned(), service(name, state, bad.unwrap_or(fields[2]), "systemd"));
    }
    let mut states = states.lines().filter_map(|line| line.strip_prefix("ActiveState="));
    for line in files.lines() {
        let mut fields = line.split_whitespace();
        let (Some(name), Some(status)) = (fields.next(), fields.next()) else { continue };
        if !name.contains(".service") {
            continue;
        }
        let is_asked = name.ends_with(".service") && !name.ends_with("@.service");
        let state = if is_asked { states.next().unwrap_or("unknown") } else { "unknown" };
        match services.get_mut(name) {
            Some(known) => {
                let is_bad = known.get("status").and_then(Value::as_str).is_some_and(|status| BAD.contains(&status));
                if !is_bad {
                    known.insert("status".into(), status.into());
                }
            }
            None => {
                services.insert(name.to_owned(), service(name, state, status, "systemd"));
            }
        }
    }
    services
}

fn openrc(states: &str, levels: &str) -> Services {
    let levels: IndexMap<&str, Vec<Value>> = levels
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(name, levels)| (name.trim(), levels.split_whitespace().map(Value::from).collect()))
        .collect();
    let mut services = Services::new();
    for line in states.lines() {
        let mut fields = line.split_whitespace();
        let (Some(name), Some(state)) = (fields.next(), fields.next()) else { continue };
        let own = levels.get(name).filter(|levels| !levels.is_empty());
        let entry = object([
            ("name", name.into()),
            ("runlevels", own.map_or(Value::Null, |levels| Value::list(levels.clone()))),
            ("state", state.into()),
            ("source", "openrc".into()),
        ]);
        services.insert(name.to_owned(), entry);
    }
    services
}

/// `name 0:off 1:off 2:on 3:on …`: what is on in the third runlevel is enabled.
fn chkconfig(listing: &str, states: &str) -> Services {
    let running: Vec<&str> = states.lines().filter_map(|line| line.strip_suffix(" 0")).collect();
    let mut services = Services::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if fields.len() < 8 || !fields[1].starts_with("0:") {
            continue;
        }
        let name = fields[0];
        let state = if running.contains(&name) { "running" } else { "stopped" };
        let status = if fields.contains(&"3:on") { "enabled" } else { "disabled" };
        services.insert(name.to_owned(), service(name, state, status, "sysv"));
    }
    services
}

/// ` [ + ]  name`
fn sysv(listing: &str) -> Services {
    let mut services = Services::new();
    for line in listing.lines() {
        let rest = line.trim().strip_prefix("[ ");
        let Some((sign, name)) = rest.and_then(|rest| rest.split_once(" ]")) else { continue };
        let state = match sign {
            "+" => "running",
            "-" => "stopped",
            _ => continue,
        };
        let name = name.trim();
        let entry = object([("name", name.into()), ("state", state.into()), ("source", "sysv".into())]);
        services.insert(name.to_owned(), entry);
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::run_module;

    fn shown(services: &Services) -> Vec<String> {
        let of = |map: &Map, key: &str| map.get(key).map(|value| value.to_text().into_owned()).unwrap_or_default();
        services.values().map(|map| ["name", "state", "status", "source"].map(|key| of(map, key)).join(" ")).collect()
    }

    #[test]
    fn every_init_systems_listing_is_read() {
        let units = "sshd.service loaded active running OpenSSH server daemon\n\
                     ● bad.service loaded failed failed It broke\n\
                     gone.service not-found inactive dead gone.service\n\
                     once.service loaded active exited Once\n";
        let files = "sshd.service enabled enabled\nother.service disabled disabled\nuser@.service static -\n\
                     gone.service masked\nalias.service alias -\n";
        let states = "ActiveState=active\n\nActiveState=inactive\n\nActiveState=inactive\n\nActiveState=active\n";
        assert_eq!(
            shown(&systemd(units, files, states)),
            [
                "sshd.service running enabled systemd",
                "bad.service stopped failed systemd",
                "gone.service stopped not-found systemd",
                "once.service stopped active systemd",
                "other.service inactive disabled systemd",
                "user@.service unknown static systemd",
                "alias.service active alias systemd",
            ]
        );
        let listing = "crond  0:off 1:off 2:on 3:on 4:on 5:on 6:off\nold 0:off 1:off 2:off 3:off 4:off 5:off 6:off\nxinetd based:\n";
        assert_eq!(
            shown(&chkconfig(listing, "crond 0\nold 3\n")),
            ["crond running enabled sysv", "old stopped disabled sysv"]
        );
        assert_eq!(shown(&sysv(" [ + ]  cron\n [ - ]  x y\n [ ? ]  z\n")), ["cron running  sysv", "x y stopped  sysv"]);
        let services = openrc(" sshd started\n ntpd stopped\n", "sshd | default boot\nntpd |\n");
        assert_eq!(services["sshd"]["runlevels"].to_repr(), "['default', 'boot']");
        assert_eq!(services["ntpd"]["runlevels"], Value::Null);
    }

    #[test]
    fn this_machines_services_are_facts() {
        let outcome = run_module(&MODULE, &[]).unwrap();
        assert!(!outcome.changed && outcome.result["ansible_facts"].get("services").is_some());
    }
}
