//! Packet filter services: whether they are as wanted, and the steps that bring them there.

use std::fmt;

use crate::error::{Error, Result};

/// The units that may load packet filter rules. firewalld's unit conflicts with the iptables family.
pub const UNITS: &[&str] =
    &["firewalld", "iptables", "ip6tables", "ebtables", "nftables", "ufw", "netfilter-persistent", "ipset"];

/// The properties to ask `systemctl show` for; the same words from systemd 219 on.
pub const PROPERTIES: &[&str] = &["Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "FragmentPath"];

/// One unit as `systemctl show` describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitState {
    /// With its suffix: `firewalld.service`.
    pub id: String,
    pub load: String,
    pub active: String,
    /// Empty for a unit that is not installed.
    pub file: String,
}

impl UnitState {
    pub fn exists(&self) -> bool {
        self.load != "not-found"
    }

    pub fn is_active(&self) -> bool {
        !matches!(self.active.as_str(), "inactive" | "failed")
    }

    pub fn is_enabled(&self) -> bool {
        matches!(self.file.as_str(), "enabled" | "enabled-runtime" | "linked" | "linked-runtime" | "alias")
    }

    /// Masked for good; `masked-runtime` is gone after the next boot.
    pub fn is_masked(&self) -> bool {
        self.file == "masked"
    }
}

/// Parses the output of `systemctl show UNIT… -p …`: a block of `Name=value` lines for each unit, blank lines between.
pub fn parse_units(text: &str) -> Vec<UnitState> {
    let mut units = Vec::new();
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let mut unit = UnitState::default();
        for (name, value) in block.lines().filter_map(|line| line.split_once('=')) {
            match name {
                "Id" => unit.id = value.to_owned(),
                "LoadState" => unit.load = value.to_owned(),
                "ActiveState" => unit.active = value.to_owned(),
                "UnitFileState" => unit.file = value.to_owned(),
                _ => {}
            }
        }
        units.push(unit);
    }
    units
}

/// What is wanted of a packet filter service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Running and started at boot; rules are added instead.
    Keep,
    /// Not running, not started at boot; can still be started by hand.
    Stopped,
    /// Not running, and nobody can start it.
    Masked,
}

const MODES: &[(&str, Mode)] = &[("keep", Mode::Keep), ("stopped", Mode::Stopped), ("masked", Mode::Masked)];

impl Mode {
    pub fn parse(name: &str) -> Result<Mode> {
        MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode).ok_or_else(|| {
            Error::input(format!("`{name}` is not a mode of a firewall; there is `keep`, `stopped` and `masked`"))
                .suggest(name, MODES.iter().map(|(known, _)| *known))
        })
    }
}

/// True if the unit is as wanted. A unit that is not installed satisfies `stopped` and `masked`.
pub fn is_satisfied(mode: Mode, unit: &UnitState) -> bool {
    match mode {
        Mode::Keep => unit.exists() && unit.is_active() && unit.is_enabled(),
        Mode::Stopped => {
            !unit.exists() || (!unit.is_active() && matches!(unit.file.as_str(), "disabled" | "masked" | ""))
        }
        Mode::Masked => !unit.exists() || (!unit.is_active() && unit.is_masked()),
    }
}

/// One call of systemctl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Unmask,
    Enable,
    Start,
    Stop,
    Disable,
    Mask,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Step::Unmask => "unmask",
            Step::Enable => "enable",
            Step::Start => "start",
            Step::Stop => "stop",
            Step::Disable => "disable",
            Step::Mask => "mask",
        })
    }
}

/// The steps from the present state to the wanted one, in order; none if it is satisfied.
pub fn steps(mode: Mode, unit: &UnitState) -> Result<Vec<Step>> {
    if is_satisfied(mode, unit) {
        return Ok(Vec::new());
    }
    let mut steps = Vec::new();
    match mode {
        Mode::Keep => {
            if !unit.exists() {
                return Err(Error::input("it is to be kept running but is not installed"));
            }
            if unit.file.starts_with("masked") {
                steps.push(Step::Unmask);
            }
            if !unit.is_enabled() {
                steps.push(Step::Enable);
            }
            if !unit.is_active() {
                steps.push(Step::Start);
            }
        }
        Mode::Stopped | Mode::Masked => {
            if unit.is_active() {
                steps.push(Step::Stop);
            }
            if !matches!(unit.file.as_str(), "disabled" | "masked" | "") {
                steps.push(Step::Disable);
            }
            if mode == Mode::Masked && !unit.is_masked() {
                steps.push(Step::Mask);
            }
        }
    }
    Ok(steps)
}

