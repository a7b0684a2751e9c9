//! The distribution, its version and its family, as Ansible names them.

use crate::value::Map;

use super::{Group, Sections, assignments, set};

pub const GROUP: Group = Group {
    name: "distribution",
    parts_of: &["min", "distribution_version", "distribution_release", "distribution_major_version", "os_family"],
    needs: &[],
    script: SCRIPT,
    parse,
};

const SCRIPT: &str = r"
section os-release
if [ -r /etc/os-release ]; then text /etc/os-release; else text /usr/lib/os-release; fi
section releases
for trimtab_file in redhat centos oracle system alpine euleros openEuler kylin hce anolis; do
    line $trimtab_file /etc/$trimtab_file-release
done
[ ! -e /etc/arch-release ] || echo arch=yes
line debian /etc/debian_version
";

/// What the release files say.
struct Files<'a> {
    os_release: Vec<(&'a str, String)>,
    releases: &'a str,
}

impl Files<'_> {
    fn os(&self, key: &str) -> Option<&str> {
        self.os_release.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str())
    }

    /// The first line of `/etc/<name>-release`.
    fn release(&self, name: &str) -> Option<&str> {
        super::value_in(self.releases, name).map(str::trim).filter(|line| !line.is_empty())
    }

    /// The first line of any distribution's own file.
    fn any_release(&self) -> Option<&str> {
        self.releases
            .lines()
            .filter_map(|line| line.split_once('='))
            .find(|(name, _)| !matches!(*name, "alpine" | "arch" | "debian"))
            .map(|(_, line)| line.trim())
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Distribution {
    name: String,
    version: String,
    release: String,
    /// Only where Ansible has it.
    minor: Option<String>,
    path: &'static str,
    variety: &'static str,
}

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let files = Files { os_release: assignments(sections.text("os-release")), releases: sections.text("releases") };
    let found = recognise(&files);
    set(facts, "distribution", found.name.as_str());
    set(facts, "distribution_version", found.version.as_str());
    set(facts, "distribution_release", found.release);
    set(facts, "distribution_major_version", found.version.split('.').next().unwrap_or_default());
    if let Some(minor) = found.minor {
        set(facts, "distribution_minor_version", minor);
    }
    if !found.path.is_empty() {
        set(facts, "distribution_file_path", found.path);
        set(facts, "distribution_file_variety", found.variety);
        set(facts, "distribution_file_parsed", true);
    }
    set(facts, "os_family", family(&found.name));
}

/// The distributions of each family, by Ansible's names; any other is a family of its own.
const FAMILIES: &[(&str, &[&str])] = &[
    (
        "RedHat",
        &[
            "RedHat",
            "RHEL",
            "Fedora",
            "CentOS",
            "Scientific",
            "SLC",
            "Ascendos",
            "CloudLinux",
            "PSBM",
            "OracleLinux",
            "OVS",
            "OEL",
            "Amazon",
            "Amzn",
            "Virtuozzo",
            "XenServer",
            "Alibaba",
            "EulerOS",
            "openEuler",
            "AlmaLinux",
            "Rocky",
            "TencentOS",
            "EuroLinux",
            "Kylin Linux Advanced Server",
            "MIRACLE",
        ],
    ),
    (
        "Debian",
        &[
            "Debian",
            "Ubuntu",
            "Raspbian",
            "Neon",
            "KDE neon",
            "Linux Mint",
            "SteamOS",
            "Devuan",
            "Kali",
            "Cumulus Linux",
            "Pop!_OS",
            "Parrot",
            "Pardus GNU/Linux",
            "Uos",
            "Deepin",
            "OSMC",
            "Linux Mint Debian Edition",
        ],
    ),
    (
        "Suse",
        &[
            "SuSE",
            "SLES",
            "SLED",
            "openSUSE",
            "openSUSE Tumbleweed",
            "SLES_SAP",
            "SUSE_LINUX",
            "openSUSE Leap",
            "ALP-Dolomite",
            "SL-Micro",
            "openSUSE MicroOS",
        ],
    ),
    ("Archlinux", &["Archlinux", "Antergos", "Manjaro"]),
    ("Gentoo", &["Gentoo", "Funtoo"]),
    ("Alpine", &["Alpine"]),
];

