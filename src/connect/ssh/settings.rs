//! What holds for one host in the end: inventory variables first, then ssh's arguments, then its configuration files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::{Options, Query};
use crate::connect::{HostKeyChecking, Secret, Target};

/// Private keys that are tried where none is named, in OpenSSH's order, newest kinds first.
const DEFAULT_KEYS: &[&str] = &["id_ed25519", "id_ecdsa", "id_rsa"];

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proxy {
    None,
    /// Through these hosts, one after the other: `[user@]host[:port]`.
    Jump(Vec<String>),
    /// Through the standard streams of this command.
    Command(String),
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The name or address to connect to.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: Option<Secret>,
    /// Private keys somebody named.
    pub(super) identity_files: Vec<PathBuf>,
    /// Private keys that are tried if nobody named any.
    pub(super) default_identity_files: Vec<PathBuf>,
    pub(super) identities_only: bool,
    /// The agent's socket; `None`: no agent is asked.
    pub(super) agent: Option<PathBuf>,
    pub(super) proxy: Proxy,
    /// The name to look up in known_hosts in place of the host's.
    pub(super) host_key_alias: Option<String>,
    /// Where host keys are looked for; new ones are recorded in the first.
    pub(super) known_hosts: Vec<PathBuf>,
    pub(super) hash_known_hosts: bool,
    pub(super) checking: HostKeyChecking,
    pub(super) timeout: Duration,
    pub(super) compression: bool,
    /// The ways to log in that nobody has forbidden, of `publickey`, `password`, `keyboard-interactive`.
    pub(super) methods: Vec<&'static str>,
    /// Lists of names as `KexAlgorithms`, `Ciphers`, `MACs` and `HostKeyAlgorithms` have them.
    pub(super) kex: Option<String>,
    pub(super) ciphers: Option<String>,
    pub(super) macs: Option<String>,
    pub(super) host_key_algorithms: Option<String>,
    pub(super) keepalive: Option<Duration>,
    pub(super) keepalive_max: usize,
}

/// What ssh's own arguments say.
#[derive(Debug, Default)]
struct Arguments {
    options: Options,
    /// `-F`: read instead of the usual files.
    file: Option<String>,
}

impl Settings {
    /// The settings for a host of the inventory.
    pub(super) fn of(target: &Target) -> Result<Settings, String> {
        let arguments = arguments(&target.ssh_args)?;
        let mut first = Options::default();
        if let Some(port) = target.port {
            first.set("port", vec![port.to_string()]);
        }
        if let Some(user) = &target.user {
            first.set("user", vec![user.clone()]);
        }
        if let Some(file) = &target.private_key_file {
            first.set("identityfile", vec![file.clone()]);
        }
        let mut settings = Settings::resolve(&target.address, first, &arguments, target)?;
        settings.password.clone_from(&target.password);
        Ok(settings)
    }

    /// The settings for a host on the way to another. As with `ssh -J`, it has the configuration files in common
    /// with the host behind it, and how strictly keys are checked.
    pub(super) fn of_jump(jump: &str, target: &Target) -> Result<Settings, String> {
        let (user, host, port) = parse_jump(jump)?;
        let arguments = Arguments { file: arguments(&target.ssh_args)?.file, ..Arguments::default() };
        let mut first = Options::default();
        if let Some(port) = port {
            first.set("port", vec![port.to_string()]);
        }
        if let Some(user) = user {
            first.set("user", vec![user]);
        }
        Settings::resolve(&host, first, &arguments, target)
    }

