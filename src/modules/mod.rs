//! The table of modules, and what a module is.
//!
//! A module is one file with one constant [`Module`]: its names, arguments, help, what it returns, and
//! the async function that reads, decides and changes. Adding one is that file and a line in [`MODULES`].
//! Validation, documentation and completion all read the table.

mod accounts;
mod acl;
mod add_host;
mod alternatives;
mod apt;
mod apt_key;
mod apt_repository;
mod archive;
pub mod args;
pub mod argument_spec;
mod assemble;
mod assert;
mod async_status;
mod authorized_key;
mod authorized_keys;
pub mod background;
mod bios_facts;
mod bios_tickets;
mod blockinfile;
mod command;
mod copy;
mod cpuset;
mod cron;
mod cron_table;
mod deb822_repository;
mod debconf;
mod debug;
mod dnf;
mod dnf5;
mod docker_client;
mod docker_container;
mod docker_image;
mod docker_options;
mod dpkg_selections;
mod edited_file;
pub mod engine_actions;
mod execution;
pub mod external;
mod fail;
#[cfg(test)]
mod fake_programs;
#[cfg(test)]
mod fake_systemd;
mod fetch;
mod file;
pub mod file_common;
mod filesystem;
mod find;
mod firewall;
mod firewalld;
mod fstab;
mod gem;
mod get_url;
mod getent;
mod git;
mod git_config;
mod git_plan;
mod group;
mod group_by;
mod host_keys;
mod hostname;
mod include_vars;
mod ini_edit;
mod ini_file;
mod io_scheduler;
mod iptables;
mod irq_affinity;
mod irqbalance;
mod kernel_parameters;
mod kernel_write;
mod known_hosts;
mod lineinfile;
mod locale_gen;
mod lvg;
mod lvol;
mod machine;
mod make;
mod modprobe;
mod mount;
mod mysql_client;
mod mysql_db;
mod mysql_info;
mod mysql_privileges;
mod mysql_query;
mod mysql_replication;
mod mysql_user;
mod mysql_variables;
mod network_device;
mod nic_queues;
mod npm;
mod openssl_csr;
mod openssl_dhparam;
mod openssl_files;
mod openssl_privatekey;
pub mod outcome;
mod package;
mod package_common;
mod package_facts;
mod packet_steering;
mod pam_limits;
mod pamd;
mod parted;
mod patch;
mod pause;
mod ping;
mod pip;
mod pip_version;
mod programs;
mod raw;
mod reboot;
pub mod recorded_changes;
mod replace;
mod rpm_key;
mod script;
mod seboolean;
mod selinux;
mod seport;
mod service;
mod service_cpus;
mod service_facts;
mod set_fact;
mod set_stats;
mod setup;
mod shell;
mod shell_words;
mod slurp;
pub mod stat;
mod storage_look;
mod synchronize;
mod sysctl;
mod systemd_service;
mod sysv;
mod tcp_port;
mod tempfile;
mod template;
#[cfg(test)]
pub(crate) mod testing;
mod timezone;
mod unarchive;
mod unit;
mod uri;
mod uri_body;
mod user;
mod user_key;
mod user_plan;
mod validate_argument_spec;
mod wait_for;
mod wait_for_connection;
pub(crate) mod web;
mod x509_certificate;
mod yum;
mod yum_repository;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

pub use args::{Arg, Args, Rule, Type};
pub use outcome::{Effect, Outcome};

use crate::host::{Failure, Host};
use crate::template::Context;

