//! `community.mysql.mysql_info`: what a MySQL server says of itself.

use crate::host::Failure;
use crate::value::{Map, Value, object};

use super::mysql_client::{self as client, Client};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_info",
    aliases: &["ansible.mysql.mysql_info"],
    summary: "Tells version, settings, databases, users and replication of a MySQL or MariaDB server",
    args: &[
        Arg::new("filter", Type::List, "the parts to tell, or with `!` not to tell; not given: all"),
        Arg::new("exclude_fields", Type::List, "`db_size`: do not measure databases"),
        Arg::new("return_empty_dbs", Type::Bool, "tell databases without tables too").default("false"),
        Arg::new("login_db", Type::Str, "the database to use"),
        Arg::shared(client::LOGIN),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[
        ("version", "`full`, `major`, `minor`, `release`, `suffix`"),
        ("server_engine", "`MySQL` or `MariaDB`"),
        ("databases", "by name: `size` in bytes"),
        ("settings", "the global variables"),
        ("global_status", "the counters"),
        ("users", "by host and name: the columns of mysql.user without passwords"),
        ("engines", "by name: what is told of the engine"),
        ("master_status", "the place in the binary log"),
        ("slave_status", "by server, port and user: the state of replication"),
        ("slave_hosts", "by number: the replicas"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const PARTS: &[&str] = &[
    "version",
    "databases",
    "settings",
    "global_status",
    "users",
    "engines",
    "master_status",
    "slave_status",
    "slave_hosts",
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let client = Client::parse(&args, &settings)?;
    let parts = parts(&args.list("filter"))?;
    let sizes = !args.list("exclude_fields").iter().any(|field| field == "db_size");
    let database = args.str("login_db").filter(|name| !name.is_empty());
    let base = client.ask_tables(&host, "SHOW GLOBAL VARIABLES", database).await?;
    let variables = pairs(base.first().map_or(&[][..], Vec::as_slice), "Variable_name", "Value");
    let version = variables.get("version").map(|version| version.to_text().into_owned()).unwrap_or_default();
    let maria = version.to_lowercase().contains("mariadb");
    let mut outcome = Outcome::ok().with("server_engine", if maria { "MariaDB" } else { "MySQL" });
    for part in parts {
        let value: Value = match part {
            "version" => split_version(&version).into(),
            "settings" => variables.clone().into(),
            other => {
                let rows = table(&host, &client, &questions(other, sizes)).await?;
                sorted(other, rows, args.bool("return_empty_dbs"), sizes).into()
            }
        };
        outcome = outcome.with(part, value);
    }
    Ok(outcome)
}

/// The parts that a filter leaves.
fn parts(filter: &[String]) -> Result<Vec<&'static str>, Failure> {
    let bare = |word: &String| word.trim_start_matches('!').to_owned();
    if let Some(unknown) = filter.iter().map(bare).find(|word| !PARTS.contains(&word.as_str())) {
        return Err(Failure::new(format!("filter: `{unknown}` is not known; known: {}", PARTS.join(", "))));
    }
    let wanted: Vec<&String> = filter.iter().filter(|word| !word.starts_with('!')).collect();
    let left_out = |part: &str| filter.iter().any(|word| word.strip_prefix('!') == Some(part));
    Ok(PARTS
        .iter()
        .copied()
        .filter(|part| wanted.is_empty() || wanted.iter().any(|word| word == part))
        .filter(|part| !left_out(part))
        .collect())
}

/// The statements that tell a part; the first that the server understands counts.
fn questions(part: &str, sizes: bool) -> Vec<&'static str> {
    match part {
        "databases" if sizes => vec![
            "SELECT s.SCHEMA_NAME AS name, COUNT(t.TABLE_NAME) AS tables, CAST(COALESCE(SUM(t.DATA_LENGTH + t.INDEX_LENGTH), 0) AS UNSIGNED) AS size \
             FROM information_schema.SCHEMATA s LEFT JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = s.SCHEMA_NAME GROUP BY s.SCHEMA_NAME",
        ],
        "databases" => vec!["SELECT SCHEMA_NAME AS name, 1 AS tables FROM information_schema.SCHEMATA"],
        "global_status" => vec!["SHOW GLOBAL STATUS"],
        "users" => vec!["SELECT * FROM mysql.user"],
        "engines" => vec!["SHOW ENGINES"],
        "master_status" => vec!["SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"],
        "slave_status" => vec!["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"],
        _ => vec!["SHOW REPLICAS", "SHOW SLAVE HOSTS"],
    }
}

async fn table(host: &crate::host::Host, client: &Client, questions: &[&'static str]) -> Result<Vec<Map>, Failure> {
    let mut last = None;
    for question in questions {
        match client.ask_tables(host, question, None).await {
            Ok(tables) => return Ok(tables.into_iter().next().unwrap_or_default()),
            // another version's word
            Err(failure) if failure.kind == crate::host::FailureKind::Failed => last = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    Err(last.unwrap_or_else(|| Failure::new("there is no question")))
}

fn pairs(rows: &[Map], key: &str, value: &str) -> Map {
    rows.iter().filter_map(|row| Some((row.get(key)?.clone(), row.get(value)?.clone()))).collect()
}

fn sorted(part: &str, rows: Vec<Map>, empty: bool, sizes: bool) -> Map {
    let text = |row: &Map, key: &str| row.get(key).map(|value| value.to_text().into_owned()).unwrap_or_default();
    let mut map = Map::new();
    match part {
        "databases" => {
            for row in rows.iter().filter(|row| empty || row.get("tables") != Some(&0.into())) {
                let size = row.get("size").cloned().unwrap_or_default();
                let own = if sizes { object([("size", size)]) } else { Map::new() };
                map.insert(text(row, "name").into(), own.into());
            }
        }
        "global_status" => map = pairs(&rows, "Variable_name", "Value"),
        "users" => {
            for mut row in rows {
                let (host, user) = (text(&row, "Host"), text(&row, "User"));
                for secret in ["Host", "User", "Password", "authentication_string"] {
                    row.shift_remove(secret);
                }
                let mut of_host = map.get(host.as_str()).and_then(Value::as_map).cloned().unwrap_or_default();
                of_host.insert(user.into(), row.into());
                map.insert(host.into(), of_host.into());
            }
        }
        "engines" => {
            for mut row in rows {
                let name = text(&row, "Engine");
                row.shift_remove("Engine");
                map.insert(name.into(), row.into());
            }
        }
        "master_status" => map = rows.into_iter().next().unwrap_or_default(),
        "slave_status" => {
            for row in rows {
                let either =
                    |new: &str, old: &str| if row.contains_key(new) { text(&row, new) } else { text(&row, old) };
                let (server, port, user) = (
                    either("Source_Host", "Master_Host"),
                    either("Source_Port", "Master_Port"),
                    either("Source_User", "Master_User"),
                );
                map.insert(
                    server.into(),
                    object([(port.as_str(), object([(user.as_str(), row.into())]).into())]).into(),
                );
            }
        }
        _ => {
            for mut row in rows {
                let id = if row.contains_key("Server_Id") { "Server_Id" } else { "Server_id" };
                let number = text(&row, id);
                row.shift_remove(id);
                map.insert(number.into(), row.into());
            }
        }
    }
    map
}

/// `8.0.35-log` or `10.11.6-MariaDB-1`.
fn split_version(full: &str) -> Map {
    let (numbers, suffix) = full.split_once('-').unwrap_or((full, ""));
    let mut numbers = numbers.split('.').map(|number| number.parse::<i64>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let (major, minor, release) = (next(), next(), next());
    object([
        ("full", full.into()),
        ("major", major.into()),
        ("minor", minor.into()),
        ("release", release.into()),
        ("suffix", suffix.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::mysql_client::tests::fake;
    use crate::modules::testing::{Play, play};

    fn table(rows: &[&[(&str, &str)]]) -> String {
        let row = |fields: &&[(&str, &str)]| {
            let fields: String =
                fields.iter().map(|(name, value)| format!("<field name=\"{name}\">{value}</field>")).collect();
            format!("<row>{fields}</row>")
        };
        format!("<resultset statement=\"x\">{}</resultset>\n", rows.iter().map(row).collect::<String>())
    }

    #[test]
    fn parts_are_told() {
        let fake = fake();
        let put = |index: usize, question: &str, rows: &[&[(&str, &str)]]| {
            fake.write(&format!("answer.{index}"), &format!("{question}\n{}", table(rows)));
        };
        put(1, "SHOW GLOBAL VARIABLES", &[&[("Variable_name", "version"), ("Value", "10.11.6-MariaDB-1")]]);
        put(
            2,
            "FROM information_schema.SCHEMATA",
            &[
                &[("name", "shop"), ("tables", "3"), ("size", "4096")],
                &[("name", "void"), ("tables", "0"), ("size", "0")],
            ],
        );
        put(3, "mysql.user", &[&[("Host", "%"), ("User", "app"), ("Password", "*x"), ("ssl_type", "")]]);
        put(4, "SHOW SLAVE STATUS", &[&[("Master_Host", "db1"), ("Master_Port", "3306"), ("Master_User", "r")]]);
        fake.write("fail.1", "SHOW REPLICA STATUS\nERROR 1064 (42000): syntax\n");
        let filter = Value::list(["version", "databases", "users", "slave_status"].map(Value::from).to_vec());
        let outcome = play(&MODULE, &[("filter", filter)], &Play { shell: fake.shell(), check: true }).result.unwrap();
        let told = |path: &[&str]| {
            path.iter()
                .fold(Value::map(outcome.result.clone()), |value, key| value.get(key).cloned().unwrap_or_default())
        };
        assert_eq!((told(&["server_engine"]), told(&["version", "minor"])), ("MariaDB".into(), 11.into()));
        assert_eq!((told(&["databases", "shop", "size"]), told(&["databases", "void"])), (4096.into(), Value::Null));
        assert_eq!(told(&["users", "%", "app"]), object([("ssl_type", "".into())]).into());
        assert_eq!(told(&["slave_status", "db1", "3306", "r", "Master_Port"]), 3306.into());
        assert!(!outcome.result.contains_key("engines"));
    }

    #[test]
    fn filters_take_and_leave() {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(parts(&list(&["version"])).unwrap(), ["version"]);
        assert_eq!(parts(&list(&["!settings"])).unwrap().len(), PARTS.len() - 1);
        assert!(parts(&list(&["nonsense"])).is_err());
    }
}