    fn resolve(
        original: &str,
        mut options: Options,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<Settings, String> {
        let local_user = local_user();
        let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let query = Query { original: original.to_owned(), local_user: local_user.clone(), home: home.clone() };
        options.set_all(&arguments.options);
        let timeout = match options.get("connecttimeout") {
            Some(seconds) => Duration::from_secs(number("ConnectTimeout", seconds)?),
            None => target.connect_timeout,
        };
        match &arguments.file {
            Some(file) if file == "none" => {}
            Some(file) => {
                let path = expand_home(file, &home);
                if !path.exists() {
                    return Err(format!("`{}`, named by `-F`, does not exist", path.display()));
                }
                options.read(&path, &query, true)?;
            }
            None => {
                options.read(&home.join(".ssh/config"), &query, true)?;
                options.read(Path::new("/etc/ssh/ssh_config"), &query, false)?;
            }
        }

        let port = match options.get("port") {
            Some(port) => number("Port", port)?,
            None => 22,
        };
        let user = options.get("user").map_or_else(|| local_user.clone(), str::to_owned);
        let mut tokens = Tokens {
            host: original.to_owned(),
            original: original.to_owned(),
            port,
            user: user.clone(),
            local_user,
            home: home.clone(),
        };
        if let Some(name) = options.get("hostname") {
            tokens.host = tokens.expand("HostName", name)?;
        }
        let files = |name: &str| -> Result<Option<Vec<PathBuf>>, String> {
            let Some(words) = options.words(name) else { return Ok(None) };
            let named = words.iter().filter(|word| !word.eq_ignore_ascii_case("none"));
            named.map(|word| Ok(expand_home(&tokens.expand(name, word)?, &home))).collect::<Result<_, _>>().map(Some)
        };
        let identity_files = files("identityfile")?;
        let folder = home.join(".ssh");
        let user_files = files("userknownhostsfile")?
            .unwrap_or_else(|| vec![folder.join("known_hosts"), folder.join("known_hosts2")]);
        let global_files = files("globalknownhostsfile")?
            .unwrap_or_else(|| vec!["/etc/ssh/ssh_known_hosts".into(), "/etc/ssh/ssh_known_hosts2".into()]);
        let agent = match options.get("identityagent") {
            Some("none") => None,
            Some("SSH_AUTH_SOCK") | None => std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from),
            Some(word) => match word.strip_prefix('$') {
                Some(variable) => std::env::var_os(variable).map(PathBuf::from),
                None => Some(expand_home(&tokens.expand("IdentityAgent", word)?, &home)),
            },
        };
        let proxy = match (options.get("proxyjump"), options.get("proxycommand")) {
            (Some(jump), _) if !jump.eq_ignore_ascii_case("none") => {
                Proxy::Jump(tokens.expand("ProxyJump", jump)?.split(',').map(|hop| hop.trim().to_owned()).collect())
            }
            (_, Some(command)) if !command.eq_ignore_ascii_case("none") => {
                Proxy::Command(tokens.expand("ProxyCommand", command)?)
            }
            _ => Proxy::None,
        };
        let checking = match (target.host_key_checking, options.get("stricthostkeychecking")) {
            (HostKeyChecking::Strict, Some("accept-new")) => HostKeyChecking::AcceptNew,
            (HostKeyChecking::Strict, Some("no" | "off")) => HostKeyChecking::Off,
            (checking, _) => checking,
        };
        let keepalive = match options.get("serveraliveinterval") {
            Some(seconds) => Some(number("ServerAliveInterval", seconds)?).filter(|&seconds| seconds > 0),
            None => Some(15),
        };
        let keepalive_max = match options.get("serveralivecountmax") {
            Some(count) => number("ServerAliveCountMax", count)?,
            None => 4,
        };
        let default_identity_files = if identity_files.is_none() {
            DEFAULT_KEYS.iter().map(|name| folder.join(name)).filter(|path| path.exists()).collect()
        } else {
            Vec::new()
        };
        let is = |name: &str, value: &str| options.get(name).is_some_and(|word| word.eq_ignore_ascii_case(value));
        let list = |name: &str| options.get(name).map(str::to_owned);
        Ok(Settings {
            host: tokens.host.clone(),
            port,
            user,
            password: None,
            identity_files: identity_files.unwrap_or_default(),
            default_identity_files,
            identities_only: is("identitiesonly", "yes"),
            agent,
            proxy,
            host_key_alias: list("hostkeyalias"),
            known_hosts: user_files.into_iter().chain(global_files).collect(),
            hash_known_hosts: is("hashknownhosts", "yes"),
            checking,
            timeout,
            compression: is("compression", "yes"),
            methods: methods(&options),
            kex: list("kexalgorithms"),
            ciphers: list("ciphers"),
            macs: list("macs"),
            host_key_algorithms: list("hostkeyalgorithms"),
            keepalive: keepalive.map(Duration::from_secs),
            keepalive_max,
        })
    }

    /// `user@host:port`, for messages.
    pub(super) fn place(&self) -> String {
        format!("{}@{}:{}", self.user, self.host, self.port)
    }
}

