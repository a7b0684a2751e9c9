//! The parts of URLs that are needed here (RFC 3986).

/// `scheme` and the rest behind `://`.
fn split(url: &str) -> Option<(&str, &str)> {
    url.split_once("://").filter(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// True if it begins with a scheme: `https://`, `ftp://`, `file://`.
pub fn is_url(text: &str) -> bool {
    split(text).is_some()
}

/// Scheme, and user, host and port: what a password belongs to.
pub fn authority(url: &str) -> String {
    let Some((scheme, rest)) = split(url) else { return String::new() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    format!("{}://{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

/// The host's name without its port and brackets.
pub fn host(url: &str) -> String {
    let authority = authority(url);
    let host = authority.split_once("://").map_or("", |(_, host)| host);
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default().to_owned(),
        None => host.split(':').next().unwrap_or_default().to_owned(),
    }
}

/// True if the URL means the machine that it is used on.
pub fn is_of_this_machine(url: &str) -> bool {
    let host = host(url);
    url.starts_with("file:") || host == "localhost" || host == "::1" || host.starts_with("127.") || host == "0.0.0.0"
}

/// The user's name and password in a URL, percent signs resolved, and the URL without them.
pub fn take_credentials(url: &str) -> (String, Option<(String, String)>) {
    let Some((scheme, rest)) = split(url) else { return (url.to_owned(), None) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((login, host)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let bare = format!("{scheme}://{host}{}", &rest[end..]);
            (bare, Some((decode(user), decode(password))))
        }
        None => (url.to_owned(), None),
    }
}

/// The URL with `***` in place of a password.
pub fn without_password(url: &str) -> String {
    let (bare, login) = take_credentials(url);
    match (login, split(&bare)) {
        (Some((user, password)), Some((scheme, rest))) if !password.is_empty() => {
            format!("{scheme}://{user}:***@{rest}")
        }
        _ => url.to_owned(),
    }
}

/// What `%41` and the like stand for.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match escaped.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A text as a part of a form or query: letters, digits and `_.-~` stay, blanks become `+`.
pub fn encode_plus(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"_.-~".contains(&byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The URL that `location` means on a page at `base`.
pub fn join(base: &str, location: &str) -> String {
    let location = location.split('#').next().unwrap_or_default();
    if is_url(location) {
        return location.to_owned();
    }
    let Some((scheme, rest)) = split(base) else { return location.to_owned() };
    if let Some(other) = location.strip_prefix("//") {
        return format!("{scheme}://{other}");
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let host_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    let path = path.split('?').next().unwrap_or_default();
    let joined = if location.is_empty() {
        return base.to_owned();
    } else if location.starts_with('/') {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{}{location}", if path.is_empty() { "/" } else { path })
    } else {
        let directory = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{directory}{location}")
    };
    let (path, query) = joined.split_once('?').map_or((joined.as_str(), None), |(path, query)| (path, Some(query)));
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}://{host}{}{query}", without_dots(path))
}

/// The path without `.` and `..` (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        match *part {
            "." if last => out.push(""),
            "." => {}
            ".." => {
                out.pop();
                if last {
                    out.push("");
                }
            }
            part => out.push(part),
        }
    }
    format!("/{}", out.join("/"))
}

/// The last part of the path: the name of a file that is fetched; `index.html` if there is none.
pub fn file_name(url: &str) -> String {
    let rest = split(url).map_or(url, |(_, rest)| rest);
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let name = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    if name.is_empty() { "index.html".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved() {
        let cases = [
            ("http://a/b/c?q", "d", "http://a/b/d"),
            ("http://a/b/c", "../d", "http://a/d"),
            ("http://a/b/c", "/d/./e?x=1", "http://a/d/e?x=1"),
            ("http://a", "d", "http://a/d"),
            ("http://a/b", "?x", "http://a/b?x"),
            ("https://a/b", "//c/d", "https://c/d"),
            ("http://a/b", "https://c/d#e", "https://c/d"),
            ("http://a/b", "", "http://a/b"),
            ("http://u:p@a:81/b", "/c", "http://u:p@a:81/c"),
        ];
        for (base, location, expected) in cases {
            assert_eq!(join(base, location), expected, "{base} {location}");
        }
    }

    #[test]
    fn parts_are_found() {
        assert_eq!(file_name("https://a/b/c.tar.gz?x=/y"), "c.tar.gz");
        assert_eq!((file_name("https://a/"), file_name("https://a")), ("index.html".into(), "index.html".into()));
        assert_eq!(authority("HTTPS://u:p@Host:8443/x"), "https://host:8443");
        assert_eq!((host("http://[::1]:80/"), host("http://a.b:1")), ("::1".to_owned(), "a.b".to_owned()));
        assert!(is_of_this_machine("http://127.0.0.1:9200/") && is_of_this_machine("file:///a"));
        assert!(!is_of_this_machine("http://example.org/127.0.0.1"));
        let (bare, login) = take_credentials("ftp://me:p%40ss@h/x@y");
        assert_eq!((bare.as_str(), login.unwrap().1.as_str()), ("ftp://h/x@y", "p@ss"));
        assert_eq!(without_password("http://u:secret@h/x"), "http://u:***@h/x");
        assert_eq!(encode_plus("a b&ü"), "a+b%26%C3%BC");
        assert!(!is_url("/a://b") && !is_url("a.txt") && is_url("s3+x://b"));
    }
}
