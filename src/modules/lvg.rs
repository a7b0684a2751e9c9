//! `community.general.lvg`: volume groups of LVM.

use crate::connect::shell::quote;
use crate::host::reads::Script;
use crate::host::{Change, Difference, Failure, Footprint, Inverse};

use super::file_common::content::split_words;
use super::programs::{SYSTEM_PATH, make, parts, step};
use super::storage_look::START;
use super::{Action, Arg, FreeForm, Invocation, Module, Outcome, Support, Type};

pub const MODULE: Module = Module {
    name: "community.general.lvg",
    aliases: &[],
    summary: "Keeps volume groups of LVM",
    args: &[
        Arg::new("vg", Type::Str, "the group").required(),
        Arg::new("pvs", Type::List, "its devices; needed for a new group"),
        Arg::new("state", Type::Str, "whether it is there, and in use")
            .default("present")
            .choices(&["absent", "present", "active", "inactive"]),
        Arg::new("pesize", Type::Str, "the size of extents: a number of MiB or with a unit").default("4"),
        Arg::new("pv_options", Type::Str, "more options of pvcreate").default(""),
        Arg::new("vg_options", Type::Str, "more options of vgcreate").default(""),
        Arg::new("force", Type::Bool, "remove it though there are volumes in it").default("false"),
        Arg::new("remove_extra_pvs", Type::Bool, "take away devices that are not named").default("true"),
        Arg::new("pvresize", Type::Bool, "use devices that have grown").default("false"),
        Arg::new("reset_vg_uuid", Type::Bool, "not supported: run `vgchange -u`").default("false"),
        Arg::new("reset_pv_uuid", Type::Bool, "not supported: run `pvchange -u`").default("false"),
    ],
    rules: &[],
    free_form: FreeForm::No,
    check_mode: Support::Full,
    diff: Support::Full,
    returns: &[],
    action: Action::Module(|invocation| Box::pin(run(invocation))),
};

pub(super) fn options(text: &str, name: &str) -> Result<String, Failure> {
    let words = split_words(text).ok_or_else(|| Failure::new(format!("a quote in `{name}` is not closed")))?;
    Ok(words.iter().map(|word| format!(" {}", quote(word))).collect())
}

