//! Packet steering in software: which CPUs, and how many flows (kernel: networking/scaling).

use crate::error::{Error, Result};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::sysctl_value::Rounding;
use crate::tuning::topology::Topology;

/// The kernel refuses more entries in `rps_sock_flow_entries` than this.
const MOST_FLOW_ENTRIES: u64 = 1 << 29;

/// What is known for the choice of receive CPUs.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveRequest<'a> {
    pub online: &'a CpuSet,
    /// CPUs removed by `isolcpus=domain`: the kernel takes them out of every mask.
    pub isolated: &'a CpuSet,
    /// CPUs that serve the device's interrupts.
    pub interrupting: &'a CpuSet,
    /// CPUs kept for the workload.
    pub excluded: &'a CpuSet,
    pub device_node: Option<u32>,
    pub topology: &'a Topology,
    /// Receive queues of the hardware.
    pub hardware_queues: usize,
}

/// The CPUs for `rps_cpus`, or the reason to leave it off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receive {
    Cpus(CpuSet),
    /// Each CPU has a hardware queue of its own: steering again in software only costs.
    Redundant,
}

/// Chooses the CPUs for receive packet steering: those of the device's memory domain without the ones that take its interrupts.
pub fn receive_cpus(request: &ReceiveRequest<'_>) -> Result<Receive> {
    if request.hardware_queues >= request.online.len() {
        return Ok(Receive::Redundant);
    }
    let usable = request.online.difference(request.isolated).difference(request.excluded);
    let node = request.device_node.and_then(|node| request.topology.nearest_with_cpus(node, &usable));
    let near = match node.and_then(|node| request.topology.node(node)) {
        Some(node) => node.cpus.intersection(&usable),
        None => usable,
    };
    let apart = near.difference(request.interrupting);
    let cpus = if apart.is_empty() { near } else { apart };
    if cpus.is_empty() {
        return Err(Error::input("no CPU is left for received packets: all are isolated, excluded or offline"));
    }
    Ok(Receive::Cpus(cpus))
}

/// The mask the kernel will store: without CPUs that are offline or isolated.
pub fn stored_receive_cpus(wanted: &CpuSet, online: &CpuSet, isolated: &CpuSet) -> Result<CpuSet> {
    let stored = wanted.intersection(online).difference(isolated);
    if stored.is_empty() && !wanted.is_empty() {
        return Err(Error::input(format!("the CPUs {wanted} are all offline or isolated, which the kernel refuses")));
    }
    Ok(stored)
}

/// The table sizes for receive flow steering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowCounts {
    /// For `/proc/sys/net/core/rps_sock_flow_entries`.
    pub entries: u64,
    /// For `rps_flow_cnt` of each receive queue.
    pub per_queue: u64,
}

/// Divides `entries` flows among the receive queues; both numbers as the kernel rounds them, to powers of two.
///
/// Zero switches it off. The entries are raised to the sum of the queues' counts where rounding makes that larger.
pub fn flow_counts(entries: u64, queues: u64) -> Result<FlowCounts> {
    if entries == 0 {
        return Ok(FlowCounts { entries: 0, per_queue: 0 });
    }
    if queues == 0 {
        return Err(Error::input("the device has no receive queue to steer flows to"));
    }
    let round = |number: u64| {
        u64::try_from(Rounding::PowerOfTwo.apply(i128::from(number)))
            .ok()
            .filter(|number| *number <= MOST_FLOW_ENTRIES)
            .ok_or_else(|| {
                Error::input(format!("{number} flows are more than the {MOST_FLOW_ENTRIES} the kernel takes"))
            })
    };
    if entries > MOST_FLOW_ENTRIES {
        round(entries)?;
    }
    let per_queue = round((entries / queues).max(1))?;
    let entries = round(entries.max(per_queue.saturating_mul(queues)))?;
    Ok(FlowCounts { entries, per_queue })
}

