use super::*;
use crate::modules::testing::{Play, Played, play, snapshot, undo};
use crate::modules::web::server::{Asked, Reply, Server, shells, without};

const CONTENT: &str = "the content\n";

fn server() -> Server {
    Server::start(|asked: &Asked| match asked.path.as_str() {
        "/file" if asked.headers.contains_key("if-modified-since") => Reply::status("304 Not Modified"),
        "/file" | "/same" | "/dir/name.txt" => Reply::ok(CONTENT),
        "/moved" => Reply::status("302 Found").header("Location", "/dir/name.txt"),
        "/disposed" => Reply::ok(CONTENT).header("Content-Disposition", "attachment; filename=\"../other.txt\""),
        "/closed" => match asked.headers.get("authorization").map(String::as_str) {
            // `me:secret`
            Some("Basic bWU6c2VjcmV0") => Reply::ok(CONTENT),
            _ => Reply::status("401 Unauthorized").header("WWW-Authenticate", "Basic realm=\"x\""),
        },
        "/sums" => Reply::ok(format!("{}  other\n{} *file\n", "0".repeat(40), sha1(CONTENT.as_bytes()))),
        _ => Reply::status("404 Not Found"),
    })
}

struct Lab {
    server: Server,
    root: tempfile::TempDir,
    shell: &'static str,
}

impl Lab {
    fn new(shell: &'static str) -> Lab {
        Lab { server: server(), root: tempfile::tempdir().unwrap(), shell }
    }

    fn path(&self, name: &str) -> String {
        self.root.path().join(name).to_str().unwrap().to_owned()
    }

