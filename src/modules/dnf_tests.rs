//! The real dnf, rpm and createrepo_c, with a repository and a root of the test's own.

use super::*;
use crate::modules::package_common::lab::RpmLab;
use crate::modules::testing::{Play, Played, play, undo};

fn run_in(lab: &RpmLab, given: &[(&'static str, Value)]) -> Played {
    play(&MODULE, &lab.arguments(given), &Play::default())
}

fn check_in(lab: &RpmLab, given: &[(&'static str, Value)]) -> Played {
    play(&MODULE, &lab.arguments(given), &Play { check: true, ..Play::default() })
}

fn names(names: &[&str]) -> Value {
    texts(names)
}

fn results(outcome: &Outcome) -> String {
    outcome.result["results"].to_repr()
}

#[test]
fn packages_are_installed_once_and_can_be_taken_back() {
    let Some(lab) = RpmLab::new() else { return };
    let given = [("name", names(&["zz-alpha", "zz-lonely"]))];
    let checked = check_in(&lab, &given).result.unwrap();
    assert!(checked.changed);
    assert_eq!(
        results(&checked),
        "['Installed: zz-alpha-1.2-1.noarch', 'Installed: zz-lonely-2.0-1.noarch', 'Installed: zz-dep-0.1-1.noarch']"
    );
    assert_eq!(lab.installed(), "");
    let played = run_in(&lab, &given);
    let outcome = played.result.unwrap();
    assert!(outcome.changed && !played.changes[0].certain);
    assert_eq!(lab.installed(), "zz-alpha-1.2 zz-dep-0.1 zz-lonely-2.0");
    assert_eq!(outcome.result["changes"].get("removed"), Some(&Value::list(vec![])));
    let again = run_in(&lab, &[("name", names(&["zz-alpha", "zz-virtual", "zz-lonely-2*", "zz-dep >= 0.1"]))]);
    assert_eq!((again.result.unwrap().changed, again.batches, again.changes.len()), (false, 1, 0));
    undo(&played.changes);
    assert_eq!(lab.installed(), "");
}

#[test]
fn versions_go_up_and_only_if_allowed_down() {
    let Some(lab) = RpmLab::new() else { return };
    assert!(run_in(&lab, &[("name", "zz-alpha-1.0".into())]).result.unwrap().changed);
    assert_eq!(lab.installed(), "zz-alpha-1.0 zz-dep-0.1");
    assert!(!run_in(&lab, &[("name", "zz-alpha".into())]).result.unwrap().changed);
    let latest = [("name", names(&["zz-alpha"])), ("state", "latest".into())];
    assert!(check_in(&lab, &latest).result.unwrap().changed);
    let played = run_in(&lab, &latest);
    let outcome = played.result.unwrap();
    assert_eq!(results(&outcome), "['Installed: zz-alpha-1.2-1.noarch', 'Removed: zz-alpha-1.0-1.noarch']");
    assert!(matches!(&played.changes[0].inverse, Inverse::None(reason) if reason.contains("another version")));
    assert!(!run_in(&lab, &latest).result.unwrap().changed);
    let back = [("name", "zz-alpha-1.0".into())];
    let outcome = run_in(&lab, &back).result.unwrap();
    assert_eq!((outcome.changed, outcome.warnings.len()), (false, 1));
    let outcome = run_in(&lab, &[back[0].clone(), ("allow_downgrade", true.into())]).result.unwrap();
    assert!(outcome.changed);
    assert_eq!(lab.installed(), "zz-alpha-1.0 zz-dep-0.1");
    let all = [("name", "*".into()), ("state", "latest".into())];
    assert!(run_in(&lab, &all).result.unwrap().changed);
    assert!(!run_in(&lab, &all).result.unwrap().changed);
}

#[test]
fn packages_are_removed_with_what_needs_them() {
    let Some(lab) = RpmLab::new() else { return };
    run_in(&lab, &[("name", names(&["zz-alpha", "zz-lonely"]))]).result.unwrap();
    let given = [("name", names(&["zz-dep", "zz-never-was"])), ("state", "absent".into())];
    let outcome = check_in(&lab, &given).result.unwrap();
    assert_eq!(
        results(&outcome),
        "['zz-never-was is not installed', 'Removed: zz-dep-0.1-1.noarch', 'Removed: zz-alpha-1.2-1.noarch']"
    );
    assert!(run_in(&lab, &given).result.unwrap().changed);
    assert_eq!(lab.installed(), "zz-lonely-2.0");
    let again = run_in(&lab, &given);
    assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
    run_in(&lab, &[("name", "zz-alpha".into())]).result.unwrap();
    let given = [("name", "zz-alpha".into()), ("state", "absent".into()), ("autoremove", true.into())];
    run_in(&lab, &given).result.unwrap();
    assert_eq!(lab.installed(), "zz-lonely-2.0");
}

#[test]
fn what_cannot_be_installed_fails_before_anything_is_changed() {
    let Some(lab) = RpmLab::new() else { return };
    for check in [true, false] {
        let run = if check { check_in } else { run_in };
        let failure = run(&lab, &[("name", names(&["zz-lonely", "zz-no-such"]))]).result.unwrap_err();
        assert_eq!(failure.result["failures"].to_repr(), "['No package zz-no-such available.']");
        assert!(failure.message.contains("zz-no-such"), "{}", failure.message);
        let failure = run(&lab, &[("name", "zz-broken".into())]).result.unwrap_err();
        assert!(failure.message.contains("zz-there-is-no-such-thing"), "{}", failure.message);
        let failure = run(&lab, &[("name", "/no/such.rpm".into())]).result.unwrap_err();
        assert!(failure.message.contains("/no/such.rpm"), "{}", failure.message);
    }
    assert_eq!(lab.installed(), "");
    let given = [("name", names(&["zz-lonely", "zz-no-such"])), ("skip_broken", true.into())];
    assert!(run_in(&lab, &given).result.unwrap().changed);
    assert_eq!(lab.installed(), "zz-lonely-2.0");
}

#[test]
fn files_long_names_and_groups_are_installed_too() {
    let Some(lab) = RpmLab::new() else { return };
    let long = "zz-a-package-whose-name-is-longer-than-the-column-of-the-table-that-shows-it";
    let file = lab.path("repo/zz-alpha-1.0.rpm").to_string_lossy().into_owned();
    let given = [("name", names(&[&file, long]))];
    let played = run_in(&lab, &given);
    assert!(played.result.unwrap().changed);
    assert_eq!(lab.installed(), format!("{long}-1.20251130 zz-alpha-1.0 zz-dep-0.1"));
    assert_eq!(run_in(&lab, &given).batches, 1);
    undo(&played.changes);
    assert_eq!(lab.installed(), "");
    let url = format!("file://{}", lab.path("repo/zz-lonely-2.0.rpm").display());
    assert!(run_in(&lab, &[("name", url.as_str().into())]).result.unwrap().changed);
    assert_eq!(run_in(&lab, &[("name", url.as_str().into())]).batches, 1);
    run_in(&lab, &[("name", "zz-lonely".into()), ("state", "absent".into())]).result.unwrap();
    let group = [("name", "@zz-group".into())];
    assert!(check_in(&lab, &group).result.unwrap().changed);
    assert!(run_in(&lab, &group).result.unwrap().changed);
    assert_eq!(lab.installed(), "zz-lonely-2.0");
    assert!(!run_in(&lab, &group).result.unwrap().changed);
}

#[test]
fn a_new_package_in_the_repository_is_seen_when_the_cache_is_updated() {
    let Some(lab) = RpmLab::new() else { return };
    let outcome = run_in(&lab, &[("update_cache", true.into())]).result.unwrap();
    assert_eq!((outcome.changed, outcome.result["msg"].clone()), (false, "Cache updated".into()));
    lab.build("zz-new", "1", "");
    lab.index();
    assert!(run_in(&lab, &[("name", "zz-new".into())]).result.is_err());
    let given = [("name", "zz-new".into()), ("update_cache", true.into())];
    assert!(run_in(&lab, &given).result.unwrap().changed);
    let given = [
        ("name", "zz-lonely".into()),
        ("download_only", true.into()),
        ("download_dir", { lab.path("downloads").to_string_lossy().as_ref().into() }),
    ];
    let outcome = run_in(&lab, &given).result.unwrap();
    assert_eq!((outcome.changed, results(&outcome)), (true, "['Downloaded: zz-lonely-2.0-1.noarch']".to_owned()));
    assert_eq!((lab.installed().as_str(), lab.path("downloads/zz-lonely-2.0.rpm").exists()), ("zz-new-1", true));
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let refused = |given: &[(&str, Value)]| play(&MODULE, given, &Play::default()).result.unwrap_err().message;
    assert!(refused(&[("list", "installed".into())]).contains("package_facts"));
    assert!(refused(&[("name", "*".into())]).contains("state: latest"));
    assert!(refused(&[("name", "a b".into())]).contains("several packages"));
    assert!(refused(&[("name", "a".into()), ("security", true.into())]).contains("`security`"));
    assert!(refused(&[("name", "/tmp/a.rpm".into()), ("state", "absent".into())]).contains("Cannot remove paths"));
    let given = [("name", "a".into()), ("autoremove", true.into()), ("state", "present".into())];
    assert!(refused(&given).contains("Autoremove"));
    assert!(refused(&[("state", "latest".into())]).contains("one of the following is required"));
}
