//! The controller itself as a host: a child process instead of a channel.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::channel::{Carrier, Channel, Closed, Event};
use super::{ConnectError, ConnectErrorKind};

/// How long output is waited for after the program has ended: something it left behind may hold its streams.
const LINGER: Duration = Duration::from_millis(200);

/// Starts a command line through `sh`.
pub(super) fn open(command: &str) -> Result<Channel, ConnectError> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let message = format!("cannot start `sh` on the controller: {error}");
            ConnectError::new(ConnectErrorKind::Unreachable, message)
        })?;
    let (channel, Carrier { mut input, events }) = Channel::new();
    let stdin = child.stdin.take();
    let stdout = child.stdout.take().map(|stream| tokio::spawn(read(stream, events.clone(), Event::Stdout)));
    let stderr = child.stderr.take().map(|stream| tokio::spawn(read(stream, events.clone(), Event::Stderr)));
    tokio::spawn(async move {
        let Some(mut stdin) = stdin else { return };
        while let Some(bytes) = input.recv().await {
            if stdin.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        let closed = match child.wait().await {
            Ok(status) => Closed { code: status.code().and_then(|code| u32::try_from(code).ok()), reason: None },
            Err(error) => Closed { code: None, reason: Some(error.to_string()) },
        };
        for reader in [stdout, stderr].into_iter().flatten() {
            let _ = tokio::time::timeout(LINGER, reader).await;
        }
        let _ = events.send(Event::Closed(closed));
    });
    Ok(channel)
}

async fn read(mut stream: impl AsyncRead + Unpin, events: mpsc::UnboundedSender<Event>, event: fn(Vec<u8>) -> Event) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        if events.send(event(buffer[..length].to_vec())).is_err() {
            return;
        }
    }
}
