//! The Python of the host, if it has one: trimtab does not need it, but playbooks ask.

use crate::value::{Map, Value, object};

use super::{Group, Sections, set};

pub const GROUP: Group =
    Group { name: "python", parts_of: &["min", "python_version"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r#"
section python
for trimtab_file in python3 /usr/libexec/platform-python python python2; do
    trimtab_file=$(command -v "$trimtab_file" 2>/dev/null) || continue
    printf 'executable=%s\n' "$trimtab_file"
    "$trimtab_file" -S -E -c 'import sys; print("version=" + " ".join(map(str, sys.version_info)) + " " + getattr(getattr(sys, "implementation", None), "name", "cpython"))' 2>/dev/null && break
done
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let python = python(sections.text("python"));
    let version = python.as_ref().map(|(_, numbers)| numbers.as_str());
    set(facts, "python_version", version);
    set(facts, "python", python.as_ref().map(|(map, _)| map.clone()));
}

/// The last interpreter that told its version.
fn python(text: &str) -> Option<(Map, String)> {
    let (before, version) = text.split_once("version=")?;
    let executable = before.lines().filter_map(|line| line.strip_prefix("executable=")).next_back()?;
    let words: Vec<&str> = version.split_whitespace().collect();
    let &[major, minor, micro, level, serial, kind] = &words[..] else { return None };
    let number = |word: &str| word.parse::<i64>().ok().map(Value::Int);
    let (major, minor, micro, serial) = (number(major)?, number(minor)?, number(micro)?, number(serial)?);
    let text = format!("{major}.{minor}.{micro}");
    let info = vec![major.clone(), minor.clone(), micro.clone(), level.into(), serial.clone()];
    let version = object([
        ("major", major),
        ("minor", minor),
        ("micro", micro),
        ("releaselevel", level.into()),
        ("serial", serial),
    ]);
    let map = object([
        ("version", version.into()),
        ("version_info", info.into()),
        ("executable", executable.into()),
        ("has_sslcontext", true.into()),
        ("type", kind.into()),
    ]);
    Some((map, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_none_where_there_is_none() {
        assert_eq!(python(""), None);
        assert_eq!(python("executable=/usr/bin/python3\n"), None, "one that does not run is none");
        let (map, version) =
            python("executable=/bin/a\nexecutable=/usr/bin/python2\nversion=2 7 5 final 0 cpython\n").unwrap();
        assert_eq!(version, "2.7.5");
        assert_eq!(map["executable"], "/usr/bin/python2".into());
        assert_eq!(map["version"].get("minor"), Some(&Value::Int(7)));
    }
}
