//! How hosts go through a play beside one another: `throttle`, `strategy`, and what they wait for.

use trimtab::engine::options::Options;
use trimtab::value::object;

use crate::support::{Playing, Told};

fn play(directory: &std::path::Path, inventory: &str, playbook: &str, window: usize) -> Told {
    std::fs::write(directory.join("site.yml"), playbook).unwrap();
    let options = Options { window, ..Options::default() };
    Playing { directory, playbook: "site.yml", inventory, extra: object([]), options }.run()
}

#[test]
fn throttle_limits_how_many_hosts_run_a_task() {
    let task = |throttle: &str| {
        format!(
            "- hosts: all\n  gather_facts: false\n  tasks:\n    - name: t\n      throttle: {throttle}\n      \
             shell: echo + >>{{{{ root }}}}/log; sleep 0.3; echo - >>{{{{ root }}}}/log\n"
        )
    };
    for (throttle, limit) in [("2", 2), ("\"{{ 1 }}\"", 1), ("0", 4)] {
        for window in [256, 1] {
            let scratch = tempfile::tempdir().unwrap();
            let told = play(scratch.path(), "a,b,c,d", &task(throttle), window);
            assert_eq!(told.lines().iter().filter(|line| line.ends_with("changed")).count(), 4, "{:?}", told.lines());
            let (mut running, mut most) = (0, 0);
            for line in std::fs::read_to_string(scratch.path().join("log")).unwrap().lines() {
                running += if line == "+" { 1 } else { -1 };
                most = most.max(running);
            }
            assert_eq!(most, limit, "throttle {throttle}, window {window}");
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let told = play(scratch.path(), "a,", &task("\"{{ 'some' }}\""), 256);
    assert!(told.message("t").contains("the keyword `throttle` wants a number, got `some`"), "{}", told.message("t"));
}

#[test]
fn a_throttled_task_sees_what_other_hosts_set_before() {
    let playbook = "- hosts: all\n  gather_facts: false\n  tasks:\n    - shell: sleep 0.3; echo late\n      register: said\n      \
                    when: inventory_hostname == 'b'\n    - name: t\n      throttle: 1\n      debug:\n        \
                    msg: \"{{ hostvars.b.said.stdout }}\"\n";
    for window in [256, 1] {
        let scratch = tempfile::tempdir().unwrap();
        let told = play(scratch.path(), "a,b", playbook, window);
        assert_eq!(told.message("t"), "late", "{:?}", told.lines());
    }
}

/// Host `a` waits in its first task for a file that host `b` makes in its second.
fn waiting(strategy: &str) -> Told {
    let scratch = tempfile::tempdir().unwrap();
    let playbook = format!(
        "- hosts: all\n  gather_facts: false\n  strategy: {strategy}\n  any_errors_fatal: true\n  tasks:\n    \
         - name: wait\n      shell: for i in 1 2 3 4 5 6 7 8 9 10; do [ -e {{{{ root }}}}/made ] && exit; sleep 0.3; done; exit 1\n      \
         when: inventory_hostname == 'a'\n    \
         - name: make\n      file: {{path: \"{{{{ root }}}}/made\", state: touch}}\n      when: inventory_hostname == 'b'\n    \
         - name: once\n      debug: {{msg: x}}\n      run_once: true\n"
    );
    play(scratch.path(), "a,b", &playbook, 256)
}

#[test]
fn hosts_that_are_free_do_not_wait_for_one_another() {
    for strategy in ["free", "host_pinned", "\"{{ 'free' }}\""] {
        let lines = waiting(strategy).lines();
        for line in ["a wait: changed", "b make: changed", "a once: ok", "b once: ok"] {
            assert!(lines.contains(&line.to_owned()), "{strategy}: {lines:?}");
        }
    }
    let lines = waiting("linear").lines();
    assert!(lines.contains(&"a wait: failed".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("make: changed")), "{lines:?}");
}
