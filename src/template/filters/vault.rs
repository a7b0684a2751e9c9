//! Filters about Ansible Vault.

use super::Filter;
use crate::template::call::{Call, entry, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::{Text, Value};
use crate::vault::{Keyring, Secret, encrypt, is_encrypted};

pub static FILTERS: &[Filter] = &[
    entry(
        &["vault"],
        &["value", "secret", "salt", "vault_id", "wrap_object", "vaultid"],
        "encrypted with Ansible Vault and the password",
        vault,
    ),
    entry(&["unvault"], &["value", "secret", "vault_id", "vaultid"], "decrypted with the password", unvault),
];

/// The id of what the filter encrypts, if no other is given.
const ID: &str = "filter_default";

fn secret(call: &Call<'_>, id: usize, old_id: usize) -> Result<Secret> {
    let Value::Str(password) = call.required(1)? else {
        let kind = call.required(1)?.type_name();
        return Err(TemplateError::failed(format!("the secret must be text, not {kind}")));
    };
    let id = match call.given(id).or(call.given(old_id)) {
        Some(id) => text_of(id)?.into_owned(),
        None => ID.to_owned(),
    };
    Ok(Secret::new(id, password.as_str()))
}

fn text<'a>(call: &'a Call<'_>) -> Result<&'a Text> {
    match call.value()? {
        Value::Str(text) => Ok(text),
        other => {
            Err(TemplateError::failed(format!("only text can be encrypted with vault, not {}", other.type_name())))
        }
    }
}

fn vault(call: &Call<'_>) -> Result<Value> {
    let plain = text(call)?.as_str();
    let salt = match call.given(2) {
        Some(salt) => Some(text_of(salt)?).filter(|salt| !salt.is_empty()),
        None => None,
    };
    let envelope = encrypt(&secret(call, 3, 5)?, plain.as_bytes(), salt.as_deref().map(str::as_bytes))
        .map_err(|error| TemplateError::from_error(&error))?;
    if call.flag(4, false)? {
        return Ok(Value::Str(Text::opened(plain, envelope)));
    }
    Ok(Value::from(envelope))
}

fn unvault(call: &Call<'_>) -> Result<Value> {
    let text = text(call)?;
    let secret = secret(call, 2, 3)?;
    let envelope = text.envelope().unwrap_or(text.as_str());
    if !is_encrypted(envelope.as_bytes()) {
        return Ok(Value::from(envelope));
    }
    let plain = Keyring::new(vec![secret], false)
        .decrypt_text(envelope)
        .map_err(|error| TemplateError::failed(format!("unable to decrypt: {}", error.message())))?;
    Ok(Value::from(plain))
}
