//! Filters about encodings and identifiers.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use sha1::Digest;

use super::Filter;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::Value;

pub static FILTERS: &[Filter] = &[
    entry(&["b64encode"], &["value", "encoding", "urlsafe"], "in base64", b64encode),
    entry(&["b64decode"], &["value", "encoding", "urlsafe"], "out of base64", b64decode),
    entry(&["to_uuid"], &["value", "namespace"], "a UUID (version 5) of the text", to_uuid),
];

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Utf8,
    Utf16,
    Utf16Little,
    Utf16Big,
    Latin1,
    Ascii,
}

fn encoding(name: &str) -> Result<Encoding> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    Ok(match name.as_str() {
        "utf-8" | "utf8" => Encoding::Utf8,
        "utf-16" | "utf16" => Encoding::Utf16,
        "utf-16-le" | "utf-16le" => Encoding::Utf16Little,
        "utf-16-be" | "utf-16be" => Encoding::Utf16Big,
        "latin-1" | "latin1" | "iso-8859-1" => Encoding::Latin1,
        "ascii" | "us-ascii" => Encoding::Ascii,
        other => return Err(TemplateError::failed(format!("unknown encoding: {other}"))),
    })
}

fn b64encode(call: &Call<'_>) -> Result<Value> {
    let text = call.text()?;
    let bytes: Vec<u8> = match encoding(&call.text_or(1, "utf-8")?)? {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Utf16 => [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect(),
        Encoding::Utf16Little => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf16Big => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        narrow => {
            let limit = if narrow == Encoding::Ascii { 0x80 } else { 0x100 };
            text.chars()
                .map(|letter| u8::try_from(u32::from(letter)).ok().filter(|byte| u32::from(*byte) < limit))
                .collect::<Option<_>>()
                .ok_or_else(|| TemplateError::failed("the text has characters that the encoding does not know"))?
        }
    };
    let engine = if call.flag(2, false)? { &URL_SAFE } else { &STANDARD };
    Ok(Value::from(engine.encode(bytes)))
}

fn b64decode(call: &Call<'_>) -> Result<Value> {
    let url_safe = call.flag(2, false)?;
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    // as Python, which leaves out what is no digit of base64
    let known = |letter: &char| match letter {
        '+' | '/' => !url_safe,
        '-' | '_' => url_safe,
        '=' => true,
        other => other.is_ascii_alphanumeric(),
    };
    let text: String = call.text()?.chars().filter(known).collect();
    let bytes =
        engine.decode(&text).map_err(|error| TemplateError::failed(format!("the text is not base64: {error}")))?;
    decode(bytes, &call.text_or(1, "utf-8")?).map(Value::from)
}

/// The text that bytes of an encoding are.
pub fn decode(bytes: Vec<u8>, name: &str) -> Result<String> {
    let wide = |read: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
        String::from_utf16(&units).ok()
    };
    let decoded = match encoding(name)? {
        Encoding::Utf8 => String::from_utf8(bytes).ok(),
        Encoding::Utf16 => match bytes.as_slice() {
            [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
            [0xff, 0xfe, rest @ ..] | rest => wide(u16::from_le_bytes, rest),
        },
        Encoding::Utf16Little => wide(u16::from_le_bytes, &bytes),
        Encoding::Utf16Big => wide(u16::from_be_bytes, &bytes),
        Encoding::Latin1 => Some(bytes.iter().map(|byte| char::from(*byte)).collect()),
        Encoding::Ascii => String::from_utf8(bytes).ok().filter(|text| text.is_ascii()),
    };
    decoded.ok_or_else(|| TemplateError::failed(format!("the decoded bytes are no text of the encoding `{name}`")))
}

/// The namespace that Ansible uses: 361E6D51-FAEC-444A-9079-341386DA8E2E.
const NAMESPACE: [u8; 16] =
    [0x36, 0x1e, 0x6d, 0x51, 0xfa, 0xec, 0x44, 0x4a, 0x90, 0x79, 0x34, 0x13, 0x86, 0xda, 0x8e, 0x2e];

fn to_uuid(call: &Call<'_>) -> Result<Value> {
    let namespace = match call.given(1) {
        Some(namespace) => parse_uuid(&text_of(namespace)?)
            .ok_or_else(|| TemplateError::failed(format!("Invalid value '{}' for 'namespace'", namespace.to_text())))?,
        None => NAMESPACE,
    };
    let mut hash = sha1::Sha1::new();
    hash.update(namespace);
    hash.update(call.text()?.as_bytes());
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x50;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::from(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])))
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let hex: String = text.trim_matches(['{', '}']).chars().filter(|letter| *letter != '-').collect();
    if hex.len() != 32 || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(index * 2..index * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}
