//! A small HTTP server on the loopback device for tests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a client sent.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// What it is answered.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: &'static str,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn ok(body: impl Into<Vec<u8>>) -> Reply {
        Reply { status: "200 OK", headers: Vec::new(), body: body.into() }
    }

    pub fn status(status: &'static str) -> Reply {
        Reply { status, headers: Vec::new(), body: Vec::new() }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// Runs until the test process ends.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Server { port, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// What was asked since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

fn serve(stream: TcpStream, log: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Reply) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut asked =
        Asked { method: words.next().unwrap_or_default(), path: words.next().unwrap_or_default(), ..Asked::default() };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim_end().split_once(':') {
            asked.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    let length = asked.headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    asked.body = vec![0; length];
    if reader.read_exact(&mut asked.body).is_err() {
        return;
    }
    let reply = answer(&asked);
    let is_head = asked.method == "HEAD";
    log.lock().unwrap().push(asked);
    let mut out = format!("HTTP/1.1 {}\r\nConnection: close\r\n", reply.status);
    if !reply.status.starts_with("304") {
        out.push_str(&format!("Content-Length: {}\r\n", reply.body.len()));
    }
    for (name, value) in &reply.headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    let mut stream = stream;
    let _ = stream.write_all(out.as_bytes());
    if !is_head {
        let _ = stream.write_all(&reply.body);
    }
}

/// Shells on hosts with curl, and with GNU wget alone, as far as this machine has them.
pub fn shells() -> Vec<&'static str> {
    let has = |program: &str| {
        std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let mut shells = Vec::new();
    if has("curl") {
        shells.push("sh");
    }
    if has("wget") {
        shells.push(without(&["curl"]));
    }
    if shells.is_empty() {
        crate::modules::testing::skip("this machine has neither curl nor wget");
    }
    shells
}

/// A shell on a host that lacks these programs.
pub fn without(programs: &[&str]) -> &'static str {
    let directory = tempfile::tempdir().unwrap().keep();
    for place in ["/bin", "/usr/bin", "/usr/sbin", "/sbin"] {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !programs.iter().any(|program| name == *program) {
                let _ = std::os::unix::fs::symlink(entry.path(), directory.join(&name));
            }
        }
    }
    // trimtab adds the usual directories of administrators, so the shell hides them behind its own
    Box::leak(format!("env PATH={} sh", directory.display()).into_boxed_str())
}
