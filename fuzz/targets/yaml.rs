//! Documents, files of variables, and what is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::source::Source;
use trimtab::value::Value;
use trimtab::yaml::{EmitOptions, emit, load_all, load_vars, load_with_warnings};

fuzz_target!(|text: &str| {
    let source = Source::new("file.yml", text);
    let _ = load_all(&source);
    let _ = load_vars(&source);
    let Ok(Some(root)) = load_with_warnings(&source).map(|document| document.root) else { return };
    let value = root.to_value();
    let written = emit(&value, &EmitOptions::to_yaml());
    // whatever was read can be written, and what was written is read as the same
    let again = Source::new("again.yml", written.as_str());
    let again = load_with_warnings(&again).unwrap_or_else(|error| panic!("{error}\n{written}"));
    let again = again.root.map(|root| root.to_value()).unwrap_or(Value::Null);
    assert!(same(&again, &value), "{value}\nwas written as\n{written}\nand read as\n{again}");
});

/// Equal, where NaN equals itself; keys are written in their own order.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left == right || (left.is_nan() && right.is_nan()),
        (Value::List(left), Value::List(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| same(left, right))
        }
        (Value::Map(left), Value::Map(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| is_nan(key) || right.get(key).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}

fn is_nan(key: &Value) -> bool {
    matches!(key, Value::Float(number) if number.is_nan())
}
