//! Plays the engine for tests of modules: answers reads and makes changes through a real shell on this machine.
//!
//! Every certain change is held to what it said it would leave behind, so each test of a module is also a test of
//! its predictions.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use crate::connect::shell::{Guard, Request, Response};
use crate::connect::{Connection, HostKeyChecking, Identity, Target, Transport};
use crate::host::port::Waiting;
use crate::host::{Applied, Change, Failure, Host, Inverse, Port, Query, SlotId, Step};
use crate::template::{Context, SearchPath, Warnings};
use crate::value::{Map, Value};

use super::args::validate;
use super::{Action, Invocation, Module, Outcome, Settings};

/// One invocation of a module, and everything it did.
pub struct Played {
    pub result: Result<Outcome, Failure>,
    pub changes: Vec<Change>,
    /// Batches of reads that were needed.
    pub batches: usize,
}

/// How a test plays the engine.
#[derive(Debug, Clone)]
pub struct Play {
    pub check: bool,
    /// The shell of the host.
    pub shell: &'static str,
}

impl Default for Play {
    fn default() -> Play {
        Play { check: false, shell: "sh" }
    }
}

/// Runs a module on this machine: arguments as a playbook would give them.
pub fn run_module(module: &'static Module, args: &[(&str, Value)]) -> Result<Outcome, Failure> {
    play(module, args, &Play::default()).result
}

/// The same in check mode.
pub fn check_module(module: &'static Module, args: &[(&str, Value)]) -> Result<Outcome, Failure> {
    play(module, args, &Play { check: true, ..Play::default() }).result
}

/// Runs a module and keeps its changes.
pub fn play(module: &'static Module, args: &[(&str, Value)], play: &Play) -> Played {
    play_in(module, args, play, context())
}

/// Runs a module with a template context of the test's own.
pub fn play_in(module: &'static Module, args: &[(&str, Value)], play: &Play, context: Context) -> Played {
    let given: Map = args.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
    let args = match validate(module, &given) {
        Ok(args) => args,
        Err(failure) => return Played { result: Err(failure), changes: Vec::new(), batches: 0 },
    };
    let Action::Module(run) = module.action else { panic!("{} is an action of the engine", module.name) };
    runtime().block_on(async {
        let port = Port::new("test");
        let identity = Arc::new(Identity::default());
        let host = Host::new(Arc::clone(&port), SlotId(1), identity, play.check);
        let settings = Arc::new(Settings {
            check: play.check,
            diff: true,
            target: Some(Arc::new(local())),
            ..Settings::default()
        });
        let future = run(Invocation { args, host, context, settings });
        drive(future, &port, play).await
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn drive(
    mut future: std::pin::Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send>>,
    port: &Port,
    play: &Play,
) -> Played {
    let mut connection = Connection::open_with_shell(&local(), play.shell).await.unwrap();
    let (mut changes, mut batches) = (Vec::new(), 0);
    let mut task = TaskContext::from_waker(Waker::noop());
    let result = loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut task) {
            break result;
        }
        if !port.has_questions() && !port.is_waiting(SlotId(1)) {
            // it lets time pass
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        let questions = port.take_questions();
        if !questions.is_empty() {
            batches += 1;
            let requests: Vec<Request> = questions.iter().map(|(_, query)| read(query)).collect();
            let responses = connection.run(&Identity::default(), &requests).await.unwrap();
            for (question, response) in questions.into_iter().zip(responses) {
                port.answer(question, response);
            }
            continue;
        }
        match port.take_waiting(SlotId(1)).expect("the module waits for nothing") {
            Waiting::Turn => {
                port.forget_all();
                port.resolve(SlotId(1), Ok(Applied::default()));
            }
            Waiting::Renewal { text, .. } => {
                connection.close().await;
                connection = Connection::open_with_shell(&local(), play.shell).await.unwrap();
                let verb = crate::connect::shell::Verb::Script { text, stdin: None };
                let request = Request { verb, guard: Guard::Always, expect: None, writes: None };
                let responses = connection.run(&Identity::default(), &[request]).await;
                let applied = responses.map(|responses| Applied { responses, check: false });
                port.resolve(SlotId(1), applied.map_err(Failure::from));
            }
            Waiting::Change { change, check, .. } => {
                let result = if check {
                    Ok(Applied { check, ..Applied::default() })
                } else {
                    apply(&mut connection, &change).await
                };
                port.invalidate(&change.footprint);
                changes.push(change);
                port.resolve(SlotId(1), result);
            }
        }
    };
    connection.close().await;
    Played { result, changes, batches }
}

/// Makes a change, and holds it to its predictions.
async fn apply(connection: &mut Connection, change: &Change) -> Result<Applied, Failure> {
    if !change.certain {
        // the module itself judges the answers
        let requests: Vec<Request> = change.steps.iter().map(request).collect();
        let responses = connection.run(&Identity::default(), &requests).await.unwrap();
        return Ok(Applied { responses, check: false });
    }
    run_steps(connection, &change.steps).await?;
    let requests: Vec<Request> = change.effects.iter().map(|(query, _)| read(query)).collect();
    let answers = connection.run(&Identity::default(), &requests).await.unwrap();
    for ((query, predicted), answer) in change.effects.iter().zip(answers) {
        assert_eq!(comparable(query, predicted), comparable(query, &answer), "predicted (left) of {query:?}");
    }
    Ok(Applied::default())
}

fn request(step: &Step) -> Request {
    Request { verb: step.verb(), guard: Guard::Chained, expect: step.expect.clone(), writes: step.writes.clone() }
}

/// What a change can predict of an answer.
fn comparable(query: &Query, response: &Response) -> (bool, String) {
    let mut text = response.text();
    if let Query::Attributes { .. } = query
        && response.success()
    {
        let fields: Vec<&str> = text.splitn(14, '\t').collect();
        let size = if fields[0] == "f" { fields[6] } else { "" };
        text = [&fields[..6], &[size], &fields[13..]].concat().join("\t");
    }
    (response.success(), text)
}

async fn run_steps(connection: &mut Connection, steps: &[Step]) -> Result<Vec<Response>, Failure> {
    let requests: Vec<Request> = steps.iter().map(request).collect();
    let responses = connection.run(&Identity::default(), &requests).await.unwrap();
    for (step, response) in steps.iter().zip(&responses) {
        assert!(response.code.is_some(), "a change stopped before\n{}", step.script);
        if !response.success() {
            return Err(Failure::new(response.error_text().trim().to_owned()));
        }
        if let Some(expect) = &step.expect {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&response.text()), words(expect), "read back after\n{}", step.script);
        }
    }
    Ok(responses)
}

