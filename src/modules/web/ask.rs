//! A request is sent by a program of the host, or else by the controller.

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileContent, Script};
use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::http::client::{self, Pem};
use crate::http::{Answer, MOST_REDIRECTS, Request, url};

use super::curl::{self, Output};
use super::wget;
use crate::modules::programs::SYSTEM_PATH;

/// An answer, or why there is none.
pub type Asked = Result<Answer, String>;

/// The exit code of scripts that found no curl, and no GNU wget that could do it.
pub const NO_PROGRAM: i32 = 127;

/// Sends a request from the host and follows redirects; `None` in check mode, if the request may alter something.
pub async fn ask(host: &Host, environment: &str, request: &Request) -> Result<Option<Asked>, Failure> {
    let mut request = request.clone();
    for _ in 0..=MOST_REDIRECTS {
        let Some(asked) = ask_once(host, environment, &request).await? else { return Ok(None) };
        let next = asked.as_ref().ok().and_then(|answer| request.redirected(answer));
        match next {
            Some(next) => request = next,
            None => return Ok(Some(asked)),
        }
    }
    Ok(Some(Err(format!("more than {MOST_REDIRECTS} redirects"))))
}

async fn ask_once(host: &Host, environment: &str, request: &Request) -> Result<Option<Asked>, Failure> {
    let text = script(environment, request);
    let response = if request.is_safe() && request.body.is_none() {
        host.read(Script { text, footprint: super::footprint(request) }).await?
    } else {
        let mut step = Step::new(text);
        step.stdin.clone_from(&request.body);
        let change = Change::uncertain(format!("{} {}", request.method, request.shown_url()), Footprint::Everything)
            .step(step)
            .inverse(Inverse::None("what a request did on its server is not known".to_owned()));
        let applied = host.change(change).await?;
        if applied.check {
            return Ok(None);
        }
        applied.responses.into_iter().next().unwrap_or_default()
    };
    if response.code == Some(NO_PROGRAM) && response.stdout.is_empty() {
        return from_controller(host, request).await.map(Some);
    }
    Ok(Some(parse(request, &response)))
}

/// The script that sends a request by curl or wget; its first line tells which.
fn script(environment: &str, request: &Request) -> String {
    let by_wget = wget::command(request).map(|command| format!("elif {HAS_WGET}; then echo wget\n{command} -O -\n"));
    format!(
        "{SYSTEM_PATH}{environment}export LC_ALL=C\n\
         if command -v curl >/dev/null 2>&1; then echo curl\n{{ printf '%s' {} | curl -q --config -; }} 3<&0\n\
         {}else exit {NO_PROGRAM}; fi",
        quote(&curl::config(request, Output::Stdout)),
        by_wget.unwrap_or_default(),
    )
}

/// Busybox has a wget too, which checks no certificate and tells no status.
pub const HAS_WGET: &str = "wget --version 2>/dev/null | grep -q 'GNU Wget'";

fn parse(request: &Request, response: &Response) -> Asked {
    let stderr = response.error_text();
    let (answer, code) = match response.stdout.strip_prefix(b"curl\n") {
        // whatever the status, curl ends with 0 if there was an answer
        Some(printed) => (curl::parse(printed).filter(|_| response.success()), response.code),
        None => {
            let body = response.stdout.strip_prefix(b"wget\n").unwrap_or(&response.stdout).to_vec();
            (wget::parse(request, &stderr, body), response.code)
        }
    };
    answer.ok_or_else(|| no_answer(&stderr, code))
}

/// Why there is no answer, in the program's words.
pub fn no_answer(stderr: &str, code: Option<i32>) -> String {
    let said: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match said.is_empty() {
        true => format!("there is no answer (exit code {})", code.unwrap_or(-1)),
        false => said.join("; "),
    }
}

/// Sends a request from the controller, with the certificates that are on the host.
pub async fn from_controller(host: &Host, request: &Request) -> Result<Asked, Failure> {
    if url::is_of_this_machine(&request.url) {
        return Err(Failure::new(format!(
            "the host has no curl (wget will do where no secret is sent), and {} means the host itself: install it",
            request.shown_url()
        )));
    }
    let read = async |path: &Option<String>| match path {
        None => Ok(None),
        Some(path) => match host.read(FileContent(path.clone())).await? {
            Some(content) => Ok(Some(content)),
            None => Err(Failure::new(format!("there is no file {path} on the host"))),
        },
    };
    let authorities = read(&request.ca_path).await?;
    let mut client = read(&request.client_cert).await?;
    if let (Some(chain), Some(key)) = (&mut client, read(&request.client_key).await?) {
        chain.push(b'\n');
        chain.extend(key);
    }
    // time passes, so only in its turn
    host.turn().await?;
    let (request, pem) = (request.clone(), Pem { authorities, client });
    match tokio::task::spawn_blocking(move || client::send(&request, &pem)).await {
        Ok(sent) => Ok(sent.map_err(|error| error.to_string())),
        Err(error) => Err(Failure::new(format!("the controller's HTTP client ended: {error}"))),
    }
}
