//! What a task of dnf or yum asks for, what the host has of it, and the commands that bring the rest.

use std::collections::HashSet;

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Subject};
use crate::modules::Args;

use super::dnf_options::{Manager, entries};
use super::rpm_spec::{FORMAT, Rpm, Spec};

/// The argument `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Present,
    Latest,
    Absent,
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub state: State,
    pub specs: Vec<Spec>,
    pub autoremove: bool,
    pub update_only: bool,
    pub allow_downgrade: bool,
    pub security: bool,
    pub bugfix: bool,
    /// The root directory of the packages, if it is not the host's.
    pub root: Option<String>,
}

impl Request {
    pub fn parse(args: &Args) -> Result<Request, Failure> {
        let autoremove = args.bool("autoremove");
        let state = match args.str("state") {
            Some("absent" | "removed") => State::Absent,
            Some("latest") => State::Latest,
            Some(_) => State::Present,
            None if autoremove => State::Absent,
            None => State::Present,
        };
        if autoremove && state != State::Absent {
            return Err(Failure::new("Autoremove should be used alone or with state=absent"));
        }
        let specs = entries(args, "name").iter().map(|name| Spec::parse(name)).collect::<Result<Vec<_>, _>>()?;
        if specs.contains(&Spec::All) && state != State::Latest {
            return Err(Failure::new("the name `*` means every installed package, so it needs `state: latest`"));
        }
        if state == State::Absent && specs.iter().any(|spec| matches!(spec, Spec::File(_) | Spec::Url(_))) {
            return Err(Failure::new("Cannot remove paths -- please specify package name."));
        }
        if state != State::Latest {
            for name in ["security", "bugfix"] {
                if args.bool(name) {
                    return Err(Failure::new(format!("`{name}` chooses among updates, so it needs `state: latest`")));
                }
            }
        }
        Ok(Request {
            state,
            specs,
            autoremove,
            update_only: args.bool("update_only"),
            allow_downgrade: args.bool("allow_downgrade"),
            security: args.bool("security"),
            bugfix: args.bool("bugfix"),
            root: args.str("installroot").filter(|root| !matches!(*root, "" | "/")).map(str::to_owned),
        })
    }

    /// `rpm` with the root directory.
    pub fn rpm(&self) -> String {
        self.root.as_ref().map_or("rpm".to_owned(), |root| format!("rpm --root {}", quote(root)))
    }

    /// The one question that tells of all packages of the task at once.
    pub fn question(&self, environment: &str) -> Script {
        let rpm = self.rpm();
        let mut text = format!(
            "{environment}LC_ALL=C\nexport LC_ALL\n\
             for p in dnf5 dnf yum; do f=$(command -v $p) && printf 'T%s\\t%s\\n' $p \"$(readlink -f \"$f\")\"; done\n\
             command -v rpm >/dev/null || {{ echo 'the host has no `rpm`' >&2; exit 127; }}\nq=\n"
        );
        let mut names: Vec<String> = Vec::new();
        for name in self.specs.iter().flat_map(Spec::names) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !names.is_empty() {
            let words: Vec<String> = names.iter().map(|name| quote(name)).collect();
            text.push_str(&format!("q=$({rpm} -q --qf 'I{FORMAT}\\n' -- {})\n", words.join(" ")));
        }
        let patterns: Vec<String> =
            self.specs.iter().filter_map(Spec::name_pattern).map(|pattern| quote(&pattern)).collect();
        if !patterns.is_empty() {
            text.push_str(&format!("{rpm} -qa --qf 'I{FORMAT}\\n' {}\n", patterns.join(" ")));
        }
        text.push_str("n='\n'\ntab=$(printf '\\t')\nprintf '%s\\n' \"$q\"\n");
        let by_name = |spec: &&Spec| matches!(spec, Spec::Package(_));
        let capabilities: Vec<String> = self.specs.iter().filter(by_name).map(|spec| quote(&spec.word())).collect();
        if !capabilities.is_empty() {
            // what no installed package is named may still be something that one provides
            text.push_str(&format!(
                "for s in {}; do case \"$n$q\" in *\"${{n}}I$s$tab\"*) ;; *) printf 'S%s\\n' \"$s\"; \
                 {rpm} -q --whatprovides --qf 'P{FORMAT}\\n' -- \"$s\" 2>/dev/null ;; esac; done\n",
                capabilities.join(" ")
            ));
        }
        for spec in &self.specs {
            let word = quote(&spec.word());
            match spec {
                Spec::Path(_) => text.push_str(&format!(
                    "printf 'S%s\\n' {word}; {rpm} -q --whatprovides --qf 'P{FORMAT}\\n' -- {word} 2>/dev/null\n"
                )),
                Spec::File(_) => text.push_str(&format!(
                    "printf 'S%s\\n' {word}; \
                     if f=$(rpm -qp --nosignature --nodigest --qf '{FORMAT}' -- {word} 2>&1); then printf 'F%s\\n' \"$f\"; \
                     {rpm} -q --qf 'I{FORMAT}\\n' -- \"${{f%%\"$tab\"*}}\"; else printf 'E%s\\n' \"$f\"; fi\n"
                )),
                _ => {}
            }
        }
        text.push_str(":\n");
        Script { text, footprint: self.footprint() }
    }

