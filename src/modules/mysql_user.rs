//! `community.mysql.mysql_user`: users of MySQL and what they may.

use crate::host::{Difference, Failure, Host, Inverse};
use crate::value::{Map, Value};

use super::mysql_client::{self as client, Client, literal};
use super::mysql_privileges::{self as privileges, Manner, Privileges};
use super::programs::make;
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_user",
    aliases: &["ansible.mysql.mysql_user"],
    summary: "Keeps users of MySQL or MariaDB with passwords and privileges by the host's client",
    args: &[
        Arg::new("name", Type::Str, "the user; empty: the one without a name").required().aliases(&["user"]),
        Arg::new("host", Type::Str, "where the user comes from").default("localhost"),
        Arg::new("host_all", Type::Bool, "all users of this name, wherever they come from").default("false"),
        Arg::new("state", Type::Str, "whether the user is there").default("present").choices(&["absent", "present"]),
        Arg::new("password", Type::Str, "the password").secret(),
        Arg::new("encrypted", Type::Bool, "`password` is what mysql_native_password makes of it").default("false"),
        Arg::new("update_password", Type::Str, "set the password always, or of new users alone")
            .default("always")
            .choices(&["always", "on_create", "on_new_username"]),
        Arg::new("plugin", Type::Str, "the plugin that checks logins"),
        Arg::new("plugin_hash_string", Type::Str, "what the plugin keeps (`IDENTIFIED WITH plugin AS`)").secret(),
        Arg::new("plugin_auth_string", Type::Str, "what the plugin is given (`IDENTIFIED WITH plugin BY`)").secret(),
        Arg::new("priv", Type::Raw, "DATABASE.TABLE:PRIVILEGE,…/…, or a map of the same"),
        Arg::new("append_privs", Type::Bool, "keep the privileges that are not named").default("false"),
        Arg::new("subtract_privs", Type::Bool, "take away the privileges that are named").default("false"),
        Arg::new("tls_requires", Type::Dict, "`SSL`, `X509` or `NONE`, or `SUBJECT`, `ISSUER`, `CIPHER` with a value"),
        Arg::new(
            "resource_limits",
            Type::Dict,
            "MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR, MAX_CONNECTIONS_PER_HOUR, MAX_USER_CONNECTIONS",
        ),
        Arg::new("locked", Type::Bool, "whether logins are refused (MySQL)"),
        Arg::new("session_vars", Type::Dict, "variables of the session that makes the change"),
        Arg::new("sql_log_bin", Type::Bool, "false: keep it out of the binary log").default("true"),
        Arg::new("check_implicit_admin", Type::Bool, "try first to log in as root without a password").default("false"),
        Arg::new("column_case_sensitive", Type::Bool, "has no effect: names of columns are kept as they are"),
        Arg::new("force_context", Type::Bool, "has no effect: privileges need no database").default("false"),
        Arg::shared(client::LOGIN),
    ],
    rules: &[Rule::MutuallyExclusive(&["append_privs", "subtract_privs"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("user", "the user"), ("msg", "what was done"), ("password_changed", "whether the password was set")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// The server's own words differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// MySQL 5.7.6 and newer.
    MySql,
    MariaDb,
    /// Older ones of both.
    Old,
}

impl Server {
    fn of(version: &str) -> Server {
        let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let number = (next(), next(), next());
        match version.to_lowercase().contains("mariadb") {
            true if number >= (10, 2, 0) => Server::MariaDb,
            false if number >= (5, 7, 6) => Server::MySql,
            _ => Server::Old,
        }
    }

    /// How a login is told in CREATE USER and ALTER USER.
    fn identified(self, login: &Login) -> String {
        match login {
            Login::Password(password) => format!(" IDENTIFIED BY {}", literal(password)),
            Login::Hash(hash) if self == Server::MySql => {
                format!(" IDENTIFIED WITH mysql_native_password AS {}", literal(hash))
            }
            Login::Hash(hash) => format!(" IDENTIFIED BY PASSWORD {}", literal(hash)),
            Login::Plugin { name, hash: Some(hash), .. } => format!(" IDENTIFIED WITH {name} AS {}", literal(hash)),
            Login::Plugin { name, word: Some(word), .. } if self == Server::MySql => {
                format!(" IDENTIFIED WITH {name} BY {}", literal(word))
            }
            Login::Plugin { name, word: Some(word), .. } => {
                format!(" IDENTIFIED WITH {name} USING PASSWORD({})", literal(word))
            }
            Login::Plugin { name, .. } => format!(" IDENTIFIED WITH {name}"),
        }
    }

    fn set_login(self, user: &str, login: &Login) -> String {
        match (self, login) {
            (Server::Old, Login::Password(password)) => {
                format!("SET PASSWORD FOR {user} = PASSWORD({})", literal(password))
            }
            (Server::Old, Login::Hash(hash)) => format!("SET PASSWORD FOR {user} = {}", literal(hash)),
            _ => format!("ALTER USER {user}{}", self.identified(login)),
        }
    }
}

/// How a user proves who it is.
#[derive(Clone, PartialEq, Eq)]
enum Login {
    Password(String),
    /// Of mysql_native_password.
    Hash(String),
    Plugin {
        name: String,
        hash: Option<String>,
        word: Option<String>,
    },
}

/// What mysql_native_password keeps of a password: SHA-1 twice.
fn native_hash(password: &str) -> String {
    use sha1::Digest;
    let twice = sha1::Sha1::digest(sha1::Sha1::digest(password.as_bytes()));
    format!("*{}", twice.iter().map(|byte| format!("{byte:02X}")).collect::<String>())
}

/// A user as the server knows it.
struct Account {
    host: String,
    row: Map,
}

impl Account {
    fn text(&self, column: &str) -> String {
        self.row.get(column).map(|value| value.to_text().into_owned()).unwrap_or_default()
    }

    fn hash(&self) -> String {
        let new = self.text("authentication_string");
        if new.is_empty() { self.text("Password") } else { new }
    }
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let mut client = Client::parse(&args, &settings)?;
    if args.bool("check_implicit_admin") {
        let implicit = client.as_user("root", "");
        if let Ok(Ok(_)) = implicit.try_ask(&host, "SELECT 1").await {
            client = implicit;
        }
    }
    let user = args.text("name");
    let wanted = match args.get("priv").filter(|value| !value.is_null()) {
        Some(value) => Some(privileges::wanted(value)?),
        None => None,
    };
    let login = login(&args)?;
    let sql = format!("SELECT VERSION() AS version; SELECT * FROM mysql.user WHERE User = {}", literal(user));
    let tables = client.ask_tables(&host, &sql, None).await?;
    let mut tables = tables.into_iter();
    let version = tables.next().and_then(|rows| rows.first()?.get("version").cloned()).unwrap_or_default();
    let server = Server::of(&version.to_text());
    let accounts: Vec<Account> = tables
        .next()
        .unwrap_or_default()
        .into_iter()
        .map(|row| Account { host: row.get("Host").map(|host| host.to_text().into_owned()).unwrap_or_default(), row })
        .collect();
    let mut prefix = String::new();
    if !args.bool("sql_log_bin") {
        prefix.push_str("SET SESSION sql_log_bin = OFF;\n");
    }
    for (name, value) in args.get("session_vars").and_then(Value::as_map).into_iter().flatten() {
        let value = if value.as_int().is_some() { value.to_text().into_owned() } else { literal(&value.to_text()) };
        prefix.push_str(&format!("SET SESSION {} = {value};\n", client::name(&name.to_text())));
    }
    let job = Job { host: &host, client: &client, args: &args, user, server, prefix };
    let hosts: Vec<String> = match args.bool("host_all") {
        true => accounts.iter().map(|account| account.host.clone()).collect(),
        false => vec![args.text("host").to_lowercase()],
    };
    let outcome = Outcome::ok().with("user", user);
    if args.text("state") == "absent" {
        let there: Vec<&Account> = accounts
            .iter()
            .filter(|account| hosts.contains(&account.host.to_lowercase()) || args.bool("host_all"))
            .collect();
        return job.remove(&there, outcome).await;
    }
    if hosts.is_empty() {
        return Err(Failure::new("host_all=true, but there is no user of this name"));
    }
    let login = match (args.text("update_password"), &login) {
        // a further place of a user that has a password gets the same
        ("on_new_username", Some(_)) => {
            match accounts.first().map(Account::hash).filter(|hash| hash.starts_with('*')) {
                Some(hash) => Some(Login::Hash(hash)),
                None => login,
            }
        }
        _ => login,
    };
    let mut done = outcome;
    let mut password_changed = false;
    let mut messages = Vec::new();
    for place in hosts {
        let account = accounts.iter().find(|account| account.host.eq_ignore_ascii_case(&place));
        let step = job.present(account, &place, login.as_ref(), wanted.as_ref()).await?;
        password_changed |= step.password_changed;
        if let Some(message) = step.message {
            messages.push(message);
            done.changed = true;
            done.differences.extend(step.differences);
        }
    }
    let message = if messages.is_empty() { "User unchanged".to_owned() } else { messages.join("; ") };
    Ok(done.with("msg", message).with("password_changed", password_changed))
}

fn login(args: &Args) -> Result<Option<Login>, Failure> {
    let text = |name: &str| args.str(name).map(str::to_owned);
    if let Some(plugin) = text("plugin").filter(|plugin| !plugin.is_empty()) {
        if !plugin.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Failure::new(format!("`{plugin}` cannot be the name of a plugin")));
        }
        let (hash, word) = (text("plugin_hash_string"), text("plugin_auth_string"));
        return Ok(Some(Login::Plugin { name: plugin, hash, word }));
    }
    let Some(password) = text("password") else { return Ok(None) };
    if args.bool("encrypted") {
        let is_hash = password.len() == 41
            && password.starts_with('*')
            && password[1..].bytes().all(|byte| byte.is_ascii_hexdigit());
        return match is_hash || password.is_empty() {
            true => Ok(Some(Login::Hash(password.to_uppercase()))),
            false => Err(Failure::new("with `encrypted` the password is `*` and 40 hexadecimal digits")),
        };
    }
    Ok(Some(Login::Password(password)))
}

