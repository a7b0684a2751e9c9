//! `community.general.lvol`: logical volumes of LVM.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};

use super::lvg::options;
use super::programs::{SYSTEM_PATH, make, parts, step};
use super::storage_look::{START, bytes};
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.lvol",
    aliases: &[],
    summary: "Keeps logical volumes of LVM, with snapshots and thin pools",
    args: &[
        Arg::new("vg", Type::Str, "the volume group").required(),
        Arg::new("lv", Type::Str, "the volume"),
        Arg::new("size", Type::Str, "MiB or with a unit; `80%VG`, `100%FREE`; with `+` or `-` more or less than now"),
        Arg::new("state", Type::Str, "whether it is there").default("present").choices(&["absent", "present"]),
        Arg::new("active", Type::Bool, "whether it can be used").default("true"),
        Arg::new("force", Type::Bool, "shrink or remove it").default("false"),
        Arg::new("shrink", Type::Bool, "shrink it if it is larger").default("true"),
        Arg::new("resizefs", Type::Bool, "resize the file system on it too").default("false"),
        Arg::new("opts", Type::Str, "more options of lvcreate"),
        Arg::new("snapshot", Type::Str, "the name of a snapshot of `lv`"),
        Arg::new("thinpool", Type::Str, "the thin pool: of `lv`, or itself if there is no `lv`"),
        Arg::new("pvs", Type::List, "the devices to use"),
    ],
    rules: &[super::Rule::RequiredOneOf(&["lv", "thinpool"])],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

/// What a task says of the size.
#[derive(Debug, Clone, PartialEq)]
struct Size {
    /// `+`, `-` or nothing.
    sign: Option<char>,
    /// For lvcreate: ` -L 512m` or ` -l 80%VG`.
    words: String,
    amount: Amount,
}

#[derive(Debug, Clone, PartialEq)]
enum Amount {
    Bytes(u64),
    /// Of `VG`, `FREE`, `PVS`, `ORIGIN`.
    Percent(f64, String),
}

fn size(text: &str) -> Result<Size, Failure> {
    let wrong = || Failure::new(format!("Bad size specification of '{text}'"));
    let sign = text.chars().next().filter(|sign| matches!(sign, '+' | '-'));
    let rest = text.trim_start_matches(['+', '-']);
    if let Some((number, whole)) = rest.split_once('%') {
        let percent: f64 = number.parse().map_err(|_| wrong())?;
        if percent > 100.0 {
            return Err(Failure::new("Size percentage cannot be larger than 100%"));
        }
        if !["VG", "PVS", "FREE", "ORIGIN"].contains(&whole) {
            return Err(Failure::new("Specify extents as a percentage of VG|PVS|FREE|ORIGIN"));
        }
        return Ok(Size { sign, words: format!(" -l {rest}"), amount: Amount::Percent(percent, whole.to_owned()) });
    }
    let amount = bytes(rest, 'm').ok_or_else(wrong)?;
    Ok(Size { sign, words: format!(" -L {amount}b"), amount: Amount::Bytes(amount) })
}

/// A group's extents: their size in bytes, how many there are, how many are free.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    extent: u64,
    count: u64,
    free: u64,
}

