//! `trimtab.tuning.io_scheduler`: scheduler and queue of block devices, now and after the next boot.

use futures_util::future::try_join_all;
use futures_util::join;

use super::file_common::content::difference;
use crate::connect::shell::{Response, quote};
use crate::host::reads::{KernelFile, Script};
use crate::host::{Change, Difference, Failure, FailureKind, Footprint, Host, Inverse, Query, Step, Subject};
use crate::tuning::bracket::Choice;
use crate::tuning::device::{BlockDevice, Identity, Selector, parse_devices, select};
use crate::tuning::scheduler::{
    Decision, RequestCount, choose, is_single_queue, parse_attribute, predict_request_count, prints_none_first,
    request_count_after_change, rounded_nomerges, rounded_read_ahead, shown_after, takes_rq_affinity,
};
use crate::tuning::udev::{QueueSettings, assigns, merge};
use crate::tuning::write_error::Interface;
use crate::value::{Interruption, Value, object};

use super::file_common::destination::{Manner, look, plan_edit};
use super::kernel_write::{explained, write_step};
use super::{Action, Arg, Args, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "trimtab.tuning.io_scheduler",
    aliases: &[],
    summary: "Sets the I/O scheduler and queue of block devices, now and by a udev rule for the next boot",
    args: &[
        Arg::new(
            "devices",
            Type::List,
            "the disks: names, patterns, links below /dev/disk, `class:nvme|ssd|hdd|virtio`, `wwn:…`, `serial:…`",
        )
        .required()
        .aliases(&["device"]),
        Arg::new("exclude", Type::List, "disks to leave alone, named in the same ways"),
        Arg::new(
            "scheduler",
            Type::List,
            "the scheduler; of several the first that the disk offers. `deadline` and `noop` are known by their new names too",
        ),
        Arg::new("nr_requests", Type::Int, "requests that the queue holds"),
        Arg::new(
            "above_maximum",
            Type::Str,
            "what to do where nr_requests is above what the queue can hold: fail, or take the maximum",
        )
        .default("fail")
        .choices(&["fail", "maximum"]),
        Arg::new("read_ahead_kb", Type::Int, "KiB read ahead; rounded down to whole pages"),
        Arg::new(
            "rq_affinity",
            Type::Int,
            "where a request is completed: 0 anywhere, 1 near, 2 on the CPU that sent it",
        ),
        Arg::new("nomerges", Type::Int, "merging of requests: 0 all kinds, 1 simple ones only, 2 none"),
        Arg::new("persist", Type::Bool, "write a udev rule, so that it holds after the next boot").default("true"),
        Arg::new("rule_file", Type::Path, "the file for the udev rules")
            .default("/etc/udev/rules.d/99-trimtab-io.rules"),
    ],
    rules: &[Rule::RequiredOneOf(&["scheduler", "nr_requests", "read_ahead_kb", "rq_affinity", "nomerges"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("devices", "for each disk its name, state (ok, changed, unsupported), scheduler and nr_requests"),
        ("left_out", "disks that a pattern or class would take but that are no ordinary disks, with the reason"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

const HEADER: &str = "Settings of block devices, written by trimtab. Changes of other devices' lines are kept.";

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let wanted = Wanted::parse(&args)?;
    // Disks named outright are asked at the same time as the list of all.
    let named: Vec<&str> = wanted
        .devices
        .iter()
        .filter_map(|selector| match selector {
            Selector::Name(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let (list, _, page, rules) = join!(
        host.read(list_devices()),
        try_join_all(named.iter().map(|name| read_queue(&host, name, &wanted))),
        read_page_size(&host, &wanted),
        read_other_rules(&host, &wanted),
    );
    let devices = parse_devices(&list?.text());
    let (page_kib, rules) = (page?, rules?);
    let selection = select(&devices, &wanted.devices, &wanted.exclude);
    check_all_found(&wanted, &selection.without_device)?;

    let queues = try_join_all(selection.devices.iter().map(|device| read_queue(&host, &device.name, &wanted))).await?;
    let mut plans = Vec::new();
    for (device, queue) in selection.devices.iter().zip(&queues) {
        let plan = plan(&wanted, device, queue, page_kib);
        plans.push(
            plan.map_err(|failure| Failure { message: format!("{}: {}", device.name, failure.message), ..failure })?,
        );
    }

    let mut outcome = Outcome::ok();
    let rule_change = match wanted.rule_file.as_deref() {
        Some(path) => plan_rules(&host, &args, path, &plans).await?,
        None => None,
    };
    for plan in &plans {
        if let Some(change) = &plan.change {
            outcome.changed = true;
            outcome = outcome.differences(change.differences.iter().cloned());
            host.change(change.clone()).await.map_err(|failure| explained(failure, plan.interface, true))?;
        }
    }
    if let Some(change) = rule_change {
        outcome.changed = true;
        outcome = outcome.differences(change.differences.iter().cloned());
        host.change(change).await?;
    }
    for warning in plans.iter().flat_map(|plan| &plan.warnings).chain(&rules) {
        outcome = outcome.warning(warning.as_str());
    }
    let left_out = selection
        .left_out
        .iter()
        .map(|(name, reason)| Value::from(object([("name", (*name).into()), ("reason", (*reason).into())])));
    Ok(outcome
        .with("devices", Value::list(plans.iter().map(Plan::to_value).collect()))
        .with("left_out", Value::list(left_out.collect())))
}

/// What the arguments ask for.
#[derive(Debug)]
struct Wanted {
    devices: Vec<Selector>,
    exclude: Vec<Selector>,
    schedulers: Vec<String>,
    nr_requests: Option<u64>,
    take_maximum: bool,
    /// Other attributes of the queue, in the order in which they are written.
    attributes: Vec<(&'static str, u64)>,
    rule_file: Option<String>,
}

impl Wanted {
    fn parse(args: &Args) -> Result<Wanted, Failure> {
        let selectors =
            |name: &str| args.list(name).iter().map(|text| Selector::parse(text)).collect::<Result<Vec<_>, _>>();
        let number = |name: &str| match args.int(name) {
            Some(number) => u64::try_from(number)
                .map(Some)
                .map_err(|_| Failure::new(format!("{name} cannot be negative: {number}"))),
            None => Ok(None),
        };
        let mut attributes = Vec::new();
        for name in ["read_ahead_kb", "rq_affinity", "nomerges"] {
            if let Some(value) = number(name)? {
                attributes.push((name, value));
            }
        }
        for (name, value) in &attributes {
            let taken = match *name {
                "rq_affinity" => takes_rq_affinity(*value),
                "nomerges" => rounded_nomerges(*value) == *value,
                _ => true,
            };
            if !taken {
                return Err(Failure::new(format!("{name} is 0, 1 or 2, not {value}")));
            }
        }
        Ok(Wanted {
            devices: selectors("devices")?,
            exclude: selectors("exclude")?,
            schedulers: args.list("scheduler"),
            nr_requests: number("nr_requests")?,
            take_maximum: args.text("above_maximum") == "maximum",
            attributes,
            rule_file: args.bool("persist").then(|| args.text("rule_file").to_owned()),
        })
    }
}

/// The list of block devices: sysfs and udev's database, all by the shell itself.
fn list_devices() -> Script {
    let text = r#"cd /sys/block 2>/dev/null || exit 0
for d in *; do
  [ -e "$d/size" ] || continue
  printf 'name=%s\n' "$d"
  for f in size removable ro hidden queue/rotational dev; do
    v=
    { read -r v <"$d/$f"; } 2>/dev/null
    printf '%s=%s\n' "$f" "$v"
  done
  [ -r "/run/udev/data/b$v" ] || continue
  while read -r l; do
    case $l in S:* | E:ID_WWN=* | E:ID_SERIAL=*) printf '%s\n' "$l" ;; esac
  done <"/run/udev/data/b$v"
done"#;
    Script { text: text.to_owned(), footprint: Footprint::named("block devices") }
}

/// The queue of one disk as it was read, each text without its newline.
#[derive(Debug, Clone, Default)]
struct Queue {
    scheduler: Option<String>,
    nr_requests: Option<String>,
    /// The depth of the hardware queue.
    tags: Option<String>,
    /// The kernel prints `none` before the schedulers.
    none_first: bool,
    /// In the order of the wanted attributes.
    attributes: Vec<Option<String>>,
}

fn queue_path(device: &str, file: &str) -> String {
    format!("/sys/block/{device}/queue/{file}")
}

async fn read_queue(host: &Host, device: &str, wanted: &Wanted) -> Result<Queue, Failure> {
    let (scheduler, nr_requests, tags, release, attributes) = join!(
        host.read(KernelFile(queue_path(device, "scheduler"))),
        host.read(KernelFile(queue_path(device, "nr_requests"))),
        host.read(KernelFile(format!("/sys/block/{device}/mq/0/nr_tags"))),
        host.read(KernelFile("/proc/sys/kernel/osrelease".to_owned())),
        try_join_all(wanted.attributes.iter().map(|(name, _)| host.read(KernelFile(queue_path(device, name))))),
    );
    let none_first = release?.is_some_and(|release| prints_none_first(&release));
    Ok(Queue { scheduler: scheduler?, nr_requests: nr_requests?, tags: tags?, none_first, attributes: attributes? })
}

/// The page size in KiB, where it decides what a value is rounded to.
async fn read_page_size(host: &Host, wanted: &Wanted) -> Result<u64, Failure> {
    if !wanted.attributes.iter().any(|(name, _)| *name == "read_ahead_kb") {
        return Ok(1);
    }
    let answer = host.read(Script { text: "getconf PAGESIZE".to_owned(), footprint: Footprint::nothing() }).await?;
    let bytes: u64 = answer.text().trim().parse().map_err(|_| Failure::new("`getconf PAGESIZE` gives no page size"))?;
    Ok((bytes / 1024).max(1))
}

/// Warnings of lines in other rule files that set what is wanted here.
async fn read_other_rules(host: &Host, wanted: &Wanted) -> Result<Vec<String>, Failure> {
    let Some(own) = &wanted.rule_file else { return Ok(Vec::new()) };
    let text = "for f in /etc/udev/rules.d/*.rules /run/udev/rules.d/*.rules /usr/local/lib/udev/rules.d/*.rules \
                /usr/lib/udev/rules.d/*.rules; do [ -r \"$f\" ] && set -- \"$@\" \"$f\"; done; \
                [ $# = 0 ] || grep -Hn 'ATTR{queue/' \"$@\"";
    let directories = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];
    let trees = directories.iter().map(|directory| Subject::Tree(format!("{directory}/udev/rules.d"))).collect();
    match host.read(Script { text: text.to_owned(), footprint: Footprint::Of(trees) }).await {
        Ok(answer) => Ok(rule_warnings(&answer.text(), own, wanted)),
        // Check mode: a rule file would be written before. The warning will be given when it is.
        Err(failure) if matches!(failure.kind, FailureKind::Interrupted(Interruption::Unknown(_))) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

fn rule_warnings(lines: &str, own: &str, wanted: &Wanted) -> Vec<String> {
    let mut names: Vec<&str> = wanted.attributes.iter().map(|(name, _)| *name).collect();
    if !wanted.schedulers.is_empty() {
        names.push("scheduler");
    }
    if wanted.nr_requests.is_some() {
        names.push("nr_requests");
    }
    let own_name = own.rsplit('/').next().unwrap_or(own);
    let mut warnings = Vec::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(path), Some(number), Some(rule)) = (parts.next(), parts.next(), parts.next()) else { continue };
        // Rules of all directories run in the order of their names; ours replaces what an earlier one set.
        let later = path.rsplit('/').next().unwrap_or(path) > own_name;
        for name in names.iter().filter(|name| later && path != own && assigns(rule, name)) {
            warnings.push(format!("{path}:{number} sets queue/{name} after {own}, so it may win at the next boot"));
        }
    }
    warnings
}

/// Fails if a disk that was named outright does not exist.
fn check_all_found(wanted: &Wanted, without_device: &[usize]) -> Result<(), Failure> {
    let missing = without_device.iter().filter_map(|index| match &wanted.devices[*index] {
        Selector::Name(name) | Selector::Link(name) => Some(name.clone()),
        Selector::Wwn(wwn) => Some(format!("wwn:{wwn}")),
        Selector::Serial(serial) => Some(format!("serial:{serial}")),
        Selector::Pattern(_) | Selector::Class(_) => None,
    });
    let missing: Vec<String> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("this host has no disk {}", missing.join(", "))))
}

/// What is to be done with one disk.
#[derive(Debug)]
struct Plan {
    name: String,
    supported: bool,
    change: Option<Change>,
    /// What the last write of the change is, to explain its error.
    interface: Interface,
    /// For the rule file.
    settings: QueueSettings,
    scheduler: Option<String>,
    nr_requests: Option<u64>,
    warnings: Vec<String>,
}

impl Plan {
    fn to_value(&self) -> Value {
        let state = match (&self.change, self.supported) {
            (_, false) => "unsupported",
            (Some(_), true) => "changed",
            (None, true) => "ok",
        };
        object([
            ("name", self.name.as_str().into()),
            ("state", state.into()),
            ("scheduler", self.scheduler.clone().into()),
            ("nr_requests", self.nr_requests.into()),
        ])
        .into()
    }
}

/// One write to a file of the queue: the value, what the file read before and what it reads then.
#[derive(Debug)]
struct Write {
    file: &'static str,
    value: String,
    before: String,
    /// What is written to bring `before` back.
    back: String,
    after: String,
}

impl Write {
    /// Writes `value` and proves it. Of schedulers the selected one counts: the order of the others is the kernel's affair.
    fn step(&self, path: &str, value: &str, reads: &str) -> Step {
        if self.file != "scheduler" {
            return write_step(path, value, reads);
        }
        let (file, word) = (quote(path), quote(value));
        let selected = "sed 's/.*\\[\\(.*\\)\\].*/\\1/'";
        Step::new(format!("env printf '%s\\n' {word} >{file} && {selected} {file}")).expect(value).writes(path)
    }
}

fn plan(wanted: &Wanted, device: &BlockDevice, queue: &Queue, page_kib: u64) -> Result<Plan, Failure> {
    let mut plan = Plan {
        name: device.name.clone(),
        supported: true,
        change: None,
        interface: Interface::Other,
        settings: QueueSettings {
            identity: device.identity(),
            scheduler: None,
            nr_requests: None,
            attributes: Vec::new(),
        },
        scheduler: None,
        nr_requests: queue.nr_requests.as_deref().and_then(|text| parse_attribute(text).ok()),
        warnings: Vec::new(),
    };
    let Some(text) = &queue.scheduler else {
        plan.supported = false;
        plan.warnings.push(format!("{} has no queue of its own; left as it is", device.name));
        return Ok(plan);
    };
    let choice = Choice::parse(text)?;
    let mut writes = Vec::new();
    let mut scheduler = choice.selected().map(str::to_owned);
    if !wanted.schedulers.is_empty() {
        let names: Vec<&str> = wanted.schedulers.iter().map(String::as_str).collect();
        match choose(&names, &choice)? {
            Decision::NotSelectable => {
                plan.supported = false;
                plan.warnings.push(format!("{} has no scheduler to choose; set it on the disks below it", device.name));
                return Ok(plan);
            }
            Decision::Already(name) => plan.settings.scheduler = Some(name),
            Decision::Write(name) => {
                writes.push(Write {
                    file: "scheduler",
                    value: name.clone(),
                    before: text.clone(),
                    back: choice.selected().unwrap_or_default().to_owned(),
                    after: shown_after(text, &name, queue.none_first),
                });
                plan.settings.scheduler = Some(name.clone());
                scheduler = Some(name);
            }
        }
    }
    let depth = queue.tags.as_deref().and_then(|text| parse_attribute(text).ok());
    let certain = plan_nr_requests(wanted, &choice, scheduler.as_deref(), depth, &mut plan, &mut writes)?;
    for ((name, value), before) in wanted.attributes.iter().zip(&queue.attributes) {
        let Some(before) = before else {
            plan.warnings.push(format!("{} has no queue/{name}", device.name));
            continue;
        };
        let value = if *name == "read_ahead_kb" { rounded_read_ahead(*value, page_kib) } else { *value };
        if parse_attribute(before)? != value {
            let (value, before) = (value.to_string(), before.clone());
            writes.push(Write { file: name, after: value.clone(), value, back: before.clone(), before });
        }
        plan.settings.attributes.push(((*name).to_owned(), value.to_string()));
    }
    if wanted.rule_file.is_some() && matches!(plan.settings.identity, Identity::Name(_)) {
        plan.warnings.push(format!(
            "{} has neither WWN nor serial number, so its rule goes by its name, which can be another disk's after a boot",
            device.name
        ));
    }
    plan.scheduler = scheduler;
    plan.change = change(&device.name, &writes, certain, queue.nr_requests.as_deref(), plan.nr_requests);
    plan.interface = match writes.iter().map(|write| write.file).collect::<Vec<_>>().as_slice() {
        ["scheduler"] => Interface::Scheduler,
        ["nr_requests"] => Interface::RequestCount,
        _ => Interface::Other,
    };
    Ok(plan)
}

/// Plans the number of requests; false if what it will read is not known in advance.
fn plan_nr_requests(
    wanted: &Wanted,
    choice: &Choice,
    scheduler: Option<&str>,
    depth: Option<u64>,
    plan: &mut Plan,
    writes: &mut Vec<Write>,
) -> Result<bool, Failure> {
    let Some(before) = plan.nr_requests else { return Ok(true) };
    let scheduler = scheduler.unwrap_or("none");
    let single_queue = is_single_queue(choice);
    // A change of the scheduler resets the number first.
    let reset = if writes.is_empty() || single_queue {
        Some(before)
    } else {
        depth.map(|depth| request_count_after_change(scheduler, depth))
    };
    let Some(number) = wanted.nr_requests else {
        plan.nr_requests = reset;
        return Ok(reset.is_some());
    };
    let target = match predict_request_count(number, scheduler, single_queue, depth) {
        RequestCount::Stored(target) | RequestCount::Unknown(target) => target,
        RequestCount::Refused { limit, .. } if wanted.take_maximum => {
            plan.warnings.push(format!(
                "{}: {number} requests are wanted, {limit} is the most `{scheduler}` can have",
                plan.name
            ));
            limit
        }
        RequestCount::Refused { limit, reason } => {
            return Err(Failure::new(format!(
                "{number} requests are wanted, but {reason}; write {limit} or less, or `above_maximum: maximum`"
            )));
        }
    };
    if reset != Some(target) {
        let (value, before) = (target.to_string(), before.to_string());
        writes.push(Write { file: "nr_requests", after: value.clone(), value, back: before.clone(), before });
    }
    plan.nr_requests = Some(target);
    plan.settings.nr_requests = Some(target);
    Ok(true)
}

/// The writes as one change. Its inverse restores the scheduler before the number of requests, as restoring resets it.
fn change(
    device: &str,
    writes: &[Write],
    certain: bool,
    nr_before: Option<&str>,
    nr_after: Option<u64>,
) -> Option<Change> {
    if writes.is_empty() {
        return None;
    }
    let resets = writes.iter().any(|write| write.file == "scheduler");
    let nr_path = queue_path(device, "nr_requests");
    let mut paths: Vec<Subject> = writes.iter().map(|write| Subject::Path(queue_path(device, write.file))).collect();
    if resets {
        paths.push(Subject::Path(nr_path.clone()));
    }
    let what = format!("queue of {device}");
    let footprint = Footprint::Of(paths);
    let mut change = if certain { Change::certain(what, footprint) } else { Change::uncertain(what, footprint) };
    let mut back = Vec::new();
    for write in writes {
        let path = queue_path(device, write.file);
        change = change
            .step(write.step(&path, &write.value, &write.after))
            .difference(Difference::new(path.as_str(), format!("{}\n", write.before), format!("{}\n", write.after)))
            .leaves(Query::Line(path.clone()), Response::output(write.after.as_str()));
        back.push(write.step(&path, &write.back, &write.before));
    }
    if resets && !writes.iter().any(|write| write.file == "nr_requests") {
        if let Some(before) = nr_before {
            back.push(write_step(&nr_path, before, before));
        }
        if let Some(after) = nr_after {
            change = change.leaves(Query::Line(nr_path), Response::output(after.to_string()));
        }
    }
    Some(change.inverse(Inverse::Steps(back)))
}

/// The change of the rule file, if it is to change.
async fn plan_rules(host: &Host, args: &Args, path: &str, plans: &[Plan]) -> Result<Option<Change>, Failure> {
    let settings: Vec<QueueSettings> =
        plans.iter().filter(|plan| plan.supported).map(|plan| plan.settings.clone()).collect();
    if settings.is_empty() {
        return Ok(None);
    }
    let seen = look(host, args, path, true).await?;
    let before = seen.content.clone().unwrap_or_default();
    let text = merge(&String::from_utf8_lossy(&before), HEADER, &settings)?.into_bytes();
    if text == before {
        return Ok(None);
    }
    let shown = difference((path, path), seen.content.as_deref(), false, &text);
    Ok(plan_edit(&seen, Some(text), &Manner::default()).change.map(|change| change.difference(shown)))
}

#[cfg(test)]
#[path = "io_scheduler_tests.rs"]
mod tests;
