//! CPU masks: hexadecimal words of 32 bits, the most significant first, as in `smp_affinity` and `rps_cpus`.
//!
//! The kernel refuses (`EOVERFLOW`) a mask with more words than the host's CPUs need, even where
//! they are zero. So a mask is written in the shape that reading the same file printed.

use crate::error::{Error, Result};
use crate::tuning::cpu_set::CpuSet;

const WORD_BITS: u32 = 32;
const WORD_DIGITS: usize = 8;

/// How wide the masks of a host are: the words, and the hexadecimal digits of the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskShape {
    words: usize,
    top_digits: usize,
}

impl MaskShape {
    /// The shape of masks on a host with `count` possible CPUs (`nr_cpu_ids`).
    pub fn for_cpus(count: u32) -> MaskShape {
        let count = count.max(1);
        let top_bits = (count - 1) % WORD_BITS + 1;
        MaskShape { words: count.div_ceil(WORD_BITS) as usize, top_digits: top_bits.div_ceil(4) as usize }
    }

    /// The shape of a mask that the host printed.
    pub fn of_printed(text: &str) -> Result<MaskShape> {
        let words: Vec<&str> = text.trim().split(',').collect();
        let hexadecimal = |word: &&str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
        match words[0].len() {
            top_digits @ 1..=WORD_DIGITS
                if words.iter().all(hexadecimal) && words[1..].iter().all(|word| word.len() == WORD_DIGITS) =>
            {
                Ok(MaskShape { words: words.len(), top_digits })
            }
            _ => Err(Error::input(format!("`{}` is not a CPU mask as the kernel prints it", text.trim()))),
        }
    }

    pub fn words(self) -> usize {
        self.words
    }

    /// The first CPU number that no mask of this shape can name. `nr_cpu_ids` may be up to three below.
    pub fn limit(self) -> u32 {
        (self.words as u32 - 1) * WORD_BITS + self.top_digits as u32 * 4
    }

    /// Writes the set in this shape. Fails for a CPU the host does not have, which the kernel
    /// would refuse with `EOVERFLOW`.
    pub fn format(self, cpus: &CpuSet) -> Result<String> {
        if let Some(last) = cpus.last().filter(|last| *last >= self.limit()) {
            return Err(Error::input(format!(
                "CPU {last} does not exist here: masks of this host end below {}",
                self.limit()
            )));
        }
        let mut words = vec![0u32; self.words];
        for cpu in cpus.iter() {
            words[(cpu / WORD_BITS) as usize] |= 1 << (cpu % WORD_BITS);
        }
        let mut text = String::with_capacity(self.words * (WORD_DIGITS + 1));
        for (index, word) in words.iter().rev().enumerate() {
            if index == 0 {
                text.push_str(&format!("{word:0width$x}", width = self.top_digits));
            } else {
                text.push_str(&format!(",{word:08x}"));
            }
        }
        Ok(text)
    }

    /// True if the kernel would answer `EOVERFLOW` to this text: more words than the host needs, a
    /// word of more than eight digits, or a bit beyond the last CPU.
    pub fn overflows(self, text: &str) -> bool {
        let words: Vec<&str> = words_of(text).collect();
        words.len() > self.words
            || words.iter().any(|word| word.len() > WORD_DIGITS)
            || parse_mask(text).is_ok_and(|cpus| cpus.last().is_some_and(|last| last >= self.limit()))
    }
}

/// Parses a mask as the kernel does (`bitmap_parse`): words in hexadecimal without `0x`; empty words
/// are skipped, so `,3` and `3,` are both `3`.
pub fn parse_mask(text: &str) -> Result<CpuSet> {
    let refuse = |why: String| {
        Error::input(format!("`{}` is not a CPU mask: {why}", text.trim())).hint(
            "write hexadecimal words of eight digits, separated by commas, the highest CPUs first, as in `1,00000003`",
        )
    };
    let mut cpus = CpuSet::new();
    for (index, word) in words_of(text).rev().enumerate() {
        if !word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refuse(format!("`{word}` is not hexadecimal")));
        }
        if word.len() > WORD_DIGITS {
            return Err(refuse(format!("`{word}` is longer than eight digits")));
        }
        let bits = u32::from_str_radix(word, 16).map_err(|error| refuse(error.to_string()))?;
        let base = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(WORD_BITS);
        if base > crate::tuning::cpu_set::LARGEST_NUMBER {
            return Err(refuse("it has more words than any kernel".to_owned()));
        }
        cpus.extend((0..WORD_BITS).filter(|bit| bits & (1 << bit) != 0).map(|bit| base + bit));
    }
    Ok(cpus)
}

