//! The text around what is encrypted: `$ANSIBLE_VAULT;1.1;AES256`, or `1.2` with a vault id, then lines of 80 hexadecimal digits.

use crate::error::{Error, Result};

/// The vault id of what has none.
pub const DEFAULT_ID: &str = "default";

const MARK: &[u8] = b"$ANSIBLE_VAULT;";
const CIPHER: &str = "AES256";
const WIDTH: usize = 80;

/// True if a file or value begins as an envelope does.
pub fn is_encrypted(content: &[u8]) -> bool {
    content.starts_with(MARK)
}

/// An envelope, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The vault id that it was encrypted for.
    pub id: String,
    pub sealed: Sealed,
}

/// What is within an envelope.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    pub salt: Vec<u8>,
    /// HMAC-SHA256 of the ciphertext.
    pub hmac: Vec<u8>,
    pub ciphertext: Vec<u8>,
}

/// Reads an envelope. Lines may end in CRLF and have blanks around them.
pub(super) fn parse(text: &[u8]) -> Result<Envelope> {
    if !is_encrypted(text) {
        return Err(Error::input("this is not encrypted with Ansible Vault"));
    }
    let mut lines = text.split(|byte| matches!(byte, b'\n' | b'\r'));
    let header = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut fields = header.split(';').skip(1).map(str::trim);
    let (version, cipher) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    if !matches!(version, "1.1" | "1.2") {
        return Err(Error::input(format!("the vault format `{version}` is not known")).hint(
            "known are 1.1 and 1.2; older files can be brought to them by `ansible-vault rekey` of Ansible 2.3",
        ));
    }
    if cipher != CIPHER {
        return Err(Error::input(format!("the vault cipher `{cipher}` is not known, only {CIPHER}")));
    }
    let id = fields.next().filter(|id| !id.is_empty()).unwrap_or(DEFAULT_ID).to_owned();
    let digits: Vec<u8> = lines.flatten().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let broken = || Error::input("the vault envelope is broken: it is cut short, or its text was changed");
    let body = from_hex(&digits).ok_or_else(broken)?;
    let mut parts = body.splitn(3, |byte| *byte == b'\n').map(from_hex);
    let mut part = || parts.next().flatten().filter(|part| !part.is_empty()).ok_or_else(broken);
    let sealed = Sealed { salt: part()?, hmac: part()?, ciphertext: part()? };
    Ok(Envelope { id, sealed })
}

/// Writes an envelope; the last line has a line end.
pub(super) fn format(envelope: &Envelope) -> String {
    let Sealed { salt, hmac, ciphertext } = &envelope.sealed;
    let body = to_hex([to_hex(salt), to_hex(hmac), to_hex(ciphertext)].join("\n").as_bytes());
    let mut text = match envelope.id.as_str() {
        "" | DEFAULT_ID => format!("$ANSIBLE_VAULT;1.1;{CIPHER}\n"),
        id => format!("$ANSIBLE_VAULT;1.2;{CIPHER};{id}\n"),
    };
    for line in body.as_bytes().chunks(WIDTH) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(id: &str) -> Envelope {
        let sealed = Sealed { salt: vec![7; 32], hmac: vec![0xab; 32], ciphertext: vec![1; 16] };
        Envelope { id: id.to_owned(), sealed }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for (id, header) in [("default", "$ANSIBLE_VAULT;1.1;AES256\n"), ("größe", "$ANSIBLE_VAULT;1.2;AES256;größe\n")]
        {
            let text = format(&envelope(id));
            assert!(text.starts_with(header), "{text}");
            assert!(text.ends_with('\n') && text.lines().skip(1).all(|line| line.len() <= 80), "{text}");
            assert_eq!(parse(text.as_bytes()).unwrap(), envelope(id));
            let other_ends = text.replace('\n', " \r\n  ");
            assert_eq!(parse(other_ends.as_bytes()).unwrap(), envelope(id));
        }
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        let good = format(&envelope("default"));
        let lines: Vec<&str> = good.lines().collect();
        for (text, message) in [
            ("password: x\n".to_owned(), "not encrypted"),
            ("$ANSIBLE_VAULT;1.0;AES\n6162\n".to_owned(), "format `1.0` is not known"),
            ("$ANSIBLE_VAULT;1.1;AES\n6162\n".to_owned(), "cipher `AES` is not known"),
            ("$ANSIBLE_VAULT;".to_owned(), "format `` is not known"),
            (lines[..1].join("\n"), "broken"),
            (lines[..2].join("\n"), "broken"),
            (good.trim_end()[..good.len() - 4].to_owned(), "broken"),
            (good.replace(lines[1], "not hexadecimal"), "broken"),
        ] {
            let error = parse(text.as_bytes()).expect_err(&text);
            assert!(error.message().contains(message), "{text}: {error}");
        }
    }
}
