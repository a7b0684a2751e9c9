use std::sync::Arc;

use super::*;
use crate::connect::shell::Response;
use crate::connect::{Become, Identity};
use crate::engine::event::TaskInfo;
use crate::engine::recorder::{ChangeEnd, ChangeNumber, Intent, Recorder};
use crate::host::{Change, Footprint, Inverse, Query, Step};
use crate::source::{Place, Source};

fn start() -> RunStart {
    RunStart {
        command: "play".into(),
        directory: "/srv/ops".into(),
        playbooks: vec!["site.yml".into()],
        inventory: vec!["/srv/ops/hosts".into()],
        options: serde_json::Map::from_iter([("user".to_owned(), "admin".into())]),
        undoes: None,
    }
}

fn intent(host: &str, task: &str, what: &str) -> Intent {
    let change = Change::certain(what, Footprint::path("/etc/a"))
        .step(Step::new("cat >/etc/a").stdin("the-secret"))
        .inverse(Inverse::Steps(vec![Step::new("rm /etc/a")]))
        .leaves(Query::Content("/etc/a".into()), Response::output("the-secret"));
    Intent {
        host: host.into(),
        task: Arc::new(TaskInfo {
            name: task.into(),
            action: "copy".into(),
            place: Place::new(&Source::new("site.yml", ""), 4, 7),
            is_handler: false,
            included: None,
        }),
        item: None,
        no_log: false,
        identity: Arc::new(Identity {
            become_as: Some(Become {
                method: "sudo".into(),
                user: "root".into(),
                password: None,
                exe: None,
                flags: None,
            }),
        }),
        change: Arc::new(change),
        before: vec![Some(Response::missing())],
    }
}

fn begin(journalist: &Journalist, intents: Vec<Intent>) -> Vec<ChangeNumber> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(journalist.begin(intents)).unwrap()
}

#[test]
fn a_change_is_on_disk_before_it_is_answered_and_marked_after() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/journal.db");
    let journalist = Journalist::begin(&path, start()).unwrap();
    let numbers =
        begin(&journalist, vec![intent("kp001", "motd", "file /etc/a"), intent("kp001", "motd", "file /etc/b")]);
    // another process sees it at once
    let reader = Journal::open_existing(&path).unwrap().unwrap();
    let all = ChangeFilter::default();
    let rows = reader.changes(&all).unwrap();
    assert_eq!(rows.iter().map(|row| row.state).collect::<Vec<_>>(), [ChangeState::Sent; 2]);
    assert_eq!(reader.run("last").unwrap().state, RunState::UnderWay);
    journalist.end(numbers[0], ChangeEnd::Made);
    journalist.end(numbers[1], ChangeEnd::Failed("no space".into()));
    assert_eq!(journalist.close(2).unwrap(), Some(1));
    let rows = reader.changes(&all).unwrap();
    assert_eq!(rows.iter().map(|row| row.state).collect::<Vec<_>>(), [ChangeState::Made, ChangeState::Failed]);
    assert_eq!(rows[1].reason.as_deref(), Some("no space"));
    assert_eq!(rows[0].become_as, Some(("sudo".to_owned(), "root".to_owned())));
    let recorded = reader.recorded(&rows[0]).unwrap();
    assert_eq!(recorded.observations[0].before, Some(Response::missing()));
    let run = reader.run("1").unwrap();
    assert_eq!((run.state, run.exit_code, run.changes, run.hosts, run.doubtful), (RunState::Ended, Some(2), 1, 1, 1));
    assert_eq!((run.playbooks, run.options["user"].as_str()), (vec!["site.yml".to_owned()], Some("admin")));
}

#[test]
fn contents_are_nowhere_in_the_files_and_only_the_owner_reads_them() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/journal.db");
    let journalist = Journalist::begin(&path, start()).unwrap();
    let hidden =
        Intent { no_log: true, item: Some("hidden-item".into()), ..intent("kp001", "user", "user hidden-name") };
    begin(&journalist, vec![intent("kp001", "motd", "file /etc/a"), hidden]);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let entry = entry.unwrap().path();
        assert_eq!(mode(&entry), 0o600, "{}", entry.display());
        let bytes = std::fs::read(&entry).unwrap();
        for secret in ["the-secret", "dGhlLXNlY3JldA", "hidden"] {
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret.as_bytes()),
                "{secret} in {}",
                entry.display()
            );
        }
    }
    journalist.close(0).unwrap();
}

#[test]
fn a_run_in_check_mode_leaves_nothing_unless_it_changes_something() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journalist = Journalist::later(&path, start());
    assert_eq!(journalist.close(0).unwrap(), None);
    assert!(!path.exists());
    let journalist = Journalist::later(&path, start());
    begin(&journalist, vec![intent("kp001", "motd", "file /etc/a")]);
    assert_eq!(journalist.close(0).unwrap(), Some(1));
}

#[test]
fn a_journal_that_cannot_be_used_is_said_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Journalist::begin(&file.join("journal.db"), start()).err().unwrap();
    assert!(format!("{error:?}").contains("TRIMTAB_JOURNAL=off"), "{error:?}");
    std::fs::write(directory.path().join("journal.db"), "this is no database, but a text of some length").unwrap();
    assert!(Journalist::begin(&directory.path().join("journal.db"), start()).is_err());
}

#[test]
fn what_is_taken_back_is_marked_and_marked_anew_when_that_is_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let make = |takes_back: Option<i64>| {
        let journalist = Journalist::begin(&path, start()).unwrap();
        let mut intent = intent("kp001", "motd", "file /etc/a");
        Arc::make_mut(&mut intent.change).takes_back = takes_back;
        let numbers = begin(&journalist, vec![intent]);
        journalist.end(numbers[0], ChangeEnd::Made);
        (numbers[0].0, journalist.close(0).unwrap().unwrap())
    };
    let undone_by = |number: i64| {
        let rows = Journal::open_existing(&path).unwrap().unwrap().changes(&ChangeFilter::default()).unwrap();
        rows.iter().find(|row| row.id == number).unwrap().undone_by
    };
    let (first, _) = make(None);
    let (undo, undo_run) = make(Some(first));
    assert_eq!(undone_by(first), Some(undo_run));
    let (_, redo_run) = make(Some(undo));
    assert_eq!((undone_by(first), undone_by(undo)), (None, Some(redo_run)));
}

#[test]
fn history_is_asked_by_host_and_by_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    for (host, what) in [("kp001", "sysctl vm.swappiness"), ("kp002", "sysctl vm.swappiness"), ("kp001", "file /etc/a")]
    {
        let journalist = Journalist::begin(&path, start()).unwrap();
        begin(&journalist, vec![intent(host, "task", what)]);
        journalist.close(0).unwrap();
    }
    let journal = Journal::open_existing(&path).unwrap().unwrap();
    let ids = |runs: Vec<RunRow>| runs.iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(journal.runs(None, 2).unwrap()), [3, 2]);
    assert_eq!(ids(journal.runs(Some("kp001"), 20).unwrap()), [3, 1]);
    let changes = |host: Option<&str>, what: Option<&str>| {
        let filter =
            ChangeFilter { host: host.map(str::to_owned), what: what.map(str::to_owned), ..ChangeFilter::default() };
        journal.changes(&filter).unwrap().iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(changes(None, Some("vm.swappiness")), [1, 2]);
    assert_eq!(changes(Some("kp001"), Some("vm.swappiness")), [1]);
    assert_eq!(journal.run("9").unwrap_err().kind(), crate::error::Kind::Input);
    assert_eq!(journal.run("x").unwrap_err().kind(), crate::error::Kind::Usage);
}