    fn footprint(&self) -> Footprint {
        let mut subjects = vec![Subject::Packages];
        for spec in &self.specs {
            if let Spec::File(path) | Spec::Path(path) = spec {
                subjects.push(Subject::Path(path.clone()));
            }
        }
        subjects.extend(self.root.iter().map(|root| Subject::Tree(root.clone())));
        Footprint::Of(subjects)
    }

    /// What the answer of the package manager depends on, as far as this host decides it.
    pub fn repository_footprint(&self) -> Footprint {
        let trees = ["/etc/yum.repos.d", "/etc/yum.conf", "/etc/yum", "/etc/dnf", "/var/cache/dnf", "/var/cache/yum"];
        self.footprint().and(Footprint::Of(trees.iter().map(|tree| Subject::Tree((*tree).to_owned())).collect()))
    }
}

/// What the host has of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// The package managers of the host: name, and the path of the program behind it.
    pub programs: Vec<(String, String)>,
    pub installed: Vec<Rpm>,
    /// What provides a name or path that no package has, by that.
    pub providers: Vec<(String, Rpm)>,
    /// The package in a package file, by its path; or why it cannot be read.
    pub files: Vec<(String, Result<Rpm, String>)>,
}

impl Seen {
    pub fn parse(response: &Response) -> Result<Seen, Failure> {
        if !response.success() {
            let reason = response.error_text();
            return Err(Failure::new(format!("the installed packages cannot be read: {}", reason.trim())));
        }
        let mut seen = Seen::default();
        let mut subject = String::new();
        for line in response.text().lines() {
            let Some((kind, rest)) = line.split_at_checked(1) else { continue };
            match kind {
                "T" => {
                    seen.programs.extend(rest.split_once('\t').map(|(name, path)| (name.to_owned(), path.to_owned())))
                }
                "S" => rest.clone_into(&mut subject),
                "I" => seen.installed.extend(Rpm::parse(rest)),
                "P" => seen.providers.extend(Rpm::parse(rest).map(|rpm| (subject.clone(), rpm))),
                "F" => seen.files.extend(Rpm::parse(rest).map(|rpm| (subject.clone(), Ok(rpm)))),
                "E" => seen.files.push((subject.clone(), Err(rest.trim_start_matches("error: ").to_owned()))),
                _ => {}
            }
        }
        let mut known = HashSet::new();
        seen.installed.retain(|rpm| known.insert(rpm.clone()));
        Ok(seen)
    }

    /// The installed packages that a task's entry means.
    pub fn of(&self, spec: &Spec) -> Vec<&Rpm> {
        let installed = spec.installed(&self.installed);
        if !installed.is_empty() {
            return installed;
        }
        match spec {
            Spec::Package(text) | Spec::Path(text) => {
                self.providers.iter().filter(|(name, _)| name == text).map(|(_, rpm)| rpm).collect()
            }
            Spec::File(path) => {
                let Some(Ok(inside)) = self.file(path) else { return Vec::new() };
                self.installed.iter().filter(|rpm| *rpm == inside).collect()
            }
            _ => Vec::new(),
        }
    }

