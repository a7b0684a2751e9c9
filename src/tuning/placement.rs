//! Which CPU serves which interrupt: the strategies, always with the same result for the same input.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::topology::Topology;

/// More queues than this on one CPU are worth a warning.
const CROWDED: usize = 4;

/// How interrupts are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// All on one CPU.
    Single(u32),
    /// On these CPUs in turn, in the given order.
    List(Vec<u32>),
    /// On all usable CPUs in turn.
    Spread,
    /// On the usable CPUs of the device's node; if it has none, of the nearest node that does.
    SpreadLocal,
    /// On the first usable CPU of each cluster in turn, those of the device's node first.
    PerCluster,
    /// Each on all usable CPUs: the interrupt controller chooses among those that are not excluded.
    Exclude,
    /// Where the driver's `affinity_hint` says.
    Hint,
}

/// The names of the strategies, as arguments write them.
pub const STRATEGIES: &[&str] = &["single", "list", "spread", "spread_local", "per_cluster", "exclude", "hint"];

impl Strategy {
    /// Builds a strategy from its name and the CPUs in the order they were written.
    pub fn parse(name: &str, cpus: &[u32]) -> Result<Strategy> {
        let strategy = match (name, cpus) {
            ("single", [cpu]) => Strategy::Single(*cpu),
            ("single", _) => return Err(Error::input(format!("`single` needs exactly one CPU, not {}", cpus.len()))),
            ("list", []) => return Err(Error::input("`list` needs the CPUs")),
            ("list", cpus) => Strategy::List(cpus.to_vec()),
            ("spread", _) => Strategy::Spread,
            ("spread_local", _) => Strategy::SpreadLocal,
            ("per_cluster", _) => Strategy::PerCluster,
            ("exclude", _) => Strategy::Exclude,
            ("hint", _) => Strategy::Hint,
            _ => {
                let names = STRATEGIES.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                return Err(Error::input(format!("`{name}` is not a strategy; there is {names}"))
                    .suggest(name, STRATEGIES.iter().copied()));
            }
        };
        Ok(strategy)
    }
}

/// An interrupt to be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub irq: u32,
    /// The queue it serves: the order in which CPUs are given out.
    pub queue: u32,
    pub hint: Option<CpuSet>,
}

/// What is known of the host and what is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub interrupts: &'a [Placed],
    pub online: &'a CpuSet,
    /// CPUs that may be used; `None` for all.
    pub allowed: Option<&'a CpuSet>,
    /// CPUs kept for the workload.
    pub excluded: &'a CpuSet,
    /// The device's node; `None` if unknown.
    pub device_node: Option<u32>,
    pub topology: &'a Topology,
    /// Clusters of CPUs, needed by `per_cluster`.
    pub clusters: &'a [CpuSet],
}

/// The CPUs for each interrupt, in the order of the queues, and what should be thought over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    pub cpus: Vec<(u32, CpuSet)>,
    pub warnings: Vec<String>,
}

/// Places the interrupts.
pub fn place(strategy: &Strategy, request: &Request<'_>) -> Result<Placement> {
    let mut interrupts: Vec<&Placed> = request.interrupts.iter().collect();
    interrupts.sort_by_key(|placed| (placed.queue, placed.irq));
    let usable = request.allowed.map_or_else(|| request.online.clone(), |allowed| allowed.intersection(request.online));
    let usable = usable.difference(request.excluded);
    let mut placement = Placement::default();

    if *strategy == Strategy::Hint {
        for placed in interrupts {
            match placed.hint.as_ref().map(|hint| hint.intersection(request.online)).filter(|hint| !hint.is_empty()) {
                Some(hint) => placement.cpus.push((placed.irq, hint)),
                None => placement
                    .warnings
                    .push(format!("interrupt {} has no hint from its driver; left as it is", placed.irq)),
            }
        }
        return Ok(placement);
    }
    if *strategy == Strategy::Exclude {
        let usable = not_empty(usable)?;
        placement.cpus = interrupts.iter().map(|placed| (placed.irq, usable.clone())).collect();
        return Ok(placement);
    }

    let turn = match strategy {
        Strategy::Single(cpu) => named(&[*cpu], request, &mut placement.warnings)?,
        Strategy::List(cpus) => named(cpus, request, &mut placement.warnings)?,
        Strategy::SpreadLocal => local(&not_empty(usable)?, request, &mut placement.warnings).iter().collect(),
        Strategy::PerCluster => one_each_cluster(&not_empty(usable)?, request),
        Strategy::Spread | Strategy::Exclude | Strategy::Hint => not_empty(usable)?.iter().collect(),
    };
    for (placed, cpu) in interrupts.iter().zip(turn.iter().cycle()) {
        placement.cpus.push((placed.irq, [*cpu].into_iter().collect()));
    }
    placement.warnings.extend(crowding(&placement.cpus));
    Ok(placement)
}

