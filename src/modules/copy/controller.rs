//! Files of the controller.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::host::Failure;
use crate::modules::file_common::content::Content;
use crate::modules::file_common::install::Source;
use crate::template::Context;
use crate::vault::{Keyring, is_encrypted};

/// Looks for a file of the controller where Ansible does: in the role, beside the task, beside the playbook.
pub fn find_source(context: &Context, kind: &str, name: &str) -> Result<PathBuf, Failure> {
    context.search.find(kind, name).ok_or_else(|| {
        let searched: Vec<String> = context
            .search
            .directories(kind)
            .iter()
            .map(|directory| format!("\t{}", directory.join(name).display()))
            .collect();
        let searched =
            if name.starts_with('/') { String::new() } else { format!(" Searched in:\n{}", searched.join("\n")) };
        Failure::new(format!("Could not find or access '{name}' on the controller.{searched}"))
    })
}

/// Reads a file of the controller; decrypted if it is encrypted and there is a keyring.
pub fn read_source(path: &Path, keyring: Option<&Keyring>) -> Result<Source, Failure> {
    let refuse =
        |error: std::io::Error| Failure::new(format!("cannot read {} on the controller: {error}", path.display()));
    let mut content = fs::read(path).map_err(refuse)?;
    if let Some(keyring) = keyring {
        if keyring.secrets().is_empty() && is_encrypted(&content) {
            let path = path.display();
            return Err(Failure::new(format!("A vault password or secret must be specified to decrypt {path}")));
        }
        content = keyring.open(path, content)?;
    }
    let mode = fs::metadata(path).map_err(refuse)?.permissions().mode() & 0o7777;
    Ok(Source {
        content: Content::Bytes(content),
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        shown: path.display().to_string(),
        mode,
    })
}
