//! `ansible.posix.firewalld`: what zones of firewalld let pass.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};
use crate::value::Value;

use super::programs::{SYSTEM_PATH, make, parts, step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.firewalld",
    aliases: &[],
    summary: "Keeps what the zones of firewalld let pass, now and for the next start",
    args: &[
        Arg::new("state", Type::Str, "whether it is in the zone; `present` and `absent` are for zones and targets")
            .required()
            .choices(&["absent", "disabled", "enabled", "present"]),
        Arg::new("zone", Type::Str, "the zone; not given: firewalld's default"),
        Arg::new("service", Type::Str, "a service by firewalld's name"),
        Arg::new("port", Type::Str, "PORT/PROTOCOL or FROM-TO/PROTOCOL"),
        Arg::new("port_forward", Type::RawList, "one map of `port`, `proto`, `toport` and maybe `toaddr`"),
        Arg::new("protocol", Type::Str, "a protocol by its name"),
        Arg::new("rich_rule", Type::Str, "a rule in firewalld's rich language"),
        Arg::new("source", Type::Str, "a network whose packets belong to the zone"),
        Arg::new("interface", Type::Str, "a network device that belongs to the zone"),
        Arg::new("icmp_block", Type::Str, "an ICMP type that is blocked"),
        Arg::new(
            "icmp_block_inversion",
            Type::Bool,
            "block all other ICMP types; the value is of no matter, see `state`",
        ),
        Arg::new("masquerade", Type::Bool, "hide what goes out behind the host; false: the opposite of `state`"),
        Arg::new("forward", Type::Bool, "forward within the zone; false: the opposite of `state`"),
        Arg::new("target", Type::Str, "what becomes of all other packets").choices(&[
            "default",
            "ACCEPT",
            "DROP",
            "%%REJECT%%",
        ]),
        Arg::new("permanent", Type::Bool, "in the configuration"),
        Arg::new("immediate", Type::Bool, "now; so it is too if `permanent` is not set").default("false"),
        Arg::new("timeout", Type::Int, "seconds until it is taken back by itself, if it is not permanent").default("0"),
        Arg::new("offline", Type::Bool, "write the configuration though firewalld does not run"),
    ],
    rules: &[Rule::MutuallyExclusive(&[
        "icmp_block",
        "icmp_block_inversion",
        "service",
        "protocol",
        "port",
        "port_forward",
        "rich_rule",
        "interface",
        "forward",
        "masquerade",
        "source",
        "target",
    ])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[("msg", "what was done")],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What is kept, in the words of firewall-cmd(1).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    /// `service https`.
    shown: String,
    /// `service`, as in `--add-service`.
    option: &'static str,
    value: Option<String>,
}

impl Item {
    fn word(&self, verb: &str) -> String {
        let value = self.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        quote(&format!("--{verb}-{}{value}", self.option))
    }
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let zone = text("zone");
    let permanent = args.bool("permanent");
    let item = item(&args)?;
    let wanted = wanted(&args, item.as_ref())?;
    let question = match (&item, text("target")) {
        (Some(item), _) => item.word("query"),
        (None, Some(_)) => "--get-target".to_owned(),
        (None, None) => "--get-zones".to_owned(),
    };
    if (text("target").is_some() || item.is_none()) && !permanent {
        return Err(Failure::new("zones and their targets are permanent: `permanent: true` is needed"));
    }
    let of_zone = match zone.filter(|_| item.is_some() || text("target").is_some()) {
        Some(zone) => quote(&format!("--zone={zone}")),
        None => String::new(),
    };
    let script = format!(
        "{SYSTEM_PATH}export LC_ALL=C\ncommand -v firewall-cmd >/dev/null 2>&1 || exit 127\n\
         if firewall-cmd --state >/dev/null 2>&1; then c=firewall-cmd p=--permanent; echo running; else c=firewall-offline-cmd p=; echo down; fi; printf '\\036'\n\
         if [ -n \"$p\" ]; then $c {of_zone} {question} 2>&1; fi; printf '\\036'\n\
         $c $p {of_zone} {question} 2>&1; printf '\\036'\n\
         {}",
        match (&item, zone) {
            (Some(item), _) if item.option == "interface" => {
                let name = quote(&format!("--get-zone-of-interface={}", item.value.as_deref().unwrap_or_default()));
                format!("[ -z \"$p\" ] || $c {name} 2>/dev/null; printf '\\036'; $c $p {name} 2>/dev/null; :")
            }
            _ => ":".to_owned(),
        }
    );
    let footprint = Footprint::named("firewalld").and(Footprint::tree("/etc/firewalld"));
    let response = host.read(Script { text: script, footprint: footprint.clone() }).await?;
    if response.code == Some(127) {
        return Err(Failure::new("the host has no firewall-cmd: install firewalld"));
    }
    let parts = parts(&response, 5);
    let runs = parts[0].trim() == "running";
    let immediate = (args.bool("immediate") || !permanent) && item.is_some();
    if !runs && (!args.bool("offline") || !permanent) {
        return Err(Failure::new(
            "firewall is not currently running, unable to perform immediate actions without a running firewall daemon",
        ));
    }
    let immediate = immediate && runs;
    let now = |index: usize| state(parts[index].trim(), item.as_ref(), text("target"), zone);
    let mut layers = Vec::new();
    if immediate {
        layers.push(Layer { permanent: false, there: now(1)?, zone_before: parts[3].trim().to_owned() });
    }
    if permanent {
        layers.push(Layer { permanent: true, there: now(2)?, zone_before: parts[4].trim().to_owned() });
    }
    let kind = match (permanent, immediate) {
        (true, true) => "Permanent and Non-Permanent(immediate) operation",
        (true, false) => "Permanent operation",
        _ => "Non-permanent operation",
    };
    let request = Request {
        program: if runs { "firewall-cmd" } else { "firewall-offline-cmd" },
        of_zone: &of_zone,
        zone: zone.unwrap_or_default(),
        item: item.as_ref(),
        target: text("target"),
        wanted,
        timeout: args.int("timeout").unwrap_or(0),
        before: parts[2].trim(),
    };
    layers.retain(|layer| layer.there != wanted);
    if layers.is_empty() {
        return Ok(Outcome::ok().with("msg", kind));
    }
    let change = request.change(&layers, footprint);
    let differences = change.differences.clone();
    make(&host, change).await?;
    let done = format!("{kind}, Changed {} to {}", request.shown(), args.text("state"));
    Ok(Outcome::changed().with("msg", done).differences(differences))
}

/// The running firewall or the configuration, and what is there.
struct Layer {
    permanent: bool,
    there: bool,
    /// The zone that a network device belongs to.
    zone_before: String,
}

struct Request<'a> {
    program: &'static str,
    of_zone: &'a str,
    zone: &'a str,
    item: Option<&'a Item>,
    target: Option<&'a str>,
    wanted: bool,
    timeout: i64,
    /// The permanent answer: a target's old value.
    before: &'a str,
}

