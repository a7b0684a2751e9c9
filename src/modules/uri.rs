//! `ansible.builtin.uri`: a request to a web service, sent from the host.

use std::time::Instant;

use crate::connect::shell::Response;
use crate::host::reads::FileContent;
use crate::host::{Failure, Host};
use crate::http::{Answer, Redirects, Request, url};
use crate::template::Context;
use crate::value::{Map, Value, object};

use super::execution::{environment, kept_by_files};
use super::file_common::content::Content;
use super::file_common::install::{Placement, Source, locate, put};
use super::file_common::path::absolute;
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::uri_body::{Part, form, json_text, multipart};
use super::web::{self, request};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.uri",
    aliases: &[],
    summary: "Sends a request to a web service from the host",
    args: &[
        Arg::new("url", Type::Str, "where it goes: http or https").required(),
        Arg::new("method", Type::Str, "the method, in capitals").default("GET"),
        Arg::new("body", Type::Raw, "what is sent; lists and maps become what `body_format` says").secret(),
        Arg::new("body_format", Type::Str, "how the body is written").default("raw").choices(&[
            "form-urlencoded",
            "json",
            "raw",
            "form-multipart",
        ]),
        Arg::new("src", Type::Path, "a file that is sent as the body"),
        Arg::new("remote_src", Type::Bool, "`src` is on the host").default("false"),
        Arg::new("dest", Type::Path, "a file on the host for the answer"),
        Arg::new("return_content", Type::Bool, "return the answer as `content`").default("false"),
        Arg::new("status_code", Type::List, "the statuses that are a success").default("200"),
        Arg::new("follow_redirects", Type::Str, "redirects that are followed: all, none, safe (GET and HEAD), urllib2")
            .default("safe"),
        Arg::new("creates", Type::Path, "do nothing if this is on the host"),
        Arg::new("removes", Type::Path, "do nothing unless this is on the host"),
        Arg::new("timeout", Type::Int, "seconds to wait for the server").default("30"),
        web::HEADERS,
        Arg::new("http_agent", Type::Str, "the name of the program that servers are told").default("ansible-httpget"),
        Arg::new("url_username", Type::Str, "the user to log in as").aliases(&["user"]),
        Arg::new("url_password", Type::Str, "the password to log in with").aliases(&["password"]).secret(),
        web::FORCE_BASIC_AUTH,
        Arg::new("force", Type::Bool, "ask for an answer that no cache kept").default("false"),
        web::USE_PROXY,
        web::VALIDATE_CERTS,
        Arg::new("ca_path", Type::Path, "certificates in PEM on the host that are trusted in place of the usual"),
        web::CLIENT_CERT,
        web::CLIENT_KEY,
        web::CIPHERS,
        web::DECOMPRESS,
        Arg::new("unix_socket", Type::Path, "the socket of a server on the host"),
        web::UNREDIRECTED_HEADERS,
        web::USE_NETRC,
        web::USE_GSSAPI,
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::MutuallyExclusive(&["body", "src"])],
    free_form: FreeForm::No,
    check_mode: Support::Partial,
    diff: Support::None,
    returns: &[
        ("status", "the status of the server; -1 if there was no answer"),
        ("msg", "what the server said"),
        ("url", "what answered, after all redirects"),
        ("redirected", "whether there was a redirect"),
        ("content", "the answer, if it is asked for"),
        ("json", "the answer as a value, if it is JSON"),
        ("elapsed", "seconds that it took"),
        ("cookies", "the cookies that were set, by name"),
        ("cookies_string", "the same as a header has them"),
        ("path", "the file `dest`"),
        ("content_type", "as every header of the answer: its name in small letters, with underscores"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, context } = invocation;
    let mut request = request(&args, "url_username", "url_password")?;
    request.method = method(args.text("method"))?;
    request.redirects = redirects(args.text("follow_redirects"))?;
    let expected = statuses(&args)?;
    prepare_body(&args, &host, &context, &mut request).await?;
    if args.bool("force") {
        request.headers.push(("Cache-Control".to_owned(), "no-cache".to_owned()));
    }
    if let Some(kept) = kept_by_files(&host, &args, &settings).await? {
        let said = format!("skipped, since '{}' {}", kept.path, kept.state());
        return Ok(Outcome::ok().with("stdout", said.as_str()).with("msg", said.as_str()));
    }
    for name in ["ca_path", "client_cert", "client_key", "unix_socket"] {
        let path = match name {
            "ca_path" => &mut request.ca_path,
            "client_cert" => &mut request.client_cert,
            "client_key" => &mut request.client_key,
            _ => &mut request.unix_socket,
        };
        if let Some(given) = path.take() {
            *path = Some(absolute(&host, &given).await?);
        }
    }
    // what a server answers changes with time
    host.turn().await?;
    let begun = Instant::now();
    let environment = environment(&settings)?;
    let Some(asked) = web::ask::ask(&host, &environment, &request).await? else {
        let message = format!("check mode: {} may alter something, so it was not sent", request.method);
        return Ok(Outcome::skipped(message));
    };
    let elapsed = begun.elapsed().as_secs();
    let mut answer = match asked {
        Ok(answer) => answer,
        Err(why) => {
            let message = format!("Status code was -1 and not {}: Request failed: {why}", shown(&expected));
            return Err(Failure::new(message)
                .with("status", -1)
                .with("url", request.shown_url())
                .with("redirected", false)
                .with("elapsed", elapsed));
        }
    };
    if args.bool("decompress") {
        unpack(&mut answer)?;
    }
    let is_right = expected.contains(&i64::from(answer.status));
    let told = describe(&request, &answer, elapsed, args.bool("return_content"), is_right);
    if !is_right {
        let message = format!("Status code was {} and not {}: {}", answer.status, shown(&expected), reason(&answer));
        let mut failure = Failure::new(message);
        failure.result = told;
        failure.result.shift_remove("msg");
        return Err(failure);
    }
    let outcome = Outcome { result: told, ..Outcome::ok() };
    match args.str("dest").filter(|dest| !dest.is_empty()) {
        Some(_) if answer.status != 304 => save(&host, &args, &answer, outcome).await,
        _ => Ok(outcome),
    }
}