/// All modules, by name.
#[rustfmt::skip]
pub const MODULES: &[&Module] = &[
    &acl::MODULE,
    &add_host::MODULE,
    &alternatives::MODULE,
    &apt::MODULE,
    &apt_key::MODULE,
    &apt_repository::MODULE,
    &archive::MODULE,
    &assemble::MODULE,
    &assert::MODULE,
    &async_status::MODULE,
    &authorized_key::MODULE,
    &bios_facts::MODULE,
    &bios_tickets::MODULE,
    &blockinfile::MODULE,
    &command::MODULE,
    &copy::MODULE,
    &cpuset::MODULE,
    &cron::MODULE,
    &deb822_repository::MODULE,
    &debconf::MODULE,
    &debug::MODULE,
    &dnf5::MODULE,
    &dnf::MODULE,
    &docker_container::MODULE,
    &docker_image::MODULE,
    &dpkg_selections::MODULE,
    &engine_actions::IMPORT_ROLE,
    &engine_actions::IMPORT_TASKS,
    &engine_actions::INCLUDE,
    &engine_actions::INCLUDE_ROLE,
    &engine_actions::INCLUDE_TASKS,
    &engine_actions::META,
    &fail::MODULE,
    &fetch::MODULE,
    &file::MODULE,
    &filesystem::MODULE,
    &find::MODULE,
    &firewall::MODULE,
    &firewalld::MODULE,
    &gem::MODULE,
    &get_url::MODULE,
    &getent::MODULE,
    &git::MODULE,
    &git_config::MODULE,
    &group::MODULE,
    &group_by::MODULE,
    &hostname::MODULE,
    &include_vars::MODULE,
    &ini_file::MODULE,
    &io_scheduler::MODULE,
    &iptables::MODULE,
    &irq_affinity::MODULE,
    &irqbalance::MODULE,
    &kernel_parameters::MODULE,
    &known_hosts::MODULE,
    &lineinfile::MODULE,
    &locale_gen::MODULE,
    &lvg::MODULE,
    &lvol::MODULE,
    &make::MODULE,
    &modprobe::MODULE,
    &mount::MODULE,
    &mysql_db::MODULE,
    &mysql_info::MODULE,
    &mysql_query::MODULE,
    &mysql_replication::MODULE,
    &mysql_user::MODULE,
    &mysql_variables::MODULE,
    &nic_queues::MODULE,
    &npm::MODULE,
    &openssl_csr::MODULE,
    &openssl_dhparam::MODULE,
    &openssl_privatekey::MODULE,
    &package::MODULE,
    &package_facts::MODULE,
    &packet_steering::MODULE,
    &pam_limits::MODULE,
    &pamd::MODULE,
    &parted::MODULE,
    &patch::MODULE,
    &pause::MODULE,
    &ping::MODULE,
    &pip::MODULE,
    &raw::MODULE,
    &reboot::MODULE,
    &recorded_changes::MODULE,
    &replace::MODULE,
    &rpm_key::MODULE,
    &script::MODULE,
    &seboolean::MODULE,
    &selinux::MODULE,
    &seport::MODULE,
    &service::MODULE,
    &service_cpus::MODULE,
    &service_facts::MODULE,
    &set_fact::MODULE,
    &set_stats::MODULE,
    &setup::MODULE,
    &shell::MODULE,
    &slurp::MODULE,
    &stat::MODULE,
    &synchronize::MODULE,
    &sysctl::MODULE,
    &systemd_service::MODULE,
    &tempfile::MODULE,
    &template::MODULE,
    &timezone::MODULE,
    &unarchive::MODULE,
    &uri::MODULE,
    &user::MODULE,
    &validate_argument_spec::MODULE,
    &wait_for::MODULE,
    &wait_for_connection::MODULE,
    &x509_certificate::MODULE,
    &yum::MODULE,
    &yum_repository::MODULE,
];

/// A module: everything that trimtab knows of it.
#[derive(Debug)]
pub struct Module {
    /// Its full name: `ansible.builtin.copy`.
    pub name: &'static str,
    /// Other full names it answers to (`ansible.legacy.copy` and the bare name need not be listed).
    pub aliases: &'static [&'static str],
    /// One line: what it does.
    pub summary: &'static str,
    /// Its arguments, and groups of them that it shares with others: [`Module::arguments`] has each by itself.
    args: &'static [Arg],
    /// Conditions between arguments.
    pub rules: &'static [Rule],
    /// What free text behind the module's name means.
    pub free_form: FreeForm,
    pub check_mode: Support,
    pub diff: Support,
    /// The return values, each with one line of help.
    pub returns: &'static [(&'static str, &'static str)],
    pub action: Action,
}

/// What text without `key=value` behind a module's name means (`command: reboot now`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeForm {
    /// It is refused.
    No,
    /// It is the value of this argument (`_raw_params` if the module takes it as it is).
    Argument(&'static str),
}

/// How far a module supports check mode or diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Full,
    /// The module says in its help where it does not.
    Partial,
    None,
}

/// Who does the work.
#[derive(Debug, Clone, Copy)]
pub enum Action {
    /// The module's own function.
    Module(Run),
    /// The engine, since it steers the play itself.
    Engine(EngineAction),
}

/// The function of a module.
pub type Run = fn(Invocation) -> Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>;

/// The actions by which a playbook steers the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineAction {
    IncludeTasks,
    ImportTasks,
    /// The old `include`, which takes tasks.
    Include,
    IncludeRole,
    ImportRole,
    Meta,
}

/// What a module is called with.
#[derive(Clone)]
pub struct Invocation {
    /// The arguments, rendered and validated.
    pub args: Args,
    pub host: Host,
    /// For modules that render (template) or look for files of the controller (copy).
    pub context: Context,
    pub settings: Arc<Settings>,
}

