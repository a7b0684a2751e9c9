//! ansible.builtin.rpm_key: the keys by which rpm knows whom to trust.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileContent, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step, Subject};

use super::execution::environment;
use super::package_common::download;
use super::package_common::openpgp::{Key, keys};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.rpm_key",
    aliases: &[],
    summary: "Imports or removes the keys by which rpm checks packages",
    args: &[
        Arg::new("key", Type::Str, "The key: a file on the host, a URL, or with state=absent its id").required(),
        Arg::new("state", Type::Str, "Whether rpm has it").default("present").choices(&["absent", "present"]),
        Arg::new("fingerprint", Type::List, "Fingerprints that must be in the key before it is imported"),
        Arg::new("validate_certs", Type::Bool, "Check the certificate of the URL").default("true"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("key_id", "the id of the key")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Lists the keys: a line with version and release, then the key itself.
const LIST: &str = "rpm -q gpg-pubkey --qf '\u{1e}%{VERSION}-%{RELEASE}\\n%{DESCRIPTION}\\n'";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let environment = environment(&settings)?;
    let given = args.text("key").trim();
    let present = args.text("state") == "present";
    let text = format!("command -v rpm >/dev/null || {{ echo 'the host has no `rpm`' >&2; exit 127; }}\n{LIST} || :\n");
    let list = Script { text, footprint: Footprint::Of(vec![Subject::Packages]) };
    let content = async {
        if given.contains("://") {
            download::read(&host, &environment, given, args.bool("validate_certs")).await.map(Some)
        } else if given.starts_with('/') {
            match host.read(FileContent(given.to_owned())).await? {
                Some(content) => Ok(Some(content)),
                None => Err(Failure::new(format!("Not a valid key {given}: there is no such file on the host"))),
            }
        } else {
            Ok(None)
        }
    };
    let (list, content) = futures_util::join!(host.read(list), content);
    let (list, content) = (list?, content?);
    if !list.success() {
        return Err(Failure::new(format!("the keys of rpm cannot be read: {}", list.error_text().trim())));
    }
    let wanted = match &content {
        Some(content) => {
            let found = keys(content);
            if !found.iter().any(|key| !key.is_subkey) {
                return Err(Failure::new(format!("Not a public key: {given}")));
            }
            found
        }
        None => vec![by_id(given)?],
    };
    let id = wanted[0].id.clone();
    let installed = installed(&list);
    let here = installed.iter().find(|(_, keys)| keys.iter().any(|key| key.id.ends_with(&id)));
    let outcome = Outcome::ok().with("key_id", id.as_str());
    let list_again = "rpm -q gpg-pubkey --qf '%{VERSION}\\n' || :";
    let change = match (present, here) {
        (true, Some(_)) | (false, None) => return Ok(outcome),
        (true, None) => {
            let Some(content) = content else {
                return Err(Failure::new("When importing a key, a valid file must be given"));
            };
            check_fingerprints(&args.list("fingerprint"), &wanted)?;
            let names: Vec<String> = primary(&wanted).map(|key| format!("gpg-pubkey-{}", short(&key.id))).collect();
            Change::uncertain(format!("rpm key {id}"), Footprint::Of(vec![Subject::Packages]))
                .step(import(content))
                .difference(Difference::new("keys of rpm", "", format!("{id}\n")))
                .inverse(Inverse::Steps(vec![Step::new(format!("rpm -e --allmatches {}", names.join(" ")))]))
        }
        (false, Some((label, _))) => {
            let armored =
                list.text().split('\u{1e}').find_map(|entry| entry.strip_prefix(label.as_str())).map(str::to_owned);
            let inverse = match armored {
                Some(armored) => Inverse::Steps(vec![import(armored.into_bytes())]),
                None => Inverse::None("rpm did not tell the key".to_owned()),
            };
            Change::uncertain(format!("removal of rpm key {id}"), Footprint::Of(vec![Subject::Packages]))
                .step(Step::new(format!("rpm -e --allmatches {}", quote(&format!("gpg-pubkey-{label}")))))
                .difference(Difference::new("keys of rpm", format!("{id}\n"), ""))
                .inverse(inverse)
        }
    };
    let outcome = Outcome { changed: true, ..outcome }.differences(change.differences.clone());
    let applied = host.change(change.step(Step::new(list_again))).await?;
    if applied.check {
        return Ok(outcome);
    }
    prove(&applied.responses, &id, present)?;
    Ok(outcome)
}

/// The key is there, or gone.
fn prove(responses: &[Response], id: &str, present: bool) -> Result<(), Failure> {
    let [done, listed] = responses else { return Err(Failure::new("rpm gave no answer")) };
    if !done.success() {
        return Err(Failure::new(format!("rpm failed: {}", done.error_text().trim())));
    }
    let is_there = listed.text().lines().any(|version| version.ends_with(&short(id)));
    if is_there == present {
        return Ok(());
    }
    let what = if present { "was imported, but rpm does not have it" } else { "was removed, but rpm has it still" };
    Err(Failure::new(format!("key {id} {what}")))
}

fn import(content: Vec<u8>) -> Step {
    Step::new("t=$(mktemp) || exit\ntrap 'rm -f \"$t\"' EXIT\ncat >\"$t\" && rpm --import \"$t\"").stdin(content)
}

fn primary(keys: &[Key]) -> impl Iterator<Item = &Key> {
    keys.iter().filter(|key| !key.is_subkey)
}

/// What rpm calls the version of a key: the last eight digits of its id.
fn short(id: &str) -> String {
    id[id.len().saturating_sub(8)..].to_ascii_lowercase()
}

/// `0xDEADB33F` or longer.
fn by_id(text: &str) -> Result<Key, Failure> {
    let id = text.trim_start_matches("0x").trim_start_matches("0X").replace(' ', "").to_ascii_uppercase();
    if id.len() < 8 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::new(format!("Not a valid key {text}: it is no absolute path, URL or key id")));
    }
    let id = id[id.len() - id.len().min(16)..].to_owned();
    Ok(Key { fingerprint: id.clone(), id, is_subkey: false })
}

