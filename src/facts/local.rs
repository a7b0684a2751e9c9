//! Facts that the host's owner keeps in `/etc/ansible/facts.d`: JSON or INI files, or programs that print such.

use crate::value::{Map, Value};

use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "local", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r#"
section directory
printf '%s' "$trimtab_fact_path"
for trimtab_file in "$trimtab_fact_path"/*.fact; do
    [ -f "$trimtab_file" ] || continue
    trimtab_name=${trimtab_file##*/}
    if [ -x "$trimtab_file" ]; then
        section "program ${trimtab_name%.fact}"
        "$trimtab_file" 2>&1 </dev/null
        trimtab_code=$?
        section "code ${trimtab_name%.fact}"
        echo "$trimtab_code"
    elif [ -r "$trimtab_file" ]; then
        section "file ${trimtab_name%.fact}"
        cat "$trimtab_file"
    fi
done
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let mut local = Map::new();
    let directory = sections.text("directory").trim();
    for (name, text) in sections.all("file ") {
        local.insert(name.into(), fact(directory, name, text));
    }
    for (name, text) in sections.all("program ") {
        let code = sections.all("code ").find(|(program, _)| *program == name).map_or("", |(_, code)| code.trim());
        let value = if code == "0" {
            fact(directory, name, text)
        } else {
            format!("Failure executing fact script ({name}.fact), rc: {code}, err: {}", text.trim()).into()
        };
        local.insert(name.into(), value);
    }
    set(facts, "local", local);
}

/// JSON if it is any, else the sections of an INI file, else words that say why not.
fn fact(directory: &str, name: &str, text: &str) -> Value {
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(text) {
        return Value::from_json(&json);
    }
    ini(text).map_or_else(
        || format!("error loading facts as JSON or ini - please check content: {directory}/{name}.fact").into(),
        Value::from,
    )
}

/// Sections of `key = value` as Python's configparser reads them: keys in lower case, a value may go on in
/// indented lines.
fn ini(text: &str) -> Option<Map> {
    let mut sections = Map::new();
    let mut section: Option<(String, Map)> = None;
    let mut last_key: Option<String> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(title) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.extend(section.take().map(|(title, entries)| (title.into(), entries.into())));
            section = Some((title.to_owned(), Map::new()));
            last_key = None;
            continue;
        }
        let entries = &mut section.as_mut()?.1;
        if line.starts_with([' ', '\t']) {
            let value = entries.get_mut(last_key.as_deref()?)?;
            *value = format!("{value}\n{trimmed}").into();
        } else {
            let (key, value) = trimmed.split_once(['=', ':'])?;
            let key = key.trim().to_lowercase();
            entries.insert(key.as_str().into(), value.trim().into());
            last_key = Some(key);
        }
    }
    sections.extend(section.map(|(title, entries)| (title.into(), entries.into())));
    Some(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_json_or_ini_or_what_a_program_prints() {
        let output = "\u{1e}file rack\n[place]\nRoom = B 2\nrow: 7\n\u{1e}file nic\n{\"queues\": 8}\n\u{1e}program role\n\"db\"\n\
                      \u{1e}code role\n0\n\u{1e}program bad\nno\n\u{1e}code bad\n3\n\u{1e}file odd\nwhat is this\n";
        let mut facts = Map::new();
        parse(&Sections::new(output), &mut facts);
        let local = facts["ansible_local"].clone();
        let of = |name: &str| local.get(name).unwrap().to_repr();
        assert_eq!(of("rack"), "{'place': {'room': 'B 2', 'row': '7'}}");
        assert_eq!(of("nic"), "{'queues': 8}");
        assert_eq!(of("role"), "'db'");
        assert!(of("bad").contains("rc: 3"));
        assert!(of("odd").contains("error loading facts"));
    }
}
