//! The actions by which a playbook steers the play: meta, and what includes or imports tasks and roles.
//! The engine does their work; here are their names, arguments and help.

use super::args::ANY_NAME;
use super::{Action, Arg, EngineAction, FreeForm, Module, Support, Type};

const FILE: Arg = Arg::new("file", Type::Str, "The file of tasks, looked for beside the file that names it")
    .aliases(&["_raw_params"]);
const APPLY: Arg = Arg::new("apply", Type::Dict, "Keywords for everything that is included");
const ROLE_NAME: Arg = Arg::new("name", Type::Str, "The role").aliases(&["role"]).required();
const TASKS_FROM: Arg = Arg::new("tasks_from", Type::Str, "The file of the role's `tasks/`, instead of `main`");
const VARS_FROM: Arg = Arg::new("vars_from", Type::Str, "The file of the role's `vars/`, instead of `main`");
const DEFAULTS_FROM: Arg =
    Arg::new("defaults_from", Type::Str, "The file of the role's `defaults/`, instead of `main`");
const HANDLERS_FROM: Arg =
    Arg::new("handlers_from", Type::Str, "The file of the role's `handlers/`, instead of `main`");
const ALLOW_DUPLICATES: Arg =
    Arg::new("allow_duplicates", Type::Bool, "Run the role even if it has run with the same parameters")
        .default("true");
const PUBLIC: Arg = Arg::new("public", Type::Bool, "Let later tasks of the play see the role's variables and defaults");
const VALIDATE: Arg =
    Arg::new("rolespec_validate", Type::Bool, "Check the parameters against the role's argument specs").default("true");

/// The values of `meta`.
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

pub const META: Module = Module {
    name: "ansible.builtin.meta",
    aliases: &[],
    summary: "Steers the play: runs handlers now, ends the play for a host, and the like",
    args: &[Arg::new("free_form", Type::Str, "What to do").aliases(&["_raw_params"]).required().choices(META_ACTIONS)],
    rules: &[],
    free_form: FreeForm::Argument("free_form"),
    check_mode: Support::Partial,
    diff: Support::None,
    returns: &[],
    action: Action::Engine(EngineAction::Meta),
};

const fn tasks(name: &'static str, summary: &'static str, args: &'static [Arg], action: EngineAction) -> Module {
    Module {
        name,
        aliases: &[],
        summary,
        args,
        rules: &[],
        free_form: FreeForm::Argument("file"),
        check_mode: Support::Full,
        diff: Support::None,
        returns: &[],
        action: Action::Engine(action),
    }
}

const fn role(name: &'static str, summary: &'static str, args: &'static [Arg], action: EngineAction) -> Module {
    Module { free_form: FreeForm::No, ..tasks(name, summary, args, action) }
}

pub const INCLUDE_TASKS: Module = tasks(
    "ansible.builtin.include_tasks",
    "Includes a file of tasks when the play reaches it",
    &[FILE, APPLY],
    EngineAction::IncludeTasks,
);

pub const IMPORT_TASKS: Module = tasks(
    "ansible.builtin.import_tasks",
    "Puts a file of tasks in its place when the playbook is loaded",
    &[FILE],
    EngineAction::ImportTasks,
);

pub const INCLUDE: Module = tasks(
    "ansible.builtin.include",
    "Old: includes a file of tasks",
    &[FILE, APPLY, Arg::new(ANY_NAME, Type::Raw, "A variable for the tasks and its value")],
    EngineAction::Include,
);

pub const INCLUDE_ROLE: Module = role(
    "ansible.builtin.include_role",
    "Includes a role when the play reaches it",
    &[ROLE_NAME, TASKS_FROM, VARS_FROM, DEFAULTS_FROM, HANDLERS_FROM, ALLOW_DUPLICATES, PUBLIC, VALIDATE, APPLY],
    EngineAction::IncludeRole,
);

pub const IMPORT_ROLE: Module = role(
    "ansible.builtin.import_role",
    "Puts a role in its place when the playbook is loaded",
    &[ROLE_NAME, TASKS_FROM, VARS_FROM, DEFAULTS_FROM, HANDLERS_FROM, ALLOW_DUPLICATES, PUBLIC, VALIDATE],
    EngineAction::ImportRole,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::value::object;

    #[test]
    fn meta_knows_its_actions() {
        assert!(validate(&META, &object([("free_form", "end_host".into())])).is_ok());
        let failure = validate(&META, &object([("free_form", "end_hosts".into())])).unwrap_err();
        assert!(failure.message.contains("did you mean `end_host`?"), "{}", failure.message);
    }

    #[test]
    fn roles_have_defaults() {
        let args = validate(&INCLUDE_ROLE, &object([("role", "tuning".into())])).unwrap();
        assert_eq!((args.text("name"), args.optional_bool("allow_duplicates")), ("tuning", Some(true)));
        // a file that is asked for must be there, `main` need not
        assert_eq!((args.str("tasks_from"), args.optional_bool("public")), (None, None));
    }
}
