//! ansible.builtin.validate_argument_spec: checks variables against an argument spec.

use crate::host::Failure;
use crate::template::Context;
use crate::value::{Map, Value};

use super::argument_spec::errors;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.validate_argument_spec",
    aliases: &[],
    summary: "Checks variables against an argument spec, such as a role's",
    args: &[
        Arg::new("argument_spec", Type::Dict, "The options: names, types, choices and so on").required(),
        Arg::new("provided_arguments", Type::Dict, "Values that go before variables of the same names"),
        Arg::new("validate_args_context", Type::Dict, "Where the spec comes from, for messages"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("argument_errors", "what is wrong, one text each"),
        ("argument_spec_data", "the spec"),
        ("validate_args_context", "where the spec comes from"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    check(&invocation.args, &invocation.context)
}

fn check(args: &Args, context: &Context) -> Result<Outcome, Failure> {
    let map = |name: &str| args.get(name).and_then(Value::as_map).cloned().unwrap_or_default();
    let (spec, mut given, about) = (map("argument_spec"), Map::new(), map("validate_args_context"));
    let provided = map("provided_arguments");
    for name in spec.keys().filter(|name| !provided.contains_key(*name)) {
        if let Some(raw) = context.scope.get(&name.to_text()).map_err(Failure::interrupted)? {
            let value = context.value(&raw).map_err(|error| error.context(&format!("the argument `{name}`")))?;
            given.insert(name.clone(), value);
        }
    }
    given.extend(provided);
    let errors = errors(&spec, &given);
    if errors.is_empty() {
        let outcome = Outcome::ok().with("msg", "The arg spec validation passed");
        return Ok(outcome.with("validate_args_context", about));
    }
    let list: Vec<Value> = errors.iter().map(|error| error.as_str().into()).collect();
    Err(Failure::new(format!("Validation of arguments failed:\n{}", errors.join("\n")))
        .with("argument_errors", list)
        .with("argument_spec_data", spec)
        .with("validate_args_context", about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::context_with;
    use crate::value::object;

    #[test]
    fn variables_and_given_values_are_checked() {
        let context = context_with([("queues", Value::written("{{ cores }}")), ("cores", "many".into())]);
        let option = |kind: &str| Value::from(object([("type", kind.into())]));
        let spec = object([("queues", option("int")), ("absent", option("str"))]);
        let checked = |provided: Map| {
            let given = object([("argument_spec", spec.clone().into()), ("provided_arguments", provided.into())]);
            check(&validate(&MODULE, &given).unwrap(), &context)
        };
        let failure = checked(Map::new()).unwrap_err();
        assert!(
            failure.message.starts_with("Validation of arguments failed:\nargument 'queues'"),
            "{}",
            failure.message
        );
        assert_eq!(failure.result["argument_errors"].as_list().unwrap().len(), 1);
        let outcome = checked(object([("queues", 8.into())])).unwrap();
        assert_eq!(outcome.result["msg"], "The arg spec validation passed".into());
    }
}
