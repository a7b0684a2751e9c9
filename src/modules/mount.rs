//! ansible.posix.mount: mounts, now and in fstab.

use futures_util::try_join;

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, FileContent, Script};
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Subject};

use super::file_common::content::{backup_name, difference};
use super::file_common::destination::{Destination, Manner, join_changes, look, plan_edit};
use super::file_common::path::{absolute, ancestors};
use super::fstab::{Entry, Mounted, find, mounted, set, unset};
use super::programs::{command, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.mount",
    aliases: &[],
    summary: "Mounts and unmounts file systems, now and in fstab for the next boot",
    args: &[
        Arg::new("path", Type::Path, "Where it is mounted; `none` for swap").required().aliases(&["name"]),
        Arg::new("src", Type::Path, "The device, share or directory"),
        Arg::new("fstype", Type::Str, "The type of file system"),
        Arg::new("opts", Type::Str, "Options of mount; default `defaults`"),
        Arg::new("opts_no_log", Type::Bool, "Options are not shown").default("false"),
        Arg::new("dump", Type::Str, "The fifth field of fstab").default("0"),
        Arg::new("passno", Type::Str, "The sixth field of fstab").default("0"),
        Arg::new(
            "state",
            Type::Str,
            "mounted: now and in fstab; present: in fstab; ephemeral: now only; unmounted: not now; absent: neither; \
             absent_from_fstab: not in fstab; remounted: once more",
        )
        .required()
        .choices(&["absent", "absent_from_fstab", "mounted", "present", "unmounted", "remounted", "ephemeral"]),
        Arg::new("fstab", Type::Path, "The file in place of /etc/fstab"),
        Arg::new("boot", Type::Bool, "Mounted at boot; else `noauto` is added to the options").default("true"),
        Arg::new("backup", Type::Bool, "Keep the old fstab under a name with the time").default("false"),
    ],
    rules: &[
        Rule::RequiredIf("state", "mounted", &["src", "fstype"]),
        Rule::RequiredIf("state", "present", &["src", "fstype"]),
        Rule::RequiredIf("state", "ephemeral", &["src", "fstype"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "where it is mounted"),
        ("src", "the device, share or directory"),
        ("fstype", "the type of file system"),
        ("opts", "the options"),
        ("dump", "the fifth field of fstab"),
        ("passno", "the sixth field of fstab"),
        ("boot", "`yes` or `no`"),
        ("fstab", "the file"),
        ("backup_file", "where the old fstab is kept; empty if it is not"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const TABLE: &str = "/proc/self/mountinfo";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (wanted, warning) = Wanted::parse(&host, &args).await?;
    let seen = Seen::read(&host, &args, &wanted).await?;
    let mut outcome = Outcome::ok();
    if let Some(warning) = warning {
        outcome = outcome.warning(warning);
    }
    let backup = args.bool("backup").then(|| backup_name(&wanted.fstab));
    let (change, backup) = wanted.plan(&seen, backup)?;
    if let Some(change) = change {
        outcome = outcome.differences(change.differences.iter().cloned());
        outcome.changed = true;
        host.change(change).await?;
    }
    let entry = &wanted.entry;
    outcome = outcome.with("name", entry.path.as_str()).with("fstab", wanted.fstab.as_str());
    outcome = outcome.with("dump", entry.dump.as_str()).with("passno", entry.passno.as_str());
    outcome = outcome.with("boot", if args.bool("boot") || wanted.noauto { "yes" } else { "no" });
    outcome = outcome.with("opts", wanted.shown_opts()).with("backup_file", backup.unwrap_or_default());
    for (name, value) in [("src", &entry.src), ("fstype", &entry.fstype)] {
        if args.has(name) {
            outcome = outcome.with(name, value.as_str());
        }
    }
    Ok(outcome)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    AbsentFromFstab,
    Mounted,
    Present,
    Unmounted,
    Remounted,
    Ephemeral,
}

#[derive(Debug)]
struct Wanted {
    state: State,
    entry: Entry,
    src: Option<String>,
    /// Options were given.
    has_opts: bool,
    /// `noauto` was among them.
    noauto: bool,
    hidden: bool,
    fstab: String,
    /// `none`: swap, which is nowhere.
    is_nowhere: bool,
}

impl Wanted {
    async fn parse(host: &Host, args: &Args) -> Result<(Wanted, Option<String>), Failure> {
        let state = match args.text("state") {
            "absent" => State::Absent,
            "absent_from_fstab" => State::AbsentFromFstab,
            "mounted" => State::Mounted,
            "present" => State::Present,
            "unmounted" => State::Unmounted,
            "remounted" => State::Remounted,
            _ => State::Ephemeral,
        };
        let path = args.text("path");
        let is_nowhere = matches!(path, "none" | "swap");
        if is_nowhere && !matches!(state, State::Present | State::AbsentFromFstab | State::Absent) {
            return Err(Failure::new(format!(
                "`{path}` is the place of swap, which cannot be mounted: `state: present` keeps it in fstab, `swapon` uses it now"
            )));
        }
        let path = if is_nowhere { path.to_owned() } else { absolute(host, path).await? };
        let fstab = absolute(host, args.str("fstab").unwrap_or("/etc/fstab")).await?;
        let mut opts = args.str("opts").unwrap_or("defaults").to_owned();
        let noauto = opts.split(',').any(|opt| opt == "noauto");
        let mut warning = None;
        if args.bool("boot") && noauto {
            warning = Some("Ignore the 'boot' due to 'opts' contains 'noauto'.".to_owned());
        } else if !args.bool("boot") && !noauto {
            opts.push_str(",noauto");
        }
        for (name, text) in [("src", args.text("src")), ("fstype", args.text("fstype")), ("opts", &opts)] {
            let blank = |c: char| c == '\n' || (name != "src" && c.is_whitespace());
            if text.contains(blank) {
                return Err(Failure::new(format!(
                    "`{name}` has a blank or a line break, which fstab cannot hold there"
                )));
            }
        }
        let entry = Entry {
            src: args.text("src").to_owned(),
            path,
            fstype: args.text("fstype").to_owned(),
            opts,
            dump: args.text("dump").to_owned(),
            passno: args.text("passno").to_owned(),
        };
        let src = args.str("src").map(str::to_owned);
        let (has_opts, hidden) = (args.has("opts"), args.bool("opts_no_log"));
        Ok((Wanted { state, entry, src, has_opts, noauto, hidden, fstab, is_nowhere }, warning))
    }

    fn shown_opts(&self) -> &str {
        if self.hidden { "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER" } else { &self.entry.opts }
    }

    /// What is touched by a mount, wherever it is seen.
    fn footprint(&self) -> Footprint {
        Footprint::tree(self.entry.path.as_str())
            .and(Footprint::Of(vec![
                Subject::Units,
                Subject::Tree("/proc/self".into()),
                Subject::Tree("/run/mount".into()),
            ]))
            .and(Footprint::path("/proc/mounts").and(Footprint::path("/etc/mtab")))
    }

    /// The change, and the name of the old fstab if it is kept.
    fn plan(&self, seen: &Seen, backup: Option<String>) -> Result<(Option<Change>, Option<String>), Failure> {
        let text = seen.text();
        let path = self.entry.path.as_str();
        let new = match self.state {
            State::Mounted | State::Present => set(&text, &self.entry),
            State::Absent | State::AbsentFromFstab => unset(&text, path, self.src.as_deref()),
            State::Unmounted | State::Remounted | State::Ephemeral => None,
        };
        let live = match (self.state, &seen.mounted) {
            (State::Mounted, Some(now)) if new.is_some() => Some(self.renew(now, seen)),
            (State::Mounted | State::Ephemeral, None) => Some(self.mount(seen)),
            (State::Ephemeral, Some(now)) if self.is_same_source(now) => Some(self.renew(now, seen)),
            (State::Ephemeral, Some(now)) => {
                return Err(Failure::new(format!(
                    "Ephemeral mount point is already mounted with a different source than the specified one: {path} has \
                     {} and not {}. Use `state: unmounted` first, or another path.",
                    now.src, self.entry.src
                )));
            }
            (State::Unmounted, Some(now)) => Some(self.unmount(now, seen)),
            (State::Absent, Some(now)) if new.is_some() => Some(self.unmount(now, seen)),
            (State::Remounted, now) => Some(self.remount(now.as_ref(), seen)),
            _ => None,
        };
        let live = match (self.state, new.is_some() && !self.is_nowhere && seen.exists) {
            (State::Absent, true) => join_changes(live, Some(self.remove_directory())),
            _ => live,
        };
        let Some(new) = new else { return Ok((live, None)) };
        let manner = Manner { backup, validate: None, unsafe_writes: false };
        let edit = plan_edit(&seen.fstab, Some(new.clone().into_bytes()), &manner);
        let mut file = edit.change;
        if let Some(file) = &mut file {
            let header = format!("{} (content)", self.fstab);
            file.differences.push(if self.hidden {
                Difference::new(header, "(options are not shown)\n", "(other options are not shown)\n")
            } else {
                difference((&header, &header), Some(text.as_bytes()), false, new.as_bytes())
            });
        }
        // what cannot be mounted must not be in fstab, where it might keep the host from booting
        let mut change = join_changes(live.clone(), file.clone());
        if let (Some(change), Some(live), Some(file)) = (&mut change, live, file) {
            change.what = live.what;
            change.differences = [live.differences, file.differences].concat();
        }
        Ok((change, edit.backup))
    }

    /// True if what is mounted is what the task names. A directory that is bound has another root.
    fn is_same_source(&self, now: &Mounted) -> bool {
        let is_bind = self.entry.opts.split(',').any(|opt| matches!(opt, "bind" | "rbind"));
        if is_bind {
            now.root == self.entry.src || now.root.ends_with(&self.entry.src)
        } else {
            now.src == self.entry.src
        }
    }

    /// `mount` by the task's own words: what fstab says does not count yet.
    fn mount_command(&self) -> String {
        let Entry { src, path, fstype, opts, .. } = &self.entry;
        command(["mount", "-t", fstype, "-o", opts, src, path])
    }

    /// Prints `mounted` or `not mounted`, from the kernel's table.
    fn proof(&self) -> String {
        let escaped = self.entry.path.replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011");
        format!(
            "p=$(readlink -f {0} 2>/dev/null); [ \"$p\" != {0} ] || p={1}\ns='not mounted'; while read -r a b c d m e; do \
             [ \"$m\" != \"$p\" ] && [ \"$m\" != {1} ] || s=mounted; done <{TABLE}; echo \"$s\"",
            quote(&self.entry.path),
            quote(&escaped)
        )
    }

    fn change(&self, verb: &str) -> Change {
        Change::certain(format!("{verb} {}", self.entry.path), self.footprint())
    }

    fn mount(&self, seen: &Seen) -> Change {
        let path = quote(&self.entry.path);
        let made = seen.missing.first().map(|first| quote(first));
        let (make, unmake) = match &made {
            Some(first) => (
                format!("mkdir -p {path} || exit\n"),
                // up to the highest that was made
                format!("; p={path}; while rmdir \"$p\" 2>/dev/null && [ \"$p\" != {first} ]; do p=${{p%/*}}; done"),
            ),
            None => (String::new(), String::new()),
        };
        let script = format!("{make}{} || {{ c=$?{unmake}; exit \"$c\"; }}\n{}", self.mount_command(), self.proof());
        let back = format!("umount {path} || exit{unmake}\n:");
        self.change("mount")
            .step(step(script).expect("mounted"))
            .inverse(Inverse::Steps(vec![step(back)]))
            .difference(self.show("", &self.described()))
    }

    fn described(&self) -> String {
        let Entry { src, fstype, .. } = &self.entry;
        format!("src: {src}\nfstype: {fstype}\nopts: {}\n", self.shown_opts())
    }

    fn show(&self, before: &str, after: &str) -> Difference {
        Difference::new(format!("mount {}", self.entry.path), before, after)
    }

    /// Mounts again with other options, or anew where the kernel cannot.
    fn renew(&self, now: &Mounted, seen: &Seen) -> Change {
        let Entry { src, path, opts, .. } = &self.entry;
        let path = quote(path);
        let anew = format!("umount {path} && {}", self.mount_command());
        let script = if self.is_same_source(now) {
            let remount = command(["mount", "-o", &format!("remount,{opts}"), src, &self.entry.path]);
            format!("{remount} 2>/dev/null || {{ {anew}; }}")
        } else {
            anew
        };
        let back = match way_back(now, seen, &self.entry.path) {
            Some(mount) => Inverse::Steps(vec![step(format!("umount {path} && {mount}"))]),
            None => Inverse::None(format!("the directory that was bound to {} is not known", self.entry.path)),
        };
        self.change("mount")
            .step(step(format!("{script} || exit\n{}", self.proof())).expect("mounted"))
            .inverse(back)
            .difference(self.show(&shown(now, self.hidden), &self.described()))
    }

    fn remount(&self, now: Option<&Mounted>, seen: &Seen) -> Change {
        let path = &self.entry.path;
        let is_default = self.entry.opts == "defaults" || !self.has_opts;
        let from = if self.fstab == "/etc/fstab" || seen.fstab.attributes.is_none() {
            String::new()
        } else {
            format!("-T {} ", quote(&self.fstab))
        };
        let script = if is_default {
            format!("mount -o remount {from}{0} || {{ umount {0} && mount {from}{0}; }}", quote(path))
        } else {
            format!("mount -o {} {from}{}", quote(&format!("remount,{}", self.entry.opts)), quote(path))
        };
        let before = now.map(|now| shown(now, self.hidden)).unwrap_or_default();
        let back = match now {
            Some(now) if !is_default => {
                let opts = format!("remount,{}", now.opts);
                // with the source named, options that are not there are taken away
                Inverse::Steps(vec![step(command(["mount", "-o", &opts, &now.src, path]))])
            }
            _ => Inverse::None("a remount as fstab has it leaves nothing to take back".to_owned()),
        };
        self.change("remount")
            .step(step(format!("{script} || exit\n{}", self.proof())).expect("mounted"))
            .inverse(back)
            .difference(self.show(&before, &format!("{before}then: remount\n")))
    }

    fn unmount(&self, now: &Mounted, seen: &Seen) -> Change {
        let path = quote(&self.entry.path);
        let back = match way_back(now, seen, &self.entry.path) {
            Some(mount) => Inverse::Steps(vec![step(mount)]),
            None => Inverse::None(format!("the directory that was bound to {} is not known", self.entry.path)),
        };
        self.change("unmount")
            .step(step(format!("umount {path} || exit\n{}", self.proof())).expect("not mounted"))
            .inverse(back)
            .difference(self.show(&shown(now, self.hidden), ""))
    }

    fn remove_directory(&self) -> Change {
        let path = quote(&self.entry.path);
        Change::certain(format!("directory {}", self.entry.path), Footprint::path(self.entry.path.as_str()))
            .step(step(format!("rmdir {path}")))
            .inverse(Inverse::Steps(vec![step(format!("mkdir {path}"))]))
    }
}

fn shown(now: &Mounted, hidden: bool) -> String {
    let opts = if hidden { "(not shown)" } else { &now.opts };
    format!("src: {}\nfstype: {}\nopts: {opts}\n", now.src, now.fstype)
}

/// The command that mounts what is there now: as fstab has it, or else by what the kernel tells.
fn way_back(now: &Mounted, seen: &Seen, path: &str) -> Option<String> {
    if let Some(entry) = find(&seen.text(), path, None) {
        let Entry { src, path, fstype, opts, .. } = entry;
        return Some(command(["mount", "-t", &fstype, "-o", &opts, &src, &path]));
    }
    (now.root == "/").then(|| {
        // what the file system says of itself may be asked of it again, but for what the kernel adds
        let own = now.super_opts.split(',').filter(|opt| !matches!(*opt, "rw" | "ro" | "inode64" | "seclabel"));
        let opts: Vec<&str> = now.opts.split(',').chain(own).collect();
        command(["mount", "-t", &now.fstype, "-o", &opts.join(","), &now.src, path])
    })
}

/// What is there.
struct Seen {
    fstab: Destination,
    mounted: Option<Mounted>,
    exists: bool,
    /// The directories to make, the highest first.
    missing: Vec<String>,
}

impl Seen {
    fn text(&self) -> String {
        String::from_utf8_lossy(self.fstab.content.as_deref().unwrap_or_default()).into_owned()
    }

    async fn read(host: &Host, args: &Args, wanted: &Wanted) -> Result<Seen, Failure> {
        let path = wanted.entry.path.clone();
        if wanted.is_nowhere {
            let fstab = look(host, args, &wanted.fstab, true).await?;
            return Ok(Seen { fstab, mounted: None, exists: false, missing: Vec::new() });
        }
        let directories: Vec<String> = ancestors(&path).into_iter().map(str::to_owned).chain([path.clone()]).collect();
        let (fstab, table, real, found) = try_join!(
            look(host, args, &wanted.fstab, true),
            host.read(FileContent(TABLE.to_owned())),
            real_path(host, &path),
            futures_util::future::try_join_all(
                directories.iter().map(|path| host.read(Attributes { path: path.clone(), follow: true }))
            ),
        )?;
        let table = String::from_utf8_lossy(&table.unwrap_or_default()).into_owned();
        let first_missing = found.iter().position(Option::is_none).unwrap_or(found.len());
        Ok(Seen {
            fstab,
            mounted: mounted(&table, &[&path, &real]),
            exists: first_missing == found.len(),
            missing: directories[first_missing..].to_vec(),
        })
    }
}

/// The path without symbolic links, which is how the kernel's table has it; itself if it does not exist.
async fn real_path(host: &Host, path: &str) -> Result<String, Failure> {
    let text = format!("readlink -f {0} 2>/dev/null || printf '%s\\n' {0}", quote(path));
    let real = host.read(Script { text, footprint: Footprint::path(path) }).await?.text();
    let real = real.trim_end_matches('\n').to_owned();
    if real != path {
        host.note_link();
    }
    Ok(real)
}

#[cfg(test)]
#[path = "mount_tests.rs"]
mod tests;
