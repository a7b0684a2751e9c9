//! Which algorithms are offered, in which order.

use std::borrow::Cow;

use russh::keys::Algorithm;
use russh::{Preferred, cipher, compression, kex, mac};

use super::pattern;
use super::settings::Settings;

/// Key exchanges, cheapest first (curve25519 takes a tenth of the time of the others); beyond the library's own, the
/// NIST curves, which hardened servers may have alone.
const KEX: &[kex::Name] = &[
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::MLKEM768X25519_SHA256,
    kex::ECDH_SHA2_NISTP256,
    kex::ECDH_SHA2_NISTP384,
    kex::ECDH_SHA2_NISTP521,
    kex::DH_GEX_SHA256,
    kex::DH_G16_SHA512,
    kex::DH_G18_SHA512,
    kex::DH_G14_SHA256,
];

/// Not algorithms but announcements that stand among them: signature types (RFC 8308), strict key exchange.
const KEX_EXTENSIONS: &[kex::Name] = &[kex::EXTENSION_SUPPORT_AS_CLIENT, kex::EXTENSION_OPENSSH_STRICT_KEX_AS_CLIENT];

const MACS: &[mac::Name] = &[
    mac::HMAC_SHA256_ETM,
    mac::HMAC_SHA512_ETM,
    mac::HMAC_SHA256,
    mac::HMAC_SHA512,
    mac::HMAC_SHA1_ETM,
    mac::HMAC_SHA1,
];

/// The offer for one host. Types of its recorded keys come first, so that the server shows one that can be compared.
pub(super) fn preferred(settings: &Settings, recorded: &[String], authority: bool) -> Result<Preferred, String> {
    let defaults = Preferred::DEFAULT;
    let all_kex: Vec<kex::Name> = kex::ALL_KEX_ALGORITHMS.iter().map(|name| **name).collect();
    let all_ciphers: Vec<cipher::Name> = cipher::ALL_CIPHERS.iter().map(|name| **name).collect();
    let all_macs: Vec<mac::Name> = mac::ALL_MAC_ALGORITHMS.iter().map(|name| **name).collect();
    let mut kex = choose("KexAlgorithms", settings.kex.as_deref(), KEX, &all_kex)?;
    kex.retain(|name| !name.as_ref().contains("ext-info") && !name.as_ref().contains("kex-strict"));
    kex.extend_from_slice(KEX_EXTENSIONS);
    let spec = settings.host_key_algorithms.as_deref();
    let plain: Vec<KeyName> = defaults.key.iter().cloned().map(KeyName).collect();
    let mut keys = match spec.map(|spec| choose("HostKeyAlgorithms", Some(spec), &plain, &plain)) {
        None => plain,
        Some(Ok(keys)) => keys,
        // certificates alone
        Some(Err(_)) if spec.is_some_and(|spec| spec.contains("-cert-v01@")) => plain,
        Some(Err(fault)) => return Err(fault),
    };
    if spec.is_none() {
        // a stable sort: false comes before true
        keys.sort_by_key(|key| !recorded.iter().any(|kind| key.signs_for(kind)));
    }
    let keys: Vec<Algorithm> = keys.into_iter().map(|key| key.0).collect();
    let compression: &[compression::Name] = if settings.compression {
        &[compression::ZLIB, compression::ZLIB_LEGACY, compression::NONE]
    } else {
        &[compression::NONE]
    };
    Ok(Preferred {
        kex: Cow::Owned(kex),
        host_key_certificates: if authority { Cow::Owned(keys.clone()) } else { Cow::Borrowed(&[]) },
        key: Cow::Owned(keys),
        cipher: Cow::Owned(choose("Ciphers", settings.ciphers.as_deref(), &defaults.cipher, &all_ciphers)?),
        mac: Cow::Owned(choose("MACs", settings.macs.as_deref(), MACS, &all_macs)?),
        compression: Cow::Owned(compression.to_vec()),
    })
}

/// A host key algorithm by its name on the wire.
#[derive(Clone)]
struct KeyName(Algorithm);

impl KeyName {
    /// True if a key of this type in known_hosts is shown under this algorithm.
    fn signs_for(&self, kind: &str) -> bool {
        let name = self.as_ref();
        name == kind || (kind == "ssh-rsa" && name.starts_with("rsa-sha2-"))
    }
}

impl AsRef<str> for KeyName {
    fn as_ref(&self) -> &str {
        self.0.as_ref()
    }
}

/// Applies a list of names as ssh_config(5) has it: `a,b` replaces the defaults, `+a` appends, `-a` removes, `^a` puts
/// first. Names the library does not know are passed over.
fn choose<N: AsRef<str> + Clone>(
    option: &str,
    spec: Option<&str>,
    defaults: &[N],
    all: &[N],
) -> Result<Vec<N>, String> {
    let Some(spec) = spec else {
        return Ok(defaults.to_vec());
    };
    let (sign, names) = match spec.chars().next() {
        Some(sign @ ('+' | '-' | '^')) => (Some(sign), &spec[1..]),
        _ => (None, spec),
    };
    let named = |known: &[N]| -> Vec<N> {
        let names = names.split(',').map(str::trim);
        names
            .flat_map(|name| known.iter().filter(move |known| pattern::matches(name, (*known).as_ref())).cloned())
            .collect()
    };
    let is_in = |name: &N, list: &[N]| list.iter().any(|other| other.as_ref() == name.as_ref());
    let mut chosen = match sign {
        None => named(all),
        Some('+') => defaults.iter().cloned().chain(named(all)).collect(),
        Some('^') => named(all).into_iter().chain(defaults.iter().cloned()).collect(),
        _ => {
            let removed = named(all);
            defaults.iter().filter(|name| !is_in(name, &removed)).cloned().collect()
        }
    };
    let mut seen: Vec<N> = Vec::new();
    chosen.retain(|name| {
        let new = !is_in(name, &seen);
        seen.push(name.clone());
        new
    });
    if chosen.is_empty() {
        let known: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
        return Err(format!("none of `{option} {spec}` is supported; supported are {}", known.join(", ")));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_replace_append_remove_and_put_first() {
        let (defaults, all) = (["a", "b"], ["a", "b", "c", "d1", "d2"]);
        let cases: &[(Option<&str>, &[&str])] = &[
            (None, &["a", "b"]),
            (Some("c,a,unknown"), &["c", "a"]),
            (Some("+c,a"), &["a", "b", "c"]),
            (Some("-a"), &["b"]),
            (Some("^b,d*"), &["b", "d1", "d2", "a"]),
        ];
        for (spec, expected) in cases {
            assert_eq!(choose("MACs", *spec, &defaults, &all).unwrap(), *expected, "{spec:?}");
        }
        assert!(choose("MACs", Some("unknown"), &defaults, &all).unwrap_err().contains("supported are a, b, c"));
    }
}
