//! A file behind a URL is fetched into a temporary directory of the host, or by the controller.

use crate::connect::shell::{Response, quote};
use crate::host::Failure;
use crate::http::{Answer, Request};
use crate::modules::programs::{SYSTEM_PATH, parts};

use super::ask::{HAS_WGET, NO_PROGRAM, no_answer};
use super::curl::{self, Output};
use super::wget;

/// What is to be fetched, and how.
#[derive(Debug)]
pub struct Fetch<'a> {
    pub request: &'a Request,
    pub environment: &'a str,
    /// The directory for the temporary one; `None`: the host's usual.
    pub directory: Option<&'a str>,
    /// The digest that is wanted beside SHA-1.
    pub algorithm: Option<&'a str>,
    /// Unpack what was packed with gzip for the way.
    pub decompress: bool,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Without a body.
    pub answer: Answer,
    pub sha1: String,
    pub md5: String,
    pub size: u64,
    /// By the algorithm that was asked for.
    pub digest: String,
    /// The temporary file, if it was kept.
    pub file: Option<String>,
}

impl Fetched {
    /// True if the server gave the file.
    pub fn is_there(&self) -> bool {
        self.answer.status == 200 || self.answer.status == 0
    }
}

/// What becomes of the file.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    /// It is measured and thrown away.
    Nothing,
    /// It stays in its temporary directory if it arrived, unless it has this SHA-1.
    Unless(Option<&'a str>),
    /// It stays in this directory, which is made; else the script fails.
    In(&'a str),
}

impl Fetch<'_> {
    /// The script that fetches.
    pub fn script(&self, keep: Keep<'_>) -> String {
        let curl = quote(&curl::config(self.request, Output::Files));
        let by_wget = wget::command(self.request).map(|command| {
            format!(
                "elif {HAS_WGET}; then t=wget u=\n{command} -O \"$d/file\" 2>\"$d/head\"; c=$?\n\
                 grep -v '^  ' \"$d/head\" >\"$d/errors\"\n"
            )
        });
        let make = match keep {
            Keep::In(directory) => format!("d={0}; mkdir -m 700 {0}", quote(directory)),
            _ => {
                let parent = self.directory.map_or_else(|| "\"${TMPDIR:-/tmp}\"".to_owned(), quote);
                format!("d=$(mktemp -d {parent}/.trimtab.XXXXXX)")
            }
        };
        let digest = self.algorithm.map_or_else(|| ":".to_owned(), |algorithm| format!("{algorithm}sum <\"$d/file\""));
        let unpack = if self.decompress {
            "if grep -qi '^ *content-encoding: *gzip' \"$d/head\"; then gzip -dc <\"$d/file\" >\"$d/plain\" && mv \"$d/plain\" \"$d/file\" || exit; fi\n"
        } else {
            ""
        };
        let arrived = "[ \"$c\" = 0 ] && { [ -z \"$s\" ] || [ \"$s\" = 200 ]; }";
        let kept = match keep {
            Keep::Nothing => ":".to_owned(),
            Keep::Unless(digest) => format!(
                "if {arrived} && [ \"${{h%% *}}\" != {} ]; then trap - EXIT; printf %s \"$d/file\"; fi",
                quote(digest.unwrap_or("none"))
            ),
            Keep::In(_) => format!(
                "{arrived} || {{ echo \"it was not fetched: $s $(cat \"$d/errors\")\" >&2; exit 1; }}; trap - EXIT"
            ),
        };
        format!(
            "{SYSTEM_PATH}{}export LC_ALL=C\numask 077\n{make} || exit 3\ntrap 'rm -rf \"$d\"' EXIT\n\
             : >\"$d/head\"; : >\"$d/errors\"; : >\"$d/file\"\n\
             if command -v curl >/dev/null 2>&1; then\n\
             u=$(printf '%s' {curl} | curl -q --config - --dump-header \"$d/head\" --output \"$d/file\" 2>\"$d/errors\"); c=$?; t=curl\n\
             {}else exit {NO_PROGRAM}; fi\n\
             s=$(sed -n 's/^ *HTTP\\/[0-9.]* \\([0-9]*\\).*/\\1/p' \"$d/head\" | tail -n 1)\n{unpack}\
             printf '%s\\036%s\\036%s\\036' \"$t\" \"$c\" \"$u\"; cat \"$d/head\"; printf '\\036'; cat \"$d/errors\"; printf '\\036'\n\
             h=$(sha1sum <\"$d/file\") || exit; printf '%s\\036' \"${{h%% *}}\"; md5sum <\"$d/file\"; printf '\\036'\n\
             wc -c <\"$d/file\"; printf '\\036'; {digest} || exit; printf '\\036'; {kept}",
            self.environment,
            by_wget.unwrap_or_default()
        )
    }

    /// The answer of the script; `None` if the host has no program for it.
    pub fn parse(&self, response: &Response) -> Result<Option<Result<Fetched, String>>, Failure> {
        if response.code == Some(NO_PROGRAM) && response.stdout.is_empty() {
            return Ok(None);
        }
        if !response.success() {
            let reason = response.error_text();
            return Err(Failure::new(format!("{}: {}", self.request.shown_url(), reason.trim())));
        }
        let parts = parts(response, 10);
        let word = |index: usize| parts[index].split_whitespace().next().unwrap_or_default().to_owned();
        let answer = match word(0).as_str() {
            "curl" => curl::last_head(&parts[3]).map(|answer| Answer { url: parts[2].clone(), ..answer }),
            _ => wget::parse(self.request, &parts[3], Vec::new()),
        };
        let code = parts[1].parse::<i32>().ok();
        let answer = match answer {
            Some(answer) if code == Some(0) || word(0) == "wget" => answer,
            // `file:` and `ftp:` have no head
            None if code == Some(0) => Answer { url: self.request.url.clone(), ..Answer::default() },
            _ => return Ok(Some(Err(no_answer(&parts[4], code)))),
        };
        let size = word(7).parse().map_err(|_| Failure::new("the host's `wc` gave no size"))?;
        let file = Some(parts[9].clone()).filter(|file| !file.is_empty());
        Ok(Some(Ok(Fetched { answer, sha1: word(5), md5: word(6), size, digest: word(8), file })))
    }
}
