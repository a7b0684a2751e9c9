//! ansible.builtin.user: users of the host, their groups, passwords, homes and keys.

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::host::reads::Attributes;
use crate::host::{Failure, Host};

use super::accounts::{FindGroup, FindUser, GroupEntry, ShadowEntry, UserEntry, all_groups, shadow_line};
use super::file_common::account::{Account, Database, FindAccount};
use super::programs::make;
use super::user_key::{Key, bring_key};
use super::user_plan::{Seen, Wanted};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.user",
    aliases: &[],
    summary: "Makes, changes and removes users, with their groups, passwords, homes and keys",
    args: &[
        Arg::new("name", Type::Str, "The user").required().aliases(&["user"]),
        Arg::new("state", Type::Str, "Whether it exists").default("present").choices(&["absent", "present"]),
        Arg::new("uid", Type::Int, "Its number"),
        Arg::new("non_unique", Type::Bool, "`uid` may be the number of another user too").default("false"),
        Arg::new("group", Type::Str, "Its primary group, by name or number"),
        Arg::new("groups", Type::List, "Its other groups; an empty list: none"),
        Arg::new("append", Type::Bool, "Keep other groups it has").default("false"),
        Arg::new("comment", Type::Str, "Its full name, or other words about it"),
        Arg::new("home", Type::Path, "Its home directory"),
        Arg::new("create_home", Type::Bool, "Make the home directory if it does not exist")
            .default("true")
            .aliases(&["createhome"]),
        Arg::new("move_home", Type::Bool, "If `home` changes, move what is in the old one").default("false"),
        Arg::new("skeleton", Type::Str, "The directory whose files a new home gets, in place of /etc/skel"),
        Arg::new("shell", Type::Path, "Its login shell"),
        Arg::new("password", Type::Str, "The hash of its password, or `!` or `*` for none").secret(),
        Arg::new("update_password", Type::Str, "Whether an existing user's password is brought to `password`")
            .default("always")
            .choices(&["always", "on_create"]),
        Arg::new("password_lock", Type::Bool, "Whether the password is locked; not given: as it is"),
        Arg::new("password_expire_max", Type::Int, "Most days between changes of the password"),
        Arg::new("password_expire_min", Type::Int, "Least days between changes of the password"),
        Arg::new("password_expire_warn", Type::Int, "Days of warning before the password expires"),
        Arg::new("password_expire_account_disable", Type::Int, "Days after that until the account is disabled"),
        Arg::new("expires", Type::Float, "When the account ends, in seconds since 1970; negative: never"),
        Arg::new("system", Type::Bool, "A new user gets a number for system users").default("false"),
        Arg::new("umask", Type::Str, "The umask for a new home directory, octal"),
        Arg::new("uid_min", Type::Int, "Least number for a new user, in place of UID_MIN of login.defs"),
        Arg::new("uid_max", Type::Int, "Greatest number for a new user, in place of UID_MAX of login.defs"),
        Arg::new("seuser", Type::Str, "The SELinux user of a new user"),
        Arg::new("force", Type::Bool, "Remove a user who is logged in; or replace an existing key").default("false"),
        Arg::new("remove", Type::Bool, "Remove the home directory and the mail with the user").default("false"),
        Arg::new("generate_ssh_key", Type::Bool, "Make a key pair for SSH if there is none").default("false"),
        Arg::new("ssh_key_bits", Type::Int, "Bits of the key; 0: what ssh-keygen takes").default("0"),
        Arg::new("ssh_key_type", Type::Str, "Type of the key").default("rsa"),
        Arg::new("ssh_key_file", Type::Path, "Where the key is, below the home directory; default .ssh/id_TYPE"),
        Arg::new("ssh_key_comment", Type::Str, "Words in the key; default `ansible-generated on HOST`"),
        Arg::new("ssh_key_passphrase", Type::Str, "What the key is encrypted with").secret(),
        Arg::new("local", Type::Bool, "Not supported: only hosts with libuser have the programs it means")
            .default("false"),
        Arg::new("hidden", Type::Bool, "Only for macOS: nothing here"),
        Arg::new("login_class", Type::Str, "Only for BSD: nothing here"),
        Arg::new("profile", Type::Str, "Only for Solaris: nothing here"),
        Arg::new("authorization", Type::Str, "Only for Solaris: nothing here"),
        Arg::new("role", Type::Str, "Only for Solaris: nothing here"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "the user"),
        ("state", "whether it exists"),
        ("uid", "its number"),
        ("group", "the number of its primary group"),
        ("groups", "the groups asked for"),
        ("comment", "words about it"),
        ("home", "its home directory"),
        ("shell", "its login shell"),
        ("append", "whether it keeps other groups (existing user)"),
        ("move_home", "whether a home may be moved (existing user)"),
        ("create_home", "whether a home is made (new user)"),
        ("system", "whether it is a system user (new user)"),
        ("password", "`NOT_LOGGING_PASSWORD`, if `password` was given"),
        ("force", "as given (state=absent)"),
        ("remove", "as given (state=absent)"),
        ("stdout", "what the programs said, if anything"),
        ("stderr", "what the programs complained of, if anything"),
        ("ssh_fingerprint", "of the key"),
        ("ssh_key_file", "where the key is"),
        ("ssh_public_key", "the public key"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let seen = look(&host, &wanted).await?;
    let mut outcome = Outcome::ok();
    for warning in wanted.warnings(&seen) {
        outcome = outcome.warning(warning);
    }
    outcome = outcome.with("name", wanted.name.as_str()).with("state", args.text("state"));
    let planned = wanted.plan(&seen, host.is_check())?;
    let mut user = seen.user.clone().filter(|_| wanted.present);
    if let Some(change) = planned.change {
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        let responses = make(&host, change).await?;
        user = planned.user;
        if let Some(responses) = responses {
            let said = responses.iter().map(|response| response.text()).collect::<String>();
            let entry = said.lines().filter_map(UserEntry::parse).find(|entry| entry.name == wanted.name);
            user = entry.or(user);
            let complaints = responses.iter().map(|response| response.error_text()).collect::<String>();
            if !complaints.trim().is_empty() {
                outcome = outcome.with("stderr", complaints);
            }
        }
    }
    if !wanted.present {
        return Ok(match seen.user {
            Some(_) => outcome.with("force", wanted.force).with("remove", wanted.remove),
            None => outcome,
        });
    }
    outcome = match seen.user {
        Some(_) => outcome.with("append", wanted.append).with("move_home", wanted.move_home),
        None => outcome.with("system", wanted.system).with("create_home", wanted.create_home),
    };
    if wanted.password.is_some() {
        outcome = outcome.with("password", "NOT_LOGGING_PASSWORD");
    }
    if let Some(user) = &user {
        outcome = outcome
            .with("uid", user.uid)
            .with("group", user.gid)
            .with("comment", user.comment.as_str())
            .with("home", user.home.as_str())
            .with("shell", user.shell.as_str());
        if let Some(groups) = &wanted.groups {
            outcome = outcome.with("groups", groups.join(","));
        }
    }
    match (args.bool("generate_ssh_key"), &user) {
        (true, Some(user)) => bring_key(&host, &Key::parse(&args, user)?, user, outcome).await,
        // the new user's home is not known yet
        (true, None) => Ok(Outcome { changed: true, ..outcome }),
        (false, _) => Ok(outcome),
    }
}

/// Looks at everything that decides, nearly always in one batch.
async fn look(host: &Host, wanted: &Wanted) -> Result<Seen, Failure> {
    if !wanted.present {
        let (user, shadow, groups) = try_join!(
            host.read(FindUser(wanted.name.clone())),
            host.read(shadow_line(&wanted.name)),
            host.read(all_groups()),
        )?;
        let groups = groups.text().lines().filter_map(GroupEntry::parse).collect();
        return Ok(Seen { user, shadow: ShadowEntry::parse(&shadow.text()), all_groups: groups, ..Seen::default() });
    }
    let guess = wanted.home.clone().unwrap_or_else(|| format!("/home/{}", wanted.name));
    let exists = |path: String| async move {
        match host.read(Attributes { path, follow: true }).await {
            Ok(found) => Ok(found.is_some()),
            // a place that may not be looked at is taken for one that is there
            Err(failure) if failure.kind == crate::host::FailureKind::Failed => Ok(true),
            Err(failure) => Err(failure),
        }
    };
    let (user, shadow, all, own_group, group, groups, at_guess) = try_join!(
        host.read(FindUser(wanted.name.clone())),
        host.read(shadow_line(&wanted.name)),
        host.read(all_groups()),
        host.read(FindGroup(wanted.name.clone())),
        find_group(host, wanted.group.as_deref()),
        try_join_all(wanted.groups.iter().flatten().map(|group| find_group(host, Some(group)))),
        exists(guess.clone()),
    )?;
    let home = match &user {
        Some(user) if wanted.home.is_none() && user.home != guess && !user.home.is_empty() => {
            exists(user.home.clone()).await?
        }
        _ => at_guess,
    };
    Ok(Seen {
        shadow: ShadowEntry::parse(&shadow.text()),
        all_groups: all.text().lines().filter_map(GroupEntry::parse).collect(),
        has_own_group: own_group.is_some(),
        group,
        groups: groups.into_iter().flatten().collect(),
        has_home: home,
        user,
    })
}

/// The group of this name or number; one that does not exist is a failure.
async fn find_group(host: &Host, name: Option<&str>) -> Result<Option<Account>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let found = host.read(FindAccount { database: Database::Groups, name: name.to_owned() }).await?;
    match found.filter(|group| group.name != "UNKNOWN") {
        Some(group) => Ok(Some(group)),
        None => Err(Failure::new(format!("Group {name} does not exist"))),
    }
}

#[cfg(test)]
#[path = "user_tests.rs"]
mod tests;
