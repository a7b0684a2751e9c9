//! ansible.builtin.debug: shows a message or a variable.

use crate::host::Failure;
use crate::template::Context;
use crate::value::Value;

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Settings, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.debug",
    aliases: &[],
    summary: "Shows a message or the value of a variable",
    args: &[
        Arg::new("msg", Type::Raw, "The message; `Hello world!` if neither it nor `var` is set"),
        Arg::new("var", Type::Raw, "A variable or expression, without braces"),
        Arg::new("verbosity", Type::Int, "Show it only from this many `-v` on").default("0"),
    ],
    rules: &[Rule::MutuallyExclusive(&["msg", "var"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("msg", "the message"), ("(the variable's name)", "the variable's value")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    show(&invocation.args, &invocation.settings, &invocation.context)
}

fn show(args: &Args, settings: &Settings, context: &Context) -> Result<Outcome, Failure> {
    if args.int("verbosity").is_some_and(|wanted| wanted > i64::from(settings.verbosity)) {
        return Ok(Outcome { skipped: true, ..Outcome::ok() }.with("skipped_reason", "Verbosity threshold not met."));
    }
    match args.get("var") {
        // what came from a host is shown, not evaluated
        Some(Value::Str(text)) if !text.is_written() => Ok(Outcome::ok().with(text.as_str(), text.as_str())),
        Some(Value::Str(expression)) => {
            let expression = expression.as_str();
            let value = match context.expression(expression) {
                Err(error) if error.is_undefined() => "VARIABLE IS NOT DEFINED!".into(),
                result => result.map_err(|error| error.context(&format!("`var: {expression}` cannot be evaluated")))?,
            };
            Ok(Outcome::ok().with(expression, value))
        }
        // `var: "{{ a_list }}"` was rendered already
        Some(value) => Ok(Outcome::ok().with(&format!("<class '{}'>", value.type_name()), value.clone())),
        None => Ok(Outcome::ok().with("msg", args.get("msg").cloned().unwrap_or_else(|| "Hello world!".into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::context_with;
    use crate::value::object;

    fn shown<const N: usize>(given: [(&str, Value); N]) -> String {
        let args = validate(&MODULE, &object(given)).unwrap();
        let context = context_with([("cores", 128.into()), ("nodes", Value::list(vec![0.into(), 1.into()]))]);
        match show(&args, &Settings::default(), &context) {
            Ok(outcome) => Value::from(outcome.result).to_repr(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn messages_and_variables_are_shown() {
        assert_eq!(shown([]), "{'msg': 'Hello world!'}");
        assert_eq!(shown([("msg", "a".into())]), "{'msg': 'a'}");
        let written = Value::written;
        assert_eq!(shown([("var", written("cores"))]), "{'cores': 128}");
        assert_eq!(shown([("var", written("nodes[1]"))]), "{'nodes[1]': 1}");
        assert_eq!(shown([("var", written("none_such"))]), "{'none_such': 'VARIABLE IS NOT DEFINED!'}");
        assert_eq!(shown([("var", Value::from("cores"))]), "{'cores': 'cores'}");
        assert_eq!(shown([("var", Value::list(vec![1.into()]))]), "{\"<class 'list'>\": [1]}");
        assert!(shown([("var", written("cores +"))]).starts_with("`var: cores +` cannot be evaluated"));
        assert_eq!(
            shown([("msg", "a".into()), ("verbosity", 1.into())]),
            "{'skipped_reason': 'Verbosity threshold not met.'}"
        );
    }
}
