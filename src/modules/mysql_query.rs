//! `community.mysql.mysql_query`: statements for MySQL.

use crate::host::{Failure, Inverse};
use crate::value::{Map, Value};

use super::mysql_client::{self as client, Client, judge, literal, tables};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_query",
    aliases: &["ansible.mysql.mysql_query"],
    summary: "Runs statements on MySQL or MariaDB by the host's client",
    args: &[
        Arg::new("query", Type::RawList, "a statement or a list of them").required(),
        Arg::new("positional_args", Type::RawList, "values for `%s`"),
        Arg::new("named_args", Type::Dict, "values for `%(name)s`"),
        Arg::new("login_db", Type::Str, "the database to use"),
        Arg::new("single_transaction", Type::Bool, "all of them or none").default("false"),
        Arg::shared(client::LOGIN),
    ],
    rules: &[Rule::MutuallyExclusive(&["positional_args", "named_args"])],
    free_form: FreeForm::No,
    check_mode: Support::Partial,
    diff: Support::None,
    returns: &[
        ("executed_queries", "the statements"),
        ("query_result", "for each statement the rows, each a map by the names of the columns"),
        ("rowcount", "for each statement the number of rows"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let client = Client::parse(&args, &settings)?;
    let statements = statements(&args)?;
    let database = args.str("login_db").filter(|name| !name.is_empty());
    let sql = sql(&statements, args.bool("single_transaction"));
    let found = if statements.iter().all(|statement| only_reads(statement)) {
        client.ask_tables(&host, &sql, database).await?
    } else {
        if host.is_check() {
            return Ok(Outcome::skipped("check mode: the statements may alter something, so they were not run"));
        }
        let what = format!("statement of MySQL: {}", super::execution::heading(&statements[0]));
        let what = if settings.no_log { "statement of MySQL".to_owned() } else { what };
        let step = crate::host::Step::new(client.script(&sql, true, database));
        let change = crate::host::Change::uncertain(what, client::footprint())
            .step(step)
            .inverse(Inverse::None("what a statement did is not known".to_owned()));
        let applied = host.change(change).await?;
        let response = applied.responses.into_iter().next().unwrap_or_default();
        judge(&response)?.map_err(|why| Failure::new(format!("Cannot execute SQL: {why}")))?;
        tables(&response.text()).ok_or_else(|| Failure::new("what the mysql client printed cannot be understood"))?
    };
    let (results, counts) = sorted(&statements, found)?;
    let changed = statements.iter().zip(&counts).any(|(statement, count)| match kind(statement) {
        Kind::Reads => false,
        Kind::Rows => *count > 0,
        // `IF EXISTS` and `IF NOT EXISTS` that had nothing to do are warned of
        Kind::Defines => *count >= 0,
    });
    let list = |items: Vec<Value>| Value::list(items);
    Ok(Outcome::with_changed(changed)
        .with("executed_queries", list(statements.into_iter().map(Value::from).collect()))
        .with("query_result", list(results))
        .with("rowcount", list(counts.into_iter().map(|count| Value::from(count.max(0))).collect())))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reads,
    /// It changes rows, and says how many.
    Rows,
    Defines,
}

fn kind(statement: &str) -> Kind {
    let word: String = statement
        .trim_start_matches(['(', ' ', '\n', '\t'])
        .chars()
        .take_while(|letter| letter.is_ascii_alphabetic())
        .collect();
    match word.to_ascii_uppercase().as_str() {
        "SELECT" | "SHOW" | "DESCRIBE" | "DESC" | "EXPLAIN" | "USE" | "CHECKSUM" => Kind::Reads,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "LOAD" | "WITH" | "CALL" => Kind::Rows,
        _ => Kind::Defines,
    }
}

fn only_reads(statement: &str) -> bool {
    let upper = statement.to_ascii_uppercase();
    kind(statement) == Kind::Reads && !upper.contains("INTO OUTFILE") && !upper.contains("FOR UPDATE")
}

/// The statements with their values.
fn statements(args: &Args) -> Result<Vec<String>, Failure> {
    let given = args.get("query").and_then(Value::as_list).unwrap_or_default();
    let mut statements = Vec::new();
    for statement in given {
        let text = statement.to_text();
        let text = text.trim().trim_end_matches(';');
        if text.is_empty() {
            return Err(Failure::new("`query` has an empty statement"));
        }
        let text = match (
            args.get("positional_args").and_then(Value::as_list),
            args.get("named_args").and_then(Value::as_map),
        ) {
            (Some(values), _) => positional(text, values)?,
            (None, Some(values)) => named(text, values)?,
            _ => text.to_owned(),
        };
        statements.push(text);
    }
    Ok(statements)
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(true) => "1".to_owned(),
        Value::Bool(false) => "0".to_owned(),
        Value::Int(_) | Value::Float(_) | Value::Big(_) => value.to_text().into_owned(),
        other => literal(&other.to_text()),
    }
}

fn positional(text: &str, values: &[Value]) -> Result<String, Failure> {
    let parts: Vec<&str> = text.split("%s").collect();
    if parts.len() != values.len() + 1 {
        return Err(Failure::new(format!(
            "the statement has {} `%s`, but {} values are given",
            parts.len() - 1,
            values.len()
        )));
    }
    let mut out = parts[0].to_owned();
    for (part, own) in parts[1..].iter().zip(values) {
        out.push_str(&value(own));
        out.push_str(part);
    }
    Ok(out.replace("%%", "%"))
}

