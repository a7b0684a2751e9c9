//! `create` and `edit`: the plaintext is in a file only while the editor runs, in a directory that only its owner can enter.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{Common, EncryptWith, keyring, seal, secret, unlock, write};
use crate::cli::session::Session;
use crate::error::{Error, Result};
use crate::playbook::free_form::{split_words, unquote};
use crate::vault::Secret;
use crate::vault::files::{self, PrivateDirectory};

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct CreateArgs {
    /// The new file
    #[arg(value_name = "FILE")]
    file: String,
    /// Start the editor even if there is no terminal
    #[arg(long)]
    skip_tty_check: bool,
    #[command(flatten)]
    with: EncryptWith,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
pub struct EditArgs {
    /// Files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    with: EncryptWith,
    #[command(flatten)]
    pub common: Common,
}

/// Makes a new encrypted file.
pub fn create(session: &mut Session, args: &CreateArgs) -> Result<()> {
    let path = Path::new(&args.file);
    if path.exists() {
        return Err(Error::input(format!("`{}` exists", args.file)).hint("change it with `edit`"));
    }
    if !args.skip_tty_check && !std::io::stdout().is_terminal() {
        return Err(Error::usage("there is no terminal, so no editor can be opened")
            .hint("`--skip-tty-check` opens it all the same; `encrypt` takes a file as it is"));
    }
    let secret = secret(session, &args.common.vault, &args.with)?;
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists())
    {
        session.ui.warning(&format!("{} does not exist, creating...", directory.display()));
        std::fs::create_dir_all(directory)
            .map_err(|error| Error::system(format!("cannot make `{}`: {error}", directory.display())))?;
    }
    let content = edited(path, b"")?;
    let envelope = seal(session, &secret, &content)?;
    write(session, &args.file, &envelope)
}

/// Changes encrypted files; what was not changed is not written.
pub fn edit(session: &mut Session, args: &EditArgs) -> Result<()> {
    let keyring = keyring(session, &args.common.vault)?;
    for name in &args.files {
        let (plaintext, opened_by) = unlock(&keyring, name)?;
        // the file keeps its vault id unless another is asked for
        let secret: Secret = match &args.with.encrypt_vault_id {
            Some(id) => crate::vault::secrets::to_encrypt(keyring.secrets(), Some(id))?.clone(),
            None => opened_by,
        };
        let content = edited(Path::new(name), &plaintext)?;
        if content != plaintext {
            let envelope = seal(session, &secret, &content)?;
            write(session, name, &envelope)?;
        }
    }
    Ok(())
}

/// The content after the editor has ended. The name tells the editor what sort of text it is.
fn edited(name: &Path, content: &[u8]) -> Result<Vec<u8>> {
    let private = PrivateDirectory::new()?;
    let file = private.path().join(name.file_name().unwrap_or("vault".as_ref()));
    files::replace(&file, content)?;
    let status = run_editor(&file)?;
    if !status.success() {
        return Err(Error::system(format!("the editor ended with {status}; `{}` is as it was", name.display())));
    }
    std::fs::read(&file).map_err(|error| Error::system(format!("cannot read what the editor wrote: {error}")))
}

/// Waits for the editor. Signals are taken, so that the plaintext does not stay behind.
fn run_editor(file: &PathBuf) -> Result<ExitStatus> {
    let line = std::env::var("EDITOR").ok().filter(|editor| !editor.trim().is_empty()).unwrap_or("vi".to_owned());
    let words = split_words(&line)?;
    let mut words = words.iter().map(|word| unquote(word.trim()));
    let program = words.next().unwrap_or("vi");
    let refuse = |error: std::io::Error| {
        Error::system(format!("cannot start the editor `{line}`: {error}")).hint("the variable EDITOR says which it is")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refuse)?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(refuse)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(refuse)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(refuse)?;
        let mut child = tokio::process::Command::new(program).args(words).arg(file).spawn().map_err(refuse)?;
        loop {
            tokio::select! {
                status = child.wait() => return status.map_err(refuse),
                // the editor has got it too, and knows what to do
                _ = interrupt.recv() => {}
                _ = terminate.recv() => break,
                _ = hangup.recv() => break,
            }
        }
        child.kill().await.map_err(refuse)?;
        Err(Error::system("interrupted while the editor was open; nothing was written"))
    })
}

/// Shows a text by the pager (`PAGER`, or else `less`); false if there is none.
pub fn page(text: &[u8]) -> bool {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less".to_owned());
    let Ok(mut child) = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // a pager may be left before it has read all
        let _ = stdin.write_all(text);
    }
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
