//! `trimtab vault`: encrypts and decrypts files and values, as ansible-vault does.

mod edit;
mod string;

use std::io::{IsTerminal, Read};
use std::path::Path;

use clap::{Args, Subcommand};

use super::args::{VaultArgs, VerbosityArgs};
use super::session::Session;
use crate::error::{Error, Result};
use crate::ui::Style;
use crate::vault::secrets::{Identity, Use, to_encrypt};
use crate::vault::{Keyring, Secret, encrypt, files, is_encrypted};

/// What stands for stdin and stdout.
const STANDARD: &str = "-";

#[derive(Debug, Clone, Args)]
pub struct VaultCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Makes a new encrypted file with an editor
    Create(edit::CreateArgs),
    /// Encrypts files in their place, or stdin to stdout
    Encrypt(EncryptArgs),
    /// Decrypts files in their place, or stdin to stdout
    Decrypt(DecryptArgs),
    /// Shows what encrypted files hold
    View(ViewArgs),
    /// Changes encrypted files with an editor
    Edit(edit::EditArgs),
    /// Encrypts files with another password
    Rekey(RekeyArgs),
    /// Encrypts values, to be pasted into YAML
    #[command(name = "encrypt_string", visible_alias = "encrypt-string")]
    EncryptString(string::StringArgs),
}

/// Which password, and how much is said.
#[derive(Debug, Default, Clone, Args)]
pub struct Common {
    #[command(flatten)]
    pub vault: VaultArgs,
    #[command(flatten)]
    pub verbosity: VerbosityArgs,
}

