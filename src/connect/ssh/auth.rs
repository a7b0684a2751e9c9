//! The login: keys, then passwords.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use russh::client::{AuthResult, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::agent::AgentIdentity;
use russh::keys::{Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};
use russh::{MethodKind, MethodSet};

use super::agent::{self, Agent};
use super::client::{Gatekeeper, Notes, explain, locked};
use super::settings::Settings;

/// Servers end a connection after six attempts (`MaxAuthTries`): one is left for a password if there is one.
const ATTEMPTS: usize = 6;

/// Something to log in with.
enum Credential {
    File {
        path: PathBuf,
        key: Arc<PrivateKey>,
        certificate: Option<Box<Certificate>>,
    },
    /// The n-th of the agent's.
    Agent(usize),
}

/// What has been tried, for the message if nothing helps.
#[derive(Default)]
struct Attempts {
    /// What the settings allow.
    allowed: Vec<&'static str>,
    tried: Vec<String>,
    /// Keys that could not be tried, and why.
    unusable: Vec<String>,
    /// What the server still accepts, once it said so.
    methods: Option<MethodSet>,
    password_refused: bool,
}

impl Attempts {
    fn may(&self, method: MethodKind) -> bool {
        self.allowed.contains(&<&str>::from(&method))
            && self.methods.as_ref().is_none_or(|methods| methods.contains(&method))
    }

    /// Notes an answer; true if that was the login.
    fn note(&mut self, what: String, result: AuthResult) -> bool {
        match result {
            AuthResult::Success => true,
            AuthResult::Failure { remaining_methods, .. } => {
                self.tried.push(what);
                // a broken connection says "none"
                if !remaining_methods.is_empty() {
                    self.methods = Some(remaining_methods);
                }
                false
            }
        }
    }
}

/// Logs in. The error says what was tried.
pub(super) async fn login(
    handle: &mut Handle<Gatekeeper>,
    settings: &Settings,
    notes: &Mutex<Notes>,
) -> Result<(), String> {
    let mut attempts = Attempts { allowed: settings.methods.clone(), ..Attempts::default() };
    let keys = attempts.may(MethodKind::PublicKey);
    let mut agent = match &settings.agent {
        Some(socket) if keys => Agent::connect(socket).await,
        _ => None,
    };
    let credentials = if keys { credentials(settings, agent.as_ref(), &mut attempts) } else { Vec::new() };
    let limit = ATTEMPTS - usize::from(settings.password.is_some());
    let user = settings.user.as_str();
    let passwords = attempts.may(MethodKind::Password) || attempts.may(MethodKind::KeyboardInteractive);
    if credentials.is_empty() && !(passwords && settings.password.is_some()) {
        // says what the server accepts, and now and then lets in
        let result = handle.authenticate_none(user).await.map_err(|error| explain(&error))?;
        if attempts.note(String::new(), result) {
            return Ok(());
        }
        attempts.tried.clear();
    }
    for credential in credentials {
        if attempts.tried.len() == limit || !attempts.may(MethodKind::PublicKey) || handle.is_closed() {
            break;
        }
        if try_key(handle, user, credential, agent.as_mut(), notes, &mut attempts).await? {
            return Ok(());
        }
    }
    if let Some(password) = &settings.password
        && !handle.is_closed()
    {
        if attempts.may(MethodKind::Password) {
            let result =
                handle.authenticate_password(user, password.reveal()).await.map_err(|error| explain(&error))?;
            if attempts.note("the password".to_owned(), result) {
                return Ok(());
            }
            attempts.password_refused = attempts.may(MethodKind::Password);
        }
        // not after a refusal: two failures in one attempt would lock accounts sooner
        if !attempts.password_refused
            && attempts.may(MethodKind::KeyboardInteractive)
            && !handle.is_closed()
            && keyboard_interactive(handle, user, password.reveal(), &mut attempts).await?
        {
            return Ok(());
        }
    }
    Err(denied(settings, &attempts, handle.is_closed(), notes))
}

