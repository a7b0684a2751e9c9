//! What the arguments of apt ask for, and the commands that bring it. Pure.

use crate::connect::shell::quote;
use crate::host::Failure;
use crate::host::reads::Script;
use crate::modules::Args;

use super::deb_request::{Question, Seen, Spec, State, Version, missing, preparation};
use super::dnf_options::{command_line, entries};
use super::tool::Lock;

/// How apt tells that another program holds the lock: in its errors alone.
const LOCK_WORDS: &str =
    "Could not get lock\\|Unable to lock\\|Unable to acquire the dpkg\\|is locked by another process";

/// The lock of apt, waited for as long as the module apt does by default.
pub const LOCK: Lock = Lock { code: None, words: LOCK_WORDS, timeout: 60 };

/// What the arguments ask for.
pub struct Wanted {
    pub args: Args,
    /// The lines in front of every script.
    pub environment: String,
    pub state: State,
    pub specs: Vec<Spec>,
    /// Package files on the host, and URLs.
    files: Vec<String>,
    urls: Vec<String>,
    /// The verb of apt-get that upgrades all packages.
    upgrade: Option<&'static str>,
    pub lock: Lock,
}

/// What is to be done, as far as the first look tells.
#[derive(Debug, Default)]
pub struct Work {
    pub update: bool,
    pub clean: bool,
    /// Shell code that runs apt-get, with `OPTIONS` where the options go.
    pub commands: Vec<String>,
    /// Names that are to count as installed for themselves.
    pub manual: Vec<String>,
}

/// Stands in a command for the options that differ between looking and doing.
pub const OPTIONS: &str = "@OPTIONS@";

impl Wanted {
    pub fn parse(args: Args, environment: &str) -> Result<Wanted, Failure> {
        let state = State::parse(args.text("state"));
        let names = entries(&args, "name");
        let upgrade_all = names.iter().any(|name| name == "*");
        if upgrade_all && (state != State::Latest || names.len() > 1) {
            return Err(Failure::new(
                "the name `*` means every installed package: it needs `state: latest`, and no other names beside it",
            ));
        }
        let specs = names.iter().filter(|name| *name != "*").map(|name| Spec::parse(name)).collect::<Result<_, _>>()?;
        let debs = args.text("deb").split(',').map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
        let (urls, files) = debs.partition(|path| path.contains("://"));
        if args.has("deb") && state != State::Present {
            return Err(Failure::new("deb only supports state=present"));
        }
        let upgrade = match args.text("upgrade") {
            "dist" | "full" => Some("dist-upgrade"),
            "safe" | "yes" => Some("upgrade --with-new-pkgs"),
            _ if upgrade_all => Some("upgrade --with-new-pkgs"),
            _ => None,
        };
        let lock = Lock { timeout: args.int("lock_timeout").unwrap_or(LOCK.timeout), ..LOCK };
        let environment =
            format!("{}export DEBIAN_FRONTEND=noninteractive DEBIAN_PRIORITY=critical\n", preparation(environment));
        Ok(Wanted { args, environment, state, specs, files, urls, upgrade, lock })
    }

    /// The package lists are to be fetched if they are old.
    pub fn wants_lists(&self) -> bool {
        self.args.bool("update_cache") || self.args.int("cache_valid_time").unwrap_or(0) > 0
    }

    /// The first read.
    pub fn question(&self) -> Script {
        self.needs().script(&self.environment)
    }

    fn needs(&self) -> Question {
        let mut specs = self.specs.clone();
        // a package file whose name tells what is in it
        specs.extend(self.urls.iter().filter_map(|url| in_url(url)).map(|(name, _)| Spec { name, version: None }));
        Question {
            specs,
            files: self.files.clone(),
            expand: matches!(self.state, State::Present | State::Latest | State::Fixed),
            age: self.wants_lists(),
            archives: self.args.bool("clean"),
        }
    }

