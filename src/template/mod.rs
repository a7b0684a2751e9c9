//! Jinja2 as Ansible uses it: templates, expressions and conditions over our own values.
//!
//! The tree is minijinja's parser's; the evaluator, filters, tests and lookups are ours.

#[cfg(test)]
mod behaviour;
mod call;
mod datetime;
mod error;
mod escapes;
mod eval;
mod filters;
mod globals;
mod jmespath;
mod lookups;
mod methods;
mod parse;
mod python;
mod results;
mod search;
mod tests;
mod tree;
mod used;
mod version;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use error::{Result, TemplateError, TemplateErrorKind, TemplatePlace};
use eval::Evaluator;
pub use filters::{documentation as filter_documentation, exists as filter_exists};
pub use lookups::{documentation as lookup_documentation, lookup, lookup_names};
pub use parse::Syntax;
pub use results::Results;
pub use search::{SearchPath, expand_home};
pub use tests::{documentation as test_documentation, exists as test_exists};
pub use tree::Span;
pub use used::{NameKind, UsedName, names_used, names_used_in_file};

use crate::value::{Interruption, Map, Object, Text, Value};
use crate::vault::Keyring;

/// What is said of a variable that hides a function of templates; `None` if it hides none.
pub fn reserved_name(name: &str) -> Option<String> {
    globals::find(name).map(|_| format!("Found variable using reserved name: {name}"))
}

/// Where a template finds its variables. Values are raw: text in them that is a template
/// is rendered by whoever uses it (see [`Value::has_templates`]).
pub trait Scope: Send + Sync {
    /// The variable `name`; `None` if there is none.
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption>;
    /// The names of all variables, for `vars` and the `varnames` lookup.
    fn names(&self) -> Vec<String>;
    /// Asked before the names are: interrupted while there may still come more.
    fn names_are_settled(&self) -> Result<(), Interruption> {
        Ok(())
    }
    /// Asked before files of the controller are looked at: interrupted while something may still change them.
    fn controller_is_settled(&self) -> Result<(), Interruption> {
        Ok(())
    }
}

/// Variables whose values use each other are rendered no deeper than this.
const DEPTH_LIMIT: usize = 40;

/// What an evaluation can see: variables, search paths, and a place for warnings.
///
/// Cheap to clone. The entries of a [`Value::Object`] that hold templates are rendered here as
/// well; an object whose entries belong to another host renders them itself.
#[derive(Clone)]
pub struct Context {
    pub scope: Arc<dyn Scope>,
    pub search: Arc<SearchPath>,
    pub warnings: Warnings,
    /// The subdirectory that `first_found` looks into first; `files` but for tasks that want another.
    pub file_kind: &'static str,
    /// Opens what is encrypted with Ansible Vault.
    pub keyring: Arc<Keyring>,
    /// What templates of playbooks give.
    pub results: Results,
    /// The settings of the run by Ansible's names, for the lookup `config`.
    pub settings: Arc<Map>,
    /// The texts being rendered around this one.
    trail: Option<Arc<Trail>>,
    /// Variables already rendered in this evaluation.
    rendered: Option<Arc<Rendered>>,
    /// True while an expression is evaluated that came out of a template, perhaps from a host's
    /// output: it must not run commands or read files of the controller.
    from_data: bool,
    /// Steps that are left, if they are counted.
    budget: Option<Arc<AtomicU64>>,
}

/// What evaluations want to be said, each thing once. Clones share what they collect.
#[derive(Clone, Default)]
pub struct Warnings {
    messages: Arc<Mutex<Vec<String>>>,
}

impl Warnings {
    pub fn add(&self, message: impl Into<String>) {
        let message = message.into();
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if !messages.contains(&message) {
            messages.push(message);
        }
    }

    /// Takes all messages, in the order they came.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Trail {
    name: Arc<str>,
    text: Text,
    depth: usize,
    outer: Option<Arc<Trail>>,
}

