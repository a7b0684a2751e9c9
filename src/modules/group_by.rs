//! ansible.builtin.group_by: puts the host into a group of this run.

use crate::host::Failure;
use crate::value::Value;

use super::{Action, Arg, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.group_by",
    aliases: &[],
    summary: "Puts the host into a group of this run",
    args: &[
        Arg::new("key", Type::Str, "The name of the group; blanks become `-`").required(),
        Arg::new("parents", Type::List, "The groups that the group belongs to").default("all"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("add_group", "the name of the group"), ("parent_groups", "the groups that it belongs to")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let name = |text: &str| text.replace(' ', "-");
    let group = name(invocation.args.text("key"));
    if group.is_empty() {
        return Err(Failure::new("the 'key' param is required when using group_by"));
    }
    let parents: Vec<String> = invocation.args.list("parents").iter().map(|parent| name(parent)).collect();
    let shown: Vec<Value> = parents.iter().map(|parent| parent.as_str().into()).collect();
    Ok(Outcome::changed()
        .with("add_group", group.as_str())
        .with("parent_groups", shown)
        .effect(Effect::GroupBy { group, parents }))
}
