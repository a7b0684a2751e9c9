//! The options that several subcommands share, by the names that Ansible's tools have for them.

use clap::{ArgAction, Args};

/// Which hosts.
#[derive(Debug, Default, Clone, Args)]
pub struct InventoryArgs {
    /// Inventory: a file, a directory, or hosts with commas (`web1,`); may be given several times
    #[arg(short = 'i', long = "inventory", visible_alias = "inventory-file", value_name = "SOURCE")]
    pub inventory: Vec<String>,
    /// Only these of the hosts: a pattern, or @FILE with one on each line
    #[arg(short = 'l', long = "limit", value_name = "PATTERN")]
    pub limit: Option<String>,
    /// Forget the facts that are kept between runs
    #[arg(long, hide = true)]
    pub flush_cache: bool,
}

/// Variables from the command line.
#[derive(Debug, Default, Clone, Args)]
pub struct VariableArgs {
    /// Variables that stand above all others: NAME=VALUE, YAML, JSON or @FILE; may be given several times
    #[arg(short = 'e', long = "extra-vars", value_name = "VARS")]
    pub extra_vars: Vec<String>,
    #[command(flatten)]
    pub vault: VaultArgs,
}

/// Passwords of what is encrypted with Ansible Vault.
#[derive(Debug, Default, Clone, Args)]
pub struct VaultArgs {
    /// A password of Ansible Vault and its label: LABEL@FILE or LABEL@prompt; may be given several times
    #[arg(long, value_name = "LABEL@SOURCE", help_heading = "Vault")]
    pub vault_id: Vec<String>,
    /// Read the vault password from a file, or from what a program prints; may be given several times
    #[arg(long, visible_alias = "vault-pass-file", value_name = "FILE", help_heading = "Vault")]
    pub vault_password_file: Vec<String>,
    /// Ask for the vault password
    #[arg(short = 'J', long = "ask-vault-password", visible_alias = "ask-vault-pass", help_heading = "Vault")]
    pub ask_vault_password: bool,
}

/// How hosts are reached, and as whom tasks run.
#[derive(Debug, Default, Clone, Args)]
pub struct ConnectionArgs {
    /// Log in as this user
    #[arg(short = 'u', long = "user", value_name = "NAME", help_heading = "Connection")]
    pub user: Option<String>,
    /// Log in with this key
    #[arg(long = "private-key", visible_alias = "key-file", value_name = "FILE", help_heading = "Connection")]
    pub private_key: Option<String>,
    /// How hosts are reached: ssh or local
    #[arg(short = 'c', long, value_name = "KIND", help_heading = "Connection")]
    pub connection: Option<String>,
    /// Seconds until a host counts as unreachable
    #[arg(short = 'T', long, value_name = "SECONDS", help_heading = "Connection")]
    pub timeout: Option<u64>,
    /// Options of ssh (`-o Name=value`, `-J HOST`, `-F FILE`)
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Connection")]
    pub ssh_common_args: Option<String>,
    /// Further options of ssh
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, help_heading = "Connection")]
    pub ssh_extra_args: Option<String>,
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub sftp_extra_args: Option<String>,
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub scp_extra_args: Option<String>,
    /// Ask for the login password
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub ask_pass: bool,
    /// Read the login password from a file
    #[arg(long, visible_alias = "conn-pass-file", value_name = "FILE", help_heading = "Connection")]
    pub connection_password_file: Option<String>,
    /// Become another user for tasks
    #[arg(short = 'b', long = "become", help_heading = "Other users")]
    pub r#become: bool,
    /// How to become another user: sudo or su
    #[arg(long, value_name = "METHOD", help_heading = "Other users")]
    pub become_method: Option<String>,
    /// Whom to become (root)
    #[arg(long, value_name = "NAME", help_heading = "Other users")]
    pub become_user: Option<String>,
    /// Ask for the password of become
    #[arg(short = 'K', long, help_heading = "Other users")]
    pub ask_become_pass: bool,
    /// Read the password of become from a file
    #[arg(long, visible_alias = "become-pass-file", value_name = "FILE", help_heading = "Other users")]
    pub become_password_file: Option<String>,
}

/// What a run does and shows.
#[derive(Debug, Default, Clone, Args)]
pub struct RunArgs {
    /// Change nothing; say what would change
    #[arg(short = 'C', long)]
    pub check: bool,
    /// Show before and after of what changes
    #[arg(short = 'D', long)]
    pub diff: bool,
    /// Hosts talked to at once
    #[arg(short = 'f', long, value_name = "NUMBER")]
    pub forks: Option<u64>,
    /// How the run is reported: ansible, condensed, minimal, oneline, json, jsonl
    #[arg(long, value_name = "FORMAT")]
    pub output: Option<String>,
    /// Directories with executables that are modules, apart by colons
    #[arg(short = 'M', long, value_name = "PATH")]
    pub module_path: Vec<String>,
}

/// How much is said.
#[derive(Debug, Default, Clone, Args)]
pub struct VerbosityArgs {
    /// Say more; up to -vvv
    #[arg(short = 'v', long = "verbose", action = ArgAction::Count)]
    pub verbose: u8,
}