/// Everything to try, in order: keys that somebody named, the agent's, the usual files.
fn credentials(settings: &Settings, agent: Option<&Agent>, attempts: &mut Attempts) -> Vec<Credential> {
    let mut credentials = Vec::new();
    let mut used: Vec<usize> = Vec::new();
    let held = |key: &PublicKey| {
        let identities = agent.map(|agent| agent.identities.as_slice()).unwrap_or_default();
        identities.iter().position(|identity| public_key(identity).key_data() == key.key_data())
    };
    let mut add_file = |path: &PathBuf, used: &mut Vec<usize>, credentials: &mut Vec<Credential>| {
        match russh::keys::load_secret_key(path, None) {
            Ok(key) => {
                used.extend(held(key.public_key()));
                let certificate = russh::keys::load_openssh_certificate(beside(path, "-cert.pub")).ok().map(Box::new);
                credentials.push(Credential::File { path: path.clone(), key: Arc::new(key), certificate });
            }
            Err(error) => {
                // encrypted, or the public half only: an agent may have it
                let public = [path.clone(), beside(path, ".pub")]
                    .iter()
                    .find_map(|path| PublicKey::read_openssh_file(path).ok());
                match public.as_ref().and_then(held) {
                    Some(index) => {
                        used.push(index);
                        credentials.push(Credential::Agent(index));
                    }
                    None => attempts.unusable.push(unusable(path, &error, public.is_some())),
                }
            }
        }
    };
    for path in &settings.identity_files {
        add_file(path, &mut used, &mut credentials);
    }
    let named = used.clone();
    if !settings.identities_only {
        let count = agent.map_or(0, |agent| agent.identities.len());
        credentials.extend((0..count).filter(|index| !named.contains(index)).map(Credential::Agent));
    }
    for path in &settings.default_identity_files {
        let mut held = Vec::new();
        let mut found = Vec::new();
        add_file(path, &mut held, &mut found);
        // the agent's have been tried by then
        if held.is_empty() || settings.identities_only {
            credentials.append(&mut found);
        }
    }
    credentials
}

fn public_key(identity: &AgentIdentity) -> PublicKey {
    match identity {
        AgentIdentity::PublicKey { key, .. } => key.clone(),
        AgentIdentity::Certificate { certificate, .. } => PublicKey::from(certificate.public_key().clone()),
    }
}

/// A path with something appended to its last component.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn unusable(path: &Path, error: &russh::keys::Error, public: bool) -> String {
    let path = path.display();
    match error {
        russh::keys::Error::KeyIsEncrypted => {
            format!("`{path}` is encrypted: put it into an agent with `ssh-add {path}`")
        }
        russh::keys::Error::IO(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("`{path}` does not exist")
        }
        _ if public => format!("the agent does not hold the key of `{path}`"),
        // the crate below wraps "encrypted" for some formats
        error if error.to_string().to_lowercase().contains("encrypted") => {
            format!("`{path}` is encrypted: put it into an agent with `ssh-add {path}`")
        }
        error => format!("`{path}` is no usable private key: {error}"),
    }
}

async fn try_key(
    handle: &mut Handle<Gatekeeper>,
    user: &str,
    credential: Credential,
    agent: Option<&mut Agent>,
    notes: &Mutex<Notes>,
    attempts: &mut Attempts,
) -> Result<bool, String> {
    match credential {
        Credential::File { path, key, certificate } => {
            let name = format!("key `{}`", path.display());
            if let Some(certificate) = certificate {
                let result = handle
                    .authenticate_openssh_cert(user, Arc::clone(&key), *certificate)
                    .await
                    .map_err(|error| explain(&error))?;
                if attempts.note(format!("certificate `{}`", beside(&path, "-cert.pub").display()), result) {
                    return Ok(true);
                }
            }
            let hash = rsa_hash(handle, key.public_key(), notes).await?;
            let key = PrivateKeyWithHashAlg::new(key, hash);
            let result = handle.authenticate_publickey(user, key).await.map_err(|error| explain(&error))?;
            Ok(attempts.note(name, result))
        }
        Credential::Agent(index) => {
            let Some(agent) = agent else { return Ok(false) };
            let Some(identity) = agent.identities.get(index) else { return Ok(false) };
            let name = agent::name(identity);
            let hash = rsa_hash(handle, &public_key(identity), notes).await?;
            let result = match identity.clone() {
                AgentIdentity::PublicKey { key, .. } => {
                    handle.authenticate_publickey_with(user, key, hash, &mut agent.client).await
                }
                AgentIdentity::Certificate { certificate, .. } => {
                    handle.authenticate_certificate_with(user, certificate, hash, &mut agent.client).await
                }
            };
            match result {
                Ok(result) => Ok(attempts.note(name, result)),
                Err(error) => {
                    attempts.unusable.push(format!("the agent does not sign with {name}: {error}"));
                    Ok(false)
                }
            }
        }
    }
}

