//! Hosts that are lost in the middle of a batch.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::fleet::{Fleet, by_password};
use crate::server::{self, User};

/// The processes of sshd that serve a user.
fn sessions(user: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let title = fs::read(path.join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&title).starts_with(&format!("sshd: {user}")) {
            found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    found
}

fn signal(name: &str, processes: &[String]) {
    assert!(!processes.is_empty());
    assert!(Command::new("kill").arg(name).args(processes).status().unwrap().success());
}

/// Waits until a file exists.
fn wait_for(path: &std::path::Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    // and what was answered before has time to arrive
    std::thread::sleep(Duration::from_secs(2));
}

#[test]
fn a_connection_that_breaks_in_the_middle() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("broken", "");
    let place = fleet.place("bad");
    let command = format!("sh -c \"touch {}/began; sleep 40\"", place.display());
    fleet.add("bad", &format!("{} command={}", by_password(&user), crate::fleet::quoted(&command)));
    let run = fleet.spawn(&[]);
    wait_for(&place.join("began"));
    signal("-KILL", &sessions(&user.name));
    let ended = fleet.judge(run.wait());
    ended.unreachable("bad", "command", &["the connection broke", "what the rest did is unknown"]);
    assert_eq!(ended.counts("bad"), [1, 1, 1, 0]);
    fleet.holds("bad", &["began", "first"]);
}

/// The host is there, but nothing on it moves any more: only the keepalive of SSH tells.
#[test]
fn a_host_that_freezes_in_the_middle() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("frozen", "");
    let place = fleet.place("bad");
    let command = format!("sh -c \"touch {}/began; sleep 40\"", place.display());
    let alive = "ansible_ssh_common_args='-o ServerAliveInterval=1 -o ServerAliveCountMax=2'";
    fleet.add("bad", &format!("{} {alive} command={}", by_password(&user), crate::fleet::quoted(&command)));
    let run = fleet.spawn(&[]);
    wait_for(&place.join("began"));
    let frozen = sessions(&user.name);
    signal("-STOP", &frozen);
    let begin = Instant::now();
    let ended = run.wait();
    signal("-KILL", &frozen);
    let ended = fleet.judge(ended);
    ended.unreachable("bad", "command", &["the server no longer answers", "what the rest did is unknown"]);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(ended.counts("bad"), [1, 1, 1, 0]);
    fleet.holds("bad", &["began", "first"]);
}

/// The shell of the host is killed, the connection is not.
#[test]
fn a_shell_that_is_killed_in_the_middle() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    // the answer of the task before it has time to arrive
    let command = "sh -c \"sleep 1; kill -9 $PPID; sleep 1\"";
    fleet.add("bad", &format!("{} command={}", fleet.as_root(), crate::fleet::quoted(command)));
    let ended = fleet.run();
    ended.unreachable("bad", "command", &["what the rest did is unknown"]);
    assert_eq!(ended.counts("bad"), [1, 1, 1, 0]);
    fleet.holds("bad", &["first"]);
}
