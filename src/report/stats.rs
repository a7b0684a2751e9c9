//! What set_stats collected: of the run, and of single hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::value::{Map, Value};

/// The statistics of set_stats.
#[derive(Debug, Default)]
pub struct CustomStats {
    pub run: Map,
    pub hosts: BTreeMap<Arc<str>, Map>,
}

impl CustomStats {
    pub fn is_empty(&self) -> bool {
        self.run.is_empty() && self.hosts.is_empty()
    }

    /// Adds one call of set_stats; without `aggregate` it replaces what was there.
    pub fn add(&mut self, host: Option<Arc<str>>, data: &Value, aggregate: bool) {
        let Some(data) = data.as_map() else { return };
        let stats = match host {
            Some(host) => self.hosts.entry(host).or_default(),
            None => &mut self.run,
        };
        for (key, value) in data {
            let merged = match stats.get(key) {
                Some(old) if aggregate => sum(old, value),
                _ => value.clone(),
            };
            stats.insert(key.clone(), merged);
        }
    }
}

/// Numbers and texts are added, lists joined, maps merged; of different types the new one stays.
fn sum(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Int(old), Value::Int(new)) => {
            old.checked_add(*new).map_or_else(|| Value::big(BigInt::from(*old) + new), Value::from)
        }
        (Value::Float(old), Value::Float(new)) => Value::Float(old + new),
        (Value::Str(old), Value::Str(new)) => Value::from(format!("{}{}", old.as_str(), new.as_str())),
        (Value::List(old), Value::List(new)) => Value::list(old.iter().chain(new.iter()).cloned().collect()),
        (Value::Map(old), Value::Map(new)) => {
            let mut merged = Map::clone(old);
            merged.extend(new.iter().map(|(key, value)| (key.clone(), value.clone())));
            merged.into()
        }
        _ => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;

    #[test]
    fn values_of_one_name_add_up_unless_they_replace() {
        let data = |n: i64| Value::map(object([("n", n.into()), ("l", Value::list(vec![n.into()]))]));
        let mut stats = CustomStats::default();
        stats.add(None, &data(1), true);
        stats.add(None, &data(2), true);
        stats.add(Some("h".into()), &data(5), true);
        stats.add(Some("h".into()), &data(6), false);
        assert_eq!(Value::map(stats.run.clone()).to_json().to_string(), r#"{"n":3,"l":[1,2]}"#);
        assert_eq!(Value::map(stats.hosts["h"].clone()).to_json().to_string(), r#"{"n":6,"l":[6]}"#);
    }
}
