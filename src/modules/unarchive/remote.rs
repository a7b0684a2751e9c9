//! An archive that is on the host: its own tar or unzip says what is in it and what differs.

use std::collections::BTreeSet;

use crate::connect::shell::{Response, quote};
use crate::host::Failure;
use crate::modules::programs::{SYSTEM_PATH, parts};

use super::archive::{Entry, Format, Kind, Owner};

/// Which files of an archive are unpacked, and how.
#[derive(Debug, Default)]
pub struct Selection {
    pub exclude: Vec<String>,
    pub include: Vec<String>,
    /// Options of tar or unzip.
    pub options: Vec<String>,
    pub keep_newer: bool,
}

/// What the programs of the host say of an archive.
#[derive(Debug)]
pub struct Look {
    pub format: Format,
    pub entries: Vec<Entry>,
    /// Paths that are missing or differ.
    pub differ: BTreeSet<String>,
}

/// There is no such file.
const MISSING: i32 = 3;
/// The host's tar is not GNU's.
const OTHER_TAR: i32 = 4;
/// The host has no unzip.
pub const NO_UNZIP: i32 = 5;

fn words(list: &[String], prefix: &str) -> String {
    list.iter().map(|word| format!(" {}", quote(&format!("{prefix}{word}")))).collect()
}

/// A name for unzip, which takes some signs for patterns.
const ESCAPE: &str = "sed 's/[][*?\\\\]/\\\\&/g'";

/// The script that looks into the archive and compares it with `dest`.
pub fn look_script(src: &str, dest: &str, selection: &Selection) -> String {
    let (src, dest) = (quote(src), quote(dest));
    let (exclude, include) = (words(&selection.exclude, "--exclude="), words(&selection.include, ""));
    let options = words(&selection.options, "");
    let tar = format!("{options}{exclude} --quoting-style=literal -f {src}");
    let (zip_exclude, zip_include) = zip_words(selection);
    format!(
        "{SYSTEM_PATH}export LC_ALL=C TZ=UTC0\n[ -f {src} ] || exit {MISSING}\n\
         m=$(head -c 6 {src} | od -An -tx1 | tr -d ' \\n'); printf '%s\\036' \"$m\"\n\
         case $m in 504b*)\n\
         command -v unzip >/dev/null 2>&1 || exit {NO_UNZIP}\n\
         unzip -Z1 {src}{zip_include}{zip_exclude} || {{ [ $? = 11 ] || exit 9; }}; printf '\\036'\n\
         unzip -Z1 {src}{zip_include}{zip_exclude} | while IFS= read -r n; do f={dest}/$n\n\
         case $n in */) [ -d \"$f\" ] ;; *) e=$(printf %s \"$n\" | {ESCAPE})\n\
         if [ -L \"$f\" ]; then [ \"$(readlink \"$f\")\" = \"$(unzip -p {src} \"$e\")\" ]; \
         else [ -f \"$f\" ] && unzip -p {src} \"$e\" | cmp -s - \"$f\"; fi ;; esac || printf '%s\\n' \"$n\"; done ;;\n\
         *)\n\
         tar --version 2>/dev/null | grep -q 'GNU tar' || exit {OTHER_TAR}\n\
         tar -tv --full-time --numeric-owner --show-transformed-names{tar}{include} || exit 9; printf '\\036'\n\
         tar --diff -C {dest}{tar}{include} 2>&1; : ;; esac"
    )
}

fn zip_words(selection: &Selection) -> (String, String) {
    let exclude = match selection.exclude.is_empty() {
        true => String::new(),
        false => format!(" -x{}", words(&selection.exclude, "")),
    };
    (exclude, words(&selection.include, ""))
}

/// The command that unpacks.
pub fn unpack_command(format: Format, src: &str, dest: &str, selection: &Selection, is_root: bool) -> String {
    let (src, dest) = (quote(src), quote(dest));
    let options = words(&selection.options, "");
    if format == Format::Zip {
        let (exclude, include) = zip_words(selection);
        let manner = if selection.keep_newer { "-uo" } else { "-o" };
        return format!("{SYSTEM_PATH}unzip -q {manner}{options} {src}{include}{exclude} -d {dest}");
    }
    let exclude = words(&selection.exclude, "--exclude=");
    let same = if is_root { " -p" } else { "" };
    let newer = if selection.keep_newer { " --keep-newer-files" } else { "" };
    let include = words(&selection.include, "");
    format!("{SYSTEM_PATH}tar -x -C {dest}{same}{newer}{options}{exclude} -f {src}{include}")
}

