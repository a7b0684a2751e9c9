//! The lookup `inventory_hostnames`, over the variable `groups`.

use globset::Glob;

use super::{Lookup, terms};
use crate::template::call::{Call, as_map, entry, iterate, text_of};
use crate::template::error::{Result, TemplateError};
use crate::value::{Map, Value};

pub static LOOKUPS: &[Lookup] =
    &[entry(&["inventory_hostnames"], &["_terms"], "the hosts that a pattern names", inventory_hostnames)];

fn inventory_hostnames(call: &Call<'_>) -> Result<Vec<Value>> {
    let groups = match call.context.variable("groups")? {
        Some(value) => call.context.render_within(value)?,
        None => Value::empty_map(),
    };
    let groups = as_map(&groups)?.ok_or_else(|| TemplateError::failed("`groups` is no map"))?;
    let mut parts = Vec::new();
    for term in terms(call)? {
        let text = text_of(term)?;
        let separator = if text.contains(',') { ',' } else { ':' };
        parts.extend(text.split(separator).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()));
    }
    // intersections and exclusions count after all that is named
    parts.sort_by_key(|part| match part.chars().next() {
        Some('&') => 1,
        Some('!') => 2,
        _ => 0,
    });
    let mut out: Vec<Value> = Vec::new();
    for part in &parts {
        match part.chars().next() {
            Some('&') => {
                let kept = hosts_of(&groups, &part[1..])?;
                out.retain(|host| kept.contains(host));
            }
            Some('!') => {
                let removed = hosts_of(&groups, &part[1..])?;
                out.retain(|host| !removed.contains(host));
            }
            _ => {
                for host in hosts_of(&groups, part)? {
                    if !out.contains(&host) {
                        out.push(host);
                    }
                }
            }
        }
    }
    Ok(out)
}

/// The hosts of all groups, and all hosts, whose name matches.
fn hosts_of(groups: &Map, pattern: &str) -> Result<Vec<Value>> {
    let pattern = if pattern == "all" { "*" } else { pattern };
    let matcher = Glob::new(pattern)
        .map_err(|error| TemplateError::failed(format!("the pattern `{pattern}` is wrong: {error}")))?
        .compile_matcher();
    let mut out: Vec<Value> = Vec::new();
    for (group, hosts) in groups {
        let whole = matcher.is_match(&*group.to_text());
        for host in iterate(hosts)? {
            if (whole || matcher.is_match(&*host.to_text())) && !out.contains(&host) {
                out.push(host);
            }
        }
    }
    Ok(out)
}
