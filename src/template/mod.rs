//! Jinja2 as Ansible uses it: templates, expressions and conditions over our own values.
//!
//! The tree is minijinja's parser's; the evaluator, filters, tests and lookups are ours.

use crate::value::{Interruption, Value};

/// Where a template finds its variables. Values are raw: text in them that is a template
/// is rendered by whoever uses it (see [`Value::has_templates`]).
pub trait Scope: Send + Sync {
    /// The variable `name`; `None` if there is none.
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption>;
    /// The names of all variables, for `vars` and the `varnames` lookup.
    fn names(&self) -> Vec<String>;
}

/// Placeholder until the evaluator is merged.
#[derive(Clone)]
pub struct Context {
    pub scope: std::sync::Arc<dyn Scope>,
}
