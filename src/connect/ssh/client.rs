//! One SSH connection: handshake, host key, login, and a channel for each program.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use russh::client::{Config, DisconnectReason, GexParams, Handle, Handler, Session};
use russh::keys::{Certificate, HashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf, client};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::known_hosts::{self, HostKey, KnownHosts, Verdict};
use super::settings::{Proxy, Settings};
use super::{algorithms, auth, jump, pattern};
use crate::connect::channel::{Carrier, Channel, Closed, Event};
use crate::connect::connection::unreachable_error;
use crate::connect::{ConnectError, HostKeyChecking, Target};

/// What fits into one packet everywhere (RFC 4253 section 6.1); larger writes across a rekey were faulty in russh.
const CHUNK: usize = 32 * 1024;

/// A stream that SSH can run over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// A connection that is logged in.
pub(in crate::connect) struct Client {
    pub(super) handle: Handle<Gatekeeper>,
    notes: Arc<Mutex<Notes>>,
    user: String,
    /// What this connection runs through, kept open as long as it lives.
    _way: Way,
}

/// What carries a connection beside the stream itself.
pub(super) enum Way {
    Direct,
    Jump { _client: Box<Client> },
    Command { _child: tokio::process::Child },
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

/// What the session's own task learns, for the messages of others.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Why the host key was refused.
    refusal: Option<String>,
    /// What the server says before the login.
    pub(super) banner: String,
    /// The server's version line.
    pub(super) version: String,
    /// Why the connection ended.
    pub(super) end: Option<String>,
}

pub(super) fn locked(notes: &Mutex<Notes>) -> MutexGuard<'_, Notes> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Connects and logs in, within the target's time.
    pub(in crate::connect) async fn connect(target: &Target) -> Result<Client, ConnectError> {
        let settings = Settings::of(target).map_err(unreachable_error)?;
        let timeout = settings.timeout;
        let place = settings.place();
        match tokio::time::timeout(timeout, Client::connect_within(settings, target)).await {
            Ok(result) => result.map_err(unreachable_error),
            Err(_) => {
                let seconds = timeout.as_secs_f32();
                Err(unreachable_error(format!("`{place}` did not let us in within {seconds} seconds")))
            }
        }
    }

    async fn connect_within(settings: Settings, target: &Target) -> Result<Client, String> {
        match &settings.proxy {
            Proxy::None => {
                let stream = jump::direct(&settings).await?;
                Client::over(stream, settings, Way::Direct).await
            }
            Proxy::Jump(hops) => {
                let (stream, client) = jump::through(hops, &settings, target).await?;
                Client::over(stream, settings, Way::Jump { _client: Box::new(client) }).await
            }
            Proxy::Command(command) => {
                let (stream, child) = jump::command(command)?;
                Client::over(stream, settings, Way::Command { _child: child }).await
            }
        }
    }

    /// Speaks SSH over a stream, up to the login.
    pub(super) async fn over(stream: impl Stream, settings: Settings, way: Way) -> Result<Client, String> {
        let place = settings.place();
        let settings = Arc::new(settings);
        let hosts = KnownHosts::read(&settings.known_hosts)?;
        let notes = Arc::new(Mutex::new(Notes::default()));
        let config = config(&settings, &hosts)?;
        let gatekeeper = Gatekeeper { settings: Arc::clone(&settings), hosts, notes: Arc::clone(&notes) };
        let mut handle = client::connect_stream(Arc::new(config), stream, gatekeeper).await.map_err(|error| {
            let refusal = locked(&notes).refusal.take();
            refusal.unwrap_or_else(|| format!("cannot speak SSH with `{place}`: {}", explain(&error)))
        })?;
        auth::login(&mut handle, &settings, &notes).await?;
        Ok(Client { handle, notes, user: settings.user.clone(), _way: way })
    }

    /// Who is logged in.
    pub(in crate::connect) fn user(&self) -> &str {
        &self.user
    }

    /// The server's version line (RFC 4253 section 4.2).
    pub(in crate::connect) fn version(&self) -> String {
        locked(&self.notes).version.clone()
    }

    /// Starts a command line in a new channel. Nothing here waits for the server's reply to that, but the protocol
    /// may: `command` is told whether the server lets no data follow before it has started the command (a window of
    /// zero, as OpenSSH has it), which makes the first data one round trip late.
    pub(in crate::connect) async fn open(&self, command: impl FnOnce(bool) -> String) -> Result<Channel, ConnectError> {
        let fault = |error: russh::Error| {
            let end = locked(&self.notes).end.take();
            unreachable_error(match end {
                Some(end) => format!("the connection broke: {end}"),
                None => format!("cannot open a channel: {}", explain(&error)),
            })
        };
        let channel = self.handle.channel_open_session().await.map_err(fault)?;
        let late = channel.writable_packet_size().await == 0;
        channel.exec(true, command(late)).await.map_err(fault)?;
        let (reader, writer) = channel.split();
        let (near, Carrier { input, events }) = Channel::new();
        tokio::spawn(write(writer, input));
        tokio::spawn(read(reader, events, Arc::clone(&self.notes)));
        Ok(near)
    }

    /// Says goodbye.
    pub(in crate::connect) async fn close(self) {
        let goodbye = self.handle.disconnect(russh::Disconnect::ByApplication, "", "en");
        let _ = tokio::time::timeout(Duration::from_millis(500), goodbye).await;
    }
}