    fn play(&self, path: &str, dest: &str, more: &[(&'static str, Value)], check: bool) -> Played {
        let given = [("url", self.server.url(path).into()), ("dest", self.path(dest).into())];
        play(&MODULE, &[&given[..], more].concat(), &Play { shell: self.shell, check })
    }

    fn run(&self, path: &str, dest: &str, more: &[(&'static str, Value)]) -> Outcome {
        self.play(path, dest, more, false).result.unwrap()
    }
}

#[test]
fn a_file_is_fetched_kept_changed_and_taken_back() {
    for shell in shells() {
        let lab = Lab::new(shell);
        let before = snapshot(lab.root.path());
        let would = lab.play("/file", "a", &[("mode", "0640".into())], true).result.unwrap();
        assert_eq!((would.changed, would.result["mode"].clone()), (true, "0640".into()), "{shell}");
        assert_eq!(snapshot(lab.root.path()), before, "check mode writes nothing");
        let recorded = lab.play("/file", "a", &[("mode", "0640".into())], true);
        for step in &recorded.changes[0].steps {
            let done = std::process::Command::new("sh").args(["-c", &step.script]).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        assert_eq!(std::fs::read_to_string(lab.path("a")).unwrap(), CONTENT, "what was recorded can be made");
        std::fs::remove_file(lab.path("a")).unwrap();
        let made = lab.play("/file", "a", &[("mode", "0640".into())], false);
        let outcome = made.result.unwrap();
        assert!(outcome.changed);
        assert_eq!(outcome.result["status_code"], 200.into());
        assert_eq!(outcome.result["checksum_src"], sha1(CONTENT.as_bytes()).into());
        assert_eq!(outcome.result["msg"], "OK (12 bytes)".into());
        assert_eq!(std::fs::read_to_string(lab.path("a")).unwrap(), CONTENT);
        for check in [true, false] {
            let again = lab.play("/file", "a", &[("mode", "0640".into())], check);
            let outcome = again.result.unwrap();
            assert_eq!((outcome.changed, outcome.result["status_code"].clone()), (false, 304.into()), "{shell}");
            assert!(again.changes.is_empty());
        }
        std::fs::write(lab.path("a"), "mine\n").unwrap();
        let after_write = snapshot(lab.root.path());
        assert!(!lab.run("/file", "a", &[]).changed, "the server says that it has not changed");
        assert!(lab.play("/same", "a", &[], true).result.unwrap().changed);
        let replaced = lab.play("/same", "a", &[("backup", true.into())], false);
        let backup = replaced.result.unwrap().result["backup_file"].to_string();
        assert_eq!(std::fs::read_to_string(&backup).unwrap(), "mine\n");
        assert!(!lab.run("/same", "a", &[("force", true.into())]).changed);
        undo(&replaced.changes);
        std::fs::remove_file(backup).unwrap();
        assert_eq!(snapshot(lab.root.path()), after_write);
        undo(&made.changes);
        assert_eq!(snapshot(lab.root.path()), before);
    }
}

#[test]
fn checksums_spare_the_download_or_refuse_it() {
    for shell in shells() {
        let lab = Lab::new(shell);
        let right = format!("sha256:{}", crate::modules::file_common::content::sha256(CONTENT.as_bytes()));
        let wrong = format!("sha1:{}", "a".repeat(40));
        let failure = lab.play("/file", "a", &[("checksum", wrong.as_str().into())], false).result.unwrap_err();
        assert!(failure.message.contains("did not match"), "{}", failure.message);
        assert!(!std::path::Path::new(&lab.path("a")).exists());
        assert!(lab.run("/file", "a", &[("checksum", right.as_str().into())]).changed);
        lab.server.asked();
        let again = lab.run("/file", "a", &[("checksum", right.as_str().into()), ("mode", "0600".into())]);
        assert_eq!(again.result["msg"], "file already exists but file attributes changed".into());
        assert!(!lab.run("/file", "a", &[("checksum", right.as_str().into())]).changed);
        assert!(lab.server.asked().is_empty(), "nothing is asked if the digest is right");
        std::fs::write(lab.path("a"), "other\n").unwrap();
        let list = format!("sha1:{}", lab.server.url("/sums"));
        assert!(lab.run("/file", "a", &[("checksum", list.as_str().into())]).changed);
        assert_eq!(std::fs::read_to_string(lab.path("a")).unwrap(), CONTENT);
        for (bad, words) in [("sha1", "format"), ("crc:1", "not supported"), ("sha1:xyz", "invalid")] {
            let failure = lab.play("/file", "a", &[("checksum", bad.into())], false).result.unwrap_err();
            assert!(failure.message.contains(words), "{}", failure.message);
        }
    }
}

#[test]
fn a_directory_gets_the_name_that_the_server_says() {
    for shell in shells() {
        let lab = Lab::new(shell);
        std::fs::create_dir(lab.path("d")).unwrap();
        for (path, name) in [("/moved", "name.txt"), ("/disposed", "other.txt"), ("/file?x=1", "file")] {
            let path = if path.contains('?') { "/same" } else { path };
            let name = if path == "/same" { "same" } else { name };
            let outcome = lab.run(path, "d", &[]);
            assert_eq!(outcome.result["dest"], lab.path(&format!("d/{name}")).into(), "{shell} {path}");
            assert!(outcome.changed && !lab.run(path, "d", &[]).changed);
        }
        let failure = lab.play("/file", "no/such", &[], false).result.unwrap_err();
        assert!(failure.message.contains("does not exist"), "{}", failure.message);
    }
}

#[test]
fn passwords_are_sent_but_not_shown() {
    for shell in shells().into_iter().filter(|shell| *shell == "sh") {
        let lab = Lab::new(shell);
        let login = [("url_username", "me".into()), ("url_password", "secret".into())];
        let failure = lab.play("/closed", "a", &[], false).result.unwrap_err();
        assert_eq!(failure.result["status_code"], 401.into(), "{shell}");
        assert!(lab.run("/closed", "a", &login).changed);
        let at_once = [&login[..], &[("force_basic_auth", true.into())]].concat();
        lab.server.asked();
        assert!(lab.run("/closed", "b", &at_once).changed);
        assert_eq!(lab.server.asked().len(), 1);
        let header = crate::value::object([("X-Tag", "a b".into())]);
        lab.run("/file", "c", &[("headers", header.into())]);
        let asked = lab.server.asked();
        assert_eq!(asked.last().unwrap().headers["x-tag"], "a b");
        assert_eq!(asked.last().unwrap().headers["user-agent"], "ansible-httpget");
        let gone = lab.play("/gone", "a", &[("force", true.into())], false).result.unwrap_err();
        assert_eq!((gone.message.as_str(), gone.result["status_code"].clone()), ("Request failed", 404.into()));
    }
}

#[test]
fn a_host_without_programs_gets_what_the_controller_fetched() {
    let shell = without(&["curl", "wget"]);
    let lab = Lab::new(shell);
    let failure = lab.play("/file", "a", &[], false).result.unwrap_err();
    assert!(failure.message.contains("no curl"), "{}", failure.message);
    // the same address as a number, which does not look like this machine
    let given = |check| {
        let url = lab.server.url("/moved").replace("127.0.0.1", "2130706433");
        let given = [("url", url.into()), ("dest", lab.path("a").into())];
        play(&MODULE, &given, &Play { shell, check }).result.unwrap()
    };
    assert!(given(true).changed && !std::path::Path::new(&lab.path("a")).exists());
    assert!(given(false).changed);
    assert_eq!(std::fs::read_to_string(lab.path("a")).unwrap(), CONTENT);
    assert!(!given(false).changed);
}
