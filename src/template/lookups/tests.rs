//! Lookups against files of a directory of their own.

use std::sync::Arc;

use crate::template::{Context, Scope, SearchPath, Warnings, lookup};
use crate::value::{Interruption, Value, object};

struct Groups;

impl Scope for Groups {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        let hosts = |names: &[&str]| Value::list(names.iter().map(|name| Value::from(*name)).collect());
        Ok((name == "groups").then(|| {
            Value::map(object([
                ("all", hosts(&["a1", "a2", "b1"])),
                ("web", hosts(&["a1", "a2"])),
                ("db", hosts(&["b1", "a2"])),
            ]))
        }))
    }

    fn names(&self) -> Vec<String> {
        vec!["groups".to_owned()]
    }
}

fn project(files: &[(&str, &str)]) -> (tempfile::TempDir, Context) {
    let root = tempfile::tempdir().expect("directory");
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        std::fs::write(path, text).expect("file");
    }
    let search = SearchPath {
        role_dirs: vec![root.path().join("roles/r")],
        task_dir: Some(root.path().join("roles/r/tasks")),
        playbook_dir: root.path().to_owned(),
    };
    let context = Context::new(Arc::new(Groups), Arc::new(search), Warnings::default());
    (root, context)
}

#[track_caller]
fn check(context: &Context, cases: &[(&str, &str)]) {
    for (expression, expected) in cases {
        let got = match context.expression(expression) {
            Ok(value) => value.to_repr(),
            Err(error) => format!("error: {}", error.message()),
        };
        assert!(got.starts_with(expected), "{expression}\n  expected {expected}\n  got      {got}");
    }
}

#[test]
fn files_are_found_by_role_and_playbook() {
    let (root, context) = project(&[
        ("roles/r/files/one.txt", "  role\n\n"),
        ("files/one.txt", "playbook"),
        ("files/conf.d/a.conf", ""),
        ("files/conf.d/b.conf", ""),
        ("files/conf.d/c.txt", ""),
        ("roles/r/vars/RedHat.yml", "a: 1"),
        ("roles/r/templates/t.j2", "{{ x | default('-') }}\n"),
        ("secret.txt", "$ANSIBLE_VAULT;1.1;AES256\n33"),
    ]);
    check(
        &context,
        &[
            ("lookup('file', 'one.txt')", "'  role'"),
            ("lookup('file', 'one.txt', lstrip=true)", "'role'"),
            ("lookup('file', 'one.txt', rstrip=false)", "'  role\\n\\n'"),
            ("lookup('file', 'no.txt')", "error: the lookup `file` failed: the file `no.txt` was not found in "),
            ("lookup('file', 'secret.txt')", "error: the lookup `file` failed: cannot decrypt `"),
            ("lookup('unvault', 'one.txt')", "'  role\\n\\n'"),
            ("query('fileglob', 'conf.d/*.conf') | map('basename') | list", "['a.conf', 'b.conf']"),
            ("query('fileglob', '*.nope')", "[]"),
            (
                "query('first_found', {'files': ['Debian.yml', 'RedHat.yml'], 'paths': ['vars']}) | map('basename') | list",
                "['RedHat.yml']",
            ),
            ("query('first_found', ['RedHat.yml']) | map('basename') | list", "['RedHat.yml']"),
            ("lookup('first_found', {'files': 'x', 'skip': true})", "[]"),
            (
                "lookup('first_found', 'x', 'y')",
                "error: the lookup `first_found` failed: no file was found when using first_found (x, y)",
            ),
            ("lookup('template', 't.j2')", "'-\\n'"),
            ("lookup('template', 't.j2', template_vars=dict(x=5))", "'5\\n'"),
            ("lookup('url', 'file:///x')", "error: the lookup `url` failed"),
            ("lookup('fil', 'x')", "error: the lookup plugin 'fil' was not found, did you mean `file`?"),
        ],
    );
    let terms =
        Value::list(vec![Value::map(object([("files", Value::list(vec!["nope".into()])), ("skip", true.into())]))]);
    assert_eq!(lookup(&context, "first_found", terms).map(|found| found.len()).ok(), Some(0));
    drop(root);
}

