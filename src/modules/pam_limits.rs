//! community.general.pam_limits: limits of users and groups in limits.conf.

use crate::host::Failure;

use super::edited_file::{bring, text_of};
use super::file_common::content::backup_name;
use super::file_common::destination::{Manner, look};
use super::file_common::path::parent;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.pam_limits",
    aliases: &[],
    summary: "Keeps limits of users and groups in limits.conf",
    args: &[
        Arg::new("domain", Type::Str, "A user, `@` and a group, `*`, or a range of numbers").required(),
        Arg::new("limit_type", Type::Str, "`-`: both").required().choices(&["hard", "soft", "-"]),
        Arg::new("limit_item", Type::Str, "What is limited").required().choices(&[
            "core",
            "data",
            "fsize",
            "memlock",
            "nofile",
            "rss",
            "stack",
            "cpu",
            "nproc",
            "as",
            "maxlogins",
            "maxsyslogins",
            "priority",
            "locks",
            "sigpending",
            "msgqueue",
            "nice",
            "rtprio",
            "chroot",
        ]),
        Arg::new("value", Type::Str, "A number; `unlimited`, `infinity` or -1 for none").required(),
        Arg::new("use_min", Type::Bool, "Keep a lesser value that is there").default("false"),
        Arg::new("use_max", Type::Bool, "Keep a greater value that is there").default("false"),
        Arg::new("dest", Type::Str, "The file").default("/etc/security/limits.conf"),
        Arg::new("comment", Type::Str, "Words behind the limit; if not given, those that are there").default(""),
        Arg::new("backup", Type::Bool, "Keep the old file under a name with the time").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "the line"), ("backup_file", "where the old file is kept, if it is")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let seen = look(&host, &args, args.text("dest"), true).await?;
    if !seen.missing_directories.is_empty() {
        let message = format!("directory {} does not exist", parent(&seen.named));
        return Err(Failure::new(message));
    }
    let (new, line) = edit(&text_of(&seen)?, &wanted, &seen.named)?;
    let backup = args.bool("backup").then(|| backup_name(&seen.named));
    let manner = Manner { backup, validate: None, unsafe_writes: false };
    let (outcome, written) = bring(&host, &seen, new, &manner, Outcome::ok()).await?;
    let outcome = outcome.with("msg", line);
    Ok(match written.backup {
        Some(backup) => outcome.with("backup_file", backup),
        None => outcome,
    })
}

#[derive(Debug)]
struct Wanted {
    domain: String,
    kind: String,
    item: String,
    value: String,
    keep: Keep,
    comment: String,
}

/// Which of two values counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    New,
    Lesser,
    Greater,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let keep = match (args.bool("use_min"), args.bool("use_max")) {
            (true, true) => return Err(Failure::new("Cannot use use_min and use_max at the same time.")),
            (true, false) => Keep::Lesser,
            (false, true) => Keep::Greater,
            (false, false) => Keep::New,
        };
        let domain = args.text("domain");
        if domain.is_empty() || domain.contains(char::is_whitespace) || domain.starts_with('#') {
            return Err(Failure::new(format!("`{domain}` cannot be the domain of a limit")));
        }
        if args.text("comment").contains('\n') {
            return Err(Failure::new("`comment` has more than one line"));
        }
        check_value(args.text("limit_item"), args.text("value"), "")?;
        Ok(Wanted {
            domain: domain.to_owned(),
            kind: args.text("limit_type").to_owned(),
            item: args.text("limit_item").to_owned(),
            value: args.text("value").to_owned(),
            keep,
            comment: args.text("comment").to_owned(),
        })
    }

    fn line(&self, value: &str, comment: &str) -> String {
        let comment = if comment.is_empty() { String::new() } else { format!("\t#{comment}") };
        format!("{}\t{}\t{}\t{value}{comment}\n", self.domain, self.kind, self.item)
    }

    /// The value that is to be in the file, if this one is in it now.
    fn value_beside(&self, now: &str) -> String {
        let order = |value: &str| match value.parse::<i64>() {
            Ok(-1) if !is_level(&self.item) => i64::MAX,
            Ok(number) => number,
            Err(_) => i64::MAX,
        };
        let (new, old) = (order(&self.value), order(now));
        let keeps = match self.keep {
            Keep::New => false,
            Keep::Lesser => old <= new,
            Keep::Greater => old >= new,
        };
        if keeps { now.to_owned() } else { self.value.clone() }
    }
}

/// Levels of priority may be below zero.
fn is_level(item: &str) -> bool {
    matches!(item, "nice" | "priority")
}