/// The size that is asked for in bytes, in whole extents.
fn asked(size: &Size, now: Option<u64>, group: Group) -> Result<u64, Failure> {
    let amount = match &size.amount {
        Amount::Bytes(bytes) => *bytes,
        Amount::Percent(percent, whole) => {
            let of = match whole.as_str() {
                "VG" => group.count,
                "FREE" => group.free,
                other => return Err(Failure::new(format!("a size in %{other} is for new volumes alone"))),
            };
            let part = (of as f64 * percent / 100.0).floor() as u64 * group.extent;
            // what it has already is a part of what it may have
            if whole == "FREE" && size.sign.is_none() { part + now.unwrap_or(0) } else { part }
        }
    };
    let now = now.unwrap_or(0);
    let wanted = match size.sign {
        Some('+') => now + amount,
        Some(_) => now.saturating_sub(amount),
        None => amount,
    };
    Ok(wanted.div_ceil(group.extent.max(1)) * group.extent)
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let text = |name: &str| args.str(name).filter(|text| !text.is_empty());
    let (group, state) = (args.text("vg"), args.text("state"));
    let (volume, snapshot, pool) = (text("lv"), text("snapshot"), text("thinpool"));
    for name in [Some(group), volume, snapshot, pool].into_iter().flatten() {
        if name.starts_with('-') || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+_.-".contains(&byte)) {
            return Err(Failure::new(format!("`{name}` cannot be a name of LVM")));
        }
    }
    if snapshot.is_some() && volume.is_none() {
        return Err(Failure::new("Snapshots need `lv`: the volume that they are of"));
    }
    let name = snapshot.or(volume).or(pool).unwrap_or_default();
    let word = quote(group);
    let script = format!(
        "{SYSTEM_PATH}{START}command -v lvs >/dev/null || exit 127\n\
         vgs --noheadings --nosuffix --units b --separator '|' -o vg_extent_size,vg_extent_count,vg_free_count {word} || exit; printf '\\036'\n\
         lvs --noheadings --nosuffix --units b --separator '|' -o lv_name,lv_size,lv_active,lv_layout {word} 2>/dev/null; :"
    );
    let answer = host.read(Script { text: script, footprint: Footprint::named("storage") }).await?;
    match answer.code {
        Some(0) => {}
        Some(127) => return Err(Failure::new("the host has no LVM (no program `lvs`)")),
        _ if state == "absent" => return Ok(Outcome::ok().with("msg", format!("Volume group {group} does not exist."))),
        _ => return Err(Failure::new(format!("Volume group {group} does not exist."))),
    }
    let parts = parts(&answer, 2);
    let fields = |line: &str| line.trim().split('|').map(|field| field.trim().to_owned()).collect::<Vec<_>>();
    let number = |text: Option<&String>| text.and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let of_group = fields(&parts[0]);
    let extents =
        Group { extent: number(of_group.first()), count: number(of_group.get(1)), free: number(of_group.get(2)) };
    let volumes: Vec<Vec<String>> = parts[1].lines().map(fields).collect();
    let there = volumes.iter().find(|fields| fields[0].trim_matches(['[', ']']) == name);
    let now = there.map(|fields| number(fields.get(1)));
    let full = format!("{group}/{name}");
    let target = quote(&full);
    let size = text("size").map(size).transpose()?;
    let devices: String = args.list("pvs").iter().map(|device| format!(" {}", quote(device))).collect();
    let wants_active = args.bool("active");
    let resize_fs = if args.bool("resizefs") { " --resizefs" } else { "" };
    let mut forth = Vec::new();
    let mut back = Vec::new();
    let mut loss = None;
    match (now, state) {
        (None, "absent") => return Ok(Outcome::ok()),
        (Some(_), "absent") => {
            if !args.bool("force") {
                return Err(Failure::new("Sorry, no removal of logical volumes without force=true."));
            }
            forth.push(format!("lvremove --force {target} >&2"));
            loss = Some(format!("what was on {full} is gone"));
        }
        (None, _) => {
            let more = options(text("opts").unwrap_or_default(), "opts")?;
            let amount = size.as_ref().map(|size| {
                if size.sign.is_some() {
                    Err(Failure::new(format!("{full} is new: its size has no sign")))
                } else {
                    Ok(size.words.clone())
                }
            });
            let amount = amount.transpose()?;
            let needs = || Failure::new("No size given.");
            let create = match (snapshot, volume, pool) {
                (Some(snapshot), Some(volume), _) => {
                    let origin = volumes.iter().find(|fields| fields[0] == volume);
                    let origin = origin.ok_or_else(|| {
                        Failure::new(format!("Snapshot origin LV {volume} does not exist in volume group {group}."))
                    })?;
                    let thin = origin.get(3).is_some_and(|layout| layout.contains("thin"));
                    let amount = match amount {
                        Some(amount) => amount,
                        None if thin => String::new(),
                        None => return Err(needs()),
                    };
                    format!(
                        "lvcreate -y{amount} -s -n {}{more} {}",
                        quote(snapshot),
                        quote(&format!("{group}/{volume}"))
                    )
                }
                (_, Some(volume), Some(pool)) => {
                    let amount = amount.ok_or_else(needs)?.replace(" -L ", " -V ");
                    if amount.contains('%') {
                        return Err(Failure::new("Thin volume sizing with percentage not supported."));
                    }
                    format!("lvcreate -y -n {}{amount}{more} -T {}", quote(volume), quote(&format!("{group}/{pool}")))
                }
                (_, None, Some(pool)) => {
                    format!("lvcreate -y{}{more} -T {}", amount.ok_or_else(needs)?, quote(&format!("{group}/{pool}")))
                }
                _ => format!("lvcreate -y -n {}{}{more} {word}{devices}", quote(name), amount.ok_or_else(needs)?),
            };
            forth.push(format!("{create} >&2"));
            if !wants_active {
                forth.push(format!("lvchange -an {target} >&2"));
            }
            back.push(format!("lvremove --force {target} >&2"));
        }
        (Some(now), _) => {
            if let Some(size) = size.as_ref().filter(|_| snapshot.is_none()) {
                let wanted = asked(size, Some(now), extents)?;
                if wanted > now {
                    forth.push(format!("lvextend{resize_fs} -L {wanted}b {target}{devices} >&2"));
                    match args.bool("resizefs") {
                        true => loss = Some("a file system that has grown is not made smaller again".to_owned()),
                        false => back.push(format!("lvreduce --force -y -L {now}b {target} >&2")),
                    }
                } else if wanted < now && args.bool("shrink") {
                    if wanted == 0 {
                        return Err(Failure::new(format!("Sorry, no shrinking of {full} to 0 permitted.")));
                    }
                    if !args.bool("force") {
                        return Err(Failure::new(format!("Sorry, no shrinking of {full} without force=true.")));
                    }
                    forth.push(format!("lvreduce --force -y{resize_fs} -L {wanted}b {target} >&2"));
                    loss = Some(format!("what was behind the end of {full} is gone"));
                }
            }
            let is_active = there.is_some_and(|fields| fields.get(2).is_some_and(|state| state.starts_with("active")));
            if is_active != wants_active {
                let switch = |on: bool| format!("lvchange -a{} {target} >&2", if on { "y" } else { "n" });
                forth.push(switch(wants_active));
                back.push(switch(is_active));
            }
        }
    }
    if forth.is_empty() {
        return Ok(Outcome::ok().with("vg", group).with("lv", name).with("size", now.unwrap_or(0)));
    }
    back.reverse();
    let inverse = match loss {
        Some(why) => Inverse::None(why),
        None => Inverse::Steps(back.iter().map(|code| step(format!("{START}{code}"))).collect()),
    };
    let before = now.map(|bytes| format!("{bytes} bytes\n")).unwrap_or_default();
    let after = forth.iter().map(|code| code.trim_end_matches(" >&2").to_owned() + "\n").collect::<String>();
    let change = Change::uncertain(
        format!("volume {full}"),
        Footprint::named("storage").and(Footprint::path(format!("/dev/{full}"))),
    )
    .step(step(format!("{START}{}", forth.join(" &&\n"))))
    .inverse(inverse)
    .difference(Difference::new(format!("volume {full}"), before, after));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome::changed().differences(differences).with("vg", group).with("lv", name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};
    use crate::value::Value;

    /// One group of 25 extents of 4 MiB; volumes as `NAME|BYTES|STATE` lines.
    const LVM: &str = r#"
