//! Selection of block devices: by name, pattern, link, WWN, serial or class; and what must never be tuned.

use globset::Glob;

use crate::error::{Error, Result};

/// What was read of one entry of `/sys/block`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockDevice {
    /// The kernel's name, as `nvme0n1`.
    pub name: String,
    pub rotational: bool,
    pub removable: bool,
    pub read_only: bool,
    /// In sectors of 512 bytes; 0 for a drive without a medium.
    pub sectors: u64,
    /// `hidden` is 1: a path of an NVMe multipath device.
    pub hidden: bool,
    /// udev's `ID_WWN`: what a rule can match (the `wwid` of sysfs is written in another way).
    pub wwn: Option<String>,
    /// udev's `ID_SERIAL`.
    pub serial: Option<String>,
    /// Links below `/dev/disk` that lead to it.
    pub links: Vec<String>,
}

/// A class of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    Nvme,
    Ssd,
    Hdd,
    Virtio,
    /// Device mapper, md and others that stack on disks.
    Stacked,
    Other,
}

const CLASSES: &[(&str, Class)] =
    &[("nvme", Class::Nvme), ("ssd", Class::Ssd), ("hdd", Class::Hdd), ("virtio", Class::Virtio)];

/// Name beginnings of devices that hold no data of their own or are no disks.
const NO_DISKS: &[&str] = &["loop", "ram", "zram", "sr", "fd", "nbd", "md", "dm-"];

impl BlockDevice {
    pub fn class(&self) -> Class {
        let is = |prefix: &str| self.name.starts_with(prefix);
        match () {
            () if is("nvme") => Class::Nvme,
            () if is("vd") => Class::Virtio,
            () if is("dm-") || is("md") => Class::Stacked,
            () if is("sd") || is("hd") || is("xvd") => {
                if self.rotational {
                    Class::Hdd
                } else {
                    Class::Ssd
                }
            }
            () => Class::Other,
        }
    }

    /// Why this device is left out unless it is named; `None` if it is an ordinary disk.
    pub fn left_out_because(&self) -> Option<&'static str> {
        let no_disk = NO_DISKS.iter().any(|prefix| {
            self.name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        match () {
            () if no_disk => Some("it is not a disk of its own"),
            () if self.hidden => Some("it is one path of a multipath device"),
            () if self.removable => Some("its medium is removable"),
            () if self.sectors == 0 => Some("it has no medium"),
            () if self.read_only => Some("it is read-only"),
            () => None,
        }
    }

    /// What keeps its meaning across reboots: WWN, else serial, else the kernel's name.
    pub fn identity(&self) -> Identity {
        let known = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        match (known(&self.wwn), known(&self.serial)) {
            (Some(wwn), _) => Identity::Wwn(wwn),
            (None, Some(serial)) => Identity::Serial(serial),
            (None, None) => Identity::Name(self.name.clone()),
        }
    }
}

/// Reads the devices from blocks of lines: `name=…`, then `FILE=VALUE` for files below `/sys/block/NAME`, and the lines of
/// udev's database (`S:` links, `E:` properties; see `/run/udev/data`).
pub fn parse_devices(text: &str) -> Vec<BlockDevice> {
    let mut devices: Vec<BlockDevice> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("name=") {
            devices.push(BlockDevice { name: name.to_owned(), ..BlockDevice::default() });
            continue;
        }
        let Some(device) = devices.last_mut() else { continue };
        if let Some(link) = line.strip_prefix("S:") {
            device.links.push(format!("/dev/{link}"));
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        match key {
            "size" => device.sectors = value.trim().parse().unwrap_or(0),
            "removable" => device.removable = value.trim() == "1",
            "ro" => device.read_only = value.trim() == "1",
            "hidden" => device.hidden = value.trim() == "1",
            "queue/rotational" => device.rotational = value.trim() == "1",
            "E:ID_WWN" => device.wwn = Some(value.to_owned()),
            "E:ID_SERIAL" => device.serial = Some(value.to_owned()),
            _ => {}
        }
    }
    devices
}

/// What a device is recognised by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    Wwn(String),
    Serial(String),
    /// May be another disk after the next boot.
    Name(String),
}

/// One way to name devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// `nvme0n1`, `/dev/nvme0n1`
    Name(String),
    /// `nvme*n1`: shell pattern on names.
    Pattern(String),
    /// `/dev/disk/by-id/…`: a link, or a pattern on links.
    Link(String),
    /// `wwn:0x5000…`
    Wwn(String),
    /// `serial:…`
    Serial(String),
    /// `class:nvme`
    Class(Class),
}

