//! `trimtab doc --markdown`: the reference pages of `docs/`, one a kind, from the same tables.

use super::doc::{rule_text, support};
use super::settings::{Meaning, SETTINGS, Setting};
use crate::modules::{self, FreeForm, MODULES, Module};
use crate::playbook::keywords::KEYWORDS;

const PRINTED: &str =
    "<!-- Printed by docs/print from the tables in the code. Change those, then run it again. -->\n\n";

/// Modules that public playbooks use much: which of them are missing is the first thing that people ask.
#[rustfmt::skip]
const OFTEN_USED: &[&str] = &[
    "alternatives", "apt", "apt_key", "apt_repository", "archive", "assemble", "async_status", "authorized_key",
    "blockinfile", "command", "copy", "cron", "debconf", "dnf", "docker_container", "docker_image", "expect", "fetch",
    "file", "filesystem", "find", "firewalld", "gem", "get_url", "getent", "git", "group", "hostname", "ini_file",
    "iptables", "known_hosts", "lineinfile", "locale_gen", "lvg", "lvol", "modprobe", "mount", "mysql_db", "mysql_query",
    "mysql_replication", "mysql_user", "mysql_variables", "npm", "openssl_privatekey", "package", "package_facts",
    "pam_limits", "pamd", "parted", "patch", "pip", "reboot", "replace", "rpm_key", "seboolean", "selinux", "seport",
    "service", "service_facts", "shell", "stat", "subversion", "synchronize", "sysctl", "systemd", "tempfile", "template",
    "timezone", "ufw", "unarchive", "uri", "user", "wait_for", "wait_for_connection", "x509_certificate", "xml", "yum",
    "yum_repository", "zypper",
];

/// All modules, those of each collection together.
pub fn modules() -> String {
    let mut modules: Vec<&Module> = MODULES.to_vec();
    modules.sort_by_key(|module| (collection(module), module.bare_name()));
    let mut text = page("Modules");
    text.push_str(
        "Names work with and without their collection. Where the name is one of Ansible's, arguments and results are Ansible's \
         too; arguments that are missing here are refused by name before any host is touched.\n\n",
    );
    let rows = modules.iter().map(|module| {
        let name = format!("[`{}`](#{})", module.name, anchor(module.name));
        vec![name, module.summary.to_owned(), support(module.check_mode).to_owned(), support(module.diff).to_owned()]
    });
    text.push_str(&table(&["module", "what it does", "check mode", "diff"], rows));
    let missing: Vec<&str> = OFTEN_USED.iter().copied().filter(|name| modules::find(name).is_none()).collect();
    if !missing.is_empty() {
        text.push_str(&format!("\nOften used by playbooks, and missing here: {}.\n", codes(&missing)));
    }
    for module in modules {
        text.push_str(&module_section(module));
    }
    text
}

fn collection(module: &Module) -> &str {
    module.name.rsplit_once('.').map_or("", |(collection, _)| collection)
}

/// The anchor that renderers give to a heading of this text.
fn anchor(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}

fn module_section(module: &Module) -> String {
    let mut text = format!("\n## {}\n\n{}.\n", module.name, module.summary.trim_end_matches('.'));
    if !module.aliases.is_empty() {
        text.push_str(&format!("Also: {}.\n", codes(module.aliases)));
    }
    if let FreeForm::Argument(name) = module.free_form {
        text.push_str(&format!("Free text behind the name is `{name}`.\n"));
    }
    if module.arguments().next().is_some() {
        let rows = module.arguments().map(|arg| {
            let default = match (arg.required, arg.default) {
                (true, _) => "required".to_owned(),
                (false, Some("")) => "empty".to_owned(),
                (false, Some(default)) => code(default),
                (false, None) => String::new(),
            };
            let mut help = arg.help.to_owned();
            if !arg.choices.is_empty() {
                help.push_str(&format!("; one of {}", codes(arg.choices)));
            }
            if !arg.aliases.is_empty() {
                help.push_str(&format!("; also {}", codes(arg.aliases)));
            }
            vec![code(arg.name), arg.kind.word().to_owned(), default, help]
        });
        text.push('\n');
        text.push_str(&table(&["argument", "type", "default", "what it says"], rows));
    }
    if !module.rules.is_empty() {
        let rules: Vec<String> = module.rules.iter().map(rule_text).collect();
        text.push_str(&format!("\nBetween arguments: {}.\n", rules.join("; ")));
    }
    if !module.returns.is_empty() {
        let rows = module.returns.iter().map(|(name, help)| vec![code(name), (*help).to_owned()]);
        text.push('\n');
        text.push_str(&table(&["result", "what it is"], rows));
    }
    text
}

