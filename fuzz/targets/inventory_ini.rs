//! Inventories in the INI format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::source::Source;

fuzz_target!(|text: &str| {
    if let Ok(inventory) = trimtab::inventory::parse(&Source::new("hosts.ini", text)) {
        let _ = inventory.members();
        for (host, _) in inventory.hosts() {
            let _ = inventory.host_layers(host);
        }
    }
});
