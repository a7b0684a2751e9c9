//! Tests of packet_steering: plans for a machine with four nodes, and a real device in a network namespace.

use super::*;
use crate::modules::args::validate;
use crate::modules::network_device::testing::{Namespace, set_up};
use crate::modules::testing::{Play, Played, play};
use crate::tuning::topology::{Node, Topology};
use crate::value::Map;

const EMPTY: &str = "00000000,00000000,00000000,00000000";

fn set(text: &str) -> CpuSet {
    CpuSet::parse(text).unwrap()
}

/// 128 CPUs on four nodes, a device on node 1 with two queues whose interrupts go to the CPUs 32 and 40.
fn seen() -> Seen {
    let rows = [[10, 12, 20, 22], [12, 10, 22, 24], [20, 22, 10, 12], [22, 24, 12, 10]];
    let node = |id: u32| Node {
        id,
        cpus: CpuSet::range(id * 32, id * 32 + 31),
        memory_kib: None,
        distances: rows[id as usize].to_vec(),
    };
    let online = CpuSet::range(0, 127);
    let files = (0..2).flat_map(|queue| {
        [
            (queue_file("eth0", "rx", queue, "rps_cpus"), format!("{EMPTY}\n")),
            (queue_file("eth0", "rx", queue, "rps_flow_cnt"), "0\n".to_owned()),
            (queue_file("eth0", "tx", queue, "xps_cpus"), format!("{EMPTY}\n")),
        ]
    });
    Seen {
        interface: "eth0".to_owned(),
        rx: 2,
        tx: 2,
        node: Some(1),
        machine: Machine {
            online,
            isolated: CpuSet::new(),
            topology: Topology::from_nodes((0..4).map(node).collect()).unwrap(),
            clusters: Vec::new(),
        },
        interrupting: set("32,40"),
        entries: Some("0\n".to_owned()),
        files: files.collect(),
    }
}

fn planned(args: &[(&str, Value)], seen: &Seen) -> Result<Plan, Failure> {
    let mut given: Map = args.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
    given.insert("interface".into(), "eth0".into());
    plan(&Wanted::parse(&validate(&MODULE, &given)?)?, seen)
}

#[test]
fn packets_stay_near_the_device_and_off_its_interrupts() {
    let plan = planned(&[("receive", "auto".into()), ("exclude", "48-63".into())], &seen()).unwrap();
    assert_eq!(plan.receive, Some(set("33-39,41-47")));
    let change = plan.change.unwrap();
    assert_eq!(change.steps.len(), 2);
    assert_eq!(change.steps[0].expect.as_deref(), Some("00000000,00000000,0000fefe,00000000"));
    let off = planned(&[("receive", "off".into())], &seen()).unwrap();
    assert_eq!((off.receive, off.change), (Some(CpuSet::new()), None));
    let off = planned(&[("receive", false.into())], &seen()).unwrap();
    assert_eq!(off.receive, Some(CpuSet::new()));
    let many = Seen { rx: 128, ..seen() };
    assert_eq!(planned(&[("receive", "auto".into())], &many).unwrap().receive, Some(CpuSet::new()));
}

#[test]
fn flows_are_shared_by_the_queues() {
    let plan = planned(&[("flows", 32000.into())], &seen()).unwrap();
    assert_eq!(plan.flows, Some(16384));
    let change = plan.change.unwrap();
    let shown: Vec<_> = change.steps.iter().filter_map(|step| step.expect.as_deref()).collect();
    assert_eq!(shown, ["32768", "16384", "16384"]);
    // Another device may need the larger table.
    let larger = Seen { entries: Some("65536".to_owned()), ..seen() };
    assert_eq!(planned(&[("flows", 32000.into())], &larger).unwrap().change.unwrap().steps.len(), 2);
    assert!(planned(&[("flows", (-1).into())], &seen()).is_err());
}

#[test]
fn each_cpu_has_one_send_queue() {
    let plan = planned(&[("send", "0-3".into())], &seen()).unwrap();
    assert_eq!(plan.send, [set("0,2"), set("1,3")]);
    let single = Seen { tx: 1, ..seen() };
    let plan = planned(&[("send", "auto".into())], &single).unwrap();
    assert_eq!((plan.change, plan.warnings.len()), (None, 1));
    assert!(planned(&[("send", "500".into())], &seen()).is_err());
    assert!(planned(&[("send", "x".into())], &seen()).is_err());
}

fn on_veth(namespace: &Namespace, args: &[(&str, Value)], check: bool) -> Played {
    let mut given = vec![("interface", Value::from("veth0"))];
    given.extend(args.iter().cloned());
    play(&MODULE, &given, &Play { check, shell: namespace.shell() })
}

#[test]
fn a_real_device_is_steered_once_and_restored() {
    let Some(namespace) = set_up() else { return };
    let read = |file: &str| namespace.run(&format!("cat /sys/class/net/veth0/queues/{file}"));
    let files = ["rx-0/rps_cpus", "rx-3/rps_cpus", "rx-0/rps_flow_cnt", "tx-0/xps_cpus", "tx-1/xps_cpus"];
    let all = || files.map(read);
    let before = all();
    let args = [("receive", Value::from("0")), ("flows", 4000.into()), ("send", "0-1".into())];
    assert!(on_veth(&namespace, &args, true).result.unwrap().changed);
    assert_eq!(all(), before, "check mode changes nothing");

    let first = on_veth(&namespace, &args, false);
    let outcome = first.result.unwrap();
    assert!(outcome.changed);
    assert_eq!(outcome.result.get("flows"), Some(&1024.into()));
    assert_eq!(all().map(|text| u32::from_str_radix(&text, 16).unwrap()), [1, 1, 0x1024, 1, 2]);
    let second = on_veth(&namespace, &args, false);
    assert!(!second.result.unwrap().changed && second.changes.is_empty());
    namespace.undo(&first.changes);
    assert_eq!(all(), before);
}
