//! ansible.builtin.command: runs a program, without a shell around it.

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::value::{Value, object};

use super::background::{self, Work};
use super::execution::{Execution, Kept, failed_with, heading, kept_by_files, lines, timeless};
use super::shell_words::{expanded, split};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.command",
    aliases: &[],
    summary: "Runs a program, without a shell around it",
    args: &[
        Arg::new("_raw_params", Type::Str, "The command line, written behind the module's name"),
        Arg::new("cmd", Type::Str, "The command line; split at blanks, quotes and backslashes count"),
        Arg::new("argv", Type::RawList, "The command as a list of words"),
        CHDIR,
        CREATES,
        REMOVES,
        Arg::new("executable", Type::Path, "Old; has no effect"),
        STDIN,
        STDIN_ADD_NEWLINE,
        STRIP_EMPTY_ENDS,
        Arg::new("expand_argument_vars", Type::Bool, "Expand `~` and `$NAME` in the words").default("true"),
        WARN,
    ],
    rules: &[],
    free_form: FreeForm::Argument("_raw_params"),
    check_mode: Support::Partial,
    diff: Support::None,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

pub(super) const CHDIR: Arg = Arg::new("chdir", Type::Path, "Change into this directory first");
pub(super) const CREATES: Arg =
    Arg::new("creates", Type::Path, "Do not run if this file exists; a pattern of file names is allowed");
pub(super) const REMOVES: Arg =
    Arg::new("removes", Type::Path, "Run only if this file exists; a pattern of file names is allowed");
pub(super) const STDIN: Arg = Arg::new("stdin", Type::Str, "Text for the program's standard input");
pub(super) const STDIN_ADD_NEWLINE: Arg =
    Arg::new("stdin_add_newline", Type::Bool, "End the text of `stdin` with a newline").default("true");
pub(super) const STRIP_EMPTY_ENDS: Arg =
    Arg::new("strip_empty_ends", Type::Bool, "Strip empty lines from the end of the output").default("true");
pub(super) const WARN: Arg = Arg::new("warn", Type::Bool, "Old; has no effect");

pub(super) const RETURNS: &[(&str, &str)] = &[
    ("cmd", "the command that was run"),
    ("rc", "its exit code; 2 if there is no such program, 13 if it may not be run"),
    ("stdout", "its standard output"),
    ("stderr", "its standard error"),
    ("stdout_lines", "its standard output as a list of lines"),
    ("stderr_lines", "its standard error as a list of lines"),
    ("start", "when it was started, by the controller's clock"),
    ("end", "when it ended, by the controller's clock"),
    ("delta", "how long it ran, by the host's clock"),
    ("msg", "why it did not run, or that its exit code is not 0"),
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let execution = plan(&invocation.args)?;
    let outcome = run_once(&execution, &invocation).await?;
    let args = invocation.args;
    Ok(match args.str("executable") {
        Some(executable) => outcome.warning(format!(
            "`executable` is no longer supported with `command`, which runs no shell: `{executable}` is not used"
        )),
        None => outcome,
    })
}

/// The command line of `cmd` or of the text behind the module's name.
pub(super) fn command_line(args: &Args) -> Result<&str, Failure> {
    let written = args.str("_raw_params").filter(|text| !text.trim().is_empty());
    match (written, args.str("cmd")) {
        (Some(_), Some(_)) => {
            Err(Failure::new("The 'cmd' argument cannot be used when other raw parameters are specified."))
        }
        (written, cmd) => Ok(written.or(cmd).unwrap_or_default()),
    }
}

/// What goes to the program's standard input.
pub(super) fn standard_input(args: &Args) -> Option<Vec<u8>> {
    let mut text = args.str("stdin")?.to_owned();
    if args.bool("stdin_add_newline") {
        text.push('\n');
    }
    Some(text.into_bytes())
}

