//! ansible.builtin.dnf: installs, updates and removes RPM packages, by dnf, or by the yum of CentOS 7.

use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step};
use crate::value::{Value, object};

use super::execution::environment;
use super::package_common::dnf_options::{Manager, command_line, entries, refuse, words};
use super::package_common::rpm_request::{Command, Request, Seen, State, Work, plan};
use super::package_common::rpm_spec::{FORMAT, Rpm};
use super::package_common::rpm_transaction::{self, Item};
use super::package_common::tool::{Ended, Finished, each, parse_each, parse_transaction, texts, transaction};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Settings, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.dnf",
    aliases: &[],
    summary: "Installs, updates and removes packages of dnf, or of the yum of CentOS 7",
    args: ARGS,
    rules: RULES,
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: RETURNS,
    action: Action::Module(|invocation| Box::pin(run(invocation, "dnf"))),
};

pub(super) const RULES: &[Rule] = &[
    Rule::RequiredOneOf(&["name", "list", "update_cache", "autoremove"]),
    Rule::MutuallyExclusive(&["name", "list"]),
    Rule::MutuallyExclusive(&["best", "nobest"]),
];

pub(super) const ARGS: &[Arg] = &[
    Arg::new(
        "name",
        Type::List,
        "The packages: `name`, `name-1.2`, `name-1.2*`, `name >= 1.2`, a path, a URL, `@group`, or `*` with state=latest",
    )
    .aliases(&["pkg"]),
    Arg::new("state", Type::Str, "Whether they are installed; `present` unless `autoremove` is set")
        .choices(&["absent", "present", "installed", "removed", "latest"]),
    Arg::new("update_cache", Type::Bool, "Fetch what the repositories have anew if something is to be installed")
        .default("false")
        .aliases(&["expire-cache"]),
    Arg::new("enablerepo", Type::List, "Repositories to use in this task"),
    Arg::new("disablerepo", Type::List, "Repositories not to use in this task"),
    Arg::new("exclude", Type::List, "Packages to leave alone"),
    Arg::new("disable_excludes", Type::Str, "Which configured exclusions do not count: `all`, `main` or a repository"),
    Arg::new("disable_gpg_check", Type::Bool, "Do not check signatures").default("false"),
    Arg::new("sslverify", Type::Bool, "Check the certificates of repositories").default("true"),
    Arg::new("validate_certs", Type::Bool, "Check the certificate of a package's URL").default("true"),
    Arg::new("installroot", Type::Str, "The directory that is the root of the packages").default("/"),
    Arg::new("releasever", Type::Str, "The release of the distribution to install from"),
    Arg::new("conf_file", Type::Str, "The configuration file of the package manager"),
    Arg::new("allow_downgrade", Type::Bool, "Go back to an older version if that one is asked for").default("false"),
    Arg::new("allowerasing", Type::Bool, "Remove packages that stand in the way").default("false"),
    Arg::new("autoremove", Type::Bool, "Remove what was installed for others and is no longer needed").default("false"),
    Arg::new("skip_broken", Type::Bool, "Leave out what cannot be installed").default("false"),
    Arg::new("update_only", Type::Bool, "Do not install what is not installed").default("false"),
    Arg::new("security", Type::Bool, "Only updates that concern security (state=latest)").default("false"),
    Arg::new("bugfix", Type::Bool, "Only updates that fix faults (state=latest)").default("false"),
    Arg::new("best", Type::Bool, "Fail if the newest version cannot be installed"),
    Arg::new("nobest", Type::Bool, "The opposite of `best`"),
    Arg::new("install_weak_deps", Type::Bool, "Install recommended packages too").default("true"),
    Arg::new("download_only", Type::Bool, "Fetch the packages, do not install them").default("false"),
    Arg::new("download_dir", Type::Str, "Where fetched packages go (download_only)"),
    Arg::new("cacheonly", Type::Bool, "Use what was fetched before, ask no repository").default("false"),
    Arg::new("enable_plugin", Type::List, "Plugins to use in this task"),
    Arg::new("disable_plugin", Type::List, "Plugins not to use in this task"),
    Arg::new("lock_timeout", Type::Int, "Seconds to wait while another program uses the package database")
        .default("30"),
    Arg::new("use_backend", Type::Str, "The package manager").default("auto").aliases(&["use"]).choices(&[
        "auto", "yum", "yum4", "dnf", "dnf4", "dnf5",
    ]),
    Arg::new("install_repoquery", Type::Bool, "Old; has no effect"),
    Arg::new("list", Type::Str, "Not supported: package_facts tells what is installed"),
];