/// The hash for RSA signatures that the server takes; none for other keys.
async fn rsa_hash(
    handle: &Handle<Gatekeeper>,
    key: &PublicKey,
    notes: &Mutex<Notes>,
) -> Result<Option<HashAlg>, String> {
    if !key.algorithm().is_rsa() || only_sha1(&locked(notes).version) {
        return Ok(None);
    }
    // waits up to a second for a server that does not tell
    Ok(handle.best_supported_rsa_hash().await.map_err(|error| explain(&error))?.flatten())
}

/// True for servers of before OpenSSH 7.2, which know RSA with SHA-1 only and do not tell.
fn only_sha1(version: &str) -> bool {
    let Some(number) = version.split("OpenSSH_").nth(1) else { return false };
    let mut parts = number.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (7, 2),
        _ => false,
    }
}

/// Answers every question that hides its answer with the password.
async fn keyboard_interactive(
    handle: &mut Handle<Gatekeeper>,
    user: &str,
    password: &str,
    attempts: &mut Attempts,
) -> Result<bool, String> {
    let mut asked = false;
    let mut reply =
        handle.authenticate_keyboard_interactive_start(user, None::<String>).await.map_err(|error| explain(&error))?;
    loop {
        let prompts = match reply {
            KeyboardInteractiveAuthResponse::Success => return Ok(true),
            KeyboardInteractiveAuthResponse::Failure { remaining_methods, partial_success } => {
                let result = AuthResult::Failure { remaining_methods, partial_success };
                attempts.note("the password (keyboard-interactive)".to_owned(), result);
                attempts.password_refused = asked;
                return Ok(false);
            }
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
        };
        if asked && !prompts.is_empty() {
            // asked again: it was wrong, or something else is wanted that we do not have
            attempts.tried.push("the password (keyboard-interactive)".to_owned());
            attempts.password_refused = true;
            return Ok(false);
        }
        asked |= !prompts.is_empty();
        let answers = prompts.iter().map(|prompt| if prompt.echo { String::new() } else { password.to_owned() });
        reply = handle
            .authenticate_keyboard_interactive_respond(answers.collect())
            .await
            .map_err(|error| explain(&error))?;
    }
}

fn denied(settings: &Settings, attempts: &Attempts, closed: bool, notes: &Mutex<Notes>) -> String {
    let place = settings.place();
    let methods =
        attempts.methods.as_ref().map(|methods| methods.iter().map(<&str>::from).collect::<Vec<_>>().join(","));
    let mut message = match (&methods, attempts.password_refused) {
        (_, true) => format!("Invalid/incorrect password: permission denied for `{place}`"),
        (Some(methods), false) => format!("Permission denied ({methods}) for `{place}`"),
        (None, false) => format!("the login at `{place}` failed"),
    };
    if !attempts.tried.is_empty() {
        message.push_str(&format!("; tried {}", attempts.tried.join(", ")));
    }
    for fault in &attempts.unusable {
        message.push_str(&format!("; {fault}"));
    }
    if settings.password.is_none() && attempts.may(MethodKind::Password) && attempts.methods.is_some() {
        message.push_str("; no password is set (`ansible_password`, `--ask-pass`)");
    }
    let notes = locked(notes);
    if closed {
        let end = notes.end.as_deref().unwrap_or("the server closed the connection");
        message.push_str(&format!("; {end}"));
    }
    let banner = notes.banner.lines().map(str::trim).rfind(|line| !line.is_empty());
    if let Some(banner) = banner {
        message.push_str(&format!("; the server's banner ends with `{banner}`"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_known_by_their_version() {
        let cases = [
            ("SSH-2.0-OpenSSH_7.1p2", true),
            ("SSH-2.0-OpenSSH_7.2", false),
            ("SSH-2.0-OpenSSH_5.3", true),
            ("SSH-2.0-OpenSSH_10.0", false),
            ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3", false),
            ("SSH-2.0-dropbear_2022.83", false),
        ];
        for (version, expected) in cases {
            assert_eq!(only_sha1(version), expected, "{version}");
        }
    }
}
