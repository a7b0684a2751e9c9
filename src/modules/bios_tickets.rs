//! `trimtab.tuning.bios_tickets`: change tickets for the hosts whose BIOS settings differ from their profiles.

use crate::host::Failure;
use crate::tickets::files::{FORMATS, TicketFile, file, tickets, to_value};
use crate::value::Value;

use super::file_common::content::difference;
use super::file_common::destination::{Manner, look, plan_edit};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.bios_tickets",
    aliases: &[],
    summary: "Writes change tickets for hosts whose BIOS settings differ from their profiles; run it once, on the controller",
    args: &[
        Arg::new("hosts", Type::RawList, "the hosts: `trimtab_bios` of each with its `name`, `profile` and place")
            .required(),
        Arg::new("profiles", Type::Dict, "what is wanted, by profile").required(),
        Arg::new("directory", Type::Path, "where the tickets are written").required().aliases(&["dest", "path"]),
        Arg::new("formats", Type::List, "the formats of the files").default("markdown,csv").choices(FORMATS),
        Arg::new("options", Type::Dict, "max_parallel, minutes_per_host, pre_checks, post_checks"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("tickets", "for each ticket its id, short_description, profile, batches and hosts with what is to change"),
        ("files", "the files of the tickets"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let value = |name: &str| args.get(name).cloned().unwrap_or_default();
    let tickets = tickets(&value("profiles"), &value("hosts"), &value("options"))?;
    let mut files: Vec<TicketFile> = Vec::new();
    for ticket in &tickets {
        for format in args.list("formats") {
            files.push(file(ticket, &format)?);
        }
    }
    let directory = args.text("directory").trim_end_matches('/');
    let paths: Vec<String> = files.iter().map(|file| format!("{directory}/{}", file.name)).collect();
    let mut outcome = Outcome::ok();
    let mut written = Vec::new();
    // One after the other where the directory is still to be made: the first makes it.
    for (file, path) in files.into_iter().zip(&paths) {
        let seen = look(&host, &args, path, true).await?;
        written.push(Value::from(seen.named.as_str()));
        if seen.content.as_deref() == Some(&file.content[..]) {
            continue;
        }
        let shown = difference((&seen.named, &seen.named), seen.content.as_deref(), false, &file.content);
        if let Some(change) = plan_edit(&seen, Some(file.content), &Manner::default()).change {
            outcome.changed = true;
            let change = change.difference(shown);
            outcome = outcome.differences(change.differences.iter().cloned());
            host.change(change).await?;
        }
    }
    Ok(outcome.with("tickets", Value::list(tickets.iter().map(to_value).collect())).with("files", Value::list(written)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play, undo};

    fn json(text: &str) -> Value {
        Value::from_json(&serde_json::from_str(text).unwrap())
    }

    fn args(directory: &std::path::Path, smmu: &str) -> Vec<(&'static str, Value)> {
        let hosts = format!(
            r#"[{{"name": "kp001", "profile": "arm",
                 "observations": [{{"setting": "smmu", "value": "{smmu}", "confidence": "observed", "evidence": "e"}}]}}]"#
        );
        vec![
            ("hosts", json(&hosts)),
            ("profiles", json(r#"{"arm": {"settings": {"smmu": {"wanted": "enabled", "reason": "SR-IOV"}}}}"#)),
            ("directory", directory.join("tickets").to_string_lossy().into_owned().into()),
        ]
    }

    #[test]
    fn tickets_are_written_once_and_can_be_taken_back() {
        let directory = tempfile::tempdir().unwrap();
        let args = |smmu| args(directory.path(), smmu);
        let names = || -> Vec<String> {
            let entries = std::fs::read_dir(directory.path().join("tickets")).into_iter().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let check = play(&MODULE, &args("disabled"), &Play { check: true, ..Play::default() });
        assert!(check.result.unwrap().changed && names().is_empty());
        let first = play(&MODULE, &args("disabled"), &Play::default());
        let outcome = first.result.unwrap();
        assert!(outcome.changed);
        let id = outcome.result.get("tickets").unwrap().as_list().unwrap()[0].get("id").unwrap().to_text().into_owned();
        assert_eq!(names(), [format!("{id}.csv"), format!("{id}.md")]);
        let second = play(&MODULE, &args("disabled"), &Play::default());
        assert!(!second.result.unwrap().changed && second.changes.is_empty());
        undo(&first.changes);
        assert!(names().is_empty());
        let right = play(&MODULE, &args("enabled"), &Play::default()).result.unwrap();
        assert!(!right.changed && right.result.get("files").unwrap().as_list().unwrap().is_empty());
    }

    #[test]
    fn wrong_input_says_where() {
        let directory = tempfile::tempdir().unwrap();
        let mut args = args(directory.path(), "enabled");
        args[0].1 = json(r#"[{"name": "kp001", "profile": "arn", "observations": []}]"#);
        let failure = play(&MODULE, &args, &Play::default()).result.unwrap_err();
        assert_eq!(failure.message, "host `kp001` has the profile `arn`, which does not exist; did you mean `arm`?");
    }
}
