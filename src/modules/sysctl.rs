//! ansible.posix.sysctl: parameters of the kernel, in a file for the next boot and now.

use futures_util::future::try_join_all;
use futures_util::try_join;

use crate::connect::shell::Response;
use crate::host::reads::{KernelFile, Script};
use crate::host::{Change, Difference, Failure, FailureKind, Footprint, Host, Inverse, Query, Step, Subject};
use crate::tuning::dirty_pair::{DirtyPair, partner};
use crate::tuning::sysctl_files::{SysctlFile, canonical_key, dotted_key, parse};
use crate::tuning::sysctl_value::{Policy, Rounding, SysctlValue, target};
use crate::tuning::write_error::Interface;
use crate::value::{Interruption, Value};

use super::file_common::content::difference;
use super::file_common::destination::{Destination, Manner, look, plan_edit};
use super::kernel_write::{explained, write_step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "ansible.posix.sysctl",
    aliases: &[],
    summary: "Sets parameters of the kernel, in a file for the next boot and now",
    args: &[
        Arg::new("name", Type::Str, "The parameter, with dots or slashes").aliases(&["key"]).required(),
        Arg::new("value", Type::Raw, "Its value").aliases(&["val"]),
        Arg::new("state", Type::Str, "Whether the file has it").default("present").choices(&["present", "absent"]),
        Arg::new("sysctl_file", Type::Path, "The file").default("/etc/sysctl.conf"),
        Arg::new("sysctl_set", Type::Bool, "Set it now too, whether or not the file is changed").default("false"),
        Arg::new("reload", Type::Bool, "If the file is changed, set now whatever it says").default("true"),
        Arg::new("ignoreerrors", Type::Bool, "Do not fail for parameters that this kernel does not have")
            .default("false"),
    ],
    rules: &[Rule::RequiredIf("state", "present", &["value"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("name", "the parameter"),
        ("value", "its value as the kernel has it in the end, if it was looked at"),
        ("sysctl_file", "the file"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    let beside = partner(&dotted_key(&wanted.key)).map(canonical_key);
    let (present, beside_present, interfaces, file) = try_join!(
        host.read(KernelFile(proc_path(&wanted.key))),
        read_beside(&host, beside.as_deref()),
        interfaces(&host, &wanted.key),
        look(&host, &args, args.text("sysctl_file"), false),
    )?;
    let old = String::from_utf8_lossy(file.content.as_deref().unwrap_or_default()).into_owned();
    let new = edited(&old, &wanted);
    let mut outcome = Outcome::ok();

    let set_now = wanted.value.is_some() && (wanted.set || wanted.reload && new.is_some());
    let mut kernel = present.clone();
    if set_now {
        let now = Now { value: present.as_deref(), beside: beside_present.as_deref(), interfaces: &interfaces };
        let plan = plan(&wanted.key, wanted.text(), &now);
        match skip_unknown(plan, wanted.ignore_errors)? {
            Planned::Right => {}
            Planned::Warned(warning) => outcome = outcome.warning(warning),
            Planned::Set(change, value) => {
                outcome = apply(&host, change, outcome).await?;
                kernel = Some(value);
            }
        }
    } else if let Some(warning) = wanted.difference_to_kernel(present.as_deref()) {
        outcome = outcome.warning(warning);
    }
    if let Some(new) = new {
        outcome = write_file(&host, &file, &old, &new, outcome).await?;
        if wanted.reload {
            outcome = load_others(&host, &file.named, &new, &wanted, outcome).await?;
        }
    }
    let kernel: Value = kernel.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).into();
    Ok(outcome.with("name", args.text("name")).with("value", kernel).with("sysctl_file", args.text("sysctl_file")))
}

/// What the arguments ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    /// As the user writes it, for the file.
    name: String,
    /// The path below `/proc/sys`.
    key: String,
    /// `None`: the file is not to have it.
    value: Option<String>,
    set: bool,
    reload: bool,
    ignore_errors: bool,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let name = args.text("name").trim().to_owned();
        let key = canonical_key(&name);
        let is_safe = !key.is_empty() && key.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_safe || name.contains(['=', '\n']) {
            return Err(Failure::new(format!("`{name}` is not the name of a kernel parameter")));
        }
        let value = args.get("value").filter(|_| args.text("state") == "present").map(value_text);
        if value.as_deref() == Some("") {
            return Err(Failure::new(format!("value cannot be None or empty (parameter `{name}`)")));
        }
        if value.as_deref().is_some_and(|value| value.contains('\n')) {
            return Err(Failure::new(format!("the value of `{name}` has more than one line")));
        }
        Ok(Wanted {
            name,
            key,
            value,
            set: args.bool("sysctl_set"),
            reload: args.bool("reload"),
            ignore_errors: args.bool("ignoreerrors"),
        })
    }

    fn text(&self) -> &str {
        self.value.as_deref().unwrap_or_default()
    }

    /// Ansible does nothing about a kernel that differs from a file that is right; this says so.
    fn difference_to_kernel(&self, present: Option<&str>) -> Option<String> {
        let (wanted, present) = (self.value.as_deref()?, present?);
        let differs = SysctlValue::parse(wanted) != SysctlValue::read(present);
        differs.then(|| {
            format!(
                "the file has `{} = {wanted}` but the kernel has `{}` now; `sysctl_set: true` sets it now too",
                self.name,
                present.trim()
            )
        })
    }
}

/// Yes and no are 1 and 0 to the kernel.
fn value_text(value: &Value) -> String {
    let text = value.to_text();
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "t" => "1".to_owned(),
        "false" | "no" | "off" | "n" | "f" => "0".to_owned(),
        _ => text.trim().to_owned(),
    }
}