    fn file(&self, path: &str) -> Option<&Result<Rpm, String>> {
        self.files.iter().find(|(name, _)| name == path).map(|(_, rpm)| rpm)
    }

    fn newer(&self, spec: &Spec) -> Option<&Rpm> {
        match spec {
            Spec::File(path) => {
                let Some(Ok(inside)) = self.file(path) else { return None };
                Spec::Package(inside.label()).newer_installed(&self.installed)
            }
            _ => spec.newer_installed(&self.installed),
        }
    }
}

/// One command of the package manager: its verb with options, and what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub verb: Vec<&'static str>,
    pub specs: Vec<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Work {
    pub commands: Vec<Command>,
    /// Entries of the return value `results` that need no command.
    pub notes: Vec<String>,
    pub warnings: Vec<String>,
}

/// Decides the commands.
pub fn plan(request: &Request, seen: &Seen, manager: Manager) -> Result<Work, Failure> {
    let mut work = Work::default();
    let (mut install, mut downgrade, mut upgrade, mut remove) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut upgrade_all = false;
    for spec in &request.specs {
        if let Spec::File(path) = spec
            && let Some(Err(reason)) = seen.file(path)
        {
            return Err(Failure::new(format!("No RPM file can be read at {path}: {reason}")).with("rc", 127));
        }
        let installed = seen.of(spec);
        match request.state {
            State::Absent => match spec {
                Spec::Group(_) => remove.push(spec.word()),
                _ if installed.is_empty() => work.notes.push(format!("{} is not installed", spec.word())),
                Spec::Path(_) => remove.extend(installed.iter().map(|rpm| rpm.name.clone())),
                _ => remove.push(spec.word()),
            },
            _ if *spec == Spec::All => upgrade_all = true,
            State::Latest if !installed.is_empty() && !matches!(spec, Spec::File(_) | Spec::Url(_)) => match spec {
                Spec::Path(_) => upgrade.extend(installed.iter().map(|rpm| rpm.name.clone())),
                Spec::Pattern(_) if !request.update_only => {
                    upgrade.push(spec.word());
                    install.push(spec.word());
                }
                _ => upgrade.push(spec.word()),
            },
            _ if !installed.is_empty() => {}
            _ => match seen.newer(spec) {
                Some(newer) if !request.allow_downgrade => work.warnings.push(format!(
                    "{} is installed, which is newer than {}: only `allow_downgrade: true` goes back",
                    newer.label(),
                    spec.word()
                )),
                Some(_) if manager == Manager::Yum => downgrade.push(spec.word()),
                Some(_) => install.push(spec.word()),
                None if request.update_only && !has_other_version(spec, seen) => work
                    .notes
                    .push(format!("Packages providing {} not installed due to update_only specified", spec.word())),
                None => install.push(spec.word()),
            },
        }
    }
    let mut push = |verb: Vec<&'static str>, specs: Vec<String>| work.commands.push(Command { verb, specs });
    if !install.is_empty() {
        push(vec!["install"], install);
    }
    if !downgrade.is_empty() {
        push(vec!["downgrade"], downgrade);
    }
    if upgrade_all || !upgrade.is_empty() {
        let mut verb = vec![if manager == Manager::Yum { "update" } else { "upgrade" }];
        verb.extend(request.security.then_some("--security"));
        verb.extend(request.bugfix.then_some("--bugfix"));
        push(verb, if upgrade_all { Vec::new() } else { upgrade });
    }
    if !remove.is_empty() {
        push(vec!["remove"], remove);
    }
    if request.autoremove {
        push(vec!["autoremove"], Vec::new());
    }
    Ok(work)
}

