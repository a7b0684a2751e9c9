//! `ansible.builtin.slurp`: the content of a file, as base64.

use base64::Engine as _;

use crate::host::Failure;
use crate::host::reads::{Attributes, FileContent, FileKind};

use super::file_common::path::absolute;
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
    match attributes? {
        None => return Err(Failure::new(format!("file not found: {path}"))),
        Some(there) if there.kind == FileKind::Directory => {
            return Err(Failure::new(format!("source is a directory and must be a file: {path}")));
        }
        Some(_) => {}
    }
    let content = content?.ok_or_else(|| Failure::new(format!("file not found: {path}")))?;
    let encoded = base64::engine::general_purpose::STANDARD.encode(content);
    Ok(Outcome::ok().with("content", encoded).with("encoding", "base64").with("source", path))
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
        assert_eq!(refused("/"), "source is a directory and must be a file: /");
    }
}
