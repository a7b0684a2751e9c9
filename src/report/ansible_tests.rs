//! Whole outputs of the report in Ansible's text; the lines are those that ansible-core 2.19 prints.

use super::super::sample::{self, Sample};
use super::super::tell;
use super::*;
use crate::connect::Counters;
use crate::value::object;

fn shown(look: Look, events: impl IntoIterator<Item = Event>) -> String {
    tell(&mut Ansible::new(look), events).0
}

/// What is shown of results on one host, without banners and recap.
fn lines(look: Look, events: impl IntoIterator<Item = Event>) -> String {
    let text = shown(look, [sample::batch(&["h", "h2"])].into_iter().chain(events).chain([sample::ended()]));
    let body = text.split("\nPLAY RECAP").next().unwrap_or_default();
    let lines: Vec<&str> = body.lines().filter(|line| !line.is_empty() && !line.starts_with("TASK [t]")).collect();
    lines.join("\n")
}

const VERBOSE: Look =
    Look { verbosity: 1, shows_skipped: true, shows_ok: true, shows_custom_stats: false, diff_context: 3 };

#[test]
fn a_run_reads_as_one_of_ansible_playbook() {
    let sample = Sample::new();
    let echo = sample.task(1, "echo").with("rc", 0).with("stdout", "hi");
    let events = [
        sample::play("site", &["web2", "web1"]),
        sample::batch(&["web2", "web1"]),
        // hosts end in any order
        echo.ok("web1"),
        sample.task(0, "greet").action("debug").with("msg", "hello").ok("web1"),
        echo.changed("web2"),
        sample.task(2, "copy").with("msg", "no\nspace").failed("web2"),
        sample.task(0, "greet").action("debug").with("msg", "hello").ok("web2"),
        sample::passed(1),
        sample.task(3, "base : restart").handler().changed("web1"),
        sample::ended(),
        Event::PlayStarted { play: 1, name: "nobody".into(), hosts: Vec::new() },
        Event::NoHosts { play: 1, pattern: "nobody".into() },
    ];
    let expected = r#"
PLAY [site] ********************************************************************

TASK [greet] *******************************************************************
ok: [web2] => {
    "msg": "hello"
}
ok: [web1] => {
    "msg": "hello"
}

TASK [echo] ********************************************************************
changed: [web2]
ok: [web1]

TASK [copy] ********************************************************************
fatal: [web2]: FAILED! => {"changed": false, "msg": "no\nspace"}

RUNNING HANDLER [base : restart] ***********************************************
changed: [web1]

PLAY [nobody] ******************************************************************
skipping: no hosts matched

PLAY RECAP *********************************************************************
web1                       : ok=3    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   
web2                       : ok=2    changed=1    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0   

"#;
    assert_eq!(shown(Look::default(), events), expected);
}

#[test]
fn loops_show_their_items() {
    let task = Sample::new().task(0, "t").with("rc", 0);
    let cases = [
        (vec![task.clone().item("a").changed("h"), task.clone().whole().changed("h")], "changed: [h] => (item=a)"),
        (
            vec![task.clone().item("a").failed("h"), task.clone().whole().failed("h")],
            r#"failed: [h] (item=a) => {"changed": false, "rc": 0}"#,
        ),
        (
            vec![task.clone().item("a").ignored().failed("h"), task.clone().whole().ignored().failed("h")],
            "failed: [h] (item=a) => {\"changed\": false, \"rc\": 0}\n...ignoring",
        ),
        (
            vec![task.clone().item("a").end("h", Status::Skipped), task.clone().whole().end("h", Status::Skipped)],
            "skipping: [h] => (item=a) \nskipping: [h]",
        ),
        (
            vec![task.clone().item("a").no_log().ok("h"), task.clone().whole().no_log().ok("h")],
            "ok: [h] => (item=(censored due to no_log))",
        ),
    ];
    for (events, expected) in cases {
        assert_eq!(lines(Look::default(), events), expected);
    }
}

