//! ansible.builtin.set_stats: statistics of the run, shown at its end.

use crate::host::Failure;
use crate::value::{Value, object};

use super::set_fact::check_name;
use super::{Action, Arg, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.set_stats",
    aliases: &[],
    summary: "Records statistics of the run, shown at its end",
    args: &[
        Arg::new("data", Type::Raw, "A mapping of names and values").required(),
        Arg::new("per_host", Type::Raw, "Whether to record them for this host, not for the whole run").default("false"),
        Arg::new("aggregate", Type::Raw, "Whether to add to what is recorded, not to replace it").default("true"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ansible_stats", "`data`, `per_host` and `aggregate`")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let args = &invocation.args;
    let data = args.get("data").and_then(Value::as_map).cloned();
    let data = data.ok_or_else(|| Failure::new("The 'data' option needs to be a dictionary/hash"))?;
    data.keys().try_for_each(|name| check_name(&name.to_text()))?;
    // what is no boolean is false here
    let flag = |name: &str| args.get(name).and_then(Value::to_ansible_bool).unwrap_or(false);
    let (per_host, aggregate) = (flag("per_host"), flag("aggregate"));
    let shown = object([("data", data.clone().into()), ("per_host", per_host.into()), ("aggregate", aggregate.into())]);
    Ok(Outcome::ok().with("ansible_stats", shown).effect(Effect::Stats { data, per_host, aggregate }))
}