touch "$D/lv"; n=$(basename "$0"); echo "$n $*" >>"$D/log"
name= size=; for w; do case $p in -n) name=$w ;; -L|-V) size=${w%b} ;; -l) size=104857600 ;; esac; p=$w; last=$w; done; last=${last##*/}
used=$(awk -F'|' '{s+=$2}END{print s+0}' "$D/lv")
case $n in
vgs) [ "$last" = data ] || exit 5; echo " 4194304|25|$(( (104857600 - used) / 4194304 ))" ;;
lvs) sed 's/$/|linear/; s/^/ /' "$D/lv" ;;
lvcreate) echo "${name:-$last}|$size|active" >>"$D/lv" ;;
lvextend|lvreduce) for w; do case $w in data/*) last=${w#data/} ;; esac; done; sed -i "s/^$last|[0-9]*|/$last|$size|/" "$D/lv" ;;
lvremove) sed -i "/^$last|/d" "$D/lv" ;;
lvchange) case $1 in -an) s= ;; *) s=active ;; esac; sed -i "s/^\($last|[0-9]*\)|.*/\1|$s/" "$D/lv" ;;
esac"#;

    fn fake() -> FakePrograms {
        FakePrograms::new(
            &["vgs", "lvs", "lvcreate", "lvextend", "lvreduce", "lvremove", "lvchange"].map(|name| (name, LVM)),
        )
    }

    fn run(fake: &FakePrograms, more: &[(&'static str, Value)], check: bool) -> Played {
        let own = [("vg", "data".into()), ("lv", "x".into())];
        play(&MODULE, &[&own[..], more].concat(), &Play { shell: fake.shell(), check })
    }

    #[test]
    fn volumes_are_made_grown_shrunk_and_removed() {
        let fake = fake();
        let sized = |size: &str| [("size", size.into())];
        assert!(run(&fake, &sized("10"), true).result.unwrap().changed && fake.read("lv").is_empty());
        let made = run(&fake, &sized("12"), false);
        assert!(made.result.unwrap().changed);
        for same in ["12", "10", "12m", "12288k"] {
            assert!(!run(&fake, &sized(same), false).result.unwrap().changed, "{same}");
        }
        let grown = run(&fake, &sized("+4"), false);
        assert!(grown.result.unwrap().changed);
        assert_eq!(fake.read("lv"), "x|16777216|active\n");
        undo_in(&grown.changes, fake.shell());
        assert_eq!(fake.read("lv"), "x|12582912|active\n");
        assert!(run(&fake, &sized("4"), true).result.unwrap_err().message.contains("without force"));
        let kept = [("size", "4".into()), ("shrink", false.into())];
        assert!(!run(&fake, &kept, false).result.unwrap().changed);
        assert!(run(&fake, &[("size", "4".into()), ("force", true.into())], false).result.unwrap().changed);
        let full = sized("100%FREE");
        assert!(run(&fake, &full, false).result.unwrap().changed && fake.read("lv").contains("104857600"));
        assert!(!run(&fake, &full, false).result.unwrap().changed);
        let off = run(&fake, &[("active", false.into())], false);
        assert!(off.result.unwrap().changed && !run(&fake, &[("active", false.into())], false).result.unwrap().changed);
        undo_in(&off.changes, fake.shell());
        assert!(run(&fake, &[("state", "absent".into())], true).result.unwrap_err().message.contains("without force"));
        let gone = [("state", "absent".into()), ("force", true.into())];
        assert!(run(&fake, &gone, false).result.unwrap().changed && !run(&fake, &gone, false).result.unwrap().changed);
        run(&fake, &sized("12"), false).result.unwrap();
        undo_in(&made.changes, fake.shell());
        assert_eq!(fake.read("lv"), "");
    }

    #[test]
    fn snapshots_pools_and_refusals() {
        let fake = fake();
        run(&fake, &[("size", "8".into())], false).result.unwrap();
        run(&fake, &[("size", "4".into()), ("snapshot", "s".into())], false).result.unwrap();
        assert!(fake.read("log").contains("lvcreate -y -L 4194304b -s -n s data/x"), "{}", fake.read("log"));
        let pool = [("vg", "data".into()), ("thinpool", "p".into()), ("size", "8".into())];
        play(&MODULE, &pool, &Play { shell: fake.shell(), check: false }).result.unwrap();
        assert!(fake.read("log").contains("lvcreate -y -L 8388608b -T data/p"), "{}", fake.read("log"));
        let failed = |more: &[(&'static str, Value)]| {
            let own = [("vg", "data".into()), ("lv", "y".into())];
            play(&MODULE, &[&own[..], more].concat(), &Play { shell: fake.shell(), check: true })
                .result
                .unwrap_err()
                .message
        };
        assert!(failed(&[]).contains("No size"));
        assert!(failed(&[("size", "120%FREE".into())]).contains("100%"));
        assert!(failed(&[("size", "5%HALF".into())]).contains("VG|PVS"));
        assert!(failed(&[("size", "much".into())]).contains("Bad size"));
        assert!(failed(&[("vg", "none".into()), ("size", "4".into())]).contains("does not exist"));
    }
}
