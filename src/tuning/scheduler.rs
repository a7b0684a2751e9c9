//! I/O schedulers of block devices and their queue attributes (kernel: block/switching-sched, ABI sysfs-block).

use crate::error::{Error, Result};
use crate::tuning::bracket::{Choice, reselected};

/// Requests a queue may hold with a multi-queue scheduler: 16 times the default of 128.
pub const LARGEST_WITH_SCHEDULER: u64 = 2048;
/// Smaller numbers of requests are raised to this.
pub const SMALLEST_REQUESTS: u64 = 4;
const DEFAULT_REQUESTS: u64 = 128;

/// Names for the same scheduler in single-queue (to Linux 4.20) and multi-queue kernels, the wanted name first.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("deadline", &["mq-deadline", "deadline"]),
    ("mq-deadline", &["mq-deadline", "deadline"]),
    ("noop", &["noop", "none"]),
    ("none", &["none", "noop"]),
];

/// Schedulers that only the single-queue block layer has.
const SINGLE_QUEUE: &[&str] = &["noop", "deadline", "cfq"];

/// The scheduler to write for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// This one is selected already.
    Already(String),
    Write(String),
    /// The device has no scheduler to choose (stacked devices); a write would do nothing and say so to nobody.
    NotSelectable,
}

/// Picks the first of the `wanted` schedulers that the device offers, under the name it has there.
pub fn choose(wanted: &[&str], choice: &Choice) -> Result<Decision> {
    if wanted.is_empty() {
        return Err(Error::input("no scheduler is named"));
    }
    if !choice.is_selectable() {
        return Ok(Decision::NotSelectable);
    }
    let Some(name) = wanted.iter().find_map(|name| offered_name(name, choice)) else {
        let names = wanted.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" nor ");
        let offered = choice.offered().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let mut error = Error::input(format!("the device does not offer {names}; it offers {offered}"));
        if wanted.contains(&"cfq") {
            error = error.hint("multi-queue devices have nothing equal to `cfq`; name a second choice such as `bfq`");
        }
        if wanted.iter().any(|name| matches!(*name, "bfq" | "kyber")) {
            error = error.hint("a scheduler that is a module is offered once it is loaded, as by `modprobe bfq`");
        }
        return Err(error.suggest(wanted[0], choice.offered().iter().map(String::as_str)));
    };
    if choice.selected() == Some(name.as_str()) { Ok(Decision::Already(name)) } else { Ok(Decision::Write(name)) }
}

fn offered_name(wanted: &str, choice: &Choice) -> Option<String> {
    let names =
        SYNONYMS.iter().find(|(name, _)| *name == wanted).map_or(std::slice::from_ref(&wanted), |(_, names)| names);
    names.iter().find(|name| choice.offers(name)).map(|name| (*name).to_owned())
}

/// True if both names mean the same scheduler.
pub fn same(left: &str, right: &str) -> bool {
    left == right || SYNONYMS.iter().any(|(name, names)| *name == left && names.contains(&right))
}

/// True if the device is driven by the single-queue block layer: it offers names that only that layer has.
pub fn is_single_queue(choice: &Choice) -> bool {
    SINGLE_QUEUE.iter().any(|name| choice.offers(name))
}

/// What a write to `nr_requests` will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestCount {
    /// The number the file will read afterwards.
    Stored(u64),
    /// The kernel will refuse it (`EINVAL`); `limit` is the largest it takes.
    Refused { limit: u64, reason: String },
    /// The limit is not known before writing; the number that would be stored if it is taken.
    Unknown(u64),
}

/// Predicts a write to `nr_requests` while `scheduler` is selected.
///
/// `hardware_depth` is the depth of the hardware queue, from `/sys/block/DISK/mq/0/nr_tags`, if it was read. (The
/// number that `nr_requests` reads with `none` is no measure of it: it may have been lowered by hand.)
pub fn predict_request_count(
    wanted: u64,
    scheduler: &str,
    single_queue: bool,
    hardware_depth: Option<u64>,
) -> RequestCount {
    let stored = wanted.max(SMALLEST_REQUESTS);
    if single_queue {
        return RequestCount::Unknown(stored);
    }
    let (limit, reason) = if scheduler != "none" {
        (
            LARGEST_WITH_SCHEDULER,
            format!("with the scheduler `{scheduler}` a queue holds at most {LARGEST_WITH_SCHEDULER} requests"),
        )
    } else {
        match hardware_depth {
            Some(depth) => {
                (depth, format!("without a scheduler a queue holds no more than the hardware's {depth} requests"))
            }
            None => return RequestCount::Unknown(stored),
        }
    };
    if stored > limit { RequestCount::Refused { limit, reason } } else { RequestCount::Stored(stored) }
}

