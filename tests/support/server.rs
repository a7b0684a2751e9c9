//! A real sshd on a high port of 127.0.0.1, with keys of its own, gone when the test ends; users to log in as.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::skip::skipped;

pub struct Server {
    pub folder: tempfile::TempDir,
    pub port: u16,
    child: Child,
}

/// True if this process is root and the machine has sshd; says what is missing otherwise.
pub fn possible() -> bool {
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let sshd = Path::new("/usr/sbin/sshd").exists();
    if !root || !sshd {
        skipped(if root { "there is no /usr/sbin/sshd" } else { "only root can start an sshd that lets others in" });
    }
    root && sshd
}

fn ssh_keygen(arguments: &[&str], path: &Path) {
    let status = Command::new("ssh-keygen").args(["-q", "-N", ""]).args(arguments).arg("-f").arg(path).status();
    assert!(status.unwrap().success());
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn spawn(folder: &tempfile::TempDir) -> Child {
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f"]).arg(folder.path().join("sshd_config"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

impl Server {
    pub fn start() -> Server {
        Server::start_with("")
    }

    /// Starts with lines of sshd_config(5) before the usual ones; the first value wins.
    pub fn start_with(lines: &str) -> Server {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let at = |name: &str| folder.path().join(name);
        ssh_keygen(&["-t", "ed25519"], &at("host_ed25519"));
        ssh_keygen(&["-t", "ecdsa"], &at("host_ecdsa"));
        ssh_keygen(&["-t", "ed25519", "-C", "test key"], &at("id"));
        fs::copy(at("id.pub"), at("authorized")).unwrap();
        let port = free_port();
        let home = folder.path().display();
        let config = format!(
            "{lines}\nPort {port}\nListenAddress 127.0.0.1\nHostKey {home}/host_ed25519\nHostKey {home}/host_ecdsa\n\
             AuthorizedKeysFile {home}/authorized\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\n\
             PrintMotd no\nPasswordAuthentication yes\nKexAlgorithms curve25519-sha256\nMaxStartups 100\n"
        );
        fs::write(at("sshd_config"), config).unwrap();
        fs::create_dir_all("/run/sshd").unwrap();
        let child = spawn(&folder);
        let server = Server { folder, port, child };
        server.wait();
        server.know("host_ed25519");
        server
    }

    /// Ends the server and starts it again: it reads its keys and certificates anew.
    pub fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = spawn(&self.folder);
        self.wait();
    }

    fn wait(&self) {
        for _ in 0..100 {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("sshd does not start: {}", fs::read_to_string(self.path("log")).unwrap());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The public key in a file, as known_hosts has it.
    pub fn public_key(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(&format!("{name}.pub"))).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ").trim().to_owned()
    }

    /// Writes a known_hosts that holds one key of the server.
    pub fn know(&self, name: &str) {
        let line = format!("[127.0.0.1]:{} {}\n", self.port, self.public_key(name));
        fs::write(self.path("known_hosts"), line).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A user of this machine with a password and perhaps rights in sudoers, removed when the test ends.
pub struct User {
    pub name: String,
    pub password: String,
    sudoers: PathBuf,
}

/// The tools that edit /etc/passwd do not wait for each other.
static PASSWD: Mutex<()> = Mutex::new(());

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl User {
    /// `rights`: what stands behind the name in sudoers, perhaps with `Defaults` of this user; empty: none.
    pub fn create(suffix: &str, rights: &str) -> User {
        let _guard = PASSWD.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("tt{}{suffix}", std::process::id());
        let password = "p'w \"$1\\ é".to_owned();
        let sudoers = PathBuf::from(format!("/etc/sudoers.d/{name}"));
        succeed(Command::new("useradd").args(["-m", "-s", "/bin/sh", &name]));
        let user = User { name, password, sudoers };
        let hash = Command::new("openssl").args(["passwd", "-6", &user.password]).output();
        match hash {
            Ok(output) if output.status.success() => {
                let hash = String::from_utf8(output.stdout).unwrap();
                succeed(Command::new("usermod").args(["-p", hash.trim(), &user.name]));
            }
            _ => {
                let line = format!("{}:{}\n", user.name, user.password);
                let script = format!("printf %s '{}' | chpasswd", line.replace('\'', "'\\''"));
                succeed(Command::new("sh").args(["-c", &script]));
            }
        }
        if !rights.is_empty() {
            let rights = rights.replace("Defaults ", &format!("Defaults:{} ", user.name));
            fs::write(&user.sudoers, format!("Defaults:{0} lecture=always\n{0} {rights}\n", user.name)).unwrap();
            fs::set_permissions(&user.sudoers, fs::Permissions::from_mode(0o440)).unwrap();
        }
        user
    }

    pub fn set_shell(&self, shell: &str) {
        let _guard = PASSWD.lock().unwrap_or_else(PoisonError::into_inner);
        succeed(Command::new("usermod").args(["-s", shell, &self.name]));
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _guard = PASSWD.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = fs::remove_file(&self.sudoers);
        for _ in 0..20 {
            let removed = Command::new("userdel").args(["-r", "-f", &self.name]).output();
            if removed.is_ok_and(|output| output.status.success() || output.status.code() == Some(6)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
