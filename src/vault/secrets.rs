//! Where passwords come from: vault ids (`label@source`), files, scripts, and questions.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zeroize::Zeroizing;

use super::{Keyring, Secret, is_encrypted};
use crate::error::{Error, Result};

/// A vault id as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `None`: the default.
    pub label: Option<String>,
    pub source: Source,
}

/// Where a password comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `--vault-id label@prompt`: asked for by its label.
    Prompt,
    /// `--ask-vault-pass`: asked for without a label.
    Ask,
    /// A file that holds it, or a program that prints it. Relative paths are taken from the working directory.
    File(PathBuf),
}

impl Identity {
    /// Reads `label@source`, or a source alone.
    pub fn parse(text: &str) -> Result<Identity> {
        if text.contains(';') {
            return Err(Error::usage(format!("`{text}` is no vault id: `;` may not stand in it")));
        }
        let (label, source) = match text.split_once('@') {
            Some((label, source)) => (Some(label.to_owned()).filter(|label| !label.is_empty()), source),
            None => (None, text),
        };
        let source = match source {
            "" => {
                return Err(Error::usage(format!("the vault id `{text}` does not say where its password is"))
                    .hint("write `label@FILE` or `label@prompt`"));
            }
            "prompt" => Source::Prompt,
            "prompt_ask_vault_pass" => Source::Ask,
            path => Source::File(expand_home(path)),
        };
        Ok(Identity { label, source })
    }

    /// The password in a file.
    pub fn file(path: impl Into<PathBuf>) -> Identity {
        Identity { label: None, source: Source::File(path.into()) }
    }

    /// The password that is asked for.
    pub fn ask() -> Identity {
        Identity { label: None, source: Source::Ask }
    }
}

fn expand_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// What passwords are loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Decrypt,
    /// Passwords that are asked for are asked for twice.
    Encrypt,
}

/// Gets the passwords in their order. A file that gives none is a warning if any other source gives one.
/// `ask` asks a question whose answer is hidden.
pub fn load(
    identities: &[Identity],
    default_id: &str,
    purpose: Use,
    ask: &mut dyn FnMut(&str) -> Result<String>,
) -> Result<(Vec<Secret>, Vec<String>)> {
    let mut secrets: Vec<Secret> = Vec::new();
    let mut failed = Vec::new();
    for identity in identities {
        let id = identity.label.clone().unwrap_or_else(|| default_id.to_owned());
        let password = match &identity.source {
            Source::Prompt => Ok(asked(Some(&id), purpose, ask)?),
            Source::Ask => Ok(asked(None, purpose, ask)?),
            Source::File(path) => of_file(path, &id, &secrets),
        };
        match password {
            Ok(password) => secrets.push(Secret { id, password }),
            Err(error) => failed.push(error),
        }
    }
    if secrets.is_empty() && !failed.is_empty() {
        return Error::collect(failed).map_or(Ok(Default::default()), Err);
    }
    Ok((secrets, failed.iter().map(|error| error.message().to_owned()).collect()))
}

/// The questions are Ansible's, letter by letter: programs wait for them.
fn asked(id: Option<&str>, purpose: Use, ask: &mut dyn FnMut(&str) -> Result<String>) -> Result<Zeroizing<Vec<u8>>> {
    let questions = match (purpose, id) {
        (Use::Decrypt, None) => vec!["Vault password: ".to_owned()],
        (Use::Decrypt, Some(id)) => vec![format!("Vault password ({id}): ")],
        (Use::Encrypt, None) => vec!["New Vault password: ".to_owned(), "Confirm New Vault password: ".to_owned()],
        (Use::Encrypt, Some(id)) => {
            vec![format!("New vault password ({id}): "), format!("Confirm new vault password ({id}): ")]
        }
    };
    let mut password: Option<Zeroizing<Vec<u8>>> = None;
    for question in questions {
        let answer = Zeroizing::new(ask(&question)?);
        let answer = Zeroizing::new(answer.trim().as_bytes().to_vec());
        if answer.is_empty() {
            return Err(Error::input("the vault password is empty"));
        }
        match &password {
            Some(first) if *first != answer => return Err(Error::input("the two vault passwords are not the same")),
            _ => password = Some(answer),
        }
    }
    password.ok_or_else(|| Error::input("the vault password is empty"))
}

