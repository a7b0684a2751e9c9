//! `ansible.builtin.iptables`: rules of the packet filter, in the kernel alone.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::programs::{SYSTEM_PATH, make, parts, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.builtin.iptables",
    aliases: &[],
    summary: "Keeps rules of the kernel's packet filter; does not save them for the next boot",
    args: &[
        Arg::new("table", Type::Str, "the table")
            .default("filter")
            .choices(&["filter", "nat", "mangle", "raw", "security"]),
        Arg::new("state", Type::Str, "whether the rule is there").default("present").choices(&["absent", "present"]),
        Arg::new("action", Type::Str, "where a new rule goes: to the end or to the beginning")
            .default("append")
            .choices(&["append", "insert"]),
        Arg::new("rule_num", Type::Str, "with `insert` before the rule of this number"),
        Arg::new("ip_version", Type::Str, "for which version of IP").default("ipv4").choices(&["both", "ipv4", "ipv6"]),
        Arg::new("chain", Type::Str, "the chain"),
        Arg::new("protocol", Type::Str, "the protocol; `!` before it: all others"),
        Arg::new("source", Type::Str, "where packets come from; `!` before it: all others"),
        Arg::new("destination", Type::Str, "where packets go to; `!` before it: all others"),
        Arg::new("tcp_flags", Type::Dict, "`flags` and `flags_set`: lists of TCP's flags"),
        Arg::new("match", Type::List, "extensions that decide whether a packet matches"),
        Arg::new("jump", Type::Str, "what becomes of packets: ACCEPT, DROP, another chain, …"),
        Arg::new("gateway", Type::Str, "where `jump: TEE` sends copies"),
        Arg::new("log_prefix", Type::Str, "the beginning of what `jump: LOG` logs"),
        Arg::new("log_level", Type::Str, "the level that it is logged with").choices(&[
            "0", "1", "2", "3", "4", "5", "6", "7", "emerg", "alert", "crit", "error", "warning", "notice", "info",
            "debug",
        ]),
        Arg::new("goto", Type::Str, "the chain to go on in, without a return"),
        Arg::new("in_interface", Type::Str, "the device that packets come in by"),
        Arg::new("out_interface", Type::Str, "the device that packets go out by"),
        Arg::new("fragment", Type::Str, "second and later fragments: `yes` or `!`"),
        Arg::new("set_counters", Type::Str, "the counters of the rule: PACKETS BYTES"),
        Arg::new("source_port", Type::Str, "a port or FROM:TO"),
        Arg::new("destination_port", Type::Str, "a port or FROM:TO"),
        Arg::new("destination_ports", Type::List, "ports or FROM:TO"),
        Arg::new("to_ports", Type::Str, "the port that REDIRECT changes to"),
        Arg::new("to_destination", Type::Str, "the address that DNAT changes to"),
        Arg::new("to_source", Type::Str, "the address that SNAT changes to"),
        Arg::new("syn", Type::Str, "packets that open a TCP connection, or all others")
            .default("ignore")
            .choices(&["ignore", "match", "negate"]),
        Arg::new("set_dscp_mark", Type::Str, "the mark that DSCP sets"),
        Arg::new("set_dscp_mark_class", Type::Str, "the class that DSCP sets"),
        Arg::new("comment", Type::Str, "a comment that the kernel keeps with the rule"),
        Arg::new("ctstate", Type::List, "states of connections"),
        Arg::new("src_range", Type::Str, "FROM-TO"),
        Arg::new("dst_range", Type::Str, "FROM-TO"),
        Arg::new("match_set", Type::Str, "an ipset"),
        Arg::new("match_set_flags", Type::Str, "what of a packet is looked for in it")
            .choices(&["src", "dst", "src,dst", "dst,src", "dst,dst", "src,src"]),
        Arg::new("limit", Type::Str, "the rate up to which packets match"),
        Arg::new("limit_burst", Type::Str, "how many match before the rate counts"),
        Arg::new("uid_owner", Type::Str, "the user whose program sent it"),
        Arg::new("gid_owner", Type::Str, "the group whose program sent it"),
        Arg::new("reject_with", Type::Str, "the error that REJECT answers"),
        Arg::new("icmp_type", Type::Str, "a type of ICMP"),
        Arg::new("flush", Type::Bool, "remove all rules of the chain, or of the table").default("false"),
        Arg::new("policy", Type::Str, "what becomes of packets that no rule of the chain decides on")
            .choices(&["ACCEPT", "DROP", "QUEUE", "RETURN"]),
        Arg::new("wait", Type::Str, "seconds to wait for the lock of the packet filter"),
        Arg::new("chain_management", Type::Bool, "without a rule: make the chain or remove it").default("false"),
        Arg::new("numeric", Type::Bool, "look up no names of addresses").default("false"),
    ],
    rules: &[
        Rule::MutuallyExclusive(&["set_dscp_mark", "set_dscp_mark_class"]),
        Rule::MutuallyExclusive(&["flush", "policy"]),
        Rule::RequiredIf("jump", "TEE", &["gateway"]),
    ],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("ip_version", "as given"),
        ("table", "the table"),
        ("chain", "the chain"),
        ("flush", "as given"),
        ("rule", "the rule in iptables' words"),
        ("state", "as given"),
        ("chain_management", "as given"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What one table of one version of IP is asked and told.
#[derive(Debug)]
struct Request<'a> {
    program: &'static str,
    table: &'a str,
    chain: Option<&'a str>,
    /// The words of the rule, quoted.
    rule: String,
    wait: String,
    /// Make the chain if a new rule needs it.
    makes_chain: bool,
    kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind<'a> {
    Rule { present: bool, insert: bool, number: Option<&'a str> },
    Chain { present: bool },
    Flush,
    Policy(&'a str),
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let chain = args.str("chain").filter(|chain| !chain.is_empty());
    if chain.is_none() && !args.bool("flush") {
        return Err(Failure::new("Either chain or flush parameter must be specified."));
    }
    let present = args.text("state") == "present";
    let versions: &[(&str, &str)] = match args.text("ip_version") {
        "both" => &[("ipv4", "iptables"), ("ipv6", "ip6tables")],
        "ipv6" => &[("ipv6", "ip6tables")],
        _ => &[("ipv4", "iptables")],
    };
    let mut outcome = Outcome::ok();
    let mut shown_rule = String::new();
    for (version, program) in versions {
        let words = rule(&args, version)?;
        shown_rule = words.join(" ");
        let kind = if args.bool("flush") {
            Kind::Flush
        } else if let Some(policy) = args.str("policy") {
            Kind::Policy(policy)
        } else if words.is_empty() && args.bool("chain_management") {
            Kind::Chain { present }
        } else {
            let number = args.str("rule_num").filter(|number| !number.is_empty());
            Kind::Rule { present, insert: args.text("action") == "insert", number }
        };
        let wait = match args.str("wait").filter(|wait| !wait.is_empty()) {
            Some(seconds) if !seconds.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(Failure::new(format!("`wait` is a number of seconds, not `{seconds}`")));
            }
            Some(seconds) => format!(" -w {seconds}"),
            None => String::new(),
        };
        let rule = words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        let request = Request {
            program,
            table: args.text("table"),
            chain,
            rule,
            wait,
            makes_chain: args.bool("chain_management"),
            kind,
        };
        let footprint = Footprint::named("packet filter");
        let response = host.read(Script { text: request.look(), footprint }).await?;
        if response.code == Some(127) {
            return Err(Failure::new(format!("the host has no program `{program}`")));
        }
        if !response.success() {
            let reason = response.error_text();
            return Err(Failure::new(format!("{program}: {}", reason.trim())));
        }
        if let Some(change) = request.change(&parts(&response, 3)) {
            let differences = change.differences.clone();
            make(&host, change).await?;
            outcome = Outcome { changed: true, ..outcome }.differences(differences);
        }
    }
    Ok(outcome
        .with("ip_version", args.text("ip_version"))
        .with("table", args.text("table"))
        .with("chain", chain.map_or(Value::Null, Value::from))
        .with("flush", args.bool("flush"))
        .with("rule", shown_rule)
        .with("state", args.text("state"))
        .with("chain_management", args.bool("chain_management")))
}

impl Request<'_> {
    fn command(&self, verb: &str, rest: &str) -> String {
        let chain = self.chain.map(quote).unwrap_or_default();
        format!("{} -t {}{} {verb} {chain} {rest}", self.program, self.table, self.wait)
    }

    /// Prints whether the rule is there, the chain's rules, and the whole table as iptables-restore takes it.
    fn look(&self) -> String {
        let rule = match self.kind {
            Kind::Rule { .. } => {
                // 1: there is no such rule, or no such chain or extension, which the change would tell
                format!("{} >/dev/null 2>&1; c=$?; [ $c -lt 3 ] || exit $c; echo $c", self.command("-C", &self.rule))
            }
            _ => ":".to_owned(),
        };
        format!(
            "{SYSTEM_PATH}export LC_ALL=C\ncommand -v {0} >/dev/null 2>&1 || exit 127\n{rule}; printf '\\036'\n\
             {1} || {{ [ -n {2} ] || exit 1; }} 2>/dev/null; printf '\\036'\n{0}-save -t {3} || exit",
            self.program,
            format_args!(
                "{} -t {}{} -S {} 2>/dev/null",
                self.program,
                self.table,
                self.wait,
                self.chain.map(quote).unwrap_or_default()
            ),
            quote(self.chain.unwrap_or_default()),
            self.table,
        )
    }

    /// The change; `None` if the kernel has it so already.
    fn change(&self, parts: &[String]) -> Option<Change> {
        let is_there = parts[0].trim() == "0";
        let listed = parts[1].as_str();
        let has_chain = !listed.trim().is_empty();
        let chain = self.chain.unwrap_or_default();
        let what = format!("{} {} {chain}", self.program, self.table);
        let restore = || {
            let table = self.table;
            let code = format!("{}-restore{} -T {table}", self.program, self.wait);
            Inverse::Steps(vec![step(code).stdin(parts[2].as_bytes())])
        };
        let rules = || listed.lines().filter(|line| line.starts_with("-A ")).collect::<Vec<_>>().join("\n");
        let (command, inverse, before, after) = match &self.kind {
            Kind::Rule { present: true, .. } if is_there => return None,
            Kind::Rule { present: false, .. } if !is_there => return None,
            Kind::Rule { present: true, insert, number } => {
                let rest = match number.filter(|_| *insert) {
                    Some(number) => format!("{} {}", quote(number), self.rule),
                    None => self.rule.clone(),
                };
                let mut back = vec![step(self.command("-D", &self.rule))];
                let mut code = self.command(if *insert { "-I" } else { "-A" }, &rest);
                if self.makes_chain && !has_chain {
                    code = format!("{} && {code}", self.command("-N", ""));
                    back.push(step(self.command("-X", "")));
                }
                (code, Inverse::Steps(back), String::new(), self.rule.clone())
            }
            Kind::Rule { present: false, .. } => {
                (self.command("-D", &self.rule), restore(), self.rule.clone(), String::new())
            }
            Kind::Chain { present } if *present == has_chain => return None,
            Kind::Chain { present: true } => {
                let back = Inverse::Steps(vec![step(self.command("-X", ""))]);
                (self.command("-N", ""), back, String::new(), format!("-N {chain}"))
            }
            Kind::Chain { present: false } => (self.command("-X", ""), restore(), listed.to_owned(), String::new()),
            Kind::Flush => {
                if rules().is_empty() {
                    return None;
                }
                (self.command("-F", ""), restore(), rules(), String::new())
            }
            Kind::Policy(policy) => {
                let now = listed.lines().find_map(|line| line.strip_prefix("-P ")?.split_once(' ')).map(|(_, now)| now);
                if now == Some(*policy) {
                    return None;
                }
                let back = match now {
                    Some(now) => Inverse::Steps(vec![step(self.command("-P", now))]),
                    None => Inverse::None(format!("the policy of {chain} was not told")),
                };
                (
                    self.command("-P", policy),
                    back,
                    format!("-P {chain} {}", now.unwrap_or_default()),
                    format!("-P {chain} {policy}"),
                )
            }
        };
        let line = |text: String| if text.is_empty() { text } else { text.trim_end().to_owned() + "\n" };
        Some(
            Change::uncertain(what.trim(), Footprint::named("packet filter"))
                .step(step(command))
                .inverse(inverse)
                .difference(Difference::new(what.trim(), line(before), line(after))),
        )
    }
}

