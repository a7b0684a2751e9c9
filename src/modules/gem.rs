//! `community.general.gem`: packages of Ruby, by the host's gem.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step};

use super::execution::environment;
use super::programs::{SYSTEM_PATH, make};
use super::shell_words::expanded;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.gem",
    aliases: &[],
    summary: "Installs and removes packages of Ruby by the host's gem",
    args: &[
        Arg::new("name", Type::Str, "the package").required(),
        Arg::new("state", Type::Str, "whether it is installed")
            .default("present")
            .choices(&["present", "absent", "latest"]),
        Arg::new("version", Type::Str, "the version"),
        Arg::new("gem_source", Type::Path, "a file of the package on the host"),
        Arg::new("repository", Type::Str, "where packages come from").aliases(&["source"]),
        Arg::new("include_dependencies", Type::Bool, "install what it needs too").default("true"),
        Arg::new("user_install", Type::Bool, "for the user alone").default("true"),
        Arg::new("executable", Type::Path, "the gem to use"),
        Arg::new("install_dir", Type::Path, "the directory to install in"),
        Arg::new("bindir", Type::Path, "the directory for programs"),
        Arg::new("norc", Type::Bool, "read no .gemrc").default("true"),
        Arg::new("env_shebang", Type::Bool, "programs find ruby by env").default("false"),
        Arg::new("pre_release", Type::Bool, "versions before a release too").default("false"),
        Arg::new("include_doc", Type::Bool, "install the documentation").default("false"),
        Arg::new("build_flags", Type::Str, "words for the compiler of extensions"),
        Arg::new("force", Type::Bool, "go on against warnings").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("name", "the package"), ("version", "as given"), ("state", "as given")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let (name, state, version) = (args.text("name"), args.text("state"), text("version"));
    if version.is_some() && state == "latest" {
        return Err(Failure::new("Cannot specify version when state=latest"));
    }
    if text("gem_source").is_some() && state == "latest" {
        return Err(Failure::new("Cannot maintain state=latest when installing from local source"));
    }
    let user_install = args.bool("user_install") && text("install_dir").is_none();
    let program = text("executable").map_or_else(|| "gem".to_owned(), expanded);
    let home = text("install_dir")
        .map(|path| format!("export GEM_HOME={0} GEM_PATH={0}\n", expanded(path)))
        .unwrap_or_default();
    let start = format!(
        "{SYSTEM_PATH}{}export LC_ALL=C\n{home}g={program}\ncommand -v \"$g\" >/dev/null || exit 127\n",
        environment(&settings)?
    );
    let norc = if args.bool("norc") { " --norc" } else { "" };
    let pattern = quote(&format!("^{}$", regex::escape(name)));
    let mut script = format!("{start}\"$g\" list{norc} --local {pattern} || exit; printf '\\036'\n");
    if state == "latest" {
        script.push_str(&format!("\"$g\" list{norc} --remote{} {pattern} || exit", source(&args)));
    }
    let answer = host.read(Script { text: script, footprint: Footprint::Everything }).await?;
    if answer.code == Some(127) {
        return Err(Failure::new("the host has no program `gem`"));
    }
    if !answer.success() {
        return Err(Failure::new(format!("gem: {}", answer.error_text().trim())));
    }
    let output = answer.text();
    let (local, remote) = output.split_once('\u{1e}').unwrap_or((&output, ""));
    let local = versions(local, name);
    let newest = versions(remote, name).into_iter().next();
    let wanted = version.map(str::to_owned).or(newest);
    let is_there = match &wanted {
        Some(version) => local.contains(version),
        None => !local.is_empty(),
    };
    let outcome = Outcome::ok().with("name", name).with("state", state);
    let outcome = match version {
        Some(version) => outcome.with("version", version),
        None => outcome,
    };
    if is_there == (state != "absent") {
        return Ok(outcome);
    }
    let doc = if args.bool("include_doc") { "" } else { " --no-document" };
    let mut install = String::new();
    for (key, word) in [
        ("include_dependencies", ""),
        ("env_shebang", " --env-shebang"),
        ("pre_release", " --pre"),
        ("force", " --force"),
    ] {
        if args.bool(key) {
            install.push_str(word);
        } else if key == "include_dependencies" {
            install.push_str(" --ignore-dependencies");
        }
    }
    install.push_str(if user_install { " --user-install" } else { " --no-user-install" });
    let places: String = [("install_dir", "--install-dir"), ("bindir", "--bindir")]
        .iter()
        .filter_map(|(key, word)| text(key).map(|path| format!(" {word} {}", expanded(path))))
        .collect();
    let flags = text("build_flags").map(|flags| format!(" -- {flags}")).unwrap_or_default();
    let package = |version: Option<&str>| {
        let from = text("gem_source").map_or_else(|| quote(name), expanded);
        let version = version.map(|version| format!(" --version {}", quote(version))).unwrap_or_default();
        format!("\"$g\" install{norc}{doc}{install}{places}{}{version} {from}{flags} >&2", source(&args))
    };
    let remove = |version: Option<&str>| {
        let version = version.map_or_else(|| " --all".to_owned(), |version| format!(" --version {}", quote(version)));
        format!("\"$g\" uninstall{norc}{places}{version} --executables --force {} >&2", quote(name))
    };
    let (forth, back) = match state {
        "absent" => {
            let back: Vec<String> = local
                .iter()
                .filter(|own| version.is_none_or(|version| version == *own))
                .map(|own| package(Some(own)))
                .collect();
            (remove(version), back.join(" &&\n"))
        }
        _ => (package(wanted.as_deref()), remove(wanted.as_deref())),
    };
    let lines = |versions: &[String]| versions.iter().map(|version| format!("{name} {version}\n")).collect::<String>();
    let after = if state == "absent" {
        String::new()
    } else {
        lines(&local) + &format!("{name} {}\n", wanted.unwrap_or_default())
    };
    let change = Change::uncertain(format!("gem {name}"), Footprint::Everything)
        .step(Step::new(format!("{start}{forth}")))
        .inverse(Inverse::Steps(vec![Step::new(format!("{start}{back}"))]))
        .difference(Difference::new(format!("gem {name}"), lines(&local), after));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

fn source(args: &Args) -> String {
    let source = args.str("repository").filter(|source| !source.is_empty());
    source.map(|source| format!(" --source {}", quote(source))).unwrap_or_default()
}

/// The versions in `name (2.1.0, 2.0.3 ruby java)`.
fn versions(listing: &str, name: &str) -> Vec<String> {
    let found =
        listing.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix('(')?.strip_suffix(')'));
    let words = |part: &str| {
        let part = part.trim();
        part.strip_prefix("default: ").unwrap_or(part).split(' ').next().unwrap_or_default().to_owned()
    };
    found.map(|list| list.split(',').map(words).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, play, undo_in};
    use crate::value::Value;

    /// Keeps the versions of one package; the newest is 9.
    const GEM: &str = r#"
touch "$D/db"; verb=$1; shift; echo "$verb $*" >>"$D/log"; v=9
case $verb in list) case "$*" in *--remote*) echo 'a (9, 3)' ;; *) [ ! -s "$D/db" ] || echo "a ($(paste -sd, "$D/db" | sed 's/,/, /g'))" ;; esac; exit ;; esac
while [ $# != 0 ]; do case $1 in --version) v=$2; shift ;; --all) v=all ;; esac; shift; done
case $verb in install) echo "$v" >>"$D/db" ;; *) if [ $v = all ]; then : >"$D/db"; else sed -i "/^$v\$/d" "$D/db"; fi ;; esac"#;

    #[test]
    fn packages_come_and_go() {
        let fake = FakePrograms::new(&[("gem", GEM)]);
        let run = |more: &[(&'static str, Value)], check| {
            play(&MODULE, &[&[("name", "a".into())], more].concat(), &Play { shell: fake.shell(), check })
        };
        let three = [("version", "3".into())];
        assert!(run(&three, true).result.unwrap().changed && fake.read("db").is_empty());
        let made = run(&three, false);
        assert!(made.result.unwrap().changed && !run(&three, false).result.unwrap().changed);
        assert!(!run(&[], true).result.unwrap().changed);
        let latest = [("state", "latest".into()), ("user_install", false.into())];
        let newer = run(&latest, false);
        assert!(newer.result.unwrap().changed && !run(&latest, false).result.unwrap().changed);
        assert!(fake.read("log").contains("--no-document --no-user-install --version 9"), "{}", fake.read("log"));
        undo_in(&newer.changes, fake.shell());
        assert_eq!(fake.read("db"), "3\n");
        let gone = run(&[("state", "absent".into())], false);
        assert!(gone.result.unwrap().changed && fake.read("db").is_empty());
        undo_in(&gone.changes, fake.shell());
        assert_eq!(fake.read("db"), "3\n");
        undo_in(&made.changes, fake.shell());
        assert_eq!(fake.read("db"), "");
    }

    #[test]
    fn listings_are_read() {
        assert_eq!(versions("ab (1)\na (2.1.0, default: 2.0.3 ruby java)\n", "a"), ["2.1.0", "2.0.3"]);
        assert!(versions("", "a").is_empty());
    }
}
