//! `community.mysql.mysql_replication`: replicas of MySQL.

use crate::host::{Difference, Failure, Inverse};
use crate::value::{Map, Value};

use super::mysql_client::{self as client, Client, literal};
use super::programs::make;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_replication",
    aliases: &["ansible.mysql.mysql_replication"],
    summary: "Tells and steers the replication of a MySQL or MariaDB server by the host's client",
    args: &[
        Arg::new("mode", Type::Str, "what is to be done").default("getreplica").choices(&[
            "changeprimary",
            "changemaster",
            "changereplication",
            "getprimary",
            "getmaster",
            "getreplica",
            "getslave",
            "startreplica",
            "startslave",
            "stopreplica",
            "stopslave",
            "resetprimary",
            "resetmaster",
            "resetreplica",
            "resetslave",
            "resetreplicaall",
            "resetslaveall",
        ]),
        Arg::new("primary_host", Type::Str, "the primary").aliases(&["master_host"]),
        Arg::new("primary_user", Type::Str, "the user to log in there as").aliases(&["master_user"]),
        Arg::new("primary_password", Type::Str, "its password").aliases(&["master_password"]).secret(),
        Arg::new("primary_port", Type::Int, "its port").aliases(&["master_port"]),
        Arg::new("primary_connect_retry", Type::Int, "seconds between two tries").aliases(&["master_connect_retry"]),
        Arg::new("primary_log_file", Type::Str, "the binary log to begin with").aliases(&["master_log_file"]),
        Arg::new("primary_log_pos", Type::Int, "the place in it").aliases(&["master_log_pos"]),
        Arg::new("primary_delay", Type::Int, "seconds to stay behind").aliases(&["master_delay"]),
        Arg::new("primary_use_gtid", Type::Str, "how MariaDB uses transaction ids")
            .choices(&["current_pos", "replica_pos", "slave_pos", "disabled"])
            .aliases(&["master_use_gtid"]),
        Arg::new("primary_auto_position", Type::Bool, "MySQL uses transaction ids")
            .default("false")
            .aliases(&["master_auto_position"]),
        Arg::new("primary_ssl", Type::Bool, "use TLS").aliases(&["master_ssl"]),
        Arg::new("primary_ssl_ca", Type::Str, "certificates that are trusted").aliases(&["master_ssl_ca"]),
        Arg::new("primary_ssl_capath", Type::Str, "a directory of them").aliases(&["master_ssl_capath"]),
        Arg::new("primary_ssl_cert", Type::Str, "the certificate to log in with").aliases(&["master_ssl_cert"]),
        Arg::new("primary_ssl_key", Type::Str, "its key").aliases(&["master_ssl_key"]),
        Arg::new("primary_ssl_cipher", Type::Str, "the ciphers").aliases(&["master_ssl_cipher"]),
        Arg::new("primary_ssl_verify_server_cert", Type::Bool, "check the certificate of the primary").default("false"),
        Arg::new("relay_log_file", Type::Str, "the relay log to begin with"),
        Arg::new("relay_log_pos", Type::Int, "the place in it"),
        Arg::new("connection_name", Type::Str, "the connection (MariaDB)"),
        Arg::new("channel", Type::Str, "the channel (MySQL)"),
        Arg::new("fail_on_error", Type::Bool, "fail if replication cannot be started or stopped").default("false"),
        Arg::shared(client::LOGIN),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("queries", "the statements that were run, without passwords"),
        ("msg", "what was done"),
        ("Is_Replica", "whether the server is a replica; `Is_Slave` is the same"),
        ("Is_Primary", "whether it writes a binary log; `Is_Master` is the same"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// Which words the server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// MySQL 8.4: SOURCE and REPLICA, `BINARY LOG`.
    Newest,
    /// MySQL 8.0.23: the same, but RESET MASTER.
    New,
    MariaDb,
    Old,
}

impl Words {
    fn of(version: &str) -> Words {
        let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let number = (next(), next(), next());
        if version.to_lowercase().contains("mariadb") {
            Words::MariaDb
        } else if number >= (8, 4, 0) {
            Words::Newest
        } else if number >= (8, 0, 23) {
            Words::New
        } else {
            Words::Old
        }
    }

    fn replica(self) -> &'static str {
        if matches!(self, Words::Newest | Words::New) { "REPLICA" } else { "SLAVE" }
    }

    /// The beginning of the options of CHANGE MASTER.
    fn primary(self) -> &'static str {
        if matches!(self, Words::Newest | Words::New) { "SOURCE" } else { "MASTER" }
    }
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let client = Client::parse(&args, &settings)?;
    let rows = client.ask(&host, "SELECT VERSION()").await?;
    let version = rows.into_iter().flatten().next().unwrap_or_default();
    let words = Words::of(&version);
    let place = Place::parse(&args, words)?;
    let mode = args.text("mode");
    if matches!(mode, "getprimary" | "getmaster") {
        let question = if words == Words::Newest { "SHOW BINARY LOG STATUS" } else { "SHOW MASTER STATUS" };
        let row = first(client.ask_tables(&host, question, None).await?);
        let is = row.is_some();
        let outcome = Outcome { result: row.unwrap_or_default(), ..Outcome::ok() };
        let outcome = if is { outcome } else { outcome.with("msg", "Server is not configured as mysql primary") };
        return Ok(outcome.with("Is_Primary", is).with("Is_Master", is));
    }
    let question = format!("SHOW {}{} STATUS{}", words.replica(), place.behind_name, place.channel);
    let status = first(client.ask_tables(&host, &question, None).await?);
    let text = |key: &str| {
        let value = status.as_ref().and_then(|row| row.get(key));
        value.map(|value| value.to_text().into_owned()).unwrap_or_default()
    };
    let either = |new: &str, old: &str| if text(new).is_empty() { text(old) } else { text(new) };
    let runs = [either("Replica_IO_Running", "Slave_IO_Running"), either("Replica_SQL_Running", "Slave_SQL_Running")];
    let word = words.replica();
    let start = format!("START {word}{}{}", place.behind_name, place.channel);
    let stop = format!("STOP {word}{}{}", place.behind_name, place.channel);
    let (statement, shown, inverse) = match mode {
        "getreplica" | "getslave" => {
            let is = status.is_some();
            let outcome = Outcome { result: status.unwrap_or_default(), ..Outcome::ok() };
            let outcome = if is { outcome } else { outcome.with("msg", "Server is not configured as mysql replica") };
            return Ok(outcome.with("Is_Replica", is).with("Is_Slave", is));
        }
        "startreplica" | "startslave" => {
            if status.is_some() && runs.iter().all(|state| state == "Yes" || state == "Connecting") {
                return Ok(Outcome::ok().with("msg", "Replica already started"));
            }
            (start.clone(), start, Inverse::Steps(vec![client.step(&stop)]))
        }
        "stopreplica" | "stopslave" => {
            if status.is_none() || runs.iter().all(|state| state == "No") {
                return Ok(Outcome::ok().with("msg", "Replica already stopped"));
            }
            (stop.clone(), stop, Inverse::Steps(vec![client.step(&start)]))
        }
        "resetprimary" | "resetmaster" => {
            let statement = if words == Words::Newest { "RESET BINARY LOGS AND GTIDS" } else { "RESET MASTER" };
            (statement.to_owned(), statement.to_owned(), gone("the binary log"))
        }
        "resetreplica" | "resetslave" | "resetreplicaall" | "resetslaveall" => {
            let all = if mode.ends_with("all") { " ALL" } else { "" };
            if status.is_none() && !all.is_empty() {
                return Ok(Outcome::ok().with("msg", "Server is not configured as mysql replica"));
            }
            let statement = format!("RESET {word}{}{all}{}", place.behind_name, place.channel);
            (statement.clone(), statement, gone("the place of the replica"))
        }
        "changereplication" => {
            return Err(Failure::new(
                "the mode `changereplication` is not supported: it is about filters; set them by `mysql_query`",
            ));
        }
        _ => {
            let (options, shown, open) = options(&args, words)?;
            if options.is_empty() {
                return Err(Failure::new("changeprimary needs at least one of its parameters"));
            }
            if let Some(row) = status.as_ref().filter(|_| !open)
                && is_so(row, &args)
            {
                return Ok(Outcome::ok().with("msg", "the replica has these settings already"));
            }
            let verb = if words.primary() == "SOURCE" { "CHANGE REPLICATION SOURCE" } else { "CHANGE MASTER" };
            let full =
                |options: &[String]| format!("{verb}{} TO {}{}", place.behind_name, options.join(", "), place.channel);
            (full(&options), full(&shown), gone("what the replica was told before"))
        }
    };
    let shown = if settings.no_log { "replication of MySQL".to_owned() } else { shown };
    let change = client.change("replication of MySQL", &statement).inverse(inverse).difference(Difference::new(
        "replication of MySQL",
        "",
        format!("{shown}\n"),
    ));
    let differences = change.differences.clone();
    match make(&host, change).await {
        Ok(_) => {}
        Err(failure)
            if !args.bool("fail_on_error")
                && (mode.starts_with("start") || mode.starts_with("stop"))
                && failure.kind == crate::host::FailureKind::Failed =>
        {
            let message = if mode.starts_with("start") {
                "Replica could not be started, it might already be running or is not configured"
            } else {
                "Replica already stopped"
            };
            return Ok(Outcome::ok().with("msg", format!("{message}: {}", failure.message)));
        }
        Err(failure) => return Err(failure),
    }
    let message = match mode {
        "startreplica" | "startslave" => "Replica started",
        "stopreplica" | "stopslave" => "Replica stopped",
        "resetprimary" | "resetmaster" => "Primary reset",
        mode if mode.starts_with("reset") => "Replica reset",
        _ => "Replica changed",
    };
    Ok(Outcome::changed()
        .differences(differences)
        .with("msg", message)
        .with("queries", Value::list(vec![shown.into()])))
}

