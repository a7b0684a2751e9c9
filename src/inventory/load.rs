//! Finds out what an inventory source is and reads it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::builder::Builder;
use super::group::GroupId;
use super::vars_files::{VarsDirectory, read_text, reason};
use super::{Inventory, constructed, ini, script, yaml};
use crate::error::{Error, Result};
use crate::source::{Place, Source};
use crate::value::Map;
use crate::vault::Keyring;

/// Names with these ends are not read from a directory.
///
/// Source: `INVENTORY_IGNORE_EXTS`, <https://docs.ansible.com/ansible/latest/reference_appendices/config.html>
const IGNORED_ENDS: [&str; 12] =
    [".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry"];

/// Reads the sources of an inventory (each `-i`): files, scripts, directories, lists of hosts with commas. Nothing in it
/// is encrypted.
pub fn load<S: AsRef<str>>(sources: &[S]) -> Result<Inventory> {
    load_with(sources, &Arc::default(), &Arc::default())
}

/// The same with the variables of `-e`, which `constructed` sources may use, and with passwords for files that are
/// encrypted, also in `group_vars` and `host_vars`.
pub fn load_with<S: AsRef<str>>(sources: &[S], extra: &Arc<Map>, keyring: &Arc<Keyring>) -> Result<Inventory> {
    load_as(sources, extra, keyring, Reading::default())
}

/// How sources are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    pub group_names: GroupNames,
    /// A source that cannot be read is a warning; nothing more of it counts.
    pub lenient: bool,
    /// A map that is set twice is merged (`hash_behaviour`).
    pub merges_maps: bool,
    /// With `lenient`: if no source can be read, that is an error all the same.
    pub wants_one: bool,
}

/// What becomes of a group's name that could not be a variable's.
///
/// Source: `TRANSFORM_INVALID_GROUP_CHARS`,
/// <https://docs.ansible.com/ansible/latest/reference_appendices/config.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupNames {
    /// It stays.
    #[default]
    Ignore,
    /// It stays, with a warning.
    Never,
    /// What cannot stand there becomes `_`, with a warning.
    Always,
    /// The same without.
    Silently,
}

/// Reads the sources of an inventory in this way.
pub fn load_as<S: AsRef<str>>(
    sources: &[S],
    extra: &Arc<Map>,
    keyring: &Arc<Keyring>,
    reading: Reading,
) -> Result<Inventory> {
    let mut loading = Loading::new(extra, keyring);
    loading.builder.names = reading.group_names;
    loading.builder.merges_maps = reading.merges_maps;
    let mut failures = Vec::new();
    for source in sources {
        let source = source.as_ref();
        let Err(error) = read_source(source, &mut loading, reading.lenient) else { continue };
        if !reading.lenient {
            return Err(error);
        }
        failures.push(unparsed(source, &error));
    }
    if reading.wants_one && !sources.is_empty() && failures.len() == sources.len() {
        return Error::collect(failures).map_or_else(|| Ok(loading.finish()), Err);
    }
    loading.builder.warnings.extend(failures);
    Ok(loading.finish())
}

/// A source that could not be read, in Ansible's words and ours.
fn unparsed(source: &str, error: &Error) -> Error {
    let plugin = match Path::new(source).extension().and_then(|ending| ending.to_str()) {
        _ if source.contains(',') => "advanced_host_list",
        Some("yml" | "yaml" | "json") => "yaml",
        _ => "ini",
    };
    let message = error.message();
    let named = Error::new(error.kind(), format!("Failed to parse {source} with {plugin} plugin: {message}"));
    let named = error.places().iter().fold(named, |named, (place, label)| named.at_label(place, label.as_str()));
    error.hints().iter().fold(named, |named, hint| named.hint(hint))
}

fn read_source(source: &str, loading: &mut Loading, lenient: bool) -> Result<()> {
    let path = expand_home(source);
    if source.contains(',') && !path.exists() {
        return read_list(source, &mut loading.builder, lenient);
    }
    let beside = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(Path::new("")) };
    let beside = beside.canonicalize().or_else(|_| std::path::absolute(beside)).unwrap_or(beside.to_owned());
    let known = loading.directories.iter().find(|directory| directory.path() == beside).cloned();
    let keyring = Arc::clone(&loading.keyring);
    loading.directories.push(known.unwrap_or_else(|| Arc::new(VarsDirectory::new(beside, &keyring))));
    read_path(&path, loading)
}

/// Reads one text as an inventory: YAML if the name of its source ends so or it looks like it, else INI. Nothing is
/// beside it and nothing in it is encrypted.
pub fn parse(source: &Arc<Source>) -> Result<Inventory> {
    let mut loading = Loading::new(&Arc::default(), &Arc::default());
    loading.builder.begin(&source.path);
    read_text_of(source, &mut loading)?;
    Ok(loading.finish())
}

/// What is read so far.
pub(super) struct Loading {
    pub(super) builder: Builder,
    pub(super) directories: Vec<Arc<VarsDirectory>>,
    /// Sources that are not there.
    pub(super) missing: Vec<Error>,
    /// The variables of `-e`.
    pub(super) extra: Arc<Map>,
    /// Passwords for files that are encrypted.
    pub(super) keyring: Arc<Keyring>,
}