pub(super) const RETURNS: &[(&str, &str)] = &[
    ("results", "what was done, one line a package"),
    ("changes", "the packages that were `installed`, `updated` and `removed`"),
    ("msg", "`Nothing to do`, or why the task failed"),
    ("rc", "0, or the exit code of the package manager"),
    ("failures", "what could not be found, if the task failed"),
];

/// Does the work for `dnf`, `dnf5` and `yum`, which differ in the manager they prefer.
pub(super) async fn run(invocation: Invocation, module: &'static str) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    if args.has("list") {
        return Err(Failure::new("`list` is not supported: package_facts tells what is installed, `command` the rest"));
    }
    let request = Request::parse(&args)?;
    let environment = environment(&settings)?;
    let seen = Seen::parse(&host.read(request.question(&environment)).await?)?;
    let manager = Manager::choose(module, args.text("use_backend"), &seen.programs)?;
    refuse(manager, &args)?;
    let task = Task { args, host, environment, request, manager };
    if task.request.specs.is_empty() && !task.request.autoremove {
        return task.make_cache().await;
    }
    let work = plan(&task.request, &seen, manager)?;
    if work.commands.is_empty() {
        return Ok(nothing(&work));
    }
    task.carry_out(&work).await
}

/// The first question of a task.
pub(super) fn question(args: &Args, settings: &Settings) -> Result<Script, Failure> {
    Ok(Request::parse(args)?.question(&environment(settings)?))
}

fn nothing(work: &Work) -> Outcome {
    let outcome = Outcome::ok().with("msg", "Nothing to do").with("results", texts(&work.notes)).with("rc", 0);
    warned(outcome, work)
}

fn warned(outcome: Outcome, work: &Work) -> Outcome {
    work.warnings.iter().fold(outcome, |outcome, warning| outcome.warning(warning.as_str()))
}

struct Task {
    args: Args,
    host: Host,
    environment: String,
    request: Request,
    manager: Manager,
}

impl Task {
    fn command(&self, command: &Command, ask: bool) -> String {
        let options = words(self.manager, &self.args);
        let answer = if ask { "--assumeno" } else { "--assumeyes" };
        let head = [self.manager.program(), answer].into_iter().map(str::to_owned);
        let verb = command.verb.iter().map(|word| (*word).to_owned());
        command_line(head.chain(options).chain(verb).chain(command.specs.iter().cloned()))
    }

    /// What the package manager would do, and the failure if it cannot.
    async fn simulate(&self, work: &Work) -> Result<Vec<Item>, Failure> {
        let lock = self.manager.lock(self.args.int("lock_timeout").unwrap_or(30));
        let mut commands: Vec<String> = work.commands.iter().map(|command| self.command(command, true)).collect();
        if self.args.bool("update_cache") && self.request.state != State::Absent {
            match self.manager {
                Manager::Yum => commands[0] = format!("{} >/dev/null && {}", self.expire(), commands[0]),
                Manager::Dnf | Manager::Dnf5 => {
                    commands[0] = commands[0].replacen("--assumeno", "--assumeno --refresh", 1);
                }
            }
        }
        let text = each(&self.environment, &commands, lock);
        let footprint = self.request.repository_footprint();
        let all = parse_each(&self.host.read(Script { text, footprint }).await?)?;
        let mut items = Vec::new();
        for (command, ended) in work.commands.iter().zip(all) {
            items.extend(self.judge(command, &ended.unlocked(lock)?)?);
        }
        Ok(items)
    }

    fn expire(&self) -> String {
        let words = words(self.manager, &self.args);
        command_line(
            [self.manager.program().to_owned()]
                .into_iter()
                .chain(words)
                .chain(["clean", "expire-cache"].map(str::to_owned)),
        )
    }

