//! What command, shell and script have in common: `creates` and `removes`, the script that runs a program
//! and measures it, and the return values.

use std::time::{Duration, Instant};

use futures_util::try_join;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{Attributes, Script};
use crate::host::{Change, Failure, FailureKind, Footprint, Host, Inverse, Step};
use crate::value::{Map, Value, object};

use super::background::{Job, Work};
use super::shell_words::{expanded, is_pattern, is_variable_name, needs_expansion};
use super::{Args, Outcome, Settings};

/// Marks what the script itself adds behind the output of the program.
const MARK: char = '\u{1e}';

/// The words behind the mark if the directory could not be entered.
const NO_DIRECTORY: &str = "chdir";

/// A program to be run on a host.
#[derive(Debug, Clone)]
pub struct Execution {
    /// What a person calls it: `command: uname -a`.
    pub what: String,
    /// Shell code that runs the program; its last command's exit code counts.
    pub code: String,
    pub stdin: Option<Vec<u8>>,
    /// The return value `cmd`.
    pub command: Value,
    /// The program's name if the shell was asked to run it by that name: tells "no such program" apart.
    pub program: Option<String>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// How long it ran by the host's clock, if that could be read.
    pub duration: Option<Duration>,
    /// False if the directory could not be entered, so nothing ran.
    pub entered: bool,
}

/// The lines before every program: its environment and directory.
pub fn preparation(args: &Args, settings: &Settings) -> Result<String, Failure> {
    let mut code = environment(settings)?;
    if let Some(directory) = args.str("chdir") {
        let word = expanded(&not_an_option(directory));
        // where a symbolic link leads, as chdir(2) goes there
        code.push_str(&format!("cd -P -- {word} >/dev/null || {{ printf '\\036{NO_DIRECTORY}\\036'; exit 1; }}\n"));
    }
    Ok(code)
}

/// Lines that set the environment of programs. They travel on the shell's standard input, so no process list shows them.
pub fn environment(settings: &Settings) -> Result<String, Failure> {
    if let Some((name, _)) = settings.environment.iter().find(|(name, _)| !is_variable_name(name)) {
        let message =
            format!("`{name}` in `environment` is no name that a shell can set: letters, digits and underscores only");
        return Err(Failure::new(message));
    }
    // the wire speaks in the locale C, but programs are to have the locale of the login: initdb, for one, keeps it
    let exports = settings.environment.iter().map(|(name, value)| format!("export {name}={}\n", quote(value)));
    Ok(std::iter::once("unset LC_ALL\n".to_owned()).chain(exports).collect())
}

/// `-x` and `x` (which CDPATH may lead elsewhere) become `./-x` and `./x`.
fn not_an_option(path: &str) -> String {
    if path.starts_with(['/', '~', '$', '.']) { path.to_owned() } else { format!("./{path}") }
}

/// The whole script: the program in a subshell of its own, with the host's uptime before and after it.
/// Reading that small file costs no process, which `date` would.
pub fn script(preparation: &str, code: &str, limit: Option<Duration>) -> String {
    let code = match limit {
        // what is left of it after the signal is killed
        Some(limit) => format!(
            "if command -v timeout >/dev/null 2>&1; then exec timeout -k 5 {} /bin/sh -c {}; fi\n{code}",
            limit.as_secs().max(1),
            quote(code)
        ),
        None => code.to_owned(),
    };
    format!(
        "{preparation}{{ read -r trimtab_start trimtab_rest </proc/uptime; }} 2>/dev/null\n\
         (\n{code}\n)\n\
         trimtab_code=$?\n\
         {{ read -r trimtab_end trimtab_rest </proc/uptime; }} 2>/dev/null\n\
         printf '\\036%s %s\\036' \"$trimtab_start\" \"$trimtab_end\"\n\
         exit $trimtab_code\n"
    )
}

/// Takes the answer of [`script`] apart.
pub fn ended(response: &Response) -> Ended {
    let stdout = response.text();
    let mut end = Ended {
        code: response.code.unwrap_or(-1),
        stderr: response.error_text(),
        stdout: String::new(),
        duration: None,
        entered: true,
    };
    let trailer = stdout.rfind(MARK).and_then(|last| stdout[..last].rfind(MARK).map(|first| (first, last)));
    let Some((first, last)) = trailer else {
        return Ended { stdout, ..end };
    };
    let words = &stdout[first + 1..last];
    end.entered = words != NO_DIRECTORY;
    end.duration = words.split_once(' ').and_then(|(start, stop)| {
        let seconds = stop.parse::<f64>().ok()? - start.parse::<f64>().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    });
    // a process left behind by the program may still have written after it
    end.stdout = format!("{}{}", &stdout[..first], &stdout[last + 1..]);
    end
}

