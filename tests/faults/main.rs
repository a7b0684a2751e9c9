//! The program against hosts that fail in one way each: a real sshd, real users, real file systems. Each fault must be
//! reported for its host alone, with what to do, while the other hosts finish; and nothing may hang.
#![allow(clippy::unwrap_used)]

mod becoming;
mod disk;
mod fleet;
mod login;
mod midway;
#[path = "../support/server.rs"]
#[allow(dead_code, reason = "shared with the tests of the wire, which use more of it")]
mod server;
#[path = "../support/skip.rs"]
mod skip;
