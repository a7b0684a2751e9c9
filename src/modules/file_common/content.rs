//! New content for a file: written beside it with its final owner, mode and label, proven, then renamed.

use std::sync::atomic::{AtomicU32, Ordering};

use sha1::Digest;

use crate::connect::shell::{Response, quote};
use crate::host::reads::{FileAttributes, FileKind};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Query, Step, Withheld};

use super::account::Myself;
use super::path::{join, parent};
use super::permissions::{Permissions, chmod_word, newborn};

/// Content up to this size is kept for undo and read for `--diff`.
pub const KEPT_BYTES: u64 = 1 << 20;

/// Ansible shows no difference of files larger than this.
const SHOWN_BYTES: usize = 104_448;

/// Where new content comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    /// A file of the host, with the digest and size that it had when it was looked at.
    File {
        path: String,
        sha1: String,
        size: u64,
    },
}

impl Content {
    pub fn size(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File { size, .. } => *size,
        }
    }

    pub fn sha1(&self) -> String {
        match self {
            Content::Bytes(bytes) => sha1(bytes),
            Content::File { sha1, .. } => sha1.clone(),
        }
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Content::Bytes(bytes) => Some(bytes),
            Content::File { .. } => None,
        }
    }
}

/// What is to be written, and what is there now.
#[derive(Debug, Clone)]
pub struct Write {
    /// Where the file is, all links followed.
    pub path: String,
    /// A symbolic link by which the task names it.
    pub alias: Option<String>,
    pub content: Content,
    /// What is at `path` now, links not followed.
    pub before: Option<FileAttributes>,
    /// Its content, if it was read.
    pub before_content: Option<Vec<u8>>,
    /// What will be at `path`.
    pub after: FileAttributes,
    /// Where the old file is kept.
    pub backup: Option<String>,
    /// A command that must accept the new file; `%s` is its name.
    pub validate: Option<Vec<String>>,
    /// Overwrite in place if the file cannot be replaced.
    pub unsafe_writes: bool,
}

/// What a file has after its content was replaced: what the old one had, as far as the user may give it away, and
/// what the task asks for; a new one in `directory` has the umask's mode.
pub fn written(
    before: Option<&FileAttributes>,
    directory: Option<&FileAttributes>,
    me: &Myself,
    permissions: &Permissions,
    size: u64,
) -> FileAttributes {
    let mut base = FileAttributes { size, ..newborn(FileKind::File, me, directory) };
    if let Some(old) = before.filter(|old| old.kind == FileKind::File) {
        base.mode = old.mode;
        if me.is_root() || old.uid == me.user.id {
            base.uid = old.uid;
            base.owner.clone_from(&old.owner);
        }
        if me.is_root() || me.groups.contains(&old.gid) {
            base.gid = old.gid;
            base.group.clone_from(&old.group);
        }
    }
    permissions.on(&base, me.umask)
}