#[test]
fn data_files_are_read() {
    let (root, context) = project(&[
        ("users.ini", "[web]\nUser = ann\n# no\nport: 80\nlong = a\n  b\n[db]\nuser=bob\n"),
        ("twice.ini", "[a]\nName = x\nname = y\n"),
        ("alone.ini", "[a]\nfast\nsize = 5\n"),
        (
            "uses.ini",
            "[DEFAULT]\nroot = /srv\n[a]\nlogs = %(root)s/logs\nold = %(logs)s/old\nhalf = 50%%\nbad = 50%\nround = %(round)s\n",
        ),
        ("p.properties", "user.name=x y\n"),
        ("t.csv", "a\t1\tx\nb\t2\ty\n"),
        ("c.csv", "a,\"1,5\"\nb,2\n\"\"\"a\"\" b\",3\n"),
        ("my list.csv", "a\x1a1\n"),
    ]);
    std::fs::write(root.path().join("latin.ini"), b"[a]\nword = \xe9\xa4\n").expect("file");
    check(
        &context,
        &[
            ("lookup('ini', 'user', section='web', file='users.ini')", "'ann'"),
            ("lookup('ini', 'user section=db file=users.ini')", "'bob'"),
            ("lookup('ini', 'port', section='web', file='users.ini')", "'80'"),
            ("lookup('ini', 'long', section='web', file='users.ini')", "'a\\nb'"),
            ("lookup('ini', 'nope', section='web', file='users.ini', default='d')", "'d'"),
            (
                "lookup('ini', 'x', section='nope', file='users.ini')",
                "error: the lookup `ini` failed: No section 'nope' in ",
            ),
            ("query('ini', '.*', section='web', file='users.ini', re=true)", "['ann', '80', 'a\\nb']"),
            (
                "lookup('ini', 'name', section='a', file='twice.ini')",
                "error: the lookup `ini` failed: Duplicate option in ",
            ),
            ("lookup('ini', 'Name', section='a', file='twice.ini', case_sensitive=true)", "'x'"),
            (
                "lookup('ini', 'size', section='a', file='alone.ini')",
                "error: the lookup `ini` failed: Source contains parsing",
            ),
            ("lookup('ini', 'size', section='a', file='alone.ini', allow_no_value=true)", "'5'"),
            ("query('ini', 'fast', section='a', file='alone.ini', allow_none=true)", "[]"),
            ("lookup('ini', 'old', section='a', file='uses.ini')", "'/srv/logs/old'"),
            ("lookup('ini', 'half', section='a', file='uses.ini')", "'50%'"),
            (
                "lookup('ini', 'bad', section='a', file='uses.ini')",
                "error: the lookup `ini` failed: '%' must be followed by",
            ),
            ("lookup('ini', 'bad', section='a', file='uses.ini', interpolation=false)", "'50%'"),
            (
                "lookup('ini', 'round', section='a', file='uses.ini')",
                "error: the lookup `ini` failed: values that use each other",
            ),
            ("lookup('ini', 'word section=a file=latin.ini encoding=iso8859-15')", "'é€'"),
            ("lookup('ini', 'word section=a file=latin.ini')", "error: the lookup `ini` failed: the file `"),
            (
                "lookup('ini', 'word section=a file=latin.ini encoding=ebcdic')",
                "error: the lookup `ini` failed: unknown encoding",
            ),
            (
                "lookup('ini', 'file=users.ini', 'user', section='web')",
                "error: the lookup `ini` failed: No key to lookup",
            ),
            ("lookup('ini', 'user colour=red')", "error: the lookup `ini` failed: colour is not a valid option"),
            (
                "lookup('csvfile', 'file=c.csv delimiter=,')",
                "error: the lookup `csvfile` failed: Search key is required",
            ),
            ("lookup('csvfile', file='c.csv')", "error: the lookup `csvfile` failed: Search key is required"),
            ("lookup('csvfile', 'a colour=red')", "error: the lookup `csvfile` failed: colour is not a valid option"),
            ("lookup('csvfile', 'a file=\"my list.csv\" delimiter=\\x1a')", "'1'"),
            ("lookup('csvfile', '\"a\" b file=c.csv delimiter=,')", "'3'"),
            ("lookup('ini', 'user.name', type='properties', file='p.properties')", "'x y'"),
            ("lookup('csvfile', 'b', file='t.csv')", "'2'"),
            ("lookup('csvfile', 'b file=t.csv col=2')", "'y'"),
            ("lookup('csvfile', 'a', file='c.csv', delimiter=',')", "'1,5'"),
            ("lookup('csvfile', 'z', file='c.csv', delimiter=',', default='none')", "'none'"),
            ("lookup('csvfile', '2', file='t.csv', keycol=1, col=0)", "'b'"),
        ],
    );
}

