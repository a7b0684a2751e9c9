//! What is wanted of the BIOS of a kind of machine: data that users write, read from their variables.

use crate::error::{Error, Result};
use crate::value::{Map, Value};

use super::observation::canonical;

/// The wanted settings of a kind of machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    pub title: String,
    /// In the order they were written.
    pub settings: Vec<Wanted>,
}

/// One wanted setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The neutral name by which it is observed.
    pub setting: String,
    pub title: String,
    /// The values that are right, in lower case; the first is the target.
    pub values: Vec<String>,
    /// The way through the menus of the setup.
    pub menu: String,
    /// The name in the firmware's attribute registry (Redfish), if known.
    pub attribute: String,
    /// The attribute's value for the target; it can be inverted (`…Disable`).
    pub attribute_value: String,
    /// Why it is wanted. A change of firmware without a reason is not asked for.
    pub reason: String,
    pub impact: String,
    pub risk: String,
}

/// The keys of a setting in a profile.
const KEYS: &[&str] = &["title", "wanted", "menu", "attribute", "attribute_value", "reason", "impact", "risk"];

impl Profile {
    /// Reads a profile: `{title, settings: {NAME: {wanted, reason, …}}}`.
    pub fn from_value(name: &str, value: &Value) -> Result<Profile> {
        let map = value.as_map().ok_or_else(|| Error::input(format!("the profile `{name}` is not a map")))?;
        known_keys(map, &["title", "settings"], &format!("the profile `{name}`"))?;
        let settings = value
            .get("settings")
            .and_then(Value::as_map)
            .filter(|settings| !settings.is_empty())
            .ok_or_else(|| Error::input(format!("the profile `{name}` has no map `settings`")))?;
        let title = value.get("title").map_or_else(|| name.to_owned(), |title| title.to_text().into_owned());
        let settings = settings
            .iter()
            .map(|(setting, wanted)| Wanted::from_value(&setting.to_text(), wanted, name))
            .collect::<Result<Vec<_>>>()?;
        Ok(Profile { name: name.to_owned(), title, settings })
    }
}

impl Wanted {
    fn from_value(setting: &str, value: &Value, profile: &str) -> Result<Wanted> {
        let what = format!("`{setting}` in the profile `{profile}`");
        let map = value.as_map().ok_or_else(|| Error::input(format!("{what} is not a map")))?;
        known_keys(map, KEYS, &what)?;
        let text =
            |key: &str| value.get(key).filter(|text| !text.is_null()).map(|text| text.to_text().trim().to_owned());
        let values: Vec<String> = match value.get("wanted") {
            Some(Value::List(values)) => values.iter().map(canonical).collect(),
            Some(Value::Null) | None => Vec::new(),
            Some(single) => vec![canonical(single)],
        };
        if values.iter().all(String::is_empty) {
            return Err(Error::input(format!("{what} does not say what is `wanted`")));
        }
        let reason = text("reason").filter(|reason| !reason.is_empty()).ok_or_else(|| {
            Error::input(format!("{what} has no `reason`")).hint("a change of firmware is asked for only with a reason")
        })?;
        Ok(Wanted {
            setting: setting.to_owned(),
            title: text("title").unwrap_or_else(|| setting.replace('_', " ")),
            attribute_value: text("attribute_value").unwrap_or_else(|| values[0].clone()),
            values,
            menu: text("menu").unwrap_or_default(),
            attribute: text("attribute").unwrap_or_default(),
            reason,
            impact: text("impact").unwrap_or_default(),
            risk: text("risk").unwrap_or_default(),
        })
    }

    /// The value to set.
    pub fn target(&self) -> &str {
        self.values.first().map_or("", String::as_str)
    }
}

fn known_keys(map: &Map, known: &[&str], what: &str) -> Result<()> {
    for key in map.keys() {
        let key = key.to_text();
        if !known.contains(&key.as_ref()) {
            return Err(
                Error::input(format!("{what} has the unknown key `{key}`")).suggest(&key, known.iter().copied())
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(json: &str) -> Result<Profile> {
        Profile::from_value("p", &Value::from_json(&serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn a_profile_is_read_from_data() {
        let profile = profile(
            r#"{"title": "Kunpeng", "settings": {"smmu": {"wanted": true, "reason": "SR-IOV", "attribute": "EnableSMMU",
                "attribute_value": "Enabled"}, "memory_speed": {"wanted": [2933, 3200], "reason": "full speed"}}}"#,
        )
        .unwrap();
        assert_eq!(profile.title, "Kunpeng");
        let [smmu, memory] = &profile.settings[..] else { panic!("two settings") };
        assert_eq!((smmu.target(), smmu.attribute_value.as_str(), smmu.title.as_str()), ("enabled", "Enabled", "smmu"));
        assert_eq!(
            (memory.values.as_slice(), memory.title.as_str()),
            (&["2933".to_owned(), "3200".to_owned()][..], "memory speed")
        );
    }

    #[test]
    fn profiles_with_gaps_are_refused() {
        let cases = [
            (r#"[]"#, "not a map"),
            (r#"{"settings": {}}"#, "no map `settings`"),
            (r#"{"settings": {"smmu": 1}}"#, "not a map"),
            (r#"{"settings": {"smmu": {"reason": "x"}}}"#, "what is `wanted`"),
            (r#"{"settings": {"smmu": {"wanted": true}}}"#, "no `reason`"),
            (r#"{"settings": {"smmu": {"wnated": true}}}"#, "unknown key `wnated`"),
            (r#"{"setings": {}}"#, "unknown key `setings`"),
        ];
        for (json, message) in cases {
            let error = profile(json).unwrap_err();
            assert!(error.message().contains(message), "{json}: {}", error.message());
        }
    }
}