impl Write {
    /// The step that writes the file.
    pub fn step(&self, me: &Myself) -> Step {
        let mut lines = vec![format!("f={}", quote(&self.path))];
        lines.push(
            "if [ -d \"$f\" ]; then if [ -L \"$f\" ]; then rm -f \"$f\" || exit; \
             else echo \"$f is a directory\" >&2; exit 1; fi; fi"
                .to_owned(),
        );
        if let Some(backup) = &self.backup {
            lines.push(format!("cp -p \"$f\" {} || exit", quote(backup)));
        }
        let template = join(parent(&self.path), ".trimtab.XXXXXX");
        lines.push("umask 077".to_owned());
        lines.push(format!("t=$(mktemp {}) || exit", quote(&template)));
        lines.push("trap 'rm -f \"$t\"' EXIT".to_owned());
        let input = match &self.content {
            Content::Bytes(_) => String::new(),
            Content::File { path, .. } => format!("if={} ", quote(path)),
        };
        // dd is the one writer that every host has and that flushes what it wrote
        lines.push(format!(
            "e=$(dd {input}of=\"$t\" bs=65536 conv=fsync 2>&1) || {{ printf '%s\\n' \"$e\" >&2; exit 1; }}"
        ));
        lines.push(format!(
            "if command -v sha1sum >/dev/null 2>&1; then s=$(sha1sum <\"$t\"); [ \"${{s%% *}}\" = {} ]; \
             else [ \"$(wc -c <\"$t\")\" -eq {} ]; fi || {{ echo \"what arrived is not what was sent; $f is left as it was\" >&2; exit 1; }}",
            self.content.sha1(),
            self.content.size()
        ));
        if self.before.as_ref().is_some_and(|old| old.kind == FileKind::File) {
            // access lists and the like; only GNU's cp can do it
            lines.push("cp --attributes-only --preserve=mode,xattr \"$f\" \"$t\" 2>/dev/null".to_owned());
        }
        lines.push(self.ownership(me));
        lines.push(format!("chmod {} \"$t\" || exit", chmod_word(self.after.mode)));
        lines.push(
            "l=; if [ -e /sys/fs/selinux/enforce ]; then if [ -e \"$f\" ]; then chcon --reference=\"$f\" \"$t\" 2>/dev/null; \
             elif c=$(matchpathcon -n -m file \"$f\" 2>/dev/null); then chcon \"$c\" \"$t\" 2>/dev/null; else l=1; fi; fi"
                .to_owned(),
        );
        if let Some(words) = &self.validate {
            lines.push(validation(words, &self.path));
        }
        lines.push(self.rename());
        lines.push("trap - EXIT".to_owned());
        lines.push("[ -z \"$l\" ] || restorecon \"$f\" 2>/dev/null".to_owned());
        lines.push("stat -c '%a %u %g %s' \"$f\"".to_owned());
        let after = &self.after;
        let step = Step::new(lines.join("\n"))
            .expect(format!("{:o} {} {} {}", after.mode, after.uid, after.gid, self.content.size()))
            .writes(self.path.as_str());
        match &self.content {
            Content::Bytes(bytes) => step.stdin(bytes.clone()),
            Content::File { .. } => step,
        }
    }

    /// The temporary file's owner and group; it has the user's own, or the group of a setgid directory.
    fn ownership(&self, me: &Myself) -> String {
        let after = &self.after;
        if after.uid != me.user.id {
            format!("chown {}:{} \"$t\" || exit", after.uid, after.gid)
        } else if after.gid != me.group.id {
            // a setgid directory has given it already, and who is not in the group could not
            format!("[ \"$(stat -c %g \"$t\")\" = {0} ] || chgrp {0} \"$t\" || exit", after.gid)
        } else {
            format!("[ -G \"$t\" ] || chgrp {} \"$t\" || exit", after.gid)
        }
    }

    fn rename(&self) -> String {
        if self.unsafe_writes {
            let after = &self.after;
            format!(
                "mv -f \"$t\" \"$f\" 2>/dev/null || {{ cat \"$t\" >\"$f\" && rm -f \"$t\" && chown {}:{} \"$f\" && chmod {} \"$f\"; }} || exit",
                after.uid,
                after.gid,
                chmod_word(after.mode)
            )
        } else {
            "mv -f \"$t\" \"$f\" || exit".to_owned()
        }
    }

    /// The steps that restore what was there.
    pub fn inverse(&self, me: &Myself) -> Inverse {
        let path = quote(&self.path);
        match (&self.before, &self.before_content) {
            (None, _) => Inverse::Steps(vec![Step::new(format!("rm -f {path}")).writes(self.path.as_str())]),
            (Some(old), _) if old.kind == FileKind::Link => Inverse::Steps(vec![link_step(&self.path, &old.target)]),
            (Some(old), Some(content)) => {
                let back = Write {
                    content: Content::Bytes(content.clone()),
                    before: None,
                    before_content: None,
                    after: old.clone(),
                    backup: None,
                    validate: None,
                    ..self.clone()
                };
                Inverse::Steps(vec![back.step(me)])
            }
            (Some(_), None) => match &self.backup {
                Some(backup) => Inverse::Steps(vec![
                    Step::new(format!("cp -p {} {path}", quote(backup))).writes(self.path.as_str()),
                ]),
                None => Inverse::None(format!(
                    "the previous content of {} was too large to keep (more than {KEPT_BYTES} bytes; `backup: true` keeps it on the host)",
                    self.path
                )),
            },
        }
    }

