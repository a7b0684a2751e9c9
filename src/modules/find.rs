//! `ansible.builtin.find`: the files below directories that match.

mod criteria;
mod listing;

use futures_util::future::{join_all, try_join_all};

use crate::host::reads::{Checksum, FileContent, FileKind};
use crate::host::{Failure, FailureKind, Host};
use crate::value::{Map, Value};

use super::file_common::path::{absolute_all, clean};
use super::stat::{ALGORITHMS, describe_stat};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};
use criteria::{Contains, Criteria};
use listing::{Found, Listing};

pub const MODULE: Module = Module {
    name: "ansible.builtin.find",
    aliases: &[],
    summary: "Lists the files below directories that match by name, age, size, mode or content",
    args: &[
        Arg::new("paths", Type::List, "the directories").required().aliases(&["name", "path"]),
        Arg::new("patterns", Type::List, "names, as shell patterns or regular expressions; without it all")
            .aliases(&["pattern"]),
        Arg::new("excludes", Type::List, "names that are left out").aliases(&["exclude"]),
        Arg::new("use_regex", Type::Bool, "patterns are Python regular expressions").default("false"),
        Arg::new("contains", Type::Str, "a regular expression that the beginning of a line of the file matches"),
        Arg::new("read_whole_file", Type::Bool, "`contains` is looked for in the whole content").default("false"),
        Arg::new(
            "encoding",
            Type::Str,
            "encoding of the files for `contains`, as Python calls it; without it any bytes are read",
        ),
        Arg::new("file_type", Type::Str, "what is listed").default("file").choices(&[
            "any",
            "directory",
            "file",
            "link",
        ]),
        Arg::new("age", Type::Str, "at least this old, or younger if negative: number and s, m, h, d or w"),
        Arg::new("age_stamp", Type::Str, "the time that `age` is about")
            .default("mtime")
            .choices(&["atime", "ctime", "mtime"]),
        Arg::new("size", Type::Str, "at least this large, or smaller if negative: number and b, k, m, g or t"),
        Arg::new("recurse", Type::Bool, "look into the directories below too").default("false"),
        Arg::new("depth", Type::Int, "how many levels deep, with `recurse`"),
        Arg::new("hidden", Type::Bool, "list names that begin with a dot too").default("false"),
        Arg::new("follow", Type::Bool, "look into directories behind symbolic links").default("false"),
        Arg::new("get_checksum", Type::Bool, "compute the digest of each file").default("false"),
        Arg::new("checksum_algorithm", Type::Str, "the digest")
            .default("sha1")
            .choices(ALGORITHMS)
            .aliases(&["checksum", "checksum_algo"]),
        Arg::new("mode", Type::Raw, "permissions, as text: octal or symbolic"),
        Arg::new("exact_mode", Type::Bool, "`mode` is the whole mode, else at least one of its bits").default("true"),
        Arg::new("limit", Type::Int, "stop after this many"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("files", "what was found, each with path, mode, size, uid, gid, mtime, isdir, isreg, islnk, …"),
        ("matched", "how many were found"),
        ("examined", "how many were looked at"),
        ("skipped_paths", "paths that could not be looked into, with the reason"),
        ("msg", "whether all could be looked at"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let criteria = Criteria::parse(&args)?;
    let paths = absolute_all(&host, &args.list("paths")).await?;
    let depth = if args.bool("recurse") { args.int("depth").filter(|depth| *depth > 0) } else { Some(1) };
    let follow = args.bool("follow");
    // Ansible looks one level deeper before it knows that this is too deep, and counts what it saw
    let looked = depth.map(|depth| if args.bool("recurse") { depth + 1 } else { depth });
    let listings =
        try_join_all(paths.iter().map(|path| host.read(Listing { path: clean(path), depth: looked, follow }))).await?;
    let mut result = Search::default();
    for (path, listing) in paths.iter().zip(listings) {
        if !listing.is_directory {
            let reason = format!("'{path}' is not a directory");
            result.warnings.push(format!("Skipped '{path}' path due to this access issue: {reason}"));
            result.skipped.insert(path.as_str().into(), reason.into());
            continue;
        }
        result.examined += listing.found.len();
        result.skipped.extend(listing.refused.into_iter().map(|(path, why)| (path.into(), why.into())));
        let now = listing.now;
        let slashes = |path: &str| path.matches('/').count() as i64;
        let top = slashes(clean(path).trim_end_matches('/'));
        let is_near = |found: &Found| depth.is_none_or(|depth| slashes(&found.path) - top <= depth);
        let matching = listing.found.into_iter().filter(|found| is_near(found) && criteria.matches(found, now));
        let mut found: Vec<Found> = matching.collect();
        if let Some(contains) = criteria.contains.as_ref().filter(|_| args.text("file_type") == "file") {
            let (matching, refused) = containing(&host, found, contains).await?;
            found = matching;
            if let Some(reason) = refused {
                result.warnings.push(format!("Skipped '{path}' path due to this access issue: {reason}"));
                result.skipped.insert(path.as_str().into(), reason.into());
            }
        }
        result.found.append(&mut found);
    }
    let mut message = "All paths examined";
    if let Some(limit) = criteria.limit
        && result.found.len() >= limit
    {
        result.found.truncate(limit);
        message = "Limit of matches reached";
    }
    if !result.warnings.is_empty() {
        message = "Not all paths examined, check warnings for details";
    }
    let checksums = checksums(&host, &args, &result.found).await?;
    let files: Vec<Value> = result
        .found
        .iter()
        .zip(checksums)
        .map(|(found, checksum)| {
            let mut map = describe(found);
            if let Some(checksum) = checksum {
                map.insert("checksum".into(), checksum.into());
            }
            Value::map(map)
        })
        .collect();
    let outcome = Outcome::ok()
        .with("matched", files.len())
        .with("files", files)
        .with("examined", result.examined)
        .with("skipped_paths", result.skipped)
        .with("msg", message);
    Ok(result.warnings.into_iter().fold(outcome, Outcome::warning))
}

#[derive(Default)]
struct Search {
    found: Vec<Found>,
    examined: usize,
    skipped: Map,
    warnings: Vec<String>,
}

fn describe(found: &Found) -> Map {
    let mut map = Map::new();
    map.insert("path".into(), found.path.as_str().into());
    map.extend(describe_stat(&found.stat));
    let name = |name: &str| Value::from(if name == "UNKNOWN" { "" } else { name });
    map.insert("pw_name".into(), name(&found.stat.attributes.owner));
    map.insert("gr_name".into(), name(&found.stat.attributes.group));
    map
}

/// Those files whose content matches; what cannot be read does not. At the first that is no text in the encoding it
/// ends, as in Ansible: second, why.
async fn containing(
    host: &Host,
    found: Vec<Found>,
    contains: &Contains,
) -> Result<(Vec<Found>, Option<String>), Failure> {
    let contents = join_all(found.iter().map(|found| host.read(FileContent(found.path.clone())))).await;
    let mut matching = Vec::new();
    for (found, content) in found.into_iter().zip(contents) {
        match content {
            Ok(Some(content)) => match contains.matches(&found.path, &content) {
                Ok(true) => matching.push(found),
                Ok(false) => {}
                Err(failure) => return Ok((matching, Some(failure.message))),
            },
            Err(failure) if failure.kind != FailureKind::Failed => return Err(failure),
            _ => {}
        }
    }
    Ok((matching, None))
}

async fn checksums(host: &Host, args: &Args, found: &[Found]) -> Result<Vec<Option<String>>, Failure> {
    if !args.bool("get_checksum") {
        return Ok(vec![None; found.len()]);
    }
    let name = args.text("checksum_algorithm");
    let algorithm = ALGORITHMS.iter().copied().find(|algorithm| *algorithm == name).unwrap_or("sha1");
    let read = |found: &Found| {
        let is_file = found.stat.attributes.kind == FileKind::File;
        let checksum = Checksum { path: found.path.clone(), algorithm };
        async move { if is_file { host.read(checksum).await } else { Ok(None) } }
    };
    try_join_all(found.iter().map(read)).await
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
