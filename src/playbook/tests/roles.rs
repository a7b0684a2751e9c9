//! Roles: where they are found, their order, and what they inherit.

use super::*;
use crate::value::{Map, Value};

const NOOP: &str = "- {name: from, debug: }\n";

fn role_names(roles: &[Arc<Role>]) -> Vec<&str> {
    roles.iter().map(|role| role.name.as_str()).collect()
}

#[test]
fn dependencies_run_first_and_inherit() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  tags: play
  roles:
    - base
    - {role: app, when: w, tags: [t], vars: {v: 1}, port: 22, param: 2, become: yes}
  tasks: [{name: task, debug: }]
",
        ),
        ("roles/base/tasks/main.yml", "- {name: base, debug: }\n"),
        ("roles/base/handlers/main.yml", "- {name: base handler, debug: }\n"),
        ("roles/base/defaults/main.yml", "d: base\n"),
        ("roles/app/meta/main.yml", "dependencies:\n  - role: base\n    when: dep\n    x: 5\n  - name: base\n"),
        ("roles/app/tasks/main.yaml", "- {name: app, debug: , when: own}\n"),
        ("roles/app/handlers/main.yml", "- {name: app handler, debug: }\n"),
        ("roles/app/vars/main.yml", "d: app\n"),
    ]);
    let play = project.play();
    assert_eq!(names(&play.role_tasks), "base, base, base, app");
    assert_eq!(names(&play.handlers), "base handler, base handler, base handler, app handler");
    assert_eq!(role_names(&play.roles), ["base", "app"]);
    let app = &play.roles[1];
    assert_eq!(role_names(&app.dependencies), ["base", "base"]);
    assert_eq!(Value::Map(app.params.clone()).to_repr(), "{'param': 2}");
    assert_eq!(Value::Map(app.use_vars.clone()).to_repr(), "{'v': 1}");
    assert_eq!(Value::Map(app.vars.clone()).to_repr(), "{'d': 'app'}");
    assert!(app.public && !app.allow_duplicates);
    let tasks = flat(&play.role_tasks);
    assert_eq!(texts(&tasks[1].settings.when), "w, dep");
    assert_eq!(texts(&tasks[1].settings.tags), "play, t");
    assert!(tasks[1].settings.become_.is_some());
    assert_eq!(texts(&tasks[3].settings.when), "w, own");
    let dependency = tasks[1].role.as_ref().unwrap();
    assert_eq!(role_names(&dependency.parents), ["app"]);
    assert_eq!(Value::Map(dependency.params.clone()).to_repr(), "{'x': 5}");
    // uses with other parameters or conditions are other roles; equal ones run once
    let identities: Vec<_> = tasks.iter().map(|task| task.role.as_ref().unwrap().identity.as_str()).collect();
    assert_eq!(identities[0], identities[2]);
    assert_ne!(identities[0], identities[1]);
}

#[test]
fn imported_roles_take_their_place_among_the_tasks() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  tasks:
    - {name: before, debug: }
    - import_role: {name: sub/app, tasks_from: extra, public: no, vars_from: more}
      when: w
      vars: {v: 1}
  handlers: [{name: h, debug: }]
",
        ),
        ("roles/sub/app/tasks/main.yml", "- {name: main, debug: }\n"),
        ("roles/sub/app/tasks/extra.yml", "- import_tasks: deep/x.yml\n"),
        ("roles/sub/app/tasks/deep/x.yml", "- import_tasks: y.yml\n"),
        ("roles/sub/app/tasks/y.yml", "- {name: y, debug: }\n"),
        ("roles/sub/app/vars/more.yml", "a: 1\n"),
        ("roles/sub/app/handlers/main.yml", "- {name: rh, debug: }\n"),
    ]);
    let play = project.play();
    assert_eq!(names(&play.tasks), "before, y");
    assert_eq!(names(&play.handlers), "h, rh");
    let task = &flat(&play.tasks)[1];
    assert_eq!(texts(&task.settings.when), "w");
    assert_eq!(task.settings.block_vars[0].get("v"), Some(&1.into()));
    let role = task.role.as_ref().unwrap();
    assert_eq!((role.name.as_str(), role.public, role.allow_duplicates), ("sub/app", false, true));
    assert_eq!(role.vars.get("a"), Some(&1.into()));
    assert_eq!(role.use_vars.get("v"), Some(&1.into()));
}

