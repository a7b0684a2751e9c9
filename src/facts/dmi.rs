//! What the firmware says of the machine and its makers.

use crate::value::Map;

use super::{Group, Sections, set};

pub const GROUP: Group = Group {
    name: "dmi",
    parts_of: &["hardware", "virtual", "system_vendor", "product_name", "bios_version"],
    needs: &[],
    script: SCRIPT,
    parse,
};

const SCRIPT: &str = r"
section dmi
for trimtab_name in bios_date bios_vendor bios_version board_asset_tag board_name board_serial board_vendor \
    board_version chassis_asset_tag chassis_serial chassis_type chassis_vendor chassis_version product_name \
    product_serial product_uuid product_version product_family sys_vendor; do
    line $trimtab_name /sys/class/dmi/id/$trimtab_name
done
line devicetree_model /proc/device-tree/model
";

/// The fact and the file below `/sys/class/dmi/id`.
const FIELDS: &[(&str, &str)] = &[
    ("bios_date", "bios_date"),
    ("bios_vendor", "bios_vendor"),
    ("bios_version", "bios_version"),
    ("board_asset_tag", "board_asset_tag"),
    ("board_name", "board_name"),
    ("board_serial", "board_serial"),
    ("board_vendor", "board_vendor"),
    ("board_version", "board_version"),
    ("chassis_asset_tag", "chassis_asset_tag"),
    ("chassis_serial", "chassis_serial"),
    ("chassis_vendor", "chassis_vendor"),
    ("chassis_version", "chassis_version"),
    ("product_name", "product_name"),
    ("product_serial", "product_serial"),
    ("product_uuid", "product_uuid"),
    ("product_version", "product_version"),
    ("system_vendor", "sys_vendor"),
];

/// The kinds of chassis by number (SMBIOS specification, table 17).
const FORM_FACTORS: &[&str] = &[
    "Unknown",
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosure",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

fn parse(sections: &Sections<'_>, facts: &mut Map) {
    for (name, file) in FIELDS {
        set(facts, name, sections.value("dmi", file).map(str::trim).unwrap_or("NA"));
    }
    let kind = sections.value("dmi", "chassis_type").and_then(|kind| kind.trim().parse::<usize>().ok());
    let form = kind.map_or("NA", |kind| FORM_FACTORS.get(kind).copied().unwrap_or("Unknown"));
    set(facts, "form_factor", form);
}