fn gone(what: &str) -> Inverse {
    Inverse::None(format!("{what} is gone"))
}

fn first(tables: Vec<Vec<Map>>) -> Option<Map> {
    tables.into_iter().next()?.into_iter().next()
}

/// Which of several connections is meant.
struct Place {
    /// ` 'name'` behind the verb, for MariaDB.
    behind_name: String,
    /// ` FOR CHANNEL 'name'` at the end, for MySQL.
    channel: String,
}

impl Place {
    fn parse(args: &Args, words: Words) -> Result<Place, Failure> {
        let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
        let is_maria = words == Words::MariaDb;
        if text("channel").is_some() && is_maria {
            return Err(Failure::new("`channel` is MySQL's: MariaDB has `connection_name`"));
        }
        if text("connection_name").is_some() && !is_maria {
            return Err(Failure::new("`connection_name` is MariaDB's: MySQL has `channel`"));
        }
        Ok(Place {
            behind_name: text("connection_name").map(|name| format!(" {}", literal(name))).unwrap_or_default(),
            channel: text("channel").map(|name| format!(" FOR CHANNEL {}", literal(name))).unwrap_or_default(),
        })
    }
}

/// The options of the statement, the same to be shown, and whether it has one whose present value cannot be seen.
fn options(args: &Args, words: Words) -> Result<(Vec<String>, Vec<String>, bool), Failure> {
    let start = words.primary();
    let (mut options, mut shown, mut open) = (Vec::new(), Vec::new(), false);
    let mut add = |name: String, value: String, secret: bool| {
        shown.push(format!("{name}={}", if secret { "'********'" } else { &value }));
        options.push(format!("{name}={value}"));
    };
    for (key, name) in [
        ("primary_host", "HOST"),
        ("primary_user", "USER"),
        ("primary_password", "PASSWORD"),
        ("primary_log_file", "LOG_FILE"),
        ("primary_ssl_ca", "SSL_CA"),
        ("primary_ssl_capath", "SSL_CAPATH"),
        ("primary_ssl_cert", "SSL_CERT"),
        ("primary_ssl_key", "SSL_KEY"),
        ("primary_ssl_cipher", "SSL_CIPHER"),
    ] {
        if let Some(value) = args.str(key) {
            open |= matches!(key, "primary_password" | "primary_log_file") || key.contains("ssl");
            add(format!("{start}_{name}"), literal(value), key == "primary_password");
        }
    }
    for (key, name) in [
        ("primary_port", "PORT"),
        ("primary_connect_retry", "CONNECT_RETRY"),
        ("primary_log_pos", "LOG_POS"),
        ("primary_delay", "DELAY"),
    ] {
        if let Some(value) = args.int(key) {
            open |= key == "primary_log_pos";
            add(format!("{start}_{name}"), value.to_string(), false);
        }
    }
    if let Some(file) = args.str("relay_log_file") {
        open = true;
        add("RELAY_LOG_FILE".to_owned(), literal(file), false);
    }
    if let Some(position) = args.int("relay_log_pos") {
        open = true;
        add("RELAY_LOG_POS".to_owned(), position.to_string(), false);
    }
    if let Some(ssl) = args.optional_bool("primary_ssl") {
        open = true;
        add(format!("{start}_SSL"), u8::from(ssl).to_string(), false);
    }
    if args.bool("primary_ssl_verify_server_cert") {
        open = true;
        add(format!("{start}_SSL_VERIFY_SERVER_CERT"), "1".to_owned(), false);
    }
    if args.bool("primary_auto_position") {
        open = true;
        add(format!("{start}_AUTO_POSITION"), "1".to_owned(), false);
    }
    if let Some(gtid) = args.str("primary_use_gtid") {
        if words != Words::MariaDb {
            return Err(Failure::new("`primary_use_gtid` is MariaDB's: MySQL has `primary_auto_position`"));
        }
        open = true;
        let word = match gtid {
            "disabled" => "no",
            "replica_pos" => "slave_pos",
            other => other,
        };
        add("MASTER_USE_GTID".to_owned(), word.to_owned(), false);
    }
    Ok((options, shown, open))
}

