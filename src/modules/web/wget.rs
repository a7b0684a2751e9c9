//! Requests in the words of GNU wget, and what it prints.
//!
//! wget takes secrets only on its command line, where all users of the host can see them, or from a file. So it gets
//! those requests alone that have none.

use crate::connect::shell::quote;
use crate::http::{Answer, MOST_REDIRECTS, Request, url};

/// Headers that hold no secret.
const PLAIN_HEADERS: &[&str] = &["user-agent", "if-modified-since", "cache-control", "accept"];

/// The command, to which the shell adds where the body goes; it reads the URL on its standard input. `None` if the
/// request holds what others must not see, or wget cannot send it.
pub fn command(request: &Request) -> Option<String> {
    let is_plain = |name: &str| PLAIN_HEADERS.iter().any(|plain| plain.eq_ignore_ascii_case(name));
    if request.unix_socket.is_some()
        || request.credentials.is_some()
        || request.body.is_some()
        || !request.is_safe()
        || !request.headers.iter().all(|(name, _)| is_plain(name))
    {
        return None;
    }
    let redirects = if request.follows_alike() { MOST_REDIRECTS } else { 0 };
    let mut words = vec![
        "--no-config -q -S --content-on-error --tries=1 --input-file=-".to_owned(),
        format!("--timeout={} --max-redirect={redirects}", request.timeout.as_secs().max(1)),
    ];
    for (name, value) in &request.headers {
        words.push(quote(&format!("--header={name}: {value}")));
    }
    for (option, value) in [
        ("ca-certificate", &request.ca_path),
        ("certificate", &request.client_cert),
        ("private-key", &request.client_key),
    ] {
        words.extend(value.as_ref().map(|value| quote(&format!("--{option}={value}"))));
    }
    if !request.ciphers.is_empty() {
        words.push(quote(&format!("--ciphers={}", request.ciphers.join(":"))));
    }
    for (word, is_set) in [
        ("--spider", request.method == "HEAD"),
        ("--no-check-certificate", !request.verify),
        ("--no-proxy", !request.proxy),
        ("--no-netrc", !request.netrc),
    ] {
        words.extend(is_set.then(|| word.to_owned()));
    }
    Some(format!("printf '%s\\n' {} | wget {}", quote(&request.url), words.join(" ")))
}

/// What wget printed: the heads of all answers on standard error, the body of the last elsewhere.
pub fn parse(request: &Request, stderr: &str, body: Vec<u8>) -> Option<Answer> {
    let mut heads: Vec<String> = Vec::new();
    for line in stderr.lines() {
        let Some(line) = line.strip_prefix("  ") else { continue };
        if line.starts_with("HTTP/") {
            heads.push(line.to_owned());
        } else if let Some(head) = heads.last_mut() {
            head.push('\n');
            head.push_str(line);
        }
    }
    let answers: Vec<Answer> = heads.iter().filter_map(|head| Answer::parse_head(head)).collect();
    let mut address = request.url.clone();
    let (last, earlier) = answers.split_last()?;
    for answer in earlier {
        if let Some(location) = answer.header("location") {
            address = url::join(&address, location);
        }
    }
    Some(Answer { url: address, body, ..last.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_without_secrets_are_for_wget() {
        let plain = Request { verify: false, ..Request::get("http://a") };
        let text = command(&plain).unwrap();
        assert!(
            text.starts_with("printf '%s\\n' http://a | wget ") || text.starts_with("printf '%s\\n' 'http://a' | "),
            "{text}"
        );
        assert!(text.contains(" --no-check-certificate") && text.contains(" --max-redirect=10"), "{text}");
        assert!(command(&Request { method: "HEAD".into(), ..plain.clone() }).unwrap().contains("--spider"));
        let login = crate::http::Credentials { user: "u".into(), password: "p".into(), at_once: true };
        for secret in [
            Request { credentials: Some(login), ..plain.clone() },
            Request { body: Some(Vec::new()), ..plain.clone() },
            Request { headers: vec![("X-Token".into(), "x".into())], ..plain.clone() },
            Request { unix_socket: Some("/x".into()), ..plain },
        ] {
            assert_eq!(command(&secret), None);
        }
    }

    #[test]
    fn the_last_head_counts() {
        let printed = "  HTTP/1.1 301 Moved\n  Location: /c\n  HTTP/1.1 404 Not Found\n  A: b\nERROR 404\n";
        let answer = parse(&Request::get("http://h/b"), printed, b"x".to_vec()).unwrap();
        assert_eq!((answer.status, answer.url.as_str(), answer.header("a")), (404, "http://h/c", Some("b")));
        assert_eq!(parse(&Request::get("http://h/b"), "wget: cannot connect", Vec::new()), None);
    }
}
