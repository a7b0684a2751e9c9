//! The prose of a ticket: the same sentences in every format.

use super::compare::Finding;
use super::ticket::{Ticket, TicketHost};

/// What is to be done on each host, in order.
pub fn implementation_steps(ticket: &Ticket) -> Vec<String> {
    let mut steps = vec![
        "Take the host out of service: drain it, and hand its part over if it is a primary.".to_owned(),
        "Open the setup of the BIOS at the console or through the BMC, and note the present value of every setting below."
            .to_owned(),
    ];
    for wanted in ticket.settings() {
        let place = if wanted.menu.is_empty() { "the setup".to_owned() } else { format!("`{}`", wanted.menu) };
        let attribute = match wanted.attribute.as_str() {
            "" => String::new(),
            name => format!(" (Redfish attribute `{name}` = `{}`)", wanted.attribute_value),
        };
        steps.push(format!(
            "{}: in {place}, set `{}`{attribute}, unless it is so already.",
            wanted.title,
            wanted.target()
        ));
    }
    steps.push("Change nothing else, and load no default values. Save, and reboot once for all settings.".to_owned());
    steps.push("Where every value was right already, leave the setup without saving; no change was made.".to_owned());
    steps.push("Do the post-checks before the next batch begins. Stop at the first host that fails them.".to_owned());
    steps
}

/// What must hold before a host goes down.
pub fn pre_checks(ticket: &Ticket) -> Vec<String> {
    let mut checks = vec![
        "Serial number and asset tag of the machine are those of the ticket.".to_owned(),
        "The BMC answers at its address and the console works.".to_owned(),
        "A backup of the data exists and has been read back.".to_owned(),
        "Replication has no lag, and the remaining members hold a quorum without this host.".to_owned(),
        "No other change is under way on the same cluster.".to_owned(),
    ];
    checks.extend(ticket.options.pre_checks.iter().cloned());
    checks
}

/// What must hold before a host serves again.
pub fn post_checks(ticket: &Ticket) -> Vec<String> {
    let mut checks = vec![
        "The host has started with the same BIOS version, all of its memory and all of its disks.".to_owned(),
        "The values set are shown in the setup or by the BMC.".to_owned(),
        "The playbook of this checklist, run again, reports none of the settings as wrong.".to_owned(),
        "The host has joined its replica set again and replication has caught up.".to_owned(),
    ];
    checks.extend(ticket.options.post_checks.iter().cloned());
    checks
}

/// How a host is brought back.
pub fn back_out(host: &TicketHost) -> Vec<String> {
    let mut steps = Vec::new();
    for finding in &host.findings {
        let title = &finding.wanted.title;
        steps.push(match &finding.observation.value {
            Some(value) => format!("{title}: set back to `{value}` ({})", finding.observation.confidence.word()),
            None => format!("{title}: set back to the value noted before the change"),
        });
    }
    steps
}

/// One sentence on how much is to be done.
pub fn summary(ticket: &Ticket) -> String {
    let change = ticket.hosts.iter().filter(|host| host.needs_change()).count();
    let confirm = ticket.hosts.len() - change;
    let minutes = ticket.batches() as u64 * u64::from(ticket.options.minutes_per_host);
    format!(
        "{change} to change, {confirm} only to be looked at, {} right already. {} in {}, one reboot a host, about {minutes} minutes.",
        ticket.right_hosts,
        counted(ticket.hosts.len(), "host", "hosts"),
        counted(ticket.batches(), "batch", "batches"),
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What a host has, in words.
pub fn present(finding: &Finding) -> &str {
    finding.observation.value.as_deref().unwrap_or("unknown")
}