#[test]
fn a_role_is_included_while_the_play_runs() {
    let project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [outer]\n"),
        ("roles/outer/tasks/main.yml", "- include_role:\n    name: inner\n    apply: {tags: a}\n  vars: {v: 1}\n"),
        ("roles/inner/tasks/main.yml", "- {name: inner, debug: }\n- import_role: name=third\n"),
        ("roles/inner/handlers/main.yml", "- {name: h, debug: }\n"),
        ("roles/third/tasks/main.yml", "- {name: third, debug: }\n"),
        ("roles/third/handlers/main.yml", "- {name: h3, debug: }\n"),
    ]);
    let play = project.play();
    let include = flat(&play.role_tasks).remove(0);
    let from = IncludeFrom::from_args(&Map::new());
    let included = load_role("inner", &from, &include, &play, &Arc::default(), &project.options).unwrap();
    assert_eq!(names(&included.items), "inner, third");
    assert_eq!(names(&included.handlers), "h, h3");
    assert_eq!(role_names(&included.roles), ["third"]);
    let role = included.role.as_ref().unwrap();
    assert!(!role.public && role.allow_duplicates);
    assert_eq!(role_names(&role.parents), ["outer"]);
    let task = &flat(&included.items)[0];
    assert_eq!(texts(&task.settings.tags), "a");
    assert_eq!(task.settings.include_params[0].get("v"), Some(&1.into()));
}

#[test]
fn the_files_of_a_role() {
    let project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [app]\n"),
        ("roles/app/defaults/main/a.yml", "a: 1\nb: 1\n"),
        ("roles/app/defaults/main/b/c.yml", "b: 2\n"),
        ("roles/app/defaults/main/notes.txt", "not variables"),
        ("roles/app/vars/main", "v: 1\n"),
        ("roles/app/meta/main.yml", "allow_duplicates: yes\nargument_specs: {main: {options: {}}}\n"),
        ("roles/app/meta/argument_specs.yml", "argument_specs: {main: {options: {x: {type: str}}}}\n"),
    ]);
    let play = project.play();
    let role = &play.roles[0];
    assert_eq!(Value::Map(role.defaults.clone()).to_repr(), "{'a': 1, 'b': 2}");
    assert_eq!(role.vars.get("v"), Some(&1.into()));
    assert!(role.allow_duplicates);
    let specs = Value::Map(role.argument_specs.clone().unwrap()).to_repr();
    assert_eq!(specs, "{'main': {'options': {'x': {'type': 'str'}}}}");
}

#[test]
fn roles_are_found_in_order() {
    let mut project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [one, two, three, ns.coll.four]\n"),
        ("roles/one/tasks/main.yml", NOOP),
        ("more/one/tasks/main.yml", NOOP),
        ("more/two/tasks/main.yml", NOOP),
        ("three/tasks/main.yml", NOOP),
        ("collections/ansible_collections/ns/coll/roles/four/tasks/main.yml", NOOP),
    ]);
    project.options.roles_path = vec![project.path().join("more")];
    let play = project.play();
    let paths: Vec<_> = play.roles.iter().map(|role| role.path.strip_prefix(project.path()).unwrap()).collect();
    let expected = ["roles/one", "more/two", "three", "collections/ansible_collections/ns/coll/roles/four"];
    assert_eq!(paths, expected.map(Path::new));
    assert_eq!(play.roles[3].collection.as_deref(), Some("ns.coll"));
}

