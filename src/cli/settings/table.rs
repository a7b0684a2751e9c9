//! The table of settings: where each may be set, what it is without, and what it does.
//!
//! Names, sections and variables are Ansible's:
//! <https://docs.ansible.com/ansible/latest/reference_appendices/config.html>

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key in `ansible.cfg`.
    pub key: &'static str,
    /// The sections of `ansible.cfg` it may stand in; the first is the usual one.
    pub sections: &'static [&'static str],
    /// Environment variables, the first one that is set counts.
    pub variables: &'static [&'static str],
    /// `""`: not set.
    pub default: &'static str,
    pub meaning: Meaning,
    /// One line.
    pub help: &'static str,
}

/// Whether a setting does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Honoured,
    /// It changes nothing here.
    Ignored,
    /// It would change what playbooks mean: any other value than the default is refused.
    OnlyDefault,
}

const DEFAULTS: &[&str] = &["defaults"];
const SSH: &[&str] = &["ssh_connection", "defaults"];
const ESCALATION: &[&str] = &["privilege_escalation", "defaults"];
const TRIMTAB: &[&str] = &["trimtab"];
const INVENTORY: &[&str] = &["inventory", "defaults"];

const fn honoured(
    key: &'static str,
    sections: &'static [&'static str],
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key, sections, variables, default, meaning: Meaning::Honoured, help }
}

const fn ignored(
    key: &'static str,
    sections: &'static [&'static str],
    variables: &'static [&'static str],
    help: &'static str,
) -> Setting {
    Setting { key, sections, variables, default: "", meaning: Meaning::Ignored, help }
}

const fn only_default(
    key: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key, sections: DEFAULTS, variables, default, meaning: Meaning::OnlyDefault, help }
}

