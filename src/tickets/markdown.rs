//! A ticket as Markdown, for reading and for systems that take it.

use super::plan_text::{back_out, implementation_steps, post_checks, pre_checks, present, summary};
use super::ticket::{Ticket, TicketHost};

/// Writes the ticket.
pub fn write(ticket: &Ticket) -> String {
    let mut out = Vec::new();
    out.push(format!("# {}: {}\n", ticket.id, inline(&ticket.short_description)));
    out.push(format!("{}\n", summary(ticket)));

    out.push("## Why\n".to_owned());
    out.extend(table(
        &["Setting", "Target", "Reason", "Impact", "Risk"],
        ticket
            .settings()
            .iter()
            .map(|wanted| vec![wanted.title.as_str(), wanted.target(), &wanted.reason, &wanted.impact, &wanted.risk]),
    ));

    out.push("## Pre-checks\n".to_owned());
    out.extend(list("- [ ]", &pre_checks(ticket)));
    out.push("## Implementation\n".to_owned());
    out.extend(list("1.", &implementation_steps(ticket)));
    out.push("## Post-checks\n".to_owned());
    out.extend(list("- [ ]", &post_checks(ticket)));

    out.push("## Order\n".to_owned());
    let batches: Vec<Vec<String>> = (1..=ticket.batches())
        .map(|batch| {
            let names = ticket.hosts.iter().filter(|host| host.batch == batch).map(|host| host.record.name.as_str());
            vec![batch.to_string(), names.collect::<Vec<_>>().join(", ")]
        })
        .collect();
    out.extend(table(&["Batch", "Hosts"], batches.iter().map(|row| row.iter().map(String::as_str).collect())));

    out.push("## Hosts\n".to_owned());
    for host in &ticket.hosts {
        out.extend(host_section(host));
    }
    out.push("## Sign-off\n".to_owned());
    out.extend(table(
        &["Host", "Done by", "Checked by", "Time"],
        ticket.hosts.iter().map(|host| vec![host.record.name.as_str(), "", "", ""]),
    ));
    let mut text: String = out.iter().map(|line| format!("{line}\n")).collect();
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn host_section(host: &TicketHost) -> Vec<String> {
    let record = &host.record;
    let mut out = vec![format!("### {}\n", inline(&record.name))];
    let facts = [
        ("Batch", host.batch.to_string()),
        ("Machine", joined(&[&record.vendor, &record.model])),
        ("Serial number", record.serial.clone()),
        ("Asset tag", record.asset_tag.clone()),
        ("BIOS", joined(&[&record.bios_version, &record.bios_date])),
        ("Place", joined(&[&record.site, &record.rack, &record.rack_unit])),
        ("BMC", record.bmc_address.clone()),
        ("Cluster", record.cluster.clone()),
        ("Replica role", record.replica_role.word().to_owned()),
    ];
    let known = facts.iter().filter(|(_, value)| !value.is_empty());
    out.extend(known.map(|(name, value)| format!("- {name}: {}", inline(value))));
    out.push(String::new());
    out.extend(table(
        &["Setting", "Now", "Target", "", "Evidence", "Confidence"],
        host.findings.iter().map(|finding| {
            vec![
                finding.wanted.title.as_str(),
                present(finding),
                finding.wanted.target(),
                finding.verdict.words(),
                &finding.observation.evidence,
                finding.observation.confidence.word(),
            ]
        }),
    ));
    out.push("Back-out:\n".to_owned());
    out.extend(list("-", &back_out(host)));
    out
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", ")
}

fn list(mark: &str, items: &[String]) -> Vec<String> {
    let mut out: Vec<String> = items.iter().map(|item| format!("{mark} {}", item.replace('\n', " "))).collect();
    out.push(String::new());
    out
}

fn table<'a>(header: &[&str], rows: impl Iterator<Item = Vec<&'a str>>) -> Vec<String> {
    let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |", cells.collect::<Vec<_>>().join(" | "));
    let mut out = vec![
        line(&mut header.iter().map(|cell| (*cell).to_owned())),
        line(&mut header.iter().map(|_| "---".to_owned())),
    ];
    out.extend(rows.map(|row| line(&mut row.iter().map(|cell| inline(cell)))));
    out.push(String::new());
    out
}

/// Text from hosts and inventories cannot open a table cell, a tag or a link.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '<' | '>' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::{host, profile};
    use super::super::record::ReplicaRole;
    use super::super::ticket::tests::wrong;
    use super::super::ticket::{Options, build};
    use super::*;

    fn ticket() -> Ticket {
        let mut odd = host("b|<b>", "c1", ReplicaRole::Primary, wrong());
        odd.observations[0].evidence = "15\n| x".to_owned();
        let hosts = [odd, host("a", "c1", ReplicaRole::Secondary, Vec::new())];
        let options = Options { pre_checks: vec!["The load balancer is told".into()], ..Options::default() };
        build(&profile(), &hosts, &options).unwrap().unwrap()
    }

    #[test]
    fn a_ticket_says_all_that_is_needed() {
        let text = write(&ticket());
        for part in [
            "# BIOS-",
            "1 to change, 1 only to be looked at, 0 right already. 2 hosts in 2 batches, one reboot a host, about 60 minutes.",
            "| cpu prefetching | disabled | cpu\\_prefetching matters | less latency | none known |",
            "- [ ] The load balancer is told",
            "1. cpu prefetching: in `Advanced > MISC Config`, set `disabled` (Redfish attribute `Attribute` = `disabled`), unless",
            "| 1 | a |\n| 2 | b\\|\\<b\\> |",
            "- Serial number: S-a",
            "- Place: Langfang, R7, 12",
            "- BMC: 10.0.0.7",
            "| cpu prefetching | enabled | disabled | wrong | 15 \\| x | observed |",
            "| smmu | unknown | enabled | to be confirmed by hand | nothing on the running system shows it | not\\_observable |",
            "- cpu prefetching: set back to `enabled` (observed)",
            "- smmu: set back to the value noted before the change",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(text.ends_with("|\n") && !text.ends_with("\n\n"));
    }

    #[test]
    fn a_second_run_writes_the_same() {
        assert_eq!(write(&ticket()), write(&ticket()));
    }
}
