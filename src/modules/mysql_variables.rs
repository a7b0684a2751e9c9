//! `community.mysql.mysql_variables`: settings of a MySQL server while it runs.

use crate::host::{Difference, Failure, Inverse};
use crate::value::Value;

use super::mysql_client::{self as client, Client, literal, name};
use super::programs::make;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.mysql.mysql_variables",
    aliases: &["ansible.mysql.mysql_variables"],
    summary: "Reads and sets the variables of a MySQL or MariaDB server by the host's client",
    args: &[
        Arg::new("variable", Type::Str, "its name").required(),
        Arg::new("value", Type::Str, "its value; not given: tell the present one"),
        Arg::new("mode", Type::Str, "now, now and for the next start, or for the next start alone (MySQL 8)")
            .default("global")
            .choices(&["global", "persist", "persist_only"]),
        Arg::shared(client::LOGIN),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "what was done, or the value"), ("queries", "the statements that were run")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, settings, .. } = invocation;
    let client = Client::parse(&args, &settings)?;
    let variable = args.text("variable");
    if variable.is_empty() || !variable.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte)) {
        return Err(Failure::new(format!("invalid variable name \"{variable}\"")));
    }
    let mode = args.text("mode");
    let mut sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name = {}", literal(variable));
    if mode != "global" {
        sql.push_str(&format!(
            ";\nSELECT 'persisted', VARIABLE_VALUE FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = {}",
            literal(variable)
        ));
    }
    let rows = client.ask(&host, &sql).await?;
    let find = |key: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|own| own.eq_ignore_ascii_case(key)));
        row.and_then(|row| row.get(1)).cloned()
    };
    let Some(now) = find(variable) else {
        return Err(Failure::new(format!("Variable not available \"{variable}\"")));
    };
    let persisted = find("persisted");
    let Some(wanted) = args.str("value") else {
        let told = Value::list(vec![Value::list(vec![variable.into(), now.into()])]);
        return Ok(Outcome::ok().with("msg", told));
    };
    let right_now = mode == "persist_only" || is_same(&now, wanted);
    let right_later = mode == "global" || persisted.as_deref().is_some_and(|value| is_same(value, wanted));
    if right_now && right_later {
        return Ok(Outcome::ok().with("msg", "Variable is already set to requested value."));
    }
    let word = mode.to_uppercase();
    let set = |value: &str| format!("SET {word} {} = {}", name(variable), expression(value));
    let back = match (mode, &persisted) {
        ("global", _) => set(&now),
        (_, Some(old)) => set(old),
        ("persist", None) => {
            format!("RESET PERSIST {};\nSET GLOBAL {} = {}", name(variable), name(variable), expression(&now))
        }
        _ => format!("RESET PERSIST {}", name(variable)),
    };
    let statement = set(wanted);
    let before = if mode == "persist_only" { persisted.unwrap_or_default() } else { now };
    let change = client
        .change(format!("variable {variable} of MySQL"), &statement)
        .inverse(Inverse::Steps(vec![client.step(&back)]))
        .difference(Difference::new(format!("variable {variable}"), format!("{before}\n"), format!("{wanted}\n")));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome::changed()
        .differences(differences)
        .with("msg", format!("Variable change succeeded prev_value={before}"))
        .with("queries", Value::list(vec![statement.into()])))
}

/// `1G` is not understood by the server, but numbers and words are.
fn expression(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok() && !value.to_ascii_lowercase().contains(['n', 'i']);
    let is_word = ["ON", "OFF", "TRUE", "FALSE", "DEFAULT"].iter().any(|word| word.eq_ignore_ascii_case(value));
    if is_number || is_word { value.to_owned() } else { literal(value) }
}

/// Numbers by their value, switches by their sense, all else by its letters.
fn is_same(now: &str, wanted: &str) -> bool {
    let switch = |text: &str| match text.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" | "YES" | "1" => Some(true),
        "OFF" | "FALSE" | "NO" | "0" => Some(false),
        _ => None,
    };
    match (now.parse::<f64>(), wanted.parse::<f64>()) {
        (Ok(now), Ok(wanted)) => now == wanted,
        _ => now == wanted || (switch(now).is_some() && switch(now) == switch(wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::mysql_client::tests::fake;
    use crate::modules::testing::{Play, play};

    #[test]
    fn variables_are_read_set_and_taken_back() {
        let fake = fake();
        fake.write("answer.1", "SHOW GLOBAL\nmax_connections\t151\n");
        let run = |more: &[(&'static str, Value)], check| {
            let given = [&[("variable", "max_connections".into())], more].concat();
            play(&MODULE, &given, &Play { shell: fake.shell(), check })
        };
        let told = run(&[], true).result.unwrap().result["msg"].clone();
        assert_eq!(told.as_list().unwrap()[0].as_list().unwrap()[1], "151".into());
        assert!(!run(&[("value", "151".into())], false).result.unwrap().changed);
        assert!(run(&[("value", "500".into())], true).result.unwrap().changed && !fake.read("log").contains("SET"));
        let set = run(&[("value", "500".into())], false);
        assert!(set.result.unwrap().changed && fake.read("log").contains("SET GLOBAL `max_connections` = 500"));
        let Inverse::Steps(steps) = &set.changes[0].inverse else { panic!() };
        assert!(steps[0].script.contains("SET GLOBAL `max_connections` = 151"));
        let kept = run(&[("value", "151".into()), ("mode", "persist".into())], false);
        assert!(kept.result.unwrap().changed && fake.read("log").contains("SET PERSIST `max_connections` = 151"));
        fake.write("answer.1", "SHOW GLOBAL\n");
        assert!(run(&[], false).result.unwrap_err().message.contains("not available"));
    }

    #[test]
    fn values_are_compared_as_the_server_means_them() {
        for (now, wanted, same) in
            [("ON", "1", true), ("OFF", "on", false), ("1.0", "1", true), ("ROW", "row", false), ("x", "x", true)]
        {
            assert_eq!(is_same(now, wanted), same, "{now} {wanted}");
        }
        assert_eq!(
            [expression("10"), expression("on"), expression("a'b"), expression("inf")],
            ["10", "on", "'a''b'", "'inf'"]
        );
    }
}
