//! Files with secrets: replaced as a whole or not at all, never readable by others, never left behind.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes a file so that at any moment it has the old content or the new. Mode and owner of an existing file are kept, a
/// new one is for its owner alone. A symbolic link stays, what it leads to is written.
pub fn replace(path: &Path, content: &[u8]) -> Result<()> {
    let refuse = |error: std::io::Error| Error::system(format!("cannot write `{}`: {error}", path.display()));
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let present = fs::metadata(&target).ok();
    if present.as_ref().is_some_and(|present| !present.is_file()) {
        // a device or a pipe has no content to keep
        return fs::OpenOptions::new()
            .write(true)
            .open(&target)
            .and_then(|mut file| file.write_all(content))
            .map_err(refuse);
    }
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = target.with_file_name(format!(".{name}.{}", random_name()?));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        if let Some(present) = &present {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (present.uid(), present.gid()) {
                // only root may give a file away; then the mode is still right for the new owner
                let _ = chown(&temporary, Some(present.uid()), Some(present.gid()));
            }
            file.set_permissions(fs::Permissions::from_mode(present.mode() & 0o7777))?;
        }
        file.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        refuse(error)
    })
}

fn random_name() -> Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A directory that only its owner can enter; it goes with all in it when this is dropped.
pub struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Makes one within the directory for temporary files (`TMPDIR`).
    pub fn new() -> Result<PrivateDirectory> {
        let path = std::env::temp_dir().join(format!("trimtab-vault-{}", random_name()?));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| Error::system(format!("cannot make the directory `{}`: {error}", path.display())))?;
        Ok(PrivateDirectory { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // what an editor left beside the file (backups, swap files) is overwritten too
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(mut file) = fs::OpenOptions::new().write(true).open(entry.path())
            {
                let length = file.metadata().map_or(0, |metadata| metadata.len());
                let zeros = vec![0; usize::try_from(length).unwrap_or(0).min(1 << 26)];
                let _ = file.write_all(&zeros).and_then(|()| file.sync_all());
            }
        }
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_and_link_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("vault.yml");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        replace(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("vault.yml", &link).unwrap();
        replace(&link, b"two").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"two".to_vec(), 0o640));
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(replace(&directory.path().join("no/file"), b"x").is_err());
    }

    #[test]
    fn the_private_directory_goes() {
        let private = PrivateDirectory::new().unwrap();
        let path = private.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("plain"), "secret").unwrap();
        drop(private);
        assert!(!path.exists());
    }
}