async fn run(invocation: Invocation) -> Result<Outcome, Failure> {
    let Invocation { args, host, .. } = invocation;
    let (group, state) = (args.text("vg"), args.text("state"));
    if group.is_empty()
        || group.starts_with('-')
        || !group.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+_.-".contains(&byte))
    {
        return Err(Failure::new(format!("`{group}` cannot be the name of a volume group")));
    }
    for name in ["reset_vg_uuid", "reset_pv_uuid"] {
        if args.bool(name) {
            return Err(Failure::new(format!("the argument `{name}` is not supported: change the UUID by hand, once")));
        }
    }
    let wanted = args.list("pvs");
    let named: String = wanted.iter().map(|device| format!(" {}", quote(device))).collect();
    let word = quote(group);
    let text = format!(
        "{SYSTEM_PATH}{START}command -v vgs >/dev/null || exit 127\n\
         vgs --noheadings --nosuffix --units b --separator '|' -o vg_name,lv_count,vg_extent_size {word} 2>/dev/null; printf '\\036'\n\
         pvs --noheadings --nosuffix --units b --separator '|' -o pv_name,vg_name,pv_used,pv_size,dev_size || exit; printf '\\036'\n\
         for d in{named}; do if [ -e \"$d\" ]; then readlink -f \"$d\"; else echo \"missing $d\"; fi; done; printf '\\036'\n\
         lvs --noheadings -o lv_active {word} 2>/dev/null; :"
    );
    let answer = host.read(Script { text, footprint: Footprint::named("storage") }).await?;
    match answer.code {
        Some(0) => {}
        Some(127) => return Err(Failure::new("the host has no LVM (no program `vgs`)")),
        _ => return Err(Failure::new(format!("LVM: {}", answer.error_text().trim()))),
    }
    let parts = parts(&answer, 4);
    let fields = |line: &str| line.trim().split('|').map(|field| field.trim().to_owned()).collect::<Vec<_>>();
    let there = parts[0].lines().map(fields).find(|fields| fields.first().is_some_and(|own| own == group));
    let volumes: u64 = there.as_ref().and_then(|fields| fields.get(1)?.parse().ok()).unwrap_or(0);
    let devices: Vec<Vec<String>> = parts[1].lines().map(fields).filter(|fields| fields.len() >= 5).collect();
    let own: Vec<String> = devices.iter().filter(|fields| fields[1] == group).map(|fields| fields[0].clone()).collect();
    let asked: Vec<String> = parts[2].lines().map(str::to_owned).collect();
    if let Some(missing) = asked.iter().find_map(|device| device.strip_prefix("missing ")).filter(|_| state != "absent")
    {
        return Err(Failure::new(format!("Device {missing} not found.")));
    }
    let mut forth = Vec::new();
    let mut back = Vec::new();
    let mut lossless = true;
    match (&there, state) {
        (None, "absent") => return Ok(Outcome::ok()),
        (Some(_), "absent") => {
            if volumes > 0 && !args.bool("force") {
                return Err(Failure::new(format!(
                    "Refuse to remove non-empty volume group {group} without force=true"
                )));
            }
            forth.push(format!("vgremove --force -y {word} >&2"));
            lossless = volumes == 0;
            let list: String = own.iter().map(|device| format!(" {}", quote(device))).collect();
            let extent = there.as_ref().and_then(|fields| fields.get(2).cloned()).unwrap_or_default();
            back.push(format!("vgcreate -s {extent}b {word}{list} >&2"));
        }
        (None, _) => {
            if asked.is_empty() {
                return Err(Failure::new("No physical volumes given."));
            }
            if let Some(used) = devices.iter().find(|fields| asked.contains(&fields[0]) && !fields[1].is_empty()) {
                return Err(Failure::new(format!("Device {} is already in {} volume group.", used[0], used[1])));
            }
            let pv_options = options(args.text("pv_options"), "pv_options")?;
            for device in asked.iter().filter(|device| !devices.iter().any(|fields| fields[0] == **device)) {
                forth.push(format!("pvcreate{pv_options} -f -y {} >&2", quote(device)));
                back.push(format!("pvremove -y {} >&2", quote(device)));
            }
            let list: String = asked.iter().map(|device| format!(" {}", quote(device))).collect();
            let vg_options = options(args.text("vg_options"), "vg_options")?;
            forth.push(format!("vgcreate{vg_options} -s {} {word}{list} >&2", quote(args.text("pesize"))));
            back.push(format!("vgremove -y {word} >&2"));
        }
        (Some(_), "active" | "inactive") => {
            let active = parts[3].lines().any(|line| line.trim() == "active");
            let wanted = state == "active";
            if volumes > 0 && active != wanted {
                let switch = |on: bool| format!("vgchange --activate {} {word} >&2", if on { "y" } else { "n" });
                forth.push(switch(wanted));
                back.push(switch(active));
            }
        }
        (Some(_), _) => {
            for device in asked.iter().filter(|device| !own.contains(device)) {
                if let Some(used) = devices.iter().find(|fields| fields[0] == *device && !fields[1].is_empty()) {
                    return Err(Failure::new(format!("Device {device} is already in {} volume group.", used[1])));
                }
                if !devices.iter().any(|fields| fields[0] == *device) {
                    forth.push(format!(
                        "pvcreate{} -f -y {} >&2",
                        options(args.text("pv_options"), "pv_options")?,
                        quote(device)
                    ));
                    back.push(format!("pvremove -y {} >&2", quote(device)));
                }
                forth.push(format!("vgextend {word} {} >&2", quote(device)));
                back.push(format!("vgreduce {word} {} >&2", quote(device)));
            }
            let extra = own
                .iter()
                .filter(|device| !asked.is_empty() && args.bool("remove_extra_pvs") && !asked.contains(device));
            for device in extra {
                // LVM refuses to take away a device that is used
                forth.push(format!("vgreduce {word} {} >&2", quote(device)));
                back.push(format!("vgextend {word} {} >&2", quote(device)));
            }
            if args.bool("pvresize") {
                let extent: f64 = there.as_ref().and_then(|fields| fields.get(2)?.parse().ok()).unwrap_or(0.0);
                for fields in devices.iter().filter(|fields| fields[1] == group) {
                    let number = |index: usize| fields[index].parse::<f64>().unwrap_or(0.0);
                    // the head of a device takes some space
                    if number(4) - number(3) >= 2.0 * extent.max(1.0) {
                        forth.push(format!("pvresize {} >&2", quote(&fields[0])));
                        lossless = false;
                    }
                }
            }
        }
    }
    if forth.is_empty() {
        return Ok(Outcome::ok());
    }
    back.reverse();
    let inverse = match lossless {
        true => Inverse::Steps(back.iter().map(|code| step(format!("{START}{code}"))).collect()),
        false => Inverse::None(format!("what was done to {group} cannot be taken back")),
    };
    let before: String = own.iter().map(|device| format!("{device}\n")).collect();
    let after = forth.iter().map(|code| code.trim_end_matches(" >&2").to_owned() + "\n").collect::<String>();
    let change = Change::uncertain(format!("volume group {group}"), Footprint::named("storage"))
        .step(step(format!("{START}{}", forth.join(" &&\n"))))
        .inverse(inverse)
        .difference(Difference::new(format!("volume group {group}"), before, after));
    let differences = change.differences.clone();
    make(&host, change).await?;
    Ok(Outcome::changed().differences(differences))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::modules::fake_programs::FakePrograms;
    use crate::modules::testing::{Play, Played, play, undo_in};
    use crate::value::Value;

    /// Keeps devices as `db` lines `DEVICE|GROUP`; volumes of groups as `lv` lines `GROUP|NAME|BYTES`.
    const LVM: &str = r#"
touch "$D/db" "$D/lv"; n=$(basename "$0"); echo "$n $*" >>"$D/log"
last() { for l; do :; done; printf %s "$l"; }
G=$(last "$@")
case $n in
vgs) grep -q "|$G\$" "$D/db" || exit 5; echo " $G|$(grep -c "^$G|" "$D/lv")|4194304" ;;
pvs) while IFS='|' read -r d g; do echo " $d|$g|0|104857600|104857600"; done <"$D/db" ;;
lvs) case "$*" in *lv_active*) grep "^$G|" "$D/lv" | sed 's/.*/ active/' ;; *) sed -n "s/^$G|\(.*\)|\(.*\)/ \1|\2|active|linear|/p" "$D/lv" ;; esac ;;
pvcreate) echo "$G|" >>"$D/db" ;;
pvremove) sed -i "\,^$G|,d" "$D/db" ;;
vgcreate|vgextend) while [ $# != 0 ]; do case $1 in -s) shift ;; /dev/*|/*) sed -i "s,^$1|.*,$1|$g," "$D/db" ;; -*) ;; *) g=$1 ;; esac; shift; done ;;
vgreduce) sed -i "s,^$G|.*,$G|," "$D/db" ;;
vgremove) sed -i "s,|$G\$,|," "$D/db" ;;
esac"#;

    pub(in crate::modules) fn fake() -> FakePrograms {
        let names = [
            "vgs", "pvs", "lvs", "pvcreate", "pvremove", "vgcreate", "vgextend", "vgreduce", "vgremove", "vgchange",
            "pvresize",
        ];
        FakePrograms::new(&names.map(|name| (name, LVM)))
    }

    #[test]
    fn groups_are_made_widened_and_removed() {
        let fake = fake();
        let device = |name: &str| {
            fake.write(name, "");
            fake.file(name).to_str().unwrap().to_owned()
        };
        let (a, b) = (device("a"), device("b"));
        let run = |more: &[(&'static str, Value)], check| -> Played {
            play(&MODULE, &[&[("vg", "data".into())], more].concat(), &Play { shell: fake.shell(), check })
        };
        let one = [("pvs", a.as_str().into()), ("pesize", "8".into())];
        let both = [("pvs", format!("{a},{b}").into())];
        assert!(run(&one, true).result.unwrap().changed && fake.read("db").is_empty());
        let made = run(&one, false);
        assert!(made.result.unwrap().changed && fake.read("log").contains("vgcreate -s 8 data"));
        assert_eq!((fake.read("db"), run(&one, false).result.unwrap().changed), (format!("{a}|data\n"), false));
        let wider = run(&both, false);
        assert!(wider.result.unwrap().changed && !run(&both, true).result.unwrap().changed);
        undo_in(&wider.changes, fake.shell());
        assert_eq!(fake.read("db"), format!("{a}|data\n"));
        run(&both, false).result.unwrap();
        let narrow = run(&one, false);
        assert!(narrow.result.unwrap().changed && fake.read("db").contains(&format!("{b}|\n")));
        fake.write("lv", "data|x|1\n");
        let absent = [("state", "absent".into())];
        assert!(run(&absent, true).result.unwrap_err().message.contains("non-empty"));
        fake.write("lv", "");
        let gone = run(&absent, false);
        assert!(gone.result.unwrap().changed && !run(&absent, false).result.unwrap().changed);
        undo_in(&gone.changes, fake.shell());
        assert!(fake.read("db").contains(&format!("{a}|data")));
        assert!(run(&[("pvs", "/no/such".into())], true).result.unwrap_err().message.contains("not found"));
    }
}
