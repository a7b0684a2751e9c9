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

/// The longest command line that carries a first batch: it fits one packet of any server (RFC 4253 section 6.1), or
/// of OpenSSH (256 KiB, PACKET_MAX_SIZE), and one argument of `execve` on Linux (128 KiB, execve(2)).
pub(super) fn longest_command(server_version: &str) -> usize {
    if server_version.contains("OpenSSH") { 120_000 } else { 32_000 }
}

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
    with_length(compound(requests, features, "t_mark \"b $t_base64\""))
}

/// Puts the length of a long batch before it.
fn with_length(batch: String) -> Vec<u8> {
    if batch.len() < ANNOUNCED {
        return batch.into_bytes();
    }
    format!("t_batch {}\n{batch}", batch.len()).into_bytes()
}

/// A command line that answers a first batch and goes on as a shell, which knows nothing of the prelude then. OpenSSH
/// lets no data follow a command before it has started it: this way the first batch is not late. For reads only, as
/// others on the host can see it, and for short ones. `token` is not used again.
pub(super) fn first_command(program: &str, token: &Token, requests: &[Request], longest: usize) -> Option<String> {
    if !requests.iter().all(may_be_seen) {
        return None;
    }
    let mut text = prelude(&Token { first: token.whole(), second: String::new() });
    text.extend_from_slice(compound(requests, Features::default(), "t_announce").as_bytes());
    text.extend_from_slice(format!("cd \"$t_home\" 2>/dev/null; exec {program}\n").as_bytes());
    let command = format!("exec {program} -c 'eval \"$(printf \"{}\")\"'", octal(&text));
    (command.len() <= longest).then_some(command)
}

/// The same for the shell of another user, which `command` starts and which reads its batches from a pipe: first what
/// the command line brought, then what `cat` relays. It knows the prelude and goes on with the token of its answer.
/// `cat` runs in the background, so that the end of `command` is the end of all; the server then ends its input.
pub(super) fn first_relayed_command(
    program: &str,
    command: &str,
    token: &Token,
    requests: &[Request],
    longest: usize,
) -> Option<String> {
    if !requests.iter().all(may_be_seen) {
        return None;
    }
    let mut text = prelude(&Token { first: token.whole(), second: String::new() });
    text.extend_from_slice(&with_length(compound(requests, Features::default(), "t_announce")));
    let command = format!(
        "exec {program} -c '{{ printf \"{}\"; cat <&3 3<&- & }} 3<&0 2>/dev/null | eval \"$(printf \"{}\")\"'",
        octal(&text),
        octal(command.as_bytes())
    );
    (command.len() <= longest).then_some(command)
}

/// True for a read that others on the host may see in a list of processes.
fn may_be_seen(request: &Request) -> bool {
    request.guard == Guard::Always
        && request.writes.is_none()
        && !matches!(request.verb, Verb::Script { stdin: Some(_), .. })
}

/// A text as the format of a `printf` within double quotes within single quotes: octal where any login shell might see
/// more than a character; no shell touches the rest.
fn octal(text: &[u8]) -> String {
    let mut format = String::with_capacity(text.len() * 2);
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b" -_.,:;=+/@#(){}[]<>|&*?^~".contains(&byte) {
            format.push(char::from(byte));
        } else {
            let _ = write!(format, "\\{byte:03o}");
        }
    }
    format
}

