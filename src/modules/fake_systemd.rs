//! A `systemctl` for tests: units are files, and it keeps a list of what it was told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A directory with the program, removed when dropped.
pub(super) struct FakeSystemd {
    directory: tempfile::TempDir,
}

const PROGRAM: &str = r#"#!/bin/sh
D=$(dirname "$0")
verb=$1
shift
case $verb in
show)
  while [ "$1" != -- ]; do shift; done
  shift
  first=1
  for u; do
    [ "$first" ] || echo
    first=
    u=${u%.service}
    if [ -f "$D/unit.$u" ]; then
      cat "$D/unit.$u"
    else
      printf 'Id=%s.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n' "$u"
    fi
  done
  exit
  ;;
esac
echo "$verb $*" >>"$D/log"
set_key() { sed -i "s/^$2=.*/$2=$3/" "$D/unit.$1"; }
for u; do
  u=${u%.service}
  [ -f "$D/unit.$u" ] || { echo "Unit $u.service could not be found." >&2; exit 5; }
  case $verb in
  start) set_key "$u" ActiveState active ;;
  stop) set_key "$u" ActiveState inactive ;;
  enable) set_key "$u" UnitFileState enabled ;;
  disable) set_key "$u" UnitFileState disabled ;;
  mask) set_key "$u" UnitFileState masked; set_key "$u" LoadState masked ;;
  unmask) set_key "$u" UnitFileState disabled; set_key "$u" LoadState loaded ;;
  esac
done
exit 0
"#;

impl FakeSystemd {
    pub fn new() -> FakeSystemd {
        let fake = FakeSystemd { directory: tempfile::tempdir().unwrap() };
        fake.program("systemctl", PROGRAM);
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds another program.
    pub fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds a unit, with further properties as `Key=value` lines.
    pub fn unit(&self, name: &str, active: &str, file: &str, more: &str) {
        let text = format!(
            "Id={name}.service\nLoadState=loaded\nActiveState={active}\nSubState=x\nUnitFileState={file}\nNeedDaemonReload=no\n{more}"
        );
        fs::write(self.path(&format!("unit.{name}")), text).unwrap();
    }

    /// `active enabled` and the like.
    pub fn state(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(&format!("unit.{name}"))).unwrap();
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().to_owned();
        format!("{} {}", value("ActiveState="), value("UnitFileState="))
    }

    /// The text of a file beside the program; empty if there is none.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// What it was told so far, a line each; forgotten afterwards.
    pub fn log(&self) -> String {
        let text = self.text("log");
        let _ = fs::remove_file(self.path("log"));
        text
    }

    /// A shell that finds the program.
    pub fn shell(&self) -> &'static str {
        let path = self.directory.path().display();
        Box::leak(format!("env PATH={path}:/usr/sbin:/usr/bin:/sbin:/bin sh").into_boxed_str())
    }

    /// Runs the steps that take a change back.
    pub fn undo(&self, changes: &[crate::host::Change]) {
        for change in changes.iter().rev() {
            let crate::host::Inverse::Steps(steps) = &change.inverse else { panic!("{} has no inverse", change.what) };
            for step in steps {
                let line = format!("{} -c \"$1\" sh \"$1\"", self.shell());
                let mut command = std::process::Command::new("sh");
                let mut child = command
                    .args(["-c", &line, "sh", &step.script])
                    .stdin(std::process::Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut stdin = child.stdin.take().unwrap();
                std::io::Write::write_all(&mut stdin, step.stdin.as_deref().unwrap_or_default()).unwrap();
                drop(stdin);
                assert!(child.wait().unwrap().success(), "{}", step.script);
            }
        }
    }
}
