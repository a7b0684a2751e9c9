//! `ansible.builtin.replace`: every match of a regular expression in a file is replaced.

use crate::host::Failure;

use super::file_common::content::{backup_name, difference, parse_validate};
use super::file_common::destination::{Destination, Edit, Manner, look, plan_edit};
use super::file_common::permissions::{MODE, OWNERSHIP, StateDifference};
use super::file_common::text::Coding;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};
use crate::python_regex::{self, Flags, captures_from, compile};

pub const MODULE: Module = Module {
    name: "ansible.builtin.replace",
    aliases: &[],
    summary: "Replaces every match of a regular expression in a file",
    args: &[
        Arg::new("path", Type::Path, "the file").required().aliases(&["dest", "destfile", "name"]),
        Arg::new("regexp", Type::Str, "Python regular expression; `^` and `$` match at every line").required(),
        Arg::new("replace", Type::Str, "what each match becomes; may use groups; without it matches are removed")
            .default(""),
        Arg::new("after", Type::Str, "only what stands behind the first match of this is looked at"),
        Arg::new("before", Type::Str, "only what stands before a match of this is looked at"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        Arg::new("encoding", Type::Str, "encoding of the file: utf-8 alone").default("utf-8"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "how many replacements were made"), ("backup_file", "where the old file is kept"), ("rc", "0")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let encoding = args.text("encoding").to_ascii_lowercase();
    if !matches!(encoding.as_str(), "utf-8" | "utf8" | "utf_8" | "ascii" | "us-ascii" | "") {
        return Err(Failure::new(format!("the argument `encoding` is not supported for {encoding}: write utf-8")));
    }
    let validate = parse_validate(args.str("validate"))?;
    let seen = look(&host, &args, args.text("path"), false).await?;
    if seen.attributes.is_none() {
        return Err(Failure::new(format!("Path {} does not exist !", seen.named)).with("rc", 257));
    }
    let manner = Manner {
        backup: args.bool("backup").then(|| backup_name(&seen.named)),
        validate,
        unsafe_writes: args.bool("unsafe_writes"),
    };
    let (edit, outcome) = plan(&seen, &args, &manner)?;
    if let Some(change) = edit.and_then(|edit| edit.change) {
        host.change(change).await?;
    }
    Ok(outcome)
}

fn plan(seen: &Destination, args: &Args, manner: &Manner) -> Result<(Option<Edit>, Outcome), Failure> {
    let old = seen.content.as_deref().unwrap_or_default();
    let coding = Coding::of(old);
    let text = coding.decode(old);
    let Some((start, end)) = section(&text, args, coding)? else {
        let message =
            format!("Pattern for before/after params did not match the given file: {}", bounds(args, Coding::Utf8));
        return Ok((None, Outcome::ok().with("msg", message).with("rc", 0)));
    };
    let flags = Flags { multiline: true, ..Flags::default() };
    let regex = compile(&coding.pattern(args.text("regexp")), flags)?;
    let replacement = coding.pattern(args.text("replace"));
    let (replaced, count) = python_regex::replace(&regex, &text[start..end], &replacement, 0)
        .map_err(|error| Failure::new(format!("Unable to process replace due to error: {error}")))?;
    let changed = count > 0 && replaced != text[start..end];
    let new = coding.encode(&[&text[..start], &replaced, &text[end..]].concat());
    let edit = plan_edit(seen, changed.then(|| new.clone()), manner);
    let mut message = if changed { format!("{count} replacements made") } else { String::new() };
    if edit.attributes_differ {
        message.push_str(if changed { " and " } else { "" });
        message.push_str("ownership, perms or SE linux context changed");
    }
    let mut outcome = Outcome::with_changed(edit.change.is_some()).with("msg", message).with("rc", 0);
    if changed {
        outcome = outcome.differences([difference((&seen.named, &seen.named), Some(old), false, &new)]);
    } else if let (Some(before), Some(after)) = (&edit.before, &edit.after)
        && edit.attributes_differ
    {
        let mut shown = StateDifference::new(&seen.named);
        shown.attributes(before, after);
        outcome = outcome.differences([shown.into_difference()]);
    }
    if let Some(backup) = &edit.backup {
        outcome = outcome.with("backup_file", backup.as_str());
    }
    let mut edit = edit;
    if let Some(change) = &mut edit.change {
        change.differences.clone_from(&outcome.differences);
    }
    Ok((Some(edit), outcome))
}

/// The pattern of what stands between `after` and `before`; empty without them.
fn bounds(args: &Args, coding: Coding) -> String {
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty()).map(|text| coding.pattern(text));
    match (text("after"), text("before")) {
        (Some(after), Some(before)) => format!("{after}(?P<subsection>.*?){before}"),
        (Some(after), None) => format!("{after}(?P<subsection>.*)"),
        (None, Some(before)) => format!("(?P<subsection>.*){before}"),
        (None, None) => String::new(),
    }
}

/// Where the part of the text that is looked at begins and ends; `None` if it is not there.
fn section(text: &str, args: &Args, coding: Coding) -> Result<Option<(usize, usize)>, Failure> {
    let pattern = bounds(args, coding);
    if pattern.is_empty() {
        return Ok(Some((0, text.len())));
    }
    let regex = compile(&pattern, Flags { dot_all: true, ..Flags::default() })?;
    let found = captures_from(&regex, text, 0)?;
    Ok(found.and_then(|found| found.name("subsection")).map(|part| (part.start(), part.end())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, shells, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn matches_are_replaced_as_python_does() {
        // arguments, before, after, message
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);
        let cases: &[Case<'_>] = &[
            (&[("regexp", "^a"), ("replace", "b")], "a\na\nca\n", "b\nb\nca\n", "2 replacements made"),
            (&[("regexp", r"(\w+)=(\d+)"), ("replace", r"\2=\1")], "a=1\n", "1=a\n", "1 replacements made"),
            (&[("regexp", r"\s+$")], "a  \nb\n", "a\nb", "2 replacements made"),
            (&[("regexp", "^#.*\\n")], "#x\na\n#y\n", "a\n", "2 replacements made"),
            (&[("regexp", "z"), ("replace", "y")], "a\n", "a\n", ""),
            (&[("regexp", "a"), ("replace", "a")], "a\n", "a\n", ""),
            (
                &[("regexp", "x"), ("replace", "y"), ("after", "begin"), ("before", "end")],
                "x begin x end x\n",
                "x begin y end x\n",
                "1 replacements made",
            ),
            (
                &[("regexp", "x"), ("replace", "y"), ("after", "begin")],
                "x\nbegin\nx\nx\n",
                "x\nbegin\ny\ny\n",
                "2 replacements made",
            ),
            (
                &[("regexp", "x"), ("replace", "y"), ("before", "end")],
                "x\nend\nx\n",
                "y\nend\nx\n",
                "1 replacements made",
            ),
            (
                &[("regexp", r"^(?!#)(swap)"), ("replace", r"#\1")],
                "swap\n#swap\n",
                "#swap\n#swap\n",
                "1 replacements made",
            ),
            (&[("regexp", "a$"), ("replace", "b\\n")], "a\n", "b\n\n", "1 replacements made"),
        ];
        for (args, before, after, message) in cases {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            fs::write(&path, before).unwrap();
            let mut all = vec![("path", Value::from(path.to_str().unwrap()))];
            all.extend(args.iter().map(|(key, value)| (*key, Value::from(*value))));
            let outcome = run_module(&MODULE, &all).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), *after, "{args:?} on {before:?}");
            assert_eq!(outcome.changed, before != after, "{args:?}");
            assert_eq!(outcome.result["msg"], (*message).into(), "{args:?}");
        }
    }

    #[test]
    fn it_is_shown_done_once_and_taken_back() {
        for shell in shells() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("fstab");
            fs::write(&path, "/swap none swap\n").unwrap();
            let args = [
                ("dest", path.to_str().unwrap().into()),
                ("regexp", "^(/swap.*)".into()),
                ("replace", "# \\1".into()),
                ("validate", "test -s %s".into()),
                ("mode", "0600".into()),
            ];
            let before = snapshot(directory.path());
            let checked = check_module(&MODULE, &args).unwrap();
            assert_eq!(snapshot(directory.path()), before);
            let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
            let outcome = played.result.unwrap();
            assert_eq!(outcome.differences, checked.differences);
            assert_eq!(outcome.differences[0].after, "# /swap none swap\n");
            assert_eq!(
                outcome.result["msg"],
                "1 replacements made and ownership, perms or SE linux context changed".into()
            );
            assert!(!run_module(&MODULE, &args).unwrap().changed);
            undo(&played.changes);
            assert_eq!(snapshot(directory.path()), before);
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "a\n").unwrap();
        let file = ("path", Value::from(path.to_str().unwrap()));
        let missing = [("path", "/no/such".into()), ("regexp", "a".into())];
        assert_eq!(run_module(&MODULE, &missing).unwrap_err().result["rc"], 257.into());
        let outcome = run_module(&MODULE, &[file.clone(), ("regexp", "a".into()), ("after", "zzz".into())]).unwrap();
        assert!(outcome.result["msg"].to_text().contains("did not match") && !outcome.changed);
        assert!(run_module(&MODULE, &[file.clone(), ("regexp", "(".into())]).is_err());
        let encoding = [file.clone(), ("regexp", "a".into()), ("encoding", "latin-1".into())];
        assert!(run_module(&MODULE, &encoding).unwrap_err().message.contains("encoding"));
        let backup = [file, ("regexp", "a".into()), ("replace", "b".into()), ("backup", true.into())];
        let kept = run_module(&MODULE, &backup).unwrap().result["backup_file"].to_text().into_owned();
        assert_eq!(fs::read_to_string(kept).unwrap(), "a\n");
    }
}
