//! `ansible.builtin.stat`: everything that is known of a path.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Checksum, FileKind, FileStat, Stat};
use crate::host::{Failure, Footprint, Host, Query, Read};
use crate::value::{Map, Value, object};

use super::file_common::mode::octal;
use super::file_common::path::{RealPath, absolute};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

/// The digests that hosts can compute.
pub const ALGORITHMS: &[&str] = &["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];

pub const MODULE: Module = Module {
    name: "ansible.builtin.stat",
    aliases: &[],
    summary: "Looks at a file, directory or link",
    args: &[
        Arg::new("path", Type::Path, "what to look at").required().aliases(&["dest", "name"]),
        Arg::new("follow", Type::Bool, "look at the target of a symbolic link").default("false"),
        Arg::new("get_checksum", Type::Bool, "compute the digest of a file").default("true"),
        Arg::new("checksum_algorithm", Type::Str, "the digest")
            .default("sha1")
            .choices(ALGORITHMS)
            .aliases(&["checksum", "checksum_algo"]),
        Arg::new("get_mime", Type::Bool, "tell the type of content, if the host has `file`")
            .default("true")
            .aliases(&["mime", "mime_type", "mime-type"]),
        Arg::new("get_attributes", Type::Bool, "tell the flags of the file system, if the host has `lsattr`")
            .default("true")
            .aliases(&["attr", "attributes"]),
        Arg::new("get_md5", Type::Bool, "compute the MD5 digest too (removed from Ansible, kept for old playbooks)")
            .default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[(
        "stat",
        "exists, path, mode, isdir, isreg, islnk, size, uid, pw_name, gid, gr_name, mtime, checksum, lnk_source, lnk_target, \
         readable, writeable, executable, mimetype, charset, attributes, …",
    )],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let path = absolute(&host, args.text("path")).await?;
    let follow = args.bool("follow");
    let (stat, digests, extras) = futures_util::try_join!(
        host.read(Stat { path: path.clone(), follow }),
        digests(&host, &args, &path),
        host.read(Extras { path: path.clone(), mime: args.bool("get_mime"), attributes: args.bool("get_attributes") })
    )?;
    let Some(stat) = stat else {
        return Ok(Outcome::ok().with("stat", object([("exists", false.into())])));
    };
    // the path as the task wrote it, as Ansible has it, save that `~` and variables are replaced
    let shown = if args.text("path").starts_with('/') { args.text("path") } else { &path };
    let mut map = describe(shown, &stat);
    if stat.attributes.kind == FileKind::Link {
        host.note_link();
        let source = host.read(RealPath(path.clone())).await.unwrap_or_else(|_| stat.attributes.target.clone());
        map.insert("lnk_source".into(), source.into());
        map.insert("lnk_target".into(), stat.attributes.target.as_str().into());
    }
    let readable = extras.readable;
    map.extend(extras.into_map(args.bool("get_mime"), args.bool("get_attributes")));
    if stat.attributes.kind == FileKind::File && readable {
        for (key, digest) in digests {
            map.insert(key.into(), digest.into());
        }
    }
    Ok(Outcome::ok().with("stat", map))
}

/// The digests that the task asks for, by the name of the return value.
async fn digests(host: &Host, args: &Args, path: &str) -> Result<Vec<(&'static str, Option<String>)>, Failure> {
    let mut wanted = Vec::new();
    if args.bool("get_checksum") {
        let name = args.text("checksum_algorithm");
        let algorithm = ALGORITHMS.iter().copied().find(|algorithm| *algorithm == name).unwrap_or("sha1");
        wanted.push(("checksum", algorithm));
    }
    if args.bool("get_md5") {
        wanted.push(("md5", "md5"));
    }
    let reads = wanted.iter().map(|(_, algorithm)| host.read(Checksum { path: path.to_owned(), algorithm }));
    let answers = futures_util::future::try_join_all(reads).await?;
    Ok(wanted.into_iter().map(|(key, _)| key).zip(answers).collect())
}

/// What stat(2) says, in the names of Ansible's return values.
pub fn describe(path: &str, stat: &FileStat) -> Map {
    let attributes = &stat.attributes;
    let mut map = object([("exists", true.into()), ("path", path.into())]);
    map.extend(describe_stat(stat));
    let name = |name: &str| if name == "UNKNOWN" { None } else { Some(Value::from(name)) };
    if let Some(owner) = name(&attributes.owner) {
        map.insert("pw_name".into(), owner);
    }
    if let Some(group) = name(&attributes.group) {
        map.insert("gr_name".into(), group);
    }
    map
}

/// What `stat` and `find` tell alike.
pub fn describe_stat(stat: &FileStat) -> Map {
    let attributes = &stat.attributes;
    let (kind, mode) = (attributes.kind, attributes.mode);
    let bit = |bit: u32| Value::Bool(mode & bit != 0);
    object([
        ("mode", octal(mode).into()),
        ("isdir", (kind == FileKind::Directory).into()),
        ("ischr", (kind == FileKind::Character).into()),
        ("isblk", (kind == FileKind::Block).into()),
        ("isreg", (kind == FileKind::File).into()),
        ("isfifo", (kind == FileKind::Fifo).into()),
        ("islnk", (kind == FileKind::Link).into()),
        ("issock", (kind == FileKind::Socket).into()),
        ("uid", attributes.uid.into()),
        ("gid", attributes.gid.into()),
        ("size", attributes.size.into()),
        ("inode", stat.inode.into()),
        ("dev", stat.device.into()),
        ("nlink", stat.links.into()),
        ("atime", stat.atime.into()),
        ("mtime", stat.mtime.into()),
        ("ctime", stat.ctime.into()),
        ("wusr", bit(0o200)),
        ("rusr", bit(0o400)),
        ("xusr", bit(0o100)),
        ("wgrp", bit(0o020)),
        ("rgrp", bit(0o040)),
        ("xgrp", bit(0o010)),
        ("woth", bit(0o002)),
        ("roth", bit(0o004)),
        ("xoth", bit(0o001)),
        ("isuid", bit(0o4000)),
        ("isgid", bit(0o2000)),
    ])
}

/// What the shell's own tests, `file` and `lsattr` say.
struct Extras {
    path: String,
    mime: bool,
    attributes: bool,
}

/// The answers: `None` where the host has no such program or it refused.
#[derive(Debug, PartialEq, Eq)]
struct ExtraAnswer {
    readable: bool,
    writeable: bool,
    executable: bool,
    blocks: Option<[i64; 3]>,
    mime: Option<(String, String)>,
    /// Version and flags.
    flags: Option<(String, String)>,
}

impl Read for Extras {
    type Answer = ExtraAnswer;

    fn query(&self) -> Query {
        let path = quote(&self.path);
        let mut text = format!(
            "[ -e {path} ] || [ -L {path} ] || exit 0; \
             for a in r w x; do if [ -$a {path} ]; then printf 1; else printf 0; fi; done; echo; \
             stat -c '%b %o %t:%T' {path} || echo"
        );
        if self.mime {
            text.push_str(&format!(
                "; if command -v file >/dev/null 2>&1; then echo \"m $(file -b --mime-type --mime-encoding {path})\"; fi"
            ));
        }
        if self.attributes {
            text.push_str(&format!(
                "; if command -v lsattr >/dev/null 2>&1; then echo \"a $(lsattr -vd {path} 2>/dev/null)\"; fi"
            ));
        }
        Query::Script { text, footprint: Footprint::tree(self.path.as_str()) }
    }

    fn parse(&self, response: &Response) -> Result<ExtraAnswer, Failure> {
        Ok(parse_extras(&response.text()))
    }
}

fn parse_extras(text: &str) -> ExtraAnswer {
    let mut lines = text.lines();
    let access = lines.next().unwrap_or_default().as_bytes();
    let may = |index: usize| access.get(index) == Some(&b'1');
    let blocks = lines.next().and_then(parse_blocks);
    let (mut mime, mut flags) = (None, None);
    for line in lines {
        if let Some((kind, charset)) = line.strip_prefix("m ").and_then(|line| line.split_once("; charset=")) {
            mime = Some((kind.trim().to_owned(), charset.trim().to_owned()));
        } else if let Some(line) = line.strip_prefix("a ") {
            let mut words = line.split_whitespace();
            flags = words.next().zip(words.next()).map(|(version, flags)| (version.to_owned(), flags.to_owned()));
        }
    }
    ExtraAnswer { readable: may(0), writeable: may(1), executable: may(2), blocks, mime, flags }
}

/// Blocks, size of a block for reading and writing, and the device number of a device file.
fn parse_blocks(line: &str) -> Option<[i64; 3]> {
    let mut words = line.split(' ');
    let (blocks, size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let (major, minor) = words.next()?.split_once(':')?;
    let (major, minor) = (i64::from_str_radix(major, 16).ok()?, i64::from_str_radix(minor, 16).ok()?);
    // as makedev(3) of glibc does it, for numbers below 4096 and 256 alike
    let device = (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & !0xff) << 12);
    Some([blocks, size, device])
}

impl ExtraAnswer {
    fn into_map(self, mime: bool, attributes: bool) -> Map {
        let mut map = object([
            ("readable", self.readable.into()),
            ("writeable", self.writeable.into()),
            ("executable", self.executable.into()),
        ]);
        if let Some([blocks, size, device]) = self.blocks {
            map.extend(object([
                ("blocks", blocks.into()),
                ("block_size", size.into()),
                ("device_type", device.into()),
            ]));
        }
        if mime {
            let (kind, charset) = self.mime.unwrap_or_else(|| ("unknown".to_owned(), "unknown".to_owned()));
            map.extend(object([("mimetype", kind.into()), ("charset", charset.into())]));
        }
        if attributes {
            let version = self.flags.as_ref().map(|(version, _)| version.clone());
            let letters: String = self.flags.map(|(_, flags)| flags.replace('-', "")).unwrap_or_default();
            let names = letters.chars().filter_map(flag_name).map(Value::from).collect();
            map.extend(object([
                ("version", version.into()),
                ("attributes", Value::list(names)),
                ("attr_flags", letters.into()),
            ]));
        }
        map
    }
}

/// The words for the letters of lsattr(1) that Ansible uses.
fn flag_name(letter: char) -> Option<&'static str> {
    Some(match letter {
        'A' => "noatime",
        'a' => "append",
        'c' => "compressed",
        'C' => "nocow",
        'd' => "nodump",
        'D' => "dirsync",
        'e' => "extents",
        'E' => "encrypted",
        'h' => "blocksize",
        'i' => "immutable",
        'I' => "indexed",
        'j' => "journalled",
        'N' => "inline",
        's' => "zero",
        'S' => "synchronous",
        't' => "notail",
        'T' => "blockroot",
        'u' => "undelete",
        'X' => "compressedraw",
        'Z' => "compresseddirty",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::modules::testing::{Play, play, run_module, shells};

    fn stat_of(args: &[(&str, Value)]) -> Map {
        run_module(&MODULE, args).unwrap().result["stat"].as_map().unwrap().clone()
    }

    #[test]
    fn a_file_is_described_in_every_shell() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a file");
        fs::write(&path, "content\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
        let meta = fs::metadata(&path).unwrap();
        for shell in shells() {
            let args = [("path", path.to_str().unwrap().into()), ("get_md5", true.into())];
            let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
            assert_eq!(played.batches, 1);
            let result = played.result.unwrap();
            assert!(!result.changed);
            let stat = result.result["stat"].as_map().unwrap();
            let expected: &[(&str, Value)] = &[
                ("exists", true.into()),
                ("path", path.to_str().unwrap().into()),
                ("mode", "4750".into()),
                ("isreg", true.into()),
                ("isdir", false.into()),
                ("islnk", false.into()),
                ("isuid", true.into()),
                ("xoth", false.into()),
                ("size", 8.into()),
                ("inode", meta.ino().into()),
                ("nlink", 1.into()),
                ("uid", meta.uid().into()),
                ("blocks", meta.blocks().into()),
                ("device_type", 0.into()),
                ("checksum", super::super::file_common::content::sha1(b"content\n").into()),
                ("md5", super::super::file_common::content::md5(b"content\n").into()),
                ("readable", true.into()),
            ];
            for (key, value) in expected {
                assert_eq!(stat.get(*key), Some(value), "{key} in {shell}");
            }
            let mtime = &stat["mtime"];
            assert!(matches!(mtime, Value::Float(time) if (*time - meta.mtime() as f64).abs() < 1.0), "{mtime}");
        }
    }

    #[test]
    fn links_are_followed_only_if_asked() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "x").unwrap();
        symlink("file", &link).unwrap();
        let path = ("path", Value::from(link.to_str().unwrap()));
        let stat = stat_of(std::slice::from_ref(&path));
        assert_eq!(stat["islnk"], true.into());
        assert_eq!(stat["lnk_target"], "file".into());
        assert_eq!(stat["lnk_source"], fs::canonicalize(&file).unwrap().to_str().unwrap().into());
        assert_eq!(stat.get("checksum"), None);
        let stat = stat_of(&[path, ("follow", true.into()), ("checksum_algorithm", "sha256".into())]);
        assert_eq!(stat["isreg"], true.into());
        assert_eq!(stat["checksum"], super::super::file_common::content::sha256(b"x").into());
    }

    #[test]
    fn absence_is_an_answer() {
        let stat = stat_of(&[("path", "/no/such/file".into())]);
        assert_eq!(stat.len(), 1);
        assert_eq!(stat["exists"], false.into());
    }

    #[test]
    fn devices_and_directories_are_told_apart() {
        assert_eq!(stat_of(&[("path", "/dev/null".into())])["ischr"], true.into());
        assert_eq!(stat_of(&[("path", "/dev/null".into())])["device_type"], 259.into());
        assert_eq!(stat_of(&[("path", "/".into()), ("get_mime", false.into())]).get("mimetype"), None);
        assert_eq!(stat_of(&[("path", "/".into())])["isdir"], true.into());
    }

    #[test]
    fn programs_that_the_host_lacks_leave_nothing() {
        let answer = parse_extras("110\n8 4096 0:0\nm text/plain; charset=us-ascii\na 123 ----i---e-- \n");
        assert_eq!(answer.mime, Some(("text/plain".into(), "us-ascii".into())));
        let map = answer.into_map(true, true);
        assert_eq!(map["attr_flags"], "ie".into());
        assert_eq!(map["attributes"], Value::list(vec!["immutable".into(), "extents".into()]));
        let map = parse_extras("110\n\n").into_map(true, true);
        assert_eq!(map["mimetype"], "unknown".into());
        assert_eq!(map["version"], Value::Null);
    }
}
