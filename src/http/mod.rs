//! HTTP: a request, its answer, and what follows from a redirect. Who sends it, the controller ([`client`]) or a
//! program of a host, is for others to choose.

pub mod client;
pub mod url;

use std::time::Duration;

/// How many redirects are followed.
pub const MOST_REDIRECTS: usize = 10;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Names of headers that are not sent again after a redirect.
    pub unredirected: Vec<String>,
    pub body: Option<Vec<u8>>,
    pub credentials: Option<Credentials>,
    /// For the connection, and for every silence after it.
    pub timeout: Duration,
    pub redirects: Redirects,
    /// Check the certificate of the server.
    pub verify: bool,
    /// Use the proxy of the environment.
    pub proxy: bool,
    /// Use passwords of `~/.netrc`.
    pub netrc: bool,
    /// OpenSSL's names of ciphers; empty: any.
    pub ciphers: Vec<String>,
    pub unix_socket: Option<String>,
    /// Files in PEM, where the request is sent from.
    pub ca_path: Option<String>,
    pub client_cert: Option<String>,
    pub client_key: Option<String>,
}

/// A user's name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
    /// Sent at once as `Basic`, not only when the server asks.
    pub at_once: bool,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Which redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// All, with the method that browsers would use.
    All,
    /// Those of GET and HEAD.
    Safe,
    /// As Python's urllib: those of GET and HEAD, and of POST but for 307 and 308.
    Urllib,
    None,
}

