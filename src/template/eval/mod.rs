//! Walks the tree: statements here, expressions, calls and operators in the files beside.

mod access;
pub(in crate::template) use access::{missing_attribute, position, slice_positions};
mod calls;
pub(in crate::template) use calls::explain;
mod changes;
mod expression;
pub mod objects;
pub mod operators;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use changes::Changes;
use objects::{Frame, Function, Loop, Namespace};

use super::call::{iterate, plain, text_of};
use super::error::{Result, TemplateError, TemplateErrorKind};
use super::parse::{self, Syntax};
use super::tree::{Expression, For, Statement, StatementKind, Target, Template};
use super::{Context, call};
use crate::value::{Text, Value};

/// Statements, calls and includes nested deeper than this are taken for an endless recursion.
const DEPTH_LIMIT: usize = 60;

/// What a statement says about the loop around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Continue,
    Break,
}

/// The output of a template: one piece keeps its type, more are text.
#[derive(Default)]
struct Output {
    pieces: usize,
    first: Value,
    text: String,
    /// A piece is data: not what the user wrote.
    has_data: bool,
}

impl Output {
    fn push(&mut self, value: Value) -> Result<()> {
        self.pieces += 1;
        self.has_data |= match &value {
            Value::Str(text) => !text.is_written(),
            Value::List(_) | Value::Map(_) | Value::Object(_) | Value::Undefined(_) => true,
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => false,
        };
        match self.pieces {
            1 => self.first = value,
            pieces => {
                if pieces == 2 {
                    let first = std::mem::take(&mut self.first);
                    push_text(&mut self.text, &first)?;
                }
                push_text(&mut self.text, &value)?;
            }
        }
        Ok(())
    }

    fn push_text(&mut self, text: &Arc<str>) -> Result<()> {
        if self.pieces == 0 {
            self.push(Value::Str(Text::made_of_written(Arc::clone(text))))
        } else {
            if self.pieces == 1 {
                let first = std::mem::take(&mut self.first);
                push_text(&mut self.text, &first)?;
            }
            self.pieces += 1;
            self.text.push_str(text);
            Ok(())
        }
    }

    /// The single piece with its type, or all pieces as one text.
    fn into_value(self) -> Value {
        match self.pieces {
            0 => Value::from(""),
            1 => self.first,
            _ if self.has_data => Value::from(self.text),
            _ => Value::Str(Text::made_of_written(self.text)),
        }
    }

    fn into_text(mut self) -> Result<String> {
        if self.pieces == 1 {
            push_text(&mut self.text, &self.first)?;
        }
        Ok(self.text)
    }
}

/// Appends a value as a template prints it: `None` and the marker of `omit` print as nothing.
fn push_text(out: &mut String, value: &Value) -> Result<()> {
    if !value.is_null() && !value.as_str().is_some_and(|text| text.starts_with(OMITTED)) {
        out.push_str(&text_of(value)?);
    }
    Ok(())
}

/// How the marker of `omit` begins.
const OMITTED: &str = "__omit_place_holder__";

/// One evaluation of a template or expression.
pub struct Evaluator<'c> {
    context: &'c Context,
    template: Arc<str>,
    frames: Vec<Arc<Frame>>,
    /// Frames and modules that hold macros, hence themselves: emptied at the end.
    circles: Vec<Arc<Frame>>,
    modules: Vec<Arc<Namespace>>,
    changes: Changes,
    /// The definitions of each block, the most derived first.
    blocks: HashMap<Arc<str>, Vec<Arc<Vec<Statement>>>>,
    depth: usize,
}

impl Drop for Evaluator<'_> {
    fn drop(&mut self) {
        for frame in &self.circles {
            frame.clear();
        }
        for module in &self.modules {
            module.clear();
        }
    }
}

/// The attribute of a value, as the filter `attr` gives it.
pub fn attribute_of(context: &Context, value: &Value, name: &str) -> Result<Value> {
    Evaluator::new(context, &Arc::from("")).own_attribute(value, name)
}

