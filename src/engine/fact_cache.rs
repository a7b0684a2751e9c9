//! Facts that are kept between runs (`fact_caching = jsonfile`): a file of JSON for each host, as Ansible writes it.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::value::{Map, Value};
use crate::vars::Runtime;

use super::play::Run;

/// Where facts are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactCache {
    pub directory: PathBuf,
    /// Stands before the host's name in the name of its file.
    pub prefix: String,
    /// Older facts are forgotten; `None`: never.
    pub timeout: Option<Duration>,
}

impl FactCache {
    fn file(&self, host: &str) -> PathBuf {
        // a host's name may be a path (a chroot)
        self.directory.join(format!("{}{}", self.prefix, host.replace('/', "_")))
    }

    /// The facts of a host under the names that modules gave them; `None` if there are none, or they are too old or
    /// cannot be read.
    pub fn load(&self, host: &str) -> Option<Map> {
        let path = self.file(host);
        let age = path.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().unwrap_or_default();
        if self.timeout.is_some_and(|timeout| age > timeout) {
            return None;
        }
        let json = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        Value::from_json(&json).as_map().cloned().filter(|facts| !facts.is_empty())
    }

    /// Keeps the facts of a host; forgets it if it has none.
    pub fn save(&self, host: &str, runtime: &Runtime) -> Result<()> {
        if runtime.facts.is_empty() {
            return self.forget(host);
        }
        let named = runtime.facts.iter().map(|(name, value)| {
            let is_own = runtime.own_facts.contains_key(name);
            let name = if is_own { name.clone() } else { Value::from(format!("ansible_{}", name.to_text())) };
            (name, value.clone())
        });
        let json = Value::map(named.collect()).to_json();
        let text = serde_json::to_string_pretty(&json).map_err(|error| Error::system(error.to_string()))?;
        let path = self.file(host);
        let failed = |error: std::io::Error| Error::system(format!("cannot write `{}`: {error}", path.display()));
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        // another run may read it meanwhile
        let aside = self.file(&format!("{host}.{}.tmp", std::process::id()));
        std::fs::write(&aside, text).map_err(failed)?;
        std::fs::rename(&aside, &path).map_err(failed)
    }

    /// Forgets the facts of a host.
    pub fn forget(&self, host: &str) -> Result<()> {
        let path = self.file(host);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::system(format!("cannot remove `{}`: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

/// Reads the facts that runs before have kept, or forgets them.
pub(super) fn recall(run: &Run) -> Result<()> {
    let Some(cache) = &run.options.fact_cache else { return Ok(()) };
    let inventory = run.inventory();
    let localhost = inventory.find_host("localhost");
    for id in inventory.hosts().map(|(id, _)| id).chain(localhost) {
        let name = &inventory.host(id).name;
        if run.options.flush_cache {
            cache.forget(name)?;
        } else if let Some(facts) = cache.load(name) {
            run.fleet.remember(id, facts);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::object;
    use crate::vars::runtime::Additions;

    #[test]
    fn facts_come_back_under_their_names_until_they_are_too_old() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FactCache { directory: directory.path().join("facts"), prefix: "x_".into(), timeout: None };
        assert_eq!(cache.load("web1"), None);
        let facts = object([("ansible_hostname", "web1".into()), ("rack", 7.into())]);
        let mut runtime = Runtime::default();
        runtime.apply(&Additions { facts: Some(facts.clone()), ..Additions::default() });
        cache.save("web1", &runtime).unwrap();
        assert!(directory.path().join("facts/x_web1").exists());
        assert_eq!(cache.load("web1"), Some(facts));
        let aged = FactCache { timeout: Some(Duration::ZERO), ..cache.clone() };
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(aged.load("web1"), None);
        cache.save("web1", &Runtime::default()).unwrap();
        assert_eq!(cache.load("web1"), None);
    }
}
