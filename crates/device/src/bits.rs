//! Counting and finding set bits of a word, in one instruction each if the processor has it.
//!
//! Programs are built for any x86-64, which guarantees neither instruction; the program checks for both when it runs.
//! Code that counts bits all the time checks once, and is compiled twice: for [`SwiftBits`], which exists only with the
//! instructions, and for [`PlainBits`].

/// Counts and finds set bits of words.
pub trait Bits: Copy + Send + Sync + 'static {
    /// Counts the set bits of a word.
    fn rank(self, word: u64) -> u32;

    /// Returns the place of a set bit by its number, both from 0 at the low end; 64 if fewer are set. Numbers are below
    /// 64.
    ///
    /// ```
    /// use nandex_device::{Bits, PlainBits};
    /// assert_eq!([0, 1, 2].map(|number| PlainBits.select(0b1010, number)), [1, 3, 64]);
    /// ```
    fn select(self, word: u64, number: u32) -> u32;
}

/// The implementation with the processor's instructions `popcnt` and `pdep`. A value exists only if they were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwiftBits(());

/// The implementation with instructions that every processor has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlainBits;

impl SwiftBits {
    /// Checks for the instructions.
    #[must_use]
    pub fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("bmi2")
        {
            return Some(Self(()));
        }
        None
    }
}

impl Bits for SwiftBits {
    #[inline(always)]
    fn rank(self, word: u64) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            let bits: u64;
            // SAFETY: `self` exists, so the processor has the instruction; it reads one register and writes
            // another.
            unsafe {
                std::arch::asm!("popcnt {bits}, {word}", word = in(reg) word,
                    bits = lateout(reg) bits, options(pure, nomem, nostack));
            }
            bits as u32
        }
        #[cfg(not(target_arch = "x86_64"))]
        PlainBits.rank(word)
    }

    #[inline(always)]
    fn select(self, word: u64, number: u32) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            let bit: u64;
            // SAFETY: `self` exists, so the processor has the instruction; it reads two registers and writes a
            // third.
            unsafe {
                std::arch::asm!("pdep {bit}, {one}, {word}", word = in(reg) word,
                    one = in(reg) 1_u64 << (number & 63), bit = lateout(reg) bit,
                    options(pure, nomem, nostack, preserves_flags));
            }
            bit.trailing_zeros()
        }
        #[cfg(not(target_arch = "x86_64"))]
        PlainBits.select(word, number)
    }
}

impl Bits for PlainBits {
    #[inline]
    fn rank(self, word: u64) -> u32 {
        word.count_ones()
    }

    /// The bit is in the low half, or in the high half with a smaller number; this step is repeated six times.
    fn select(self, word: u64, number: u32) -> u32 {
        if number >= word.count_ones() {
            return 64;
        }
        let (mut rest, mut number, mut place) = (word, number, 0);
        for half in [32, 16, 8, 4, 2, 1] {
            let low = (rest & ((1 << half) - 1)).count_ones();
            if number >= low {
                number -= low;
                rest >>= half;
                place += half;
            }
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(bits: impl Bits) {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let spread = (0..200).map(|round| {
            word = word.wrapping_mul(0xd129_0b26_85a5_1c91).rotate_left(29) ^ round;
            if round % 3 == 0 { word & word >> 7 & word << 9 } else { word }
        });
        let edges = [0, 1, 1 << 63, u64::MAX, u64::MAX >> 1];
        for word in spread.chain(edges) {
            // Checks one bit after another.
            let set: Vec<_> = (0..64).filter(|bit| word >> bit & 1 == 1).collect();
            assert_eq!(bits.rank(word) as usize, set.len());
            for number in 0..64 {
                let expected = set.get(number as usize).copied().unwrap_or(64);
                assert_eq!(bits.select(word, number), expected, "{word:x} {number}");
            }
        }
    }

    #[test]
    fn bits_are_counted_and_found_as_one_by_one() {
        compare(PlainBits);
        SwiftBits::detect().into_iter().for_each(compare);
    }
}