fn not_empty(usable: CpuSet) -> Result<CpuSet> {
    if usable.is_empty() {
        return Err(Error::input("no CPU is left: all that are allowed are excluded or offline"));
    }
    Ok(usable)
}

fn named(cpus: &[u32], request: &Request<'_>, warnings: &mut Vec<String>) -> Result<Vec<u32>> {
    for cpu in cpus {
        if !request.online.contains(*cpu) {
            return Err(Error::input(format!("CPU {cpu} is not online; this host has {}", request.online)));
        }
        if request.excluded.contains(*cpu) {
            warnings
                .push(format!("CPU {cpu} is among the excluded CPUs {} but named for interrupts", request.excluded));
        }
    }
    Ok(cpus.to_vec())
}

fn local(usable: &CpuSet, request: &Request<'_>, warnings: &mut Vec<String>) -> CpuSet {
    let Some(node) = request.device_node else {
        warnings.push("the node of the device is not known; all usable CPUs are used".to_owned());
        return usable.clone();
    };
    if request.topology.node(node).is_none() {
        warnings.push(format!("node {node} of the device is not among the host's nodes; all usable CPUs are used"));
        return usable.clone();
    }
    let nearest = request.topology.nearest_with_cpus(node, usable);
    if nearest != Some(node) {
        let instead =
            nearest.map_or_else(|| "all are used".to_owned(), |id| format!("node {id} is the nearest that has"));
        warnings.push(format!("node {node} of the device has no usable CPU; {instead}"));
    }
    let cpus = nearest.and_then(|id| request.topology.node(id)).map(|node| node.cpus.intersection(usable));
    cpus.unwrap_or_else(|| usable.clone())
}

fn one_each_cluster(usable: &CpuSet, request: &Request<'_>) -> Vec<u32> {
    let order = request.device_node.map(|node| request.topology.by_distance(node)).unwrap_or_default();
    let nearness = |cpu: u32| {
        let node = request.topology.node_of(cpu);
        node.and_then(|node| order.iter().position(|id| *id == node)).unwrap_or(usize::MAX)
    };
    let mut cpus: Vec<u32> =
        request.clusters.iter().filter_map(|cluster| cluster.intersection(usable).first()).collect();
    if cpus.is_empty() {
        cpus = usable.iter().collect();
    }
    // The device's node alone if it has any cluster left, else everything from near to far.
    cpus.sort_by_key(|cpu| (nearness(*cpu), *cpu));
    let nearest = cpus.first().map(|cpu| nearness(*cpu));
    if request.device_node.is_some() {
        cpus.retain(|cpu| Some(nearness(*cpu)) == nearest);
    }
    cpus
}

