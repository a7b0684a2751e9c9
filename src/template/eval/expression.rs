//! Expressions.

use std::sync::Arc;

use super::objects::Function;
use super::{Evaluator, operators};
use crate::template::call::{as_map, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::tree::{Argument, Expression, ExpressionKind, Operator};
use crate::template::{filters, globals, tests};
use crate::value::{Map, Value};

/// Arguments of a call: positional, then named.
pub(super) type Arguments = (Vec<Value>, Vec<(Arc<str>, Value)>);

/// What the making of a value costs of a budget.
fn steps_of(expression: &Expression, value: &Value) -> u64 {
    let made = matches!(
        &*expression.kind,
        ExpressionKind::Binary(..) | ExpressionKind::Filter { .. } | ExpressionKind::Call(_)
    );
    1 + match value {
        Value::Str(text) if made => text.as_str().len() as u64 / 16,
        Value::List(items) if made => items.len() as u64,
        Value::Map(map) if made => map.len() as u64,
        Value::Big(number) if made => number.bits() / 256,
        _ => 0,
    }
}

impl Evaluator<'_> {
    /// The value of an expression. It may be undefined, and may hold texts still to be rendered
    /// deeper inside: whoever needs the whole uses `deep`.
    pub(super) fn evaluate(&mut self, expression: &Expression) -> Result<Value> {
        match &*expression.kind {
            ExpressionKind::Constant(value) => Ok(value.clone()),
            ExpressionKind::Variable(name) => self.variable(name),
            _ => self
                .evaluate_compound(expression)
                .and_then(|value| self.context.spend(steps_of(expression, &value)).map(|()| value))
                .map_err(|error| error.at(&self.template, expression.span)),
        }
    }

    fn evaluate_compound(&mut self, expression: &Expression) -> Result<Value> {
        match &*expression.kind {
            ExpressionKind::Constant(value) => Ok(value.clone()),
            ExpressionKind::Variable(name) => self.variable(name),
            ExpressionKind::Attribute(object, name) => {
                let object = self.evaluate(object)?;
                self.attribute(&object, name)
            }
            ExpressionKind::Item(object, key) => {
                let object = self.evaluate(object)?;
                let key = self.evaluate(key)?;
                self.item(&object, key)
            }
            ExpressionKind::Slice { value, start, stop, step } => {
                let value = self.evaluate(value)?;
                let mut bounds = [None, None, None];
                for (slot, part) in bounds.iter_mut().zip([start, stop, step]) {
                    if let Some(part) = part {
                        *slot = Some(self.evaluate(part)?);
                    }
                }
                self.slice(value, bounds)
            }
            ExpressionKind::Not(operand) => {
                let value = self.evaluate(operand)?;
                self.truth(&value).map(|truth| Value::Bool(!truth))
            }
            ExpressionKind::Negate(operand) => {
                let value = self.evaluate(operand)?;
                operators::negate(&value)
            }
            ExpressionKind::And(left, right) => {
                let left = self.evaluate(left)?;
                if self.truth(&left)? { self.evaluate(right) } else { Ok(left) }
            }
            ExpressionKind::Or(left, right) => {
                let left = self.evaluate(left)?;
                if self.truth(&left)? { Ok(left) } else { self.evaluate(right) }
            }
            ExpressionKind::Binary(operator, left, right) => self.binary(*operator, left, right),
            ExpressionKind::Compare(first, rest) => {
                let mut left = self.evaluate(first)?;
                for (operator, right) in rest {
                    let right = self.evaluate(right)?;
                    if !self.apply(*operator, left, right.clone(), false)?.is_truthy() {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            ExpressionKind::Condition { test, then, otherwise } => {
                if self.is_true(test)? {
                    self.evaluate(then)
                } else {
                    match otherwise {
                        Some(otherwise) => self.evaluate(otherwise),
                        // prints as nothing, is not defined
                        None => Ok(Value::undefined("")),
                    }
                }
            }
            ExpressionKind::Filter { name, value, arguments } => {
                let value = match value {
                    Some(value) => self.evaluate(value)?,
                    None => return Err(TemplateError::failed(format!("the filter `{name}` has no input"))),
                };
                self.filter(name, value, arguments)
            }
            ExpressionKind::Test { name, value, arguments } => {
                let value = self.evaluate(value)?;
                let (mut positional, named) = self.arguments(arguments)?;
                positional.insert(0, self.deep(value)?);
                tests::call(self.context, name, positional, named).map(Value::Bool)
            }
            ExpressionKind::Call(call) => self.call(call),
            ExpressionKind::List(items) | ExpressionKind::Tuple(items) => {
                let items = items.iter().map(|item| self.evaluate(item)).collect::<Result<Vec<_>>>()?;
                Ok(Value::list(items))
            }
            ExpressionKind::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = self.evaluate(key)?;
                    let key = self.map_key(key)?;
                    map.insert(key, self.evaluate(value)?);
                }
                Ok(Value::map(map))
            }
        }
    }

    pub(super) fn map_key(&mut self, key: Value) -> Result<Value> {
        match self.deep(key)? {
            Value::Undefined(reason) => Err(TemplateError::undefined(&reason)),
            key @ (Value::Map(_) | Value::Object(_)) => {
                Err(TemplateError::failed(format!("unhashable type: '{}'", key.type_name())))
            }
            key => Ok(key),
        }
    }

    fn variable(&mut self, name: &Arc<str>) -> Result<Value> {
        for frame in self.frames.iter().rev() {
            if let Some(value) = frame.get(name) {
                return self.read(value);
            }
        }
        if let Some(value) = self.context.variable(name)? {
            return Ok(self.changes.resolve(value));
        }
        if let Some(global) = globals::find(name) {
            return Ok(Function::Global(global).value());
        }
        Ok(Value::undefined(format!("'{name}' is undefined")))
    }

    /// Python's truth; asking an undefined value is an error.
    pub(super) fn truth(&mut self, value: &Value) -> Result<bool> {
        match value {
            Value::Undefined(reason) if !reason.is_empty() => Err(TemplateError::undefined(reason)),
            Value::Object(object) if object.describe().is_some() => Ok(true),
            Value::List(_) | Value::Map(_) => Ok(self.changes.resolve(value.clone()).is_truthy()),
            other => Ok(other.is_truthy()),
        }
    }

    fn binary(&mut self, operator: Operator, left: &Expression, right: &Expression) -> Result<Value> {
        let is_tuple = matches!(&*right.kind, ExpressionKind::Tuple(_));
        let left = self.evaluate(left)?;
        let right = self.evaluate(right)?;
        self.apply(operator, left, right, is_tuple)
    }

    fn apply(&mut self, operator: Operator, left: Value, right: Value, right_is_tuple: bool) -> Result<Value> {
        // `x in hostvars` must not read all of it
        if let (Operator::In | Operator::NotIn, Value::Object(object)) = (operator, &right)
            && object.describe().is_none()
        {
            let key = self.map_key(left)?;
            let found = object.get(&key)?.is_some();
            return Ok(Value::Bool(found == (operator == Operator::In)));
        }
        let left = self.deep(left)?;
        let right = self.deep(right)?;
        operators::binary(operator, &left, &right, right_is_tuple)
    }

    pub(super) fn arguments(&mut self, arguments: &[Argument]) -> Result<Arguments> {
        let mut positional = Vec::with_capacity(arguments.len());
        let mut named = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Positional(value) => {
                    let value = self.evaluate(value)?;
                    positional.push(self.deep(value)?);
                }
                Argument::Named(name, value) => {
                    let value = self.evaluate(value)?;
                    named.push((Arc::clone(name), self.deep(value)?));
                }
                Argument::Spread(value) => {
                    let value = self.evaluate(value)?;
                    let value = self.deep(value)?;
                    positional.extend(crate::template::call::iterate(&value)?);
                }
                Argument::SpreadNamed(value) => {
                    let value = self.evaluate(value)?;
                    let value = self.deep(value)?;
                    let Some(map) = as_map(&value)? else {
                        return Err(TemplateError::failed("argument after ** must be a mapping"));
                    };
                    for (key, value) in map.iter() {
                        named.push((Arc::from(text_of(key)?), value.clone()));
                    }
                }
            }
        }
        Ok((positional, named))
    }

    fn filter(&mut self, name: &str, value: Value, arguments: &[Argument]) -> Result<Value> {
        let (mut positional, named) = self.arguments(arguments)?;
        positional.insert(0, self.deep(value)?);
        filters::call(self.context, name, positional, named)
    }

    /// Applies the filters of a `{% filter %}` or `{% set x | … %}` block to its text.
    pub(super) fn filter_block(&mut self, filter: &Expression, text: Value) -> Result<Value> {
        match &*filter.kind {
            ExpressionKind::Filter { name, value, arguments } => {
                let value = match value {
                    Some(inner) => self.filter_block(inner, text)?,
                    None => text,
                };
                self.filter(name, value, arguments)
            }
            _ => Err(TemplateError::failed("expected a filter")),
        }
    }
}
