//! ansible.builtin.getent: entries of the host's databases (passwd, group, hosts, services, …) as facts.

use crate::connect::shell::{Response, quote};
use crate::host::reads::Script;
use crate::host::{Failure, Footprint};
use crate::value::{Map, Value};

use super::file_common::account::accounts;
use super::{Action, Arg, Args, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.getent",
    aliases: &[],
    summary: "Reads entries of the host's databases (passwd, group, hosts, services) into the fact getent_DATABASE",
    args: &[
        Arg::new("database", Type::Str, "The database").required(),
        Arg::new("key", Type::Str, "The entry; all if not given"),
        Arg::new("service", Type::Str, "Ask this service alone (`files`, `sss`) and not those of nsswitch.conf"),
        Arg::new(
            "split",
            Type::Str,
            "What is between fields; default a colon for passwd and its kin, blanks for others",
        ),
        Arg::new("fail_key", Type::Bool, "Fail if the entry does not exist").default("true"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("ansible_facts", "`getent_DATABASE`: each entry's fields behind the first, by the first")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let database = args.text("database");
    let is_plain = !database.is_empty() && database.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_plain {
        return Err(Failure::new(format!("`{database}` cannot be the name of a database")));
    }
    let mut text = "command -v getent >/dev/null 2>&1 || exit 127\ngetent".to_owned();
    if let Some(service) = args.str("service") {
        text.push_str(&format!(" -s {}", quote(service)));
    }
    text.push_str(&format!(" {database}"));
    if let Some(key) = args.str("key") {
        text.push_str(&format!(" {}", quote(key)));
    }
    let response = host.read(Script { text, footprint: footprint(database) }).await?;
    judge(&args, &response)
}

/// Names of hosts and the like may come from anywhere.
fn footprint(database: &str) -> Footprint {
    match database {
        "passwd" | "group" | "shadow" | "gshadow" => accounts().and(Footprint::path("/etc/nsswitch.conf")),
        _ => Footprint::Everything,
    }
}

fn judge(args: &Args, response: &Response) -> Result<Outcome, Failure> {
    let database = args.text("database");
    let outcome = |entries: Map| {
        let facts: Map = crate::value::object([(&*format!("getent_{database}"), entries.into())]);
        Outcome::ok().with("ansible_facts", facts.clone()).effect(Effect::Facts(facts))
    };
    let message = match response.code {
        Some(0) => {
            let colon = matches!(database, "passwd" | "shadow" | "group" | "gshadow");
            let split = args.str("split").or(colon.then_some(":"));
            return Ok(outcome(entries(&response.text(), split)));
        }
        Some(1) => format!("Missing arguments, or database unknown: {}", response.error_text().trim()),
        Some(2) => {
            let message = "One or more supplied key could not be found in the database.";
            if !args.bool("fail_key") {
                let mut missing = Map::new();
                missing.insert(args.text("key").into(), Value::Null);
                return Ok(outcome(missing).with("msg", message));
            }
            message.to_owned()
        }
        Some(3) => "Enumeration not supported on this database.".to_owned(),
        Some(127) => "this host has no program `getent`".to_owned(),
        code => format!("getent ended with exit code {}", code.unwrap_or(-1)),
    };
    Err(Failure::new(message))
}

/// Each line's fields by its first; a key that comes again makes a list of what it has.
fn entries(text: &str, split: Option<&str>) -> Map {
    let mut entries = Map::new();
    let mut seen: indexmap::IndexMap<String, Vec<Value>> = indexmap::IndexMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = match split {
            Some(split) if !split.is_empty() => line.split(split).collect(),
            _ => line.split_whitespace().collect(),
        };
        let Some((key, rest)) = fields.split_first() else { continue };
        let rest: Vec<Value> = rest.iter().map(|field| Value::from(*field)).collect();
        seen.entry((*key).to_owned()).or_default().push(Value::list(rest));
    }
    for (key, mut lists) in seen {
        let value = if lists.len() == 1 { lists.remove(0) } else { Value::list(lists) };
        entries.insert(key.into(), value);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::run_module;

    #[test]
    fn entries_become_facts() {
        let outcome = run_module(&MODULE, &[("database", "passwd".into()), ("key", "root".into())]).unwrap();
        let facts = outcome.result["ansible_facts"].get("getent_passwd").unwrap();
        assert_eq!(facts.get("root").unwrap().as_list().unwrap()[1], "0".into());
        assert!(!outcome.changed && matches!(outcome.effect, Effect::Facts(_)));
        let all = run_module(&MODULE, &[("database", "group".into())]).unwrap();
        assert!(all.result["ansible_facts"].get("getent_group").unwrap().get("daemon").is_some());
    }

    #[test]
    fn a_missing_entry_fails_or_is_none() {
        let ask = |fail: bool| {
            let given = [("database", "passwd".into()), ("key", "no-such-user".into()), ("fail_key", fail.into())];
            run_module(&MODULE, &given)
        };
        assert!(ask(true).unwrap_err().message.contains("could not be found"));
        let outcome = ask(false).unwrap();
        assert_eq!(outcome.result["ansible_facts"].to_repr(), "{'getent_passwd': {'no-such-user': None}}");
        let failure = run_module(&MODULE, &[("database", "nonsense".into())]).unwrap_err();
        assert!(failure.message.starts_with("Missing arguments, or database unknown"), "{}", failure.message);
        assert!(run_module(&MODULE, &[("database", "a;b".into())]).is_err());
    }

    #[test]
    fn lines_are_split_as_asked() {
        let cases = [
            ("127.0.0.1 localhost a\n127.0.0.1 b\n", None, "{'127.0.0.1': [['localhost', 'a'], ['b']]}"),
            ("a:x:1:\n", Some(":"), "{'a': ['x', '1', '']}"),
            ("http  80/tcp www\n", None, "{'http': ['80/tcp', 'www']}"),
        ];
        for (text, split, facts) in cases {
            assert_eq!(Value::from(entries(text, split)).to_repr(), facts);
        }
    }
}