    /// Decides what is to be done.
    pub fn work(&self, seen: &Seen) -> Result<Work, Failure> {
        let mut work = Work { clean: self.args.bool("clean") && seen.has_archives, ..Work::default() };
        let mut push = |words: String| work.commands.push(format!("apt-get {OPTIONS} {words}"));
        if let Some(verb) = self.upgrade {
            push(verb.to_owned());
        }
        let mut packages: Vec<String> = Vec::new();
        for (path, file) in self.files.iter().zip(&seen.files) {
            match file {
                Err(reason) => return Err(Failure::new(format!("Unable to install package: {path}: {reason}"))),
                Ok(deb) if seen.has(deb) => {}
                Ok(_) => packages.push(quote(&absolute(path))),
            }
        }
        let mut downloads = String::new();
        for (index, url) in self.urls.iter().enumerate() {
            let is_installed = in_url(url).is_some_and(|(name, version)| {
                let spec = Spec { name, version: Some(Version::Exactly(version)) };
                seen.installed(&spec).any(|deb| spec.accepts(&deb.version))
            });
            if !is_installed {
                let file = format!("\"$t/{index}.deb\"");
                downloads.push_str(&format!(
                    "chmod 755 \"$t\"; /usr/lib/apt/apt-helper download-file {} {file} >&2 || exit; ",
                    quote(url)
                ));
                packages.push(file);
            }
        }
        if !packages.is_empty() {
            work.commands.push(format!("{downloads}apt-get {OPTIONS} install {}", packages.join(" ")));
        }
        if self.specs.is_empty() && self.upgrade.is_none() {
            let mut push = |words: &str| work.commands.push(format!("apt-get {OPTIONS} {words}"));
            if self.args.bool("autoclean") {
                push("autoclean");
            }
            if self.args.bool("autoremove") {
                push("autoremove");
            }
            if self.state == State::Fixed {
                push("--fix-broken install");
            }
        }
        let (only_upgrade, purge) = (self.args.bool("only_upgrade"), self.args.bool("purge"));
        let words = missing(self.state, &self.specs, seen, only_upgrade, purge)?;
        if !words.is_empty() {
            let verb = match self.state {
                State::Absent => "remove",
                State::BuildDep => "build-dep",
                State::Fixed => "--fix-broken install",
                State::Present | State::Latest => "install",
            };
            work.commands.push(format!("apt-get {OPTIONS} {verb} {}", command_line(&words)));
        }
        if matches!(self.state, State::Present | State::Latest) {
            let is_named = |name: &&String| self.specs.iter().any(|spec| spec.name == **name);
            work.manual = seen.automatic.iter().filter(is_named).cloned().collect();
        }
        let asks_for_nothing_else =
            self.specs.is_empty() && self.upgrade.is_none() && !self.args.has("deb") && work.commands.is_empty();
        let is_old = seen.now - seen.lists_time > self.args.int("cache_valid_time").unwrap_or(0);
        let is_of_use = asks_for_nothing_else || !work.commands.is_empty() && self.state != State::Absent;
        work.update = self.wants_lists() && is_old && is_of_use;
        Ok(work)
    }

    /// The options of apt-get, for looking or for doing.
    fn options(&self, simulate: bool) -> String {
        let mut words: Vec<String> = Vec::new();
        if simulate {
            words.extend(["--simulate", "-o", "Debug::NoLocking=1"].map(str::to_owned));
        }
        words.push("--assume-yes".to_owned());
        for option in self.args.text("dpkg_options").split(',').map(str::trim).filter(|option| !option.is_empty()) {
            words.extend(["-o".to_owned(), format!("Dpkg::Options::=--{option}")]);
        }
        if let Some(release) = self.args.str("default_release").filter(|release| !release.is_empty()) {
            words.push(format!("--target-release={release}"));
        }
        if let Some(recommends) = self.args.optional_bool("install_recommends") {
            words.push(if recommends { "--install-recommends" } else { "--no-install-recommends" }.to_owned());
        }
        let force = self.args.bool("force");
        for (argument, option, forced) in [
            ("purge", "--purge", false),
            ("autoremove", "--auto-remove", false),
            ("only_upgrade", "--only-upgrade", false),
            ("fail_on_autoremove", "--no-remove", false),
            ("allow_downgrade", "--allow-downgrades", force),
            ("allow_unauthenticated", "--allow-unauthenticated", force),
            ("allow_change_held_packages", "--allow-change-held-packages", force),
            ("force", "--allow-remove-essential", false),
        ] {
            let removes_settings = argument == "purge" && self.state != State::Absent && !self.args.bool("autoremove");
            if (self.args.bool(argument) || forced) && !removes_settings {
                words.push(option.to_owned());
            }
        }
        command_line(&words)
    }

    /// The commands, to look at what they would do or to do it.
    pub fn commands(&self, work: &Work, simulate: bool) -> Vec<String> {
        let options = self.options(simulate);
        work.commands.iter().map(|command| command.replace(OPTIONS, &options)).collect()
    }
}

/// apt-get takes what has no slash for a name.
fn absolute(path: &str) -> String {
    if path.contains('/') { path.to_owned() } else { format!("./{path}") }
}

/// Name and version in a URL's last part, if it is named `name_version_architecture.deb` as usual.
fn in_url(url: &str) -> Option<(String, String)> {
    let file = url.split(['?', '#']).next()?.rsplit('/').next()?.strip_suffix(".deb")?;
    let mut parts = file.split('_');
    let (name, version, _) = (parts.next()?, parts.next()?, parts.next()?);
    let version =
        version.replace("%3a", ":").replace("%3A", ":").replace("%2b", "+").replace("%2B", "+").replace("%7e", "~");
    (parts.next().is_none() && !name.is_empty()).then(|| (name.to_owned(), version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_tell_what_is_in_it() {
        let cases = [
            ("https://example.org/a/zz_1%3a2.0-1_amd64.deb?x=1", Some(("zz", "1:2.0-1"))),
            ("https://example.org/latest.deb", None),
        ];
        for (url, found) in cases {
            assert_eq!(in_url(url), found.map(|(name, version)| (name.to_owned(), version.to_owned())), "{url}");
        }
    }
}
