use super::*;
use crate::modules::fake_programs::FakePrograms;
use crate::modules::mysql_client::tests::fake;
use crate::modules::testing::{Play, Played, play};

/// A server of this version with these users, each a list of columns.
fn server(version: &str, users: &[&[(&str, &str)]], grants: &str) -> FakePrograms {
    let fake = fake();
    let fields = |fields: &[(&str, &str)]| {
        let fields: String =
            fields.iter().map(|(name, value)| format!("<field name=\"{name}\">{value}</field>")).collect();
        format!("<row>{fields}</row>")
    };
    let rows: String = users.iter().map(|user| fields(user)).collect();
    let version = fields(&[("version", version)]);
    fake.write(
        "answer.1",
        &format!("FROM mysql.user\n<resultset statement=\"a\">{version}</resultset>\n<resultset statement=\"b\">{rows}</resultset>\n"),
    );
    fake.write("answer.2", &format!("SHOW GRANTS\n{grants}"));
    fake
}

fn run(fake: &FakePrograms, more: &[(&'static str, Value)], check: bool) -> Played {
    let given = [&[("name", "app".into())], more].concat();
    play(&MODULE, &given, &Play { shell: fake.shell(), check })
}

fn changes(fake: &FakePrograms) -> Vec<String> {
    let words = ["CREATE", "ALTER", "DROP", "GRANT", "REVOKE", "SET"];
    fake.read("log").lines().filter(|line| words.iter().any(|word| line.starts_with(word))).map(str::to_owned).collect()
}

fn inverse(played: &Played) -> String {
    match &played.changes[0].inverse {
        Inverse::Steps(steps) => steps[0].script.clone(),
        Inverse::None(why) => why.clone(),
    }
}

const NATIVE: &str = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"; // of `password`

#[test]
fn a_user_is_made_with_privileges() {
    let fake = server("8.0.35", &[], "");
    let given = [("password", "o'k".into()), ("host", "10.0.0.%".into()), ("priv", "shop.*:ALL".into())];
    assert!(run(&fake, &given, true).result.unwrap().changed && changes(&fake).is_empty());
    let made = run(&fake, &given, false);
    let outcome = made.result.as_ref().unwrap();
    assert_eq!(
        (outcome.result["msg"].clone(), outcome.result["password_changed"].clone()),
        ("User added".into(), true.into())
    );
    assert_eq!(
        changes(&fake),
        ["CREATE USER 'app'@'10.0.0.%' IDENTIFIED BY 'o''k';", "GRANT ALL ON `shop`.* TO 'app'@'10.0.0.%';"]
    );
    let undo = inverse(&made);
    assert!(undo.contains("DROP USER"), "{undo}");
    assert!(!format!("{:?}", outcome.result).contains("o'k"));
}

#[test]
fn a_user_that_is_right_stays_as_it_is() {
    let user: &[(&str, &str)] = &[
        ("Host", "localhost"),
        ("User", "app"),
        ("plugin", "mysql_native_password"),
        ("authentication_string", NATIVE),
    ];
    let fake = server(
        "5.7.40",
        &[user],
        "GRANT USAGE ON *.* TO 'app'@'localhost'\nGRANT SELECT ON `shop`.* TO 'app'@'localhost'\n",
    );
    assert_eq!(native_hash("password"), NATIVE);
    let right = [("password", "password".into()), ("priv", "shop.*:SELECT".into())];
    for check in [true, false] {
        let outcome = run(&fake, &right, check).result.unwrap();
        assert_eq!((outcome.changed, outcome.result["msg"].clone()), (false, "User unchanged".into()));
    }
    let hash = [("password", NATIVE.into()), ("encrypted", true.into())];
    assert!(!run(&fake, &hash, false).result.unwrap().changed);
    let other = [("password", "other".into()), ("update_password", "on_create".into())];
    assert!(!run(&fake, &other, false).result.unwrap().changed && changes(&fake).is_empty());
    let changed = run(
        &fake,
        &[("password", "other".into()), ("priv", "shop.*:SELECT,INSERT".into()), ("sql_log_bin", false.into())],
        false,
    );
    assert_eq!(changed.result.as_ref().unwrap().result["msg"], "Password updated, Privileges updated".into());
    assert_eq!(
        changes(&fake),
        [
            "SET SESSION sql_log_bin = OFF;",
            "ALTER USER 'app'@'localhost' IDENTIFIED BY 'other';",
            "GRANT INSERT ON `shop`.* TO 'app'@'localhost';"
        ]
    );
    assert!(
        inverse(&changed).contains(NATIVE) && inverse(&changed).contains("REVOKE INSERT ON"),
        "{}",
        inverse(&changed)
    );
}

#[test]
fn older_and_other_servers_have_words_of_their_own() {
    let hash = Login::Hash(NATIVE.to_owned());
    for (version, server, word) in [
        ("8.0.35", Server::MySql, "ALTER USER u IDENTIFIED WITH mysql_native_password AS"),
        ("10.11.6-MariaDB-1", Server::MariaDb, "ALTER USER u IDENTIFIED BY PASSWORD"),
        ("5.5.68-MariaDB", Server::Old, "SET PASSWORD FOR u ="),
        ("5.7.5", Server::Old, "SET PASSWORD FOR u ="),
    ] {
        assert_eq!(Server::of(version), server, "{version}");
        assert!(server.set_login("u", &hash).starts_with(word), "{version}");
    }
}

#[test]
fn limits_locks_and_tls() {
    let user: &[(&str, &str)] = &[
        ("Host", "localhost"),
        ("User", "app"),
        ("authentication_string", ""),
        ("ssl_type", "ANY"),
        ("max_questions", "0"),
        ("account_locked", "N"),
    ];
    let fake = server("8.0.35", &[user], "GRANT USAGE ON *.* TO 'app'@'localhost'\n");
    let ssl = crate::value::object([("SSL", Value::Null)]);
    assert!(!run(&fake, &[("tls_requires", ssl.into())], false).result.unwrap().changed);
    let subject = crate::value::object([("SUBJECT", "/CN=x".into())]);
    let limit = crate::value::object([("MAX_QUERIES_PER_HOUR", 5.into())]);
    let played = run(
        &fake,
        &[("tls_requires", subject.into()), ("resource_limits", limit.into()), ("locked", true.into())],
        false,
    );
    assert!(played.result.as_ref().unwrap().changed);
    assert_eq!(
        changes(&fake),
        [
            "ALTER USER 'app'@'localhost' REQUIRE SUBJECT '/CN=x';",
            "ALTER USER 'app'@'localhost' WITH MAX_QUERIES_PER_HOUR 5;",
            "ALTER USER 'app'@'localhost' ACCOUNT LOCK;"
        ]
    );
    for word in ["REQUIRE SSL", "MAX_QUERIES_PER_HOUR 0", "ACCOUNT UNLOCK"] {
        assert!(inverse(&played).contains(word), "{word}");
    }
}

#[test]
fn users_are_removed_and_made_again() {
    let at = |host: &'static str| [("Host", host), ("User", "app"), ("authentication_string", NATIVE)];
    let (first, second) = (at("localhost"), at("%"));
    let fake = server("8.0.35", &[&first, &second], "GRANT SELECT ON `shop`.* TO `app`@`%`\n");
    let absent = [("state", "absent".into())];
    assert!(!run(&fake, &[&absent[..], &[("host", "elsewhere".into())]].concat(), false).result.unwrap().changed);
    let all = run(&fake, &[&absent[..], &[("host_all", true.into())]].concat(), false);
    assert_eq!(all.result.as_ref().unwrap().result["msg"], "User deleted".into());
    assert_eq!(changes(&fake), ["DROP USER 'app'@'localhost';", "DROP USER 'app'@'%';"]);
    for word in ["CREATE USER", NATIVE, "GRANT SELECT ON `shop`.*"] {
        assert!(inverse(&all).contains(word), "{word}");
    }
    let refused = |more: &[(&'static str, Value)]| run(&fake, more, true).result.unwrap_err().message;
    assert!(refused(&[("password", "x".into()), ("encrypted", true.into())]).contains("40 hexadecimal"));
    assert!(refused(&[("priv", "x".into())]).contains("no `:`"));
    assert!(refused(&[("plugin", "a b".into())]).contains("cannot be"));
}