impl Options {
    /// Sets every option of others that has no value yet.
    fn set_all(&mut self, others: &Options) {
        for (name, words) in others.each() {
            self.set(name, words.to_vec());
        }
    }
}

/// The ways to log in that the options leave.
fn methods(options: &Options) -> Vec<&'static str> {
    const METHODS: [(&str, &str); 3] = [
        ("publickey", "pubkeyauthentication"),
        ("password", "passwordauthentication"),
        ("keyboard-interactive", "kbdinteractiveauthentication"),
    ];
    let preferred = options.get("preferredauthentications");
    METHODS
        .into_iter()
        .filter(|(_, option)| !options.get(option).is_some_and(|value| value.eq_ignore_ascii_case("no")))
        .filter(|(method, _)| preferred.is_none_or(|list| list.split(',').any(|word| word.trim() == *method)))
        .map(|(method, _)| method)
        .collect()
}

/// Reads the words of `ansible_ssh_common_args` and `ansible_ssh_extra_args`. Flags without meaning here are ignored.
fn arguments(words: &[String]) -> Result<Arguments, String> {
    /// The flags of ssh(1) that take a value.
    const VALUED: &str = "BbcDEeFIiJLlmOopQRSWwP";
    let mut arguments = Arguments::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flags) = word.strip_prefix('-').filter(|flags| !flags.is_empty()) else {
            return Err(format!("`{word}` among the ssh arguments is no option"));
        };
        let Some(at) = flags.find(|flag| VALUED.contains(flag)) else {
            if flags.contains('C') {
                arguments.options.set("compression", vec!["yes".to_owned()]);
            }
            continue;
        };
        let flag = &flags[at..=at];
        let value = match &flags[at + 1..] {
            "" => words.next().cloned().ok_or_else(|| format!("`-{flag}` among the ssh arguments wants a value"))?,
            value => value.to_owned(),
        };
        let name = match flag {
            "o" => {
                arguments.options.set_line(&value, "ssh arguments")?;
                continue;
            }
            "F" => {
                arguments.file.get_or_insert(value);
                continue;
            }
            "J" => "proxyjump",
            "i" => "identityfile",
            "p" => "port",
            "l" => "user",
            "c" => "ciphers",
            "m" => "macs",
            _ => continue,
        };
        arguments.options.set(name, vec![value]);
    }
    Ok(arguments)
}

/// `[user@]host[:port]` or `ssh://[user@]host[:port]`.
pub(super) fn parse_jump(jump: &str) -> Result<(Option<String>, String, Option<u16>), String> {
    let text = jump.strip_prefix("ssh://").unwrap_or(jump).trim_end_matches('/');
    let (user, place) = match text.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, text),
    };
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            // more than one colon: an IPv6 address without brackets
            Some((_, rest)) if rest.contains(':') => (place, None),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = port.map(|port| number("ProxyJump", port)).transpose()?;
    if host.is_empty() || user.as_deref() == Some("") {
        return Err(format!("`{jump}` in `ProxyJump` is not `[user@]host[:port]`"));
    }
    Ok((user, host.to_owned(), port))
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no value for `{option}`"))
}

fn expand_home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    }
}

/// What `%` and `${…}` stand for, TOKENS in ssh_config(5).
struct Tokens {
    host: String,
    original: String,
    port: u16,
    user: String,
    local_user: String,
    home: PathBuf,
}

impl Tokens {
    fn expand(&self, option: &str, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            if letter == '$'
                && let Some((name, behind)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'))
                && option != "ProxyCommand"
            {
                let value = std::env::var(name)
                    .map_err(|_| format!("`{option}` wants the environment variable `{name}`, which is not set"))?;
                expanded.push_str(&value);
                letters = behind.chars();
                continue;
            }
            if letter != '%' {
                expanded.push(letter);
                continue;
            }
            match letters.next() {
                Some('%') => expanded.push('%'),
                Some('h') => expanded.push_str(&self.host),
                Some('n') => expanded.push_str(&self.original),
                Some('p') => expanded.push_str(&self.port.to_string()),
                Some('r') => expanded.push_str(&self.user),
                Some('u') => expanded.push_str(&self.local_user),
                Some('d') => expanded.push_str(&self.home.to_string_lossy()),
                other => {
                    let token: String = other.into_iter().collect();
                    return Err(format!("`%{token}` in `{option} {text}` is not supported"));
                }
            }
        }
        Ok(expanded)
    }
}