/// All settings, by theme.
pub const SETTINGS: &[Setting] = &[
    honoured("inventory", DEFAULTS, &["ANSIBLE_INVENTORY"], "", "Inventories, apart by commas"),
    honoured(
        "library",
        DEFAULTS,
        &["ANSIBLE_LIBRARY"],
        "~/.ansible/plugins/modules:/usr/share/ansible/plugins/modules",
        "Directories with executables that are modules, apart by colons",
    ),
    honoured(
        "roles_path",
        DEFAULTS,
        &["ANSIBLE_ROLES_PATH"],
        "~/.ansible/roles:/usr/share/ansible/roles:/etc/ansible/roles",
        "Directories with roles, apart by colons",
    ),
    honoured(
        "collections_path",
        DEFAULTS,
        &["ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_COLLECTIONS_PATHS"],
        "~/.ansible/collections:/usr/share/ansible/collections",
        "Directories that hold `ansible_collections`, apart by colons",
    ),
    honoured("collections_paths", DEFAULTS, &[], "", "Old name of `collections_path`"),
    honoured(
        "gather_subset",
        DEFAULTS,
        &["ANSIBLE_GATHER_SUBSET"],
        "",
        "Groups of facts that plays gather which name none, apart by commas",
    ),
    honoured(
        "gather_timeout",
        DEFAULTS,
        &["ANSIBLE_GATHER_TIMEOUT"],
        "",
        "Seconds to wait for slow facts in plays that do not say",
    ),
    honoured("fact_path", DEFAULTS, &["ANSIBLE_FACT_PATH"], "", "Directory of local facts for plays that do not say"),
    honoured(
        "any_errors_fatal",
        DEFAULTS,
        &["ANSIBLE_ANY_ERRORS_FATAL"],
        "",
        "Whether a failure on one host ends plays that do not say",
    ),
    honoured("no_log", DEFAULTS, &["ANSIBLE_NO_LOG"], "", "Show and keep no results of plays that do not say"),
    honoured("task_timeout", DEFAULTS, &["ANSIBLE_TASK_TIMEOUT"], "", "Seconds after which tasks fail; 0: never"),
    honoured("ask_vault_pass", DEFAULTS, &["ANSIBLE_ASK_VAULT_PASS"], "false", "Ask for the vault password"),
    honoured(
        "playbook_dir",
        DEFAULTS,
        &["ANSIBLE_PLAYBOOK_DIR"],
        "",
        "Stands for the playbook's directory where there is none",
    ),
    honoured("forks", DEFAULTS, &["ANSIBLE_FORKS"], "256", "Hosts talked to at once"),
    honoured(
        "strategy",
        DEFAULTS,
        &["ANSIBLE_STRATEGY"],
        "linear",
        "What plays without `strategy` have: `free` and `host_pinned` let each host go its own way",
    ),
    honoured(
        "gathering",
        DEFAULTS,
        &["ANSIBLE_GATHERING"],
        "implicit",
        "When facts are gathered: implicit, explicit or smart",
    ),
    honoured(
        "inject_facts_as_vars",
        DEFAULTS,
        &["ANSIBLE_INJECT_FACT_VARS"],
        "true",
        "Facts are variables too, not only within `ansible_facts`",
    ),
    honoured(
        "fact_caching",
        DEFAULTS,
        &["ANSIBLE_CACHE_PLUGIN"],
        "memory",
        "Where facts are kept between runs: jsonfile; anything else keeps nothing",
    ),
    honoured(
        "fact_caching_connection",
        DEFAULTS,
        &["ANSIBLE_CACHE_PLUGIN_CONNECTION"],
        "",
        "The directory of jsonfile, a file for each host",
    ),
    honoured(
        "fact_caching_prefix",
        DEFAULTS,
        &["ANSIBLE_CACHE_PLUGIN_PREFIX"],
        "",
        "Stands before the host in the name of its file",
    ),
    honoured(
        "fact_caching_timeout",
        DEFAULTS,
        &["ANSIBLE_CACHE_PLUGIN_TIMEOUT"],
        "86400",
        "Seconds after which kept facts are forgotten; 0: never",
    ),
    honoured(
        "private_role_vars",
        DEFAULTS,
        &["ANSIBLE_PRIVATE_ROLE_VARS"],
        "false",
        "Roles keep their variables to themselves, unless `public` says otherwise",
    ),
    honoured(
        "enable_task_debugger",
        DEFAULTS,
        &["ANSIBLE_ENABLE_TASK_DEBUGGER"],
        "false",
        "Start the task debugger for whatever failed",
    ),
    honoured(
        "task_debugger_ignore_errors",
        DEFAULTS,
        &["ANSIBLE_TASK_DEBUGGER_IGNORE_ERRORS"],
        "true",
        "Not where `ignore_errors` lets the failure pass",
    ),
    honoured(
        "localhost_warning",
        DEFAULTS,
        &["ANSIBLE_LOCALHOST_WARNING"],
        "true",
        "Warn if there is no host but the controller itself",
    ),
    honoured(
        "force_handlers",
        DEFAULTS,
        &["ANSIBLE_FORCE_HANDLERS"],
        "false",
        "Run notified handlers of hosts that failed",
    ),
    honoured(
        "error_on_missing_handler",
        DEFAULTS,
        &["ANSIBLE_ERROR_ON_MISSING_HANDLER"],
        "true",
        "End the run where a handler is notified that is not there, rather than warn",
    ),
    honoured(
        "host_pattern_mismatch",
        INVENTORY,
        &["ANSIBLE_HOST_PATTERN_MISMATCH"],
        "warning",
        "What a pattern that matches no host is: ignore, warning or error",
    ),
    honoured(
        "ansible_managed",
        DEFAULTS,
        &["ANSIBLE_MANAGED"],
        "Ansible managed",
        "The text of `ansible_managed` in templates",
    ),
    honoured("module_name", DEFAULTS, &["ANSIBLE_MODULE_NAME"], "command", "The module of `trimtab run` without `-m`"),
    honoured("run", &["tags"], &["ANSIBLE_RUN_TAGS"], "", "Tags to run, as `--tags`"),
    honoured("skip", &["tags"], &["ANSIBLE_SKIP_TAGS"], "", "Tags to leave out, as `--skip-tags`"),
    honoured("always", &["diff"], &["ANSIBLE_DIFF_ALWAYS"], "false", "Show differences, as `--diff`"),
    honoured("context", &["diff"], &["ANSIBLE_DIFF_CONTEXT"], "3", "Unchanged lines around a difference"),
    honoured(
        "journal",
        TRIMTAB,
        &["TRIMTAB_JOURNAL"],
        "",
        "The file of the journal; `off`: none. Without it `.trimtab/journal.db` where there is a directory `.trimtab`, \
         else `~/.local/state/trimtab/journal.db`",
    ),
    // vault
    honoured(
        "vault_password_file",
        DEFAULTS,
        &["ANSIBLE_VAULT_PASSWORD_FILE"],
        "",
        "A file with the vault password, or a program that prints it, as `--vault-password-file`",
    ),
    honoured(
        "vault_identity_list",
        DEFAULTS,
        &["ANSIBLE_VAULT_IDENTITY_LIST"],
        "",
        "Vault ids, apart by commas, each as for `--vault-id`",
    ),
    honoured("vault_identity", DEFAULTS, &["ANSIBLE_VAULT_IDENTITY"], "default", "The vault id of what has no label"),
    honoured(
        "vault_id_match",
        DEFAULTS,
        &["ANSIBLE_VAULT_ID_MATCH"],
        "false",
        "Try only passwords with the vault id that a file or value was encrypted for",
    ),
    honoured(
        "vault_encrypt_identity",
        DEFAULTS,
        &["ANSIBLE_VAULT_ENCRYPT_IDENTITY"],
        "",
        "The vault id to encrypt with, as `--encrypt-vault-id`",
    ),
    honoured(
        "vault_encrypt_salt",
        DEFAULTS,
        &["ANSIBLE_VAULT_ENCRYPT_SALT"],
        "",
        "The salt to encrypt with, for equal results of equal input; random if not set",
    ),
    // connection
    honoured("transport", DEFAULTS, &["ANSIBLE_TRANSPORT"], "ssh", "How hosts are reached: ssh or local"),
    honoured("remote_user", DEFAULTS, &["ANSIBLE_REMOTE_USER"], "", "Whom to log in as"),
    honoured("private_key_file", DEFAULTS, &["ANSIBLE_PRIVATE_KEY_FILE"], "", "The key to log in with"),
    honoured(
        "timeout",
        &["defaults", "ssh_connection"],
        &["ANSIBLE_TIMEOUT", "ANSIBLE_SSH_TIMEOUT"],
        "10",
        "Seconds until a host counts as unreachable",
    ),
    honoured(
        "host_key_checking",
        &["defaults", "ssh_connection"],
        &["ANSIBLE_HOST_KEY_CHECKING", "ANSIBLE_SSH_HOST_KEY_CHECKING"],
        "true",
        "Refuse unknown host keys; `accept-new` records them",
    ),
    honoured("ssh_args", SSH, &["ANSIBLE_SSH_ARGS"], "", "Options of ssh; `-o`, `-J` and `-F` are understood"),
    honoured("ssh_common_args", SSH, &["ANSIBLE_SSH_COMMON_ARGS"], "", "Further options of ssh"),
    honoured("ssh_extra_args", SSH, &["ANSIBLE_SSH_EXTRA_ARGS"], "", "Further options of ssh"),
    honoured("ask_pass", DEFAULTS, &["ANSIBLE_ASK_PASS"], "false", "Ask for the login password, as `--ask-pass`"),
    honoured(
        "connection_password_file",
        DEFAULTS,
        &["ANSIBLE_CONNECTION_PASSWORD_FILE"],
        "",
        "A file with the login password",
    ),
    honoured("remote_port", DEFAULTS, &["ANSIBLE_REMOTE_PORT"], "", "The port of hosts that have no other"),
    // other users
    honoured("become_exe", ESCALATION, &["ANSIBLE_BECOME_EXE"], "", "The path of sudo or su"),
    honoured("become_flags", ESCALATION, &["ANSIBLE_BECOME_FLAGS"], "", "Options of sudo or su"),
    honoured("become", ESCALATION, &["ANSIBLE_BECOME"], "false", "Become another user, as `--become`"),
    honoured("become_method", ESCALATION, &["ANSIBLE_BECOME_METHOD"], "sudo", "How: sudo or su"),
    honoured("become_user", ESCALATION, &["ANSIBLE_BECOME_USER"], "root", "Whom to become"),
    honoured("become_ask_pass", ESCALATION, &["ANSIBLE_BECOME_ASK_PASS"], "false", "Ask for the password of become"),
    honoured(
        "become_password_file",
        DEFAULTS,
        &["ANSIBLE_BECOME_PASSWORD_FILE"],
        "",
        "A file with the password of become",
    ),
    // what is shown
    honoured("stdout_callback", DEFAULTS, &["ANSIBLE_STDOUT_CALLBACK"], "default", "The report, as `--output`"),
    honoured("verbosity", DEFAULTS, &["ANSIBLE_VERBOSITY"], "0", "As that many `-v`"),
    honoured(
        "display_skipped_hosts",
        DEFAULTS,
        &["ANSIBLE_DISPLAY_SKIPPED_HOSTS", "DISPLAY_SKIPPED_HOSTS"],
        "true",
        "Show skipped tasks",
    ),
    honoured("display_ok_hosts", DEFAULTS, &["ANSIBLE_DISPLAY_OK_HOSTS"], "true", "Show tasks that changed nothing"),
    honoured("show_custom_stats", DEFAULTS, &["ANSIBLE_SHOW_CUSTOM_STATS"], "false", "Show what set_stats collected"),
    honoured("nocolor", DEFAULTS, &["ANSIBLE_NOCOLOR", "NO_COLOR"], "false", "No colours"),
    honoured("force_color", DEFAULTS, &["ANSIBLE_FORCE_COLOR"], "false", "Colours even where there is no terminal"),
    // what would change the meaning of playbooks
    honoured(
        "jinja2_native",
        DEFAULTS,
        &["ANSIBLE_JINJA2_NATIVE"],
        "",
        "Without it a lone expression keeps its type; `false`: all are text, `true`: text becomes what it spells, both as before 2.19",
    ),
    honoured(
        "hash_behaviour",
        DEFAULTS,
        &["ANSIBLE_HASH_BEHAVIOUR"],
        "replace",
        "What a map does to one of the same name that counts less: replace or merge",
    ),
    only_default("precedence", &["ANSIBLE_PRECEDENCE"], "", "The order of the levels of variables is Ansible's own"),
    only_default(
        "playbook_vars_root",
        &["ANSIBLE_PLAYBOOK_VARS_ROOT"],
        "top",
        "group_vars and host_vars are read beside the playbook",
    ),
    only_default(
        "error_on_undefined_vars",
        &["ANSIBLE_ERROR_ON_UNDEFINED_VARS"],
        "true",
        "Undefined variables are errors",
    ),
    // what has no meaning here
    ignored(
        "pipelining",
        &["defaults", "connection", "ssh_connection"],
        &["ANSIBLE_PIPELINING", "ANSIBLE_SSH_PIPELINING"],
        "Requests always travel in batches",
    ),
    ignored("control_path", SSH, &["ANSIBLE_SSH_CONTROL_PATH"], "One connection serves the whole run"),
    ignored("control_path_dir", SSH, &["ANSIBLE_SSH_CONTROL_PATH_DIR"], "One connection serves the whole run"),
    ignored("ssh_executable", SSH, &["ANSIBLE_SSH_EXECUTABLE"], "The SSH client is built in"),
    ignored("scp_if_ssh", SSH, &["ANSIBLE_SCP_IF_SSH"], "Files travel over the connection itself"),
    ignored("transfer_method", SSH, &["ANSIBLE_SSH_TRANSFER_METHOD"], "Files travel over the connection itself"),
    ignored("sftp_batch_mode", SSH, &["ANSIBLE_SFTP_BATCH_MODE"], "Files travel over the connection itself"),
    ignored("retries", &["ssh_connection", "connection"], &["ANSIBLE_SSH_RETRIES"], "A host is tried once"),
    ignored("usetty", SSH, &["ANSIBLE_SSH_USETTY"], "No terminal is asked for"),
    ignored("interpreter_python", DEFAULTS, &["ANSIBLE_PYTHON_INTERPRETER"], "No Python is needed on hosts"),
    ignored("remote_tmp", DEFAULTS, &["ANSIBLE_REMOTE_TEMP", "ANSIBLE_REMOTE_TMP"], "Nothing is put on hosts"),
    ignored("local_tmp", DEFAULTS, &["ANSIBLE_LOCAL_TEMP"], "Nothing is put there"),
    ignored("keep_remote_files", DEFAULTS, &["ANSIBLE_KEEP_REMOTE_FILES"], "Nothing is put on hosts"),
    ignored(
        "allow_world_readable_tmpfiles",
        DEFAULTS,
        &["ANSIBLE_SHELL_ALLOW_WORLD_READABLE_TEMP"],
        "Nothing is put on hosts",
    ),
    ignored("poll_interval", DEFAULTS, &["ANSIBLE_POLL_INTERVAL"], "Set it in the task"),
    ignored("internal_poll_interval", DEFAULTS, &[], "There is no polling"),
    ignored("module_utils", DEFAULTS, &["ANSIBLE_MODULE_UTILS"], "Modules in Python cannot run"),
    ignored("action_plugins", DEFAULTS, &["ANSIBLE_ACTION_PLUGINS"], "Plugins in Python cannot run"),
    ignored("callback_plugins", DEFAULTS, &["ANSIBLE_CALLBACK_PLUGINS"], "Plugins in Python cannot run"),
    ignored("connection_plugins", DEFAULTS, &["ANSIBLE_CONNECTION_PLUGINS"], "Plugins in Python cannot run"),
    ignored("filter_plugins", DEFAULTS, &["ANSIBLE_FILTER_PLUGINS"], "Plugins in Python cannot run"),
    ignored("inventory_plugins", DEFAULTS, &["ANSIBLE_INVENTORY_PLUGINS"], "Plugins in Python cannot run"),
    ignored("lookup_plugins", DEFAULTS, &["ANSIBLE_LOOKUP_PLUGINS"], "Plugins in Python cannot run"),
    ignored("strategy_plugins", DEFAULTS, &["ANSIBLE_STRATEGY_PLUGINS"], "Plugins in Python cannot run"),
    ignored("test_plugins", DEFAULTS, &["ANSIBLE_TEST_PLUGINS"], "Plugins in Python cannot run"),
    ignored("vars_plugins", DEFAULTS, &["ANSIBLE_VARS_PLUGINS"], "Plugins in Python cannot run"),
    ignored(
        "callbacks_enabled",
        DEFAULTS,
        &["ANSIBLE_CALLBACKS_ENABLED", "ANSIBLE_CALLBACK_WHITELIST"],
        "Callbacks in Python cannot run",
    ),
    ignored("callback_whitelist", DEFAULTS, &[], "Callbacks in Python cannot run"),
    ignored("bin_ansible_callbacks", DEFAULTS, &["ANSIBLE_LOAD_CALLBACK_PLUGINS"], "Callbacks in Python cannot run"),
    ignored("log_path", DEFAULTS, &["ANSIBLE_LOG_PATH"], "No log is written"),
    ignored("nocows", DEFAULTS, &["ANSIBLE_NOCOWS"], "There are no cows"),
    ignored("cow_selection", DEFAULTS, &["ANSIBLE_COW_SELECTION"], "There are no cows"),
    ignored("cowpath", DEFAULTS, &["ANSIBLE_COW_PATH"], "There are no cows"),
    ignored("retry_files_enabled", DEFAULTS, &["ANSIBLE_RETRY_FILES_ENABLED"], "No retry files are written"),
    ignored("retry_files_save_path", DEFAULTS, &["ANSIBLE_RETRY_FILES_SAVE_PATH"], "No retry files are written"),
    ignored("deprecation_warnings", DEFAULTS, &["ANSIBLE_DEPRECATION_WARNINGS"], "Old words are accepted silently"),
    ignored("system_warnings", DEFAULTS, &["ANSIBLE_SYSTEM_WARNINGS"], "There are no such warnings"),
    ignored("command_warnings", DEFAULTS, &["ANSIBLE_COMMAND_WARNINGS"], "There are no such warnings"),
    ignored("devel_warning", DEFAULTS, &["ANSIBLE_DEVEL_WARNING"], "There is no such warning"),
    ignored(
        "jinja2_extensions",
        DEFAULTS,
        &["ANSIBLE_JINJA2_EXTENSIONS"],
        "The extensions `do` and `loopcontrols` are always on",
    ),
    honoured(
        "force_valid_group_names",
        DEFAULTS,
        &["ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS"],
        "never",
        "Whether names of groups that are no names of variables are altered: never, always, ignore or silently",
    ),
    ignored(
        "enable_plugins",
        INVENTORY,
        &["ANSIBLE_INVENTORY_ENABLED"],
        "Inventories are recognized by what they hold",
    ),
    ignored("ignore_extensions", INVENTORY, &["ANSIBLE_INVENTORY_IGNORE"], "The usual endings are left out"),
    ignored("inventory_ignore_extensions", DEFAULTS, &[], "The usual endings are left out"),
    honoured(
        "any_unparsed_is_failed",
        INVENTORY,
        &["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"],
        "false",
        "An inventory that is missing, or under Ansible's names cannot be understood, ends the run",
    ),
    honoured(
        "unparsed_is_failed",
        INVENTORY,
        &["ANSIBLE_INVENTORY_UNPARSED_FAILED"],
        "false",
        "The run ends if no inventory can be read",
    ),
    honoured(
        "duplicate_dict_key",
        DEFAULTS,
        &["ANSIBLE_DUPLICATE_YAML_DICT_KEY"],
        "warn",
        "What a key is that stands twice in a mapping: warn, error or ignore",
    ),
    ignored("executable", DEFAULTS, &["ANSIBLE_EXECUTABLE"], "The host's own shell is used"),
    ignored(
        "become_allow_same_user",
        ESCALATION,
        &["ANSIBLE_BECOME_ALLOW_SAME_USER"],
        "Becoming the same user costs nothing",
    ),
    ignored("callback_result_format", DEFAULTS, &["ANSIBLE_CALLBACK_RESULT_FORMAT"], "Results are shown as JSON"),
    ignored("agnostic_become_prompt", ESCALATION, &["ANSIBLE_AGNOSTIC_BECOME_PROMPT"], "The prompt is recognized"),
    ignored("log_filter", DEFAULTS, &["ANSIBLE_LOG_FILTER"], "No log is written"),
    ignored("log_verbosity", DEFAULTS, &["ANSIBLE_LOG_VERBOSITY"], "No log is written"),
    ignored("no_target_syslog", DEFAULTS, &["ANSIBLE_NO_TARGET_SYSLOG"], "Nothing is written to the log of hosts"),
    ignored("syslog_facility", DEFAULTS, &["ANSIBLE_SYSLOG_FACILITY"], "Nothing is written to the log of hosts"),
    ignored("become_plugins", DEFAULTS, &["ANSIBLE_BECOME_PLUGINS"], "Plugins in Python cannot run"),
    ignored("cache_plugins", DEFAULTS, &["ANSIBLE_CACHE_PLUGINS"], "Plugins in Python cannot run"),
    ignored("doc_fragment_plugins", DEFAULTS, &["ANSIBLE_DOC_FRAGMENT_PLUGINS"], "Plugins in Python cannot run"),
    ignored("terminal_plugins", DEFAULTS, &["ANSIBLE_TERMINAL_PLUGINS"], "Plugins in Python cannot run"),
    ignored("vars_plugins_enabled", DEFAULTS, &["ANSIBLE_VARS_ENABLED"], "group_vars and host_vars are always read"),
    ignored("run_vars_plugins", DEFAULTS, &["ANSIBLE_RUN_VARS_PLUGINS"], "group_vars and host_vars are always read"),
    ignored("module_compression", DEFAULTS, &[], "No module is sent to hosts"),
    ignored("action_warnings", DEFAULTS, &["ANSIBLE_ACTION_WARNINGS"], "Warnings of modules are always shown"),
    ignored("allow_unsafe_lookups", DEFAULTS, &[], "What lookups give is never a template"),
    ignored("facts_modules", DEFAULTS, &["ANSIBLE_FACTS_MODULES"], "`setup` gathers facts"),
    ignored("string_conversion_action", DEFAULTS, &["ANSIBLE_STRING_CONVERSION_ACTION"], "Values become text silently"),
    ignored(
        "invalid_task_attribute_failed",
        DEFAULTS,
        &["ANSIBLE_INVALID_TASK_ATTRIBUTE_FAILED"],
        "It is always an error",
    ),
    ignored("verbose_to_stderr", DEFAULTS, &["ANSIBLE_VERBOSE_TO_STDERR"], "Notes always go to stderr"),
    ignored("display_args_to_stdout", DEFAULTS, &["ANSIBLE_DISPLAY_ARGS_TO_STDOUT"], "Arguments are not shown"),
    ignored("max_diff_size", DEFAULTS, &["ANSIBLE_MAX_DIFF_SIZE"], "Each module has a limit of its own"),
    ignored("cache", &["inventory"], &["ANSIBLE_INVENTORY_CACHE"], "Inventories are read anew in each run"),
    ignored("galaxy_role_skeleton", &["galaxy"], &["ANSIBLE_GALAXY_ROLE_SKELETON"], "Roles are not made here"),
];

/// Variables that are no settings but are not misspelt either.
pub const OTHER_VARIABLES: &[&str] =
    &["ANSIBLE_CONFIG", "ANSIBLE_HOME", "ANSIBLE_DEBUG", "ANSIBLE_FACTS", "ANSIBLE_TEST_CONTENT_ROOT"];

/// Sections of `ansible.cfg` that have no meaning here, with all their keys.
pub const OTHER_SECTIONS: &[&str] = &[
    "accelerate",
    "callback_profile_tasks",
    "colors",
    "connection",
    "galaxy",
    "jinja2",
    "paramiko_connection",
    "persistent_connection",
    "selinux",
    "sudo_become_plugin",
    "su_become_plugin",
];
