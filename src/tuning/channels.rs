//! Queues, rings and features of network devices, as ethtool of all versions prints them (ethtool(8)).

use crate::error::{Error, Result};

/// The rows of one block of `ethtool -l` or `-g`. `None` where the device has no such thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub rx: Option<u64>,
    pub tx: Option<u64>,
    pub other: Option<u64>,
    pub combined: Option<u64>,
}

/// What the device can have at most, and what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    pub maximum: Counts,
    pub current: Counts,
}

/// Parses `ethtool -l IF` (channels) or `-g IF` (rings): two blocks of rows.
///
/// Rows that the device lacks print `0` in older versions and `n/a` in newer ones: both are `None`. Rows that are not known are skipped.
pub fn parse_report(text: &str) -> Result<Report> {
    let mut report = Report::default();
    let mut seen = (false, false);
    for line in text.lines() {
        if line.starts_with("Pre-set maximums") {
            seen.0 = true;
        } else if line.starts_with("Current hardware settings") {
            seen.1 = true;
        } else if let Some((name, value)) = line.split_once(':') {
            let block = if seen.1 { &mut report.current } else { &mut report.maximum };
            let row = match name.trim() {
                "RX" => &mut block.rx,
                "TX" => &mut block.tx,
                "Other" => &mut block.other,
                "Combined" => &mut block.combined,
                _ => continue,
            };
            *row = match value.trim() {
                "n/a" | "0" => None,
                number => Some(number.parse().map_err(|_| {
                    Error::input(format!(
                        "`{}` of `{}` is not a number in the output of ethtool",
                        value.trim(),
                        name.trim()
                    ))
                })?),
            };
        }
    }
    if seen != (true, true) {
        return Err(Error::input("the output of ethtool has no blocks of maximums and current settings"));
    }
    Ok(report)
}

/// The text of a report after rows of its current settings were changed: what ethtool prints then.
pub fn with_current(text: &str, rows: &[(&str, u64)]) -> String {
    let mut in_current = false;
    let change = |line: &str| {
        in_current |= line.starts_with("Current hardware settings");
        let Some((name, value)) = line.split_once(':') else { return line.to_owned() };
        match rows.iter().find(|(row, _)| in_current && *row == name) {
            Some((_, number)) => {
                let blanks = &value[..value.len() - value.trim_start().len()];
                format!("{name}:{blanks}{number}{}", &value[value.trim_end().len()..])
            }
            None => line.to_owned(),
        }
    };
    text.split_inclusive('\n').map(change).collect()
}

/// What to do with a wanted number above the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clamp {
    /// Fail.
    #[default]
    Exact,
    /// Take the maximum.
    UpToMaximum,
}

/// Which rows of the channels are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    Combined(u64),
    /// Devices without combined channels (veth, some older ones).
    Separate {
        rx: u64,
        tx: u64,
    },
}

/// The channels to set and whether that is a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelPlan {
    pub channels: Channels,
    /// False if the device has them already: older ethtool fails when nothing changes, so it must not be called.
    pub changes: bool,
    /// The wanted number was above the maximum.
    pub clamped: bool,
}

impl ChannelPlan {
    /// The arguments for `ethtool -L IF`.
    pub fn arguments(&self) -> Vec<String> {
        match self.channels {
            Channels::Combined(count) => vec!["combined".into(), count.to_string()],
            Channels::Separate { rx, tx } => vec!["rx".into(), rx.to_string(), "tx".into(), tx.to_string()],
        }
    }
}

