//! The agent of ssh-agent(1): keys that sign without being seen.

use std::path::Path;

use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use tokio::net::UnixStream;

/// An agent and what it holds.
pub(super) struct Agent {
    pub(super) client: AgentClient<UnixStream>,
    pub(super) identities: Vec<AgentIdentity>,
}

impl Agent {
    /// Asks an agent for its keys; `None` if it does not answer or has none.
    pub(super) async fn connect(socket: &Path) -> Option<Agent> {
        let mut client = AgentClient::connect_uds(socket).await.ok()?;
        let identities = client.request_identities().await.ok()?;
        (!identities.is_empty()).then_some(Agent { client, identities })
    }
}

/// The name under which a key of an agent is spoken of.
pub(super) fn name(identity: &AgentIdentity) -> String {
    let (AgentIdentity::PublicKey { comment, .. } | AgentIdentity::Certificate { comment, .. }) = identity;
    format!("agent key `{comment}`")
}
