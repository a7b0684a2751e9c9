//! ansible.builtin.package: installs, updates and removes packages by whatever manager the host has.

use futures_util::join;

use crate::host::reads::Script;
use crate::host::{Failure, Footprint};
use crate::value::{Interruption, Map, Value};

use super::args::validate;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type, apt, dnf, dnf5, yum};

pub const MODULE: Module = Module {
    name: "ansible.builtin.package",
    aliases: &[],
    summary: "Installs, updates and removes packages by whatever manager the host has",
    args: &[
        Arg::new("name", Type::Raw, "The packages").aliases(&["pkg"]),
        Arg::new("state", Type::Raw, "Whether they are installed, as the manager's module has it"),
        Arg::new("use", Type::Str, "The manager's module, if it is not to be found out").default("auto"),
        passed("update_cache", &["update-cache", "expire-cache"]),
        passed("allow_downgrade", &["allow-downgrade", "allow_downgrades", "allow-downgrades"]),
        passed("autoremove", &[]),
        passed("lock_timeout", &[]),
        passed("disable_gpg_check", &[]),
        passed("enablerepo", &[]),
        passed("disablerepo", &[]),
        passed("exclude", &[]),
        passed("disable_excludes", &[]),
        passed("sslverify", &[]),
        passed("validate_certs", &[]),
        passed("installroot", &[]),
        passed("releasever", &[]),
        passed("conf_file", &[]),
        passed("allowerasing", &[]),
        passed("skip_broken", &[]),
        passed("update_only", &[]),
        passed("security", &[]),
        passed("bugfix", &[]),
        passed("best", &[]),
        passed("nobest", &[]),
        passed("install_weak_deps", &[]),
        passed("download_only", &[]),
        passed("download_dir", &[]),
        passed("cacheonly", &[]),
        passed("enable_plugin", &[]),
        passed("disable_plugin", &[]),
        passed("use_backend", &[]),
        passed("install_repoquery", &[]),
        passed("list", &[]),
        passed("cache_valid_time", &[]),
        passed("update_cache_retries", &[]),
        passed("update_cache_retry_max_delay", &[]),
        passed("deb", &[]),
        passed("upgrade", &[]),
        passed("purge", &[]),
        passed("autoclean", &[]),
        passed("clean", &[]),
        passed("default_release", &["default-release"]),
        passed("install_recommends", &["install-recommends"]),
        passed("only_upgrade", &[]),
        passed("fail_on_autoremove", &[]),
        passed("allow_unauthenticated", &["allow-unauthenticated"]),
        passed("allow_change_held_packages", &[]),
        passed("force", &[]),
        passed("dpkg_options", &[]),
        passed("policy_rc_d", &[]),
        passed("force_apt_get", &[]),
        passed("auto_install_module_deps", &[]),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("…", "what the manager's module returns")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// An argument that one of the modules has.
const fn passed(name: &'static str, aliases: &'static [&'static str]) -> Arg {
    Arg::new(name, Type::Raw, "As the module of the manager has it").aliases(aliases)
}

/// The modules that it chooses among.
const MANAGERS: &[&Module] = &[&dnf::MODULE, &dnf5::MODULE, &yum::MODULE, &apt::MODULE];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let name = match chosen(&invocation)? {
        Some(name) => name,
        None => find_out(&invocation).await?,
    };
    let bare = name.rsplit('.').next().unwrap_or(&name);
    let Some(module) = MANAGERS.iter().find(|module| module.bare_name() == bare) else {
        let known: Vec<&str> = MANAGERS.iter().map(|module| module.bare_name()).collect();
        return Err(Failure::new(format!(
            "Could not find a matching action for the \"{name}\" package manager: there are {}",
            known.join(", ")
        )));
    };
    let args = validate(module, &given(&invocation.args))?;
    let Action::Module(run) = module.action else { return Err(Failure::new(format!("{} is no module", module.name))) };
    run(Invocation { args, ..invocation }).await
}

/// The arguments for the module of the manager.
fn given(args: &Args) -> Map {
    args.map().iter().filter(|(name, _)| name.as_str() != Some("use")).map(|(n, v)| (n.clone(), v.clone())).collect()
}

/// The manager that the task, a variable or the gathered facts name.
fn chosen(invocation: &Invocation) -> Result<Option<String>, Failure> {
    if invocation.args.text("use") != "auto" {
        return Ok(Some(invocation.args.text("use").to_owned()));
    }
    for variable in ["ansible_package_use", "ansible_pkg_mgr"] {
        let value = match invocation.context.scope.get(variable) {
            Ok(value) => value,
            Err(Interruption::Unknown(_)) => None,
            Err(interruption) => return Err(Failure::interrupted(interruption)),
        };
        let value = value.map(|value| invocation.context.value(&value)).transpose()?;
        let text = value.as_ref().and_then(Value::as_str).filter(|text| !matches!(*text, "" | "auto" | "unknown"));
        if let Some(text) = text {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
}

/// Looks at the host. What the likely modules will ask first travels in the same batch, so this costs no round trip.
async fn find_out(invocation: &Invocation) -> Result<String, Failure> {
    let text = ". /etc/os-release 2>/dev/null; printf '%s %s\\n' \"$ID\" \"$ID_LIKE\"\n\
                for p in dnf5 dnf yum apt-get zypper pacman apk emerge opkg; do command -v $p >/dev/null && echo $p; done; :\n";
    let script = Script { text: text.to_owned(), footprint: Footprint::path("/usr/bin") };
    let (found, _, _) =
        join!(invocation.host.read(script), ask(invocation, &dnf::MODULE), ask(invocation, &apt::MODULE));
    let found = found?.text();
    manager(&found)
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("Could not detect a package manager. Try using the \"use\" option."))
}

/// The first question of a module, whether or not the host can answer it.
async fn ask(invocation: &Invocation, module: &'static Module) -> Option<()> {
    let args = validate(module, &given(&invocation.args)).ok()?;
    let script = match module.bare_name() {
        "apt" => apt::question(&args, &invocation.settings),
        _ => dnf::question(&args, &invocation.settings),
    };
    invocation.host.read(script.ok()?).await.ok().map(|_| ())
}

/// The manager of the system among those that are there.
fn manager(found: &str) -> Option<&'static str> {
    let mut lines = found.lines();
    let system: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let programs: Vec<&str> = lines.collect();
    let has = |program: &str| programs.contains(&program);
    if has("apt-get") && system.iter().any(|name| matches!(*name, "debian" | "ubuntu")) {
        return Some("apt");
    }
    const ORDER: &[(&str, &str)] = &[
        ("dnf", "dnf"),
        ("dnf5", "dnf5"),
        ("yum", "yum"),
        ("apt-get", "apt"),
        ("zypper", "zypper"),
        ("pacman", "pacman"),
        ("apk", "apk"),
        ("emerge", "portage"),
        ("opkg", "opkg"),
    ];
    ORDER.iter().find(|(program, _)| has(program)).map(|(_, manager)| *manager)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::package_common::lab::{DebLab, RpmLab};
    use crate::modules::testing::{Play, context_with, play, play_in};

    #[test]
    fn every_argument_of_the_managers_is_known() {
        for module in MANAGERS {
            for name in module.arg_names().filter(|name| !matches!(*name, "package")) {
                assert!(MODULE.arg(name).is_some(), "{name} of {}", module.name);
            }
        }
    }

    #[test]
    fn the_manager_is_the_one_of_the_system() {
        let cases = [
            ("centos rhel fedora\nyum\n", Some("yum")),
            ("centos rhel fedora\ndnf\nyum\n", Some("dnf")),
            ("openEuler \ndnf\nyum\n", Some("dnf")),
            ("debian \ndnf\napt-get\n", Some("apt")),
            ("ubuntu debian\napt-get\n", Some("apt")),
            ("alpine \napk\n", Some("apk")),
            (" \n", None),
        ];
        for (found, name) in cases {
            assert_eq!(manager(found), name, "{found}");
        }
    }

    #[test]
    fn facts_and_variables_choose() {
        let Some(lab) = RpmLab::new() else { return };
        let given = lab.arguments(&[("name", "zz-lonely".into())]);
        let context = || context_with([("ansible_pkg_mgr", "dnf".into())]);
        assert!(play_in(&MODULE, &given, &Play::default(), context()).result.unwrap().changed);
        assert_eq!(lab.installed(), "zz-lonely-2.0");
        let again = play_in(&MODULE, &given, &Play::default(), context());
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
        let context = context_with([("ansible_pkg_mgr", "zypper".into())]);
        let failure = play_in(&MODULE, &given, &Play::default(), context).result.unwrap_err();
        assert!(failure.message.contains("\"zypper\""), "{}", failure.message);
        let given = [("name", "a".into()), ("use", "ansible.builtin.apt".into()), ("enablerepo", "b".into())];
        let failure = play(&MODULE, &given, &Play::default()).result.unwrap_err();
        assert!(failure.message.contains("Unsupported parameters for (apt) module: enablerepo"), "{}", failure.message);
    }

    #[test]
    fn without_facts_the_host_is_asked_in_the_same_read() {
        let Some(lab) = DebLab::new() else { return };
        if !std::fs::read_to_string("/etc/os-release").is_ok_and(|text| text.contains("debian")) {
            return;
        }
        let play = |given: &[(&str, Value)]| play(&MODULE, given, &Play { shell: lab.shell(), check: false });
        let given = [("name", "zz-alpha".into()), ("state", "present".into())];
        assert!(play(&given).result.unwrap().changed);
        let again = play(&given);
        assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
    }
}
