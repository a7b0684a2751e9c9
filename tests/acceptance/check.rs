//! `trimtab check`: all that is wrong and missing, without a host.

use super::support::{Ended, Invocation, LOCAL, given};

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// Playbooks and roles with many mistakes.
fn site() -> Invocation {
    given()
        .file(
            "site.yml",
            "\
- hosts: web
  gather_facts: false
  vars_files: [vars/gone.yml]
  roles: [app]
  tasks:
    - debgu: msg=hi
    - debug: {msg: hi, verbsity: 1}
    - notifi: x
      ping:
    - win_ping:
      when: ansible_os_family == 'Windows'
    - debug: {msg: \"{{ x | mine(1) | other }}\"}
      when: x is odder
",
        )
        .file("filter_plugins/mine.py", "def filters(self):\n    return {'mine': mine}\n")
        .file("library/thing.py", "")
        .file(
            "roles/app/tasks/main.yml",
            "- include_tasks: '{{ ansible_os_family }}.yml'\n- template: {src: a.j2, dest: /a}\n",
        )
        .file("roles/app/tasks/Debian.yml", "- thing: {a: 1}\n- apt: {nmae: x}\n")
        .file("roles/app/tasks/orphan.yml", "- debug: {msg: '{{ x |'}\n")
        .file("roles/app/templates/a.j2", "one\n{% if %}\n")
        .file("roles/app/defaults/main.yml", "a: [\n")
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let ended = site().run(&["check", "--output", "json"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    let found = json(&ended);
    assert_eq!(found["verdict"], "blocked");
    let problems: Vec<String> = found["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| {
            let place = &problem["places"][0];
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let message = text(&problem["message"]);
            let message = message.split(':').next().unwrap_or_default();
            format!("{} {}:{} {message}", text(&problem["severity"]), text(&place["file"]), place["line"])
        })
        .collect();
    for expected in [
        "error site.yml:3 there is no file of variables `vars/gone.yml`",
        "error site.yml:6 there is no module `debgu`",
        "error site.yml:7 `debug` has no argument `verbsity`",
        "error site.yml:8 unknown keyword `notifi` on a task",
        "warning site.yml:10 there is no module `win_ping`",
        "error roles/app/tasks/Debian.yml:2 `apt` has no argument `nmae`",
        "warning roles/app/tasks/Debian.yml:1 there is no module `thing`",
        "warning roles/app/tasks/orphan.yml:1 `{{ x |` is no template",
        "error roles/app/templates/a.j2:2 `roles/app/templates/a.j2` is no template",
    ] {
        assert!(problems.iter().any(|problem| problem == expected), "{expected}: {problems:#?}");
    }
    assert!(problems.iter().any(|problem| problem.starts_with("error roles/app/defaults/main.yml:")), "{problems:#?}");
}

#[test]
fn what_is_missing_is_counted() {
    let found = json(&site().run(&["check", ".", "--output", "json"]));
    let missing: Vec<String> = found["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|missing| format!("{} {} {}", missing["kind"], missing["name"], missing["certain"]).replace('"', ""))
        .collect();
    for expected in [
        "module debgu true",
        "module win_ping false",
        "module thing false",
        "parameter debug: verbsity true",
        "parameter apt: nmae false",
        "filter mine false",
        "filter other false",
        "test odder false",
        "plugin filter_plugins/mine.py (filter plugin) false",
        "plugin library/thing.py (module) false",
    ] {
        assert!(missing.iter().any(|name| name == expected), "{expected}: {missing:#?}");
    }
    let of =
        |name: &str| found["missing"].as_array().and_then(|all| all.iter().find(|one| one["name"] == name).cloned());
    let filter = of("mine").expect("mine");
    assert!(filter["hint"].as_str().is_some_and(|hint| hint.contains("`filters/mine.j2`")), "{filter}");
    assert_eq!((&filter["places"][0]["line"], &filter["places"][0]["column"]), (&12.into(), &28.into()));
}

#[test]
fn a_good_site_is_ready() {
    let good = given().file("inv", LOCAL).file("play.yml", "- hosts: web\n  tasks:\n    - ping:\n");
    good.run(&["check", "play.yml"]).printed(
        "checked: 1 playbook, 1 play, 0 roles, 1 task, 0 templates, 1 file\n\
         verdict: ready; everything that is used is there\n",
    );
    let ended = good.run(&["check", "play.yml", "-i", "inv", "-l", "wbe"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.contains("did you mean `web`?"), "{ended:?}");
}

#[test]
fn what_may_not_be_reached_is_no_reason_to_stop() {
    let maybe = given().file("play.yml", "- hosts: web\n  tasks:\n    - zyper: {name: x}\n      when: suse\n");
    let ended = maybe.run(&["check", "play.yml"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("missing modules:\n  zyper  1 use: play.yml:3:7\n"), "{}", ended.stdout);
    assert!(
        ended.stdout.ends_with("verdict: conditional; a run begins; 1 warning, and what is missing is used 1 time\n")
    );
}

#[test]
fn settings_that_cannot_be_used_are_one_problem_more() {
    let site = given()
        .file("ansible.cfg", "[defaults]\nnocows = 1\nerror_on_undefined_vars = no\nroles_path = there\n")
        .file("there/web/tasks/main.yml", "- ping:\n")
        .file("play.yml", "- hosts: web\n  roles: [web]\n");
    let ended = site.run(&["check", "play.yml"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stdout.contains("ansible.cfg:3:1") && ended.stdout.contains("1 error: no host"), "{}", ended.stdout);
}

#[test]
fn a_path_that_is_not_there_is_a_mistake_of_the_command_line() {
    let ended = given().run(&["check", "nowhere.yml"]);
    assert_eq!((ended.code, ended.stdout.starts_with("error: there is no playbook `nowhere.yml`\n")), (5, true));
}
