//! `async` with `poll: 0` and `async_status`.

use trimtab::engine::options::Options;
use trimtab::value::{Value, object};

use crate::support::{Playing, Told};

fn play(directory: &std::path::Path, tasks: &str, options: Options) -> Told {
    let playbook = format!(
        "- hosts: all\n  gather_facts: false\n  vars:\n    ansible_async_dir: \"{{{{ root }}}}/jobs\"\n  tasks:\n{tasks}"
    );
    std::fs::write(directory.join("site.yml"), playbook).unwrap();
    Playing { directory, playbook: "site.yml", inventory: "a,", extra: object([]), options }.run()
}

fn value(told: &Told, task: &str, key: &str) -> Value {
    let results = told.results();
    let result = results.iter().rev().find(|result| result.task.name == task && result.item.is_none()).unwrap();
    result.result.result.get(key).cloned().unwrap_or_default()
}

const TASKS: &str = "    - name: start
      shell: while [ ! -e {{ root }}/go ]; do sleep 0.1; done; echo \"done $WORD\"; exit {{ item }}
      args: {chdir: \"{{ root }}\"}
      environment: {WORD: now}
      async: 60
      poll: 0
      loop: [0, 4]
      register: jobs
    - name: running
      async_status: {jid: \"{{ jobs.results[0].ansible_job_id }}\"}
    - name: go
      file: {path: \"{{ root }}/go\", state: touch}
    - name: wait
      async_status: {jid: \"{{ item.ansible_job_id }}\"}
      loop: \"{{ jobs.results }}\"
      loop_control: {label: \"{{ item.item }}\"}
      register: job
      until: job is finished
      retries: 100
      delay: 0.1
      ignore_errors: true
    - name: last
      debug: {msg: \"{{ job.results | map(attribute='stdout') | join }} {{ job.results | map(attribute='rc') | join }}\"}
    - name: remove
      async_status: {jid: \"{{ jobs.results[0].ansible_job_id }}\", mode: cleanup}
    - name: gone
      async_status: {jid: \"{{ jobs.results[0].ansible_job_id }}\"}
      ignore_errors: true
    - name: kept
      command: \"false\"
      args: {creates: /etc/passwd}
      async: 60
      poll: 0
      register: kept
    - name: asked
      async_status: {jid: \"{{ kept.ansible_job_id }}\"}
";

#[test]
fn a_task_goes_on_in_the_background_and_is_asked_for() {
    for window in [256, 1] {
        let scratch = tempfile::tempdir().unwrap();
        let told = play(scratch.path(), TASKS, Options { window, ..Options::default() });
        let lines = told.lines();
        assert!(lines.contains(&"a start (0): changed".to_owned()), "{lines:?}");
        assert!(!value(&told, "running", "finished").is_truthy(), "{lines:?}");
        assert!(value(&told, "running", "started").is_truthy());
        assert!(lines.contains(&"a wait (0): changed".to_owned()), "{lines:?}");
        assert!(lines.contains(&"a wait (4): ignored".to_owned()), "{lines:?}");
        assert_eq!(told.message("last"), "done nowdone now 04", "{lines:?}");
        let erased = value(&told, "remove", "erased").to_text().into_owned();
        assert!(erased.starts_with(scratch.path().to_str().unwrap()) && !std::path::Path::new(&erased).exists());
        assert_eq!(told.message("gone"), "could not find job");
        assert!(value(&told, "asked", "stdout").to_text().contains("skipped, since /etc/passwd exists"), "{lines:?}");
    }
}

#[test]
fn what_the_controller_takes_part_in_refuses_async() {
    for (call, name) in [("raw: echo plain", "raw"), ("script: say.sh word", "script"), ("copy: {dest: /a}", "copy")] {
        let scratch = tempfile::tempdir().unwrap();
        let task = format!("    - name: start\n      {call}\n      async: 60\n");
        let told = play(scratch.path(), &task, Options::default());
        assert_eq!(told.message("start"), format!("This action ({name}) does not support async."));
    }
}

#[test]
fn nothing_starts_in_check_mode_or_where_it_cannot() {
    let scratch = tempfile::tempdir().unwrap();
    let start = "    - name: start\n      command: touch {{ root }}/made\n      async: 60\n      poll: 0\n";
    let told = play(scratch.path(), start, Options { check: true, ..Options::default() });
    assert_eq!(told.lines(), ["a start: skipped"]);
    assert!(!scratch.path().join("made").exists());
    let tasks = "    - name: start\n      file: {path: \"{{ root }}/made\", state: touch}\n      async: 60\n      poll: \"{{ 0 }}\"\n";
    let told = play(scratch.path(), tasks, Options::default());
    assert!(told.message("start").starts_with("`file` cannot run in the background"), "{}", told.message("start"));
    let tasks =
        "    - name: start\n      command: pwd\n      args: {chdir: /no/such}\n      async: 60\n      poll: 0\n";
    let told = play(scratch.path(), tasks, Options::default());
    assert!(told.message("start").contains("/no/such"), "{}", told.message("start"));
}
