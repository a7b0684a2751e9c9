//! The ticket: the hosts that differ from their profile, in the order in which they can be rebooted.
//!
//! The content depends on its input alone, so that a second run writes the same ticket under the same id.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::value::Value;

use super::compare::{Finding, Verdict, compare};
use super::profile::Profile;
use super::record::{HostRecord, ReplicaRole};

/// ServiceNow and others cut a longer one.
const SHORT_DESCRIPTION: usize = 160;

/// What the people who run the fleet add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Hosts that may be down at once.
    pub max_parallel: usize,
    /// Minutes that one host is down, for the plan; from experience (a host with much memory takes long to start).
    pub minutes_per_host: u32,
    /// Further checks, behind the built-in ones.
    pub pre_checks: Vec<String>,
    pub post_checks: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_parallel: 1, minutes_per_host: 30, pre_checks: Vec::new(), post_checks: Vec::new() }
    }
}

impl Options {
    /// Reads the options from variables; what is missing keeps its default.
    pub fn from_value(value: &Value) -> Result<Options> {
        let mut options = Options::default();
        for (key, value) in value.as_map().into_iter().flatten() {
            let key = key.to_text();
            let positive = || {
                value.as_int().filter(|number| *number > 0).ok_or_else(|| {
                    Error::input(format!("`{key}` of a ticket is a number above 0, not `{}`", value.to_text()))
                })
            };
            let texts = || {
                let items =
                    value.as_list().ok_or_else(|| Error::input(format!("`{key}` of a ticket is a list of texts")))?;
                Ok::<_, Error>(items.iter().map(|item| item.to_text().trim().to_owned()).collect::<Vec<_>>())
            };
            match key.as_ref() {
                "max_parallel" => options.max_parallel = usize::try_from(positive()?).unwrap_or(usize::MAX),
                "minutes_per_host" => options.minutes_per_host = u32::try_from(positive()?).unwrap_or(u32::MAX),
                "pre_checks" => options.pre_checks = texts()?,
                "post_checks" => options.post_checks = texts()?,
                _ => {
                    let known = ["max_parallel", "minutes_per_host", "pre_checks", "post_checks"];
                    return Err(Error::input(format!("a ticket has no option `{key}`")).suggest(&key, known));
                }
            }
        }
        Ok(options)
    }
}

/// A host of the ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketHost {
    pub record: HostRecord,
    /// The findings that are not right.
    pub findings: Vec<Finding>,
    /// Counted from 1.
    pub batch: usize,
}

impl TicketHost {
    /// True if a setting is wrong, so a reboot is needed; else there is only something to look at.
    pub fn needs_change(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Wrong)
    }
}

/// A change request for one kind of machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub id: String,
    /// At most 160 characters.
    pub short_description: String,
    pub profile: Profile,
    /// By batch, then by name.
    pub hosts: Vec<TicketHost>,
    /// Hosts that were looked at and are right in everything.
    pub right_hosts: usize,
    pub options: Options,
}

impl Ticket {
    pub fn batches(&self) -> usize {
        self.hosts.iter().map(|host| host.batch).max().unwrap_or(0)
    }

    /// The settings that any host of the ticket has to change or confirm, each once, in the profile's order.
    pub fn settings(&self) -> Vec<&super::profile::Wanted> {
        let concerned: BTreeSet<&str> =
            self.hosts.iter().flat_map(|host| &host.findings).map(|finding| finding.wanted.setting.as_str()).collect();
        self.profile.settings.iter().filter(|wanted| concerned.contains(wanted.setting.as_str())).collect()
    }
}