impl Request<'_> {
    fn shown(&self) -> String {
        match (self.item, self.target) {
            (Some(item), _) => item.shown.clone(),
            (None, Some(target)) => format!("target {target}"),
            (None, None) => format!("zone {}", self.zone),
        }
    }

    fn command(&self, layer: &Layer, wanted: bool) -> String {
        let permanent = if layer.permanent && self.program == "firewall-cmd" { " --permanent" } else { "" };
        let start = format!("{}{permanent}", self.program);
        match (self.item, self.target) {
            (Some(item), _) => {
                let verb = match (wanted, item.option) {
                    (true, "interface") => "change",
                    (true, _) => "add",
                    (false, _) => "remove",
                };
                let timeout = match wanted && !layer.permanent && self.timeout > 0 {
                    true => format!(" --timeout={}", self.timeout),
                    false => String::new(),
                };
                format!("{start} {} {}{timeout}", self.of_zone, item.word(verb))
            }
            (None, Some(target)) => {
                let target = if wanted { target } else { "default" };
                format!("{start} {} {}", self.of_zone, quote(&format!("--set-target={target}")))
            }
            (None, None) => {
                let verb = if wanted { "new" } else { "delete" };
                format!("{start} {}", quote(&format!("--{verb}-zone={}", self.zone)))
            }
        }
    }

    fn back(&self, layer: &Layer) -> String {
        match (self.item, self.target) {
            (Some(item), _) if item.option == "interface" && self.wanted && !layer.zone_before.is_empty() => {
                let permanent = if layer.permanent && self.program == "firewall-cmd" { " --permanent" } else { "" };
                let zone = quote(&format!("--zone={}", layer.zone_before));
                format!("{}{permanent} {zone} {}", self.program, item.word("change"))
            }
            (None, Some(_)) => {
                let old = quote(&format!("--set-target={}", self.before));
                format!(
                    "{}{} {} {old}",
                    self.program,
                    if layer.permanent && self.program == "firewall-cmd" { " --permanent" } else { "" },
                    self.of_zone
                )
            }
            _ => self.command(layer, !self.wanted),
        }
    }

    fn change(&self, layers: &[Layer], footprint: Footprint) -> Change {
        let what = format!("firewalld: {} {}", self.shown(), if self.wanted { "on" } else { "off" });
        let mut change = Change::uncertain(what, footprint);
        let mut back = Vec::new();
        let mut shown = (String::new(), String::new());
        for layer in layers {
            change = change.step(step(format!("{} >&2", self.command(layer, self.wanted))));
            back.insert(0, step(format!("{} >&2", self.back(layer))));
            let name = if layer.permanent { "permanent" } else { "now" };
            let word = |there: bool| if there { "yes" } else { "no" };
            shown.0.push_str(&format!("{name}: {}\n", word(layer.there)));
            shown.1.push_str(&format!("{name}: {}\n", word(self.wanted)));
        }
        let inverse = match (self.item, self.target, self.wanted) {
            (None, None, false) => Inverse::None(format!("what was in the zone {} is not known", self.zone)),
            _ => Inverse::Steps(back),
        };
        change.inverse(inverse).difference(Difference::new(self.shown(), shown.0, shown.1))
    }
}

