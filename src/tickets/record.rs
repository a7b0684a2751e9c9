//! What the data centre must know of a host: which machine it is, where it stands, what it serves.

use crate::error::{Error, Result};
use crate::value::{Value, object};

use super::observation::Observation;

/// The part a host plays in its replica set: decides the order of reboots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReplicaRole {
    Secondary,
    /// Not a member of a replica set, or not said.
    None,
    Primary,
}

const ROLES: &[(&str, ReplicaRole)] = &[
    ("secondary", ReplicaRole::Secondary),
    ("replica", ReplicaRole::Secondary),
    ("standby", ReplicaRole::Secondary),
    ("follower", ReplicaRole::Secondary),
    ("slave", ReplicaRole::Secondary),
    ("", ReplicaRole::None),
    ("none", ReplicaRole::None),
    ("primary", ReplicaRole::Primary),
    ("leader", ReplicaRole::Primary),
    ("master", ReplicaRole::Primary),
];

impl ReplicaRole {
    pub fn parse(word: &str) -> Result<ReplicaRole> {
        let lower = word.trim().to_lowercase();
        ROLES.iter().find(|(known, _)| *known == lower).map(|(_, role)| *role).ok_or_else(|| {
            Error::input(format!("`{word}` is not a replica role; there is `primary`, `secondary` and `none`"))
                .suggest(&lower, ROLES.iter().map(|(known, _)| *known))
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            ReplicaRole::Secondary => "secondary",
            ReplicaRole::None => "none",
            ReplicaRole::Primary => "primary",
        }
    }
}

/// A host with what was observed on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRecord {
    /// The name in the inventory.
    pub name: String,
    /// From DMI: read on the host.
    pub vendor: String,
    pub model: String,
    pub serial: String,
    pub asset_tag: String,
    pub bios_version: String,
    pub bios_date: String,
    /// From the inventory.
    pub site: String,
    pub rack: String,
    pub rack_unit: String,
    /// Address of the management controller; never its credentials.
    pub bmc_address: String,
    /// The replica set or cluster: no two of its members are rebooted in one batch.
    pub cluster: String,
    pub replica_role: ReplicaRole,
    pub observations: Vec<Observation>,
}

impl HostRecord {
    /// Reads a record from variables. All but `name` and `observations` may be missing.
    pub fn from_value(value: &Value) -> Result<HostRecord> {
        let text = |key: &str| match value.get(key) {
            Some(found) if !found.is_null() && !found.is_undefined() => found.to_text().trim().to_owned(),
            _ => String::new(),
        };
        let name = text("name");
        if name.is_empty() {
            return Err(Error::input("a host of the ticket has no `name`"));
        }
        let observations = value
            .get("observations")
            .and_then(Value::as_list)
            .ok_or_else(|| {
                Error::input(format!("host `{name}` has no list `observations`")).hint("run `bios_facts` on it first")
            })?
            .iter()
            .map(Observation::from_value)
            .collect::<Result<Vec<_>>>()
            .map_err(|error| Error::input(format!("host `{name}`: {}", error.message())))?;
        Ok(HostRecord {
            vendor: text("vendor"),
            model: text("model"),
            serial: text("serial"),
            asset_tag: text("asset_tag"),
            bios_version: text("bios_version"),
            bios_date: text("bios_date"),
            site: text("site"),
            rack: text("rack"),
            rack_unit: text("rack_unit"),
            bmc_address: text("bmc_address"),
            cluster: text("cluster"),
            replica_role: ReplicaRole::parse(&text("replica_role"))
                .map_err(|error| Error::input(format!("host `{name}`: {}", error.message())))?,
            observations,
            name,
        })
    }

    /// The part that is read on the host, as a variable: DMI identity and observations.
    pub fn facts(identity: &Identity, observations: &[Observation]) -> Value {
        object([
            ("vendor", identity.vendor.as_str().into()),
            ("model", identity.model.as_str().into()),
            ("serial", identity.serial.as_str().into()),
            ("asset_tag", identity.asset_tag.as_str().into()),
            ("bios_version", identity.bios_version.as_str().into()),
            ("bios_date", identity.bios_date.as_str().into()),
            ("observations", Value::list(observations.iter().map(Observation::to_value).collect())),
        ])
        .into()
    }
}

/// The files of `/sys/class/dmi/id`: `sys_vendor`, `product_name`, `product_serial`, `chassis_asset_tag`, `bios_version`, `bios_date`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    pub vendor: String,
    pub model: String,
    pub serial: String,
    pub asset_tag: String,
    pub bios_version: String,
    pub bios_date: String,
}

/// What manufacturers write where they write nothing.
const FILLERS: &[&str] =
    &["to be filled by o.e.m.", "default string", "not specified", "none", "n/a", "unknown", "0", "."];

/// A DMI text without blanks around it; empty if it is only the manufacturer's filler.
pub fn dmi_text(text: Option<&str>) -> String {
    let text = text.unwrap_or_default().trim();
    if FILLERS.contains(&text.to_lowercase().as_str()) { String::new() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_joins_facts_and_inventory() {
        let identity = Identity { vendor: "Huawei".into(), serial: "2102".into(), ..Identity::default() };
        let facts = HostRecord::facts(&identity, &[Observation::observed("smmu", "enabled", "s", "e")]);
        let mut map = facts.as_map().unwrap().clone();
        map.insert("name".into(), "kp001".into());
        map.insert("rack".into(), Value::Int(7));
        map.insert("replica_role".into(), "Slave".into());
        map.insert("bmc_address".into(), Value::Null);
        let record = HostRecord::from_value(&map.into()).unwrap();
        assert_eq!((record.vendor.as_str(), record.rack.as_str(), record.bmc_address.as_str()), ("Huawei", "7", ""));
        assert_eq!((record.replica_role, record.observations.len()), (ReplicaRole::Secondary, 1));
    }

    #[test]
    fn records_with_gaps_are_refused() {
        let none = Value::list(Vec::new());
        let cases = [
            (object([("observations", none.clone())]), "no `name`"),
            (object([("name", "a".into())]), "no list `observations`"),
            (
                object([("name", "a".into()), ("observations", none), ("replica_role", "prim".into())]),
                "host `a`: `prim`",
            ),
        ];
        for (map, message) in cases {
            let error = HostRecord::from_value(&map.into()).unwrap_err();
            assert!(error.message().contains(message), "{}", error.message());
        }
    }

    #[test]
    fn fillers_of_manufacturers_are_no_text() {
        for (text, meant) in [("To be filled by O.E.M.\n", ""), (" 2102312 \n", "2102312"), ("Default string", "")] {
            assert_eq!(dmi_text(Some(text)), meant);
        }
        assert_eq!(dmi_text(None), "");
    }
}
