//! The lines of fstab(5) and of the kernel's table of mounts. Pure.

/// A line of fstab, its fields unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub src: String,
    pub path: String,
    pub fstype: String,
    pub opts: String,
    pub dump: String,
    pub passno: String,
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        if line.trim_start().starts_with('#') {
            return None;
        }
        let fields: Vec<String> = line.split('#').next()?.split_whitespace().map(unescape).collect();
        if !(4..=6).contains(&fields.len()) {
            return None;
        }
        let field = |index: usize| fields.get(index).cloned().unwrap_or_else(|| "0".to_owned());
        Some(Entry {
            src: field(0),
            path: field(1),
            fstype: field(2),
            opts: field(3),
            dump: field(4),
            passno: field(5),
        })
    }

    fn line(&self) -> String {
        let fields = [&self.src, &self.path, &self.fstype, &self.opts, &self.dump, &self.passno];
        fields.map(|field| escape(field)).join(" ") + "\n"
    }

    /// True if it is of the same place; swap has none, so there the device counts.
    fn is_of(&self, path: &str, src: Option<&str>) -> bool {
        self.path == path && !(self.path == "none" && self.fstype == "swap" && src.is_some_and(|src| self.src != src))
    }
}

/// Blanks, backslashes, number signs in octal, and `&` as Ansible writes it.
fn escape(field: &str) -> String {
    field
        .replace('\\', "\\134")
        .replace(' ', "\\040")
        .replace('\t', "\\011")
        .replace('\n', "\\012")
        .replace('#', "\\043")
        .replace('&', "\\046")
}

/// Resolves `\040` and its kin, as fstab and the kernel's tables write them.
pub fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| bytes[at] == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The entry of a path, if there is one.
pub fn find(text: &str, path: &str, src: Option<&str>) -> Option<Entry> {
    text.lines().filter_map(Entry::parse).find(|entry| entry.is_of(path, src))
}

/// The text with this entry; `None` if it has it already. Other lines stay as they are.
pub fn set(text: &str, wanted: &Entry) -> Option<String> {
    let mut new = String::new();
    let (mut found, mut changed) = (false, false);
    for line in text.split_inclusive('\n') {
        let own = Entry::parse(line).filter(|entry| entry.is_of(&wanted.path, Some(&wanted.src)));
        match own {
            Some(entry) => {
                found = true;
                if entry == *wanted {
                    new.push_str(line);
                } else {
                    new.push_str(&wanted.line());
                    changed = true;
                }
            }
            None => new.push_str(line),
        }
    }
    if !found {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&wanted.line());
    }
    (changed || !found).then_some(new)
}

/// The text without the entries of this path; `None` if it has none.
pub fn unset(text: &str, path: &str, src: Option<&str>) -> Option<String> {
    let goes = |line: &&str| Entry::parse(line).is_some_and(|entry| entry.is_of(path, src));
    let kept: String = text.split_inclusive('\n').filter(|line| !goes(line)).collect();
    (kept.len() != text.len()).then_some(kept)
}

/// A line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// What of the file system is mounted: `/` if it is all of it.
    pub root: String,
    pub path: String,
    pub opts: String,
    pub fstype: String,
    pub src: String,
    /// Options of the file system itself.
    pub super_opts: String,
}

/// The topmost mount at one of these paths.
pub fn mounted(mountinfo: &str, paths: &[&str]) -> Option<Mounted> {
    mountinfo.lines().filter_map(parse_mounted).rfind(|mounted| paths.contains(&mounted.path.as_str()))
}

fn parse_mounted(line: &str) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    Some(Mounted {
        root: unescape(left.get(3)?),
        path: unescape(left.get(4)?),
        opts: (*left.get(5)?).to_owned(),
        fstype: (*right.first()?).to_owned(),
        src: unescape(right.get(1)?),
        super_opts: right.get(2).copied().unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FSTAB: &str = "# comment\nUUID=1 / ext4 defaults 0 1\n\n/dev/b\t/srv/a\\040b xfs noatime 0 0 # data\n\
                         /dev/s none swap sw 0 0\ntmpfs /tmp tmpfs rw\n";

    fn entry(src: &str, path: &str, fstype: &str, opts: &str) -> Entry {
        let [src, path, fstype, opts, zero] = [src, path, fstype, opts, "0"].map(str::to_owned);
        Entry { src, path, fstype, opts, dump: zero.clone(), passno: zero }
    }

    #[test]
    fn entries_are_set_where_they_are() {
        assert_eq!(set(FSTAB, &entry("tmpfs", "/tmp", "tmpfs", "rw")), None);
        assert_eq!(set(FSTAB, &entry("/dev/b", "/srv/a b", "xfs", "noatime")), None);
        let new = set(FSTAB, &entry("/dev/b", "/srv/a b", "xfs", "ro")).unwrap();
        assert_eq!(new, FSTAB.replace("/dev/b\t/srv/a\\040b xfs noatime 0 0 # data", "/dev/b /srv/a\\040b xfs ro 0 0"));
        let new = set(FSTAB, &entry("/dev/t", "none", "swap", "sw")).unwrap();
        assert_eq!(new, format!("{FSTAB}/dev/t none swap sw 0 0\n"));
        assert_eq!(set("a b c d", &entry("x", "/y", "z", "o")).unwrap(), "a b c d\nx /y z o 0 0\n");
    }

    #[test]
    fn entries_are_found_and_removed() {
        assert_eq!(find(FSTAB, "/tmp", None).unwrap().passno, "0");
        assert_eq!(find(FSTAB, "/no", None), None);
        assert_eq!(unset(FSTAB, "/", None).unwrap(), FSTAB.replace("UUID=1 / ext4 defaults 0 1\n", ""));
        assert_eq!(unset(FSTAB, "none", Some("/dev/t")), None);
        assert!(unset(FSTAB, "none", Some("/dev/s")).is_some());
    }

    #[test]
    fn the_kernels_table_is_read() {
        let table = "22 1 0:5 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     30 22 0:9 /sub /a\\040b ro,nosuid master:2 - tmpfs tmpfs rw,size=4k\n";
        let found = mounted(table, &["/a b"]).unwrap();
        assert_eq!((found.root.as_str(), found.opts.as_str(), found.fstype.as_str()), ("/sub", "ro,nosuid", "tmpfs"));
        assert_eq!(found.super_opts, "rw,size=4k");
        assert_eq!(mounted(table, &["/x"]), None);
    }
}
