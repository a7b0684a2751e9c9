//! What `ansible.cfg` and the environment set. The command line stands above both.

pub mod constants;
pub mod file;
pub mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use table::{Meaning, SETTINGS, Setting};

use crate::error::{Error, Result, nearest};
use crate::source::Place;
use table::{OTHER_SECTIONS, OTHER_VARIABLES};

/// The settings of this invocation.
#[derive(Debug, Default)]
pub struct Settings {
    given: HashMap<&'static str, Given>,
    /// The `ansible.cfg` that was read.
    pub file: Option<PathBuf>,
    /// What was passed over, to be said at `-v`.
    pub notes: Vec<String>,
    /// What is doubtful, to be said in any case.
    pub warnings: Vec<String>,
}

/// A value and where it was set.
#[derive(Debug, Clone)]
struct Given {
    value: String,
    origin: Origin,
}

#[derive(Debug, Clone)]
enum Origin {
    File(Place),
    Variable(&'static str),
}

/// What a loading of settings looks at, so that tests can bring their own.
pub struct Surroundings {
    pub variables: Vec<(String, String)>,
    pub here: PathBuf,
}

impl Surroundings {
    /// Those of the process.
    pub fn of_process() -> Surroundings {
        Surroundings {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            here: std::env::current_dir().unwrap_or_default(),
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Settings {
    /// Reads `ansible.cfg` and the environment.
    pub fn load(surroundings: &Surroundings) -> Result<Settings> {
        let (settings, errors) = Settings::load_what_can_be(surroundings);
        Error::collect(errors).map_or(Ok(settings), Err)
    }

    /// The same, without those that cannot be used; second, what is wrong with them.
    pub fn load_what_can_be(surroundings: &Surroundings) -> (Settings, Vec<Error>) {
        let configured = surroundings.variable("ANSIBLE_CONFIG").filter(|path| !path.is_empty());
        let configured = configured.map(|path| surroundings.here.join(expand_home(path, surroundings)));
        let home = surroundings.variable("HOME").map(PathBuf::from);
        let (file, warning) = file::find(configured.as_deref(), &surroundings.here, home.as_deref());
        let mut settings = Settings { warnings: warning.into_iter().collect(), ..Settings::default() };
        let mut errors = Vec::new();
        if let Some(path) = file {
            match file::read(&path) {
                Ok(entries) => {
                    errors.extend(entries.into_iter().filter_map(|entry| settings.take_entry(entry).err()));
                }
                Err(error) => errors.push(error),
            }
            settings.file = Some(path);
        }
        settings.take_variables(surroundings, &mut errors);
        (settings, errors)
    }

    fn take_entry(&mut self, entry: file::Entry) -> Result<()> {
        let known = SETTINGS
            .iter()
            .find(|setting| setting.key == entry.key && setting.sections.contains(&entry.section.as_str()));
        match known {
            Some(setting) => self.take(setting, Given { value: entry.value, origin: Origin::File(entry.place) }),
            None => {
                self.note_unknown(&entry);
                Ok(())
            }
        }
    }

    fn note_unknown(&mut self, entry: &file::Entry) {
        let section = entry.section.as_str();
        let sections = || SETTINGS.iter().flat_map(|setting| setting.sections.iter().copied());
        if OTHER_SECTIONS.contains(&section) || section.starts_with("callback_") || section.ends_with("_plugin") {
            self.notes.push(format!("{}: section [{section}] has no meaning here", entry.place));
            return;
        }
        let (what, near) = if sections().any(|known| known == section) {
            let keys = SETTINGS.iter().filter(|setting| setting.sections.contains(&section)).map(|setting| setting.key);
            (format!("setting `{}` in [{section}]", entry.key), nearest(&entry.key, keys))
        } else {
            (format!("section [{section}]"), nearest(section, sections()))
        };
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        self.notes.push(format!("{}: unknown {what}{near}", entry.place));
    }

    fn take_variables(&mut self, surroundings: &Surroundings, errors: &mut Vec<Error>) {
        for setting in SETTINGS {
            for name in setting.variables {
                // an empty NO_COLOR says nothing (<https://no-color.org>)
                let value = surroundings.variable(name).filter(|value| *name != "NO_COLOR" || !value.is_empty());
                if let Some(value) = value {
                    let value = if *name == "NO_COLOR" { "true" } else { value };
                    let taken = self.take(setting, Given { value: value.to_owned(), origin: Origin::Variable(name) });
                    errors.extend(taken.err());
                    break;
                }
            }
        }
        let known = || SETTINGS.iter().flat_map(|setting| setting.variables.iter().copied());
        for (name, _) in &surroundings.variables {
            let is_known = known().chain(OTHER_VARIABLES.iter().copied()).any(|known| known == name);
            if name.starts_with("ANSIBLE_") && !is_known {
                let near = nearest(name, known()).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                self.notes.push(format!("the variable {name} has no meaning here{near}"));
            }
        }
    }

    fn take(&mut self, setting: &'static Setting, given: Given) -> Result<()> {
        match setting.meaning {
            Meaning::Honoured => {
                self.given.insert(setting.key, given);
            }
            Meaning::Ignored => {
                let origin = match &given.origin {
                    Origin::File(place) => format!("{place}: `{}`", setting.key),
                    Origin::Variable(name) => (*name).to_owned(),
                };
                self.notes.push(format!("{origin} is ignored: {}", lower_first(setting.help)));
            }
            Meaning::OnlyDefault => {
                let same = match (truth(&given.value), truth(setting.default)) {
                    (Some(given), Some(default)) => given == default,
                    _ => given.value == setting.default,
                };
                if !same && !given.value.is_empty() {
                    let error = Error::input(format!("`{} = {}` is not supported", setting.key, given.value));
                    return Err(given.point(error).hint(lower_first(setting.help)));
                }
            }
        }
        Ok(())
    }

    fn given(&self, key: &str) -> Option<&Given> {
        debug_assert!(SETTINGS.iter().any(|setting| setting.key == key), "{key} is in the table");
        self.given.get(key)
    }

    /// The value as text; the default if it is not set, `None` if that is empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = match self.given(key) {
            Some(given) => given.value.clone(),
            None => default(key).to_owned(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// True if the file or the environment set it.
    pub fn is_set(&self, key: &str) -> bool {
        self.given(key).is_some()
    }

    pub fn flag(&self, key: &str) -> Result<bool> {
        let Some(given) = self.given(key) else { return Ok(truth(default(key)).unwrap_or(false)) };
        truth(&given.value).ok_or_else(|| given.wants(key, "yes or no"))
    }

    pub fn number(&self, key: &str) -> Result<u64> {
        let Some(given) = self.given(key) else { return Ok(default(key).parse().unwrap_or_default()) };
        given.value.trim().parse().map_err(|_| given.wants(key, "a number"))
    }

    /// The error that a value is not what it should be, pointing to where it was set.
    pub fn wants(&self, key: &str, what: &str) -> Error {
        match self.given(key) {
            Some(given) => given.wants(key, what),
            None => Error::new(crate::error::Kind::Internal, format!("the default of `{key}` is not {what}")),
        }
    }

    /// Paths, apart by `separator`; those of a file are relative to it.
    pub fn paths(&self, key: &str, separator: char, surroundings: &Surroundings) -> Vec<PathBuf> {
        let (text, base) = match self.given(key) {
            Some(Given { value, origin: Origin::File(place) }) => (value.as_str(), place.source.path.parent()),
            Some(given) => (given.value.as_str(), None),
            None => (default(key), None),
        };
        let base = base.unwrap_or(&surroundings.here);
        text.split(separator)
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| match part.strip_prefix("{{CWD}}/").or_else(|| part.strip_prefix("{{ CWD }}/")) {
                Some(rest) => surroundings.here.join(rest),
                None => base.join(expand_home(part, surroundings)),
            })
            .collect()
    }

    /// One path; relative to the file that sets it.
    pub fn path(&self, key: &str, surroundings: &Surroundings) -> Option<PathBuf> {
        self.paths(key, '\0', surroundings).into_iter().next()
    }
}

impl Given {
    fn point(&self, error: Error) -> Error {
        match &self.origin {
            Origin::File(place) => error.at(place),
            Origin::Variable(name) => error.hint(format!("it is set by {name}")),
        }
    }

    fn wants(&self, key: &str, what: &str) -> Error {
        self.point(Error::input(format!("`{key}` wants {what}, got `{}`", self.value)))
    }
}

fn default(key: &str) -> &'static str {
    SETTINGS.iter().find(|setting| setting.key == key).map_or("", |setting| setting.default)
}

/// Ansible's words for yes and no.
fn truth(text: &str) -> Option<bool> {
    crate::value::Value::from(text.trim()).to_ansible_bool()
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_lowercase().collect::<String>() + characters.as_str()).unwrap_or_default()
}

fn expand_home(path: &str, surroundings: &Surroundings) -> PathBuf {
    match (path.strip_prefix('~'), surroundings.variable("HOME")) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            Path::new(home).join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(file: &str, variables: &[(&str, &str)]) -> (Result<Settings>, Surroundings, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ansible.cfg"), file).expect("written");
        let home = [("HOME", "/home/me")];
        let surroundings = Surroundings {
            variables: home
                .iter()
                .chain(variables)
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            here: directory.path().to_owned(),
        };
        (Settings::load(&surroundings), surroundings, directory)
    }

    #[test]
    fn keys_and_variables_stand_once_in_the_table() {
        let mut seen = std::collections::HashSet::new();
        for setting in SETTINGS {
            assert!(!setting.help.is_empty() && !setting.help.ends_with('.'), "{}", setting.key);
            for section in setting.sections {
                assert!(seen.insert(format!("[{section}] {}", setting.key)), "{}", setting.key);
            }
            for variable in setting.variables {
                assert!(seen.insert((*variable).to_owned()), "{variable}");
            }
        }
    }

    #[test]
    fn the_environment_stands_above_the_file_and_this_above_defaults() {
        let (settings, surroundings, directory) = load(
            "[defaults]\nforks=7\ntimeout=3\nroles_path = roles:~/r:/abs\n[privilege_escalation]\nbecome=yes\n",
            &[("ANSIBLE_FORKS", "9"), ("ANSIBLE_PRIVATE_KEY_FILE", "~/key")],
        );
        let settings = settings.expect("good settings");
        assert_eq!(settings.number("forks").expect("a number"), 9);
        assert_eq!(settings.number("timeout").expect("a number"), 3);
        assert!(settings.flag("become").expect("a flag"));
        assert_eq!(settings.text("become_user").as_deref(), Some("root"));
        assert_eq!(settings.text("remote_user"), None);
        let roles = settings.paths("roles_path", ':', &surroundings);
        assert_eq!(roles, [directory.path().join("roles"), "/home/me/r".into(), "/abs".into()]);
        assert_eq!(settings.path("private_key_file", &surroundings), Some("/home/me/key".into()));
    }

    #[test]
    fn what_has_no_meaning_is_noted() {
        let (settings, ..) = load(
            "[defaults]\nnocows=1\nfroks=3\n[privilege_escalaton]\nbecome=yes\n[colors]\nok=blue\n",
            &[("ANSIBLE_FROKS", "1"), ("ANSIBLE_PIPELINING", "1")],
        );
        let notes = settings.expect("good settings").notes;
        let notes: Vec<&str> = notes.iter().map(|note| note.rsplit('/').next().unwrap_or(note)).collect();
        assert_eq!(
            notes,
            [
                "ansible.cfg:2:1: `nocows` is ignored: there are no cows",
                "ansible.cfg:3:1: unknown setting `froks` in [defaults]; did you mean `forks`?",
                "ansible.cfg:5:1: unknown section [privilege_escalaton]; did you mean `privilege_escalation`?",
                "ansible.cfg:7:1: section [colors] has no meaning here",
                "ANSIBLE_PIPELINING is ignored: requests always travel in batches",
                "the variable ANSIBLE_FROKS has no meaning here; did you mean ANSIBLE_FORKS?",
            ]
        );
    }

    #[test]
    fn what_would_change_the_meaning_of_playbooks_is_refused() {
        let (settings, ..) = load("[defaults]\nerror_on_undefined_vars = no\n", &[]);
        assert_eq!(settings.expect_err("refused").message(), "`error_on_undefined_vars = no` is not supported");
        let (settings, ..) = load("[defaults]\nhash_behaviour = merge\nerror_on_undefined_vars=True\n", &[]);
        assert!(settings.is_ok());
    }

    #[test]
    fn wrong_values_point_to_where_they_are_set() {
        let (settings, ..) = load("[defaults]\nforks = many\nbecome = perhaps\n", &[]);
        let settings = settings.expect("good settings");
        let error = settings.number("forks").expect_err("no number");
        assert_eq!((error.message(), error.places()[0].0.line), ("`forks` wants a number, got `many`", 2));
        assert!(settings.flag("become").is_err());
    }

    #[test]
    fn an_empty_no_color_says_nothing() {
        let (settings, ..) = load("", &[("NO_COLOR", "")]);
        assert!(!settings.expect("good").flag("nocolor").expect("a flag"));
        let (settings, ..) = load("", &[("NO_COLOR", "1")]);
        assert!(settings.expect("good").flag("nocolor").expect("a flag"));
    }
}