impl<'c> Evaluator<'c> {
    pub fn new(context: &'c Context, template: &Arc<str>) -> Self {
        Evaluator {
            context,
            template: Arc::clone(template),
            frames: vec![Arc::default()],
            circles: Vec::new(),
            modules: Vec::new(),
            changes: Changes::default(),
            blocks: HashMap::new(),
            depth: 0,
        }
    }

    /// A whole template: how many pieces it has, and its single piece with its type, or text.
    pub fn template_value(&mut self, template: &Template) -> Result<(usize, Value)> {
        let mut out = Output::default();
        self.run_template(template, &mut out)?;
        let pieces = out.pieces;
        let value = out.into_value();
        self.finish(value).map(|value| (pieces, value))
    }

    /// A whole template as text.
    pub fn template_text(&mut self, template: &Template) -> Result<String> {
        let mut out = Output::default();
        self.run_template(template, &mut out)?;
        out.into_text()
    }

    /// An expression by itself; may be undefined.
    pub fn expression_value(&mut self, expression: &Expression) -> Result<Value> {
        let value = self.evaluate(expression)?;
        let value = self.deep(value)?;
        self.finish(value)
    }

    /// What a macro of the template gives; `None` if it has none of this name.
    pub fn macro_value(
        &mut self,
        template: &Template,
        name: &str,
        positional: Vec<Value>,
        named: Vec<(Arc<str>, Value)>,
    ) -> Result<Option<Value>> {
        self.run_template(template, &mut Output::default())?;
        let Some(frame) = self.frames.last().cloned() else { return Ok(None) };
        let Some(function) = frame.get(name) else { return Ok(None) };
        let value = self.call_value(&function, (positional, named), None)?;
        let value = self.deep(value)?;
        self.finish(value).map(Some)
    }

    /// What leaves the evaluation: plain data, functions as their text.
    fn finish(&mut self, value: Value) -> Result<Value> {
        Ok(match value {
            Value::Object(object) => match object.describe() {
                Some(text) => Value::from(text),
                None if object.as_any().is_some() => plain(&Value::Object(object))?,
                None => Value::Object(object),
            },
            other => other.into_data(),
        })
    }

    fn run_template(&mut self, template: &Template, out: &mut Output) -> Result<()> {
        let parent = template.body.iter().find_map(|statement| match &statement.kind {
            StatementKind::Extends(parent) => Some((parent, statement)),
            _ => None,
        });
        self.collect_blocks(&template.body);
        let Some((parent, statement)) = parent else {
            self.run(&template.body, out)?;
            return Ok(());
        };
        // only definitions of a derived template count, what it prints outside of blocks does not
        let mut ignored = Output::default();
        for statement in &template.body {
            match &statement.kind {
                StatementKind::Block { .. } | StatementKind::Text(_) | StatementKind::Extends(_) => {}
                _ => {
                    self.run_one(statement, &mut ignored)?;
                }
            }
        }
        let parent = self.load(parent, false).map_err(|error| error.at(&self.template, statement.span))?;
        if let Some(parent) = parent {
            self.within(&parent, |evaluator| evaluator.run_template(&parent, out))?;
        }
        Ok(())
    }

    fn collect_blocks(&mut self, body: &[Statement]) {
        for statement in body {
            match &statement.kind {
                StatementKind::Block { name, body } => {
                    self.blocks.entry(Arc::clone(name)).or_default().push(Arc::clone(body));
                    self.collect_blocks(body);
                }
                StatementKind::If { then, otherwise, .. } => {
                    self.collect_blocks(then);
                    self.collect_blocks(otherwise);
                }
                StatementKind::For(statement) => self.collect_blocks(&statement.body),
                StatementKind::With { body, .. } | StatementKind::Scoped(body) => self.collect_blocks(body),
                _ => {}
            }
        }
    }

    /// Runs with another template's name for errors and relative includes.
    fn within<T>(&mut self, template: &Template, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.deeper()?;
        let outer = std::mem::replace(&mut self.template, Arc::clone(&template.name));
        let result = work(self);
        self.template = outer;
        self.depth -= 1;
        result
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth + self.context.depth() > DEPTH_LIMIT {
            return Err(TemplateError::failed(
                "macros, blocks or includes are nested too deeply: an endless recursion?",
            ));
        }
        Ok(())
    }