impl Loading {
    fn new(extra: &Arc<Map>, keyring: &Arc<Keyring>) -> Loading {
        Loading {
            builder: Builder::new(),
            directories: Vec::new(),
            missing: Vec::new(),
            extra: Arc::clone(extra),
            keyring: Arc::clone(keyring),
        }
    }

    fn finish(self) -> Inventory {
        let (hosts, groups, warnings) = self.builder.finish();
        Inventory { missing: self.missing, ..Inventory::new(hosts, groups, self.directories, &self.keyring, warnings) }
    }
}

fn expand_home(source: &str) -> PathBuf {
    match (source.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(source),
    }
}

/// Hosts apart by commas; `lenient`: a range without an end is a name as it stands, as in Ansible.
fn read_list(list: &str, builder: &mut Builder, lenient: bool) -> Result<()> {
    builder.begin(Path::new(list));
    let source = Source::new("-i", list);
    let mut column = 1;
    for item in list.split(',') {
        let indent = item.chars().take_while(|c| c.is_whitespace()).count() as u32;
        let place = Place::new(&source, 1, column + indent);
        column += item.chars().count() as u32 + 1;
        let item = item.trim();
        if item.is_empty() {
            continue;
        }
        match builder.add_hosts(item, GroupId::UNGROUPED, &Map::new(), &place) {
            Ok(()) => {}
            Err(_) if lenient && super::address::lacks_end(item) => {
                let message =
                    "Unable to parse address from hostname, leaving unchanged: host range must specify end value";
                builder.warnings.push(Error::input(message).at(&place));
                builder.add_host(item, GroupId::UNGROUPED, &place);
            }
            Err(reason) => return Err(Error::input(reason).at(&place)),
        }
    }
    Ok(())
}

fn read_path(path: &Path, loading: &mut Loading) -> Result<()> {
    let cannot = |error: &std::io::Error| {
        Error::input(format!("cannot read the inventory `{}`: {}", path.display(), reason(error)))
    };
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            let hint = format!("a list of hosts needs a comma: `-i {},`", path.display());
            loading.missing.push(cannot(&error).hint(hint));
            return Ok(());
        }
    };
    if !metadata.is_dir() {
        return read_file(path, loading);
    }
    let entries = std::fs::read_dir(path).map_err(|error| cannot(&error))?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let text = name.to_string_lossy();
        let ignored = text.starts_with('.')
            || matches!(text.as_ref(), "group_vars" | "host_vars" | "vars_plugins")
            || IGNORED_ENDS.iter().any(|end| text.ends_with(end));
        if !ignored {
            read_path(&path.join(&name), loading)?;
        }
    }
    Ok(())
}

fn read_file(path: &Path, loading: &mut Loading) -> Result<()> {
    loading.builder.begin(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    if is_script(path) {
        return script::read(&mut loading.builder);
    }
    read_text_of(&read_text(path, &loading.keyring)?, loading)
}

fn read_text_of(source: &Arc<Source>, loading: &mut Loading) -> Result<()> {
    match source.path.extension().and_then(|ending| ending.to_str()) {
        Some("yml" | "yaml" | "json") => read_yaml(source, loading),
        Some("toml") => Err(Error::input("inventories in TOML are not supported").at(&Place::start(source))),
        None | Some("config") if looks_like_yaml(&source.text) => read_yaml(source, loading),
        _ => ini::read(source, &mut loading.builder),
    }
}

fn read_yaml(source: &Arc<Source>, loading: &mut Loading) -> Result<()> {
    let document = crate::yaml::load_with_warnings(source)?;
    loading.builder.warnings.extend(document.warnings);
    let Some(root) = document.root else { return Ok(()) };
    let Some((key, plugin)) = root.entry("plugin") else { return yaml::read(&root, &mut loading.builder) };
    match plugin.as_str().unwrap_or_default() {
        "constructed" | "ansible.builtin.constructed" => constructed::read(&root, loading),
        name => Err(Error::input(format!("the inventory plugin `{name}` is not supported"))
            .at(&key.place)
            .hint("known is `constructed`; instead of another, a script can print the hosts as JSON")
            .hint("or write its hosts into a file: `ansible-inventory -i THIS --list --yaml --output hosts.yml`")),
    }
}

/// A name without an ending says nothing: it is YAML if it begins as a YAML inventory does.
fn looks_like_yaml(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'));
    match lines.next() {
        Some("---") => true,
        Some(line) if line.starts_with('{') || line.starts_with("plugin:") => true,
        // `all:`, perhaps with an empty mapping or a comment behind it
        Some(line) => line.split_once(':').is_some_and(|(key, rest)| {
            let rest = rest.trim_start();
            !key.contains([' ', '[', '=', ';']) && (rest.is_empty() || rest.starts_with(['#', '{', '&']))
        }),
        None => false,
    }
}

/// True for an executable that the system can run: it begins with `#!` or is an ELF binary.
fn is_script(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_executable =
        std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0);
    let mut start = [0; 4];
    is_executable
        && std::fs::File::open(path)
            .and_then(|mut file| file.read(&mut start))
            .is_ok_and(|_| start.starts_with(b"#!") || start == *b"\x7fELF")
}
