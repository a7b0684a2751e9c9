//! Which tasks run, by `--tags` and `--skip-tags`.

use crate::value::Value;

/// The tag that always runs, unless it is skipped by name.
const ALWAYS: &str = "always";
/// The tag that never runs, unless it or another tag of the task is asked for.
const NEVER: &str = "never";

/// What the command line selects. Empty `only` means `all`.
#[derive(Debug, Clone, Default)]
pub struct TagSelection {
    pub only: Vec<String>,
    pub skip: Vec<String>,
}

impl TagSelection {
    /// From the options' texts, each a list apart by commas.
    pub fn new<'a>(only: impl IntoIterator<Item = &'a str>, skip: impl IntoIterator<Item = &'a str>) -> TagSelection {
        fn split<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
            let words = texts.into_iter().flat_map(|text| text.split(','));
            words.map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        }
        TagSelection { only: split(only), skip: split(skip) }
    }

    /// Whether a task with these tags runs. `all`, `tagged` and `untagged` select as their names say; `always` runs
    /// unless it is skipped, `never` only if it is asked for.
    pub fn selects(&self, tags: &[String]) -> bool {
        self.is_wanted(tags) && !self.is_skipped(tags)
    }

    fn is_wanted(&self, tags: &[String]) -> bool {
        let never = has(tags, NEVER);
        has(tags, ALWAYS)
            || (!never && (self.only.is_empty() || has(&self.only, "all")))
            || meets(tags, &self.only)
            || (!never && !tags.is_empty() && has(&self.only, "tagged"))
    }

    fn is_skipped(&self, tags: &[String]) -> bool {
        if has(&self.skip, "all") {
            return !has(tags, ALWAYS) || has(&self.skip, ALWAYS);
        }
        meets(tags, &self.skip) || (!tags.is_empty() && has(&self.skip, "tagged"))
    }
}

fn has(tags: &[String], name: &str) -> bool {
    tags.iter().any(|tag| tag == name)
}

/// True if they share a tag; a task without tags has the tag `untagged`.
fn meets(tags: &[String], wanted: &[String]) -> bool {
    if tags.is_empty() { has(wanted, "untagged") } else { tags.iter().any(|tag| has(wanted, tag)) }
}

/// The tags that a rendered value of `tags` stands for: text is split at commas, lists within are flattened.
pub fn tags_of(value: &Value) -> Vec<String> {
    match value {
        Value::Null | Value::Undefined(_) => Vec::new(),
        Value::List(items) => items.iter().flat_map(tags_of).collect(),
        other => {
            let text = other.to_text();
            text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_is_ansibles() {
        let cases: &[(&str, &str, &str, bool)] = &[
            // only, skip, tags of the task, runs
            ("", "", "", true),
            ("", "", "a", true),
            ("", "", "never", false),
            ("", "", "never,a", false),
            ("a", "", "never,a", true),
            ("never", "", "never", true),
            ("a", "", "", false),
            ("a", "", "b", false),
            ("a", "", "a,b", true),
            ("a", "", "always", true),
            ("all", "", "never", false),
            ("tagged", "", "", false),
            ("tagged", "", "a", true),
            ("tagged", "", "never", false),
            ("untagged", "", "", true),
            ("untagged", "", "a", false),
            ("untagged", "", "always", true),
            ("", "a", "a,b", false),
            ("", "a", "", true),
            ("", "always", "always", false),
            ("", "tagged", "a", false),
            ("", "tagged", "", true),
            ("", "untagged", "", false),
            ("", "all", "a", false),
            ("", "all", "always", true),
            ("", "all,always", "always", false),
            ("a", "b", "a,b", false),
        ];
        for (only, skip, tags, expected) in cases {
            let selection = TagSelection::new([*only], [*skip]);
            let tags = tags_of(&Value::from(*tags));
            assert_eq!(selection.selects(&tags), *expected, "--tags {only} --skip-tags {skip} on {tags:?}");
        }
    }

    #[test]
    fn tags_are_flattened() {
        let value = Value::list(vec!["a".into(), Value::list(vec!["b, c".into(), 1.into()]), Value::Null]);
        assert_eq!(tags_of(&value), ["a", "b", "c", "1"]);
    }
}
