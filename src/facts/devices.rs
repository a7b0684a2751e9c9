//! Block devices, their partitions, and the names that lead to them.

use crate::value::{Map, Value, object};

use super::{Group, Sections, set, value_in};

pub const GROUP: Group = Group { name: "devices", parts_of: &["hardware"], needs: &[], script: SCRIPT, parse };

const SCRIPT: &str = r#"
section devices
for trimtab_disk in /sys/block/*; do
    [ -e "$trimtab_disk/size" ] || continue
    printf 'disk=%s\n' "${trimtab_disk##*/}"
    for trimtab_name in vendor model serial sas_address sas_device_handle; do
        line $trimtab_name "$trimtab_disk/device/$trimtab_name"
    done
    for trimtab_name in removable size; do line $trimtab_name "$trimtab_disk/$trimtab_name"; done
    for trimtab_name in discard_granularity rotational scheduler logical_block_size; do
        line $trimtab_name "$trimtab_disk/queue/$trimtab_name"
    done
    for trimtab_file in "$trimtab_disk"/holders/*; do
        [ ! -e "$trimtab_file" ] || printf 'holder=%s\n' "${trimtab_file##*/}"
    done
    for trimtab_file in "$trimtab_disk"/slaves/*; do
        [ ! -e "$trimtab_file" ] || printf 'slave=%s\n' "${trimtab_file##*/}"
    done
    for trimtab_part in "$trimtab_disk"/*/partition; do
        [ -e "$trimtab_part" ] || continue
        trimtab_part=${trimtab_part%/partition}
        printf 'partition=%s\n' "${trimtab_part##*/}"
        line start "$trimtab_part/start"
        line size "$trimtab_part/size"
        for trimtab_file in "$trimtab_part"/holders/*; do
            [ ! -e "$trimtab_file" ] || printf 'holder=%s\n' "${trimtab_file##*/}"
        done
    done
done
section disk-links
ls -l /dev/disk/by-id /dev/disk/by-uuid /dev/disk/by-label /dev/mapper 2>/dev/null
"#;

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    let links = Links::parse(sections.text("disk-links"));
    let text = sections.text("devices");
    let mut devices = Map::new();
    let mut masters: Vec<(String, Vec<Value>)> = Vec::new();
    for (name, disk) in blocks(text, "disk=") {
        for slave in values(disk, "slave") {
            match masters.iter_mut().find(|(known, _)| known == slave) {
                Some((_, list)) => list.push(name.into()),
                None => masters.push((slave.to_owned(), vec![name.into()])),
            }
        }
        devices.insert(name.into(), device(name, disk, &links, &masters).into());
    }
    set(facts, "devices", devices);
    let named = |map: &[(String, Vec<Value>)]| -> Value {
        map.iter().map(|(name, list)| (name.as_str().into(), list.clone().into())).collect::<Map>().into()
    };
    let all = object([
        ("ids", named(&links.ids)),
        ("uuids", named(&links.uuids)),
        ("labels", named(&links.labels)),
        ("masters", named(&masters)),
    ]);
    set(facts, "device_links", all);
}

/// The parts of a text that each begin with `<head>name`.
fn blocks<'a>(text: &'a str, head: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut blocks: Vec<(&str, &str)> = Vec::new();
    let starts: Vec<usize> =
        text.match_indices(head).map(|(at, _)| at).filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n').collect();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(text.len());
        let block = &text[start + head.len()..end];
        blocks.push(block.split_once('\n').unwrap_or((block, "")));
    }
    blocks
}

fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> + 'a {
    text.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix('='))
}

