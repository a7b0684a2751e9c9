//! ansible.builtin.yum_repository: a repository in `/etc/yum.repos.d`.

use std::collections::BTreeMap;

use crate::host::Failure;
use crate::value::Value;

use super::file_common::content::difference;
use super::file_common::destination::{Manner, look, plan_edit};
use super::file_common::permissions::{MODE, OWNERSHIP};
use super::package_common::removal::remove;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.yum_repository",
    aliases: &[],
    summary: "Adds a repository of RPM packages to a file, or removes it",
    args: &[
        Arg::new("name", Type::Str, "The id of the repository, and the file's name if there is no `file`").required(),
        Arg::new("state", Type::Str, "Whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("description", Type::Str, "Its name for people"),
        Arg::new("baseurl", Type::List, "Where it is"),
        Arg::new("mirrorlist", Type::Str, "Where a list of its mirrors is"),
        Arg::new("metalink", Type::Str, "Where a metalink file of its mirrors is"),
        Arg::new("file", Type::Str, "The file's name without `.repo`"),
        Arg::new("reposdir", Type::Path, "The directory of the file").default("/etc/yum.repos.d"),
        Arg::new("enabled", Type::Bool, "Whether it is used"),
        Arg::new("gpgcheck", Type::Bool, "Check signatures of packages"),
        Arg::new("gpgkey", Type::List, "Where its keys are"),
        Arg::new("repo_gpgcheck", Type::Bool, "Check the signature of its list of packages"),
        Arg::new("gpgcakey", Type::Str, "Where the key of its certificate authority is"),
        Arg::new("exclude", Type::List, "Packages not to take from it").aliases(&["excludepkgs"]),
        Arg::new("includepkgs", Type::List, "The only packages to take from it"),
        Arg::new("priority", Type::Str, "1 to 99; less goes first"),
        Arg::new("cost", Type::Str, "What it costs relative to others"),
        Arg::new("module_hotfixes", Type::Bool, "Do not filter its packages by module streams"),
        Arg::new("metadata_expire", Type::Str, "How long its list of packages will do"),
        Arg::new("metadata_expire_filter", Type::Str, "For which commands the list may be older").choices(&[
            "never",
            "read-only:past",
            "read-only:present",
            "read-only:future",
        ]),
        Arg::new("mirrorlist_expire", Type::Str, "How long the list of mirrors will do"),
        Arg::new("skip_if_unavailable", Type::Bool, "Go on if it does not answer"),
        Arg::new("enablegroups", Type::Bool, "Use its groups"),
        Arg::new("failovermethod", Type::Str, "In which order URLs are tried").choices(&["roundrobin", "priority"]),
        Arg::new("sslverify", Type::Bool, "Check its certificate").aliases(&["validate_certs"]),
        Arg::new("sslcacert", Type::Str, "The file of certificate authorities").aliases(&["ca_cert"]),
        Arg::new("sslclientcert", Type::Str, "The file of the client's certificate").aliases(&["client_cert"]),
        Arg::new("sslclientkey", Type::Str, "The file of the client's key").aliases(&["client_key"]),
        Arg::new("ssl_check_cert_permissions", Type::Bool, "Check the permissions of certificates"),
        Arg::new("username", Type::Str, "The name to log in with"),
        Arg::new("password", Type::Str, "The password to log in with").secret(),
        Arg::new("proxy", Type::Str, "The proxy's URL, or `_none_`"),
        Arg::new("proxy_username", Type::Str, "The name for the proxy"),
        Arg::new("proxy_password", Type::Str, "The password for the proxy").secret(),
        Arg::new("bandwidth", Type::Str, "The most bytes a second there are"),
        Arg::new("throttle", Type::Str, "The most bytes a second to use"),
        Arg::new("timeout", Type::Str, "Seconds to wait for it"),
        Arg::new("retries", Type::Str, "How often to try"),
        Arg::new("ip_resolve", Type::Str, "The version of IP").choices(&["4", "6", "IPv4", "IPv6", "whatever"]),
        Arg::new("keepalive", Type::Bool, "Keep connections open"),
        Arg::new("keepcache", Type::Str, "Keep fetched packages").choices(&["0", "1"]),
        Arg::new("http_caching", Type::Str, "What caches on the way may keep").choices(&["all", "packages", "none"]),
        Arg::new("countme", Type::Bool, "Let it count this host"),
        Arg::new("deltarpm_percentage", Type::Str, "How small a delta must be"),
        Arg::new("deltarpm_metadata_percentage", Type::Str, "How small a list of deltas must be"),
        Arg::new("include", Type::Str, "A further file of configuration"),
        Arg::new("protect", Type::Bool, "Other repositories do not update its packages"),
        Arg::new("s3_enabled", Type::Bool, "It is in a store of Amazon S3"),
        Arg::new("ui_repoid_vars", Type::Str, "Variables that are shown with the id"),
        Arg::new("async", Type::Bool, "Fetch packages in the background"),
        MODE,
        Arg::shared(OWNERSHIP),
    ],
    rules: &[Rule::RequiredIf("state", "present", &["description"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("repo", "the id of the repository"), ("state", "whether it is there")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// The arguments that are not settings of the repository.
const OTHERS: &[&str] = &[
    "name",
    "state",
    "description",
    "file",
    "reposdir",
    "mode",
    "owner",
    "group",
    "seuser",
    "serole",
    "setype",
    "selevel",
    "attributes",
    "unsafe_writes",
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (name, state) = (args.text("name"), args.text("state"));
    let present = state == "present";
    if name.contains(['[', ']', '\n', '/']) || name.is_empty() {
        return Err(Failure::new(format!("`{name}` is not the id of a repository")));
    }
    if present && !["baseurl", "mirrorlist", "metalink"].iter().any(|source| args.has(source)) {
        let message = "state is present but any of the following are missing: baseurl, mirrorlist, metalink";
        return Err(Failure::new(message));
    }
    let directory = args.text("reposdir").trim_end_matches('/');
    let path = format!("{directory}/{}.repo", args.str("file").unwrap_or(name));
    let seen = look(&host, &args, &path, true).await?;
    if !seen.missing_directories.is_empty() {
        return Err(Failure::new(format!("Repo directory '{directory}' does not exist.")));
    }
    let old = String::from_utf8_lossy(seen.content.as_deref().unwrap_or_default()).into_owned();
    let wanted = present.then(|| settings(&args));
    let new = edited(&old, name, wanted.as_ref());
    let change = match &new {
        Some(new) if !present && new.trim().is_empty() => remove(&seen),
        new => {
            let manner = Manner { unsafe_writes: args.bool("unsafe_writes"), ..Manner::default() };
            plan_edit(&seen, new.as_ref().map(|new| new.clone().into_bytes()), &manner).change
        }
    };
    let mut outcome = Outcome::with_changed(change.is_some());
    if let Some(mut change) = change {
        let after = new.unwrap_or_else(|| old.clone());
        let secrets = ["password", "proxy_password"];
        if !secrets.iter().any(|secret| args.has(secret)) {
            let shown = difference((&path, &path), Some(old.as_bytes()), false, after.as_bytes());
            change = change.difference(shown.clone());
            outcome = outcome.differences([shown]);
        }
        host.change(change).await?;
    }
    Ok(outcome.with("repo", name).with("state", state))
}

/// The settings that the section is to have.
fn settings(args: &Args) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    settings.insert("name".to_owned(), args.text("description").to_owned());
    for (name, value) in args.map() {
        let name = name.to_text();
        if OTHERS.contains(&name.as_ref()) {
            continue;
        }
        let text = match value {
            Value::Bool(flag) => if *flag { "1" } else { "0" }.to_owned(),
            Value::List(_) => {
                let between = if matches!(name.as_ref(), "baseurl" | "gpgkey") { "\n" } else { " " };
                args.list(&name).join(between)
            }
            other => other.to_text().into_owned(),
        };
        settings.insert(name.into_owned(), text);
    }
    settings
}

/// A section of the file: its lines from the heading on, and what it says.
struct Section {
    first: usize,
    end: usize,
    settings: BTreeMap<String, String>,
}

fn find_section(lines: &[&str], name: &str) -> Option<Section> {
    let heading =
        |line: &str| line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(id, _)| id.to_owned());
    let first = lines.iter().position(|line| heading(line).as_deref() == Some(name))?;
    let end =
        lines[first + 1..].iter().position(|line| heading(line).is_some()).map_or(lines.len(), |at| first + 1 + at);
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Option<String> = None;
    for line in &lines[first + 1..end] {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with([' ', '\t'])
            && let Some(value) = last.as_ref().and_then(|key| settings.get_mut(key))
        {
            value.push('\n');
            value.push_str(bare);
            continue;
        }
        if let Some((key, value)) = bare.split_once(['=', ':']) {
            let key = key.trim().to_ascii_lowercase();
            settings.insert(key.clone(), value.trim().to_owned());
            last = Some(key);
        }
    }
    Some(Section { first, end, settings })
}

/// The file's text with the section as wanted, or without it; `None` if it is right already. The rest stays as it is.
fn edited(text: &str, name: &str, wanted: Option<&BTreeMap<String, String>>) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let section = find_section(&lines, name);
    let trimmed = |settings: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        settings.iter().map(|(key, value)| (key.clone(), value.trim().to_owned())).collect()
    };
    let new = match (wanted, &section) {
        (None, None) => return None,
        (Some(wanted), Some(section)) if trimmed(wanted) == section.settings => return None,
        (None, Some(_)) => String::new(),
        (Some(wanted), _) => {
            let entry = |(key, value): (&String, &String)| format!("{key} = {}\n", value.replace('\n', "\n\t"));
            format!("[{name}]\n{}\n", wanted.iter().map(entry).collect::<String>())
        }
    };
    Some(match section {
        Some(section) => format!("{}{new}{}", lines[..section.first].concat(), lines[section.end..].concat()),
        None if text.is_empty() || text.ends_with("\n\n") => format!("{text}{new}"),
        None if text.ends_with('\n') => format!("{text}\n{new}"),
        None => format!("{text}\n\n{new}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, check_module, play, run_module, undo};

    #[test]
    fn a_repository_is_added_changed_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let directory = Value::from(root.path().to_string_lossy().as_ref());
        let file = root.path().join("zz.repo");
        let mut given: Vec<(&str, Value)> = vec![
            ("name", "zz".into()),
            ("description", "Zz of $releasever".into()),
            ("baseurl", Value::list(vec!["https://a.example/zz".into(), "https://b.example/zz".into()])),
            ("enabled", false.into()),
            ("exclude", "kernel*,mysql*".into()),
            ("reposdir", directory.clone()),
            ("mode", "0644".into()),
        ];
        assert!(check_module(&MODULE, &given).unwrap().changed);
        assert!(!file.exists());
        let added = play(&MODULE, &given, &Play::default());
        assert!(added.result.unwrap().changed && added.changes[0].certain);
        let text = "[zz]\nbaseurl = https://a.example/zz\n\thttps://b.example/zz\nenabled = 0\n\
                    exclude = kernel* mysql*\nname = Zz of $releasever\n\n";
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        let again = play(&MODULE, &given, &Play::default());
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        std::fs::write(&file, format!("# kept\n[aa]\nname=aa\n\n{text}[bb]\nname: bb\n")).unwrap();
        given[3].1 = true.into();
        assert!(run_module(&MODULE, &given).unwrap().changed);
        let changed = text.replace("enabled = 0", "enabled = 1");
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            format!("# kept\n[aa]\nname=aa\n\n{changed}[bb]\nname: bb\n")
        );
        let removal = [("name", "zz".into()), ("state", "absent".into()), ("reposdir", directory.clone())];
        assert!(run_module(&MODULE, &removal).unwrap().changed);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# kept\n[aa]\nname=aa\n\n[bb]\nname: bb\n");
        assert!(!run_module(&MODULE, &removal).unwrap().changed);
        std::fs::write(&file, text).unwrap();
        let played = play(&MODULE, &removal, &Play::default());
        assert!(played.result.unwrap().changed && !file.exists());
        undo(&played.changes);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn a_section_that_says_the_same_is_left_alone() {
        let wanted: BTreeMap<String, String> =
            [("name", "Zz"), ("baseurl", "a\nb"), ("gpgcheck", "1")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let text = "[zz]\nname=Zz\n# a remark\nbaseurl=a\n        b\nGpgCheck: 1\n";
        assert_eq!(edited(text, "zz", Some(&wanted)), None);
        assert!(edited(&text.replace("=Zz", "=Yy"), "zz", Some(&wanted)).is_some());
        assert_eq!(edited(text, "yy", None), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |given: &[(&str, Value)]| check_module(&MODULE, given).unwrap_err().message;
        assert!(refused(&[("name", "zz".into())]).contains("description"));
        assert!(
            refused(&[("name", "zz".into()), ("description", "Zz".into())]).contains("baseurl, mirrorlist, metalink")
        );
        let given = [
            ("name", "zz".into()),
            ("description", "Zz".into()),
            ("baseurl", "a".into()),
            ("reposdir", "/no/such".into()),
        ];
        assert_eq!(refused(&given), "Repo directory '/no/such' does not exist.");
    }
}
