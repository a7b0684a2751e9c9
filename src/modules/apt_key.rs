//! ansible.builtin.apt_key: keys that apt trusts, kept in its keyring files. Neither apt-key nor gpg is needed.

use base64::Engine;

use crate::host::reads::{FileContent, Script};
use crate::host::{Failure, Footprint};
use crate::value::Value;

use super::execution::environment;
use super::file_common::destination::{Manner, look, plan_edit};
use super::package_common::deb_request::preparation;
use super::package_common::openpgp::{self, Key, keys};
use super::package_common::removal::remove;
use super::package_common::{download, tool::texts};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.apt_key",
    aliases: &[],
    summary: "Adds a key to those that apt trusts, or removes it",
    args: &[
        Arg::new("id", Type::Str, "The id or fingerprint of the key"),
        Arg::new("url", Type::Str, "Where the key is"),
        Arg::new("data", Type::Str, "The key itself"),
        Arg::new("file", Type::Path, "The key's file on the host"),
        Arg::new("keyserver", Type::Str, "The key server to ask for `id`"),
        Arg::new("keyring", Type::Path, "The keyring file; without it a new one in trusted.gpg.d, named by the key"),
        Arg::new("state", Type::Str, "Whether apt trusts it").default("present").choices(&["absent", "present"]),
        Arg::new("validate_certs", Type::Bool, "Check the certificate of the URL").default("true"),
    ],
    rules: &[super::Rule::MutuallyExclusive(&["data", "file", "keyserver", "url"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("key_id", "the id of the key"),
        ("fp", "its fingerprint"),
        ("short_id", "the last eight digits of its id"),
        ("before", "the fingerprints that apt trusted before"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// A keyring file of apt.
struct Keyring {
    path: String,
    content: Vec<u8>,
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let environment = environment(&settings)?;
    let present = args.text("state") == "present";
    let id = args.str("id").map(plain_id).transpose()?;
    if !present && id.is_none() {
        return Err(Failure::new("key_id is required with state=absent: set `id`"));
    }
    let files = match args.str("keyring") {
        Some(path) => crate::connect::shell::quote(path),
        None => "\"${e}trusted.gpg\" \"${e}trusted.gpg.d\"/*".to_owned(),
    };
    let text = format!(
        "{}e=/etc/apt/\n[ -z \"$APT_CONFIG\" ] || eval \"$(apt-config shell e Dir::Etc/d)\"\nprintf '%s\\n' \"$e\"\n\
         for f in {files}; do [ ! -f \"$f\" ] || {{ printf '\\036%s\\n' \"$f\"; base64 <\"$f\"; }}; done\n",
        preparation(&environment)
    );
    let footprint = match args.str("keyring") {
        Some(path) => Footprint::path(path),
        None => Footprint::tree("/etc/apt"),
    };
    let answer = host.read(Script { text, footprint }).await?.text();
    let mut parts = answer.split('\u{1e}');
    let directory = parts.next().unwrap_or_default().trim().to_owned();
    let rings: Vec<Keyring> = parts.filter_map(keyring).collect();
    let before: Vec<Key> = rings.iter().flat_map(|ring| keys(&ring.content)).collect();
    let fingerprints: Vec<&str> =
        before.iter().filter(|key| !key.is_subkey).map(|key| key.fingerprint.as_str()).collect();
    let outcome = Outcome::ok().with("before", texts(&fingerprints));
    let is_it = |key: &Key, id: &str| key.fingerprint.ends_with(id);
    if let Some(id) = &id
        && before.iter().any(|key| is_it(key, id)) == present
    {
        let found = before.iter().find(|key| is_it(key, id));
        return Ok(named(outcome, found, id));
    }
    if !present {
        let id = id.unwrap_or_default();
        for ring in rings.iter().filter(|ring| keys(&ring.content).iter().any(|key| is_it(key, &id))) {
            let rest = openpgp::without(&ring.content, &id);
            let seen = look(&host, &Args::default(), &ring.path, false).await?;
            let change =
                if rest.is_empty() { remove(&seen) } else { plan_edit(&seen, Some(rest), &Manner::default()).change };
            if let Some(change) = change {
                host.change(change).await?;
            }
        }
        let found = before.iter().find(|key| is_it(key, &id));
        return Ok(named(Outcome { changed: true, ..outcome }, found, &id));
    }
    let content = match (args.str("data"), args.str("file"), args.str("url"), args.str("keyserver")) {
        (Some(data), ..) => data.as_bytes().to_vec(),
        (_, Some(path), ..) => host
            .read(FileContent(path.to_owned()))
            .await?
            .ok_or_else(|| Failure::new(format!("there is no key file {path} on the host")))?,
        (_, _, Some(url), _) => download::read(&host, &environment, url, args.bool("validate_certs")).await?,
        (.., Some(server)) => {
            let Some(id) = &id else { return Err(Failure::new("`keyserver` needs the `id` of the key")) };
            download::read(&host, &environment, &key_server_url(server, id), args.bool("validate_certs")).await?
        }
        _ => return Err(Failure::new("one of data, file, url and keyserver is needed to add a key")),
    };
    let found = keys(&content);
    let Some(main) = found.iter().find(|key| !key.is_subkey) else {
        return Err(Failure::new("what is to be added is no public key"));
    };
    if let Some(id) = &id
        && !found.iter().any(|key| is_it(key, id))
    {
        let message = format!("the key does not match the id specified: {id} is not in {}", main.fingerprint);
        return Err(Failure::new(message));
    }
    let is_known = |key: &Key| before.iter().any(|known| known.fingerprint == key.fingerprint);
    if found.iter().filter(|key| !key.is_subkey).all(is_known) {
        return Ok(named(outcome, Some(main), &main.id));
    }
    let Some(binary) = openpgp::binary(&content) else {
        return Err(Failure::new("the armor of the key cannot be read"));
    };
    let path = args.str("keyring").map_or_else(|| format!("{directory}trusted.gpg.d/{}.gpg", main.id), str::to_owned);
    let old =
        rings.iter().find(|ring| ring.path == path).map(|ring| openpgp::binary(&ring.content).unwrap_or_default());
    let new = [old.unwrap_or_default(), binary].concat();
    let seen = look(&host, &Args::default(), &path, true).await?;
    if let Some(change) = plan_edit(&seen, Some(new), &Manner::default()).change {
        host.change(change).await?;
    }
    Ok(named(Outcome { changed: true, ..outcome }, Some(main), &main.id))
}

fn named(outcome: Outcome, key: Option<&Key>, id: &str) -> Outcome {
    let full = key.map_or(id, |key| key.id.as_str());
    let fingerprint: Value = key.map(|key| key.fingerprint.clone()).into();
    outcome
        .with("id", id)
        .with("key_id", full)
        .with("fp", fingerprint)
        .with("short_id", &full[full.len().saturating_sub(8)..])
}

/// Upper case, without `0x` and blanks: 8, 16 or 40 digits.
fn plain_id(text: &str) -> Result<String, Failure> {
    let id = text.trim().trim_start_matches("0x").trim_start_matches("0X").replace(' ', "").to_ascii_uppercase();
    if id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(id)
    } else {
        Err(Failure::new(format!("`{text}` is not the id of a key: 8, 16 or 40 hexadecimal digits")))
    }
}

fn keyring(part: &str) -> Option<Keyring> {
    let (path, body) = part.split_once('\n')?;
    let body: String = body.split_whitespace().collect();
    let content = base64::engine::general_purpose::STANDARD.decode(body).ok()?;
    Some(Keyring { path: path.to_owned(), content })
}

/// Key servers speak HTTP (draft-shaw-openpgp-hkp); their own port is 11371.
fn key_server_url(server: &str, id: &str) -> String {
    let base = match server.split_once("://") {
        Some(("hkp", rest)) if rest.contains(':') => format!("http://{rest}"),
        Some(("hkp", rest)) => format!("http://{rest}:11371"),
        Some(("hkps", rest)) => format!("https://{rest}"),
        Some(_) => server.to_owned(),
        None => format!("https://{server}"),
    };
    format!("{}/pks/lookup?op=get&options=mr&search=0x{id}", base.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::has;
    use crate::modules::package_common::openpgp::tests::sample;
    use crate::modules::testing::{Play, play, undo};

    #[test]
    fn a_key_is_added_to_a_keyring_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let ring = root.path().join("ring.gpg");
        let (binary, armored) = sample();
        let id = keys(&binary)[0].clone();
        let ring_value = Value::from(ring.to_string_lossy().as_ref());
        let run = |more: &[(&'static str, Value)], check| {
            let given = [&[("keyring", ring_value.clone())], more].concat();
            play(&MODULE, &given, &Play { check, ..Play::default() })
        };
        let add = [("data", armored.as_str().into()), ("id", id.id.as_str().into())];
        assert!(run(&add, true).result.unwrap().changed && !ring.exists());
        let added = run(&add, false);
        let outcome = added.result.unwrap();
        assert_eq!((outcome.changed, outcome.result["fp"].clone()), (true, id.fingerprint.as_str().into()));
        assert_eq!(std::fs::read(&ring).unwrap(), binary);
        assert_eq!(run(&add, false).batches, 1);
        assert!(!run(&add[..1], false).result.unwrap().changed);
        let removal = [("id", format!("0x{}", &id.id[8..]).into()), ("state", "absent".into())];
        let removed = run(&removal, false);
        assert!(removed.result.unwrap().changed && !ring.exists());
        assert!(!run(&removal, false).result.unwrap().changed);
        undo(&removed.changes);
        assert_eq!(std::fs::read(&ring).unwrap(), binary);
        undo(&added.changes);
        assert!(!ring.exists());
        let wrong = [add[0].clone(), ("id", "DEADBEEF".into())];
        assert!(run(&wrong, false).result.unwrap_err().message.contains("does not match the id"));
        assert!(run(&[("data", "x".into())], false).result.unwrap_err().message.contains("no public key"));
        assert!(run(&[("state", "absent".into())], false).result.unwrap_err().message.contains("key_id is required"));
    }

    #[test]
    fn one_key_is_cut_out_of_many() {
        let keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let Ok(content) = std::fs::read(keyring) else { return };
        if !has(&["base64"]) {
            return;
        }
        let all = keys(&content);
        let main: Vec<&Key> = all.iter().filter(|key| !key.is_subkey).collect();
        let rest = openpgp::without(&content, &main[1].id);
        let left: Vec<String> = keys(&rest).into_iter().filter(|key| !key.is_subkey).map(|key| key.id).collect();
        assert_eq!(left.len(), main.len() - 1);
        assert!(!left.contains(&main[1].id) && left.contains(&main[0].id));
        // a subkey stands for its key
        let sub = all.iter().find(|key| key.is_subkey).unwrap();
        assert_eq!(
            keys(&openpgp::without(&content, &sub.id)).iter().filter(|key| !key.is_subkey).count(),
            main.len() - 1
        );
    }

    #[test]
    fn key_servers_are_asked_by_http() {
        let cases = [
            ("keyserver.ubuntu.com", "https://keyserver.ubuntu.com/pks"),
            ("hkp://keys.example:80", "http://keys.example:80/pks"),
            ("hkp://keys.example", "http://keys.example:11371/pks"),
            ("hkps://keys.example", "https://keys.example/pks"),
        ];
        for (server, start) in cases {
            assert!(key_server_url(server, "AA").starts_with(start), "{server}");
        }
    }
}
