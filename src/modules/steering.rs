//! The actions by which a playbook steers itself: includes, imports and `meta`. The engine does their work.

use super::{Action, Arg, EngineAction, FreeForm, Module, Support, Type};

const FILE: Arg = Arg::new("file", Type::Str, "The file of tasks, relative to the file that includes it");
const APPLY: Arg = Arg::new("apply", Type::Dict, "Keywords for the included tasks");
const ROLE_NAME: Arg = Arg::new("name", Type::Str, "Name or path of the role").aliases(&["role"]);
const TASKS_FROM: Arg = Arg::new("tasks_from", Type::Str, "File of tasks/ to run instead of main");
const VARS_FROM: Arg = Arg::new("vars_from", Type::Str, "File of vars/ to load instead of main");
const DEFAULTS_FROM: Arg = Arg::new("defaults_from", Type::Str, "File of defaults/ to load instead of main");
const HANDLERS_FROM: Arg = Arg::new("handlers_from", Type::Str, "File of handlers/ to load instead of main");
const ALLOW_DUPLICATES: Arg =
    Arg::new("allow_duplicates", Type::Bool, "Run the role even if the host has run it").default("true");
const ROLESPEC_VALIDATE: Arg =
    Arg::new("rolespec_validate", Type::Bool, "Check the role's argument_specs first").default("true");
const PUBLIC: Arg = Arg::new("public", Type::Bool, "Keep the role's variables visible to later tasks");

/// What `meta` can do.
pub const META_ACTIONS: &[&str] = &[
    "clear_facts",
    "clear_host_errors",
    "end_batch",
    "end_host",
    "end_play",
    "end_role",
    "flush_handlers",
    "noop",
    "refresh_inventory",
    "reset_connection",
];

const fn steering(
    name: &'static str,
    summary: &'static str,
    args: &'static [Arg],
    free_form: FreeForm,
    action: EngineAction,
) -> Module {
    Module {
        name,
        aliases: &[],
        summary,
        args,
        rules: &[],
        free_form,
        check_mode: Support::Full,
        diff: Support::None,
        returns: &[],
        action: Action::Engine(action),
    }
}

pub const INCLUDE_TASKS: Module = steering(
    "ansible.builtin.include_tasks",
    "Includes a file of tasks when it is reached",
    &[FILE, APPLY],
    FreeForm::Argument("file"),
    EngineAction::IncludeTasks,
);

pub const IMPORT_TASKS: Module = steering(
    "ansible.builtin.import_tasks",
    "Imports a file of tasks while the playbook is loaded",
    &[FILE],
    FreeForm::Argument("file"),
    EngineAction::ImportTasks,
);

pub const INCLUDE: Module = steering(
    "ansible.builtin.include",
    "Includes a file of tasks, in the words of old playbooks; further arguments are variables",
    &[FILE],
    FreeForm::Argument("file"),
    EngineAction::Include,
);

pub const INCLUDE_ROLE: Module = steering(
    "ansible.builtin.include_role",
    "Runs a role when it is reached",
    &[
        ROLE_NAME,
        TASKS_FROM,
        VARS_FROM,
        DEFAULTS_FROM,
        HANDLERS_FROM,
        ALLOW_DUPLICATES,
        ROLESPEC_VALIDATE,
        PUBLIC,
        APPLY,
    ],
    FreeForm::No,
    EngineAction::IncludeRole,
);

pub const IMPORT_ROLE: Module = steering(
    "ansible.builtin.import_role",
    "Imports a role while the playbook is loaded",
    &[ROLE_NAME, TASKS_FROM, VARS_FROM, DEFAULTS_FROM, HANDLERS_FROM, ALLOW_DUPLICATES, ROLESPEC_VALIDATE, PUBLIC],
    FreeForm::No,
    EngineAction::ImportRole,
);

pub const META: Module = steering(
    "ansible.builtin.meta",
    "Steers the play: handlers, connections, facts, and its end",
    &[Arg::new("_raw_params", Type::Str, "What to do").required().choices(META_ACTIONS)],
    FreeForm::Argument("_raw_params"),
    EngineAction::Meta,
);
