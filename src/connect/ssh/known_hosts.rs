//! Whether a host is who it says it is: known_hosts, sshd(8) section SSH_KNOWN_HOSTS FILE FORMAT.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use super::pattern;

/// A public key as known_hosts writes it: its type and its bytes in base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKey {
    pub kind: String,
    pub base64: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marker {
    None,
    CertAuthority,
    Revoked,
}

#[derive(Debug)]
struct Entry {
    marker: Marker,
    names: Names,
    key: HostKey,
    line: usize,
}

#[derive(Debug)]
enum Names {
    /// Names, patterns, negations.
    Plain(String),
    /// HMAC-SHA1 of one name under a salt.
    Hashed { salt: Vec<u8>, hash: Vec<u8> },
}

impl Names {
    fn hold(&self, name: &str) -> bool {
        match self {
            Names::Plain(patterns) => pattern::list_matches(patterns.split(','), name),
            Names::Hashed { salt, hash } => hmac_sha1(salt, name.as_bytes()) == hash.as_slice(),
        }
    }
}

/// One known_hosts file.
#[derive(Debug, Default)]
struct File {
    entries: Vec<Entry>,
}

/// All known_hosts files of one host, in order.
#[derive(Debug, Default)]
pub struct KnownHosts {
    files: Vec<(PathBuf, Arc<File>)>,
}

/// What the files say about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Known,
    /// No key of the host is recorded.
    Unknown,
    /// Another key is recorded, at this `file:line`.
    Changed {
        recorded: String,
        place: String,
    },
    Revoked {
        place: String,
    },
}

impl KnownHosts {
    /// Reads files; one that does not exist is empty.
    pub(super) fn read(paths: &[PathBuf]) -> Result<KnownHosts, String> {
        let mut files = Vec::new();
        for path in paths {
            files.push((path.clone(), read_cached(path)?));
        }
        Ok(KnownHosts { files })
    }

    /// Reads one text, named as a file in what is said about its lines.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> KnownHosts {
        KnownHosts { files: vec![(path.into(), Arc::new(parse(text)))] }
    }

    fn entries<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Path, &'a Entry)> {
        let all =
            self.files.iter().flat_map(|(path, file)| file.entries.iter().map(move |entry| (path.as_path(), entry)));
        all.filter(move |(_, entry)| entry.names.hold(name))
    }

    /// The types of the keys recorded for a host: the server is asked for one of these.
    pub(super) fn recorded_types(&self, name: &str) -> Vec<String> {
        let plain = self.entries(name).filter(|(_, entry)| entry.marker == Marker::None);
        plain.map(|(_, entry)| entry.key.kind.clone()).collect()
    }

    /// True if certificates can speak for a host, by its name with or without the port.
    pub(super) fn has_authority(&self, name: &str, plain: &str) -> bool {
        let authority = |name| self.entries(name).any(|(_, entry)| entry.marker == Marker::CertAuthority);
        authority(name) || authority(plain)
    }

    /// True if a key may sign certificates for a host.
    pub(super) fn is_authority(&self, name: &str, key: &HostKey) -> bool {
        self.entries(name).any(|(_, entry)| entry.marker == Marker::CertAuthority && entry.key == *key)
    }

    /// Where a key is marked as revoked for a host.
    pub(super) fn revoked(&self, name: &str, key: &HostKey) -> Option<String> {
        let (path, entry) =
            self.entries(name).find(|(_, entry)| entry.marker == Marker::Revoked && entry.key == *key)?;
        Some(format!("{}:{}", path.display(), entry.line))
    }

    /// Judges the key that a host shows. `host` and `port`: as they were connected to, or the alias and 22.
    pub fn check(&self, host: &str, port: u16, key: &HostKey) -> Verdict {
        let name = name_of(host, port);
        if let Some(place) = self.revoked(&name, key) {
            return Verdict::Revoked { place };
        }
        let recorded: Vec<_> = self.entries(&name).filter(|(_, entry)| entry.marker == Marker::None).collect();
        if recorded.iter().any(|(_, entry)| entry.key == *key) {
            return Verdict::Known;
        }
        // the key of the same type, else any: the type that the server was asked for first
        let other = recorded.iter().find(|(_, entry)| entry.key.kind == key.kind).or(recorded.first());
        if let Some((path, entry)) = other {
            let place = format!("{}:{}", path.display(), entry.line);
            return Verdict::Changed { recorded: entry.key.kind.clone(), place };
        }
        // as ssh does: a key recorded without a port speaks for every port of the host
        let plain = host.to_lowercase();
        if name != plain && self.entries(&plain).any(|(_, entry)| entry.marker == Marker::None && entry.key == *key) {
            return Verdict::Known;
        }
        Verdict::Unknown
    }
}

