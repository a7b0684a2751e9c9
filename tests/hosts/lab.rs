//! The shipped playbooks on the hosts of the lab (`tests/lab/up 3`): what they change, that it is there, that a second run
//! changes nothing. What is on a host is read by OpenSSH, not by trimtab.
//!
//! Without a lab of this clone these tests are skipped, and say so.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{skipped, told};

/// There is one lab, so one test at a time.
static LAB: Mutex<()> = Mutex::new(());

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const HOSTS: [(&str, &str); 3] = [("kp001", "enp125s0f0"), ("kp002", "enp125s0f0"), ("in001", "ens1f0")];
const CONTAINER: &str = "/sys/fs/cgroup/cpuset/kubepods/burstable/pod6f0a5c1e-2b7d-4c58-9a53-0d1f7e9b4a21/\
                         4b1d6a0c9e7f2358b4a1c6d0e9f87a625c3b1d4e6f708192a3b4c5d6e7f80910";
/// Two to open the shell of root together with all that is asked first, and one batch: what was to be asked for these answers.
const ROUND_TRIPS: u64 = 3;

/// Fresh hosts, for as long as the guard lives.
fn lab() -> Option<MutexGuard<'static, ()>> {
    let guard = LAB.lock().unwrap_or_else(PoisonError::into_inner);
    let clone = std::fs::read_to_string("/run/trimtab-lab/clone").unwrap_or_default();
    if !Path::new(ROOT).join("target/lab/inventory.yml").exists() || clone.trim() != ROOT {
        skipped("no lab of this clone is up; `tests/lab/up 3` starts one");
        return None;
    }
    if HOSTS.iter().any(|(host, _)| !Path::new("/run/trimtab-lab/hosts").join(host).exists()) {
        skipped("the lab has too few hosts; `tests/lab/up 3` starts enough");
        return None;
    }
    let reset = Command::new("tests/lab/reset").current_dir(ROOT).output().unwrap();
    assert!(reset.status.success(), "{}", String::from_utf8_lossy(&reset.stderr));
    Some(guard)
}

