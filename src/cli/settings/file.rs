//! `ansible.cfg`: which one counts, and what stands in it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::source::{Place, Source};

/// A setting as a file has it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub section: String,
    pub key: String,
    pub value: String,
    /// Where the key stands.
    pub place: Place,
}

/// The file that counts: `ANSIBLE_CONFIG`, `ansible.cfg` here, `~/.ansible.cfg`, `/etc/ansible/ansible.cfg`; and a
/// warning if one was passed over.
pub fn find(configured: Option<&Path>, here: &Path, home: Option<&Path>) -> (Option<PathBuf>, Option<String>) {
    let mut warning = None;
    let mut candidates = Vec::new();
    if let Some(path) = configured {
        candidates.push(if path.is_dir() { path.join("ansible.cfg") } else { path.to_owned() });
    }
    let local = here.join("ansible.cfg");
    if anyone_can_write(here) {
        if local.exists() && !candidates.contains(&local) {
            warning = Some(format!(
                "anyone can write to the directory {}, so its ansible.cfg is not read; name it in ANSIBLE_CONFIG if you trust it",
                here.display()
            ));
        }
    } else {
        candidates.push(local);
    }
    candidates.extend(home.map(|home| home.join(".ansible.cfg")));
    candidates.push(PathBuf::from("/etc/ansible/ansible.cfg"));
    (candidates.into_iter().find(|path| path.is_file()), warning)
}

fn anyone_can_write(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|metadata| metadata.mode() & 0o002 != 0)
}

/// Reads a file's settings, in order.
pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let bytes = std::fs::read(path).map_err(|error| {
        let text = error.to_string();
        let reason = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        Error::input(format!("cannot read `{}`: {reason}", path.display()))
    })?;
    let text =
        String::from_utf8(bytes).map_err(|_| Error::parse(format!("`{}` is not text in UTF-8", path.display())))?;
    parse(&Source::new(path, text))
}

/// The format is that of Python's `configparser`, with `;` for comments behind a value.
fn parse(source: &Arc<Source>) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut section: Option<String> = None;
    let mut is_open = false;
    for (index, line) in source.text.lines().enumerate() {
        let number = index as u32 + 1;
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            is_open = is_open && !trimmed.is_empty();
            continue;
        }
        let content = without_comment(line).trim_end();
        let indent = content.chars().take_while(|c| c.is_whitespace()).count() as u32;
        let place = Place::new(source, number, indent + 1);
        let words = content.trim();
        if indent > 0 && is_open {
            if let Some(entry) = entries.last_mut() {
                entry.value.push('\n');
                entry.value.push_str(words);
            }
            continue;
        }
        if let Some(rest) = words.strip_prefix('[') {
            let name =
                rest.strip_suffix(']').ok_or_else(|| Error::parse("the name of this section has no `]`").at(&place))?;
            section = Some(name.trim().to_owned());
            is_open = false;
            continue;
        }
        let Some(section) = &section else {
            return Err(Error::parse("a setting stands before the first section")
                .at(&place)
                .hint("put `[defaults]` above it"));
        };
        let Some(at) = words.find(['=', ':']) else {
            return Err(Error::parse("a setting wants `key = value`").at(&place));
        };
        let (key, value) = words.split_at(at);
        entries.push(Entry {
            section: section.clone(),
            key: key.trim().to_lowercase(),
            value: value[1..].trim().to_owned(),
            place,
        });
        is_open = true;
    }
    Ok(entries)
}

/// A comment begins at a `;` behind white space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (index, character) in line.char_indices() {
        if character == ';' && before.is_whitespace() {
            return &line[..index];
        }
        before = character;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<String>> {
        let entries = parse(&Source::new("ansible.cfg", text))?;
        Ok(entries
            .iter()
            .map(|entry| format!("{}: [{}] {}={:?}", entry.place.line, entry.section, entry.key, entry.value))
            .collect())
    }

    #[test]
    fn settings_are_read_as_configparser_does() {
        let text = "\
# comment
[defaults]
Forks = 20 ; a comment
inventory=hosts;still
ssh_args: -o A=b
   -o C=d

; another
[ssh_connection]
pipelining = True
";
        let expected = [
            r#"3: [defaults] forks="20""#,
            r#"4: [defaults] inventory="hosts;still""#,
            r#"5: [defaults] ssh_args="-o A=b\n-o C=d""#,
            r#"10: [ssh_connection] pipelining="True""#,
        ];
        assert_eq!(parsed(text).expect("well formed"), expected);
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, message) in [
            ("forks = 1\n", "ansible.cfg:1:1: a setting stands before the first section"),
            ("[defaults\n", "ansible.cfg:1:1: the name of this section has no `]`"),
            ("[defaults]\nforks\n", "ansible.cfg:2:1: a setting wants `key = value`"),
        ] {
            assert_eq!(parsed(text).expect_err("not well formed").to_string(), message);
        }
    }

    #[test]
    fn the_nearest_file_counts_unless_anyone_could_have_written_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let (home, here) = (directory.path().join("home"), directory.path().join("here"));
        for path in [&home, &here] {
            std::fs::create_dir(path).expect("created");
        }
        let write = |path: &Path| std::fs::write(path, "[defaults]\n").expect("written");
        let in_home = home.join(".ansible.cfg");
        write(&in_home);
        assert_eq!(find(None, &here, Some(&home)).0, Some(in_home.clone()));
        let local = here.join("ansible.cfg");
        write(&local);
        assert_eq!(find(None, &here, Some(&home)).0, Some(local.clone()));
        std::fs::set_permissions(&here, std::fs::Permissions::from_mode(0o777)).expect("changed");
        let (found, warning) = find(None, &here, Some(&home));
        assert_eq!(found, Some(in_home));
        assert!(warning.is_some_and(|warning| warning.contains("anyone can write")));
        assert_eq!(find(Some(&here), &here, Some(&home)), (Some(local), None));
    }
}