/// The name under which a host stands in known_hosts.
pub(super) fn name_of(host: &str, port: u16) -> String {
    let host = host.to_lowercase();
    if port == 22 { host } else { format!("[{host}]:{port}") }
}

fn read_cached(path: &Path) -> Result<Arc<File>, String> {
    type Stamp = (Option<SystemTime>, u64);
    type Cache = HashMap<PathBuf, (Stamp, Arc<File>)>;
    /// Fleets share a few files; each is read again only when it has changed.
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
        Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
    };
    let stamp = (metadata.modified().ok(), metadata.len());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = cache.get_or_insert_default();
    if let Some((known, file)) = cache.get(path)
        && *known == stamp
    {
        return Ok(Arc::clone(file));
    }
    let bytes = fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let file = Arc::new(parse(&String::from_utf8_lossy(&bytes)));
    cache.insert(path.to_owned(), (stamp, Arc::clone(&file)));
    Ok(file)
}

/// Reads the lines; one that makes no sense is passed over, as ssh does.
fn parse(text: &str) -> File {
    let entries = text.lines().enumerate().filter_map(|(number, line)| parse_line(line, number + 1));
    File { entries: entries.collect() }
}

fn parse_line(line: &str, number: usize) -> Option<Entry> {
    let mut words = line.split_ascii_whitespace().peekable();
    let marker = match *words.peek()? {
        comment if comment.starts_with('#') => return None,
        "@cert-authority" => Marker::CertAuthority,
        "@revoked" => Marker::Revoked,
        unknown if unknown.starts_with('@') => return None,
        _ => Marker::None,
    };
    if marker != Marker::None {
        words.next();
    }
    let names = words.next()?;
    let names = match names.strip_prefix("|1|") {
        Some(hashed) => {
            let (salt, hash) = hashed.split_once('|')?;
            Names::Hashed { salt: STANDARD.decode(salt).ok()?, hash: STANDARD.decode(hash).ok()? }
        }
        None => Names::Plain(names.to_lowercase()),
    };
    let kind = words.next()?.to_owned();
    let base64 = words.next()?.to_owned();
    Some(Entry { marker, names, key: HostKey { kind, base64 }, line: number })
}

