//! Tests of lineinfile: where lines go, and what the file is afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::modules::testing::{Play, check_module, play, run_module, shells, undo};
use crate::value::Value;

fn request(args: &[(&str, &str)]) -> Request {
    let path = [("path", "/nowhere")];
    let given = path.iter().chain(args).map(|(key, value)| (Value::from(*key), Value::from(*value))).collect();
    Request::parse(&crate::modules::args::validate(&MODULE, &given).unwrap()).unwrap()
}

#[test]
fn the_line_goes_where_ansible_puts_it() {
    // arguments, before, after; the same text before and after means no change
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[("line", "b")], "a\n", "a\nb\n"),
        (&[("line", "b")], "a", "a\nb\n"),
        (&[("line", "b")], "", "b\n"),
        (&[("line", "b")], "a\nb\n", "a\nb\n"),
        (&[("line", "b")], "a\nb", "a\nb\n"),
        (&[("line", "b")], "b\r\nc\n", "b\nc\n"),
        (&[("line", "a=2"), ("regexp", "^a=")], "a=1\na=0\nc\n", "a=1\na=2\nc\n"),
        (&[("line", "a=2"), ("regexp", "^a="), ("firstmatch", "yes")], "a=1\na=0\nc\n", "a=2\na=0\nc\n"),
        (&[("line", "a=2"), ("regex", "^a=")], "c\n", "c\na=2\n"),
        (&[("line", "a=2"), ("regexp", "^b="), ("insertafter", "^c")], "a=2\nc\n", "a=2\nc\n"),
        (&[("line", "x"), ("insertafter", "^c")], "c\nd\nc\ne\n", "c\nd\nc\nx\ne\n"),
        (&[("line", "x"), ("insertafter", "^c"), ("firstmatch", "yes")], "c\nd\nc\ne\n", "c\nx\nd\nc\ne\n"),
        (&[("line", "x"), ("insertafter", "^c")], "a\nc\n", "a\nc\nx\n"),
        (&[("line", "x"), ("insertafter", "^z")], "a\n", "a\nx\n"),
        (&[("line", "x"), ("insertafter", "EOF")], "a\n", "a\nx\n"),
        (&[("line", "x"), ("insertafter", "BOF")], "a\n", "x\na\n"),
        (&[("line", "x"), ("insertbefore", "BOF")], "a\n", "x\na\n"),
        (&[("line", "x"), ("insertbefore", "^c")], "a\nc\n", "a\nx\nc\n"),
        (&[("line", "x"), ("insertbefore", "^c")], "c\n", "x\nc\n"),
        (&[("line", "x"), ("insertbefore", "^z")], "a\n", "a\nx\n"),
        (&[("line", "x"), ("regexp", "^y"), ("insertafter", "^c")], "c\nx\n", "c\nx\n"),
        (&[("line", r"\1=2"), ("regexp", "^(a)="), ("backrefs", "yes")], "a=1\n", "a=2\n"),
        (&[("line", r"\1=2"), ("regexp", "^(z)="), ("backrefs", "yes")], "a=1\n", "a=1\n"),
        (&[("line", r"\g<k>=2"), ("regexp", "^(?P<k>a)="), ("backrefs", "yes")], "a=1\n", "a=2\n"),
        (&[("line", r"\1"), ("regexp", "^a")], "a\n", "\\1\n"),
        (&[("line", "n"), ("search_string", "a.b")], "axb\na.b c\n", "axb\nn\n"),
        (&[("line", "n"), ("search_string", "zz")], "a\n", "a\nn\n"),
        (&[("line", "x\ny")], "a\n", "a\nx\ny\n"),
        (&[("line", ""), ("regexp", "^a")], "a\nb\n", "\nb\n"),
    ];
    for (args, before, after) in cases {
        let edited = put(split_lines(before), &request(args), Coding::Utf8).unwrap();
        assert_eq!(edited.lines.concat(), *after, "{args:?} on {before:?}");
        assert_eq!(edited.changed, before != after, "{args:?} on {before:?}");
    }
}

#[test]
fn lines_are_removed() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str, usize);
    let cases: &[Case<'_>] = &[
        (&[("line", "a")], "a\nb\na\r\n", "b\n", 2),
        (&[("regexp", "^#")], "#x\nb\n#y", "b\n", 2),
        (&[("search_string", ".")], "a.b\nab\n", "ab\n", 1),
        (&[("line", "b"), ("regexp", "^a")], "a\nb\n", "b\n", 1),
        (&[("line", "z")], "a\n", "a\n", 0),
    ];
    for (args, before, after, found) in cases {
        let args = [args, [("state", "absent")].as_slice()].concat();
        let edited = remove(split_lines(before), &request(&args), Coding::Utf8).unwrap();
        assert_eq!((edited.lines.concat().as_str(), edited.found), (*after, *found), "{args:?} on {before:?}");
    }
}

