//! What a rendered text of a playbook becomes: a value of some type, or text.

use super::parse;
use super::tree::{ExpressionKind, StatementKind, Template};
use crate::value::Value;

/// What a template in a playbook or in a variable gives (the setting `jinja2_native`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Results {
    /// A lone expression keeps its type, anything else is text: Ansible's way since 2.19.
    #[default]
    Typed,
    /// Text; but what spells a list, a map or a boolean becomes that. `jinja2_native = false` in Ansible before 2.19.
    Text,
    /// A lone expression keeps its type; text becomes whatever it spells. `jinja2_native = true` in Ansible before 2.19.
    Spelled,
}

/// Filters whose results stay text, whatever they spell (Ansible's `STRING_TYPE_FILTERS`).
const TEXT_FILTERS: &[&str] = &["string", "to_json", "to_nice_json", "to_yaml", "to_nice_yaml", "ppretty", "json"];

impl Results {
    /// True for the ways of Ansible before 2.19, which also worded some errors otherwise.
    pub fn is_old(self) -> bool {
        self != Results::Typed
    }

    /// The result of a filter, marked if it is to stay text.
    pub(super) fn of_filter(self, filter: &str, value: Value) -> Value {
        match value {
            Value::Str(text) if self.is_old() && TEXT_FILTERS.contains(&filter) => Value::Str(text.kept(false)),
            other => other,
        }
    }

    /// What `value` becomes, which `pieces` pieces of a template gave.
    pub(super) fn of_template(self, template: &Template, pieces: usize, value: Value) -> Value {
        match self {
            Results::Typed => value,
            Results::Text => converted(value, is_variable(template)),
            Results::Spelled if pieces == 0 => Value::Null,
            Results::Spelled => spelled(value),
        }
    }
}

/// Text that spells a list, a map or a boolean becomes that, all else becomes text.
pub(super) fn converted(value: Value, is_variable: bool) -> Value {
    match &value {
        Value::Str(text) if text.is_kept() => value,
        Value::Str(text) => match text.as_str() {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            text if text.starts_with(['{', '[']) => parse::literal(text).unwrap_or(value),
            _ => value,
        },
        Value::Null if !is_variable => Value::from(""),
        Value::Int(_) | Value::Big(_) | Value::Float(_) if !is_variable => Value::from(value.to_text().into_owned()),
        _ => value,
    }
}

/// Text that is a literal of Python becomes its value; one in quotes stays with them.
pub(super) fn spelled(value: Value) -> Value {
    match &value {
        Value::Str(text) if !text.is_kept() && text.envelope().is_none() => {
            let text = text.as_str();
            let is_literal = !text.starts_with(char::is_whitespace) && !has_leading_zeros(text);
            match parse::literal(text).filter(|_| is_literal) {
                Some(Value::Str(_)) | None => value,
                Some(literal) => literal,
            }
        }
        _ => value,
    }
}

/// Python takes `07` for a mistake, so it stays text.
fn has_leading_zeros(text: &str) -> bool {
    let bytes = text.as_bytes();
    let begins =
        |index: usize| index == 0 || !(bytes[index - 1].is_ascii_alphanumeric() || b"._".contains(&bytes[index - 1]));
    bytes.windows(2).enumerate().any(|(index, pair)| pair[0] == b'0' && pair[1].is_ascii_digit() && begins(index))
}

/// True for `{{ name }}` and nothing else: such a number stays one.
fn is_variable(template: &Template) -> bool {
    match template.body.as_slice() {
        [statement] => matches!(&statement.kind, StatementKind::Emit(expression)
            if matches!(&*expression.kind, ExpressionKind::Variable(_))),
        _ => false,
    }
}
