//! Tests of file: every state, once and again, shown and taken back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;
use crate::modules::testing::{Play, check_module, play, run_module, shells, snapshot, undo};
use crate::value::Value;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn text(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

/// A directory with a file, a link to it, and a directory with a file in it.
fn sandbox() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    fs::write(root.join("file"), "content\n").unwrap();
    set_mode(&root.join("file"), 0o644);
    symlink("file", root.join("link")).unwrap();
    fs::create_dir(root.join("dir")).unwrap();
    set_mode(&root.join("dir"), 0o755);
    fs::write(root.join("dir/inner file"), "inner\n").unwrap();
    set_mode(&root.join("dir/inner file"), 0o600);
    (directory, root)
}

/// Runs a task in check mode, in fact, and again, in every shell; then takes it back. Returns the first outcome.
fn exercise(name: &str, args: &[(&str, Value)], holds: impl Fn(&Path) -> bool) -> Outcome {
    let mut outcomes = Vec::new();
    for shell in shells() {
        let (_keep, root) = sandbox();
        let args: Vec<(&str, Value)> =
            [("path", text(&root.join(name)))].into_iter().chain(args.iter().cloned()).collect();
        let before = snapshot(&root);
        let checked = check_module(&MODULE, &args).unwrap();
        assert!(checked.changed, "{args:?}: check mode says changed");
        assert_eq!(snapshot(&root), before, "{args:?}: check mode changes nothing");
        let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
        let outcome = played.result.unwrap();
        assert!(outcome.changed, "{args:?}");
        assert_eq!(outcome.differences, checked.differences, "{args:?}");
        assert!(holds(&root), "{args:?}: {:#?}", snapshot(&root));
        assert!(!run_module(&MODULE, &args).unwrap().changed, "{args:?}: the second run finds it right");
        undo(&played.changes);
        assert_eq!(snapshot(&root), before, "{args:?}: undone");
        outcomes.push(outcome);
    }
    outcomes.swap_remove(0)
}

#[test]
fn directories_are_made_with_those_above() {
    let args = [("state", "directory".into()), ("mode", "0750".into())];
    let outcome = exercise("a/b c", &args, |root| mode(&root.join("a")) == 0o750 && mode(&root.join("a/b c")) == 0o750);
    assert_eq!(outcome.result["mode"], "0750".into());
    assert_eq!(outcome.result["state"], "directory".into());
    let shown = &outcome.differences[0];
    assert!(shown.before.contains("\"state\": \"absent\"") && shown.after.contains("\"state\": \"directory\""));
}

#[test]
fn a_directory_inherits_the_group_of_a_setgid_directory() {
    let (_keep, root) = sandbox();
    set_mode(&root.join("dir"), 0o2775);
    let path = root.join("dir/new");
    let args = [("path", text(&path)), ("state", "directory".into())];
    assert!(run_module(&MODULE, &args).unwrap().changed);
    assert_eq!(mode(&path) & 0o2000, 0o2000);
    let args = [args.as_slice(), &[("mode", "0755".into())]].concat();
    assert!(run_module(&MODULE, &args).unwrap().changed, "octal mode clears setgid");
    assert_eq!(mode(&path), 0o755);
}

#[test]
fn attributes_of_what_is_there() {
    let outcome = exercise("file", &[("mode", "u=rw,go=".into())], |root| mode(&root.join("file")) == 0o600);
    assert_eq!(outcome.result["size"], 8.into());
    assert_eq!(outcome.differences[0].after.matches("\"mode\": \"0600\"").count(), 1);
    exercise("link", &[("state", "file".into()), ("mode", "0600".into())], |root| mode(&root.join("file")) == 0o600);
    exercise("dir", &[("mode", 0o700.into())], |root| mode(&root.join("dir")) == 0o700);
}

