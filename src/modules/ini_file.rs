//! community.general.ini_file: options in the sections of INI files.

use crate::host::Failure;
use crate::value::Value;

use super::edited_file::{bring, text_of};
use super::file_common::content::backup_name;
use super::file_common::destination::{Manner, look};
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::ini_edit::{Request, SectionValue, edit};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.ini_file",
    aliases: &[],
    summary: "Sets and removes options in the sections of INI files",
    args: &[
        Arg::new("path", Type::Path, "The file").required().aliases(&["dest"]),
        Arg::new("section", Type::Str, "The section; not given: what is before the first"),
        Arg::new("section_has_values", Type::RawList, "Of sections of one name take the first that has these options"),
        Arg::new("option", Type::Str, "The option; not given: the whole section"),
        Arg::new("value", Type::Str, "Its value"),
        Arg::new("values", Type::List, "Its values, a line each"),
        Arg::new("state", Type::Str, "Whether the option or section is there")
            .default("present")
            .choices(&["absent", "present"]),
        Arg::new("exclusive", Type::Bool, "The option has no other values").default("true"),
        Arg::new("no_extra_spaces", Type::Bool, "No blanks around `=`").default("false"),
        Arg::new("ignore_spaces", Type::Bool, "A line that differs by blanks around `=` alone is right")
            .default("false"),
        Arg::new("allow_no_value", Type::Bool, "The option may stand without `=`").default("false"),
        Arg::new("modify_inactive_option", Type::Bool, "A commented line of the option is replaced").default("true"),
        Arg::new("create", Type::Bool, "Make the file if it does not exist").default("true"),
        Arg::new("backup", Type::Bool, "Keep the old file under a name with the time").default("false"),
        Arg::new("follow", Type::Bool, "A symbolic link is followed; else it is replaced by a file").default("false"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::MutuallyExclusive(&["value", "values"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "what was done"), ("path", "the file"), ("backup_file", "where the old file is kept, if it is")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let request = request(&args)?;
    let mut seen = look(&host, &args, args.text("path"), true).await?;
    if seen.attributes.is_none() && !args.bool("create") {
        return Err(Failure::new(format!("Destination {} does not exist!", seen.named)).with("rc", 257));
    }
    if seen.is_link && !args.bool("follow") {
        // the link itself gives way to a file
        seen.real.clone_from(&seen.named);
        seen.is_link = false;
    }
    let old = text_of(&seen)?;
    let edited = edit(old.strip_prefix('\u{feff}').unwrap_or(&old), &request);
    let manner = Manner {
        backup: args.bool("backup").then(|| backup_name(&seen.named)),
        validate: None,
        unsafe_writes: args.bool("unsafe_writes"),
    };
    let new = edited.changed.then_some(edited.text);
    let (outcome, written) = bring(&host, &seen, new, &manner, Outcome::ok()).await?;
    let outcome = outcome.with("msg", edited.message).with("path", seen.named.as_str());
    Ok(match written.backup {
        Some(backup) => outcome.with("backup_file", backup),
        None => outcome,
    })
}

fn request(args: &Args) -> Result<Request, Failure> {
    let text = |name: &str| args.str(name).map(str::to_owned);
    let present = args.text("state") == "present";
    let mut values: Vec<String> = match text("value") {
        Some(value) => vec![value],
        None => args.list("values"),
    };
    let mut seen = std::collections::HashSet::new();
    values.retain(|value| seen.insert(value.clone()));
    if present && !args.bool("allow_no_value") && values.is_empty() {
        let message = "Parameter 'value(s)' must be defined if state=present and allow_no_value=False.";
        return Err(Failure::new(message));
    }
    for (name, text) in [("section", args.str("section")), ("option", args.str("option"))] {
        if text.is_some_and(|text| text.contains('\n')) {
            return Err(Failure::new(format!("`{name}` has more than one line")));
        }
    }
    let conditions = args.get("section_has_values").and_then(Value::as_list).unwrap_or_default();
    Ok(Request {
        section: text("section").filter(|section| !section.is_empty()),
        has: conditions.iter().map(condition).collect::<Result<_, _>>()?,
        option: text("option").filter(|option| !option.is_empty()),
        values,
        present,
        exclusive: args.bool("exclusive"),
        separator: if args.bool("no_extra_spaces") { "=" } else { " = " },
        ignore_spaces: args.bool("ignore_spaces"),
        allow_no_value: args.bool("allow_no_value"),
        modify_inactive: args.bool("modify_inactive_option"),
    })
}

fn condition(value: &Value) -> Result<SectionValue, Failure> {
    let wrong = || {
        Failure::new(format!(
            "`section_has_values` needs `option`, and may have `value` or `values`: {}",
            value.to_repr()
        ))
    };
    let map = value.as_map().ok_or_else(wrong)?;
    let known = |key: &Value| matches!(key.as_str(), Some("option" | "value" | "values"));
    let given = |name: &str| value.get(name).filter(|value| !value.is_null());
    if !map.keys().all(known) || (given("value").is_some() && given("values").is_some()) {
        return Err(wrong());
    }
    let option = given("option").ok_or_else(wrong)?.to_text().into_owned();
    let values = match (given("value"), given("values")) {
        (Some(value), _) => vec![value.to_text().into_owned()],
        (None, Some(Value::List(values))) => values.iter().map(|value| value.to_text().into_owned()).collect(),
        (None, Some(value)) => vec![value.to_text().into_owned()],
        (None, None) => Vec::new(),
    };
    Ok(SectionValue { option, values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, snapshot, undo};

    #[test]
    fn a_file_is_made_changed_kept_and_brought_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("etc/my.cnf");
        let text = path.to_str().unwrap();
        let given = |value: &str, more: &[(&'static str, Value)]| {
            let own = [
                ("path", text.into()),
                ("section", "mysqld".into()),
                ("option", "port".into()),
                ("value", value.into()),
            ];
            [&own[..], more].concat()
        };
        let before = snapshot(directory.path());
        assert!(check_module(&MODULE, &given("3306", &[])).unwrap().changed);
        let made = play(&MODULE, &given("3306", &[("mode", "0640".into())]), &Play::default());
        let outcome = made.result.unwrap();
        assert_eq!(outcome.result["msg"], "section and option added".into());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "\n[mysqld]\nport = 3306\n");
        let again = play(&MODULE, &given("3306", &[]), &Play::default());
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        let outcome = run_module(&MODULE, &given("3307", &[("backup", true.into())])).unwrap();
        let backup = outcome.result["backup_file"].to_string();
        assert!(std::fs::read_to_string(&backup).unwrap().contains("3306"));
        std::fs::remove_file(backup).unwrap();
        std::fs::write(&path, "\n[mysqld]\nport = 3306\n").unwrap();
        undo(&made.changes);
        assert_eq!(snapshot(directory.path()), before);
        let failure = run_module(&MODULE, &given("1", &[("create", false.into())])).unwrap_err();
        assert!(failure.message.contains("does not exist!"), "{}", failure.message);
    }

    #[test]
    fn a_link_is_followed_only_if_asked() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "[a]\nx = 1\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let run = |follow: bool| {
            let given = [
                ("path", link.to_str().unwrap().into()),
                ("section", "a".into()),
                ("option", "x".into()),
                ("value", "2".into()),
                ("follow", follow.into()),
            ];
            run_module(&MODULE, &given).unwrap().changed
        };
        assert!(run(true) && link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[a]\nx = 2\n");
        std::fs::write(&file, "[a]\nx = 1\n").unwrap();
        assert!(run(false) && !link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[a]\nx = 1\n");
    }

    #[test]
    fn senseless_requests_are_refused() {
        let refused = |given: &[(&str, Value)]| run_module(&MODULE, given).unwrap_err().message;
        assert!(refused(&[("path", "/x".into()), ("option", "a".into())]).contains("must be defined"));
        let wrong = Value::list(vec!["a".into()]);
        let given = [("path", "/x".into()), ("state", "absent".into()), ("section_has_values", wrong)];
        assert!(refused(&given).contains("needs `option`"));
    }
}
