//! The test's server as a target of the wire.

use trimtab::connect::{HostKeyChecking, Secret, Target, Transport};

use crate::server::{Server, User};
use crate::support::local;

impl Server {
    /// This server, as root by key; nothing of this machine's own configuration is looked at.
    pub fn target(&self) -> Target {
        Target {
            name: "server".to_owned(),
            transport: Transport::Ssh,
            address: "127.0.0.1".to_owned(),
            port: Some(self.port),
            user: Some("root".to_owned()),
            private_key_file: Some(self.text("id")),
            ssh_args: self.arguments(&[]),
            host_key_checking: HostKeyChecking::Strict,
            ..local()
        }
    }

    /// `-F none`, this server's known_hosts, no agent, and more.
    pub fn arguments(&self, more: &[&str]) -> Vec<String> {
        let known_hosts = format!("UserKnownHostsFile={}", self.text("known_hosts"));
        let mut words: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        for word in ["-F", "none", "-o", &known_hosts, "-o", "GlobalKnownHostsFile none", "-oIdentityAgent=none"] {
            words.push(word.to_owned());
        }
        words
    }

    pub fn password_target(&self, user: &User) -> Target {
        Target {
            user: Some(user.name.clone()),
            private_key_file: None,
            password: Some(Secret::new(user.password.clone())),
            ssh_args: self.arguments(&["-o", "IdentityFile=none"]),
            ..self.target()
        }
    }
}
