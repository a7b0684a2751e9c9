//! Jobs in the background of a host: what `async` with `poll: 0` starts and `async_status` asks for.
//!
//! A job's state is JSON in `~/.ansible_async/JOB`, as Ansible has it: with `started` while it runs, without it once it
//! has ended. Source: <https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_async.html>

use std::time::Duration;

use crate::connect::shell::quote;
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::template::Context;
use crate::value::{Map, Value};

use super::shell_words::expanded;
use super::{Module, Outcome, Settings};

/// Modules whose whole work is a command of the host. All others need the controller until they are done.
const MODULES: &[&str] = &["command", "shell"];

/// Why a module cannot run in the background, if it cannot.
pub fn refusal(module: &Module) -> Option<String> {
    let name = module.bare_name();
    (!MODULES.contains(&name)).then(|| {
        format!(
            "`{name}` cannot run in the background (`async` with `poll: 0`): it needs the controller until it is done; \
             leave out `poll` to wait for it; {} can",
            MODULES.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        )
    })
}

/// Actions that Ansible refuses with `async`, whether it is waited for or not: the controller does part of their work.
const NEVER: &[&str] = &[
    "add_host",
    "assemble",
    "assert",
    "async_status",
    "copy",
    "debug",
    "fail",
    "fetch",
    "group_by",
    "include_vars",
    "pause",
    "raw",
    "reboot",
    "script",
    "set_fact",
    "set_stats",
    "template",
    "unarchive",
    "validate_argument_spec",
    "wait_for_connection",
];

/// The refusal of `async` for a module that never supports it.
pub fn never(module: &Module) -> Option<String> {
    let name = module.bare_name();
    NEVER.contains(&name).then(|| format!("This action ({name}) does not support async."))
}

/// What is to be done in the background.
pub struct Job {
    /// What a person calls it.
    pub what: String,
    /// Lines that set environment and directory; run before the job is started.
    pub preparation: String,
    pub work: Work,
}

pub enum Work {
    Run {
        /// Shell code.
        code: String,
        stdin: Option<Vec<u8>>,
        /// The return value `cmd`.
        command: Option<Value>,
        /// Empty lines at the end of the output are stripped.
        strip_empty_ends: bool,
    },
    /// There is nothing to do; this is the result.
    Done(Map),
}

/// Starts a job. It is killed once it has run for `limit`.
pub async fn start(
    job: Job,
    host: &Host,
    context: &Context,
    settings: &Settings,
    limit: Duration,
) -> Result<Outcome, Failure> {
    if host.is_check() {
        return Ok(Outcome::skipped("check mode and async cannot be used on same task."));
    }
    let name = name()?;
    let mut step = Step::new(format!("{}{}{}", job.preparation, directory(context)?, script(&name, &job.work, limit)));
    if let Work::Run { stdin: Some(stdin), .. } = job.work {
        step = step.stdin(stdin);
    }
    let footprint = if settings.only_looks { Footprint::nothing() } else { Footprint::Everything };
    let change = Change::uncertain(job.what, footprint)
        .step(step)
        .inverse(Inverse::None("what a command did is not known".to_owned()));
    let applied = host.change(change).await?;
    let response = applied.responses.first().cloned().unwrap_or_default();
    if !response.success() {
        let message = format!("cannot start the job: {}", response.error_text().trim());
        return Err(Failure::new(message).with("rc", i64::from(response.code.unwrap_or(-1))));
    }
    Ok(Outcome::changed()
        .with("ansible_job_id", name)
        .with("results_file", response.text().trim_end().to_owned())
        .with("started", true)
        .with("finished", false))
}

/// A name that no other job has.
fn name() -> Result<String, Failure> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Failure::new(format!("no random number can be had: {error}")))?;
    Ok(format!("j{}.{}", u64::from_le_bytes(bytes) % 1_000_000_000_000, std::process::id()))
}

/// The line that sets `trimtab_directory`: of `ansible_async_dir`, of the environment, or `~/.ansible_async`.
pub fn directory(context: &Context) -> Result<String, Failure> {
    let raw = context.scope.get("ansible_async_dir").map_err(Failure::interrupted)?;
    let given = raw.map(|raw| context.value(&raw)).transpose()?.filter(Value::is_truthy);
    let word = match given {
        Some(path) => expanded(path.to_text().trim_end_matches('/')),
        None => "${ANSIBLE_ASYNC_DIR:-$HOME/.ansible_async}".to_owned(),
    };
    Ok(format!("trimtab_directory={word}\n"))
}