/// What an answer of firewall-cmd says.
fn state(answer: &str, item: Option<&Item>, target: Option<&str>, zone: Option<&str>) -> Result<bool, Failure> {
    match (item, target) {
        (Some(_), _) => match answer {
            "yes" => Ok(true),
            "no" => Ok(false),
            other => Err(Failure::new(format!("firewall-cmd: {other}"))),
        },
        (None, Some(target)) if !answer.contains(' ') => Ok(answer == target),
        (None, Some(_)) => Err(Failure::new(format!("firewall-cmd: {answer}"))),
        (None, None) => Ok(answer.split_whitespace().any(|own| Some(own) == zone)),
    }
}

/// Whether it is to be there.
fn wanted(args: &Args, item: Option<&Item>) -> Result<bool, Failure> {
    let state = args.text("state");
    let of_zone = item.is_none();
    let wanted = match state {
        "present" | "absent" if !of_zone => {
            return Err(Failure::new(
                "absent and present state can only be used in zone level operations: use enabled or disabled",
            ));
        }
        "enabled" | "disabled" if of_zone && !args.has("target") => {
            return Err(Failure::new("a zone alone is `present` or `absent`; tell what is in it otherwise"));
        }
        "present" | "enabled" => true,
        _ => false,
    };
    let turned = ["masquerade", "forward", "icmp_block_inversion"];
    let is_turned = item.is_some_and(|item| {
        turned.iter().any(|name| item.option == name.replace('_', "-") && args.optional_bool(name) == Some(false))
    });
    Ok(wanted != is_turned)
}

