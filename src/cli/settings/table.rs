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
    // other users
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
    only_default(
        "hash_behaviour",
        &["ANSIBLE_HASH_BEHAVIOUR"],
        "replace",
        "Maps of several levels are not merged; use `combine`",
    ),
    only_default(
        "error_on_undefined_vars",
        &["ANSIBLE_ERROR_ON_UNDEFINED_VARS"],
        "true",
        "Undefined variables are errors",
    ),
    only_default("inject_facts_as_vars", &["ANSIBLE_INJECT_FACT_VARS"], "true", "Facts are variables too"),
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
    ignored("fact_caching", DEFAULTS, &["ANSIBLE_CACHE_PLUGIN"], "Facts are gathered anew in each run"),
    ignored(
        "fact_caching_connection",
        DEFAULTS,
        &["ANSIBLE_CACHE_PLUGIN_CONNECTION"],
        "Facts are gathered anew in each run",
    ),
    ignored("fact_caching_timeout", DEFAULTS, &["ANSIBLE_CACHE_PLUGIN_TIMEOUT"], "Facts are gathered anew in each run"),
    ignored("fact_caching_prefix", DEFAULTS, &["ANSIBLE_CACHE_PLUGIN_PREFIX"], "Facts are gathered anew in each run"),
    ignored("gather_subset", DEFAULTS, &["ANSIBLE_GATHER_SUBSET"], "Set it in the play"),
    ignored("gather_timeout", DEFAULTS, &["ANSIBLE_GATHER_TIMEOUT"], "Set it in the play"),
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
    ignored("localhost_warning", DEFAULTS, &["ANSIBLE_LOCALHOST_WARNING"], "There is no such warning"),
    ignored("devel_warning", DEFAULTS, &["ANSIBLE_DEVEL_WARNING"], "There is no such warning"),
    ignored("jinja2_native", DEFAULTS, &["ANSIBLE_JINJA2_NATIVE"], "A lone expression always keeps its type"),
    ignored(
        "jinja2_extensions",
        DEFAULTS,
        &["ANSIBLE_JINJA2_EXTENSIONS"],
        "The extensions `do` and `loopcontrols` are always on",
    ),
    ignored("private_role_vars", DEFAULTS, &["ANSIBLE_PRIVATE_ROLE_VARS"], "Roles say `public` themselves"),
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
        "An inventory that cannot be read is an error under Ansible's names, too",
    ),
    honoured(
        "unparsed_is_failed",
        INVENTORY,
        &["ANSIBLE_INVENTORY_UNPARSED_FAILED"],
        "false",
        "It is an error under Ansible's names if no inventory can be read",
    ),
    honoured(
        "duplicate_dict_key",
        DEFAULTS,
        &["ANSIBLE_DUPLICATE_YAML_DICT_KEY"],
        "warn",
        "What a key is that stands twice in a mapping: warn, error or ignore",
    ),
    ignored("executable", DEFAULTS, &["ANSIBLE_EXECUTABLE"], "The host's own shell is used"),
    ignored("become_exe", ESCALATION, &["ANSIBLE_BECOME_EXE"], "Set `ansible_become_exe`"),
    ignored("become_flags", ESCALATION, &["ANSIBLE_BECOME_FLAGS"], "Set `ansible_become_flags`"),
    ignored(
        "become_allow_same_user",
        ESCALATION,
        &["ANSIBLE_BECOME_ALLOW_SAME_USER"],
        "Becoming the same user costs nothing",
    ),
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