/// Code that makes a job and prints the name of its file.
fn script(name: &str, work: &Work, limit: Duration) -> String {
    let state = match work {
        Work::Done(result) => Value::map(result.clone()).to_json().to_string(),
        Work::Run { .. } => serde_json::json!({"started": 1, "finished": 0, "ansible_job_id": name}).to_string(),
    };
    let mut code = format!(
        "(umask 077 && mkdir -p \"$trimtab_directory\") || exit\n\
         trimtab_job=$trimtab_directory/{name}\n\
         (umask 077 && printf '%s\\n' {} >\"$trimtab_job\") || exit\n",
        quote(&state)
    );
    if let Work::Run { stdin, .. } = work {
        let input = if stdin.is_some() { format!("$trimtab_directory/.{name}.in") } else { "/dev/null".to_owned() };
        code.push_str(&format!("trimtab_input={input}\n"));
        if stdin.is_some() {
            code.push_str("(umask 077 && cat >\"$trimtab_input\") || exit\n");
        }
        // the code goes by a pipe, so that no process list shows it
        code.push_str(&format!(
            "trimtab_group=\n\
             trimtab_runner=nohup\n\
             if command -v setsid >/dev/null 2>&1; then trimtab_group=1 trimtab_runner=setsid; fi\n\
             export trimtab_job trimtab_input trimtab_group\n\
             printf '%s\\n' {} | \"$trimtab_runner\" sh >/dev/null 2>&1 &\n",
            quote(&runner(work, limit))
        ));
    }
    code.push_str("printf '%s\\n' \"$trimtab_job\"\n");
    code
}

/// Functions that write JSON: `trimtab_text FILE`, the inside of a text, and `trimtab_answer`, which puts its standard
/// input in place of the job's state. Bytes that JSON does not allow in a text are written as it wants them.
const WRITING: &str = r#"trimtab_controls=
for trimtab_n in 001 002 003 004 005 006 007 010 011 013 014 015 016 017 020 021 022 023 024 025 026 027 030 031 032 033 034 035 036 037; do
  trimtab_c=$(printf "\\$trimtab_n")
  trimtab_controls="${trimtab_controls}s/$trimtab_c/$(printf '\\\\u%04x' "0$trimtab_n")/g;"
done
trimtab_text() {
  if [ -n "$trimtab_strip" ]; then sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$1"; else cat "$1"; fi |
    LC_ALL=C sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e "$trimtab_controls" -e '$!s/$/\\n/' | tr -d '\n\000'
  if [ -z "$trimtab_strip" ] && [ -s "$1" ] && [ -z "$(tail -c 1 "$1")" ]; then printf '\\n'; fi
}
trimtab_answer() {
  cat >"$trimtab_job.tmp" && mv "$trimtab_job.tmp" "$trimtab_job"
  rm -f "$trimtab_job.out" "$trimtab_job.err"
}
"#;

