//! `ansible.builtin.fetch`: files of the hosts are copied to the controller.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use crate::host::reads::{Attributes, FileContent, FileKind};
use crate::host::{Change, Failure, Footprint, Inverse};
use crate::template::expand_home;

use super::file_common::content::{md5, sha1};
use super::file_common::path::{absolute, base_name};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.fetch",
    aliases: &[],
    summary: "Copies a file of the host to the controller",
    args: &[
        Arg::new("src", Type::Path, "the file on the host").required(),
        Arg::new("dest", Type::Path, "the directory on the controller: the file goes to DEST/HOST/SRC").required(),
        Arg::new("flat", Type::Bool, "`dest` is the file itself, or with a trailing slash its directory")
            .default("false"),
        Arg::new("fail_on_missing", Type::Bool, "fail if the file is not there or cannot be read").default("true"),
        Arg::new("validate_checksum", Type::Bool, "compare the digests after the copy").default("true"),
    ],
    rules: &[Rule::Missing(&["src", "dest"], "src and dest are required")],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("dest", "the file on the controller"),
        ("file", "the file on the host"),
        ("checksum", "SHA-1 of the file on the controller"),
        ("remote_checksum", "SHA-1 of the file on the host"),
        ("md5sum", "MD5 of the content"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let source = absolute(&host, args.text("src")).await?;
    let (there, content) = futures_util::join!(
        host.read(Attributes { path: source.clone(), follow: true }),
        host.read(FileContent(source.clone()))
    );
    let refuse = |message: &str| {
        if args.bool("fail_on_missing") {
            return Err(Failure::new(message).with("file", source.as_str()));
        }
        Ok(Outcome::ok().with("file", source.as_str()).with("msg", format!("{message}, ignored")))
    };
    let there = there?;
    // a transfer brings the mode; the content that another user reads does not
    let mode = there.as_ref().filter(|_| !host.is_another_user()).map_or(0o666, |there| there.mode & 0o777 | 0o200);
    match there.map(|there| there.kind) {
        None => return refuse("the remote file does not exist, not transferring"),
        Some(FileKind::Directory) => return refuse("remote file is a directory, fetch cannot work on directories"),
        Some(_) => {}
    }
    let content = match content {
        Ok(Some(content)) => content,
        Ok(None) => return refuse("the remote file does not exist, not transferring"),
        Err(failure) if failure.kind == crate::host::FailureKind::Failed => return refuse(&failure.message),
        Err(failure) => return Err(failure),
    };
    let place = Place { dest: args.text("dest"), flat: args.bool("flat"), host: host.name(), source: &source };
    let dest = place.path(&context.search.playbook_dir)?;
    let checksum = sha1(&content);
    let outcome = Outcome::ok()
        .with("dest", dest.display().to_string())
        .with("checksum", checksum.as_str())
        .with("md5sum", md5(&content));
    if fs::read(&dest).is_ok_and(|old| old == content) {
        return Ok(outcome.with("file", source.as_str()));
    }
    // the host stays as it is, but the file is written only when it is this task's turn
    let change = Change::certain(format!("{} on the controller", dest.display()), Footprint::nothing())
        .inverse(Inverse::Steps(Vec::new()));
    let applied = host.change(change).await?;
    if !applied.check {
        // it was looked at ahead of its turn, when what is before may not have been written
        if fs::read(&dest).is_ok_and(|old| old == content) {
            return Ok(outcome.with("file", source.as_str()));
        }
        write(&dest, &content, mode)?;
        if args.bool("validate_checksum") {
            let written = fs::read(&dest).map(|written| sha1(&written)).unwrap_or_default();
            if written != checksum {
                return Err(Failure::new("checksum mismatch")
                    .with("file", source.as_str())
                    .with("dest", dest.display().to_string())
                    .with("checksum", written)
                    .with("remote_checksum", checksum));
            }
        }
    }
    let outcome = Outcome { changed: true, ..outcome };
    Ok(outcome.with("remote_checksum", checksum).with("remote_md5sum", crate::value::Value::Null))
}

