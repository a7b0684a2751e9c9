//! The ways to a server: a socket, other hosts in between, or a command.

use std::process::Stdio;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::client::{Client, Stream, Way, explain};
use super::settings::Settings;
use crate::connect::Target;

/// A socket of its own.
pub(super) async fn direct(settings: &Settings) -> Result<TcpStream, String> {
    let (host, port) = (settings.host.as_str(), settings.port);
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(|error| format!("cannot connect to `{host}` port {port}: {}", plainly(&error)))?;
    // without it small packets wait for each other
    stream.set_nodelay(true).map_err(|error| format!("cannot connect to `{host}` port {port}: {error}"))?;
    Ok(stream)
}

/// The words of an error without the system's number.
fn plainly(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    text.trim_start_matches("failed to lookup address information: ").to_lowercase()
}

/// A channel through hosts, each reached through the one before.
pub(super) async fn through(
    hops: &[String],
    settings: &Settings,
    target: &Target,
) -> Result<(impl Stream + use<>, Client), String> {
    let mut way: Option<Client> = None;
    for hop in hops {
        let hop = Settings::of_jump(hop, target)?;
        let place = hop.place();
        let client = match way.take() {
            None => Client::over(direct(&hop).await?, hop, Way::Direct).await,
            Some(client) => {
                let stream = tunnel(&client, &hop).await?;
                Client::over(stream, hop, Way::Jump { _client: Box::new(client) }).await
            }
        };
        way = Some(client.map_err(|fault| format!("on the way, at `{place}`: {fault}"))?);
    }
    let client = way.ok_or("`ProxyJump` names no host")?;
    let stream = tunnel(&client, settings).await?;
    Ok((stream, client))
}

async fn tunnel(client: &Client, to: &Settings) -> Result<impl Stream + use<>, String> {
    let (host, port) = (to.host.as_str(), to.port);
    let channel = client.handle.channel_open_direct_tcpip(host, u32::from(port), "127.0.0.1", 0).await;
    let channel = channel
        .map_err(|error| format!("the host on the way cannot connect to `{host}` port {port}: {}", explain(&error)))?;
    Ok(channel.into_stream())
}

/// The standard streams of a command; what it says on its stderr is of no use to anybody else.
pub(super) fn command(command: &str) -> Result<(impl Stream + use<>, Child), String> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(format!("exec {command}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot start `ProxyCommand {command}`: {error}"))?;
    match (child.stdout.take(), child.stdin.take()) {
        (Some(stdout), Some(stdin)) => Ok((tokio::io::join(stdout, stdin), child)),
        _ => Err(format!("cannot start `ProxyCommand {command}`")),
    }
}
