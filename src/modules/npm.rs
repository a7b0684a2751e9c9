//! `community.general.npm`: packages of Node.js, by the host's npm.

use std::collections::BTreeMap;

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Step};
use crate::value::Interruption;

use super::execution::environment;
use super::programs::{SYSTEM_PATH, make};
use super::shell_words::expanded;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.npm",
    aliases: &[],
    summary: "Installs and removes packages of Node.js by the host's npm",
    args: &[
        Arg::new("name", Type::Str, "the package; not given: those that package.json asks for"),
        Arg::new("path", Type::Path, "the directory of the project"),
        Arg::new("global", Type::Bool, "for all users").default("false"),
        Arg::new("version", Type::Str, "the version of the package"),
        Arg::new("state", Type::Str, "whether it is installed")
            .default("present")
            .choices(&["present", "absent", "latest"]),
        Arg::new("executable", Type::Path, "the npm to use"),
        Arg::new("registry", Type::Str, "where packages come from"),
        Arg::new("production", Type::Bool, "without what is for development").default("false"),
        Arg::new("ignore_scripts", Type::Bool, "run no scripts of packages").default("false"),
        Arg::new("unsafe_perm", Type::Bool, "run scripts as root").default("false"),
        Arg::new("ci", Type::Bool, "install exactly what package-lock.json says").default("false"),
        Arg::new("no_optional", Type::Bool, "without optional packages").default("false"),
        Arg::new("no_bin_links", Type::Bool, "make no links to programs").default("false"),
        Arg::new("force", Type::Bool, "go on against warnings").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Partial,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let (name, state, global) = (text("name"), args.text("state"), args.bool("global"));
    if text("path").is_none() && !global {
        return Err(Failure::new("path must be specified when not using global"));
    }
    if name.is_none() && global {
        return Err(Failure::new("`global` needs the name of a package"));
    }
    let program = text("executable").map_or_else(|| "npm".to_owned(), |path| expanded(path).clone());
    let directory = match text("path") {
        Some(path) if state == "absent" || !args.bool("ci") => {
            format!(
                "d={}; [ -d \"$d\" ] && cd \"$d\" || {{ [ -n \"$new\" ] && mkdir -p \"$d\" && cd \"$d\"; }} || exit 9\n",
                expanded(path)
            )
        }
        Some(path) => format!("cd {} || exit 9\n", expanded(path)),
        None => String::new(),
    };
    let start = format!(
        "{SYSTEM_PATH}{}export LC_ALL=C CI=1 NO_UPDATE_NOTIFIER=1\nn={program}\ncommand -v \"$n\" >/dev/null || exit 127\n",
        environment(&settings)?
    );
    let scope = if global { " --global" } else { "" };
    let script = format!(
        "{start}{directory}\"$n\" list --json --depth=0{scope} 2>/dev/null; :\n\
         printf '\\036'; if [ -f package.json ]; then cat package.json; fi"
    );
    let answer = host.read(Script { text: script, footprint: Footprint::Everything }).await?;
    if answer.code == Some(127) {
        return Err(Failure::new("the host has no program `npm`"));
    }
    let output = answer.text();
    let (listed, project) = output.split_once('\u{1e}').unwrap_or((&output, ""));
    let listed = listing(listed);
    let words = words(&args);
    let wanted = match name {
        Some(name) => vec![(name.to_owned(), text("version").map(str::to_owned))],
        None => dependencies(project, args.bool("production")).into_iter().map(|name| (name, None)).collect(),
    };
    let is_right = |(name, version): &(String, Option<String>)| {
        let have = listed.get(name).or_else(|| listed.get(&bare(name)));
        have.is_some_and(|have| version.as_ref().is_none_or(|version| version == have || version == "latest"))
    };
    let spec = |(name, version): &(String, Option<String>)| match version {
        Some(version) => format!("{name}@{version}"),
        None => name.clone(),
    };
    let command = match (state, name) {
        ("absent", Some(name)) => {
            if !listed.contains_key(name) {
                return Ok(Outcome::ok());
            }
            format!("uninstall{words} {}", quote(name))
        }
        ("absent", None) => return Err(Failure::new("state=absent needs the name of a package")),
        (_, None) if args.bool("ci") => format!("ci{words}"),
        ("latest", Some(name)) => format!("install{words} {}", quote(&format!("{name}@latest"))),
        ("latest", None) => format!("update{words}"),
        (_, name) => {
            let missing: Vec<_> = wanted.iter().filter(|one| !is_right(one)).collect();
            if missing.is_empty() && !(name.is_none() && project.is_empty()) {
                return Ok(Outcome::ok());
            }
            match name {
                Some(_) => format!("install{words} {}", quote(&spec(missing[0]))),
                None => format!("install{words}"),
            }
        }
    };
    let is_open = state == "latest" || args.bool("ci");
    let sure = is_open && wanted.iter().any(|(name, _)| !listed.contains_key(name));
    if is_open && !sure && host.is_check() {
        return Err(Failure::interrupted(Interruption::Unknown(format!(
            "whether `npm {command}` would change anything is known to npm alone"
        ))));
    }
    let show = |packages: &BTreeMap<String, String>| {
        let wanted = |name: &str| wanted.iter().any(|(own, _)| own == name || bare(own) == name);
        packages
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, version)| format!("{name}@{version}\n"))
            .collect::<String>()
    };
    let after = if state == "absent" { String::new() } else { wanted.iter().map(|one| spec(one) + "\n").collect() };
    let shown = name.unwrap_or("packages of package.json");
    let back = match name {
        Some(name) => match listed.get(&bare(name)) {
            Some(old) => format!("install{words} {}", quote(&format!("{}@{old}", bare(name)))),
            None => format!("uninstall{words} {}", quote(&bare(name))),
        },
        None => String::new(),
    };
    let inverse = match back.is_empty() {
        true => Inverse::None("which packages were there before is not known".to_owned()),
        false => Inverse::Steps(vec![Step::new(format!("{start}{directory}\"$n\" {back} >&2"))]),
    };
    let list = format!("printf '\\036'; \"$n\" list --json --depth=0{scope} 2>/dev/null; :");
    let change = Change::uncertain(format!("npm: {shown}"), Footprint::Everything)
        .step(Step::new(format!("{start}new=1\n{directory}\"$n\" {command} >&2 || exit\n{list}")))
        .inverse(inverse)
        .difference(Difference::new(format!("npm: {shown}"), show(&listed), after));
    let differences = change.differences.clone();
    let responses = make(&host, change).await?;
    if let Some(response) = responses.and_then(|responses| responses.into_iter().next())
        && is_open
    {
        let output = response.text();
        let now = listing(output.rsplit('\u{1e}').next().unwrap_or_default());
        return Ok(if now == listed { Outcome::ok() } else { Outcome::changed().differences(differences) });
    }
    Ok(Outcome::changed().differences(differences))
}

