//! Tests of find on a small tree.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::modules::testing::{Play, play, run_module, shells};

/// `a.log` (12 bytes), `b.txt`, `.hidden.log`, `sub/c.log`, `sub/deep/d.log`, a link to `sub`.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("sub/deep")).unwrap();
    for (name, content) in [
        ("a.log", "error: no x\n"),
        ("b.txt", "b\n"),
        (".hidden.log", "h\n"),
        ("sub/c.log", "ok\nerror\n"),
        ("sub/deep/d.log", ""),
    ] {
        fs::write(root.path().join(name), content).unwrap();
        fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::set_permissions(root.path().join("b.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("sub", root.path().join("link")).unwrap();
    root
}

/// The paths found, below the tree.
fn names(root: &tempfile::TempDir, outcome: &Outcome) -> String {
    let base = format!("{}/", root.path().display());
    let path = |file: &Value| file.get("path").unwrap().to_text().strip_prefix(&base).unwrap().to_owned();
    outcome.result["files"].as_list().unwrap().iter().map(path).collect::<Vec<_>>().join(" ")
}

#[test]
fn files_are_found_by_what_they_are() {
    let root = tree();
    let cases: &[(&[(&str, Value)], &str)] = &[
        (&[], "a.log b.txt"),
        (&[("hidden", true.into())], ".hidden.log a.log b.txt"),
        (&[("patterns", "*.log".into())], "a.log"),
        (&[("patterns", "*.log".into()), ("recurse", true.into())], "a.log sub/c.log sub/deep/d.log"),
        (&[("patterns", "*.log".into()), ("recurse", true.into()), ("depth", 2.into())], "a.log sub/c.log"),
        (&[("patterns", "*.log,*.txt".into()), ("excludes", "a*".into())], "b.txt"),
        (&[("patterns", "^[ab]\\.".into()), ("use_regex", true.into())], "a.log b.txt"),
        (&[("file_type", "directory".into())], "sub"),
        (&[("file_type", "directory".into()), ("recurse", true.into())], "sub sub/deep"),
        (&[("file_type", "link".into())], "link"),
        (&[("file_type", "any".into())], "a.log b.txt link sub"),
        (&[("follow", true.into()), ("recurse", true.into()), ("patterns", "c.log".into())], "link/c.log sub/c.log"),
        (&[("contains", "error".into()), ("recurse", true.into())], "a.log sub/c.log"),
        (&[("contains", "no x".into())], ""),
        (&[("contains", "no x".into()), ("read_whole_file", true.into())], "a.log"),
        (&[("size", "10".into())], "a.log"),
        (&[("size", "-10b".into())], "b.txt"),
        (&[("age", "1h".into())], ""),
        (&[("age", "-1h".into())], "a.log b.txt"),
        (&[("mode", "0600".into())], "b.txt"),
        (&[("mode", "o=r".into()), ("exact_mode", false.into())], "a.log"),
        (&[("limit", 1.into()), ("recurse", true.into())], "a.log"),
    ];
    for shell in shells() {
        for (args, expected) in cases {
            let all = [&[("paths", Value::from(root.path().to_str().unwrap()))], *args].concat();
            let played = play(&MODULE, &all, &Play { shell, ..Play::default() });
            let outcome = played.result.unwrap();
            assert_eq!(names(&root, &outcome), *expected, "{args:?} in {shell}");
            assert!(!outcome.changed);
            let asked = args.iter().any(|(name, _)| *name == "contains");
            assert_eq!(played.batches, 1 + usize::from(asked), "{args:?}");
        }
    }
}

#[test]
fn each_file_is_described() {
    let root = tree();
    let args = [
        ("path", Value::from(root.path().to_str().unwrap())),
        ("pattern", "a.log".into()),
        ("get_checksum", true.into()),
        ("checksum_algorithm", "sha256".into()),
    ];
    let outcome = run_module(&MODULE, &args).unwrap();
    let file = &outcome.result["files"].as_list().unwrap()[0];
    assert_eq!(file.get("checksum"), Some(&super::super::file_common::content::sha256(b"error: no x\n").into()));
    assert_eq!(file.get("mode"), Some(&"0644".into()));
    assert_eq!(file.get("size"), Some(&12.into()));
    assert_eq!(file.get("isreg"), Some(&true.into()));
    assert_eq!(outcome.result["matched"], 1.into());
    assert_eq!(outcome.result["examined"], 5.into());
    assert_eq!(outcome.result["msg"], "All paths examined".into());
}

#[test]
fn a_path_that_is_no_directory_is_skipped_with_a_warning() {
    let root = tree();
    let path = root.path().to_str().unwrap();
    let args = [("paths", Value::list(vec!["/no/such".into(), path.into()])), ("patterns", "b.txt".into())];
    let outcome = run_module(&MODULE, &args).unwrap();
    assert_eq!(names(&root, &outcome), "b.txt");
    assert_eq!(outcome.warnings.len(), 1);
    assert_eq!(outcome.result["skipped_paths"].get("/no/such"), Some(&"'/no/such' is not a directory".into()));
    for wrong in [("age", Value::from("soon")), ("size", "big".into()), ("limit", 0.into()), ("mode", 420.into())] {
        assert!(run_module(&MODULE, &[("paths", path.into()), wrong.clone()]).is_err(), "{wrong:?}");
    }
}

#[test]
fn content_is_read_in_the_encoding_of_the_files() {
    let root = tempfile::tempdir().unwrap();
    // 中文 in GBK
    std::fs::write(root.path().join("a.gbk"), b"\xd6\xd0\xce\xc4\n").unwrap();
    let path = root.path().to_str().unwrap();
    let found = |encoding: &str| {
        let args = [("paths", path.into()), ("contains", "中".into()), ("encoding", encoding.into())];
        let outcome = run_module(&MODULE, &args).unwrap();
        let skipped = outcome.result["skipped_paths"].get(path).map(|why| why.to_text().into_owned());
        (outcome.result["matched"].as_int().unwrap(), skipped)
    };
    assert_eq!(found("gbk"), (1, None));
    assert_eq!(found("CP936"), (1, None));
    assert_eq!(found("latin-1"), (0, None));
    assert_eq!(found("nonsense"), (0, Some("unknown encoding: nonsense".to_owned())));
    let why = format!("Failed to read the file {path}/a.gbk due to an encoding error. current encoding: utf-8");
    assert_eq!(found("utf-8"), (0, Some(why)));
}
