//! The options of containers: the words of `docker create` (docker-container-create(1)), and where `docker inspect`
//! tells them. Pure.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::value::Value;

use super::Args;
use super::file_common::content::split_words;
use super::shell_words::expanded;

/// One argument of a task.
#[derive(Debug)]
pub struct Setting {
    pub name: &'static str,
    /// For `docker create`, with a blank before each.
    pub words: String,
    /// Behind the image.
    pub command: String,
    /// For `docker network connect`, after the making.
    pub connect: Vec<String>,
    wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// The text at a place of what docker tells; several: any of them.
    Text(&'static str, String),
    Flag(&'static str, bool),
    Number(&'static str, f64),
    /// Exactly these, in order.
    Words(&'static str, Vec<String>),
    /// These and maybe more: those of the image, or what docker adds.
    Some(&'static str, BTreeSet<String>),
    /// Keys and values, and maybe more.
    Pairs(&'static str, Vec<(String, String)>),
    /// Ports and where they lead: `80/tcp` and (address, port).
    Ports(Vec<(String, String, String)>),
    Networks(Vec<String>, bool),
    /// Not to be seen.
    Unseen,
}

/// What a task asks for.
pub fn settings(args: &Args) -> Result<Vec<Setting>, Failure> {
    let mut settings = Vec::new();
    let mut add = |name: &'static str, words: String, wanted: Wanted| {
        settings.push(Setting { name, words, command: String::new(), connect: Vec::new(), wanted });
    };
    for (name, option, place) in TEXTS {
        if let Some(value) = args.str(name) {
            add(name, format!(" --{option} {}", quote(value)), Wanted::Text(place, value.to_owned()));
        }
    }
    for (name, option, place) in SIZES {
        if let Some(value) = args.str(name).filter(|value| !value.is_empty()) {
            let bytes = size(value).ok_or_else(|| Failure::new(format!("`{name}` is no size: {value}")))?;
            let word = if bytes < 0 { "-1".to_owned() } else { format!("{bytes}b") };
            add(name, format!(" --{option} {word}"), Wanted::Number(place, bytes as f64));
        }
    }
    for (name, option, place) in NUMBERS {
        if let Some(value) = args.int(name) {
            add(name, format!(" --{option} {value}"), Wanted::Number(place, value as f64));
        }
    }
    if let Some(cpus) = args.float("cpus") {
        add("cpus", format!(" --cpus {cpus}"), Wanted::Number("/HostConfig/NanoCpus", (cpus * 1e9).round()));
    }
    for (name, option, place) in FLAGS {
        if let Some(value) = args.optional_bool(name) {
            let is_turned = *name == "oom_killer";
            let value = value != is_turned;
            let words = if value { format!(" --{option}") } else { String::new() };
            add(name, words, Wanted::Flag(place, value));
        }
    }
    for (name, option, place) in LISTS {
        let values = args.list(name);
        if !values.is_empty() {
            let words = values.iter().map(|value| format!(" --{option} {}", quote(value))).collect();
            add(name, words, Wanted::Some(place, values.into_iter().collect()));
        }
    }
    for (name, option, place) in MAPS {
        let Some(map) = args.get(name).and_then(Value::as_map) else { continue };
        let between = if *name == "etc_hosts" { ":" } else { "=" };
        let pairs: Vec<(String, String)> =
            map.iter().map(|(key, value)| (key.to_text().into_owned(), value.to_text().into_owned())).collect();
        let words = pairs
            .iter()
            .map(|(key, value)| format!(" --{option} {}", quote(&format!("{key}{between}{value}"))))
            .collect();
        let joined = |(key, value): (String, String)| format!("{key}{between}{value}");
        let wanted = match *name {
            "env" | "etc_hosts" => Wanted::Some(place, pairs.into_iter().map(joined).collect()),
            _ => Wanted::Pairs(place, pairs),
        };
        add(name, words, wanted);
    }
    if let Some(file) = args.str("env_file").filter(|file| !file.is_empty()) {
        add("env_file", format!(" --env-file {}", expanded(file)), Wanted::Unseen);
    }
    if let Some(policy) = args.str("restart_policy") {
        let retries = args.int("restart_retries").filter(|_| policy == "on-failure");
        let word = retries.map_or_else(|| policy.to_owned(), |retries| format!("{policy}:{retries}"));
        add(
            "restart_policy",
            format!(" --restart {}", quote(&word)),
            Wanted::Text("/HostConfig/RestartPolicy/Name", policy.to_owned()),
        );
        if let Some(retries) = retries {
            let place = "/HostConfig/RestartPolicy/MaximumRetryCount";
            add("restart_retries", String::new(), Wanted::Number(place, retries as f64));
        }
    }
    let ports = args.list("ports");
    if !ports.is_empty() {
        let mut wanted = Vec::new();
        for port in &ports {
            wanted.push(port_of(port).ok_or_else(|| Failure::new(format!("`{port}` in `ports` is no port")))?);
        }
        let words = ports.iter().map(|port| format!(" --publish {}", quote(port))).collect();
        add("ports", words, Wanted::Ports(wanted));
    }
    let entrypoint = args.list("entrypoint");
    let command = match args.get("command") {
        None => Vec::new(),
        Some(Value::List(words)) => words.iter().map(|word| word.to_text().into_owned()).collect(),
        Some(text) => split_words(&text.to_text()).ok_or_else(|| Failure::new("a quote in `command` is not closed"))?,
    };
    if let Some(first) = entrypoint.first() {
        add(
            "entrypoint",
            format!(" --entrypoint {}", quote(first)),
            Wanted::Words("/Config/Entrypoint", vec![first.clone()]),
        );
    }
    if !command.is_empty() || entrypoint.len() > 1 {
        // the client takes one word as the entry point; the others go before the command
        let all: Vec<String> = entrypoint.iter().skip(1).cloned().chain(command).collect();
        let behind = all.iter().map(|word| format!(" {}", quote(word))).collect();
        settings.push(Setting {
            name: "command",
            words: String::new(),
            command: behind,
            connect: Vec::new(),
            wanted: Wanted::Words("/Config/Cmd", all),
        });
    }
    if let Some(networks) = args.get("networks").and_then(Value::as_list).filter(|networks| !networks.is_empty()) {
        settings.push(networks_of(networks, args)?);
    } else if args.bool("purge_networks") {
        return Err(Failure::new("`purge_networks` needs `networks`"));
    }
    Ok(settings)
}

const TEXTS: &[(&str, &str, &str)] = &[
    ("network_mode", "network", "/HostConfig/NetworkMode"),
    ("hostname", "hostname", "/Config/Hostname"),
    ("domainname", "domainname", "/Config/Domainname"),
    ("mac_address", "mac-address", "/NetworkSettings/MacAddress"),
    ("user", "user", "/Config/User"),
    ("working_dir", "workdir", "/Config/WorkingDir"),
    ("cpuset_cpus", "cpuset-cpus", "/HostConfig/CpusetCpus"),
    ("cpuset_mems", "cpuset-mems", "/HostConfig/CpusetMems"),
    ("pid_mode", "pid", "/HostConfig/PidMode"),
    ("ipc_mode", "ipc", "/HostConfig/IpcMode"),
    ("userns_mode", "userns", "/HostConfig/UsernsMode"),
    ("uts", "uts", "/HostConfig/UTSMode"),
    ("cgroup_parent", "cgroup-parent", "/HostConfig/CgroupParent"),
    ("runtime", "runtime", "/HostConfig/Runtime"),
    ("stop_signal", "stop-signal", "/Config/StopSignal"),
    ("log_driver", "log-driver", "/HostConfig/LogConfig/Type"),
    ("platform", "platform", ""),
];

const SIZES: &[(&str, &str, &str)] = &[
    ("memory", "memory", "/HostConfig/Memory"),
    ("memory_reservation", "memory-reservation", "/HostConfig/MemoryReservation"),
    ("memory_swap", "memory-swap", "/HostConfig/MemorySwap"),
    ("shm_size", "shm-size", "/HostConfig/ShmSize"),
];

const NUMBERS: &[(&str, &str, &str)] = &[
    ("memory_swappiness", "memory-swappiness", "/HostConfig/MemorySwappiness"),
    ("cpu_shares", "cpu-shares", "/HostConfig/CpuShares"),
    ("cpu_period", "cpu-period", "/HostConfig/CpuPeriod"),
    ("cpu_quota", "cpu-quota", "/HostConfig/CpuQuota"),
    ("blkio_weight", "blkio-weight", "/HostConfig/BlkioWeight"),
    ("pids_limit", "pids-limit", "/HostConfig/PidsLimit"),
    ("oom_score_adj", "oom-score-adj", "/HostConfig/OomScoreAdj"),
    ("stop_timeout", "stop-timeout", "/Config/StopTimeout"),
];

const FLAGS: &[(&str, &str, &str)] = &[
    ("privileged", "privileged", "/HostConfig/Privileged"),
    ("publish_all_ports", "publish-all", "/HostConfig/PublishAllPorts"),
    ("read_only", "read-only", "/HostConfig/ReadonlyRootfs"),
    ("init", "init", "/HostConfig/Init"),
    ("interactive", "interactive", "/Config/OpenStdin"),
    ("tty", "tty", "/Config/Tty"),
    ("auto_remove", "rm", "/HostConfig/AutoRemove"),
    ("oom_killer", "oom-kill-disable", "/HostConfig/OomKillDisable"),
];

const LISTS: &[(&str, &str, &str)] = &[
    ("volumes", "volume", "/HostConfig/Binds"),
    ("volumes_from", "volumes-from", "/HostConfig/VolumesFrom"),
    ("exposed_ports", "expose", "/Config/ExposedPorts"),
    ("tmpfs", "tmpfs", "/HostConfig/Tmpfs"),
    ("links", "link", "/HostConfig/Links"),
    ("dns_servers", "dns", "/HostConfig/Dns"),
    ("dns_search_domains", "dns-search", "/HostConfig/DnsSearch"),
    ("dns_opts", "dns-option", "/HostConfig/DnsOptions"),
    ("groups", "group-add", "/HostConfig/GroupAdd"),
    ("capabilities", "cap-add", "/HostConfig/CapAdd"),
    ("cap_drop", "cap-drop", "/HostConfig/CapDrop"),
    ("security_opts", "security-opt", "/HostConfig/SecurityOpt"),
    ("ulimits", "ulimit", "/HostConfig/Ulimits"),
    ("devices", "device", "/HostConfig/Devices"),
];

const MAPS: &[(&str, &str, &str)] = &[
    ("env", "env", "/Config/Env"),
    ("labels", "label", "/Config/Labels"),
    ("etc_hosts", "add-host", "/HostConfig/ExtraHosts"),
    ("sysctls", "sysctl", "/HostConfig/Sysctls"),
    ("log_options", "log-opt", "/HostConfig/LogConfig/Config"),
];

fn networks_of(networks: &[Value], args: &Args) -> Result<Setting, Failure> {
    let mut words = String::new();
    let mut connect = Vec::new();
    let mut names = Vec::new();
    for (index, network) in networks.iter().enumerate() {
        let name = network.get("name").map(|name| name.to_text().into_owned()).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| Failure::new("each of `networks` needs a `name`"))?;
        let mut options = String::new();
        for (key, value) in network.as_map().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            let mut each = |option: &str| {
                for item in value.as_list().unwrap_or_default() {
                    options.push_str(&format!(" --{option} {}", quote(&item.to_text())));
                }
            };
            match &*key.to_text() {
                "name" => {}
                "aliases" => each(if index == 0 { "network-alias" } else { "alias" }),
                "links" => each("link"),
                "ipv4_address" => options.push_str(&format!(" --ip {}", quote(&value.to_text()))),
                "ipv6_address" => options.push_str(&format!(" --ip6 {}", quote(&value.to_text()))),
                other => return Err(Failure::new(format!("`networks` has no key `{other}` here"))),
            }
        }
        match index {
            0 if !args.has("network_mode") => words = format!(" --network {}{options}", quote(&name)),
            _ => connect.push(format!("{} {}", options.trim(), quote(&name)).trim().to_owned()),
        }
        names.push(name);
    }
    let wanted = Wanted::Networks(names, args.bool("purge_networks"));
    Ok(Setting { name: "networks", words, command: String::new(), connect, wanted })
}

/// `[address:]host:container[/protocol]` as container's port, address and port of the host.
fn port_of(text: &str) -> Option<(String, String, String)> {
    let (text, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let (rest, container) = text.rsplit_once(':').unwrap_or(("", text));
    let (address, host) = rest.rsplit_once(':').unwrap_or(("", rest));
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    (!container.is_empty() && is_port(container) && is_port(host))
        .then(|| (format!("{container}/{protocol}"), address.trim_matches(['[', ']']).to_owned(), host.to_owned()))
}

/// `512M` in bytes; `unlimited` and -1 are -1.
fn size(text: &str) -> Option<i64> {
    let text = text.trim();
    if text == "-1" || text == "unlimited" {
        return Some(-1);
    }
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * 1024_f64.powi(power)) as i64)
}

impl Setting {
    /// Whether the container has it so.
    pub fn is_so(&self, container: &Json, image: Option<&Json>) -> bool {
        let at = |place: &str| container.pointer(place).cloned().unwrap_or(Json::Null);
        match &self.wanted {
            Wanted::Text("", _) | Wanted::Unseen => true,
            Wanted::Text(place, text) => {
                let found = text_of(&at(place));
                let plain = |text: &str| match text {
                    // what docker calls the usual network
                    "default" => "bridge".to_owned(),
                    text => text.strip_prefix("SIG").unwrap_or(text).to_owned(),
                };
                plain(&found) == plain(text)
            }
            Wanted::Flag(place, value) => at(place).as_bool().unwrap_or(false) == *value,
            Wanted::Number(place, value) => at(place).as_f64().unwrap_or(0.0) == *value,
            Wanted::Words(place, words) => {
                let of_image = image.and_then(|image| image.pointer(place));
                let found = at(place);
                let found = if found.is_null() { of_image.cloned().unwrap_or(Json::Null) } else { found };
                list_of(&found) == *words
            }
            Wanted::Some(place, words) => {
                let found: BTreeSet<String> = list_of(&at(place)).into_iter().collect();
                words.iter().all(|word| is_in(self.name, word, &found))
            }
            Wanted::Pairs(place, pairs) => {
                let found = at(place);
                pairs.iter().all(|(key, value)| found.get(key).map(text_of).as_deref() == Some(value))
            }
            Wanted::Ports(ports) => {
                let found = at("/HostConfig/PortBindings");
                ports.iter().all(|(container, address, host)| {
                    let bindings = found.get(container).and_then(Json::as_array).cloned().unwrap_or_default();
                    container.contains('-')
                        || bindings.iter().any(|binding| {
                            let text = |key: &str| binding.get(key).map(text_of).unwrap_or_default();
                            (text("HostIp") == *address || (address.is_empty() && text("HostIp") == "0.0.0.0"))
                                && (host.is_empty() || text("HostPort") == *host)
                        })
                })
            }
            Wanted::Networks(names, purge) => {
                let found = at("/NetworkSettings/Networks");
                let found: BTreeSet<&String> = found.as_object().map(|map| map.keys().collect()).unwrap_or_default();
                names.iter().all(|name| found.contains(name)) && (!purge || found.len() == names.len())
            }
        }
    }

    /// What it is to be.
    pub fn shown(&self) -> String {
        let words = format!("{}{}", self.words, self.command);
        words.trim().to_owned()
    }

    /// What it is.
    pub fn found(&self, container: &Json) -> String {
        let place = match &self.wanted {
            Wanted::Text(place, _)
            | Wanted::Flag(place, _)
            | Wanted::Number(place, _)
            | Wanted::Words(place, _)
            | Wanted::Some(place, _)
            | Wanted::Pairs(place, _) => place,
            Wanted::Ports(_) => "/HostConfig/PortBindings",
            Wanted::Networks(..) => "/NetworkSettings/Networks",
            Wanted::Unseen => "",
        };
        match container.pointer(place) {
            _ if place.is_empty() => String::new(),
            None | Some(Json::Null) => String::new(),
            Some(found) => found.to_string(),
        }
    }
}

fn text_of(json: &Json) -> String {
    match json {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list_of(json: &Json) -> Vec<String> {
    match json {
        Json::Array(items) => items
            .iter()
            .map(|item| match item {
                Json::Object(map) if map.contains_key("Soft") => {
                    let text = |key: &str| map.get(key).map(text_of).unwrap_or_default();
                    format!("{}:{}:{}", text("Name"), text("Soft"), text("Hard"))
                }
                Json::Object(map) => {
                    let text = |key: &str| map.get(key).map(text_of).unwrap_or_default();
                    format!("{}:{}:{}", text("PathOnHost"), text("PathInContainer"), text("CgroupPermissions"))
                }
                other => text_of(other),
            })
            .collect(),
        Json::Object(map) => map
            .iter()
            .map(|(key, value)| match value {
                Json::String(value) if !value.is_empty() => format!("{key}:{value}"),
                _ => key.clone(),
            })
            .collect(),
        Json::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// Whether a word of the task is among what docker tells, which writes some of them out in full.
fn is_in(name: &str, word: &str, found: &BTreeSet<String>) -> bool {
    let forms: Vec<String> = match name {
        "volumes" => vec![word.to_owned(), format!("{word}:rw"), word.trim_end_matches(":rw").to_owned()],
        "exposed_ports" => vec![word.to_owned(), format!("{word}/tcp")],
        "capabilities" | "cap_drop" => {
            let plain = word.to_uppercase();
            let plain = plain.trim_start_matches("CAP_");
            vec![plain.to_owned(), format!("CAP_{plain}")]
        }
        "ulimits" => {
            let parts: Vec<&str> = word.split([':', '=']).collect();
            match parts.as_slice() {
                [limit, soft] => vec![format!("{limit}:{soft}:{soft}")],
                [limit, soft, hard] => vec![format!("{limit}:{soft}:{hard}")],
                _ => vec![word.to_owned()],
            }
        }
        "devices" => {
            let parts: Vec<&str> = word.split(':').collect();
            match parts.as_slice() {
                [host] => vec![format!("{host}:{host}:rwm")],
                [host, own] => vec![format!("{host}:{own}:rwm")],
                _ => vec![word.to_owned()],
            }
        }
        "links" => {
            let alias = word.rsplit(':').next().unwrap_or(word);
            let other = word.split(':').next().unwrap_or(word);
            return found.iter().any(|own| {
                own == word || (own.starts_with(&format!("/{other}:")) && own.ends_with(&format!("/{alias}")))
            });
        }
        _ => vec![word.to_owned()],
    };
    // a volume without a colon is one of the container's own
    (name == "volumes" && !word.contains(':')) || forms.iter().any(|form| found.contains(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_ports_are_read() {
        assert_eq!(
            [size("512M"), size("1.5g"), size("-1"), size("100")],
            [Some(536_870_912), Some(1_610_612_736), Some(-1), Some(100)]
        );
        assert_eq!(size("1 elephant"), None);
        let port = |text: &str| port_of(text).map(|(own, address, host)| format!("{own} {address} {host}"));
        assert_eq!(port("127.0.0.1:8080:80/udp").unwrap(), "80/udp 127.0.0.1 8080");
        assert_eq!((port("80").unwrap(), port("8080:80").unwrap()), ("80/tcp  ".into(), "80/tcp  8080".into()));
        assert_eq!(port("http"), None);
    }

    #[test]
    fn what_docker_writes_out_is_the_same() {
        let found = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
        let cases = [
            ("volumes", "/a:/b", "/a:/b:rw", true),
            ("volumes", "/a:/b:ro", "/a:/b:rw", false),
            ("capabilities", "net_admin", "CAP_NET_ADMIN", true),
            ("ulimits", "nofile:10", "nofile:10:10", true),
            ("devices", "/dev/x", "/dev/x:/dev/x:rwm", true),
            ("links", "db:sql", "/db:/app/sql", true),
            ("exposed_ports", "80", "80/tcp", true),
        ];
        for (name, word, own, same) in cases {
            assert_eq!(is_in(name, word, &found(&[own])), same, "{name} {word}");
        }
    }
}