fn words(args: &Args) -> String {
    let mut words = String::new();
    for (key, word) in [
        ("global", "--global"),
        ("production", "--production"),
        ("ignore_scripts", "--ignore-scripts"),
        ("unsafe_perm", "--unsafe-perm"),
        ("no_optional", "--no-optional"),
        ("no_bin_links", "--no-bin-links"),
        ("force", "--force"),
    ] {
        if args.bool(key) {
            words.push(' ');
            words.push_str(word);
        }
    }
    if let Some(registry) = args.str("registry").filter(|registry| !registry.is_empty()) {
        words.push_str(&format!(" {}", quote(&format!("--registry={registry}"))));
    }
    words
}

/// `name@1.2` without its version; `@scope/name` stays.
fn bare(name: &str) -> String {
    match name.get(1..).and_then(|rest| rest.find('@')) {
        Some(at) => name[..=at].to_owned(),
        None => name.to_owned(),
    }
}

/// The versions of what `npm list --json` tells, but for what is missing.
fn listing(json: &str) -> BTreeMap<String, String> {
    let parsed: serde_json::Value = serde_json::from_str(json.trim()).unwrap_or_default();
    let packages = parsed.get("dependencies").and_then(serde_json::Value::as_object);
    let usable = |entry: &serde_json::Value| entry.get("missing").is_none() && entry.get("invalid").is_none();
    packages
        .into_iter()
        .flatten()
        .filter(|(_, entry)| usable(entry))
        .filter_map(|(name, entry)| Some((name.clone(), entry.get("version")?.as_str()?.to_owned())))
        .collect()
}