/// The password that a file holds or a program prints.
fn of_file(path: &Path, id: &str, known: &[Secret]) -> Result<Zeroizing<Vec<u8>>> {
    let shown = path.display();
    let metadata = std::fs::metadata(path)
        .map_err(|error| Error::input(format!("the vault password file `{shown}` cannot be read: {error}")))?;
    if metadata.is_dir() {
        return Err(Error::input(format!("the vault password file `{shown}` is a directory")));
    }
    let is_program = metadata.permissions().mode() & 0o111 != 0;
    let password = if is_program {
        of_program(path, id)?
    } else {
        let content = std::fs::read(path)
            .map_err(|error| Error::input(format!("the vault password file `{shown}` cannot be read: {error}")))?;
        let content = Zeroizing::new(content);
        let text = Zeroizing::new(content.trim_ascii().to_vec());
        if is_encrypted(&text) {
            Zeroizing::new(Keyring::new(known.to_vec(), false).open(path, text.to_vec())?)
        } else {
            text
        }
    };
    if password.is_empty() {
        let what = if is_program { "program printed no password" } else { "file is empty" };
        return Err(Error::input(format!("the vault password {what}: `{shown}`")));
    }
    Ok(password)
}

/// What a program prints. One whose name ends in `-client` is told which vault id is wanted.
fn of_program(path: &Path, id: &str) -> Result<Zeroizing<Vec<u8>>> {
    let shown = path.display();
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut command = Command::new(full);
    if path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("-client")) {
        command.args(["--vault-id", id]);
    }
    let output = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).output().map_err(|error| {
        let error = Error::input(format!("the vault password script `{shown}` cannot be run: {error}"));
        error.hint("if it is no script but holds the password itself, take its execute permission away")
    })?;
    if !output.status.success() {
        let how = output.status.code().map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(Error::input(format!("the vault password script `{shown}` ended with {how}")));
    }
    let printed = Zeroizing::new(output.stdout);
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let start = printed.iter().position(|byte| !is_end(byte)).unwrap_or(printed.len());
    let end = printed.iter().rposition(|byte| !is_end(byte)).map_or(start, |last| last + 1);
    Ok(Zeroizing::new(printed[start..end].to_vec()))
}

