//! What lives only while a template is evaluated: functions, loops, namespaces, imported modules.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::template::globals::Global;
use crate::template::tree;
use crate::value::{Interruption, Map, Object, Value};

/// The names of one scope of a template. Shared with the macros that were defined in it.
#[derive(Default)]
pub struct Frame {
    variables: Mutex<Vec<(Arc<str>, Value)>>,
}

impl Frame {
    pub fn get(&self, name: &str) -> Option<Value> {
        let variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        variables.iter().find(|(known, _)| &**known == name).map(|(_, value)| value.clone())
    }

    pub fn set(&self, name: &Arc<str>, value: Value) {
        let mut variables = self.variables.lock().unwrap_or_else(PoisonError::into_inner);
        match variables.iter_mut().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = value,
            None => variables.push((Arc::clone(name), value)),
        }
    }

    /// All names and values in the order they were set.
    pub fn entries(&self) -> Vec<(Arc<str>, Value)> {
        self.variables.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets everything (breaks the circle of a frame and the macros defined in it).
    pub fn clear(&self) {
        let entries = std::mem::take(&mut *self.variables.lock().unwrap_or_else(PoisonError::into_inner));
        drop(entries);
    }
}

/// Something that can be called.
#[derive(Clone)]
pub enum Function {
    Macro {
        definition: Arc<tree::Macro>,
        frames: Vec<Arc<Frame>>,
        template: Arc<str>,
    },
    /// A method of a value, not yet called: `{{ d.items }}`.
    Method {
        receiver: Value,
        name: Arc<str>,
    },
    Global(&'static Global),
    /// `super` within a block, or `self.name`: the block's name and which definition of it.
    Block {
        name: Arc<str>,
        level: usize,
    },
    Cycler(Arc<Cycler>),
    Joiner {
        separator: Arc<str>,
        used: Arc<AtomicUsize>,
    },
}

impl Function {
    pub fn value(self) -> Value {
        Value::Object(Arc::new(self))
    }
}

impl Object for Function {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        Ok(match (self, key.as_str()) {
            (Function::Macro { definition, .. }, Some("name")) => Some(Value::from(&*definition.name)),
            (Function::Macro { definition, .. }, Some("arguments")) => {
                Some(Value::list(definition.parameters.iter().map(|name| Value::from(&**name)).collect()))
            }
            (Function::Cycler(cycler), Some("current")) => Some(cycler.current()),
            _ => None,
        })
    }

    fn keys(&self) -> Vec<Value> {
        Vec::new()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn describe(&self) -> Option<String> {
        Some(match self {
            Function::Macro { definition, .. } => format!("<Macro '{}'>", definition.name),
            Function::Method { receiver, name } => {
                format!("<built-in method {name} of {} object>", receiver.type_name())
            }
            Function::Global(global) => format!("<function {}>", global.names[0]),
            Function::Block { name, .. } => format!("<Block '{name}'>"),
            Function::Cycler(_) => "<Cycler>".to_owned(),
            Function::Joiner { .. } => "<Joiner>".to_owned(),
        })
    }
}

/// `cycler('odd', 'even')`.
pub struct Cycler {
    pub items: Vec<Value>,
    pub position: AtomicUsize,
}

impl Cycler {
    pub fn current(&self) -> Value {
        self.items.get(self.position.load(Ordering::Relaxed)).cloned().unwrap_or_default()
    }

    pub fn next(&self) -> Value {
        let current = self.current();
        let next = (self.position.load(Ordering::Relaxed) + 1) % self.items.len().max(1);
        self.position.store(next, Ordering::Relaxed);
        current
    }
}

/// `namespace()`, and the module of an `{% import %}`.
#[derive(Default)]
pub struct Namespace {
    pub entries: Mutex<Map>,
}

impl Namespace {
    pub fn set(&self, name: &str, value: Value) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).insert(Value::from(name), value);
    }

    pub fn clear(&self) {
        let entries = std::mem::take(&mut *self.entries.lock().unwrap_or_else(PoisonError::into_inner));
        drop(entries);
    }
}

impl Object for Namespace {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        Ok(self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn keys(&self) -> Vec<Value> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The `loop` of a `{% for %}`.
pub struct Loop {
    pub items: Vec<Value>,
    pub index: AtomicUsize,
    pub depth: usize,
    /// The values that `loop.changed()` saw last.
    pub seen: Mutex<Option<Vec<Value>>>,
    /// The statement itself if it is `recursive`.
    pub recursion: Option<Arc<tree::For>>,
}

impl Object for Loop {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        let index = self.index.load(Ordering::Relaxed);
        let length = self.items.len();
        let Some(name) = key.as_str() else { return Ok(None) };
        Ok(Some(match name {
            "index" => (index + 1).into(),
            "index0" => index.into(),
            "revindex" => length.saturating_sub(index).into(),
            "revindex0" => length.saturating_sub(index + 1).into(),
            "first" => (index == 0).into(),
            "last" => (index + 1 == length).into(),
            "length" => length.into(),
            "depth" => (self.depth + 1).into(),
            "depth0" => self.depth.into(),
            "previtem" => match index.checked_sub(1).and_then(|index| self.items.get(index)) {
                Some(item) => item.clone(),
                None => Value::undefined("there is no previous item"),
            },
            "nextitem" => match self.items.get(index + 1) {
                Some(item) => item.clone(),
                None => Value::undefined("there is no next item"),
            },
            _ => return Ok(None),
        }))
    }

    fn keys(&self) -> Vec<Value> {
        Vec::new()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn describe(&self) -> Option<String> {
        Some(format!("<LoopContext {}/{}>", self.index.load(Ordering::Relaxed) + 1, self.items.len()))
    }
}
