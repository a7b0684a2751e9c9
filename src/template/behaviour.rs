//! What the engine relies on: laziness, interruptions, objects, includes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::value::object;

/// Variables, and the names whose values are not there yet.
#[derive(Default)]
struct TestScope {
    variables: Map,
    pending: HashSet<&'static str>,
}

impl Scope for TestScope {
    fn get(&self, name: &str) -> Result<Option<Value>, Interruption> {
        match self.pending.contains(name) {
            true => Err(Interruption::Pending),
            false => Ok(self.variables.get(name).cloned()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.variables.keys().map(|key| key.to_text().into_owned()).collect()
    }
}

fn written(text: &str) -> Value {
    Value::written(text)
}

fn context<const N: usize>(variables: [(&str, Value); N]) -> Context {
    let scope = TestScope { variables: object(variables), pending: HashSet::from(["later"]) };
    Context::new(Arc::new(scope), Arc::default(), Warnings::default())
}

fn rendered<const N: usize>(variables: [(&str, Value); N], text: &str) -> String {
    match context(variables).value(&written(text)) {
        Ok(value) => value.to_repr(),
        Err(error) => format!("error: {}", error.message()),
    }
}

#[test]
fn variables_are_rendered_when_they_are_used() {
    let variables = || {
        [
            ("a", written("{{ b }}-{{ c }}")),
            ("b", written("{{ c }}{{ c }}")),
            ("c", Value::Int(1)),
            ("bad", written("{{ nope.x }}")),
            ("half", object([("good", written("{{ c }}")), ("bad", written("{{ nope }}"))]).into()),
            ("circle", written("{{ round }}")),
            ("round", written("{{ circle }}")),
            ("own", Value::list(vec![written("{{ own }}")])),
            ("data", Value::from("{{ c }}")),
            ("keyed", object([("plain", Value::Null)]).into()),
        ]
    };
    let cases = [
        ("{{ a }}", "'11-1'"),
        ("{{ bad }}", "error: 'nope' is undefined"),
        ("{{ bad | default(1) }}", "1"),
        ("{{ bad is defined }}", "False"),
        ("{{ half.good }}", "1"),
        ("{{ half.bad | default('d') }}", "'d'"),
        ("{{ half | length }}", "2"),
        ("{{ half }}", "error: 'nope' is undefined"),
        ("{{ circle }}", "error: recursive loop detected in template: circle -> round -> circle"),
        ("{{ circle | default(1) }}", "error: recursive loop detected in template: circle -> round -> circle"),
        ("{{ own | length }}", "error: recursive loop detected in template: {{ own }}"),
        ("{{ data }}", "'{{ c }}'"),
        ("{{ data ~ '{{ c }}' }}", "'{{ c }}{{ c }}'"),
        ("{{ vars.c }} {{ vars['b'] }} {{ 'a' in vars }} {{ vars.nope | default('n') }}", "'1 11 True n'"),
    ];
    for (text, expected) in cases {
        // the words before a recursion name the variables it was found through
        let got = rendered(variables(), text);
        let got = match got.find("recursive loop") {
            Some(start) => format!("error: {}", &got[start..]),
            None => got,
        };
        assert_eq!(got, expected, "{text}");
    }
    let map = Value::map([(written("{{ 'k' ~ c }}"), written("{{ c }}"))].into_iter().collect());
    assert_eq!(context(variables()).value(&map).map(|value| value.to_repr()).ok().as_deref(), Some("{'k1': 1}"));
    assert!(!context(variables()).value(&written("{{ data }}")).expect("data").has_templates());
}

#[test]
fn an_interruption_is_never_swallowed() {
    let context =
        context([("through", written("{{ later.rc }}")), ("list", Value::list(vec![written("{{ later }}")]))]);
    let texts = [
        "{{ later }}",
        "{{ later | default(1) }}",
        "{{ later is defined }}",
        "{{ later.x.y is not defined }}",
        "{{ true | ternary(1, later) }}",
        "{{ through | default(1) }}",
        "{{ list | length }}",
        "{{ [1] | map('default', later) | list }}",
        "{{ lookup('vars', 'later', default=1) }}",
        "{{ lookup('items', later, errors='ignore') }}",
        "{{ lookup('vars', 'later', errors='ignore') }}",
        "{% if later is defined %}x{% endif %}",
        "{% include later ignore missing %}",
        "{{ vars.later | default(1) }}",
    ];
    for text in texts {
        let error = context.value(&written(text)).expect_err(text);
        assert_eq!(error.interruption(), Some(&Interruption::Pending), "{text}");
    }
    for condition in ["later.rc == 0", "later is defined", "not (later | default(false))"] {
        let error = context.condition(&written(condition)).expect_err(condition);
        assert_eq!(error.interruption(), Some(&Interruption::Pending), "{condition}");
    }
    assert_eq!(context.condition(&written("false and later")).ok(), Some(false));
    assert_eq!(context.value(&written("{{ 1 if true else later }}")).ok(), Some(Value::Int(1)));
}

/// A map that can be asked, but not for everything.
struct Hosts;

impl Object for Hosts {
    fn get(&self, key: &Value) -> Result<Option<Value>, Interruption> {
        match key.as_str() {
            Some("a") => Ok(Some(object([("address", "10.0.0.1".into()), ("port", written("{{ 20 + 2 }}"))]).into())),
            Some("b") => Err(Interruption::Barrier),
            _ => Ok(None),
        }
    }

    fn keys(&self) -> Vec<Value> {
        vec!["a".into(), "b".into()]
    }
}

#[test]
fn an_object_is_read_as_a_map_and_no_further_than_needed() {
    let variables = || [("hostvars", Value::Object(Arc::new(Hosts)))];
    let cases = [
        ("{{ hostvars.a.address }}", "'10.0.0.1'"),
        ("{{ hostvars['a']['port'] }}", "22"),
        ("{{ hostvars.c | default('none') }}", "'none'"),
        ("{{ hostvars.c.d }}", "error: object of type 'dict' has no attribute 'c'"),
        ("{{ 'a' in hostvars }} {{ 'z' in hostvars }}", "'True False'"),
        ("{{ hostvars | length }} {{ hostvars is mapping }}", "'2 True'"),
        ("{% for h in hostvars %}{{ h }}{% endfor %}", "'ab'"),
        ("{{ hostvars.keys() }} {{ hostvars | list }}", "\"['a', 'b'] ['a', 'b']\""),
        ("{{ ['a'] | map('extract', hostvars, 'port') | list }}", "[22]"),
        ("{{ hostvars.get('a').address }} {{ hostvars.get('z', 'd') }}", "'10.0.0.1 d'"),
    ];
    for (text, expected) in cases {
        assert_eq!(rendered(variables(), text), expected, "{text}");
    }
    for text in
        ["{{ hostvars.b }}", "{{ hostvars.values() }}", "{{ hostvars | dict2items }}", "{{ hostvars | to_json }}"]
    {
        let error = context(variables()).value(&written(text)).expect_err(text);
        assert_eq!(error.interruption(), Some(&Interruption::Barrier), "{text}");
    }
}

#[test]
fn conditions_take_what_older_versions_took_with_a_warning() {
    let context = context([("flag", Value::Bool(true)), ("text", "no".into()), ("name", "x".into())]);
    let cases = [
        (written("flag"), true, false),
        (Value::list(vec![written("flag"), written("name == 'y'")]), false, false),
        (written("text"), true, true),
        (written("{{ flag }}"), true, true),
        (written("{{ text }}"), false, true),
        (written("name == \"{{ name }}\""), true, true),
        (Value::Int(0), false, true),
        (written(""), true, false),
    ];
    for (condition, expected, warned) in cases {
        // `{{ text }}` renders to `no`, which is a variable in turn
        let variables = object([("no", Value::Bool(false))]);
        let got = context.with_variables(variables).condition(&condition);
        assert_eq!(got.ok(), Some(expected), "{condition:?}");
        assert_eq!(!context.warnings.take().is_empty(), warned, "{condition:?}");
    }
    let error = context.condition(&written("nope.x == 1")).expect_err("undefined");
    assert_eq!(error.kind(), &TemplateErrorKind::Undefined { name: Some("nope".to_owned()) });
}

#[test]
fn a_condition_rendered_from_data_reads_no_file() {
    let context =
        context([("output", "lookup('pipe', 'echo true')".into()), ("own", written("{{ lookup('pipe', 'echo x') }}"))]);
    let error = context.condition(&written("{{ output }}")).expect_err("refused");
    assert!(error.message().contains("refused"), "{error}");
    assert_eq!(context.condition(&written("{{ 'own' }} == 'x'")).ok(), Some(true));
    assert_eq!(context.condition(&written("lookup('pipe', 'echo x') == 'x'")).ok(), Some(true));
}

#[test]
fn what_nobody_vouches_for_reads_no_file_and_ends() {
    let context = context([("x", "text".into())]);
    for (text, message) in [
        ("{{ lookup('pipe', 'echo true') }}", "refused"),
        ("{% include 'x' %}", "must not use other templates"),
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "too much work"),
        ("{% for a in range(999) %}{% set x = x ~ x %}{{ x * 999 }}{% endfor %}", "too much work"),
        ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply"),
    ] {
        let error = context.for_unknown_text(100_000).value(&written(text)).expect_err(text);
        assert!(error.message().contains(message), "{text}: {error}");
    }
    let text = written("{{ x | upper }}{% for a in range(9) %}{{ a }}{% endfor %}");
    assert_eq!(context.for_unknown_text(1000).value(&text).ok(), Some("TEXT012345678".into()));
    assert!(context.for_unknown_text(10).value(&text).is_err());
}

#[test]
fn a_text_of_literals_can_be_read_as_a_value() {
    let cases = [
        ("[ 'a', 1, -2.5, ]", Some("['a', 1, -2.5]")),
        ("{\"a\": [true, null], 'b': None}", Some("{'a': [True, None], 'b': None}")),
        (" ['x'] ", Some("['x']")),
        ("[a]", None),
        ("[1 + 1]", None),
        ("x", None),
        ("[1] [2]", None),
        ("['\\n']", Some("['\\n']")),
    ];
    for (text, expected) in cases {
        assert_eq!(literal(text).map(|value| value.to_repr()).as_deref(), expected, "{text}");
    }
}

#[test]
fn errors_know_their_place() {
    let context = context([("n", Value::Int(1))]);
    let error = context.text("a\n{{ n }}\n  {{ n + nope }}\n", "x.j2").expect_err("undefined");
    let place = error.place().expect("place");
    assert_eq!((&*place.name, place.span.line), ("x.j2", 3));
    assert_eq!(error.to_string(), "x.j2:3:6: 'nope' is undefined");
    let error = context.text("a\n{% if n %}\n", "x.j2").expect_err("not closed");
    assert_eq!(*error.kind(), TemplateErrorKind::Syntax);
    assert_eq!(error.place().map(|place| &*place.name), Some("x.j2"));
    assert!(check_syntax("a b", Kind::Expression).is_err());
    assert!(check_syntax("{{ a }", Kind::Template).is_err());
    assert!(check_syntax("a is defined and b | int > 3", Kind::Expression).is_ok());
}

#[test]
fn templates_include_import_and_extend() {
    let root = tempfile::tempdir().expect("directory");
    let templates = root.path().join("templates");
    std::fs::create_dir_all(templates.join("sub")).expect("directory");
    let files = [
        ("part.j2", "[{{ n }}{{ local | default('') }}]\n"),
        ("macros.j2", "{% macro twice(x) %}{{ x }}{{ x }}{{ n }}{% endmacro %}{% set word = 'w' %}{% set _own = 1 %}"),
        (
            "base.j2",
            "<{% block head %}base{% endblock %}|{% block body %}{% block inner %}i{% endblock %}{% endblock %}>",
        ),
        (
            "child.j2",
            "{% extends 'base.j2' %}\nignored{% set v = 'V' %}{% block head %}child+{{ super() }}{% endblock %}",
        ),
        (
            "grand.j2",
            "{% extends 'child.j2' %}{% block head %}grand+{{ super() }}{% endblock %}{% block inner %}I{% endblock %}",
        ),
        ("sub/a.j2", "{% include 'b.j2' %}"),
        ("sub/b.j2", "beside"),
        ("endless.j2", "{% include 'endless.j2' %}"),
    ];
    for (name, text) in files {
        std::fs::write(templates.join(name), text).expect("file");
    }
    let search = SearchPath { playbook_dir: root.path().to_owned(), ..SearchPath::default() };
    let context = context([("n", Value::Int(1))]).with_search(Arc::new(search));
    let cases = [
        ("{% set local = 'L' %}{% include 'part.j2' %}.", "[1L]."),
        ("{% include ['no.j2', 'part.j2'] %}", "[1]"),
        ("a{% include 'no.j2' ignore missing %}b", "ab"),
        (
            "{% import 'macros.j2' as m %}{{ m.twice('x') }} {{ m.word }} {{ m._own | default('private') }}",
            "xx1 w private",
        ),
        ("{% from 'macros.j2' import twice as t, word %}{{ t(2) }}{{ word }}", "221w"),
        ("{% extends 'child.j2' %}", "<child+base|i>"),
        ("{% include 'grand.j2' %}", "<grand+child+base|I>"),
        ("{% block a %}A{% endblock %}{{ self.a() }}", "AA"),
        ("{% include 'sub/a.j2' %}", "beside"),
        ("{{ lookup('template', 'part.j2') }}", "[1]\n"),
        ("{{ lookup('template', 'part.j2', template_vars={'n': 5}) }}", "[5]\n"),
    ];
    for (text, expected) in cases {
        let got = context.text(text, "main.j2").unwrap_or_else(|error| format!("error: {error}"));
        assert_eq!(got, expected, "{text}");
    }
    let error = context.text("{% include 'no.j2' %}", "main.j2").expect_err("missing");
    assert_eq!(*error.kind(), TemplateErrorKind::Missing);
    assert!(context.text("{% include 'endless.j2' %}", "main.j2").expect_err("endless").message().contains("endless"));
    assert_eq!(context.text("{{ lookup('file', 'templates/sub/b.j2') }}", "").expect("file"), "beside");
    let name = PathBuf::from("templates/sub/b.j2");
    let found = lookup(&context, "first_found", Value::list(vec!["no".into(), name.to_string_lossy().as_ref().into()]));
    assert_eq!(found.map(|found| found.len()).ok(), Some(1));
}

#[test]
fn a_header_overrides_the_syntax_and_final_newlines_are_kept() {
    let context = context([("n", Value::Int(1))]);
    let cases = [
        ("#jinja2: trim_blocks:False\n{% if true %}\nx\n{% endif %}\n", "\nx\n\n"),
        ("#jinja2: lstrip_blocks: True\n  {% if true %}\n  x\n  {% endif %}\n", "  x\n"),
        ("#jinja2:variable_start_string:'[%', variable_end_string:'%]'\n[% n %] {{ n }}\n", "1 {{ n }}\n"),
        ("{% if true %}\nx\n{% endif %}\n\n", "x\n\n"),
        ("a\r\nb {{ n }}\r\n", "a\nb 1\n"),
        ("{{ '\\n' | length }} {{ 'a\\tb' | length }}", "1 3"),
    ];
    for (text, expected) in cases {
        assert_eq!(context.text(text, "x.j2").expect(text), expected, "{text}");
    }
    assert!(context.text("#jinja2: nonsense:1\n", "x.j2").is_err());
    // in a playbook's values a backslash is a backslash
    assert_eq!(context.value(&written("{{ '\\n' | length }}")).ok(), Some(Value::Int(2)));
}

#[test]
fn appending_costs_no_copy_of_the_list() {
    let started = std::time::Instant::now();
    let text = "{% set l = [] %}{% set d = {} %}{% for i in range(20000) %}{% set _ = l.append(i) %}{% set _ = d.update({i: i}) %}{% endfor %}{{ l | length + d | length }}";
    assert_eq!(context([]).value(&written(text)).ok(), Some(Value::Int(40_000)));
    // copying would take minutes
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let run = || {
        let deep = format!("{{{{ {}1{} }}}}", "(".repeat(70), ")".repeat(70));
        let chain: Map = (0..60)
            .map(|index| (Value::from(format!("v{index}")), Value::written(format!("{{{{ v{} }}}}", index + 1))))
            .collect();
        let scope = TestScope { variables: chain, pending: HashSet::new() };
        let context = Context::new(Arc::new(scope), Arc::default(), Warnings::default());
        assert!(context.value(&written(&deep)).is_ok());
        assert!(context.value(&written("{{ v0 }}")).expect_err("deep").message().contains("too deeply"));
        let nested = "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}";
        assert!(context.value(&written(nested)).expect_err("endless").message().contains("too deeply"));
        let lists = format!("{{{{ {}1{} }}}}", "[".repeat(70), "]".repeat(70));
        assert!(context.value(&written(&lists)).is_ok());
        let itself = "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}";
        assert!(context.value(&written(itself)).is_err());
    };
    // the stack of a worker of the asynchronous runtime
    let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(run).expect("thread");
    worker.join().expect("no crash");
}
