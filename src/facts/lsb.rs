//! What the Linux Standard Base's tool says of the distribution.

use crate::value::Map;

use super::{Group, Sections, assignments, set};

pub const GROUP: Group = Group { name: "lsb", parts_of: &["min"], needs: &[], script: SCRIPT, parse };

// the tool is often a slow Python program; where its file is, it says what the file says
const SCRIPT: &str = r"
section lsb-file
text /etc/lsb-release
section lsb-tool
trimtab_line=
{ read -r trimtab_line </etc/lsb-release; } 2>/dev/null
case $trimtab_line in
    DISTRIB_ID=*) ;;
    *) if present lsb_release; then lsb_release -a 2>/dev/null; fi ;;
esac
";

/// The fact, the key in the file, the words of the tool.
const FIELDS: &[(&str, &str, &str)] = &[
    ("codename", "DISTRIB_CODENAME", "Codename"),
    ("description", "DISTRIB_DESCRIPTION", "Description"),
    ("id", "DISTRIB_ID", "Distributor ID"),
    ("release", "DISTRIB_RELEASE", "Release"),
];

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let file = assignments(sections.text("lsb-file"));
    let tool = sections.text("lsb-tool");
    let mut lsb = Map::new();
    for (name, key, words) in FIELDS {
        let of_tool = tool.lines().filter_map(|line| line.split_once(':')).find(|(field, _)| field.trim() == *words);
        let of_file = file.iter().find(|(field, _)| field == key).map(|(_, value)| value.as_str());
        if let Some(value) = of_tool.map(|(_, value)| value.trim()).or(of_file) {
            lsb.insert((*name).into(), value.into());
        }
    }
    let release = lsb.get("release").and_then(crate::value::Value::as_str).map(str::to_owned);
    if let Some(release) = release {
        lsb.insert("major_release".into(), release.split('.').next().unwrap_or_default().into());
    }
    set(facts, "lsb", lsb);
}
