//! What a task of apt asks for, what the host has of it, and the words for apt-get that bring the rest.

use std::cmp::Ordering;

use globset::Glob;

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Subject};

use super::deb_version::compare;

/// One entry of `name`: a name or pattern, and perhaps a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub name: String,
    pub version: Option<Version>,
}

/// The version that an entry asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// This one; wildcards are allowed.
    Exactly(String),
    AtLeast(String),
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '!'])
}

impl Spec {
    pub fn parse(text: &str) -> Result<Spec, Failure> {
        let text = text.trim();
        let refuse = || Failure::new(format!("invalid package spec: {text}"));
        if text.matches('=').count() > 1 || text.contains(char::is_whitespace) || text.starts_with(['-', '=']) {
            return Err(refuse());
        }
        let (name, version) = match (text.split_once(">="), text.split_once('=')) {
            (Some((name, version)), _) => (name, Some(Version::AtLeast(version.to_owned()))),
            (None, Some((name, version))) => (name, Some(Version::Exactly(version.to_owned()))),
            (None, None) => (text, None),
        };
        let has_version = match &version {
            Some(Version::Exactly(version) | Version::AtLeast(version)) => !version.is_empty(),
            None => true,
        };
        if name.is_empty() || name.contains(['<', '>']) || !has_version {
            return Err(refuse());
        }
        Ok(Spec { name: name.to_owned(), version })
    }

    pub fn is_pattern(&self) -> bool {
        is_pattern(&self.name)
    }

    /// As apt-get takes it.
    pub fn word(&self) -> String {
        match &self.version {
            Some(Version::Exactly(version)) => format!("{}={version}", self.name),
            _ => self.name.clone(),
        }
    }

    /// True if this version is one that was asked for.
    pub fn accepts(&self, version: &str) -> bool {
        match &self.version {
            None => true,
            Some(Version::Exactly(wanted)) if is_pattern(wanted) => {
                Glob::new(wanted).is_ok_and(|glob| glob.compile_matcher().is_match(version))
            }
            Some(Version::Exactly(wanted)) => compare(version, wanted) == Ordering::Equal,
            Some(Version::AtLeast(wanted)) => compare(version, wanted) != Ordering::Less,
        }
    }

    fn means(&self, deb: &Deb) -> bool {
        let (name, architecture) = self.name.split_once(':').unwrap_or((&self.name, ""));
        let right_architecture = architecture.is_empty() || architecture == "any" || deb.architecture == architecture;
        let right_name = if is_pattern(name) {
            Glob::new(name).is_ok_and(|glob| glob.compile_matcher().is_match(&deb.name))
        } else {
            deb.name == name
        };
        right_name && right_architecture
    }
}

/// What dpkg knows of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deb {
    pub name: String,
    pub architecture: String,
    /// Two or three letters: what is wanted, what is, and whether there is an error (dpkg-query(1)).
    pub status: String,
    pub version: String,
}

impl Deb {
    fn parse(line: &str) -> Option<Deb> {
        let mut fields = line.split('\t').map(str::to_owned);
        Some(Deb {
            name: fields.next()?,
            architecture: fields.next()?,
            status: fields.next()?,
            version: fields.next()?,
        })
    }

    /// Unpacked and configured, or waiting for a trigger only.
    pub fn is_installed(&self) -> bool {
        matches!(self.status.as_bytes().get(1), Some(b'i' | b't' | b'W'))
    }

    /// Its settings are left behind.
    fn has_settings(&self) -> bool {
        self.status.as_bytes().get(1) == Some(&b'c')
    }
}

/// The argument `state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Present,
    Latest,
    Absent,
    BuildDep,
    Fixed,
}

impl State {
    pub fn parse(word: &str) -> State {
        match word {
            "latest" => State::Latest,
            "absent" | "removed" => State::Absent,
            "build-dep" => State::BuildDep,
            "fixed" => State::Fixed,
            _ => State::Present,
        }
    }
}

/// What a task needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    pub specs: Vec<Spec>,
    /// Package files on the host.
    pub files: Vec<String>,
    /// Patterns are to be looked up among all packages there are, not only the installed.
    pub expand: bool,
    /// The age of the package lists.
    pub age: bool,
    /// How much of fetched packages there is.
    pub archives: bool,
}

/// Sets `$d` to the directory of apt's state. Only a host that says so by APT_CONFIG has another.
const STATE_DIRECTORY: &str =
    "d=/var/lib/apt/\n[ -z \"$APT_CONFIG\" ] || eval \"$(apt-config shell d Dir::State/d)\"\n";