/// What decides where the file goes on the controller.
struct Place<'a> {
    dest: &'a str,
    flat: bool,
    host: &'a str,
    source: &'a str,
}

impl Place<'_> {
    fn path(&self, playbook_dir: &Path) -> Result<PathBuf, Failure> {
        let base = playbook_dir.join(expand_home(self.dest));
        if !self.flat {
            return Ok(normal(&base.join(self.host).join(self.source.trim_start_matches('/'))));
        }
        let into_directory = self.dest.ends_with('/');
        if base.is_dir() && !into_directory {
            return Err(Failure::new(
                "dest is an existing directory, use a trailing slash if you want to fetch src into that directory",
            ));
        }
        let path = if into_directory { base.join(base_name(self.source)) } else { base };
        if path.is_dir() {
            return Err(Failure::new(format!(
                "calculated dest '{}' is an existing directory, use another path that does not point to an existing directory",
                path.display()
            )));
        }
        Ok(normal(&path))
    }
}

/// Without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Writes beside the file and renames, so that nobody sees half of it.
fn write(dest: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
    let refuse =
        |error: std::io::Error| Failure::new(format!("Failed to fetch the file to {}: {error}", dest.display()));
    let directory = dest.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(refuse)?;
    let mut name = dest.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = directory.join(name);
    let write = || -> std::io::Result<()> {
        // the umask counts too
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&part)?;
        file.write_all(content)?;
        fs::rename(&part, dest)
    };
    let written = write();
    written.map_err(|error| {
        // the error that counts is the first one
        let _ = fs::remove_file(&part);
        refuse(error)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::modules::testing::{Play, context_of, play_in};
    use crate::template::SearchPath;
    use crate::value::{Map, Value};

    fn fetch(root: &Path, args: &[(&str, Value)], check: bool) -> Result<Outcome, Failure> {
        let search = SearchPath { playbook_dir: root.to_owned(), ..SearchPath::default() };
        play_in(&MODULE, args, &Play { check, ..Play::default() }, context_of(Map::new(), Arc::new(search))).result
    }

    #[test]
    fn a_file_goes_under_the_hosts_name_or_flat() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("host.conf");
        fs::write(&source, b"x\xff\n").unwrap();
        let src = ("src", Value::from(source.to_str().unwrap()));
        let cases = [
            ("out", false, root.path().join("out/test").join(source.strip_prefix("/").unwrap())),
            ("flat.conf", true, root.path().join("flat.conf")),
            ("flat/", true, root.path().join("flat/host.conf")),
        ];
        for (dest, flat, expected) in cases {
            let args = [src.clone(), ("dest", dest.into()), ("flat", flat.into())];
            assert!(fetch(root.path(), &args, true).unwrap().changed);
            assert!(!expected.exists(), "check mode writes nothing");
            let outcome = fetch(root.path(), &args, false).unwrap();
            assert!(outcome.changed);
            assert_eq!(outcome.result["dest"], expected.to_str().unwrap().into());
            assert_eq!(outcome.result["checksum"], outcome.result["remote_checksum"]);
            assert_eq!(fs::read(&expected).unwrap(), b"x\xff\n");
            assert!(!fetch(root.path(), &args, false).unwrap().changed);
        }
        let args = [src, ("dest", "out".into()), ("flat", true.into())];
        assert!(fetch(root.path(), &args, false).unwrap_err().message.contains("trailing slash"));
    }

    #[test]
    fn a_missing_file_fails_unless_it_may_be_missing() {
        let root = tempfile::tempdir().unwrap();
        let args = [("src", "/no/such".into()), ("dest", "out".into())];
        assert!(fetch(root.path(), &args, false).unwrap_err().message.contains("does not exist"));
        let args = [args.as_slice(), &[("fail_on_missing", false.into())]].concat();
        let outcome = fetch(root.path(), &args, false).unwrap();
        assert!(!outcome.changed && outcome.result["msg"].to_text().ends_with("ignored"));
        let args = [("src", "/".into()), ("dest", "out".into())];
        assert!(fetch(root.path(), &args, false).unwrap_err().message.contains("directory"));
    }
}
