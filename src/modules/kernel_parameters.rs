//! `trimtab.tuning.kernel_parameters`: several kernel parameters at once, exact or as limits, now and after the next boot.

use futures_util::future::try_join_all;
use futures_util::{join, try_join};

use crate::host::reads::{KernelFile, Script};
use crate::host::{Failure, FailureKind, Footprint, Host, Subject};
use crate::tuning::dirty_pair::{self, DirtyPair, background_warning, partner};
use crate::tuning::sysctl_files::{Loader, SysctlFile, canonical_key, conflicts, dotted_key, parse};
use crate::tuning::sysctl_value::{Policy, Rounding, SysctlValue, check_triple, target};
use crate::value::{Interruption, Map, Value, object};

use super::file_common::content::difference;
use super::file_common::destination::{Destination, Manner, look, plan_edit};
use super::sysctl::{Now, Planned, apply, plan, proc_path, read_beside};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type, machine};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.kernel_parameters",
    aliases: &[],
    summary: "Sets kernel parameters exactly or as limits, now and in a file that wins at the next boot",
    args: &[
        Arg::new("settings", Type::Dict, "the parameters by name, as `vm.swappiness: 1`").required(),
        Arg::new(
            "policy",
            Type::Str,
            "exact: the value; at_least: nothing above it is lowered; at_most: nothing below it is raised. Of several \
             numbers each is compared by itself",
        )
        .default("exact")
        .choices(&["exact", "at_least", "at_most"]),
        Arg::new(
            "missing",
            Type::Str,
            "what to do about a parameter that this kernel does not have: fail, or skip it with a warning",
        )
        .default("fail")
        .choices(&["fail", "skip"]),
        Arg::new("persist", Type::Bool, "write the file, so that it holds after the next boot").default("true"),
        Arg::new(
            "file",
            Type::Path,
            "the file. Its name sorts behind `99-sysctl.conf`, the usual link to /etc/sysctl.conf, which would win otherwise",
        )
        .default("/etc/sysctl.d/99-zz-trimtab.conf"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("settings", "for each parameter the value it has in the end, and before"),
        ("skipped", "parameters that this kernel does not have"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const HEADER: &str = "# Kernel parameters, written by trimtab. Lines of other parameters are kept.\n";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let path = args.text("file");
    let (present, beside, file, dirty, others, tuned) = join!(
        try_join_all(wanted.parameters.iter().map(|(key, _)| host.read(KernelFile(proc_path(key))))),
        try_join_all(wanted.parameters.iter().map(|(key, _)| {
            let other = partner(&dotted_key(key)).map(canonical_key);
            let host = &host;
            async move { read_beside(host, other.as_deref()).await }
        })),
        read_file(&host, &args, path),
        read_dirty(&host, &wanted),
        read_other_files(&host),
        machine::is_active(&host, "tuned"),
    );
    let (present, beside, file, dirty) = (present?, beside?, file?, dirty?);
    let (others, tuned) = (others?, tuned.unwrap_or(false));
    let mut outcome = Outcome::ok();
    let (mut shown, mut skipped, mut goals) = (Map::new(), Vec::new(), Vec::new());
    for ((key, value), (present, beside)) in wanted.parameters.iter().zip(present.iter().zip(&beside)) {
        let Some(present) = present else {
            if !wanted.skip_missing {
                return Err(Failure::new(format!(
                    "this kernel has no readable parameter `{}`: it may need a module that is not loaded, or the name is wrong",
                    dotted_key(key)
                )));
            }
            outcome = outcome.warning(format!("this kernel has no parameter `{}`", dotted_key(key)));
            skipped.push(Value::from(dotted_key(key)));
            continue;
        };
        let before = SysctlValue::read(present);
        let goal = wanted.goal(key, &before, value)?;
        let entry = object([("value", goal.to_string().into()), ("before", before.to_string().into())]);
        shown.insert(dotted_key(key).into(), entry.into());
        goals.push((key.as_str(), value, goal, present.as_str(), beside.as_deref()));
    }
    // Before anything is written: it refuses values out of range.
    if let Some(dirty) = dirty
        && let Some(warning) = dirty.warning(&goals)?
    {
        outcome = outcome.warning(warning);
    }
    let edit = file.as_ref().and_then(|file| {
        let old = String::from_utf8_lossy(file.content.as_deref().unwrap_or_default()).into_owned();
        let lines: Vec<_> = goals.iter().map(|(key, value, goal, ..)| (*key, *value, goal)).collect();
        let new = edited(&old, &lines, wanted.policy)?;
        Some((file, old, new))
    });
    for (key, _, goal, present, beside) in &goals {
        if let Planned::Set(change, _) =
            plan(key, &goal.to_string(), &Now { value: Some(present), beside: *beside, interfaces: &[] })?
        {
            outcome = apply(&host, change, outcome).await?;
        }
    }
    if let Some((file, old, new)) = edit {
        let shown = difference((&file.named, &file.named), Some(old.as_bytes()), false, new.as_bytes());
        if let Some(change) = plan_edit(file, Some(new.into_bytes()), &Manner::default()).change {
            let change = change.difference(shown);
            outcome.changed = true;
            outcome = outcome.differences(change.differences.iter().cloned());
            host.change(change).await?;
        }
    }
    if file.is_some() {
        for (key, _, goal, ..) in &goals {
            for warning in overridden(&others, path, key, goal, wanted.policy, tuned) {
                outcome = outcome.warning(warning);
            }
        }
    }
    Ok(outcome.with("settings", shown).with("skipped", Value::list(skipped)))
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    /// Paths below `/proc/sys`, in the order they were written.
    parameters: Vec<(String, SysctlValue)>,
    policy: Policy,
    skip_missing: bool,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let mut parameters: Vec<(String, SysctlValue)> = Vec::new();
        for (name, value) in args.get("settings").and_then(Value::as_map).into_iter().flatten() {
            let name = name.to_text();
            let key = canonical_key(&name);
            if key.is_empty()
                || key.split('/').any(|part| matches!(part, "" | "." | ".."))
                || name.contains(['=', '\n'])
            {
                return Err(Failure::new(format!("`{name}` is not the name of a kernel parameter")));
            }
            if parameters.iter().any(|(other, _)| *other == key) {
                return Err(Failure::new(format!("`{}` is given twice", dotted_key(&key))));
            }
            let text = match value {
                Value::Bool(on) => u8::from(*on).to_string(),
                other => other.to_text().into_owned(),
            };
            if value.is_null() || text.trim().is_empty() || text.trim().contains('\n') {
                return Err(Failure::new(format!("`{name}` needs a value of one line")));
            }
            parameters.push((key, SysctlValue::parse(&text)));
        }
        if let Some((one, other)) = parameters.iter().find_map(|(key, _)| {
            let other = canonical_key(partner(&dotted_key(key))?);
            parameters.iter().any(|(key, _)| *key == other).then(|| (dotted_key(key), dotted_key(&other)))
        }) {
            return Err(Failure::new(format!(
                "`{one}` and `{other}` are two forms of one parameter; give one of them"
            )));
        }
        let policy = Policy::parse(args.text("policy"))?;
        Ok(Wanted { parameters, policy, skip_missing: args.text("missing") == "skip" })
    }

    /// The value that a parameter is to have, given the one it has.
    fn goal(&self, key: &str, present: &SysctlValue, wanted: &SysctlValue) -> Result<SysctlValue, Failure> {
        let name = dotted_key(key);
        let named = |error: crate::error::Error| Failure {
            message: format!("`{name}`: {}", error.message()),
            ..Failure::from(error)
        };
        let goal = target(present, wanted, self.policy, rounding(&name)).map_err(named)?;
        if matches!(name.as_str(), "net.ipv4.tcp_rmem" | "net.ipv4.tcp_wmem") {
            check_triple(&goal).map_err(named)?;
        }
        Ok(goal)
    }
}

fn rounding(name: &str) -> Rounding {
    if name == "net.core.rps_sock_flow_entries" { Rounding::PowerOfTwo } else { Rounding::None }
}

async fn read_file(host: &Host, args: &Args, path: &str) -> Result<Option<Destination>, Failure> {
    if !args.bool("persist") {
        return Ok(None);
    }
    look(host, args, path, true).await.map(Some)
}

/// The thresholds for writing dirty pages back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dirty {
    /// `vm.dirty_ratio`, `vm.dirty_bytes` and their background twins.
    present: [u64; 4],
    memory_bytes: u64,
    page_bytes: u64,
}

