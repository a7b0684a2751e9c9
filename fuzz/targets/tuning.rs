//! What the kernel and its tools print, and what users write of it: the first character says which parser reads the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::tuning::bracket::Choice;
use trimtab::tuning::cpu_mask::{MaskShape, parse_mask};
use trimtab::tuning::cpu_set::CpuSet;
use trimtab::tuning::irq::{Interrupts, classify};
use trimtab::tuning::sysctl_files::{Loader, SysctlFile, canonical_key, dotted_key, parse};
use trimtab::tuning::sysctl_value::{SysctlValue, parse_number};
use trimtab::tuning::topology::Topology;
use trimtab::tuning::{cgroup, channels, device, firewall, topology, udev, write_error};

fuzz_target!(|text: &str| {
    let mut characters = text.chars();
    let Some(which) = characters.next() else { return };
    let text = characters.as_str();
    match which {
        's' => {
            let file = SysctlFile { path: "/etc/sysctl.d/50-own.conf", text };
            for setting in parse(file) {
                let _ = (canonical_key(&setting.key), dotted_key(&setting.key));
                for loader in [Loader::Boot, Loader::Procps] {
                    let _ = loader.effective(&[file], &setting.key);
                }
            }
        }
        'v' => {
            let _ = (SysctlValue::parse(text), SysctlValue::read(text), parse_number(text));
        }
        'c' => {
            if let Ok(cpus) = CpuSet::parse(text) {
                assert_eq!(CpuSet::parse(&cpus.to_string()).ok().as_ref(), Some(&cpus), "{cpus}");
            }
        }
        'm' => {
            if let (Ok(shape), Ok(cpus)) = (MaskShape::of_printed(text), parse_mask(text)) {
                let _ = shape.overflows(text);
                if let Ok(printed) = shape.format(&cpus) {
                    assert_eq!(parse_mask(&printed).ok().as_ref(), Some(&cpus), "{printed}");
                }
            }
        }
        'b' => {
            let _ = Choice::parse(text);
        }
        'i' => {
            if let Ok(interrupts) = Interrupts::parse(text) {
                let _ = interrupts.row(24);
            }
            let _ = classify(text, "eth0");
        }
        't' => {
            let _ = (Topology::from_numactl(text), Topology::parse_distances(text, 0), topology::memory_total(text, 0));
        }
        'n' => {
            let _ = (channels::parse_report(text), channels::parse_features(text), channels::parse_driver(text));
        }
        'd' => {
            let _ = (device::parse_devices(text), device::Selector::parse(text));
        }
        'g' => {
            for version in [cgroup::Version::V1, cgroup::Version::V2] {
                let _ = cgroup::cpuset_path(text, version).map(cgroup::container_group);
            }
        }
        'f' => {
            let _ = (firewall::parse_units(text), firewall::container_chains(text));
        }
        'u' => {
            let _ = (udev::assigns(text, "queue/scheduler"), udev::merge(text, "# own\n", &[]));
        }
        'w' => {
            let _ = write_error::Errno::find(text);
        }
        _ => {}
    }
});
