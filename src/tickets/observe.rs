//! Observes BIOS settings in texts that were read on the running system.
//!
//! Nothing here claims more than the text shows: what the system does not show is `not_observable`.

use crate::tuning::cpu_set::CpuSet;

use super::dmidecode;
use super::observation::Observation;

/// The texts, by where they come from; `None` where there is no such file or command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostTexts {
    /// `uname -m`.
    pub architecture: Option<String>,
    /// `/proc/cmdline`.
    pub command_line: Option<String>,
    /// `/sys/class/misc/prefetch/policy`: exists only with Kunpeng's `prefetch_tuning` module. 0 is off, 15 is on.
    pub prefetch_policy: Option<String>,
    /// Model specific register 0x1a4 of CPU 0 in hexadecimal (Intel): bits 0 to 3 set mean prefetchers off.
    pub prefetch_register: Option<String>,
    /// Names in `/sys/class/iommu`, one a line; empty text for an empty directory.
    pub iommus: Option<String>,
    /// Names in `/sys/firmware/acpi/tables`, one a line.
    pub acpi_tables: Option<String>,
    /// `/sys/devices/system/cpu/intel_pstate/no_turbo`.
    pub no_turbo: Option<String>,
    /// `/sys/devices/system/cpu/cpufreq/boost`.
    pub boost: Option<String>,
    /// Below `/sys/devices/system/cpu/cpu0/cpufreq/`.
    pub scaling_driver: Option<String>,
    pub scaling_governor: Option<String>,
    pub scaling_cur_freq: Option<String>,
    /// Measured, in kHz; only root reads it.
    pub cpuinfo_cur_freq: Option<String>,
    pub cpuinfo_max_freq: Option<String>,
    /// `/sys/devices/system/cpu/smt/active` and `control`.
    pub smt_active: Option<String>,
    pub smt_control: Option<String>,
    /// `/sys/devices/system/cpu/cpu0/topology/thread_siblings_list`.
    pub thread_siblings: Option<String>,
    /// `/sys/devices/system/node/online`.
    pub nodes_online: Option<String>,
    /// Each CPU's `topology/physical_package_id`, one a line.
    pub packages: Option<String>,
    /// Names of the idle states of CPU 0, one a line, and `cpuidle/current_driver`.
    pub idle_states: Option<String>,
    pub idle_driver: Option<String>,
    /// `dmidecode -t 17`.
    pub memory_devices: Option<String>,
}

/// Observes one setting.
type Observe = fn(&str, &HostTexts) -> Observation;

/// The settings that can be seen, each with the function that looks. Names are those that profiles use.
pub const OBSERVERS: &[(&str, Observe)] = &[
    ("cpu_prefetching", cpu_prefetching),
    ("power_policy", power_policy),
    ("smmu", iommu),
    ("vt_d", iommu),
    ("turbo", turbo),
    ("smt", smt),
    ("numa_nodes_per_socket", numa_nodes_per_socket),
    ("memory_speed", memory_speed),
    ("idle_states", idle_states),
];

/// Observes every setting of the table, in its order.
pub fn observe(texts: &HostTexts) -> Vec<Observation> {
    OBSERVERS.iter().map(|(setting, observe)| observe(setting, texts)).collect()
}

