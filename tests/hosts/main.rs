//! The wire against real shells, a real sshd and a real sudo on this machine.
#![allow(clippy::unwrap_used)]

mod support;
mod verbs;
