//! Ansible Vault: envelopes, the passwords that open them, and the files they stand in. Knows no YAML, no template and no host.
//!
//! Format: <https://docs.ansible.com/ansible/latest/vault_guide/vault_encrypting_content.html#format-of-files-encrypted-with-ansible-vault>

mod cipher;
mod envelope;
pub mod files;
mod keyring;
pub mod secrets;

pub use envelope::{DEFAULT_ID, is_encrypted};
pub use keyring::{Keyring, Secret, encrypt};
