//! Mounted file systems and how full they are.

use crate::value::{Map, Value, object};

use super::devices::Links;
use super::{Group, Sections, set};

pub const GROUP: Group = Group { name: "mounts", parts_of: &["hardware"], needs: &["devices"], script: SCRIPT, parse };

// a dead server of a network file system must not hold up everything: those have a time limit
const SCRIPT: &str = r#"
section mounts
cat /proc/mounts /proc/self/mountinfo 2>/dev/null
section statfs
trimtab_statfs() {
    while read -r trimtab_device trimtab_directory trimtab_type trimtab_line; do
        case $trimtab_device in /* | *:/*) ;; *) continue ;; esac
        case $trimtab_type in
            none) continue ;;
            nfs* | cifs | smb* | ceph | fuse.* | glusterfs | lustre | 9p | afs | gpfs) [ "$1" = network ] || continue ;;
            *) [ "$1" = local ] || continue ;;
        esac
        case $trimtab_directory in *\\*) trimtab_directory=$(printf '%b' "$trimtab_directory") ;; esac
        set -- "$@" "$trimtab_directory"
    done </proc/mounts
    trimtab_where=$1
    shift
    [ $# -gt 0 ] || return 0
    if [ $trimtab_where = network ] && present timeout; then
        timeout "$trimtab_timeout" stat -f -c '%S %s %b %a %c %d %n' "$@"
    else
        stat -f -c '%S %s %b %a %c %d %n' "$@"
    fi
} 2>/dev/null
trimtab_statfs local
trimtab_statfs network
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let links = Links::parse(sections.text("disk-links"));
    let mounts = mounts(sections.text("mounts"), sections.text("statfs"), &links);
    set(facts, "mounts", mounts);
}

fn mounts(text: &str, statfs: &str, links: &Links) -> Vec<Value> {
    let (infos, lines): (Vec<Vec<&str>>, Vec<Vec<&str>>) =
        text.lines().map(|line| line.split(' ').collect::<Vec<_>>()).partition(|fields| is_mountinfo(fields));
    let is_part =
        |directory: &str| infos.iter().any(|fields| fields.get(4) == Some(&directory) && fields.get(3) != Some(&"/"));
    lines
        .iter()
        .filter(|fields| fields.len() >= 6)
        .filter(|fields| (fields[0].starts_with(['/', '\\']) || fields[0].contains(":/")) && fields[2] != "none")
        .map(|fields| {
            let mut options = fields[3].to_owned();
            if is_part(fields[1]) && !options.split(',').any(|option| option == "bind") {
                options.push_str(",bind");
            }
            let device = unescaped(fields[0]);
            let mount = unescaped(fields[1]);
            let number = |index: usize| fields[index].parse::<i64>().unwrap_or(0);
            let mut entry = object([
                ("mount", mount.as_str().into()),
                ("device", device.as_str().into()),
                ("fstype", fields[2].into()),
                ("options", options.into()),
                ("dump", number(4).into()),
                ("passno", number(5).into()),
            ]);
            entry.extend(sizes(statfs, &mount));
            entry.insert("uuid".into(), links.uuid_of(&device).unwrap_or("N/A").into());
            entry.into()
        })
        .collect()
}

/// Lines of mountinfo have `major:minor` as the third field (proc_pid_mountinfo(5)).
fn is_mountinfo(fields: &[&str]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    fields.len() > 6
        && is_number(fields[0])
        && is_number(fields[1])
        && fields[2].split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

/// Blanks and backslashes are written as `\040` in the kernel's tables.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn sizes(statfs: &str, mount: &str) -> Map {
    let found = statfs.lines().find_map(|line| {
        let fields: Vec<&str> = line.splitn(7, ' ').collect();
        let numbers: Vec<i64> = fields.iter().take(6).filter_map(|field| field.parse().ok()).collect();
        (fields.get(6) == Some(&mount)).then_some(numbers)
    });
    let Some(&[fragment, block, total, available, inodes, free_inodes]) = found.as_deref() else { return Map::new() };
    object([
        ("size_total", fragment.saturating_mul(total).into()),
        ("size_available", fragment.saturating_mul(available).into()),
        ("block_size", block.into()),
        ("block_total", total.into()),
        ("block_available", available.into()),
        ("block_used", (total - available).into()),
        ("inode_total", inodes.into()),
        ("inode_available", free_inodes.into()),
        ("inode_used", (inodes - free_inodes).into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_have_sizes_and_say_if_they_show_a_part() {
        let text = "/dev/vda / ext4 rw,relatime 0 1\nproc /proc proc rw 0 0\n/dev/vdb /srv/a\\040b xfs rw 0 0\n\
                    filer:/export /mnt nfs4 rw 0 0\n22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    23 22 254:16 /sub /srv/a\\040b rw - xfs /dev/vdb rw\n";
        let statfs = "4096 4096 1000 400 500 100 /\n4096 4096 10 5 8 8 /srv/a b\n";
        let links = Links::parse("/dev/disk/by-uuid:\nlrwxrwxrwx 1 root root 9 Jan 1 00:00 1234-ab -> ../../vda\n");
        let shown: Vec<String> = mounts(text, statfs, &links)
            .iter()
            .map(|mount| {
                let of = |name: &str| mount.get(name).map(ToString::to_string).unwrap_or_default();
                [of("mount"), of("fstype"), of("options"), of("size_available"), of("uuid")].join(" ")
            })
            .collect();
        assert_eq!(
            shown,
            ["/ ext4 rw,relatime 1638400 1234-ab", "/srv/a b xfs rw,bind 20480 N/A", "/mnt nfs4 rw  N/A"]
        );
    }
}
