//! Whole documents: anchors, merge keys, tags, errors with their places, and texts that are broken.

use super::*;

fn read(text: &str) -> Result<Value> {
    load(&Source::new("play.yml", text)).map(|node| node.map_or(Value::Null, |node| node.to_value()))
}

#[test]
fn documents_load() {
    let cases: &[(&str, &str)] = &[
        ("", "None"),
        ("# only a comment\n", "None"),
        ("---\n", "None"),
        ("a: 1\nb: [x, 2.0, ~]\n", "{'a': 1, 'b': ['x', 2.0, None]}"),
        ("on: 1\n2: two\n~: n", "{True: 1, 2: 'two', None: 'n'}"),
        ("a: &x {k: 1}\nb: *x", "{'a': {'k': 1}, 'b': {'k': 1}}"),
        // own keys win over merged ones, earlier merged mappings over later ones
        ("x: &a {k: 1}\nc: {k: 2, <<: *a}", "{'x': {'k': 1}, 'c': {'k': 2}}"),
        (
            "- &a {kk: 1, w: 1}\n- &b {kk: 2, z: 3}\n- {<<: [*a, *b], w: 5}",
            "[{'kk': 1, 'w': 1}, {'kk': 2, 'z': 3}, {'kk': 1, 'z': 3, 'w': 5}]",
        ),
        ("'<<': 1", "{'<<': 1}"),
        ("=: 1", "{'=': 1}"),
        (
            "a: !!str 12\nb: !!int '07'\nc: !!float 3\nd: !!bool 'Yes'\ne: !!null x",
            "{'a': '12', 'b': 7, 'c': 3.0, 'd': True, 'e': None}",
        ),
        ("a: !!binary aGk=", "{'a': 'hi'}"),
        ("a: ! 12", "{'a': 12}"),
        ("? a\n? b", "{'a': None, 'b': None}"),
        ("a:\tb", "{'a': 'b'}"),
        ("\u{feff}a: 1", "{'a': 1}"),
        ("\u{fecf}", "'\u{fecf}'"),
        ("\u{ff21}: 1", "{'\u{ff21}': 1}"),
    ];
    for (text, expected) in cases {
        let value = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(value.to_repr(), *expected, "{text}");
    }
}

#[test]
fn written_text_may_be_a_template_and_unsafe_text_is_not() {
    let value = read("a: '{{ x }}'\nb: !unsafe '{{ x }}'\nc: !unsafe {d: ['{{ x }}']}\ne: !unsafe 12").unwrap();
    assert!(value.get("a").unwrap().has_templates());
    assert!(!value.get("b").unwrap().has_templates());
    assert!(!value.get("c").unwrap().has_templates());
    assert_eq!(value.get("e"), Some(&Value::Int(12)));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("a: b: c", "mapping values are not allowed in this context", "1:5", "quote a value that contains a colon"),
        ("a: {{ x }}", "a mapping as a key", "1:4", "quote a value that starts with a template: \"{{ x }}\""),
        ("a: {{ x }}/etc\n", "did not find expected key", "1:4", "\"{{ x }}/etc\""),
        ("a:\n\t- b\n", "found character that cannot start any token", "2:1", "indent with spaces"),
        ("name:copy\nb: 1\n", "mapping values are not allowed", "1:6", "put a space after the colon of `name`"),
        ("a: @x", "found character that cannot start any token", "1:4", ""),
        ("a: 'b\n", "found unexpected end of stream", "1:4", "not closed"),
        ("a: !foo x", "could not determine a constructor for the tag `!foo`", "1:4", "quote a value"),
        ("a: !vualt x", "`!vualt`", "1:4", "did you mean `!vault`?"),
        ("a: *x", "found undefined alias `*x`", "1:4", "asterisk"),
        ("a: &x [*x]", "inside of its own anchor", "1:8", ""),
        ("a: &x 1\nb: &x 2", "found duplicate anchor `x`", "2:4", ""),
        ("a: 2001-99-01", "there is no date", "1:4", "quote it"),
        ("a: =", "cannot be a value", "1:4", "quote it"),
        ("c: {<<: 1}", "expected a mapping or a list of mappings for merging, but found integer", "1:9", ""),
        ("a: 1\n---\nb: 2\n", "expected a single document", "2:1", "file of its own"),
        ("a: b\u{7}", "control characters are not allowed", "1:5", ""),
        ("[!a,b]", "not valid YAML", "1:", ""),
    ];
    for (text, message, place, hint) in cases {
        let error = read(text).expect_err(text);
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("play.yml:{place}")), "{text}: {error}");
        assert!(error.hints().join("\n").contains(hint), "{text}: {:?}", error.hints());
    }
}

#[test]
fn nothing_of_an_encrypted_text_is_shown() {
    let texts =
        ["password:\"hush\"\nmore: \"hush\"", "a: *hush", "a: !hush x", "a: 'hush\n", "a: !!int hush", "hush: {{ x }}"];
    for text in texts {
        let source = Source::secret("vault.yml", text);
        let error = load(&source).expect_err(text);
        assert!(error.to_string().starts_with("vault.yml:"), "{text}: {error}");
        let all = format!("{error} {:?} {:?}", error.hints(), error.places());
        assert!(!all.contains("hush"), "{text}: {all}");
        assert_eq!(source.line(1), None);
    }
    let document = load_with_warnings(&Source::secret("vault.yml", "hush: 1\nhush: 2\n")).unwrap();
    assert_eq!(document.warnings[0].to_string(), "vault.yml:2:1: found a duplicate dict key (…): the last one is used");
}

