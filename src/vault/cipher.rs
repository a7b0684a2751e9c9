//! The cipher `AES256`: PBKDF2-SHA256 makes keys of the password, AES-256-CTR encrypts, HMAC-SHA256 guards the ciphertext.

use aes::Aes256;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::envelope::Sealed;

const ROUNDS: u32 = 10_000;
/// AES works on blocks of this many bytes; the plaintext is padded to them (PKCS#7, RFC 5652, section 6.3).
const BLOCK: usize = 16;

/// The keys that a password and a salt make: 32 bytes for AES, 32 for HMAC, 16 for the counter's begin.
pub(super) struct Keys(Zeroizing<[u8; 80]>);

impl Keys {
    /// Takes some 10 ms, as it is meant to.
    pub fn derive(password: &[u8], salt: &[u8]) -> Keys {
        let mut keys = Zeroizing::new([0; 80]);
        pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, ROUNDS, keys.as_mut());
        Keys(keys)
    }

    fn apply(&self, data: &mut [u8]) {
        // the lengths are those that the cipher has
        if let Ok(mut cipher) = Ctr128BE::<Aes256>::new_from_slices(&self.0[..32], &self.0[64..]) {
            cipher.apply_keystream(data);
        }
    }

    fn mac(&self, ciphertext: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0[32..64]).ok()?;
        mac.update(ciphertext);
        Some(mac)
    }

    pub fn encrypt(&self, plaintext: &[u8], salt: &[u8]) -> Sealed {
        let padding = BLOCK - plaintext.len() % BLOCK;
        let mut data = plaintext.to_vec();
        data.extend(std::iter::repeat_n(padding as u8, padding));
        self.apply(&mut data);
        let hmac = self.mac(&data).map(|mac| mac.finalize().into_bytes().to_vec()).unwrap_or_default();
        Sealed { salt: salt.to_vec(), hmac, ciphertext: data }
    }

    /// The plaintext; `None` if these are not the keys it was encrypted with. Takes equally long for any wrong HMAC.
    pub fn decrypt(&self, sealed: &Sealed) -> Option<Vec<u8>> {
        self.mac(&sealed.ciphertext)?.verify_slice(&sealed.hmac).ok()?;
        let mut data = sealed.ciphertext.clone();
        self.apply(&mut data);
        let padding = usize::from(*data.last()?);
        let length = data.len().checked_sub(padding).filter(|_| (1..=BLOCK).contains(&padding))?;
        if data[length..].iter().any(|byte| usize::from(*byte) != padding) {
            return None;
        }
        data.truncate(length);
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_keys_open_what_was_not_changed() {
        let keys = Keys::derive(b"password", b"salt");
        for plaintext in [&b""[..], b"secret", b"sixteen bytes ..", &[0, 255, 10]] {
            let sealed = keys.encrypt(plaintext, b"salt");
            assert!(sealed.ciphertext.len().is_multiple_of(BLOCK) && sealed.ciphertext.len() > plaintext.len());
            assert_eq!(keys.decrypt(&sealed).as_deref(), Some(plaintext));
            assert_eq!(Keys::derive(b"Password", b"salt").decrypt(&sealed), None);
            let mut changed = sealed;
            changed.ciphertext[0] ^= 1;
            assert_eq!(keys.decrypt(&changed), None);
        }
    }
}
