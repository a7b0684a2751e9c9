//! Which of the files with kernel parameters wins: for systemd-sysctl at boot, `sysctl --system`, and tuned.
//!
//! Sources: sysctl.d(5), systemd-sysctl.service(8), sysctl(8), tuned's `reapply_sysctl`.

use std::collections::BTreeMap;

use globset::GlobBuilder;

/// A file as it was read; `path` is the name under which a loader finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SysctlFile<'a> {
    pub path: &'a str,
    pub text: &'a str,
}

/// Who applies the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loader {
    /// systemd-sysctl, at boot. It reads `/etc/sysctl.conf` only through a link in a `sysctl.d`.
    Boot,
    /// `sysctl --system` of procps-ng 4: `/etc/sysctl.conf` comes last.
    Procps,
    /// `sysctl --system` of procps-ng 3: `/run` before `/etc`, `/etc/sysctl.conf` last.
    OlderProcps,
    /// tuned, when it starts or changes its profile: only `/run` and `/etc`, `/etc/sysctl.conf` last.
    Tuned,
}

/// Each loader with its name and its directories; of files with one name the first directory's counts.
const LOADERS: &[(Loader, &str, &[&str], bool)] = &[
    (
        Loader::Boot,
        "systemd-sysctl at boot",
        &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"],
        false,
    ),
    (
        Loader::Procps,
        "`sysctl --system`",
        &["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"],
        true,
    ),
    (
        Loader::OlderProcps,
        "`sysctl --system` of procps 3",
        &["/run/sysctl.d", "/etc/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"],
        true,
    ),
    (Loader::Tuned, "tuned", &["/run/sysctl.d", "/etc/sysctl.d"], true),
];

const MAIN_FILE: &str = "/etc/sysctl.conf";

impl Loader {
    /// The words for messages.
    pub fn name(self) -> &'static str {
        LOADERS.iter().find(|(loader, ..)| *loader == self).map_or("", |(_, name, ..)| name)
    }

    /// The files of `files` that the loader reads, in the order it reads them: a later one wins.
    pub fn order<'a>(self, files: &[SysctlFile<'a>]) -> Vec<SysctlFile<'a>> {
        let Some((_, _, directories, main_file_last)) = LOADERS.iter().find(|(loader, ..)| *loader == self) else {
            return Vec::new();
        };
        let mut by_name: BTreeMap<&str, (usize, SysctlFile<'a>)> = BTreeMap::new();
        for file in files {
            let Some((directory, name)) = file.path.rsplit_once('/') else { continue };
            let Some(rank) = directories.iter().position(|known| *known == directory) else { continue };
            if !name.ends_with(".conf") || name.starts_with('.') {
                continue;
            }
            if by_name.get(name).is_none_or(|(other, _)| rank < *other) {
                by_name.insert(name, (rank, *file));
            }
        }
        let mut ordered: Vec<SysctlFile<'a>> = by_name.into_values().map(|(_, file)| file).collect();
        if *main_file_last {
            ordered.extend(files.iter().filter(|file| file.path == MAIN_FILE));
        }
        ordered
    }

    /// The line that decides the value of `key` for this loader, if any file sets it.
    pub fn effective(self, files: &[SysctlFile<'_>], key: &str) -> Option<Setting> {
        let key = canonical_key(key);
        let mut explicit = None;
        let mut by_pattern = None;
        let mut excluded = false;
        for file in self.order(files) {
            for setting in parse(file) {
                if setting.key == key {
                    match setting.value {
                        Some(_) => explicit = Some(setting),
                        None => excluded = true,
                    }
                } else if self == Loader::Boot && setting.value.is_some() && pattern_matches(&setting.key, &key) {
                    by_pattern = Some(setting);
                }
            }
        }
        // A key that is named is left out of all patterns (sysctl.d(5)).
        explicit.or(if excluded { None } else { by_pattern })
    }
}

fn pattern_matches(pattern: &str, key: &str) -> bool {
    pattern.contains(['*', '?', '['])
        && GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .is_ok_and(|glob| glob.compile_matcher().is_match(key))
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The path below `/proc/sys`.
    pub key: String,
    /// `None` for a line `-key` without a value, which excludes the key from patterns.
    pub value: Option<String>,
    /// The line began with `-`: errors are not reported when it is applied.
    pub ignore_errors: bool,
    pub path: String,
    /// Counted from 1.
    pub line: usize,
}

