//! Every name of the language has a recorded result: filters, tests and lookups with each of their parameters,
//! keywords wherever they may stand, levels of precedence, variables that Ansible itself sets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use trimtab::playbook::keywords::{KEYWORDS, LOOP_CONTROL, On};
use trimtab::source::Source;
use trimtab::template::{Kind, NameKind, UsedName, names_used, signatures};
use trimtab::vars::Level;
use trimtab::vars::special::SPECIAL;

use crate::goldens::{of_kind, text};

/// Without a recorded result: the name, or name and parameter, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("Filter mark_safe", "the function's name in Jinja, where the filter is called `safe`"),
    ("collections on `import_playbook`", "Ansible refuses it there"),
];

/// Lookups without recorded results, and why.
const LOOKUPS_WITHOUT: &[(&str, &str)] = &[
    ("config", "its values are those of the machine and of the version; tested beside the code"),
    ("url", "it asks a server; tested beside the code against one on loopback"),
];

/// What the texts of all cases use.
fn uses() -> Vec<UsedName> {
    let mut found = Vec::new();
    for golden in of_kind("templates") {
        for case in &golden.cases {
            found.extend(names_used(text(case, "template"), Kind::Template));
        }
    }
    for golden in of_kind("conditions") {
        for case in &golden.cases {
            let conditions = case["when"].as_array().cloned().unwrap_or_else(|| vec![case["when"].clone()]);
            for condition in conditions.iter().filter_map(|condition| condition.as_str()) {
                found.extend(names_used(condition, Kind::Expression));
            }
        }
    }
    found
}

/// The parameter is given by a use of the plugin.
fn gives(one: &UsedName, parameters: &[&str], index: usize) -> bool {
    let plain = parameters.iter().take_while(|parameter| !parameter.starts_with('*')).count();
    let parameter = parameters[index];
    if let Some(rest) = parameter.strip_prefix("**") {
        return !rest.is_empty() && one.named.iter().any(|name| !parameters[..plain].contains(&name.as_str()));
    }
    // the terms of a lookup are all its positional arguments
    let by_place = match one.kind {
        NameKind::Lookup => index == 0 && one.positional > 0,
        _ => one.positional >= index.min(plain),
    };
    by_place || one.named.iter().any(|name| name == parameter)
}

#[test]
fn every_filter_test_and_lookup_has_a_golden_and_each_parameter_too() {
    let uses = uses();
    let mut missing = BTreeSet::new();
    for (kind, (names, parameters)) in signatures() {
        if kind == NameKind::Lookup && LOOKUPS_WITHOUT.iter().any(|(name, _)| names.contains(name)) {
            continue;
        }
        let of_kind_and_name: Vec<&UsedName> = uses
            .iter()
            .filter(|one| one.kind == kind)
            .filter(|one| names.contains(&one.name.strip_prefix("ansible.builtin.").unwrap_or(&one.name)))
            .collect();
        for name in names {
            if !of_kind_and_name
                .iter()
                .any(|one| one.name.strip_prefix("ansible.builtin.").unwrap_or(&one.name) == *name)
            {
                missing.insert(format!("{kind:?} {name}"));
            }
        }
        for index in 1..parameters.len() {
            if !of_kind_and_name.iter().any(|one| gives(one, parameters, index)) {
                missing.insert(format!("{kind:?} {} {}", names[0], parameters[index]));
            }
        }
    }
    tell("filters, tests, lookups", &missing);
}

/// The YAML files below a directory.
fn yaml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "yml") {
            found.push(path);
        }
    }
}

/// The plays that are recorded: each file, and what is in it.
fn playbooks() -> Vec<(PathBuf, Json)> {
    let plays = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/plays");
    let mut paths = Vec::new();
    for golden in of_kind("plays") {
        yaml_files(&plays.join(&golden.name), &mut paths);
    }
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let value =
            trimtab::yaml::load(&Source::new(path.clone(), text)).unwrap().map(|node| node.to_value().to_json());
        (path, value.unwrap_or_default())
    };
    paths.into_iter().map(read).collect()
}

/// The keywords that stand somewhere, as `keyword on a task`.
#[derive(Default)]
struct Standing(BTreeSet<String>);

impl Standing {
    fn note(&mut self, on: On, keys: &serde_json::Map<String, Json>) {
        self.0.extend(keys.keys().map(|key| format!("{key} on {}", on.word())));
    }

