//! Requests in the words of curl's configuration (curl(1), `--config`), and what it prints.

use crate::http::{Answer, MOST_REDIRECTS, Request};

/// Where the body of the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To standard output, behind the headers.
    Stdout,
    /// To files that the command line names.
    Files,
}

/// The lines for `--config -`. The body of the request is on file descriptor 3.
pub fn config(request: &Request, output: Output) -> String {
    let mut lines = vec!["silent".to_owned(), "show-error".to_owned(), "globoff".to_owned()];
    let mut set = |name: &str, value: &str| lines.push(format!("{name} = {}", quoted(value)));
    set("url", &request.url);
    let seconds = request.timeout.as_secs().max(1).to_string();
    set("connect-timeout", &seconds);
    // a silence of this length ends it
    set("speed-time", &seconds);
    set("speed-limit", "1");
    for (name, value) in &request.headers {
        // curl sends a header without value only if it ends in a semicolon
        let line = if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") };
        set("header", &line);
    }
    if request.body.is_some() {
        set("data-binary", "@/dev/fd/3");
        if !request.has_header("expect") {
            set("header", "Expect:");
        }
    }
    if request.body.is_none() && matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        // servers want to hear that there is nothing
        set("data-binary", "");
        if !request.has_header("content-type") {
            set("header", "Content-Type:");
        }
    }
    if request.follows_alike() {
        set("max-redirs", &MOST_REDIRECTS.to_string());
    }
    if let Some(login) = &request.credentials {
        set("user", &format!("{}:{}", login.user, login.password));
    }
    for (name, value) in [
        ("unix-socket", &request.unix_socket),
        ("cacert", &request.ca_path),
        ("cert", &request.client_cert),
        ("key", &request.client_key),
    ] {
        if let Some(value) = value {
            set(name, value);
        }
    }
    if !request.ciphers.is_empty() {
        set("ciphers", &request.ciphers.join(":"));
    }
    if !request.proxy {
        set("noproxy", "*");
    }
    match request.method.as_str() {
        // with `request` curl would wait for a body
        "HEAD" => {}
        method => set("request", method),
    }
    match output {
        Output::Stdout => {
            set("dump-header", "-");
            if request.method == "HEAD" {
                set("output", "/dev/null");
            }
            set("write-out", "\u{1e}%{size_download} %{url_effective}");
        }
        Output::Files => set("write-out", "%{url_effective}"),
    }
    let flags = [
        ("head", request.method == "HEAD"),
        ("location", request.follows_alike()),
        ("anyauth", request.credentials.as_ref().is_some_and(|login| !login.at_once)),
        ("netrc-optional", request.netrc && request.credentials.is_none()),
        ("insecure", !request.verify),
    ];
    lines.extend(flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()));
    lines.join("\n") + "\n"
}

fn quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for letter in value.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// What curl printed with [`Output::Stdout`].
pub fn parse(stdout: &[u8]) -> Option<Answer> {
    let mark = stdout.iter().rposition(|byte| *byte == 0x1e)?;
    let trailer = String::from_utf8_lossy(&stdout[mark + 1..]);
    let (size, url) = trailer.trim_end().split_once(' ')?;
    let head_end = mark.checked_sub(size.split('.').next()?.parse::<usize>().ok()?)?;
    let head = String::from_utf8_lossy(&stdout[..head_end]);
    let answer = last_head(&head)?;
    Some(Answer { url: url.to_owned(), body: stdout[head_end..mark].to_vec(), ..answer })
}

/// The last of several heads, apart by empty lines.
pub fn last_head(text: &str) -> Option<Answer> {
    let text = text.replace("\r\n", "\n");
    text.split("\n\n").filter_map(|block| Answer::parse_head(block.trim_start_matches('\n'))).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Credentials;

    #[test]
    fn a_request_is_written_as_curl_reads_it() {
        let plain = config(&Request::get("http://a/b?x={1}"), Output::Files);
        assert!(plain.contains("url = \"http://a/b?x={1}\"\n") && plain.contains("location\n"), "{plain}");
        assert!(plain.contains("netrc-optional") && !plain.contains("insecure"), "{plain}");
        let login = Credentials { user: "u".into(), password: "p\"\\".into(), at_once: false };
        let request = Request {
            method: "PUT".into(),
            body: Some(Vec::new()),
            credentials: Some(login),
            verify: false,
            proxy: false,
            headers: vec![("A".into(), "b\tc".into()), ("Empty".into(), String::new())],
            ..Request::get("https://a")
        };
        let text = config(&request, Output::Stdout);
        for line in [
            "user = \"u:p\\\"\\\\\"",
            "request = \"PUT\"",
            "data-binary = \"@/dev/fd/3\"",
            "header = \"A: b\\tc\"",
            "header = \"Empty;\"",
            "noproxy = \"*\"",
            "anyauth",
            "insecure",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in\n{text}");
        }
        assert!(!text.contains("location"));
    }

    #[test]
    fn the_answer_is_found_behind_its_heads() {
        let printed = b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nHTTP/1.1 is\x1eit\x1e14 http://h/x";
        let answer = parse(printed).unwrap();
        assert_eq!((answer.status, answer.url.as_str()), (200, "http://h/x"));
        assert_eq!(answer.body, b"HTTP/1.1 is\x1eit");
        assert_eq!(parse(b"junk"), None);
    }
}
