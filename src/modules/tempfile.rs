//! `ansible.builtin.tempfile`: a new empty file or directory under a name that nothing else has.

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, FileAttributes, FileKind, Script};
use crate::host::{Change, Failure, Footprint, Inverse, Step};

use super::file_common::account::WhoAmI;
use super::file_common::content::leaves_file;
use super::file_common::path::{absolute, join};
use super::file_common::permissions::{describe, newborn};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.tempfile",
    aliases: &[],
    summary: "Makes a temporary file or directory",
    args: &[
        Arg::new("state", Type::Str, "what to make").default("file").choices(&["directory", "file"]),
        Arg::new("path", Type::Path, "the directory to make it in; without it the host's directory for such files"),
        Arg::new("prefix", Type::Str, "beginning of the name").default("ansible."),
        Arg::new("suffix", Type::Str, "end of the name").default(""),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("path", "the file or directory that was made")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    for name in ["prefix", "suffix"] {
        if args.text(name).contains('/') {
            return Err(Failure::new(format!("{name} must be a valid file name component, got {:?}", args.text(name))));
        }
    }
    let is_directory = args.text("state") == "directory";
    let directory = async {
        match args.str("path").filter(|path| !path.is_empty()) {
            Some(path) => absolute(&host, path).await,
            None => {
                let text = "printf %s \"${TMPDIR:-${TEMP:-${TMP:-/tmp}}}\"".to_owned();
                host.read(Script { text, footprint: Footprint::nothing() }).await.map(|answer| answer.text())
            }
        }
    };
    let (directory, me) = futures_util::try_join!(directory, host.read(WhoAmI))?;
    let above = host.read(Attributes { path: directory.clone(), follow: true }).await?;
    let Some(above) = above.filter(|above| above.kind == FileKind::Directory) else {
        return Err(Failure::new(format!("No such file or directory: {directory}")));
    };
    let name = format!("{}{}{}", args.text("prefix"), random_name()?, args.text("suffix"));
    let path = join(&directory, &name);
    let kind = if is_directory { FileKind::Directory } else { FileKind::File };
    let born = newborn(kind, &me, Some(&above));
    let mode = if is_directory { 0o700 | (born.mode & 0o2000) } else { 0o600 };
    let after = FileAttributes { mode, ..born };
    host.change(plan(&path, &after)).await?;
    Ok(describe(Outcome::changed().with("path", path), Some(&after)))
}

fn plan(path: &str, after: &FileAttributes) -> Change {
    let word = quote(path);
    let (make, remove) = match after.kind {
        FileKind::Directory => (format!("umask 077; mkdir {word}"), format!("rm -rf {word}")),
        // noclobber: the shell opens the file only if it can make it
        _ => (format!("umask 077; set -C; : >{word}"), format!("rm -f {word}")),
    };
    let step = Step::new(format!("{make} && stat -c '%a %u %g' {word}"))
        .expect(format!("{:o} {} {}", after.mode, after.uid, after.gid))
        .writes(path);
    let change = Change::certain(format!("temporary {path}"), Footprint::path(path))
        .step(step)
        .inverse(Inverse::Steps(vec![Step::new(remove)]));
    let content = (after.kind == FileKind::File).then_some(&b""[..]);
    leaves_file(change, path, after, content)
}

/// Eight letters and digits that nobody can guess.
fn random_name() -> Result<String, Failure> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| Failure::new(format!("no random numbers: {error}")))?;
    Ok(random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, shells, undo};

    #[test]
    fn files_and_directories_are_made_under_new_names() {
        for shell in shells() {
            let directory = tempfile::tempdir().unwrap();
            for (state, mode) in [("file", 0o600), ("directory", 0o700)] {
                let args = [
                    ("state", state.into()),
                    ("path", directory.path().to_str().unwrap().into()),
                    ("prefix", "my ".into()),
                    ("suffix", ".tmp".into()),
                ];
                assert!(check_module(&MODULE, &args).unwrap().changed);
                assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
                let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
                let path = played.result.unwrap().result["path"].to_text().into_owned();
                let meta = fs::metadata(&path).unwrap();
                assert_eq!(meta.permissions().mode() & 0o7777, mode);
                assert_eq!(meta.is_dir(), state == "directory");
                let name = path.rsplit('/').next().unwrap();
                assert!(name.starts_with("my ") && name.ends_with(".tmp") && name.len() == 15, "{name}");
                undo(&played.changes);
                assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
            }
        }
    }

    #[test]
    fn the_default_is_a_file_in_the_hosts_own_place() {
        let path = run_module(&MODULE, &[]).unwrap().result["path"].to_text().into_owned();
        assert!(path.contains("/ansible."), "{path}");
        fs::remove_file(path).unwrap();
        assert!(run_module(&MODULE, &[("path", "/no/such".into())]).is_err());
        assert!(run_module(&MODULE, &[("prefix", "a/b".into())]).is_err());
    }
}