/// RFC 2104 with SHA-1: blocks of 64 bytes.
pub fn hmac_sha1(key: &[u8], message: &[u8]) -> [u8; 20] {
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..20].copy_from_slice(&Sha1::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha1::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha1::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

/// Records a key at the end of a file, in one write so that writers beside us do not mix with it.
pub(super) fn record(path: &Path, host: &str, port: u16, key: &HostKey, hashed: bool) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("cannot record the host key in `{}`: {error}", path.display());
    let mut name = name_of(host, port);
    if hashed {
        let mut salt = [0; 20];
        getrandom::fill(&mut salt).map_err(|error| format!("no random numbers: {error}"))?;
        name = format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hmac_sha1(&salt, name.as_bytes())));
    }
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
    {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(fault)?;
    }
    let unfinished = fs::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|byte| *byte != b'\n'));
    let line = format!("{}{name} {} {}\n", if unfinished { "\n" } else { "" }, key.kind, key.base64);
    let mut file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(fault)?;
    file.write_all(line.as_bytes()).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, base64: &str) -> HostKey {
        HostKey { kind: kind.to_owned(), base64: base64.to_owned() }
    }

    fn known(text: &str) -> KnownHosts {
        KnownHosts::parse("known_hosts", text)
    }

    #[test]
    fn the_hash_is_that_of_rfc_2202() {
        let hex = |bytes: [u8; 20]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(hmac_sha1(&[0x0b; 20], b"Hi There")), "b617318655057264e28bc0b6fb378c8ef146be00");
        assert_eq!(
            hex(hmac_sha1(&[0xaa; 80], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "aa4ae5e15272d00e95705637ce8a3b55ed402112"
        );
    }

    #[test]
    fn keys_are_judged_by_name_port_and_marker() {
        let salt = [7; 20];
        let hashed = format!(
            "|1|{}|{} ssh-rsa HASHED",
            STANDARD.encode(salt),
            STANDARD.encode(hmac_sha1(&salt, b"secret.example.org"))
        );
        let hosts = known(&format!(
            "# comment\n\
             web1,10.0.0.1 ssh-ed25519 WEB1 a comment\n\
             [web1]:2222 ssh-ed25519 OTHER\n\
             *.example.org,!bad.example.org\tssh-rsa STAR\n\
             @revoked * ssh-rsa STOLEN\n\
             @cert-authority *.ca ssh-ed25519 AUTHORITY\n\
             @unknown web9 ssh-rsa X\n\
             broken line\n\
             {hashed}\n"
        ));
        let changed = |recorded: &str, line: usize| Verdict::Changed {
            recorded: recorded.to_owned(),
            place: format!("known_hosts:{line}"),
        };
        let cases = [
            ("web1", 22, "ssh-ed25519", "WEB1", Verdict::Known),
            ("WEB1", 22, "ssh-ed25519", "WEB1", Verdict::Known),
            ("10.0.0.1", 22, "ssh-ed25519", "WEB1", Verdict::Known),
            ("web1", 22, "ssh-ed25519", "FALSE", changed("ssh-ed25519", 2)),
            ("web1", 22, "ssh-rsa", "NEW", changed("ssh-ed25519", 2)),
            ("web1", 2222, "ssh-ed25519", "OTHER", Verdict::Known),
            ("web1", 2222, "ssh-ed25519", "WEB1", changed("ssh-ed25519", 3)),
            ("web1", 2223, "ssh-ed25519", "WEB1", Verdict::Known),
            ("web1", 2223, "ssh-ed25519", "FALSE", Verdict::Unknown),
            ("a.example.org", 22, "ssh-rsa", "STAR", Verdict::Known),
            ("bad.example.org", 22, "ssh-rsa", "STAR", Verdict::Unknown),
            ("secret.example.org", 22, "ssh-rsa", "HASHED", Verdict::Known),
            ("web1", 22, "ssh-rsa", "STOLEN", Verdict::Revoked { place: "known_hosts:5".into() }),
            ("web9", 22, "ssh-rsa", "X", Verdict::Unknown),
            ("db.ca", 22, "ssh-ed25519", "AUTHORITY", Verdict::Unknown),
        ];
        for (host, port, kind, base64, verdict) in cases {
            assert_eq!(hosts.check(host, port, &key(kind, base64)), verdict, "{host}:{port} {base64}");
        }
        assert!(hosts.has_authority("[db.ca]:2222", "db.ca") && !hosts.has_authority("web1", "web1"));
        assert!(hosts.is_authority("db.ca", &key("ssh-ed25519", "AUTHORITY")));
        assert!(!hosts.is_authority("db.ca", &key("ssh-ed25519", "WEB1")));
        assert_eq!(hosts.recorded_types("secret.example.org"), ["ssh-rsa", "ssh-rsa"]);
    }

    #[test]
    fn recorded_keys_are_known_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/known_hosts");
        for hashed in [false, true] {
            record(&path, "web1", 2222, &key("ssh-ed25519", "ONE"), hashed).unwrap();
            let hosts = KnownHosts::read(std::slice::from_ref(&path)).unwrap();
            assert_eq!(hosts.check("web1", 2222, &key("ssh-ed25519", "ONE")), Verdict::Known);
            assert_eq!(fs::read_to_string(&path).unwrap().contains("web1"), !hashed);
            fs::write(&path, "unfinished").unwrap();
        }
        record(&path, "web1", 22, &key("ssh-ed25519", "ONE"), false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "unfinished\nweb1 ssh-ed25519 ONE\n");
    }
}
