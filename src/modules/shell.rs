//! ansible.builtin.shell: runs shell code.

use crate::connect::shell::quote;
use crate::host::Failure;

use super::command::{
    CHDIR, CREATES, REMOVES, RETURNS, STDIN, STDIN_ADD_NEWLINE, STRIP_EMPTY_ENDS, WARN, command_line, run_once,
    standard_input,
};
use super::execution::{Execution, heading};
use super::shell_words::expanded;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.shell",
    aliases: &[],
    summary: "Runs shell code",
    args: &[
        Arg::new("_raw_params", Type::Str, "The code, written behind the module's name"),
        Arg::new("cmd", Type::Str, "The code"),
        CHDIR,
        CREATES,
        REMOVES,
        Arg::new("executable", Type::Path, "The shell that runs it, an absolute path; `/bin/sh` if not set"),
        STDIN,
        STDIN_ADD_NEWLINE,
        STRIP_EMPTY_ENDS,
        Arg::new("expand_argument_vars", Type::Bool, "Refused: the shell itself expands"),
        WARN,
    ],
    rules: &[],
    free_form: FreeForm::Argument("_raw_params"),
    check_mode: Support::Partial,
    diff: Support::None,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    run_once(&plan(&invocation.args)?, &invocation).await
}

fn plan(args: &Args) -> Result<Execution, Failure> {
    if args.has("expand_argument_vars") {
        return Err(Failure::new("Unsupported parameters for (shell) module: expand_argument_vars"));
    }
    let code = command_line(args)?;
    if code.trim().is_empty() {
        return Err(Failure::new("no command given").with("rc", 256));
    }
    let shell = args.str("executable").unwrap_or("/bin/sh");
    Ok(Execution {
        what: heading(&format!("shell: {}", code.trim())),
        code: format!("exec {} -c {}", expanded(shell), quote(code)),
        stdin: standard_input(args),
        command: code.into(),
        program: args.str("executable").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::value::object;

    #[test]
    fn the_code_goes_to_the_shell_as_it_is() {
        let given = object([("_raw_params", "echo $HOME | cat; echo 'x'".into()), ("executable", "/bin/bash".into())]);
        let execution = plan(&validate(&MODULE, &given).unwrap()).unwrap();
        assert_eq!(execution.code, r"exec /bin/bash -c 'echo $HOME | cat; echo '\''x'\'''");
        assert_eq!(execution.command.to_text(), "echo $HOME | cat; echo 'x'");
    }
}
