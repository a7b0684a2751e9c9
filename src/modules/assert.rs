//! ansible.builtin.assert: fails unless conditions hold.

use crate::host::Failure;
use crate::template::Context;
use crate::value::Value;

use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.assert",
    aliases: &[],
    summary: "Fails unless conditions hold",
    args: &[
        Arg::new("that", Type::RawList, "The conditions; all must hold").required(),
        Arg::new("fail_msg", Type::Raw, "The message if one does not hold").aliases(&["msg"]),
        Arg::new("success_msg", Type::Raw, "The message if all hold"),
        Arg::new("quiet", Type::Bool, "Do not show the result whole").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("assertion", "the condition that does not hold"),
        ("evaluated_to", "its value"),
        ("msg", "the message"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Ansible's mark of results that are shown whole even without `-v`.
const SHOWN_WHOLE: &str = "_ansible_verbose_always";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    check(&invocation.args, &invocation.context)
}

fn check(args: &Args, context: &Context) -> Result<Outcome, Failure> {
    let message = |name: &str, default: &str| match args.get(name) {
        // a list of texts is a message of several lines
        Some(value) => value.clone(),
        None => default.into(),
    };
    for condition in args.get("that").and_then(Value::as_list).unwrap_or_default() {
        let holds = context.condition(condition).map_err(|error| {
            let doing = format!("the condition `{}` cannot be evaluated", condition.to_text());
            Failure::from(error.context(&doing)).with("assertion", condition.clone().into_data())
        })?;
        if !holds {
            let message = message("fail_msg", "Assertion failed");
            let failure = Failure::new(message.to_text()).with("msg", message);
            let failure = failure.with("evaluated_to", false).with("assertion", condition.clone().into_data());
            return Err(if args.bool("quiet") { failure } else { failure.with(SHOWN_WHOLE, true) });
        }
    }
    let outcome = Outcome::ok().with("msg", message("success_msg", "All assertions passed"));
    Ok(if args.bool("quiet") { outcome } else { outcome.with(SHOWN_WHOLE, true) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::context_with;
    use crate::value::object;

    fn checked<const N: usize>(given: [(&str, Value); N]) -> Result<String, (String, String)> {
        let args = validate(&MODULE, &object(given)).unwrap();
        match check(&args, &context_with([("cores", 128.into())])) {
            Ok(outcome) => Ok(outcome.result["msg"].to_string()),
            Err(failure) => {
                Err((failure.message, failure.result.get("assertion").cloned().unwrap_or_default().to_string()))
            }
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let both = Value::list(vec!["cores > 64".into(), "cores > 200".into()]);
        assert_eq!(checked([("that", "cores == 128".into())]), Ok("All assertions passed".into()));
        assert_eq!(checked([("that", true.into()), ("success_msg", "fine".into())]), Ok("fine".into()));
        assert_eq!(checked([("that", both.clone())]), Err(("Assertion failed".into(), "cores > 200".into())));
        assert_eq!(checked([("that", both), ("msg", "too small".into())]).unwrap_err().0, "too small");
        let undefined = checked([("that", "none_such == 1".into())]).unwrap_err();
        assert!(undefined.0.contains("none_such"), "{}", undefined.0);
    }
}
