//! The real apt and dpkg, with a repository and a root of the test's own.

use super::*;
use crate::modules::package_common::lab::DebLab;
use crate::modules::package_common::tool::texts;
use crate::modules::testing::{Play, Played, play};
use crate::value::Value;

fn run_in(lab: &DebLab, given: &[(&str, Value)]) -> Played {
    play(&MODULE, given, &Play { shell: lab.shell(), check: false })
}

fn check_in(lab: &DebLab, given: &[(&str, Value)]) -> Played {
    play(&MODULE, given, &Play { shell: lab.shell(), check: true })
}

fn undo_in(lab: &DebLab, played: &Played) {
    for change in played.changes.iter().rev() {
        let Inverse::Steps(steps) = &change.inverse else { panic!("{} has no inverse", change.what) };
        for step in steps {
            lab.run(&step.script);
        }
    }
}

#[test]
fn packages_are_installed_once_and_can_be_taken_back() {
    let Some(lab) = DebLab::new() else { return };
    let given = [("name", texts(["zz-alpha", "zz-lonely"]))];
    let checked = check_in(&lab, &given).result.unwrap();
    assert!(checked.changed && checked.result["stdout"].to_text().contains("Inst zz-dep (0.1"));
    assert_eq!(checked.differences[0].after, "zz-dep 0.1\nzz-alpha 1.2\nzz-lonely 2.0\n");
    assert_eq!(lab.known(), "");
    let played = run_in(&lab, &given);
    let outcome = played.result.as_ref().unwrap();
    assert!(outcome.changed && !played.changes[0].certain, "{outcome:?}");
    assert_eq!(lab.known(), "zz-alpha=1.2=ii zz-dep=0.1=ii zz-lonely=2.0=ii");
    let again = run_in(&lab, &[("name", texts(["zz-alpha=1.*", "zz-lonely>=1.5", "zz-virtual"]))]);
    assert_eq!((again.result.unwrap().changed, again.batches, again.changes.len()), (false, 1, 0));
    undo_in(&lab, &played);
    assert_eq!(lab.known(), "");
}

#[test]
fn settings_that_were_left_behind_survive_an_undo() {
    let Some(lab) = DebLab::new() else { return };
    run_in(&lab, &[("name", "zz-lonely".into())]).result.unwrap();
    run_in(&lab, &[("name", "zz-lonely".into()), ("state", "absent".into())]).result.unwrap();
    assert_eq!(lab.known(), "zz-lonely=2.0=rc");
    let played = run_in(&lab, &[("name", texts(["zz-lonely", "zz-alpha"]))]);
    undo_in(&lab, &played);
    assert_eq!(lab.known(), "zz-lonely=2.0=rc");
    let purge = [("name", "zz-lonely".into()), ("state", "absent".into()), ("purge", true.into())];
    assert!(run_in(&lab, &purge).result.unwrap().changed);
    assert_eq!(lab.known(), "");
    assert!(!run_in(&lab, &purge).result.unwrap().changed);
}

#[test]
fn versions_go_up_and_only_if_allowed_down() {
    let Some(lab) = DebLab::new() else { return };
    assert!(run_in(&lab, &[("name", "zz-alpha=1.0".into())]).result.unwrap().changed);
    assert!(!run_in(&lab, &[("name", "zz-alpha".into())]).result.unwrap().changed);
    let latest = [("name", "zz-alpha".into()), ("state", "latest".into())];
    assert!(check_in(&lab, &latest).result.unwrap().changed);
    let played = run_in(&lab, &latest);
    assert!(played.result.unwrap().changed);
    assert!(matches!(&played.changes[0].inverse, Inverse::None(reason) if reason.contains("takes the place of 1.0")));
    assert!(!run_in(&lab, &latest).result.unwrap().changed);
    let back = ("name", Value::from("zz-alpha=1.0"));
    let failure = check_in(&lab, std::slice::from_ref(&back)).result.unwrap_err();
    assert!(failure.message.contains("`allow_downgrade: true`"), "{}", failure.message);
    assert!(run_in(&lab, &[back, ("allow_downgrade", true.into())]).result.unwrap().changed);
    assert_eq!(lab.known(), "zz-alpha=1.0=ii zz-dep=0.1=ii");
    lab.run("apt-mark hold zz-alpha");
    let failure = run_in(&lab, &[("name", "zz-alpha>=1.1".into())]).result.unwrap_err();
    assert!(failure.message.contains("on hold"), "{}", failure.message);
    assert!(!run_in(&lab, &[("upgrade", "dist".into())]).result.unwrap().changed);
    lab.run("apt-mark unhold zz-alpha");
    let failure = run_in(&lab, &[("name", "zz-alpha>=9".into())]).result.unwrap_err();
    assert!(failure.message.contains("no available installation candidate for zz-alpha>=9"), "{}", failure.message);
    assert!(run_in(&lab, &[("name", "*".into()), ("state", "latest".into())]).result.unwrap().changed);
    assert!(!run_in(&lab, &[("upgrade", "yes".into())]).result.unwrap().changed);
}

