//! Programs for tests, in place of those that a test cannot run: shell scripts that behave as documented.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A directory with the programs and what they keep (`$D` for them), removed when dropped.
pub(super) struct FakePrograms {
    directory: tempfile::TempDir,
}

impl FakePrograms {
    /// Programs by name, as code of the shell.
    pub fn new(programs: &[(&str, &str)]) -> FakePrograms {
        let fake = FakePrograms { directory: tempfile::tempdir().unwrap() };
        fs::create_dir(fake.path().join("bin")).unwrap();
        for (name, code) in programs {
            fake.put(name, code);
        }
        fake
    }

    pub fn put(&self, name: &str, code: &str) {
        let path = self.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nD={}\n{code}\n", self.path().display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.file(name), content).unwrap();
    }

    /// A shell that finds them first.
    pub fn shell(&self) -> &'static str {
        let bin = self.path().join("bin");
        Box::leak(format!("env PATH={}:/usr/sbin:/usr/bin:/sbin:/bin sh", bin.display()).into_boxed_str())
    }
}