fn method(word: &str) -> Result<String, Failure> {
    let word = word.to_ascii_uppercase();
    match word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        true => Err(Failure::new("Parameter 'method' needs to be a single word in uppercase, like GET or POST.")),
        false => Ok(word),
    }
}

fn redirects(word: &str) -> Result<Redirects, Failure> {
    Redirects::parse(word).ok_or_else(|| {
        let known = "all, no, none, safe, urllib2, yes";
        Failure::new(format!("value of follow_redirects must be one of: {known}, got: {word}"))
    })
}

fn statuses(args: &Args) -> Result<Vec<i64>, Failure> {
    let number = |word: &String| {
        word.trim().parse().map_err(|_| Failure::new(format!("`{word}` in `status_code` is no number of a status")))
    };
    args.list("status_code").iter().map(number).collect()
}

fn shown(statuses: &[i64]) -> String {
    let words: Vec<String> = statuses.iter().map(i64::to_string).collect();
    format!("[{}]", words.join(", "))
}

/// Brings the body into the request, with its type.
async fn prepare_body(args: &Args, host: &Host, context: &Context, request: &mut Request) -> Result<(), Failure> {
    if let Some(src) = args.str("src").filter(|src| !src.is_empty()) {
        request.body = Some(file(host, context, src, args.bool("remote_src")).await?);
        return Ok(());
    }
    let Some(body) = args.get("body") else { return Ok(()) };
    let is_text = matches!(body, Value::Str(_));
    let (content, kind) = match args.text("body_format") {
        "json" => {
            (if is_text { body.to_text().into_owned() } else { json_text(body) }.into_bytes(), "application/json")
        }
        "form-urlencoded" => {
            let text = if is_text { body.to_text().into_owned() } else { form(body)? };
            (text.into_bytes(), "application/x-www-form-urlencoded")
        }
        "form-multipart" => {
            let mut parts = Vec::new();
            for (name, value) in body.as_map().into_iter().flatten() {
                parts.push(part(host, context, &name.to_text(), value, args.bool("remote_src")).await?);
            }
            if parts.is_empty() {
                return Err(Failure::new("failed to parse body as form-multipart: it must be a map of fields"));
            }
            let (boundary, content) = multipart(&parts);
            request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
            let kind = format!("multipart/form-data; boundary=\"{boundary}\"");
            request.headers.push(("Content-Type".to_owned(), kind));
            request.body = Some(content);
            return Ok(());
        }
        _ => {
            let text = if is_text { body.to_text().into_owned() } else { json_text(body) };
            request.body = Some(text.into_bytes());
            return Ok(());
        }
    };
    if !request.has_header("content-type") {
        request.headers.push(("Content-Type".to_owned(), kind.to_owned()));
    }
    request.body = Some(content);
    Ok(())
}

async fn file(host: &Host, context: &Context, src: &str, remote: bool) -> Result<Vec<u8>, Failure> {
    if remote {
        let path = absolute(host, src).await?;
        let content = host.read(FileContent(path.clone())).await?;
        return content.ok_or_else(|| Failure::new(format!("Unable to open source file {path} on the host")));
    }
    let path = super::copy::find_source(context, "files", src)?;
    let source = super::copy::read_source(&path, None)?;
    Ok(source.content.bytes().unwrap_or_default().to_vec())
}

