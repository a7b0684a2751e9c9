//! How filters, tests, lookups and functions get their arguments.

use std::borrow::Cow;
use std::sync::Arc;

use super::Context;
use super::error::{Result, TemplateError};
use crate::value::{Interruption, Map, Object, Value};

/// One filter, test or function: its names, its parameters and one line that says what it does.
pub struct Entry<T: 'static> {
    /// The name, then other names for the same.
    pub names: &'static [&'static str],
    /// Parameters in order; `*rest` takes all other positional ones, `**named` all other named ones.
    /// The first parameter of a filter or test is the value it is applied to.
    pub parameters: &'static [&'static str],
    pub doc: &'static str,
    /// True if arguments without value are its business (`default`, `defined`, …).
    pub takes_undefined: bool,
    pub function: fn(&Call<'_>) -> Result<T>,
}

/// The names of an entry, and its parameters.
pub type Names = (&'static [&'static str], &'static [&'static str]);

/// An entry of a table that refuses values that are undefined.
pub const fn entry<T>(
    names: &'static [&'static str],
    parameters: &'static [&'static str],
    doc: &'static str,
    function: fn(&Call<'_>) -> Result<T>,
) -> Entry<T> {
    Entry { names, parameters, doc, takes_undefined: false, function }
}

/// An entry of a table that looks at undefined values itself.
pub const fn entry_for_undefined<T>(
    names: &'static [&'static str],
    parameters: &'static [&'static str],
    doc: &'static str,
    function: fn(&Call<'_>) -> Result<T>,
) -> Entry<T> {
    Entry { names, parameters, doc, takes_undefined: true, function }
}

impl<T> Entry<T> {
    /// Binds arguments to parameters and calls.
    pub fn call(&'static self, context: &Context, positional: Vec<Value>, named: Vec<(Arc<str>, Value)>) -> Result<T> {
        if !self.takes_undefined
            && let Some(Value::Undefined(reason)) =
                positional.iter().chain(named.iter().map(|(_, value)| value)).find(|value| value.is_undefined())
        {
            // the silent undefined of an inline `if` without `else` reads as empty
            let first_only = matches!(positional.first(), Some(Value::Undefined(first)) if first.is_empty());
            if !reason.is_empty() || !first_only {
                return Err(TemplateError::undefined(reason));
            }
        }
        let call = Call::bind(context, self.names[0], self.parameters, positional, named)?;
        (self.function)(&call)
    }
}

/// The arguments of one call, bound to parameters.
pub struct Call<'a> {
    pub context: &'a Context,
    pub name: &'static str,
    parameters: &'static [&'static str],
    values: Vec<Option<Value>>,
    /// What `*rest` took.
    pub rest: Vec<Value>,
    /// What `**named` took.
    pub named: Vec<(Arc<str>, Value)>,
}

