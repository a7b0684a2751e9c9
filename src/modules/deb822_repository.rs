//! ansible.builtin.deb822_repository: a file of sources for apt in the format of deb822(5).

use crate::host::Failure;
use crate::value::Value;

use super::execution::environment;
use super::file_common::content::difference;
use super::file_common::destination::{Destination, Manner, look, plan_edit};
use super::file_common::permissions::MODE;
use super::package_common::removal::remove;
use super::package_common::{download, openpgp};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.deb822_repository",
    aliases: &[],
    summary: "Adds a file of sources for apt with its key, or removes it",
    args: &[
        Arg::new("name", Type::Str, "The name, of which the files are named").required(),
        Arg::new("state", Type::Str, "Whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("types", Type::List, "Packages, sources of packages, or both")
            .default("deb")
            .choices(&["deb", "deb-src"]),
        Arg::new("uris", Type::List, "Where it is"),
        Arg::new("suites", Type::List, "The suites, or a path that ends in `/`"),
        Arg::new("components", Type::List, "The components of the suites"),
        Arg::new("signed_by", Type::Str, "Its key: a URL, a file on the host, fingerprints, or the key itself"),
        Arg::new("architectures", Type::List, "The architectures to take from it"),
        Arg::new("languages", Type::List, "The languages of descriptions"),
        Arg::new("targets", Type::List, "What to fetch of it"),
        Arg::new("enabled", Type::Bool, "Whether it is used"),
        Arg::new("trusted", Type::Bool, "Whether it is trusted without signature"),
        Arg::new("allow_insecure", Type::Bool, "Allow it without signature, with a warning"),
        Arg::new("allow_weak", Type::Bool, "Allow weak digests"),
        Arg::new("allow_downgrade_to_insecure", Type::Bool, "Allow that its signature is gone"),
        Arg::new("by_hash", Type::Bool, "Fetch lists by their digests"),
        Arg::new("check_date", Type::Bool, "Check that it is not of the future"),
        Arg::new("check_valid_until", Type::Bool, "Check that it is not too old"),
        Arg::new("date_max_future", Type::Int, "Seconds that it may be of the future"),
        Arg::new("inrelease_path", Type::Str, "Where its file InRelease is"),
        Arg::new("pdiffs", Type::Bool, "Fetch differences of lists"),
        MODE,
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("repo", "the text of the file"),
        ("dest", "the file"),
        ("key_filename", "the file of the key, if one was written"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let slug = slug(args.text("name"));
    if slug.is_empty() {
        return Err(Failure::new(format!("`{}` has neither letters nor digits to name a file by", args.text("name"))));
    }
    let path = format!("/etc/apt/sources.list.d/{slug}.sources");
    let key_path = |ending: &str| format!("/etc/apt/keyrings/{slug}.{ending}");
    let mut changes = Vec::new();
    if args.text("state") == "absent" {
        let plain = Args::default();
        let (armored, binary) = (key_path("asc"), key_path("gpg"));
        let (source, armored, binary) = futures_util::try_join!(
            look(&host, &plain, &path, false),
            look(&host, &plain, &armored, false),
            look(&host, &plain, &binary, false),
        )?;
        changes.extend([&source, &armored, &binary].into_iter().filter_map(remove));
        let changed = !changes.is_empty();
        for change in changes {
            host.change(change).await?;
        }
        let outcome = Outcome::with_changed(changed).with("repo", Value::Null);
        return Ok(outcome.with("dest", path).with("key_filename", key_path("gpg")));
    }
    let signed_by = args.str("signed_by").map(str::trim).filter(|text| !text.is_empty());
    let mut key_file = None;
    let mut key_value = signed_by.map(str::to_owned);
    if let Some(url) = signed_by.filter(|text| text.contains("://")) {
        let content = download::read(&host, &environment(&settings)?, url, true).await?;
        if openpgp::keys(&content).is_empty() {
            return Err(Failure::new(format!("Could not fetch signed_by key: what is at {url} is no public key")));
        }
        let file = key_path(if content.starts_with(b"-----BEGIN PGP") { "asc" } else { "gpg" });
        let seen = look(&host, &Args::default(), &file, true).await?;
        changes.extend(written(&seen, content));
        key_value = Some(file.clone());
        key_file = Some(file);
    }
    let text = text(&args, key_value.as_deref());
    let seen = look(&host, &args, &path, true).await?;
    let same = seen.content.as_deref() == Some(text.as_bytes());
    let edit = plan_edit(&seen, (!same).then(|| text.clone().into_bytes()), &Manner::default());
    let mut outcome = Outcome::ok();
    if let Some(mut change) = edit.change {
        if !same {
            let shown = difference((&path, &path), seen.content.as_deref(), false, text.as_bytes());
            outcome = outcome.differences([shown.clone()]);
            change = change.difference(shown);
        }
        changes.push(change);
    }
    outcome.changed = !changes.is_empty();
    for change in changes {
        host.change(change).await?;
    }
    Ok(outcome.with("repo", text).with("dest", path).with("key_filename", key_file))
}

fn written(seen: &Destination, content: Vec<u8>) -> Option<crate::host::Change> {
    let same = seen.content.as_ref() == Some(&content);
    if same { None } else { plan_edit(seen, Some(content), &Manner::default()).change }
}

/// Lower case, with dashes for blanks, and nothing but letters, digits and dashes.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for sign in name.to_lowercase().chars() {
        match sign {
            'a'..='z' | '0'..='9' | '-' => slug.push(sign),
            sign if (sign == '_' || sign.is_whitespace()) && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug
}

/// The file: fields in the order of the arguments' names.
fn text(args: &Args, signed_by: Option<&str>) -> String {
    let mut fields: Vec<(String, String)> = Vec::new();
    for (name, value) in args.map() {
        let name = name.to_text().into_owned();
        let value = match value {
            _ if matches!(name.as_str(), "mode" | "state") => continue,
            _ if name == "signed_by" => signed_by.unwrap_or_default().to_owned(),
            Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Value::List(_) => args.list(&name).join(" "),
            other => other.to_text().into_owned(),
        };
        if !value.is_empty() {
            fields.push((name, value));
        }
    }
    fields.sort();
    fields.iter().map(|(name, value)| format!("{}:{}\n", field_name(name), field_value(value))).collect()
}

/// Of several lines each is indented, and an empty one is a full stop.
fn field_value(value: &str) -> String {
    if !value.contains('\n') {
        return format!(" {value}");
    }
    let line = |line: &str| format!("\n    {}", if line.trim().is_empty() { "." } else { line.trim_end() });
    value.trim_end().lines().map(line).collect()
}

fn field_name(argument: &str) -> String {
    match argument {
        "name" => "X-Repolib-Name".to_owned(),
        "uris" => "URIs".to_owned(),
        "inrelease_path" => "InRelease-Path".to_owned(),
        "pdiffs" => "PDiffs".to_owned(),
        other => {
            let capital = |word: &str| {
                let mut letters = word.chars();
                letters
                    .next()
                    .map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
                    .unwrap_or_default()
            };
            other.split('_').map(capital).collect::<Vec<_>>().join("-")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::check_module;
    use crate::value::object;

    #[test]
    fn fields_are_written_as_apt_reads_them() {
        let given = object([
            ("name", "Docker CE_repo!".into()),
            ("uris", "https://download.docker.com/linux/debian".into()),
            ("suites", "bookworm".into()),
            ("components", "stable,test".into()),
            ("allow_downgrade_to_insecure", false.into()),
            ("signed_by", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxx\n".into()),
        ]);
        let args = validate(&MODULE, &given).unwrap();
        assert_eq!(slug(args.text("name")), "docker-ce-repo");
        assert_eq!(
            text(&args, args.str("signed_by")),
            "Allow-Downgrade-To-Insecure: no\nComponents: stable test\nX-Repolib-Name: Docker CE_repo!\nSigned-By:\n    \
             -----BEGIN PGP PUBLIC KEY BLOCK-----\n    .\n    xx\nSuites: bookworm\nTypes: deb\n\
             URIs: https://download.docker.com/linux/debian\n"
        );
    }

    #[test]
    fn check_mode_tells_what_would_be_written() {
        let given = [("name", "zz trimtab test".into()), ("uris", "http://a.example/".into()), ("suites", "./".into())];
        let outcome = check_module(&MODULE, &given).unwrap();
        assert!(outcome.changed);
        assert_eq!(outcome.result["dest"], "/etc/apt/sources.list.d/zz-trimtab-test.sources".into());
        assert!(outcome.differences[0].after.contains("URIs: http://a.example/\n"));
        let absent = [("name", "zz trimtab test".into()), ("state", "absent".into())];
        assert!(!check_module(&MODULE, &absent).unwrap().changed);
        assert!(check_module(&MODULE, &[("name", "!".into())]).is_err());
    }
}
