//! Names of filters, tests and lookups in the files of a playbook, each at its own place.

use std::sync::Arc;

use super::missing::{AllMissing, Lack};
use crate::error::Error;
use crate::source::{Place, Source};
use crate::template::{
    Kind, NameKind, SearchPath, UsedName, filter_documentation, filter_exists, lookup_names, names_used,
    names_used_in_file, test_documentation, test_exists,
};
use crate::value::Value;
use crate::yaml::Node;

/// The keys whose values are conditions.
const CONDITIONS: [&str; 6] = ["when", "changed_when", "failed_when", "until", "break_when", "that"];

/// Adds what is missing of the names in a file of plays, tasks or variables.
pub(super) fn of_document(root: &Node, search: &SearchPath, missing: &mut AllMissing) {
    walk(root, Kind::Template, search, missing);
}

fn walk(node: &Node, kind: Kind, search: &SearchPath, missing: &mut AllMissing) {
    if let Some(entries) = node.as_mapping() {
        for (key, value) in entries {
            let is_condition = key.as_str().is_some_and(|name| CONDITIONS.contains(&name));
            of_scalar(key, Kind::Template, search, missing);
            walk(value, if is_condition { Kind::Expression } else { Kind::Template }, search, missing);
        }
    } else if let Some(items) = node.as_sequence() {
        items.iter().for_each(|item| walk(item, kind, search, missing));
    } else {
        of_scalar(node, kind, search, missing);
    }
}

fn of_scalar(node: &Node, kind: Kind, search: &SearchPath, missing: &mut AllMissing) {
    let Some(Value::Str(text)) = node.value() else { return };
    if node.is_vault() || (kind == Kind::Template && !text.is_template()) {
        return;
    }
    for used in names_used(text.as_str(), kind) {
        let place = || place_within(&node.place, text.as_str(), &used);
        add(&used, search, place, missing);
    }
}

/// Why a file is no template, and where: line and column from 1.
pub(super) struct NoTemplate {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

/// Adds what is missing of the names in a template file.
pub(super) fn of_template(
    source: &Arc<Source>,
    search: &SearchPath,
    missing: &mut AllMissing,
) -> Result<(), NoTemplate> {
    let name = source.path.to_string_lossy();
    let used = names_used_in_file(&source.text, &name).map_err(|error| {
        let (line, column) = error.place().map_or((1, 1), |place| (place.span.line.max(1), place.span.column.max(1)));
        NoTemplate { message: format!("`{name}` is no template: {}", error.message()), line, column }
    })?;
    for used in used {
        let place = || Place::new(source, used.span.line.max(1), used.span.column.max(1));
        add(&used, search, place, missing);
    }
    Ok(())
}

fn add(used: &UsedName, search: &SearchPath, place: impl Fn() -> Place, missing: &mut AllMissing) {
    let lack = match used.kind {
        NameKind::Filter => Lack::Filter,
        NameKind::Test => Lack::Test,
        NameKind::Lookup => Lack::Lookup,
    };
    if !is_there(used, search) {
        missing.add(lack, &used.name, &place(), false);
    }
}

/// True if there is a filter, test or lookup of this name.
pub(super) fn is_there(used: &UsedName, search: &SearchPath) -> bool {
    let name = used.name.as_str();
    let bare = name.rsplit('.').next().unwrap_or(name);
    match used.kind {
        NameKind::Filter => filter_exists(name) || search.filter(bare).is_some(),
        NameKind::Test => test_exists(name),
        NameKind::Lookup => is_lookup(name),
    }
}

/// The error of a name that is not there: what is near, or what can take its place.
pub(super) fn unknown(used: &UsedName, search: &SearchPath, place: &Place) -> Error {
    let name = used.name.as_str();
    let bare = name.rsplit('.').next().unwrap_or(name);
    let names = |documentation: Vec<(&'static str, &'static str)>| documentation.into_iter().map(|(name, _)| name);
    match used.kind {
        NameKind::Filter => match super::plugin_of(bare, search) {
            Some(plugin) => {
                let what =
                    format!("the filter `{name}` is in `{}`, and plugins in Python cannot run", plugin.display());
                Error::input(what).at(place).hint(format!(
                    "write it as a macro: `{{% macro {bare}(value) %}}…{{% endmacro %}}` in `filters/{bare}.j2` beside the playbook or in the role"
                ))
            }
            None => Error::input(format!("there is no filter `{name}`"))
                .at(place)
                .suggest(bare, names(filter_documentation())),
        },
        NameKind::Test => {
            Error::input(format!("there is no test `{name}`")).at(place).suggest(bare, names(test_documentation()))
        }
        NameKind::Lookup => {
            Error::input(format!("there is no lookup `{name}`")).at(place).suggest(bare, lookup_names())
        }
    }
}

/// True if there is a lookup of this name, with or without the collection that every Ansible has.
pub(super) fn is_lookup(name: &str) -> bool {
    let bare = name.strip_prefix("ansible.builtin.").or_else(|| name.strip_prefix("ansible.legacy.")).unwrap_or(name);
    lookup_names().contains(&bare)
}

/// Where a name stands, if the text stands in the file as it is; else where the text begins.
pub(super) fn place_within(start: &Place, text: &str, used: &UsedName) -> Place {
    let found = || {
        // what stands before the span was changed where there are backslashes
        let from = Some(used.span.start as usize).filter(|_| !text.contains('\\'))?;
        let at = from + text.get(from..)?.find(used.name.as_str())?;
        let before = &text[..at];
        let line_index = before.matches('\n').count();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[line_start..].chars().count();
        let line = text[line_start..].lines().next()?;
        let first = start.source.line(start.line)?;
        let rest: String = first.chars().skip(start.column.saturating_sub(1) as usize).collect();
        if rest.starts_with('|') || rest.starts_with('>') {
            let number = start.line + 1 + line_index as u32;
            let written = start.source.line(number)?;
            let indent = written.find(line).filter(|_| !line.is_empty())?;
            return Some(Place::new(&start.source, number, (written[..indent].chars().count() + column + 1) as u32));
        }
        let quotes = usize::from(rest.starts_with(['"', '\'']));
        let stands = line_index == 0 && rest.chars().skip(quotes).collect::<String>().starts_with(line);
        stands.then(|| Place::new(&start.source, start.line, start.column + (quotes + column) as u32))
    };
    found().unwrap_or_else(|| start.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_where_it_stands() {
        let text = "\
- debug: msg={{ a | first_gone }}
  when: \"b is test_gone\"
- debug:
    msg: |
      one
      {{ c | second_gone }}
- assert:
    that: [x | map('third_gone') | list, \"lookup('lookup_gone')\"]
  vars: {y: \"{{ z | default(1) }}\"}
";
        let source = Source::new("tasks.yml", text);
        let root = crate::yaml::load(&source).expect("YAML").expect("a document");
        let mut missing = AllMissing::default();
        of_document(&root, &SearchPath::default(), &mut missing);
        let found: Vec<String> = missing
            .into_sorted()
            .iter()
            .map(|missing| format!("{} {} {}", missing.lack.word(), missing.name, missing.places[0]))
            .collect();
        assert_eq!(
            found,
            [
                "filter first_gone tasks.yml:1:21",
                "filter second_gone tasks.yml:6:14",
                "filter third_gone tasks.yml:8:21",
                "test test_gone tasks.yml:2:15",
                "lookup lookup_gone tasks.yml:8:51",
            ]
        );
    }
}
