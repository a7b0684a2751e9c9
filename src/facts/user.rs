//! The user whom the host's shell runs as.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group {
    name: "user",
    parts_of: &[
        "min",
        "user_id",
        "user_uid",
        "user_gid",
        "user_gecos",
        "user_dir",
        "user_shell",
        "effective_user_id",
        "effective_group_ids",
        "real_user_id",
        "real_group_id",
    ],
    needs: &[],
    script: SCRIPT,
    parse,
};

const SCRIPT: &str = r#"
section id
trimtab_line=$(id)
printf '%s\n' "$trimtab_line"
section passwd
trimtab_uid=${trimtab_line#uid=}
trimtab_uid=${trimtab_uid%%[!0-9]*}
trimtab_line=$(getent passwd "$trimtab_uid" 2>/dev/null)
if [ -n "$trimtab_line" ]; then
    printf '%s\n' "$trimtab_line"
else
    while IFS= read -r trimtab_line; do
        case $trimtab_line in *:*:"$trimtab_uid":*) printf '%s\n' "$trimtab_line"; break ;; esac
    done </etc/passwd 2>/dev/null
fi
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let id = sections.text("id");
    // without words about effective ones, the real and the effective are the same
    let real_user = id_number(id, "uid=");
    let real_group = id_number(id, "gid=");
    let effective_user = id_number(id, "euid=").or(real_user);
    let effective_group = id_number(id, "egid=").or(real_group);
    let fields: Vec<&str> = sections.text("passwd").trim_end_matches('\n').split(':').collect();
    let field = |index: usize| fields.get(index).copied().unwrap_or_default();
    let number = |index: usize| field(index).parse::<i64>().ok();
    let name = Some(field(0)).filter(|name| !name.is_empty()).or_else(|| id_name(id)).unwrap_or_default();
    set(facts, "user_id", name);
    set(facts, "user_uid", number(2).or(effective_user));
    set(facts, "user_gid", number(3).or(effective_group));
    set(facts, "user_gecos", field(4));
    set(facts, "user_dir", field(5));
    set(facts, "user_shell", field(6));
    set(facts, "real_user_id", real_user);
    set(facts, "real_group_id", real_group);
    set(facts, "effective_user_id", effective_user);
    set(facts, "effective_group_id", effective_group);
}

/// The number behind `uid=` and the like in what id(1) prints.
fn id_number(text: &str, key: &str) -> Option<i64> {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix(key))?;
    word.split('(').next()?.parse().ok()
}

fn id_name(text: &str) -> Option<&str> {
    let word = text.split_whitespace().find_map(|word| word.strip_prefix("uid="))?;
    word.split_once('(')?.1.split(')').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn the_user_is_known_by_its_line_in_passwd() {
        let output = "\u{1e}id\nuid=1000(tuner) gid=100(users) groups=100(users),10(wheel)\n\u{1e}passwd\n\
                      tuner:x:1000:100:Tuning, Team:/home/tuner:/bin/bash\n";
        let mut facts = Map::new();
        parse(&Sections::new(output), &mut facts);
        let of = |name: &str| facts[name].clone();
        assert_eq!(of("ansible_user_id"), "tuner".into());
        assert_eq!(of("ansible_user_gid"), Value::Int(100));
        assert_eq!(of("ansible_user_gecos"), "Tuning, Team".into());
        assert_eq!(of("ansible_user_shell"), "/bin/bash".into());
        assert_eq!(of("ansible_effective_user_id"), Value::Int(1000));
    }

    #[test]
    fn a_user_without_a_line_has_still_numbers() {
        let mut facts = Map::new();
        parse(&Sections::new("\u{1e}id\nuid=12(x) gid=13 groups=13\n\u{1e}passwd\n"), &mut facts);
        assert_eq!(facts["ansible_user_id"], "x".into());
        assert_eq!(facts["ansible_user_gid"], Value::Int(13));
    }
}