/// Prints the line that tells when the package lists were fetched last.
pub const LISTS_TIME: &str = "if [ -e \"${d}periodic/update-success-stamp\" ]; then l=${d}periodic/update-success-stamp; \
                              else l=${d}lists; fi\nprintf 'L%s\\n' \"$(stat -c %Y \"$l\" 2>/dev/null)\"\n";

/// The lines in front of every script about apt.
pub fn preparation(environment: &str) -> String {
    format!("{environment}LC_ALL=C\nexport LC_ALL\n{STATE_DIRECTORY}")
}

impl Question {
    /// The one read that answers it.
    pub fn script(&self, environment: &str) -> Script {
        let mut text = preparation(environment);
        text.push_str(
            "command -v apt-get >/dev/null || { echo 'the host has no `apt-get`: is `apt` the right module for it?' >&2; exit 127; }\n",
        );
        const FORMAT: &str = "I${Package}\\t${Architecture}\\t${db:Status-Abbrev}\\t${Version}\\n";
        let mut names: Vec<String> = Vec::new();
        for spec in &self.specs {
            let name = quote(&spec.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if !self.specs.is_empty() {
            text.push_str(&format!(
                "tab=$(printf '\\t')\nq=$(dpkg-query -W -f '{FORMAT}' -- {} 2>/dev/null | grep -v \"${{tab}}un \")\nprintf '%s\\n' \"$q\"\n",
                names.join(" ")
            ));
            let plain: Vec<String> =
                self.specs.iter().filter(|spec| !spec.is_pattern()).map(|spec| quote(&spec.name)).collect();
            // what no installed package is named may still be something that one provides
            if !plain.is_empty() {
                let searched: Vec<String> = plain.iter().map(|name| format!("-e {name}")).collect();
                text.push_str(&format!(
                    "n='\n'\np=\n\
                     for s in {}; do case \"$n$q\" in *\"${{n}}I${{s%%:*}}$tab\"*) ;; *) p=1 ;; esac; done\n\
                     [ -z \"$p\" ] || dpkg-query -W -f 'V${{db:Status-Abbrev}}\\t${{Provides}}\\n' | \
                     grep \"^V.[itW].*$tab.\" | grep -F {}\n",
                    plain.join(" "),
                    searched.join(" ")
                ));
            }
            let listed = names.join(" ");
            text.push_str(&format!(
                "if [ -r \"${{d}}extended_states\" ]; then awk -v names={} \
                 'BEGIN {{ split(names, n, \" \"); for (i in n) w[n[i]] = 1 }} $1 == \"Package:\" {{ p = $2 }} \
                 $1 == \"Auto-Installed:\" && $2 == 1 && (p in w) {{ print \"A\" p }}' \"${{d}}extended_states\"; fi\n",
                quote(&listed)
            ));
        }
        if self.expand {
            for spec in self.specs.iter().filter(|spec| spec.is_pattern()) {
                let literal = spec.name.split(['*', '?', '[', '!']).next().unwrap_or_default();
                text.push_str(&format!(
                    "apt-cache pkgnames {} | grep -x -- {} | sed 's/^/N/'\n",
                    quote(literal),
                    quote(&basic_expression(&spec.name))
                ));
            }
        }
        for path in &self.files {
            let path = quote(path);
            text.push_str(&format!(
                "if f=$(dpkg-deb -f {path} Package Architecture Version 2>&1); then \
                 p=$(dpkg-deb -f {path} Package) a=$(dpkg-deb -f {path} Architecture) v=$(dpkg-deb -f {path} Version); \
                 printf 'F%s\\t%s\\tii \\t%s\\n' \"$p\" \"$a\" \"$v\"; dpkg-query -W -f '{FORMAT}' -- \"$p\" 2>/dev/null; \
                 else printf 'E%s\\n' \"$f\" | tr '\\n' ' '; echo; fi\n",
            ));
        }
        if self.age {
            text.push_str(LISTS_TIME);
            text.push_str("printf 'T%s\\n' \"$(date +%s)\"\n");
        }
        if self.archives {
            text.push_str(
                "eval \"$(apt-config shell a Dir::Cache::archives/d)\"\n\
                 for f in \"$a\"*.deb \"$a\"partial/*; do [ ! -f \"$f\" ] || { echo X; break; }; done\n",
            );
        }
        text.push_str(":\n");
        Script { text, footprint: self.footprint() }
    }

    fn footprint(&self) -> Footprint {
        let mut subjects = vec![Subject::Packages];
        subjects.extend(self.files.iter().map(|path| Subject::Path(path.clone())));
        if self.age || self.expand {
            subjects.push(Subject::Tree("/var/lib/apt".into()));
        } else {
            subjects.push(Subject::Path("/var/lib/apt/extended_states".into()));
        }
        if self.archives {
            subjects.push(Subject::Tree("/var/cache/apt".into()));
        }
        Footprint::Of(subjects)
    }
}

/// A pattern of file names as a basic regular expression.
fn basic_expression(pattern: &str) -> String {
    let mut expression = String::new();
    let mut in_set = false;
    for sign in pattern.chars() {
        match sign {
            '!' if expression.ends_with('[') => expression.push('^'),
            ']' if in_set => {
                in_set = false;
                expression.push(']');
            }
            sign if in_set => expression.push(sign),
            '[' => {
                in_set = true;
                expression.push('[');
            }
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '.' | '^' | '$' | '\\' => expression.extend(['\\', sign]),
            sign => expression.push(sign),
        }
    }
    expression
}

/// What footprint the answers of apt-get have beside installed packages.
pub fn repository_footprint() -> Footprint {
    let trees = ["/etc/apt", "/var/lib/apt", "/var/cache/apt"].map(|tree| Subject::Tree(tree.to_owned()));
    Footprint::Of(trees.into_iter().chain([Subject::Packages]).collect())
}

/// What the host has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    pub known: Vec<Deb>,
    /// Names that installed packages provide.
    pub provided: Vec<String>,
    /// Installed for others only.
    pub automatic: Vec<String>,
    /// What the patterns match among all packages there are.
    pub expanded: Vec<String>,
    /// The package in each file, or why it cannot be read.
    pub files: Vec<Result<Deb, String>>,
    /// When the package lists were fetched, in seconds since the epoch; 0 if never.
    pub lists_time: i64,
    pub now: i64,
    /// There are fetched packages.
    pub has_archives: bool,
}

impl Seen {
    pub fn parse(response: &Response) -> Result<Seen, Failure> {
        if !response.success() {
            let reason = response.error_text();
            return Err(Failure::new(format!("the installed packages cannot be read: {}", reason.trim())));
        }
        let mut seen = Seen::default();
        for line in response.text().lines() {
            let Some((kind, rest)) = line.split_at_checked(1) else { continue };
            match kind {
                "I" => seen.known.extend(Deb::parse(rest)),
                "V" => seen.provided.extend(provided(rest)),
                "A" => seen.automatic.push(rest.to_owned()),
                "N" => seen.expanded.push(rest.to_owned()),
                "F" => seen.files.extend(Deb::parse(rest).map(Ok)),
                "E" => seen.files.push(Err(rest.trim().trim_start_matches("dpkg-deb: error: ").to_owned())),
                "L" => seen.lists_time = rest.parse().unwrap_or(0),
                "T" => seen.now = rest.parse().unwrap_or(0),
                "X" => seen.has_archives = true,
                _ => {}
            }
        }
        Ok(seen)
    }

