//! The environment in which commands run on the host.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "env", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

// a process of its own sees exactly what is exported, values of several lines too
const SCRIPT: &str = r"
section env
cat /proc/self/environ 2>/dev/null || env
";

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let text = sections.text("env");
    let entries: Vec<&str> = if text.contains('\0') { text.split('\0').collect() } else { text.lines().collect() };
    let variables: Map = entries
        .into_iter()
        .filter_map(|entry| entry.split_once('='))
        // the shell's own: it came here from the directory of the login
        .filter(|(name, _)| !name.is_empty() && !name.starts_with("trimtab_") && *name != "OLDPWD")
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    set(facts, "env", variables);
}
