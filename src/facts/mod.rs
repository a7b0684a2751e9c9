//! What a host is: its facts, by Ansible's names.
//!
//! One file a group of facts: the shell code that reads it, and a pure parser of what that printed. All
//! groups that are wanted travel as one script; it asks the shell itself (`read`, `test`) wherever it can,
//! for a process costs more than all small files of the kernel together. Adding a group is one file and a
//! line in [`GROUPS`].

mod cmdline;
mod date_time;
mod devices;
mod distribution;
mod dmi;
mod dns;
mod env;
mod initiators;
mod local;
mod lsb;
mod mounts;
mod network;
mod pkg_mgr;
mod platform;
mod processor;
mod python;
mod security;
mod service_mgr;
mod ssh_keys;
mod subset;
mod tuning;
mod user;
mod virtualization;

use crate::value::Map;

pub use subset::{Unknown, select};

/// A group of facts that are read and understood together.
pub struct Group {
    /// Its name in `gather_subset`.
    pub name: &'static str,
    /// The larger groups that it belongs to (`min`, `hardware`, …), and names of its facts that select it too.
    pub parts_of: &'static [&'static str],
    /// Groups without which this one is not complete.
    pub needs: &'static [&'static str],
    /// Shell code that prints what the parser needs; see [`PRELUDE`] for what it may call.
    pub script: &'static str,
    /// Makes facts of what was printed. Facts of groups before it are there already.
    pub parse: fn(&Sections<'_>, &mut Map),
}

/// All groups, in the order in which they are read; a group may use facts of the ones before it.
pub const GROUPS: &[Group] = &[
    env::GROUP,
    platform::GROUP,
    distribution::GROUP,
    lsb::GROUP,
    pkg_mgr::GROUP,
    service_mgr::GROUP,
    user::GROUP,
    date_time::GROUP,
    cmdline::GROUP,
    security::GROUP,
    dns::GROUP,
    python::GROUP,
    ssh_keys::GROUP,
    local::GROUP,
    processor::GROUP,
    dmi::GROUP,
    mounts::GROUP,
    devices::GROUP,
    network::GROUP,
    initiators::GROUP,
    virtualization::GROUP,
    tuning::GROUP,
];

/// What the script is to be told.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the facts of the host's owner are (`/etc/ansible/facts.d`).
    pub fact_path: String,
    /// Seconds that file systems of the network have to answer.
    pub timeout: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { fact_path: "/etc/ansible/facts.d".to_owned(), timeout: 10 }
    }
}

/// Begins a section of the output.
const MARK: char = '\u{1e}';

/// What the groups' scripts may call: `section NAME` begins a section; `line KEY FILE` prints `KEY=` and the first
/// line of a file; `text FILE` prints a small file; none of them starts a process.
const PRELUDE: &str = r#"
section() { printf '\036%s\n' "$1"; }
line() {
    trimtab_line=
    { IFS= read -r trimtab_line <"$2"; } 2>/dev/null
    [ -z "$trimtab_line" ] || printf '%s=%s\n' "$1" "$trimtab_line"
}
text() {
    [ -r "$1" ] && [ -f "$1" ] || return 0
    while IFS= read -r trimtab_line || [ -n "$trimtab_line" ]; do printf '%s\n' "$trimtab_line"; done <"$1"
} 2>/dev/null
present() { command -v "$1" >/dev/null 2>&1; }
"#;

/// The shell code that reads these groups.
pub fn script(groups: &[&Group], options: &Options) -> String {
    let mut code = String::from(PRELUDE);
    code.push_str(&format!(
        "trimtab_fact_path={}\ntrimtab_timeout={}\n",
        crate::connect::shell::quote(&options.fact_path),
        options.timeout
    ));
    for (index, group) in groups.iter().enumerate() {
        code.push_str(group.script.trim());
        code.push('\n');
        // the environment is read as it is; all else finds the tools of the administrator, which speak plainly
        if index == 0 && group.name == "env" {
            code.push_str(SURROUNDINGS);
        }
    }
    if groups.first().is_none_or(|group| group.name != "env") {
        code.insert_str(PRELUDE.len(), SURROUNDINGS);
    }
    code.push_str("exit 0\n");
    code
}

/// The environment in which all but the environment itself is read.
const SURROUNDINGS: &str = "PATH=$PATH:/usr/sbin:/sbin LC_ALL=C\nexport LC_ALL\n";

/// The facts in what the script printed, each as `ansible_…` but those of trimtab's own.
pub fn parse(groups: &[&Group], output: &str) -> Map {
    let sections = Sections::new(output);
    let mut facts = Map::new();
    for group in groups {
        (group.parse)(&sections, &mut facts);
    }
    facts
}

/// The output of the script, by section.
pub struct Sections<'a> {
    sections: Vec<(&'a str, &'a str)>,
}

impl<'a> Sections<'a> {
    pub fn new(output: &'a str) -> Sections<'a> {
        let sections = output.split(MARK).skip(1).map(|section| section.split_once('\n').unwrap_or((section, "")));
        Sections { sections: sections.collect() }
    }

    /// The text of a section; empty if it is not there.
    pub fn text(&self, name: &str) -> &'a str {
        self.sections.iter().find(|(section, _)| *section == name).map_or("", |(_, text)| text)
    }

    /// The text of a section without blanks around it; `None` if there is none.
    pub fn trimmed(&self, name: &str) -> Option<&'a str> {
        Some(self.text(name).trim()).filter(|text| !text.is_empty())
    }

    /// The value behind `key=` in a section.
    pub fn value(&self, name: &str, key: &str) -> Option<&'a str> {
        value_in(self.text(name), key)
    }

    /// All sections whose name begins with `prefix`: the rest of the name and the text.
    pub fn all<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = (&'a str, &'a str)> + 's {
        self.sections.iter().filter_map(move |(name, text)| Some((name.strip_prefix(prefix)?, *text)))
    }
}

/// The value behind `key=` in lines.
fn value_in<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// Lines `KEY=value` of a shell's variable file (os-release(5)), quotes taken off.
fn assignments(text: &str) -> Vec<(&str, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), unquoted(value.trim())))
        .collect()
}

fn unquoted(value: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.replace("\\\"", "\"").replace("\\$", "$").replace("\\\\", "\\");
        }
    }
    value.to_owned()
}

/// Sets the fact `ansible_<name>`.
fn set(facts: &mut Map, name: &str, value: impl Into<crate::value::Value>) {
    facts.insert(format!("ansible_{name}").into(), value.into());
}

/// A fact that an earlier group has set.
fn known<'f>(facts: &'f Map, name: &str) -> &'f str {
    facts.get(format!("ansible_{name}").as_str()).and_then(crate::value::Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