/// Why `creates` or `removes` keep the program from running, if they do.
pub async fn kept_by_files(host: &Host, args: &Args, settings: &Settings) -> Result<Option<Kept>, Failure> {
    let (created, to_remove) = try_join!(
        exists(host, args, settings, args.str("creates")),
        exists(host, args, settings, args.str("removes")),
    )?;
    Ok(match (created, to_remove) {
        (Some(true), _) => Some(Kept { path: args.text("creates").to_owned(), exists: true }),
        (_, Some(false)) => Some(Kept { path: args.text("removes").to_owned(), exists: false }),
        _ => None,
    })
}

/// The file that keeps a program from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: String,
    pub exists: bool,
}

impl Kept {
    pub fn state(&self) -> &'static str {
        if self.exists { "exists" } else { "does not exist" }
    }
}

/// Whether anything has this name or matches this pattern; `None` if there is no name.
async fn exists(host: &Host, args: &Args, settings: &Settings, path: Option<&str>) -> Result<Option<bool>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let directory = args.str("chdir").unwrap_or_default();
    let absolute = if path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") };
    let plain = |text: &str| !needs_expansion(text) && !is_pattern(text);
    if plain(path) && plain(directory) && absolute.starts_with('/') {
        return match host.read(Attributes { path: absolute, follow: false }).await {
            Ok(found) => Ok(Some(found.is_some())),
            // what cannot be looked at does not exist, as for Python's `glob`
            Err(Failure { kind: FailureKind::Failed, .. }) => Ok(Some(false)),
            Err(other) => Err(other),
        };
    }
    let text = format!(
        "{}trimtab_pattern={}\nIFS=\nset -- $trimtab_pattern\n[ -e \"$1\" ] || [ -L \"$1\" ]\n",
        preparation(args, settings)?,
        expanded(path)
    );
    let response = host.read(Script { text, footprint: pattern_footprint(path) }).await?;
    Ok(Some(response.success()))
}

/// What the answer to a pattern depends on: the directory before the first sign that is not literal.
fn pattern_footprint(pattern: &str) -> Footprint {
    let literal = pattern.find(['*', '?', '[', '$', '~']).map_or(pattern, |at| &pattern[..at]);
    match literal.rsplit_once('/') {
        Some((directory, _)) if literal.starts_with('/') => {
            Footprint::tree(if directory.is_empty() { "/" } else { directory })
        }
        _ => Footprint::Everything,
    }
}

/// The values of a program that did not run.
pub fn timeless(mut result: Map) -> Map {
    result.extend(["start", "end", "delta"].map(|name| (name.into(), Value::Null)));
    result
}

impl Execution {
    fn what(&self, settings: &Settings) -> String {
        if settings.no_log { self.what.split(':').next().unwrap_or_default().to_owned() } else { self.what.clone() }
    }

    /// The same as work in the background.
    pub fn work(&self, strip_empty_ends: bool) -> Work {
        let command = Some(self.command.clone());
        Work::Run { code: self.code.clone(), stdin: self.stdin.clone(), command, strip_empty_ends }
    }

    /// A job with the environment and the directory of this program.
    pub fn job(&self, work: Work, args: &Args, settings: &Settings) -> Result<Job, Failure> {
        let mut preparation = environment(settings)?;
        if let Some(directory) = args.str("chdir") {
            preparation.push_str(&format!("cd -P -- {} >/dev/null || exit\n", expanded(&not_an_option(directory))));
        }
        Ok(Job { what: self.what(settings), preparation, work })
    }

    fn change(&self, preparation: &str, settings: &Settings) -> Change {
        let footprint = if settings.only_looks { Footprint::nothing() } else { Footprint::Everything };
        let mut step = Step::new(script(preparation, &self.code, settings.time_limit));
        step.stdin.clone_from(&self.stdin);
        Change::uncertain(self.what(settings), footprint)
            .step(step)
            .inverse(Inverse::None("what a command did is not known".to_owned()))
    }

