//! The requests that a host's shell answers, and their answers.

/// A read or a step, as the shell is asked for it. Paths are absolute and never quoted by the caller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A small text file of the kernel (/proc, /sys), read by the shell's own `read`: no fork.
    /// Code 0 and its text without the last newline; 1 if it does not exist or cannot be read.
    Line { path: String },
    /// A whole file, byte for byte. Code 0; 1 if missing, stderr says why otherwise.
    Content { path: String },
    /// What `stat` knows, as one line of fields separated by NUL-free tabs, see [`STAT_FORMAT`];
    /// code 1 with empty output if nothing is there. All of a batch share one `stat` process.
    Stat { path: String, follow: bool },
    /// Hexadecimal digest of a regular file; code 1 if there is none. `algorithm`: md5, sha1, sha224, sha256, sha384, sha512.
    Checksum { path: String, algorithm: &'static str },
    /// `systemctl show` of a unit: `Key=value` lines of [`UNIT_PROPERTIES`]. All of a batch share one process.
    /// Code 127 if there is no systemctl.
    Unit { name: String },
    /// POSIX shell code, run in a subshell with `stdin` as its standard input (else /dev/null).
    /// Secrets go in `stdin` only.
    Script { text: String, stdin: Option<Vec<u8>> },
}

/// The fields of [`Verb::Stat`], in order, separated by tabs: type (`f d l c b p s`), mode (octal, with
/// setuid, setgid and sticky bits), uid, gid, owner, group, size, inode, device, links, atime, mtime, ctime
/// (seconds with fraction), and last the target of a symbolic link (rest of the line, raw; may be empty).
pub const STAT_FIELDS: usize = 14;

/// The properties asked of a unit.
pub const UNIT_PROPERTIES: &[&str] = &[
    "Id",
    "Names",
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "FragmentPath",
    "DropInPaths",
    "NeedDaemonReload",
    "MainPID",
    "CPUAffinity",
    "NUMAPolicy",
    "NUMAMask",
    "Type",
    "Description",
];

/// When a request of a batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Whatever happened before it. A script of this kind that writes and expects nothing is a read: reads of a batch
    /// may be answered in another order among themselves, but never across a change.
    Always,
    /// Only if every earlier guarded request of the same batch succeeded (code 0 and the output it expects,
    /// and no path that was reached through a symbolic link, see [`Response::aliased`]). A script of this kind is a
    /// change.
    Chained,
}

/// One request of a batch.
#[derive(Debug, Clone)]
pub struct Request {
    pub verb: Verb,
    pub guard: Guard,
    /// The output without which the request counts as failed although its code is 0: the read-back. Trimmed, and runs
    /// of blanks and tabs count as one. Stops a chain only: the code of the answer stays 0. NULs in the output are lost.
    pub expect: Option<String>,
    /// The path that a change writes: the answer says if it was reached through a symbolic link.
    pub writes: Option<String>,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The exit code; `None` if the guard kept the request from running.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True if the path of the request was reached through a symbolic link (or is one, or has hard links), so that
    /// another name may stand for the same file.
    pub aliased: bool,
}

impl Response {
    /// A successful answer with this output.
    pub fn output(stdout: impl Into<Vec<u8>>) -> Response {
        Response { code: Some(0), stdout: stdout.into(), ..Response::default() }
    }

    /// The answer of something that is not there.
    pub fn missing() -> Response {
        Response { code: Some(1), ..Response::default() }
    }

    pub fn success(&self) -> bool {
        self.code == Some(0)
    }

    /// Standard output as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Quotes a word for a POSIX shell.
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"@%_-+=:,./".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