const DIRTY: [&str; 4] = ["vm/dirty_ratio", "vm/dirty_bytes", "vm/dirty_background_ratio", "vm/dirty_background_bytes"];

async fn read_dirty(host: &Host, wanted: &Wanted) -> Result<Option<Dirty>, Failure> {
    if !wanted.parameters.iter().any(|(key, _)| DIRTY.contains(&key.as_str())) {
        return Ok(None);
    }
    let text = "getconf PAGESIZE; sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo";
    let (files, memory) = try_join!(
        try_join_all(DIRTY.iter().map(|key| host.read(KernelFile(proc_path(key))))),
        host.read(Script { text: text.to_owned(), footprint: Footprint::nothing() }),
    )?;
    let mut present = [0; 4];
    for (slot, file) in present.iter_mut().zip(&files) {
        *slot = file.as_deref().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    }
    let memory = memory.text();
    let mut numbers = memory.lines().filter_map(|line| line.trim().parse::<u64>().ok());
    let page_bytes = numbers.next().unwrap_or(4096);
    Ok(Some(Dirty { present, page_bytes, memory_bytes: numbers.next().unwrap_or(0) * 1024 }))
}

type Goal<'a> = (&'a str, &'a SysctlValue, SysctlValue, &'a str, Option<&'a str>);