impl<'a> Call<'a> {
    fn bind(
        context: &'a Context,
        name: &'static str,
        parameters: &'static [&'static str],
        positional: Vec<Value>,
        named: Vec<(Arc<str>, Value)>,
    ) -> Result<Self> {
        let plain = parameters.iter().take_while(|parameter| !parameter.starts_with('*')).count();
        let takes_rest = parameters.iter().any(|parameter| parameter.starts_with('*') && !parameter.starts_with("**"));
        let takes_named = parameters.iter().any(|parameter| parameter.starts_with("**"));
        let mut call =
            Call { context, name, parameters, values: vec![None; plain], rest: Vec::new(), named: Vec::new() };
        let given = positional.len();
        for (index, value) in positional.into_iter().enumerate() {
            if index < plain {
                call.values[index] = Some(value);
            } else if takes_rest {
                call.rest.push(value);
            } else {
                return Err(TemplateError::failed(format!("takes at most {plain} arguments, {given} were given")));
            }
        }
        for (key, value) in named {
            match parameters[..plain].iter().position(|parameter| *parameter == &*key) {
                Some(index) if call.values[index].is_some() => {
                    return Err(TemplateError::failed(format!("got more than one value for the argument `{key}`")));
                }
                Some(index) => call.values[index] = Some(value),
                None if takes_named => call.named.push((key, value)),
                None => {
                    let near = crate::error::nearest(&key, parameters[..plain].iter().skip(1).copied());
                    let hint = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                    return Err(TemplateError::failed(format!("got an unexpected keyword argument '{key}'{hint}")));
                }
            }
        }
        Ok(call)
    }

    /// The value a filter or test is applied to.
    pub fn value(&self) -> Result<&Value> {
        self.required(0)
    }

    /// The argument at `index`, if it was given.
    pub fn optional(&self, index: usize) -> Option<&Value> {
        self.values.get(index).and_then(Option::as_ref)
    }

    /// The argument at `index`, if it was given and is not `None`.
    pub fn given(&self, index: usize) -> Option<&Value> {
        self.optional(index).filter(|value| !value.is_null())
    }

    pub fn required(&self, index: usize) -> Result<&Value> {
        self.optional(index).ok_or_else(|| {
            let parameter = self.parameters.get(index).copied().unwrap_or("value");
            TemplateError::failed(format!("missing the required argument `{parameter}`"))
        })
    }

    fn parameter(&self, index: usize) -> &'static str {
        self.parameters.get(index).copied().unwrap_or("value")
    }

    fn wrong(&self, index: usize, expected: &str, value: &Value) -> TemplateError {
        let what = if index == 0 { "the input".to_owned() } else { format!("`{}`", self.parameter(index)) };
        TemplateError::failed(format!("{what} must be {expected}, not {}", describe(value)))
    }

    /// The value as text, as Python's `str()`.
    pub fn text(&self) -> Result<Cow<'_, str>> {
        text_of(self.value()?)
    }

    /// An argument as text; `default` if it was not given.
    pub fn text_or<'b>(&'b self, index: usize, default: &'b str) -> Result<Cow<'b, str>> {
        match self.optional(index) {
            Some(value) => text_of(value),
            None => Ok(Cow::Borrowed(default)),
        }
    }

    pub fn required_text(&self, index: usize) -> Result<Cow<'_, str>> {
        text_of(self.required(index)?)
    }

    /// An argument as a flag; `default` if it was not given.
    pub fn flag(&self, index: usize, default: bool) -> Result<bool> {
        match self.optional(index) {
            None => Ok(default),
            Some(Value::Undefined(reason)) => Err(TemplateError::undefined(reason)),
            Some(value) => Ok(value.is_truthy()),
        }
    }

    /// An argument as an integer; `default` if it was not given.
    pub fn int_or(&self, index: usize, default: i64) -> Result<i64> {
        match self.optional(index) {
            None => Ok(default),
            Some(value) => self.integer(index, value),
        }
    }

    pub fn required_int(&self, index: usize) -> Result<i64> {
        self.integer(index, self.required(index)?)
    }

    fn integer(&self, index: usize, value: &Value) -> Result<i64> {
        match value {
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e18 => Ok(*number as i64),
            Value::Str(text) => text.as_str().trim().parse().map_err(|_| self.wrong(index, "an integer", value)),
            other => other.as_int().ok_or_else(|| self.wrong(index, "an integer", value)),
        }
    }

    /// The value as a sequence, as Python iterates it: elements, keys or characters.
    pub fn items(&self) -> Result<Vec<Value>> {
        iterate(self.value()?)
    }

    /// An argument that must be a list.
    pub fn list(&self, index: usize) -> Result<&[Value]> {
        let value = self.required(index)?;
        value.spelled().as_list().ok_or_else(|| self.wrong(index, "a list", value))
    }

    /// An argument that must be a map; objects are read whole.
    pub fn map(&self, index: usize) -> Result<Cow<'_, Map>> {
        let value = self.required(index)?;
        as_map(value)?.ok_or_else(|| self.wrong(index, "a map", value))
    }
}

/// A value in words, for messages: its type and, if short, itself.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        other => {
            let mut text = other.to_repr();
            if text.chars().count() > 60 {
                text = text.chars().take(60).collect::<String>() + "…";
            }
            format!("{} `{text}`", other.type_name())
        }
    }
}

/// Python's `str()`; whoever prints an undefined value fails, also deep inside.
pub fn text_of(value: &Value) -> Result<Cow<'_, str>> {
    match value {
        Value::Str(text) => Ok(Cow::Borrowed(text.as_str())),
        Value::Undefined(reason) if reason.is_empty() => Ok(Cow::Borrowed("")),
        Value::List(_) | Value::Map(_) | Value::Undefined(_) => {
            check_defined(value)?;
            Ok(Cow::Owned(plain(value)?.to_repr()))
        }
        other => Ok(other.to_text()),
    }
}

/// Fails if the value or anything in it is undefined.
pub fn check_defined(value: &Value) -> Result<()> {
    match value {
        Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
        Value::List(items) => items.iter().try_for_each(check_defined),
        Value::Map(map) => map.values().try_for_each(check_defined),
        _ => Ok(()),
    }
}

