//! `/proc/interrupts`, and which interrupts serve which queue of a network device.

use std::sync::LazyLock;

use regex::Regex;

use crate::error::{Error, Result};
use crate::tuning::cpu_set::CpuSet;

/// A row of `/proc/interrupts` that has a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupt {
    pub number: u32,
    /// One count for each CPU of the header, in its order.
    pub counts: Vec<u64>,
    /// The interrupt controller, as `ITS-MSI` or `PCI-MSIX-0000:00:03.0`.
    pub chip: String,
    /// The names its handlers were registered with; more than one if the interrupt is shared.
    pub labels: Vec<String>,
}

/// The table: a column for each CPU that is online, a row for each interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interrupts {
    pub cpus: Vec<u32>,
    pub rows: Vec<Interrupt>,
}

/// Words after the controller that end the description of the hardware line (`524288-edge`, `Level`).
const TRIGGERS: &[&str] = &["edge", "level", "fasteoi", "none", "simple"];

impl Interrupts {
    /// Parses the file. Rows without a number (`NMI`, `ERR`, …) are left out.
    pub fn parse(text: &str) -> Result<Interrupts> {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let cpus = header
            .split_ascii_whitespace()
            .map(|word| word.strip_prefix("CPU").and_then(|number| number.parse().ok()))
            .collect::<Option<Vec<u32>>>()
            .filter(|cpus| !cpus.is_empty())
            .ok_or_else(|| Error::input("`/proc/interrupts` does not begin with a line of CPUs"))?;
        let mut rows = Vec::new();
        for line in lines {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let Ok(number) = name.trim().parse::<u32>() else { continue };
            let mut rest = rest;
            let mut counts = Vec::with_capacity(cpus.len());
            for _ in &cpus {
                let (word, behind) = next_word(rest);
                let count = word.parse().map_err(|_| {
                    Error::input(format!(
                        "interrupt {number} has {} counts, but there are {} CPUs",
                        counts.len(),
                        cpus.len()
                    ))
                })?;
                counts.push(count);
                rest = behind;
            }
            let (chip, labels) = split_description(rest);
            rows.push(Interrupt { number, counts, chip, labels });
        }
        Ok(Interrupts { cpus, rows })
    }

    pub fn row(&self, number: u32) -> Option<&Interrupt> {
        self.rows.iter().find(|row| row.number == number)
    }
}

fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Splits `ITS-MSI 524288 Edge hns3-0000:bd:00.0-TxRx-0` into the controller and the labels.
///
/// Forms of the middle: `524288-edge`, `30 Level`, and on 3.10 a controller `PCI-MSI-edge` without a number.
fn split_description(text: &str) -> (String, Vec<String>) {
    let (chip, mut rest) = next_word(text);
    let is_trigger = |word: &str| {
        let word = word.to_ascii_lowercase();
        let last = word.rsplit('-').next().unwrap_or_default();
        TRIGGERS.contains(&last)
    };
    if !is_trigger(chip) {
        let (word, behind) = next_word(rest);
        if is_trigger(word) {
            rest = behind;
        } else if word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty() {
            rest = behind;
            let (word, behind) = next_word(rest);
            if is_trigger(word) {
                rest = behind;
            }
        }
    }
    let labels = rest.split(',').map(str::trim).filter(|label| !label.is_empty()).map(str::to_owned).collect();
    (chip.to_owned(), labels)
}

/// What an interrupt of a network device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Receives and sends for one queue.
    Both,
    Receive,
    Send,
    /// Management events; moving it brings nothing.
    Control,
}

/// A label that was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    pub driver: &'static str,
    pub role: Role,
    /// The number in the label. It orders the queues; hns3 advances it by two, so it is not the queue's number.
    pub index: Option<u32>,
}

