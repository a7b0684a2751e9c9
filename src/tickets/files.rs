//! From variables to files: the hosts of a run, sorted by their profiles, and the tickets they need.

use crate::error::{Error, Result};
use crate::value::{Value, object};

use super::profile::Profile;
use super::record::HostRecord;
use super::ticket::{Options, Ticket, build};
use super::{csv, markdown};

/// A file to be written on the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TicketFile {
    /// Without a directory: the ticket's id and the format.
    pub name: String,
    pub content: Vec<u8>,
}

/// The formats by name.
pub const FORMATS: &[&str] = &["markdown", "csv"];

/// The tickets of a run: one for each profile whose hosts differ, in the order of the profiles.
///
/// `profiles` maps names to profiles, `hosts` is a list of records, each with the name of its `profile`, `options` a map or nothing.
pub fn tickets(profiles: &Value, hosts: &Value, options: &Value) -> Result<Vec<Ticket>> {
    let profiles = profiles.as_map().ok_or_else(|| Error::input("the profiles are not a map of names and profiles"))?;
    let hosts = hosts.as_list().ok_or_else(|| Error::input("the hosts of the ticket are not a list"))?;
    let options = Options::from_value(options)?;
    let mut members: Vec<(String, HostRecord)> = Vec::new();
    for host in hosts {
        let record = HostRecord::from_value(host)?;
        let profile = host.get("profile").map(|name| name.to_text().into_owned()).unwrap_or_default();
        if !profiles.contains_key(profile.as_str()) {
            let known: Vec<String> = profiles.keys().map(|key| key.to_text().into_owned()).collect();
            return Err(Error::input(format!(
                "host `{}` has the profile `{profile}`, which does not exist",
                record.name
            ))
            .suggest(&profile, known.iter().map(String::as_str)));
        }
        members.push((profile, record));
    }
    let mut tickets = Vec::new();
    for (name, profile) in profiles {
        let name = name.to_text();
        let of_profile: Vec<HostRecord> =
            members.iter().filter(|(profile, _)| *profile == name).map(|(_, record)| record.clone()).collect();
        // A profile that no host has may be unfinished.
        if !of_profile.is_empty() {
            tickets.extend(build(&Profile::from_value(&name, profile)?, &of_profile, &options)?);
        }
    }
    Ok(tickets)
}

/// A ticket as a file of the given format.
pub fn file(ticket: &Ticket, format: &str) -> Result<TicketFile> {
    let (ending, content) = match format {
        "markdown" => ("md", markdown::write(ticket).into_bytes()),
        "csv" => ("csv", csv::write(ticket)?),
        _ => {
            return Err(Error::input(format!("`{format}` is not a format of tickets; there is `markdown` and `csv`"))
                .suggest(format, FORMATS.iter().copied()));
        }
    };
    Ok(TicketFile { name: format!("{}.{ending}", ticket.id), content })
}

