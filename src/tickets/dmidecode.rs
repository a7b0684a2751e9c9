//! What `dmidecode -t 17` says of the memory modules.

/// One module that is plugged in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryDevice {
    pub locator: String,
    pub size: String,
    /// MT/s that the module is made for.
    pub rated: Option<u32>,
    /// MT/s that the firmware runs it at.
    pub configured: Option<u32>,
}

/// Parses the modules; empty slots are left out. Older versions say `Configured Clock Speed` and `MHz`.
pub fn memory_devices(text: &str) -> Vec<MemoryDevice> {
    let mut devices: Vec<MemoryDevice> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            inside = line.trim_end() == "Memory Device";
            if inside {
                devices.push(MemoryDevice::default());
            }
            continue;
        }
        let (Some(device), Some((name, value))) = (devices.last_mut(), line.split_once(':')) else { continue };
        if !inside {
            continue;
        }
        let value = value.trim();
        let speed = || value.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
        match name.trim() {
            "Locator" => device.locator = value.to_owned(),
            "Size" => device.size = value.to_owned(),
            "Speed" => device.rated = speed(),
            "Configured Memory Speed" | "Configured Clock Speed" => device.configured = speed(),
            _ => {}
        }
    }
    devices.retain(|device| !device.size.is_empty() && !device.size.starts_with("No Module"));
    devices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_and_empty_slots_left_out() {
        let text = "# dmidecode 3.2\nHandle 0x0012, DMI type 17, 40 bytes\nMemory Device\n\tSize: 32 GB\n\tLocator: DIMM000\n\
                    \tSpeed: 3200 MT/s\n\tConfigured Memory Speed: 2933 MT/s\n\nHandle 0x0013, DMI type 17, 40 bytes\nMemory Device\n\
                    \tSize: No Module Installed\n\tSpeed: Unknown\n\nHandle 0x0014, DMI type 17\nMemory Device\n\tSize: 16384 MB\n\
                    \tSpeed: 2400 MHz\n\tConfigured Clock Speed: 2133 MHz\n\nEnd Of Table\n\tSize: 1 GB\n";
        let devices = memory_devices(text);
        let shown: Vec<_> = devices.iter().map(|device| (device.rated, device.configured)).collect();
        assert_eq!(shown, [(Some(3200), Some(2933)), (Some(2400), Some(2133))]);
        assert_eq!((devices[0].locator.as_str(), devices[0].size.as_str()), ("DIMM000", "32 GB"));
    }

    #[test]
    fn a_machine_without_tables_has_no_modules() {
        assert!(memory_devices("# dmidecode 3.4\n# No SMBIOS nor DMI entry point found, sorry.\n").is_empty());
    }
}
