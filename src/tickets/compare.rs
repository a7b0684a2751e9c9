//! Compares what was observed on a host with what its profile wants.

use super::observation::{Confidence, Observation};
use super::profile::{Profile, Wanted};
use super::record::HostRecord;

/// What comes of one setting on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong,
    /// The running system does not prove it: somebody must look at the console or the BMC. Never counted as right.
    ToConfirm,
}

impl Verdict {
    /// The words in tickets.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
            Verdict::ToConfirm => "to be confirmed by hand",
        }
    }
}

/// One setting of one host, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub wanted: Wanted,
    pub observation: Observation,
    pub verdict: Verdict,
}

/// Judges every setting of the profile, in its order.
///
/// A wrong value that was only inferred is still wrong (the ticket shows the confidence and asks to look first); a right
/// one that was only inferred is to be confirmed.
pub fn compare(profile: &Profile, host: &HostRecord) -> Vec<Finding> {
    let judge = |wanted: &Wanted| {
        let seen = host.observations.iter().find(|observation| observation.setting == wanted.setting);
        let observation = seen.cloned().unwrap_or_else(|| {
            Observation::not_observable(&wanted.setting, "", "nothing on the running system shows it")
        });
        let verdict = match (&observation.value, observation.confidence) {
            (None, _) | (_, Confidence::NotObservable) => Verdict::ToConfirm,
            (Some(value), _) if !wanted.values.contains(value) => Verdict::Wrong,
            (Some(_), Confidence::Inferred) => Verdict::ToConfirm,
            (Some(_), Confidence::Observed) => Verdict::Right,
        };
        Finding { wanted: wanted.clone(), observation, verdict }
    };
    profile.settings.iter().map(judge).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::tickets::record::ReplicaRole;

    pub fn wanted(setting: &str, value: &str) -> Wanted {
        Wanted {
            setting: setting.to_owned(),
            title: setting.replace('_', " "),
            values: vec![value.to_owned()],
            menu: "Advanced > MISC Config".to_owned(),
            attribute: "Attribute".to_owned(),
            attribute_value: value.to_owned(),
            reason: format!("{setting} matters"),
            impact: "less latency".to_owned(),
            risk: "none known".to_owned(),
        }
    }

    pub fn profile() -> Profile {
        Profile {
            name: "kunpeng-920".to_owned(),
            title: "Kunpeng 920".to_owned(),
            settings: vec![wanted("cpu_prefetching", "disabled"), wanted("smmu", "enabled"), wanted("refresh", "auto")],
        }
    }

    pub fn host(name: &str, cluster: &str, role: ReplicaRole, observations: Vec<Observation>) -> HostRecord {
        HostRecord {
            name: name.to_owned(),
            vendor: "Huawei".to_owned(),
            model: "TaiShan 200".to_owned(),
            serial: format!("S-{name}"),
            asset_tag: format!("A-{name}"),
            bios_version: "1.75".to_owned(),
            bios_date: "2022-01-02".to_owned(),
            site: "Langfang".to_owned(),
            rack: "R7".to_owned(),
            rack_unit: "12".to_owned(),
            bmc_address: "10.0.0.7".to_owned(),
            cluster: cluster.to_owned(),
            replica_role: role,
            observations,
        }
    }

    #[test]
    fn only_what_is_proven_is_right() {
        let observed = |value: &str| Observation::observed("smmu", value, "s", "e");
        let inferred = |value: &str| Observation::inferred("smmu", value, "s", "e");
        let cases = [
            (vec![observed("enabled")], Verdict::Right),
            (vec![observed("disabled")], Verdict::Wrong),
            (vec![inferred("disabled")], Verdict::Wrong),
            (vec![inferred("enabled")], Verdict::ToConfirm),
            (vec![Observation::not_observable("smmu", "s", "e")], Verdict::ToConfirm),
            (vec![], Verdict::ToConfirm),
        ];
        for (observations, verdict) in cases {
            let findings = compare(&profile(), &host("a", "", ReplicaRole::None, observations.clone()));
            assert_eq!(findings[1].verdict, verdict, "{observations:?}");
            assert_eq!(findings.len(), 3);
        }
    }
}
