//! MySQL and MariaDB through the host's own client: how it is called, and what it answers.
//!
//! Passwords and statements reach it on its standard input and through an option file that is a pipe
//! (`--defaults-extra-file`, MySQL manual 4.2.2.3), so no list of processes shows them.

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Change, Failure, Footprint, Host, Step};
use crate::value::{Map, Value};

use super::execution::environment;
use super::programs::SYSTEM_PATH;
use super::shell_words::expanded;
use super::{Arg, Args, Settings, Type};

/// The arguments by which all modules of MySQL reach the server.
pub const LOGIN: &[Arg] = &[
    Arg::new("login_user", Type::Str, "the user to log in as"),
    Arg::new("login_password", Type::Str, "the password to log in with").secret(),
    Arg::new("login_host", Type::Str, "where the server is").default("localhost"),
    Arg::new("login_port", Type::Int, "its port").default("3306"),
    Arg::new("login_unix_socket", Type::Str, "its socket on the host"),
    Arg::new("config_file", Type::Path, "an option file on the host with the section [client]").default("~/.my.cnf"),
    Arg::new("connect_timeout", Type::Int, "seconds to wait for the server").default("30"),
    Arg::new("client_cert", Type::Path, "certificate to log in with").aliases(&["ssl_cert"]),
    Arg::new("client_key", Type::Path, "its key").aliases(&["ssl_key"]),
    Arg::new("ca_cert", Type::Path, "certificates that are trusted").aliases(&["ssl_ca"]),
    Arg::new("check_hostname", Type::Bool, "the server's certificate must bear its name"),
];

/// What all statements of a task depend on.
pub fn footprint() -> Footprint {
    Footprint::named("mysql")
}

/// How to reach the server.
#[derive(Debug, Clone)]
pub struct Client {
    /// The lines of the option file.
    options: String,
    config_file: String,
    environment: String,
}

