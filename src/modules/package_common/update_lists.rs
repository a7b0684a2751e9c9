//! Fetching the package lists of apt.

use crate::host::{Change, Failure, Footprint, Host, Inverse, Step};
use crate::modules::Args;

use super::deb_request::LISTS_TIME;
use super::tool::{Lock, attempt, parse_each, preparation};

/// Fetches them, with the retries that `args` ask for. Returns when, in seconds since the epoch; `None` in check mode.
/// `environment` are the lines in front, from `deb_request::preparation`.
pub async fn run(host: &Host, environment: &str, args: &Args, lock: Lock) -> Result<Option<i64>, Failure> {
    let retries = args.int("update_cache_retries").unwrap_or(5).max(1);
    let delay = args.int("update_cache_retry_max_delay").unwrap_or(12).max(0);
    let footprint = Footprint::tree("/var/lib/apt").and(Footprint::tree("/var/cache/apt"));
    let change = Change::uncertain("package lists of apt", footprint)
        .step(Step::new(script(environment, retries, delay, lock)))
        .inverse(Inverse::None("package lists hold no state of the host".to_owned()));
    let applied = host.change(change).await?;
    let Some(response) = applied.responses.first() else { return Ok(None) };
    let ended = parse_each(response)?.remove(0).unlocked(lock)?;
    if ended.code == Some(0) {
        let text = response.text();
        return Ok(text.rsplit("\nL").next().and_then(|time| time.trim().parse().ok()));
    }
    let reasons: Vec<&str> = ended
        .stderr
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("E:") || line.starts_with("W: Failed to fetch"))
        .map(|line| line[2..].trim())
        .collect();
    let reason = if reasons.is_empty() { ended.said().trim().to_owned() } else { reasons.join("; ") };
    Err(Failure::new(format!("Failed to update apt cache after {retries} retries: {reason}"))
        .with("rc", ended.code.map_or(100, i64::from))
        .with("stderr", ended.stderr.trim_end()))
}

fn script(environment: &str, retries: i64, delay: i64, lock: Lock) -> String {
    // a list that could not be fetched is only warned of
    format!(
        "{}r=0 p=1\nwhile :; do\n{}\
         if [ \"$c\" = 0 ] && grep -q '^W: Failed to fetch\\|^[WE]: Some index files failed' \"$t/err\"; then c=100; fi\n\
         [ \"$c\" != 0 ] && [ \"$c\" != locked ] || break\n\
         r=$((r+1)); [ $r -lt {retries} ] || break\n\
         sleep $p; p=$((p*2)); [ $p -le {delay} ] || p={delay}\ndone\n\
         cat \"$t/out\"; printf '\\036'; cat \"$t/err\"; printf '\\036%s\\036\\n' \"$c\"\n\
         [ \"$c\" != 0 ] || touch -c \"${{d}}lists\"\n{LISTS_TIME}[ \"$c\" = 0 ]\n",
        preparation(environment),
        attempt("apt-get -q update", lock),
    )
}
