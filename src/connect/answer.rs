//! What comes back: frames on two streams, taken apart into the answers of a batch. Pure.
//!
//! Each frame is its bytes followed by a mark, `TOKEN WORD…` and a newline, on stdout and stderr alike; the n-th mark
//! of one stream belongs to the n-th of the other. Marks:
//!
//! | mark | the bytes before it |
//! |---|---|
//! | `b BASE64`, `b BASE64 TOKEN` | noise: what came before the batch; the token that holds from here |
//! | `o INDEX CODE ALIASED` | the output of one request |
//! | `g CODE INDEX…` | `path:line` lines of many files |
//! | `s CODE INDEX:ALIASED…`, `S …` | a line of stat for each file that could be looked at |
//! | `md5 CODE INDEX:ALIASED…`, `sha1 …` | digests of many files |
//! | `u CODE INDEX…` | blocks of properties of units |
//! | `l INDEX` | the target of a symbolic link |
//! | `x` | to be forgotten: the requests are answered one by one behind it |
//! | `e` | nothing; the batch has ended |

use std::collections::{HashMap, VecDeque};

use super::batch::{Features, Token, subject, surely_aliased};
use super::shell::{Request, Response, Verb};

/// So much of what is skipped is kept for error messages.
const NOISE: usize = 4096;

/// Noise beyond this is forgotten as it comes.
const ENDLESS: usize = 1024 * 1024;

/// No token of a host is shorter: nothing else could be told from it.
const SHORTEST: usize = 16;

/// One stream, cut at its marks.
#[derive(Debug, Default)]
struct Stream {
    token: Vec<u8>,
    begun: bool,
    pending: Vec<u8>,
    /// No mark begins before this place of `pending`.
    searched: usize,
    frames: VecDeque<(Vec<u8>, String)>,
}

impl Stream {
    fn new(token: &Token) -> Stream {
        Stream { token: token.whole().into_bytes(), ..Stream::default() }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while let Some(begin) = find(&self.pending[self.searched..], &self.token).map(|at| at + self.searched) {
            let words = begin + self.token.len();
            let Some(length) = self.pending[words..].iter().position(|&byte| byte == b'\n') else {
                self.searched = begin;
                return;
            };
            let mark = String::from_utf8_lossy(&self.pending[words..words + length]).trim().to_owned();
            let rest = self.pending.split_off(words + length + 1);
            let mut payload = std::mem::replace(&mut self.pending, rest);
            payload.truncate(begin);
            self.searched = 0;
            if !std::mem::replace(&mut self.begun, true)
                && let Some(token) = mark.strip_prefix("b ").and_then(|words| words.split(' ').nth(1))
                && token.len() >= SHORTEST
            {
                self.token = token.as_bytes().to_vec();
            }
            self.frames.push_back((payload, mark));
        }
        self.searched = self.pending.len().saturating_sub(self.token.len() - 1);
        if !self.begun && self.pending.len() > ENDLESS {
            // a host that talks without end is not listened to without end
            let kept = self.pending.split_off(self.pending.len() - NOISE);
            self.pending = kept;
            self.searched = 0;
        }
    }
}

/// The place of `needle` in `hay`.
pub(super) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = hay[from..].iter().position(|byte| *byte == needle[0]) {
        let at = from + at;
        if hay[at..].len() < needle.len() {
            return None;
        }
        if hay[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

/// The answers to one batch, as they arrive.
#[derive(Debug)]
pub(super) struct Answers<'a> {
    requests: &'a [Request],
    stdout: Stream,
    stderr: Stream,
    responses: Vec<Response>,
    links: HashMap<usize, Vec<u8>>,
    began: Option<Features>,
    ended: bool,
    noise: Vec<u8>,
}

/// A stream of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    Stdout,
    Stderr,
}

/// The answers in a recorded conversation: what a shell said to one batch, piece by piece as it arrived. `token` ends
/// each frame. An error is what no shell with our prelude says.
pub fn replay(token: &str, requests: &[Request], said: &[(Output, &[u8])]) -> Result<Vec<Response>, String> {
    if token.len() < SHORTEST {
        return Err(format!("the token `{token}` is shorter than {SHORTEST} characters"));
    }
    let mut answers = Answers::new(&Token { first: token.to_owned(), second: String::new() }, requests);
    for (output, bytes) in said {
        let fed = match output {
            Output::Stdout => answers.feed_stdout(bytes),
            Output::Stderr => answers.feed_stderr(bytes),
        };
        fed.map_err(|Garbled(reason)| reason)?;
    }
    Ok(answers.into_responses())
}

/// Something that no shell with our prelude says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Garbled(pub(super) String);