impl Client {
    pub fn parse(args: &Args, settings: &Settings) -> Result<Client, Failure> {
        let mut options = String::from("[client]\n");
        let mut set = |name: &str, value: Option<String>| -> Result<(), Failure> {
            let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(()) };
            if value.contains(['\n', '\0']) {
                return Err(Failure::new(format!("`{name}` has more than one line")));
            }
            options.push_str(&format!("{name}=\"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\"")));
            Ok(())
        };
        let text = |name: &str| args.str(name).map(str::to_owned);
        let socket = text("login_unix_socket").filter(|socket| !socket.is_empty());
        set("user", text("login_user"))?;
        set("password", text("login_password"))?;
        match socket {
            Some(socket) => set("socket", Some(socket))?,
            None => {
                let host = text("login_host").filter(|host| host != "localhost");
                if host.is_some() {
                    set("port", args.int("login_port").map(|port| port.to_string()))?;
                }
                set("host", host)?;
            }
        }
        set("ssl-cert", text("client_cert"))?;
        set("ssl-key", text("client_key"))?;
        set("ssl-ca", text("ca_cert"))?;
        if let Some(check) = args.optional_bool("check_hostname") {
            // MariaDB's word, and MySQL's
            set("loose-ssl-verify-server-cert", Some(if check { "1" } else { "0" }.to_owned()))?;
            if check {
                set("loose-ssl-mode", Some("VERIFY_IDENTITY".to_owned()))?;
            }
        }
        options.push_str(&format!(
            "[mysql]\nconnect_timeout={}\n",
            args.int("connect_timeout").filter(|seconds| *seconds > 0).unwrap_or(30)
        ));
        let config_file = text("config_file").unwrap_or_default();
        Ok(Client { options, config_file, environment: environment(settings)? })
    }

    /// The same server by another login.
    #[must_use]
    pub fn as_user(&self, user: &str, password: &str) -> Client {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let login = format!("[client]\nuser=\"{}\"\npassword=\"{}\"\n", escaped(user), escaped(password));
        Client { options: format!("{}{login}", self.options), ..self.clone() }
    }

    /// The lines before a program of MySQL: `$o` prints the option file.
    pub fn preparation(&self) -> String {
        format!(
            "{SYSTEM_PATH}{}export LC_ALL=C\nf={}\no() {{ [ -z \"$f\" ] || [ ! -r \"$f\" ] || printf '!include %s\\n' \"$f\"; printf '%s' {}; }}\n",
            self.environment,
            expanded(&self.config_file),
            quote(&self.options)
        )
    }

    /// The script that runs statements; XML output if `xml`.
    pub fn script(&self, sql: &str, xml: bool, database: Option<&str>) -> String {
        let form = if xml { "--xml" } else { "--batch --skip-column-names" };
        let database = database.map(|name| format!(" {}", quote(name))).unwrap_or_default();
        format!(
            "{}m=$(command -v mysql || command -v mariadb) || exit 127\n\
             printf '%s' {} | {{ o | \"$m\" --defaults-extra-file=/dev/fd/3 --default-character-set=utf8mb4 {form}{database} 3<&0 <&4; }} 4<&0",
            self.preparation(),
            quote(sql)
        )
    }

    /// Asks the server; the rows of the answer.
    pub async fn ask(&self, host: &Host, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
        self.try_ask(host, sql).await?.map_err(Failure::new)
    }

    /// The same; what the server refuses is not a failure yet.
    pub async fn try_ask(&self, host: &Host, sql: &str) -> Result<Result<Vec<Vec<String>>, String>, Failure> {
        let response = host.read(Script { text: self.script(sql, false, None), footprint: footprint() }).await?;
        Ok(match judge(&response)? {
            Ok(()) => Ok(rows(&response.text())),
            Err(why) => Err(why),
        })
    }

    /// Asks the server for tables with the names of their columns.
    pub async fn ask_tables(&self, host: &Host, sql: &str, database: Option<&str>) -> Result<Vec<Vec<Map>>, Failure> {
        let response = host.read(Script { text: self.script(sql, true, database), footprint: footprint() }).await?;
        judge(&response)?.map_err(Failure::new)?;
        tables(&response.text()).ok_or_else(|| Failure::new("what the mysql client printed cannot be understood"))
    }

    /// A step that runs statements.
    pub fn step(&self, sql: &str) -> Step {
        Step::new(self.script(sql, false, None))
    }

    /// A change of the server.
    pub fn change(&self, what: impl Into<String>, sql: &str) -> Change {
        Change::uncertain(what, footprint()).step(self.step(sql))
    }
}

/// Whether the client did it, or what the server said.
pub fn judge(response: &Response) -> Result<Result<(), String>, Failure> {
    match response.code {
        Some(0) => Ok(Ok(())),
        Some(127) if response.stdout.is_empty() => {
            Err(Failure::new("the host has no `mysql` or `mariadb` client: install it"))
        }
        _ => {
            let stderr = response.error_text();
            let said: Vec<&str> = stderr.lines().filter(|line| !line.contains("[Warning]")).map(str::trim).collect();
            let said = said.join("; ");
            match said.contains("ERROR 1045")
                || said.contains("ERROR 2002")
                || said.contains("ERROR 2003")
                || said.contains("ERROR 1698")
            {
                true => Err(Failure::new(format!(
                    "unable to connect to database, check login_user and login_password are correct or the config file has the credentials: {said}"
                ))),
                false => Ok(Err(said)),
            }
        }
    }
}

/// The rows that `--batch` printed, its escapes resolved.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split('\t').map(unescape).collect()).collect()
}

