//! What is sent: the prelude, and a batch of requests as shell text. Pure.

use std::fmt::Write as _;

use base64::Engine as _;

use super::shell::{Guard, Request, UNIT_PROPERTIES, Verb, quote};

/// The verbs as shell functions, as they stand in the source.
const PRELUDE: &str = include_str!("prelude.sh");

/// So many requests share one process at most, and so many bytes of their paths: far below any limit of `execve`.
const GATHERED: usize = 200;
const GATHERED_BYTES: usize = 64 * 1024;

/// Batches from this size on are announced, see `t_batch` in the prelude.
const ANNOUNCED: usize = 16 * 1024;

/// Standard input travels in `printf` calls of this many bytes each.
const CHUNK: usize = 48 * 1024;

/// The random word that ends every frame: 128 bits in two halves of 11 letters and digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) first: String,
    pub(super) second: String,
}

impl Token {
    /// A token from 16 random bytes.
    pub(super) fn new(random: [u8; 16]) -> Token {
        const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let half = |bytes: &[u8]| {
            let mut number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            let mut text = String::new();
            for _ in 0..11 {
                text.push(char::from(LETTERS[(number % 62) as usize]));
                number /= 62;
            }
            text
        };
        Token { first: half(&random[..8]), second: half(&random[8..]) }
    }

    pub(super) fn whole(&self) -> String {
        format!("{}{}", self.first, self.second)
    }
}

/// What the first frame of a shell told about its host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// There is a `base64` to decode with.
    pub(super) base64: bool,
}

