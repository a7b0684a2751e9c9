//! ansible.builtin.wait_for: waits for a port, a file, or the end of connections.

use std::time::{Duration, Instant};

use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host};
use crate::value::{Map, Value};

use super::file_common::path::absolute;
use super::file_common::text::Coding;
use super::tcp_port::{connections, names_of, port_script};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};
use crate::python_regex::{Flags, captures_from, compile};

pub const MODULE: Module = Module {
    name: "ansible.builtin.wait_for",
    aliases: &[],
    summary: "Waits for a port, a file, words in them, or the end of connections; as the host sees it",
    args: &[
        Arg::new("host", Type::Str, "Name or address that has the port").default("127.0.0.1"),
        Arg::new("port", Type::Int, "The TCP port"),
        Arg::new("path", Type::Path, "The file"),
        Arg::new("state", Type::Str, "What is waited for")
            .default("started")
            .choices(&["absent", "drained", "present", "started", "stopped"]),
        Arg::new("search_regex", Type::Str, "Python regular expression that the file or the port's words must match"),
        Arg::new("timeout", Type::Int, "The longest wait in seconds; without a port or file, how long to wait")
            .default("300"),
        Arg::new("connect_timeout", Type::Int, "The longest wait for one connection, in seconds").default("5"),
        Arg::new("delay", Type::Int, "Seconds before the first look").default("0"),
        Arg::new("sleep", Type::Int, "Seconds between looks").default("1"),
        Arg::new("active_connection_states", Type::List, "States of connections that count (drained)")
            .default("ESTABLISHED,FIN_WAIT1,FIN_WAIT2,SYN_RECV,SYN_SENT,TIME_WAIT"),
        Arg::new("exclude_hosts", Type::List, "Names or addresses whose connections do not count (drained)"),
        Arg::new("msg", Type::Str, "What to say if it never comes"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::None,
    diff: Support::None,
    returns: &[
        ("elapsed", "seconds waited"),
        ("match_groups", "groups of the match of `search_regex`"),
        ("match_groupdict", "its named groups"),
        ("state", "what was waited for"),
        ("port", "the port"),
        ("path", "the file"),
        ("search_regex", "as given"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let mut goal = Goal::parse(&args)?;
    if host.is_check() {
        return Ok(Outcome::skipped("remote module (ansible.builtin.wait_for) does not support check mode"));
    }
    if let What::File { path } = &mut goal.what {
        *path = absolute(&host, path).await?;
    }
    let seconds = |name: &str| Duration::from_secs(u64::try_from(args.int(name).unwrap_or(0)).unwrap_or(0));
    let (timeout, sleep) = (seconds("timeout"), seconds("sleep"));
    // time passes only in its turn, and whatever was read before it is old afterwards
    host.turn().await?;
    let begun = Instant::now();
    tokio::time::sleep(seconds("delay")).await;
    if let What::Nothing = goal.what {
        tokio::time::sleep(timeout).await;
        return Ok(goal.outcome(&args, begun, None));
    }
    let mut look = Look { attempt: 0, marks: String::new() };
    while begun.elapsed() < timeout {
        look.attempt += 1;
        let left = timeout.saturating_sub(begun.elapsed());
        if let Some(found) = goal.reached(&host, &args, &mut look, left).await? {
            return Ok(goal.outcome(&args, begun, Some(found)));
        }
        tokio::time::sleep(sleep).await;
    }
    let message = args.str("msg").map_or_else(|| goal.timed_out(&args), str::to_owned);
    Err(Failure::new(message).with("elapsed", begun.elapsed().as_secs()))
}

/// What is waited for.
#[derive(Debug)]
struct Goal {
    what: What,
    /// `absent`, `stopped`: that it is not there.
    gone: bool,
    search: Option<String>,
}

#[derive(Debug)]
enum What {
    Nothing,
    Port { host: String, port: u16 },
    File { path: String },
    Drained { host: String, port: u16 },
}

/// What earlier looks leave for the next.
struct Look {
    attempt: u32,
    /// Size and times of the file when it was searched last.
    marks: String,
}

/// The groups of the match.
#[derive(Debug, Default)]
struct Found {
    groups: Vec<Value>,
    named: Map,
}

impl Goal {
    fn parse(args: &Args) -> Result<Goal, Failure> {
        let refuse = |message: &str| Err(Failure::new(message).with("elapsed", 0));
        let state = args.text("state");
        let port = match args.int("port").filter(|port| *port != 0) {
            None => None,
            Some(port) => match u16::try_from(port) {
                Ok(port) => Some(port),
                Err(_) => return refuse(&format!("{port} is no TCP port: 1 to 65535")),
            },
        };
        let path = args.str("path").filter(|path| !path.is_empty());
        if port.is_some() && path.is_some() {
            return refuse("port and path parameter can not both be passed to wait_for");
        }
        if path.is_some() && matches!(state, "stopped" | "drained") {
            return refuse(&format!("state={state} should only be used for checking a port in the wait_for module"));
        }
        if args.has("exclude_hosts") && state != "drained" {
            return refuse("exclude_hosts should only be with state=drained");
        }
        for name in args.list("active_connection_states") {
            if super::tcp_port::state_number(&name).is_none() {
                return refuse(&format!("unknown active_connection_state ({name}) defined"));
            }
        }
        let search = args.str("search_regex").map(str::to_owned);
        if let Some(pattern) = &search {
            compile(pattern, multiline())?;
        }
        let host = args.text("host").to_owned();
        let what = match (state, port, path) {
            ("drained", Some(port), _) => What::Drained { host, port },
            ("drained", None, _) => return refuse("state=drained needs a port"),
            (_, Some(port), _) => What::Port { host, port },
            (_, None, Some(path)) => What::File { path: path.to_owned() },
            (_, None, None) => What::Nothing,
        };
        Ok(Goal { what, gone: matches!(state, "absent" | "stopped"), search })
    }

    /// Looks once. Each look asks anew, so its text has a number.
    async fn reached(
        &self,
        host: &Host,
        args: &Args,
        look: &mut Look,
        left: Duration,
    ) -> Result<Option<Found>, Failure> {
        let ask = |text: String| {
            let text = format!("# look {}\n{text}", look.attempt);
            host.read(Script { text, footprint: Footprint::Everything })
        };
        match &self.what {
            What::Nothing => Ok(Some(Found::default())),
            What::File { path } => {
                let path = crate::connect::shell::quote(path);
                let Some(search) = self.search.as_ref().filter(|_| !self.gone) else {
                    let there = ask(format!("[ -e {path} ]")).await?.success();
                    return Ok((there != self.gone).then(Found::default));
                };
                // a file that did not change since the last look is not sent again
                let text = format!(
                    "[ -e {path} ] || exit 3\nm=$(stat -L -c '%s %y %z %i' {path} 2>/dev/null); printf '%s\\n' \"$m\"\n\
                     [ -n \"$m\" ] && [ \"$m\" = {} ] || cat {path}",
                    crate::connect::shell::quote(&look.marks)
                );
                let answer = ask(text).await?;
                let end = answer.stdout.iter().position(|byte| *byte == b'\n').unwrap_or(answer.stdout.len());
                let (marks, rest) = answer.stdout.split_at(end);
                if !answer.success() {
                    return Ok(None);
                }
                look.marks = String::from_utf8_lossy(marks).into_owned();
                find(search, rest.get(1..).unwrap_or_default())
            }
            What::Port { host: name, port } => {
                let limit = left.as_secs().clamp(1, args.int("connect_timeout").unwrap_or(5).max(1).unsigned_abs());
                let search = self.search.as_ref().filter(|_| !self.gone);
                // a server that says nothing more keeps the connection open: the first looks listen for a moment only
                let listen = search.map(|_| u64::from(look.attempt).min(left.as_secs().max(1)));
                let answer = ask(port_script(name, *port, limit, listen)).await?;
                match (answer.code, search) {
                    (Some(127), _) => Err(Failure::new(format!(
                        "this host has nothing to try the port {name}:{port} with: no bash, nc, ncat or curl"
                    ))),
                    (Some(0), _) if self.gone => Ok(None),
                    (Some(0), Some(search)) => find(search, &answer.stdout),
                    (Some(0), None) => Ok(Some(Found::default())),
                    _ => Ok(self.gone.then(Found::default)),
                }
            }
            What::Drained { host: name, port } => {
                let excluded = args.list("exclude_hosts");
                let text = format!(
                    "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null\nprintf '\\036'\n{}\nprintf '\\036'\n{}",
                    names_of(std::slice::from_ref(name)),
                    names_of(&excluded)
                );
                let answer = ask(text).await?;
                let parts = super::programs::parts(&answer, 3);
                let states = args.list("active_connection_states");
                let count = connections(&parts[0], *port, &parts[1], &parts[2], &states);
                Ok((count == 0).then(Found::default))
            }
        }
    }

    fn outcome(&self, args: &Args, begun: Instant, found: Option<Found>) -> Outcome {
        let found = found.unwrap_or_default();
        let path = match &self.what {
            What::File { path } => Value::from(path.as_str()),
            _ => Value::Null,
        };
        let own = |name: &str| args.get(name).cloned().unwrap_or(Value::Null);
        Outcome::ok()
            .with("elapsed", begun.elapsed().as_secs())
            .with("state", own("state"))
            .with("port", own("port"))
            .with("search_regex", own("search_regex"))
            .with("path", path)
            .with("match_groups", Value::list(found.groups))
            .with("match_groupdict", found.named)
    }

    fn timed_out(&self, args: &Args) -> String {
        match (&self.what, &self.search, self.gone) {
            (What::Port { host, port }, _, true) => format!("Timeout when waiting for {host}:{port} to stop."),
            (What::File { path }, _, true) => format!("Timeout when waiting for {path} to be absent."),
            (What::Port { host, port }, Some(search), _) => {
                format!("Timeout when waiting for search string {search} in {host}:{port}")
            }
            (What::File { path }, Some(search), _) => {
                format!("Timeout when waiting for search string {search} in {path}")
            }
            (What::Port { host, port }, None, _) => format!("Timeout when waiting for {host}:{port}"),
            (What::File { path }, None, _) => format!("Timeout when waiting for file {path}"),
            (What::Drained { host, port }, ..) => format!("Timeout when waiting for {host}:{port} to drain"),
            (What::Nothing, ..) => format!("Timeout after {} seconds", args.int("timeout").unwrap_or(0)),
        }
    }
}

fn multiline() -> Flags {
    Flags { multiline: true, ..Flags::default() }
}

/// The first match in these bytes.
fn find(pattern: &str, content: &[u8]) -> Result<Option<Found>, Failure> {
    let coding = Coding::of(content);
    let regex = compile(&coding.pattern(pattern), multiline())?;
    let text = coding.decode(content);
    let Some(captures) = captures_from(&regex, &text, 0)? else { return Ok(None) };
    let value = |group: Option<&str>| group.map_or(Value::Null, Value::from);
    let groups = (1..captures.len()).map(|index| value(captures.get(index).map(|group| group.as_str()))).collect();
    let names = regex.capture_names().flatten();
    let named = names.map(|name| (name.into(), value(captures.name(name).map(|group| group.as_str())))).collect();
    Ok(Some(Found { groups, named }))
}

#[cfg(test)]
#[path = "wait_for_tests.rs"]
mod tests;