fn words_of(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).expect("a list")
    }

    #[test]
    fn masks_and_sets_agree() {
        let cases = [
            (128, "0-3,8", "00000000,00000000,00000000,0000010f"),
            (128, "32-63", "00000000,00000000,ffffffff,00000000"),
            (128, "96-127", "ffffffff,00000000,00000000,00000000"),
            (128, "31", "00000000,00000000,00000000,80000000"),
            (128, "", "00000000,00000000,00000000,00000000"),
            (2, "0-1", "3"),
            (31, "30", "40000000"),
            (32, "31", "80000000"),
            (33, "32", "1,00000000"),
            (36, "0,35", "8,00000001"),
            (64, "0-63", "ffffffff,ffffffff"),
        ];
        for (count, list, mask) in cases {
            let shape = MaskShape::for_cpus(count);
            assert_eq!(shape.format(&set(list)).expect(list), mask);
            assert_eq!(parse_mask(mask).expect(mask), set(list));
            assert_eq!(MaskShape::of_printed(mask).expect(mask), shape);
        }
    }

    #[test]
    fn empty_words_are_skipped_and_other_bases_refused() {
        for text in [",3", "3,", " 3\n", "00000003"] {
            assert_eq!(parse_mask(text).expect(text), set("0-1"), "{text:?}");
        }
        for text in ["0x3", "0-1", "zz", "000000003"] {
            assert!(parse_mask(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn overflow_is_predicted() {
        let cases = [
            (2, "00000000,00000003", true),
            (2, "3", false),
            (2, "00000003", false),
            (2, "10", true),
            (128, "0,0,0,0,1", true),
            (128, "00000000,00000000,00000000,0000010f", false),
            // Commas removed from a wide mask: one word of 32 digits.
            (128, "0000000000000000000000000000010f", true),
        ];
        for (count, text, overflows) in cases {
            assert_eq!(MaskShape::for_cpus(count).overflows(text), overflows, "{count} CPUs, {text}");
        }
        assert!(MaskShape::for_cpus(2).format(&set("31")).is_err());
    }

    #[test]
    fn only_printed_masks_have_a_shape() {
        for text in ["", "3,3", "0x3", "123456789"] {
            assert!(MaskShape::of_printed(text).is_err(), "{text:?}");
        }
        assert!(MaskShape::of_printed("00000000,0000000f\n").is_ok_and(|shape| shape.words() == 2));
    }

    proptest! {
        #[test]
        fn what_is_formatted_is_read_back(
            (count, numbers) in prop::sample::select(vec![1u32, 31, 32, 33, 64, 128, 256, 1024])
                .prop_flat_map(|count| (Just(count), prop::collection::btree_set(0..count, 0..=count as usize)))
        ) {
            let cpus: CpuSet = numbers.into_iter().collect();
            let shape = MaskShape::for_cpus(count);
            let text = shape.format(&cpus).expect("within the host");
            prop_assert_eq!(text.split(',').count(), count.div_ceil(32) as usize);
            prop_assert!(!shape.overflows(&text));
            let too_wide = format!("0,{text}");
            prop_assert!(shape.overflows(&too_wide));
            prop_assert_eq!(MaskShape::of_printed(&text).expect("printed"), shape);
            prop_assert_eq!(parse_mask(&text).expect("formatted"), cpus);
        }

        #[test]
        fn nothing_panics(text in "[0-9a-fx,\\- ]{0,40}") {
            let _ = parse_mask(&text);
            let _ = MaskShape::of_printed(&text);
            let _ = MaskShape::for_cpus(64).overflows(&text);
        }
    }
}
