use super::*;
use crate::modules::testing::{Play, Played, play, run_module, skip, snapshot, undo_in};
use crate::value::Value;

/// A shell in a mount namespace that lives as long as this.
struct Room {
    shell: &'static str,
    keeper: std::process::Child,
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

fn room() -> Option<Room> {
    let mut keeper = std::process::Command::new("unshare");
    keeper.args(["--mount", "sh", "-c", "echo; exec sleep 600"]).stderr(std::process::Stdio::null());
    let Ok(mut keeper) = keeper.stdout(std::process::Stdio::piped()).spawn() else {
        skip("mounting needs root and unshare");
        return None;
    };
    let mut line = String::new();
    let out = keeper.stdout.take().unwrap();
    let read = std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line);
    if read.ok() != Some(1) {
        let _ = keeper.wait();
        skip("mounting needs root and unshare");
        return None;
    }
    let shell = format!("nsenter --mount=/proc/{}/ns/mnt sh", keeper.id());
    Some(Room { shell: Box::leak(shell.into_boxed_str()), keeper })
}

impl Room {
    fn play(&self, given: &[(&str, Value)]) -> Played {
        play(&MODULE, given, &Play { shell: self.shell, ..Play::default() })
    }

    fn sh(&self, script: &str) -> String {
        let words: Vec<&str> = self.shell.split(' ').collect();
        let output = std::process::Command::new(words[0]).args(&words[1..]).args(["-c", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

fn given(directory: &std::path::Path, state: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let at = |name: &str| Value::from(directory.join(name).to_str().unwrap());
    let own = [
        ("path", at("deep/m nt")),
        ("fstab", at("fstab")),
        ("state", state.into()),
        ("src", "tmpfs".into()),
        ("fstype", "tmpfs".into()),
        ("opts", "size=64k,noexec".into()),
    ];
    let mut all = own.to_vec();
    all.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
    all.extend(more.iter().cloned());
    all
}

#[test]
fn a_file_system_is_mounted_kept_and_taken_away() {
    let Some(room) = room() else { return };
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("fstab"), "# mine\n").unwrap();
    let before = snapshot(root.path());
    let fstab = || std::fs::read_to_string(root.path().join("fstab")).unwrap();
    let mount = format!("grep '{}/deep/m.040nt' /proc/self/mountinfo", root.path().display());
    let made = room.play(&given(root.path(), "mounted", &[]));
    assert!(made.result.unwrap().changed && made.changes[0].certain);
    assert!(room.sh(&mount).contains("noexec"), "{}", room.sh(&mount));
    let line = format!("tmpfs {}/deep/m\\040nt tmpfs size=64k,noexec 0 0\n", root.path().display());
    assert_eq!(fstab(), format!("# mine\n{line}"));
    let again = room.play(&given(root.path(), "mounted", &[]));
    assert_eq!((again.result.unwrap().changed, again.batches), (false, 1));
    let other = room.play(&given(root.path(), "mounted", &[("opts", "size=64k,nosuid".into()), ("passno", 2.into())]));
    assert!(other.result.unwrap().changed);
    assert!(room.sh(&mount).contains("nosuid") && fstab().ends_with("nosuid 0 2\n"), "{}", room.sh(&mount));
    undo_in(&other.changes, room.shell);
    assert!(room.sh(&mount).contains("noexec") && fstab().ends_with(&line));
    let away = room.play(&given(root.path(), "unmounted", &[]));
    assert!(away.result.unwrap().changed && room.sh(&mount).is_empty() && fstab().ends_with(&line));
    assert!(!room.play(&given(root.path(), "unmounted", &[])).result.unwrap().changed);
    undo_in(&away.changes, room.shell);
    assert!(!room.sh(&mount).is_empty());
    let gone = room.play(&given(root.path(), "absent", &[]));
    assert!(gone.result.unwrap().changed);
    assert!(room.sh(&mount).is_empty() && fstab() == "# mine\n" && !root.path().join("deep/m nt").exists());
    undo_in(&gone.changes, room.shell);
    assert!(!room.sh(&mount).is_empty());
    undo_in(&made.changes, room.shell);
    assert!(room.sh(&mount).is_empty());
    assert_eq!(snapshot(root.path()), before);
}

#[test]
fn what_cannot_be_mounted_leaves_nothing() {
    let Some(room) = room() else { return };
    let root = tempfile::tempdir().unwrap();
    let before = snapshot(root.path());
    let wrong = given(root.path(), "mounted", &[("fstype", "nosuchfs".into())]);
    let failure = room.play(&wrong).result.unwrap_err();
    assert!(failure.message.contains("mount: "), "{}", failure.message);
    assert_eq!(snapshot(root.path()), before);
}

#[test]
fn ephemeral_and_remounted_leave_fstab_alone() {
    let Some(room) = room() else { return };
    let root = tempfile::tempdir().unwrap();
    let mount = format!("grep '{}/deep/m.040nt' /proc/self/mountinfo", root.path().display());
    assert!(room.play(&given(root.path(), "ephemeral", &[])).result.unwrap().changed);
    assert!(room.sh(&mount).contains("noexec") && !root.path().join("fstab").exists());
    let failure = room.play(&given(root.path(), "ephemeral", &[("src", "other".into())])).result.unwrap_err();
    assert!(failure.message.starts_with("Ephemeral mount point is already mounted"), "{}", failure.message);
    let again = room.play(&given(root.path(), "remounted", &[("opts", "nodev".into())]));
    assert!(again.result.unwrap().changed && room.sh(&mount).contains("nodev"), "{}", room.sh(&mount));
    undo_in(&again.changes, room.shell);
    assert!(!room.sh(&mount).contains("nodev"));
}

#[test]
fn fstab_alone_can_be_changed() {
    let root = tempfile::tempdir().unwrap();
    let run = |given: &[(&str, Value)]| run_module(&MODULE, given).unwrap();
    let outcome = run(&given(root.path(), "present", &[("boot", false.into()), ("backup", true.into())]));
    assert_eq!((outcome.changed, outcome.result["boot"].clone()), (true, "no".into()));
    assert_eq!(outcome.result["opts"], "size=64k,noexec,noauto".into());
    assert!(!run(&given(root.path(), "present", &[("boot", false.into())])).changed);
    let hidden = run(&given(root.path(), "present", &[("opts_no_log", true.into()), ("opts", "password=x".into())]));
    assert!(!format!("{hidden:?}").contains("password=x"));
    assert!(run(&given(root.path(), "absent_from_fstab", &[])).changed);
    let swap = |src: &str| {
        given(root.path(), "present", &[("path", "none".into()), ("src", src.into()), ("fstype", "swap".into())])
    };
    assert!(run(&swap("/dev/a")).changed && run(&swap("/dev/b")).changed && !run(&swap("/dev/a")).changed);
    let failure = run_module(&MODULE, &given(root.path(), "mounted", &[("path", "none".into())])).unwrap_err();
    assert!(failure.message.contains("swapon"), "{}", failure.message);
    assert!(run_module(&MODULE, &[("path", "/x".into()), ("state", "mounted".into())]).is_err());
}
