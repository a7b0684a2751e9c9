//! `community.general.git_config`: settings of Git.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::{Map, Value};

use super::execution::environment;
use super::programs::{SYSTEM_PATH, make, step};
use super::shell_words::expanded;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.git_config",
    aliases: &[],
    summary: "Reads and keeps settings of Git",
    args: &[
        Arg::new("name", Type::Str, "the setting: core.editor"),
        Arg::new("value", Type::Str, "its value; not given: tell the present one"),
        Arg::new("state", Type::Str, "whether it is set").default("present").choices(&["present", "absent"]),
        Arg::new("scope", Type::Str, "where: local needs `repo`, file needs `file`")
            .choices(&["file", "local", "global", "system"]),
        Arg::new("repo", Type::Path, "the repository"),
        Arg::new("file", Type::Path, "the file"),
        Arg::new("add_mode", Type::Str, "`add`: beside the values that are there")
            .default("replace-all")
            .choices(&["add", "replace-all"]),
        Arg::new("list_all", Type::Bool, "tell all settings").default("false"),
    ],
    rules: &[
        Rule::MutuallyExclusive(&["list_all", "name"]),
        Rule::MutuallyExclusive(&["list_all", "value"]),
        Rule::RequiredIf("scope", "local", &["repo"]),
        Rule::RequiredIf("scope", "file", &["file"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("config_value", "the value, if none was given"), ("config_values", "all settings, with `list_all`")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let absent = args.text("state") == "absent";
    // without a scope questions are of all settings, changes of the system's
    let scope = match (text("scope"), text("value").is_some() || absent) {
        (Some("file"), _) => format!(" --file {}", expanded(text("file").unwrap_or_default())),
        (Some(scope), _) => format!(" --{scope}"),
        (None, true) => " --system".to_owned(),
        (None, false) => String::new(),
    };
    let directory = match text("repo") {
        Some(repo) => format!("cd {} || exit 9\n", expanded(repo)),
        None => "cd /\n".to_owned(),
    };
    let start = format!(
        "{SYSTEM_PATH}{}export LC_ALL=C\ncommand -v git >/dev/null || exit 127\n{directory}",
        environment(&settings)?
    );
    let listing = args.bool("list_all");
    let name = match (text("name"), listing) {
        (Some(name), _) if name.contains('.') && !name.starts_with('-') => name,
        (None, true) => "",
        _ => return Err(Failure::new("`name` is of the form section.key; or `list_all` tells all settings")),
    };
    let question = if listing { "--list --null".to_owned() } else { format!("--null --get-all {}", quote(name)) };
    // 1: it is not set, or there is no file yet
    let code = format!(
        "{start}git config{scope} {question}; c=$?; [ $c = 1 ] || {{ [ $c = 128 ] && [ -z \"$(git config{scope} --list 2>/dev/null)\" ]; }} || exit $c"
    );
    let answer = host.read(Script { text: code, footprint: Footprint::Everything }).await?;
    match answer.code {
        Some(0) => {}
        Some(127) => return Err(Failure::new("the host has no program `git`")),
        Some(9) => return Err(Failure::new(format!("there is no repository {}", text("repo").unwrap_or_default()))),
        _ => return Err(Failure::new(format!("git config: {}", answer.error_text().trim()))),
    }
    let told = answer.text();
    let values: Vec<&str> = told.split_terminator('\0').collect();
    if listing {
        let pairs: Map = values
            .iter()
            .filter_map(|value| value.split_once('\n'))
            .map(|(key, value)| (Value::from(key), Value::from(value)))
            .collect();
        return Ok(Outcome::ok().with("config_values", pairs).with("msg", ""));
    }
    let Some(wanted) = args.str("value").filter(|_| !absent) else {
        if !absent {
            return Ok(Outcome::ok().with("config_value", values.last().copied().unwrap_or_default()).with("msg", ""));
        }
        if values.is_empty() {
            return Ok(Outcome::ok().with("msg", "no setting to unset"));
        }
        return change(&host, &start, &scope, name, &values, &[]).await;
    };
    let add = args.text("add_mode") == "add";
    if (add && values.contains(&wanted)) || values == [wanted] {
        return Ok(Outcome::ok().with("msg", ""));
    }
    let after: Vec<&str> = if add { values.iter().copied().chain([wanted]).collect() } else { vec![wanted] };
    change(&host, &start, &scope, name, &values, &after).await
}

/// Gives a setting these values and no others.
async fn change(
    host: &crate::host::Host,
    start: &str,
    scope: &str,
    name: &str,
    before: &[&str],
    after: &[&str],
) -> Result<Outcome, Failure> {
    let set = |values: &[&str]| {
        let mut code = format!("{start}git config{scope} --unset-all {} || [ $? = 5 ] || exit\n", quote(name));
        for value in values {
            code.push_str(&format!("git config{scope} --add {} {} || exit\n", quote(name), quote(value)));
        }
        step(code)
    };
    let lines = |values: &[&str]| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    let change = Change::uncertain(format!("git setting {name}"), Footprint::Everything)
        .step(set(after))
        .inverse(Inverse::Steps(vec![set(before)]))
        .difference(Difference::new(format!("git setting {name}"), lines(before), lines(after)));
    let differences = change.differences.clone();
    make(host, change).await?;
    Ok(Outcome::changed().differences(differences).with("msg", "setting changed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, undo};

    #[test]
    fn settings_are_made_told_and_taken_back() {
        if std::process::Command::new("git").arg("--version").output().is_err() {
            skip("this machine has no git");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("config");
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own =
                [("scope", "file".into()), ("file", file.to_str().unwrap().into()), ("name", "core.editor".into())];
            let mut given: Vec<(&'static str, Value)> = own.to_vec();
            given.retain(|(name, _)| {
                !more.iter().any(|(other, value)| {
                    other == name || (*other == "list_all" && *name == "name" && value.is_truthy())
                })
            });
            given.extend(more.iter().cloned());
            play(&MODULE, &given, &Play { check, ..Play::default() })
        };
        let value = [("value", "vim -u 'x'".into())];
        assert!(run(&value, true).result.unwrap().changed && !file.exists());
        let made = run(&value, false);
        assert!(made.result.unwrap().changed && !run(&value, false).result.unwrap().changed);
        assert_eq!(run(&[], true).result.unwrap().result["config_value"], "vim -u 'x'".into());
        let more = [("value", "emacs".into()), ("add_mode", "add".into())];
        let added = run(&more, false);
        assert!(added.result.unwrap().changed && !run(&more, true).result.unwrap().changed);
        let all = run(&[("list_all", true.into())], true).result.unwrap();
        assert_eq!(all.result["config_values"].get("core.editor").cloned(), Some("emacs".into()));
        undo(&added.changes);
        assert!(!run(&value, true).result.unwrap().changed);
        let gone = run(&[("state", "absent".into())], false);
        assert!(gone.result.unwrap().changed && !run(&[("state", "absent".into())], false).result.unwrap().changed);
        undo(&gone.changes);
        undo(&made.changes);
        assert!(!run(&[("state", "absent".into())], true).result.unwrap().changed);
        assert!(run(&[("name", "nodot".into())], true).result.is_err());
    }
}
