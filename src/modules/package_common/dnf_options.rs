//! The options of dnf, dnf5 and yum that the arguments of a task become.

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::modules::Args;

use super::tool::Lock;

/// A package manager for RPM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    Dnf,
    Dnf5,
    /// The one of CentOS 7.
    Yum,
}

impl Manager {
    pub fn program(self) -> &'static str {
        match self {
            Manager::Dnf => "dnf",
            Manager::Dnf5 => "dnf5",
            Manager::Yum => "yum",
        }
    }

    /// The manager for a task of `module`, among the programs that the host has: name and what it really is.
    pub fn choose(module: &str, backend: &str, programs: &[(String, String)]) -> Result<Manager, Failure> {
        let real = |name: &str| programs.iter().find(|(program, _)| program == name).map(|(_, real)| real.as_str());
        let has = |manager: Manager| match manager {
            Manager::Dnf5 => real("dnf5").is_some(),
            Manager::Dnf => real("dnf").is_some_and(|path| !path.ends_with("/dnf5")),
            Manager::Yum => real("yum").is_some_and(|path| !path.contains("dnf")),
        };
        let order = match (backend, module) {
            ("dnf5", _) => vec![Manager::Dnf5],
            ("dnf4" | "yum4" | "dnf", _) => vec![Manager::Dnf],
            (_, "dnf5") => vec![Manager::Dnf5, Manager::Dnf, Manager::Yum],
            (_, "yum") => vec![Manager::Yum, Manager::Dnf, Manager::Dnf5],
            // a host that has both with dnf5 as `dnf` is run by dnf5
            _ if real("dnf").is_some_and(|path| path.ends_with("/dnf5")) => vec![Manager::Dnf5],
            _ => vec![Manager::Dnf, Manager::Dnf5, Manager::Yum],
        };
        order.iter().copied().find(|manager| has(*manager)).ok_or_else(|| {
            let names: Vec<&str> = order.iter().map(|manager| manager.program()).collect();
            Failure::new(format!("the host has no {}: is `{module}` the right module for it?", names.join(", ")))
        })
    }

    /// How it tells that another program holds the lock; it is told not to wait by itself.
    pub fn lock(self, timeout: i64) -> Lock {
        let words =
            "waiting for process with pid\\|holding the yum lock\\|obtain the transaction lock\\|acquire.* lock";
        Lock { code: if self == Manager::Dnf5 { None } else { Some(200) }, words, timeout }
    }
}

/// Refuses the arguments that this manager has nothing for.
pub fn refuse(manager: Manager, args: &Args) -> Result<(), Failure> {
    let unsupported: &[&str] = match manager {
        Manager::Yum => &["allowerasing"],
        _ => &[],
    };
    for name in unsupported {
        if args.bool(name) {
            return Err(Failure::new(format!("`{name}` needs dnf: the yum of this host has no such option")));
        }
    }
    if args.has("best") && args.has("nobest") {
        return Err(Failure::new("parameters are mutually exclusive: best|nobest"));
    }
    Ok(())
}

/// The words between the program and its command.
pub fn words(manager: Manager, args: &Args) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let set = |words: &mut Vec<String>, setting: &str| words.push(format!("--setopt={setting}"));
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    if let Some(path) = text("conf_file") {
        words.push(format!("--config={path}"));
    }
    if let Some(root) = text("installroot").filter(|root| *root != "/") {
        words.push(format!("--installroot={root}"));
    }
    if let Some(release) = text("releasever") {
        words.push(format!("--releasever={release}"));
    }
    if manager != Manager::Dnf5 {
        set(&mut words, "exit_on_lock=1");
    }
    // the order matters: what is disabled by a pattern may be enabled again by name
    for (argument, option) in
        [("disablerepo", "--disablerepo"), ("enablerepo", "--enablerepo"), ("exclude", "--exclude")]
    {
        words.extend(entries(args, argument).into_iter().map(|entry| format!("{option}={entry}")));
    }
    let (enable, disable) = if manager == Manager::Dnf5 {
        ("--enable-plugin", "--disable-plugin")
    } else {
        ("--enableplugin", "--disableplugin")
    };
    words.extend(entries(args, "disable_plugin").into_iter().map(|entry| format!("{disable}={entry}")));
    words.extend(entries(args, "enable_plugin").into_iter().map(|entry| format!("{enable}={entry}")));
    if let Some(which) = text("disable_excludes") {
        match manager {
            Manager::Dnf5 => set(&mut words, &format!("disable_excludes={}", if which == "all" { "*" } else { which })),
            _ => words.push(format!("--disableexcludes={which}")),
        }
    }
    if args.bool("disable_gpg_check") {
        words.push(if manager == Manager::Dnf5 { "--no-gpgchecks" } else { "--nogpgcheck" }.to_owned());
    }
    if args.optional_bool("sslverify") == Some(false) || args.optional_bool("validate_certs") == Some(false) {
        set(&mut words, "sslverify=0");
        if args.optional_bool("sslverify") == Some(false) {
            set(&mut words, "*.sslverify=0");
        }
    }
    if args.bool("skip_broken") {
        match manager {
            Manager::Dnf => set(&mut words, "strict=0"),
            Manager::Yum => words.push("--skip-broken".to_owned()),
            Manager::Dnf5 => words.extend(["--skip-broken".to_owned(), "--skip-unavailable".to_owned()]),
        }
    }
    if args.bool("cacheonly") {
        words.push("--cacheonly".to_owned());
    }
    // yum 3 knows neither weak dependencies nor anything but the best
    if manager != Manager::Yum {
        if args.optional_bool("install_weak_deps") == Some(false) {
            set(&mut words, "install_weak_deps=0");
        }
        let best = args.optional_bool("nobest").map(|nobest| !nobest).or(args.optional_bool("best"));
        if let Some(best) = best {
            set(&mut words, if best { "best=1" } else { "best=0" });
        }
        if args.bool("allowerasing") {
            words.push("--allowerasing".to_owned());
        }
    }
    set(
        &mut words,
        if args.bool("autoremove") { "clean_requirements_on_remove=1" } else { "clean_requirements_on_remove=0" },
    );
    if args.bool("download_only") {
        words.push("--downloadonly".to_owned());
        if let Some(directory) = text("download_dir") {
            match manager {
                Manager::Dnf5 => set(&mut words, &format!("destdir={directory}")),
                _ => words.push(format!("--downloaddir={directory}")),
            }
        }
    }
    words
}

/// The entries of a list, of which each may hold several with commas between them.
pub fn entries(args: &Args, name: &str) -> Vec<String> {
    args.list(name)
        .iter()
        .flat_map(|entry| entry.split(','))
        .map(|entry| entry.trim().to_owned())
        .filter(|entry| !entry.is_empty())
        .collect()
}

/// A command line for the shell.
pub fn command_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}
