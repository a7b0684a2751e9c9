//! Keywords that are inherited reach the task from wherever they may stand; elsewhere they are refused.

use super::*;
use crate::playbook::keywords::{On, find};

type IsSet = fn(&Settings) -> bool;

/// Each keyword with a value, and whether settings have it.
const INHERITED: &[(&str, &str, IsSet)] = &[
    ("any_errors_fatal", "true", |settings| settings.any_errors_fatal.is_some()),
    ("become", "true", |settings| settings.become_.is_some()),
    ("become_exe", "/bin/x", |settings| settings.become_exe.is_some()),
    ("become_flags", "-n", |settings| settings.become_flags.is_some()),
    ("become_method", "su", |settings| settings.become_method.is_some()),
    ("become_user", "x", |settings| settings.become_user.is_some()),
    ("check_mode", "true", |settings| settings.check_mode.is_some()),
    ("connection", "local", |settings| settings.connection.is_some()),
    ("delegate_facts", "true", |settings| settings.delegate_facts.is_some()),
    ("delegate_to", "x", |settings| settings.delegate_to.is_some()),
    ("diff", "true", |settings| settings.diff.is_some()),
    ("environment", "{A: b}", |settings| !settings.environment.is_empty()),
    ("ignore_errors", "true", |settings| settings.ignore_errors.is_some()),
    ("ignore_unreachable", "true", |settings| settings.ignore_unreachable.is_some()),
    ("module_defaults", "{ping: {data: x}}", |settings| !settings.module_defaults.is_empty()),
    ("no_log", "true", |settings| settings.no_log.is_some()),
    ("notify", "x", |settings| !settings.notify.is_empty()),
    ("port", "22", |settings| settings.port.is_some()),
    ("remote_user", "x", |settings| settings.remote_user.is_some()),
    ("run_once", "true", |settings| settings.run_once.is_some()),
    ("tags", "[x]", |settings| !settings.tags.is_empty()),
    ("throttle", "1", |settings| settings.throttle.is_some()),
    ("timeout", "1", |settings| settings.timeout.is_some()),
    ("when", "x", |settings| !settings.when.is_empty()),
];

#[test]
fn keywords_reach_the_task_from_where_they_may_stand() {
    let task = "{name: t, debug: }";
    for (name, value, is_set) in INHERITED {
        let places = [
            (On::Play, format!("- hosts: all\n  {name}: {value}\n  tasks: [{task}]\n")),
            (On::Import, format!("- import_playbook: more.yml\n  {name}: {value}\n")),
            (On::Role, format!("- hosts: all\n  roles:\n    - role: r\n      {name}: {value}\n")),
            (On::Block, format!("- hosts: all\n  tasks:\n    - block: [{task}]\n      {name}: {value}\n")),
            (On::Task, format!("- hosts: all\n  tasks:\n    - debug:\n      {name}: {value}\n")),
            (On::Handler, format!("- hosts: all\n  handlers:\n    - debug:\n      {name}: {value}\n")),
        ];
        for (on, text) in places {
            let project = Project::new(&[
                ("play.yml", text.as_str()),
                ("more.yml", "- {hosts: all, tasks: [{name: t, debug: }]}\n"),
                ("roles/r/tasks/main.yml", "- {name: t, debug: }\n"),
            ]);
            let loaded = project.load();
            // further keys of a role are its parameters
            if find(name, on).is_none() && on == On::Role {
                continue;
            }
            if find(name, on).is_none() {
                let shown = loaded.err().map(|error| project.show(&error)).unwrap_or_default();
                assert!(
                    shown.contains(&format!("`{name}` cannot stand on {}", on.word())),
                    "{name} on {on:?}: {shown}"
                );
                continue;
            }
            let plays = loaded.unwrap_or_else(|error| panic!("{name} on {on:?}: {}", project.show(&error)));
            let sections = [&plays[0].role_tasks, &plays[0].tasks, &plays[0].handlers];
            let tasks: Vec<_> = sections.into_iter().flat_map(|items| flat(items)).collect();
            // of an import these alone reach what is imported, as with Ansible; the others are warned of
            let counts = on != On::Import || ["tags", "vars", "when"].contains(name);
            assert!(tasks.iter().all(|task| is_set(&task.settings) == counts) && !tasks.is_empty(), "{name} on {on:?}");
        }
    }
}