fn check_value(item: &str, value: &str, prefix: &str) -> Result<(), Failure> {
    let number = value.parse::<i64>().ok();
    let (valid, what) = if is_level(item) {
        (number.is_some_and(|number| (-20..=19).contains(&number)), "a number from -20 to 19")
    } else if item == "chroot" {
        (!value.is_empty() && !value.contains(char::is_whitespace), "a directory")
    } else {
        let none = matches!(value, "unlimited" | "infinity" | "-1");
        (none || number.is_some_and(|number| number >= 0), "'unlimited', 'infinity', '-1' or a number from 0")
    };
    if valid {
        return Ok(());
    }
    Err(Failure::new(format!("{prefix}Value of {value:?} for item {item:?} is invalid: it must be {what}")))
}

/// The new text (`None`: it is right already) and the line of the limit.
fn edit(text: &str, wanted: &Wanted, path: &str) -> Result<(Option<String>, String), Failure> {
    let mut new = String::new();
    let mut found = None;
    for line in text.split_inclusive('\n') {
        let (words, comment) = line.split_once('#').unwrap_or((line, ""));
        let fields: Vec<&str> = words.split_whitespace().collect();
        let [domain, kind, item, value] = fields[..] else {
            new.push_str(line);
            continue;
        };
        if (domain, kind, item) != (&wanted.domain, &wanted.kind, &wanted.item) {
            new.push_str(line);
            continue;
        }
        check_value(item, value, &format!("Invalid configuration found in '{path}'. "))?;
        let then = wanted.value_beside(value);
        let comment = if wanted.comment.is_empty() { comment.trim_end_matches('\n') } else { &wanted.comment };
        let own = if then == value { line.to_owned() } else { wanted.line(&then, comment) };
        new.push_str(&own);
        found = Some(own);
    }
    let line = found.unwrap_or_else(|| {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        let line = wanted.line(&wanted.value, &wanted.comment);
        new.push_str(&line);
        line
    });
    Ok(((new != text).then_some(new), line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::{Play, play, run_module, snapshot, undo};
    use crate::value::{Value, object};

    fn wanted(value: &str, keep: &'static str, comment: &str) -> Wanted {
        let mut given = object([
            ("domain", "mysql".into()),
            ("limit_type", "soft".into()),
            ("limit_item", "nofile".into()),
            ("value", value.into()),
            ("comment", comment.into()),
        ]);
        if !keep.is_empty() {
            given.insert(keep.into(), true.into());
        }
        Wanted::parse(&validate(&MODULE, &given).unwrap()).unwrap()
    }

    #[test]
    fn the_limits_line_is_changed_in_its_place() {
        let file = "# nofile\n*  soft nofile 1\nmysql soft  nofile 1024 # db\nmysql hard nofile 4096\n";
        let line = |value: &str, comment: &str| {
            file.replace("mysql soft  nofile 1024 # db", &format!("mysql\tsoft\tnofile\t{value}\t#{comment}"))
        };
        let cases = [
            ("1024", "", "", None),
            ("65535", "", "", Some(line("65535", " db"))),
            ("65535", "", "x", Some(line("65535", "x"))),
            ("512", "use_max", "", None),
            ("2048", "use_max", "", Some(line("2048", " db"))),
            ("512", "use_min", "", Some(line("512", " db"))),
            ("unlimited", "use_min", "", None),
            ("unlimited", "use_max", "", Some(line("unlimited", " db"))),
        ];
        for (value, keep, comment, new) in cases {
            assert_eq!(edit(file, &wanted(value, keep, comment), "x").unwrap().0, new, "{value} {keep}");
        }
        assert_eq!(
            edit("a b", &wanted("1", "", "why"), "x").unwrap().0.unwrap(),
            "a b\nmysql\tsoft\tnofile\t1\t#why\n"
        );
        assert!(edit("mysql soft nofile many\n", &wanted("1", "", ""), "x").is_err());
    }

    #[test]
    fn a_file_is_made_and_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("limits");
        let given = |value: &str| -> Vec<(&str, Value)> {
            vec![
                ("dest", path.to_str().unwrap().into()),
                ("domain", "@dba".into()),
                ("limit_type", "-".into()),
                ("limit_item", "memlock".into()),
                ("value", value.into()),
            ]
        };
        let before = snapshot(root.path());
        let made = play(&MODULE, &given("unlimited"), &Play::default());
        assert_eq!(made.result.unwrap().result["msg"], "@dba\t-\tmemlock\tunlimited\n".into());
        assert!(!run_module(&MODULE, &given("unlimited")).unwrap().changed);
        undo(&made.changes);
        assert_eq!(snapshot(root.path()), before);
        assert!(run_module(&MODULE, &given("many")).unwrap_err().message.contains("is invalid"));
    }
}
