//! `ansible.builtin.file`: files, directories and links are there with these attributes, or are gone.

mod absent;
mod directory;
mod link;
mod owners;
mod peek;
mod recurse;
mod times;

use futures_util::try_join;

use crate::host::reads::{Attributes, FileAttributes, FileKind, FileStat, Stat};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Query};

use super::file_common::account::Myself;
use super::file_common::content::leaves_file;
use super::file_common::destination::{attribute_change, look_above, look_self};
use super::file_common::path::{RealPath, absolute};
use super::file_common::permissions::{MODE, OWNERSHIP, Permissions, StateDifference, commands, describe, newborn};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};
use times::Times;

pub const MODULE: Module = Module {
    name: "ansible.builtin.file",
    aliases: &[],
    summary: "Makes and removes files, directories and links, and sets their mode, owner and times",
    args: &[
        Arg::new("path", Type::Path, "the file, directory or link").required().aliases(&["dest", "name"]),
        Arg::new("state", Type::Str, "what is to be there; without it, what is there already, else a file").choices(&[
            "absent",
            "directory",
            "file",
            "hard",
            "link",
            "touch",
        ]),
        Arg::new("src", Type::Path, "what a link points to; relative to the directory of a symbolic link"),
        Arg::new("recurse", Type::Bool, "set mode and owner of everything below the directory too").default("false"),
        Arg::new("force", Type::Bool, "make a link whose target is missing, or in place of a file or empty directory")
            .default("false"),
        Arg::new("follow", Type::Bool, "act on the target of a symbolic link").default("true"),
        Arg::new("modification_time", Type::Str, "`preserve`, `now`, or a time in the host's time zone"),
        Arg::new("modification_time_format", Type::Str, "strftime format of modification_time")
            .default("%Y%m%d%H%M.%S"),
        Arg::new("access_time", Type::Str, "`preserve`, `now`, or a time in the host's time zone"),
        Arg::new("access_time_format", Type::Str, "strftime format of access_time").default("%Y%m%d%H%M.%S"),
        Arg::new("_diff_peek", Type::Bool, "change nothing, tell whether the file looks binary"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("path", "the path (states absent, directory, file)"),
        ("dest", "the path (states hard, link, touch)"),
        ("src", "what the link points to"),
        ("state", "what is there: absent, directory, file or link"),
        ("mode", "permissions as four octal digits"),
        ("owner", "name of the owner; `uid` is the number"),
        ("group", "name of the group; `gid` is the number"),
        ("size", "bytes of a file"),
        ("appears_binary", "whether a zero byte is at the beginning of the file (`_diff_peek`)"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// A task of the module, with what every state looks at.
struct Task {
    host: Host,
    args: Args,
    path: String,
    /// What is at the path itself.
    here: Option<FileAttributes>,
    /// What is at the end of the link, if it is one.
    there: Option<FileAttributes>,
    /// The times of what is there, if the task may alter them.
    stat: Option<FileStat>,
    times: Times,
    /// The nearest directory above that exists, if the task may make something in it, and those that do not.
    above: Option<FileAttributes>,
    missing: Vec<String>,
    me: Myself,
    permissions: Permissions,
    follow: bool,
    force: bool,
    diff: bool,
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let path = absolute(&host, args.text("path")).await?;
    if args.has("_diff_peek") {
        return peek::tell(&host, &path).await;
    }
    if !host.is_check() || args.str("state") == Some("absent") {
        return ensure(host, args, path, settings.diff).await;
    }
    let (args, mut warnings) = owners::checked(&host, &args, &path).await?;
    match ensure(host, args, path, settings.diff).await {
        Ok(mut outcome) => {
            outcome.warnings.append(&mut warnings);
            Ok(outcome)
        }
        Err(failure) => Err(Failure { warnings, ..failure }),
    }
}

/// Brings the path to its state.
async fn ensure(host: Host, args: Args, path: String, diff: bool) -> Result<Outcome, Failure> {
    let state = args.str("state").map(str::to_owned);
    let touches = state.as_deref() == Some("touch");
    let makes = matches!(state.as_deref(), Some("directory" | "link" | "touch"));
    let (mut task, source, (above, missing), ()) = try_join!(
        look(host.clone(), args.clone(), path.clone(), touches, diff),
        link::look_at_source(&host, &args, &path),
        look_above(&host, &path, makes),
        directory::look_below(&host, &args, &path)
    )?;
    task.above = above;
    task.missing = missing;
    // a hard link in an existing directory gets the name of its source
    if state.as_deref() == Some("hard")
        && task.there.as_ref().is_some_and(|there| there.kind == FileKind::Directory)
        && let Some(src) = args.str("src")
    {
        let path = super::file_common::path::join(&path, super::file_common::path::base_name(src));
        task = look(host, args, path, touches, diff).await?;
    }
    let state = state.unwrap_or_else(|| {
        let now = task.here.as_ref().map(|here| here.kind.state());
        now.unwrap_or(if task.args.bool("recurse") { "directory" } else { "file" }).to_owned()
    });
    if task.args.bool("recurse") && state != "directory" {
        return Err(Failure::new("recurse option requires state to be 'directory'").with("path", task.path));
    }
    if task.args.str("src").is_some() && !matches!(state.as_str(), "link" | "hard") {
        return Err(Failure::new("src option requires state to be 'link' or 'hard'").with("path", task.path));
    }
    match state.as_str() {
        "absent" => absent::ensure(&task).await,
        "directory" => directory::ensure(&task).await,
        "link" => link::ensure_symbolic(&task, source).await,
        "hard" => link::ensure_hard(&task, source).await,
        "touch" => touch(&task).await,
        _ => attributes(&task).await,
    }
}

async fn look(host: Host, args: Args, path: String, touches: bool, diff: bool) -> Result<Task, Failure> {
    let here = |follow| Attributes { path: path.clone(), follow };
    let times = Times::read(&host, &args, touches);
    let wants_times = touches || args.has("modification_time") || args.has("access_time");
    let stat =
        async { if wants_times { host.read(Stat { path: path.clone(), follow: true }).await } else { Ok(None) } };
    let (here, there, stat, times, (me, permissions)) =
        try_join!(host.read(here(false)), host.read(here(true)), stat, times, look_self(&host, &args))?;
    if permissions.mode == Some(super::file_common::mode::Mode::Preserve) {
        return Err(Failure::new("mode must be in octal or symbolic form: `preserve` is for copy and template"));
    }
    if here.as_ref().is_some_and(|here| here.kind == FileKind::Link) {
        host.note_link();
    }
    let (follow, force) = (args.bool("follow"), args.bool("force"));
    let (above, missing) = (None, Vec::new());
    Ok(Task { host, args, path, here, there, stat, times, above, missing, me, permissions, follow, force, diff })
}

impl Task {
    fn is_link(&self) -> bool {
        self.here.as_ref().is_some_and(|here| here.kind == FileKind::Link)
    }

    /// The state that the path is in, in Ansible's words.
    fn state(&self) -> &'static str {
        self.here.as_ref().map_or("absent", |here| here.kind.state())
    }

    /// The path to act on, links followed if the task says so, and what is there.
    async fn subject(&self) -> Result<(String, Option<FileAttributes>), Failure> {
        if self.follow && self.is_link() {
            let real = self.host.read(RealPath(self.path.clone())).await?;
            Ok((real, self.there.clone()))
        } else {
            Ok((self.path.clone(), self.here.clone()))
        }
    }

    /// The change of mode, owner, group and times of what is at `path`; `None` if all is right.
    /// What differs is noted in `difference`.
    fn attribute_change(
        &self,
        path: &str,
        before: &FileAttributes,
        difference: &mut StateDifference,
    ) -> (Option<Change>, FileAttributes) {
        let after = self.permissions.on(before, self.me.umask);
        difference.attributes(before, &after);
        let mut change = attribute_change(path, before, &after);
        if let Some(stat) = &self.stat
            && let Some((forth, back)) = self.times.steps(path, stat)
        {
            self.times.show(stat, difference);
            let mut whole = change.take().unwrap_or_else(|| {
                let change = Change::certain(format!("times of {path}"), Footprint::path(path));
                leaves_file(change, path, &after, None).inverse(Inverse::Steps(Vec::new()))
            });
            whole.steps.push(forth);
            if let Inverse::Steps(steps) = &mut whole.inverse {
                steps.push(back);
            }
            change = Some(whole);
        }
        if path != self.path {
            change = change.map(|change| {
                let query = Query::Attributes { path: self.path.clone(), follow: true };
                change.touching(&self.path).leaves(query, after.to_response())
            });
        }
        (change, after)
    }
}

/// Makes the change, if there is one, and tells the outcome.
async fn finish(host: &Host, change: Option<Change>, difference: StateDifference) -> Result<Outcome, Failure> {
    let difference = difference.into_difference();
    let Some(mut change) = change.map(Change::whole) else { return Ok(Outcome::ok().differences([difference])) };
    change.differences = vec![difference];
    let outcome = Outcome::of_change(&change);
    host.change(change).await?;
    Ok(outcome)
}

/// `state: file`: the attributes of an existing file.
async fn attributes(task: &Task) -> Result<Outcome, Failure> {
    let (path, before) = task.subject().await?;
    let before = match before {
        Some(before) if !matches!(before.kind, FileKind::Directory | FileKind::Link) => before,
        other => {
            let state = other.as_ref().map_or("absent", |other| other.kind.state());
            let message = format!("file ({path}) is {state}, cannot continue");
            return Err(Failure::new(message).with("path", path).with("state", state));
        }
    };
    let mut difference = StateDifference::new(&path);
    let (change, after) = task.attribute_change(&path, &before, &mut difference);
    let outcome = finish(&task.host, change, difference).await?;
    Ok(describe(outcome.with("path", path), Some(&after)))
}

/// `state: touch`: an empty file if nothing is there; its times.
async fn touch(task: &Task) -> Result<Outcome, Failure> {
    let mut difference = StateDifference::new(&task.path);
    difference.set("state", task.state(), "touch");
    if task.here.is_some() {
        let (path, before) = task.subject().await?;
        let Some(before) = before else {
            let message =
                format!("Error, could not touch target: {} points to {path}, which does not exist", task.path);
            return Err(Failure::new(message).with("path", task.path.as_str()));
        };
        let (change, after) = task.attribute_change(&path, &before, &mut difference);
        let outcome = finish(&task.host, change, difference).await?;
        return Ok(describe(outcome.with("dest", task.path.as_str()), Some(&after)));
    }
    if let Some(directory) = task.missing.last() {
        let message = format!("Error, could not touch target: the directory {directory} does not exist");
        return Err(Failure::new(message).with("path", task.path.as_str()));
    }
    let born = newborn(FileKind::File, &task.me, task.above.as_ref());
    let after = task.permissions.on(&born, task.me.umask);
    let path = crate::connect::shell::quote(&task.path);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(Some(commands(&task.path, &born, &after)).filter(|commands| !commands.is_empty()));
    parts.extend(task.times.commands(&task.path));
    parts.push(format!("stat -c '%a %u %g %s' {path}"));
    // a file that cannot get its owner is not left behind
    let script =
        format!("{{ [ ! -e {path} ] && : >{path}; }} || exit\n{} || {{ rm -f {path}; exit 1; }}", parts.join(" && "));
    let step = crate::host::Step::new(script)
        .expect(format!("{:o} {} {} 0", after.mode, after.uid, after.gid))
        .writes(task.path.as_str());
    let back = crate::host::Step::new(format!("rm -f {path}")).writes(task.path.as_str());
    let change = Change::certain(format!("file {}", task.path), Footprint::path(task.path.as_str()))
        .step(step)
        .inverse(Inverse::Steps(vec![back]));
    let change = leaves_file(change, &task.path, &after, Some(b""));
    difference.attributes(&born, &after);
    let outcome = finish(&task.host, Some(change), difference).await?;
    Ok(describe(outcome.with("dest", task.path.as_str()), Some(&after)))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
