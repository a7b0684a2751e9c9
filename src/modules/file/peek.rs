//! `_diff_peek`: whether a file looks binary. Ansible's own plugins ask for it, and some playbooks do.

use crate::connect::shell::{Response, quote};
use crate::host::{Failure, Footprint, Host, Query, Read};
use crate::modules::Outcome;

pub async fn tell(host: &Host, path: &str) -> Result<Outcome, Failure> {
    let binary = host.read(LooksBinary(path.to_owned())).await?;
    Ok(Outcome::ok().with("path", path).with("appears_binary", binary))
}

/// Asks whether there is a zero byte at the beginning of a file; one that cannot be read counts as text.
struct LooksBinary(String);

impl Read for LooksBinary {
    type Answer = bool;

    fn query(&self) -> Query {
        let text = format!("head -c 8192 {} 2>/dev/null | tr -dc '\\000' | wc -c", quote(&self.0));
        Query::Script { text, footprint: Footprint::path(self.0.as_str()) }
    }

    fn parse(&self, response: &Response) -> Result<bool, Failure> {
        let zeros = response.text().trim().parse::<u32>().ok();
        let unclear = || Failure::new(format!("cannot tell whether {} is binary: {:?}", self.0, response.text()));
        zeros.map(|zeros| zeros > 0).ok_or_else(unclear)
    }
}