#[test]
fn owners_are_changed_by_name_and_number() {
    let (_keep, root) = sandbox();
    if fs::metadata(&root).unwrap().uid() != 0 {
        return;
    }
    let owned = |root: &Path, path: &str| fs::symlink_metadata(root.join(path)).unwrap().uid();
    let group = |root: &Path, path: &str| fs::symlink_metadata(root.join(path)).unwrap().gid();
    exercise("file", &[("owner", "daemon".into()), ("group", "daemon".into())], |root| owned(root, "file") == 1);
    exercise("file", &[("owner", "1".into()), ("mode", "4755".into())], |root| mode(&root.join("file")) == 0o4755);
    exercise("file", &[("group", 54321.into())], |root| group(root, "file") == 54321);
    exercise("link", &[("state", "link".into()), ("owner", "daemon".into()), ("follow", false.into())], |root| {
        owned(root, "link") == 1 && owned(root, "file") == 0
    });
    exercise("link", &[("state", "link".into()), ("src", "file".into()), ("owner", "daemon".into())], |root| {
        owned(root, "link") == 0 && owned(root, "file") == 1
    });
    exercise(".", &[("state", "directory".into()), ("recurse", true.into()), ("owner", "daemon".into())], |root| {
        owned(root, "dir/inner file") == 1 && owned(root, "link") == 1 && owned(root, "dir") == 1
    });
    let args = [("path", text(&root.join("file"))), ("owner", "nosuchuser".into())];
    assert_eq!(run_module(&MODULE, &args).unwrap_err().message, "chown failed: failed to look up user nosuchuser");
}

#[test]
fn recursion_sets_files_and_directories() {
    let args = [("state", "directory".into()), ("recurse", true.into()), ("mode", "u=rwX,g=rX,o=".into())];
    exercise("dir", &args, |root| mode(&root.join("dir")) == 0o750 && mode(&root.join("dir/inner file")) == 0o640);
    let (_keep, root) = sandbox();
    let args = [("path", text(&root.join("file"))), ("recurse", true.into())];
    assert!(run_module(&MODULE, &args).is_err(), "recurse is for directories");
}

#[test]
fn what_is_absent_can_come_back() {
    let outcome = exercise("file", &[("state", "absent".into())], |root| !root.join("file").exists());
    assert_eq!(outcome.result["state"], "absent".into());
    exercise("link", &[("state", "absent".into())], |root| {
        root.join("file").exists() && fs::symlink_metadata(root.join("link")).is_err()
    });
    let outcome = exercise("dir", &[("state", "absent".into())], |root| !root.join("dir").exists());
    assert!(outcome.differences[0].before.contains("dir/inner file"), "{:?}", outcome.differences);
}

#[test]
fn symbolic_links_are_made_and_turned() {
    let args = [("state", "link".into()), ("src", "dir".into())];
    let outcome = exercise("new", &args, |root| fs::read_link(root.join("new")).unwrap() == Path::new("dir"));
    assert_eq!((outcome.result["src"].to_text(), outcome.result["state"].to_text()), ("dir".into(), "link".into()));
    exercise("link", &args, |root| fs::read_link(root.join("link")).unwrap() == Path::new("dir"));
    let forced = [("state", "link".into()), ("src", "nowhere".into()), ("force", true.into())];
    exercise("new", &forced, |root| fs::read_link(root.join("new")).unwrap() == Path::new("nowhere"));
    let (_keep, root) = sandbox();
    type Refusal<'a> = (&'a str, &'a [(&'a str, Value)], &'a str);
    let refusals: [Refusal<'_>; 4] = [
        ("new", &[("src", "nowhere".into())], "src file does not exist"),
        ("file", &[("src", "dir".into())], "refusing to convert from file to symlink"),
        ("dir", &[("src", "file".into()), ("force", true.into())], "is not empty"),
        ("new", &[], "src is required"),
    ];
    for (name, args, message) in refusals {
        let args = [&[("path", text(&root.join(name))), ("state", "link".into())], args].concat();
        let failure = run_module(&MODULE, &args).unwrap_err();
        assert!(failure.message.contains(message), "{}", failure.message);
    }
}