/// Takes changes back, the last first.
pub fn undo(changes: &[Change]) {
    undo_in(changes, "sh");
}

/// The same through this shell.
pub fn undo_in(changes: &[Change], shell: &str) {
    runtime().block_on(async {
        let mut connection = Connection::open_with_shell(&local(), shell).await.unwrap();
        for change in changes.iter().rev() {
            let Inverse::Steps(steps) = &change.inverse else { panic!("{} has no inverse", change.what) };
            for step in steps {
                run_steps(&mut connection, std::slice::from_ref(step)).await.unwrap();
            }
        }
        connection.close().await;
    });
}

fn read(query: &Query) -> Request {
    Request { verb: query.verb(), guard: Guard::Always, expect: None, writes: None }
}

fn local() -> Target {
    Target {
        name: "test".to_owned(),
        transport: Transport::Local,
        address: "localhost".to_owned(),
        port: None,
        user: None,
        password: None,
        private_key_file: None,
        ssh_args: Vec::new(),
        host_key_checking: HostKeyChecking::Strict,
        connect_timeout: Duration::from_secs(20),
    }
}

/// A context without any variable.
pub fn context() -> Context {
    context_with([])
}

/// A context with these variables.
pub fn context_with<const N: usize>(variables: [(&str, Value); N]) -> Context {
    context_of(crate::value::object(variables), Arc::default())
}

/// A context with these variables and search path.
pub fn context_of(variables: Map, search: Arc<SearchPath>) -> Context {
    struct Variables(Map);
    impl crate::template::Scope for Variables {
        fn get(&self, name: &str) -> Result<Option<Value>, crate::value::Interruption> {
            Ok(self.0.get(name).cloned())
        }
        fn names(&self) -> Vec<String> {
            self.0.keys().map(|name| name.to_string()).collect()
        }
    }
    Context::new(Arc::new(Variables(variables)), search, Warnings::default())
}

/// The shells that `sh` is on the systems of this world, as far as this machine has them.
pub fn shells() -> Vec<&'static str> {
    ["dash", "bash --posix", "busybox ash"]
        .into_iter()
        .filter(|shell| {
            let program = shell.split(' ').next().unwrap_or_default();
            std::process::Command::new("sh")
                .args(["-c", &format!("command -v {program}")])
                .output()
                .is_ok_and(|output| output.status.success())
        })
        .collect()
}

/// True if this machine's accounts can be changed; tests that need it are skipped elsewhere, and say so.
pub fn can_change_accounts() -> bool {
    let script =
        "[ \"$(id -u)\" = 0 ] && PATH=$PATH:/usr/sbin:/sbin command -v useradd groupadd chpasswd chage >/dev/null";
    let can = std::process::Command::new("sh").args(["-c", script]).status().is_ok_and(|status| status.success());
    if !can {
        skip("changing accounts needs root and useradd");
    }
    can
}

/// Says on the terminal, past the capture of tests, that a test is skipped.
pub fn skip(reason: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Tests that change the accounts of this machine come one after the other.
pub fn accounts_lock() -> std::sync::MutexGuard<'static, ()> {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Everything below a directory: path, type, mode, owner, content or target; to compare before and after.
pub fn snapshot(directory: &std::path::Path) -> Vec<String> {
    let script = "cd \"$1\" && find . ! -name . | LC_ALL=C sort | while IFS= read -r p; do \
                  printf '%s %s ' \"$p\" \"$(stat -c '%F %a %u %g' \"$p\")\"; \
                  if [ -L \"$p\" ]; then readlink \"$p\"; elif [ -f \"$p\" ]; then sha1sum <\"$p\"; else echo; fi; done";
    let output = std::process::Command::new("sh").args(["-c", script, "sh"]).arg(directory).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