fn unescape(field: &str) -> String {
    let mut out = String::new();
    let mut letters = field.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

/// A text as SQL has it.
pub fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\u{1a}' => out.push_str("\\Z"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

/// A name of a database or the like as SQL has it.
pub fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// The tables in what `--xml` printed: the rows of each by the names of the columns.
pub fn tables(text: &str) -> Option<Vec<Vec<Map>>> {
    let mut tables = Vec::new();
    for part in text.split("<resultset ").skip(1) {
        let body = part.split("</resultset>").next()?;
        let mut rows = Vec::new();
        for row in body.split("<row>").skip(1) {
            let row = row.split("</row>").next()?;
            let mut map = Map::new();
            for field in row.split("<field name=\"").skip(1) {
                let (name, rest) = field.split_once('"')?;
                let value = match rest.strip_prefix('>') {
                    Some(rest) => typed(&entities(rest.split("</field>").next()?)),
                    // `xsi:nil="true" />`
                    None => Value::Null,
                };
                map.insert(entities(name).into(), value);
            }
            rows.push(map);
        }
        tables.push(rows);
    }
    Some(tables)
}

/// Whole numbers become numbers: the client does not tell types.
fn typed(text: &str) -> Value {
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => number.into(),
        _ => text.into(),
    }
}

fn entities(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;

    /// A client that keeps what it is told in `log`, and answers a statement with the file `answer.N` whose first line
    /// is in it; further lines are printed. A file `fail.N` makes it fail.
    const MYSQL: &str = r#"
sql=$(cat); cat <&3 >"$D/options"
printf '%s\n' "$sql" >>"$D/log"
for f in "$D"/fail.* "$D"/answer.*; do
  [ -e "$f" ] || continue
  case $sql in *"$(head -n 1 "$f")"*)
    case $f in */fail.*) tail -n +2 "$f" >&2; exit 1 ;; esac
    tail -n +2 "$f"; break ;;
  esac
done
exit 0"#;

    pub(in crate::modules) fn fake() -> FakePrograms {
        FakePrograms::new(&[("mysql", MYSQL), ("mysqldump", "cat <&3 >\"$D/options\"; echo \"-- dump $*\"")])
    }

    #[test]
    fn what_the_client_prints_is_understood() {
        assert_eq!(rows("a\tb\\nc\nd\\\\\tNULL\n"), [["a", "b\nc"], ["d\\", "NULL"]]);
        let xml = "<?xml version=\"1.0\"?>\n\n<resultset statement=\"SELECT 1\" xmlns:xsi=\"x\">\n  <row>\n\t<field name=\"a\">1</field>\n\t<field name=\"b\" xsi:nil=\"true\" />\n\t<field name=\"c&lt;\">007 &amp; x</field>\n  </row>\n</resultset>\n\n<resultset statement=\"x\"></resultset>\n";
        let found = tables(xml).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0][0]["a"], 1.into());
        assert_eq!((found[0][0]["b"].clone(), found[0][0]["c<"].clone()), (Value::Null, "007 & x".into()));
        assert_eq!((literal("a'b\\"), name("a`b")), ("'a''b\\\\'".to_owned(), "`a``b`".to_owned()));
    }

    #[test]
    fn no_login_is_in_the_statement_or_the_command() {
        let map = [("login_user", "root"), ("login_password", "s\"e"), ("login_host", "db.example.org")];
        let map = map.iter().map(|(name, value)| (Value::from(*name), Value::from(*value))).collect();
        let args = crate::modules::args::validate(&crate::modules::mysql_query::MODULE, &{
            let mut map: Map = map;
            map.insert("query".into(), "x".into());
            map
        })
        .unwrap();
        let client = Client::parse(&args, &Settings::default()).unwrap();
        assert!(client.options.contains("password=\"s\\\"e\"\n") && client.options.contains("port=\"3306\"\n"));
        assert!(client.script("SELECT 1", false, None).contains("--defaults-extra-file=/dev/fd/3"));
        let denied =
            Response { code: Some(1), stderr: b"ERROR 1045 (28000): Access denied".to_vec(), ..Response::default() };
        assert!(judge(&denied).unwrap_err().message.contains("unable to connect"));
    }
}
