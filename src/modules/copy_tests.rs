//! Tests of copy: from the controller, from content, within the host; files, directories and links.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::modules::testing::{Play, Played, context_of, play_in, shells, snapshot, undo};
use crate::template::SearchPath;
use crate::value::{Map, object};

/// Sources in `files`, the host's files in `host`.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("files")).unwrap();
        fs::create_dir(root.path().join("host")).unwrap();
        World { root }
    }

    fn source(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        write(&self.root.path().join("files").join(name), content, mode)
    }

    fn on_host(&self, name: &str, content: &str, mode: u32) -> PathBuf {
        write(&self.host(name), content, mode)
    }

    fn host(&self, name: &str) -> PathBuf {
        self.root.path().join("host").join(name)
    }

    fn play(&self, args: &[(&str, Value)], play: &Play) -> Played {
        let search = SearchPath { playbook_dir: self.root.path().to_owned(), ..SearchPath::default() };
        play_in(&MODULE, args, play, context_of(Map::new(), Arc::new(search)))
    }

    fn run(&self, args: &[(&str, Value)]) -> Result<Outcome, Failure> {
        self.play(args, &Play::default()).result
    }

    /// Check mode changes nothing and tells the truth; the second run changes nothing; undo restores.
    fn exercise(&self, args: &[(&str, Value)], holds: impl Fn()) -> Outcome {
        let mut last = None;
        for shell in shells() {
            let before = snapshot(&self.host(""));
            let checked = self.play(args, &Play { check: true, shell }).result.unwrap();
            assert!(checked.changed, "{args:?}");
            assert_eq!(snapshot(&self.host("")), before, "check mode changes nothing: {args:?}");
            let played = self.play(args, &Play { shell, ..Play::default() });
            let outcome = played.result.unwrap();
            assert!(outcome.changed, "{args:?}");
            assert_eq!(outcome.differences, checked.differences, "{args:?}");
            holds();
            let again = self.play(args, &Play { shell, ..Play::default() });
            assert!(!again.result.unwrap().changed, "the second run finds it right: {args:?}");
            // a directory of the host is known as such only once it was asked for
            let named_directory = args[0].1.to_text().ends_with("/from");
            assert_eq!(again.batches, 1 + usize::from(named_directory), "and asks once: {args:?}");
            undo(&played.changes);
            assert_eq!(snapshot(&self.host("")), before, "undone: {args:?}");
            last = Some(outcome);
        }
        last.unwrap()
    }
}