    pub fn installed<'a>(&'a self, spec: &'a Spec) -> impl Iterator<Item = &'a Deb> {
        self.known.iter().filter(move |deb| deb.is_installed() && spec.means(deb))
    }

    fn is_installed(&self, name: &str, version: &str) -> bool {
        self.known
            .iter()
            .any(|deb| deb.is_installed() && deb.name == name && compare(&deb.version, version) == Ordering::Equal)
    }

    /// True if the package of this file is installed in this version.
    pub fn has(&self, deb: &Deb) -> bool {
        self.is_installed(&deb.name, &deb.version)
    }
}

/// The names in a field `Provides`: `mail-transport-agent, zz (= 1.2)`.
fn provided(line: &str) -> Vec<String> {
    let Some((_, names)) = line.split_once('\t') else { return Vec::new() };
    names
        .split(',')
        .filter_map(|name| name.split_whitespace().next())
        .map(|name| name.split(':').next().unwrap_or(name).to_owned())
        .collect()
}

/// What of the entries is not as it should be, as words for apt-get.
pub fn missing(
    state: State,
    specs: &[Spec],
    seen: &Seen,
    only_upgrade: bool,
    purge: bool,
) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    for spec in specs {
        match state {
            State::Absent => {
                let goes = |deb: &&Deb| {
                    spec.means(deb) && (deb.is_installed() && spec.accepts(&deb.version) || purge && deb.has_settings())
                };
                words.extend(seen.known.iter().filter(goes).map(|deb| {
                    if spec.name.contains(':') {
                        format!("{}:{}", deb.name, deb.architecture)
                    } else {
                        deb.name.clone()
                    }
                }));
            }
            State::BuildDep => words.push(spec.word()),
            State::Present | State::Latest | State::Fixed if spec.is_pattern() => {
                let glob = Spec { name: spec.name.clone(), version: None };
                let matches: Vec<&String> = seen.expanded.iter().filter(|name| matches_name(&glob, name)).collect();
                if matches.is_empty() && seen.installed(&glob).next().is_none() {
                    return Err(Failure::new(format!("No package(s) matching '{}' available", spec.name)));
                }
                for name in matches {
                    let one = Spec { name: name.clone(), version: spec.version.clone() };
                    let is_installed = seen.installed(&one).any(|deb| one.accepts(&deb.version));
                    if state == State::Latest || !is_installed {
                        words.push(one.word());
                    }
                }
            }
            State::Present | State::Latest | State::Fixed => {
                let is_installed = seen.installed(spec).next().is_some();
                let is_right = seen.installed(spec).any(|deb| spec.accepts(&deb.version));
                let is_provided = !is_installed && spec.version.is_none() && seen.provided.contains(&spec.name);
                if only_upgrade && !is_installed {
                    continue;
                }
                if !is_provided && (state == State::Latest || !is_right) {
                    words.push(spec.word());
                }
            }
        }
    }
    Ok(words)
}

