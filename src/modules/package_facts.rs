//! ansible.builtin.package_facts: the installed packages.

use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Subject};
use crate::value::{Map, Value, object};

use super::{Action, Arg, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.package_facts",
    aliases: &[],
    summary: "Tells which packages are installed, as `ansible_facts.packages`",
    args: &[
        Arg::new("manager", Type::List, "The package managers to ask").default("auto").choices(&[
            "auto",
            "rpm",
            "yum",
            "dnf",
            "dnf5",
            "zypper",
            "apt",
            "pacman",
            "apk",
            "portage",
            "pkg",
            "pkg5",
            "pkgng",
            "pkg_info",
            "openbsd_pkg",
        ]),
        Arg::new("strategy", Type::Str, "Ask the first that is there, or all")
            .default("first")
            .choices(&["first", "all"]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ansible_facts", "`packages`: for each name a list of name, version, release, epoch, arch and source")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// A package manager: how it is found, the command that lists packages, and how a line is read.
struct Manager {
    name: &'static str,
    aliases: &'static [&'static str],
    program: &'static str,
    list: &'static str,
    parse: fn(&str) -> Option<(String, Map)>,
}

const MANAGERS: &[Manager] = &[
    Manager {
        name: "rpm",
        aliases: &["yum", "dnf", "dnf5", "zypper"],
        program: "rpm",
        list: "rpm -qa --qf '%{NAME}\\t%{VERSION}\\t%{RELEASE}\\t%{EPOCH}\\t%{ARCH}\\n'",
        parse: rpm,
    },
    Manager {
        name: "apt",
        aliases: &[],
        program: "dpkg-query",
        list: "dpkg-query -W -f '${db:Status-Abbrev}\\t${Package}\\t${Version}\\t${Architecture}\\t${Section}\\n'",
        parse: apt,
    },
    Manager { name: "pacman", aliases: &[], program: "pacman", list: "pacman -Q", parse: pacman },
    Manager { name: "apk", aliases: &[], program: "apk", list: "apk info -v 2>/dev/null", parse: apk },
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = args.list("manager");
    let is_wanted = |manager: &&Manager| {
        wanted.iter().any(|name| name == "auto" || name == manager.name || manager.aliases.contains(&name.as_str()))
    };
    let managers: Vec<&Manager> = MANAGERS.iter().filter(is_wanted).collect();
    if managers.is_empty() {
        return Err(Failure::new(format!(
            "{} is not supported: there are rpm, apt, pacman and apk",
            wanted.join(", ")
        )));
    }
    let all = args.text("strategy") == "all";
    let mut text = "LC_ALL=C\nexport LC_ALL\n".to_owned();
    for manager in &managers {
        // a tool without packages is not the one of the host
        text.push_str(&format!(
            "if command -v {} >/dev/null; then p=$({}) && [ -n \"$p\" ] && {{ printf '\\036{}\\n%s\\n' \"$p\"{}; }}; fi\n",
            manager.program,
            manager.list,
            manager.name,
            if all { "" } else { "; exit 0" }
        ));
    }
    text.push_str(":\n");
    let response = host.read(Script { text, footprint: Footprint::Of(vec![Subject::Packages]) }).await?;
    let packages = parse(&response.text());
    let Some(packages) = packages else {
        let names: Vec<&str> = managers.iter().map(|manager| manager.name).collect();
        return Err(Failure::new(format!(
            "Could not detect a supported package manager from the following list: {}{}",
            names.join(", "),
            match response.error_text().trim() {
                "" => String::new(),
                errors => format!(": {errors}"),
            }
        )));
    };
    Ok(Outcome::ok().effect(Effect::Facts(object([("packages", packages.into())]))))
}

/// The packages of all managers that answered; `None` if none did.
fn parse(text: &str) -> Option<Map> {
    let mut packages: indexmap::IndexMap<String, Vec<Value>> = indexmap::IndexMap::new();
    let mut answered = false;
    for part in text.split('\u{1e}').skip(1) {
        let (name, lines) = part.split_once('\n')?;
        let Some(manager) = MANAGERS.iter().find(|manager| manager.name == name) else { continue };
        answered = true;
        for (name, mut package) in lines.lines().filter_map(manager.parse) {
            package.insert("source".into(), manager.name.into());
            packages.entry(name).or_default().push(package.into());
        }
    }
    answered.then(|| packages.into_iter().map(|(name, list)| (Value::from(name), Value::list(list))).collect())
}

fn rpm(line: &str) -> Option<(String, Map)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, version, release, epoch, architecture] = fields[..] else { return None };
    let architecture = if architecture == "(none)" { Value::Null } else { architecture.into() };
    let package = object([
        ("name", name.into()),
        ("version", version.into()),
        ("release", release.into()),
        ("epoch", epoch.parse::<i64>().map_or(Value::Null, Value::from)),
        ("arch", architecture),
    ]);
    Some((name.to_owned(), package))
}