/// Version and release of each key of rpm, and the ids in it.
fn installed(list: &Response) -> Vec<(String, Vec<Key>)> {
    list.text()
        .split('\u{1e}')
        .skip(1)
        .filter_map(|entry| {
            let (label, armored) = entry.split_once('\n')?;
            let mut found: Vec<Key> = keys(armored.as_bytes()).into_iter().filter(|key| !key.is_subkey).collect();
            if found.is_empty() {
                let id = label.split('-').next()?.to_ascii_uppercase();
                found.push(Key { fingerprint: id.clone(), id, is_subkey: false });
            }
            Some((label.to_owned(), found))
        })
        .collect()
}

fn check_fingerprints(wanted: &[String], found: &[Key]) -> Result<(), Failure> {
    let plain = |text: &String| text.replace([' ', ':'], "").to_ascii_uppercase();
    let missing = wanted.iter().find(|wanted| !found.iter().any(|key| key.fingerprint == plain(wanted)));
    match missing {
        None => Ok(()),
        Some(missing) => {
            let found: Vec<&str> = found.iter().map(|key| key.fingerprint.as_str()).collect();
            Err(Failure::new(format!(
                "The specified fingerprint, '{missing}', does not match any key fingerprints in the key: {}",
                found.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::has;
    use crate::modules::package_common::openpgp::tests::sample;
    use crate::modules::testing::{Play, play};
    use crate::value::Value;

    /// A shell whose rpm has a database of its own.
    fn shell(directory: &std::path::Path) -> &'static str {
        let macros = format!("%_dbpath {}/db\n", directory.display());
        std::fs::write(directory.join(".rpmmacros"), macros).unwrap();
        std::fs::write(directory.join("key.asc"), sample().1).unwrap();
        Box::leak(format!("env HOME={} sh", directory.display()).into_boxed_str())
    }

    #[test]
    fn a_key_is_imported_once_and_can_be_taken_back() {
        if !has(&["rpm", "gpg"]) {
            return;
        }
        // a key that is signed by itself, as rpm wants it
        let directory = tempfile::tempdir().unwrap();
        let shell = shell(directory.path());
        let path = directory.path().join("signed.asc");
        let script = format!(
            "export GNUPGHOME={0}/gpg; mkdir -m 700 {0}/gpg; gpg --batch --quiet --passphrase '' --quick-gen-key \
             'a test <test@example.org>' rsa2048 sign never 2>/dev/null && gpg --armor --export >{1}; gpgconf --kill all",
            directory.path().display(),
            path.display()
        );
        crate::modules::package_common::lab::shell(&script);
        let id = keys(&std::fs::read(&path).unwrap())[0].clone();
        let path = path.to_string_lossy().into_owned();
        let run = |given: &[(&str, Value)], check| play(&MODULE, given, &Play { shell, check });
        let given = [("key", path.as_str().into())];
        assert!(run(&given, true).result.unwrap().changed);
        let wrong = [given[0].clone(), ("fingerprint", "AAAA".into())];
        assert!(run(&wrong, false).result.unwrap_err().message.contains("AAAA"));
        let right = [given[0].clone(), ("fingerprint", id.fingerprint.as_str().into())];
        let played = run(&right, false);
        assert_eq!(played.result.unwrap().result["key_id"], id.id.as_str().into());
        let again = run(&given, false);
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        let removal = [("key", format!("0x{}", &id.id[8..]).into()), ("state", "absent".into())];
        let removed = run(&removal, false);
        assert!(removed.result.unwrap().changed);
        assert!(!run(&removal, false).result.unwrap().changed);
        for change in removed.changes.iter().chain(&played.changes) {
            let Inverse::Steps(steps) = &change.inverse else { panic!("{} has no inverse", change.what) };
            for step in steps {
                let stdin = step.stdin.clone().unwrap_or_default();
                let file = directory.path().join("stdin");
                std::fs::write(&file, stdin).unwrap();
                let script =
                    format!("export HOME={}; ({}) <{}", directory.path().display(), step.script, file.display());
                crate::modules::package_common::lab::shell(&script);
            }
            let is_there = !run(&given, true).result.unwrap().changed;
            assert_eq!(is_there, change.what.starts_with("removal"));
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("a.txt");
        std::fs::write(&text, "not a key").unwrap();
        if !has(&["rpm"]) {
            return;
        }
        for (key, words) in
            [(text.to_string_lossy().as_ref(), "Not a public key"), ("/no/such", "no such file"), ("xyz", "key id")]
        {
            let failure = play(&MODULE, &[("key", key.into())], &Play { shell: shell(directory.path()), check: true });
            let message = failure.result.unwrap_err().message;
            assert!(message.contains(words), "{key}: {message}");
        }
        let given = [("key", "DEADBEEF".into())];
        let failure = play(&MODULE, &given, &Play { shell: shell(directory.path()), check: true }).result.unwrap_err();
        assert_eq!(failure.message, "When importing a key, a valid file must be given");
    }
}
