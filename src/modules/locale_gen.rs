//! `community.general.locale_gen`: locales of Debian and its kin.

use crate::host::reads::{FileContent, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::programs::{SYSTEM_PATH, make, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.locale_gen",
    aliases: &[],
    summary: "Keeps locales that are generated from /etc/locale.gen",
    args: &[
        Arg::new("name", Type::List, "the locales: de_DE.UTF-8").required(),
        Arg::new("state", Type::Str, "whether they are there").default("present").choices(&["absent", "present"]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("name", "the locales"), ("mechanism", "`glibc`")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const FILE: &str = "/etc/locale.gen";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let names = args.list("name");
    if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains(char::is_whitespace)) {
        return Err(Failure::new(format!("`{name}` cannot be the name of a locale")));
    }
    let present = args.text("state") == "present";
    let text = format!(
        "{SYSTEM_PATH}command -v locale-gen >/dev/null || exit 127\nlocale -a; cat /usr/share/i18n/SUPPORTED 2>/dev/null | sed 's/^/=/'"
    );
    let footprint = Footprint::named("locales").and(Footprint::path(FILE)).and(Footprint::tree("/usr/lib/locale"));
    let (file, answer) = futures_util::try_join!(
        host.read(FileContent(FILE.to_owned())),
        host.read(Script { text, footprint: footprint.clone() })
    )?;
    if answer.code == Some(127) {
        return Err(Failure::new(
            "the host has no `locale-gen`: locales of Red Hat's kind are packages, glibc-langpack-…",
        ));
    }
    let Some(file) = file else {
        return Err(Failure::new(format!("{FILE} is missing: install the package `locales`")));
    };
    let old = String::from_utf8(file).map_err(|_| Failure::new(format!("{FILE} is no text in UTF-8")))?;
    let told = answer.text();
    let installed: Vec<String> = told.lines().filter(|line| !line.starts_with('=')).map(plain).collect();
    let known: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix('=')).collect();
    let is_there = |name: &str| installed.contains(&plain(name));
    let outcome = Outcome::ok()
        .with("name", Value::list(names.iter().map(|name| Value::from(name.as_str())).collect()))
        .with("mechanism", "glibc");
    let differ: Vec<&String> = names.iter().filter(|name| is_there(name) != present).collect();
    if differ.is_empty() {
        return Ok(outcome);
    }
    let new = edit(&old, &differ, &known, present)?;
    let write = |text: &str| step(format!("cat >{FILE} && locale-gen >&2")).stdin(text.as_bytes());
    let lines = |keep: bool| {
        let names: Vec<String> = differ.iter().filter(|_| keep).map(|name| format!("{name}\n")).collect();
        names.concat()
    };
    let change = Change::uncertain("locales", footprint)
        .step(write(&new))
        .inverse(Inverse::Steps(vec![write(&old)]))
        .difference(Difference::new("locales", lines(!present), lines(present)));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

/// `de_DE.UTF-8` and `de_DE.utf8` are one.
fn plain(name: &str) -> String {
    let (name, variant) = name.trim().split_once('@').map_or((name.trim(), ""), |(name, variant)| (name, variant));
    let (name, charset) = name.split_once('.').unwrap_or((name, ""));
    format!("{name}.{}@{variant}", charset.to_lowercase().replace('-', ""))
}

/// The file with lines of these locales switched on or off; a line that it lacks is added, if the system knows the locale.
fn edit(old: &str, names: &[&String], known: &[&str], present: bool) -> Result<String, Failure> {
    let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
    for name in names {
        let is_of = |line: &str| line.trim_start_matches(['#', ' ']).split_whitespace().next() == Some(name.as_str());
        let mut found = false;
        for line in lines.iter_mut().filter(|line| is_of(line)) {
            found = true;
            let bare = line.trim_start_matches(['#', ' ']).to_owned();
            *line = if present { bare } else { format!("# {bare}") };
        }
        if !found && present {
            let supported = known.iter().find(|line| line.split_whitespace().next() == Some(name.as_str()));
            let line = supported
                .ok_or_else(|| Failure::new(format!("The following locale is not available on your system: {name}")))?;
            lines.push((*line).to_owned());
        }
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_switched_on_and_off() {
        let old = "# about\n# de_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n";
        let name = "de_DE.UTF-8".to_owned();
        let on = edit(old, &[&name], &[], true).unwrap();
        assert_eq!(on, "# about\nde_DE.UTF-8 UTF-8\nen_US.UTF-8 UTF-8\n");
        assert_eq!(edit(&on, &[&name], &[], false).unwrap(), old);
        let new = "fr_FR.UTF-8".to_owned();
        assert!(edit(old, &[&new], &["fr_FR.UTF-8 UTF-8"], true).unwrap().ends_with("\nfr_FR.UTF-8 UTF-8\n"));
        assert!(edit(old, &[&new], &[], true).unwrap_err().message.contains("not available"));
        assert_eq!(
            (plain("de_DE.utf8"), plain("de_DE.UTF-8"), plain("C")),
            (plain("de_DE.UTF8"), plain("de_DE.utf-8"), "C.@".to_owned())
        );
    }
}