/// The CPUs for `xps_cpus` of each send queue: the CPUs are dealt out to the queues in turn, so that each CPU has exactly one queue.
///
/// With a single queue there is nothing to choose, and the kernel has no such file.
pub fn send_cpus(queues: usize, cpus: &CpuSet) -> Vec<CpuSet> {
    if queues < 2 {
        return Vec::new();
    }
    let mut masks = vec![CpuSet::new(); queues];
    for (index, cpu) in cpus.iter().enumerate() {
        masks[index % queues].insert(cpu);
    }
    // More queues than CPUs: the rest share CPUs, so that no queue is left without one.
    let all: Vec<u32> = cpus.iter().collect();
    for (index, mask) in masks.iter_mut().enumerate().skip(all.len()) {
        mask.extend(all.get(index % all.len().max(1)).copied());
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::topology::Node;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    fn receive(queues: usize, interrupting: &str, isolated: &str, node: Option<u32>) -> Result<Receive> {
        let make =
            |id, cpus: &str, row: [u32; 2]| Node { id, cpus: set(cpus), memory_kib: None, distances: row.to_vec() };
        let topology = Topology::from_nodes(vec![make(0, "0-7", [10, 20]), make(1, "8-15", [20, 10])]).expect("nodes");
        receive_cpus(&ReceiveRequest {
            online: &set("0-15"),
            isolated: &set(isolated),
            interrupting: &set(interrupting),
            excluded: &CpuSet::new(),
            device_node: node,
            topology: &topology,
            hardware_queues: queues,
        })
    }

    #[test]
    fn packets_go_to_near_cpus_that_take_no_interrupts() {
        let cases = [
            (2, "0,8", "", Some(0), "1-7"),
            (2, "0,8", "", None, "1-7,9-15"),
            (2, "0", "1-3", Some(0), "4-7"),
            (2, "", "0-7", Some(0), "8-15"),
            // Every near CPU takes interrupts: better those than far ones.
            (8, "0-7", "", Some(0), "0-7"),
        ];
        for (queues, interrupting, isolated, node, expected) in cases {
            let got = receive(queues, interrupting, isolated, node).expect("chosen");
            assert_eq!(got, Receive::Cpus(set(expected)), "{interrupting} {isolated} {node:?}");
        }
        assert_eq!(receive(16, "0", "", Some(0)).expect("chosen"), Receive::Redundant);
        assert!(receive(1, "", "0-15", None).is_err());
    }

    #[test]
    fn the_kernels_own_reduction_is_known() {
        let stored = |wanted: &str| stored_receive_cpus(&set(wanted), &set("0-3"), &set("3"));
        assert_eq!(stored("0-7").expect("some").to_string(), "0-2");
        assert_eq!(stored("").expect("off"), CpuSet::new());
        assert!(stored("3,9").is_err());
    }

    #[test]
    fn flows_are_divided_among_queues() {
        let cases =
            [(0, 8, 0, 0), (32768, 16, 32768, 2048), (4000, 1, 4096, 4096), (32768, 6, 65536, 8192), (2, 8, 8, 1)];
        for (entries, queues, stored, per_queue) in cases {
            let counts = flow_counts(entries, queues).expect("counts");
            assert_eq!((counts.entries, counts.per_queue), (stored, per_queue), "{entries} over {queues}");
        }
        assert!(flow_counts(1, 0).is_err());
        assert!(flow_counts((1 << 29) + 1, 64).is_err() && flow_counts(u64::MAX, 1).is_err());
    }

    #[test]
    fn each_cpu_sends_through_one_queue() {
        let shown =
            |queues, cpus| send_cpus(queues, &set(cpus)).iter().map(CpuSet::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(4, "0-7"), "0,4 1,5 2,6 3,7");
        assert_eq!(shown(2, "3"), "3 3");
        assert_eq!(shown(1, "0-7"), "");
        assert_eq!(shown(2, ""), " ");
    }
}