/// What runs in the background: the program, what kills it when its time is over, and what writes its result.
fn runner(work: &Work, limit: Duration) -> String {
    let Work::Run { code, command, strip_empty_ends, .. } = work else { return String::new() };
    let seconds = limit.as_secs_f64().ceil().max(1.0) as u64;
    let strip = if *strip_empty_ends { "1" } else { "" };
    let command = command.as_ref().map_or("null".to_owned(), |command| command.to_json().to_string());
    format!(
        r#"{{
trap '' HUP
trimtab_umask=$(umask)
umask 077
trimtab_strip={strip}
{WRITING}(
umask "$trimtab_umask"
exec <"$trimtab_input"
[ "$trimtab_input" = /dev/null ] || rm -f "$trimtab_input"
unset trimtab_job trimtab_input trimtab_group trimtab_umask trimtab_strip trimtab_controls trimtab_n trimtab_c
{code}
) >"$trimtab_job.out" 2>"$trimtab_job.err" &
trimtab_pid=$!
trimtab_begun=$(date +%s) trimtab_start=$(date '+%Y-%m-%d %H:%M:%S.000000')
(
trap 'kill "$trimtab_sleep" 2>/dev/null; exit' TERM
sleep {seconds} &
trimtab_sleep=$!
wait "$trimtab_sleep"
printf '{{"failed": true, "changed": true, "msg": "Timeout exceeded", "child_pid": %s}}\n' "$trimtab_pid" | trimtab_answer
if [ -n "$trimtab_group" ]; then kill -KILL "-$$"; else kill -KILL "$trimtab_pid" "$$"; fi
) &
trimtab_watch=$!
wait "$trimtab_pid"
trimtab_code=$?
kill "$trimtab_watch" 2>/dev/null
trimtab_took=$(($(date +%s) - trimtab_begun))
if [ "$trimtab_code" = 0 ]; then trimtab_end='"failed": false, "msg": ""'; else trimtab_end='"failed": true, "msg": "non-zero return code"'; fi
{{
printf '{{"changed": true, "rc": %s, %s, "cmd": %s, "stdout": "' "$trimtab_code" "$trimtab_end" {command}
trimtab_text "$trimtab_job.out"
printf '", "stderr": "'
trimtab_text "$trimtab_job.err"
printf '", "start": "%s", "end": "%s", "delta": "%d:%02d:%02d.000000"}}\n' "$trimtab_start" "$(date '+%Y-%m-%d %H:%M:%S.000000')" "$((trimtab_took / 3600))" "$((trimtab_took / 60 % 60))" "$((trimtab_took % 60))"
}} | trimtab_answer
}}"#,
        command = quote(&command)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;
    use crate::modules::testing::shells;

    fn run(code: &str) -> Work {
        Work::Run { code: code.to_owned(), stdin: None, command: Some("x 'y'".into()), strip_empty_ends: true }
    }

    /// Starts a job through this shell, which `sh` is in the background too, and waits for its end.
    fn ended(shell: &str, work: &Work, limit: u64) -> serde_json::Value {
        use std::io::Write;
        let scratch = tempfile::tempdir().unwrap();
        let mut words = shell.split(' ');
        let program = words.next().unwrap();
        let tools = scratch.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        let sh = tools.join("sh");
        std::fs::write(&sh, format!("#!/bin/sh\nexec {shell} \"$@\"\n")).unwrap();
        std::fs::set_permissions(&sh, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let directory = scratch.path().join("jobs");
        let text = format!(
            "trimtab_directory='{}'\n{}",
            directory.display(),
            script("j1.2", work, Duration::from_secs(limit))
        );
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let mut child = Command::new(program)
            .args(words)
            .args(["-c", &text])
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        if let Work::Run { stdin: Some(stdin), .. } = work {
            child.stdin.take().unwrap().write_all(stdin).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{shell}");
        let file = String::from_utf8(output.stdout).unwrap();
        assert_eq!(Path::new(file.trim_end()), directory.join("j1.2"), "{shell}");
        let begun = Instant::now();
        loop {
            let text = std::fs::read(file.trim_end()).unwrap();
            let state: serde_json::Value = serde_json::from_slice(&text)
                .unwrap_or_else(|error| panic!("{shell}: {error}: {}", String::from_utf8_lossy(&text)));
            let left: Vec<_> =
                std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
            if state.get("started").is_none() && left.len() == 1 {
                return state;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{shell}: {state} {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_job_leaves_its_result_as_json() {
        for shell in shells() {
            let code = "printf 'a\\tb \\\\ \"q\" \\033[1m\\n\\303\\244 & end\\n\\n\\n'; echo no >&2; exit 3";
            let state = ended(shell, &run(code), 60);
            assert_eq!(state["stdout"], "a\tb \\ \"q\" \u{1b}[1m\n\u{e4} & end", "{shell}");
            assert_eq!(state["stderr"], "no", "{shell}");
            assert_eq!((&state["rc"], &state["failed"], &state["changed"]), (&3.into(), &true.into(), &true.into()));
            assert_eq!(state["msg"], "non-zero return code");
            assert_eq!(state["cmd"], "x 'y'");
            assert_eq!(state["delta"].as_str().map(str::len), Some(14), "{shell}: {state}");
        }
    }

    #[test]
    fn a_job_has_its_input_and_its_output_as_it_is() {
        for shell in shells() {
            let work = Work::Run {
                code: "cat; umask; env | grep -c trimtab_; :".to_owned(),
                stdin: Some(b"one\n\ntwo".to_vec()),
                command: None,
                strip_empty_ends: false,
            };
            let state = ended(shell, &work, 60);
            let umask = Command::new("sh").args(["-c", "umask"]).output().unwrap();
            let umask = String::from_utf8(umask.stdout).unwrap();
            assert_eq!(state["stdout"], format!("one\n\ntwo{umask}0\n"), "{shell}");
            assert_eq!((&state["rc"], &state["cmd"]), (&0.into(), &serde_json::Value::Null), "{shell}");
        }
    }

    #[test]
    fn a_job_is_killed_when_its_time_is_over() {
        for shell in shells() {
            let scratch = tempfile::tempdir().unwrap();
            let late = scratch.path().join("late");
            let begun = Instant::now();
            let state = ended(shell, &run(&format!("sleep 3; touch {}", late.display())), 1);
            assert!(begun.elapsed() < Duration::from_millis(2800), "{shell}");
            assert_eq!((&state["failed"], &state["msg"]), (&true.into(), &"Timeout exceeded".into()), "{shell}");
            std::thread::sleep(Duration::from_millis(2500));
            assert!(!late.exists(), "{shell}");
        }
    }

    #[test]
    fn what_needs_the_controller_is_refused_by_name() {
        let refused = refusal(crate::modules::find("copy").unwrap()).unwrap();
        assert!(refused.starts_with("`copy` cannot run in the background"), "{refused}");
        assert_eq!(refusal(crate::modules::find("shell").unwrap()), None);
        assert!(MODULES.iter().all(|name| crate::modules::find(name).is_some()));
    }
}
