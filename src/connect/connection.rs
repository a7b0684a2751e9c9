//! One host's connection: its shells, one an identity, and the batches that go through them.

use std::collections::HashMap;

use tokio::time::{Instant, timeout_at};

use super::answer::Answers;
use super::batch::{self, Features, Token};
use super::r#become::{self as becoming, Dialogue, Start};
use super::channel::{Channel, Closed, Event};
use super::shell::{Request, Response};
use super::ssh::Client;
use super::{Become, ConnectError, ConnectErrorKind, Counters, Identity, Target, Transport, local};

/// What a host is asked through.
#[derive(Debug)]
pub struct Connection {
    target: Target,
    token: Token,
    /// The shell's command line on the host.
    program: String,
    shells: HashMap<Identity, Shell>,
    /// `None`: the controller itself.
    client: Option<Client>,
    counters: Counters,
}

/// A shell that waits for a batch.
#[derive(Debug)]
struct Shell {
    channel: Channel,
    /// What its first frame said; `None`: it has answered nothing yet.
    features: Option<Features>,
    /// It knows the prelude.
    prelude: bool,
    /// What ends its frames.
    token: Token,
}

/// A first batch that went with the command of its shell.
struct Sent {
    /// What begins its answer.
    token: Token,
    /// The shell that answers it reads the next one too.
    stays: bool,
}

impl Connection {
    /// Connects and logs in. For [`Transport::Local`] there is nothing to do yet.
    pub async fn open(target: &Target) -> Result<Connection, ConnectError> {
        Connection::open_with_shell(target, "sh").await
    }

    /// As [`Connection::open`], with the command line of a POSIX shell in place of `sh`.
    pub async fn open_with_shell(target: &Target, program: &str) -> Result<Connection, ConnectError> {
        let client = match target.transport {
            Transport::Local => None,
            Transport::Ssh => Some(Client::connect(target).await?),
        };
        Ok(Connection {
            target: target.clone(),
            token: random_token()?,
            program: program.to_owned(),
            shells: HashMap::new(),
            client,
            counters: Counters::default(),
        })
    }