#[test]
fn an_empty_directory_is_replaced_by_a_link_if_forced() {
    let (_keep, root) = sandbox();
    fs::create_dir(root.join("empty")).unwrap();
    let args = [("dest", text(&root.join("empty"))), ("src", text(&root.join("dir"))), ("state", "link".into())];
    assert!(run_module(&MODULE, &args).is_err());
    let args = [args.as_slice(), &[("force", true.into())]].concat();
    assert!(run_module(&MODULE, &args).unwrap().changed);
    assert_eq!(fs::read_link(root.join("empty")).unwrap(), root.join("dir"));
}

#[test]
fn hard_links_share_the_file() {
    let (_keep, root) = sandbox();
    let args = [("path", text(&root.join("hard"))), ("src", text(&root.join("file"))), ("state", "hard".into())];
    assert!(check_module(&MODULE, &args).unwrap().changed);
    let played = play(&MODULE, &args, &Play::default());
    assert!(played.result.unwrap().changed);
    let inode = |name: &str| fs::metadata(root.join(name)).unwrap().ino();
    assert_eq!(inode("hard"), inode("file"));
    assert!(!run_module(&MODULE, &args).unwrap().changed);
    undo(&played.changes);
    assert!(!root.join("hard").exists() && root.join("file").exists());
    let other = [("path", text(&root.join("dir/inner file"))), args[1].clone(), args[2].clone()];
    assert!(run_module(&MODULE, &other).is_err(), "another file is there");
    let forced = [other.as_slice(), &[("force", true.into())]].concat();
    assert!(run_module(&MODULE, &forced).unwrap().changed);
    assert_eq!(inode("dir/inner file"), inode("file"));
    let in_directory = [("path", text(&root.join("dir"))), args[1].clone(), args[2].clone()];
    assert!(run_module(&MODULE, &in_directory).unwrap().changed, "into the directory under the source's name");
    assert_eq!(inode("dir/file"), inode("file"));
}

#[test]
fn touch_makes_a_file_and_changes_only_the_times_asked_for() {
    let keep = [("modification_time", "preserve".into()), ("access_time", "preserve".into())];
    let args = [&[("state", "touch".into()), ("mode", "0600".into())], keep.as_slice()].concat();
    exercise("new", &args, |root| mode(&root.join("new")) == 0o600 && fs::read(root.join("new")).unwrap().is_empty());
    let (_keep, root) = sandbox();
    let file = ("path", text(&root.join("file")));
    let preserved = [&[file.clone(), ("state", "touch".into())], keep.as_slice()].concat();
    assert!(!run_module(&MODULE, &preserved).unwrap().changed);
    let stamped = [
        file.clone(),
        ("state", "touch".into()),
        ("modification_time", "2001-02-03 04:05:06".into()),
        ("modification_time_format", "%Y-%m-%d %H:%M:%S".into()),
        ("access_time", "preserve".into()),
    ];
    let before = fs::metadata(root.join("file")).unwrap().mtime();
    let played = play(&MODULE, &stamped, &Play::default());
    assert!(played.result.unwrap().changed);
    assert_ne!(fs::metadata(root.join("file")).unwrap().mtime(), before);
    assert!(!run_module(&MODULE, &stamped).unwrap().changed);
    undo(&played.changes);
    assert_eq!(fs::metadata(root.join("file")).unwrap().mtime(), before);
    assert!(
        run_module(&MODULE, &[file, ("state", "touch".into())]).unwrap().changed,
        "touch is now, so always changes"
    );
    let orphan = [("path", text(&root.join("no/such"))), ("state", "touch".into())];
    assert!(run_module(&MODULE, &orphan).unwrap_err().message.contains("does not exist"));
}

