//! An inventory of good hosts and one that is not, and the program run on it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::server::{Server, User};

/// No run may take longer, whatever a host does.
const LIMIT: Duration = Duration::from_secs(90);

/// What every host is brought to: a file, a command that runs once, a file that comes of a template.
const PLAYBOOK: &str = "\
- hosts: all
  gather_facts: \"{{ gather | default(false) }}\"
  tasks:
    - name: first file
      copy:
        content: \"{{ content | default('first') }}\\n\"
        dest: \"{{ place }}/first\"
    - name: command
      command: \"{{ command | default('touch ' ~ place ~ '/touched') }}\"
      args:
        creates: \"{{ place }}/touched\"
    - name: second file
      copy:
        content: \"{{ inventory_hostname }}\\n\"
        dest: \"{{ place }}/second\"
";

/// Hosts that are all the same server under several names.
pub struct Fleet {
    pub server: Server,
    folder: tempfile::TempDir,
    hosts: Vec<String>,
    good: Vec<String>,
}

/// A run that ended.
pub struct Ended {
    pub code: i32,
    pub took: Duration,
    report: Value,
}

impl Fleet {
    /// A server with two good hosts: one as root, one as root by sudo, if there is sudo.
    pub fn start() -> Fleet {
        let server = Server::start();
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("play.yml"), PLAYBOOK).unwrap();
        let mut fleet = Fleet { server, folder, hosts: Vec::new(), good: Vec::new() };
        fleet.add("good1", &fleet.as_root());
        let sudo = fs::exists("/usr/bin/sudo").unwrap();
        fleet.add("good2", &format!("{} ansible_become={sudo}", fleet.as_root()));
        fleet.good = ["good1", "good2"].map(str::to_owned).to_vec();
        fleet
    }

    /// Variables of a login as root.
    pub fn as_root(&self) -> String {
        self.by_key("root")
    }

    /// Variables of a login by the server's key.
    pub fn by_key(&self, user: &str) -> String {
        format!("ansible_user={user} ansible_ssh_private_key_file={}", self.server.text("id"))
    }

    /// Adds a host with a directory of its own, `place`; variables that come later stand above those before.
    pub fn add(&mut self, name: &str, variables: &str) {
        let place = self.place(name);
        fs::create_dir_all(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        self.add_as_it_is(name, variables);
    }

    /// Adds a host whose directory is there already.
    pub fn add_as_it_is(&mut self, name: &str, variables: &str) {
        let (port, place) = (self.server.port, self.place(name));
        let place = place.display();
        self.hosts.push(format!("{name} ansible_host=127.0.0.1 ansible_port={port} place={place} {variables}"));
    }

    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join("places").join(name)
    }

    /// Starts the program; `options` are further words of its command line.
    pub fn spawn(&self, options: &[&str]) -> Run {
        let at = |name: &str| self.folder.path().join(name);
        let home = at("home");
        fs::create_dir_all(&home).unwrap();
        fs::write(at("inventory"), format!("{}\n", self.hosts.join("\n"))).unwrap();
        let known_hosts = self.server.text("known_hosts");
        // the first value of an option stands, so that a host can have another
        let ssh =
            format!("-F none -o UserKnownHostsFile={known_hosts} -o GlobalKnownHostsFile=none -o IdentityAgent=none");
        let mut command = Command::new(env!("CARGO_BIN_EXE_trimtab"));
        command.args(["play", "--output", "json", "-i"]).arg(at("inventory")).arg(at("play.yml")).args(options);
        command.args(["--ssh-extra-args", &ssh]);
        command.env("HOME", home).env("ANSIBLE_CONFIG", "/dev/null").env_remove("SSH_AUTH_SOCK");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        let (stdout, stderr) = (at("stdout"), at("stderr"));
        command.stdout(fs::File::create(&stdout).unwrap()).stderr(fs::File::create(&stderr).unwrap());
        Run { child: command.spawn().unwrap(), begin: Instant::now(), stdout, stderr }
    }

    /// Runs the program, checks that every good host was changed and nothing of it went wrong, and gives the rest.
    pub fn run(&self) -> Ended {
        self.run_with(&[])
    }

    pub fn run_with(&self, options: &[&str]) -> Ended {
        self.judge(self.spawn(options).wait())
    }

    /// Checks that the good hosts are as they should be.
    pub fn judge(&self, ended: Ended) -> Ended {
        for host in &self.good {
            // the facts may be one more
            assert!([[3, 3, 0, 0], [4, 3, 0, 0]].contains(&ended.counts(host)), "{host}: {}", ended.report);
            assert_eq!(fs::read_to_string(self.place(host).join("first")).unwrap(), "first\n");
            assert_eq!(fs::read_to_string(self.place(host).join("second")).unwrap(), format!("{host}\n"));
            assert!(self.place(host).join("touched").exists());
        }
        ended
    }

    /// Nothing but these files is in a host's directory, no file half written either.
    pub fn holds(&self, host: &str, expected: &[&str]) {
        assert_eq!(names(&self.place(host)), expected, "{host}");
    }
}