impl Redirects {
    /// From Ansible's word.
    pub fn parse(word: &str) -> Option<Redirects> {
        Some(match word {
            "all" | "yes" | "True" | "true" => Redirects::All,
            "safe" => Redirects::Safe,
            "urllib2" => Redirects::Urllib,
            "none" | "no" | "False" | "false" => Redirects::None,
            _ => return None,
        })
    }
}

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    pub status: u16,
    /// The words behind the status, if the server said any.
    pub reason: String,
    /// The URL that answered, after all redirects.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Reads the head of an answer: its status line and headers.
    pub fn parse_head(head: &str) -> Option<Answer> {
        let mut lines = head.lines().map(|line| line.trim_end_matches('\r'));
        let mut words = lines.next()?.trim_start().splitn(3, ' ');
        words.next().filter(|version| version.starts_with("HTTP/"))?;
        let status = words.next()?.parse().ok()?;
        let reason = words.next().unwrap_or_default().to_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        for line in lines {
            if let Some((name, value)) = line.trim_start().split_once(':') {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Some(Answer { status, reason, headers, ..Answer::default() })
    }

    /// The words of the status, from the server or the standard (RFC 9110).
    pub fn reason(&self) -> &str {
        if !self.reason.is_empty() {
            return &self.reason;
        }
        match self.status {
            200 => "OK",
            201 => "Created",
            202 => "Accepted",
            204 => "No Content",
            206 => "Partial Content",
            304 => "Not Modified",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            409 => "Conflict",
            500 => "Internal Server Error",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            _ => "",
        }
    }
}

impl Request {
    /// A GET of this URL with the usual settings.
    pub fn get(url: impl Into<String>) -> Request {
        Request {
            method: "GET".to_owned(),
            url: url.into(),
            headers: Vec::new(),
            unredirected: Vec::new(),
            body: None,
            credentials: None,
            timeout: Duration::from_secs(10),
            redirects: Redirects::Urllib,
            verify: true,
            proxy: true,
            netrc: true,
            ciphers: Vec::new(),
            unix_socket: None,
            ca_path: None,
            client_cert: None,
            client_key: None,
        }
    }

    /// True if the method alters nothing on the server.
    pub fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }

    /// True if every redirect may be followed with the very same request, so that a program can do it by itself.
    pub fn follows_alike(&self) -> bool {
        self.is_safe() && self.body.is_none() && self.unredirected.is_empty() && self.redirects != Redirects::None
    }

    /// The URL without a password in it.
    pub fn shown_url(&self) -> String {
        url::without_password(&self.url)
    }

    /// The request that follows from a redirect; `None` if it is none, or is not to be followed.
    pub fn redirected(&self, answer: &Answer) -> Option<Request> {
        let location = answer.header("location").filter(|_| matches!(answer.status, 301..=303 | 307 | 308))?;
        let allowed = match self.redirects {
            Redirects::All => true,
            Redirects::Safe => self.is_safe(),
            Redirects::Urllib => self.is_safe() || (self.method == "POST" && answer.status < 307),
            Redirects::None => false,
        };
        if !allowed {
            return None;
        }
        let mut next = Request { url: url::join(&self.url, location), ..self.clone() };
        next.headers.retain(|(name, _)| !self.unredirected.iter().any(|own| own.eq_ignore_ascii_case(name)));
        if url::authority(&next.url) != url::authority(&self.url) {
            // a password is for the server that it was given for
            next.credentials = None;
            next.headers.retain(|(name, _)| {
                !["authorization", "cookie"].iter().any(|secret| name.eq_ignore_ascii_case(secret))
            });
        }
        if answer.status < 307 {
            next.body = None;
            next.headers.retain(|(name, _)| {
                !["content-length", "content-type", "transfer-encoding"]
                    .iter()
                    .any(|own| name.eq_ignore_ascii_case(own))
            });
            let becomes_get = match answer.status {
                301 => self.method == "POST",
                _ => self.method != "HEAD",
            };
            if becomes_get {
                next.method = "GET".to_owned();
            }
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirect(status: u16, to: &str) -> Answer {
        Answer { status, headers: vec![("Location".into(), to.into())], ..Answer::default() }
    }

    #[test]
    fn redirects_change_the_method_as_browsers_do() {
        let cases = [
            ("GET", 301, Redirects::Urllib, Some("GET")),
            ("HEAD", 303, Redirects::Safe, Some("HEAD")),
            ("POST", 301, Redirects::Urllib, Some("GET")),
            ("POST", 307, Redirects::Urllib, None),
            ("POST", 307, Redirects::All, Some("POST")),
            ("POST", 302, Redirects::Safe, None),
            ("PUT", 301, Redirects::All, Some("PUT")),
            ("PUT", 303, Redirects::All, Some("GET")),
            ("GET", 302, Redirects::None, None),
            ("GET", 200, Redirects::All, None),
        ];
        for (method, status, redirects, expected) in cases {
            let request = Request {
                method: method.to_owned(),
                redirects,
                body: Some(b"x".to_vec()),
                ..Request::get("http://a/b")
            };
            let next = request.redirected(&redirect(status, "/c"));
            assert_eq!(next.as_ref().map(|next| next.method.as_str()), expected, "{method} {status} {redirects:?}");
            if let Some(next) = next {
                assert_eq!((next.url.as_str(), next.body.is_some()), ("http://a/c", status >= 307));
            }
        }
    }

    #[test]
    fn passwords_stay_with_their_server() {
        let credentials = Credentials { user: "u".into(), password: "p".into(), at_once: true };
        let request = Request {
            credentials: Some(credentials),
            headers: vec![
                ("Authorization".into(), "x".into()),
                ("X-Once".into(), "1".into()),
                ("A".into(), "1".into()),
            ],
            unredirected: vec!["x-once".into()],
            ..Request::get("https://a/b")
        };
        let same = request.redirected(&redirect(302, "https://a/c")).unwrap();
        assert!(same.credentials.is_some() && same.headers.len() == 2);
        let other = request.redirected(&redirect(302, "https://evil/c")).unwrap();
        assert!(other.credentials.is_none() && other.headers == [("A".to_owned(), "1".to_owned())]);
        assert!(!format!("{request:?}").contains("\"p\""));
    }

    #[test]
    fn the_head_of_an_answer_is_read() {
        let answer = Answer::parse_head("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nX: a:b\r\n").unwrap();
        assert_eq!((answer.status, answer.reason()), (404, "Not Found"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
        assert_eq!(answer.header("x"), Some("a:b"));
        assert_eq!(Answer::parse_head("  HTTP/2 200 \n").unwrap().reason(), "OK");
        assert_eq!(Answer::parse_head("nonsense"), None);
    }
}
