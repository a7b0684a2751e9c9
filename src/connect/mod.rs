//! The wire: how a batch of requests reaches a host and its answers come back.
//!
//! A [`Connection`] is one SSH connection (or the controller itself). For each identity (the
//! login user, root through sudo, …) it keeps one shell, opened when first needed, that reads
//! batches from its stdin. Types of the SSH library stay inside `ssh/`.

use std::fmt;
use std::time::Duration;

mod answer;
mod batch;
mod r#become;
mod channel;
mod connection;
mod local;
pub mod shell;
mod ssh;

pub use answer::{Output, replay};
pub use connection::Connection;
pub(crate) use ssh::hmac_sha1;
pub use ssh::{HostKey, KnownHosts, Verdict, options_for};

/// The names of the connections that there are, without their collection.
pub const CONNECTIONS: &[&str] = &["ssh", "local", "smart", "paramiko", "paramiko_ssh", "libssh"];

/// The ways to become another user, without their collection.
pub const BECOME_METHODS: &[&str] = &["sudo", "su"];

/// A password or key phrase: wiped when dropped, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(zeroize::Zeroizing::new(text.into()))
    }

    /// The secret itself: for the wire only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::hash::Hash for Secret {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Where a host is and how to get in, as inventory variables, settings and ~/.ssh/config say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The name in the inventory.
    pub name: String,
    pub transport: Transport,
    /// `ansible_host`, or the name.
    pub address: String,
    /// `ansible_port`; `None`: ~/.ssh/config, else 22.
    pub port: Option<u16>,
    /// `ansible_user`; `None`: ~/.ssh/config, else the user who runs trimtab.
    pub user: Option<String>,
    /// `ansible_password`, `ansible_ssh_pass`.
    pub password: Option<Secret>,
    /// `ansible_ssh_private_key_file`.
    pub private_key_file: Option<String>,
    /// The words of `ansible_ssh_common_args` and `ansible_ssh_extra_args`; `-o Option=value`, `-J`, `-F` are understood.
    pub ssh_args: Vec<String>,
    pub host_key_checking: HostKeyChecking,
    /// Until connected and logged in, and until a shell first answers.
    pub connect_timeout: Duration,
}

/// By what a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Ssh,
    /// The controller itself.
    Local,
}

/// What to do with host keys that known_hosts does not have. A changed key is always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKeyChecking {
    /// Refuse (the default).
    Strict,
    /// Accept and record.
    AcceptNew,
    /// Accept without record (`host_key_checking = False`).
    Off,
}

/// Who a shell runs as.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Identity {
    /// `None`: the login user.
    pub become_as: Option<Become>,
}

/// How to become another user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Become {
    /// `sudo` or `su`.
    pub method: String,
    pub user: String,
    pub password: Option<Secret>,
    /// `become_exe`: the program, if not the method's own.
    pub exe: Option<String>,
    /// `become_flags`, in place of the method's own.
    pub flags: Option<String>,
}

/// Why a host could not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectError {
    pub kind: ConnectErrorKind,
    /// What happened, and what to do, in one or two sentences.
    pub message: String,
    /// What had been answered when the connection broke in the middle of a batch: one for each request, without a code
    /// where it is unknown what the request did. Else empty.
    pub answers: Vec<shell::Response>,
}

impl ConnectError {
    pub fn new(kind: ConnectErrorKind, message: impl Into<String>) -> ConnectError {
        ConnectError { kind, message: message.into(), answers: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// No connection, no login, the connection broke, or no answer in time: the host is unreachable.
    Unreachable,
    /// The other user could not be become (wrong or missing password, not allowed): the task fails.
    Become,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ConnectError {}

/// What a connection has cost so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Times something was sent and its answer waited for, after login.
    pub round_trips: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}
