//! The values of settings under the names that Ansible's own code has for them, for the lookup `config`.
//!
//! Source of the names: <https://docs.ansible.com/ansible/latest/reference_appendices/config.html>

use super::{Settings, Surroundings};
use crate::error::Result;
use crate::value::{Map, Value};

/// How the value of a setting is read.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Number,
    /// Paths, apart by colons.
    Paths,
    /// Texts, apart by commas.
    List,
}

/// Ansible's name, the key in the table of settings, and how its value is read.
const CONSTANTS: &[(&str, &str, Kind)] = &[
    ("ANSIBLE_FORCE_COLOR", "force_color", Kind::Flag),
    ("ANSIBLE_NOCOLOR", "nocolor", Kind::Flag),
    ("BECOME_PASSWORD_FILE", "become_password_file", Kind::Text),
    ("COLLECTIONS_PATHS", "collections_path", Kind::Paths),
    ("CONNECTION_PASSWORD_FILE", "connection_password_file", Kind::Text),
    ("DEFAULT_ASK_PASS", "ask_pass", Kind::Flag),
    ("DEFAULT_BECOME", "become", Kind::Flag),
    ("DEFAULT_BECOME_ASK_PASS", "become_ask_pass", Kind::Flag),
    ("DEFAULT_BECOME_METHOD", "become_method", Kind::Text),
    ("DEFAULT_BECOME_USER", "become_user", Kind::Text),
    ("DEFAULT_FORCE_HANDLERS", "force_handlers", Kind::Flag),
    ("DEFAULT_FORKS", "forks", Kind::Number),
    ("DEFAULT_GATHERING", "gathering", Kind::Text),
    ("DEFAULT_HASH_BEHAVIOUR", "hash_behaviour", Kind::Text),
    ("DEFAULT_HOST_LIST", "inventory", Kind::List),
    ("DEFAULT_JINJA2_NATIVE", "jinja2_native", Kind::Flag),
    ("DEFAULT_MANAGED_STR", "ansible_managed", Kind::Text),
    ("DEFAULT_MODULE_NAME", "module_name", Kind::Text),
    ("DEFAULT_PRIVATE_KEY_FILE", "private_key_file", Kind::Text),
    ("DEFAULT_PRIVATE_ROLE_VARS", "private_role_vars", Kind::Flag),
    ("DEFAULT_REMOTE_USER", "remote_user", Kind::Text),
    ("DEFAULT_ROLES_PATH", "roles_path", Kind::Paths),
    ("DEFAULT_STDOUT_CALLBACK", "stdout_callback", Kind::Text),
    ("DEFAULT_STRATEGY", "strategy", Kind::Text),
    ("DEFAULT_TIMEOUT", "timeout", Kind::Number),
    ("DEFAULT_TRANSPORT", "transport", Kind::Text),
    ("DEFAULT_VAULT_ENCRYPT_IDENTITY", "vault_encrypt_identity", Kind::Text),
    ("DEFAULT_VAULT_IDENTITY", "vault_identity", Kind::Text),
    ("DEFAULT_VAULT_IDENTITY_LIST", "vault_identity_list", Kind::List),
    ("DEFAULT_VAULT_ID_MATCH", "vault_id_match", Kind::Flag),
    ("DEFAULT_VAULT_PASSWORD_FILE", "vault_password_file", Kind::Text),
    ("DEFAULT_VERBOSITY", "verbosity", Kind::Number),
    ("DIFF_ALWAYS", "always", Kind::Flag),
    ("DIFF_CONTEXT", "context", Kind::Number),
    ("DISPLAY_SKIPPED_HOSTS", "display_skipped_hosts", Kind::Flag),
    ("DUPLICATE_YAML_DICT_KEY", "duplicate_dict_key", Kind::Text),
    ("ERROR_ON_MISSING_HANDLER", "error_on_missing_handler", Kind::Flag),
    ("HOST_PATTERN_MISMATCH", "host_pattern_mismatch", Kind::Text),
    ("INVENTORY_ANY_UNPARSED_IS_FAILED", "any_unparsed_is_failed", Kind::Flag),
    ("INVENTORY_UNPARSED_IS_FAILED", "unparsed_is_failed", Kind::Flag),
    ("PLAYBOOK_DIR", "playbook_dir", Kind::Text),
    ("SHOW_CUSTOM_STATS", "show_custom_stats", Kind::Flag),
    ("TAGS_RUN", "run", Kind::List),
    ("TAGS_SKIP", "skip", Kind::List),
];

/// Each setting by Ansible's name; one that is not set and has no default is null.
pub fn values(settings: &Settings, surroundings: &Surroundings) -> Result<Map> {
    let mut map = Map::with_capacity(CONSTANTS.len());
    for (name, key, kind) in CONSTANTS {
        let value = match kind {
            Kind::Text => settings.text(key).map_or(Value::Null, Value::from),
            Kind::Flag => settings.flag(key)?.into(),
            Kind::Number => Value::from(i64::try_from(settings.number(key)?).unwrap_or(i64::MAX)),
            Kind::Paths => {
                let paths = settings.paths(key, ':', surroundings);
                Value::list(paths.iter().map(|path| path.to_string_lossy().into_owned().into()).collect())
            }
            Kind::List => {
                let text = settings.text(key).unwrap_or_default();
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Value::list(items.map(Value::from).collect())
            }
        };
        map.insert((*name).into(), value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_setting_and_a_value() {
        let surroundings = Surroundings {
            variables: vec![("ANSIBLE_FORKS".into(), "7".into()), ("ANSIBLE_ROLES_PATH".into(), "r:/s".into())],
            here: "/here".into(),
        };
        let settings = Settings::load(&surroundings).expect("settings");
        let values = values(&settings, &surroundings).expect("values");
        let shown = |name: &str| values.get(name).map(Value::to_repr);
        assert_eq!(shown("DEFAULT_FORKS").as_deref(), Some("7"));
        assert_eq!(shown("DEFAULT_ROLES_PATH").as_deref(), Some("['/here/r', '/s']"));
        assert_eq!(shown("DEFAULT_BECOME").as_deref(), Some("False"));
        assert_eq!(shown("DEFAULT_REMOTE_USER").as_deref(), Some("None"));
        assert_eq!(values.len(), CONSTANTS.len());
        assert!(CONSTANTS.iter().all(|(_, key, _)| super::super::SETTINGS.iter().any(|setting| setting.key == *key)));
    }
}
