//! Archives as the controller reads them: what is in them, and a tar file of some of it. Types of `tar` and `zip` stay
//! here.

use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};

use crate::host::Failure;
use crate::modules::file_common::content::sha1;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    File {
        content: Vec<u8>,
        sha1: String,
    },
    Directory,
    Link(String),
    /// Another name of an entry.
    HardLink(String),
}

/// One thing in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative, without `.` and a slash at the end.
    pub path: String,
    pub kind: Kind,
    /// Permission bits; `None` if the archive knows none.
    pub mode: Option<u32>,
    /// Seconds since the epoch.
    pub mtime: u64,
    pub owner: Owner,
}

/// Whose it was when it was packed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owner {
    pub uid: u64,
    pub gid: u64,
    pub user: String,
    pub group: String,
}

/// How an archive is packed, in Ansible's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Zip,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
    Tar,
}

impl Format {
    /// By the first bytes.
    pub fn of(content: &[u8]) -> Format {
        match content {
            [b'P', b'K', 3 | 5 | 7, ..] => Format::Zip,
            [0x1f, 0x8b, ..] => Format::Gzip,
            [b'B', b'Z', b'h', ..] => Format::Bzip2,
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Format::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Format::Zstd,
            _ => Format::Tar,
        }
    }

    pub fn handler(self) -> &'static str {
        match self {
            Format::Zip => "ZipArchive",
            Format::Gzip => "TgzArchive",
            Format::Bzip2 => "TarBzipArchive",
            Format::Xz => "TarXzArchive",
            Format::Zstd => "TarZstdArchive",
            Format::Tar => "TarArchive",
        }
    }
}

/// Everything in an archive, in its order.
pub fn read(name: &str, content: Vec<u8>) -> Result<Vec<Entry>, Failure> {
    let fail = |why: String| {
        Failure::new(format!(
            "Failed to find handler for \"{name}\". Make sure the required command to extract the file is installed: {why}"
        ))
    };
    let plain = match Format::of(&content) {
        Format::Zip => return read_zip(content).map_err(fail),
        Format::Tar => content,
        Format::Gzip => {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(content.as_slice())
                .read_to_end(&mut plain)
                .map_err(|error| fail(format!("it is no whole gzip file: {error}")))?;
            plain
        }
        Format::Bzip2 => filter("bzip2", content).map_err(fail)?,
        Format::Xz => filter("xz", content).map_err(fail)?,
        Format::Zstd => filter("zstd", content).map_err(fail)?,
    };
    read_tar(&plain).map_err(fail)
}

/// Unpacks by a program of the controller.
fn filter(program: &str, content: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut child = Command::new(program)
        .arg("-dc")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the controller's `{program}` does not start: {error}"))?;
    let mut input = child.stdin.take().ok_or("no standard input")?;
    let writer = std::thread::spawn(move || input.write_all(&content));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let _ = writer.join();
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("`{program}`: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The path without `./` and a slash at the end; an error if it leads out of the directory.
fn safe(path: &str) -> Result<String, String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") || path.contains(['\n', '\0']) {
        return Err(format!("it has a name that leads elsewhere: {path:?}"));
    }
    Ok(parts.join("/"))
}

fn read_tar(plain: &[u8]) -> Result<Vec<Entry>, String> {
    let text = |error: std::io::Error| format!("it is no tar file: {error}");
    let mut archive = tar::Archive::new(plain);
    let mut entries = Vec::new();
    for entry in archive.entries().map_err(text)? {
        let mut entry = entry.map_err(text)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = safe(&path)?;
        let link = entry.link_name_bytes().map(|link| String::from_utf8_lossy(&link).into_owned()).unwrap_or_default();
        let header = entry.header();
        let word = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let owner = Owner {
            uid: header.uid().unwrap_or(0),
            gid: header.gid().unwrap_or(0),
            user: word(header.username_bytes()).unwrap_or_default(),
            group: word(header.groupname_bytes()).unwrap_or_default(),
        };
        let mode = header.mode().ok().map(|mode| mode & 0o7777);
        let mtime = header.mtime().unwrap_or(0);
        let kind = match header.entry_type() {
            tar::EntryType::Directory => Kind::Directory,
            tar::EntryType::Symlink => Kind::Link(link),
            tar::EntryType::Link => Kind::HardLink(safe(&link)?),
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content).map_err(text)?;
                Kind::File { sha1: sha1(&content), content }
            }
            tar::EntryType::XGlobalHeader => continue,
            other => return Err(format!("{path} in it is a device or the like ({other:?})")),
        };
        if !path.is_empty() {
            entries.push(Entry { path, kind, mode, mtime, owner });
        }
    }
    if entries.is_empty() && !plain.iter().all(|byte| *byte == 0) {
        return Err("nothing is in it".to_owned());
    }
    Ok(entries)
}

