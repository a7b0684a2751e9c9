//! The text of `ansible --one-line`: each host's result on one line.

use super::minimal::{body, is_command, value, word};
use crate::engine::event::HostResult;
use crate::engine::result::Status;

/// A result in words.
pub(super) fn words(event: &HostResult, verbosity: u8) -> String {
    let text = |name: &str| value(event, name).replace('\n', "\\n").replace('\r', "\\r");
    let (host, status) = (&event.host, event.result.status);
    let word = word(status);
    let folded = || body(event, verbosity).lines().map(str::trim_start).collect::<String>();
    match status {
        Status::Skipped => format!("{host} | {word}"),
        Status::Unreachable if !event.no_log => format!("{host} | {word}!: {}", text("msg")),
        Status::Ok | Status::Changed if is_command(event) => {
            let errors = Some(text("stderr")).filter(|text| !text.is_empty());
            let errors = errors.map(|text| format!(" (stderr) {text}")).unwrap_or_default();
            format!("{host} | {word} | rc={} | (stdout) {}{errors}", text("rc"), text("stdout"))
        }
        Status::Failed | Status::Unreachable => format!("{host} | {word}! => {}", folded()),
        _ => format!("{host} | {word} => {}", folded()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::minimal::Minimal;
    use super::super::{Look, sample, tell};
    use super::*;

    #[test]
    fn each_result_is_one_line() {
        let sample = sample::Sample::new();
        let task = sample.task(0, "command").with("rc", 0).with("stdout", "x\ny").with("stderr", "").with("msg", "");
        let events = [
            sample::batch(&["a", "b", "c", "d"]),
            task.changed("a"),
            task.clone().with("stderr", "e").ok("b"),
            sample.task(0, "ping").action("ping").with("ping", "pong").ok("c"),
            sample.task(0, "ping").action("ping").with("msg", "no route").end("d", Status::Unreachable),
            sample::ended(),
        ];
        let (text, _) = tell(&mut Minimal::on_one_line(Look::default()), events);
        let expected = "\
a | CHANGED | rc=0 | (stdout) x\\ny
b | SUCCESS | rc=0 | (stdout) x\\ny (stderr) e
c | SUCCESS => {\"changed\": false,\"ping\": \"pong\"}
d | UNREACHABLE!: no route
";
        assert_eq!(text, expected);
    }
}