#[derive(Default)]
struct Rendered {
    values: Mutex<HashMap<Box<str>, Value>>,
}

/// All filters, tests and lookups: the names of each, and its parameters.
pub fn signatures() -> Vec<(NameKind, call::Names)> {
    let filters = filters::signatures().map(|names| (NameKind::Filter, names));
    let tests = tests::signatures().map(|names| (NameKind::Test, names));
    filters.chain(tests).chain(lookups::signatures().map(|names| (NameKind::Lookup, names))).collect()
}

/// What a text is to be checked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Expression,
    Template,
}

/// Checks a text without evaluating it.
pub fn check_syntax(text: &str, kind: Kind) -> Result<()> {
    match kind {
        Kind::Expression if crate::value::has_template_marks(text) => parse::playbook_text(text).map(|_| ()),
        Kind::Expression => parse::expression(text).map(|_| ()),
        Kind::Template => parse::playbook_text(text).map(|_| ()),
    }
}

impl Context {
    pub fn new(scope: Arc<dyn Scope>, search: Arc<SearchPath>, warnings: Warnings) -> Self {
        Context {
            scope,
            search,
            warnings,
            file_kind: "files",
            keyring: Arc::default(),
            results: Results::default(),
            settings: Arc::default(),
            trail: None,
            rendered: None,
            from_data: false,
            budget: None,
        }
    }

    /// The value with all templates in it rendered, in lists, maps and their keys too. A text that is
    /// exactly one `{{ expression }}` gives that expression's type, any other gives text.
    pub fn value(&self, raw: &Value) -> Result<Value> {
        let context = self.fresh();
        if let Value::Str(text) = raw
            && text.is_template()
        {
            let value = context.evaluate_text(text)?;
            call::check_defined_loosely(&value)?;
            return Ok(settled(value));
        }
        let value = context.render_within(raw.clone())?;
        call::check_defined(&value)?;
        Ok(value)
    }

    /// The text of a template file, rendered. `name` is its path; includes are looked for beside it.
    pub fn text(&self, template: &str, name: &str) -> Result<String> {
        self.text_with(template, name, &Syntax::file())
    }

    /// The same with another syntax; a `#jinja2:` line in the text goes before it.
    pub fn text_with(&self, text: &str, name: &str, syntax: &Syntax) -> Result<String> {
        let template = parse::file_text(text, name, syntax)?;
        let context = self.fresh();
        let result = Evaluator::new(&context, &template.name).template_text(&template)?;
        Ok(with_final_newlines(text, result))
    }

    /// An expression without braces.
    pub fn expression(&self, expression: &str) -> Result<Value> {
        let context = self.fresh();
        let value = context.evaluate_expression(expression)?;
        call::check_defined_loosely(&value)?;
        Ok(settled(value))
    }