/// The secret to encrypt with: that of the id that is asked for, else the only one.
pub fn to_encrypt<'a>(secrets: &'a [Secret], id: Option<&str>) -> Result<&'a Secret> {
    let known = || secrets.iter().map(|secret| secret.id.as_str());
    match (secrets, id) {
        ([], _) => Err(Error::usage("a vault password is required to use Ansible's Vault")),
        (_, Some(id)) => secrets.iter().find(|secret| secret.id == id).ok_or_else(|| {
            Error::usage(format!("there is no password for `--encrypt-vault-id {id}`")).suggest(id, known())
        }),
        ([only], None) => Ok(only),
        (_, None) => {
            let known: Vec<String> = known().map(|id| format!("`{id}`")).collect();
            Err(Error::usage(format!("the vault ids {} are available to encrypt", known.join(", ")))
                .hint("say which with `--encrypt-vault-id`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::DEFAULT_ID;

    #[test]
    fn vault_ids_are_labels_and_sources() {
        let id = |label: Option<&str>, source| Identity { label: label.map(str::to_owned), source };
        for (text, expected) in [
            ("prod@prompt", id(Some("prod"), Source::Prompt)),
            ("prompt", id(None, Source::Prompt)),
            ("@pw", id(None, Source::File("pw".into()))),
            ("dev@dir/pw@2", id(Some("dev"), Source::File("dir/pw@2".into()))),
            ("pw.sh", id(None, Source::File("pw.sh".into()))),
        ] {
            assert_eq!(Identity::parse(text).unwrap(), expected, "{text}");
        }
        for text in ["a;b@prompt", "prod@"] {
            assert!(Identity::parse(text).is_err(), "{text}");
        }
    }

    fn never(question: &str) -> Result<String> {
        panic!("asked {question}")
    }

    #[test]
    fn files_and_scripts_give_passwords() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let first = super::super::encrypt(&Secret::new("a", *b"pw word"), b"inner", None).unwrap();
        let cases = [
            (write("plain", "  pw word\r\n", 0o600), Ok("pw word")),
            (write("script", "#!/bin/sh\nprintf ' from script \\n'\n", 0o700), Ok(" from script ")),
            (write("keys-client.sh", "#!/bin/sh\necho \"$@\"\n", 0o700), Ok("--vault-id dev")),
            (write("sealed", &first, 0o600), Ok("inner")),
            (write("empty", "\n", 0o600), Err("file is empty")),
            (write("silent", "#!/bin/sh\n", 0o700), Err("printed no password")),
            (write("fails", "#!/bin/sh\nexit 3\n", 0o700), Err("exit code 3")),
            (write("no-program", "pw\n", 0o700), Err("cannot be run")),
            (directory.path().join("missing"), Err("cannot be read")),
            (directory.path().to_owned(), Err("is a directory")),
        ];
        for (path, expected) in &cases {
            let identities = [
                Identity::file(&cases[0].0),
                Identity { label: Some("dev".into()), source: Source::File(path.clone()) },
            ];
            let (secrets, warnings) = load(&identities, DEFAULT_ID, Use::Decrypt, &mut never).unwrap();
            match expected {
                Ok(password) => {
                    assert_eq!(warnings, [""; 0]);
                    assert_eq!((secrets[1].id.as_str(), secrets[1].password.as_slice()), ("dev", password.as_bytes()));
                }
                Err(why) => {
                    assert_eq!(secrets.len(), 1);
                    assert!(warnings[0].contains(why), "{warnings:?}");
                    let alone = load(&identities[1..], DEFAULT_ID, Use::Decrypt, &mut never).expect_err(why);
                    assert!(alone.message().contains(why), "{alone}");
                }
            }
        }
    }

    #[test]
    fn passwords_are_asked_for_in_ansibles_words() {
        let questions = |text: &str, purpose, answers: &[&str]| {
            let mut asked = Vec::new();
            let mut answers = answers.iter();
            let loaded = load(&[Identity::parse(text).unwrap()], DEFAULT_ID, purpose, &mut |question| {
                asked.push(question.to_owned());
                answers.next().map(|answer| (*answer).to_owned()).ok_or_else(|| Error::input("no terminal"))
            });
            (asked.join("|"), loaded.map(|(secrets, _)| secrets[0].password.to_vec()))
        };
        for (text, purpose, expected) in [
            ("prompt_ask_vault_pass", Use::Decrypt, "Vault password: "),
            ("prod@prompt", Use::Decrypt, "Vault password (prod): "),
            ("prompt_ask_vault_pass", Use::Encrypt, "New Vault password: |Confirm New Vault password: "),
            ("prompt", Use::Encrypt, "New vault password (default): |Confirm new vault password (default): "),
        ] {
            let (asked, password) = questions(text, purpose, &["pw ", "pw"]);
            assert_eq!((asked.as_str(), password.unwrap().as_slice()), (expected, &b"pw"[..]));
        }
        assert!(questions("prompt", Use::Encrypt, &["a", "b"]).1.is_err());
        assert!(questions("prompt", Use::Decrypt, &[""]).1.is_err());
        assert!(questions("prompt", Use::Decrypt, &[]).1.is_err());
    }

    #[test]
    fn one_secret_encrypts() {
        let secrets = [Secret::new("dev", *b"1"), Secret::new("prod", *b"2")];
        assert_eq!(to_encrypt(&secrets[..1], None).unwrap().id, "dev");
        assert_eq!(to_encrypt(&secrets, Some("prod")).unwrap().id, "prod");
        assert!(to_encrypt(&secrets, None).unwrap_err().message().contains("`dev`, `prod` are available"));
        assert!(to_encrypt(&secrets, Some("prd")).unwrap_err().hints()[0].contains("`prod`"));
        assert!(to_encrypt(&[], None).is_err());
    }
}
