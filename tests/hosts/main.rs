//! The wire against real shells, a real sshd and a real sudo on this machine.
#![allow(clippy::unwrap_used)]

mod becoming;
mod chain;
mod lab;
mod login;
mod server;
mod support;
mod verbs;
mod window;