#[test]
fn states_that_contradict_are_refused() {
    let (_keep, root) = sandbox();
    let cases: [(&str, &[(&str, Value)]); 5] = [
        ("new", &[("state", "file".into())]),
        ("dir", &[("state", "file".into())]),
        ("file", &[("state", "directory".into())]),
        ("file", &[("src", "dir".into())]),
        ("file", &[("mode", "preserve".into())]),
    ];
    for (name, args) in cases {
        let args = [&[("path", text(&root.join(name)))], args].concat();
        assert!(run_module(&MODULE, &args).is_err(), "{args:?}");
    }
}

#[test]
fn a_right_file_costs_one_batch() {
    let (_keep, root) = sandbox();
    for (name, args) in [
        ("file", vec![("mode", "0644".into()), ("owner", Value::from(fs::metadata(&root).unwrap().uid()))]),
        ("dir", vec![("state", "directory".into()), ("mode", "0755".into())]),
        ("link", vec![("state", "link".into()), ("src", "file".into())]),
        ("none", vec![("state", "absent".into())]),
    ] {
        let args = [vec![("path", text(&root.join(name)))], args].concat();
        let played = play(&MODULE, &args, &Play::default());
        assert!(!played.result.unwrap().changed, "{name}");
        assert_eq!(played.batches, 1, "{name}");
    }
}

#[test]
fn a_peek_tells_whether_a_file_is_binary() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for (content, expected) in [(&b"text\n"[..], false), (b"a\0b", true), (b"", false)] {
        fs::write(&path, content).unwrap();
        let outcome = run_module(&MODULE, &[("path", path.to_str().unwrap().into()), ("_diff_peek", true.into())]);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.result["appears_binary"], expected.into(), "{content:?}");
        assert!(!outcome.changed);
    }
}

#[test]
fn the_difference_is_a_state() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "").unwrap();
    let args = [("path", path.to_str().unwrap().into()), ("state", "absent".into())];
    let diff = run_module(&MODULE, &args).unwrap().differences[0].to_value();
    let diff = diff.as_map().unwrap();
    assert_eq!(diff.len(), 2, "{diff:?}");
    assert_eq!(diff["before"].as_map().unwrap()["state"], "file".into());
    assert_eq!(diff["after"].as_map().unwrap()["state"], "absent".into());
}

#[test]
fn a_file_that_cannot_get_its_owner_is_not_left_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let args = [("path", text(&path)), ("state", "touch".into()), ("owner", "4294967295".into())];
    assert!(run_module(&MODULE, &args).is_err());
    assert!(!path.exists());
}

#[test]
fn check_mode_warns_of_owners_that_are_not_there_yet() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let args = [("path", text(&path)), ("state", "touch".into()), ("owner", "nobody-of-this-name".into())];
    let outcome = check_module(&MODULE, &args).unwrap();
    assert!(outcome.changed);
    assert!(outcome.warnings[0].starts_with("failed to look up user nobody-of-this-name"), "{:?}", outcome.warnings);
    assert!(run_module(&MODULE, &args).is_err());
    fs::write(&path, "").unwrap();
    let failure = check_module(&MODULE, &args).unwrap_err();
    assert_eq!(failure.warnings.len(), 1);
    let group = [("path", text(&path)), ("group", "4294967".into())];
    assert!(check_module(&MODULE, &group).unwrap().warnings[0].contains("group with gid 4294967"));
}

#[test]
fn times_that_will_be_others_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "").unwrap();
    let args = [("path", text(&path)), ("modification_time", "202202081414.00".into())];
    let shown = run_module(&MODULE, &args).unwrap().differences[0].state.clone().unwrap();
    assert_ne!(shown.0["mtime"], shown.1["mtime"]);
    let again = run_module(&MODULE, &args).unwrap();
    assert!(!again.changed);
    assert_eq!(again.differences[0].state.clone().unwrap().1.len(), 1, "the path alone");
}
