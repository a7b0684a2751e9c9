//! Tests of firewall on a pretended systemd and a pretended firewalld.

use super::*;
use crate::modules::fake_systemd::FakeSystemd;
use crate::modules::testing::{Play, Played, play};

/// Ports are lines of the files `runtime` and `permanent` beside the program.
const FIREWALL_CMD: &str = r#"#!/bin/sh
D=$(dirname "$0")
grep -q '^ActiveState=active' "$D/unit.firewalld" || exit 252
f=runtime
for a; do
  case $a in
  --permanent) f=permanent ;;
  --state) exit 0 ;;
  --list-all-zones) echo "public (active)"; echo "  interfaces: eth0"; sed 's/^/  ports: /' "$D/$f" 2>/dev/null; exit 0 ;;
  --query-port=*) if grep -qx "${a#*=}" "$D/$f" 2>/dev/null; then echo yes; exit 0; fi; echo no; exit 1 ;;
  --add-port=*) echo "${a#*=}" >>"$D/$f"; echo success; exit 0 ;;
  --remove-port=*) grep -vx "${a#*=}" "$D/$f" >"$D/new"; mv "$D/new" "$D/$f"; exit 0 ;;
  --runtime-to-permanent) cp "$D/runtime" "$D/permanent"; echo success; exit 0 ;;
  esac
done
exit 2
"#;

fn firewalld(active: &str, file: &str) -> FakeSystemd {
    let systemd = FakeSystemd::new();
    systemd.unit("firewalld", active, file, "");
    systemd.program("firewall-cmd", FIREWALL_CMD);
    // A start loads the files.
    systemd
        .program("firewall-offline-cmd", "#!/bin/sh\ngrep -qx \"${1#*=}\" \"$(dirname \"$0\")/permanent\" 2>/dev/null");
    systemd
}

fn on(systemd: &FakeSystemd, args: &[(&str, &str)], check: bool) -> Played {
    let given: Vec<(&str, Value)> = args.iter().map(|(name, value)| (*name, Value::from(*value))).collect();
    play(&MODULE, &given, &Play { check, shell: systemd.shell() })
}

#[test]
fn each_mode_is_reached_once_and_taken_back() {
    let cases = [
        ("stopped", "active", "enabled", "inactive disabled", "stop disable"),
        ("masked", "active", "enabled", "inactive masked", "stop disable mask"),
        ("masked", "inactive", "disabled", "inactive masked", "mask"),
        ("keep", "inactive", "masked", "active enabled", "unmask enable start"),
        ("keep", "inactive", "disabled", "active enabled", "enable start"),
    ];
    for (mode, active, file, state, verbs) in cases {
        let systemd = firewalld(active, file);
        let before = systemd.state("firewalld");
        assert!(on(&systemd, &[("mode", mode)], true).result.unwrap().changed);
        assert_eq!((systemd.state("firewalld"), systemd.log()), (before.clone(), String::new()), "check mode");
        let first = on(&systemd, &[("mode", mode)], false);
        assert!(first.result.unwrap().changed);
        assert_eq!(systemd.state("firewalld"), state, "{mode} from {active}, {file}");
        let log = systemd.log();
        let said: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(said.join(" "), verbs);
        let second = on(&systemd, &[("mode", mode)], false);
        assert!(!second.result.unwrap().changed && second.changes.is_empty());
        systemd.undo(&first.changes);
        assert_eq!(systemd.state("firewalld"), before);
    }
}

#[test]
fn a_service_that_is_not_installed_needs_no_stop() {
    let systemd = firewalld("inactive", "disabled");
    let outcome = on(&systemd, &[("mode", "masked"), ("services", "ufw")], false).result.unwrap();
    assert!(!outcome.changed);
    let failure = on(&systemd, &[("mode", "keep"), ("services", "ufw")], false).result.unwrap_err();
    assert_eq!(failure.message, "ufw.service: it is to be kept running but is not installed");
}