/// Whether the status says all that the task asks for.
fn is_so(row: &Map, args: &Args) -> bool {
    let text = |new: &str, old: &str| row.get(new).or_else(|| row.get(old)).map(|value| value.to_text().into_owned());
    [
        ("primary_host", "Source_Host", "Master_Host"),
        ("primary_user", "Source_User", "Master_User"),
        ("primary_port", "Source_Port", "Master_Port"),
        ("primary_connect_retry", "Connect_Retry", "Connect_Retry"),
        ("primary_delay", "SQL_Delay", "SQL_Delay"),
    ]
    .iter()
    .all(|(key, new, old)| args.get(key).is_none_or(|value| text(new, old).as_deref() == Some(&*value.to_text())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::mysql_client::tests::fake;
    use crate::modules::testing::{Play, Played, play};

    fn server(version: &str, status: &[(&str, &str)]) -> FakePrograms {
        let fake = fake();
        fake.write("answer.0", &format!("SELECT VERSION()\n{version}\n"));
        let fields: String =
            status.iter().map(|(name, value)| format!("<field name=\"{name}\">{value}</field>")).collect();
        let row = if status.is_empty() { String::new() } else { format!("<row>{fields}</row>") };
        fake.write("answer.1", &format!(" STATUS\n<resultset statement=\"x\">{row}</resultset>\n"));
        fake
    }

    fn run(fake: &FakePrograms, mode: &str, more: &[(&'static str, Value)], check: bool) -> Played {
        play(&MODULE, &[&[("mode", mode.into())], more].concat(), &Play { shell: fake.shell(), check })
    }

    #[test]
    fn the_state_is_told() {
        let fake = server("10.11.6-MariaDB", &[("Master_Host", "db1"), ("Slave_IO_Running", "Yes")]);
        let outcome = run(&fake, "getslave", &[], true).result.unwrap();
        assert_eq!(
            (outcome.result["Is_Slave"].clone(), outcome.result["Master_Host"].clone()),
            (true.into(), "db1".into())
        );
        let none = server("8.0.35", &[]);
        assert_eq!(run(&none, "getreplica", &[], true).result.unwrap().result["Is_Replica"], false.into());
        assert!(none.read("log").contains("SHOW REPLICA STATUS"));
        assert_eq!(run(&none, "getprimary", &[], true).result.unwrap().result["Is_Primary"], false.into());
    }

    #[test]
    fn replicas_are_told_started_and_stopped() {
        let given = [
            ("master_host", "db1".into()),
            ("master_user", "r".into()),
            ("master_password", "top".into()),
            ("master_port", 3307.into()),
        ];
        for (version, statement) in [
            (
                "8.0.35",
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='db1', SOURCE_USER='r', SOURCE_PASSWORD='top', SOURCE_PORT=3307",
            ),
            ("5.7.40", "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='r', MASTER_PASSWORD='top', MASTER_PORT=3307"),
        ] {
            let fake = server(version, &[]);
            assert!(
                run(&fake, "changeprimary", &given, true).result.unwrap().changed
                    && !fake.read("log").contains("CHANGE")
            );
            let outcome = run(&fake, "changemaster", &given, false).result.unwrap();
            assert!(outcome.changed && fake.read("log").contains(statement), "{}", fake.read("log"));
            assert!(!format!("{:?}{:?}", outcome.result, outcome.differences).contains("top"));
        }
        let fake = server(
            "8.0.35",
            &[
                ("Source_Host", "db1"),
                ("Source_Port", "3306"),
                ("Replica_IO_Running", "No"),
                ("Replica_SQL_Running", "No"),
            ],
        );
        let same = [("primary_host", "db1".into()), ("primary_port", 3306.into())];
        assert!(!run(&fake, "changeprimary", &same, false).result.unwrap().changed);
        let started = run(&fake, "startreplica", &[], false);
        assert!(started.result.unwrap().changed && fake.read("log").contains("START REPLICA"));
        let Inverse::Steps(steps) = &started.changes[0].inverse else { panic!() };
        assert!(steps[0].script.contains("STOP REPLICA"));
        assert!(!run(&fake, "stopreplica", &[], false).result.unwrap().changed);
        assert!(run(&fake, "resetreplicaall", &[("channel", "c".into())], false).result.unwrap().changed);
        assert!(fake.read("log").contains("RESET REPLICA ALL FOR CHANNEL 'c'"));
        fake.write("fail.0", "START\nERROR 1200 (HY000): not configured\n");
        assert!(!run(&fake, "startreplica", &[], false).result.unwrap().changed);
        assert!(run(&fake, "startreplica", &[("fail_on_error", true.into())], false).result.is_err());
    }

    #[test]
    fn words_of_the_other_server_are_refused() {
        let refused = |version: &str, more: &[(&'static str, Value)]| {
            run(&server(version, &[]), "changeprimary", more, true).result.unwrap_err().message
        };
        assert!(refused("8.0.35", &[("primary_use_gtid", "slave_pos".into())]).contains("primary_auto_position"));
        assert!(refused("10.5.1-MariaDB", &[("channel", "x".into())]).contains("connection_name"));
        assert!(refused("8.0.35", &[]).contains("at least one"));
        assert_eq!(Words::of("8.4.2").replica(), "REPLICA");
    }
}