    /// Sends requests as one batch and waits for all answers: one round trip. The shell of the identity is opened
    /// when first needed; that costs one more (two, or three where a password is asked for, if the batch may not go with
    /// the command, see docs/wire.md).
    ///
    /// If this is dropped before it ends, what the batch did is unknown, and its shell is not used again.
    pub async fn run(&mut self, identity: &Identity, requests: &[Request]) -> Result<Vec<Response>, ConnectError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let (mut shell, sent) = match self.shells.remove(identity) {
            Some(shell) => (shell, None),
            None => self.open_shell(identity, requests).await?,
        };
        let responses = self.exchange(&mut shell, sent, identity, requests).await?;
        self.shells.insert(identity.clone(), shell);
        Ok(responses)
    }

    /// What the connection has cost so far. The opening of a shell counts as one round trip on the controller too,
    /// so that the same work counts the same everywhere.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Ends the shells and the connection.
    pub async fn close(mut self) {
        self.shells.clear();
        if let Some(client) = self.client {
            client.close().await;
        }
    }

    /// The instant at which a shell that has not answered is given up.
    fn deadline(&self) -> Instant {
        Instant::now() + self.target.connect_timeout
    }

    /// Opens the shell of an identity. Also says if the first batch has gone with it.
    async fn open_shell(
        &mut self,
        identity: &Identity,
        requests: &[Request],
    ) -> Result<(Shell, Option<Sent>), ConnectError> {
        let Start { command, dialogue } = match &identity.become_as {
            None => becoming::login(&self.program),
            Some(wanted) => becoming::start(wanted, &self.program, &self.token)?,
        };
        self.counters.round_trips += 1;
        let mut sent = None;
        let channel = match &self.client {
            None => Ok(local::open(&command)?),
            Some(client) => {
                let mut waits = false;
                let opening = client.open(|late| {
                    let first = late.then(|| {
                        let longest = batch::longest_command(&client.version());
                        first_command(&self.program, client.user(), identity, requests, longest)
                    });
                    match first.flatten() {
                        Some((command, first)) => {
                            self.counters.bytes_sent += command.len() as u64;
                            sent = Some(first);
                            command
                        }
                        None => {
                            waits = late;
                            command
                        }
                    }
                });
                let opened = tokio::time::timeout(self.target.connect_timeout, opening).await;
                // the first answer in a dialogue comes with the permission to send
                self.counters.round_trips += u64::from(waits && dialogue.is_none());
                opened.unwrap_or_else(|_| Err(unreachable_error("the server opens no channel in time")))
            }
        };
        let mut channel = channel?;
        if let (Some(dialogue), Some(wanted), None) = (dialogue, &identity.become_as, &sent) {
            self.converse(&mut channel, &dialogue, wanted).await?;
        }
        Ok((Shell { channel, features: None, prelude: false, token: self.token.clone() }, sent))
    }

    /// Answers the question for a password and waits until the other user has been become.
    async fn converse(
        &mut self,
        channel: &mut Channel,
        dialogue: &Dialogue,
        wanted: &Become,
    ) -> Result<(), ConnectError> {
        let deadline = self.deadline();
        self.counters.round_trips += 1;
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let mut answered = false;
        loop {
            let Ok(event) = timeout_at(deadline, channel.event()).await else {
                let said = format!("{stderr}\n{stdout}");
                let message = format!("{} gave no answer in time{}", wanted.method, quoted_noise(&said));
                return Err(ConnectError::new(ConnectErrorKind::Become, message));
            };
            match event {
                Event::Stdout(bytes) => {
                    self.counters.bytes_received += bytes.len() as u64;
                    stdout.push_str(&String::from_utf8_lossy(&bytes));
                }
                Event::Stderr(bytes) => {
                    self.counters.bytes_received += bytes.len() as u64;
                    stderr.push_str(&String::from_utf8_lossy(&bytes));
                }
                Event::Closed(closed) => return Err(self.lost(Some(wanted), &format!("{stdout}\n{stderr}"), &closed)),
            }
            if stdout.contains(&dialogue.ready) {
                return Ok(());
            }
            if [&stderr, &stdout].into_iter().any(|said| dialogue.prompt.asked(said)) {
                let Some(password) = &wanted.password else {
                    return Err(becoming::missing_password(wanted));
                };
                if answered {
                    return Err(becoming::incorrect_password(wanted));
                }
                answered = true;
                stdout.clear();
                stderr.clear();
                let line = format!("{}\n", password.reveal()).into_bytes();
                self.counters.round_trips += 1;
                self.counters.bytes_sent += line.len() as u64;
                channel.send(line);
            }
        }
    }

    /// Sends a batch, unless it was `sent` with the shell, and waits for its answers.
    async fn exchange(
        &mut self,
        shell: &mut Shell,
        sent: Option<Sent>,
        identity: &Identity,
        requests: &[Request],
    ) -> Result<Vec<Response>, ConnectError> {
        let Shell { channel, features: known, prelude, token } = shell;
        let features = *known;
        self.counters.round_trips += 1;
        let mut stays = false;
        let mut answers = if let Some(sent) = sent {
            stays = sent.stays;
            Answers::new(&sent.token, requests)
        } else {
            let mut text = if *prelude { Vec::new() } else { batch::prelude(token) };
            *prelude = true;
            text.extend_from_slice(&batch::compose(requests, features.unwrap_or_default()));
            self.counters.bytes_sent += text.len() as u64;
            channel.send(text);
            Answers::new(token, requests)
        };
        // a batch may take as long as its commands do, but a shell that answers says so at once
        let mut deadline = features.is_none().then(|| self.deadline());
        loop {
            let event = match deadline {
                None => channel.event().await,
                Some(instant) => match timeout_at(instant, channel.event()).await {
                    Ok(event) => event,
                    Err(_) => {
                        let seconds = self.target.connect_timeout.as_secs_f32();
                        let noise = quoted_noise(&answers.noise());
                        return Err(unreachable_error(format!("no shell answered within {seconds} seconds{noise}")));
                    }
                },
            };
            let fed = match event {
                Event::Stdout(bytes) => {
                    self.counters.bytes_received += bytes.len() as u64;
                    answers.feed_stdout(&bytes)
                }
                Event::Stderr(bytes) => {
                    self.counters.bytes_received += bytes.len() as u64;
                    answers.feed_stderr(&bytes)
                }
                Event::Closed(closed) => {
                    let noise = answers.noise();
                    let refused = closed.code.is_some() || (identity.become_as.is_some() && !noise.is_empty());
                    if answers.began().is_none() && features.is_none() && refused {
                        return Err(self.lost(identity.become_as.as_ref(), &noise, &closed));
                    }
                    let error = broken(answers.answered(), requests.len(), &noise, &closed);
                    return Err(ConnectError { answers: answers.into_responses(), ..error });
                }
            };
            fed.map_err(|garbled| unreachable_error(format!("the host's answers make no sense: {}", garbled.0)))?;
            if let Some(features) = answers.began() {
                deadline = None;
                *known = Some(features);
                if answers.ended() {
                    if stays {
                        *prelude = true;
                        *token = answers.token();
                    }
                    return Ok(answers.into_responses());
                }
            }
        }
    }

    /// The error of a shell that ended before it ever answered.
    fn lost(&self, wanted: Option<&Become>, said: &str, closed: &Closed) -> ConnectError {
        let noise = quoted_noise(said);
        // nologin(8): whoever was to be become, it was the login that failed
        if said.contains("account is currently not available") {
            return unreachable_error(format!(
                "the login shell of this user lets nobody in{noise}; log in as another user or give this one a shell"
            ));
        }
        if let Some(error) = wanted.and_then(|wanted| becoming::refusal(wanted, said, closed.code)) {
            return error;
        }
        match (closed.code, &closed.reason) {
            (_, Some(reason)) => unreachable_error(format!("the connection broke: {reason}{noise}")),
            (Some(code), None) => {
                unreachable_error(format!("the login shell ended with code {code} before it answered{noise}"))
            }
            (None, None) => unreachable_error(format!("the connection broke before a shell answered{noise}")),
        }
    }
}