fn crowding(cpus: &[(u32, CpuSet)]) -> Vec<String> {
    let mut queues: BTreeMap<u32, usize> = BTreeMap::new();
    for cpu in cpus.iter().filter_map(|(_, set)| set.first()) {
        *queues.entry(cpu).or_default() += 1;
    }
    queues
        .into_iter()
        .filter(|(_, count)| *count > CROWDED)
        .map(|(cpu, count)| format!("CPU {cpu} serves {count} interrupts: it can become the limit of the network"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::topology::{Node, clusters};

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    fn two_nodes() -> Topology {
        let node = |id, cpus: &str, distances: [u32; 2]| Node {
            id,
            cpus: set(cpus),
            memory_kib: None,
            distances: distances.to_vec(),
        };
        Topology::from_nodes(vec![node(0, "0-7", [10, 20]), node(1, "8-15", [20, 10])]).expect("two nodes")
    }

    fn interrupts(count: u32) -> Vec<Placed> {
        // Numbers run against the queues, to see that queues decide.
        (0..count).map(|queue| Placed { irq: 100 - queue, queue, hint: None }).collect()
    }

    fn run(strategy: &Strategy, count: u32, excluded: &str, device_node: Option<u32>) -> Result<Placement> {
        let (online, excluded, topology) = (set("0-15"), set(excluded), two_nodes());
        let clusters = clusters(&online, &[], 4).expect("clusters");
        place(
            strategy,
            &Request {
                interrupts: &interrupts(count),
                online: &online,
                allowed: None,
                excluded: &excluded,
                device_node,
                topology: &topology,
                clusters: &clusters,
            },
        )
    }

    #[test]
    fn each_strategy_has_its_order() {
        let cases = [
            (Strategy::Single(3), 2, "", Some(0), "3 3"),
            (Strategy::List(vec![0, 8]), 4, "", Some(0), "0 8 0 8"),
            (Strategy::List(vec![8, 0]), 3, "", None, "8 0 8"),
            (Strategy::Spread, 3, "0", Some(1), "1 2 3"),
            (Strategy::SpreadLocal, 4, "8-13", Some(1), "14 15 14 15"),
            (Strategy::SpreadLocal, 2, "8-15", Some(1), "0 1"),
            (Strategy::SpreadLocal, 2, "0-3", None, "4 5"),
            (Strategy::PerCluster, 4, "0", Some(0), "1 4 1 4"),
            (Strategy::PerCluster, 4, "", None, "0 4 8 12"),
            (Strategy::Exclude, 2, "0-13", None, "14-15 14-15"),
        ];
        for (strategy, count, excluded, node, expected) in cases {
            let placement = run(&strategy, count, excluded, node).expect("placed");
            let cpus: Vec<_> = placement.cpus.iter().map(|(_, cpus)| cpus.to_string()).collect();
            assert_eq!(cpus.join(" "), expected, "{strategy:?}");
            let order: Vec<_> = placement.cpus.iter().map(|(irq, _)| *irq).collect();
            assert_eq!(order, (0..count).map(|queue| 100 - queue).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_should_be_thought_over_is_said() {
        let warning = |strategy, count, excluded, node| {
            run(&strategy, count, excluded, node).expect("placed").warnings.join("; ")
        };
        assert_eq!(
            warning(Strategy::Single(3), 8, "", None),
            "CPU 3 serves 8 interrupts: it can become the limit of the network"
        );
        assert!(warning(Strategy::Single(3), 1, "0-7", None).contains("excluded CPUs 0-7"));
        assert!(warning(Strategy::SpreadLocal, 1, "8-15", Some(1)).contains("node 0 is the nearest"));
        assert!(warning(Strategy::SpreadLocal, 1, "", None).contains("not known"));
        assert!(warning(Strategy::SpreadLocal, 1, "", Some(7)).contains("not among"));
        assert_eq!(warning(Strategy::Spread, 16, "", None), "");
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        assert!(
            run(&Strategy::Single(31), 1, "", None).expect_err("offline").message().contains("CPU 31 is not online")
        );
        assert!(run(&Strategy::Spread, 1, "0-15", None).is_err());
        assert!(Strategy::parse("single", &[1, 2]).is_err() && Strategy::parse("list", &[]).is_err());
        assert_eq!(
            Strategy::parse("spread_locl", &[]).expect_err("misspelt").hints(),
            ["did you mean `spread_local`?"]
        );
        assert_eq!(Strategy::parse("list", &[8, 0]).expect("a list"), Strategy::List(vec![8, 0]));
    }

    #[test]
    fn hints_are_followed_where_there_are_any() {
        let (online, topology) = (set("0-15"), two_nodes());
        let interrupts =
            [Placed { irq: 5, queue: 0, hint: Some(set("2")) }, Placed { irq: 6, queue: 1, hint: Some(set("99")) }];
        let request = Request {
            interrupts: &interrupts,
            online: &online,
            allowed: None,
            excluded: &CpuSet::new(),
            device_node: None,
            topology: &topology,
            clusters: &[],
        };
        let placement = place(&Strategy::Hint, &request).expect("placed");
        assert_eq!(placement.cpus, [(5, set("2"))]);
        assert_eq!(placement.warnings.len(), 1);
    }
}
