//! `community.mysql.mysql_db`: databases of MySQL, and dumps of them.

use crate::connect::shell::quote;
use crate::host::{Change, Difference, Failure, Footprint, Host, Inverse, Step};
use crate::value::Value;

use super::file_common::path::absolute;
use super::mysql_client::{self as client, Client, literal, name};
use super::programs::make;
use super::shell_words::expanded;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_db",
    aliases: &["ansible.mysql.mysql_db"],
    summary: "Makes, removes, dumps and loads databases of MySQL or MariaDB by the host's client",
    args: &[
        Arg::new("name", Type::List, "the databases; `all` for dump and import").required().aliases(&["db"]),
        Arg::new("state", Type::Str, "what is to be")
            .default("present")
            .choices(&["absent", "dump", "import", "present"]),
        Arg::new("encoding", Type::Str, "the character set of a new database").default(""),
        Arg::new("collation", Type::Str, "the collation of a new database").default(""),
        Arg::new("target", Type::Path, "the file of the dump; packed by its ending .gz, .bz2, .xz or .zst"),
        Arg::new("single_transaction", Type::Bool, "dump in one transaction").default("false"),
        Arg::new("quick", Type::Bool, "dump row by row").default("true"),
        Arg::new("ignore_tables", Type::List, "tables that are not dumped: DATABASE.TABLE").default(""),
        Arg::new("hex_blob", Type::Bool, "dump binary columns in hexadecimal").default("false"),
        Arg::new("force", Type::Bool, "go on after errors").default("false"),
        Arg::new("master_data", Type::Int, "add the place in the binary log: 1, or 2 as a comment")
            .default("0")
            .choices(&["0", "1", "2"]),
        Arg::new("skip_lock_tables", Type::Bool, "lock no tables for the dump").default("false"),
        Arg::new("dump_extra_args", Type::Str, "more words for mysqldump"),
        Arg::new("chdir", Type::Path, "the directory to be in meanwhile"),
        Arg::new("pipefail", Type::Bool, "has no effect: a failed dump is always noticed").default("false"),
        Arg::new("use_shell", Type::Bool, "has no effect: errors of the client are always noticed").default("false"),
        Arg::new("restrict_config_file", Type::Bool, "has no effect").default("false"),
        Arg::new("config_overrides_defaults", Type::Bool, "has no effect: what is given counts more").default("false"),
        Arg::new("check_implicit_admin", Type::Bool, "try first to log in as root without a password").default("false"),
        Arg::new("unsafe_login_password", Type::Bool, "has no effect: the password is in no command").default("false"),
        Arg::new("sql_log_bin", Type::Bool, "false: keep it out of the binary log").default("true"),
        Arg::shared(client::LOGIN),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("db", "the names, apart by blanks"),
        ("db_list", "the names"),
        ("executed_commands", "what was run"),
        ("msg", "what was done, for dump and import"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let mut client = Client::parse(&args, &settings)?;
    if args.bool("check_implicit_admin") {
        let implicit = client.as_user("root", "");
        if let Ok(Ok(_)) = implicit.try_ask(&host, "SELECT 1").await {
            client = implicit;
        }
    }
    let names: Vec<String> = args.list("name").into_iter().filter(|name| !name.is_empty()).collect();
    let state = args.text("state");
    let all = names.iter().any(|name| name == "all");
    if names.is_empty() {
        return Err(Failure::new("Please provide at least one database name"));
    }
    if all && (names.len() > 1 || matches!(state, "present" | "absent")) {
        return Err(Failure::new("name=all can not be used with other names, nor with state=present or absent"));
    }
    let outcome = Outcome::ok()
        .with("db", names.join(" "))
        .with("db_list", Value::list(names.iter().map(|name| Value::from(name.as_str())).collect()));
    let existing: Vec<String> = client.ask(&host, "SHOW DATABASES").await?.into_iter().flatten().collect();
    let is_there = |name: &String| existing.contains(name);
    let log = if args.bool("sql_log_bin") { "" } else { "SET SESSION sql_log_bin = OFF;\n" };
    match state {
        "present" => {
            let missing: Vec<&String> = names.iter().filter(|name| !is_there(name)).collect();
            let mut create = String::new();
            for database in &missing {
                create.push_str(&format!("CREATE DATABASE {}", name(database)));
                for (word, key) in [("CHARACTER SET", "encoding"), ("COLLATE", "collation")] {
                    if let Some(value) = args.str(key).filter(|value| !value.is_empty()) {
                        create.push_str(&format!(" {word} {}", literal(value)));
                    }
                }
                create.push_str(";\n");
            }
            let drop: String = missing.iter().map(|database| format!("DROP DATABASE {};\n", name(database))).collect();
            let back = Inverse::Steps(vec![client.step(&format!("{log}{drop}"))]);
            define(&host, &client, outcome, log, &create, back, (&[], &missing)).await
        }
        "absent" => {
            let there: Vec<&String> = names.iter().filter(|name| is_there(name)).collect();
            let drop: String = there.iter().map(|database| format!("DROP DATABASE {};\n", name(database))).collect();
            let back = Inverse::None("what was in a database that was dropped is gone".to_owned());
            define(&host, &client, outcome, log, &drop, back, (&there, &[])).await
        }
        _ => {
            let target = match args.str("target").filter(|target| !target.is_empty()) {
                Some(target) => absolute(&host, target).await?,
                None => return Err(Failure::new("target is required for state=dump and state=import")),
            };
            if state == "dump" {
                if let Some(missing) = names.iter().find(|name| !all && !is_there(name)) {
                    return Err(Failure::new(format!("Cannot dump database(s) '{missing}' - not found")));
                }
                dump(&host, &client, &args, &names, &target, outcome).await
            } else {
                let missing = names.iter().find(|name| !all && !is_there(name));
                if names.len() > 1 {
                    return Err(Failure::new("only one database, or `all`, can be imported at a time"));
                }
                import(&host, &client, &args, &names, &target, missing, log, outcome).await
            }
        }
    }
}

async fn define(
    host: &Host,
    client: &Client,
    outcome: Outcome,
    log: &str,
    sql: &str,
    back: Inverse,
    shown: (&[&String], &[&String]),
) -> Result<Outcome, Failure> {
    if sql.is_empty() {
        return Ok(outcome.with("executed_commands", Value::list(Vec::new())));
    }
    let lines = |names: &[&String]| names.iter().map(|name| format!("{name}\n")).collect::<String>();
    let difference = Difference::new("databases of MySQL", lines(shown.0), lines(shown.1));
    let change =
        client.change("databases of MySQL", &format!("{log}{sql}")).inverse(back).difference(difference.clone());
    make(host, change).await?;
    let commands = sql.lines().map(|line| Value::from(line.trim_end_matches(';'))).collect();
    Ok(Outcome { changed: true, ..outcome }.differences([difference]).with("executed_commands", Value::list(commands)))
}

/// The programs that pack and unpack a dump, by the ending of its name.
fn packers(target: &str) -> Option<(&'static str, &'static str)> {
    match target.rsplit('.').next().unwrap_or_default() {
        "gz" => Some(("gzip", "gzip -dc")),
        "bz2" => Some(("bzip2", "bzip2 -dc")),
        "xz" => Some(("xz", "xz -dc")),
        "zst" => Some(("zstd", "zstd -dc")),
        _ => None,
    }
}

fn directory(args: &Args) -> String {
    args.str("chdir").map(|path| format!("cd {} || exit\n", expanded(path))).unwrap_or_default()
}

async fn dump(
    host: &Host,
    client: &Client,
    args: &Args,
    names: &[String],
    target: &str,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let mut words = String::new();
    for (word, key) in [
        ("--force", "force"),
        ("--quick", "quick"),
        ("--single-transaction=true", "single_transaction"),
        ("--hex-blob", "hex_blob"),
        ("--skip-lock-tables", "skip_lock_tables"),
    ] {
        if args.bool(key) {
            words.push_str(&format!(" {word}"));
        }
    }
    for table in args.list("ignore_tables").iter().filter(|table| !table.is_empty()) {
        words.push_str(&format!(" {}", quote(&format!("--ignore-table={table}"))));
    }
    if let Some(level) = args.int("master_data").filter(|level| *level > 0) {
        words.push_str(&format!(" --master-data={level}"));
    }
    if let Some(more) = args.str("dump_extra_args") {
        words.push_str(&format!(" {more}"));
    }
    match names {
        [one] if one == "all" => words.push_str(" --all-databases"),
        [one] => words.push_str(&format!(" {}", quote(one))),
        several => {
            words.push_str(" --databases");
            several.iter().for_each(|name| words.push_str(&format!(" {}", quote(name))));
        }
    }
    let pack = packers(target).map_or("cat", |(pack, _)| pack);
    let file = quote(target);
    let part = quote(&format!("{target}.part"));
    let script = format!(
        "{}{}m=$(command -v mysqldump || command -v mariadb-dump) || {{ echo 'the host has no mysqldump' >&2; exit 127; }}\n\
         umask 077; e=$(mktemp) || exit; trap 'rm -f \"$e\" {part}' EXIT\n\
         {{ o | \"$m\" --defaults-extra-file=/dev/fd/3{words} 3<&0 || echo $? >\"$e\"; }} | {pack} >{part} || exit\n\
         [ ! -s \"$e\" ] || exit 1\nmv {part} {file}",
        client.preparation(),
        directory(args)
    );
    let change = Change::uncertain(format!("dump of {} to {target}", names.join(", ")), Footprint::path(target))
        .step(Step::new(script))
        .inverse(Inverse::None(format!("what was in {target} before is gone")))
        .difference(Difference::new(target, "", format!("dump of {}\n", names.join(", "))));
    let differences = change.differences.clone();
    make(host, change).await?;
    let commands = vec![Value::from(format!("mysqldump{words}"))];
    Ok(Outcome { changed: true, ..outcome }.differences(differences).with("executed_commands", Value::list(commands)))
}

#[allow(clippy::too_many_arguments)]
async fn import(
    host: &Host,
    client: &Client,
    args: &Args,
    names: &[String],
    target: &str,
    missing: Option<&String>,
    log: &str,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let unpack = packers(target).map_or("cat", |(_, unpack)| unpack);
    let database =
        names.first().filter(|name| *name != "all").map(|name| format!(" {}", quote(name))).unwrap_or_default();
    let force = if args.bool("force") { " -f" } else { "" };
    let create = match missing {
        Some(missing) => {
            format!("( {} ) || exit\n", client.script(&format!("CREATE DATABASE {}", name(missing)), false, None))
        }
        None => String::new(),
    };
    let file = quote(target);
    let script = format!(
        "{}[ -f {file} ] || {{ echo {} >&2; exit 1; }}\n{create}\
         m=$(command -v mysql || command -v mariadb) || exit 127\n\
         {{ printf '%s' {}; {unpack} {file}; }} | {{ o | \"$m\" --defaults-extra-file=/dev/fd/3{force}{database} 3<&0 <&4; }} 4<&0",
        client.preparation() + &directory(args),
        quote(&format!("target {target} does not exist on the host")),
        quote(log)
    );
    let change = Change::uncertain(format!("import of {target}"), client::footprint())
        .step(Step::new(script))
        .inverse(Inverse::None("what was in the databases before is not kept".to_owned()))
        .difference(Difference::new(format!("databases {}", names.join(", ")), "", format!("what is in {target}\n")));
    let differences = change.differences.clone();
    make(host, change).await?;
    let commands = vec![Value::from(format!("mysql{database} <{target}"))];
    Ok(Outcome { changed: true, ..outcome }.differences(differences).with("executed_commands", Value::list(commands)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::mysql_client::tests::fake;
    use crate::modules::testing::{Play, play};

    #[test]
    fn databases_come_and_go() {
        let fake = fake();
        fake.write("answer.1", "SHOW DATABASES\nmysql\nold\n");
        let run = |given: &[(&'static str, Value)], check| play(&MODULE, given, &Play { shell: fake.shell(), check });
        assert!(!run(&[("name", "old".into())], false).result.unwrap().changed);
        let given = [("name", "old,n`ew".into()), ("encoding", "utf8mb4".into()), ("sql_log_bin", false.into())];
        assert!(run(&given, true).result.unwrap().changed && !fake.read("log").contains("CREATE"));
        let made = run(&given, false);
        let outcome = made.result.unwrap();
        assert_eq!(
            outcome.result["executed_commands"],
            Value::list(vec!["CREATE DATABASE `n``ew` CHARACTER SET 'utf8mb4'".into()])
        );
        assert!(fake.read("log").contains("SET SESSION sql_log_bin = OFF;\nCREATE DATABASE"));
        let Inverse::Steps(steps) = &made.changes[0].inverse else { panic!() };
        assert!(steps[0].script.contains("DROP DATABASE `n``ew`"));
        let absent = |name: &str| [("name", name.into()), ("state", "absent".into())];
        assert!(!run(&absent("gone"), false).result.unwrap().changed);
        assert!(run(&absent("old"), false).result.unwrap().changed && fake.read("log").contains("DROP DATABASE `old`"));
        assert!(run(&absent("all"), false).result.unwrap_err().message.contains("name=all"));
    }

    #[test]
    fn dumps_are_packed_and_loaded() {
        let fake = fake();
        fake.write("answer.1", "SHOW DATABASES\nold\n");
        let target = fake.file("d.sql.gz").to_str().unwrap().to_owned();
        let run = |state: &str, name: &str, more: &[(&'static str, Value)]| {
            let own = [("name", name.into()), ("state", state.into()), ("target", target.as_str().into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { shell: fake.shell(), check: false }).result
        };
        assert!(run("import", "new", &[]).unwrap_err().message.contains("does not exist"));
        assert!(run("dump", "gone", &[]).unwrap_err().message.contains("Cannot dump"));
        let more = [("single_transaction", true.into()), ("login_password", "top".into())];
        assert!(run("dump", "old", &more).unwrap().changed);
        let plain = std::process::Command::new("gzip").args(["-dc", &target]).output().unwrap().stdout;
        let plain = String::from_utf8(plain).unwrap();
        assert!(
            plain.starts_with("-- dump --defaults-extra-file=/dev/fd/3 --quick --single-transaction=true old"),
            "{plain}"
        );
        assert!(fake.read("options").contains("password=\"top\""));
        assert!(run("import", "new", &[]).unwrap().changed);
        let log = fake.read("log");
        assert!(log.contains("CREATE DATABASE `new`") && log.contains("-- dump"), "{log}");
        fake.put("mysqldump", "echo part; echo 'no space' >&2; exit 2");
        assert!(run("dump", "old", &[]).unwrap_err().message.contains("no space"));
        assert!(!fake.file("d.sql.gz.part").exists());
    }
}
