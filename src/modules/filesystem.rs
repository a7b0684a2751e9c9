//! `community.general.filesystem`: file systems on block devices.

use crate::connect::shell::quote;
use crate::host::reads::{Attributes, Script};
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Subject};

use super::programs::{SYSTEM_PATH, make, step};
use super::storage_look::{START, lines, type_script};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

const KINDS: &[&str] =
    &["btrfs", "ext2", "ext3", "ext4", "ext4dev", "f2fs", "lvm", "ocfs2", "reiserfs", "swap", "vfat", "xfs"];

pub const MODULE: Module = Module {
    name: "community.general.filesystem",
    aliases: &[],
    summary: "Makes file systems on devices, grows them and wipes them",
    args: &[
        Arg::new("dev", Type::Path, "the device, or a file").required().aliases(&["device"]),
        Arg::new("fstype", Type::Str, "the kind of file system; needed for state=present")
            .choices(KINDS)
            .aliases(&["type"]),
        Arg::new("state", Type::Str, "`absent`: its signatures are wiped")
            .default("present")
            .choices(&["present", "absent"]),
        Arg::new("force", Type::Bool, "make it though there is another").default("false"),
        Arg::new("resizefs", Type::Bool, "grow it to the size of the device").default("false"),
        Arg::new("opts", Type::Str, "more options of mkfs"),
        Arg::new("uuid", Type::Str, "the UUID of a new one, as mkfs takes it"),
    ],
    rules: &[Rule::RequiredIf("state", "present", &["fstype"]), Rule::MutuallyExclusive(&["uuid", "resizefs"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (device, state) = (args.text("dev"), args.text("state"));
    let footprint = || Footprint::Of(vec![Subject::Path(device.to_owned()), Subject::Named("storage".into())]);
    if !device.starts_with('/') {
        return Err(Failure::new(format!("`{device}` is no absolute path of a device")));
    }
    let (there, answer) = futures_util::try_join!(
        host.read(Attributes { path: device.to_owned(), follow: true }),
        host.read(Script { text: type_script(device), footprint: footprint() })
    )?;
    if there.is_none() {
        return match state {
            "absent" => Ok(Outcome::ok().with("msg", format!("Device {device} not found."))),
            _ => Err(Failure::new(format!("Device {device} not found."))),
        };
    }
    let now = lines(&answer, "blkid")?.into_iter().next().unwrap_or_default();
    let plain = |kind: &str| match kind {
        "lvm" => "LVM2_member".to_owned(),
        "ext4dev" => "ext4".to_owned(),
        kind => kind.to_owned(),
    };
    let device_word = quote(device);
    let gone = |what: &str| Inverse::None(format!("what was on {device} {what}"));
    let (code, inverse, after) = if state == "absent" {
        if now.is_empty() {
            return Ok(Outcome::ok());
        }
        (format!("wipefs --all {device_word} >&2"), gone("is gone"), String::new())
    } else {
        let kind = args.text("fstype");
        if now == plain(kind) && !args.bool("force") {
            if !args.bool("resizefs") {
                return Ok(Outcome::ok());
            }
            return grow(&host, device, kind, footprint()).await;
        }
        if !now.is_empty() && !args.bool("force") {
            return Err(Failure::new(format!("'{device}' is already used as {now}, use force=true to overwrite")));
        }
        let inverse = match now.is_empty() {
            true => Inverse::Steps(vec![step(format!("wipefs --all {device_word} >&2"))]),
            false => gone("before is gone"),
        };
        (mkfs(kind, &device_word, args.str("opts").unwrap_or_default(), args.str("uuid"))?, inverse, plain(kind))
    };
    let line = |kind: &str| if kind.is_empty() { String::new() } else { format!("{kind}\n") };
    let change = Change::uncertain(format!("file system on {device}"), footprint())
        .step(step(format!("{START}{code}")))
        .inverse(inverse)
        .difference(Difference::new(format!("file system on {device}"), line(&now), line(&after)));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome::changed().differences(differences))
}

/// The command that makes a file system; it has been made sure that nothing is lost that may not.
fn mkfs(kind: &str, device: &str, options: &str, uuid: Option<&str>) -> Result<String, Failure> {
    let (program, force, id) = match kind {
        "ext2" | "ext3" | "ext4" | "ext4dev" => ("mkfs.", "-F", "-U"),
        "xfs" => ("mkfs.", "-f", "-m uuid="),
        "btrfs" => ("mkfs.", "-f", "-U"),
        "f2fs" => ("mkfs.", "-f", ""),
        "reiserfs" => ("mkfs.", "-q", "-u"),
        "ocfs2" => ("mkfs.", "-Fx", ""),
        "vfat" => ("mkfs.", "", "-i"),
        "swap" => ("mkswap", "-f", "-U"),
        _ => ("pvcreate", "-f -y", ""),
    };
    let program =
        if program == "mkfs." { format!("mkfs.{}", kind.trim_end_matches("dev")) } else { program.to_owned() };
    let id = match uuid.filter(|uuid| !uuid.is_empty()) {
        None => String::new(),
        Some(_) if id.is_empty() => return Err(Failure::new(format!("`uuid` is not supported for {kind}"))),
        Some(uuid) if id.ends_with('=') => format!(" {id}{}", quote(uuid)),
        Some(uuid) => format!(" {id} {}", quote(uuid)),
    };
    // the options are words of a command line, as the task gives them
    let options = super::file_common::content::split_words(options)
        .ok_or_else(|| Failure::new("a quote in `opts` is not closed"))?
        .iter()
        .map(|word| format!(" {}", quote(word)))
        .collect::<String>();
    Ok(format!("{program} {force}{id}{options} {device} >&2"))
}

/// Grows a file system, if it does not fill its device.
async fn grow(host: &crate::host::Host, device: &str, kind: &str, footprint: Footprint) -> Result<Outcome, Failure> {
    let word = quote(device);
    let size = format!("s=$(blockdev --getsize64 {word} 2>/dev/null || stat -L -c %s {word}) || exit\n");
    // what is mounted is grown by its place
    let place = format!("m=$(findmnt -n -o TARGET --source {word} 2>/dev/null | head -n 1)\n");
    let (look, code) = match kind {
        "ext2" | "ext3" | "ext4" | "ext4dev" => (
            format!("dumpe2fs -h {word} 2>/dev/null | awk -v s=\"$s\" '/^Block count:/{{c=$3}}/^Block size:/{{b=$3}}END{{if(!b)exit 1;print (s-c*b>=b)?\"grow\":\"full\"}}'"),
            format!("resize2fs {word} >&2"),
        ),
        "xfs" => (
            "[ -n \"$m\" ] || { echo unmounted; exit 0; }; xfs_info \"$m\" | awk -v s=\"$s\" '/^data /{for(i=1;i<=NF;i++){if($i~/^bsize=/){split($i,a,\"=\");b=a[2]}if($i~/^blocks=/){split($i,a,\"=\");c=a[2]}}}END{sub(\",\",\"\",c);if(!b)exit 1;print (s-c*b>=b)?\"grow\":\"full\"}'".to_owned(),
            "xfs_growfs \"$m\" >&2".to_owned(),
        ),
        other => return Err(Failure::new(format!("module does not support resizing {other} filesystem yet"))),
    };
    let text = format!("{SYSTEM_PATH}{START}{size}{place}{look}");
    let answer = host.read(Script { text, footprint: footprint.clone() }).await?;
    match lines(&answer, "the size of the file system")?.first().map(String::as_str) {
        Some("full") => {
            return Ok(Outcome::ok().with("msg", format!("{kind} filesystem is using the whole device {device}")));
        }
        Some("grow") => {}
        Some("unmounted") => return Err(Failure::new(format!("{device} needs to be mounted for xfs operations"))),
        _ => return Err(Failure::new(format!("the size of the file system on {device} cannot be read"))),
    }
    let change = Change::uncertain(format!("size of the file system on {device}"), footprint)
        .step(step(format!("{START}{place}{code}")))
        .inverse(Inverse::None("a file system that has grown is not made smaller again".to_owned()))
        .difference(Difference::new(
            format!("file system on {device}"),
            "smaller than the device\n",
            "as large as the device\n",
        ));
    let differences = change.differences.clone();
    make(host, change).await?;
    Ok(Outcome::changed().differences(differences))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, undo};
    use crate::value::Value;

    #[test]
    fn file_systems_are_made_grown_and_wiped() {
        let has = |program: &str| {
            let script = format!("PATH=$PATH:/sbin:/usr/sbin command -v {program} >/dev/null");
            std::process::Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
        };
        if !["mkfs.ext4", "blkid", "wipefs", "dumpe2fs", "resize2fs"].iter().all(|program| has(program)) {
            skip("this machine has not all of mkfs.ext4, blkid, wipefs, resize2fs");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("disk");
        std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own = [("dev", path.to_str().unwrap().into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { check, ..Play::default() })
        };
        let ext4 = [("fstype", "ext4".into()), ("opts", "-q -b 1024".into())];
        assert!(run(&ext4, true).result.unwrap().changed);
        let made = run(&ext4, false);
        assert!(made.result.unwrap().changed && !run(&ext4, false).result.unwrap().changed);
        assert!(run(&[("fstype", "swap".into())], true).result.unwrap_err().message.contains("already used as ext4"));
        let grown = [&ext4[..], &[("resizefs", true.into())]].concat();
        assert!(!run(&grown, true).result.unwrap().changed);
        std::fs::File::options().write(true).open(&path).unwrap().set_len(16 << 20).unwrap();
        assert!(run(&grown, true).result.unwrap().changed);
        assert!(run(&grown, false).result.unwrap().changed && !run(&grown, false).result.unwrap().changed);
        let forced = run(&[("fstype", "swap".into()), ("force", true.into())], false);
        assert!(forced.result.unwrap().changed && matches!(forced.changes[0].inverse, Inverse::None(_)));
        let absent = [("state", "absent".into())];
        assert!(run(&absent, false).result.unwrap().changed && !run(&absent, false).result.unwrap().changed);
        run(&ext4, false).result.unwrap();
        undo(&made.changes);
        assert!(!run(&absent, true).result.unwrap().changed);
    }

    #[test]
    fn options_are_words() {
        assert_eq!(mkfs("xfs", "/dev/x", "-L 'a b'", Some("u")).unwrap(), "mkfs.xfs -f -m uuid=u -L 'a b' /dev/x >&2");
        assert_eq!(mkfs("lvm", "/dev/x", "", None).unwrap(), "pvcreate -f -y /dev/x >&2");
        assert!(mkfs("lvm", "/dev/x", "", Some("u")).is_err() && mkfs("ext4", "/dev/x", "'", None).is_err());
    }
}