    /// The lines of the table, or why there is none.
    fn judge(&self, command: &Command, ended: &Ended) -> Result<Vec<Item>, Failure> {
        let plan = rpm_transaction::parse(&ended.said());
        let installs = !matches!(command.verb[0], "remove" | "autoremove");
        let failed = |message: String| {
            let failures = plan.missing.iter().map(|name| format!("No package {name} available."));
            Failure::new(message)
                .with("failures", texts(failures.collect::<Vec<_>>()))
                .with("results", Value::list(Vec::new()))
                .with("rc", ended.code.map_or(1, i64::from))
        };
        if installs && !plan.missing.is_empty() && !self.args.bool("skip_broken") {
            let names = plan.missing.join(", ");
            return Err(failed(format!(
                "Failed to install some of the specified packages: no package {names} available"
            )));
        }
        let is_group = |item: &Item| item.action == rpm_transaction::Action::Group;
        if !plan.items.is_empty() {
            let nothing = installs && plan.items.iter().all(is_group);
            return Ok(if nothing { Vec::new() } else { plan.items });
        }
        if ended.code == Some(0) || plan.nothing {
            return Ok(Vec::new());
        }
        let said = ended.said();
        let reason = if plan.errors.trim().is_empty() { said.trim() } else { plan.errors.trim() };
        Err(failed(format!("{} cannot do this: {reason}", self.manager.program())))
    }

    async fn carry_out(&self, work: &Work) -> Result<Outcome, Failure> {
        if !self.host.is_check() {
            // what the repositories have costs seconds to find out: not before all else is done
            self.host.turn().await?;
        }
        let items = self.simulate(work).await?;
        if items.is_empty() {
            return Ok(nothing(work));
        }
        let applied = self.host.change(self.change(work, &items)).await?;
        let Some(response) = applied.responses.first() else {
            let outcome = Outcome::changed()
                .differences([self.difference(&items)])
                .with("results", texts(work.notes.iter().cloned().chain(items.iter().map(|item| self.line(item)))))
                .with("msg", "Check mode: No changes made, but would have if not in check mode")
                .with("rc", 0);
            return Ok(warned(outcome, work));
        };
        let finished = parse_transaction(response)?;
        self.conclude(work, &items, finished)
    }

    fn line(&self, item: &Item) -> String {
        let action = match item.action {
            rpm_transaction::Action::Remove => "Removed",
            rpm_transaction::Action::Group => "Group",
            rpm_transaction::Action::Module => "Module",
            _ if self.args.bool("download_only") => "Downloaded",
            _ => "Installed",
        };
        format!("{action}: {}", item.label())
    }

    fn change(&self, work: &Work, items: &[Item]) -> Change {
        let lock = self.manager.lock(self.args.int("lock_timeout").unwrap_or(30));
        let commands: Vec<String> = work.commands.iter().map(|command| self.command(command, false)).collect();
        let list = format!("{} -qa --qf '{FORMAT}\\n'", self.request.rpm());
        let verbs: Vec<String> = work
            .commands
            .iter()
            .map(|command| format!("{} {}", command.verb[0], command.specs.join(" ")).trim().to_owned())
            .collect();
        // scripts of packages may do anything
        Change::uncertain(format!("packages: {}", verbs.join(", ")), Footprint::Everything)
            .step(Step::new(transaction(&self.environment, "", &list, &commands, lock)))
            .difference(self.difference(items))
            .inverse(self.inverse(items))
    }

    /// What was installed anew can be removed again.
    fn inverse(&self, items: &[Item]) -> Inverse {
        if self.args.bool("download_only") {
            return Inverse::None("downloaded packages stay in the cache".to_owned());
        }
        let other = items.iter().find(|item| item.action != rpm_transaction::Action::Install);
        if let Some(item) = other {
            return Inverse::None(match item.action {
                rpm_transaction::Action::Remove => {
                    format!("{} is removed with its settings, and perhaps no repository has it", item.label())
                }
                rpm_transaction::Action::Group | rpm_transaction::Action::Module => {
                    format!("{} is noted as chosen beside its packages", item.name)
                }
                _ => format!("{} takes the place of another version that perhaps no repository has", item.label()),
            });
        }
        let labels: Vec<String> = items.iter().map(|item| crate::connect::shell::quote(&item.label())).collect();
        Inverse::Steps(vec![Step::new(format!("{} -e -- {}", self.request.rpm(), labels.join(" ")))])
    }

    fn difference(&self, items: &[Item]) -> Difference {
        let lines = |removed: bool| -> String {
            items
                .iter()
                .filter(|item| (item.action == rpm_transaction::Action::Remove) == removed)
                .map(|item| format!("{}\n", item.label()))
                .collect()
        };
        Difference::new("packages", lines(true), lines(false))
    }