/// The steps that bring a unit back to a recorded state: unmask, then enable, then start.
pub fn restoring_steps(before: &UnitState, now: &UnitState) -> Vec<Step> {
    let mut steps = Vec::new();
    let (was_masked, masked) = (before.file.starts_with("masked"), now.file.starts_with("masked"));
    if now.is_active() && !before.is_active() {
        steps.push(Step::Stop);
    }
    if masked && !was_masked {
        steps.push(Step::Unmask);
    }
    // What is masked now shows nothing of its links: unmasking leaves it disabled, for masking followed disabling.
    if before.is_enabled() && !now.is_enabled() {
        steps.push(Step::Enable);
    } else if now.is_enabled() && !before.is_enabled() {
        steps.push(Step::Disable);
    }
    if before.is_active() && !now.is_active() {
        steps.push(Step::Start);
    }
    if was_masked && !masked {
        steps.push(Step::Mask);
    }
    steps
}

/// Chains of container engines and orchestrators in the output of `iptables -t nat -S`. Stopping firewalld with its
/// iptables backend flushes them, and published ports die until the engine is restarted.
pub fn container_chains(rules: &str) -> usize {
    rules.lines().filter(|line| line.contains("DOCKER") || line.contains("KUBE") || line.contains("CNI-")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(load: &str, active: &str, file: &str) -> UnitState {
        UnitState { id: "firewalld.service".into(), load: load.into(), active: active.into(), file: file.into() }
    }

    #[test]
    fn units_are_read_in_blocks() {
        let text = "Id=firewalld.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n\
                    FragmentPath=/usr/lib/systemd/system/firewalld.service\n\n\
                    Id=ufw.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n";
        let units = parse_units(text);
        assert_eq!(units[0], unit("loaded", "active", "enabled"));
        assert_eq!((units[1].id.as_str(), units[1].exists()), ("ufw.service", false));
    }

    #[test]
    fn each_state_satisfies_what_it_should() {
        // (load, active, unit file) -> keep, stopped, masked
        let cases = [
            (("loaded", "active", "enabled"), [true, false, false]),
            (("loaded", "active", "disabled"), [false, false, false]),
            (("loaded", "inactive", "enabled"), [false, false, false]),
            (("loaded", "inactive", "disabled"), [false, true, false]),
            (("loaded", "failed", "disabled"), [false, true, false]),
            (("masked", "inactive", "masked"), [false, true, true]),
            (("masked", "inactive", "masked-runtime"), [false, false, false]),
            (("masked", "active", "masked"), [false, false, false]),
            (("loaded", "activating", "disabled"), [false, false, false]),
            (("not-found", "inactive", ""), [false, true, true]),
        ];
        for ((load, active, file), expected) in cases {
            let unit = unit(load, active, file);
            let got = [Mode::Keep, Mode::Stopped, Mode::Masked].map(|mode| is_satisfied(mode, &unit));
            assert_eq!(got, expected, "{load} {active} {file}");
        }
    }

    #[test]
    fn steps_lead_to_the_wanted_state_in_order() {
        let shown = |steps: Vec<Step>| steps.iter().map(Step::to_string).collect::<Vec<_>>().join(" ");
        let running = unit("loaded", "active", "enabled");
        let masked = unit("masked", "inactive", "masked");
        assert_eq!(shown(steps(Mode::Stopped, &running).expect("steps")), "stop disable");
        assert_eq!(shown(steps(Mode::Masked, &running).expect("steps")), "stop disable mask");
        assert_eq!(shown(steps(Mode::Keep, &masked).expect("steps")), "unmask enable start");
        assert_eq!(shown(steps(Mode::Keep, &running).expect("steps")), "");
        assert!(steps(Mode::Keep, &unit("not-found", "inactive", "")).is_err());
        assert_eq!(shown(restoring_steps(&running, &masked)), "unmask enable start");
        assert_eq!(shown(restoring_steps(&masked, &running)), "stop disable mask");
        assert_eq!(shown(restoring_steps(&running, &running)), "");
        assert_eq!(Mode::parse("stoped").expect_err("misspelt").hints(), ["did you mean `stopped`?"]);
    }

    #[test]
    fn chains_of_container_engines_are_counted() {
        let rules =
            "-P PREROUTING ACCEPT\n-N DOCKER\n-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n-N KUBE-SERVICES\n";
        assert_eq!(container_chains(rules), 3);
    }
}
