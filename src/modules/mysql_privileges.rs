//! Privileges of MySQL's users: as tasks write them, as `SHOW GRANTS` prints them, and the statements between. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::host::Failure;
use crate::value::Value;

/// Privileges by what they are on: `*.*`, `` `db`.* ``, `` FUNCTION `db`.`f` ``. `GRANT` is the right to pass them on.
pub type Privileges = BTreeMap<String, BTreeSet<String>>;

/// All static privileges of MySQL 8, which prints them one by one where `ALL` was granted on everything.
const EVERYTHING: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "SHUTDOWN",
    "PROCESS",
    "FILE",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "REPLICATION SLAVE",
    "REPLICATION CLIENT",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "CREATE USER",
    "EVENT",
    "TRIGGER",
    "CREATE TABLESPACE",
];

/// `db.*:SELECT,INSERT/db2.t:ALL`, or a map of the same.
pub fn wanted(value: &Value) -> Result<Privileges, Failure> {
    let mut privileges = Privileges::new();
    let mut add = |on: &str, words: &str| -> Result<(), Failure> {
        let on = normal_on(on.trim())?;
        privileges.entry(on).or_default().extend(split(words));
        Ok(())
    };
    match value {
        Value::Str(text) => {
            for item in text.as_str().trim().split('/').filter(|item| !item.trim().is_empty()) {
                let (on, words) = item
                    .rsplit_once(':')
                    .ok_or_else(|| Failure::new(format!("invalid privileges string: `{item}` has no `:`")))?;
                add(on, words)?;
            }
        }
        other => {
            let map = other.as_map().ok_or_else(|| Failure::new("priv parameter must be str or dict"))?;
            for (on, words) in map {
                let words = match words.as_list() {
                    Some(list) => list.iter().map(|word| word.to_text().into_owned()).collect::<Vec<_>>().join(","),
                    None => words.to_text().into_owned(),
                };
                add(&on.to_text(), &words)?;
            }
        }
    }
    Ok(privileges)
}

/// Splits at commas that are not within the columns of a privilege, in one manner of writing.
fn split(words: &str) -> BTreeSet<String> {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut word = String::new();
    for letter in words.chars() {
        match letter {
            ',' if depth == 0 => found.push(std::mem::take(&mut word)),
            '(' | ')' => {
                depth += if letter == '(' { 1 } else { -1 };
                word.push(letter);
            }
            other => word.push(other),
        }
    }
    found.push(word);
    found.iter().map(|word| normal_word(word)).filter(|word| !word.is_empty()).collect()
}

/// In capitals; columns as they are, in order.
fn normal_word(word: &str) -> String {
    let word = word.trim();
    if let Some((name, columns)) = word.split_once('(') {
        let mut columns: Vec<&str> =
            columns.trim_end_matches(')').split(',').map(|column| column.trim().trim_matches('`')).collect();
        columns.sort_unstable();
        return format!("{} ({})", name.trim().to_uppercase(), columns.join(", "));
    }
    let word = word.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase();
    match word.as_str() {
        "ALL PRIVILEGES" => "ALL".to_owned(),
        "WITH GRANT OPTION" | "GRANT OPTION" => "GRANT".to_owned(),
        _ => word,
    }
}

/// `db.t` as `` `db`.`t` ``.
fn normal_on(on: &str) -> Result<String, Failure> {
    let (kind, rest) = match on.split_once(' ') {
        Some((kind, rest)) if ["FUNCTION", "PROCEDURE", "TABLE"].contains(&kind.to_uppercase().as_str()) => {
            (format!("{} ", kind.to_uppercase()), rest.trim())
        }
        _ => (String::new(), on),
    };
    let kind = kind.replace("TABLE ", "");
    let dot = if let Some(quoted) = rest.strip_prefix('`') {
        quoted.find("`.").map(|at| at + 2)
    } else if rest.ends_with('`') {
        rest.find(".`")
    } else {
        rest.rfind('.')
    };
    let dot = dot.ok_or_else(|| Failure::new(format!("`{on}` in `priv` is not of the form database.table")))?;
    let quoted = |part: &str| match part {
        "*" => "*".to_owned(),
        part => format!("`{}`", part.trim_matches('`').replace('`', "``")),
    };
    Ok(format!("{kind}{}.{}", quoted(&rest[..dot]), quoted(&rest[dot + 1..])))
}