/// The words of the rule behind the chain's name.
fn rule(args: &Args, version: &str) -> Result<Vec<String>, Failure> {
    let mut words = Words::default();
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let matches = args.list("match");
    let has = |name: &str| matches.iter().any(|own| own == name);
    words.option("-p", text("protocol"));
    words.option("-s", text("source"));
    words.option("-d", text("destination"));
    for name in &matches {
        words.option("-m", Some(name));
    }
    if let Some(flags) = args.get("tcp_flags") {
        let list = |key: &str| {
            let items = flags.get(key).map(Value::to_text).unwrap_or_default();
            match flags.get(key).and_then(Value::as_list) {
                Some(items) => items.iter().map(|item| item.to_text().into_owned()).collect::<Vec<_>>().join(","),
                None => items.into_owned(),
            }
        };
        if list("flags").is_empty() || list("flags_set").is_empty() {
            return Err(Failure::new("`tcp_flags` needs `flags` and `flags_set`"));
        }
        words.add(&["--tcp-flags", &list("flags"), &list("flags_set")]);
    }
    words.option("-j", text("jump"));
    if text("jump").is_some_and(|jump| jump.eq_ignore_ascii_case("tee")) {
        words.option("--gateway", text("gateway"));
    }
    words.option("--log-prefix", text("log_prefix"));
    words.option("--log-level", text("log_level"));
    words.option("--to-destination", text("to_destination"));
    let ports = args.list("destination_ports");
    if !ports.is_empty() {
        words.add(&["-m", "multiport", "--dports", &ports.join(",")]);
    }
    words.option("--to-source", text("to_source"));
    words.option("-g", text("goto"));
    words.option("-i", text("in_interface"));
    words.option("-o", text("out_interface"));
    match text("fragment") {
        Some("!") => words.add(&["!", "-f"]),
        Some("no" | "False" | "false") | None => {}
        Some(_) => words.add(&["-f"]),
    }
    if let Some(counters) = text("set_counters") {
        words.add(&["-c"]);
        words.0.extend(counters.split_whitespace().map(str::to_owned));
    }
    words.option("--source-port", text("source_port"));
    words.option("--destination-port", text("destination_port"));
    words.option("--to-ports", text("to_ports"));
    match args.text("syn") {
        "match" => words.add(&["--syn"]),
        "negate" => words.add(&["!", "--syn"]),
        _ => {}
    }
    let states = args.list("ctstate").join(",");
    if !states.is_empty() {
        match (has("conntrack"), has("state")) {
            (true, _) => words.add(&["--ctstate", &states]),
            (false, true) => words.add(&["--state", &states]),
            _ => words.add(&["-m", "conntrack", "--ctstate", &states]),
        }
    }
    if !has("iprange") && (text("src_range").is_some() || text("dst_range").is_some()) {
        words.add(&["-m", "iprange"]);
    }
    words.option("--src-range", text("src_range"));
    words.option("--dst-range", text("dst_range"));
    if let Some(set) = text("match_set") {
        let flags = text("match_set_flags").ok_or_else(|| Failure::new("`match_set` needs `match_set_flags`"))?;
        if !has("set") {
            words.add(&["-m", "set"]);
        }
        words.option("--match-set", Some(set));
        words.add(&[flags]);
    }
    if (text("limit").is_some() || text("limit_burst").is_some()) && !has("limit") {
        words.add(&["-m", "limit"]);
    }
    words.option("--limit", text("limit"));
    words.option("--limit-burst", text("limit_burst"));
    if (text("uid_owner").is_some() || text("gid_owner").is_some()) && !has("owner") {
        words.add(&["-m", "owner"]);
    }
    words.option("--uid-owner", text("uid_owner"));
    words.option("--gid-owner", text("gid_owner"));
    if text("jump").is_none() {
        if text("reject_with").is_some() {
            words.add(&["-j", "REJECT"]);
        } else if text("set_dscp_mark").is_some() || text("set_dscp_mark_class").is_some() {
            words.add(&["-j", "DSCP"]);
        }
    }
    words.option("--set-dscp", text("set_dscp_mark"));
    words.option("--set-dscp-class", text("set_dscp_mark_class"));
    words.option("--reject-with", text("reject_with"));
    words.option(if version == "ipv6" { "--icmpv6-type" } else { "--icmp-type" }, text("icmp_type"));
    if let Some(comment) = text("comment") {
        if !has("comment") {
            words.add(&["-m", "comment"]);
        }
        words.add(&["--comment", comment]);
    }
    Ok(words.0)
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// An option with its value; `!` before the value goes before the option.
    fn option(&mut self, option: &str, value: Option<&str>) {
        match value.map(|value| (value, value.strip_prefix('!'))) {
            None => {}
            Some((_, Some(value))) => self.add(&["!", option, value.trim_start()]),
            Some((value, None)) => self.add(&[option, value]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};

    /// Keeps the rules of one table as iptables-save prints them.
    const IPTABLES: &str = r#"
T="$D/$(basename "$0" -save)"; T=${T%-restore}
[ -e "$T" ] || printf '%s\n' '-P INPUT ACCEPT' >"$T"
case $0 in *-save) cat "$T"; exit ;; *-restore) cat >"$T"; exit ;; esac
[ "$1" = -t ] && shift 2; [ "$1" = -w ] && { echo "wait $2" >>"$D/log"; shift 2; }
verb=$1 chain=$2; shift; [ $# = 0 ] || shift
case $verb in
-C) grep -qxF -- "-A $chain $*" "$T" || exit 1 ;;
-A) echo "-A $chain $*" >>"$T" ;;
-I) case $1 in [0-9]*) n=$1; shift; sed -i "${n}a -A $chain $*" "$T" ;; *) sed -i "1a -A $chain $*" "$T" ;; esac ;;
-D) grep -vxF -- "-A $chain $*" "$T" >"$T.new"; mv "$T.new" "$T" ;;
-S) grep -E -- "^-[PNA] ${chain:-[A-Z]}" "$T" ;;
-F) grep -v -- '^-A' "$T" >"$T.new"; mv "$T.new" "$T" ;;
-P) sed -i "s/^-P $chain .*/-P $chain $1/" "$T" ;;
-N) echo "-N $chain" >>"$T" ;;
-X) sed -i "/^-N $chain\$/d" "$T" ;;
*) exit 2 ;;
esac"#;

    fn fake() -> FakePrograms {
        FakePrograms::new(
            &["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"]
                .map(|name| (name, IPTABLES)),
        )
    }

    fn words(given: &[(&str, Value)]) -> String {
        let map = given.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
        let args = crate::modules::args::validate(&MODULE, &map).unwrap();
        rule(&args, "ipv4").unwrap().join(" ")
    }

    #[test]
    fn rules_are_worded_as_iptables_has_them() {
        let list = |items: &[&str]| Value::list(items.iter().map(|item| Value::from(*item)).collect());
        let flags = crate::value::object([("flags", "ALL".into()), ("flags_set", list(&["ACK", "SYN"]))]);
        let cases: Vec<(Vec<(&str, Value)>, &str)> = vec![
            (
                vec![("protocol", "tcp".into()), ("destination_port", "22".into()), ("jump", "ACCEPT".into())],
                "-p tcp -j ACCEPT --destination-port 22",
            ),
            (
                vec![("ctstate", list(&["NEW", "RELATED"])), ("jump", "ACCEPT".into())],
                "-j ACCEPT -m conntrack --ctstate NEW,RELATED",
            ),
            (vec![("match", "state".into()), ("ctstate", "NEW".into())], "-m state --state NEW"),
            (vec![("source", "!10.0.0.0/8".into()), ("syn", "negate".into())], "! -s 10.0.0.0/8 ! --syn"),
            (
                vec![("destination_ports", list(&["80", "8081:8083"])), ("comment", "two words".into())],
                "-m multiport --dports 80,8081:8083 -m comment --comment two words",
            ),
            (vec![("tcp_flags", flags.into())], "--tcp-flags ALL ACK,SYN"),
            (vec![("reject_with", "tcp-reset".into())], "-j REJECT --reject-with tcp-reset"),
            (
                vec![("limit", "2/second".into()), ("uid_owner", "!0".into())],
                "-m limit --limit 2/second -m owner ! --uid-owner 0",
            ),
            (vec![("match_set", "admin".into()), ("match_set_flags", "src".into())], "-m set --match-set admin src"),
            (vec![("fragment", "!".into()), ("icmp_type", "8".into())], "! -f --icmp-type 8"),
        ];
        for (given, expected) in cases {
            assert_eq!(words(&[&given[..], &[("chain", "INPUT".into())]].concat()), expected);
        }
    }

    #[test]
    fn rules_chains_and_policies_come_and_go() {
        let port = |more: &[(&'static str, Value)]| {
            [
                &[
                    ("chain", "INPUT".into()),
                    ("protocol", "tcp".into()),
                    ("destination_port", "22".into()),
                    ("jump", "ACCEPT".into()),
                ],
                more,
            ]
            .concat()
        };
        let fake = fake();
        fake.write("iptables", "-P INPUT ACCEPT\n-A INPUT -j LOG\n");
        let run = |given: &[(&'static str, Value)], check| -> Played {
            play(&MODULE, given, &Play { shell: fake.shell(), check })
        };
        let cases: Vec<(Vec<(&'static str, Value)>, &str)> = vec![
            (port(&[]), "-P INPUT ACCEPT\n-A INPUT -j LOG\n-A INPUT -p tcp -j ACCEPT --destination-port 22\n"),
            (
                port(&[("action", "insert".into()), ("rule_num", "1".into()), ("wait", "5".into())]),
                "-P INPUT ACCEPT\n-A INPUT -p tcp -j ACCEPT --destination-port 22\n-A INPUT -j LOG\n",
            ),
            (vec![("chain", "INPUT".into()), ("jump", "LOG".into()), ("state", "absent".into())], "-P INPUT ACCEPT\n"),
            (vec![("chain", "INPUT".into()), ("policy", "DROP".into())], "-P INPUT DROP\n-A INPUT -j LOG\n"),
            (vec![("flush", true.into())], "-P INPUT ACCEPT\n"),
            (
                vec![("chain", "OWN".into()), ("chain_management", true.into())],
                "-P INPUT ACCEPT\n-A INPUT -j LOG\n-N OWN\n",
            ),
        ];
        for (given, expected) in cases {
            let before = fake.read("iptables");
            assert!(run(&given, true).result.unwrap().changed, "{given:?}");
            assert_eq!(fake.read("iptables"), before);
            let made = run(&given, false);
            assert!(made.result.unwrap().changed);
            assert_eq!(fake.read("iptables"), expected, "{given:?}");
            let again = run(&given, false);
            assert!(!again.result.unwrap().changed && again.batches == 1, "{given:?}");
            undo_in(&made.changes, fake.shell());
            assert_eq!(fake.read("iptables"), before, "{given:?}");
        }
        let own = [("chain", "NEW".into()), ("jump", "LOG".into()), ("chain_management", true.into())];
        let before = fake.read("iptables");
        let made = run(&own, false);
        assert!(made.result.unwrap().changed && fake.read("iptables").ends_with("-N NEW\n-A NEW -j LOG\n"));
        undo_in(&made.changes, fake.shell());
        assert_eq!(fake.read("iptables"), before);
        let both = run(&port(&[("ip_version", "both".into())]), false);
        assert_eq!((both.result.unwrap().changed, both.changes.len()), (true, 2));
        assert!(fake.read("ip6tables").contains("--destination-port 22") && fake.read("log").starts_with("wait 5"));
    }

    #[test]
    fn what_cannot_be_is_told() {
        let failed = |given: &[(&'static str, Value)], fake: &FakePrograms| {
            play(&MODULE, given, &Play { shell: fake.shell(), check: true }).result.unwrap_err().message
        };
        let given = [("chain", "INPUT".into()), ("jump", "ACCEPT".into())];
        assert!(failed(&[], &fake()).contains("Either chain or flush"));
        assert!(failed(&[&given[..], &[("wait", "soon".into())]].concat(), &fake()).contains("number of seconds"));
        let broken = FakePrograms::new(&[
            ("iptables", "exit 1"),
            ("iptables-save", "echo 'Permission denied (you must be root)' >&2; exit 4"),
        ]);
        assert!(failed(&given, &broken).contains("you must be root"));
    }
}