pub(super) fn proc_path(key: &str) -> String {
    format!("/proc/sys/{key}")
}

pub(super) async fn read_beside(host: &Host, key: Option<&str>) -> Result<Option<String>, Failure> {
    match key {
        Some(key) => host.read(KernelFile(proc_path(key))).await,
        None => Ok(None),
    }
}

/// What a parameter comes to.
#[derive(Debug)]
pub(super) enum Planned {
    Right,
    /// The change, and what the kernel reads then.
    Set(Change, String),
    /// Not set, for this reason.
    Warned(String),
}

fn skip_unknown(plan: Result<Planned, Failure>, ignore_errors: bool) -> Result<Planned, Failure> {
    match plan {
        Err(failure) if ignore_errors => Ok(Planned::Warned(failure.message)),
        plan => plan,
    }
}

/// What the kernel has now.
#[derive(Debug, Default)]
pub(super) struct Now<'a> {
    pub(super) value: Option<&'a str>,
    /// Of the parameter that is the other form of this one.
    pub(super) beside: Option<&'a str>,
    /// The interfaces to which the parameter is handed on.
    pub(super) interfaces: &'a [String],
}

/// Decides the write to the kernel.
pub(super) fn plan(key: &str, wanted: &str, kernel: &Now<'_>) -> Result<Planned, Failure> {
    let name = dotted_key(key);
    let Some(present) = kernel.value else {
        return Err(Failure::new(format!(
            "this kernel has no readable parameter `{name}`: it may need a module that is not loaded, or the name is wrong"
        )));
    };
    let now = SysctlValue::read(present);
    let rounding = if name == "net.core.rps_sock_flow_entries" { Rounding::PowerOfTwo } else { Rounding::None };
    let goal = target(&now, &SysctlValue::parse(wanted), Policy::Exact, rounding)
        .map_err(|error| Failure { message: format!("`{name}`: {}", error.message()), ..Failure::from(error) })?;
    if goal == now {
        return Ok(Planned::Right);
    }
    let path = proc_path(key);
    let reads = as_read(&goal);
    let mut change = Change::certain(format!("sysctl {name}"), footprint(key, kernel.interfaces))
        .step(write_step(&path, &goal.to_string(), &reads))
        .leaves(Query::Line(path.clone()), Response::output(reads.as_str()))
        .difference(Difference::new(format!("sysctl {name}"), format!("{now}\n"), format!("{goal}\n")))
        .inverse(Inverse::Steps(vec![back(key, &now, kernel.beside)]));
    if let Some(other) = partner(&name) {
        change = change.leaves(Query::Line(proc_path(&canonical_key(other))), Response::output("0"));
    }
    Ok(Planned::Set(change, reads))
}

