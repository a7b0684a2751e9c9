//! The names of OpenPGP public keys (RFC 4880, RFC 9580), without any tool of the host.

use base64::Engine;
use sha1::Digest;

/// A public key or subkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Sixteen hexadecimal digits, upper case.
    pub id: String,
    /// Upper case.
    pub fingerprint: String,
    pub is_subkey: bool,
}

const BEGIN: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &str = "-----END PGP PUBLIC KEY BLOCK-----";

/// The keys in a file, armored or binary; empty if there are none.
pub fn keys(content: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(content);
    if !text.contains(BEGIN) {
        return packets(content);
    }
    text.split(BEGIN)
        .skip(1)
        .filter_map(|block| block.split_once(END))
        .filter_map(|(armor, _)| decode(armor))
        .flat_map(|bytes| packets(&bytes))
        .collect()
}

/// The bytes of a file, out of their armor if there is one.
pub fn binary(content: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(content);
    if !text.contains(BEGIN) {
        return (!packets(content).is_empty()).then(|| content.to_vec());
    }
    let mut bytes = Vec::new();
    for block in text.split(BEGIN).skip(1) {
        bytes.extend(decode(block.split_once(END)?.0)?);
    }
    Some(bytes)
}

/// The keyring, out of its armor, without the key that has `id` at the end of its fingerprint or of a subkey's.
pub fn without(content: &[u8], id: &str) -> Vec<u8> {
    let bytes = binary(content).unwrap_or_default();
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut rest = bytes.as_slice();
    let mut start = rest;
    while let Some((tag, _, next)) = packet(rest) {
        if tag == PUBLIC_KEY && rest.len() != start.len() {
            blocks.push(&start[..start.len() - rest.len()]);
            start = rest;
        }
        rest = next;
    }
    blocks.push(&start[..start.len() - rest.len()]);
    blocks.retain(|block| !packets(block).iter().any(|key| key.fingerprint.ends_with(id)));
    blocks.concat()
}

/// Headers end at an empty line; a line with `=` in front is a checksum.
fn decode(armor: &str) -> Option<Vec<u8>> {
    let mut lines = armor.lines().map(str::trim).skip_while(|line| line.is_empty());
    let mut body = String::new();
    let mut in_headers = true;
    for line in &mut lines {
        if in_headers && line.contains(": ") {
            continue;
        }
        in_headers = false;
        if line.starts_with('=') {
            break;
        }
        body.push_str(line);
    }
    base64::engine::general_purpose::STANDARD.decode(body).ok()
}

const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;

fn packets(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((tag, body, rest)) = packet(bytes) {
        if matches!(tag, PUBLIC_KEY | PUBLIC_SUBKEY) {
            keys.extend(key(body, tag == PUBLIC_SUBKEY));
        }
        bytes = rest;
    }
    keys
}

/// Type, body, and what follows.
fn packet(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&head, rest) = bytes.split_first()?;
    if head & 0x80 == 0 {
        return None;
    }
    let big_endian = |bytes: &[u8]| bytes.iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte));
    let (tag, length, rest) = if head & 0x40 == 0 {
        let size = match head & 3 {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => return None,
        };
        (head >> 2 & 15, big_endian(rest.get(..size)?), &rest[size..])
    } else {
        let first = usize::from(*rest.first()?);
        match first {
            0..192 => (head & 63, first, &rest[1..]),
            192..224 => (head & 63, ((first - 192) << 8) + usize::from(*rest.get(1)?) + 192, &rest[2..]),
            255 => (head & 63, big_endian(rest.get(1..5)?), &rest[5..]),
            _ => return None,
        }
    };
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

fn key(body: &[u8], is_subkey: bool) -> Option<Key> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    match body.first()? {
        4 => {
            let length = u16::try_from(body.len()).ok()?.to_be_bytes();
            let digest = sha1::Sha1::new().chain_update([0x99]).chain_update(length).chain_update(body).finalize();
            Some(Key { id: hex(&digest[12..]), fingerprint: hex(&digest), is_subkey })
        }
        6 => {
            let length = u32::try_from(body.len()).ok()?.to_be_bytes();
            let digest = sha2::Sha256::new().chain_update([0x9b]).chain_update(length).chain_update(body).finalize();
            Some(Key { id: hex(&digest[..8]), fingerprint: hex(&digest), is_subkey })
        }
        _ => None,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A key of the version 4 that nobody holds: its numbers mean nothing.
    pub fn sample() -> (Vec<u8>, String) {
        let mut body = vec![4, 0x5f, 0, 0, 0, 1];
        for number in [&[0xc5u8; 128][..], &[1, 0, 1]] {
            let bits = u16::try_from(number.len() * 8 - number[0].leading_zeros() as usize).unwrap();
            body.extend(bits.to_be_bytes());
            body.extend(number);
        }
        let user = b"a test <test@example.org>";
        let mut bytes = vec![0x80 | 6 << 2 | 1];
        bytes.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        bytes.extend(&body);
        bytes.push(0xc0 | 13);
        bytes.push(u8::try_from(user.len()).unwrap());
        bytes.extend(user);
        let base64 = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let lines: Vec<String> =
            base64.as_bytes().chunks(64).map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
        (bytes, format!("words in front\n{BEGIN}\nVersion: a test\n\n{}\n=AAAA\n{END}\n", lines.join("\n")))
    }

    #[test]
    fn a_key_is_named_by_its_digest() {
        let (bytes, armored) = sample();
        let found = keys(&bytes);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].fingerprint.len(), &found[0].fingerprint[24..], found[0].is_subkey),
            (40, found[0].id.as_str(), false)
        );
        assert_eq!(keys(armored.as_bytes()), found);
        assert_eq!(without(&[bytes.as_slice(), &bytes].concat(), "AAAA").len(), bytes.len() * 2);
        assert_eq!(without(armored.as_bytes(), &found[0].id), b"");
        assert_eq!(binary(armored.as_bytes()), Some(bytes));
    }

    #[test]
    fn what_is_no_key_has_none() {
        for content in
            [&b""[..], b"<html>not found</html>", b"\x99\xff\xff", b"-----BEGIN PGP PUBLIC KEY BLOCK-----\nxx"]
        {
            assert_eq!(keys(content), vec![], "{content:?}");
        }
    }

    #[test]
    fn gpg_agrees() {
        let Ok(output) = std::process::Command::new("sh").args(["-c", "command -v gpg"]).output() else {
            return;
        };
        let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let (true, Ok(content)) = (output.status.success(), std::fs::read(keyring)) else {
            crate::modules::package_common::lab::skip("this machine has no gpg, or no keyring of Debian");
            return;
        };
        let output = std::process::Command::new("gpg")
            .args(["--no-tty", "--batch", "--with-colons", "--show-keys", "--with-subkey-fingerprint", keyring])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<&str> =
            text.lines().filter(|line| line.starts_with("fpr:")).filter_map(|line| line.split(':').nth(9)).collect();
        let ours = keys(&content);
        assert_eq!(ours.iter().map(|key| key.fingerprint.as_str()).collect::<Vec<_>>(), theirs);
    }
}