/// Python's iteration: the elements of a list, the keys of a map, the characters of a text.
pub fn iterate(value: &Value) -> Result<Vec<Value>> {
    match value.spelled() {
        Value::List(items) => Ok(items.to_vec()),
        Value::Map(map) => Ok(map.keys().cloned().collect()),
        Value::Object(object) if object.describe().is_none() => {
            object.keys_are_settled()?;
            Ok(object.keys())
        }
        Value::Str(text) => Ok(text.as_str().chars().map(|character| Value::from(character.to_string())).collect()),
        Value::Undefined(reason) if reason.is_empty() => Ok(Vec::new()),
        Value::Undefined(reason) => Err(TemplateError::undefined(reason)),
        other => Err(TemplateError::failed(format!("'{}' object is not iterable", other.type_name()))),
    }
}

/// The value as a map if it is one.
pub fn as_map(value: &Value) -> Result<Option<Cow<'_, Map>>> {
    match value.spelled() {
        Value::Map(map) => Ok(Some(Cow::Borrowed(map))),
        Value::Object(object) if object.describe().is_none() => Ok(Some(Cow::Owned(object_map(object.as_ref())?))),
        _ => Ok(None),
    }
}

/// All entries of an object; an entry that cannot be had now interrupts.
pub fn object_map(object: &dyn Object) -> Result<Map, Interruption> {
    object.keys_are_settled()?;
    let mut map = Map::new();
    for key in object.keys() {
        if let Some(value) = object.get(&key)? {
            map.insert(key, value);
        }
    }
    Ok(map)
}

/// The value with every object in it as a map (or as its text, if it is none).
pub fn plain(value: &Value) -> Result<Value> {
    fn has_object(value: &Value) -> bool {
        match value {
            Value::Object(_) => true,
            Value::List(items) => items.iter().any(has_object),
            Value::Map(map) => map.values().any(has_object),
            _ => false,
        }
    }
    if !has_object(value) {
        return Ok(value.clone());
    }
    Ok(match value {
        Value::Object(object) => match object.describe() {
            Some(text) => Value::from(text),
            None => {
                let map = object_map(object.as_ref())?;
                Value::map(map.into_iter().map(|(key, value)| Ok((key, plain(&value)?))).collect::<Result<Map>>()?)
            }
        },
        Value::List(items) => Value::list(items.iter().map(plain).collect::<Result<_>>()?),
        Value::Map(map) => {
            Value::map(map.iter().map(|(key, value)| Ok((key.clone(), plain(value)?))).collect::<Result<Map>>()?)
        }
        other => other.clone(),
    })
}

/// As [`check_defined`], but lets the value of an inline `if` without `else` pass.
pub fn check_defined_loosely(value: &Value) -> Result<()> {
    match value {
        Value::Undefined(reason) if reason.is_empty() => Ok(()),
        other => check_defined(other),
    }
}

/// `value[key]`, else the attribute of that name; undefined if there is neither.
pub fn get_item(context: &Context, value: &Value, key: &Value) -> Result<Value> {
    let value = value.spelled();
    let found = match (value, key) {
        (Value::Undefined(_), _) => return Ok(value.clone()),
        (Value::Map(map), key) => map.get(key).cloned(),
        (Value::Object(object), key) => object.get(key)?,
        (Value::List(items), key) => key
            .as_int()
            .or_else(|| key.as_str().and_then(|key| key.parse().ok()))
            .and_then(|index| super::eval::position(index, items.len()))
            .map(|place| items[place].clone()),
        (Value::Str(text), Value::Int(index)) => super::eval::position(*index, text.as_str().chars().count())
            .and_then(|place| text.as_str().chars().nth(place))
            .map(|character| Value::from(character.to_string())),
        _ => None,
    };
    match found {
        Some(value) => context.render_within(value),
        None => match key.as_str().and_then(|name| super::methods::property(value, name)) {
            Some(value) => Ok(value),
            None => Ok(super::eval::missing_attribute(value, &text_of(key)?)),
        },
    }
}

/// The value at a dotted path such as `net.queues.0`, as Jinja's `attribute=` takes it.
pub fn get_path(context: &Context, value: &Value, path: &Value) -> Result<Value> {
    let Value::Str(text) = path else { return get_item(context, value, path) };
    let mut value = value.clone();
    for part in text.as_str().split('.') {
        let key = match part.parse::<i64>() {
            Ok(index) if !matches!(value, Value::Map(_)) || value.get(part).is_none() => Value::Int(index),
            _ => Value::from(part),
        };
        value = get_item(context, &value, &key)?;
    }
    Ok(value)
}