/// What the task's keywords and the command line say to a module.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Record changes, make none.
    pub check: bool,
    /// Show before and after.
    pub diff: bool,
    pub no_log: bool,
    /// `-v` given this many times.
    pub verbosity: u8,
    /// Environment of the commands, outermost first merged.
    pub environment: Vec<(String, String)>,
    /// True if the task says `changed_when: false`: its commands only look.
    pub only_looks: bool,
    /// `async` with `poll: 0`: the work is started in the background, and killed after this time.
    pub background: Option<std::time::Duration>,
    /// `timeout`: commands that run longer are ended.
    pub time_limit: Option<std::time::Duration>,
    /// True if only the exit code decides whether the task failed.
    pub plain_failure: bool,
    /// The file of a module that is none of [`MODULES`].
    pub external: Option<std::path::PathBuf>,
    /// How the host is reached, for modules that reach it by a program of the controller.
    pub target: Option<Arc<crate::connect::Target>>,
    /// Changes that this run takes back or makes again.
    pub records: Option<Arc<recorded_changes::Records>>,
}

/// Collections under whose names modules of others are found too: what was Ansible's own before collections came, what
/// moved out of `community.general`, and a name that some roles write for `community.mysql`.
const ALSO_FOUND_AS: &[(&str, &str)] = &[
    ("ansible.builtin.", ""),
    ("ansible.legacy.", ""),
    ("community.general.", "community."),
    ("community.general.", "ansible.posix."),
    ("ansible.mysql.", "community.mysql."),
];

/// The module of this name, with or without its collection.
pub fn find(name: &str) -> Option<&'static Module> {
    find_as_named(name).or_else(|| {
        let moved = ALSO_FOUND_AS.iter().filter_map(|(from, to)| Some((name.strip_prefix(from)?, *to)));
        let mut moved = moved.filter(|(bare, _)| !bare.contains('.'));
        moved.find_map(|(bare, to)| {
            let module = find_as_named(bare)?;
            let is_of_ansible = ["ansible.", "community."].iter().any(|start| module.name.starts_with(start));
            let names = || std::iter::once(module.name).chain(module.aliases.iter().copied());
            (is_of_ansible && names().any(|name| name.starts_with(to))).then_some(module)
        })
    })
}

fn find_as_named(name: &str) -> Option<&'static Module> {
    /// All names of all modules, with their collections and without; of equal ones the first module's counts.
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Module>> = LazyLock::new(|| {
        let mut by_name = HashMap::new();
        for module in MODULES {
            for name in std::iter::once(module.name).chain(module.aliases.iter().copied()) {
                by_name.entry(name).or_insert(*module);
                by_name.entry(name.rsplit('.').next().unwrap_or(name)).or_insert(*module);
            }
        }
        by_name
    });
    BY_NAME.get(name.strip_prefix("ansible.legacy.").unwrap_or(name)).copied()
}

/// The modules that do their work on the controller alone, without a question to the host.
const OF_CONTROLLER: &[&str] = &[
    "add_host",
    "assert",
    "debug",
    "fail",
    "group_by",
    "include_vars",
    "pause",
    "set_fact",
    "set_stats",
    "validate_argument_spec",
];

/// The modules of Ansible whose `diff` is a list, even of one.
const LISTING_DIFFERENCES: &[&str] = &["apt_repository", "blockinfile", "copy", "lineinfile", "template"];

/// The modules of Ansible that return their `diff` whether or not differences are to be shown.
const ALWAYS_TELLING_DIFFERENCES: &[&str] = &["debconf", "hostname", "known_hosts", "yum_repository"];

impl Module {
    /// True if the result has its `diff` even where differences are not to be shown.
    pub fn always_tells_differences(&self) -> bool {
        ALWAYS_TELLING_DIFFERENCES.contains(&self.bare_name())
    }

    /// True if `diff` of its result is a list, even of one difference.
    pub fn lists_differences(&self) -> bool {
        LISTING_DIFFERENCES.contains(&self.bare_name())
    }

    /// False for a module that does its work on the controller alone.
    pub fn asks_the_host(&self) -> bool {
        matches!(self.action, Action::Module(_)) && !OF_CONTROLLER.contains(&self.bare_name())
    }

    /// The name without its collection.
    pub fn bare_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The facts that it returns under a name without `ansible_`.
    pub fn own_facts(&self) -> impl Iterator<Item = &'static str> {
        self.returns.iter().filter_map(|(name, _)| name.strip_prefix("ansible_facts."))
    }

    /// Its arguments, in the order of its table.
    pub fn arguments(&self) -> impl Iterator<Item = &'static Arg> + Clone {
        self.args.iter().flat_map(Arg::members)
    }

    /// The argument of this name or alias; else the one that stands for any name, if the module has it.
    pub fn arg(&self, name: &str) -> Option<&'static Arg> {
        let named = self.arguments().find(|arg| arg.name == name || arg.aliases.contains(&name));
        named.or_else(|| self.arguments().find(|arg| arg.name == args::ANY_NAME))
    }

    /// The names that its arguments go by, aliases too.
    pub fn arg_names(&self) -> impl Iterator<Item = &'static str> {
        self.arguments().flat_map(|arg| std::iter::once(arg.name).chain(arg.aliases.iter().copied()))
    }
}