/// The text that a new shell reads before its first batch.
pub(super) fn prelude(token: &Token) -> Vec<u8> {
    let mut text = format!("t_k={} t_l={}\n", token.first, token.second);
    let _ = writeln!(text, "t_properties={}", UNIT_PROPERTIES.join(","));
    for line in PRELUDE.lines() {
        let line = line.trim_start_matches(' ');
        if !line.is_empty() && !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.into_bytes()
}

/// Writes requests as one compound command, which a shell parses to its end before it runs any of it: a batch that
/// was cut off on its way does nothing.
pub(super) fn compose(requests: &[Request], features: Features) -> Vec<u8> {
    let mut text = String::from("{ t_ok=true t_dir= t_a=0; t_mark \"b $t_base64\"\n");
    let mut start = 0;
    while start < requests.len() {
        let length = requests[start..].iter().position(changes).map_or(requests.len() - start, |position| position + 1);
        compose_segment(&mut text, start, &requests[start..start + length], features);
        start += length;
    }
    text.push_str("t_mark e; } </dev/null\n");
    if text.len() < ANNOUNCED {
        return text.into_bytes();
    }
    format!("t_batch {}\n{text}", text.len()).into_bytes()
}

/// True for a request that may alter what reads behind it see: no read behind it may be answered before it.
fn changes(request: &Request) -> bool {
    matches!(request.verb, Verb::Script { .. })
        && (request.guard == Guard::Chained || request.writes.is_some() || request.expect.is_some())
}

/// The reads that share a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Lines,
    Many(&'static str),
    Units,
}

/// How a request may be gathered with its like, if at all.
fn shared(request: &Request) -> Option<Shared> {
    if request.guard == Guard::Chained || request.writes.is_some() || fault(&request.verb).is_some() {
        return None;
    }
    match &request.verb {
        Verb::Line { path } if alias_check(path) == Alias::Never => Some(Shared::Lines),
        Verb::Stat { follow: false, .. } => Some(Shared::Many("s")),
        Verb::Stat { follow: true, .. } => Some(Shared::Many("S")),
        Verb::Checksum { algorithm, .. } => Some(Shared::Many(algorithm)),
        Verb::Unit { .. } => Some(Shared::Units),
        _ => None,
    }
}

/// Requests of which only the last may alter anything.
fn compose_segment(text: &mut String, start: usize, requests: &[Request], features: Features) {
    let mut done = vec![false; requests.len()];
    for position in 0..requests.len() {
        if done[position] {
            continue;
        }
        let Some(kind) = shared(&requests[position]) else {
            compose_single(text, start + position, &requests[position], features);
            continue;
        };
        match kind {
            Shared::Lines => text.push_str("t_lines"),
            Shared::Many(kind) => {
                let _ = write!(text, "t_many {kind}");
            }
            Shared::Units => text.push_str("t_units"),
        }
        let mut bytes = 0;
        let mut count = 0;
        for other in position..requests.len() {
            if shared(&requests[other]) != Some(kind) || done[other] {
                continue;
            }
            done[other] = true;
            let name = subject(&requests[other].verb);
            let _ = write!(text, " {} {}", start + other, quote(name));
            if let Shared::Many(_) = kind {
                match alias_check(name) {
                    Alias::Ask { directory } => {
                        let _ = write!(text, " {}", quote(&directory));
                    }
                    Alias::Never | Alias::Surely => text.push_str(" ''"),
                }
            }
            bytes += name.len();
            count += 1;
            if count == GATHERED || bytes > GATHERED_BYTES {
                break;
            }
        }
        text.push('\n');
    }
}

/// Why a verb cannot be asked at all.
fn fault(verb: &Verb) -> Option<String> {
    let name = subject(verb);
    match verb {
        Verb::Script { text, .. } if text.contains('\0') => Some("a script cannot hold a NUL character".to_owned()),
        Verb::Script { .. } => None,
        _ if name.contains('\0') => Some(format!("`{}` holds a NUL character", name.replace('\0', "\\0"))),
        Verb::Unit { name } if name.is_empty() => Some("the name of the unit is empty".to_owned()),
        Verb::Unit { .. } => None,
        _ if !name.starts_with('/') => Some(format!("`{name}` is not an absolute path")),
        _ => None,
    }
}

/// The path or name that a verb asks about.
pub(super) fn subject(verb: &Verb) -> &str {
    match verb {
        Verb::Line { path } | Verb::Content { path } | Verb::Stat { path, .. } | Verb::Checksum { path, .. } => path,
        Verb::Unit { name } => name,
        Verb::Script { .. } => "",
    }
}

fn compose_single(text: &mut String, index: usize, request: &Request, features: Features) {
    let chained = request.guard == Guard::Chained;
    if chained {
        text.push_str("if $t_ok; then ");
    }
    let reads = match &request.verb {
        Verb::Unit { .. } | Verb::Script { .. } => None,
        verb => Some(subject(verb)),
    };
    let nofollow = matches!(request.verb, Verb::Stat { follow: false, .. });
    for (path, last) in [(reads, !nofollow), (request.writes.as_deref(), true)] {
        match path.filter(|path| !path.contains('\0')).map(|path| (path, alias_check(path))) {
            Some((path, Alias::Ask { directory })) => {
                let path = if last { path } else { "" };
                let _ = writeln!(text, "t_alias {} {}", quote(path), quote(&directory));
            }
            Some((_, Alias::Surely)) => text.push_str("t_a=1\n"),
            Some((_, Alias::Never)) | None => {}
        }
    }
    let expect = request.expect.as_deref().filter(|_| chained);
    if expect.is_some() {
        text.push_str("t_o=$(");
    }
    compose_body(text, &request.verb, features);
    match expect {
        Some(expect) => {
            let _ = writeln!(text, "\nprintf '\\n%s' \"$?\"); t_check {index} {}", quote(&normalise(expect)));
        }
        None => {
            let _ = writeln!(text, "\nt_end {index} \"$?\"");
        }
    }
    if chained {
        text.push_str(if expect.is_some() { "fi\n" } else { "t_chain; fi\n" });
    }
    if matches!(request.verb, Verb::Script { .. }) {
        // what directories are symbolic links may be otherwise now
        text.push_str("t_dir=\n");
    }
}

/// The command that answers a verb with its output and exit code.
fn compose_body(text: &mut String, verb: &Verb, features: Features) {
    if let Some(fault) = fault(verb) {
        let _ = write!(text, "t_refuse {}", quote(&fault));
        return;
    }
    match verb {
        Verb::Line { path } => {
            let _ = write!(text, "t_line {}", quote(path));
        }
        Verb::Content { path } => {
            let _ = write!(text, "t_content {}", quote(path));
        }
        Verb::Stat { path, follow } => {
            let _ = write!(text, "t_stat {} {}", if *follow { "S" } else { "s" }, quote(path));
        }
        Verb::Checksum { path, algorithm } => {
            let _ = write!(text, "t_sum {algorithm} {}", quote(path));
        }
        Verb::Unit { name } => {
            let _ = write!(text, "t_unit {}", quote(name));
        }
        Verb::Script { text: script, stdin } => {
            if let Some(stdin) = stdin {
                compose_stdin(text, stdin, features);
            }
            let _ = write!(text, "t_script {}", quote(script));
        }
    }
}

/// Writes the left side of a pipe that yields `stdin`. Only builtins see the bytes, so no process list and no file
/// ever holds them, and no limit on arguments applies.
fn compose_stdin(text: &mut String, stdin: &[u8], features: Features) {
    text.push_str("{ :\n");
    if features.base64 && escaped_length(stdin) > stdin.len() * 3 / 2 {
        for chunk in stdin.chunks(CHUNK) {
            text.push_str("printf %s ");
            base64::engine::general_purpose::STANDARD.encode_string(chunk, text);
            text.push('\n');
        }
        text.push_str("} 2>/dev/null | base64 -d 2>/dev/null | ");
    } else {
        for chunk in stdin.chunks(CHUNK) {
            text.push_str("printf '");
            for (place, &byte) in chunk.iter().enumerate() {
                match byte {
                    // or else the format would be taken for an option
                    b'-' if place == 0 => text.push_str("\\055"),
                    b'%' => text.push_str("%%"),
                    byte if plain(byte) => text.push(char::from(byte)),
                    byte => {
                        let _ = write!(text, "\\{byte:03o}");
                    }
                }
            }
            text.push_str("'\n");
        }
        text.push_str("} 2>/dev/null | ");
    }
}

/// True for a byte that stands for itself in the single-quoted format of `printf`.
fn plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\t') && !b"%\\'".contains(&byte)
}

