//! `community.general.seport`: types of network ports in SELinux's policy.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::programs::{SYSTEM_PATH, make, parts, step};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.seport",
    aliases: &[],
    summary: "Keeps the types that SELinux gives to network ports",
    args: &[
        Arg::new("ports", Type::List, "ports: 80, 10000-10100").required(),
        Arg::new("proto", Type::Str, "the protocol").required().choices(&["tcp", "udp", "dccp", "sctp"]),
        Arg::new("setype", Type::Str, "the type").required(),
        Arg::new("state", Type::Str, "whether they have it").default("present").choices(&["absent", "present"]),
        Arg::new("reload", Type::Bool, "load the policy afterwards").default("true"),
        Arg::new("local", Type::Bool, "look at local changes alone").default("false"),
        Arg::new("ignore_selinux_state", Type::Bool, "go on where SELinux seems to be disabled").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("ports", "as given"), ("proto", "as given"), ("setype", "as given"), ("state", "as given")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What the policy says of ports: type, first and last port.
type Entry = (String, u32, u32);

/// `http_port_t   tcp   80, 81, 8008-8010`
fn entries(listing: &str, proto: &str) -> Vec<Entry> {
    let mut found = Vec::new();
    for line in listing.lines() {
        let mut words = line.splitn(3, char::is_whitespace).map(str::trim);
        let (Some(kind), Some(rest)) = (words.next(), line.split_whitespace().nth(1)) else { continue };
        if rest != proto {
            continue;
        }
        let ports = line.split_once(proto).map_or("", |(_, ports)| ports);
        for port in ports.split(',').filter_map(range) {
            found.push((kind.to_owned(), port.0, port.1));
        }
    }
    found
}

fn range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.trim().split_once('-').unwrap_or((text.trim(), text.trim()));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && (1..=65_535).contains(&last)).then_some((first, last))
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (proto, kind, present) = (args.text("proto"), args.text("setype"), args.text("state") == "present");
    let ports = args.list("ports");
    let mut wanted = Vec::new();
    for port in &ports {
        wanted.push(
            range(port).ok_or_else(|| Failure::new(format!("`{port}` in `ports` is no port and no range of ports")))?,
        );
    }
    let local = if args.bool("local") { " -C" } else { "" };
    let text = format!(
        "{SYSTEM_PATH}export LC_ALL=C\ncommand -v semanage >/dev/null || exit 127\n\
         if [ -e /sys/fs/selinux/enforce ]; then echo enabled; else echo disabled; fi; printf '\\036'\n\
         semanage port -l -n{local} || exit; printf '\\036'; semanage port -l -n -C"
    );
    let footprint = Footprint::named("SELinux ports").and(Footprint::tree("/etc/selinux"));
    let answer = host.read(Script { text, footprint: footprint.clone() }).await?;
    match answer.code {
        Some(0) => {}
        Some(127) => return Err(Failure::new("the host has no `semanage`: install policycoreutils-python")),
        _ => return Err(Failure::new(format!("semanage: {}", answer.error_text().trim()))),
    }
    let parts = parts(&answer, 3);
    if parts[0].trim() != "enabled" && !args.bool("ignore_selinux_state") {
        return Err(Failure::new("SELinux is disabled on this host."));
    }
    let (all, own) = (entries(&parts[1], proto), entries(&parts[2], proto));
    let reload = if args.bool("reload") { "" } else { " -N" };
    let mut forth = Vec::new();
    let mut back = Vec::new();
    let mut shown = (String::new(), String::new());
    for (first, last) in wanted {
        let word = if first == last { first.to_string() } else { format!("{first}-{last}") };
        let exact = |entries: &[Entry]| {
            entries.iter().find(|entry| (entry.1, entry.2) == (first, last)).map(|entry| entry.0.clone())
        };
        let has =
            |entries: &[Entry]| entries.iter().any(|entry| entry.0 == kind && entry.1 <= first && last <= entry.2);
        let command =
            |verb: &str, kind: &str| format!("semanage port {verb}{reload} -t {} -p {proto} {word} >&2", quote(kind));
        let remove = format!("semanage port -d{reload} -p {proto} {word} >&2");
        if present {
            if has(&all) {
                continue;
            }
            match (exact(&own), exact(&all)) {
                (Some(old), _) => {
                    forth.push(command("-m", kind));
                    back.push(command("-m", &old));
                    shown.0.push_str(&format!("{word} {old}\n"));
                }
                // a type of the policy itself is covered, not changed
                (None, Some(old)) => {
                    forth.push(command("-m", kind));
                    back.push(remove);
                    shown.0.push_str(&format!("{word} {old}\n"));
                }
                (None, None) => {
                    forth.push(command("-a", kind));
                    back.push(remove);
                }
            }
            shown.1.push_str(&format!("{word} {kind}\n"));
        } else if exact(&all).as_deref() == Some(kind) {
            if exact(&own).is_none() {
                return Err(Failure::new(format!(
                    "port {word} has its type from the policy itself, which cannot be removed"
                )));
            }
            forth.push(remove);
            back.push(command("-a", kind));
            shown.0.push_str(&format!("{word} {kind}\n"));
        }
    }
    let outcome = Outcome::ok()
        .with("ports", Value::list(ports.iter().map(|port| Value::from(port.as_str())).collect()))
        .with("proto", proto)
        .with("setype", kind)
        .with("state", args.text("state"));
    if forth.is_empty() {
        return Ok(outcome);
    }
    back.reverse();
    let change = Change::uncertain(format!("SELinux type {kind} of ports"), footprint)
        .step(step(forth.join(" &&\n")))
        .inverse(Inverse::Steps(back.iter().map(step).collect()))
        .difference(Difference::new(format!("ports of SELinux ({proto})"), shown.0, shown.1));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};

    /// The policy has http_port_t on 80 and 443; `db` are local lines `TYPE PROTO PORT`.
    const SEMANAGE: &str = r#"
