//! ansible.builtin.yum: installs, updates and removes RPM packages by yum, or by the dnf that has replaced it.

use super::dnf::{ARGS, RETURNS, RULES, run};
use super::{Action, FreeForm, Module, Support};

pub const MODULE: Module = Module {
    name: "ansible.builtin.yum",
    aliases: &[],
    summary: "Installs, updates and removes packages of yum, or of the dnf that has replaced it",
    args: ARGS,
    rules: RULES,
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation, "yum"))),
};