    /// Everything that the write touches.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::path(self.path.as_str());
        for other in self.alias.iter().chain(&self.backup) {
            footprint = footprint.and(Footprint::path(other.as_str()));
        }
        footprint
    }

    /// The whole change, without a difference to show.
    pub fn change(&self, me: &Myself) -> Change {
        let mut change = Change::certain(format!("file {}", self.path), self.footprint())
            .step(self.step(me))
            .inverse(self.inverse(me));
        change = leaves_file(change, &self.path, &self.after, None);
        change = leaves_content(change, &self.path, &self.content);
        if let Some(alias) = &self.alias {
            change = leaves_content(change, alias, &self.content)
                .leaves(Query::Attributes { path: alias.clone(), follow: true }, self.after.to_response());
        }
        change
    }
}

/// What reads of a file answer once it has these attributes and, if given, this content.
pub fn leaves_file(change: Change, path: &str, after: &FileAttributes, content: Option<&[u8]>) -> Change {
    let mut change = change;
    for follow in [false, true] {
        if follow && after.kind == FileKind::Link {
            continue;
        }
        change = change.leaves(Query::Attributes { path: path.to_owned(), follow }, after.to_response());
    }
    match content {
        Some(content) => leaves_content(change, path, &Content::Bytes(content.to_vec())),
        None => change,
    }
}

fn leaves_content(change: Change, path: &str, content: &Content) -> Change {
    let mut change = change;
    if let Some(content) = content.bytes().filter(|content| content.len() as u64 <= KEPT_BYTES) {
        change = change.leaves(Query::Content(path.to_owned()), Response::output(content));
        for (algorithm, digest) in [("md5", md5(content)), ("sha256", sha256(content))] {
            change = change.leaves(Query::Checksum { path: path.to_owned(), algorithm }, Response::output(digest));
        }
    }
    change.leaves(Query::Checksum { path: path.to_owned(), algorithm: "sha1" }, Response::output(content.sha1()))
}

/// What reads of a path answer once nothing is there.
pub fn leaves_nothing(change: Change, path: &str) -> Change {
    let mut change = change;
    for follow in [false, true] {
        change = change.leaves(Query::Attributes { path: path.to_owned(), follow }, Response::missing());
    }
    change = change.leaves(Query::Content(path.to_owned()), Response::missing());
    for algorithm in ["sha1", "md5", "sha256"] {
        change = change.leaves(Query::Checksum { path: path.to_owned(), algorithm }, Response::missing());
    }
    change.leaves_empty(path)
}

/// The step that makes a symbolic link, or turns what is there into one, in one rename.
pub fn link_step(path: &str, target: &str) -> Step {
    let script = format!(
        "f={} n={}\nif [ -d \"$f\" ] && [ ! -L \"$f\" ]; then rmdir \"$f\" || exit; fi\n\
         d=$(mktemp -d {}) || exit\ntrap 'rm -rf \"$d\"' EXIT\n\
         ln -s \"$n\" \"$d/link\" || exit\n\
         if [ -d \"$f\" ]; then rm -f \"$f\" || exit; fi\nmv -f \"$d/link\" \"$f\" || exit\nreadlink \"$f\"",
        quote(path),
        quote(target),
        quote(&join(parent(path), ".trimtab.XXXXXX"))
    );
    let step = Step::new(script).writes(parent(path));
    // blanks of the output are trimmed before they are compared
    if target.contains(char::is_whitespace) { step } else { step.expect(target) }
}

/// Runs the command of `validate` on the temporary file, which keeps the ending of its name.
fn validation(words: &[String], path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rfind('.').filter(|at| *at > 0).map_or("", |at| &name[at..]);
    let keep_ending = match ending {
        "" => String::new(),
        ending => format!("mv -f \"$t\" \"$t\"{0} && t=\"$t\"{0} || exit\n", quote(ending)),
    };
    let command = words.join(" ");
    format!(
        "{keep_ending}e=$({command} 2>&1 </dev/null) || {{ printf 'failed to validate: rc:%s error:%s\\n' \"$?\" \"$e\" >&2; exit 1; }}"
    )
}

