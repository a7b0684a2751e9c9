//! A small file of the network, read on the host.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Failure, Footprint, Host};

/// The content behind a URL, fetched by the host's curl or wget.
pub async fn read(host: &Host, environment: &str, url: &str, validate: bool) -> Result<Vec<u8>, Failure> {
    let url_word = quote(url);
    let (insecure_curl, insecure_wget) = if validate { ("", "") } else { ("--insecure ", "--no-check-certificate ") };
    let text = format!(
        "{environment}if command -v curl >/dev/null; then curl --fail --silent --show-error --location --max-time 120 {insecure_curl}{url_word}\n\
         elif command -v wget >/dev/null; then wget -q --timeout=120 {insecure_wget}-O - {url_word}\n\
         elif [ -x /usr/lib/apt/apt-helper ]; then t=$(mktemp -d) || exit; trap 'rm -rf \"$t\"' EXIT; \
         /usr/lib/apt/apt-helper download-file {url_word} \"$t/file\" >&2 && cat \"$t/file\"\n\
         else echo 'the host has neither curl nor wget' >&2; exit 127; fi\n"
    );
    // what is behind a URL changes by nothing that a task of this host does, but for servers on the host itself
    let footprint = if is_local(url) { Footprint::Everything } else { Footprint::nothing() };
    let response = host.read(Script { text, footprint }).await?;
    if !response.success() {
        return Err(Failure::new(format!("failed to fetch key at {url}, error was: {}", response.error_text().trim())));
    }
    Ok(response.stdout)
}

fn is_local(url: &str) -> bool {
    ["file:", "http://localhost", "https://localhost", "http://127.", "https://127.", "http://[::1]", "https://[::1]"]
        .iter()
        .any(|start| url.starts_with(start))
}
