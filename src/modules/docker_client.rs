//! Docker through the host's own client: how it is called, and what it tells of images and containers.

use serde_json::Value as Json;

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host, Step};

use super::execution::environment;
use super::programs::SYSTEM_PATH;
use super::{Arg, Args, Settings, Type};

/// The arguments by which all modules of Docker reach its daemon.
pub const DAEMON: &[Arg] = &[
    Arg::new("docker_host", Type::Str, "the daemon, as the client has it: unix:///var/run/docker.sock")
        .aliases(&["docker_url"]),
    Arg::new("tls", Type::Bool, "speak TLS to the daemon").default("false"),
    Arg::new("validate_certs", Type::Bool, "check the daemon's certificate").default("false").aliases(&["tls_verify"]),
    Arg::new("ca_path", Type::Path, "certificates that are trusted").aliases(&[
        "ca_cert",
        "tls_ca_cert",
        "cacert_path",
    ]),
    Arg::new("client_cert", Type::Path, "the certificate to log in with").aliases(&["tls_client_cert", "cert_path"]),
    Arg::new("client_key", Type::Path, "its key").aliases(&["tls_client_key", "key_path"]),
    Arg::new("api_version", Type::Str, "the version of the interface to speak")
        .default("auto")
        .aliases(&["docker_api_version"]),
    Arg::new("timeout", Type::Int, "has no effect: the client waits as long as it takes").default("60"),
    Arg::new("debug", Type::Bool, "has no effect").default("false"),
];

/// What all questions of a task depend on.
pub fn footprint() -> Footprint {
    Footprint::named("docker")
}

/// How the client is called.
#[derive(Debug, Clone)]
pub struct Client {
    start: String,
}

impl Client {
    pub fn parse(args: &Args, settings: &Settings) -> Result<Client, Failure> {
        let mut words = String::new();
        let mut option = |name: &str, key: &str| {
            if let Some(value) = args.str(key).filter(|value| !value.is_empty()) {
                words.push_str(&format!(" {}", quote(&format!("{name}={value}"))));
            }
        };
        option("--host", "docker_host");
        option("--tlscacert", "ca_path");
        option("--tlscert", "client_cert");
        option("--tlskey", "client_key");
        if args.bool("validate_certs") {
            words.push_str(" --tlsverify");
        } else if args.bool("tls") {
            words.push_str(" --tls");
        }
        let mut start = format!("{SYSTEM_PATH}{}", environment(settings)?);
        if let Some(version) = args.str("api_version").filter(|version| *version != "auto" && !version.is_empty()) {
            start.push_str(&format!("export DOCKER_API_VERSION={}\n", quote(version)));
        }
        start.push_str(&format!(
            "command -v docker >/dev/null || {{ echo 'the host has no `docker` client' >&2; exit 127; }}\ndocker() {{ command docker{words} \"$@\"; }}\n"
        ));
        Ok(Client { start })
    }

    pub fn script(&self, code: &str) -> String {
        format!("{}{code}", self.start)
    }

    pub fn step(&self, code: &str) -> Step {
        Step::new(self.script(code))
    }

    /// What `docker inspect` tells of an image or a container; `None` if there is none.
    pub async fn inspect(&self, host: &Host, kind: &str, name: &str) -> Result<Option<Json>, Failure> {
        let text = self.script(&format!("docker {kind} inspect {}", quote(name)));
        let response = host.read(Script { text, footprint: footprint() }).await?;
        parse(&response, name)
    }
}

fn parse(response: &Response, name: &str) -> Result<Option<Json>, Failure> {
    if response.success() {
        let wrong = || Failure::new(format!("what docker told of {name} is no JSON"));
        let list: Json = serde_json::from_str(&response.text()).map_err(|_| wrong())?;
        return Ok(list.as_array().and_then(|list| list.first()).cloned());
    }
    let reason = response.error_text();
    match reason.contains("No such") || reason.contains("no such") {
        true => Ok(None),
        false => Err(Failure::new(format!("docker: {}", reason.trim()))),
    }
}

/// `name`, with the tag if it has none; a digest stays.
pub fn with_tag(name: &str, tag: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if name.contains('@') || last.contains(':') || name.starts_with("sha256:") {
        name.to_owned()
    } else if tag.starts_with("sha256:") {
        format!("{name}@{tag}")
    } else {
        format!("{name}:{tag}")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;

    /// A client whose daemon keeps images as files `image/NAME` and containers as `container/NAME`, and logs.
    const DOCKER: &str = r#"
mkdir -p "$D/image" "$D/container"; file() { printf %s "$D/$1/$(printf %s "$2" | tr '/:' '__')"; }
echo "$*" >>"$D/log"
verb=$1; shift
last() { for l; do :; done; printf %s "$l"; }
case $verb in
image|container) f=$(file $verb "$2"); [ -e "$f" ] || { echo "Error: No such $verb: $2" >&2; exit 1; }; cat "$f" ;;
pull) [ ! -e "$D/offline" ] || { echo 'no network' >&2; exit 1; }; printf '[{"Id": "sha256:%s"}]' "$(cat "$D/next" 2>/dev/null || echo 1)" >"$(file image "$(last "$@")")" ;;
load) printf '[{"Id": "sha256:loaded"}]' >"$(file image "$(cat "$2")")" ;;
build) while [ $# != 0 ]; do [ "$1" = --tag ] && t=$2; shift; done; printf '[{"Id": "sha256:built"}]' >"$(file image "$t")" ;;
tag) cp "$(file image "$1")" "$(file image "$2")" ;;
rmi) rm -f "$(file image "$(last "$@")")" ;;
save) echo saved >"$2" ;;
push) ;;
create|run) while [ $# != 0 ]; do [ "$1" = --name ] && n=$2; shift; done; cp "$D/made" "$(file container "$n")"; echo id ;;
start) f=$(file container "$1"); sed -i 's/"Running": false/"Running": true/' "$f" ;;
stop) f=$(file container "$(last "$@")"); sed -i 's/"Running": true/"Running": false/' "$f" ;;
rm) rm -f "$(file container "$(last "$@")")" ;;
rename) mv "$(file container "$1")" "$(file container "$2")" ;;
restart|network|wait) ;;
*) echo "unknown $verb" >&2; exit 2 ;;
esac"#;

    pub(in crate::modules) fn fake() -> FakePrograms {
        FakePrograms::new(&[("docker", DOCKER)])
    }

    #[test]
    fn names_get_tags() {
        for (name, tag, full) in [
            ("a", "latest", "a:latest"),
            ("a:1", "latest", "a:1"),
            ("host:5000/a", "2", "host:5000/a:2"),
            ("a@sha256:x", "2", "a@sha256:x"),
            ("a", "sha256:x", "a@sha256:x"),
        ] {
            assert_eq!(with_tag(name, tag), full);
        }
    }
}