    /// Loads the template that an include, import or extends names (the first that exists of a list).
    fn load(&mut self, name: &Expression, ignore_missing: bool) -> Result<Option<Arc<Template>>> {
        if self.context.from_data {
            return Err(TemplateError::failed("a text of unknown origin must not use other templates"));
        }
        let value = self.evaluate(name)?;
        let value = self.deep(value)?;
        let names = match &value {
            Value::List(names) => names.to_vec(),
            other => vec![other.clone()],
        };
        let mut wanted = Vec::new();
        for name in &names {
            let name = text_of(name)?;
            if let Some(path) = self.context.find_template(&name, &self.template) {
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| TemplateError::failed(format!("cannot read `{}`: {error}", path.display())))?;
                // only the template that is rendered itself keeps the newline at its end
                let text = text.strip_suffix('\n').unwrap_or(&text);
                return parse::file_text(text, &path.to_string_lossy(), &Syntax::file()).map(Some);
            }
            wanted.push(format!("`{name}`"));
        }
        if ignore_missing {
            return Ok(None);
        }
        let message =
            format!("the template {} was not found beside this one nor on the search path", wanted.join(", "));
        Err(TemplateError::new(TemplateErrorKind::Missing, message))
    }

    fn scoped<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.frames.push(Arc::default());
        let result = work(self);
        self.frames.pop();
        result
    }

    fn define(&mut self, name: &Arc<str>, value: Value) {
        if let Some(frame) = self.frames.last() {
            frame.set(name, value);
        }
    }

    fn run(&mut self, body: &[Statement], out: &mut Output) -> Result<Flow> {
        for statement in body {
            let flow = self.run_one(statement, out)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn run_one(&mut self, statement: &Statement, out: &mut Output) -> Result<Flow> {
        match &statement.kind {
            StatementKind::Text(text) => out.push_text(text).map(|()| Flow::Next),
            StatementKind::Emit(expression) => self.emit(expression, out).map(|()| Flow::Next),
            StatementKind::If { condition, then, otherwise } => {
                if self.is_true(condition)? {
                    self.run(then, out)
                } else {
                    self.run(otherwise, out)
                }
            }
            StatementKind::Continue => Ok(Flow::Continue),
            StatementKind::Break => Ok(Flow::Break),
            _ => {
                let template = Arc::clone(&self.template);
                self.run_other(statement, out).map_err(|error| error.at(&template, statement.span))
            }
        }
    }

    fn emit(&mut self, expression: &Expression, out: &mut Output) -> Result<()> {
        let value = self.evaluate(expression)?;
        let value = self.deep(value)?;
        self.check(&value, expression)?;
        if let Value::Str(text) = &value {
            self.context.spend(text.as_str().len() as u64 / 16)?;
        }
        out.push(value).map_err(|error| error.at(&self.template, expression.span))
    }

    /// Refuses undefined values, with the place of the expression that gave them.
    fn check(&self, value: &Value, expression: &Expression) -> Result<()> {
        match value {
            Value::Undefined(reason) if reason.is_empty() => Ok(()),
            other => call::check_defined(other).map_err(|error| error.at(&self.template, expression.span)),
        }
    }

    fn is_true(&mut self, expression: &Expression) -> Result<bool> {
        let value = self.evaluate(expression)?;
        self.truth(&value).map_err(|error| error.at(&self.template, expression.span))
    }

    fn run_other(&mut self, statement: &Statement, out: &mut Output) -> Result<Flow> {
        match &statement.kind {
            StatementKind::For(node) => return self.run_for(node, out),
            StatementKind::With { assignments, body } => {
                let mut values = Vec::new();
                for (target, value) in assignments {
                    values.push((target, self.evaluate(value)?));
                }
                return self.scoped(|evaluator| {
                    for (target, value) in values {
                        evaluator.assign(target, value)?;
                    }
                    evaluator.run(body, out)
                });
            }
            StatementKind::Scoped(body) => return self.scoped(|evaluator| evaluator.run(body, out)),
            StatementKind::Set { target, value } => {
                let value = self.evaluate(value)?;
                self.assign(target, value)?;
            }
            StatementKind::SetBlock { target, filter, body } => {
                let mut block = Output::default();
                self.scoped(|evaluator| evaluator.run(body, &mut block))?;
                let mut value = block.into_value();
                if let Some(filter) = filter {
                    value = self.filter_block(filter, value)?;
                }
                self.assign(target, value)?;
            }
            StatementKind::FilterBlock { filter, body } => {
                let mut block = Output::default();
                self.scoped(|evaluator| evaluator.run(body, &mut block))?;
                let text = Value::from(block.into_text()?);
                let value = self.filter_block(filter, text)?;
                out.push(value)?;
            }
            StatementKind::Block { name, .. } => self.run_block(name, 0, out)?,
            StatementKind::Include { template, ignore_missing } => {
                if let Some(template) = self.load(template, *ignore_missing)? {
                    let blocks = std::mem::take(&mut self.blocks);
                    let mut included = Output::default();
                    let result = self.scoped(|evaluator| {
                        evaluator.within(&template, |evaluator| evaluator.run_template(&template, &mut included))
                    });
                    self.blocks = blocks;
                    result?;
                    out.push(Value::from(included.into_text()?))?;
                }
            }
            StatementKind::Import { template, name } => {
                let module = self.import(template)?;
                self.assign(name, Value::Object(module))?;
            }
            StatementKind::FromImport { template, names } => {
                let module = self.import(template)?;
                for (name, alias) in names {
                    let key = Value::from(&**name);
                    let value = crate::value::Object::get(module.as_ref(), &key)?.unwrap_or_else(|| {
                        Value::undefined(format!("the imported template does not export the requested name '{name}'"))
                    });
                    self.define(alias, value);
                }
            }
            // handled before anything else of the template
            StatementKind::Extends(_) => {}
            StatementKind::Macro(definition) => {
                let function = self.closure(definition);
                self.define(&definition.name, function);
            }
            StatementKind::CallBlock { call, block } => {
                let caller = self.closure(block);
                let value = self.call_with_caller(call, caller)?;
                let value = self.deep(value)?;
                out.push(value)?;
            }
            StatementKind::Do(expression) => {
                self.evaluate(expression)?;
            }
            StatementKind::Text(_)
            | StatementKind::Emit(_)
            | StatementKind::If { .. }
            | StatementKind::Continue
            | StatementKind::Break => return self.run_one(statement, out),
        }
        Ok(Flow::Next)
    }

    fn closure(&mut self, definition: &Arc<super::tree::Macro>) -> Value {
        if let Some(frame) = self.frames.last() {
            self.circles.push(Arc::clone(frame));
        }
        Function::Macro {
            definition: Arc::clone(definition),
            frames: self.frames.clone(),
            template: Arc::clone(&self.template),
        }
        .value()
    }

    fn import(&mut self, template: &Expression) -> Result<Arc<Namespace>> {
        let module = Arc::new(Namespace::default());
        self.modules.push(Arc::clone(&module));
        let Some(template) = self.load(template, false)? else { return Ok(module) };
        let blocks = std::mem::take(&mut self.blocks);
        let mut ignored = Output::default();
        let result = self.scoped(|evaluator| {
            evaluator.within(&template, |evaluator| evaluator.run_template(&template, &mut ignored))?;
            if let Some(frame) = evaluator.frames.last() {
                for (name, value) in frame.entries() {
                    if !name.starts_with('_') {
                        module.set(&name, value);
                    }
                }
            }
            Ok(())
        });
        self.blocks = blocks;
        result?;
        Ok(module)
    }

    /// Runs one definition of a block: level 0 is the most derived.
    fn run_block(&mut self, name: &Arc<str>, level: usize, out: &mut Output) -> Result<()> {
        let Some(body) = self.blocks.get(name).and_then(|definitions| definitions.get(level)).cloned() else {
            return Err(TemplateError::new(
                TemplateErrorKind::Undefined { name: Some(name.to_string()) },
                format!("there is no parent block called '{name}'"),
            ));
        };
        self.deeper()?;
        let result = self.scoped(|evaluator| {
            let parent = Function::Block { name: Arc::clone(name), level: level + 1 }.value();
            evaluator.define(&Arc::from("super"), parent);
            evaluator.run(&body, out)
        });
        self.depth -= 1;
        result.map(|_| ())
    }

    fn assign(&mut self, target: &Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => self.define(name, value),
            Target::Attribute(object, name) => {
                let object = self.evaluate(object)?;
                let namespace = match &object {
                    Value::Object(object) => object.as_any().and_then(|object| object.downcast_ref::<Namespace>()),
                    Value::Undefined(reason) => return Err(TemplateError::undefined(reason)),
                    _ => None,
                };
                match namespace {
                    Some(namespace) => namespace.set(name, value),
                    None => {
                        return Err(TemplateError::failed(format!(
                            "cannot assign attribute on non-namespace object: `{name}` of a {}",
                            object.type_name()
                        )));
                    }
                }
            }
            Target::Unpack(targets) => {
                let value = self.read(value)?;
                let items = iterate(&value)?;
                if items.len() != targets.len() {
                    return Err(TemplateError::failed(format!(
                        "{} values to unpack (expected {}, got {})",
                        if items.len() > targets.len() { "too many" } else { "not enough" },
                        targets.len(),
                        items.len()
                    )));
                }
                for (target, item) in targets.iter().zip(items) {
                    let item = self.read(item)?;
                    self.assign(target, item)?;
                }
            }
        }
        Ok(())
    }

    fn run_for(&mut self, node: &Arc<For>, out: &mut Output) -> Result<Flow> {
        let iterable = self.evaluate(&node.iterable)?;
        self.iterate_for(node, iterable, 0, out).map_err(|error| error.at(&self.template, node.iterable.span))?;
        Ok(Flow::Next)
    }

    fn iterate_for(&mut self, node: &Arc<For>, iterable: Value, depth: usize, out: &mut Output) -> Result<()> {
        let mut items = iterate(&iterable)?;
        drop(iterable);
        if let Some(condition) = &node.condition {
            let mut chosen = Vec::new();
            for item in items {
                let item = self.read(item)?;
                let keep = self.scoped(|evaluator| {
                    evaluator.assign(&node.target, item.clone())?;
                    evaluator.is_true(condition)
                })?;
                if keep {
                    chosen.push(item);
                }
            }
            items = chosen;
        }
        if items.is_empty() {
            self.scoped(|evaluator| evaluator.run(&node.otherwise, out))?;
            return Ok(());
        }
        let name: Arc<str> = Arc::from("loop");
        let count = items.len();
        let state = Arc::new(Loop {
            items,
            index: AtomicUsize::new(0),
            depth,
            seen: Mutex::new(None),
            recursion: node.recursive.then(|| Arc::clone(node)),
        });
        for index in 0..count {
            self.context.spend(1)?;
            state.index.store(index, Ordering::Relaxed);
            let item = self.read(state.items[index].clone())?;
            let flow = self.scoped(|evaluator| {
                evaluator.define(&name, Value::Object(Arc::clone(&state) as Arc<dyn crate::value::Object>));
                evaluator.assign(&node.target, item)?;
                evaluator.run(&node.body, out)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// The value as it is now: a template text rendered, a changed list or map in its present state.
    fn read(&mut self, value: Value) -> Result<Value> {
        match value {
            Value::Str(ref text) if text.is_template() => self.context.render(text),
            Value::List(_) | Value::Map(_) => Ok(self.changes.resolve(value)),
            other => Ok(other),
        }
    }

    /// The value as it is now, with everything in it.
    fn deep(&mut self, value: Value) -> Result<Value> {
        let value = self.changes.settle(value)?;
        self.context.render_within(value)
    }
}
