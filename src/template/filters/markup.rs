//! Filters about HTML and URLs.

use super::Filter;
use crate::template::call::{Call, as_map, entry, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::{Map, Value};

pub static FILTERS: &[Filter] = &[
    entry(&["escape", "e", "forceescape"], &["value"], "with &, <, >, ' and \" written for HTML", |call| {
        Ok(Value::from(escape(&call.text()?)))
    }),
    entry(&["striptags"], &["value"], "without HTML tags", striptags),
    entry(&["xmlattr"], &["value", "autospace"], "a map as attributes of a tag", xmlattr),
    entry(
        &["urlize"],
        &["value", "trim_url_limit", "nofollow", "target", "rel", "extra_schemes"],
        "with web addresses as links",
        urlize,
    ),
    entry(&["urlencode"], &["value"], "encoded for a URL", urlencode),
    entry(&["urldecode"], &["value"], "decoded from a URL", |call| {
        Ok(Value::from(percent_decode(&call.text()?, true)))
    }),
    entry(&["urlsplit"], &["value", "query"], "the parts of a URL, or one of them", urlsplit),
];

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            other => out.push(other),
        }
    }
    out
}

fn striptags(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let mut out = String::new();
    let mut rest = &*text;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        let (end, mark) = if rest[start..].starts_with("<!--") { ("-->", 3) } else { (">", 1) };
        match rest[start..].find(end) {
            Some(place) => rest = &rest[start + place + mark..],
            None => {
                out.push_str(&rest[start..]);
                rest = "";
            }
        }
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    let plain = words.join(" ");
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'"), ("&#34;", "\""), ("&quot;", "\""), ("&amp;", "&")];
    Ok(Value::from(entities.iter().fold(plain, |text, (entity, letter)| text.replace(entity, letter))))
}

fn xmlattr(call: &Call<'_>) -> Result<Value> {
    let mut parts = Vec::new();
    for (key, value) in call.map(0)?.iter() {
        if matches!(value, Value::Null | Value::Undefined(_)) {
            continue;
        }
        let key = text_of(key)?;
        if key.contains(|letter: char| letter.is_whitespace() || "/>=".contains(letter)) {
            return Err(TemplateError::failed(format!("invalid character in attribute name: '{key}'")));
        }
        parts.push(format!("{}=\"{}\"", escape(&key), escape(&text_of(value)?)));
    }
    let text = parts.join(" ");
    Ok(Value::from(if call.flag(1, true)? && !text.is_empty() { format!(" {text}") } else { text }))
}

fn urlize(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let limit = match call.given(1) {
        Some(_) => usize::try_from(call.required_int(1)?).unwrap_or(0),
        None => usize::MAX,
    };
    let mut rel: Vec<String> = vec!["noopener".to_owned()];
    if call.flag(2, false)? {
        rel.push("nofollow".to_owned());
    }
    if let Some(given) = call.given(4) {
        rel.extend(text_of(given)?.split_whitespace().map(str::to_owned));
    }
    rel.sort_unstable();
    rel.dedup();
    let target = match call.given(3) {
        Some(target) => format!(" target=\"{}\"", escape(&text_of(target)?)),
        None => String::new(),
    };
    let mut schemes = Vec::new();
    if let Some(given) = call.given(5) {
        for scheme in iterate(given)? {
            schemes.push(text_of(&scheme)?.into_owned());
        }
    }
    let mut out = String::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_start_matches(['(', '<']);
        let start = part.len() - word.len();
        let word = word.trim_end();
        let core = word.trim_end_matches(['.', ',', ':', ')', '>']);
        let Some((address, is_web)) = link(core, &schemes) else {
            out.push_str(&escape(part));
            continue;
        };
        let mut shown: String = core.chars().take(if is_web { limit } else { usize::MAX }).collect();
        if shown.len() < core.len() {
            shown.push_str("...");
        }
        let shown = escape(&shown);
        let rel = if is_web { format!(" rel=\"{}\"", rel.join(" ")) } else { String::new() };
        let target = if is_web { target.as_str() } else { "" };
        out.push_str(&escape(&part[..start]));
        out.push_str(&format!("<a href=\"{}\"{rel}{target}>{shown}</a>", escape(&address)));
        out.push_str(&escape(&part[start + core.len()..]));
    }
    Ok(Value::from(out))
}