#[test]
fn names_of_imports_may_use_what_is_known_while_loading() {
    let mut project = Project::new(&[
        (
            "play.yml",
            "
- import_playbook: '{{ other }}.yml'
- hosts: all
  vars: {from_play: a}
  vars_files: [vars.yml]
  roles: ['{{ from_play }}']
  tasks:
    - import_tasks: '{{ from_play }}-{{ from_extra }}.yml'
    - import_tasks: file={{ from_import }}.yml
      vars: {from_import: '{{ from_file }}-e'}
    - vars: {from_block: a}
      block: [{import_role: {name: '{{ from_block }}', tasks_from: '{{ from_extra }}'}}]
",
        ),
        ("o.yml", "- hosts: o\n"),
        ("vars.yml", "from_file: a\n"),
        ("a-e.yml", "- {name: found, debug: }\n"),
        ("roles/a/defaults/main.yml", "d: deep\n"),
        ("roles/a/tasks/main.yml", "- import_tasks: '{{ role_name }}/{{ d }}.yml'\n"),
        ("roles/a/tasks/a/deep.yml", "- {name: in role, debug: }\n"),
        ("roles/a/tasks/e.yml", "- {name: extra, debug: }\n"),
    ]);
    project.options.extra_vars = Arc::new(crate::value::object([("from_extra", "e".into()), ("other", "o".into())]));
    let plays = project.load().unwrap_or_else(|error| panic!("{}", project.show(&error)));
    assert_eq!(names(&plays[1].role_tasks), "in role");
    assert_eq!(names(&plays[1].tasks), "found, found, extra");
}

#[test]
fn roles_and_playbooks_of_collections_are_found() {
    let project = Project::new(&[
        (
            "play.yml",
            "
- hosts: all
  collections: [acme.site]
  roles: [acme.site.web, db]
  tasks:
    - import_role: {name: deep.er, tasks_from: main}
      collections: [acme.other]
    - import_role: {name: acme.other.sub.inner}
- import_playbook: acme.site.more
",
        ),
        ("collections/ansible_collections/acme/site/roles/web/tasks/main.yml", NOOP),
        (
            "collections/ansible_collections/acme/site/roles/web/meta/main.yml",
            "dependencies: [base]\ncollections: [acme.other]\n",
        ),
        ("collections/ansible_collections/acme/site/roles/base/tasks/main.yml", NOOP),
        (
            "collections/ansible_collections/acme/site/roles/db/meta/main.yml",
            "dependencies: [far]\ncollections: [acme.other]\n",
        ),
        ("collections/ansible_collections/acme/site/playbooks/more.yaml", "- {hosts: all, roles: [base]}\n"),
        ("collections/ansible_collections/acme/other/roles/far/tasks/main.yml", NOOP),
        ("collections/ansible_collections/acme/other/roles/deep.er/tasks/main.yml", NOOP),
        ("collections/ansible_collections/acme/other/roles/sub/inner/tasks/main.yml", NOOP),
        ("roles/db/tasks/main.yml", "- {name: of the playbook, debug: }\n"),
        ("roles/far/tasks/main.yml", "- {name: of the playbook, debug: }\n"),
    ]);
    let plays = project.load().unwrap_or_else(|error| panic!("{}", project.show(&error)));
    let full = |roles: &[Arc<Role>]| roles.iter().map(|role| role.full_name()).collect::<Vec<_>>().join(" ");
    assert_eq!(full(&plays[0].roles), "acme.site.web acme.site.db acme.other.deep.er acme.other.sub/inner");
    assert_eq!(full(&plays[0].roles[0].dependencies), "acme.site.base");
    assert_eq!(full(&plays[0].roles[1].dependencies), "acme.other.far");
    assert_eq!(full(&plays[1].roles), "acme.site.base");
}

#[test]
fn what_a_collection_does_not_have_is_said_with_what_it_has() {
    let project = Project::new(&[
        ("play.yml", "- hosts: all\n  roles: [acme.site.wbe, acme.none.x]\n- import_playbook: acme.site.all\n"),
        ("collections/ansible_collections/acme/site/roles/web/tasks/main.yml", NOOP),
    ]);
    let shown = project.show(&project.load().unwrap_err());
    assert!(shown.contains("(the collection `acme.site` has these roles: web)"), "{shown}");
    assert!(shown.contains("(the collection `acme.none` is not in `collections/ansible_collections`)"), "{shown}");
    assert!(
        shown.contains("there is no playbook `acme.site.all` (the collection `acme.site` has these playbooks: none)"),
        "{shown}"
    );
}
