//! ansible.builtin.group: groups of the host.

use crate::connect::shell::Response;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Read, Step};

use super::accounts::{FindGroup, GroupEntry, check_name, line_of, written};
use super::programs::{command, make, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.group",
    aliases: &[],
    summary: "Makes, changes and removes groups",
    args: &[
        Arg::new("name", Type::Str, "The group").required(),
        Arg::new("gid", Type::Int, "Its number"),
        Arg::new("state", Type::Str, "Whether it exists").default("present").choices(&["absent", "present"]),
        Arg::new("system", Type::Bool, "A new group gets a number for system groups").default("false"),
        Arg::new("force", Type::Bool, "Remove it even if it is some user's primary group").default("false"),
        Arg::new("non_unique", Type::Bool, "`gid` may be the number of another group too").default("false"),
        Arg::new("gid_min", Type::Int, "Least number for a new group, in place of GID_MIN of login.defs"),
        Arg::new("gid_max", Type::Int, "Greatest number for a new group, in place of GID_MAX of login.defs"),
        Arg::new("local", Type::Bool, "Not supported: only hosts with libuser have the programs it means")
            .default("false"),
    ],
    rules: &[Rule::RequiredIf("non_unique", "true", &["gid"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "the group"),
        ("state", "whether it exists"),
        ("gid", "its number (state=present)"),
        ("system", "whether a group for the system was asked for (state=present)"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let now = host.read(FindGroup(wanted.name.clone())).await?;
    let state = args.text("state");
    let mut gid = now.as_ref().map(|group| group.gid);
    let mut outcome = Outcome::ok();
    if let Some(change) = wanted.plan(now.as_ref(), host.is_check()) {
        outcome = Outcome::of_change(&change);
        gid = wanted.gid.or(if wanted.present { gid } else { None });
        gid = made(&host, change, &wanted).await?.or(gid);
    }
    outcome = outcome.with("name", wanted.name.as_str()).with("state", state);
    if wanted.present {
        outcome = outcome.with("system", wanted.system);
        if let Some(gid) = gid {
            outcome = outcome.with("gid", gid);
        }
    }
    Ok(outcome)
}

/// Makes the change; the number of a new group, if its answer tells it.
async fn made(host: &Host, change: Change, wanted: &Wanted) -> Result<Option<u32>, Failure> {
    let responses = make(host, change).await?;
    let last = responses.and_then(|responses| responses.last().map(Response::text));
    let entry =
        last.and_then(|text| text.lines().filter_map(GroupEntry::parse).find(|group| group.name == wanted.name));
    Ok(entry.map(|group| group.gid))
}

#[derive(Debug)]
struct Wanted {
    name: String,
    present: bool,
    gid: Option<u32>,
    system: bool,
    force: bool,
    non_unique: bool,
    range: Vec<(&'static str, i64)>,
}

/// The argument as the number of a user or group.
pub(super) fn number(args: &Args, name: &str) -> Result<Option<u32>, Failure> {
    let wrong = |number: i64| Failure::new(format!("`{name}` is {number}, which is no number of an account"));
    args.int(name).map(|number| u32::try_from(number).map_err(|_| wrong(number))).transpose()
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        if args.bool("local") {
            return Err(Failure::new(
                "`local: true` is not supported: it means the programs of libuser; groupadd, which is used without it, \
                 changes the files of the host too",
            ));
        }
        check_name("group", args.text("name"))?;
        let range = [("GID_MIN", "gid_min"), ("GID_MAX", "gid_max")];
        Ok(Wanted {
            name: args.text("name").to_owned(),
            present: args.text("state") == "present",
            gid: number(args, "gid")?,
            system: args.bool("system"),
            force: args.bool("force"),
            non_unique: args.bool("non_unique"),
            range: range.into_iter().filter_map(|(key, name)| Some((key, args.int(name)?))).collect(),
        })
    }

    fn plan(&self, now: Option<&GroupEntry>, check: bool) -> Option<Change> {
        // the owners of files are shown by name, so a name that comes or goes alters what is seen of any file; in
        // check mode that would leave nothing known for a matter of files that nobody owns
        let footprint = if check { written() } else { Footprint::Everything };
        let what = format!("group {}", self.name);
        let shown = |gid: Option<u32>| match gid {
            Some(gid) => format!("gid: {gid}\n"),
            None => "gid: chosen by the host\n".to_owned(),
        };
        let show = |before: String, after: String| Difference::new(what.as_str(), before, after);
        match (now, self.present) {
            (None, false) => None,
            (None, true) => {
                let show = show(String::new(), shown(self.gid));
                let back = Inverse::Steps(vec![step(command(["groupdel", &self.name]))]);
                let add = step(format!("{} && {}", self.add(), line_of("/etc/group", &self.name)));
                let change = match self.gid {
                    Some(gid) => {
                        self.leaves(Change::certain(what, footprint).step(add.expect(self.line(gid, &[]))), gid, &[])
                    }
                    None => Change::uncertain(what, footprint).step(add),
                };
                Some(change.inverse(back).difference(show))
            }
            (Some(now), true) => {
                let gid = self.gid.filter(|gid| *gid != now.gid)?;
                let show = show(shown(Some(now.gid)), shown(Some(gid)));
                let renumber = |gid: u32, also: bool| {
                    let also = if also { " -o" } else { "" };
                    step(format!(
                        "groupmod -g {gid}{also} {} && {}",
                        command([self.name.as_str()]),
                        line_of("/etc/group", &self.name)
                    ))
                };
                let forth = renumber(gid, self.non_unique).expect(self.line(gid, &now.members));
                let change = Change::certain(what, footprint)
                    .step(forth)
                    .inverse(Inverse::Steps(vec![renumber(now.gid, true)]))
                    .difference(show);
                Some(self.leaves(change, gid, &now.members))
            }
            (Some(now), false) => {
                let show = show(shown(Some(now.gid)), String::new());
                let force = if self.force { "-f " } else { "" };
                let change = Change::certain(what, footprint)
                    .step(step(format!("groupdel {force}{}", command([self.name.as_str()]))))
                    .leaves(FindGroup(self.name.clone()).query(), Response { code: Some(2), ..Response::default() })
                    .inverse(Inverse::Steps(vec![self.restore(now)]))
                    .difference(show);
                Some(change)
            }
        }
    }

    fn add(&self) -> String {
        let mut words = vec!["groupadd".to_owned()];
        if let Some(gid) = self.gid {
            words.extend(["-g".into(), gid.to_string()]);
            if self.non_unique {
                words.push("-o".into());
            }
        }
        if self.system {
            words.push("-r".into());
        }
        for (key, number) in &self.range {
            words.extend(["-K".into(), format!("{key}={number}")]);
        }
        words.push(self.name.clone());
        command(words.iter().map(String::as_str))
    }

    fn line(&self, gid: u32, members: &[String]) -> String {
        format!("{}:x:{gid}:{}", self.name, members.join(","))
    }

    fn leaves(&self, change: Change, gid: u32, members: &[String]) -> Change {
        let line = format!("{}\n", self.line(gid, members));
        change.leaves(FindGroup(self.name.clone()).query(), Response::output(line))
    }

    /// The step that brings a removed group back.
    fn restore(&self, now: &GroupEntry) -> Step {
        let name = command([self.name.as_str()]);
        let mut code = format!("groupadd -o -g {} {name}", now.gid);
        for member in &now.members {
            code.push_str(&format!(" && usermod -a -G {name} {}", command([member.as_str()])));
        }
        step(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, accounts_lock, can_change_accounts, check_module, play, run_module, undo};
    use crate::value::Value;

    const NAME: &str = "trimtabtestgroup";

    struct Removed;
    impl Drop for Removed {
        fn drop(&mut self) {
            let _ = std::process::Command::new("groupdel").arg(NAME).output();
        }
    }

    #[test]
    fn a_group_comes_changes_and_goes_and_all_of_it_can_be_undone() {
        if !can_change_accounts() {
            return;
        }
        let _lock = accounts_lock();
        drop(Removed);
        let _removed = Removed;
        let given = |more: &[(&'static str, Value)]| [&[("name", NAME.into())], more].concat();
        let gid = || {
            let answer = std::process::Command::new("getent").args(["group", NAME]).output().unwrap();
            GroupEntry::parse(&String::from_utf8_lossy(&answer.stdout)).map(|group| group.gid)
        };
        let made = check_module(&MODULE, &given(&[("gid", 54_321.into())])).unwrap();
        assert!(made.changed && gid().is_none());
        let made = play(&MODULE, &given(&[]), &Play::default());
        let outcome = made.result.unwrap();
        assert_eq!(outcome.result["gid"], gid().unwrap().into());
        assert!(!run_module(&MODULE, &given(&[])).unwrap().changed);
        let changed = play(&MODULE, &given(&[("gid", 54_321.into())]), &Play::default());
        assert!(changed.result.unwrap().changed && changed.changes[0].certain);
        assert_eq!(gid(), Some(54_321));
        let gone = play(&MODULE, &given(&[("state", "absent".into())]), &Play::default());
        assert!(gone.result.unwrap().changed && gid().is_none());
        assert!(!run_module(&MODULE, &given(&[("state", "absent".into())])).unwrap().changed);
        undo(&gone.changes);
        assert_eq!(gid(), Some(54_321));
        undo(&changed.changes);
        assert_ne!(gid(), Some(54_321));
        undo(&made.changes);
        assert_eq!(gid(), None);
        let made = play(&MODULE, &given(&[("gid", 54_322.into()), ("system", true.into())]), &Play::default());
        assert!(made.changes[0].certain);
        assert_eq!(made.result.unwrap().result["gid"], 54_322.into());
        let failure = run_module(&MODULE, &[("name", "a:b".into())]).unwrap_err();
        assert_eq!(failure.message, "`a:b` cannot be the name of a group");
    }

    #[test]
    fn what_groupadd_refuses_is_told_in_its_words() {
        if !can_change_accounts() {
            return;
        }
        let failure = run_module(&MODULE, &[("name", "trimtabtest2".into()), ("gid", 0.into())]).unwrap_err();
        assert!(failure.message.contains("GID '0' already exists"), "{}", failure.message);
        let failure = run_module(&MODULE, &[("name", NAME.into()), ("local", true.into())]).unwrap_err();
        assert!(failure.message.starts_with("`local: true` is not supported"), "{}", failure.message);
    }
}