fn plan(args: &Args) -> Result<Execution, Failure> {
    let refuse = |message: &str| {
        let nothing = timeless(object([("cmd", Value::Null), ("stdout", "".into()), ("stderr", "".into())]));
        failed_with(Failure::new(message), nothing).with("rc", 256)
    };
    let line = command_line(args)?;
    let words: Vec<String> = match args.get("argv").and_then(Value::as_list) {
        Some(_) if !line.trim().is_empty() => return Err(refuse("only command or argv can be given, not both")),
        Some(items) => items.iter().map(|item| item.to_text().into_owned()).collect(),
        None => split(line).map_err(|why| refuse(&format!("cannot split the command `{}`: {why}", line.trim())))?,
    };
    let Some(program) = words.first() else { return Err(refuse("no command given")) };
    let word_code = |word: &String| if args.bool("expand_argument_vars") { expanded(word) } else { quote(word) };
    let code = format!("exec {}", words.iter().map(word_code).collect::<Vec<_>>().join(" "));
    Ok(Execution {
        what: heading(&format!("command: {}", words.join(" "))),
        code,
        stdin: standard_input(args),
        program: Some(program.clone()),
        command: words.iter().map(|word| Value::from(word.as_str())).collect::<Vec<_>>().into(),
    })
}

/// Runs command or shell, unless `creates` or `removes` say not to.
pub(super) async fn run_once(execution: &Execution, invocation: &Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, settings } = invocation;
    let verb = if host.is_check() { "Would" } else { "Did" };
    let kept = kept_by_files(host, args, settings).await?.map(|kept| not_run(execution, &kept, verb));
    if let Some(limit) = settings.background {
        let work = match kept {
            Some(outcome) => Work::Done(outcome.with("changed", false).result),
            None => execution.work(args.bool("strip_empty_ends")),
        };
        let job = execution.job(work, args, settings)?;
        return background::start(job, host, context, settings, limit).await;
    }
    if let Some(outcome) = kept {
        return Ok(outcome);
    }
    match execution.run(host, args, settings).await? {
        Some(end) => execution.outcome(&end, args.bool("strip_empty_ends")),
        None => {
            let decided = args.has("creates") || args.has("removes");
            let outcome = Outcome { result: execution.result(Some(0), "", ""), ..Outcome::with_changed(decided) };
            let outcome = Outcome { skipped: !decided, ..outcome };
            Ok(without_times(outcome.with("msg", "Command would have run if not in check mode")))
        }
    }
}

fn not_run(execution: &Execution, kept: &Kept, verb: &str) -> Outcome {
    let Kept { path, .. } = kept;
    let state = kept.state();
    let stdout = format!("skipped, since {path} {state}");
    let outcome = Outcome { result: execution.result(Some(0), &stdout, ""), ..Outcome::ok() };
    let outcome = outcome.with("stdout_lines", lines(&stdout));
    without_times(outcome.with("msg", format!("{verb} not run command since '{path}' {state}")))
}

