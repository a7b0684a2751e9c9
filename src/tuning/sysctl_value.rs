//! Values of kernel parameters: numbers as the kernel parses them, policies, and the rounding it applies.

use std::fmt;

use crate::error::{Error, Result};

/// The value of a key: numbers where it is nothing else, else text with blanks merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SysctlValue {
    Numbers(Vec<i128>),
    Text(String),
}

impl SysctlValue {
    /// Parses a wanted value as the kernel would: the base is automatic (`0x400` is 1024, a leading zero means
    /// octal), numbers are separated by blanks or TABs. What is not all numbers is text.
    pub fn parse(text: &str) -> SysctlValue {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words.iter().map(|word| parse_number(word)).collect::<Option<Vec<_>>>() {
            Some(numbers) if !numbers.is_empty() => SysctlValue::Numbers(numbers),
            _ => SysctlValue::Text(words.join(" ")),
        }
    }

    /// Parses what the kernel printed: numbers are always decimal there, so `010` is text.
    pub fn read(text: &str) -> SysctlValue {
        match SysctlValue::parse(text) {
            SysctlValue::Numbers(numbers) if is_decimal(text, &numbers) => SysctlValue::Numbers(numbers),
            _ => SysctlValue::Text(text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }

    pub fn numbers(&self) -> Option<&[i128]> {
        match self {
            SysctlValue::Numbers(numbers) => Some(numbers),
            SysctlValue::Text(_) => None,
        }
    }
}

fn is_decimal(text: &str, numbers: &[i128]) -> bool {
    text.split_ascii_whitespace().zip(numbers).all(|(word, number)| word == number.to_string())
}

/// In decimal, separated by single blanks: as it is written to the kernel and to files.
impl fmt::Display for SysctlValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysctlValue::Numbers(numbers) => {
                let words: Vec<String> = numbers.iter().map(i128::to_string).collect();
                formatter.write_str(&words.join(" "))
            }
            SysctlValue::Text(text) => formatter.write_str(text),
        }
    }
}

/// One number in the kernel's automatic base (`kstrtoul` with base 0), with an optional minus.
pub fn parse_number(word: &str) -> Option<i128> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| char::from(byte).is_digit(base)) {
        return None;
    }
    let number = i128::from(u64::from_str_radix(digits, base).ok()?);
    Some(if negative { -number } else { number })
}

/// How a wanted number is compared with the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    #[default]
    Exact,
    /// A present value above the wanted one is left alone: right for limits.
    AtLeast,
    /// A present value below the wanted one is left alone.
    AtMost,
}

/// The names of the policies, as arguments write them.
pub const POLICIES: &[(&str, Policy)] =
    &[("exact", Policy::Exact), ("at_least", Policy::AtLeast), ("at_most", Policy::AtMost)];

impl Policy {
    pub fn parse(name: &str) -> Result<Policy> {
        POLICIES.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy).ok_or_else(|| {
            Error::input(format!("`{name}` is not a policy; there is `exact`, `at_least` and `at_most`"))
                .suggest(name, POLICIES.iter().map(|(known, _)| *known))
        })
    }

    fn apply(self, present: i128, wanted: i128) -> i128 {
        match self {
            Policy::Exact => wanted,
            Policy::AtLeast => present.max(wanted),
            Policy::AtMost => present.min(wanted),
        }
    }
}

/// The value a key should have, given what it has: field by field under the policy, then rounded.
///
/// Fewer wanted numbers than fields leave the rest as it is, as a write does. Text knows only `exact`.
pub fn target(present: &SysctlValue, wanted: &SysctlValue, policy: Policy, rounding: Rounding) -> Result<SysctlValue> {
    let (SysctlValue::Numbers(present), SysctlValue::Numbers(wanted)) = (present, wanted) else {
        if policy == Policy::Exact {
            return Ok(wanted.clone());
        }
        return Err(Error::input(format!(
            "`{wanted}` and the present `{present}` are not both numbers, so neither is larger"
        ))
        .hint("use the policy `exact`"));
    };
    if wanted.len() > present.len() {
        return Err(Error::input(format!("{} numbers are wanted but the key holds {}", wanted.len(), present.len())));
    }
    let fields = present.iter().enumerate().map(|(index, present)| match wanted.get(index) {
        Some(wanted) => policy.apply(*present, rounding.apply(*wanted)),
        None => *present,
    });
    Ok(SysctlValue::Numbers(fields.collect()))
}

/// What the kernel makes of a number before it stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rounding {
    #[default]
    None,
    /// Up to the next power of two (`rps_sock_flow_entries`, `rps_flow_cnt`); zero stays.
    PowerOfTwo,
}

impl Rounding {
    pub fn apply(self, number: i128) -> i128 {
        match self {
            Rounding::PowerOfTwo if number > 1 => {
                u64::try_from(number).ok().and_then(u64::checked_next_power_of_two).map_or(number, i128::from)
            }
            _ => number,
        }
    }
}