async fn write(writer: ChannelWriteHalf<client::Msg>, mut input: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(bytes) = input.recv().await {
        for chunk in bytes.chunks(CHUNK) {
            if writer.data_bytes(chunk.to_vec()).await.is_err() {
                return;
            }
        }
    }
    let _ = writer.eof().await;
}

/// Drains a channel until it closes, whether anybody listens or not: one channel that is not read stalls them all.
async fn read(mut reader: ChannelReadHalf, events: mpsc::UnboundedSender<Event>, notes: Arc<Mutex<Notes>>) {
    let mut closed = Closed::default();
    while let Some(message) = reader.wait().await {
        let event = match message {
            ChannelMsg::Data { data } => Event::Stdout(data.to_vec()),
            ChannelMsg::ExtendedData { data, .. } => Event::Stderr(data.to_vec()),
            ChannelMsg::ExitStatus { exit_status } => {
                closed.code = Some(exit_status);
                continue;
            }
            ChannelMsg::ExitSignal { signal_name, .. } => {
                closed.reason = Some(format!("the shell was ended by signal {signal_name:?}"));
                continue;
            }
            ChannelMsg::Failure => {
                closed.reason = Some("the server refuses to run a command".to_owned());
                break;
            }
            ChannelMsg::Close => break,
            _ => continue,
        };
        let _ = events.send(event);
    }
    if closed == Closed::default() {
        closed.reason.clone_from(&locked(&notes).end);
    }
    let _ = events.send(Event::Closed(closed));
    while reader.wait().await.is_some() {}
}

/// The settings of the protocol for one host.
fn config(settings: &Settings, hosts: &KnownHosts) -> Result<Config, String> {
    let (host, port) = key_name(settings);
    let name = known_hosts::name_of(host, port);
    let recorded = hosts.recorded_types(&name);
    Ok(Config {
        preferred: algorithms::preferred(settings, &recorded, hosts.has_authority(&name, &host.to_lowercase()))?,
        // one window a round trip is the limit of a download
        window_size: 16 * 1024 * 1024,
        maximum_packet_size: 65_535,
        keepalive_interval: settings.keepalive,
        keepalive_max: settings.keepalive_max,
        // the default prefers 8192 bits, which costs more than a second
        gex: GexParams::new(2048, 3072, 8192).map_err(|error| error.to_string())?,
        nodelay: true,
        ..Config::default()
    })
}

/// The name and port under which a host's key is known.
fn key_name(settings: &Settings) -> (&str, u16) {
    match &settings.host_key_alias {
        Some(alias) => (alias, 22),
        None => (&settings.host, settings.port),
    }
}

/// Guards the connection: judges host keys and takes notes.
pub(super) struct Gatekeeper {
    settings: Arc<Settings>,
    hosts: KnownHosts,
    notes: Arc<Mutex<Notes>>,
}

impl Gatekeeper {
    /// Judges a plain key. An error says why it is refused.
    fn judge(&self, key: &PublicKey) -> Result<(), String> {
        let shown = host_key(key)?;
        let (host, port) = key_name(&self.settings);
        let place = format!("`{host}` port {port}");
        let fingerprint = key.fingerprint(HashAlg::Sha256);
        let kind = &shown.kind;
        match self.hosts.check(host, port, &shown) {
            Verdict::Known => Ok(()),
            Verdict::Revoked { place: line } => {
                Err(format!("the {kind} host key of {place} ({fingerprint}) is marked as revoked at {line}"))
            }
            Verdict::Changed { recorded, place: line } if recorded == *kind => Err(format!(
                "the {kind} host key of {place} has changed: it shows {fingerprint}, another is recorded at {line}. \
                 Somebody may be in between; if the host was set up anew, remove that line"
            )),
            // a key of a type nobody recorded is no contradiction where keys are not checked
            Verdict::Changed { .. } if self.settings.checking == HostKeyChecking::Off => Ok(()),
            Verdict::Changed { recorded, place: line } => Err(format!(
                "{place} shows a {kind} host key ({fingerprint}), but a {recorded} key is recorded at {line}. \
                 Somebody may be in between; if the host was set up anew, remove that line"
            )),
            Verdict::Unknown => match self.settings.checking {
                HostKeyChecking::Off => Ok(()),
                HostKeyChecking::AcceptNew => match self.settings.known_hosts.first() {
                    Some(file) => known_hosts::record(file, host, port, &shown, self.settings.hash_known_hosts),
                    None => Ok(()),
                },
                HostKeyChecking::Strict => {
                    let scan = if port == 22 { host.to_owned() } else { format!("-p {port} {host}") };
                    Err(format!(
                        "the {kind} host key of {place} ({fingerprint}) is not known. Check it and add it \
                         (`ssh-keyscan {scan} >> ~/.ssh/known_hosts`), or accept keys at first sight \
                         (`StrictHostKeyChecking=accept-new`)"
                    ))
                }
            },
        }
    }