/// What `SHOW GRANTS` printed. Roles are left out.
pub fn granted<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Privileges, Failure> {
    let mut privileges = Privileges::new();
    for line in lines {
        let Some(rest) = line.strip_prefix("GRANT ") else { continue };
        // without ON it is a role
        let Some((words, rest)) = rest.split_once(" ON ") else { continue };
        let (on, rest) = rest
            .split_once(" TO ")
            .ok_or_else(|| Failure::new(format!("what the server granted cannot be understood: {line}")))?;
        if words == "PROXY" {
            continue;
        }
        let own = privileges.entry(normal_on(on.trim())?).or_default();
        own.extend(split(words));
        if rest.contains("WITH GRANT OPTION") || rest.contains(" GRANT OPTION") {
            own.insert("GRANT".to_owned());
        }
    }
    if let Some(own) = privileges.get_mut("*.*")
        && EVERYTHING.iter().all(|word| own.contains(*word))
    {
        let passes_on = own.contains("GRANT");
        *own = BTreeSet::from(["ALL".to_owned()]);
        own.extend(passes_on.then(|| "GRANT".to_owned()));
    }
    Ok(privileges)
}

/// How wanted privileges and present ones are brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Just the wanted ones.
    Exact,
    Add,
    Remove,
}

/// What the user has afterwards.
pub fn result(now: &Privileges, wanted: &Privileges, manner: Manner) -> Privileges {
    let mut after = match manner {
        Manner::Exact => Privileges::new(),
        _ => now.clone(),
    };
    for (on, words) in wanted {
        let own = after.entry(on.clone()).or_default();
        match manner {
            Manner::Remove if words.contains("ALL") => own.clear(),
            Manner::Remove => own.retain(|word| !words.contains(word)),
            _ => own.extend(words.iter().cloned()),
        }
    }
    after.into_iter().map(|(on, words)| (on, useful(&words))).filter(|(_, words)| !words.is_empty()).collect()
}

/// Without `USAGE`, which is nothing, and with `ALL` alone where there is all.
pub fn useful(words: &BTreeSet<String>) -> BTreeSet<String> {
    let all = words.contains("ALL");
    words.iter().filter(|word| *word != "USAGE" && (!all || *word == "ALL" || *word == "GRANT")).cloned().collect()
}