/// What `nr_requests` reads after the scheduler of a multi-queue device was changed to `scheduler`.
pub fn request_count_after_change(scheduler: &str, hardware_depth: u64) -> u64 {
    if scheduler == "none" { hardware_depth } else { 2 * hardware_depth.min(DEFAULT_REQUESTS) }
}

/// The value `read_ahead_kb` will read: rounded down to whole pages.
pub fn rounded_read_ahead(kib: u64, page_kib: u64) -> u64 {
    kib - kib % page_kib.max(1)
}

/// The value `nomerges` will read: 0 all merges, 1 simple ones only, 2 none; other numbers count as 1.
pub fn rounded_nomerges(value: u64) -> u64 {
    match value {
        0 | 2 => value,
        _ => 1,
    }
}

/// Whether `rq_affinity` takes the value; others are ignored without an error.
pub fn takes_rq_affinity(value: u64) -> bool {
    value <= 2
}

/// Parses a queue attribute: decimal digits only (`0x10` is refused by the kernel).
pub fn parse_attribute(text: &str) -> Result<u64> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::input(format!("`{text}` is not a decimal number, which queue attributes must be")));
    }
    text.parse().map_err(|_| Error::input(format!("`{text}` is too large")))
}

/// True if kernels of this release print `none` before the schedulers at all times. Older ones print it last while a
/// scheduler is selected (`elv_iosched_show`, changed in Linux 6.2).
pub fn prints_none_first(release: &str) -> bool {
    let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map_while(|word| word.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 2)
}

