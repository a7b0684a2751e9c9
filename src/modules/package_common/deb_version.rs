//! Versions of Debian packages, in dpkg's order (deb-version(7)).

use std::cmp::Ordering;

use super::rpm_version::compare_numbers;

/// The order of two versions: `[epoch:]upstream[-revision]`.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (left, right) = (split(left), split(right));
    compare_numbers(left.0.as_bytes(), right.0.as_bytes())
        .then_with(|| compare_part(left.1, right.1))
        .then_with(|| compare_part(left.2, right.2))
}

fn split(text: &str) -> (&str, &str, &str) {
    let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Runs of what is no digit and runs of digits are compared one after the other.
fn compare_part(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    while !left.is_empty() || !right.is_empty() {
        let (first, left_rest) = run(left, false);
        let (second, right_rest) = run(right, false);
        let length = first.len().max(second.len());
        for index in 0..length {
            let order = weight(first.get(index)).cmp(&weight(second.get(index)));
            if order != Ordering::Equal {
                return order;
            }
        }
        let (first, left_rest) = run(left_rest, true);
        let (second, right_rest) = run(right_rest, true);
        let order = compare_numbers(first, second);
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
    Ordering::Equal
}

fn run(text: &[u8], digits: bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| byte.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

/// `~` sorts before the end, letters before all other signs.
fn weight(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_dpkgs_order() {
        let cases = [
            ("1.0", "1.0", Ordering::Equal),
            ("1.0", "1.0-0", Ordering::Equal),
            ("1.0-1", "1.0-2", Ordering::Less),
            ("1:1.0", "2.0", Ordering::Greater),
            ("1.0~rc1", "1.0", Ordering::Less),
            ("1.0~~", "1.0~", Ordering::Less),
            ("1.0a", "1.0", Ordering::Greater),
            ("1.0a", "1.0+b", Ordering::Less),
            ("1.10", "1.9", Ordering::Greater),
            ("1.0-1+deb12u1", "1.0-1", Ordering::Greater),
            ("2.36-9+deb12u4", "2.36-9+deb12u10", Ordering::Less),
        ];
        for (left, right, order) in cases {
            assert_eq!(compare(left, right), order, "{left} {right}");
            assert_eq!(compare(right, left), order.reverse(), "{right} {left}");
        }
    }

    #[test]
    fn dpkg_agrees() {
        let versions = ["1.0", "1.0~rc1", "1:0.1", "1.0-1", "1.0-1+b2", "1.0.1", "1.0a", "1.0+dfsg", "0", "1.0-01"];
        let Ok(output) = std::process::Command::new("dpkg").arg("--version").output() else { return };
        assert!(output.status.success());
        for left in versions {
            for right in versions {
                let holds = std::process::Command::new("dpkg").args(["--compare-versions", left, "lt", right]).status();
                assert_eq!(holds.unwrap().success(), compare(left, right) == Ordering::Less, "{left} {right}");
            }
        }
    }
}
