//! Programs of the host that make a change: where they are found, and what they said.

use crate::connect::shell::{Response, quote};
use crate::host::{Change, Failure, Host, Step};

/// Adds where programs for administrators are: the PATH of a login by SSH or sudo may lack it.
pub const SYSTEM_PATH: &str = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin\n";

/// Separates parts of an answer.
pub const MARK: char = '\u{1e}';

/// A command line of quoted words, found in [`SYSTEM_PATH`] too.
pub fn command<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// A step that runs shell code with [`SYSTEM_PATH`].
pub fn step(code: impl AsRef<str>) -> Step {
    Step::new(format!("{SYSTEM_PATH}{}", code.as_ref()))
}

/// Makes a change and judges its answers; `None` in check mode, and for a certain change, which tells nothing more.
pub async fn make(host: &Host, change: Change) -> Result<Option<Vec<Response>>, Failure> {
    let (what, steps, certain) = (change.what.clone(), change.steps.clone(), change.certain);
    let applied = host.change(change).await?;
    if applied.check || certain {
        return Ok(None);
    }
    for (index, step) in steps.iter().enumerate() {
        let response = applied.responses.get(index).cloned().unwrap_or_default();
        if let Some(failure) = failure_of(&what, step, &response) {
            return Err(failure);
        }
    }
    Ok(Some(applied.responses))
}

fn failure_of(what: &str, step: &Step, response: &Response) -> Option<Failure> {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let stderr = response.error_text();
    let message = match response.code {
        Some(0) => match &step.expect {
            Some(expect) if fold(expect) != fold(&response.text()) => {
                format!("{what}: it reads back as `{}` instead of `{expect}`", fold(&response.text()))
            }
            _ => return None,
        },
        Some(code) if stderr.trim().is_empty() => format!("{what}: failed with exit code {code}"),
        Some(_) => format!("{what}: {}", stderr.trim()),
        None => format!("{what}: was not finished"),
    };
    let failure = Failure::new(message).with("rc", i64::from(response.code.unwrap_or(-1)));
    Some(failure.with("stdout", response.text()).with("stderr", stderr))
}

/// The parts of an answer between [`MARK`]s: always `count` of them.
pub fn parts(response: &Response, count: usize) -> Vec<String> {
    let text = response.text();
    let mut parts: Vec<String> = text.split(MARK).map(str::to_owned).collect();
    parts.resize(count, String::new());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_in_the_programs_own_words() {
        let failed = |code, stderr: &str| Response { code, stderr: stderr.into(), ..Response::default() };
        let cases = [
            (Response::output(" a\tb\n"), None),
            (Response::output("a"), Some("user x: it reads back as `a` instead of `a b`")),
            (failed(Some(9), "useradd: no\n"), Some("user x: useradd: no")),
            (failed(Some(9), ""), Some("user x: failed with exit code 9")),
            (failed(None, ""), Some("user x: was not finished")),
        ];
        let step = step("true").expect("a b");
        for (response, message) in cases {
            assert_eq!(failure_of("user x", &step, &response).map(|failure| failure.message).as_deref(), message);
        }
    }

    #[test]
    fn an_answer_has_all_its_parts() {
        assert_eq!(parts(&Response::output("a\n\u{1e}b"), 3), ["a\n", "b", ""]);
    }
}
