//! bcrypt, as OpenBSD specified it (N. Provos, D. Mazières: "A Future-Adaptable Password Scheme").

use blowfish::Blowfish;

/// Digits of bcrypt's own base 64.
const DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// What is encrypted with the expensive key.
const TEXT: &[u8; 24] = b"OrpheanBeholderScryDoubt";

/// Digits of a salt: 16 bytes.
pub const SALT_DIGITS: usize = 22;

/// The hash in the form `$2b$12$SALTHASH`; `None` if the salt is not 22 digits. `cost` is the binary logarithm of the rounds.
pub fn hash(ident: &str, password: &[u8], salt: &str, cost: u32) -> Option<String> {
    let salt = decode(salt)?;
    let mut key: Vec<u8> = password.iter().copied().take(72).collect();
    if key.len() < 72 {
        key.push(0);
    }
    let mut cipher = Blowfish::bc_init_state();
    cipher.salted_expand_key(&salt, &key);
    for _ in 0..1_u64 << cost {
        cipher.bc_expand_key(&key);
        cipher.bc_expand_key(&salt);
    }
    let mut digest = Vec::with_capacity(TEXT.len());
    for pair in TEXT.chunks_exact(8) {
        let word = |part: &[u8]| part.iter().fold(0, |word: u32, byte| word << 8 | u32::from(*byte));
        let mut words = [word(&pair[..4]), word(&pair[4..])];
        for _ in 0..64 {
            words = cipher.bc_encrypt(words);
        }
        digest.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    }
    // the last byte is not kept
    digest.pop();
    Some(format!("${ident}${cost:02}${}{}", encode(&salt), encode(&digest)))
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..=group.len() {
            out.push(char::from(DIGITS[(bits >> (18 - 6 * place) & 0x3f) as usize]));
        }
    }
    out
}

fn decode(salt: &str) -> Option<[u8; 16]> {
    if salt.len() != SALT_DIGITS {
        return None;
    }
    let mut out = [0; 16];
    let (mut bits, mut count, mut at) = (0_u32, 0, 0);
    for digit in salt.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = (bits << 6 | value as u32) & 0xffff;
        count += 6;
        if count >= 8 && at < out.len() {
            count -= 8;
            out[at] = (bits >> count & 0xff) as u8;
            at += 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_programs() {
        // computed by passlib 1.7.4 with bcrypt 4
        let cases = [
            ("hey", "1234567890123456789012", 4, "$2b$04$123456789012345678901uN/QGk/dPcVZ49R4XDiNLQFOwKuwpT.y"),
            ("", "abcdefghijklmnopqrstuu", 4, "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq"),
            ("grüße", "abcdefghijklmnopqrstuu", 5, "$2b$05$abcdefghijklmnopqrstuuw1XXhQ5C8Zcm6QLvdJ77.2rdR17LM02"),
        ];
        for (password, salt, cost, expected) in cases {
            assert_eq!(hash("2b", password.as_bytes(), salt, cost).as_deref(), Some(expected), "{password}");
        }
        assert_eq!(hash("2b", b"x", "short", 4), None);
        assert_eq!(hash("2b", b"x", "äbcdefghijklmnopqrstu", 4), None);
    }
}