fn trimmed(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

fn cpu_prefetching(setting: &str, texts: &HostTexts) -> Observation {
    const POLICY: &str = "/sys/class/misc/prefetch/policy";
    const REGISTER: &str = "model specific register 0x1a4 of CPU 0";
    if let Some(policy) = trimmed(&texts.prefetch_policy) {
        let value = match policy {
            "0" => "disabled",
            "15" => "enabled",
            _ => "partly enabled",
        };
        return Observation::observed(setting, value, POLICY, policy);
    }
    if let Some(register) = trimmed(&texts.prefetch_register) {
        let digits = register.trim_start_matches("0x");
        return match u64::from_str_radix(digits, 16) {
            Ok(bits) => {
                let value = match bits & 0xf {
                    0xf => "disabled",
                    0 => "enabled",
                    _ => "partly enabled",
                };
                Observation::observed(setting, value, REGISTER, register)
            }
            Err(_) => Observation::not_observable(
                setting,
                REGISTER,
                format!("it reads `{register}`, which is not hexadecimal"),
            ),
        };
    }
    let why = match trimmed(&texts.architecture) {
        Some("aarch64") => "does not exist: the kernel module `prefetch_tuning` is not loaded",
        _ => "does not exist, and the register 0x1a4 could not be read",
    };
    Observation::not_observable(setting, POLICY, why)
}

fn power_policy(setting: &str, texts: &HostTexts) -> Observation {
    const SOURCE: &str = "/sys/devices/system/cpu/cpu0/cpufreq";
    let Some(driver) = trimmed(&texts.scaling_driver) else {
        return Observation::not_observable(
            setting,
            SOURCE,
            "does not exist: the firmware rules the frequency by itself",
        );
    };
    let current = trimmed(&texts.cpuinfo_cur_freq).or(trimmed(&texts.scaling_cur_freq));
    let (governor, max) = (trimmed(&texts.scaling_governor), trimmed(&texts.cpuinfo_max_freq));
    let evidence = format!(
        "scaling_driver {driver}, scaling_governor {}, current frequency {} kHz, cpuinfo_max_freq {} kHz",
        governor.unwrap_or("?"),
        current.unwrap_or("?"),
        max.unwrap_or("?")
    );
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    // The governor `performance` asks for the highest frequency at all times; what is below it then is held down by
    // the firmware. Any other governor hides the policy, and on Intel's drivers the highest is a turbo frequency that
    // not all cores reach.
    match (driver, governor, number(current), number(max)) {
        ("cppc_cpufreq", Some("performance"), Some(current), Some(max)) if max > 0 => {
            let value = if current.saturating_mul(10) >= max.saturating_mul(9) { "performance" } else { "efficiency" };
            Observation::inferred(setting, value, SOURCE, evidence)
        }
        _ => Observation::not_observable(setting, SOURCE, evidence),
    }
}

fn iommu(setting: &str, texts: &HostTexts) -> Observation {
    const SOURCE: &str = "/sys/class/iommu";
    let names: Vec<&str> = trimmed(&texts.iommus).unwrap_or_default().split_ascii_whitespace().collect();
    let is_arm = trimmed(&texts.architecture) == Some("aarch64");
    if (setting == "smmu") != is_arm {
        let why = if is_arm { "an Arm host has no VT-d" } else { "only Arm hosts have an SMMU" };
        return Observation::not_observable(setting, SOURCE, why);
    }
    let prefix = if is_arm { "smmu" } else { "dmar" };
    if names.iter().any(|name| name.starts_with(prefix)) {
        return Observation::observed(setting, "enabled", SOURCE, names.join(" "));
    }
    let tables = trimmed(&texts.acpi_tables).unwrap_or_default();
    if !is_arm && tables.split_ascii_whitespace().any(|table| table == "DMAR") {
        return Observation::observed(setting, "enabled", "/sys/firmware/acpi/tables", "DMAR");
    }
    let switched_off = trimmed(&texts.command_line)
        .unwrap_or_default()
        .split_ascii_whitespace()
        .find(|word| matches!(*word, "iommu=off" | "intel_iommu=off" | "arm-smmu.disable=1"));
    if let Some(word) = switched_off {
        return Observation::not_observable(setting, "/proc/cmdline", format!("`{word}` hides it"));
    }
    match texts.iommus {
        Some(_) => Observation::inferred(setting, "disabled", SOURCE, format!("no entry begins with `{prefix}`")),
        None => Observation::not_observable(setting, SOURCE, "does not exist: this kernel has no support for it"),
    }
}

fn turbo(setting: &str, texts: &HostTexts) -> Observation {
    const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
    const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
    // Switched off, it may be by the operating system as well as by the firmware.
    match (trimmed(&texts.no_turbo), trimmed(&texts.boost)) {
        (Some("0"), _) => Observation::observed(setting, "enabled", NO_TURBO, "0"),
        (Some("1"), _) => Observation::inferred(setting, "disabled", NO_TURBO, "1"),
        (_, Some("1")) => Observation::observed(setting, "enabled", BOOST, "1"),
        (_, Some("0")) => Observation::inferred(setting, "disabled", BOOST, "0"),
        _ => Observation::not_observable(setting, NO_TURBO, "neither it nor `cpufreq/boost` exists"),
    }
}

fn smt(setting: &str, texts: &HostTexts) -> Observation {
    const ACTIVE: &str = "/sys/devices/system/cpu/smt/active";
    const CONTROL: &str = "/sys/devices/system/cpu/smt/control";
    const SIBLINGS: &str = "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list";
    match (trimmed(&texts.smt_active), trimmed(&texts.smt_control)) {
        (Some("1"), _) => return Observation::observed(setting, "enabled", ACTIVE, "1"),
        (_, Some(control @ ("off" | "forceoff"))) => {
            return Observation::not_observable(
                setting,
                CONTROL,
                format!("`{control}`: the operating system switched it off"),
            );
        }
        (_, Some(control @ ("notsupported" | "notimplemented"))) => {
            return Observation::inferred(setting, "disabled", CONTROL, control);
        }
        _ => {}
    }
    match trimmed(&texts.thread_siblings).map(|list| (list, CpuSet::parse(list).map(|set| set.len()))) {
        Some((list, Ok(count))) if count > 1 => Observation::observed(setting, "enabled", SIBLINGS, list),
        Some((list, Ok(1))) => Observation::inferred(setting, "disabled", SIBLINGS, list),
        _ => Observation::not_observable(setting, ACTIVE, "neither it nor the list of sibling threads exists"),
    }
}

fn numa_nodes_per_socket(setting: &str, texts: &HostTexts) -> Observation {
    const SOURCE: &str = "/sys/devices/system/node/online";
    let nodes = trimmed(&texts.nodes_online).and_then(|list| CpuSet::parse(list).ok()).map_or(0, |set| set.len());
    let packages: std::collections::BTreeSet<&str> = trimmed(&texts.packages)
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter(|id| !id.starts_with('-'))
        .collect();
    if nodes == 0 || packages.is_empty() || (nodes != 1 && !nodes.is_multiple_of(packages.len())) {
        let why = format!("{nodes} nodes on {} sockets do not divide", packages.len());
        return Observation::not_observable(setting, SOURCE, why);
    }
    let evidence = format!("{nodes} nodes on {} sockets", packages.len());
    // One node for several sockets: memory is interleaved over all of them.
    let value = if nodes < packages.len() { "0".to_owned() } else { (nodes / packages.len()).to_string() };
    Observation::observed(setting, value, SOURCE, evidence)
}

fn memory_speed(setting: &str, texts: &HostTexts) -> Observation {
    const SOURCE: &str = "dmidecode -t 17";
    let modules = dmidecode::memory_devices(texts.memory_devices.as_deref().unwrap_or_default());
    let mut speeds: Vec<u32> = modules.iter().filter_map(|module| module.configured).collect();
    speeds.sort_unstable();
    speeds.dedup();
    if speeds.is_empty() {
        return Observation::not_observable(setting, SOURCE, "it names no configured speed");
    }
    let mut rated: Vec<u32> = modules.iter().filter_map(|module| module.rated).collect();
    rated.sort_unstable();
    rated.dedup();
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let evidence = format!(
        "{} modules, configured {} MT/s, rated {} MT/s",
        modules.len(),
        list(&speeds),
        if rated.is_empty() { "?".to_owned() } else { list(&rated) }
    );
    Observation::observed(setting, list(&speeds), SOURCE, evidence)
}

fn idle_states(setting: &str, texts: &HostTexts) -> Observation {
    const SOURCE: &str = "/sys/devices/system/cpu/cpu0/cpuidle";
    let Some(names) = trimmed(&texts.idle_states) else {
        return Observation::not_observable(setting, SOURCE, "it has no states");
    };
    let names: Vec<&str> = names.split_ascii_whitespace().collect();
    let driver = trimmed(&texts.idle_driver).unwrap_or("?");
    let evidence = format!("current_driver {driver}, states {}", names.join(" "));
    // `C1`, `C1E`, `C6`, `C2_ACPI`: the states deeper than C1 are those that cost a database its response time.
    let depths: Vec<u32> = names.iter().filter_map(|name| depth_of(name)).collect();
    match depths.iter().max() {
        Some(depth) => {
            Observation::inferred(setting, if *depth > 1 { "enabled" } else { "disabled" }, SOURCE, evidence)
        }
        None => Observation::not_observable(setting, SOURCE, evidence),
    }
}

fn depth_of(state: &str) -> Option<u32> {
    let rest = state.strip_prefix('C')?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::observation::Confidence::{self, Inferred, NotObservable, Observed};
    use super::*;

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn arm() -> HostTexts {
        HostTexts { architecture: text("aarch64\n"), iommus: text(""), ..HostTexts::default() }
    }

    fn intel() -> HostTexts {
        HostTexts { architecture: text("x86_64\n"), iommus: text(""), ..HostTexts::default() }
    }

    #[test]
    fn each_setting_is_seen_in_its_texts() {
        let cpufreq = |governor: &str, current: &str| HostTexts {
            scaling_driver: text("cppc_cpufreq\n"),
            scaling_governor: text(governor),
            scaling_cur_freq: text(current),
            cpuinfo_max_freq: text("2600000\n"),
            ..arm()
        };
        let cases: Vec<(&str, HostTexts, Option<&str>, Confidence)> = vec![
            ("cpu_prefetching", HostTexts { prefetch_policy: text("0\n"), ..arm() }, Some("disabled"), Observed),
            ("cpu_prefetching", HostTexts { prefetch_policy: text("15\n"), ..arm() }, Some("enabled"), Observed),
            ("cpu_prefetching", HostTexts { prefetch_policy: text("3\n"), ..arm() }, Some("partly enabled"), Observed),
            ("cpu_prefetching", HostTexts { prefetch_register: text("f"), ..intel() }, Some("disabled"), Observed),
            ("cpu_prefetching", HostTexts { prefetch_register: text("0x0"), ..intel() }, Some("enabled"), Observed),
            ("cpu_prefetching", HostTexts { prefetch_register: text("zz"), ..intel() }, None, NotObservable),
            ("cpu_prefetching", arm(), None, NotObservable),
            ("power_policy", arm(), None, NotObservable),
            ("power_policy", cpufreq("performance", "2600000\n"), Some("performance"), Inferred),
            ("power_policy", cpufreq("performance", "1600000\n"), Some("efficiency"), Inferred),
            ("power_policy", cpufreq("ondemand", "2600000\n"), None, NotObservable),
            (
                "power_policy",
                HostTexts { cpuinfo_cur_freq: text("1600000"), ..cpufreq("performance", "2600000") },
                Some("efficiency"),
                Inferred,
            ),
            (
                "power_policy",
                HostTexts { scaling_driver: text("intel_pstate"), ..cpufreq("performance", "1600000") },
                None,
                NotObservable,
            ),
            ("smmu", HostTexts { iommus: text("smmu3.0x0000000148000000\n"), ..arm() }, Some("enabled"), Observed),
            ("smmu", arm(), Some("disabled"), Inferred),
            ("smmu", HostTexts { command_line: text("ro iommu=off"), ..arm() }, None, NotObservable),
            ("smmu", HostTexts { iommus: None, ..arm() }, None, NotObservable),
            ("smmu", intel(), None, NotObservable),
            ("vt_d", HostTexts { iommus: text("dmar0\ndmar1\n"), ..intel() }, Some("enabled"), Observed),
            ("vt_d", HostTexts { acpi_tables: text("APIC\nDMAR\n"), ..intel() }, Some("enabled"), Observed),
            ("vt_d", intel(), Some("disabled"), Inferred),
            ("turbo", HostTexts { no_turbo: text("0\n"), ..intel() }, Some("enabled"), Observed),
            ("turbo", HostTexts { no_turbo: text("1\n"), ..intel() }, Some("disabled"), Inferred),
            ("turbo", HostTexts { boost: text("1\n"), ..intel() }, Some("enabled"), Observed),
            ("turbo", intel(), None, NotObservable),
            (
                "smt",
                HostTexts { smt_active: text("1\n"), smt_control: text("on\n"), ..intel() },
                Some("enabled"),
                Observed,
            ),
            ("smt", HostTexts { smt_active: text("0"), smt_control: text("forceoff"), ..intel() }, None, NotObservable),
            ("smt", HostTexts { smt_control: text("notsupported"), ..arm() }, Some("disabled"), Inferred),
            ("smt", HostTexts { thread_siblings: text("0,64\n"), ..intel() }, Some("enabled"), Observed),
            ("smt", HostTexts { thread_siblings: text("0\n"), ..arm() }, Some("disabled"), Inferred),
            (
                "numa_nodes_per_socket",
                HostTexts { nodes_online: text("0-3\n"), packages: text("36\n36\n3180\n"), ..arm() },
                Some("2"),
                Observed,
            ),
            (
                "numa_nodes_per_socket",
                HostTexts { nodes_online: text("0\n"), packages: text("0\n1\n"), ..intel() },
                Some("0"),
                Observed,
            ),
            (
                "numa_nodes_per_socket",
                HostTexts { nodes_online: text("0"), packages: text("-1\n"), ..arm() },
                None,
                NotObservable,
            ),
            (
                "idle_states",
                HostTexts { idle_states: text("POLL\nC1\nC1E\nC6\n"), ..intel() },
                Some("enabled"),
                Inferred,
            ),
            ("idle_states", HostTexts { idle_states: text("POLL\nC1\nC1E\n"), ..intel() }, Some("disabled"), Inferred),
            (
                "idle_states",
                HostTexts { idle_states: text("POLL\nC1_ACPI\nC2_ACPI\n"), ..intel() },
                Some("enabled"),
                Inferred,
            ),
            ("idle_states", HostTexts { idle_states: text("LPI-0\nLPI-1\n"), ..arm() }, None, NotObservable),
            ("memory_speed", arm(), None, NotObservable),
        ];
        for (setting, texts, value, confidence) in cases {
            let observe = OBSERVERS.iter().find(|(name, _)| *name == setting).unwrap().1;
            let got = observe(setting, &texts);
            assert_eq!((got.value.as_deref(), got.confidence), (value, confidence), "{setting}: {got:?}");
            assert!(!got.evidence.is_empty(), "{setting} has no evidence");
        }
    }

    #[test]
    fn the_speed_that_is_configured_counts() {
        let memory = "Memory Device\n\tSize: 32 GB\n\tSpeed: 3200 MT/s\n\tConfigured Memory Speed: 2933 MT/s\n";
        let got = observe(&HostTexts { memory_devices: text(memory), ..arm() });
        let speed = got.iter().find(|observation| observation.setting == "memory_speed").unwrap();
        assert_eq!(speed.value.as_deref(), Some("2933"));
        assert_eq!(speed.evidence, "1 modules, configured 2933 MT/s, rated 3200 MT/s");
    }

    #[test]
    fn a_host_without_any_text_claims_nothing() {
        assert!(observe(&HostTexts::default()).iter().all(|observation| observation.value.is_none()));
    }
}
