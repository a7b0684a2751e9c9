//! ansible.builtin.script: runs a script of the controller on the host.

use std::path::Path;

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::template::Context;
use crate::value::Value;

use super::command::{CHDIR, CREATES, REMOVES, command_line};
use super::execution::{Execution, heading, kept_by_files};
use super::shell_words::split;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.script",
    aliases: &[],
    summary: "Runs a script of the controller on the host",
    args: &[
        Arg::new("_raw_params", Type::Str, "The script and its arguments, written behind the module's name"),
        Arg::new("cmd", Type::Str, "The script, looked for in `files/` of role and playbook, and its arguments"),
        CHDIR,
        CREATES,
        REMOVES,
        Arg::new("executable", Type::Str, "The program that runs it, with its options; else its first line says"),
        Arg::new("decrypt", Type::Bool, "Decrypt the script if it is encrypted with Ansible Vault").default("true"),
    ],
    rules: &[Rule::RequiredOneOf(&["_raw_params", "cmd"])],
    free_form: FreeForm::Argument("_raw_params"),
    check_mode: Support::Partial,
    diff: Support::None,
    returns: &[
        ("rc", "its exit code"),
        ("stdout", "its standard output"),
        ("stderr", "its standard error"),
        ("stdout_lines", "its standard output as a list of lines"),
        ("stderr_lines", "its standard error as a list of lines"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, settings } = invocation;
    let execution = plan(&args, &context)?;
    if let Some(kept) = kept_by_files(&host, &args, &settings).await? {
        let option = if kept.exists { "creates" } else { "removes" };
        return Ok(Outcome::skipped(format!("{} {}, matching {option} option", kept.path, kept.state())));
    }
    let Some(end) = execution.run(&host, &args, &settings).await? else {
        let decided = args.has("creates") || args.has("removes");
        // without them the script itself would decide whether anything changes
        return Ok(if decided {
            Outcome::changed()
        } else {
            Outcome::skipped("Check mode is not supported for this task.")
        });
    };
    let without_times = |map: &mut crate::value::Map| {
        for name in ["cmd", "start", "end", "delta", "msg"] {
            map.shift_remove(name);
        }
    };
    match execution.outcome(&end, false) {
        Ok(mut outcome) => {
            without_times(&mut outcome.result);
            Ok(outcome)
        }
        Err(mut failure) => {
            without_times(&mut failure.result);
            Err(failure)
        }
    }
}

fn plan(args: &Args, context: &Context) -> Result<Execution, Failure> {
    let line = command_line(args)?;
    let words = split(line).map_err(|why| Failure::new(format!("cannot split `{}`: {why}", line.trim())))?;
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::new("no script given"));
    };
    let path = context
        .search
        .find("files", name)
        .ok_or_else(|| Failure::new(format!("Could not find or access '{name}' on the Ansible Controller.")))?;
    let mut content =
        std::fs::read(&path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    if args.bool("decrypt") {
        content = context.keyring.open(&path, content)?;
    }
    Ok(Execution {
        what: heading(&format!("script: {}", line.trim())),
        code: code(&path, arguments, args.str("executable")),
        stdin: Some(content),
        command: Value::from(line),
        program: None,
    })
}

/// The content comes on standard input; it goes to a file that only this user can read, and is removed.
fn code(path: &Path, arguments: &[String], executable: Option<&str>) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let arguments: String = arguments.iter().map(|argument| format!(" {}", quote(argument))).collect();
    // the executable may have options of its own, so its words are not quoted
    let runner = executable.map(|executable| format!("{executable} ")).unwrap_or_default();
    format!(
        "trimtab_directory=$(umask 077 && mktemp -d \"${{TMPDIR:-/tmp}}/trimtab.XXXXXXXX\") || exit\n\
         trap 'rm -rf \"$trimtab_directory\"' EXIT\n\
         trimtab_file=$trimtab_directory/{name}\n\
         cat >\"$trimtab_file\" && chmod 700 \"$trimtab_file\" || exit\n\
         {runner}\"$trimtab_file\"{arguments} </dev/null",
        name = quote(&name)
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::modules::testing::{Play, context, play_in, shells};
    use crate::template::SearchPath;

    fn played(root: &Path, shell: &'static str, given: &[(&str, Value)]) -> Result<Outcome, Failure> {
        let search = SearchPath { role_dirs: vec![], task_dir: None, playbook_dir: root.to_owned() };
        let context = context().with_search(Arc::new(search));
        play_in(&MODULE, given, &Play { shell, ..Play::default() }, context).result
    }

    #[test]
    fn a_script_runs_with_its_arguments_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("files")).unwrap();
        std::fs::write(
            root.path().join("files/show it.sh"),
            "#!/bin/sh\necho \"$1|$2\"; pwd; echo \"$0\" >&2; exit $3\n",
        )
        .unwrap();
        for shell in shells() {
            let line = "'show it.sh' 'a b' c 0";
            let outcome = played(root.path(), shell, &[("_raw_params", line.into()), ("chdir", "/".into())]).unwrap();
            assert_eq!(outcome.result["stdout"], "a b|c\n/\n".into(), "{shell}");
            assert!(!outcome.result.contains_key("cmd"));
            let left = outcome.result["stderr"].to_string();
            assert!(left.contains("show it.sh") && !Path::new(left.trim()).exists(), "{shell}: {left}");
            let failure = played(root.path(), shell, &[("cmd", "'show it.sh' x y 3".into())]).unwrap_err();
            assert_eq!(
                (failure.message.as_str(), &failure.result["rc"]),
                ("non-zero return code", &3.into()),
                "{shell}"
            );
        }
        let given = [("cmd", "'show it.sh' x y 0".into()), ("executable", "sh -x".into())];
        let outcome = played(root.path(), "sh", &given).unwrap();
        assert!(outcome.result["stderr"].to_string().contains("+ pwd"));
        let outcome =
            played(root.path(), "sh", &[("cmd", "'show it.sh'".into()), ("creates", "/etc/pass*".into())]).unwrap();
        assert!(outcome.skipped);
        assert_eq!(outcome.result["msg"], "/etc/pass* exists, matching creates option".into());
        assert!(played(root.path(), "sh", &[("cmd", "none.sh".into())]).is_err());
    }
}