touch "$D/db"
case "$*" in *-l*) case "$*" in *-C*) ;; *) echo 'http_port_t                    tcp      80, 443, 8008-8010' ;; esac; cat "$D/db"; exit ;; esac
verb=$2; shift 2; while [ $# != 0 ]; do case $1 in -t) t=$2; shift ;; -p) p=$2; shift ;; -N) ;; *) port=$1 ;; esac; shift; done
sed -i "/ $p $port\$/d" "$D/db"; [ "$verb" = -d ] || echo "$t $p $port" >>"$D/db""#;

    #[test]
    fn ports_get_types_and_lose_them() {
        let fake = FakePrograms::new(&[("semanage", SEMANAGE)]);
        let run = |ports: &str, kind: &str, more: &[(&'static str, Value)], check| -> Played {
            let own = [
                ("ports", ports.into()),
                ("proto", "tcp".into()),
                ("setype", kind.into()),
                ("ignore_selinux_state", true.into()),
            ];
            play(&MODULE, &[&own[..], more].concat(), &Play { shell: fake.shell(), check })
        };
        assert!(!run("443,8009", "http_port_t", &[], false).result.unwrap().changed, "they have it by the policy");
        assert!(run("3307", "mysqld_port_t", &[], true).result.unwrap().changed && fake.read("db").is_empty());
        let added = run("3307,4000-4010", "mysqld_port_t", &[], false);
        assert!(
            added.result.unwrap().changed
                && !run("3307,4000-4010", "mysqld_port_t", &[], false).result.unwrap().changed
        );
        let moved = run("3307", "http_port_t", &[("reload", false.into())], false);
        assert!(moved.result.unwrap().changed && fake.read("db").contains("http_port_t tcp 3307"));
        undo_in(&moved.changes, fake.shell());
        assert!(fake.read("db").contains("mysqld_port_t tcp 3307"));
        let gone = run("3307", "mysqld_port_t", &[("state", "absent".into())], false);
        assert!(gone.result.unwrap().changed && !fake.read("db").contains("3307"));
        undo_in(&gone.changes, fake.shell());
        undo_in(&added.changes, fake.shell());
        assert_eq!(fake.read("db"), "");
        assert!(
            run("80", "http_port_t", &[("state", "absent".into())], true)
                .result
                .unwrap_err()
                .message
                .contains("policy itself")
        );
        assert!(run("http", "x", &[], true).result.unwrap_err().message.contains("no port"));
    }
}