fn family(distribution: &str) -> &str {
    FAMILIES.iter().find(|(_, names)| names.contains(&distribution)).map_or(distribution, |(family, _)| family)
}

/// Words in the name that os-release gives, and the distribution's name of Debian's kind.
const DEBIAN_KIND: &[(&str, &str)] = &[
    ("Debian", "Debian"),
    ("Raspbian", "Debian"),
    ("Ubuntu", "Ubuntu"),
    ("SteamOS", "SteamOS"),
    ("Kali", "Kali"),
    ("Parrot", "Parrot"),
    ("Devuan", "Devuan"),
    ("Cumulus", "Cumulus Linux"),
    ("Linux Mint", "Linux Mint"),
    ("uos", "Uos"),
    ("UOS", "Uos"),
    ("Uos", "Uos"),
    ("deepin", "Deepin"),
    ("Deepin", "Deepin"),
];

fn recognise(files: &Files<'_>) -> Distribution {
    let name = files.os("NAME").unwrap_or_default();
    let version = files.os("VERSION_ID").unwrap_or_default().to_owned();
    let common = Distribution { version: non_empty(version.clone()), release: codename(files), ..Default::default() };
    let centos_version = || two_numbers(files.any_release().unwrap_or_default(), &version);
    if files.release("oracle").is_some_and(|line| line.contains("Oracle Linux")) {
        let (path, variety) = ("/etc/oracle-release", "OracleLinux");
        return Distribution { name: "OracleLinux".into(), path, variety, ..common };
    }
    if files.release("centos").is_some_and(|line| line.contains("CentOS Stream")) {
        let (path, variety) = ("/etc/centos-release", "CentOS");
        return Distribution { name: "CentOS".into(), release: "Stream".into(), path, variety, ..common };
    }
    if let Some(line) = files.release("redhat") {
        let (path, variety) = ("/etc/redhat-release", "RedHat");
        let first = line.split_whitespace().next().unwrap_or_default();
        let name = if line.contains("Red Hat") { "RedHat" } else { first };
        let version = if name == "CentOS" { centos_version() } else { common.version.clone() };
        return Distribution { name: name.into(), version, path, variety, ..common };
    }
    if name == "Amazon Linux" || name == "Amazon Linux AMI" {
        let minor = version.split('.').nth(1).unwrap_or("NA").to_owned();
        let (path, variety) = ("/etc/os-release", "Amazon");
        return Distribution {
            name: "Amazon".into(),
            release: "NA".into(),
            minor: Some(minor),
            path,
            variety,
            ..common
        };
    }
    if let Some(line) = files.release("alpine") {
        let (path, variety) = ("/etc/alpine-release", "Alpine");
        return Distribution {
            name: "Alpine".into(),
            version: line.into(),
            release: "NA".into(),
            path,
            variety,
            ..common
        };
    }
    if files.release("arch").is_some() && name.contains("Arch") {
        let (path, variety) = ("/etc/arch-release", "Archlinux");
        return Distribution { name: "Archlinux".into(), path, variety, ..common };
    }
    let path = "/etc/os-release";
    if files.os("CPE_NAME").is_some_and(|cpe| cpe.contains("suse")) || name.to_lowercase().contains("suse") {
        let release = version.split_once('.').map_or("NA", |(_, release)| release).to_owned();
        return Distribution { name: name.into(), release, path, variety: "SUSE", ..common };
    }
    if let Some((_, kind)) = DEBIAN_KIND.iter().find(|(word, _)| name.contains(word)) {
        let precise = if *kind == "Debian" { debian_version(files, &version) } else { common.version.clone() };
        let minor = (*kind == "Debian").then(|| precise.split('.').nth(1).unwrap_or("NA").to_owned());
        return Distribution { name: (*kind).into(), version: precise, minor, path, variety: "Debian", ..common };
    }
    if name.is_empty() {
        return Distribution { name: "OtherLinux".into(), ..common };
    }
    Distribution { name: name.into(), path, variety: "NA", ..common }
}

fn non_empty(version: String) -> String {
    if version.is_empty() { "NA".into() } else { version }
}

