//! NUMA nodes, their CPUs, memory and distances, and the clusters of CPUs that share a cache.
//!
//! Read from `/sys/devices/system/node` and `/sys/devices/system/cpu`, or from `numactl --hardware`.

use crate::error::{Error, Result};
use crate::tuning::cpu_set::CpuSet;

/// One NUMA node. Nodes without CPUs or without memory exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: u32,
    pub cpus: CpuSet,
    /// Memory in KiB; `None` if it was not read.
    pub memory_kib: Option<u64>,
    /// Distance to each node of the host, in the order of the nodes' numbers; 10 is local.
    pub distances: Vec<u32>,
}

/// The texts of `/sys/devices/system/node/nodeN/`.
#[derive(Debug, Clone, Copy, Default)]
pub struct NodeTexts<'a> {
    pub id: u32,
    pub cpulist: &'a str,
    /// One row of integers, a column for each node that is online.
    pub distance: &'a str,
    pub meminfo: Option<&'a str>,
}

/// The nodes of a host, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    nodes: Vec<Node>,
}

impl Topology {
    /// Builds the topology from what was read for each node that is online.
    pub fn from_texts(texts: &[NodeTexts<'_>]) -> Result<Topology> {
        let nodes = texts.iter().map(|texts| {
            let distances = texts
                .distance
                .split_ascii_whitespace()
                .map(|word| {
                    word.parse().map_err(|_| Error::input(format!("`{word}` is not a distance of node {}", texts.id)))
                })
                .collect::<Result<Vec<u32>>>()?;
            let memory_kib = texts.meminfo.map(|text| memory_total(text, texts.id)).transpose()?;
            Ok(Node { id: texts.id, cpus: CpuSet::parse(texts.cpulist)?, memory_kib, distances })
        });
        Topology::from_nodes(nodes.collect::<Result<Vec<_>>>()?)
    }

    /// Builds the topology from nodes in any order.
    pub fn from_nodes(mut nodes: Vec<Node>) -> Result<Topology> {
        nodes.sort_by_key(|node| node.id);
        let count = nodes.len();
        for pair in nodes.windows(2) {
            if pair[0].id == pair[1].id {
                return Err(Error::input(format!("node {} is described twice", pair[0].id)));
            }
        }
        if let Some(node) = nodes.iter().find(|node| node.distances.len() != count) {
            return Err(Error::input(format!(
                "node {} has {} distances but there are {count} nodes",
                node.id,
                node.distances.len()
            )));
        }
        Ok(Topology { nodes })
    }

    /// A host without NUMA: one node with all CPUs.
    pub fn single(cpus: CpuSet) -> Topology {
        Topology { nodes: vec![Node { id: 0, cpus, memory_kib: None, distances: vec![10] }] }
    }

    /// Parses `numactl --hardware`.
    pub fn from_numactl(text: &str) -> Result<Topology> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut rows: Vec<(u32, Vec<u32>)> = Vec::new();
        for line in text.lines() {
            let Some((head, rest)) = line.split_once(':') else { continue };
            let words: Vec<&str> = head.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["node", id, "cpus"] => {
                    let id = node_number(id)?;
                    nodes.push(Node { id, cpus: CpuSet::parse(rest)?, memory_kib: None, distances: Vec::new() });
                }
                ["node", id, "size"] => {
                    let id = node_number(id)?;
                    let mib = rest.split_ascii_whitespace().next().and_then(|word| word.parse::<u64>().ok());
                    if let Some(node) = nodes.iter_mut().find(|node| node.id == id) {
                        node.memory_kib = mib.map(|mib| mib * 1024);
                    }
                }
                [id] if id.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let row = rest.split_ascii_whitespace().map(node_number).collect::<Result<Vec<_>>>()?;
                    rows.push((node_number(id)?, row));
                }
                _ => {}
            }
        }
        for (id, row) in rows {
            if let Some(node) = nodes.iter_mut().find(|node| node.id == id) {
                node.distances = row;
            }
        }
        Topology::from_nodes(nodes)
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn node(&self, id: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }

    /// The node that a CPU belongs to.
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.id)
    }

    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let column = self.nodes.iter().position(|node| node.id == to)?;
        self.node(from)?.distances.get(column).copied()
    }

    /// All CPUs of the nodes `ids`; fails for a node that does not exist.
    pub fn cpus_of(&self, ids: &CpuSet) -> Result<CpuSet> {
        let mut cpus = CpuSet::new();
        for id in ids.iter() {
            let node = self.node(id).ok_or_else(|| self.no_such_node(id))?;
            cpus.extend(node.cpus.iter());
        }
        Ok(cpus)
    }

    /// The numbers of all nodes, nearest to `from` first; equal distances by number.
    pub fn by_distance(&self, from: u32) -> Vec<u32> {
        let mut ids: Vec<u32> = self.nodes.iter().map(|node| node.id).collect();
        ids.sort_by_key(|id| (self.distance(from, *id).unwrap_or(u32::MAX), *id));
        ids
    }

    /// The nearest node to `from` (which may be itself) that has any of the CPUs `usable`.
    pub fn nearest_with_cpus(&self, from: u32, usable: &CpuSet) -> Option<u32> {
        let has_cpus = |id: &u32| self.node(*id).is_some_and(|node| !node.cpus.intersection(usable).is_empty());
        self.by_distance(from).into_iter().find(has_cpus)
    }

    /// The nearest node to `from` (which may be itself) that has memory.
    pub fn nearest_with_memory(&self, from: u32) -> Option<u32> {
        let has_memory = |id: &u32| self.node(*id).is_some_and(|node| node.memory_kib.is_none_or(|kib| kib > 0));
        self.by_distance(from).into_iter().find(has_memory)
    }

    /// Checks that memory can be bound to the nodes `ids`: they exist and have memory.
    pub fn check_memory_binding(&self, ids: &CpuSet) -> Result<()> {
        for id in ids.iter() {
            let node = self.node(id).ok_or_else(|| self.no_such_node(id))?;
            if node.memory_kib == Some(0) {
                let mut error = Error::input(format!("node {id} has no memory, so nothing can be bound to it"));
                if let Some(nearest) = self.nearest_with_memory(id) {
                    error = error.hint(format!("the nearest node with memory is {nearest}"));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn no_such_node(&self, id: u32) -> Error {
        let ids: CpuSet = self.nodes.iter().map(|node| node.id).collect();
        Error::input(format!("there is no node {id} on this host; it has {ids}"))
    }
}

fn node_number(word: &str) -> Result<u32> {
    word.parse().map_err(|_| Error::input(format!("`{word}` is not a number in the output of `numactl --hardware`")))
}

/// `MemTotal` of a node's `meminfo`, in KiB.
fn memory_total(text: &str, id: u32) -> Result<u64> {
    text.lines()
        .find_map(|line| line.split_once("MemTotal:"))
        .and_then(|(_, rest)| rest.split_ascii_whitespace().next())
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| Error::input(format!("the meminfo of node {id} has no `MemTotal`")))
}

/// The clusters of CPUs, by lowest CPU, from the `topology/cluster_cpus_list` of each CPU.
///
/// Kernels before 5.16 have no such file: pass no texts, and CPUs are grouped by `fallback_size`
/// neighbours (4 on Kunpeng 920).
pub fn clusters(online: &CpuSet, cluster_lists: &[&str], fallback_size: u32) -> Result<Vec<CpuSet>> {
    let mut clusters: Vec<CpuSet> = Vec::new();
    for text in cluster_lists {
        let cluster = CpuSet::parse(text)?.intersection(online);
        if !cluster.is_empty() && !clusters.contains(&cluster) {
            clusters.push(cluster);
        }
    }
    if clusters.is_empty() {
        let size = fallback_size.max(1);
        for cpu in online.iter() {
            match clusters.last_mut() {
                Some(cluster) if cluster.first().is_some_and(|first| first / size == cpu / size) => cluster.insert(cpu),
                _ => clusters.push([cpu].into_iter().collect()),
            }
        }
    }
    clusters.sort();
    Ok(clusters)
}

/// Parses the `numa_node` file of a device: `-1` means unknown.
pub fn parse_device_node(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    /// Two sockets of Kunpeng 920: four nodes of 32 CPUs.
    fn four_nodes() -> Topology {
        let rows = ["10 12 20 22", "12 10 22 24", "20 22 10 12", "22 24 12 10"];
        let lists = ["0-31", "32-63", "64-95", "96-127"];
        let texts: Vec<NodeTexts<'_>> = (0..4)
            .map(|id| NodeTexts { id, cpulist: lists[id as usize], distance: rows[id as usize], meminfo: None })
            .collect();
        Topology::from_texts(&texts).expect("four nodes")
    }

    #[test]
    fn nodes_are_ordered_by_distance() {
        let topology = four_nodes();
        assert_eq!(topology.by_distance(1), [1, 0, 2, 3]);
        assert_eq!(topology.node_of(70), Some(2));
        assert_eq!(topology.node_of(128), None);
        assert_eq!(topology.distance(3, 1), Some(24));
        assert_eq!(topology.cpus_of(&set("0,2")).expect("nodes").to_string(), "0-31,64-95");
        assert_eq!(
            topology.cpus_of(&set("4")).expect_err("absent").message(),
            "there is no node 4 on this host; it has 0-3"
        );
    }

    #[test]
    fn nodes_without_cpus_or_memory_are_passed_over() {
        let memory = "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n";
        let none = "Node 1 MemTotal:       0 kB\n";
        let topology = Topology::from_texts(&[
            NodeTexts { id: 0, cpulist: "\n", distance: "10 20 40", meminfo: Some(memory) },
            NodeTexts { id: 1, cpulist: "0-3", distance: "20 10 40", meminfo: Some(none) },
            NodeTexts { id: 4, cpulist: "4-7", distance: "40 40 10", meminfo: Some(memory) },
        ])
        .expect("three nodes");
        assert_eq!(topology.nearest_with_cpus(0, &set("0-7")), Some(1));
        assert_eq!(topology.nearest_with_cpus(0, &set("4-7")), Some(4));
        assert_eq!(topology.nearest_with_cpus(0, &set("8")), None);
        assert_eq!(topology.nearest_with_memory(1), Some(0));
        assert_eq!(topology.distance(0, 4), Some(40));
        assert!(topology.check_memory_binding(&set("0,4")).is_ok());
        let error = topology.check_memory_binding(&set("1")).expect_err("no memory");
        assert_eq!(error.hints(), ["the nearest node with memory is 0"]);
    }

    #[test]
    fn the_output_of_numactl_is_read() {
        let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1 2 3\nnode 0 size: 64 MB\nnode 0 free: 3 MB\n\
                    node 1 cpus:\nnode 1 size: 0 MB\nnode 1 free: 0 MB\nnode distances:\nnode   0   1 \n  0:  10  20 \n  1:  20  10 \n";
        let topology = Topology::from_numactl(text).expect("output");
        assert_eq!(topology.nodes()[0].cpus, set("0-3"));
        assert_eq!(topology.nodes()[0].memory_kib, Some(64 * 1024));
        assert!(topology.nodes()[1].cpus.is_empty());
        assert_eq!(topology.distance(0, 1), Some(20));
    }

    #[test]
    fn contradictory_texts_are_refused() {
        let node = |id, distance| NodeTexts { id, cpulist: "0", distance, meminfo: None };
        assert!(Topology::from_texts(&[node(0, "10 20")]).is_err());
        assert!(Topology::from_texts(&[node(0, "10 20"), node(0, "20 10")]).is_err());
        assert!(Topology::from_texts(&[node(0, "ten")]).is_err());
        let no_total = NodeTexts { id: 0, cpulist: "0", distance: "10", meminfo: Some("nothing") };
        assert!(Topology::from_texts(&[no_total]).is_err());
    }

    #[test]
    fn clusters_come_from_the_kernel_or_from_neighbours() {
        let shown = |clusters: Vec<CpuSet>| clusters.iter().map(CpuSet::to_string).collect::<Vec<_>>();
        let online = set("0-7");
        let lists = ["4-7\n", "0-3\n", "0-3\n"];
        assert_eq!(shown(clusters(&online, &lists, 4).expect("lists")), ["0-3", "4-7"]);
        assert_eq!(shown(clusters(&set("0-2,5-9"), &[], 4).expect("none")), ["0-2", "5-7", "8-9"]);
        // Not a cluster at all: the kernel prints each CPU alone.
        assert_eq!(shown(clusters(&set("0-1"), &["0", "1"], 4).expect("alone")), ["0", "1"]);
    }

    #[test]
    fn an_unknown_device_node_is_none() {
        assert_eq!(parse_device_node("-1\n"), None);
        assert_eq!(parse_device_node("2\n"), Some(2));
    }
}
