//! ansible.builtin.setup: gathers facts of the host.

use globset::{Glob, GlobMatcher};

use crate::facts::{self, Options};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint};
use crate::value::{Map, Value};

use super::execution::environment;
use super::{Action, Arg, Args, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.setup",
    aliases: &["ansible.builtin.gather_facts"],
    summary: "Gathers facts of the host: distribution, processors, memory, network and so on",
    args: &[
        Arg::new("gather_subset", Type::List, "Groups of facts; `!name` leaves one out").default("all"),
        Arg::new("filter", Type::List, "Return only facts whose names match one of these patterns"),
        Arg::new("gather_timeout", Type::Int, "Seconds that network file systems have to answer").default("10"),
        Arg::new("fact_path", Type::Path, "The directory of the host's own facts").default("/etc/ansible/facts.d"),
        Arg::new("parallel", Type::Bool, "Old; has no effect, since all is read at once"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("ansible_facts", "the facts, by their names with `ansible_`"),
        ("ansible_facts.trimtab_numa", "the NUMA nodes with their processors, memory and distances"),
        ("ansible_facts.trimtab_tuning", "page size, control groups, and what the kernel says of processors"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let wanted = args.list("gather_subset");
    let groups = facts::select(&wanted).map_err(|unknown| {
        let hint = unknown.nearest.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
        Failure::new(format!("bad subset `{}` given to `gather_subset`{hint}", unknown.name))
    })?;
    let patterns = patterns(&args)?;
    let options = Options {
        fact_path: args.text("fact_path").to_owned(),
        timeout: args.int("gather_timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(10),
    };
    let text = format!("{}{}", environment(&settings)?, facts::script(&groups, &options));
    // facts are a picture of the moment: no later change makes them be read again
    let response = host.read(Script { text, footprint: Footprint::Everything }).await?;
    if !response.success() {
        return Err(Failure::new(format!("facts cannot be gathered: {}", response.error_text().trim())));
    }
    let mut facts = facts::parse(&groups, &response.text());
    facts.retain(|name, _| is_wanted(&name.to_text(), &patterns));
    if patterns.is_empty() {
        facts.insert(
            "gather_subset".into(),
            wanted.iter().map(|name| Value::from(name.as_str())).collect::<Vec<_>>().into(),
        );
        facts.insert("module_setup".into(), true.into());
    }
    Ok(outcome(facts))
}

fn outcome(facts: Map) -> Outcome {
    Outcome::ok().with("ansible_facts", facts.clone()).effect(Effect::Facts(facts))
}

fn patterns(args: &Args) -> Result<Vec<GlobMatcher>, Failure> {
    args.list("filter")
        .iter()
        .filter(|pattern| !pattern.is_empty() && *pattern != "*")
        .map(|pattern| {
            Glob::new(pattern)
                .map(|glob| glob.compile_matcher())
                .map_err(|error| Failure::new(format!("`{pattern}` in `filter` is no pattern: {error}")))
        })
        .collect()
}

/// A pattern may be written with or without `ansible_`.
fn is_wanted(name: &str, patterns: &[GlobMatcher]) -> bool {
    let bare = name.strip_prefix("ansible_").unwrap_or(name);
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.is_match(name) || pattern.is_match(bare))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::value::object;

    #[test]
    fn facts_with_names_of_their_own_are_listed() {
        let groups = facts::select(&[]).unwrap();
        for (name, _) in facts::parse(&groups, "") {
            let name = name.to_text().into_owned();
            let listed = MODULE.returns.iter().any(|(listed, _)| *listed == format!("ansible_facts.{name}"));
            assert!(listed || name.starts_with("ansible_"), "{name}");
        }
    }

    #[test]
    fn filters_match_with_and_without_the_prefix() {
        let patterns =
            patterns(&validate(&MODULE, &object([("filter", "ansible_mem*,date_time".into())])).unwrap()).unwrap();
        let cases = [("ansible_memtotal_mb", true), ("ansible_date_time", true), ("ansible_kernel", false)];
        for (name, wanted) in cases {
            assert_eq!(is_wanted(name, &patterns), wanted, "{name}");
        }
        assert!(is_wanted("ansible_kernel", &[]));
    }
}
