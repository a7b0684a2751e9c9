//! Envelopes of Ansible Vault; without a password, so that no key is derived.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::vault::{Keyring, is_encrypted};

fuzz_target!(|bytes: &[u8]| {
    let opened = Keyring::default().open("file".as_ref(), bytes.to_vec());
    assert_eq!(opened.is_ok(), !is_encrypted(bytes));
});