/// Where a word links to, if it is an address, and whether that is one of the web (or of a scheme that was asked for).
fn link(word: &str, schemes: &[String]) -> Option<(String, bool)> {
    if word.starts_with("http://") || word.starts_with("https://") {
        return Some((word.to_owned(), true));
    }
    if word.starts_with("www.") {
        return Some((format!("https://{word}"), true));
    }
    if schemes.iter().any(|scheme| word.starts_with(scheme.as_str()) && word.len() > scheme.len()) {
        return Some((word.to_owned(), true));
    }
    let (name, host) = word.strip_prefix("mailto:").unwrap_or(word).split_once('@')?;
    let of_host = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let is_mail = !name.is_empty()
        && name.chars().all(|letter| of_host(letter) || matches!(letter, '+' | '%'))
        && host.contains('.')
        && host.chars().all(of_host);
    is_mail.then(|| (format!("mailto:{}", word.strip_prefix("mailto:").unwrap_or(word)), false))
}

fn percent_encode(text: &str, safe: &str, plus: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b' ' if plus => out.push('+'),
            byte if byte.is_ascii() && safe.contains(char::from(byte)) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Reads `%41` and, if `plus`, `+` for a blank.
pub fn percent_decode(text: &str, plus: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let code = bytes.get(index + 1..index + 3).and_then(|code| std::str::from_utf8(code).ok());
        match (bytes[index], code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                index += 2;
            }
            (b'+', _) if plus => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        index += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn urlencode(call: &Call<'_>) -> Result<Value> {
    let value = call.value()?;
    let pairs: Vec<(Value, Value)> = match value {
        Value::List(items) => items
            .iter()
            .map(|pair| match <[Value; 2]>::try_from(iterate(pair)?) {
                Ok([key, value]) => Ok((key, value)),
                Err(_) => Err(TemplateError::failed("needs a text, a map or pairs")),
            })
            .collect::<Result<_>>()?,
        other => match as_map(other)? {
            Some(map) => map.into_owned().into_iter().collect(),
            None => return Ok(Value::from(percent_encode(&call.text()?, "/", false))),
        },
    };
    let parts = pairs
        .iter()
        .map(|(key, value)| {
            Ok(format!("{}={}", percent_encode(&text_of(key)?, "", true), percent_encode(&text_of(value)?, "", true)))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Value::from(parts.join("&")))
}

fn urlsplit(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let (rest, fragment) = text.split_once('#').unwrap_or((&text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        _ => (String::new(), rest),
    };
    let (netloc, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (user_part, host_part) = match netloc.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, netloc),
    };
    let (host, port) = match host_part.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => host_part.split_once(':').map_or((host_part, None), |(host, port)| (host, Some(port))),
    };
    let (username, password) = match user_part {
        Some(user) => match user.split_once(':') {
            Some((user, password)) => (Value::from(user), Value::from(password)),
            None => (Value::from(user), Value::Null),
        },
        None => (Value::Null, Value::Null),
    };
    let port = match port.filter(|port| !port.is_empty()) {
        Some(port) => Value::Int(
            port.parse::<u16>()
                .map(i64::from)
                .map_err(|_| TemplateError::failed(format!("the port `{port}` is not a number up to 65535")))?,
        ),
        None => Value::Null,
    };
    let hostname = if host.is_empty() { Value::Null } else { Value::from(host.to_ascii_lowercase()) };
    let parts: Map = crate::value::object([
        ("fragment", fragment.into()),
        ("hostname", hostname),
        ("netloc", netloc.into()),
        ("password", password),
        ("path", path.into()),
        ("port", port),
        ("query", query.into()),
        ("scheme", scheme.into()),
        ("username", username),
    ]);
    match call.given(1) {
        Some(wanted) if !text_of(wanted)?.is_empty() => {
            let wanted = text_of(wanted)?;
            parts
                .get(&*wanted)
                .cloned()
                .ok_or_else(|| TemplateError::failed(format!("unknown URL component: {wanted}")))
        }
        _ => Ok(Value::map(parts)),
    }
}