/// What a task reports of a ticket.
pub fn to_value(ticket: &Ticket) -> Value {
    let hosts = ticket.hosts.iter().map(|host| {
        let settings = host.findings.iter().map(|finding| {
            Value::from(object([
                ("setting", finding.wanted.setting.as_str().into()),
                ("present", finding.observation.value.clone().into()),
                ("target", finding.wanted.target().into()),
                ("verdict", finding.verdict.words().into()),
                ("confidence", finding.observation.confidence.word().into()),
            ]))
        });
        Value::from(object([
            ("name", host.record.name.as_str().into()),
            ("batch", host.batch.into()),
            ("settings", Value::list(settings.collect())),
        ]))
    });
    object([
        ("id", ticket.id.as_str().into()),
        ("short_description", ticket.short_description.as_str().into()),
        ("profile", ticket.profile.name.as_str().into()),
        ("batches", ticket.batches().into()),
        ("right_hosts", ticket.right_hosts.into()),
        ("hosts", Value::list(hosts.collect())),
    ])
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        Value::from_json(&serde_json::from_str(text).unwrap())
    }

    fn profiles() -> Value {
        json(
            r#"{"arm": {"settings": {"smmu": {"wanted": true, "reason": "SR-IOV"}}},
                "intel": {"settings": {"turbo": {"wanted": true, "reason": "speed"}}},
                "unfinished": {}}"#,
        )
    }

    fn hosts(profile: &str) -> Value {
        json(&format!(
            r#"[{{"name": "a", "profile": "{profile}", "observations": []}},
                {{"name": "b", "profile": "intel",
                  "observations": [{{"setting": "turbo", "value": "disabled", "confidence": "observed"}}]}}]"#
        ))
    }

    #[test]
    fn each_profile_has_its_ticket() {
        let tickets = tickets(&profiles(), &hosts("arm"), &Value::Null).unwrap();
        let shown: Vec<_> =
            tickets.iter().map(|ticket| (ticket.profile.name.as_str(), ticket.hosts[0].record.name.as_str())).collect();
        assert_eq!(shown, [("arm", "a"), ("intel", "b")]);
        let file = file(&tickets[1], "csv").unwrap();
        assert_eq!(file.name, format!("{}.csv", tickets[1].id));
        let value = to_value(&tickets[1]);
        assert_eq!(value.get("batches"), Some(&Value::Int(1)));
        let hosts = value.get("hosts").and_then(Value::as_list).unwrap();
        assert_eq!(hosts[0].get("settings").unwrap().as_list().unwrap()[0].get("verdict"), Some(&"wrong".into()));
    }

    #[test]
    fn wrong_input_is_refused() {
        let error = tickets(&profiles(), &hosts("arn"), &Value::Null).unwrap_err();
        assert_eq!(error.hints(), ["did you mean `arm`?"]);
        assert!(tickets(&profiles(), &hosts("unfinished"), &Value::Null).is_err());
        assert!(tickets(&Value::Null, &hosts("arm"), &Value::Null).is_err());
        assert!(tickets(&profiles(), &Value::Null, &Value::Null).is_err());
        let ticket = tickets(&profiles(), &hosts("arm"), &Value::Null).unwrap().remove(0);
        assert!(file(&ticket, "pdf").is_err());
    }

    /// The profiles that are shipped with the role.
    fn shipped() -> Value {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/roles/bios-checklist/defaults/main.yml");
        let text = std::fs::read_to_string(path).unwrap();
        let node = crate::yaml::load(&crate::source::Source::new(path, text)).unwrap().unwrap();
        node.to_value().get("bios_checklist_profiles").cloned().unwrap()
    }

    #[test]
    fn shipped_profiles_can_be_read_and_seen() {
        let profiles = shipped();
        let names: Vec<String> = profiles.as_map().unwrap().keys().map(|name| name.to_text().into_owned()).collect();
        assert_eq!(names, ["kunpeng-920", "xeon-ice-lake"]);
        for (name, profile) in profiles.as_map().unwrap() {
            let profile = Profile::from_value(&name.to_text(), profile).unwrap();
            for wanted in &profile.settings {
                let known = super::super::observe::OBSERVERS.iter().any(|(setting, _)| *setting == wanted.setting);
                assert!(known, "{name:?}: nothing observes `{}`", wanted.setting);
                assert!(!wanted.menu.is_empty() && !wanted.attribute.is_empty() && !wanted.risk.is_empty());
            }
        }
    }

    #[test]
    fn the_shipped_kunpeng_profile_has_its_targets() {
        let profile = Profile::from_value("kunpeng-920", shipped().get("kunpeng-920").unwrap()).unwrap();
        let targets: Vec<_> =
            profile.settings.iter().map(|wanted| (wanted.setting.as_str(), wanted.target())).take(3).collect();
        assert_eq!(targets, [("cpu_prefetching", "disabled"), ("power_policy", "performance"), ("smmu", "enabled")]);
    }
}