#[test]
fn arguments_that_contradict_are_refused() {
    let path = ("path", Value::from("/nowhere"));
    for args in [
        vec![("state", "present".into())],
        vec![("state", "absent".into())],
        vec![("line", "a".into()), ("backrefs", true.into())],
        vec![("line", "a".into()), ("regexp", "a".into()), ("search_string", "a".into())],
        vec![("line", "a".into()), ("insertafter", "a".into()), ("insertbefore", "a".into())],
        vec![("line", "a".into()), ("attributes", "+i".into())],
        vec![("line", "a".into()), ("validate", "true".into())],
    ] {
        let args = [vec![path.clone()], args].concat();
        assert!(run_module(&MODULE, &args).is_err(), "{args:?}");
    }
}

#[test]
fn a_file_is_changed_once_shown_and_taken_back_in_every_shell() {
    for shell in shells() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sshd config");
        fs::write(&path, "Port 22\n#PermitRootLogin yes\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let args = [
            ("path", path.to_str().unwrap().into()),
            ("regexp", "^#?PermitRootLogin".into()),
            ("line", "PermitRootLogin no".into()),
            ("backup", true.into()),
            ("validate", "grep -q PermitRootLogin %s".into()),
        ];
        let checked = check_module(&MODULE, &args).unwrap();
        assert!(checked.changed);
        assert_eq!(fs::read_to_string(&path).unwrap(), "Port 22\n#PermitRootLogin yes\n", "check mode writes nothing");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

        let played = play(&MODULE, &args, &Play { shell, ..Play::default() });
        let outcome = played.result.unwrap();
        assert!(outcome.changed);
        assert_eq!(played.batches, 1, "one batch decides it");
        assert_eq!(outcome.differences, checked.differences, "check mode shows what is done");
        assert_eq!(outcome.differences[0].before_header, format!("{} (content)", path.display()));
        assert_eq!(outcome.differences[0].after, "Port 22\nPermitRootLogin no\n");
        assert_eq!(outcome.result["msg"], "line replaced".into());
        assert_eq!(fs::read_to_string(&path).unwrap(), "Port 22\nPermitRootLogin no\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640, "the mode is kept");
        let backup = outcome.result["backup"].to_text().into_owned();
        assert_eq!(fs::read_to_string(&backup).unwrap(), "Port 22\n#PermitRootLogin yes\n");

        assert!(!run_module(&MODULE, &args).unwrap().changed, "the second run finds it right");
        undo(&played.changes);
        assert_eq!(fs::read_to_string(&path).unwrap(), "Port 22\n#PermitRootLogin yes\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "only the file and its backup are left: {left:?}");
    }
}

#[test]
fn a_new_file_gets_its_directories_and_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/limits.conf");
    let args = [
        ("dest", path.to_str().unwrap().into()),
        ("line", "* soft nofile 65536".into()),
        ("mode", "0600".into()),
        ("create", true.into()),
    ];
    let without: Vec<_> = args[..3].to_vec();
    assert_eq!(run_module(&MODULE, &without).unwrap_err().result["rc"], 257.into());
    assert!(check_module(&MODULE, &args).unwrap().changed);
    assert!(!path.exists());
    let played = play(&MODULE, &args, &Play::default());
    let outcome = played.result.unwrap();
    assert_eq!(outcome.result["msg"], "line added and ownership, perms or SE linux context changed".into());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(!run_module(&MODULE, &args).unwrap().changed);
    undo(&played.changes);
    assert!(!directory.path().join("a").exists());
}

#[test]
fn what_validation_refuses_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sudoers");
    fs::write(&path, "root ALL\n").unwrap();
    let args = [
        ("path", path.to_str().unwrap().into()),
        ("line", "nonsense".into()),
        ("validate", "sh -c 'echo refused; exit 3' %s".into()),
    ];
    let failure = run_module(&MODULE, &args).unwrap_err();
    assert_eq!(failure.message, "failed to validate: rc:3 error:refused");
    assert_eq!(fs::read_to_string(&path).unwrap(), "root ALL\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn the_file_behind_a_link_is_changed() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "a\n").unwrap();
    std::os::unix::fs::symlink("file", &link).unwrap();
    let played = play(&MODULE, &[("path", link.to_str().unwrap().into()), ("line", "b".into())], &Play::default());
    assert!(played.result.unwrap().changed);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\nb\n");
    undo(&played.changes);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n");
}

#[test]
fn only_the_mode_differs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "a\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let args = [("path", path.to_str().unwrap().into()), ("line", "a".into()), ("mode", "u=rw,go=".into())];
    let outcome = run_module(&MODULE, &args).unwrap();
    assert_eq!(outcome.result["msg"], "ownership, perms or SE linux context changed".into());
    assert_eq!(outcome.differences[0].after, "{\n    \"mode\": \"0600\"\n}\n");
    assert!(!run_module(&MODULE, &args).unwrap().changed);
}

#[test]
fn bytes_that_are_no_utf8_stay() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latin1");
    fs::write(&path, b"caf\xe9\nx\n").unwrap();
    let args = [("path", path.to_str().unwrap().into()), ("regexp", "^x".into()), ("line", "é".into())];
    assert!(run_module(&MODULE, &args).unwrap().changed);
    assert_eq!(fs::read(&path).unwrap(), b"caf\xe9\n\xc3\xa9\n");
}

#[test]
fn a_directory_is_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let args = [("path", directory.path().to_str().unwrap().into()), ("line", "a".into())];
    assert_eq!(run_module(&MODULE, &args).unwrap_err().result["rc"], 256.into());
}
