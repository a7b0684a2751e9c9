//! Hosts whose disk takes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fleet::{Fleet, by_password, names};
use crate::server::{self, User};
use crate::skip::skipped;

/// A small file system of its own, unmounted when the test ends.
struct Mount(PathBuf);

impl Mount {
    /// `None`, visibly, where this machine does not let us.
    fn at(path: &Path, options: &str) -> Option<Mount> {
        std::fs::create_dir_all(path).unwrap();
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        if status.is_ok_and(|output| output.status.success()) {
            return Some(Mount(path.to_owned()));
        }
        skipped("a tmpfs cannot be mounted here");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_is_full() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let Some(_mount) = Mount::at(&fleet.place("bad"), "size=64k,mode=777") else { return };
    let content = "\"content={{ 'x' * 200000 }}\"";
    fleet.add("bad", &format!("{} {content}", fleet.as_root()));
    let ended = fleet.run();
    ended.failed("bad", "first file", &["No space left on device"]);
    // no half of a file, neither under its name nor under another
    assert_eq!(names(&fleet.place("bad")), [] as [&str; 0]);
}

#[test]
fn a_directory_that_takes_no_file() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    let user = User::create("readonly", "");
    let Some(_mount) = Mount::at(&fleet.place("mount"), "ro,size=64k") else { return };
    fleet.add("user", &by_password(&user));
    fleet.add_as_it_is("mount", &fleet.as_root());
    let forbidden = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(fleet.place("user"), forbidden).unwrap();
    let ended = fleet.run();
    ended.failed("user", "first file", &["Permission denied", "/first"]);
    ended.failed("mount", "first file", &["Read-only file system", "/first"]);
    for host in ["user", "mount"] {
        fleet.holds(host, &[]);
    }
}

#[test]
fn a_directory_that_is_missing() {
    if !server::possible() {
        return;
    }
    let mut fleet = Fleet::start();
    fleet.add("bad", &fleet.as_root());
    std::fs::remove_dir(fleet.place("bad")).unwrap();
    fleet.run().failed("bad", "first file", &[fleet.place("bad").to_str().unwrap(), "does not exist"]);
}
