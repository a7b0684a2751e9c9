//! ansible.builtin.git: working copies of Git repositories.

use futures_util::try_join;

use crate::host::reads::{Attributes, Script};
use crate::host::{Failure, Footprint, Host};

use super::execution::environment;
use super::file_common::path::absolute;
use super::git_plan::{Request, Seen, Update};
use super::programs::{SYSTEM_PATH, make, parts};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Settings, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.git",
    aliases: &[],
    summary: "Clones Git repositories and brings working copies to a version",
    args: &[
        Arg::new("repo", Type::Str, "The address of the repository").required().aliases(&["name"]),
        Arg::new("dest", Type::Path, "The working copy; not needed with `clone: false`"),
        Arg::new("version", Type::Str, "A branch, a tag or a commit's name; HEAD: the default branch").default("HEAD"),
        Arg::new("remote", Type::Str, "What the repository is called in the working copy").default("origin"),
        Arg::new("refspec", Type::Str, "What to fetch beside branches and tags, in words of git fetch"),
        Arg::new("reference", Type::Path, "A local repository whose objects a clone uses"),
        Arg::new("force", Type::Bool, "Discard local changes").default("false"),
        Arg::new("depth", Type::Int, "Only this many commits of the history"),
        Arg::new("clone", Type::Bool, "Clone it if it is not there; false: only tell what the repository has")
            .default("true"),
        Arg::new("update", Type::Bool, "Bring a working copy that is there to the version").default("true"),
        Arg::new("bare", Type::Bool, "Without working files").default("false"),
        Arg::new("recursive", Type::Bool, "With its submodules").default("true"),
        Arg::new("track_submodules", Type::Bool, "Submodules follow their branches").default("false"),
        Arg::new("single_branch", Type::Bool, "Clone one branch only").default("false"),
        Arg::new("accept_hostkey", Type::Bool, "Do not check the key of the repository's host").default("false"),
        Arg::new("accept_newhostkey", Type::Bool, "Accept the key of the repository's host at first sight")
            .default("false"),
        Arg::new("key_file", Type::Path, "The private key for SSH, on the host"),
        Arg::new("ssh_opts", Type::Str, "Options of ssh (git 2.3 and newer)"),
        Arg::new("executable", Type::Path, "The program in place of `git`"),
        Arg::new("umask", Type::Raw, "The umask for new files, octal in quotes"),
        Arg::new("separate_git_dir", Type::Path, "Where a clone keeps what is else in .git"),
        Arg::new("verify_commit", Type::Bool, "The version must have a good signature").default("false"),
        Arg::new("gpg_allowlist", Type::List, "Not supported: limit the keyring of the user instead")
            .aliases(&["gpg_whitelist"]),
        Arg::new("archive", Type::Path, "Not supported: use `git archive` by the module `command`"),
        Arg::new("archive_prefix", Type::Str, "Not supported, as `archive`"),
    ],
    rules: &[
        Rule::MutuallyExclusive(&["separate_git_dir", "bare"]),
        Rule::MutuallyExclusive(&["accept_hostkey", "accept_newhostkey"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("before", "the commit before; none for a clone"),
        ("after", "the commit after"),
        ("remote_url_changed", "whether the address of the remote was another (existing working copy)"),
        ("msg", "that local changes were discarded, if they were"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let mut request = Request::parse(&args)?;
    if let Some(dest) = &request.dest {
        request.dest = Some(absolute(&host, dest).await?);
    }
    let seen = look(&host, &request, &settings).await?;
    let outcome = Outcome::ok();
    let Some(dest) = request.dest.clone().filter(|_| request.clone || seen.head.is_some()) else {
        let after = seen.target(&request)?;
        return Ok(Outcome::changed().with("before", crate::value::Value::Null).with("after", after.commit));
    };
    let before = seen.head.clone();
    let outcome = outcome.with("before", before.clone());
    if seen.exists && !request.update {
        return Ok(outcome.with("after", before));
    }
    let target = seen.target(&request)?;
    let update = if seen.exists {
        if seen.local_changes && !request.force {
            let message = format!("Local modifications exist in the destination: {dest} (force=no).");
            return Err(Failure::new(message).with("before", before));
        }
        Some(Update {
            url_differs: seen.url.as_deref().is_some_and(|url| !request.is_same_address(url)),
            moves: before.as_deref() != Some(target.commit.as_str()) || target.is_abbreviated,
            submodules: request.recursive && !request.bare && seen.submodules_differ,
        })
    } else {
        None
    };
    let mut outcome = match &update {
        Some(update) => outcome.with("remote_url_changed", update.url_differs),
        None => outcome,
    };
    if let Some(update) = &update
        && !update.moves
        && !update.url_differs
        && !update.submodules
        && !seen.local_changes
    {
        return Ok(outcome.with("after", before));
    }
    if seen.local_changes && update.is_some() {
        outcome = outcome.with("msg", format!("Local modifications exist in the destination: {dest}"));
    }
    let change = request.change(&dest, &seen, &target, update.as_ref(), &environment(&settings)?);
    let differences = change.differences.clone();
    let responses = make(&host, change).await?;
    let told = responses.and_then(|responses| responses.last().map(|last| last.text().trim().to_owned()));
    let after = told.filter(|after| !after.is_empty()).unwrap_or(target.commit);
    let sure = update.as_ref().is_none_or(|update| update.url_differs || update.submodules) || seen.local_changes;
    if !sure && before.as_deref() == Some(after.as_str()) {
        // an abbreviated name was the same commit
        return Ok(outcome.with("after", after));
    }
    Ok(Outcome { changed: true, ..outcome }.with("after", after).differences(differences))
}

/// Asks for the working copy and for what the repository has, in one batch.
async fn look(host: &Host, request: &Request, settings: &Settings) -> Result<Seen, Failure> {
    let environment = environment(settings)?;
    let preparation = format!("{SYSTEM_PATH}{environment}{}", request.preparation());
    let local = async {
        match &request.dest {
            None => Ok(None),
            Some(dest) => {
                let text = format!("{preparation}{}", request.local_script(dest));
                // a working copy may be part of another one, and git looks at the user's settings too
                host.read(Script { text, footprint: Footprint::Everything }).await.map(Some)
            }
        }
    };
    let remote = async {
        if request.update || request.dest.is_none() {
            let text = format!("{preparation}{}", request.remote_script());
            host.read(Script { text, footprint: Footprint::Everything }).await.map(Some)
        } else {
            Ok(None)
        }
    };
    let there = async {
        match &request.dest {
            None => Ok(None),
            Some(dest) => host.read(Attributes { path: dest.clone(), follow: true }).await,
        }
    };
    let (local, remote, there) = try_join!(local, remote, there)?;
    if [&local, &remote].into_iter().flatten().any(|answer| answer.code == Some(127)) {
        return Err(Failure::new(format!("this host has no program `{}`", request.git)));
    }
    let mut seen = Seen { dest_exists: there.is_some(), ..Seen::default() };
    if let Some(local) = local.filter(crate::connect::shell::Response::success) {
        seen.take_local(&parts(&local, 5));
    }
    if let Some(remote) = remote {
        if !remote.success() {
            let reason = remote.error_text();
            let message = format!("cannot read {}: {}", request.shown_repo(), reason.trim());
            return Err(Failure::new(message).with("rc", remote.code.map(i64::from)));
        }
        seen.refs = remote.text();
    } else if !seen.exists {
        // `update: false` of what is not there is a clone
        let text = format!("{preparation}{}", request.remote_script());
        let remote = host.read(Script { text, footprint: Footprint::Everything }).await?;
        if !remote.success() {
            return Err(Failure::new(format!("cannot read {}: {}", request.shown_repo(), remote.error_text().trim())));
        }
        seen.refs = remote.text();
    }
    Ok(seen)
}

#[cfg(test)]
#[path = "git_tests.rs"]
mod tests;
