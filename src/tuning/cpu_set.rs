//! Sets of CPU (or NUMA node) numbers, written as the kernel's lists: `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The largest number a list may name; no kernel is built for more CPUs than 8192.
pub const LARGEST_NUMBER: u32 = 65_535;

/// A set of CPU or node numbers. Shown in canonical form: sorted, with merged ranges.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuSet {
    numbers: BTreeSet<u32>,
}

impl CpuSet {
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// The numbers from `first` to `last`, both included.
    pub fn range(first: u32, last: u32) -> CpuSet {
        CpuSet { numbers: (first..=last).collect() }
    }

    /// Parses a list as the kernel does (`bitmap_parselist`, kernel-parameters: "cpu lists"):
    /// `N`, `A-B` and `A-B:used/group`, separated by commas or blanks. Blank text is the empty set.
    pub fn parse(text: &str) -> Result<CpuSet> {
        let mut set = CpuSet::new();
        for item in text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|item| !item.is_empty()) {
            set.insert_item(item, text)?;
        }
        Ok(set)
    }

    fn insert_item(&mut self, item: &str, whole: &str) -> Result<()> {
        let refuse = |why: &str| {
            Error::input(format!("`{}` is not a list of CPUs: {why}", whole.trim()))
                .hint("write numbers and ranges, as in `0-3,8`")
        };
        let (range, pattern) = match item.split_once(':') {
            Some((range, pattern)) => (range, Some(pattern)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first, &refuse)?, number(last, &refuse)?),
            None if pattern.is_some() => return Err(refuse(&format!("`{item}` has a pattern but no range"))),
            None => {
                let only = number(range, &refuse)?;
                (only, only)
            }
        };
        if first > last {
            return Err(refuse(&format!("the range `{range}` runs backwards")));
        }
        let (used, group) = match pattern {
            None => (1, 1),
            Some(pattern) => {
                let (used, group) = pattern
                    .split_once('/')
                    .ok_or_else(|| refuse(&format!("`{pattern}` is not of the form `used/group`")))?;
                (number(used, &refuse)?, number(group, &refuse)?)
            }
        };
        if group == 0 || used > group {
            return Err(refuse(&format!("`{item}` uses {used} of each {group}")));
        }
        self.numbers.extend((first..=last).filter(|number| (number - first) % group < used));
        Ok(())
    }

    pub fn contains(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    pub fn insert(&mut self, number: u32) {
        self.numbers.insert(number);
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    pub fn first(&self) -> Option<u32> {
        self.numbers.first().copied()
    }

    pub fn last(&self) -> Option<u32> {
        self.numbers.last().copied()
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.numbers.iter().copied()
    }

    #[must_use]
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet { numbers: &self.numbers | &other.numbers }
    }

    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        CpuSet { numbers: &self.numbers & &other.numbers }
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        CpuSet { numbers: &self.numbers - &other.numbers }
    }

    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.numbers.is_subset(&other.numbers)
    }

    /// The set as ranges of neighbours, both ends included.
    pub fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }
}

fn number(text: &str, refuse: &dyn Fn(&str) -> Error) -> Result<u32> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse(&format!("`{text}` is not a number")));
    }
    match text.parse::<u32>() {
        Ok(number) if number <= LARGEST_NUMBER => Ok(number),
        _ => Err(refuse(&format!("`{text}` is above {LARGEST_NUMBER}"))),
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges().into_iter().enumerate() {
            if index > 0 {
                formatter.write_str(",")?;
            }
            if first == last {
                write!(formatter, "{first}")?;
            } else {
                write!(formatter, "{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{{self}}}")
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    fn from_str(text: &str) -> Result<CpuSet> {
        CpuSet::parse(text)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> CpuSet {
        CpuSet { numbers: numbers.into_iter().collect() }
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, numbers: I) {
        self.numbers.extend(numbers);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_reads_them() {
        let cases = [
            ("", ""),
            ("\n", ""),
            ("0", "0"),
            ("0-3,8\n", "0-3,8"),
            (" 3,1,2 ", "1-3"),
            ("0-1:1/2", "0"),
            ("0-15:2/4", "0-1,4-5,8-9,12-13"),
            ("0-1,1-2,,5", "0-2,5"),
            ("0 1 2 3", "0-3"),
            ("7-7", "7"),
        ];
        for (text, canonical) in cases {
            assert_eq!(CpuSet::parse(text).expect(text).to_string(), canonical, "{text:?}");
        }
    }

    #[test]
    fn wrong_lists_are_refused_with_the_reason() {
        let cases = [
            ("1-0", "runs backwards"),
            ("a", "`a` is not a number"),
            ("0-", "`` is not a number"),
            ("-1", "`` is not a number"),
            ("0x3", "`0x3` is not a number"),
            ("0-3:1", "`used/group`"),
            ("0-3:2/0", "uses 2 of each 0"),
            ("0-3:3/2", "uses 3 of each 2"),
            ("0:1/2", "no range"),
            ("0-4294967295", "above 65535"),
            ("99999999999999999999", "above 65535"),
        ];
        for (text, why) in cases {
            let error = CpuSet::parse(text).expect_err(text);
            assert!(error.message().contains(why), "{text:?}: {}", error.message());
        }
    }

    #[test]
    fn sets_combine() {
        let left = CpuSet::range(0, 7);
        let right: CpuSet = [2, 3, 9].into_iter().collect();
        assert_eq!(left.union(&right).to_string(), "0-7,9");
        assert_eq!(left.intersection(&right).to_string(), "2-3");
        assert_eq!(left.difference(&right).to_string(), "0-1,4-7");
        assert!(CpuSet::range(2, 3).is_subset(&left) && !right.is_subset(&left));
    }

    proptest! {
        #[test]
        fn what_is_formatted_is_read_back(
            (_, numbers) in prop::sample::select(vec![1u32, 31, 32, 33, 64, 128, 256, 1024])
                .prop_flat_map(|count| (Just(count), prop::collection::btree_set(0..count, 0..=count as usize)))
        ) {
            let set: CpuSet = numbers.into_iter().collect();
            prop_assert_eq!(CpuSet::parse(&set.to_string()).expect("canonical form"), set);
        }

        #[test]
        fn nothing_panics(text in "[0-9,:/ \\-a-z]{0,24}") {
            let _ = CpuSet::parse(&text);
        }
    }
}