/// Understands the answer of [`look_script`]; `None` if the host has no unzip for a zip file.
pub fn parse(src: &str, response: &Response, selection: &Selection) -> Result<Option<Look>, Failure> {
    let reason = response.error_text();
    match response.code {
        Some(0) => {}
        Some(MISSING) => return Err(Failure::new(format!("Source '{src}' does not exist"))),
        Some(NO_UNZIP) => return Ok(None),
        Some(OTHER_TAR) => {
            return Err(Failure::new(format!(
                "the host has no GNU tar, which is needed to compare {src} with what is there; \
                 use an archive of the controller (`remote_src: false`)"
            )));
        }
        _ => {
            return Err(Failure::new(format!(
                "Failed to find handler for \"{src}\". Make sure the required command to extract the file is installed: {}",
                reason.trim()
            )));
        }
    }
    let parts = parts(response, 3);
    let format = magic(&parts[0]);
    if format == Format::Zip {
        let entries = parts[1].lines().map(zip_entry).collect();
        let differ = parts[2].lines().map(clean).collect();
        return Ok(Some(Look { format, entries, differ }));
    }
    let entries: Vec<Entry> = parts[1].lines().filter_map(tar_entry).filter(|entry| !entry.path.is_empty()).collect();
    let known: BTreeSet<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let differ = parts[2].lines().filter_map(difference).filter(|path| known.contains(path.as_str())).collect();
    let wanted = selection
        .include
        .iter()
        .map(|path| clean(path))
        .find(|path| !known.iter().any(|own| own == path || own.starts_with(&format!("{path}/"))));
    match wanted.filter(|_| selection.options.is_empty()) {
        Some(path) => Err(Failure::new(format!("{path} is not in {src}"))),
        None => Ok(Some(Look { format, entries, differ })),
    }
}

fn magic(hex: &str) -> Format {
    let bytes: Vec<u8> =
        (0..hex.len() / 2).filter_map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    Format::of(&bytes)
}

fn clean(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

fn zip_entry(name: &str) -> Entry {
    let kind = if name.ends_with('/') { Kind::Directory } else { file() };
    Entry { path: clean(name), kind, mode: None, mtime: 0, owner: Owner::default() }
}

fn file() -> Kind {
    Kind::File { content: Vec::new(), sha1: String::new() }
}

/// `-rw-r--r-- 0/0 12 2024-01-01 00:00:00 path`; a link's target stands behind ` -> ` or ` link to `.
fn tar_entry(line: &str) -> Option<Entry> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start_matches(' ');
        let (word, after) = rest.split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (permissions, _owner, _size, date, time) = (word()?, word()?, word()?, word()?, word()?);
    let mtime = format!("{date}T{}Z", time.split('.').next()?)
        .parse::<jiff::Timestamp>()
        .ok()
        .and_then(|time| u64::try_from(time.as_second()).ok())
        .unwrap_or(0);
    let (name, kind) = match permissions.chars().next()? {
        'd' => (rest, Kind::Directory),
        'l' => rest.split_once(" -> ").map(|(name, target)| (name, Kind::Link(target.to_owned())))?,
        'h' => rest.split_once(" link to ").map(|(name, target)| (name, Kind::HardLink(clean(target))))?,
        _ => (rest, file()),
    };
    Some(Entry { path: clean(name), kind, mode: Some(mode_of(permissions)), mtime, owner: Owner::default() })
}

/// `-rwsr-xr-t` as a number.
fn mode_of(letters: &str) -> u32 {
    let mut mode = 0;
    for (index, letter) in letters.chars().skip(1).take(9).enumerate() {
        let bit = 1 << (8 - index);
        let special = match index {
            2 => 0o4000,
            5 => 0o2000,
            8 => 0o1000,
            _ => 0,
        };
        match letter {
            '-' => {}
            's' | 't' => mode |= bit | special,
            'S' | 'T' => mode |= special,
            _ => mode |= bit,
        }
    }
    mode
}

/// The path that a line of `tar --diff` says to differ. Times alone are no difference, nor are owners.
fn difference(line: &str) -> Option<String> {
    if let Some(path) = line.strip_prefix("tar: ").and_then(|rest| rest.split_once(": Warning: Cannot stat")) {
        return Some(clean(path.0));
    }
    for end in
        [": Contents differ", ": Size differs", ": File type differs", ": Symlink differs", ": Device number differs"]
    {
        if let Some(path) = line.strip_suffix(end) {
            return Some(clean(path));
        }
    }
    line.split_once(": Not linked to ").map(|(path, _)| clean(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_of_tar_are_read() {
        let entry = tar_entry("-rwsr-x--T 0/0              12 2024-03-01 10:20:30 ./d/a b").unwrap();
        assert_eq!((entry.path.as_str(), entry.mode, entry.mtime), ("d/a b", Some(0o5750), 1_709_288_430));
        assert_eq!(tar_entry("drwxr-xr-x 0/0 0 2024-03-01 10:20:30 d/").unwrap().kind, Kind::Directory);
        let link = tar_entry("lrwxrwxrwx 0/0 0 2024-03-01 10:20:30 l -> /etc/x").unwrap();
        assert_eq!((link.path.as_str(), link.kind), ("l", Kind::Link("/etc/x".into())));
        let hard = tar_entry("hrw-r--r-- 0/0 0 2024-03-01 10:20:30 h link to d/a").unwrap();
        assert_eq!(hard.kind, Kind::HardLink("d/a".into()));
    }

    #[test]
    fn differences_are_content_and_type() {
        let cases = [
            ("d/a: Contents differ", Some("d/a")),
            ("tar: ./d/b: Warning: Cannot stat: No such file or directory", Some("d/b")),
            ("d/a: Mod time differs", None),
            ("d/a: Uid differs", None),
            ("h: Not linked to d/a", Some("h")),
            ("l: Symlink differs", Some("l")),
        ];
        for (line, path) in cases {
            assert_eq!(difference(line).as_deref(), path, "{line}");
        }
    }
}
