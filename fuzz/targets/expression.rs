//! Expressions and conditions without braces.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use trimtab::template::{Context, Kind, check_syntax};
use trimtab::value::Value;

static CONTEXT: LazyLock<Context> = LazyLock::new(trimtab_fuzz::context);

fuzz_target!(|text: &str| {
    let _ = check_syntax(text, Kind::Expression);
    if trimtab_fuzz::is_costly(text) {
        return;
    }
    let context = CONTEXT.for_unknown_text(trimtab_fuzz::STEPS);
    if let Ok(value) = context.expression(text) {
        let _ = (value.to_repr(), value.is_truthy());
    }
    let _ = context.condition(&Value::written(text));
    let _ = CONTEXT.warnings.take();
});