/// As the kernel prints it: numbers apart by TABs.
fn as_read(value: &SysctlValue) -> String {
    match value.numbers() {
        Some(numbers) => numbers.iter().map(i128::to_string).collect::<Vec<_>>().join("\t"),
        None => value.to_string(),
    }
}

/// The write that restores the parameter: of a pair only the form that was in force, since (0, 0) would stop all writers.
fn back(key: &str, now: &SysctlValue, beside: Option<&str>) -> Step {
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    let own = now.numbers().and_then(|numbers| u64::try_from(*numbers.first()?).ok()).unwrap_or(0);
    for (suffix, other) in [("ratio", "bytes"), ("bytes", "ratio")] {
        if let Some(stem) =
            key.strip_suffix(suffix).filter(|stem| partner(&dotted_key(key)).is_some() && stem.ends_with('_'))
        {
            let pair = match other {
                "bytes" => DirtyPair { ratio: own, bytes: number(beside) },
                _ => DirtyPair { ratio: number(beside), bytes: own },
            };
            let (form, value) = pair.restoring_write();
            return write_step(&proc_path(&format!("{stem}{form}")), &value.to_string(), &value.to_string());
        }
    }
    write_step(&proc_path(key), &now.to_string(), &as_read(now))
}

/// Family and parameter of `net/ipv4/conf/<interface>/<parameter>`, and the interface.
fn interface_key(key: &str) -> Option<(&str, &str, &str)> {
    let (family, rest) = key.strip_prefix("net/")?.split_once("/conf/")?;
    let (interface, parameter) = rest.split_once('/')?;
    Some((family, interface, parameter))
}

/// The interfaces that take over what is written to `default` (ip-sysctl; net/ipv4/devinet.c: all that have no value
/// of their own), or for some parameters of IPv6 to `all`.
async fn interfaces(host: &Host, key: &str) -> Result<Vec<String>, Failure> {
    let handed_on = ["disable_ipv6", "ignore_routes_with_linkdown", "addr_gen_mode", "stable_secret"];
    let family = match interface_key(key) {
        Some((family @ "ipv4", "default", _)) => family,
        Some((family @ "ipv6", "all" | "default", parameter)) if handed_on.contains(&parameter) => family,
        _ => return Ok(Vec::new()),
    };
    let directory = format!("/proc/sys/net/{family}/conf");
    let text = format!("for i in {directory}/*; do printf '%s\\n' \"${{i##*/}}\"; done");
    let listing = host.read(Script { text, footprint: Footprint::path(directory) }).await?;
    // `all` and `default` are no interfaces; those of IPv6 are told of what is written to the other
    let is_interface = |name: &&str| family == "ipv6" || !matches!(*name, "all" | "default");
    Ok(listing.text().lines().filter(is_interface).map(str::to_owned).collect())
}

/// What changes with a parameter.
fn footprint(key: &str, interfaces: &[String]) -> Footprint {
    let mut subjects = vec![Subject::Path(proc_path(key))];
    subjects.extend(partner(&dotted_key(key)).map(|other| Subject::Path(proc_path(&canonical_key(other)))));
    match (key, interface_key(key)) {
        // one form of a pair clears the other
        ("vm/overcommit_ratio", _) => subjects.push(Subject::Path(proc_path("vm/overcommit_kbytes"))),
        ("vm/overcommit_kbytes", _) => subjects.push(Subject::Path(proc_path("vm/overcommit_ratio"))),
        ("vm/nr_hugepages" | "vm/nr_hugepages_mempolicy", _) => {
            subjects.extend([Subject::Tree(proc_path("vm")), Subject::Tree("/sys/kernel/mm".into())]);
        }
        // forwarding is handed on, and resets other parameters
        ("net/ipv4/ip_forward", _) | (_, Some(("ipv4", _, "forwarding"))) => {
            subjects.push(Subject::Tree(proc_path("net/ipv4")));
        }
        (_, Some(("ipv6", _, "forwarding"))) => subjects.push(Subject::Tree(proc_path("net/ipv6"))),
        (_, Some((family, _, parameter))) => {
            let paths = interfaces.iter().map(|name| proc_path(&format!("net/{family}/conf/{name}/{parameter}")));
            subjects.extend(paths.map(Subject::Path));
        }
        _ => {}
    }
    Footprint::Of(subjects)
}