/// The name of the release: what os-release says, else what stands in brackets.
fn codename(files: &Files<'_>) -> String {
    if let Some(name) = files.os("VERSION_CODENAME").or(files.os("UBUNTU_CODENAME")) {
        return name.to_owned();
    }
    let has_digits = |text: &&str| text.chars().any(|c| c.is_ascii_digit());
    let of_version = files.os("VERSION").and_then(in_brackets).filter(|text| !has_digits(text));
    of_version.or_else(|| files.any_release().and_then(in_brackets)).unwrap_or("NA").to_owned()
}

fn in_brackets(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('(')?;
    rest.split_once(')').map(|(inner, _)| inner.trim()).filter(|inner| !inner.is_empty())
}

/// CentOS: the first two numbers of the most precise version, which its release file has.
fn two_numbers(line: &str, version: &str) -> String {
    let precise =
        line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(version);
    precise.split('.').take(2).collect::<Vec<_>>().join(".")
}

/// Debian: `12` of os-release and `12.5` of debian_version; the latter may be words (`trixie/sid`).
fn debian_version(files: &Files<'_>, version: &str) -> String {
    match super::value_in(files.releases, "debian") {
        Some(precise) if precise.contains('.') && precise.starts_with(|c: char| c.is_ascii_digit()) => {
            precise.trim().to_owned()
        }
        _ => non_empty(version.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(os_release: &str, releases: &str) -> String {
        let output = format!("\u{1e}os-release\n{}\n\u{1e}releases\n{releases}\n", os_release.replace('|', "\n"));
        let mut facts = Map::new();
        parse(&Sections::new(&output.replace("; ", "\n")), &mut facts);
        let of = |name: &str| super::super::known(&facts, name).to_owned();
        [
            of("distribution"),
            of("distribution_version"),
            of("distribution_major_version"),
            of("distribution_release"),
            of("os_family"),
            of("distribution_file_variety"),
        ]
        .join(" | ")
    }

    #[test]
    fn distributions_have_the_names_that_ansible_gives_them() {
        let cases = [
            (
                "NAME='CentOS Linux'|VERSION='7 (Core)'|ID=centos|VERSION_ID=7",
                "redhat=CentOS Linux release 7.9.2009 (Core); centos=CentOS Linux release 7.9.2009 (Core)",
                "CentOS | 7.9 | 7 | Core | RedHat | RedHat",
            ),
            (
                "NAME='CentOS Linux'|VERSION=8|ID=centos|VERSION_ID=8",
                "redhat=CentOS Linux release 8.5.2111; centos=CentOS Linux release 8.5.2111",
                "CentOS | 8.5 | 8 | NA | RedHat | RedHat",
            ),
            (
                "NAME='CentOS Stream'|VERSION=9|ID=centos|VERSION_ID=9",
                "redhat=CentOS Stream release 9; centos=CentOS Stream release 9",
                "CentOS | 9 | 9 | Stream | RedHat | CentOS",
            ),
            (
                "NAME='Red Hat Enterprise Linux'|VERSION='8.6 (Ootpa)'|VERSION_ID=8.6",
                "redhat=Red Hat Enterprise Linux release 8.6 (Ootpa)",
                "RedHat | 8.6 | 8 | Ootpa | RedHat | RedHat",
            ),
            (
                "NAME='Rocky Linux'|VERSION='9.2 (Blue Onyx)'|VERSION_ID=9.2",
                "redhat=Rocky Linux release 9.2 (Blue Onyx)",
                "Rocky | 9.2 | 9 | Blue Onyx | RedHat | RedHat",
            ),
            (
                "NAME=AlmaLinux|VERSION='8.8 (Sapphire Caracal)'|VERSION_ID=8.8",
                "redhat=AlmaLinux release 8.8 (Sapphire Caracal)",
                "AlmaLinux | 8.8 | 8 | Sapphire Caracal | RedHat | RedHat",
            ),
            (
                "NAME=openEuler|VERSION='22.03 (LTS-SP1)'|ID=openEuler|VERSION_ID=22.03",
                "openEuler=openEuler release 22.03 (LTS-SP1)",
                "openEuler | 22.03 | 22 | LTS-SP1 | RedHat | NA",
            ),
            (
                "NAME=EulerOS|VERSION='2.0 (SP8)'|ID=euleros|VERSION_ID=2.0",
                "system=EulerOS release 2.0 (SP8); euleros=EulerOS release 2.0 (SP8)",
                "EulerOS | 2.0 | 2 | SP8 | RedHat | NA",
            ),
            (
                "NAME=EulerOS|VERSION='2.0 (SP5)'|ID=euleros|VERSION_ID=2.0",
                "redhat=EulerOS release 2.0 (SP5)",
                "EulerOS | 2.0 | 2 | SP5 | RedHat | RedHat",
            ),
            (
                "NAME='Huawei Cloud EulerOS'|VERSION='2.0 (x86_64)'|VERSION_ID=2.0",
                "hce=Huawei Cloud EulerOS release 2.0 (West Lake)",
                "Huawei Cloud EulerOS | 2.0 | 2 | West Lake | Huawei Cloud EulerOS | NA",
            ),
            (
                "NAME='Kylin Linux Advanced Server'|VERSION='V10 (Tercel)'|VERSION_ID=V10",
                "kylin=Kylin Linux Advanced Server release V10 (Tercel)",
                "Kylin Linux Advanced Server | V10 | V10 | Tercel | RedHat | NA",
            ),
            (
                "NAME='Anolis OS'|VERSION=8.6|VERSION_ID=8.6",
                "redhat=Anolis OS release 8.6",
                "Anolis | 8.6 | 8 | NA | Anolis | RedHat",
            ),
            (
                "NAME='Oracle Linux Server'|VERSION=8.6|VERSION_ID=8.6",
                "oracle=Oracle Linux Server release 8.6; redhat=Red Hat Enterprise Linux release 8.6 (Ootpa)",
                "OracleLinux | 8.6 | 8 | NA | RedHat | OracleLinux",
            ),
            (
                "NAME='Amazon Linux'|VERSION=2|VERSION_ID=2",
                "system=Amazon Linux release 2 (Karoo)",
                "Amazon | 2 | 2 | NA | RedHat | Amazon",
            ),
            (
                "NAME='Debian GNU/Linux'|VERSION_ID=12|VERSION_CODENAME=bookworm|ID=debian",
                "debian=12.5",
                "Debian | 12.5 | 12 | bookworm | Debian | Debian",
            ),
            (
                "NAME=Ubuntu|VERSION_ID=22.04|VERSION_CODENAME=jammy|ID=ubuntu|UBUNTU_CODENAME=jammy",
                "debian=bookworm/sid",
                "Ubuntu | 22.04 | 22 | jammy | Debian | Debian",
            ),
            (
                "NAME='Linux Mint'|VERSION_ID=21.1|VERSION_CODENAME=vera",
                "debian=bookworm/sid",
                "Linux Mint | 21.1 | 21 | vera | Debian | Debian",
            ),
            (
                "NAME=Kylin|VERSION_ID=v10|VERSION_CODENAME=kylin|ID=kylin",
                "debian=buster/sid",
                "Kylin | v10 | v10 | kylin | Kylin | NA",
            ),
            (
                "NAME=SLES|VERSION=15-SP4|VERSION_ID=15.4|CPE_NAME=cpe:/o:suse:sles:15:sp4",
                "",
                "SLES | 15.4 | 15 | 4 | Suse | SUSE",
            ),
            ("NAME='openSUSE Leap'|VERSION=15.5|VERSION_ID=15.5", "", "openSUSE Leap | 15.5 | 15 | 5 | Suse | SUSE"),
            (
                "NAME='Alpine Linux'|ID=alpine|VERSION_ID=3.19.1",
                "alpine=3.19.1",
                "Alpine | 3.19.1 | 3 | NA | Alpine | Alpine",
            ),
            (
                "NAME='Fedora Linux'|VERSION='39 (Server Edition)'|VERSION_ID=39|VERSION_CODENAME=''",
                "redhat=Fedora release 39 (Thirty Nine)",
                "Fedora | 39 | 39 |  | RedHat | RedHat",
            ),
        ];
        for (os_release, releases, wanted) in cases {
            assert_eq!(facts(os_release, releases), wanted, "{os_release}");
        }
    }
}
