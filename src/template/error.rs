//! What goes wrong in a template: the kind, Ansible's words for it, and where.

use std::fmt;
use std::sync::Arc;

use super::tree::Span;
use crate::value::Interruption;

pub type Result<T, E = TemplateError> = std::result::Result<T, E>;

/// An error of a template.
#[derive(Debug, Clone)]
pub struct TemplateError {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    kind: TemplateErrorKind,
    message: String,
    place: Option<TemplatePlace>,
}

/// Where in the template's text: line and column counted from 1, and the range in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePlace {
    /// The template's name, as its caller gave it; empty for an expression or a variable's text.
    pub name: Arc<str>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateErrorKind {
    /// Something without a value was used; `name` is the variable or attribute if known.
    Undefined { name: Option<String> },
    /// A value cannot be had now; not an error of the template.
    Interrupted(Interruption),
    /// The text is no template or expression.
    Syntax,
    /// `mandatory` or `undef()` asked for a value.
    Mandatory,
    /// A template, lookup or included file was not found.
    Missing,
    /// What Ansible says in just these words, which playbooks compare: nothing is put before them.
    AsAnsible,
    /// Everything else: wrong types, values that a filter refuses.
    Failed,
}

impl TemplateError {
    pub fn new(kind: TemplateErrorKind, message: impl Into<String>) -> Self {
        TemplateError { inner: Box::new(Inner { kind, message: message.into(), place: None }) }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(TemplateErrorKind::Failed, message)
    }

    /// An error in just the words of Ansible.
    pub fn as_ansible(message: impl Into<String>) -> Self {
        Self::new(TemplateErrorKind::AsAnsible, message)
    }

    /// What a room below said, with its hints.
    pub fn from_error(error: &crate::error::Error) -> Self {
        let hints: String = error.hints().iter().map(|hint| format!("; {hint}")).collect();
        TemplateError::failed(format!("{}{hints}", error.message()))
    }

    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(TemplateErrorKind::Syntax, message)
    }

    /// The error of whoever uses an undefined value: the value's reason is the message.
    pub fn undefined(reason: &str) -> Self {
        let name = reason.split('\'').rev().nth(1).map(str::to_owned);
        Self::new(TemplateErrorKind::Undefined { name }, reason)
    }

    pub fn kind(&self) -> &TemplateErrorKind {
        &self.inner.kind
    }

    pub fn message(&self) -> &str {
        &self.inner.message
    }

    pub fn place(&self) -> Option<&TemplatePlace> {
        self.inner.place.as_ref()
    }

    /// The interruption, if this is one.
    pub fn interruption(&self) -> Option<&Interruption> {
        match &self.inner.kind {
            TemplateErrorKind::Interrupted(interruption) => Some(interruption),
            _ => None,
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self.inner.kind, TemplateErrorKind::Undefined { .. })
    }

    /// Notes the place, unless an inner node already has.
    #[must_use]
    pub fn at(mut self, name: &Arc<str>, span: Span) -> Self {
        if self.inner.place.is_none() {
            self.inner.place = Some(TemplatePlace { name: Arc::clone(name), span });
        }
        self
    }

    /// Forgets the place: it was in another text than the one that is reported.
    #[must_use]
    pub fn without_place(mut self) -> Self {
        self.inner.place = None;
        self
    }

    /// Puts words before the message: `prefix: message`.
    #[must_use]
    pub fn context(mut self, prefix: &str) -> Self {
        self.inner.message = format!("{prefix}: {}", self.inner.message);
        self
    }
}

impl From<Interruption> for TemplateError {
    fn from(interruption: Interruption) -> Self {
        let message = match &interruption {
            Interruption::Pending => "the value is not known before an earlier task is done".to_owned(),
            Interruption::Barrier => "the value is not known before other hosts have reached this task".to_owned(),
            Interruption::Unknown(reason) | Interruption::Failed(reason) => reason.clone(),
        };
        Self::new(TemplateErrorKind::Interrupted(interruption), message)
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.inner.place
            && !place.name.is_empty()
        {
            write!(formatter, "{}:{}:{}: ", place.name, place.span.line, place.span.column)?;
        }
        formatter.write_str(&self.inner.message)
    }
}

impl std::error::Error for TemplateError {}

impl From<crate::python_regex::RegexError> for TemplateError {
    fn from(error: crate::python_regex::RegexError) -> Self {
        TemplateError::failed(error.to_string())
    }
}