fn without_times(outcome: Outcome) -> Outcome {
    Outcome { result: timeless(outcome.result.clone()), ..outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::{Play, check_module, play, shells};

    fn planned<const N: usize>(given: [(&str, Value); N]) -> Result<Execution, Failure> {
        plan(&validate(&MODULE, &object(given)).unwrap())
    }

    #[test]
    fn a_command_line_becomes_words_that_only_expand() {
        let execution = planned([("_raw_params", "echo '$HOME x' ~ *.c; rm".into())]).unwrap();
        assert_eq!(execution.code, "exec echo \"${HOME-\\$HOME}\"' x' ~ '*.c;' rm");
        assert_eq!(execution.command.to_repr(), "['echo', '$HOME x', '~', '*.c;', 'rm']");
        let execution = planned([("cmd", "echo $HOME".into()), ("expand_argument_vars", false.into())]).unwrap();
        assert_eq!(execution.code, "exec echo '$HOME'");
    }

    #[test]
    fn argv_is_taken_as_it_is() {
        let argv = Value::list(vec!["printf".into(), "a b".into(), 5.into()]);
        let execution = planned([("argv", argv), ("stdin", "x".into())]).unwrap();
        assert_eq!(execution.code, "exec printf 'a b' 5");
        assert_eq!(execution.stdin.as_deref(), Some(&b"x\n"[..]));
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let argv = Value::list(vec!["a".into()]);
        let cases = [
            (planned([]), "no command given"),
            (planned([("cmd", "a".into()), ("argv", argv)]), "only command or argv can be given, not both"),
            (planned([("cmd", "a 'b".into())]), "cannot split the command `a 'b`: No closing quotation"),
        ];
        for (result, message) in cases {
            assert_eq!(result.unwrap_err().message, message);
        }
    }

    #[test]
    fn commands_run_on_every_shell() {
        for shell in shells() {
            let run = |given: &[(&str, Value)]| play(&MODULE, given, &Play { shell, ..Play::default() });
            let played = run(&[("cmd", "printf '%s|' 'a b' $HOME".into()), ("chdir", "/".into())]);
            let outcome = played.result.unwrap();
            let home = std::env::var("HOME").unwrap();
            assert_eq!(outcome.result["stdout"], format!("a b|{home}|").into(), "{shell}");
            assert!(outcome.changed && !played.changes[0].certain);
            let argv = Value::list(vec!["cat".into()]);
            let outcome = run(&[("argv", argv), ("stdin", "in\nput".into())]).result.unwrap();
            assert_eq!(outcome.result["stdout_lines"].to_repr(), "['in', 'put']", "{shell}");
            let failure = run(&[("cmd", "sh -c 'echo out; echo err >&2; exit 3'".into())]).result.unwrap_err();
            let of = |name: &str| failure.result[name].to_string();
            assert_eq!([of("rc"), of("stdout"), of("stderr"), of("changed")], ["3", "out", "err", "True"], "{shell}");
            let failure = run(&[("cmd", "no-such-program x".into())]).result.unwrap_err();
            assert_eq!(failure.result["rc"], 2.into(), "{shell}: {}", failure.message);
            let failure = run(&[("cmd", "pwd".into()), ("chdir", "/no/such".into())]).result.unwrap_err();
            assert!(failure.message.contains("/no/such"), "{shell}: {}", failure.message);
        }
    }

    #[test]
    fn files_keep_a_command_from_running() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name).to_string_lossy().into_owned();
        std::fs::write(path("a.done"), "").unwrap();
        let ran = |name: &str, file: String| {
            let given = [("cmd", "true".into()), (name, file.into())];
            let outcome = play(&MODULE, &given, &Play::default()).result.unwrap();
            (outcome.changed, outcome.result["msg"].to_string())
        };
        assert_eq!(
            ran("creates", path("*.done")),
            (false, format!("Did not run command since '{}' exists", path("*.done")))
        );
        assert!(!ran("creates", path("a.done")).0);
        assert!(ran("creates", path("b.done")).0);
        assert!(ran("removes", path("a.*")).0);
        assert_eq!(
            ran("removes", path("c")),
            (false, format!("Did not run command since '{}' does not exist", path("c")))
        );
        let given = [("cmd", "true".into()), ("chdir", path("").into()), ("creates", "a.done".into())];
        assert!(!play(&MODULE, &given, &Play::default()).result.unwrap().changed);
    }

    #[test]
    fn check_mode_skips_what_it_cannot_know() {
        let check = |given: &[(&str, Value)]| check_module(&MODULE, given).unwrap();
        let outcome = check(&[("cmd", "false".into())]);
        assert!(outcome.skipped && !outcome.changed);
        let outcome = check(&[("cmd", "false".into()), ("creates", "/no/such".into())]);
        assert!(outcome.changed && !outcome.skipped);
        let outcome = check(&[("cmd", "false".into()), ("creates", "/".into())]);
        assert_eq!(outcome.result["msg"], "Would not run command since '/' exists".into());
    }
}