#[test]
fn results_are_shown_whole_where_that_is_asked_for() {
    let task = Sample::new().task(0, "t").with("stdout", "x").with("invocation", Value::empty_map());
    let censored = "the output has been hidden due to the fact that 'no_log: true' was specified for this result";
    let cases = [
        (Look::default(), task.ok("h"), "ok: [h]".to_owned()),
        (VERBOSE, task.ok("h"), r#"ok: [h] => {"changed": false, "stdout": "x"}"#.to_owned()),
        (VERBOSE, task.clone().no_log().changed("h"), format!(r#"changed: [h] => {{"censored": "{censored}", "changed": true}}"#)),
        (
            Look::default(),
            task.clone().no_log().failed("h"),
            format!(r#"fatal: [h]: FAILED! => {{"censored": "{censored}", "changed": false}}"#),
        ),
        (VERBOSE, task.clone().action("setup").ok("h"), "ok: [h]".to_owned()),
        (
            VERBOSE,
            task.clone().with("skip_reason", "Conditional result was False").end("h", Status::Skipped),
            r#"skipping: [h] => {"changed": false, "skip_reason": "Conditional result was False", "stdout": "x"}"#.to_owned(),
        ),
        (
            Look::default(),
            Sample::new().task(0, "t").action("debug").with("name", Value::list(vec![1.into()])).ok("h"),
            "ok: [h] => {\n    \"name\": [\n        1\n    ]\n}".to_owned(),
        ),
        (
            Look { verbosity: 3, ..VERBOSE },
            task.ok("h"),
            "task path: /site/play.yml:3\nok: [h] => {\n    \"changed\": false,\n    \"invocation\": {},\n    \"stdout\": \"x\"\n}"
                .to_owned(),
        ),
    ];
    for (look, event, expected) in cases {
        assert_eq!(lines(look, [event]), expected);
    }
}

#[test]
fn further_lines_are_ansibles() {
    let sample = Sample::new();
    let task = sample.task(0, "t").with("msg", "m");
    let include = sample.task(0, "t").action("include_tasks");
    let cases = [
        (vec![task.clone().delegated("db").changed("h")], "changed: [h -> db]"),
        (vec![task.clone().delegated("h").changed("h")], "changed: [h]"),
        (vec![task.end("h", Status::Unreachable)], r#"fatal: [h]: UNREACHABLE! => {"changed": false, "msg": "m"}"#),
        (
            vec![task.clone().ignored().failed("h")],
            "fatal: [h]: FAILED! => {\"changed\": false, \"msg\": \"m\"}\n...ignoring",
        ),
        (
            vec![include.clone().included(&["a.yml"]).ok("h2"), include.clone().included(&["a.yml"]).ok("h")],
            "included: a.yml for h, h2",
        ),
        (vec![include.clone().end("h", Status::Skipped)], "skipping: [h]"),
        (
            vec![sample.task(0, "t").with("msg", "unknown until applied: w").end("h", Status::Unknown)],
            "unknown: [h] => unknown until applied: w",
        ),
        (
            vec![Event::Crashed { host: "h".into(), message: "panic".into() }],
            "fatal: [h]: CRASHED! => a fault of trimtab itself: panic",
        ),
        (
            vec![task.clone().diff("/etc/motd", "a\n", "b\n").changed("h")],
            "--- before: /etc/motd\n+++ after: /etc/motd\n@@ -1 +1 @@\n-a\n+b\nchanged: [h]",
        ),
        (vec![task.clone().diff("/etc/motd", "a\n", "b\n").ok("h")], "ok: [h]"),
        (vec![task.clone().no_log().diff("/etc/shadow", "a\n", "b\n").changed("h")], "changed: [h]"),
    ];
    for (events, expected) in cases {
        assert_eq!(lines(Look::default(), events), expected);
    }
}

#[test]
fn hidden_tasks_leave_no_banner() {
    let sample = Sample::new();
    let events = || {
        [
            sample.task(0, "unmet").end("h", Status::Skipped),
            sample.task(1, "right").ok("h"),
            sample.task(2, "wrong").changed("h"),
        ]
    };
    let look = Look { shows_skipped: false, shows_ok: false, ..Look::default() };
    let text = lines(look, events());
    assert_eq!(text, format!("TASK [wrong] {}\nchanged: [h]", "*".repeat(79 - 12)));
}

#[test]
fn the_end_has_unknown_tasks_statistics_and_costs() {
    let sample = Sample::new();
    let data = |n: i64| Value::map(object([("n", n.into())]));
    let events = [
        sample::batch(&["kp001"]),
        sample.task(0, "t").end("kp001", Status::Unknown),
        Event::CustomStats { host: None, data: data(1), aggregate: true },
        Event::CustomStats { host: Some("kp001".into()), data: data(2), aggregate: true },
        Event::HostCost {
            host: "kp001".into(),
            counters: Counters { round_trips: 1, bytes_sent: 41_000, bytes_received: 12_400 },
        },
    ];
    let text = shown(Look { shows_custom_stats: true, ..VERBOSE }, events);
    let end = &text[text.find("\nPLAY RECAP").unwrap_or_default()..];
    let expected = "
PLAY RECAP *********************************************************************
kp001                      : ok=0    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0    unknown=1   


CUSTOM STATS: ******************************************************************
\tkp001: {\"n\": 2}

\tRUN: {\"n\": 1}

kp001: 1 round trip, 41 kB sent, 12 kB received

";
    assert_eq!(end, expected);
}