/// The output of a command on a host, by OpenSSH.
fn on(host: &str, command: &str) -> String {
    let output = ssh(host, command);
    assert!(output.status.success(), "{host}: {command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

fn ssh(host: &str, command: &str) -> Output {
    let command = format!("PATH=$PATH:/usr/sbin; {command}");
    Command::new("ssh").args(["-F", "target/lab/ssh_config", host, &command]).current_dir(ROOT).output().unwrap()
}

/// What a run said.
struct Run {
    events: Vec<Value>,
}

/// Runs a playbook of the product; tickets go into `tickets`.
fn play(playbook: &str, tickets: &Path, more: &[&str]) -> Run {
    let directory = format!("bios_checklist_directory={}", tickets.display());
    let output = Command::new(env!("CARGO_BIN_EXE_trimtab"))
        // a host without systemd, if the lab has one, is none of those that the roles are for
        .args(["play", "-i", "target/lab/inventory.yml", "--limit", "kp001,kp002,in001"])
        .args(["--output", "jsonl", "-e", &directory])
        .args(more)
        .arg(format!("playbooks/{playbook}.yml"))
        .current_dir(ROOT)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let events = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let run = Run { events };
    assert!(
        output.status.success(),
        "{playbook}: {}\n{}\n{:?}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
        run.of_status(&["failed", "unreachable"])
    );
    run
}

impl Run {
    /// `HOST TASK [ITEM]` of results with one of these states.
    fn of_status(&self, states: &[&str]) -> BTreeSet<String> {
        let results = self.events.iter().filter(|event| event["event"] == "result");
        let wanted = results.filter(|event| states.iter().any(|state| event["status"] == *state));
        // The whole of a loop says nothing that its items do not.
        let parts = wanted.filter(|event| event["result"].get("results").is_none());
        parts
            .map(|event| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let item = event["result"].get("item").map(Value::to_string).unwrap_or_default();
                // The item of a handler is the result of another task, with all that came of it.
                let item = if event["task"]["handler"] == true { String::new() } else { item };
                format!("{} {} {item}", text(&event["host"]), text(&event["task"]["name"])).trim_end().to_owned()
            })
            .collect()
    }

    fn changed(&self) -> BTreeSet<String> {
        self.of_status(&["changed"])
    }

    fn round_trips(&self, host: &str) -> u64 {
        let costs = self.events.iter().filter(|event| event["event"] == "host_cost" && event["host"] == host);
        costs.filter_map(|event| event["round_trips"].as_u64()).sum()
    }
}

/// All that the playbooks may alter on a host, as one text.
fn state(host: &str, interface: &str) -> String {
    on(
        host,
        &format!(
            "grep -H '' /sys/block/*/queue/scheduler /sys/block/*/queue/nr_requests /proc/sys/vm/dirty_* /proc/sys/vm/swappiness \
             /proc/sys/net/core/somaxconn {CONTAINER}/cpuset.cpus {CONTAINER}/cpuset.mems /proc/irq/*/smp_affinity_list \
             /sys/class/net/{interface}/queues/*/rps_cpus; ethtool -l {interface}; ls -R /etc/sysctl.d /etc/udev /etc/systemd; \
             systemctl show -p ActiveState -p UnitFileState -p MainPID firewalld irqbalance cron"
        ),
    )
}

/// The affinity of each interrupt that belongs to a queue of the device.
fn interrupts(host: &str) -> Vec<String> {
    let lines = on(
        host,
        "for i in $(sed -n '/TxRx/s/:.*//p' /proc/interrupts); do [ -e /sys/class/net/e*f0/device/msi_irqs/$i ] && \
         cat /proc/irq/$i/smp_affinity_list; done; true",
    );
    lines.lines().map(str::to_owned).collect()
}

/// What the site playbook promises, read from the host.
fn assert_tuned(host: &str, interface: &str) {
    assert_is_kept(host);
    for unit in ["firewalld", "irqbalance"] {
        let properties = on(host, &format!("systemctl show -p ActiveState -p UnitFileState {unit}"));
        assert_eq!(properties, "ActiveState=inactive\nUnitFileState=disabled", "{host}: {unit}");
    }
    let channels = on(host, &format!("ethtool -l {interface} | grep Combined: | tail -n 1"));
    assert_eq!(channels.split_whitespace().last(), Some("8"), "{host}");
    let interrupts = interrupts(host);
    assert_eq!(interrupts.len(), 8, "{host}: {interrupts:?}");
    if host.starts_with("kp") {
        assert!(interrupts.iter().all(|cpus| cpus == "31"), "{host}: {interrupts:?}");
    } else {
        let cpus: BTreeSet<u32> = interrupts.iter().map(|cpus| cpus.parse().unwrap()).collect();
        assert_eq!(cpus.len(), 8, "{host}: each queue has a CPU of its own: {interrupts:?}");
        assert!(cpus.iter().all(|cpu| *cpu < 32 && !(16..24).contains(cpu)), "{host}: {interrupts:?}");
    }
    let steering = on(host, &format!("cat /sys/class/net/{interface}/queues/rx-*/rps_cpus"));
    assert!(!steering.is_empty() && steering.chars().all(|c| matches!(c, '0' | ',' | '\n')), "{host}: {steering}");
    assert_eq!(on(host, &format!("cat {CONTAINER}/cpuset.cpus {CONTAINER}/cpuset.mems")), "16-23\n0", "{host}");
    let node = if host.starts_with("kp") { "0-31" } else { "0-31,64-95" };
    let drop_in = on(host, "cat /etc/systemd/system/cron.service.d/50-trimtab-cpus.conf");
    assert_eq!(drop_in, format!("# Written by trimtab.\n[Service]\nCPUAffinity=\nCPUAffinity={node}"), "{host}");
    let affinity = on(host, "systemctl show -p CPUAffinity -p ActiveState cron");
    assert_eq!(affinity.replace(' ', ","), format!("CPUAffinity={node}\nActiveState=active"), "{host}");
}

/// What holds after the next boot too.
fn assert_is_kept(host: &str) {
    for disk in ["nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1", "sda"] {
        let queue = on(host, &format!("cat /sys/block/{disk}/queue/scheduler /sys/block/{disk}/queue/nr_requests"));
        assert!(queue.contains("[mq-deadline]") && queue.ends_with("\n2048"), "{host} {disk}: {queue}");
    }
    let memory = on(host, "cd /proc/sys/vm && cat dirty_ratio dirty_background_ratio swappiness");
    assert_eq!(memory, "5\n2\n1", "{host}");
}

fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|had| had == ending)).collect();
    paths.sort();
    paths
}

