//! What the modules that speak HTTP have in common: their arguments, and the programs of the host that do the work.
//!
//! The host's curl or GNU wget sends the request; on a host with neither the controller does. What is secret reaches
//! them on their standard input, so no list of processes shows it.

pub mod ask;
pub mod curl;
pub mod fetch;
#[cfg(test)]
pub mod server;
pub mod wget;

use std::time::Duration;

use crate::http::{Credentials, Redirects, Request, url};
use crate::value::Value;

use super::{Arg, Args, Type};
use crate::host::{Failure, Footprint};

pub const FORCE_BASIC_AUTH: Arg =
    Arg::new("force_basic_auth", Type::Bool, "send the password at once, not only when the server asks")
        .default("false");
pub const USE_PROXY: Arg = Arg::new("use_proxy", Type::Bool, "use the proxy of the environment").default("true");
pub const VALIDATE_CERTS: Arg =
    Arg::new("validate_certs", Type::Bool, "check the certificate of the server").default("true");
pub const CLIENT_CERT: Arg =
    Arg::new("client_cert", Type::Path, "certificate in PEM on the host to log in with; may hold the key too");
pub const CLIENT_KEY: Arg = Arg::new("client_key", Type::Path, "its key, if that is in a file of its own");
pub const USE_GSSAPI: Arg =
    Arg::new("use_gssapi", Type::Bool, "not supported: log in with a password or a certificate").default("false");
pub const UNREDIRECTED_HEADERS: Arg =
    Arg::new("unredirected_headers", Type::List, "names of headers that are not sent again after a redirect");
pub const CIPHERS: Arg = Arg::new("ciphers", Type::List, "the ciphers of TLS, in OpenSSL's words");
pub const DECOMPRESS: Arg =
    Arg::new("decompress", Type::Bool, "unpack an answer that is packed with gzip for the way").default("true");
pub const USE_NETRC: Arg = Arg::new("use_netrc", Type::Bool, "use passwords of ~/.netrc").default("true");
pub const HEADERS: Arg = Arg::new("headers", Type::Dict, "headers of the request").secret();

/// What the answer to a request depends on: what is behind a URL is altered by nothing that is done to this host, but
/// for servers on the host itself.
pub fn footprint(request: &Request) -> Footprint {
    if url::is_of_this_machine(&request.url) || request.unix_socket.is_some() {
        Footprint::Everything
    } else {
        Footprint::nothing()
    }
}

/// The request that the common arguments describe.
pub fn request(args: &Args, user: &str, password: &str) -> Result<Request, Failure> {
    if args.bool("use_gssapi") {
        return Err(Failure::new(
            "the argument `use_gssapi` is not supported: log in with a password or a certificate",
        ));
    }
    let (address, login) = url::take_credentials(args.text("url").trim());
    if !url::is_url(&address) && !address.starts_with("file:") {
        return Err(Failure::new(format!("`{}` is no URL", args.text("url"))));
    }
    if address.contains(['\n', '\r', '\0']) {
        return Err(Failure::new("a URL has one line"));
    }
    let given = args.str(user).map(|user| (user.to_owned(), args.text(password).to_owned()));
    let credentials =
        given.or(login).map(|(user, password)| Credentials { user, password, at_once: args.bool("force_basic_auth") });
    let mut headers = Vec::new();
    for (name, value) in args.get("headers").and_then(Value::as_map).into_iter().flatten() {
        let (name, value) = (name.to_text().into_owned(), value.to_text().into_owned());
        if name.is_empty() || name.contains(['\n', '\r', ':', ' ']) || value.contains(['\n', '\r', '\0']) {
            return Err(Failure::new(format!("`{name}` is no header that can be sent: a name and one line")));
        }
        headers.push((name, value));
    }
    let agent = args.str("http_agent").unwrap_or("ansible-httpget");
    let path = |name: &str| args.str(name).filter(|path| !path.is_empty()).map(str::to_owned);
    let mut request = Request {
        unredirected: args.list("unredirected_headers"),
        credentials,
        timeout: Duration::from_secs(args.int("timeout").and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(10)),
        redirects: Redirects::Urllib,
        verify: args.optional_bool("validate_certs").unwrap_or(true),
        proxy: args.optional_bool("use_proxy").unwrap_or(true),
        netrc: args.optional_bool("use_netrc").unwrap_or(true),
        ciphers: args.list("ciphers"),
        unix_socket: path("unix_socket"),
        ca_path: path("ca_path"),
        client_cert: path("client_cert"),
        client_key: path("client_key"),
        headers,
        ..Request::get(address)
    };
    if !request.has_header("user-agent") {
        request.headers.push(("User-Agent".to_owned(), agent.to_owned()));
    }
    Ok(request)
}
