use super::*;
use crate::modules::testing::{Play, Played, check_module, play, run_module, skip, snapshot, undo};
use crate::value::Value;

/// A repository with two commits, a branch `next` and a tag `v1`.
struct Repository {
    root: tempfile::TempDir,
}

fn sh(directory: &std::path::Path, script: &str) -> String {
    let output = std::process::Command::new("sh").args(["-ec", script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Repository {
    fn new() -> Option<Repository> {
        if std::process::Command::new("git").arg("--version").output().is_err() {
            skip("this machine has no git");
            return None;
        }
        let repository = Repository { root: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repository.root.path().join("origin")).unwrap();
        repository.sh(
            "git init -q . && git checkout -q -b main && git config user.name t && git config user.email t@example.org\n\
             echo 1 >a && git add a && git commit -qm one && git tag -a -m v1 v1 && git checkout -q -b next && echo 2 >a && \
             git commit -qam two && git checkout -q main",
        );
        Some(repository)
    }

    fn sh(&self, script: &str) -> String {
        sh(&self.root.path().join("origin"), script)
    }

    fn commit(&self, version: &str) -> String {
        self.sh(&format!("git rev-parse '{version}^{{commit}}'"))
    }

    fn given(&self, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        let at = |name: &str| Value::from(self.root.path().join(name).to_str().unwrap());
        [&[("repo", at("origin")), ("dest", at("deep/copy"))], more].concat()
    }

    fn play(&self, more: &[(&'static str, Value)]) -> Played {
        play(&MODULE, &self.given(more), &Play::default())
    }

    fn after(&self, more: &[(&'static str, Value)]) -> (bool, String) {
        let outcome = self.play(more).result.unwrap();
        (outcome.changed, outcome.result["after"].to_string())
    }

    fn content(&self) -> String {
        std::fs::read_to_string(self.root.path().join("deep/copy/a")).unwrap()
    }
}

#[test]
fn a_repository_is_cloned_once_and_the_clone_taken_back() {
    let Some(repository) = Repository::new() else { return };
    let main = repository.commit("main");
    let would = check_module(&MODULE, &repository.given(&[])).unwrap();
    assert_eq!((would.changed, would.result["after"].clone()), (true, main.as_str().into()));
    let cloned = repository.play(&[]);
    let outcome = cloned.result.unwrap();
    assert_eq!((outcome.changed, outcome.result["before"].clone()), (true, Value::Null));
    assert_eq!(outcome.result["after"], main.as_str().into());
    let again = repository.play(&[]);
    let outcome = again.result.unwrap();
    assert_eq!(
        (outcome.changed, outcome.result["remote_url_changed"].clone(), again.batches),
        (false, false.into(), 1)
    );
    undo(&cloned.changes);
    assert!(!repository.root.path().join("deep/copy").exists());
}

#[test]
fn versions_are_branches_tags_and_commits() {
    let Some(repository) = Repository::new() else { return };
    let (main, next) = (repository.commit("main"), repository.commit("next"));
    assert_eq!(repository.after(&[("version", "next".into()), ("depth", 1.into())]), (true, next.clone()));
    assert_eq!(repository.content(), "2\n");
    assert_eq!(repository.after(&[("version", "next".into())]), (false, next.clone()));
    let tag = repository.play(&[("version", "v1".into())]);
    assert_eq!(tag.result.unwrap().result["after"], main.as_str().into());
    assert_eq!(repository.after(&[("version", "v1".into())]), (false, main.clone()));
    undo(&tag.changes);
    assert_eq!(repository.content(), "2\n");
    assert_eq!(repository.after(&[("version", main.as_str().into())]), (true, main.clone()));
    assert_eq!(repository.after(&[("version", main.as_str().into())]), (false, main.clone()));
    assert_eq!(repository.after(&[("version", main[..9].into())]), (false, main.clone()), "an abbreviated name");
    repository.sh("git checkout -q next && echo 3 >a && git commit -qam three && git checkout -q main");
    let third = repository.commit("next");
    assert_eq!(repository.after(&[("version", "next".into()), ("update", false.into())]), (false, main));
    assert_eq!(repository.after(&[("version", "next".into())]), (true, third));
    assert_eq!(repository.content(), "3\n");
}

#[test]
fn local_changes_are_kept_unless_forced() {
    let Some(repository) = Repository::new() else { return };
    repository.after(&[]);
    let copy = repository.root.path().join("deep/copy");
    std::fs::write(copy.join("untracked"), "").unwrap();
    assert!(!repository.after(&[]).0);
    std::fs::write(copy.join("a"), "mine\n").unwrap();
    let failure = repository.play(&[]).result.unwrap_err();
    assert!(failure.message.starts_with("Local modifications exist"), "{}", failure.message);
    assert_eq!(repository.content(), "mine\n");
    assert!(repository.after(&[("force", true.into())]).0);
    assert_eq!(repository.content(), "1\n");
    sh(&copy, "git remote set-url origin /elsewhere");
    let moved = repository.play(&[]).result.unwrap();
    assert_eq!((moved.changed, moved.result["remote_url_changed"].clone()), (true, true.into()));
    assert!(!repository.after(&[]).0);
}

#[test]
fn submodules_and_bare_clones_are_kept_too() {
    let Some(repository) = Repository::new() else { return };
    repository.sh(
        "git clone -q . ../sub && git -c protocol.file.allow=always submodule --quiet add \"file://$PWD/../sub\" sub && git commit -qm sub",
    );
    // git refuses submodules from paths unless it is told
    let allowed = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always; exec sh";
    let shell: &'static str = Box::leak(format!("sh -c '{allowed}'").into_boxed_str());
    let run = |more: &[(&'static str, Value)]| {
        play(&MODULE, &repository.given(more), &Play { shell, ..Play::default() }).result.unwrap()
    };
    assert!(run(&[]).changed);
    let file = repository.root.path().join("deep/copy/sub/a");
    assert!(file.exists() && !run(&[]).changed);
    sh(&repository.root.path().join("deep/copy"), "git submodule --quiet deinit -f sub");
    assert!(!file.exists());
    assert!(run(&[]).changed && file.exists());
    let bare = repository.root.path().join("bare").to_str().unwrap().to_owned();
    let given = [("dest", bare.as_str().into()), ("bare", true.into())];
    let given: Vec<(&str, Value)> =
        repository.given(&[]).into_iter().filter(|(name, _)| *name != "dest").chain(given).collect();
    assert!(run_module(&MODULE, &given).unwrap().changed && !run_module(&MODULE, &given).unwrap().changed);
    repository.sh("echo 9 >a && git commit -qam nine");
    let outcome = run_module(&MODULE, &given).unwrap();
    assert_eq!(outcome.result["after"], repository.commit("main").as_str().into());
}

#[test]
fn what_cannot_be_is_told() {
    let Some(repository) = Repository::new() else { return };
    let before = snapshot(repository.root.path());
    let failed = |more: &[(&'static str, Value)]| repository.play(more).result.unwrap_err().message;
    assert!(failed(&[("version", "no-such".into())]).contains("has no branch or tag `no-such`"));
    assert!(failed(&[("executable", "/no/git".into())]).contains("no program `/no/git`"));
    assert!(failed(&[("archive", "/x.tar".into())]).contains("`archive` is not supported"));
    assert!(failed(&[("umask", 22.into())]).contains("quoted octal"));
    assert!(failed(&[("version", "--upload-pack=x".into())]).contains("cannot be"));
    let nowhere = [("repo", "https://user:secret@127.0.0.1:1/x".into()), ("dest", "/tmp/never".into())];
    let failure = run_module(&MODULE, &nowhere).unwrap_err();
    assert!(failure.message.starts_with("cannot read https://user:***@127.0.0.1"), "{}", failure.message);
    assert_eq!(snapshot(repository.root.path()), before);
    let told = run_module(&MODULE, &[("repo", repository.given(&[])[0].1.clone()), ("clone", false.into())]).unwrap();
    assert_eq!(told.result["after"], repository.commit("main").as_str().into());
}