    fn conclude(&self, work: &Work, items: &[Item], finished: Finished) -> Result<Outcome, Failure> {
        let lock = self.manager.lock(self.args.int("lock_timeout").unwrap_or(30));
        let Finished { ended, added, removed } = finished;
        let ended = ended.unlocked(lock)?;
        let rpms = |lines: &[String]| -> Vec<Rpm> {
            let is_package = |rpm: &Rpm| rpm.name != "gpg-pubkey";
            lines.iter().filter_map(|line| Rpm::parse(line)).filter(is_package).collect()
        };
        let (added, removed) = (rpms(&added), rpms(&removed));
        let mut results = work.notes.clone();
        if self.args.bool("download_only") {
            results.extend(items.iter().map(|item| self.line(item)));
        }
        results.extend(added.iter().map(|rpm| format!("Installed: {}", rpm.label())));
        results.extend(removed.iter().map(|rpm| format!("Removed: {}", rpm.label())));
        let was = |rpm: &&Rpm, list: &[Rpm]| list.iter().any(|other| other.name == rpm.name);
        let names = |rpms: Vec<&Rpm>| texts(rpms.into_iter().map(Rpm::label).collect::<Vec<_>>());
        let changes = object([
            ("installed", names(added.iter().filter(|rpm| !was(rpm, &removed)).collect())),
            ("updated", names(added.iter().filter(|rpm| was(rpm, &removed)).collect())),
            ("removed", names(removed.iter().filter(|rpm| !was(rpm, &added)).collect())),
        ]);
        let failed = |message: String| {
            Failure::new(message)
                .with("rc", ended.code.map_or(1, i64::from))
                .with("results", texts(&results))
                .with("changes", changes.clone())
                .with("stdout", ended.stdout.trim_end())
                .with("stderr", ended.stderr.trim_end())
                .with("changed", !added.is_empty() || !removed.is_empty())
        };
        if ended.code != Some(0) {
            let errors = rpm_transaction::parse(&ended.said()).errors;
            let said = ended.said();
            let reason = if errors.trim().is_empty() { said.trim() } else { errors.trim() };
            return Err(failed(format!("{} failed: {reason}", self.manager.program())));
        }
        let installed = |item: &Item| added.iter().any(|rpm| rpm.name == item.name);
        let missing = items.iter().find(|item| item.action == rpm_transaction::Action::Install && !installed(item));
        if let Some(item) = missing.filter(|_| !self.args.bool("download_only")) {
            let program = self.manager.program();
            return Err(failed(format!("{program} ended well, but {} is not installed", item.label())));
        }
        let outcome = Outcome::changed()
            .differences([self.difference(items)])
            .with("msg", "")
            .with("results", texts(&results))
            .with("changes", changes)
            .with("rc", 0);
        Ok(warned(outcome, work))
    }

    /// `update_cache` alone.
    async fn make_cache(&self) -> Result<Outcome, Failure> {
        if !entries(&self.args, "name").is_empty() || !self.args.bool("update_cache") {
            return Ok(Outcome::ok().with("msg", "Nothing to do").with("results", texts::<&str>([])).with("rc", 0));
        }
        let lock = self.manager.lock(self.args.int("lock_timeout").unwrap_or(30));
        let verb = match self.manager {
            Manager::Yum => vec!["makecache", "fast"],
            Manager::Dnf | Manager::Dnf5 => vec!["makecache", "--refresh"],
        };
        let mut command = self.command(&Command { verb, specs: Vec::new() }, false);
        if self.manager == Manager::Yum {
            command = format!("{} >/dev/null && {command}", self.expire());
        }
        let caches = Footprint::tree("/var/cache/dnf").and(Footprint::tree("/var/cache/yum"));
        let change = Change::uncertain("the cache of package repositories", caches)
            .step(Step::new(format!("{}[ \"$c\" = 0 ]\n", each(&self.environment, &[command], lock))))
            .inverse(Inverse::None("a cache holds no state of the host".to_owned()));
        let applied = self.host.change(change).await?;
        if let Some(response) = applied.responses.first() {
            let ended = parse_each(response)?.remove(0).unlocked(lock)?;
            if ended.code != Some(0) {
                let errors = rpm_transaction::parse(&ended.said()).errors;
                let said = ended.said();
                let reason = if errors.trim().is_empty() { said.trim() } else { errors.trim() };
                return Err(Failure::new(format!("the repositories cannot be read: {reason}"))
                    .with("rc", ended.code.map_or(1, i64::from))
                    .with("results", texts::<&str>([])));
            }
        }
        Ok(Outcome::ok().with("msg", "Cache updated").with("results", texts::<&str>([])).with("rc", 0))
    }
}

#[cfg(test)]
#[path = "dnf_tests.rs"]
mod tests;
