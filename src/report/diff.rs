//! Before and after of a result, as `--diff` shows them.

use similar::{ChangeTag, TextDiff};

use super::body;
use crate::ui::{Style, Ui};
use crate::value::{Map, Value};

/// The text of a result's `diff`: unified, coloured; empty if before and after are the same.
/// `context`: how many unchanged lines there are around a change.
pub fn text(diff: &Value, context: usize, ui: &Ui) -> String {
    let single;
    let entries = match diff {
        Value::List(entries) => entries.as_slice(),
        other => {
            single = [other.clone()];
            &single
        }
    };
    entries.iter().filter_map(Value::as_map).map(|entry| difference(entry, context, ui)).collect()
}

fn difference(entry: &Map, context: usize, ui: &Ui) -> String {
    let mut text = String::new();
    for (key, which) in [("dst", "destination"), ("src", "source")] {
        if entry.contains_key(format!("{key}_binary").as_str()) {
            text.push_str(&format!("diff skipped: {which} file appears to be binary\n"));
        }
        if let Some(limit) = entry.get(format!("{key}_larger").as_str()) {
            text.push_str(&format!("diff skipped: {which} file size is greater than {}\n", limit.to_text()));
        }
    }
    if let (Some(before), Some(after)) = (entry.get("before"), entry.get("after")) {
        let header = |side: &str| match entry.get(format!("{side}_header").as_str()).map(Value::to_text) {
            Some(header) if !header.is_empty() && header != side => format!("{side}: {header}"),
            _ => side.to_owned(),
        };
        let headers = (header("before"), header("after"));
        text.push_str(&unified(&content(before), &content(after), headers, context, ui));
    }
    if let Some(prepared) = entry.get("prepared") {
        text.push_str(&prepared.to_text());
    }
    text
}

/// What is compared: text as it is, anything else as JSON.
fn content(value: &Value) -> String {
    match value {
        Value::Str(text) => text.as_str().to_owned(),
        Value::Null | Value::Undefined(_) => String::new(),
        other => body::pretty(other) + "\n",
    }
}

fn unified(
    before: &str,
    after: &str,
    (before_header, after_header): (String, String),
    context: usize,
    ui: &Ui,
) -> String {
    let diff = TextDiff::from_lines(before, after);
    let mut unified = diff.unified_diff();
    let mut text = String::new();
    for hunk in unified.context_radius(context).iter_hunks() {
        if text.is_empty() {
            text.push_str(&ui.paint(&format!("--- {before_header}"), Style::Removed));
            text.push('\n');
            text.push_str(&ui.paint(&format!("+++ {after_header}"), Style::Added));
            text.push('\n');
        }
        text.push_str(&ui.paint(&hunk.header().to_string(), Style::Hunk));
        text.push('\n');
        for change in hunk.iter_changes() {
            let (sign, style) = match change.tag() {
                ChangeTag::Equal => (' ', Style::Plain),
                ChangeTag::Delete => ('-', Style::Removed),
                ChangeTag::Insert => ('+', Style::Added),
            };
            let line = change.value().strip_suffix('\n').unwrap_or(change.value());
            text.push_str(&ui.paint(&format!("{sign}{line}"), style));
            text.push('\n');
            if change.missing_newline() {
                text.push_str("\\ No newline at end of file\n");
            }
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    fn shown(entries: &[(&str, Value)]) -> String {
        let entry: Map = entries.iter().map(|(key, value)| (Value::from(*key), value.clone())).collect();
        text(&Value::list(vec![entry.into()]), 3, &Ui::memory())
    }

    #[test]
    fn texts_are_compared_line_by_line() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let after = "a\nb\nX\nd\ne\nf\ng\nh2";
        let header = Value::from("/etc/t");
        let expected = "\
--- before: /etc/t
+++ after: /etc/t
@@ -1,8 +1,8 @@
 a
 b
-c
+X
 d
 e
 f
 g
-h
+h2
\\ No newline at end of file

";
        let entries = [
            ("before_header", header.clone()),
            ("after_header", header),
            ("before", before.into()),
            ("after", after.into()),
        ];
        assert_eq!(shown(&entries), expected);
    }

    #[test]
    fn a_new_file_has_no_header_before() {
        let entries = [
            ("before", "".into()),
            ("before_header", "".into()),
            ("after_header", "/t".into()),
            ("after", "a\n".into()),
        ];
        assert_eq!(shown(&entries), "--- before\n+++ after: /t\n@@ -0,0 +1 @@\n+a\n\n");
    }

    #[test]
    fn maps_are_compared_as_json() {
        let state = |mode: &str| Value::map(object([("path", "/t".into()), ("mode", mode.into())]));
        let expected = "\
--- before
+++ after
@@ -1,4 +1,4 @@
 {
-    \"mode\": \"0644\",
+    \"mode\": \"0600\",
     \"path\": \"/t\"
 }

";
        assert_eq!(shown(&[("before", state("0644")), ("after", state("0600"))]), expected);
    }

    #[test]
    fn equal_texts_show_nothing() {
        assert_eq!(shown(&[("before", "a".into()), ("after", "a".into())]), "");
    }
}