#[test]
fn the_site_is_tuned_once_and_then_left_alone() {
    let Some(_lab) = lab() else { return };
    let tickets = tempfile::tempdir().unwrap();
    let first = play("site", tickets.path(), &[]);
    for (host, interface) in HOSTS {
        let changed: BTreeSet<String> = first.changed().into_iter().filter(|line| line.starts_with(host)).collect();
        for role in ["firewall", "io-scheduler", "vm", "nic-irq", "numa"] {
            assert!(changed.iter().any(|line| line.starts_with(&format!("{host} {role} :"))), "{role}: {changed:#?}");
        }
        assert_tuned(host, interface);
    }

    // One ticket for each of the two platforms: SMMU and prefetching of Kunpeng, what the Xeon host lacks.
    let markdown: String =
        files(tickets.path(), "md").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let rows: String = files(tickets.path(), "csv").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(
        !files(tickets.path(), "md").is_empty()
            && files(tickets.path(), "md").len() == files(tickets.path(), "csv").len()
    );
    for text in ["kp001", "kp002", "SMMU", "EnableSMMU", "K1", "127.77.1.1", "mysql-orders"] {
        assert!(markdown.contains(text), "{text}: {markdown}");
    }
    assert!(rows.contains("kp001") && rows.contains("EnableSMMU"), "{rows}");

    let second = play("site", tickets.path(), &[]);
    assert_eq!(second.changed(), BTreeSet::new());
    for (host, interface) in HOSTS {
        let trips = second.round_trips(host);
        told(&format!("{host}: {} round trips on the fresh host, {trips} on the tuned one", first.round_trips(host)));
        assert!((1..=ROUND_TRIPS).contains(&trips), "{host}: {trips} round trips");
        assert_tuned(host, interface);
    }
    for playbook in ["firewall", "io-scheduler", "vm", "nic-irq", "numa", "bios-checklist"] {
        let run = play(playbook, tickets.path(), &[]);
        assert_eq!(run.changed(), BTreeSet::new(), "{playbook}");
        for (host, _) in HOSTS {
            assert!(run.round_trips(host) <= ROUND_TRIPS, "{playbook}: {host}: {}", run.round_trips(host));
        }
    }
}

