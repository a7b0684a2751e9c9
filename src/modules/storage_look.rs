//! Block devices, file systems and LVM as a host's programs tell them.

use crate::connect::shell::{Response, quote};
use crate::host::Failure;

use super::programs::SYSTEM_PATH;

/// Lines before all scripts about storage.
pub const START: &str = "export LC_ALL=C\n";

/// Shell code that prints the type of the file system on a device (nothing if there is none).
pub fn type_script(device: &str) -> String {
    format!(
        "{SYSTEM_PATH}{START}d={}; [ -e \"$d\" ] || exit 3\ncommand -v blkid >/dev/null || exit 127\n\
         blkid -c /dev/null -o value -s TYPE \"$d\"; c=$?; [ $c = 0 ] || [ $c = 2 ] || exit $c",
        quote(device)
    )
}

/// A size as LVM and parted take it: the number and its unit in small letters; a lone number is in `default`.
pub fn size(text: &str, default: char) -> Option<(f64, char)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim().trim_end_matches("iB").trim_end_matches(['b', 'B']) {
        "" if unit.trim().is_empty() => default,
        "" => 'b',
        word => {
            let mut letters = word.chars();
            let letter = letters.next()?;
            if letters.next().is_some() || !"kmgtpeKMGTPEsS".contains(letter) {
                return None;
            }
            letter.to_ascii_lowercase()
        }
    };
    Some((number.parse().ok()?, unit))
}

/// The same in bytes.
pub fn bytes(text: &str, default: char) -> Option<u64> {
    let (number, unit) = size(text, default)?;
    let factor = match unit {
        'b' => 1.0,
        's' => 512.0,
        unit => 1024_f64.powi(i32::try_from("kmgtpe".find(unit)?).ok()? + 1),
    };
    Some((number * factor) as u64)
}

/// The lines of an answer; an error says what the program said.
pub fn lines(response: &Response, what: &str) -> Result<Vec<String>, Failure> {
    match response.code {
        Some(0) => {
            Ok(response.text().lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect())
        }
        Some(127) => Err(Failure::new(format!("the host has no program for {what}: {}", response.error_text().trim()))),
        _ => Err(Failure::new(format!("{what}: {}", response.error_text().trim()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            (bytes("512", 'm'), bytes("1.5g", 'm'), bytes("10MiB", 'b')),
            (Some(536_870_912), Some(1_610_612_736), Some(10_485_760))
        );
        assert_eq!((bytes("4K", 'm'), bytes("8s", 'm'), bytes("7B", 'm')), (Some(4096), Some(4096), Some(7)));
        assert_eq!((bytes("x", 'm'), bytes("5xy", 'm')), (None, None));
    }
}