/// What the kernel prints once `word` is selected, given what it printed before.
///
/// `none_first` decides where the text itself does not tell; see [`prints_none_first`].
pub fn shown_after(text: &str, word: &str, none_first: bool) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let stays = match words.iter().position(|word| word.trim_matches(['[', ']']) == "none") {
        None => true,
        Some(0) if words[0] == "[none]" => none_first,
        Some(index) => index == 0,
    };
    if stays {
        return reselected(text, word);
    }
    let bare = words.iter().map(|word| word.trim_matches(['[', ']'])).filter(|word| *word != "none");
    let others: String =
        bare.map(|other| if other == word { format!("[{other}] ") } else { format!("{other} ") }).collect();
    if word == "none" { format!("[none] {others}") } else { format!("{others}none") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        Choice::parse(text).expect("a choice")
    }

    #[test]
    fn none_moves_on_older_kernels() {
        let cases = [
            ("[none] mq-deadline kyber bfq ", "mq-deadline", false, "[mq-deadline] kyber bfq none"),
            ("[none] mq-deadline kyber bfq ", "mq-deadline", true, "none [mq-deadline] kyber bfq "),
            ("[mq-deadline] kyber bfq none", "none", false, "[none] mq-deadline kyber bfq "),
            ("[mq-deadline] kyber bfq none", "bfq", true, "mq-deadline kyber [bfq] none"),
            ("none [mq-deadline] kyber", "kyber", false, "none mq-deadline [kyber]"),
            ("noop [deadline] cfq ", "noop", false, "[noop] deadline cfq "),
        ];
        for (before, word, none_first, after) in cases {
            assert_eq!(shown_after(before, word, none_first), after, "{before:?} {word}");
        }
        for (release, none_first) in [
            ("5.10.0-153.12.0.92.oe2203sp2.aarch64", false),
            ("6.1.0-13-amd64", false),
            ("6.2", true),
            ("6.18.5", true),
        ] {
            assert_eq!(prints_none_first(release), none_first, "{release}");
        }
    }

    #[test]
    fn the_scheduler_is_chosen_from_what_is_offered() {
        let write = |name: &str| Decision::Write(name.to_owned());
        let already = |name: &str| Decision::Already(name.to_owned());
        let cases: &[(&[&str], &str, Decision)] = &[
            (&["deadline"], "[none] mq-deadline kyber bfq", write("mq-deadline")),
            (&["deadline"], "[mq-deadline] kyber bfq none", already("mq-deadline")),
            (&["mq-deadline"], "noop [cfq] deadline", write("deadline")),
            (&["deadline"], "noop [deadline] cfq", already("deadline")),
            (&["noop"], "[mq-deadline] none", write("none")),
            (&["none"], "[noop] deadline cfq", already("noop")),
            (&["cfq", "bfq"], "[mq-deadline] kyber bfq none", write("bfq")),
            (&["kyber", "deadline"], "none [mq-deadline]", already("mq-deadline")),
            (&["deadline"], "none", Decision::NotSelectable),
        ];
        for (wanted, offered, decision) in cases {
            assert_eq!(choose(wanted, &choice(offered)).expect(offered), *decision, "{wanted:?} of {offered}");
        }
    }

    #[test]
    fn what_is_not_offered_fails_with_the_list() {
        let error = choose(&["deadline"], &choice("[none] kyber")).expect_err("not offered");
        assert_eq!(error.message(), "the device does not offer `deadline`; it offers `none`, `kyber`");
        let error = choose(&["cfq"], &choice("[mq-deadline] bfq none")).expect_err("not offered");
        assert!(error.hints()[0].contains("second choice"));
        assert!(choose(&[], &choice("[none]")).is_err());
    }

    #[test]
    fn the_fate_of_a_number_of_requests_is_known_before_writing() {
        use RequestCount::{Stored, Unknown};
        let refused =
            |limit| move |got: &RequestCount| matches!(got, RequestCount::Refused { limit: l, .. } if *l == limit);
        let is = |want: RequestCount| move |got: &RequestCount| *got == want;
        type Check = Box<dyn Fn(&RequestCount) -> bool>;
        let cases: Vec<(u64, &str, bool, Option<u64>, Check)> = vec![
            (128, "none", false, Some(128), Box::new(is(Stored(128)))),
            (200, "none", false, Some(128), Box::new(refused(128))),
            // NVMe: depth 1023, and the often copied advice "none with 2048".
            (2048, "none", false, Some(1023), Box::new(refused(1023))),
            (2048, "none", false, None, Box::new(is(Unknown(2048)))),
            (2048, "mq-deadline", false, Some(128), Box::new(is(Stored(2048)))),
            (2049, "bfq", false, None, Box::new(refused(2048))),
            (1, "kyber", false, None, Box::new(is(Stored(4)))),
            (3, "none", false, Some(128), Box::new(is(Stored(4)))),
            (100_000, "deadline", true, None, Box::new(is(Unknown(100_000)))),
        ];
        for (wanted, scheduler, single, depth, check) in cases {
            let got = predict_request_count(wanted, scheduler, single, depth);
            assert!(check(&got), "{wanted} with {scheduler}: {got:?}");
        }
    }

    #[test]
    fn a_change_of_scheduler_resets_the_number_of_requests() {
        assert_eq!(request_count_after_change("mq-deadline", 128), 256);
        assert_eq!(request_count_after_change("kyber", 1023), 256);
        assert_eq!(request_count_after_change("bfq", 64), 128);
        assert_eq!(request_count_after_change("none", 1023), 1023);
    }

    #[test]
    fn values_are_rounded_as_the_kernel_rounds() {
        for (kib, page, stored) in [(3, 4, 0), (130, 4, 128), (130, 64, 128), (100, 64, 64), (4096, 4, 4096)] {
            assert_eq!(rounded_read_ahead(kib, page), stored);
        }
        assert_eq!([0, 1, 2, 7].map(rounded_nomerges), [0, 1, 2, 1]);
        assert!(takes_rq_affinity(2) && !takes_rq_affinity(5));
        assert_eq!(parse_attribute("128\n").expect("decimal"), 128);
        assert!(parse_attribute("0x10").is_err() && parse_attribute("").is_err());
    }

    #[test]
    fn layers_and_synonyms_are_told_apart() {
        assert!(is_single_queue(&choice("noop [deadline] cfq")));
        assert!(!is_single_queue(&choice("[mq-deadline] kyber bfq none")));
        assert!(same("deadline", "mq-deadline") && same("noop", "none") && !same("bfq", "kyber"));
    }
}
