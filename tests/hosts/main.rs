//! The wire against real shells, a real sshd and a real sudo on this machine.
#![allow(clippy::unwrap_used)]

mod becoming;
mod chain;
mod cost;
mod generated;
mod lab;
mod login;
#[path = "../support/server.rs"]
mod server;
#[path = "../support/skip.rs"]
mod skip;
mod support;
mod target;
mod undo;
mod verbs;
mod window;