/// The packages that package.json names.
fn dependencies(json: &str, production: bool) -> Vec<String> {
    let parsed: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let mut names = Vec::new();
    for key in ["dependencies", "devDependencies"] {
        if key == "devDependencies" && production {
            continue;
        }
        names.extend(
            parsed.get(key).and_then(serde_json::Value::as_object).into_iter().flatten().map(|(name, _)| name.clone()),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};
    use crate::value::Value;

    /// Keeps `"name": {"version": "1"}` lines; the newest version is 9.
    const NPM: &str = r#"
verb=$1; shift; touch "$D/db"
case $verb in list) printf '{"dependencies": {%s}}\n' "$(paste -sd, "$D/db")"; exit ;; esac
echo "$verb $*" >>"$D/log"
for w; do case $w in -*) ;; *)
  case $w in ?*@*) n=${w%@*} v=${w##*@} ;; *) n=$w v=9 ;; esac; [ "$v" = latest ] && v=9
  sed -i "/^\"$n\"/d" "$D/db"; [ $verb = uninstall ] || echo "\"$n\": {\"version\": \"$v\"}" >>"$D/db" ;; esac; done
if [ $verb = install ] && [ "$*" = "" ]; then echo '"left": {"version": "1"}' >>"$D/db"; fi"#;

    fn run(fake: &FakePrograms, given: &[(&'static str, Value)], check: bool) -> Played {
        play(&MODULE, given, &Play { shell: fake.shell(), check })
    }

    #[test]
    fn packages_come_and_go() {
        let fake = FakePrograms::new(&[("npm", NPM)]);
        let global = |name: &str, more: &[(&'static str, Value)]| {
            [&[("name", name.into()), ("global", true.into())], more].concat()
        };
        let one = global("a", &[("version", "1.2".into())]);
        assert!(run(&fake, &one, true).result.unwrap().changed && fake.read("db").is_empty());
        let made = run(&fake, &one, false);
        assert!(made.result.unwrap().changed && !run(&fake, &one, false).result.unwrap().changed);
        assert!(!run(&fake, &global("a", &[]), true).result.unwrap().changed);
        let latest = global("a", &[("state", "latest".into())]);
        assert!(run(&fake, &latest, true).result.is_err());
        let newer = run(&fake, &latest, false);
        assert!(newer.result.unwrap().changed && !run(&fake, &latest, false).result.unwrap().changed);
        undo_in(&newer.changes, fake.shell());
        assert!(fake.read("db").contains("\"1.2\""));
        undo_in(&made.changes, fake.shell());
        assert_eq!(fake.read("db"), "");
        let gone = global("a", &[("state", "absent".into())]);
        assert!(!run(&fake, &gone, false).result.unwrap().changed);
    }

    #[test]
    fn projects_get_what_they_ask_for() {
        let fake = FakePrograms::new(&[("npm", NPM)]);
        std::fs::create_dir(fake.file("p")).unwrap();
        fake.write("p/package.json", "{\"dependencies\": {\"left\": \"1\"}, \"devDependencies\": {\"dev\": \"1\"}}");
        let given = [("path", fake.file("p").to_str().unwrap().into()), ("production", true.into())];
        assert!(run(&fake, &given, true).result.unwrap().changed);
        assert!(run(&fake, &given[..1], true).result.unwrap().changed);
        run(&fake, &[("path", fake.file("p").to_str().unwrap().into()), ("name", "left@1".into())], false)
            .result
            .unwrap();
        assert!(
            !run(&fake, &given, false).result.unwrap().changed && run(&fake, &given[..1], true).result.unwrap().changed
        );
        assert!(run(&fake, &[("name", "a".into())], true).result.unwrap_err().message.contains("path must be"));
        assert_eq!((bare("@s/a@1"), bare("@s/a"), bare("a@2")), ("@s/a".into(), "@s/a".into(), "a".into()));
    }
}