    fn tasks(&mut self, on: On, list: &Json) {
        for task in list.as_array().into_iter().flatten().filter_map(Json::as_object) {
            let lists = ["block", "rescue", "always"];
            let is_block = task.contains_key("block");
            self.note(if is_block { On::Block } else { on }, task);
            lists.iter().filter_map(|name| task.get(*name)).for_each(|list| self.tasks(on, list));
            if let Some(control) = task.get("loop_control").and_then(Json::as_object) {
                self.0.extend(control.keys().map(|key| format!("{key} of loop_control")));
            }
        }
    }

    fn roles(&mut self, list: &Json) {
        list.as_array().into_iter().flatten().filter_map(Json::as_object).for_each(|role| self.note(On::Role, role));
    }

    fn playbook(&mut self, list: &Json) {
        for play in list.as_array().into_iter().flatten().filter_map(Json::as_object) {
            if play.contains_key("import_playbook") {
                self.note(On::Import, play);
                continue;
            }
            self.note(On::Play, play);
            for (name, list) in play {
                match name.as_str() {
                    "tasks" | "pre_tasks" | "post_tasks" => self.tasks(On::Task, list),
                    "handlers" => self.tasks(On::Handler, list),
                    "roles" => self.roles(list),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn every_keyword_has_a_golden_wherever_it_may_stand() {
    let mut standing = Standing::default();
    for (path, content) in playbooks() {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        match folder.to_str() {
            Some("tasks") => standing.tasks(On::Task, &content),
            Some("handlers") => standing.tasks(On::Handler, &content),
            Some("meta") => standing.roles(&content["dependencies"]),
            _ if content.as_array().is_some_and(|list| list.iter().any(|play| play.get("debug").is_some())) => {
                standing.tasks(On::Task, &content);
            }
            _ => standing.playbook(&content),
        }
    }
    let mut missing = BTreeSet::new();
    for keyword in KEYWORDS {
        let places = keyword.on.iter().map(|on| format!("{} on {}", keyword.name, on.word()));
        missing.extend(places.filter(|place| !standing.0.contains(place)));
    }
    let control = LOOP_CONTROL.iter().map(|(name, ..)| format!("{name} of loop_control"));
    missing.extend(control.filter(|name| !standing.0.contains(name)));
    tell("keywords", &missing);
}

/// The recorded results of one run.
fn results(name: &str) -> Vec<Json> {
    of_kind("plays").into_iter().find(|golden| golden.name == name).unwrap().cases
}

#[test]
fn every_level_of_precedence_has_a_golden() {
    // the variable of a level is set there and at all levels below, each time to the name of the level
    let results = results("precedence");
    let mut missing = BTreeSet::new();
    for level in Level::ALL {
        let name = format!("{level:?}");
        let wins = results.iter().any(|case| {
            let task = text(case, "task").rsplit(" : ").next().unwrap();
            let message = &case["result"]["msg"];
            let message = if message.is_null() { &case["result"]["results"][0]["msg"] } else { message };
            // a fact has the value that it has
            task == name && (*message == name || (level == Level::Facts && *message == "Linux"))
        });
        if !wins {
            missing.insert(name);
        }
    }
    tell("levels of precedence", &missing);
}

/// True if the text has this name as a word.
fn names(text: &str, name: &str) -> bool {
    let word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(name)
        .any(|(start, _)| !text[..start].ends_with(word) && !text[start + name.len()..].starts_with(word))
}

#[test]
fn every_special_variable_has_a_golden() {
    let mut texts = String::new();
    for (path, _) in playbooks() {
        texts.push_str(&std::fs::read_to_string(path).unwrap());
    }
    // of a template beside them
    texts.push_str(include_str!("plays/special_variables/managed.j2"));
    let missing = SPECIAL.iter().map(|(name, _)| (*name).to_owned()).filter(|name| !names(&texts, name)).collect();
    tell("special variables", &missing);
}

/// Fails for what is missing and has no reason, and for a reason that is not needed.
fn tell(what: &str, missing: &BTreeSet<String>) {
    let without: Vec<&str> =
        missing.iter().map(String::as_str).filter(|name| !WITHOUT.iter().any(|(known, _)| known == name)).collect();
    for (name, reason) in WITHOUT {
        assert!(reason.len() > 10, "{name}");
    }
    assert!(without.is_empty(), "{what} without a golden, {}:\n{}", without.len(), without.join("\n"));
}