    /// Runs it in its turn, or records it in check mode: then `None`.
    pub async fn run(&self, host: &Host, args: &Args, settings: &Settings) -> Result<Option<Ended>, Failure> {
        let begun = Instant::now();
        let applied = host.change(self.change(&preparation(args, settings)?, settings)).await?;
        if applied.check {
            return Ok(None);
        }
        let Some(response) = applied.responses.first() else {
            return Err(Failure::new(format!("`{}` gave no answer", self.what)));
        };
        let end = ended(response);
        if !end.entered {
            let reason = end.stderr.trim();
            let directory = args.text("chdir");
            return Err(failed_with(
                Failure::new(format!("Unable to change directory before execution: `{directory}`: {reason}")),
                timeless(self.result(None, "", "")),
            ));
        }
        if let Some(errno) = self.not_started(&end) {
            let reason = if errno == 2 { "No such file or directory" } else { "Permission denied" };
            let program = self.program.as_deref().unwrap_or_default();
            let message = format!("Error executing command: [Errno {errno}] {reason}: `{program}`");
            let failure = failed_with(Failure::new(message), self.result(Some(errno), "", ""));
            return Err(failure.with("cmd", self.quoted_command()));
        }
        let duration = end.duration.unwrap_or_else(|| begun.elapsed());
        Ok(Some(Ended { duration: Some(duration), ..end }))
    }

    /// The command as one line, which Ansible gives for what could not be started.
    fn quoted_command(&self) -> Value {
        match self.command.as_list() {
            Some(words) => words.iter().map(|word| quote(&word.to_text())).collect::<Vec<_>>().join(" ").into(),
            None => self.command.clone(),
        }
    }

    /// The error number if the shell says that it could not start the program: Ansible's `rc` then.
    fn not_started(&self, end: &Ended) -> Option<i32> {
        let program = self.program.as_deref()?;
        let errno = match end.code {
            127 => 2,
            126 => 13,
            _ => return None,
        };
        let name = format!("{program}: ");
        let lines: Vec<&str> = end.stderr.lines().collect();
        // bash says "permission denied" twice
        let said_by_shell = matches!(lines.len(), 1 | 2) && lines.iter().all(|line| line.contains(&name));
        (said_by_shell && end.stdout.is_empty()).then_some(errno)
    }

    /// The return values that do not depend on time.
    pub fn result(&self, code: Option<i32>, stdout: &str, stderr: &str) -> Map {
        object([
            ("cmd", self.command.clone()),
            ("rc", code.into()),
            ("stdout", stdout.into()),
            ("stderr", stderr.into()),
            ("stdout_lines", lines(stdout)),
            ("stderr_lines", lines(stderr)),
        ])
    }

    /// The outcome of a program that ended: a failure if its exit code is not 0.
    pub fn outcome(&self, end: &Ended, strip_empty_ends: bool) -> Result<Outcome, Failure> {
        let ends: &[char] = if strip_empty_ends { &['\r', '\n'] } else { &[] };
        let stdout = end.stdout.trim_end_matches(ends);
        let stderr = end.stderr.trim_end_matches(ends);
        let mut result = self.result(Some(end.code), stdout, stderr);
        let duration = end.duration.unwrap_or_default();
        // the duration is the host's, the time of day the controller's: asking the host would cost processes
        let stop = jiff::ZonedDateTime::now();
        let start = stop.checked_sub(duration).unwrap_or_else(|_| stop.clone());
        result.insert("start".into(), clock(&start).into());
        result.insert("end".into(), clock(&stop).into());
        result.insert("delta".into(), timedelta(duration).into());
        if end.code != 0 {
            result.insert("changed".into(), true.into());
            return Err(failed_with(Failure::new("non-zero return code"), result));
        }
        result.insert("msg".into(), "".into());
        Ok(Outcome { result, ..Outcome::changed() })
    }
}

/// The same failure with these return values.
pub fn failed_with(failure: Failure, result: Map) -> Failure {
    Failure { result, ..failure }
}

/// A time as Python writes a datetime.
fn clock(time: &jiff::ZonedDateTime) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