fn device(name: &str, text: &str, links: &Links, masters: &[(String, Vec<Value>)]) -> Map {
    let (own, _) = text.split_once("partition=").unwrap_or((text, ""));
    let trimmed = |key: &str| -> Value { value_in(own, key).map(str::trim).into() };
    let sectors = value_in(own, "size").and_then(|size| size.parse::<i64>().ok()).unwrap_or(0);
    let logical = value_in(own, "logical_block_size").and_then(|size| size.parse::<i64>().ok()).unwrap_or(512);
    let scheduler = value_in(own, "scheduler").and_then(|line| line.split_once('[')?.1.split(']').next());
    let partitions: Map = blocks(text, "partition=")
        .into_iter()
        .map(|(name, part)| (name.into(), partition(name, part, logical, links, masters).into()))
        .collect();
    let mut device = object([
        ("virtual", 1.into()),
        ("links", links.of(name, masters)),
        ("vendor", trimmed("vendor")),
        ("model", trimmed("model")),
        ("sas_address", trimmed("sas_address")),
        ("sas_device_handle", trimmed("sas_device_handle")),
        ("removable", trimmed("removable")),
        ("support_discard", trimmed("discard_granularity")),
        ("partitions", partitions.into()),
        ("rotational", trimmed("rotational")),
        ("scheduler_mode", scheduler.unwrap_or_default().into()),
        ("sectors", sectors.into()),
        ("sectorsize", logical.to_string().into()),
        ("size", human(sectors).into()),
        ("host", "".into()),
        ("holders", values(own, "holder").map(Value::from).collect::<Vec<_>>().into()),
    ]);
    if let Some(serial) = value_in(own, "serial") {
        device.insert("serial".into(), serial.trim().into());
    }
    if let Some(wwn) = links.wwn(name) {
        device.insert("wwn".into(), wwn.into());
    }
    device
}

fn partition(name: &str, text: &str, logical: i64, links: &Links, masters: &[(String, Vec<Value>)]) -> Map {
    let sectors = value_in(text, "size").and_then(|size| size.parse::<i64>().ok()).unwrap_or(0);
    object([
        ("links", links.of(name, masters)),
        ("start", value_in(text, "start").unwrap_or("0").into()),
        ("sectors", sectors.into()),
        ("sectorsize", logical.into()),
        ("size", human(sectors).into()),
        ("uuid", links.uuid_of(&format!("/dev/{name}")).into()),
        ("holders", values(text, "holder").map(Value::from).collect::<Vec<_>>().into()),
    ])
}