/// The compound command of a batch; `begin` says that it begins.
fn compound(requests: &[Request], features: Features, begin: &str) -> String {
    // two pairs of braces: a redirection that was cut off would still be one
    let mut text = format!("{{ {{ t_ok=true t_dir= t_a=0; {begin}\n");
    let mut start = 0;
    while start < requests.len() {
        let length = requests[start..].iter().position(changes).map_or(requests.len() - start, |position| position + 1);
        compose_segment(&mut text, start, &requests[start..start + length], features);
        start += length;
    }
    text.push_str("t_mark e; } </dev/null; }\n");
    text
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    fn request(verb: Verb) -> Request {
        Request { verb, guard: Guard::Always, expect: None, writes: None }
    }

    fn script(text: &str) -> Request {
        request(Verb::Script { text: text.to_owned(), stdin: None })
    }

    fn composed(requests: &[Request]) -> String {
        let text = String::from_utf8(compose(requests, Features::default())).unwrap();
        let body = text.strip_prefix("{ { t_ok=true t_dir= t_a=0; t_mark \"b $t_base64\"\n").unwrap();
        body.strip_suffix("t_mark e; } </dev/null; }\n").unwrap().to_owned()
    }

    #[test]
    fn reads_are_gathered_up_to_the_next_change() {
        let stat = |path: &str| request(Verb::Stat { path: path.into(), follow: true });
        let line = |path: &str| request(Verb::Line { path: path.into() });
        let requests = [
            stat("/etc/a"),
            line("/proc/x"),
            script("read"),
            stat("/etc/b c"),
            line("/sys/y"),
            Request { guard: Guard::Chained, ..script("change") },
            stat("/etc/a"),
            stat("/etc/../d"),
        ];
        assert_eq!(
            composed(&requests),
            "t_many S 0 /etc/a /etc 3 '/etc/b c' /etc\n\
             t_lines 1 /proc/x 4 /sys/y\n\
             t_script read\nt_end 2 \"$?\"\nt_dir=\n\
             if $t_ok; then t_script change\nt_end 5 \"$?\"\nt_chain; fi\nt_dir=\n\
             t_many S 6 /etc/a /etc 7 /etc/../d ''\n"
        );
    }

    #[test]
    fn no_process_gets_too_many_paths() {
        let stat = |index: usize| request(Verb::Stat { path: format!("/{index}"), follow: true });
        let requests: Vec<Request> = (0..GATHERED * 2 + 1).map(stat).collect();
        assert_eq!(composed(&requests).matches("t_many").count(), 3);
    }

    #[test]
    fn input_is_written_as_printf_reads_it() {
        let text = |stdin: &[u8], base64| {
            let mut text = String::new();
            compose_stdin(&mut text, stdin, Features { base64 });
            text
        };
        assert_eq!(text(b"-a %'\\\n\0", false), "{ :\nprintf '\\055a %%\\047\\134\n\\000'\n} 2>/dev/null | ");
        assert_eq!(text(&[0; 6], true), "{ :\nprintf %s AAAAAAAA\n} 2>/dev/null | base64 -d 2>/dev/null | ");
        assert_eq!(text(&[0; 2], false), "{ :\nprintf '\\000\\000'\n} 2>/dev/null | ");
    }

    #[test]
    fn blanks_are_taken_together() {
        let cases = [("", ""), (" a \t b\n", "a b"), ("a\n \n", "a"), ("a \n b", "a \n b"), ("\n\t a\nb ", "a\nb")];
        for (text, expected) in cases {
            assert_eq!(normalise(text), expected, "{text:?}");
        }
    }

    /// Feeds a shell and waits for its end.
    fn feed(shell: &str, text: &[u8]) {
        let mut words = shell.split(' ');
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // a shell that has read enough may be gone before the last byte
        let _ = child.stdin.take().unwrap().write_all(text);
        child.wait().unwrap();
    }

    #[test]
    fn a_batch_that_is_cut_off_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let token = Token::new([1; 16]);
        let fill = "#".repeat(ANNOUNCED);
        for shell in ["dash", "bash --posix", "busybox ash"] {
            let program = shell.split(' ').next().unwrap();
            if !["/bin", "/usr/bin"].iter().any(|folder| Path::new(folder).join(program).exists()) {
                continue;
            }
            for long in [false, true] {
                let done = folder.path().join(format!("{program} {long}"));
                let touch = format!("echo done >'{}'", done.display());
                let mut requests = vec![script(&touch), script(&touch)];
                if long {
                    requests.push(script(&fill));
                }
                let batch = compose(&requests, Features::default());
                let send = |length: usize| {
                    let mut text = prelude(&token);
                    text.extend_from_slice(&batch[..length]);
                    feed(shell, &text);
                    done.exists()
                };
                // the last newline is not needed, the brace before it is
                let end = batch.len() - 1;
                let some = (0..end).step_by(if long { 1000 } else { 9 });
                for length in some.chain(end - 20..end) {
                    assert!(!send(length), "{shell}: {length} of {} bytes", batch.len());
                }
                assert!(send(batch.len()), "{shell}");
            }
        }
    }
}
