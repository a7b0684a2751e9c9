//! How tasks name RPM packages, and which installed packages a name means.

use std::cmp::Ordering;

use globset::Glob;

use crate::host::Failure;

use super::rpm_version::{Evr, compare};

/// An installed RPM package.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rpm {
    pub name: String,
    /// `0` if it has none.
    pub epoch: String,
    pub version: String,
    pub release: String,
    pub architecture: String,
}

/// The format of `rpm --queryformat` that [`Rpm::parse`] reads, without its newline.
pub const FORMAT: &str = "%{NAME}\\t%{EPOCHNUM}\\t%{VERSION}\\t%{RELEASE}\\t%{ARCH}";

impl Rpm {
    pub fn parse(line: &str) -> Option<Rpm> {
        let mut fields = line.split('\t').map(str::to_owned);
        let rpm = Rpm {
            name: fields.next()?,
            epoch: fields.next()?,
            version: fields.next()?,
            release: fields.next()?,
            architecture: fields.next()?,
        };
        Some(rpm)
    }

    /// `name-version-release.architecture`: what `rpm -e` takes.
    pub fn label(&self) -> String {
        format!("{}-{}-{}.{}", self.name, self.version, self.release, self.architecture)
    }

    /// All ways in which dnf and yum let the package be named.
    fn labels(&self) -> Vec<String> {
        let Rpm { name, epoch, version, release, architecture } = self;
        let mut labels = vec![name.clone()];
        for versioned in [
            format!("{name}-{version}"),
            format!("{name}-{version}-{release}"),
            format!("{name}-{epoch}:{version}"),
            format!("{name}-{epoch}:{version}-{release}"),
            format!("{epoch}:{name}-{version}-{release}"),
        ] {
            labels.push(versioned);
        }
        let with_architecture: Vec<String> = labels.iter().map(|label| format!("{label}.{architecture}")).collect();
        labels.extend(with_architecture);
        labels
    }

    fn evr(&self) -> Evr<'_> {
        Evr { epoch: Some(&self.epoch), version: &self.version, release: Some(&self.release) }
    }
}

/// What one entry of `name` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// Every package: `*`.
    All,
    /// A package, perhaps with version, release and architecture, or something that packages provide.
    Package(String),
    /// The same with wildcards.
    Pattern(String),
    /// `name >= 1.0`
    Compare {
        name: String,
        operator: &'static str,
        version: String,
    },
    /// An absolute path of a file that a package brings.
    Path(String),
    /// A package file on the host.
    File(String),
    Url(String),
    /// A group, environment or module, with its `@`.
    Group(String),
}

/// Longer ones first.
const OPERATORS: &[&str] = &[">=", "<=", ">", "<", "="];

impl Spec {
    pub fn parse(text: &str) -> Result<Spec, Failure> {
        let text = text.trim();
        let is_pattern = text.contains(['*', '?', '[']);
        if text == "*" {
            return Ok(Spec::All);
        }
        if text.starts_with('@') {
            return Ok(Spec::Group(text.to_owned()));
        }
        if text.contains("://") {
            return Ok(Spec::Url(text.to_owned()));
        }
        if text.ends_with(".rpm") {
            return Ok(Spec::File(text.to_owned()));
        }
        if text.starts_with('/') {
            return Ok(Spec::Path(text.to_owned()));
        }
        if let Some((name, operator, version)) = comparison(text) {
            return Ok(Spec::Compare { name: name.to_owned(), operator, version: version.to_owned() });
        }
        if text.contains(' ') && !text.contains(['>', '<', '=']) {
            return Err(Failure::new(format!(
                "`{text}` is several packages in one text: write a list, or put commas between them"
            )));
        }
        if text.is_empty() || text.starts_with('-') {
            return Err(Failure::new(format!("`{text}` is not the name of a package")));
        }
        Ok(if is_pattern { Spec::Pattern(text.to_owned()) } else { Spec::Package(text.to_owned()) })
    }

    /// As dnf and yum take it.
    pub fn word(&self) -> String {
        match self {
            Spec::All => "*".to_owned(),
            Spec::Compare { name, operator, version } => format!("{name} {operator} {version}"),
            Spec::Package(text)
            | Spec::Pattern(text)
            | Spec::Path(text)
            | Spec::File(text)
            | Spec::Url(text)
            | Spec::Group(text) => text.clone(),
        }
    }

    /// The package names that `rpm -q` must be asked for to know whether this is installed.
    pub fn names(&self) -> Vec<String> {
        match self {
            Spec::Package(text) => names_in(text),
            Spec::Compare { name, .. } => vec![name.clone()],
            Spec::Url(url) => names_in(file_label(url)),
            _ => Vec::new(),
        }
    }

