//! Sealing of what may hold secrets: AES-256-GCM (NIST SP 800-38D) with a random nonce, under a key in a file that only its owner can read.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::error::{Error, Result};

/// Bytes of a key.
const KEY: usize = 32;

/// The key of a journal.
pub(super) struct Key(LessSafeKey);

impl Key {
    /// The key in the file; a new one if there is no such file.
    pub(super) fn load_or_make(path: &Path) -> Result<Key> {
        let mut bytes = zeroize::Zeroizing::new([0; KEY]);
        getrandom::fill(bytes.as_mut()).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
        // written beside it and linked, so that two who begin at once agree on one key and none is half written
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = Path::new(&beside);
        let make = || -> std::io::Result<()> {
            if path.exists() {
                return Ok(());
            }
            let mut file =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(beside)?;
            file.write_all(bytes.as_ref())?;
            file.sync_all()?;
            let linked = std::fs::hard_link(beside, path);
            std::fs::remove_file(beside)?;
            linked.or_else(|error| if error.kind() == std::io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
        };
        make().map_err(|error| super::failed(path, &error))?;
        Key::load(path)
    }

    /// The key in the file, which nobody else may read.
    pub(super) fn load(path: &Path) -> Result<Key> {
        let mut file = std::fs::File::open(path)
            .map_err(|error| Error::system(format!("the journal's key {} cannot be read: {error}", path.display())))?;
        let mut bytes = zeroize::Zeroizing::new(Vec::new());
        let mode = file.metadata().map(|metadata| metadata.mode()).map_err(|error| super::failed(path, &error))?;
        if mode & 0o077 != 0 {
            return Err(Error::system(format!("the journal's key {} can be read by others", path.display()))
                .hint(format!("chmod 600 {}", path.display())));
        }
        file.read_to_end(&mut bytes).map_err(|error| super::failed(path, &error))?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes)
            .map_err(|_| Error::system(format!("{} is not the key of a journal: {KEY} bytes are", path.display())))?;
        Ok(Key(LessSafeKey::new(key)))
    }

    /// Seals `plain`; `bound_to` must be the same when it is opened.
    pub(super) fn seal(&self, plain: &[u8], bound_to: &str) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
        let mut sealed = plain.to_vec();
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(bound_to), &mut sealed)
            .map_err(|_| Error::system("what the journal was to keep is too large to be sealed"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what was sealed.
    pub(super) fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Vec<u8>> {
        let wrong = || Error::system("an entry of the journal was sealed with another key, or altered since");
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let mut plain = sealed.to_vec();
        let length = self.0.open_in_place(nonce, Aad::from(bound_to), &mut plain).map_err(|_| wrong())?.len();
        plain.truncate(length);
        Ok(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_with_the_same_key_and_place_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        let key = Key::load_or_make(&path).unwrap();
        let sealed = key.seal(b"secret", "1:kp001").unwrap();
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
        assert_eq!(Key::load(&path).unwrap().open(&sealed, "1:kp001").unwrap(), b"secret");
        assert!(key.open(&sealed, "1:kp002").is_err());
        let other = Key::load_or_make(&directory.path().join("other")).unwrap();
        assert!(other.open(&sealed, "1:kp001").is_err());
        assert!(key.open(b"short", "1:kp001").is_err());
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        Key::load_or_make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Key::load(&path).err().unwrap().to_string().contains("can be read by others"));
    }
}
