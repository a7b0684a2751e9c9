use super::*;
use crate::modules::args::validate;
use crate::modules::testing::{Play, play, undo};

fn wanted(settings: &[(&str, Value)], policy: &str) -> Result<Wanted, Failure> {
    let settings: Map = settings.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
    let given = object([("settings", settings.into()), ("policy", policy.into())]);
    Wanted::parse(&validate(&MODULE, &given).unwrap())
}

#[test]
fn limits_are_never_lowered() {
    let cases = [
        // Kernels from 5.4 have 4096; a guide for older ones says 1024.
        ("net.core.somaxconn", "4096", "1024", "at_least", "4096"),
        ("net.core.somaxconn", "128", "1024", "at_least", "1024"),
        ("net.core.somaxconn", "4096", "1024", "exact", "1024"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t6291456", "4096 87380 16777216", "at_least", "4096 131072 16777216"),
        ("net.core.rps_sock_flow_entries", "0", "30000", "exact", "32768"),
        ("vm.swappiness", "60", "1", "at_most", "1"),
        ("vm.swappiness", "0", "1", "at_most", "0"),
    ];
    for (name, present, value, policy, goal) in cases {
        let wanted = wanted(&[(name, value.into())], policy).unwrap();
        let (key, value) = &wanted.parameters[0];
        assert_eq!(wanted.goal(key, &SysctlValue::read(present), value).unwrap().to_string(), goal, "{name} {policy}");
    }
}

#[test]
fn wrong_settings_are_refused() {
    let cases: &[(&[(&str, Value)], &str)] = &[
        (&[("vm/../x", 1.into())], "is not the name of a kernel parameter"),
        (&[("vm.swappiness", Value::Null)], "needs a value"),
        (&[("vm.swappiness", "".into())], "needs a value"),
        (&[("vm.swappiness", 1.into()), ("vm/swappiness", 2.into())], "given twice"),
        (&[("vm.dirty_ratio", 5.into()), ("vm.dirty_bytes", 65536.into())], "two forms of one parameter"),
    ];
    for (settings, message) in cases {
        let failure = wanted(settings, "exact").unwrap_err();
        assert!(failure.message.contains(message), "{settings:?}: {}", failure.message);
    }
    let triple = wanted(&[("net.ipv4.tcp_rmem", "8192 4096 1".into())], "exact").unwrap();
    let (key, value) = &triple.parameters[0];
    assert!(triple.goal(key, &SysctlValue::read("4096 87380 6291456"), value).is_err());
}

#[test]
fn lines_that_are_good_enough_are_kept() {
    let cases = [
        ("", "1024", "1024", Policy::Exact, Some(format!("{HEADER}net.core.somaxconn = 1024\n"))),
        ("a.b = 1\n", "1024", "4096", Policy::AtLeast, Some("a.b = 1\nnet.core.somaxconn = 4096\n".to_owned())),
        ("net/core/somaxconn=8192\n", "1024", "4096", Policy::AtLeast, None),
        ("net.core.somaxconn = 0x400\n", "1024", "1024", Policy::Exact, None),
        (
            "# mine\nnet.core.somaxconn = 128\nnet.core.somaxconn = 1\nx.y = 2\n",
            "1024",
            "1024",
            Policy::Exact,
            Some("# mine\nnet.core.somaxconn = 1024\nx.y = 2\n".to_owned()),
        ),
    ];
    for (text, value, goal, policy, new) in cases {
        let (value, goal) = (SysctlValue::parse(value), SysctlValue::parse(goal));
        assert_eq!(edited(text, &[("net/core/somaxconn", &value, &goal)], policy), new, "{text:?}");
    }
}

#[test]
fn who_wins_at_boot_is_told() {
    let own = "/etc/sysctl.d/99-zz-trimtab.conf";
    let lines = "/etc/sysctl.d/99-sysctl.conf:vm.swappiness = 60\n/etc/sysctl.d/99-zzz.conf:# x\n\
                 /etc/sysctl.d/99-zzz.conf:net.core.somaxconn = 65535\n/etc/sysctl.conf:vm.swappiness = 60\n";
    let one = SysctlValue::parse("1");
    let found = overridden(lines, own, "vm/swappiness", &one, Policy::Exact, true);
    assert_eq!(found.len(), 1, "the link sorts before our file: {found:?}");
    assert!(found[0].starts_with("/etc/sysctl.conf:1 sets `vm.swappiness` to `60`"), "{found:?}");
    let limit = SysctlValue::parse("1024");
    assert_eq!(overridden(lines, own, "net/core/somaxconn", &limit, Policy::AtLeast, false), Vec::<String>::new());
    let found = overridden(lines, own, "net/core/somaxconn", &limit, Policy::Exact, false);
    assert!(found[0].contains("/etc/sysctl.d/99-zzz.conf:2"), "{found:?}");
}

#[test]
fn thresholds_are_checked_together() {
    let dirty = Dirty { present: [20, 0, 10, 0], memory_bytes: 8 << 30, page_bytes: 65536 };
    let value = SysctlValue::parse("1");
    let goal = |key: &'static str, number: &str| (key, &value, SysctlValue::parse(number), "", None);
    let warning = dirty.warning(&[goal("vm/dirty_ratio", "5")]).unwrap().expect("the background is above");
    assert!(warning.contains("start at 10 %"), "{warning}");
    let both = [goal("vm/dirty_ratio", "5"), goal("vm/dirty_background_ratio", "2")];
    assert_eq!(dirty.warning(&both).unwrap(), None);
    assert_eq!(dirty.warning(&[goal("vm/dirty_background_bytes", "65536")]).unwrap(), None);
    assert!(dirty.warning(&[goal("vm/dirty_ratio", "101")]).is_err());
    assert!(dirty.warning(&[goal("vm/dirty_bytes", "65536")]).is_err());
}

#[test]
fn a_file_is_written_and_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("99-zz-trimtab.conf");
    // The parameter has this value already, so only the file changes.
    let name = "kernel.pid_max";
    let present = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let settings = object([(name, present.trim().into())]);
    let args = || {
        vec![
            ("settings", settings.clone().into()),
            ("policy", "at_least".into()),
            ("file", file.to_string_lossy().into_owned().into()),
        ]
    };
    let check = play(&MODULE, &args(), &Play { check: true, ..Play::default() });
    assert!(check.result.unwrap().changed && !file.exists());
    let first = play(&MODULE, &args(), &Play::default());
    let outcome = first.result.unwrap();
    assert!(outcome.changed && first.batches == 1, "{} batches", first.batches);
    assert!(std::fs::read_to_string(&file).unwrap().ends_with(&format!("{name} = {}\n", present.trim())));
    let second = play(&MODULE, &args(), &Play::default());
    assert!(!second.result.unwrap().changed && second.changes.is_empty() && second.batches == 1);
    undo(&first.changes);
    assert!(!file.exists());
}

#[test]
fn parameters_that_are_missing_fail_or_are_skipped() {
    let settings = object([("kernel.no_such_parameter", 1.into())]);
    let args = |missing: &str| {
        vec![("settings", settings.clone().into()), ("missing", missing.into()), ("persist", false.into())]
    };
    let failure = play(&MODULE, &args("fail"), &Play::default()).result.unwrap_err();
    assert!(failure.message.contains("kernel.no_such_parameter"), "{}", failure.message);
    let outcome = play(&MODULE, &args("skip"), &Play::default()).result.unwrap();
    assert!(!outcome.changed && outcome.warnings.len() == 1);
}