/// Chooses the channels for `wanted` queues.
pub fn plan_channels(report: &Report, wanted: u64, clamp: Clamp) -> Result<ChannelPlan> {
    if wanted == 0 {
        return Err(Error::input("a network device needs at least one queue"));
    }
    let within =
        |maximum: u64, what: &str| {
            if wanted <= maximum {
                return Ok(wanted);
            }
            match clamp {
                Clamp::UpToMaximum => Ok(maximum),
                Clamp::Exact => Err(Error::input(format!(
                    "{wanted} {what} queues are wanted, but the device has at most {maximum}"
                ))
                .hint("in a virtual machine the hypervisor sets the maximum; some network cards have it in the BIOS")),
            }
        };
    let (channels, present) = match report.maximum {
        Counts { combined: Some(maximum), .. } => {
            (Channels::Combined(within(maximum, "combined")?), report.current.combined.map(Channels::Combined))
        }
        Counts { rx: Some(rx), tx: Some(tx), .. } => {
            let present = report.current.rx.zip(report.current.tx).map(|(rx, tx)| Channels::Separate { rx, tx });
            (Channels::Separate { rx: within(rx, "receive")?, tx: within(tx, "send")? }, present)
        }
        _ => return Err(Error::input("the device does not let its number of queues be set")),
    };
    let clamped = match channels {
        Channels::Combined(count) => count < wanted,
        Channels::Separate { rx, tx } => rx < wanted || tx < wanted,
    };
    Ok(ChannelPlan { channels, changes: present != Some(channels), clamped })
}

/// Chooses the ring sizes: the arguments for `ethtool -G IF`, empty if nothing changes.
pub fn plan_rings(report: &Report, rx: Option<u64>, tx: Option<u64>, clamp: Clamp) -> Result<Vec<String>> {
    let rows = [("rx", rx, report.maximum.rx, report.current.rx), ("tx", tx, report.maximum.tx, report.current.tx)];
    let mut arguments = Vec::new();
    for (name, wanted, maximum, current) in rows {
        let Some(wanted) = wanted else { continue };
        let Some(maximum) = maximum else {
            return Err(Error::input(format!("the device has no {name} ring whose size can be set")));
        };
        let wanted = match clamp {
            _ if wanted <= maximum => wanted,
            Clamp::UpToMaximum => maximum,
            Clamp::Exact => {
                return Err(Error::input(format!(
                    "a {name} ring of {wanted} is wanted, but the device has at most {maximum}"
                )));
            }
        };
        if current != Some(wanted) {
            arguments.extend([name.to_owned(), wanted.to_string()]);
        }
    }
    Ok(arguments)
}

/// A row of `ethtool -k`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    pub name: String,
    pub on: bool,
    /// The device lets nobody change it.
    pub fixed: bool,
    /// `Some` if another state was asked for than the device could take on.
    pub requested: Option<bool>,
}

/// Parses `ethtool -k IF`: `name: on|off [fixed]`, `name: off [requested on]`.
pub fn parse_features(text: &str) -> Vec<Feature> {
    let rows = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.trim().splitn(2, ' ');
        let on = match words.next()? {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        let note = words.next().unwrap_or_default();
        let requested = match note {
            "[requested on]" => Some(true),
            "[requested off]" => Some(false),
            _ => None,
        };
        Some(Feature { name: name.trim().to_owned(), on, fixed: note.contains("[fixed]"), requested })
    });
    rows.collect()
}

