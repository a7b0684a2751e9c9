//! ansible.builtin.cron: jobs and variables in crontabs of users and in files of /etc/cron.d.

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Query, Step, Subject};
use crate::value::Value;

use super::cron_table::{Side, Table};
use super::edited_file::{bring, text_of};
use super::file_common::content::{backup_name, leaves_nothing};
use super::file_common::destination::{Manner, look};
use super::programs::{SYSTEM_PATH, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.cron",
    aliases: &[],
    summary: "Keeps jobs and variables in crontabs of users and in files of /etc/cron.d",
    args: &[
        Arg::new("name", Type::Str, "The job's name, which stands above it; with `env` the variable's").required(),
        Arg::new("job", Type::Str, "The command; with `env` the variable's value").aliases(&["value"]),
        Arg::new("state", Type::Str, "Whether it is there").default("present").choices(&["present", "absent"]),
        Arg::new(
            "user",
            Type::Str,
            "Whose crontab; default the user the task runs as. With `cron_file` who runs the job",
        ),
        Arg::new("cron_file", Type::Path, "This file, below /etc/cron.d if relative, and no user's crontab"),
        Arg::new("minute", Type::Str, "0-59, `*`, `*/2`, …").default("*"),
        Arg::new("hour", Type::Str, "0-23, `*`, `*/2`, …").default("*"),
        Arg::new("day", Type::Str, "Of the month: 1-31, `*`, …").default("*").aliases(&["dom"]),
        Arg::new("month", Type::Str, "1-12, `*`, …").default("*"),
        Arg::new("weekday", Type::Str, "0-6 from Sunday, `*`, …").default("*").aliases(&["dow"]),
        Arg::new("special_time", Type::Str, "A word in place of the times")
            .choices(&["reboot", "yearly", "annually", "monthly", "weekly", "daily", "hourly"]),
        Arg::new("disabled", Type::Bool, "The job is there as a comment").default("false"),
        Arg::new("env", Type::Bool, "It is a variable, not a job").default("false"),
        Arg::new("insertafter", Type::Str, "A new variable goes behind this one"),
        Arg::new("insertbefore", Type::Str, "A new variable goes before this one"),
        Arg::new("backup", Type::Bool, "Keep the old crontab in a file").default("false"),
    ],
    rules: &[Rule::MutuallyExclusive(&["insertafter", "insertbefore"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("jobs", "names of the jobs that are managed"),
        ("envs", "names of the variables"),
        ("cron_file", "the file, if one was given"),
        ("state", "as given, if the file was removed"),
        ("backup_file", "where the old crontab is kept, if it is"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let outcome = wanted.warnings.iter().fold(Outcome::ok(), |outcome, warning| outcome.warning(warning.as_str()));
    match &wanted.file {
        Some(file) => in_file(&host, &args, &wanted, file, outcome).await,
        None => in_crontab(&host, &args, &wanted, outcome).await,
    }
}

/// What the arguments ask for.
#[derive(Debug)]
struct Wanted {
    name: String,
    what: What,
    /// The absolute path.
    file: Option<String>,
    user: Option<String>,
    warnings: Vec<String>,
}

#[derive(Debug)]
enum What {
    Job(String),
    NoJob,
    Variable { value: String, beside: Option<(String, Side)> },
    NoVariable,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let (name, user) = (args.text("name").to_owned(), args.str("user").filter(|user| !user.is_empty()));
        let present = args.text("state") == "present";
        let is_variable = args.bool("env");
        let mut warnings = Vec::new();
        let file = args.str("cron_file").filter(|file| !file.is_empty());
        let file = file.map(|file| if file.starts_with('/') { file.to_owned() } else { format!("/etc/cron.d/{file}") });
        if let Some(file) = &file {
            if file == "/etc/crontab" {
                return Err(Failure::new("Will not manage /etc/crontab via cron_file, see documentation."));
            }
            let base = file.rsplit('/').next().unwrap_or_default();
            if base.is_empty() || !base.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)) {
                warnings.push(format!(
                    "Filename portion of cron_file (\"{base}\") should consist solely of upper- and lower-case letters, \
                     digits, underscores, and hyphens"
                ));
            }
        }
        if name.contains(['\n', '\r']) {
            return Err(Failure::new("`name` has more than one line"));
        }
        let times = ["minute", "hour", "day", "month", "weekday"].map(|time| args.text(time));
        if args.has("special_time") && times.iter().any(|time| *time != "*") {
            return Err(Failure::new("You must specify time and date fields or special time."));
        }
        let beside = match (args.str("insertafter"), args.str("insertbefore")) {
            (Some(other), _) => Some((other.to_owned(), Side::After)),
            (_, Some(other)) => Some((other.to_owned(), Side::Before)),
            _ => None,
        };
        if present {
            if file.is_some() && user.is_none() {
                return Err(Failure::new("To use cron_file=... parameter you must specify user=... as well"));
            }
            if !args.has("job") {
                return Err(Failure::new("You must specify 'job' to install a new cron job or variable"));
            }
            if beside.is_some() && !is_variable {
                return Err(Failure::new("Insertafter and insertbefore parameters are valid only with env=yes"));
            }
        }
        if is_variable && name.contains(' ') {
            return Err(Failure::new("Invalid name for environment variable"));
        }
        let job = args.text("job").trim_matches(['\r', '\n']);
        if present && job.contains(['\r', '\n']) {
            return Err(Failure::new("`job` has more than one line, of which cron would take only the first"));
        }
        let what = match (is_variable, present) {
            (true, true) => What::Variable { value: job.to_owned(), beside },
            (true, false) => What::NoVariable,
            (false, false) => What::NoJob,
            (false, true) => {
                let time = args.str("special_time").map_or_else(|| times.join(" "), |word| format!("@{word}"));
                let who = user.filter(|_| file.is_some()).map(|user| format!("{user} ")).unwrap_or_default();
                let sign = if args.bool("disabled") { "#" } else { "" };
                What::Job(format!("{sign}{time} {who}{job}"))
            }
        };
        Ok(Wanted { name, what, file, user: user.map(str::to_owned), warnings })
    }

    /// The table as it is to be.
    fn edit(&self, table: &Table) -> Result<Table, Failure> {
        let mut new = table.clone();
        match &self.what {
            What::Job(job) => new.put_job(&self.name, job),
            What::NoJob => new.remove_job(&self.name),
            What::NoVariable => new.remove_variable(&self.name),
            What::Variable { value, beside } => {
                let beside = beside.as_ref().map(|(other, side)| (other.as_str(), *side));
                if !new.put_variable(&self.name, value, beside) {
                    let other = beside.map_or("", |(other, _)| other);
                    return Err(Failure::new(format!("Variable named '{other}' not found.")));
                }
            }
        }
        Ok(new)
    }
}

/// True if the text is to be written: it differs, or its last line is not ended.
fn differs(old: &str, table: &Table, new: &Table) -> bool {
    new != table || (!old.is_empty() && !old.ends_with(['\n', '\r']))
}

fn told(outcome: Outcome, table: &Table) -> Outcome {
    let list = |names: Vec<String>| Value::list(names.iter().map(|name| Value::from(name.as_str())).collect());
    outcome.with("jobs", list(table.jobs())).with("envs", list(table.variables()))
}

async fn in_file(host: &Host, args: &Args, wanted: &Wanted, file: &str, outcome: Outcome) -> Result<Outcome, Failure> {
    let seen = look(host, args, file, false).await?;
    let old = text_of(&seen)?;
    let table = Table { lines: old.lines().map(str::to_owned).collect() };
    let new = wanted.edit(&table)?;
    if matches!(wanted.what, What::NoJob) && new != table && new.is_blank() {
        let change = removal(&seen.named, &old, seen.attributes.as_ref().map_or(0o644, |there| there.mode));
        let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
        host.change(change).await?;
        return Ok(outcome.with("cron_file", args.text("cron_file")).with("state", args.text("state")));
    }
    let backup = args.bool("backup").then(|| backup_name(&seen.named));
    let manner = Manner { backup, validate: None, unsafe_writes: false };
    let content = differs(&old, &table, &new).then(|| new.text());
    let (outcome, written) = bring(host, &seen, content, &manner, outcome).await?;
    let outcome = told(outcome, &new).with("cron_file", args.text("cron_file"));
    Ok(match written.backup {
        Some(backup) => outcome.with("backup_file", backup),
        None => outcome,
    })
}

/// The removal of a file that has no more jobs.
fn removal(path: &str, old: &str, mode: u32) -> Change {
    let name = quote(path);
    let back = Step::new(format!("umask 077\ncat >{name} && chmod {mode:o} {name}")).stdin(old).writes(path);
    let shown = Difference { after_header: "/dev/null".into(), ..Difference::new(path, old, "") };
    let change = Change::certain(format!("file {path}"), Footprint::path(path))
        .step(Step::new(format!("rm -f {name}")).writes(path))
        .inverse(Inverse::Steps(vec![back]))
        .difference(shown);
    leaves_nothing(change, path)
}

/// `crontab`, for the user's own or another's table.
fn crontab(user: Option<&str>, words: &str) -> String {
    match user {
        None => format!("crontab {words}"),
        Some(user) => {
            let user = quote(user);
            format!("if [ \"$(id -un)\" = {user} ]; then crontab {words}; else crontab -u {user} {words}; fi")
        }
    }
}

async fn in_crontab(host: &Host, args: &Args, wanted: &Wanted, outcome: Outcome) -> Result<Outcome, Failure> {
    let user = wanted.user.as_deref();
    let whose = user.unwrap_or("the task's user");
    let footprint = Footprint::tree("/var/spool/cron").and(Footprint::Of(vec![Subject::Named("crontabs".into())]));
    let text = format!("{SYSTEM_PATH}command -v crontab >/dev/null 2>&1 || exit 127\n{}", crontab(user, "-l"));
    let query = Query::Script { text: text.clone(), footprint: footprint.clone() };
    let answer = host.read(Script { text, footprint: footprint.clone() }).await?;
    let old = match answer.code {
        Some(0) => answer.text(),
        // no crontab yet
        Some(1) if answer.error_text().is_empty() || answer.error_text().contains("no crontab for") => String::new(),
        Some(127) => return Err(Failure::new("this host has no program `crontab`")),
        _ => {
            let reason = answer.error_text();
            return Err(Failure::new(format!("cannot read the crontab of {whose}: {}", reason.trim())));
        }
    };
    let table = Table::parse(&old);
    let new = wanted.edit(&table)?;
    if !differs(&old, &table, &new) {
        return Ok(told(outcome, &new));
    }
    let header = user.map_or_else(|| "crontab".to_owned(), |user| format!("crontab for user \"{user}\""));
    let back = if answer.success() { step(crontab(user, "-")).stdin(table.text()) } else { step(crontab(user, "-r")) };
    let mut change = Change::certain(format!("crontab of {whose}"), footprint)
        .leaves(query, Response::output(new.text()))
        .difference(Difference::new(header, table.text(), new.text()))
        .inverse(Inverse::Steps(vec![back]));
    let backup = (args.bool("backup") && answer.success()).then(|| backup_name("/tmp/crontab"));
    if let Some(backup) = &backup {
        change =
            change.touching(backup).step(step(format!("umask 077\n{{ {}; }} >{}", crontab(user, "-l"), quote(backup))));
    }
    change = change.step(step(crontab(user, "-")).stdin(new.text()));
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.iter().cloned());
    host.change(change).await?;
    let outcome = told(outcome, &new);
    Ok(match backup {
        Some(backup) => outcome.with("backup_file", backup),
        None => outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, run_module, shells, snapshot, undo, undo_in};

    #[test]
    fn a_file_of_jobs_is_made_changed_removed_and_brought_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs");
        let text = path.to_str().unwrap();
        let given =
            |more: &[(&'static str, Value)]| [&[("name", "a b".into()), ("cron_file", text.into())], more].concat();
        let job = [("user", "root".into()), ("job", "ls -l >/dev/null".into()), ("hour", "5,2".into())];
        let made = play(&MODULE, &given(&job), &Play::default());
        let outcome = made.result.unwrap();
        assert_eq!(outcome.result["jobs"].to_repr(), "['a b']");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "#Ansible: a b\n* 5,2 * * * root ls -l >/dev/null\n");
        assert!(!run_module(&MODULE, &given(&job)).unwrap().changed);
        let special =
            [("user", "root".into()), ("job", "x".into()), ("special_time", "daily".into()), ("disabled", true.into())];
        assert!(run_module(&MODULE, &given(&special)).unwrap().changed);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "#Ansible: a b\n#@daily root x\n");
        let before = snapshot(directory.path());
        let gone = play(&MODULE, &given(&[("state", "absent".into())]), &Play::default());
        assert!(gone.result.unwrap().changed && !path.exists());
        undo(&gone.changes);
        assert_eq!(snapshot(directory.path()), before);
        assert!(
            !run_module(&MODULE, &[("name", "z".into()), ("cron_file", text.into()), ("state", "absent".into())])
                .unwrap()
                .changed
        );
    }

    /// A shell with a `crontab` that keeps tables in files of the directory, as cronie's does.
    fn with_crontab(directory: &std::path::Path, shell: &str) -> &'static str {
        let program = directory.join("crontab");
        let text = format!(
            "#!/bin/sh\nu=$(id -un); [ \"$1\" != -u ] || {{ u=$2; shift 2; }}\nf={}/table-$u\ncase $1 in\n\
             -l) [ -e \"$f\" ] || {{ echo \"no crontab for $u\" >&2; exit 1; }}; cat \"$f\";;\n-r) rm \"$f\";;\n\
             -) cat >\"$f\";;\nesac\n",
            directory.display()
        );
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Box::leak(format!("env PATH={}:$PATH {shell}", directory.display()).into_boxed_str())
    }

    #[test]
    fn a_users_crontab_is_kept_on_every_shell() {
        for shell in shells() {
            let directory = tempfile::tempdir().unwrap();
            let shell = with_crontab(directory.path(), shell);
            let run = |given: &[(&str, Value)]| play(&MODULE, given, &Play { shell, ..Play::default() });
            let table = || std::fs::read_to_string(directory.path().join("table-daemon")).unwrap();
            let job = [("name", "j".into()), ("job", "echo '100%'".into()), ("user", "daemon".into())];
            let made = run(&job);
            assert!(made.result.unwrap().changed, "{shell}");
            assert_eq!(table(), "#Ansible: j\n* * * * * echo '100%'\n");
            let again = run(&job);
            assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
            let env =
                [("name", "PATH".into()), ("value", "/bin".into()), ("env", true.into()), ("user", "daemon".into())];
            let changed = run(&env);
            assert!(changed.result.unwrap().changed);
            assert!(table().starts_with("PATH=\"/bin\"\n#Ansible: j\n"));
            undo_in(&changed.changes, shell);
            assert_eq!(table(), "#Ansible: j\n* * * * * echo '100%'\n");
            undo_in(&made.changes, shell);
            assert!(!directory.path().join("table-daemon").exists());
        }
    }

    #[test]
    fn senseless_jobs_are_refused() {
        let refused = |given: &[(&str, Value)]| run_module(&MODULE, given).unwrap_err().message;
        let name = ("name", Value::from("x"));
        assert!(refused(std::slice::from_ref(&name)).contains("must specify 'job'"));
        assert!(refused(&[name.clone(), ("job", "a\nb".into())]).contains("more than one line"));
        assert!(refused(&[name.clone(), ("job", "a".into()), ("cron_file", "f".into())]).contains("user=..."));
        assert!(
            refused(&[name.clone(), ("job", "a".into()), ("cron_file", "/etc/crontab".into())])
                .contains("/etc/crontab")
        );
        let both = [name, ("job", "a".into()), ("special_time", "daily".into()), ("hour", "1".into())];
        assert!(refused(&both).contains("or special time"));
    }
}