fn item(args: &Args) -> Result<Option<Item>, Failure> {
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let plain: [(&str, &'static str); 7] = [
        ("service", "service"),
        ("port", "port"),
        ("protocol", "protocol"),
        ("rich_rule", "rich-rule"),
        ("source", "source"),
        ("interface", "interface"),
        ("icmp_block", "icmp-block"),
    ];
    for (name, option) in plain {
        let Some(value) = text(name) else { continue };
        if name == "port"
            && !value.split_once('/').is_some_and(|(port, protocol)| !port.is_empty() && !protocol.is_empty())
        {
            return Err(Failure::new("improper port format (missing protocol?)"));
        }
        if name == "interface" && text("zone").is_none() {
            return Err(Failure::new("zone is a required parameter with an interface"));
        }
        return Ok(Some(Item { shown: format!("{name} {value}"), option, value: Some(value) }));
    }
    for (name, option) in
        [("masquerade", "masquerade"), ("forward", "forward"), ("icmp_block_inversion", "icmp-block-inversion")]
    {
        if args.has(name) {
            return Ok(Some(Item { shown: name.to_owned(), option, value: None }));
        }
    }
    let Some(forwards) = args.get("port_forward").and_then(Value::as_list) else { return Ok(None) };
    let [forward] = forwards else {
        return Err(Failure::new("Only one port forward supported at a time"));
    };
    let part = |key: &str| forward.get(key).filter(|value| !value.is_null()).map(|value| value.to_text().into_owned());
    let known = forward
        .as_map()
        .is_some_and(|map| map.keys().all(|key| ["port", "proto", "toport", "toaddr"].contains(&&*key.to_text())));
    match (part("port"), part("proto"), part("toport")) {
        (Some(port), Some(proto), Some(toport)) if known => {
            let to = part("toaddr").map(|address| format!(":toaddr={address}")).unwrap_or_default();
            let value = format!("port={port}:proto={proto}:toport={toport}{to}");
            Ok(Some(Item { shown: format!("port_forward {value}"), option: "forward-port", value: Some(value) }))
        }
        _ => Err(Failure::new("`port_forward` needs `port`, `proto` and `toport`, and may have `toaddr`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, play, undo_in};

    /// Keeps one line an item: `LAYER ZONE OPTION=VALUE`.
    const FIREWALL_CMD: &str = r#"
case $(basename "$0") in firewall-offline-cmd) layer=permanent ;; *) layer=now ;; esac
[ -e "$D/down" ] && [ $layer = now ] && { echo 'not running' >&2; exit 252; }
zone=public; touch "$D/db" "$D/targets"
for w; do case $w in
--state) echo running; exit ;;
--permanent) layer=permanent ;;
--zone=*) zone=${w#*=} ;;
--timeout=*) echo "$w" >>"$D/log" ;;
--get-zones) echo block public $(sed -n 's/^zone //p' "$D/db"); exit ;;
--new-zone=*) echo "zone ${w#*=}" >>"$D/db"; exit ;;
--delete-zone=*) sed -i "/^zone ${w#*=}\$/d" "$D/db"; exit ;;
--get-target) t=$(sed -n "s/^$zone //p" "$D/targets"); echo "${t:-default}"; exit ;;
--set-target=*) echo "$zone ${w#*=}" >"$D/targets"; exit ;;
--get-zone-of-interface=*) sed -n "s/^$layer \([^ ]*\) interface=${w#*=}\$/\1/p" "$D/db" | grep . || { echo 'no zone' >&2; exit 2; }; exit ;;
--query-*) if [ "$w" = --query-service=nonsense ]; then echo "Error: INVALID_SERVICE: nonsense" >&2; exit 101; fi
 if grep -qxF -- "$layer $zone ${w#--query-}" "$D/db"; then echo yes; else echo no; exit 1; fi ;;
