//! `community.general.parted`: partitions of disks.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse, Subject};
use crate::value::{Map, Value, object};

use super::programs::{SYSTEM_PATH, make, step};
use super::storage_look::START;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Rule, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.parted",
    aliases: &[],
    summary: "Keeps partitions of disks by the host's parted",
    args: &[
        Arg::new("device", Type::Str, "the disk").required(),
        Arg::new("number", Type::Int, "the partition"),
        Arg::new("state", Type::Str, "`info`: tell what is there")
            .default("info")
            .choices(&["absent", "present", "info"]),
        Arg::new(
            "label",
            Type::Str,
            "the kind of table, made if there is none; another is replaced if no partition is in it",
        )
        .default("msdos")
        .choices(&["aix", "amiga", "bsd", "dvh", "gpt", "loop", "mac", "msdos", "pc98", "sun"]),
        Arg::new("part_type", Type::Str, "the type of a new partition")
            .default("primary")
            .choices(&["extended", "logical", "primary"]),
        Arg::new("part_start", Type::Str, "where it begins: 0%, 10GiB").default("0%"),
        Arg::new("part_end", Type::Str, "where it ends").default("100%"),
        Arg::new("name", Type::Str, "its name (gpt, mac)"),
        Arg::new("flags", Type::List, "its flags; of an existing partition just these are set"),
        Arg::new("fs_type", Type::Str, "a hint what will be on it; no file system is made"),
        Arg::new("resize", Type::Bool, "move its end to `part_end`").default("false"),
        Arg::new("align", Type::Str, "how it is aligned").default("optimal").choices(&[
            "cylinder",
            "minimal",
            "none",
            "optimal",
            "undefined",
        ]),
        Arg::new("unit", Type::Str, "the unit of what is told")
            .default("KiB")
            .choices(&["s", "B", "KB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB", "%", "cyl", "chs", "compact"]),
    ],
    rules: &[Rule::RequiredIf("state", "present", &["number"]), Rule::RequiredIf("state", "absent", &["number"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[
        ("disk", "`dev`, `size`, `unit`, `table`, `model`, `logical_block`, `physical_block`"),
        ("partitions", "for each `num`, `begin`, `end`, `size`, `fstype`, `name`, `flags`, `unit`"),
        ("script", "what parted was told"),
    ],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

#[derive(Debug, Default, Clone, PartialEq)]
struct Disk {
    size: String,
    table: String,
    model: String,
    blocks: (i64, i64),
    partitions: Vec<Partition>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Partition {
    number: i64,
    begin: String,
    end: String,
    size: String,
    kind: String,
    name: String,
    flags: Vec<String>,
}

/// Reads what `parted -m print` prints: fields apart by colons.
fn parse(text: &str) -> Option<Disk> {
    let mut lines = text.lines().map(|line| line.trim_end_matches(';'));
    lines.find(|line| *line == "BYT" || *line == "CHS" || *line == "CYL")?;
    let mut lines = lines.filter(|line| !line.is_empty());
    let head: Vec<&str> = lines.next()?.split(':').collect();
    // a device's name may hold colons, the model may not be there
    let back = |index: usize| head.len().checked_sub(index).map_or("", |at| head[at]);
    let number = |text: &str| text.parse().unwrap_or(0);
    let mut disk = Disk {
        size: back(7).to_owned(),
        table: back(3).to_owned(),
        model: back(2).to_owned(),
        blocks: (number(back(5)), number(back(4))),
        partitions: Vec::new(),
    };
    for line in lines {
        let fields: Vec<&str> = line.split(':').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or_default().to_owned();
        let Ok(number) = field(0).parse() else { continue };
        disk.partitions.push(Partition {
            number,
            begin: field(1),
            end: field(2),
            size: field(3),
            kind: field(4),
            name: field(5),
            flags: field(6).split(',').map(|flag| flag.trim().to_owned()).filter(|flag| !flag.is_empty()).collect(),
        });
    }
    Some(disk)
}

/// The number in `17.0kiB`.
fn number(text: &str) -> Value {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    match text[..end].parse::<f64>() {
        Ok(number) => Value::Float(number),
        Err(_) => text.into(),
    }
}

fn told(disk: &Disk, device: &str, unit: &str) -> (Map, Value) {
    let unit = unit.to_lowercase();
    let of_disk = object([
        ("dev", device.into()),
        ("size", number(&disk.size)),
        ("unit", unit.as_str().into()),
        ("table", disk.table.as_str().into()),
        ("model", disk.model.as_str().into()),
        ("logical_block", disk.blocks.0.into()),
        ("physical_block", disk.blocks.1.into()),
    ]);
    let partition = |own: &Partition| {
        let flags = own.flags.iter().map(|flag| Value::from(flag.as_str())).collect();
        Value::map(object([
            ("num", own.number.into()),
            ("begin", number(&own.begin)),
            ("end", number(&own.end)),
            ("size", number(&own.size)),
            ("fstype", own.kind.as_str().into()),
            ("name", own.name.as_str().into()),
            ("flags", Value::list(flags)),
            ("unit", unit.as_str().into()),
        ]))
    };
    (of_disk, Value::list(disk.partitions.iter().map(partition).collect()))
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (device, state, unit) = (args.text("device"), args.text("state"), args.text("unit"));
    if !device.starts_with('/') {
        return Err(Failure::new(format!("`{device}` is no absolute path of a disk")));
    }
    let number = args.int("number").unwrap_or(0);
    if state != "info" && number < 1 {
        return Err(Failure::new("The partition number must be greater then 0."));
    }
    let word = quote(device);
    let footprint = Footprint::Of(vec![Subject::Path(device.to_owned()), Subject::Named("storage".into())]);
    let list = format!("parted -s -m {word} -- unit {} print 2>&1", quote(unit));
    let text = format!(
        "{SYSTEM_PATH}{START}command -v parted >/dev/null || exit 127\n[ -e {word} ] || exit 3\n{list}; :\n\
         printf '\\036'; parted -s -m {word} -- unit s print 2>&1; :"
    );
    let answer = host.read(Script { text, footprint: footprint.clone() }).await?;
    match answer.code {
        Some(127) => return Err(Failure::new("the host has no program `parted`")),
        Some(3) => return Err(Failure::new(format!("there is no device {device} on the host"))),
        _ => {}
    }
    let output = answer.text();
    let (shown, exact) = output.split_once('\u{1e}').unwrap_or((&output, ""));
    let has_none = shown.contains("unrecognised disk label");
    let disk = match parse(shown) {
        Some(disk) => disk,
        None if has_none => Disk::default(),
        None => return Err(Failure::new(format!("parted: {}", shown.trim()))),
    };
    // a disk without a table is told as a table of the kind `unknown`
    let has_table = !has_none && !disk.table.is_empty() && disk.table != "unknown";
    let exact = parse(exact).unwrap_or_default();
    let outcome = |disk: &Disk| {
        let (of_disk, partitions) = told(disk, device, unit);
        Outcome::ok().with("disk", of_disk).with("partitions", partitions)
    };
    if state == "info" {
        return Ok(outcome(&disk).with("script", ""));
    }
    // parted takes the words of its command line apart once more
    let inner = |name: &str| quote(&format!("\"{}\"", name.replace('"', "")));
    let own = disk.partitions.iter().find(|own| own.number == number);
    let own_exact = exact.partitions.iter().find(|own| own.number == number);
    let mut words: Vec<String> = Vec::new();
    let mut back: Result<Vec<String>, String> = Ok(Vec::new());
    if state == "absent" {
        if own.is_none() {
            return Ok(outcome(&disk).with("script", ""));
        }
        words.push(format!("rm {number}"));
        back = match own_exact {
            Some(old) if disk.table == "gpt" => Ok(vec![format!(
                "mkpart {} {} {}",
                inner(if old.name.is_empty() { "primary" } else { &old.name }),
                old.begin,
                old.end
            )]),
            Some(old) => Ok(vec![format!("mkpart primary {} {}", old.begin, old.end)]),
            None => Err("where the partition was is not known".to_owned()),
        };
        // it is the same again only if it gets the same number and no flags are lost
        let is_last = disk.partitions.iter().all(|other| other.number <= number);
        if own.is_some_and(|own| !own.flags.is_empty()) || (disk.table == "msdos" && number > 4) || !is_last {
            back = Err(format!("partition {number} cannot be made again just as it was"));
        }
    } else {
        let label = args.text("label");
        if !has_table {
            words.push(format!("mklabel {label}"));
            back = Err("there was no table of partitions before".to_owned());
        } else if disk.table != label && !disk.partitions.is_empty() {
            return Err(Failure::new(format!(
                "{device} has a table of the kind {} with partitions in it, not {label}; remove them first",
                disk.table
            )));
        } else if disk.table != label {
            words.push(format!("mklabel {label}"));
            back = Err(format!("the table was of the kind {} before", disk.table));
        }
        match own {
            None => {
                let kind = if label == "gpt" {
                    args.str("name").unwrap_or(args.text("part_type"))
                } else {
                    args.text("part_type")
                };
                let hint = args.str("fs_type").map(|hint| format!(" {}", quote(hint))).unwrap_or_default();
                words.push(format!(
                    "mkpart {}{hint} {} {}",
                    if label == "gpt" { inner(kind) } else { quote(kind) },
                    quote(args.text("part_start")),
                    quote(args.text("part_end"))
                ));
                if let Ok(back) = &mut back {
                    back.push(format!("rm {number}"));
                }
            }
            Some(_) if args.bool("resize") => {
                let end = args.text("part_end");
                if !is_at(&exact, own_exact, end) {
                    words.push(format!("resizepart {number} {}", quote(end)));
                    back = Err("a partition is not made smaller again: what is at its end would be lost".to_owned());
                }
            }
            Some(_) => {}
        }
        if let Some(name) = args.str("name").filter(|name| own.is_none_or(|own| own.name != *name)) {
            if !["gpt", "mac"].contains(&label) {
                return Err(Failure::new(format!("partitions of a {label} table have no names")));
            }
            words.push(format!("name {number} {}", inner(name)));
            if let (Ok(back), Some(own)) = (&mut back, own) {
                back.push(format!("name {number} {}", inner(&own.name)));
            }
        }
        if args.has("flags") {
            let wanted = args.list("flags");
            let have: &[String] = own.map_or(&[], |own| &own.flags);
            let mut switch = |flag: &str, on: bool| {
                let word = |on: bool| if on { "on" } else { "off" };
                words.push(format!("set {number} {} {}", quote(flag), word(on)));
                if let (Ok(back), Some(_)) = (&mut back, own) {
                    back.push(format!("set {number} {} {}", quote(flag), word(!on)));
                }
            };
            wanted.iter().filter(|flag| !have.contains(flag)).for_each(|flag| switch(flag, true));
            // what parted shows beside `esp` and of an LBA partition is no flag of its own
            let implied = |flag: &str| (flag == "boot" && wanted.iter().any(|own| own == "esp")) || flag == "lba";
            have.iter().filter(|flag| !wanted.contains(flag) && !implied(flag)).for_each(|flag| switch(flag, false));
        }
    }
    if words.is_empty() {
        return Ok(outcome(&disk).with("script", ""));
    }
    let align = args.text("align");
    let align = if align == "undefined" { String::new() } else { format!(" -a {align}") };
    let command =
        |words: &[String], unit: &str| format!("parted -s -m{align} {word} -- unit {unit} {} >&2", words.join(" "));
    let script = words.join(" ");
    let inverse = match &back {
        Ok(back) => Inverse::Steps(vec![step(format!("{START}{}", command(back, "s")))]),
        Err(why) => Inverse::None(why.clone()),
    };
    let lines = |disk: &Disk| {
        disk.partitions
            .iter()
            .map(|own| format!("{} {} {} {} {}\n", own.number, own.begin, own.end, own.name, own.flags.join(",")))
            .collect::<String>()
    };
    let before = lines(&disk);
    let after = format!("{before}{}\n", words.join("\n"));
    let change = Change::uncertain(format!("partition {number} of {device}"), footprint)
        .step(step(format!("{START}{} && {{ {list}; :; }}", command(&words, &quote(unit)))))
        .inverse(inverse)
        .difference(Difference::new(format!("partitions of {device}"), before, after));
    let differences = change.differences.clone();
    let responses = make(&host, change).await?;
    let now = responses.and_then(|responses| parse(&responses.first()?.text())).unwrap_or(disk);
    let outcome = Outcome { changed: true, ..outcome(&now) }.differences(differences).with("script", script);
    match state == "present" && !host.is_check() && !now.partitions.iter().any(|own| own.number == number) {
        true => Err(Failure::new(format!("parted made another partition than number {number}"))),
        false => Ok(outcome),
    }
}

/// Whether a partition ends where it is to end, to within a MiB, by which parted aligns.
fn is_at(disk: &Disk, own: Option<&Partition>, end: &str) -> bool {
    let sectors = |text: &str| text.trim_end_matches('s').parse::<f64>().ok();
    let (Some(size), Some(now)) = (sectors(&disk.size), own.and_then(|own| sectors(&own.end))) else { return false };
    let block = if disk.blocks.0 > 0 { disk.blocks.0 as f64 } else { 512.0 };
    let wanted = match end.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().ok().map(|percent| size * percent / 100.0),
        None => super::storage_look::bytes(end, 'm').map(|bytes| bytes as f64 / block),
    };
    wanted.is_some_and(|wanted| (wanted.min(size) - now).abs() * block <= 2.0 * 1_048_576.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::testing::{Play, Played, play, skip, undo};

    #[test]
    fn listings_are_read() {
        let disk =
            parse("BYT;\n/dev/a:8192kiB:file:512:4096:gpt:Model:;\n1:17.0kiB:4096kiB:4079kiB:ext4:data:boot, esp;\n")
                .unwrap();
        assert_eq!((disk.table.as_str(), disk.model.as_str(), disk.blocks), ("gpt", "Model", (512, 4096)));
        let own = &disk.partitions[0];
        assert_eq!((own.name.as_str(), own.kind.as_str(), own.flags.len()), ("data", "ext4", 2));
        assert_eq!(parse("Error: Could not stat device"), None);
    }

    #[test]
    fn partitions_are_made_changed_and_removed() {
        if std::process::Command::new("sh")
            .args(["-c", "PATH=$PATH:/sbin:/usr/sbin parted --version"])
            .output()
            .is_ok_and(|output| !output.status.success())
        {
            skip("this machine has no parted");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("disk");
        std::fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
        let run = |more: &[(&'static str, Value)], check| -> Played {
            let own = [("device", path.to_str().unwrap().into()), ("label", "gpt".into()), ("state", "present".into())];
            let mut given: Vec<(&'static str, Value)> = own.to_vec();
            given.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
            given.extend(more.iter().cloned());
            play(&MODULE, &given, &Play { check, ..Play::default() })
        };
        let first = [("number", 1.into()), ("part_end", "16MiB".into()), ("name", "one two".into())];
        let info = run(&[("state", "info".into())], true).result.unwrap();
        assert!(!info.changed && info.result["partitions"].as_list().unwrap().is_empty());
        assert!(run(&first, true).result.unwrap().changed);
        let made = run(&first, false).result.unwrap();
        assert_eq!(made.result["partitions"].as_list().unwrap()[0].get("name").cloned(), Some("one two".into()));
        for check in [true, false] {
            assert!(!run(&first, check).result.unwrap().changed);
        }
        let second = [
            ("number", 2.into()),
            ("part_start", "16MiB".into()),
            ("part_end", "32MiB".into()),
            ("flags", "lvm".into()),
        ];
        let made = run(&second, false);
        assert!(made.result.unwrap().changed && !run(&second, false).result.unwrap().changed);
        let grown = [("number", 2.into()), ("part_end", "48MiB".into()), ("resize", true.into())];
        let resized = run(&grown, false);
        assert!(resized.result.unwrap().changed && !run(&grown, false).result.unwrap().changed);
        assert!(matches!(resized.changes[0].inverse, Inverse::None(_)));
        let flags = run(&[("number", 2.into()), ("flags", "raid".into())], false);
        assert!(flags.result.unwrap().changed && run(&second, true).result.unwrap().changed);
        undo(&flags.changes);
        assert!(!run(&second, true).result.unwrap().changed);
        undo(&made.changes);
        let gone = run(&[("number", 1.into()), ("state", "absent".into())], false);
        assert!(
            gone.result.unwrap().changed
                && !run(&[("number", 1.into()), ("state", "absent".into())], true).result.unwrap().changed
        );
        undo(&gone.changes);
        assert!(!run(&first, true).result.unwrap().changed);
        let other = run(&[("number", 3.into()), ("label", "msdos".into())], true).result.unwrap_err();
        assert!(other.message.contains("remove them first"), "{}", other.message);
    }
}
