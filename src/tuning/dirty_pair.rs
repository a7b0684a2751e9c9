//! The either/or pairs `vm.dirty_ratio`/`vm.dirty_bytes` and their `background` twins (kernel: admin-guide/sysctl/vm).
//!
//! A write to one of a pair sets the other to zero. Both at zero would throttle every writer, so a
//! pair is restored by the one write that is not zero.

use crate::error::{Error, Result};

/// One pair, as it was read: the one that is not zero is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyPair {
    /// Percent of the memory that can be dirtied.
    pub ratio: u64,
    pub bytes: u64,
}

/// Keys that belong to a pair, each with its partner.
const PAIRS: &[(&str, &str)] =
    &[("vm.dirty_ratio", "vm.dirty_bytes"), ("vm.dirty_background_ratio", "vm.dirty_background_bytes")];

/// The key that becomes zero when `key` is written.
pub fn partner(key: &str) -> Option<&'static str> {
    PAIRS.iter().find_map(|(ratio, bytes)| match key {
        _ if key == *ratio => Some(*bytes),
        _ if key == *bytes => Some(*ratio),
        _ => None,
    })
}

impl DirtyPair {
    /// The single write (suffix of the key, value) that restores the pair: bytes if they were in force, else the ratio.
    pub fn restoring_write(self) -> (&'static str, u64) {
        if self.bytes > 0 { ("bytes", self.bytes) } else { ("ratio", self.ratio) }
    }

    /// The threshold in bytes, given the memory that can be dirtied.
    pub fn threshold(self, dirtyable_bytes: u64) -> u64 {
        if self.bytes > 0 { self.bytes } else { dirtyable_bytes / 100 * self.ratio }
    }
}

/// What the kernel makes of a background threshold that is not below the foreground one: half of the latter.
/// The warning says so; `None` if the thresholds are in order.
pub fn background_warning(foreground: DirtyPair, background: DirtyPair, dirtyable_bytes: u64) -> Option<String> {
    let (front, back) = (foreground.threshold(dirtyable_bytes), background.threshold(dirtyable_bytes));
    (back >= front).then(|| {
        let shown = |pair: DirtyPair| match pair.restoring_write() {
            ("bytes", bytes) => format!("{bytes} bytes"),
            (_, ratio) => format!("{ratio} %"),
        };
        format!(
            "background writing would start at {} but writers are throttled at {}: the kernel uses half of the latter instead",
            shown(background),
            shown(foreground)
        )
    })
}

/// Checks a wanted value of one of the four keys before it is written. `page_bytes` is the host's page size.
pub fn check(key: &str, value: u64, page_bytes: u64) -> Result<()> {
    match key {
        "vm.dirty_ratio" | "vm.dirty_background_ratio" if value > 100 => {
            Err(Error::input(format!("`{key}` is a percentage, and {value} is above 100")))
        }
        "vm.dirty_bytes" if value < 2 * page_bytes => Err(Error::input(format!(
            "`{key}` must be at least two pages, {} bytes on this host, not {value}",
            2 * page_bytes
        ))),
        "vm.dirty_background_bytes" if value == 0 => {
            Err(Error::input(format!("`{key}` cannot be set to 0")).hint("set `vm.dirty_background_ratio` instead"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn pair(ratio: u64, bytes: u64) -> DirtyPair {
        DirtyPair { ratio, bytes }
    }

    #[test]
    fn a_pair_is_restored_by_one_write() {
        assert_eq!(pair(20, 0).restoring_write(), ("ratio", 20));
        assert_eq!(pair(0, 4096).restoring_write(), ("bytes", 4096));
        assert_eq!(pair(0, 0).restoring_write(), ("ratio", 0));
        assert_eq!(partner("vm.dirty_ratio"), Some("vm.dirty_bytes"));
        assert_eq!(partner("vm.dirty_background_bytes"), Some("vm.dirty_background_ratio"));
        assert_eq!(partner("vm.swappiness"), None);
    }

    #[test]
    fn a_background_above_the_foreground_is_noticed() {
        // dirty_ratio 5 with the default background of 10.
        let warning = background_warning(pair(5, 0), pair(10, 0), GIB).expect("a warning");
        assert!(warning.contains("start at 10 %") && warning.contains("throttled at 5 %"), "{warning}");
        assert_eq!(background_warning(pair(20, 0), pair(10, 0), GIB), None);
        assert_eq!(background_warning(pair(5, 0), pair(0, GIB / 100), GIB), None);
        assert!(background_warning(pair(0, GIB), pair(0, GIB), GIB).is_some());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert!(check("vm.dirty_ratio", 5, 4096).is_ok());
        assert!(check("vm.dirty_ratio", 101, 4096).is_err());
        assert!(check("vm.dirty_bytes", 8192, 4096).is_ok());
        assert!(check("vm.dirty_bytes", 8192, 65536).is_err());
        assert!(check("vm.dirty_background_bytes", 0, 4096).is_err());
    }
}
