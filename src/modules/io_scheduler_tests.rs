//! Tests of io_scheduler: what is planned for recorded queues, and what a real loop device makes of it.

use std::fs;

use super::*;
use crate::modules::args::validate;
use crate::modules::testing::{Play, Played, play, shells, undo};
use crate::value::Map;

fn wanted(args: &[(&str, Value)]) -> Wanted {
    let mut given: Map = args.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect();
    given.insert("devices".into(), "*".into());
    Wanted::parse(&validate(&MODULE, &given).unwrap()).unwrap()
}

fn queue(scheduler: &str, nr_requests: &str, tags: Option<&str>) -> Queue {
    Queue {
        scheduler: Some(scheduler.to_owned()),
        nr_requests: Some(nr_requests.to_owned()),
        tags: tags.map(str::to_owned),
        none_first: false,
        attributes: Vec::new(),
    }
}

fn planned(args: &[(&str, Value)], queue: &Queue) -> Result<Plan, Failure> {
    let device =
        BlockDevice { name: "nvme0n1".into(), wwn: Some("eui.01".into()), sectors: 8, ..BlockDevice::default() };
    plan(&wanted(args), &device, queue, 4)
}

/// The writes of a change: `scheduler=mq-deadline nr_requests=2048`.
fn writes(steps: &[crate::host::Step]) -> String {
    let shown = steps.iter().map(|step| {
        let path = step.writes.as_deref().unwrap_or_default();
        let value = step.script.split_whitespace().nth(3).unwrap_or_default();
        format!("{}={value}", path.rsplit('/').next().unwrap_or_default())
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn scheduler_and_requests_are_planned_together() {
    let both =
        |scheduler: &'static str, number: i64| vec![("scheduler", scheduler.into()), ("nr_requests", number.into())];
    let nvme = "[none] mq-deadline kyber bfq ";
    // arguments, queue, writes, and the writes of the inverse
    type Case = (Vec<(&'static str, Value)>, Queue, &'static str, &'static str);
    let cases: Vec<Case> = vec![
        (
            both("deadline", 2048),
            queue(nvme, "1023", Some("1023")),
            "scheduler=mq-deadline nr_requests=2048",
            "scheduler=none nr_requests=1023",
        ),
        // the change of the scheduler leaves 256 by itself
        (
            both("mq-deadline", 256),
            queue(nvme, "1023", Some("1023")),
            "scheduler=mq-deadline",
            "scheduler=none nr_requests=1023",
        ),
        (
            both("mq-deadline", 256),
            queue(nvme, "1023", None),
            "scheduler=mq-deadline nr_requests=256",
            "scheduler=none nr_requests=1023",
        ),
        (both("none", 1023), queue(nvme, "1023", Some("1023")), "", ""),
        (
            both("mq-deadline", 2048),
            queue("[mq-deadline] none", "256", Some("64")),
            "nr_requests=2048",
            "nr_requests=256",
        ),
        (
            vec![("scheduler", "none".into())],
            queue("[mq-deadline] none", "500", Some("64")),
            "scheduler=none",
            "scheduler=mq-deadline nr_requests=500",
        ),
        (
            both("mq-deadline", 4096),
            queue("noop [cfq] deadline", "128", None),
            "scheduler=deadline nr_requests=4096",
            "scheduler=cfq nr_requests=128",
        ),
        (vec![("nr_requests", 2.into())], queue(nvme, "128", Some("128")), "nr_requests=4", "nr_requests=128"),
    ];
    for (args, queue, forth, back) in cases {
        let plan = planned(&args, &queue).unwrap();
        let steps = plan.change.as_ref().map(|change| change.steps.clone()).unwrap_or_default();
        assert_eq!(writes(&steps), forth, "{args:?} on {queue:?}");
        match plan.change.map(|change| change.inverse) {
            Some(Inverse::Steps(steps)) => assert_eq!(writes(&steps), back, "{args:?} on {queue:?}"),
            Some(Inverse::None(reason)) => panic!("no inverse: {reason}"),
            None => assert_eq!(back, ""),
        }
    }
}

#[test]
fn a_result_that_cannot_be_known_is_uncertain() {
    let args = [("scheduler", Value::from("mq-deadline"))];
    let certain = |tags| planned(&args, &queue("[none] mq-deadline", "62", tags)).unwrap().change.unwrap().certain;
    assert!(certain(Some("62")));
    assert!(!certain(None));
}

#[test]
fn what_the_kernel_would_refuse_is_refused_before_writing() {
    let args = [("scheduler", Value::from("none")), ("nr_requests", 2048.into())];
    let nvme = queue("[none] mq-deadline", "1023", Some("1023"));
    let failure = planned(&args, &nvme).unwrap_err();
    assert_eq!(
        failure.message,
        "2048 requests are wanted, but without a scheduler a queue holds no more than the hardware's 1023 requests; \
         write 1023 or less, or `above_maximum: maximum`"
    );
    let args = [args.to_vec(), vec![("above_maximum", "maximum".into())]].concat();
    let plan = planned(&args, &nvme).unwrap();
    assert_eq!((plan.nr_requests, plan.change, plan.warnings.len()), (Some(1023), None, 1));
    let failure = planned(&[("scheduler", "deadline".into())], &queue("[none] kyber", "62", None)).unwrap_err();
    assert!(failure.message.contains("it offers `none`, `kyber`"), "{}", failure.message);
}

#[test]
fn disks_without_a_choice_are_left_alone() {
    let args = [("scheduler", Value::from("none"))];
    for queue in [queue("none", "128", None), Queue::default()] {
        let plan = planned(&args, &queue).unwrap();
        assert_eq!((plan.supported, plan.change, plan.warnings.len()), (false, None, 1));
    }
}

#[test]
fn other_attributes_are_rounded_before_they_are_compared() {
    let args = [("read_ahead_kb", Value::from(130)), ("nomerges", 2.into())];
    let with = |read_ahead: &str| Queue {
        attributes: vec![Some(read_ahead.to_owned()), Some("2".to_owned())],
        ..queue("[none]", "128", None)
    };
    assert_eq!(planned(&args, &with("128")).unwrap().change, None);
    let change = planned(&args, &with("64")).unwrap().change.unwrap();
    assert_eq!(writes(&change.steps), "read_ahead_kb=128");
    for (name, value) in [("rq_affinity", 5), ("nomerges", 7), ("nr_requests", -1)] {
        let given: Map = [("devices", Value::from("*")), (name, value.into())].map(|(k, v)| (k.into(), v)).into();
        assert!(Wanted::parse(&validate(&MODULE, &given).unwrap()).is_err(), "{name} {value}");
    }
}

#[test]
fn later_rules_of_others_are_named() {
    let wanted = wanted(&[("scheduler", "none".into())]);
    let lines = "/usr/lib/udev/rules.d/60-block.rules:3:ATTR{queue/scheduler}=\"bfq\"\n\
                 /etc/udev/rules.d/99-zz.rules:7:KERNEL==\"sd*\", ATTR{queue/scheduler}=\"bfq\"\n\
                 /etc/udev/rules.d/99-zz.rules:8:ATTR{queue/nr_requests}=\"64\"\n";
    assert_eq!(
        rule_warnings(lines, "/etc/udev/rules.d/99-trimtab-io.rules", &wanted),
        [
            "/etc/udev/rules.d/99-zz.rules:7 sets queue/scheduler after /etc/udev/rules.d/99-trimtab-io.rules, so it may win at the next boot"
        ]
    );
}

/// A loop device that nobody else uses meanwhile; put back when dropped.
struct LoopDevice {
    _lock: fs::File,
    scheduler: String,
    nr_requests: String,
}

const LOOP: &str = "loop7";

impl LoopDevice {
    /// `None` where there is none, or where it cannot be written.
    fn take() -> Option<LoopDevice> {
        let lock = fs::File::create(std::env::temp_dir().join("trimtab-test-loop7.lock")).ok()?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).ok()?;
        let read = |file: &str| fs::read_to_string(queue_path(LOOP, file)).ok();
        let choice = Choice::parse(&read("scheduler")?).ok()?;
        let writable = fs::OpenOptions::new().write(true).open(queue_path(LOOP, "scheduler")).is_ok();
        (writable && choice.offers("mq-deadline") && choice.offers("none")).then(|| LoopDevice {
            _lock: lock,
            scheduler: choice.selected().unwrap_or("none").to_owned(),
            nr_requests: read("nr_requests").unwrap_or_default(),
        })
    }

    fn set(&self, scheduler: &str) {
        fs::write(queue_path(LOOP, "scheduler"), scheduler).unwrap();
    }

    fn read(&self) -> (String, String) {
        let read = |file: &str| fs::read_to_string(queue_path(LOOP, file)).unwrap();
        let scheduler = Choice::parse(&read("scheduler")).unwrap();
        (scheduler.selected().unwrap_or_default().to_owned(), read("nr_requests").trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = fs::write(queue_path(LOOP, "scheduler"), &self.scheduler);
        let _ = fs::write(queue_path(LOOP, "nr_requests"), &self.nr_requests);
    }
}

fn on_loop(args: &[(&str, Value)], rules: &std::path::Path, how: &Play) -> Played {
    let rules = rules.to_string_lossy().into_owned();
    let mut given = vec![("devices", Value::from(LOOP)), ("rule_file", rules.into())];
    given.extend(args.iter().cloned());
    play(&MODULE, &given, how)
}

#[test]
fn a_real_queue_is_set_once_and_restored() {
    let Some(device) = LoopDevice::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("99-test.rules");
    let args = [("scheduler", Value::from("deadline")), ("nr_requests", 2048.into())];
    for shell in shells() {
        device.set("none");
        let before = device.read();
        let how = Play { shell, ..Play::default() };

        let check = on_loop(&args, &rules, &Play { check: true, shell });
        assert!(check.result.unwrap().changed);
        assert_eq!((device.read(), rules.exists()), (before.clone(), false), "check mode changes nothing");

        let first = on_loop(&args, &rules, &how);
        let outcome = first.result.unwrap();
        assert!(outcome.changed);
        assert_eq!(device.read(), ("mq-deadline".to_owned(), "2048".to_owned()));
        let text = fs::read_to_string(&rules).unwrap();
        assert!(text.contains(r#"ATTR{queue/scheduler}="mq-deadline", ATTR{queue/nr_requests}="2048""#), "{text}");

        let second = on_loop(&args, &rules, &how);
        assert!(!second.result.unwrap().changed);
        assert!(second.changes.is_empty());
        assert_eq!(second.batches, first.batches);

        undo(&first.changes);
        assert_eq!((device.read(), rules.exists()), (before, false), "{shell}");
    }
}

#[test]
fn a_real_queue_takes_what_was_predicted() {
    let Some(device) = LoopDevice::take() else { return };
    let directory = tempfile::tempdir().unwrap();
    let rules = directory.path().join("99-test.rules");
    // Each certain change is held to what it said it would leave behind.
    for (scheduler, number) in
        [("mq-deadline", None), ("kyber", Some(3)), ("none", None), ("bfq", Some(256)), ("none", Some(64))]
    {
        let mut args = vec![("scheduler", Value::from(scheduler))];
        args.extend(number.map(|number: i64| ("nr_requests", Value::from(number))));
        let played = on_loop(&args, &rules, &Play::default());
        played.result.unwrap();
        assert!(played.changes.iter().all(|change| change.certain));
        assert_eq!(device.read().0, scheduler);
    }
    let played = on_loop(&[("scheduler", "none".into()), ("nr_requests", 2048.into())], &rules, &Play::default());
    assert!(played.result.unwrap_err().message.starts_with("loop7: 2048 requests are wanted"));
    assert!(played.changes.is_empty());
}

#[test]
fn a_disk_that_is_not_there_fails_and_an_empty_class_does_not() {
    let args = |devices: &str| {
        vec![("devices", Value::from(devices)), ("scheduler", "none".into()), ("persist", false.into())]
    };
    let failure = play(&MODULE, &args("nosuchdisk"), &Play::default()).result.unwrap_err();
    assert_eq!(failure.message, "this host has no disk nosuchdisk");
    let outcome = play(&MODULE, &args("nosuch*"), &Play::default()).result.unwrap();
    assert!(!outcome.changed);
}
