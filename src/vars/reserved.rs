//! Names that a variable had better not have: keywords of plays, blocks and tasks, and what templates have by themselves.

use crate::playbook::keywords::KEYWORDS;
use crate::value::Map;

/// The functions that templates have.
const GLOBALS: &[&str] =
    &["cycler", "dict", "joiner", "lipsum", "lookup", "namespace", "now", "q", "query", "range", "undef"];

/// True if Ansible warns of a variable of this name.
pub fn is_reserved(name: &str) -> bool {
    // `vars` is a variable itself, and `gather_subset` one that facts bring
    let is_free = matches!(name, "vars" | "gather_subset");
    !is_free && (GLOBALS.contains(&name) || KEYWORDS.iter().any(|keyword| keyword.name == name) || name == "with_")
}

/// The reserved names among these variables.
pub fn reserved_names(variables: &Map) -> impl Iterator<Item = &str> {
    variables.keys().filter_map(|name| name.as_str()).filter(|name| is_reserved(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_functions_of_templates_are_reserved() {
        for name in ["query", "lipsum", "hosts", "become_user", "local_action", "environment"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["vars", "gather_subset", "item", "port_number", ""] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