/// Writes the ticket for the hosts that differ; `None` if all are right.
pub fn build(profile: &Profile, hosts: &[HostRecord], options: &Options) -> Result<Option<Ticket>> {
    let mut names = BTreeSet::new();
    if let Some(twice) = hosts.iter().find(|host| !names.insert(host.name.as_str())) {
        return Err(Error::input(format!("host `{}` is in the ticket twice", twice.name)));
    }
    let mut differing: Vec<TicketHost> = hosts
        .iter()
        .map(|host| {
            let findings = compare(profile, host).into_iter().filter(|finding| finding.verdict != Verdict::Right);
            TicketHost { record: host.clone(), findings: findings.collect(), batch: 0 }
        })
        .filter(|host| !host.findings.is_empty())
        .collect();
    if differing.is_empty() {
        return Ok(None);
    }
    put_into_batches(&mut differing, options.max_parallel.max(1));
    let right_hosts = hosts.len() - differing.len();
    let mut ticket = Ticket {
        id: id(profile, &differing),
        short_description: String::new(),
        profile: profile.clone(),
        hosts: differing,
        right_hosts,
        options: options.clone(),
    };
    ticket.short_description = short_description(&ticket);
    Ok(Some(ticket))
}

/// Secondaries first, primaries last; in one batch never two members of a cluster, and not more than `most` hosts.
fn put_into_batches(hosts: &mut [TicketHost], most: usize) {
    hosts.sort_by(|left, right| {
        let key = |host: &TicketHost| (host.record.replica_role, host.record.name.clone());
        key(left).cmp(&key(right))
    });
    let mut filled: Vec<usize> = Vec::new();
    let mut last_of_cluster: BTreeMap<String, usize> = BTreeMap::new();
    let mut first_for_primaries = None;
    for host in hosts.iter_mut() {
        let earliest = match host.record.replica_role {
            // Every other host is done before the first primary goes down.
            ReplicaRole::Primary => *first_for_primaries.get_or_insert(filled.len()),
            ReplicaRole::Secondary | ReplicaRole::None => 0,
        };
        let cluster = host.record.cluster.as_str();
        let behind_cluster = last_of_cluster.get(cluster).filter(|_| !cluster.is_empty()).map_or(0, |last| last + 1);
        let mut batch = earliest.max(behind_cluster);
        while filled.get(batch).is_some_and(|count| *count >= most) {
            batch += 1;
        }
        if filled.len() <= batch {
            filled.resize(batch + 1, 0);
        }
        filled[batch] += 1;
        last_of_cluster.insert(cluster.to_owned(), batch);
        host.batch = batch + 1;
    }
    hosts.sort_by(|left, right| (left.batch, &left.record.name).cmp(&(right.batch, &right.record.name)));
}

/// A hash of hosts, settings and targets: the same work has the same id, whatever was observed meanwhile.
fn id(profile: &Profile, hosts: &[TicketHost]) -> String {
    let mut lines: Vec<String> = hosts
        .iter()
        .flat_map(|host| {
            host.findings.iter().map(|finding| {
                format!("{}\t{}\t{}\n", host.record.name, finding.wanted.setting, finding.wanted.target())
            })
        })
        .collect();
    lines.sort();
    let mut hash = Sha256::new();
    hash.update(profile.name.as_bytes());
    hash.update(b"\n");
    for line in lines {
        hash.update(line.as_bytes());
    }
    let digest = hash.finalize();
    let hexadecimal: String = digest.iter().take(6).map(|byte| format!("{byte:02X}")).collect();
    format!("BIOS-{hexadecimal}")
}

