//! What tuning must know of a host beside Ansible's facts: NUMA nodes, CPU lists, page size, control groups.

use crate::value::{Map, Value, object};

use super::{Group, Sections, value_in};

pub const GROUP: Group =
    Group { name: "tuning", parts_of: &["trimtab_numa", "trimtab_tuning", "numa"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r#"
section numa
for trimtab_node in /sys/devices/system/node/node[0-9]*; do
    [ -d "$trimtab_node" ] || continue
    printf 'node=%s\n' "${trimtab_node##*/node}"
    line distance "$trimtab_node/distance"
    line memory "$trimtab_node/meminfo"
done
# a shell that reads byte by byte gets nothing from these
section numa-cpus
grep -H '' /sys/devices/system/node/node[0-9]*/cpulist 2>/dev/null
section tuning
for trimtab_name in online present possible isolated nohz_full; do
    line cpu_$trimtab_name /sys/devices/system/cpu/$trimtab_name
done
line midr /sys/devices/system/cpu/cpu0/regs/identification/midr_el1
line boot_id /proc/sys/kernel/random/boot_id
line transparent_hugepage /sys/kernel/mm/transparent_hugepage/enabled
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo cgroup=2; elif [ -d /sys/fs/cgroup ]; then echo cgroup=1; fi
printf 'page_size=%s\n' "$(getconf PAGESIZE 2>/dev/null)"
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    facts.insert(
        "trimtab_numa".into(),
        object([("nodes", nodes(sections.text("numa"), sections.text("numa-cpus")).into())]).into(),
    );
    let value = |key: &str| -> Value { sections.value("tuning", key).map(str::trim).into() };
    let number =
        |key: &str| -> Value { sections.value("tuning", key).and_then(|text| text.trim().parse::<i64>().ok()).into() };
    let tuning = object([
        ("page_size", number("page_size")),
        ("cgroup_version", number("cgroup")),
        ("boot_id", value("boot_id")),
        ("cpu_online", value("cpu_online")),
        ("cpu_present", value("cpu_present")),
        ("cpu_possible", value("cpu_possible")),
        ("cpu_isolated", value("cpu_isolated")),
        ("cpu_nohz_full", value("cpu_nohz_full")),
        ("cpu_model", sections.value("tuning", "midr").map(cpu_model).into()),
        ("transparent_hugepage", sections.value("tuning", "transparent_hugepage").and_then(chosen).into()),
    ]);
    facts.insert("trimtab_tuning".into(), tuning.into());
}

/// Each node with its CPUs (a list such as `0-31`), its distances, and its memory in MB.
fn nodes(text: &str, cpus: &str) -> Vec<Value> {
    let mut nodes: Vec<(i64, Map)> = text
        .split("node=")
        .skip(1)
        .filter_map(|block| {
            let (number, lines) = block.split_once('\n')?;
            let number = number.trim().parse::<i64>().ok()?;
            let distances: Vec<Value> = value_in(lines, "distance")
                .unwrap_or_default()
                .split_whitespace()
                .filter_map(|distance| distance.parse::<i64>().ok().map(Value::Int))
                .collect();
            // `Node 0 MemTotal:  1024 kB`
            let memory = value_in(lines, "memory").and_then(|line| {
                line.split_whitespace().find_map(|word| word.parse::<i64>().ok().filter(|kilobytes| *kilobytes > 1024))
            });
            let list = format!("/node{number}/cpulist:");
            let cpus = cpus.lines().find_map(|line| line.split_once(list.as_str())).map_or("", |(_, cpus)| cpus.trim());
            let node = object([
                ("node", number.into()),
                ("cpus", cpus.into()),
                ("distances", distances.into()),
                ("memtotal_mb", memory.map(|kilobytes| kilobytes / 1024).into()),
            ]);
            Some((number, node))
        })
        .collect();
    nodes.sort_by_key(|(number, _)| *number);
    nodes.into_iter().map(|(_, node)| node.into()).collect()
}

/// The word in brackets.
fn chosen(line: &str) -> Option<&str> {
    line.split_once('[')?.1.split(']').next()
}

/// The name of an Arm core by its identification register: implementer in bits 24 to 31, part in bits 4 to 15
/// (Arm Architecture Reference Manual, MIDR_EL1; the kernel's cputype.h).
fn cpu_model(midr: &str) -> String {
    let register = u64::from_str_radix(midr.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    let (implementer, part) = (register >> 24 & 0xff, register >> 4 & 0xfff);
    match (implementer, part) {
        (0x48, 0xd01) => "Kunpeng 920 (TSV110)".to_owned(),
        (0x48, part) => format!("HiSilicon part 0x{part:03x}"),
        (0x41, 0xd0c) => "Neoverse N1".to_owned(),
        (0x41, 0xd49) => "Neoverse N2".to_owned(),
        (0x41, 0xd40) => "Neoverse V1".to_owned(),
        (0x41, 0xd08) => "Cortex-A72".to_owned(),
        (0x70, part) => format!("Phytium part 0x{part:03x}"),
        (implementer, part) => format!("implementer 0x{implementer:02x} part 0x{part:03x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_in_order_with_their_distances() {
        let text = "node=10\ndistance=20 10\nnode=2\ndistance=10 20\nmemory=Node 2 MemTotal:       65536000 kB\n";
        let cpus = "/sys/devices/system/node/node10/cpulist:64-95\n/sys/devices/system/node/node2/cpulist:0-31\n";
        assert_eq!(
            Value::from(nodes(text, cpus)).to_repr(),
            "[{'node': 2, 'cpus': '0-31', 'distances': [10, 20], 'memtotal_mb': 64000}, \
             {'node': 10, 'cpus': '64-95', 'distances': [20, 10], 'memtotal_mb': None}]"
        );
    }

    #[test]
    fn cores_are_named_by_their_register() {
        assert_eq!(cpu_model("0x00000000481fd010"), "Kunpeng 920 (TSV110)");
        assert_eq!(cpu_model("0x00000000410fd083"), "Cortex-A72");
    }

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
    }
}
