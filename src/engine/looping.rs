//! `loop` and `with_…`: the items, and the variables that each sees.

use std::sync::Arc;

use crate::host::Failure;
use crate::playbook::{Loop, Task};
use crate::template::{self, Context};
use crate::value::{Map, Value, object};

/// A loop at work: its items, and its control with all names rendered.
#[derive(Debug, Clone)]
pub struct Looped {
    pub items: Vec<Value>,
    pub looping: Arc<Loop>,
}

/// The loop of a task; `None` if it has none.
pub fn loop_of(task: &Task, context: &Context) -> Result<Option<Looped>, Failure> {
    let Some(looping) = &task.looping else { return Ok(None) };
    Ok(Some(Looped { items: items(looping, context)?, looping: Arc::new(with_names(looping, context)?) }))
}

fn items(looping: &Loop, context: &Context) -> Result<Vec<Value>, Failure> {
    // the loop over the first file that exists leaves out names that use what is undefined
    let terms = match looping.lookup.as_deref() {
        Some("first_found" | "ansible.builtin.first_found") => context.value_with_undefined(&looping.terms.value)?,
        _ => context.value(&looping.terms.value)?,
    };
    match &looping.lookup {
        Some(lookup) if lookup == "list" && matches!(terms, Value::Map(_)) => Err(Failure::new(format!(
            "with_list expects a list, got '{}' instead. ({})",
            terms.to_text(),
            looping.terms.place
        ))),
        Some(lookup) => Ok(template::lookup(context, lookup, terms)?),
        None => match terms.spelled() {
            Value::List(items) => Ok(items.to_vec()),
            Value::Undefined(reason) => Err(Failure::new(reason.to_string())),
            other => Err(Failure::new(format!(
                "Invalid data passed to 'loop', it requires a list, got this instead: {}. Hint: If you passed a list/dict of just one element, try adding wantlist=True to your lookup invocation or use q/query instead of lookup. ({})",
                other.to_text(),
                looping.terms.place
            ))),
        },
    }
}

/// The loop with the keys of `loop_control` rendered that do not depend on the item.
fn with_names(looping: &Loop, context: &Context) -> Result<Loop, Failure> {
    let mut looping = looping.clone();
    let control = &mut looping.control;
    for key in [&mut control.loop_var, &mut control.index_var, &mut control.extended, &mut control.extended_allitems] {
        if let Some(value) = key.as_mut().filter(|value| value.has_templates()) {
            *value = context.value(value)?.into_data();
        }
    }
    Ok(looping)
}

/// The name of the loop's variable, `item` unless `loop_var` says otherwise.
pub fn loop_variable(looping: &Loop) -> String {
    looping.control.loop_var.as_ref().map_or_else(|| "item".to_owned(), |name| name.to_text().into_owned())
}

/// The variables of one item: the loop's own, its index, and `ansible_loop` if it is asked for.
pub fn item_variables(looping: &Loop, items: &[Value], index: usize) -> Map {
    let mut variables = Map::new();
    let name = loop_variable(looping);
    if let Some(item) = items.get(index) {
        variables.insert(Value::from(name.as_str()), item.clone());
    }
    variables.insert("ansible_loop_var".into(), Value::from(name));
    if let Some(index_var) = &looping.control.index_var {
        variables.insert(index_var.clone().into_data(), Value::from(index));
        variables.insert("ansible_index_var".into(), index_var.clone().into_data());
    }
    if looping.control.extended.as_ref().and_then(Value::to_ansible_bool) == Some(true) {
        let length = items.len();
        let mut extended = object([
            ("index", Value::from(index + 1)),
            ("index0", Value::from(index)),
            ("first", (index == 0).into()),
            ("last", (index + 1 == length).into()),
            ("length", Value::from(length)),
            ("revindex", Value::from(length - index)),
            ("revindex0", Value::from(length - index - 1)),
        ]);
        if looping.control.extended_allitems.as_ref().and_then(Value::to_ansible_bool) != Some(false) {
            extended.insert("allitems".into(), Value::list(items.to_vec()));
        }
        if let Some(previous) = index.checked_sub(1).and_then(|previous| items.get(previous)) {
            extended.insert("previtem".into(), previous.clone());
        }
        if let Some(next) = items.get(index + 1) {
            extended.insert("nextitem".into(), next.clone());
        }
        variables.insert("ansible_loop".into(), extended.into());
    }
    variables
}

/// How an item is named in reports: `loop_control.label`, or the item itself.
pub fn label(looping: &Loop, context: &Context, item: &Value) -> String {
    let value = match &looping.control.label {
        Some(label) => context.value(label).unwrap_or_else(|_| label.clone()),
        None => item.clone(),
    };
    match &value {
        Value::Map(_) | Value::List(_) => value.to_repr(),
        other => other.to_text().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::playbook::{LoopControl, Written};
    use crate::source::{Place, Source};

    #[test]
    fn an_extended_loop_knows_its_neighbours() {
        let control =
            LoopControl { extended: Some(true.into()), index_var: Some("n".into()), ..LoopControl::default() };
        let place = Place::start(&Source::new("x.yml", ""));
        let looping = Loop { lookup: None, terms: Written { value: Value::Null, place }, control };
        let items: Vec<Value> = vec!["a".into(), "b".into(), "c".into()];
        let variables = item_variables(&looping, &items, 1);
        let text = |name: &str| variables.get("ansible_loop").and_then(|map| map.get(name)).map(Value::to_repr);
        assert_eq!(variables.get("item"), Some(&"b".into()));
        assert_eq!(variables.get("n"), Some(&1.into()));
        assert_eq!(text("previtem").as_deref(), Some("'a'"));
        assert_eq!(text("nextitem").as_deref(), Some("'c'"));
        assert_eq!(text("last").as_deref(), Some("False"));
        assert_eq!(text("revindex").as_deref(), Some("2"));
    }
}