fn short_description(ticket: &Ticket) -> String {
    let count = ticket.hosts.len();
    let hosts = if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") };
    let targets = |wanted: &&super::profile::Wanted| format!("{} {}", wanted.title, wanted.target());
    let settings = ticket.settings();
    let all = settings.iter().map(targets).collect::<Vec<_>>().join(", ");
    let long = format!("{}: set {all} in the BIOS of {hosts}", ticket.profile.title);
    if long.chars().count() <= SHORT_DESCRIPTION {
        return long;
    }
    let short = format!("{}: set {} values in the BIOS of {hosts}", ticket.profile.title, settings.len());
    if short.chars().count() <= SHORT_DESCRIPTION {
        return short;
    }
    short.chars().take(SHORT_DESCRIPTION - 1).chain(['…']).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::compare::tests::{host, profile};
    use super::super::observation::Observation;
    use super::*;

    pub fn wrong() -> Vec<Observation> {
        vec![
            Observation::observed("cpu_prefetching", "enabled", "/sys/class/misc/prefetch/policy", "15"),
            Observation::observed("smmu", "enabled", "/sys/class/iommu", "smmu3.0"),
        ]
    }

    pub fn right() -> Vec<Observation> {
        let mut all = wrong();
        all[0].value = Some("disabled".to_owned());
        all.push(Observation::observed("refresh", "auto", "s", "e"));
        all
    }

    fn batches(hosts: &[HostRecord], most: usize) -> String {
        let options = Options { max_parallel: most, ..Options::default() };
        let ticket = build(&profile(), hosts, &options).unwrap().unwrap();
        ticket.hosts.iter().map(|host| format!("{}:{}", host.batch, host.record.name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn secondaries_go_first_and_no_two_of_a_cluster_together() {
        use ReplicaRole::{None, Primary, Secondary};
        let hosts = [
            host("p1", "c1", Primary, wrong()),
            host("s1", "c1", Secondary, wrong()),
            host("s2", "c1", Secondary, wrong()),
            host("p2", "c2", Primary, wrong()),
            host("s3", "c2", Secondary, wrong()),
            host("x", "", None, wrong()),
            host("y", "", None, wrong()),
        ];
        assert_eq!(batches(&hosts, 10), "1:s1 1:s3 1:x 1:y 2:s2 3:p1 3:p2");
        assert_eq!(batches(&hosts, 2), "1:s1 1:s3 2:s2 2:x 3:y 4:p1 4:p2");
        assert_eq!(batches(&hosts, 1), "1:s1 2:s2 3:s3 4:x 5:y 6:p1 7:p2");
        assert_eq!(batches(&[hosts[0].clone()], 1), "1:p1");
    }

    #[test]
    fn only_hosts_that_differ_are_in_the_ticket() {
        let hosts = [host("a", "", ReplicaRole::None, right()), host("b", "", ReplicaRole::None, wrong())];
        let ticket = build(&profile(), &hosts, &Options::default()).unwrap().unwrap();
        assert_eq!((ticket.hosts.len(), ticket.right_hosts), (1, 1));
        assert!(ticket.hosts[0].needs_change());
        let settings: Vec<_> = ticket.hosts[0].findings.iter().map(|finding| finding.wanted.setting.as_str()).collect();
        assert_eq!(settings, ["cpu_prefetching", "refresh"]);
        assert_eq!(build(&profile(), &hosts[..1], &Options::default()).unwrap(), None);
        let twice = [hosts[1].clone(), hosts[1].clone()];
        assert!(build(&profile(), &twice, &Options::default()).is_err());
    }

    #[test]
    fn the_same_work_has_the_same_id() {
        let id = |hosts: &[HostRecord]| build(&profile(), hosts, &Options::default()).unwrap().unwrap().id;
        let (a, b) = (host("a", "", ReplicaRole::None, wrong()), host("b", "", ReplicaRole::None, wrong()));
        let first = id(&[a.clone(), b.clone()]);
        assert_eq!(first, id(&[b, a.clone()]));
        assert_ne!(first, id(&[a]));
        assert!(first.starts_with("BIOS-") && first.len() == 17, "{first}");
    }

    #[test]
    fn the_short_description_fits() {
        let ticket =
            |hosts: &[HostRecord], profile: &Profile| build(profile, hosts, &Options::default()).unwrap().unwrap();
        let hosts = [host("a", "", ReplicaRole::None, wrong())];
        assert_eq!(
            ticket(&hosts, &profile()).short_description,
            "Kunpeng 920: set cpu prefetching disabled, refresh auto in the BIOS of 1 host"
        );
        for length in [60, 120, 400] {
            let long = Profile { title: "ü".repeat(length), ..profile() };
            assert!(ticket(&hosts, &long).short_description.chars().count() <= SHORT_DESCRIPTION);
        }
    }

    #[test]
    fn options_are_checked() {
        let of = |json: &str| Options::from_value(&Value::from_json(&serde_json::from_str(json).unwrap()));
        let options = of(r#"{"max_parallel": 3, "pre_checks": ["backup is newer than a day"]}"#).unwrap();
        assert_eq!((options.max_parallel, options.pre_checks.len(), options.minutes_per_host), (3, 1, 30));
        for wrong in [r#"{"max_parallel": 0}"#, r#"{"pre_checks": "x"}"#, r#"{"max_paralel": 1}"#] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
