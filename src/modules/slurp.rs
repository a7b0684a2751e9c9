//! `ansible.builtin.slurp`: the content of a file, as base64.

use base64::Engine as _;

use crate::host::reads::{Attributes, FileContent, FileKind};
use crate::host::{Failure, Host};

use super::file_common::path::{absolute, parent};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.slurp",
    aliases: &[],
    summary: "Reads a file of the host; its content is returned as base64",
    args: &[Arg::new("src", Type::Path, "the file").required().aliases(&["path"])],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("content", "the content, base64"), ("encoding", "always `base64`"), ("source", "the path of the file")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let path = absolute(&host, args.text("src")).await?;
    let (attributes, content) = futures_util::join!(
        host.read(Attributes { path: path.clone(), follow: true }),
        host.read(FileContent(path.clone()))
    );
    let readable = |failure: Failure| match failure.message.contains("Permission denied") {
        true => Failure::new(format!("file is not readable: {path}")),
        false => failure,
    };
    match attributes.map_err(readable)? {
        None => return Err(not_there(&host, &path).await?),
        Some(there) if there.kind == FileKind::Directory => {
            return Err(Failure::new(format!("source is a directory and must be a file: {path}")));
        }
        Some(_) => {}
    }
    let content = content.map_err(readable)?.ok_or_else(|| Failure::new(format!("file not found: {path}")))?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(content);
    Ok(Outcome::ok().with("content", encoded).with("encoding", "base64").with("source", path))
}

/// Why nothing is at a path.
async fn not_there(host: &Host, path: &str) -> Result<Failure, Failure> {
    let above = parent(path);
    let there = host.read(Attributes { path: above.to_owned(), follow: true }).await?;
    Ok(match there {
        Some(there) if there.kind != FileKind::Directory => {
            Failure::new(format!("unable to slurp file: {above} is a {}, not a directory", there.kind.state()))
        }
        _ => Failure::new(format!("file not found: {path}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::run_module;

    #[test]
    fn any_bytes_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        std::fs::write(&path, b"\0\xff\n\n").unwrap();
        let outcome = run_module(&MODULE, &[("src", path.to_str().unwrap().into())]).unwrap();
        assert!(!outcome.changed);
        assert_eq!(outcome.result["content"], "AP8KCg==".into());
        assert_eq!(outcome.result["encoding"], "base64".into());
        assert_eq!(outcome.result["source"], path.to_str().unwrap().into());
    }

    #[test]
    fn only_files_can_be_read() {
        let refused = |path: &str| run_module(&MODULE, &[("src", path.into())]).unwrap_err().message;
        assert_eq!(refused("/no/such"), "file not found: /no/such");
        assert_eq!(refused("/etc/passwd/x"), "unable to slurp file: /etc/passwd is a file, not a directory");
        assert_eq!(refused("/"), "source is a directory and must be a file: /");
    }
}