#[test]
fn what_is_written_down_holds_after_a_boot() {
    let Some(_lab) = lab() else { return };
    let tickets = tempfile::tempdir().unwrap();
    for playbook in ["io-scheduler", "vm", "firewall"] {
        play(playbook, tickets.path(), &["-l", "kp001"]);
    }
    let boot = on("kp001", "cat /proc/sys/kernel/random/boot_id");
    ssh("kp001", "sudo systemctl reboot");
    let given_up = Instant::now() + Duration::from_secs(120);
    loop {
        let answer =
            ssh("kp001", "cat /proc/sys/kernel/random/boot_id && systemctl is-system-running --wait >/dev/null; true");
        let now = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        if answer.status.success() && !now.is_empty() && now != boot {
            break;
        }
        assert!(Instant::now() < given_up, "kp001 does not come back");
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_is_kept("kp001");
    assert_eq!(on("kp001", "systemctl is-active firewalld; true"), "inactive");
    for playbook in ["io-scheduler", "vm", "firewall"] {
        assert_eq!(play(playbook, tickets.path(), &["-l", "kp001"]).changed(), BTreeSet::new(), "{playbook}");
    }
}

#[test]
fn a_check_changes_nothing_and_says_what_the_run_will_change() {
    let Some(_lab) = lab() else { return };
    let tickets = tempfile::tempdir().unwrap();
    let before = HOSTS.map(|(host, interface)| state(host, interface));
    let check = play("site", tickets.path(), &["--check", "--diff"]);
    let after = HOSTS.map(|(host, interface)| state(host, interface));
    for ((before, after), (host, _)) in before.iter().zip(&after).zip(HOSTS) {
        assert_eq!(before, after, "{host}");
    }
    assert_eq!(files(tickets.path(), "md"), Vec::<PathBuf>::new());
    let real = play("site", tickets.path(), &[]);
    // New queues get new interrupts, which cannot be looked at before; nor can a unit be whose drop-in is not there yet.
    let unknown = check.of_status(&["unknown"]);
    let is_expected =
        |line: &String| line.contains(" nic-irq : CPUs that ") || line.ends_with(" numa : Restart bound services");
    assert!(unknown.iter().all(is_expected), "{unknown:#?}");
    let known = |run: &Run| -> BTreeSet<String> { run.changed().difference(&unknown).cloned().collect() };
    assert_eq!(known(&check), known(&real));
    assert!(known(&real).len() >= 3 * 7, "{:#?}", known(&real));
}

#[test]
fn what_is_off_by_default_works_too() {
    let Some(_lab) = lab() else { return };
    let tickets = tempfile::tempdir().unwrap();
    let ports = r#"{"firewall_mode": "keep", "firewall_ports": ["3306/tcp"]}"#;
    let steering = r#"{"nic_irq_strategy": "spread_local", "nic_irq_cpus": "0-31", "nic_irq_exclude": "16-23", "nic_irq_receive": "auto"}"#;
    let runs = [("vm", "vm_network=true"), ("firewall", ports), ("nic-irq", steering)];
    for (playbook, variables) in runs {
        assert!(!play(playbook, tickets.path(), &["-e", variables]).changed().is_empty(), "{playbook}");
        assert_eq!(play(playbook, tickets.path(), &["-e", variables]).changed(), BTreeSet::new(), "{playbook}");
    }
    // Limits are raised, never lowered: these kernels begin with 4096 and 128.
    for (host, somaxconn, receive) in
        [("kp001", "4096", "4096 131072 16777216"), ("in001", "1024", "4096 87380 16777216")]
    {
        let limits = on(host, "cd /proc/sys/net && cat core/somaxconn ipv4/tcp_rmem");
        assert_eq!(limits.replace('\t', " "), format!("{somaxconn}\n{receive}"), "{host}");
    }
    for (host, interface) in HOSTS {
        let passed = on(host, "sudo firewall-cmd --list-ports; sudo firewall-cmd --permanent --list-ports");
        assert_eq!(passed, "3306/tcp\n3306/tcp", "{host}");
        let masks = on(host, &format!("cat /sys/class/net/{interface}/queues/rx-*/rps_cpus"));
        let interrupts = interrupts(host);
        let first = masks.lines().next().unwrap_or_default().rsplit(',').next().unwrap_or_default();
        let mask = u32::from_str_radix(first, 16).unwrap();
        assert!(mask != 0 && mask & 0x00ff_0000 == 0, "{host}: {masks}");
        for cpu in &interrupts {
            assert_eq!(mask & (1 << cpu.parse::<u32>().unwrap()), 0, "{host}: {masks}, interrupts on {interrupts:?}");
        }
    }
}