fn write(path: &Path, content: &str, mode: u32) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn text(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_file_is_copied_made_and_replaced() {
    let world = World::new();
    world.source("motd", "welcome\n", 0o644);
    let dest = world.host("motd");
    let args = [("src", "motd".into()), ("dest", text(&dest)), ("mode", "0600".into())];
    let outcome = world.exercise(&args, || {
        assert_eq!(read(&dest), "welcome\n");
        assert_eq!(mode(&dest), 0o600);
    });
    assert_eq!(outcome.result["checksum"], super::super::file_common::content::sha1(b"welcome\n").into());
    assert_eq!(outcome.result["dest"], text(&dest));
    assert_eq!(outcome.differences[0].before, "");
    world.on_host("motd", "old\n", 0o640);
    let without_mode = &args[..2];
    world.exercise(without_mode, || {
        assert_eq!(read(&dest), "welcome\n");
        assert_eq!(mode(&dest), 0o640, "an existing file keeps its mode");
    });
    world.on_host("motd", "welcome\n", 0o644);
    let outcome = world.exercise(&args, || assert_eq!(mode(&dest), 0o600));
    assert_eq!(outcome.differences[0].after.matches("0600").count(), 1);
}

#[test]
fn content_is_text_or_becomes_json() {
    let world = World::new();
    let dest = world.host("out");
    let cases: Vec<(Value, &str)> = vec![
        ("a\n".into(), "a\n"),
        ("".into(), ""),
        (17.into(), "17"),
        (
            object([("a", 1.into()), ("é", Value::list(vec![true.into(), Value::Null]))]).into(),
            "{\"a\": 1, \"\\u00e9\": [true, null]}",
        ),
        (Value::list(vec![1.5.into(), "x\"y".into()]), "[1.5, \"x\\\"y\"]"),
    ];
    for (content, expected) in cases {
        let args = [("content", content), ("dest", text(&dest))];
        let outcome = world.exercise(&args, || assert_eq!(read(&dest), expected));
        assert_eq!(outcome.differences[0].after_header, dest.display().to_string());
    }
    let into_directory = [("content", "x".into()), ("dest", text(&world.host("")))];
    assert!(world.run(&into_directory).unwrap_err().message.contains("content with a dir"));
    let both = [("content", "x".into()), ("src", "y".into()), ("dest", text(&dest))];
    assert!(world.run(&both).unwrap_err().message.contains("mutually exclusive"));
}

#[test]
fn a_directory_takes_the_file_by_its_name() {
    let world = World::new();
    world.source("sub/app.conf", "x\n", 0o750);
    let existing = [("src", "sub/app.conf".into()), ("dest", text(&world.host("")))];
    world.exercise(&existing, || assert_eq!(read(&world.host("app.conf")), "x\n"));
    let slash = format!("{}/new/deep/", world.host("").display());
    let made = [
        ("src", "sub/app.conf".into()),
        ("dest", slash.into()),
        ("directory_mode", "0700".into()),
        ("mode", "preserve".into()),
    ];
    world.exercise(&made, || {
        assert_eq!(mode(&world.host("new")), 0o700);
        assert_eq!(mode(&world.host("new/deep")), 0o700);
        assert_eq!(mode(&world.host("new/deep/app.conf")), 0o750);
    });
    let missing = [("src", "sub/app.conf".into()), ("dest", text(&world.host("no/such/file")))];
    assert!(world.run(&missing).unwrap_err().message.contains("Destination directory"));
}

#[test]
fn links_at_the_destination_are_replaced_or_followed() {
    let world = World::new();
    world.source("f", "new\n", 0o644);
    let real = world.on_host("real", "old\n", 0o644);
    let link = world.host("link");
    symlink("real", &link).unwrap();
    let follow = [("src", "f".into()), ("dest", text(&link)), ("follow", true.into())];
    let world_holds = || {
        assert!(link.is_symlink());
        assert_eq!(read(&real), "new\n");
    };
    // the link is found in a second question, so only here two batches are right
    let played = world.play(&follow, &Play::default());
    assert!(played.result.unwrap().changed);
    world_holds();
    assert!(!world.run(&follow).unwrap().changed);
    undo(&played.changes);
    let replace = [("src", "f".into()), ("dest", text(&link))];
    world.exercise(&replace, || {
        assert!(!link.is_symlink());
        assert_eq!(read(&link), "new\n");
        assert_eq!(read(&real), "old\n");
    });
}

#[test]
fn without_force_only_what_is_missing_is_made() {
    let world = World::new();
    world.source("f", "new\n", 0o644);
    world.on_host("f", "old\n", 0o644);
    let args = [("src", "f".into()), ("dest", text(&world.host("f"))), ("force", false.into())];
    assert!(!world.run(&args).unwrap().changed);
    assert_eq!(read(&world.host("f")), "old\n");
    let other = [("src", "f".into()), ("dest", text(&world.host("g"))), ("force", false.into())];
    assert!(world.run(&other).unwrap().changed);
}

#[test]
fn backup_validation_and_checksum() {
    let world = World::new();
    world.source("f.conf", "new\n", 0o644);
    world.on_host("f.conf", "old\n", 0o644);
    let file = [("src", "f.conf".into()), ("dest", text(&world.host("f.conf")))];
    let with = |more: &[(&'static str, Value)]| [file.as_slice(), more].concat();
    let failure = world.run(&with(&[("validate", "grep -q old %s".into())])).unwrap_err();
    assert!(failure.message.starts_with("failed to validate"), "{}", failure.message);
    let failure = world.run(&with(&[("checksum", "0000".into())])).unwrap_err();
    assert!(failure.message.contains("expected checksum"));
    assert_eq!(snapshot(&world.host("")).len(), 1);
    let sha1 = super::super::file_common::content::sha1(b"new\n");
    // the temporary file keeps the ending of its name
    let more = [
        ("backup", true.into()),
        ("validate", "sh -c 'case $1 in *.conf) grep -q new $1;; *) exit 1;; esac' x %s".into()),
        ("checksum", sha1.into()),
    ];
    let outcome = world.run(&with(&more)).unwrap();
    let backup = outcome.result["backup_file"].to_text().into_owned();
    assert_eq!(fs::read_to_string(backup).unwrap(), "old\n");
    assert_eq!(read(&world.host("f.conf")), "new\n");
    assert_eq!(snapshot(&world.host("")).len(), 2);
}

#[test]
fn a_directory_is_copied_with_or_without_its_name() {
    let world = World::new();
    world.source("tree/a", "a\n", 0o644);
    world.source("tree/sub/b c", "b\n", 0o755);
    fs::create_dir(world.root.path().join("files/tree/empty")).unwrap();
    symlink("a", world.root.path().join("files/tree/link")).unwrap();
    let host = text(&world.host(""));
    let named = [("src", "tree".into()), ("dest", host.clone()), ("mode", "preserve".into())];
    let outcome = world.exercise(&named, || {
        assert_eq!(read(&world.host("tree/a")), "a\n");
        assert_eq!(read(&world.host("tree/sub/b c")), "b\n");
        assert_eq!(mode(&world.host("tree/sub/b c")), 0o755);
        assert!(world.host("tree/empty").is_dir());
        assert!(world.host("tree/link").is_file() && !world.host("tree/link").is_symlink());
    });
    assert_eq!(
        outcome.result["dest"].to_text().trim_end_matches('/'),
        world.host("").display().to_string().trim_end_matches('/')
    );
    let links = [("src", "tree/".into()), ("dest", text(&world.host("there"))), ("local_follow", false.into())];
    world.exercise(&links, || {
        assert_eq!(read(&world.host("there/a")), "a\n");
        assert_eq!(fs::read_link(world.host("there/link")).unwrap(), Path::new("a"));
    });
    world.on_host("tree/a", "other\n", 0o600);
    world.exercise(&[("src", "tree".into()), ("dest", host)], || {
        assert_eq!(read(&world.host("tree/a")), "a\n");
        assert_eq!(mode(&world.host("tree/a")), 0o600);
    });
}

#[test]
fn a_circle_of_links_ends() {
    let world = World::new();
    world.source("tree/a", "a\n", 0o644);
    symlink("..", world.root.path().join("files/tree/up")).unwrap();
    symlink(".", world.root.path().join("files/tree/self")).unwrap();
    let tree = [("src", "tree/".into()), ("dest", text(&world.host("t")))];
    world.run(&tree).unwrap();
    assert!(world.host("t/self").is_symlink());
}

#[test]
fn a_file_of_the_host_is_copied_within_it() {
    let world = World::new();
    let source = world.on_host("source", "remote\n", 0o750);
    let dest = world.host("dest");
    let args = [("src", text(&source)), ("dest", text(&dest)), ("remote_src", true.into())];
    world.exercise(&args, || assert_eq!(read(&dest), "remote\n"));
    let preserved = [args.as_slice(), &[("mode", "preserve".into())]].concat();
    world.exercise(&preserved, || assert_eq!(mode(&dest), 0o750));
    world.on_host("dest", "old\n", 0o600);
    world.exercise(&args, || {
        assert_eq!(read(&dest), "remote\n");
        assert_eq!(mode(&dest), 0o750, "it brings its own mode");
    });
    let missing = [("src", "/no/such".into()), ("dest", text(&dest)), ("remote_src", true.into())];
    assert_eq!(world.run(&missing).unwrap_err().message, "Source /no/such not found");
}

#[test]
fn links_within_the_host_are_followed_if_asked() {
    let world = World::new();
    world.on_host("from/sub/a", "a\n", 0o640);
    symlink("sub/a", world.host("from/file")).unwrap();
    symlink("sub", world.host("from/directory")).unwrap();
    let follow = |dest: &str| {
        [
            ("src", format!("{}/", world.host("from").display()).into()),
            ("dest", text(&world.host(dest))),
            ("remote_src", true.into()),
            ("local_follow", true.into()),
        ]
    };
    let is_followed = || {
        for path in ["to/file", "to/directory/a", "to/sub/a"] {
            assert!(!world.host(path).is_symlink(), "{path}");
            assert_eq!(read(&world.host(path)), "a\n", "{path}");
        }
    };
    world.exercise(&follow("to"), is_followed);
    world.on_host("to/more", "more\n", 0o600);
    world.exercise(&follow("to"), is_followed);
}

#[test]
fn what_is_missing_is_said_as_ansible_says_it() {
    let world = World::new();
    assert_eq!(world.run(&[("src", "a".into())]).unwrap_err().message, "dest is required");
    let nothing = [("dest", text(&world.host("a")))];
    assert_eq!(world.run(&nothing).unwrap_err().message, "src (or content) is required");
}

#[test]
fn a_directory_of_the_host_is_copied_within_it() {
    let world = World::new();
    world.on_host("from/a", "a\n", 0o640);
    world.on_host("from/sub/b c", "b\n", 0o755);
    symlink("a", world.host("from/link")).unwrap();
    let remote = ("remote_src", Value::from(true));
    let whole = [
        ("src", format!("{}/", world.host("from").display()).into()),
        ("dest", text(&world.host("to"))),
        remote.clone(),
    ];
    let holds = || {
        assert_eq!(read(&world.host("to/a")), "a\n");
        assert_eq!((mode(&world.host("to/a")), mode(&world.host("to/sub/b c"))), (0o640, 0o755));
        assert_eq!(fs::read_link(world.host("to/link")).unwrap(), Path::new("a"));
    };
    world.exercise(&whole, holds);
    world.on_host("to/a", "other\n", 0o600);
    world.on_host("to/more", "more\n", 0o600);
    world.exercise(&whole, || {
        holds();
        assert_eq!(read(&world.host("to/more")), "more\n");
    });
    let named = [("src", text(&world.host("from"))), ("dest", text(&world.host("to"))), remote.clone()];
    world.exercise(&named, || assert_eq!(read(&world.host("to/from/a")), "a\n"));
    let into = [
        ("src", text(&world.host("from"))),
        ("dest", text(&world.host("a/b"))),
        remote.clone(),
        ("mode", "0700".into()),
    ];
    world.run(&into).unwrap();
    assert_eq!(
        (mode(&world.host("a/b")), mode(&world.host("a/b/from"))),
        (0o700, 0o755),
        "the mode is the named directory's"
    );
    let inside = [("src", text(&world.host("from"))), ("dest", text(&world.host("from"))), remote];
    assert!(world.run(&inside).unwrap_err().message.contains("into itself"));
}

#[test]
fn owners_are_given() {
    let world = World::new();
    world.source("f", "x\n", 0o644);
    if fs::metadata(world.root.path()).unwrap().uid() != 0 {
        return;
    }
    let dest = world.host("f");
    let args = [("src", "f".into()), ("dest", text(&dest)), ("owner", "daemon".into()), ("group", "daemon".into())];
    world.exercise(&args, || assert_eq!(fs::metadata(&dest).unwrap().uid(), 1));
    world.on_host("f", "old\n", 0o600);
    std::os::unix::fs::chown(&dest, Some(1), Some(1)).unwrap();
    world.exercise(&[("src", "f".into()), ("dest", text(&dest))], || {
        assert_eq!(fs::metadata(&dest).unwrap().uid(), 1, "an existing file keeps its owner");
    });
}

#[test]
fn binary_content_arrives_and_is_not_shown() {
    let world = World::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    fs::write(world.root.path().join("files/blob"), &bytes).unwrap();
    let dest = world.host("blob");
    let args = [("src", "blob".into()), ("dest", text(&dest))];
    let outcome = world.exercise(&args, || assert_eq!(fs::read(&dest).unwrap(), bytes));
    assert_eq!(outcome.differences[0].withheld, [crate::host::Withheld::SourceLarger(104_448)]);
}

#[test]
fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
    let world = World::new();
    world.source("large", &"x".repeat(100_000), 0o644);
    world.on_host("f", "old\n", 0o644);
    let args = [("src", "large".into()), ("dest", text(&world.host("f"))), ("backup", false.into())];
    let before = snapshot(&world.host(""));
    // no file may become larger than 16 blocks of 512 bytes, as if the disk were full
    let played = world.play(&args, &Play { shell: "sh -c 'ulimit -f 16; exec sh'", ..Play::default() });
    let failure = played.result.unwrap_err();
    assert!(!failure.message.is_empty());
    assert_eq!(snapshot(&world.host("")), before);
    assert!(world.run(&args).unwrap().changed);
}

#[test]
fn a_new_file_has_the_group_of_a_setgid_directory() {
    let world = World::new();
    world.source("f", "x\n", 0o644);
    if fs::metadata(world.root.path()).unwrap().uid() != 0 {
        return;
    }
    fs::create_dir(world.host("shared")).unwrap();
    std::os::unix::fs::chown(world.host("shared"), Some(0), Some(1)).unwrap();
    fs::set_permissions(world.host("shared"), fs::Permissions::from_mode(0o2775)).unwrap();
    let dest = world.host("shared/f");
    world.exercise(&[("src", "f".into()), ("dest", text(&dest))], || {
        assert_eq!(fs::metadata(&dest).unwrap().gid(), 1);
    });
}

#[test]
fn a_source_that_is_not_there_is_named_with_where_it_was_sought() {
    let world = World::new();
    let failure = world.run(&[("src", "nothing".into()), ("dest", "/x".into())]).unwrap_err();
    assert!(failure.message.contains("files/nothing"), "{}", failure.message);
}