/// The labels of the drivers: driver, pattern (its group is the index), role. The first match counts, control before data.
const LABELS: &[(&str, &str, Role)] = &[
    ("hns3", r"^hclge(?:vf)?-misc-", Role::Control),
    ("hns3", r"^hns3-.+-TxRx-(\d+)$", Role::Both),
    ("hns3", r"^hns3-.+-Rx-(\d+)$", Role::Receive),
    ("hns3", r"^hns3-.+-Tx-(\d+)$", Role::Send),
    ("hinic", r"^hinic_[ac]eq\d+@pci:", Role::Control),
    ("hinic", r"^.+_qp(\d+)$", Role::Both),
    ("hinic", r"^.+_rxq(\d+)$", Role::Receive),
    ("hinic", r"^.+_txq(\d+)$", Role::Send),
    ("mlx5_core", r"^mlx5_(?:async|cmd|pages)\d*@", Role::Control),
    ("mlx5_core", r"^mlx5_(?:comp|combined)(\d+)@", Role::Both),
    ("i40e", r"^i40e-.+:(?:misc|fdir.*|ctrl.*)$", Role::Control),
    ("ice", r"^ice-.+:(?:misc|fdir.*|ctrl.*)$", Role::Control),
    ("i40e", r"^i40e-.+-TxRx-(\d+)$", Role::Both),
    ("i40e", r"^i40e-.+-rx-(\d+)$", Role::Receive),
    ("i40e", r"^i40e-.+-tx-(\d+)$", Role::Send),
    ("ice", r"^ice-.+-TxRx-(\d+)$", Role::Both),
    ("ice", r"^ice-.+-rx-(\d+)$", Role::Receive),
    ("ice", r"^ice-.+-tx-(\d+)$", Role::Send),
    ("virtio_net", r"^virtio\d+-config$", Role::Control),
    ("virtio_net", r"^virtio\d+-input\.(\d+)$", Role::Receive),
    ("virtio_net", r"^virtio\d+-output\.(\d+)$", Role::Send),
    // ixgbe and, before Linux 5.6, hns3 name the interface first; many other drivers do alike.
    ("", r"^.+-(?i:TxRx|RxTx|Tx-Rx)-(\d+)$", Role::Both),
    ("", r"^.+-(?i:rx)-(\d+)$", Role::Receive),
    ("", r"^.+-(?i:tx)-(\d+)$", Role::Send),
];

static PATTERNS: LazyLock<Vec<(&'static str, Regex, Role)>> = LazyLock::new(|| {
    LABELS.iter().filter_map(|(driver, pattern, role)| Some((*driver, Regex::new(pattern).ok()?, *role))).collect()
});

/// Recognises a label; `interface` is the device's present name (labels may hold an older one).
///
/// `None` for labels that nothing is known about.
pub fn classify(label: &str, interface: &str) -> Option<Vector> {
    for (driver, pattern, role) in PATTERNS.iter() {
        if let Some(found) = pattern.captures(label) {
            let index = found.get(1).and_then(|digits| digits.as_str().parse().ok());
            return Some(Vector { driver, role: *role, index });
        }
    }
    if label == interface {
        // ixgbe's management vector.
        return Some(Vector { driver: "", role: Role::Control, index: None });
    }
    let index = label.strip_prefix(interface)?.strip_prefix('-')?.parse().ok()?;
    // Older mlx5: `eth0-0`.
    Some(Vector { driver: "", role: Role::Both, index: Some(index) })
}

/// An interrupt that serves a data queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInterrupt {
    pub number: u32,
    pub role: Role,
    /// The queue, counted from 0 among those of the same role.
    pub queue: u32,
    pub label: String,
}

/// The interrupts of a device, sorted out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceInterrupts {
    /// By queue, then by number.
    pub data: Vec<QueueInterrupt>,
    pub control: Vec<u32>,
    /// Labels that nothing is known about; they are left alone.
    pub unknown: Vec<(u32, String)>,
}

