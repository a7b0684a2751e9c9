//! `community.crypto.x509_certificate`: certificates signed by their own key or by a CA of one's own.

use crate::connect::shell::quote;
use crate::host::Failure;

use super::file_common::destination::look;
use super::file_common::path::absolute;
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::openssl_files::{ask, write};
use super::openssl_privatekey::remove;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.crypto.x509_certificate",
    aliases: &["community.crypto.openssl_certificate"],
    summary: "Keeps certificates that are signed on the host: by their own key, or by a CA of one's own",
    args: &[
        Arg::new("path", Type::Path, "the file").required(),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("provider", Type::Str, "who signs; `acme` and `entrust` are not supported").choices(&[
            "acme",
            "entrust",
            "ownca",
            "selfsigned",
        ]),
        Arg::new("csr_path", Type::Path, "the request on the host"),
        Arg::new("csr_content", Type::Str, "the request itself"),
        Arg::new("privatekey_path", Type::Path, "the key, for selfsigned"),
        Arg::new("privatekey_passphrase", Type::Str, "what the key is encrypted with").secret(),
        Arg::new("selfsigned_not_before", Type::Str, "`+0s`: from now on")
            .default("+0s")
            .aliases(&["selfsigned_notBefore"]),
        Arg::new("selfsigned_not_after", Type::Str, "how long: +3650d")
            .default("+3650d")
            .aliases(&["selfsigned_notAfter"]),
        Arg::new("selfsigned_digest", Type::Str, "the digest that is signed").default("sha256"),
        Arg::new("selfsigned_version", Type::Int, "3").default("3"),
        Arg::new("ownca_path", Type::Path, "the certificate of the CA on the host"),
        Arg::new("ownca_privatekey_path", Type::Path, "its key"),
        Arg::new("ownca_privatekey_passphrase", Type::Str, "what its key is encrypted with").secret(),
        Arg::new("ownca_not_before", Type::Str, "`+0s`: from now on").default("+0s"),
        Arg::new("ownca_not_after", Type::Str, "how long: +3650d").default("+3650d"),
        Arg::new("ownca_digest", Type::Str, "the digest that is signed").default("sha256"),
        Arg::new("ownca_version", Type::Int, "3").default("3"),
        Arg::new("ignore_timestamps", Type::Bool, "has no effect: times alone never make it anew").default("true"),
        Arg::new("force", Type::Bool, "make it anew in any case").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("return_content", Type::Bool, "return it as `certificate`").default("false"),
        Arg::new("select_crypto_backend", Type::Str, "has no effect: it is openssl")
            .default("auto")
            .choices(&["auto", "cryptography"]),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[super::Rule::MutuallyExclusive(&["csr_path", "csr_content"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("filename", "the file"),
        ("certificate", "the certificate, if `return_content`"),
        ("backup_file", "where the old file is kept"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What openssl prints of usages, and what it reads.
pub const USAGES: &[(&str, &str)] = &[
    ("Digital Signature", "digitalSignature"),
    ("Non Repudiation", "nonRepudiation"),
    ("Content Commitment", "nonRepudiation"),
    ("Key Encipherment", "keyEncipherment"),
    ("Data Encipherment", "dataEncipherment"),
    ("Key Agreement", "keyAgreement"),
    ("Certificate Sign", "keyCertSign"),
    ("CRL Sign", "cRLSign"),
    ("Encipher Only", "encipherOnly"),
    ("Decipher Only", "decipherOnly"),
    ("TLS Web Server Authentication", "serverAuth"),
    ("TLS Web Client Authentication", "clientAuth"),
    ("Code Signing", "codeSigning"),
    ("E-mail Protection", "emailProtection"),
    ("Time Stamping", "timeStamping"),
    ("OCSP Signing", "OCSPSigning"),
    ("Any Extended Key Usage", "anyExtendedKeyUsage"),
];

/// An extension as `openssl -text` prints it: its name, whether it is critical, its value.
type Extension = (String, bool, String);

/// The extensions in what openssl printed of a request or certificate.
fn extensions(text: &str) -> Vec<Extension> {
    let known = [
        "X509v3 Subject Alternative Name",
        "X509v3 Key Usage",
        "X509v3 Extended Key Usage",
        "X509v3 Basic Constraints",
    ];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for pair in lines.windows(2) {
        let Some((name, rest)) = pair[0].split_once(':') else { continue };
        if known.contains(&name) {
            found.push((name.to_owned(), rest.trim() == "critical", pair[1].to_owned()));
        }
    }
    found.sort();
    found
}

/// The same as a configuration of extensions.
fn extension_file(extensions: &[Extension]) -> Result<String, Failure> {
    let mut text = String::new();
    for (name, critical, value) in extensions {
        let key = match name.as_str() {
            "X509v3 Subject Alternative Name" => "subjectAltName",
            "X509v3 Key Usage" => "keyUsage",
            "X509v3 Extended Key Usage" => "extendedKeyUsage",
            _ => "basicConstraints",
        };
        let mut words = Vec::new();
        for word in value.split(", ") {
            words.push(match key {
                "subjectAltName" => word.replace("IP Address:", "IP:").replace("Registered ID:", "RID:"),
                "basicConstraints" => word.to_owned(),
                _ => match USAGES.iter().find(|(long, _)| long == &word) {
                    Some((_, short)) => (*short).to_owned(),
                    None if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => word.to_owned(),
                    None => return Err(Failure::new(format!("the usage `{word}` of the request is not known"))),
                },
            });
        }
        text.push_str(&format!("{key}={}{}\n", if *critical { "critical," } else { "" }, words.join(",")));
    }
    // without any line old versions make a certificate of version 1
    if !extensions.iter().any(|(name, ..)| name.ends_with("Basic Constraints")) {
        text.push_str("subjectKeyIdentifier=hash\n");
    }
    Ok(text)
}

/// Days in `+3650d`, `+2w`, `+36h`; a fixed time is refused: openssl can count days alone.
fn days(text: &str, name: &str) -> Result<u64, Failure> {
    let wrong = || {
        Failure::new(format!("`{name}` is of the form +NwNdNhNm, not `{text}`: only times from now on are supported"))
    };
    let rest = text.strip_prefix('+').ok_or_else(wrong)?;
    let (mut seconds, mut number) = (0_u64, String::new());
    for letter in rest.chars() {
        if letter.is_ascii_digit() {
            number.push(letter);
            continue;
        }
        let unit = match letter.to_ascii_lowercase() {
            'w' => 604_800,
            'd' => 86_400,
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return Err(wrong()),
        };
        seconds += unit * number.parse::<u64>().map_err(|_| wrong())?;
        number.clear();
    }
    match number.is_empty() {
        true => Ok(seconds.div_ceil(86_400)),
        false => Err(wrong()),
    }
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let seen = look(&host, &args, args.text("path"), false).await?;
    if args.text("state") == "absent" {
        return remove(&host, &seen, &seen.named).await;
    }
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let provider = match text("provider") {
        Some(provider @ ("selfsigned" | "ownca")) => provider,
        Some(other) => {
            return Err(Failure::new(format!("the provider `{other}` is not supported: selfsigned and ownca are")));
        }
        None => return Err(Failure::new("state is present but all of the following are missing: provider")),
    };
    if text(&format!("{provider}_not_before")) != Some("+0s") || args.int(&format!("{provider}_version")) != Some(3) {
        return Err(Failure::new(format!(
            "`{provider}_not_before` is supported as +0s alone, `{provider}_version` as 3"
        )));
    }
    let need = |name: &str| {
        text(name).ok_or_else(|| Failure::new(format!("{name} must be specified for the provider {provider}")))
    };
    let request = match (text("csr_content"), text("csr_path")) {
        (Some(content), _) => format!("printf '%s' {}", quote(content)),
        (None, Some(path)) => format!("cat {}", quote(&absolute(&host, path).await?)),
        (None, None) => return Err(Failure::new("csr_path or csr_content must be specified")),
    };
    let digest = args.text(&format!("{provider}_digest"));
    if !digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Failure::new(format!("`{digest}` cannot be a digest")));
    }
    let name = format!("{provider}_not_after");
    let days = days(args.text(&name), &name)?;
    let (key, words, ca) = if provider == "selfsigned" {
        (absolute(&host, need("privatekey_path")?).await?, text("privatekey_passphrase"), None)
    } else {
        let ca = absolute(&host, need("ownca_path")?).await?;
        (absolute(&host, need("ownca_privatekey_path")?).await?, text("ownca_privatekey_passphrase"), Some(ca))
    };
    let old = quote(&seen.real);
    let issuer = match &ca {
        Some(ca) => format!("openssl x509 -in {} -noout -subject -nameopt RFC2253 || exit 1", quote(ca)),
        None => ":".to_owned(),
    };
    let look_code = format!(
        "{request} | openssl req -noout -text || exit 1; printf '\\036'\n{request} | openssl req -noout -subject -nameopt RFC2253; printf '\\036'\n\
         {request} | openssl req -noout -pubkey; printf '\\036'\n{issuer}; printf '\\036'\n\
         if [ -e {old} ]; then openssl x509 -in {old} -noout -text; printf '\\036'; openssl x509 -in {old} -noout -subject -nameopt RFC2253; printf '\\036'\n\
         openssl x509 -in {old} -noout -pubkey; printf '\\036'; openssl x509 -in {old} -noout -issuer -nameopt RFC2253; printf '\\036'; {}; fi 2>/dev/null; :",
        match &ca {
            // the times do not count
            Some(ca) => format!(
                "openssl verify -partial_chain -CAfile {0} {old} 2>&1 || openssl verify -CAfile {0} {old} 2>&1",
                quote(ca)
            ),
            None => ":".to_owned(),
        }
    );
    let paths: Vec<&str> = [Some(key.as_str()), ca.as_deref(), text("csr_path"), Some(seen.named.as_str())]
        .into_iter()
        .flatten()
        .collect();
    let told = ask(&host, &look_code, &paths).await?.map_err(|why| Failure::new(format!("openssl: {why}")))?;
    let parts: Vec<&str> = told.split('\u{1e}').collect();
    let part = |index: usize| parts.get(index).copied().unwrap_or_default().trim();
    let value = |index: usize| part(index).split_once('=').map_or("", |(_, value)| value.trim()).to_owned();
    let wanted = extensions(part(0));
    let expected_issuer = if ca.is_some() { value(3) } else { value(1) };
    let verified = ca.is_none() || part(8).contains("OK") || part(8).contains("expired");
    let same = !part(4).is_empty()
        && value(5) == value(1)
        && part(6) == part(2)
        && value(7) == expected_issuer
        && wanted.iter().all(|extension| extensions(part(4)).contains(extension))
        && verified;
    let there = seen.content.as_ref().map(|content| String::from_utf8_lossy(content).into_owned());
    let mut fresh = None;
    if !same || args.bool("force") {
        let sign = match &ca {
            Some(ca) => format!("-CA {} -CAkey {}", quote(ca), quote(&key)),
            None => format!("-signkey {}", quote(&key)),
        };
        // the request, the extensions and the passphrase each come by a pipe of their own
        let code = format!(
            "r=$({request}) || exit 1\ns=$(openssl rand -hex 16) || exit 1\n\
             printf '%s\\n' \"$r\" | {{ printf '%s' {} | {{ printf '%s\\n' {} | openssl x509 -req -in /dev/fd/4 -extfile /dev/fd/3 {sign} -passin stdin \
             -set_serial \"0x4$s\" -days {days} -{digest} 3<&5; }} 5<&0; }} 4<&0",
            quote(&extension_file(&wanted)?),
            quote(words.unwrap_or_default()),
        );
        let pem = ask(&host, &code, &paths).await?.map_err(|why| Failure::new(format!("openssl: {why}")))?;
        if !pem.contains("BEGIN CERTIFICATE") {
            return Err(Failure::new("openssl made no certificate"));
        }
        fresh = Some(pem);
    }
    let outcome = write(&host, &args, &seen, fresh.clone()).await?;
    Ok(match args.bool("return_content") {
        true => outcome.with("certificate", fresh.or(there).unwrap_or_default()),
        false => outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, run_module, skip, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn extensions_are_read_and_written() {
        let text = "  X509v3 Key Usage: critical\n    Digital Signature, Key Encipherment\n  X509v3 Subject Alternative Name:\n    DNS:a, IP Address:192.0.2.1\n";
        let found = extensions(text);
        assert_eq!(found.len(), 2);
        let file = extension_file(&found).unwrap();
        assert!(
            file.contains("keyUsage=critical,digitalSignature,keyEncipherment\nsubjectAltName=DNS:a,IP:192.0.2.1\n"),
            "{file}"
        );
        assert_eq!((days("+3650d", "x").unwrap(), days("+1w36h", "x").unwrap()), (3650, 9));
        assert!(days("20300101000000Z", "x").is_err() && days("+5", "x").is_err());
    }

    #[test]
    fn certificates_are_signed_once_and_taken_back() {
        if std::process::Command::new("openssl").arg("version").output().is_err() {
            skip("this machine has no openssl");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for name in ["ca", "own"] {
            let key =
                [("path", at(&format!("{name}.key")).into()), ("type", "ECC".into()), ("curve", "secp256r1".into())];
            run_module(&crate::modules::openssl_privatekey::MODULE, &key).unwrap();
            let request = [
                ("path", at(&format!("{name}.csr")).into()),
                ("privatekey_path", at(&format!("{name}.key")).into()),
                ("common_name", format!("{name}.example.org").into()),
                ("basic_constraints", (if name == "ca" { "CA:TRUE" } else { "CA:FALSE" }).into()),
            ];
            run_module(&crate::modules::openssl_csr::MODULE, &request).unwrap();
        }
        let run = |name: &str, more: &[(&'static str, Value)], check| -> Played {
            let own = [("path", at(&format!("{name}.crt")).into()), ("csr_path", at(&format!("{name}.csr")).into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { check, ..Play::default() })
        };
        let itself = [("provider", "selfsigned".into()), ("privatekey_path", at("ca.key").into())];
        let by_ca = [
            ("provider", "ownca".into()),
            ("ownca_path", at("ca.crt").into()),
            ("ownca_privatekey_path", at("ca.key").into()),
        ];
        for (name, given) in [("ca", &itself[..]), ("own", &by_ca)] {
            let before = snapshot(root.path());
            assert!(run(name, given, true).result.unwrap().changed);
            assert_eq!(snapshot(root.path()), before);
            let made = run(name, given, false);
            assert!(made.result.unwrap().changed);
            for check in [true, false] {
                assert!(!run(name, given, check).result.unwrap().changed, "{name}");
            }
            assert!(run(name, &[given, &[("force", true.into())]].concat(), true).result.unwrap().changed);
            undo(&made.changes);
            assert_eq!(snapshot(root.path()), before);
            run(name, given, false).result.unwrap();
        }
        let chain = std::process::Command::new("openssl")
            .args(["verify", "-CAfile", &at("ca.crt"), &at("own.crt")])
            .output()
            .unwrap();
        assert!(chain.status.success(), "{}", String::from_utf8_lossy(&chain.stderr));
        let request = [
            ("path", at("own.csr").into()),
            ("privatekey_path", at("own.key").into()),
            ("common_name", "own.example.org".into()),
            ("subject_alt_name", "DNS:new.example.org".into()),
        ];
        run_module(&crate::modules::openssl_csr::MODULE, &request).unwrap();
        let renewed = run("own", &[&by_ca[..], &[("return_content", true.into())]].concat(), false).result.unwrap();
        assert!(renewed.changed && renewed.result["certificate"].to_string().contains("BEGIN CERTIFICATE"));
        assert!(
            run("own", &[("provider", "acme".into())], true)
                .result
                .unwrap_err()
                .message
                .contains("`acme` is not supported")
        );
    }
}