pub(super) async fn apply(host: &Host, change: Change, outcome: Outcome) -> Result<Outcome, Failure> {
    let differences = change.differences.clone();
    host.change(change).await.map_err(|failure| explained(failure, Interface::Sysctl, true))?;
    Ok(Outcome { changed: true, ..outcome }.differences(differences))
}

/// The file's text with the parameter set or removed; `None` if it is right already.
///
/// Only lines of this parameter are touched: the last keeps its place, others of the same name go.
fn edited(text: &str, wanted: &Wanted) -> Option<String> {
    let settings = parse(SysctlFile { path: "", text });
    let own: Vec<usize> = settings
        .iter()
        .filter(|setting| setting.key == wanted.key && setting.value.is_some())
        .map(|s| s.line)
        .collect();
    let last = settings.iter().rfind(|setting| setting.key == wanted.key && setting.value.is_some());
    let same = |value: &str| SysctlValue::parse(value) == SysctlValue::parse(wanted.text());
    let is_right = match (&wanted.value, last) {
        (None, None) => true,
        (Some(_), Some(last)) => own.len() == 1 && last.value.as_deref().is_some_and(same),
        _ => false,
    };
    if is_right {
        return None;
    }
    let keep = wanted.value.as_ref().and(last);
    let mut new = String::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        match keep {
            Some(keep) if keep.line == number => {
                let dash = if keep.ignore_errors { "-" } else { "" };
                new.push_str(&format!("{dash}{}={}\n", wanted.name, wanted.text()));
            }
            _ if own.contains(&number) => {}
            _ => new.push_str(line),
        }
    }
    if wanted.value.is_some() && keep.is_none() {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new.push_str(&format!("{}={}\n", wanted.name, wanted.text()));
    }
    Some(new)
}

async fn write_file(
    host: &Host,
    file: &Destination,
    old: &str,
    new: &str,
    outcome: Outcome,
) -> Result<Outcome, Failure> {
    let manner = Manner { backup: None, validate: None, unsafe_writes: false };
    let Some(mut change) = plan_edit(file, Some(new.as_bytes().to_vec()), &manner).change else { return Ok(outcome) };
    let shown = difference((&file.named, &file.named), Some(old.as_bytes()), false, new.as_bytes());
    change = change.difference(shown.clone());
    host.change(change).await?;
    Ok(Outcome { changed: true, ..outcome }.differences([shown]))
}

