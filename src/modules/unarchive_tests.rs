use super::*;
use crate::modules::testing::{Play, Played, check_module, play, run_module, snapshot, undo};
use crate::modules::web::server::{Asked, Reply, Server, without};

fn sh(directory: &std::path::Path, script: &str) {
    let output = std::process::Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

fn has(program: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        crate::modules::testing::skip(&format!("this machine has no {program}"));
    }
    has
}

/// A directory with archives of the tree `top`, in all formats that this machine can write, and a place to unpack in.
struct Lab {
    root: tempfile::TempDir,
}

impl Lab {
    fn new() -> Lab {
        let root = tempfile::tempdir().unwrap();
        sh(
            root.path(),
            "umask 022; mkdir -p top/d out; echo one >top/a; echo two >top/d/b; ln -s a top/l; chmod 750 top/d/b; \
             tar -czf x.tar.gz top; tar -cf x.tar top; ! command -v zip >/dev/null || zip -qry x.zip top; \
             ! command -v xz >/dev/null || tar -cJf x.tar.xz top; ! command -v bzip2 >/dev/null || tar -cjf x.tar.bz2 top; \
             ! command -v zstd >/dev/null || tar -c --zstd -f x.tar.zst top",
        );
        Lab { root }
    }

    fn at(&self, name: &str) -> String {
        self.root.path().join(name).to_str().unwrap().to_owned()
    }

    fn args(&self, archive: &str, remote: bool, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        let own = [("src", self.at(archive).into()), ("dest", self.at("out").into()), ("remote_src", remote.into())];
        [&own[..], more].concat()
    }

