//! ansible.builtin.dnf5: installs, updates and removes RPM packages by dnf5.

use super::dnf::{ARGS, RETURNS, RULES, run};
use super::{Action, FreeForm, Module, Support};

pub const MODULE: Module = Module {
    name: "ansible.builtin.dnf5",
    aliases: &[],
    summary: "Installs, updates and removes packages of dnf5, or of the dnf or yum that the host has",
    args: ARGS,
    rules: RULES,
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation, "dnf5"))),
};