/// Which of several passwords encrypts.
#[derive(Debug, Default, Clone, Args)]
pub struct EncryptWith {
    /// The vault id to encrypt with; needed if there are several
    #[arg(long, value_name = "LABEL")]
    pub encrypt_vault_id: Option<String>,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
struct EncryptArgs {
    /// Files; `-` or none: stdin
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Write to this file; `-`: stdout
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    with: EncryptWith,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
struct DecryptArgs {
    /// Files; `-` or none: stdin
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Write to this file; `-`: stdout
    #[arg(long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
struct ViewArgs {
    /// Files; `-`: stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Default, Clone, Args)]
#[command(args_override_self = true)]
struct RekeyArgs {
    /// Files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// The new password and its label: LABEL@FILE or LABEL@prompt
    #[arg(long, value_name = "LABEL@SOURCE", conflicts_with = "new_vault_password_file")]
    new_vault_id: Option<String>,
    /// Read the new password from this file
    #[arg(long, value_name = "FILE")]
    new_vault_password_file: Option<String>,
    #[command(flatten)]
    with: EncryptWith,
    #[command(flatten)]
    common: Common,
}

impl VaultCommand {
    pub fn verbose(&self) -> u8 {
        let common = match &self.action {
            Action::Create(args) => &args.common,
            Action::Encrypt(args) => &args.common,
            Action::Decrypt(args) => &args.common,
            Action::View(args) => &args.common,
            Action::Edit(args) => &args.common,
            Action::Rekey(args) => &args.common,
            Action::EncryptString(args) => &args.common,
        };
        common.verbosity.verbose
    }
}

/// Does what was asked for.
pub fn run(session: &mut Session, command: VaultCommand) -> Result<u8> {
    match command.action {
        Action::Create(args) => edit::create(session, &args),
        Action::Encrypt(args) => encrypt_files(session, &args),
        Action::Decrypt(args) => decrypt_files(session, &args),
        Action::View(args) => view(session, &args),
        Action::Edit(args) => edit::edit(session, &args),
        Action::Rekey(args) => rekey(session, &args),
        Action::EncryptString(args) => string::encrypt_strings(session, &args),
    }?;
    Ok(0)
}

/// The passwords that may open files; asked for if none is named.
pub fn keyring(session: &mut Session, args: &VaultArgs) -> Result<Keyring> {
    let secrets = secrets(session, args, Use::Decrypt)?;
    session.keyring_of(secrets)
}

/// The password to encrypt with; asked for if none is named.
pub fn secret(session: &mut Session, args: &VaultArgs, with: &EncryptWith) -> Result<Secret> {
    let secrets = secrets(session, args, Use::Encrypt)?;
    to_encrypt(&secrets, encrypt_id(session, with).as_deref()).cloned()
}

fn encrypt_id(session: &Session, with: &EncryptWith) -> Option<String> {
    with.encrypt_vault_id.clone().or(session.settings.text("vault_encrypt_identity"))
}

fn secrets(session: &mut Session, args: &VaultArgs, purpose: Use) -> Result<Vec<Secret>> {
    let mut identities =
        session.vault_identities(&args.vault_id, &args.vault_password_file, args.ask_vault_password, true)?;
    if identities.is_empty() {
        identities.push(Identity::ask());
    }
    session.load_secrets(&identities, purpose)
}

/// An envelope for a plaintext, with the salt of the settings.
pub fn seal(session: &Session, secret: &Secret, plaintext: &[u8]) -> Result<Vec<u8>> {
    let salt = session.settings.text("vault_encrypt_salt");
    encrypt(secret, plaintext, salt.as_deref().map(str::as_bytes)).map(String::into_bytes)
}

fn encrypt_files(session: &mut Session, args: &EncryptArgs) -> Result<()> {
    let names = names(&args.files, args.output.as_deref())?;
    let secret = secret(session, &args.common.vault, &args.with)?;
    if args.files.is_empty() {
        say_on_terminal(session, std::io::stdin().is_terminal(), "Reading plaintext input from stdin");
    }
    for name in names {
        let plaintext = read(name)?;
        if is_encrypted(&plaintext) {
            return Err(Error::input(format!("{} is already encrypted", shown(name))));
        }
        let envelope = seal(session, &secret, &plaintext)?;
        write(session, args.output.as_deref().unwrap_or(name), &envelope)?;
    }
    say_on_terminal(session, std::io::stdout().is_terminal(), "Encryption successful");
    Ok(())
}

fn decrypt_files(session: &mut Session, args: &DecryptArgs) -> Result<()> {
    let names = names(&args.files, args.output.as_deref())?;
    let keyring = keyring(session, &args.common.vault)?;
    if args.files.is_empty() {
        say_on_terminal(session, std::io::stdin().is_terminal(), "Reading ciphertext input from stdin");
    }
    for name in names {
        let (plaintext, _) = unlock(&keyring, name)?;
        write(session, args.output.as_deref().unwrap_or(name), &plaintext)?;
    }
    say_on_terminal(session, std::io::stdout().is_terminal(), "Decryption successful");
    Ok(())
}

fn view(session: &mut Session, args: &ViewArgs) -> Result<()> {
    let keyring = keyring(session, &args.common.vault)?;
    for name in &args.files {
        let (plaintext, _) = unlock(&keyring, name)?;
        if !std::io::stdout().is_terminal() || !edit::page(&plaintext) {
            session.ui.bytes(&plaintext);
            if !plaintext.is_empty() && !plaintext.ends_with(b"\n") {
                session.ui.bytes(b"\n");
            }
        }
    }
    Ok(())
}

fn rekey(session: &mut Session, args: &RekeyArgs) -> Result<()> {
    let keyring = keyring(session, &args.common.vault)?;
    let encrypt_id = encrypt_id(session, &args.with);
    let ids: Vec<String> = args.new_vault_id.iter().cloned().collect();
    let new_files: Vec<String> = args.new_vault_password_file.iter().cloned().collect();
    let mut identities = session.vault_identities(&ids, &new_files, false, encrypt_id.is_some())?;
    if identities.is_empty() {
        identities.push(Identity::ask());
    }
    let secrets = session.load_secrets(&identities, Use::Encrypt)?;
    // the new password stands before that of the settings
    let secret = match &encrypt_id {
        Some(id) => to_encrypt(&secrets, Some(id))?,
        None => to_encrypt(secrets.get(..1).unwrap_or_default(), None)?,
    };
    // all are opened before any is changed
    let opened = args.files.iter().map(|name| unlock(&keyring, name)).collect::<Result<Vec<_>>>()?;
    for (name, (plaintext, _)) in args.files.iter().zip(opened) {
        let envelope = seal(session, secret, &plaintext)?;
        write(session, name, &envelope)?;
    }
    session.ui.note("Rekey successful", Style::Plain);
    Ok(())
}

/// The inputs; several cannot have one output.
fn names<'a>(files: &'a [String], output: Option<&str>) -> Result<Vec<&'a str>> {
    if output.is_some() && files.len() > 1 {
        return Err(Error::usage("at most one input file may be used with `--output`"));
    }
    Ok(if files.is_empty() { vec![STANDARD] } else { files.iter().map(String::as_str).collect() })
}

fn shown(name: &str) -> String {
    if name == STANDARD { "the input".to_owned() } else { format!("`{name}`") }
}

fn read(name: &str) -> Result<Vec<u8>> {
    let refuse = |error: std::io::Error| Error::input(format!("cannot read {}: {error}", shown(name)));
    if name == STANDARD {
        let mut content = Vec::new();
        std::io::stdin().read_to_end(&mut content).map_err(refuse)?;
        return Ok(content);
    }
    std::fs::read(name).map_err(refuse)
}

/// What an encrypted file holds, and the password that opened it.
pub fn unlock(keyring: &Keyring, name: &str) -> Result<(Vec<u8>, Secret)> {
    let content = read(name)?;
    let (plaintext, secret) = keyring.unlock(&content).map_err(|error| {
        let named = Error::new(error.kind(), format!("cannot decrypt {}: {}", shown(name), error.message()));
        error.hints().iter().fold(named, |named, hint| named.hint(hint))
    })?;
    Ok((plaintext, secret.clone()))
}

pub fn write(session: &mut Session, name: &str, content: &[u8]) -> Result<()> {
    if name == STANDARD {
        session.ui.bytes(content);
        return Ok(());
    }
    files::replace(Path::new(name), content)
}

pub fn say_on_terminal(session: &mut Session, is_terminal: bool, text: &str) {
    if is_terminal {
        session.ui.flush();
        session.ui.note(text, Style::Plain);
        session.ui.flush();
    }
}
