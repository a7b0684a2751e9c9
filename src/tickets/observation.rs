//! What was seen of a BIOS setting from the running system, with the very text it was seen in.

use crate::error::{Error, Result};
use crate::value::{Value, object};

/// How sure the value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confidence {
    /// The system shows the setting itself or its immediate effect.
    Observed,
    /// It follows from something else, which can have other causes.
    Inferred,
    /// The running system does not show it: somebody must look at the console or the BMC.
    NotObservable,
}

const CONFIDENCES: &[(&str, Confidence)] = &[
    ("observed", Confidence::Observed),
    ("inferred", Confidence::Inferred),
    ("not_observable", Confidence::NotObservable),
];

impl Confidence {
    /// The word in variables and tickets.
    pub fn word(self) -> &'static str {
        CONFIDENCES.iter().find(|(_, confidence)| *confidence == self).map_or("", |(word, _)| word)
    }

    pub fn parse(word: &str) -> Result<Confidence> {
        CONFIDENCES.iter().find(|(known, _)| *known == word).map(|(_, confidence)| *confidence).ok_or_else(|| {
            Error::input(format!("`{word}` is not a confidence; there is `observed`, `inferred` and `not_observable`"))
                .suggest(word, CONFIDENCES.iter().map(|(known, _)| *known))
        })
    }
}

/// One setting of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The setting's neutral name: `cpu_prefetching`, `smmu`.
    pub setting: String,
    /// In lower case: `enabled`, `performance`, `2933`. `None` if it cannot be observed.
    pub value: Option<String>,
    /// Where the evidence was read: a path or a command.
    pub source: String,
    /// The text itself, or why there is none.
    pub evidence: String,
    pub confidence: Confidence,
}

impl Observation {
    pub fn observed(setting: &str, value: impl Into<String>, source: &str, evidence: impl Into<String>) -> Observation {
        Observation {
            setting: setting.to_owned(),
            value: Some(value.into()),
            source: source.to_owned(),
            evidence: evidence.into(),
            confidence: Confidence::Observed,
        }
    }

    pub fn inferred(setting: &str, value: impl Into<String>, source: &str, evidence: impl Into<String>) -> Observation {
        Observation { confidence: Confidence::Inferred, ..Observation::observed(setting, value, source, evidence) }
    }

    pub fn not_observable(setting: &str, source: &str, why: impl Into<String>) -> Observation {
        Observation {
            setting: setting.to_owned(),
            value: None,
            source: source.to_owned(),
            evidence: why.into(),
            confidence: Confidence::NotObservable,
        }
    }

    /// As a variable of the host.
    pub fn to_value(&self) -> Value {
        object([
            ("setting", self.setting.as_str().into()),
            ("value", self.value.clone().into()),
            ("source", self.source.as_str().into()),
            ("evidence", self.evidence.as_str().into()),
            ("confidence", self.confidence.word().into()),
        ])
        .into()
    }

    /// From a variable of the host.
    pub fn from_value(value: &Value) -> Result<Observation> {
        let text = |name: &str| value.get(name).map(|value| value.to_text().into_owned()).unwrap_or_default();
        let setting = text("setting");
        if setting.is_empty() {
            return Err(Error::input("an observation has no `setting`"));
        }
        let confidence = Confidence::parse(&text("confidence"))?;
        let seen = value.get("value").filter(|value| !value.is_null() && !value.is_undefined());
        let seen = seen.map(canonical).filter(|_| confidence != Confidence::NotObservable);
        if seen.is_none() && confidence != Confidence::NotObservable {
            return Err(Error::input(format!("the observation of `{setting}` has no `value`")));
        }
        Ok(Observation { setting, value: seen, source: text("source"), evidence: text("evidence"), confidence })
    }
}

/// A value of a setting as it is compared: YAML's booleans are the words `enabled` and `disabled`, text is in lower case.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Bool(true) => "enabled".to_owned(),
        Value::Bool(false) => "disabled".to_owned(),
        other => other.to_text().trim().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_survive_a_way_through_variables() {
        let cases = [
            Observation::observed("smmu", "enabled", "/sys/class/iommu", "smmu3.0x0000000148000000"),
            Observation::inferred("turbo", "disabled", "no_turbo", "1"),
            Observation::not_observable("cpu_prefetching", "/sys/class/misc/prefetch/policy", "it does not exist"),
        ];
        for observation in cases {
            assert_eq!(Observation::from_value(&observation.to_value()).unwrap(), observation);
        }
    }

    #[test]
    fn incomplete_observations_are_refused() {
        let of = |confidence: &str, value: Value| {
            let map = object([("setting", "smt".into()), ("confidence", confidence.into()), ("value", value)]);
            Observation::from_value(&map.into())
        };
        assert!(of("observed", Value::Null).is_err());
        assert_eq!(of("inferd", true.into()).unwrap_err().hints(), ["did you mean `inferred`?"]);
        assert_eq!(of("observed", true.into()).unwrap().value.as_deref(), Some("enabled"));
        assert!(Observation::from_value(&Value::empty_map()).is_err());
    }
}