struct Job<'a> {
    host: &'a Host,
    client: &'a Client,
    args: &'a Args,
    user: &'a str,
    server: Server,
    prefix: String,
}

#[derive(Default)]
struct Done {
    message: Option<String>,
    password_changed: bool,
    differences: Vec<Difference>,
}

impl Job<'_> {
    fn full(&self, place: &str) -> String {
        format!("{}@{}", literal(self.user), literal(place))
    }

    async fn grants(&self, place: &str) -> Result<Vec<String>, Failure> {
        let rows = self.client.ask(self.host, &format!("SHOW GRANTS FOR {}", self.full(place))).await?;
        Ok(rows.into_iter().flatten().collect())
    }

    async fn present(
        &self,
        account: Option<&Account>,
        place: &str,
        login: Option<&Login>,
        wanted: Option<&Privileges>,
    ) -> Result<Done, Failure> {
        let full = self.full(place);
        let now = match account {
            Some(_) => privileges::granted(self.grants(place).await?.iter().map(String::as_str))?,
            None => Privileges::new(),
        };
        let manner = match (self.args.bool("append_privs"), self.args.bool("subtract_privs")) {
            (true, _) => Manner::Add,
            (_, true) => Manner::Remove,
            _ => Manner::Exact,
        };
        let after = wanted.map_or_else(|| now.clone(), |wanted| privileges::result(&now, wanted, manner));
        let mut forth = Vec::new();
        let mut back: Result<Vec<String>, String> = Ok(Vec::new());
        let mut words = Vec::new();
        let mut password_changed = false;
        let requires = requires(self.args)?;
        let limits = limits(self.args)?;
        match account {
            None => {
                let identified = login.map(|login| self.server.identified(login)).unwrap_or_default();
                let mut create = format!("CREATE USER {full}{identified}");
                if self.server == Server::Old && (requires.is_some() || !limits.is_empty()) {
                    return Err(Failure::new("`tls_requires` and `resource_limits` need MySQL 5.7 or MariaDB 10.2"));
                }
                create.push_str(&requires.as_ref().map(|requires| format!(" {}", requires.0)).unwrap_or_default());
                create.push_str(&with_limits(&limits));
                forth.push(create);
                back = Ok(vec![format!("DROP USER {full}")]);
                password_changed = login.is_some();
                words.push("User added");
            }
            Some(account) => {
                if let Some(login) = login.filter(|_| self.args.text("update_password") == "always")
                    && !self.has_login(account, login).await?
                {
                    forth.push(self.server.set_login(&full, login));
                    let old = account.hash();
                    match (old.len() == 41 && old.starts_with('*')) && !matches!(login, Login::Plugin { .. }) {
                        true => {
                            if let Ok(back) = &mut back {
                                back.push(self.server.set_login(&full, &Login::Hash(old)));
                            }
                        }
                        false => back = Err("the old password is not known".to_owned()),
                    }
                    password_changed = true;
                    words.push("Password updated");
                }
                if let Some((clause, columns)) = requires.as_ref().filter(|(_, columns)| !has(account, columns)) {
                    forth.push(format!("ALTER USER {full} {clause}"));
                    let _ = columns;
                    back = back.map(|mut back| {
                        back.push(format!("ALTER USER {full} {}", old_requires(account)));
                        back
                    });
                    words.push("TLS requirements updated");
                }
                let differ: Vec<&(String, String, i64)> =
                    limits.iter().filter(|(_, column, limit)| account.text(column) != limit.to_string()).collect();
                if !differ.is_empty() {
                    let clause = |own: &dyn Fn(&(String, String, i64)) -> String| {
                        differ.iter().map(|limit| format!(" {} {}", limit.0, own(limit))).collect::<String>()
                    };
                    forth.push(format!("ALTER USER {full} WITH{}", clause(&|limit| limit.2.to_string())));
                    let old = clause(&|limit| account.text(&limit.1));
                    back = back.map(|mut back| {
                        back.push(format!("ALTER USER {full} WITH{old}"));
                        back
                    });
                    words.push("Resource limits updated");
                }
            }
        }
        if let Some(locked) = self.args.optional_bool("locked") {
            if self.server != Server::MySql {
                return Err(Failure::new("the argument `locked` is not supported for this server: it needs MySQL 5.7"));
            }
            let is_locked = account.is_some_and(|account| account.text("account_locked") == "Y");
            if is_locked != locked {
                let word = |locked: bool| if locked { "LOCK" } else { "UNLOCK" };
                forth.push(format!("ALTER USER {full} ACCOUNT {}", word(locked)));
                if account.is_some() {
                    back = back.map(|mut back| {
                        back.push(format!("ALTER USER {full} ACCOUNT {}", word(!locked)));
                        back
                    });
                    words.push("Account lock updated");
                }
            }
        }
        let grants = privileges::statements(&now, &after, &full);
        if !grants.is_empty() {
            if account.is_some() {
                words.push("Privileges updated");
                let undo = privileges::statements(&after, &now, &full);
                back = back.map(|mut back| {
                    back.extend(undo);
                    back
                });
            }
            forth.extend(grants);
        }
        if forth.is_empty() {
            return Ok(Done::default());
        }
        let inverse = match back {
            Ok(statements) => Inverse::Steps(vec![self.client.step(&(self.prefix.clone() + &script(&statements)))]),
            Err(why) => Inverse::None(why),
        };
        let difference = Difference::new(
            format!("user {full} of MySQL"),
            shown(account.is_some(), &full, &now),
            shown(true, &full, &after),
        );
        let change = self
            .client
            .change(format!("user {full} of MySQL"), &(self.prefix.clone() + &script(&forth)))
            .inverse(inverse)
            .difference(difference.clone());
        make(self.host, change).await?;
        Ok(Done { message: Some(words.join(", ")), password_changed, differences: vec![difference] })
    }

    /// Whether the login is as it is to be. What a plugin keeps in a way of its own is tried by logging in.
    async fn has_login(&self, account: &Account, login: &Login) -> Result<bool, Failure> {
        let hash = account.hash();
        match login {
            Login::Hash(wanted) => Ok(hash.eq_ignore_ascii_case(wanted)),
            Login::Plugin { name, hash: wanted, .. } => {
                Ok(account.text("plugin") == *name && wanted.as_ref().is_none_or(|wanted| hash == *wanted))
            }
            Login::Password(password) if password.is_empty() => Ok(hash.is_empty()),
            Login::Password(password) if hash.starts_with('*') && hash.len() == 41 => {
                Ok(hash.eq_ignore_ascii_case(&native_hash(password)))
            }
            Login::Password(_) if hash.is_empty() => Ok(false),
            Login::Password(password) => {
                let tried = self.client.as_user(self.user, password).try_ask(self.host, "SELECT 1").await;
                match tried {
                    Ok(answer) => Ok(answer.is_ok()),
                    Err(failure) if failure.kind == crate::host::FailureKind::Failed => Ok(false),
                    Err(failure) => Err(failure),
                }
            }
        }
    }

    async fn remove(&self, there: &[&Account], outcome: Outcome) -> Result<Outcome, Failure> {
        if there.is_empty() {
            return Ok(outcome.with("msg", "User doesn't exist"));
        }
        let mut forth = Vec::new();
        let mut back = Some(Vec::new());
        let mut shown_before = String::new();
        for account in there {
            let full = self.full(&account.host);
            let grants = self.grants(&account.host).await?;
            shown_before.push_str(&shown(true, &full, &privileges::granted(grants.iter().map(String::as_str))?));
            let hash = account.hash();
            let is_native = (hash.len() == 41 && hash.starts_with('*')) || hash.is_empty();
            match &mut back {
                Some(back) if is_native => {
                    let login =
                        if hash.is_empty() { String::new() } else { self.server.identified(&Login::Hash(hash)) };
                    back.push(format!("CREATE USER {full}{login}"));
                    back.extend(grants.into_iter().map(|grant| match grant.split_once(" IDENTIFIED BY PASSWORD") {
                        Some((grant, rest)) if rest.contains("WITH GRANT OPTION") => {
                            format!("{grant} WITH GRANT OPTION")
                        }
                        Some((grant, _)) => grant.to_owned(),
                        None => grant,
                    }));
                }
                _ => back = None,
            }
            forth.push(format!("DROP USER {full}"));
        }
        let inverse = match back {
            Some(back) => Inverse::Steps(vec![self.client.step(&(self.prefix.clone() + &script(&back)))]),
            None => Inverse::None("the password of the user is not known".to_owned()),
        };
        let difference = Difference::new(format!("user {} of MySQL", self.user), shown_before, "");
        let change = self
            .client
            .change(format!("user {} of MySQL", self.user), &(self.prefix.clone() + &script(&forth)))
            .inverse(inverse)
            .difference(difference.clone());
        make(self.host, change).await?;
        Ok(Outcome { changed: true, ..outcome }.differences([difference]).with("msg", "User deleted"))
    }
}

