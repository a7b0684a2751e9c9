//! `community.crypto.openssl_csr`: requests for certificates, by the host's openssl.

use crate::connect::shell::quote;
use crate::host::Failure;

use super::file_common::content::split_words;
use super::file_common::destination::look;
use super::file_common::path::absolute;
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::openssl_files::{ask, subject, write};
use super::openssl_privatekey::remove;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.crypto.openssl_csr",
    aliases: &[],
    summary: "Keeps requests for certificates by the host's openssl",
    args: &[
        Arg::new("path", Type::Path, "the file").required(),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("privatekey_path", Type::Path, "the key on the host; needed for state=present"),
        Arg::new("privatekey_passphrase", Type::Str, "what the key is encrypted with").secret(),
        Arg::new("digest", Type::Str, "the digest that is signed").default("sha256"),
        Arg::new("subject", Type::Dict, "the subject: `CN: example.org`"),
        Arg::new("common_name", Type::Str, "its CN").aliases(&["CN", "commonName"]),
        Arg::new("country_name", Type::Str, "its C").aliases(&["C", "countryName"]),
        Arg::new("state_or_province_name", Type::Str, "its ST").aliases(&["ST", "stateOrProvinceName"]),
        Arg::new("locality_name", Type::Str, "its L").aliases(&["L", "localityName"]),
        Arg::new("organization_name", Type::Str, "its O").aliases(&["O", "organizationName"]),
        Arg::new("organizational_unit_name", Type::Str, "its OU").aliases(&["OU", "organizationalUnitName"]),
        Arg::new("email_address", Type::Str, "its email address").aliases(&["E", "emailAddress"]),
        Arg::new("subject_alt_name", Type::List, "other names: DNS:a, IP:192.0.2.1, email:, URI:")
            .aliases(&["subjectAltName"]),
        Arg::new("subject_alt_name_critical", Type::Bool, "who does not know them must refuse")
            .default("false")
            .aliases(&["subjectAltName_critical"]),
        Arg::new("use_common_name_for_san", Type::Bool, "without other names the CN is one")
            .default("true")
            .aliases(&["useCommonNameForSAN"]),
        Arg::new("key_usage", Type::List, "what the key is for, in openssl's words").aliases(&["keyUsage"]),
        Arg::new("key_usage_critical", Type::Bool, "who does not know it must refuse")
            .default("false")
            .aliases(&["keyUsage_critical"]),
        Arg::new("extended_key_usage", Type::List, "what it is for in detail")
            .aliases(&["extKeyUsage", "extendedKeyUsage"]),
        Arg::new("extended_key_usage_critical", Type::Bool, "who does not know it must refuse")
            .default("false")
            .aliases(&["extKeyUsage_critical", "extendedKeyUsage_critical"]),
        Arg::new("basic_constraints", Type::List, "CA:TRUE, pathlen:0").aliases(&["basicConstraints"]),
        Arg::new("basic_constraints_critical", Type::Bool, "who does not know them must refuse")
            .default("false")
            .aliases(&["basicConstraints_critical"]),
        Arg::new("ocsp_must_staple", Type::Bool, "the server must staple")
            .default("false")
            .aliases(&["ocspMustStaple"]),
        Arg::new("create_subject_key_identifier", Type::Bool, "add a digest of the key").default("false"),
        Arg::new("force", Type::Bool, "make it anew in any case").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("return_content", Type::Bool, "return it as `csr`").default("false"),
        Arg::new("select_crypto_backend", Type::Str, "has no effect: it is openssl")
            .default("auto")
            .choices(&["auto", "cryptography"]),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("filename", "the file"),
        ("privatekey", "the key"),
        ("csr", "the request, if `return_content`"),
        ("backup_file", "where the old file is kept"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let seen = look(&host, &args, args.text("path"), false).await?;
    if args.text("state") == "absent" {
        return remove(&host, &seen, &seen.named).await;
    }
    let Some(key) = args.str("privatekey_path").filter(|path| !path.is_empty()) else {
        return Err(Failure::new("state is present but all of the following are missing: privatekey_path"));
    };
    let key = absolute(&host, key).await?;
    let config = config(&args)?;
    let passphrase = args.str("privatekey_passphrase").filter(|words| !words.is_empty());
    let digest = args.text("digest");
    if !digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Failure::new(format!("`{digest}` cannot be a digest")));
    }
    let feed = format!("printf '%s\\n' {}", quote(passphrase.unwrap_or_default()));
    let old = quote(&seen.real);
    let cut = "sed '/Signature Value\\|Signature Algorithm/{p;q};' | sed '$!b'";
    let code = format!(
        "[ -r {key} ] || {{ echo 'the key cannot be read' >&2; exit 1; }}\n\
         n=$(printf '%s' {config} | {{ {feed} | openssl req -new -utf8 -config /dev/fd/3 -key {key} -passin stdin -{digest} 3<&4; }} 4<&0) || exit 1\n\
         printf '%s\\n\\036' \"$n\"; printf '%s\\n' \"$n\" | openssl req -noout -text | {cut}; printf '\\036'\n\
         openssl req -in {old} -noout -text 2>/dev/null | {cut}; :",
        key = quote(&key),
        config = quote(&config)
    );
    let told = ask(&host, &code, &[&key, &seen.named]).await?.map_err(|why| Failure::new(format!("openssl: {why}")))?;
    let mut parts = told.split('\u{1e}');
    let (fresh, wanted, now) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let anew = args.bool("force") || wanted.trim() != now.trim() || now.trim().is_empty();
    let content = anew.then(|| fresh.to_owned());
    let outcome = write(&host, &args, &seen, content).await?.with("privatekey", key);
    let there = seen.content.as_ref().map(|content| String::from_utf8_lossy(content).into_owned());
    Ok(match args.bool("return_content") {
        true => outcome.with("csr", if anew { fresh.to_owned() } else { there.unwrap_or_default() }),
        false => outcome,
    })
}

