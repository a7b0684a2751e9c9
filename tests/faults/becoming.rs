//! Hosts where another user cannot be become.

use std::fs;

use crate::fleet::{Fleet, by_password, quoted};
use crate::server::{self, User};
use crate::skip::skipped;

fn possible() -> bool {
    if !fs::exists("/usr/bin/sudo").unwrap() {
        skipped("there is no /usr/bin/sudo");
        return false;
    }
    server::possible()
}

#[test]
fn a_sudo_password_that_is_wrong_or_missing_and_a_lecture() {
    if !possible() {
        return;
    }
    let mut fleet = Fleet::start();
    // its sudo lectures every time
    let user = User::create("sudoer", "ALL=(ALL) ALL");
    let stranger = User::create("stranger", "");
    let sudo = format!("{} ansible_become=true", by_password(&user));
    fleet.add("wrong", &format!("{sudo} ansible_become_password=wrong"));
    fleet.add("missing", &sudo);
    fleet.add("lectured", &format!("{sudo} ansible_become_password={}", quoted(&user.password)));
    let stranger = format!(
        "{0} ansible_become=true ansible_become_password={1}",
        by_password(&stranger),
        quoted(&stranger.password)
    );
    fleet.add("stranger", &stranger);
    fleet.add("nobody", &format!("{} ansible_become=true ansible_become_user=nosuchuser", fleet.as_root()));
    let ended = fleet.run();
    ended.failed("wrong", "first file", &["Incorrect sudo password"]);
    ended.failed("missing", "first file", &["Missing sudo password", "ansible_become_password", "--ask-become-pass"]);
    ended.failed("stranger", "first file", &["not allowed to become `root`"]);
    ended.failed("nobody", "first file", &["there is no user `nosuchuser` to become"]);
    assert_eq!(ended.counts("lectured"), [3, 3, 0, 0]);
    fleet.holds("lectured", &["first", "second", "touched"]);
    for host in ["wrong", "missing", "stranger", "nobody"] {
        fleet.holds(host, &[]);
    }
}

#[test]
fn a_sudo_that_wants_a_terminal_or_is_not_there() {
    if !possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("terminal", "ALL=(ALL) NOPASSWD: ALL\nDefaults requiretty");
    fleet.add("terminal", &format!("{} ansible_become=true", by_password(&user)));
    fleet.add("absent", &format!("{} ansible_become=true ansible_become_exe=/usr/local/bin/no-sudo", fleet.as_root()));
    fleet.add("su", &format!("{} ansible_become=true ansible_become_method=su", by_password(&user)));
    let ended = fleet.run();
    ended.failed("terminal", "first file", &["wants a terminal", "requiretty"]);
    ended.failed("absent", "first file", &["`/usr/local/bin/no-sudo` was not found on the host"]);
    ended.failed("su", "first file", &["Missing su password"]);
}
