//! ansible.builtin.fail: fails with a message of the user.

use crate::host::Failure;

use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.fail",
    aliases: &[],
    summary: "Fails with a message",
    args: &[Arg::new("msg", Type::Raw, "The message").default("Failed as requested from task")],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("msg", "the message")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let message = invocation.args.get("msg").cloned().unwrap_or_default();
    Err(Failure::new(message.to_text()).with("msg", message))
}
