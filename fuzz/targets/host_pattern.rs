//! Host patterns on an inventory of a few hundred hosts.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use trimtab::inventory::{Inventory, parse};
use trimtab::source::Source;

static INVENTORY: LazyLock<Inventory> = LazyLock::new(|| {
    let text = "[web]\nweb[01:99].example.org\n[db]\ndb[1:50]\ndb-[a:f]\n[rack:children]\nweb\ndb\n[arm]\nkp[001:064]\n\
                10.0.0.[1:20]\n[v6]\n2001:db8::1\n";
    parse(&Source::new("hosts", text)).unwrap_or_else(|error| panic!("{error}"))
});

fuzz_target!(|text: &str| {
    if let Ok(selection) = INVENTORY.select(&[text]) {
        for pattern in &selection.unmatched {
            let _ = INVENTORY.no_match(pattern);
        }
    }
    // `@FILE` reads patterns from a file
    if !text.contains('@') {
        let _ = INVENTORY.limit(text);
    }
});