    /// True if an authority that known_hosts names speaks for the host by this certificate, ssh-keygen(1)
    /// section CERTIFICATES.
    fn certified(&self, certificate: &Certificate) -> Result<bool, String> {
        let (host, port) = key_name(&self.settings);
        let name = host.to_lowercase();
        let authority = PublicKey::from(certificate.signature_key().clone());
        let key = PublicKey::from(certificate.public_key().clone());
        for signed in [&authority, &key] {
            if let Some(line) = self.hosts.revoked(&known_hosts::name_of(host, port), &host_key(signed)?) {
                return Err(format!("a key in the host certificate of `{host}` is marked as revoked at {line}"));
            }
        }
        let principals = certificate.valid_principals();
        let authority_key = host_key(&authority)?;
        let trusted = [known_hosts::name_of(host, port), name.clone()]
            .iter()
            .any(|name| self.hosts.is_authority(name, &authority_key))
            && certificate.cert_type().is_host()
            && certificate.validate([&authority.fingerprint(HashAlg::Sha256)]).is_ok()
            && certificate.critical_options().is_empty()
            && (principals.is_empty() || principals.iter().any(|principal| pattern::matches(principal, &name)));
        Ok(trusted)
    }
}

/// A key as known_hosts writes it.
fn host_key(key: &PublicKey) -> Result<HostKey, String> {
    let text = key.to_openssh().map_err(|error| format!("the host key is unreadable: {error}"))?;
    let mut words = text.split(' ').map(str::to_owned);
    match (words.next(), words.next()) {
        (Some(kind), Some(base64)) => Ok(HostKey { kind, base64 }),
        _ => Err("the host key is unreadable".to_owned()),
    }
}

impl Handler for Gatekeeper {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let judged = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => self.judge(key),
            PublicKeyOrCertificate::Certificate(certificate) => match self.certified(certificate) {
                Ok(true) => Ok(()),
                // as ssh does: its key may be known by itself
                Ok(false) => self.judge(&PublicKey::from(certificate.public_key().clone())),
                Err(refusal) => Err(refusal),
            },
        };
        match judged {
            Ok(()) => Ok(true),
            Err(refusal) => {
                locked(&self.notes).refusal = Some(refusal);
                Ok(false)
            }
        }
    }

    async fn kex_done(
        &mut self,
        _shared_secret: Option<&[u8]>,
        _names: &russh::Names,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        locked(&self.notes).version = String::from_utf8_lossy(session.remote_sshid()).into_owned();
        Ok(())
    }

    async fn auth_banner(&mut self, banner: &str, _session: &mut Session) -> Result<(), Self::Error> {
        locked(&self.notes).banner.push_str(banner);
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Self::Error>) -> Result<(), Self::Error> {
        let (end, result) = match reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                (format!("the server says `{}`", info.message.trim()), Ok(()))
            }
            DisconnectReason::Error(error) => (explain(&error), Err(error)),
        };
        locked(&self.notes).end = Some(end);
        result
    }
}

/// An error of the protocol in words for those who do not know the library.
pub(super) fn explain(error: &russh::Error) -> String {
    match error {
        russh::Error::Disconnect | russh::Error::HUP | russh::Error::SendError | russh::Error::RecvError => {
            "the server closed the connection".to_owned()
        }
        russh::Error::KeepaliveTimeout => "the server no longer answers".to_owned(),
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            format!("no {kind:?} algorithm in common; the server has {}", theirs.join(", "))
        }
        russh::Error::Join(_) => "the SSH library failed on what the server sent".to_owned(),
        russh::Error::Version => "the server's version line makes no sense; is that an SSH port?".to_owned(),
        russh::Error::IO(error)
            if matches!(
                error.kind(),
                ErrorKind::UnexpectedEof
                    | ErrorKind::BrokenPipe
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
            ) =>
        {
            "the server closed the connection".to_owned()
        }
        other => other.to_string(),
    }
}