/// The command that brings a first batch with it, if that batch may go so, see [`batch::first_command`].
fn first_command(
    program: &str,
    login_user: &str,
    identity: &Identity,
    requests: &[Request],
    longest: usize,
) -> Option<(String, Sent)> {
    let token = random_token().ok()?;
    let command = match &identity.become_as {
        None => batch::first_command(program, &token, requests, longest)?,
        Some(wanted) => {
            let command = becoming::unasked(wanted, program, login_user)?;
            batch::first_relayed_command(program, &command, &token, requests, longest)?
        }
    };
    Some((command, Sent { token, stays: identity.become_as.is_some() }))
}

fn random_token() -> Result<Token, ConnectError> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| unreachable_error(format!("no random numbers: {error}")))?;
    Ok(Token::new(random))
}

fn broken(answered: usize, asked: usize, noise: &str, closed: &Closed) -> ConnectError {
    let why = match (closed.code, &closed.reason) {
        (_, Some(reason)) => format!("the connection broke ({reason})"),
        (Some(code), None) => format!("the shell ended with code {code}"),
        (None, None) => "the connection broke".to_owned(),
    };
    let noise = quoted_noise(noise);
    unreachable_error(format!("{why} after {answered} of {asked} answers; what the rest did is unknown{noise}"))
}

/// The last of what was said, to stand at the end of a message.
fn quoted_noise(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(3)..] {
        [] => String::new(),
        last => format!("; it said `{}`", last.join(" / ")),
    }
}

pub(super) fn unreachable_error(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::Unreachable, message)
}
