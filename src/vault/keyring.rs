//! The passwords of a run, each with its vault id, and what they open.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::cipher::Keys;
use super::envelope::{self, Envelope};
use super::is_encrypted;
use crate::error::{Error, Result};

/// A password and its vault id.
#[derive(Clone)]
pub struct Secret {
    pub id: String,
    pub password: Zeroizing<Vec<u8>>,
}

impl Secret {
    pub fn new(id: impl Into<String>, password: impl Into<Vec<u8>>) -> Secret {
        Secret { id: id.into(), password: Zeroizing::new(password.into()) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The passwords of a run, in the order in which they are tried. Without any, nothing encrypted can be used.
#[derive(Default)]
pub struct Keyring {
    secrets: Vec<Secret>,
    /// Only passwords with the envelope's vault id are tried (`vault_id_match`).
    ids_must_match: bool,
    /// Keys already made, by the password's place in the list and the salt: making them is meant to be slow.
    keys: Mutex<HashMap<(usize, Vec<u8>), Arc<Keys>>>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keyring").field("secrets", &self.secrets).finish_non_exhaustive()
    }
}

impl Keyring {
    pub fn new(secrets: Vec<Secret>, ids_must_match: bool) -> Keyring {
        Keyring { secrets, ids_must_match, keys: Mutex::default() }
    }

    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What an envelope holds.
    pub fn decrypt(&self, envelope: &[u8]) -> Result<Vec<u8>> {
        self.unlock(envelope).map(|(plaintext, _)| plaintext)
    }

    /// What an envelope holds, if that is text.
    pub fn decrypt_text(&self, envelope: &str) -> Result<String> {
        String::from_utf8(self.decrypt(envelope.as_bytes())?)
            .map_err(|_| Error::input("what the vault envelope holds is not text in UTF-8"))
    }

    /// What an envelope holds, and the secret that opened it. Passwords with the envelope's vault id are tried first.
    pub fn unlock(&self, envelope: &[u8]) -> Result<(Vec<u8>, &Secret)> {
        let Envelope { id, sealed } = envelope::parse(envelope)?;
        if self.secrets.is_empty() {
            return Err(Error::input(format!(
                "attempting to decrypt but no vault secrets found, the vault id is `{id}`"
            ))
            .hint("give the password with `--vault-password-file`, `--vault-id` or `--ask-vault-pass`"));
        }
        let all = || self.secrets.iter().enumerate();
        let others = all().filter(|(_, secret)| secret.id != id && !self.ids_must_match);
        for (index, secret) in all().filter(|(_, secret)| secret.id == id).chain(others) {
            if let Some(plaintext) = self.keys(index, secret, &sealed.salt).decrypt(&sealed) {
                return Ok((plaintext, secret));
            }
        }
        let known: Vec<String> = self.secrets.iter().map(|secret| format!("`{}`", secret.id)).collect();
        let only = if self.ids_must_match { ", and `vault_id_match` lets only the same id be tried" } else { "" };
        Err(Error::input(format!(
            "decryption failed, no vault secrets were found that could decrypt: the vault id is `{id}`, passwords are \
             given for {}{only}",
            known.join(", ")
        )))
    }

    /// The content of a file, decrypted if it is encrypted.
    pub fn open(&self, path: &Path, content: Vec<u8>) -> Result<Vec<u8>> {
        if !is_encrypted(&content) {
            return Ok(content);
        }
        self.decrypt(&content).map_err(|error| {
            let named = Error::new(error.kind(), format!("cannot decrypt `{}`: {}", path.display(), error.message()));
            error.hints().iter().fold(named, |named, hint| named.hint(hint))
        })
    }

    fn keys(&self, index: usize, secret: &Secret, salt: &[u8]) -> Arc<Keys> {
        let name = (index, salt.to_vec());
        let cache = || self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = cache().get(&name) {
            return Arc::clone(keys);
        }
        let keys = Arc::new(Keys::derive(&secret.password, salt));
        cache().insert(name, Arc::clone(&keys));
        keys
    }
}

/// Encrypts into an envelope; one of 32 random bytes is the salt if none is given.
pub fn encrypt(secret: &Secret, plaintext: &[u8], salt: Option<&[u8]>) -> Result<String> {
    // ansible-vault takes no file for encrypted that has other letters in its first line
    if !secret.id.is_ascii() || secret.id.contains([';', '\n', '\r']) {
        return Err(Error::input(format!("`{}` is no vault id to encrypt with", secret.id.escape_debug()))
            .hint("a vault id has letters of ASCII, and no `;`"));
    }
    let salt = match salt {
        Some(salt) => salt.to_vec(),
        None => {
            let mut random = vec![0; 32];
            getrandom::fill(&mut random).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
            random
        }
    };
    let sealed = Keys::derive(&secret.password, &salt).encrypt(plaintext, &salt);
    Ok(envelope::format(&Envelope { id: secret.id.clone(), sealed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_passwords_are_tried() {
        let secrets =
            [Secret::new("dev", *b"one"), Secret::new("prod", *b"two"), Secret::new("prod", "drei 🔑".as_bytes())];
        let keyring = Keyring::new(secrets.to_vec(), false);
        for secret in &secrets {
            let envelope = encrypt(secret, "geheim ß".as_bytes(), None).unwrap();
            let (plaintext, opened_by) = keyring.unlock(envelope.as_bytes()).unwrap();
            assert_eq!((plaintext, &opened_by.password), ("geheim ß".as_bytes().to_vec(), &secret.password));
            assert_eq!(keyring.decrypt_text(&envelope).unwrap(), "geheim ß");
        }
        // two passwords were tried for the envelopes of `prod`, one salt for each envelope
        assert_eq!(keyring.keys.lock().unwrap().len(), 4);
    }

    #[test]
    fn another_id_is_tried_unless_ids_must_match() {
        let envelope = encrypt(&Secret::new("prod", *b"pw"), b"x", None).unwrap();
        let opens = |must| Keyring::new(vec![Secret::new("dev", *b"pw")], must).decrypt(envelope.as_bytes());
        assert_eq!(opens(false).unwrap(), b"x");
        let error = opens(true).expect_err("another id").to_string();
        assert!(
            error.contains("the vault id is `prod`, passwords are given for `dev`, and `vault_id_match`"),
            "{error}"
        );
    }

    #[test]
    fn errors_name_the_file_and_the_vault_id() {
        let envelope = encrypt(&Secret::new("prod", *b"pw"), b"x", Some(b"salt")).unwrap();
        assert_eq!(encrypt(&Secret::new("prod", *b"pw"), b"x", Some(b"salt")).unwrap(), envelope);
        let path = Path::new("group_vars/all.yml");
        let open = |keyring: Keyring| keyring.open(path, envelope.clone().into_bytes()).expect_err("closed");
        let missing = open(Keyring::default());
        assert_eq!(
            missing.to_string(),
            "cannot decrypt `group_vars/all.yml`: attempting to decrypt but no vault secrets found, the vault id is `prod`"
        );
        assert!(missing.hints()[0].contains("--ask-vault-pass"));
        let wrong = open(Keyring::new(vec![Secret::new("dev", *b"no")], false)).to_string();
        assert!(wrong.contains("decryption failed, no vault secrets were found that could decrypt"), "{wrong}");
        for id in ["größe", "a;b"] {
            assert!(encrypt(&Secret::new(id, *b"pw"), b"x", None).is_err(), "{id}");
        }
        assert_eq!(Keyring::default().open(path, b"plain".to_vec()).unwrap(), b"plain");
        assert!(!format!("{:?}", Secret::new("a", *b"hush")).contains("hush"));
    }
}
