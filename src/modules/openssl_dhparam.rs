//! `community.crypto.openssl_dhparam`: parameters for Diffie and Hellman's exchange, by the host's openssl.

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step};

use super::file_common::content::{Content, Write, backup_name, written};
use super::file_common::destination::look;
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::openssl_files::{START, ask, write};
use super::openssl_privatekey::remove;
use super::programs::make;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.crypto.openssl_dhparam",
    aliases: &[],
    summary: "Keeps parameters for the Diffie-Hellman exchange by the host's openssl",
    args: &[
        Arg::new("path", Type::Path, "the file").required(),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("size", Type::Int, "bits").default("4096"),
        Arg::new("force", Type::Bool, "make it anew in any case").default("false"),
        Arg::new("backup", Type::Bool, "keep the old file under a name with the time").default("false"),
        Arg::new("return_content", Type::Bool, "not supported: read the file by `slurp`").default("false"),
        Arg::new("select_crypto_backend", Type::Str, "has no effect: it is openssl").default("auto").choices(&[
            "auto",
            "cryptography",
            "openssl",
        ]),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("filename", "the file"), ("size", "its bits"), ("backup_file", "where the old file is kept")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    if args.bool("return_content") {
        return Err(Failure::new("the argument `return_content` is not supported: read the file by `slurp`"));
    }
    let seen = look(&host, &args, args.text("path"), false).await?;
    let path = seen.named.clone();
    if args.text("state") == "absent" {
        return remove(&host, &seen, &path).await;
    }
    let size = args.int("size").unwrap_or(4096);
    if !(512..=16384).contains(&size) {
        return Err(Failure::new(format!("parameters of {size} bits cannot be made")));
    }
    let outcome = |outcome: Outcome| outcome.with("filename", path.as_str()).with("size", size);
    let is_so = match seen.attributes.is_some() && !args.bool("force") {
        false => false,
        true => {
            let code = format!("openssl dhparam -in {} -noout -text", quote(&path));
            let told = ask(&host, &code, &[&path]).await?;
            told.is_ok_and(|text| text.contains(&format!("({size} bit)")))
        }
    };
    if is_so {
        return Ok(outcome(write(&host, &args, &seen, None).await?));
    }
    let after = written(seen.attributes.as_ref(), seen.above.as_ref(), &seen.me, &seen.permissions, 0);
    let backup = args.bool("backup").then(|| backup_name(&path)).filter(|_| seen.attributes.is_some());
    let keep =
        backup.as_ref().map(|backup| format!("cp -p {} {} || exit\n", quote(&path), quote(backup))).unwrap_or_default();
    let real = quote(&seen.real);
    let script = format!(
        "{START}umask 077\nd=$(dirname {real}); t=$(mktemp \"$d/.trimtab.XXXXXX\") || exit\ntrap 'rm -f \"$t\"' EXIT\n{keep}\
         openssl dhparam {size} >\"$t\" 2>/dev/null || exit\n[ -s \"$t\" ] || exit 1\nchown {}:{} \"$t\" && chmod 0{:04o} \"$t\" && mv -f \"$t\" {real}",
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
        _ => Inverse::None("the old parameters were not read".to_owned()),
    };
    let footprint = Footprint::path(path.as_str()).and(Footprint::path(seen.real.as_str()));
    let change = Change::uncertain(format!("parameters {path}"), footprint)
        .step(Step::new(script).writes(seen.real.as_str()))
        .inverse(inverse)
        .difference(Difference::new(path.as_str(), "", format!("parameters of {size} bits\n")));
    make(&host, change).await?;
    let done = outcome(Outcome::changed());
    Ok(match backup {
        Some(backup) => done.with("backup_file", backup),
        None => done,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, snapshot, undo};
    use crate::value::Value;

    #[test]
    fn parameters_are_made_once_and_taken_back() {
        if std::process::Command::new("openssl").arg("version").output().is_err() {
            skip("this machine has no openssl");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("dh.pem");
        let empty = snapshot(root.path());
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own = [("path", path.to_str().unwrap().into()), ("size", 512.into()), ("mode", "0640".into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { check, ..Play::default() })
        };
        assert!(run(&[], true).result.unwrap().changed && snapshot(root.path()) == empty);
        let made = run(&[], false);
        assert!(made.result.unwrap().changed && snapshot(root.path())[0].contains(" 640 "));
        for check in [true, false] {
            assert!(!run(&[], check).result.unwrap().changed);
        }
        let before = snapshot(root.path());
        let anew = run(&[("force", true.into())], false);
        assert!(anew.result.unwrap().changed && snapshot(root.path()) != before);
        undo(&anew.changes);
        assert_eq!(snapshot(root.path()), before);
        undo(&made.changes);
        assert_eq!(snapshot(root.path()), empty);
    }
}