fn apt(line: &str) -> Option<(String, Map)> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [status, name, version, architecture, section] = fields[..] else { return None };
    let package = object([
        ("name", name.into()),
        ("version", version.into()),
        ("arch", architecture.into()),
        ("category", section.into()),
    ]);
    matches!(status.as_bytes().get(1), Some(b'i' | b't' | b'W')).then(|| (name.to_owned(), package))
}

fn pacman(line: &str) -> Option<(String, Map)> {
    let (name, version) = line.split_once(' ')?;
    Some((name.to_owned(), object([("name", name.into()), ("version", version.into())])))
}

/// `busybox-1.36.1-r5`
fn apk(line: &str) -> Option<(String, Map)> {
    let (rest, release) = line.trim().rsplit_once('-')?;
    let (name, version) = rest.rsplit_once('-')?;
    let package = object([
        ("name", name.into()),
        ("version", version.into()),
        ("release", release.trim_start_matches('r').into()),
    ]);
    Some((name.to_owned(), package))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, play};

    #[test]
    fn packages_are_told_by_name() {
        let text = "\u{1e}rpm\nkernel\t5.10.0\t1.oe\t(none)\taarch64\nkernel\t5.10.0\t2.oe\t(none)\taarch64\n\
                    bind\t9.11\t4\t32\tx86_64\n\u{1e}apt\nii \tnginx\t1.22\tamd64\thttpd\nrc \tgone\t1\tall\tmisc\n";
        let packages = Value::from(parse(text).unwrap());
        assert_eq!(packages.get("kernel").unwrap().as_list().unwrap().len(), 2);
        assert_eq!(
            packages.get("bind").unwrap().to_repr(),
            "[{'name': 'bind', 'version': '9.11', 'release': '4', 'epoch': 32, 'arch': 'x86_64', 'source': 'rpm'}]"
        );
        assert_eq!(
            packages.get("nginx").unwrap().to_repr(),
            "[{'name': 'nginx', 'version': '1.22', 'arch': 'amd64', 'category': 'httpd', 'source': 'apt'}]"
        );
        assert!(packages.get("gone").is_none() && parse("").is_none());
        assert_eq!(apk("busybox-extras-1.36.1-r5").unwrap().0, "busybox-extras");
        assert_eq!(pacman("zlib 1:1.3-1").unwrap().1["version"], "1:1.3-1".into());
    }

    #[test]
    fn this_machine_has_packages() {
        let played = play(&MODULE, &[], &Play::default());
        let has_manager = MANAGERS
            .iter()
            .any(|manager| std::process::Command::new(manager.program).arg("--version").output().is_ok());
        if !has_manager {
            return;
        }
        assert_eq!(played.batches, 1);
        let Effect::Facts(facts) = played.result.unwrap().effect else { panic!("no facts") };
        assert!(facts["packages"].as_map().unwrap().len() > 10);
        let failure = play(&MODULE, &[("manager", "portage".into())], &Play::default()).result.unwrap_err();
        assert!(failure.message.contains("not supported"), "{}", failure.message);
    }
}
