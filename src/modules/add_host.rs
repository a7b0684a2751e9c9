//! ansible.builtin.add_host: adds a host to the inventory of this run.

use crate::host::Failure;
use crate::value::{Value, object};

use super::args::ANY_NAME;
use super::{Action, Arg, Effect, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.add_host",
    aliases: &[],
    summary: "Adds a host to the inventory of this run",
    args: ARGS,
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::None,
    returns: &[("add_host", "`host_name`, `groups` and `host_vars`")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const ARGS: &[Arg] = &[
    Arg::new("name", Type::Str, "Its name; a port may follow behind a colon").aliases(&["host", "hostname"]).required(),
    Arg::new("groups", Type::List, "The groups that it belongs to").aliases(&["group", "groupname"]),
    Arg::new(ANY_NAME, Type::Raw, "A variable of the host and its value"),
];

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let (name, port) = split_port(invocation.args.text("name"));
    let mut variables = invocation.args.others(ARGS);
    if let Some(port) = port {
        variables.insert("ansible_ssh_port".into(), port.into());
    }
    let mut groups: Vec<String> = Vec::new();
    for group in invocation.args.list("groups") {
        let group = group.trim();
        if !group.is_empty() && !groups.iter().any(|known| known == group) {
            groups.push(group.to_owned());
        }
    }
    let shown: Vec<Value> = groups.iter().map(|group| group.as_str().into()).collect();
    let result =
        object([("host_name", name.into()), ("groups", shown.into()), ("host_vars", variables.clone().into())]);
    let effect = Effect::AddHost { name: name.to_owned(), groups, variables };
    Ok(Outcome::changed().with("add_host", result).effect(effect))
}

/// `name:22` and `[2001:db8::1]:22`; an address of IPv6 without brackets has no port.
fn split_port(name: &str) -> (&str, Option<i64>) {
    let name = name.trim();
    let (host, port) = match name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match name.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (name, None),
        },
    };
    match (port, port.and_then(|port| port.parse::<u16>().ok())) {
        (Some(_), None) => (name, None),
        (_, port) => (host, port.map(i64::from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_follow_the_name() {
        let cases = [
            ("kp001", "kp001", None),
            ("kp001:2222", "kp001", Some(2222)),
            ("[2001:db8::1]:22", "2001:db8::1", Some(22)),
            ("2001:db8::1", "2001:db8::1", None),
            ("a:b", "a:b", None),
        ];
        for (name, host, port) in cases {
            assert_eq!(split_port(name), (host, port), "{name}");
        }
    }
}
