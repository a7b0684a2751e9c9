//! known_hosts, and the judgement over a key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trimtab::connect::{HostKey, KnownHosts};

fuzz_target!(|text: &str| {
    let known = KnownHosts::parse("known_hosts", text);
    let key = HostKey { kind: "ssh-ed25519".into(), base64: "AAAA".into() };
    for (host, port) in [("web1", 22), ("WEB1.example.org", 2222), ("2001:db8::1", 22), ("", 0)] {
        let _ = known.check(host, port, &key);
    }
});
