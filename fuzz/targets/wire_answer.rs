//! What a host says to a batch, cut into pieces: `1` and `2` at the begin of a piece name its stream, NUL separates them.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use trimtab::connect::shell::{Guard, Request, Verb};
use trimtab::connect::{Output, replay};

/// Stands for a random word; short, so that inputs are.
const TOKEN: &str = "TOKENTOKENTOKEN!";

static REQUESTS: LazyLock<Vec<Request>> = LazyLock::new(|| {
    let request = |verb| Request { verb, guard: Guard::Always, expect: None, writes: None };
    vec![
        request(Verb::Line { path: "/proc/a".into() }),
        request(Verb::Stat { path: "/etc/b".into(), follow: false }),
        request(Verb::Stat { path: "/etc/c".into(), follow: true }),
        request(Verb::Checksum { path: "/etc/b".into(), algorithm: "sha1" }),
        request(Verb::Unit { name: "d.service".into() }),
        request(Verb::Unit { name: "e.service".into() }),
        request(Verb::Content { path: "/etc/b".into() }),
        request(Verb::Script { text: "true".into(), stdin: None }),
    ]
});

fuzz_target!(|bytes: &[u8]| {
    let token = TOKEN.as_bytes();
    let pieces = bytes.split(|byte| *byte == 0);
    let said: Vec<(Output, Vec<u8>)> = pieces
        .map(|piece| {
            let output = if piece.first() == Some(&b'2') { Output::Stderr } else { Output::Stdout };
            // `@` stands for the token, which no mutation would find
            let mut said = Vec::new();
            for byte in piece.iter().skip(1) {
                if *byte == b'@' { said.extend_from_slice(token) } else { said.push(*byte) }
            }
            (output, said)
        })
        .collect();
    let said: Vec<(Output, &[u8])> = said.iter().map(|(output, bytes)| (*output, bytes.as_slice())).collect();
    if let Ok(responses) = replay(TOKEN, &REQUESTS, &said) {
        assert_eq!(responses.len(), REQUESTS.len());
    }
});
