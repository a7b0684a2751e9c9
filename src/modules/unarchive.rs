//! `ansible.builtin.unarchive`: what is in an archive is on the host.

mod archive;
mod local;
mod remote;

use std::collections::BTreeMap;

use futures_util::try_join;
use globset::{Glob, GlobMatcher};

use crate::host::reads::{Attributes, FileContent, FileKind, Script};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::http::{Request, url};
use crate::value::{Interruption, Value};

use super::execution::{environment, kept_by_files};
use super::file_common::destination::look_self;
use super::file_common::path::{absolute, parent};
use super::file_common::permissions::{MODE, OWNERSHIP, describe};
use super::programs::make;
use super::web;
use super::web::fetch::{Fetch, Keep};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Settings, Support, Type};
use archive::{Entry, Format, Kind};
use local::{Listing, Plan, Unpack, Wish};
use remote::Selection;

pub const MODULE: Module = Module {
    name: "ansible.builtin.unarchive",
    aliases: &[],
    summary: "Unpacks tar and zip archives on the host",
    args: &[
        Arg::new("src", Type::Path, "the archive: on the controller, on the host with `remote_src`, or a URL")
            .required(),
        Arg::new("dest", Type::Path, "the directory on the host, which must exist").required(),
        Arg::new("remote_src", Type::Bool, "`src` is on the host, or is a URL that the host fetches").default("false"),
        Arg::new("copy", Type::Bool, "old: the opposite of `remote_src`"),
        Arg::new("creates", Type::Path, "do nothing if this is on the host"),
        Arg::new("exclude", Type::List, "names or patterns of what is not unpacked"),
        Arg::new("include", Type::List, "paths in the archive; nothing else is unpacked"),
        Arg::new("list_files", Type::Bool, "return the paths in the archive as `files`").default("false"),
        Arg::new("keep_newer", Type::Bool, "files that are newer on the host stay").default("false"),
        Arg::new(
            "extra_opts",
            Type::List,
            "options of tar or unzip; of a controller's archive --strip-components alone",
        ),
        Arg::new("decrypt", Type::Bool, "decrypt an archive of the controller that is encrypted with vault")
            .default("true"),
        Arg::new("io_buffer_size", Type::Int, "has no effect").default("65536"),
        web::VALIDATE_CERTS,
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[super::Rule::MutuallyExclusive(&["include", "exclude"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("dest", "the directory"),
        ("src", "the archive"),
        ("handler", "the kind of archive, in Ansible's words"),
        ("files", "the paths in the archive, if `list_files`"),
        ("mode", "permissions of the directory as four octal digits"),
        ("owner", "name of its owner; `uid` is the number"),
        ("group", "name of its group; `gid` is the number"),
        ("state", "`directory`"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, context } = invocation;
    if let Some(kept) = kept_by_files(&host, &args, &settings).await?.filter(|kept| kept.exists) {
        return Ok(Outcome::skipped(format!("skipped, since {} exists", kept.path)));
    }
    let remote = args.bool("remote_src") || args.optional_bool("copy") == Some(false);
    let given = args.text("src");
    let dest = absolute(&host, args.text("dest")).await?;
    let attributes = host.read(Attributes { path: dest.clone(), follow: true });
    let (there, (me, permissions)) = try_join!(attributes, look_self(&host, &args))?;
    let there = match there {
        Some(there) if there.kind == FileKind::Directory => there,
        _ => return Err(Failure::new(format!("dest '{dest}' must be an existing dir"))),
    };
    let selection = Selection {
        exclude: args.list("exclude"),
        include: args.list("include"),
        options: args.list("extra_opts"),
        keep_newer: args.bool("keep_newer"),
    };
    let umask = me.umask;
    let wish =
        Wish { dest: &dest, permissions: &permissions, umask, is_root: me.is_root(), keep_newer: selection.keep_newer };
    let job = Job { host: &host, wish: &wish, selection: &selection, shown: given };
    let done = if !remote {
        let path = super::copy::find_source(&context, "files", given)?;
        let source = super::copy::read_source(&path, super::copy::keyring(&args, &context))?;
        job.local(source.content.bytes().unwrap_or_default().to_vec()).await?
    } else if url::is_url(given) {
        let path = fetched(&host, &args, &settings, given).await?;
        let done = job.remote(&path).await;
        remove(&host, &path).await?;
        done?
    } else {
        job.remote(&absolute(&host, given).await?).await?
    };
    let mut outcome = Outcome::with_changed(done.changed)
        .differences(done.differences)
        .with("dest", dest.as_str())
        .with("src", given)
        .with("handler", done.format.handler());
    if args.bool("list_files") {
        outcome = outcome.with("files", done.files);
    }
    Ok(describe(outcome, Some(&there)))
}

/// What came of it.
struct Done {
    changed: bool,
    differences: Vec<crate::host::Difference>,
    format: Format,
    files: Vec<Value>,
}

struct Job<'a> {
    host: &'a Host,
    wish: &'a Wish<'a>,
    selection: &'a Selection,
    shown: &'a str,
}

impl Job<'_> {
    /// An archive that the controller holds.
    async fn local(&self, content: Vec<u8>) -> Result<Done, Failure> {
        let format = Format::of(&content);
        let count = strip_count(&self.selection.options)?;
        let entries = select(archive::read(self.shown, content)?, self.selection, self.shown)?;
        let entries = local::with_parents(archive::strip(entries, count));
        let there = self.list(&entries, true).await?;
        let plan = local::compare(&entries, &there, self.wish);
        self.bring(format, &entries, plan, &there, Unpack::Packed).await
    }

    /// An archive that is on the host.
    async fn remote(&self, path: &str) -> Result<Done, Failure> {
        let text = remote::look_script(path, self.wish.dest, self.selection);
        let footprint = Footprint::tree(self.wish.dest).and(Footprint::path(path));
        let response = self.host.read(Script { text, footprint }).await?;
        let Some(look) = remote::parse(path, &response, self.selection)? else {
            // no unzip: the controller does it
            let content = self.host.read(FileContent(path.to_owned())).await?;
            return self.local(content.unwrap_or_default()).await;
        };
        let entries = local::with_parents(look.entries);
        let there = self.list(&entries, false).await?;
        let mut plan = Plan::default();
        for entry in &entries {
            let found = there.get(&entry.path);
            let differs = look.differ.contains(&entry.path) || found.is_none();
            let is_newer = self.selection.keep_newer
                && look.format != Format::Zip
                && found.is_some_and(|found| found.kind != 'd' && found.mtime > entry.mtime);
            if differs && !is_newer {
                plan.unpack.push(entry);
            } else if found.is_some_and(|found| !local::has_attributes(entry, found, self.wish)) && !is_newer {
                plan.adjust.push(&entry.path);
            }
        }
        let command = remote::unpack_command(look.format, path, self.wish.dest, self.selection, self.wish.is_root);
        self.bring(look.format, &entries, plan, &there, Unpack::Command(&command)).await
    }

    async fn list(&self, entries: &[Entry], digests: bool) -> Result<BTreeMap<String, local::Found>, Failure> {
        let paths = entries.iter().map(|entry| entry.path.as_str()).collect();
        self.host.read(Listing { dest: self.wish.dest, paths, digests }).await
    }

    async fn bring(
        &self,
        format: Format,
        entries: &[Entry],
        plan: Plan<'_>,
        there: &BTreeMap<String, local::Found>,
        unpack: Unpack<'_>,
    ) -> Result<Done, Failure> {
        let slash = |entry: &Entry| if entry.kind == Kind::Directory { "/" } else { "" };
        let files = entries.iter().map(|entry| Value::from(format!("{}{}", entry.path, slash(entry)))).collect();
        if plan.is_empty() {
            return Ok(Done { changed: false, differences: Vec::new(), format, files });
        }
        let kept = match local::keep_script(&plan, there, self.wish.dest) {
            Some(text) => {
                let footprint = Footprint::tree(self.wish.dest);
                let response = self.host.read(Script { text, footprint }).await?;
                Some(response.stdout).filter(|_| response.code == Some(0))
            }
            None => None,
        };
        let what = format!("{} unpacked in {}", self.shown, self.wish.dest);
        let change = local::change(&what, &plan, unpack, there, self.wish, kept)?;
        let differences = change.differences.clone();
        make(self.host, change).await?;
        Ok(Done { changed: true, differences, format, files })
    }
}

/// Fetches a URL into a temporary directory of the host.
async fn fetched(host: &Host, args: &Args, settings: &Settings, given: &str) -> Result<String, Failure> {
    if host.is_check() {
        let shown = url::without_password(given);
        return Err(Failure::interrupted(Interruption::Unknown(format!(
            "what is in {shown} is not known until it is fetched"
        ))));
    }
    let (address, login) = url::take_credentials(given);
    let request = Request {
        verify: args.bool("validate_certs"),
        credentials: login.map(|(user, password)| crate::http::Credentials { user, password, at_once: false }),
        headers: vec![("User-Agent".to_owned(), "ansible-httpget".to_owned())],
        ..Request::get(address)
    };
    let environment = environment(settings)?;
    let fetch =
        Fetch { request: &request, environment: &environment, directory: None, algorithm: None, decompress: false };
    let change = Change::uncertain(format!("download of {}", request.shown_url()), Footprint::nothing())
        .step(Step::new(fetch.script(Keep::Unless(None))))
        .inverse(Inverse::Steps(Vec::new()));
    let applied = host.change(change).await?;
    let failed = |why: &str| Failure::new(format!("Failure downloading {}, {why}", request.shown_url()));
    match fetch.parse(&applied.responses.into_iter().next().unwrap_or_default())? {
        Some(Ok(fetched)) if fetched.is_there() => fetched.file.ok_or_else(|| failed("it was not kept")),
        Some(Ok(fetched)) => Err(failed(&format!("HTTP Error {}: {}", fetched.answer.status, fetched.answer.reason()))),
        Some(Err(why)) => Err(failed(&why)),
        None => {
            let mut answer = web::ask::from_controller(host, &request).await?.map_err(|why| failed(&why))?;
            if answer.status != 200 {
                return Err(failed(&format!("HTTP Error {}: {}", answer.status, answer.reason())));
            }
            let script =
                "d=$(mktemp -d \"${TMPDIR:-/tmp}/.trimtab.XXXXXX\") && cat >\"$d/file\" && printf %s \"$d/file\"";
            let change = Change::uncertain(format!("download of {}", request.shown_url()), Footprint::nothing())
                .step(Step::new(script).stdin(std::mem::take(&mut answer.body)))
                .inverse(Inverse::Steps(Vec::new()));
            let responses = make(host, change).await?.unwrap_or_default();
            Ok(responses.first().map(|response| response.text()).unwrap_or_default())
        }
    }
}

async fn remove(host: &Host, path: &str) -> Result<(), Failure> {
    let change = Change::uncertain("what was fetched, away", Footprint::nothing())
        .step(Step::new(format!("rm -rf {}", crate::connect::shell::quote(parent(path)))))
        .inverse(Inverse::Steps(Vec::new()));
    host.change(change).await.map(|_| ())
}

/// The number in `--strip-components=1`. Options that are so anyway are let pass; all others are tar's own business.
fn strip_count(options: &[String]) -> Result<usize, Failure> {
    let mut count = 0;
    let mut words = options.iter().flat_map(|option| option.split_whitespace());
    while let Some(word) = words.next() {
        let number = match word.split_once('=') {
            Some(("--strip-components" | "--strip", number)) => Some(number),
            None if word == "--strip-components" || word == "--strip" => words.next(),
            _ if ["--overwrite", "--no-overwrite-dir", "--no-same-owner", "-o", "-oq", "-q"].contains(&word) => {
                continue;
            }
            _ => {
                return Err(Failure::new(format!(
                    "the option `{word}` in `extra_opts` is not supported for an archive of the controller: copy it to \
                     the host and unpack it there with `remote_src: true`"
                )));
            }
        };
        count = number
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Failure::new("`--strip-components` in `extra_opts` needs a number"))?;
    }
    Ok(count)
}

/// The entries that `include` and `exclude` leave.
fn select(entries: Vec<Entry>, selection: &Selection, shown: &str) -> Result<Vec<Entry>, Failure> {
    let clean =
        |path: &str| path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/");
    let include: Vec<String> = selection.include.iter().map(|path| clean(path)).collect();
    let is_below =
        |path: &str, top: &str| path == top || path.strip_prefix(top).is_some_and(|rest| rest.starts_with('/'));
    if let Some(missing) = include.iter().find(|top| !entries.iter().any(|entry| is_below(&entry.path, top))) {
        return Err(Failure::new(format!("{missing} is not in {shown}")));
    }
    let mut exclude: Vec<GlobMatcher> = Vec::new();
    for pattern in &selection.exclude {
        let glob = Glob::new(&clean(pattern))
            .map_err(|error| Failure::new(format!("`{pattern}` in `exclude` is no pattern: {error}")))?;
        exclude.push(glob.compile_matcher());
    }
    // as tar: a pattern may begin at any part of the path, and what is below is left out too
    let is_excluded = |path: &str| {
        let starts = std::iter::once(0).chain(path.match_indices('/').map(|(at, _)| at + 1));
        let ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).chain([path.len()]).collect();
        starts.into_iter().any(|start| {
            ends.iter()
                .filter(|end| **end > start)
                .any(|end| exclude.iter().any(|glob| glob.is_match(&path[start..*end])))
        })
    };
    Ok(entries
        .into_iter()
        .filter(|entry| include.is_empty() || include.iter().any(|top| is_below(&entry.path, top)))
        .filter(|entry| !is_excluded(&entry.path))
        .collect())
}

#[cfg(test)]
#[path = "unarchive_tests.rs"]
mod tests;
