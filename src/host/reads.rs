//! The kinds of read: what each asks and how its answer is understood.

use crate::connect::shell::{Response, STAT_FIELDS};

use super::failure::Failure;
use super::footprint::Footprint;
use super::query::Query;

/// A typed question. Parsing is pure, so it is tested without a host.
pub trait Read {
    type Answer;
    fn query(&self) -> Query;
    fn parse(&self, response: &Response) -> Result<Self::Answer, Failure>;
}

/// A question as it was asked before, and its bare answer.
#[derive(Debug, Clone)]
pub struct Asked(pub Query);

impl Read for Asked {
    type Answer = Response;

    fn query(&self) -> Query {
        self.0.clone()
    }

    fn parse(&self, response: &Response) -> Result<Response, Failure> {
        Ok(response.clone())
    }
}

/// The text of a small kernel file (`/proc/sys/…`, `/sys/…`), or `None` if it does not exist.
#[derive(Debug, Clone)]
pub struct KernelFile(pub String);

impl Read for KernelFile {
    type Answer = Option<String>;

    fn query(&self) -> Query {
        Query::Line(self.0.clone())
    }

    fn parse(&self, response: &Response) -> Result<Option<String>, Failure> {
        Ok(response.success().then(|| response.text()))
    }
}

/// The whole content of a file, or `None` if it does not exist.
#[derive(Debug, Clone)]
pub struct FileContent(pub String);

impl Read for FileContent {
    type Answer = Option<Vec<u8>>;

    fn query(&self) -> Query {
        Query::Content(self.0.clone())
    }

    fn parse(&self, response: &Response) -> Result<Option<Vec<u8>>, Failure> {
        if response.success() {
            return Ok(Some(response.stdout.clone()));
        }
        let reason = response.error_text();
        let reason = reason.trim();
        if reason.is_empty() || reason.contains("No such file") || reason.contains("Not a directory") {
            Ok(None)
        } else {
            Err(Failure::new(format!("cannot read {}: {reason}", self.0)))
        }
    }
}

/// What kind of thing a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Link,
    Character,
    Block,
    Fifo,
    Socket,
}

impl FileKind {
    fn letter(self) -> char {
        match self {
            FileKind::File => 'f',
            FileKind::Directory => 'd',
            FileKind::Link => 'l',
            FileKind::Character => 'c',
            FileKind::Block => 'b',
            FileKind::Fifo => 'p',
            FileKind::Socket => 's',
        }
    }

    fn from_letter(letter: &str) -> Option<FileKind> {
        Some(match letter {
            "f" => FileKind::File,
            "d" => FileKind::Directory,
            "l" => FileKind::Link,
            "c" => FileKind::Character,
            "b" => FileKind::Block,
            "p" => FileKind::Fifo,
            "s" => FileKind::Socket,
            _ => return None,
        })
    }

    /// The word of the file module's `state` return value.
    pub fn state(self) -> &'static str {
        match self {
            FileKind::Directory => "directory",
            FileKind::Link => "link",
            _ => "file",
        }
    }
}

/// The attributes of a file that a change can predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAttributes {
    pub kind: FileKind,
    /// Permission bits with setuid, setgid and sticky: 0 to 0o7777.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub owner: String,
    pub group: String,
    /// In bytes; only of regular files, 0 for all else.
    pub size: u64,
    /// Where a symbolic link points to; empty for all else.
    pub target: String,
    /// How many names the file has (hard links); 1 of a directory.
    pub names: u64,
}

impl FileAttributes {
    /// The answer of a host where a file has these attributes.
    pub fn to_response(&self) -> Response {
        let response = Response::output(format!(
            "{}\t{:o}\t{}\t{}\t{}\t{}\t{}\t0\t0\t{}\t0\t0\t0\t{}",
            self.kind.letter(),
            self.mode,
            self.uid,
            self.gid,
            self.owner,
            self.group,
            self.size,
            self.names,
            self.target
        ));
        // a change by another name of the file would not be seen
        Response { aliased: self.names > 1, ..response }
    }
}

/// For people: `file 0644 root:root 5 bytes`.
impl std::fmt::Display for FileAttributes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FileAttributes { kind, mode, owner, group, size, target, .. } = self;
        match kind {
            FileKind::Link => write!(formatter, "link to {target}, of {owner}:{group}"),
            FileKind::File => write!(formatter, "file {mode:04o} {owner}:{group} {size} bytes"),
            other => write!(formatter, "{} {mode:04o} {owner}:{group}", other.state()),
        }
    }
}

/// Asks for the attributes of a path; `None` if nothing is there.
#[derive(Debug, Clone)]
pub struct Attributes {
    pub path: String,
    /// Follow a symbolic link at the end of the path.
    pub follow: bool,
}

impl Read for Attributes {
    type Answer = Option<FileAttributes>;

    fn query(&self) -> Query {
        Query::Attributes { path: self.path.clone(), follow: self.follow }
    }

    fn parse(&self, response: &Response) -> Result<Option<FileAttributes>, Failure> {
        let Some(fields) = stat_fields(&self.path, response)? else { return Ok(None) };
        let (attributes, _) = parse_stat(&self.path, &fields)?;
        let size = if attributes.kind == FileKind::File { attributes.size } else { 0 };
        Ok(Some(FileAttributes { size, ..attributes }))
    }
}

/// All that stat(2) knows of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStat {
    pub attributes: FileAttributes,
    pub inode: u64,
    pub device: u64,
    pub links: u64,
    /// Seconds since the epoch.
    pub atime: f64,
    pub mtime: f64,
    pub ctime: f64,
}

