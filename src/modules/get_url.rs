//! `ansible.builtin.get_url`: a file behind a URL is on the host.

use std::time::Instant;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileAttributes, FileKind, Script};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::http::{Request, url};
use crate::value::Value;

use super::execution::environment;
use super::file_common::content::{Content, Write, backup_name, difference, md5, sha1, written};
use super::file_common::destination::attribute_change;
use super::file_common::install::{Place, Placement, locate};
use super::file_common::path::{absolute, base_name};
use super::file_common::permissions::{MODE, OWNERSHIP, StateDifference, describe};
use super::web::ask::from_controller;
use super::web::fetch::{Fetch, Fetched, Keep};
use super::web::{self, request};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.get_url",
    aliases: &[],
    summary: "Fetches a file from the network to the host",
    args: &[
        Arg::new("url", Type::Str, "where it is: http, https, ftp or file").required(),
        Arg::new("dest", Type::Path, "where it goes; in a directory it gets its own name").required(),
        Arg::new("checksum", Type::Str, "ALGORITHM:DIGEST that it must have; the digest may be the URL of a list"),
        Arg::new("force", Type::Bool, "fetch it though it is there, and replace it if it differs")
            .default("false")
            .aliases(&["thirsty"]),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("tmp_dest", Type::Path, "the directory that it is fetched into first"),
        Arg::new("timeout", Type::Int, "seconds to wait for the server").default("10"),
        web::HEADERS,
        Arg::new("http_agent", Type::Str, "the name of the program that servers are told").default("ansible-httpget"),
        Arg::new("url_username", Type::Str, "the user to log in as").aliases(&["username"]),
        Arg::new("url_password", Type::Str, "the password to log in with").aliases(&["password"]).secret(),
        web::FORCE_BASIC_AUTH,
        web::USE_PROXY,
        web::VALIDATE_CERTS,
        web::CLIENT_CERT,
        web::CLIENT_KEY,
        web::CIPHERS,
        web::DECOMPRESS,
        web::UNREDIRECTED_HEADERS,
        web::USE_NETRC,
        web::USE_GSSAPI,
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::RequiredTogether(&["url_username", "url_password"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("dest", "the file"),
        ("url", "where it came from, after all redirects"),
        ("status_code", "the status of the server"),
        ("msg", "what the server said, or that the file was there already"),
        ("checksum_src", "SHA-1 of what was fetched"),
        ("checksum_dest", "SHA-1 of the file before"),
        ("md5sum", "MD5 of what was fetched"),
        ("backup_file", "where the old file is kept"),
        ("elapsed", "seconds that fetching took"),
        ("size", "bytes"),
        ("mode", "permissions as four octal digits"),
        ("owner", "name of the owner; `uid` is the number"),
        ("group", "name of the group; `gid` is the number"),
        ("state", "`file`"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// The algorithms that hosts have a program for.
const ALGORITHMS: &[&str] = &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

/// The digest that the file must have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    algorithm: &'static str,
    digest: String,
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let environment = environment(&settings)?;
    let mut request = request(&args, "url_username", "url_password")?;
    let given = args.text("url").to_owned();
    let wanted = wanted(&host, &args, &environment, &request).await?;
    let begun = Instant::now();
    let mut placement = Placement::read(&host, &args).await?;
    placement.backup = args.bool("backup");
    placement.follow = true;
    let temporary = match args.str("tmp_dest") {
        Some(path) => Some(absolute(&host, path).await?),
        None => None,
    };
    let name = url::file_name(&request.url);
    let mut place = look(&host, &args, &placement, &name, wanted.as_ref()).await?;
    let is_named_by_server = base_name(&place.0.seen.path) != base_name(&placement.dest) || placement.is_directory;
    if is_named_by_server && let Some(other) = server_name(&host, &environment, &request).await? {
        place = look(&host, &args, &placement, &other, wanted.as_ref()).await?;
    }
    let (place, here_digest) = place;
    let dest = place.seen.path.clone();
    let here = place.seen.here.clone();
    if let Some(here) = here.as_ref().filter(|here| !matches!(here.kind, FileKind::File | FileKind::Link)) {
        return Err(Failure::new(format!("{dest} is a {} and cannot be replaced by a file", here.kind.state())));
    }
    let mut force = args.bool("force");
    let outcome = Outcome::ok().with("dest", dest.as_str()).with("url", given.as_str());
    if let (Some(here), Some(wanted), false) = (&here, &wanted, force || is_named_by_server) {
        if here_digest.as_deref() == Some(wanted.digest.as_str()) {
            let outcome = attributes_only(&host, &place, here, outcome).await?;
            let message =
                if outcome.changed { "file already exists but file attributes changed" } else { "file already exists" };
            return Ok(outcome.with("msg", message));
        }
        force = true;
    }
    if force {
        request.headers.push(("Cache-Control".to_owned(), "no-cache".to_owned()));
    } else if here.is_some() && !is_named_by_server {
        let time = modified(&host, &place.seen.real).await?;
        request.headers.extend(time.map(|time| ("If-Modified-Since".to_owned(), time)));
    }
    let fetch = Fetch {
        request: &request,
        environment: &environment,
        directory: temporary.as_deref(),
        algorithm: wanted.as_ref().map(|wanted| wanted.algorithm),
        decompress: args.bool("decompress"),
    };
    let job = Job { host: &host, fetch, place: &place, placement: &placement, wanted: wanted.as_ref() };
    let outcome = job.run(outcome).await?;
    Ok(outcome.with("elapsed", begun.elapsed().as_secs()))
}

/// What is at the place of a file of this name, and its digest if one is wanted.
async fn look(
    host: &Host,
    args: &Args,
    placement: &Placement,
    name: &str,
    wanted: Option<&Wanted>,
) -> Result<(Place, Option<String>), Failure> {
    let place = locate(host, args, placement, Some(name)).await?;
    if let Some(directory) = place.directories.first() {
        let path = &directory.path;
        return Err(Failure::new(format!("Destination directory {path} does not exist")).with("dest", path.as_str()));
    }
    let digest = match wanted {
        Some(wanted) if place.seen.here.is_some() => {
            let read = crate::host::reads::Checksum { path: place.seen.real.clone(), algorithm: wanted.algorithm };
            host.read(read).await?
        }
        _ => None,
    };
    Ok((place, digest))
}

/// The name that the server gives the file, or that of the URL that it redirects to.
async fn server_name(host: &Host, environment: &str, request: &Request) -> Result<Option<String>, Failure> {
    if !request.url.starts_with("http") {
        return Ok(None);
    }
    let head = Request { method: "HEAD".to_owned(), ..request.clone() };
    // what a server says may depend on earlier tasks of other hosts
    host.turn().await?;
    let Some(Ok(answer)) = web::ask::ask(host, environment, &head).await? else { return Ok(None) };
    if answer.status != 200 {
        return Ok(None);
    }
    Ok(Some(answer.header("content-disposition").and_then(file_name).unwrap_or_else(|| url::file_name(&answer.url))))
}

/// The file's name in `attachment; filename="a.tar"`, without directories.
fn file_name(disposition: &str) -> Option<String> {
    let value = disposition.split(';').find_map(|part| {
        let (key, value) = part.trim().split_once('=')?;
        key.trim().eq_ignore_ascii_case("filename").then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let name = value.rsplit('/').next().unwrap_or_default().to_owned();
    (!matches!(name.as_str(), "" | "." | "..")).then_some(name)
}

/// The time of the file's last change as HTTP writes it; `None` if the host's `date` cannot tell.
async fn modified(host: &Host, path: &str) -> Result<Option<String>, Failure> {
    let read = crate::host::reads::Stat { path: path.to_owned(), follow: true };
    let Some(stat) = host.read(read).await? else { return Ok(None) };
    let time = jiff::Timestamp::from_second(stat.mtime as i64).ok();
    Ok(time.map(|time| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()))
}

/// The argument `checksum`, with the list read if it is behind a URL.
async fn wanted(host: &Host, args: &Args, environment: &str, request: &Request) -> Result<Option<Wanted>, Failure> {
    let Some(text) = args.str("checksum").map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong = || Failure::new("The checksum parameter has to be in format <algorithm>:<checksum>");
    let (algorithm, digest) = text.split_once(':').ok_or_else(wrong)?;
    let known = ALGORITHMS.iter().find(|known| known.eq_ignore_ascii_case(algorithm.trim()));
    let Some(algorithm) = known.copied() else {
        return Err(Failure::new(format!(
            "the algorithm `{algorithm}` of `checksum` is not supported; supported: {}",
            ALGORITHMS.join(", ")
        )));
    };
    let digest = if url::is_url(digest) || digest.starts_with("file:") {
        host.turn().await?;
        let list = Request { url: digest.to_owned(), method: "GET".to_owned(), ..request.clone() };
        let content = match web::ask::ask(host, environment, &list).await? {
            Some(Ok(answer)) if answer.status == 200 => answer.body,
            Some(Ok(answer)) => {
                return Err(Failure::new(format!("{digest}: {} {}", answer.status, answer.reason())));
            }
            Some(Err(why)) => return Err(Failure::new(format!("{digest}: {why}"))),
            None => return Err(Failure::new(format!("{digest} cannot be read"))),
        };
        listed(&String::from_utf8_lossy(&content), &url::file_name(&request.url), digest)?
    } else {
        digest.to_owned()
    };
    let digest: String =
        digest.chars().filter(|letter| letter.is_alphanumeric() || *letter == '_').collect::<String>().to_lowercase();
    if digest.is_empty() || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new("The checksum format is invalid"));
    }
    Ok(Some(Wanted { algorithm, digest }))
}

/// The digest of a file in a list of `DIGEST  NAME` lines; a list of one line without a name is of any file.
fn listed(list: &str, name: &str, from: &str) -> Result<String, Failure> {
    let lines: Vec<&str> = list.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if let [only] = lines.as_slice()
        && !only.contains(char::is_whitespace)
    {
        return Ok((*only).to_owned());
    }
    let found = lines.iter().find_map(|line| {
        let (digest, own) = line.split_once(char::is_whitespace)?;
        let own = own.trim().trim_start_matches(['*', '.', '/']);
        (own == name || own.rsplit('/').next() == Some(name)).then(|| digest.to_owned())
    });
    found.ok_or_else(|| Failure::new(format!("Unable to find a checksum for file '{name}' in '{from}'")))
}

async fn attributes_only(
    host: &Host,
    place: &Place,
    before: &FileAttributes,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let after = place.permissions.on(before, place.me.umask);
    let outcome = describe(outcome, Some(&after));
    let Some(mut change) = attribute_change(&place.seen.real, before, &after) else { return Ok(outcome) };
    let mut shown = StateDifference::new(&place.seen.path);
    shown.attributes(before, &after);
    change.differences.push(shown.into_difference());
    if place.seen.real != place.seen.path {
        change = change.touching(&place.seen.path);
    }
    let differences = change.differences.clone();
    host.change(change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

/// Everything that is known before the server is asked.
struct Job<'a> {
    host: &'a Host,
    fetch: Fetch<'a>,
    place: &'a Place,
    placement: &'a Placement,
    wanted: Option<&'a Wanted>,
}

/// The file that was fetched, and where it is.
struct Got {
    fetched: Fetched,
    content: Option<Content>,
}

impl Job<'_> {
    async fn run(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        let here_sha1 = self.place.seen.checksum.as_deref().filter(|_| self.place.seen.here.is_some());
        let is_new = self.place.seen.here.is_none();
        let mut got = None;
        self.host.turn().await?;
        if !is_new || self.host.is_check() {
            // looks only: what arrives is measured and thrown away
            let text = self.fetch.script(Keep::Nothing);
            let footprint = web::footprint(self.fetch.request);
            let response = self.host.read(Script { text, footprint }).await?;
            got = self.take(&response).await?;
            let fetched = &got.as_ref().ok_or_else(|| self.no_file("no answer"))?.fetched;
            if fetched.answer.status == 304 || here_sha1 == Some(fetched.sha1.as_str()) {
                let outcome = self.told(outcome, fetched);
                return match &self.place.seen.here {
                    Some(here) => attributes_only(self.host, self.place, here, outcome).await,
                    None => Ok(outcome),
                };
            }
        }
        let is_here = got.as_ref().is_some_and(|got| got.content.is_some());
        if !self.host.is_check() && !is_here {
            let shown = self.fetch.request.shown_url();
            let change = Change::uncertain(format!("download of {shown}"), Footprint::nothing())
                .step(Step::new(self.fetch.script(Keep::Unless(here_sha1))))
                .inverse(Inverse::Steps(Vec::new()));
            let applied = self.host.change(change).await?;
            got = self.take(&applied.responses.into_iter().next().unwrap_or_default()).await?;
        }
        let Got { fetched, content } = got.ok_or_else(|| self.no_file("no answer"))?;
        if let Some(wanted) = self.wanted.filter(|wanted| wanted.digest != fetched.digest) {
            self.remove(content.as_ref()).await?;
            return Err(Failure::new(format!(
                "The checksum for {} did not match {}; it was {}.",
                fetched.answer.url, wanted.digest, fetched.digest
            )));
        }
        let outcome = self.told(outcome, &fetched).with("md5sum", fetched.md5.as_str());
        let content = match content {
            Some(content) => content,
            // check mode: here it would be, and from here it would be copied
            None => Content::File {
                path: format!("/tmp/.trimtab.{}/file", token()?),
                sha1: fetched.sha1.clone(),
                size: fetched.size,
            },
        };
        self.put(content, outcome).await
    }

    /// What the script says was fetched; by the controller, if the host cannot.
    async fn take(&self, response: &Response) -> Result<Option<Got>, Failure> {
        let asked = match self.fetch.parse(response)? {
            Some(asked) => asked.map(|fetched| {
                let content = fetched.file.as_ref().map(|path| Content::File {
                    path: path.clone(),
                    sha1: fetched.sha1.clone(),
                    size: fetched.size,
                });
                Got { fetched, content }
            }),
            None => from_controller(self.host, self.fetch.request).await?.map(|mut answer| {
                let body = std::mem::take(&mut answer.body);
                let digest = self.wanted.map(|wanted| digest(wanted.algorithm, &body)).unwrap_or_default();
                let (sha1, md5, size) = (sha1(&body), md5(&body), body.len() as u64);
                Got {
                    fetched: Fetched { answer, sha1, md5, size, digest, file: None },
                    content: Some(Content::Bytes(body)),
                }
            }),
        };
        let got = asked.map_err(|why| self.no_file(&why).with("status_code", -1))?;
        let answer = &got.fetched.answer;
        if !got.fetched.is_there() && answer.status != 304 {
            let said = format!("HTTP Error {}: {}", answer.status, answer.reason());
            return Err(self
                .no_file("Request failed")
                .with("status_code", i64::from(answer.status))
                .with("response", said));
        }
        Ok(Some(got))
    }

    fn no_file(&self, why: &str) -> Failure {
        let message = if why == "Request failed" { why.to_owned() } else { format!("Request failed: {why}") };
        Failure::new(message).with("url", self.fetch.request.shown_url()).with("dest", self.place.seen.path.as_str())
    }

    fn told(&self, outcome: Outcome, fetched: &Fetched) -> Outcome {
        let answer = &fetched.answer;
        let mut outcome = match answer.status {
            0 => outcome.with("msg", format!("OK ({} bytes)", fetched.size)),
            304 => outcome.with("msg", "HTTP Error 304: Not Modified").with("status_code", 304),
            status => outcome
                .with("msg", format!("{} ({} bytes)", answer.reason(), fetched.size))
                .with("status_code", i64::from(status)),
        };
        if !answer.url.is_empty() {
            outcome = outcome.with("url", url::without_password(&answer.url));
        }
        if answer.status != 304 {
            outcome = outcome.with("checksum_src", fetched.sha1.as_str());
        }
        match &self.place.seen.checksum {
            Some(old) => outcome.with("checksum_dest", old.as_str()),
            None => outcome.with("checksum_dest", Value::Null),
        }
    }

    /// Removes what was fetched and is not wanted.
    async fn remove(&self, content: Option<&Content>) -> Result<(), Failure> {
        if let Some(Content::File { path, .. }) = content {
            let change = Change::uncertain("what was fetched, away", Footprint::nothing())
                .step(Step::new(cleanup(path)))
                .inverse(Inverse::Steps(Vec::new()));
            self.host.change(change).await?;
        }
        Ok(())
    }

    /// Puts what was fetched in its place.
    async fn put(&self, content: Content, outcome: Outcome) -> Result<Outcome, Failure> {
        let mut seen = self.place.seen.clone();
        seen.read_content(self.host).await?;
        let size = content.size();
        let directory = self.place.directory.as_ref();
        let after = written(seen.here.as_ref(), directory, &self.place.me, &self.place.permissions, size);
        let backup = self.placement.backup.then(|| backup_name(&seen.path)).filter(|_| seen.here.is_some());
        let write = Write {
            path: seen.real.clone(),
            alias: (seen.real != seen.path).then(|| seen.path.clone()),
            content: content.clone(),
            before: seen.here.clone(),
            before_content: seen.content.clone(),
            after: after.clone(),
            backup: backup.clone(),
            validate: None,
            unsafe_writes: self.placement.unsafe_writes,
        };
        let mut change = write.change(&self.place.me);
        match &content {
            Content::File { path, sha1, .. } => {
                let mut shown = StateDifference::new(&seen.path);
                shown.set("checksum", seen.checksum.clone(), sha1.as_str());
                change.differences.push(shown.into_difference());
                change = change.step(Step::new(cleanup(path)));
            }
            Content::Bytes(bytes) => {
                let large = seen.here.is_some() && seen.content.is_none();
                let headers = (seen.path.as_str(), self.fetch.request.url.as_str());
                change.differences.push(difference(headers, seen.content.as_deref(), large, bytes));
            }
        }
        if let (Content::File { path, .. }, true) = (&content, self.host.is_check()) {
            let directory = super::file_common::path::parent(path);
            change.steps.insert(0, Step::new(self.fetch.script(Keep::In(directory))));
        }
        let differences = change.differences.clone();
        self.host.change(change).await?;
        let outcome = Outcome { changed: true, ..outcome }.differences(differences);
        let outcome = match backup {
            Some(backup) => outcome.with("backup_file", backup),
            None => outcome,
        };
        Ok(describe(outcome, Some(&after)))
    }
}

/// A word that nobody can guess.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Removes the temporary directory that a fetched file is in.
fn cleanup(path: &str) -> String {
    format!("rm -rf {}", quote(super::file_common::path::parent(path)))
}

fn digest(algorithm: &str, content: &[u8]) -> String {
    use sha2::Digest;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match algorithm {
        "md5" => md5(content),
        "sha1" => sha1(content),
        "sha224" => hex(&sha2::Sha224::digest(content)),
        "sha384" => hex(&sha2::Sha384::digest(content)),
        "sha512" => hex(&sha2::Sha512::digest(content)),
        _ => hex(&sha2::Sha256::digest(content)),
    }
}

#[cfg(test)]
#[path = "get_url_tests.rs"]
mod tests;