/// The names of parts of a subject and what openssl calls them.
fn part(name: &str) -> &str {
    match name {
        "countryName" => "C",
        "stateOrProvinceName" => "ST",
        "localityName" => "L",
        "organizationName" => "O",
        "organizationalUnitName" => "OU",
        "commonName" => "CN",
        "E" => "emailAddress",
        other => other,
    }
}

/// The configuration for `openssl req` (config(5ssl), req(1ssl)).
fn config(args: &Args) -> Result<String, Failure> {
    let plain = |text: &str| -> Result<String, Failure> {
        match text.contains(['\n', '\r', '\0']) {
            true => Err(Failure::new(format!("{text:?} has more than one line"))),
            // a dollar is a variable, a hash a comment
            false => Ok(text.replace('\\', "\\\\").replace('$', "\\$").replace('#', "\\#").replace('"', "\\\"")),
        }
    };
    let mut text = "[req]\nprompt=no\nstring_mask=utf8only\ndistinguished_name=dn\n".to_owned();
    let mut extensions = String::new();
    let critical = |name: &str| if args.bool(&format!("{name}_critical")) { "critical," } else { "" };
    let subject = subject(args);
    let mut names = args.list("subject_alt_name");
    if names.is_empty()
        && args.bool("use_common_name_for_san")
        && let Some((_, name)) = subject.iter().find(|(key, _)| part(key) == "CN")
    {
        names.push(format!("DNS:{name}"));
    }
    if !names.is_empty() {
        let mut alternatives = String::new();
        for (index, name) in names.iter().enumerate() {
            let (kind, value) = name
                .split_once(':')
                .ok_or_else(|| Failure::new(format!("`{name}` in `subject_alt_name` has no type, such as DNS:")))?;
            let kind = if kind == "RID" || ["DNS", "IP", "URI", "email"].contains(&kind) {
                kind
            } else {
                return Err(Failure::new(format!(
                    "names of the type `{kind}` are not supported in `subject_alt_name`"
                )));
            };
            alternatives.push_str(&format!("{kind}.{index}={}\n", plain(value)?));
        }
        extensions.push_str(&format!("subjectAltName={}@names\n", critical("subject_alt_name")));
        text.push_str(&format!("[names]\n{alternatives}"));
    }
    for (key, name) in [
        ("basicConstraints", "basic_constraints"),
        ("keyUsage", "key_usage"),
        ("extendedKeyUsage", "extended_key_usage"),
    ] {
        let words = args.list(name);
        if !words.is_empty() {
            let words: Vec<String> = words.iter().map(|word| plain(&usage(word))).collect::<Result<_, _>>()?;
            extensions.push_str(&format!("{key}={}{}\n", critical(name), words.join(",")));
        }
    }
    if args.bool("ocsp_must_staple") {
        extensions.push_str("1.3.6.1.5.5.7.1.24=DER:30:03:02:01:05\n");
    }
    if args.bool("create_subject_key_identifier") {
        extensions.push_str("subjectKeyIdentifier=hash\n");
    }
    if !extensions.is_empty() {
        text = text.replacen("[req]\n", "[req]\nreq_extensions=ext\n", 1);
        text.push_str(&format!("[ext]\n{extensions}"));
    }
    text.push_str("[dn]\n");
    for (index, (key, value)) in subject.iter().enumerate() {
        if split_words(key).is_none_or(|words| words.len() != 1) || key.contains('=') {
            return Err(Failure::new(format!("`{key}` cannot be a part of a subject")));
        }
        text.push_str(&format!("{index}.{}={}\n", part(key), plain(value)?));
    }
    Ok(text)
}