fn read_zip(content: Vec<u8>) -> Result<Vec<Entry>, String> {
    let text = |error: zip::result::ZipError| format!("it is no zip file: {error}");
    let mut archive = zip::ZipArchive::new(Cursor::new(content)).map_err(text)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).map_err(text)?;
        let path = safe(file.name())?;
        let mode = file.unix_mode();
        let mtime = file.last_modified().map_or(0, zip_time);
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(|error| format!("{path}: {error}"))?;
        let kind = if file.is_dir() {
            Kind::Directory
        } else if mode.is_some_and(|mode| mode & 0o170_000 == 0o120_000) {
            Kind::Link(String::from_utf8_lossy(&content).into_owned())
        } else {
            Kind::File { sha1: sha1(&content), content }
        };
        let mode = mode.map(|mode| mode & 0o7777).filter(|mode| *mode != 0);
        if !path.is_empty() {
            entries.push(Entry { path, kind, mode, mtime, owner: Owner::default() });
        }
    }
    Ok(entries)
}

/// The controller's local time, as zip files have it.
fn zip_time(time: zip::DateTime) -> u64 {
    let local = jiff::civil::DateTime::new(
        i16::try_from(time.year()).unwrap_or(1980),
        i8::try_from(time.month()).unwrap_or(1),
        i8::try_from(time.day()).unwrap_or(1),
        i8::try_from(time.hour()).unwrap_or(0),
        i8::try_from(time.minute()).unwrap_or(0),
        i8::try_from(time.second().min(59)).unwrap_or(0),
        0,
    );
    local
        .ok()
        .and_then(|local| jiff::tz::TimeZone::system().to_timestamp(local).ok())
        .and_then(|time| u64::try_from(time.as_second()).ok())
        .unwrap_or(0)
}

/// A gzipped tar file of these entries.
pub fn pack<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Result<Vec<u8>, Failure> {
    let fail = |error: std::io::Error| Failure::new(format!("cannot pack what is to be unpacked: {error}"));
    let encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut builder = tar::Builder::new(encoder);
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        let default = if entry.kind == Kind::Directory { 0o755 } else { 0o644 };
        header.set_mode(entry.mode.unwrap_or(default));
        header.set_mtime(entry.mtime);
        header.set_uid(entry.owner.uid);
        header.set_gid(entry.owner.gid);
        header.set_username(&entry.owner.user).map_err(fail)?;
        header.set_groupname(&entry.owner.group).map_err(fail)?;
        header.set_size(0);
        let path = format!("./{}", entry.path);
        match &entry.kind {
            Kind::File { content, .. } => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(content.len() as u64);
                builder.append_data(&mut header, path, content.as_slice()).map_err(fail)?;
            }
            Kind::Directory => {
                header.set_entry_type(tar::EntryType::Directory);
                builder.append_data(&mut header, format!("{path}/"), std::io::empty()).map_err(fail)?;
            }
            Kind::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                builder.append_link(&mut header, path, target).map_err(fail)?;
            }
            Kind::HardLink(target) => {
                header.set_entry_type(tar::EntryType::Link);
                builder.append_link(&mut header, path, format!("./{target}")).map_err(fail)?;
            }
        }
    }
    builder.into_inner().and_then(flate2::write::GzEncoder::finish).map_err(fail)
}

/// The entries without the first `count` parts of their paths; those that have no more are left out.
pub fn strip(entries: Vec<Entry>, count: usize) -> Vec<Entry> {
    let cut = |path: &str| path.split('/').skip(count).collect::<Vec<_>>().join("/");
    entries
        .into_iter()
        .filter_map(|mut entry| {
            entry.path = cut(&entry.path);
            if let Kind::HardLink(target) = &mut entry.kind {
                *target = cut(target);
            }
            (!entry.path.is_empty()).then_some(entry)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> Entry {
        let content = content.as_bytes().to_vec();
        let kind = Kind::File { sha1: sha1(&content), content };
        Entry { path: path.to_owned(), kind, mode: Some(0o640), mtime: 1000, owner: Owner::default() }
    }

    #[test]
    fn what_is_packed_can_be_read() {
        let entries = vec![
            Entry { kind: Kind::Directory, mode: Some(0o2755), ..file("d", "") },
            file("d/a", "content"),
            Entry { kind: Kind::Link("../x".into()), mode: Some(0o777), ..file("d/l", "") },
            Entry { kind: Kind::HardLink("d/a".into()), ..file("d/h", "") },
            file(&format!("d/{}", "n".repeat(180)), ""),
        ];
        let packed = pack(&entries).unwrap();
        assert_eq!(Format::of(&packed), Format::Gzip);
        assert_eq!(read("x", packed).unwrap(), entries);
        let stripped = strip(entries, 1);
        assert_eq!(stripped.iter().map(|entry| entry.path.as_str()).take(3).collect::<Vec<_>>(), ["a", "l", "h"]);
        assert_eq!(stripped[2].kind, Kind::HardLink("a".into()));
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        assert_eq!(safe("/a/./b/").unwrap(), "a/b");
        assert!(safe("a/../../etc/passwd").is_err() && safe("a\nb").is_err());
        assert!(read("x.tar", b"not an archive, though long enough".repeat(40)).is_err());
        assert!(read("x.tar", vec![0; 1024]).unwrap().is_empty());
    }
}