    fn play(&self, archive: &str, remote: bool, more: &[(&'static str, Value)], shell: &'static str) -> Played {
        play(&MODULE, &self.args(archive, remote, more), &Play { shell, check: false })
    }

    fn out(&self) -> Vec<String> {
        snapshot(&self.root.path().join("out"))
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }
}

#[test]
fn every_kind_of_archive_is_unpacked_once_mended_and_taken_back() {
    let lab = Lab::new();
    let empty = lab.out();
    for archive in ["x.tar.gz", "x.tar", "x.zip", "x.tar.xz", "x.tar.bz2", "x.tar.zst"] {
        if !lab.root.path().join(archive).exists() {
            continue;
        }
        let without_unzip = without(&["unzip", "curl"]);
        for (remote, shell) in [(false, "sh"), (true, "sh"), (true, without_unzip)] {
            let case = format!("{archive} {remote} {shell}");
            assert!(check_module(&MODULE, &lab.args(archive, remote, &[])).unwrap().changed, "{case}");
            assert_eq!(lab.out(), empty, "{case}");
            let first = lab.play(archive, remote, &[("list_files", true.into())], shell);
            let outcome = first.result.unwrap();
            assert!(outcome.changed, "{case}");
            let files = outcome.result["files"].as_list().unwrap().to_vec();
            assert!(files.contains(&"top/d/b".into()) && files.contains(&"top/d/".into()), "{case}: {files:?}");
            assert_eq!((lab.read("out/top/a"), lab.read("out/top/d/b")), ("one\n".into(), "two\n".into()), "{case}");
            assert!(lab.root.path().join("out/top/l").is_symlink(), "{case}");
            let unpacked = lab.out();
            let again = lab.play(archive, remote, &[], shell);
            assert!(!again.result.unwrap().changed && again.changes.is_empty(), "{case}");
            assert!(!check_module(&MODULE, &lab.args(archive, remote, &[])).unwrap().changed, "{case}");
            sh(lab.root.path(), "echo changed >out/top/a; chmod 600 out/top/a; rm out/top/d/b");
            let damaged = lab.out();
            let mended = lab.play(archive, remote, &[], shell);
            assert!(mended.result.unwrap().changed, "{case}");
            assert_eq!(lab.out(), unpacked, "{case}");
            undo(&mended.changes);
            assert_eq!(lab.out(), damaged, "{case}");
            sh(
                lab.root.path(),
                "echo one >out/top/a; chmod 644 out/top/a; echo two >out/top/d/b; chmod 750 out/top/d/b",
            );
            undo(&first.changes);
            assert_eq!(lab.out(), empty, "{case}");
        }
    }
}

#[test]
fn some_of_an_archive_with_options() {
    let lab = Lab::new();
    for remote in [false, true] {
        let clear = || sh(lab.root.path(), "rm -rf out; mkdir out");
        let list = |items: &[&str]| Value::list(items.iter().map(|item| Value::from(*item)).collect());
        let strip = [("extra_opts", list(&["--strip-components=1"]))];
        assert!(lab.play("x.tar.gz", remote, &strip, "sh").result.unwrap().changed);
        assert_eq!(lab.read("out/d/b"), "two\n");
        assert!(!lab.play("x.tar.gz", remote, &strip, "sh").result.unwrap().changed, "remote: {remote}");
        clear();
        let exclude = [("exclude", list(&["top/d", "*.no"]))];
        assert!(lab.play("x.tar.gz", remote, &exclude, "sh").result.unwrap().changed);
        assert!(!lab.root.path().join("out/top/d").exists() && lab.root.path().join("out/top/a").exists());
        clear();
        let include = [("include", list(&["top/d/b"])), ("mode", "0600".into())];
        let played = lab.play("x.tar.gz", remote, &include, "sh");
        assert!(played.result.unwrap().changed);
        assert!(!lab.root.path().join("out/top/a").exists());
        let line = lab.out().into_iter().find(|line| line.starts_with("./top/d/b")).unwrap();
        assert!(line.contains(" 600 "), "{line}");
        assert!(!lab.play("x.tar.gz", remote, &include, "sh").result.unwrap().changed);
        undo(&played.changes);
        assert!(lab.out().is_empty(), "{:?}", lab.out());
        let wrong = [("include", list(&["no/such"]))];
        assert!(lab.play("x.tar.gz", remote, &wrong, "sh").result.is_err());
        assert!(lab.play("x.tar.gz", remote, &[], "sh").result.unwrap().changed);
        sh(lab.root.path(), "echo newer >out/top/a; touch -d '2100-01-01' out/top/a");
        let newer = [("keep_newer", true.into())];
        assert!(!lab.play("x.tar.gz", remote, &newer, "sh").result.unwrap().changed, "remote: {remote}");
        assert_eq!(lab.read("out/top/a"), "newer\n");
        clear();
    }
    let created = [("creates", lab.at("x.tar").into())];
    let skipped = run_module(&MODULE, &lab.args("x.tar.gz", false, &created)).unwrap();
    assert!(!skipped.changed && lab.out().is_empty());
}

#[test]
fn archives_come_from_the_network_too() {
    if !has("curl") {
        return;
    }
    let lab = Lab::new();
    let content = std::fs::read(lab.at("x.tar.gz")).unwrap();
    let server = Server::start(move |asked: &Asked| match asked.path.as_str() {
        "/x.tar.gz" => Reply::ok(content.clone()),
        _ => Reply::status("404 Not Found"),
    });
    let given =
        |path: &str| [("src", server.url(path).into()), ("dest", lab.at("out").into()), ("remote_src", true.into())];
    let unknown = check_module(&MODULE, &given("/x.tar.gz")).unwrap_err();
    assert!(matches!(unknown.kind, crate::host::FailureKind::Interrupted(_)));
    assert!(run_module(&MODULE, &given("/x.tar.gz")).unwrap().changed);
    assert_eq!(lab.read("out/top/a"), "one\n");
    assert!(!run_module(&MODULE, &given("/x.tar.gz")).unwrap().changed);
    let failure = run_module(&MODULE, &given("/gone")).unwrap_err();
    assert!(failure.message.contains("HTTP Error 404"), "{}", failure.message);
}

#[test]
fn what_cannot_be_is_told() {
    let lab = Lab::new();
    std::fs::write(lab.at("text.tar.gz"), "no archive at all\n").unwrap();
    let failed = |archive: &str, remote: bool, more: &[(&'static str, Value)]| {
        lab.play(archive, remote, more, "sh").result.unwrap_err().message
    };
    for remote in [false, true] {
        assert!(failed("text.tar.gz", remote, &[]).contains("Failed to find handler"));
    }
    assert!(failed("gone.tar", true, &[]).contains("does not exist"));
    assert!(failed("x.tar", false, &[("dest", lab.at("nowhere").into())]).contains("must be an existing dir"));
    let options = [("extra_opts", Value::list(vec!["--transform=s/a/b/".into()]))];
    assert!(failed("x.tar", false, &options).contains("`--transform=s/a/b/`"));
    sh(
        lab.root.path(),
        "echo evil >e; tar -cPf evil.tar ../../../../../../../../..$PWD/e 2>/dev/null || tar -cPf evil.tar ../e 2>/dev/null || :",
    );
    if lab.root.path().join("evil.tar").exists() {
        assert!(failed("evil.tar", false, &[]).contains("leads elsewhere"));
    }
}