/// Sorts out the interrupts `numbers` (the names in the device's `msi_irqs`). Those without a row are not in use.
pub fn of_device(interrupts: &Interrupts, numbers: &CpuSet, interface: &str) -> DeviceInterrupts {
    let mut found = DeviceInterrupts::default();
    let mut data: Vec<(Role, Option<u32>, &Interrupt, String)> = Vec::new();
    for row in interrupts.rows.iter().filter(|row| numbers.contains(row.number)) {
        let vectors = row.labels.iter().map(|label| (label, classify(label, interface)));
        let known: Vec<_> = vectors.filter_map(|(label, vector)| Some((label, vector?))).collect();
        match known.iter().find(|(_, vector)| vector.role != Role::Control) {
            Some((label, vector)) => data.push((vector.role, vector.index, row, (*label).clone())),
            None if !known.is_empty() => found.control.push(row.number),
            None => found.unknown.push((row.number, row.labels.join(", "))),
        }
    }
    data.sort_by_key(|(role, index, row, _)| (*role, *index, row.number));
    let mut queue = 0;
    let mut previous = None;
    for (role, _, row, label) in data {
        queue = if previous == Some(role) { queue + 1 } else { 0 };
        previous = Some(role);
        found.data.push(QueueInterrupt { number: row.number, role, queue, label });
    }
    found.data.sort_by_key(|interrupt| (interrupt.queue, interrupt.role, interrupt.number));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIRTIO: &str = "           CPU0       CPU1       
  0:         29          0   IO-APIC   2-edge      timer
  9:          0          0   IO-APIC   9-fasteoi   acpi, pcieport
 24:          0          0  PCI-MSIX-0000:00:03.0   0-edge      virtio0-config
 25:       5071          4  PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0
 26:          1       7023  PCI-MSIX-0000:00:03.0   2-edge      virtio0-output.0
 27:          3          9  PCI-MSIX-0000:00:04.0   1-edge      virtio1-req.0
NMI:          0          0   Non-maskable interrupts
ERR:          0
";

    #[test]
    fn rows_are_read_by_the_count_of_the_header() {
        let table = Interrupts::parse(VIRTIO).expect("a table");
        assert_eq!(table.cpus, [0, 1]);
        assert_eq!(table.rows.len(), 6);
        let row = table.row(9).expect("row 9");
        assert_eq!((row.chip.as_str(), row.labels.as_slice()), ("IO-APIC", &["acpi".into(), "pcieport".into()][..]));
        let row = table.row(25).expect("row 25");
        assert_eq!((row.counts.as_slice(), row.labels[0].as_str()), (&[5071, 4][..], "virtio0-input.0"));
        assert_eq!(row.chip, "PCI-MSIX-0000:00:03.0");
    }

    #[test]
    fn descriptions_of_all_kernels_are_split() {
        let cases = [
            ("  ITS-MSI 524288 Edge      hns3-0000:bd:00.0-TxRx-0", "ITS-MSI", "hns3-0000:bd:00.0-TxRx-0"),
            ("     GICv3  30 Level     arch_timer", "GICv3", "arch_timer"),
            ("  IR-PCI-MSI-edge      eth0-TxRx-3", "IR-PCI-MSI-edge", "eth0-TxRx-3"),
            ("   PCI-MSI 1048576-edge      nvme0q0", "PCI-MSI", "nvme0q0"),
            ("  mbigen-v2 8192 Edge      HISI 162", "mbigen-v2", "HISI 162"),
            ("  ITS-MSI 7", "ITS-MSI", ""),
            ("", "", ""),
        ];
        for (text, chip, label) in cases {
            let (got, labels) = split_description(text);
            assert_eq!((got.as_str(), labels.first().map_or("", String::as_str)), (chip, label), "{text}");
        }
    }

    #[test]
    fn a_table_with_128_cpus_and_one_offline_is_read() {
        let header: String = (0..128).filter(|cpu| *cpu != 5).map(|cpu| format!(" CPU{cpu}")).collect();
        let counts = " 7".repeat(127);
        let table = Interrupts::parse(&format!("{header}\n 400:{counts} ITS-MSI 3 Edge eth0-TxRx-0\n")).expect("wide");
        assert_eq!((table.cpus.len(), table.cpus[5]), (127, 6));
        assert_eq!(table.rows[0].labels, ["eth0-TxRx-0"]);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in ["", "nonsense\n", " CPU0 CPU1\n 1: 5 IO-APIC 1-edge x\n"] {
            assert!(Interrupts::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn labels_of_drivers_are_known() {
        let cases = [
            ("eth0-TxRx-3", Some(("", Role::Both, Some(3)))),
            ("hns3-0000:bd:00.0-TxRx-6", Some(("hns3", Role::Both, Some(6)))),
            ("hns3-0000:bd:00.0-Rx-1", Some(("hns3", Role::Receive, Some(1)))),
            ("hclge-misc-0000:bd:00.0", Some(("hns3", Role::Control, None))),
            ("hclgevf-misc-0000:bd:01.0", Some(("hns3", Role::Control, None))),
            ("eth0_rxq12", Some(("hinic", Role::Receive, Some(12)))),
            ("eth0_txq0", Some(("hinic", Role::Send, Some(0)))),
            ("eth0_qp7", Some(("hinic", Role::Both, Some(7)))),
            ("hinic_aeq0@pci:0000:03:00.0", Some(("hinic", Role::Control, None))),
            ("hinic_ceq1@pci:0000:03:00.0", Some(("hinic", Role::Control, None))),
            ("mlx5_comp4@pci:0000:17:00.0", Some(("mlx5_core", Role::Both, Some(4)))),
            ("mlx5_async0@pci:0000:17:00.0", Some(("mlx5_core", Role::Control, None))),
            ("mlx5_combined0@pci:0000:17:00.0", Some(("mlx5_core", Role::Both, Some(0)))),
            ("i40e-eth0-TxRx-9", Some(("i40e", Role::Both, Some(9)))),
            ("i40e-0000:3b:00.0:misc", Some(("i40e", Role::Control, None))),
            ("i40e-eth0-TxRx-0:fdir-TxRx-0", Some(("i40e", Role::Control, None))),
            ("ice-eth0-TxRx-10", Some(("ice", Role::Both, Some(10)))),
            ("ice-0000:3b:00.0:misc", Some(("ice", Role::Control, None))),
            ("virtio0-input.1", Some(("virtio_net", Role::Receive, Some(1)))),
            ("virtio0-output.1", Some(("virtio_net", Role::Send, Some(1)))),
            ("virtio0-config", Some(("virtio_net", Role::Control, None))),
            ("eth0-rx-2", Some(("", Role::Receive, Some(2)))),
            ("eth0", Some(("", Role::Control, None))),
            ("eth0-5", Some(("", Role::Both, Some(5)))),
            ("eth1-5", None),
            ("nvme0q3", None),
        ];
        assert_eq!(PATTERNS.len(), LABELS.len());
        for (label, expected) in cases {
            let got = classify(label, "eth0").map(|vector| (vector.driver, vector.role, vector.index));
            assert_eq!(got, expected, "{label}");
        }
    }

    #[test]
    fn queues_are_numbered_in_the_order_of_their_labels() {
        let rows =
            [(30, "hns3-x-TxRx-2"), (31, "hns3-x-TxRx-0"), (32, "hns3-x-TxRx-10"), (29, "hclge-misc-x"), (33, "odd")];
        let text: String = rows.iter().map(|(n, label)| format!("{n}: 0 ITS-MSI 1 Edge {label}\n")).collect();
        let table = Interrupts::parse(&format!("CPU0\n{text}")).expect("a table");
        let found = of_device(&table, &CpuSet::range(29, 40), "eth0");
        let data: Vec<_> = found.data.iter().map(|interrupt| (interrupt.number, interrupt.queue)).collect();
        assert_eq!(data, [(31, 0), (30, 1), (32, 2)]);
        assert_eq!((found.control, found.unknown), (vec![29], vec![(33, "odd".to_owned())]));
    }

    #[test]
    fn receive_and_send_queues_are_numbered_apart() {
        let found = of_device(&Interrupts::parse(VIRTIO).expect("a table"), &CpuSet::range(24, 26), "eth0");
        let data: Vec<_> = found.data.iter().map(|i| (i.number, i.role, i.queue)).collect();
        assert_eq!(data, [(25, Role::Receive, 0), (26, Role::Send, 0)]);
        assert_eq!(found.control, [24]);
    }
}
