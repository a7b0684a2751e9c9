use super::*;
use crate::host::Inverse;
use crate::modules::testing::{Play, Played, accounts_lock, can_change_accounts, check_module, play, run_module, undo};
use crate::value::Value;

const NAME: &str = "trimtabtestuser";
const HASH: &str = "$6$saltsalt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIecDzlB5KiA2/jctKu9YterLp8wwnSq.qc.eoxqOmSuNp2xS0ktL3nh/";

/// Removes the test's user and home whatever happened.
struct Cleared;

impl Cleared {
    fn new() -> Cleared {
        clear();
        Cleared
    }
}

impl Drop for Cleared {
    fn drop(&mut self) {
        clear();
    }
}

fn clear() {
    let script = format!("userdel -f {NAME}; groupdel {NAME}; rm -rf /tmp/{NAME} /home/{NAME}");
    let _ = std::process::Command::new("sh").args(["-c", &script]).output();
}

fn sh(script: &str) -> String {
    let output = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn with(more: &[(&'static str, Value)]) -> Played {
    play(&MODULE, &[&[("name", NAME.into())], more].concat(), &Play::default())
}

fn changed(more: &[(&'static str, Value)]) -> bool {
    with(more).result.unwrap().changed
}

#[test]
fn a_user_is_made_as_asked_and_is_right_then() {
    if !can_change_accounts() {
        return;
    }
    let (_lock, _cleared) = (accounts_lock(), Cleared::new());
    let home = format!("/tmp/{NAME}/deep/home");
    let given: Vec<(&str, Value)> = vec![
        ("uid", 54_411.into()),
        ("group", "daemon".into()),
        ("groups", "users,4".into()),
        ("comment", "A B, it's".into()),
        ("home", home.as_str().into()),
        ("shell", "/bin/sh".into()),
        ("password", HASH.into()),
        ("expires", 1_600_000_000.into()),
        ("password_expire_max", 90.into()),
        ("password_expire_account_disable", 7.into()),
    ];
    let would = check_module(&MODULE, &[&[("name", NAME.into())], &given[..]].concat()).unwrap();
    assert!(would.changed && sh(&format!("getent passwd {NAME}")).is_empty());
    let made = with(&given);
    let outcome = made.result.unwrap();
    let of = |key: &str| outcome.result[key].to_string();
    assert_eq!([of("uid"), of("group"), of("home"), of("groups")], ["54411", "1", home.as_str(), "users,4"]);
    assert_eq!(of("password"), "NOT_LOGGING_PASSWORD");
    assert_eq!(sh(&format!("getent passwd {NAME}")), format!("{NAME}:x:54411:1:A B, it's:{home}:/bin/sh"));
    assert_eq!(sh(&format!("id -Gn {NAME}")), "daemon adm users");
    assert_eq!(sh(&format!("grep ^{NAME}: /etc/shadow | cut -d: -f2,5,7,8")), format!("{HASH}:90:7:18518"));
    assert_eq!(sh(&format!("stat -c %u:%g {home}")), "54411:1");
    for step in &made.changes[0].steps {
        assert!(!step.script.contains("saltsalt"), "a hash in a command line: {}", step.script);
    }
    let again = with(&given);
    assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
    undo(&made.changes);
    assert!(sh(&format!("getent passwd {NAME}")).is_empty());
}

#[test]
fn an_existing_user_is_changed_in_one_step_and_brought_back() {
    if !can_change_accounts() {
        return;
    }
    let (_lock, _cleared) = (accounts_lock(), Cleared::new());
    assert!(changed(&[
        ("home", format!("/tmp/{NAME}").into()),
        ("groups", "users".into()),
        ("shell", "/bin/sh".into())
    ]));
    let state = || sh(&format!("getent passwd {NAME}; id -Gn {NAME}; grep ^{NAME}: /etc/shadow"));
    let before = state();
    let given: Vec<(&str, Value)> = vec![
        ("groups", "adm".into()),
        ("append", true.into()),
        ("comment", "New".into()),
        ("shell", "/bin/false".into()),
        ("password", HASH.into()),
        ("password_lock", true.into()),
        ("password_expire_min", 3.into()),
        ("expires", (-1).into()),
    ];
    let done = with(&given);
    assert!(done.result.unwrap().changed && done.changes[0].certain);
    assert_eq!(sh(&format!("id -Gn {NAME}")), format!("{NAME} adm users"));
    assert_eq!(sh(&format!("grep ^{NAME}: /etc/shadow | cut -d: -f2,4")), format!("!{HASH}:3"));
    assert!(!changed(&given));
    assert!(!changed(&[("password", "$6$x$other".into()), ("update_password", "on_create".into())]));
    undo(&done.changes);
    assert_eq!(state(), before);
    // a lock of its own, and all groups taken away
    assert!(changed(&[("password", HASH.into())]) && changed(&[("password_lock", true.into())]));
    assert!(!changed(&[("password_lock", true.into())]) && changed(&[("password_lock", false.into())]));
    assert!(changed(&[("groups", Value::list(vec![]))]) && !changed(&[("groups", "".into())]));
    assert_eq!(sh(&format!("id -Gn {NAME}")), NAME);
}

#[test]
fn a_missing_home_is_made_and_a_user_goes_with_or_without_it() {
    if !can_change_accounts() {
        return;
    }
    let (_lock, _cleared) = (accounts_lock(), Cleared::new());
    let home = format!("/tmp/{NAME}");
    assert!(changed(&[("home", home.as_str().into()), ("create_home", false.into()), ("system", true.into())]));
    assert!(!std::path::Path::new(&home).exists());
    assert!(!changed(&[("create_home", false.into())]));
    assert!(changed(&[("umask", "027".into())]));
    assert_eq!(sh(&format!("stat -c '%a %U' {home}")), format!("750 {NAME}"));
    let state = || sh(&format!("getent passwd {NAME}; getent group {NAME}; grep ^{NAME}: /etc/shadow"));
    let before = state();
    let gone = with(&[("state", "absent".into())]);
    assert!(gone.result.unwrap().changed && state().is_empty());
    undo(&gone.changes);
    assert_eq!(state(), before);
    let gone = with(&[("state", "absent".into()), ("remove", true.into())]);
    assert!(gone.result.unwrap().changed && !std::path::Path::new(&home).exists());
    assert!(matches!(&gone.changes[0].inverse, Inverse::None(reason) if reason.contains("home")));
    assert!(!changed(&[("state", "absent".into())]));
}

#[test]
fn a_key_is_made_once_and_its_passphrase_is_in_no_command_line() {
    if !can_change_accounts() {
        return;
    }
    let (_lock, _cleared) = (accounts_lock(), Cleared::new());
    let given: Vec<(&str, Value)> = vec![
        ("home", format!("/tmp/{NAME}").into()),
        ("generate_ssh_key", true.into()),
        ("ssh_key_type", "ed25519".into()),
        ("ssh_key_comment", "a b".into()),
        ("ssh_key_passphrase", "very secret".into()),
    ];
    let made = with(&given);
    let outcome = made.result.unwrap();
    let file = outcome.result["ssh_key_file"].to_string();
    assert_eq!(file, format!("/tmp/{NAME}/.ssh/id_ed25519"));
    assert!(outcome.result["ssh_fingerprint"].to_string().contains("SHA256:"), "{:?}", outcome.result);
    assert!(outcome.result["ssh_public_key"].to_string().ends_with(" a b"));
    assert!(!made.changes.iter().flat_map(|change| &change.steps).any(|step| step.script.contains("very secret")));
    assert_eq!(sh(&format!("ssh-keygen -y -P 'very secret' -f {file} | cut -c1-11")), "ssh-ed25519");
    assert_eq!(sh(&format!("stat -c '%U %a' /tmp/{NAME}/.ssh")), format!("{NAME} 700"));
    let again = run_module(&MODULE, &[&[("name", NAME.into())], &given[..]].concat()).unwrap();
    assert!(!again.changed && again.warnings[0].contains("no force"));
    assert_eq!(again.result["ssh_fingerprint"], outcome.result["ssh_fingerprint"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |more: &[(&'static str, Value)]| with(more).result.unwrap_err().message;
    assert_eq!(refused(&[("group", "no-such-group".into())]), "Group no-such-group does not exist");
    assert_eq!(refused(&[("groups", "users,no-such".into())]), "Group no-such does not exist");
    assert!(refused(&[("comment", "a:b".into())]).contains("colon"));
    assert!(refused(&[("local", true.into())]).contains("libuser"));
    assert!(refused(&[("uid", (-5).into())]).contains("no number of an account"));
    let outcome =
        check_module(&MODULE, &[("name", NAME.into()), ("password", "plain".into()), ("hidden", true.into())]);
    let warnings = outcome.unwrap().warnings;
    assert!(warnings[0].contains("not to have been hashed") && warnings[1].contains("`hidden`"), "{warnings:?}");
}
