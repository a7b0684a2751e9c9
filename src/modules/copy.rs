//! `ansible.builtin.copy`: files of the controller, or of the host itself, or given content, are on the host.

mod controller;
mod remote;
mod remote_tree;
mod tree;

use crate::host::Failure;
use crate::template::Context;
use crate::value::Value;
use crate::vault::Keyring;

use super::file_common::content::Content;
use super::file_common::install::{Placement, Source, install};
use super::file_common::permissions::OWNERSHIP;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub use controller::{find_source, read_source};

pub const MODULE: Module = Module {
    name: "ansible.builtin.copy",
    aliases: &[],
    summary: "Copies files to the host",
    args: &[
        Arg::new("src", Type::Path, "file or directory, looked for in `files`; with a trailing slash what is in it"),
        Arg::new("content", Type::Raw, "the content itself, in place of `src`; lists and maps become JSON").secret(),
        Arg::new("dest", Type::Path, "where it goes; with a trailing slash a directory, made if missing").required(),
        Arg::new("remote_src", Type::Bool, "`src` is on the host").default("false"),
        Arg::new("force", Type::Bool, "replace what differs; else only make what is missing")
            .default("true")
            .aliases(&["thirsty"]),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("validate", Type::Str, "a command that must accept the new file, `%s`, before it replaces the old"),
        Arg::new("directory_mode", Type::Mode, "mode of directories that are made"),
        Arg::new("checksum", Type::Str, "SHA-1 that the source must have"),
        Arg::new("follow", Type::Bool, "write through a symbolic link at `dest`, else replace it").default("false"),
        Arg::new(
            "local_follow",
            Type::Bool,
            "copy what symbolic links in a source directory lead to (default true; false with `remote_src`)",
        ),
        Arg::new("decrypt", Type::Bool, "decrypt a source that is encrypted with vault").default("true"),
        Arg::new("mode", Type::Mode, "permissions: octal text, symbolic, or `preserve` for those of the source"),
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::MutuallyExclusive(&["src", "content"]), Rule::Missing(&["dest"], "dest is required")],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("dest", "the path of the file on the host"),
        ("src", "the source"),
        ("checksum", "SHA-1 of the content"),
        ("md5sum", "MD5 of the content, if it was written"),
        ("backup_file", "where the old file is kept"),
        ("mode", "permissions as four octal digits"),
        ("owner", "name of the owner; `uid` is the number"),
        ("group", "name of the group; `gid` is the number"),
        ("size", "bytes"),
        ("state", "`file`"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, context, .. } = invocation;
    let placement = Placement::read(&host, &args).await?;
    if let Some(content) = args.get("content") {
        if placement.is_directory {
            return Err(Failure::new("can not use content with a dir as dest"));
        }
        let content = Content::Bytes(content_text(content).into_bytes());
        let source = Source { content, name: None, shown: placement.dest.clone(), mode: 0o600 };
        expect_checksum(args.str("checksum"), &source)?;
        let outcome = install(&host, &args, &placement, source).await?;
        let written = outcome.result.contains_key("src");
        return Ok(if written { outcome.with("src", "dynamically generated") } else { outcome });
    }
    let src = match args.str("src") {
        Some(src) if !src.is_empty() => src,
        _ => return Err(Failure::new("src (or content) is required")),
    };
    if args.bool("remote_src") {
        return remote::copy(&host, &args, &placement, src).await;
    }
    let path = find_source(&context, "files", src)?;
    if path.is_dir() {
        let keyring = keyring(&args, &context);
        return tree::copy(&host, &args, &placement, &path, src.ends_with('/'), keyring).await;
    }
    let source = read_source(&path, keyring(&args, &context))?;
    expect_checksum(args.str("checksum"), &source)?;
    install(&host, &args, &placement, source).await
}

/// What opens encrypted sources; `None` if they are copied as they are.
pub fn keyring<'a>(args: &Args, context: &'a Context) -> Option<&'a Keyring> {
    args.bool("decrypt").then_some(&*context.keyring)
}

fn expect_checksum(expected: Option<&str>, source: &Source) -> Result<(), Failure> {
    match expected {
        Some(expected) if expected != source.content.sha1() => {
            Err(Failure::new("Copied file does not match the expected checksum. Transfer failed.")
                .with("checksum", source.content.sha1())
                .with("expected_checksum", expected))
        }
        _ => Ok(()),
    }
}

/// The text that `content` stands for: structures become JSON as Python writes it.
fn content_text(content: &Value) -> String {
    match content {
        Value::List(_) | Value::Map(_) | Value::Object(_) => {
            let mut out = String::new();
            write_json(&content.to_json(), &mut out);
            out
        }
        other => other.to_text().into_owned(),
    }
}

/// JSON with a blank behind commas and colons, and all letters beyond ASCII escaped.
fn write_json(json: &serde_json::Value, out: &mut String) {
    match json {
        serde_json::Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_json(item, out);
            }
            out.push(']');
        }
        serde_json::Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_json(&serde_json::Value::from(key.as_str()), out);
                out.push_str(": ");
                write_json(item, out);
            }
            out.push('}');
        }
        other => {
            for letter in other.to_string().chars() {
                if letter.is_ascii() && letter != '\u{7f}' {
                    out.push(letter);
                } else {
                    let mut units = [0; 2];
                    for unit in letter.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
