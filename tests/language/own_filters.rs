//! A team's own filters: macros in `filters/`.

use trimtab::engine::options::Options;
use trimtab::value::object;

use crate::support::Playing;

#[test]
fn a_macro_is_a_filter() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "filters/wrap.j2",
        "{# around a text #}\n{% macro wrap(value, left, right='>') %}\n{{ left }}{{ value }}{{ right }}{{ site }}\n{% endmacro %}\n",
    );
    write("filters/again.j2", "{% macro again(value) %}{{ value | again }}{% endmacro %}");
    write("filters/other.j2", "{% macro another(value) %}{% endmacro %}");
    write("filters/upper.j2", "{% macro upper(value) %}never{% endmacro %}");
    write("roles/r/filters/twice.j2", "{% macro twice(value) %}{{ value }}{{ value | wrap('(') }}{% endmacro %}");
    write("roles/r/tasks/main.yml", "- name: role\n  debug: {msg: \"{{ 'a' | twice }}\"}\n");
    write(
        "site.yml",
        "- hosts: all
  gather_facts: false
  vars: {site: '!'}
  roles: [r]
  tasks:
    - name: plain
      debug: {msg: \"{{ 'x' | wrap('<') }} {{ ['a', 'b'] | map('wrap', '[', right=']') | join(',') }} {{ 'u' | team.own.wrap('-', '-') }} {{ 'u' | upper }}\"}
    - name: again
      debug: {msg: \"{{ 'x' | again }}\"}
      ignore_errors: true
    - name: other
      debug: {msg: \"{{ 'x' | other }}\"}
      ignore_errors: true
    - name: of a role
      debug: {msg: \"{{ 'x' | twice }}\"}
      ignore_errors: true
",
    );
    let directory = scratch.path();
    let told =
        Playing { directory, playbook: "site.yml", inventory: "a,", extra: object([]), options: Options::default() }
            .run();
    assert_eq!(told.message("plain"), "<x>! [a]!,[b]! -u-! U", "{:?}", told.lines());
    assert_eq!(told.message("r : role"), "a(a>!", "{:?}", told.lines());
    assert!(told.message("again").contains("recursive loop detected"), "{}", told.message("again"));
    assert!(told.message("other").contains("has no macro `other`"), "{}", told.message("other"));
    assert!(told.message("of a role").contains("no filter named 'twice'"), "{}", told.message("of a role"));
}
