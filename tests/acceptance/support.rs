//! Runs the program in a directory of its own.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// An invocation of the program: files first, then the command line.
pub struct Invocation {
    directory: tempfile::TempDir,
    name: &'static str,
    variables: Vec<(String, String)>,
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

/// A directory without any file.
pub fn given() -> Invocation {
    Invocation { directory: tempfile::tempdir().expect("a directory"), name: "trimtab", variables: Vec::new() }
}

/// Hosts that are all this machine.
pub const LOCAL: &str = "[web]\nweb1 ansible_connection=local\nweb2 ansible_connection=local\n";

impl Invocation {
    pub fn file(self, path: &str, text: &str) -> Invocation {
        let path = self.directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, text).expect("written");
        self
    }

    /// Calls it by another name, through a symbolic link.
    pub fn called(mut self, name: &'static str) -> Invocation {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_trimtab"), self.directory.path().join(name)).expect("linked");
        self.name = name;
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Invocation {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Runs it with the words of a command line.
    pub fn run(&self, words: &[&str]) -> Ended {
        let program = match self.name {
            "trimtab" => env!("CARGO_BIN_EXE_trimtab").into(),
            name => self.directory.path().join(name),
        };
        self.execute(Command::new(program).args(words))
    }

    /// The same, but without a terminal even if the tests have one.
    pub fn run_detached(&self, words: &[&str]) -> Ended {
        self.execute(Command::new("setsid").args(["--wait", env!("CARGO_BIN_EXE_trimtab")]).args(words))
    }

    /// The same, with lines on stdin.
    pub fn run_answering(&self, words: &[&str], lines: &str) -> Ended {
        let answers = self.directory.path().join("answers");
        std::fs::write(&answers, lines).expect("written");
        let stdin = std::fs::File::open(&answers).expect("there");
        self.execute_with(Command::new(env!("CARGO_BIN_EXE_trimtab")).args(words), stdin.into())
    }

    fn execute(&self, command: &mut Command) -> Ended {
        self.execute_with(command, Stdio::null())
    }

    fn execute_with(&self, command: &mut Command, stdin: Stdio) -> Ended {
        let Output { stdout, stderr, status } = command
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .output()
            .expect("the program runs");
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("UTF-8");
            text.replace(&*self.directory.path().to_string_lossy(), "DIR")
        };
        Ended { stdout: text(stdout), stderr: text(stderr), code: status.code().expect("an exit code") }
    }
}

impl Ended {
    /// Fails the test unless stderr and the exit code are these and stdout is empty.
    #[track_caller]
    pub fn refused(&self, code: i32, stderr: &str) {
        assert_eq!(self.stderr, stderr);
        assert_eq!(self.stdout, "");
        assert_eq!(self.code, code);
    }

    /// Fails the test unless stdout is this, stderr empty, and all went well.
    #[track_caller]
    pub fn printed(&self, stdout: &str) {
        assert_eq!(self.stderr, "");
        assert_eq!(self.stdout, stdout);
        assert_eq!(self.code, 0);
    }
}