fn matches_name(glob: &Spec, name: &str) -> bool {
    let deb = Deb { name: name.to_owned(), architecture: String::new(), status: String::new(), version: String::new() };
    glob.means(&deb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(names: &[&str]) -> Vec<Spec> {
        names.iter().map(|name| Spec::parse(name).unwrap()).collect()
    }

    fn seen() -> Seen {
        let text = "Inginx\tamd64\tii \t1.22.1-9\nImysql\tall\trc \t8.0\nIlibc6\tamd64\thi \t2.36\nIlibc6\ti386\tii \t2.36\n\
                    Vii \tmail-transport-agent, default-mta (= 1)\nAnginx\nNphp8.2\nNphp8.2-cli\nFzz\tall\tii \t1.0\n\
                    Edpkg-deb: error: no such file \nL100\nT160\n";
        Seen::parse(&Response::output(text)).unwrap()
    }

    #[test]
    fn only_what_is_not_right_is_asked_for() {
        let cases: &[(State, &[&str], &[&str])] = &[
            (State::Present, &["nginx", "libc6", "libc6:i386", "default-mta"], &[]),
            (State::Present, &["mysql", "zz"], &["mysql", "zz"]),
            (State::Present, &["nginx=1.22*", "nginx>=1.20", "nginx=1.22.1-9"], &[]),
            (State::Present, &["nginx=1.24*", "libc6:arm64"], &["nginx=1.24*", "libc6:arm64"]),
            (State::Present, &["nginx>=1.24"], &["nginx"]),
            (State::Present, &["php*"], &["php8.2", "php8.2-cli"]),
            (State::Latest, &["nginx", "default-mta"], &["nginx"]),
            (State::Absent, &["nginx", "mysql", "zz"], &["nginx"]),
            (State::Absent, &["nginx=1.0", "lib*:i386"], &["libc6:i386"]),
            (State::BuildDep, &["nginx"], &["nginx"]),
        ];
        for (state, names, expected) in cases {
            let words = missing(*state, &specs(names), &seen(), false, false).unwrap();
            assert_eq!(words, *expected, "{state:?} {names:?}");
        }
        assert_eq!(missing(State::Absent, &specs(&["mysql"]), &seen(), false, true).unwrap(), ["mysql"]);
        assert_eq!(missing(State::Latest, &specs(&["zz"]), &seen(), true, false).unwrap(), Vec::<String>::new());
        assert!(missing(State::Present, &specs(&["perl*"]), &seen(), false, false).is_err());
    }

    #[test]
    fn entries_are_name_and_version() {
        for text in ["a=1=2", "a b", "", "--purge", "a=", "a<=1"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
        assert_eq!(Spec::parse("a>=1").unwrap().version, Some(Version::AtLeast("1".into())));
    }

    #[test]
    fn patterns_become_basic_expressions() {
        for (pattern, expression) in [("php*-cli", "php.*-cli"), ("g++-?", "g++-."), ("a.[!b-d]", "a\\.[^b-d]")] {
            assert_eq!(basic_expression(pattern), expression);
        }
    }

    #[test]
    fn files_ages_and_archives_are_told() {
        let seen = seen();
        assert_eq!((seen.lists_time, seen.now, seen.has_archives), (100, 160, false));
        assert_eq!(seen.files[1], Err("no such file".to_owned()));
        assert_eq!(seen.automatic, ["nginx"]);
    }
}
