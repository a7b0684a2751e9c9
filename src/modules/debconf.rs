//! ansible.builtin.debconf: answers that packages ask for when they are installed.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step, Subject};
use crate::value::{Map, Value};

use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.debconf",
    aliases: &[],
    summary: "Sets an answer in the database of debconf, for packages that are installed later",
    args: &[
        Arg::new("name", Type::Str, "The package").required().aliases(&["pkg"]),
        Arg::new("question", Type::Str, "The question").aliases(&["selection", "setting"]),
        Arg::new("vtype", Type::Str, "The kind of answer").choices(&[
            "boolean",
            "error",
            "multiselect",
            "note",
            "password",
            "seen",
            "select",
            "string",
            "text",
            "title",
        ]),
        Arg::new("value", Type::Raw, "The answer").aliases(&["answer"]),
        Arg::new("unseen", Type::Bool, "Let the package ask still").default("false"),
    ],
    rules: &[Rule::RequiredTogether(&["question", "vtype", "value"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("current", "the answers now"), ("previous", "the answers before, if one was changed")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (name, question, kind) = (args.text("name"), args.str("question"), args.text("vtype"));
    let footprint = Footprint::Of(vec![
        Subject::Named("debconf".into()),
        Subject::Tree("/var/cache/debconf".into()),
        Subject::Packages,
    ]);
    if name.contains(char::is_whitespace) || question.is_some_and(|question| question.contains(char::is_whitespace)) {
        return Err(Failure::new("neither a package nor a question may have blanks in its name"));
    }
    let mut text = format!("debconf-show {}\n", quote(name));
    if let (Some(question), "password") = (question, kind) {
        // debconf-show tells no passwords
        text = format!(
            "{text}c=$?\nprintf '\\036'; printf 'GET %s\\n' {} | debconf-communicate {}\nexit $c\n",
            quote(question),
            quote(name)
        );
    }
    let response = host.read(Script { text, footprint: footprint.clone() }).await?;
    if !response.success() {
        return Err(Failure::new(format!("debconf-show {name} failed: {}", response.error_text().trim())));
    }
    let said = response.text();
    let (shown, password) = said.split_once('\u{1e}').unwrap_or((&said, ""));
    let mut answers = answers(shown);
    let Some(question) = question else { return Ok(Outcome::ok().with("msg", "").with("current", answers)) };
    let old = match (kind, answers.get(question)) {
        ("password", _) => password.trim_end().strip_prefix("0 ").map(str::to_owned),
        (_, old) => old.map(|old| old.to_text().into_owned()),
    };
    let new = answer(kind, args.get("value").unwrap_or(&Value::Null))?;
    if old.as_deref().is_some_and(|old| is_same(kind, old, &new)) {
        if kind == "password" {
            answers.shift_remove(question);
        }
        return Ok(Outcome::ok().with("msg", "").with("current", answers));
    }
    let set = |value: &str, unseen: bool| {
        Step::new(format!("debconf-set-selections{}", if unseen { " -u" } else { "" }))
            .stdin(format!("{name} {question} {kind} {value}\n"))
    };
    let is_secret = kind == "password";
    let mut change = Change::uncertain(format!("answer to {question} of {name}"), footprint)
        .step(set(&new, args.bool("unseen")))
        .inverse(match &old {
            Some(old) => Inverse::Steps(vec![set(old, false)]),
            None => Inverse::None(format!("debconf did not know {question} before")),
        });
    if !is_secret {
        let line = |value: &str| format!("{question}: {value}\n");
        let before = old.as_deref().map(line).unwrap_or_default();
        change = change.difference(Difference::new(format!("debconf of {name}"), before, line(&new)));
    }
    let mut outcome = Outcome::of_change(&change);
    if let Some(response) = host.change(change).await?.responses.first()
        && !response.success()
    {
        return Err(Failure::new(format!("debconf-set-selections failed: {}", response.error_text().trim())));
    }
    if !is_secret {
        let one = |value: &str| -> Map { [(Value::from(question), Value::from(value))].into_iter().collect() };
        outcome = outcome.with("current", one(&new)).with("previous", one(old.as_deref().unwrap_or_default()));
    }
    Ok(outcome.with("msg", ""))
}

/// The lines of debconf-show: `* package/question: answer`.
fn answers(text: &str) -> Map {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (Value::from(key.trim_start_matches(['*', ' ']).trim()), Value::from(value.trim())))
        .collect()
}

/// The answer as debconf writes it.
fn answer(kind: &str, value: &Value) -> Result<String, Failure> {
    let text = match value {
        Value::List(items) => items.iter().map(|item| item.to_text().into_owned()).collect::<Vec<_>>().join(", "),
        Value::Bool(flag) => flag.to_string(),
        other => other.to_text().into_owned(),
    };
    if text.contains('\n') {
        return Err(Failure::new("an answer of debconf is one line"));
    }
    Ok(if kind == "boolean" {
        match value.to_ansible_bool() {
            Some(flag) => flag.to_string(),
            None => text.to_lowercase(),
        }
    } else {
        text
    })
}

fn is_same(kind: &str, old: &str, new: &str) -> bool {
    let sorted = |text: &str| {
        let mut parts: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        parts.sort();
        parts
    };
    match kind {
        "boolean" => old.eq_ignore_ascii_case(new),
        "multiselect" => sorted(old) == sorted(new),
        _ => old == new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::has;
    use crate::modules::testing::{Play, play};

    #[test]
    fn an_answer_is_set_once() {
        if !has(&["debconf-set-selections", "debconf-show", "debconf-communicate"]) {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let shell = format!("env DEBCONF_DB_OVERRIDE=File{{{}/db.dat}} sh", directory.path().display());
        let shell: &'static str = Box::leak(shell.into_boxed_str());
        let run = |kind: &str, value: Value, check| {
            let question = format!("zz-alpha/{kind}");
            let given =
                [("name", "zz-alpha".into()), ("question", question.into()), ("vtype", kind.into()), ("value", value)];
            play(&MODULE, &given, &Play { shell, check })
        };
        for (kind, first, second) in [
            ("boolean", Value::Bool(true), Value::from("no")),
            ("string", "a b".into(), "c".into()),
            ("multiselect", Value::list(vec!["b".into(), "a".into()]), "a, c".into()),
            ("password", "secret".into(), "other".into()),
        ] {
            assert!(run(kind, first.clone(), true).result.unwrap().changed, "{kind}");
            let played = run(kind, first.clone(), false);
            assert!(played.result.unwrap().changed && matches!(played.changes[0].inverse, Inverse::None(_)), "{kind}");
            assert!(!run(kind, first.clone(), false).result.unwrap().changed, "{kind}");
            let played = run(kind, second, false);
            let outcome = played.result.unwrap();
            assert!(outcome.changed, "{kind}");
            assert!(kind != "password" || !format!("{:?}", outcome.result).contains("other"));
            assert!(matches!(played.changes[0].inverse, Inverse::Steps(_)), "{kind}");
        }
    }

    #[test]
    fn answers_are_compared_as_debconf_means_them() {
        assert!(
            is_same("multiselect", "b, a", "a,b") && is_same("boolean", "True", "true") && !is_same("string", "A", "a")
        );
        assert_eq!(answer("boolean", &"yes".into()).unwrap(), "true");
        assert!(answer("string", &"a\nb".into()).is_err());
    }
}
