//! Templates: parsed, and rendered over a few variables.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use trimtab::template::{Context, Kind, filters_used};
use trimtab::value::Value;

static CONTEXT: LazyLock<Context> = LazyLock::new(trimtab_fuzz::context);

fuzz_target!(|text: &str| {
    let _ = filters_used(text, Kind::Template);
    let _ = trimtab::template::literal(text);
    if trimtab_fuzz::is_costly(text) {
        return;
    }
    let context = CONTEXT.for_unknown_text(trimtab_fuzz::STEPS);
    let _ = context.value(&Value::written(text));
    let _ = context.text(text, "file.j2");
    let _ = CONTEXT.warnings.take();
});