/// The names in a directory, in order.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

/// A run under way.
pub struct Run {
    child: Child,
    begin: Instant,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Run {
    /// Waits for its end, not without end.
    pub fn wait(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.begin.elapsed() > LIMIT {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                panic!("the run hangs; {}", fs::read_to_string(&self.stdout).unwrap());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let took = self.begin.elapsed();
        let (stdout, stderr) = (fs::read_to_string(&self.stdout).unwrap(), fs::read_to_string(&self.stderr).unwrap());
        let report = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}"));
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ended { code: status.code().unwrap(), took, report }
    }
}

impl Ended {
    /// Tasks of a host: ok (with the changed ones), changed, unreachable, failed.
    pub fn counts(&self, host: &str) -> [u64; 4] {
        let counts = &self.report["stats"][host];
        ["ok", "changed", "unreachable", "failures"].map(|name| counts[name].as_u64().unwrap())
    }

    /// The task at which a host ended, how, and why: its only result with one of these states.
    pub fn fault(&self, host: &str) -> (&str, &str, &str) {
        let plays = self.report["plays"].as_array().unwrap();
        let tasks = plays.iter().flat_map(|play| play["tasks"].as_array().unwrap());
        let mut faults = tasks.filter_map(|task| {
            let result = &task["hosts"][host];
            let state = ["unreachable", "failed"].into_iter().find(|state| result[*state] == true)?;
            Some((task["task"]["name"].as_str().unwrap(), state, result["msg"].as_str().unwrap()))
        });
        let fault = faults.next().unwrap_or_else(|| panic!("{host} did not fail: {}", self.report));
        assert!(faults.next().is_none(), "{host} failed twice: {}", self.report);
        fault
    }

    /// Checks that a host was not reached, at which task, with all of these words in the message.
    pub fn unreachable(&self, host: &str, task: &str, words: &[&str]) {
        let (at, state, message) = self.fault(host);
        assert_eq!((at, state), (task, "unreachable"), "{message}");
        assert_eq!(self.code, 4, "{message}");
        assert_eq!(self.counts(host)[2..], [1, 0], "{message}");
        contains(message, words);
    }

    /// Checks that a task of a host failed, with all of these words in the message.
    pub fn failed(&self, host: &str, task: &str, words: &[&str]) {
        let (at, state, message) = self.fault(host);
        assert_eq!((at, state), (task, "failed"), "{message}");
        assert_eq!(self.code, 2, "{message}");
        assert_eq!(self.counts(host)[2..], [0, 1], "{message}");
        contains(message, words);
    }
}

fn contains(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "`{word}` is not in `{message}`");
    }
}

/// Variables of a login by password.
pub fn by_password(user: &User) -> String {
    format!("ansible_user={} ansible_password={}", user.name, quoted(&user.password))
}

/// A value as an INI inventory has it.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}
