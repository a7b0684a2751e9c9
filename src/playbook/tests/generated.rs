//! Generated playbooks: whatever stands where, loading gives plays or errors with a place, and never panics.

use proptest::prelude::*;

use super::*;
use crate::playbook::check::check;
use crate::playbook::keywords::KEYWORDS;

/// Keys that mean something, and some that do not.
fn key() -> impl Strategy<Value = String> {
    let words = ["import_tasks", "import_role", "include_tasks", "include_role", "import_playbook", "meta", "command"];
    let more = ["file", "name", "role", "apply", "with_items", "loop_var", "x", "", "{{ x }}", "vars_from", "module"];
    let known: Vec<String> = KEYWORDS.iter().map(|keyword| keyword.name.to_owned()).collect();
    let all: Vec<String> = words.into_iter().chain(more).map(str::to_owned).chain(known).collect();
    proptest::sample::select(all)
}

fn node() -> impl Strategy<Value = serde_json::Value> {
    let texts = ["a.yml", "a", "{{ x }}", "{{ x", "=", "x=1", "'", "~", "..", "all", "noop", "play.yml", ""];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-2i64..500).prop_map(Into::into),
        proptest::sample::select(texts.to_vec()).prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((key(), inner), 0..5)
                .prop_map(|entries| serde_json::Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loading_never_panics(tasks in node(), handlers in node(), roles in node(), more in node()) {
        let play = serde_json::json!([{"hosts": "all", "tasks": tasks, "handlers": handlers, "roles": roles}, more]);
        let project = Project::new(&[
            ("play.yml", &play.to_string()),
            ("a.yml", &tasks.to_string()),
            ("roles/a/tasks/main.yml", &handlers.to_string()),
            ("roles/a/meta/main.yml", &more.to_string()),
        ]);
        match project.load() {
            Ok(plays) => {
                let _ = check(&plays, &TagSelection::default(), &project.options.warnings, &[]);
            }
            Err(error) => {
                for error in std::iter::once(&error).chain(error.others()) {
                    prop_assert!(!error.places().is_empty(), "{error}");
                }
            }
        }
    }
}
