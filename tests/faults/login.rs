//! Hosts that cannot be reached or do not let us in.

use std::fs;
use std::net::TcpListener;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::server::{self, User};

#[test]
fn a_closed_port() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let port = server::free_port();
    fleet.add("bad", &format!("{} ansible_port={port}", fleet.as_root()));
    let ended = fleet.run();
    ended.unreachable("bad", "first file", &[&format!("cannot connect to `127.0.0.1` port {port}"), "refused"]);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}

#[test]
fn a_name_that_does_not_resolve() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    fleet.add("bad", &format!("{} ansible_host=no-such-host.invalid", fleet.as_root()));
    fleet.run().unreachable("bad", "first file", &["`no-such-host.invalid`"]);
}

/// Accepts connections, and that is all.
#[test]
fn a_server_that_never_speaks() {
    if !server::possible() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut fleet = Fleet::start();
    fleet.add("bad", &format!("{} ansible_port={port} ansible_timeout=2", fleet.as_root()));
    let ended = fleet.run();
    ended.unreachable("bad", "first file", &["did not let us in within 2 seconds"]);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}

#[test]
fn a_host_key_that_is_another_or_not_known() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let known = fs::read_to_string(fleet.server.path("known_hosts")).unwrap();
    let other = format!("{known}changed {}\n", fleet.server.public_key("id"));
    fs::write(fleet.server.path("known_hosts"), other).unwrap();
    for name in ["changed", "unknown"] {
        fleet.add(name, &format!("{} ansible_ssh_common_args='-o HostKeyAlias={name}'", fleet.as_root()));
    }
    let ended = fleet.run();
    let file = format!("{}:2", fleet.server.text("known_hosts"));
    ended.unreachable("changed", "first file", &["has changed", "SHA256:", &file, "remove that line"]);
    ended.unreachable("unknown", "first file", &["is not known", "SHA256:", "ssh-keyscan", "accept-new"]);
    for name in ["changed", "unknown"] {
        fleet.holds(name, &[]);
    }
}

#[test]
fn a_user_or_a_key_or_a_password_that_is_not_let_in() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("in", "");
    let key = fleet.server.text("host_ecdsa");
    fleet.add("user", &fleet.by_key("nosuchuser"));
    fleet.add("key", &format!("{} ansible_ssh_private_key_file={key}", fleet.as_root()));
    fleet.add("file", &format!("{} ansible_ssh_private_key_file=/no/such/key", fleet.as_root()));
    fleet.add("password", &format!("ansible_user={} ansible_password=wrong", user.name));
    let ended = fleet.run();
    ended.unreachable(
        "user",
        "first file",
        &["Permission denied (publickey", "`nosuchuser@127.0.0.1:", &fleet.server.text("id")],
    );
    ended.unreachable("key", "first file", &["Permission denied (publickey", &key]);
    ended.unreachable("file", "first file", &["Permission denied (publickey", "`/no/such/key` does not exist"]);
    ended.unreachable("password", "first file", &["Invalid/incorrect password"]);
}

#[test]
fn a_user_without_a_shell() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("nologin", "ALL=(ALL) NOPASSWD: ALL");
    user.set_shell("/usr/sbin/nologin");
    let login = crate::fleet::by_password(&user);
    fleet.add("login", &login);
    fleet.add("become", &format!("{login} ansible_become=true"));
    let ended = fleet.run();
    for host in ["login", "become"] {
        ended.unreachable(host, "first file", &["This account is currently not available", "login shell"]);
    }
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}

/// What shells print at login comes before anything else, on both streams.
#[test]
fn noise_at_login_harms_nobody() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("noisy", "ALL=(ALL) NOPASSWD: ALL");
    user.set_shell("/bin/bash");
    let noise = "echo Welcome to the host\nprintf 'no \\377 text, no newline'\necho a warning >&2\n";
    for name in [".bashrc", ".profile", ".bash_profile"] {
        fs::write(format!("/home/{}/{name}", user.name), noise).unwrap();
    }
    let login = crate::fleet::by_password(&user);
    fleet.add("noisy", &login);
    fleet.add("become", &format!("{login} ansible_become=true"));
    fleet.add("loginshell", &format!("{login} ansible_become=true ansible_become_flags='-H -i'"));
    let ended = fleet.run();
    assert_eq!(ended.code, 0);
    for host in ["noisy", "become", "loginshell"] {
        assert_eq!(ended.counts(host), [3, 3, 0, 0], "{host}");
        fleet.holds(host, &["first", "second", "touched"]);
    }
}

/// A host that cannot be asked for its facts is told as any other, and hosts that wait for their turn get it.
#[test]
fn many_bad_hosts_and_one_connection_at_a_time() {
    if !server::possible() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().port();
    let mut fleet = Fleet::start();
    for name in ["bad1", "bad2"] {
        fleet.add(name, &format!("{} ansible_port={silent} ansible_timeout=1", fleet.as_root()));
    }
    fleet.add("bad3", &format!("{} ansible_port={}", fleet.as_root(), server::free_port()));
    let ended = fleet.run_with(&["--forks", "1", "-e", "gather=true"]);
    for name in ["bad1", "bad2"] {
        ended.unreachable(name, "Gathering Facts", &["did not let us in within 1 seconds"]);
    }
    ended.unreachable("bad3", "Gathering Facts", &["connection refused"]);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
}
