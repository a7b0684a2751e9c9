//! Processors and memory.

use crate::value::{Map, Value, object};

use super::{Group, Sections, known, set};

pub const GROUP: Group = Group {
    name: "processor",
    parts_of: &["hardware", "processor_cores", "processor_count", "memory"],
    needs: &["platform"],
    script: SCRIPT,
    parse,
};

// the flags of one processor are as good as those of all, and a hundred times shorter
const SCRIPT: &str = r"
section cpuinfo
grep -E '^(processor|Processor|vendor_id|model name|cpu|Vendor|physical id|core id|cpu cores|siblings|# processors|ncpus active)[[:space:]]*:' /proc/cpuinfo
section cpuflags
grep -m 1 '^flags' /proc/cpuinfo
section allowed
while read -r trimtab_key trimtab_line; do
    case $trimtab_key in Cpus_allowed_list:) printf '%s\n' $trimtab_line; break ;; esac
done </proc/self/status
section meminfo
text /proc/meminfo
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let architecture = known(facts, "architecture").to_owned();
    let allowed = sections.trimmed("allowed").and_then(count_of_list);
    processors(sections.text("cpuinfo"), &architecture, allowed, facts);
    if let Some((_, flags)) = sections.text("cpuflags").split_once(':') {
        let flags: Vec<Value> = flags.split_whitespace().map(Value::from).collect();
        set(facts, "flags", flags);
    }
    memory(sections.text("meminfo"), facts);
}

/// How many CPUs a list such as `0-3,8` has.
fn count_of_list(list: &str) -> Option<usize> {
    list.split(',').try_fold(0, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(count + (last + 1).checked_sub(first)?)
    })
}

/// Counts as Ansible counts: sockets by `physical id`; cores and threads of the first socket; on Arm, where
/// the file names neither, every processor is a socket.
fn processors(text: &str, architecture: &str, allowed: Option<usize>, facts: &mut Map) {
    let mut names: Vec<Value> = Vec::new();
    let (mut vendors, mut models, mut entries) = (0, 0, 0);
    let mut sockets: Vec<(&str, i64)> = Vec::new();
    let mut siblings: Vec<(&str, i64)> = Vec::new();
    let (mut socket, mut core) = ("", "");
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let (key, value) = (key.trim(), value.trim());
        let number = value.parse::<i64>().unwrap_or(0);
        match key {
            "model name" | "Processor" | "vendor_id" | "cpu" | "Vendor" | "processor" => {
                names.push(value.into());
                vendors += usize::from(key == "vendor_id");
                models += usize::from(key == "model name");
                entries += usize::from(key == "processor");
            }
            "physical id" => {
                socket = value;
                if !sockets.iter().any(|(id, _)| *id == value) {
                    sockets.push((value, 1));
                }
            }
            "core id" => {
                core = value;
                if !sockets.iter().any(|(id, _)| *id == value) && !siblings.iter().any(|(id, _)| *id == value) {
                    siblings.push((value, 1));
                }
            }
            "cpu cores" => put(&mut sockets, socket, number),
            "siblings" => put(&mut siblings, core, number),
            _ => {}
        }
    }
    let is_arm = ["armv", "aarch", "ppc"].iter().any(|prefix| architecture.starts_with(prefix));
    let count = if is_arm {
        entries
    } else if vendors > 0 && vendors == models {
        vendors
    } else {
        names.len()
    };
    let count = if sockets.is_empty() { count } else { sockets.len() } as i64;
    let cores = sockets.first().map(|(_, cores)| *cores).filter(|cores| *cores > 0).unwrap_or(1);
    let threads = siblings.first().map_or(1, |(_, threads)| *threads) / cores;
    set(facts, "processor", names);
    set(facts, "processor_count", count);
    set(facts, "processor_cores", cores);
    set(facts, "processor_threads_per_core", threads);
    set(facts, "processor_vcpus", threads * count * cores);
    set(facts, "processor_nproc", allowed.unwrap_or(entries));
}

fn put<'a>(list: &mut Vec<(&'a str, i64)>, id: &'a str, number: i64) {
    match list.iter_mut().find(|(known, _)| *known == id) {
        Some((_, known)) => *known = number,
        None => list.push((id, number)),
    }
}

fn memory(text: &str, facts: &mut Map) {
    // the file counts kB, the facts MB
    let megabytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).map(|kilobytes| kilobytes / 1024)
    };
    let of = |key: &str| megabytes(key).unwrap_or(0);
    let (total, free) = (of("MemTotal"), of("MemFree"));
    let (swap_total, swap_free) = (of("SwapTotal"), of("SwapFree"));
    for (name, value) in
        [("memtotal_mb", total), ("memfree_mb", free), ("swaptotal_mb", swap_total), ("swapfree_mb", swap_free)]
    {
        set(facts, name, value);
    }
    let kilobytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<i64>().ok()).unwrap_or(0)
    };
    let free_without_cache = (kilobytes("MemFree") + kilobytes("Cached") + kilobytes("Buffers")) / 1024;
    let used_without_cache =
        (kilobytes("MemTotal") - kilobytes("MemFree") - kilobytes("Cached") - kilobytes("Buffers")) / 1024;
    let real = object([("total", total.into()), ("used", (total - free).into()), ("free", free.into())]);
    let nocache = object([("free", free_without_cache.into()), ("used", used_without_cache.into())]);
    let swap = object([
        ("total", swap_total.into()),
        ("free", swap_free.into()),
        ("used", (swap_total - swap_free).into()),
        ("cached", of("SwapCached").into()),
    ]);
    set(facts, "memory_mb", object([("real", real.into()), ("nocache", nocache.into()), ("swap", swap.into())]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(cpuinfo: &str, architecture: &str) -> [i64; 5] {
        let mut facts = Map::new();
        processors(cpuinfo, architecture, None, &mut facts);
        ["count", "cores", "threads_per_core", "vcpus", "nproc"]
            .map(|name| facts[format!("ansible_processor_{name}").as_str()].as_int().unwrap())
    }

    #[test]
    fn processors_are_counted_as_ansible_counts() {
        let xeon: String = (0..8)
            .map(|cpu| {
                format!(
                    "processor\t: {cpu}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {}\nsiblings\t: 4\ncore id\t: {}\ncpu cores\t: 2\n",
                    cpu / 4,
                    cpu % 2
                )
            })
            .collect();
        assert_eq!(counted(&xeon, "x86_64"), [2, 2, 2, 8, 8]);
        let kunpeng: String = (0..128).map(|cpu| format!("processor\t: {cpu}\n")).collect();
        assert_eq!(counted(&kunpeng, "aarch64"), [128, 1, 1, 128, 128]);
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(count_of_list("0-3,8"), Some(5));
        assert_eq!(count_of_list("0"), Some(1));
        assert_eq!(count_of_list("3-1"), None);
    }

    #[test]
    fn memory_is_in_megabytes() {
        let text = "MemTotal: 2097152 kB\nMemFree: 1048576 kB\nBuffers: 1024 kB\nCached: 2048 kB\nSwapCached: 0 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\n";
        let mut facts = Map::new();
        memory(text, &mut facts);
        assert_eq!(facts["ansible_memtotal_mb"], Value::Int(2048));
        assert_eq!(
            facts["ansible_memory_mb"].to_repr(),
            "{'real': {'total': 2048, 'used': 1024, 'free': 1024}, 'nocache': {'free': 1027, 'used': 1021}, \
             'swap': {'total': 4, 'free': 1, 'used': 3, 'cached': 0}}"
        );
    }
}