    /// The pattern of names for `rpm -qa`, if one is needed.
    pub fn name_pattern(&self) -> Option<String> {
        let Spec::Pattern(text) = self else { return None };
        let literal = &text[..text.find(['*', '?', '[']).unwrap_or(text.len())];
        let name = match literal.match_indices('-').find(|(at, _)| starts_with_digit(&literal[at + 1..])) {
            Some((at, _)) => &literal[..at],
            None => literal,
        };
        Some(format!("{name}*"))
    }

    /// The installed packages that this names.
    pub fn installed<'a>(&self, packages: &'a [Rpm]) -> Vec<&'a Rpm> {
        match self {
            Spec::Package(text) => {
                let by_name: Vec<&Rpm> = packages.iter().filter(|rpm| rpm.name == *text).collect();
                if !by_name.is_empty() {
                    return by_name;
                }
                packages.iter().filter(|rpm| rpm.labels().contains(text)).collect()
            }
            Spec::Url(url) => {
                let label = file_label(url);
                packages.iter().filter(|rpm| rpm.labels().iter().any(|own| own == label)).collect()
            }
            Spec::Pattern(text) => {
                let Ok(glob) = Glob::new(text) else { return Vec::new() };
                let matcher = glob.compile_matcher();
                packages.iter().filter(|rpm| rpm.labels().iter().any(|label| matcher.is_match(label))).collect()
            }
            Spec::Compare { name, operator, version } => {
                let wanted = Evr::parse(version);
                packages.iter().filter(|rpm| rpm.name == *name && holds(rpm.evr().compare(&wanted), operator)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// An installed version that is newer than the one this asks for, so that only a downgrade would bring it.
    pub fn newer_installed<'a>(&self, packages: &'a [Rpm]) -> Option<&'a Rpm> {
        let is_newer = |rpm: &&Rpm| match self {
            Spec::Package(text) => versioned(text, &rpm.name, &rpm.architecture)
                .is_some_and(|wanted| rpm.evr().compare(&wanted) == Ordering::Greater),
            Spec::Url(url) => versioned(file_label(url), &rpm.name, &rpm.architecture)
                .is_some_and(|wanted| rpm.evr().compare(&wanted) == Ordering::Greater),
            Spec::Pattern(text) => versioned(text, &rpm.name, &rpm.architecture).is_some_and(|wanted| {
                let literal = wanted.version.split(['*', '?', '[']).next().unwrap_or_default().trim_end_matches('.');
                wanted.version.contains(['*', '?', '['])
                    && !literal.is_empty()
                    && compare(&rpm.version, literal) == Ordering::Greater
            }),
            Spec::Compare { name, operator, version } => {
                rpm.name == *name
                    && matches!(*operator, "=" | "<" | "<=")
                    && rpm.evr().compare(&Evr::parse(version)) != Ordering::Less
            }
            _ => false,
        };
        packages.iter().find(is_newer)
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

fn holds(order: Ordering, operator: &str) -> bool {
    match operator {
        ">=" => order != Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        "<" => order == Ordering::Less,
        _ => order == Ordering::Equal,
    }
}

/// `name>=1.0`, with or without blanks; what stands before must be a plain name.
fn comparison(text: &str) -> Option<(&str, &'static str, &str)> {
    let at = text.find(['>', '<', '='])?;
    let operator = OPERATORS.iter().copied().find(|operator| text[at..].starts_with(operator))?;
    let (name, version) = (text[..at].trim(), text[at + operator.len()..].trim());
    let is_plain = |text: &str, others: &[char]| {
        !text.is_empty() && text.chars().all(|sign| sign.is_ascii_alphanumeric() || others.contains(&sign))
    };
    let is_comparison =
        is_plain(name, &['-', '_', '.', '+']) && is_plain(version, &['-', '_', '.', '+', ':', '~', '^']);
    is_comparison.then_some((name, operator, version))
}

/// `name-version-release.architecture` of a package file's path or URL, if it is named as usual.
fn file_label(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let file = path.rsplit('/').next().unwrap_or(path);
    file.strip_suffix(".rpm").unwrap_or(file)
}

/// Every name that a text may begin with: `a-1-2.noarch` may be the package `a`, `a-1`, or be named just so.
fn names_in(text: &str) -> Vec<String> {
    let text = match text.split_once(':') {
        Some((epoch, rest)) if !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    };
    let mut names = vec![text.to_owned()];
    let mut rest = text;
    for _ in 0..2 {
        let Some((front, _)) = rest.rsplit_once('-') else { break };
        if !front.is_empty() {
            names.push(front.to_owned());
        }
        rest = front;
    }
    if let Some((front, _)) = text.rsplit_once('.')
        && !front.is_empty()
        && !starts_with_digit(&text[front.len() + 1..])
    {
        names.push(front.to_owned());
    }
    names.retain(|name| !name.contains(['(', ')', ' ']));
    names.dedup();
    names
}

/// The version that a text asks for of the package `name`.
fn versioned<'a>(text: &'a str, name: &str, architecture: &str) -> Option<Evr<'a>> {
    let text = match text.split_once(':') {
        Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => rest,
        _ => text,
    };
    let rest = text.strip_prefix(name)?.strip_prefix('-')?;
    let rest = rest.strip_suffix(architecture).and_then(|rest| rest.strip_suffix('.')).unwrap_or(rest);
    starts_with_digit(rest).then(|| Evr::parse(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpm(line: &str) -> Rpm {
        Rpm::parse(&line.replace(' ', "\t")).unwrap()
    }

    fn packages() -> Vec<Rpm> {
        [
            "httpd 0 2.4.6 99.el7 x86_64",
            "mysql-community-server 0 8.0.36 1.el8 aarch64",
            "java-1.8.0-openjdk 1 1.8.0.402 8.el7 x86_64",
            "glibc 0 2.17 326.el7 x86_64",
            "glibc 0 2.17 326.el7 i686",
        ]
        .map(rpm)
        .to_vec()
    }

    #[test]
    fn entries_are_what_they_look_like() {
        let cases = [
            ("*", Spec::All),
            ("httpd", Spec::Package("httpd".into())),
            ("httpd-2.4*", Spec::Pattern("httpd-2.4*".into())),
            ("httpd >= 2.4", Spec::Compare { name: "httpd".into(), operator: ">=", version: "2.4".into() }),
            ("httpd>=2.4", Spec::Compare { name: "httpd".into(), operator: ">=", version: "2.4".into() }),
            ("httpd = 2.4", Spec::Compare { name: "httpd".into(), operator: "=", version: "2.4".into() }),
            ("font(:lang=zh)", Spec::Package("font(:lang=zh)".into())),
            ("/usr/bin/vi", Spec::Path("/usr/bin/vi".into())),
            ("/tmp/a.rpm", Spec::File("/tmp/a.rpm".into())),
            ("https://example.org/a.rpm", Spec::Url("https://example.org/a.rpm".into())),
            ("@Development tools", Spec::Group("@Development tools".into())),
        ];
        for (text, spec) in cases {
            assert_eq!(Spec::parse(text).unwrap(), spec, "{text}");
        }
        for text in ["httpd mysql", "", "--installroot=/x"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn installed_packages_are_found_by_any_of_their_names() {
        let cases = [
            ("httpd", 1),
            ("httpd-2.4.6", 1),
            ("httpd-2.4.6-99.el7", 1),
            ("httpd.x86_64", 1),
            ("httpd.i686", 0),
            ("httpd-2.4.6-99.el7.x86_64", 1),
            ("httpd-2.4.7", 0),
            ("httpd-2.4*", 1),
            ("httpd-2.5*", 0),
            ("glibc", 2),
            ("glibc.i686", 1),
            ("java-1.8.0-openjdk", 1),
            ("java-1.8.0-openjdk-1:1.8.0.402", 1),
            ("1:java-1.8.0-openjdk-1.8.0.402-8.el7.x86_64", 1),
            ("httpd >= 2.4", 1),
            ("httpd > 2.4.6", 0),
            ("httpd<2.5", 1),
            ("https://example.org/x/httpd-2.4.6-99.el7.x86_64.rpm", 1),
            ("https://example.org/x/httpd-latest.rpm", 0),
        ];
        for (text, count) in cases {
            let spec = Spec::parse(text).unwrap();
            assert_eq!(spec.installed(&packages()).len(), count, "{text}");
            let names = spec.names();
            let asked = |rpm: &Rpm| names.contains(&rpm.name) || spec.name_pattern().is_some();
            assert!(spec.installed(&packages()).into_iter().all(asked), "{text}: {names:?}");
        }
    }

    #[test]
    fn a_newer_version_is_noticed() {
        let cases = [
            ("httpd-2.4.5", true),
            ("httpd-2.4.7", false),
            ("httpd-2.4.6-90.el7.x86_64", true),
            ("httpd-2.2*", true),
            ("httpd-2.6*", false),
            ("httpd < 2.0", true),
            ("httpd >= 3", false),
            ("httpd", false),
            ("java-1.8.0-openjdk-1.8.0.1", true),
        ];
        for (text, newer) in cases {
            let spec = Spec::parse(text).unwrap();
            assert_eq!(spec.newer_installed(&packages()).is_some(), newer, "{text}");
        }
    }

    #[test]
    fn patterns_ask_for_names_alone() {
        for (text, pattern) in
            [("httpd*", "httpd*"), ("httpd-2.4*", "httpd*"), ("*-devel", "*"), ("php-*-1.2", "php-*")]
        {
            assert_eq!(Spec::parse(text).unwrap().name_pattern().unwrap(), pattern, "{text}");
        }
    }
}
