//! ssh_config: the options of a host.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::connect::options_for;

fuzz_target!(|text: &str| {
    let _ = options_for(text, "web1.example.org", "ann");
    let _ = options_for(text, "", "");
});