fn script(statements: &[String]) -> String {
    statements.iter().map(|statement| format!("{statement};\n")).collect()
}

fn shown(is_there: bool, full: &str, privileges: &Privileges) -> String {
    if !is_there {
        return String::new();
    }
    let mut text = format!("{full}\n");
    for (on, words) in privileges {
        let words: Vec<String> = privileges::useful(words).into_iter().collect();
        if !words.is_empty() {
            text.push_str(&format!("  {} on {on}\n", words.join(", ")));
        }
    }
    text
}

/// A REQUIRE clause, and what the columns of mysql.user say then.
type Requires = (String, Vec<(&'static str, String)>);

fn requires(args: &Args) -> Result<Option<Requires>, Failure> {
    let Some(map) = args.get("tls_requires").and_then(Value::as_map) else { return Ok(None) };
    let find = |word: &str| {
        map.iter()
            .find(|(key, _)| key.to_text().eq_ignore_ascii_case(word))
            .map(|(_, value)| value.to_text().into_owned())
    };
    if let Some(key) = map.keys().find(|key| {
        !["SSL", "X509", "NONE", "SUBJECT", "ISSUER", "CIPHER"]
            .iter()
            .any(|known| key.to_text().eq_ignore_ascii_case(known))
    }) {
        return Err(Failure::new(format!("`tls_requires` has no key `{}`", key.to_text())));
    }
    let plain = |word: &str, kind: &str| Some((format!("REQUIRE {word}"), vec![("ssl_type", kind.to_owned())]));
    if map.is_empty() || find("NONE").is_some() {
        return Ok(plain("NONE", ""));
    }
    if find("SSL").is_some() {
        return Ok(plain("SSL", "ANY"));
    }
    if find("X509").is_some() {
        return Ok(plain("X509", "X509"));
    }
    let mut clauses = Vec::new();
    let mut columns = vec![("ssl_type", "SPECIFIED".to_owned())];
    for (word, column) in [("SUBJECT", "x509_subject"), ("ISSUER", "x509_issuer"), ("CIPHER", "ssl_cipher")] {
        if let Some(value) = find(word) {
            clauses.push(format!("{word} {}", literal(&value)));
            columns.push((column, value));
        }
    }
    Ok(Some((format!("REQUIRE {}", clauses.join(" AND ")), columns)))
}

fn has(account: &Account, columns: &[(&'static str, String)]) -> bool {
    columns.iter().all(|(column, value)| account.text(column) == *value)
}

fn old_requires(account: &Account) -> String {
    let mut clauses = Vec::new();
    for (word, column) in [("SUBJECT", "x509_subject"), ("ISSUER", "x509_issuer"), ("CIPHER", "ssl_cipher")] {
        let value = account.text(column);
        if !value.is_empty() {
            clauses.push(format!("{word} {}", literal(&value)));
        }
    }
    match account.text("ssl_type").as_str() {
        "ANY" => "REQUIRE SSL".to_owned(),
        "X509" => "REQUIRE X509".to_owned(),
        "SPECIFIED" => format!("REQUIRE {}", clauses.join(" AND ")),
        _ => "REQUIRE NONE".to_owned(),
    }
}

/// The word, the column of mysql.user, the number.
fn limits(args: &Args) -> Result<Vec<(String, String, i64)>, Failure> {
    let mut limits = Vec::new();
    for (key, value) in args.get("resource_limits").and_then(Value::as_map).into_iter().flatten() {
        let word = key.to_text().to_uppercase();
        let column = match word.as_str() {
            "MAX_QUERIES_PER_HOUR" => "max_questions",
            "MAX_UPDATES_PER_HOUR" => "max_updates",
            "MAX_CONNECTIONS_PER_HOUR" => "max_connections",
            "MAX_USER_CONNECTIONS" => "max_user_connections",
            _ => return Err(Failure::new(format!("`resource_limits` has no key `{word}`"))),
        };
        let number = value.to_text().parse().map_err(|_| Failure::new(format!("{word} is a number")))?;
        limits.push((word, column.to_owned(), number));
    }
    Ok(limits)
}

fn with_limits(limits: &[(String, String, i64)]) -> String {
    match limits.is_empty() {
        true => String::new(),
        false => {
            format!(" WITH{}", limits.iter().map(|(word, _, number)| format!(" {word} {number}")).collect::<String>())
        }
    }
}

#[cfg(test)]
#[path = "mysql_user_tests.rs"]
mod tests;
