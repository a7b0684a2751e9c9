//! SSH: the settings of a host, its key, the login, and channels to run programs in.

mod agent;
mod algorithms;
mod auth;
mod client;
mod config;
mod jump;
mod known_hosts;
mod pattern;
mod settings;

pub(super) use client::Client;
pub use config::options_for;
pub(crate) use known_hosts::hmac_sha1;
pub use known_hosts::{HostKey, KnownHosts, Verdict};