/// Sets now what else the file says, as loading it would. What this kernel does not have is told, no failure.
async fn load_others(
    host: &Host,
    path: &str,
    text: &str,
    wanted: &Wanted,
    mut outcome: Outcome,
) -> Result<Outcome, Failure> {
    let settings = parse(SysctlFile { path, text });
    let is_last = |index: usize| settings[index + 1..].iter().all(|later| later.key != settings[index].key);
    let others: Vec<(&str, &str)> = settings
        .iter()
        .enumerate()
        .filter(|(index, setting)| setting.key != wanted.key && is_last(*index))
        .filter_map(|(_, setting)| Some((setting.key.as_str(), setting.value.as_deref()?)))
        .filter(|(key, _)| !key.contains(['*', '?', '[']))
        .collect();
    let beside: Vec<Option<String>> =
        others.iter().map(|(key, _)| partner(&dotted_key(key)).map(canonical_key)).collect();
    let known = try_join!(
        try_join_all(others.iter().map(|(key, _)| host.read(KernelFile(proc_path(key))))),
        try_join_all(beside.iter().map(|key| read_beside(host, key.as_deref()))),
        try_join_all(others.iter().map(|(key, _)| interfaces(host, key))),
    );
    let (present, beside, interfaces) = match known {
        // what check mode cannot know of other parameters says nothing against this one
        Err(failure)
            if host.is_check() && matches!(failure.kind, FailureKind::Interrupted(Interruption::Unknown(_))) =>
        {
            return Ok(outcome);
        }
        known => known?,
    };
    for (index, (key, value)) in others.iter().enumerate() {
        let kernel =
            Now { value: present[index].as_deref(), beside: beside[index].as_deref(), interfaces: &interfaces[index] };
        match skip_unknown(plan(key, value, &kernel), true)? {
            Planned::Right => {}
            Planned::Warned(warning) => outcome = outcome.warning(format!("{path}: {warning}")),
            Planned::Set(change, _) => outcome = apply(host, change, outcome).await?,
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::args::validate;
    use crate::modules::testing::{Play, check_module, play, run_module, undo};
    use crate::value::object;

    fn wanted(name: &str, value: Option<&str>) -> Wanted {
        let state = if value.is_some() { "present" } else { "absent" };
        let given = object([("name", name.into()), ("value", value.into()), ("state", state.into())]);
        Wanted::parse(&validate(&MODULE, &given).unwrap()).unwrap()
    }

    #[test]
    fn only_lines_of_the_parameter_are_touched() {
        let text = "# mine\nvm.swappiness = 60\n\n net.core.somaxconn=128\n-kernel/panic = 5\nnet.ipv4.tcp_rmem = 4096 87380 1\n";
        let cases: &[(&str, Option<&str>, Option<&str>)] = &[
            ("vm.swappiness", Some("60"), None),
            ("vm/swappiness", Some("0x3c"), None),
            ("net.ipv4.tcp_rmem", Some("4096\t87380\t1"), None),
            ("vm.zone_reclaim_mode", None, None),
            (
                "vm.swappiness",
                Some("1"),
                Some(
                    "# mine\nvm.swappiness=1\n\n net.core.somaxconn=128\n-kernel/panic = 5\nnet.ipv4.tcp_rmem = 4096 87380 1\n",
                ),
            ),
            (
                "kernel.panic",
                Some("9"),
                Some(
                    "# mine\nvm.swappiness = 60\n\n net.core.somaxconn=128\n-kernel.panic=9\nnet.ipv4.tcp_rmem = 4096 87380 1\n",
                ),
            ),
            (
                "net.core.somaxconn",
                None,
                Some("# mine\nvm.swappiness = 60\n\n-kernel/panic = 5\nnet.ipv4.tcp_rmem = 4096 87380 1\n"),
            ),
        ];
        for (name, value, new) in cases {
            assert_eq!(edited(text, &wanted(name, *value)).as_deref(), *new, "{name} {value:?}");
        }
        assert_eq!(edited("a.b=1", &wanted("c.d", Some("2"))).as_deref(), Some("a.b=1\nc.d=2\n"));
        assert_eq!(edited("a.b=1\nx=2\na.b=2\n", &wanted("a.b", Some("2"))).as_deref(), Some("x=2\na.b=2\n"));
    }

    #[test]
    fn values_are_what_the_kernel_means() {
        let set = |key: &str, value: &str, present: &str| match plan(
            key,
            value,
            &Now { value: Some(present), ..Now::default() },
        )
        .unwrap()
        {
            Planned::Set(change, _) => change.steps[0].expect.clone(),
            _ => None,
        };
        assert_eq!(set("net/ipv4/tcp_rmem", "4096 87380 16777216", "4096\t87380\t16777216"), None);
        assert_eq!(set("net/core/somaxconn", "0x400", "1024"), None);
        assert_eq!(set("net/ipv4/tcp_rmem", "8192", "4096\t87380\t16777216"), Some("8192\t87380\t16777216".into()));
        assert_eq!(set("net/core/rps_sock_flow_entries", "30000", "0"), Some("32768".into()));
        assert_eq!(set("net/ipv4/tcp_congestion_control", "bbr", "cubic"), Some("bbr".into()));
        assert!(plan("net/core/somaxconn", "1 2", &Now { value: Some("128"), ..Now::default() }).is_err());
        assert!(plan("net/core/no_such", "1", &Now::default()).unwrap_err().message.contains("net.core.no_such"));
    }

    #[test]
    fn yes_and_no_are_numbers() {
        for (given, text) in
            [(Value::Bool(true), "1"), ("off".into(), "0"), (60.into(), "60"), (" a  b ".into(), "a  b")]
        {
            assert_eq!(value_text(&given), text);
        }
    }

    #[test]
    fn of_a_pair_the_form_that_was_in_force_is_restored() {
        let cases = [
            ("vm/dirty_ratio", "20", Some("0"), "/proc/sys/vm/dirty_ratio", "20"),
            ("vm/dirty_ratio", "0", Some("65536"), "/proc/sys/vm/dirty_bytes", "65536"),
            ("vm/dirty_background_bytes", "0", Some("10"), "/proc/sys/vm/dirty_background_ratio", "10"),
        ];
        for (key, present, beside, path, value) in cases {
            let Planned::Set(change, _) =
                plan(key, "5", &Now { value: Some(present), beside, interfaces: &[] }).unwrap()
            else {
                panic!("{key}")
            };
            assert_eq!(change.inverse, Inverse::Steps(vec![write_step(path, value, value)]), "{key}");
            let other = proc_path(&canonical_key(partner(&dotted_key(key)).unwrap()));
            assert!(change.footprint.touches(&Footprint::path(other.as_str())), "{key}");
            assert!(change.effects.contains(&(Query::Line(other), Response::output("0"))), "{key}");
        }
    }

    #[test]
    fn what_is_handed_on_to_other_interfaces_is_known() {
        let touches = |key: &str, other: &str| {
            footprint(key, &["all".into(), "eth0".into()]).touches(&Footprint::path(proc_path(other)))
        };
        assert!(touches("net/ipv4/ip_forward", "net/ipv4/conf/eth0/forwarding"));
        assert!(touches("net/ipv4/conf/default/rp_filter", "net/ipv4/conf/eth0/rp_filter"));
        assert!(!touches("net/ipv4/conf/default/rp_filter", "net/ipv4/conf/eth0/log_martians"));
        assert!(!touches("net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../../etc/passwd", "", "a//b", "a=b"] {
            let given = object([("name", name.into()), ("value", 1.into())]);
            assert!(Wanted::parse(&validate(&MODULE, &given).unwrap()).is_err(), "{name}");
        }
    }

    /// A number that the kernel keeps for whoever wants to note one at an interface, and never uses (ip-sysctl: `tag`).
    const TAG: &str = "/proc/sys/net/ipv4/conf/lo/tag";

    #[test]
    fn kernel_and_file_are_set_once_and_restored() {
        let Ok(before) = std::fs::read_to_string(TAG) else { return };
        if std::fs::write(TAG, &before).is_err() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("99-test.conf");
        std::fs::write(&file, "# kept\n").unwrap();
        let given: Vec<(&str, Value)> = vec![
            ("name", "net.ipv4.conf.lo.tag".into()),
            ("value", "0x2a".into()),
            ("sysctl_file", file.to_string_lossy().as_ref().into()),
        ];
        assert!(check_module(&MODULE, &given).unwrap().changed);
        assert_eq!(std::fs::read_to_string(TAG).unwrap(), before);
        let played = play(&MODULE, &given, &Play::default());
        assert!(played.result.unwrap().changed);
        assert_eq!((played.changes.len(), std::fs::read_to_string(TAG).unwrap().trim()), (2, "42"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# kept\nnet.ipv4.conf.lo.tag=0x2a\n");
        assert!(!run_module(&MODULE, &given).unwrap().changed);
        undo(&played.changes);
        assert_eq!(std::fs::read_to_string(TAG).unwrap(), before);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "# kept\n");
        std::fs::write(TAG, before).unwrap();
    }

    #[test]
    fn unknown_parameters_fail_unless_errors_are_ignored() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("x.conf");
        let mut given: Vec<(&str, Value)> = vec![
            ("name", "net.core.no_such_key".into()),
            ("value", 1.into()),
            ("sysctl_file", file.to_string_lossy().as_ref().into()),
        ];
        assert!(run_module(&MODULE, &given).unwrap_err().message.contains("net.core.no_such_key"));
        assert!(!file.exists());
        given.push(("ignoreerrors", true.into()));
        let outcome = run_module(&MODULE, &given).unwrap();
        assert!(outcome.changed && outcome.warnings.len() == 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "net.core.no_such_key=1\n");
    }
}
