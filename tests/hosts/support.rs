//! What all tests of hosts share: targets, requests, the shells of this machine.

use std::process::Command;
use std::time::Duration;

pub use crate::skip::skipped;
use trimtab::connect::shell::{Guard, Request, Response, Verb};
use trimtab::connect::{Connection, HostKeyChecking, Identity, Target, Transport};

/// The shells that `sh` is on the systems of this world, as far as this machine has them.
pub fn shells() -> Vec<&'static str> {
    let shells = ["dash", "bash --posix", "busybox ash"];
    let there = |shell: &&str| {
        let program = shell.split(' ').next().unwrap();
        let found =
            Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap().status.success();
        if !found {
            skipped(&format!("there is no {program}"));
        }
        found
    };
    shells.into_iter().filter(there).collect()
}

/// Says something to whoever runs the tests with `--nocapture`.
#[expect(clippy::print_stdout, reason = "captured otherwise")]
pub fn told(text: &str) {
    println!("{text}");
}

pub fn local() -> Target {
    Target {
        name: "controller".to_owned(),
        transport: Transport::Local,
        address: "localhost".to_owned(),
        port: None,
        user: None,
        password: None,
        private_key_file: None,
        ssh_args: Vec::new(),
        host_key_checking: HostKeyChecking::Strict,
        connect_timeout: Duration::from_secs(10),
    }
}

pub async fn connect(shell: &str) -> Connection {
    Connection::open_with_shell(&local(), shell).await.unwrap()
}

pub fn read(verb: Verb) -> Request {
    Request { verb, guard: Guard::Always, expect: None, writes: None }
}

pub fn chained(verb: Verb) -> Request {
    Request { guard: Guard::Chained, ..read(verb) }
}

pub fn expecting(verb: Verb, expect: &str) -> Request {
    Request { expect: Some(expect.to_owned()), ..chained(verb) }
}

pub fn script(text: &str) -> Verb {
    Verb::Script { text: text.to_owned(), stdin: None }
}

pub fn fed(text: &str, stdin: impl Into<Vec<u8>>) -> Verb {
    Verb::Script { text: text.to_owned(), stdin: Some(stdin.into()) }
}

pub fn line(path: &str) -> Verb {
    Verb::Line { path: path.to_owned() }
}

pub fn content(path: &str) -> Verb {
    Verb::Content { path: path.to_owned() }
}

pub fn stat(path: &str, follow: bool) -> Verb {
    Verb::Stat { path: path.to_owned(), follow }
}

pub fn checksum(path: &str, algorithm: &'static str) -> Verb {
    Verb::Checksum { path: path.to_owned(), algorithm }
}

pub fn login() -> Identity {
    Identity::default()
}

/// Runs requests as the login user.
pub async fn run(connection: &mut Connection, requests: Vec<Request>) -> Vec<Response> {
    connection.run(&login(), &requests).await.unwrap()
}