/// True if the package is installed in a version other than the one asked for.
fn has_other_version(spec: &Spec, seen: &Seen) -> bool {
    let names = spec.names();
    seen.installed.iter().any(|rpm| match spec {
        Spec::File(path) => matches!(seen.file(path), Some(Ok(inside)) if inside.name == rpm.name),
        _ => names.contains(&rpm.name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        let text = "Tyum\t/usr/bin/yum\nIhttpd\t0\t2.4.6\t99\tnoarch\npackage mysql is not installed\nImake\t1\t4\t1\tnoarch\n\
                    Swebserver\nPhttpd\t0\t2.4.6\t99\tnoarch\nS/usr/bin/make\nPmake\t1\t4\t1\tnoarch\n\
                    S/tmp/httpd.rpm\nFhttpd\t0\t2.2\t1\tnoarch\nS/tmp/no.rpm\nEerror: open of /tmp/no.rpm failed\n";
        Seen::parse(&Response::output(text)).unwrap()
    }

    fn request(state: State, names: &[&str]) -> Request {
        Request {
            state,
            specs: names.iter().map(|name| Spec::parse(name).unwrap()).collect(),
            autoremove: false,
            update_only: false,
            allow_downgrade: false,
            security: false,
            bugfix: false,
            root: None,
        }
    }

    fn commands(request: &Request, manager: Manager) -> Vec<String> {
        let work = plan(request, &seen(), manager).unwrap();
        work.commands.iter().map(|command| format!("{} {}", command.verb.join(" "), command.specs.join(" "))).collect()
    }

    #[test]
    fn only_what_is_missing_is_asked_for() {
        let cases: &[(State, &[&str], &[&str])] = &[
            (State::Present, &["httpd", "make", "webserver", "/usr/bin/make", "httpd-2.4.6"], &[]),
            (State::Present, &["httpd", "mysql", "/usr/bin/vi"], &["install mysql /usr/bin/vi"]),
            (State::Present, &["httpd >= 2.4", "httpd-2.5"], &["install httpd-2.5"]),
            (State::Present, &["httpd-2.2", "/tmp/httpd.rpm"], &[]),
            (State::Latest, &["httpd", "mysql", "/usr/bin/make"], &["install mysql", "upgrade httpd make"]),
            (State::Latest, &["*"], &["upgrade "]),
            (State::Absent, &["httpd", "mysql", "/usr/bin/make"], &["remove httpd make"]),
            (State::Absent, &["mysql"], &[]),
        ];
        for (state, names, expected) in cases {
            assert_eq!(commands(&request(*state, names), Manager::Dnf), *expected, "{names:?}");
        }
    }

    #[test]
    fn going_back_must_be_allowed() {
        let work = plan(&request(State::Present, &["httpd-2.2"]), &seen(), Manager::Dnf).unwrap();
        assert!(work.warnings[0].contains("httpd-2.4.6-99.noarch"), "{:?}", work.warnings);
        let allowed = Request { allow_downgrade: true, ..request(State::Present, &["httpd-2.2", "/tmp/httpd.rpm"]) };
        assert_eq!(commands(&allowed, Manager::Dnf), ["install httpd-2.2 /tmp/httpd.rpm"]);
        assert_eq!(commands(&allowed, Manager::Yum), ["downgrade httpd-2.2 /tmp/httpd.rpm"]);
    }

    #[test]
    fn updates_may_be_all_that_is_wanted() {
        let only = Request { update_only: true, security: true, ..request(State::Latest, &["httpd", "mysql"]) };
        let work = plan(&only, &seen(), Manager::Yum).unwrap();
        assert_eq!(work.commands, [Command { verb: vec!["update", "--security"], specs: vec!["httpd".into()] }]);
        assert_eq!(work.notes, ["Packages providing mysql not installed due to update_only specified"]);
    }

    #[test]
    fn a_package_file_that_cannot_be_read_is_named() {
        let failure = plan(&request(State::Present, &["/tmp/no.rpm"]), &seen(), Manager::Dnf).unwrap_err();
        assert_eq!(failure.message, "No RPM file can be read at /tmp/no.rpm: open of /tmp/no.rpm failed");
    }
}