impl<'a> Answers<'a> {
    pub(super) fn new(token: &Token, requests: &'a [Request]) -> Answers<'a> {
        Answers {
            requests,
            stdout: Stream::new(token),
            stderr: Stream::new(token),
            responses: vec![Response::default(); requests.len()],
            links: HashMap::new(),
            began: None,
            ended: false,
            noise: Vec::new(),
        }
    }

    pub(super) fn feed_stdout(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        self.stdout.feed(bytes);
        self.take_frames()
    }

    pub(super) fn feed_stderr(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        self.stderr.feed(bytes);
        self.take_frames()
    }

    /// What the host can do, once the batch has begun.
    pub(super) fn began(&self) -> Option<Features> {
        self.began
    }

    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// The token of the last frames: the host may have made one of its own.
    pub(super) fn token(&self) -> Token {
        Token { first: String::from_utf8_lossy(&self.stdout.token).into_owned(), second: String::new() }
    }

    /// How many requests have been answered.
    pub(super) fn answered(&self) -> usize {
        self.responses.iter().filter(|response| response.code.is_some()).count()
    }

    pub(super) fn into_responses(self) -> Vec<Response> {
        self.responses
    }

    /// What was said before the batch began or after its last frame, for error messages.
    pub(super) fn noise(&self) -> String {
        let mut bytes = self.noise.clone();
        for stream in [&self.stderr, &self.stdout] {
            for (payload, _) in &stream.frames {
                bytes.extend_from_slice(tail(payload));
            }
            bytes.extend_from_slice(tail(&stream.pending));
        }
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    fn take_frames(&mut self) -> Result<(), Garbled> {
        while !self.ended && !self.stdout.frames.is_empty() && !self.stderr.frames.is_empty() {
            let (Some((stdout, mark)), Some((stderr, other))) =
                (self.stdout.frames.pop_front(), self.stderr.frames.pop_front())
            else {
                return Ok(());
            };
            if mark != other {
                return Err(Garbled(format!("the streams disagree: `{mark}` and `{other}`")));
            }
            self.take_frame(&mark, stdout, stderr).ok_or_else(|| Garbled(format!("unknown mark `{mark}`")))?;
        }
        Ok(())
    }

    fn take_frame(&mut self, mark: &str, stdout: Vec<u8>, stderr: Vec<u8>) -> Option<()> {
        let mut words = mark.split(' ');
        let kind = words.next()?;
        if kind == "b" {
            self.began = Some(Features { base64: words.next()? == "1" });
            self.noise.extend_from_slice(tail(&stderr));
            self.noise.extend_from_slice(tail(&stdout));
            return Some(());
        }
        self.began?;
        match kind {
            "o" => {
                let index: usize = words.next()?.parse().ok()?;
                let code: i32 = words.next()?.parse().ok()?;
                let aliased = words.next()? == "1";
                self.answer(index, Response { code: Some(code), stdout, stderr, aliased })
            }
            "l" => {
                let index: usize = words.next()?.parse().ok()?;
                self.links.insert(index, stdout);
                Some(())
            }
            "x" => Some(()),
            "e" => {
                self.ended = true;
                Some(())
            }
            _ => {
                let code: i32 = words.next()?.parse().ok()?;
                let mut members = Vec::new();
                for word in words {
                    let (index, aliased) = word.split_once(':').unwrap_or((word, "0"));
                    members.push((index.parse().ok()?, aliased == "1"));
                }
                self.take_shared(kind, code, &members, &stdout, &stderr)
            }
        }
    }

    /// Takes apart the output of one process that served many requests.
    fn take_shared(
        &mut self,
        kind: &str,
        code: i32,
        members: &[(usize, bool)],
        stdout: &[u8],
        stderr: &[u8],
    ) -> Option<()> {
        let mut rest = stdout;
        let blocks = if kind == "u" { unit_blocks(stdout) } else { Vec::new() };
        // a name that stands for several units, say: better no answer than another's
        let mut blocks = if blocks.len() == members.len() { blocks } else { Vec::new() }.into_iter();
        for &(index, aliased) in members {
            let name = subject(&self.requests.get(index)?.verb);
            let output = match kind {
                "g" => take_lines(&mut rest, name),
                "s" | "S" => take_stat(&mut rest, name),
                "u" => blocks.next(),
                _ => take_digest(&mut rest, name),
            };
            let errors = about(stderr, name);
            let response = match output {
                // grep says nothing of an empty file: it failed only if there is a complaint
                None if kind == "g" && errors.is_empty() && code <= 2 => Response::output(Vec::new()),
                None => Response { code: Some(code.max(1)), stderr: errors, ..Response::default() },
                Some(output) => Response { stderr: errors, ..Response::output(output) },
            };
            self.answer(index, Response { aliased, ..response })?;
        }
        Some(())
    }

    /// Gives an answer its final form.
    fn answer(&mut self, index: usize, mut response: Response) -> Option<()> {
        let verb = &self.requests.get(index)?.verb;
        if let Verb::Stat { .. } = verb
            && let Some(target) = self.links.remove(&index)
            && response.code == Some(0)
        {
            response.stdout.extend_from_slice(&target);
        }
        if let Verb::Line { .. } = verb
            && response.stdout.last() == Some(&b'\n')
        {
            response.stdout.pop();
        }
        response.aliased |=
            surely_aliased(verb) || matches!(verb, Verb::Stat { .. } if has_more_names(&response.stdout));
        *self.responses.get_mut(index)? = response;
        Some(())
    }
}

/// True if a `stat` answer is of a file with several names (hard links).
fn has_more_names(answer: &[u8]) -> bool {
    let mut fields = answer.split(|byte| *byte == b'\t');
    let is_directory = fields.next() == Some(b"d");
    !is_directory && fields.nth(8).is_some_and(|links| links.len() > 1 || links > &b"1"[..])
}

fn tail(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(NOISE)..]
}

/// The lines of stderr that name a file; all of them if none names any.
fn about(stderr: &[u8], name: &str) -> Vec<u8> {
    if find(stderr, b": ").is_none() {
        return stderr.to_vec();
    }
    let lines = stderr.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| names(line, name.as_bytes())).collect::<Vec<_>>().concat()
}

