//! `community.general.make`: targets of a Makefile.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Failure, Footprint, Inverse};
use crate::value::Value;

use super::execution::environment;
use super::programs::{SYSTEM_PATH, make};
use super::shell_words::expanded;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.make",
    aliases: &[],
    summary: "Brings targets of a Makefile up to date",
    args: &[
        Arg::new("chdir", Type::Path, "the directory to run in").required(),
        Arg::new("target", Type::Str, "the target"),
        Arg::new("targets", Type::List, "several targets"),
        Arg::new("params", Type::Dict, "variables for make, NAME: VALUE"),
        Arg::new("file", Type::Path, "the Makefile"),
        Arg::new("make", Type::Path, "the program; not given: gmake or make"),
        Arg::new("jobs", Type::Int, "how many commands may run at once"),
    ],
    rules: &[Rule::MutuallyExclusive(&["target", "targets"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("command", "the command"),
        ("chdir", "as given"),
        ("target", "as given"),
        ("targets", "as given"),
        ("params", "as given"),
        ("file", "as given"),
        ("jobs", "as given"),
        ("stdout", "what make said"),
        ("stderr", "its errors"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let program = match args.str("make").filter(|make| !make.is_empty()) {
        Some(make) => format!("m={}", expanded(make)),
        None => "m=$(command -v gmake || command -v make)".to_owned(),
    };
    let mut words = String::new();
    if let Some(jobs) = args.int("jobs") {
        words.push_str(&format!(" -j {jobs}"));
    }
    if let Some(file) = args.str("file").filter(|file| !file.is_empty()) {
        words.push_str(&format!(" -f {}", expanded(file)));
    }
    let mut targets = args.list("targets");
    targets.extend(args.str("target").filter(|target| !target.is_empty()).map(str::to_owned));
    for target in &targets {
        words.push_str(&format!(" {}", quote(target)));
    }
    for (name, value) in args.get("params").and_then(Value::as_map).into_iter().flatten() {
        let word = match value {
            Value::Null => name.to_text().into_owned(),
            value => format!("{}={}", name.to_text(), value.to_text()),
        };
        words.push_str(&format!(" {}", quote(&word)));
    }
    let start = format!(
        "{SYSTEM_PATH}{}{program}\ncommand -v \"$m\" >/dev/null 2>&1 || {{ echo 'the host has no `make`' >&2; exit 127; }}\n\
         cd {} || exit 126\n",
        environment(&settings)?,
        expanded(args.text("chdir"))
    );
    // `-q` runs nothing: 0 if all is up to date, 1 if not
    let question = Script { text: format!("{start}\"$m\" -q{words}"), footprint: Footprint::Everything };
    let answer = host.read(question).await?;
    let mut outcome = Outcome::ok().with("command", format!("make{words}")).with("chdir", args.text("chdir"));
    for key in ["target", "targets", "params", "file", "jobs"] {
        outcome = outcome.with(key, args.get(key).cloned().unwrap_or_default());
    }
    match answer.code {
        Some(0) => return Ok(outcome.with("stdout", answer.text()).with("stderr", answer.error_text())),
        Some(1) => {}
        _ => {
            let reason = answer.error_text();
            return Err(Failure::new(format!("make: {}", reason.trim())).with("rc", answer.code.map(i64::from)));
        }
    }
    let shown = if targets.is_empty() { "make".to_owned() } else { format!("make {}", targets.join(" ")) };
    let change = Change::uncertain(shown, Footprint::Everything)
        .step(crate::host::Step::new(format!("{start}\"$m\"{words}")))
        .inverse(Inverse::None("what make made is not known".to_owned()));
    let responses = make(&host, change).await?;
    let outcome = Outcome { changed: true, ..outcome };
    Ok(match responses.and_then(|responses| responses.into_iter().next()) {
        Some(done) => outcome.with("stdout", done.text()).with("stderr", done.error_text()),
        None => outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, skip};

    #[test]
    fn targets_are_made_once() {
        if std::process::Command::new("make").arg("--version").output().is_err() {
            skip("this machine has no make");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let makefile = "W = x\nall: out\nout:\n\techo $(W) >out\nbad:\n\texit 3\n";
        std::fs::write(root.path().join("Makefile"), makefile).unwrap();
        let run = |more: &[(&'static str, Value)], check| {
            let given = [&[("chdir", root.path().to_str().unwrap().into())], more].concat();
            play(&MODULE, &given, &Play { check, ..Play::default() }).result
        };
        let params = [("target", "all".into()), ("params", crate::value::object([("W", "a b".into())]).into())];
        assert!(run(&params, true).unwrap().changed && !root.path().join("out").exists());
        let outcome = run(&params, false).unwrap();
        assert!(outcome.changed && outcome.result["stdout"].to_string().contains("echo a b"));
        assert_eq!(std::fs::read_to_string(root.path().join("out")).unwrap(), "a b\n");
        for check in [true, false] {
            assert!(!run(&params, check).unwrap().changed);
        }
        assert!(run(&[("target", "bad".into())], false).unwrap_err().message.contains("Error 3"));
        assert!(run(&[("target", "gone".into())], false).unwrap_err().message.contains("gone"));
        assert!(run(&[("make", "/no/make".into())], false).unwrap_err().message.contains("no `make`"));
    }
}