#[test]
fn packages_are_removed_with_what_needs_them() {
    let Some(lab) = DebLab::new() else { return };
    run_in(&lab, &[("name", "zz-alpha".into())]).result.unwrap();
    let given = [("name", texts(["zz-alpha", "zz-never-was"])), ("state", "absent".into()), ("purge", true.into())];
    let outcome = run_in(&lab, &given).result.unwrap();
    assert_eq!((outcome.changed, outcome.differences[0].before.as_str()), (true, "zz-alpha 1.2\n"));
    let clean = [("autoremove", true.into()), ("purge", true.into())];
    assert!(check_in(&lab, &clean).result.unwrap().changed);
    assert!(run_in(&lab, &clean).result.unwrap().changed);
    assert_eq!(lab.known(), "");
    assert!(!run_in(&lab, &clean).result.unwrap().changed);
}

#[test]
fn what_is_asked_for_by_name_is_kept() {
    let Some(lab) = DebLab::new() else { return };
    run_in(&lab, &[("name", "zz-alpha".into())]).result.unwrap();
    assert_eq!(lab.run("apt-mark showauto").trim(), "zz-dep");
    let played = run_in(&lab, &[("name", "zz-dep".into())]);
    assert_eq!((played.result.as_ref().unwrap().changed, played.changes.len()), (false, 1));
    assert_eq!(lab.run("apt-mark showauto").trim(), "");
    undo_in(&lab, &played);
    assert_eq!(lab.run("apt-mark showauto").trim(), "zz-dep");
}

#[test]
fn what_cannot_be_installed_fails_before_anything_is_changed() {
    let Some(lab) = DebLab::new() else { return };
    for run in [run_in, check_in] {
        let failure = run(&lab, &[("name", texts(["zz-lonely", "zz-no-such"]))]).result.unwrap_err();
        assert_eq!(failure.message, "No package matching 'zz-no-such' is available");
        let failure = run(&lab, &[("name", "zz-broken".into())]).result.unwrap_err();
        assert!(failure.message.contains("apt-get cannot do this"), "{}", failure.message);
        let failure = run(&lab, &[("name", "zz-alpha=7".into())]).result.unwrap_err();
        assert!(failure.message.contains("Version '7' for 'zz-alpha' was not found"), "{}", failure.message);
        let failure = run(&lab, &[("name", "yy*".into())]).result.unwrap_err();
        assert_eq!(failure.message, "No package(s) matching 'yy*' available");
        let failure = run(&lab, &[("deb", "/no/such.deb".into())]).result.unwrap_err();
        assert!(failure.message.contains("/no/such.deb"), "{}", failure.message);
    }
    assert_eq!(lab.known(), "");
}

#[test]
fn package_files_patterns_and_only_upgrades() {
    let Some(lab) = DebLab::new() else { return };
    let file = lab.path("repo/zz-alpha_1.0_all.deb").to_string_lossy().into_owned();
    assert!(run_in(&lab, &[("deb", file.as_str().into())]).result.unwrap().changed);
    assert_eq!(lab.known(), "zz-alpha=1.0=ii zz-dep=0.1=ii");
    assert_eq!(run_in(&lab, &[("deb", file.as_str().into())]).batches, 1);
    let only = [("name", "zz-lonely".into()), ("state", "latest".into()), ("only_upgrade", true.into())];
    assert!(!run_in(&lab, &only).result.unwrap().changed);
    assert!(run_in(&lab, &[("name", "zz-lone*".into())]).result.unwrap().changed);
    let again = run_in(&lab, &[("name", "zz-[ld]*".into())]);
    assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
    let url = format!("file://{}", lab.path("repo/zz-alpha_1.2_all.deb").display());
    assert!(run_in(&lab, &[("deb", url.as_str().into())]).result.unwrap().changed);
    assert_eq!(run_in(&lab, &[("deb", url.as_str().into())]).batches, 1);
    assert_eq!(lab.known(), "zz-alpha=1.2=ii zz-dep=0.1=ii zz-lonely=2.0=ii");
}