#[test]
fn rules_that_would_be_lost_are_not_lost_silently() {
    let systemd = firewalld("active", "enabled");
    let shell = |line: &str| {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{} -c '{line}'", systemd.shell())])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    shell("firewall-cmd --add-port=80/tcp");
    let failure = on(&systemd, &[("mode", "stopped")], false).result.unwrap_err();
    assert!(failure.message.contains("rules that are not in its files"), "{}", failure.message);
    assert_eq!(systemd.state("firewalld"), "active enabled");
    assert!(on(&systemd, &[("mode", "stopped"), ("unsaved", "save")], false).result.unwrap().changed);
    shell("systemctl start firewalld");
    assert_eq!(shell("firewall-cmd --permanent --query-port=80/tcp"), "yes");
}

#[test]
fn containers_are_not_cut_off_silently() {
    let systemd = firewalld("active", "enabled");
    systemd.unit("docker", "active", "enabled", "");
    let failure = on(&systemd, &[("mode", "stopped")], false).result.unwrap_err();
    assert!(failure.message.starts_with("containers run on this host"), "{}", failure.message);
    let outcome = on(&systemd, &[("mode", "stopped"), ("containers", "allow")], false).result.unwrap();
    assert!(outcome.changed && outcome.warnings.len() == 1);
}

#[test]
fn kept_services_pass_ports_now_and_after_a_restart() {
    let args = [("mode", "keep"), ("ports", "3306/tcp,9000-9010/udp")];
    for active in ["active", "inactive"] {
        let systemd = firewalld(active, "enabled");
        assert!(on(&systemd, &args, true).result.unwrap().changed);
        let first = on(&systemd, &args, false);
        assert!(first.result.unwrap().changed);
        let second = on(&systemd, &args, false);
        assert!(!second.result.unwrap().changed && second.changes.is_empty(), "{active}");
        systemd.undo(&first.changes);
        assert_eq!(systemd.state("firewalld"), format!("{active} enabled"));
        assert_eq!(systemd.text("permanent"), "", "{active}");
    }
    let failure =
        on(&firewalld("active", "enabled"), &[("mode", "stopped"), ("ports", "1/tcp")], false).result.unwrap_err();
    assert!(failure.message.starts_with("`ports` go with"), "{}", failure.message);
}

#[test]
fn wrong_names_and_ports_are_refused() {
    for port in ["3306", "0/tcp", "70000/tcp", "9-5/tcp", "a/tcp", "1/icmp", "1-x/tcp"] {
        assert!(check_port(port).is_err(), "{port}");
    }
    assert!(check_port("5000-5010/udp").is_ok());
    assert!(service_name("a b").is_err() && service_name("-x").is_err());
    assert!(check_zone("a;b").is_err() && check_zone("internal").is_ok());
}

#[test]
fn a_connection_keeps_its_port() {
    assert!(ssh_rule(22).starts_with("firewall-offline-cmd --query-service=ssh"));
    assert!(ssh_rule(2222).ends_with("firewall-offline-cmd --add-port=2222/tcp >/dev/null"));
    let answer = Response::output(
        "backend=nftables\nssh=2222\nruntime=public (active)\nruntime=  interfaces: eth0\npermanent=public\n",
    );
    let details = parse_details(&answer, &[]);
    assert_eq!((details.ssh_port, details.flushes(), details.has_unsaved()), (Some(2222), false, false));
    let args = crate::modules::args::validate(&MODULE, &object([("mode", "keep".into())])).unwrap();
    let unit =
        UnitState { id: FIREWALLD.into(), load: "loaded".into(), active: "inactive".into(), file: "enabled".into() };
    let change = unit_change(&args, Mode::Keep, &unit, &details).unwrap().unwrap();
    assert!(
        change.steps[0].script.contains("--add-port=2222/tcp") && change.steps[1].script.starts_with("systemctl start")
    );
}
