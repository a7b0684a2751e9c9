//! ansible.builtin.set_fact: sets variables of the host.

use crate::host::Failure;
use crate::template::Results;
use crate::template::{Context, reserved_name};
use crate::value::{Map, Value};

use super::args::ANY_NAME;
use super::shell_words::is_variable_name;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};
use crate::modules::Effect;

pub const MODULE: Module = Module {
    name: "ansible.builtin.set_fact",
    aliases: &[],
    summary: "Sets variables of the host",
    args: ARGS,
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ansible_facts", "the variables that were set")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const ARGS: &[Arg] = &[
    Arg::new("cacheable", Type::Bool, "Keep them in the fact cache too").default("false"),
    Arg::new(ANY_NAME, Type::Raw, "A variable and its value"),
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let variables = invocation.args.others(ARGS);
    check(&variables)?;
    warn_of_reserved_names(&variables, &invocation.context);
    // with `jinja2_native` text stays text
    let converts = invocation.context.results != Results::Spelled;
    let converted = |value| if converts { boolean_of(value) } else { value };
    let variables: Map = variables.into_iter().map(|(name, value)| (name, converted(value))).collect();
    let cacheable = invocation.args.bool("cacheable");
    Ok(Outcome::ok().with("ansible_facts", variables.clone()).effect(Effect::SetFacts { variables, cacheable }))
}

/// Warns of variables that hide functions of templates.
pub(super) fn warn_of_reserved_names(variables: &Map, context: &Context) {
    variables.keys().filter_map(|name| reserved_name(name.as_str()?)).for_each(|warning| context.warnings.add(warning));
}

fn check(variables: &Map) -> Result<(), Failure> {
    if variables.is_empty() {
        return Err(Failure::new("No key/value pairs provided, at least one is required for this action to succeed"));
    }
    variables.keys().try_for_each(|name| check_name(&name.to_text()))
}

/// A text that is `true`, `false`, `yes` or `no` becomes a boolean, as in Ansible until 2.18: so `when: name` means what
/// it says.
fn boolean_of(value: Value) -> Value {
    match value.as_str().map(str::to_ascii_lowercase).as_deref() {
        Some("true" | "yes") => true.into(),
        Some("false" | "no") => false.into(),
        _ => value,
    }
}

/// Refuses what Ansible does not take for the name of a variable.
pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if is_variable_name(name) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "The variable name '{name}' is not valid. Variables must start with a letter or underscore character, and \
         contain only letters, numbers and underscores."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::value::object;

    #[test]
    fn every_other_argument_is_a_variable() {
        let given = object([("cacheable", "yes".into()), ("size", 5.into()), ("name", "x".into())]);
        let args = validate(&MODULE, &given).unwrap();
        assert!(args.bool("cacheable"));
        assert_eq!(args.others(ARGS), object([("size", 5.into()), ("name", "x".into())]));
    }

    #[test]
    fn written_booleans_are_booleans() {
        for (text, expected) in [("no", false), ("False", false), ("YES", true), ("true", true)] {
            assert_eq!(boolean_of(text.into()), expected.into(), "{text}");
        }
        for other in ["off", "1", "not", ""] {
            assert_eq!(boolean_of(other.into()), other.into());
        }
    }

    #[test]
    fn names_must_be_identifiers() {
        assert!(check(&object([("a_1", 1.into())])).is_ok());
        for name in ["a-b", "1a", "", "a b"] {
            assert!(check(&object([(name, 1.into())])).is_err(), "{name}");
        }
        assert!(check(&Map::new()).is_err());
    }
}