/// True if a complaint names this file, or no file at all.
fn names(line: &[u8], name: &[u8]) -> bool {
    match find(line, name) {
        Some(at) => {
            !line.get(at + name.len()).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(byte))
        }
        None => !line.contains(&b'/'),
    }
}

/// Takes the lines of one file from what `grep -H ''` printed.
fn take_lines(rest: &mut &[u8], path: &str) -> Option<Vec<u8>> {
    let prefix = format!("{path}:").into_bytes();
    let mut text = Vec::new();
    let mut found = false;
    while let Some(line) = rest.strip_prefix(prefix.as_slice()) {
        let length = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |at| at + 1);
        text.extend_from_slice(&line[..length]);
        *rest = &line[length..];
        found = true;
    }
    found.then_some(text)
}

/// Takes the line of one file from what stat printed, if it could look at it: the mode in hexadecimal, the fields,
/// the name (which may itself hold newlines).
fn take_stat(rest: &mut &[u8], path: &str) -> Option<Vec<u8>> {
    let mut tabs = rest.iter().enumerate().filter(|(_, byte)| **byte == b'\t').map(|(at, _)| at);
    let (first, last) = (tabs.next()?, tabs.nth(10)?);
    let after = rest[last + 1..].strip_prefix(path.as_bytes())?.strip_prefix(b"\n")?;
    let mode = u32::from_str_radix(std::str::from_utf8(&rest[..first]).ok()?, 16).ok()?;
    let mut output = format!("{}\t{:o}", file_type(mode), mode & 0o7777).into_bytes();
    output.extend_from_slice(&rest[first..=last]);
    *rest = after;
    Some(output)
}

/// The letter of `find -type` for the type bits of a mode (inode(7)).
fn file_type(mode: u32) -> char {
    match mode & 0o170_000 {
        0o100_000 => 'f',
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        _ => 's',
    }
}

/// Takes the digest of one file: `digest  name`, or with a backslash before both where the name needs one.
fn take_digest(rest: &mut &[u8], path: &str) -> Option<Vec<u8>> {
    let length = rest.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&rest[..length]).ok()?;
    let (digest, name) = line.split_once(' ')?;
    let name = name.strip_prefix([' ', '*'])?;
    let (digest, plain) = match digest.strip_prefix('\\') {
        Some(digest) => (digest, path.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")),
        None => (digest, path.to_owned()),
    };
    if name != plain {
        return None;
    }
    *rest = &rest[length + 1..];
    Some(digest.as_bytes().to_vec())
}

