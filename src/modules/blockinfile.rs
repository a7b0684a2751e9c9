//! `ansible.builtin.blockinfile`: a block of lines between two marks.

use crate::host::Failure;

use super::file_common::content::{backup_name, difference, parse_validate};
use super::file_common::destination::{Destination, Edit, Manner, look, plan_edit};
use super::file_common::permissions::{MODE, OWNERSHIP, StateDifference};
use super::file_common::text::{Coding, split_any_lines};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};
use crate::python_regex::{Flags, captures_from, compile, is_match};

pub const MODULE: Module = Module {
    name: "ansible.builtin.blockinfile",
    aliases: &[],
    summary: "Ensures that a block of lines is in a file, between two marks",
    args: &[
        Arg::new("path", Type::Path, "the file").required().aliases(&["dest", "destfile", "name"]),
        Arg::new("state", Type::Str, "whether the block is there").default("present").choices(&["absent", "present"]),
        Arg::new("block", Type::Str, "the lines; none removes the block").default("").aliases(&["content"]),
        Arg::new("marker", Type::Str, "the lines around the block; `{mark}` is replaced")
            .default("# {mark} ANSIBLE MANAGED BLOCK"),
        Arg::new("marker_begin", Type::Str, "what `{mark}` is before the block").default("BEGIN"),
        Arg::new("marker_end", Type::Str, "what `{mark}` is behind the block").default("END"),
        Arg::new("insertafter", Type::Str, "where a new block goes: `EOF`, or behind the last match of this"),
        Arg::new("insertbefore", Type::Str, "where a new block goes: `BOF`, or before the last match of this"),
        Arg::new("append_newline", Type::Bool, "an empty line behind the block").default("false"),
        Arg::new("prepend_newline", Type::Bool, "an empty line before the block").default("false"),
        Arg::new("create", Type::Bool, "make the file if it does not exist").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::MutuallyExclusive(&["insertbefore", "insertafter"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "what was done to the block"), ("backup_file", "where the old file is kept")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let validate = parse_validate(args.str("validate"))?;
    let request = Request::parse(&args);
    let seen = look(&host, &args, args.text("path"), args.bool("create")).await?;
    if seen.attributes.is_none() {
        if !args.bool("create") {
            return Err(Failure::new(format!("Path {} does not exist !", seen.named)).with("rc", 257));
        }
        if !request.present {
            return Ok(Outcome::ok().with("msg", format!("File {} not present", seen.named)));
        }
    }
    let manner = Manner {
        backup: args.bool("backup").then(|| backup_name(&seen.named)),
        validate,
        unsafe_writes: args.bool("unsafe_writes"),
    };
    let (edit, outcome) = plan(&seen, &request, &manner)?;
    if let Some(change) = edit.change {
        host.change(change).await?;
    }
    Ok(outcome)
}

/// What the arguments ask for.
#[derive(Debug)]
struct Request {
    present: bool,
    block: String,
    begin: String,
    end: String,
    insert: Insert,
    append_newline: bool,
    prepend_newline: bool,
}

#[derive(Debug)]
enum Insert {
    Begin,
    End,
    After(String),
    Before(String),
}

impl Request {
    fn parse(args: &Args) -> Request {
        let marker = |mark: &str| format!("{}\n", args.text("marker").replace("{mark}", args.text(mark)));
        let insert = match (args.str("insertafter"), args.str("insertbefore")) {
            (_, Some("BOF")) => Insert::Begin,
            (Some("EOF") | None, None) => Insert::End,
            (Some(pattern), _) => Insert::After(pattern.to_owned()),
            (None, Some(pattern)) => Insert::Before(pattern.to_owned()),
        };
        Request {
            present: args.text("state") == "present",
            block: args.text("block").to_owned(),
            begin: marker("marker_begin"),
            end: marker("marker_end"),
            insert,
            append_newline: args.bool("append_newline"),
            prepend_newline: args.bool("prepend_newline"),
        }
    }

    /// The lines to have, with the marks; empty if there is to be no block.
    fn lines(&self, coding: Coding) -> Vec<String> {
        if !self.present || self.block.is_empty() {
            return Vec::new();
        }
        let mut block = coding.pattern(&self.block);
        if !block.ends_with('\n') {
            block.push('\n');
        }
        let mut lines = vec![coding.pattern(&self.begin)];
        lines.extend(split_any_lines(&block));
        lines.push(coding.pattern(&self.end));
        lines
    }
}

fn plan(seen: &Destination, request: &Request, manner: &Manner) -> Result<(Edit, Outcome), Failure> {
    let old = seen.content.as_deref().unwrap_or_default();
    let coding = Coding::of(old);
    let new = coding.encode(&edit_text(&coding.decode(old), request, coding)?);
    let is_new = seen.attributes.is_none();
    let changed = is_new || new != old;
    let edit = plan_edit(seen, changed.then(|| new.clone()), manner);
    let mut message = match () {
        () if !changed => "",
        () if is_new => "File created",
        () if request.lines(coding).is_empty() => "Block removed",
        () => "Block inserted",
    }
    .to_owned();
    if edit.attributes_differ {
        if changed {
            message.push_str(" and ");
        }
        message.push_str("ownership, perms or SE linux context changed");
    }
    let mut outcome = Outcome::with_changed(edit.change.is_some()).with("msg", message);
    if changed {
        let header = format!("{} (content)", seen.named);
        outcome = outcome.differences([difference((&header, &header), Some(old), false, &new)]);
    }
    if let (Some(before), Some(after)) = (&edit.before, &edit.after)
        && edit.attributes_differ
    {
        let header = format!("{} (file attributes)", seen.named);
        let mut shown = StateDifference::bare();
        shown.attributes(before, after);
        outcome = outcome.differences([shown.with_headers(header.clone(), header)]);
    }
    if let Some(backup) = &edit.backup {
        outcome = outcome.with("backup_file", backup.as_str());
    }
    let mut edit = edit;
    if let Some(change) = &mut edit.change {
        change.differences.clone_from(&outcome.differences);
    }
    Ok((edit, outcome))
}

/// The new text of the file.
fn edit_text(text: &str, request: &Request, coding: Coding) -> Result<String, Failure> {
    let mut lines = split_any_lines(text);
    let block = request.lines(coding);
    let last = |mark: &str| lines.iter().rposition(|line| *line == coding.pattern(mark));
    let mut at = match (last(&request.begin), last(&request.end)) {
        (Some(begin), Some(end)) => {
            let first = begin.min(end);
            lines.drain(first..=begin.max(end));
            first
        }
        _ => place(text, &lines, request, coding)?,
    };
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get_mut(before))
        && !before.ends_with('\n')
    {
        before.push('\n');
    }
    if request.prepend_newline && request.present && at > 0 && lines[at - 1] != "\n" {
        lines.insert(at, "\n".to_owned());
        at += 1;
    }
    let end = at + block.len();
    lines.splice(at..at, block);
    if request.append_newline && request.present && lines.get(end).is_some_and(|next| next != "\n") {
        lines.insert(end, "\n".to_owned());
    }
    Ok(lines.concat())
}

/// The line before which a new block goes.
fn place(text: &str, lines: &[String], request: &Request, coding: Coding) -> Result<usize, Failure> {
    let (pattern, behind) = match &request.insert {
        Insert::Begin => return Ok(0),
        Insert::End => return Ok(lines.len()),
        Insert::After(pattern) => (coding.pattern(pattern), true),
        Insert::Before(pattern) => (coding.pattern(pattern), false),
    };
    let regex = compile(&pattern, Flags::default())?;
    let mut found = None;
    if has_multiline_flag(&pattern) {
        // such a pattern sees the whole text, and its first match counts
        if let Some(whole) = captures_from(&regex, text, 0)?.and_then(|found| found.get(0)) {
            let until = if behind { whole.end() } else { whole.start() };
            found = Some(text[..until].matches('\n').count());
        }
    } else {
        for (index, line) in lines.iter().enumerate() {
            if is_match(&regex, line)? {
                found = Some(index);
            }
        }
    }
    Ok(found.map_or(lines.len(), |index| (index + usize::from(behind)).min(lines.len())))
}

/// True for a pattern that begins with flags that have an `m`, as in `(?m)`.
fn has_multiline_flag(pattern: &str) -> bool {
    let flags = pattern.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    flags.is_some_and(|flags| flags.chars().all(|flag| "aiLmsux".contains(flag)) && flags.contains('m'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, shells, snapshot, undo};
    use crate::value::Value;

    fn request(args: &[(&str, &str)]) -> Request {
        let path = [("path", "/nowhere")];
        let given = path.iter().chain(args).map(|(key, value)| (Value::from(*key), Value::from(*value))).collect();
        Request::parse(&crate::modules::args::validate(&MODULE, &given).unwrap())
    }

    const BLOCK: &str = "# BEGIN ANSIBLE MANAGED BLOCK\nx\n# END ANSIBLE MANAGED BLOCK\n";

    #[test]
    fn the_block_goes_where_ansible_puts_it() {
        let with = |text: &str| text.replace('B', BLOCK);
        // arguments, before, after; `B` stands for the block
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let cases: &[Case<'_>] = &[
            (&[("block", "x")], "a\n", "a\nB"),
            (&[("block", "x\n")], "a", "a\nB"),
            (&[("block", "x")], "", "B"),
            (&[("block", "x")], "a\nBb\n", "a\nBb\n"),
            (&[("block", "x"), ("insertafter", "^a")], "a\nb\na\nc\n", "a\nb\na\nBc\n"),
            (&[("block", "x"), ("insertbefore", "^a")], "a\nb\na\nc\n", "a\nb\nBa\nc\n"),
            (&[("block", "x"), ("insertbefore", "BOF")], "a\n", "Ba\n"),
            (&[("block", "x"), ("insertafter", "^z")], "a\n", "a\nB"),
            (&[("block", "x"), ("insertafter", "(?m)^a\\nb$")], "a\nb\nc\n", "a\nb\nBc\n"),
            (&[("block", "x"), ("insertbefore", "(?m)^b$")], "a\nb\nc\n", "a\nBb\nc\n"),
            (
                &[("block", "x"), ("prepend_newline", "yes"), ("append_newline", "yes"), ("insertafter", "a")],
                "a\nb\n",
                "a\n\nB\nb\n",
            ),
            (&[("block", "x"), ("prepend_newline", "yes"), ("append_newline", "yes")], "a\n\nB\nb\n", "a\n\nB\nb\n"),
            (&[("block", "")], "a\nBb\n", "a\nb\n"),
            (&[("block", "x"), ("state", "absent")], "a\nBb\n", "a\nb\n"),
            (&[("state", "absent")], "a\n", "a\n"),
        ];
        for (args, before, after) in cases {
            let edited = edit_text(&with(before), &request(args), Coding::Utf8).unwrap();
            assert_eq!(edited, with(after), "{args:?} on {before:?}");
        }
    }

    #[test]
    fn marks_are_the_tasks_own() {
        let args = [("block", "y"), ("marker", "<!-- {mark} -->"), ("marker_begin", "A"), ("marker_end", "Z")];
        let edited = edit_text("<!-- A -->\nold\n<!-- Z -->\n", &request(&args), Coding::Utf8).unwrap();
        assert_eq!(edited, "<!-- A -->\ny\n<!-- Z -->\n");
    }

    #[test]
    fn a_file_gets_its_block_once_and_loses_it_again() {
        for shell in shells() {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("hosts");
            fs::write(&path, "127.0.0.1 localhost\n").unwrap();
            let args = [
                ("path", path.to_str().unwrap().into()),
                ("block", "198.18.0.1 kp001\n198.18.0.2 kp002".into()),
                ("mode", "0644".into()),
                ("validate", "grep -q kp002 %s".into()),
            ];
            let before = snapshot(directory.path());
            let checked = check_module(&MODULE, &args).unwrap();
            assert_eq!(snapshot(directory.path()), before);
            let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
            let outcome = played.result.unwrap();
            assert_eq!(outcome.differences, checked.differences);
            assert_eq!(outcome.result["msg"], "Block inserted".into());
            let expected = "127.0.0.1 localhost\n# BEGIN ANSIBLE MANAGED BLOCK\n198.18.0.1 kp001\n198.18.0.2 kp002\n# END ANSIBLE MANAGED BLOCK\n";
            assert_eq!(fs::read_to_string(&path).unwrap(), expected);
            assert!(!run_module(&MODULE, &args).unwrap().changed);
            undo(&played.changes);
            assert_eq!(snapshot(directory.path()), before);
        }
    }

    #[test]
    fn a_missing_file_is_made_only_if_asked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/file");
        let args = [("path", path.to_str().unwrap().into()), ("block", "x".into()), ("create", true.into())];
        assert_eq!(run_module(&MODULE, &args[..2]).unwrap_err().result["rc"], 257.into());
        let outcome = run_module(&MODULE, &args).unwrap();
        assert_eq!(outcome.result["msg"], "File created".into());
        assert_eq!(fs::read_to_string(&path).unwrap(), BLOCK);
        assert!(!run_module(&MODULE, &args).unwrap().changed);
        let absent = [args.as_slice(), &[("state", "absent".into()), ("backup", true.into())]].concat();
        let outcome = run_module(&MODULE, &absent).unwrap();
        assert_eq!(outcome.result["msg"], "Block removed".into());
        assert_eq!(fs::read_to_string(outcome.result["backup_file"].to_text().as_ref()).unwrap(), BLOCK);
    }
}