/// The name of the user who runs this.
fn local_user() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = passwd.lines().find(|line| line.split(':').nth(2) == Some(&uid));
    match entry.and_then(|line| line.split(':').next()) {
        Some(name) => name.to_owned(),
        None => std::env::var("USER").unwrap_or_else(|_| "root".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::Transport;

    fn target(arguments: &[&str]) -> Target {
        Target {
            name: "web".into(),
            transport: Transport::Ssh,
            address: "web.example.org".into(),
            port: None,
            user: None,
            password: None,
            private_key_file: None,
            ssh_args: arguments.iter().map(|&word| word.to_owned()).collect(),
            host_key_checking: HostKeyChecking::Strict,
            connect_timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn variables_come_before_arguments_and_these_before_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(
            &file,
            "User file\nPort 1\nHostName %h.internal\nIdentityFile ~/.ssh/%r\nStrictHostKeyChecking accept-new\n",
        )
        .unwrap();
        let file = file.to_str().unwrap();
        let settings = Settings::of(&target(&["-F", file, "-o", "Port=2", "-oCompression yes"])).unwrap();
        assert_eq!((settings.port, settings.user.as_str()), (2, "file"));
        assert_eq!(settings.host, "web.example.org.internal");
        assert!(settings.identity_files[0].ends_with(".ssh/file"));
        assert_eq!(settings.checking, HostKeyChecking::AcceptNew);
        assert!(settings.compression);
        let named = Target { port: Some(3), user: Some("variable".into()), ..target(&["-F", file, "-p", "2"]) };
        let settings = Settings::of(&named).unwrap();
        assert_eq!((settings.port, settings.user.as_str()), (3, "variable"));
        let settings = Settings::of_jump("gate:4", &named).unwrap();
        assert_eq!((settings.port, settings.user.as_str(), settings.host.as_str()), (4, "file", "gate.internal"));
    }

    #[test]
    fn ways_to_log_in_can_be_forbidden() {
        let of = |option: &str| Settings::of(&target(&["-F", "none", "-o", option])).unwrap().methods;
        assert_eq!(of("Port=22"), ["publickey", "password", "keyboard-interactive"]);
        assert_eq!(of("PubkeyAuthentication=no"), ["password", "keyboard-interactive"]);
        assert_eq!(of("PreferredAuthentications=password,publickey"), ["publickey", "password"]);
    }

    #[test]
    fn proxies_are_understood() {
        let of = |arguments: &[&str]| Settings::of(&target(arguments)).unwrap().proxy;
        assert_eq!(of(&["-F", "none", "-J", "a,me@b:2"]), Proxy::Jump(vec!["a".into(), "me@b:2".into()]));
        assert_eq!(
            of(&["-F", "none", "-o", "ProxyCommand=nc %h %p %%"]),
            Proxy::Command("nc web.example.org 22 %".into())
        );
        assert_eq!(of(&["-F", "none", "-o", "ProxyJump=none", "-o", "ProxyCommand=x"]), Proxy::None);
        let jumps = [
            ("gate", (None, "gate", None)),
            ("me@gate:22", (Some("me"), "gate", Some(22))),
            ("ssh://gate:2/", (None, "gate", Some(2))),
            ("[::1]:2", (None, "::1", Some(2))),
            ("fe80::1", (None, "fe80::1", None)),
        ];
        for (text, (user, host, port)) in jumps {
            assert_eq!(parse_jump(text).unwrap(), (user.map(str::to_owned), host.to_owned(), port), "{text}");
        }
        assert!(parse_jump("@gate").is_err());
    }

    #[test]
    fn faults_are_refused() {
        let cases: &[(&[&str], &str)] = &[
            (&["-F", "/no/such/file"], "`/no/such/file`, named by `-F`, does not exist"),
            (&["-F", "none", "-o", "Port=x"], "`x` is no value for `Port`"),
            (&["-o"], "`-o` among the ssh arguments wants a value"),
            (&["host"], "`host` among the ssh arguments is no option"),
            (&["-F", "none", "-i", "%Z"], "`%Z` in `identityfile %Z` is not supported"),
        ];
        for (arguments, message) in cases {
            assert_eq!(Settings::of(&target(arguments)).unwrap_err(), *message);
        }
    }
}
