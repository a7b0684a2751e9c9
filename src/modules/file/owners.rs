//! Owners that check mode does not find: an earlier task may be about to make them, so it only warns.

use futures_util::try_join;

use crate::host::reads::Attributes;
use crate::host::{Failure, Host};
use crate::modules::Args;
use crate::modules::file_common::account::{Database, FindAccount};

/// The arguments that check mode can go on with, and its warnings.
pub async fn checked(host: &Host, args: &Args, path: &str) -> Result<(Args, Vec<String>), Failure> {
    let (user, group) =
        try_join!(missing(host, Database::Users, args, "owner"), missing(host, Database::Groups, args, "group"))?;
    let warnings: Vec<String> = user.into_iter().chain(group).collect();
    if warnings.is_empty() {
        return Ok((args.clone(), warnings));
    }
    // a file that is not there yet gets its owner when it is made
    let there = host.read(Attributes { path: path.to_owned(), follow: false }).await?.is_some();
    Ok((if there { args.clone() } else { args.without(&["owner", "group"]) }, warnings))
}

/// The warning, if there is no account of this name or number.
async fn missing(host: &Host, database: Database, args: &Args, argument: &str) -> Result<Option<String>, Failure> {
    let Some(name) = args.str(argument).filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = host.read(FindAccount { database, name: name.to_owned() }).await?;
    if found.is_some_and(|account| account.name != "UNKNOWN") {
        return Ok(None);
    }
    let (kind, number) = match database {
        Database::Users => ("user", "uid"),
        Database::Groups => ("group", "gid"),
    };
    let with_number = if name.parse::<u32>().is_ok() { format!("with {number} ") } else { String::new() };
    Ok(Some(format!("failed to look up {kind} {with_number}{name}: the play must make it before this task")))
}