fn named(text: &str, values: &Map) -> Result<String, Failure> {
    let mut parts = text.split("%(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) =
            part.split_once(")s").ok_or_else(|| Failure::new("a `%(` in the statement has no `)s` behind it"))?;
        let own = values.get(name).ok_or_else(|| Failure::new(format!("`named_args` has no `{name}`")))?;
        out.push_str(&value(own));
        out.push_str(rest);
    }
    Ok(out.replace("%%", "%"))
}

/// The column that tells how many rows a statement changed.
const COUNT: &str = "trimtab_rows";
/// The column that tells whether it was warned, of something that is there or is not, say.
const WARNINGS: &str = "trimtab_warnings";

fn sql(statements: &[String], together: bool) -> String {
    let mut sql = String::new();
    if together {
        sql.push_str("START TRANSACTION;\n");
    }
    for statement in statements {
        sql.push_str(&format!("{statement};\nSELECT ROW_COUNT() AS {COUNT}, @@warning_count AS {WARNINGS};\n"));
    }
    if together {
        sql.push_str("COMMIT;\n");
    }
    sql
}

/// The rows of each statement, and how many there are or were changed.
fn sorted(statements: &[String], tables: Vec<Vec<Map>>) -> Result<(Vec<Value>, Vec<i64>), Failure> {
    let mut results = Vec::new();
    let mut counts = Vec::new();
    let mut rows: Vec<Value> = Vec::new();
    for table in tables {
        match table.first().and_then(|row| row.get(COUNT)).and_then(Value::as_int) {
            Some(count) => {
                let statement = &statements[counts.len().min(statements.len() - 1)];
                let read = kind(statement) == Kind::Reads;
                let warned = table.first().and_then(|row| row.get(WARNINGS)).and_then(Value::as_int).unwrap_or(0) > 0;
                let idle = warned && statement.to_uppercase().contains(" EXISTS ") && kind(statement) == Kind::Defines;
                counts.push(match (read, idle) {
                    (true, _) => i64::try_from(rows.len()).unwrap_or(0),
                    (false, true) => -1,
                    (false, false) => count.max(0),
                });
                results.push(Value::list(std::mem::take(&mut rows)));
            }
            None => rows.extend(table.into_iter().map(Value::map)),
        }
    }
    match counts.len() == statements.len() {
        true => Ok((results, counts)),
        false => Err(Failure::new("the mysql client did not answer every statement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::mysql_client::tests::fake;
    use crate::modules::testing::{Play, play};

    fn table(rows: &str) -> String {
        format!("<resultset statement=\"x\">{rows}</resultset>\n")
    }

    fn row(name: &str, value: &str) -> String {
        format!("<row><field name=\"{name}\">{value}</field></row>")
    }

    #[test]
    fn rows_and_counts_are_told() {
        let fake = fake();
        let count = |count: &str| table(&row(COUNT, count));
        fake.write("answer.1", &format!("SELECT a\n{}{}", table(&(row("a", "1") + &row("a", "x"))), count("-1")));
        fake.write("answer.2", &format!("UPDATE t\n{}", count("3")));
        let idle = table(&format!("<row><field name=\"{COUNT}\">0</field><field name=\"{WARNINGS}\">1</field></row>"));
        fake.write("answer.3", &format!("CREATE TABLE IF\n{idle}"));
        let run = |query: &str, more: &[(&'static str, Value)], check| {
            let given = [&[("query", query.into())], more].concat();
            play(&MODULE, &given, &Play { shell: fake.shell(), check })
        };
        for check in [true, false] {
            let outcome = run("SELECT a FROM t", &[], check).result.unwrap();
            let rows = outcome.result["query_result"].as_list().unwrap()[0].as_list().unwrap().to_vec();
            assert_eq!((outcome.changed, rows.len(), rows[0].get("a").cloned()), (false, 2, Some(1.into())));
            assert_eq!(outcome.result["rowcount"], Value::list(vec![2.into()]));
        }
        assert!(run("UPDATE t SET a=1", &[], true).result.unwrap().skipped);
        let values = [("positional_args", Value::list(vec!["o'x".into(), Value::Null]))];
        assert!(run("UPDATE t SET a=%s WHERE b IS %s", &values, false).result.unwrap().changed);
        assert!(fake.read("log").contains("UPDATE t SET a='o''x' WHERE b IS NULL;\n"), "{}", fake.read("log"));
        assert!(!run("CREATE TABLE IF NOT EXISTS t (a INT)", &[], false).result.unwrap().changed);
        fake.write("fail.1", "DROP\nERROR 1051 (42S02) at line 1: Unknown table 'x'\n");
        assert!(run("DROP TABLE x", &[], false).result.unwrap_err().message.contains("Unknown table"));
        let login = [("login_user", "me".into()), ("login_password", "top".into())];
        run("SELECT a", &login, false).result.unwrap();
        assert!(fake.read("options").contains("password=\"top\""));
    }

    #[test]
    fn values_take_their_places() {
        let map = crate::value::object([("n", "a".into()), ("i", 3.into())]);
        assert_eq!(named("x=%(n)s AND y=%(i)s", &map).unwrap(), "x='a' AND y=3");
        assert!(named("%(z)s", &map).is_err() && positional("%s", &[]).is_err());
        assert!(!only_reads("SELECT 1 INTO OUTFILE '/x'") && only_reads("(SELECT 1)") && !only_reads("insert into x"));
    }
}