--add-*) echo "$layer $zone ${w#--add-}" >>"$D/db"; echo success ;;
--change-*) grep -vF -- " ${w#--change-}" "$D/db" >"$D/new"; grep -F -- " ${w#--change-}" "$D/db" | grep -v "^$layer" >>"$D/new"; mv "$D/new" "$D/db"; echo "$layer $zone ${w#--change-}" >>"$D/db"; echo success ;;
--remove-*) grep -vxF -- "$layer $zone ${w#--remove-}" "$D/db" >"$D/new"; mv "$D/new" "$D/db"; echo success ;;
*) echo "unknown $w" >&2; exit 2 ;;
esac; done"#;

    fn fake() -> FakePrograms {
        FakePrograms::new(&[("firewall-cmd", FIREWALL_CMD), ("firewall-offline-cmd", FIREWALL_CMD)])
    }

    fn given(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
        [&[("permanent", true.into()), ("immediate", true.into())], more].concat()
    }

    #[test]
    fn items_are_added_kept_removed_and_taken_back() {
        let forward = crate::value::object([("port", 443.into()), ("proto", "tcp".into()), ("toport", 8443.into())]);
        let cases: Vec<(&'static str, Value, &str)> = vec![
            ("service", "https".into(), "service=https"),
            ("port", "161-162/udp".into(), "port=161-162/udp"),
            ("rich_rule", "rule service name=\"ftp\" accept".into(), "rich-rule=rule service name=\"ftp\" accept"),
            ("source", "192.0.2.0/24".into(), "source=192.0.2.0/24"),
            ("interface", "eth2".into(), "interface=eth2"),
            ("masquerade", true.into(), "masquerade"),
            ("port_forward", Value::list(vec![forward.into()]), "forward-port=port=443:proto=tcp:toport=8443"),
        ];
        for (name, value, line) in cases {
            let fake = fake();
            let run = |state: &str, check| {
                let given = given(&[("zone", "dmz".into()), (name, value.clone()), ("state", state.into())]);
                play(&MODULE, &given, &Play { shell: fake.shell(), check })
            };
            assert!(run("enabled", true).result.unwrap().changed && fake.read("db").is_empty(), "{name}");
            let added = run("enabled", false);
            assert!(added.result.unwrap().changed);
            assert_eq!(fake.read("db"), format!("now dmz {line}\npermanent dmz {line}\n"));
            assert!(!run("enabled", false).result.unwrap().changed, "{name}");
            let removed = run("disabled", false);
            assert!(removed.result.unwrap().changed && fake.read("db").is_empty(), "{name}");
            assert!(!run("disabled", true).result.unwrap().changed);
            undo_in(&removed.changes, fake.shell());
            assert!(!run("enabled", true).result.unwrap().changed, "{name}");
            undo_in(&added.changes, fake.shell());
            assert_eq!(fake.read("db"), "", "{name}");
        }
    }

    #[test]
    fn zones_targets_and_devices() {
        let fake = fake();
        let run =
            |more: &[(&'static str, Value)]| play(&MODULE, &given(more), &Play { shell: fake.shell(), check: false });
        let zone = [("zone", "own".into()), ("state", "present".into())];
        let made = run(&zone);
        let outcome = made.result.unwrap();
        assert_eq!(outcome.result["msg"], "Permanent operation, Changed zone own to present".into());
        assert!(!run(&zone).result.unwrap().changed);
        let target = [("zone", "own".into()), ("state", "enabled".into()), ("target", "DROP".into())];
        let dropped = run(&target);
        assert!(dropped.result.unwrap().changed && !run(&target).result.unwrap().changed);
        undo_in(&dropped.changes, fake.shell());
        assert_eq!(fake.read("targets"), "own default\n");
        fake.write("db", "now public interface=eth0\npermanent public interface=eth0\n");
        let moved = run(&[("zone", "own".into()), ("state", "enabled".into()), ("interface", "eth0".into())]);
        assert!(moved.result.unwrap().changed);
        undo_in(&moved.changes, fake.shell());
        assert!(fake.read("db").contains("now public interface=eth0") && !fake.read("db").contains(" own "));
    }

    #[test]
    fn a_firewall_that_is_down_is_configured_only_if_asked() {
        let fake = fake();
        fake.write("down", "");
        let run = |more: &[(&'static str, Value)]| {
            let own = [("service", "ssh".into()), ("state", "enabled".into()), ("permanent", true.into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { shell: fake.shell(), check: false }).result
        };
        assert!(run(&[]).unwrap_err().message.starts_with("firewall is not currently running"));
        assert!(run(&[("offline", true.into())]).unwrap().changed);
        assert_eq!(fake.read("db"), "permanent public service=ssh\n");
        assert!(!run(&[("offline", true.into())]).unwrap().changed);
        let failed = |more: &[(&'static str, Value)]| {
            std::fs::remove_file(fake.file("down")).unwrap_or_default();
            play(&MODULE, more, &Play { shell: fake.shell(), check: true }).result.unwrap_err().message
        };
        assert!(failed(&[("service", "nonsense".into()), ("state", "enabled".into())]).contains("INVALID_SERVICE"));
        assert!(failed(&[("port", "80".into()), ("state", "enabled".into())]).contains("missing protocol"));
        assert!(failed(&[("service", "ssh".into()), ("state", "present".into())]).contains("zone level"));
        assert!(failed(&[("zone", "x".into()), ("state", "present".into())]).contains("`permanent: true`"));
    }
}