/// A duration as Python writes a timedelta: `0:00:01.250000`, `1 day, 2:00:00`.
pub fn timedelta(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let days = match seconds / 86_400 {
        0 => String::new(),
        1 => "1 day, ".to_owned(),
        days => format!("{days} days, "),
    };
    let fraction = match duration.subsec_micros() {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    format!("{days}{}:{:02}:{:02}{fraction}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// The list that Ansible puts beside every text as `…_lines`: Python's `splitlines`.
pub fn lines(text: &str) -> Value {
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_end) {
        items.push(Value::from(&rest[..at]));
        let end = &rest[at..];
        let length = if end.starts_with("\r\n") { 2 } else { end.chars().next().map_or(1, char::len_utf8) };
        rest = &end[length..];
    }
    if !rest.is_empty() {
        items.push(rest.into());
    }
    items.into()
}

/// The first line of a text, short enough for a heading.
pub fn heading(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    if line.chars().count() > 60 {
        format!("{}…", line.chars().take(59).collect::<String>())
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_shell(shell: &[&str], code: &str) -> Option<Response> {
        let output = std::process::Command::new(shell[0]).args(&shell[1..]).arg("-c").arg(code).output().ok()?;
        Some(Response { code: output.status.code(), stdout: output.stdout, stderr: output.stderr, aliased: false })
    }

    #[test]
    fn every_shell_gives_output_code_and_duration() {
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            let Some(response) = by_shell(shell, &script("", "echo out; echo err >&2; sleep 0.05; exit 3", None))
            else {
                continue;
            };
            let end = ended(&response);
            assert_eq!((end.code, end.stdout.as_str(), end.stderr.as_str()), (3, "out\n", "err\n"), "{shell:?}");
            assert!(end.duration.unwrap() >= Duration::from_millis(20), "{shell:?}: {end:?}");
            let settings = Settings::default();
            let args = crate::modules::args::validate(
                &super::super::command::MODULE,
                &object([("chdir", "/no/such/directory".into())]),
            )
            .unwrap();
            let end =
                ended(&by_shell(shell, &script(&preparation(&args, &settings).unwrap(), "echo ran", None)).unwrap());
            assert!(!end.entered && end.stdout.is_empty() && !end.stderr.is_empty(), "{shell:?}: {end:?}");
        }
    }

    #[test]
    fn what_runs_too_long_is_ended() {
        let begun = Instant::now();
        let limit = Some(Duration::from_secs(1));
        let Some(response) = by_shell(&["sh"], &script("", "echo begun; exec sleep 20", limit)) else { return };
        let end = ended(&response);
        assert_eq!((end.code, end.stdout.as_str()), (124, "begun\n"));
        assert!(begun.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_missing_program_has_the_error_number_as_code() {
        for shell in [&["dash"][..], &["bash"], &["busybox", "sh"]] {
            for (program, errno) in [("/no/such/program", 2), ("no-such-program", 2), ("/etc/passwd", 13)] {
                let execution = Execution {
                    what: String::new(),
                    code: String::new(),
                    stdin: None,
                    command: Value::Null,
                    program: Some(program.to_owned()),
                };
                let Some(response) = by_shell(shell, &script("", &format!("exec {program}"), None)) else { continue };
                assert_eq!(execution.not_started(&ended(&response)), Some(errno), "{shell:?}: {response:?}");
                let response =
                    by_shell(shell, &script("", &format!("sh -c 'exit {}'", response.code.unwrap()), None)).unwrap();
                assert_eq!(execution.not_started(&ended(&response)), None, "{shell:?}: {response:?}");
            }
        }
    }

    #[test]
    fn durations_read_as_pythons() {
        let cases = [
            (Duration::from_micros(3384), "0:00:00.003384"),
            (Duration::from_secs(3725), "1:02:05"),
            (Duration::from_secs(86_400 + 7200), "1 day, 2:00:00"),
        ];
        for (duration, text) in cases {
            assert_eq!(timedelta(duration), text);
        }
    }

    #[test]
    fn lines_are_pythons() {
        assert_eq!(lines(""), Value::list(vec![]));
        assert_eq!(lines("a\r\nb\n\nc"), Value::list(vec!["a".into(), "b".into(), "".into(), "c".into()]));
        assert_eq!(lines("a\n"), Value::list(vec!["a".into()]));
    }

    #[test]
    fn a_pattern_depends_on_the_directory_before_it() {
        assert_eq!(pattern_footprint("/opt/app*/bin"), Footprint::tree("/opt"));
        assert_eq!(pattern_footprint("/*"), Footprint::tree("/"));
        assert_eq!(pattern_footprint("~/x"), Footprint::Everything);
    }
}
