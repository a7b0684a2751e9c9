//! Calls: macros, methods, loops and functions.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::access::position;
use super::expression::Arguments;
use super::objects::{Function, Loop, Namespace};
use super::{Evaluator, Output, operators};
use crate::template::call::{as_map, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::template::tree::{self, Call, ExpressionKind};
use crate::template::{datetime, methods};
use crate::value::{Map, Object, Value};

impl Evaluator<'_> {
    pub(super) fn call(&mut self, call: &Call) -> Result<Value> {
        if let ExpressionKind::Attribute(object, name) = &*call.function.kind {
            if let ExpressionKind::Variable(variable) = &*object.kind
                && &**variable == "self"
                && self.blocks.contains_key(name)
            {
                return self.block_text(name, 0);
            }
            let receiver = self.evaluate(object)?;
            let arguments = self.arguments(&call.arguments)?;
            return self.call_method(receiver, name, arguments);
        }
        let function = self.evaluate(&call.function)?;
        let arguments = self.arguments(&call.arguments)?;
        self.call_value(&function, arguments, None)
    }

    /// `{% call(…) macro(…) %}`: the call with the block as its `caller`.
    pub(super) fn call_with_caller(&mut self, call: &Call, caller: Value) -> Result<Value> {
        let function = self.evaluate(&call.function)?;
        let arguments = self.arguments(&call.arguments)?;
        self.call_value(&function, arguments, Some(caller))
    }

    fn block_text(&mut self, name: &Arc<str>, level: usize) -> Result<Value> {
        let mut out = Output::default();
        self.run_block(name, level, &mut out)?;
        out.into_text().map(Value::from)
    }

    pub(super) fn call_value(
        &mut self,
        function: &Value,
        arguments: Arguments,
        caller: Option<Value>,
    ) -> Result<Value> {
        let object = match function {
            Value::Undefined(reason) => return Err(TemplateError::undefined(reason)),
            Value::Object(object) => object.as_any(),
            _ => None,
        };
        let Some(object) = object else {
            return Err(TemplateError::failed(format!("'{}' object is not callable", function.type_name())));
        };
        if let Some(state) = object.downcast_ref::<Loop>() {
            return self.recurse(state, arguments);
        }
        match object.downcast_ref::<Function>() {
            Some(Function::Macro { definition, frames, template }) => {
                let (definition, frames, template) = (Arc::clone(definition), frames.clone(), Arc::clone(template));
                self.call_macro(&definition, frames, &template, arguments, caller)
            }
            Some(Function::Method { receiver, name }) => self.call_method(receiver.clone(), &name.clone(), arguments),
            Some(Function::Global(global)) => {
                global.call(self.context, arguments.0, arguments.1).map_err(|error| match global.names[0] {
                    // these name the lookup that failed
                    "lookup" | "query" => error,
                    name => explain(error, &format!("`{name}()`")),
                })
            }
            Some(Function::Block { name, level }) => {
                let (name, level) = (Arc::clone(name), *level);
                self.block_text(&name, level)
            }
            Some(Function::Joiner { separator, used }) => {
                let first = used.swap(1, Ordering::Relaxed) == 0;
                Ok(Value::from(if first { "" } else { separator }))
            }
            Some(Function::Cycler(_)) | None => {
                Err(TemplateError::failed(format!("'{}' object is not callable", function.type_name())))
            }
        }
    }

    /// `loop(children)` in a recursive loop.
    fn recurse(&mut self, state: &Loop, (positional, _): Arguments) -> Result<Value> {
        let Some(node) = state.recursion.clone() else {
            return Err(TemplateError::failed("the loop must have the `recursive` marker to be called recursively"));
        };
        let [iterable] = positional.try_into().map_err(|_| TemplateError::failed("`loop()` takes one argument"))?;
        self.deeper()?;
        let mut out = Output::default();
        self.iterate_for(&node, iterable, state.depth + 1, &mut out)?;
        self.depth -= 1;
        out.into_text().map(Value::from)
    }

    fn call_macro(
        &mut self,
        definition: &Arc<tree::Macro>,
        mut frames: Vec<Arc<super::Frame>>,
        template: &Arc<str>,
        (positional, named): Arguments,
        caller: Option<Value>,
    ) -> Result<Value> {
        self.deeper()?;
        frames.push(Arc::default());
        let outer_frames = std::mem::replace(&mut self.frames, frames);
        let outer_template = std::mem::replace(&mut self.template, Arc::clone(template));
        let result = self.run_macro(definition, positional, named, caller);
        self.frames = outer_frames;
        self.template = outer_template;
        self.depth -= 1;
        result
    }

    fn run_macro(
        &mut self,
        definition: &tree::Macro,
        positional: Vec<Value>,
        named: Vec<(Arc<str>, Value)>,
        caller: Option<Value>,
    ) -> Result<Value> {
        let parameters = &definition.parameters;
        let first_default = parameters.len().saturating_sub(definition.defaults.len());
        let mut rest = positional;
        let over = rest.split_off(rest.len().min(parameters.len()));
        let mut given: Vec<Option<Value>> = rest.into_iter().map(Some).collect();
        given.resize(parameters.len(), None);
        let mut others = Map::new();
        for (name, value) in named {
            match parameters.iter().position(|parameter| *parameter == name) {
                Some(index) if given[index].is_some() => {
                    return Err(TemplateError::failed(format!(
                        "macro `{}` got more than one value for the argument `{name}`",
                        definition.name
                    )));
                }
                Some(index) => given[index] = Some(value),
                None => {
                    others.insert(Value::from(&*name), value);
                }
            }
        }
        if !over.is_empty() && !definition.takes_more {
            return Err(TemplateError::failed(format!(
                "macro '{}' takes not more than {} argument(s)",
                definition.name,
                parameters.len()
            )));
        }
        if let Some(name) = others.keys().next()
            && !definition.takes_named
        {
            return Err(TemplateError::failed(format!(
                "macro '{}' takes no keyword argument '{}'",
                definition.name,
                name.to_text()
            )));
        }
        for (index, (name, value)) in parameters.iter().zip(given).enumerate() {
            let value = match value {
                Some(value) => value,
                None => match index.checked_sub(first_default).and_then(|index| definition.defaults.get(index)) {
                    Some(default) => self.evaluate(default)?,
                    None => Value::undefined(format!("parameter '{name}' was not provided")),
                },
            };
            self.define(name, value);
        }
        if let Some(caller) = caller {
            self.define(&Arc::from("caller"), caller);
        }
        self.define(&Arc::from("varargs"), Value::list(over));
        self.define(&Arc::from("kwargs"), Value::map(others));
        let mut out = Output::default();
        self.run(&definition.body, &mut out)?;
        Ok(out.into_value())
    }

    fn call_method(&mut self, mut receiver: Value, name: &Arc<str>, arguments: Arguments) -> Result<Value> {
        match &receiver {
            Value::Undefined(reason) => return Err(TemplateError::undefined(reason)),
            Value::List(_) => {
                if let Some(result) = self.change_list(&mut receiver, name, &arguments)? {
                    return Ok(result);
                }
            }
            Value::Map(_) => {
                if let Some(result) = self.map_method(&mut receiver, name, &arguments)? {
                    return Ok(result);
                }
                if !methods::exists(&receiver, name) {
                    let function = self.attribute(&receiver, name)?;
                    return self.call_value(&function, arguments, None);
                }
            }
            Value::Object(object) => {
                let object = Arc::clone(object);
                return self.object_method(&receiver, object.as_ref(), name, arguments);
            }
            _ => {}
        }
        let receiver = self.deep(receiver)?;
        methods::call(self.context, &receiver, name, arguments.0, arguments.1)
    }

    fn object_method(
        &mut self,
        receiver: &Value,
        object: &dyn Object,
        name: &Arc<str>,
        arguments: Arguments,
    ) -> Result<Value> {
        if let Some(any) = object.as_any() {
            if let Some(Function::Cycler(cycler)) = any.downcast_ref::<Function>() {
                return match &**name {
                    "next" => Ok(cycler.next()),
                    "reset" => {
                        cycler.position.store(0, Ordering::Relaxed);
                        Ok(Value::Null)
                    }
                    _ => Err(TemplateError::failed(format!("a cycler has no method `{name}`"))),
                };
            }
            if let Some(state) = any.downcast_ref::<Loop>() {
                return loop_method(state, name, arguments.0);
            }
            if datetime::of(receiver).is_some() {
                return datetime::method(receiver, name, &arguments.0);
            }
            if any.is::<Namespace>() && object.get(&Value::from(&**name))?.is_none() && &**name == "update" {
                for value in &arguments.0 {
                    for (key, value) in as_map(value)?.unwrap_or_default().iter() {
                        if let Some(namespace) = any.downcast_ref::<Namespace>() {
                            namespace.set(&text_of(key)?, value.clone());
                        }
                    }
                }
                return Ok(Value::Null);
            }
            let function = self.attribute(receiver, name)?;
            return self.call_value(&function, arguments, None);
        }
        let keys = || object.keys_are_settled().map(|()| object.keys());
        match &**name {
            "keys" => Ok(Value::list(keys()?)),
            "get" => match object.get(arguments.0.first().unwrap_or(&Value::Null))? {
                Some(value) => self.read(value),
                None => Ok(arguments.0.into_iter().nth(1).unwrap_or(Value::Null)),
            },
            "values" | "items" | "iteritems" => {
                let mut out = Vec::new();
                for key in keys()? {
                    let Some(value) = object.get(&key)? else { continue };
                    let value = self.read(value)?;
                    out.push(if &**name == "values" { value } else { Value::list(vec![key, value]) });
                }
                Ok(Value::list(out))
            }
            _ => {
                let map = Value::map(crate::template::call::object_map(object)?);
                let map = self.deep(map)?;
                methods::call(self.context, &map, name, arguments.0, arguments.1)
            }
        }
    }

    /// Methods of a dict that give its own elements, or change it. A change takes the receiver, so
    /// that a dict nobody else holds is changed in place.
    fn map_method(
        &mut self,
        receiver: &mut Value,
        name: &str,
        (positional, named): &Arguments,
    ) -> Result<Option<Value>> {
        let Value::Map(map) = &*receiver else { return Ok(None) };
        let first = positional.first();
        let found = first.and_then(|key| map.get(key)).cloned();
        Ok(Some(match (name, first) {
            ("get", Some(_)) => match found {
                Some(value) => self.read(value)?,
                None => {
                    let named = named.iter().find(|(name, _)| &**name == "default").map(|(_, value)| value);
                    positional.get(1).or(named).cloned().unwrap_or(Value::Null)
                }
            },
            ("values" | "itervalues", None) => {
                Value::list(map.values().map(|value| self.read(value.clone())).collect::<Result<_>>()?)
            }
            ("items" | "iteritems", None) => Value::list(
                map.iter()
                    .map(|(key, value)| Ok(Value::list(vec![self.read(key.clone())?, self.read(value.clone())?])))
                    .collect::<Result<_>>()?,
            ),
            ("update", _) => {
                let mut entries = first.map_or_else(|| Ok(Map::new()), pairs)?;
                entries.extend(named.iter().map(|(name, value)| (Value::from(&**name), value.clone())));
                self.changes.change_map(std::mem::take(receiver), |map| map.extend(entries));
                Value::Null
            }
            ("setdefault", Some(key)) => match found {
                Some(value) => self.read(value)?,
                None => {
                    let value = positional.get(1).cloned().unwrap_or(Value::Null);
                    let (key, stored) = (key.clone(), value.clone());
                    self.changes.change_map(std::mem::take(receiver), |map| map.insert(key, stored));
                    value
                }
            },
            ("__setitem__", Some(key)) => {
                let (key, value) = (key.clone(), positional.get(1).cloned().unwrap_or(Value::Null));
                self.changes.change_map(std::mem::take(receiver), |map| map.insert(key, value));
                Value::Null
            }
            ("pop" | "__delitem__", Some(key)) => match found {
                Some(value) => {
                    self.changes.change_map(std::mem::take(receiver), |map| map.shift_remove(key));
                    self.read(value)?
                }
                None => match positional.get(1) {
                    Some(default) => default.clone(),
                    None => return Err(TemplateError::failed(format!("there is no key {}", key.to_repr()))),
                },
            },
            ("popitem", None) => match map.last() {
                Some((key, value)) => {
                    let pair = Value::list(vec![key.clone(), self.read(value.clone())?]);
                    self.changes.change_map(std::mem::take(receiver), |map| map.pop());
                    pair
                }
                None => return Err(TemplateError::failed("popitem(): dictionary is empty")),
            },
            ("clear", None) => {
                self.changes.change_map(std::mem::take(receiver), Map::clear);
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    /// Methods of a list that change it; they take the receiver, so that a list nobody else holds
    /// is changed in place.
    fn change_list(&mut self, receiver: &mut Value, name: &str, arguments: &Arguments) -> Result<Option<Value>> {
        let (positional, named) = arguments;
        let Value::List(items) = &*receiver else { return Ok(None) };
        let changes = &mut self.changes;
        match (name, positional.as_slice()) {
            ("append", [value]) => {
                changes.change_list(std::mem::take(receiver), |items| items.push(value.clone()));
            }
            ("extend", [values]) => {
                let values = iterate(values)?;
                changes.change_list(std::mem::take(receiver), |items| items.extend(values));
            }
            ("insert", [index, value]) => {
                let Some(index) = index.as_int() else {
                    return Err(TemplateError::failed("`insert` needs an integer"));
                };
                let length = items.len() as i64;
                let place = if index < 0 { (index + length).max(0) } else { index.min(length) } as usize;
                changes.change_list(std::mem::take(receiver), |items| items.insert(place, value.clone()));
            }
            ("pop", arguments) => {
                let index = match arguments.first() {
                    Some(index) => index.as_int().ok_or_else(|| TemplateError::failed("`pop` needs an integer"))?,
                    None => -1,
                };
                let Some(place) = position(index, items.len()) else {
                    return Err(TemplateError::failed(if items.is_empty() {
                        "pop from empty list"
                    } else {
                        "pop index out of range"
                    }));
                };
                let popped =
                    changes.change_list(std::mem::take(receiver), |items| items.remove(place)).unwrap_or_default();
                return self.read(popped).map(Some);
            }
            ("remove", [value]) => {
                let mut place = None;
                for (index, item) in items.iter().enumerate() {
                    if operators::equal(item, value)? {
                        place = Some(index);
                        break;
                    }
                }
                match place {
                    Some(place) => changes.change_list(std::mem::take(receiver), |items| items.remove(place)),
                    None => return Err(TemplateError::failed("list.remove(x): x not in list")),
                };
            }
            ("clear", []) => {
                changes.change_list(std::mem::take(receiver), Vec::clear);
            }
            ("reverse", []) => {
                changes.change_list(std::mem::take(receiver), |items| items.reverse());
            }
            ("sort", []) => {
                let reverse = named.iter().any(|(name, value)| &**name == "reverse" && value.is_truthy());
                let sorted = crate::template::filters::sorted(items.to_vec(), reverse)?;
                changes.change_list(std::mem::take(receiver), |items| *items = sorted);
            }
            _ => return Ok(None),
        }
        Ok(Some(Value::Null))
    }
}

/// The entries of a map, or of a list of pairs.
fn pairs(value: &Value) -> Result<Map> {
    if let Some(map) = as_map(value)? {
        return Ok(map.into_owned());
    }
    let mut entries = Map::new();
    for pair in iterate(value)? {
        match <[Value; 2]>::try_from(iterate(&pair)?) {
            Ok([key, value]) => entries.insert(key, value),
            Err(_) => return Err(TemplateError::failed("`update` needs a map or pairs")),
        };
    }
    Ok(entries)
}

fn loop_method(state: &Loop, name: &str, arguments: Vec<Value>) -> Result<Value> {
    match name {
        "cycle" => {
            if arguments.is_empty() {
                return Err(TemplateError::failed("no items for cycling given"));
            }
            let index = state.index.load(Ordering::Relaxed) % arguments.len();
            Ok(arguments.into_iter().nth(index).unwrap_or_default())
        }
        "changed" => {
            let mut seen = state.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = seen.as_ref() != Some(&arguments);
            *seen = Some(arguments);
            Ok(Value::Bool(changed))
        }
        _ => Err(TemplateError::failed(format!("`loop` has no method `{name}`"))),
    }
}

/// Says which function failed, where the message does not.
pub(in crate::template) fn explain(error: TemplateError, what: &str) -> TemplateError {
    match error.kind() {
        crate::template::TemplateErrorKind::Failed => error.context(what),
        _ => error,
    }
}
