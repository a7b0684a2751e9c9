//! The lookup that asks the network, from the controller.

use std::time::Duration;

use super::{Lookup, terms};
use crate::http::client::{self, Pem};
use crate::http::{Credentials, Redirects, Request, url};
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static LOOKUPS: &[Lookup] = &[entry(
    &["url"],
    &[
        "_terms",
        "validate_certs",
        "split_lines",
        "use_proxy",
        "username",
        "password",
        "headers",
        "force",
        "timeout",
        "http_agent",
        "force_basic_auth",
        "follow_redirects",
        "use_gssapi",
        "use_netrc",
        "unix_socket",
        "ca_path",
        "unredirected_headers",
        "ciphers",
    ],
    "the lines behind a URL, or its whole content, fetched by the controller",
    |call| {
        let mut out = Vec::new();
        for term in terms(call)? {
            let body = fetch(call, &text_of(term)?)?;
            match call.flag(2, true)? {
                true => out.extend(body.lines().map(Value::from)),
                false => out.push(body.into()),
            }
        }
        Ok(out)
    },
)];

fn fetch(call: &Call<'_>, term: &str) -> Result<String> {
    let refuse = |message: String| Err(TemplateError::failed(message));
    for (index, name) in [(12, "use_gssapi"), (14, "unix_socket"), (17, "ciphers")] {
        if call.given(index).is_some_and(Value::is_truthy) {
            return refuse(format!("its option `{name}` is not supported"));
        }
    }
    let (address, login) = url::take_credentials(term);
    if !address.starts_with("http://") && !address.starts_with("https://") {
        return refuse(format!("`{}` is no URL that begins with http:// or https://", url::without_password(term)));
    }
    let mut request = Request::get(address);
    request.verify = call.flag(1, true)?;
    request.proxy = call.flag(3, true)?;
    request.timeout = Duration::from_secs(u64::try_from(call.int_or(8, 10)?).unwrap_or(10));
    let given = match (call.given(4), call.given(5)) {
        (Some(user), password) => {
            let password = password.map(text_of).transpose()?.unwrap_or_default();
            Some((text_of(user)?.into_owned(), password.into_owned()))
        }
        (None, _) => login,
    };
    let at_once = call.flag(10, false)?;
    request.credentials = given.map(|(user, password)| Credentials { user, password, at_once });
    if call.given(6).is_some() {
        for (name, value) in call.map(6)?.iter() {
            request.headers.push((name.to_text().into_owned(), value.to_text().into_owned()));
        }
    }
    if call.flag(7, false)? {
        request.headers.push(("Cache-Control".to_owned(), "no-cache".to_owned()));
    }
    request.headers.push(("User-Agent".to_owned(), call.text_or(9, "ansible-httpget")?.into_owned()));
    let word = call.text_or(11, "urllib2")?;
    let Some(redirects) = Redirects::parse(&word) else {
        return refuse(format!("its option `follow_redirects` is one of all, none, safe, urllib2, not `{word}`"));
    };
    request.redirects = redirects;
    if call.given(16).is_some() {
        request.unredirected = call.list(16)?.iter().map(|name| name.to_text().into_owned()).collect();
    }
    let authorities = match call.given(15) {
        None => None,
        Some(path) => {
            let path = text_of(path)?;
            let read = std::fs::read(&*path);
            Some(read.map_err(|error| TemplateError::failed(format!("cannot read {path}: {error}")))?)
        }
    };
    let pem = Pem { authorities, client: None };
    let answer = client::send(&request, &pem).map_err(|error| TemplateError::failed(error.to_string()))?;
    if answer.status != 200 {
        let message = format!("{}: HTTP Error {}: {}", request.shown_url(), answer.status, answer.reason());
        return refuse(message);
    }
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::context;
    use crate::modules::web::server::{Asked, Reply, Server};

    #[test]
    fn lines_or_all_of_a_page_are_given() {
        let server = Server::start(|asked: &Asked| match asked.path.as_str() {
            "/lines" => Reply::ok("a\nb\n"),
            "/moved" => Reply::status("301 Moved Permanently").header("Location", "/lines"),
            "/closed" if asked.headers.get("authorization").is_some_and(|word| word == "Basic dTpw") => Reply::ok("in"),
            "/closed" => Reply::status("401 Unauthorized").header("WWW-Authenticate", "Basic realm=x"),
            _ => Reply::status("404 Not Found"),
        });
        let run = |path: &str, options: &[(&str, Value)]| {
            let options = options.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
            super::super::call(&context(), "url", vec![server.url(path).into()], options).map(Option::unwrap_or_default)
        };
        assert_eq!(run("/lines", &[]).unwrap(), ["a".into(), "b".into()]);
        assert_eq!(run("/moved", &[("split_lines", false.into())]).unwrap(), ["a\nb\n".into()]);
        let login = [("username", "u".into()), ("password", "p".into())];
        assert_eq!(run("/closed", &login).unwrap(), ["in".into()]);
        for (path, options, words) in [
            ("/gone", vec![], "404: Not Found"),
            ("/closed", vec![], "401: Unauthorized"),
            ("/moved", vec![("follow_redirects", "none".into())], "301"),
            ("/lines", vec![("unix_socket", "/x".into())], "`unix_socket` is not supported"),
        ] {
            let message = run(path, &options).unwrap_err().message().to_owned();
            assert!(message.contains(words), "{message}");
        }
        let failure = super::super::call(&context(), "url", vec!["file:///etc/passwd".into()], Vec::new()).unwrap_err();
        assert!(failure.message().contains("is no URL"), "{}", failure.message());
    }
}