/// The offloads that `ethtool -k` and `-K` know by different names.
const OFFLOADS: &[(&str, &str)] = &[
    ("rx", "rx-checksumming"),
    ("tx", "tx-checksumming"),
    ("sg", "scatter-gather"),
    ("tso", "tcp-segmentation-offload"),
    ("ufo", "udp-fragmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("gro", "generic-receive-offload"),
    ("lro", "large-receive-offload"),
    ("rxvlan", "rx-vlan-offload"),
    ("txvlan", "tx-vlan-offload"),
    ("ntuple", "ntuple-filters"),
    ("rxhash", "receive-hashing"),
];

/// The features to switch: the name for `ethtool -K`, the name in `ethtool -k`, and the wanted state.
pub fn plan_features(features: &[Feature], wanted: &[(String, bool)]) -> Result<Vec<(String, String, bool)>> {
    let mut plan = Vec::new();
    for (name, on) in wanted {
        let long = OFFLOADS.iter().find(|(short, _)| short == name).map_or(name.as_str(), |(_, long)| long);
        let short = OFFLOADS.iter().find(|(_, known)| *known == long).map_or(long, |(short, _)| short);
        let feature = features.iter().find(|feature| feature.name == long).ok_or_else(|| {
            Error::input(format!("the device has no feature `{name}`"))
                .suggest(long, features.iter().map(|feature| feature.name.as_str()))
        })?;
        if feature.on == *on {
            continue;
        }
        if feature.fixed {
            let state = if feature.on { "on" } else { "off" };
            return Err(Error::input(format!("the feature `{name}` is fixed: the device has it {state} for good")));
        }
        plan.push((short.to_owned(), long.to_owned(), *on));
    }
    Ok(plan)
}

/// The driver of a device, from `ethtool -i`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Driver {
    pub driver: String,
    pub version: String,
    pub firmware_version: String,
    /// The PCI address; empty for virtual devices.
    pub bus_info: String,
}

