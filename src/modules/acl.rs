//! `ansible.posix.acl`: access lists of files.

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::file_common::path::absolute;
use super::programs::{SYSTEM_PATH, make, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.acl",
    aliases: &[],
    summary: "Keeps entries in the access lists of files and directories",
    args: &[
        Arg::new("path", Type::Path, "the file or directory").required().aliases(&["name"]),
        Arg::new("state", Type::Str, "`query`: tell the list")
            .default("query")
            .choices(&["absent", "present", "query"]),
        Arg::new("entity", Type::Str, "the user or group").default(""),
        Arg::new("etype", Type::Str, "what the entry is for").choices(&["group", "mask", "other", "user"]),
        Arg::new("permissions", Type::Str, "r, w, x, X"),
        Arg::new("entry", Type::Str, "the whole entry: [d:]type:entity[:permissions]"),
        Arg::new("default", Type::Bool, "of what will be made in the directory").default("false"),
        Arg::new("recursive", Type::Bool, "of all that is in the directory too").default("false").aliases(&["recurse"]),
        Arg::new("recalculate_mask", Type::Str, "whether the mask follows")
            .default("default")
            .choices(&["default", "mask", "no_mask"]),
        Arg::new("follow", Type::Bool, "what a link leads to").default("true"),
        Arg::new("use_nfsv4_acls", Type::Bool, "not supported: lists of NFS version 4").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("acl", "the list, an entry each")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    if args.bool("use_nfsv4_acls") {
        return Err(Failure::new(
            "the argument `use_nfsv4_acls` is not supported: use `nfs4_setfacl` by the module `command`",
        ));
    }
    let state = args.text("state");
    let path = absolute(&host, args.text("path")).await?;
    let entry = entry(&args, state)?;
    let walk = match (args.bool("recursive"), args.bool("follow")) {
        (true, true) => " -R -L",
        (true, false) => " -R -P",
        (false, true) => "",
        (false, false) => " -P",
    };
    let mask = match args.text("recalculate_mask") {
        "mask" => " --mask",
        "no_mask" => " --no-mask",
        _ => "",
    };
    let word = quote(&path);
    let start = format!("{SYSTEM_PATH}export LC_ALL=C\n");
    // `--test` tells what would be: entries of each file in one line, `*,*` if nothing is altered
    let test = match (&entry, state) {
        (Some(entry), "present") => format!("setfacl{walk}{mask} --test -m {} {word}", quote(entry)),
        (Some(entry), "absent") => format!("setfacl{walk}{mask} --test -x {} {word}", quote(entry)),
        _ => ":".to_owned(),
    };
    let text = format!(
        "{start}command -v getfacl >/dev/null || exit 127\ngetfacl --omit-header --absolute-names {word} || exit; printf '\\036'\n{test} || exit; printf '\\036'\n\
         getfacl{} --absolute-names {word} 2>/dev/null",
        if args.bool("recursive") { " -R" } else { "" }
    );
    let footprint = Footprint::tree(path.as_str());
    let (there, answer) = futures_util::try_join!(
        host.read(Attributes { path: path.clone(), follow: args.bool("follow") }),
        host.read(Script { text, footprint: footprint.clone() })
    )?;
    if there.is_none() {
        return Err(Failure::new("Path not found or not accessible."));
    }
    match answer.code {
        Some(0) => {}
        Some(127) => return Err(Failure::new("the host has no programs getfacl and setfacl: install acl")),
        _ => return Err(Failure::new(format!("acl: {}", answer.error_text().trim()))),
    }
    let output = answer.text();
    let mut parts = output.splitn(3, '\u{1e}');
    let (list, would, whole) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let entries: Vec<&str> = list
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .collect();
    let outcome = Outcome::ok().with("acl", Value::list(entries.iter().map(|entry| Value::from(*entry)).collect()));
    let Some(entry) = entry.filter(|_| state != "query") else { return Ok(outcome) };
    let differs = would.lines().filter(|line| !line.trim().is_empty()).any(|line| !line.ends_with("*,*"));
    // removing what is not there alters nothing, but the mask may be told anew
    let bare = entry.trim_start_matches("default:").to_owned();
    let is_missing = state == "absent"
        && !whole.lines().any(|line| line.trim_start_matches("default:").starts_with(&format!("{bare}:")));
    if !differs || is_missing {
        return Ok(outcome);
    }
    let verb = if state == "present" { "-m" } else { "-x" };
    // the restored list holds owners too, so it is set by root's or the owner's right alone
    let back = step(format!("{start}setfacl --restore=-")).stdin(whole.as_bytes());
    let change = Change::uncertain(format!("access list of {path}"), footprint)
        .step(step(format!("{start}setfacl{walk}{mask} {verb} {} {word}", quote(&entry))))
        .inverse(Inverse::Steps(vec![back]))
        .difference(Difference::new(
            format!("access list of {path}"),
            if state == "absent" { format!("{entry}\n") } else { String::new() },
            if state == "present" { format!("{entry}\n") } else { String::new() },
        ));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

/// The entry as setfacl(1) takes it.
fn entry(args: &Args, state: &str) -> Result<Option<String>, Failure> {
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let default = |entry: String| if args.bool("default") { format!("default:{entry}") } else { entry };
    if let Some(entry) = text("entry") {
        if text("etype").is_some() || text("permissions").is_some() || !args.text("entity").is_empty() {
            return Err(Failure::new("'entry' MUST NOT be set when 'entity', 'etype' or 'permissions' are set"));
        }
        let (is_default, entry) = match entry.split_once(':') {
            Some(("d" | "default", rest)) => (true, rest),
            _ => (args.bool("default"), entry),
        };
        let count = entry.split(':').count();
        if (state == "present" && count != 3) || (state == "absent" && !(2..=3).contains(&count)) {
            return Err(Failure::new(
                "'entry' must have 3 sections divided by ':' for state=present, and 2 for state=absent",
            ));
        }
        let parts: Vec<&str> = entry.split(':').collect();
        let kind = match parts[0] {
            "u" => "user",
            "g" => "group",
            "m" => "mask",
            "o" => "other",
            other => other,
        };
        let rest = if state == "absent" { parts[1].to_owned() } else { parts[1..].join(":") };
        let entry = format!("{kind}:{rest}");
        return Ok(Some(if is_default { format!("default:{entry}") } else { entry }));
    }
    match (state, text("etype"), text("permissions")) {
        ("query", ..) => Ok(None),
        ("present", Some(kind), Some(permissions)) => {
            Ok(Some(default(format!("{kind}:{}:{permissions}", args.text("entity")))))
        }
        ("absent", Some(kind), _) => Ok(Some(default(format!("{kind}:{}", args.text("entity"))))),
        ("present", ..) => Err(Failure::new("'etype' and 'permissions' are needed for state=present, or 'entry'")),
        _ => Err(Failure::new("'etype' is needed for state=absent, or 'entry'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, undo};

    #[test]
    fn entries_are_worded_as_setfacl_has_them() {
        let entry = |given: &[(&'static str, &str)], state: &str| {
            let map = given
                .iter()
                .map(|(name, value)| (Value::from(*name), Value::from(*value)))
                .chain([("path".into(), "/x".into())])
                .collect();
            entry(&crate::modules::args::validate(&MODULE, &map).unwrap(), state)
        };
        assert_eq!(
            entry(&[("etype", "user"), ("entity", "joe"), ("permissions", "rw")], "present").unwrap().unwrap(),
            "user:joe:rw"
        );
        assert_eq!(entry(&[("entry", "d:g:adm:r")], "present").unwrap().unwrap(), "default:group:adm:r");
        assert_eq!(entry(&[("entry", "u:joe:rw")], "absent").unwrap().unwrap(), "user:joe");
        assert!(entry(&[("entry", "u:joe")], "present").is_err() && entry(&[], "absent").is_err());
        assert_eq!(entry(&[], "query").unwrap(), None);
    }

    #[test]
    fn entries_come_and_go() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        std::fs::write(&path, "").unwrap();
        let can = std::process::Command::new("setfacl")
            .args(["-m", "user:1234:r"])
            .arg(&path)
            .output()
            .is_ok_and(|output| output.status.success());
        if !can {
            skip("this machine has no setfacl, or a file system without access lists");
            return;
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        let run = |more: &[(&'static str, Value)], check| -> Played {
            play(
                &MODULE,
                &[&[("path", path.to_str().unwrap().into())], more].concat(),
                &Play { check, ..Play::default() },
            )
        };
        let one = [
            ("etype", "user".into()),
            ("entity", "1234".into()),
            ("permissions", "rw".into()),
            ("state", "present".into()),
        ];
        assert!(run(&one, true).result.unwrap().changed);
        let made = run(&one, false);
        assert!(made.result.unwrap().changed && !run(&one, false).result.unwrap().changed);
        let told = run(&[], true).result.unwrap().result["acl"].clone();
        assert!(told.as_list().unwrap().contains(&"user:1234:rw-".into()), "{}", told.to_repr());
        let gone = [("entry", "user:1234".into()), ("state", "absent".into())];
        let removed = run(&gone, false);
        assert!(removed.result.unwrap().changed && !run(&gone, false).result.unwrap().changed);
        undo(&removed.changes);
        assert!(!run(&one, true).result.unwrap().changed);
        undo(&made.changes);
        assert!(run(&one, true).result.unwrap().changed);
    }
}