/// The statements that lead from one to the other. `user` is `'name'@'host'`.
pub fn statements(now: &Privileges, after: &Privileges, user: &str) -> Vec<String> {
    let none = BTreeSet::new();
    let mut statements = Vec::new();
    let all: BTreeSet<&String> = now.keys().chain(after.keys()).collect();
    for on in all {
        let have = now.get(on).map(useful).unwrap_or_default();
        let want = after.get(on).map_or_else(|| none.clone(), useful);
        if have == want {
            continue;
        }
        // `ALL` cannot be taken apart
        let whole = have.contains("ALL") && !want.contains("ALL");
        let revoke: Vec<&str> = have
            .iter()
            .filter(|word| *word != "GRANT" && (whole || !want.contains(*word)) && !want.contains("ALL"))
            .map(String::as_str)
            .collect();
        if !revoke.is_empty() {
            let words = if revoke == ["ALL"] { "ALL PRIVILEGES".to_owned() } else { revoke.join(", ") };
            statements.push(format!("REVOKE {words} ON {on} FROM {user}"));
        }
        if have.contains("GRANT") && !want.contains("GRANT") {
            statements.push(format!("REVOKE GRANT OPTION ON {on} FROM {user}"));
        }
        let grant: Vec<&str> = want
            .iter()
            .filter(|word| *word != "GRANT" && (whole || !have.contains(*word)))
            .map(String::as_str)
            .collect();
        let passes_on = want.contains("GRANT") && !have.contains("GRANT");
        if !grant.is_empty() || passes_on {
            let words = if grant.is_empty() { "USAGE".to_owned() } else { grant.join(", ") };
            let option = if passes_on { " WITH GRANT OPTION" } else { "" };
            statements.push(format!("GRANT {words} ON {on} TO {user}{option}"));
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &str) -> Privileges {
        granted(text.lines()).unwrap()
    }

    #[test]
    fn both_manners_of_writing_mean_the_same() {
        let wanted = wanted(&"my_db.*:select, Insert(b,a)/*.*:ALL,GRANT/FUNCTION d.f:EXECUTE".into()).unwrap();
        let now = grants(
            "GRANT ALL PRIVILEGES ON *.* TO `u`@`h` WITH GRANT OPTION\n\
             GRANT SELECT, INSERT (`a`, `b`) ON `my_db`.* TO 'u'@'h'\nGRANT EXECUTE ON FUNCTION `d`.`f` TO 'u'@'h'\n\
             GRANT `role`@`%` TO `u`@`h`",
        );
        assert_eq!(wanted, now);
        let map = crate::value::object([("my_db.*", "SELECT".into()), ("a.b", Value::list(vec!["DROP".into()]))]);
        assert_eq!(super::wanted(&map.into()).unwrap().len(), 2);
        for bad in ["nonsense", "db:SELECT"] {
            assert!(super::wanted(&bad.into()).is_err(), "{bad}");
        }
        let list = EVERYTHING.join(", ");
        let everything = grants(&format!("GRANT {list} ON *.* TO u\nGRANT BACKUP_ADMIN ON *.* TO u"));
        assert_eq!(everything["*.*"], BTreeSet::from(["ALL".to_owned()]));
    }

    #[test]
    fn only_what_differs_is_granted_or_revoked() {
        let cases = [
            ("USAGE ON *.*", "d.*:SELECT", Manner::Exact, vec!["GRANT SELECT ON `d`.* TO u"]),
            ("SELECT ON `d`.*", "d.*:SELECT", Manner::Exact, vec![]),
            (
                "SELECT, DROP ON `d`.*",
                "d.*:SELECT,INSERT",
                Manner::Exact,
                vec!["REVOKE DROP ON `d`.* FROM u", "GRANT INSERT ON `d`.* TO u"],
            ),
            (
                "SELECT ON `e`.*",
                "d.*:ALL",
                Manner::Exact,
                vec!["GRANT ALL ON `d`.* TO u", "REVOKE SELECT ON `e`.* FROM u"],
            ),
            ("SELECT ON `e`.*", "d.*:ALL", Manner::Add, vec!["GRANT ALL ON `d`.* TO u"]),
            ("SELECT, DROP ON `d`.*", "d.*:DROP", Manner::Remove, vec!["REVOKE DROP ON `d`.* FROM u"]),
            (
                "ALL PRIVILEGES ON `d`.*",
                "d.*:SELECT,GRANT",
                Manner::Exact,
                vec!["REVOKE ALL PRIVILEGES ON `d`.* FROM u", "GRANT SELECT ON `d`.* TO u WITH GRANT OPTION"],
            ),
            ("ALL PRIVILEGES ON `d`.*", "d.*:SELECT", Manner::Add, vec![]),
        ];
        for (now, given, manner, expected) in cases {
            let now = grants(&format!("GRANT {now} TO 'u'@'h'"));
            let after = result(&now, &wanted(&given.into()).unwrap(), manner);
            assert_eq!(statements(&now, &after, "u"), expected, "{given} {manner:?}");
        }
    }
}