#[test]
fn package_lists_are_fetched_if_they_are_of_use_and_old() {
    let Some(lab) = DebLab::new() else { return };
    lab.build("zz-new", "1", "");
    lab.index();
    lab.run("touch -d '2 hours ago' ${APT_CONFIG%/*}/root/var/lib/apt/lists");
    let valid = |seconds: i64| [("name", Value::from("zz-new")), ("cache_valid_time", seconds.into())];
    assert!(run_in(&lab, &valid(86_400)).result.is_err());
    let failure = check_in(&lab, &valid(3600)).result.unwrap_err();
    assert!(failure.message.contains("have not been fetched"), "{failure:?}");
    let outcome = run_in(&lab, &valid(3600)).result.unwrap();
    assert_eq!((outcome.changed, outcome.result["cache_updated"].clone()), (true, true.into()));
    assert!(outcome.result["cache_update_time"].as_int().unwrap() > 1_600_000_000);
    let played = run_in(&lab, &[("name", "zz-new".into()), ("update_cache", true.into())]);
    assert_eq!((played.batches, played.result.unwrap().result["cache_updated"].clone()), (1, false.into()));
    let only = [("update_cache", true.into()), ("cache_valid_time", 3600.into())];
    assert!(!run_in(&lab, &only).result.unwrap().changed);
    lab.run("touch -d '2 hours ago' ${APT_CONFIG%/*}/root/var/lib/apt/lists");
    assert!(check_in(&lab, &only).result.unwrap().changed);
    assert!(run_in(&lab, &only).result.unwrap().changed);
    assert!(!run_in(&lab, &only).result.unwrap().changed);
    std::fs::write(lab.path("root/etc/apt/sources.list"), "deb [trusted=yes] file:/no/such/place ./\n").unwrap();
    let given = [("update_cache", true.into()), ("update_cache_retries", 1.into())];
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let failure = run_in(&lab, &given).result.unwrap_err();
    assert!(failure.message.starts_with("Failed to update apt cache after 1 retries: "), "{}", failure.message);
}

#[test]
fn a_lock_is_waited_for() {
    let Some(lab) = DebLab::new() else { return };
    // apt locks by fcntl(2), as dpkg does
    let lock = lab.path("root/var/lib/dpkg/lock-frontend").to_string_lossy().into_owned();
    if !crate::modules::package_common::lab::has(&["perl"]) {
        return;
    }
    let hold = |seconds: u32| {
        let script = format!(
            "use Fcntl; open(F, '>', '{lock}'); \
             my $l = pack('s s x4 q q i x4', F_WRLCK, 0, 0, 0, 0); fcntl(F, F_SETLK, $l) or die; print \"held\\n\"; \
             $| = 1; close STDOUT; sleep {seconds};"
        );
        let mut child = std::process::Command::new("perl")
            .args(["-e", &script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut String::new()).unwrap();
        child
    };
    let mut holder = hold(30);
    let given = [("name", "zz-lonely".into()), ("lock_timeout", 1.into())];
    let failure = run_in(&lab, &given).result.unwrap_err();
    assert!(failure.message.contains("`lock_timeout`") && failure.message.contains("lock"), "{}", failure.message);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let mut holder = hold(2);
    assert!(run_in(&lab, &[("name", "zz-lonely".into())]).result.unwrap().changed);
    holder.wait().unwrap();
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let refused = |given: &[(&str, Value)]| play(&MODULE, given, &Play::default()).result.unwrap_err().message;
    assert!(refused(&[("name", "*".into())]).contains("state: latest"));
    assert!(refused(&[("name", "a=1=2".into())]).contains("invalid package spec"));
    assert!(refused(&[("deb", "/a.deb".into()), ("state", "absent".into())]).contains("state=present"));
    assert!(refused(&[("deb", "/a.deb".into()), ("name", "a".into())]).contains("mutually exclusive"));
    assert!(refused(&[("state", "latest".into())]).contains("one of the following is required"));
}
