//! `community.general.alternatives`: which of several programs a generic name means.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::programs::{SYSTEM_PATH, make, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.alternatives",
    aliases: &[],
    summary: "Keeps the alternatives of generic names, such as which java `java` is",
    args: &[
        Arg::new("name", Type::Str, "the generic name").required(),
        Arg::new("path", Type::Path, "the program that it means"),
        Arg::new("link", Type::Path, "the link that bears the generic name; needed for a name that is new"),
        Arg::new("family", Type::Str, "not supported: it groups alternatives on hosts of Red Hat's kind"),
        Arg::new("priority", Type::Int, "the highest is taken in automatic mode; 50 for a new one"),
        Arg::new("state", Type::Str, "`selected`: it is meant; `present`: it is known; `auto`: the highest is meant")
            .default("selected")
            .choices(&["present", "selected", "absent", "auto"]),
        Arg::new("subcommands", Type::RawList, "links that follow: maps of `name`, `link`, `path`")
            .aliases(&["slaves"]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What the host knows of a name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Group {
    link: Option<String>,
    automatic: bool,
    current: Option<String>,
    choices: Vec<Choice>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Choice {
    path: String,
    priority: i64,
    /// Name and path of what follows.
    followers: Vec<(String, String)>,
}

/// A link that follows.
struct Follower {
    name: String,
    link: String,
    path: String,
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let (name, state) = (args.text("name"), args.text("state"));
    if text("family").is_some() {
        return Err(Failure::new("the argument `family` is not supported: alternatives are not grouped"));
    }
    if name.is_empty() || name.starts_with('-') || name.contains(['/', '\n']) {
        return Err(Failure::new(format!("`{name}` cannot be a generic name")));
    }
    let path = match (text("path"), state) {
        (Some(path), _) => path,
        (None, "auto") => "",
        (None, _) => return Err(Failure::new("path is needed, but for state=auto")),
    };
    let quoted = quote(name);
    let script = format!(
        "{SYSTEM_PATH}export LC_ALL=C\np=$(command -v update-alternatives || command -v alternatives) || exit 127\n\
         \"$p\" --query {quoted} 2>/dev/null || \"$p\" --display {quoted} 2>/dev/null; :"
    );
    let footprint = Footprint::named("alternatives").and(Footprint::tree("/etc/alternatives"));
    let answer = host.read(Script { text: script, footprint: footprint.clone() }).await?;
    if answer.code == Some(127) {
        return Err(Failure::new("the host has neither update-alternatives nor alternatives"));
    }
    let group = parse(&answer.text());
    let followers = followers(args.get("subcommands"))?;
    let program = "p=$(command -v update-alternatives || command -v alternatives)\n";
    let line = |words: String| format!("{program}\"$p\" {words} >&2");
    let choice = group.choices.iter().find(|choice| choice.path == path);
    let install = |choice: &Choice, link: &str, followers: &[Follower]| {
        let more: String = followers
            .iter()
            .map(|own| format!(" --slave {} {} {}", quote(&own.link), quote(&own.name), quote(&own.path)))
            .collect();
        line(format!("--install {} {quoted} {} {}{more}", quote(link), quote(&choice.path), choice.priority))
    };
    let remove = |path: &str| line(format!("--remove {quoted} {}", quote(path)));
    let set = |path: &str| line(format!("--set {quoted} {}", quote(path)));
    let auto = || line(format!("--auto {quoted}"));
    let mut forth = Vec::new();
    let mut back: Vec<String> = Vec::new();
    let selection_back = |back: &mut Vec<String>| match (&group.current, group.automatic) {
        (_, true) if !group.choices.is_empty() => back.push(auto()),
        (Some(current), _) => back.push(set(current)),
        _ => {}
    };
    if state == "absent" {
        if choice.is_none() {
            return Ok(Outcome::ok());
        }
        forth.push(remove(path));
    } else if !path.is_empty() {
        let priority = args.int("priority").or(choice.map(|choice| choice.priority)).unwrap_or(50);
        let wanted = Choice { path: path.to_owned(), priority, followers: Vec::new() };
        let has_followers = choice.is_some_and(|choice| {
            followers
                .iter()
                .all(|own| choice.followers.iter().any(|(name, path)| *name == own.name && *path == own.path))
        });
        let differs = choice.is_none_or(|choice| choice.priority != priority) || !has_followers;
        if differs {
            let link = text("link").or(group.link.as_deref()).ok_or_else(|| {
                Failure::new(format!(
                    "Needed to install the alternative, but unable to do so as we are missing the link of `{name}`"
                ))
            })?;
            if let Some(old) = choice {
                back.push(match old.followers.is_empty() {
                    true => install(old, link, &[]),
                    false => String::new(),
                });
            } else {
                back.push(remove(path));
            }
            forth.push(install(&wanted, link, &followers));
        }
    }
    match state {
        "selected" if group.current.as_deref() != Some(path) || (group.automatic && choice.is_none()) => {
            forth.push(set(path));
            selection_back(&mut back);
        }
        "auto" if !group.automatic => {
            forth.push(auto());
            selection_back(&mut back);
        }
        _ => {}
    }
    if forth.is_empty() {
        return Ok(Outcome::ok());
    }
    let is_unknown = state == "absent" || back.iter().any(String::is_empty);
    let inverse = match is_unknown {
        true => match (choice.filter(|choice| choice.followers.is_empty()), &group.link) {
            (Some(old), Some(link)) if state == "absent" => {
                let mut back = vec![install(old, link, &[])];
                selection_back(&mut back);
                Inverse::Steps(back.iter().map(step).collect())
            }
            _ => Inverse::None(format!("the links that followed {path} are not all known")),
        },
        false => Inverse::Steps(back.iter().map(step).collect()),
    };
    let current = group.current.clone().unwrap_or_default();
    let shown = |mode: &str, path: &str| format!("{mode} {path}\n");
    let before = shown(if group.automatic { "auto" } else { "manual" }, &current);
    let mut change = Change::uncertain(format!("alternative {name}"), footprint)
        .inverse(inverse)
        .difference(Difference::new(format!("alternative {name}"), before, shown(state, path)));
    for code in &forth {
        change = change.step(step(code));
    }
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome::changed().differences(differences))
}

fn followers(value: Option<&Value>) -> Result<Vec<Follower>, Failure> {
    let wrong = || Failure::new("`subcommands` needs `name`, `link` and `path` for each");
    let mut followers = Vec::new();
    for item in value.and_then(Value::as_list).unwrap_or_default() {
        let text = |key: &str| item.get(key).map(|value| value.to_text().into_owned()).ok_or_else(wrong);
        followers.push(Follower { name: text("name")?, link: text("link")?, path: text("path")? });
    }
    Ok(followers)
}

/// Reads what Debian's `--query` prints, or `--display` of both kinds.
fn parse(text: &str) -> Group {
    let mut group = Group::default();
    let is_query = text.lines().any(|line| line.starts_with("Status: "));
    for line in text.lines() {
        if is_query {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim();
            match key {
                "Link" => group.link = Some(value.to_owned()),
                "Status" => group.automatic = value == "auto",
                "Value" => group.current = Some(value.to_owned()).filter(|value| value != "none"),
                "Alternative" => group.choices.push(Choice { path: value.to_owned(), ..Choice::default() }),
                "Priority" => {
                    if let Some(choice) = group.choices.last_mut() {
                        choice.priority = value.parse().unwrap_or(0);
                    }
                }
                _ => {
                    // ` man /usr/share/man/…` below `Slaves:`, of a choice
                    if let (Some(choice), Some((name, path))) = (group.choices.last_mut(), line.trim().split_once(' '))
                        && line.starts_with(' ')
                    {
                        choice.followers.push((name.to_owned(), path.trim().to_owned()));
                    }
                }
            }
            continue;
        }
        let line = line.trim_end_matches('.');
        if let Some(rest) = line.trim_start().strip_prefix("link currently points to ") {
            group.current = Some(rest.trim().to_owned());
        } else if line.contains(" - status is auto") || line.contains(" - auto mode") {
            group.automatic = true;
        } else if let Some(rest) =
            line.trim_start().strip_prefix("slave ").or_else(|| line.trim_start().strip_prefix("follower "))
        {
            if let (Some(choice), Some((name, path))) = (group.choices.last_mut(), rest.split_once(": ")) {
                choice.followers.push((name.to_owned(), path.trim().to_owned()));
            }
        } else if let Some((path, priority)) = line.split_once(" - ").filter(|(path, _)| path.starts_with('/')) {
            let number = priority.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
            group.choices.push(Choice { path: path.to_owned(), priority: number, followers: Vec::new() });
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, undo_in};

    #[test]
    fn both_kinds_of_listings_are_read() {
        let debian = "Name: x\nLink: /usr/bin/x\nStatus: manual\nBest: /b\nValue: /a\n\nAlternative: /a\nPriority: 5\nSlaves:\n m /a.1\n\nAlternative: /b\nPriority: 10\nSlaves:\n";
        let group = parse(debian);
        assert_eq!(
            (group.link.as_deref(), group.current.as_deref(), group.automatic),
            (Some("/usr/bin/x"), Some("/a"), false)
        );
        assert_eq!((group.choices.len(), group.choices[0].followers.clone()), (2, vec![("m".into(), "/a.1".into())]));
        let redhat = "x - status is auto.\n link currently points to /b\n/a - priority 5\n slave m: /a.1\n/b - family f priority 10\nCurrent `best' version is /b.\n";
        let group = parse(redhat);
        assert_eq!((group.automatic, group.current.as_deref(), group.choices[1].priority), (true, Some("/b"), 10));
    }

    #[test]
    fn alternatives_are_known_chosen_and_taken_back() {
        if std::process::Command::new("update-alternatives").arg("--version").output().is_err() {
            skip("this machine has no update-alternatives");
            return;
        }
        // the real program, with directories of the test's own
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
        for name in ["etc", "admin", "bin"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for name in ["a", "b"] {
            std::fs::write(at(name), "").unwrap();
        }
        let real = std::process::Command::new("sh").args(["-c", "command -v update-alternatives"]).output().unwrap();
        let real = String::from_utf8(real.stdout).unwrap();
        let script = format!(
            "#!/bin/sh\nexec {} --altdir {} --admindir {} --log /dev/null \"$@\"\n",
            real.trim(),
            at("etc"),
            at("admin")
        );
        std::fs::write(at("bin/update-alternatives"), script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(at("bin/update-alternatives"), mode).unwrap();
        let shell: &'static str = Box::leak(format!("env PATH={}:/usr/bin:/bin sh", at("bin")).into_boxed_str());
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own = [("name", "own".into()), ("link", at("link").into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { shell, check })
        };
        let means = || std::fs::canonicalize(at("link")).ok().map(|path| path.to_str().unwrap().to_owned());
        let first = [("path", at("a").into()), ("priority", 5.into())];
        assert!(run(&first, true).result.unwrap().changed && means().is_none());
        let made = run(&first, false);
        assert!(made.result.unwrap().changed);
        assert_eq!(means(), Some(at("a")));
        assert!(!run(&first, false).result.unwrap().changed && !run(&first, true).result.unwrap().changed);
        let known = [("path", at("b").into()), ("priority", 10.into()), ("state", "present".into())];
        assert!(run(&known, false).result.unwrap().changed);
        assert_eq!((means(), run(&known, false).result.unwrap().changed), (Some(at("a")), false));
        let chosen = run(&[("path", at("b").into())], false);
        assert!(chosen.result.unwrap().changed);
        assert_eq!(means(), Some(at("b")));
        undo_in(&chosen.changes, shell);
        assert_eq!(means(), Some(at("a")));
        let auto = run(&[("state", "auto".into())], false);
        assert!(auto.result.unwrap().changed);
        assert_eq!(means(), Some(at("b")));
        let gone = run(&[("path", at("b").into()), ("state", "absent".into())], false);
        assert!(gone.result.unwrap().changed);
        assert_eq!(means(), Some(at("a")));
        undo_in(&gone.changes, shell);
        assert_eq!(means(), Some(at("b")));
        let failed = play(&MODULE, &[("name", "new".into()), ("path", at("a").into())], &Play { shell, check: true });
        assert!(failed.result.unwrap_err().message.contains("missing the link"));
    }
}