/// Parses `ethtool -i IF`.
pub fn parse_driver(text: &str) -> Driver {
    let mut driver = Driver::default();
    for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let field = match name.trim() {
            "driver" => &mut driver.driver,
            "version" => &mut driver.version,
            "firmware-version" => &mut driver.firmware_version,
            "bus-info" => &mut driver.bus_info,
            _ => continue,
        };
        *field = value.trim().to_owned();
    }
    driver
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\t0\nTX:\t\t0\nOther:\t\t1\nCombined:\t63\n\
                       Current hardware settings:\nRX:\t\t0\nTX:\t\t0\nOther:\t\t1\nCombined:\t16\n\n";
    const NEW: &str = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t4\n\
                       Current hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\tn/a\nCombined:\t1\n";
    const VETH: &str = "Channel parameters for veth0:\nPre-set maximums:\nRX:\t\t4\nTX:\t\t4\nOther:\t\tn/a\nCombined:\tn/a\n\
                        Current hardware settings:\nRX:\t\t1\nTX:\t\t4\nOther:\t\tn/a\nCombined:\tn/a\n";
    const RINGS: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t\t32760\nRX Mini:\t\tn/a\nTX:\t\t\t32760\n\
                         Current hardware settings:\nRX:\t\t\t1024\nRX Mini:\t\tn/a\nRX Buf Len:\t\t2048\nTX:\t\t\t1024\nTX Push:\toff\n";

    fn report(text: &str) -> Report {
        parse_report(text).expect("a report")
    }

    #[test]
    fn both_ways_to_say_nothing_are_read() {
        for (text, maximum, current) in [(OLD, 63, 16), (NEW, 4, 1)] {
            let report = report(text);
            assert_eq!((report.maximum.combined, report.current.combined), (Some(maximum), Some(current)));
            assert_eq!((report.maximum.rx, report.maximum.tx), (None, None));
        }
        assert_eq!((report(OLD).maximum.other, report(NEW).maximum.other), (Some(1), None));
        for text in ["", "Pre-set maximums:\nRX: 1\n", "netlink error: Operation not supported\n"] {
            assert!(parse_report(text).is_err(), "{text:?}");
        }
        assert!(parse_report(&NEW.replace("Combined:\t4", "Combined:\tmany")).is_err());
    }

    #[test]
    fn combined_channels_are_preferred() {
        let plan = |text, wanted, clamp| plan_channels(&report(text), wanted, clamp);
        let combined = plan(OLD, 8, Clamp::Exact).expect("a plan");
        assert_eq!((combined.channels, combined.changes), (Channels::Combined(8), true));
        assert_eq!(combined.arguments(), ["combined", "8"]);
        assert!(!plan(OLD, 16, Clamp::Exact).expect("a plan").changes);
        let separate = plan(VETH, 4, Clamp::Exact).expect("a plan");
        assert_eq!((separate.channels, separate.changes), (Channels::Separate { rx: 4, tx: 4 }, true));
        assert_eq!(separate.arguments(), ["rx", "4", "tx", "4"]);
    }

    #[test]
    fn the_maximum_is_a_limit_or_a_refusal() {
        let error = plan_channels(&report(NEW), 8, Clamp::Exact).expect_err("above");
        assert_eq!(error.message(), "8 combined queues are wanted, but the device has at most 4");
        let plan = plan_channels(&report(NEW), 8, Clamp::UpToMaximum).expect("a plan");
        assert_eq!((plan.channels, plan.changes, plan.clamped), (Channels::Combined(4), true, true));
        assert!(plan_channels(&report(NEW), 0, Clamp::UpToMaximum).is_err());
        assert!(plan_channels(&Report::default(), 1, Clamp::Exact).is_err());
    }

    #[test]
    fn rings_are_set_only_where_they_differ() {
        let rings = report(RINGS);
        assert_eq!(plan_rings(&rings, Some(1024), Some(4096), Clamp::Exact).expect("a plan"), ["tx", "4096"]);
        assert_eq!(plan_rings(&rings, Some(65536), None, Clamp::UpToMaximum).expect("a plan"), ["rx", "32760"]);
        assert!(plan_rings(&rings, None, None, Clamp::Exact).expect("a plan").is_empty());
        assert!(plan_rings(&rings, Some(65536), None, Clamp::Exact).is_err());
        assert!(plan_rings(&Report::default(), Some(1), None, Clamp::Exact).is_err());
    }

    #[test]
    fn what_ethtool_will_print_is_known() {
        let after = with_current(OLD, &[("Combined", 8)]);
        assert_eq!(after, OLD.replace("Combined:\t16", "Combined:\t8"));
        assert_eq!(with_current(VETH, &[("RX", 4), ("TX", 4)]), VETH.replace("RX:\t\t1\n", "RX:\t\t4\n"));
    }

    #[test]
    fn features_are_switched_by_the_names_that_ethtool_takes() {
        let text =
            "tcp-segmentation-offload: on\n\ttx-tcp-mangleid-segmentation: off\nlarge-receive-offload: off [fixed]\n";
        let plan = |wanted: &[(&str, bool)]| {
            let wanted: Vec<_> = wanted.iter().map(|(name, on)| ((*name).to_owned(), *on)).collect();
            plan_features(&parse_features(text), &wanted)
        };
        let steps = plan(&[("tso", false), ("tx-tcp-mangleid-segmentation", true), ("lro", false)]).expect("a plan");
        assert_eq!(
            steps,
            [
                ("tso".into(), "tcp-segmentation-offload".into(), false),
                ("tx-tcp-mangleid-segmentation".into(), "tx-tcp-mangleid-segmentation".into(), true)
            ]
        );
        assert!(plan(&[("tcp-segmentation-offload", true)]).expect("a plan").is_empty());
        assert!(plan(&[("lro", true)]).expect_err("fixed").message().contains("fixed"));
        assert!(plan(&[("gro", true)]).is_err());
    }

    #[test]
    fn features_and_drivers_are_read() {
        let text = "Features for eth0:\nrx-checksumming: on [fixed]\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                    large-receive-offload: off [requested on]\n";
        let features = parse_features(text);
        assert_eq!(features.len(), 4);
        assert!(features[0].on && features[0].fixed && !features[1].fixed && !features[2].on);
        assert_eq!((features[2].name.as_str(), features[3].requested), ("tx-checksum-ipv4", Some(true)));
        let driver = parse_driver("driver: hns3\nversion: 5.10\nfirmware-version: 1.9.38.0\nbus-info: 0000:bd:00.0\n");
        assert_eq!((driver.driver.as_str(), driver.bus_info.as_str()), ("hns3", "0000:bd:00.0"));
    }
}