impl Selector {
    /// Parses a selector as users write it.
    pub fn parse(text: &str) -> Result<Selector> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Error::input("a device is named by nothing"));
        }
        if let Some(class) = text.strip_prefix("class:") {
            return CLASSES
                .iter()
                .find(|(name, _)| *name == class)
                .map(|(_, class)| Selector::Class(*class))
                .ok_or_else(|| {
                    let names = CLASSES.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                    Error::input(format!("`{class}` is not a class of disks; there is {names}"))
                        .suggest(class, CLASSES.iter().map(|(name, _)| *name))
                });
        }
        if let Some(wwn) = text.strip_prefix("wwn:") {
            return Ok(Selector::Wwn(wwn.to_owned()));
        }
        if let Some(serial) = text.strip_prefix("serial:") {
            return Ok(Selector::Serial(serial.to_owned()));
        }
        let name = text.strip_prefix("/dev/").unwrap_or(text);
        let is_pattern = text.contains(['*', '?', '[']);
        if is_pattern {
            Glob::new(text).map_err(|error| Error::input(format!("`{text}` is not a pattern: {}", error.kind())))?;
        }
        Ok(match () {
            () if text.starts_with("/dev/") && name.contains('/') => Selector::Link(text.to_owned()),
            () if name.contains('/') => {
                return Err(Error::input(format!("`{text}` is not a device"))
                    .hint("write a name, a pattern, a link below `/dev/disk`, `class:…`, `wwn:…` or `serial:…`"));
            }
            () if is_pattern => Selector::Pattern(name.to_owned()),
            () => Selector::Name(name.to_owned()),
        })
    }

    pub fn matches(&self, device: &BlockDevice) -> bool {
        match self {
            Selector::Name(name) => device.name == *name,
            Selector::Pattern(pattern) => pattern_matches(pattern, &device.name),
            Selector::Link(link) => device.links.iter().any(|known| known == link || pattern_matches(link, known)),
            Selector::Wwn(wwn) => device.wwn.as_deref().is_some_and(|known| bare_wwn(known) == bare_wwn(wwn)),
            Selector::Serial(serial) => device.serial.as_deref() == Some(serial),
            Selector::Class(class) => device.class() == *class,
        }
    }
}

fn pattern_matches(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(text))
}

/// WWNs without the words that their sources put before them: `0x5000c500`, `naa.5000c500`, `wwn-0x5000c500`.
fn bare_wwn(wwn: &str) -> String {
    let wwn = wwn.trim().to_ascii_lowercase();
    let wwn =
        ["wwn-", "naa.", "0x"].iter().fold(wwn.as_str(), |rest, prefix| rest.strip_prefix(prefix).unwrap_or(rest));
    wwn.to_owned()
}

/// The devices that were selected, in the order of their names, and why others were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection<'a> {
    pub devices: Vec<&'a BlockDevice>,
    /// Devices that a pattern or class would take but that are left out, with the reason.
    pub left_out: Vec<(&'a str, &'static str)>,
    /// Selectors that found no device, by position.
    pub without_device: Vec<usize>,
}

/// Selects devices. What is named outright is taken even if patterns leave it out; `excluded` always wins.
pub fn select<'a>(devices: &'a [BlockDevice], wanted: &[Selector], excluded: &[Selector]) -> Selection<'a> {
    let mut selection = Selection::default();
    let mut found = vec![false; wanted.len()];
    let mut sorted: Vec<&BlockDevice> = devices.iter().collect();
    sorted.sort_by(|left, right| natural(&left.name).cmp(&natural(&right.name)));
    for device in sorted {
        let matching: Vec<usize> = (0..wanted.len()).filter(|index| wanted[*index].matches(device)).collect();
        for index in &matching {
            found[*index] = true;
        }
        if matching.is_empty() || excluded.iter().any(|selector| selector.matches(device)) {
            continue;
        }
        let outright =
            matching.iter().any(|index| !matches!(wanted[*index], Selector::Pattern(_) | Selector::Class(_)));
        match device.left_out_because() {
            Some(reason) if !outright => selection.left_out.push((&device.name, reason)),
            _ => selection.devices.push(device),
        }
    }
    selection.without_device = (0..wanted.len()).filter(|index| !found[*index]).collect();
    selection
}

