//! What the command line and the configuration ask of a run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::fact_cache::FactCache;
use crate::connect::{HostKeyChecking, Secret};
use crate::modules::recorded_changes::Records;

/// How many invocations of a host are worked on at once; see `TRIMTAB_WINDOW`.
pub const DEFAULT_WINDOW: usize = 256;

/// How many hosts are talked to at once.
pub const DEFAULT_FORKS: usize = 256;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    pub check: bool,
    pub diff: bool,
    pub verbosity: u8,
    /// Invocations of one host worked on at once; 1 turns the reading ahead off.
    pub window: usize,
    /// Hosts talked to at once.
    pub forks: usize,
    pub tags: Vec<String>,
    pub skip_tags: Vec<String>,
    pub force_handlers: bool,
    /// A handler that is notified and not there ends the run; else it is a warning.
    pub error_on_missing_handler: bool,
    pub pattern_mismatch: PatternMismatch,
    /// The text of `--limit`, for `ansible_limit`.
    pub limit: Option<String>,
    pub gathering: Gathering,
    /// Facts are variables too, not only within `ansible_facts`.
    pub inject_facts: bool,
    /// Facts are kept between runs.
    pub fact_cache: Option<FactCache>,
    /// The task debugger is there for whatever failed or could not be reached.
    pub debugger: bool,
    /// Failures that are ignored are not debugged.
    pub debugger_ignores_errors: bool,
    /// Ask before each task.
    pub step: bool,
    /// Forget what is kept.
    pub flush_cache: bool,
    /// Plays without a `strategy` let each host go its own way.
    pub free: bool,
    pub connection: ConnectionDefaults,
    pub privilege: PrivilegeDefaults,
    pub roles_path: Vec<PathBuf>,
    /// Directories with modules of one's own, behind `library/` of role and playbook.
    pub library: Vec<PathBuf>,
    /// Changes that this run takes back or makes again.
    pub records: Option<Arc<Records>>,
}

/// What a pattern of `hosts` that matches nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternMismatch {
    Ignored,
    Warning,
    Error,
}

/// When facts are gathered at the start of a play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathering {
    /// Unless the play says no.
    Implicit,
    /// Only if the play says so.
    Explicit,
    /// Unless the host's facts are known already.
    Smart,
}

/// How hosts are reached where neither variables nor keywords say otherwise.
#[derive(Debug, Clone)]
pub struct ConnectionDefaults {
    /// `ssh`, `local`, …
    pub connection: String,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub private_key_file: Option<String>,
    pub ssh_args: Vec<String>,
    pub host_key_checking: HostKeyChecking,
    pub timeout: Duration,
}

/// How another user is become where neither variables nor keywords say otherwise.
#[derive(Debug, Clone)]
pub struct PrivilegeDefaults {
    pub enabled: bool,
    pub method: String,
    pub user: String,
    pub password: Option<Secret>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            check: false,
            diff: false,
            verbosity: 0,
            window: DEFAULT_WINDOW,
            forks: DEFAULT_FORKS,
            tags: Vec::new(),
            skip_tags: Vec::new(),
            force_handlers: false,
            error_on_missing_handler: true,
            pattern_mismatch: PatternMismatch::Warning,
            limit: None,
            gathering: Gathering::Implicit,
            inject_facts: true,
            fact_cache: None,
            debugger: false,
            debugger_ignores_errors: true,
            step: false,
            flush_cache: false,
            free: false,
            connection: ConnectionDefaults {
                connection: "ssh".to_owned(),
                user: None,
                password: None,
                private_key_file: None,
                ssh_args: Vec::new(),
                host_key_checking: HostKeyChecking::Strict,
                timeout: Duration::from_secs(10),
            },
            privilege: PrivilegeDefaults {
                enabled: false,
                method: "sudo".to_owned(),
                user: "root".to_owned(),
                password: None,
            },
            roles_path: Vec::new(),
            library: Vec::new(),
            records: None,
        }
    }
}