#[test]
fn a_password_is_made_once_and_kept() {
    let (root, context) = project(&[("old", "known salt=abc\n")]);
    let first = context.expression("lookup('password', 'sub/new length=12 chars=digits')").expect("password");
    assert_eq!(first.to_text().len(), 12);
    assert!(first.to_text().chars().all(|digit| digit.is_ascii_digit()));
    assert_eq!(context.expression("lookup('password', 'sub/new length=30')").ok(), Some(first));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&root.path().join("sub/new").metadata().expect("file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    check(
        &context,
        &[
            ("lookup('password', 'old')", "'known'"),
            ("lookup('password', '/dev/null length=5') | length", "5"),
            ("lookup('password', '/dev/null', seed='a') == lookup('password', '/dev/null', seed='a')", "True"),
            ("lookup('password', 'sub/salted encrypt=md5_crypt') is match('[$]1[$].{8}[$].{22}$')", "True"),
            (
                "lookup('password', 'sub/salted encrypt=md5_crypt') == lookup('password', 'sub/salted', encrypt='md5_crypt')",
                "True",
            ),
            ("lookup('file', 'sub/salted') is match(lookup('password', 'sub/salted') ~ ' salt=.{8}$')", "True"),
            (
                "lookup('password', '/dev/null encrypt=sha51')",
                "error: the lookup `password` failed: does not support 'sha51'",
            ),
        ],
    );
}

#[test]
fn hosts_are_named_by_patterns() {
    let (_root, context) = project(&[]);
    check(
        &context,
        &[
            ("query('inventory_hostnames', 'all')", "['a1', 'a2', 'b1']"),
            ("query('inventory_hostnames', 'all:!db')", "['a1']"),
            ("query('inventory_hostnames', 'web:&db')", "['a2']"),
            ("query('inventory_hostnames', '?1')", "['a1', 'b1']"),
            ("query('inventory_hostnames', 'nope')", "[]"),
        ],
    );
}

#[test]
fn settings_are_looked_up_by_ansibles_names() {
    let settings = crate::value::Map::from_iter([("DEFAULT_FORKS".into(), Value::from(5))]);
    let (_root, context) = project(&[]);
    let context = Context { settings: Arc::new(settings), ..context };
    let give = |text: &str| context.value(&Value::written(text)).map_err(|error| error.to_string());
    assert_eq!(give("{{ lookup('config', 'DEFAULT_FORKS') }}").unwrap(), Value::from(5));
    let cases = [
        ("{{ lookup('config', 'DEFAULT_FORK') }}", "did you mean `DEFAULT_FORKS`?"),
        ("{{ lookup('config', 1) }}", "is not a string"),
        ("{{ lookup('config', 'X', on_missing='never') }}", "`on_missing` cannot be `never`"),
        ("{{ lookup('config', 'x', plugin_type='shell', plugin_name='sh') }}", "there are no plugins"),
    ];
    for (text, message) in cases {
        assert!(give(text).unwrap_err().contains(message), "{text}");
    }
    assert_eq!(give("{{ query('config', 'X', on_missing='skip') }}").unwrap(), Value::list(Vec::new()));
}
