//! ansible.builtin.raw: runs shell code with nothing around it.

use crate::connect::shell::quote;
use crate::host::{Change, Failure, Footprint, Inverse, Step};
use crate::value::{Map, object};

use super::execution::{environment, failed_with, heading, lines};
use super::shell_words::expanded;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.raw",
    aliases: &[],
    summary: "Runs shell code with nothing around it",
    args: &[
        Arg::new("_raw_params", Type::Str, "The code, written behind the module's name"),
        Arg::new("executable", Type::Path, "The shell that runs it; `/bin/sh` if not set"),
    ],
    rules: &[],
    free_form: FreeForm::Argument("_raw_params"),
    check_mode: Support::None,
    diff: Support::None,
    returns: &[
        ("rc", "the exit code"),
        ("stdout", "standard output"),
        ("stderr", "standard error"),
        ("stdout_lines", "standard output as a list of lines"),
        ("stderr_lines", "standard error as a list of lines"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let code = args.text("_raw_params");
    if code.trim().is_empty() {
        return Err(Failure::new("no command given").with("rc", 256));
    }
    let shell = args.str("executable").unwrap_or("/bin/sh");
    let footprint = if settings.only_looks { Footprint::nothing() } else { Footprint::Everything };
    let what = if settings.no_log { "raw".to_owned() } else { heading(&format!("raw: {}", code.trim())) };
    let code = format!("exec {} -c {}", expanded(shell), quote(code));
    let script = format!("{}{code}", environment(&settings)?);
    let change = Change::uncertain(what, footprint)
        .step(Step::new(script))
        .inverse(Inverse::None("what a command did is not known".to_owned()));
    let applied = host.change(change).await?;
    if applied.check {
        return Ok(Outcome { skipped: true, ..Outcome::ok() });
    }
    let Some(response) = applied.responses.first() else {
        return Err(Failure::new("the host gave no answer"));
    };
    let result = result(response.code.unwrap_or(-1), &response.text(), &response.error_text());
    if response.success() {
        Ok(Outcome { result, ..Outcome::changed() })
    } else {
        Err(failed_with(Failure::new("non-zero return code"), result).with("changed", true))
    }
}

fn result(code: i32, stdout: &str, stderr: &str) -> Map {
    object([
        ("rc", code.into()),
        ("stdout", stdout.into()),
        ("stderr", stderr.into()),
        ("stdout_lines", lines(stdout)),
        ("stderr_lines", lines(stderr)),
    ])
}