/// Checks a buffer triple (`tcp_rmem`, `tcp_wmem`): the kernel takes any order, but only `min <= default <= max` has a meaning.
pub fn check_triple(value: &SysctlValue) -> Result<()> {
    match value.numbers() {
        Some([min, default, max]) if 1 <= *min && min <= default && default <= max => Ok(()),
        Some(_) => Err(Error::input(format!("`{value}` is not `min default max` in ascending order, all at least 1"))),
        None => Err(Error::input(format!("`{value}` is not three numbers separated by blanks"))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_parsed_in_the_kernels_bases() {
        let cases = [
            ("1024", Some(1024)),
            ("0x400", Some(1024)),
            ("0X400", Some(1024)),
            ("010", Some(8)),
            ("0", Some(0)),
            ("00", Some(0)),
            ("-1", Some(-1)),
            ("18446744073709551615", Some(u64::MAX as i128)),
            ("18446744073709551616", None),
            ("08", None),
            ("0x", None),
            ("12abc", None),
            ("+1", None),
            ("--1", None),
            ("", None),
        ];
        for (text, number) in cases {
            assert_eq!(parse_number(text), number, "{text:?}");
        }
    }

    #[test]
    fn values_compare_as_lists_of_integers() {
        let equal = [
            ("4096 87380 16777216", "4096\t87380\t16777216\n"),
            ("0x400", "1024\n"),
            (" 1024 ", "1024"),
            ("always on", "always  on\n"),
        ];
        for (wanted, read) in equal {
            assert_eq!(SysctlValue::parse(wanted), SysctlValue::read(read), "{wanted:?}");
        }
        assert_ne!(SysctlValue::parse("8"), SysctlValue::read("010"));
        assert_eq!(SysctlValue::parse("1,2"), SysctlValue::Text("1,2".into()));
        assert_eq!(SysctlValue::parse(""), SysctlValue::Text(String::new()));
        assert_eq!(SysctlValue::parse("0x10 010").to_string(), "16 8");
    }

    #[test]
    fn policies_are_applied_field_by_field() {
        let cases = [
            ("128", "1024", Policy::AtLeast, "1024"),
            ("4096", "1024", Policy::AtLeast, "4096"),
            ("4096", "1024", Policy::Exact, "1024"),
            ("60", "1", Policy::AtMost, "1"),
            ("0", "1", Policy::AtMost, "0"),
            ("4096 131072 6291456", "4096 87380 16777216", Policy::AtLeast, "4096 131072 16777216"),
            // Fewer numbers: the rest is kept.
            ("4096 131072 6291456", "8192 131072", Policy::Exact, "8192 131072 6291456"),
            ("old", "new", Policy::Exact, "new"),
        ];
        for (present, wanted, policy, expected) in cases {
            let got = target(&SysctlValue::read(present), &SysctlValue::parse(wanted), policy, Rounding::None);
            assert_eq!(got.expect(wanted).to_string(), expected, "{wanted} over {present}");
        }
        for (present, wanted, policy) in [("a", "1", Policy::AtLeast), ("1", "1 2", Policy::Exact)] {
            assert!(target(&SysctlValue::read(present), &SysctlValue::parse(wanted), policy, Rounding::None).is_err());
        }
        assert!(Policy::parse("atleast").expect_err("misspelt").hints()[0].contains("at_least"));
    }

    #[test]
    fn flow_counts_are_rounded_up() {
        for (wanted, stored) in [(0, 0), (1, 1), (4000, 4096), (4096, 4096), (4097, 8192)] {
            assert_eq!(Rounding::PowerOfTwo.apply(wanted), stored);
        }
    }

    #[test]
    fn triples_must_ascend() {
        assert!(check_triple(&SysctlValue::parse("4096 87380 16777216")).is_ok());
        for text in ["8192 4096 100", "0 1 2", "1 2", "a b c"] {
            assert!(check_triple(&SysctlValue::parse(text)).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn decimal_numbers_are_read_back(numbers in prop::collection::vec(any::<i64>(), 1..5)) {
            let value = SysctlValue::Numbers(numbers.into_iter().map(i128::from).collect());
            prop_assert_eq!(SysctlValue::read(&value.to_string()), value);
        }

        #[test]
        fn a_target_meets_its_policy(present in 0i128..1 << 40, wanted in 0i128..1 << 40) {
            let value = |number| SysctlValue::Numbers(vec![number]);
            let got = |policy| target(&value(present), &value(wanted), policy, Rounding::None).expect("numbers");
            prop_assert_eq!(got(Policy::AtLeast), value(present.max(wanted)));
            prop_assert_eq!(got(Policy::AtMost), value(present.min(wanted)));
            // Applied again, nothing changes.
            let once = got(Policy::AtLeast);
            prop_assert_eq!(target(&once, &value(wanted), Policy::AtLeast, Rounding::None).expect("numbers"), once);
        }
    }
}