#[test]
fn a_key_that_stands_twice_is_warned_of() {
    let document =
        load_with_warnings(&Source::new("vars.yml", "a: 1\nb: &x {c: 1}\na: 2\nd: {<<: *x, c: 2}\n")).unwrap();
    assert_eq!(document.root.unwrap().to_value().to_repr(), "{'a': 2, 'b': {'c': 1}, 'd': {'c': 2}}");
    let warnings: Vec<String> = document.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["vars.yml:3:1: found a duplicate dict key (a): the last one is used"]);
}

#[test]
fn an_encrypted_value_keeps_its_envelope_and_its_place() {
    let node = load(&Source::new("vars.yml", "a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n")).unwrap().unwrap();
    let secret = node.get("a").unwrap();
    assert!(secret.is_vault());
    assert_eq!(secret.as_str(), Some("$ANSIBLE_VAULT;1.1;AES256\n6162\n"));
    let Value::Str(sealed) = secret.to_value() else { panic!("a text") };
    assert_eq!(sealed.sealed_at(), Some("vars.yml:1:4"));
    let emitted = emit(&node.to_value(), &EmitOptions::to_yaml());
    assert_eq!(emitted, "a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n");
    let json =
        load_vars(&Source::new("v.json", "{\"a\": {\"__ansible_vault\": \"$ANSIBLE_VAULT;1.1;AES256\\n6162\"}}"));
    assert!(matches!(json.unwrap().get("a"), Some(Value::Str(text)) if text.sealed_at() == Some("v.json:1:1")));
}

#[test]
fn texts_that_grow_or_nest_without_end_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let previous = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![previous; 9].join(", ")));
    }
    assert!(read(&bomb).unwrap_err().message().contains("too large"));
    assert!(read(&"[".repeat(100_000)).is_err());
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(read(&deep).unwrap_err().message().contains("nested more than"));
    let mut chain = "- &a0 [x]\n".to_owned();
    for level in 1..5_000 {
        chain.push_str(&format!("- &a{level} [*a{}]\n", level - 1));
    }
    assert!(read(&chain).unwrap_err().message().contains("nested more than"));
}

#[test]
fn shared_collections_become_aliases() {
    let shared = Value::list(vec![1.into()]);
    let value = Value::map(crate::value::object([("a", shared.clone()), ("b", shared)]));
    assert_eq!(emit(&value, &EmitOptions::to_nice_yaml()), "a: &id001\n- 1\nb: *id001\n");
}

#[test]
fn what_is_written_is_read_back() {
    let texts = [
        "yes",
        "0644",
        "1:30",
        "1e3",
        "null",
        "~",
        "",
        " a",
        "a: b",
        "# x",
        "é\u{1f600}",
        "a\nb\n",
        "\u{7}",
        "2001-01-01",
        "<<",
        "=",
        "{{ x }}",
        "- a",
        "'",
        "\"",
        "&a",
        "*a",
        "!a",
        "%a",
        "@a",
        "`a",
        "a\u{2028}b",
        "\t",
        "\r\n",
    ];
    for text in texts {
        for options in [EmitOptions::to_yaml(), EmitOptions::to_nice_yaml()] {
            let value = Value::map(crate::value::object([("k", Value::from(text))]));
            let written = emit(&value, &options);
            assert_eq!(read(&written).unwrap(), value, "{text:?} as {written:?}");
        }
    }
}

/// A small generator of numbers, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn broken_texts_never_panic() {
    let seeds = [
        "- hosts: all\n  vars: {a: 1, b: [x, 'y', \"z\\n\"]}\n  tasks:\n    - copy: {src: a, dest: \"{{ b }}\"}\n",
        "a: &x {k: 0x1F}\nb: {<<: *x, c: !unsafe '{{ q }}'}\n? d\n: |2-\n    e\n     f\n",
        "%YAML 1.1\n---\n- !!str 12\n- >+\n  g\n\n- 2001-01-01 10:00:00\n...\n---\nh: !vault |\n  i\n",
    ];
    let scraps = [
        "!", "&", "*", ":", ": ", "-", "\n", "\t", " ", "'", "\"", "\\", "{", "}", "[", "]", ",", "|", ">", "#", "%",
        "@", "?", "<<", "!a,", "\u{85}", "\u{feff}", "é", "\u{0}",
    ];
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let mut text: Vec<char> = seeds[numbers.below(seeds.len())].chars().collect();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(text.len() + 1);
            let end = (at + numbers.below(3)).min(text.len());
            let scrap = scraps[numbers.below(scraps.len())];
            text.splice(at..end, scrap.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = load_all(&Source::new("mutant.yml", text.as_str())) {
            assert!(!error.places().is_empty(), "{text:?}: {error}");
        }
    }
}
