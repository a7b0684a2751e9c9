//! Arguments on one line: `a=b c="d e"`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::playbook::free_form::{parse_key_values, split_action, split_words, unquote};

fuzz_target!(|text: &str| {
    if let Ok(words) = split_words(text) {
        for word in &words {
            let _ = unquote(word);
        }
    }
    let _ = parse_key_values(text, false);
    let _ = parse_key_values(text, true);
    let _ = split_action(text);
});