impl Dirty {
    /// What is to be said of the thresholds as they will be; fails for values out of range.
    fn warning(&self, goals: &[Goal<'_>]) -> Result<Option<String>, Failure> {
        let mut after = self.present;
        for (key, _, goal, ..) in goals {
            let Some(index) = DIRTY.iter().position(|dirty| dirty == key) else { continue };
            let number = goal.numbers().and_then(|numbers| u64::try_from(*numbers.first()?).ok());
            let number =
                number.ok_or_else(|| Failure::new(format!("`{}` is a number, not `{goal}`", dotted_key(key))))?;
            dirty_pair::check(&dotted_key(key), number, self.page_bytes)?;
            if after[index] != number {
                // A write to one form clears the other.
                after[index ^ 1] = 0;
            }
            after[index] = number;
        }
        let pair = |index: usize| DirtyPair { ratio: after[index], bytes: after[index + 1] };
        Ok(background_warning(pair(0), pair(2), self.memory_bytes.max(1 << 30)))
    }
}

/// The file's text with a line for each parameter; `None` if it is right already. A line that is good enough is kept.
fn edited(text: &str, wanted: &[(&str, &SysctlValue, &SysctlValue)], policy: Policy) -> Option<String> {
    let settings = parse(SysctlFile { path: "", text });
    let mut lines: Vec<Option<String>> = text.lines().map(|line| Some(line.to_owned())).collect();
    let mut missing = Vec::new();
    let mut differs = false;
    for (key, value, goal) in wanted {
        let mut own: Vec<_> = settings.iter().filter(|s| s.key == *key && s.value.is_some()).collect();
        let last = own.pop();
        for earlier in own {
            lines[earlier.line - 1] = None;
            differs = true;
        }
        let line = format!("{} = {goal}", dotted_key(key));
        match last {
            None => missing.push(line),
            Some(last) => {
                let there = SysctlValue::parse(last.value.as_deref().unwrap_or_default());
                let is_enough =
                    target(&there, value, policy, rounding(&dotted_key(key))).is_ok_and(|kept| kept == there);
                if !is_enough {
                    lines[last.line - 1] = Some(line);
                    differs = true;
                }
            }
        }
    }
    if missing.is_empty() && !differs {
        return None;
    }
    let header = if text.is_empty() { HEADER } else { "" };
    let kept = lines.into_iter().flatten().chain(missing).map(|line| line + "\n");
    Some(header.to_owned() + &kept.collect::<String>())
}

/// All files with kernel parameters, each line behind the path of its file.
async fn read_other_files(host: &Host) -> Result<String, Failure> {
    let text = "for f in /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf /usr/lib/sysctl.d/*.conf \
                /etc/sysctl.conf; do [ -r \"$f\" ] && set -- \"$@\" \"$f\"; done; [ $# = 0 ] || grep -H '' \"$@\"";
    let directories = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];
    let trees = directories.iter().map(|directory| Subject::Tree(format!("{directory}/sysctl.d")));
    let subjects = trees.chain([Subject::Path("/etc/sysctl.conf".to_owned())]).collect();
    match host.read(Script { text: text.to_owned(), footprint: Footprint::Of(subjects) }).await {
        Ok(answer) => Ok(answer.text()),
        // Check mode: such a file would be written before. The warning will be given when it is.
        Err(failure) if matches!(failure.kind, FailureKind::Interrupted(Interruption::Unknown(_))) => Ok(String::new()),
        Err(failure) => Err(failure),
    }
}

/// Warnings of lines elsewhere that win over the file's, if what they say is not good enough.
fn overridden(lines: &str, own: &str, key: &str, goal: &SysctlValue, policy: Policy, tuned: bool) -> Vec<String> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for (path, line) in lines.lines().filter_map(|line| line.split_once(':')).filter(|(path, _)| *path != own) {
        match files.last_mut() {
            Some((last, text)) if *last == path => text.push_str(&format!("{line}\n")),
            _ => files.push((path, format!("{line}\n"))),
        }
    }
    let ours = format!("{key} = {goal}\n");
    files.push((own, ours));
    let files: Vec<SysctlFile<'_>> = files.iter().map(|(path, text)| SysctlFile { path, text }).collect();
    let loaders: &[Loader] =
        if tuned { &[Loader::Boot, Loader::Procps, Loader::Tuned] } else { &[Loader::Boot, Loader::Procps] };
    conflicts(&files, own, key, &goal.to_string(), loaders)
        .into_iter()
        .filter(|conflict| {
            let theirs = SysctlValue::parse(conflict.setting.value.as_deref().unwrap_or_default());
            !target(&theirs, goal, policy, Rounding::None).is_ok_and(|kept| kept == theirs)
        })
        .map(|conflict| conflict.message)
        .collect()
}

#[cfg(test)]
#[path = "kernel_parameters_tests.rs"]
mod tests;