/// Orders `nvme2n1` before `nvme10n1`, `sdz` before `sdaa`.
fn natural(name: &str) -> Vec<(&str, usize, &str)> {
    let bytes = name.as_bytes();
    let mut parts = Vec::new();
    let mut start = 0;
    for end in 1..=bytes.len() {
        if end == bytes.len() || bytes[end].is_ascii_digit() != bytes[end - 1].is_ascii_digit() {
            let part = &name[start..end];
            let kind = if bytes[start].is_ascii_digit() { "" } else { part.get(..2).unwrap_or(part) };
            parts.push((kind, part.len(), part));
            start = end;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str) -> BlockDevice {
        BlockDevice { name: name.to_owned(), sectors: 1 << 21, ..BlockDevice::default() }
    }

    fn host() -> Vec<BlockDevice> {
        vec![
            disk("sdaa"),
            BlockDevice { rotational: true, wwn: Some("naa.5000C500A1".into()), ..disk("sda") },
            disk("nvme10n1"),
            BlockDevice {
                serial: Some("ES3000_01".into()),
                links: vec!["/dev/disk/by-id/nvme-ES3000_01".into()],
                ..disk("nvme2n1")
            },
            BlockDevice { hidden: true, ..disk("nvme2c0n1") },
            disk("vda"),
            disk("loop0"),
            disk("dm-0"),
            BlockDevice { removable: true, ..disk("sdb") },
            BlockDevice { sectors: 0, ..disk("sdc") },
            BlockDevice { read_only: true, ..disk("sdd") },
        ]
    }

    fn names(wanted: &[&str], excluded: &[&str]) -> String {
        let parse = |texts: &[&str]| texts.iter().map(|text| Selector::parse(text).expect(text)).collect::<Vec<_>>();
        let host = host();
        let selection = select(&host, &parse(wanted), &parse(excluded));
        selection.devices.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn devices_are_selected_in_every_way() {
        let cases: &[(&[&str], &[&str], &str)] = &[
            (&["nvme2n1", "/dev/sda"], &[], "nvme2n1 sda"),
            (&["nvme*"], &[], "nvme2n1 nvme10n1"),
            (&["sd*"], &[], "sda sdaa"),
            (&["sd[a-z]"], &[], "sda"),
            (&["class:nvme"], &["nvme10n1"], "nvme2n1"),
            (&["class:hdd", "class:virtio"], &[], "sda vda"),
            (&["class:ssd"], &[], "sdaa"),
            (&["wwn:0x5000c500a1"], &[], "sda"),
            (&["serial:ES3000_01"], &[], "nvme2n1"),
            (&["/dev/disk/by-id/nvme-ES3000*"], &[], "nvme2n1"),
            (&["*"], &["class:nvme"], "sda sdaa vda"),
            // Named outright: taken although a pattern would leave it out.
            (&["sdb", "dm-0"], &[], "dm-0 sdb"),
            (&["nosuch"], &[], ""),
        ];
        for (wanted, excluded, expected) in cases {
            assert_eq!(names(wanted, excluded), *expected, "{wanted:?} without {excluded:?}");
        }
    }

    #[test]
    fn devices_are_read_from_sysfs_and_udev() {
        let text = "name=sda\nsize=2097152\nremovable=0\nro=0\nhidden=0\nqueue/rotational=1\nS:disk/by-id/wwn-0x5000\n\
                    E:ID_WWN=0x5000\nE:ID_SERIAL=ST=1\nname=sr0\nsize=0\nremovable=1\nro=0\nhidden=\n";
        let devices = parse_devices(text);
        let disk = BlockDevice {
            rotational: true,
            wwn: Some("0x5000".into()),
            serial: Some("ST=1".into()),
            links: vec!["/dev/disk/by-id/wwn-0x5000".into()],
            ..disk("sda")
        };
        assert_eq!(devices[0], disk);
        assert_eq!((devices[1].name.as_str(), devices[1].removable), ("sr0", true));
    }

    #[test]
    fn what_is_left_out_has_a_reason() {
        let host = host();
        let selectors = [Selector::parse("*").expect("a pattern"), Selector::parse("xyz").expect("a name")];
        let selection = select(&host, &selectors, &[]);
        let left_out: Vec<_> = selection.left_out.iter().map(|(name, _)| *name).collect();
        assert_eq!(left_out, ["dm-0", "loop0", "nvme2c0n1", "sdb", "sdc", "sdd"]);
        assert_eq!(selection.without_device, [1]);
    }

    #[test]
    fn disks_are_recognised_by_what_lasts() {
        let host = host();
        let identity = |name: &str| host.iter().find(|device| device.name == name).map(BlockDevice::identity);
        assert_eq!(identity("sda"), Some(Identity::Wwn("naa.5000C500A1".into())));
        assert_eq!(identity("nvme2n1"), Some(Identity::Serial("ES3000_01".into())));
        assert_eq!(identity("vda"), Some(Identity::Name("vda".into())));
    }

    #[test]
    fn wrong_selectors_are_refused() {
        assert_eq!(Selector::parse("class:nvm").expect_err("misspelt").hints(), ["did you mean `nvme`?"]);
        for text in ["", "a/b", "sd[a"] {
            assert!(Selector::parse(text).is_err(), "{text:?}");
        }
    }
}