/// The blocks of `systemctl show`, which an empty line separates.
fn unit_blocks(stdout: &[u8]) -> Vec<Vec<u8>> {
    let mut blocks = vec![Vec::new()];
    for line in stdout.split_inclusive(|byte| *byte == b'\n') {
        if line == b"\n" {
            blocks.push(Vec::new());
        } else if let Some(block) = blocks.last_mut() {
            block.extend_from_slice(line);
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_with_more_names_are_noticed() {
        let stat = |kind: &str, links: &str| format!("{kind}\t644\t0\t0\troot\troot\t5\t7\t8\t{links}\t0\t0\t0\t");
        for (kind, links, expected) in [("f", "1", false), ("f", "2", true), ("f", "10", true), ("d", "3", false)] {
            assert_eq!(super::has_more_names(stat(kind, links).as_bytes()), expected, "{kind} {links}");
        }
        assert!(!super::has_more_names(b""));
    }

    use super::*;
    use crate::connect::shell::Guard;

    fn request(verb: Verb) -> Request {
        Request { verb, guard: Guard::Always, expect: None, writes: None }
    }

    fn token() -> Token {
        Token { first: "TOK".into(), second: "EN".into() }
    }

    #[test]
    fn frames_are_found_wherever_the_streams_are_cut() {
        let requests = [
            request(Verb::Script { text: "one".into(), stdin: None }),
            request(Verb::Line { path: "/proc/two".into() }),
            request(Verb::Script { text: "not run".into(), stdin: None }),
        ];
        let stdout = b"motd TOKE\nTOKEN b 1\nout\0TOK\nTOKEN o 0 3 0\ntwo\nTOKEN o 1 0 1\nTOKEN e\nlate";
        let stderr = b"lecture\nTOKEN b 1\nerrTOKEN o 0 3 0\nTOKEN o 1 0 1\nTOKEN e\n";
        for cut in 0..stdout.len() {
            let mut answers = Answers::new(&token(), &requests);
            answers.feed_stdout(&stdout[..cut]).unwrap();
            answers.feed_stderr(&stderr[..cut.min(stderr.len() - 1)]).unwrap();
            assert!(!answers.ended());
            answers.feed_stderr(&stderr[cut.min(stderr.len() - 1)..]).unwrap();
            answers.feed_stdout(&stdout[cut..]).unwrap();
            assert!(answers.ended() && answers.began() == Some(Features { base64: true }), "cut at {cut}");
            assert_eq!(answers.noise(), "lecture\nmotd TOKE\nlate");
            let responses = answers.into_responses();
            let first = Response { stderr: b"err".to_vec(), code: Some(3), ..Response::output(*b"out\0TOK\n") };
            assert_eq!(responses[0], first, "cut at {cut}");
            assert_eq!(responses[1], Response { aliased: true, ..Response::output(*b"two") }, "cut at {cut}");
            assert_eq!(responses[2], Response::default());
        }
    }

    #[test]
    fn a_recorded_conversation_can_be_replayed() {
        let requests = [request(Verb::Line { path: "/proc/two".into() })];
        let token = "0123456789abcdef";
        let stdout = format!("{token}b 1\ntwo\n{token}o 0 0 0\n");
        let stderr = format!("{token}b 1\n{token}o 0 0 0\n");
        let said = [(Output::Stderr, stderr.as_bytes()), (Output::Stdout, stdout.as_bytes())];
        assert_eq!(replay(token, &requests, &said), Ok(vec![Response::output(*b"two")]));
        assert_eq!(replay(token, &requests, &said[..1]), Ok(vec![Response::default()]));
        assert!(replay("short", &requests, &said).is_err());
        assert!(replay(token, &[], &said).is_err(), "an answer to nothing");
    }

    #[test]
    fn endless_noise_is_forgotten() {
        let mut answers = Answers::new(&token(), &[]);
        for _ in 0..100 {
            answers.feed_stdout(&[b'x'; 100_000]).unwrap();
            assert!(answers.stdout.pending.len() <= ENDLESS + 100_000);
        }
        answers.feed_stdout(b"TOKEN b 1\nTOKEN e\n").unwrap();
        answers.feed_stderr(b"TOKEN b 1\nTOKEN e\n").unwrap();
        assert!(answers.ended());
    }

    #[test]
    fn marks_that_make_no_sense_are_refused() {
        let requests = [request(Verb::Unit { name: "a".into() })];
        for mark in ["o 0 0 0", "b", "b 1\nTOKEN o 1 0 0", "b 1\nTOKEN o x 0 0", "b 1\nTOKEN u 0 5", "b 1\nTOKEN ?"] {
            let mut answers = Answers::new(&token(), &requests);
            answers.feed_stdout(format!("TOKEN {mark}\n").as_bytes()).unwrap();
            assert!(answers.feed_stderr(format!("TOKEN {mark}\n").as_bytes()).is_err(), "{mark}");
        }
        let mut answers = Answers::new(&token(), &requests);
        answers.feed_stdout(b"TOKEN b 1\n").unwrap();
        assert!(answers.feed_stderr(b"TOKEN b 0\n").is_err());
    }

    #[test]
    fn the_token_changes_where_the_host_says_so() {
        let requests = [request(Verb::Script { text: "one".into(), stdin: None })];
        let mut answers = Answers::new(&token(), &requests);
        let stdout =
            b"TOKEN b 0 0123456789abcdef\nforged TOKEN o 0 9 0\n0123456789abcdef o 0 1 0\n0123456789abcdef e\n";
        for byte in stdout {
            answers.feed_stdout(&[*byte]).unwrap();
        }
        answers.feed_stderr(b"TOKEN b 0 0123456789abcdef\n0123456789abcdef o 0 1 0\n0123456789abcdef e\n").unwrap();
        assert!(answers.ended());
        let expected = Response { code: Some(1), ..Response::output(*b"forged TOKEN o 0 9 0\n") };
        assert_eq!(answers.into_responses(), [expected]);
    }

    /// Feeds one shared frame and gives the answers.
    fn shared(verbs: Vec<Verb>, mark: &str, stdout: &str, stderr: &str) -> Vec<Response> {
        let requests: Vec<Request> = verbs.into_iter().map(request).collect();
        let mut answers = Answers::new(&token(), &requests);
        answers.feed_stdout(format!("TOKEN b 1\n{stdout}TOKEN {mark}\nTOKEN e\n").as_bytes()).unwrap();
        answers.feed_stderr(format!("TOKEN b 1\n{stderr}TOKEN {mark}\nTOKEN e\n").as_bytes()).unwrap();
        assert!(answers.ended());
        answers.into_responses()
    }

    #[test]
    fn a_file_that_vanished_under_stat_does_not_shift_the_others() {
        let verbs = ["/a", "/a/b\nc", "/d"].map(|path| Verb::Stat { path: path.into(), follow: true }).to_vec();
        let line = |name: &str| format!("81a4\t0\t0\troot\troot\t5\t7\t8\t1\t1.5\t2.5\t3.5\t{name}\n");
        let stdout = format!("{}{}", line("/a/b\nc"), line("/d"));
        let responses =
            shared(verbs, "S 1 0:0 1:1 2:0", &stdout, "stat: cannot stat '/a': No such file or directory\n");
        assert_eq!((responses[0].code, responses[0].stdout.len()), (Some(1), 0));
        assert!(responses[0].error_text().contains("'/a'"));
        assert_eq!(responses[1].text(), "f\t644\t0\t0\troot\troot\t5\t7\t8\t1\t1.5\t2.5\t3.5\t");
        assert!(responses[1].aliased && responses[1].stderr.is_empty());
        assert_eq!(responses[2].code, Some(0));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_from_an_empty_one() {
        let verbs = ["/proc/sys/a", "/proc/sys/b", "/proc/sys/c"].map(|path| Verb::Line { path: path.into() }).to_vec();
        let responses =
            shared(verbs, "g 2 0 1 2", "/proc/sys/c:1\n/proc/sys/c:2\n", "grep: /proc/sys/a: Permission denied\n");
        assert_eq!((responses[0].code, responses[0].error_text().contains("denied")), (Some(2), true));
        assert_eq!((responses[1].code, responses[1].text().as_str()), (Some(0), ""));
        assert_eq!((responses[2].code, responses[2].text().as_str()), (Some(0), "1\n2"));
    }

    #[test]
    fn digests_go_to_their_files() {
        let verbs =
            ["/a", "/b\\c\nd", "/e"].map(|path| Verb::Checksum { path: path.into(), algorithm: "md5" }).to_vec();
        let responses =
            shared(verbs, "md5 1 0:0 1:0 2:0", "\\22  /b\\\\c\\nd\n33  /e\n", "md5sum: /a: Permission denied\n");
        let texts: Vec<_> = responses.iter().map(|response| (response.code, response.text())).collect();
        assert_eq!(texts, [(Some(1), String::new()), (Some(0), "22".into()), (Some(0), "33".into())]);
    }

    #[test]
    fn blocks_of_units_are_not_given_to_others() {
        let verbs = || ["a", "b"].map(|name| Verb::Unit { name: name.into() }).to_vec();
        let responses = shared(verbs(), "u 0 0 1", "Id=a\nDescription=\n\nId=b\n", "");
        assert_eq!((responses[0].text(), responses[1].text()), ("Id=a\nDescription=\n".into(), "Id=b\n".into()));
        let responses = shared(verbs(), "u 0 0 1", "Id=a\n\nId=a2\n\nId=b\n", "");
        assert_eq!((responses[0].code, responses[1].code), (Some(1), Some(1)));
    }
}
