//! `ansible.builtin.lineinfile`: one line of a file is there, replaced, or gone.

use std::sync::Arc;

use fancy_regex::Regex;

use crate::host::Failure;

use super::file_common::content::{backup_name, difference, parse_validate};
use super::file_common::destination::{Destination, Edit, Manner, look, plan_edit};
use super::file_common::permissions::{MODE, OWNERSHIP, StateDifference};
use super::file_common::text::{Coding, split_lines};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};
use crate::python_regex::{Flags, captures_from, compile, expand, is_match};

pub const MODULE: Module = Module {
    name: "ansible.builtin.lineinfile",
    aliases: &[],
    summary: "Ensures that a line is in a file, or replaces or removes lines by a regular expression",
    args: &[
        Arg::new("path", Type::Path, "the file").required().aliases(&["dest", "destfile", "name"]),
        Arg::new("state", Type::Str, "whether the line is there").default("present").choices(&["absent", "present"]),
        Arg::new(
            "regexp",
            Type::Str,
            "Python regular expression: the last line it matches is replaced, or all removed",
        )
        .aliases(&["regex"]),
        Arg::new("search_string", Type::Str, "as `regexp`, but plain text that the line contains"),
        Arg::new("line", Type::Str, "the line, without its newline").aliases(&["value"]),
        Arg::new("insertafter", Type::Str, "where a new line goes: `EOF`, `BOF` or behind the last match of this"),
        Arg::new("insertbefore", Type::Str, "where a new line goes: `BOF` or before the last match of this"),
        Arg::new("backrefs", Type::Bool, "`line` may use groups of `regexp`; without a match nothing is done")
            .default("false"),
        Arg::new("create", Type::Bool, "make the file if it does not exist").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("firstmatch", Type::Bool, "the first match counts, not the last").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[
        Rule::MutuallyExclusive(&["insertbefore", "insertafter"]),
        Rule::MutuallyExclusive(&["regexp", "search_string"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("msg", "what was done to the line"),
        ("backup", "where the old file is kept; empty if it is not"),
        ("found", "number of lines removed (state=absent)"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let request = Request::parse(&args)?;
    let validate = parse_validate(args.str("validate"))?;
    let present = args.text("state") == "present";
    let create = present && args.bool("create");
    let seen = look(&host, &args, args.text("path"), create).await?;
    if seen.attributes.is_none() {
        if !present {
            return Ok(Outcome::ok().with("msg", "file not present"));
        }
        if !create {
            return Err(Failure::new(format!("Destination {} does not exist !", seen.named)).with("rc", 257));
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
    let outcome = match request.warning() {
        Some(warning) => outcome.warning(warning),
        None => outcome,
    };
    Ok(outcome)
}

/// What the arguments ask for.
#[derive(Debug)]
struct Request {
    present: bool,
    find: Find,
    /// The text of `regexp` or `search_string` is empty.
    matches_all: Option<&'static str>,
    line: String,
    insert: Insert,
    backrefs: bool,
    firstmatch: bool,
}

#[derive(Debug)]
enum Find {
    /// The line itself.
    Line,
    Regexp(String),
    Text(String),
}

#[derive(Debug)]
enum Insert {
    Begin,
    End,
    After(String),
    Before(String),
}

impl Request {
    fn parse(args: &Args) -> Result<Request, Failure> {
        let present = args.text("state") == "present";
        let (regexp, text, line) = (args.str("regexp"), args.str("search_string"), args.str("line"));
        if args.bool("backrefs") && text.is_some() {
            return Err(Failure::new("parameters are mutually exclusive: backrefs|search_string"));
        }
        if present && args.bool("backrefs") && regexp.is_none() {
            return Err(Failure::new("regexp is required with backrefs=true"));
        }
        if present && line.is_none() {
            return Err(Failure::new("line is required with state=present"));
        }
        if !present && regexp.is_none() && text.is_none() && line.is_none() {
            return Err(Failure::new("one of line, search_string, or regexp is required with state=absent"));
        }
        let matches_all = match (regexp, text) {
            (Some(""), _) => Some("regular expression"),
            (_, Some("")) => Some("search string"),
            _ => None,
        };
        let insert = match (args.str("insertafter"), args.str("insertbefore")) {
            (Some("BOF"), _) | (_, Some("BOF")) => Insert::Begin,
            (Some("EOF") | None, None) => Insert::End,
            (Some(pattern), _) => Insert::After(pattern.to_owned()),
            (None, Some(pattern)) => Insert::Before(pattern.to_owned()),
        };
        let find = match (regexp, text) {
            (Some(pattern), _) => Find::Regexp(pattern.to_owned()),
            (None, Some(text)) => Find::Text(text.to_owned()),
            (None, None) => Find::Line,
        };
        Ok(Request {
            present,
            find,
            matches_all,
            line: line.unwrap_or_default().to_owned(),
            insert,
            backrefs: args.bool("backrefs"),
            firstmatch: args.bool("firstmatch"),
        })
    }

    fn warning(&self) -> Option<String> {
        self.matches_all.map(|what| {
            let hint = if what == "regular expression" {
                " If this is desired, use '^' to match every line in the file and avoid this warning."
            } else {
                ""
            };
            format!(
                "The {what} is an empty string, which will match every line in the file. This may have unintended \
                 consequences, such as replacing the last line in the file rather than appending.{hint}"
            )
        })
    }
}

/// The file's new lines, and what was done.
#[derive(Debug, PartialEq, Eq)]
struct Edited {
    lines: Vec<String>,
    message: String,
    changed: bool,
    found: usize,
}

fn plan(seen: &Destination, request: &Request, manner: &Manner) -> Result<(Edit, Outcome), Failure> {
    let old = seen.content.as_deref().unwrap_or_default();
    let coding = Coding::of(old);
    let lines = split_lines(&coding.decode(old));
    let edited = if request.present { put(lines, request, coding)? } else { remove(lines, request, coding)? };
    let new = coding.encode(&edited.lines.concat());
    let edit = plan_edit(seen, edited.changed.then(|| new.clone()), manner);
    let mut message = edited.message;
    if edit.attributes_differ {
        if edited.changed {
            message.push_str(" and ");
        }
        message.push_str("ownership, perms or SE linux context changed");
    }
    let header = format!("{} (content)", seen.named);
    let mut outcome = Outcome::with_changed(edit.change.is_some());
    if edited.changed {
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
    let mut edit = edit;
    if let Some(change) = &mut edit.change {
        change.differences.clone_from(&outcome.differences);
    }
    outcome = outcome.with("msg", message).with("backup", edit.backup.clone().unwrap_or_default());
    if !request.present {
        outcome = outcome.with("found", edited.found);
    }
    Ok((edit, outcome))
}

/// Without its line ending.
fn bare(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

fn with_newline(line: &str) -> String {
    if line.ends_with('\n') { line.to_owned() } else { format!("{line}\n") }
}

fn remove(lines: Vec<String>, request: &Request, coding: Coding) -> Result<Edited, Failure> {
    let matcher = Matcher::new(request, coding)?;
    let (mut kept, mut found) = (Vec::new(), 0);
    for line in lines {
        if matcher.matches(&line)? {
            found += 1;
        } else {
            kept.push(line);
        }
    }
    let message = if found > 0 { format!("{found} line(s) removed") } else { String::new() };
    Ok(Edited { lines: kept, message, changed: found > 0, found })
}

/// What finds the line to replace or remove.
enum Matcher {
    Line(String),
    Regexp(Arc<Regex>),
    Text(String),
}

impl Matcher {
    fn new(request: &Request, coding: Coding) -> Result<Matcher, Failure> {
        Ok(match &request.find {
            Find::Line => Matcher::Line(coding.pattern(&request.line)),
            Find::Regexp(pattern) => Matcher::Regexp(compile(&coding.pattern(pattern), Flags::default())?),
            Find::Text(text) => Matcher::Text(coding.pattern(text)),
        })
    }

    fn matches(&self, line: &str) -> Result<bool, Failure> {
        match self {
            Matcher::Line(wanted) => Ok(bare(line) == wanted),
            Matcher::Regexp(regex) => Ok(is_match(regex, line)?),
            Matcher::Text(text) => Ok(line.contains(text.as_str())),
        }
    }
}

/// Where the line belongs, found in one pass over the file.
struct Places {
    /// The line that `regexp` or `search_string` found.
    matched: Option<usize>,
    /// A line that is the wanted one already.
    exact: Option<usize>,
    /// Where `insertafter` or `insertbefore` points.
    insert: Option<usize>,
}

fn find_places(lines: &[String], request: &Request, wanted: &str, coding: Coding) -> Result<Places, Failure> {
    let mut places = Places { matched: None, exact: None, insert: None };
    if !matches!(request.find, Find::Line) {
        let matcher = Matcher::new(request, coding)?;
        for (index, line) in lines.iter().enumerate() {
            if matcher.matches(line)? {
                places.matched = Some(index);
                if request.firstmatch {
                    break;
                }
            }
        }
    }
    if places.matched.is_some() {
        return Ok(places);
    }
    let anchor = match &request.insert {
        Insert::After(pattern) | Insert::Before(pattern) => Some(compile(&coding.pattern(pattern), Flags::default())?),
        Insert::Begin | Insert::End => None,
    };
    for (index, line) in lines.iter().enumerate() {
        if bare(line) == wanted {
            places.exact = Some(index);
        } else if let Some(anchor) = &anchor
            && is_match(anchor, line)?
        {
            places.insert = Some(if matches!(request.insert, Insert::After(_)) { index + 1 } else { index });
            if request.firstmatch {
                break;
            }
        }
    }
    Ok(places)
}

fn put(mut lines: Vec<String>, request: &Request, coding: Coding) -> Result<Edited, Failure> {
    let wanted = coding.pattern(&request.line);
    let places = find_places(&lines, request, &wanted, coding)?;
    let done = |lines: Vec<String>, message: &str| Edited {
        lines,
        message: message.to_owned(),
        changed: !message.is_empty(),
        found: 0,
    };
    if let Some(at) = places.matched.or(places.exact) {
        let mut new = wanted.clone();
        if let (true, Some(_), Find::Regexp(pattern)) = (request.backrefs, places.matched, &request.find) {
            let regex = compile(&coding.pattern(pattern), Flags::default())?;
            if let Some(found) = captures_from(&regex, &lines[at], 0)? {
                new = expand(&regex, &wanted, &found)?;
            }
        }
        let new = with_newline(&new);
        if lines[at] == new {
            return Ok(done(lines, ""));
        }
        lines[at] = new;
        return Ok(done(lines, "line replaced"));
    }
    if request.backrefs {
        return Ok(done(lines, ""));
    }
    // the text alone decides, so a line that ends in a newline of its own gets a second one, as in Ansible
    let added = format!("{wanted}\n");
    match (&request.insert, places.insert) {
        (Insert::Begin, _) => lines.insert(0, added),
        (Insert::End, _) | (_, None) => {
            if lines.last().is_some_and(|last| !last.ends_with(['\n', '\r'])) {
                lines.push("\n".to_owned());
            }
            lines.push(added);
        }
        (Insert::After(_), Some(at)) => {
            // Ansible would join the new line to a last line without newline
            if at == lines.len()
                && let Some(last) = lines.last_mut().filter(|last| !last.ends_with(['\n', '\r']))
            {
                last.push('\n');
            }
            if lines.get(at).is_some_and(|next| bare(next) == wanted) {
                return Ok(done(lines, ""));
            }
            lines.insert(at, added);
        }
        (Insert::Before(_), Some(at)) => lines.insert(at, added),
    }
    Ok(done(lines, "line added"))
}

#[cfg(test)]
#[path = "lineinfile_tests.rs"]
mod tests;
