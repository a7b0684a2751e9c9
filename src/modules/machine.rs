//! The CPUs and memory nodes of a host, read in one go for the modules that place work on them.

use crate::host::reads::{Script, Unit, UnitProperties};
use crate::host::{Failure, FailureKind, Footprint, Host};
use crate::tuning::cpu_set::CpuSet;
use crate::tuning::topology::{Node, Topology, clusters, memory_total};

/// CPUs that share a cluster on Kunpeng 920, whose kernels may not tell.
const KUNPENG_CLUSTER: u32 = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    pub online: CpuSet,
    /// CPUs taken from the scheduler's domains (`isolcpus`).
    pub isolated: CpuSet,
    pub topology: Topology,
    pub clusters: Vec<CpuSet>,
}

/// Reads the machine: nodes, distances, clusters.
pub(super) async fn read(host: &Host) -> Result<Machine, Failure> {
    let text = r#"cd /sys/devices/system || exit
r() {
  v=
  { read -r v <"$2"; } 2>/dev/null && printf '%s=%s\n' "$1" "$v"
}
r online cpu/online
r isolated cpu/isolated
r midr cpu/cpu0/regs/identification/midr_el1
for n in node/node[0-9]*; do
  [ -e "$n/cpulist" ] || continue
  echo "node=${n##*/node}"
  r cpulist "$n/cpulist"
  r distance "$n/distance"
  sed -n 's/.*MemTotal:/meminfo=MemTotal:/p' "$n/meminfo" 2>/dev/null
done
for c in cpu/cpu[0-9]*; do r cluster "$c/topology/cluster_cpus_list"; done"#;
    let answer = host.read(Script { text: text.to_owned(), footprint: Footprint::named("cpus and nodes") }).await?;
    parse(&answer.text())
}

/// The properties of a unit; `None` where systemd is not the init system.
pub(super) async fn unit(host: &Host, name: &str) -> Result<Option<UnitProperties>, Failure> {
    match host.read(Unit(name.to_owned())).await {
        Err(failure) if failure.kind == FailureKind::Failed => Ok(None),
        other => other,
    }
}

/// True if the unit runs.
pub(super) async fn is_active(host: &Host, name: &str) -> Result<bool, Failure> {
    let unit = unit(host, name).await?;
    Ok(unit.is_some_and(|unit| unit.get("ActiveState").is_some_and(|state| state == "active")))
}

fn parse(text: &str) -> Result<Machine, Failure> {
    let (mut online, mut isolated) = (None, CpuSet::new());
    let mut nodes: Vec<Node> = Vec::new();
    let mut cluster_lists: Vec<&str> = Vec::new();
    let mut fallback = 1;
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match (key, nodes.last_mut()) {
            ("online", _) => online = Some(CpuSet::parse(value)?),
            ("isolated", _) => isolated = CpuSet::parse(value)?,
            ("midr", _) if is_kunpeng(value) => fallback = KUNPENG_CLUSTER,
            ("node", _) => {
                let id =
                    value.parse().map_err(|_| Failure::new(format!("`{value}` is not the number of a memory node")))?;
                nodes.push(Node { id, cpus: CpuSet::new(), memory_kib: None, distances: Vec::new() });
            }
            ("cpulist", Some(node)) => node.cpus = CpuSet::parse(value)?,
            ("distance", Some(node)) => node.distances = Topology::parse_distances(value, node.id)?,
            ("meminfo", Some(node)) => node.memory_kib = Some(memory_total(value, node.id)?),
            ("cluster", _) => cluster_lists.push(value),
            _ => {}
        }
    }
    let online = online.ok_or_else(|| Failure::new("the host does not tell which CPUs are online"))?;
    let topology = if nodes.is_empty() { Topology::single(online.clone()) } else { Topology::from_nodes(nodes)? };
    let clusters = clusters(&online, &cluster_lists, fallback)?;
    Ok(Machine { online, isolated, topology, clusters })
}

/// Implementer 0x48 (HiSilicon), part 0xd01 (TSV110) in the register MIDR_EL1.
fn is_kunpeng(midr: &str) -> bool {
    let digits = midr.trim().trim_start_matches("0x");
    u64::from_str_radix(digits, 16).is_ok_and(|midr| (midr >> 24) & 0xff == 0x48 && (midr >> 4) & 0xfff == 0xd01)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_read() {
        let text = "online=0-7\nisolated=\nmidr=0x00000000481fd010\nnode=0\ncpulist=0-3\ndistance=10 20\n\
                    meminfo=MemTotal:       1024 kB\nnode=1\ncpulist=4-7\ndistance=20 10\nmeminfo=MemTotal:  0 kB\n";
        let machine = parse(text).unwrap();
        assert_eq!(machine.topology.nodes()[1].memory_kib, Some(0));
        assert_eq!(machine.clusters.iter().map(CpuSet::to_string).collect::<Vec<_>>(), ["0-3", "4-7"]);
        let other = parse("online=0-3\ncluster=0-1\ncluster=0-1\ncluster=2-3\n").unwrap();
        assert_eq!(other.clusters.len(), 2);
        assert_eq!(other.topology.nodes().len(), 1);
        let unknown = parse("online=0-3\n").unwrap();
        assert_eq!(unknown.clusters.len(), 4);
        assert!(parse("").is_err());
    }

    #[test]
    fn the_processor_is_known_by_its_register() {
        assert!(is_kunpeng("0x00000000481fd010\n"));
        assert!(!is_kunpeng("0x00000000410fd083") && !is_kunpeng("x"));
    }
}