/// All settings, by what they do here.
pub fn settings() -> String {
    let mut text = page("Settings");
    text.push_str(
        "Read from the first of `$ANSIBLE_CONFIG`, `./ansible.cfg`, `~/.ansible.cfg` and `/etc/ansible/ansible.cfg`; \
         an environment variable stands above the file, an option of the command line above both.\n",
    );
    let parts = [
        (Meaning::Honoured, "Honoured", "default"),
        (Meaning::OnlyDefault, "Refused, unless they have their default", "default"),
        (Meaning::Ignored, "Without effect here", ""),
    ];
    for (meaning, heading, default) in parts {
        text.push_str(&format!("\n## {heading}\n\n"));
        let mut heads = vec!["setting", "what it does", "section", "variables"];
        if !default.is_empty() {
            heads.insert(1, default);
        }
        let rows = SETTINGS.iter().filter(|setting| setting.meaning == meaning).map(|setting| {
            let mut row = setting_row(setting);
            if default.is_empty() {
                row.remove(1);
            }
            row
        });
        text.push_str(&table(&heads, rows));
    }
    text
}

fn setting_row(setting: &Setting) -> Vec<String> {
    let default = if setting.default.is_empty() { String::new() } else { code(setting.default) };
    let sections: Vec<String> = setting.sections.iter().map(|section| format!("`[{section}]`")).collect();
    vec![code(setting.key), default, setting.help.to_owned(), sections.join(", "), codes(setting.variables)]
}

/// All keywords.
pub fn keywords() -> String {
    let mut text = page("Keywords");
    let rows = KEYWORDS.iter().map(|keyword| {
        let on: Vec<&str> = keyword.on.iter().map(|on| on.word()).collect();
        vec![code(keyword.name), on.join(", "), keyword.holds.word().to_owned(), keyword.help.to_owned()]
    });
    text.push_str(&table(&["keyword", "stands on", "holds", "what it does"], rows));
    text
}

/// Names with one line each.
pub fn names(heading: &str, one: &str, mut entries: Vec<(String, String)>) -> String {
    entries.sort();
    let mut text = page(heading);
    text.push_str(&table(&[one, "what it gives"], entries.into_iter().map(|(name, help)| vec![code(&name), help])));
    text
}

fn page(heading: &str) -> String {
    format!("{PRINTED}# {heading}\n\n")
}

fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

fn codes(texts: &[&str]) -> String {
    texts.iter().map(|text| code(text)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::doc::KINDS;

    /// The pages of docs/ and the kinds that `docs/print` prints into them.
    const PAGES: &[(&str, &[&str])] = &[
        ("modules.md", &["module"]),
        ("settings.md", &["setting"]),
        ("keywords.md", &["keyword"]),
        ("variables.md", &["variable"]),
        ("filters.md", &["filter", "test", "lookup"]),
    ];

    #[test]
    fn the_pages_in_docs_are_those_of_this_code() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        for (file, kinds) in PAGES {
            let printed: String = kinds
                .iter()
                .map(|name| (KINDS.iter().find(|kind| kind.name == *name).expect("a kind").markdown)())
                .collect();
            let there = std::fs::read_to_string(directory.join(file)).expect("the page");
            let same = there == printed;
            assert!(same, "docs/{file} is out of date: run `docs/print`");
        }
    }

    #[test]
    fn what_would_break_a_table_is_escaped() {
        let table = super::table(&["a"], std::iter::once(vec!["x|y\nz".to_owned()]));
        assert_eq!(table, "| a |\n|---|\n| x\\|y z |\n");
    }
}
