//! The recorded results of real ansible-core: where they are, how many there are of each kind.
//!
//! `recompute` makes and checks them; what stands in them is said there.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

/// The kinds, each with the test that compares its cases.
const KINDS: &[(&str, &str)] = &[
    ("conditions", "templates::conditions_hold_where_ansible_holds_them"),
    ("documents", "yaml::documents_load_as_in_ansible"),
    ("dumps", "yaml::values_are_written_as_pyyaml_writes_them"),
    ("envelopes", "vault::envelopes_of_ansible_are_opened"),
    ("generated", "generated::texts_read_and_write_as_in_python"),
    ("generated_inventories", "generated::inventories_read_as_in_ansible"),
    ("inventories", "inventory::inventories_read_as_in_ansible"),
    ("lines", "free_form::arguments_on_a_line_read_as_in_ansible"),
    ("plays", "plays::plays_come_out_as_in_ansible"),
    ("queries", "templates::queries_find_what_jmespath_finds"),
    ("templates", "templates::templates_give_what_ansible_gives"),
];

/// One file of recorded results.
pub struct Golden {
    /// Its name without folder and ending.
    pub name: String,
    /// All of it but the cases.
    pub head: Map<String, Json>,
    pub cases: Vec<Json>,
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
}

/// All recorded results.
pub fn all() -> Vec<Golden> {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/goldens"), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut head: Map<String, Json> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let cases = head.remove("cases").unwrap().as_array().unwrap().clone();
        Golden { name: path.file_stem().unwrap().to_string_lossy().into_owned(), head, cases }
    };
    paths.into_iter().map(read).collect()
}

/// The recorded results of one kind.
pub fn of_kind(kind: &str) -> Vec<Golden> {
    assert!(KINDS.iter().any(|(known, _)| *known == kind), "{kind}");
    all().into_iter().filter(|golden| golden.head["kind"] == kind).collect()
}

/// A field that is a text.
pub fn text<'a>(case: &'a Json, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_else(|| panic!("`{field}` of {case}"))
}

/// Prints how many there are: `cargo test --test language goldens`.
#[test]
fn every_golden_is_of_a_kind_that_is_compared() {
    let mut counts: BTreeMap<String, usize> = KINDS.iter().map(|(kind, _)| ((*kind).to_owned(), 0)).collect();
    let mut ours = 0;
    for golden in all() {
        let kind = golden.head["kind"].as_str().unwrap();
        *counts.get_mut(kind).unwrap_or_else(|| panic!("{kind} of {}", golden.name)) += golden.cases.len();
        for case in &golden.cases {
            if let Some(own) = case.get("ours") {
                assert!(own["why"].as_str().is_some_and(|why| why.len() > 10), "a reason: {case}");
                ours += 1;
            }
        }
    }
    let total: usize = counts.values().sum();
    let each: Vec<String> = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let own = format!("{ours} differ on purpose");
    // past what is caught of a test that succeeds
    writeln!(std::io::stdout(), "goldens: {total} cases ({}); {own}", each.join(", ")).unwrap();
    assert!(counts.values().all(|count| *count > 0) && total >= 1200, "{counts:?}");
}
