//! Tests of nic_queues: what is planned from the texts of ethtool, and a real device in a network namespace.

use super::*;
use crate::modules::args::validate;
use crate::modules::network_device::testing::{Namespace, set_up};
use crate::modules::testing::{Play, Played, play};
use crate::value::Map;

const CHANNELS: &str = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t16\n\
                        Current hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t4\n";
const RINGS: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\n\
                     Current hardware settings:\nRX:\t\t512\nTX:\t\t1024\n";
const FEATURES: &str = "Features for eth0:\ngeneric-receive-offload: on\nlarge-receive-offload: off [fixed]\n";

fn planned(args: &[(&str, Value)]) -> Result<Plan, Failure> {
    let mut given: Map = args.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
    given.insert("interface".into(), "eth0".into());
    let seen = Seen {
        interface: "eth0".to_owned(),
        channels: Response::output(CHANNELS),
        rings: Response::output(RINGS),
        features: Response::output(FEATURES),
        had_carrier: true,
    };
    plan(&validate(&MODULE, &given).unwrap(), &seen)
}

#[test]
fn only_what_differs_is_set() {
    let first = |steps: &[Step]| {
        steps
            .iter()
            .map(|step| step.script.lines().next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
            .join("; ")
    };
    // arguments, first lines of the steps, and of the inverse
    type Case = (Vec<(&'static str, Value)>, &'static str, &'static str);
    let cases: Vec<Case> = vec![
        (vec![("queues", 8.into())], "ethtool -L eth0 combined 8 || exit", "ethtool -L eth0 combined 4 || exit"),
        (vec![("queues", 4.into())], "", ""),
        (
            vec![("queues", 64.into()), ("above_maximum", "maximum".into())],
            "ethtool -L eth0 combined 16 || exit",
            "ethtool -L eth0 combined 4 || exit",
        ),
        (
            vec![("rx_ring", 4096.into()), ("tx_ring", 1024.into())],
            "ethtool -G eth0 rx 4096 || exit",
            "ethtool -G eth0 rx 512 || exit",
        ),
        (
            vec![
                ("queues", 2.into()),
                ("features", Value::map(crate::value::object([("gro", false.into()), ("lro", false.into())]))),
            ],
            "ethtool -L eth0 combined 2 || exit; ethtool -K eth0 gro off >&2 || exit",
            "ethtool -K eth0 gro on >&2 || exit; ethtool -L eth0 combined 4 || exit",
        ),
    ];
    for (args, forth, back) in cases {
        let change = planned(&args).unwrap().change;
        assert_eq!(change.as_ref().map_or(String::new(), |change| first(&change.steps)), forth, "{args:?}");
        if let Some(Inverse::Steps(steps)) = change.map(|change| change.inverse) {
            assert_eq!(first(&steps), back, "{args:?}");
        }
    }
}

#[test]
fn what_the_device_cannot_do_is_refused() {
    let lro = Value::map(crate::value::object([("lro", true.into())]));
    let cases = [
        (("queues", 64.into()), "eth0: 64 combined queues are wanted, but the device has at most 16"),
        (("queues", Value::from(-1)), "queues cannot be negative"),
        (("tx_ring", 8192.into()), "eth0: a tx ring of 8192 is wanted, but the device has at most 4096"),
        (("features", lro), "eth0: the feature `lro` is fixed"),
    ];
    for (arg, message) in cases {
        let failure = planned(&[arg]).unwrap_err();
        assert!(failure.message.starts_with(message), "{}", failure.message);
    }
}

fn on_veth(namespace: &Namespace, args: &[(&str, Value)], check: bool) -> Played {
    let mut given = vec![("interface", Value::from("veth0"))];
    given.extend(args.iter().cloned());
    play(&MODULE, &given, &Play { check, shell: namespace.shell() })
}

#[test]
fn a_real_device_is_set_once_and_restored() {
    let Some(namespace) = set_up() else { return };
    let rx =
        |namespace: &Namespace| namespace.run("ethtool -l veth0 | awk '/^Current/ { c = 1 } c && /^RX:/ { print $2 }'");
    assert_eq!(rx(&namespace), "4");
    assert!(on_veth(&namespace, &[("queues", 2.into())], true).result.unwrap().changed);
    assert_eq!(rx(&namespace), "4", "check mode changes nothing");
    let first = on_veth(&namespace, &[("queues", 2.into())], false);
    let outcome = first.result.unwrap();
    assert!(outcome.changed && outcome.result.get("resets") == Some(&true.into()));
    assert_eq!(rx(&namespace), "2");
    let second = on_veth(&namespace, &[("queues", 2.into())], false).result.unwrap();
    assert!(!second.changed && second.result.get("queues") == Some(&2.into()));
    namespace.undo(&first.changes);
    assert_eq!(rx(&namespace), "4");

    let gro = |on: bool| [("features", Value::map(crate::value::object([("gro", on.into())])))];
    let state =
        |namespace: &Namespace| namespace.run("ethtool -k veth0 | awk '/^generic-receive-offload/ { print $2 }'");
    let was = state(&namespace) == "on";
    let switched = on_veth(&namespace, &gro(!was), false);
    assert!(switched.result.unwrap().changed);
    assert_eq!(state(&namespace) == "on", !was);
    assert!(!on_veth(&namespace, &gro(!was), false).result.unwrap().changed);

    let failure = on_veth(&namespace, &[("rx_ring", 64.into())], false).result.unwrap_err();
    assert!(failure.message.starts_with("the rings of veth0 cannot be had: netlink error"), "{}", failure.message);
    let failure = on_veth(&namespace, &[("queues", 9.into())], false).result.unwrap_err();
    assert!(failure.message.starts_with("veth0: 9 receive queues are wanted"), "{}", failure.message);
}