/// Parses a file: `key = value`, a leading `-`, comments with `#` or `;`. Lines that are neither are skipped, as loaders do.
pub fn parse(file: SysctlFile<'_>) -> Vec<Setting> {
    let settings = file.text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        let (line, ignore_errors) = match line.strip_prefix('-') {
            Some(rest) => (rest.trim_start(), true),
            None => (line, false),
        };
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key, Some(value.trim().to_owned())),
            None if ignore_errors => (line, None),
            None => return None,
        };
        let key = canonical_key(key);
        (!key.is_empty()).then(|| Setting { key, value, ignore_errors, path: file.path.to_owned(), line: index + 1 })
    });
    settings.collect()
}

/// The path below `/proc/sys` of a key in either spelling.
///
/// If the first separator is a dot, dots and slashes are exchanged; if it is a slash, nothing is (sysctl.d(5)). So
/// `net.ipv4.conf.eth0/100.forwarding` and `net/ipv4/conf/eth0.100/forwarding` are the same.
pub fn canonical_key(key: &str) -> String {
    let key = key.trim();
    let key = key.strip_prefix("/proc/sys/").unwrap_or(key);
    match key.find(['.', '/']) {
        Some(first) if key.as_bytes()[first] == b'.' => key
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

/// The usual spelling of a key, with dots.
pub fn dotted_key(key: &str) -> String {
    canonical_key(key)
        .chars()
        .map(|c| match c {
            '/' => '.',
            '.' => '/',
            other => other,
        })
        .collect()
}

/// A line of another file that will win over ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub loaders: Vec<Loader>,
    pub setting: Setting,
    pub message: String,
}

/// Finds who would override `key = value` of the file `own_path`: for each loader the line that wins instead of ours.
///
/// Values are compared as lists of integers. `loaders` are those the host has.
pub fn conflicts(
    files: &[SysctlFile<'_>],
    own_path: &str,
    key: &str,
    value: &str,
    loaders: &[Loader],
) -> Vec<Conflict> {
    let wanted = super::sysctl_value::SysctlValue::parse(value);
    let mut found: Vec<Conflict> = Vec::new();
    for loader in loaders {
        let Some(setting) = loader.effective(files, key) else { continue };
        let theirs = setting.value.as_deref().unwrap_or_default();
        if setting.path == own_path || super::sysctl_value::SysctlValue::parse(theirs) == wanted {
            continue;
        }
        match found.iter_mut().find(|conflict| conflict.setting == setting) {
            Some(conflict) => conflict.loaders.push(*loader),
            None => found.push(Conflict { loaders: vec![*loader], setting, message: String::new() }),
        }
    }
    for conflict in &mut found {
        let loaders = conflict.loaders.iter().map(|loader| loader.name()).collect::<Vec<_>>().join(" and ");
        conflict.message = format!(
            "{}:{} sets `{}` to `{}`; with {loaders} it wins over `{own_path}`",
            conflict.setting.path,
            conflict.setting.line,
            dotted_key(key),
            conflict.setting.value.as_deref().unwrap_or_default()
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(path: &'a str, text: &'a str) -> SysctlFile<'a> {
        SysctlFile { path, text }
    }

    #[test]
    fn keys_have_two_spellings() {
        let cases = [
            ("net.core.somaxconn", "net/core/somaxconn"),
            ("net/core/somaxconn", "net/core/somaxconn"),
            ("net.ipv4.conf.eth0/100.forwarding", "net/ipv4/conf/eth0.100/forwarding"),
            ("net/ipv4/conf/eth0.100/forwarding", "net/ipv4/conf/eth0.100/forwarding"),
            ("/proc/sys/vm/swappiness", "vm/swappiness"),
            (" vm.swappiness ", "vm/swappiness"),
        ];
        for (key, path) in cases {
            assert_eq!(canonical_key(key), path);
        }
        assert_eq!(dotted_key("net/ipv4/conf/eth0.100/forwarding"), "net.ipv4.conf.eth0/100.forwarding");
    }

    #[test]
    fn lines_are_parsed_as_loaders_parse_them() {
        let text = "# comment\n; another\n\n vm.swappiness=1 \n-net/core/x = 2 3\nnonsense\n-net.ipv4.conf.all.rp_filter\n= 5\n";
        let settings = parse(file("/etc/sysctl.d/a.conf", text));
        let shown: Vec<_> =
            settings.iter().map(|s| (s.key.as_str(), s.value.as_deref(), s.ignore_errors, s.line)).collect();
        assert_eq!(
            shown,
            [
                ("vm/swappiness", Some("1"), false, 4),
                ("net/core/x", Some("2 3"), true, 5),
                ("net/ipv4/conf/all/rp_filter", None, true, 7),
            ]
        );
    }

    #[test]
    fn each_loader_has_its_own_winner() {
        let files = [
            file("/etc/sysctl.conf", "vm.swappiness = 60\n"),
            file("/etc/sysctl.d/99-sysctl.conf", "vm.swappiness = 60\n"),
            file("/etc/sysctl.d/99-kt.conf", "vm.swappiness = 1\n"),
            file("/usr/lib/sysctl.d/99-zzz.conf", "vm.swappiness = 30\n"),
            file("/etc/sysctl.d/99-zzzz.txt", "vm.swappiness = 99\n"),
        ];
        let winner = |loader: Loader| loader.effective(&files, "vm.swappiness").map(|setting| setting.path);
        assert_eq!(winner(Loader::Boot).as_deref(), Some("/usr/lib/sysctl.d/99-zzz.conf"));
        assert_eq!(winner(Loader::Procps).as_deref(), Some("/etc/sysctl.conf"));
        assert_eq!(winner(Loader::Tuned).as_deref(), Some("/etc/sysctl.conf"));
        // Without the file in /usr: the link 99-sysctl.conf sorts after 99-kt.conf and wins.
        let boot = Loader::Boot.effective(&files[..3], "vm.swappiness").expect("set");
        assert_eq!(boot.path, "/etc/sysctl.d/99-sysctl.conf");
        assert_eq!(Loader::Boot.effective(&files, "vm.dirty_ratio"), None);
    }

    #[test]
    fn of_one_name_the_first_directory_counts() {
        let files = [
            file("/usr/lib/sysctl.d/50-a.conf", "kernel.x = 1"),
            file("/run/sysctl.d/50-a.conf", "kernel.x = 2"),
            file("/etc/sysctl.d/50-a.conf", "kernel.x = 3"),
        ];
        let value = |loader: Loader| loader.effective(&files, "kernel.x").and_then(|setting| setting.value);
        assert_eq!(value(Loader::Boot).as_deref(), Some("3"));
        assert_eq!(value(Loader::Procps).as_deref(), Some("3"));
        assert_eq!(value(Loader::OlderProcps).as_deref(), Some("2"));
        assert_eq!(value(Loader::Tuned).as_deref(), Some("2"));
        // An empty file masks those of the same name below it.
        let masked = [files[0], file("/etc/sysctl.d/50-a.conf", "")];
        assert_eq!(Loader::Boot.effective(&masked, "kernel.x"), None);
    }

    #[test]
    fn patterns_yield_to_named_keys() {
        let key = "net.ipv4.conf.eth0.rp_filter";
        let pattern = file("/etc/sysctl.d/90-a.conf", "net.ipv4.conf.*.rp_filter = 2\n");
        let named = file("/etc/sysctl.d/10-b.conf", "net.ipv4.conf.eth0.rp_filter = 1\n");
        let excluded = file("/etc/sysctl.d/95-c.conf", "-net.ipv4.conf.eth0.rp_filter\n");
        let value = |files: &[SysctlFile<'_>]| Loader::Boot.effective(files, key).and_then(|setting| setting.value);
        assert_eq!(value(&[pattern]).as_deref(), Some("2"));
        assert_eq!(value(&[pattern, named]).as_deref(), Some("1"));
        assert_eq!(value(&[pattern, excluded]), None);
        assert_eq!(Loader::Procps.effective(&[pattern], key), None);
    }

    #[test]
    fn conflicts_name_the_file_and_the_line() {
        let own = "/etc/sysctl.d/99-zz-trimtab.conf";
        let files = [
            file(own, "net.ipv4.tcp_rmem = 4096 87380 16777216\n"),
            file("/etc/sysctl.conf", "# local\n-net/ipv4/tcp_rmem=4096 87380 6291456\n"),
        ];
        let all = [Loader::Boot, Loader::Procps, Loader::Tuned];
        let found = conflicts(&files, own, "net.ipv4.tcp_rmem", "4096 87380 16777216", &all);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].loaders, [Loader::Procps, Loader::Tuned]);
        assert_eq!(
            found[0].message,
            "/etc/sysctl.conf:2 sets `net.ipv4.tcp_rmem` to `4096 87380 6291456`; with `sysctl --system` and tuned \
             it wins over `/etc/sysctl.d/99-zz-trimtab.conf`"
        );
        // The same numbers in another spelling are no conflict.
        let same = [files[0], file("/etc/sysctl.conf", "net.ipv4.tcp_rmem=4096\t87380\t0x1000000\n")];
        assert_eq!(conflicts(&same, own, "net.ipv4.tcp_rmem", "4096 87380 16777216", &all), []);
    }
}
