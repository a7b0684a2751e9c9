//! Versions of RPM packages, in RPM's order.

use std::cmp::Ordering;

/// The order of two version or release texts (rpm's `rpmvercmp`, doc/manual/dependencies.md): runs of digits
/// and runs of letters are compared one after the other, `~` sorts before everything, `^` behind the end.
pub fn compare(left: &str, right: &str) -> Ordering {
    let (mut left, mut right) = (left.as_bytes(), right.as_bytes());
    loop {
        left = skip_separators(left);
        right = skip_separators(right);
        match (left.first(), right.first()) {
            (Some(b'~'), Some(b'~')) | (Some(b'^'), Some(b'^')) => {
                (left, right) = (&left[1..], &right[1..]);
                continue;
            }
            (Some(b'~'), _) => return Ordering::Less,
            (_, Some(b'~')) => return Ordering::Greater,
            (Some(b'^'), None) => return Ordering::Greater,
            (None, Some(b'^')) => return Ordering::Less,
            (Some(b'^'), _) => return Ordering::Less,
            (_, Some(b'^')) => return Ordering::Greater,
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            _ => {}
        }
        let digits = left[0].is_ascii_digit();
        let (first, left_rest) = run(left, digits);
        let (second, right_rest) = run(right, digits);
        if second.is_empty() {
            // a number is newer than letters
            return if digits { Ordering::Greater } else { Ordering::Less };
        }
        let order = if digits { compare_numbers(first, second) } else { first.cmp(second) };
        if order != Ordering::Equal {
            return order;
        }
        (left, right) = (left_rest, right_rest);
    }
}

fn skip_separators(text: &[u8]) -> &[u8] {
    let is_separator = |byte: &u8| !byte.is_ascii_alphanumeric() && !matches!(byte, b'~' | b'^');
    let end = text.iter().position(|byte| !is_separator(byte)).unwrap_or(text.len());
    &text[end..]
}

/// The digits or letters in front, and the rest.
fn run(text: &[u8], digits: bool) -> (&[u8], &[u8]) {
    let belongs = |byte: &u8| if digits { byte.is_ascii_digit() } else { byte.is_ascii_alphabetic() };
    let end = text.iter().position(|byte| !belongs(byte)).unwrap_or(text.len());
    text.split_at(end)
}

/// The order of two numbers of any length.
pub fn compare_numbers(left: &[u8], right: &[u8]) -> Ordering {
    let without_zeros = |text: &[u8]| text.iter().position(|byte| *byte != b'0').unwrap_or(text.len());
    let (left, right) = (&left[without_zeros(left)..], &right[without_zeros(right)..]);
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Epoch, version and release as they are written: `[epoch:]version[-release]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evr<'a> {
    pub epoch: Option<&'a str>,
    pub version: &'a str,
    pub release: Option<&'a str>,
}

impl<'a> Evr<'a> {
    pub fn parse(text: &'a str) -> Evr<'a> {
        let (epoch, rest) = match text.split_once(':') {
            Some((epoch, rest)) if epoch.bytes().all(|byte| byte.is_ascii_digit()) => (Some(epoch), rest),
            _ => (None, text),
        };
        match rest.rsplit_once('-') {
            Some((version, release)) => Evr { epoch, version, release: Some(release) },
            None => Evr { epoch, version: rest, release: None },
        }
    }

    /// The order; what one of the two leaves open is not compared.
    pub fn compare(&self, other: &Evr<'_>) -> Ordering {
        let epochs = match (self.epoch, other.epoch) {
            (Some(left), Some(right)) => compare_numbers(left.as_bytes(), right.as_bytes()),
            _ => Ordering::Equal,
        };
        let releases = || match (self.release, other.release) {
            (Some(left), Some(right)) => compare(left, right),
            _ => Ordering::Equal,
        };
        epochs.then_with(|| compare(self.version, other.version)).then_with(releases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_rpms_order() {
        let cases = [
            ("1.0", "1.0", Ordering::Equal),
            ("1.0", "2.0", Ordering::Less),
            ("2.0.1", "2.0", Ordering::Greater),
            ("2.0.1a", "2.0.1", Ordering::Greater),
            ("5.5p1", "5.5p10", Ordering::Less),
            ("10xyz", "10.1xyz", Ordering::Less),
            ("xyz10", "xyz10.1", Ordering::Less),
            ("xyz.4", "8", Ordering::Less),
            ("5.5.p2", "5.6.p1", Ordering::Less),
            ("6.0.rc1", "6.0", Ordering::Greater),
            ("1.05", "1.5", Ordering::Equal),
            ("2_0", "2.0", Ordering::Equal),
            ("20101122", "20101121", Ordering::Greater),
            ("1.0~rc1", "1.0", Ordering::Less),
            ("1.0~rc1", "1.0~rc2", Ordering::Less),
            ("1.0~", "1.0~~", Ordering::Greater),
            ("1.0^git1", "1.0", Ordering::Greater),
            ("1.0^git1", "1.0.1", Ordering::Less),
            ("1.0^git1~pre", "1.0^git1", Ordering::Less),
            ("99999999999999999999", "100000000000000000000", Ordering::Less),
            ("1.el8", "1.el7", Ordering::Greater),
        ];
        for (left, right, order) in cases {
            assert_eq!(compare(left, right), order, "{left} {right}");
            assert_eq!(compare(right, left), order.reverse(), "{right} {left}");
        }
    }

    #[test]
    fn what_is_not_written_is_not_compared() {
        let cases = [
            ("1.0", "1.0-5", Ordering::Equal),
            ("2:1.0", "1:3.0", Ordering::Greater),
            ("1.0", "1:1.0", Ordering::Equal),
            ("1.0-2.el7", "1.0-10.el7", Ordering::Less),
        ];
        for (left, right, order) in cases {
            assert_eq!(Evr::parse(left).compare(&Evr::parse(right)), order, "{left} {right}");
        }
    }
}
