//! Tests of template: rendering, what the file becomes, and that nothing happens twice.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::host::FailureKind;
use crate::modules::testing::{Play, Played, context_of, play_in, shells, undo};
use crate::template::SearchPath;
use crate::value::Interruption;

type Run = Box<dyn Fn(&[(&str, Value)], &Play) -> Played>;

/// Templates in `templates`, the host's files in `host`.
fn world() -> (tempfile::TempDir, Run) {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("templates")).unwrap();
    fs::create_dir(directory.path().join("host")).unwrap();
    let search = SearchPath { playbook_dir: directory.path().to_owned(), ..SearchPath::default() };
    let variables = object([
        ("buffer", "12G".into()),
        ("nodes", Value::list(vec!["kp001".into(), "kp002".into()])),
        ("chain", Value::written("{{ buffer }}!")),
    ]);
    let context = context_of(variables, Arc::new(search));
    (directory, Box::new(move |args, play| play_in(&MODULE, args, play, context.clone())))
}

fn text(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

#[test]
fn a_template_becomes_a_file_once_in_every_shell() {
    for shell in shells() {
        let (root, run) = world();
        let source = root.path().join("templates/my.cnf.j2");
        fs::write(&source, "# {{ ansible_managed }}\n{% for n in nodes %}\n{{ n }} {{ chain }}\n{% endfor %}\n")
            .unwrap();
        let dest = root.path().join("host/my.cnf");
        fs::write(&dest, "old\n").unwrap();
        let args = [("src", "my.cnf.j2".into()), ("dest", text(&dest)), ("mode", "0640".into())];
        let checked = run(&args, &Play { check: true, shell }).result.unwrap();
        assert!(checked.changed);
        assert_eq!(fs::read_to_string(&dest).unwrap(), "old\n");
        let played = run(&args, &Play { shell, ..Play::default() });
        let outcome = played.result.unwrap();
        let expected = "# Ansible managed\nkp001 12G!\nkp002 12G!\n";
        assert_eq!(fs::read_to_string(&dest).unwrap(), expected);
        assert_eq!(fs::metadata(&dest).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(outcome.differences, checked.differences);
        let shown = &outcome.differences[0];
        assert_eq!((shown.before.as_str(), shown.after.as_str()), ("old\n", expected));
        assert_eq!(
            (shown.before_header.as_str(), &shown.after_header),
            (dest.to_str().unwrap(), &source.display().to_string())
        );
        assert_eq!(outcome.result["checksum"], super::super::file_common::content::sha1(expected.as_bytes()).into());
        assert_eq!(outcome.result["mode"], "0640".into());
        let again = run(&args, &Play { shell, ..Play::default() });
        assert!(!again.result.unwrap().changed);
        assert_eq!(again.batches, 1);
        undo(&played.changes);
        assert_eq!(fs::read_to_string(&dest).unwrap(), "old\n");
    }
}

#[test]
fn marks_newlines_and_blocks_are_as_asked() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: &[Case<'_>] = &[
        (
            "[[ buffer ]] {{ raw }}\n",
            &[("variable_start_string", "[["), ("variable_end_string", "]]")],
            "12G {{ raw }}\n",
        ),
        ("<% if buffer %>x<% endif %>", &[("block_start_string", "<%"), ("block_end_string", "%>")], "x"),
        ("{% if buffer %}\nx\n{% endif %}\n", &[("trim_blocks", "no")], "\nx\n\n"),
        ("  {% if buffer %}\nx\n  {% endif %}\n", &[("lstrip_blocks", "yes")], "x\n"),
        ("a\nb\n", &[("newline_sequence", "\\r\\n")], "a\r\nb\r\n"),
        ("a\r\nb\r\n", &[], "a\nb\n"),
        ("no newline", &[], "no newline"),
        ("#jinja2: trim_blocks: False\n{% if buffer %}\nx\n{% endif %}\n", &[], "\nx\n\n"),
        ("{{ template_path }} {{ template_destpath | basename }}", &[], "t.j2 out"),
        (
            "{{ template_fullpath | basename }} {{ template_host | length > 0 }} {{ template_uid | length > 0 }}",
            &[],
            "t.j2 True True",
        ),
    ];
    for (template, args, expected) in cases {
        let (root, run) = world();
        fs::write(root.path().join("templates/t.j2"), template).unwrap();
        let dest = root.path().join("host/out");
        let mut all = vec![("src", "t.j2".into()), ("dest", text(&dest))];
        all.extend(args.iter().map(|(key, value)| (*key, Value::from(*value))));
        run(&all, &Play::default()).result.unwrap();
        assert_eq!(fs::read_to_string(&dest).unwrap(), *expected, "{template:?} {args:?}");
    }
}

#[test]
fn the_template_gives_name_and_mode() {
    let (root, run) = world();
    let source = root.path().join("templates/motd.j2");
    fs::write(&source, "hello\n").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o750)).unwrap();
    let args = [("src", "motd.j2".into()), ("dest", text(&root.path().join("host"))), ("mode", "preserve".into())];
    let outcome = run(&args, &Play::default()).result.unwrap();
    let path = root.path().join("host/motd.j2");
    assert_eq!(outcome.result["dest"], text(&path));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);
    assert!(!run(&args, &Play::default()).result.unwrap().changed);
}

#[test]
fn what_cannot_be_rendered_is_a_failure() {
    let (root, run) = world();
    fs::write(root.path().join("templates/bad.j2"), "{{ nothing_here }}\n").unwrap();
    fs::write(root.path().join("templates/latin.j2"), b"\xe9\n").unwrap();
    let dest = ("dest", text(&root.path().join("host/out")));
    let failure = run(&[("src", "bad.j2".into()), dest.clone()], &Play::default()).result.unwrap_err();
    assert!(failure.message.contains("nothing_here"), "{}", failure.message);
    let failure = run(&[("src", "none.j2".into()), dest.clone()], &Play::default()).result.unwrap_err();
    assert!(failure.message.contains("templates/none.j2"), "{}", failure.message);
    let failure = run(&[("src", "latin.j2".into()), dest.clone()], &Play::default()).result.unwrap_err();
    assert!(failure.message.contains("UTF-8"), "{}", failure.message);
    let args = [("src", "bad.j2".into()), dest, ("output_encoding", "latin-1".into())];
    assert!(run(&args, &Play::default()).result.unwrap_err().message.contains("output_encoding"));
    assert!(!root.path().join("host/out").exists());
}

#[test]
fn a_pending_variable_interrupts_and_does_not_fail() {
    struct Pending;
    impl crate::template::Scope for Pending {
        fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
            if name == "later" { Err(Interruption::Pending) } else { Ok(None) }
        }
        fn names(&self) -> Vec<String> {
            vec!["later".to_owned()]
        }
    }
    let (root, _) = world();
    let source = root.path().join("t.j2");
    fs::write(&source, "{{ later }}").unwrap();
    let context = Context::new(Arc::new(Pending), Arc::default(), crate::template::Warnings::default());
    let args = [("src", text(&source)), ("dest", text(&root.path().join("host/x")))];
    let failure = play_in(&MODULE, &args, &Play::default(), context).result.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Interrupted(Interruption::Pending));
}