/// Reads the argument `validate`: its words, quoted for the shell, with the temporary file's name for `%s`.
pub fn parse_validate(command: Option<&str>) -> Result<Option<Vec<String>>, Failure> {
    let Some(command) = command.filter(|command| !command.is_empty()) else { return Ok(None) };
    if !command.contains("%s") {
        return Err(Failure::new(format!("validate must contain %s: {command}")));
    }
    let words =
        split_words(command).ok_or_else(|| Failure::new(format!("a quote in `validate` is not closed: {command}")))?;
    let quoted = |word: &String| {
        let pieces: Vec<String> = word
            .split("%s")
            .map(|piece| if piece.is_empty() { String::new() } else { quote(&piece.replace("%%", "%")) })
            .collect();
        if word.is_empty() { "''".to_owned() } else { pieces.join("\"$t\"") }
    };
    Ok(Some(words.iter().map(quoted).collect()))
}

/// Splits a command line into words as a POSIX shell would, without expanding anything; `None` if a quote is open.
pub fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => match letters.next()? {
                            escaped @ ('"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

/// Ansible's name for a kept file: `PATH.NUMBER.YYYY-MM-DD@HH:MM:SS~`, the time being the controller's. The number is
/// that of the process and of the backup in it, so that two in the same second differ.
pub fn backup_name(path: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id().wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    format!("{path}.{number}.{}", jiff::ZonedDateTime::now().strftime("%Y-%m-%d@%H:%M:%S~"))
}

/// Before and after of a file's content; `None` for a side that was not read because it is too large.
pub fn difference(headers: (&str, &str), before: Option<&[u8]>, before_is_large: bool, after: &[u8]) -> Difference {
    let mut difference =
        Difference { before_header: headers.0.to_owned(), after_header: headers.1.to_owned(), ..Difference::default() };
    let before = before.unwrap_or_default();
    if before_is_large || before.len() > SHOWN_BYTES {
        difference.withheld.push(Withheld::DestinationLarger(SHOWN_BYTES));
    } else if is_binary(before) {
        difference.withheld.push(Withheld::DestinationBinary);
    }
    if after.len() > SHOWN_BYTES {
        difference.withheld.push(Withheld::SourceLarger(SHOWN_BYTES));
    } else if after.contains(&0) {
        difference.withheld.push(Withheld::SourceBinary);
    }
    if difference.withheld.is_empty() {
        difference.before = String::from_utf8_lossy(before).into_owned();
        difference.after = String::from_utf8_lossy(after).into_owned();
    }
    difference
}

/// A zero byte near the beginning.
fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(8192)].contains(&0)
}

pub fn sha1(content: &[u8]) -> String {
    hex(&sha1::Sha1::digest(content))
}

pub fn sha256(content: &[u8]) -> String {
    hex(&sha2::Sha256::digest(content))
}

pub fn md5(content: &[u8]) -> String {
    hex(&md5::Md5::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validate_is_split_as_a_shell_would_and_expands_nothing() {
        let words = |text: &str| parse_validate(Some(text)).unwrap().unwrap().join(" ");
        assert_eq!(words("visudo -cf %s"), "visudo -cf \"$t\"");
        assert_eq!(words("bash -c 'test -s %s'"), "bash -c 'test -s '\"$t\"");
        assert_eq!(words("a $HOME --file=%s 50%%"), "a '$HOME' --file=\"$t\" 50%");
        assert!(parse_validate(Some("visudo -c")).is_err());
        assert!(parse_validate(Some("a '%s")).is_err());
        assert_eq!(parse_validate(None).unwrap(), None);
    }

    #[test]
    fn backups_of_one_second_have_different_names() {
        let (first, second) = (backup_name("/etc/a"), backup_name("/etc/a"));
        assert_ne!(first, second);
        assert!(first.starts_with("/etc/a.") && first.ends_with('~') && first.contains('@'), "{first}");
    }

    #[test]
    fn binary_and_large_content_is_not_shown() {
        let shown = difference(("d", "s"), Some(b"a\n"), false, b"b\n");
        assert_eq!((shown.before.as_str(), shown.after.as_str(), shown.withheld.len()), ("a\n", "b\n", 0));
        let binary = difference(("d", "s"), Some(b"a\0"), false, b"b\n");
        assert_eq!(binary.withheld, [Withheld::DestinationBinary]);
        assert_eq!(binary.to_value().get("dst_binary"), Some(&1.into()));
        assert_eq!(binary.after, "");
        let large = difference(("d", "s"), None, true, &[b'x'; 104_449]);
        assert_eq!(large.withheld.len(), 2);
    }
}
