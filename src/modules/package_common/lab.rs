//! Small packages, repositories and roots for tests, made by the real tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::value::Value;

/// Tells why a test does nothing here.
#[allow(clippy::print_stderr)]
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// True if this machine has all of these programs; says so if not.
pub fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.is_ok_and(|output| output.status.success())
    });
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if let Some(missing) = missing {
        skip(&format!("this machine has no {missing}"));
    } else if !is_root {
        skip("package managers want root");
    }
    missing.is_none() && is_root
}

pub fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository of RPM packages, and an empty root to install them in.
pub struct RpmLab {
    directory: tempfile::TempDir,
}

/// Name, version, and further lines of the header.
const RPMS: &[(&str, &str, &str)] = &[
    ("zz-alpha", "1.0", "Requires: zz-dep"),
    ("zz-alpha", "1.2", "Requires: zz-dep"),
    ("zz-dep", "0.1", "Provides: zz-virtual = 5"),
    ("zz-lonely", "2.0", ""),
    ("zz-a-package-whose-name-is-longer-than-the-column-of-the-table-that-shows-it", "1.20251130", ""),
    ("zz-broken", "1.0", "Requires: zz-there-is-no-such-thing"),
];

impl RpmLab {
    /// `None` if this machine has not the tools.
    pub fn new() -> Option<RpmLab> {
        if !has(&["dnf", "rpm", "rpmbuild", "createrepo_c"]) {
            return None;
        }
        let lab = RpmLab { directory: tempfile::tempdir().unwrap() };
        for (name, version, header) in RPMS {
            lab.build(name, version, header);
        }
        let groups = "<?xml version=\"1.0\"?><comps><group><id>zz-group</id><name>Zz Tools</name><description/>\
                      <default>false</default><uservisible>true</uservisible><packagelist>\
                      <packagereq type=\"mandatory\">zz-lonely</packagereq></packagelist></group></comps>";
        std::fs::write(lab.path("comps.xml"), groups).unwrap();
        lab.index();
        let top = lab.path("").display().to_string();
        let configuration = format!(
            "[main]\ngpgcheck=0\nbest=True\nreposdir={top}/none\ncachedir={top}/cache\nlogdir={top}/log\n\
             persistdir={top}/persist\nmodule_platform_id=platform:el8\nplugins=0\n[zz]\nname=zz\nbaseurl=file://{top}/repo\n"
        );
        std::fs::write(lab.path("dnf.conf"), configuration).unwrap();
        std::fs::create_dir(lab.path("root")).unwrap();
        Some(lab)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.directory.path().to_owned() } else { self.directory.path().join(name) }
    }

    /// Puts a package into the repository.
    pub fn build(&self, name: &str, version: &str, header: &str) {
        let specification = format!(
            "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: a test\nLicense: none\nBuildArch: noarch\n{header}\n\
             %description\na test\n%files\n"
        );
        let file = self.path(&format!("{name}-{version}.spec"));
        std::fs::write(&file, specification).unwrap();
        let top = self.path("");
        let top = top.display();
        shell(&format!(
            "rpmbuild -bb --quiet --define '_topdir {top}/build' --define '_rpmdir {top}/repo' \
             --define '_build_name_fmt %%{{NAME}}-%%{{VERSION}}.rpm' {} 2>&1",
            file.display()
        ));
    }

    /// Makes the repository's list of packages anew.
    pub fn index(&self) {
        let top = self.path("");
        shell(&format!("createrepo_c -q -g {0}/comps.xml {0}/repo", top.display()));
    }

    /// The arguments that keep a task inside this lab.
    pub fn arguments(&self, given: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        let text = |path: &Path| Value::from(path.to_string_lossy().as_ref());
        let mut all = vec![
            ("conf_file", text(&self.path("dnf.conf"))),
            ("installroot", text(&self.path("root"))),
            ("releasever", "8".into()),
        ];
        all.extend(given.iter().cloned());
        all
    }

    /// Name and version of what is installed.
    pub fn installed(&self) -> String {
        let root = self.path("root");
        let list = shell(&format!("rpm --root {} -qa --qf '%{{NAME}}-%{{VERSION}}\\n' | sort", root.display()));
        list.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A repository of Debian packages, and a root of apt's own to install them in.
pub struct DebLab {
    directory: tempfile::TempDir,
    shell: &'static str,
}

/// Name, version, and further lines of the control file.
const DEBS: &[(&str, &str, &str)] = &[
    ("zz-alpha", "1.0", "Depends: zz-dep\n"),
    ("zz-alpha", "1.2", "Depends: zz-dep\n"),
    ("zz-dep", "0.1", "Provides: zz-virtual\n"),
    ("zz-lonely", "2.0", ""),
    ("zz-broken", "1.0", "Depends: zz-there-is-no-such-thing\n"),
];

impl DebLab {
    /// `None` if this machine has not the tools.
    pub fn new() -> Option<DebLab> {
        if !has(&["apt-get", "dpkg-deb", "dpkg-scanpackages"]) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().display().to_string();
        for name in [
            "var/lib/dpkg/info",
            "var/lib/dpkg/updates",
            "var/lib/dpkg/triggers",
            "etc/apt/sources.list.d",
            "etc/apt/preferences.d",
            "etc/apt/apt.conf.d",
            "etc/apt/trusted.gpg.d",
            "var/lib/apt/lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
        ] {
            std::fs::create_dir_all(directory.path().join("root").join(name)).unwrap();
        }
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("root/var/lib/dpkg/status", "");
        write("root/var/lib/dpkg/available", "");
        write("root/etc/apt/sources.list", &format!("deb [trusted=yes] copy:{top}/repo ./\n"));
        let configuration = format!(
            "Dir \"{top}/root/\";\nDir::State::status \"{top}/root/var/lib/dpkg/status\";\nDir::Bin::dpkg \"/usr/bin/dpkg\";\n\
             Dir::Log \"{top}/root/var/log/apt\";\nDPkg::Options {{ \"--root={top}/root\"; \"--log=/dev/null\"; }};\n\
             DPkg::Path \"\";\nAPT::Sandbox::User \"root\";\n"
        );
        write("apt.conf", &configuration);
        std::fs::create_dir(directory.path().join("repo")).unwrap();
        let shell =
            format!("env APT_CONFIG={top}/apt.conf DPKG_ROOT={top}/root DPKG_ADMINDIR={top}/root/var/lib/dpkg sh");
        let lab = DebLab { directory, shell: Box::leak(shell.into_boxed_str()) };
        for (name, version, fields) in DEBS {
            lab.build(name, version, fields);
        }
        lab.index();
        lab.run("apt-get -q update");
        Some(lab)
    }

    /// The shell whose apt and dpkg are the lab's.
    pub fn shell(&self) -> &'static str {
        self.shell
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn run(&self, script: &str) -> String {
        let mut words = self.shell.split(' ');
        let output = Command::new(words.next().unwrap()).args(words).args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Puts a package into the repository.
    pub fn build(&self, name: &str, version: &str, fields: &str) {
        let tree = self.path(&format!("{name}-{version}"));
        std::fs::create_dir_all(tree.join("DEBIAN")).unwrap();
        std::fs::create_dir_all(tree.join("etc")).unwrap();
        std::fs::write(tree.join("etc").join(format!("{name}.conf")), "a setting\n").unwrap();
        std::fs::write(tree.join("DEBIAN/conffiles"), format!("/etc/{name}.conf\n")).unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: a test <test@example.org>\n{fields}\
             Description: a test\n"
        );
        std::fs::write(tree.join("DEBIAN/control"), control).unwrap();
        let top = self.directory.path().display();
        shell(&format!("dpkg-deb --build {} {top}/repo/{name}_{version}_all.deb", tree.display()));
    }

    /// Makes the repository's list of packages anew.
    pub fn index(&self) {
        let top = self.directory.path().display();
        shell(&format!("cd {top}/repo && dpkg-scanpackages -m . >Packages 2>/dev/null"));
    }

    /// Name, version and status of what dpkg knows.
    pub fn known(&self) -> String {
        let list = self.run("dpkg-query -W -f '${Package}=${Version}=${db:Status-Abbrev}\\n'");
        list.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
