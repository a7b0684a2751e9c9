//! ansible.builtin.apt: installs, updates and removes Debian packages by apt-get.

use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step};
use crate::value::Interruption;

use super::execution::environment;
use super::package_common::apt_simulation::{self, Item};
use super::package_common::apt_work::{OPTIONS, Wanted, Work};
use super::package_common::deb_request::{Seen, Version, repository_footprint};
use super::package_common::deb_version::compare;
use super::package_common::dnf_options::command_line;
use super::package_common::tool::{Ended, attempt, each, parse_each, parse_transaction, transaction};
use super::package_common::{tool, update_lists};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Settings, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.apt",
    aliases: &[],
    summary: "Installs, updates and removes Debian packages by apt-get",
    args: &[
        Arg::new("name", Type::List, "The packages: `name`, `name=1.2*`, `name>=1.2`, `na*`, or `*` with state=latest")
            .aliases(&["package", "pkg"]),
        Arg::new("state", Type::Str, "Whether they are installed").default("present").choices(&[
            "absent",
            "build-dep",
            "fixed",
            "latest",
            "present",
            "installed",
            "removed",
        ]),
        Arg::new(
            "update_cache",
            Type::Bool,
            "Fetch the package lists anew if something is to be installed or asked of them",
        )
        .aliases(&["update-cache"]),
        Arg::new("cache_valid_time", Type::Int, "Seconds for which fetched package lists will do").default("0"),
        Arg::new("update_cache_retries", Type::Int, "How often to try to fetch the package lists").default("5"),
        Arg::new("update_cache_retry_max_delay", Type::Int, "The longest pause between two tries in seconds")
            .default("12"),
        Arg::new("deb", Type::Path, "Package files on the host or their URLs, apart by commas"),
        Arg::new("upgrade", Type::Str, "Upgrade all packages: `yes` and `safe` remove none, `full` and `dist` may")
            .default("no")
            .choices(&["dist", "full", "no", "safe", "yes"]),
        Arg::new("purge", Type::Bool, "Remove the settings of removed packages too").default("false"),
        Arg::new("autoremove", Type::Bool, "Remove what was installed for others and is no longer needed")
            .default("false"),
        Arg::new("autoclean", Type::Bool, "Remove fetched packages that can be fetched no more").default("false"),
        Arg::new("clean", Type::Bool, "Remove all fetched packages").default("false"),
        Arg::new("default_release", Type::Str, "The release to prefer").aliases(&["default-release"]),
        Arg::new("install_recommends", Type::Bool, "Install recommended packages too").aliases(&["install-recommends"]),
        Arg::new("only_upgrade", Type::Bool, "Do not install what is not installed").default("false"),
        Arg::new("fail_on_autoremove", Type::Bool, "Fail if a package would have to be removed").default("false"),
        Arg::new("allow_downgrade", Type::Bool, "Go back to an older version if that one is asked for")
            .default("false")
            .aliases(&["allow-downgrade", "allow_downgrades", "allow-downgrades"]),
        Arg::new("allow_unauthenticated", Type::Bool, "Do not check signatures")
            .default("false")
            .aliases(&["allow-unauthenticated"]),
        Arg::new("allow_change_held_packages", Type::Bool, "Change packages that are on hold").default("false"),
        Arg::new("force", Type::Bool, "Allow everything that apt-get warns of").default("false"),
        Arg::new("dpkg_options", Type::Str, "Options of dpkg without dashes, apart by commas")
            .default("force-confdef,force-confold"),
        Arg::new("policy_rc_d", Type::Int, "The exit code of policy-rc.d meanwhile: 101 lets no service start"),
        Arg::new("lock_timeout", Type::Int, "Seconds to wait while another program uses the package database")
            .default("60"),
        Arg::new("force_apt_get", Type::Bool, "Has no effect: apt-get is always used, aptitude never").default("false"),
        Arg::new("auto_install_module_deps", Type::Bool, "Has no effect: nothing is needed on the host")
            .default("true"),
    ],
    rules: &[
        Rule::RequiredOneOf(&[
            "autoremove",
            "autoclean",
            "clean",
            "deb",
            "name",
            "update_cache",
            "cache_valid_time",
            "upgrade",
        ]),
        Rule::MutuallyExclusive(&["deb", "name", "upgrade"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("cache_updated", "whether the package lists were fetched"),
        ("cache_update_time", "when they were fetched last, in seconds since the epoch"),
        ("stdout", "what apt-get said; in check mode what it says it would do"),
        ("stderr", "its errors"),
        ("rc", "its exit code, if it failed"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let task = Task { host, wanted: wanted(args, &settings)? };
    let seen = Seen::parse(&task.host.read(task.wanted.question()).await?)?;
    let work = task.wanted.work(&seen)?;
    task.carry_out(work, &seen).await
}

/// The first question of a task.
pub(super) fn question(args: &Args, settings: &Settings) -> Result<Script, Failure> {
    Ok(wanted(args.clone(), settings)?.question())
}

fn wanted(args: Args, settings: &Settings) -> Result<Wanted, Failure> {
    Wanted::parse(args, &environment(settings)?)
}

struct Task {
    host: Host,
    wanted: Wanted,
}

impl Task {
    async fn carry_out(&self, work: Work, seen: &Seen) -> Result<Outcome, Failure> {
        let check = self.host.is_check();
        let mut outcome = Outcome::ok();
        let mut lists_time = seen.lists_time;
        if !check && (work.update || work.clean || !work.commands.is_empty()) {
            // what the repositories have may take long to find out: not before all else is done
            self.host.turn().await?;
        }
        if work.clean {
            self.clean().await?;
            outcome.changed = true;
        }
        if work.update && !check {
            lists_time = update_lists::run(&self.host, &self.wanted.environment, &self.wanted.args, self.wanted.lock)
                .await?
                .unwrap_or(lists_time);
        }
        if !work.commands.is_empty() {
            let simulated = self.simulate(&work, check).await?;
            if check && work.update && simulated.items.is_empty() {
                let reason = "what is newest is known once the package lists are fetched".to_owned();
                return Err(Failure::interrupted(Interruption::Unknown(reason)));
            }
            if simulated.does_something() {
                outcome = self.change(&work, &simulated, outcome).await?;
            } else if self.wanted.args.list("name").is_empty() {
                outcome = outcome.with("stdout", simulated.stdout.as_str()).with("stderr", "");
            }
            if self.wanted.args.text("upgrade") != "no" {
                let said = outcome.result.get("stdout").cloned().unwrap_or_default();
                outcome = outcome.with("msg", said);
            }
        } else if work.update {
            outcome.changed = true;
        }
        if work.update && check {
            update_lists::run(&self.host, &self.wanted.environment, &self.wanted.args, self.wanted.lock).await?;
        }
        if !work.manual.is_empty() {
            self.mark(&work.manual).await?;
        }
        let installs = !self.wanted.args.list("name").is_empty() && self.wanted.args.text("state") != "absent";
        if self.wanted.wants_lists() || installs {
            outcome = outcome.with("cache_update_time", lists_time).with("cache_updated", work.update);
        }
        Ok(outcome)
    }

    async fn simulate(&self, work: &Work, check: bool) -> Result<Simulated, Failure> {
        let mut commands = self.wanted.commands(work, true);
        // packages of which settings are left: a removal would not bring back what is there now
        commands.push("dpkg-query -W -f '${db:Status-Abbrev}\\t${Package}\\n' | sed -n 's/^.c.*\\t//p'".to_owned());
        let text = each(&self.wanted.environment, &commands, self.wanted.lock);
        let script = Script { text, footprint: repository_footprint() };
        let mut all = parse_each(&self.host.read(script).await?)?;
        let leftover = if all.len() == commands.len() { all.pop() } else { None };
        let leftover = leftover.map(|ended| ended.stdout.split_whitespace().map(str::to_owned).collect());
        let mut simulated = Simulated { leftover: leftover.unwrap_or_default(), ..Simulated::default() };
        for ended in all {
            let ended = ended.unlocked(self.wanted.lock)?;
            let one = apt_simulation::parse(&ended.stdout, &ended.stderr);
            if check
                && work.update
                && (!one.missing.is_empty() || one.errors.iter().any(|error| error.contains("was not found")))
            {
                let reason = format!("{}, but the package lists have not been fetched", one.errors.join("; "));
                return Err(Failure::interrupted(Interruption::Unknown(reason)));
            }
            self.refuse(&one, &ended)?;
            if ended.code != Some(0) {
                return Err(self.failed(&one.missing, &one.errors, &ended));
            }
            simulated.deletes |= ended.stdout.lines().any(|line| line.starts_with("Del "));
            simulated.stdout.push_str(&ended.stdout);
            simulated.items.extend(one.items);
        }
        Ok(simulated)
    }

    /// What apt-get refuses, or would do though it is not what was asked for.
    fn refuse(&self, simulation: &apt_simulation::Simulation, ended: &Ended) -> Result<(), Failure> {
        let force = self.wanted.args.bool("force");
        let failed = |message: String| {
            Err(Failure::new(message)
                .with("rc", 100)
                .with("stdout", ended.stdout.as_str())
                .with("stderr", ended.stderr.as_str()))
        };
        if let Some(name) = simulation.downgraded.first()
            && !self.wanted.args.bool("allow_downgrade")
            && !force
        {
            return failed(format!("a newer version of {name} is installed: only `allow_downgrade: true` goes back"));
        }
        if let Some(name) = simulation.held.first()
            && !self.wanted.args.bool("allow_change_held_packages")
            && !force
        {
            return failed(format!("{name} is on hold: only `allow_change_held_packages: true` changes it"));
        }
        for spec in &self.wanted.specs {
            let Some(Version::AtLeast(wanted)) = &spec.version else { continue };
            let item = simulation.items.iter().find(|item| item.name == spec.name);
            if let Some(new) = item.and_then(|item| item.new.as_deref()).filter(|new| compare(new, wanted).is_lt()) {
                return failed(format!(
                    "no available installation candidate for {}>={wanted}: the newest is {new}",
                    spec.name
                ));
            }
        }
        Ok(())
    }

    fn failed(&self, missing: &[String], errors: &[String], ended: &Ended) -> Failure {
        let message = if missing.is_empty() {
            let said = ended.said();
            let reason = if errors.is_empty() { said.trim().to_owned() } else { errors.join("; ") };
            format!("apt-get cannot do this: {reason}")
        } else {
            let names: Vec<String> = missing.iter().map(|name| format!("'{name}'")).collect();
            format!("No package matching {} is available", names.join(", "))
        };
        Failure::new(message)
            .with("rc", ended.code.map_or(100, i64::from))
            .with("stdout", ended.stdout.trim_end())
            .with("stderr", ended.stderr.trim_end())
    }

    async fn change(&self, work: &Work, simulated: &Simulated, outcome: Outcome) -> Result<Outcome, Failure> {
        let commands = self.wanted.commands(work, false);
        let list = "dpkg-query -W -f '${binary:Package}\\t${Version}\\t${db:Status-Abbrev}\\n'";
        let around = self.wanted.args.int("policy_rc_d").map(policy).unwrap_or_default();
        let difference = simulated.difference();
        let verbs: Vec<String> = work
            .commands
            .iter()
            .filter_map(|command| command.split_once(OPTIONS).map(|(_, words)| words.trim().to_owned()))
            .collect();
        // scripts of packages may do anything
        let change = Change::uncertain(format!("packages: {}", verbs.join(", ")), Footprint::Everything)
            .step(Step::new(transaction(&self.wanted.environment, &around, list, &commands, self.wanted.lock)))
            .difference(difference.clone())
            .inverse(simulated.inverse());
        let applied = self.host.change(change).await?;
        let outcome = Outcome { changed: true, ..outcome }.differences([difference]);
        let Some(response) = applied.responses.first() else {
            return Ok(outcome.with("stdout", simulated.stdout.as_str()).with("stderr", ""));
        };
        let finished = parse_transaction(response)?;
        let ended = finished.ended.unlocked(self.wanted.lock)?;
        if ended.code != Some(0) {
            let errors = apt_simulation::parse("", &ended.stderr).errors;
            let touched = !finished.added.is_empty() || !finished.removed.is_empty();
            return Err(self.failed(&[], &errors, &ended).with("changed", touched));
        }
        let is_there = |name: &str| finished.added.iter().any(|line| line.split(['\t', ':']).next() == Some(name));
        let base = |item: &Item| item.name.split(':').next().unwrap_or_default().to_owned();
        if let Some(item) = simulated.items.iter().find(|item| item.is_new() && !is_there(&base(item))) {
            return Err(self.failed(&[], &[format!("it ended well, but {} is not installed", item.name)], &ended));
        }
        Ok(outcome.with("stdout", ended.stdout.as_str()).with("stderr", ended.stderr.as_str()))
    }

    async fn clean(&self) -> Result<(), Failure> {
        let script = format!(
            "{}{}cat \"$t/err\" >&2; [ \"$c\" = 0 ]\n",
            tool::preparation(&self.wanted.environment),
            attempt("apt-get clean", self.wanted.lock)
        );
        let change = Change::uncertain("fetched packages", Footprint::tree("/var/cache/apt"))
            .step(Step::new(script))
            .inverse(Inverse::None("fetched packages can be fetched again".to_owned()));
        match self.host.change(change).await?.responses.first() {
            Some(response) if !response.success() => {
                Err(Failure::new(format!("apt-get clean failed: {}", response.error_text().trim())))
            }
            _ => Ok(()),
        }
    }

    /// What was installed for others and is now asked for by name is kept when those others go.
    async fn mark(&self, names: &[String]) -> Result<(), Failure> {
        let words = command_line(names);
        let change = Change::uncertain(
            format!("packages kept for themselves: {}", names.join(", ")),
            Footprint::path("/var/lib/apt/extended_states"),
        )
        .step(Step::new(format!("{}apt-mark manual {words} >/dev/null", self.wanted.environment)))
        .inverse(Inverse::Steps(vec![Step::new(format!(
            "{}apt-mark auto {words} >/dev/null",
            self.wanted.environment
        ))]));
        match self.host.change(change).await?.responses.first() {
            Some(response) if !response.success() => {
                Err(Failure::new(format!("apt-mark manual {words} failed: {}", response.error_text().trim())))
            }
            _ => Ok(()),
        }
    }
}

/// What apt-get said it would do.
#[derive(Debug, Default)]
struct Simulated {
    items: Vec<Item>,
    stdout: String,
    /// Fetched packages would be deleted (autoclean).
    deletes: bool,
    /// Packages that are removed but for their settings.
    leftover: Vec<String>,
}

impl Simulated {
    fn does_something(&self) -> bool {
        self.deletes || !self.items.is_empty()
    }

    /// What was installed anew can be removed again.
    fn inverse(&self) -> Inverse {
        if let Some(item) = self.items.iter().find(|item| !item.is_new()) {
            return Inverse::None(match (&item.old, &item.new) {
                (Some(old), Some(new)) => {
                    format!("{} {new} takes the place of {old}, which perhaps no repository has", item.name)
                }
                _ => format!("{} is removed, and perhaps no repository has it", item.name),
            });
        }
        if self.items.is_empty() {
            return Inverse::None("fetched packages can be fetched again".to_owned());
        }
        let (back, new): (Vec<&str>, Vec<&str>) = self
            .items
            .iter()
            .map(|item| item.name.as_str())
            .partition(|name| self.leftover.iter().any(|left| left == name));
        // settings that were there before stay
        let mut steps = Vec::new();
        if !back.is_empty() {
            steps.push(dpkg("--remove", &[new.as_slice(), back.as_slice()].concat()));
        }
        if !new.is_empty() {
            steps.push(dpkg("--purge", &new));
        }
        Inverse::Steps(steps)
    }

    fn difference(&self) -> Difference {
        let lines = |version: fn(&Item) -> &Option<String>| -> String {
            let line = |item: &Item| version(item).as_ref().map(|version| format!("{} {version}\n", item.name));
            self.items.iter().filter_map(line).collect()
        };
        Difference::new("packages", lines(|item| &item.old), lines(|item| &item.new))
    }
}

/// dpkg refuses if anything else needs them by now.
fn dpkg(verb: &str, names: &[&str]) -> Step {
    Step::new(format!("DEBIAN_FRONTEND=noninteractive dpkg {verb} {}", command_line(names)))
}

/// Lines that let no service start, or whatever the exit code says, until the script ends.
fn policy(code: i64) -> String {
    format!(
        "f=/usr/sbin/policy-rc.d\nif [ -e $f ] || [ -L $f ]; then mv $f $f.trimtab || exit; fi\n\
         trap 'rm -f $f; [ ! -e $f.trimtab ] || mv $f.trimtab $f; rm -rf \"$t\"' EXIT\n\
         printf '#!/bin/sh\\nexit {code}\\n' >$f && chmod 755 $f || exit\n"
    )
}

#[cfg(test)]
#[path = "apt_tests.rs"]
mod tests;
