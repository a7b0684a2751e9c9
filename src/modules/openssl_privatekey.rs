//! `community.crypto.openssl_privatekey`: private keys, by the host's openssl.

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step};

use super::file_common::content::{Content, Write, backup_name, written};
use super::file_common::destination::look;
use super::file_common::mode::Mode;
use super::file_common::permissions::OWNERSHIP;
use super::openssl_files::{START, ask, pass_in, write};
use super::programs::make;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.crypto.openssl_privatekey",
    aliases: &[],
    summary: "Keeps private keys by the host's openssl; the key never leaves the host",
    args: &[
        Arg::new("path", Type::Path, "the file").required(),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("type", Type::Str, "the kind of key")
            .default("RSA")
            .choices(&["DSA", "ECC", "Ed25519", "Ed448", "RSA", "X25519", "X448"]),
        Arg::new("size", Type::Int, "bits of RSA and DSA keys").default("4096"),
        Arg::new("curve", Type::Str, "the curve of ECC keys by openssl's name; secp256r1 is prime256v1"),
        Arg::new("passphrase", Type::Str, "what it is encrypted with").secret(),
        Arg::new("cipher", Type::Str, "how it is encrypted: `auto`").default("auto"),
        Arg::new("format", Type::Str, "how it is written: as openssl writes it").default("auto_ignore").choices(&[
            "auto",
            "auto_ignore",
            "pkcs8",
        ]),
        Arg::new("regenerate", Type::Str, "when a key that is there gives way to a new one")
            .default("full_idempotence")
            .choices(&["never", "fail", "partial_idempotence", "full_idempotence", "always"]),
        Arg::new("force", Type::Bool, "make a new key in any case").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("return_content", Type::Bool, "not supported: the key stays on the host").default("false"),
        Arg::new("select_crypto_backend", Type::Str, "has no effect: it is openssl")
            .default("auto")
            .choices(&["auto", "cryptography"]),
        Arg::new("mode", Type::Mode, "permissions").default("0600"),
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::RequiredIf("type", "ECC", &["curve"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("filename", "the file"),
        ("type", "the kind of key"),
        ("size", "its bits"),
        ("curve", "its curve"),
        ("backup_file", "where the old file is kept"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    if args.bool("return_content") {
        return Err(Failure::new(
            "the argument `return_content` is not supported: the key stays on the host; read it by `slurp`",
        ));
    }
    if text("cipher").is_some_and(|cipher| cipher != "auto") {
        return Err(Failure::new("the argument `cipher` can be `auto` alone: AES-256 is used"));
    }
    let mut seen = look(&host, &args, args.text("path"), false).await?;
    let path = seen.named.clone();
    if args.text("state") == "absent" {
        return remove(&host, &seen, &path).await;
    }
    let passphrase = text("passphrase");
    let kind = args.text("type");
    let outcome = |outcome: Outcome| {
        let outcome = outcome.with("filename", path.as_str()).with("type", kind);
        match kind {
            "RSA" | "DSA" => outcome.with("size", args.int("size").unwrap_or(4096)),
            "ECC" => outcome.with("curve", args.text("curve")),
            _ => outcome,
        }
    };
    let manner = args.text("regenerate");
    let mut anew = seen.attributes.is_none() || args.bool("force") || manner == "always";
    if !anew {
        let (feed, option) = pass_in(passphrase);
        let feed = if feed.is_empty() { "</dev/null ".to_owned() } else { feed };
        // without a passphrase openssl would ask the terminal for one
        let option = if option.is_empty() { " -passin pass:" } else { option };
        let code = format!("{feed}openssl pkey -in {}{option} -noout -text", quote(&path));
        let encrypted = format!("grep -q ENCRYPTED {}", quote(&path));
        let told =
            ask(&host, &format!("{code} || exit 1; if {encrypted}; then echo is-encrypted; fi"), &[&path]).await?;
        let why = match &told {
            Err(why) => Some(format!(
                "Unable to read the key. The key is protected with a another passphrase / no passphrase or broken: {why}"
            )),
            Ok(text) if text.contains("is-encrypted") != passphrase.is_some() => {
                Some("The key is encrypted otherwise than the task says".to_owned())
            }
            Ok(text) if !is_so(text, &args) => Some("Key has wrong type and/or size.".to_owned()),
            Ok(_) => None,
        };
        let readable = told.is_ok();
        anew = match (&why, manner) {
            (None, _) | (_, "never") => false,
            (Some(why), "fail") => return Err(Failure::new(format!("{why} Will not proceed."))),
            (Some(why), "partial_idempotence") if !readable => {
                return Err(Failure::new(format!(
                    "{why}. Will not proceed. To force regeneration, call the module with `regenerate` set to `always`"
                )));
            }
            (Some(why), "full_idempotence") if !readable && passphrase.is_none() => {
                return Err(Failure::new(format!(
                    "{why}. Will not proceed. To force regeneration, call the module with `regenerate` set to `always`"
                )));
            }
            _ => true,
        };
    }
    if !anew {
        return Ok(outcome(write(&host, &args, &seen, None).await?));
    }
    if let Some(Mode::Preserve) = seen.permissions.mode {
        return Err(Failure::new("`mode` cannot be `preserve` here"));
    }
    seen.permissions.mode = seen.permissions.mode.or(Some(Mode::Absolute(0o600)));
    let generate = generate(&args, passphrase)?;
    // the key is made in a temporary file beside its place, and takes it at once
    let after = written(seen.attributes.as_ref(), seen.above.as_ref(), &seen.me, &seen.permissions, 0);
    let backup = args.bool("backup").then(|| backup_name(&path)).filter(|_| seen.attributes.is_some());
    let keep =
        backup.as_ref().map(|backup| format!("cp -p {} {} || exit\n", quote(&path), quote(backup))).unwrap_or_default();
    let real = quote(&seen.real);
    let script = format!(
        "{START}umask 077\nd=$(dirname {real}); t=$(mktemp \"$d/.trimtab.XXXXXX\") || exit\ntrap 'rm -f \"$t\"' EXIT\n{keep}\
         {generate} >\"$t\" || exit\n[ -s \"$t\" ] || exit 1\nchown {}:{} \"$t\" && chmod 0{:04o} \"$t\" && mv -f \"$t\" {real}",
        after.uid, after.gid, after.mode
    );
    let inverse = match (&seen.attributes, &seen.content) {
        (None, _) => Inverse::Steps(vec![Step::new(format!("rm -f {real}")).writes(seen.real.as_str())]),
        (Some(old), Some(content)) => {
            let write = Write {
                path: seen.real.clone(),
                alias: None,
                content: Content::Bytes(content.clone()),
                before: Some(old.clone()),
                before_content: None,
                after: old.clone(),
                backup: None,
                validate: None,
                unsafe_writes: false,
            };
            Inverse::Steps(vec![write.step(&seen.me)])
        }
        _ => Inverse::None("the old key was not read".to_owned()),
    };
    let footprint = Footprint::path(path.as_str()).and(Footprint::path(seen.real.as_str()));
    let change = Change::uncertain(format!("private key {path}"), footprint)
        .step(Step::new(script).writes(seen.real.as_str()))
        .inverse(inverse)
        .difference(Difference::new(
            path.as_str(),
            if seen.attributes.is_some() { "a key\n" } else { "" },
            "a new key\n",
        ));
    make(&host, change).await?;
    let done = outcome(Outcome::changed());
    Ok(match backup {
        Some(backup) => done.with("backup_file", backup),
        None => done,
    })
}

/// Removes the file.
pub(super) async fn remove(
    host: &crate::host::Host,
    seen: &super::file_common::destination::Destination,
    path: &str,
) -> Result<Outcome, Failure> {
    let Some(old) = &seen.attributes else { return Ok(Outcome::ok().with("filename", path)) };
    let write = Write {
        path: seen.real.clone(),
        alias: None,
        content: Content::Bytes(Vec::new()),
        before: Some(old.clone()),
        before_content: seen.content.clone(),
        after: old.clone(),
        backup: None,
        validate: None,
        unsafe_writes: false,
    };
    let change =
        Change::uncertain(format!("removal of {path}"), Footprint::path(path).and(Footprint::path(seen.real.as_str())))
            .step(Step::new(format!("rm -f {}", quote(path))).writes(path))
            .inverse(write.inverse(&seen.me));
    make(host, change).await?;
    Ok(Outcome::changed().with("filename", path))
}

/// What openssl tells of a key, against the task.
fn is_so(told: &str, args: &Args) -> bool {
    let first = told.lines().find(|line| line.contains("Private-Key")).unwrap_or_default();
    let bits = || first.split('(').nth(1).and_then(|rest| rest.split(' ').next()?.parse::<i64>().ok());
    let curve = told.lines().find_map(|line| line.trim().strip_prefix("ASN1 OID: ")).unwrap_or_default();
    match args.text("type") {
        "RSA" => told.contains("publicExponent") && bits() == args.int("size"),
        "DSA" => told.contains("P:") && told.contains("G:") && bits() == args.int("size"),
        "ECC" => curve == curve_name(args.text("curve")),
        kind => first.to_lowercase().starts_with(&kind.to_lowercase()),
    }
}

/// The names that the module has for what openssl calls otherwise.
fn curve_name(name: &str) -> &str {
    match name {
        "secp256r1" => "prime256v1",
        "secp192r1" => "prime192v1",
        other => other,
    }
}

fn generate(args: &Args, passphrase: Option<&str>) -> Result<String, Failure> {
    let size = args.int("size").unwrap_or(4096);
    if !(512..=65536).contains(&size) {
        return Err(Failure::new(format!("a key of {size} bits cannot be made")));
    }
    let (feed, encrypt) = match passphrase {
        Some(words) if words.contains('\n') => return Err(Failure::new("a passphrase has one line")),
        Some(words) => (format!("printf '%s\\n' {} | ", quote(words)), " -aes256 -pass stdin"),
        None => (String::new(), ""),
    };
    Ok(match args.text("type") {
        "RSA" => format!("{feed}openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:{size}{encrypt} 2>/dev/null"),
        "ECC" => format!(
            "{feed}openssl genpkey -algorithm EC -pkeyopt ec_param_enc:named_curve -pkeyopt {}{encrypt}",
            quote(&format!("ec_paramgen_curve:{}", curve_name(args.text("curve"))))
        ),
        "DSA" if passphrase.is_none() => format!("openssl dsaparam -genkey -noout {size} 2>/dev/null"),
        "DSA" => return Err(Failure::new("a DSA key with a passphrase is not supported")),
        kind => format!("{feed}openssl genpkey -algorithm {}{encrypt}", kind.to_uppercase()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn keys_are_made_once_and_taken_back() {
        if std::process::Command::new("openssl").arg("version").output().is_err() {
            skip("this machine has no openssl");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("key.pem");
        let empty = snapshot(root.path());
        let run = |more: &[(&'static str, Value)], check| -> Played {
            play(
                &MODULE,
                &[&[("path", path.to_str().unwrap().into())], more].concat(),
                &Play { check, ..Play::default() },
            )
        };
        let kinds: [&[(&'static str, Value)]; 4] = [
            &[("type", "RSA".into()), ("size", 2048.into())],
            &[("type", "ECC".into()), ("curve", "secp256r1".into())],
            &[("type", "Ed25519".into())],
            &[("type", "ECC".into()), ("curve", "secp384r1".into()), ("passphrase", "it's a secret".into())],
        ];
        for kind in kinds {
            assert!(run(kind, true).result.unwrap().changed);
            assert_eq!(snapshot(root.path()), empty);
            let made = run(kind, false);
            let outcome = made.result.unwrap();
            assert!(outcome.changed && outcome.differences.is_empty());
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.contains("ENCRYPTED"), kind.len() == 3, "{text}");
            assert!(snapshot(root.path())[0].contains(" 600 "));
            for check in [true, false] {
                assert!(!run(kind, check).result.unwrap().changed, "{kind:?}");
            }
            let before = snapshot(root.path());
            let forced = run(&[kind, &[("force", true.into())]].concat(), false);
            assert!(forced.result.unwrap().changed && snapshot(root.path()) != before);
            undo(&forced.changes);
            assert_eq!(snapshot(root.path()), before);
            assert!(run(&[kind, &[("mode", "0640".into())]].concat(), false).result.unwrap().changed);
            assert!(run(&[kind, &[("mode", "0600".into())]].concat(), false).result.unwrap().changed);
            let removed = run(&[("state", "absent".into())], false);
            assert!(removed.result.unwrap().changed && !path.exists());
            undo(&removed.changes);
            assert_eq!(snapshot(root.path()), before);
            undo(&made.changes);
            assert_eq!(snapshot(root.path()), empty);
        }
        run(kinds[2], false).result.unwrap();
        let other = [kinds[1], &[("regenerate", "fail".into())]].concat();
        assert!(run(&other, false).result.unwrap_err().message.contains("wrong type"));
        assert!(!run(&[kinds[1], &[("regenerate", "never".into())]].concat(), false).result.unwrap().changed);
        assert!(run(kinds[1], false).result.unwrap().changed);
        assert!(run(&[("return_content", true.into())], true).result.unwrap_err().message.contains("`return_content`"));
    }
}
