//! `ansible.posix.patch`: differences are applied to files.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Failure, Footprint, Inverse, Step};

use super::file_common::path::{absolute, parent};
use super::programs::make;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.patch",
    aliases: &[],
    summary: "Applies a patch to files of the host by its program `patch`",
    args: &[
        Arg::new("src", Type::Path, "the patch: on the controller, or on the host with `remote_src`")
            .required()
            .aliases(&["patchfile"]),
        Arg::new("dest", Type::Path, "the file that is changed").aliases(&["originalfile"]),
        Arg::new("basedir", Type::Path, "the directory that the paths in the patch are in"),
        Arg::new("state", Type::Str, "`absent`: the patch is taken back")
            .default("present")
            .choices(&["absent", "present"]),
        Arg::new("remote_src", Type::Bool, "`src` is on the host").default("false"),
        Arg::new("strip", Type::Int, "parts of the paths in the patch that are left out").default("0"),
        Arg::new("backup", Type::Bool, "patch keeps the old files beside the new").default("false"),
        Arg::new("binary", Type::Bool, "keep carriage returns as they are").default("false"),
        Arg::new("ignore_whitespace", Type::Bool, "differences in blanks do not matter").default("false"),
    ],
    rules: &[Rule::RequiredOneOf(&["dest", "basedir"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let dest = match text("dest") {
        Some(dest) => Some(absolute(&host, dest).await?),
        None => None,
    };
    let base = match (text("basedir"), &dest) {
        (Some(base), _) => absolute(&host, base).await?,
        (None, Some(dest)) => parent(dest).to_owned(),
        (None, None) => return Err(Failure::new("one of the following is required: dest, basedir")),
    };
    // the patch is a file of the host, or comes along in the script: it is text, and small
    let input = if args.bool("remote_src") {
        format!("cat {}", quote(&absolute(&host, args.text("src")).await?))
    } else {
        let path = super::copy::find_source(&context, "files", args.text("src"))?;
        let source = super::copy::read_source(&path, Some(&context.keyring))?;
        let content = String::from_utf8(source.content.bytes().unwrap_or_default().to_vec())
            .map_err(|_| Failure::new(format!("{} is no text in UTF-8", path.display())))?;
        format!("printf %s {}", quote(&content))
    };
    let mut words = format!("patch --quiet --force --reject-file=- --strip={}", args.int("strip").unwrap_or(0));
    for (word, key) in [("--binary", "binary"), ("--ignore-whitespace", "ignore_whitespace")] {
        if args.bool(key) {
            words.push_str(&format!(" {word}"));
        }
    }
    let file = dest.as_deref().map(|dest| format!(" {}", quote(dest))).unwrap_or_default();
    let start = format!("export LC_ALL=C\ncommand -v patch >/dev/null || exit 127\ncd {} || exit 3\n", quote(&base));
    let forth = if args.text("state") == "present" { "" } else { " --reverse" };
    let back = if forth.is_empty() { " --reverse" } else { "" };
    let command = |direction: &str, more: &str| {
        // without asking, and without guessing that it is meant the other way
        format!("{input} | {words}{direction}{more}{file}")
    };
    // if it can be taken back, it is applied
    let done = if forth.is_empty() { " --reverse" } else { "" };
    let script = format!(
        "{start}if {} >/dev/null 2>&1; then echo done; else {}; fi",
        command(done, " --dry-run"),
        command(forth, " --dry-run")
    );
    let footprint = Footprint::tree(base.as_str()).and(Footprint::tree(dest.clone().unwrap_or_else(|| base.clone())));
    let answer = host.read(Script { text: script, footprint: footprint.clone() }).await?;
    match answer.code {
        Some(127) => return Err(Failure::new("the host has no program `patch`")),
        Some(3) => return Err(Failure::new(format!("there is no directory {base} on the host"))),
        Some(0) => {}
        _ => {
            let said = format!("{}{}", answer.text(), answer.error_text());
            return Err(Failure::new(format!("the patch does not fit: {}", said.trim())));
        }
    }
    if answer.text().trim() == "done" {
        return Ok(Outcome::ok());
    }
    let backup = if args.bool("backup") { " --backup --version-control=numbered" } else { "" };
    let change = Change::uncertain(format!("patch of {}", dest.as_deref().unwrap_or(&base)), footprint)
        .step(Step::new(format!("{start}{}", command(forth, backup))))
        .inverse(Inverse::Steps(vec![Step::new(format!("{start}{}", command(back, "")))]));
    make(&host, change).await?;
    Ok(Outcome::changed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, skip, snapshot, undo};
    use crate::value::Value;

    const PATCH: &str = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+it's three\n";

    #[test]
    fn a_patch_is_applied_once_and_taken_back() {
        if std::process::Command::new("patch").arg("--version").output().is_err() {
            skip("this machine has no patch");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("d")).unwrap();
        std::fs::write(at("d/f"), "one\ntwo\n").unwrap();
        std::fs::write(at("p"), PATCH).unwrap();
        let before = snapshot(root.path());
        for (remote, place) in [(false, ("dest", at("d/f"))), (true, ("basedir", at("d")))] {
            let run = |more: &[(&'static str, Value)], check| {
                let own = [
                    ("src", at("p").into()),
                    (place.0, place.1.as_str().into()),
                    ("remote_src", remote.into()),
                    ("strip", 1.into()),
                ];
                play(&MODULE, &[&own[..], more].concat(), &Play { check, ..Play::default() })
            };
            assert!(run(&[], true).result.unwrap().changed);
            assert_eq!(snapshot(root.path()), before);
            let applied = run(&[], false);
            assert!(applied.result.unwrap().changed);
            assert_eq!(std::fs::read_to_string(at("d/f")).unwrap(), "one\nit's three\n");
            let again = run(&[], false);
            assert_eq!((again.result.unwrap().changed, again.changes.len()), (false, 0));
            let absent = run(&[("state", "absent".into())], false);
            assert!(
                absent.result.unwrap().changed && !run(&[("state", "absent".into())], true).result.unwrap().changed
            );
            assert_eq!(snapshot(root.path()), before);
            undo(&absent.changes);
            assert_eq!(std::fs::read_to_string(at("d/f")).unwrap(), "one\nit's three\n");
            undo(&applied.changes);
            assert_eq!(snapshot(root.path()), before);
        }
        std::fs::write(at("d/f"), "quite\nother\n").unwrap();
        let given = [("src", at("p").into()), ("dest", at("d/f").into()), ("strip", 1.into())];
        let failure = play(&MODULE, &given, &Play::default()).result.unwrap_err();
        assert!(failure.message.contains("does not fit"), "{}", failure.message);
    }
}