fn escaped_length(bytes: &[u8]) -> usize {
    bytes.iter().map(|&byte| if plain(byte) { 1 } else { 4 }).sum()
}

/// Takes runs of blanks and tabs together and trims: the form in which an output is compared with what is expected.
pub(super) fn normalise(text: &str) -> String {
    let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    words.join(" ").trim_matches([' ', '\n']).to_owned()
}

/// How it is found out whether a path goes through a symbolic link.
#[derive(Debug, PartialEq, Eq)]
enum Alias {
    /// The kernel's own trees: their links are not other names for what a playbook writes.
    Never,
    /// Asked of the host: this directory, without blemishes of spelling.
    Ask { directory: String },
    /// It has a `..`, so its name is not its place.
    Surely,
}

fn alias_check(path: &str) -> Alias {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.contains(&"..") {
        return Alias::Surely;
    }
    match names.split_last() {
        Some(_) if ["proc", "sys"].contains(&names[0]) => Alias::Never,
        Some((_, [])) | None => Alias::Ask { directory: "/".to_owned() },
        Some((_, directory)) => Alias::Ask { directory: format!("/{}", directory.join("/")) },
    }
}

/// True if the path of a request is known to be another name for its place without asking the host.
pub(super) fn surely_aliased(verb: &Verb) -> bool {
    !matches!(verb, Verb::Unit { .. } | Verb::Script { .. }) && alias_check(subject(verb)) == Alias::Surely
}
