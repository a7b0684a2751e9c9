//! Bodies of requests: JSON, forms, forms in parts (RFC 7578).

use base64::Engine;

use crate::host::Failure;
use crate::http::url::encode_plus;
use crate::value::Value;

/// One field of a form in parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    pub name: String,
    pub content: Vec<u8>,
    pub filename: Option<String>,
    /// Its media type; guessed from the file's name if not given.
    pub kind: Option<String>,
    pub base64: bool,
}

/// A value as JSON.
pub fn json_text(value: &Value) -> String {
    value.to_json().to_string()
}

/// `a=1&b=2&b=3` of a map, or of a list of pairs.
pub fn form(value: &Value) -> Result<String, Failure> {
    let wrong = || {
        Failure::new("failed to parse body as form_urlencoded: it must be a map, or a list of pairs of name and value")
    };
    let mut words = Vec::new();
    let mut add = |name: &Value, value: &Value| {
        let values = match value {
            Value::List(items) => items.to_vec(),
            one => vec![one.clone()],
        };
        for value in values {
            words.push(format!("{}={}", encode_plus(&name.to_text()), encode_plus(&value.to_text())));
        }
    };
    match value {
        Value::List(pairs) => {
            for pair in pairs.iter() {
                match pair.as_list() {
                    Some([name, value]) => add(name, value),
                    _ => return Err(wrong()),
                }
            }
        }
        other => {
            for (name, value) in other.as_map().ok_or_else(wrong)? {
                add(name, value);
            }
        }
    }
    Ok(words.join("&"))
}

/// The boundary and the body.
pub fn multipart(parts: &[Part]) -> (String, Vec<u8>) {
    let mut boundary = "=====trimtab=====".to_owned();
    let holds = |boundary: &str| {
        parts.iter().any(|part| part.content.windows(boundary.len()).any(|window| window == boundary.as_bytes()))
    };
    while holds(&boundary) {
        boundary.push('=');
    }
    let mut body = Vec::new();
    for part in parts {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], " ");
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&part.name));
        if let Some(filename) = &part.filename {
            let base = filename.rsplit('/').next().unwrap_or_default();
            head.push_str(&format!("; filename=\"{}\"", quoted(base)));
        }
        let guessed = part.filename.as_deref().map(media_type);
        let kind = part.kind.as_deref().or(guessed).unwrap_or("text/plain");
        head.push_str(&format!("\r\nContent-Type: {kind}\r\n"));
        if part.base64 {
            head.push_str("Content-Transfer-Encoding: base64\r\n");
        }
        body.extend(head.as_bytes());
        body.extend(b"\r\n");
        if part.base64 {
            body.extend(base64::engine::general_purpose::STANDARD.encode(&part.content).as_bytes());
        } else {
            body.extend(&part.content);
        }
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    (boundary, body)
}

/// The usual media type of a file's name (IANA's registry).
fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "txt" | "log" | "conf" => "text/plain",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "gz" => "application/gzip",
        "tar" => "application/x-tar",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn forms_are_encoded() {
        let map = object([("a b", "1&2".into()), ("l", Value::list(vec!["x".into(), 3.into()]))]);
        assert_eq!(form(&map.into()).unwrap(), "a+b=1%262&l=x&l=3");
        let pairs = Value::list(vec![Value::list(vec!["a".into(), "1".into()])]);
        assert_eq!(form(&pairs).unwrap(), "a=1");
        assert!(form(&Value::list(vec!["a".into()])).is_err() && form(&3.into()).is_err());
    }

    #[test]
    fn parts_have_heads() {
        let file = Part {
            name: "f".into(),
            content: b"=====trimtab=====".to_vec(),
            filename: Some("/d/a.json".into()),
            ..Part::default()
        };
        let text = Part { name: "t\"".into(), content: b"x".to_vec(), base64: true, ..Part::default() };
        let (boundary, body) = multipart(&[file, text]);
        assert_eq!(boundary, "=====trimtab======");
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("name=\"f\"; filename=\"a.json\"\r\nContent-Type: application/json\r\n\r\n=="), "{body}");
        assert!(body.contains("name=\"t\\\"\"") && body.contains("base64\r\n\r\neA==\r\n"), "{body}");
        assert!(body.ends_with("--=====trimtab======--\r\n"));
    }
}
