//! The variables that trimtab itself sets for a run.

use std::path::{Path, PathBuf};

use super::settings::Settings;
use crate::engine::options::Options;
use crate::error::{Error, Result};
use crate::value::{Map, Value, object};

/// The version of Ansible whose language is spoken.
pub const COMPATIBLE_VERSION: (u32, u32, u32) = (2, 19, 0);

/// The magic variables of a run.
pub fn variables(options: &Options, settings: &Settings, inventory_sources: &[PathBuf]) -> Result<Map> {
    let paths = |paths: &[PathBuf]| {
        Value::list(paths.iter().map(|path| Value::from(path.to_string_lossy().into_owned())).collect())
    };
    let tags = |texts: &[String], none: &[&str]| {
        let tags: Vec<Value> = texts
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .map(Value::from)
            .collect();
        Value::list(if tags.is_empty() { none.iter().map(|tag| Value::from(*tag)).collect() } else { tags })
    };
    let mut map = object([
        ("ansible_version", version()),
        ("ansible_check_mode", options.check.into()),
        ("ansible_diff_mode", options.diff.into()),
        ("ansible_verbosity", i64::from(options.verbosity).into()),
        ("ansible_forks", Value::from(options.forks as i64)),
        ("ansible_run_tags", tags(&options.tags, &["all"])),
        ("ansible_skip_tags", tags(&options.skip_tags, &[])),
        ("ansible_inventory_sources", paths(inventory_sources)),
        ("ansible_managed", settings.text("ansible_managed").unwrap_or_default().into()),
        ("omit", format!("__omit_place_holder__{}", random_hex()?).into()),
    ]);
    let file = settings.file.as_ref().map(|path| Value::from(path.to_string_lossy().into_owned()));
    map.insert("ansible_config_file".into(), file.unwrap_or_default());
    if let Some(limit) = &options.limit {
        map.insert("ansible_limit".into(), limit.as_str().into());
    }
    if let Some(python) = python(std::env::var_os("PATH").unwrap_or_default().as_ref()) {
        map.insert("ansible_playbook_python".into(), python.to_string_lossy().into_owned().into());
    }
    Ok(map)
}

fn version() -> Value {
    let (major, minor, revision) = COMPATIBLE_VERSION;
    let full = format!("{major}.{minor}.{revision}");
    Value::map(object([
        ("full", full.as_str().into()),
        ("string", full.as_str().into()),
        ("major", i64::from(major).into()),
        ("minor", i64::from(minor).into()),
        ("revision", i64::from(revision).into()),
    ]))
}

fn random_hex() -> Result<String> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes).map_err(|error| Error::system(format!("no random numbers: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The first python3 of a `PATH`, if there is any.
fn python(path: &Path) -> Option<PathBuf> {
    std::env::split_paths(path.as_os_str()).map(|directory| directory.join("python3")).find(|python| python.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_knows_its_options() {
        let options = Options {
            tags: vec!["a, b".into(), "c".into()],
            limit: Some("web".into()),
            check: true,
            ..Options::default()
        };
        let map = variables(&options, &Settings::default(), &["/i".into()]).expect("variables");
        let json = |name: &str| map.get(name).map(|value| value.to_json().to_string()).unwrap_or_default();
        assert_eq!(json("ansible_run_tags"), r#"["a","b","c"]"#);
        assert_eq!(json("ansible_skip_tags"), "[]");
        assert_eq!(json("ansible_check_mode"), "true");
        assert_eq!(json("ansible_limit"), r#""web""#);
        assert_eq!(json("ansible_inventory_sources"), r#"["/i"]"#);
        assert_eq!(json("ansible_config_file"), "null");
        assert_eq!(json("ansible_managed"), r#""Ansible managed""#);
        assert!(json("ansible_version").contains(r#""full":"2.19.0""#));
        assert_eq!(json("omit").len(), r#""__omit_place_holder__""#.len() + 40);
    }
}
