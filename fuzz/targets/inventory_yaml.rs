//! Inventories in the YAML format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::source::Source;

fuzz_target!(|text: &str| {
    let source = Source::new("hosts.yml", text);
    // the plugin `constructed` evaluates templates, which may run commands
    let Ok(Some(root)) = trimtab::yaml::load(&source) else { return };
    if root.get("plugin").is_some() {
        return;
    }
    if let Ok(inventory) = trimtab::inventory::parse(&source) {
        let _ = inventory.members();
        for (host, _) in inventory.hosts() {
            let _ = inventory.host_layers(host);
        }
    }
});
