//! Names and versions of Python packages (the packaging specifications: names, version specifiers).

use std::cmp::Ordering;

/// `name[extra]>=1.2,<2`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// In normal form.
    pub name: String,
    /// Operator and version.
    conditions: Vec<(String, String)>,
}

impl Requirement {
    /// `None` for URLs, paths and whatever else pip understands.
    pub fn parse(text: &str) -> Option<Requirement> {
        let text = text.split(';').next()?.trim();
        let end =
            text.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_.".contains(letter)).unwrap_or(text.len());
        let (name, mut rest) = text.split_at(end);
        if name.is_empty() || name.starts_with(['.', '-']) || name.contains("..") {
            return None;
        }
        rest = rest.trim();
        if let Some(extras) = rest.strip_prefix('[') {
            rest = extras.split_once(']')?.1.trim();
        }
        let rest = rest.trim_start_matches('(').trim_end_matches(')');
        let mut conditions = Vec::new();
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let length = part.find(|letter: char| !"=<>!~".contains(letter))?;
            let (operator, version) = part.split_at(length);
            if !["==", "===", "!=", "<=", ">=", "<", ">", "~="].contains(&operator) {
                return None;
            }
            conditions.push((operator.to_owned(), version.trim().to_owned()));
        }
        Some(Requirement { name: normal(name), conditions })
    }

    pub fn accepts(&self, version: &str) -> bool {
        self.conditions.iter().all(|(operator, wanted)| accepts(operator, wanted, version))
    }
}

fn accepts(operator: &str, wanted: &str, version: &str) -> bool {
    if operator == "===" {
        return wanted == version;
    }
    let prefix = wanted.strip_suffix(".*");
    let starts = |prefix: &str| {
        let (have, want) = (Version::parse(version), Version::parse(prefix));
        have.epoch == want.epoch
            && (0..want.release.len()).all(|index| have.release.get(index).copied().unwrap_or(0) == want.release[index])
    };
    // a local part counts only if it is asked for
    let plain = if wanted.contains('+') { version } else { version.split('+').next().unwrap_or_default() };
    let order = Version::parse(plain).compare(&Version::parse(prefix.unwrap_or(wanted)));
    match (operator, prefix) {
        ("==", Some(prefix)) => starts(prefix),
        ("!=", Some(prefix)) => !starts(prefix),
        ("==", None) => order == Ordering::Equal,
        ("!=", None) => order != Ordering::Equal,
        ("<=", _) => order != Ordering::Greater,
        (">=", _) => order != Ordering::Less,
        ("<", _) => order == Ordering::Less,
        (">", _) => order == Ordering::Greater,
        _ => {
            let shorter = wanted.rsplit_once('.').map_or(wanted, |(shorter, _)| shorter);
            order != Ordering::Less && starts(shorter)
        }
    }
}

/// The name in small letters, with one dash for every run of dashes, dots and underscores.
pub fn normal(name: &str) -> String {
    let mut out = String::new();
    for letter in name.trim().chars() {
        match letter {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            other => out.extend(other.to_lowercase()),
        }
    }
    out
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Version {
    epoch: u64,
    release: Vec<u64>,
    /// Development, alpha, beta, candidate, final, post: a rank and its number.
    stages: Vec<(i32, u64)>,
}

impl Version {
    fn parse(text: &str) -> Version {
        let text = text.trim().to_lowercase();
        let text = text.strip_prefix('v').unwrap_or(&text);
        let (epoch, text) = text.split_once('!').unwrap_or(("0", text));
        let text = text.split('+').next().unwrap_or_default();
        let mut version = Version { epoch: epoch.parse().unwrap_or(0), ..Version::default() };
        let mut rest = text;
        loop {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            if digits == 0 {
                break;
            }
            version.release.push(rest[..digits].parse().unwrap_or(u64::MAX));
            rest = &rest[digits..];
            match rest.strip_prefix('.').filter(|after| after.starts_with(|letter: char| letter.is_ascii_digit())) {
                Some(after) => rest = after,
                None => break,
            }
        }
        while version.release.last() == Some(&0) {
            version.release.pop();
        }
        while !rest.is_empty() {
            rest = rest.trim_start_matches(['.', '-', '_']);
            let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
            let (word, after) = rest.split_at(letters);
            let after = after.trim_start_matches(['.', '-', '_']);
            let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
            let number = after[..digits].parse().unwrap_or(0);
            let rank = match word {
                "dev" => -4,
                "a" | "alpha" => -3,
                "b" | "beta" => -2,
                "c" | "rc" | "pre" | "preview" => -1,
                _ => 1,
            };
            version.stages.push((rank, number));
            if letters == 0 && digits == 0 {
                break;
            }
            rest = &after[digits..];
        }
        version
    }

    fn compare(&self, other: &Version) -> Ordering {
        let stage = |version: &Version, index: usize| version.stages.get(index).copied().unwrap_or((0, 0));
        let stages = self.stages.len().max(other.stages.len());
        self.epoch.cmp(&other.epoch).then_with(|| self.release.cmp(&other.release)).then_with(|| {
            (0..stages)
                .map(|index| stage(self, index).cmp(&stage(other, index)))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let order = ["1.0.dev1", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.2", "1.10", "2", "1!0.1"];
        for pair in order.windows(2) {
            assert_eq!(Version::parse(pair[0]).compare(&Version::parse(pair[1])), Ordering::Less, "{pair:?}");
        }
        assert_eq!(Version::parse("1.0.0").compare(&Version::parse("v1")), Ordering::Equal);
    }

    #[test]
    fn conditions_are_those_of_pip() {
        let cases = [
            ("a", "1", true),
            ("a==1.0", "1", true),
            ("a==1.*", "1.9", true),
            ("a==1.*", "10.1", false),
            ("a!=1.5.*,>=1", "1.5.2", false),
            ("a[x,y] >= 1.2, < 2", "1.10", true),
            ("a~=1.4.2", "1.4.9", true),
            ("a~=1.4.2", "1.5", false),
            ("a~=1.4", "1.9", true),
            ("a==1.0", "1.0+local", true),
            ("a<2; python_version<'3'", "1", true),
        ];
        for (requirement, version, accepted) in cases {
            assert_eq!(Requirement::parse(requirement).unwrap().accepts(version), accepted, "{requirement} {version}");
        }
        for other in ["git+https://x/y", "./a", "/a/b.whl", "https://x/y.tar.gz", "a @ https://x"] {
            assert_eq!(Requirement::parse(other), None, "{other}");
        }
        assert_eq!(normal("Foo__bar.Baz"), "foo-bar-baz");
    }
}
