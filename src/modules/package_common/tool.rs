//! Running a package manager: waiting for its locks, and what became of the installed packages.

use crate::connect::shell::{Response, quote};
use crate::host::Failure;
use crate::value::Value;

/// Separates what the script adds from the output of the tools.
const MARK: char = '\u{1e}';

/// How a tool tells that another one holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// The exit code that says so, if there is one.
    pub code: Option<u8>,
    /// A basic regular expression for its standard error.
    pub words: &'static str,
    /// Seconds to wait for it.
    pub timeout: i64,
}

/// The lines in front: settings of the task's `environment`, answers in the C locale, a directory for output.
pub fn preparation(environment: &str) -> String {
    format!(
        "{environment}LC_ALL=C LANGUAGE=C\nexport LC_ALL LANGUAGE\n\
         t=$(mktemp -d) || exit\ntrap 'rm -rf \"$t\"' EXIT\nc=0\n"
    )
}

/// Runs one command; its output is in `$t/out` and `$t/err`, its exit code in `$c`. While another tool holds the
/// lock it is tried again every second.
pub fn attempt(command: &str, lock: Lock) -> String {
    let by_code = lock.code.map(|code| format!("[ $c = {code} ] || ")).unwrap_or_default();
    format!(
        "w=0\nwhile :; do\n\
         ( {command} ) >\"$t/out\" 2>\"$t/err\" </dev/null; c=$?\n\
         [ $c != 0 ] && {{ {by_code}grep -q {} \"$t/err\"; }} || break\n\
         [ $w -lt {} ] || {{ c=locked; break; }}\n\
         w=$((w+1)); sleep 1\ndone\n",
        quote(lock.words),
        lock.timeout.max(0)
    )
}

/// Runs each command by itself and tells of each.
pub fn each(environment: &str, commands: &[String], lock: Lock) -> String {
    let mut script = preparation(environment);
    for command in commands {
        script.push_str(&attempt(command, lock));
        script.push_str("cat \"$t/out\"; printf '\\036'; cat \"$t/err\"; printf '\\036%s\\036' \"$c\"\n");
    }
    script
}

/// Runs the commands one after the other until one fails, and tells what packages came and went by `list`.
/// `around` goes before the commands.
pub fn transaction(environment: &str, around: &str, list: &str, commands: &[String], lock: Lock) -> String {
    let mut script = preparation(environment);
    script.push_str(around);
    script.push_str(&format!("{list} | sort >\"$t/before\"\n"));
    for command in commands {
        script.push_str("if [ \"$c\" = 0 ]; then\n");
        script.push_str(&attempt(command, lock));
        script.push_str("cat \"$t/out\"; cat \"$t/err\" >&2\nfi\n");
    }
    script.push_str(&format!("{list} | sort >\"$t/after\"\n"));
    script.push_str("printf '\\036%s\\036' \"$c\"; comm -3 \"$t/before\" \"$t/after\"\n[ \"$c\" = 0 ]\n");
    script
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub stdout: String,
    pub stderr: String,
    /// `None`: another tool held the lock all the time.
    pub code: Option<i32>,
}

/// A transaction's end, and the lines of the list that came and went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    pub ended: Ended,
    pub added: Vec<String>,
    pub removed: Vec<String>,
}

/// Takes the answer of [`each`] apart.
pub fn parse_each(response: &Response) -> Result<Vec<Ended>, Failure> {
    let text = response.text();
    let mut fields = text.split(MARK);
    let mut all = Vec::new();
    while let (Some(stdout), Some(stderr), Some(code)) = (fields.next(), fields.next(), fields.next()) {
        all.push(Ended { stdout: stdout.to_owned(), stderr: stderr.to_owned(), code: code.parse().ok() });
    }
    if all.is_empty() {
        return Err(Failure::new(format!("the package manager could not be run: {}", response.error_text().trim())));
    }
    Ok(all)
}

/// Takes the answer of [`transaction`] apart.
pub fn parse_transaction(response: &Response) -> Result<Finished, Failure> {
    let text = response.text();
    let stderr = response.error_text();
    let mut fields = text.rsplitn(3, MARK);
    let (Some(list), Some(code), Some(stdout)) = (fields.next(), fields.next(), fields.next()) else {
        let message = format!("the package manager was broken off: {}", stderr.trim());
        return Err(Failure::new(message).with("stdout", text.as_str()).with("stderr", stderr.as_str()));
    };
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for line in list.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('\t') {
            Some(line) => added.push(line.to_owned()),
            None => removed.push(line.to_owned()),
        }
    }
    let ended = Ended { stdout: stdout.to_owned(), stderr, code: code.parse().ok() };
    Ok(Finished { ended, added, removed })
}

impl Ended {
    /// Fails if the lock was never free.
    pub fn unlocked(self, lock: Lock) -> Result<Ended, Failure> {
        if self.code.is_some() {
            return Ok(self);
        }
        let said = format!("{}\n{}", self.stdout.trim(), self.stderr.trim());
        let said = said.lines().rev().find(|line| line.contains("ock")).unwrap_or_default().trim().to_owned();
        Err(Failure::new(format!(
            "another program used the package database for {} seconds (`lock_timeout`): {said}",
            lock.timeout
        ))
        .with("stdout", self.stdout)
        .with("stderr", self.stderr)
        .with("rc", 200))
    }

    /// Output and errors together.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// A list of texts as a value.
pub fn texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::list(items.into_iter().map(|item| Value::from(item.as_ref())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Lock = Lock { code: Some(200), words: "[Ll]ock", timeout: 0 };

    fn run(script: &str) -> Response {
        let output = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
        Response { code: output.status.code(), stdout: output.stdout, stderr: output.stderr, aliased: false }
    }

    #[test]
    fn what_came_and_went_is_told() {
        let state = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(state.path(), "a\t1\nb\t2\n").unwrap();
        let path = state.path().display();
        let commands = [format!("echo done; printf 'b\\t2\\nc\\t3\\n' >{path}"), "echo second".to_owned()];
        let finished = parse_transaction(&run(&transaction("", "", &format!("cat {path}"), &commands, LOCK))).unwrap();
        assert_eq!((finished.added, finished.removed), (vec!["c\t3".to_owned()], vec!["a\t1".to_owned()]));
        assert_eq!((finished.ended.stdout.as_str(), finished.ended.code), ("done\nsecond\n", Some(0)));
        let commands = ["echo no >&2; exit 3".to_owned(), "echo second".to_owned()];
        let response = run(&transaction("", "", "echo a", &commands, LOCK));
        assert!(!response.success());
        let ended = parse_transaction(&response).unwrap().ended;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str(), ended.code), ("", "no\n", Some(3)));
    }

    #[test]
    fn a_lock_is_waited_for_and_then_given_up() {
        let state = tempfile::NamedTempFile::new().unwrap();
        let path = state.path().display();
        // locked at the first attempt only
        let command =
            format!("[ -s {path} ] && echo free && exit; echo x >{path}; echo 'waiting for Lock' >&2; exit 100");
        let lock = Lock { timeout: 3, ..LOCK };
        let ended = parse_each(&run(&each("", &[command], lock))).unwrap().remove(0).unlocked(lock).unwrap();
        assert_eq!((ended.stdout.as_str(), ended.code), ("free\n", Some(0)));
        let ended = parse_each(&run(&each("", &["exit 200".to_owned(), "echo b".to_owned()], LOCK))).unwrap();
        assert_eq!((ended[0].code, ended[1].code, ended.len()), (None, Some(0), 2));
        assert!(ended[0].clone().unlocked(LOCK).unwrap_err().message.contains("lock_timeout"));
    }
}