    /// A condition (`when`, `failed_when`, …): a flag, an expression, or a list that must all hold.
    ///
    /// Any value counts by its truth, and `{{ }}` is rendered first, as Ansible did before 2.19; what
    /// 2.19 refuses gives a warning.
    pub fn condition(&self, condition: &Value) -> Result<bool> {
        match condition {
            Value::Bool(flag) => Ok(*flag),
            Value::Null => Ok(true),
            Value::List(conditions) => {
                for condition in conditions.iter() {
                    if !self.condition(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Value::Str(text) => self.text_condition(text),
            Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
            other => {
                self.warnings.add(format!(
                    "the condition `{}` is of type {}, not a boolean",
                    other.to_text(),
                    other.type_name()
                ));
                Ok(other.is_truthy())
            }
        }
    }

    fn text_condition(&self, text: &Text) -> Result<bool> {
        let written = text.as_str().trim();
        if written.is_empty() {
            return Ok(true);
        }
        let context = self.fresh();
        let value = if text.is_template() {
            self.warnings.add(format!(
                "conditional statements should not include jinja2 templating delimiters such as {{{{ }}}} or {{% %}}. \
                 Found: {written}"
            ));
            match context.evaluate_text(text)? {
                // what was rendered is an expression in turn
                Value::Str(rendered) => {
                    let from_data = !rendered.is_written();
                    let rendered = rendered.as_str().trim();
                    if rendered.is_empty() {
                        return Ok(false);
                    }
                    Context { from_data, ..context }.evaluate_expression(rendered)?
                }
                other => other,
            }
        } else if text.is_written() {
            context.evaluate_condition(written)?
        } else {
            Context { from_data: true, ..context }.evaluate_condition(written)?
        };
        match &value {
            Value::Bool(flag) => Ok(*flag),
            Value::Undefined(reason) if !reason.is_empty() => Err(TemplateError::undefined(reason)),
            other => {
                self.warnings.add(format!(
                    "the condition `{written}` gave a value of type {}, not a boolean; it counts as {}",
                    other.type_name(),
                    other.is_truthy()
                ));
                Ok(other.is_truthy())
            }
        }
    }

    /// The same with more variables, which hide those of the same name.
    pub fn with_variables(&self, variables: Map) -> Context {
        let scope = Arc::new(Layer { variables, below: Arc::clone(&self.scope) });
        Context { scope, rendered: None, ..self.clone() }
    }

    /// The same for a task whose files are of another kind: `templates`, `vars` or `tasks`.
    pub fn with_file_kind(&self, file_kind: &'static str) -> Context {
        Context { file_kind, ..self.clone() }
    }

    /// The same with another search path.
    pub fn with_search(&self, search: Arc<SearchPath>) -> Context {
        Context { search, ..self.clone() }
    }

    /// The same with passwords for what is encrypted.
    pub fn with_keyring(&self, keyring: Arc<Keyring>) -> Context {
        Context { keyring, ..self.clone() }
    }

    /// The same with other results of templates.
    pub fn with_results(&self, results: Results) -> Context {
        Context { results, ..self.clone() }
    }

    /// The same with settings of the run.
    pub fn with_settings(&self, settings: Arc<Map>) -> Context {
        Context { settings, ..self.clone() }
    }

    /// The value with all templates in it rendered; those within it that use what is undefined become undefined.
    pub fn value_with_undefined(&self, raw: &Value) -> Result<Value> {
        self.fresh().render_within(raw.clone())
    }

    /// The same for texts that nobody vouches for: no commands, no files, and an error after so many steps of work. A
    /// step is an expression, or an item or a few characters of what an operator, a filter or a call gives.
    pub fn for_unknown_text(&self, steps: u64) -> Context {
        Context { from_data: true, budget: Some(Arc::new(AtomicU64::new(steps))), ..self.clone() }
    }

    /// Takes steps off the budget.
    fn spend(&self, steps: u64) -> Result<()> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let left = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(steps));
        left.map(|_| ()).map_err(|_| TemplateError::failed("the text asks for too much work"))
    }

    /// Ready for an evaluation: with a memory of rendered variables, unless within one.
    fn fresh(&self) -> Context {
        Context { rendered: Some(self.rendered.clone().unwrap_or_default()), ..self.clone() }
    }

    fn depth(&self) -> usize {
        self.trail.as_ref().map_or(0, |trail| trail.depth)
    }

    fn evaluate_text(&self, text: &Text) -> Result<Value> {
        if let Some(place) = text.sealed_at() {
            return self.unseal(text, place);
        }
        // the last newline is not part of what is evaluated: `{{ 7 }}` with one is a number too; of a text it is put back
        let written = text.as_str().strip_suffix('\n').unwrap_or(text.as_str());
        let template = parse::playbook_text(written)?;
        let (pieces, value) = Evaluator::new(self, &template.name).template_value(&template)?;
        let keeps_types = !self.results.is_old();
        Ok(match self.results.of_template(&template, pieces, value) {
            // a lone expression has the type that it gives
            Value::Str(result)
                if keeps_types && !template.is_lone_expression() && literal(result.as_str()).is_some() =>
            {
                let result = with_final_newlines_of(text, result);
                let spelled = literal(&result).unwrap_or_default();
                Value::Str(Text::spelling(result, spelled))
            }
            Value::Str(result) if text.as_str().ends_with('\n') => Value::from(with_final_newlines_of(text, result)),
            result => result,
        })
    }

    /// What is encrypted, decrypted: plain data, even if it has template marks, as with Ansible.
    fn unseal(&self, text: &Text, place: &str) -> Result<Value> {
        let plain = self.keyring.decrypt_text(text.as_str()).map_err(|error| {
            TemplateError::from_error(&error).context(&format!("attempt to use undecryptable variable: {place}"))
        })?;
        Ok(Value::Str(Text::opened(plain, text.as_str())))
    }

    fn evaluate_expression(&self, text: &str) -> Result<Value> {
        let expression = parse::expression(text)?;
        Evaluator::new(self, &Arc::from("")).expression_value(&expression)
    }

    fn evaluate_condition(&self, text: &str) -> Result<Value> {
        let expression = parse::condition(text)?;
        Evaluator::new(self, &Arc::from("")).expression_value(&expression)
    }

    /// A template text within the value of a variable: undefined, with the reason, if it uses what is undefined.
    fn render(&self, text: &Text) -> Result<Value> {
        self.render_named("", text)
    }

    fn render_named(&self, name: &str, text: &Text) -> Result<Value> {
        let context = self.enter(name, text)?;
        match context.evaluate_text(text) {
            Err(error) if error.is_undefined() => Ok(Value::undefined(error.message())),
            Err(error) if name.is_empty() || error.interruption().is_some() => Err(error.without_place()),
            Err(error) => Err(error.without_place().context(&format!("in the variable `{name}`"))),
            Ok(value) => Ok(value),
        }
    }

    /// Steps into a text, refusing one that is being rendered already.
    fn enter(&self, name: &str, text: &Text) -> Result<Context> {
        let mut step = self.trail.as_ref();
        while let Some(trail) = step {
            if trail.text.as_str() == text.as_str() && &*trail.name == name {
                let names = self.trail_names(name);
                return Err(TemplateError::failed(format!("recursive loop detected in template: {names}")));
            }
            step = trail.outer.as_ref();
        }
        let depth = self.depth() + 1;
        if depth > DEPTH_LIMIT {
            let names = self.trail_names(name);
            return Err(TemplateError::failed(format!("variables use each other too deeply: {names}")));
        }
        let trail = Trail { name: Arc::from(name), text: text.clone(), depth, outer: self.trail.clone() };
        Ok(Context { trail: Some(Arc::new(trail)), from_data: false, ..self.clone() })
    }

    fn trail_names(&self, last: &str) -> String {
        let mut names = vec![last.to_owned()];
        let mut step = self.trail.as_ref();
        while let Some(trail) = step {
            names.push(trail.name.to_string());
            step = trail.outer.as_ref();
        }
        names.retain(|name| !name.is_empty());
        names.reverse();
        // the circle alone, not what led to it
        if let Some(start) = names.iter().position(|name| name == last) {
            names.drain(..start);
        }
        if names.is_empty() {
            return self.trail.as_ref().map(|trail| trail.text.as_str().to_owned()).unwrap_or_default();
        }
        names.join(" -> ")
    }

    /// A variable: a template text is rendered, what a list or map holds is not yet.
    fn variable(&self, name: &str) -> Result<Option<Value>> {
        let memory = |rendered: &Arc<Rendered>| {
            rendered.values.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
        };
        if let Some(value) = self.rendered.as_ref().and_then(memory) {
            return Ok(Some(value));
        }
        let value = match self.scope.get(name)? {
            Some(Value::Str(text)) if text.is_template() => self.render_named(name, &text)?,
            Some(value @ (Value::List(_) | Value::Map(_))) => value,
            Some(value) => return Ok(Some(value)),
            None if name == "vars" => Value::Object(Arc::new(Variables { context: self.clone() })),
            None => return Ok(None),
        };
        if let Some(rendered) = &self.rendered {
            rendered.values.lock().unwrap_or_else(PoisonError::into_inner).insert(Box::from(name), value.clone());
        }
        Ok(Some(value))
    }

    /// Renders every template text in a value; those that use what is undefined become undefined.
    fn render_within(&self, value: Value) -> Result<Value> {
        match &value {
            Value::Str(text) if text.is_template() => self.render(text),
            Value::List(items) if value.has_templates() => {
                let items = items.iter().map(|item| self.render_within(item.clone())).collect::<Result<_>>()?;
                Ok(Value::list(items))
            }
            Value::Map(map) if value.has_templates() => {
                let mut rendered = Map::with_capacity(map.len());
                for (key, item) in map.iter() {
                    let key = match self.render_within(key.clone())? {
                        Value::Undefined(reason) => return Err(TemplateError::undefined(&reason)),
                        key => key,
                    };
                    rendered.insert(key, self.render_within(item.clone())?);
                }
                Ok(Value::map(rendered))
            }
            _ => Ok(value),
        }
    }

    /// The file that an include of `name` from the template `from` means.
    fn find_template(&self, name: &str, from: &str) -> Option<PathBuf> {
        let beside = Path::new(from).parent().filter(|_| !from.is_empty()).map(|directory| directory.join(name));
        match beside {
            Some(path) if path.is_file() => Some(path),
            _ => self.search.find("templates", name).filter(|path| path.is_file()),
        }
    }
}

/// The list or map that a text spells in Python's or JSON's way: `['a', 1]`, `{"a": true}`.
///
/// Before 2.19, Ansible took such results of templates for the value; who needs a list or map and
/// is given a text may ask here. `None` if the text is anything else, or more than literals.
pub fn literal(text: &str) -> Option<Value> {
    let text = text.trim();
    let brackets = (text.starts_with('[') && text.ends_with(']')) || (text.starts_with('{') && text.ends_with('}'));
    if !brackets {
        return None;
    }
    parse::literal(text)
}

/// The result with its final newlines, if the text of the template has some.
fn with_final_newlines_of(template: &Text, result: Text) -> String {
    let result = result.as_str().to_owned();
    if template.as_str().ends_with('\n') { with_final_newlines(template.as_str(), result) } else { result }
}

/// As many newlines at the end as the template has: those after a final block tag are kept too.
fn with_final_newlines(template: &str, mut result: String) -> String {
    let count = |text: &str| text.len() - text.trim_end_matches('\n').len();
    let missing = count(template).saturating_sub(count(&result));
    result.extend(std::iter::repeat_n('\n', missing));
    result
}

/// The inline `if` without `else` that took the other way reads as an empty text.
fn settled(value: Value) -> Value {
    match value {
        Value::Undefined(_) => Value::from(""),
        other => other,
    }
}

/// Variables over a scope.
struct Layer {
    variables: Map,
    below: Arc<dyn Scope>,
}

impl Scope for Layer {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        match self.variables.get(name) {
            Some(value) => Ok(Some(value.clone())),
            None => self.below.get(name),
        }
    }

    fn names_are_settled(&self) -> Result<(), Interruption> {
        self.below.names_are_settled()
    }

    fn names(&self) -> Vec<String> {
        let mut names = self.below.names();
        for name in self.variables.keys().filter_map(Value::as_str) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// `vars`: every variable by name.
struct Variables {
    context: Context,
}

impl Object for Variables {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        match key.as_str() {
            Some(name) => self.context.scope.get(name),
            None => Ok(None),
        }
    }

    fn keys(&self) -> Vec<Value> {
        self.context.scope.names().into_iter().map(Value::from).collect()
    }

    fn keys_are_settled(&self) -> Result<(), Interruption> {
        self.context.scope.names_are_settled()
    }
}