/// A size as Ansible writes it, of sectors of 512 bytes.
fn human(sectors: i64) -> String {
    let bytes = sectors as f64 * 512.0;
    let units = [("YB", 80), ("ZB", 70), ("EB", 60), ("PB", 50), ("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];
    let (unit, size) = units
        .into_iter()
        .map(|(unit, power)| (unit, 2f64.powi(power)))
        .find(|(_, size)| bytes >= *size)
        .unwrap_or(("Bytes", 1.0));
    format!("{:.2} {unit}", bytes / size)
}

/// The links below `/dev/disk` and `/dev/mapper`: per device the names that lead to it.
#[derive(Debug, Default)]
pub struct Links {
    ids: Vec<(String, Vec<Value>)>,
    uuids: Vec<(String, Vec<Value>)>,
    labels: Vec<(String, Vec<Value>)>,
    /// Names of `/dev/mapper` and the devices behind them.
    mapper: Vec<(String, String)>,
}

impl Links {
    /// Understands the output of `ls -l` of the directories.
    pub fn parse(listing: &str) -> Links {
        let mut links = Links::default();
        let mut directory = "";
        for line in listing.lines() {
            if let Some(title) = line.strip_suffix(':').filter(|title| title.starts_with('/')) {
                directory = title;
            }
            let Some((left, target)) = line.split_once(" -> ") else { continue };
            let Some(name) = left.split_whitespace().last() else { continue };
            let device = target.rsplit('/').next().unwrap_or(target).to_owned();
            let list = match directory {
                "/dev/disk/by-id" => &mut links.ids,
                "/dev/disk/by-uuid" => &mut links.uuids,
                "/dev/disk/by-label" => &mut links.labels,
                _ => {
                    links.mapper.push((name.to_owned(), device));
                    continue;
                }
            };
            match list.iter_mut().find(|(known, _)| *known == device) {
                Some((_, names)) => names.push(name.into()),
                None => list.push((device, vec![name.into()])),
            }
        }
        links
    }

    fn of(&self, device: &str, masters: &[(String, Vec<Value>)]) -> Value {
        let names = |list: &[(String, Vec<Value>)]| -> Value {
            list.iter().find(|(name, _)| name == device).map(|(_, names)| names.clone()).unwrap_or_default().into()
        };
        let links = object([
            ("ids", names(&self.ids)),
            ("uuids", names(&self.uuids)),
            ("labels", names(&self.labels)),
            ("masters", names(masters)),
        ]);
        links.into()
    }

    /// The UUID of a device such as `/dev/vda1` or `/dev/mapper/root`.
    pub fn uuid_of(&self, path: &str) -> Option<&str> {
        let name = path.rsplit('/').next()?;
        let mapped = self.mapper.iter().find(|(mapped, _)| path.starts_with("/dev/mapper/") && mapped == name);
        let device = mapped.map_or(name, |(_, device)| device.as_str());
        self.uuids.iter().find(|(known, _)| known == device)?.1.first()?.as_str()
    }

    fn wwn(&self, device: &str) -> Option<&str> {
        let names = &self.ids.iter().find(|(known, _)| known == device)?.1;
        names.iter().find_map(|name| name.as_str()?.strip_prefix("wwn-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_have_partitions_and_links() {
        let output = "\u{1e}devices\ndisk=nvme0n1\nmodel=Model X \nserial=S1\nremovable=0\nsize=2097152\n\
                      discard_granularity=512\nrotational=0\nscheduler=[none] mq-deadline\n\
                      logical_block_size=512\npartition=nvme0n1p1\nstart=2048\nsize=1024\nholder=dm-0\ndisk=dm-0\nsize=1000\n\
                      slave=nvme0n1p1\n\u{1e}disk-links\n/dev/disk/by-id:\ntotal 0\n\
                      lrwxrwxrwx 1 root root 13 Jan 1 00:00 wwn-0x5000 -> ../../nvme0n1\n\n/dev/disk/by-uuid:\n\
                      lrwxrwxrwx 1 root root 15 Jan 1 00:00 ab-cd -> ../../nvme0n1p1\n\
                      lrwxrwxrwx 1 root root 15 Jan 1 00:00 ef -> ../../dm-0\n\n/dev/mapper:\n\
                      crw------- 1 root root 10, 236 Jan 1 00:00 control\nlrwxrwxrwx 1 root root 7 Jan 1 00:00 vg-root -> ../dm-0\n";
        let mut facts = Map::new();
        parse(&Sections::new(output), &mut facts);
        let disk = facts["ansible_devices"].get("nvme0n1").unwrap().clone();
        let of = |name: &str| disk.get(name).unwrap().to_repr();
        assert_eq!(
            ["model", "size", "sectorsize", "scheduler_mode", "wwn", "vendor", "holders"].map(of),
            ["'Model X'", "'1.00 GB'", "'512'", "'none'", "'0x5000'", "None", "[]"]
        );
        let part = disk.get("partitions").unwrap().get("nvme0n1p1").unwrap().clone();
        let of = |name: &str| part.get(name).unwrap().to_repr();
        assert_eq!(
            ["start", "sectors", "size", "uuid", "holders"].map(of),
            ["'2048'", "1024", "'512.00 KB'", "'ab-cd'", "['dm-0']"]
        );
        assert_eq!(facts["ansible_device_links"].get("masters").unwrap().to_repr(), "{'nvme0n1p1': ['dm-0']}");
        let links = Links::parse(Sections::new(output).text("disk-links"));
        assert_eq!(links.uuid_of("/dev/mapper/vg-root"), Some("ef"));
    }
}
