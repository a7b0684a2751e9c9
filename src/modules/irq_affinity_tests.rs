//! Tests of irq_affinity: plans, answers, and the interrupts of a real device.

use std::fs;

use super::*;
use crate::modules::testing::{Play, play, undo};

fn pin(number: u32, before: &str, cpus: &str) -> Pin {
    Pin {
        number,
        queue: number,
        role: Role::Both,
        label: format!("eth0-TxRx-{number}"),
        before: before.to_owned(),
        cpus: CpuSet::parse(cpus).unwrap(),
    }
}

#[test]
fn only_what_differs_is_moved() {
    let pins = [pin(40, "0-3", "1"), pin(41, "2", "2"), pin(42, "0,1", "0-1")];
    let change = change("eth0", &pins).unwrap();
    assert!(change.steps[0].script.ends_with("\nw 40 1"), "{}", change.steps[0].script);
    assert!(!change.steps[0].script.contains("w 41"));
    assert_eq!(super::change("eth0", &pins[1..]), None);
}

#[test]
fn answers_tell_what_became_of_each() {
    let pins = [pin(40, "0-3", "1"), pin(41, "0-3", "2"), pin(42, "3", "3")];
    let managed = "sh: 1: printf: write error: Operation not permitted";
    let judge = |text: &str| judge(&pins, Some(&Response::output(text)));
    let states = judge(&format!("40\t1\t\n41\t0-3\t{managed}\n")).unwrap();
    assert_eq!(states, [State::Changed, State::Unsupported, State::Already]);
    let full = judge("40\t0-3\tprintf: write error: No space left on device\n41\t2\t\n").unwrap_err();
    assert!(full.message.contains("no interrupt vector left"), "{}", full.message);
    let drifted = judge("40\t0-3\t\n41\t2\t\n").unwrap_err();
    assert!(drifted.message.contains("`1` was written, but it reads back as `0-3`"), "{}", drifted.message);
    assert!(judge("").is_err());
}

/// The first device of this machine that has data interrupts, with the lock that keeps other tests from it.
fn real_device() -> Option<(String, fs::File)> {
    let lock = fs::File::create(std::env::temp_dir().join("trimtab-test-interrupts.lock")).ok()?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).ok()?;
    let table = Interrupts::parse(&fs::read_to_string("/proc/interrupts").ok()?).ok()?;
    let several = table.cpus.len() > 1;
    for entry in fs::read_dir("/sys/class/net").ok()? {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let device = fs::canonicalize(format!("/sys/class/net/{name}/device")).ok();
        let Some(interrupts) = device.and_then(|path| fs::read_dir(path.parent()?.join("msi_irqs")).ok()) else {
            continue;
        };
        let numbers: CpuSet =
            interrupts.filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse::<u32>().ok()).collect();
        let data = of_device(&table, &numbers, &name).data;
        let writable = data.iter().all(|i| fs::OpenOptions::new().write(true).open(affinity_path(i.number)).is_ok());
        if several && !data.is_empty() && writable {
            return Some((name, lock));
        }
    }
    None
}

#[test]
fn a_real_device_is_pinned_once_and_restored() {
    let Some((interface, _lock)) = real_device() else { return };
    let args = |strategy: &str, cpus: &str| {
        let mut args = vec![("interface", Value::from(interface.as_str())), ("strategy", strategy.into())];
        if !cpus.is_empty() {
            args.push(("cpus", cpus.into()));
        }
        args
    };
    let check = play(&MODULE, &args("single", "1"), &Play { check: true, ..Play::default() });
    let outcome = check.result.unwrap();
    let numbers: Vec<i64> = outcome
        .result
        .get("interrupts")
        .and_then(Value::as_list)
        .unwrap()
        .iter()
        .filter_map(|interrupt| interrupt.get("irq").and_then(Value::as_int))
        .collect();
    let lists = || -> Vec<String> {
        let read = |number: &i64| fs::read_to_string(format!("/proc/irq/{number}/smp_affinity_list")).unwrap();
        numbers.iter().map(|number| read(number).trim().to_owned()).collect()
    };
    let before = lists();
    let first = play(&MODULE, &args("single", "1"), &Play::default());
    let changed = first.result.unwrap().changed;
    let pinned = lists();
    let second = play(&MODULE, &args("single", "1"), &Play::default());
    undo(&first.changes);
    assert_eq!(lists(), before);
    assert!(pinned.iter().all(|list| list == "1"), "{pinned:?}");
    assert_eq!(changed, before.iter().any(|list| list != "1"));
    assert!(!second.result.unwrap().changed && second.changes.is_empty());

    let failure = play(&MODULE, &args("single", "4000"), &Play::default()).result.unwrap_err();
    assert!(failure.message.starts_with("CPU 4000 is not online"), "{}", failure.message);
    let spread = play(&MODULE, &args("spread_local", ""), &Play { check: true, ..Play::default() });
    assert!(spread.result.is_ok());
}

#[test]
fn devices_without_interrupts_are_refused() {
    let on = |interface: &str| {
        let args = [("interface", Value::from(interface)), ("strategy", "spread".into())];
        play(&MODULE, &args, &Play::default()).result.unwrap_err().message
    };
    assert_eq!(on("nosuchdevice0"), "the host has no network device `nosuchdevice0`");
    assert_eq!(on("lo"), "lo has no hardware behind it, so it has no interrupts");
    assert_eq!(on("a/b"), "`a/b` cannot be the name of a network device");
}