/// Asks for all that stat(2) knows; `None` if nothing is there.
#[derive(Debug, Clone)]
pub struct Stat {
    pub path: String,
    pub follow: bool,
}

impl Read for Stat {
    type Answer = Option<FileStat>;

    fn query(&self) -> Query {
        Query::Stat { path: self.path.clone(), follow: self.follow }
    }

    fn parse(&self, response: &Response) -> Result<Option<FileStat>, Failure> {
        let Some(fields) = stat_fields(&self.path, response)? else { return Ok(None) };
        let (attributes, times) = parse_stat(&self.path, &fields)?;
        let number = |index: usize| fields[index].parse::<u64>().unwrap_or(0);
        let [atime, mtime, ctime] = times;
        Ok(Some(FileStat { attributes, inode: number(7), device: number(8), links: number(9), atime, mtime, ctime }))
    }
}

fn stat_fields(path: &str, response: &Response) -> Result<Option<Vec<String>>, Failure> {
    if !response.success() {
        let reason = response.error_text();
        let reason = reason.trim();
        return if reason.is_empty() || reason.contains("No such file") || reason.contains("Not a directory") {
            Ok(None)
        } else {
            Err(Failure::new(format!("cannot look at {path}: {reason}")))
        };
    }
    let text = response.text();
    let fields: Vec<String> = text.splitn(STAT_FIELDS, '\t').map(str::to_owned).collect();
    if fields.len() == STAT_FIELDS {
        Ok(Some(fields))
    } else {
        Err(Failure::new(format!("the host's `stat` answered for {path} what cannot be understood: {text:?}")))
    }
}

fn parse_stat(path: &str, fields: &[String]) -> Result<(FileAttributes, [f64; 3]), Failure> {
    let bad = |what: &str| Failure::new(format!("the host's `stat` gave no {what} for {path}: {fields:?}"));
    let kind = FileKind::from_letter(&fields[0]).ok_or_else(|| bad("file type"))?;
    let attributes = FileAttributes {
        kind,
        mode: u32::from_str_radix(&fields[1], 8).map_err(|_| bad("mode"))? & 0o7777,
        uid: fields[2].parse().map_err(|_| bad("user id"))?,
        gid: fields[3].parse().map_err(|_| bad("group id"))?,
        owner: fields[4].clone(),
        group: fields[5].clone(),
        size: fields[6].parse().map_err(|_| bad("size"))?,
        target: fields[13].clone(),
        names: if kind == FileKind::Directory { 1 } else { fields[9].parse().unwrap_or(1) },
    };
    let time = |index: usize| fields[index].parse::<f64>().unwrap_or(0.0);
    Ok((attributes, [time(10), time(11), time(12)]))
}

/// Asks for the hexadecimal digest of a file; `None` if there is no such file.
#[derive(Debug, Clone)]
pub struct Checksum {
    pub path: String,
    pub algorithm: &'static str,
}

impl Read for Checksum {
    type Answer = Option<String>;

    fn query(&self) -> Query {
        Query::Checksum { path: self.path.clone(), algorithm: self.algorithm }
    }

    fn parse(&self, response: &Response) -> Result<Option<String>, Failure> {
        Ok(response.success().then(|| response.text().trim().to_owned()))
    }
}

/// The state of a systemd unit; `None` if the host has no systemctl.
#[derive(Debug, Clone)]
pub struct Unit(pub String);

/// What `systemctl show` says of a unit: property by name, in systemd's words.
pub type UnitProperties = indexmap::IndexMap<String, String>;

impl Read for Unit {
    type Answer = Option<UnitProperties>;

    fn query(&self) -> Query {
        Query::Unit(self.0.clone())
    }

    fn parse(&self, response: &Response) -> Result<Option<UnitProperties>, Failure> {
        match response.code {
            Some(127) => Ok(None),
            Some(0) => Ok(Some(
                response
                    .text()
                    .lines()
                    .filter_map(|line| line.split_once('='))
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect(),
            )),
            _ => Err(Failure::new(format!("`systemctl show {}` failed: {}", self.0, response.error_text().trim()))),
        }
    }
}

/// Shell code that only reads: its exit code, stdout and stderr, whatever they are.
#[derive(Debug, Clone)]
pub struct Script {
    pub text: String,
    /// What the answer depends on; a change of any of it asks again.
    pub footprint: Footprint,
}

impl Read for Script {
    type Answer = Response;

    fn query(&self) -> Query {
        Query::Script { text: self.text.clone(), footprint: self.footprint.clone() }
    }

    fn parse(&self, response: &Response) -> Result<Response, Failure> {
        Ok(response.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicted_attributes_read_back_as_they_were_written() {
        let attributes = FileAttributes {
            kind: FileKind::Link,
            mode: 0o777,
            uid: 0,
            gid: 10,
            owner: "root".into(),
            group: "wheel".into(),
            size: 0,
            target: "a\tb".into(),
            names: 1,
        };
        let read = Attributes { path: "/x".into(), follow: false };
        assert_eq!(read.parse(&attributes.to_response()).unwrap(), Some(attributes));
        assert_eq!(read.parse(&Response::missing()).unwrap(), None);
    }

    #[test]
    fn garbled_answers_are_refused() {
        let read = Attributes { path: "/x".into(), follow: false };
        assert!(read.parse(&Response::output("f\tzz")).is_err());
    }
}