/// openssl's short name of a usage that is given by the long one.
fn usage(word: &str) -> String {
    let short = super::x509_certificate::USAGES.iter().find(|(long, _)| long.eq_ignore_ascii_case(word));
    short.map_or_else(|| word.to_owned(), |(_, short)| (*short).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, run_module, skip, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn the_configuration_is_openssls() {
        let given = [
            ("path", Value::from("/x")),
            ("common_name", "a.b".into()),
            ("key_usage", "Digital Signature".into()),
            ("key_usage_critical", true.into()),
        ];
        let map = given.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
        let text = config(&crate::modules::args::validate(&MODULE, &map).unwrap()).unwrap();
        for line in [
            "0.CN=a.b",
            "DNS.0=a.b",
            "keyUsage=critical,digitalSignature",
            "subjectAltName=@names",
            "req_extensions=ext",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
    }

    #[test]
    fn requests_are_made_once_and_taken_back() {
        if std::process::Command::new("openssl").arg("version").output().is_err() {
            skip("this machine has no openssl");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for (name, more) in [("key", None), ("locked", Some("pass words"))] {
            let own = [("path", at(name).into()), ("type", "ECC".into()), ("curve", "secp256r1".into())];
            let more: Vec<(&str, Value)> = more.map(|words| ("passphrase", words.into())).into_iter().collect();
            run_module(&crate::modules::openssl_privatekey::MODULE, &[&own[..], &more].concat()).unwrap();
        }
        let before = snapshot(root.path());
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own = [
                ("path", at("csr").into()),
                ("privatekey_path", at("key").into()),
                ("common_name", "a.example.org".into()),
            ];
            let mut given: Vec<(&'static str, Value)> = own.to_vec();
            given.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
            given.extend(more.iter().cloned());
            play(&MODULE, &given, &Play { check, ..Play::default() })
        };
        let subject = crate::value::object([
            ("O", "A $mall # \"Firm\"".into()),
            ("OU", Value::list(vec!["x".into(), "y".into()])),
        ]);
        let full = [
            ("subject", subject.into()),
            ("subject_alt_name", "DNS:b.example.org,IP:192.0.2.7".into()),
            ("extended_key_usage", "serverAuth".into()),
        ];
        assert!(run(&full, true).result.unwrap().changed);
        assert_eq!(snapshot(root.path()), before);
        let made = run(&full, false);
        assert!(made.result.unwrap().changed);
        for check in [true, false] {
            assert!(!run(&full, check).result.unwrap().changed);
        }
        let told =
            std::process::Command::new("openssl").args(["req", "-noout", "-text", "-in", &at("csr")]).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains("A $mall # ") && told.contains("IP Address:192.0.2.7"), "{told}");
        for other in [("digest", "sha512"), ("common_name", "c.example.org")] {
            assert!(
                run(&[&full[..], &[(other.0, other.1.into())]].concat(), true).result.unwrap().changed,
                "{other:?}"
            );
        }
        let locked = [
            ("path", at("csr2").into()),
            ("privatekey_path", at("locked").into()),
            ("privatekey_passphrase", "pass words".into()),
        ];
        assert!(run(&locked, false).result.unwrap().changed && !run(&locked, false).result.unwrap().changed);
        std::fs::remove_file(at("csr2")).unwrap();
        assert!(
            run(&[("privatekey_path", at("none").into())], true).result.unwrap_err().message.contains("cannot be read")
        );
        undo(&made.changes);
        assert_eq!(snapshot(root.path()), before);
    }
}
