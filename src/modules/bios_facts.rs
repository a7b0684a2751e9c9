//! `trimtab.tuning.bios_facts`: what the running system shows of its BIOS settings.

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::host::reads::{KernelFile, Script};
use crate::host::{Failure, Footprint, Host};
use crate::tickets::observe::{HostTexts, observe};
use crate::tickets::record::{HostRecord, Identity, dmi_text};
use crate::value::Map;

use super::{Action, Effect, FreeForm, Invocation, Module, Outcome, Support};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.bios_facts",
    aliases: &[],
    summary: "Reads what the running system shows of its BIOS settings, with the evidence for each; changes nothing",
    args: &[],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("trimtab_bios", "vendor, model, serial, asset_tag, bios_version, bios_date and observations"),
        ("ansible_facts", "the same as a fact of the host"),
        ("ansible_facts.trimtab_bios", "the fact; the variable `trimtab_bios` too"),
        (
            "trimtab_bios.observations",
            "for each setting its value, source, evidence and confidence: observed, inferred or not_observable",
        ),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let host = invocation.host;
    let (identity, texts) = try_join!(read_identity(&host), read_texts(&host))?;
    let facts = HostRecord::facts(&identity, &observe(&texts));
    let mut map = Map::new();
    map.insert("trimtab_bios".into(), facts.clone());
    Ok(Outcome::ok().with("trimtab_bios", facts).effect(Effect::Facts(map)))
}

async fn read_identity(host: &Host) -> Result<Identity, Failure> {
    let names = ["sys_vendor", "product_name", "product_serial", "chassis_asset_tag", "bios_version", "bios_date"];
    let read = |name: &&str| host.read(KernelFile(format!("/sys/class/dmi/id/{name}")));
    let mut texts = try_join_all(names.iter().map(read)).await?.into_iter();
    let mut next = || dmi_text(texts.next().flatten().as_deref());
    Ok(Identity {
        vendor: next(),
        model: next(),
        serial: next(),
        asset_tag: next(),
        bios_version: next(),
        bios_date: next(),
    })
}

/// Where a text goes.
type Slot = fn(&mut HostTexts) -> &mut Option<String>;

/// The files with one text each.
const FILES: &[(&str, Slot)] = &[
    ("/proc/cmdline", |texts| &mut texts.command_line),
    ("/sys/class/misc/prefetch/policy", |texts| &mut texts.prefetch_policy),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", |texts| &mut texts.no_turbo),
    ("/sys/devices/system/cpu/cpufreq/boost", |texts| &mut texts.boost),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", |texts| &mut texts.scaling_driver),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", |texts| &mut texts.scaling_governor),
    ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", |texts| &mut texts.scaling_cur_freq),
    ("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_cur_freq", |texts| &mut texts.cpuinfo_cur_freq),
    ("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", |texts| &mut texts.cpuinfo_max_freq),
    ("/sys/devices/system/cpu/smt/active", |texts| &mut texts.smt_active),
    ("/sys/devices/system/cpu/smt/control", |texts| &mut texts.smt_control),
    ("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", |texts| &mut texts.thread_siblings),
    ("/sys/devices/system/node/online", |texts| &mut texts.nodes_online),
    ("/sys/devices/system/cpu/cpuidle/current_driver", |texts| &mut texts.idle_driver),
];

/// The texts that take a command; the script prints each behind a line with its name.
const SECTIONS: &[(&str, Slot)] = &[
    ("architecture", |texts| &mut texts.architecture),
    ("iommus", |texts| &mut texts.iommus),
    ("acpi_tables", |texts| &mut texts.acpi_tables),
    ("packages", |texts| &mut texts.packages),
    ("idle_states", |texts| &mut texts.idle_states),
    ("prefetch_register", |texts| &mut texts.prefetch_register),
    ("memory_devices", |texts| &mut texts.memory_devices),
];

/// A section is printed only where there is something to look at. Register 0x1a4 (420) is read only where the driver for
/// registers is loaded already, and only on Intel's processors, where its bits have this meaning.
const SCRIPT: &str = r#"echo '[architecture]'
uname -m
if [ -d /sys/class/iommu ]; then
  echo '[iommus]'
  ls /sys/class/iommu
fi
if [ -d /sys/firmware/acpi/tables ]; then
  echo '[acpi_tables]'
  ls /sys/firmware/acpi/tables
fi
echo '[packages]'
cat /sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id | sort -u
echo '[idle_states]'
cat /sys/devices/system/cpu/cpu0/cpuidle/state*/name
if [ -r /dev/cpu/0/msr ] && grep -q GenuineIntel /proc/cpuinfo; then
  echo '[prefetch_register]'
  dd if=/dev/cpu/0/msr bs=8 count=1 iflag=skip_bytes skip=420 | od -An -tx8
fi
if command -v dmidecode >/dev/null; then
  echo '[memory_devices]'
  dmidecode -t 17
fi
exit 0"#;

async fn read_texts(host: &Host) -> Result<HostTexts, Failure> {
    let text = format!("exec 2>/dev/null\n{SCRIPT}");
    let script = Script { text, footprint: Footprint::named("firmware settings") };
    let files = try_join_all(FILES.iter().map(|(path, _)| host.read(KernelFile((*path).to_owned()))));
    let (files, sections) = try_join!(files, host.read(script))?;
    let mut texts = HostTexts::default();
    for ((_, slot), text) in FILES.iter().zip(files) {
        *slot(&mut texts) = text;
    }
    put_sections(&mut texts, &sections.text());
    Ok(texts)
}

fn put_sections(texts: &mut HostTexts, output: &str) {
    let mut current: Option<Slot> = None;
    for line in output.lines() {
        let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some((_, slot)) = SECTIONS.iter().find(|(known, _)| name == Some(known)) {
            *slot(texts) = Some(String::new());
            current = Some(*slot);
        } else if let Some(text) = current.and_then(|slot| slot(texts).as_mut()) {
            text.push_str(line);
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, shells};
    use crate::value::Value;

    #[test]
    fn sections_go_where_they_belong() {
        let mut texts = HostTexts::default();
        put_sections(&mut texts, "[architecture]\naarch64\n[iommus]\n[memory_devices]\nMemory Device\n\t[x]\n");
        assert_eq!(texts.architecture.as_deref(), Some("aarch64\n"));
        assert_eq!(texts.iommus.as_deref(), Some(""));
        assert_eq!(texts.memory_devices.as_deref(), Some("Memory Device\n\t[x]\n"));
        assert_eq!(texts.acpi_tables, None);
    }

    /// The observation of a setting among the facts.
    fn observation<'a>(facts: &'a Value, setting: &str) -> Option<&'a Value> {
        let observations = facts.get("observations").and_then(Value::as_list)?;
        observations.iter().find(|observation| observation.get("setting").and_then(Value::as_str) == Some(setting))
    }

    #[test]
    fn this_machine_is_read_in_one_batch() {
        for shell in shells() {
            let played = play(&MODULE, &[], &Play { check: true, shell });
            let outcome = played.result.unwrap();
            assert!(!outcome.changed && played.batches == 1, "{shell}: {} batches", played.batches);
            let facts = outcome.result.get("trimtab_bios").unwrap();
            let nodes = std::fs::read_to_string("/sys/devices/system/node/online");
            let seen = observation(facts, "numa_nodes_per_socket").unwrap();
            assert_eq!(seen.get("value").is_some_and(|value| !value.is_null()), nodes.is_ok(), "{shell}: {seen:?}");
            assert!(observation(facts, "cpu_prefetching").is_some());
            assert!(matches!(outcome.effect, Effect::Facts(_)));
        }
    }
}
