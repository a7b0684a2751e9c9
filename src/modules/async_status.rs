//! ansible.builtin.async_status: asks what became of a job in the background.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Failure, Footprint, Inverse, Step};
use crate::value::{Map, Value};

use super::background::directory;
use super::execution::{environment, failed_with, lines};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.async_status",
    aliases: &[],
    summary: "Asks what became of a job that `async` with `poll: 0` started",
    args: &[
        Arg::new("jid", Type::Str, "The job: `ansible_job_id` of the task that started it").required(),
        Arg::new("mode", Type::Str, "`status` asks for it, `cleanup` removes its file")
            .choices(&["cleanup", "status"])
            .default("status"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("ansible_job_id", "the job"),
        ("started", "true"),
        ("finished", "true if the job has ended; its own return values are here too then"),
        ("results_file", "the file of the job on the host"),
        ("erased", "the file that `mode: cleanup` removed"),
        ("stdout", "standard output of the job, once it has ended"),
        ("stderr", "standard error of the job, once it has ended"),
        ("stdout_lines", "standard output as a list of lines"),
        ("stderr_lines", "standard error as a list of lines"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, settings } = invocation;
    let job = args.text("jid");
    if job.is_empty() || job.contains('/') || job.starts_with('.') {
        return Err(Failure::new(format!(
            "`{job}` is no name of a job; give `ansible_job_id` of the task that started it"
        )));
    }
    let job_file =
        format!("{}{}trimtab_job=$trimtab_directory/{}\n", environment(&settings)?, directory(&context)?, quote(job));
    let text = format!("{job_file}printf '%s\\n' \"$trimtab_job\"\ncat -- \"$trimtab_job\"\n");
    // a job goes on by itself, so any change may be its
    let response = host.read(Script { text, footprint: Footprint::Everything }).await?;
    let text = response.text();
    let (file, state) = text.split_once('\n').unwrap_or((&text, ""));
    if !response.success() {
        let result = crate::value::object([
            ("ansible_job_id", job.into()),
            ("results_file", file.into()),
            ("started", true.into()),
            ("finished", true.into()),
        ]);
        return Err(failed_with(Failure::new("could not find job"), result));
    }
    if args.text("mode") == "cleanup" {
        let change = Change::uncertain(format!("the job {job}"), Footprint::tree(file))
            .step(Step::new(format!("{job_file}rm -f -- \"$trimtab_job\"\n")))
            .inverse(Inverse::None("what a job said is not kept".to_owned()));
        let applied = host.change(change).await?;
        if let Some(failed) = applied.responses.iter().find(|response| !response.success()) {
            return Err(Failure::new(format!("cannot remove {file}: {}", failed.error_text().trim())));
        }
        return Ok(Outcome::ok().with("ansible_job_id", job).with("erased", file));
    }
    outcome(job, file, state)
}

/// What the file of a job says; one that is empty is being written.
fn outcome(job: &str, file: &str, state: &str) -> Result<Outcome, Failure> {
    let mut result = Map::new();
    let mut finished = false;
    if !state.trim().is_empty() {
        let json = serde_json::from_str::<serde_json::Value>(state)
            .map_err(|error| Failure::new(format!("could not parse the state of the job in {file}: {error}")))?;
        let Value::Map(map) = Value::from_json(&json) else {
            return Err(Failure::new(format!("{file} holds no state of a job")));
        };
        result = Map::clone(&map);
        finished = !result.contains_key("started") || result.get("finished").is_some_and(Value::is_truthy);
    }
    if result.get("cmd").is_some_and(Value::is_null) {
        result.shift_remove("cmd");
    }
    for (name, names) in [("stdout", "stdout_lines"), ("stderr", "stderr_lines")] {
        let text = result.entry(name.into()).or_insert_with(|| "".into()).to_text().into_owned();
        result.insert(names.into(), lines(&text));
    }
    result.insert("ansible_job_id".into(), job.into());
    result.insert("results_file".into(), file.into());
    result.insert("started".into(), true.into());
    result.insert("finished".into(), finished.into());
    let changed = result.shift_remove("changed").is_some_and(|changed| changed.is_truthy());
    let failed = result.shift_remove("failed").is_some_and(|failed| failed.is_truthy());
    if finished && failed {
        let message =
            result.shift_remove("msg").map_or("the job failed".to_owned(), |text| text.to_text().into_owned());
        return Err(failed_with(Failure::new(message), result).with("changed", changed));
    }
    Ok(Outcome { result, ..Outcome::with_changed(changed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_job_tells_how_far_it_is() {
        let cases = [
            ("", Ok((false, false))),
            ("{\"started\": 1, \"finished\": 0, \"ansible_job_id\": \"j1.2\"}", Ok((false, false))),
            (
                "{\"changed\": true, \"rc\": 0, \"stdout\": \"a\\nb\", \"failed\": false, \"msg\": \"\"}",
                Ok((true, true)),
            ),
            ("{\"failed\": true, \"msg\": \"Timeout exceeded\"}", Err("Timeout exceeded")),
            ("{\"rc\": 3, \"fail", Err("could not parse")),
            ("[]", Err("holds no state")),
        ];
        for (state, expected) in cases {
            match (outcome("j1.2", "/x/j1.2", state), expected) {
                (Ok(outcome), Ok((finished, changed))) => {
                    assert_eq!(
                        (outcome.result["finished"].is_truthy(), outcome.changed),
                        (finished, changed),
                        "{state}"
                    );
                    assert!(outcome.result["stdout_lines"].as_list().is_some(), "{state}");
                }
                (Err(failure), Err(words)) => assert!(failure.message.contains(words), "{state}: {}", failure.message),
                (other, _) => panic!("{state}: {other:?}"),
            }
        }
    }
}
