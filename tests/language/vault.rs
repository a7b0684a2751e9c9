//! Envelopes that the real ansible-vault made (`recompute`), and those that are broken.

use serde_json::Value as Json;
use trimtab::vault::{Keyring, Secret, encrypt};

use crate::goldens::{of_kind, text};

/// The cases, those with a salt of their own apart.
fn cases(salted: bool) -> Vec<Json> {
    let cases = of_kind("envelopes").into_iter().flat_map(|golden| golden.cases);
    cases.filter(|case| case.get("salt").is_some() == salted).collect()
}

fn secret(case: &Json) -> Secret {
    Secret::new(text(case, "label"), text(case, "password"))
}

#[test]
fn envelopes_of_ansible_are_opened() {
    for case in &cases(false) {
        assert_eq!(case["opened"], true);
        let envelope = text(case, "envelope");
        let version = if text(case, "label") == "default" { "1.1" } else { "1.2" };
        assert!(envelope.starts_with(&format!("$ANSIBLE_VAULT;{version};AES256")), "{case}");
        // others before it do not hinder, with the same label or another
        let secrets = vec![Secret::new("other", "no"), Secret::new(text(case, "label"), "wrong"), secret(case)];
        let keyring = Keyring::new(secrets, false);
        assert_eq!(keyring.decrypt_text(envelope).unwrap(), text(case, "plaintext"), "{case}");
        let of_dos = envelope.replace('\n', "\r\n");
        assert_eq!(keyring.decrypt_text(&of_dos).unwrap(), text(case, "plaintext"), "{case}");
        let under_another_label = Keyring::new(vec![Secret::new("another", text(case, "password"))], false);
        assert_eq!(under_another_label.decrypt_text(envelope).unwrap(), text(case, "plaintext"), "{case}");
    }
}

#[test]
fn the_same_salt_gives_the_envelope_that_ansible_gives() {
    for case in &cases(true) {
        let salt = text(case, "salt").as_bytes();
        let ours = encrypt(&secret(case), text(case, "plaintext").as_bytes(), Some(salt)).unwrap();
        assert_eq!(ours, text(case, "envelope"));
    }
}

#[test]
fn wrong_passwords_and_broken_envelopes_are_refused() {
    for case in cases(false).iter().take(3) {
        let envelope = text(case, "envelope");
        let wrong = Keyring::new(vec![Secret::new(text(case, "label"), "throw away")], false);
        let error = wrong.decrypt_text(envelope).expect_err("a wrong password").to_string();
        assert!(
            error.contains("decryption failed") && error.contains(&format!("`{}`", text(case, "label"))),
            "{error}"
        );
        let right = Keyring::new(vec![secret(case)], false);
        for length in [30, 60, 200, 300, envelope.len() - 2, envelope.len() - 3] {
            assert!(right.decrypt_text(&envelope[..length]).is_err(), "cut at {length}");
        }
        // one digit is another one
        let at = envelope.len() - 20;
        let other = if &envelope[at..=at] == "3" { "6" } else { "3" };
        let changed = format!("{}{other}{}", &envelope[..at], &envelope[at + 1..]);
        assert!(right.decrypt_text(&changed).is_err());
    }
}