/// A field of a form in parts: a text, or a map with `content`, `filename` and `mime_type`.
async fn part(host: &Host, context: &Context, name: &str, value: &Value, remote: bool) -> Result<Part, Failure> {
    let Some(map) = value.as_map() else {
        return Ok(Part { name: name.to_owned(), content: value.to_text().as_bytes().to_vec(), ..Part::default() });
    };
    let text = |key: &str| map.get(key).filter(|value| !value.is_null()).map(|value| value.to_text().into_owned());
    let known = ["content", "filename", "mime_type", "multipart_encoding"];
    if let Some(other) = map.keys().find(|key| !known.contains(&&*key.to_text())) {
        return Err(Failure::new(format!("the field `{name}` of the body has no key `{}`", other.to_text())));
    }
    if text("multipart_encoding").is_some_and(|encoding| encoding != "7or8bit" && encoding != "base64") {
        return Err(Failure::new("`multipart_encoding` is `base64` or `7or8bit`"));
    }
    let filename = text("filename");
    let content = match (text("content"), &filename) {
        (Some(content), _) => content.into_bytes(),
        (None, Some(filename)) => file(host, context, filename, remote).await?,
        (None, None) => {
            return Err(Failure::new(format!("the field `{name}` of the body needs `content` or `filename`")));
        }
    };
    let base64 = text("multipart_encoding").as_deref() == Some("base64");
    Ok(Part { name: name.to_owned(), content, filename, kind: text("mime_type"), base64 })
}

fn reason(answer: &Answer) -> String {
    match answer.status {
        200..=299 => format!("{} ({} bytes)", answer.reason(), answer.body.len()),
        status => format!("HTTP Error {status}: {}", answer.reason()),
    }
}

/// What is returned of an answer.
fn describe(request: &Request, answer: &Answer, elapsed: u64, return_content: bool, is_right: bool) -> Map {
    let mut told = Map::new();
    for (name, value) in &answer.headers {
        let key = name.replace('-', "_").to_lowercase();
        let value = match key.as_str() {
            "location" => url::join(&request.url, value),
            _ => match told.get(key.as_str()) {
                Some(earlier) => format!("{earlier}, {value}"),
                None => value.clone(),
            },
        };
        told.insert(key.into(), value.into());
    }
    let cookies = cookies(answer);
    let pairs: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    told.extend(object([
        ("cookies", cookies.into()),
        ("cookies_string", pairs.join("; ").into()),
        ("elapsed", elapsed.into()),
        ("msg", reason(answer).into()),
        ("redirected", (answer.url != request.url).into()),
        ("status", i64::from(answer.status).into()),
        ("url", url::without_password(&answer.url).into()),
    ]));
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
    let may_be_json = kind.contains("json") || kind.contains("javascript");
    let text = text(answer);
    if may_be_json && let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) {
        told.insert("json".into(), Value::from_json(&json));
    }
    if return_content || !is_right {
        told.insert("content".into(), text.into());
    }
    told
}

/// The body as text, in the character set that the server says.
fn text(answer: &Answer) -> String {
    let kind = answer.header("content-type").unwrap_or_default().to_ascii_lowercase();
    if kind.contains("charset=iso-8859-1") || kind.contains("charset=latin") {
        return answer.body.iter().copied().map(char::from).collect();
    }
    Response::output(answer.body.clone()).text()
}

fn cookies(answer: &Answer) -> Map {
    let set = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    set.filter_map(|(_, value)| value.split(';').next()?.split_once('='))
        .map(|(name, value)| (Value::from(name.trim()), Value::from(value.trim().trim_matches('"'))))
        .collect()
}

/// An answer that the server packed though nobody asked it to.
fn unpack(answer: &mut Answer) -> Result<(), Failure> {
    use std::io::Read;
    if !answer.header("content-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("gzip")) {
        return Ok(());
    }
    // ureq has unpacked it already
    if !answer.body.starts_with(&[0x1f, 0x8b]) {
        return Ok(());
    }
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(answer.body.as_slice())
        .read_to_end(&mut plain)
        .map_err(|error| Failure::new(format!("{}: the answer is no gzip: {error}", answer.url)))?;
    answer.body = plain;
    Ok(())
}

/// Writes the answer to `dest`.
async fn save(host: &Host, args: &Args, answer: &Answer, outcome: Outcome) -> Result<Outcome, Failure> {
    let mut placement = Placement::read(host, args).await?;
    placement.force = true;
    let name = url::file_name(&answer.url);
    let source = Source {
        content: Content::Bytes(answer.body.clone()),
        name: Some(name.clone()),
        shown: answer.url.clone(),
        mode: 0o600,
    };
    let place = locate(host, args, &placement, Some(&name)).await?;
    let path = place.seen.path.clone();
    let saved = put(host, &placement, place, source).await?;
    let mut outcome = Outcome { changed: saved.changed, ..outcome }.differences(saved.differences).with("path", path);
    for key in ["mode", "owner", "group", "uid", "gid", "size", "state"] {
        if let Some(value) = saved.result.get(key) {
            outcome = outcome.with(key, value.clone());
        }
    }
    Ok(outcome)
}

#[cfg(test)]
#[path = "uri_tests.rs"]
mod tests;
